//go:build !js

package worker_test

import (
	"bytes"
	"context"
	"io"
	"iter"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/worker"
)

// echo is a gate that answers with the words it was asked.
type echo struct{ *gate }

func (g echo) Stream(ctx context.Context, r tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	one := *g.gate
	one.piece = "to " + r.Messages[len(r.Messages)-1].PlainText() + " "
	return one.Stream(ctx, r)
}

// held is a database that holds one write back: the second that stores an input of an id.
type held struct {
	tidemark.DB
	id      string
	seen    atomic.Int32
	hit, on chan struct{}
}

func (d *held) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	for _, s := range stmts {
		if strings.Contains(s.SQL, "INTO inputs") && s.Args[1] == any(d.id) && d.seen.Add(1) == 2 {
			close(d.hit)
			<-d.on
		}
	}
	return d.DB.Tx(ctx, stmts)
}

// TestJoinItsRun: a retry that began to listen while another message was answered gets its own answer.
func TestJoinItsRun(t *testing.T) {
	g := echo{newGate()}
	db := &held{id: "b", hit: make(chan struct{}), on: make(chan struct{})}
	s := serve(t, func(_ *worker.Config, a *actors) { a.provider = g; db.DB = a.db; a.db = db })
	s.text(202, "POST", "/v1/sessions/x/messages?wait=0", `{"text":"alpha","id":"a"}`)
	<-g.begun
	s.text(202, "POST", "/v1/sessions/x/messages?wait=0", `{"text":"beta","id":"b"}`)
	streams := make(chan *sse, 1)
	go func() { streams <- s.listen("POST", "/v1/sessions/x/messages", `{"text":"beta","id":"b"}`) }()
	<-db.hit // it listens to the run of alpha
	g.on <- nil
	<-g.begun // beta is in work
	close(db.on)
	again := <-streams
	if data, _ := again.until("text"); !strings.Contains(data, "to beta") {
		t.Errorf("the retry of beta begins with %s", data)
	}
	g.on <- nil
	if data, _ := again.until("done"); !strings.Contains(data, `"text":"to beta second"`) {
		t.Errorf("the retry of beta got %s", data)
	}
}

// steps is a model that says something, calls a tool, and waits behind it.
type steps struct {
	*gate
	n atomic.Int32
}

const aside, verdict = "Your code is 4711, I look up the rest.", "That was all."

func (g *steps) Stream(ctx context.Context, _ tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	return func(yield func(tidemark.Delta, error) bool) {
		m := tidemark.NewText(tidemark.Assistant, verdict)
		if g.n.Add(1) == 1 {
			m.Content = []tidemark.Block{tidemark.Text(aside), tidemark.ToolUse("t1", "recall", []byte(`{"query":"x"}`))}
		} else {
			g.begun <- struct{}{}
			<-g.on
		}
		yield(tidemark.Delta{Reply: &tidemark.Reply{Message: m,
			Call: tidemark.Call{Model: "steps", Stop: "end_turn", Reported: true, Usage: tidemark.Usage{Input: 5, Output: 2}}}}, nil)
	}
}

// TestJoinSteps: who comes while a tool was called, or after the end, is told what was said before the call, and the
// figures of all of it, at each door.
func TestJoinSteps(t *testing.T) {
	const (
		page   = `{"id":"c","messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"hi"}]}]}`
		native = `{"text":"hi","id":"m"}`
		chat   = `{"model":"tidemark","messages":[{"role":"user","content":"hi"}]}`
		live   = `{"stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}`
		parts  = `"delta":"Your.*tool-input.*"t1".*tool-output.*"t1".*finish-step.*"delta":"That was all.*"input_tokens":10`
	)
	key := []string{"X-Tidemark-Session", "c"}
	for _, row := range []struct {
		name, path, body string
		headers          []string
		join             string // how to come back while it streams; empty: only after the end
		want             string // a pattern
	}{
		{"a page", "/api/chat", page, nil, "POST /api/chat", parts},
		{"a page resumes", "/api/chat", page, nil, "GET /api/chat/c/stream", parts},
		{"native", "/v1/sessions/c/messages", native, []string{"Accept", "text/event-stream"}, "POST /v1/sessions/c/messages",
			`event: reply.*Your code.*event: reply.*That was all.*"input_tokens":10`},
		{"chat completions, streamed", "/v1/chat/completions", live, key, "POST /v1/chat/completions", `Your code.*That was all.*"prompt_tokens":10`},
		{"chat completions", "/v1/chat/completions", chat, key, "", `Your code.*That was all.*"prompt_tokens":10`},
		{"messages", "/v1/messages", chat, key, "", `Your code.*That was all.*"input_tokens":10`},
	} {
		t.Run(row.name, func(t *testing.T) {
			g := &steps{gate: newGate()}
			s := serve(t, func(_ *worker.Config, a *actors) { a.provider = g })
			want := regexp.MustCompile("(?s)" + row.want)
			told := func(when string, res *http.Response) {
				raw, err := io.ReadAll(res.Body)
				if err != nil || !want.Match(raw) || bytes.Count(raw, []byte("4711")) != 1 {
					t.Errorf("%s: %v: %s", when, err, raw)
				}
			}
			var first sync.WaitGroup
			first.Go(func() { told("at first", s.do("POST", row.path, row.body, row.headers...)) })
			<-g.begun
			if method, path, ok := strings.Cut(row.join, " "); ok {
				res := s.do(method, path, row.body, row.headers...)
				g.on <- nil
				told("in work", res)
			} else {
				g.on <- nil
			}
			first.Wait()
			told("after its end", s.do("POST", row.path, row.body, row.headers...))
		})
	}
}
