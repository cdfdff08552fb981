// Package graph is a fake of Meta's Graph API for WhatsApp over real HTTP: it takes messages, keeps
// media, and posts signed webhooks to a business until they are acknowledged. It stands in for
// Meta's servers in tests and in tidemark whatsapp simulate, but knows nothing of templates' own rules,
// payment and the throughput of a number. Begin with [Server].
//
// Goals: it refuses what the real one refuses, with its codes; it has every fault on call, by the
// number that a message is sent to ([Trigger]) or by a queue ([Server.Fail]); it escapes and signs
// as Meta does. It was written from the API's documentation, not from our client, and a client of
// others is held against it (test/whatsapp).
package graph

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// What a [Server] is called and trusts unless its Config says otherwise.
const (
	DefaultToken       = "EAAfake0token0of0a0system0user"
	DefaultAppSecret   = "0123456789abcdef0123456789abcdef"
	DefaultVerifyToken = "walnut"
	DefaultVersion     = "v25.0"
	DefaultAccount     = "4400"
	DefaultNumber      = "15550001111"
	DefaultBurst       = 45 // messages to one person at once
)

const (
	pairGap     = 6 * time.Second // then one in this time
	window      = 24 * time.Hour  // in which a business may answer freely
	maxRequest  = 1 << 20
	readTimeout = 30 * time.Second
)

// Config says what a server is like. Every field has a useful zero.
type Config struct {
	Addr        string // to listen at; empty for a free port of this machine
	Token       string
	AppSecret   string
	VerifyToken string
	Version     string
	Account     string // id of the business's phone number
	Number      string // the number itself

	Files    string          // where media are said to be; empty for the server itself
	Webhook  string          // of the business; empty: webhooks are dropped
	Statuses []string        // what becomes of a message; nil for sent, delivered, read
	Disorder bool            // statuses come in the wrong order, and each twice
	Gaps     []time.Duration // between the tries of a post that was not acknowledged; nil for 1 s, 2 s, 4 s …
	Burst    int             // of one pair; 0 for DefaultBurst, negative for no limit
	Window   bool            // refuse, by a status, messages to people who have not written for 24 hours

	Now     func() time.Time // nil for time.Now
	Observe func(Event)      // told of all that a phone would show; called one at a time
}

// Event is something that a person sees on the phone.
type Event struct {
	Kind   string // message, typing, read, status
	To     string // number or user id
	ID     string // of the message
	Text   string // of a message; why a status is failed
	Quote  string // id of the message that it answers
	Status string
	Code   int // of a status that it failed
}

// Server is the fake. Its methods may be called at once.
type Server struct {
	// URL is its address without a path.
	URL string

	cfg    Config
	http   *http.Server
	client *http.Client
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup // posts of webhooks, and listening
	seeing sync.Mutex     // held while Observe runs

	mu      sync.Mutex // guards the following
	webhook string
	n       int // of ids
	sent    []Sent
	reads   []Read
	posts   []*Post
	pending int // posts that are not acknowledged yet
	changed chan struct{}
	faults  map[string][]Fault
	pairs   map[string]*pair
	known   map[string]bool      // messages that were posted
	wrote   map[string]time.Time // when a person last wrote
	numbers map[string]string    // of a user id
	media   map[string]*medium
	failed  map[string]int // requests for a medium that is not there
}

// New starts a server; the caller closes it.
func New(cfg Config) (*Server, error) {
	cfg.Addr, cfg.Token, cfg.AppSecret = cmp.Or(cfg.Addr, "127.0.0.1:0"), cmp.Or(cfg.Token, DefaultToken), cmp.Or(cfg.AppSecret, DefaultAppSecret)
	cfg.VerifyToken, cfg.Version = cmp.Or(cfg.VerifyToken, DefaultVerifyToken), cmp.Or(cfg.Version, DefaultVersion)
	cfg.Account, cfg.Number, cfg.Burst = cmp.Or(cfg.Account, DefaultAccount), cmp.Or(cfg.Number, DefaultNumber), cmp.Or(cfg.Burst, DefaultBurst)
	if cfg.Statuses == nil {
		cfg.Statuses = []string{"sent", "delivered", "read"}
	}
	if cfg.Gaps == nil {
		cfg.Gaps = []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, time.Minute}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	l, err := net.Listen("tcp", cfg.Addr)
	if err != nil {
		return nil, err
	}
	s := &Server{
		URL: "http://" + l.Addr().String(), cfg: cfg, webhook: cfg.Webhook, client: &http.Client{Timeout: readTimeout},
		changed: make(chan struct{}), faults: map[string][]Fault{}, pairs: map[string]*pair{}, wrote: map[string]time.Time{},
		known:   map[string]bool{},
		numbers: map[string]string{}, media: map[string]*medium{}, failed: map[string]int{},
	}
	s.cfg.Files = cmp.Or(cfg.Files, s.URL)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.http = &http.Server{Handler: s.routes(), ReadHeaderTimeout: readTimeout}
	s.start(func() { _ = s.http.Serve(l) }) // it ends with Close
	return s, nil
}

// Close ends the server, the requests that hang, and the posts that were never acknowledged.
func (s *Server) Close() error {
	s.mu.Lock()
	s.cancel()
	s.mu.Unlock()
	err := s.http.Close()
	s.work.Wait()
	s.client.CloseIdleConnections()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{version}/{account}/messages", s.graph(s.messages))
	mux.HandleFunc("POST /{version}/{account}/media", s.graph(s.upload))
	mux.HandleFunc("GET /{version}/{media}", s.graph(s.describe))
	mux.HandleFunc("GET /files/{media}/{key}", s.download)
	s.control(mux)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, Fault{Code: 2500, Status: http.StatusNotFound, Text: "Unknown path components"})
	})
	return mux
}

// graph is what all nodes of the API ask first: the version, the token, and our number.
func (s *Server) graph(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		account := r.PathValue("account")
		switch {
		case r.PathValue("version") != s.cfg.Version:
			refuse(w, Fault{Code: 2635, Text: "You are calling a version of the API that is not served"})
		case r.Header.Get("Authorization") != "Bearer "+s.cfg.Token:
			refuse(w, Fault{Code: 190, Text: "Invalid OAuth access token - Cannot parse access token"})
		case account != "" && account != s.cfg.Account:
			refuse(w, Fault{Code: 100, Subcode: 33, Text: "Unsupported post request. Object with ID '" + account + "' does not exist"})
		default:
			next(w, r)
		}
	}
}

// answer writes JSON.
func answer(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(status)
	_, _ = w.Write(body) // whoever asked has gone
}

// wake tells those who wait that something has changed. The caller holds mu.
func (s *Server) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// until waits until done says so, which is called with mu held.
func (s *Server) until(ctx context.Context, done func() bool) error {
	for {
		s.mu.Lock()
		ok, changed := done(), s.changed
		s.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// see tells the observer.
func (s *Server) see(e Event) {
	if s.cfg.Observe == nil {
		return
	}
	s.seeing.Lock()
	defer s.seeing.Unlock()
	s.cfg.Observe(e)
}
