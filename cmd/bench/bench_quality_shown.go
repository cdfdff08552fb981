package main

import (
	"fmt"
	"strconv"

	"github.com/tidemark-ai/tidemark/bench"
	"github.com/tidemark-ai/tidemark/cmd/cli"
)

// printQuality prints what a check found, the conclusion first. What was not measured is a "-".
func printQuality(m *cli.Main, r bench.QualityResult) {
	m.Out.Printf("%s: %s (%s)\n\n", r.Strategy, shownConclusion(r), cli.Plural(r.Sessions, "session"))
	if r.Conclusion == bench.NoVerdict {
		m.Out.Printf("What the judges replied is no verdict. One that thinks before it speaks, or writes much, needs a higher --judge-tokens;\n")
		m.Out.Printf("of one that ignores the form name another with --judge.\n\n")
	}
	cli.PrintTable(m.Out, shownScores(r))
	m.Out.Line("")
	printVerdicts(m, r)
	if r.Pairs > 0 {
		m.Out.Printf("context: %.0f tokens full, %.0f managed, %s less\n", r.Tokens[0], r.Tokens[1], sharePercent(1-r.Tokens[1]/max(r.Tokens[0], 1)))
	}
	for _, name := range [...]string{"full", "managed"} {
		if o := r.Answers[name]; o != (bench.Oddities{}) {
			m.Out.Printf("answers, %s: %d empty, %d with calls of tools, %d cut off\n", name, o.Empty, o.Called, o.Cut)
		}
	}
	m.Out.Printf("%s compared, %d failed; %s could not be read; %s made, %d taken from before; %d tokens in, %d out\n", cli.Plural(r.Pairs, "pair"), len(r.Failed), cli.Plural(r.Invalid, "verdict"),
		cli.Plural(r.Calls, "call"), r.Reused, r.Usage.Input+r.Usage.CacheRead+r.Usage.CacheCreation, r.Usage.Output)
	for _, f := range r.Failed {
		m.Out.Printf("failed: %s request %d: %s\n", cli.Safe(cli.OneLine(f.Session, 80)), f.Request, cli.Safe(cli.OneLine(f.Error, 300)))
	}
}

func shownP(f float64) string { return "p " + strconv.FormatFloat(f, 'g', 2, 64) }

// shownScores is the table of scores, one row of nothing where none were given.
func shownScores(r bench.QualityResult) [][]string {
	two := func(f float64) string { return strconv.FormatFloat(f, 'f', 2, 64) }
	between := func(ci [2]float64) string { return fmt.Sprintf("%+.2f to %+.2f", ci[0], ci[1]) }
	rows := [][]string{{"SCORE", "FULL", "MANAGED", "DIFFERENCE", "90 %", "EQUIVALENT", "NOT WORSE"}}
	for _, c := range r.Scores {
		rows = append(rows, []string{c.Name, two(c.Full), two(c.Managed), fmt.Sprintf("%+.2f", c.Difference), between(c.CI90), shownP(c.Equivalent), shownP(c.NotWorse)})
	}
	if len(r.Scores) == 0 {
		rows = append(rows, []string{"overall", "-", "-", "-", "-", "-", "-"})
	}
	return rows
}

// printVerdicts prints what verdicts say beside their scores.
func printVerdicts(m *cli.Main, r bench.QualityResult) {
	v, d, at := r.Preference, r.Detection, r.Position
	if v == nil || d == nil || at == nil {
		m.Out.Printf("preferred: -\ndetected: -\nposition: -\n")
		return
	}
	m.Out.Printf("preferred: full %d, managed %d, ties %d of %s, %s; by pairs managed %d of %d, %s\n", v.Full, v.Managed, v.Ties, cli.Plural(r.Verdicts, "verdict"), shownP(v.P),
		v.Pairs.Hits, v.Pairs.Of, shownP(v.Pairs.P))
	m.Out.Printf("detected: %d of %d that named one, unsure %d, %s; by pairs %d of %d, %s\n", d.Right, d.Named, d.Unsure,
		shownP(d.P), d.Pairs.Hits, d.Pairs.Of, shownP(d.Pairs.P))
	m.Out.Printf("position: A preferred %d of %d, %s; A named %d of %d, %s; A scores %+.2f over B\n", at.Preferred.Hits, at.Preferred.Of, shownP(at.Preferred.P),
		at.Named.Hits, at.Named.Of, shownP(at.Named.P), at.Difference)
	if at.Biased {
		m.Out.Line("  the judges go by the place of an answer: what they say of its quality is weak")
	}
}

// shownConclusion says what the conclusion rests on.
func shownConclusion(r bench.QualityResult) string {
	switch r.Conclusion {
	case bench.Equivalent:
		return fmt.Sprintf("EQUIVALENT within %g points", r.Margin)
	case bench.NotInferior:
		return fmt.Sprintf("NOT INFERIOR by %g points", r.Margin)
	case bench.Worse:
		return "WORSE"
	case bench.NoVerdict:
		return fmt.Sprintf("NO CONCLUSION, no verdict could be read (%d of %d)", r.Invalid, r.Invalid)
	case bench.TooFew:
		if r.Judged < r.Sessions {
			return fmt.Sprintf("NO CONCLUSION, fewer than %d sessions have a verdict that could be read, %d of %d", bench.MinSessions, r.Judged, r.Sessions)
		}
		return fmt.Sprintf("NO CONCLUSION, fewer than %d sessions", bench.MinSessions)
	}
	return fmt.Sprintf("UNDECIDED, neither equivalent within %g points nor worse", r.Margin)
}

func sharePercent(share float64) string { return strconv.FormatFloat(100*share, 'f', 0, 64) + " %" }
