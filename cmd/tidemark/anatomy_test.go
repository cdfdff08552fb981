package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/room/anatomy"
)

// someCalls are records with something of each kind, and a compaction before the second.
func someCalls() []anatomy.Record {
	var out []anatomy.Record
	topic := "harbour gauge lighthouse barometer readings"
	for i := range 8 {
		out = append(out, anatomy.Record{N: int64(i + 1), Run: fmt.Sprint("r", i), Session: "l", Cycle: min(i, 5), Full: 81.5, Size: 3260, Limit: 4000, System: 500, Tools: 1200, Stop: "end_turn", Topic: &topic, Transition: i == 3,
			Parts: map[string]anatomy.Portion{"summary": {Items: 1, Tokens: 90}, "marker": {Items: 1, Tokens: 61}, "stub": {Items: 1, Tokens: 62}, "person": {Items: 1, Tokens: 63}, "model": {Items: 1, Tokens: 64},
				"tool": {Items: 1, Tokens: 65}, "recall": {Items: 1, Tokens: 66}, "note": {Items: 1, Tokens: 1119}},
			Usage: tidemark.Usage{Input: 2000, CacheRead: 1200, Output: 150}})
	}
	return out
}

// TestAnatomyWords: table and chart say the same words, and have a column for what is pushed.
func TestAnatomyWords(t *testing.T) {
	rows := anatomyRows(someCalls())
	at := slices.Index(rows[0], "PUSHED")
	if at < 0 || rows[1][at] != "1.1k" {
		t.Fatalf("%q\n%q", rows[0], rows[1])
	}
	for _, k := range append(slices.Clone(anatomyParts), anatomyCosts...) {
		name := anatomyNames[k]
		if k != "other" && !slices.Contains(rows[0], strings.ToUpper(name)) || strings.Contains(name, " ") {
			t.Errorf("%s: %q is not in the table", k, name)
		}
	}
	for _, row := range rows {
		if len(row) != len(rows[0]) {
			t.Errorf("a row of %d cells for %d columns", len(row), len(rows[0]))
		}
	}
}

// TestShowTellsTuning: sessions show tells what reflection set, and what recall leaves out.
func TestShowTellsTuning(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/anatomy") {
			_, _ = w.Write([]byte(`{"calls":[],"tuning":{"tail":7,"why":"found again soon"}}`))
			return
		}
		_, _ = w.Write([]byte(`{"key":"agent:main:main","skipped":12}`))
	}))
	defer s.Close()
	var out, told bytes.Buffer
	m := &cli.Main{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &told, Environ: []string{"TIDEMARK_SERVER=" + s.URL}}
	if code := m.Run(t.Context(), commands(), []string{"sessions", "show", "main"}); code != 0 || !strings.Contains(out.String(), "12 messages that recall leaves out") ||
		!strings.Contains(out.String(), "by reflection (found again soon): the newest 7 turns stay") {
		t.Errorf("exit code %d\n%s%s", code, out.String(), told.String())
	}
}

// TestPromptAndEntryWhole: what a pipe gets of a prompt has the hash that is recorded, and an entry is printed whole.
func TestPromptAndEntryWhole(t *testing.T) {
	const request = `{"model":"x","note":"ü"}`
	sum := sha256.Sum256([]byte(request))
	long := strings.Repeat("walnut ", 200) + "end"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/entries/e1") {
			_, _ = fmt.Fprintf(w, `{"id":"e1","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":%q}]}]}}`, long)
			return
		}
		_, _ = fmt.Fprintf(w, `{"n":1,"sha256":"%x","same":true,"request":%s}`, sum, request)
	}))
	defer s.Close()
	run := func(args ...string) string {
		var out, told bytes.Buffer
		m := &cli.Main{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &told, Environ: []string{"TIDEMARK_SERVER=" + s.URL}}
		if code := m.Run(t.Context(), commands(), args); code != 0 {
			t.Errorf("%q: exit code %d, %s", args, code, told.String())
		}
		return out.String()
	}
	if got := run("anatomy", "main", "--prompt", "1"); got != request {
		t.Errorf("%q", got)
	}
	if got := run("log", "main", "--entry", "e1"); got != long+"\n" {
		t.Errorf("%q", got)
	}
	if got := run("log", "main", "--entry", "e1#0"); got != long { // to the byte
		t.Errorf("%q", got)
	}
	m := &cli.Main{Stdin: strings.NewReader(""), Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}, Environ: []string{"TIDEMARK_SERVER=" + s.URL}}
	if code := m.Run(t.Context(), commands(), []string{"log", "main", "--entry", "e1#1"}); code != cli.ExitFailed || !strings.Contains(fmt.Sprint(m.Stderr), "the message has 1 block, counted from 0\n  what to do: give a number from 0 on") {
		t.Errorf("exit code %d, %s", code, m.Stderr)
	}
}

// TestProxiedAnatomy: of a client's requests table and record tell what the proxy did, and the chart has a column for each.
func TestProxiedAnatomy(t *testing.T) {
	a := anatomy.Record{N: 7, Model: "m", Stop: "end_turn", Size: 9156, Limit: 30_000, Window: 30_000, Full: 30.5, Events: 41, Usage: tidemark.Usage{Input: 1000, CacheRead: 9000, Output: 50},
		Proxy:  &anatomy.Proxied{Treatment: "page", Untouched: "the API refused the edited request", Legs: 8, First: 9100, Phantom: 7, Trimmed: 12},
		Paging: &paging.Account{Zone: "advisory", Stubs: 5, Out: 30_000, Evicted: 2, Inputs: 1, In: 60_000, Sent: 30_000, Faults: []paging.Faulted{{Path: "a.go"}}}}
	rows := anatomyRows([]anatomy.Record{a})
	got := map[string]string{}
	for i, name := range rows[0] {
		got[name] = rows[1][i]
	}
	for name, want := range map[string]string{"TREATMENT": "page, untouched", "MESSAGES": "41", "LEGS": "8", "ZONE": "advisory", "SIZE": "9.2k", "STUBS": "5", "EVICTED": "3", "FAULTS": "1",
		"CAME": "59 KB", "SENT": "29 KB", "READ": "10k", "CACHED": "90 %"} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	var out bytes.Buffer
	m := &cli.Main{Out: &cli.Output{W: &out}}
	showRecord(m, a)
	for _, want := range []string{"sent as it came: the API refused", "8, with 7 calls of the proxy's tools; the first read 9100 tokens", "60000 came, 30000 sent, 12 by trimming less", "a.go"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the record lacks %q:\n%s", want, out.String())
		}
	}
}
