//go:build !js

package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/agent/agenttest"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/provider/offline"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/room/anatomy"
	"github.com/tidemark-ai/tidemark/room/approvals"
	episodic "github.com/tidemark-ai/tidemark/room/episodes"
	"github.com/tidemark-ai/tidemark/room/occasion"
	"github.com/tidemark-ai/tidemark/room/outbound"
	"github.com/tidemark-ai/tidemark/room/pack"
	"github.com/tidemark-ai/tidemark/room/pager"
	"github.com/tidemark-ai/tidemark/room/replay"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/room/selfcheck"
	"github.com/tidemark-ai/tidemark/room/snapshots"
	"github.com/tidemark-ai/tidemark/room/spool"
	"github.com/tidemark-ai/tidemark/room/task"
	"github.com/tidemark-ai/tidemark/room/toolset"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/setup"
	"github.com/tidemark-ai/tidemark/tidemarktest"
	"github.com/tidemark-ai/tidemark/worker"
)

// actors keeps sessions and agents on one database, as the native host does.
type actors struct {
	db        tidemark.DB
	blobs     tidemark.Blobs
	rt        tidemark.Runtime
	provider  tidemark.Provider
	metrics   *worker.Metrics
	settings  session.Settings
	approvals approvals.Config
	life      context.Context
	planning  func() []compaction.Strategy // of a session, nil for the usual
	tools     tidemark.Toolbox
	apart     bool // agents are in objects of their own, as on Workers

	mu       sync.Mutex // guards the following
	sessions map[tidemark.Key]*session.Session
	agents   map[string]*agent.Agent
}

var (
	_ worker.Actors = (*actors)(nil)
	_ worker.Lister = (*actors)(nil)
)

func (a *actors) Session(ctx context.Context, key tidemark.Key, create bool) (*session.Session, error) {
	there, err := session.Exists(ctx, a.db, key)
	if err != nil {
		return nil, err
	}
	if !there && !create {
		return nil, fmt.Errorf("session %s: %w", key, tidemark.ErrNotFound)
	}
	ag, err := a.Agent(ctx, key.Agent())
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.sessions[key]; s != nil {
		return s, nil
	}
	probe := a.metrics.Probe()
	c := session.Config{Key: key, DB: a.db, Blobs: a.blobs, Provider: probe.Provider(a.provider), Agent: ag,
		Runtime: a.rt, Settings: a.settings, Observe: probe.Observe, Tools: a.tools, Rooms: append([]room.Maker{search.Make}, append(snapshots.Makers(), anatomy.Make, selfcheck.Make, outbound.Make(nil), occasion.Make(false), task.Make(task.Auto), pack.Make, spool.Make, toolset.Make, pager.Make, approvals.Make(a.approvals), episodic.Make, replay.Make)...)}
	if a.planning != nil {
		c.Strategies = a.planning()
	}
	if a.apart {
		c.Agent = &agent.Remote{Name: key.Agent(), Runtime: a.rt, Transport: answered(func(r *http.Request) *http.Response {
			w := httptest.NewRecorder()
			ag.Peer(w, r)
			return w.Result()
		})}
	}
	s, err := session.Open(a.life, c)
	if err == nil {
		a.sessions[key] = s
	}
	return s, err
}

func (a *actors) Agent(_ context.Context, name string) (*agent.Agent, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ag := a.agents[name]; ag != nil {
		return ag, nil
	}
	ag, err := agent.New(agent.Config{Name: name, DB: a.db, Blobs: a.blobs, Runtime: a.rt, Sessions: setup.Here(a.Session)})
	if err == nil {
		a.agents[name] = ag
	}
	return ag, err
}

// Agents lists those that were asked for.
func (a *actors) Agents(context.Context) ([]string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Sorted(maps.Keys(a.agents)), nil
}

// server is a real HTTP server over real sessions.
type server struct {
	t *testing.T
	*httptest.Server
	actors *actors
	log    *logBuffer
}

type logBuffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// others are another agent in the database of each test, whose conversations are as busy as those of a test.
var others = hosttest.Neighbour{Names: agenttest.Names, Play: func(t testing.TB, db tidemark.DB) {
	agenttest.Play(t, db)
	a := &actors{db: db, blobs: tidemarktest.NewBlobs(), rt: hosttest.Runtime(t), provider: offline.Model{}, metrics: worker.NewMetrics(time.Now),
		settings: session.Settings{Model: "offline"}, life: t.Context(), sessions: map[tidemark.Key]*session.Session{}, agents: map[string]*agent.Agent{}}
	for _, key := range []tidemark.Key{"agent:" + agenttest.Other + ":main", "agent:" + agenttest.Other + ":whatsapp:dm:+491"} {
		s, err := a.Session(t.Context(), key, true)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			if _, err := s.Post(t.Context(), session.Input{ID: fmt.Sprint("m", i), Message: tidemark.NewText(tidemark.User, "hello")}); err != nil {
				t.Fatal(err)
			}
		}
	}
	a.settle(t)
	// Calls are numbered in the order in which they are made, whosesoever they are: those of a test begin at 1.
	if err := db.Tx(t.Context(), []tidemark.Stmt{{SQL: `UPDATE anatomy SET n = n - 100`}, {SQL: `UPDATE sqlite_sequence SET seq = 0 WHERE name = 'anatomy'`}}); err != nil {
		t.Fatal(err)
	}
}}

// serve starts a server; change may alter what it stands on.
func serve(t *testing.T, change func(*worker.Config, *actors)) *server {
	t.Helper()
	life, stop := context.WithCancel(context.Background())
	rt := hosttest.Runtime(t)
	a := &actors{db: hosttest.DB(t), blobs: hosttest.Blobs(t), rt: rt, provider: offline.Model{}, metrics: worker.NewMetrics(rt.Now),
		settings: session.Settings{Model: "offline"}, life: life, sessions: map[tidemark.Key]*session.Session{}, agents: map[string]*agent.Agent{}}
	s := &server{t: t, actors: a, log: &logBuffer{}}
	others.Beside(t, a.db)
	c := worker.Config{Actors: a, Blobs: a.blobs, Runtime: a.rt, Metrics: a.metrics, Loopback: true, Version: "test",
		Logger: slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	if change != nil {
		change(&c, a)
	}
	s.Server = httptest.NewServer(worker.New(c))
	t.Cleanup(func() {
		stop()
		s.CloseClientConnections()
		s.Close()
		a.settle(t)
	})
	return s
}

// settle waits until nothing works any more: the directory is told after a turn has ended.
func (s *server) settle() { s.actors.settle(s.t) }

func (a *actors) settle(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), tidemarktest.Patience)
	defer cancel()
	if err := a.rt.(interface{ Wait(context.Context) error }).Wait(ctx); err != nil {
		t.Error(err)
	}
}

// do makes a request; headers come in pairs.
func (s *server) do(method, path, body string, headers ...string) *http.Response {
	s.t.Helper()
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, r)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
			continue
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := s.Client().Do(req)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	s.t.Cleanup(func() { res.Body.Close() })
	return res
}

// text makes a request that must have the status, and returns its body.
func (s *server) text(status int, method, path, body string, headers ...string) string {
	s.t.Helper()
	res := s.do(method, path, body, headers...)
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	if res.StatusCode != status {
		s.t.Fatalf("%s %s: %d, want %d: %s", method, path, res.StatusCode, status, raw)
	}
	return string(raw)
}

// get decodes the JSON answer of a request that must have the status.
func get[T any](s *server, status int, method, path, body string, headers ...string) T {
	s.t.Helper()
	var v T
	raw := s.text(status, method, path, body, headers...)
	if err := json.Unmarshal([]byte(raw), &v); err != nil {
		s.t.Fatalf("%s %s: %v: %s", method, path, err, raw)
	}
	return v
}

// turn is the answer to a message.
type turn struct {
	Type      string           `json:"type"`
	ID        string           `json:"id"`
	Session   string           `json:"sessionId"`
	State     string           `json:"state"`
	Duplicate bool             `json:"duplicate"`
	Entry     string           `json:"entry"`
	Reply     tidemark.Message `json:"reply"`
	Text      string           `json:"text"`
	Stop      string           `json:"stop"`
	Usage     tidemark.Usage   `json:"usage"`
	Context   int64            `json:"contextTokens"`
	Events    []tidemark.Event `json:"events"`
}

// fault is an error answer.
type fault struct {
	Error struct {
		Type      string `json:"type"`
		Message   string `json:"message"`
		RequestID string `json:"requestId"`
		Input     string `json:"input"`
	} `json:"error"`
}

func (s *server) say(key, text string) turn {
	s.t.Helper()
	body, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		s.t.Fatal(err)
	}
	return get[turn](s, 200, "POST", "/v1/sessions/"+key+"/messages", string(body))
}

// gate is a model that says a word, waits until it is let on, and ends.
type gate struct {
	begun chan struct{} // gets a value for each call
	on    chan error    // lets a call on, with its error
	piece string
}

func newGate() *gate {
	return &gate{begun: make(chan struct{}, 100), on: make(chan error, 100), piece: "first "}
}

func (g *gate) Stream(ctx context.Context, _ tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	return func(yield func(tidemark.Delta, error) bool) {
		if !yield(tidemark.Delta{Text: g.piece}, nil) {
			return
		}
		g.begun <- struct{}{}
		select {
		case err := <-g.on:
			if err != nil {
				yield(tidemark.Delta{}, err)
				return
			}
		case <-ctx.Done():
			yield(tidemark.Delta{}, context.Cause(ctx))
			return
		}
		if yield(tidemark.Delta{Text: "second"}, nil) {
			yield(tidemark.Delta{Reply: &tidemark.Reply{Message: tidemark.NewText(tidemark.Assistant, g.piece+"second"),
				Call: tidemark.Call{Model: "gate", Stop: "end_turn", Reported: true, Usage: tidemark.Usage{Input: 5, Output: 2}}}}, nil)
		}
	}
}

// sse reads the events of a stream one by one.
type sse struct {
	t    *testing.T
	body io.ReadCloser
	rest []byte
}

func (s *server) listen(method, path, body string, headers ...string) *sse {
	s.t.Helper()
	res := s.do(method, path, body, append([]string{"Accept", "text/event-stream"}, headers...)...)
	if ct := res.Header.Get("Content-Type"); res.StatusCode != 200 || ct != "text/event-stream" {
		raw, _ := io.ReadAll(res.Body)
		s.t.Fatalf("%s %s: %d %s: %s", method, path, res.StatusCode, ct, raw)
	}
	return &sse{t: s.t, body: res.Body}
}

// next returns the next event; its name is empty for a comment and "EOF" at the end.
func (e *sse) next() (name, data string) {
	e.t.Helper()
	for !bytes.Contains(e.rest, []byte("\n\n")) {
		buf := make([]byte, 4096)
		n, err := e.body.Read(buf)
		e.rest = append(e.rest, buf[:n]...)
		if err != nil && n == 0 {
			return "EOF", err.Error()
		}
	}
	frame, rest, _ := bytes.Cut(e.rest, []byte("\n\n"))
	e.rest = rest
	for line := range strings.Lines(string(frame)) {
		line = strings.TrimSuffix(line, "\n")
		if v, ok := strings.CutPrefix(line, "event: "); ok {
			name = v
		}
		if v, ok := strings.CutPrefix(line, "data: "); ok {
			data += v
		}
	}
	return name, data
}

// until reads events up to one of a name and returns its data and all names on the way.
func (e *sse) until(name string) (data string, names []string) {
	e.t.Helper()
	for {
		n, d := e.next()
		names = append(names, n)
		if n == name {
			return d, names
		}
		if n == "EOF" {
			e.t.Fatalf("the stream ended without %s: %v", name, names)
		}
	}
}
