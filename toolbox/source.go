package toolbox

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/approval"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// tool is one tool of a source, as it may be shown.
type tool struct {
	tidemark.Tool          // Name is the source's own
	hash          [32]byte // of the definition

	short      tidemark.Tool // the same as a stub
	chars      int           // of the definition without its name
	shortChars int           // of the stub without its name
}

// source is a server with what it was last heard to have.
type source struct {
	Server
	rt    tidemark.Runtime
	slots chan struct{} // one in it for each call in work

	mu      sync.Mutex // guards the following; never held over a wait
	tools   []tool     // of the last list that came; never changed, only replaced
	dropped []string   // tools that were left out, and why
	asked   bool       // a list came, or failed to
	err     error      // of the last list, nil if it came
	next    time.Time  // when it is to be asked again
	wait    time.Duration
	change  int64         // of the list, as Teller tells
	stale   bool          // a call found that the list is another
	loading chan struct{} // closed when the list in work is there; nil: none is
}

func newSource(s Server, rt tidemark.Runtime) *source {
	s.Timeout = cmp.Or(s.Timeout, DefaultTimeout)
	s.MaxBytes = cmp.Or(s.MaxBytes, DefaultMaxBytes)
	s.Parallel = cmp.Or(s.Parallel, DefaultParallel)
	return &source{Server: s, rt: rt, slots: make(chan struct{}, s.Parallel)}
}

// told is what the source says of its list.
func (s *source) told() (ttl time.Duration, change int64) {
	if t, ok := s.Source.(Teller); ok {
		return t.Fresh()
	}
	return 0, 0
}

// due reports whether the source is to be asked for its list: not while the last is good, and not if it has failed a
// moment ago.
func (s *source) due() bool {
	_, change := s.told()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Source != nil && (s.outOfDate(change) || !s.rt.Now().Before(s.next))
}

// unknown reports whether what the source has is not known, or said to be another now.
func (s *source) unknown() bool {
	_, change := s.told()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Source != nil && s.outOfDate(change)
}

// outOfDate is called with the lock held.
func (s *source) outOfDate(change int64) bool {
	return !s.asked || s.stale || change != s.change && s.err == nil
}

// list waits for a list of the source, while there is an old one not long. Many may wait for the same.
func (s *source) list(ctx context.Context) {
	_, change := s.told() // what changes while the list comes is asked for again
	s.mu.Lock()
	if s.loading == nil && !s.outOfDate(change) && s.rt.Now().Before(s.next) { // somebody else's came meanwhile
		s.mu.Unlock()
		return
	}
	if s.loading == nil {
		s.loading = make(chan struct{})
		done := s.loading
		alone := context.WithoutCancel(ctx) // whoever else waits for it wants it too
		s.rt.Go(func() {
			defer close(done)
			s.load(alone, change)
		})
	}
	done, old := s.loading, len(s.tools) > 0
	s.mu.Unlock()
	if old {
		limited, stop := s.rt.WithTimeout(ctx, staleWait)
		defer stop()
		ctx = limited
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// load asks the source for its list. While it is down the old list is kept.
func (s *source) load(ctx context.Context, change int64) {
	ctx, stop := s.rt.WithTimeout(ctx, min(listTimeout, s.Timeout))
	defer stop()
	listed, err := []tidemark.Tool(nil), fmt.Errorf("the list broke off: %w", tidemark.ErrUnavailable)
	defer func() { s.took(listed, change, err) }() // also where the source panics
	listed, err = s.Source.Tools(ctx)
}

func (s *source) took(listed []tidemark.Tool, change int64, err error) {
	tools, dropped := s.admit(listed)
	ttl, _ := s.told()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loading, s.asked, s.err, s.stale, s.change = nil, true, err, false, change
	if err != nil {
		s.wait = min(max(2*s.wait, firstRetry), defaultTTL)
		s.next = s.rt.Now().Add(s.wait)
		return
	}
	s.tools, s.dropped, s.wait = tools, dropped, 0
	s.next = s.rt.Now().Add(min(max(cmp.Or(ttl, defaultTTL), minTTL), maxTTL))
}

// admit takes of a list what may be shown, in the order of the names.
func (s *source) admit(listed []tidemark.Tool) (tools []tool, dropped []string) {
	seen := map[string]bool{}
	drop := func(name, why string) {
		if len(dropped) < maxTools {
			dropped = append(dropped, cut(Harmless(name), maxName)+": "+why)
		}
	}
	for _, t := range listed {
		if seen[t.Name] {
			drop(t.Name, "listed twice")
			continue
		}
		seen[t.Name] = true
		if s.Allow != nil && !approval.Any(s.Allow, t.Name) {
			continue
		}
		if len(tools) >= maxTools {
			drop(t.Name, fmt.Sprintf("a server may have %d tools; name those you need in allow", maxTools))
			continue
		}
		shown, err := s.shown(t)
		if err != nil {
			drop(t.Name, err.Error())
			continue
		}
		tools = append(tools, shown)
	}
	slices.SortStableFunc(tools, func(a, b tool) int { return strings.Compare(a.Name, b.Name) })
	return tools, dropped
}

// shown is a definition in bounds and harmless.
func (s *source) shown(t tidemark.Tool) (tool, error) {
	const longest = 256
	if t.Name == "" || len(t.Name) > longest || Harmless(t.Name) != t.Name {
		return tool{}, fmt.Errorf("a name has 1 to %d bytes, without control characters", longest)
	}
	t.Description = cut(Harmless(s.hide(t.Description)), maxDescription)
	t.InputSchema = []byte(s.hide(string(t.InputSchema)))
	if len(t.InputSchema) == 0 {
		t.InputSchema = json.RawMessage(`{"type":"object"}`)
	}
	if len(t.InputSchema) > maxSchema {
		return tool{}, fmt.Errorf("its schema has %d bytes, at most %d", len(t.InputSchema), maxSchema)
	}
	schema, err := harmlessJSON(t.InputSchema)
	if err != nil || len(schema) == 0 || schema[0] != '{' {
		return tool{}, errors.New("its schema is no JSON object with plain keys")
	}
	t.InputSchema = schema
	t.Idempotent = s.TrustHints && t.Idempotent || approval.Any(s.Idempotent, t.Name)
	t.Timeout = s.Timeout
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%d %s%s", len(t.Description), t.Description, schema) // a hash takes all
	out := tool{Tool: t, short: stub(t)}
	h.Sum(out.hash[:0])
	out.chars = tidemark.UTF16Len(encode(t)) - len(t.Name)
	out.shortChars = tidemark.UTF16Len(encode(out.short)) - len(t.Name)
	return out, nil
}

// known is the last list, and why there is no newer one.
func (s *source) known() ([]tool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools, s.err
}

// outdated has the list asked for again when it is next needed.
func (s *source) outdated() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale = true
}

// hide takes the secrets of a source out of a text.
func (s *source) hide(text string) string {
	for _, secret := range s.Hide {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "[secret]")
		}
	}
	return text
}
