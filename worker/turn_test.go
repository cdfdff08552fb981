//go:build !js

package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/worker"
)

func TestMessage(t *testing.T) {
	s := serve(t, nil)
	got := s.say("main", "My bicycle is green.")
	if got.Type != "done" || got.ID == "" || got.Session == "" || got.Entry == "" || got.Reply.Role != tidemark.Assistant ||
		got.Text != got.Reply.PlainText() || got.Stop != "end_turn" || got.Usage.Output == 0 || got.Context == 0 || got.Events == nil {
		t.Errorf("%+v", got)
	}
	if again := s.say("main", "What colour is my bicycle?"); !strings.Contains(again.Text, "green") {
		t.Errorf("answer %q", again.Text)
	}
	info := get[tidemark.SessionInfo](s, 200, "GET", "/v1/sessions/main", "")
	if info.Messages != 4 || info.ID != got.Session {
		t.Errorf("%+v", info)
	}
}

func TestMessageTwice(t *testing.T) {
	s := serve(t, nil)
	path, body := "/v1/sessions/main/messages", `{"text":"hello","id":"a1"}`
	first := get[turn](s, 200, "POST", path, body)
	second := get[turn](s, 200, "POST", path, body)
	third := get[turn](s, 200, "POST", path, `{"text":"hello"}`, "Idempotency-Key", "a1")
	if first.Duplicate || !second.Duplicate || !third.Duplicate || second.Entry != first.Entry || third.Text != first.Text || second.Usage != first.Usage {
		t.Errorf("%+v\n%+v\n%+v", first, second, third)
	}
	data, names := s.listen("POST", path, body).until("done")
	var fourth turn
	if err := json.Unmarshal([]byte(data), &fourth); err != nil || fourth.Entry != first.Entry || !slices.Equal(names, []string{"receipt", "reply", "done"}) {
		t.Errorf("replayed: %v %s %v", names, data, err)
	}
	if info := get[tidemark.SessionInfo](s, 200, "GET", "/v1/sessions/main", ""); info.Messages != 2 {
		t.Errorf("%d messages", info.Messages)
	}
	get[fault](s, 400, "POST", path, body, "Idempotency-Key", "other")
}

func TestMessageQueued(t *testing.T) {
	g := newGate()
	s := serve(t, func(_ *worker.Config, a *actors) { a.provider = g })
	r := get[session.Receipt](s, 202, "POST", "/v1/sessions/main/messages?wait=0", `{"text":"hello","id":"q"}`)
	if r.ID != "q" || r.State != "new" || r.Session == "" {
		t.Errorf("%+v", r)
	}
	<-g.begun
	l := s.listen("POST", "/v1/sessions/main/messages", `{"text":"hello","id":"q"}`) // joins the turn in work
	data, _ := l.until("text")
	if !strings.Contains(data, "first ") {
		t.Errorf("partial answer: %s", data)
	}
	g.on <- nil
	done, names := l.until("done")
	if !strings.Contains(done, "first second") || !strings.Contains(done, `"duplicate":true`) || !slices.Contains(names, "reply") {
		t.Errorf("%v %s", names, done)
	}
}

func TestStream(t *testing.T) {
	g := newGate()
	g.piece = "a\nb\r\nc "
	s := serve(t, func(_ *worker.Config, a *actors) { a.provider = g })
	l := s.listen("POST", "/v1/sessions/main/messages?stream=1", `{"text":"hello"}`)
	data, _ := l.until("text")
	var n session.Notice
	if err := json.Unmarshal([]byte(data), &n); err != nil || n.Text != "a\nb\r\nc " {
		t.Errorf("%q %v", data, err)
	}
	g.on <- nil // earlier, the pieces may be read as one
	data, names := l.until("done")
	var got turn
	if err := json.Unmarshal([]byte(data), &got); err != nil || got.Text != "a\nb\r\nc second" || got.Usage.Input != 5 {
		t.Errorf("%s %v", data, err)
	}
	if !slices.Equal(names, []string{"text", "reply", "done"}) {
		t.Errorf("events %v", names)
	}
	if name, _ := l.next(); name != "EOF" {
		t.Errorf("%s behind the end", name)
	}
}

func TestPing(t *testing.T) {
	g := newGate()
	s := serve(t, func(c *worker.Config, a *actors) { a.provider, c.Ping = g, time.Millisecond })
	l := s.listen("POST", "/v1/sessions/main/messages", `{"text":"hello"}`)
	l.until("") // a comment
	<-g.begun
	live := s.listen("GET", "/v1/sessions/main/events", "")
	data, _ := live.until("hello")
	if !strings.Contains(data, `"text":"first "`) {
		t.Errorf("live events begin with %s", data)
	}
	live.until("")
	g.on <- nil
	l.until("done")
	live.until("done")
}

// TestFailedTurn: what the provider did is told with its status, as an answer and as an event.
func TestFailedTurn(t *testing.T) {
	for _, tc := range []struct {
		name   string
		err    error
		status int
		kind   string
		words  string
	}{
		{"wrong key", &tidemark.APIError{Class: tidemark.ClassAuth, Message: "no such key"}, 502, "auth", "no such key"},
		{"bad request", &tidemark.APIError{Class: tidemark.ClassBadRequest, Message: "no such model"}, 502, "bad_request", "no such model"},
		{"ours", fmt.Errorf("a secret detail"), 500, "internal", "internal error"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := newGate()
			for range 3 { // a refusal that names nothing is tried once more without what was said before
				g.on <- tc.err
			}
			s := serve(t, func(_ *worker.Config, a *actors) { a.provider = g })
			path := "/v1/sessions/main/messages"
			f := get[fault](s, tc.status, "POST", path, `{"text":"hello","id":"x"}`)
			if f.Error.Type != tc.kind || !strings.Contains(f.Error.Message, tc.words) || f.Error.Input != "x" || strings.Contains(f.Error.Message, "secret detail") {
				t.Errorf("%+v", f)
			}
			data, _ := s.listen("POST", path, `{"text":"hello"}`).until("error")
			if !strings.Contains(data, `"type":"`+tc.kind+`"`) || strings.Contains(data, "secret detail") {
				t.Errorf("event %s", data)
			}
			if again := get[fault](s, 502, "POST", path, `{"text":"hello","id":"x"}`); again.Error.Type != "failed" {
				t.Errorf("sent again: %+v", again)
			}
			if tc.kind == "internal" && !strings.Contains(s.log.String(), "secret detail") {
				t.Error("the log does not have the failure")
			}
		})
	}
}

func TestAbort(t *testing.T) {
	g := newGate()
	s := serve(t, func(_ *worker.Config, a *actors) { a.provider = g })
	l := s.listen("POST", "/v1/sessions/main/messages", `{"text":"hello"}`)
	<-g.begun
	type aborted struct{ Aborted bool }
	if got := get[aborted](s, 200, "POST", "/v1/sessions/main/abort", ""); !got.Aborted {
		t.Error("nothing was stopped")
	}
	if data, _ := l.until("error"); !strings.Contains(data, `"type":"aborted"`) {
		t.Error(data)
	}
	s.text(200, "PATCH", "/v1/sessions/idle", `{}`)
	if got := get[aborted](s, 200, "POST", "/v1/sessions/idle/abort", ""); got.Aborted {
		t.Error("an idle session was stopped")
	}
}

// TestDisconnect: a client that leaves in the middle of a stream stops no turn.
func TestDisconnect(t *testing.T) {
	g := newGate()
	s := serve(t, func(_ *worker.Config, a *actors) { a.provider = g })
	l := s.listen("POST", "/v1/sessions/main/messages", `{"text":"hello","id":"d"}`)
	l.until("text")
	if err := l.body.Close(); err != nil {
		t.Fatal(err)
	}
	g.on <- nil
	if got := get[turn](s, 200, "POST", "/v1/sessions/main/messages", `{"text":"hello","id":"d"}`); got.Text != "first second" {
		t.Errorf("%+v", got)
	}
}

// TestSlowReader: a client that does not read is let go, and the turn ends without it.
func TestSlowReader(t *testing.T) {
	g := newGate()
	g.piece = strings.Repeat("x", 8<<20) // more than the buffers of a socket hold
	s := serve(t, func(c *worker.Config, a *actors) { a.provider, c.WriteTimeout = g, 50*time.Millisecond })
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := `{"text":"hello","id":"s"}`
	fmt.Fprintf(conn, "POST /v1/sessions/main/messages?stream=1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	<-g.begun
	g.on <- nil
	if got := get[turn](s, 200, "POST", "/v1/sessions/main/messages", body); !strings.HasSuffix(got.Text, "second") {
		t.Errorf("answer of %d bytes", len(got.Text))
	}
	if raw, err := io.ReadAll(conn); err == nil && strings.Contains(string(raw), "event: done") {
		t.Error("the whole stream was sent")
	}
}

// TestWait: a client that waits longer than the bound is told how to go on.
func TestWait(t *testing.T) {
	g := newGate()
	s := serve(t, func(c *worker.Config, a *actors) { a.provider, c.Wait = g, 20*time.Millisecond })
	f := get[fault](s, 504, "POST", "/v1/sessions/main/messages", `{"text":"hello","id":"w"}`)
	if f.Error.Type != "timeout" || f.Error.Input != "w" || !strings.Contains(f.Error.Message, "same id") {
		t.Errorf("%+v", f)
	}
	g.on <- nil
}

func TestBadBodies(t *testing.T) {
	s := serve(t, func(c *worker.Config, _ *actors) { c.MaxBody = 2 << 20 })
	const key = "/v1/sessions/fresh"
	for _, tc := range []struct {
		name, method, path, body string
		status                   int
		want                     string
	}{
		{"invalid UTF-8", "POST", key + "/messages", "{\"text\":\"\xff\"}", 400, "byte 9"},
		{"NUL", "POST", key + "/messages", "{\"text\":\"\x00\"}", 400, "byte 9"},
		{"depth bomb", "POST", key + "/messages", `{"content":` + strings.Repeat("[", 1<<20), 400, "deep at byte"},
		{"too large", "POST", key + "/messages", `{"text":"` + strings.Repeat("a", 3<<20) + `"}`, 413, "at most 2097152"},
		{"unknown field", "POST", key + "/messages", `{"message_":"a"}`, 400, `did you mean "message"`},
		{"empty text", "POST", key + "/messages", `{"text":""}`, 400, `"text" is empty; say something`},
		{"white space", "POST", key + "/messages", `{"text":" \n"}`, 400, `"text" is empty`},
		{"empty block", "POST", key + "/messages", `{"content":[{"type":"text","text":""}]}`, 400, "the content has empty"},
		{"block without a type", "POST", key + "/messages", `{"content":[{"text":"a"}]}`, 400, `block 0 has no "type"`},
		{"no blocks", "POST", key + "/messages", `{"content":[]}`, 400, "the content has empty content"},
		{"tool call", "POST", key + "/messages", `{"content":[{"type":"tool_use","id":"a","name":"b","input":{}}]}`, 400, "the content has a tool call"},
		{"tool result", "POST", key + "/messages", `{"content":[{"type":"tool_result","tool_use_id":"x","content":"y"}]}`, 400, "tool_result"},
		{"assistant", "POST", key + "/messages", `{"message":{"role":"assistant","content":"y"}}`, 400, "role of an input must be user"},
		{"system", "POST", key + "/messages", `{"message":{"role":"system","content":"y"}}`, 400, "role of an input must be user"},
		{"long id", "POST", key + "/messages", `{"text":"a","id":"` + strings.Repeat("i", 201) + `"}`, 400, "201 bytes"},
		{"bad key", "POST", "/v1/sessions/a:b/messages", `{"text":"a"}`, 400, "session key"},
		{"bad flag", "POST", key + "/messages?wait=maybe", `{"text":"a"}`, 400, "wait=maybe"},
		{"reason is a number", "POST", key + "/reset", `{"reason":1}`, 400, `"reason" must be a string`},
		{"instructions is a list", "POST", key + "/compact", `{"instructions":[]}`, 400, `"instructions" must be a string`},
		{"window is a string", "PATCH", key, `{"window":"big"}`, 400, `"window" must be a number`},
		{"window is a fraction", "PATCH", key, `{"window":2000.5}`, 400, `"window" must be a number`},
		{"window too small", "PATCH", key, `{"window":1}`, 400, "window 1"},
		{"reserve below zero", "PATCH", key, `{"reserveTokens":-1}`, 400, "reserveTokens"},
		{"title is null and model a bool", "PATCH", key, `{"title":null,"model":true}`, 400, `"model" must be`},
		{"misspelt setting", "PATCH", key, `{"keepRecentToken":1}`, 400, `did you mean "keepRecentTokens"`},
		{"overlay is missing", "POST", key + "/undo", `{}`, 400, `"overlay" is missing`},
		{"archive is missing", "POST", key + "/restore", `{}`, 400, `"archive" is missing`},
		{"archive is none", "POST", key + "/restore", `{"archive":"x"}`, 400, "jsonl.gz"},
		{"archive of another agent", "POST", key + "/restore", `{"archive":"agents/b/sessions/x.jsonl.gz"}`, 403, "belongs to agent b"},
		{"archive outside", "POST", key + "/restore", `{"archive":"agents/main/sessions/../x.jsonl.gz"}`, 400, "dotted"},
		{"archive that is not there", "POST", key + "/restore", `{"archive":"x.jsonl.gz"}`, 404, "not found"},
		{"import format", "POST", key + "/import?format=csv", ``, 400, "format=csv"},
		{"import window", "POST", key + "/import?window=5", ``, 400, "window=5"},
		{"limit", "GET", "/v1/sessions?limit=0", "", 400, "limit=0"},
		{"limit is a word", "GET", "/v1/sessions?limit=all", "", 400, "limit=all"},
		{"cursor", "GET", "/v1/sessions?cursor=x", "", 400, "cursor"},
		{"agent", "GET", "/v1/sessions?agent=A%20b", "", 400, "agent"},
		{"no query", "GET", "/v1/agents/main/memory-search", "", 400, "q: want words"},
		{"view of nothing", "GET", "/v1/sessions/absent/view", "", 404, "not found"},
		{"log of nothing", "GET", "/v1/sessions/absent/log", "", 404, "not found"},
		{"abort of nothing", "POST", "/v1/sessions/absent/abort", "", 404, "not found"},
		{"compact of nothing", "POST", "/v1/sessions/absent/compact", "", 404, "not found"},
		{"memory path", "GET", "/v1/agents/main/memory/secrets.txt", "", 400, "no memory file"},
		{"memory that is not there", "GET", "/v1/agents/main/memory/MEMORY.md", "", 404, "not found"},
		{"memory in no UTF-8", "PUT", "/v1/agents/main/memory/MEMORY.md", "\xff", 400, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := get[fault](s, tc.status, tc.method, tc.path, tc.body)
			if !strings.Contains(f.Error.Message, tc.want) || f.Error.RequestID == "" {
				t.Errorf("%+v, want %q", f, tc.want)
			}
		})
	}
	s.text(404, "GET", key, "") // what is wrong in itself makes no session
	for _, bad := range []string{`{"txet":"a"}`, `{"window":1}`} {
		s.do("PATCH", key, bad)
	}
	s.text(404, "GET", key, "")
}

// TestOddText holds docs/http.md to what becomes of characters that are none.
func TestOddText(t *testing.T) {
	s := serve(t, nil)
	for _, tc := range []struct{ name, body, want string }{
		{"NUL", `{"text":"a \u0000 b"}`, `"content":"a \u0000 b"`},
		{"lone surrogate in text", `{"text":"a \ud800 b"}`, `"content":"a ` + "\ufffd" + ` b"`},
		{"lone surrogate in content", `{"content":"a \ud800 b"}`, `"content":"a \ud800 b"`},
		{"lone surrogate in a block", `{"content":[{"type":"text","text":"a \ud800 b"}]}`, `"text":"a \ud800 b"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			key := "/v1/sessions/" + strings.ReplaceAll(tc.name, " ", "-")
			s.text(200, "POST", key+"/messages", tc.body)
			if first, _, _ := strings.Cut(s.text(200, "GET", key+"/log?format=jsonl", ""), "\n"); !strings.Contains(first, tc.want) {
				t.Errorf("stored %s, want %s", first, tc.want)
			}
		})
	}
}

// TestLargeMessage: 1 MB of text goes through, and comes out whole.
func TestLargeMessage(t *testing.T) {
	s := serve(t, nil)
	text := strings.Repeat("wörter und mehr ", 1<<20/17)
	s.say("large", text)
	log := s.text(200, "GET", "/v1/sessions/large/log?format=jsonl", "")
	var line tidemark.Message
	first, _, _ := strings.Cut(log, "\n")
	if err := json.Unmarshal([]byte(first), &line); err != nil || line.PlainText() != text {
		t.Errorf("%d bytes came out, %v", len(line.PlainText()), err)
	}
	f := get[fault](s, 413, "POST", "/v1/sessions/larger/messages", `{"text":"`+strings.Repeat("a", session.MaxMessage)+`"}`)
	if !strings.Contains(f.Error.Message, "at most 25165824") {
		t.Errorf("%+v", f)
	}
	s.text(404, "GET", "/v1/sessions/larger", "")
}

// TestPanic: a handler that panics answers 500 without its words, and the log has them.
func TestPanic(t *testing.T) {
	s := serve(t, func(c *worker.Config, _ *actors) { c.Actors = panics{} })
	f := get[fault](s, 500, "GET", "/v1/sessions/main", "")
	if f.Error.Type != "internal" || strings.Contains(f.Error.Message, "on purpose") || !strings.Contains(s.log.String(), "on purpose") {
		t.Errorf("%+v", f)
	}
}

type panics struct{ worker.Actors }

func (panics) Session(context.Context, tidemark.Key, bool) (*session.Session, error) {
	panic("on purpose")
}

// TestNoContentInLog: what people and models say is in no log line.
func TestNoContentInLog(t *testing.T) {
	s := serve(t, nil)
	s.say("main", "xylophone")
	s.text(200, "GET", "/v1/sessions/main/search?q=xylophone", "")
	s.text(400, "POST", "/v1/sessions/main/messages", `{"text":"xylophone","tetx":"xylophone"}`)
	if strings.Contains(s.log.String(), "xylophone") || !strings.Contains(s.log.String(), "route=") {
		t.Error(s.log.String())
	}
}

// flood says more pieces than a session keeps for a reader, once it is let on.
type flood struct{ on, said chan struct{} }

const pieces, pieceBytes = 9000, 4000 // far more than sockets and the session hold

func (f flood) Stream(context.Context, tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	return func(yield func(tidemark.Delta, error) bool) {
		piece := strings.Repeat("x", pieceBytes)
		for range pieces {
			if !yield(tidemark.Delta{Thinking: piece}, nil) {
				return
			}
		}
		close(f.said)
		<-f.on
		yield(tidemark.Delta{Reply: &tidemark.Reply{Message: tidemark.NewText(tidemark.Assistant, "short"), Call: tidemark.Call{Stop: "end_turn"}}}, nil)
	}
}

// TestBehind: a client that reads too slowly for the session is told to begin again, and gets the
// whole answer.
func TestBehind(t *testing.T) {
	f := flood{on: make(chan struct{}), said: make(chan struct{})}
	s := serve(t, func(_ *worker.Config, a *actors) { a.provider = f })
	l := s.listen("POST", "/v1/sessions/main/messages", `{"text":"hello"}`)
	<-f.said // nothing of it was read
	live := 0
	for restarted := false; ; {
		name, data := l.next()
		switch name {
		case "thinking":
			live++
		case "restart":
			if restarted = true; live >= pieces {
				t.Errorf("behind after all %d pieces", live)
			}
			close(f.on)
		case "done":
			if !restarted || !strings.Contains(data, `"text":"short"`) {
				t.Errorf("restarted %v: %s", restarted, data)
			}
			return
		case "EOF":
			t.Fatalf("the stream ended behind %d pieces: %s", live, data)
		}
	}
}
