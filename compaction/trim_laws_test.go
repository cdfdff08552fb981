package compaction_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// growRich adds a random exchange that has what trimming looks for: thinking, also alone, images in results and in what
// a person says, long inputs, and results of every size.
func (w *world) growRich(r *rand.Rand, picture string) {
	text := func(n int) string { return strings.Repeat("wörd ", 1+r.IntN(n)) }
	media := func() tidemark.Block {
		kind := []string{"image", "document"}[r.IntN(2)]
		var b tidemark.Block
		if err := b.UnmarshalJSON([]byte(`{"type":"` + kind + `","source":{"type":"base64","media_type":"image/png","data":"` + picture + `"}}`)); err != nil {
			panic(err)
		}
		return b
	}
	thinking := func() tidemark.Block {
		var b tidemark.Block
		raw := `{"type":"thinking","thinking":"` + text(60) + `","signature":"c2ln"}`
		if r.IntN(3) == 0 {
			raw = `{"type":"redacted_thinking","data":"c2ln"}`
		}
		if err := b.UnmarshalJSON([]byte(raw)); err != nil {
			panic(err)
		}
		return b
	}
	switch r.IntN(6) {
	case 0:
		w.grow(r)
		return
	case 1:
		w.add(tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{media(), tidemark.Text(text(100))}})
	default:
		w.add(tidemark.NewText(tidemark.User, text(200)))
	}
	for range r.IntN(4) {
		var content []tidemark.Block
		if r.IntN(2) == 0 {
			content = append(content, thinking())
		}
		if r.IntN(2) == 0 {
			content = append(content, tidemark.Text(text(60)))
		}
		var ids []string
		for range r.IntN(4) {
			id := fmt.Sprintf("c%d", r.Int64())
			ids = append(ids, id)
			content = append(content, tidemark.ToolUse(id, []string{"Write", "read", "mcp__x__send"}[r.IntN(3)],
				fmt.Appendf(nil, `{"file_path":"/a/%d.go","content":%q,"edits":[{"old_string":%q}]}`, r.IntN(5), text(300), text(100))))
		}
		if len(content) > 0 {
			w.add(tidemark.Message{Role: tidemark.Assistant, Content: content})
		}
		var results []tidemark.Block
		for _, id := range ids {
			b := tidemark.ToolResult(id, text([]int{5, 100, 2000}[r.IntN(3)]), r.IntN(9) == 0)
			if r.IntN(4) == 0 {
				b = tidemark.Block{Type: tidemark.TypeToolResult, ToolUseID: id, Content: []tidemark.Block{tidemark.Text(text(60)), media()}}
			}
			if results = append(results, b); r.IntN(4) == 0 {
				w.add(tidemark.Message{Role: tidemark.User, Content: results})
				results = nil
			}
		}
		if len(results) > 0 {
			w.add(tidemark.Message{Role: tidemark.User, Content: results})
		}
	}
	if r.IntN(3) > 0 {
		w.add(tidemark.NewText(tidemark.Assistant, text(100)))
	}
}

// lawful is hold for a world in which messages of nothing but thinking may leave.
func (w *world) lawful(t *testing.T, seed uint64, v compaction.View) {
	t.Helper()
	there := *w
	there.entries = slices.DeleteFunc(slices.Clone(w.entries), func(e compaction.Visible) bool {
		return !slices.ContainsFunc(e.Message.Content, func(b tidemark.Block) bool { return !strings.HasSuffix(b.Type, "thinking") })
	})
	hold(t, seed, &there, v)
}

// spoken are the texts of a view that users and the model wrote, with the calls and which results are there; notes for
// images are none.
func spoken(v compaction.View) []string {
	var out []string
	for _, it := range v.Items {
		for n, b := range it.Message.Content {
			note := slices.ContainsFunc(it.Stubbed, func(s compaction.Stubbed) bool {
				_, trimmed := compaction.Trimmed(s)
				return trimmed && s.Many > 0 && s.At == n && b.Type == tidemark.TypeText
			})
			switch {
			case b.Type == tidemark.TypeText && !note:
				out = append(out, string(it.Message.Role)+" "+b.Text)
			case b.Type == tidemark.TypeToolUse:
				out = append(out, "call "+b.ID+" "+b.Name)
			case b.Type == tidemark.TypeToolResult:
				out = append(out, fmt.Sprint("result ", b.ToolUseID, b.IsError))
			}
		}
	}
	return out
}

// trims trims a world and holds what is true of each trim.
func (w *world) trims(t *testing.T, seed uint64, threshold int, pins map[tidemark.EntryID]bool, lawful func(*testing.T, uint64, compaction.View)) int {
	t.Helper()
	v, shown := w.view(t)
	for i := range v.Items {
		v.Items[i].Pinned = !v.Items[i].Span() && pins[v.Items[i].ID]
	}
	edits, gain := compaction.Trim{Threshold: threshold}.Plan(v)
	planned, err := compaction.Preview(v, edits, wide)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	w.mayLeave(t, seed, v, edits, pins)
	if len(edits) > 0 {
		if err := w.act(t, shown, edits); err != nil {
			t.Fatalf("seed %d: the trim's own row is refused: %v", seed, err)
		}
	}
	after, _ := w.view(t)
	lawful(t, seed, after)
	if gain.Before != v.Tokens() || gain.After != after.Tokens() || gain.After != planned.Tokens() || gain.After > gain.Before || len(edits) == 0 && gain.After != gain.Before {
		t.Fatalf("seed %d: %+v, then %d tokens, planned %d", seed, gain, after.Tokens(), planned.Tokens())
	}
	was, now := spoken(v), spoken(after)
	for i := range max(len(was), len(now)) {
		if i >= len(was) || i >= len(now) || was[i] != now[i] {
			t.Fatalf("seed %d: what was said changed\nat %d of %d and %d: %.80q, %.80q", seed, i, len(was), len(now), was[min(i, len(was)):min(i+1, len(was))], now[min(i, len(now)):min(i+1, len(now))])
		}
	}
	for i := range after.Items {
		after.Items[i].Pinned = !after.Items[i].Span() && pins[after.Items[i].ID]
	}
	if again, _ := (compaction.Trim{Threshold: threshold}).Plan(after); len(again) > 0 {
		t.Fatalf("seed %d: a second trim has %d edits: %s", seed, len(again), again[0].Blocks[0].AppendJSON(nil))
	}
	return len(edits)
}

// sendable holds that a view can be sent.
func sendable(t *testing.T, seed uint64, v compaction.View) {
	t.Helper()
	if err := tidemark.Check(v.Messages()); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
}

// mayLeave holds that an edit is of a block that stands there itself, is not pinned, and is of the same call; a stub
// names its own block.
func (w *world) mayLeave(t *testing.T, seed uint64, v compaction.View, edits []tidemark.Edit, pins map[tidemark.EntryID]bool) {
	t.Helper()
	stubbed := map[string]bool{}
	for _, it := range v.Items {
		for _, s := range it.Stubbed {
			stubbed[compaction.Handle(it.ID, s.Block)] = true
		}
	}
	for _, e := range edits {
		was := w.entries[slices.IndexFunc(w.entries, func(x compaction.Visible) bool { return x.ID == e.From })].Message.Content[e.Block-1]
		if stubbed[compaction.Handle(e.From, e.Block)] || pins[e.From] || len(e.Blocks) > 1 {
			t.Fatalf("seed %d: %+v of %s", seed, e, was.AppendJSON(nil))
		}
		if len(e.Blocks) == 0 {
			if !strings.HasSuffix(was.Type, "thinking") {
				t.Fatalf("seed %d: nothing stands for %s", seed, was.AppendJSON(nil))
			}
			continue
		}
		now := e.Blocks[0]
		if handles := named.FindAllString(string(now.AppendJSON(nil)), -1); len(handles) == 0 || handles[0] != compaction.Handle(e.From, e.Block-1) {
			t.Fatalf("seed %d: %s says %q, is of %s#%d", seed, now.AppendJSON(nil), handles, e.From, e.Block-1)
		}
		media := was.Type == tidemark.TypeImage || was.Type == tidemark.TypeDocument
		if media != (now.Type == tidemark.TypeText) || !media && (was.Type != now.Type || was.ID != now.ID || was.Name != now.Name || was.ToolUseID != now.ToolUseID) {
			t.Fatalf("seed %d: %s stands for %s", seed, now.AppendJSON(nil), was.AppendJSON(nil))
		}
	}
}

// trimmedHistory plays a history in which some strategies compact, trims it, goes on, compacts with others, trims again
// and takes all back.
func trimmedHistory(t *testing.T, seed uint64, before, behind []compaction.Strategy, threshold int) (edits int) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 41))
	w := &world{}
	picture := pngOf(t, 1+r.IntN(90), 40)
	budget := compaction.Budget{Window: tidemark.Tokens(4000 + r.IntN(30000)), Reserve: tidemark.Tokens(r.IntN(4000)), Keep: tidemark.Tokens(r.IntN(4000))}.Fit()
	pins := map[tidemark.EntryID]bool{}
	compact := func(strategies []compaction.Strategy) {
		v, shown := w.view(t)
		act, err := compaction.Plan(strategies, compaction.Hold(v, pins, budget), budget, true)
		if errors.Is(err, tidemark.ErrNoGain) {
			return
		}
		if err == nil {
			err = w.act(t, shown, act.Edits)
		}
		if err != nil {
			t.Fatalf("seed %d: compact: %v", seed, err)
		}
		after, _ := w.view(t)
		w.lawful(t, seed, after)
	}
	grow := func(n int, strategies []compaction.Strategy) {
		for range n {
			w.growRich(r, picture)
			v, _ := w.view(t)
			w.lawful(t, seed, v)
			if n := len(v.Items); n > 0 && r.IntN(10) == 0 && !v.Items[n-1].Span() {
				pins[v.Items[n-1].ID] = true
			}
			if len(strategies) > 0 && (budget.Over(v) || r.IntN(8) == 0) {
				compact(strategies)
			}
		}
	}
	grow(8+r.IntN(8), before)
	start, _ := w.view(t)
	rows := len(w.rows)
	n := w.trims(t, seed, threshold, pins, w.lawful)
	if edits = n; n > 0 && r.IntN(4) == 0 { // undone, the view is what it was
		w.seq++
		w.rows = append(w.rows, compaction.Row{ID: tidemark.EntryID(fmt.Sprintf("o%04d", w.seq)), Seq: w.seq, Overlay: tidemark.Overlay{Lifts: []tidemark.EntryID{w.rows[rows].ID}}})
		if back, _ := w.view(t); back.Tokens() != start.Tokens() {
			t.Fatalf("seed %d: undo gives %d tokens, before there were %d", seed, back.Tokens(), start.Tokens())
		}
		return edits + w.trims(t, seed, threshold, pins, w.lawful)
	}
	grow(6, behind)
	compact(behind)
	edits += w.trims(t, seed, threshold, pins, w.lawful)
	compact(behind)
	return edits
}

// trimSets are what may have come before a trim, and what may follow one.
var trimSets = append([][]compaction.Strategy{nil, {&compaction.Paging{Policy: "cost"}}}, sets...)

var thresholds = []int{0, 50, 200, 5000}

// TestTrimOfRandomHistories holds the laws of trimming behind each list of strategies, and those of views when each
// acts on what it left.
func TestTrimOfRandomHistories(t *testing.T) {
	for i := range trimSets {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			edits := 0
			for seed := range uint64(fewer(24)) { //nolint:gosec // a count
				behind := trimSets[2+int(seed)%(len(trimSets)-2)]
				edits += trimmedHistory(t, seed, anew(trimSets[i]), anew(behind), thresholds[seed%4])
			}
			if edits == 0 {
				t.Error("nothing was trimmed")
			}
		})
	}
}

// anew gives strategies that have seen nothing yet: some keep what they decided for their conversation.
func anew(list []compaction.Strategy) []compaction.Strategy {
	out := slices.Clone(list)
	for i, s := range out {
		if p, ok := s.(*compaction.Paging); ok {
			out[i] = &compaction.Paging{Policy: p.Policy, Tau: p.Tau, MinBytes: p.MinBytes, Zones: p.Zones}
		}
	}
	return out
}

// FuzzTrim looks for a history and a threshold for which a law of trimming does not hold.
func FuzzTrim(f *testing.F) {
	for n := range trimSets {
		f.Add(uint64(n), uint8(n), uint8(n+1), uint16(n*40))
	}
	f.Fuzz(func(t *testing.T, seed uint64, before, behind uint8, threshold uint16) {
		trimmedHistory(t, seed, anew(trimSets[int(before)%len(trimSets)]), anew(trimSets[2+int(behind)%(len(trimSets)-2)]), int(threshold))
	})
}

// TestTrimOfEpisodes holds the laws where episodes left before and leave afterwards.
func TestTrimOfEpisodes(t *testing.T) {
	edits := 0
	for seed := range uint64(fewer(12)) { //nolint:gosec // a count
		r := rand.New(rand.NewPCG(seed, 43))
		w := newAnnotated(r, false)
		e := &compaction.Episodes{}
		for range 3 {
			for range 20 + r.IntN(60) {
				w.h.Step()
			}
			for range 2 {
				v, shown := w.now(t)
				if plan := e.Plan(v, compaction.Budget{Window: v.Size, Reserve: v.Size / 3}); len(plan) > 0 {
					if err := w.act(t, shown, plan); err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
				}
				edits += w.trims(t, seed, thresholds[seed%3], nil, sendable)
			}
		}
	}
	if edits == 0 {
		t.Error("nothing was trimmed")
	}
}

// FuzzTrimInput: whatever JSON a call's input is, what trimming leaves of it is JSON with the same names, and nothing but
// strings that are long changed.
func FuzzTrimInput(f *testing.F) {
	long := strings.Repeat("x", 200)
	f.Add([]byte(`{"file_path":"/a","content":"`+long+`"}`), true)
	f.Add([]byte(`{"a":[{"content":"`+long+`"},"`+long+`",1e9,null],"\u0061":{"path":"`+long+`"}} `), false)
	f.Add([]byte(`["`+long+`"]`), false)
	f.Add([]byte(`{"`+long+`":"\ud800`+long+`","`+long+`":2}`), true)
	f.Fuzz(func(t *testing.T, input []byte, writer bool) {
		name := "send"
		if writer {
			name = "Edit"
		}
		call := tidemark.ToolUse("c", name, input)
		w := &world{}
		w.add(tidemark.NewText(tidemark.User, "go"))
		w.add(tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{call}})
		w.add(tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult("c", "ok", false)}})
		w.add(tidemark.NewText(tidemark.Assistant, "done"))
		v, _ := w.view(t)
		edits, _ := compaction.Trim{Threshold: 100}.Plan(v)
		for _, e := range edits {
			same(t, decoded(t, call.Input), decoded(t, e.Blocks[0].Input))
		}
	})
}

func decoded(t *testing.T, raw []byte) any {
	t.Helper()
	v, err := json.DecodeAny(raw)
	if err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	return v
}

// same holds that two values differ in strings of over 100 characters only.
func same(t *testing.T, was, now any) {
	t.Helper()
	switch was := was.(type) {
	case map[string]any:
		other, ok := now.(map[string]any)
		if !ok || len(was) != len(other) {
			t.Fatalf("%v became %v", was, now)
		}
		for k, v := range was {
			if _, ok := other[k]; !ok {
				t.Fatalf("%q is gone", k)
			}
			same(t, v, other[k])
		}
	case []any:
		other, ok := now.([]any)
		if !ok || len(was) != len(other) {
			t.Fatalf("%v became %v", was, now)
		}
		for i := range was {
			same(t, was[i], other[i])
		}
	case string:
		text, ok := now.(string)
		if !ok || text != was && (tidemark.UTF16Len(was) <= 100 || !strings.HasPrefix(text, "[Trimmed: ~")) {
			t.Fatalf("%q became %v", was, now)
		}
	default:
		if !reflect.DeepEqual(was, now) {
			t.Fatalf("%v became %v", was, now)
		}
	}
}
