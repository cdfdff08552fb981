package search

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/room"
)

// positions writes places as "SEQ@POS", with "!" behind what is a candidate.
func positions(places []placed) string {
	var out []string
	for _, p := range places {
		s := fmt.Sprintf("%d@%d", p.seq, p.pos)
		if p.found {
			s += "!"
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

// TestPlacing: two messages at either side of a candidate stand beside it, of its own log, and what follows one another has
// places that do.
func TestPlacing(t *testing.T) {
	d, beside := desks(t)
	day := minutes(24 * 60)
	for i := range 8 { // 1, 3, 5 … 15 are ours; that at 5 was said a day later
		at := minutes(i)
		if i == 2 {
			at = day
		}
		d.says(at, "walnut")
		beside.says(minutes(i), "walnut")
	}
	d.event()                     // 17
	d.says(minutes(9), "walnut")  // 18
	d.says(minutes(10), "walnut") // 19
	for _, c := range []struct {
		name         string
		line         *host.Lineage
		seqs, around []int64
		wanted       Wanted
		want         string
	}{
		{"in the middle", d.line(), []int64{7}, []int64{7}, Wanted{}, "3@0 5@1 7@2! 9@3 11@4"},
		{"at the beginning", d.line(), []int64{1}, []int64{1}, Wanted{}, "1@0! 3@1 5@2"},
		{"at the end, with an event between", d.line(), []int64{18}, []int64{18}, Wanted{}, "13@0 15@1 18@2! 19@3"},
		{"apart from another without neighbours", d.line(), []int64{7, 15}, []int64{7}, Wanted{}, "3@0 5@1 7@2! 9@3 11@4 15@6!"},
		{"beside another", d.line(), []int64{11, 7}, []int64{7, 11}, Wanted{}, "3@0 5@1 7@2! 9@3 11@4! 13@5 15@6"},
		{"of a time, in which one between was not said", d.line(), []int64{7}, []int64{7}, Wanted{Until: minutes(20)}, "1@0 3@1 7@2! 9@3 11@4"},
		{"of a later time", d.line(), []int64{7}, []int64{7}, Wanted{Since: minutes(4)}, "5@0 7@1! 9@2 11@3"},
		{"in a branch", d.upTo(9), []int64{7}, []int64{7}, Wanted{}, "3@0 5@1 7@2! 9@3"},
		{"nobody's", d.line(), nil, nil, Wanted{}, ""},
	} {
		got, err := d.placing(t.Context(), c.line, c.seqs, c.around, c.wanted)
		if err != nil || positions(got) != c.want {
			t.Errorf("%s: %s, %v; want %s", c.name, positions(got), err, c.want)
		}
	}
}

// TestPlacingMany: as many candidates as two searches have, each with its neighbours.
func TestPlacingMany(t *testing.T) {
	d, _ := desks(t)
	for i := range 56 {
		d.says(minutes(i), "walnut")
	}
	var around []int64
	var want []string
	for i := range int64(besideOf + hopBeside) {
		seq := 7*i + 4 // no neighbour is one of two
		around = append(around, seq)
		for j := seq - 2; j <= seq+2; j++ {
			s := fmt.Sprintf("%d@%d", j, 6*i+j-seq+2)
			if j == seq {
				s += "!"
			}
			want = append(want, s)
		}
	}
	got, err := d.placing(t.Context(), d.line(), around, around, Wanted{})
	if err != nil || positions(got) != strings.Join(want, " ") {
		t.Errorf("%s, %v\nwant %s", positions(got), err, want)
	}
}

// TestPlacingSkipped: a message that recall leaves out is nobody's neighbour, whatever another turn or another conversation
// says of it, unless all is wanted.
func TestPlacingSkipped(t *testing.T) {
	d, _ := desks(t)
	if err := d.Made.Open(t.Context(), skipTables); err != nil {
		t.Fatal(err)
	}
	var ids []tidemark.EntryID
	for i := range 12 {
		ids = append(ids, d.says(minutes(i), "walnut").ID)
	}
	skip := func(key tidemark.Key, run, state string, first int, of ...int) {
		var some []tidemark.EntryID
		for _, seq := range of {
			some = append(some, ids[seq-1])
		}
		d.exec(`INSERT INTO skips(key, run, log, state, first, at, ids) VALUES(?, ?, ?, ?, ?, 0, ?)`, string(key), run, d.log, state, first, room.JSON(some))
	}
	skip(d.Key, "skipped", skipSkipped, 2, 4)
	skip(d.Key, "kept", skipKept, 2, 7)
	skip(d.Key, "kept later", skipKept, 3, 5)
	skip(d.Key, "skipped later", skipSkipped, 9, 10, 11)
	skip("agent:main:second", "another's", skipSkipped, 3, 4)
	skip("agent:main:second", "another's too", skipSkipped, 2, 3)
	for _, c := range []struct {
		all  bool
		want string
	}{{false, "2@0 3@1 5@2! 6@3 7@4"}, {true, "3@0 4@1 5@2! 6@3 7@4"}} {
		got, err := d.placing(t.Context(), d.line(), []int64{5}, []int64{5}, Wanted{All: c.all})
		if err != nil || positions(got) != c.want {
			t.Errorf("all %v: %s, %v; want %s", c.all, positions(got), err, c.want)
		}
	}
	got, err := d.placing(t.Context(), d.line(), []int64{9}, []int64{9}, Wanted{})
	if want := "7@0 8@1 9@2! 12@3"; err != nil || positions(got) != want {
		t.Errorf("behind what was skipped: %s, %v; want %s", positions(got), err, want)
	}
}

// TestWhole: of a short conversation all short messages are ranked, and of the long ones those that were found; those of two
// sessions are no neighbours. Of what is larger, or is mostly the work of tools, only what was found.
func TestWhole(t *testing.T) {
	type log struct {
		tokens  []int // of each message
		results int   // how many of them are of tools
		next    int   // how many of them stand behind a reset
	}
	each := func(n, tokens int) []int { return slices.Repeat([]int{tokens}, n) }
	was := []placed{{seq: 2, pos: 40, found: true}, {seq: 3, pos: 41}}
	for _, c := range []struct {
		name  string
		log   log
		size  int64 // as it was counted
		w     Wanted
		want  string
		short int
	}{
		{"short ones", log{tokens: each(4, 10)}, 4, Wanted{}, "1@2 2@3! 3@4 4@5", 4},
		{"a long one", log{tokens: []int{250, 250, 250, 250, 251}}, 5, Wanted{}, "1@2 2@3! 3@4 4@5", 4},
		{"a long one that was found, and one beside it", log{tokens: []int{10, 251, 251, 10}}, 4, Wanted{}, "1@2 2@3! 3@4 4@5", 2},
		{"another session", log{tokens: each(5, 10), next: 2}, 5, Wanted{}, "1@2 2@3! 3@4 4@6 5@7", 5},
		{"of a time", log{tokens: each(6, 10)}, 6, Wanted{Since: minutes(1), Until: minutes(3)}, "2@2! 3@3 4@4", 3},
		{"as many as there may be", log{tokens: each(wholeMost, 10)}, wholeMost, Wanted{}, "", wholeMost},
		{"one more than was counted", log{tokens: each(wholeMost+1, 10)}, wholeMost, Wanted{}, positions(was), 0},
		{"one more", log{tokens: each(4, 10)}, wholeMost + 1, Wanted{}, positions(was), 0},
		{"as much as there may be", log{tokens: append(each(192, 250), 251)}, 193, Wanted{}, "", 192},
		{"a token more", log{tokens: append(each(192, 250), 1)}, 193, Wanted{}, positions(was), 0},
		{"one of ten of a tool", log{tokens: each(10, 10), results: 1}, 10, Wanted{}, "", 10},
		{"one of nine", log{tokens: each(9, 10), results: 1}, 9, Wanted{}, positions(was), 0},
		{"a time in which a candidate was not said", log{tokens: each(4, 10)}, 4, Wanted{Until: minutes(1)}, positions(was), 0},
		{"nothing", log{}, 0, Wanted{}, positions(was), 0},
	} {
		d := deskOf(t, hosttest.DB(t), "agent:main:main", silent{})
		first := d.log
		for i := 0; i < len(c.log.tokens); {
			if i == len(c.log.tokens)-c.log.next {
				d.another()
			}
			var stmts []tidemark.Stmt // some at a time
			for ; i < len(c.log.tokens) && len(stmts) < 100 && (c.log.next == 0 || d.log != first || i < len(c.log.tokens)-c.log.next); i++ {
				m := tidemark.NewText(tidemark.User, "walnut")
				if i >= len(c.log.tokens)-c.log.results {
					m = tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult("c", "walnut", false)}}
				}
				some, err := d.Log.AppendStmts(d.log, tidemark.Entry{ID: tidemark.EntryID(tidemark.NamedID(minutes(i), fmt.Sprint(i))), Kind: tidemark.KindMessage, At: minutes(i), Tokens: tidemark.Tokens(c.log.tokens[i]), Payload: m.AppendJSON(nil)})
				if err != nil {
					t.Fatal(err)
				}
				stmts = append(stmts, some...)
			}
			if err := d.DB.Tx(t.Context(), stmts); err != nil {
				t.Fatal(err)
			}
		}
		d.event()
		f := &finding{s: d.Room, w: c.w, line: d.line(), size: sizeOf{docs: c.size}}
		got, err := f.whole(t.Context(), slices.Clone(was))
		if err != nil || c.want != "" && positions(got) != c.want || len(f.short) != c.short {
			t.Errorf("%s: %d short ones, %.200s, %v; want %d, %.200s", c.name, len(f.short), positions(got), err, c.short, c.want)
		}
		if c.want == "" && (len(got) != c.short || got[1] != (placed{2, 3, true}) || got[c.short-1] != (placed{int64(c.short), int64(c.short) + 1, false})) {
			t.Errorf("%s: %d places: %.200s", c.name, len(got), positions(got))
		}
	}
}

// TestKeptOfASearch: of what a search read of a short conversation the next one has what is short and sound.
func TestKeptOfASearch(t *testing.T) {
	s := east()
	f := &finding{s: s, known: map[int64]read{
		1: {text: strings.Repeat("x", maxRead)}, 2: {text: strings.Repeat("x", maxRead+1)}, 3: {lost: true}, 4: {text: "of a long message"}, 5: {},
	}}
	if f.end(); s.lately.Load() != nil {
		t.Error("what was read of a long conversation is kept")
	}
	f.short = map[int64]bool{1: true, 2: true, 3: true, 5: true}
	f.end()
	next := &finding{s: s}
	next.begin()
	if got := slices.Sorted(maps.Keys(next.known)); !slices.Equal(got, []int64{1, 5}) {
		t.Errorf("kept are %d", got)
	}
	other := &finding{s: s}
	if other.begin(); other.known == nil || len(other.known) != 0 {
		t.Errorf("who comes at the same time has %v", other.known)
	}
	s.lately.Store(&lately{})
	if s.Amended(); s.lately.Load() != nil {
		t.Error("what was amended is kept as it was")
	}
}

// TestSittings: what is said more than half an hour later is of another sitting.
func TestSittings(t *testing.T) {
	d := deskOf(t, hosttest.DB(t), "agent:main:main", silent{})
	for _, at := range []time.Duration{0, 30 * time.Minute, 60*time.Minute + time.Millisecond, 61 * time.Minute} {
		d.says(morning.Add(at), "walnut")
	}
	f := &finding{s: d.Room, line: d.line(), known: map[int64]read{}, size: sizeOf{docs: 4}}
	if err := f.load(t.Context(), []int64{1}, []int64{1}); err != nil {
		t.Fatal(err)
	}
	var groups []int64
	for _, doc := range f.index.Docs() {
		groups = append(groups, doc.Group)
	}
	if !slices.Equal(groups, []int64{1, 1, 2, 2}) {
		t.Errorf("sittings %d", groups)
	}
}
