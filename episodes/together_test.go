package episodes_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
)

// lookedAt is a short history: an exploration with a search and a read in one message, then unmarked work.
func lookedAt() (g *episodes.Graph, items []episodes.Item) {
	g = episodes.New(episodes.Tools{})
	use := func(id, name, input string) tidemark.Block { return tidemark.ToolUse(id, name, []byte(input)) }
	answer := func(ids ...string) (m tidemark.Message) {
		m.Role = tidemark.User
		for _, id := range ids {
			m.Content = append(m.Content, tidemark.ToolResult(id, strings.Repeat("found ", 200), false))
		}
		return m
	}
	said := func(b ...tidemark.Block) tidemark.Message {
		return tidemark.Message{Role: tidemark.Assistant, Content: b}
	}
	for i, m := range []tidemark.Message{
		tidemark.NewText(tidemark.User, "begin"),
		said(use("s", episodes.ToolName, `{"action":"start","name":"look","type":"expl"}`)), answer("s"),
		said(tidemark.Text("I search."), use("g", "Grep", `{}`), use("r", "Read", `{"file_path":"a"}`)), answer("g", "r"),
		said(use("e", episodes.ToolName, `{"action":"end","description":"it is there"}`), use("x", "Read", `{"file_path":"b"}`)), answer("e", "x"),
		said(use("y", "Read", `{"file_path":"c"}`)), answer("y"),
		said(use("z", "Read", `{"file_path":"d"}`)), answer("z"),
	} {
		id, seq, tokens := tidemark.EntryID(fmt.Sprint("E", i)), int64(i+1), tidemark.Estimate(m)
		g.Add(episodes.Message{ID: id, Seq: seq, Tokens: tokens, Content: m})
		items = append(items, episodes.Item{Seq: seq, Message: &m, Tokens: tokens, Person: i == 0})
	}
	return g, items
}

func planOf(g *episodes.Graph, items []episodes.Item, need tidemark.Tokens) episodes.Plan {
	return episodes.NewLedger(g, items).Plan(episodes.Need{Tokens: need})
}

// TestTogether: of a message that stays as one nothing leaves by levels, and all of it with its episode.
func TestTogether(t *testing.T) {
	for name, row := range map[string]struct {
		together bool
		levels   string
	}{"alone": {false, "[bulk]"}, "together": {true, "[whole]"}} {
		g, items := lookedAt()
		items[3].Together = row.together
		p := planOf(g, items, 10)
		var levels []string
		for _, s := range p.Steps {
			levels = append(levels, s.Level.String())
		}
		if got := fmt.Sprint(levels); got != row.levels {
			t.Errorf("%s: %v, want %s", name, levels, row.levels)
		}
	}
}

// TestLineOnce: an episode of which something had to stay has one line, also when the rest leaves later.
func TestLineOnce(t *testing.T) {
	g, items := lookedAt()
	items[5].Stays = true // it is of the exploration, and of what follows
	p := planOf(g, items, 820)
	if len(p.Runs) != 1 || p.Runs[0].From != 1 || p.Runs[0].To != 4 || len(p.Runs[0].Lines) != 1 {
		t.Fatalf("first %+v", p)
	}
	line := tidemark.NewText(tidemark.User, p.Runs[0].Text)
	items[5].Stays = false
	items = append([]episodes.Item{items[0], {Seq: 2, Message: &line, Tokens: tidemark.Estimate(line), Line: &p.Runs[0].Line}}, items[5:]...)
	p = planOf(g, items, 5)
	if len(p.Steps) == 0 || len(p.Blocks)+len(p.Runs) == 0 {
		t.Fatalf("nothing leaves: %+v", p)
	}
	for _, r := range p.Runs {
		if len(r.Lines) != 1 {
			t.Errorf("lines %v", r.Lines)
		}
	}
	for _, b := range p.Blocks {
		if b.Text != "" {
			t.Errorf("a second line: %q", b.Text)
		}
	}
}

// TestTogetherShared: of a message that leaves as one, and that two episodes share, nothing leaves until both have.
func TestTogetherShared(t *testing.T) {
	g, items := lookedAt()
	items[5].Together = true
	for i, m := range []tidemark.Message{tidemark.NewText(tidemark.User, "and?"), {Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("w", "Read", []byte(`{}`))}},
		{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult("w", "x", false)}}} {
		id, seq := tidemark.EntryID(fmt.Sprint("F", i)), int64(len(items)+1)
		g.Add(episodes.Message{ID: id, Seq: seq, Tokens: tidemark.Estimate(m), Content: m})
		items = append(items, episodes.Item{Seq: seq, Message: &m, Tokens: tidemark.Estimate(m)}) // the words stay a part of what goes on: the loop is open
	}
	look, next := g.Find("look"), g.Episodes()[1]
	for _, row := range []struct {
		need tidemark.Tokens
		want bool // the shared message leaves
	}{{1_200, false}, {2_300, true}} {
		p := planOf(g, items, row.need)
		gone := map[*episodes.Episode]bool{}
		for _, s := range p.Steps {
			gone[s.Episode] = true
		}
		shared := false
		for _, r := range p.Runs {
			shared = shared || r.From <= 5 && r.To >= 5
		}
		for _, b := range p.Blocks {
			if b.Item == 5 || b.Item == 6 {
				t.Errorf("%d tokens: block %d of item %d leaves by itself", row.need, b.Block, b.Item)
			}
		}
		if !gone[look] || gone[next] != row.want || shared != row.want {
			t.Errorf("%d tokens: %+v", row.need, p)
		}
	}
}
