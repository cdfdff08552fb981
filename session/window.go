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
)

// Windows says how many tokens models take.
type Windows interface {
	// Place names the endpoint: what one says of a model is not true of another.
	Place() string
	// Known returns the window that a model's maker names, 0 for one that is not known.
	Known(model string) tidemark.Tokens
	// Window asks the endpoint, no tokens where it does not say. Place and time are not filled in.
	Window(ctx context.Context, model string) (tidemark.Window, error)
}

// windowKeeper is an agent that keeps what all of its conversations learned of windows.
type windowKeeper interface {
	// Windows stores what is learned and returns all that it has.
	Windows(ctx context.Context, learned []tidemark.Window) ([]tidemark.Window, error)
}

// Bounds of finding out a window.
const (
	maxRefits   = 8                // compactions and halvings of one turn, each after a refusal
	leastSize   = 1_000            // tokens; nothing is made to fit a model that takes less
	windowNap   = 10 * time.Minute // until what did not answer is asked again
	windowsTold = 8                // the agent takes no more in one call
	windowWait  = 2 * time.Second  // for all of the answers, while somebody waits for another

	maxRefusedTools = 128 // of a conversation
)

// windowing is what this life knows of the windows of its models.
type windowing struct {
	learned   atomic.Pointer[learned]
	windowNap atomic.Int64 // until when nobody is asked for them, in milliseconds
	tried     atomic.Int64 // the window that a turn tries, 0: none
	mostTaken atomic.Int64 // tokens of the largest request that was taken in this life

	refusedTools atomic.Pointer[map[string]refusedTool] // by name; replaced, never changed
	leftOut      atomic.Int64                           // how many tools the model API takes no more of, as it was told
}

// learned is what is known of windows, by the place and name of the model. It is replaced, never changed.
type learned map[string]tidemark.Window

func (s *Session) windowName(model string) string {
	if s.Windows == nil {
		return model
	}
	return s.Windows.Place() + " " + model
}

// windowOf is how many tokens a model takes: at most what is set, less where somebody knows better.
func (s *Session) windowOf(l learned, model string, set tidemark.Tokens) tidemark.Window {
	known := tidemark.Tokens(0)
	if s.Windows != nil {
		known = s.Windows.Known(model)
	}
	return tidemark.Narrow(set, l[s.windowName(model)], known)
}

// Window returns how many tokens the model of the session takes, and how that is known.
func (s *Session) Window() tidemark.Window {
	set := s.settings()
	return s.windowOf(*s.learned.Load(), set.Model, set.set)
}

// summaryWindow is that of the model that writes summaries.
func (s *Session) summaryWindow() tidemark.Tokens {
	return s.windowOf(*s.learned.Load(), s.summaryModel(), s.settings().set).Tokens
}

// readLearned takes up what an earlier life learned of the models in use.
func (s *Session) readLearned(ctx context.Context) error {
	rows, err := s.DB.Query(ctx, `SELECT windows, refused FROM heads WHERE key = ? LIMIT 1`, string(s.Key))
	if err != nil || len(rows) == 0 {
		return fmt.Errorf("read what was learned in %s: %w", s.Key, cmp.Or(err, tidemark.ErrNotFound))
	}
	l, tools := learned{}, map[string]refusedTool{}
	if err := cmp.Or(json.Unmarshal(rows[0].Bytes(0), &l), json.Unmarshal(rows[0].Bytes(1), &tools)); err != nil {
		return fmt.Errorf("read what was learned in %s: %w", s.Key, err)
	}
	s.learned.Store(&l)
	s.refusedTools.Store(&tools)
	tellRefused(s.Tools, tools)
	return nil
}

// modelsInUse are those whose windows count here.
func (s *Session) modelsInUse() []string {
	return slices.Compact([]string{s.settings().Model, s.summaryModel()})
}

// windowNames are the names under which those windows are kept.
func (s *Session) windowNames() (names []string) {
	for _, model := range s.modelsInUse() {
		names = append(names, s.windowName(model))
	}
	return names
}

// freshWindows finds out anew how much the models in use take: from the agent first, which has what other conversations
// learned, then from the endpoint. Whoever does not answer, or does not say, is asked again ten minutes later, and the
// turn goes on.
func (s *Session) freshWindows(ctx context.Context) {
	now := s.Runtime.Now()
	if s.Windows == nil || now.UnixMilli() < s.windowNap.Load() || len(s.staleWindows(now)) == 0 {
		return
	}
	s.windowNap.Store(now.Add(windowNap).UnixMilli())
	limited, stop := s.Runtime.WithTimeout(ctx, windowWait)
	defer stop()
	if err := s.takeUp(ctx, s.pooled(limited, s.ownWindows())); err != nil {
		s.warn("store windows", err)
	}
	var told []tidemark.Window
	for _, model := range s.staleWindows(now) {
		w, err := s.Windows.Window(limited, model)
		if err != nil {
			s.warn("ask for the window of "+model, err)
		}
		w.Model = s.windowName(model)
		if w = w.Holds(now); w.Tokens == 0 { // its last word holds, and another conversation need not ask so soon
			if last := (*s.learned.Load())[w.Model]; !last.From.Met() {
				w.Tokens, w.From = last.Tokens, last.From
			}
			w.Until = now.Add(windowNap)
		}
		told = append(told, w)
	}
	if len(told) == 0 {
		return
	}
	if err := s.takeUp(ctx, append(told, s.pooled(limited, told)...)); err != nil {
		s.warn("store windows", err)
	}
}

// staleWindows are the models in use of whose windows nothing is known, or not any more.
func (s *Session) staleWindows(now time.Time) []string {
	known := *s.learned.Load()
	return slices.DeleteFunc(s.modelsInUse(), func(model string) bool {
		w, ok := known[s.windowName(model)]
		return ok && !now.After(w.Until)
	})
}

// ownWindows are those that requests of this conversation met, the newest: the agent may have been away when they were learned.
func (s *Session) ownWindows() (out []tidemark.Window) {
	for _, w := range *s.learned.Load() {
		if w.From.Met() {
			out = append(out, w)
		}
	}
	slices.SortFunc(out, func(a, b tidemark.Window) int { return b.Until.Compare(a.Until) })
	return out[:min(len(out), windowsTold)]
}

// pooled tells the agent what was learned and returns what it has.
func (s *Session) pooled(ctx context.Context, told []tidemark.Window) []tidemark.Window {
	keeper, ok := s.Agent.(windowKeeper)
	if !ok {
		return nil
	}
	all, err := keeper.Windows(ctx, told)
	if err != nil {
		s.warn("ask the agent for windows", err)
	}
	return all
}

// takeUp puts in force what was heard of the models in use, where it is surer than what was known. Memory has its share of
// the window, so with another one the prompt is made anew.
func (s *Session) takeUp(ctx context.Context, heard []tidemark.Window) error {
	now, names := s.Runtime.Now(), s.windowNames()
	for {
		old := s.learned.Load()
		next := maps.Clone(*old)
		for _, w := range heard {
			if slices.Contains(names, w.Model) && w.Over(next[w.Model], now) {
				next[w.Model] = w
			}
		}
		maps.DeleteFunc(next, func(_ string, w tidemark.Window) bool { return w.From.Met() && now.After(w.Until) })
		if maps.Equal(next, *old) {
			return nil
		}
		stmt := tidemark.Stmt{SQL: `UPDATE heads SET windows = ? WHERE key = ?`, Args: []any{mustJSON(next), string(s.Key)}, Want: 1}
		if set := s.settings(); s.windowOf(next, set.Model, set.set).Tokens != set.Window {
			stmt.SQL = `UPDATE heads SET windows = ?, prompt = '' WHERE key = ?`
		}
		if err := s.DB.Tx(ctx, []tidemark.Stmt{stmt}); err != nil {
			return fmt.Errorf("store windows of %s: %w", s.Key, err)
		}
		if s.learned.CompareAndSwap(old, &next) { // else somebody else learned something meanwhile
			return s.loadSettings(ctx)
		}
	}
}

// learn takes up the window that a refusal showed, for all conversations.
func (s *Session) learn(ctx context.Context, model string, tokens tidemark.Tokens, from tidemark.WindowFrom) error {
	w := tidemark.Window{Model: s.windowName(model), Tokens: max(tokens, leastSize), From: from}.Holds(s.Runtime.Now())
	if err := s.takeUp(ctx, []tidemark.Window{w}); err != nil {
		return err
	}
	s.Logger.Info("learned a window", "session", s.Key, "model", w.Model, "tokens", w.Tokens, "from", w.From)
	return s.takeUp(ctx, s.pooled(ctx, []tidemark.Window{w}))
}

// refit answers a refusal for the size of a request: it takes up what that says of the window, and makes the view smaller.
// Where no limit is named, a compaction within the window that is known comes first; what is refused after that, or where
// nothing can leave, has half of the window tried, until the request is taken.
func (s *Session) refit(ctx context.Context, r *run, v View, refused tidemark.APIError) error {
	r.refits++
	v.Refused = true
	heavier := r.weigh(&v, refused.Asked)
	switch {
	case tooManyBytes(refused):
		r.trial.bytes = true
		return s.retrySmaller(ctx, r, v)
	case heavier && !s.Budget().Over(v.View) && refused.Limit >= s.settings().Window:
		return nil // what was refused was the room for the reply, which is smaller now
	case refused.Limit > 0:
		return s.shrink(ctx, r, v, refused)
	case r.refits > 1:
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
	if err := s.learn(ctx, s.settings().Model, tokens, from); err != nil {
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

// refusedTool is a definition that the API of a model refused. It is left out for that model, in later lives too.
type refusedTool struct {
	Model string        `json:"model"` // as a window's is named
	Hash  tidemark.Hash `json:"hash"`
	Mark  string        `json:"mark,omitempty"`
	Why   string        `json:"why"`
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
		now[t.Name] = refusedTool{Model: s.windowName(s.settings().Model), Hash: definitionHash(t), Mark: t.Mark, Why: why}
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
func unrefused(tools []tidemark.Tool, refused map[string]refusedTool, model string) []tidemark.Tool {
	if len(refused) == 0 {
		return tools
	}
	return slices.DeleteFunc(tools, func(t tidemark.Tool) bool {
		r, ok := refused[t.Name]
		return ok && r.Model == model && r.Hash == definitionHash(t)
	})
}
