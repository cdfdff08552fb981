package window

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host/hosttest"
)

// endpoint says what models take.
type endpoint struct {
	known, tells map[string]tidemark.Tokens
	asked        []string
}

func (*endpoint) Place() string                        { return "here" }
func (w *endpoint) Known(model string) tidemark.Tokens { return w.known[model] }
func (w *endpoint) Window(_ context.Context, model string) (tidemark.Window, error) {
	w.asked = append(w.asked, model)
	return tidemark.Window{Tokens: w.tells[model], From: tidemark.WindowEndpoint}, nil
}

// pool is an agent that keeps windows.
type pool struct {
	has  []tidemark.Window
	told [][]tidemark.Window
	fail error
}

func (k *pool) Windows(_ context.Context, learned []tidemark.Window) ([]tidemark.Window, error) {
	k.told = append(k.told, learned)
	return k.has, k.fail
}

// rig is a keeper with a neighbour in its table, which keeps what it has.
type rig struct {
	*Keeper
	t       *testing.T
	now     time.Time
	in      []string // models in use
	changed int
}

type clock struct {
	tidemark.Runtime
	r *rig
}

func (c clock) Now() time.Time { return c.r.now }

const neighbour = `{"here m":{"Tokens":1}}`

func newRig(t *testing.T, is Models, agent Pool, models ...string) *rig {
	t.Helper()
	r := &rig{t: t, now: time.UnixMilli(1_700_000_000_000).UTC(), in: models}
	db := hosttest.DB(t)
	r.Keeper = &Keeper{Ports: Ports{Key: "own", DB: db, Runtime: clock{hosttest.Runtime(t), r}, Logger: slog.New(slog.DiscardHandler), Models: is, Pool: agent,
		InUse:   func() ([]string, tidemark.Tokens) { return slices.Clone(r.in), 100_000 },
		Changed: func(context.Context) error { r.changed++; return nil }}}
	for _, sql := range []string{`CREATE TABLE heads(key TEXT PRIMARY KEY, windows TEXT NOT NULL, prompt TEXT NOT NULL)`,
		`INSERT INTO heads VALUES('own', '{}', 'frozen'), ('other', '` + neighbour + `', 'frozen')`} {
		if err := db.Tx(t.Context(), []tidemark.Stmt{{SQL: sql}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Read([]byte("{}")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if windows, prompt := r.row("other"); windows != neighbour || prompt != "frozen" {
			t.Errorf("the neighbour has %s and %s", windows, prompt)
		}
	})
	return r
}

func (r *rig) row(key string) (windows, prompt string) {
	r.t.Helper()
	rows, err := r.DB.Query(context.Background(), `SELECT windows, prompt FROM heads WHERE key = ? LIMIT 1`, key)
	if err != nil || len(rows) != 1 {
		r.t.Fatal(err)
	}
	return rows[0].Text(0), rows[0].Text(1)
}

// told gives windows as name=tokens from, sorted.
func list(windows []tidemark.Window) string {
	var out []string
	for _, w := range windows {
		out = append(out, fmt.Sprintf("%s=%d %.4s", w.Model, w.Tokens, string(w.From)))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func (k *Keeper) all() []tidemark.Window { return slices.Collect(maps.Values(*k.known.Load())) }

// TestRefresh: the agent is told what requests met and asked what it has, then the endpoint is asked for what is not known of
// the models in use; what it says is told to the agent, and nobody is asked again for a while.
func TestRefresh(t *testing.T) {
	is, agent := &endpoint{tells: map[string]tidemark.Tokens{"big": 50_000}}, &pool{}
	r := newRig(t, is, agent, "big", "small")
	agent.has = []tidemark.Window{{Model: "here small", Tokens: 8_000, From: tidemark.WindowEndpoint, Until: r.now.Add(time.Hour)}, {Model: "here other", Tokens: 1, From: tidemark.WindowEndpoint, Until: r.now.Add(time.Hour)}}
	r.Refresh(t.Context())
	if got := strings.Join(is.asked, " "); got != "big" { // the agent knew the other
		t.Errorf("asked for %q", got)
	}
	if r.Of("big", 100_000).Tokens != 50_000 || r.Of("small", 100_000).Tokens != 8_000 || r.Of("big", 40_000).Tokens != 40_000 || r.changed != 2 {
		t.Errorf("it uses %+v, %+v, changed %d times", r.Of("big", 100_000), r.Of("small", 100_000), r.changed)
	}
	if len(agent.told) != 2 || len(agent.told[0]) != 0 || list(agent.told[1]) != "here big=50000 endp" {
		t.Errorf("the agent was told %+v", agent.told)
	}
	stored, prompt := r.row("own")
	if prompt != "" || list(r.all()) != "here big=50000 endp, here small=8000 endp" {
		t.Errorf("the prompt is %q, known are %s", prompt, list(r.all()))
	}
	later := newRig(t, is, agent, "big")
	if err := later.Read([]byte(stored)); err != nil || list(later.all()) != list(r.all()) {
		t.Errorf("a later life knows %s of %s, %v", list(later.all()), stored, err)
	}
	if err := later.Read([]byte("[")); err == nil {
		t.Error("what cannot be read is read")
	}
	is.tells = nil
	for _, c := range []struct {
		pass  time.Duration
		asked string
	}{{0, "big"}, {time.Hour, "big"}, {time.Millisecond, "big big small"}, {10*time.Minute - time.Millisecond, "big big small"}, {2 * time.Millisecond, "big big small big small"}} {
		r.now = r.now.Add(c.pass)
		r.Refresh(t.Context())
		if got := strings.Join(is.asked, " "); got != c.asked {
			t.Errorf("%s later asked for %q, want %q", c.pass, got, c.asked)
		}
	}
	if r.Of("big", 100_000).Tokens != 50_000 || r.Of("small", 100_000).Tokens != 8_000 {
		t.Errorf("its last word holds no more: %s", list(r.all()))
	}
	n := len(agent.told)
	r.Models = nil
	r.now = r.now.Add(time.Hour)
	r.Refresh(t.Context())
	if len(agent.told) != n || r.Name("big") != "big" || !slices.Equal(r.Names(), []string{"big", "small"}) {
		t.Errorf("without an endpoint the agent is asked %d times, %s", len(agent.told)-n, r.Name("big"))
	}
}

// TestMet: what requests met is told to an agent that was away, the newest eight; where the endpoint says nothing, it is not
// taken for its word, and it is forgotten when it is old.
func TestMet(t *testing.T) {
	agent := &pool{fail: errors.New("away")}
	r := newRig(t, &endpoint{}, agent, "m")
	known := map[string]tidemark.Window{"here told": {Model: "here told", Tokens: 5, From: tidemark.WindowEndpoint, Until: r.now.Add(time.Hour)}}
	for i := range 10 {
		name := fmt.Sprintf("here m%d", i)
		known[name] = tidemark.Window{Model: name, Tokens: 9_000, From: tidemark.WindowRefused, Until: r.now.Add(time.Duration(i) * time.Hour)}
	}
	r.known.Store(&known)
	own := r.met()
	if len(own) != 8 || own[0].Model != "here m9" || own[7].Model != "here m2" {
		t.Errorf("its own are %s", list(own))
	}
	if got := r.pooled(t.Context(), own); got != nil || len(agent.told) != 1 || len(agent.told[0]) != 8 {
		t.Errorf("an agent that is away has %+v, was told %d times", got, len(agent.told))
	}
	r.now = r.now.Add(3*time.Hour + time.Millisecond)
	heard := func(model string, tokens tidemark.Tokens, from tidemark.WindowFrom, holds time.Duration) []tidemark.Window {
		return []tidemark.Window{{Model: model, Tokens: tokens, From: from, Until: r.now.Add(holds)}}
	}
	if err := r.TakeUp(t.Context(), heard("here m", 7_000, tidemark.WindowEndpoint, time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got := list(r.all()); got != "here m4=9000 refu, here m5=9000 refu, here m6=9000 refu, here m7=9000 refu, here m8=9000 refu, here m9=9000 refu, here m=7000 endp, here told=5 endp" {
		t.Errorf("known are %s", got)
	}
	before, changed := r.all(), r.changed
	if err := r.TakeUp(t.Context(), heard("here other", 3_000, tidemark.WindowRefused, time.Hour)); err != nil || r.changed != changed || list(r.all()) != list(before) {
		t.Errorf("what is of no model in use is taken up: %s, %v", list(r.all()), err)
	}
	for after, want := range map[time.Duration]int{0: 0, time.Hour: 0, time.Hour + time.Nanosecond: 1} {
		if got := r.stale(r.now.Add(after)); len(got) != want {
			t.Errorf("%s later %q are not known", after, got)
		}
	}
	if err := r.DB.Tx(t.Context(), []tidemark.Stmt{{SQL: `UPDATE heads SET prompt = 'frozen' WHERE key = 'own'`}}); err != nil {
		t.Fatal(err)
	}
	err := r.TakeUp(t.Context(), heard("here m", 7_000, tidemark.WindowRefused, 2*time.Hour))
	if _, prompt := r.row("own"); err != nil || prompt != "frozen" || r.Of("m", 100_000).From != tidemark.WindowRefused {
		t.Errorf("a window of the same size makes the prompt anew: %v, %q", err, prompt)
	}
	agent.fail = nil
	agent.has = heard("here m", 6_000, tidemark.WindowRefused, 30*time.Hour)
	if err := r.Learn(t.Context(), "m", 6_500, tidemark.WindowHalved); err != nil || r.Of("m", 100_000).Tokens != 6_000 || list(agent.told[len(agent.told)-1]) != "here m=6500 halv" {
		t.Errorf("learned %+v, told %+v, %v", r.Of("m", 100_000), agent.told[len(agent.told)-1], err)
	}
	if err := r.Learn(t.Context(), "m", 5, tidemark.WindowRefused); err != nil || list(agent.told[len(agent.told)-1]) != "here m=1000 refu" {
		t.Errorf("told %+v, %v", agent.told[len(agent.told)-1], err)
	}
}
