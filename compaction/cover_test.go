package compaction

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// TestCover is the table of what a summary stands for: all before the newest part that there is room for, but what is pinned
// or was not read, and nothing where too little would be freed.
func TestCover(t *testing.T) {
	talk := strings.TrimSpace(strings.Repeat("u=300 a=300 ", 10))
	for _, row := range []struct {
		name, items string
		keep        tidemark.Tokens
		times       tidemark.Tokens // as many tokens as estimated the provider counts
		want        string
		ok          bool
	}{
		{"what fits stays", talk, 900, 1, "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16", true},
		{"one token less", talk, 899, 1, "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17", true},
		{"counted twice as much", talk, 1800, 2, "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16", true},
		{"half of what may be sent", talk, 6000, 1, "0 1 2 3 4 5 6 7 8 9", true},
		{"an exchange is not parted", "u=2000 a u c1=600 r1=600 a=300 u=100", 1000, 1, "0 1 2 3 4", true},
		{"the last message stays", "u a=3000 u a", 0, 1, "0 1", true},
		{"and with it its exchange", "u=3000 a u c1 r1", 0, 1, "0 1", true},
		{"as little as pays", "u=1490 a u", 0, 1, "0 1", true},
		{"one token less does not", "u=1489 a u", 0, 1, "0 1", false},
		{"what is pinned stays", "u=3000! a u a=2000 u", 0, 1, "1 2 3", true},
		{"with its exchange", "u a c1=3000! r1 a=2000 u", 0, 1, "0 1 4", true},
		{"the former summary alone is nothing new", "S=3000 a! u", 0, 1, "0", false},
		{"beside something it is", "S=3000 a u", 0, 1, "0 1", true},
		{"the newest turn takes from what stays", "u a=2000 a=500 a=500 u=4500", 1000, 1, "0 1 2", true},
		{"and one token more from that", "u a=2000 a=500 a=501 u=4500", 1000, 1, "0 1 2 3", true},
		{"of a view that is too large anything leaves", "u a=1000 u=6000", 0, 1, "0 1", true},
		{"nothing was read", "u=9000", 0, 1, "", false},
	} {
		v := scriptedView(row.items)
		v.Size *= row.times
		b := Budget{Window: 8000, Reserve: 2000, Keep: row.keep}
		covered, ok := cover(v, b)
		if marked(covered) != row.want || ok != row.ok {
			t.Errorf("%s: %s, %v; want %s, %v", row.name, marked(covered), ok, row.want, row.ok)
		}
	}
}

// TestCoverFixed: what no plan can free takes from what stays.
func TestCoverFixed(t *testing.T) {
	v := scriptedView("u a=2000 a=500 a=500 u=4000")
	for fixed, want := range map[tidemark.Tokens]string{500: "0 1 2", 501: "0 1 2 3", 0: "0 1"} {
		v.Fixed, v.Size = fixed, v.Tokens()+fixed
		if covered, _ := cover(v, Budget{Window: 8000, Reserve: 2000, Keep: 1000}); marked(covered) != want {
			t.Errorf("beside %d tokens %s leave, want %s", fixed, marked(covered), want)
		}
	}
}

// TestSpanOver: the span reaches from the first to the last of what it covers, by position, and keeps what else lies between.
func TestSpanOver(t *testing.T) {
	for _, row := range []struct {
		cover []int
		want  string
	}{
		{[]int{2}, "e3-e3"}, {[]int{1, 2, 3}, "e2-e4"}, {[]int{0, 4}, "e1-e5+e2+e3+e4"}, {[]int{1, 3}, "e2-e4+e3"}, {nil, "<"},
	} {
		covered := make([]bool, 5)
		for _, i := range row.cover {
			covered[i] = true
		}
		if got := told(spanOver(scripted("u a u a u"), covered)); got != row.want {
			t.Errorf("over %v: %s, want %s", row.cover, got, row.want)
		}
	}
	items := scripted("u S u a") // the summary reaches over what stands behind it, which it keeps
	items[1].From, items[1].To, items[1].Seq, items[1].Last = "e2", "e9", 2, 9
	if got := told(spanOver(items, []bool{false, true, false, true})); got != "e2-e9+e3" {
		t.Errorf("over a span with a hole: %s", got)
	}
	if got := told(spanOver(items, []bool{true, false, true, false})); got != "e1-e3" {
		t.Errorf("what reaches farther is no hole: %s", got)
	}
}

// TestExcerpt: a text is cut where at least 400 characters are saved, between characters, and says what is missing.
func TestExcerpt(t *testing.T) {
	if s, ok := Excerpt(strings.Repeat("x", 415), 10, 5, "e1"); ok || len(s) != 415 {
		t.Errorf("415 characters became %q", s)
	}
	const want = "xxxxxxxxxx\n[… 401 of 416 bytes left out here. The whole text is entry e1: recall with {\"entry\": \"e1\"} reads it …]\nxxxxx"
	if s, ok := Excerpt(strings.Repeat("x", 416), 10, 5, "e1"); !ok || s != want {
		t.Errorf("416 characters became %q", s)
	}
	s, ok := Excerpt("xé"+strings.Repeat("x", 500)+"éx", 2, 2, "e1") // both cuts fall into a character
	if !ok || !strings.HasPrefix(s, "x\n[… 504 of 506 bytes") || !strings.HasSuffix(s, "…]\nx") {
		t.Errorf("it became %q", s)
	}
	for n, want := range []int{0, 1, 1, 3, 4, 5} {
		if got := runeFloor("aéb", n); got != want {
			t.Errorf("a cut at %d falls to %d, want %d", n, got, want)
		}
	}
	for n, want := range []int{0, 1, 3, 3, 4} {
		if got := runeCeil("aéb", n); got != want {
			t.Errorf("a cut at %d rises to %d, want %d", n, got, want)
		}
	}
	if runeFloor("\x80\x80", 1) != 0 || runeCeil("\x80\x80", 0) != 2 {
		t.Error("a cut leaves a text that is no UTF-8")
	}
}

// TestShortBlock: of a long block both ends stay, with the way to the rest; what is short, and what is no text, is left as it is.
func TestShortBlock(t *testing.T) {
	long := strings.Repeat("a", 1200) + strings.Repeat("b", 401) + strings.Repeat("c", 600)
	short, _ := Excerpt(long, 1200, 600, "e7")
	if !strings.Contains(short, "aa\n[… 401 of 2201 bytes") || !strings.HasSuffix(short, "…]\n"+strings.Repeat("c", 600)) {
		t.Fatalf("the excerpt is %q", short)
	}
	doc, err := tidemark.TextDocument("lease", long)
	if err != nil {
		t.Fatal(err)
	}
	document, _ := Excerpt("[document lease]\n"+long, 1200, 600, "e7")
	input := `{"a":"` + long + `"}`
	cut, _ := Excerpt(input, 1200, 600, "e7")
	shortened, err := json.Marshal(map[string]string{"shortened": cut})
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct{ was, now tidemark.Block }{
		"a text":     {tidemark.Text(long), tidemark.Text(short)},
		"a document": {doc, tidemark.Text(document)},
		"a result":   {tidemark.ToolResult("c", long, true), tidemark.ToolResult("c", short, true)},
		"a call":     {tidemark.ToolUse("c", "write", []byte(input)), tidemark.ToolUse("c", "write", shortened)},
	} {
		if got, ok := shortBlock("e7", row.was); !ok || string(got.AppendJSON(nil)) != string(row.now.AppendJSON(nil)) {
			t.Errorf("%s became %v, %s\nwant %s", name, ok, got.AppendJSON(nil), row.now.AppendJSON(nil))
		}
	}
	for _, b := range []tidemark.Block{tidemark.Text(long[1:]), tidemark.ToolResult("c", long[1:], false), tidemark.ToolUse("c", "write", []byte(`{}`)), {Type: tidemark.TypeThinking, Text: long}} {
		if got, ok := shortBlock("e7", b); ok || string(got.AppendJSON(nil)) != string(b.AppendJSON(nil)) {
			t.Errorf("%.80s became %.80s", b.AppendJSON(nil), got.AppendJSON(nil))
		}
	}
	for in, want := range map[string]string{string(shortInput("a < b")): "a < b", `{"shortened":""}`: `{"shortened":""}`, `{"a":1}`: `{"a":1}`, `[1]`: `[1]`, `{"shortened":1}`: `{"shortened":1}`} {
		if got := cutInput([]byte(in)); got != want {
			t.Errorf("of %s the text is %q, want %q", in, got, want)
		}
	}
}

// TestOversized: blocks over the limit are shortened, the oldest first, until enough is free; what is small, pinned, not
// read or replaced already stays.
func TestOversized(t *testing.T) {
	long := strings.Repeat("a word ", 500) // 3,500 characters: 1,050 tokens and some for what stands around them
	items := scripted("u u! u a u a u")
	for i := range items {
		items[i].Message.Content = []tidemark.Block{tidemark.Text("so"), tidemark.Text(long), tidemark.Text(long)}
		items[i].Tokens = tidemark.Estimate(items[i].Message)
	}
	items[2].Stubs, items[2].Overlay = 1, "o"
	items[4].Overlay = "o"
	one := tidemark.EstimateBlock(items[0].Message.Content[1])
	short, _ := shortBlock("e1", items[0].Message.Content[1])
	gain := one - tidemark.EstimateBlock(short)
	for _, row := range []struct {
		limit, need tidemark.Tokens
		want        string
	}{
		{one - 1, 1 << 40, "e1#2 e1#3 e4#2 e4#3 e6#2 e6#3"},
		{one, 1 << 40, ""},
		{500, 0, ""},
		{500, 1, "e1#2"},
		{500, gain, "e1#2"},
		{500, gain + 1, "e1#2 e1#3"},
		{500, 2*gain + 1, "e1#2 e1#3 e4#2"},
		{items[0].Tokens, 1 << 40, ""},
	} {
		if got := toldAll(oversized(items, whole(View{Items: items}, Budget{}), row.limit, row.need)); got != row.want {
			t.Errorf("over %d, for %d: %s, want %s", row.limit, row.need, got, row.want)
		}
	}
}

// TestSummaryKinds: what an edit or an item tells of a summary.
func TestSummaryKinds(t *testing.T) {
	for words, want := range map[string]bool{"S": true, "L": false, "u": false, "M1": false} {
		if got := IsSummary(scripted(words)[0]); got != want {
			t.Errorf("%s is a summary: %v", words, got)
		}
	}
	said := scripted("u")[0]
	said.Message.Content[0] = tidemark.Text(SummaryMarker + " says somebody")
	if IsSummary(said) {
		t.Error("what a person says is a summary")
	}
	empty := scripted("S")[0]
	if empty.Message.Content = nil; IsSummary(empty) {
		t.Error("nothing is a summary")
	}
	if d, ok := PreviousDigest(tidemark.Edit{Data: []byte(`{"text":"so","messages":7,"tier":"full"}`)}); !ok || d.Text != "so" || d.Messages != 7 || d.Tier != "full" {
		t.Errorf("%+v, %v", d, ok)
	}
	for _, data := range []string{"", "[1]", `{"text":1}`} {
		if d, ok := PreviousDigest(tidemark.Edit{Data: []byte(data)}); ok || d.Text != "" {
			t.Errorf("%s: %+v", data, d)
		}
	}
}

// TestSummaryPlan: large blocks that were read are shortened first, the oldest first, where that is enough; else they are under
// the summary, or stay beside it. Where somebody said what to keep there is a summary in any case.
func TestSummaryPlan(t *testing.T) {
	long := func(n int) string { return strings.Repeat("a word ", n/7) }
	user := func(n int) tidemark.Message { return tidemark.NewText(tidemark.User, long(n)) }
	bot := func(n int) tidemark.Message { return tidemark.NewText(tidemark.Assistant, long(n)) }
	b := Budget{Window: 8000, Reserve: 2000, Keep: 2000}
	for _, row := range []struct {
		name  string
		asked bool
		ms    []tidemark.Message
		want  string
	}{
		{"one is enough", false, []tidemark.Message{user(8_000), bot(8_000), user(2_000), bot(2_500), user(70)}, "e1#1: 4396 of 6213"},
		{"as far as it has to be", false, []tidemark.Message{user(8_000), bot(8_000), user(2_000), bot(5_500), user(70)}, "e1#1 e2#1: 3477 of 7112"},
		{"asked for", true, []tidemark.Message{user(8_000), bot(8_000), user(2_000), bot(2_500), user(70)}, "e1-e2 by 0: 2397 of 6213"},
		{"nothing is large", false, []tidemark.Message{user(3_000), bot(3_000), user(3_000), bot(3_000), user(3_000), bot(3_000), user(3_000), bot(2_000), user(70)}, "e1-e6 by 0: 2547 of 6998"},
		{"large ones stay beside it", false, []tidemark.Message{user(3_000), bot(3_000), user(3_000), bot(3_000), user(3_000), bot(3_000), user(3_000), bot(70), bot(8_000), user(70)}, "e9#1 e1-e6 by 1: 2560 of 8829"},
		{"within the limit all are", false, []tidemark.Message{user(8_000), bot(4_000), user(70), bot(70), user(70)}, "e1#1 e2#1: 1272 of 3707"},
		{"and little, where there is no more", false, []tidemark.Message{user(3_500), bot(70), user(70), bot(70), user(70)}, "e1#1: 712 of 1181"},
	} {
		v := saying(row.ms...)
		edits := Summary{Asked: row.asked}.Plan(v, b)
		got := toldAll(edits)
		for i, e := range edits {
			if e.Summarize {
				got += " by " + string(rune('0'+i))
			}
		}
		if after, err := Preview(v, edits, b); err != nil || got+fmt.Sprintf(": %d of %d", after.Size, v.Size) != row.want {
			t.Errorf("%s: %s: %d of %d, %v, want %s", row.name, got, after.Size, v.Size, err, row.want)
		}
	}
}
