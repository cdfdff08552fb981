package bench

import (
	"slices"

	"github.com/tidemark-ai/tidemark"
)

// Rules of the conclusion.
const (
	// significant is the p-value from which a test says something.
	significant = 0.05
	// MinSessions is the fewest sessions that a conclusion is drawn from: of fewer not even
	// differences that all point one way are significant (2/2^5 is more than 0.05).
	MinSessions = 6
)

// What a check concludes.
const (
	NoVerdict   = "no verdict"
	TooFew      = "too few sessions"
	Equivalent  = "equivalent"
	NotInferior = "not inferior"
	Worse       = "worse"
	Undecided   = "undecided"
)

// QualityResult is what a check found. Differences are managed less full. Without a verdict that counts nothing
// was measured: what verdicts say is nil then, null in JSON.
type QualityResult struct {
	Strategy string       `json:"strategy"`
	Model    string       `json:"model"`
	Judges   []string     `json:"judges"`
	Seed     uint64       `json:"seed"`
	Recent   int          `json:"recent"`
	Margin   float64      `json:"margin"`
	Sessions int          `json:"sessions"` // that were compared
	Judged   int          `json:"judged"`   // of them have a verdict that counts
	Pairs    int          `json:"pairs"`
	Skipped  Skips        `json:"skipped"`
	Failed   []FailedPair `json:"failed,omitempty"`

	Calls   int                 `json:"calls"`
	Reused  int                 `json:"reused"` // calls of earlier runs
	Usage   tidemark.Usage      `json:"usage"`  // of the calls of this run
	Tokens  [2]float64          `json:"tokens"` // of a request, full and managed, mean estimate
	Answers map[string]Oddities `json:"answers"`

	Verdicts   int         `json:"verdicts"` // that count
	Invalid    int         `json:"invalid"`  // that could not be read
	Preference *Preference `json:"preference"`
	Scores     []Criterion `json:"scores"` // the criteria, and "overall" as their mean
	Detection  *Detection  `json:"detection"`
	Position   *Position   `json:"position"`
	Conclusion string      `json:"conclusion"`
}

// FailedPair is a pair that could not be compared.
type FailedPair struct {
	Session string `json:"session"`
	Request int    `json:"request"`
	Error   string `json:"error"`
}

// Oddities count answers of a condition that are not as they should be.
type Oddities struct {
	Empty  int `json:"empty"`  // not a word: what the paper calls degenerate
	Called int `json:"called"` // called a tool although they were asked not to
	Cut    int `json:"cut"`    // reached the bound
}

// Share is how often one of two things was said, and how likely so uneven a share is by chance.
type Share struct {
	Hits int     `json:"hits"`
	Of   int     `json:"of"`
	P    float64 `json:"p"` // exact, two-sided
}

func shareOf(hits, of int) Share { return Share{hits, of, binomialTest(hits, of)} }

// Preference says which answers judges preferred.
type Preference struct {
	Full    int     `json:"full"`
	Managed int     `json:"managed"`
	Ties    int     `json:"ties"`
	P       float64 `json:"p"`     // sign test over verdicts, as if they were independent
	Pairs   Share   `json:"pairs"` // pairs that most judges preferred managed, of those they did not split over
}

// Criterion compares scores: means over verdicts, and tests over sessions, whose figure is the
// mean difference of its pairs.
type Criterion struct {
	Name       string     `json:"name"`
	Full       float64    `json:"full"`
	Managed    float64    `json:"managed"`
	Difference float64    `json:"difference"`   // mean over sessions
	CI90       [2]float64 `json:"ci90"`         // by t, that of the two one-sided tests
	NotWorse   float64    `json:"p_not_worse"`  // that it is worse by the margin or more
	Equivalent float64    `json:"p_equivalent"` // the larger of both one-sided tests
}

// Detection says whether judges could tell which answer had less context.
type Detection struct {
	Right  int     `json:"right"`
	Named  int     `json:"named"` // verdicts that named one
	Unsure int     `json:"unsure"`
	P      float64 `json:"p"`     // exact, two-sided, over verdicts as the paper has it
	Pairs  Share   `json:"pairs"` // by the majority of a pair's judges, which are not independent
}

// Position says whether judges went by the place of an answer.
type Position struct {
	Preferred  Share   `json:"preferred_a"`
	Named      Share   `json:"named_a"` // as the one with less context
	Difference float64 `json:"score_a_minus_b"`
	Biased     bool    `json:"biased"` // one of both shares is not chance
}

// judged fills in what the pairs say.
func (q *Quality) judged(res *QualityResult, pairs []compared) {
	res.Answers = map[string]Oddities{}
	for i, name := range [2]string{condFull, condManaged} {
		var o Oddities
		for _, p := range pairs {
			a := p.answers[i]
			o.Empty += tally(a.Text == "")
			o.Called += tally(a.Calls > 0)
			o.Cut += tally(a.Stop == "max_tokens")
			res.Tokens[i] += float64([2]tidemark.Tokens{p.Full, p.Managed}[i]) / float64(len(pairs))
		}
		res.Answers[name] = o
	}
	sessions := map[string]bool{}
	for _, p := range pairs {
		sessions[p.unit()] = true
		for _, v := range p.votes {
			res.Verdicts += tally(v.why == "")
			res.Invalid += tally(v.why != "")
		}
	}
	res.Pairs, res.Sessions = len(pairs), len(sessions)
	if res.Verdicts == 0 {
		if res.Conclusion = TooFew; res.Invalid > 0 {
			res.Conclusion = NoVerdict
		}
		return
	}
	res.Preference, res.Detection = preferences(pairs), detections(pairs)
	res.Position = positions(pairs)
	for i := range len(criteria) + 1 {
		var c Criterion
		c, res.Judged = q.criterion(pairs, i)
		res.Scores = append(res.Scores, c)
	}
	res.Conclusion = concluded(res.Scores[len(criteria)], res.Judged)
}

func tally(is bool) int {
	if is {
		return 1
	}
	return 0
}

// valid yields the votes that count.
func (c compared) valid() []vote {
	return slices.DeleteFunc(slices.Clone(c.votes), func(v vote) bool { return v.why != "" })
}

func preferences(pairs []compared) *Preference {
	p := &Preference{}
	for _, pair := range pairs {
		pro, contra := 0, 0
		for _, v := range pair.valid() {
			switch v.side(v.better) {
			case condManaged:
				pro++
			case condFull:
				contra++
			default:
				p.Ties++
			}
		}
		p.Managed += pro
		p.Full += contra
		p.Pairs.Hits += tally(pro > contra)
		p.Pairs.Of += tally(pro != contra)
	}
	p.P = binomialTest(p.Managed, p.Managed+p.Full)
	p.Pairs = shareOf(p.Pairs.Hits, p.Pairs.Of)
	return p
}

func detections(pairs []compared) *Detection {
	d := &Detection{}
	for _, pair := range pairs {
		right, wrong := 0, 0
		for _, v := range pair.valid() {
			switch v.side(v.less) {
			case condManaged:
				right++
			case condFull:
				wrong++
			default:
				d.Unsure++
			}
		}
		d.Right += right
		d.Named += right + wrong
		d.Pairs.Hits += tally(right > wrong)
		d.Pairs.Of += tally(right != wrong)
	}
	d.P = binomialTest(d.Right, d.Named)
	d.Pairs = shareOf(d.Pairs.Hits, d.Pairs.Of)
	return d
}

func positions(pairs []compared) *Position {
	var better, less Share
	points, n := 0.0, 0
	for _, pair := range pairs {
		for _, v := range pair.valid() {
			better.Hits += tally(v.better == sideA)
			better.Of += tally(v.better != "")
			less.Hits += tally(v.less == sideA)
			less.Of += tally(v.less != "")
			for i := range v.a {
				points += float64(v.a[i] - v.b[i])
				n++
			}
		}
	}
	p := &Position{Preferred: shareOf(better.Hits, better.Of), Named: shareOf(less.Hits, less.Of)}
	if n > 0 {
		p.Difference = points / float64(n)
	}
	p.Biased = p.Preferred.P < significant || p.Named.P < significant
	return p
}

// criterion compares the scores of one criterion, or of all behind the last. units are the sessions that
// have a verdict.
func (q *Quality) criterion(pairs []compared, i int) (c Criterion, units int) {
	of := func(s scores) float64 {
		if i < len(criteria) {
			return float64(s[i])
		}
		sum := 0
		for _, v := range s {
			sum += v
		}
		return float64(sum) / float64(len(s))
	}
	c.Name = "overall"
	if i < len(criteria) {
		c.Name = criteria[i]
	}
	var order []string
	diffs := map[string][]float64{} // of pairs, by session
	n := 0.0
	for _, p := range pairs {
		votes := p.valid()
		if len(votes) == 0 {
			continue
		}
		d := 0.0
		for _, v := range votes {
			full, managed := v.points()
			c.Full += of(full)
			c.Managed += of(managed)
			d += (of(managed) - of(full)) / float64(len(votes))
			n++
		}
		name := p.unit()
		if diffs[name] == nil {
			order = append(order, name)
		}
		diffs[name] = append(diffs[name], d)
	}
	c.Full /= max(n, 1)
	c.Managed /= max(n, 1)
	means := make([]float64, len(order))
	for k, name := range order {
		means[k], _ = spread(diffs[name])
	}
	return q.tested(c, means), len(means)
}

// tested fills in the tests over the differences of sessions.
func (q *Quality) tested(c Criterion, means []float64) Criterion {
	c.Difference, _ = spread(means)
	below, above, low, high := twoTests(means, q.Margin, significant)
	c.NotWorse, c.Equivalent = below, max(below, above)
	bound := float64(4) // a score cannot differ by more: JSON has no infinity
	c.CI90 = [2]float64{max(low, -bound), min(high, bound)}
	return c
}

// concluded reads the tests of the overall score.
func concluded(c Criterion, sessions int) string {
	switch {
	case sessions < MinSessions:
		return TooFew
	case c.Equivalent < significant:
		return Equivalent
	case c.NotWorse < significant:
		return NotInferior
	case c.CI90[1] < 0: // a one-sided t-test at the same level
		return Worse
	}
	return Undecided
}
