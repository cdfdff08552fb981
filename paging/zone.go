package paging

import (
	"fmt"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
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
	z = z.orDefault()
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

func (z Zones) orDefault() Zones {
	if z == (Zones{}) {
		return DefaultZones
	}
	return z
}

// at is some percent of a window, rounded up.
func (Zones) at(percent int, window tidemark.Tokens) tidemark.Tokens {
	p := tidemark.Tokens(percent)
	return window/100*p + (window%100*p+99)/100
}

// Size is the size of the context as it is sent now: what the provider reported of a request and its reply, the
// estimate of what came since, and less the estimate of what left since. Without a report all is estimated, as
// sent, and Fixed is added. It counts bytes as the estimator counts UTF-16 units: equal for ASCII, twice or
// three times as much for other text, until the provider reports what that really is. Where it reported of more than
// would have been sent (Options.Whole), its report counts by the share of the bytes that would have been.
func (h *history) Size() tidemark.Tokens {
	n := len(h.messages)
	now := h.out.upTo(n) + max(n+1, 2) // brackets and commas
	r := h.report()
	if r == 0 {
		return h.fixed + h.inline.estimate(now)
	}
	m := h.marks[r-1]
	size, since := m.usage.Context()-m.usage.Output, now-m.out
	if h.whole && m.messages > 0 {
		all := h.in[m.messages-1] + m.messages + 1 - m.whole.data
		size = size * tidemark.Tokens(m.out-m.inline.data) / tidemark.Tokens(max(all, 1))
	}
	if m.messages < n && h.messages[m.messages].Role == tidemark.Assistant && !m.replaced && m.usage.Output > 0 {
		since -= h.messages[m.messages].Bytes + 1
		size += m.usage.Output
	}
	return max(size+h.inline.plus(m.inline, -1).estimate(since), 0)
}

// inline is what images and inline documents hold: characters of data, which count as a flat figure for each.
type inline struct{ data, images int }

func (in inline) plus(other inline, times int) inline {
	return inline{in.data + times*other.data, in.images + times*other.images}
}

// estimate is that of some bytes, in which there are the images; less than none where more left than came.
func (in inline) estimate(bytes int) tidemark.Tokens {
	flat := tidemark.Tokens(in.images) * tidemark.ImageTokens
	if bytes -= in.data; bytes < 0 {
		return flat - tidemark.EstimateChars(-bytes)
	}
	return flat + tidemark.EstimateChars(bytes)
}

// inlineOf reads the source of an image or a document. One of text counts as the words that it is.
func (s *Scanner) inlineOf(source part) (in inline) {
	c := source.c
	if !source.ok || !c.Open('{') {
		return in
	}
	form := ""
	for c.More() {
		switch key := c.Key(); {
		case string(key) == "type":
			form = s.word(&c)
		case string(key) == "data" && c.Peek() == '"':
			in.data = max(len(c.String())-2, 0)
		default:
			c.Skip()
		}
	}
	if form == tidemark.TypeText || form == "content" {
		return inline{}
	}
	in.images = 1
	return in
}

// inlineIn reads the images and documents in the content of a result.
func (s *Scanner) inlineIn(c jsonscan.Cursor) (in inline) {
	if !c.Open('[') {
		return in
	}
	for c.More() {
		if !c.Open('{') {
			c.Skip()
			continue
		}
		kind, source := "", part{}
		for c.More() {
			switch key := c.Key(); string(key) {
			case "type":
				kind = s.word(&c)
			case "source":
				source = s.keep(&c)
			default:
				c.Skip()
			}
		}
		if kind == tidemark.TypeImage || kind == tidemark.TypeDocument {
			in = in.plus(s.inlineOf(source), 1)
		}
	}
	return in
}

// report is the newest request that the provider reported of, from 1, or 0.
func (h *history) report() int {
	if len(h.marks) == 0 {
		return 0
	}
	return h.marks[len(h.marks)-1].report
}

// unanswered notes that a cut to n messages took the reply to the requests that had just so many.
func (h *history) unanswered(n int) {
	for i := len(h.marks) - 1; i >= 0 && h.marks[i].messages == n && !h.marks[i].replaced; i-- {
		h.marks[i].replaced = true
	}
}

// zoned takes the size of the request before the policy acts.
func (h *history) zoned() {
	if h.window > 0 {
		h.now.Size = h.Size()
		h.now.Zone = h.zones.Of(h.now.Size, h.window)
	}
}

// What a break of the prefix must free, as a part of the window, to be made before it pays: that is when keeping
// it for some 50 requests would cost as much. Where the window is nearly full, less is enough.
const (
	worthPart = 20
	urgeParts = 2 // of such a part, in Aggressive
)

// acts reports whether a policy may let go now what is ripe; pays is what it would do without zones.
func (p *policy) acts(pays bool) bool {
	worth := p.window / worthPart
	switch z := p.now.Zone; {
	case p.window == 0 || z == Advisory:
		return pays
	case z == Normal:
		return false
	case z == Aggressive:
		worth /= urgeParts
	}
	return pays || p.freed() >= worth
}

// asked is the age that is asked for with this request: half of tau in Aggressive, but no less than 1.
func (p *policy) asked() int {
	t := p.Tau()
	if p.now.Zone == Aggressive {
		return min(t, max(t/2, 1))
	}
	return t
}

// lowWater is the size down to which a policy goes when it acts in Aggressive, so that the next request need not
// act again: between the marks of Advisory and Involuntary.
func (p *policy) lowWater() tidemark.Tokens {
	z := p.zones.orDefault()
	return (z.at(z.Advisory, p.window) + z.at(z.Involuntary, p.window)) / 2
}

// alongAge is the age from which results go along with a batch.
func (p *policy) alongAge() int { return (p.asked() + 1) / 2 }

// along ripens what would come of age soon, since the prefix breaks anyway. In Aggressive younger ones follow, the
// oldest first, until what is left is below the low-water mark.
func (p *policy) along() {
	age := p.alongAge()
	p.ripen(age)
	if p.now.Zone != Aggressive {
		return
	}
	for age--; age >= 1 && p.now.Size-p.freed() > p.lowWater(); age-- {
		p.ripen(age)
	}
}

// freed is what the going of all that is ripe would free.
func (p *policy) freed() (sum tidemark.Tokens) {
	for _, g := range p.costs.ready {
		if !g.stub && !p.holds(g) {
			sum += g.tokens()
		}
	}
	return sum
}

// tokens is what the going of a page frees.
func (p *Page) tokens() tidemark.Tokens { return max(p.inline.estimate(p.wire-p.short), 0) }

// loosen ends pins in Aggressive, the oldest first, until what is left is below the mark of Involuntary when what
// is ripe goes, too. What the newest turn names stays pinned.
func (p *policy) loosen() {
	if p.now.Zone != Aggressive || len(p.tight) == 0 {
		return
	}
	z := p.zones.orDefault()
	mark := z.at(z.Involuntary, p.window)
	size := p.now.Size - p.freed()
	var left []*key
	for _, k := range p.tight {
		switch {
		case len(k.pinned) == 0 || slices.Contains(left, k):
			continue // no longer, or once more
		case size < mark || p.needed(k.pinned[0]):
			left = append(left, k)
			continue
		}
		for _, g := range k.pinned {
			if p.shorten(g); !p.holds(g) {
				size -= g.tokens()
			}
		}
		p.unpin(k)
	}
	set(&p.history, &p.tight, left)
}

// armed reports whether a page is to be pinned when it comes of age, because its range was a fault. In Aggressive no
// pin begins that would end with the next request.
func (p *policy) armed(g *Page) bool {
	k := g.key
	return k != nil && k.armed != nil && k.armedAt == k.file.epoch && k.armed.Hash == g.Hash && p.now.Zone != Aggressive
}

// held takes what would have been out already, had the window not had room, once it has none.
func (p *policy) held() []*Page {
	if !p.acts(true) {
		return nil
	}
	held := slices.Clone(p.late)
	set(&p.history, &p.late, nil)
	return held
}

// ZoneCounts are requests by the zone that they found.
type ZoneCounts struct {
	Normal      int `json:"normal"`
	Advisory    int `json:"advisory"`
	Involuntary int `json:"involuntary"`
	Aggressive  int `json:"aggressive"`
}

// zoned counts a request.
func (t *Totals) zoned(z Zone) {
	if t.Zones == nil {
		t.Zones = &ZoneCounts{}
	}
	switch c := t.Zones; z {
	case Normal:
		c.Normal++
	case Advisory:
		c.Advisory++
	case Involuntary:
		c.Involuntary++
	default:
		c.Aggressive++
	}
}
