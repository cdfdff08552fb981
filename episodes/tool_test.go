package episodes_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/paging"
)

// talk is a log in the making. Calls of the tool are answered by its graph, others with "ok".
type talk struct {
	g       *episodes.Graph
	log     []episodes.Message
	calls   int
	answers []episodes.Answer // of the newest reply, in the order of its calls of the tool
}

func newTalk() *talk { return &talk{g: episodes.New(episodes.DefaultTools(files))} }

// files is the table of file tools.
var files = paging.DefaultTools()

func (c *talk) add(m tidemark.Message) {
	seq := int64(len(c.log) + 1)
	em := episodes.Message{ID: tidemark.EntryID(fmt.Sprintf("e%d", seq)), Seq: seq, Tokens: tidemark.Estimate(m), Content: m}
	c.log = append(c.log, em)
	c.g.Add(em)
}

func (c *talk) person(text string) { c.add(tidemark.NewText(tidemark.User, text)) }

// reply adds a reply and its results. A part that is a JSON object is a call of the tool, "tool path" behind a dash is
// another call, "~" and a text thinking, and everything else is said.
func (c *talk) reply(parts ...string) {
	content := make([]tidemark.Block, 0, len(parts))
	var calls []tidemark.Block
	for _, p := range parts {
		c.calls++
		id := fmt.Sprintf("c%d", c.calls)
		switch {
		case strings.HasPrefix(p, "{"):
			calls = append(calls, tidemark.ToolUse(id, episodes.ToolName, []byte(p)))
		case strings.HasPrefix(p, "- "):
			name, path, _ := strings.Cut(p[2:], " ")
			calls = append(calls, tidemark.ToolUse(id, name, fmt.Appendf(nil, `{"path":%q}`, path)))
		case strings.HasPrefix(p, "~"):
			content = append(content, tidemark.Block{Type: tidemark.TypeThinking, Text: p[1:], Signature: "s"})
			continue
		default:
			content = append(content, tidemark.Text(p))
			continue
		}
		content = append(content, calls[len(calls)-1])
	}
	c.add(tidemark.Message{Role: tidemark.Assistant, Content: content})
	told := c.g.Answer()
	c.answers = nil
	var results []tidemark.Block
	for _, b := range calls {
		a, ok := told[b.ID]
		if ok {
			c.answers = append(c.answers, a)
			results = append(results, a.Result(b.ID))
		} else {
			results = append(results, tidemark.ToolResult(b.ID, "ok", false))
		}
	}
	if len(results) > 0 {
		c.add(tidemark.Message{Role: tidemark.User, Content: results})
	}
}

// Calls of the tool that stand in front of others in the tables.
const (
	startA = `{"action":"start","name":"a","type":"expl"}`
	endA   = `{"action":"end","description":"a is known"}`
	startB = `{"action":"start","name":"b","type":"act","dependencies":["a"]}`
	end    = `{"action":"end"}`
)

// TestCanonicalCalls holds the four calls of the paper (papers/cwl §4.2) to their answers, word for word.
func TestCanonicalCalls(t *testing.T) {
	for _, row := range []struct {
		name   string
		before []string
		call   string
		want   string
	}{
		{"start of an exploration", nil, startA, `Started exploration "a".`},
		{"end of an exploration", []string{startA}, endA, `Ended exploration "a".`},
		{"start of an action", []string{startA, endA}, startB, `Started action "b", which depends on a.`},
		{"end of an action", []string{startA, endA, startB}, end, `Ended action "b".`},
		{"an action that builds on nothing", nil, `{"action":"start","name":"b","type":"act","dependencies":[]}`, `Started action "b".`},
		{"an exploration with an empty list", nil, `{"action":"start","name":"a","type":"expl","dependencies":[]}`, `Started exploration "a".`},
		{"an exploration with a blank one", nil, `{"action":"start","name":"a","type":"expl","dependencies":[" "]}`, `Started exploration "a".`},
		{"a dependency twice", []string{startA, endA}, `{"action":"start","name":"b","type":"act","dependencies":["a"," a "]}`, `Started action "b", which depends on a.`},
		{"an end that names what is open", []string{startA}, `{"action":"end","name":"a","description":"d"}`, `Ended exploration "a".`},
		{"an action with a blank description", []string{startA, endA, startB}, `{"action":"end","description":"  "}`, `Ended action "b".`},
		{"nulls are as good as nothing", nil, `{"action":"start","name":"a","type":"expl","dependencies":null,"description":null}`, `Started exploration "a".`},
		{"blanks around", nil, `{"action":" start ","name":"  a  ","type":" expl"}`, `Started exploration "a".`},
		{"fields that nobody knows", nil, `{"action":"start","name":"a","type":"expl","why":{"x":[1]}}`, `Started exploration "a".`},
		{"quotes in a name", nil, `{"action":"start","name":"the \"a\" file","type":"expl"}`, `Started exploration "the \"a\" file".`},
		{"a name of another script", nil, `{"action":"start","name":"認証の流れ 🌊","type":"expl"}`, `Started exploration "認証の流れ 🌊".`},
		{"the longest name", nil, `{"action":"start","name":"` + strings.Repeat("n", 100) + `","type":"expl"}`, `Started exploration "` + strings.Repeat("n", 100) + `".`},
		{"the longest description", []string{startA}, `{"action":"end","description":"` + strings.Repeat("d", 2000) + `"}`, `Ended exploration "a".`},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := newTalk()
			for _, b := range row.before {
				c.reply(b)
			}
			c.reply(row.call)
			if a := c.answers[0]; a.Refused || a.Text != row.want {
				t.Errorf("%s\n got %v %s\nwant %s", row.call, a.Refused, a.Text, row.want)
			}
			if err := c.g.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRefusals holds each refusal to its words, and to changing nothing.
func TestRefusals(t *testing.T) {
	const none = "There are no closed explorations."
	const one = "Closed explorations: a."
	explored := []string{startA, endA}
	for _, row := range []struct {
		name   string
		before []string
		call   string
		want   string
	}{
		{"no action", nil, `{}`, `action is missing: want "start" or "end"`},
		{"another action", nil, `{"action":"stop"}`, `action is "stop": want "start" or "end"`},
		{"action that is no text", nil, `{"action":1}`, `action is 1: want a string`},
		{"a list", nil, `{"action":"start","name":["a"],"type":"expl"}`, `name is ["a"]: want a string`},
		{"description that is no text", []string{startA}, `{"action":"end","description":{"a":1}}`, `description is {"a":1}: want a string`},

		{"no name", nil, `{"action":"start","type":"expl"}`, `name is missing: call the episode by its outcome, as in {"action":"start","name":"auth flow","type":"expl"}`},
		{"blank name", nil, `{"action":"start","name":" \n ","type":"expl"}`, `name is missing: call the episode by its outcome, as in {"action":"start","name":"auth flow","type":"expl"}`},
		{"name of two lines", nil, `{"action":"start","name":"a\nb","type":"expl"}`, `name is "a\nb": want one line of at most 100 bytes`},
		{"name with what no line has", nil, `{"action":"start","name":"a\u0000b","type":"expl"}`, `name is "a\x00b": want one line of at most 100 bytes`},
		{"name of two lines, as JavaScript sees it", nil, `{"action":"start","name":"a\u2028b","type":"expl"}`, `name is "a\u2028b": want one line of at most 100 bytes`},
		{"long name", nil, `{"action":"start","name":"` + strings.Repeat("n", 101) + `","type":"expl"}`, `name has 101 bytes: want one line of at most 100`},
		{"long name of another script", nil, `{"action":"start","name":"` + strings.Repeat("認", 34) + `","type":"expl"}`, `name has 102 bytes: want one line of at most 100`},
		{"no type", nil, `{"action":"start","name":"a"}`, `type is "": want "expl" (only looks and reads) or "act" (changes, runs, checks)`},
		{"another type", nil, `{"action":"start","name":"a","type":"EXPL"}`, `type is "EXPL": want "expl" (only looks and reads) or "act" (changes, runs, checks)`},
		{"name used", explored, startA, `name "a" was used by an earlier exploration: each name is used once, take another`},
		{"name used by an action", []string{startA, endA, startB, end}, `{"action":"start","name":"b","type":"expl"}`, `name "b" was used by an earlier action: each name is used once, take another`},
		{"an exploration is open", []string{startA}, `{"action":"start","name":"b","type":"expl"}`, `exploration "a" is open, and one is open at a time: end it first with {"action":"end","description":"what was learned"}`},
		{"an action is open", []string{startA, endA, startB}, `{"action":"start","name":"c","type":"expl"}`, `action "b" is open, and one is open at a time: end it first with {"action":"end"}`},
		{"an exploration with dependencies", explored, `{"action":"start","name":"b","type":"expl","dependencies":["a"]}`, `an exploration has no dependencies: leave them out, or start an action`},

		{"no dependencies", nil, `{"action":"start","name":"b","type":"act"}`, `dependencies is missing: name the closed explorations that this action builds on, or [] if there is none. ` + none},
		{"no dependencies, and there are some", explored, `{"action":"start","name":"b","type":"act"}`, `dependencies is missing: name the closed explorations that this action builds on, or [] if there is none. ` + one},
		{"dependencies null", nil, `{"action":"start","name":"b","type":"act","dependencies":null}`, `dependencies is missing: name the closed explorations that this action builds on, or [] if there is none. ` + none},
		{"dependencies that are a text", explored, `{"action":"start","name":"b","type":"act","dependencies":"a"}`, `dependencies is "a": want a list of names such as ["NAME"], or []`},
		{"dependencies of numbers", explored, `{"action":"start","name":"b","type":"act","dependencies":[1]}`, `dependencies is [1]: want a list of names such as ["NAME"], or []`},
		{"blank dependency", explored, `{"action":"start","name":"b","type":"act","dependencies":["a"," "]}`, `dependencies[1] is blank: leave it out, [] says that there is none. ` + one},
		{"dependency null", explored, `{"action":"start","name":"b","type":"act","dependencies":[null]}`, `dependencies[0] is blank: leave it out, [] says that there is none. ` + one},
		{"unknown dependency", explored, `{"action":"start","name":"b","type":"act","dependencies":["A"]}`, `dependencies[0], "A", is no episode of this conversation. ` + one},
		{"itself", explored, `{"action":"start","name":"b","type":"act","dependencies":["b"]}`, `dependencies[0] is the action itself. ` + one},
		{"an action as dependency", []string{startA, endA, startB, end}, `{"action":"start","name":"c","type":"act","dependencies":["b"]}`, `dependencies[0], "b", is an action: actions depend on explorations only. ` + one},
		{"too many dependencies", explored, `{"action":"start","name":"b","type":"act","dependencies":[` + strings.Repeat(`"a",`, 64) + `"a"]}`, `65 dependencies: at most 64`},

		{"nothing is open", nil, end, `no episode is open: start one with {"action":"start","name":"N","type":"expl"} or with "act" and dependencies`},
		{"another one is open", []string{startA}, `{"action":"end","name":"b","description":"d"}`, `name is "b", but exploration "a" is open: leave name out, end ends that one`},
		{"no description", []string{startA}, end, `description is missing: say in one or two sentences what exploration "a" found out, that is what stays of it`},
		{"blank description", []string{startA}, `{"action":"end","description":" \t"}`, `description is missing: say in one or two sentences what exploration "a" found out, that is what stays of it`},
		{"long description", []string{startA}, `{"action":"end","description":"` + strings.Repeat("d", 2001) + `"}`, `description has 2001 bytes, at most 2000: say what was learned in one or two sentences`},
		{"an action with a description", []string{startA, endA, startB}, endA, `an action ends without a description, what it did stands in the world: end action "b" with {"action":"end"}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := newTalk()
			for _, b := range row.before {
				c.reply(b)
				if c.answers[0].Refused {
					t.Fatalf("%s: %s", b, c.answers[0].Text)
				}
			}
			marks := marked(c.g)
			c.reply(row.call)
			if a := c.answers[0]; !a.Refused || a.Text != row.want {
				t.Errorf("%s\n got %v %s\nwant %s", row.call, a.Refused, a.Text, row.want)
			}
			c.reply("and on", "- read a.go")
			if now := marked(c.g); !slices.Equal(now, marks) {
				t.Errorf("%s was refused and changed %v to %v", row.call, marks, now)
			}
		})
	}
}

// TestBrokenArguments: whatever a provider hands on as arguments is refused as no object.
func TestBrokenArguments(t *testing.T) {
	for _, raw := range []string{`[]`, `"start"`, `1`, `true`, `{"action":`, `{"action":"start"`, ` `, `{}{}`} {
		c := newTalk()
		c.add(tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{{Type: tidemark.TypeToolUse, ID: "c", Name: episodes.ToolName, Input: []byte(raw)}}})
		want := `the arguments are no JSON object: want {"action":"start",…} or {"action":"end",…}`
		if a := c.g.Answer()["c"]; !a.Refused || a.Text != want {
			t.Errorf("%s: %v", raw, a)
		}
	}
}

// marked is what is marked in a graph.
func marked(g *episodes.Graph) (out []string) {
	for _, e := range g.Episodes() {
		if e.Type != episodes.Unmarked {
			out = append(out, fmt.Sprint(e, e.Open, e.Dependencies, e.Description))
		}
	}
	return out
}

// TestListOfExplorations: a refusal lists the newest 40, in their order, and how many there are beside.
func TestListOfExplorations(t *testing.T) {
	c := newTalk()
	for n := range 42 {
		c.reply(fmt.Sprintf(`{"action":"start","name":"x%d","type":"expl"}`, n), endA)
	}
	c.reply(`{"action":"start","name":"b","type":"act"}`)
	got := c.answers[0].Text
	if !strings.Contains(got, "Closed explorations: x2, x3, ") || !strings.HasSuffix(got, ", x40, x41 and 2 older.") {
		t.Error(got)
	}
}

// TestSchema: it is the paper's, and JSON.
func TestSchema(t *testing.T) {
	var s struct {
		Properties map[string]struct {
			Type string
			Enum []string
		}
		Required []string
	}
	if err := json.Unmarshal([]byte(episodes.Schema), &s); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"action": "string[start end]", "name": "string[]", "type": "string[expl act]", "dependencies": "array[]", "description": "string[]"} {
		if p := s.Properties[name]; fmt.Sprint(p.Type, p.Enum) != want {
			t.Errorf("%s is %v", name, p)
		}
	}
	if len(s.Properties) != 5 || !slices.Equal(s.Required, []string{"action"}) {
		t.Errorf("%v, required %v", s.Properties, s.Required)
	}
}
