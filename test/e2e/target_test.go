//go:build !js

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// token guards every server; one with a space must be escaped in a path.
const token = "open sesame"

// document is config.json in the bucket of every target.
const document = `{
	// What has no variable of its own.
	"session": { "resetPolicies": { "idle": { "mode": "idle", "idleMinutes": 1 }, "daily": { "mode": "daily", "atHour": 4 } } },
	"agents": { "list": [{ "id": "work" }] },
}`

// common are the variables of every target.
func common(model string) []string {
	return []string{
		"ANTHROPIC_API_KEY=fake-key", "TIDEMARK_MODEL_BASEURL=" + model, "TIDEMARK_MODEL_ID=fake-1", "TIDEMARK_TOKEN=" + token,
		"TIDEMARK_SERVER_GRACESECONDS=1", "TIDEMARK_LOG_LEVEL=warn",
	}
}

// How a target is stopped.
const (
	gracefully = "graceful"
	byKill     = "kill" // as by a power cut
)

// target is a host of ours that serves what lies in a folder.
type target interface {
	// start serves with variables, and returns where.
	start(env []string) (url string, err error)
	// stop ends it; errCannot when it cannot end so.
	stop(how string) error
	// databases are the SQLite files on the disk, to be read while it is stopped.
	databases() ([]string, error)
	// bucket is where its files are, beside its own doors.
	bucket() bucket
	// said is what it logged, for reports.
	said() string
}

// bucket reaches the objects of a target as another program would.
type bucket interface {
	list(prefix string) ([]string, error)
	get(key string) (body []byte, meta map[string]string, err error)
	put(key string, body []byte) error
}

// errCannot says that a target has no such thing.
var errCannot = errors.New("this target cannot do that")

// site is a target with the models that its sessions talk to.
type site struct {
	target
	name  string
	env   []string
	front *httptest.Server // passes calls on to the model that they name

	mu     sync.Mutex        // guards the following
	at     string            // URL of the target, empty while it is stopped
	models map[string]string // URL of each model
}

// newSite makes a site; nothing serves yet. "{model}" in a variable is where the models are.
func newSite(name, disk string, env []string) *site {
	s := &site{name: name, models: map[string]string{}}
	s.front = httptest.NewServer(http.HandlerFunc(s.pass))
	s.env = common(s.front.URL)
	for _, v := range env { // each once: what is said last counts
		name, _, _ := strings.Cut(v, "=")
		s.env = slices.DeleteFunc(s.env, func(old string) bool { return strings.HasPrefix(old, name+"=") })
		s.env = append(s.env, strings.ReplaceAll(v, "{model}", s.front.URL))
	}
	switch name {
	case "native":
		s.target = &binary{home: disk}
	case "workerd":
		s.target = &workerd{disk: disk}
	default:
		s.target = &inProcess{home: disk}
	}
	return s
}

// starting is full while so many servers start: all at once they would outlast patience on a busy machine.
var starting = make(chan struct{}, 3)

// run starts the target on the disk as it is.
func (s *site) run() error {
	starting <- struct{}{}
	at, err := s.start(s.env)
	<-starting
	if err != nil {
		return fmt.Errorf("start %s: %w\n%s", s.name, err, s.said())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = at
	return nil
}

// halt stops the target.
func (s *site) halt(how string) error {
	s.mu.Lock()
	s.at = ""
	s.mu.Unlock()
	return s.stop(how)
}

// close ends the target and its models.
func (s *site) close() error {
	s.mu.Lock()
	running := s.at != ""
	s.mu.Unlock()
	var err error
	if running {
		err = errors.Join(s.sound(), s.halt(gracefully))
	}
	s.front.CloseClientConnections()
	s.front.Close()
	return err
}

// sound reports what a Worker counted that must never be.
func (s *site) sound() error {
	if _, ok := s.target.(*workerd); !ok {
		return nil
	}
	h, err := s.health()
	if err == nil && (h.Total.Violations != 0 || h.Total.Fatals != 0) {
		err = fmt.Errorf("the Worker counted %d host calls for another object and %d ends of its Go instance\n%s", h.Total.Violations, h.Total.Fatals, s.said())
	}
	return err
}

func (s *site) base() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at
}

// model makes calls that name a model go to a server.
func (s *site) model(name, to string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.models[name] = to
}

// pass hands a call of a model on to the server that plays it, and lets go of it when the caller
// does: all targets call one address, and each test has a model of its own.
func (s *site) pass(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return // the caller has left
	}
	var call struct {
		Model string `json:"model"`
	}
	if err := json.Unmarshal(raw, &call); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	to := s.models[call.Model]
	s.mu.Unlock()
	u, err := url.Parse(to)
	if err != nil || to == "" {
		http.Error(w, `{"type":"error","error":{"type":"not_found_error","message":"no model `+call.Model+`"}}`, http.StatusNotFound)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(raw))
	r.ContentLength = int64(len(raw))
	quiet := log.New(io.Discard, "", 0) // a model may break off
	proxy := httputil.ReverseProxy{FlushInterval: -1, ErrorLog: quiet, Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(u) },
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if !errors.Is(err, context.Canceled) {
				fmt.Fprintf(os.Stderr, "model %s: %v\n", call.Model, err)
			}
			w.WriteHeader(http.StatusBadGateway)
		}}
	proxy.ServeHTTP(w, r)
}
