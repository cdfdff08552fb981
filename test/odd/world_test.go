package odd

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/provider"
	"github.com/tidemark-ai/tidemark/setup"
	"github.com/tidemark-ai/tidemark/tidemarktest"
	"github.com/tidemark-ai/tidemark/toolbox"
	"github.com/tidemark-ai/tidemark/window"
)

// world is an agent with its conversations in one database, and the network.
type world struct {
	t     *testing.T
	net   *api
	db    *native.DB
	blobs *tidemarktest.Blobs
	rt    *tidemarktest.Runtime
	agent *agent.Agent
	ask   exchange
	boxes [2]tidemark.Toolbox // the second has very many tools
	talks []*talk
}

// exchange is a provider that hands each request to the API that has its model, and knows their windows.
type exchange struct {
	providers map[dialect]tidemark.Provider
	thinker   tidemark.Provider
	lists     map[dialect]*provider.Models
}

var _ window.Models = exchange{}

// Stream implements [tidemark.Provider].
func (e exchange) Stream(ctx context.Context, req tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	m := modelNamed(req.Model)
	if m.thinks {
		return e.thinker.Stream(ctx, req)
	}
	return e.providers[m.dialect].Stream(ctx, req)
}

// Place implements [window.Models].
func (exchange) Place() string { return "the network" }

// Known implements [window.Models].
func (exchange) Known(string) tidemark.Tokens { return 0 }

// Window implements [window.Models].
func (e exchange) Window(ctx context.Context, name string) (tidemark.Window, error) {
	l := e.lists[modelNamed(name).dialect]
	if l == nil {
		return tidemark.Window{}, nil
	}
	return l.Window(ctx, name)
}

// configured is a configuration with some settings.
func configured(t *testing.T, doc string, environ ...string) *config.Config {
	t.Helper()
	c, err := config.Load("tidemark.jsonc", []byte(doc), environ)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newWorld(t *testing.T, conversations int, r *rand.Rand) *world {
	t.Helper()
	w := &world{t: t, net: newAPI(t), blobs: tidemarktest.NewBlobs(), rt: tidemarktest.NewRuntime(t)}
	var err error
	if w.db, err = native.OpenDB(":memory:"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.db.Close(); err != nil {
			t.Error(err)
		}
	})
	if w.agent, err = agent.New(agent.Config{DB: w.db, Blobs: w.blobs, Runtime: w.rt}); err != nil {
		t.Fatal(err)
	}
	speak := configured(t, `{"model":{"provider":"anthropic","id":"messages-200k"}}`, "ANTHROPIC_API_KEY=key")
	write := configured(t, `{"model":{"provider":"openai","id":"chat-200k"}}`, "OPENAI_API_KEY=key")
	bound := configured(t, `{"model":{"provider":"workers-ai","id":"workers-24k"}}`)
	w.ask = exchange{
		providers: map[dialect]tidemark.Provider{messages: setup.Provider(speak, w.rt, w.net), chat: setup.Provider(write, w.rt, w.net), workers: setup.Provider(bound, w.rt, w.net)},
		thinker:   &provider.Retry{Provider: &provider.Anthropic{Key: "key", Transport: w.net, Runtime: w.rt, Thinking: 2048}, Runtime: w.rt, Tries: 1},
		lists:     map[dialect]*provider.Models{messages: setup.Models(speak, w.net), chat: setup.Models(write, w.net)},
	}
	for i, more := range []int{0, 150} {
		w.boxes[i] = toolbox.New(toolbox.Config{Runtime: w.rt, Peers: []string{"*"},
			Servers: []toolbox.Server{{Name: server, Source: bazaar{more, w.net}, TrustHints: true}}})
	}
	for i := range conversations {
		w.talks = append(w.talks, w.newTalk(i, rand.New(rand.NewPCG(r.Uint64(), uint64(i)))))
	}
	return w
}

// strategies are those of the conversations, in turn.
var strategies = []string{`"summary"`, `"pointer"`, `"paging","summary"`, `"episodes","summary"`, `"summary"`, `"paging","episodes","pointer","summary"`, `"pointer","summary"`, `"paging","pointer"`, `"episodes","pointer"`}

func (w *world) newTalk(i int, r *rand.Rand) *talk {
	c := configured(w.t, fmt.Sprintf(`{"model":{"provider":"offline","id":%q},"compaction":{"strategies":[%s]},"session":{"maxRounds":12}}`, models[i%len(models)].name, strategies[i%len(strategies)]))
	if i%5 == 3 { // its summaries are written by a model with a small window
		c.Compaction.Model = models[i/5%2].name
	}
	x := &talk{w: w, name: fmt.Sprintf("m%d", i), config: c, r: r, box: w.boxes[0], models: models}
	if i == 7 { // definitions of so many tools fill a small window by themselves
		x.box, x.models = w.boxes[1], models[6:]
	}
	switch {
	case i == 0:
		x.key, x.owner = "agent:main:main", true
	case i%3 == 0:
		x.key = tidemark.Key(fmt.Sprintf("agent:main:whatsapp:dm:peer%d", i))
	default:
		x.key, x.owner = tidemark.Key(fmt.Sprintf("agent:main:web:dm:%d", i)), true
	}
	x.open()
	return x
}

// rest waits until nothing is in work.
func (w *world) rest() error {
	const most = 24 * time.Hour // what turns may wait for in all
	ctx, stop := context.WithTimeout(w.t.Context(), most)
	defer stop()
	return w.rt.Wait(ctx)
}

// wake does what is due for the agent.
func (w *world) wake() error {
	if _, err := w.agent.Wake(w.t.Context()); err != nil {
		return fmt.Errorf("wake the agent: %w", err)
	}
	return w.rest()
}
