package episodes_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// histories is how many random ones each law is held for.
func histories() int { return tidemarktest.Rounds(100) }

// draw draws the episodes of a graph: name, type, and its blocks.
func draw(g *episodes.Graph) (out []string) {
	for _, e := range g.Episodes() {
		state := ""
		if e.Open {
			state = " open"
		}
		name := e.Name
		if e.Type == episodes.Unmarked {
			name = "-"
		}
		if e.Early {
			state += " early"
		}
		on := ""
		if len(e.Dependencies) > 0 {
			on = " on " + strings.Join(e.Dependencies, ",")
		}
		out = append(out, fmt.Sprintf("%s%s%s %d.%d-%d.%d", name, on, state, e.From.Seq, e.From.Block, e.To.Seq, e.To.Block))
	}
	return out
}

// TestEpisodesOfMessages holds which blocks are of which episode, where several calls stand in one message.
func TestEpisodesOfMessages(t *testing.T) {
	const a2 = `{"action":"start","name":"a2","type":"expl"}`
	for _, row := range []struct {
		name    string
		replies [][]string
		refused string // of the last reply, by call of the tool: "." carried out, "x" refused
		want    []string
	}{
		{"each call in a message of its own", [][]string{{startA}, {"- grep x"}, {endA}, {startB}, {"- edit a.go"}, {end}}, ".",
			[]string{"a 2.0-6.0", "b on a 8.0-12.0"}},
		{"text and thinking go with the call behind them", [][]string{{"~hm", "let me see", startA, "looking", "- grep x", "so far"}}, ".",
			[]string{"a open 2.0-2.5"}},
		{"end and start in one message", [][]string{{startA}, {"found it", endA, "now", startB}}, "..",
			[]string{"a 2.0-4.1", "b on a open 4.2-4.3"}},
		{"start and read in one message", [][]string{{startA, "- read a.go"}, {endA}}, ".", []string{"a 2.0-4.0"}},
		{"two starts in one message", [][]string{{startA, a2}, {endA}}, ".", []string{"a 2.0-4.0"}},
		{"the second of two starts is refused", [][]string{{startA, a2}}, ".x", []string{"a open 2.0-2.1"}},
		{"start, work and end in one message", [][]string{{startA, "- read a.go", "- grep x", endA, startB, "- edit a.go", end}}, "....",
			[]string{"a 2.0-2.3", "b on a 2.4-2.6"}},
		{"an action that depends on what ends in its message", [][]string{{startA}, {startB, endA}}, "x.", []string{"a 2.0-4.1"}},
		{"two ends in one message", [][]string{{startA}, {endA, endA}}, ".x", []string{"a 2.0-4.0", "- open 4.1-4.1"}},
		{"work before a start and behind an end", [][]string{{"- read a.go", startA}, {endA, "- read b.go", "done"}}, ".",
			[]string{"- early 2.0-2.0", "a 2.1-4.0", "- open 4.1-4.2"}},
		{"what is refused is work without a mark", [][]string{{end}}, "x", []string{"- open early 2.0-2.0"}},
		{"what is refused is of the episode that it led to", [][]string{{end}, {"so", end}, {"well", startA}, {"- read a.go"}}, "", []string{"a open 2.0-8.0"}},
		{"refused and started in one message", [][]string{{startB, end, startA}}, "xx.", []string{"a open 2.0-2.2"}},
		{"refused between episodes", [][]string{{startA}, {endA}, {end}, {startB}}, ".", []string{"a 2.0-4.0", "b on a open 6.0-8.0"}},
		{"refused in an episode", [][]string{{startA}, {startA}, {endA}}, ".", []string{"a 2.0-6.0"}},
		{"refused and gone on without", [][]string{{end}, {"- read a.go"}, {startA}}, ".", []string{"- early 2.0-4.0", "a open 6.0-6.0"}},
		{"refused and answered", [][]string{{startA}, {endA}, {end}, {"done"}, {startB}}, ".", []string{"a 2.0-4.0", "- 6.0-8.0", "b on a open 9.0-9.0"}},
		{"talk before all work is no work", [][]string{{"hello"}, {"and again"}, {startA}}, ".", []string{"a open 4.0-4.0"}},
		{"talk behind it is", [][]string{{startA}, {endA}, {"done"}, {"really"}}, "", []string{"a 2.0-4.0", "- open 6.0-7.0"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := newTalk()
			c.person("go on")
			for _, parts := range row.replies {
				c.reply(parts...)
			}
			refused := ""
			for _, a := range c.answers {
				refused += map[bool]string{false: ".", true: "x"}[a.Refused]
			}
			if got := draw(c.g); !slices.Equal(got, row.want) || refused != row.refused {
				t.Errorf("%q, answers %s\nwant %q, %s", got, refused, row.want, row.refused)
			}
			if err := c.g.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestNotCarriedOut: a call of the tool that failed, or never ran since its turn was stopped, has marked nothing, however
// good it was.
func TestNotCarriedOut(t *testing.T) {
	start := tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("c", episodes.ToolName, []byte(startA)), tidemark.ToolUse("d", "read", nil)}}
	result := func(blocks ...tidemark.Block) []tidemark.Message {
		return []tidemark.Message{{Role: tidemark.User, Content: blocks}}
	}
	ok, read := tidemark.ToolResult("c", "Started.", false), tidemark.ToolResult("d", "text", false)
	for _, row := range []struct {
		name   string
		behind []tidemark.Message
		open   bool
	}{
		{"it has an answer", result(ok, read), true},
		{"an error", result(tidemark.ToolResult("c", "interrupted", true), read), false},
		{"no answer", result(read), false},
		{"a person speaks", []tidemark.Message{tidemark.NewText(tidemark.User, "stop")}, false},
		{"the next reply", []tidemark.Message{tidemark.NewText(tidemark.Assistant, "well")}, false},
		{"answers over two messages", slices.Concat(result(read), result(ok)), true},
		{"a person speaks before the second", slices.Concat(result(read), []tidemark.Message{tidemark.NewText(tidemark.User, "now")}, result(ok)), true},
		{"its answer comes too late", slices.Concat(result(read), []tidemark.Message{tidemark.NewText(tidemark.Assistant, "well")}, result(ok)), false},
		{"words beside its answer", result(ok, read, tidemark.Text("go on")), true},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := newTalk()
			c.add(start)
			for _, m := range row.behind {
				c.add(m)
			}
			c.reply("and on", "- read b.go")
			if open := c.g.Active() != nil; open != row.open {
				t.Errorf("open is %v: %q", open, draw(c.g))
			}
		})
	}
}

// history is a random log with its graph.
func history(seed uint64, steps int, wild bool) *talk {
	c := newTalk()
	h := &tidemarktest.Marked{Rand: rand.New(rand.NewPCG(seed, 3)), Wild: wild, Words: 12, Add: c.add, Answer: func() map[string]tidemark.Block {
		out := map[string]tidemark.Block{}
		for id, a := range c.g.Answer() {
			out[id] = a.Result(id)
		}
		return out
	}}
	for range steps {
		h.Step()
	}
	return c
}

// built makes the graph of a log in one go.
func built(log []episodes.Message) *episodes.Graph {
	g := newTalk().g
	for _, m := range log {
		g.Add(m)
	}
	return g
}

// rows are all that is known of the episodes of a graph.
func rows(g *episodes.Graph) []string {
	out := make([]string, 0, len(g.Episodes()))
	for _, e := range g.Episodes() {
		out = append(out, fmt.Sprintf("%d %q %q %q %q %v %v %v %v %v %v %d %d %q %q %d", e.N, e.Name, e.Type, e.Dependencies, e.Description, e.Open, e.Early,
			e.From, e.To, e.Entry, e.Last, e.Calls, e.Tokens, e.Read, e.Changed, e.More))
	}
	return out
}

func same(t *testing.T, what string, got, want *episodes.Graph) {
	t.Helper()
	if g, w := rows(got), rows(want); !slices.Equal(g, w) || got.Upto() != want.Upto() {
		for i := range max(len(g), len(w)) {
			if i >= len(g) || i >= len(w) || g[i] != w[i] {
				t.Fatalf("%s: episode %d of %d, %d, up to %d, %d:\n got %s\nwant %s", what, i+1, len(g), len(w), got.Upto(), want.Upto(), at(g, i), at(w, i))
			}
		}
		t.Fatalf("%s: up to %d, want %d", what, got.Upto(), want.Upto())
	}
	if a, b := got.Active(), want.Active(); (a == nil) != (b == nil) || a != nil && a.N != b.N {
		t.Fatalf("%s: open is %v, want %v", what, a, b)
	}
	if !reflect.DeepEqual(got.Answer(), want.Answer()) {
		t.Fatalf("%s: answers %v, want %v", what, got.Answer(), want.Answer())
	}
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return "nothing"
}

// TestGraphOfRandomHistories: however a graph comes to be, at once, from what was saved, as a copy or as the graph of a branch,
// it is the same, and its invariants hold at each message.
func TestGraphOfRandomHistories(t *testing.T) {
	for seed := range uint64(histories()) {
		graphOf(t, seed, seed%2 == 0)
	}
}

func graphOf(t *testing.T, seed uint64, wild bool) {
	t.Helper()
	c := history(seed, 12, wild)
	r := rand.New(rand.NewPCG(seed, 4))
	what := func(s string) string { return fmt.Sprintf("seed %d, %d messages: %s", seed, len(c.log), s) }
	g, table, upto := newTalk().g, map[int]episodes.Episode{}, int64(0)
	for i, m := range c.log {
		g.Add(m)
		if err := g.Check(); err != nil {
			t.Fatal(what("message " + fmt.Sprint(i+1) + ": " + err.Error()))
		}
		if r.IntN(4) == 0 { // saved
			var changed []episodes.Episode
			if changed, upto = g.Save(); upto > int64(i+1) {
				t.Fatal(what(fmt.Sprintf("saved up to %d of %d", upto, i+1)))
			}
			for _, e := range changed {
				table[e.N] = e
			}
		}
		if r.IntN(10) == 0 { // the process ends, and another one goes on from what was saved
			list := make([]episodes.Episode, len(table))
			for n, e := range table {
				list[n-1] = e
			}
			g = episodes.Load(episodes.DefaultTools(files), list, upto)
			for _, m := range c.log[:i+1] {
				g.Add(m)
			}
			same(t, what("loaded"), g, built(c.log[:i+1]))
		}
	}
	same(t, what("with saves"), g, c.g)

	base := built(c.log)
	cut := r.IntN(len(c.log) + 1)
	branch := base.Until(int64(cut))
	if branch.Upto() > int64(cut) {
		t.Fatal(what(fmt.Sprintf("the graph until %d is up to %d", cut, branch.Upto())))
	}
	other := history(seed+1_000_000, 3, wild) // the branch goes on by itself
	log := slices.Clone(c.log[:cut])
	for _, m := range other.log {
		m.Seq, m.ID = int64(len(log)+1), "b"+m.ID
		log = append(log, m)
	}
	for _, m := range log {
		branch.Add(m)
	}
	same(t, what(fmt.Sprintf("branch at %d", cut)), branch, built(log))
	same(t, what("base of a branch"), base, c.g)

	half := len(c.log) / 2
	one := built(c.log[:half])
	two := one.Clone()
	for _, m := range log[min(half, cut):] { // not its log: what a copy adds is not seen by the other
		two.Add(m)
	}
	for _, m := range c.log[half:] {
		one.Add(m)
	}
	same(t, what("original of a copy"), one, c.g)
}

// TestOwner: each block of the assistant from the first call on is of one episode, in the order of the log, and those of one
// are all that lies between its ends.
func TestOwner(t *testing.T) {
	for seed := range uint64(histories()) {
		c := history(seed, 12, seed%2 == 0)
		c.add(tidemark.NewText(tidemark.Assistant, "done")) // what is open is answered or never will be
		n, begun := 0, false
		for _, m := range c.log {
			if m.Content.Role != tidemark.Assistant {
				continue
			}
			begun = begun || len(m.Content.Calls()) > 0
			for i := range m.Content.Content {
				e := c.g.Owner(episodes.Place{Seq: m.Seq, Block: i})
				if (e != nil) != begun {
					t.Fatalf("seed %d: block %d of message %d is of %v", seed, i, m.Seq, e)
				}
				if e == nil {
					continue
				}
				if e.N < n || e.N > n+1 {
					t.Fatalf("seed %d: block %d of message %d is of %d, the one before of %d", seed, i, m.Seq, e.N, n)
				}
				n = e.N
			}
		}
		if n != len(c.g.Episodes()) {
			t.Fatalf("seed %d: %d of %d episodes have blocks", seed, n, len(c.g.Episodes()))
		}
	}
}

// TestInherited: an action may depend on explorations of a history that this one came from (their chunks are gone after a
// client's own summary), and a copy's are its own.
func TestInherited(t *testing.T) {
	c := newTalk()
	c.g.Inherit([]string{"before"})
	other := c.g.Clone()
	other.Inherit([]string{"elsewhere"})
	c.reply(`{"action":"start","name":"b","type":"act","dependencies":["before"]}`)
	if c.answers[0].Refused {
		t.Error(c.answers[0].Text)
	}
	if err := c.g.Check(); err != nil {
		t.Error(err)
	}
	c.reply(end)
	c.reply(`{"action":"start","name":"c","type":"act","dependencies":["elsewhere"]}`)
	if !c.answers[0].Refused {
		t.Error("a copy's inheritance is known to the original")
	}
}

// FuzzGraph looks for a history that a graph is not true to.
func FuzzGraph(f *testing.F) {
	f.Add(uint64(1), true)
	f.Add(uint64(2), false)
	f.Fuzz(func(t *testing.T, seed uint64, wild bool) { graphOf(t, seed, wild) })
}

// TestShares counts what stands in one message for the episodes that have a part in it, and all of it.
func TestShares(t *testing.T) {
	g := episodes.New(episodes.Tools{})
	reply := tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{
		tidemark.ToolUse("1", episodes.ToolName, []byte(`{"action":"start","name":"a","type":"expl"}`)),
		tidemark.ToolUse("2", "read", []byte(`{"path":"a.go"}`)),
		tidemark.ToolUse("3", episodes.ToolName, []byte(`{"action":"end","description":"d"}`)),
		tidemark.ToolUse("4", episodes.ToolName, []byte(`{"action":"start","name":"b","type":"act","dependencies":[]}`)),
	}}
	results := tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult("1", "ok", false),
		tidemark.ToolResult("2", strings.Repeat("line of a file ", 200), false), tidemark.ToolResult("3", "ok", false), tidemark.ToolResult("4", "ok", false)}}
	g.Add(episodes.Message{ID: "m1", Seq: 1, Tokens: tidemark.Estimate(reply), Content: reply})
	g.Add(episodes.Message{ID: "m2", Seq: 2, Tokens: tidemark.Estimate(results), Content: results})
	a, b := g.Find("a"), g.Find("b")
	if all := tidemark.Estimate(reply) + tidemark.Estimate(results); a.Tokens+b.Tokens != all || b.Tokens > all/5 || b.Tokens < all/40 {
		t.Errorf("a has %d tokens and b %d, of %d", a.Tokens, b.Tokens, all)
	}
}
