package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark/cmd/cli"
)

// TestDoctorServer: the doctor looks at the server that is named, and says what is wrong with it.
func TestDoctorServer(t *testing.T) {
	const fine = `{"ok":true,"version":"v9","status":"ok","model":"anthropic claude-x"}`
	hour := time.Now().Add(-time.Hour)
	for _, tc := range []struct {
		name          string
		health        string
		status        int       // of what needs a token
		at            time.Time // what the server takes for now
		code          int
		want, wantNot []string
	}{
		{"all is well", fine, 200, time.Now(), 0, []string{"ok    server ", "answers, version v9", "ok    token ", "ok    settings ", "ok    model      anthropic claude-x", "ok    clock "}, []string{"home", "bucket", "→"}},
		{"offline", `{"ok":true,"version":"","status":"ok","model":"offline offline"}`, 200, time.Now(), 0, []string{"built-in offline model", "version not told"}, nil},
		{"a key is missing", `{"ok":false,"version":"","status":"settings","problems":[{"setting":"ANTHROPIC_API_KEY","message":"is not set","fix":"run: this"}]}`, 503, time.Now(), 1,
			[]string{"fail  settings   ANTHROPIC_API_KEY: is not set", "→ run: this", "ok    token"}, []string{"ok    settings", "fail  server"}},
		{"turns fail and it does not know why", fine, 503, time.Now(), 1, []string{"fail  server     asked for its agents: configuration"}, []string{"token"}},
		{"the last good ones", `{"ok":true,"version":"","status":"settings","model":"offline offline","problems":[{"setting":"log.level","message":"m","fix":"f"}]}`, 200, time.Now(), 1,
			[]string{"fail  settings   log.level: m", "warn  settings   what is named above is not in force; the last good ones are"}, []string{"ok    settings"}},
		{"the disk is full", `{"ok":false,"version":"","status":"storage","problems":[{"setting":"storage","message":"1 conversations wait: the disk is full","fix":"mend it"}]}`, 200, time.Now(), 1,
			[]string{"fail  storage    1 conversations wait: the disk is full", "→ mend it"}, []string{"settings"}},
		{"warnings", `{"ok":true,"version":"","status":"ok","warnings":["unknown TIDEMARK_X"]}`, 200, time.Now(), 0, []string{"warn  settings   unknown TIDEMARK_X"}, nil},
		{"refused", `{"ok":true,"version":"v9"}`, 401, time.Now(), 1, []string{"fail  token      wrong token", "→ set TIDEMARK_TOKEN to the server's token"}, []string{"settings"}},
		{"refused at once", "401", 401, time.Now(), 1, []string{"ok    server ", "fail  token      wrong token", "→ set TIDEMARK_TOKEN to the server's token"}, []string{"settings", "no Tidemark"}},
		{"a server without a token", `{"ok":false,"version":"","status":"settings","problems":[{"setting":"TIDEMARK_TOKEN","message":"is not set: nobody is let in","fix":"run: this"}]}`, 401, time.Now(), 1,
			[]string{"fail  settings   TIDEMARK_TOKEN: is not set: nobody is let in", "→ run: this"}, []string{" token  ", "the server's token"}},
		{"an older server", `{"ok":true,"version":"v1"}`, 200, time.Now(), 0, []string{"warn  settings   the server is too old to tell"}, nil},
		{"another program", `{"hello":1}`, 200, time.Now(), 1, []string{"fail  server ", "no Tidemark server"}, []string{"token"}},
		{"a page", `<html>`, 200, time.Now(), 1, []string{"no Tidemark server"}, nil},
		{"no clock", fine, 200, time.Time{}, 0, []string{"ok    clock      not compared"}, nil},
		{"clock", fine, 200, hour, 0, []string{"warn  clock      the clock differs from the server's by 1h0m"}, []string{"ok    clock"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header()["Date"] = nil // as in workerd
				if !tc.at.IsZero() {
					w.Header().Set("Date", tc.at.UTC().Format(http.TimeFormat))
				}
				if r.URL.Path == "/healthz" && tc.health != "401" {
					fmt.Fprint(w, tc.health)
					return
				}
				if r.Header.Get("Authorization") != "Bearer secret" {
					t.Errorf("authorization %q", r.Header.Get("Authorization"))
				}
				w.WriteHeader(tc.status)
				fmt.Fprint(w, map[int]string{200: "{}", 401: `{"error":{"type":"unauthorized","message":"wrong token"}}`, 503: `{"error":{"type":"unavailable","message":"configuration"}}`}[tc.status])
			}))
			defer s.Close()
			var out, told bytes.Buffer
			m := &cli.Main{Stdout: &out, Stderr: &told, Environ: []string{"TIDEMARK_TOKEN=secret", "TIDEMARK_SERVER=" + s.URL, "TIDEMARK_HOME=/nowhere/at/all"}}
			if code := m.Run(t.Context(), commands(), []string{"doctor"}); code != tc.code {
				t.Errorf("exit code %d, want %d\n%s", code, tc.code, told.String())
			}
			for _, want := range tc.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("lacks %q:\n%s", want, out.String())
				}
			}
			for _, no := range tc.wantNot {
				if strings.Contains(strings.ReplaceAll(out.String(), "the files of this machine", ""), no) {
					t.Errorf("has %q:\n%s", no, out.String())
				}
			}
		})
	}
}

// TestDoctorNobody: where nobody answers, it says what could be started there.
func TestDoctorNobody(t *testing.T) {
	s := httptest.NewServer(nil)
	s.Close()
	var out, told bytes.Buffer
	m := &cli.Main{Stdout: &out, Stderr: &told, Environ: []string{"TIDEMARK_HOME=/nowhere/at/all"}}
	if code := m.Run(t.Context(), commands(), []string{"doctor", "--server", s.URL}); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if got := out.String(); !strings.Contains(got, "fail  server ") || !strings.Contains(got, "`tidemark serve` or `make dev` runs there") {
		t.Error(got)
	}
}
