package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/approval"
	"github.com/tidemark-ai/tidemark/room/approvals"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// box is a toolbox that notes what it runs.
type box struct {
	mu      sync.Mutex
	tools   []tidemark.Tool
	missing []string
	mark    string
	lists   int
	ran     []string // names and inputs
	call    func(ctx context.Context, b tidemark.Block) tidemark.Block
	scopes  []tidemark.Scope
	drifted string // a tool that its server has changed since it was listed
}

func (b *box) Tools(context.Context, tidemark.Scope) ([]tidemark.Tool, []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lists++
	return slices.Clone(b.tools), b.missing
}

func (b *box) Changed(_ context.Context, _ tidemark.Scope, name, _ string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return name == b.drifted
}

func (b *box) Mark() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mark
}

func (b *box) Call(ctx context.Context, scope tidemark.Scope, c tidemark.Block) tidemark.Block {
	b.mu.Lock()
	b.ran, b.scopes = append(b.ran, c.Name+" "+string(c.Input)), append(b.scopes, scope)
	call := b.call
	b.mu.Unlock()
	if call != nil {
		return call(ctx, c)
	}
	return tidemark.ToolResult(c.ID, "done: "+c.Name, false)
}

func (b *box) has() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.ran)
}

func tool(name string, idempotent bool) tidemark.Tool {
	return tidemark.Tool{Name: name, Description: name, InputSchema: []byte(`{"type":"object"}`), Idempotent: idempotent}
}

// calls has the model call tools in its first answer and then tell what they gave.
func calls(of ...tidemark.Block) func(int, tidemark.Request) (tidemark.Message, error) {
	return func(_ int, req tidemark.Request) (tidemark.Message, error) {
		last := req.Messages[len(req.Messages)-1]
		if asksSummary(req) {
			return tidemark.Message{}, nil
		}
		if len(last.Results()) == 0 && len(req.Messages) < 3 {
			return tidemark.Message{Role: tidemark.Assistant, Content: append([]tidemark.Block{tidemark.Text("let me")}, of...)}, nil
		}
		var out []string
		for _, m := range req.Messages {
			for _, b := range m.Content {
				if b.Type == tidemark.TypeToolResult {
					out = append(out, fmt.Sprint(b.ToolUseID, b.IsError, " ", b.Content[0].Text))
				}
			}
		}
		return tidemark.NewText(tidemark.Assistant, strings.Join(out, "; ")), nil
	}
}

var askAll = approvals.Config{Policy: approval.Policy{Default: approval.Ask, Rules: []approval.Rule{
	{Tool: "files__read", Action: approval.Allow}, {Tool: "files__rm", Action: approval.Deny}}}}

// newAsking is a session on a clock with tools of others, three of which the model is to call.
func newAsking(t *testing.T, key tidemark.Key, courier tidemark.Courier) (*harness, *clock, *box) {
	t.Helper()
	h, c := newTimed(t, session.Settings{}, noon)
	h.idle()
	h.stop()
	b := &box{tools: []tidemark.Tool{tool("files__read", true), tool("files__write", false), tool("files__rm", true)}}
	h.tools, h.key, h.courier, h.approvals = b, key, courier, askAll
	h.model.set(calls(tidemark.ToolUse("c1", "files__read", []byte(`{"path":"a"}`)), tidemark.ToolUse("c2", "files__write", []byte(`{"path":"b"}`)), tidemark.ToolUse("c3", "files__rm", []byte(`{}`))))
	h.open()
	return h, c, b
}

func byOwner(text string) session.Input {
	return session.Input{Message: tidemark.NewText(tidemark.User, text), Origin: tidemark.Origin{From: tidemark.FromPerson, Channel: "web", Owner: true}}
}

// parked posts a message and waits until its turn rests, and returns the code of the one call that waits.
func (h *harness) parked(in session.Input) (string, session.Receipt) {
	h.t.Helper()
	r, err := h.Post(h.t.Context(), in)
	if err != nil {
		h.t.Fatal(err)
	}
	h.idle()
	list, err := h.Approvals(h.t.Context())
	if err != nil || len(list) != 1 {
		h.t.Fatalf("%+v waits, %v; want one call", list, err)
	}
	if h.Working() {
		h.t.Error("a turn that waits for the owner keeps the session in memory")
	}
	return list[0].Code, r
}

func (h *harness) gave(id, want string) {
	h.t.Helper()
	h.idle()
	e, failure, ok, err := h.Reply(h.t.Context(), id)
	if err != nil || !ok || failure != "" {
		h.t.Fatalf("input %s: ended %v, failure %q, %v", id, ok, failure, err)
	}
	m, err := e.Message()
	if err != nil || m.PlainText() != want {
		h.t.Errorf("the answer is %q, %v; want %q", m.PlainText(), err, want)
	}
	h.sent() // its shape is right
}

const (
	denied  = "c3true not run: rule 2 of toolApproval.rules denies this call"
	allowed = "c1false done: files__read; c2false done: files__write; " + denied
)

// TestApproval: what needs nobody runs at once, what is denied does not, what is asked about waits for the owner over a
// restart, runs once when it is allowed, and never when it is not.
func TestApproval(t *testing.T) {
	for _, row := range []struct {
		name  string
		allow bool
		die   bool // in between
		want  string
		ran   int
	}{
		{"allowed", true, false, allowed, 2},
		{"denied", false, false, "c1false done: files__read; c2true not run: the owner was asked and said no. Do not try it again in another way; ask what they want instead.; " + denied, 1},
		{"allowed in another life", true, true, allowed, 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			h, _, b := newAsking(t, "agent:main:main", nil)
			code, r := h.parked(byOwner("go"))
			if got := b.has(); !slices.Equal(got, []string{`files__read {"path":"a"}`}) {
				t.Errorf("before the decision ran %q", got)
			}
			if row.die {
				h.stop()
				h.idle()
				h.open()
				h.idle()
				if list, err := h.Approvals(t.Context()); err != nil || len(list) != 1 || list[0].Code != code {
					t.Fatalf("in the next life %+v waits, %v", list, err)
				}
			}
			d := tidemark.Decision{Code: strings.ToLower(code), Allow: row.allow, By: tidemark.Origin{Owner: true}}
			if err := h.Decide(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			h.gave(r.ID, row.want)
			if got := b.has(); len(got) != row.ran {
				t.Errorf("ran %q", got)
			}
			d.Allow = !d.Allow
			if err := h.Decide(t.Context(), d); !errors.Is(err, tidemark.ErrConflict) {
				t.Errorf("decided twice: %v", err)
			}
			if n := len(h.events("approval")); n != 2 {
				t.Errorf("%d events of the question and its answer", n)
			}
		})
	}
}

// TestApprovalRefused: nobody but the owner decides, no code but the right one, and not too late.
func TestApprovalRefused(t *testing.T) {
	h, c, b := newAsking(t, "agent:main:main", nil)
	code, r := h.parked(byOwner("go"))
	for _, row := range []struct {
		code string
		by   tidemark.Origin
		want error
	}{
		{code, tidemark.Origin{From: tidemark.FromPerson, Peer: "eve"}, tidemark.ErrForbidden},
		{"ZZZZZ", tidemark.Origin{Owner: true}, tidemark.ErrNotFound},
		{"", tidemark.Origin{Owner: true}, tidemark.ErrNotFound},
	} {
		if err := h.Decide(t.Context(), tidemark.Decision{Code: row.code, Allow: true, By: row.by}); !errors.Is(err, row.want) {
			t.Errorf("code %q by %+v: %v, want %v", row.code, row.by, err, row.want)
		}
	}
	c.jump(-time.Hour) // a clock that is set back lets nothing through
	h.wake()
	h.idle()
	if n := len(b.has()); n != 1 {
		t.Errorf("%d calls ran", n)
	}
	c.jump(2*time.Hour + time.Minute)
	if err := h.Decide(t.Context(), tidemark.Decision{Code: code, Allow: true, By: tidemark.Origin{Owner: true}}); !errors.Is(err, tidemark.ErrConflict) || !strings.Contains(err.Error(), "was over at 13:00") {
		t.Errorf("too late: %v", err)
	}
	h.wake()
	h.gave(r.ID, "c1false done: files__read; c2true not run: the owner was asked and did not answer until 13:00 UTC.; "+denied)
	if list, err := h.Approvals(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%+v waits, %v", list, err)
	}
}

// TestApprovalByChannel: the question goes to where the owner writes from, and their answer there is a decision; that of
// somebody else, or one that says more, is a message. What they write meanwhile is kept, and they are told so.
func TestApprovalByChannel(t *testing.T) {
	phone := &tidemarktest.Courier{}
	h, _, b := newAsking(t, "agent:main:main", phone)
	h.rt.(*clock).waits = 20 * time.Second
	owner := func(id, text string) session.Input {
		in := wrote(ann, id, text)
		in.Origin.Owner = true
		return in
	}
	code, _ := h.parked(owner("in1", "go"))
	texts := phone.Texts()
	if len(texts) != 2 || texts[0] != "let me" || !strings.HasPrefix(texts[1], `May the tool files__write run with {"path":"b"}?`) || !strings.Contains(texts[1], "Answer: yes "+code+", or no "+code) {
		t.Fatalf("the owner reads %q", texts)
	}
	for i, text := range []string{"yes", "yes please", "yes " + code + " now", "yes AAAAA"} {
		if _, err := h.Post(t.Context(), owner(fmt.Sprint("more", i), text)); err != nil {
			t.Fatal(err)
		}
	}
	in := wrote(tidemark.Address{Platform: "fake", Account: "us", Peer: "eve"}, "eve1", "yes "+code)
	if r, err := h.Post(t.Context(), in); err != nil || r.State != "done" {
		t.Errorf("the answer of somebody else: %+v, %v", r, err)
	}
	h.idle()
	if n := len(b.has()); n != 1 {
		t.Fatalf("%d calls ran", n)
	}
	if texts := phone.Texts(); len(texts) != 7 || !strings.HasPrefix(texts[2], "Your message is kept and comes next. First: May the tool") || texts[6] != "only the owner decides about tool calls" {
		t.Errorf("they read %q", texts)
	}
	if r, err := h.Post(t.Context(), owner("in2", "Yes "+strings.ToLower(code)+".")); err != nil || r.State != "taken" {
		t.Fatalf("the decision: %+v, %v", r, err)
	}
	h.gave("in1", allowed)
	if e, _, ok, err := h.Reply(t.Context(), "in2"); !ok || err != nil || e.ID == "" {
		t.Errorf("who decided reads %v, %v, %v", e.ID, ok, err)
	}
	if r, err := h.Post(t.Context(), owner("in2", "Yes "+strings.ToLower(code)+".")); err != nil || !r.Duplicate {
		t.Errorf("the same webhook again: %+v, %v", r, err)
	}
	if r, err := h.Post(t.Context(), owner("in3", "no "+code)); err != nil || r.State != "done" {
		t.Errorf("a second thought: %+v, %v", r, err)
	}
	h.idle()
	if texts := phone.Texts(); !strings.Contains(texts[len(texts)-1], "was allowed already") {
		t.Errorf("they read %q", texts[len(texts)-1])
	}
}

// TestApprovalStopped: a turn that waits is stopped as others are, and nothing of it runs later.
func TestApprovalStopped(t *testing.T) {
	for _, name := range []string{"abort", "command"} {
		t.Run(name, func(t *testing.T) {
			h, _, b := newAsking(t, "agent:main:main", nil)
			code, r := h.parked(byOwner("go"))
			if name == "abort" {
				if !h.Abort() {
					t.Error("there was nothing to stop")
				}
			} else {
				in, err := session.Command("/stop")
				if err != nil {
					t.Fatal(err)
				}
				if _, err := h.Post(t.Context(), in); err != nil {
					t.Fatal(err)
				}
			}
			if err := h.Decide(t.Context(), tidemark.Decision{Code: code, Allow: true, By: tidemark.Origin{Owner: true}}); !errors.Is(err, tidemark.ErrConflict) {
				t.Errorf("decided while it is stopped: %v", err)
			}
			h.idle()
			if _, failure, ok, err := h.Reply(t.Context(), r.ID); !ok || err != nil || failure == "" {
				t.Errorf("the turn: ended %v, %q, %v", ok, failure, err)
			}
			if err := h.Decide(t.Context(), tidemark.Decision{Code: code, Allow: true, By: tidemark.Origin{Owner: true}}); !errors.Is(err, tidemark.ErrConflict) {
				t.Errorf("decided behind its end: %v", err)
			}
			h.model.set(nil)
			h.say("on")
			if n := len(b.has()); n != 1 {
				t.Errorf("%d calls ran", n)
			}
			h.sent()
		})
	}
}

// TestApprovalRace: two who decide at once about the calls of one turn, some allowed and some not, neither lose a decision
// nor run anything twice.
func TestApprovalRace(t *testing.T) {
	const many = 12
	h, _, b := newAsking(t, "agent:main:main", nil)
	var of []tidemark.Block
	for i := range many {
		of = append(of, tidemark.ToolUse(fmt.Sprint("w", i), "files__write", []byte(fmt.Sprintf(`{"n":%d}`, i))))
	}
	h.model.set(calls(of...))
	r, err := h.Post(t.Context(), byOwner("go"))
	if err != nil {
		t.Fatal(err)
	}
	h.idle()
	list, err := h.Approvals(t.Context())
	if err != nil || len(list) != many {
		t.Fatalf("%d wait, %v", len(list), err)
	}
	var wg sync.WaitGroup
	for i, a := range list {
		for range 2 {
			wg.Go(func() {
				err := h.Decide(t.Context(), tidemark.Decision{Code: a.Code, Allow: i%3 != 0, By: tidemark.Origin{Owner: true}})
				if err != nil && !errors.Is(err, tidemark.ErrConflict) {
					t.Errorf("decide %s: %v", a.Code, err)
				}
			})
		}
	}
	wg.Wait()
	h.idle()
	if _, failure, ok, err := h.Reply(t.Context(), r.ID); !ok || failure != "" || err != nil {
		t.Fatalf("the turn ended: %v, %q, %v", ok, failure, err)
	}
	ran := b.has()
	slices.Sort(ran)
	if got := len(slices.Compact(slices.Clone(ran))); got != len(ran) || got != many-many/3 {
		t.Errorf("ran %q", ran)
	}
}
