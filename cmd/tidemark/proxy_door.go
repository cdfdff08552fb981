package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/cmd/node"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/proxy"
)

// Headers that a client cannot be told to send: the door adds them.
const (
	headerToken     = "X-Tidemark-Token"     //nolint:gosec // the name of one
	headerMode      = "X-Tidemark-Mode"      // the treatment
	headerProxy     = "X-Tidemark-Proxy"     // the conversation, as its client names it
	headerSession   = "X-Tidemark-Session"   // of an answer: the key of the conversation
	headerUntouched = "X-Tidemark-Untouched" // of an answer: why the request went on as it came
)

// countPath is where a client asks for the size of a request instead of an answer.
const countPath = "/v1/messages/count_tokens"

var _ http.Handler = (*proxyDoor)(nil)

// proxyDoor is where one client sends its requests: an address of this machine that adds what the
// client cannot say of itself, and passes on to a server of this process or to one elsewhere.
type proxyDoor struct {
	next       http.Handler   // the server
	node       *node.Node     // of this process; nil where the server is elsewhere
	base       string         // where that is
	named      bool           // and the user said so
	of         cli.ServerFile // what the one that has the store left of itself
	client     *client        // what the summary is read by
	token      string         // of the server; it stays on this side of the door
	mode, name string
	path       string // what the client's base URL has behind the address
	l          net.Listener
	leave      func()       // tells the process that has the store that we are gone
	tell       func(string) // says something to whoever runs the client

	began time.Time

	mu   sync.Mutex // guards the following
	busy int        // requests in work
	seen seen
}

// seen is what the summary tells of the requests that came.
type seen struct {
	requests  int         // to a model
	asked     int         // of these, those for an answer: others ask for the size of one
	beside    int         // of requests, those that came to another address than the client's
	others    int         // not in requests: lists of models, commands of ours
	refused   int         // not in requests: what went no further
	untouched int         // of those for an answer
	reasons   []untouched // of all
	keys      []string    // of the conversations that answers named
}

// untouched is a reason for which requests were passed on untouched, and how many were.
type untouched struct {
	kind, why string
	requests  int
}

// openDoor finds the server that the requests go through: the one that is named, the one that has
// the store, else one of this process.
func openDoor(ctx context.Context, m *cli.Main, f proxyFlags) (*proxyDoor, error) {
	d := &proxyDoor{mode: f.Treatment, name: f.Name, leave: func() {}, tell: func(s string) { m.Err.Line(s) }, began: time.Now()}
	var err error
	if d.base, err = m.Named(); err != nil {
		return nil, err
	}
	d.named = d.base != ""
	if d.base == "" {
		err = ownDoor(ctx, m, d, f)
	}
	if err == nil && d.base != "" {
		err = otherDoor(ctx, m, d, f)
	}
	if err == nil {
		d.path = "/p/" + d.name
		if d.token != "" { // or everybody on this machine could come in by this door
			d.path = "/t/" + secret(16) + d.path
		}
		if d.l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(f.Port))); err != nil {
			err = cli.Advise(fmt.Errorf("listen at port %d: %w", f.Port, err), "leave --port out for any free one")
		}
	}
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

// ownDoor opens the store for a server of this process, or finds the server that has it.
func ownDoor(ctx context.Context, m *cli.Main, d *proxyDoor, f proxyFlags) error {
	home, err := m.HomeDir()
	if err != nil {
		return err
	}
	cfg, _, err := proxyMain(m).Load(ctx, home)
	if err != nil {
		return err
	}
	told := upstreams(m, cfg, f.Upstream)
	n, err := node.OpenStore(ctx, home, cfg, m.Logger(cfg, true), false)
	var locked *native.LockedError
	if s := cli.ReadServerFile(home); errors.As(err, &locked) && s.PID == locked.PID && s.URL != "" {
		d.base, d.of, d.leave = s.URL, s, enterAsGuest(home)
		return nil
	}
	if err == nil && told != nil {
		err = errors.Join(told, n.Close())
	}
	if err != nil {
		return err
	}
	d.node, d.token, d.mode = n, cfg.Secrets.Token.Reveal(), cmp.Or(f.Treatment, cfg.Proxy.Treatment)
	d.next, d.client = n.Handler(d.token), inProcess(n)
	return nil
}

// otherDoor goes through a server that runs already. It must answer now: the client could not say
// what is wrong.
func otherDoor(ctx context.Context, m *cli.Main, d *proxyDoor, f proxyFlags) error {
	if f.Upstream != "" {
		return cli.Advise(fmt.Errorf("--upstream: the requests go through the server at %s, which has an upstream of its own", d.base),
			"leave --upstream out, stop that server, or give --home another folder")
	}
	d.client = serverAt(m, d.base)
	d.token = d.client.Token
	if err := d.client.Get(ctx, "/v1/sessions?limit=1", nil); err != nil { // a token that is wrong, too
		return err
	}
	tellUpstreams(m, d.of, d.base)
	to, err := url.Parse(d.base)
	if err != nil {
		return fmt.Errorf("--server %s: %w", d.base, err)
	}
	d.next = relayTo(to, d.client.RT)
	return nil
}

// relayTo passes requests on to a server as they are, and its answers back as they come.
func relayTo(to *url.URL, rt http.RoundTripper) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport:     rt,
		FlushInterval: -1,
		ErrorLog:      slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug), // the client is told
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			refuse(w, http.StatusBadGateway, "api_error", "no answer from "+to.Host+": "+err.Error())
		},
	}
}

// refuse answers in the form of the Messages API, which those of OpenAI's can read, too.
func refuse(w http.ResponseWriter, status int, kind, message string) {
	raw, err := json.Marshal(map[string]any{"type": "error", "error": map[string]string{"type": kind, "message": "tidemark proxy: " + message}})
	if err != nil {
		raw = nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(raw) // a client that is gone needs no answer
}

// ServeHTTP implements http.Handler: what comes by the client's own address is stamped and passed on;
// all else goes to the server of this process as it is, so that other commands reach it.
func (d *proxyDoor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rest, ours := strings.CutPrefix(r.URL.EscapedPath(), d.path+"/")
	if !ours {
		d.aside(w, r)
		return
	}
	for rest = "/" + rest; strings.Contains(rest, "//"); { // of a base URL that ends in a slash
		rest = strings.ReplaceAll(rest, "//", "/")
	}
	plain, err := url.PathUnescape(rest)
	if err != nil || !forClients(plain) {
		d.refuse(w, "no "+r.Method+" "+rest+" here: want a route of the API, below /v1/")
		return
	}
	came := came{talk: r.Method == http.MethodPost && !otherRoute(plain), count: plain == countPath}
	if otherRoute(plain) {
		named := "/p/" + d.name
		plain, rest = named+plain, named+rest
	}
	in := r.Clone(r.Context())
	in.URL.Path, in.URL.RawPath = plain, rest
	in.RequestURI = in.URL.RequestURI()
	in.Header.Set(headerProxy, d.name)
	if d.mode != "" {
		in.Header.Set(headerMode, d.mode)
	}
	if d.token != "" {
		in.Header.Set(headerToken, d.token)
	}
	d.pass(w, in, came)
}

// aside takes what comes to another address than the client's. The server of this process gets it as it is; a door to a
// server elsewhere refuses it. It is counted, unless it comes from the door of another client, which counts it.
func (d *proxyDoor) aside(w http.ResponseWriter, r *http.Request) {
	if d.node == nil {
		d.refuse(w, "this address is another one's; the client has its own in "+cli.AnthropicBase+" and "+cli.OpenAIBase)
		return
	}
	if r.Header.Get(headerProxy) != "" {
		d.next.ServeHTTP(w, r)
		return
	}
	route := r.URL.Path
	for _, before := range []string{"/t/", "/p/"} { // a token, a name
		if rest, ok := strings.CutPrefix(route, before); ok {
			_, rest, _ = strings.Cut(rest, "/")
			route = "/" + rest
		}
	}
	d.pass(w, r, came{talk: r.Method == http.MethodPost && route != "/" && !otherRoute(route), count: route == countPath, beside: true})
}

// came is what a request is counted as.
type came struct {
	talk   bool // to a model
	count  bool // for the size of a request
	beside bool // to another address than the client's
}

func (c came) asks() bool { return c.talk && !c.count }

// pass has the server answer, and counts.
func (d *proxyDoor) pass(w http.ResponseWriter, r *http.Request, c came) {
	if d.took(c) {
		d.tell("tidemark proxy: a model request came to another address than " + cli.AnthropicBase + " and " + cli.OpenAIBase + " name; --treatment and --name do not apply to it")
	}
	defer func() { d.note(w.Header().Get(headerSession), w.Header().Get(headerUntouched), c.asks()) }()
	d.next.ServeHTTP(w, r)
}

// refuse answers what goes no further, counts it, and says so of the first: clients may show no more than a number.
func (d *proxyDoor) refuse(w http.ResponseWriter, message string) {
	d.mu.Lock()
	d.seen.refused++
	first := d.seen.refused == 1
	d.mu.Unlock()
	if first {
		d.tell("tidemark proxy: a request was refused: " + message)
	}
	refuse(w, http.StatusNotFound, "not_found_error", message)
}

// forClients reports whether a path is of an API that clients speak: what else a server of ours has is not for a
// program that was only told where the model is.
func forClients(path string) bool {
	return path == "/" || strings.HasPrefix(path, "/v1/") && !strings.Contains(path, "..")
}

// otherRoute reports a route that is no conversation's, such as lists of models, embeddings and files. The server passes it
// on to the API where the path names a client; by itself it would be a route of Tidemark's own.
func otherRoute(path string) bool {
	return path != "/" && path != "/v1/messages" && path != countPath && path != "/v1/chat/completions"
}

// took counts a request, and reports whether it is the first one to a model that came to another address.
func (d *proxyDoor) took(c came) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.busy++
	if !c.talk {
		d.seen.others++
		return false
	}
	d.seen.requests++
	if c.asks() {
		d.seen.asked++
	}
	if c.beside {
		d.seen.beside++
	}
	return c.beside && d.seen.beside == 1
}

// note remembers of an answer what the summary tells, and says at once when the first request was not treated: it may be
// hours until the client ends.
func (d *proxyDoor) note(key, untouched string, asks bool) {
	d.mu.Lock()
	first := d.seen.add(key, untouched, asks)
	d.mu.Unlock()
	if first {
		kind, why, _ := strings.Cut(untouched, ": ")
		d.tell("tidemark proxy: a request was passed on untouched: " + why + "; " + proxy.Remedy(kind))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.busy--
}

// add takes in an answer, and reports whether it is the first that was passed on untouched.
func (s *seen) add(key, header string, asks bool) bool {
	const most = 100 // conversations of one client
	if key != "" && !slices.Contains(s.keys, key) && len(s.keys) < most {
		s.keys = append(s.keys, key)
	}
	if header == "" {
		return false
	}
	if asks {
		s.untouched++
	}
	kind, why, _ := strings.Cut(header, ": ")
	s.reason(kind, why)
	return len(s.reasons) == 1 && s.reasons[0].requests == 1
}

// reason counts a reason. Of many, those of one kind are one.
func (s *seen) reason(kind, why string) {
	const most = 5 // reasons that are told
	at := slices.IndexFunc(s.reasons, func(r untouched) bool { return r.kind == kind && r.why == why })
	if at < 0 && len(s.reasons) < most {
		s.reasons = append(s.reasons, untouched{kind, why, 1})
		return
	}
	if at < 0 {
		at = slices.IndexFunc(s.reasons, func(r untouched) bool { return r.kind == kind })
	}
	if at < 0 {
		at = most - 1
	}
	s.reasons[at].requests++
}

// settle waits for what is in work: a client has its answer a moment before the door is done with it.
func (d *proxyDoor) settle() {
	const look, most = 5 * time.Millisecond, 2 * time.Second
	for until := time.Now().Add(most); time.Now().Before(until); time.Sleep(look) {
		d.mu.Lock()
		busy := d.busy
		d.mu.Unlock()
		if busy == 0 {
			return
		}
	}
}

// noted gives what note remembers.
func (d *proxyDoor) noted() seen {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := d.seen
	out.keys, out.reasons = slices.Clone(out.keys), slices.Clone(out.reasons)
	return out
}

// url is the base URL of the client, without the API's version.
func (d *proxyDoor) url() string { return "http://" + d.l.Addr().String() + d.path }

// say tells where the requests go.
func (d *proxyDoor) say() string {
	if d.node != nil {
		return "http://" + d.l.Addr().String() + ", kept in " + d.node.Home
	}
	return "http://" + d.l.Addr().String() + " by way of " + d.base
}

// serveDoor answers requests until ctx ends.
func serveDoor(ctx context.Context, m *cli.Main, d *proxyDoor, ready func(string)) error {
	if d.node != nil {
		return node.ServeHandler(ctx, d.node, d.l, d, ready)
	}
	srv := &http.Server{Handler: native.ReadRest(d), ReadHeaderTimeout: node.HeaderTimeout, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(d.l) }()
	ready(d.url())
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
		return srv.Close()
	}
}

// close gives up what the door stands on.
func (d *proxyDoor) close() error {
	d.leave()
	var errs []error
	if d.l != nil {
		if err := d.l.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if d.node != nil {
		errs = append(errs, d.node.Close())
	}
	return errors.Join(errs...)
}

// upstreamURL is the base URL of an API without its version.
func upstreamURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", errors.New("want a URL such as https://api.anthropic.com")
	}
	return strings.TrimSuffix(strings.TrimRight(text, "/"), "/v1"), nil
}
