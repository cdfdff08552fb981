package cost

import (
	"time"

	"github.com/tidemark-ai/tidemark"
)

// How long a cache lives behind its last use (https://platform.claude.com/docs/en/build-with-claude/prompt-caching).
const (
	ShortTTL = 5 * time.Minute
	LongTTL  = time.Hour
)

// Change is a trim as the cache of a provider sees it.
type Change struct {
	Pre, Post tidemark.Tokens // of the whole context, system prompt and tools included
	// Same is how much stands before the first change: that part of the cache stays good.
	Same tidemark.Tokens
	// Pause is how long ago the last call was. From TTL on the cache is cold, trimmed or not. 0 is a session at work.
	Pause time.Duration
	TTL   time.Duration // 0 is ShortTTL. From LongTTL on, writing costs what it costs for that cache
}

// LiveTrim is a [Trim] by the truer model, and the first turn with and without it.
type LiveTrim struct {
	Trim
	Same         tidemark.Tokens `json:"same"` // tokens before the first change
	HitRate      float64         `json:"hit_rate"`
	Cold         bool            `json:"cold"`          // the cache was cold anyway
	First        float64         `json:"first"`         // dollars of the first turn behind the trim
	FirstWithout float64         `json:"first_without"` // and of that turn without one
}

// Live is the truer cost of a trim. It differs from [Model.Paper] in two points. What stands before the first change
// is still in the cache: the first turn reads it, and writes only the rest. And where the cache is cold anyway, because
// the last call was too long ago, a trim makes the first turn cheaper, not dearer: there is no penalty.
//
// The hit rate of the model should be the session's own: see [HitRate].
func (m Model) Live(c Change) LiveTrim {
	if c.TTL == 0 {
		c.TTL = ShortTTL
	}
	m = m.Writing(c.TTL)
	same := max(0, min(c.Same, c.Pre, c.Post))
	l := LiveTrim{Same: same, HitRate: m.HitRate, Cold: c.Pause >= c.TTL}
	l.Pre, l.Post, l.Reduction = c.Pre, c.Post, reduction(c.Pre, c.Post)
	l.Savings = m.Turn(c.Pre) - m.Turn(c.Post)
	switch {
	case l.Cold:
		l.First, l.FirstWithout = m.Cold(c.Post), m.Cold(c.Pre)
	case c.Post == c.Pre && same == c.Pre: // nothing changes
		l.First, l.FirstWithout = m.Turn(c.Pre), m.Turn(c.Pre)
	default:
		l.First, l.FirstWithout = m.Branch(same).Later+m.Cold(c.Post-same), m.Turn(c.Pre)
	}
	l.Penalty = max(0, l.First-l.FirstWithout)
	l.BreakEven = breakEven(l.Penalty, l.Savings)
	return l
}

// Writing is the model for a session that writes to the cache that lives that long: its price of a write is
// Price.CacheWrite, whichever cache it is.
func (m Model) Writing(ttl time.Duration) Model {
	if ttl >= LongTTL {
		m.Price.CacheWrite = m.Price.HourWrite()
	}
	return m
}

// HitRate is the share of what was sent that was read from the cache, over the calls of a session; false when nothing
// is known.
func HitRate(u tidemark.Usage) (float64, bool) {
	sent := u.Input + u.CacheCreation + u.CacheRead
	if sent <= 0 || u.CacheCreation+u.CacheRead == 0 {
		return 0, false
	}
	return float64(u.CacheRead) / float64(sent), true
}
