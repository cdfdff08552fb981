package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/host/cloudflare"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/setup"
	"github.com/tidemark-ai/tidemark/toolbox"
	"github.com/tidemark-ai/tidemark/worker"
)

// Bindings of wrangler.toml.
const (
	bucket       = "BUCKET"
	agents       = "AGENT"
	classSession = "Session"
	mainAgent    = "main" // knows which other agents there are
)

// Bounds of the configuration in the bucket.
const (
	document     = "config.json"
	maxDocument  = 1 << 20
	configAge    = time.Minute // how long what was read is good
	documentTime = 10 * time.Second
)

// instance is what all objects of a Go instance share. No object waits for another here.
type instance struct {
	logger  *slog.Logger
	level   slog.LevelVar   // of logger, as configured
	env     []string        // variables and secrets of the Worker
	bound   bool            // models of Cloudflare are bound
	ai      bool            // and not switched off
	server  config.Server   // as variables set it
	metrics *worker.Metrics // of all objects of the isolate
	stemmer *recall.Stemmer // the same

	mu    sync.Mutex // guards the following; never held over a wait
	cfg   *config.Config
	raw   string // the document that cfg was made of
	read  time.Time
	bad   error  // why the settings were not taken up when they were last read
	said  string // what was logged of bad, at which time
	at    time.Time
	large int64 // bytes of large bodies and views that are in work
}

// open gives the handler of one object, by its class.
func (in *instance) open(o *cloudflare.Obj) cloudflare.App {
	o.Refused = in.metrics.Refused
	if o.Kind() == classSession {
		return openSession(in, o)
	}
	if strings.HasPrefix(o.Name(), shards) {
		return openShard(in, o)
	}
	return openAgent(in, o)
}

// config returns the settings: the document in the bucket, with the Worker's variables over it. They
// are read again now and then, and stay the same value while nothing has changed. While the bucket
// is down, or has a mistake in the document, those that were read before are good.
func (in *instance) config(ctx context.Context, o *cloudflare.Obj) (*config.Config, error) {
	cfg, fresh := in.known(o.Now())
	if fresh {
		return cfg, nil
	}
	raw, err := readDocument(ctx, o)
	next := cfg
	if err == nil {
		next, err = in.parse(raw, o.Now())
	}
	if ctx.Err() == nil {
		in.note(err)
	}
	if err != nil && ctx.Err() == nil {
		in.logOnce(o, err, cfg != nil)
		if cfg != nil {
			return cfg, nil
		}
	}
	if cfg = next; err != nil {
		return nil, &worker.LoggedError{Err: fmt.Errorf("configuration: %s: %w", tell(err), tidemark.ErrUnavailable)}
	}
	return cfg, nil
}

// logOnce logs why the settings are not taken up, the same once a minute: every request finds it.
func (in *instance) logOnce(o *cloudflare.Obj, err error, held bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	text, now := tell(err), o.Now()
	if age := now.Sub(in.at); text == in.said && age >= 0 && age < configAge {
		return
	}
	in.said, in.at = text, now
	in.logger.Error("configuration is not taken up", "object", o.Name(), "lastGoodHolds", held, "err", text)
}

func (in *instance) known(now time.Time) (cfg *config.Config, fresh bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	age := now.Sub(in.read)
	return in.cfg, in.cfg != nil && age >= 0 && age < configAge
}

// parse makes the settings of a document, unless they are there.
func (in *instance) parse(raw string, now time.Time) (*config.Config, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.cfg != nil && in.raw == raw {
		in.read = now
		return in.cfg, nil
	}
	cfg, err := config.Load(document, []byte(raw), in.env)
	if err != nil {
		return nil, err
	}
	cfg.AI = in.ai
	reason := cfg.Resolve()
	if err := in.callable(cfg); err != nil {
		return nil, err
	}
	if err := in.level.UnmarshalText([]byte(cfg.Log.Level)); err != nil {
		return nil, fmt.Errorf("log.level: %w", err)
	}
	in.cfg, in.raw, in.read = cfg, raw, now
	in.logger.Info("configured", "provider", cfg.Model.Provider, "model", cfg.Model.ID, "because", reason, "channels", setup.ChannelLine(cfg), "warnings", cfg.Warnings)
	for _, g := range setup.ChannelGaps(cfg) {
		in.logger.Warn("a channel does not work as it is set up", "setting", g.Setting, "problem", g.Message)
	}
	for _, g := range setup.ToolGaps(cfg, false) {
		in.logger.Warn("a server of tools cannot be used as it is set up", "setting", g.Setting, "problem", g.Message)
	}
	return cfg, nil
}

// readDocument returns the document in the bucket, empty when there is none.
func readDocument(ctx context.Context, o *cloudflare.Obj) (string, error) {
	ctx, cancel := o.WithTimeout(ctx, documentTime)
	defer cancel()
	_, body, err := o.Blobs(bucket).Get(ctx, document)
	if errors.Is(err, tidemark.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer body.Close()
	raw, err := io.ReadAll(io.LimitReader(body, maxDocument+1))
	if err == nil && len(raw) > maxDocument {
		err = fmt.Errorf("%s is over %d bytes", document, maxDocument)
	}
	return string(raw), err
}

// Bounds of the memory that all objects of an isolate share, beside maxBody. The instance is left beyond
// 48 MB.
const (
	viewBytes = 8 << 20  // of one conversation; more than a body
	maxLarge  = 8 << 20  // of bodies and views over 1 MB each that are in work at a time
	maxSpool  = 64 << 20 // of a log of another tool, which stands in the database while it is read
)

// admit counts a large body or view in, if there is room beside those that are in work.
func (in *instance) admit(bytes int64) (release func(), ok bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.large+bytes > maxLarge {
		return nil, false
	}
	in.large += bytes
	return func() {
		in.mu.Lock()
		defer in.mu.Unlock()
		in.large -= bytes
	}, true
}

// scheduler asks for a wake of an object and does not wait for the alarm to be set.
func (in *instance) scheduler(o *cloudflare.Obj, c *clock) func(at time.Time) {
	return func(at time.Time) {
		o.Go(func() {
			if err := c.set(o.Context(), at); err != nil {
				in.logger.Warn("set alarm", "object", o.Name(), "err", err)
			}
		})
	}
}

// door opens the HTTP doors over an object's actors.
func (in *instance) door(o *cloudflare.Obj, a worker.Actors) worker.Config {
	return worker.Config{Actors: a, Blobs: o.Blobs(bucket), Runtime: o, Token: cloudflare.Env("TIDEMARK_TOKEN"),
		TokenHelp: secretHelp("TIDEMARK_TOKEN"), TokenWhere: tokenWhere(), Origins: in.server.Origins,
		Ping:  time.Duration(in.server.PingSeconds) * time.Second,
		Model: func(ctx context.Context) (worker.Model, error) { return in.model(ctx, o) }, Network: o.Transport(),
		Health: func(ctx context.Context) worker.Health { return in.health(ctx, o) },
		Logger: in.logger, Metrics: in.metrics, MaxSpool: maxSpool, MaxBody: maxBody, MaxMessage: maxBody, Admit: in.admit}
}

// maxResult is how many bytes the result of a tool of others may have where nothing is configured: memory is scarce.
const maxResult = 1 << 20

// box has the tools of others, for all that an object does under the same settings.
type box struct {
	tools *toolbox.Box // nil until somebody asks
	cfg   *config.Config
}

// of wires them for an object. It is called with the lock of the object held, and waits for nothing: servers are asked
// when a turn needs them.
func (b *box) of(in *instance, cfg *config.Config, o *cloudflare.Obj) *toolbox.Box {
	if b.tools == nil || b.cfg != cfg {
		b.tools = setup.Tools(cfg, setup.ToolPorts{Runtime: o, Transport: o.Transport(), Logger: in.logger, MaxBytes: maxResult})
		b.cfg = cfg
	}
	return b.tools
}

// model is what answers calls that belong to no conversation.
func (in *instance) model(ctx context.Context, o *cloudflare.Obj) (worker.Model, error) {
	cfg, err := in.config(ctx, o)
	if err != nil {
		return worker.Model{}, err
	}
	messages, chat := setup.Upstreams(cfg)
	return worker.Model{Provider: setup.Provider(cfg, o, o.Transport()), ID: cfg.Model.ID,
		Messages: worker.Upstream(messages), Chat: worker.Upstream(chat), Treatment: cfg.Proxy.Treatment}, nil
}

// serverOf are the settings of the server as variables set them: the front decides by its origins, too, and
// does not read the bucket. A mistake in a variable is told to everyone who needs the settings.
func serverOf(environ []string) config.Server {
	cfg := config.Default()
	if cfg.Override(environ) != nil {
		return config.Default().Server
	}
	return cfg.Server
}
