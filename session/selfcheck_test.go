package session_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/room/selfcheck"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// liar is a strategy whose markers say another number than they hide.
type liar struct {
	compaction.Pointer
	count  int
	tokens tidemark.Tokens
}

func (l liar) Plan(v compaction.View, b compaction.Budget) []tidemark.Edit {
	edits := l.Pointer.Plan(v, b)
	for i, e := range edits {
		if m, ok := compaction.MarkerOf(e); ok {
			m.Count, m.Tokens = m.Count+l.count, m.Tokens+l.tokens
			raw, err := json.Marshal(map[string]any{"marker": m})
			if err != nil {
				panic(err)
			}
			edits[i].Data = raw
		}
	}
	return edits
}

// checkedHarness is a session whose checks are collected.
func checkedHarness(t *testing.T, strategies ...compaction.Strategy) (*harness, func() (checks, repaired int, violations []string)) {
	t.Helper()
	h := newAlone(t, session.Settings{Window: 6000, Reserve: 2000, Keep: 1000})
	h.strategies = strategies
	var all []room.Checked
	h.observe = func(n session.Notice) {
		if n.Type == session.NoticeChecked {
			all = append(all, *n.Checked)
		}
	}
	h.stop()
	h.open()
	return h, func() (checks, repaired int, violations []string) {
		for _, c := range all {
			checks, repaired, violations = checks+c.Checks, repaired+c.Repaired, append(violations, c.Violations...)
		}
		return checks, repaired, violations
	}
}

// beacons says things until the context is nearly at its limit; it has words of its own each time.
func (h *harness) beacons(n int) {
	h.t.Helper()
	for i := range n {
		h.say(fmt.Sprintf("beacon%d needle_%x%d: ", i, i*7919, i) + strings.Repeat(fmt.Sprintf("gravel%d ", i), 90))
	}
}

func TestSelfCheckSound(t *testing.T) {
	for name, strategies := range map[string][]compaction.Strategy{
		"summary": {compaction.Summary{}}, "pointer": {compaction.Pointer{Tail: 3}}, "both": {compaction.Pointer{Tail: 3}, compaction.Summary{}},
	} {
		t.Run(name, func(t *testing.T) {
			h, result := checkedHarness(t, strategies...)
			h.beacons(40)
			h.post(session.Input{Kind: session.InputCompact})
			checks, repaired, violations := result()
			if n := len(h.events("compaction")); n < 3 || checks < 4*n || repaired != 0 || len(violations) != 0 {
				t.Errorf("%d compactions: %d checks, %d repaired, violations %q", n, checks, repaired, violations)
			}
		})
	}
}

// TestSelfCheckViolations breaks what a compaction rests on. It is taken back, once, and the turn goes on.
func TestSelfCheckViolations(t *testing.T) {
	for _, tc := range []struct {
		name       string
		strategies []compaction.Strategy
		break_     func(h *harness)
		want       string
	}{
		{"marker count", []compaction.Strategy{liar{Pointer: compaction.Pointer{Tail: 3}, count: 1}}, func(*harness) {}, "stands for"},
		{"marker tokens", []compaction.Strategy{liar{Pointer: compaction.Pointer{Tail: 3}, tokens: 1e6}}, func(*harness) {}, "tokens, its span has"},
		{"entry of a marker unreadable", []compaction.Strategy{compaction.Pointer{Tail: 3}}, breakRead, "cannot be read"},
		{"entry of a summary unreadable", []compaction.Strategy{compaction.Summary{}}, breakRead, "cannot be read"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h, result := checkedHarness(t, tc.strategies...)
			h.beacons(8)
			if len(h.events("compaction")) > 0 {
				t.Fatal("compacted too early")
			}
			tc.break_(h)
			for i := range 6 {
				if got := h.say(strings.Repeat(fmt.Sprintf("more%d ", i), 300)); strings.HasPrefix(got, "error") {
					break // nothing else can be done about a view that is over the window
				}
			}
			_, _, violations := result()
			events := h.events("selfcheck")
			if len(violations) == 0 || len(events) == 0 || !strings.Contains(events[0], tc.want) || !strings.Contains(violations[0], tc.want) {
				t.Fatalf("violations %q, events %q", violations, events)
			}
			if n := len(h.events("compaction")); n > 2 {
				t.Errorf("%d compactions: the same act is repeated at once", n)
			}
			v, err := h.View(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, it := range v.Items {
				if it.Span() {
					t.Errorf("%s is still in effect", it.Overlay)
				}
			}
			list, err := selfcheck.Unsounds(t.Context(), h.db, 10)
			if err != nil || len(list) != len(events) || list[0].Key != h.key || !strings.Contains(list[0].Text, tc.want) {
				t.Errorf("told to the doctor: %+v, %v", list, err)
			}
		})
	}
}

// breakRead makes the first message one that no path can read.
func breakRead(h *harness) {
	sha := strings.Repeat("ab", 32)
	h.exec(`UPDATE entries SET payload = ? WHERE seq = (SELECT min(seq) FROM entries WHERE kind = 'message')`,
		`{"role":"user","content":[{"type":"text","text":"x","tidemark_blob":{"sha256":"`+sha+`","bytes":400}}]}`)
}

// forget takes the first message out of the index, and with other puts it there under other words.
func (h *harness) forget(other bool) {
	h.t.Helper()
	rows, err := h.db.Query(h.t.Context(), `SELECT min(seq) FROM entries WHERE kind = 'message' LIMIT 1`)
	if err != nil {
		h.t.Fatal(err)
	}
	seq := rows[0].Int(0)
	if _, err := h.Recall(h.t.Context(), search.Wanted{Query: "gravel0"}); err != nil { // the index is known to be whole
		h.t.Fatal(err)
	}
	h.exec(`DROP TABLE words`)
	h.exec(`CREATE VIRTUAL TABLE words USING fts5(home, terms, content='', tokenize="unicode61 remove_diacritics 0 tokenchars '_-./@'")`)
	stemmer := &recall.Stemmer{}
	home := "h" + string(tidemark.HashOf([]byte(h.key)))[:16]
	for e, err := range h.Reader.All(h.t.Context(), true) {
		if err != nil {
			h.t.Fatal(err)
		}
		m, err := e.Message()
		if err != nil {
			h.t.Fatal(err)
		}
		text := m.PlainText()
		if e.Seq == seq && other {
			text = "nothing of this"
		} else if e.Seq == seq {
			continue
		}
		h.exec(`INSERT INTO words(rowid, home, terms) VALUES(?, ?, ?)`, e.Seq, home, strings.Join(stemmer.Terms(text), " "))
	}
}

// TestSelfCheckRepairs: a row that only the index lacks, or has under other words, is written again, and the
// compaction stays.
func TestSelfCheckRepairs(t *testing.T) {
	for name, other := range map[string]bool{"missing": false, "of other words": true} {
		t.Run(name, func(t *testing.T) {
			h, result := checkedHarness(t, compaction.Pointer{Tail: 3})
			h.beacons(8)
			h.forget(other)
			for i := range 6 {
				h.say(strings.Repeat(fmt.Sprintf("more%d ", i), 300))
			}
			_, repaired, violations := result()
			if repaired != 1 || len(violations) != 0 || len(h.events("compaction")) == 0 || len(h.events("selfcheck")) != 0 {
				t.Fatalf("%d repaired, violations %q, %d compactions", repaired, violations, len(h.events("compaction")))
			}
			h.exec(`INSERT INTO words(words) VALUES('optimize')`) // what was written twice is one row
			found, err := h.Recall(t.Context(), search.Wanted{Query: "beacon0 needle_00"})
			if err != nil || len(found.Results) == 0 || !strings.Contains(found.Results[0].Text, "beacon0") {
				t.Errorf("%+v, %v", found, err)
			}
			h.exec(`INSERT INTO words(words) VALUES('integrity-check')`)
			if list, err := selfcheck.Unsounds(t.Context(), h.db, 10); err != nil || len(list) != 0 {
				t.Errorf("%v %v", list, err)
			}
		})
	}
}

// TestSelfCheckByHand: of a compaction that a person asked for too, behind whose end no run is left.
func TestSelfCheckByHand(t *testing.T) {
	h, result := checkedHarness(t, liar{Pointer: compaction.Pointer{Tail: 2}, count: -1})
	h.beacons(7)
	h.post(session.Input{Kind: session.InputCompact})
	deadline := time.Now().Add(tidemarktest.Patience)
	for len(h.events("selfcheck")) == 0 && time.Now().Before(deadline) {
		if err := h.rt.Sleep(t.Context(), time.Millisecond); err != nil && !errors.Is(err, tidemark.ErrDead) {
			t.Fatal(err)
		}
	}
	if _, _, violations := result(); len(violations) == 0 || len(h.events("selfcheck")) != 1 {
		t.Errorf("%q, %q", violations, h.events("selfcheck"))
	}
	if got := h.say("still here?"); !strings.HasPrefix(got, "ok") {
		t.Error(got)
	}
}

// TestSelfCheckThenReflection: nothing is learned from an act that was taken back.
func TestSelfCheckThenReflection(t *testing.T) {
	for _, count := range []int{0, 1} { // 1 makes the first act unsound
		h := newAlone(t, session.Settings{Window: 6000, Reserve: 2000, Keep: 1000})
		h.reflection = true
		h.strategies = []compaction.Strategy{liar{Pointer: compaction.Pointer{Tail: 3}, count: count}, compaction.Pointer{Tail: 3}}
		h.stop()
		h.open()
		for range 10 {
			h.NoteRecall(t.Context(), session.ByModel, search.Recalled{Verdict: recall.Nothing})
		}
		h.beacons(7)
		h.post(session.Input{Kind: session.InputCompact})
		if lifted, tuned := len(h.events("selfcheck")), len(h.events("reflection")); lifted != count || tuned != 1-count {
			t.Errorf("marker off by %d: %d times taken back, %d times tuned", count, lifted, tuned)
		}
	}
}
