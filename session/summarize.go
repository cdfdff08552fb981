package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/mend"
	"github.com/tidemark-ai/tidemark/room"
)

// Tiers of a summary, worst last.
const (
	tierFull      = "full"
	tierPartial   = "partial"
	tierPlaintext = "plaintext"
)

// plan is a compaction in work, as it stands on disk.
type plan struct {
	ID           string
	Log          string
	Reason       string
	Instructions string
	Act          compaction.Act
	At           time.Time // when it was made
	Last         int64     // newest position that leaves the view
	Size         tidemark.Tokens
	Chunk        int             // chunks that are finished
	ChunkSize    tidemark.Tokens // at which they were cut; the window may change meanwhile
	Rolling      string
	Tier         string
	Why          string // of a tier that is not full
	Facts        []tidemark.Extraction
	Usage        tidemark.Usage
	overlay      tidemark.EntryID // that was installed in this life, and what it did
	edits        []tidemark.Edit
	known        []string // what memory had when it was asked for in this life; nil before
	Owed         bool     // an extract stands in for what the model could not be asked
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
	p := &plan{ID: r.Text(0), Log: r.Text(1), Reason: r.Text(2), Instructions: r.Text(3), At: time.UnixMilli(r.Int(5)), Last: r.Int(6),
		Size: tidemark.Tokens(r.Int(7)), Chunk: int(r.Int(8)), Rolling: r.Text(9), Tier: r.Text(10), Owed: r.Int(13) != 0, ChunkSize: tidemark.Tokens(r.Int(14)), Why: r.Text(15)}
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

// Bounds of one call of the summariser.
const (
	summaryDeadline = 5 * time.Minute
	maxKnown        = 12_000 // bytes of what it is told to be known
)

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
	err := s.condense(ctx, p, v, items, false, pieceHalvings)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !hard && passing(err):
		return errors.Join(err, s.postpone(ctx, r, p, v, err))
	default:
		p.Owed, p.Why = p.Owed || passing(err), noSummary(err)
		s.Logger.Warn("summary of a chunk failed", "session", s.Key, "chunk", p.Chunk, "err", err)
		if tokens := tidemark.EstimateText(compaction.Transcribe(items)); tokens > s.settings().Window/2 || overflowed(err) {
			p.Rolling = join(p.Rolling, compaction.OversizeNote(tokens))
			p.Tier = worse(p.Tier, tierPartial)
		} else {
			p.Rolling = join(p.Rolling, compaction.Extract(items, p.Why))
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

// How often a chunk that is too large for the model of summaries is halved: its window may be a small part of that of the
// conversation. Where that is only a doubt, since a server has the same words for an outage, it is tried a few times.
const (
	pieceHalvings  = 8
	outageHalvings = 3
)

// condense asks for the summary of a chunk, or for its memories only, and for its halves one after the other where the
// model takes no more.
func (s *Session) condense(ctx context.Context, p *plan, v View, items []compaction.Item, onlyMemories bool, halvings int) error {
	var near []memory.Known
	knower, ok := Room[room.Knower](s)
	if ok && !s.settings().NoMemories {
		near = knower.Near(ctx, items)
		if p.known == nil {
			p.known = append([]string{}, knower.Memories(ctx, v.Seen)...)
		}
	}
	w, err := s.askSummary(ctx, p, v, items, onlyMemories, memory.List(near))
	if err == nil {
		if !onlyMemories {
			p.Rolling = w.Summary
		}
		s.addFacts(p, s.unskipped(ctx, items), w.Memories, near)
		return nil
	}
	size := tidemark.EstimateText(compaction.Transcribe(items))
	var api *tidemark.APIError
	doubted := errors.As(err, &api) && mend.Unexplained(*api, false) && size > MinWindow/2
	if doubted && api.Transient() { // an outage, unless it lasts
		n, err := s.putOffs(ctx, p)
		if err != nil {
			return err
		}
		doubted, halvings = n > 0, min(halvings, outageHalvings)
	}
	if !overflowed(err) && !doubted || halvings == 0 {
		return err
	}
	was := *p
	for _, half := range compaction.Halves(items) {
		if len(half) == 0 {
			return err
		}
		if e := s.condense(ctx, p, v, half, onlyMemories, halvings-1); e != nil {
			if used := p.Usage; !onlyMemories { // the summary of a part of a chunk is none
				*p = was
				p.Usage = used
			}
			return e
		}
	}
	return nil // a refusal in other words teaches nothing: it may have been an outage
}

// maxFailure is how many bytes of a failure are told.
const maxFailure = 200

// noSummary says why a chunk has no summary of the model's.
func noSummary(err error) string {
	switch {
	case errors.Is(err, tidemark.ErrInvalid):
		return "the model's answer could not be used: " + clip.Line(err.Error(), maxFailure)
	case overflowed(err):
		return "it is too large for the model of summaries"
	}
	return clip.Line(Explain(err), maxFailure)
}

// passing reports a failure that is not the fault of what was asked: the provider is down, busy or
// refuses the key.
func passing(err error) bool {
	var api *tidemark.APIError
	return errors.As(err, &api) && (api.Transient() || api.Class == tidemark.ClassAuth)
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "\n\n" + b
}

func worse(a, b string) string {
	if a == tierPlaintext {
		return a
	}
	return b
}

// summaryTries is how often a summary is asked for before its failure counts, badSummaries how many answers may be none.
const (
	summaryTries = 3
	badSummaries = 2
)

// askSummary asks for the summary or the memories of some items. An answer that cannot be read
// strictly is asked for again; an oversized chunk is not sent at all.
func (s *Session) askSummary(ctx context.Context, p *plan, v View, items []compaction.Item, onlyMemories bool, near string) (compaction.Written, error) {
	window := s.summaryWindow()
	ask := compaction.Ask{Model: s.summaryModel(), Previous: compaction.Bound(p.Rolling, window/8), Memories: p.heard(window), Instructions: p.Instructions,
		Items: items, OnlyMemories: onlyMemories, NoMemories: s.settings().NoMemories, Near: near}
	req := compaction.Prompt(ask)
	req.MaxTokens = min(compaction.SummaryTokens, max(window/8, 400))
	size := tidemark.Estimate(req.Messages[0])
	if size > window/2 {
		return compaction.Written{}, &tidemark.APIError{Class: tidemark.ClassOverflow, Message: "the chunk exceeds half of the window"}
	}
	var last error
	for try, bad := 1, 0; try <= summaryTries; try++ {
		reply, err := s.complete(ctx, req)
		p.Usage = p.Usage.Add(reply.Call.Usage)
		if err == nil {
			w, perr := compaction.Read(reply, ask)
			if perr == nil {
				return w, nil
			}
			last = perr
			if bad++; bad == badSummaries {
				break
			}
			req.Messages = compaction.AskAgain(req, perr)
			continue
		}
		last = err
		var api *tidemark.APIError
		if ctx.Err() == nil && errors.As(err, &api) && api.Class == tidemark.ClassRefusal { // without a word; another try may have some
			if bad++; bad == badSummaries {
				break
			}
			continue
		}
		if ctx.Err() != nil || !errors.As(err, &api) || !api.Transient() {
			return compaction.Written{}, errors.Join(err, s.summaryRefused(ctx, size, err))
		}
		if try < summaryTries {
			if err := s.Runtime.Sleep(ctx, room.Backoff(try, api.RetryAfter)); err != nil {
				return compaction.Written{}, err
			}
		}
	}
	return compaction.Written{}, last
}

// summaryRefused takes up what a refusal says of the window of the model of summaries.
func (s *Session) summaryRefused(ctx context.Context, size tidemark.Tokens, refused error) error {
	var api *tidemark.APIError
	switch {
	case !errors.As(refused, &api) || !mend.OverTokens(*api):
		return nil // bytes that are too many say nothing of tokens
	case api.Limit > 0:
		return s.windows.Learn(ctx, s.summaryModel(), api.Limit, tidemark.WindowRefused)
	}
	if s.summaryModel() == s.settings().Model {
		return nil // a smaller piece is asked for; the window of all conversations is halved where a turn shows it
	}
	return s.windows.Learn(ctx, s.summaryModel(), min(size, s.summaryWindow()), tidemark.WindowHalved) // what is sent is at most half of it
}

// complete makes one bounded call of the summariser.
func (s *Session) complete(ctx context.Context, req tidemark.Request) (tidemark.Reply, error) {
	limited, stop := s.Runtime.WithTimeout(ctx, summaryDeadline)
	defer stop()
	reply, err := tidemark.Complete(limited, s.Provider, req)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return reply, &tidemark.APIError{Class: tidemark.ClassNetwork, Message: fmt.Sprintf("no summary within %s", summaryDeadline)}
	}
	return reply, err
}

func (s *Session) summaryModel() string {
	if s.settings().SummaryModel != "" {
		return s.settings().SummaryModel
	}
	return s.settings().Model
}

// addFacts keeps what a chunk gave to remember, under an id that makes storing it twice one act.
func (s *Session) addFacts(p *plan, items []compaction.Item, lines []string, near []memory.Known) {
	if s.settings().NoMemories || len(lines) == 0 || len(items) == 0 {
		return
	}
	id := fmt.Sprintf("%s/%s/%d", p.Log, p.ID, p.Chunk)
	if n := len(p.Facts); n > 0 && strings.HasPrefix(p.Facts[n-1].ID, id) { // of another half of it
		id = fmt.Sprintf("%s.%d", id, n)
	}
	x := tidemark.Extraction{ID: id, Session: p.Log, Scope: s.Scope(), At: s.Runtime.Now()}
	if len(near) == 0 {
		for _, l := range lines {
			x.Facts = append(x.Facts, tidemark.Fact{Text: l})
		}
	} else if x.Facts = memory.Decide(lines, near); len(x.Facts) == 0 {
		return
	}
	for i := range x.Facts {
		x.Facts[i].Sources = []tidemark.EntryID{items[0].From, items[len(items)-1].To}
	}
	p.Facts = append(p.Facts, x)
}

// chunkSize is how much is summarised at a time: a quarter of the window, as in the reference.
func (s *Session) chunkSize() tidemark.Tokens {
	return max(min(s.settings().Window, s.summaryWindow())/4, 1)
}

// heard is what memory has and the facts of earlier chunks, none of which is to be extracted again; the newest within a budget.
func (p *plan) heard(window tidemark.Tokens) string {
	lines := slices.Clone(p.known)
	for _, x := range p.Facts {
		for _, f := range x.Facts {
			lines = append(lines, "- "+f.Text)
		}
	}
	most, from, size := min(maxKnown, int(window)/5), len(lines), 0 // in bytes: some 1/16 of it, in tokens
	for ; from > 0; from-- {
		if size += len(lines[from-1]) + 1; size > most {
			break
		}
	}
	return strings.Join(lines[from:], "\n")
}

// pauseStmt does the same with other statements.
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
