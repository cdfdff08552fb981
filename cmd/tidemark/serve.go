package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/provider"
	"github.com/tidemark-ai/tidemark/setup"
	"github.com/tidemark-ai/tidemark/web"
	"github.com/tidemark-ai/tidemark/worker"
)

// version is set by the linker for releases; others say their commit.
var version = ""

func versionText() string {
	if version != "" {
		return version
	}
	commit := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				commit = s.Value
			}
		}
	}
	const short = 12
	if len(commit) > short {
		return "0.0.0-" + commit[:short]
	}
	return "0.0.0-dev"
}

func (m *Main) versionCommand() *cobra.Command {
	return m.jsonFlag(&cobra.Command{Use: "version", Short: "Say which version this is", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if m.json {
				return m.printJSON(map[string]string{"version": versionText(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH})
			}
			m.out.line("tidemark", versionText())
			return nil
		}})
}

func (m *Main) serveCommand() *cobra.Command {
	var listen string
	c := &cobra.Command{
		Use: "serve", Short: "Serve the API", Args: cobra.NoArgs,
		Long: `Serve the HTTP API (docs/http.md) until SIGINT or SIGTERM.

Without TIDEMARK_TOKEN it serves this machine only. While it runs, other
commands on the same home folder talk to it. Turns in work get
server.graceSeconds at shutdown; what is unfinished then goes on at the next
start.`,
		Example: `  tidemark serve
  tidemark serve --listen 127.0.0.1:0
  TIDEMARK_TOKEN=$(openssl rand -hex 16) tidemark serve --listen 0.0.0.0:8787`,
		RunE: func(cmd *cobra.Command, _ []string) error { return m.serve(cmd.Context(), listen) },
	}
	c.Flags().StringVar(&listen, "listen", "", "address, port 0 for any free one (server.listen, default 127.0.0.1:8787)")
	return c
}

// serve opens the store, wakes what an earlier process left and answers requests until it is told
// to stop.
func (m *Main) serve(ctx context.Context, listen string) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	home, err := m.homeDir()
	if err != nil {
		return err
	}
	cfg, document, err := m.load(ctx, home)
	if err != nil {
		return err
	}
	if listen == "" {
		listen = cfg.Server.Listen
	}
	if err := mayListen(listen, cfg); err != nil {
		return err
	}
	log := m.logger(cfg, false)
	reason := cfg.Resolve()
	if err := needKey(cfg); err != nil {
		return err
	}
	n, err := openStore(ctx, home, cfg, log, true)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return errors.Join(&fixed{fmt.Errorf("listen at %s: %w", listen, err), listenFix(err)}, n.close())
	}
	err = m.serveOn(ctx, n, l, func(url string) { m.greet(url, reason, home, document, cfg) })
	return errors.Join(err, n.close())
}

// listenFix says what to do about an address that cannot be had.
func listenFix(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "stop what is using the port, or give --listen another; port 0 takes any free one"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "give --listen an address that this machine has, such as 127.0.0.1:8787"
	case errors.Is(err, os.ErrPermission):
		return "give --listen a port above 1023"
	}
	return "give --listen an address such as 127.0.0.1:8787"
}

// needKey refuses a model that cannot be called for want of a key, or that only Workers have.
func needKey(cfg *config.Config) error {
	if cfg.Model.Provider == config.WorkersAI {
		return &fixed{errors.New("model.provider: " + provider.NoWorkersAI), provider.WorkersAIByAPI}
	}
	name := cfg.KeyMissing()
	if name == "" {
		return nil
	}
	return &fixed{fmt.Errorf("model.provider is %q and %s is not set", cfg.Model.Provider, name), "set " + name + ", or model.provider to \"offline\""}
}

// mayListen refuses to be reached from other machines without a token.
func mayListen(listen string, cfg *config.Config) error {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return usagef("--listen %s: want host and port such as 127.0.0.1:8787", listen)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return usagef("--listen %s: port %q: want 0 to 65535; 0 takes any free one", listen, port)
	}
	ip := net.ParseIP(host)
	if host == "localhost" || ip != nil && ip.IsLoopback() || cfg.Secrets.Token != "" {
		return nil
	}
	return &fixed{fmt.Errorf("%s can be reached from other machines, and there is no token", listen),
		"set TIDEMARK_TOKEN to a secret of your own, or listen at 127.0.0.1"}
}

// greet says what a person wants to know at the start.
func (m *Main) greet(url, reason, home, document string, cfg *config.Config) {
	token, header := "none, only this machine may call", ""
	if cfg.Secrets.Token != "" {
		token, header = "required (TIDEMARK_TOKEN)", `-H "Authorization: Bearer $TIDEMARK_TOKEN" `
	}
	if document == "" {
		document = "none, all defaults"
	}
	bucket := cfg.Storage.Bucket
	where := "folder " + bucketPath(home, cfg)
	if bucket.Kind == "s3" {
		where = "s3 " + bucket.Endpoint + " " + bucket.Bucket + "/" + bucket.Prefix
	}
	m.out.printf("Tidemark %s serves at %s\n", versionText(), url)
	window := setup.Window(cfg)
	for _, row := range [][2]string{
		{"model", cfg.Model.Provider + " " + cfg.Model.ID + " (" + reason + ")"},
		{"window", fmt.Sprintf("%d tokens, compacted above %d; less where the model says so", window.Tokens, limitOf(cfg))},
		{"home", home}, {"bucket", where}, {"config", document}, {"token", token},
		{"channels", setup.ChannelLine(cfg)},
		{"talk", "tidemark chat, or curl " + header + url + `/v1/sessions/main/messages -d '{"text":"hello"}'`},
	} {
		m.out.printf("  %-8s %s\n", row[0], row[1])
	}
	for _, w := range cfg.Warnings {
		m.err.printf("warning: %s\n", w)
	}
	for _, g := range append(setup.ChannelGaps(cfg), setup.ToolGaps(cfg, true)...) {
		m.err.printf("warning: %s %s\n  what to do: %s\n", g.Setting, g.Message, gapFix(g))
	}
}

// headerTimeout bounds how long a client may take to send the head of a request.
const headerTimeout = 20 * time.Second

// farewell bounds how long streams may take to say that the server is stopping.
const farewell = time.Second

// serveOn answers requests until ctx ends, then lets turns in work go on for the grace period.
func (m *Main) serveOn(ctx context.Context, n *node, l net.Listener, ready func(url string)) error {
	return m.serveHandler(ctx, n, l, n.handler(n.cfg.Secrets.Token.Reveal()), ready)
}

// serveHandler is serveOn with a handler that stands in front of the node's.
func (m *Main) serveHandler(ctx context.Context, n *node, l net.Listener, h http.Handler, ready func(url string)) error {
	srv := &http.Server{Handler: native.ReadRest(h), ReadHeaderTimeout: headerTimeout, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(n.log.Handler(), slog.LevelDebug)}
	url := "http://" + reachable(l.Addr())
	messages, chat := bases(n.cfg)
	if err := writeServerFile(n.home, serverFile{URL: url, Messages: messages, Chat: chat}); err != nil {
		return errors.Join(err, l.Close())
	}
	defer removeServerFile(n.home)
	if err := n.start(ctx); err != nil {
		return errors.Join(err, l.Close())
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	ready(url)
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	grace := time.Duration(n.cfg.Server.GraceSeconds) * time.Second
	n.log.Info("stopping", "grace", grace)
	end, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	// Streams of events never end by themselves, so Shutdown only stops the accepting here.
	go func() { _ = srv.Shutdown(end) }()
	n.drain(end)
	close(n.stopping) // whoever still listens is told, and not cut off
	n.sockets.Close()
	bye, stop := context.WithTimeout(context.Background(), farewell)
	defer stop()
	_ = srv.Shutdown(bye)
	return srv.Close()
}

// reachable is an address at which this machine reaches a listener.
func reachable(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return a.String()
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port))
}

// handler gives the door to the node's actors.
func (n *node) handler(token string) http.Handler {
	page, err := web.Page()
	if err != nil {
		n.log.Error("the page is not served", "err", err)
	}
	return worker.New(worker.Config{Page: page, Actors: n, Blobs: n.blobs, Runtime: n.rt, Token: token, Loopback: true, Origins: n.cfg.Server.Origins,
		TokenHelp: "set TIDEMARK_TOKEN", Version: versionText(), Logger: n.log, Metrics: n.metrics, Health: n.health, Webhooks: n, People: n.people, GivenUp: n.givenUp,
		Model: n.model, Proxies: n.proxied, Tools: n.toolbox, Network: native.Transport(), Sockets: n.sockets, Stopping: n.stopping, Ping: time.Duration(n.cfg.Server.PingSeconds) * time.Second})
}

// model is what answers calls that belong to no conversation.
func (n *node) model(context.Context) (worker.Model, error) {
	messages, chat := setup.Upstreams(n.cfg)
	return worker.Model{Provider: n.provider, ID: n.cfg.Model.ID, Messages: worker.Upstream(messages), Chat: worker.Upstream(chat), Treatment: n.cfg.Proxy.Treatment}, nil
}

// health says which model answers. A mistake in the settings kept the server from starting.
func (n *node) health(context.Context) worker.Health {
	h := worker.Health{Model: n.cfg.Model.Provider + " " + n.cfg.Model.ID, Warnings: n.cfg.Warnings}
	for _, g := range append(setup.ChannelGaps(n.cfg), setup.ToolGaps(n.cfg, true)...) {
		if g.Odd {
			h.Warnings = append(slices.Clone(h.Warnings), g.Setting+" "+g.Message+"; "+g.Fix)
			continue
		}
		h.Problems = append(h.Problems, worker.Problem{Setting: g.Setting, Message: g.Message, Fix: gapFix(g)})
	}
	for _, st := range setup.ChannelStates(n.cfg) {
		h.Channels = append(h.Channels, worker.Channel(st))
	}
	return h
}

// gapFix says how the setting of a channel is mended on this host.
func gapFix(g setup.Gap) string {
	if g.Fix != "" {
		return g.Fix
	}
	if strings.HasPrefix(g.Setting, "TOOL_") {
		return "set " + g.Setting + " in the environment and start again (docs/tools.md)"
	}
	return "set " + g.Setting + " in the environment and start again (docs/whatsapp.md, docs/telegram.md), or unset the others"
}

// lockWait is how long a store may be in use by another command before we give up.
const lockWait = 5 * time.Second

// openStore opens the store of a home. While another command has it, it waits a little; a server
// that has it is an error at once.
func openStore(ctx context.Context, home string, cfg *config.Config, log *slog.Logger, serving bool) (*node, error) {
	const pause = 50 * time.Millisecond
	deadline := time.Now().Add(lockWait)
	for {
		n, err := newNode(home, cfg, log)
		var locked *native.LockedError
		if !errors.As(err, &locked) {
			return n, err
		}
		s := readServerFile(home)
		if s.PID == locked.PID && s.Talk {
			return nil, &fixed{fmt.Errorf("the store %s is in use by `tidemark chat` (process %d)", home, s.PID),
				"end that chat; to use the store from several places, run `tidemark serve`: chats and other commands then go through it"}
		}
		if s.PID == locked.PID && s.URL != "" {
			if !serving {
				return nil, locked
			}
			return nil, &fixed{fmt.Errorf("the store %s is served already at %s by process %d", home, s.URL, s.PID), "stop that server, or give --home another folder"}
		}
		if time.Now().After(deadline) {
			return nil, held(home, locked)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}
