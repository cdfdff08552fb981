package compaction

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// TestPointerTail: the newest turns stay, as many as are asked for and there is room for, and what no model has read.
func TestPointerTail(t *testing.T) {
	for _, row := range []struct {
		items string
		turns int
		keep  tidemark.Tokens
		want  int
	}{
		{"u a u a u a", 1, 1000, 4},
		{"u a u a u a", 2, 1000, 2},
		{"u a u a u a", 0, 1000, 0}, // ten
		{"u=100 a=100 u=100 a=100", 2, 300, 1},
		{"u=100 a=100 u=100 a=100", 2, 299, 2},
		{"u=100 a=100 u=100 a=100", 2, 1, 3}, // the last message has room in any case
		{"u a u c1 r1 a", 1, 1000, 2},
		{"u a=100 c1=100 r1=100 a=100", 1, 299, 4}, // an exchange is not parted
		{"u a=100 c1=100 r1=100 a=100", 1, 300, 2},
		{"u a u c1 r1 c2=500 r2=500", 1, 100, 5}, // what nobody has read
		{"u a u=9000", 1, 100, 2},
	} {
		v := scriptedView(row.items)
		if got := (Pointer{Tail: row.turns}).tail(v, Budget{Window: 40_000, Keep: row.keep}, Cuts(v.Items)); got != row.want {
			t.Errorf("%q: of %d turns in %d tokens the tail begins at %d, want %d", row.items, row.turns, row.keep, got, row.want)
		}
	}
	many := scriptedView(strings.Repeat("u a ", 12))
	if got := (Pointer{}).tail(many, Budget{Window: 40_000, Keep: 4000}, Cuts(many.Items)); got != 4 {
		t.Errorf("of twelve turns the tail begins at %d", got)
	}
}

// TestPointerNeed: as much as is over what is left below the limit, in the measure of the estimate.
func TestPointerNeed(t *testing.T) {
	for _, row := range []struct{ headroom, size, fixed, sum, want tidemark.Tokens }{
		{0, 1000, 0, 1000, 200}, // a fifth of 1,000
		{0, 800, 0, 800, 0},
		{300, 1000, 0, 1000, 300},
		{300, 1000, 200, 800, 300},
		{300, 1700, 100, 800, 500}, // counted twice
		{300, 900, 100, 1600, 200}, // counted half: no less than that
		{5000, 1000, 0, 1000, 1000},
	} {
		d := &draft{size: row.size, fixed: row.fixed, sum: row.sum}
		if got := (Pointer{Headroom: row.headroom}).need(d, Budget{Window: 1000}); got != row.want {
			t.Errorf("%d free of 1000, %d of which %d fixed, %d estimated: %d must go, want %d", row.headroom, row.size, row.fixed, row.sum, got, row.want)
		}
	}
}

// TestPointerExchanges: what may leave, oldest first, by exchanges: nothing of the tail, nothing that stays, nothing that
// stands for other entries.
func TestPointerExchanges(t *testing.T) {
	for _, row := range []struct {
		items        string
		behind, tail int
		want         string // from-to tokens*weight
	}{
		{"u a c1 r1 a", 0, 5, "0-1 10*0.5|1-2 10*0.5|2-4 20*1|4-5 10*0.5"},
		{"u a c1 r1 a", 1, 4, "1-2 10*0.5|2-4 20*1"},
		{"u a c1 r1 a", 0, 3, "0-1 10*0.5|1-2 10*0.5"}, // the tail begins within an exchange
		{"u! a c1! r1 a", 0, 5, "1-2 10*0.5|4-5 10*0.5"},
		{"S M1 u E L a", 0, 6, "2-3 10*0.5|5-6 10*0.5"},
		{"c1,2=30 r1=40 r2=50 x9", 0, 4, "0-3 120*1|3-4 10*1"},
		{"c1 a", 0, 2, "0-1 10*0.8|1-2 10*0.5"},
	} {
		v := scriptedView(row.items)
		keep := make([]bool, len(v.Items))
		for i, it := range v.Items {
			keep[i] = it.Pinned
		}
		var got []string
		for _, x := range exchanges(newDraft(v), row.behind, Cuts(v.Items), row.tail, keep) {
			got = append(got, fmt.Sprintf("%d-%d %d*%v", x.from, x.to, x.tokens, x.weight))
		}
		if s := strings.Join(got, "|"); s != row.want {
			t.Errorf("%q: %s, want %s", row.items, s, row.want)
		}
	}
	pointed := Item{Stubs: 1, Message: of(tidemark.User, tidemark.ToolResult("c", pointerMark, false))}
	if got := weightOf(&pointed); got != weightMessage { // its words weigh as any
		t.Errorf("a pointer weighs %v", got)
	}
	pointed.Message.Content = append(pointed.Message.Content, tidemark.ToolResult("d", "whole", false))
	if got := weightOf(&pointed); got != weightResult {
		t.Errorf("beside a whole result it weighs %v", got)
	}
}

// TestPointerChoice: exchanges of tools go before dialogue, the oldest first, no more than are needed with the marker.
func TestPointerChoice(t *testing.T) {
	list := []exchange{{0, 1, 100, 0.5}, {1, 3, 200, 1}, {3, 4, 100, 0.5}, {4, 6, 200, 0.8}, {6, 7, 100, 0.3}}
	for _, row := range []struct {
		need tidemark.Tokens
		want string
		gain tidemark.Tokens
	}{
		{1, "1 2", 120}, {120, "1 2", 120}, {121, "1 2 4 5", 320}, {320, "1 2 4 5", 320}, {321, "0 1 2 4 5", 420}, {421, "0 1 2 3 4 5", 520}, {521, "0 1 2 3 4 5 6", 620}, {9000, "0 1 2 3 4 5 6", 620},
	} {
		covered, gain := choose(7, list, row.need)
		if marked(covered) != row.want || gain != row.gain {
			t.Errorf("for %d: %s go and free %d, want %s and %d", row.need, marked(covered), gain, row.want, row.gain)
		}
	}
	if covered, gain := choose(7, nil, 10); marked(covered) != "" || gain != -80 {
		t.Errorf("of nothing: %s, %d", marked(covered), gain)
	}
}

// TestPointerSpans: no span of ours lies around one that is no marker; markers behind it are found, the newest first.
func TestPointerSpans(t *testing.T) {
	for _, row := range []struct {
		items  string
		behind int
		marks  string // places, and compactions
		lines  int    // the first place behind, when lines of episodes may be taken in
		with   string
	}{
		{"u a u", 0, "", 0, ""},
		{"S u a", 1, "", 1, ""},
		{"M3 u M1 a", 0, "2:1 0:3", 0, "2:1 0:3"},
		{"M3 S u M1 a", 2, "3:1", 2, "3:1"},
		{"M2 E u M1 a", 2, "3:1", 0, "3:1 1:0 0:2"},
		{"u L a", 2, "", 2, ""},
		{"u a S", 3, "", 3, ""},
	} {
		items := scripted(row.items)
		for _, lines := range []bool{false, true} {
			behind, marks := spans(items, lines)
			var got []string
			for _, m := range marks {
				got = append(got, fmt.Sprintf("%d:%d", m.at, m.cycles))
				if isLine := items[m.at].Message.Content[0].Text == "E"; m.line != isLine {
					t.Errorf("%q: mark %d is a line: %v", row.items, m.at, m.line)
				}
			}
			want, list := row.behind, row.marks
			if lines {
				want, list = row.lines, row.with
			}
			if behind != want || strings.Join(got, " ") != list {
				t.Errorf("%q, lines %v: behind %d, %v; want %d, %s", row.items, lines, behind, got, want, list)
			}
		}
	}
	items := scripted("M1 u S u a") // what a marker keeps lies within it
	items[0].Last, items[2].Seq, items[2].Last = 6, 2, 2
	items[3].Seq, items[3].Last, items[4].Seq, items[4].Last = 5, 5, 7, 7
	if behind, marks := spans(items, false); behind != 4 || len(marks) != 0 {
		t.Errorf("behind %d, %v", behind, marks)
	}
}

// TestMarkersTakenIn: a new marker takes in those that its span would cut, those of its own level, and what comes with them.
func TestMarkersTakenIn(t *testing.T) {
	for _, row := range []struct{ items, covered, want string }{
		{"u a u", "1", "1"},
		{"M1 u a", "1", "0 1"},      // its own level
		{"M2 u a", "1", "1"},        // one above
		{"M2 M1 u a", "2", "0 1 2"}, // the carry
		{"M4 M2 M1 u", "3", "0 1 2 3"},
		{"M4 M1 u", "2", "1 2"},
		{"M3 u M3 a", "1 3", "1 2 3"}, // cut by the span; of four compactions now
		{"M4 u M3 a", "1 3", "0 1 2 3"},
		{"u E a", "0 2", "0 1 2"}, // a line only where it is cut
		{"E u a", "1", "1"},
	} {
		items := scripted(row.items)
		covered := make([]bool, len(items))
		for place := range strings.FieldsSeq(row.covered) {
			covered[int(place[0]-'0')] = true
		}
		_, marks := spans(items, true)
		if got := marked(withMarkers(items, covered, marks)); got != row.want {
			t.Errorf("%q over %s: %s, want %s", row.items, row.covered, got, row.want)
		}
	}
	for cycles, want := range map[int]int{0: 0, 1: 0, 2: 1, 3: 1, 4: 2, 7: 2, 8: 3, 1023: 9, 1024: 10} {
		if got := level(cycles); got != want {
			t.Errorf("%d compactions are of level %d, want %d", cycles, got, want)
		}
	}
	items := scripted("u a u a")
	for covers, want := range map[string][2]int64{"0": {1, 1}, "1 2": {2, 3}, "0 3": {1, 4}, "": {math.MaxInt64, 0}} {
		covered := make([]bool, 4)
		for place := range strings.FieldsSeq(covers) {
			covered[int(place[0]-'0')] = true
		}
		if from, to := reach(items, covered); from != want[0] || to != want[1] {
			t.Errorf("%s reach from %d to %d", covers, from, to)
		}
	}
}

// TestIdentity: a pointer says of a call the two arguments that tell it from others best, each bounded.
func TestIdentity(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	for _, row := range []struct{ input, want string }{
		{`{}`, ""}, {`[1]`, ""}, {`{"text":"a"}`, ""},
		{`{"id":7,"path":"a.go","query":"q"}`, `,"path":"a.go","query":"q"`},
		{`{"id":7,"title":"t","name":"n"}`, `,"name":"n","title":"t"`},
		{`{"id":-7}`, `,"id":"-7"`}, {`{"id":0.5}`, `,"id":"0.5"`}, {`{"id":true}`, ""}, {`{"id":null}`, ""}, {`{"path":["a"],"file":{"a":1},"url":"u"}`, `,"url":"u"`},
		{`{"path":"","url":"u"}`, `,"url":"u"`},
		{`{"path":"` + x(120) + `"}`, `,"path":"` + x(120) + `"`}, {`{"path":"` + x(121) + `"}`, `,"path":"` + x(120) + `…"`}, {`{"path":"` + x(119) + `é"}`, `,"path":"` + x(119) + `…"`},
		{`{"id":` + strings.Repeat("1", 120) + `}`, `,"id":"` + strings.Repeat("1", 120) + `"`}, {`{"id":` + strings.Repeat("1", 121) + `}`, ""},
		{`{"cmd":"a\"b"}`, `,"cmd":"a\"b"`},
	} {
		if got := string(appendIdentity(nil, []byte(row.input))); got != row.want {
			t.Errorf("%s: %s, want %s", row.input, got, row.want)
		}
	}
	for s, want := range map[string]bool{"": false, "0": true, "9": true, "-": true, "/": false, ":": false, "true": false} {
		if isNumber(s) != want {
			t.Errorf("%q is a number: %v", s, !want)
		}
	}
}

// TestPointerTexts: what stands for a result, an error and a call, and how it is known again.
func TestPointerTexts(t *testing.T) {
	it := Item{ID: `e"1`, At: time.Date(2026, 5, 2, 14, 32, 0, 0, time.UTC), Stubs: 1}
	call := tidemark.ToolUse("c", "write", []byte(`{"path":"a.go","text":"x"}`))
	for _, row := range []struct {
		was  tidemark.Block
		want string
	}{
		{tidemark.ToolResult("c", "x", false), `{"type":"tool_result","tool_use_id":"c","content":"[Evicted: result of 400 tokens, 2026-05-02 14:32. recall with {\"entry\": \"e\\\"1\"} reads it.]"}`},
		{tidemark.ToolResult("c", "x", true), `{"type":"tool_result","tool_use_id":"c","content":"[Evicted: error of 400 tokens, 2026-05-02 14:32. recall with {\"entry\": \"e\\\"1\"} reads it.]","is_error":true}`},
		{call, `{"type":"tool_use","id":"c","name":"write","input":{"evicted":"400 tokens","path":"a.go","recall":{"entry":"e\"1"}}}`},
		{tidemark.ToolUse("c", "write", nil), `{"type":"tool_use","id":"c","name":"write","input":{"evicted":"400 tokens","recall":{"entry":"e\"1"}}}`},
	} {
		got := pointerTo(&it, row.was, 400)
		if string(got.AppendJSON(nil)) != row.want {
			t.Errorf("got  %s\nwant %s", got.AppendJSON(nil), row.want)
		}
		if !isPointer(&it, got) || isPointer(&it, row.was) || isPointer(&Item{}, got) {
			t.Errorf("%s is not known again", row.want)
		}
	}
	if got := string(argsOf(pointerTo(&it, call, 400).Input)); got != `"path":"a.go",` {
		t.Errorf("of the call it says %s", got)
	}
	two := tidemark.ToolResult("c", pointerMark, false)
	two.Content = append(two.Content, tidemark.Text("more"))
	for _, b := range []tidemark.Block{two, tidemark.Text(pointerMark), {Type: tidemark.TypeToolResult}, tidemark.ToolUse("c", "n", []byte(`{}`))} {
		if isPointer(&it, b) {
			t.Errorf("%s is a pointer", b.AppendJSON(nil))
		}
	}
}
