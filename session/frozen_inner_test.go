package session

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/memory"
)

// prompting is an agent with something for the prompt.
type prompting struct {
	silent
	text  string
	fails error
	asked int
}

func (p *prompting) Prompt(context.Context, tidemark.Scope, time.Time) (string, error) {
	p.asked++
	return p.text, p.fails
}

// budgeted is one that keeps it within a budget, and says what memory it was made from.
type budgeted struct {
	prompting
	made memory.Mark
	most tidemark.Tokens
}

func (b *budgeted) PromptWithin(_ context.Context, _ tidemark.Scope, _ time.Time, most tidemark.Tokens) (string, memory.Mark, error) {
	b.asked++
	b.most = most
	return b.text, b.made, b.fails
}

func (*budgeted) News(context.Context, tidemark.Scope, memory.Since) (memory.News, error) {
	return memory.News{}, nil
}

// offers is a room with tools of others.
type offers struct {
	tools   []tidemark.Tool
	fails   error
	changed string
	thaws   int
}

func (o *offers) Offer(context.Context) ([]tidemark.Tool, error) { return o.tools, o.fails }
func (o *offers) Thaw()                                          { o.thaws++ }
func (o *offers) Offered(string) (t tidemark.Tool, ok bool)      { return t, false }
func (o *offers) Changed(_ context.Context, name string) bool    { return name == o.changed }

// TestPromptIsFrozen: the system prompt is made anew on another day of the agent's zone and when the prefix broke; when the
// agent cannot give its part the last one stays, or the base alone.
func TestPromptIsFrozen(t *testing.T) {
	r, a, o := newRig(t, Settings{System: "Base.", Zone: time.FixedZone("", 3*3600)}), &prompting{text: "One."}, &offers{}
	r.opened("agent:main:aunt", Settings{})
	r.Session.Agent, r.Session.rooms = a, append(r.Session.rooms, o)
	for i, row := range []struct {
		passes time.Duration
		broken bool // the prefix
		text   string
		fails  error
		want   string
		asked  int
		thaws  int
	}{
		{0, false, "One.", nil, "Base.\n\n---\n\nOne.", 1, 1},
		{9*time.Hour - time.Millisecond, false, "Two.", nil, "Base.\n\n---\n\nOne.", 1, 1},
		{time.Millisecond, false, "Two.", nil, "Base.\n\n---\n\nTwo.", 2, 2},
		{0, true, "Three.", nil, "Base.\n\n---\n\nThree.", 3, 3},
		{24 * time.Hour, false, "Four.", errFaulty, "Base.\n\n---\n\nThree.", 4, 3},
		{0, true, "Four.", errFaulty, "Base.", 5, 3},
		{0, false, "", nil, "Base.", 6, 4},
		{0, false, "Five.", nil, "Base.", 6, 4},
	} {
		r.clock.passes(row.passes)
		if row.broken {
			r.exec(`UPDATE heads SET prompt = '' WHERE key = ?`, string(r.Key))
		}
		a.text, a.fails = row.text, row.fails
		got, mark, err := r.system(t.Context())
		if err != nil || got != row.want || mark != "" || a.asked != row.asked || o.thaws != row.thaws {
			t.Errorf("step %d: %q, mark %q, %v; asked %d times, tools thawed %d times", i, got, mark, err, a.asked, o.thaws)
		}
		if warned := strings.Contains(r.warned.taken(), `msg="read memory for the prompt"`); warned != (row.fails != nil) {
			t.Errorf("step %d: warned %v", i, warned)
		}
	}
	r.reads("agent:main:aunt ; agent:main:main 2026-03-12", `SELECT key, prompt_day FROM heads ORDER BY key LIMIT 9`)
	for _, text := range []string{"Base.\n\n---\n\nOne.", "Base.\n\n---\n\nTwo.", "Base."} { // all are kept
		if got, err := r.prompt(t.Context(), string(tidemark.HashOf([]byte(text)))); got != text || err != nil {
			t.Errorf("%q reads %q, %v", text, got, err)
		}
	}
	if got, err := r.prompt(t.Context(), "none"); got != "" || !errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("what is not kept reads %q, %v", got, err)
	}
	r.exec(`UPDATE heads SET prompt = 'none' WHERE key = ?`, string(r.Key))
	if got, _, err := r.system(t.Context()); got != "Base." || err != nil { // it is gone, and the base stays
		t.Errorf("in the place of one that is gone stands %q, %v", got, err)
	}
	r.faulty.refuses("SELECT text FROM prompts")
	if _, _, err := r.system(t.Context()); !errors.Is(err, errFaulty) || !strings.Contains(err.Error(), "read prompt") {
		t.Errorf("%v", err)
	}
	r.exec(`UPDATE heads SET prompt = ''`)
	r.faulty.refuses("UPDATE heads SET prompt")
	if text, mark, err := r.system(t.Context()); !errors.Is(err, errFaulty) || text != "" || mark != "" || !strings.Contains(err.Error(), "store prompt") {
		t.Errorf("%q, %q, %v", text, mark, err)
	}
}

// TestPromptsMark: an agent that says what memory its part is made from is given a quarter of what may be sent, and the mark
// stands by its hash, as long as the prompt does.
func TestPromptsMark(t *testing.T) {
	r, a := newRig(t, Settings{System: "Base.", Window: 8000, Reserve: 4000, Keep: 1000}), &budgeted{prompting: prompting{text: "One."}, made: memory.Mark{At: 7}}
	r.Session.Agent = a
	want := string(tidemark.HashOf([]byte(mustJSON(a.made))))
	for step := range 3 {
		text, mark, err := r.system(t.Context())
		if err != nil || text != "Base.\n\n---\n\nOne." || mark != want || a.most != 1000 || a.asked != 1+step/2 {
			t.Errorf("step %d: %q, %q, %v; asked %d times for %d", step, text, mark, err, a.asked, a.most)
		}
		if step == 1 { // another day, on which it cannot tell
			a.fails = errFaulty
			r.clock.passes(24 * time.Hour)
		}
	}
	r.reads(mustJSON(a.made), `SELECT text FROM prompts WHERE hash = ? LIMIT 1`, want)
	a.fails, a.made = nil, memory.Mark{}
	if _, mark, err := r.system(t.Context()); err != nil || mark != "" {
		t.Errorf("of no memory: %q, %v", mark, err)
	}
	r.reads("2026-03-11 ", `SELECT prompt_day, mark FROM heads WHERE key = ? LIMIT 1`, string(r.Key))
}
