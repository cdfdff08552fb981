package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/room"
)

// checks is what a room may look at behind a compaction.
func (s *Session) checks() room.Checks {
	return room.Checks{
		Places:  s.Reader.Places,
		Message: s.blocks.Message,
		Reads: func(ctx context.Context, id tidemark.EntryID) error {
			m, err := s.Reader.Message(ctx, id)
			if err == nil {
				_, err = room.Page(m, 0)
			}
			return err
		},
		InBucket: func(ctx context.Context, sum string) (int64, error) {
			o, body, err := s.Blobs.Get(ctx, s.blocks.Name(sum))
			if err == nil {
				err = body.Close()
			}
			return o.Size, err
		},
		Indexed: func(ctx context.Context, e tidemark.Entry, m tidemark.Message) (checks, repaired int, fault string, err error) {
			if r, ok := room.Find[room.Indexer](s.rooms); ok {
				return r.Check(ctx, e, m)
			}
			return 0, 0, "", nil
		},
	}
}

// checked has a room look at what a compaction did. When something is not so the overlay is lifted, an event says why, and the
// view without it is returned. A check that cannot be made is no violation, and when one was found the plan has no overlay any
// more.
func (s *Session) checked(ctx context.Context, r *run, p *plan, v View) (View, error) {
	checker, ok := room.Find[room.Checker](s.rooms)
	if p.overlay == "" || !ok {
		return v, nil
	}
	act := room.Acted{Log: p.Log, Overlay: p.overlay, Edits: p.edits, Messages: v.Messages()}
	c, err := checker.Check(ctx, act)
	if err != nil {
		if ctx.Err() != nil || errors.Is(err, tidemark.ErrDead) {
			return v, err
		}
		s.Logger.Warn("self-check of a compaction", "session", s.Key, "overlay", p.overlay, "err", err)
	}
	if s.Observe != nil {
		s.Observe(Notice{Type: NoticeChecked, Run: r.ID, Checked: &c})
	}
	if len(c.Violations) == 0 {
		return v, nil
	}
	stmts, err := checker.LiftedStmts(ctx, act, c)
	if err == nil {
		err = s.liftUnsound(ctx, r, p, c, stmts)
	}
	p.overlay = "" // nothing is to be learned from an act that is no more
	if err != nil {
		return v, fmt.Errorf("lift overlay %s: %w", c.Overlay, err)
	}
	return s.view(ctx, v.Log)
}

// liftUnsound takes back an act that its check found unsound, as [Session.Undo] does, says so in the log, and keeps the act
// from being repeated at once; noted is what the room writes of it.
func (s *Session) liftUnsound(ctx context.Context, r *run, p *plan, c room.Checked, noted []tidemark.Stmt) error {
	o := tidemark.Overlay{By: []string{"session"}, Lifts: []tidemark.EntryID{p.overlay}, Reason: "selfcheck"}
	_, stmts, err := s.overlayStmts(p.Log, tidemark.FromSystem, o)
	if err != nil {
		return err
	}
	text := "The compaction was taken back: what it evicted could not be had again in full. " + strings.Join(c.Violations, "; ") + ". Everything is in view as before."
	event := tidemark.Event{Type: "selfcheck", Text: text, Data: []byte(mustJSON(c))}
	stmts = append(append(stmts, noted...), s.eventStmt(p.Log, event),
		tidemark.Stmt{SQL: `UPDATE heads SET prompt = '', context = ?, cooldown = ? WHERE key = ?`, Args: []any{int64(p.Size), s.Runtime.Now().Add(cooldowns[0]).UnixMilli(), string(s.Key)}, Want: 1})
	if r.State == stateDone { // a command is over with its compaction; no other run may have begun
		idle := tidemark.Stmt{SQL: `UPDATE heads SET active = active WHERE key = ? AND NOT EXISTS (SELECT 1 FROM runs WHERE key = ? AND state IN ('calling', 'tools'))`,
			Args: []any{string(s.Key), string(s.Key)}, Want: 1}
		err = s.DB.Tx(ctx, append(stmts, idle))
	} else {
		err = s.step(ctx, r, stateCalling, stmts...)
	}
	if err != nil {
		return err
	}
	s.Logger.Error("a compaction was taken back by its self-check", "session", s.Key, "overlay", p.overlay, "why", strings.Join(c.Violations, "; "))
	s.hub.send(Notice{Type: NoticeEvent, Run: r.ID, Event: &event})
	return nil
}

// recount has markers stand for all that their spans hide: also for what left before and has nothing in the view any more
// that a plan could count, such as the runs of an episode behind the one that has its line.
func (s *Session) recount(ctx context.Context, log string, edits []tidemark.Edit) error {
	if !slices.ContainsFunc(edits, func(e tidemark.Edit) bool { _, ok := compaction.MarkerOf(e); return ok }) {
		return nil
	}
	d, ok := room.Find[room.Divider](s.rooms)
	if !ok {
		return nil
	}
	if ever, err := d.Ever(ctx); !ever || err != nil {
		return err
	}
	placed, err := s.Reader.Places(ctx, edits)
	if err != nil {
		return err
	}
	for _, e := range placed {
		m, ok := compaction.MarkerOf(edits[e.N])
		if !ok {
			continue
		}
		n, _, err := s.log.Count(ctx, log, host.Range{From: e.From, To: e.To}, 0)
		if err != nil {
			return err
		}
		if n -= len(e.Keep); n > m.Count {
			m.Count = n
			edits[e.N] = m.Put(edits[e.N])
		}
	}
	return nil
}
