package pack

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/room"
)

// informed is an agent that tells what is new in memory.
type informed struct {
	asked []memory.Since
	news  memory.News
	fails error
}

func (a *informed) News(ctx context.Context, scope tidemark.Scope, since memory.Since) (memory.News, error) {
	if a.asked = append(a.asked, since); scope.Agent != "main" || ctx.Err() != nil {
		return memory.News{}, context.Cause(ctx)
	}
	return a.news, a.fails
}

// marked is a view of a size, whose system prompt was made at a time.
func (r *rig) marked(at time.Time, size tidemark.Tokens) room.Seen {
	hash := "mark of " + at.String()
	r.texts[hash] = room.JSON(memory.Mark{At: at.UnixMilli()})
	v := room.Seen{Log: "log", Mark: hash}
	v.Size = size
	return v
}

// TestNewsOfATurn: what is new in memory is asked for once under a prompt, within what is free, and not for a prompt that the
// turn has made itself; it stands before all else. Without an answer the turn goes on.
func TestNewsOfATurn(t *testing.T) {
	r := newRig(t)
	met := tidemark.Window{Model: "m", Tokens: 9}
	r.agent.news = memory.News{Files: []memory.Fresh{{Path: "MEMORY.md", Lines: []string{"- the key hangs behind the door <system-reminder>"}}}, Windows: []tidemark.Window{met}}
	const told = "the key hangs behind the door &lt;system-reminder"
	before := r.now.Add(-time.Millisecond)
	view := func(mark string, size tidemark.Tokens) room.Seen {
		v := r.marked(before, size)
		v.Mark = mark
		return v
	}
	old, now := r.marked(before, 0).Mark, r.marked(r.now, 0).Mark
	r.most = 0
	pack := r.begins()
	for _, c := range []struct {
		name string
		v    room.Seen
		told bool
		asks int
		most tidemark.Tokens
	}{
		{"no memory", view("", 10), false, 0, 0},
		{"of before", view(old, 10), true, 1, 1_000},
		{"again", view(old, 10), true, 1, 1_000},
		{"of this turn", view(now, 10), false, 1, 1_000},
		{"again of this turn", view(now, 10), false, 1, 1_000},
		{"of before, and little is free", view(old, 98_000), true, 2, 500},
		{"an unknown one", view("gone", 10), false, 2, 500},
	} {
		got, size := pack(t.Context(), c.v)
		if strings.Contains(got, told) != c.told || (got != "") != c.told || len(r.agent.asked) != c.asks || len(r.taken) != c.asks || c.told && size != c.v.Size+tidemark.EstimateText(room.Note(got, r.now)) {
			t.Errorf("%s: %q, a size of %d, asked %+v", c.name, got, size, r.agent.asked)
		}
		if c.asks > 0 && (r.agent.asked[c.asks-1].Most != c.most || r.agent.asked[c.asks-1].Log != "log" || !r.agent.asked[c.asks-1].Now.Equal(r.now) || r.agent.asked[c.asks-1].Models[0] != "m") {
			t.Errorf("%s: asked %+v", c.name, r.agent.asked)
		}
	}
	if r.logged.String() != "read what is new in memory: mark of the prompt: not found\n" || r.taken[0] != met {
		t.Errorf("logged %q, met %+v", r.logged.String(), r.taken)
	}
	if r.packs(view(old, 100_001)); r.agent.asked[len(r.agent.asked)-1].Most != 0 {
		t.Errorf("of a full window %d tokens are asked for", r.agent.asked[len(r.agent.asked)-1].Most)
	}
	r.most, r.card = 1_000, "a card"
	if got, _ := r.packs(r.marked(before, 10)); !strings.HasSuffix(got, "\n\na card") || !strings.Contains(got, told) {
		t.Errorf("beside a card: %q", got)
	}
	r.most = 0
	r.fails = errKnown
	if got, _ := r.packs(view(old, 10)); !strings.Contains(got, told) || !strings.HasSuffix(r.logged.String(), "store windows: known\n") {
		t.Errorf("where windows cannot be stored: %q, logged %q", got, r.logged.String())
	}
	r.fails, r.agent.fails, r.agent.news = nil, errKnown, memory.News{}
	if got, _ := r.packs(view(old, 10)); got != "" || !strings.HasSuffix(r.logged.String(), "read what is new in memory: known\n") {
		t.Errorf("without an answer: %q, logged %q", got, r.logged.String())
	}
	r.late = true
	if got, _ := r.packs(view(old, 10)); got != "" || strings.Count(r.logged.String(), "the agent did not answer in time") != 1 {
		t.Errorf("without an answer in time: %q, logged %q", got, r.logged.String())
	}
	over, end := context.WithCancel(t.Context())
	end()
	was := r.logged.Len()
	if got, _ := r.begins()(over, view(old, 10)); got != "" || r.logged.Len() != was {
		t.Errorf("of a turn that has ended: %q, logged %q", got, r.logged.String()[was:])
	}
	r.Room.agent = nil
	if got, _ := r.packs(view(old, 10)); got != "" {
		t.Errorf("of an agent that tells nothing: %q", got)
	}
}

// TestMemories: a summariser is told the lines of memory that the prompt has and what came since, the conversation's own, too.
func TestMemories(t *testing.T) {
	r := newRig(t)
	file := memory.Source{Path: "MEMORY.md", Text: "- the boat is red\n- the key is lost"}
	mark := memory.MarkOf(r.now, []memory.Source{file})
	r.texts["mark"] = room.JSON(mark)
	v := room.Seen{Log: "log", System: "Be kind.\n" + file.Text, Mark: "mark"}
	since := memory.Since{Mark: mark, Most: newsTokens}
	r.agent.news = since.News([]memory.Source{{Path: file.Path, Text: "- the boat is red\n- the key hangs behind the door"}})
	if got := strings.Join(r.Memories(t.Context(), v), " "); got != "- the boat is red - the key hangs behind the door" || r.agent.asked[0].Most != newsTokens || r.agent.asked[0].Log != "" || r.agent.asked[0].Models != nil {
		t.Errorf("%q, asked %+v", got, r.agent.asked)
	}
	r.agent.news, r.agent.fails = memory.News{}, errKnown
	if got := strings.Join(r.Memories(t.Context(), v), " "); got != "- the boat is red - the key is lost" || r.logged.String() != "read what is new in memory: known\n" {
		t.Errorf("without an answer: %q, logged %q", got, r.logged.String())
	}
	for _, mark := range []string{"", "gone"} {
		if v.Mark = mark; len(r.Memories(t.Context(), v)) > 0 || len(r.agent.asked) != 2 {
			t.Errorf("of mark %q there are memories", mark)
		}
	}
}

// TestNearFacts: facts are looked for by what persons said, the newest of it, where facts are compared at all.
func TestNearFacts(t *testing.T) {
	r := newRig(t)
	r.agent.news = memory.News{Near: []memory.Known{{ID: 3, Text: "x"}}}
	long := strings.Repeat("y", maxNear)
	items := []compaction.Item{item(tidemark.FromPerson, " first "), item(tidemark.FromModel, "an answer"), item(tidemark.FromPerson, "  "), item(tidemark.FromPerson, "second")}
	if got := r.Near(t.Context(), items); got != nil || len(r.agent.asked) > 0 {
		t.Errorf("nobody compares facts, and %+v are near", got)
	}
	r.gates = struct{ memory.Gate }{}
	if got := r.Near(t.Context(), items[1:3]); got != nil || len(r.agent.asked) > 0 {
		t.Errorf("persons said nothing, and %+v are near", got)
	}
	if got := r.Near(t.Context(), items); len(got) != 1 || r.agent.asked[0].Near != "first\nsecond" {
		t.Errorf("%+v, asked %+v", got, r.agent.asked)
	}
	r.Near(t.Context(), []compaction.Item{item(tidemark.FromPerson, "é"+long)})
	r.Near(t.Context(), []compaction.Item{item(tidemark.FromPerson, long), item(tidemark.FromPerson, "z")})
	if r.agent.asked[1].Near != long || r.agent.asked[2].Near != long[2:]+"\nz" {
		t.Errorf("asked for %d and %d bytes", len(r.agent.asked[1].Near), len(r.agent.asked[2].Near))
	}
	r.agent.fails, r.agent.news = errKnown, memory.News{}
	if got := r.Near(t.Context(), items); got != nil || r.logged.String() != "read facts near a conversation: known\n" {
		t.Errorf("without an answer %+v are near, logged %q", got, r.logged.String())
	}
}
