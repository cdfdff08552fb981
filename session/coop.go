package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/cleanup"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/room"
)

// tidier is a strategy that lets the model tidy its own context.
type tidier interface {
	Cooperates() bool
	Tidy(v compaction.View, b compaction.Budget, ops []cleanup.Op) compaction.Tidied
	Copies(v compaction.View, b compaction.Budget, path string) []compaction.Copy
	Path(call tidemark.Block) (files []string, changes bool)
}

var _ tidier = (*compaction.Paging)(nil)

// tidier is the strategy of that kind, nil when none is active.
func (s *Session) tidier() tidier {
	for _, x := range s.strategies() {
		if t, ok := x.(tidier); ok {
			return t
		}
	}
	return nil
}

// cooperates reports whether what a model writes to tidy its context is carried out.
func (s *Session) cooperates() bool {
	t := s.tidier()
	return t != nil && t.Cooperates()
}

// tags parts the text of one reply from what the model asks for in it. One filter reads all text blocks of a reply,
// since the pieces of a stream do not say of which they are.
type tags struct {
	on   bool
	text cleanup.Filter
	said strings.Builder
}

// push takes a piece and returns what readers see of it.
func (t *tags) push(piece string) string {
	if t.on {
		piece = t.text.Push(piece)
	}
	t.said.WriteString(piece)
	return piece
}

// end returns what is left for readers to see.
func (t *tags) end() string {
	if !t.on {
		return ""
	}
	return t.text.End()
}

// wishes is what a model asked for in a reply.
type wishes struct {
	ops    []cleanup.Op
	blocks []int    // from 0, of the reply as it came
	texts  []string // of these blocks, as they came
}

// faultedName bounds a name that is told, in bytes.
const faultedName = 60

// tidyOnly is what people read of an answer that was nothing but tags.
const tidyOnly = "(The context was tidied.)"

// untagged takes the tags out of a reply. What stands in the log is what readers saw; what the model wrote beside it
// stands in the event that tells of it.
func untagged(m tidemark.Message) (tidemark.Message, wishes) {
	var f cleanup.Filter
	var last = -1
	seen := make([]string, len(m.Content))
	for i, b := range m.Content {
		if b.Type == tidemark.TypeText {
			seen[i], last = f.Push(b.Text), i
		}
	}
	if last < 0 {
		return m, wishes{}
	}
	seen[last] += f.End()
	a := wishes{ops: f.Ops()}
	out := tidemark.Message{Role: m.Role}
	for i, b := range m.Content {
		switch {
		case b.Type != tidemark.TypeText || seen[i] == b.Text:
			out.Content = append(out.Content, b)
			continue
		case strings.TrimSpace(seen[i]) != "":
			out.Content = append(out.Content, tidemark.Text(seen[i]))
		}
		a.blocks, a.texts = append(a.blocks, i), append(a.texts, b.Text)
	}
	if len(a.blocks) == 0 {
		return m, wishes{}
	}
	if !slices.ContainsFunc(out.Content, func(b tidemark.Block) bool { return b.Type == tidemark.TypeText || b.Type == tidemark.TypeToolUse }) {
		out.Content = append(out.Content, tidemark.Text(tidyOnly))
	}
	return out, a
}

// TidyEvent is the data of an event of type cleanup: what the model asked for in a reply, and what became of it.
type TidyEvent struct {
	Entry   tidemark.EntryID   `json:"entry"`             // the reply
	Overlay tidemark.EntryID   `json:"overlay,omitempty"` // what changed the view; undo it to have all back
	Pinned  []tidemark.EntryID `json:"pinned,omitempty"`
	Ops     []compaction.Tidy  `json:"ops"`
	Blocks  []int              `json:"blocks"` // of the reply as the model wrote it, from 0, with tags
	Texts   []string           `json:"texts"`  // and what they were
	Archive string             `json:"archive,omitempty"`
}

// cleanupEvent is its type.
const cleanupEvent = "cleanup"

// tidyStmts decides what a model asked for in a reply and returns what carries it out: statements for the transaction
// that appends the reply, so that neither is there without the other.
func (s *Session) tidyStmts(ctx context.Context, r *run, v View, reply tidemark.EntryID) ([]tidemark.Stmt, *tidemark.Event, error) {
	t := s.tidier()
	if len(r.asked.blocks) == 0 || t == nil {
		return nil, nil, nil
	}
	pins, err := s.pinned(ctx, r.Log)
	if err != nil {
		return nil, nil, err
	}
	done := t.Tidy(compaction.Hold(v.View, pins, s.Budget()), s.Budget(), r.asked.ops)
	if slices.ContainsFunc(r.origins, func(o tidemark.Origin) bool { return !s.mayChange(o) }) {
		done.Refuse(true, "the turn answers somebody who may not change this conversation")
	}
	part, freed, err := s.tidyChecked(ctx, r, v, &done)
	if err != nil {
		return nil, nil, err
	}
	e := TidyEvent{Entry: reply, Pinned: done.Pins, Ops: done.Done, Blocks: r.asked.blocks, Texts: r.asked.texts, Archive: part.Key}
	var stmts []tidemark.Stmt
	if len(done.Edits) > 0 {
		now := s.Runtime.Now()
		o := tidemark.Overlay{By: []string{cleanupEvent}, Edits: done.Edits, Reason: "model", Before: v.Size, After: max(v.Size-freed, 0)}
		if e.Overlay, stmts, err = s.overlayStmts(r.Log, tidemark.FromModel, o); err != nil {
			return nil, nil, err
		}
		stmts = append(stmts, tidemark.Stmt{SQL: `UPDATE heads SET context = max(context - ?, 0) WHERE key = ?`, Args: []any{int64(freed), string(s.Key)}, Want: 1})
		if done.Pruned > 0 {
			stmts = append(stmts, s.dueStmt(dueOutbox, now.Add(outboxRetry), ""))
			if !s.settings().NoMemories {
				stmts = append(stmts, s.evictedStmt(r.Log, e.Overlay))
			}
		}
	}
	more, err := s.anchorStmts(ctx, r, done.Pins)
	if err != nil {
		return nil, nil, err
	}
	r.untidy = refusals(done.Done)
	event := tidemark.Event{Type: cleanupEvent, Text: tidyLine(done, freed), Data: []byte(mustJSON(e))}
	return append(append(stmts, more...), s.eventStmt(r.Log, event)), &event, nil
}

// tidyChecked refuses what the view could not show or what could not be archived, and archives what leaves whole. freed
// is what the view is smaller by.
func (s *Session) tidyChecked(ctx context.Context, r *run, v View, t *compaction.Tidied) (part archive.Info, freed tidemark.Tokens, err error) {
	if t.Pruned > 0 {
		p, err := s.openPlan(ctx, r.Log)
		if err != nil {
			return part, 0, err
		}
		if p != nil {
			t.Refuse(false, "a compaction is under way")
		}
	}
	if t.Pruned > 0 {
		if part, err = s.archivePart(ctx, r.Log, t.Last); err != nil {
			if ctx.Err() != nil {
				return part, 0, err
			}
			s.warn("archive before turns are collapsed", err)
			t.Refuse(false, "what leaves could not be archived")
		}
	}
	if len(t.Edits) == 0 {
		return part, 0, nil
	}
	after, err := compaction.Preview(v.View, t.Edits, s.Budget())
	if err == nil {
		err = tidemark.Check(after.Messages())
	}
	if err == nil {
		err = s.checkEdits(ctx, v, t.Edits)
	}
	if err != nil {
		if ctx.Err() != nil {
			return part, 0, err
		}
		s.warn("what the model asked for does not fit its context", err)
		t.Refuse(true, "the context could not be sent so")
		return part, 0, nil
	}
	return part, max(v.View.Tokens()-after.Tokens(), 0), nil
}

// anchorStmts pin what the model anchored, as its tool for the task does.
func (s *Session) anchorStmts(ctx context.Context, r *run, pins []tidemark.EntryID) ([]tidemark.Stmt, error) {
	if h, ok := Room[room.Holder](s); ok {
		return h.PinStmts(ctx, r.Log, pins)
	}
	return nil, nil
}

// tidyLine is what people read of it.
func tidyLine(t compaction.Tidied, freed tidemark.Tokens) string {
	count := map[string]int{}
	refused := 0
	for _, d := range t.Done {
		if d.Why != "" {
			refused++
			continue
		}
		count[d.Op.Verb]++
	}
	var said []string
	for _, w := range [...]struct{ verb, did string }{{cleanup.Drop, "dropped"}, {cleanup.Summarize, "summarized"}, {cleanup.Anchor, "anchored"},
		{cleanup.Release, "released"}, {cleanup.Collapse, "collapsed"}} {
		if n := count[w.verb]; n > 0 {
			said = append(said, fmt.Sprintf("%d %s", n, w.did))
		}
	}
	if refused > 0 {
		said = append(said, fmt.Sprintf("%d not done", refused))
	}
	if len(said) == 0 {
		said = []string{"nothing asked for"}
	}
	return fmt.Sprintf("The model tidied its context: %s; %d tokens less, all of it stays in the log", strings.Join(said, ", "), freed)
}

// refusals tells the model what of its last operations was not done, in the turn in which it asked.
func refusals(t []compaction.Tidy) string {
	var lines []string
	for _, d := range t {
		if d.Why != "" && len(lines) < 8 {
			what := d.Op.Handle
			if what == "" {
				what = strings.Join(d.Op.Paths, ", ")
			}
			if d.Op.Verb == cleanup.Collapse {
				what = fmt.Sprintf("turns %d-%d", d.Op.From, d.Op.To)
			}
			lines = append(lines, fmt.Sprintf("%s %s: %s", d.Op.Verb, clip.Line(what, faultedName), d.Why))
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return "Of what you asked for to tidy the context this was not done: " + strings.Join(lines, "; ") + "."
}
