package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/refusal"
	"github.com/tidemark-ai/tidemark/summary"
	"github.com/tidemark-ai/tidemark/window"
)

// Bounds of a smaller window.
const (
	maxRefits       = 8   // compactions and halvings of one turn, each after a refusal
	maxRefusedTools = 128 // of a conversation
	refusedFor      = 24 * time.Hour
)

// windowing is what this life knows of the windows of its models.
type windowing struct {
	windows   window.Keeper
	writer    summary.Writer // of what leaves the view
	tried     atomic.Int64   // the window that a turn tries, 0: none
	mostTaken atomic.Int64   // tokens of the largest request that was taken in this life
	mostReply atomic.Int64   // the most tokens that the API takes as a bound on a reply, as it was found out; 0: any

	refusedTools atomic.Pointer[map[string]refusedTool] // by name; replaced, never changed
	leftOut      atomic.Int64                           // how many tools the model API takes no more of, as it was told
}

// Window returns how many tokens the model of the session takes, and how that is known.
func (s *Session) Window() tidemark.Window {
	return s.windows.Of(s.settings().Model, s.settings().set)
}

// windowPorts are what the keeper of windows is given.
func windowPorts(s *Session) window.Ports {
	pool, _ := s.Agent.(window.Pool)
	return window.Ports{Key: s.Key, DB: s.DB, Runtime: s.Runtime, Logger: s.Logger, Models: s.Windows, Pool: pool, Changed: s.loadSettings,
		InUse: func() ([]string, tidemark.Tokens) {
			return slices.Compact([]string{s.settings().Model, s.summaryModel()}), s.settings().set
		}}
}

// readLearned takes up what an earlier life learned of the models in use.
func (s *Session) readLearned(ctx context.Context) error {
	rows, err := s.DB.Query(ctx, `SELECT windows, refused FROM heads WHERE key = ? LIMIT 1`, string(s.Key))
	if err != nil || len(rows) == 0 {
		return fmt.Errorf("read what was learned in %s: %w", s.Key, cmp.Or(err, tidemark.ErrNotFound))
	}
	tools := map[string]refusedTool{}
	if err := cmp.Or(s.windows.Read(rows[0].Bytes(0)), json.Unmarshal(rows[0].Bytes(1), &tools)); err != nil {
		return fmt.Errorf("read what was learned in %s: %w", s.Key, err)
	}
	s.refusedTools.Store(&tools)
	tellRefused(s.Tools, tools)
	return nil
}

// refit answers a refusal for the size of a request: it takes up what that says of the window, and makes the view smaller.
// Where no limit is named, a compaction within the window that is known comes first; what is refused after that, or where
// nothing can leave, has half of the window tried, until the request is taken.
func (s *Session) refit(ctx context.Context, r *run, v View, refused tidemark.APIError) error {
	r.refits++
	v.Refused = true
	heavier := r.weigh(&v, refused.Asked)
	switch {
	case refusal.TooManyBytes(refused):
		r.trial.bytes = true
		return s.retrySmaller(ctx, r, v)
	case heavier && !s.Budget().Over(v.View) && refused.Limit >= s.settings().Window:
		return nil // what was refused was the room for the reply, which is smaller now
	case refused.Limit > 0:
		return s.shrink(ctx, r, v, refused)
	case r.refits > 1 || r.trial.sized != nil: // else the window is never learned
		return s.retrySmaller(ctx, r, v)
	}
	_, err := s.fit(ctx, r, v, fitForced)
	if errors.Is(err, tidemark.ErrNoGain) {
		return s.retrySmaller(ctx, r, v)
	}
	return err
}

// weigh gives a view the size that it was refused with, where that is more than was known: the rest of the turn stands on it.
func (r *run) weigh(v *View, size tidemark.Tokens) bool {
	if size <= v.Size {
		return false
	}
	v.Size, v.Anchor = size, true
	r.scale = scale{size, v.Fixed + v.View.Tokens(), true}
	return true
}

// shrink puts the window that a refusal named in force, not one that was tried, and compacts what does not fit it.
func (s *Session) shrink(ctx context.Context, r *run, v View, refused tidemark.APIError) error {
	r.trial = trial{}
	if err := s.useWindow(ctx, 0); err != nil {
		return err
	}
	before := s.settings().Window
	if err := s.learnAnd(ctx, r, before, refused.Limit, tidemark.WindowRefused); err != nil {
		return err
	}
	return s.fitInto(ctx, r, v, before, refused.Asked)
}

// learnAnd learns a window and tells of it.
func (s *Session) learnAnd(ctx context.Context, r *run, before, tokens tidemark.Tokens, from tidemark.WindowFrom) error {
	if err := s.windows.Learn(ctx, s.settings().Model, tokens, from); err != nil {
		return err
	}
	now := s.Window().Tokens
	if now >= before {
		return nil
	}
	line := fmt.Sprintf("The model takes %d tokens, not %d: %s.", min(now, tokens), before, from)
	if now < MinWindow {
		line += fmt.Sprintf(" That is too few for a conversation: choose a model that takes at least %d.", MinWindow)
	}
	return s.announce(ctx, r, line)
}

// fitInto compacts what does not fit the window in force. The view is as large as the refusal says; where it does not, and
// the window is the one before, larger than was estimated.
func (s *Session) fitInto(ctx context.Context, r *run, v View, before, asked tidemark.Tokens) error {
	heavier := false
	if asked > 0 {
		v.Size, v.Anchor = asked, true
	}
	if now := s.settings().Window; now >= before && asked == 0 {
		heavier = r.weigh(&v, now)
	} else if !s.Budget().Over(v.View) {
		return nil // what was refused was the room for the reply
	}
	_, err := s.fit(ctx, r, v, fitForced)
	if errors.Is(err, tidemark.ErrNoGain) && (heavier || v.Size <= s.settings().Window-s.Budget().LeastReply()) {
		return nil // it fits, as far as anybody says, and the reply has less room now
	}
	return err
}

// refusing is a toolbox that can be told that a definition of its is refused, so that whoever asks for its tools sees why
// one is not used.
type refusing interface {
	Refused(name, mark, why string)
}

// refusedTool is a definition that the API of a model refused. It is left out for that model, in later lives too, for a day: an API
// may learn to take it, or have been mistaken.
type refusedTool struct {
	Model string        `json:"model"` // as a window's is named
	Hash  tidemark.Hash `json:"hash"`
	Mark  string        `json:"mark,omitempty"`
	Why   string        `json:"why"`
	Until int64         `json:"until"` // milliseconds; it is offered again then
}

// refuse leaves tools out for the model in use, with kept called once the statements are done. Where very many are known, most
// are of tools that are gone: it begins anew, and those that are still refused are learned again.
func (s *Session) refuse(tools []tidemark.Tool, why string) (stmts []tidemark.Stmt, kept func()) {
	if len(tools) == 0 {
		return nil, func() {}
	}
	next, now := maps.Clone(*s.refusedTools.Load()), map[string]refusedTool{}
	if len(next) >= maxRefusedTools {
		clear(next)
	}
	for _, t := range tools {
		now[t.Name] = refusedTool{Model: s.windows.Name(s.settings().Model), Hash: definitionHash(t), Mark: t.Mark, Why: why, Until: s.Runtime.Now().Add(refusedFor).UnixMilli()}
	}
	maps.Copy(next, now)
	return []tidemark.Stmt{{SQL: `UPDATE heads SET refused = ? WHERE key = ?`, Args: []any{mustJSON(next), string(s.Key)}, Want: 1}}, func() {
		s.refusedTools.Store(&next)
		tellRefused(s.Tools, now)
	}
}

// tellRefused has a toolbox say why some tools are left out.
func tellRefused(to tidemark.Toolbox, tools map[string]refusedTool) {
	box, ok := to.(refusing)
	for name, t := range tools {
		if ok && t.Mark != "" {
			box.Refused(name, t.Mark, t.Why)
		}
	}
}

// definitionHash names what a model is told of a tool.
func definitionHash(t tidemark.Tool) tidemark.Hash {
	return tidemark.HashOf([]byte(t.Name + "\x00" + t.Description + "\x00" + string(t.InputSchema)))
}

// unrefused takes out the tools whose definitions a model's API refused.
func unrefused(tools []tidemark.Tool, refused map[string]refusedTool, model string, now time.Time) []tidemark.Tool {
	if len(refused) == 0 {
		return tools
	}
	return slices.DeleteFunc(tools, func(t tidemark.Tool) bool {
		r, ok := refused[t.Name]
		return ok && r.Model == model && r.Hash == definitionHash(t) && now.UnixMilli() < r.Until
	})
}
