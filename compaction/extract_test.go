package compaction

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// TestIndexAdd is the table of what of a text is named mechanically.
func TestIndexAdd(t *testing.T) {
	blank := strings.Repeat(" ", 200_000-len("a/b.go"))
	long := "error: " + strings.Repeat("x", 300)
	for name, row := range map[string]struct {
		text        string
		said, asked bool
		want        Index
	}{
		"all of it": {"See https://a.test/x?y=1, or `https://b.test/$HOME/z` and (http://c.test/_*!). In src/a/b.go 12.5% of ABC-12 failed\nat 10:30", true, false,
			Index{[]string{"src/a/b.go"}, []string{"https://a.test/x?y=1", "https://b.test/", "http://c.test/"}, []string{"ABC-12"}, []string{"12.5%", "12", "10:30"},
				[]string{"See https://a.test/x?y=1, or `https://b.test/$HOME/z` and (http://c.test/_*!). In src/a/b.go 12.5% of ABC-12 failed"}}},
		"what a tool answered has no numbers": {"12.5% of /usr/local/bin\nerror: no disk", false, false, Index{Paths: []string{"/usr/local/bin"}, Errors: []string{"error: no disk"}}},
		"what was asked for has no errors":    {"12.5% of /usr/local/bin\nerror: no disk", true, true, Index{Paths: []string{"/usr/local/bin"}, Numbers: []string{"12.5%"}}},
		"identifiers have a digit and more":   {"deadbeef 1234567 9999999 0000000 dead1beef #7 v1.2.3 2026-01-02", false, true, Index{IDs: []string{"dead1beef", "#7", "v1.2.3"}}},
		"errors of nine characters":           {"error: x\nerror: xy\n   error: yz   \n", false, false, Index{Errors: []string{"error: xy", "error: yz"}}},
		"errors of 299":                       {long[:299] + "\nerror: " + strings.Repeat("y", 293), false, false, Index{Errors: []string{long[:160] + "…"}}},
		"up to the bound":                     {blank + "a/b.go" + " c/d.go", false, true, Index{Paths: []string{"a/b.go"}}},
		"and no further":                      {blank + " a/b.go", false, true, Index{Paths: []string{"a/b.g"}}},
	} {
		var got Index
		if got.Add(row.text, row.said, row.asked); !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s: %+v\nwant %+v", name, got, row.want)
		}
	}
}

// TestIndexLists: what is named again moves to the end, the newest 40 stay, and what is too long is no name.
func TestIndexLists(t *testing.T) {
	if got := appendAll([]string{"a", "b", "c"}, []string{"b", "d"}); fmt.Sprint(got) != "[a c b d]" {
		t.Error(got)
	}
	if got := appendAll([]string{"a", "b", "c"}, []string{"a"}); fmt.Sprint(got) != "[b c a]" {
		t.Error(got)
	}
	x, y := strings.Repeat("x", 200), strings.Repeat("y", 201)
	if got := appendAll(nil, []string{x, y, "z"}); len(got) != 2 || got[0] != x || got[1] != "z" {
		t.Errorf("%d names", len(got))
	}
	var many []string
	for i := range 45 {
		many = append(many, fmt.Sprint(i))
	}
	if got := appendAll(many[:40:40], nil); len(got) != 40 {
		t.Errorf("of 40 names %d stay", len(got))
	}
	if got := appendAll(many[:40:40], many[40:]); !slices.Equal(got, many[5:]) {
		t.Errorf("of 45 names there are %v", got)
	}
	if got := scan("11 22 33", 2, numberMatch); fmt.Sprint(got) != "[11 22]" {
		t.Errorf("two of three numbers: %v", got)
	}
	if urls, bare := cutURLs("http://a http://b http://c.", 2); fmt.Sprint(urls) != "[http://a http://b]" || bare != "     " {
		t.Errorf("two of three addresses: %v, and %q", urls, bare)
	}
}

// TestGather: what a summary carries mechanically is that of the one before and of what the new one stands for.
func TestGather(t *testing.T) {
	at := time.Date(2026, 5, 2, 14, 32, 0, 0, time.UTC)
	image := tidemark.Block{Type: tidemark.TypeImage}
	doc, err := tidemark.TextDocument("plan", "see doc/plan.md")
	if err != nil {
		t.Fatal(err)
	}
	items := scripted("S u c1 r1 a x1 M2 u u")
	items[1].Message.Content = []tidemark.Block{tidemark.Text(" Look at in/one.go <system-reminder>not in/two.go</system-reminder>"), image, doc}
	items[2].Message.Content = []tidemark.Block{tidemark.ToolUse("c1", "read", []byte(`{"path":"in/three.go","n":77,"e":"error: asked"}`))}
	items[3].Message.Content = []tidemark.Block{{Type: tidemark.TypeToolResult, Content: []tidemark.Block{tidemark.Text("out/four.go 88\nerror: result"), image}}}
	items[4].Message.Content = []tidemark.Block{tidemark.Text("It is 99 of out/five.go"), {Type: tidemark.TypeThinking, Text: "no/six.go"}}
	items[6].Data = Marker{From: at, To: at, Count: 5, Tokens: 9, Cycles: 2}.data()
	items[7].Message.Content = []tidemark.Block{tidemark.Text("<system-reminder>nobody said it</system-reminder>")}
	prev := Digest{Index: Index{Paths: []string{"was/zero.go", "in/one.go"}, Numbers: []string{"66"}}, Asks: []Said{{"e0", "before"}}, Images: 3, Messages: 7, Text: "so far", Tier: "full", From: "e0"}
	got := Gather(prev, items)
	want := Digest{Index: Index{Paths: []string{"was/zero.go", "in/one.go", "doc/plan.md", "in/three.go", "out/four.go", "out/five.go"}, Numbers: []string{"66", "99"}, Errors: []string{"error: result"}},
		Asks: []Said{{"e0", "before"}, {"e2", "Look at in/one.go"}, {"e9", "u"}}, Images: 5, Messages: 7 + 5 + 7, Text: "so far", Tier: "full", From: "e0",
		Evicted: []Marker{{From: at, To: at, Count: 5, Tokens: 9, Cycles: 2}}}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("gathered\n%+v\nwant\n%+v", got, want)
	}
	if first := Gather(Digest{}, items); first.From != "e2" || first.Messages != 12 {
		t.Errorf("without one before it begins at %s and stands for %d", first.From, first.Messages)
	}
	if fmt.Sprint(prev.Index.Paths, prev.Asks) != "[was/zero.go in/one.go] [{e0 before}]" {
		t.Errorf("the digest before changed: %+v", prev)
	}
}

// TestBoundAsks: the newest requests stay, each to 600 bytes, as far as there is room for them.
func TestBoundAsks(t *testing.T) {
	asks := func(n, size int) (out []Said) {
		for i := range n {
			out = append(out, Said{tidemark.EntryID(fmt.Sprint(i)), strings.Repeat("x", size)})
		}
		return out
	}
	for _, row := range []struct{ n, size, first, many, bytes int }{
		{10, 400, 0, 10, 400}, {11, 400, 1, 10, 400}, {7, 600, 1, 6, 600}, {7, 601, 1, 6, 603}, {1, 5000, 0, 1, 603}, {8, 571, 1, 7, 571}, {0, 0, 0, 0, 0},
	} {
		got := boundAsks(asks(row.n, row.size))
		if len(got) != row.many || row.many > 0 && (got[0].Entry != tidemark.EntryID(fmt.Sprint(row.first)) || len(got[0].Text) != row.bytes) {
			t.Errorf("%d of %d bytes: %d stay: %+v", row.n, row.size, len(got), got)
		}
	}
}

// TestBoundMarkers: of more than six markers the oldest are joined.
func TestBoundMarkers(t *testing.T) {
	at := time.Date(2026, 5, 2, 14, 0, 0, 0, time.UTC)
	var list []Marker
	for i := range 8 {
		list = append(list, Marker{From: at.Add(time.Duration(i) * time.Hour), To: at.Add(time.Duration(i)*time.Hour + time.Minute), Count: 1 << i, Tokens: 10, Cycles: 1})
	}
	if got := boundMarkers(list[:6:6]); !reflect.DeepEqual(got, list[:6]) {
		t.Errorf("of six: %+v", got)
	}
	got := boundMarkers(list)
	if len(got) != 6 || got[0].Count != 1+2+4 || got[0].Tokens != 30 || got[0].Cycles != 3 || !got[0].From.Equal(at) || !got[0].To.Equal(list[2].To) || !reflect.DeepEqual(got[1:], list[3:]) {
		t.Errorf("of eight: %+v", got)
	}
}

// TestExtract is the whole text of a summary that no model wrote.
func TestExtract(t *testing.T) {
	image := tidemark.Block{Type: tidemark.TypeImage}
	doc, err := tidemark.TextDocument("plan", "see it")
	if err != nil {
		t.Fatal(err)
	}
	items := scripted("S M2 u c1,2 r1,2 a u")
	items[1].Data = Marker{Count: 5, Cycles: 2}.data()
	items[2].Message.Content = []tidemark.Block{tidemark.Text(" look\n  at it "), image, image, doc}
	items[3].Message.Content[0] = tidemark.ToolUse("1", "write", []byte(`{"text":"`+strings.Repeat("x", 300)+`"}`))
	items[5].Message.Content = []tidemark.Block{tidemark.Text(strings.Repeat("y", 401))}
	items[6].Message.Content = []tidemark.Block{tidemark.Text(" ")}
	want := "[Context contained 11 messages that were compacted. Summary unavailable: the model is away. Included 2 image(s).]\n\n" +
		"This is an extract of the conversation as it stands.\n" +
		"\n## Tool calls\n- write {\"text\":\"" + strings.Repeat("x", 191) + "…\n- read {}\n" +
		"\n## Last turns\n- user: [document plan] see it look at it\n- assistant: " + strings.Repeat("y", 400) + "…\n"
	if got := Extract(items, "the model is away."); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	none := "[Context contained 0 messages that were compacted. Summary unavailable: it is off.]\n\nThis is an extract of the conversation as it stands.\n\n## Tool calls\n- none\n\n## Last turns\n- none\n"
	if got := Extract(nil, "it is off"); got != none {
		t.Errorf("of nothing:\n%s", got)
	}
	for n, want := range map[int]string{3: "- a\n- b\n- c\n", 2: "- (1 earlier ones are in the archive)\n- b\n- c\n", 1: "- (2 earlier ones are in the archive)\n- c\n"} {
		if got := list([]string{"a", "b", "c"}, n); got != want {
			t.Errorf("the newest %d of three: %q, want %q", n, got, want)
		}
	}
	var many []Item
	for range 30 {
		many = append(many, scripted("c1 r1 a")...)
	}
	if got := Extract(many, "so"); strings.Count(got, "- read {}\n") != 25 || !strings.Contains(got, "(5 earlier ones") || strings.Count(got, "- assistant: a\n") != 8 || !strings.Contains(got, "(22 earlier ones") {
		t.Errorf("of many:\n%s", got)
	}
}
