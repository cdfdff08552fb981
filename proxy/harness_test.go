package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/provider/offline"
	"github.com/tidemark-ai/tidemark/proxy"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/room/anatomy"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/setup"
)

const key tidemark.Key = "agent:main:proxy:dm:0123456789abcdef0123456789abcdef"

// rig is a conversation over a database, which may be opened again and again.
type rig struct {
	t        testing.TB
	db       tidemark.DB
	blobs    tidemark.Blobs
	rt       tidemark.Runtime
	settings proxy.Settings
	c        *proxy.Conversation
	s        *session.Session
	records  []proxy.Record
	called   []string  // with each record: the branch, the title and how many messages were stored
	news     []string  // what those who follow the conversation were told
	out      io.Writer // of what is worth a line, nil for none
	damaged  bool      // what is stored was damaged by the test
}

// home is a place that notes what it is told of calls.
type home struct {
	proxy.Home
	r *rig
}

func (h home) Called(name, log, title string, messages int, rec proxy.Record) []tidemark.Stmt {
	h.r.records, h.r.called = append(h.r.records, rec), append(h.r.called, fmt.Sprintf("%s %q +%d", name, title, messages))
	return h.Home.Called(name, log, title, messages, rec)
}

// Told implements [proxy.Teller].
func (h home) Told(e tidemark.Event) { h.r.news = append(h.r.news, e.Type+": "+e.Text) }

func newRig(t testing.TB, settings proxy.Settings) *rig {
	r := &rig{t: t, db: hosttest.DB(t), blobs: hosttest.Blobs(t), rt: hosttest.Runtime(t), settings: settings}
	r.restart()
	r.beside()
	return r
}

// restart forgets all that is not stored.
func (r *rig) restart() {
	r.t.Helper()
	ag, err := agent.New(agent.Config{Name: "main", DB: r.db, Blobs: r.blobs, Runtime: r.rt})
	if err != nil {
		r.t.Fatal(err)
	}
	r.s, err = session.Open(r.t.Context(), session.Config{Key: key, DB: r.db, Blobs: r.blobs, Runtime: r.rt, Agent: ag, Provider: offline.Model{}, Rooms: []room.Maker{anatomy.Make}})
	if err != nil {
		r.t.Fatal(err)
	}
	place, err := setup.Home(r.t.Context(), r.s)
	if err != nil {
		r.t.Fatal(err)
	}
	config := proxy.Config{Key: key, DB: r.db, Home: home{place, r}, Runtime: r.rt, Settings: r.settings}
	handler := slog.DiscardHandler
	if r.out != nil {
		handler = slog.NewTextHandler(r.out, nil)
	}
	config.Logger = slog.New(strict{handler, r})
	r.c, err = proxy.Open(r.t.Context(), config)
	if err != nil {
		r.t.Fatal(err)
	}
}

// request is a body of the Messages API.
func request(messages ...string) []byte {
	return []byte(`{"model":"m","max_tokens":100,"metadata":{"user_id":"u"},"system":[{"type":"text","text":"billing ` + fmt.Sprint(len(messages)) +
		`"}],"tools":[{"name":"Read","description":"Reads.","input_schema":{"type":"object","properties":{"file_path":{"type":"string"}}}}],"messages":[` + strings.Join(messages, ",") + `]}`)
}

// text is a message of one text.
func text(role, s string) string {
	return string(tidemark.NewText(tidemark.Role(role), s).AppendJSON(nil))
}

// reply is an answer of the API, whole.
func reply(stop string, blocks ...string) []byte {
	return fmt.Appendf(nil, `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[%s],"stop_reason":%q,"stop_sequence":null,"usage":{"input_tokens":100,"output_tokens":10}}`, strings.Join(blocks, ","), stop)
}

func textBlock(s string) string {
	return string(json.AppendString([]byte(`{"type":"text","text":`), s)) + "}"
}

func call(id, name, input string) string {
	return fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":%s}`, id, name, input)
}

func result(id, s string) string {
	return string(json.AppendString(fmt.Appendf(nil, `{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":`, id), s)) + "}]}"
}

// said is an assistant message.
func said(blocks ...string) string {
	return `{"role":"assistant","content":[` + strings.Join(blocks, ",") + `]}`
}

// exchanged is what the API was sent and the client got.
type exchanged struct {
	sent [][]byte
	got  []byte
}

// messages are those of the first call.
func (e exchanged) messages(t testing.TB, leg int) []tidemark.Message {
	t.Helper()
	var b struct {
		Messages []tidemark.Message `json:"messages"`
	}
	if err := json.Unmarshal(e.sent[leg], &b); err != nil {
		t.Fatalf("what was sent is no request: %v\n%s", err, e.sent[leg])
	}
	return b.Messages
}

// exchange sends a request; the API answers one call after another, and reports a token for four bytes.
func (r *rig) exchange(treatment string, body []byte, answers ...[]byte) exchanged {
	r.t.Helper()
	ctx := r.t.Context()
	x, err := r.c.Begin(ctx, proxy.Ask{Body: body, Treatment: treatment})
	if err != nil {
		r.t.Fatal(err)
	}
	if _, why := x.Untouched(); why != "" {
		r.t.Fatalf("untouched: %s", why)
	}
	var out exchanged
	for i, a := range answers {
		out.sent = append(out.sent, x.Body())
		if i == 0 && !x.Answer(ctx, 200, false) {
			r.t.Fatal("the answer is not taken")
		}
		a = bytes.Replace(a, []byte(`"input_tokens":100`), fmt.Appendf(nil, `"input_tokens":%d`, len(x.Body())/4), 1)
		if _, err := x.Feed(a); err != nil {
			r.t.Fatal(err)
		}
		if again := x.Next(ctx); again != (i < len(answers)-1) {
			r.t.Fatalf("call %d: another one is %t", i, again)
		}
	}
	if out.got, err = x.Finish(ctx); err != nil {
		r.t.Fatal(err)
	}
	return out
}

// stubs counts what is out of a request.
func (e exchanged) stubs(t testing.TB) (n int) {
	for _, m := range e.messages(t, 0) {
		for _, b := range m.Content {
			if b.Type == tidemark.TypeToolResult && strings.HasPrefix(b.Content[0].Text, "[Paged out:") {
				n++
			}
		}
	}
	return n
}

// lastRecord is the record of the newest call.
func (r *rig) lastRecord() anatomy.Record {
	r.t.Helper()
	records, _ := session.Room[*anatomy.Room](r.s)
	list, err := records.All(r.t.Context(), 0, 1)
	if err != nil || len(list) != 1 {
		r.t.Fatalf("%d records, %v", len(list), err)
	}
	return list[0]
}
