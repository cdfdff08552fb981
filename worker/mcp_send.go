package worker

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/session"
)

const (
	// defaultPatience is less than the minute after which clients give a request up that they were told nothing of.
	defaultPatience = 50
	maxPatience     = 3600 // seconds
	// progressPause is the least time between two signs of progress that only bring text.
	progressPause = 250 * time.Millisecond
	mcpChannel    = "mcp"
)

// States of what was said.
const (
	stateDone    = "done"
	stateWorking = "working" // the wait is over, and the turn goes on

	stateApproval = "approval" // it rests until the owner decides, who is asked elsewhere
)

// wireSpoken is what came of a message.
type wireSpoken struct {
	State     string           `json:"state"`
	ID        string           `json:"id"` // of the message: with it and the same text one waits on
	Text      string           `json:"text"`
	Entry     tidemark.EntryID `json:"entry,omitempty"`
	Stop      string           `json:"stop,omitempty"`
	Duplicate bool             `json:"duplicate,omitempty"` // it had been received before
}

// send says something in a session and waits for the answer.
func (t *toolCall) send() (map[string]any, error) {
	wait, err := t.within("wait_seconds", defaultPatience, 0, maxPatience)
	if err != nil {
		return nil, err
	}
	text := t.text("text")
	if strings.TrimSpace(text) == "" {
		return nil, fmt.Errorf("argument \"text\" is empty; say something: %w", tidemark.ErrInvalid)
	}
	in := session.Input{ID: t.text("id"), Message: tidemark.NewText(tidemark.User, text),
		Origin: tidemark.Origin{From: tidemark.FromPerson, Channel: mcpChannel, Owner: true}}
	if err := in.Validate(); err != nil {
		return nil, err
	}
	if err := writable(t.session); err != nil {
		return nil, err
	}
	s, err := t.enter(t.session, true)
	if err != nil {
		return nil, err
	}
	if wait == 0 {
		r, err := s.Post(t.r.Context(), in)
		if err != nil {
			return nil, err
		}
		return structured(working(r.ID, r.Duplicate))
	}
	t.patience = time.Duration(wait) * time.Second
	to := &mcpTalk{toolCall: t, live: strings.Contains(t.r.Header.Get("Accept"), codeEventStream)}
	if token := t.m.meta["progressToken"]; token != nil && isRPCID(token) {
		to.token = token
	}
	if err := t.say(s, in, to); err != nil {
		return nil, err
	}
	if to.stream != nil {
		return nil, errToldRPC
	}
	return to.result, nil
}

func working(id string, duplicate bool) wireSpoken {
	return wireSpoken{State: stateWorking, ID: id, Duplicate: duplicate,
		Text: "The turn goes on. Call send_message with this id and the same text to wait for its answer, or read it later with session_read."}
}

// mcpTalk is the dialect of the tool: signs of progress while the turn is in work, for a client that reads a stream and
// asked for them, and the result.
type mcpTalk struct {
	*toolCall
	live  bool            // the client reads a stream
	token json.RawMessage // by which it knows progress; nil: it wants none

	stream *stream
	id     string // of the input
	again  bool
	signs  int
	unsaid strings.Builder // of the answer, since the last sign
	last   time.Time
	result map[string]any
}

var _ dialect = (*mcpTalk)(nil)

func (p *mcpTalk) open(r session.Receipt) error {
	if p.id, p.again = r.ID, r.Duplicate; p.live {
		p.stream = p.begin()
		return p.stream.ping() // or the head of the stream would wait for the first piece
	}
	return nil
}

// tell makes progress of the pieces of the answer, and of what else is a step.
func (p *mcpTalk) tell(n session.Notice) error {
	switch n.Type {
	case session.NoticeText:
		p.unsaid.WriteString(n.Text)
		if now := p.Runtime.Now(); now.Sub(p.last) >= progressPause {
			p.last = now
			return p.sign("")
		}
	case session.NoticeTool, session.NoticeResult, session.NoticeCompacting, session.NoticeRestart, session.NoticeStalled:
		return p.sign("[" + strings.TrimSpace(n.Type+" "+clip.To(n.Text, maxShown)) + "]")
	}
	return nil
}

func (p *mcpTalk) ping() error {
	if p.token != nil && p.live {
		return p.sign("")
	}
	if p.live {
		return p.stream.ping()
	}
	return nil
}

// sign tells the client that something has happened: what of the answer it was not told yet, and a word more.
func (p *mcpTalk) sign(word string) error {
	if p.token == nil || !p.live {
		return nil
	}
	p.signs++
	params := map[string]any{"progressToken": p.token, "progress": p.signs}
	if text := p.unsaid.String() + word; text != "" {
		params["message"] = text
	}
	p.unsaid.Reset()
	return p.stream.event("message", map[string]any{"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
}

func (p *mcpTalk) end(out outcome) error {
	state := stateDone
	if out.Stop == stopApproval {
		state = stateApproval
	}
	return p.tellResult(wireSpoken{State: state, ID: out.ID, Text: out.Text, Entry: out.Entry, Stop: out.Stop, Duplicate: out.Duplicate}, nil)
}

func (p *mcpTalk) fail(err error) error {
	if p.r.Context().Err() != nil {
		return err // nobody is there to read it
	}
	var no *refused
	if errors.As(err, &no) && no.status == http.StatusGatewayTimeout && p.id != "" {
		return p.tellResult(working(p.id, p.again), nil)
	}
	return p.tellResult(wireSpoken{}, err)
}

func (p *mcpTalk) tellResult(v wireSpoken, err error) error {
	if err == nil {
		p.result, err = structured(v)
	}
	if err != nil {
		p.result = p.failed(err)
	}
	if p.stream == nil {
		return nil
	}
	defer p.stream.end()
	if p.unsaid.Len() > 0 {
		if err := p.sign(""); err != nil {
			return err
		}
	}
	return p.stream.event("message", p.rpcResult(p.m, p.result))
}
