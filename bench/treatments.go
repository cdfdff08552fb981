package bench

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Direct is the treatment of a session whose requests go to the API without a proxy between.
const Direct = "none"

// Treatments play one session of a coding agent through the proxy under each treatment, against a simulated API that
// bills as the real one does, and compare what that costs (the paper's table 5). The agent looks for what it needs in what
// it is sent: where a stub stands there it asks for the original, or reads the file again.
type Treatments struct {
	Names    []string // of treatments, "none" for no proxy; the first is what others are compared with
	Requests int      // of the session, if nothing is read again
	Bytes    int      // of a result, about
	Seed     uint64
	// Door opens a proxy for an API at a URL; it is asked once for each treatment but "none".
	Door func(ctx context.Context, api string) (Door, error)
	Via  http.RoundTripper // to the API and the door, over HTTP
	Told Told
}

// Door is a proxy.
type Door struct {
	URL   string
	Close func() error
}

// Treated is what a session came to under a treatment. Tokens are of the input of all calls.
type Treated struct {
	Treatment string          `json:"treatment"`
	Requests  int             `json:"requests"` // of the client
	Calls     int             `json:"api_calls"`
	Effective tidemark.Tokens `json:"effective_input_tokens"` // however they were billed
	Read      tidemark.Tokens `json:"cache_read_tokens"`
	Written   tidemark.Tokens `json:"cache_written_tokens"`
	Output    tidemark.Tokens `json:"output_tokens"`
	PerCall   float64         `json:"tokens_per_call"`
	Share     float64         `json:"cache_read_share"`
	Cost      float64         `json:"cost"` // of the input, in tokens of its list price: cached 0.1, written 1.25
	Missing   int             `json:"faults"`
	Restored  int             `json:"restored"` // by memory_fault
	Reread    int             `json:"reread"`   // by another read
	Released  int             `json:"releases"`
	Completed bool            `json:"completed"`
	Facts     int             `json:"facts"`
	Found     int             `json:"found"`
	Leaks     int             `json:"leaks"`           // answers in which the client saw what is none of its own
	Same      bool            `json:"view_same"`       // all that it saw is what the model said to it
	Reduction float64         `json:"token_reduction"` // of effective tokens, by the first
	CostBy    float64         `json:"cost_ratio"`      // by that of the first
	Seconds   float64         `json:"seconds"`
}

func (t Treatments) check() error {
	switch {
	case len(t.Names) == 0:
		return fmt.Errorf("no treatment: %w", tidemark.ErrInvalid)
	case t.Requests < 20 || t.Requests > 5000:
		return fmt.Errorf("--requests %d: want 20 to 5000: %w", t.Requests, tidemark.ErrInvalid)
	case t.Bytes < 300 || t.Bytes > 100_000:
		return fmt.Errorf("--bytes %d: want 300 to 100000: %w", t.Bytes, tidemark.ErrInvalid)
	}
	return nil
}

// Run plays the generated session under each treatment.
func (t Treatments) Run(ctx context.Context) ([]Treated, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	var out []Treated
	for i, name := range t.Names {
		t.Told.tell("treatments", i, len(t.Names))
		one, err := t.one(ctx, name)
		if err != nil {
			return out, fmt.Errorf("treatment %s: %w", name, err)
		}
		out = append(out, one)
	}
	first := out[0]
	for i := range out {
		out[i].Reduction = 1 - float64(out[i].Effective)/float64(max(first.Effective, 1))
		out[i].CostBy = out[i].Cost / max(first.Cost, 1)
	}
	return out, nil
}

// Serve answers by a handler at an address of this machine, until end is called.
func Serve(h http.Handler) (url string, end func() error, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)}
	served := make(chan struct{})
	go func() { // ends with Close
		defer close(served)
		_ = srv.Serve(l)
	}()
	return "http://" + l.Addr().String(), func() error {
		err := srv.Close()
		<-served
		return err
	}, nil
}

// one plays it under one treatment, over HTTP, with an API of its own.
func (t Treatments) one(ctx context.Context, name string) (one Treated, err error) {
	clock := &virtualClock{now: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)}
	up := &upstream{cache: newPromptCache(clock), minds: map[string]*mind{}, p: makePlan(t.Requests, t.Bytes, t.Seed)}
	api, end, err := Serve(up)
	if err != nil {
		return one, err
	}
	defer func() { err = cmp.Or(err, end()) }()
	c := newSimClient(ctx, up.p, clock, name, t.Seed)
	c.via, c.base = t.Via, api
	if name == Direct {
		c.treatment = ""
	} else {
		door, err := t.Door(ctx, c.base)
		if err != nil {
			return one, err
		}
		c.base = door.URL
		defer func() { err = cmp.Or(err, door.Close()) }()
	}
	began := time.Now()
	if one, err = t.session(up, c); err != nil {
		return one, err
	}
	one.Treatment, one.Seconds = name, time.Since(began).Seconds()
	up.mu.Lock()
	defer up.mu.Unlock()
	one.add(up)
	one.Requests, one.Leaks, one.Same = c.requests, c.leaks, c.leaks == 0 && c.seen.String() == up.plain.String()
	return one, nil
}

// add takes what the API counted.
func (o *Treated) add(up *upstream) {
	u := up.usage
	o.Calls, o.Effective, o.Read, o.Written, o.Output = up.calls, u.Input+u.CacheRead+u.CacheCreation, u.CacheRead, u.CacheCreation, u.Output
	o.Cost = float64(u.Input) + readPrice*float64(u.CacheRead) + writePrice*float64(u.CacheCreation)
	for _, name := range up.order {
		m := up.minds[name]
		o.Missing += m.missing
		o.Restored += m.restored
		o.Reread += m.reread
		o.Released += m.released
	}
	o.PerCall = float64(o.Effective) / float64(max(o.Calls, 1))
	o.Share = float64(o.Read) / float64(max(o.Effective, 1))
}

// session plays the generated session and looks whether its task was done: all facts that were needed are recorded as
// they stand in the files.
func (t Treatments) session(up *upstream, c *simClient) (one Treated, err error) {
	title := &thread{system: "You name conversations."}
	title.messages = append(title.messages, c.order("Work order title. Give this conversation a name."))
	if _, err := c.run(title, func() string { return "" }); err != nil {
		return one, err
	}
	main := &thread{system: "You keep the gauges of the pier.", messages: [][]json.RawMessage{c.order("Work order main. Go through the gauges and record their levels.")}}
	said := 0
	_, err = c.run(main, func() string {
		if said++; said >= stopsOf(up.p) {
			return ""
		}
		return fmt.Sprintf("Good. Go on with part %d.", said)
	})
	if err != nil {
		return one, err
	}
	for _, s := range up.p.steps {
		if s.what != needs {
			continue
		}
		one.Facts++
		if c.recorded[strconv.Itoa(s.file)] == up.p.facts[s.file] {
			one.Found++
		}
	}
	for _, text := range c.subs {
		for _, s := range up.p.sub {
			one.Facts++
			if strings.Contains(text, fmt.Sprintf(" %d=%s", s.file, up.p.facts[s.file])) {
				one.Found++
			}
		}
	}
	one.Completed = one.Found == one.Facts
	return one, nil
}

// stopsOf counts the turns of a plan.
func stopsOf(p *plan) (n int) {
	for _, s := range p.steps {
		if s.what == stops {
			n++
		}
	}
	return n
}
