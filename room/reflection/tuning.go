package reflection

import (
	"fmt"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
)

// Evidence is what reflection decides on: how recall went lately, and how much the last act evicted.
type Evidence struct {
	Recalls int             `json:"recalls"` // by the model and by people
	Misses  int             `json:"misses"`  // of them, those that found nothing or were weak
	Early   int             `json:"early"`   // of all, those with a confident find that had been evicted within the hour
	Events  int             `json:"events"`  // messages that the last compaction evicted
	Tokens  tidemark.Tokens `json:"tokens"`  // and their tokens
}

// Severities of what reflection sees (reference: TRACE).
const (
	severityNone     = ""
	severityModerate = "moderate"
	severityHigh     = "high"
)

// Thresholds of reflection. Those of misses and of what an act evicts are TRACE's.
const (
	missHigh      = 0.6
	missModerate  = 0.3
	earlyModerate = 0.3
	evictTokens   = 40_000
	evictEvents   = 100
	leastEvidence = 5  // recalls below which nothing is tuned by them
	sureEvidence  = 20 // recalls from which a low rate of misses is trusted
	missLow       = 0.05
)

// Tuning is what reflection set in the place of the defaults of [compaction.Pointer]. Its zero value is the
// defaults.
type Tuning struct {
	Tail     int             `json:"tail,omitempty"`     // turns, 5 to 20
	Headroom tidemark.Tokens `json:"headroom,omitempty"` // a tenth to a third of the limit
	Large    tidemark.Tokens `json:"large,omitempty"`    // tokens, 240 to 1,280
	Severity string          `json:"severity,omitempty"`
	Why      string          `json:"why,omitempty"`
}

// Bounds of a Tuning.
const (
	minTail, maxTail                  = 5, 20
	minLarge, maxLarge                = tidemark.Tokens(240), tidemark.Tokens(1280)
	leastHeadroom, mostHeadroom int64 = 10, 3 // parts of the limit
)

// same reports whether two set the same.
func (t Tuning) same(o Tuning) bool {
	return t.Tail == o.Tail && t.Headroom == o.Headroom && t.Large == o.Large
}

// tune decides how much leaves the view, and how early, from how recall went: what is often looked for
// and not found should stay longer, what is found each time may go sooner. It is a function of the evidence
// alone, so that the same evidence gives the same, and without evidence it returns the defaults.
func tune(e Evidence, limit tidemark.Tokens) Tuning {
	var t Tuning
	var why []string
	miss, early := 0.0, 0.0
	if e.Recalls >= leastEvidence {
		miss, early = float64(e.Misses)/float64(e.Recalls), float64(e.Early)/float64(e.Recalls)
	}
	missed := fmt.Sprintf("recall missed %d of %d times", e.Misses, e.Recalls)
	switch {
	case miss > missHigh:
		t.Severity = severityHigh
		t.Tail, t.Large, t.Headroom = maxTail, maxLarge, limit/tidemark.Tokens(leastHeadroom)
		why = append(why, missed)
	case miss > missModerate:
		t.Severity = severityModerate
		t.Tail, t.Large, t.Headroom = 15, 640, limit*3/20
		why = append(why, missed)
	case early > earlyModerate:
		t.Severity = severityModerate
		t.Tail = 15
		why = append(why, fmt.Sprintf("%d of %d finds had been evicted within the hour", e.Early, e.Recalls))
	case e.Recalls >= sureEvidence && miss <= missLow:
		t.Tail, t.Large, t.Headroom = 7, minLarge, limit/4
		why = append(why, missed)
	}
	if (e.Tokens > evictTokens || e.Events > evictEvents) && (t.Headroom == 0 || t.Headroom > limit*3/20) {
		if t.Severity == severityNone {
			t.Severity = severityModerate
		}
		t.Headroom = limit * 3 / 20
		why = append(why, fmt.Sprintf("the last compaction evicted %d messages with %d tokens at once", e.Events, e.Tokens))
	}
	t.Why = strings.Join(why, "; ")
	return t.within(limit)
}

// within keeps what is set within its bounds, whatever the limit.
func (t Tuning) within(limit tidemark.Tokens) Tuning {
	if t.Tail != 0 {
		t.Tail = min(max(t.Tail, minTail), maxTail)
	}
	if t.Large != 0 {
		t.Large = min(max(t.Large, minLarge), maxLarge)
	}
	if t.Headroom != 0 {
		t.Headroom = min(max(t.Headroom, limit/tidemark.Tokens(leastHeadroom)), limit/tidemark.Tokens(mostHeadroom))
	}
	return t
}

// strategies returns strategies with what is tuned set.
func (t Tuning) strategies(list []compaction.Strategy) []compaction.Strategy {
	if t.same(Tuning{}) {
		return list
	}
	out := make([]compaction.Strategy, len(list))
	for i, st := range list {
		if p, ok := st.(compaction.Pointer); ok {
			if t.Tail != 0 {
				p.Tail = t.Tail
			}
			if t.Headroom != 0 {
				p.Headroom = t.Headroom
			}
			if t.Large != 0 {
				p.Large = t.Large
			}
			st = p
		}
		out[i] = st
	}
	return out
}

// line says what a change does and how it goes back.
func (t Tuning) line(before Tuning, limit tidemark.Tokens) string {
	show := func(x Tuning) string {
		tail, large, headroom := x.Tail, x.Large, x.Headroom
		if tail == 0 {
			tail = compaction.DefaultTail
		}
		if large == 0 {
			large = compaction.DefaultLarge
		}
		if headroom == 0 {
			headroom = limit / 5
		}
		return fmt.Sprintf("the newest %d turns stay, results over %d tokens become pointers, a compaction frees %d tokens", tail, large, headroom)
	}
	if t.same(Tuning{}) {
		return "Reflection: what was tuned is taken back, for lack of a reason: " + show(t) + "."
	}
	return fmt.Sprintf("Reflection: %s. From now on %s; before: %s. It goes back by itself when recall goes otherwise, and at once with recall.reflection off.", t.Why, show(t), show(before))
}
