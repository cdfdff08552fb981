package compaction

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cleanup"
)

// TestUntagged: the tags of a reply are taken out of its texts, and what it was is told by block; of nothing but tags people
// read that the context was tidied.
func TestUntagged(t *testing.T) {
	const tags = "<memory_cleanup>\ndrop: block:A#0\n</memory_cleanup>"
	ops := []cleanup.Op{{Verb: cleanup.Drop, Handle: "A#0"}}
	call, thinking := tidemark.ToolUse("c", "run", nil), tidemark.Block{Type: tidemark.TypeThinking, Text: tags}
	for _, row := range []struct {
		name      string
		was, now  []tidemark.Block
		wishes    Wishes
		unchanged bool
	}{
		{"no text", []tidemark.Block{thinking, call}, nil, Wishes{}, true},
		{"no tags", []tidemark.Block{tidemark.Text("a < b"), call}, nil, Wishes{}, true},
		{"tags that are not closed", []tidemark.Block{tidemark.Text("a\n<memory_cleanup>\ndrop: block:A")}, nil, Wishes{}, true},
		{"behind words", []tidemark.Block{tidemark.Text("a\n" + tags)}, []tidemark.Block{tidemark.Text("a\n")}, Wishes{ops, []int{0}, []string{"a\n" + tags}}, false},
		{"nothing else", []tidemark.Block{tidemark.Text(tags)}, []tidemark.Block{tidemark.Text(TidyOnly)}, Wishes{ops, []int{0}, []string{tags}}, false},
		{"nothing but blanks", []tidemark.Block{tidemark.Text("\n" + tags + "\n\n")}, []tidemark.Block{tidemark.Text(TidyOnly)}, Wishes{ops, []int{0}, []string{"\n" + tags + "\n\n"}}, false},
		{"beside thinking", []tidemark.Block{thinking, tidemark.Text(tags)}, []tidemark.Block{thinking, tidemark.Text(TidyOnly)}, Wishes{ops, []int{1}, []string{tags}}, false},
		{"before a call", []tidemark.Block{tidemark.Text(tags), call}, []tidemark.Block{call}, Wishes{ops, []int{0}, []string{tags}}, false},
		{"in two of three texts", []tidemark.Block{tidemark.Text("a\n" + tags + "\n"), call, tidemark.Text("b\n"), tidemark.Text(tags)}, []tidemark.Block{tidemark.Text("a\n"), call, tidemark.Text("b\n")},
			Wishes{append(ops, ops...), []int{0, 3}, []string{"a\n" + tags + "\n", tags}}, false},
	} {
		m := tidemark.Message{Role: tidemark.Assistant, Content: row.was}
		got, wishes := Untagged(m)
		if row.unchanged {
			row.now = row.was
		}
		if got.Role != tidemark.Assistant || string(got.AppendJSON(nil)) != string(tidemark.Message{Role: tidemark.Assistant, Content: row.now}.AppendJSON(nil)) || !reflect.DeepEqual(wishes, row.wishes) {
			t.Errorf("%s: %s, %+v", row.name, got.AppendJSON(nil), wishes)
		}
	}
}

// TestTidiedLine: what people read of it, by verb, and what was not done.
func TestTidiedLine(t *testing.T) {
	done := func(why string, verbs ...string) (out []Tidy) {
		for _, v := range verbs {
			out = append(out, Tidy{cleanup.Op{Verb: v}, why})
		}
		return out
	}
	for _, row := range []struct {
		done []Tidy
		want string
	}{
		{nil, "nothing asked for"},
		{done("", "drop"), "1 dropped"},
		{done("why", "drop"), "1 not done"},
		{append(done("", "collapse", "drop", "anchor", "release", "drop", "summarize"), done("why", "drop", "anchor")...), "2 dropped, 1 summarized, 1 anchored, 1 released, 1 collapsed, 2 not done"},
	} {
		if got := (Tidied{Done: row.done}).Line(7); got != "The model tidied its context: "+row.want+"; 7 tokens less, all of it stays in the log" {
			t.Error(got)
		}
	}
}

// TestTidiedRefusals: the model is told what was not done, the first eight, and names in so many characters.
func TestTidiedRefusals(t *testing.T) {
	refused := func(n int) (out []Tidy) {
		for i := range n {
			out = append(out, Tidy{cleanup.Op{Verb: "drop", Handle: fmt.Sprint("e", i)}, "no"})
		}
		return out
	}
	const head = "Of what you asked for to tidy the context this was not done: "
	for _, row := range []struct {
		done []Tidy
		want string
	}{
		{nil, ""},
		{[]Tidy{{cleanup.Op{Verb: "drop", Handle: "e1"}, ""}}, ""},
		{[]Tidy{{cleanup.Op{Verb: "drop", Handle: "e1#0"}, "it is pinned"}, {cleanup.Op{Verb: "release", Paths: []string{"a.go", "b.go"}}, "nothing of it"}, {cleanup.Op{Verb: "collapse", From: 2, To: 4}, "so"}},
			head + "drop e1#0: it is pinned; release a.go, b.go: nothing of it; collapse turns 2-4: so."},
		{[]Tidy{{cleanup.Op{Verb: "drop", Handle: strings.Repeat("x", 61)}, "no"}}, head + "drop " + strings.Repeat("x", 60) + "…: no."},
		{[]Tidy{{cleanup.Op{Verb: "drop", Handle: strings.Repeat("x", 60)}, "no"}}, head + "drop " + strings.Repeat("x", 60) + ": no."},
		{refused(8), head + "drop e0: no; drop e1: no; drop e2: no; drop e3: no; drop e4: no; drop e5: no; drop e6: no; drop e7: no."},
		{refused(9), head + "drop e0: no; drop e1: no; drop e2: no; drop e3: no; drop e4: no; drop e5: no; drop e6: no; drop e7: no."},
	} {
		if got := (Tidied{Done: row.done}).Refusals(); got != row.want {
			t.Errorf("%s\nwant %s", got, row.want)
		}
	}
}

// TestCopies: of a path one reads back what is out of the view, or else its newest copy in it.
func TestCopies(t *testing.T) {
	read := func(id string) tidemark.Message {
		return of(tidemark.Assistant, tidemark.ToolUse(id, "read_file", []byte(`{"path":"f.go"}`)))
	}
	v := saying(tidemark.NewText(tidemark.User, "look"), read("c1"), of(tidemark.User, tidemark.ToolResult("c1", strings.Repeat("old\n", 400), false)),
		read("c2"), of(tidemark.User, tidemark.Text("see"), tidemark.ToolResult("c2", strings.Repeat("new\n", 400), false)), tidemark.NewText(tidemark.Assistant, "so"), tidemark.NewText(tidemark.User, "now?"))
	copies := func(v View, path string) string {
		var p Paging
		out := ""
		for _, c := range p.Copies(v, roomy, path) {
			out += fmt.Sprintf("%s %d %d %s %s %v;", c.Entry, c.Block, c.Seq, c.At.Format("15:04"), c.Path, c.Out)
		}
		return out
	}
	if got := copies(v, "f.go"); got != "e5 1 5 14:04 f.go false;" {
		t.Errorf("in the view: %s", got)
	}
	if got := copies(v, "g.go"); got != "" {
		t.Errorf("of another: %s", got)
	}
	var p Paging
	out, err := Preview(v, p.Tidy(v, roomy, []cleanup.Op{{Verb: cleanup.Drop, Handle: "c1"}, {Verb: cleanup.Drop, Handle: "c2"}}).Edits, roomy)
	if err != nil {
		t.Fatal(err)
	}
	if got := copies(out, "f.go"); got != "e5 1 5 14:04 f.go true;" {
		t.Errorf("out of it: %s", got)
	}
	if got := (&Paging{Policy: "none"}).Copies(v, roomy, "f.go"); got != nil {
		t.Errorf("without a pager: %+v", got)
	}
	for _, row := range []struct {
		tool, input, files string
		changes            bool
	}{
		{"read_file", `{"path":"a/../f.go"}`, "[f.go]", false},
		{"write_file", `{"path":"f.go"}`, "[f.go]", true},
		{"apply_patch", `{"input":"*** Update File: a.go\n*** Add File: b.go\n"}`, "[a.go b.go]", true},
		{"Bash", `{"command":"make"}`, "[]", false},
	} {
		if files, changes := p.Path(tidemark.ToolUse("c", row.tool, []byte(row.input))); fmt.Sprint(files) != row.files || changes != row.changes {
			t.Errorf("%s of %s: %v, %v", row.tool, row.input, files, changes)
		}
	}
	if !(&Paging{}).Cooperates() || (&Paging{Alone: true}).Cooperates() {
		t.Error("tags are text where the model is not told of them, and nowhere else")
	}
}
