package session

import (
	"context"
	"fmt"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// part is a stretch of a log that stands in the archive.
type part struct {
	Last int64
	Info archive.Info
}

// parts returns the archive parts of a history, in order. A branch has those of what it continues, but not one that
// reaches over the place where it began, nor one that was written later: that of its history it archives itself.
func (s *Session) parts(ctx context.Context, log string) ([]part, error) {
	bases, err := s.lineage.Bases(ctx, log)
	if err != nil {
		return nil, err
	}
	all := append([]host.Segment{{Log: log, To: host.LogEnd}}, bases...)
	var out []part
	for i, b := range slices.Backward(all) {
		if i < len(all)-1 { // it continues another
			upto, err := s.baseArchived(ctx, b.Log)
			if err != nil {
				return nil, fmt.Errorf("read parts of %s: %w", b.Log, err)
			}
			out = slices.DeleteFunc(out, func(p part) bool { return p.Last > upto })
		}
		own, err := s.partsOf(ctx, b.Log)
		if err != nil {
			return nil, err
		}
		out = append(out, own...)
	}
	return out, nil
}

// partsOf returns the parts of one log. One that was only begun is none.
func (s *Session) partsOf(ctx context.Context, log string) ([]part, error) {
	rows, err := s.DB.Query(ctx, `SELECT last, info FROM parts WHERE log = ? AND info <> '' ORDER BY first LIMIT 10000`, log)
	if err != nil {
		return nil, fmt.Errorf("read parts of %s: %w", log, err)
	}
	out := make([]part, len(rows))
	for i, r := range rows {
		out[i] = part{Last: r.Int(0)}
		if err := json.Unmarshal(r.Bytes(1), &out[i].Info); err != nil {
			return nil, fmt.Errorf("read parts of %s: %w", log, err)
		}
	}
	return out, nil
}

// maxArchive bounds one archive in memory, compressed and before.
const maxArchive = 256 << 20

// pack encodes the messages of a range for the archive, with their large blocks, page by page. last
// is the position of the newest.
func (s *Session) pack(ctx context.Context, log string, r host.Range) (p archive.Pack, last int64, err error) {
	enc := archive.Encoder{MaxBytes: maxArchive}
	for e, err := range s.Reader.Messages(ctx, log, r) {
		if err != nil {
			return archive.Pack{}, 0, err
		}
		if err := enc.Add(e); err != nil {
			return archive.Pack{}, 0, err
		}
		last = e.Seq
	}
	p, err = enc.Close()
	return p, last, err
}

// eventStmt appends an event to a log.
func (s *Session) eventStmt(log string, e tidemark.Event) tidemark.Stmt {
	_, stmts, err := s.kindStmts(log, tidemark.KindEvent, tidemark.FromSystem, e)
	if err != nil { // it needs no more than to be encoded
		panic(fmt.Sprintf("append an event: %v", err))
	}
	return stmts[0]
}

// overlayStmts append an overlay to a log.
func (s *Session) overlayStmts(log, from string, o tidemark.Overlay) (tidemark.EntryID, []tidemark.Stmt, error) {
	return s.kindStmts(log, tidemark.KindOverlay, from, o)
}

func (s *Session) kindStmts(log string, kind tidemark.Kind, from string, v any) (tidemark.EntryID, []tidemark.Stmt, error) {
	now := s.Runtime.Now()
	e := tidemark.Entry{ID: tidemark.EntryID(tidemark.NewID(now)), Kind: kind, At: now, Origin: tidemark.Origin{From: from}, Payload: []byte(mustJSON(v))}
	stmts, err := s.log.AppendStmts(log, e)
	return e.ID, stmts, err
}

// stepEvent takes a run a step with an event, behind what else is written with it, and tells who listens.
func (s *Session) stepEvent(ctx context.Context, r *run, e tidemark.Event, stmts ...tidemark.Stmt) error {
	if err := s.step(ctx, r, stateCalling, append(stmts, s.eventStmt(r.Log, e))...); err != nil {
		return err
	}
	s.hub.send(Notice{Type: NoticeEvent, Run: r.ID, Event: &e})
	return nil
}

// announce records what was done about a refusal, with the statements that do it, and tells it to who listens.
func (s *Session) announce(ctx context.Context, r *run, line string, stmts ...tidemark.Stmt) error {
	if err := s.stepEvent(ctx, r, tidemark.Event{Type: "notice", Text: line}, stmts...); err != nil {
		return fmt.Errorf("record what was refused: %w", err)
	}
	return nil
}

// tellPeople announces a line, and sends it to the people of the turn.
func (s *Session) tellPeople(ctx context.Context, r *run, line string, stmts ...tidemark.Stmt) error {
	told, err := s.teller().Lines(ctx, r.Log, r.origins, line)
	if err != nil {
		return err
	}
	return s.announce(ctx, r, line, append(stmts, told...)...)
}

// lastEvent ends a command with an event, and with a message to who gave it.
func (s *Session) lastEvent(ctx context.Context, r *run, e tidemark.Event) error {
	lines, err := s.teller().Lines(ctx, r.Log, r.origins, e.Text)
	if err != nil {
		return err
	}
	if err := s.last(ctx, r, append([]tidemark.Stmt{s.eventStmt(r.Log, e)}, lines...)...); err != nil {
		return err
	}
	s.hub.send(Notice{Type: NoticeEvent, Run: r.ID, Event: &e})
	return nil
}

// usageStmts accounts a reply: what it cost, how large the context is, one message more.
func (s *Session) usageStmts(r *run, c tidemark.Call) []tidemark.Stmt {
	return append([]tidemark.Stmt{s.addUsage(c.Usage), spendStmt(r, c.Usage), {SQL: `UPDATE heads SET active = ?, messages = messages + 1, context = ? WHERE key = ?`,
		Args: []any{s.Runtime.Now().UnixMilli(), int64(c.Usage.Context()), string(s.Key)}, Want: 1}}, s.peopleStmts(slices.ContainsFunc(r.origins, ofPeople))...)
}

// peopleStmts note that a person has spoken or is answered. A pause counts from then: what a schedule, a heartbeat or a
// note of ours does meanwhile does not prolong it, or a conversation with a heartbeat would never be idle.
func (s *Session) peopleStmts(people bool) []tidemark.Stmt {
	if !people {
		return nil
	}
	return []tidemark.Stmt{{SQL: `UPDATE heads SET people = ? WHERE key = ?`, Args: []any{s.Runtime.Now().UnixMilli(), string(s.Key)}, Want: 1}}
}

// ofPeople reports an input that a person made themselves.
func ofPeople(o tidemark.Origin) bool {
	return (o.From == "" || o.From == tidemark.FromPerson) && o.Occasion == nil
}

// addUsage adds to what the session has cost since its reset. The database adds, since what runs behind turns adds, too.
func (s *Session) addUsage(u tidemark.Usage) tidemark.Stmt {
	return tidemark.Stmt{SQL: `UPDATE heads SET usage = (SELECT json_group_object(name, tokens) FROM
		(SELECT name, SUM(tokens) tokens FROM (SELECT was.key name, was.value tokens FROM json_each(heads.usage) was
			UNION ALL SELECT more.key, more.value FROM json_each(?) more) GROUP BY name)) WHERE key = ?`, Args: []any{mustJSON(u), string(s.Key)}, Want: 1}
}

// spendStmt counts a call of the model towards the budget of a run, in the transaction that accounts it.
func spendStmt(r *run, u tidemark.Usage) tidemark.Stmt {
	return tidemark.Stmt{SQL: `UPDATE runs SET spent = spent + ? WHERE id = ?`, Args: []any{int64(u.Context()), r.ID}}
}

// warn logs what went wrong and fails nothing.
func (s *Session) warn(what string, err error) {
	s.Logger.Warn(what, "session", s.Key, "err", err)
}

// failed logs a failure, of a run if one is given.
func (s *Session) failed(what string, r *run, err error) {
	id := ""
	if r != nil {
		id = r.ID
	}
	s.Logger.Error(what, "session", s.Key, "run", id, "err", err)
}
