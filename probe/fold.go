package probe

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// fold adds sessions up.
type fold struct {
	c       *Corpus
	perTok  float64 // bytes
	classes map[Class]*ClassReport
	amps    map[Class][]float64
	content [kinds]int64
	sent    [parts]int64
	tools   []ToolReport
	used    []float64 // tools of each active session
	usage   tidemark.Usage
	known   int   // calls with usage
	wrote   int64 // bytes of replies of those
	guessed float64
	explain float64
	prefix  float64
	told    int // calls of sessions whose prefix is known
	calls   int
	list    []SessionReport
}

// Report adds everything up. It may be asked for at any time, and again.
func (c *Corpus) Report() Report {
	kept, held := c.unique()
	f := &fold{c: c, classes: map[Class]*ClassReport{}, amps: map[Class][]float64{}, tools: make([]ToolReport, len(c.names))}
	tokens := f.measure(kept)
	sum := sha256.New()
	ids := make([]string, 0, len(kept))
	for _, s := range kept {
		f.session(s)
		ids = append(ids, hex.EncodeToString(s.id[:]))
	}
	slices.Sort(ids)
	for _, id := range ids {
		sum.Write([]byte(id))
	}
	date := c.o.Date
	if date.IsZero() {
		date = c.newest
	}
	definitions := "paper"
	if c.o.Definitions != nil {
		definitions = "given"
	}
	r := Report{Corpus: hex.EncodeToString(sum.Sum(nil)), Files: c.found, Sessions: len(kept), Held: held, Calls: f.calls,
		Protocol: Protocol{1, c.o.MinSize, "content", deadAge, deadSize, definitions},
		Kinds:    shares(kindNames[:], f.content[:]), Tools: f.toolsReport(), Usage: f.usageReport(), List: f.list}
	if !date.IsZero() {
		r.Date = date.UTC().Format(time.RFC3339)
	}
	for _, n := range f.content {
		r.Content += n
	}
	tokens.Explained = ratio(f.explain, float64(effective(f.usage)))
	r.Tokens = tokens
	r.Sent = SentReport{Prefix: ratio(f.prefix, float64(f.told)), Parts: shares(partNames[:], f.sent[:])}
	for _, n := range f.sent {
		r.Sent.Bytes += n
	}
	for _, class := range Classes {
		if k := f.classes[class]; k != nil {
			k.Amplification = spread(f.amps[class])
			r.Classes = append(r.Classes, *k)
		}
	}
	r.Projection = f.project()
	return r
}

func spread(of []float64) Spread {
	slices.Sort(of)
	const half, three, nine = .5, .75, .9
	return Spread{len(of), quantile(of, half), quantile(of, three), quantile(of, nine)}
}

// effective is what the paper calls effective input.
func effective(u tidemark.Usage) tidemark.Tokens { return u.Input + u.CacheCreation + u.CacheRead }

// measure says how many bytes a token has: from call to call the context grew by so many of each. Pairs with an image
// between them tell nothing, nor do those where it shrank. Without any the estimator says.
func (f *fold) measure(kept []*stream) TokensReport {
	var bytes, tokens, all, guess int64
	pairs := 0
	for _, s := range kept {
		for i, b := range s.calls {
			all, guess = all+b.sent, guess+b.guess
			if i == 0 || b.image || b.shared || !b.known || !s.calls[i-1].known || b.stretch != s.calls[i-1].stretch {
				continue
			}
			a := s.calls[i-1]
			more, by := int64(effective(b.usage)-effective(a.usage)), b.sent-a.sent
			if more > 0 && by > 0 {
				bytes, tokens, pairs = bytes+by, tokens+more, pairs+1
			}
		}
	}
	const least, most = .5, 20 // beyond them it is no text, or no usage
	if f.perTok = float64(bytes) / float64(max(1, tokens)); f.perTok >= least && f.perTok <= most {
		return TokensReport{BytesPerToken: ratio(f.perTok, 1), Basis: "usage", Pairs: pairs}
	}
	f.perTok = 10.0 / 3 // of the estimator, for plain text
	if guess > 0 && all > 0 {
		f.perTok = float64(all) / float64(guess)
	}
	return TokensReport{BytesPerToken: ratio(f.perTok, 1), Basis: "estimator"}
}

// before returns the tokens that stand before the messages of a session, -1 when no usage tells: what its first call
// took more than the log's messages account for. Of several stretches the least counts: after a compaction Claude
// Code sends files again that its log does not hold.
func (f *fold) before(s *stream) float64 {
	least, stretch := -1.0, int32(-1)
	for _, c := range s.calls {
		if c.stretch == stretch || c.image || !c.known {
			continue
		}
		stretch = c.stretch
		if n := max(0, float64(effective(c.usage))-float64(c.sent)/f.perTok); least < 0 || n < least {
			least = n
		}
	}
	return least
}

// session adds one session.
func (f *fold) session(s *stream) {
	k := f.classes[s.class]
	if k == nil {
		k = &ClassReport{Class: s.class}
		f.classes[s.class] = k
	}
	row := SessionReport{Session: s.id.hex(), Class: s.class}
	f.pieces(s, &row)
	f.waste(s, &row)
	f.requests(s, k, &row)
	var size, carried float64
	for _, p := range s.pieces {
		if p.kind == Result {
			size += float64(p.size)
			carried += float64(p.size) * float64(max(0, p.end-p.made))
		}
	}
	if size > 0 {
		row.Amplification = ratio(carried, size)
		f.amps[s.class] = append(f.amps[s.class], row.Amplification)
	}
	var waste int64
	for i, n := range row.Parts {
		f.sent[i] += n
		if row.Sent += n; Part(i) != InUse {
			waste += n
		}
	}
	row.Waste = ratio(float64(waste), float64(row.Sent))
	for i, n := range row.Kinds {
		f.content[i] += n
		row.Content += n
	}
	k.Sessions++
	k.Calls += row.Calls
	k.Content += row.Content
	f.calls += row.Calls
	f.list = append(f.list, row)
}

// pieces adds what was said, each byte once, and the tools.
func (f *fold) pieces(s *stream, row *SessionReport) {
	used := map[int32]bool{}
	for _, p := range s.pieces {
		if !s.counts(p) {
			continue
		}
		row.Kinds[p.kind] += p.size
		if p.tool < 0 {
			continue
		}
		t := &f.tools[p.tool]
		if p.kind == Result {
			t.Results++
			t.Bytes += p.size
			continue
		}
		t.Calls++
		if !used[p.tool] {
			used[p.tool] = true
			t.Sessions++
		}
	}
	row.Tools = len(used)
	if len(s.calls) > 0 {
		f.used = append(f.used, float64(len(used)))
	}
}

// requests adds the calls.
func (f *fold) requests(s *stream, k *ClassReport, row *SessionReport) {
	prefix := f.before(s)
	for _, c := range s.calls {
		if c.shared {
			continue
		}
		row.Calls++
		if prefix >= 0 {
			f.told++
			f.prefix += prefix
		}
		if !c.known {
			f.guessed += float64(c.sent)/f.perTok + max(0, prefix)
			continue
		}
		f.known++
		f.usage = f.usage.Add(c.usage)
		f.wrote += c.wrote
		f.explain += float64(c.sent)/f.perTok + max(0, prefix)
		k.Input += int64(effective(c.usage))
		k.Output += int64(c.usage.Output)
	}
}

func (f *fold) usageReport() UsageReport {
	u, all := f.usage, float64(effective(f.usage))
	return UsageReport{Calls: f.known, Input: int64(u.Input), Created: int64(u.CacheCreation), Read: int64(u.CacheRead), Effective: int64(effective(u)),
		Output: int64(u.Output), CacheRead: ratio(float64(u.CacheRead), all), PerCall: ratio(all, float64(f.known)),
		InOut: ratio(all, float64(u.Output)), InOutBytes: ratio(all, float64(f.wrote)/f.perTok)}
}

func (f *fold) toolsReport() ToolsReport {
	slices.Sort(f.used)
	r := ToolsReport{Active: len(f.used), Median: quantile(f.used, 1.0/2)}
	all := int64(0)
	for _, t := range f.tools {
		all += t.Bytes
	}
	for i, t := range f.tools {
		t.Name = f.c.names[i]
		given := slices.ContainsFunc(f.c.o.Definitions, func(d Definition) bool { return d.Name == t.Name })
		if t.Calls == 0 && t.Results == 0 && !given {
			continue // of calls that count elsewhere
		}
		t.Adoption = ratio(float64(t.Sessions), float64(r.Active))
		t.Share, t.Mean = ratio(float64(t.Bytes), float64(all)), ratio(float64(t.Bytes), float64(t.Results))
		r.List = append(r.List, t)
		if t.Name != UnknownTool && t.Name != OtherTool {
			r.Known++
		}
	}
	slices.SortFunc(r.List, func(a, b ToolReport) int {
		return cmp.Or(cmp.Compare(b.Sessions, a.Sessions), cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Name, b.Name))
	})
	return r
}
