package logs

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cost"
)

// What qualifies for the tables (papers/cmv §4.2).
const (
	MinMessages                 = 10
	MinTokens   tidemark.Tokens = 5_000
	// MixedPercent is the share of tool results in the bytes from which a session counts as mixed.
	MixedPercent = 15
	maxFailures  = 100 // that are told one by one
)

// Profile is what a session consists of mostly.
type Profile string

// The profiles of papers/cmv §4.2.
const (
	Mixed          Profile = "mixed"
	Conversational Profile = "conversational"
)

// Session is one of a study.
type Session struct {
	Path        string  `json:"path"`
	Profile     Profile `json:"profile"`
	ToolPercent float64 `json:"tool_result_percent"` // of the live bytes
	Report
}

// Skipped counts the logs that do not qualify, by the first reason.
type Skipped struct {
	Subagents int       `json:"subagents"` // below a folder of subagents, or nothing but side chains
	Messages  int       `json:"messages"`  // fewer than MinMessages
	Tokens    int       `json:"tokens"`    // less than MinTokens
	Failed    int       `json:"failed"`
	Failures  []Failure `json:"failures,omitempty"` // the first of them
}

// Failure is a log that could not be measured.
type Failure struct {
	Path  string `json:"path"`
	Error string `json:"error"`
}

// Study measures many logs as papers/cmv §4 does.
type Study struct {
	o        Options
	sessions []Session
	skipped  Skipped
}

// NewStudy begins a study.
func NewStudy(o Options) *Study { return &Study{o: o} }

// Add measures one more log. One that cannot be read or trimmed is counted, not an error: the error is of the context
// alone.
func (s *Study) Add(ctx context.Context, path string, in io.ReaderAt, size int64) error {
	if slices.ContainsFunc(strings.Split(filepath.ToSlash(path), "/"), func(part string) bool { return strings.Contains(part, "subagents") }) {
		s.skipped.Subagents++
		return nil
	}
	r, err := Measure(ctx, in, size, s.o)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		s.Fail(path, err)
		return nil
	}
	switch {
	case r.AllMessages.Messages() == 0 && r.side > 0:
		s.skipped.Subagents++
	case r.AllMessages.Messages() < MinMessages:
		s.skipped.Messages++
	case r.Paper.Pre < MinTokens:
		s.skipped.Tokens++
	default:
		one := Session{Path: path, Profile: Conversational, Report: r}
		if r.LiveBytes > 0 {
			one.ToolPercent = 100 * float64(r.Composition.ToolResults.Bytes) / float64(r.LiveBytes)
		}
		if one.ToolPercent >= MixedPercent {
			one.Profile = Mixed
		}
		s.sessions = append(s.sessions, one)
	}
	return nil
}

// Fail counts a log that could not be opened or measured.
func (s *Study) Fail(path string, err error) {
	if s.skipped.Failed++; len(s.skipped.Failures) < maxFailures {
		s.skipped.Failures = append(s.skipped.Failures, Failure{path, err.Error()})
	}
}

// Spread is how a figure is spread over the sessions.
type Spread struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Mean   float64 `json:"mean"`
	Max    float64 `json:"max"`
}

// spread works it out; of nothing it is zeros.
func spread(of []float64) Spread {
	if len(of) == 0 {
		return Spread{}
	}
	of = slices.Sorted(slices.Values(of))
	n, sum := len(of), 0.0
	for _, v := range of {
		sum += v
	}
	return Spread{of[0], (of[(n-1)/2] + of[n/2]) / 2, sum / float64(n), of[n-1]}
}

// Row is one of Table 3.
type Row struct {
	Profile   string  `json:"profile"` // "all" is the last
	Sessions  int     `json:"sessions"`
	Reduction Spread  `json:"reduction"` // percent
	BreakEven Spread  `json:"break_even"`
	Context   float64 `json:"mean_context"` // tokens before the trim
}

// Tables are Tables 2 and 3 of papers/cmv §4.3. Break-evens are capped at cost.TableCap.
type Tables struct {
	Reduction Spread `json:"reduction"`
	Penalty   Spread `json:"penalty"`
	BreakEven Spread `json:"break_even"`
	Profiles  []Row  `json:"profiles"`
}

// Findings are what a study found.
type Findings struct {
	Model    cost.Price `json:"model"`
	HitRate  float64    `json:"hit_rate"`
	Given    bool       `json:"hit_rate_given,omitempty"` // for the live model too
	Date     string     `json:"prices_date"`
	Source   string     `json:"prices_source"`
	Sessions []Session  `json:"sessions"`
	Skipped  Skipped    `json:"skipped"`
	Paper    Tables     `json:"paper"` // by the model and the estimator of the paper
	Live     Tables     `json:"live"`  // by what is known of each session, its cache warm
}

// Findings gives what was found so far. The sessions are in the order of their paths.
func (s *Study) Findings() Findings {
	f := Findings{Model: s.o.Model.Price, HitRate: s.o.Model.HitRate, Given: s.o.Given, Date: s.o.Prices.Date, Source: s.o.Prices.Source,
		Sessions: slices.Clone(s.sessions), Skipped: s.skipped}
	slices.SortStableFunc(f.Sessions, func(a, b Session) int { return strings.Compare(a.Path, b.Path) })
	if f.Sessions == nil {
		f.Sessions = []Session{}
	}
	f.Paper = tables(f.Sessions, func(s *Session) cost.Trim { return s.Paper })
	f.Live = tables(f.Sessions, func(s *Session) cost.Trim { return s.Live.Working().Trim })
	return f
}

// tables works the tables out, of the trims of one of the models.
func tables(sessions []Session, of func(*Session) cost.Trim) Tables {
	row := func(name string, is func(Profile) bool) (Row, Spread) {
		var reductions, turns, penalties []float64
		r, context := Row{Profile: name}, 0.0
		for i := range sessions {
			if !is(sessions[i].Profile) {
				continue
			}
			t := of(&sessions[i])
			reductions, turns, penalties = append(reductions, t.Reduction), append(turns, float64(t.BreakEven.Capped())), append(penalties, t.Penalty)
			context += float64(t.Pre)
			r.Sessions++
		}
		r.Reduction, r.BreakEven, r.Context = spread(reductions), spread(turns), context/float64(max(r.Sessions, 1))
		return r, spread(penalties)
	}
	mixed, _ := row(string(Mixed), func(p Profile) bool { return p == Mixed })
	talk, _ := row(string(Conversational), func(p Profile) bool { return p == Conversational })
	all, penalty := row("all", func(Profile) bool { return true })
	return Tables{all.Reduction, penalty, all.BreakEven, []Row{mixed, talk, all}}
}

// Working is the trim in the middle of the session, its cache warm.
func (l Live) Working() cost.LiveTrim {
	if l.Warm != nil {
		return *l.Warm
	}
	return l.LiveTrim
}

// String names the session for people: its title, else its id, else its file.
func (s *Session) String() string {
	for _, name := range []string{s.Title, s.Report.Session} {
		if name != "" {
			return name
		}
	}
	return fmt.Sprint(strings.TrimSuffix(filepath.Base(s.Path), ".jsonl"))
}
