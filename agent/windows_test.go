package agent_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/memory"
)

// TestWindowsAtOnce: of two conversations that tell at once neither loses what is surer.
func TestWindowsAtOnce(t *testing.T) {
	for _, known := range []tidemark.Tokens{-1, 16_384} {
		w := newWorld(t)
		tell := func(a *agent.Agent, tokens tidemark.Tokens, from tidemark.WindowFrom) {
			t.Helper()
			if _, err := a.Windows(t.Context(), []tidemark.Window{tidemark.Window{Model: "m", Tokens: tokens, From: from}.Holds(w.cfg.Runtime.Now())}); err != nil {
				t.Fatal(err)
			}
		}
		if known > 0 {
			tell(w.Agent, known, tidemark.WindowEndpoint)
		}
		b := &between{DB: w.cfg.DB, query: "FROM agent_windows"}
		c := w.cfg
		c.DB = b
		late, err := agent.New(c)
		if err != nil {
			t.Fatal(err)
		}
		b.then = func() { tell(w.Agent, 8192, tidemark.WindowRefused) }
		tell(late, max(known+1, 0), tidemark.WindowEndpoint)
		if got, err := w.Windows(t.Context(), nil); err != nil || b.then != nil || len(got) != 1 || got[0].Tokens != 8192 {
			t.Errorf("of a model with %d tokens before it has %+v, %v", known, got, err)
		}
	}
}

// TestWindowsAreNews: a conversation that runs is told of the windows of its own models that requests of others met, beside what
// memory has.
func TestWindowsAreNews(t *testing.T) {
	w := newWorld(t)
	at := w.cfg.Runtime.Now()
	var told []tidemark.Window
	for model, from := range map[string]tidemark.WindowFrom{"mine": tidemark.WindowRefused, "also mine": tidemark.WindowEndpoint, "theirs": tidemark.WindowHalved} {
		told = append(told, tidemark.Window{Model: model, Tokens: 8192, From: from}.Holds(at))
	}
	if _, err := w.Windows(t.Context(), told); err != nil {
		t.Fatal(err)
	}
	r := remoteOf(w, w.Peer)
	for _, models := range [][]string{nil, {"mine", "also mine"}} {
		n, err := r.News(t.Context(), scope(t, owners), memory.Since{Now: at, Models: models})
		if err != nil || len(n.Windows) != len(models)/2 || len(models) > 0 && (n.Windows[0].Model != "mine" || n.Windows[0].Tokens != 8192) {
			t.Errorf("of %q it is told %+v, %v", models, n.Windows, err)
		}
	}
}

// TestWindows: what conversations learned of windows is kept for all, from the agent itself and from one in another
// object; what is surer wins, and nothing is kept for ever.
func TestWindows(t *testing.T) {
	w := newWorld(t)
	r := remoteOf(w, w.Peer)
	at := w.cfg.Runtime.Now()
	told := func(tokens tidemark.Tokens, from tidemark.WindowFrom) tidemark.Window {
		return tidemark.Window{Model: "http://local/v1 m", Tokens: tokens, From: from}.Holds(at)
	}
	older := func(tokens tidemark.Tokens, from tidemark.WindowFrom) tidemark.Window {
		return tidemark.Window{Model: "http://local/v1 m", Tokens: tokens, From: from}.Holds(at.Add(-20 * 24 * time.Hour))
	}
	other := tidemark.Window{Model: "http://local/v1 other", Tokens: 1000, From: tidemark.WindowEndpoint}.Holds(at)
	if _, err := r.Windows(t.Context(), []tidemark.Window{other}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tells tidemark.Window
		want  tidemark.Tokens
	}{
		{told(0, tidemark.WindowEndpoint), 0},
		{told(40_000, tidemark.WindowTrained), 40_000},
		{told(32_000, tidemark.WindowEndpoint), 32_000},
		{told(40_000, tidemark.WindowTrained), 32_000}, // it runs with less
		{told(0, tidemark.WindowEndpoint), 32_000},     // it does not say, this time
		{told(16_000, tidemark.WindowHalved), 16_000},
		{told(20_000, tidemark.WindowHalved), 16_000},
		{told(32_000, tidemark.WindowEndpoint), 16_000}, // what it refuses says more
		{told(8192, tidemark.WindowRefused), 8192},
		{told(4000, tidemark.WindowHalved), 4000},
		{told(8192, tidemark.WindowRefused), 8192},
		{older(16_384, tidemark.WindowRefused), 8192}, // a conversation that was away tells what is over
		{older(4000, tidemark.WindowHalved), 8192},
	} {
		got, err := r.Windows(t.Context(), []tidemark.Window{c.tells})
		if err != nil {
			t.Fatal(err)
		}
		same, err := w.Windows(t.Context(), nil)
		for _, list := range [][]tidemark.Window{got, same} {
			slices.SortFunc(list, func(a, b tidemark.Window) int { return strings.Compare(a.Model, b.Model) })
		}
		if err != nil || fmt.Sprint(same) != fmt.Sprint(got) || len(got) > 2 {
			t.Fatalf("told %v, the agent has %v, %v", got, same, err)
		}
		for _, x := range got {
			if x.Model == other.Model && x.Tokens != other.Tokens || x.Model != other.Model && x.Tokens != c.want {
				t.Errorf("after %d by %s: %+v, want %d", c.tells.Tokens, c.tells.From, x, c.want)
			}
		}
	}
	w.clock.move(31 * 24 * time.Hour)
	if got, err := w.Windows(t.Context(), nil); err != nil || len(got) != 0 {
		t.Errorf("a month later %v, %v", got, err)
	}
	for _, bad := range []tidemark.Window{{Tokens: 5}, {Model: "m", Tokens: -1}, {Model: "m", Tokens: 1 << 60}} {
		if _, err := r.Windows(t.Context(), []tidemark.Window{bad}); !errors.Is(err, tidemark.ErrInvalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	for i := range 300 {
		x := tidemark.Window{Model: fmt.Sprint("m", i), Tokens: 5000, From: tidemark.WindowRefused}.Holds(at)
		x.Until = x.Until.Add(time.Duration(i) * time.Hour * 24)
		if _, err := r.Windows(t.Context(), []tidemark.Window{x}); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := w.Windows(t.Context(), nil); err != nil || len(got) > 200 {
		t.Errorf("%d windows are kept, %v", len(got), err)
	}
}
