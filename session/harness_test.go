package session_test

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/room/approvals"
	"github.com/tidemark-ai/tidemark/room/delegation"
	"github.com/tidemark-ai/tidemark/room/replay"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/room/task"
	"github.com/tidemark-ai/tidemark/room/vectors"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/tidemarktest"
	"github.com/tidemark-ai/tidemark/window"
)

// finding are the rooms of a session that has only what finds.
var finding = []room.Maker{search.Make, replay.Make}

// harness is a session on real SQLite with a scripted model, a bucket in memory and an agent that
// remembers what it is told.
type harness struct {
	reflection bool       // the room is there
	sittings   bool       // the same
	taskState  task.State // when its tool is offered
	t          *testing.T
	db         tidemark.DB
	blobs      *tidemarktest.Blobs
	model      *model
	agent      *fakeAgent
	rt         tidemark.Runtime
	set        session.Settings
	key        tidemark.Key
	admit      func(int64) (func(), bool)
	alarm      func(context.Context, time.Time) error

	observe func(session.Notice)
	stop    context.CancelFunc

	courier    tidemark.Courier
	strategies []compaction.Strategy
	provider   tidemark.Provider // in the place of model
	embedder   vectors.Embedder
	tools      tidemark.Toolbox
	logger     *slog.Logger
	delegation delegation.Config
	windows    window.Models
	approvals  approvals.Config
	beside     *neighbours // in the same database
	*session.Session
}

func newHarness(t *testing.T, set session.Settings) *harness {
	t.Helper()
	h := unopened(t, set)
	h.beside = withNeighbours(t, h.db)
	h.open()
	return h
}

// newAlone is newHarness for a test that counts or changes rows itself, whosesoever they are.
func newAlone(t *testing.T, set session.Settings) *harness {
	t.Helper()
	h := unopened(t, set)
	h.open()
	return h
}

func unopened(t *testing.T, set session.Settings) *harness {
	return &harness{t: t, db: hosttest.DB(t), blobs: tidemarktest.NewBlobs(), model: &model{}, agent: &fakeAgent{},
		rt: hosttest.Runtime(t), set: set, key: "agent:main:main"}
}

// open begins a new life of the session on the same database.
func (h *harness) open() {
	h.t.Helper()
	if _, err := h.tryOpen(); err != nil {
		h.t.Fatal(err)
	}
}

// tryOpen is open where a database may fail.
func (h *harness) tryOpen() (*session.Session, error) {
	life, stop := context.WithCancel(context.Background())
	h.stop = stop
	h.t.Cleanup(stop)
	if h.set.Model == "" {
		h.set.Model = "test"
	}
	provider := h.provider
	if provider == nil {
		provider = h.model
	}
	s, err := session.Open(life, session.Config{Key: h.key, DB: h.db, Blobs: h.blobs, Provider: provider, Agent: h.agent, Runtime: h.rt, Settings: h.set, Admit: h.admit, Alarm: h.alarm, Observe: h.observe, Strategies: h.strategies, Tools: h.tools, Windows: h.windows, Logger: h.logger, Rooms: h.rooms()})
	if err == nil {
		h.Session = s
	}
	return s, err
}

// say posts a message and waits for the end of its turn.
func (h *harness) say(text string) string {
	h.t.Helper()
	return h.post(session.Input{Message: tidemark.NewText(tidemark.User, text)})
}

// post posts an input and waits for the end of its turn; it returns the reply, or the error text.
func (h *harness) post(in session.Input) string {
	h.t.Helper()
	sub, err := h.Subscribe()
	if err != nil {
		h.t.Fatal(err)
	}
	defer sub.Close()
	r, err := h.Post(h.t.Context(), in)
	if err != nil {
		h.t.Fatal(err)
	}
	defer h.beside.speak()
	return h.wait(sub, r.ID)
}

func (h *harness) wait(sub *session.Subscription, id string) string {
	h.t.Helper()
	timeout := time.After(tidemarktest.Patience)
	text := ""
	for {
		select {
		case <-sub.Ready:
			for n, ok := sub.Next(); ok; n, ok = sub.Next() {
				if n.Type == session.NoticeReply {
					text = n.Message.PlainText()
				}
				if n.Type == session.NoticeError && slices.Contains(n.Inputs, id) {
					return "error: " + n.Text
				}
				if n.Type == session.NoticeDone && slices.Contains(n.Inputs, id) {
					return text
				}
			}
		case <-timeout:
			h.t.Fatalf("input %s: no end of its turn", id)
		}
	}
}

// sent returns the messages that the next call would send, which must have the right shape.
func (h *harness) sent() []tidemark.Message {
	h.t.Helper()
	v, err := h.View(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	m := v.Messages()
	if err := tidemark.Check(m); err != nil {
		h.t.Fatalf("view: %v", err)
	}
	return m
}

// originals returns the texts of all messages in the log.
func (h *harness) originals() []string {
	h.t.Helper()
	var out []string
	for e, err := range h.Reader.All(h.t.Context(), true) {
		if err != nil {
			h.t.Fatal(err)
		}
		m, err := e.Message()
		if err != nil {
			h.t.Fatal(err)
		}
		out = append(out, string(m.Role)+": "+m.PlainText())
	}
	return out
}

// archived returns the lines of an archive object.
func (h *harness) archived(key string) []string {
	h.t.Helper()
	var out []string
	for l, err := range archive.Read(h.t.Context(), h.blobs, key) {
		if err != nil {
			h.t.Fatal(err)
		}
		out = append(out, string(l.Message.Role)+": "+l.Message.PlainText())
	}
	return out
}

func (h *harness) keys(prefix string) []string {
	h.t.Helper()
	page, _, err := h.blobs.List(h.t.Context(), prefix, "", 1000)
	if err != nil {
		h.t.Fatal(err)
	}
	var out []string
	for _, o := range page {
		out = append(out, o.Key)
	}
	return out
}

// events returns the texts of the events of a type, oldest first.
func (h *harness) events(kind string) []string {
	h.t.Helper()
	entries, err := h.Reader.Entries(h.t.Context(), 0, 10000)
	if err != nil {
		h.t.Fatal(err)
	}
	var out []string
	for _, e := range slices.Backward(entries) {
		if e.Kind == tidemark.KindEvent && strings.Contains(string(e.Payload), `"type":"`+kind+`"`) {
			out = append(out, string(e.Payload))
		}
	}
	return out
}

// model plays a function; the default answers "ok N" and writes summaries.
type model struct {
	mu       sync.Mutex
	calls    []tidemark.Request
	play     func(n int, req tidemark.Request) (tidemark.Message, error) // zero message: the default
	hold     chan struct{}                                               // if set, a call waits for it
	usage    tidemark.Usage                                              // reported with each reply, if set
	declines func(tidemark.Request) bool                                 // which replies end as a refusal, if set

	entered chan struct{} // if set, told of each call
}

func (m *model) Stream(ctx context.Context, req tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	return func(yield func(tidemark.Delta, error) bool) {
		m.mu.Lock()
		m.calls = append(m.calls, req)
		n, play, hold := len(m.calls), m.play, m.hold
		m.mu.Unlock()
		if m.entered != nil {
			m.entered <- struct{}{}
		}
		if hold != nil {
			select {
			case <-hold:
			case <-ctx.Done():
				yield(tidemark.Delta{}, context.Cause(ctx))
				return
			}
		}
		var msg tidemark.Message
		var err error
		if play != nil {
			msg, err = play(n, req)
		}
		if err != nil { // with a message: cut off behind it
			if t := msg.PlainText(); t == "" || yield(tidemark.Delta{Text: t}, nil) {
				yield(tidemark.Delta{}, err)
			}
			return
		}
		if len(msg.Content) == 0 {
			msg = tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.Text(answer(n, req))}}
		}
		if t := msg.PlainText(); t != "" && !yield(tidemark.Delta{Text: t}, nil) {
			return
		}
		stop := "end_turn"
		if len(msg.Calls()) > 0 {
			stop = "tool_use"
		}
		if declines := m.declines; declines != nil && declines(req) {
			stop = tidemark.StopRefusal
		}
		yield(tidemark.Delta{Reply: &tidemark.Reply{Message: msg, Call: tidemark.Call{Model: req.Model, Stop: stop, Usage: m.usage, Reported: m.usage != tidemark.Usage{}}}}, nil)
	}
}

func answer(n int, req tidemark.Request) string {
	if asksSummary(req) {
		return fmt.Sprintf("<summary>\n## Decisions\nsummary %d\n%s</summary>\n<memories>\n- fact %d\n</memories>", n, tidemarktest.Gist(req.Messages[len(req.Messages)-1].PlainText()), n)
	}
	return fmt.Sprintf("ok %d", n)
}

func asksSummary(req tidemark.Request) bool {
	return strings.Contains(req.Messages[len(req.Messages)-1].PlainText(), "\n</conversation>")
}

func (m *model) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.calls)
}

func (m *model) set(play func(n int, req tidemark.Request) (tidemark.Message, error)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.play = play
}

// fakeAgent remembers what it is told, once an id.
type fakeAgent struct {
	mu       sync.Mutex
	facts    map[string]tidemark.Extraction
	archives []archive.Info
	fail     error
	call     func(tidemark.Block) tidemark.Block
	told     func()                          // if set, called by Report
	remember func(tidemark.Extraction) error // if set, may refuse
	system   string                          // if set, what it has in the prompt
	more     []tidemark.Tool                 // that it offers, too
	ran      []tidemark.Ran                  // of schedules
	asked    []tidemark.Question             // of the owner
	windows  []tidemark.Window               // that it was told
	files    []memory.Source                 // if set, its memory
	near     []memory.Known                  // what it finds near a conversation
	news     int                             // how often it was asked for what is new
	tell     func(context.Context) error     // if set, called before it answers that
}

var _ session.Agent = (*fakeAgent)(nil)

func (a *fakeAgent) Prompt(context.Context, tidemark.Scope, time.Time) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return cmp.Or(a.system, "## Recent Context"), a.fail
}

func (a *fakeAgent) Windows(_ context.Context, learned []tidemark.Window) ([]tidemark.Window, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.fail != nil:
		return nil, a.fail
	case len(learned) > 8: // as the real one
		return nil, tidemark.ErrInvalid
	}
	a.windows = append(a.windows, learned...)
	return slices.Clone(a.windows), nil
}

func (a *fakeAgent) Remember(_ context.Context, x tidemark.Extraction) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fail != nil {
		return a.fail
	}
	if a.remember != nil {
		if err := a.remember(x); err != nil {
			return err
		}
	}
	if a.facts == nil {
		a.facts = map[string]tidemark.Extraction{}
	}
	a.facts[x.ID] = x
	return nil
}

func (a *fakeAgent) Report(_ context.Context, _ tidemark.SessionInfo, infos []archive.Info) error {
	if a.told != nil {
		a.told()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.archives = append(a.archives, infos...)
	return a.fail
}

func (a *fakeAgent) Tools(tidemark.Scope) []tidemark.Tool {
	return append([]tidemark.Tool{{Name: "look", Description: "look", InputSchema: []byte(`{"type":"object"}`), Idempotent: true},
		{Name: "send", Description: "send", InputSchema: []byte(`{"type":"object"}`)}}, a.more...)
}

func (a *fakeAgent) Call(_ context.Context, _ tidemark.Scope, c tidemark.Block) tidemark.Block {
	a.mu.Lock()
	f := a.call
	a.mu.Unlock()
	if f != nil {
		return f(c)
	}
	return tidemark.ToolResult(c.ID, "result of "+c.Name, false)
}

func (a *fakeAgent) remembered() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []string
	for _, x := range a.facts {
		for _, f := range x.Facts {
			out = append(out, f.Text)
		}
	}
	slices.Sort(out)
	return out
}

// Question notes what the owner is asked.
func (a *fakeAgent) Question(_ context.Context, q tidemark.Question) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, q)
	return a.fail
}

// Answer knows of no other conversation.
func (a *fakeAgent) Answer(_ context.Context, d tidemark.Decision) (tidemark.Question, error) {
	return tidemark.Question{}, fmt.Errorf("code %s: %w", d.Code, tidemark.ErrNotFound)
}

// Asked knows of none.
func (a *fakeAgent) Asked(context.Context, string) (bool, error) { return false, nil }
