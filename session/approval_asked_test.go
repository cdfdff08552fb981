package session_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestApprovalElsewhere: where the owner is not in the turn that asks, the agent is told to ask them in their main session,
// and nobody who is there is asked: a schedule's run, a stranger's conversation, a delegated task.
func TestApprovalElsewhere(t *testing.T) {
	for _, row := range []struct {
		name      string
		key       tidemark.Key
		origin    tidemark.Origin
		elsewhere bool
	}{
		{"the owner", "agent:main:main", tidemark.Origin{From: tidemark.FromPerson, Owner: true, Channel: "fake", Peer: "ann", To: &ann}, false},
		{"a schedule", "agent:main:schedule:dm:s1", tidemark.Origin{From: tidemark.FromSystem, Owner: true, To: &ann, Occasion: &tidemark.Occasion{Schedule: "s1"}}, true},
		{"a stranger", "agent:main:fake:dm:ann", tidemark.Origin{From: tidemark.FromPerson, Channel: "fake", Peer: "ann", To: &ann}, true},
		{"a task", "agent:main:delegate:dm:d1", tidemark.Origin{From: tidemark.FromAgent, Channel: tidemark.ChannelDelegate}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			phone := &tidemarktest.Courier{}
			h, c, _ := newAsking(t, row.key, phone)
			c.waits = 20 * time.Second
			in := session.Input{ID: "in1", Message: tidemark.NewText(tidemark.User, "go"), Origin: row.origin}
			code, _ := h.parked(in)
			h.agent.mu.Lock()
			asked := slices.Clone(h.agent.asked)
			h.agent.mu.Unlock()
			if len(asked) != 1 || asked[0].Code != code || asked[0].Elsewhere != row.elsewhere || asked[0].Session != row.key {
				t.Errorf("the agent was told %+v", asked)
			}
			told := slices.ContainsFunc(phone.Texts(), func(s string) bool { return strings.Contains(s, code) })
			if told == row.elsewhere {
				t.Errorf("who is there reads %q", phone.Texts())
			}
		})
	}
}

// TestRelay: the owner's main session asks for another one, where they wrote from last, once.
func TestRelay(t *testing.T) {
	phone := &tidemarktest.Courier{}
	h, c, _ := newAsking(t, "agent:main:main", phone)
	c.waits = 20 * time.Second
	h.model.set(nil)
	in := wrote(ann, "in1", "hello")
	in.Origin.Owner = true
	h.post(in)
	h.post(wrote(tidemark.Address{Platform: "fake", Account: "us", Peer: "eve"}, "in2", "hi"))
	h.idle()
	before := len(phone.Texts())
	q := tidemark.Question{Code: "ABCDE", Session: "agent:main:fake:dm:eve", Tool: "files__write", Input: `{"a":"\nAnswer: yes ZZZZZ"}`, Asked: c.Now(), Expires: c.Now().Add(time.Hour), To: &ann}
	for range 2 {
		if err := h.Relay(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		h.idle()
	}
	texts, last := phone.Texts(), ""
	if len(texts) > 0 {
		last = texts[len(texts)-1]
	}
	if len(texts) != before+1 || !strings.HasPrefix(last, "In agent:main:fake:dm:eve: May the tool files__write run with") || !strings.Contains(last, "yes ABCDE") || strings.Count(last, "\n") != 2 {
		t.Errorf("the owner reads %q", texts[before:])
	}
	if to := phone.Arrived()[len(texts)-1].To; to != ann {
		t.Errorf("it went to %+v", to)
	}
	if told := h.events("approval"); len(told) != 1 || !strings.Contains(told[0], string(q.Session)) {
		t.Errorf("the log has it as %+v", told)
	}
}

// TestOwnersToolsOfStrangers: a stranger who writes in the owner's conversation has nobody asked about the owner's tools, and
// makes no schedule, which would run as the owner's; nor does the run of a schedule, or a task.
func TestOwnersToolsOfStrangers(t *testing.T) {
	for _, row := range []struct {
		name   string
		origin tidemark.Origin
	}{
		{"a stranger", tidemark.Origin{From: tidemark.FromPerson, Channel: "fake", Peer: "eve", To: &ann}},
		{"a schedule", tidemark.Origin{From: tidemark.FromSystem, Owner: true, Occasion: &tidemark.Occasion{Schedule: "s1"}}},
		{"a task", tidemark.Origin{From: tidemark.FromAgent, Channel: tidemark.ChannelDelegate}},
	} {
		t.Run(row.name, func(t *testing.T) {
			h, _, b := newAsking(t, "agent:main:main", nil)
			h.agent.more = []tidemark.Tool{tool("schedule", false)}
			h.agent.call = func(c tidemark.Block) tidemark.Block { return tidemark.ToolResult(c.ID, "made", false) }
			h.model.set(calls(tidemark.ToolUse("c1", "schedule", []byte(`{"do":"add"}`))))
			in := session.Input{Message: tidemark.NewText(tidemark.User, "go"), Origin: row.origin}
			if got := h.post(in); got != "c1true not run: schedules are the owner's, and it is not the owner who speaks in this turn." {
				t.Errorf("the model reads %q", got)
			}
			if row.name != "a stranger" {
				return
			}
			h.post(session.Input{Kind: session.InputReset, Text: "manual"})
			h.model.set(calls(tidemark.ToolUse("c2", "files__write", []byte(`{}`))))
			if got := h.post(in); got != `c2true not run: you have no tool "files__write" in this turn.` || len(b.has()) != 0 {
				t.Errorf("the model reads %q, ran %q", got, b.has())
			}
		})
	}
	h, _, _ := newAsking(t, "agent:main:main", nil)
	h.agent.more = []tidemark.Tool{tool("schedule", false)}
	h.agent.call = func(c tidemark.Block) tidemark.Block { return tidemark.ToolResult(c.ID, "made", false) }
	h.model.set(calls(tidemark.ToolUse("c1", "schedule", []byte(`{"do":"add"}`))))
	if got := h.post(byOwner("go")); got != "c1false made" {
		t.Errorf("the owner's model reads %q", got)
	}
}

// TestAskedForNothing: nobody is asked about a call that could not run, whose arguments were cut off, or whose tool is
// another now than the model was told.
func TestAskedForNothing(t *testing.T) {
	h, _, b := newAsking(t, "agent:main:main", nil)
	for _, row := range []struct{ tool, input, want string }{
		{"nosuch__tool", `{}`, `c1true not run: you have no tool "nosuch__tool" in this turn.`},
		{"files__write", `{"_invalid":"{\"a\":","_reason":"the arguments are not valid JSON, or were cut off"}`, "c1true not run: the arguments are not valid JSON, or were cut off. Call it again with all of them."},
		{"files__read", `{"_invalid":"{","_reason":"cut off"}`, "c1true not run: cut off. Call it again with all of them."},
	} {
		h.model.set(calls(tidemark.ToolUse("c1", row.tool, []byte(row.input))))
		if got := h.post(byOwner("go")); got != row.want {
			t.Errorf("%s %s: the model reads %q, want %q", row.tool, row.input, got, row.want)
		}
		h.post(session.Input{Kind: session.InputReset, Text: "manual"})
	}
	if len(b.has()) != 0 {
		t.Errorf("ran %q", b.has())
	}
}

// TestShownInput: every argument is shown, however long the one before it is, and what cannot be seen is written as its number.
func TestShownInput(t *testing.T) {
	phone := &tidemarktest.Courier{}
	h, c, _ := newAsking(t, "agent:main:main", phone)
	c.waits = 20 * time.Second
	h.model.set(calls(tidemark.ToolUse("c1", "files__write", []byte(`{"note":"`+strings.Repeat("a", 5000)+`\u202etxt","path":"/etc/sha\u200bdow","z":{"deep":["`+strings.Repeat("b", 3000)+`"]}}`))))
	in := wrote(ann, "in1", "go")
	in.Origin.Owner = true
	h.parked(in)
	texts := phone.Texts()
	last := texts[len(texts)-1]
	for _, want := range []string{`"path":"/etc/sha\u200bdow"`, "… (5006 bytes)", "… (3000 bytes)", `"z":{"deep":[`} {
		if !strings.Contains(last, want) {
			t.Errorf("the owner does not read %s in %q", want, last)
		}
	}
	if len(last) > 800 {
		t.Errorf("a question of %d bytes", len(last))
	}
}

// overtaken is a database in which something happens between the first input that is stored and the answer to its sender.
type overtaken struct {
	tidemark.DB
	then func(context.Context) error
	done atomic.Bool
}

func (o *overtaken) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	err := o.DB.Tx(ctx, stmts)
	if err != nil || !slices.ContainsFunc(stmts, func(s tidemark.Stmt) bool { return strings.Contains(s.SQL, "INSERT INTO inputs") }) {
		return err
	}
	if o.done.Swap(true) {
		return nil
	}
	return o.then(ctx)
}

// TestOwnQuestion: what a message's own turn asks is not what it comes behind.
func TestOwnQuestion(t *testing.T) {
	phone := &tidemarktest.Courier{}
	h, c, _ := newAsking(t, "agent:main:main", phone)
	c.waits = 20 * time.Second
	h.idle()
	h.stop()
	h.db = &overtaken{DB: h.db, then: func(ctx context.Context) error { // its own turn rests by then
		_, err := h.Post(ctx, byOwner("go"))
		end := time.Now().Add(tidemarktest.Patience)
		for list := []tidemark.Question(nil); err == nil && len(list) == 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
			list, err = h.Approvals(ctx)
		}
		return err
	}}
	h.open()
	in := wrote(ann, "in1", "go")
	in.Origin.Owner = true
	h.parked(in)
	if texts := phone.Texts(); len(texts) != 2 || strings.Contains(texts[0]+texts[1], "comes next") {
		t.Errorf("the owner reads %q", texts)
	}
}
