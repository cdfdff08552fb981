package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/host/cloudflare"
	"github.com/tidemark-ai/tidemark/provider"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/worker"
)

// bucket is the R2 binding of wrangler.toml.
const bucket = "BUCKET"

// open gives the handler of one object: the same doors as natively, over the object's own database.
func open(o *cloudflare.Obj, logger *slog.Logger) cloudflare.App {
	metrics := worker.NewMetrics(o)
	a := &actors{o: o, logger: logger, metrics: metrics, live: map[tidemark.Key]*session.Session{}}
	door := worker.New(worker.Config{Actors: a, Blobs: o.Blobs(bucket), Runtime: o, Token: cloudflare.Env("TIDEMARK_TOKEN"), Logger: logger,
		TokenHelp: "run: wrangler secret put TIDEMARK_TOKEN", MaxSpool: maxSpool, Metrics: metrics})
	return cloudflare.App{HTTP: door, Alarm: a.wake}
}

// maxSpool is how much of an import may stand in the memory that all objects share.
const maxSpool = 8 << 20

// actors are the actors of one object: its session with its branches, and, as long as agents have
// no objects of their own, the agent as this session sees it.
type actors struct {
	o       *cloudflare.Obj
	logger  *slog.Logger
	metrics *worker.Metrics
	live    map[tidemark.Key]*session.Session // of this key and its branches; nothing here waits, so no lock
	agent   *agent.Agent
	next    time.Time // the alarm that is set
}

// alarm keeps the one alarm of the object at the earliest time that was asked for.
func (a *actors) alarm(ctx context.Context, at time.Time) error {
	if !a.next.IsZero() && a.next.Before(at) {
		return nil
	}
	a.next = at
	return a.o.SetAlarm(ctx, at)
}

// Agent implements worker.Actors.
func (a *actors) Agent(_ context.Context, name string) (*agent.Agent, error) {
	if a.agent != nil {
		return a.agent, nil
	}
	made, err := agent.New(agent.Config{Name: name, DB: a.o.DB(), Blobs: a.o.Blobs(bucket), Runtime: a.o, Logger: a.logger,
		Schedule: func(at time.Time) {
			a.o.Go(func() {
				if err := a.alarm(a.o.Context(), at); err != nil {
					a.logger.Warn("set alarm", "object", a.o.Name(), "err", err)
				}
			})
		}})
	if err == nil {
		a.agent = made
	}
	return made, err
}

// Session implements worker.Actors: the front has found the object by the key.
func (a *actors) Session(ctx context.Context, key tidemark.Key, create bool) (*session.Session, error) {
	if string(key.Root()) != a.o.Name() {
		return nil, fmt.Errorf("session %s: this object is %s: %w", key, a.o.Name(), tidemark.ErrForbidden)
	}
	if s := a.live[key]; s != nil {
		return s, nil
	}
	if !create {
		there, err := session.Exists(ctx, a.o.DB(), key)
		if err != nil {
			return nil, err
		}
		if !there {
			return nil, fmt.Errorf("session %s: %w", key, tidemark.ErrNotFound)
		}
	}
	owner, err := a.Agent(ctx, key.Agent())
	if err != nil {
		return nil, err
	}
	probe := a.metrics.Probe()
	s, err := session.Open(a.o.Context(), session.Config{Key: key, DB: a.o.DB(), Blobs: a.o.Blobs(bucket), Provider: probe.Provider(model(a.o)), Observe: probe.Observe, Agent: owner,
		Runtime: a.o, Alarm: a.alarm, Logger: a.logger, Settings: session.Settings{Model: cloudflare.Env("TIDEMARK_MODEL_ID")}})
	if err == nil {
		a.live[key] = s
	}
	return s, err
}

// model is the provider whose key is set, else the offline model.
func model(o *cloudflare.Obj) tidemark.Provider {
	if key := cloudflare.Env("ANTHROPIC_API_KEY"); key != "" {
		return &provider.Anthropic{Key: key, BaseURL: cloudflare.Env("TIDEMARK_MODEL_BASEURL"), Transport: o.Transport(), Runtime: o}
	}
	if key := cloudflare.Env("OPENAI_API_KEY"); key != "" {
		return &provider.OpenAI{Key: key, BaseURL: cloudflare.Env("TIDEMARK_MODEL_BASEURL"), Transport: o.Transport(), Runtime: o}
	}
	return provider.Offline{}
}

// wake does what the alarm was set for.
func (a *actors) wake(ctx context.Context) error {
	key, err := tidemark.ParseKey(a.o.Name())
	if err != nil {
		a.logger.Warn("alarm of an object that is no session", "object", a.o.Name(), "err", err)
		return nil // calling again would not help
	}
	a.next = time.Time{}
	s, err := a.Session(ctx, key, false)
	if errors.Is(err, tidemark.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	next, err := a.agent.Wake(ctx)
	if err == nil && !next.IsZero() {
		err = a.alarm(ctx, next)
	}
	return errors.Join(err, s.Wake(ctx))
}
