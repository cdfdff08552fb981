package search

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/recall"
)

// Wanted is what somebody looks for in a conversation.
type Wanted struct {
	Query  string
	K      int             // results, default 8
	Since  time.Time       // zero: from the beginning
	Until  time.Time       // zero: up to now
	Budget tidemark.Tokens // that the texts of the results may have together; 0: as many as they have
	All    bool            // also messages that were kept out of the index because they repeat others
	Own    bool            // of a branch: only what was said in it, and not what it continues, which another session tells

	told    bool  // to a model: the budget is for all that it reads
	rows    *rows // positions of what was said between Since and Until, once they are known
	outside bool  // before Since or after Until, to count them
	before  int64 // position of the turn that asks, which answers nothing; 0: none does
}

// Recalled is what was found, best first, how far it can be trusted, and what was left out. All fields are
// always there, so that a caller can gate on them.
type Recalled struct {
	Query        string         `json:"query"`
	Results      []Recollection `json:"results"`
	Verdict      recall.Verdict `json:"verdict"`
	Considered   int            `json:"considered"`   // messages that were ranked
	Reformulated string         `json:"reformulated"` // the second query, when the first was weak
	Filtered     []Filtered     `json:"filtered"`
	Hint         string         `json:"hint,omitempty"`    // what to ask otherwise, see [recall.NoWords]
	Vectors      string         `json:"vectors,omitempty"` // used or unreachable, where recall.embeddings is on and words were not sure
}

// Filtered is results that a search had and did not give.
type Filtered struct {
	Reason string             `json:"reason"` // superseded, similar, over budget, out of range, skipped, damaged, not indexed yet
	Count  int                `json:"count"`
	IDs    []tidemark.EntryID `json:"ids"` // of those that were read
}

// NotIndexed is the reason of messages that could not be looked at yet: in a minute they can.
const NotIndexed = "not indexed yet"

// The other reasons of Filtered.
const (
	filteredSuperseded = "superseded"   // a newer result of the same call is there
	filteredSimilar    = "similar"      // one that says nearly the same stands before it
	filteredBudget     = "over budget"  // its text does not fit any more
	filteredRange      = "out of range" // it was said before since or after until
	filteredSkipped    = "skipped"      // it repeats another message; all finds it
	filteredDamaged    = "damaged"      // a piece of its long text cannot be read; the rest of it was looked at
)

// Recollection is a message that was found, with what stands beside it.
type Recollection struct {
	ID         tidemark.EntryID   `json:"id"`
	Session    string             `json:"sessionId"`
	At         time.Time          `json:"at"`
	Role       tidemark.Role      `json:"role"`
	From       string             `json:"from"`
	Score      float64            `json:"score"`
	Normalized float64            `json:"normalized"`       // 0 to 1
	Coverage   float64            `json:"coverage"`         // share of the query that is in it
	Around     float64            `json:"around"`           // and in it with two messages at either side
	Text       string             `json:"text"`             // around the words that were found
	Offset     int                `json:"offset,omitempty"` // bytes before it, in a long message: recall with entry and offset reads on from there
	Neighbours []tidemark.EntryID `json:"neighbours"`

	amended, gone bool // by who wrote it, see piece
}

// Bounds of a recall.
const (
	DefaultK  = 8
	MaxK      = 100
	maxRead   = 1000 // bytes of a message that are ranked
	maxBeside = 400  // of a neighbour
	hopBeside = 3    // of a second search, whose neighbours are read
)

// Recall finds messages of the conversation, sessions before a reset included. A weak find is followed by
// a second search, with what the first named.
func (s *Room) Recall(ctx context.Context, w Wanted) (Recalled, error) {
	q := recall.Parse(w.Query, s.Stemmer)
	out := Recalled{Query: w.Query, Results: []Recollection{}, Verdict: recall.Nothing, Filtered: []Filtered{}}
	switch {
	case strings.TrimSpace(w.Query) == "":
		return out, fmt.Errorf("recall: the query is empty: %w", tidemark.ErrInvalid)
	case len(q.Terms) == 0:
		out.Hint = recall.NoWords
		return out, nil
	}
	missing, err := s.index.ready(ctx, false)
	if err != nil {
		return out, err
	}
	f := &finding{s: s, w: w, q: q}
	f.begin()
	if f.line, err = s.Lineage(ctx, w.Own); err != nil {
		return out, err
	}
	if f.size, err = s.extent(ctx, f.line); err != nil {
		return out, err
	}
	if f.w.rows, err = s.rowsOf(ctx, w); err != nil {
		return out, err
	}
	if err := f.look(ctx, q); err != nil {
		return out, err
	}
	out.Verdict = f.index.Judge(q, f.hits)
	if out.Verdict != recall.Confident { // vectors are asked, and paid, where words are not sure
		f.near, out.Vectors = s.nearest(ctx, f.line, w)
		maps.DeleteFunc(f.near, func(seq int64, _ recall.Stand) bool { return w.before > 0 && seq >= w.before })
		if len(f.near) > 0 {
			if err := f.lookNear(ctx, q); err != nil {
				return out, err
			}
		}
		if next, ok := f.index.Hop(q, f.hits); ok {
			if err := f.hop(ctx, q, next); err != nil {
				return out, err
			}
			out.Reformulated = next.Text
		}
	}
	if out.Verdict == recall.Nothing && f.likely() {
		out.Verdict = recall.Weak
	}
	out.Considered = len(f.index.Docs())
	if err := f.choose(ctx, q, &out); err != nil {
		return out, err
	}
	f.tellDamaged(&out)
	if missing > 0 {
		out.Filtered = append(out.Filtered, Filtered{Reason: NotIndexed, Count: missing, IDs: []tidemark.EntryID{}})
	}
	f.end()
	return out, nil
}

// finding is a search in work.
type finding struct {
	s     *Room
	w     Wanted
	q     recall.Query
	line  *host.Lineage
	size  sizeOf
	index *recall.Index
	hits  []recall.Hit
	stats recall.Stats
	rare  []string               // terms that are there, the rarest first
	seqs  []int64                // candidates, best first
	near  map[int64]recall.Stand // what stands out by its vector
	deep  map[int64]piece        // what was found far behind the beginning of long texts
	known map[int64]read
	docs  map[string]int64 // positions by entry

	hopped bool           // a second search was made, which may have found what answers together with what the first did
	short  map[int64]bool // messages that are short, of a short conversation, which is read whole
}

// read is a message that was read, and what of it is ranked.
type read struct {
	entry         tidemark.Entry
	role          tidemark.Role
	name          string // of who said it among several people
	label         int    // bytes before what is said: that name, as the channel put it
	text          string // what a search finds in it, as stored; of a long one a piece
	at            int    // where in all of its text that is
	lost          bool   // a piece of it cannot be read
	amended, gone bool   // by who said it, see piece
	part          string
	whole         bool // read as a candidate: part is not cut short as that of a neighbour
}

// look searches: candidates from the index of words, with the neighbours of the best, ranked.
func (f *finding) look(ctx context.Context, q recall.Query) (err error) {
	f.seqs, f.rare, f.stats, err = f.s.find(ctx, f.line, q.Terms, q.Runs(), f.w, f.size, max(candidates, min(f.w.K, MaxK)))
	if err != nil {
		return err
	}
	if err := f.lookDeep(ctx, q.Terms); err != nil {
		return err
	}
	if err := f.load(ctx, f.seqs, f.seqs[:min(len(f.seqs), besideOf)]); err != nil {
		return err
	}
	f.hits = f.index.Search(q, f.stats)
	return nil
}

// hop searches again with what the first search named, among what that found and what the new terms find.
func (f *finding) hop(ctx context.Context, q, next recall.Query) error {
	fresh := slices.DeleteFunc(slices.Clone(next.Terms), func(t string) bool { return slices.Contains(q.Terms, t) })
	seqs, rare, stats, err := f.s.find(ctx, f.line, fresh, nil, f.w, f.size, hopMost)
	if err != nil {
		return err
	}
	around := append(slices.Clone(f.seqs[:min(len(f.seqs), besideOf)]), seqs[:min(len(seqs), hopBeside)]...)
	for _, seq := range seqs {
		if !slices.Contains(f.seqs, seq) {
			f.seqs = append(f.seqs, seq)
		}
	}
	f.rare = append(f.rare, rare...)
	if err := f.load(ctx, f.seqs, around); err != nil {
		return err
	}
	f.hopped = true
	own := f.stats
	f.stats.Holds = func(t string) int { return max(own.Holds(t), stats.Holds(t)) }
	worth := hopWorth
	if recall.Names(next.Terms[len(next.Terms)-1]) > 0 {
		worth = 1
	}
	f.hits = f.fused(recall.Behind(f.index.Search(q, own), f.index.Search(next, f.stats), worth))
	return nil
}

// load reads candidates and the neighbours of some of them, as far as that was not done, and makes them ready
// to be ranked.
func (f *finding) load(ctx context.Context, seqs, around []int64) error {
	places, err := f.s.placing(ctx, f.line, seqs, around, f.w)
	if err == nil {
		places, err = f.whole(ctx, places)
	}
	if err != nil {
		return err
	}
	var missing []int64
	places = slices.DeleteFunc(places, func(p placed) bool { return f.w.before > 0 && p.seq >= f.w.before })
	for _, p := range places {
		if r, ok := f.known[p.seq]; !ok || p.found && !r.whole {
			missing = append(missing, p.seq)
		}
	}
	entries, err := f.s.Log.Said(ctx, missing)
	if err != nil {
		return err
	}
	err = f.s.pieces.texts(ctx, entries, f.deep, func(e tidemark.Entry, role tidemark.Role, p piece) {
		e.Payload = nil
		r := read{entry: e, role: role, text: p.text, at: p.at, lost: p.lost, amended: p.amended, gone: p.gone}
		r.name, r.label = speaker(e, p.text)
		f.known[e.Seq] = r
	})
	if err != nil {
		return fmt.Errorf("recall: %w", err)
	}
	f.docs = map[string]int64{}
	sitting, last := int64(0), time.Time{}
	docs := make([]recall.Doc, 0, len(places))
	for _, p := range places {
		r, ok := f.known[p.seq]
		if !ok || !r.entry.Origin.Findable() { // it stands where it was said
			continue
		}
		if r.part == "" {
			most := maxBeside
			if r.whole = p.found || f.short[p.seq]; r.whole {
				most = maxRead
			}
			said, at := r.text[r.label:], -1
			if len(said) > most {
				at = f.q.Place(said, f.s.Stemmer)
			}
			r.part = excerpt(said, at, f.rare, most)
			f.known[p.seq] = r
		}
		f.docs[string(r.entry.ID)] = p.seq
		if r.entry.At.Sub(last) > sittingGap {
			sitting++
		}
		last = r.entry.At
		docs = append(docs, recall.Doc{ID: string(r.entry.ID), Pos: p.pos, Group: sitting, At: r.entry.At, Speaker: r.name, Text: r.part})
	}
	if f.short != nil {
		f.label(docs)
	}
	if f.index == nil {
		f.index = recall.New(docs, f.s.Stemmer)
	} else {
		f.index = f.index.With(docs)
	}
	return nil
}

// hopWorth is what a find of the second search is worth beside one of the first, where words lead to it. A name leads
// on for certain, and is worth as much.
const hopWorth = 0.8

// recollection is what is told of a hit.
func (f *finding) recollection(h recall.Hit, terms []string) Recollection {
	docs := f.index.Docs()
	d := docs[h.Doc]
	r := f.known[f.docs[d.ID]]
	out := Recollection{ID: r.entry.ID, Session: r.entry.Log, At: r.entry.At, Role: r.role, From: r.entry.Origin.From,
		Score: round(h.Score), Normalized: round(h.Normalized), Coverage: round(h.Coverage), Around: round(h.Around),
		Text: f.shown(r.text, terms), Neighbours: []tidemark.EntryID{}}
	out.amended, out.gone = r.amended, r.gone
	out.Offset = r.placeOf(out.Text)
	for _, i := range []int{h.Doc - 1, h.Doc + 1} {
		if i >= 0 && i < len(docs) && (docs[i].Pos == d.Pos-1 || docs[i].Pos == d.Pos+1) {
			out.Neighbours = append(out.Neighbours, tidemark.EntryID(docs[i].ID))
		}
	}
	return out
}

// shown is what of a text stands around what was found: the number that the query names, or most of its words.
func (f *finding) shown(text string, terms []string) string {
	side := f.w.side()
	if len(text) > side {
		if at := f.q.Place(text, f.s.Stemmer); at >= 0 {
			return snippetAt(text, at, side)
		}
	}
	return snippet(text, terms, side)
}

// side is how many bytes are given at either side of what was found: a model that has room for more is given more.
func (w Wanted) side() int {
	const usual = 300
	if !w.told {
		return usual
	}
	return max(usual*int(w.Budget)/int(toolBudget), usual/4)
}

// round keeps four digits: more are noise of the floating point.
func round(f float64) float64 { return float64(int64(f*10_000+0.5)) / 10_000 }
