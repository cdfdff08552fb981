// Package ai proves the provider of Workers AI in workerd, through the runtime's own binding. The
// fake service is that of the provider's tests, so both hosts meet the same answers and faults.
package ai

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// worker is the probe in workerd, over a fake of its own.
type worker struct {
	url string
	api *tidemarktest.API
}

func serve(t *testing.T) worker {
	t.Helper()
	return start(t, "TIDEMARK_PROBE")
}

// start runs what is built in the folder that a variable names.
func start(t *testing.T, variable string, vars ...string) worker {
	t.Helper()
	folder := os.Getenv(variable)
	if folder == "" {
		t.Skip(variable + " is not set to a folder that go run ./build made: make e2e-bridge does it")
	}
	api := tidemarktest.NewAPI(t)
	cmd := exec.Command("node", append([]string{"serve.mjs", folder, api.URL + "/ai/binding"}, vars...)...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("workerd: %v", err)
		}
	})
	at, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("workerd did not start: %v", err)
	}
	return worker{strings.TrimSpace(at), api}
}

// ask makes a call in a session of its own; values are those of the probe's model route.
func (w worker) ask(ctx context.Context, session string, values url.Values) (*http.Response, error) {
	if !values.Has("ai") {
		values.Set("ai", "AI")
	}
	at := fmt.Sprintf("%sv1/sessions/agent:main:web:dm:%s/model?%s", w.url, session, values.Encode())
	body := `[{"role":"user","content":"hi from ` + session + `"}]`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-Tidemark-Token", "probe")
	return http.DefaultClient.Do(req)
}

// outcome is all that a call gave.
type outcome struct {
	text  string
	tools int
	reply *tidemark.Reply
	err   *tidemark.APIError
}

func (w worker) call(t *testing.T, session string, values url.Values) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), tidemarktest.Patience)
	defer cancel()
	res, err := w.ask(ctx, session, values)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var o outcome
	lines := bufio.NewReader(res.Body)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var d struct {
			tidemark.Delta
			Error *tidemark.APIError `json:"error"`
		}
		if err := json.Unmarshal(bytes.TrimSpace(line), &d); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		o.text += d.Text
		if d.Tool != "" {
			o.tools++
		}
		o.reply, o.err = d.Reply, d.Error
	}
	if (o.reply == nil) == (o.err == nil) {
		t.Fatalf("%s: ended with neither or both of a reply and an error: %+v", session, o)
	}
	return o
}

func model(shape string) url.Values { return url.Values{"model": {"@cf/" + shape + "/fake"}} }

func TestReplies(t *testing.T) {
	w := serve(t)
	long := strings.Repeat("wörd 👋 7 ", 300)
	for _, shape := range []string{"flat", "choices", "both"} {
		for _, c := range []struct {
			name string
			step tidemarktest.Step
			text string
			stop string
		}{
			{"echo", tidemarktest.Step{}, "You said: hi from echo", "end_turn"},
			{"long", tidemarktest.Step{Text: long, Piece: 5}, long, "end_turn"},
			{"whole", tidemarktest.Step{Text: "at once", IgnoreStream: true}, "at once", "end_turn"},
			{"calls", tidemarktest.Step{Text: "both", Calls: []tidemarktest.ToolCall{{Name: "a", Input: `{"x":1.0}`}, {Name: "b"}}}, "both", "tool_use"},
			{"bound", tidemarktest.Step{Text: "and", Stop: "max_tokens"}, "and", "max_tokens"},
		} {
			t.Run(shape+" "+c.name, func(t *testing.T) {
				w.api.Push(c.step)
				o := w.call(t, c.name, model(shape))
				if o.err != nil || o.text != c.text || o.reply.Message.PlainText() != c.text || o.reply.Call.Stop != c.stop {
					t.Fatalf("%+v, %v, want %q", o, o.err, c.text)
				}
				if len(o.reply.Message.Calls()) != len(c.step.Calls) || o.tools != len(c.step.Calls) || !o.reply.Call.Reported {
					t.Errorf("%d calls announced, %+v", o.tools, o.reply)
				}
			})
		}
	}
	affinity := map[string]bool{}
	for _, call := range w.api.Calls() {
		a := call.Header.Get("X-Session-Affinity")
		affinity[a] = true
		if len(a) != 32 || !strings.HasPrefix(call.Model, "@cf/") || call.MaxTokens == 0 {
			t.Errorf("affinity %q, model %q, bound %d", a, call.Model, call.MaxTokens)
		}
	}
	if len(affinity) != 5 {
		t.Errorf("%d affinities of 5 sessions", len(affinity))
	}
}

func TestFaults(t *testing.T) {
	w := serve(t)
	for _, c := range []struct {
		name  string
		step  tidemarktest.Step
		class tidemark.Class
	}{
		{"capacity", tidemarktest.Step{Status: 429, Type: "3040"}, tidemark.ClassOverloaded},
		{"rate", tidemarktest.Step{Status: 429, Header: http.Header{"Retry-After": {"7"}}}, tidemark.ClassRate},
		{"allocation", tidemarktest.Step{Status: 429, Type: "3036"}, tidemark.ClassAuth},
		{"no such model", tidemarktest.Step{Status: 400, Type: "5007"}, tidemark.ClassBadRequest},
		{"internal", tidemarktest.Step{Status: 500}, tidemark.ClassOverloaded},
		{"error after 200", tidemarktest.Step{Text: "Hello there, you", MidError: "overloaded_error"}, tidemark.ClassOverloaded},
		{"cut", tidemarktest.Step{Text: "Hello there, you", Cut: 300}, tidemark.ClassNetwork},
		{"cut at once", tidemarktest.Step{Text: "Hello", Cut: 1}, tidemark.ClassNetwork},
		{"garbage", tidemarktest.Step{Raw: "<html>welcome</html>\n\n"}, tidemark.ClassNetwork},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.api.Push(c.step)
			o := w.call(t, "faulty", model("flat"))
			if o.err == nil || o.err.Class != c.class {
				t.Errorf("%+v, want class %s", o.err, c.class)
			}
			if c.step.Header != nil && o.err.RetryAfter != 7*time.Second {
				t.Errorf("retry after %s", o.err.RetryAfter)
			}
		})
	}
	w.api.SetWindow(10)
	if o := w.call(t, "long", model("flat")); o.err == nil || o.err.Class != tidemark.ClassOverflow {
		t.Errorf("over the window: %+v", o)
	}
	unbound := model("flat")
	unbound.Set("ai", "OTHER")
	if o := w.call(t, "unbound", unbound); o.err == nil || o.err.Class != tidemark.ClassBadRequest || !strings.Contains(o.err.Message, `[ai] binding = "OTHER"`) {
		t.Errorf("unbound: %+v", o)
	}
}

// TestHangs: a service that says nothing is left at its deadline, and its connection is closed, through
// the binding and by fetch.
func TestHangs(t *testing.T) {
	w := serve(t)
	fetched := model("flat")
	fetched.Set("base", w.api.URL+"/v1")
	for way, values := range map[string]url.Values{"binding": model("flat"), "fetch": fetched} {
		values.Set("first", "600")
		values.Set("idle", "400")
		for _, c := range []struct {
			name string
			step tidemarktest.Step
		}{
			{"before the answer", tidemarktest.Step{Hang: true}},
			{"after its head", tidemarktest.Step{Text: "Hello", Stall: 1}},
			{"in the middle", tidemarktest.Step{Text: strings.Repeat("Hello there ", 20), Stall: 500}},
		} {
			t.Run(way+" "+c.name, func(t *testing.T) {
				w.api.Push(c.step)
				o := w.call(t, "hanging", values)
				if o.err == nil || o.err.Class != tidemark.ClassNetwork || !strings.HasPrefix(o.err.Message, "no data for") {
					t.Fatalf("%+v, %v", o, o.err)
				}
				w.idle(t)
			})
		}
	}
}

func (w worker) idle(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), tidemarktest.Patience)
	defer cancel()
	if err := w.api.Idle(ctx); err != nil {
		t.Errorf("the service still holds %d connections: %v", w.api.Open(), err)
	}
}

// TestClientLeaves: a write shows that the client has left; the service is then left too, in the middle
// of an answer that would go on for ten minutes.
func TestClientLeaves(t *testing.T) {
	w := serve(t)
	w.api.Push(tidemarktest.Step{Text: strings.Repeat("Hello there ", 2500), Piece: 1, Delay: 20 * time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	res, err := w.ask(ctx, "leaving", model("flat"))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := bufio.NewReader(res.Body).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if w.api.Open() != 1 {
		t.Fatalf("%d connections while the answer streams", w.api.Open())
	}
	cancel()
	w.idle(t)
}

// post sends JSON to a door of the Worker and gives the status and the answer.
func (w worker) post(t *testing.T, path, body string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), tidemarktest.Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer sesame")
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(raw)
}

// TestTurn: the whole Worker talks through the binding, by its settings alone. A turn that is aborted
// leaves a service that hangs, and the next one is answered.
func TestTurn(t *testing.T) {
	w := start(t, "TIDEMARK_WORKER", "TIDEMARK_TOKEN=sesame", "TIDEMARK_MODEL_PROVIDER=workers-ai", "TIDEMARK_MODEL_ID=@cf/both/fake")
	const session = "v1/sessions/agent:main:web:dm:anna/"
	if status, answer := w.post(t, session+"messages", `{"text":"Low tide is at 7."}`); status != http.StatusOK || !strings.Contains(answer, "You said: Low tide is at 7.") {
		t.Fatalf("%d %s", status, answer)
	}
	if c := w.api.Calls()[0]; c.Model != "@cf/both/fake" || c.System == "" || len(c.Header.Get("X-Session-Affinity")) != 32 {
		t.Errorf("called %q with system %q, %v", c.Model, c.System, c.Header)
	}

	w.api.Push(tidemarktest.Step{Hang: true})
	var turn sync.WaitGroup
	turn.Go(func() { w.post(t, session+"messages", `{"text":"Are you there?"}`) })
	ctx, cancel := context.WithTimeout(t.Context(), tidemarktest.Patience)
	defer cancel()
	if err := w.api.Await(ctx, 2); err != nil {
		t.Fatal(err)
	}
	if status, answer := w.post(t, session+"abort", `{}`); status != http.StatusOK {
		t.Fatalf("abort: %d %s", status, answer)
	}
	turn.Wait()
	w.idle(t)

	if status, answer := w.post(t, session+"messages", `{"text":"And now?"}`); status != http.StatusOK || !strings.Contains(answer, "And now?") {
		t.Fatalf("%d %s", status, answer)
	}
}
