package compaction

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// blockFrom is a block as it came.
func blockFrom(t *testing.T, raw string) tidemark.Block {
	t.Helper()
	var b tidemark.Block
	if err := b.UnmarshalJSON([]byte(raw)); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestMessages is the table of what is sent of what stands in a view: roles alternate, each call has its result, nothing is empty.
func TestMessages(t *testing.T) {
	user := func(s string) tidemark.Message { return tidemark.NewText(tidemark.User, s) }
	bot := func(s string) tidemark.Message { return tidemark.NewText(tidemark.Assistant, s) }
	system := func(s string) tidemark.Message { return tidemark.NewText(tidemark.System, s) }
	call := func(id string) tidemark.Block { return tidemark.ToolUse(id, "run", nil) }
	result := func(id, s string) tidemark.Block { return tidemark.ToolResult(id, s, false) }
	thinking := tidemark.Block{Type: tidemark.TypeThinking, Text: "hm", Signature: "s"}
	image := tidemark.Block{Type: tidemark.TypeImage}
	unknown := blockFrom(t, `{"a":1}`)
	for _, row := range []struct {
		name string
		ms   []tidemark.Message
		want string // roles by their first letter, and blocks
	}{
		{"nothing", nil, ""},
		{"as it is", []tidemark.Message{user("a"), bot("b"), user("c")}, "u a / a b / u c"},
		{"the assistant first", []tidemark.Message{bot("a"), user("b")}, "u [The conversation begins here.] / a a / u b"},
		{"two of one role", []tidemark.Message{user("a"), user("b"), bot("c"), bot("d"), user("e")}, "u a | b / a c | d / u e"},
		{"empty texts", []tidemark.Message{user(" \n"), of(tidemark.User, tidemark.Text(""), tidemark.Text("a"), tidemark.Text(" ")), bot(""), user("b")}, "u a | b"},
		{"a block without a type", []tidemark.Message{of(tidemark.User, unknown, tidemark.Text("b"))}, `u {"a":1} | b`},
		{"a system message behind the user's", []tidemark.Message{user("a"), system("s"), bot("b"), user("c")}, "u a / s s / a b / u c"},
		{"before it", []tidemark.Message{system("s"), user("a"), bot("b")}, "u a / s s / a b"},
		{"two of them", []tidemark.Message{user("a"), system("s"), system("t"), bot("b")}, "u a / s s | t / a b"},
		{"one at the end", []tidemark.Message{user("a"), bot("b"), user("c"), system("s")}, "u a / a b / u c / s s"},
		{"one that waits", []tidemark.Message{user("a"), bot("b"), system("s"), bot("c"), user("d"), bot("e")}, "u a / a b | c / u d / s s / a e"},
		{"one without a place", []tidemark.Message{user("a"), bot("b"), system("s")}, "u a / a b"},
		{"one that has no text", []tidemark.Message{user("a"), of(tidemark.System, image), bot("b")}, "u a / a b"},
		{"one that only counts", []tidemark.Message{user("a"), system("<total_tokens>9</total_tokens>"), bot("b")}, "u a / a b"},
		{"a role that no API has", []tidemark.Message{user("a"), bot("b"), of("function", tidemark.Text("c"), image, result("x", "d"), call("y"))}, "u a / a b / u [function] | c | image | d | [tool_use]"},
		{"and nothing in it", []tidemark.Message{user("a"), of("function", tidemark.Text(" ")), bot("b")}, "u a / a b"},
		{"a call that was answered", []tidemark.Message{user("a"), of(tidemark.Assistant, call("1")), of(tidemark.User, result("1", "r"))}, "u a / a call 1 / u result 1 r"},
		{"one that was not", []tidemark.Message{user("a"), of(tidemark.Assistant, call("1"), call("2")), of(tidemark.User, result("2", "r")), bot("b")},
			"u a / a call 1 | call 2 / u error 1 [No result was recorded for this call.] | result 2 r / a b"},
		{"at the end", []tidemark.Message{user("a"), of(tidemark.Assistant, call("1"))}, "u a / a call 1 / u error 1 [No result was recorded for this call.]"},
		{"before a system message", []tidemark.Message{user("a"), of(tidemark.Assistant, tidemark.Text("b"), call("1")), system("s"), user("c")}, "u a / a b | call 1 / u error 1 [No result was recorded for this call.] | c / s s"},
		{"results out of order", []tidemark.Message{user("a"), of(tidemark.Assistant, call("1"), call("2")), of(tidemark.User, tidemark.Text("t"), result("2", "q"), result("1", "r"))}, "u a / a call 1 | call 2 / u result 1 r | result 2 q | t"},
		{"in another order", []tidemark.Message{user("a"), of(tidemark.Assistant, call("1"), call("2")), of(tidemark.User, result("2", "q"), result("1", "r"))}, "u a / a call 1 | call 2 / u result 2 q | result 1 r"},
		{"a result of no call", []tidemark.Message{user("a"), bot("b"), of(tidemark.User, result("9", "r"), tidemark.Text("c"))}, "u a / a b / u [result of an earlier call] r | c"},
		{"a result twice", []tidemark.Message{user("a"), of(tidemark.Assistant, call("1")), of(tidemark.User, result("1", "r"), result("1", "q"))}, "u a / a call 1 / u result 1 r | [result of an earlier call] q"},
		{"an id again", []tidemark.Message{user("a"), of(tidemark.Assistant, call("1")), of(tidemark.User, result("1", "r")), of(tidemark.Assistant, call("1"), call("2")), of(tidemark.User, result("1", "q"), result("2", "p"))},
			"u a / a call 1 / u result 1 r / a [tool_use run {}] | call 2 / u result 2 p | [result of an earlier call] q"},
		{"a call without an id", []tidemark.Message{user("a"), of(tidemark.Assistant, call("")), user("b")}, "u a / a [tool_use run {}] / u b"},
		{"without a name", []tidemark.Message{user("a"), of(tidemark.Assistant, tidemark.ToolUse("1", "", nil)), user("b")}, "u a / a [tool_use  {}] / u b"},
		{"a result of the assistant's", []tidemark.Message{user("a"), of(tidemark.Assistant, result("1", "r")), user("b")}, "u a / a [tool_result  ] / u b"},
		{"a call of the user's", []tidemark.Message{of(tidemark.User, tidemark.Text("a"), call("1")), bot("b")}, "u a | [tool_use run {}] / a b"},
		{"thinking behind words", []tidemark.Message{user("a"), bot("b"), of(tidemark.Assistant, thinking, tidemark.Text("c")), user("d")}, "u a / a b / u [The assistant goes on.] / a thinking | c / u d"},
		{"words behind thinking", []tidemark.Message{user("a"), of(tidemark.Assistant, thinking), bot("b"), user("d")}, "u a / a thinking | b / u d"},
	} {
		v := saying(row.ms...)
		before := make([]string, len(row.ms))
		for i, m := range row.ms {
			before[i] = string(m.AppendJSON(nil))
		}
		sent := v.Messages()
		if got := sentAs(sent); got != row.want {
			t.Errorf("%s: %s\nwant %s", row.name, got, row.want)
		}
		if err := tidemark.Check(sent); err != nil && len(sent) > 0 {
			t.Errorf("%s: %v", row.name, err)
		}
		for i, m := range row.ms {
			if string(m.AppendJSON(nil)) != before[i] {
				t.Errorf("%s: the log's message %d changed", row.name, i)
			}
		}
	}
}

// sentAs is what is sent, as text.
func sentAs(ms []tidemark.Message) string {
	var out []string
	for _, m := range ms {
		blocks := make([]string, len(m.Content))
		for i, b := range m.Content {
			switch b.Type {
			case tidemark.TypeText:
				blocks[i] = b.Text
			case tidemark.TypeToolUse:
				blocks[i] = "call " + b.ID
			case tidemark.TypeToolResult:
				blocks[i] = map[bool]string{false: "result ", true: "error "}[b.IsError] + b.ToolUseID + " " + resultText(b)
			default:
				blocks[i] = b.Type
			}
		}
		out = append(out, string(m.Role[:1])+" "+strings.Join(blocks, " | "))
	}
	return strings.Join(out, " / ")
}

// TestSentAsItCame: what needs no repair is sent to the byte, a string as a string.
func TestSentAsItCame(t *testing.T) {
	for _, raw := range []string{`{"role":"user","content":"a"}`, `{"role":"user","content":[{"text":"a","type":"text","x":1.0}]}`} {
		var m tidemark.Message
		if err := m.UnmarshalJSON([]byte(raw)); err != nil {
			t.Fatal(err)
		}
		if got := saying(m).Messages(); len(got) != 1 || string(got[0].AppendJSON(nil)) != raw {
			t.Errorf("%s is sent as %+v", raw, got)
		}
	}
}

// TestResultText: the texts of a result by lines, what is none by its type.
func TestResultText(t *testing.T) {
	image := tidemark.Block{Type: tidemark.TypeImage}
	for want, content := range map[string][]tidemark.Block{
		"[empty]": nil, "a": {tidemark.Text("a")}, "a\nb": {tidemark.Text("a"), tidemark.Text("b")}, "[image]\na\n[image]": {image, tidemark.Text("a"), image}, "b": {tidemark.Text(""), tidemark.Text("b")},
	} {
		if got := resultText(tidemark.Block{Type: tidemark.TypeToolResult, Content: content}); got != want {
			t.Errorf("%+v: %q, want %q", content, got, want)
		}
	}
}

// TestNeedsPayload: a message need not be read where each of its blocks was replaced.
func TestNeedsPayload(t *testing.T) {
	block := func(seq int64, n int) Placed { return Placed{From: seq, Block: n} }
	for _, row := range []struct {
		blocks int
		shown  []Placed
		want   bool
	}{
		{1, nil, true}, {0, nil, true}, {1, []Placed{block(7, 1)}, false}, {2, []Placed{block(7, 1)}, true}, {2, []Placed{block(7, 1), block(7, 2)}, false}, {2, []Placed{block(7, 1), block(7, 1)}, true},
		{1, []Placed{block(8, 1)}, true}, {1, []Placed{{From: 7, To: 9}}, true}, {2, []Placed{block(7, 1), {From: 7, To: 7}}, true}, {0, []Placed{block(7, 1)}, true},
	} {
		if got := NeedsPayload(tidemark.Skeleton{Seq: 7, Blocks: row.blocks}, row.shown); got != row.want {
			t.Errorf("%d blocks, %+v: %v", row.blocks, row.shown, got)
		}
	}
}

// TestAssemble: entries and what replaces spans stand in the order of the log, with what is known of each; of two edits for
// one block the later row is shown, and of one row the later edit.
func TestAssemble(t *testing.T) {
	at := time.Date(2026, 5, 2, 14, 32, 0, 0, time.UTC)
	reply := &tidemark.Call{Model: "m"}
	entry := func(seq int64, role tidemark.Role, texts ...string) Visible {
		m := tidemark.Message{Role: role}
		for _, s := range texts {
			m.Content = append(m.Content, tidemark.Text(s))
		}
		return Visible{Message: m, Source: "source", Call: reply, Skeleton: tidemark.Skeleton{ID: tidemark.EntryID(fmt.Sprint("e", seq)), Seq: seq, At: at, Role: role, Tokens: 100, Blocks: len(texts)}}
	}
	edit := func(row int64, n, block int, texts ...string) Replacement {
		r := Replacement{Placed: Placed{Overlay: tidemark.EntryID(fmt.Sprint("o", row)), Row: row, N: n, From: 4, To: 4, Block: block}, Edit: tidemark.Edit{From: "e4", Block: block, Data: []byte(fmt.Sprint(row))}}
		for _, s := range texts {
			r.Edit.Blocks = append(r.Edit.Blocks, tidemark.Text(s))
		}
		return r
	}
	span := func(row, from, to int64, texts ...string) Replacement {
		r := Replacement{Placed: Placed{Overlay: tidemark.EntryID(fmt.Sprint("o", row)), Row: row, N: 2, From: from, To: to}, Edit: tidemark.Edit{From: tidemark.EntryID(fmt.Sprint("e", from)), To: tidemark.EntryID(fmt.Sprint("e", to)), Data: []byte(`1`)}}
		for _, s := range texts {
			r.Edit.Messages = append(r.Edit.Messages, tidemark.NewText(tidemark.User, s))
		}
		return r
	}
	v, err := Assemble([]Visible{entry(3, tidemark.User, "three"), entry(4, tidemark.Assistant, "a", "b", "c", "d"), entry(8, tidemark.User)},
		[]Replacement{span(20, 9, 9, "nine"), span(21, 1, 2, "one", "two"), edit(22, 1, 2, "B1", "B2"), edit(22, 0, 2, "no"), edit(19, 5, 2, "no"), edit(23, 7, 3), span(24, 4, 4, "before")})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	var size tidemark.Tokens
	for _, it := range v.Items {
		s := fmt.Sprintf("%s %s-%s %d-%d %s.%d row %d, %s, %d, %s, %v %v:", it.ID, it.From, it.To, it.Seq, it.Last, it.Overlay, it.Edit, it.Row, it.Source, it.Whole, it.Data, it.At.Equal(at), it.Call == reply)
		for _, b := range it.Message.Content {
			s += " " + b.Text
		}
		for _, x := range it.Stubbed {
			s += fmt.Sprintf(" [%d at %d, %d of %d, %s]", x.Block, x.At, x.Many, x.Row, x.Data)
		}
		if it.Stubs != len(it.Stubbed) || (it.ID != "e3") != (it.Tokens == tidemark.Estimate(it.Message)) {
			t.Errorf("%s: %d stubs, %d tokens", it.ID, it.Stubs, it.Tokens)
		}
		got, size = append(got, s), size+it.Tokens
	}
	want := []string{
		"o21 e1-e2 1-2 o21.2 row 21, system, 0, 1, false false: one",
		"o21 e1-e2 1-2 o21.2 row 21, system, 0, 1, false false: two",
		"e3 e3-e3 3-3 .0 row 0, source, 0, , true true: three",
		"o24 e4-e4 4-4 o24.2 row 24, system, 0, 1, false false: before",
		"e4 e4-e4 4-4 o23.7 row 0, source, 100, , true true: a B1 B2 d [2 at 1, 2 of 22, 22] [3 at 3, 0 of 23, 23]",
		"o20 e9-e9 9-9 o20.2 row 20, system, 0, 1, false false: nine",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") || v.Size != size || v.Items[2].Tokens != 100 {
		t.Errorf("%d tokens of %d\n%s\nwant\n%s", v.Size, size, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for block, ok := range map[int]bool{4: true, 5: false} {
		_, err := Assemble([]Visible{entry(4, tidemark.Assistant, "a", "b", "c", "d")}, []Replacement{edit(20, 0, block)})
		if ok != (err == nil) || !ok && (!errors.Is(err, tidemark.ErrInvalid) || !strings.HasPrefix(err.Error(), "overlay o20: entry e4 has no block 5")) {
			t.Errorf("block %d of four: %v", block, err)
		}
	}
}

// TestPlaces: which block of the entry stands where, when some were taken out and several stand for others.
func TestPlaces(t *testing.T) {
	it := Item{Message: of(tidemark.User, tidemark.Text("b1"), tidemark.Text("b2"), tidemark.Text("c"), tidemark.Text("d1"), tidemark.Text("d2"), tidemark.Text("d3"), tidemark.Text("f")),
		Stubbed: []Stubbed{{Block: 1, At: 0, Many: 0}, {Block: 2, At: 0, Many: 2}, {Block: 4, At: 3, Many: 3}, {Block: 5, At: 6, Many: 0}}}
	if it.Blocks() != 6 || !it.shifted() {
		t.Errorf("%d blocks, shifted %v", it.Blocks(), it.shifted())
	}
	for at, row := range []struct {
		block   int
		several bool
	}{{2, true}, {2, true}, {3, false}, {4, true}, {4, true}, {4, true}, {6, false}} {
		if it.Block(at) != row.block || it.several(at) != row.several {
			t.Errorf("place %d is of block %d, one of several: %v", at, it.Block(at), it.several(at))
		}
	}
	for block, want := range [][2]int{{-1, 0}, {0, 0}, {0, 2}, {2, 1}, {3, 3}, {6, 0}, {6, 1}, {7, 0}} {
		if at, many := it.Place(block); many != want[1] || block > 0 && at != want[0] {
			t.Errorf("block %d stands at %d, %d-fold", block, at, many)
		}
		if s := it.stubbed(block); (s != nil) != (block == 1 || block == 2 || block == 4 || block == 5) || s != nil && s.Block != block {
			t.Errorf("for block %d stands %+v", block, s)
		}
	}
	plain := Item{Message: of(tidemark.User, tidemark.Text("a"), tidemark.Text("b"))}
	if plain.Blocks() != 2 || plain.Block(1) != 2 || plain.shifted() || plain.several(1) {
		t.Errorf("of an item as it came: %d blocks", plain.Blocks())
	}
	if plain.Stubbed = []Stubbed{{Block: 1, At: 0, Many: 1}}; plain.shifted() || plain.several(0) {
		t.Error("one for one shifts nothing")
	}
}
