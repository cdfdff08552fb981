package proxy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/proxy/body"
)

// changes says what is changed of a request, on a line for each.
func changes(ch *body.Change) (out []string) {
	for _, s := range ch.Spans {
		out = append(out, strings.TrimSpace(fmt.Sprintf("span %d-%d %v %s", s.From, s.To, s.Keep, s.Messages)))
	}
	for _, b := range ch.Blocks {
		out = append(out, strings.TrimSpace(fmt.Sprintf("block %d.%d %s", b.Item, b.Block, b.Raw)))
	}
	for _, in := range ch.Inserts {
		s := fmt.Sprintf("insert %d at %d %s %s %s", in.Item, in.Visible, in.Blocks, in.Calls, in.Results)
		if in.Split {
			s += " split"
		}
		out = append(out, s)
	}
	return out
}

// aLine is a text block in the place of what left.
const aLine = `{"type":"text","text":"L"}`

// TestLeave: what is done to a request so that what left is out of it: messages and blocks, a whole message where nothing of it is
// left, our own calls with their results; and what the client never saw is put back where that stands still.
func TestLeave(t *testing.T) {
	const first, second = "insert 1 at 1 [] [" + call1 + "] [" + result1 + "]", "insert 5 at 1 [] [" + call2 + "] [" + result2 + "] split"
	gone, line := leftBlock{}, leftBlock{Text: "L"}
	for _, row := range []struct {
		name string
		left left
		want []string
	}{
		{"nothing", left{}, []string{first, second}},
		{"messages, with a line", left{spans: []leftSpan{{From: 1, To: 2, Text: "T"}}}, []string{`span 1-2 [] [{"role":"user","content":"T"}]`, second}},
		{"messages around a system message", left{spans: []leftSpan{{From: 1, To: 5}}}, []string{"span 1-5 [3] []"}},
		{"a text", left{blocks: map[int]map[place]leftBlock{1: {{N: 0}: gone}}}, []string{"block 1.1", first, second}},
		{"thinking, and a text with a line", left{blocks: map[int]map[place]leftBlock{1: {{N: 0, Thought: 1}: gone, {N: 0}: line}}}, []string{"block 1.0", "block 1.1 " + aLine, first, second}},
		{"a call of ours, with a line", left{blocks: map[int]map[place]leftBlock{1: {{N: 1}: line}}}, []string{"insert 1 at 1 [" + aLine + "] [] []", second}},
		{"a call of ours", left{blocks: map[int]map[place]leftBlock{1: {{N: 1}: gone}}}, []string{second}},
		{"a call of ours that ended its reply, with a line", left{blocks: map[int]map[place]leftBlock{5: {{N: 1}: line}}}, []string{first, "insert 5 at 1 [" + aLine + "] [] []"}},
		{"all of a message of the client's", left{blocks: map[int]map[place]leftBlock{8: {{N: 0}: gone}}}, []string{"span 8-8 [] []", first, second}},
		{"all of it but a line", left{blocks: map[int]map[place]leftBlock{8: {{N: 0}: line}}}, []string{"block 8.0 " + aLine, first, second}},
		{"all of one before which a result of ours goes", left{blocks: map[int]map[place]leftBlock{2: {{N: 0}: gone}}}, []string{"block 2.0", first, second}},
		{"all of one with the result of ours before it", left{blocks: map[int]map[place]leftBlock{1: {{N: 1}: gone}, 2: {{N: 0}: gone}}}, []string{"span 2-2 [] []", second}},
		{"all of a reply but a call of ours", left{blocks: map[int]map[place]leftBlock{5: {{N: 0}: gone}}}, []string{"block 5.0", first, second}},
	} {
		x := exchangeOf(t, mixedPuts(), mixed...)
		x.leave(&row.left)
		if got := changes(&x.plan.change); !slices.Equal(got, row.want) {
			t.Errorf("%s:\n%s\nwant\n%s", row.name, strings.Join(got, "\n"), strings.Join(row.want, "\n"))
		}
	}
}

// TestLeaveBehindOurs: a message of results that all left goes as a whole, unless results of ours go to its front; what
// only counts down goes with the message that it stands behind.
func TestLeaveBehindOurs(t *testing.T) {
	answer := func(id string) string {
		return `{"role":"user","content":[{"type":"tool_result","tool_use_id":"` + id + `","content":"r"}]}`
	}
	list := []string{mixed[0], mixed[5], answer("c1"), answer("c2"), `{"role":"system","content":"<total_tokens>9 tokens left</total_tokens>"}`, mixed[6]}
	gone := map[place]leftBlock{{N: 0}: {}}
	ours := placed{Visible: 1, Calls: raws(call1), Results: raws(result1)}
	split := placed{Visible: 1, Split: true, Calls: raws(call2), Results: raws(result2)}
	words := placed{Visible: 1, Blocks: raws(aLine)}
	for _, row := range []struct {
		name   string
		places []placed
		left   left
		want   []string // but for what is put back
	}{
		{"the next", []placed{ours}, left{blocks: map[int]map[place]leftBlock{2: gone}}, []string{"block 2.0"}},
		{"the one behind", []placed{ours}, left{blocks: map[int]map[place]leftBlock{3: gone}}, []string{"span 3-4 [] []"}},
		{"both", []placed{ours}, left{blocks: map[int]map[place]leftBlock{2: gone, 3: gone}}, []string{"span 3-4 [] []", "block 2.0"}},
		{"behind one that left", []placed{ours}, left{spans: []leftSpan{{From: 2, To: 2}}, blocks: map[int]map[place]leftBlock{3: gone}}, []string{"span 2-2 [] []", "span 3-4 [] []"}},
		{"ours with words behind", []placed{ours, words}, left{blocks: map[int]map[place]leftBlock{2: gone}}, []string{"block 2.0"}},
		{"only words", []placed{words}, left{blocks: map[int]map[place]leftBlock{2: gone}}, []string{"span 2-2 [] []"}},
		{"a call that ended the reply", []placed{split}, left{blocks: map[int]map[place]leftBlock{2: gone}}, []string{"span 2-2 [] []"}},
		{"one of each", []placed{ours, split}, left{blocks: map[int]map[place]leftBlock{2: gone}}, []string{"span 2-2 [] []"}},
		{"messages", nil, left{spans: []leftSpan{{From: 1, To: 3, Text: "T"}}}, []string{`span 1-4 [] [{"role":"user","content":"T"}]`}},
	} {
		x := exchangeOf(t, map[int]*put{1: {Places: row.places}}, list...)
		x.leave(&row.left)
		got := changes(&x.plan.change)
		got = slices.DeleteFunc(got, func(s string) bool { return strings.HasPrefix(s, "insert") })
		if !slices.Equal(got, row.want) || len(x.plan.change.Inserts) != len(row.places) {
			t.Errorf("%s:\n%s\n%d are put back\nwant\n%s", row.name, strings.Join(got, "\n"), len(x.plan.change.Inserts), strings.Join(row.want, "\n"))
		}
	}
}

// TestOverlayOfAct: the log is told of an act by its own entries and blocks; of what the client never saw it knows nothing.
func TestOverlayOfAct(t *testing.T) {
	x := exchangeOf(t, mixedPuts(), mixed...)
	a := &act{Spans: []leftSpan{{From: 1, To: 2, Line: episodes.Line{Lines: []int{3}}, Text: "T"}, {From: 3, To: 5}},
		Blocks: []leftBlock{{Item: 1, place: place{N: 1}, Text: "ours"}, {Item: 1, place: place{N: 2}}, {Item: 7, place: place{N: 0, Thought: 1}, Text: "L", Told: 4}}}
	raw, err := json.Marshal(a.overlay(x.path))
	const want = `{"by":["episodes"],"edits":[{"from":"e1","to":"e2","messages":[{"role":"user","content":"T"}],"data":{"episodes":{"lines":[3]}}},` +
		`{"from":"e3","to":"e5","keep":["e3"],"data":{"episodes":{}}},{"from":"e1","block":3,"data":{"episodes":{}}},` +
		`{"from":"e7","block":1,"blocks":[` + aLine + `],"data":{"episodes":{}}}],"reason":"threshold"}`
	if string(raw) != want || err != nil {
		t.Errorf("%s, %v\nwant\n%s", raw, err, want)
	}
}

// TestToldOfTrack: where the log has an episode, of which some stands in no log; and of which episodes something left.
func TestToldOfTrack(t *testing.T) {
	x := exchangeOf(t, mixedPuts(), mixed...)
	for i, n := range x.path {
		n.seq = int64(10 * (i + 1))
	}
	for _, row := range []struct {
		at         episodes.Place
		begin, end episodes.Place
	}{
		{episodes.Place{Seq: 4, Block: 0}, episodes.Place{Seq: 20, Block: 0}, episodes.Place{Seq: 20, Block: 1}},
		{episodes.Place{Seq: 4, Block: 1}, episodes.Place{Seq: 20, Block: 2}, episodes.Place{Seq: 20, Block: 1}}, // a call of ours
		{episodes.Place{Seq: 4, Block: 2}, episodes.Place{Seq: 20, Block: 2}, episodes.Place{Seq: 20, Block: 2}},
		{episodes.Place{Seq: 12, Block: 1}, episodes.Place{Seq: 60, Block: 1}, episodes.Place{Seq: 60, Block: 0}}, // nothing of the client's is behind it
		{episodes.Place{Seq: 13, Block: 0}, episodes.Place{Seq: 60, Block: 0}, episodes.Place{Seq: 60, Block: 0}}, // its result
		{episodes.Place{Seq: 18, Block: 0}, episodes.Place{Seq: 90, Block: 0}, episodes.Place{Seq: 90, Block: 0}},
	} {
		if begin, end := x.inLog(row.at, false), x.inLog(row.at, true); begin != row.begin || end != row.end {
			t.Errorf("%+v begins at %+v, want %+v, and ends at %+v, want %+v", row.at, begin, row.begin, end, row.end)
		}
	}
	reply := x.path[5]
	reply.put = &put{Places: []placed{{Calls: raws(call2), Results: raws(result2)}}}
	if end := x.inLog(episodes.Place{Seq: 12, Block: 0}, true); end != (episodes.Place{Seq: 60, Block: -1}) {
		t.Errorf("what ends before all that the client saw ends at %+v", end)
	}
}

// TestPartOfSpans: something left of an episode where a run of messages reaches into it, and of no other.
func TestPartOfSpans(t *testing.T) {
	g := episodes.Load(episodes.Tools{}, []episodes.Episode{
		{N: 1, From: episodes.Place{Seq: 4}, To: episodes.Place{Seq: 7}}, // messages 1 and 2, with a result of ours behind it
		{N: 2, From: episodes.Place{Seq: 8}, To: episodes.Place{Seq: 8}}, // message 3
		{N: 3, From: episodes.Place{Seq: 9}, To: episodes.Place{Seq: 12}},
	}, 12)
	for _, row := range []struct {
		from, to int
		want     string
	}{
		{0, 0, "map[]"}, {1, 1, "map[1:true]"}, {2, 2, "map[1:true]"}, {0, 1, "map[1:true]"},
		{3, 3, "map[2:true 3:true]"}, {2, 3, "map[1:true 2:true 3:true]"}, {4, 4, "map[3:true]"}, {5, 5, "map[3:true]"}, {6, 6, "map[]"},
	} {
		e := EpisodesTold{Part: map[int]bool{}}
		if e.cut(g, &left{spans: []leftSpan{{From: row.from, To: row.to}}}); fmt.Sprint(e.Part) != row.want {
			t.Errorf("of messages %d to %d: %v, want %s", row.from, row.to, e.Part, row.want)
		}
	}
}

// TestLeaveBesideWords: words of the model's that the client never saw go back where something else of the reply left.
func TestLeaveBesideWords(t *testing.T) {
	x := exchangeOf(t, map[int]*put{1: {Places: []placed{{Visible: 1, Blocks: raws(aLine), Calls: raws(call1, call2), Results: raws(result1, result2)}}}}, mixed[:3]...)
	x.leave(&left{blocks: map[int]map[place]leftBlock{1: {{N: 0}: {}, {N: 2}: {}}}})
	if got, want := changes(&x.plan.change), []string{"block 1.1", "insert 1 at 1 [" + aLine + "] [" + call2 + "] [" + result2 + "]"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
