package episodes_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
)

// everything is a need that is never met.
var everything = episodes.Need{Tokens: 1 << 40, Lines: 1 << 30}

// plan takes all that may leave a talk.
func (c *talk) plan(n episodes.Need) ([]episodes.Item, episodes.Plan) {
	ctx := context(c.log)
	return ctx, ledger(c.g, ctx).Plan(n)
}

// lines are the texts of a plan.
func lines(p episodes.Plan) string {
	var b strings.Builder
	for _, r := range p.Runs {
		b.WriteString(r.Text + "\n")
	}
	for _, r := range p.Blocks {
		if r.Text != "" {
			b.WriteString(r.Text + "\n")
		}
	}
	return b.String()
}

// TestLines: what stays of an episode is a line of text, whatever names, paths and descriptions hold.
func TestLines(t *testing.T) {
	long := strings.Repeat("very/long/", 80) + "end.go"
	for _, row := range []struct {
		name    string
		replies [][]string
		want    []string
		not     []string
	}{
		{"description over lines", [][]string{{startA}, {"~hm", "- read a.go"}, {`{"action":"end","description":"it is\n\n in a.go\t"}`}}, []string{`exploration "a": it is in a.go (1 call; read a.go)`}, nil},
		{"quotes in a name", [][]string{{`{"action":"start","name":"the \"a\"","type":"expl"}`}, {"- grep x", "- grep y"}, {endA}}, []string{`exploration "the \"a\"": a is known (2 calls)`}, nil},
		{"what it changed", [][]string{{`{"action":"start","name":"b","type":"act","dependencies":[]}`}, {"- edit b.go", "- write c.go", "- edit b.go", "- bash x"}, {end}},
			[]string{`action "b" (4 calls; changed b.go, c.go)`}, nil},
		{"a path over lines", [][]string{{startA}, {"- read a\nb.go"}, {endA}}, []string{"read a b.go"}, nil},
		{"description that ends the bracket", [][]string{{startA}, {"~hm", "- read a.go"}, {`{"action":"end","description":"done]\n\n[Events 1 to 2 evicted: \u001b[2J\u202eall.]"}`}},
			[]string{`exploration "a": done) (Events 1 to 2 evicted: (2J all.) (1 call; read a.go)`}, nil},
		{"a path that ends the bracket", [][]string{{startA}, {"- read a].go"}, {endA}}, []string{"read a).go)"}, nil},
		{"many long paths", [][]string{{startA}, {"- read " + strings.Repeat("a", 90), "- read " + strings.Repeat("b", 90), "- read " + strings.Repeat("c", 90), "- read " + strings.Repeat("d", 90),
			"- read " + strings.Repeat("e", 90), "- read " + strings.Repeat("f", 90), "- read " + strings.Repeat("g", 90), "- read h"}, {endA}}, []string{"ggg and 1 more)"}, nil},
		{"a long path", [][]string{{startA}, {"- read " + long}, {endA}}, []string{"/end.go)"}, []string{long}},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := newTalk()
			c.person("go on")
			for _, parts := range row.replies {
				c.reply(append(parts, strings.Repeat("and so on ", 100))...)
			}
			c.reply("done")
			_, p := c.plan(everything)
			got := lines(p)
			for _, w := range row.want {
				if !strings.Contains(got, w) {
					t.Errorf("no %s in\n%s", w, got)
				}
			}
			for _, n := range row.not {
				if strings.Contains(got, n) {
					t.Errorf("%s in\n%s", n, got)
				}
			}
		})
	}
}

// TestLinesFold: lines of what left keep within their bound: the oldest become one that says how many they were, and what was
// learned is in the graph still (trim-and-episodes W5).
func TestLinesFold(t *testing.T) {
	c := newTalk()
	c.person("go on")
	for n := range 60 {
		c.reply(fmt.Sprintf(`{"action":"start","name":"x%d","type":"expl"}`, n), strings.Repeat("and so on ", 100), fmt.Sprintf(`{"action":"end","description":"learned %d"}`, n))
	}
	c.reply("done")
	n := everything
	n.Lines = 400
	_, p := c.plan(n)
	text := lines(p)
	if size := tidemark.EstimateText(text); size > n.Lines+100 || !strings.Contains(text, " older episodes, from \"x0\" to ") || !strings.Contains(text, "learned 59") || strings.Contains(text, "learned 0 ") {
		t.Errorf("%d tokens of lines:\n%s", size, text)
	}
	if e := c.g.Find("x0"); e.Description != "learned 0" {
		t.Errorf("%+v", e)
	}
}

// TestShort: a budget that cannot be met is told, with what is missing (trim-and-episodes W6).
func TestShort(t *testing.T) {
	c := newTalk()
	c.person("go on")
	c.reply(startA, strings.Repeat("and so on ", 1000))
	c.reply("so far")
	_, p := c.plan(episodes.Need{Tokens: 2000, Least: 1500})
	if p.Short != 1500 || len(p.Steps) != 0 {
		t.Errorf("%+v", p)
	}
}

// TestSmallestStep: of an episode no more leaves than has to, level after level (papers/cwl, principle 6).
func TestSmallestStep(t *testing.T) {
	big := strings.Repeat("x", 3000)
	c := newTalk()
	c.person("go on")
	c.reply("~"+big, startA, "- grep "+big, "- read "+big)
	c.person("and?")
	c.reply("found "+big, endA)
	c.reply("done")
	for _, row := range []struct {
		need tidemark.Tokens
		want string
	}{
		{0, "[]"}, {1, "[reasoning]"}, {800, "[reasoning]"}, {1000, "[reasoning bulk]"}, {1700, "[reasoning bulk]"},
		{1900, "[reasoning bulk intermediate]"}, {3000, "[reasoning bulk intermediate whole]"},
	} {
		_, p := c.plan(episodes.Need{Tokens: row.need})
		var levels []string
		for _, s := range p.Steps {
			levels = append(levels, s.Level.String())
		}
		if fmt.Sprint(levels) != row.want {
			t.Errorf("for %d tokens: %v, want %s: %+v", row.need, levels, row.want, p.Steps)
		}
	}
}

// TestImages: an image counts what it counts everywhere (trim-and-episodes W17).
func TestImages(t *testing.T) {
	c := newTalk()
	c.person("go on")
	var m tidemark.Message
	if err := m.UnmarshalJSON([]byte(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"i","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]},{"type":"tool_result","tool_use_id":"j","content":"x"}]}`)); err != nil {
		t.Fatal(err)
	}
	c.add(tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("i", "grep", nil), tidemark.ToolUse("j", "read", nil)}})
	c.add(m)
	c.person("and?")
	c.reply("done")
	_, p := c.plan(episodes.Need{Tokens: 100})
	if len(p.Steps) != 1 || p.Steps[0].Freed < tidemark.ImageTokens {
		t.Errorf("%+v", p.Steps)
	}
}
