//go:build !js

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/setup"
	"github.com/tidemark-ai/tidemark/worker"
)

// inProcess is the handler over real actors, on a database for each agent and a folder. It has no
// process of its own, so nothing can kill it.
type inProcess struct {
	home string
	log  logBuffer

	server *httptest.Server
	cfg    *config.Config
	blobs  *native.Dir
	rt     *native.Runtime
	alarms *native.Alarms
	life   context.Context
	end    context.CancelFunc

	mu       sync.Mutex // guards the following
	sessions map[tidemark.Key]*session.Session
	agents   map[string]*owner
}

// owner is an agent with its database.
type owner struct {
	*agent.Agent
	db *native.DB
}

var (
	_ target        = (*inProcess)(nil)
	_ worker.Actors = (*inProcess)(nil)
	_ worker.Lister = (*inProcess)(nil)
)

func (p *inProcess) start(env []string) (string, error) {
	var err error
	if err = os.MkdirAll(filepath.Join(p.home, "bucket"), 0o700); err != nil {
		return "", err
	}
	if p.cfg, err = config.Parse("config.json", []byte(document)); err == nil {
		err = p.cfg.Override(env)
	}
	if err != nil {
		return "", err
	}
	p.cfg.Resolve()
	logger := slog.New(slog.NewTextHandler(&p.log, nil))
	p.sessions, p.agents = map[tidemark.Key]*session.Session{}, map[string]*owner{}
	p.rt = native.NewRuntime(logger)
	p.life, p.end = context.WithCancel(context.Background())
	if p.blobs, err = native.NewDir(filepath.Join(p.home, "bucket")); err != nil {
		return "", err
	}
	p.alarms = native.NewAlarms(p.rt, p.fire)
	if err := p.wake(); err != nil {
		return "", err
	}
	p.server = httptest.NewServer(native.ReadRest(worker.New(worker.Config{Actors: p, Blobs: p.blobs, Runtime: p.rt, Token: p.cfg.Secrets.Token.Reveal(),
		Version: "test", Logger: logger})))
	return p.server.URL, nil
}

func (p *inProcess) stop(how string) error {
	if how != gracefully {
		return fmt.Errorf("%s: %w", how, errCannot)
	}
	p.alarms.Close()
	p.end()
	p.server.CloseClientConnections()
	p.server.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := errors.Join(p.rt.Wait(ctx), p.blobs.Close())
	for _, o := range p.agents {
		err = errors.Join(err, o.db.Close())
	}
	return err
}

// wake opens the agents that are on the disk and sets the alarms of their sessions.
func (p *inProcess) wake() error {
	found, err := p.databases()
	if err != nil {
		return err
	}
	for _, path := range append(found, p.database("main")) {
		o, err := p.owner(filepath.Base(filepath.Dir(path)), true)
		if err != nil {
			return err
		}
		due, err := session.Due(p.life, o.db, p.rt.Now())
		if err != nil {
			return err
		}
		for key, at := range due {
			p.alarms.Set("session/"+string(key), at)
		}
	}
	return nil
}

// fire carries out what is due for an actor.
func (p *inProcess) fire(ctx context.Context, what string) {
	kind, name, _ := strings.Cut(what, "/")
	var next time.Time
	var err error
	if kind == "agent" {
		var a *agent.Agent
		if a, err = p.Agent(ctx, name); err == nil {
			defer func() { // what came up between the end of the wake and the alarm
				if at := a.Soonest(next); !at.Equal(next) {
					p.alarms.Set(what, at)
				}
			}()
			next, err = a.Wake(ctx)
		}
	} else {
		var s *session.Session
		if s, err = p.Session(ctx, tidemark.Key(name), false); err == nil {
			err = s.Wake(ctx)
		}
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintf(&p.log, "wake %s: %v\n", what, err)
	}
	if !next.IsZero() {
		p.alarms.Set(what, next)
	}
}

// Agent implements worker.Actors.
func (p *inProcess) Agent(_ context.Context, name string) (*agent.Agent, error) {
	o, err := p.owner(name, false)
	if err != nil {
		return nil, err
	}
	return o.Agent, nil
}

func (p *inProcess) owner(name string, create bool) (*owner, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o := p.agents[name]; o != nil {
		return o, nil
	}
	known := name == "main" || slices.ContainsFunc(p.cfg.Agents, func(a config.Agent) bool { return a.ID == name })
	if !known && !create {
		return nil, fmt.Errorf("there is no such agent: %w", tidemark.ErrNotFound)
	}
	c, err := setup.Agent(p.cfg, name)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(p.database(name)), 0o700); err != nil {
		return nil, err
	}
	db, err := native.OpenDB(p.database(name))
	if err != nil {
		return nil, err
	}
	c.DB, c.Blobs, c.Runtime, c.FlushEvery = db, p.blobs, p.rt, 100*time.Millisecond
	c.Schedule = func(at time.Time) { p.alarms.Set("agent/"+name, at) }
	c.Sessions = setup.Here(p.Session)
	a, err := agent.New(c)
	if err == nil {
		_, err = session.Migrate(p.life, db)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	p.agents[name] = &owner{a, db}
	p.alarms.Set("agent/"+name, p.rt.Now())
	return p.agents[name], nil
}

// Agents implements worker.Lister.
func (p *inProcess) Agents(context.Context) ([]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := slices.Collect(maps.Keys(p.agents))
	for _, a := range p.cfg.Agents {
		all = append(all, a.ID)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// Session implements worker.Actors.
func (p *inProcess) Session(ctx context.Context, key tidemark.Key, create bool) (*session.Session, error) {
	o, err := p.owner(key.Agent(), create)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.sessions[key]; s != nil {
		return s, nil
	}
	there, err := session.Exists(ctx, o.db, key)
	if err != nil {
		return nil, err
	}
	if !there && !create {
		return nil, fmt.Errorf("there is no such session: %w", tidemark.ErrNotFound)
	}
	settings, err := setup.Session(p.cfg, key)
	if err != nil {
		return nil, err
	}
	s, err := session.Open(p.life, session.Config{Key: key, DB: o.db, Blobs: p.blobs, Agent: o, Runtime: p.rt, Settings: settings,
		Logger: slog.New(slog.NewTextHandler(&p.log, nil)), Strategies: setup.Strategies(p.cfg), Rooms: setup.Rooms(p.cfg, p.rt, native.Transport(), nil, setup.Here(p.Session)), Provider: setup.Provider(p.cfg, p.rt, native.Transport()),
		Tools: setup.Tools(p.cfg, setup.ToolPorts{Runtime: p.rt, Transport: native.Transport()}),
		Alarm: func(_ context.Context, at time.Time) error {
			p.alarms.Set("session/"+string(key), at)
			return nil
		}})
	if err == nil {
		p.sessions[key] = s
	}
	return s, err
}

func (p *inProcess) database(agent string) string {
	return filepath.Join(p.home, "agents", agent, "tidemark.db")
}

func (p *inProcess) databases() ([]string, error) { return filepath.Glob(p.database("*")) }

func (p *inProcess) bucket() bucket { return folder(filepath.Join(p.home, "bucket")) }
func (p *inProcess) said() string   { return p.log.String() }

// folder is a bucket of the native host, read as files.
type folder string

var _ bucket = folder("")

func (f folder) list(prefix string) ([]string, error) {
	var out []string
	err := filepath.WalkDir(string(f), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		key, err := filepath.Rel(string(f), path)
		if err == nil && d.Type().IsRegular() && !strings.HasPrefix(key, ".") && strings.HasPrefix(filepath.ToSlash(key), prefix) {
			out = append(out, filepath.ToSlash(key))
		}
		return err
	})
	slices.Sort(out)
	return out, err
}

func (f folder) get(key string) ([]byte, map[string]string, error) {
	raw, err := os.ReadFile(filepath.Join(string(f), filepath.FromSlash(key)))
	if err != nil {
		return nil, nil, err
	}
	d, err := native.NewDir(string(f)) // a file system does not keep the metadata itself
	if err != nil {
		return nil, nil, err
	}
	defer d.Close()
	o, body, err := d.Get(context.Background(), key)
	if err != nil {
		return nil, nil, err
	}
	defer body.Close()
	same, err := io.ReadAll(body)
	if err == nil && !bytes.Equal(raw, same) {
		err = fmt.Errorf("%s is %d bytes as a file and %d as an object", key, len(raw), len(same))
	}
	return raw, o.Metadata, err
}

func (f folder) put(key string, body []byte) error {
	path := filepath.Join(string(f), filepath.FromSlash(key))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, body, 0o600)
}

// logBuffer keeps the end of what is written to it.
type logBuffer struct {
	mu   sync.Mutex // guards text
	text []byte
}

// Write implements io.Writer.
func (b *logBuffer) Write(p []byte) (int, error) {
	const most = 64 << 10
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = append(b.text, p...)
	if len(b.text) > most {
		b.text = append([]byte(nil), b.text[len(b.text)-most/2:]...)
	}
	return len(p), nil
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.text)
}
