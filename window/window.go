// Package window keeps how many tokens the models of a conversation take: what its agent has from other conversations, what
// the endpoint says, and what refusals showed. What counts is decided by [tidemark.Narrow] and [tidemark.Window.Over].
package window

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Models says how many tokens models take.
type Models interface {
	// Place names the endpoint: what one says of a model is not true of another.
	Place() string
	// Known returns the window that a model's maker names, 0 for one that is not known.
	Known(model string) tidemark.Tokens
	// Window asks the endpoint, no tokens where it does not say. Place and time are not filled in.
	Window(ctx context.Context, model string) (tidemark.Window, error)
}

// Pool is an agent that keeps what all of its conversations learned of windows.
type Pool interface {
	// Windows stores what is learned and returns all that it has.
	Windows(ctx context.Context, learned []tidemark.Window) ([]tidemark.Window, error)
}

// Bounds of finding out a window.
const (
	leastSize = 1_000            // tokens; nothing is made to fit a model that takes less
	nap       = 10 * time.Minute // until what did not answer is asked again
	told      = 8                // the agent takes no more in one call
	wait      = 2 * time.Second  // for all of the answers, while somebody waits for another
)

// Ports are what a keeper is given.
type Ports struct {
	Key     tidemark.Key
	DB      tidemark.DB // with the row of the conversation in the table heads
	Runtime tidemark.Runtime
	Logger  *slog.Logger
	Models  Models // nil: nobody says
	Pool    Pool   // nil: nobody shares

	// InUse returns the models whose windows count, that of the conversation first, and how many tokens are set for that.
	InUse func() (models []string, set tidemark.Tokens)
	// Changed is called when another window counts than before. It may not be nil.
	Changed func(ctx context.Context) error
}

// Keeper keeps the windows of one conversation. Its methods may be called at once.
type Keeper struct {
	Ports
	known atomic.Pointer[map[string]tidemark.Window] // by the place and name of the model; replaced, never changed
	asked atomic.Int64                               // until when nobody is asked, in milliseconds
}

// Read takes up what an earlier life stored; without it nothing is known.
func (k *Keeper) Read(stored []byte) error {
	known := map[string]tidemark.Window{}
	if err := json.Unmarshal(stored, &known); err != nil {
		return fmt.Errorf("read the windows of %s: %w", k.Key, err)
	}
	k.known.Store(&known)
	return nil
}

// Name is how a model is named where models of several endpoints stand together.
func (k *Keeper) Name(model string) string {
	if k.Models == nil {
		return model
	}
	return k.Models.Place() + " " + model
}

// Names are those of the models in use.
func (k *Keeper) Names() (names []string) {
	models, _ := k.InUse()
	for _, m := range models {
		names = append(names, k.Name(m))
	}
	return names
}

// Of is how many tokens a model takes: at most what is set, less where somebody knows better.
func (k *Keeper) Of(model string, set tidemark.Tokens) tidemark.Window {
	return k.of(*k.known.Load(), model, set)
}

func (k *Keeper) of(all map[string]tidemark.Window, model string, set tidemark.Tokens) tidemark.Window {
	maker := tidemark.Tokens(0)
	if k.Models != nil {
		maker = k.Models.Known(model)
	}
	return tidemark.Narrow(set, all[k.Name(model)], maker)
}

// Refresh finds out anew how much the models in use take: from the agent first, which has what other conversations
// learned, then from the endpoint. Whoever does not answer, or does not say, is asked again ten minutes later, and the
// turn goes on.
func (k *Keeper) Refresh(ctx context.Context) {
	now := k.Runtime.Now()
	if k.Models == nil || now.UnixMilli() < k.asked.Load() || len(k.stale(now)) == 0 {
		return
	}
	k.asked.Store(now.Add(nap).UnixMilli())
	limited, stop := k.Runtime.WithTimeout(ctx, wait)
	defer stop()
	if err := k.TakeUp(ctx, k.pooled(limited, k.met())); err != nil {
		k.warn("store windows", err)
	}
	var heard []tidemark.Window
	for _, model := range k.stale(now) {
		w, err := k.Models.Window(limited, model)
		if err != nil {
			k.warn("ask for the window of "+model, err)
		}
		w.Model = k.Name(model)
		if w = w.Holds(now); w.Tokens == 0 { // its last word holds, and another conversation need not ask so soon
			if last := (*k.known.Load())[w.Model]; !last.From.Met() {
				w.Tokens, w.From = last.Tokens, last.From
			}
			w.Until = now.Add(nap)
		}
		heard = append(heard, w)
	}
	if len(heard) == 0 {
		return
	}
	if err := k.TakeUp(ctx, append(heard, k.pooled(limited, heard)...)); err != nil {
		k.warn("store windows", err)
	}
}

// stale are the models in use of whose windows nothing is known, or not any more.
func (k *Keeper) stale(now time.Time) []string {
	known := *k.known.Load()
	models, _ := k.InUse()
	return slices.DeleteFunc(models, func(model string) bool {
		w, ok := known[k.Name(model)]
		return ok && !now.After(w.Until)
	})
}

// met are those that requests of this conversation met, the newest: the agent may have been away when they were learned.
func (k *Keeper) met() (out []tidemark.Window) {
	for _, w := range *k.known.Load() {
		if w.From.Met() {
			out = append(out, w)
		}
	}
	slices.SortFunc(out, func(a, b tidemark.Window) int { return b.Until.Compare(a.Until) })
	return out[:min(len(out), told)]
}

// pooled tells the agent what was learned and returns what it has.
func (k *Keeper) pooled(ctx context.Context, learned []tidemark.Window) []tidemark.Window {
	if k.Pool == nil {
		return nil
	}
	all, err := k.Pool.Windows(ctx, learned)
	if err != nil {
		k.warn("ask the agent for windows", err)
	}
	return all
}

// TakeUp puts in force what was heard of the models in use, where it is surer than what was known. Memory has its share of
// the window, so with another one the prompt is made anew.
func (k *Keeper) TakeUp(ctx context.Context, heard []tidemark.Window) error {
	now, names := k.Runtime.Now(), k.Names()
	for {
		old := k.known.Load()
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
		raw, err := json.Marshal(next)
		if err != nil {
			return err
		}
		stmt := tidemark.Stmt{SQL: `UPDATE heads SET windows = ? WHERE key = ?`, Args: []any{string(raw), string(k.Key)}, Want: 1}
		if models, set := k.InUse(); k.of(next, models[0], set).Tokens != k.of(*old, models[0], set).Tokens {
			stmt.SQL = `UPDATE heads SET windows = ?, prompt = '' WHERE key = ?`
		}
		if err := k.DB.Tx(ctx, []tidemark.Stmt{stmt}); err != nil {
			return fmt.Errorf("store windows of %s: %w", k.Key, err)
		}
		if k.known.CompareAndSwap(old, &next) { // else somebody else learned something meanwhile
			return k.Changed(ctx)
		}
	}
}

// Learn takes up the window that a refusal showed, for all conversations.
func (k *Keeper) Learn(ctx context.Context, model string, tokens tidemark.Tokens, from tidemark.WindowFrom) error {
	w := tidemark.Window{Model: k.Name(model), Tokens: max(tokens, leastSize), From: from}.Holds(k.Runtime.Now())
	if err := k.TakeUp(ctx, []tidemark.Window{w}); err != nil {
		return err
	}
	k.Logger.Info("learned a window", "session", k.Key, "model", w.Model, "tokens", w.Tokens, "from", w.From)
	return k.TakeUp(ctx, k.pooled(ctx, []tidemark.Window{w}))
}

// warn logs what went wrong and fails nothing.
func (k *Keeper) warn(what string, err error) {
	k.Logger.Warn(what, "session", k.Key, "err", err)
}
