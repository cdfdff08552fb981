package vectors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/room"
)

const mine tidemark.Key = "agent:main:main"

var noon = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

// still is a runtime whose clock stands until a test moves it.
type still struct {
	tidemark.Runtime
	now time.Time
}

func (s *still) Now() time.Time { return s.now }

// endpoint makes vectors by what a test says, and notes what it is given.
type endpoint struct {
	name  string
	given [][]string
	make  func(texts []string) ([][]float32, error)
}

func (e *endpoint) Name() string { return e.name }

func (e *endpoint) Embed(_ context.Context, texts []string) ([][]float32, error) {
	e.given = append(e.given, slices.Clone(texts))
	if e.make != nil {
		return e.make(texts)
	}
	out := make([][]float32, len(texts))
	for i := range texts {
		out[i] = []float32{1, 0}
	}
	return out, nil
}

// store is a database that may be down.
type store struct {
	tidemark.DB
	part string // of a query that fails
}

var errDown = errors.New("the database is down")

func (s *store) Query(ctx context.Context, sql string, args ...any) ([]tidemark.Row, error) {
	if s.part != "" && strings.Contains(sql, s.part) {
		return nil, errDown
	}
	return s.DB.Query(ctx, sql, args...)
}

// bench is a room over a log of its own, in whose tables others have rows, too.
type bench struct {
	*testing.T
	*Room
	by       *endpoint
	store    *store
	clock    *still
	logs     []string // of the conversation, newest first
	settled  int64
	texts    map[int64]string // of messages, where they are others than "text N"
	observed []string
	warned   []string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, by: &endpoint{name: "m"}, store: &store{DB: hosttest.DB(t)}, clock: &still{Runtime: hosttest.Runtime(t), now: noon}, logs: []string{"log"}, settled: 1 << 40, texts: map[int64]string{}}
	log, err := host.OpenLog(t.Context(), b.store)
	if err != nil {
		t.Fatal(err)
	}
	b.Room = Make(b.by)(room.Ports{
		Self: room.Self{Key: mine, DB: b.store, Made: &room.Made{DB: b.store}, Runtime: b.clock, Logger: slog.New(slog.DiscardHandler),
			Warn:    func(what string, err error) { b.warned = append(b.warned, what+": "+err.Error()) },
			Observe: func(kind, how string, n int) { b.observed = append(b.observed, fmt.Sprint(kind, " ", how, " ", n)) }},
		History: room.History{Log: log, Logs: func(context.Context) ([]string, error) { return b.logs, nil },
			Settled: func(context.Context) (int64, error) { return b.settled, nil },
			Texts: func(_ context.Context, seqs []int64, use func(tidemark.Entry, string)) error {
				for _, seq := range seqs {
					text, ok := b.texts[seq]
					if !ok {
						text = fmt.Sprint("text ", seq)
					}
					use(tidemark.Entry{ID: tidemark.EntryID(fmt.Sprint("e", seq)), Seq: seq}, text)
				}
				return nil
			}},
		Work: room.Work{
			Due: func(kind string, at time.Time, _ string) tidemark.Stmt {
				return tidemark.Stmt{SQL: `INSERT INTO due(key, kind, at, data) VALUES(?, ?, ?, '') ON CONFLICT(key, kind) DO UPDATE SET at = excluded.at`, Args: []any{string(mine), kind, at.UnixMilli()}}
			},
			Undue: func(kind string) tidemark.Stmt {
				return tidemark.Stmt{SQL: `DELETE FROM due WHERE key = ? AND kind = ?`, Args: []any{string(mine), kind}}
			}},
	}).(*Room)
	if err := b.Made.Open(t.Context(), tables); err != nil {
		t.Fatal(err)
	}
	b.exec(`CREATE TABLE due(key TEXT NOT NULL, kind TEXT NOT NULL, at INTEGER NOT NULL, data TEXT NOT NULL, PRIMARY KEY(key, kind))`)
	b.exec(`INSERT INTO vectors(key, seq, vector) VALUES('agent:main:aunt', 1, x'0101010101'), ('agent:main:zoe', 9, x'0101010101')`)
	b.exec(`INSERT INTO embedded(key, log, model, seq, failures) VALUES('agent:main:aunt', 'log', 'theirs', 1, 2), ('agent:main:zoe', 'log', 'theirs', 9, 2)`)
	t.Cleanup(func() {
		if got := b.rows(`SELECT (SELECT count(*) FROM vectors WHERE key IN ('agent:main:aunt', 'agent:main:zoe')) || ' ' || count(*) FROM embedded WHERE key <> ?1 AND model = 'theirs' AND failures = 2 LIMIT 1`, string(mine)); got != "2 2" {
			t.Errorf("of others there are %s rows", got)
		}
	})
	return b
}

func (b *bench) exec(sql string, args ...any) {
	b.Helper()
	hosttest.Exec(b.T, b.DB, sql, args...)
}

// rows are those of a query of one text.
func (b *bench) rows(sql string, args ...any) string {
	b.Helper()
	return hosttest.Lines(b.T, b.store.DB, sql, args...)
}

// messages puts some into a log, and beside them what has no vector.
func (b *bench) messages(log string, n int) {
	b.Helper()
	b.exec(`WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < ?) INSERT INTO entries(id, log, kind, at, hash, payload) SELECT ? || n || random(), ?, 'message', 0, '', '{}' FROM i`, n, log, log)
}

// made tells how far logs have vectors, and of which messages.
func (b *bench) made() string {
	b.Helper()
	return b.rows(`SELECT log || ' ' || model || ' to ' || seq || ' failed ' || failures || ': ' || (SELECT coalesce(group_concat(seq), '') FROM (SELECT seq FROM vectors v WHERE v.key = e.key ORDER BY seq)) FROM embedded e WHERE key = ? ORDER BY log LIMIT 9`, string(mine))
}

// due is when vectors are, behind the beginning.
func (b *bench) due() string {
	b.Helper()
	return b.rows(`SELECT kind || ' ' || (at - ?) FROM due WHERE key = ? LIMIT 9`, fmt.Sprint(noon.UnixMilli()), string(mine))
}

// TestQuantize: a vector becomes one of length one, a byte a number, and two are as alike as their angle.
func TestQuantize(t *testing.T) {
	for _, tc := range []struct {
		v    []float32
		want []int8
	}{{[]float32{3, 4}, []int8{76, 102}}, {[]float32{-3, 4}, []int8{-76, 102}}, {[]float32{0.001, 0}, []int8{127, 0}}, {[]float32{0, 0}, []int8{0, 0}}, {[]float32{-1}, []int8{-127}}, {[]float32{1, 1, 1, 1}, []int8{64, 64, 64, 64}}, {nil, nil}} {
		var got []int8
		for _, b := range quantize(tc.v) {
			got = append(got, int8(b))
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%v: %v, want %v", tc.v, got, tc.want)
		}
	}
	if got := dot(quantize([]float32{3, 4}), quantize([]float32{-3, 4})); got != 102*102-76*76 {
		t.Errorf("likeness %v", got)
	}
}

// TestEmbedHolds: an endpoint that gives other than was asked for has failed, and each time is observed.
func TestEmbedHolds(t *testing.T) {
	refused := func(c tidemark.Class) error { return &tidemark.APIError{Class: c} }
	for _, tc := range []struct {
		name    string
		out     [][]float32
		err     error
		want    error
		refuses bool
	}{
		{"vectors", [][]float32{{1, 0}, {0, 2}}, nil, nil, false}, {"too few", [][]float32{{1, 0}}, nil, tidemark.ErrUnavailable, false}, {"too many", [][]float32{{1}, {1}, {1}}, nil, tidemark.ErrUnavailable, false},
		{"zeros", [][]float32{{1, 0}, {0, 0}}, nil, errNoVector, true}, {"no numbers", [][]float32{{float32(math.NaN())}, {1}}, nil, errNoVector, true}, {"too large", [][]float32{{3e19}, {1}}, nil, errNoVector, true},
		{"a failure, with vectors", [][]float32{{0}, {0}}, errDown, errDown, false}, {"refused", nil, refused(tidemark.ClassBadRequest), nil, true}, {"too long", nil, refused(tidemark.ClassOverflow), nil, true}, {"overloaded", nil, refused(tidemark.ClassOverloaded), nil, false},
	} {
		b := newBench(t)
		b.by.make = func([]string) ([][]float32, error) { return tc.out, tc.err }
		out, err := b.embed(t.Context(), []string{"a", "b"})
		want := errors.Is(err, tc.want)
		if tc.err != nil && tc.want == nil {
			want = errors.Is(err, tc.err)
		}
		how := "vectors made 2"
		if err != nil {
			how = "vectors failed 2"
		}
		if !want || refusesText(err) != tc.refuses || !slices.Equal(b.observed, []string{how}) || err == nil && len(out) != 2 {
			t.Errorf("%s: %v, %v, refuses %v, observed %q", tc.name, out, err, refusesText(err), b.observed)
		}
	}
	b := newBench(t)
	if out, err := b.embed(t.Context(), nil); out != nil || err != nil || len(b.by.given) > 0 || len(b.observed) > 0 {
		t.Errorf("of nothing: %v, %v, asked %d times", out, err, len(b.by.given))
	}
}

// TestWakeEmbeds: messages get vectors in order, in batches, of each log, up to what is settled; what is done is not done again.
func TestWakeEmbeds(t *testing.T) {
	b := newBench(t)
	b.exec(`INSERT INTO due(key, kind, at, data) VALUES(?, 'other', 1, '')`, string(mine))
	b.logs = []string{"log", "old"}
	b.messages("old", 2)
	b.messages("log", 33)
	b.messages("elsewhere", 3)
	b.exec(`INSERT INTO entries(id, log, kind, at, hash, payload) VALUES('x', 'log', 'event', 0, '', '{}')`)
	b.messages("log", 2)
	b.settled, b.texts[5], b.texts[6] = 40, "", strings.Repeat("é", embedBytes)
	if err := b.Wake(t.Context()); err != nil || b.Wakes() != room.DueVectors {
		t.Fatal(err)
	}
	if len(b.by.given) != 3 || len(b.by.given[0]) != 31 || b.by.given[0][0] != "text 3" || len(b.by.given[0][2]) != embedBytes || !slices.Equal(b.by.given[1], []string{"text 35", "text 40"}) || !slices.Equal(b.by.given[2], []string{"text 1", "text 2"}) {
		t.Errorf("given %d times: %.300q", len(b.by.given), b.by.given)
	}
	all := "1,2,3,4"
	for n := 6; n <= 35; n++ {
		all += fmt.Sprint(",", n)
	}
	all += ",40"
	if got, want := b.made(), "log m to 40 failed 0: "+all+"\nold m to 2 failed 0: "+all; got != want || b.rows(`SELECT kind FROM due WHERE key = ? LIMIT 9`, string(mine)) != "other" {
		t.Errorf("made\n%s\nwant\n%s", got, want)
	}
	if got := b.rows(`SELECT hex(vector) FROM vectors WHERE key = ? AND seq = 3 LIMIT 1`, string(mine)); got != "7F00" {
		t.Errorf("a vector is %s", got)
	}
	b.settled = 41
	if err := b.Wake(t.Context()); err != nil || len(b.by.given) != 4 || !slices.Equal(b.by.given[3], []string{"text 41"}) {
		t.Errorf("what is settled since: %v, given %.300q", err, b.by.given[3:])
	}
}

// TestWakeShares: a wake makes so many batches, or as many as it has time for, and goes on at once behind others.
func TestWakeShares(t *testing.T) {
	for _, tc := range []struct {
		name  string
		takes time.Duration
		want  int
	}{{"so many", 0, embedRounds}, {"as there is time for", 700 * time.Millisecond, 3}, {"just that", time.Second, 3}} {
		b := newBench(t)
		b.messages("log", embedBatch*embedRounds+1)
		b.by.make = func(texts []string) ([][]float32, error) {
			b.clock.now = b.clock.now.Add(tc.takes)
			out := make([][]float32, len(texts))
			for i := range out {
				out[i] = []float32{1}
			}
			return out, nil
		}
		if err := b.Wake(t.Context()); err != nil || len(b.by.given) != tc.want {
			t.Errorf("%s: asked %d times, %v", tc.name, len(b.by.given), err)
		}
		if got := b.rows(`SELECT at FROM due WHERE key = ? AND kind = 'embed' LIMIT 9`, string(mine)); got != fmt.Sprint(b.clock.now.UnixMilli()) {
			t.Errorf("%s: due at %s", tc.name, got)
		}
	}
}

// TestWakePutsOff: an endpoint that fails is asked again later each time, of each log, and a success begins anew.
func TestWakePutsOff(t *testing.T) {
	b := newBench(t)
	b.messages("log", 1)
	fail := true
	b.by.make = func(texts []string) ([][]float32, error) {
		if fail {
			return nil, errDown
		}
		return [][]float32{{1}}, nil
	}
	for i, want := range []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, 15 * time.Minute} {
		if err := b.Wake(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := b.rows(`SELECT at FROM due WHERE key = ? AND kind = 'embed' LIMIT 9`, string(mine)); got != fmt.Sprint(noon.Add(want).UnixMilli()) || b.made() != fmt.Sprintf("log m to 0 failed %d: ", i+1) {
			t.Errorf("failure %d: due at %s, made %s", i, got, b.made())
		}
	}
	if len(b.warned) != 4 || b.warned[0] != "vectors put off: embed 1 messages: "+errDown.Error() {
		t.Errorf("warned of %q", b.warned)
	}
	if made, failing, err := State(t.Context(), b.DB); err != nil || made != 2 || failing != 3 {
		t.Errorf("of the database: %d made, %d fail, %v", made, failing, err)
	}
	if fail = false; b.Wake(t.Context()) != nil || b.made() != "log m to 1 failed 0: 1" {
		t.Errorf("made %s", b.made())
	}
	if made, failing, err := State(t.Context(), b.DB); err != nil || made != 3 || failing != 2 {
		t.Errorf("of the database, behind a success: %d made, %d fail, %v", made, failing, err)
	}
	empty := hosttest.DB(t)
	if made, failing, err := State(t.Context(), empty); made != 0 || failing != 0 || err != nil {
		t.Errorf("of a database without vectors: %d, %d, %v", made, failing, err)
	}
}

// TestWakeRefused: a text that the endpoint refuses is found among others and goes without; one that refuses all is asked later.
func TestWakeRefused(t *testing.T) {
	b := newBench(t)
	b.messages("log", 5)
	refuses := func(part string) {
		b.by.make = func(texts []string) ([][]float32, error) {
			out := make([][]float32, len(texts))
			for i, text := range texts {
				if out[i] = []float32{1}; strings.Contains(text, part) {
					return nil, &tidemark.APIError{Class: tidemark.ClassBadRequest}
				}
			}
			return out, nil
		}
	}
	refuses("text 4")
	if err := b.Wake(t.Context()); err != nil || b.made() != "log m to 5 failed 0: 1,2,3,5" {
		t.Errorf("made %s, %v", b.made(), err)
	}
	var sizes []int
	for _, texts := range b.by.given {
		sizes = append(sizes, len(texts))
	}
	if want := []int{5, 2, 3, 1, 2, 1, 1, 1}; !slices.Equal(sizes, want) || b.by.given[6][0] != "ok" {
		t.Errorf("given %v, want %v: %q", sizes, want, b.by.given)
	}
	b = newBench(t)
	b.messages("log", 1)
	refuses("")
	if err := b.Wake(t.Context()); err != nil || b.made() != "log m to 0 failed 1: " || len(b.warned) != 1 {
		t.Errorf("of one that refuses all: made %s, %v, warned of %q", b.made(), err, b.warned)
	}
}

// TestVectorsAnew: vectors of another length, or of another model, are made anew, not at once.
func TestVectorsAnew(t *testing.T) {
	b := newBench(t)
	b.messages("log", 1)
	b.exec(`INSERT INTO vectors(key, seq, vector) VALUES(?, 1, x'010101')`, string(mine))
	b.exec(`INSERT INTO embedded(key, log, model, seq) VALUES(?, 'log', 'm', 0)`, string(mine))
	if err := b.Wake(t.Context()); err != nil || b.made() != "" || b.due() != "embed 60000" || len(b.warned) > 0 {
		t.Errorf("of another length: made %s, due %s, %v, warned of %q", b.made(), b.due(), err, b.warned)
	}
	if err := b.Wake(t.Context()); err != nil || b.made() != "log m to 1 failed 0: 1" {
		t.Errorf("anew: made %s, %v", b.made(), err)
	}
	if err := b.Open(t.Context()); err != nil || b.made() != "log m to 1 failed 0: 1" {
		t.Errorf("of the same model: made %s, %v", b.made(), err)
	}
	b.by.name = "n"
	if err := b.Open(t.Context()); err != nil || b.made() != "" || b.rows(`SELECT count(*) FROM vectors WHERE key = ? LIMIT 1`, string(mine)) != "0" || b.due() != "embed 60000" {
		t.Errorf("of another model: made %s, due %s, %v", b.made(), b.due(), err)
	}
	b.exec(`DELETE FROM due`)
	b.exec(`INSERT INTO due(key, kind, at, data) VALUES('agent:main:aunt', 'embed', 1, '')`)
	for range 2 {
		if err := b.DB.Tx(t.Context(), b.EndStmts()); err != nil || b.due() != "embed 1000" {
			t.Errorf("behind a turn: due %s, %v", b.due(), err)
		}
		b.clock.now = noon.Add(time.Minute) // what is due stays so
	}
}

// TestNearest: of vectors those that stand out for a query are found, of this conversation, or of all that it may look into.
func TestNearest(t *testing.T) {
	b := newBench(t)
	b.exec(`INSERT INTO logs(id, key, created) VALUES('log', ?, 0), ('base', 'agent:main:local:dm:x', 0)`, string(mine))
	b.messages("base", 10)
	b.messages("log", 1100)
	b.exec(`INSERT INTO vectors(key, seq, vector) SELECT CASE log WHEN 'log' THEN ? ELSE 'agent:main:local:dm:x' END, seq, x'7F00' FROM entries`, string(mine))
	b.exec(`UPDATE vectors SET vector = x'007F' WHERE seq IN (2, 8, 15, 700)`)
	b.exec(`INSERT INTO vectors(key, seq, vector) VALUES(?, 5000, x'007F7F'), ('agent:main:zoe', 2000, x'007F')`, string(mine))
	b.by.make = func([]string) ([][]float32, error) { return [][]float32{{0, 5}}, nil }
	own := &host.Lineage{Key: mine, Single: true}
	wide := &host.Lineage{Key: mine, Keys: []string{string(mine), "agent:main:local:dm:x"}, Logs: `{"log":9007199254740991,"base":5}`}
	for _, tc := range []struct {
		name string
		in   *host.Lineage
		want []int64
	}{{"its own", own, []int64{15, 700}}, {"with what it continues", wide, []int64{2, 15, 700}}} {
		near, told := b.Near(t.Context(), strings.Repeat("é", embedBytes), tc.in)
		var got []int64
		for seq, st := range near {
			if got = append(got, seq); st.Rank < 1 || st.Rank > len(near) || st.Z < 3 {
				t.Errorf("%s: %d is %+v", tc.name, seq, st)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, tc.want) || told != "used" {
			t.Errorf("%s: %v, %s, want %v", tc.name, got, told, tc.want)
		}
	}
	if len(b.by.given[0]) != 1 || len(b.by.given[0][0]) != embedBytes {
		t.Errorf("asked with %d bytes", len(b.by.given[0][0]))
	}
	b.store.part = "FROM vectors v"
	if near, told := b.Near(t.Context(), "x", own); near != nil || told != "unreachable" || !slices.Equal(b.warned, []string{"recall without vectors: read vectors: " + errDown.Error()}) {
		t.Errorf("a store that is down: %v, %s, warned of %q", near, told, b.warned)
	}
	b.exec(`DELETE FROM vectors WHERE key = 'agent:main:zoe' AND seq = 2000`)
}

// TestNearestOfNewest: a query is held against the newest vectors, and no more of them than there is time for.
func TestNearestOfNewest(t *testing.T) {
	b := newBench(t)
	b.exec(`WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < ?) INSERT INTO vectors(key, seq, vector) SELECT ?, n, CASE WHEN n IN (1, 2, 20001) THEN x'007F' ELSE x'7F00' END FROM i`, maxVectors+1, string(mine))
	got, err := b.likest(t.Context(), &host.Lineage{Key: mine, Single: true}, []byte{0, 127})
	if _, old := got[1]; err != nil || len(got) != 2 || got[2].Rank == 0 || got[20001].Rank == 0 || old {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestNearRests: an endpoint that failed is left alone for a minute, by whatever clock; who left is no failure of it.
func TestNearRests(t *testing.T) {
	b := newBench(t)
	own := &host.Lineage{Key: mine, Single: true}
	b.by.make = func([]string) ([][]float32, error) { return nil, errDown }
	gone, leave := context.WithCancel(t.Context())
	leave()
	for _, step := range []struct {
		name  string
		ctx   context.Context
		at    time.Duration
		asked int
	}{
		{"who left", gone, 0, 1}, {"a failure", t.Context(), 0, 2}, {"at once", t.Context(), 0, 2}, {"nearly a minute later", t.Context(), time.Minute - time.Millisecond, 2}, {"a minute later", t.Context(), time.Minute, 3},
		{"a moment before the last", t.Context(), time.Minute - time.Millisecond, 4}, {"an hour before", t.Context(), -time.Hour, 5},
	} {
		b.clock.now = noon.Add(step.at)
		if near, told := b.Near(step.ctx, "x", own); near != nil || told != "unreachable" || len(b.by.given) != step.asked {
			t.Errorf("%s: %v, %s, asked %d times, want %d", step.name, near, told, len(b.by.given), step.asked)
		}
	}
	b.by.make = nil
	b.clock.now = noon.Add(time.Hour)
	if _, told := b.Near(t.Context(), "x", own); told != "used" {
		t.Errorf("when it is back: %s", told)
	}
}
