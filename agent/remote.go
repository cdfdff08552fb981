package agent

import (
	"context"
	"fmt"
	"net/http"
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

// What a session may ask, behind PeerPath.
const (
	askPrompt   = "prompt"
	askRemember = "remember"
	askReport   = "report"
	askCall     = "call"
	askName     = "name"  // another agent tells that it is there
	askNames    = "names" // which agents did
	askDigests  = "digests"
	askRecall   = "recall"
	askSittings = "episodes"
	askShow     = "snapshots"
	askQuestion = "question"
	askAnswer   = "answer"
	askAsked    = "asked"
	askRan      = "ran" // a run of a schedule is over
	askWindows  = "windows"
	askNews     = "news"
)

// Bounds of one exchange.
const (
	peerTimeout = 30 * time.Second
)

// question is what a session asks.
type question struct {
	Scope      tidemark.Scope        `json:"scope"`
	Now        time.Time             `json:"now"`
	Most       tidemark.Tokens       `json:"most,omitempty"` // 0: the agent's own budget
	Extraction *tidemark.Extraction  `json:"extraction,omitempty"`
	Info       *tidemark.SessionInfo `json:"info,omitempty"`
	Archives   []archive.Info        `json:"archives,omitempty"`
	Call       *tidemark.Block       `json:"call,omitempty"`
	Name       string                `json:"name,omitempty"`
	Digests    *recall.DigestReport  `json:"digests,omitempty"`
	Ask        *recall.Ask           `json:"ask,omitempty"`
	Sittings   []memory.Sitting      `json:"episodes,omitempty"`
	Nodes      []snapshot.Node       `json:"snapshots,omitempty"`
	Question   *tidemark.Question    `json:"question,omitempty"`
	Decision   *tidemark.Decision    `json:"decision,omitempty"`
	Ran        *tidemark.Ran         `json:"ran,omitempty"`
	Windows    []tidemark.Window     `json:"windows,omitempty"`
	Since      *memory.Since         `json:"since,omitempty"`
}

// reply is what the agent answers. A prompt may come with an error: it is then what could be read.
type reply struct {
	Text   string          `json:"text,omitempty"`
	Result *tidemark.Block `json:"result,omitempty"`
	Names  []string        `json:"names,omitempty"`
	Next   int64           `json:"next,omitempty"`
	Found  *recall.Answer  `json:"found,omitempty"`
	Mark   memory.Mark     `json:"mark,omitzero"`
	News   memory.News     `json:"news,omitzero"`

	Questions []tidemark.Question `json:"questions,omitempty"`
	Windows   []tidemark.Window   `json:"windows,omitempty"`
	host.Refusal
}

// Remote is an agent that lives in an object of its own, as a session sees it. Everything that it is
// asked may be asked twice.
type Remote struct {
	Name      string
	Transport http.RoundTripper // reaches the object of that name
	Runtime   tidemark.Runtime
	// NoSchedules as in the agent's [Config]: it says what [Remote.Tools] lists.
	NoSchedules bool
}

// Prompt asks for persona, instructions and memory, see [Agent.Prompt].
func (r *Remote) Prompt(ctx context.Context, scope tidemark.Scope, now time.Time) (string, error) {
	text, _, err := r.PromptWithin(ctx, scope, now, 0)
	return text, err
}

// PromptWithin asks for at most so many tokens, see [Agent.PromptWithin].
func (r *Remote) PromptWithin(ctx context.Context, scope tidemark.Scope, now time.Time, most tidemark.Tokens) (string, memory.Mark, error) {
	a, err := r.ask(ctx, askPrompt, question{Scope: scope, Now: now, Most: most})
	return a.Text, a.Mark, err
}

// News asks what memory has that a prompt was made without, see [Agent.News].
func (r *Remote) News(ctx context.Context, scope tidemark.Scope, since memory.Since) (memory.News, error) {
	a, err := r.ask(ctx, askNews, question{Scope: scope, Since: &since})
	return a.News, err
}

// Remember stores an extraction, see [Agent.Remember].
func (r *Remote) Remember(ctx context.Context, x tidemark.Extraction) error {
	_, err := r.ask(ctx, askRemember, question{Extraction: &x})
	return err
}

// Report brings the directory and the archive index up to date, see [Agent.Report].
func (r *Remote) Report(ctx context.Context, info tidemark.SessionInfo, archives []archive.Info) error {
	_, err := r.ask(ctx, askReport, question{Info: &info, Archives: archives})
	return err
}

// Sittings stores what a session tells of its sittings, see [Agent.Sittings].
func (r *Remote) Sittings(ctx context.Context, sittings []memory.Sitting) error {
	_, err := r.ask(ctx, askSittings, question{Sittings: sittings})
	return err
}

// Snapshots stores what a session tells of its snapshots and branches, see [Agent.Snapshots].
func (r *Remote) Snapshots(ctx context.Context, nodes []snapshot.Node) error {
	_, err := r.ask(ctx, askShow, question{Nodes: nodes})
	return err
}

// Question takes up what a conversation asks the owner, see [Agent.Question].
func (r *Remote) Question(ctx context.Context, q tidemark.Question) error {
	_, err := r.ask(ctx, askQuestion, question{Question: &q})
	return err
}

// Asked reports whether a conversation asked under a code lately, see [Agent.Asked].
func (r *Remote) Asked(ctx context.Context, code string) (bool, error) {
	a, err := r.ask(ctx, askAsked, question{Name: code})
	return a.Next > 0, err
}

// Answer carries the owner's decision, see [Agent.Answer].
func (r *Remote) Answer(ctx context.Context, d tidemark.Decision) (tidemark.Question, error) {
	a, err := r.ask(ctx, askAnswer, question{Decision: &d})
	if err == nil && len(a.Questions) == 1 {
		return a.Questions[0], nil
	}
	return tidemark.Question{}, err
}

// Ran tells what came of the run of a schedule, see [Agent.Ran].
func (r *Remote) Ran(ctx context.Context, ran tidemark.Ran) error {
	_, err := r.ask(ctx, askRan, question{Ran: &ran})
	return err
}

// Windows stores what was learned of the windows of models and returns what is known, see [Agent.Windows].
func (r *Remote) Windows(ctx context.Context, learned []tidemark.Window) ([]tidemark.Window, error) {
	a, err := r.ask(ctx, askWindows, question{Windows: learned})
	return a.Windows, err
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
	a, err := r.ask(ctx, askCall, question{Scope: scope, Call: &call})
	if err == nil && a.Result == nil {
		err = fmt.Errorf("agent %s: answered without a result: %w", r.Name, tidemark.ErrUnavailable)
	}
	if err != nil {
		return tidemark.ToolResult(call.ID, "Error: "+err.Error(), true)
	}
	return *a.Result
}

// Introduce tells the agent that another one of this name is there.
func (r *Remote) Introduce(ctx context.Context, name string) error {
	_, err := r.ask(ctx, askName, question{Name: name})
	return err
}

// Names lists the agents that told the agent of themselves, see [Agent.Names].
func (r *Remote) Names(ctx context.Context) ([]string, error) {
	a, err := r.ask(ctx, askNames, question{})
	return a.Names, err
}

func (r *Remote) ask(ctx context.Context, what string, q question) (reply, error) {
	ctx, cancel := r.Runtime.WithTimeout(ctx, peerTimeout)
	defer cancel()
	var a reply
	err := host.Exchange(ctx, r.Transport, "http://agent"+PeerPath+what, q, &a)
	if err == nil {
		err = a.Err()
	}
	if err != nil {
		return a, fmt.Errorf("ask agent %s to %s: %w", r.Name, what, err)
	}
	return a, nil
}
