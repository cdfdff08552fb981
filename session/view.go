package session

import (
	"context"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/history"
	"github.com/tidemark-ai/tidemark/room"
)

// View is what the model would see now.
type View struct {
	room.Seen
	Tools []tidemark.Tool
	Last  int64  // position of the newest message
	Until int64  // position up to which the log was read, overlays included
	Pack  string // what is pushed beside the messages, in the note; filled in for a call
}

// View computes what the model would see now.
func (s *Session) View(ctx context.Context) (View, error) {
	h, err := s.head(ctx)
	if err != nil {
		return View{}, err
	}
	return s.view(ctx, h.Log)
}

// Request returns the request that would be sent for a view.
func (s *Session) Request(v View) tidemark.Request { return s.request(v) }

func (s *Session) request(v View) tidemark.Request {
	return tidemark.Request{Model: s.settings().Model, System: v.System, Tools: v.Tools, Messages: v.Messages(),
		MaxTokens: s.replyRoom(v), Note: room.Note(v.Pack, s.Runtime.Now().In(s.settings().Zone))}
}

// replyRoom is the bound on the reply to a view: what is configured, or what the window leaves where that is less, since
// providers refuse a request that asks for more than fits behind it.
func (s *Session) replyRoom(v View) tidemark.Tokens {
	most, window := s.settings().MaxTokens, s.settings().Window
	if found := tidemark.Tokens(s.mostReply.Load()); found > 0 && (most == 0 || found < most) {
		most = found
	}
	size, least := v.Size, compaction.Budget{Window: window}.LeastReply()
	if !v.Anchor { // it is an estimate, and of an anchored view the newest message is
		size, least = size+v.Size/4, 2*least
	}
	left := max((window-size)*7/8, least)
	if left < compaction.UsualReply && most == 0 || left < most {
		return left
	}
	return most
}

// view reads overlays first, then skeletons of what they leave visible, then the payloads that are
// shown: a session costs its tail, not its history.
func (s *Session) view(ctx context.Context, log string) (View, error) {
	now, err := s.Reader.Standing(ctx, log)
	if err != nil {
		return View{}, err
	}
	return s.viewOf(ctx, log, now, nil)
}

// viewOf computes the view under some edits. admit, if given, is told what it weighs before large
// blocks are read, and may wait.
func (s *Session) viewOf(ctx context.Context, log string, now history.Edits, admit func(bytes int64) error) (View, error) {
	seen, err := s.Reader.View(ctx, log, now, admit)
	if err != nil {
		return View{}, err
	}
	v := View{Seen: room.Seen{View: seen.View, Log: log, Shown: seen.Shown}}
	if n := len(seen.Entries); n > 0 {
		v.Last = seen.Entries[n-1].Seq
	}
	v.Until = until(v, now.Newest)
	if v.System, v.Mark, err = s.system(ctx); err != nil {
		return View{}, err
	}
	if v.Tools, err = s.tools(ctx); err != nil {
		return View{}, err
	}
	v.Tools = withSkills(v.System, v.Tools)
	v.Fixed = tidemark.EstimateText(v.System) + estimateTools(v.Tools)
	v.Size, v.Anchor = s.size(v, seen.Entries, now)
	return v, nil
}

// size returns the context size: the provider's last report for a single call plus the estimate of
// what came since, if no overlay was written after it and the model is the same; else the estimate
// of all that would be sent, in the measure that the last compaction was told in, if that was the model's.
// A lift changes what is sent as much as another overlay does.
func (s *Session) size(v View, entries []compaction.Visible, now history.Edits) (tidemark.Tokens, bool) {
	var since tidemark.Tokens
	for i := len(entries) - 1; i >= 0 && entries[i].Seq > now.Newest; i-- {
		if c := entries[i].Call; c != nil && c.Reported && c.Requested == s.settings().Model {
			return c.Usage.Context() + since, true
		}
		since += entries[i].Tokens
	}
	own := v.Fixed + v.View.Tokens()
	if now.Model != s.settings().Model {
		return own, false
	}
	return episodes.Scaled(own, now.Counted, now.Estimated), false
}

// estimateTools counts the schemas, which the reference forgot.
func estimateTools(tools []tidemark.Tool) tidemark.Tokens {
	if len(tools) == 0 {
		return 0
	}
	return tidemark.EstimateText(mustJSON(tools))
}

// entryStmts completes a message entry and returns what stores it: the entry and its words. The message is as
// it came: what looks like a reference in it is none of ours.
func (s *Session) entryStmts(ctx context.Context, log string, e *tidemark.Entry, m tidemark.Message, prev tidemark.Hash) ([]tidemark.Stmt, error) {
	stored, err := s.blocks.Spill(ctx, m)
	if err != nil {
		return nil, err
	}
	return s.storedStmts(ctx, log, e, m, stored, prev)
}

// storedStmts is entryStmts for a message whose large blocks were spilled before.
func (s *Session) storedStmts(ctx context.Context, log string, e *tidemark.Entry, full, stored tidemark.Message, prev tidemark.Hash) ([]tidemark.Stmt, error) {
	e.Chain = tidemark.Chain(prev, full)
	stored, stmts, err := s.blocks.Compress(ctx, stored, s.settings().ArtifactChars)
	if err != nil {
		return nil, err
	}
	e.Payload = stored.AppendJSON(nil)
	entry, err := s.log.AppendStmts(log, *e)
	if err != nil {
		return nil, err
	}
	stmts = append(stmts, entry...)
	if r, ok := room.Find[room.Indexer](s.rooms); ok {
		index, err := r.IndexStmts(ctx, *e, full)
		return append(stmts, index...), err
	}
	return stmts, nil
}

// until returns the position up to which a view knows the log. Everything that is written later has a
// greater one, so it and the log tell what was shown.
func until(v View, newest int64) int64 {
	n := max(v.Last, newest)
	for _, sh := range v.Shown {
		n = max(n, sh.From, sh.To)
	}
	return n
}
