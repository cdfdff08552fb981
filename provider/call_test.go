package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tidemark "github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// hi is the smallest request.
func hi() tidemark.Request {
	return tidemark.Request{Model: "m", System: "s", Messages: []tidemark.Message{tidemark.NewText(tidemark.User, "hi there")}}
}

// dialects gives all wire providers against a fake server.
func dialects(t *testing.T, api *tidemarktest.API, key string) map[string]tidemark.Provider {
	rt := tidemarktest.NewRuntime(t)
	transport := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(transport.CloseIdleConnections)
	return map[string]tidemark.Provider{
		"anthropic": &Anthropic{Key: key, BaseURL: api.URL, Transport: transport, Runtime: rt},
		"openai":    &OpenAI{Key: key, BaseURL: api.URL + "/v1", Transport: transport, Runtime: rt},

		"workersai flat":    &WorkersAI{Key: key, BaseURL: api.URL + "/ai/flat", Transport: transport, Runtime: rt},
		"workersai choices": &WorkersAI{Key: key, BaseURL: api.URL + "/ai/choices", Transport: transport, Runtime: rt},
		"workersai both":    &WorkersAI{Key: key, BaseURL: api.URL + "/ai/both", Transport: transport, Runtime: rt},
	}
}

func apiError(t *testing.T, err error) *tidemark.APIError {
	t.Helper()
	var api *tidemark.APIError
	if !errors.As(err, &api) {
		t.Fatalf("got %v, want an *APIError", err)
	}
	return api
}

func TestAgainstTheFake(t *testing.T) {
	long := strings.Repeat("wörd 👋 ", 500)
	for _, c := range []struct {
		name string
		step tidemarktest.Step
		text string
		stop string
	}{
		{"echo", tidemarktest.Step{}, "You said: hi there", "end_turn"},
		{"long", tidemarktest.Step{Text: long, Piece: 7}, long, "end_turn"},
		{"whole", tidemarktest.Step{Text: "at once", IgnoreStream: true}, "at once", "end_turn"},
		{"calls", tidemarktest.Step{Text: "both", Calls: []tidemarktest.ToolCall{{Name: "a", Input: `{"x":1.0}`}, {Name: "b"}}}, "both", "tool_use"},
		{"calls, whole", tidemarktest.Step{Calls: []tidemarktest.ToolCall{{Name: "a", Input: `{"x":1.0}`}, {Name: "b"}}, IgnoreStream: true}, "", "tool_use"},
		{"cut off by its bound", tidemarktest.Step{Text: "and", Stop: "max_tokens"}, "and", "max_tokens"},
	} {
		t.Run(c.name, func(t *testing.T) {
			api := tidemarktest.NewAPI(t)
			for name, p := range dialects(t, api, "k") {
				api.Push(c.step)
				var streamed strings.Builder
				var reply *tidemark.Reply
				tools := 0
				for d, err := range p.Stream(t.Context(), hi()) {
					if err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					streamed.WriteString(d.Text)
					if d.Tool != "" {
						tools++
					}
					reply = d.Reply
				}
				if reply == nil || reply.Message.PlainText() != c.text || streamed.String() != c.text || reply.Call.Stop != c.stop {
					t.Fatalf("%s: reply %+v, streamed %q", name, reply, streamed.String())
				}
				if len(reply.Message.Calls()) != len(c.step.Calls) || tools != len(c.step.Calls) {
					t.Errorf("%s: %d calls, %d announced", name, len(reply.Message.Calls()), tools)
				}
				if u := reply.Call.Usage; !reply.Call.Reported || u.Context() <= 0 || reply.Call.RequestID == "" || reply.Call.Model != "m" {
					t.Errorf("%s: call %+v", name, reply.Call)
				}
			}
		})
	}
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name  string
		step  tidemarktest.Step
		class tidemark.Class
	}{
		{"rate", tidemarktest.Step{Status: 429, Header: http.Header{"Retry-After": {"7"}}}, tidemark.ClassRate},
		{"overloaded", tidemarktest.Step{Status: 529}, tidemark.ClassOverloaded},
		{"internal", tidemarktest.Step{Status: 500}, tidemark.ClassOverloaded},
		{"wrong key", tidemarktest.Step{Status: 401, Message: "bad key sk-super-secret-1"}, tidemark.ClassAuth},
		{"error after 200", tidemarktest.Step{Text: "Hello there, you", MidError: "overloaded_error"}, tidemark.ClassOverloaded},
		{"cut", tidemarktest.Step{Text: "Hello there, you", Cut: 700}, tidemark.ClassNetwork},
		{"cut at once", tidemarktest.Step{Text: "Hello", Cut: 1}, tidemark.ClassNetwork},
		{"garbage", tidemarktest.Step{Raw: "<html>welcome to the hotel</html>\n\n"}, tidemark.ClassNetwork},
		{"garbage JSON", tidemarktest.Step{Raw: "data: {\"type\": 7\n\n"}, tidemark.ClassNetwork},
		{"empty body", tidemarktest.Step{Raw: "\n"}, tidemark.ClassNetwork},
		{"empty reply", tidemarktest.Step{Empty: true}, tidemark.ClassNetwork},
		{"refusal without a word", tidemarktest.Step{Empty: true, Stop: "refusal"}, tidemark.ClassRefusal},
	} {
		t.Run(c.name, func(t *testing.T) {
			api := tidemarktest.NewAPI(t)
			for name, p := range dialects(t, api, "sk-super-secret-1") {
				api.Push(c.step)
				_, err := tidemark.Complete(t.Context(), p, hi())
				e := apiError(t, err)
				if e.Class != c.class {
					t.Errorf("%s: %v, want class %s", name, err, c.class)
				}
				if strings.Contains(fmt.Sprintf("%+v %v", e, err), "super-secret") {
					t.Errorf("%s: the key is in the error: %v", name, err)
				}
				if c.step.Header != nil && e.RetryAfter != 7*time.Second {
					t.Errorf("%s: retry after %s", name, e.RetryAfter)
				}
			}
		})
	}
}

func TestOverflowAndShape(t *testing.T) {
	api := tidemarktest.NewAPI(t)
	for name, p := range dialects(t, api, "") {
		api.SetWindow(10)
		if _, err := tidemark.Complete(t.Context(), p, hi()); apiError(t, err).Class != tidemark.ClassOverflow {
			t.Errorf("%s: %v", name, err)
		}
		api.SetWindow(0)
		orphan := hi()
		orphan.Messages = append(orphan.Messages, tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult("x", "y", false)}})
		if _, err := tidemark.Complete(t.Context(), p, orphan); apiError(t, err).Class != tidemark.ClassBadRequest {
			t.Errorf("%s: an orphan result: %v", name, err)
		}
		api.SetKey("right")
		if _, err := tidemark.Complete(t.Context(), p, hi()); apiError(t, err).Class != tidemark.ClassAuth {
			t.Errorf("%s: no key: %v", name, err)
		}
		api.SetKey("")
	}
}

// TestBreakClosesTheConnection: the server sees a reader go, whether it stops reading or its context
// ends, before the first byte or in the middle.
func TestBreakClosesTheConnection(t *testing.T) {
	stopped := errors.New("stopped by a person")
	for _, c := range []struct {
		name string
		step tidemarktest.Step
		stop func(context.CancelCauseFunc) bool // after a delta; true: break
		hang bool
	}{
		{"break in the middle", tidemarktest.Step{Text: "a long text that goes on", Piece: 1, Stall: 900}, func(context.CancelCauseFunc) bool { return true }, false},
		{"cancel in the middle", tidemarktest.Step{Text: "a long text that goes on", Piece: 1, Stall: 900}, func(c context.CancelCauseFunc) bool { c(stopped); return false }, false},
		{"cancel before the first byte", tidemarktest.Step{Hang: true}, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			api := tidemarktest.NewAPI(t)
			for name, p := range dialects(t, api, "") {
				api.Push(c.step)
				ctx, cancel := context.WithCancelCause(t.Context())
				if c.hang {
					n := len(api.Calls()) + 1
					go func() {
						if api.Await(ctx, n) == nil {
							cancel(stopped)
						}
					}()
				}
				var last error
				for d, err := range p.Stream(ctx, hi()) {
					last = err
					if err == nil && d.Text != "" && c.stop(cancel) {
						break
					}
				}
				if ctx.Err() != nil && !errors.Is(last, stopped) {
					t.Errorf("%s: ended with %v, want the cause", name, last)
				}
				wait, done := context.WithTimeout(t.Context(), tidemarktest.Patience)
				if err := api.Idle(wait); err != nil {
					t.Errorf("%s: the server still holds the connection: %v", name, err)
				}
				done()
				cancel(nil)
			}
		})
	}
}

// script is a transport whose body gives pieces, each after a wait.
type script struct {
	header time.Duration // until the headers
	pieces []piece
}

type piece struct {
	wait time.Duration
	text string
}

func (s script) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := nap(r.Context(), s.header); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}, "Request-Id": {"req_s"}},
		Body: &scriptBody{ctx: r.Context(), pieces: s.pieces}}, nil
}

type scriptBody struct {
	ctx    context.Context
	pieces []piece
}

func (b *scriptBody) Read(p []byte) (int, error) {
	if len(b.pieces) == 0 {
		return 0, io.EOF
	}
	if err := nap(b.ctx, b.pieces[0].wait); err != nil {
		return 0, err
	}
	n := copy(p, b.pieces[0].text)
	b.pieces = b.pieces[1:]
	return n, nil
}

func (b *scriptBody) Close() error { return nil }

func nap(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestDeadlines(t *testing.T) {
	ping := "event: ping\ndata: {\"type\":\"ping\"}\n\n"
	text := `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"x"}}` + "\n\n" + `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}` + "\n\n"
	for _, c := range []struct {
		name   string
		script script
		want   string        // in the error; empty: none
		least  time.Duration // how long it takes
		most   time.Duration
	}{
		{"no headers", script{header: time.Hour}, "no data for 2m0s", 2 * time.Minute, 2*time.Minute + 16*time.Second},
		{"headers and no body", script{header: time.Second, pieces: []piece{{time.Hour, text}}}, "no data for 2m0s", 2 * time.Minute, 2*time.Minute + 32*time.Second},
		{"silence in the middle", script{pieces: []piece{{time.Second, ping}, {time.Hour, text}}}, "no data for 1m30s", 90 * time.Second, 130 * time.Second},
		{"pings keep it alive", script{pieces: []piece{{time.Minute, ping}, {time.Minute, ping}, {time.Minute, ping}, {time.Minute, text}}}, "", 4 * time.Minute, 4 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				_, err := tidemark.Complete(t.Context(), &Anthropic{Transport: c.script, Runtime: tidemarktest.NewRuntime(t)}, hi())
				took := time.Since(begun)
				if took < c.least || took > c.most {
					t.Errorf("took %s, want %s to %s", took, c.least, c.most)
				}
				if c.want == "" {
					if err != nil {
						t.Errorf("got %v", err)
					}
					return
				}
				if e := apiError(t, err); e.Class != tidemark.ClassNetwork || e.Message != c.want {
					t.Errorf("got %v, want %q", err, c.want)
				}
			})
		})
	}
}

// TestSlowReaderIsNoTimeout: time that the reader takes is not the server's silence.
func TestSlowReaderIsNoTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block := `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"x"}}` + "\n\n"
		end := `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}` + "\n\n"
		p := &Anthropic{Transport: script{pieces: []piece{{time.Second, block}, {time.Second, end}}}, Runtime: tidemarktest.NewRuntime(t)}
		for _, err := range p.Stream(t.Context(), hi()) {
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
		}
	})
}

func TestMisconfigured(t *testing.T) {
	for name, p := range map[string]tidemark.Provider{"no transport": &Anthropic{}, "no URL": &OpenAI{BaseURL: "http://\x7f", Transport: http.DefaultTransport}} {
		if _, err := tidemark.Complete(t.Context(), p, hi()); apiError(t, err).Class != tidemark.ClassBadRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
	dead := &Anthropic{BaseURL: "http://127.0.0.1:1", Transport: http.DefaultTransport}
	if _, err := tidemark.Complete(t.Context(), dead, hi()); apiError(t, err).Class != tidemark.ClassNetwork {
		t.Errorf("nobody listens: %v", err)
	}
}

// TestWithoutUsage: an endpoint that refuses stream_options is asked again without, and figures that
// do not come are estimates.
func TestWithoutUsage(t *testing.T) {
	api := tidemarktest.NewAPI(t)
	p := dialects(t, api, "")["openai"]
	api.Push(tidemarktest.Step{Status: 400, Message: "Unrecognized request argument supplied: stream_options"}, tidemarktest.Step{Text: "fine"})
	reply, err := tidemark.Complete(t.Context(), p, hi())
	if err != nil {
		t.Fatal(err)
	}
	if reply.Call.Reported || reply.Call.Usage.Input != Estimate(hi()) || reply.Call.Usage.Output == 0 {
		t.Errorf("call %+v", reply.Call)
	}
}

// TestRefusalInWords: what a model says when it declines, or until it was stopped, is its answer.
func TestRefusalInWords(t *testing.T) {
	api := tidemarktest.NewAPI(t)
	for name, p := range dialects(t, api, "k") {
		api.Push(tidemarktest.Step{Text: "I will not.", Stop: "refusal"})
		reply, err := tidemark.Complete(t.Context(), p, hi())
		if err != nil || reply.Message.PlainText() != "I will not." || reply.Call.Stop != "refusal" {
			t.Errorf("%s: %q (%s), %v", name, reply.Message.PlainText(), reply.Call.Stop, err)
		}
	}
}
