package compaction_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// world is a small log with its overlays, as a session would hold it.
type world struct {
	entries []compaction.Visible
	at      map[tidemark.EntryID]int64
	rows    []compaction.Row
	seq     int64

	shown []compaction.Placed // after the first of rows, see step
	known int                 // how many
}

func (w *world) add(m tidemark.Message) tidemark.EntryID {
	w.seq++
	id := tidemark.EntryID(fmt.Sprintf("e%04d", w.seq))
	from := tidemark.FromModel
	if m.Role == tidemark.User {
		from = tidemark.FromPerson
	}
	w.entries = append(w.entries, compaction.Visible{Message: m, Source: from, Skeleton: tidemark.Skeleton{ID: id, Seq: w.seq,
		Kind: tidemark.KindMessage, Role: m.Role, Tokens: tidemark.Estimate(m), Blocks: len(m.Content), Calls: m.Calls(), Results: m.Results()}})
	if w.at == nil {
		w.at = map[tidemark.EntryID]int64{}
	}
	w.at[id] = w.seq
	return id
}

func (w *world) placed(t testing.TB, rows []compaction.Row) []compaction.Placed {
	t.Helper()
	out, err := compaction.Place(rows, func(id tidemark.EntryID) (int64, bool) { s, ok := w.at[id]; return s, ok })
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// step lays out what came since the last step upon what was shown then, as a session does that keeps only this:
// what slept stays asleep unless a row is lifted.
func (w *world) step(t testing.TB) compaction.Layout {
	t.Helper()
	fresh := w.rows[w.known:]
	if slices.ContainsFunc(fresh, func(r compaction.Row) bool { return len(r.Overlay.Lifts) > 0 }) {
		w.shown, fresh = nil, w.rows
	}
	l := compaction.Lay(append(slices.Clone(w.shown), w.placed(t, fresh)...))
	w.shown, w.known = l.Shown, len(w.rows)
	return l
}

// view computes what the model would see, reading only what the layout leaves visible.
func (w *world) view(t testing.TB) (compaction.View, []compaction.Replacement) {
	t.Helper()
	layout := compaction.Lay(w.placed(t, w.rows))
	if l := w.step(t); len(l.Shown)+len(layout.Shown) > 0 && !reflect.DeepEqual(l, layout) {
		t.Fatalf("laid out step by step %+v, at once %+v", l, layout)
	}
	rows := map[int64]tidemark.Overlay{}
	for _, r := range w.rows {
		rows[r.Seq] = r.Overlay
	}
	var shown []compaction.Replacement
	blocks := map[int64][]compaction.Placed{}
	for _, p := range layout.Shown {
		shown = append(shown, compaction.Replacement{Placed: p, Edit: rows[p.Row].Edits[p.N]})
		if p.Block > 0 {
			blocks[p.From] = append(blocks[p.From], p)
		}
	}
	var visible []compaction.Visible
	for _, gap := range layout.Gaps(1, w.seq) {
		from := sort.Search(len(w.entries), func(i int) bool { return w.entries[i].Seq >= gap.From })
		for _, e := range w.entries[from:] {
			if e.Seq > gap.To {
				break
			}
			if !compaction.NeedsPayload(e.Skeleton, blocks[e.Seq]) {
				e.Message = tidemark.Message{} // must not be read
			}
			visible = append(visible, e)
		}
	}
	v, err := compaction.Assemble(visible, shown)
	if err != nil {
		t.Fatal(err)
	}
	return v, shown
}

// act appends an overlay row as the session would.
func (w *world) act(t testing.TB, shown []compaction.Replacement, edits []tidemark.Edit) error {
	t.Helper()
	for i := range edits {
		if edits[i].Summarize {
			edits[i].Messages = []tidemark.Message{compaction.Render(compaction.Digest{Text: "short summary"}, "", 1000)}
		}
	}
	row := compaction.Row{ID: tidemark.EntryID(fmt.Sprintf("o%04d", w.seq+1)), Seq: w.seq + 1, Overlay: tidemark.Overlay{Edits: edits}}
	var now []compaction.Placed
	for _, s := range shown {
		now = append(now, s.Placed)
	}
	if err := compaction.CheckOverlay(now, w.placed(t, []compaction.Row{row})); err != nil {
		return err
	}
	w.seq++
	w.rows = append(w.rows, row)
	return nil
}

// others adds a message that is neither the user's nor the assistant's, now and then.
func (w *world) others() {
	switch rand.New(rand.NewPCG(uint64(w.seq), 11)).IntN(8) {
	case 0:
		w.add(tidemark.NewText(tidemark.System, "Be short."))
	case 1:
		w.add(tidemark.Message{Role: "function", Content: []tidemark.Block{tidemark.Text("it came")}})
	case 2:
		w.add(tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{{}}}) // a block without a type
	}
}

// grow adds a random exchange: turns, parallel calls, missing and late results, images, empty
// texts, two messages of one role in a row, huge results, and between them all what others say.
func (w *world) grow(r *rand.Rand) {
	text := func(n int) string { return strings.Repeat("word ", 1+r.IntN(n)) }
	if r.IntN(8) > 0 {
		w.add(tidemark.NewText(tidemark.User, text(200)))
	}
	w.others()
	for range r.IntN(4) {
		content := []tidemark.Block{tidemark.Text(text(60))}
		if r.IntN(10) == 0 {
			content[0] = tidemark.Text("")
		}
		var ids []string
		for range r.IntN(4) {
			id := fmt.Sprintf("c%d", r.Int64())
			ids = append(ids, id)
			content = append(content, tidemark.ToolUse(id, "read", []byte(`{"path":"`+text(5)+`"}`)))
		}
		w.add(tidemark.Message{Role: tidemark.Assistant, Content: content})
		w.others()
		var results []tidemark.Block
		for _, id := range ids {
			if r.IntN(20) == 0 {
				continue // never answered
			}
			size := 300
			if r.IntN(15) == 0 {
				size = 20000
			}
			results = append(results, tidemark.ToolResult(id, text(size), r.IntN(10) == 0))
			if r.IntN(5) == 0 { // results of parallel calls on lines of their own
				w.add(tidemark.Message{Role: tidemark.User, Content: results})
				results = nil
			}
		}
		if len(results) > 0 {
			w.add(tidemark.Message{Role: tidemark.User, Content: results})
		}
		w.others()
		if len(ids) == 0 {
			return
		}
	}
}

// TestRandomHistories holds what must be true of every history, budget and order of compactions:
// each view passes Check, each original is visible or under exactly one shown span, order is kept,
// the newest turn of a person stays, a compaction lowers the estimate or says no gain.
func TestRandomHistories(t *testing.T) {
	for _, strategies := range sets {
		t.Run(fmt.Sprintf("%+v", strategies), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(histories()) {
				randomHistory(t, seed, strategies)
			}
		})
	}
}

// histories is how many random ones a law is held for.
func histories() int { return fewer(40) }

// fewer is how many of some costly rounds are played.
func fewer(n int) int { return tidemarktest.Rounds(n) }

// sets are the lists of strategies that every law is held for.
var sets = [][]compaction.Strategy{
	{compaction.Summary{}},
	{compaction.Pointer{}},
	{compaction.Pointer{Tail: 2, Large: 50, Headroom: 300}},
	{compaction.Pointer{}, compaction.Summary{}},
	{compaction.Pointer{Tail: 1}, compaction.Summary{}},
	{eager()},
	{&compaction.Paging{Policy: "fifo"}, compaction.Summary{}},
	{eager(), compaction.Pointer{Tail: 2, Large: 50}},
	{&compaction.Paging{Policy: "lru", MinBytes: 200}, compaction.Pointer{}, compaction.Summary{}},
}

// eager lets go early, of a window that is nearly empty.
func eager() *compaction.Paging {
	return &compaction.Paging{Tau: 1, MinBytes: 100, Zones: paging.Zones{Advisory: 3, Involuntary: 4, Aggressive: 5}}
}

// FuzzRandomHistories looks for a history that breaks a law.
func FuzzRandomHistories(f *testing.F) {
	for n := range sets {
		f.Add(uint64(n), uint8(n))
	}
	f.Fuzz(func(t *testing.T, seed uint64, set uint8) { randomHistory(t, seed, sets[int(set)%len(sets)]) })
}

func randomHistory(t *testing.T, seed uint64, strategies []compaction.Strategy) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 7))
	w := &world{}
	budget := compaction.Budget{Window: tidemark.Tokens(3000 + r.IntN(40000)), Reserve: tidemark.Tokens(r.IntN(20000)), Keep: tidemark.Tokens(r.IntN(20000))}.Fit()
	compactions := 0
	pins := map[tidemark.EntryID]bool{}
	for range 40 {
		w.grow(r)
		v, shown := w.view(t)
		hold(t, seed, w, v)
		if n := len(v.Items); n > 0 && r.IntN(10) == 0 && !v.Items[n-1].Span() {
			pins[v.Items[n-1].ID] = true
		}
		if !budget.Over(v) && r.IntN(10) > 0 {
			continue
		}
		v = compaction.Hold(v, pins, budget)
		act, err := compaction.Plan(strategies, v, budget, true)
		if errors.Is(err, tidemark.ErrNoGain) {
			continue
		}
		if err != nil {
			t.Fatalf("seed %d: plan: %v", seed, err)
		}
		if err := w.act(t, shown, act.Edits); err != nil {
			t.Fatalf("seed %d: the plan's own row is refused: %v", seed, err)
		}
		compactions++
		after, _ := w.view(t)
		hold(t, seed, w, after)
		stays := map[tidemark.EntryID]bool{}
		for _, it := range after.Items {
			stays[it.ID] = !it.Span()
		}
		for _, it := range v.Items {
			if it.Pinned && !stays[it.ID] {
				t.Fatalf("seed %d: %s is pinned and left the view", seed, it.ID)
			}
		}
		if after.Tokens() >= v.Tokens() {
			t.Fatalf("seed %d: %d tokens before, %d after", seed, v.Tokens(), after.Tokens())
		}
		if r.IntN(6) == 0 && len(w.rows) > 0 { // undo the newest
			w.seq++
			w.rows = append(w.rows, compaction.Row{ID: tidemark.EntryID(fmt.Sprintf("o%04d", w.seq)), Seq: w.seq,
				Overlay: tidemark.Overlay{Lifts: []tidemark.EntryID{w.rows[len(w.rows)-1].ID}}})
			back, _ := w.view(t)
			hold(t, seed, w, back)
			if back.Tokens() != v.Tokens() || !slices.EqualFunc(back.Items, v.Items, func(a, b compaction.Item) bool { return a.ID == b.ID && a.Tokens == b.Tokens }) {
				t.Fatalf("seed %d: undo gives %d tokens, before there were %d", seed, back.Tokens(), v.Tokens())
			}
		}
	}
	if seed < 10 && compactions == 0 {
		t.Errorf("seed %d: no compaction happened", seed)
	}
}

// hold checks the laws of a view.
func hold(t *testing.T, seed uint64, w *world, v compaction.View) {
	t.Helper()
	if m := v.Messages(); len(m) > 0 {
		if err := tidemark.Check(m); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	seen := map[tidemark.EntryID]bool{}
	last := int64(0)
	for _, it := range v.Items {
		if it.Seq < last && !it.Span() {
			t.Fatalf("seed %d: %s stands before %d", seed, it.ID, last)
		}
		if !it.Span() {
			last = it.Seq
			if seen[it.ID] {
				t.Fatalf("seed %d: %s is shown twice", seed, it.ID)
			}
			seen[it.ID] = true
		}
	}
	covered := func(seq int64) int {
		n := 0
		for _, it := range v.Items {
			if it.Span() && it.Seq <= seq && seq <= it.Last {
				n++
			}
		}
		return n
	}
	turn := tidemark.EntryID("")
	for _, e := range w.entries {
		if len(e.Message.Content) > 0 && !seen[e.ID] && covered(e.Seq) != 1 {
			t.Fatalf("seed %d: %s is neither visible nor under one span (%d)", seed, e.ID, covered(e.Seq))
		}
		if e.Role == tidemark.User && len(e.Results) == 0 {
			turn = e.ID
		}
	}
	if turn != "" && !seen[turn] {
		t.Fatalf("seed %d: the newest turn %s left the view", seed, turn)
	}
}

// TestChunksAtCutPoints holds that chunks part no call from its result and lose nothing.
func TestChunksAtCutPoints(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 9))
		w := &world{}
		for range 30 {
			w.grow(r)
		}
		v, _ := w.view(t)
		chunks := compaction.Chunks(v.Items, tidemark.Tokens(500+r.IntN(5000)))
		var all []tidemark.EntryID
		for _, c := range chunks {
			answered, made := map[string]bool{}, map[string]bool{}
			for _, it := range c {
				all = append(all, it.ID)
				for _, id := range it.Message.Calls() {
					made[id] = true
				}
				for _, id := range it.Message.Results() {
					answered[id] = true
				}
			}
			for id := range answered {
				if !made[id] {
					t.Fatalf("seed %d: result of %s stands in another chunk than its call", seed, id)
				}
			}
		}
		want := make([]tidemark.EntryID, len(v.Items))
		for i, it := range v.Items {
			want[i] = it.ID
		}
		if !slices.Equal(all, want) {
			t.Fatalf("seed %d: chunks lose or reorder items", seed)
		}
	}
}

// TestSystemPlace: a system message stands behind a tool that the API runs itself as it does behind the user's message,
// and behind any other answer it waits.
func TestSystemPlace(t *testing.T) {
	served := tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{{Type: tidemark.TypeServerToolUse, ID: "s"}}}
	rule, yes := tidemark.NewText(tidemark.System, "Be short."), tidemark.NewText(tidemark.Assistant, "yes")
	for name, row := range map[string]struct {
		answer tidemark.Message
		want   string
	}{
		"a tool of the API": {served, "user assistant system assistant"},
		"words":             {yes, "user assistant"},
	} {
		var v compaction.View
		for _, m := range []tidemark.Message{tidemark.NewText(tidemark.User, "hi"), row.answer, rule, yes} {
			v.Items = append(v.Items, compaction.Item{Message: m})
		}
		var roles []string
		for _, m := range v.Messages() {
			roles = append(roles, string(m.Role))
		}
		if got := strings.Join(roles, " "); got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
}
