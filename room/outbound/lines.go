package outbound

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room"
)

// outGrace is when an alarm looks after rows that the life which wrote them does not send.
const outGrace = 10 * time.Second

// Lines implements room.Teller: each reader has the text once, whatever they wrote of these inputs, a row of the ledger for
// each message that the platform makes of it.
func (s *Room) Lines(ctx context.Context, log string, from []tidemark.Origin, text string, except ...string) ([]tidemark.Stmt, error) {
	to := listeners(from)
	if len(to) == 0 || strings.TrimSpace(text) == "" {
		return nil, nil
	}
	if s.courier == nil {
		return s.muteStmts(log, to[0].To), nil
	}
	if err := s.Made.Open(ctx, tables); err != nil {
		return nil, err
	}
	var stmts []tidemark.Stmt
	for _, l := range to {
		if !slices.Contains(except, l.who) && !slices.Contains(except, l.To.Reader()) {
			stmts = append(stmts, s.lineStmts(l, text)...)
		}
	}
	return stmts, nil
}

// lineStmts put a text into the ledger. Its first message may quote one.
func (s *Room) lineStmts(l listener, text string) []tidemark.Stmt {
	now := s.Runtime.Now()
	parts, quote := s.courier.Parts(l.To, text), l.quote()
	stmts := make([]tidemark.Stmt, 0, len(parts)+1)
	for i, p := range parts {
		if i > 0 {
			quote = ""
		}
		stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO outbound(key, state, open, peer, address, text, quote, at) VALUES(?, 'pending', 1, ?, ?, ?, ?, ?)`,
			Args: []any{string(s.Key), l.who, room.JSON(l.To), p, quote, now.UnixMilli()}, Want: 1})
	}
	if len(stmts) == 0 {
		return nil
	}
	return append(stmts, s.Due(room.DueOutbound, now.Add(outGrace), ""))
}

// muteStmts say, once a life, that answers have no way out.
func (s *Room) muteStmts(log string, to tidemark.Address) []tidemark.Stmt {
	if s.mute.Swap(true) {
		return nil
	}
	s.Logger.Warn("answers are not sent: no channel is set up", "session", s.Key, "platform", to.Platform)
	return []tidemark.Stmt{s.Event(log, tidemark.Event{Type: "error", Text: fmt.Sprintf("Answers stay in the log: no channel that sends over %s is set up here.", to.Platform)})}
}

// listener is where an answer goes.
type listener struct {
	who    string           // see tidemark.Origin.Reader
	To     tidemark.Address // which they wrote from last
	newest string           // platform's id of what they wrote last
	wrote  int              // messages that the run took up
}

// listeners are those who read what is said to some inputs, each once. Who is reached by schedules reads answers only.
func listeners(from []tidemark.Origin) []listener {
	var out []listener
	for _, o := range from {
		if o.To == nil || o.Occasion != nil { // see tidemark.Audience
			continue
		}
		who := o.Reader()
		i := slices.IndexFunc(out, func(l listener) bool { return l.who == who })
		if i < 0 {
			i, out = len(out), append(out, listener{who: who})
		}
		out[i].To, out[i].newest, out[i].wrote = *o.To, o.Message, out[i].wrote+1
	}
	return out
}

// quote is what an answer shows itself to be one to. Between two people who take turns a quote is noise;
// in a group it says who is meant, and behind several messages how far they were read.
func (l listener) quote() string {
	if l.To.Group || l.wrote > 1 {
		return l.newest
	}
	return ""
}

// Say implements room.Teller. What is said is noted as an input that is done, so the same id is said once however late it
// comes again; see PruneStmts.
func (s *Room) Say(ctx context.Context, id string, to *tidemark.Address, text string, e *tidemark.Event) error {
	now := s.Runtime.Now()
	stmts := []tidemark.Stmt{{
		SQL:  `INSERT INTO inputs(key, id, kind, state, at, origin, payload, hash) VALUES(?, ?, 'say', 'done', ?, '{}', '', ?) ON CONFLICT(key, id) DO NOTHING`,
		Args: []any{string(s.Key), "say:" + id, now.UnixMilli(), string(tidemark.HashOf([]byte("say\n" + text)))}, Want: 1}}
	log, err := s.current(ctx)
	if err != nil {
		return err
	}
	if e != nil {
		stmts = append(stmts, s.Event(log, *e))
	}
	more, err := s.Lines(ctx, log, []tidemark.Origin{{To: to}}, text)
	if err != nil {
		return fmt.Errorf("say %s: %w", id, err)
	}
	err = s.DB.Tx(ctx, append(stmts, more...))
	if errors.Is(err, tidemark.ErrConflict) {
		return nil // said before
	}
	if err != nil {
		return fmt.Errorf("say %s: %w", id, err)
	}
	if e != nil {
		s.Happened("", *e)
	}
	s.Alarm(ctx)
	s.Dispatch()
	return nil
}
