package episodes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
)

// whole lists the names of episodes that left whole.
func whole(p episodes.Plan) (out []string) {
	for _, s := range p.Steps {
		if s.Level == episodes.Whole {
			out = append(out, s.Episode.Name)
		}
	}
	return out
}

// TestNewestExchangeStays: of what has a part in the newest exchange only what was before that leaves, and never all.
func TestNewestExchangeStays(t *testing.T) {
	for _, row := range []struct {
		name    string
		replies [][]string
		want    []string
	}{
		{"ended by the newest", [][]string{{startA}, {"I look", "- read a"}, {"- read b", endA}}, []string{"0003.01", "0004.00"}},
		{"all of it is the newest", [][]string{{startA, "- read a", endA}}, nil},
		{"one reply later", [][]string{{startA, "- read a", endA}, {"- read b"}}, []string{"0001.00", "0001.01", "0001.02", "0002.00", "0002.01", "0002.02"}},
	} {
		c := newTalk()
		c.person("go on")
		for _, r := range row.replies {
			c.reply(r...)
		}
		ctx, _ := c.plan(everything)
		for i := range ctx { // a line costs less than what it stands for
			ctx[i].Tokens += 200
		}
		p := ledger(c.g, ctx).Plan(everything)
		if got := gone(ctx, p); !slices.Equal(got, row.want) {
			t.Errorf("%s: gone %v, want %v\n%v", row.name, got, row.want, draw(c.g))
		}
	}
}

// TestAnswerEndsWork: unmarked work that ends with the newest reply, an answer, does not leave whole.
func TestAnswerEndsWork(t *testing.T) {
	c := newTalk()
	c.person("go on")
	c.reply(startA)
	c.reply(endA)
	c.reply("I look", "- read x")
	c.reply(strings.Repeat("done ", 2500))
	ctx, p := c.plan(everything)
	if got := gone(ctx, p); c.g.Episodes()[1].Open || slices.Contains(got, "0005.00") || !slices.Contains(got, "0005.01") {
		t.Errorf("gone %v\n%v", got, draw(c.g))
	}
}

// TestReleasedByWhatIsBound: an exploration may go when all that stands of the action on it waits for others.
func TestReleasedByWhatIsBound(t *testing.T) {
	c := newTalk()
	c.person("go on")
	c.reply(startA)
	c.reply("- read x")
	c.reply(endA)
	c.reply(startB)
	c.reply("- edit x")
	c.reply(end, `{"action":"start","name":"next","type":"expl"}`)
	c.reply("- read y")
	ctx := context(c.log)
	for i := range ctx {
		ctx[i].Tokens += 200
	}
	shared := 11
	for _, together := range []bool{false, true} {
		ctx[shared].Together = together
		p := ledger(c.g, ctx).Plan(everything)
		if !slices.Contains(whole(p), "a") || slices.Contains(gone(ctx, p), "0011.00") == together {
			t.Errorf("together %v: %v left, %v", together, whole(p), gone(ctx, p))
		}
	}
}

// TestActionThatFreesNothing: an action for which a line would be larger leaves all the same, as explorations wait for it.
func TestActionThatFreesNothing(t *testing.T) {
	c := newTalk()
	c.person("go on")
	c.reply(startA)
	c.reply("- read x")
	c.reply(endA)
	c.reply(startB)
	c.reply(end)
	c.reply("done")
	ctx := context(c.log)
	for i := range ctx {
		ctx[i].Tokens = 400
	}
	for _, e := range c.log[7:11] {
		ctx[e.Seq-1].Tokens = 1
	}
	if got := whole(ledger(c.g, ctx).Plan(everything)); !slices.Equal(got, []string{"b", "a"}) {
		t.Errorf("%v left, want b, then a", got)
	}
}

// TestLineNotInThinking: a line takes the place of a block that is no thinking.
func TestLineNotInThinking(t *testing.T) {
	c := newTalk()
	c.person("go on")
	c.reply("- read early", "~hm", startA, "- read x", endA)
	c.person("and?")
	c.reply("done")
	ctx := context(c.log)
	for i := range ctx {
		ctx[i].Tokens += 1000
	}
	n := everything
	n.Prologue = 1 << 20
	p := ledger(c.g, ctx).Plan(n)
	var at []string
	for _, b := range p.Blocks {
		if b.Text != "" {
			at = append(at, fmt.Sprintf("%d.%d", b.Item, b.Block))
		}
	}
	if !slices.Equal(at, []string{"1.2"}) {
		t.Errorf("the line stands at %v, want in the place of the start: %+v", at, p.Blocks)
	}
}

// TestLineToldInBlock: an episode whose line is a block of a message gets no second one.
func TestLineToldInBlock(t *testing.T) {
	g, items := lookedAt()
	m := tidemark.Message{Role: tidemark.Assistant, Content: append([]tidemark.Block{tidemark.Text("[Evicted exploration \"look\"]")}, items[3].Message.Content...)}
	items[3].Message, items[3].Numbers, items[3].Told = &m, []int{-1, 0, 1, 2}, []int{1}
	for _, told := range []bool{true, false} {
		if !told {
			items[3].Told = nil
		}
		p := planOf(g, items, 1_200)
		if got := strings.Contains(lines(p), `"look"`); len(p.Steps) == 0 || got == told || !slices.Contains(whole(p), "look") {
			t.Errorf("told %v, and told again %v: %+v", told, got, p)
		}
	}
}

// TestRunsWithin: what stands though a line covers it leaves by itself.
func TestRunsWithin(t *testing.T) {
	g, items := lookedAt()
	m := tidemark.NewText(tidemark.User, "[Evicted episodes]")
	line := episodes.Item{Seq: 2, Last: 5, Message: &m, Tokens: 9, Line: &episodes.Line{Lines: []int{1}}}
	items = slices.Concat(items[:1], []episodes.Item{line}, items[3:])
	p := planOf(g, items, 1<<30)
	var got []string
	for _, r := range p.Runs {
		got = append(got, fmt.Sprint(r.From, "-", r.To))
	}
	if len(got) < 2 || got[0] != "2-2" || got[1] != "3-3" {
		t.Errorf("runs %v, want 2-2 and 3-3 first", got)
	}
}

// TestFoldLeavesRoom: once lines are over their bound a quarter of it is made free, so that not one more folds with each turn;
// lines that stand fold, too.
func TestFoldLeavesRoom(t *testing.T) {
	c := newTalk()
	c.person("go on")
	const many = 12
	for n := range many {
		c.reply(fmt.Sprintf(`{"action":"start","name":"x%02d","type":"expl"}`, n), strings.Repeat("and so on ", 100), `{"action":"end","description":"learned"}`)
	}
	c.reply("done")
	own := func(lines tidemark.Tokens) (n int) {
		need := everything
		need.Lines = lines
		_, p := c.plan(need)
		for _, r := range p.Runs {
			n += len(r.Lines)
		}
		return n
	}
	n, most := many, tidemark.Tokens(many*40)
	if own(most) != many {
		t.Fatal("the bound is too small")
	}
	for ; n == many && most > 0; most-- {
		n = own(most)
	}
	if n > many*3/4 || n < many/2 {
		t.Errorf("of %d lines %d stay where one is too many", many, n)
	}
}

// TestStandingLinesFold: where new lines come over the bound those that stand fold, whatever is between.
func TestStandingLinesFold(t *testing.T) {
	c := newTalk()
	c.person("go on")
	for n := range 6 {
		c.reply(fmt.Sprintf(`{"action":"start","name":"old%d","type":"expl"}`, n), strings.Repeat("and so on ", 100), `{"action":"end","description":"learned"}`)
	}
	c.person("go on")
	for n := range 6 {
		c.reply(fmt.Sprintf(`{"action":"start","name":"new%d","type":"expl"}`, n), strings.Repeat("and so on ", 100), `{"action":"end","description":"learned"}`)
	}
	c.reply("done")
	m := tidemark.NewText(tidemark.User, "[Evicted episodes]")
	ctx := context(c.log)
	line := episodes.Item{Seq: 2, Last: 13, Message: &m, Tokens: 150, Line: &episodes.Line{Lines: []int{1, 2, 3, 4, 5, 6}}}
	ctx = slices.Concat(ctx[:1], []episodes.Item{line}, ctx[13:])
	n := everything
	n.Lines = 150
	p := ledger(c.g, ctx).Plan(n)
	if len(p.Runs) != 2 || p.Runs[0].From != 1 || p.Runs[0].To != 1 || len(p.Runs[0].Folded) == 0 {
		t.Errorf("runs %+v", p.Runs)
	}
}

// TestMostEpisodes: a graph takes so many, and refuses the next.
func TestMostEpisodes(t *testing.T) {
	for n, refused := range map[int]bool{episodes.MaxEpisodes - 1: false, episodes.MaxEpisodes: true} {
		rows := make([]episodes.Episode, n)
		for i := range rows {
			at := episodes.Place{Seq: int64(i + 1)}
			rows[i] = episodes.Episode{From: at, To: at}
		}
		g := episodes.Load(episodes.Tools{}, rows, int64(n))
		g.Add(episodes.Message{ID: "e", Seq: int64(n + 1), Content: tidemark.Message{Role: tidemark.Assistant,
			Content: []tidemark.Block{tidemark.ToolUse("c", episodes.ToolName, []byte(startA))}}})
		if a := g.Answer()["c"]; a.Refused != refused {
			t.Errorf("behind %d episodes: %+v", n, a)
		}
	}
}

// TestFirstAnswerCounts: of two answers to a call the API is sent the first.
func TestFirstAnswerCounts(t *testing.T) {
	for _, bad := range []bool{true, false} {
		c := newTalk()
		c.add(tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("s", episodes.ToolName, []byte(startA)), tidemark.ToolUse("r", "read", []byte(`{}`))}})
		c.add(tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult("s", "x", bad)}})
		c.add(tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult("s", "x", !bad), tidemark.ToolResult("r", "x", false)}})
		if started := c.g.Find("a") != nil; started == bad {
			t.Errorf("the first answer is an error: %v, and the episode began: %v", bad, started)
		}
	}
}

// sized adds unmarked work of so many tokens, with words between a call and its answer where somebody spoke.
func sized(g *episodes.Graph, seq int64, tokens tidemark.Tokens, spoke bool) int64 {
	add := func(n tidemark.Tokens, role tidemark.Role, b tidemark.Block) {
		seq++
		g.Add(episodes.Message{ID: tidemark.EntryID(fmt.Sprint("e", seq)), Seq: seq, Tokens: n, Content: tidemark.Message{Role: role, Content: []tidemark.Block{b}}})
	}
	id := fmt.Sprint("c", seq)
	add(tokens-1, tidemark.Assistant, tidemark.ToolUse(id, "read", []byte(`{}`)))
	if spoke {
		add(5, tidemark.User, tidemark.Text("wait"))
	}
	add(1, tidemark.User, tidemark.ToolResult(id, "x", false))
	return seq
}

// TestWorkIsCut: unmarked work ends at its size, and from a smaller one on where somebody speaks; what was said is known in a
// copy, too.
func TestWorkIsCut(t *testing.T) {
	for _, row := range []struct {
		tokens tidemark.Tokens
		spoke  bool
		want   int // pieces of that and what follows
	}{{499, true, 1}, {500, true, 2}, {500, false, 1}, {1_999, false, 1}, {2_000, false, 2}} {
		for _, copied := range []bool{false, true} {
			g := episodes.New(episodes.Tools{})
			sized(g, 0, row.tokens, row.spoke)
			if copied { // while the call is not answered
				g = episodes.New(episodes.Tools{})
				cloned(&g, row.tokens, row.spoke)
			}
			sized(g, 10, 2, false)
			if n := len(g.Episodes()); n != row.want {
				t.Errorf("%d tokens, spoke %v, copied %v: %d episodes, want %d", row.tokens, row.spoke, copied, n, row.want)
			}
		}
	}
}

// cloned adds the same work, and goes on with a copy before each message.
func cloned(g **episodes.Graph, tokens tidemark.Tokens, spoke bool) {
	messages := []episodes.Message{{ID: "e1", Seq: 1, Tokens: tokens - 1, Content: tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("c", "read", []byte(`{}`))}}}}
	if spoke {
		messages = append(messages, episodes.Message{ID: "e2", Seq: 2, Tokens: 5, Content: tidemark.NewText(tidemark.User, "wait")})
	}
	messages = append(messages, episodes.Message{ID: "e3", Seq: 3, Tokens: 1, Content: tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult("c", "x", false)}}})
	for _, m := range messages {
		*g = (*g).Clone()
		(*g).Add(m)
	}
}

// TestFilesOfLine: a line names twelve files, and says how many more there are.
func TestFilesOfLine(t *testing.T) {
	for n, want := range map[int]string{12: "f11)", 13: "f11 and 1 more)"} {
		c := newTalk()
		c.person("go on")
		parts := []string{startA}
		for i := range n {
			parts = append(parts, fmt.Sprintf("- read f%d", i))
		}
		c.reply(append(parts, endA)...)
		c.reply("done")
		if _, p := c.plan(everything); !strings.Contains(lines(p), want) {
			t.Errorf("of %d files: %s", n, lines(p))
		}
	}
}
