package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidemark-ai/tidemark/cmd/cli"
)

// onTerminal runs a chat of a person at a terminal, who types what the reader gives.
func onTerminal(t *testing.T, typed io.Reader, environ ...string) string {
	t.Helper()
	var out bytes.Buffer
	m := &cli.Main{Stdin: typed, Stdout: &out, Stderr: &out, Terminal: true,
		Environ: append([]string{"TIDEMARK_HOME=" + t.TempDir(), "TERM=dumb"}, environ...)}
	if code := m.Run(t.Context(), commands(), []string{"chat"}); code != cli.ExitOK {
		t.Errorf("exit code %d", code)
	}
	return out.String()
}

func wantAll(t *testing.T, out string, parts ...string) {
	t.Helper()
	rest := out
	for _, p := range parts {
		_, after, ok := strings.Cut(rest, p)
		if !ok {
			t.Fatalf("%q is not there, or not in its place:\n%s", p, out)
		}
		rest = after
	}
}

// TestTerminal: everything stands in one place, and after a failure the talk goes on.
func TestTerminal(t *testing.T) {
	out := onTerminal(t, strings.NewReader("the fence is green\n/frob\n/compact\n/memory x.md\nWhat colour is the fence?\n"))
	wantAll(t, out, "session main at", "> Noted: “the fence is green”\n", "context ", "/180k ", "% of the way to compaction", "> \"frob\" is no command",
		"> [Nothing to compact yet", "/memory takes nothing behind it", "> This is", "green", "\n> \n")
}

// TestAskedBeforeReset: a person is asked before the conversation is ended, and anything but a yes is a no.
func TestAskedBeforeReset(t *testing.T) {
	for _, row := range []struct {
		name, typed string
		done        bool
	}{
		{"no", "/reset\nn\n", false},
		{"an empty line", "/new\n\n", false},
		{"another command", "/RESET\n/status\n", false},
		{"the end", "/new\n", false},
		{"yes", "/new\ny\n", true},
		{"in full", "/Reset\n Yes\n", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			out := onTerminal(t, strings.NewReader("the fence is green\n"+row.typed))
			wantAll(t, out, "Noted: ", "Archive this conversation and begin a new one? [y/N] ")
			if done, left := strings.Contains(out, "[New session ("), strings.Contains(out, "nothing was done"); done != row.done || left == row.done {
				t.Errorf("begun anew: %t, said not: %t\n%s", done, left, out)
			}
		})
	}
	if out := onTerminal(t, strings.NewReader("the fence is green\n/reset the fence\n")); strings.Contains(out, "[y/N]") {
		t.Errorf("asked about a sentence:\n%s", out)
	}
}

// TestInterrupt: Ctrl-C stops the answer that is on its way and not the talk.
func TestInterrupt(t *testing.T) {
	var calls atomic.Int64
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		say := func(text, stop string) {
			fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q},\"finish_reason\":%s}]}\n\n", text, stop)
			w.(http.Flusher).Flush()
		}
		if calls.Add(1) > 1 {
			say("Shorter then.", `"stop"`)
			fmt.Fprint(w, "data: [DONE]\n\n")
			return
		}
		say("A very long answer", "null")
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Signal(os.Interrupt)
		}
		if err != nil {
			t.Error(err)
		}
		<-r.Context().Done()
	}))
	defer api.Close()
	out := onTerminal(t, strings.NewReader("Tell me everything.\nShorter.\n/quit\n"), "OPENAI_BASE_URL="+api.URL, "TIDEMARK_MODEL_ID=m")
	wantAll(t, out, "> ", "Stopped.", "> Shorter then.", "context ")
	if n := calls.Load(); n != 2 {
		t.Errorf("%d calls", n)
	}
}

// TestTalkHoldsStore: beside a chat that has the store another command fails at once, not after the
// wait for a command that ends soon (which has other words), and names the way to have both.
func TestTalkHoldsStore(t *testing.T) {
	home := t.TempDir()
	typed, typing := io.Pipe()
	var said, told bytes.Buffer
	ended := make(chan int)
	go func() {
		m := &cli.Main{Stdin: typed, Stdout: &said, Stderr: &said, Terminal: true, Environ: []string{"TIDEMARK_HOME=" + home, "TERM=dumb"}}
		ended <- m.Run(t.Context(), commands(), []string{"chat"})
	}()
	if _, err := io.WriteString(typing, "/help\n"); err != nil { // taken once the chat stands
		t.Fatal(err)
	}
	m := &cli.Main{Stdin: strings.NewReader(""), Stdout: &told, Stderr: &told, Environ: []string{"TIDEMARK_HOME=" + home}}
	if code := m.Run(t.Context(), commands(), []string{"sessions", "ls"}); code != cli.ExitFailed {
		t.Errorf("exit code %d", code)
	}
	wantAll(t, told.String(), "in use by `tidemark chat` (process ", "what to do: ", "`tidemark serve`")
	typing.Close()
	if code := <-ended; code != cli.ExitOK {
		t.Errorf("the chat ended with %d: %s", code, &said)
	}
	if s := cli.ReadServerFile(home); s != (cli.ServerFile{}) {
		t.Errorf("the chat left %+v", s)
	}
}
