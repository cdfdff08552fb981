package reflection

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
)

const mine tidemark.Key = "agent:main:main"

// still is a runtime whose clock stands until a test moves it.
type still struct {
	tidemark.Runtime
	now time.Time
}

func (s *still) Now() time.Time { return s.now }

// bench is a room over tables of its own, in which others have rows, too.
type bench struct {
	*testing.T
	*Room
	clock  *still
	list   []compaction.Strategy
	limit  tidemark.Tokens
	left   time.Time // when what was found left the view
	asked  []tidemark.EntryID
	told   []tidemark.Event
	warned []string
	fail   error
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, clock: &still{Runtime: hosttest.Runtime(t), now: time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)}, list: []compaction.Strategy{compaction.Summary{}, compaction.Pointer{}}, limit: 100_000}
	db := hosttest.DB(t)
	if _, err := host.OpenLog(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	b.Room = Make(room.Ports{
		Self: room.Self{Key: mine, DB: db, Made: &room.Made{DB: db}, Runtime: b.clock, Warn: func(what string, err error) { b.warned = append(b.warned, what+": "+err.Error()) }},
		History: room.History{Announce: func(ctx context.Context, log string, e tidemark.Event, stmts ...tidemark.Stmt) error {
			if b.fail != nil {
				return b.fail
			}
			b.told = append(b.told, e)
			return db.Tx(ctx, stmts)
		}},
		View: room.View{Strategies: func() []compaction.Strategy { return b.list },
			Budget: func() compaction.Budget { return compaction.Budget{Window: b.limit} },
			EvictedAt: func(_ context.Context, id tidemark.EntryID) (time.Time, error) {
				b.asked = append(b.asked, id)
				return b.left, b.fail
			}},
	}).(*Room)
	return b
}

// others have recalls and tunings, which stay as they are.
func (b *bench) others() {
	b.Helper()
	if err := b.Made.Open(b.Context(), tables); err != nil {
		b.Fatal(err)
	}
	now := b.clock.now.UnixMilli()
	b.exec(`INSERT INTO recalls(n, key, at, by, verdict, entry, evicted) VALUES(-2, 'agent:main:aunt', ?1, 'model', 'nothing', 'theirs', ?1), (-1, 'agent:main:zoe', ?1, 'model', 'confident', 'theirs', ?1)`, now)
	b.exec(`INSERT INTO tunings(key, tuning) VALUES('agent:main:aunt', '{"tail":9}'), ('agent:main:zoe', '{"tail":9}')`)
	b.Cleanup(func() {
		if got := b.rows(`SELECT (SELECT count(*) FROM recalls WHERE entry = 'theirs') || ' ' || count(*) FROM tunings WHERE tuning = '{"tail":9}' LIMIT 1`); got != "2 2" {
			b.Errorf("of others there are %s rows", got)
		}
	})
}

func (b *bench) exec(sql string, args ...any) {
	b.Helper()
	hosttest.Exec(b.T, b.DB, sql, args...)
}

// rows are those of a query of one text.
func (b *bench) rows(sql string, args ...any) string {
	b.Helper()
	return hosttest.Lines(b.T, b.DB, sql, args...)
}

// recalls puts some into the table.
func (b *bench) recalls(n int, by string, v recall.Verdict, ago, stayed time.Duration) {
	b.Helper()
	at, evicted := b.clock.now.Add(-ago).UnixMilli(), int64(0)
	if stayed != 0 {
		evicted = at - stayed.Milliseconds()
	}
	b.exec(`WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < ?) INSERT INTO recalls(key, at, by, verdict, entry, evicted) SELECT ?, ?, ?, ?, 'e', ? FROM i`, n, string(mine), at, by, string(v), evicted)
}

// TestRecordsRecalls: how a recall went is recorded with when what it found had left the view, where that tells anything.
func TestRecordsRecalls(t *testing.T) {
	left := time.Date(2026, 3, 10, 11, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		name string
		by   string
		v    recall.Verdict
		left time.Time
		want string
		asks bool
	}{
		{"found", room.ByModel, recall.Confident, left, "model confident e 1773140400000", true}, {"found in view", room.ByPerson, recall.Confident, time.Time{}, "person confident e 0", true},
		{"weak", room.ByModel, recall.Weak, left, "model weak e 1773140400000", true}, {"nothing", room.ByModel, recall.Nothing, left, "model nothing  0", false},
		{"pushed", room.ByPack, recall.Confident, left, "pack confident e 0", false}, {"wide", room.ByWide, recall.Confident, left, "wide confident e 0", false},
	} {
		b := newBench(t)
		b.left = tc.left
		b.Recalled(t.Context(), tc.by, tc.v, "e")
		if got := b.rows(`SELECT by || ' ' || verdict || ' ' || entry || ' ' || evicted FROM recalls WHERE key = ? AND at = ? LIMIT 9`, string(mine), b.clock.now.UnixMilli()); got != tc.want || (len(b.asked) > 0) != tc.asks {
			t.Errorf("%s: %q, want %q, asked of %q", tc.name, got, tc.want, b.asked)
		}
	}
	b := newBench(t)
	b.list = b.list[:1]
	b.Recalled(t.Context(), room.ByModel, recall.Nothing, "")
	b.Compacted(t.Context(), "log", nil)
	tuned, err := b.Tuned(t.Context())
	if got := b.rows(`SELECT count(*) FROM sqlite_master WHERE name = 'recalls' LIMIT 1`); got != "0" || tuned != (Tuning{}) || err != nil {
		t.Errorf("without pointers %s tables are made, %+v, %v", got, tuned, err)
	}
	b = newBench(t)
	for _, fail := range []error{errors.New("away"), fmt.Errorf("over: %w", tidemark.ErrDead)} {
		b.fail = fail
		b.Recalled(t.Context(), room.ByModel, recall.Confident, "e")
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	b.Recalled(gone, room.ByModel, recall.Confident, "e")
	if !slices.Equal(b.warned, []string{"record a recall: away"}) {
		t.Errorf("warned of %q", b.warned)
	}
}

// TestRecallsAreBounded: the newest five hundred are kept, of each conversation its own.
func TestRecallsAreBounded(t *testing.T) {
	b := newBench(t)
	b.others()
	b.recalls(keepRecalls+3, room.ByModel, recall.Nothing, 0, 0)
	b.exec(`INSERT INTO recalls(key, at, by, verdict, entry, evicted) VALUES('agent:main:zoe', 1, 'model', 'nothing', 'more', 0), ('agent:main:zoe', 1, 'model', 'nothing', 'more', 0)`)
	b.Recalled(t.Context(), room.ByModel, recall.Nothing, "")
	if got := b.rows(`SELECT count(*) || ' ' || min(n) || ' ' || max(n) FROM recalls WHERE key = ? LIMIT 1`, string(mine)); got != "500 5 506" {
		t.Errorf("how many, the first and the last: %s", got)
	}
}

// TestEvidenceOf: what is counted: the newest, of a week, by who asked, and as early what had left the view within the hour.
func TestEvidenceOf(t *testing.T) {
	const week, hour = 7 * 24 * time.Hour, time.Hour
	for _, tc := range []struct {
		name string
		put  func(b *bench)
		want Evidence
	}{
		{"nothing", func(*bench) {}, Evidence{}},
		{"misses", func(b *bench) {
			b.recalls(2, room.ByModel, recall.Nothing, 0, 0)
			b.recalls(3, room.ByPerson, recall.Weak, 0, time.Minute)
			b.recalls(4, room.ByModel, recall.Confident, 0, 0)
		}, Evidence{Recalls: 9, Misses: 5}},
		{"pushed, and wide", func(b *bench) {
			b.recalls(2, room.ByPack, recall.Nothing, 0, 0)
			b.recalls(3, room.ByWide, recall.Nothing, 0, 0)
		}, Evidence{}},
		{"early", func(b *bench) {
			b.recalls(2, room.ByModel, recall.Confident, 0, hour-time.Millisecond)
			b.recalls(3, room.ByModel, recall.Confident, 0, hour)
		}, Evidence{Recalls: 5, Early: 2}},
		{"of a week", func(b *bench) {
			b.recalls(2, room.ByModel, recall.Nothing, week, 0)
			b.recalls(3, room.ByModel, recall.Nothing, week-time.Millisecond, 0)
		}, Evidence{Recalls: 3, Misses: 3}},
		{"the newest", func(b *bench) {
			b.recalls(5, room.ByModel, recall.Nothing, 0, 0)
			b.recalls(50, room.ByModel, recall.Confident, hour, 0)
		}, Evidence{Recalls: 50}},
	} {
		b := newBench(t)
		b.others()
		tc.put(b)
		if got, err := b.evidence(t.Context()); err != nil || got != tc.want {
			t.Errorf("%s: %+v, %v, want %+v", tc.name, got, err, tc.want)
		}
	}
}

// TestRetunes: behind a compaction what was recorded sets how much leaves the view, with an event that says why; the same again is
// none, and what holds no more is taken back.
func TestRetunes(t *testing.T) {
	b := newBench(t)
	b.others()
	if b.Compacted(t.Context(), "log", nil); len(b.told) > 0 {
		t.Errorf("without evidence %+v", b.told)
	}
	b.recalls(10, room.ByModel, recall.Nothing, 0, 0)
	b.Compacted(t.Context(), "log", nil)
	b.Compacted(t.Context(), "log", nil)
	want := Tuning{Tail: 20, Headroom: 10_000, Large: 1280, Severity: "high", Why: "recall missed 10 of 10 times"}
	if got, err := b.Tuned(t.Context()); err != nil || got != want || len(b.told) != 1 {
		t.Fatalf("tuned %+v, %v, told %+v", got, err, b.told)
	}
	var data Reflected
	if err := json.Unmarshal(b.told[0].Data, &data); err != nil || data.Before != (Tuning{}) || data.After != want || data.Evidence != (Evidence{Recalls: 10, Misses: 10}) || b.told[0].Type != "reflection" || !strings.HasPrefix(b.told[0].Text, "Reflection: recall missed 10 of 10 times. From now on the newest 20 turns stay") {
		t.Errorf("told %+v, %+v", b.told[0], data)
	}
	b.limit = 60_000 // what was set is held to its bounds
	if got, err := b.Tuned(t.Context()); err != nil || got.Headroom != 10_000 {
		t.Errorf("of a smaller window %+v, %v", got, err)
	}
	b.limit = 20_000
	if got, err := b.Tuned(t.Context()); err != nil || got.Headroom != 6_666 {
		t.Errorf("of a much smaller window %+v, %v", got, err)
	}
	b.limit = 100_000
	list, err := b.Tune(t.Context(), b.list)
	if err != nil || len(list) != 2 || fmt.Sprintf("%+v", list) != fmt.Sprintf("%+v", []compaction.Strategy{compaction.Summary{}, compaction.Pointer{Tail: 20, Headroom: 10_000, Large: 1280}}) {
		t.Errorf("strategies %+v, %v", list, err)
	}
	b.fail = errors.New("away")
	b.recalls(50, room.ByModel, recall.Confident, 0, 0)
	if b.Compacted(t.Context(), "log", nil); !slices.Equal(b.warned, []string{"reflect on a compaction: away"}) {
		t.Errorf("warned of %q", b.warned)
	}
	b.fail = nil
	b.Compacted(t.Context(), "log", nil)
	if got, err := b.Tuned(t.Context()); err != nil || got.Tail != 7 || got.Large != 240 || got.Headroom != 25_000 || got.Severity != "" {
		t.Errorf("found each time: %+v, %v", got, err)
	}
	b.exec(`DELETE FROM recalls WHERE key = ?`, string(mine))
	b.Compacted(t.Context(), "log", nil)
	if got, err := b.Tuned(t.Context()); err != nil || got != (Tuning{}) || !strings.HasPrefix(b.told[len(b.told)-1].Text, "Reflection: what was tuned is taken back, for lack of a reason: the newest ") {
		t.Errorf("taken back: %+v, %v, told %s", got, err, b.told[len(b.told)-1].Text)
	}
	b.exec(`UPDATE tunings SET tuning = '{' WHERE key = ?`, string(mine))
	if _, err := b.Tuned(t.Context()); err == nil || !strings.Contains(err.Error(), "read tuning of agent:main:main") {
		t.Errorf("what cannot be read: %v", err)
	}
}

// TestEvictedAtOnce: how much the last compaction evicted is the sum of its markers, of which one that took in others says more
// than that.
func TestEvictedAtOnce(t *testing.T) {
	marker := func(count int, tokens tidemark.Tokens, cycles int) tidemark.Edit {
		return tidemark.Edit{Data: []byte(room.JSON(map[string]any{"marker": compaction.Marker{Count: count, Tokens: tokens, Cycles: cycles}}))}
	}
	for _, tc := range []struct {
		name  string
		edits []tidemark.Edit
		want  Evidence
	}{
		{"enough", []tidemark.Edit{marker(60, 100, 1), {}, marker(41, 200, 1)}, Evidence{Events: 101, Tokens: 300}},
		{"with one that took in others", []tidemark.Edit{marker(60, 39_000, 1), marker(41, 9000, 2)}, Evidence{}},
		{"in tokens", []tidemark.Edit{marker(1, 40_000, 1), marker(1, 1, 1)}, Evidence{Events: 2, Tokens: 40_001}},
	} {
		b := newBench(t)
		b.Compacted(t.Context(), "log", tc.edits)
		var data Reflected
		if len(b.told) > 0 {
			if err := json.Unmarshal(b.told[0].Data, &data); err != nil {
				t.Fatal(err)
			}
		}
		if data.Evidence != tc.want || len(b.told) != min(1, tc.want.Events) {
			t.Errorf("%s: %+v, told %d times", tc.name, data.Evidence, len(b.told))
		}
	}
}
