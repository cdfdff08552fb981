package session

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/room/selfcheck"
)

// TestLostInput: an input with a block that cannot be read waits for it three tries long, then it is taken up with a note; for
// who stops it at once.
func TestLostInput(t *testing.T) {
	for _, c := range []struct {
		tries int
		owner string
		taken bool
	}{{0, "o", false}, {1, "o", false}, {2, "o", true}, {3, "o", true}, {0, "", true}} {
		s, _ := plain(t, Config{})
		m, err := s.blocks.Spill(t.Context(), tidemark.NewText(tidemark.User, strings.Repeat("boathouse ", 40_000)))
		if err != nil {
			t.Fatal(err)
		}
		page, _, err := s.Blobs.List(t.Context(), "agents/main/artifacts/", "", 9)
		if err != nil || len(page) != 1 {
			t.Fatal(page, err)
		}
		if err := s.Blobs.Delete(t.Context(), page[0].Key); err != nil {
			t.Fatal(err)
		}
		s.outage.tries = c.tries
		stmts, err := s.takeStmts(t.Context(), &run{ID: "r", Log: s.current(t), owner: c.owner}, []queued{{ID: "in", Payload: m.AppendJSON(nil)}}, "")
		if (err == nil) != c.taken || c.taken && len(stmts) < 2 {
			t.Errorf("behind %d tries of %q: %d statements, %v", c.tries, c.owner, len(stmts), err)
		}
	}
}

// named is a room with a table, a kind of due work or a kind of report.
type named struct {
	table, due, report string
}

func (n named) Tables() room.Tables {
	return room.Tables{Space: "named_" + n.table, Steps: []string{`CREATE TABLE ` + n.table + `(a TEXT)`}}
}
func (n named) Wakes() string                        { return n.due }
func (n named) Wake(context.Context) error           { return nil }
func (n named) Reports() string                      { return n.report }
func (n named) Report(context.Context, []byte) error { return nil }

// TestCoreIsTaken: no room takes what the core has: neither a table that is there from the beginning or made later, nor a kind of work or of
// report.
func TestCoreIsTaken(t *testing.T) {
	for _, c := range []struct {
		n     named
		takes string
	}{
		{named{table: "mine", due: "mine", report: "mine"}, ""}, {named{table: "heads", due: "d", report: "r"}, `table "heads"`}, {named{table: "artifacts", due: "d", report: "r"}, `table "artifacts"`},
		{named{table: "words", due: "d", report: "r"}, `table "words"`}, {named{table: "t", due: dueAgain, report: "r"}, `kind of due work "again"`}, {named{table: "t", due: "d", report: outFacts}, `kind of report "facts"`},
	} {
		s, _ := plain(t, Config{})
		conf := s.Config
		conf.Rooms = []room.Maker{func(room.Ports) any { return c.n }}
		_, err := Open(t.Context(), conf)
		if (err == nil) != (c.takes == "") || err != nil && (!errors.Is(err, tidemark.ErrConflict) || !strings.Contains(err.Error(), c.takes)) {
			t.Errorf("%+v: %v", c.n, err)
		}
	}
}

// parting is a room that says what a plan does to episodes.
type parting struct {
	room.Divider
	left  *room.EpisodesLeft
	size  tidemark.Tokens
	fails error
}

func (p *parting) Left(_ context.Context, _ string, by []string, before, after compaction.View) (*room.EpisodesLeft, error) {
	p.size = after.Size
	return p.left, p.fails
}

// TestLeftByAPlan: what a plan leaves is told in the measure of the view before, where a room knows of episodes.
func TestLeftByAPlan(t *testing.T) {
	p := &parting{left: &room.EpisodesLeft{Whole: 2}}
	s, _ := plain(t, Config{Rooms: []room.Maker{func(room.Ports) any { return p }}})
	after := compaction.View{Items: []compaction.Item{{Tokens: 100}}}
	before := weighing("", 800, 100, 300)
	var done Compacted
	if err := s.leftBy(t.Context(), &plan{}, before, after, &done); err != nil || p.size != 400 || done.After != 400 || done.Episodes != p.left {
		t.Errorf("%v, %d, %+v", err, p.size, done)
	}
	p.left, done = nil, Compacted{After: 7}
	if err := s.leftBy(t.Context(), &plan{}, before, after, &done); err != nil || done.After != 7 || done.Episodes != nil {
		t.Errorf("of none: %v, %+v", err, done)
	}
	p.fails, p.left = errKnown, &room.EpisodesLeft{}
	if err := s.leftBy(t.Context(), &plan{}, before, after, &done); !errors.Is(err, errKnown) || done.After != 7 {
		t.Errorf("it fails: %v, %+v", err, done)
	}
	bare, _ := plain(t, Config{})
	if err := bare.leftBy(t.Context(), &plan{}, before, after, &done); err != nil || done.After != 7 {
		t.Errorf("without episodes: %v, %+v", err, done)
	}
}

// indexing is a room that checks what is found.
type indexing struct {
	room.Indexer
	fault string
	fails error
}

func (indexing) IndexStmts(context.Context, tidemark.Entry, tidemark.Message) ([]tidemark.Stmt, error) {
	return nil, nil
}

func (i indexing) Check(context.Context, tidemark.Entry, tidemark.Message) (checks, repaired int, fault string, err error) {
	return 3, 2, i.fault, i.fails
}

// losing is a database that loses an entry before payloads are read.
type losing struct {
	tidemark.DB
	lose func()
}

func (l *losing) Query(ctx context.Context, sql string, args ...any) ([]tidemark.Row, error) {
	if strings.Contains(sql, "payload") {
		l.lose()
	}
	return l.DB.Query(ctx, sql, args...)
}

// TestCheckCounts: a check adds up what the index was checked for and had repaired, and says what it lacks; entries that are gone are
// counted.
func TestCheckCounts(t *testing.T) {
	check := func(s *Session, to tidemark.EntryID) (room.Checked, error) {
		r, _ := room.Find[*selfcheck.Room](s.rooms)
		return r.Check(t.Context(), room.Acted{Log: s.current(t), Overlay: "o", Edits: []tidemark.Edit{{From: "i0", To: to}}, Messages: []tidemark.Message{tidemark.NewText(tidemark.User, "hi")}})
	}
	for _, c := range []struct {
		fault string
		fails error
	}{{"", nil}, {"it is not found", nil}, {"", errKnown}} {
		s, _ := plain(t, Config{Rooms: []room.Maker{func(room.Ports) any { return indexing{fault: c.fault, fails: c.fails} }, selfcheck.Make}})
		s.spoken(t, 1)
		found, err := check(s, "i0")
		if found.Overlay != "o" || found.Checks != 5 || found.Repaired != 2 || strings.Join(found.Violations, "") != c.fault || !errors.Is(err, c.fails) {
			t.Errorf("%q: %+v, %v", c.fault, found, err)
		}
	}
	s, _ := plain(t, Config{Rooms: []room.Maker{selfcheck.Make}})
	s.spoken(t, 6)
	s.log.DB = &losing{DB: s.DB, lose: func() { s.does(t, `DELETE FROM entries WHERE log = ? AND id = 'i2'`, s.current(t)) }}
	if found, err := check(s, "i3"); err != nil || len(found.Violations) != 1 || found.Violations[0] != "1 of 4 entries that left the view are not in the log" {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestTryWindows: a view is compacted for half of what was refused, by what we estimate of it where that is more; where nothing can
// leave, a window is tried that is little more than the view, once, and none that is not less than before.
func TestTryWindows(t *testing.T) {
	for _, c := range []struct {
		name   string
		size   tidemark.Tokens // as it was reported
		tokens tidemark.Tokens // as it is estimated, beside 1,000
		taken  int64
		trial  trial
		window tidemark.Tokens
		fails  bool
		from   tidemark.Tokens
	}{
		{"reported too small", 10_000, 30_000, 0, trial{}, 32_937, false, 100_000}, // 31,000 and a sixteenth
		{"reported", 40_000, 30_000, 0, trial{}, 42_500, false, 100_000},
		{"later in a trial", 40_000, 30_000, 25_000, trial{from: 150_000, least: true}, 20_000, true, 150_000},
		{"for the second time", 40_000, 30_000, 0, trial{from: 150_000, least: true}, 20_000, true, 150_000},
		{"just below the window", 94_117, 30_000, 0, trial{}, 99_999, false, 100_000},
		{"no less than the window", 94_118, 30_000, 0, trial{}, 47_059, true, 100_000},
	} {
		s, _ := plain(t, Config{Settings: Settings{Window: 100_000}})
		r := s.begun(t, "r", stateCalling)
		r.trial = c.trial
		s.mostTaken.Store(c.taken)
		err := s.retrySmaller(t.Context(), r, weighing(r.Log, c.size, 1_000, c.tokens))
		if (err != nil) != c.fails || err != nil && !errors.Is(err, tidemark.ErrNoGain) || s.settings().Window != c.window || r.trial.from != c.from || r.trial.least != (c.trial.least || !c.fails) {
			t.Errorf("%s: %v, it tries %d, %+v", c.name, err, s.settings().Window, r.trial)
		}
	}
}
