package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/history"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room"
)

// inputAmend is the kind of an input by which a person corrects or takes back what they wrote. It waits in the queue as
// all inputs do, behind the message that it is about if that came before it.
const inputAmend = "amend"

// Amendment names a message of a person's by the platform's id, and what it says now.
type Amendment struct {
	Edits   string `json:"edits,omitempty"`   // it reads Text now
	Revokes string `json:"revokes,omitempty"` // it was taken back
	Text    string `json:"text,omitempty"`
}

// Amend is the input of an amendment.
func Amend(a Amendment) Input { return Input{Kind: inputAmend, Text: mustJSON(a)} }

const (
	amendBack  = 2000           // newest messages among which one is looked for: platforms let people amend for some days at most
	maxAmended = 64 << 10       // bytes of an amendment
	maxUnmet   = 100            // of one message that has not come
	unmetFor   = 72 * time.Hour // that one may still come: platforms post again for days
)

// notHere stands before words that correct a message that is not here.
const notHere = "[The person corrected an earlier message, which is not in this conversation. It reads now:]\n"

// amend lays the corrected words, or that there are none any more, over a message. The log keeps both. What is under a
// summary already stays in it; what was read for memories is kept. A message of somebody else's is none, and neither is
// one of a session before a reset: words that correct what is not here are taken as said now, but in a group, where most of
// what is said is not for us. Where the message comes after all, since platforms promise no order, the amendment is carried out
// again; see late.
func (s *Session) amend(ctx context.Context, r *run, q queued) error {
	by := q.Origin
	_, a, err := q.amendment()
	if err != nil {
		return err
	}
	e, ok, err := s.amended(ctx, r.Log, by, a.Edits+a.Revokes)
	if err != nil {
		return err
	}
	r.unmet = !ok
	switch {
	case !ok && (a.Edits == "" || by.To != nil && by.To.Group):
		return s.last(ctx, r, s.forgetUnmet())
	case !ok: // under the name of what it corrects, so that it can be corrected again
		return s.unmet(ctx, r, q, a)
	}
	m, err := e.Message() // large blocks as they are stored: a row holds them
	if err != nil {
		return fmt.Errorf("read entry %s: %w", e.ID, err)
	}
	r.unmet = strings.HasPrefix(m.PlainText(), notHere)
	o := tidemark.Overlay{By: []string{history.AmendBy}, Reason: history.ReasonEdit, Edits: corrected(e.ID, m, a.Text)}
	event := tidemark.Event{Type: "edit", Text: "A message was corrected by who wrote it. The log keeps both."}
	if a.Revokes != "" {
		o.Reason, o.Edits = history.ReasonRevoke, emptied(e.ID, m)
		event = tidemark.Event{Type: "revoke", Text: "A message was taken back by who wrote it: it is not in view any more. The log keeps it."}
	}
	_, stmts, err := s.overlayStmts(r.Log, tidemark.FromPerson, o)
	if err != nil {
		return err
	}
	found, err := s.amendedStmts(ctx, e, a)
	if err != nil {
		return err
	}
	stmts = append(stmts, found...)
	p, err := s.openPlan(ctx, r.Log)
	if err != nil {
		return err
	}
	if p != nil && p.Last >= e.Seq { // it may have read the words of before
		stmts = append(stmts, s.dropStmts(r, p)...)
	}
	if r.command == nil { // its message has just come, and is answered behind this
		stmts = append(stmts, commandDone(r, q))
	}
	if err := s.last(ctx, r, append(stmts, s.eventStmt(r.Log, event))...); err != nil {
		return fmt.Errorf("amend entry %s: %w", e.ID, err)
	}
	if r, ok := room.Find[room.Amender](s.rooms); ok {
		r.Amended()
	}
	s.hub.send(Notice{Type: NoticeEvent, Run: r.ID, Event: &event})
	return nil
}

// amendOwn carries out the amendments at the head of the queue that are of a message which the run has taken itself: they came
// while it was at work, or a life that ended did not get to them. It returns what waits behind.
func (s *Session) amendOwn(ctx context.Context, r *run, q []queued) ([]queued, error) {
	for len(q) > 0 && q[0].Kind == inputAmend && len(r.took) > 0 {
		if err := s.load(ctx, q[:1]); err != nil {
			return q, err
		}
		_, a, _ := q[0].amendment() // one that cannot be read is of no message here, and has a run of its own, which says so
		e, ok, err := s.amended(ctx, r.Log, q[0].Origin, a.Edits+a.Revokes)
		if err != nil || !ok || !slices.Contains(r.took, e.Origin.Input) {
			return q, err
		}
		if err := s.amend(ctx, r, q[0]); err != nil {
			return q, err
		}
		q = q[1:]
	}
	return q, nil
}

// unmet takes words that correct a message which is not here as said now: before the next input, which may amend them.
func (s *Session) unmet(ctx context.Context, r *run, q queued, a Amendment) error {
	chain, err := s.log.Chain(ctx, r.Log)
	if err != nil {
		return err
	}
	by, m := q.Origin, tidemark.NewText(tidemark.User, notHere+a.Text)
	e := tidemark.Entry{ID: tidemark.EntryID(tidemark.NewID(q.At)), Kind: tidemark.KindMessage, At: q.At, Tokens: tidemark.Estimate(m),
		Origin: tidemark.Origin{From: by.From, Channel: by.Channel, Peer: by.Peer, Owner: by.Owner, Quiet: true, Message: a.Edits, Input: q.ID}}
	stmts, err := s.entryStmts(ctx, r.Log, &e, m, chain)
	if err != nil {
		return err
	}
	stmts = append(stmts, s.forgetUnmet(), tidemark.Stmt{SQL: `UPDATE heads SET active = ?, messages = messages + 1 WHERE key = ?`,
		Args: []any{s.Runtime.Now().UnixMilli(), string(s.Key)}, Want: 1})
	if err := s.last(ctx, r, stmts...); err != nil {
		return fmt.Errorf("take a correction as said now: %w", err)
	}
	return nil
}

// late takes apart the messages that are about to be taken where one was amended before it came, or while it waited: that is
// taken by itself, with what amends it. One that was taken back asks nobody.
func (s *Session) late(ctx context.Context, q []queued) ([]queued, []queued, error) {
	for i, in := range q {
		if in.Origin.Message == "" {
			continue
		}
		rows, err := s.DB.Query(ctx, `SELECT n, id, payload FROM inputs WHERE key = ? AND state IN ('unmet', 'new') AND kind = 'amend' AND at > ?
			AND json_extract(origin, '$.channel') = ? AND json_extract(origin, '$.peer') = ?
			AND ? IN (json_extract(json_extract(payload, '$'), '$.edits'), json_extract(json_extract(payload, '$'), '$.revokes')) ORDER BY n LIMIT ?`,
			string(s.Key), s.Runtime.Now().Add(-unmetFor).UnixMilli(), in.Origin.Channel, in.Origin.Peer, in.Origin.Message, maxUnmet)
		if err != nil {
			return nil, nil, fmt.Errorf("read amendments of what had not come: %w", err)
		}
		if len(rows) > 0 && i > 0 {
			return q[:i], nil, nil
		}
		var amended []queued
		for _, row := range rows {
			a := queued{N: row.Int(0), ID: row.Text(1), Kind: inputAmend, Origin: in.Origin, Payload: row.Bytes(2)}
			_, what, err := a.amendment()
			if err != nil { // of ours, and none of them is worth every later turn
				s.warn("match an amendment", err)
				continue
			}
			q[0].Origin.Quiet = q[0].Origin.Quiet || what.Revokes != ""
			amended = append(amended, a)
		}
		if len(amended) > 0 {
			return q[:1], amended, nil
		}
	}
	return q, nil, nil
}

// matchStmts have amendments whose message has come carried out next, also those that wait already.
func matchStmts(amended []queued) (stmts []tidemark.Stmt) {
	for _, a := range amended {
		stmts = append(stmts, tidemark.Stmt{SQL: `UPDATE inputs SET state = 'new' WHERE n = ? AND state IN ('unmet', 'new')`, Args: []any{a.N}, Want: 1})
	}
	return stmts
}

// amendment is what an input amends, and as it is queued.
func (q queued) amendment() (text string, a Amendment, err error) {
	if err = jsonText(q.Payload, &text); err == nil {
		err = json.Unmarshal([]byte(text), &a)
	}
	if err != nil {
		err = fmt.Errorf("read amendment %s: %w: %w", q.ID, err, tidemark.ErrInvalid)
	}
	return text, a, err
}

// forgetUnmet lets go of amendments whose message will not come any more.
func (s *Session) forgetUnmet() tidemark.Stmt {
	return tidemark.Stmt{SQL: `UPDATE inputs SET state = 'done', payload = '' WHERE key = ? AND state = 'unmet' AND at <= ?`,
		Args: []any{string(s.Key), s.Runtime.Now().Add(-unmetFor).UnixMilli()}}
}

// amended finds a message by the platform's id of it, if the same person wrote it over the same channel.
func (s *Session) amended(ctx context.Context, log string, by tidemark.Origin, message string) (e tidemark.Entry, ok bool, err error) {
	rows, err := s.DB.Query(ctx, `SELECT id FROM (SELECT seq, id, origin FROM entries WHERE log = ? AND kind = 'message' ORDER BY seq DESC LIMIT ?)
		WHERE json_extract(origin, '$.message') = ? AND json_extract(origin, '$.channel') = ? AND json_extract(origin, '$.peer') = ? ORDER BY seq DESC LIMIT 1`,
		log, amendBack, message, by.Channel, by.Peer)
	if err != nil || len(rows) == 0 {
		return e, false, err
	}
	e, err = s.log.Entry(ctx, tidemark.EntryID(rows[0].Text(0)))
	return e, err == nil, err
}

// amendedStmts have a message found by what it reads now, and who answers it quote that.
func (s *Session) amendedStmts(ctx context.Context, e tidemark.Entry, a Amendment) (stmts []tidemark.Stmt, err error) {
	now := a.Text
	if a.Revokes != "" {
		now = room.TakenBack
	}
	if r, ok := room.Find[room.Amender](s.rooms); ok {
		if stmts, err = r.AmendStmts(ctx, e, now); err != nil {
			return nil, err
		}
	}
	if a, ok := room.Find[room.Addressee](s.rooms); ok {
		stmts = append(stmts, a.Amended(e.Origin.Message, now)...)
	}
	return stmts, nil
}

// amendedAsks are requests that a summary carries on to the next word for word, as they read now.
func (s *Session) amendedAsks(ctx context.Context, asks []compaction.Said) ([]compaction.Said, error) {
	r, ok := room.Find[room.Amender](s.rooms)
	if len(asks) == 0 {
		return nil, nil
	}
	if !ok {
		return asks, nil
	}
	ids := make([]tidemark.EntryID, len(asks))
	for i, a := range asks {
		ids[i] = a.Entry
	}
	now, err := r.Reads(ctx, ids)
	if err != nil {
		return nil, err
	}
	var out []compaction.Said
	for _, a := range asks {
		p, ok := now[a.Entry]
		if ok {
			a.Text = p.Text
		}
		if !p.Gone {
			out = append(out, a)
		}
	}
	return out, nil
}

// corrected puts words in the place of the last text of a message; files, the note of one that no model reads, and the line
// that says what it answers stay.
func corrected(id tidemark.EntryID, m tidemark.Message, text string) []tidemark.Edit {
	for i, b := range slices.Backward(m.Content) {
		if b.Type == tidemark.TypeText && (strings.HasPrefix(b.Text, tidemark.RepliesTo) || strings.Contains(b.Text, tidemark.KeptAs)) {
			break
		}
		if b.Type == tidemark.TypeText {
			return []tidemark.Edit{{From: id, Block: i + 1, Blocks: []tidemark.Block{tidemark.Text(text)}}}
		}
	}
	last := len(m.Content)
	return []tidemark.Edit{{From: id, Block: last, Blocks: []tidemark.Block{m.Content[last-1], tidemark.Text(text)}}}
}

// emptied takes all blocks of a message away, with a line in their place: calls and answers behind it need a message there.
func emptied(id tidemark.EntryID, m tidemark.Message) []tidemark.Edit {
	edits := make([]tidemark.Edit, len(m.Content))
	for i := range edits {
		edits[i] = tidemark.Edit{From: id, Block: i + 1}
	}
	edits[0].Blocks = []tidemark.Block{tidemark.Text(room.TakenBack)}
	return edits
}

// amendments are the rows by which persons amended what they wrote: what is read for memories later is read as it is now.
func amendments(marks []host.Mark) []host.Mark {
	var out []host.Mark
	for _, m := range marks {
		if history.Amends(m.Overlay) {
			out = append(out, m)
		}
	}
	return out
}

// endUnanswered ends a run whose inputs want no answer: they stand in the log, and nobody is asked.
func (s *Session) endUnanswered(ctx context.Context, r *run, q []queued, stmts []tidemark.Stmt) error {
	if err := s.step(ctx, r, stateDone, append(append(stmts, doneStmt(r)), s.endStmts(outboxRetry)...)...); err != nil {
		return fmt.Errorf("take inputs: %w", err)
	}
	for _, in := range q {
		r.took = append(r.took, in.ID)
	}
	s.rooms.Skipper().EndWait(r.ID)
	s.hub.send(Notice{Type: NoticeDone, Run: r.ID, Inputs: r.took})
	return nil
}

func wantsNoAnswer(q queued) bool { return q.Origin.Quiet }
