package agent

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// PeerPath is where an agent's object answers the objects of its sessions. A host must not let
// requests from outside reach it: see [Agent.Peer].
const PeerPath = "/internal/agent/"

const (
	peerTimeout = 30 * time.Second
	recallTime  = askTime + 4*time.Second // of a session's question to its agent, which waits for others
)

// Remote is an agent that lives in an object of its own, as a session sees it. Everything that it is
// asked may be asked twice.
type Remote struct {
	Name      string
	Transport http.RoundTripper // reaches the object of that name
	Runtime   tidemark.Runtime
	// NoSchedules as in the agent's [Config]: it says what [Remote.Tools] lists.
	NoSchedules bool
}

// What is asked and answered of more than one value.
type (
	scoped[Q any] struct {
		Scope tidemark.Scope `json:"scope"`
		Ask   Q              `json:"ask"`
	}
	prompting struct {
		Now  time.Time       `json:"now"`
		Most tidemark.Tokens `json:"most,omitempty"` // 0: the agent's own budget
	}
	prompted struct {
		Text string      `json:"text,omitempty"`
		Mark memory.Mark `json:"mark"`
	}
	reported struct {
		Info     tidemark.SessionInfo `json:"info"`
		Archives []archive.Info       `json:"archives,omitempty"`
	}
)

// Peer answers what the objects of sessions ask through a [Remote]: the methods of that name. It checks no token: the
// host must not let requests from outside come here.
func (a *Agent) Peer(w http.ResponseWriter, r *http.Request) {
	host.Serve(w, r, strings.TrimPrefix(r.URL.Path, PeerPath), map[string]host.Answer{
		"prompt": host.Answering(func(ctx context.Context, q scoped[prompting]) (out prompted, err error) {
			if q.Ask.Most == 0 {
				q.Ask.Most = a.cfg.Budget
			}
			out.Text, out.Mark, err = a.PromptWithin(ctx, q.Scope, q.Ask.Now, q.Ask.Most)
			return out, err
		}),
		"news": host.Answering(func(ctx context.Context, q scoped[memory.Since]) (memory.News, error) {
			return a.News(ctx, q.Scope, q.Ask)
		}),
		"call": host.Answering(func(ctx context.Context, q scoped[tidemark.Block]) (tidemark.Block, error) {
			return a.Call(ctx, q.Scope, q.Ask), nil
		}),
		"recall": host.Answering(func(ctx context.Context, q scoped[recall.Ask]) (recall.Answer, error) {
			return a.Recall(ctx, q.Scope.Key.Scope(), q.Ask) // by the key, whatever else it says
		}),
		"report":    host.Obeying(func(ctx context.Context, q reported) error { return a.Report(ctx, q.Info, q.Archives) }),
		"names":     host.Answering(func(ctx context.Context, _ any) ([]string, error) { return a.Names(ctx) }),
		"name":      host.Obeying(a.addName),
		"remember":  host.Obeying(a.Remember),
		"episodes":  host.Obeying(a.Sittings),
		"snapshots": host.Obeying(a.Snapshots),
		"question":  host.Obeying(a.Question),
		"ran":       host.Obeying(a.Ran),
		"asked":     host.Answering(a.Asked),
		"answer":    host.Answering(a.Answer),
		"windows":   host.Answering(a.Windows),
		"digests":   host.Answering(a.Digests),
	})
}

func ask[A any](ctx context.Context, r *Remote, what string, q any) (A, error) {
	ctx, cancel := r.Runtime.WithTimeout(ctx, peerTimeout)
	defer cancel()
	out, err := host.Call[A](ctx, r.Transport, "http://agent"+PeerPath+what, q)
	if err != nil {
		return out, fmt.Errorf("ask agent %s to %s: %w", r.Name, what, err)
	}
	return out, nil
}

func (r *Remote) tell(ctx context.Context, what string, q any) error {
	_, err := ask[any](ctx, r, what, q)
	return err
}

// Prompt asks for persona, instructions and memory, see [Agent.Prompt].
func (r *Remote) Prompt(ctx context.Context, scope tidemark.Scope, now time.Time) (string, error) {
	text, _, err := r.PromptWithin(ctx, scope, now, 0)
	return text, err
}

// PromptWithin asks for at most so many tokens, see [Agent.PromptWithin]. With an error, it is what could be read.
func (r *Remote) PromptWithin(ctx context.Context, scope tidemark.Scope, now time.Time, most tidemark.Tokens) (string, memory.Mark, error) {
	out, err := ask[prompted](ctx, r, "prompt", scoped[prompting]{scope, prompting{now, most}})
	return out.Text, out.Mark, err
}

// News asks what memory has that a prompt was made without, see [Agent.News].
func (r *Remote) News(ctx context.Context, scope tidemark.Scope, since memory.Since) (memory.News, error) {
	return ask[memory.News](ctx, r, "news", scoped[memory.Since]{scope, since})
}

// Remember stores an extraction, see [Agent.Remember].
func (r *Remote) Remember(ctx context.Context, x tidemark.Extraction) error {
	return r.tell(ctx, "remember", x)
}

// Report brings the directory and the archive index up to date, see [Agent.Report].
func (r *Remote) Report(ctx context.Context, info tidemark.SessionInfo, archives []archive.Info) error {
	return r.tell(ctx, "report", reported{info, archives})
}

// Sittings stores what a session tells of its sittings, see [Agent.Sittings].
func (r *Remote) Sittings(ctx context.Context, sittings []memory.Sitting) error {
	return r.tell(ctx, "episodes", sittings)
}

// Snapshots stores what a session tells of its snapshots and branches, see [Agent.Snapshots].
func (r *Remote) Snapshots(ctx context.Context, nodes []snapshot.Node) error {
	return r.tell(ctx, "snapshots", nodes)
}

// Question takes up what a conversation asks the owner, see [Agent.Question].
func (r *Remote) Question(ctx context.Context, q tidemark.Question) error {
	return r.tell(ctx, "question", q)
}

// Asked reports whether a conversation asked under a code lately, see [Agent.Asked].
func (r *Remote) Asked(ctx context.Context, code string) (bool, error) {
	return ask[bool](ctx, r, "asked", code)
}

// Answer carries the owner's decision, see [Agent.Answer].
func (r *Remote) Answer(ctx context.Context, d tidemark.Decision) (tidemark.Question, error) {
	return ask[tidemark.Question](ctx, r, "answer", d)
}

// Ran tells what came of the run of a schedule, see [Agent.Ran].
func (r *Remote) Ran(ctx context.Context, ran tidemark.Ran) error { return r.tell(ctx, "ran", ran) }

// Windows stores what was learned of the windows of models and returns what is known, see [Agent.Windows].
func (r *Remote) Windows(ctx context.Context, learned []tidemark.Window) ([]tidemark.Window, error) {
	return ask[[]tidemark.Window](ctx, r, "windows", learned)
}

// Digests tells of digests, see [Agent.Digests].
func (r *Remote) Digests(ctx context.Context, report recall.DigestReport) (next int64, err error) {
	return ask[int64](ctx, r, "digests", report)
}

// Recall searches other conversations, see [Agent.Recall].
func (r *Remote) Recall(ctx context.Context, scope tidemark.Scope, q recall.Ask) (recall.Answer, error) {
	ctx, cancel := r.Runtime.WithTimeout(ctx, recallTime)
	defer cancel()
	return ask[recall.Answer](ctx, r, "recall", scoped[recall.Ask]{scope, q})
}

// Tools lists the tools that the scope may use; nobody need be asked.
func (r *Remote) Tools(scope tidemark.Scope) []tidemark.Tool {
	if scope.Agent != r.Name {
		return nil
	}
	return toolsOf(scope, !r.NoSchedules)
}

// Call runs a memory tool, see [Agent.Call].
func (r *Remote) Call(ctx context.Context, scope tidemark.Scope, call tidemark.Block) tidemark.Block {
	result, err := ask[tidemark.Block](ctx, r, "call", scoped[tidemark.Block]{scope, call})
	if err != nil {
		return tidemark.ToolResult(call.ID, "Error: "+err.Error(), true)
	}
	return result
}

// Introduce tells the agent that another one of this name is there.
func (r *Remote) Introduce(ctx context.Context, name string) error { return r.tell(ctx, "name", name) }

// Names lists the agents that told the agent of themselves, see [Agent.Names].
func (r *Remote) Names(ctx context.Context) ([]string, error) {
	return ask[[]string](ctx, r, "names", nil)
}
