package recall

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Scope is how far a recall looks.
type Scope string

// The scopes.
const (
	ScopeSession Scope = "session" // one conversation, those before a reset included; the default
	ScopeAgent   Scope = "agent"   // all conversations that the asker may read
	ScopePeer    Scope = "peer"    // of these, the ones with one peer
)

// ParseScope reads a scope that a person or a model typed; empty is otherwise.
func ParseScope(s string, otherwise Scope) (Scope, error) {
	switch scope := Scope(s); scope {
	case "":
		return otherwise, nil
	case ScopeSession, ScopeAgent, ScopePeer:
		return scope, nil
	}
	return "", fmt.Errorf("scope %.40q: want session, agent or peer: %w", s, tidemark.ErrInvalid)
}

// Ask is what is looked for in many conversations.
type Ask struct {
	Query  string          `json:"query"`
	K      int             `json:"k,omitempty"`
	Since  time.Time       `json:"since,omitzero"`
	Until  time.Time       `json:"until,omitzero"`
	Budget tidemark.Tokens `json:"budget,omitempty"` // of all texts; 0 is no bound
	All    bool            `json:"all,omitempty"`    // also turns that the reconciler skipped, of those who are asked
	Scope  Scope           `json:"scope,omitempty"`
	Peer   string          `json:"peer,omitempty"` // of ScopePeer: "channel:name" or a name; empty is the asker's own
	Own    tidemark.Key    `json:"own,omitempty"`  // not asked: who asks looks there itself

	Cost func(Result) int `json:"-"` // tokens of a result as it is told here; nil: [Cost] of its text
}

// Answer is what several conversations gave, best first.
type Answer struct {
	Query        string         `json:"query"`
	Results      []Result       `json:"results"`
	Verdict      Verdict        `json:"verdict"`
	Considered   int            `json:"considered"` // messages that were ranked
	Reformulated string         `json:"reformulated"`
	Filtered     []Left         `json:"filtered"`
	Hint         string         `json:"hint,omitempty"`      // what to ask otherwise
	Coverage     float64        `json:"coverage"`            // share of the conversations asked that answered
	Asked        []tidemark.Key `json:"asked"`               // which conversations
	Unreached    []tidemark.Key `json:"unreached,omitempty"` // of these, who did not answer
	Beyond       int            `json:"beyond,omitempty"`    // conversations of so many that only the last active were held against the query
}

// NoWords is the hint to a query that cannot be looked up, such as "???" or "the": nothing was searched.
const NoWords = "the query has only signs or words that stand in every text: ask with a name, a number or a rarer word"

// Left is results that were found and are not given.
type Left struct {
	Reason string             `json:"reason"`
	Count  int                `json:"count"`
	IDs    []tidemark.EntryID `json:"ids"`
}

// leave adds to what is left out for a reason.
func (a *Answer) leave(more Left) {
	for i := range a.Filtered {
		if l := &a.Filtered[i]; l.Reason == more.Reason {
			l.Count, l.IDs = l.Count+more.Count, append(l.IDs, more.IDs...)
			return
		}
	}
	more.IDs = append([]tidemark.EntryID{}, more.IDs...)
	a.Filtered = append(a.Filtered, more)
}

// Result is a result of one conversation as that one told it, an object with its key.
type Result struct {
	Key  tidemark.Key
	Told json.RawMessage
}

// MarshalJSON writes what was told.
func (r Result) MarshalJSON() ([]byte, error) { return r.Told, nil }

// UnmarshalJSON keeps all that was told, what is not read here too.
func (r *Result) UnmarshalJSON(raw []byte) error {
	var in struct {
		Key tidemark.Key `json:"key"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return err
	}
	r.Key, r.Told = in.Key, slices.Clone(raw)
	return nil
}

// Join makes one answer of those of several conversations: the best by normalised score, of equal ones the
// newest, within k results; before them what a conversation is sure of, one result of each. The verdict is that of the
// conversation of the first result that is given. A budget of tokens has different ones first and passes over what does
// not fit. All results else are of equal standing, since a normalised score compares between searches.
func Join(a Ask, answers []Answer) (Answer, error) {
	out := Answer{Query: a.Query, Results: []Result{}, Verdict: Nothing, Filtered: []Left{}, Coverage: 1, Asked: []tidemark.Key{}}
	var all []ranked
	for _, one := range answers {
		out.Considered, out.Beyond = out.Considered+one.Considered, out.Beyond+one.Beyond
		out.Asked, out.Unreached = append(out.Asked, one.Asked...), append(out.Unreached, one.Unreached...)
		for _, l := range one.Filtered {
			out.leave(l)
		}
		out.Reformulated, out.Hint = cmp.Or(out.Reformulated, one.Reformulated), cmp.Or(out.Hint, one.Hint)
		for i, r := range one.Results {
			in := ranked{told: r, verdict: one.Verdict, sure: i == 0 && one.Verdict == Confident}
			if err := json.Unmarshal(r.Told, &in); err != nil {
				return out, fmt.Errorf("result of %s: %w: %w", r.Key, err, tidemark.ErrInvalid)
			}
			all = append(all, in)
		}
	}
	if len(answers) > 1 { // one has an order of its own
		slices.SortStableFunc(all, func(x, y ranked) int {
			return cmp.Or(cmp.Compare(y.Normalized, x.Normalized), y.At.Compare(x.At))
		})
		if a.Budget > 0 {
			diverse(all[:min(len(all), mmrMost)])
		}
		slices.SortStableFunc(all, func(x, y ranked) int { return cmp.Compare(one(y.sure), one(x.sure)) })
	}
	sizes, budget := make([]int, len(all)), math.MaxInt
	if a.Budget > 0 {
		budget = int(a.Budget)
		for i, r := range all {
			if sizes[i] = Cost(r.Text); a.Cost != nil {
				sizes[i] = a.Cost(r.told)
			}
		}
	}
	taken, over := Pack(sizes, budget, cmp.Or(max(a.K, 0), len(all)))
	for n, i := range taken {
		if out.Results = append(out.Results, all[i].told); n == 0 {
			out.Verdict = all[i].verdict
		}
	}
	for _, i := range over {
		out.leave(Left{Reason: "over budget", Count: 1, IDs: []tidemark.EntryID{all[i].ID}})
	}
	if n := len(out.Asked); n > 0 {
		out.Coverage = float64(n-len(out.Unreached)) / float64(n)
	}
	return out, nil
}

// diverse puts results in an order in which what was said before counts less, see [Index.Diverse].
func diverse(all []ranked) {
	docs, hits, old := make([]Doc, len(all)), make([]Hit, len(all)), slices.Clone(all)
	for i, r := range all {
		docs[i], hits[i] = Doc{Pos: int64(i), Text: r.Text}, Hit{Doc: i, Normalized: r.Normalized}
	}
	for i, h := range New(docs, nil).Diverse(hits) {
		all[i] = old[h.Doc]
	}
}

// ranked is what ranks a result among those of others.
type ranked struct {
	told       Result
	verdict    Verdict          // of its conversation
	sure       bool             // the first of one that is confident
	ID         tidemark.EntryID `json:"id"`
	Normalized float64          `json:"normalized"`
	At         time.Time        `json:"at"`
	Text       string           `json:"text"`
}

// DigestReport is what a conversation tells its agent of its digests.
type DigestReport struct {
	Key   tidemark.Key `json:"key"`
	Head  int64        `json:"head"`        // position of its last message
	At    time.Time    `json:"at,omitzero"` // when its parts reached the head; zero while they do not
	Parts []DigestPart `json:"parts,omitempty"`
}

// DigestPart is the digest of a stretch of a conversation.
type DigestPart struct {
	First  int64  `json:"first"` // position behind the last of the part before it
	Last   int64  `json:"last"`
	Closed bool   `json:"closed,omitempty"` // no message will be added
	Digest []byte `json:"digest"`
}
