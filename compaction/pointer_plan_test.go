package compaction

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// harbourWork is a view of three turns: large results and a large input, small ones beside them, a pinned one and the newest
// state of the task.
func harbourWork() View {
	lines := func(word string, n int) string { return strings.Repeat(word+" of the tide\n", n) }
	user := func(s string) tidemark.Message { return tidemark.NewText(tidemark.User, s) }
	bot := func(s string) tidemark.Message { return tidemark.NewText(tidemark.Assistant, s) }
	call := func(id, tool, input string) tidemark.Block { return tidemark.ToolUse(id, tool, []byte(input)) }
	v := saying(
		user("look at the harbour "+lines("words", 20)), // e1
		of(tidemark.Assistant, call("c1", "write", `{"path":"a.go","text":"`+strings.Repeat("word ", 500)+`"}`)),
		of(tidemark.User, tidemark.ToolResult("c1", "ok", false)),
		of(tidemark.Assistant, tidemark.Text("and"), call("c2", "read", `{"path":"b.go"}`), call("c3", "read", `{"path":"c.go"}`)), // e4
		of(tidemark.User, tidemark.ToolResult("c2", lines("b", 200), false), tidemark.ToolResult("c3", lines("c", 10), true)),
		bot("it is so "+lines("answer", 20)), // e6
		user("on with it "+lines("words", 20)),
		of(tidemark.Assistant, call("c4", "read", `{"path":"d.go"}`), call("c5", "task_state", `{"goal":"`+strings.Repeat("g", 1200)+`"}`)), // e8
		of(tidemark.User, tidemark.ToolResult("c4", lines("d", 100), false), tidemark.ToolResult("c5", lines("e", 100), false)),
		of(tidemark.Assistant, call("c6", "read", `{"path":"f.go"}`)), // e10
		of(tidemark.User, tidemark.ToolResult("c6", lines("f", 100), false)),
		bot("so be it "+lines("answer", 20)), // e12
		user("and now?"),
		of(tidemark.Assistant, call("c7", "read", `{"path":"g.go"}`)), // e14
		of(tidemark.User, tidemark.ToolResult("c7", lines("g", 30), false)),
		bot("it ebbs"),      // e16
		user("what comes?"), // e17
	)
	v.Items[10].Pinned = true
	return v
}

// TestPointerPlan: as the limit falls, large results become pointers, then large inputs, the oldest first; then exchanges go
// under a marker, then dialogue, until only the tail, what is pinned and the state of the task stand.
func TestPointerPlan(t *testing.T) {
	v := harbourWork()
	for _, row := range []struct {
		limit tidemark.Tokens
		p     Pointer
		want  string
	}{
		{v.Size, Pointer{Headroom: 1}, "e5#1: 3638"},
		{v.Size + 50, Pointer{Headroom: 1}, ": 4465"},
		{v.Size - 811, Pointer{Headroom: 1}, "e5#1: 3638"},
		{v.Size - 812, Pointer{Headroom: 1}, "e5#1 e9#1: 3215"}, // lines that are shown take something, too
		{v.Size - 600, Pointer{Headroom: 1}, "e5#1: 3638"},
		{v.Size - 1000, Pointer{Headroom: 1}, "e5#1 e9#1: 3215"},
		{v.Size - 1500, Pointer{Headroom: 1}, "e5#1 e9#1 e2#1: 2476"},
		{v.Size - 2000, Pointer{Headroom: 1}, "e9#1 e2-e5: 2265"},
		{v.Size - 2300, Pointer{Headroom: 1, Tail: 2}, "e9#1 e1-e6: 2013"},
		{v.Size - 2600, Pointer{Headroom: 1, Tail: 2}, "e9#1 e1-e12+e8+e9+e10+e11: 1709"},
		{v.Size - 2600, Pointer{Headroom: 1, Tail: 1}, "e9#1 e1-e15+e7+e8+e9+e10+e11+e12+e13: 1778"},
		{v.Size - 2600, Pointer{Headroom: 1, Tail: 1, Large: 1 << 20}, "e1-e16+e8+e9+e10+e11: 1920"},
		{v.Size - 2600, Pointer{Headroom: 1, Tail: 1, Stay: []string{"read"}}, "e5#1 e9#1 e9#2 e2#1 e8#2: 1661"},
		{1000, Pointer{Headroom: 1, Tail: 1}, "e9#1 e1-e16+e8+e9+e10+e11: 1497"},
	} {
		b := Budget{Window: row.limit, Keep: row.limit / 2}
		edits := row.p.Plan(v, b)
		after, err := Preview(v, edits, b)
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprintf("%s: %d", toldAll(edits), after.Size)
		if got != row.want {
			t.Errorf("%d of %d tokens, %+v: %s, want %s", row.limit, v.Size, row.p, got, row.want)
		}
	}
}

// TestPointerPreviews: the newest large pointers show some lines, so many as there is room for, and none of what is not four
// times as large as what it shows, or whose pointer would then be over half of it.
func TestPointerPreviews(t *testing.T) {
	result := func(n int) View {
		return saying(tidemark.NewText(tidemark.User, "look"), of(tidemark.Assistant, tidemark.ToolUse("c", "read", nil)), of(tidemark.User, tidemark.ToolResult("c", strings.Repeat("x", n)+"\nthe end", false)), tidemark.NewText(tidemark.Assistant, "so"))
	}
	for _, row := range []struct {
		chars int
		shows bool
	}{{706, false}, {707, true}, {1100, true}, {3000, true}} {
		v := result(row.chars)
		d := newDraft(v)
		d.point(2, tidemark.TypeToolResult, 100, nil)
		before := d.tokens[2]
		if len(d.stubs) != 1 || d.preview(&d.stubs[0]) != row.shows || strings.HasSuffix(d.stubs[0].blocks[0].Content[0].Text, " reads it.]") == row.shows {
			t.Errorf("of %d characters: %+v", row.chars, d.stubs)
			continue
		}
		now := tidemark.Estimate(d.changed[2].Message)
		if (d.tokens[2] > before) != row.shows || d.tokens[2] != now || d.sum != v.Tokens()-v.Items[2].Tokens+now {
			t.Errorf("of %d characters: %d tokens, then %d of %d", row.chars, before, d.tokens[2], d.sum)
		}
	}
	input := saying(of(tidemark.Assistant, tidemark.ToolUse("c", "write", []byte(`{"text":"`+strings.Repeat("x", 3000)+`"}`))))
	d := newDraft(input)
	if d.point(0, tidemark.TypeToolUse, 100, nil); len(d.stubs) != 1 || d.preview(&d.stubs[0]) {
		t.Errorf("the pointer of a call shows %+v", d.stubs)
	}
	blank := newDraft(saying(of(tidemark.User, tidemark.ToolResult("c", strings.Repeat("\n", 3000), false))))
	if blank.point(0, tidemark.TypeToolResult, 100, nil); len(blank.stubs) != 1 || blank.preview(&blank.stubs[0]) {
		t.Errorf("of blank lines %+v", blank.stubs)
	}
	for chars, shows := range map[int]bool{400: false, 520: true} { // a result of two texts, of which one is shown
		part := tidemark.Text(strings.Repeat("x", chars) + "\nthe end")
		d := newDraft(saying(of(tidemark.User, tidemark.Block{Type: tidemark.TypeToolResult, ToolUseID: "c", Content: []tidemark.Block{part, part}})))
		if d.point(0, tidemark.TypeToolResult, 100, nil); len(d.stubs) != 1 || d.preview(&d.stubs[0]) != shows {
			t.Errorf("of two texts of %d characters: %+v", chars, d.stubs)
		}
	}
	if got := longest(tidemark.Block{Content: []tidemark.Block{tidemark.Text("ab"), {Type: tidemark.TypeImage, Text: "abcdef"}, tidemark.Text("abc"), tidemark.Text("xyz")}}); got != "abc" {
		t.Errorf("the longest text is %q", got)
	}
}

// TestPointerPoints: pointers are made of blocks over the bound, each by itself where a message has several, but of those
// whose calls stay, of pointers, and of those that stand with others for one block.
func TestPointerPoints(t *testing.T) {
	big, small := strings.Repeat("x", 2000), strings.Repeat("y", 300)
	v := saying(of(tidemark.User, tidemark.ToolResult("a", big, false), tidemark.ToolResult("b", small, true), tidemark.ToolResult("c", big, false), tidemark.Text(big), tidemark.ToolResult("d", big, false)),
		of(tidemark.User, tidemark.ToolResult("e", small, false)))
	one := tidemark.EstimateBlock(v.Items[0].Message.Content[0])
	for _, row := range []struct {
		large tidemark.Tokens
		stay  map[string]bool
		item  int
		want  string
	}{
		{100, nil, 0, "e1#1 e1#2 e1#3 e1#5"}, {200, nil, 0, "e1#1 e1#3 e1#5"}, {one, nil, 0, ""}, {one - 1, nil, 0, "e1#1 e1#3 e1#5"}, {200, map[string]bool{"a": true, "d": true}, 0, "e1#3"},
		{v.Items[1].Tokens, nil, 1, ""}, {v.Items[1].Tokens - 1, nil, 1, "e2#1"},
	} {
		d := newDraft(v)
		d.point(row.item, tidemark.TypeToolResult, row.large, row.stay)
		if got := toldAll(d.edits(nil)); got != row.want {
			t.Errorf("over %d: %s, want %s", row.large, got, row.want)
		}
		if d.items[row.item].Stubs != 0 || len(d.changed) != 2 || (d.changed[row.item] != nil) != (row.want != "") || d.item(row.item).Tokens != d.tokens[row.item] {
			t.Errorf("over %d: the view's own item changed, or the draft's did not: %+v", row.large, d.changed)
		}
		if got := toldAll(d.edits([]bool{true, false})); row.item == 0 && got != "" || row.item == 1 && got != row.want {
			t.Errorf("over %d: of what is covered %s", row.large, got)
		}
	}
	again := v
	again.Items = []Item{v.Items[0]}
	again.Items[0].Stubs, again.Items[0].Overlay = 2, "o"
	again.Items[0].Stubbed = []Stubbed{{Block: 1, At: 0, Many: 1}, {Block: 3, At: 2, Many: 2}}
	again.Items[0].Message.Content = []tidemark.Block{tidemark.ToolResult("a", pointerMark+big, false), tidemark.ToolResult("b", big, true), tidemark.ToolResult("c", big, false), tidemark.Text(big), tidemark.ToolResult("d", big, false)}
	d := newDraft(again)
	d.point(0, tidemark.TypeToolResult, 100, nil)
	if got := toldAll(d.edits(nil)); got != "e1#2 e1#4" {
		t.Errorf("beside a pointer and two for one: %s", got)
	}
}

// TestPointerGain: what would free too little for the prompt cache that it costs is not planned: neither pointers alone, nor a
// marker.
func TestPointerGain(t *testing.T) {
	text := func(n int) string { return strings.Repeat("x", n) }
	b := Budget{Window: 8000, Reserve: 2000, Keep: 100} // 500 at least
	exact := 0
	for n := 1900; n < 2000; n++ {
		v := saying(tidemark.NewText(tidemark.User, text(17_000)), of(tidemark.Assistant, tidemark.ToolUse("a", "read", nil), tidemark.ToolUse("b", DefaultStay, nil)), // the exchange of the task stays
			of(tidemark.User, tidemark.ToolResult("a", text(n), false), tidemark.ToolResult("b", "ok", false)), tidemark.NewText(tidemark.Assistant, text(3000)), tidemark.NewText(tidemark.User, "so"))
		v.Items[0].Pinned, v.Items[3].Pinned = true, true
		d := newDraft(v)
		Pointer{}.blocks(d, b, 4, make([]bool, 5), make([]bool, 5), nil)
		want := ""
		if gain := v.Size - d.size; gain >= 500 {
			want = "e3#1"
			if gain == 500 {
				exact++
			}
		}
		if got := toldAll(Pointer{Tail: 1}.Plan(v, b)); got != want {
			t.Errorf("a pointer for %d characters frees %d: %q, want %q", n, v.Size-d.size, got, want)
		}
	}
	if exact == 0 {
		t.Error("none frees exactly what is worth it")
	}
	for items, want := range map[string]string{"u=5500! a=579 u": "", "u=5500! a=580 u": "e2-e2", "u=6430! a=579 u": "e2-e2", "u=300 E a=580 u=5200! a! u": "e3-e3", "u=300 E a=579 u=5200! a! u": "e1-e3", "u=5400! a=300 u a=280 u": "e2-e4"} {
		if got := toldAll(Pointer{Tail: 1, Headroom: 1}.Plan(scriptedView(items), b)); got != want {
			t.Errorf("%q: %q, want %q", items, got, want)
		}
	}
}
