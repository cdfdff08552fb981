// Package setup turns a configuration into what sessions, agents and models are opened with, the
// same on every host. It opens no store itself: a host adds its ports. Begin with [Session] and [Agent].
package setup

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/provider"
	"github.com/tidemark-ai/tidemark/provider/offline"
	"github.com/tidemark-ai/tidemark/reset"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/room/anatomy"
	"github.com/tidemark-ai/tidemark/room/approvals"
	"github.com/tidemark-ai/tidemark/room/delegation"
	episodic "github.com/tidemark-ai/tidemark/room/episodes"
	"github.com/tidemark-ai/tidemark/room/errand"
	"github.com/tidemark-ai/tidemark/room/occasion"
	"github.com/tidemark-ai/tidemark/room/outbound"
	"github.com/tidemark-ai/tidemark/room/pack"
	"github.com/tidemark-ai/tidemark/room/pager"
	"github.com/tidemark-ai/tidemark/room/reflection"
	"github.com/tidemark-ai/tidemark/room/replay"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/room/selfcheck"
	"github.com/tidemark-ai/tidemark/room/sittings"
	"github.com/tidemark-ai/tidemark/room/snapshots"
	"github.com/tidemark-ai/tidemark/room/spool"
	"github.com/tidemark-ai/tidemark/room/task"
	"github.com/tidemark-ai/tidemark/room/toolset"
	"github.com/tidemark-ai/tidemark/room/vectors"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/window"
)

// Provider wires the model that a resolved configuration names. Retry only bounds a call in time: the
// session itself tries again.
func Provider(c *config.Config, rt tidemark.Runtime, network http.RoundTripper) tidemark.Provider {
	var p tidemark.Provider
	switch m := c.Model; m.Provider {
	case config.Anthropic:
		p = &provider.Anthropic{Key: c.Secrets.Anthropic.Reveal(), BaseURL: m.BaseURL, Model: m.ID, Transport: network, Runtime: rt, MaxTokens: m.MaxTokens}
	case config.OpenAI:
		p = &provider.OpenAI{Key: c.Secrets.OpenAI.Reveal(), BaseURL: m.BaseURL, Model: m.ID, Transport: network, Runtime: rt, MaxTokens: m.MaxTokens}
	case config.WorkersAI:
		w := provider.NewWorkersAI(m.ID, binding(network), rt)
		w.MaxTokens = m.MaxTokens
		p = w
	default:
		return offline.Model{}
	}
	return &provider.Retry{Provider: p, Runtime: rt, Tries: 1, Total: milliseconds(c.Timeouts.LLMMs)}
}

// Windows wires what says how many tokens models take, nil for the offline model, which takes any number.
func Windows(c *config.Config, network http.RoundTripper) window.Models {
	if c.Model.Provider == config.Offline {
		return nil
	}
	return Models(c, network)
}

// Models wires what lists the models of the endpoint.
func Models(c *config.Config, network http.RoundTripper) *provider.Models {
	m := &provider.Models{BaseURL: c.Model.BaseURL, Transport: network}
	switch c.Model.Provider {
	case config.Anthropic:
		m.Anthropic, m.Key = true, c.Secrets.Anthropic.Reveal()
	case config.OpenAI:
		m.Key = c.Secrets.OpenAI.Reveal()
	case config.WorkersAI: // the binding lists nothing
		m.BaseURL, m.Transport = config.WorkersAI, nil
	}
	return m
}

// Window is how many tokens of a model are used before any conversation learned more: the window that is set, less where its
// maker names less.
func Window(c *config.Config) tidemark.Window {
	return tidemark.Narrow(c.Model.ContextWindow, tidemark.Window{}, provider.KnownWindow(c.Model.ID))
}

// binding gives the way to Workers AI, nil on a host that has none: the provider then says so.
func binding(network http.RoundTripper) http.RoundTripper {
	if t, ok := network.(interface {
		AI(binding string) http.RoundTripper
	}); ok {
		return t.AI("AI")
	}
	return nil
}

// Embedder wires what makes vectors for recall, nil where that is off.
func Embedder(c *config.Config, rt tidemark.Runtime, network http.RoundTripper) vectors.Embedder {
	e := &provider.Embeddings{Model: c.Recall.EmbeddingModel, BaseURL: c.Recall.EmbeddingURL, Transport: network, Runtime: rt}
	switch c.Recall.Embeddings {
	case config.OpenAI:
		e.Model = cmp.Or(e.Model, config.DefaultEmbeddingModel)
		if e.Key = c.Secrets.Embedding.Reveal(); e.Key == "" && e.BaseURL == "" {
			e.Key = c.Secrets.OpenAI.Reveal()
		}
	case config.WorkersAI:
		e.Model, e.WorkersAI = cmp.Or(e.Model, config.DefaultWorkersAIEmbedding), true
		e.Key = c.Secrets.Embedding.Reveal()
		if e.BaseURL == "" {
			e.Transport = binding(network)
		}
	default:
		return nil
	}
	return e
}

// Agent returns what an agent is opened with; the host adds the ports.
func Agent(c *config.Config, name string) (agent.Config, error) {
	zone, err := c.Agent(name).Zone()
	if err != nil {
		return agent.Config{}, err
	}
	out := agent.Config{Name: name, Zone: zone, Sharing: memory.Sharing(c.Memory.Sharing),
		Budget:    c.Memory.PromptTokens,
		Reconcile: c.Recall.Reconcile == "model", ModelName: cmp.Or(c.Compaction.Model, c.Model.ID),
		Digest: c.Memory.Digest, DigestLines: c.Memory.DigestLines}
	scheduling(c, &out)
	return out, nil
}

// gates says who decides on turns, by recall.reconcile: a model is never asked about them.
var gates = map[string]memory.Gate{"size": memory.BySize{}, "model": memory.BySize{}}

// Session returns the settings of a session.
func Session(c *config.Config, key tidemark.Key) (session.Settings, error) {
	a := c.Agent(key.Agent())
	zone, err := a.Zone()
	if err != nil {
		return session.Settings{}, err
	}
	p := c.Reset(key)
	window := c.Model.ContextWindow
	if key.Channel() == clients { // its history is the client's: nothing ends it here
		p = config.Policy{Mode: "manual"}
		window = c.Proxy.Window
	}
	if key.Channel() == tidemark.ChannelDelegate { // it is over when it has answered: an alarm would only cost
		p = config.Policy{Mode: "manual"}
	}
	policy, err := reset.Parse(reset.Settings{Mode: p.Mode, AtHour: p.AtHour, IdleMinutes: p.IdleMinutes, Zone: p.Zone}, zone)
	if err != nil {
		return session.Settings{}, err
	}
	return session.Settings{
		Model: c.Model.ID, Window: window, MaxTokens: c.Model.MaxTokens, System: a.SystemPrompt,
		Reserve: c.Compaction.ReserveTokens, Keep: c.Compaction.KeepRecent,
		NoCompaction: !c.Compaction.Enabled, NoMemories: !c.Compaction.ExtractMemories, SummaryModel: c.Compaction.Model,
		Reset: policy, Zone: zone, MaxRounds: c.Session.MaxRounds,
		PackTokens:    packTokens(c),
		Gate:          gates[c.Recall.Reconcile],
		ArtifactChars: cmp.Or(c.Storage.ArtifactChars, -1), // there the zero value is the default
		ToolTimeout:   milliseconds(c.Timeouts.ToolMs), TurnTimeout: milliseconds(c.Timeouts.TurnMs),
	}, nil
}

// taskStates are the values of recall.taskState.
var taskStates = map[string]task.State{"on": task.On, "off": task.Off}

// Rooms returns what makes the rooms of a session, which may delegate to some others.
func Rooms(c *config.Config, rt tidemark.Runtime, network http.RoundTripper, courier tidemark.Courier, to delegation.Children) []room.Maker {
	delegated := delegates(c.Delegation, to)
	// What waits to be sent goes on first. The tools of the others stand in this order, in which prompts are cached.
	out := append([]room.Maker{outbound.Make(courier), search.Make}, snapshots.Makers()...)
	out = append(out, anatomy.Make, selfcheck.Make, occasion.Make(courier != nil), task.Make(taskStates[c.Recall.TaskState]), pack.Make, spool.Make, toolset.Make, pager.Make, episodic.Make, replay.Make,
		approvals.Make(approvals.Config{Policy: c.Approval.Policy(), Expiry: time.Duration(c.Approval.ExpiryMinutes) * time.Minute,
			Errand: cmp.Or(delegated.Timeout, delegation.DefaultTimeout)}), delegation.Make(delegated), errand.Make)
	if c.Memory.Digest {
		out = append(out, sittings.Make)
	}
	if c.Recall.Reflection {
		out = append(out, reflection.Make)
	}
	if e := Embedder(c, rt, network); e != nil {
		out = append(out, vectors.Make(e))
	}
	return out
}

// packTokens is recall.packTokens as a session has it: there the zero value is the default.
func packTokens(c *config.Config) tidemark.Tokens {
	if c.Recall.PackTokens == 0 {
		return -1
	}
	return c.Recall.PackTokens
}

// Strategies returns what makes a session's context smaller, in the order in which they plan.
func Strategies(c *config.Config) []compaction.Strategy {
	var out []compaction.Strategy
	active := func(s compaction.Strategy) bool { return slices.Contains(c.Compaction.Strategies, s.Name()) }
	if active(&compaction.Paging{}) {
		out = append(out, paged(c.Compaction.Paging))
	}
	if active(&compaction.Episodes{}) {
		out = append(out, evictor(c.Compaction))
	}
	for _, s := range []compaction.Strategy{compaction.Pointer{}, compaction.Summary{}} {
		if active(s) {
			out = append(out, s)
		}
	}
	return out
}

// paged is the strategy paging, one for each session. The settings were checked when they were read.
func paged(p config.Paging) *compaction.Paging {
	out := &compaction.Paging{Policy: p.Policy, Tau: p.Tau, MinBytes: cmp.Or(p.MinBytes, -1), Zones: p.Percents(),
		Alone: !p.Cooperate} // there the zero value is the default
	if rows, err := p.Rows(); err == nil && len(rows) > 0 {
		out.Tools = paging.DefaultTools().With(rows)
	}
	return out
}

// evictor is the strategy episodes, one for each session. The settings were checked when they were read.
func evictor(c config.Compaction) *compaction.Episodes {
	out := &compaction.Episodes{LowWater: c.Episodes.LowWater, Exact: c.Episodes.Count == config.CountExact}
	if b, err := episodes.ParseBudget(c.Episodes.Budget); err == nil {
		out.Budget = b
	}
	files := paging.DefaultTools()
	if rows, err := c.Paging.Rows(); err == nil { // what is known of a file tool holds for both strategies
		files = files.With(rows)
	}
	out.Tools = episodes.DefaultTools(files)
	if levels, err := c.Episodes.Levels(); err == nil {
		out.Tools = out.Tools.With(levels)
	}
	return out
}

func milliseconds(n int) time.Duration { return time.Duration(n) * time.Millisecond }
