package compaction

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// TestEvenly: the largest blocks come down to one size, the smaller ones stay, and none goes below the least.
func TestEvenly(t *testing.T) {
	for _, row := range []struct {
		sizes      []tidemark.Tokens
		room, want tidemark.Tokens
	}{
		{[]tidemark.Tokens{100, 300, 200}, 600, 300}, {[]tidemark.Tokens{100, 300, 200}, 599, 299}, {[]tidemark.Tokens{100, 300, 200}, 501, 201}, {[]tidemark.Tokens{100, 300, 200}, 500, 200},
		{[]tidemark.Tokens{100, 300, 200}, 450, 200}, {[]tidemark.Tokens{100, 300, 200}, 0, 200}, {[]tidemark.Tokens{900, 900, 900}, 1500, 500}, {[]tidemark.Tokens{900, 400, 900}, 1500, 550}, {[]tidemark.Tokens{1000}, 700, 700}, {[]tidemark.Tokens{100, 100}, 200, 100}, {[]tidemark.Tokens{100, 100}, 199, 200},
	} {
		var blocks []long
		for _, n := range row.sizes {
			blocks = append(blocks, long{tokens: n})
		}
		if got := evenly(blocks, row.room); got != row.want {
			t.Errorf("%v in %d come down to %d, want %d", row.sizes, row.room, got, row.want)
		}
	}
	for n, want := range map[tidemark.Tokens]tidemark.Tokens{0: 0, 2: 2, 3: 2, 300: 200} {
		if got := (View{}).doubted(n); got != want || (View{Refused: true}).doubted(n) != n {
			t.Errorf("%d may be %d, want %d", n, got, want)
		}
	}
}

// TestGap: what an edit tells of what it left out, and which edits tell nothing of that.
func TestGap(t *testing.T) {
	for data, want := range map[string]bool{
		`{"of":100,"head":40,"tail":59}`: true, `{"of":100,"head":50,"tail":50}`: false, `{"of":100,"head":60,"tail":50}`: false, `{"of":0,"head":0,"tail":0,"media":1}`: true, `{"of":0,"head":-5,"tail":0}`: false,
		`{}`: false, ``: false, `[`: false, `{"of":"x"}`: false,
	} {
		c, ok := GapOf(tidemark.Edit{Block: 1, Data: []byte(data)})
		if ok != want {
			t.Errorf("%s leaves something out: %v, %+v", data, ok, c)
		}
		if _, ok := GapOf(tidemark.Edit{Data: []byte(data)}); ok {
			t.Errorf("%s of a span", data)
		}
	}
	c := Gap{Of: 100, Head: 40, Tail: 25}
	if c.Left() != 35 {
		t.Errorf("%d are left out", c.Left())
	}
	it := &Item{Message: of(tidemark.User, tidemark.Text("a"), tidemark.Text("b")), Stubbed: []Stubbed{{Block: 3, At: 1, Many: 1, Data: []byte(`{"of":100,"head":40,"tail":25}`)}, {Block: 2, At: 1, Many: 0}}}
	it.Stubbed[0], it.Stubbed[1] = it.Stubbed[1], it.Stubbed[0]
	if gapIn(it, 0) != (Gap{}) || gapIn(it, 1) != c {
		t.Errorf("%+v and %+v", gapIn(it, 0), gapIn(it, 1))
	}
}

// TestLongText: what of a block a cut shortens, and what it is then.
func TestLongText(t *testing.T) {
	image := tidemark.Block{Type: tidemark.TypeImage}
	doc, err := tidemark.TextDocument("plan", "one")
	if err != nil {
		t.Fatal(err)
	}
	pictured := tidemark.Block{Type: tidemark.TypeToolResult, ToolUseID: "c", Content: []tidemark.Block{tidemark.Text("a"), image, image}}
	for name, row := range map[string]struct {
		block      tidemark.Block
		cut        Gap
		text, with string
	}{
		"a text":         {tidemark.Text("a"), Gap{}, "a", `{"type":"text","text":"z"}`},
		"a result":       {tidemark.ToolResult("c", "a", true), Gap{}, "a", `{"type":"tool_result","tool_use_id":"c","content":"z","is_error":true}`},
		"with a picture": {pictured, Gap{}, "", `{"type":"tool_result","tool_use_id":"c","content":"z"}`},
		"a call":         {tidemark.ToolUse("c", "n", []byte(`{"shortened":"a"}`)), Gap{}, `{"shortened":"a"}`, `{"type":"tool_use","id":"c","name":"n","input":{"shortened":"z"}}`},
		"one cut before": {tidemark.ToolUse("c", "n", []byte(`{"shortened":"a"}`)), Gap{Of: 9}, "a", `{"type":"tool_use","id":"c","name":"n","input":{"shortened":"z"}}`},
		"a document":     {doc, Gap{}, "[document plan]\none", `{"type":"text","text":"z"}`},
		"a picture":      {image, Gap{}, "", `{"type":"text","text":"z"}`},
	} {
		l := long{block: row.block, cut: row.cut}
		if got, with := l.text(), string(l.with("z").AppendJSON(nil)); got != row.text || with != row.with {
			t.Errorf("%s: %q, then %s", name, got, with)
		}
	}
	if noText(pictured.Content) != 2 || noText(nil) != 0 {
		t.Error("two pictures are no text")
	}
	it := &Item{ID: "e1", Message: of(tidemark.User, image, pictured, tidemark.Text("a"))}
	for at, want := range []string{
		`{"type":"text","text":"[Trimmed: image; recall({\"entry\": \"e1#0\"}) shows it]"}`,
		`{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"a"},{"type":"text","text":"[Trimmed: image; recall({\"entry\": \"e1#1\"}) reads it]"},{"type":"text","text":"[Trimmed: image]"}]}`,
		"",
	} {
		l := long{item: it, at: at, block: it.Message.Content[at]}
		got := ""
		if b := l.bare(); b != nil {
			got = string(b.AppendJSON(nil))
		}
		if got != want {
			t.Errorf("without its pictures block %d is\n%s\nwant\n%s", at, got, want)
		}
	}
}

// TestLongEdit: a block loses its middle down to what there is room for, in tokens and in bytes; a gap of before grows, and
// what fits stays as it is.
func TestLongEdit(t *testing.T) {
	text := strings.Repeat("head ", 500) + strings.Repeat("tail ", 500) // 5,000 bytes, 1,508 tokens
	it := &Item{ID: "e1", From: "f1", Message: of(tidemark.User, tidemark.Text("a"), tidemark.Text(text))}
	whole := func() *long {
		return &long{item: it, at: 1, block: it.Message.Content[1], tokens: tidemark.EstimateBlock(it.Message.Content[1])}
	}
	edit := func(l *long, most tidemark.Tokens, bytes int) (tidemark.Edit, Gap) {
		e, ok := l.edit(most, bytes)
		c, told := GapOf(e)
		if !ok || !told || told != ok || e.From != "f1" || e.Block != 2 || len(e.Blocks) != 1 {
			t.Fatalf("%d tokens, %d bytes: %v, %+v", most, bytes, ok, e)
		}
		return e, c
	}
	first, c := edit(whole(), 600, 1<<20)
	if want := (Gap{Of: 5000, Head: 895, Tail: 895}); c != want || first.Blocks[0].Text != text[:c.Head]+leftOut(c.Left(), 5000, "e1")+text[5000-c.Tail:] {
		t.Errorf("to 600 tokens: %+v, want %+v", c, want)
	}
	if n := tidemark.EstimateBlock(first.Blocks[0]); n > 600 {
		t.Errorf("to 600 tokens: %d", n)
	}
	if _, c := edit(whole(), 600, 1000); c.Head != 500 || c.Tail != 500 {
		t.Errorf("to 1,000 bytes: %+v", c)
	}
	again := &long{item: it, at: 1, block: first.Blocks[0], tokens: tidemark.EstimateBlock(first.Blocks[0]), cut: c}
	second, d := edit(again, 300, 1<<20)
	if d.Of != 5000 || d.Head >= c.Head || d.Head != d.Tail || d.Head < 300 || second.Blocks[0].Text != text[:d.Head]+leftOut(d.Left(), 5000, "e1")+text[5000-d.Tail:] {
		t.Errorf("cut again: %+v, %s", d, second.Blocks[0].Text)
	}
	if e, ok := whole().edit(1510, 1<<20); ok {
		t.Errorf("what fits is cut: %+v", e)
	}
	fits := whole()
	fits.out = 2
	if e, c := edit(fits, fits.tokens, 1<<20); c != (Gap{Media: 2}) || e.Blocks[0].Text != text {
		t.Errorf("what lost its pictures and fits: %+v", c)
	}
	if _, c := edit(fits, fits.tokens-1, 1<<20); c.Media != 2 || c.Of != 5000 {
		t.Errorf("what lost its pictures and is cut: %+v", c)
	}
	if _, c := edit(whole(), 1, 1<<20); c.Head > 50 || c.Tail > 50 {
		t.Errorf("where there is no room: %+v", c)
	}
}

// TestSqueeze: what is sent whole is cut where it does not fit alone, beside what else stands there; where that may fit, it stays.
func TestSqueeze(t *testing.T) {
	x := func(n int) tidemark.Block { return tidemark.Text(strings.Repeat("a word ", n/7)) }
	image := func(n int) tidemark.Block {
		var b tidemark.Block
		if err := json.Unmarshal(fmt.Appendf(nil, `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD%04d"}}`, n), &b); err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, row := range []struct {
		name    string
		refused bool
		before  int // characters of what was read
		blocks  []tidemark.Block
		want    string // edits, with what each keeps
	}{
		{"it fits", false, 0, []tidemark.Block{x(9_000)}, ""},
		{"it may fit", false, 0, []tidemark.Block{x(33_000)}, ""},
		{"it was refused", true, 0, []tidemark.Block{x(33_000)}, "e1#1 10478+10478 of 32998, 0"},
		{"it does not", false, 0, []tidemark.Block{x(40_000)}, "e1#1 10479+10479 of 39998, 0"},
		{"two of them", false, 0, []tidemark.Block{x(30_000), tidemark.Text("and"), x(30_000)}, "e1#1 5231+5231 of 29995, 0; e1#3 5231+5231 of 29995, 0"},
		{"a large and a small one", false, 0, []tidemark.Block{x(60_000), x(3_000)}, "e1#1 9123+9123 of 59997, 0"},
		{"beside a summary", false, 3_000, []tidemark.Block{x(40_000)}, "e3#1 9841+9841 of 39998, 0"},
		{"beside much", false, 30_000, []tidemark.Block{x(40_000)}, "e3#1 9729+9729 of 39998, 0"},
		{"beside what could not leave, refused", true, 6_000, []tidemark.Block{x(40_000)}, "e3#1 8490+8490 of 39998, 0"},
		{"pictures that fit", false, 0, []tidemark.Block{image(1), image(2), image(3)}, ""},
		{"one picture too many", false, 0, []tidemark.Block{image(1), image(2), image(3), image(4), image(5)}, "e1#1 0+0 of 0, 1"},
		{"beside words", false, 0, []tidemark.Block{image(1), x(30_000), image(2), image(3), image(4)}, "e1#2 742+742 of 29995, 0"},
	} {
		var ms []tidemark.Message
		if row.before > 0 {
			ms = append(ms, of(tidemark.User, x(row.before)), tidemark.NewText(tidemark.Assistant, "so"))
		}
		v := saying(append(ms, of(tidemark.User, row.blocks...))...)
		v.Refused = row.refused
		var got []string
		for _, e := range squeeze(v, Budget{Window: 8000, Reserve: 2000}) {
			c, _ := GapOf(e)
			got = append(got, fmt.Sprintf("%s %d+%d of %d, %d", told(e), c.Head, c.Tail, c.Of, c.Media))
		}
		if s := strings.Join(got, "; "); s != row.want {
			t.Errorf("%s: %s, want %s", row.name, s, row.want)
		}
	}
}

// TestShortSummary: a summary that a larger window allowed is cut to an eighth of this one, where the view is too large.
func TestShortSummary(t *testing.T) {
	for _, row := range []struct {
		items   string
		refused bool
		want    string
	}{
		{"S=2000 u=5500", true, ""}, // 7,500 fit
		{"S=2000 u=5501", true, "e1-e1"},
		{"S=2000 u=9250", false, ""}, // they may
		{"S=2000 u=9251", false, "e1-e1"},
		{"S=1000 u=9000", true, ""}, // it has an eighth
		{"S=1001 u=9000", true, "e1-e1"},
		{"L=2000 M1=2000 u=9000", true, ""},               // what is no summary stays
		{"S=900 u a S=2000 S=2000 u=9000", true, "e4-e4"}, // the first that is too long
	} {
		v := scriptedView(row.items)
		v.Refused = row.refused
		for i := range v.Items {
			v.Items[i].Data = []byte(`{"text":"so"}`)
			if IsSummary(v.Items[i]) {
				v.Items[i].Message.Content[0].Text = SummaryMarker + strings.Repeat("x", 5000)
			}
		}
		edits := shortSummary(v, Budget{Window: 8000, Reserve: 2000})
		if got := toldAll(edits); got != row.want {
			t.Errorf("%q: %s, want %s", row.items, got, row.want)
		}
		for _, e := range edits {
			if len(e.Messages) != 1 || e.Messages[0].Role != tidemark.User || e.Messages[0].PlainText() != Bound(SummaryMarker+strings.Repeat("x", 5000), 1000) || string(e.Data) != `{"text":"so"}` {
				t.Errorf("%q: %+v", row.items, e)
			}
		}
	}
}

// TestCutShare: what is kept of a long result is not divided by the short ones beside it.
func TestCutShare(t *testing.T) {
	calls, results := tidemark.Message{Role: tidemark.Assistant}, tidemark.Message{Role: tidemark.User}
	for i := range 30 {
		id, size := fmt.Sprint("c", i), 1000
		if i == 7 {
			size = 1 << 20
		}
		calls.Content = append(calls.Content, tidemark.ToolUse(id, "read", nil))
		results.Content = append(results.Content, tidemark.ToolResult(id, strings.Repeat("word ", size/5), false))
	}
	var v View
	for i, m := range []tidemark.Message{tidemark.NewText(tidemark.User, "read all"), calls, results} {
		id := tidemark.EntryID(fmt.Sprint("e", i))
		v.Items = append(v.Items, Item{ID: id, From: id, To: id, Seq: int64(i + 1), Last: int64(i + 1), Message: m, Tokens: tidemark.Estimate(m)})
	}
	v.Size = v.Tokens()
	edits := squeeze(v, Budget{Window: 200_000, Reserve: 20_000})
	if len(edits) != 1 || edits[0].Block != 8 || len(edits[0].Blocks[0].Content[0].Text) < 400<<10 {
		t.Fatalf("%d edits, of the long one %d bytes are kept", len(edits), len(edits[0].Blocks[0].Content[0].Text))
	}
}
