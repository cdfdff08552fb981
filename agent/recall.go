package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/recall"
)

// Bounds of a recall over an agent. A session that sleeps wakes to answer, which costs; the digests are to
// name the right ones.
const (
	maxAsked   = 8
	keptStale  = 2               // of these, for conversations whose digests are behind
	askTime    = 8 * time.Second // of one conversation
	freshFor   = 2 * time.Minute // how long after its last word the directory and digests may be behind
	defaultAsk = 8               // results
	maxAskK    = 100
)

// Recall searches the conversations that a scope may read: it picks those whose digests may hold the most
// of the query, asks each, and joins what they find. Who does not answer is named and fails nothing. Of what
// a scope may not read the answer says nothing, not even that it is there.
//
// # Errors
//
// ErrInvalid for an empty query or a scope that lacks its peer, ErrUnavailable without a way to ask.
func (find *finder) Recall(ctx context.Context, scope tidemark.Scope, ask recall.Ask) (recall.Answer, error) {
	if err := find.own(scope); err != nil {
		return recall.Answer{}, err
	}
	if find.cfg.Sessions == nil {
		return recall.Answer{}, fmt.Errorf("recall: this host has no way to its sessions: %w", tidemark.ErrUnavailable)
	}
	q := recall.Parse(ask.Query, nil)
	switch {
	case strings.TrimSpace(ask.Query) == "":
		return recall.Answer{}, fmt.Errorf("recall: the query is empty: %w", tidemark.ErrInvalid)
	case len(q.Terms) == 0:
		none, err := recall.Join(ask, nil)
		none.Hint = recall.NoWords
		return none, err
	}
	ask.K = min(cmp.Or(max(ask.K, 0), defaultAsk), maxAskK)
	if ask.Scope == recall.ScopePeer && ask.Peer == "" {
		if ask.Peer = scope.Peer; scope.Owner {
			return recall.Answer{}, fmt.Errorf("recall: scope peer without a peer: name whose conversations: %w", tidemark.ErrInvalid)
		}
	}
	all, beyond, err := find.candidates(ctx, scope, ask, q.Terms)
	if err != nil {
		return recall.Answer{}, fmt.Errorf("recall: %w", err)
	}
	out, err := recall.Join(ask, find.askAll(ctx, find.pick(all, len(q.Terms)), ask))
	out.Beyond = beyond
	if len(all) == 0 && ask.Scope == recall.ScopePeer && scope.Owner { // nobody else may know who is there
		out.Hint = fmt.Sprintf("no conversation with %.100q is known: name the peer as the list of sessions does, or channel:name", ask.Peer)
	}
	return out, err
}

// There reports a conversation that is not there as ErrNotFound. One that began just now may not be in the
// directory yet, so it is asked itself.
func (find *finder) There(ctx context.Context, key tidemark.Key) error {
	_, err := find.directory.Session(ctx, key)
	if !errors.Is(err, tidemark.ErrNotFound) || find.cfg.Sessions == nil {
		return err
	}
	ctx, cancel := find.cfg.Runtime.WithTimeout(ctx, askTime)
	defer cancel()
	_, err = find.cfg.Sessions.Recall(ctx, key, recall.Ask{})
	return err
}

// Zone is where the agent's days are.
func (find *finder) Zone() *time.Location { return find.cfg.Zone }

// mayFind is the rule of who finds what was said where. The owner finds all; someone else what was said in
// their own conversation, and in others on the same channel with the same name, if they have one. A group is
// many people: what is said there is found there. The setting memory.sharing is about what was written down,
// not about the words of others.
func mayFind(scope tidemark.Scope, key tidemark.Key) bool {
	const group = "group"
	switch {
	case scope.Key == "" || key.Agent() != scope.Agent || scope.Key.Agent() != scope.Agent:
		return false
	case scope.Owner || key.Root() == scope.Key.Root():
		return true
	case key.Local() || scope.Peer == "" || strings.HasSuffix(scope.Peer, ":"):
		return false
	}
	return key.Scope().Peer == scope.Peer && key.Kind() != group && scope.Key.Kind() != group
}

// withPeer reports whether a conversation is one with a peer, given as "channel:name" or by name.
func withPeer(key tidemark.Key, peer string) bool {
	return peer != "" && !key.Local() && (key.Scope().Peer == peer || key.Peer() == peer)
}

// pick chooses whom to ask: those whose digests may hold the rarest words, of equals who was active last;
// then those whose digests are behind, for whom some places are kept.
func (find *finder) pick(all []candidate, terms int) []candidate {
	known, holders := 0, make([]int, min(terms, 64))
	for _, c := range all {
		if !c.known {
			continue
		}
		known++
		for h := c.held; h != 0; h &= h - 1 {
			holders[bits.TrailingZeros64(h)]++
		}
	}
	var hits, stale []candidate
	now := find.now()
	for _, c := range all {
		for h := c.held; h != 0; h &= h - 1 {
			c.score += recall.Rarity(holders[bits.TrailingZeros64(h)], known)
		}
		behind := c.at < c.updated || now.Sub(time.UnixMilli(c.updated)) < freshFor
		switch {
		case c.score > 0:
			hits = append(hits, c)
		case behind:
			stale = append(stale, c)
		}
	}
	slices.SortStableFunc(hits, func(x, y candidate) int {
		return cmp.Or(cmp.Compare(y.score, x.score), cmp.Compare(y.updated, x.updated))
	})
	most := max(maxAsked-min(len(stale), keptStale), maxAsked-len(stale))
	hits = hits[:min(len(hits), most)]
	return append(hits, stale[:min(len(stale), maxAsked-len(hits))]...)
}

// askAll asks some conversations side by side and waits for each, at most askTime.
func (find *finder) askAll(ctx context.Context, some []candidate, ask recall.Ask) []recall.Answer {
	type done struct {
		i      int
		answer recall.Answer
		err    error
	}
	ask.Scope, ask.Peer, ask.Own = recall.ScopeSession, "", ""
	ctx, cancel := find.cfg.Runtime.WithTimeout(ctx, askTime)
	defer cancel()
	got := make(chan done, len(some))
	for i, c := range some {
		find.cfg.Runtime.Go(func() {
			d := done{i: i, err: fmt.Errorf("panicked: %w", tidemark.ErrUnavailable)}
			defer func() { got <- d }()
			d.answer, d.err = find.cfg.Sessions.Recall(ctx, c.key, ask)
		})
	}
	answers := make([]recall.Answer, len(some))
	for i, c := range some {
		answers[i] = recall.Answer{Asked: []tidemark.Key{c.key}, Unreached: []tidemark.Key{c.key}}
	}
	for range some {
		select {
		case d := <-got:
			key := some[d.i].key
			switch {
			case errors.Is(d.err, tidemark.ErrNotFound): // it is gone, and holds nothing
				answers[d.i] = recall.Answer{}
			case d.err != nil:
				find.cfg.Logger.Warn("recall", "agent", find.cfg.Name, "session", key, "err", d.err)
			default:
				d.answer.Asked, d.answer.Unreached = []tidemark.Key{key}, nil
				answers[d.i] = d.answer
			}
		case <-ctx.Done():
			return answers
		}
	}
	return answers
}
