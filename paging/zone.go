package paging

import (
	"fmt"

	"github.com/tidemark-ai/tidemark"
)

// Zone says how full the window is, and with that how far a policy goes ("Graduated Pressure Zones" of the paper).
type Zone uint8

// The zones, from the emptiest window to the fullest.
const (
	Normal      Zone = iota // nothing leaves
	Advisory                // the policy acts as it does without a window, and the model is told
	Involuntary             // what may go goes now, if it is worth breaking the prefix for
	Aggressive              // the age that is asked for is halved, and pins end
)

var zoneNames = [...]string{"normal", "advisory", "involuntary", "aggressive"}

// String is the word of the paper.
func (z Zone) String() string {
	if int(z) < len(zoneNames) {
		return zoneNames[z]
	}
	return fmt.Sprintf("zone %d", uint8(z))
}

// Zones are the sizes at which the zones behind [Normal] begin, in percent of the window. The zero value is
// [DefaultZones].
type Zones struct{ Advisory, Involuntary, Aggressive int }

// DefaultZones are the paper's 60,000, 100,000 and 120,000 tokens of a window of 200,000.
var DefaultZones = Zones{30, 50, 60}

// Valid reports zones that do not ascend, or are not 1 to 100 percent, as tidemark.ErrInvalid.
func (z Zones) Valid() error {
	if z == (Zones{}) {
		return nil
	}
	before, name := 0, ""
	for _, f := range []struct {
		name    string
		percent int
	}{{"advisory", z.Advisory}, {"involuntary", z.Involuntary}, {"aggressive", z.Aggressive}} {
		switch {
		case f.percent < 1 || f.percent > 100:
			return fmt.Errorf("zone %s %d: want 1 to 100 percent of the window: %w", f.name, f.percent, tidemark.ErrInvalid)
		case f.percent <= before:
			return fmt.Errorf("zone %s %d: want more than %s, which is %d: %w", f.name, f.percent, name, before, tidemark.ErrInvalid)
		}
		before, name = f.percent, f.name
	}
	return nil
}

// Of is the zone of a context of some size; without a window it is Normal.
func (z Zones) Of(size, window tidemark.Tokens) Zone {
	if z == (Zones{}) {
		z = DefaultZones
	}
	switch {
	case window <= 0 || size < z.at(z.Advisory, window):
		return Normal
	case size < z.at(z.Involuntary, window):
		return Advisory
	case size < z.at(z.Aggressive, window):
		return Involuntary
	}
	return Aggressive
}

// at is some percent of a window, rounded up.
func (Zones) at(percent int, window tidemark.Tokens) tidemark.Tokens {
	p := tidemark.Tokens(percent)
	return window/100*p + (window%100*p+99)/100
}

// Size is the size of the context as it is sent now: what the provider reported of a request and its reply, the
// estimate of what came since, and less the estimate of what left since. Without a report all is estimated, as
// sent, and Fixed is added. It counts bytes as the estimator counts UTF-16 units: equal for ASCII, twice or
// three times as much for other text, until the provider reports what that really is.
func (p *Pager) Size() tidemark.Tokens {
	n := len(p.messages)
	now := p.out.upTo(n) + n + 1
	r := p.report()
	if r == 0 {
		return p.fixed + tidemark.EstimateChars(now)
	}
	m := p.marks[r-1]
	size, since := m.usage.Context(), now-m.out
	if m.messages < n && p.messages[m.messages].Role == tidemark.Assistant && !m.replaced && m.usage.Output > 0 {
		since -= p.messages[m.messages].Bytes + 1
	} else {
		size -= m.usage.Output
	}
	if since < 0 {
		return max(size-tidemark.EstimateChars(-since), 0)
	}
	return size + tidemark.EstimateChars(since)
}

// report is the newest request that the provider reported of, from 1, or 0.
func (p *Pager) report() int {
	if len(p.marks) == 0 {
		return 0
	}
	return p.marks[len(p.marks)-1].report
}

// unanswered notes that a cut to n messages took the reply to the requests that had just so many.
func (p *Pager) unanswered(n int) {
	for i := len(p.marks) - 1; i >= 0 && p.marks[i].messages == n && !p.marks[i].replaced; i-- {
		p.marks[i].replaced = true
	}
}

// zoned takes the size of the request before the policy acts.
func (p *Pager) zoned() {
	if p.window > 0 {
		p.now.Size = p.Size()
		p.now.Zone = p.zones.Of(p.now.Size, p.window)
	}
}
