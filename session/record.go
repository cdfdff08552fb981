package session

import (
	"context"
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// part is a stretch of a log that stands in the archive.
type part struct {
	First, Last int64
	Info        archive.Info
}

// parts returns the archive parts of a log, in order.
func (s *Session) parts(ctx context.Context, log string) ([]part, error) {
	rows, err := s.DB.Query(ctx, `SELECT first, last, info FROM parts WHERE log = ? ORDER BY first LIMIT 10000`, log)
	if err != nil {
		return nil, fmt.Errorf("read parts of %s: %w", log, err)
	}
	out := make([]part, len(rows))
	for i, r := range rows {
		out[i] = part{First: r.Int(0), Last: r.Int(1)}
		if err := json.Unmarshal(r.Bytes(2), &out[i].Info); err != nil {
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
	for e, err := range s.messages(ctx, log, r) {
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

// eventStmts appends an event to a log.
func (s *Session) eventStmts(log string, e tidemark.Event) ([]tidemark.Stmt, error) {
	now := s.Runtime.Now()
	return s.log.AppendStmts(log, tidemark.Entry{ID: tidemark.EntryID(tidemark.NewID(now)), Kind: tidemark.KindEvent, At: now,
		Origin: tidemark.Origin{From: tidemark.FromSystem}, Payload: []byte(mustJSON(e))})
}

// usageStmts accounts a reply: what it cost, how large the context is, one message more.
func (s *Session) usageStmts(ctx context.Context, c tidemark.Call) ([]tidemark.Stmt, error) {
	usage, err := s.addUsage(ctx, c.Usage)
	if err != nil {
		return nil, err
	}
	return []tidemark.Stmt{usage, {SQL: `UPDATE heads SET active = ?, messages = messages + 1, context = ? WHERE key = ?`,
		Args: []any{s.Runtime.Now().UnixMilli(), int64(c.Usage.Context()), string(s.Key)}, Want: 1}}, nil
}

// addUsage adds to what the session has cost since its reset.
func (s *Session) addUsage(ctx context.Context, u tidemark.Usage) (tidemark.Stmt, error) {
	h, err := s.head(ctx)
	if err != nil {
		return tidemark.Stmt{}, err
	}
	return tidemark.Stmt{SQL: `UPDATE heads SET usage = ? WHERE key = ?`, Args: []any{mustJSON(h.Usage.Add(u)), string(s.Key)}, Want: 1}, nil
}

// Anatomy is the record of one model call: what its context was made of and what it cost.
type Anatomy struct {
	N        int64              `json:"n"`
	Run      string             `json:"run"`
	Session  string             `json:"sessionId"`
	At       int64              `json:"at"` // Unix milliseconds
	Model    string             `json:"model"`
	Stop     string             `json:"stopReason"`
	Window   tidemark.Tokens    `json:"window"`
	Limit    tidemark.Tokens    `json:"limit"`
	Size     tidemark.Tokens    `json:"size"`     // before the call, as decided on
	Anchored bool               `json:"anchored"` // Size rests on a provider's report
	System   tidemark.Tokens    `json:"systemTokens"`
	Tools    tidemark.Tokens    `json:"toolTokens"`
	Parts    map[string]Portion `json:"parts"`  // person, model, tool, summary, stub
	Prompt   string             `json:"prompt"` // hash of the system prompt
	Last     int64              `json:"last"`   // position of the newest message
	Overlays []tidemark.EntryID `json:"overlays,omitempty"`
	Usage    tidemark.Usage     `json:"usage"`
	Context  tidemark.Tokens    `json:"context"` // after the call
}

// Portion is how much of a view is of one kind.
type Portion struct {
	Items  int             `json:"items"`
	Tokens tidemark.Tokens `json:"tokens"`
}

// anatomy records a call. A failure to record is logged; the answer is worth more.
func (s *Session) anatomy(ctx context.Context, r *run, v View, reply tidemark.Reply) {
	a := Anatomy{Run: r.ID, Session: v.Log, At: s.Runtime.Now().UnixMilli(), Model: reply.Call.Model, Stop: reply.Call.Stop, Window: s.settings().Window,
		Limit: s.budget().Limit(), Size: v.Size, Anchored: v.Anchor, System: tidemark.EstimateText(v.System), Tools: estimateTools(v.Tools),
		Parts: Portions(v), Prompt: string(tidemark.HashOf([]byte(v.System))), Last: v.Last, Usage: reply.Call.Usage, Context: reply.Call.Usage.Context()}
	seen := map[tidemark.EntryID]bool{}
	for _, sh := range v.Shown {
		if !seen[sh.Overlay] {
			seen[sh.Overlay] = true
			a.Overlays = append(a.Overlays, sh.Overlay)
		}
	}
	err := s.DB.Tx(ctx, []tidemark.Stmt{{SQL: `INSERT INTO anatomy(key, log, record) VALUES(?, ?, ?)`, Args: []any{string(s.Key), v.Log, mustJSON(a)}, Want: 1}})
	if err != nil {
		s.Logger.Warn("record anatomy", "session", s.Key, "err", err)
	}
}

// Portions sorts the items of a view by kind.
func Portions(v View) map[string]Portion {
	out := map[string]Portion{}
	for _, it := range v.Items {
		kind := it.Source
		switch {
		case compaction.IsSummary(it):
			kind = "summary"
		case it.Stubs > 0:
			kind = "stub"
		case kind == "":
			kind = string(it.Message.Role)
		}
		p := out[kind]
		p.Items++
		p.Tokens += it.Tokens
		out[kind] = p
	}
	return out
}

// Anatomies returns the records of model calls, newest first, before record n (0: the newest).
func (s *Session) Anatomies(ctx context.Context, before int64, limit int) ([]Anatomy, error) {
	if before <= 0 {
		before = 1 << 53
	}
	rows, err := s.DB.Query(ctx, `SELECT n, record FROM anatomy WHERE key = ? AND n < ? ORDER BY n DESC LIMIT ?`, string(s.Key), before, min(limit, 1000))
	if err != nil {
		return nil, fmt.Errorf("read anatomy: %w", err)
	}
	out := make([]Anatomy, len(rows))
	for i, r := range rows {
		if err := json.Unmarshal(r.Bytes(1), &out[i]); err != nil {
			return nil, fmt.Errorf("read anatomy: %w", err)
		}
		out[i].N = r.Int(0)
	}
	return out, nil
}
