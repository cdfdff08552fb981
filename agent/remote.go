package agent

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/internal/json"
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
)

// Bounds of one exchange.
const (
	peerTimeout = 30 * time.Second
	maxPeerBody = 16 << 20
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
}

// reply is what the agent answers. A prompt may come with an error: it is then what could be read.
type reply struct {
	Text   string          `json:"text,omitempty"`
	Result *tidemark.Block `json:"result,omitempty"`
	Names  []string        `json:"names,omitempty"`
	Error  string          `json:"error,omitempty"`
	Is     string          `json:"is,omitempty"` // the sentinel that Error wraps
}

// Remote is an agent that lives in an object of its own, as a session sees it. Everything that it is
// asked may be asked twice.
type Remote struct {
	Name      string
	Transport http.RoundTripper // reaches the object of that name
	Runtime   tidemark.Runtime
}

// Prompt asks for persona, instructions and memory, see [Agent.Prompt].
func (r *Remote) Prompt(ctx context.Context, scope tidemark.Scope, now time.Time) (string, error) {
	return r.PromptWithin(ctx, scope, now, 0)
}

// PromptWithin asks for at most so many tokens, see [Agent.PromptWithin].
func (r *Remote) PromptWithin(ctx context.Context, scope tidemark.Scope, now time.Time, most tidemark.Tokens) (string, error) {
	a, err := r.ask(ctx, askPrompt, question{Scope: scope, Now: now, Most: most})
	return a.Text, err
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

// Tools lists the memory tools that the scope may use; nobody need be asked.
func (r *Remote) Tools(scope tidemark.Scope) []tidemark.Tool {
	if scope.Agent != r.Name {
		return nil
	}
	return toolsOf(scope)
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
	a, err := r.exchange(ctx, what, q)
	if err != nil {
		return a, fmt.Errorf("ask agent %s to %s: %w", r.Name, what, err)
	}
	return a, nil
}

func (r *Remote) exchange(ctx context.Context, what string, q question) (reply, error) {
	var a reply
	raw, err := json.Marshal(q)
	if err != nil {
		return a, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://agent"+PeerPath+what, bytes.NewReader(raw))
	if err != nil {
		return a, err
	}
	res, err := r.Transport.RoundTrip(req)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return a, cause
		}
		return a, fmt.Errorf("%w: %w", err, tidemark.ErrUnavailable)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxPeerBody))
	if err == nil {
		err = json.Unmarshal(body, &a)
	}
	switch {
	case err != nil || res.StatusCode != http.StatusOK:
		return reply{}, fmt.Errorf("status %d: %w", res.StatusCode, tidemark.ErrUnavailable)
	case a.Error == "":
		return a, nil
	}
	if is := tidemark.SentinelOf(a.Is); is != nil {
		return a, &told{a.Error, is}
	}
	return a, &told{a.Error, tidemark.ErrUnavailable}
}

// told is an error of the agent in its own words.
type told struct {
	text string
	is   error
}

func (e *told) Error() string { return e.text }
func (e *told) Unwrap() error { return e.is }
