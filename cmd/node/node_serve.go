package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/setup"
	"github.com/tidemark-ai/tidemark/web"
	"github.com/tidemark-ai/tidemark/worker"
)

// Handler gives the door to the node's actors.
func (n *Node) Handler(token string) http.Handler {
	page, err := web.Page()
	if err != nil {
		n.log.Error("the page is not served", "err", err)
	}
	return worker.New(worker.Config{Page: page, Actors: n, Blobs: n.blobs, Runtime: n.RT, Token: token, Loopback: true, Origins: n.Cfg.Server.Origins,
		TokenHelp: "set TIDEMARK_TOKEN", Version: VersionText(), Logger: n.log, Metrics: n.metrics, Health: n.health, Webhooks: n.ingress, People: n.People, GivenUp: n.givenUp,
		Model: n.model, Proxies: n.proxied, Tools: n.toolbox, Network: native.Transport(), Sockets: n.sockets, Stopping: n.stopping, Ping: time.Duration(n.Cfg.Server.PingSeconds) * time.Second})
}

// model is what answers calls that belong to no conversation.
func (n *Node) model(context.Context) (worker.Model, error) {
	messages, chat := setup.Upstreams(n.Cfg)
	return worker.Model{Provider: n.Provider, ID: n.Cfg.Model.ID, Messages: worker.Upstream(messages), Chat: worker.Upstream(chat), Treatment: n.Cfg.Proxy.Treatment}, nil
}

// health says which model answers. A mistake in the settings kept the server from starting.
func (n *Node) health(context.Context) worker.Health {
	h := worker.Health{Model: n.Cfg.Model.Provider + " " + n.Cfg.Model.ID, Warnings: n.Cfg.Warnings}
	for _, g := range append(setup.ChannelGaps(n.Cfg), setup.ToolGaps(n.Cfg, true)...) {
		if g.Odd {
			h.Warnings = append(slices.Clone(h.Warnings), g.Setting+" "+g.Message+"; "+g.Fix)
			continue
		}
		h.Problems = append(h.Problems, worker.Problem{Setting: g.Setting, Message: g.Message, Fix: GapFix(g)})
	}
	for _, st := range setup.ChannelStates(n.Cfg) {
		h.Channels = append(h.Channels, worker.Channel(st))
	}
	return h
}

// GapFix says how the setting of a channel is mended on this host.
func GapFix(g setup.Gap) string {
	if g.Fix != "" {
		return g.Fix
	}
	if strings.HasPrefix(g.Setting, "TOOL_") {
		return "set " + g.Setting + " in the environment and start again (docs/tools.md)"
	}
	return "set " + g.Setting + " in the environment and start again (docs/whatsapp.md, docs/telegram.md), or unset the others"
}

// OpenStore opens the store of a home. While another command has it, it waits a little; a server
// that has it is an error at once.
func OpenStore(ctx context.Context, home string, cfg *config.Config, log *slog.Logger, serving bool) (*Node, error) {
	const pause = 50 * time.Millisecond
	deadline := time.Now().Add(lockWait)
	for {
		n, err := NewNode(home, cfg, log)
		var locked *native.LockedError
		if !errors.As(err, &locked) {
			return n, err
		}
		s := cli.ReadServerFile(home)
		if s.PID == locked.PID && s.Talk {
			return nil, cli.Advise(fmt.Errorf("the store %s is in use by `tidemark chat` (process %d)", home, s.PID),
				"end that chat; to use the store from several places, run `tidemark serve`: chats and other commands then go through it")
		}
		if s.PID == locked.PID && s.URL != "" {
			if !serving {
				return nil, locked
			}
			return nil, cli.Advise(fmt.Errorf("the store %s is served already at %s by process %d", home, s.URL, s.PID), "stop that server, or give --home another folder")
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

// ServeOn answers requests until ctx ends, then lets turns in work go on for the grace period.
func ServeOn(ctx context.Context, n *Node, l net.Listener, ready func(url string)) error {
	return ServeHandler(ctx, n, l, n.Handler(n.Cfg.Secrets.Token.Reveal()), ready)
}

// ServeHandler is serveOn with a handler that stands in front of the node's.
func ServeHandler(ctx context.Context, n *Node, l net.Listener, h http.Handler, ready func(url string)) error {
	srv := &http.Server{Handler: native.ReadRest(h), ReadHeaderTimeout: HeaderTimeout, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(n.log.Handler(), slog.LevelDebug)}
	url := "http://" + reachable(l.Addr())
	messages, chat := cli.Bases(n.Cfg)
	if err := cli.WriteServerFile(n.Home, cli.ServerFile{URL: url, Messages: messages, Chat: chat}); err != nil {
		return errors.Join(err, l.Close())
	}
	defer cli.RemoveServerFile(n.Home)
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
	grace := time.Duration(n.Cfg.Server.GraceSeconds) * time.Second
	n.log.Info("stopping", "grace", grace)
	end, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	// Streams of events never end by themselves, so Shutdown only stops the accepting here.
	go func() { _ = srv.Shutdown(end) }()
	n.Drain(end)
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

// VersionText is the version of this program.
func VersionText() string {
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

// HeaderTimeout bounds how long a client may take to send the head of a request.
const HeaderTimeout = 20 * time.Second

// farewell bounds how long streams may take to say that the server is stopping.
const farewell = time.Second

// lockWait is how long a store may be in use by another command before we give up.
const lockWait = 5 * time.Second

// version is set by the linker for releases; others say their commit.
var version = ""

// held explains why a store cannot be opened.
func held(home string, locked *native.LockedError) error {
	who := "another process"
	if locked.PID > 0 {
		who = "process " + strconv.Itoa(locked.PID)
	}
	return cli.Advise(fmt.Errorf("the store %s is in use by %s, which is not a server of it", home, who),
		"wait until that command has ended, or stop it; `tidemark serve` lets several commands use a store at once")
}

// handlerTransport answers requests by a handler of this process. The answer streams: its body can
// be read while the handler still writes.
type handlerTransport struct{ h http.Handler }

var _ http.RoundTripper = handlerTransport{}

// InThisProcess answers by a handler of this process.
func InThisProcess(h http.Handler) http.RoundTripper { return handlerTransport{h} }

// RoundTrip implements http.RoundTripper. The handler ends when the context of the request does or
// the body of the answer is closed.
func (t handlerTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	in := req.Clone(ctx)
	in.RemoteAddr, in.Host, in.RequestURI = "127.0.0.1:0", "localhost", req.URL.RequestURI()
	if in.Body == nil {
		in.Body = http.NoBody
	}
	r, w := io.Pipe()
	a := &answerWriter{header: http.Header{}, pipe: w, begun: make(chan struct{})}
	go func() {
		defer func() {
			if p := recover(); p != nil {
				err, ok := p.(error)
				if !ok || !errors.Is(err, http.ErrAbortHandler) {
					err = fmt.Errorf("panic in the handler: %v", p)
				}
				w.CloseWithError(err)
			}
			a.WriteHeader(http.StatusOK)
			w.Close() // after CloseWithError it changes nothing
			cancel(context.Canceled)
		}()
		t.h.ServeHTTP(a, in)
	}()
	<-a.begun
	return &http.Response{
		Status: http.StatusText(a.status), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.sent, Body: &answerBody{r, cancel}, ContentLength: -1, Request: req,
	}, nil
}

// answerWriter is the handler's side.
type answerWriter struct {
	header, sent http.Header
	pipe         *io.PipeWriter
	once         sync.Once
	status       int
	begun        chan struct{} // closed when status and sent are there
}

// Header implements http.ResponseWriter.
func (a *answerWriter) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answerWriter) WriteHeader(status int) {
	a.once.Do(func() {
		a.status, a.sent = status, a.header.Clone()
		close(a.begun)
	})
}

// Write implements http.ResponseWriter. It waits until the client has read.
func (a *answerWriter) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.pipe.Write(p)
}

// FlushError is for http.ResponseController: nothing is held back.
func (a *answerWriter) FlushError() error { return nil }

// answerBody is the client's side.
type answerBody struct {
	*io.PipeReader
	cancel context.CancelCauseFunc
}

// Close ends the handler too.
func (b *answerBody) Close() error {
	b.cancel(errors.New("the client has gone"))
	return b.PipeReader.Close()
}
