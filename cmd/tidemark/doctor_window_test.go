package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/host/native"
)

// TestDoctorWindow: while a server runs, the window is the one that it learned, told once: of a conversation that has no
// settings of its own, whatever it is called.
func TestDoctorWindow(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/models":
			fmt.Fprint(w, `{"data":[{"id":"m"}]}`)
		case "/healthz":
			fmt.Fprint(w, `{"ok":true,"version":"v9","status":"ok","model":"openai m"}`)
		case "/v1/sessions":
			fmt.Fprint(w, `{"sessions":[{"key":"agent:main:proxy:a"},{"key":"agent:main:own"},{"key":"agent:main:c"}]}`)
		case "/v1/sessions/agent:main:own":
			fmt.Fprint(w, `{"window":9000,"windowFrom":"it is set","settings":{"window":9000}}`)
		case "/v1/sessions/agent:main:c":
			fmt.Fprint(w, `{"window":14000,"windowFrom":"its API named it"}`)
		default:
			fmt.Fprint(w, `{}`)
		}
	}))
	defer s.Close()
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, cli.ServerName), fmt.Appendf(nil, `{"url":%q,"pid":77}`, s.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := &config.Config{}
	cfg.Model.Provider, cfg.Model.ID, cfg.Model.BaseURL, cfg.Model.ContextWindow = config.OpenAI, "m", s.URL+"/v1", 200_000
	for name, ask := range map[string]func(context.Context, *doctor){
		"named": func(ctx context.Context, d *doctor) { d.server(ctx, s.URL) },
		"it has the store": func(ctx context.Context, d *doctor) {
			d.held(ctx, &native.LockedError{PID: 77})
			d.provider(ctx)
		},
	} {
		var out bytes.Buffer
		d := &doctor{m: &cli.Main{Out: &cli.Output{W: &out}, Err: &cli.Output{W: &out}}, home: home, cfg: cfg}
		ask(t.Context(), d)
		var told []string
		for _, f := range d.found {
			if f.Check == "window" {
				told = append(told, f.Text)
			}
		}
		if len(told) != 1 || told[0] != "14000 tokens: its API named it" {
			t.Errorf("%s: told %q of %+v", name, told, d.found)
		}
	}
}
