package compaction

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cleanup"
)

// saying is a view of these messages, whose entries are e1, e2, …, a minute apart.
func saying(ms ...tidemark.Message) View {
	var v View
	for i, m := range ms {
		n := int64(i + 1)
		id := tidemark.EntryID(fmt.Sprintf("e%d", n))
		v.Items = append(v.Items, Item{ID: id, From: id, To: id, Seq: n, Last: n, Message: m, Tokens: tidemark.Estimate(m), At: time.Date(2026, 5, 2, 14, i, 0, 0, time.UTC)})
	}
	v.Size = v.Tokens()
	return v
}

// of is a message of blocks.
func of(role tidemark.Role, blocks ...tidemark.Block) tidemark.Message {
	return tidemark.Message{Role: role, Content: blocks}
}

// twoTurns is a view of two turns that are over, in which files were read, and of one that begins.
func twoTurns() View {
	read := func(id, path string) tidemark.Block {
		return tidemark.ToolUse(id, "read_file", fmt.Appendf(nil, `{"path":%q}`, path))
	}
	return saying(
		tidemark.NewText(tidemark.User, "look at f.go"),
		of(tidemark.Assistant, tidemark.Text("I read it"), read("c1", "f.go")),
		of(tidemark.User, tidemark.ToolResult("c1", strings.Repeat("line\n", 400), false)),
		tidemark.NewText(tidemark.Assistant, strings.Repeat("answer ", 100)),
		tidemark.NewText(tidemark.User, "and g.go?"),
		of(tidemark.Assistant, read("c2", "g.go"), tidemark.ToolUse("c3", "Bash", []byte(`{"command":"make"}`))),
		of(tidemark.User, tidemark.ToolResult("c2", strings.Repeat("g\n", 300), false), tidemark.ToolResult("c3", "ok", false)),
		of(tidemark.Assistant, tidemark.Block{Type: tidemark.TypeThinking, Text: "hm", Signature: "s"}, tidemark.Text(strings.Repeat("so it is ", 60))),
		tidemark.NewText(tidemark.User, "now?"))
}

var roomy = Budget{Window: 200_000, Reserve: 1000, Keep: 1000}

// TestTidyOperations is the table of what a model may ask for, what becomes of it, and why not.
func TestTidyOperations(t *testing.T) {
	drop := func(h string) cleanup.Op { return cleanup.Op{Verb: cleanup.Drop, Handle: h} }
	sum := func(h, text string) cleanup.Op { return cleanup.Op{Verb: cleanup.Summarize, Handle: h, Text: text} }
	anchor := func(h string) cleanup.Op { return cleanup.Op{Verb: cleanup.Anchor, Handle: h} }
	release := func(paths ...string) cleanup.Op { return cleanup.Op{Verb: cleanup.Release, Paths: paths} }
	collapse := func(from, to int) cleanup.Op {
		return cleanup.Op{Verb: cleanup.Collapse, From: from, To: to, Text: "it was read"}
	}
	const again, pinned = "another operation is of it", "it is pinned"
	for _, row := range []struct {
		ops   []cleanup.Op
		whys  string // of each, "-" for done
		edits string
	}{
		{[]cleanup.Op{drop("e4#0")}, "-", "e4#1"},
		{[]cleanup.Op{drop("e4")}, "-", "e4#1"},
		{[]cleanup.Op{drop("e2")}, "its message has several blocks: name one, as in ID#0", ""},
		{[]cleanup.Op{drop("e2#01")}, "it is no handle", ""},
		{[]cleanup.Op{drop("e2#x")}, "it is no handle", ""},
		{[]cleanup.Op{drop("e2#2")}, "its message has no such block", ""},
		{[]cleanup.Op{drop("e2#-1")}, "its message has no such block", ""},
		{[]cleanup.Op{drop("e99#0")}, "it is not in the context", ""},
		{[]cleanup.Op{drop("c9")}, "it is not in the context", ""},
		{[]cleanup.Op{drop("c1#0")}, "it is not in the context", ""},
		{[]cleanup.Op{drop("c1")}, "-", "e3#1"},
		{[]cleanup.Op{drop("c3")}, "a stub would be no shorter", ""},
		{[]cleanup.Op{drop("c2"), drop("e7#0")}, "-|" + again, "e7#1"},
		{[]cleanup.Op{drop("e2#1")}, "a block of type tool_use stays", ""},
		{[]cleanup.Op{drop("e8#0")}, "a block of type thinking stays", ""},
		{[]cleanup.Op{drop("e8#1"), sum("e4#0", "so")}, "-|-", "e8#2 e4#1"},
		{[]cleanup.Op{sum("e7#0", "all g")}, "-", "e7#1"},
		{[]cleanup.Op{sum("e1#0", "so")}, "a note would be no shorter", ""},
		{[]cleanup.Op{drop("e9#0")}, "it is what was asked last", ""},
		{[]cleanup.Op{drop("e4#0"), anchor("e4#0")}, pinned + "|-", ""},
		{[]cleanup.Op{drop("e4#0"), sum("e4#0", "so")}, "-|" + again, "e4#1"},
		{[]cleanup.Op{collapse(1, 1)}, "-", "e1-e4"},
		{[]cleanup.Op{collapse(2, 2)}, "-", "e5-e8"},
		{[]cleanup.Op{collapse(1, 2)}, "-", "e1-e8"},
		{[]cleanup.Op{collapse(1, 3)}, "there are turns 1 to 2 that may leave, the newest stays", ""},
		{[]cleanup.Op{collapse(1, 1), collapse(2, 2)}, "-|-", "e1-e4 e5-e8"},
		{[]cleanup.Op{collapse(2, 2), collapse(1, 1)}, "-|-", "e5-e8 e1-e4"},
		{[]cleanup.Op{collapse(1, 2), collapse(2, 2)}, "-|another operation is of these turns", "e1-e8"},
		{[]cleanup.Op{collapse(2, 2), collapse(1, 2)}, "-|another operation is of these turns", "e5-e8"},
		{[]cleanup.Op{drop("e4#0"), collapse(1, 1)}, "-|-", "e1-e4"},
		{[]cleanup.Op{sum("e4#0", "so"), collapse(1, 1)}, "its turn is collapsed|-", "e1-e4"},
		{[]cleanup.Op{drop("e8#1"), collapse(1, 1)}, "-|-", "e1-e4 e8#2"},
		{[]cleanup.Op{collapse(1, 1), anchor("c1"), anchor("c1")}, "-|-|-", "e1-e4+e2+e3"},
		{[]cleanup.Op{{Verb: cleanup.Collapse, From: 1, To: 1, Text: strings.Repeat("long ", 2000)}}, "a note would be no shorter", ""},
		{[]cleanup.Op{release("g.go", "f.go")}, "-", "e7#1 e3#1"},
		{[]cleanup.Op{release("none.go", "f.go", "e2#0")}, "nothing of it is in the context", "e3#1"},
		{[]cleanup.Op{release("e4#0", "f.go")}, "-", "e4#1 e3#1"},
		{[]cleanup.Op{release("e9"), release("c1")}, "it is what was asked last|-", "e3#1"},
		{[]cleanup.Op{release("f.go"), collapse(1, 1)}, "-|-", "e1-e4"},
	} {
		var p Paging
		got := p.Tidy(twoTurns(), roomy, row.ops)
		var whys, ops []string
		for i, d := range got.Done {
			why := d.Why
			if why == "" {
				why = "-"
			}
			whys, ops = append(whys, why), append(ops, fmt.Sprint(d.Op.Verb, " ", d.Op.Handle, d.Op.Paths, d.Op.From))
			if !reflect.DeepEqual(d.Op, row.ops[i]) {
				t.Errorf("operation %d is told as %+v", i, d.Op)
			}
		}
		if w, e := strings.Join(whys, "|"), toldAll(got.Edits); w != row.whys || e != row.edits {
			t.Errorf("%v: %s, edits %q; want %s, %q", ops, w, e, row.whys, row.edits)
		}
	}
}

// TestTidyNotes: the texts that stand in the place of what a model put away, what is told of them, and what leaves with them.
func TestTidyNotes(t *testing.T) {
	v := twoTurns()
	size := func(i, n int) int { return len(v.Items[i].Message.Content[n].AppendJSON(nil)) }
	var p Paging
	got := p.Tidy(v, roomy, []cleanup.Op{{Verb: cleanup.Collapse, From: 1, To: 1, Text: "f.go was read"}, {Verb: cleanup.Anchor, Handle: "e1"}, {Verb: cleanup.Anchor, Handle: "c1"}, {Verb: cleanup.Anchor, Handle: "e1#0"},
		{Verb: cleanup.Drop, Handle: "e8#1"}, {Verb: cleanup.Summarize, Handle: "c2", Text: "all g"}})
	want := []string{
		`e1-e4+e1+e2+e3 [{"role":"user","content":"[Turn 1, 1 messages, as the assistant itself summed them up; no person wrote this:\nf.go was read\nWhat was said, from 2026-05-02 14:00:00 on: recall with {\"entry\": \"e1\"} reads it or by recall with a query.]"}] [] {"cleanup":{"from":1,"messages":1,"to":1,"verb":"collapse"}}`,
		fmt.Sprintf(`e8#2 [] [{"type":"text","text":"[Dropped by the assistant: %d bytes. recall with {\"entry\": \"e8#1\"} reads it.]"}] {"cleanup":{"from":0,"messages":0,"to":0,"verb":"drop"}}`, size(7, 1)),
		fmt.Sprintf(`e7#1 [] [{"type":"tool_result","tool_use_id":"c2","content":"[The assistant's own summary of %d bytes: all g\nWhat stood here: recall with {\"entry\": \"e7#0\"} reads it.]"}] {"cleanup":{"from":0,"messages":0,"to":0,"verb":"summarize"}}`, size(6, 0)),
	}
	for i, e := range got.Edits {
		if s := fmt.Sprintf("%s %s %s %s", told(e), jsonOf(t, e.Messages), jsonOf(t, e.Blocks), e.Data); i >= len(want) || s != want[i] {
			t.Errorf("edit %d is\n%s", i, s)
		}
	}
	if len(got.Edits) != 3 || fmt.Sprint(got.Pins) != "[e1 e3]" || got.Last != 4 || got.Pruned != 1 {
		t.Errorf("%d edits, pinned %v, %d messages up to %d", len(got.Edits), got.Pins, got.Pruned, got.Last)
	}
	for i, want := range []bool{true, false, false} {
		if Collapsed(got.Edits[i]) != want {
			t.Errorf("edit %d is of whole turns: %v", i, !want)
		}
	}
	for _, e := range []tidemark.Edit{{From: "e1", To: "e2"}, {Data: []byte(`{"cleanup":{"verb":"drop"}}`)}, {Data: []byte(`{}`)}, {Data: []byte(`{`)}, {Block: 1, Data: got.Edits[0].Data}} {
		if Collapsed(e) {
			t.Errorf("%+v is of whole turns", e)
		}
	}
	both := p.Tidy(v, roomy, []cleanup.Op{{Verb: cleanup.Collapse, From: 2, To: 2, Text: "g"}, {Verb: cleanup.Collapse, From: 1, To: 1, Text: "f"}})
	if both.Last != 8 || both.Pruned != 8 {
		t.Errorf("of both turns %d messages up to %d", both.Pruned, both.Last)
	}
	all := p.Tidy(v, roomy, []cleanup.Op{{Verb: cleanup.Collapse, From: 1, To: 2, Text: "g"}})
	if text := all.Edits[0].Messages[0].PlainText(); !strings.HasPrefix(text, "[Turns 1 to 2, 8 messages, as the") {
		t.Error(text)
	}
}

// jsonOf is a list of messages or blocks as JSON.
func jsonOf[T interface{ AppendJSON([]byte) []byte }](t *testing.T, list []T) string {
	t.Helper()
	out := make([]string, len(list))
	for i, x := range list {
		out[i] = string(x.AppendJSON(nil))
	}
	return "[" + strings.Join(out, ",") + "]"
}

// TestTidyHeld: what somebody pinned or brought back, and an exchange that somebody spoke into, does not leave; a note
// has to be shorter than what it stands for, by what a list of blocks takes more than a string.
func TestTidyHeld(t *testing.T) {
	drop := func(h string) []cleanup.Op { return []cleanup.Op{{Verb: cleanup.Drop, Handle: h}} }
	why := func(v View, p *Paging, ops []cleanup.Op) string {
		done := p.Tidy(v, roomy, ops).Done
		return done[len(done)-1].Why
	}
	v := twoTurns()
	v.Items[3].Pinned, v.Back = true, map[tidemark.EntryID][]int{"e3": {1}, "e8": {1}}
	for h, want := range map[string]string{"e4": "it is pinned", "c1": "a person brought it back", "e8#1": ""} {
		if got := why(v, &Paging{}, drop(h)); got != want {
			t.Errorf("%s: %q, want %q", h, got, want)
		}
	}
	if got := why(saying(tidemark.NewText(tidemark.Assistant, "hello")), &Paging{}, []cleanup.Op{{Verb: cleanup.Collapse, From: 1, To: 1, Text: "x"}}); got != "there are turns 1 to 0 that may leave, the newest stays" {
		t.Errorf("of no turns: %q", got)
	}
	parted := saying(tidemark.NewText(tidemark.User, strings.Repeat("go ", 99)), of(tidemark.Assistant, tidemark.ToolUse("c", "run", nil)), tidemark.NewText(tidemark.User, "and?"), of(tidemark.User, tidemark.ToolResult("c", "done", false)), tidemark.NewText(tidemark.User, "so"))
	for from := 1; from <= 2; from++ {
		if got := why(parted, &Paging{}, []cleanup.Op{{Verb: cleanup.Collapse, From: from, To: from, Text: "x"}}); got != "a call would be parted from its result" {
			t.Errorf("turn %d: %q", from, got)
		}
	}
	if got := why(twoTurns(), &Paging{Policy: "none"}, []cleanup.Op{{Verb: cleanup.Release, Paths: []string{"f.go"}}}); got != "it is not in the context" {
		t.Errorf("without a pager: %q", got)
	}
	if got := (&Paging{Policy: "none"}).Tidy(twoTurns(), roomy, drop("c1")).Edits; len(got) != 1 || !strings.HasPrefix(got[0].Blocks[0].Content[0].Text, "[Dropped by the assistant: ") {
		t.Errorf("without a pager: %+v", got)
	}
	huge := tidemark.Block{Type: tidemark.TypeImage, Source: &tidemark.Source{Type: "base64", Bytes: RecallBytes}}
	if got := why(saying(of(tidemark.User, huge), tidemark.NewText(tidemark.User, "so")), &Paging{}, drop("e1")); got != "it could not be recalled" {
		t.Errorf("of a picture that is too large: %q", got)
	}
	summed := scriptedView("L=900 u")
	summed.Items[0].ID = "o"
	if got := why(summed, &Paging{}, drop("o#0")); got != "it is not in the context" {
		t.Errorf("what stands for a span: %q", got)
	}
	out, err := Preview(twoTurns(), (&Paging{}).Tidy(twoTurns(), roomy, drop("e4")).Edits, roomy) // the note for it may be longer than the one that stands there
	if err != nil {
		t.Fatal(err)
	}
	if got := (&Paging{}).Tidy(out, roomy, []cleanup.Op{{Verb: cleanup.Summarize, Handle: "e4", Text: strings.Repeat("so it was ", 9)}}); toldAll(got.Edits) != "e4#1" {
		t.Errorf("of what is out a summary: %+v", got.Done)
	}
	odd := saying(of(tidemark.Assistant, tidemark.ToolUse("call#4", "run", nil)), of(tidemark.User, tidemark.ToolResult("call#4", strings.Repeat("line\n", 400), false)), tidemark.NewText(tidemark.User, "so"))
	if got := (&Paging{}).Tidy(odd, roomy, drop("call#4")); toldAll(got.Edits) != "e2#1" {
		t.Errorf("a call whose id has a number sign: %+v", got)
	}
	done := 0
	for n := 40; n < 160; n++ {
		v := saying(of(tidemark.Assistant, tidemark.Text(strings.Repeat("x", n))), tidemark.NewText(tidemark.User, "so"))
		raw := len(v.Items[0].Message.Content[0].AppendJSON(nil))
		note := tidemark.Text(fmt.Sprintf(`[Dropped by the assistant: %d bytes. recall with {"entry": "e1#0"} reads it.]`, raw))
		if short := len(note.AppendJSON(nil))+32 < raw; (why(v, &Paging{}, drop("e1")) == "") != short {
			t.Errorf("%d bytes leave for a note of %d: %v", raw, len(note.AppendJSON(nil)), !short)
		} else if short {
			done++
		}
	}
	if done < 10 || done > 110 {
		t.Errorf("%d of 120 leave", done)
	}
}

// TestTidiedRefuse: whole turns are taken back alone, or everything.
func TestTidiedRefuse(t *testing.T) {
	made := func() Tidied {
		return Tidied{Done: []Tidy{{cleanup.Op{Verb: cleanup.Drop}, ""}, {cleanup.Op{Verb: cleanup.Collapse}, ""}, {cleanup.Op{Verb: cleanup.Collapse}, "was so"}},
			Edits: []tidemark.Edit{{From: "e1", Block: 1}, {From: "e2", To: "e3"}}, Pins: []tidemark.EntryID{"e4"}, Last: 3, Pruned: 2}
	}
	some, all := made(), made()
	some.Refuse(false, "later")
	all.Refuse(true, "later")
	for _, row := range []struct {
		got  Tidied
		want string
	}{{some, "[ later was so] e1#1 [e4] 0 0"}, {all, "[later later was so]  [] 0 0"}} {
		whys := []string{row.got.Done[0].Why, row.got.Done[1].Why, row.got.Done[2].Why}
		if got := fmt.Sprint(whys, " ", toldAll(row.got.Edits), " ", row.got.Pins, " ", row.got.Last, " ", row.got.Pruned); got != row.want {
			t.Errorf("%s, want %s", got, row.want)
		}
	}
}
