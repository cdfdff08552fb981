package session

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
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
)

// diary notes what it is asked and told.
type diary struct{ lines *[]string }

func (d diary) note(format string, args ...any) {
	*d.lines = append(*d.lines, fmt.Sprintf(format, args...))
}

func (d diary) titled(what string) []tidemark.Stmt {
	return []tidemark.Stmt{{SQL: `UPDATE heads SET title = title || ? WHERE key = 'agent:main:main'`, Args: []any{what}}}
}

func (d diary) Open(context.Context) error  { d.note("open"); return nil }
func (d diary) Wakes() string               { return "ring" }
func (d diary) Wake(context.Context) error  { d.note("wake"); return errKnown }
func (d diary) Brief() string               { return "A diary is kept." }
func (d diary) Working() bool               { return len(*d.lines) == 0 }
func (d diary) ToldStmts() []tidemark.Stmt  { return d.titled("t") }
func (d diary) Told(context.Context)        { d.note("told") }
func (d diary) PruneStmts() []tidemark.Stmt { return d.titled("p") }
func (d diary) Closed(context.Context)      { d.note("closed") }
func (d diary) EndStmts() []tidemark.Stmt   { return d.titled("e") }
func (d diary) Answers() []string           { return []string{"tide", "flood"} }

func (d diary) Answer(_ context.Context, a room.Asked) (string, error) {
	d.note("asked %s %s %v %s %d", a.Word, a.Text, a.Owner, a.ID, a.At.UnixMilli())
	switch a.Text {
	case "secret":
		return "x", tidemark.ErrForbidden
	case "broken":
		return "", errKnown
	}
	return "high at noon", nil
}

func (d diary) OutcomeStmts(_ context.Context, turn room.Turn, out tidemark.Outcome) []tidemark.Stmt {
	d.note("outcome %s %s %d %d %s", turn.Run, turn.Log, turn.Round, len(turn.Origins), out.Text)
	return d.titled("o")
}

func (d diary) Tune(_ context.Context, list []compaction.Strategy) ([]compaction.Strategy, error) {
	return list[1:], nil
}

func (d diary) Compacted(_ context.Context, log string, edits []tidemark.Edit) {
	d.note("compacted %s %d", log, len(edits))
}

func (d diary) Recalled(_ context.Context, by string, v recall.Verdict, first tidemark.EntryID) {
	d.note("recalled %s %v %s", by, v, first)
}

// mute is a room with nothing to say, of another kind of work and another word.
type mute struct{}

func (mute) Wakes() string              { return "other" }
func (mute) Wake(context.Context) error { return nil }
func (mute) Brief() string              { return "" }
func (mute) Answers() []string          { return []string{"other"} }
func (mute) Answer(context.Context, room.Asked) (string, error) {
	return "of the mute", nil
}

// TestRoomsTakePart: each room has its own kind of work and its own words; all of them take part in the end of a turn, a report,
// a reset and a compaction that holds.
func TestRoomsTakePart(t *testing.T) {
	d := diary{new([]string)}
	var told []Notice
	s, _ := plain(t, Config{Observe: func(n Notice) { told = append(told, n) }, Rooms: []room.Maker{func(room.Ports) any { return mute{} }, func(room.Ports) any { return d }, func(room.Ports) any { return struct{}{} }}})
	ctx := t.Context()
	said := func(want ...string) {
		t.Helper()
		if !slices.Equal(*d.lines, want) {
			t.Errorf("it notes %q, want %q", *d.lines, want)
		}
		*d.lines = nil
	}
	said("open")
	if !s.Working() || s.Idle() {
		t.Error("a room works, and the session does not")
	}
	d.note("idle")
	if s.Working() || !s.Idle() {
		t.Error("no room works, and the session does")
	}
	*d.lines = nil
	if got := s.rooms.Brief(); got != "\n\nA diary is kept." || !strings.HasSuffix(s.settings().System, got) {
		t.Errorf("they brief with %q", got)
	}
	if ok, err := s.rooms.Wake(ctx, "ring"); !ok || !errors.Is(err, errKnown) {
		t.Errorf("it wakes with %v", err)
	}
	said("wake")
	s.does(t, `INSERT INTO due(key, kind, at) VALUES(?, 'gone', 1)`, string(s.Key))
	if err := s.Wake(ctx); err != nil || s.reads(t, `SELECT kind FROM due WHERE key = ? AND kind = 'gone' LIMIT 9`, string(s.Key)) != "" {
		t.Errorf("what is of no room is due still, %v", err)
	}
	r := &run{ID: "r", Log: "log", Round: 2, origins: []tidemark.Origin{{}, {}}}
	for _, c := range []struct {
		word, text, answer string
		ok                 bool
		err                error
	}{
		{"flood", "today", "high at noon", true, nil}, {"other", "x", "of the mute", true, nil}, {"tide", "secret", "x", true, tidemark.ErrForbidden}, {"tide", "broken", "", true, errKnown}, {"ebb", "x", "", false, nil},
	} {
		if answer, ok, err := s.rooms.Answer(ctx, room.Asked{Word: c.word, Text: c.text, Owner: true}); answer != c.answer || ok != c.ok || !errors.Is(err, c.err) {
			t.Errorf("%s %s: %q, %v, %v", c.word, c.text, answer, ok, err)
		}
	}
	r.command = &queued{ID: "in", At: time.UnixMilli(7)}
	if _, err := s.reply(ctx, r, "tide"); err != nil {
		t.Error(err)
	}
	if got, err := s.reply(ctx, r, "tide secret"); got != s.notYours() || err != nil {
		t.Errorf("what is not theirs is answered %q, %v", got, err)
	}
	zero := time.Time{}.UnixMilli()
	said(fmt.Sprintf("asked flood today true  %d", zero), fmt.Sprintf("asked tide secret true  %d", zero), fmt.Sprintf("asked tide broken true  %d", zero), "asked tide  true in 7", "asked tide secret true in 7")
	stmts := slices.Concat(s.rooms.ToldStmts(), s.rooms.PruneStmts(), s.rooms.OutcomeStmts(ctx, r.turn(), tidemark.Outcome{Text: "done"}), s.endStmts(time.Minute))
	if err := s.DB.Tx(ctx, stmts); err != nil || s.reads(t, `SELECT title FROM heads WHERE key = ? LIMIT 1`, string(s.Key)) != "tpoe" {
		t.Errorf("they write %q, %v", s.reads(t, `SELECT title FROM heads WHERE key = ? LIMIT 1`, string(s.Key)), err)
	}
	s.rooms.Told(ctx)
	s.rooms.Closed(ctx)
	s.rooms.Compacted(ctx, "log", make([]tidemark.Edit, 3))
	s.noteRecall(ctx, ByPerson, recall.Nothing, "e")
	said("outcome r log 2 2 done", "told", "closed", "compacted log 3", fmt.Sprintf("recalled person %v e", recall.Nothing))
	if len(told) != 1 || told[0].Type != NoticeRecalled || told[0].Text != ByPerson || told[0].Verdict != recall.Nothing {
		t.Errorf("who counts is told %+v", told)
	}
	if list, err := s.rooms.Tune(ctx, []compaction.Strategy{compaction.Pointer{}, compaction.Summary{}}); err != nil || len(list) != 1 || list[0].Name() != "summary" {
		t.Errorf("tuned they are %v, %v", list, err)
	}
	if _, ok := room.Find[diary](s.rooms); !ok {
		t.Error("a room is not found by its type")
	}
	if _, ok := room.Find[room.Holder](s.rooms); ok {
		t.Error("a room is found by what it has not")
	}
}

// TestWithoutRooms: a conversation without rooms has no channels, no pins, no task and nothing to be found, and
// goes on all the same.
func TestWithoutRooms(t *testing.T) {
	s, _ := plain(t, Config{})
	ctx := t.Context()
	if err := s.rooms.Teller().Say(ctx, "id", nil, "x", nil); !errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("a line is sent: %v", err)
	}
	lines, err := s.rooms.Teller().Lines(ctx, "log", nil, "x")
	unsent, bad := s.rooms.Teller().Unsent(ctx)
	s.rooms.Teller().Dispatch()
	s.rooms.Teller().Typing(ctx)(nil)
	if lines != nil || err != nil || unsent != 0 || bad != nil {
		t.Errorf("%d lines, %v, %d not sent, %v", len(lines), err, unsent, bad)
	}
	pins, err := s.rooms.Pinned(ctx, "log")
	task, bad := s.rooms.Working(ctx)
	marks, worse := s.rooms.Marks(ctx, nil)
	upTo, worst := s.parts.BaseArchived(ctx, "log")
	if pins != nil || err != nil || task.ID != "" || bad != nil || marks != nil || worse != nil || upTo != 0 || worst != nil {
		t.Errorf("pins %v, task %+v, marks %v, archived to %d", pins, task, marks, upTo)
	}
	if near, told := s.rooms.Near(ctx, "query", nil); near != nil || told != "" {
		t.Errorf("found %v, %q", near, told)
	}
	if err := s.rooms.Texts(ctx, []int64{1}, nil); err != nil {
		t.Error(err)
	}
	in := Input{Kind: InputMessage, Message: tidemark.NewText(tidemark.User, "x"), Origin: tidemark.Origin{To: &tidemark.Address{}}, Quoted: "m"}
	heard, err := s.wroteStmts(ctx, in)
	m, bad := s.quoting(ctx, in)
	if heard != nil || err != nil || m.PlainText() != "x" || bad != nil {
		t.Errorf("heard %v, quoted %q", heard, m.PlainText())
	}
	held, err := s.rooms.Skipper().HoldStmts(ctx, "r", "log")
	decided, bad := s.rooms.Skipper().DecideStmts(ctx, "r", "log", tidemark.Entry{})
	settled, worse := s.rooms.Leaver().Settled(ctx)
	count, worst := s.rooms.Leaver().Count(ctx)
	if held != nil || err != nil || decided != nil || bad != nil || settled != host.LogEnd || worse != nil || count != 0 || worst != nil || s.rooms.Skipper().Again(ctx, "r") != nil {
		t.Errorf("held %v, decided %v, settled %d, %d skipped", held, decided, settled, count)
	}
	if a, err := s.answerFirst(ctx, &run{}, []call{{}}); a != nil || err != nil {
		t.Errorf("answered first by %v, %v", a, err)
	}
}

// addressee is a room that knows what was written over a channel.
type addressee struct{ room.Addressee }

func (addressee) Wrote(_ context.Context, o tidemark.Origin, text string) ([]tidemark.Stmt, error) {
	return []tidemark.Stmt{{SQL: o.Message + "|" + text}}, nil
}

func (addressee) Quoted(_ context.Context, message string) (string, error) {
	return "In answer to " + message, nil
}

// TestHeardAndQuoted: what came over a channel is told to the room of it, a command without the name of its message; before
// words that answer a message stands which.
func TestHeardAndQuoted(t *testing.T) {
	s, _ := plain(t, Config{Rooms: []room.Maker{func(room.Ports) any { return addressee{} }}})
	to := &tidemark.Address{Platform: "fake"}
	for _, c := range []struct {
		name   string
		kind   string
		to     *tidemark.Address
		heard  string
		quoted string
	}{{"a message", InputMessage, to, "m1|hello", "In answer to m0\nhello"}, {"a command", InputCompact, to, "|hello", "hello"}, {"of no channel", InputMessage, nil, "", "In answer to m0\nhello"}} {
		in := Input{Kind: c.kind, Message: tidemark.NewText(tidemark.User, "hello"), Origin: tidemark.Origin{Message: "m1", To: c.to}, Quoted: "m0"}
		stmts, err := s.wroteStmts(t.Context(), in)
		got := ""
		for _, x := range stmts {
			got += x.SQL
		}
		m, bad := s.quoting(t.Context(), in)
		if got != c.heard || err != nil || m.PlainText() != c.quoted || m.Role != tidemark.User || bad != nil {
			t.Errorf("%s: heard %q, %v, reads %q, %v", c.name, got, err, m.PlainText(), bad)
		}
	}
}

// TestPutNote: a note is appended behind what was said, with an event, in a log where nothing is in work and nobody spoke
// meanwhile; whatever is said or done elsewhere.
func TestPutNote(t *testing.T) {
	for _, c := range []struct {
		name  string
		said  int
		then  func(s *Session) // just before it is written
		log   string
		fails bool
	}{
		{name: "an empty log"},
		{name: "behind two messages", said: 2},
		{name: "others speak", said: 2, then: func(s *Session) {
			s.says(t, "elsewhere", "x", tidemark.NewText(tidemark.User, "x"), tidemark.Origin{}, 1)
		}},
		{name: "something happens", said: 2, then: func(s *Session) {
			s.does(t, `INSERT INTO entries(id, log, kind, at, hash, payload) SELECT 'ev', log, 'event', 1, '', '{}' FROM heads WHERE key = ?`, string(s.Key))
		}},
		{name: "somebody speaks", said: 2, fails: true, then: func(s *Session) {
			s.says(t, s.current(t), "x", tidemark.NewText(tidemark.User, "x"), tidemark.Origin{}, 1)
		}},
		{name: "a turn is in work", said: 2, fails: true, then: func(s *Session) { s.runs(t, "r", s.current(t), stateTools, 1) }},
		{name: "a turn has ended", said: 2, then: func(s *Session) { s.runs(t, "r", s.current(t), stateDone, 1) }},
		{name: "another log", log: "elsewhere", fails: true},
	} {
		s, rt := plain(t, Config{})
		s.does(t, `INSERT INTO logs(id, key, created) VALUES('elsewhere', 'agent:main:twin', 1)`)
		s.spoken(t, c.said)
		log := s.current(t)
		s.does(t, `INSERT INTO heads(key, log, created, active) VALUES('agent:main:twin', ?, 1, 1)`, log)
		if c.log != "" {
			log = c.log
		}
		h := &hooked{DB: s.DB}
		if c.then != nil {
			h.before = func() { c.then(s) }
		}
		s.DB = h
		m := tidemark.NewText(tidemark.User, "a note")
		err := s.putNote(t.Context(), log, tidemark.Entry{ID: "n", Kind: tidemark.KindMessage, At: rt.now.Add(time.Hour)}, m, tidemark.Event{Type: "notice", Text: "noted"}, tidemark.Stmt{SQL: `UPDATE heads SET title = 'first' WHERE key = ?`, Args: []any{string(s.Key)}})
		row := s.reads(t, `SELECT title, active, messages, context FROM heads WHERE key = ? LIMIT 1`, string(s.Key))
		if c.fails {
			if !errors.Is(err, tidemark.ErrConflict) || row != " 1700000000000 0 0" || len(rt.later) > 0 {
				t.Errorf("%s: %v, its row is %q", c.name, err, row)
			}
			continue
		}
		if want := fmt.Sprintf("first 1700003600000 1 %d", tidemark.Estimate(m)); err != nil || row != want || len(rt.later) != 1 || !strings.HasSuffix(s.notices(t), "noted") {
			t.Errorf("%s: %v, its row is %q, want %q; told %q", c.name, err, row, want, s.notices(t))
		}
		chain, bad := s.log.Chain(t.Context(), log)
		if got := s.reads(t, `SELECT chain, tokens FROM entries WHERE id = 'n' LIMIT 1`); bad != nil || got != fmt.Sprint(chain, " ", int64(tidemark.Estimate(m))) {
			t.Errorf("%s: the note is %s", c.name, got)
		}
	}
}

// advising is a room that tells the model of a context that fills up.
type advising struct{ room.Pager }

func (advising) Advice(compaction.View) string { return "Fills up." }

// TestAdvised: what the model is told of its context stands behind what is pushed, and counts; what was not done of what it
// asked for is told once.
func TestAdvised(t *testing.T) {
	for _, c := range []struct {
		name         string
		pager        bool
		over, untidy string
		pack, want   string
	}{
		{"nothing", false, "", "", "", ""}, {"a pack alone", false, "", "", "card", "card"}, {"advice", true, "", "", "", "Fills up."}, {"over a budget", false, "Over.", "", "card", "card\n\nOver."},
		{"both", true, "Over.", "", "card", "card\n\nFills up.\nOver."}, {"not done", false, "", "Not done.", "", "Not done."}, {"all", true, "Over.", "Not done.", "card", "card\n\nFills up.\nOver.\nNot done."},
	} {
		conf := Config{}
		if c.pager {
			conf.Rooms = []room.Maker{func(room.Ports) any { return advising{} }}
		}
		s, _ := plain(t, conf)
		v, r := weighing("", 100, 0, 0), &run{over: c.over, untidy: c.untidy}
		v.Pack = c.pack
		got := s.advised(r, v)
		added := strings.TrimPrefix(strings.TrimPrefix(c.want, c.pack), "\n\n")
		if got.Pack != c.want || got.Size != 100+tidemark.EstimateText(added) || r.untidy != "" {
			t.Errorf("%s: %q of %d tokens, %q is left", c.name, got.Pack, got.Size, r.untidy)
		}
	}
}

// answersCalls is a room that answers the calls of a tool.
type answersCalls struct {
	room.CallAnswerer
	name  string
	asked []string
	fails error
}

func (a *answersCalls) Answers() string { return a.name }
func (a *answersCalls) Answer(_ context.Context, log string, ids []string) (out []tidemark.Block, err error) {
	a.asked = append([]string{log}, ids...)
	for _, id := range ids {
		out = append(out, tidemark.ToolResult(id, "answered "+id, false))
	}
	return out, a.fails
}

// TestAnswerFirst: the calls of a room's tool are answered before any runs, each by its own answer.
func TestAnswerFirst(t *testing.T) {
	a := &answersCalls{name: "mark"}
	s, _ := plain(t, Config{Rooms: []room.Maker{func(room.Ports) any { return a }}})
	made := func() (calls []call) {
		for i, name := range []string{"mark", "look", "mark"} {
			id := fmt.Sprint("c", i)
			calls = append(calls, call{ID: id, Block: tidemark.ToolUse(id, name, nil)})
		}
		return calls
	}
	calls := made()
	by, err := s.answerFirst(t.Context(), &run{Log: "log"}, calls)
	if by == nil || err != nil || !slices.Equal(a.asked, []string{"log", "c0", "c2"}) || calls[0].told.Content[0].Text != "answered c0" || calls[1].told.Type != "" || calls[2].told.Content[0].Text != "answered c2" {
		t.Errorf("%v, %v, asked %q, %+v", by, err, a.asked, calls)
	}
	a.asked = nil
	if by, err := s.answerFirst(t.Context(), &run{}, made()[1:2]); by != nil || err != nil || a.asked != nil {
		t.Errorf("no call of it: %v, %v", by, err)
	}
	a.fails = errKnown
	if by, err := s.answerFirst(t.Context(), &run{}, made()); by != nil || !errors.Is(err, errKnown) {
		t.Errorf("it fails: %v, %v", by, err)
	}
	a.name = ""
	if by, err := s.answerFirst(t.Context(), &run{}, []call{{}}); by != nil || err != nil {
		t.Errorf("it has no tool now: %v, %v", by, err)
	}
}
