package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/room/selfcheck"
	"github.com/tidemark-ai/tidemark/summary"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestResetStepIsLost: a step of a reset that somebody else has taken at the same moment is not taken twice, and what was begun anew
// meanwhile is not dropped.
func TestResetStepIsLost(t *testing.T) {
	for _, c := range []struct {
		step string
		do   func(*Session, *run, *resetting) error
	}{
		{stepArchive, func(s *Session, r *run, x *resetting) error { return s.archiveWhole(t.Context(), r, x) }},
		{stepExtract, func(s *Session, r *run, x *resetting) error { return s.extract(t.Context(), r, x) }},
		{stepMove, func(s *Session, r *run, x *resetting) error { return s.move(t.Context(), r, x) }},
	} {
		s, rt := plain(t, Config{Settings: Settings{NoMemories: true}})
		r, old := s.begun(t, "r", stateCalling), s.current(t)
		s.spoken(t, 2)
		s.does(t, `INSERT INTO resets(old, key, new, step, reason, at) VALUES(?, ?, 'next', ?, 'idle', 1)`, old, string(s.Key), c.step)
		s.DB = &hooked{DB: s.DB, before: func() { s.does(t, `UPDATE resets SET step = 'done' WHERE key = ?`, string(s.Key)) }}
		if err := c.do(s, r, &resetting{Old: old, New: "next", Step: c.step, At: rt.now}); !errors.Is(err, tidemark.ErrConflict) || s.current(t) != old {
			t.Errorf("at %s: %v", c.step, err)
		}
	}
	blobs := tidemarktest.NewBlobs()
	s, _ := plain(t, Config{Blobs: blobs, Settings: Settings{NoMemories: true}})
	r := s.begun(t, "r", stateCalling)
	s.spoken(t, 2)
	h := &hooked{DB: s.DB}
	s.DB = h
	blobs.Fail = func(string, string) error {
		h.before = func() { s.does(t, `UPDATE resets SET step = 'extract' WHERE key = ?`, string(s.Key)) }
		return tidemark.ErrUnavailable
	}
	if err := s.resetNow(t.Context(), r, ""); !errors.Is(err, errNotArchived) || s.reads(t, resetRow, string(s.Key)) != "extract manual  0" {
		t.Errorf("%v, it stands at %q", err, s.reads(t, resetRow, string(s.Key)))
	}
}

// TestResetOfTheDead: a process that is gone, or a life that has lost its run, says nothing of the archive: the reset stays begun, and
// its command waits for the next life.
func TestResetOfTheDead(t *testing.T) {
	for name, c := range map[string]struct {
		fails error
		then  string
	}{"its host is gone": {tidemark.ErrDead, ""}, "another life has it": {nil, `owner = 'x'`}} {
		blobs := tidemarktest.NewBlobs()
		s, _ := plain(t, Config{Blobs: blobs, Settings: Settings{NoMemories: true}})
		r := s.begun(t, "r", stateCalling)
		s.spoken(t, 2)
		s.puts(t, s.Key, "c", InputReset, "new", "")
		q, err := s.waiting(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		q[0].Payload = []byte(`"manual"`)
		blobs.Fail = func(string, string) error {
			if c.then != "" {
				s.does(t, `UPDATE runs SET `+c.then+` WHERE key = ?`, string(s.Key))
			}
			return c.fails
		}
		err = s.command(t.Context(), r, q[0])
		if err == nil || errors.Is(err, errNotArchived) || s.reads(t, `SELECT state FROM inputs WHERE key = ? LIMIT 1`, string(s.Key)) != "new" || s.reads(t, resetRow, string(s.Key)) != "archive manual  0" {
			t.Errorf("%s: %v, the command is %s, the reset %q", name, err, s.reads(t, `SELECT state FROM inputs WHERE key = ? LIMIT 1`, string(s.Key)), s.reads(t, resetRow, string(s.Key)))
		}
	}
}

// broken is a database that gives nothing.
type broken struct {
	tidemark.DB
	fails error
}

func (b broken) Query(context.Context, string, ...any) ([]tidemark.Row, error) { return nil, b.fails }

// TestCheckCannotBeMade: a check that cannot be made is no violation, and the compaction holds; a process that is gone says so.
func TestCheckCannotBeMade(t *testing.T) {
	for _, c := range []struct{ fails, want error }{{errKnown, nil}, {tidemark.ErrDead, tidemark.ErrDead}} {
		s, _ := plain(t, Config{Rooms: []room.Maker{selfcheck.Make}})
		r := s.begun(t, "r", stateCalling)
		s.spoken(t, 4)
		v, err := s.View(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.log.DB = broken{s.DB, c.fails}
		p := &plan{Draft: summary.Draft{Log: r.Log}, overlay: "o", edits: []tidemark.Edit{{From: "i0", To: "i1"}}}
		if got, err := s.checked(t.Context(), r, p, v); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || p.overlay != "o" || len(got.Items) != 4 {
			t.Errorf("%v: %v, the view has %d messages", c.fails, err, len(got.Items))
		}
	}
}

// TestStopIsOfARun: a stop takes up what its run would have answered; one that stops nothing ends no run.
func TestStopIsOfARun(t *testing.T) {
	s, rt := plain(t, Config{})
	r := s.begun(t, "r", stateCalling)
	s.puts(t, s.Key, "m", InputMessage, "new", "")
	s.does(t, `UPDATE inputs SET payload = ? WHERE key = ?`, string(tidemark.NewText(tidemark.User, "hello").AppendJSON(nil)), string(s.Key))
	ended := 0
	s.cancel, s.active = func(error) { ended++ }, r.ID
	stranger := Input{ID: "s", Kind: InputAsk, Text: tidemark.CommandStop, Origin: tidemark.Origin{From: tidemark.FromPerson}}
	stmts, _, err := s.inputStmts(t.Context(), stranger, "done", rt.now)
	if err == nil {
		err = s.stop(t.Context(), stranger, stmts)
	}
	if err != nil || ended != 0 || len(rt.later) != 0 || s.reads(t, `SELECT state FROM inputs WHERE key = ? AND id = 'm' LIMIT 1`, string(s.Key)) != "new" {
		t.Errorf("a stranger ends it %d times, %v", ended, err)
	}
	owner := stranger
	owner.ID, owner.Origin.Owner = "o", true
	stmts, _, err = s.inputStmts(t.Context(), owner, "done", rt.now)
	if err == nil {
		err = s.stop(t.Context(), owner, stmts)
	}
	if err != nil || ended != 1 || len(rt.later) != 0 || s.reads(t, `SELECT state, run FROM inputs WHERE key = ? AND id = 'm' LIMIT 1`, string(s.Key)) != "taken r" {
		t.Errorf("the owner ends it %d times, %v", ended, err)
	}
}

// others is a toolbox that notes on whose behalf it is called.
type others struct {
	tidemark.Toolbox
	owner []bool
}

func (o *others) Call(_ context.Context, scope tidemark.Scope, c tidemark.Block) tidemark.Block {
	o.owner = append(o.owner, scope.Owner)
	return tidemark.ToolResult(c.ID, "of others", false)
}

// TestToolsAreCalledForTheSpeaker: a tool of others is called on the owner's behalf only in a turn of the owner's, and one of the agent's
// is the agent's; a schedule is the owner's to make.
func TestToolsAreCalledForTheSpeaker(t *testing.T) {
	owner, stranger := tidemark.Origin{From: tidemark.FromPerson, Owner: true}, tidemark.Origin{From: tidemark.FromPerson}
	for _, c := range []struct {
		tool    string
		origins []tidemark.Origin
		toolbox bool
		text    string
		owner   string
	}{
		{"files__read", []tidemark.Origin{owner}, true, "of others", "[true]"}, {"files__read", []tidemark.Origin{owner, stranger}, true, "of others", "[false]"}, {"look", []tidemark.Origin{owner}, true, "of the agent", "[]"},
		{"files__read", []tidemark.Origin{owner}, false, "of the agent", "[]"}, {scheduleTool, []tidemark.Origin{owner}, false, "of the agent", "[]"}, {scheduleTool, []tidemark.Origin{stranger}, false, "not run: schedules are the owner's", "[]"},
	} {
		s, _ := plain(t, Config{Agent: hasTools{}})
		box := &others{}
		if c.toolbox {
			s.Tools = box
		}
		b := s.resultOf(t.Context(), &run{ID: "r", origins: c.origins}, call{ID: "c1", Block: tidemark.ToolUse("c1", c.tool, nil)})
		if !strings.HasPrefix(b.Content[0].Text, c.text) || fmt.Sprint(box.owner) != c.owner {
			t.Errorf("%s of %+v: %q, for the owner %v", c.tool, c.origins, b.Content[0].Text, box.owner)
		}
	}
}

// TestRefitTeaches: what a refusal for the size of a request teaches: its limit, also with too many bytes; nothing where it names none,
// of bytes nothing of tokens; and it ends the turn where nothing can be done.
func TestRefitTeaches(t *testing.T) {
	for _, c := range []struct {
		name   string
		api    tidemark.APIError
		refits int
		known  tidemark.Tokens // that is learned, 0: nothing
		bytes  bool
		tried  bool
		fails  bool
	}{
		{"bytes", tidemark.APIError{Status: 413}, 0, 0, true, true, false},
		{"bytes, with a limit", tidemark.APIError{Status: 413, Limit: 90_000}, 0, 90_000, false, false, false},
		{"no limit", tidemark.APIError{Status: 400}, 0, 0, false, true, false},
		{"no limit, again", tidemark.APIError{Status: 400}, 1, 0, false, true, false},
		{"larger than the window that it names", tidemark.APIError{Status: 400, Limit: 100_000, Asked: 98_000}, 0, 100_000, false, false, true},
	} {
		s, _ := plain(t, Config{Settings: Settings{Window: 100_000}})
		r := s.begun(t, "r", stateCalling)
		r.refits, c.api.Class = c.refits, tidemark.ClassOverflow
		err := s.refit(t.Context(), r, weighing(r.Log, 30_000, 1_000, 29_000), c.api)
		if known := learnedOf(t, s, ""); (err != nil) != c.fails || known.Tokens != c.known || r.trial.bytes != c.bytes || (r.trial.from > 0) != c.tried || r.refits != c.refits+1 {
			t.Errorf("%s: %v, learned %+v, %+v", c.name, err, known, r.trial)
		}
	}
}
