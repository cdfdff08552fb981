package channel

import (
	"context"
	"fmt"
	"net/http"
	"slices"
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
const GivenUpPath = PeerPath + "given-up"

// What is asked behind PeerPath.
const (
	askPost   = "post"
	askStatus = "status"
	askSay    = "say"
	askWho    = "who"
	askKnock  = "knock"
	askRename = "rename"
)

// Bounds of one exchange.
const (
	askTime    = 30 * time.Second
	knownFor   = time.Minute // how long a person who is not the owner is known without asking
	maxKnown   = 500
	remoteHost = "http://channel" + PeerPath
)

// question is what is asked, whatever it is.
type question struct {
	Key      tidemark.Key       `json:"key,omitempty"`
	Input    *Input             `json:"input,omitempty"`
	Delivery *tidemark.Delivery `json:"delivery,omitempty"`
	ID       string             `json:"id,omitempty"`
	To       tidemark.Address   `json:"to,omitzero"`
	Text     string             `json:"text,omitempty"`
	Platform string             `json:"platform,omitempty"`
	Names    []string           `json:"names,omitempty"`
	Meet     bool               `json:"meet,omitempty"`
	Knock    *Knock             `json:"knock,omitempty"`
	Alias    *Alias             `json:"alias,omitempty"`
}

// reply is what is answered.
type reply struct {
	Person Person `json:"person,omitzero"`
	Code   string `json:"code,omitempty"`
	host.Refusal
}

// Peers are sessions that live in objects of their own.
type Peers struct {
	Transport func(key tidemark.Key) http.RoundTripper
	Runtime   tidemark.Runtime
}

var _ Sessions = (*Peers)(nil)

// Post implements [Sessions].
func (p *Peers) Post(ctx context.Context, key tidemark.Key, in Input) error {
	_, err := ask(ctx, p.Runtime, p.Transport(key), askPost, question{Key: key, Input: &in})
	return err
}

// Delivered implements [Sessions].
func (p *Peers) Delivered(ctx context.Context, key tidemark.Key, d tidemark.Delivery) error {
	_, err := ask(ctx, p.Runtime, p.Transport(key), askStatus, question{Key: key, Delivery: &d})
	return err
}

// Say implements [Sessions].
func (p *Peers) Say(ctx context.Context, key tidemark.Key, id string, to tidemark.Address, text string) error {
	_, err := ask(ctx, p.Runtime, p.Transport(key), askSay, question{Key: key, ID: id, To: to, Text: text})
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
	a, err := ask(ctx, d.Runtime, d.Transport, askWho, question{Platform: platform, Names: names, Meet: meet})
	if err != nil || a.Person.Standing == Stranger && !meet || a.Person.Standing == Blocked || a.Person.Standing == Owner {
		return a.Person, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil || len(d.known) >= maxKnown {
		d.known = map[string]seen{}
	}
	d.known[id] = seen{a.Person, now}
	return a.Person, nil
}

// Knock implements [Desk].
func (d *FarDesk) Knock(ctx context.Context, k Knock) (string, error) {
	a, err := ask(ctx, d.Runtime, d.Transport, askKnock, question{Knock: &k})
	return a.Code, err
}

// Rename implements [Desk].
func (d *FarDesk) Rename(ctx context.Context, al Alias) error {
	_, err := ask(ctx, d.Runtime, d.Transport, askRename, question{Alias: &al})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known = nil
	return err
}

// Peer answers what other objects ask, for the sessions and the desk that live here; what does not is
// nil. It checks no token: the host must not let requests from outside come here.
func Peer(w http.ResponseWriter, r *http.Request, sessions Sessions, desk Desk) {
	var q question
	var out reply
	err := host.ReadQuestion(r, &q)
	if err == nil {
		out, err = answer(r.Context(), strings.TrimPrefix(r.URL.Path, PeerPath), q, sessions, desk)
	}
	out.Refusal = host.Refuse(err)
	host.WriteAnswer(w, out)
}

func answer(ctx context.Context, what string, q question, sessions Sessions, desk Desk) (out reply, err error) {
	wrong := fmt.Errorf("question %.40q: %w", what, tidemark.ErrInvalid)
	if sessions == nil && slices.Contains([]string{askPost, askStatus, askSay}, what) || desk == nil && slices.Contains([]string{askWho, askKnock, askRename}, what) {
		return out, wrong
	}
	switch {
	case what == askPost && q.Input != nil:
		err = sessions.Post(ctx, q.Key, *q.Input)
	case what == askStatus && q.Delivery != nil:
		err = sessions.Delivered(ctx, q.Key, *q.Delivery)
	case what == askSay:
		err = sessions.Say(ctx, q.Key, q.ID, q.To, q.Text)
	case what == askWho:
		out.Person, err = desk.Who(ctx, q.Platform, q.Names, q.Meet)
	case what == askKnock && q.Knock != nil:
		out.Code, err = desk.Knock(ctx, *q.Knock)
	case what == askRename && q.Alias != nil:
		err = desk.Rename(ctx, *q.Alias)
	default:
		err = wrong
	}
	return out, err
}

// ask carries a question to another object.
func ask(ctx context.Context, rt tidemark.Runtime, to http.RoundTripper, what string, q question) (reply, error) {
	ctx, cancel := rt.WithTimeout(ctx, askTime)
	defer cancel()
	var a reply
	err := host.Exchange(ctx, to, remoteHost+what, q, &a)
	if err == nil {
		err = a.Err()
	}
	if err != nil {
		return a, fmt.Errorf("ask to %s: %w", what, err)
	}
	return a, nil
}

// stuck is what an object answers that is asked what it gave up.
type stuck struct {
	List []Stuck `json:"list"`
	host.Refusal
}

// ServeGivenUp answers another object with what [GivenUp] lists.
func ServeGivenUp(w http.ResponseWriter, r *http.Request, db tidemark.DB) {
	list, err := GivenUp(r.Context(), db)
	host.WriteAnswer(w, stuck{list, host.Refuse(err)})
}

// AskGivenUp asks another object what was given up there.
func AskGivenUp(ctx context.Context, rt tidemark.Runtime, to http.RoundTripper) ([]Stuck, error) {
	ctx, cancel := rt.WithTimeout(ctx, askTime)
	defer cancel()
	var a stuck
	err := host.Exchange(ctx, to, "http://channel"+GivenUpPath, struct{}{}, &a)
	if err == nil {
		err = a.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("ask what was given up: %w", err)
	}
	return a.List, nil
}
