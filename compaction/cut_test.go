package compaction

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// TestCuts is the table of where a span may begin or end.
func TestCuts(t *testing.T) {
	for _, row := range []struct{ items, want string }{
		{"", "0"},
		{"u a u a", "0 1 2 3 4"},
		{"u c1 r1 a", "0 1 3 4"},
		{"u c1,2 r1 r2 a", "0 1 4 5"}, // the exchange ends with its last result
		{"u c1,2 r1 a", "0 1 3 4"},    // one that nobody answers holds nothing open
		{"u c1 a u", "0 1 2 3 4"},     // nor does it alone
		{"u c1 r9 a", "0 1 3 4"},      // beside results of others it stays with them
		{"u c1 r9", "0 1 3"},
		{"u c1", "0 1 2"},                     // at the end
		{"c1 c2 r1,2 a", "0 3 4"},             // calls over several messages
		{"u c1 u r1 a", "0 1 4 5"},            // somebody spoke between call and result
		{"u r9 u", "0 1 2 3"},                 // a result without any call
		{"c1 r1 c1 r1 u", "0 2 4 5"},          // an id is used again
		{"u c1 x1 a c2 r2 u", "0 1 3 4 6 7"},  // words behind the result
		{"u t1 r1 a S M1 u", "0 1 3 4 5 6 7"}, // what replaced a span is as any message
	} {
		if got := marked(Cuts(scripted(row.items))); got != row.want {
			t.Errorf("%q may be cut at %s, want %s", row.items, got, row.want)
		}
	}
}

// TestNewestTurn: what a person said last is one message or several before a reply, whatever the system says between.
func TestNewestTurn(t *testing.T) {
	for _, row := range []struct {
		items    string
		from, to int
	}{
		{"", 0, 0}, {"a a", 0, 0}, {"y a", 0, 0}, {"u", 0, 1}, {"u a", 0, 1}, {"a u", 1, 2}, {"u a u u a c1 r1", 2, 4}, {"u y u a", 0, 3}, {"a y u", 1, 3},
		{"u r1", 0, 1}, {"u S", 0, 1}, {"S u", 1, 2}, {"u y", 0, 1}, {"u a x1", 0, 1}, {"M1 y u a", 1, 3},
	} {
		if from, to := newestTurn(scripted(row.items)); from != row.from || to != row.to {
			t.Errorf("%q: the newest turn is %d to %d, want %d to %d", row.items, from, to, row.from, row.to)
		}
	}
}

// TestHolesAreNoTurn: what a person said before a reply that has left the view is none of their newest turn, though it stands
// beside it; what they said in one go is.
func TestHolesAreNoTurn(t *testing.T) {
	for _, row := range []struct {
		second int64 // position of the second message
		to     int64 // where the span ends
		want   int   // where the newest turn begins
	}{{5, 4, 2}, {5, 3, 2}, {5, 2, 1}, {3, 2, 1}, {3, 9, 1}, {4, 9, 2}} {
		items := scripted("M1 u u c1 r1") // the span hides position 1 and what is behind its hole at 2
		items[0].Last, items[1].Seq, items[1].Last = row.to, 2, 2
		items[2].Seq, items[2].Last = row.second, row.second
		if from, to := newestTurn(items); from != row.want || to != 3 {
			t.Errorf("said at 2 and %d, with a span up to %d: the newest turn is %d to %d, want it from %d", row.second, row.to, from, to, row.want)
		}
	}
}

// TestUnread: what no reply followed is the last calls and their results, or what stands behind the last reply; the turn of
// those calls begins behind what a person said, and all of it stays whole where the window has room.
func TestUnread(t *testing.T) {
	for _, row := range []struct {
		items      string
		from, turn int
		whole      string
		turnsRoom  string // what is whole where there is room for the turn, if that is more
	}{
		{"", 0, 0, "", ""},
		{"u", 0, 1, "0", ""},
		{"u a", 2, 2, "0", ""},
		{"u a u y", 2, 4, "2 3", ""},
		{"u a u c1 r1 a", 6, 6, "2", ""},
		{"u a u c1 r1", 3, 3, "2 3 4", ""},
		{"u a u c1 r1 c2 r2", 5, 3, "2 5 6", "2 3 4 5 6"},
		{"u a u c1 c2 r1,2", 3, 3, "2 3 4 5", ""},
		{"u a c1 r1 u", 2, 1, "2 3 4", "1 2 3 4"}, // what was written behind the calls is sent with their results
		{"c1 r1", 0, 0, "0 1", ""},
		{"u c1 r1 c2 x2", 3, 1, "0 3 4", "0 1 2 3 4"},
		{"a u S c1 r1", 3, 2, "1 3 4", ""},
		{"u a M1 u L", 2, 5, "3", ""}, // spans stand for what was read
	} {
		items := scripted(row.items)
		from, turn := unread(items)
		v := scriptedView(row.items)
		if got := marked(whole(v, Budget{})); from != row.from || turn != row.turn || got != row.whole {
			t.Errorf("%q: unread from %d, the turn from %d, whole are %s; want %d, %d, %s", row.items, from, turn, got, row.from, row.turn, row.whole)
		}
		if got := marked(whole(v, Budget{Window: 2*v.Size + 8})); got != cmp.Or(row.turnsRoom, row.whole) {
			t.Errorf("%q: whole are %s where there is room, want %s", row.items, got, cmp.Or(row.turnsRoom, row.whole))
		}
	}
}

// TestChunkSizes: a chunk is as large as its bound at most, ends where a span may, and what is larger stands alone.
func TestChunkSizes(t *testing.T) {
	for _, row := range []struct{ items, want string }{
		{"", ""},
		{"u=10 a=10 u=10 a=10", "3 1"}, // the bound itself is taken
		{"u=10 a=10 u=11 a=10", "2 2"},
		{"u=10 c1=10 r1=15 a=10", "1 2 1"},
		{"u=100 u=10", "1 1"},
		{"u=10 u=100 u=10", "1 1 1"},
		{"u=20 c1=8 r1=4 u=18", "1 3"}, // what stood open counts for the next chunk
		{"u=20 c1=8 r1=4 u=19", "1 2 1"},
		{"c1=20 r1=20 a=10", "2 1"}, // an exchange is never parted
		{"u=10 c1=20 r1=20 a=30 u=1", "1 2 1 1"},
	} {
		var got []string
		for _, c := range Chunks(scripted(row.items), 30) {
			got = append(got, fmt.Sprint(len(c)))
		}
		if s := strings.Join(got, " "); s != row.want {
			t.Errorf("%q: chunks of %s items, want %s", row.items, s, row.want)
		}
	}
}

// TestHalves: several items are parted where half of their tokens ends, and neither half is empty.
func TestHalves(t *testing.T) {
	for _, row := range []struct {
		items string
		first int
	}{
		{"", 0}, {"u=10 u=10", 1}, {"u=10 u=10 u=10 u=10", 2}, {"u=30 u=10", 1}, {"u=5 u=5 u=30", 2}, {"u=10 u=11 u=10 u=10", 1}, {"u=10 u=10 u=11 u=10", 2},
		{"u=1 u=1 u=1 u=0 u=0", 1}, {"u=0 u=0", 1},
	} {
		items := scripted(row.items)
		if got := Halves(items); len(got[0]) != row.first || len(got[0])+len(got[1]) != len(items) {
			t.Errorf("%q: %d and %d items, want %d in the first", row.items, len(got[0]), len(got[1]), row.first)
		}
	}
}

// TestHalvesOfOne: a single message is parted in the middle of its longest text, between characters; all else stays with
// the first half, and what cannot be parted stays whole.
func TestHalvesOfOne(t *testing.T) {
	image := tidemark.Block{Type: tidemark.TypeImage}
	for _, row := range []struct {
		name          string
		blocks        []tidemark.Block
		first, second string // "" where nothing is parted
	}{
		{"two letters", []tidemark.Block{tidemark.Text("ab")}, "a", "b"},
		{"three", []tidemark.Block{tidemark.Text("abc")}, "a", "bc"},
		{"one letter", []tidemark.Block{tidemark.Text("a")}, "", ""},
		{"one of two bytes", []tidemark.Block{tidemark.Text("é")}, "", ""},
		{"its middle within the first", []tidemark.Block{tidemark.Text("éa")}, "", ""},
		{"its middle within a later one", []tidemark.Block{tidemark.Text("aéb")}, "a", "éb"},
		{"the longest of several", []tidemark.Block{tidemark.Text("abcd"), tidemark.Text("abcdef"), tidemark.Text("ab")}, "abcd\nabc\nab", "def"},
		{"the first of equal ones", []tidemark.Block{image, tidemark.Text("abcd"), tidemark.Text("efgh")}, "ab\nefgh", "cd"},
		{"no text at all", []tidemark.Block{image}, "", ""},
		{"thinking is none", []tidemark.Block{{Type: tidemark.TypeThinking, Text: "abcdefgh"}, tidemark.Text("xy")}, "x", "y"},
		{"a result is none", []tidemark.Block{tidemark.ToolResult("c", "abcdefgh", false), tidemark.Text("xy")}, "x", "y"},
	} {
		it := Item{ID: "e1", Seq: 1, Tokens: 999, Message: tidemark.Message{Role: tidemark.Assistant, Content: row.blocks}}
		before := string(it.Message.AppendJSON(nil))
		got := Halves([]Item{it})
		if string(it.Message.AppendJSON(nil)) != before {
			t.Errorf("%s: the message itself changed: %s", row.name, it.Message.AppendJSON(nil))
		}
		if row.first == "" {
			if len(got[0]) != 1 || len(got[1]) != 0 || got[0][0].Tokens != 999 {
				t.Errorf("%s: %+v", row.name, got)
			}
			continue
		}
		a, b := got[0][0], got[1][0]
		if len(a.Message.Content) != len(row.blocks) || len(b.Message.Content) != 1 || a.Message.PlainText() != row.first || b.Message.PlainText() != row.second {
			t.Errorf("%s: %q and %q, want %q and %q", row.name, a.Message.PlainText(), b.Message.PlainText(), row.first, row.second)
		}
		for _, half := range []Item{a, b} {
			if half.ID != "e1" || half.Message.Role != tidemark.Assistant || half.Tokens != tidemark.Estimate(half.Message) {
				t.Errorf("%s: a half is %+v", row.name, half)
			}
		}
	}
}

// TestHeld: an exchange stays as a whole where something of it is pinned, or is the newest call of a tool whose state is
// needed; what stands for other entries does not.
func TestHeld(t *testing.T) {
	for _, row := range []struct{ items, want string }{
		{"u c1 r1 a", ""},
		{"u c1 r1! a", "1 2"},
		{"u! c1 r1 a", "0"},
		{"u t1 r1 a t2 r2 a", "4 5"},
		{"u t1 c3 r1,3 t2! r2 t4 r4", "4 5 6 7"},
		{"u! S! u!", "0 2"},
		{"t1,2 r1,2 a", "0 1"},
		{"c1 r1 t1 r1", "2 3"}, // an id may be used again
	} {
		items := scripted(row.items)
		if got := marked(held(items, Cuts(items), []string{DefaultStay})); got != row.want {
			t.Errorf("%q: %s stay, want %s", row.items, got, row.want)
		}
	}
	items := scripted("t1 r1 t2 r2")
	if got := marked(held(items, Cuts(items), nil)); got != "" {
		t.Errorf("of no tool %s stay", got)
	}
	items[2].Overlay = "o" // what replaced a span has no newest call
	if at, ids := newestCalls(items, []string{DefaultStay}); len(at) != 1 || !at[0] || len(ids) != 1 || !ids["1"] {
		t.Errorf("the newest call is %v, %v", at, ids)
	}
}

// TestHoldRoom: what is pinned takes a quarter of what may be sent: the newest first, whole exchanges, and the first that has
// no room ends it. What is too large alone is no reason to let others go.
func TestHoldRoom(t *testing.T) {
	for _, row := range []struct {
		items string // all with "!" are to be pinned
		fixed tidemark.Tokens
		times tidemark.Tokens // as many tokens as estimated the provider counts
		want  string
		loose int
	}{
		{"u=400! a u=600! a", 0, 1, "0 2", 0},
		{"u=400! a u=601! a", 0, 1, "2", 1},
		{"u=1000! a", 0, 1, "0", 0},
		{"u=1001! a", 0, 1, "", 1},
		{"u=400! u=1001! u=400!", 0, 1, "0 2", 1},
		{"u=100! u=700! u=400!", 0, 1, "2", 2},         // the oldest lose their hold, however small they are
		{"u=10 c1=300 r1=800! a u=10!", 0, 1, "4", 1},  // the call counts with its result
		{"u=10 c1=300! r1=800! a u=10!", 0, 1, "4", 2}, // and both lose it
		{"u=10 c1=300 r1=700! a", 0, 1, "2", 0},
		{"S=10! u=10!", 0, 1, "1", 0}, // what stands under a span stays there already
		{"u=500! a", 2000, 1, "0", 0}, // the fixed part leaves less
		{"u=501! a", 2000, 1, "", 1},
		{"u=10! a", 5000, 1, "", 1},    // or nothing
		{"u=250! a=250", 0, 4, "0", 0}, // the provider counts four times as much
		{"u=251! a=250", 0, 4, "", 1},
	} {
		v := scriptedView(row.items)
		v.Fixed, v.Size = row.fixed, row.fixed+v.Size*row.times
		pins := map[tidemark.EntryID]bool{}
		for i := range v.Items {
			pins[v.Items[i].ID] = v.Items[i].Pinned
			v.Items[i].Pinned = false
		}
		got := Hold(v, pins, Budget{Window: 4000})
		pinned := make([]bool, len(got.Items))
		for i := range got.Items {
			if pinned[i] = got.Items[i].Pinned; v.Items[i].Pinned {
				t.Errorf("%q: the view itself changed", row.items)
			}
		}
		if marked(pinned) != row.want || got.Loose != row.loose {
			t.Errorf("%q, %d fixed, counted %d-fold: %s hold and %d are loose, want %s and %d", row.items, row.fixed, row.times, marked(pinned), got.Loose, row.want, row.loose)
		}
	}
}

// TestLed: what was inserted before the first entry is no plan's to take, and its tokens are fixed.
func TestLed(t *testing.T) {
	v := scriptedView("P=30 P=40 u=50 P=60 a=70")
	v.Fixed = 5
	got := v.led()
	if len(got.Items) != 3 || got.Items[0].ID != "e3" || got.Fixed != 75 || got.Size != v.Size {
		t.Errorf("%d items, %d fixed of %d", len(got.Items), got.Fixed, got.Size)
	}
	if got := scriptedView("P=30").led(); len(got.Items) != 0 || got.Fixed != 30 {
		t.Errorf("of nothing else: %d items, %d fixed", len(got.Items), got.Fixed)
	}
	for words, want := range map[string]bool{"P": true, "u": false, "L": false, "S": false} {
		if got := scripted(words)[0].Lead(); got != want {
			t.Errorf("%s is inserted: %v", words, got)
		}
	}
}

// TestTurnHasRoom: the calls since a person's turn stay whole while they fit beside what is fixed and a summary of the rest.
func TestTurnHasRoom(t *testing.T) {
	v := scriptedView("u a u c1 r1 c2 r2") // five of ten tokens, and a summary of an eighth of the window
	v.Fixed, v.Size = 10, v.Size+10
	for _, c := range []struct {
		size    tidemark.Tokens // as the provider counts it, of 80 estimated
		refused bool
		window  tidemark.Tokens
		want    string
	}{
		{80, false, 67, "2 5 6"}, {80, false, 68, "2 3 4 5 6"}, {160, false, 150, "2 5 6"}, {160, false, 160, "2 3 4 5 6"},
		{60, false, 48, "2 5 6"}, {60, false, 49, "2 3 4 5 6"}, {60, true, 67, "2 5 6"}, {60, true, 68, "2 3 4 5 6"},
	} {
		v.Size, v.Refused = c.size, c.refused
		if got := marked(whole(v, Budget{Window: c.window})); got != c.want {
			t.Errorf("%d tokens in a window of %d: whole are %s, want %s", c.size, c.window, got, c.want)
		}
	}
}
