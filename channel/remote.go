package channel

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
)

// PeerPath is where objects answer an [Ingress] that lives in another one. A host must not let requests
// from outside reach it.
const PeerPath = "/internal/channel/"

// GivenUpPath is where an object that takes webhooks tells what it gave up.
const GivenUpPath = PeerPath + givenUp

// Bounds of one exchange.
const (
	askTime  = 30 * time.Second
	knownFor = time.Minute // how long a person who is not the owner is known without asking
	maxKnown = 500
)

// What is asked of more than one value.
type (
	saying struct {
		ID   string           `json:"id"`
		To   tidemark.Address `json:"to"`
		Text string           `json:"text"`
	}
	meeting struct {
		Platform string   `json:"platform"`
		Names    []string `json:"names"`
		Meet     bool     `json:"meet,omitempty"`
	}
)

// Peers are sessions that live in objects of their own.
type Peers struct {
	Transport func(key tidemark.Key) http.RoundTripper
	Runtime   tidemark.Runtime
}

var _ Sessions = (*Peers)(nil)

// Post implements [Sessions].
func (p *Peers) Post(ctx context.Context, key tidemark.Key, in Input) error {
	return p.tell(ctx, "post", key, in)
}

// Delivered implements [Sessions].
func (p *Peers) Delivered(ctx context.Context, key tidemark.Key, d tidemark.Delivery) error {
	return p.tell(ctx, "status", key, d)
}

// Say implements [Sessions].
func (p *Peers) Say(ctx context.Context, key tidemark.Key, id string, to tidemark.Address, text string) error {
	return p.tell(ctx, "say", key, saying{id, to, text})
}

func (p *Peers) tell(ctx context.Context, what string, key tidemark.Key, q any) error {
	_, err := ask[any](ctx, p.Runtime, p.Transport(key), what, host.Keyed[any]{Key: key, Ask: q})
	return err
}

// FarDesk is a desk in another object. It asks again about everyone whom it did not find let in lately, and
// about the owner each time: who is no longer the owner must not reach the main session for a moment.
type FarDesk struct {
	Transport http.RoundTripper
	Runtime   tidemark.Runtime

	mu    sync.Mutex // guards the following; never held over a wait
	known map[string]seen
}

var _ Desk = (*FarDesk)(nil)

// seen is a person as the desk knew them at a time.
type seen struct {
	Person
	at time.Time
}

// Who implements [Desk].
func (d *FarDesk) Who(ctx context.Context, platform string, names []string, meet bool) (Person, error) {
	id := platform + "\n" + strings.Join(names, "\n")
	now := d.Runtime.Now()
	d.mu.Lock()
	k, ok := d.known[id]
	d.mu.Unlock()
	if age := now.Sub(k.at); ok && age >= 0 && age < knownFor {
		return k.Person, nil
	}
	p, err := ask[Person](ctx, d.Runtime, d.Transport, "who", meeting{platform, names, meet})
	if err != nil || p.Standing == Stranger && !meet || p.Standing == Blocked || p.Standing == Owner {
		return p, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil || len(d.known) >= maxKnown {
		d.known = map[string]seen{}
	}
	d.known[id] = seen{p, now}
	return p, nil
}

// Knock implements [Desk].
func (d *FarDesk) Knock(ctx context.Context, k Knock) (string, error) {
	return ask[string](ctx, d.Runtime, d.Transport, "knock", k)
}

// Rename implements [Desk].
func (d *FarDesk) Rename(ctx context.Context, al Alias) error {
	_, err := ask[any](ctx, d.Runtime, d.Transport, "rename", al)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known = nil
	return err
}

// Peer answers what other objects ask, for the sessions and the desk that live here; what does not is
// nil. It checks no token: the host must not let requests from outside come here.
func Peer(w http.ResponseWriter, r *http.Request, sessions Sessions, desk Desk) {
	answers := map[string]host.Answer{}
	if sessions != nil {
		answers["post"], answers["status"] = host.ObeyingTo(sessions.Post), host.ObeyingTo(sessions.Delivered)
		answers["say"] = host.ObeyingTo(func(ctx context.Context, key tidemark.Key, q saying) error {
			return sessions.Say(ctx, key, q.ID, q.To, q.Text)
		})
	}
	if desk != nil {
		answers["who"] = host.Answering(func(ctx context.Context, q meeting) (Person, error) {
			return desk.Who(ctx, q.Platform, q.Names, q.Meet)
		})
		answers["knock"], answers["rename"] = host.Answering(desk.Knock), host.Obeying(desk.Rename)
	}
	host.Serve(w, r, strings.TrimPrefix(r.URL.Path, PeerPath), answers)
}

// ask carries a question to another object.
func ask[A any](ctx context.Context, rt tidemark.Runtime, to http.RoundTripper, what string, q any) (A, error) {
	ctx, cancel := rt.WithTimeout(ctx, askTime)
	defer cancel()
	out, err := host.Call[A](ctx, to, "http://channel"+PeerPath+what, q)
	if err != nil {
		return out, fmt.Errorf("ask to %s: %w", what, err)
	}
	return out, nil
}

const givenUp = "given-up"

// ServeGivenUp answers another object with what [GivenUp] lists.
func ServeGivenUp(w http.ResponseWriter, r *http.Request, db tidemark.DB) {
	host.Serve(w, r, givenUp, map[string]host.Answer{givenUp: host.Answering(func(ctx context.Context, _ any) ([]Stuck, error) { return GivenUp(ctx, db) })})
}

// AskGivenUp asks another object what was given up there.
func AskGivenUp(ctx context.Context, rt tidemark.Runtime, to http.RoundTripper) ([]Stuck, error) {
	return ask[[]Stuck](ctx, rt, to, givenUp, nil)
}
