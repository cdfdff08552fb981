package bench

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/paging"
)

// Quality is the paired check of the Pichay paper (papers/pichay.txt §6.5): the same next turn of a recorded
// session is answered once with the whole context and once as a strategy leaves it, and judges
// that do not know which is which compare both. Model and Provider answer and judge; all fields but Save and
// Told must be set.
type Quality struct {
	Provider tidemark.Provider
	By       string // who the provider is: the same model elsewhere may answer otherwise
	Model    string
	Judges   []string // the model of each judge
	Strategy Strategy
	Load     func(context.Context, Turn) (Recorded, error)

	Seed         uint64 // draws which turns, and which answer is A
	Recent       int    // newest messages that stay as they were, the one to answer included
	Window       tidemark.Tokens
	AnswerTokens tidemark.Tokens // bound on an answer
	JudgeTokens  tidemark.Tokens // bound on a judge's reply: a verdict, and what it writes or thinks before
	Each         int             // turns of one session
	Pairs        int             // turns of all
	Margin       float64         // points of score that make no difference

	Have map[string]Saved          // calls that were made before, by key
	Save func(QualityRecord) error // of each new call; nil keeps none
	Told Told
}

// Bounds of [Quality].
const (
	MaxPairs  = 1000
	MaxJudges = 9
	maxTries  = 16 // turns of a session that are looked at for each that is wanted
)

// The paper took one turn of a session, from this part of its messages.
const (
	paperFrom = 0.65
	paperTo   = 0.75
)

// Turn is a message that a person typed in a recorded session, whose answer is to be compared.
type Turn struct {
	File    string `json:"file"`
	Line    int    `json:"line"` // of the session in its file, from 1; 0 when the file is one session
	Session string `json:"session"`
	Request int    `json:"request"` // from 0
}

// Recorded is a session up to a turn: Session without text and up to its request, the rest with.
type Recorded struct {
	Session  paging.Session
	System   string
	Tools    []tidemark.Tool
	Messages []tidemark.Message // of the request
}

// Strategies are the names that [NewStrategy] takes.
func Strategies() []string { return append(paging.Policies(), control) }

// control is the strategy that changes nothing.
const control = "none"

// Strategy makes contexts smaller as a session that runs it would: demand paging by a policy.
type Strategy struct {
	options paging.Options
	tools   paging.Tools
}

// NewStrategy makes a strategy by the name in o.Policy: a policy of paging over a table of tools, or none, a control
// that has the whole context answered twice: what judges and chance make of no difference at all. Another name is
// tidemark.ErrInvalid.
func NewStrategy(o paging.Options, tools paging.Tools) (p Strategy, err error) {
	if o.Policy != control {
		_, err = paging.New(o)
	}
	return Strategy{o, tools}, err
}

// Name is that of the policy.
func (p Strategy) Name() string { return cmp.Or(p.options.Policy, paging.Policies()[0]) }

// Freed tells for each request of a session how many bytes are out of it, in messages before the newest recent ones. A
// request of which it is 0 is not compared.
func (p Strategy) Freed(s paging.Session, recent int) ([]int, error) {
	out := make([]int, len(s.Steps))
	if p.options.Policy == control {
		for n := range out {
			out[n] = 1
		}
		return out, nil
	}
	_, err := p.run(s, func(n int, pager *paging.Pager) {
		for _, g := range pager.Stubs() {
			if g.Message < pager.Len()-recent {
				out[n] += g.Size
			}
		}
	})
	return out, err
}

// run takes a session through a pager and shows it after each request.
func (p Strategy) run(s paging.Session, each func(request int, pager *paging.Pager)) (*paging.Pager, error) {
	o := p.options
	if o.Whole = o.Whole || s.Whole; o.Window > 0 {
		o.Fixed += tidemark.EstimateChars(s.Fixed)
	}
	pager, err := paging.New(o)
	if err != nil {
		return nil, err
	}
	for n, st := range s.Steps {
		if _, err := pager.Step(st); err != nil {
			return nil, fmt.Errorf("steps[%d]: %w", n, err)
		}
		pager.Reported(st.Usage)
		each(n, pager)
	}
	return pager, nil
}

// Manage returns the messages of the newest request of a session with stubs in the place of what is out. Of the newest
// recent ones it changes nothing, and it changes none in place.
func (p Strategy) Manage(r Recorded, recent int) ([]tidemark.Message, error) {
	if p.options.Policy == control {
		return r.Messages, nil
	}
	pager, err := p.run(r.Session, func(int, *paging.Pager) {})
	if err != nil {
		return nil, err
	}
	if pager.Len() != len(r.Messages) {
		return nil, fmt.Errorf("session %s: %d messages with text, %d without: %w", r.Session.ID, len(r.Messages), pager.Len(), tidemark.ErrInvalid)
	}
	scanner := paging.Scanner{Tools: p.tools}
	out := slices.Clone(r.Messages)
	own := map[int]bool{} // messages that are a copy already
	for _, g := range pager.Stubs() {
		if g.Message >= len(out)-recent || g.Block >= len(out[g.Message].Content) {
			continue
		}
		if !own[g.Message] {
			own[g.Message] = true
			out[g.Message] = tidemark.Message{Role: out[g.Message].Role, Content: slices.Clone(out[g.Message].Content)}
		}
		content := out[g.Message].Content
		if content[g.Block], err = scanner.Replace(content[g.Block], g, ""); err != nil {
			return nil, fmt.Errorf("session %s message %d: %w", r.Session.ID, g.Message, err)
		}
	}
	return out, nil
}

// Choose orders the turns of a session from which the strategy has taken something out: those at 65 to
// 75 % of its messages first, as the paper's, in an order that the seed draws; the others by how far they are
// from there. typed are the requests that end with words of a person.
func (q *Quality) Choose(s paging.Session, typed []int) ([]int, error) {
	freed, err := q.Strategy.Freed(s, q.Recent)
	if err != nil {
		return nil, err
	}
	total := 0
	at := make([]int, len(s.Steps)) // messages so far, those that were cut included
	for n, st := range s.Steps {
		total += len(st.Append)
		at[n] = total
	}
	type turn struct {
		n    int
		far  float64
		draw uint64
	}
	var turns []turn
	for _, n := range typed {
		if n < 0 || n >= len(freed) || freed[n] == 0 {
			continue
		}
		place := float64(at[n]) / float64(max(total, 1))
		far := max(paperFrom-place, place-paperTo, 0)
		turns = append(turns, turn{n, math.Round(far*1000) / 1000, q.draw("turn", s.ID, n, 0)})
	}
	slices.SortFunc(turns, func(a, b turn) int { return cmp.Or(cmp.Compare(a.far, b.far), cmp.Compare(a.draw, b.draw)) })
	out := make([]int, len(turns))
	for i, t := range turns {
		out[i] = t.n
	}
	return out, nil
}

// draw is a number that the seed gives for a place: the same in every run, whatever else is run.
func (q *Quality) draw(what, session string, n, judge int) uint64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %q %d %d", q.Seed, what, session, n, judge))
	return binary.BigEndian.Uint64(sum[:8])
}

// fullFirst reports whether a judge sees the answer with the whole context as A.
func (q *Quality) fullFirst(t Turn, judge int) bool {
	return q.draw("order", t.Session, t.Request, judge)&1 == 0
}
