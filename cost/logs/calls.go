package logs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cost"
	"github.com/tidemark-ai/tidemark/transcript"
)

// call takes what a line of the model reports of its call. The lines of one message report the same call, the last of
// them what it came to.
func (r *reader) call(l transcript.Line, side bool) error {
	f, ok := l.MessageField("usage")
	if !ok {
		f, ok = l.Field("usage")
	}
	if !ok {
		return nil
	}
	one := call{side: side}
	for m := range l.Members(f) {
		switch m.Name {
		case "input_tokens":
			one.usage.Input = number(l, m)
		case "output_tokens":
			one.usage.Output = number(l, m)
		case "cache_read_input_tokens":
			one.usage.CacheRead = number(l, m)
		case "cache_creation_input_tokens":
			one.usage.CacheCreation = number(l, m)
		case "cache_creation":
			one.hour = hourWrites(l, m)
		}
	}
	sent := one.usage.Input + one.usage.CacheRead + one.usage.CacheCreation
	if sent == 0 { // a reply that was broken off before the model answered, or one that it did not write
		return nil
	}
	if f, ok := l.MessageField("model"); ok {
		one.model = strings.Clone(l.Text(f))
	}
	if !side {
		r.sent(sent)
	}
	id := l.Get("requestId")
	if f, ok := l.MessageField("id"); ok {
		id = l.Text(f)
	}
	if id == "" {
		id = fmt.Sprintf("line %d", l.Number)
	}
	if _, ok := r.calls[id]; !ok && len(r.calls) == maxCalls {
		return fmt.Errorf("more than %d calls: %w", maxCalls, tidemark.ErrTooLarge)
	}
	r.calls[strings.Clone(id)] = one
	return nil
}

// hourWrites reads how much went to the cache that lives an hour.
func hourWrites(l transcript.Line, f transcript.Field) (n tidemark.Tokens) {
	for m := range l.Members(f) {
		if m.Name == "ephemeral_1h_input_tokens" {
			n = number(l, m)
		}
	}
	return n
}

// sent takes how large the context of a call was. Further lines of one call report the same.
func (r *reader) sent(n tidemark.Tokens) {
	v := &r.live
	if v.sent == 0 { // the first since the beginning, or since a compaction
		if p := max(1, n-v.all.tokens()); r.c.Prefix == 0 || p < r.c.Prefix {
			r.c.Prefix = p
		}
	}
	if n == v.sent {
		return
	}
	if k := r.pending; k != nil && k.After == 0 {
		k.After, k.AfterBasis = n, "usage"
	}
	v.sent, v.at, v.atAll = n, v.paper, v.all
}

// built adds up the calls: by model first, in the order of their names, so that one log gives one figure.
func (r *reader) built() {
	type spent struct {
		usage tidemark.Usage
		hour  tidemark.Tokens
		calls int
	}
	b, chain, by := &r.c.Built, tidemark.Usage{}, map[string]spent{}
	for _, one := range r.calls {
		s := by[one.model]
		s.usage, s.calls = s.usage.Add(one.usage), s.calls+1
		s.hour += min(one.hour, one.usage.CacheCreation)
		by[one.model] = s
		if !one.side {
			chain = chain.Add(one.usage)
		}
	}
	for _, model := range slices.Sorted(maps.Keys(by)) {
		s := by[model]
		price, ok := r.price(model)
		if !ok {
			b.Unpriced += s.calls
		}
		b.Calls += s.calls
		b.Usage = b.Usage.Add(s.usage)
		b.Hour += s.hour
		b.Models = append(b.Models, ModelCalls{model, s.calls})
		b.Dollars += price.Usage(s.usage) + price.HourMore(s.hour)
	}
	b.TTL = ttl(b.Hour, b.Usage.CacheCreation)
	if h, ok := cost.HitRate(chain); ok {
		b.HitRate = &h
	}
}

// price is that of a model, or the one for models without.
func (r *reader) price(model string) (cost.Price, bool) {
	p, seen := r.known[model]
	if !seen {
		if found, err := r.prices.Find(model); err == nil {
			p = &found
		}
		r.known[model] = p
	}
	if p == nil {
		return r.fallback, false
	}
	return *p, true
}
