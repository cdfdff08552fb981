// Package worker is the door: an http.Handler over sessions and agents, the same on every host. It
// decodes, authenticates, routes and encodes; it decides nothing about conversations. Begin with
// ServeHTTP: a request id, the guard (guard.go), the table of routes (routes.go), a function of the
// route, and if that fails the table of errors (errors.go).
//
// What the routes take and give is written down in docs/http.md.
package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/proxy"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/toolbox"
)

// Actors finds the actors that a request is for. On Workers the front has found the object already,
// and the actor of any other key is ErrForbidden. It may be called at once by many requests.
type Actors interface {
	// Session returns the session of a key. One that does not exist is made with create, else it
	// is ErrNotFound.
	Session(ctx context.Context, key tidemark.Key, create bool) (*session.Session, error)
	// Agent returns the agent of a name; ErrNotFound when there is none.
	Agent(ctx context.Context, name string) (*agent.Agent, error)
}

// Lister is what Actors are beside, on a host that knows the agents there are.
type Lister interface {
	// Agents returns the names of all agents, in order.
	Agents(ctx context.Context) ([]string, error)
}

// Config is what the handler stands on. Actors, Blobs and Runtime are required; the zero value of
// every other field is its default.
type Config struct {
	Actors  Actors
	Blobs   tidemark.Blobs
	Runtime tidemark.Runtime

	// Token guards every route but /healthz and /. Without one only peers on this machine come in,
	// and those only with Loopback.
	Token string
	// Loopback says that RemoteAddr is the real peer, so that one on this machine may do without a
	// token. Only a native host knows that.
	Loopback bool
	// Origins are pages of other origins that may call ("https://chat.example.com").
	Origins []string
	// TokenHelp tells a person how to set the token: "set TIDEMARK_TOKEN".
	TokenHelp string
	// TokenWhere tells a person where the token is to be found, who sent none or another.
	TokenWhere string

	// Webhooks takes what messaging platforms post, People knows who may talk over them, GivenUp what was
	// not worked off; nil: there are none.
	Webhooks Webhooks
	People   People
	GivenUp  GivenUp

	Version string // shown by /healthz and /
	// Page serves / and /assets/ to anybody; nil where the platform does, or where there is none.
	Page http.Handler
	// Health tells what the settings are worth; nil: there is nothing to say of them.
	Health  func(context.Context) Health
	Logger  *slog.Logger // nil: no logging; it never gets content
	Metrics *Metrics     // nil: one of its own

	// Sockets holds what /ws accepts; nil: this host has none.
	Sockets Sockets

	// Model says what answers calls that belong to no conversation, and Network reaches the API that
	// requests of the Messages API without one are passed on to; nil: this host has no such door.
	Model   func(context.Context) (Model, error)
	Network http.RoundTripper

	// Proxies finds the conversation of a client that keeps its history itself, and makes one that is not there.
	// nil: such requests are passed on as they are.
	Proxies func(ctx context.Context, key tidemark.Key) (*proxy.Conversation, error)

	// Tools finds the tools of others; nil: there are none.
	Tools func(context.Context) (*toolbox.Box, error)

	MaxBody int64 // bytes of a body that is read whole, default 32 MB
	// MaxMessage is how many bytes a message of an imported log may have, default those of its reader.
	MaxMessage int64
	// Admit is asked before a body over 1 MB is read, where memory is scarce; release gives the bytes
	// back. nil lets everyone in.
	Admit func(bytes int64) (release func(), ok bool)
	// MaxSpool is how many bytes of an imported log the session's database may hold while it is read,
	// for a host without a disk; 0 lets a temporary file hold them, without a bound.
	MaxSpool int64
	Wait     time.Duration // longest wait for a turn, default 1 h
	Ping     time.Duration // between signs of life on a stream, default 15 s
	// Stopping is closed when the host ends: streams say so, and end. nil where a host never does.
	Stopping <-chan struct{}
	// WriteTimeout is how long one write to a client may take, default 30 s.
	WriteTimeout time.Duration
}

// Defaults of Config.
const (
	DefaultMaxBody            = 32 << 20
	DefaultWait               = time.Hour
	DefaultPing               = 15 * time.Second
	DefaultWriteTimeout       = 30 * time.Second
	defaultHelp               = "set TIDEMARK_TOKEN"
	defaultWhere              = "TIDEMARK_TOKEN as the server was started with"
	maxRequestID              = 64
	requestIDHeader           = "X-Request-Id"
	givenIDHeader             = "X-Tidemark-Id" // the same from a front, beside what the client sent
	statusClientGone          = 499             // as nginx counts a client that went away
	codeJSON, codeEventStream = "application/json", "text/event-stream"
)

// door is the handler.
type door struct {
	Config
	guard guard
	table *table
	rooms *rooms

	unverified budget // of webhooks
}

// New returns the handler.
func New(c Config) http.Handler {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Metrics == nil {
		c.Metrics = NewMetrics(c.Runtime.Now)
	}
	c.MaxBody = orDefault(c.MaxBody, DefaultMaxBody)
	c.Wait = orDefault(c.Wait, DefaultWait)
	c.Ping = orDefault(c.Ping, DefaultPing)
	c.WriteTimeout = orDefault(c.WriteTimeout, DefaultWriteTimeout)
	if c.TokenHelp == "" {
		c.TokenHelp = defaultHelp
	}
	if c.TokenWhere == "" {
		c.TokenWhere = defaultWhere
	}
	d := &door{Config: c, table: routed, unverified: budget{left: maxUnverified}}
	d.rooms = &rooms{d: d, byID: map[string]*member{}, open: map[tidemark.Key]*room{}}
	d.guard = guard{token: c.Token, loopback: c.Loopback, origins: c.Origins, help: c.TokenHelp, where: c.TokenWhere}
	return d
}

// table finds the route of a request.
type table struct {
	mux  *http.ServeMux
	open map[string]bool // patterns that need no token
}

// routed is the table of all doors: a Worker has one for each object, and parsing the routes for each took more memory
// than all else of an object that is idle.
var routed = newTable()

func newTable() *table {
	t := &table{mux: http.NewServeMux(), open: map[string]bool{}}
	for _, rt := range routes() {
		t.open[rt.pattern] = rt.open
		t.mux.HandleFunc(rt.pattern, func(w http.ResponseWriter, r *http.Request) {
			a := w.(*answer)
			one := &request{door: a.door, w: a, r: r}
			defer one.end()
			err := one.known(rt.takes)
			var v any
			if err == nil {
				v, err = rt.serve(one)
			}
			if err == nil {
				err = one.bad
			}
			if err == nil {
				err = one.write(v)
			}
			if err != nil {
				a.door.fail(a, r, err)
			}
		})
	}
	return t
}

func orDefault[T int64 | time.Duration](v, otherwise T) T {
	if v <= 0 {
		return otherwise
	}
	return v
}

// request is one request on its way through a route.
type request struct {
	*door
	w *answer
	r *http.Request

	packed   *packed       // its body, if that came compressed
	release  func()        // gives back what Config.Admit gave
	bad      error         // why a parameter of the query cannot be read
	patience time.Duration // how long this client waits for a turn, 0: Config.Wait
}

// end ends a request.
func (c *request) end() {
	if c.release != nil {
		c.release()
		c.release = nil
	}
}

// answer notes what became of a response.
type answer struct {
	http.ResponseWriter
	door   *door
	id     string // of the request
	status int    // 0 while nothing was sent
	input  string // id of the input that the request made durable
	broken bool   // what was sent is a part and must not look whole
	known  bool   // the client may come in
	wrong  error  // why not, of one that gave a token
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	return a.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// ServeHTTP implements http.Handler.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := d.Runtime.Now()
	a := &answer{ResponseWriter: w, door: d, id: requestID(givenID(r), began)}
	secure(w.Header())
	w.Header().Set(requestIDHeader, a.id)
	r, token := split(r)
	route := "none"
	defer func() {
		if p := recover(); p != nil {
			d.fail(a, r, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
		d.Metrics.request(route, a.status)
		d.Logger.Debug("request", "id", a.id, "route", route, "status", a.status, "ms", d.Runtime.Now().Sub(began).Milliseconds())
		if a.broken {
			panic(http.ErrAbortHandler)
		}
	}()
	if d.guard.cross(w.Header(), r) {
		route = "preflight"
		a.WriteHeader(http.StatusNoContent)
		return
	}
	_, pattern := d.table.mux.Handler(r)
	if pattern != "" {
		route = pattern
	}
	ask := asks(r, token)
	err := d.guard.admit(ask)
	if d.Token != "" && ask.token != "" && errors.Is(err, tidemark.ErrUnauthorized) {
		a.wrong = err
	}
	if a.known = err == nil; !a.known && !d.table.open[pattern] {
		d.fail(a, r, err)
		return
	}
	if pattern == "" {
		d.fail(a, r, d.unrouted(w, r))
		return
	}
	d.table.mux.ServeHTTP(a, r)
}

// unrouted says why no route fits: the path is unknown, or known with other methods.
func (d *door) unrouted(w http.ResponseWriter, r *http.Request) error {
	var allow []string
	for _, m := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		probe := *r
		probe.Method = m
		if _, pattern := d.table.mux.Handler(&probe); pattern != "" {
			allow = append(allow, m)
		}
	}
	if len(allow) == 0 {
		return &refused{http.StatusNotFound, "not_found", fmt.Sprintf("no route %s %s; docs/http.md lists them", clip.To(r.Method, 20), clip.To(r.URL.Path, 200))}
	}
	w.Header().Set("Allow", strings.Join(allow, ", "))
	return &refused{http.StatusMethodNotAllowed, "method_not_allowed", fmt.Sprintf("%s is not for this route; it takes %s", clip.To(r.Method, 20), strings.Join(allow, ", "))}
}

// givenID is the id that a front or the client gave a request.
func givenID(r *http.Request) string {
	return cmp.Or(r.Header.Get(givenIDHeader), r.Header.Get(requestIDHeader))
}

// requestID keeps the id that was given, if it is one, or makes one.
func requestID(given string, now time.Time) string {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	}
	if given != "" && len(given) <= maxRequestID && !strings.ContainsFunc(given, odd) {
		return given
	}
	return tidemark.NewID(now)
}

// secure sets what every answer has: nothing of it is a page, to be framed, sniffed or kept.
func secure(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// fail answers with an error, or breaks off what was begun, so that no client takes a part for the
// whole.
func (d *door) fail(a *answer, r *http.Request, err error) {
	if r.Context().Err() != nil || errors.Is(err, errLeft) {
		a.broken = a.status != 0
		if a.status == 0 {
			a.status = statusClientGone
		}
		return
	}
	f := failureOf(err)
	d.Metrics.failure(f.kind)
	var logged *LoggedError
	switch {
	case errors.As(err, &logged):
	case f.status == http.StatusInternalServerError:
		d.Logger.Error("request failed", "id", a.id, "err", err)
	case errors.Is(err, tidemark.ErrUnavailable): // a disk or a bucket, which whoever runs this must mend
		d.Logger.Warn("request failed", "id", a.id, "err", err)
	}
	if a.status != 0 {
		a.broken = !errors.Is(err, errTold)
		return
	}
	h := a.Header()
	if f.retry > 0 {
		h.Set("Retry-After", fmt.Sprint(int((f.retry+time.Second-1)/time.Second)))
	}
	if f.status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="tidemark"`)
	}
	t := errorFormOf(r)
	t.heads(h, f, a)
	status, body := t.put(f, a)
	if err := writeJSON(a, status, body); err != nil {
		d.Logger.Debug("answer", "id", a.id, "err", err)
	}
}

func (f failure) wire(a *answer) wireFault {
	return wireFault{Type: f.kind, Message: f.text, RequestID: a.id, Input: a.input}
}

// What the end of a stream may be marked with.
var (
	errTold = errors.New("told on the stream")  // the client knows of the error
	errLeft = errors.New("the client has left") // or does not read
)
