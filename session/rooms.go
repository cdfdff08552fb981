package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
)

// Room returns the first room of a session that is of a type, or has what an interface says.
func Room[T any](s *Session) (found T, ok bool) {
	for _, r := range s.rooms {
		if t, ok := r.(T); ok {
			return t, true
		}
	}
	return found, false
}

// ports is what rooms may use of the session.
func (s *Session) ports() room.Ports {
	return room.Ports{
		Self: room.Self{Key: s.Key, DB: s.DB, Made: &s.made, Runtime: s.Runtime, Life: s.life, Logger: s.Logger, Warn: s.warn, MayChange: s.mayChange,
			Zone: func() *time.Location { return s.settings().Zone },
			Observe: func(kind, how string, count int) {
				if s.Config.Observe != nil {
					s.Config.Observe(Notice{Type: NoticeRoom, Room: kind, Text: how, Count: count})
				}
			}},
		History: room.History{Log: s.log,
			Current: func(ctx context.Context) (string, error) {
				h, err := s.head(ctx)
				return h.Log, err
			},
			Segments: s.segments, Reaches: s.reaches, Logs: s.Logs, Settled: func(ctx context.Context) (int64, error) { return leaver(s).Settled(ctx) }, Texts: s.findable, Words: s.wordy, MarksOf: s.marksOf,
			Announce: func(ctx context.Context, log string, e tidemark.Event, stmts ...tidemark.Stmt) error {
				if err := s.DB.Tx(ctx, append([]tidemark.Stmt{s.eventStmt(log, e)}, stmts...)); err != nil {
					return err
				}
				s.hub.send(Notice{Type: NoticeEvent, Event: &e})
				return nil
			}, Note: s.putNote},
		Work: room.Work{Due: s.dueStmt, Undue: s.undueStmt, Alarm: s.setAlarm},
		Mail: room.Mail{Agent: s.Agent, Tell: s.report,
			Outbox: func(id, kind string, payload any, after time.Duration) []tidemark.Stmt {
				return []tidemark.Stmt{s.outboxStmt(id, kind, payload), s.dueStmt(dueOutbox, s.Runtime.Now().Add(after), "")}
			}},
		View: room.View{EvictedAt: s.evictedAt, Strategies: s.strategies, NoteRoom: s.noteRoom, Limit: func() tidemark.Tokens { return s.Budget().Limit() }},
		Voice: room.Voice{Event: s.eventStmt, Say: s.sayOnce,
			Lines: func(ctx context.Context, log string, to []tidemark.Origin, text string) ([]tidemark.Stmt, error) {
				return s.tellStmts(ctx, log, to, text)
			},
			Happened: func(run string, e tidemark.Event) { s.hub.send(Notice{Type: NoticeEvent, Run: run, Event: &e}) },
			Rests: func(run string, list []tidemark.Question, text string) {
				s.hub.send(Notice{Type: NoticeApproval, Run: run, Approvals: list, Text: text})
			}},
		Turns: room.Turns{Busy: func() bool { return s.activeRun() != "" }, GoOn: s.goOnStmts, Resume: func() { s.Runtime.Go(s.goOn) }},
		Finding: room.Finding{Stemmer: s.Stemmer, Lineage: s.lineage, Task: s.task, Near: s.standing, ReadBack: s.readBack, Recalled: s.noteRecall,
			Stored: s.stored, Gate: func() memory.Gate { return s.settings().Gate }},
		Past: s.past(),
	}
}

// apart refuses rooms of which two, or one and the core, give one name to a table, to what is due or to what the agent is
// told: one of them would never be called.
func (s *Session) apart() error {
	taken := map[string]bool{}
	claim := func(r any, what string, names ...string) error {
		for _, name := range names {
			if taken[what+name] {
				return fmt.Errorf("%T: %s %q is taken; begin it with the name of the room: %w", r, what, name, tidemark.ErrConflict)
			}
			taken[what+name] = true
		}
		return nil
	}
	core := room.Tables{Steps: tables}
	for _, t := range coreTables {
		core.Steps = append(core.Steps[:len(core.Steps):len(core.Steps)], t.Steps...)
	}
	err := errors.Join(claim(s, "table", core.Names()...), claim(s, "kind of due work", coreKinds...), claim(s, "kind of report", coreReports...))
	for _, r := range s.rooms {
		if k, ok := r.(room.Tabler); ok {
			err = errors.Join(err, claim(r, "table", k.Tables().Names()...), claim(r, "space", k.Tables().Space))
		}
		if w, ok := r.(room.Waker); ok {
			err = errors.Join(err, claim(r, "kind of due work", w.Wakes()))
		}
		if m, ok := r.(room.Reporter); ok {
			err = errors.Join(err, claim(r, "kind of report", m.Reports()))
		}
	}
	return err
}

// putNote appends a message to a log in which no turn is in work, with an event behind it and what else is written first.
func (s *Session) putNote(ctx context.Context, log string, e tidemark.Entry, m tidemark.Message, ev tidemark.Event, first ...tidemark.Stmt) error {
	stmts, err := s.noteStmts(ctx, log, &e, m)
	if err != nil {
		return err
	}
	if err := s.DB.Tx(ctx, append(append(first, stmts...), s.eventStmt(log, ev))); err != nil {
		return err
	}
	s.hub.send(Notice{Type: NoticeEvent, Event: &ev})
	s.tellSoon()
	return nil
}

// noteStmts append a message at the end of a log where no turn is in work, and no other message came meanwhile.
func (s *Session) noteStmts(ctx context.Context, log string, e *tidemark.Entry, m tidemark.Message) ([]tidemark.Stmt, error) {
	tail, err := s.log.Tail(ctx, log, 0, 1)
	if err != nil {
		return nil, err
	}
	last := int64(0)
	if len(tail) > 0 {
		last = tail[0].Seq
	}
	prev, err := s.log.Chain(ctx, log)
	if err != nil {
		return nil, err
	}
	e.Tokens = tidemark.Estimate(m)
	idle := tidemark.Stmt{SQL: `UPDATE heads SET active = ?, messages = messages + 1, context = context + ? WHERE key = ? AND log = ?
			AND NOT EXISTS (SELECT 1 FROM runs WHERE key = ? AND state IN ('calling', 'tools'))
			AND NOT EXISTS (SELECT 1 FROM entries WHERE log = ? AND kind = 'message' AND seq > ?)`,
		Args: []any{e.At.UnixMilli(), int64(e.Tokens), string(s.Key), log, string(s.Key), log, last}, Want: 1}
	stmts, err := s.entryStmts(ctx, log, e, m, prev)
	return append([]tidemark.Stmt{idle}, stmts...), err
}

// toldStmts are what rooms write with the end of a report, and toldRooms lets them know of it.
func (s *Session) toldStmts() (stmts []tidemark.Stmt) {
	for _, r := range s.rooms {
		if t, ok := r.(room.Teller); ok {
			stmts = append(stmts, t.ToldStmts()...)
		}
	}
	return stmts
}

func (s *Session) toldRooms(ctx context.Context) {
	for _, r := range s.rooms {
		if t, ok := r.(room.Teller); ok {
			t.Told(ctx)
		}
	}
}

// stored reads messages of entries as a search does.
func (s *Session) stored(entries []tidemark.Entry) ([]room.Stored, error) {
	list, err := s.blocks.Stored(entries)
	out := make([]room.Stored, len(list))
	for i, m := range list {
		out[i] = room.Stored(m)
	}
	return out, err
}

// openRooms has rooms do what they do when a session is opened.
func (s *Session) openRooms(ctx context.Context) error {
	for _, r := range s.rooms {
		if o, ok := r.(room.Opener); ok {
			if err := o.Open(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// wakeRooms has the room that a kind of work is of do it; what is of none is not due any more.
func (s *Session) wakeRooms(ctx context.Context, kind string) error {
	for _, r := range s.rooms {
		if w, ok := r.(room.Waker); ok && w.Wakes() == kind {
			return w.Wake(ctx)
		}
	}
	return s.DB.Tx(ctx, []tidemark.Stmt{s.undueStmt(kind)})
}

// roomTools lists the tools of rooms.
func (s *Session) roomTools() (out []tidemark.Tool) {
	for _, r := range s.rooms {
		if t, ok := r.(room.Tools); ok {
			out = append(out, t.Tools(s.pointing())...)
		}
	}
	return out
}

// pinned returns the entries of a log, and of what it continues, that stay in view.
func (s *Session) pinned(ctx context.Context, log string) (map[tidemark.EntryID]bool, error) {
	if r, ok := Room[room.Holder](s); ok {
		return r.Pinned(ctx, log)
	}
	return nil, nil
}

// task returns what the conversation works on, as its agent or a person keeps it; the zero Task when neither does.
func (s *Session) task(ctx context.Context) (recall.Task, error) {
	if r, ok := Room[room.Marker](s); ok {
		return r.Working(ctx)
	}
	return recall.Task{}, nil
}

// marksOf returns what is known of some entries; those of which nothing is are absent.
func (s *Session) marksOf(ctx context.Context, ids []tidemark.EntryID) (map[tidemark.EntryID]room.Mark, error) {
	if r, ok := Room[room.Marker](s); ok {
		return r.Marks(ctx, ids)
	}
	return nil, nil
}

// closeRooms has rooms do what a reset or an import ends.
func (s *Session) closeRooms(ctx context.Context) {
	for _, r := range s.rooms {
		if c, ok := r.(room.Closer); ok {
			c.Closed(ctx)
		}
	}
}

// tellRooms tells a room of a compaction that holds.
func (s *Session) tellRooms(ctx context.Context, p *plan) {
	if c, ok := Room[room.Compactor](s); ok && p.overlay != "" {
		c.Compacted(ctx, p.Log, p.edits)
	}
}

// tuned returns strategies as a room has them be.
func (s *Session) tuned(ctx context.Context, list []compaction.Strategy) ([]compaction.Strategy, error) {
	if c, ok := Room[room.Compactor](s); ok {
		return c.Tune(ctx, list)
	}
	return list, nil
}

// Who recalled something.
const (
	ByModel  = room.ByModel
	ByPerson = room.ByPerson
	ByPack   = room.ByPack
	ByWide   = room.ByWide
)

// noteRecall counts a recall and tells a room how it went.
func (s *Session) noteRecall(ctx context.Context, by string, v recall.Verdict, first tidemark.EntryID) {
	if s.Observe != nil {
		s.Observe(Notice{Type: NoticeRecalled, Text: by, Verdict: v})
	}
	if r, ok := Room[room.Recaller](s); ok {
		r.Recalled(ctx, by, v, first)
	}
}
