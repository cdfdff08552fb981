package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/summary"
)

// Tiers of a summary, worst last.
const (
	tierFull      = "full"
	tierPartial   = "partial"
	tierPlaintext = "plaintext"
)

// plan is a compaction in work, as it stands on disk.
type plan struct {
	summary.Draft
	Reason    string
	Act       compaction.Act
	At        time.Time // when it was made
	Last      int64     // newest position that leaves the view
	Size      tidemark.Tokens
	ChunkSize tidemark.Tokens // at which they were cut; the window may change meanwhile
	Tier      string
	Why       string           // of a tier that is not full
	overlay   tidemark.EntryID // that was installed in this life, and what it did
	edits     []tidemark.Edit
	Owed      bool // an extract stands in for what the model could not be asked
}

// storedAct is a compaction.Act with the flag that Edit does not encode.
type storedAct struct {
	By        []string        `json:"by"`
	Edits     []tidemark.Edit `json:"edits"`
	Summarize int             `json:"summarize"`

	Replaces tidemark.EntryID `json:"replaces,omitempty"`
	Short    tidemark.Tokens  `json:"short,omitempty"`
	Loose    int              `json:"loose,omitempty"`
	Early    bool             `json:"early,omitempty"`
}

func (p *plan) insertStmt(key tidemark.Key) tidemark.Stmt {
	return tidemark.Stmt{
		SQL: `INSERT INTO plans(id, key, log, state, reason, instructions, act, part_ms, last, size, chunk_size, created, chunk, rolling, tier, why, facts, owed)
			VALUES(?, ?, ?, 'open', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		Args: []any{p.ID, string(key), p.Log, p.Reason, p.Instructions, mustJSON(storedAct(p.Act)), p.At.UnixMilli(), p.Last, int64(p.Size), int64(p.ChunkSize), p.At.UnixMilli(),
			p.Chunk, p.Rolling, p.Tier, p.Why, mustJSON(p.Facts), p.Owed}, Want: 1}
}

// madeFor reports whether a plan is the act that is planned now, of the view as it is, for the same reason.
func (p *plan) madeFor(v View, act compaction.Act, mode fitMode, instructions string) bool {
	return p != nil && p.Reason == string(mode) && p.Instructions == instructions && p.Size == v.Size &&
		mustJSON(storedAct(p.Act)) == mustJSON(storedAct(act))
}

// inherit has a plan begin behind the chunks that an old one has paid for, where its own first ones are the same.
func (s *Session) inherit(p, old *plan, v View) {
	if old == nil || old.Chunk == 0 || old.Act.Summarize < 0 || p.Act.Summarize < 0 || old.Act.Replaces != "" || old.Instructions != p.Instructions {
		return
	}
	was, _ := s.covered(v, old.Act.Edits[old.Act.Summarize])
	is, _ := s.covered(v, p.Act.Edits[p.Act.Summarize])
	done, chunks := compaction.Chunks(was, old.ChunkSize), compaction.Chunks(is, old.ChunkSize)
	if len(done) < old.Chunk || len(chunks) < old.Chunk {
		return
	}
	for i := range old.Chunk {
		if !slices.EqualFunc(done[i], chunks[i], func(a, b compaction.Item) bool { return a.ID == b.ID }) {
			return
		}
	}
	p.ChunkSize, p.Chunk, p.Rolling, p.Tier, p.Why, p.Facts, p.Owed = old.ChunkSize, old.Chunk, old.Rolling, old.Tier, old.Why, old.Facts, old.Owed
}

// saveStmt stores a finished chunk, so that it is not paid twice.
func (p *plan) saveStmt() tidemark.Stmt {
	return tidemark.Stmt{
		SQL:  `UPDATE plans SET chunk = ?, rolling = ?, tier = ?, why = ?, facts = ?, usage = ?, owed = ? WHERE id = ? AND state = 'open' AND chunk = ?`,
		Args: []any{p.Chunk, p.Rolling, p.Tier, p.Why, mustJSON(p.Facts), mustJSON(p.Usage), p.Owed, p.ID, p.Chunk - 1}, Want: 1}
}

// paidStmt stores what a chunk cost that is not finished.
func (p *plan) paidStmt() tidemark.Stmt {
	return tidemark.Stmt{SQL: `UPDATE plans SET usage = ? WHERE id = ?`, Args: []any{mustJSON(p.Usage), p.ID}}
}

func (p *plan) doneStmt() tidemark.Stmt {
	return tidemark.Stmt{SQL: `UPDATE plans SET state = 'done' WHERE id = ? AND state = 'open'`, Args: []any{p.ID}, Want: 1}
}

// openPlan returns the plan that is in work for a log, or nil. One for another log, left by a
// reset, is dropped.
func (s *Session) openPlan(ctx context.Context, log string) (*plan, error) {
	rows, err := s.DB.Query(ctx, `SELECT id, log, reason, instructions, act, part_ms, last, size, chunk, rolling, tier, facts, usage, owed, chunk_size, why
		FROM plans WHERE key = ? AND state = 'open' LIMIT 1`, string(s.Key))
	if err != nil {
		return nil, fmt.Errorf("read plan: %w", err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	r := rows[0]
	p := &plan{Draft: summary.Draft{ID: r.Text(0), Log: r.Text(1), Instructions: r.Text(3), Chunk: int(r.Int(8)), Rolling: r.Text(9)},
		Reason: r.Text(2), At: time.UnixMilli(r.Int(5)), Last: r.Int(6), Size: tidemark.Tokens(r.Int(7)), Tier: r.Text(10), Owed: r.Int(13) != 0, ChunkSize: tidemark.Tokens(r.Int(14)), Why: r.Text(15)}
	if p.Log != log {
		return nil, s.DB.Tx(ctx, []tidemark.Stmt{{SQL: `UPDATE plans SET state = 'dropped' WHERE id = ?`, Args: []any{p.ID}}})
	}
	var act storedAct
	if err := errors.Join(json.Unmarshal(r.Bytes(4), &act), json.Unmarshal(r.Bytes(11), &p.Facts), json.Unmarshal(r.Bytes(12), &p.Usage)); err != nil {
		return nil, fmt.Errorf("read plan %s: %w", p.ID, err)
	}
	p.Act = compaction.Act(act)
	return p, nil
}

// summaryBudget is the most tokens that a summary message may take: an eighth of the window, and a
// quarter of what system prompt and tools leave, since half of that is kept word for word.
func (s *Session) summaryBudget(v View) tidemark.Tokens {
	const least, most = 300, 2 * compaction.SummaryTokens
	return min(max(min(s.settings().Window/8, (s.Budget().Limit()-v.Fixed)/4), least), most)
}

// summarizeChunk brings a plan one chunk further. Tier 1 asks the model with the rolling summary;
// tier 2 notes a chunk that the model cannot take; tier 3 extracts. A failure that may pass puts
// the compaction off, with what is finished kept, unless the next call would not fit.
func (s *Session) summarizeChunk(ctx context.Context, r *run, v View, p *plan, items []compaction.Item, hard bool) error {
	p.Known, p.Again = s.known(v), p.Reason == string(fitAgain)
	refused := len(p.Refused)
	err := s.writer.Condense(ctx, &p.Draft, items)
	switch {
	case err == nil && len(p.Refused) > refused:
		p.Tier, p.Why = worse(p.Tier, tierPartial), fmt.Sprintf("the model that writes summaries refused %d message(s)", len(p.Refused))
	case err == nil:
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !hard && summary.Passing(err):
		return errors.Join(err, s.postpone(ctx, r, p, v, err))
	default:
		p.Owed, p.Why = p.Owed || summary.Passing(err), noSummary(err)
		s.Logger.Warn("summary of a chunk failed", "session", s.Key, "chunk", p.Chunk, "err", err)
		if tokens := tidemark.EstimateText(compaction.Transcribe(items)); tokens > s.settings().Window/2 || summary.TooLarge(err) {
			p.Rolling = summary.Join(p.Rolling, compaction.OversizeNote(tokens))
			p.Tier = worse(p.Tier, tierPartial)
		} else {
			p.Rolling = summary.Join(p.Rolling, compaction.Extract(items, p.Why))
			p.Tier = tierPlaintext
		}
	}
	p.Rolling = compaction.Bound(p.Rolling, s.summaryBudget(v)*2/3)
	p.Chunk++
	if err := s.step(ctx, r, stateCalling, p.saveStmt(), s.dueStmt(dueRun, s.Runtime.Now().Add(heartbeat), "")); err != nil {
		return fmt.Errorf("store chunk %d: %w", p.Chunk, err)
	}
	return nil
}

// maxFailure is how many bytes of a failure are told.
const maxFailure = 200

// noSummary says why a chunk has no summary of the model's.
func noSummary(err error) string {
	switch {
	case errors.Is(err, tidemark.ErrInvalid):
		return "the model's answer could not be used: " + clip.Line(err.Error(), maxFailure)
	case summary.TooLarge(err):
		return "it is too large for the model of summaries"
	}
	return clip.Line(Explain(err), maxFailure)
}

func worse(a, b string) string {
	if a == tierPlaintext {
		return a
	}
	return b
}

// chunkSize is how much is summarised at a time: a quarter of the window, as in the reference.
func (s *Session) chunkSize() tidemark.Tokens {
	return max(min(s.settings().Window, s.writer.Settings().Window)/4, 1)
}

// pauseStmt leaves the summariser alone for the first pause.
func (s *Session) pauseStmt() tidemark.Stmt {
	return tidemark.Stmt{SQL: `UPDATE heads SET cooldown = ? WHERE key = ?`, Args: []any{s.Runtime.Now().Add(cooldowns[0]).UnixMilli(), string(s.Key)}, Want: 1}
}

// cooldowns is how long the summariser is left alone after it failed once, twice, and more often.
var cooldowns = room.Cooldowns

// cooling reports whether the summariser is to be left alone. A pause that ends later than any can
// is one of a clock that was moved back, and over.
func (s *Session) cooling(ctx context.Context) (bool, error) {
	h, err := s.head(ctx)
	if err != nil {
		return false, err
	}
	left := h.Cooldown.Sub(s.Runtime.Now())
	return left > 0 && left <= cooldowns[len(cooldowns)-1], nil
}

// putOffs is how often a summary was put off that a plan makes now.
func (s *Session) putOffs(ctx context.Context, p *plan) (int, error) {
	if p.Act.Summarize < 0 || p.Reason == string(fitAgain) {
		return 0, nil
	}
	h, err := s.head(ctx)
	return h.Failures, err
}

// postpone leaves the summariser alone for a while, with what is finished of a plan kept. The first time the conversation is told.
func (s *Session) postpone(ctx context.Context, r *run, p *plan, v View, why error) error {
	h, err := s.head(ctx)
	if err != nil {
		return err
	}
	until := s.Runtime.Now().Add(cooldowns[min(h.Failures, len(cooldowns)-1)])
	stmts := []tidemark.Stmt{p.paidStmt(),
		{SQL: `UPDATE heads SET cooldown = ?, failures = failures + 1 WHERE key = ?`, Args: []any{until.UnixMilli(), string(s.Key)}, Want: 1}}
	if h.Failures > 0 || p.Reason != string(fitAuto) {
		return s.DB.Tx(ctx, stmts)
	}
	event := tidemark.Event{Type: "notice", Text: fmt.Sprintf("The compaction is put off until %s, at %d of %d tokens, and tried again until it is made: %s",
		until.In(s.settings().Zone).Format("15:04 MST"), v.Size, s.settings().Window, noSummary(why))}
	return s.stepEvent(ctx, r, event, stmts...)
}
