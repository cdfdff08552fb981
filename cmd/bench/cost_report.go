package main

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/cost"
	costlogs "github.com/tidemark-ai/tidemark/cost/logs"
)

// pageStyle is of the page around the chart.
const pageStyle = `:root{color-scheme:light dark}body{font:14px/1.45 system-ui,sans-serif;margin:1.5rem;background:light-dark(#fff,#14181f);color:light-dark(#1c2430,#e6e9ee)}
svg{inline-size:100%;block-size:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin-block-start:1rem}div{overflow-x:auto}
table{font-size:12px}th{font-size:10px}th,td{padding:.15rem .3rem;text-align:end;white-space:nowrap;border-block-end:1px solid light-dark(#d5dae1,#38404c)}th{font-weight:600}td:last-child,th:last-child{text-align:start;white-space:normal;min-inline-size:7rem}`

// reportStyle is what reports have beyond pageStyle.
const reportStyle = `main{max-inline-size:1088px;margin-inline:auto}h1{font-size:1.5rem;margin-block:0 .25rem}h2{font-size:1.15rem;margin-block:2.2rem .4rem}p{max-inline-size:75ch}
.dim{color:light-dark(#5b6675,#98a2b0)}figure{margin:1.2rem 0;overflow-x:auto}figure svg{min-inline-size:640px;border-radius:6px}
dl{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.2rem,1fr));gap:.6rem;margin:1rem 0}dl div{border:1px solid light-dark(#d5dae1,#38404c);border-radius:6px;padding:.5rem .7rem;overflow:visible}dt{font-size:12px;color:light-dark(#5b6675,#98a2b0)}dd{margin:0;font-size:1.25rem;font-variant-numeric:tabular-nums}
table{font-size:13px;inline-size:100%}th{font-size:12px}caption{text-align:start;font-weight:600;padding-block:.3rem}td,th{padding:.2rem .6rem}td:first-child,th:first-child{text-align:start;white-space:normal;overflow-wrap:break-word;min-inline-size:6.5rem}td:last-child,th:last-child{text-align:end;min-inline-size:0;white-space:nowrap}`

// report is a page in work. It needs no script, and nothing from elsewhere.
type report struct {
	b   strings.Builder
	err error
}

func newReport(title, under string) *report {
	r := &report{}
	fmt.Fprintf(&r.b, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>%s</title><style>%s\n%s</style></head><body><main>\n<h1>%s</h1><p class=\"dim\">%s</p>\n",
		html.EscapeString(title), pageStyle, reportStyle, html.EscapeString(title), html.EscapeString(under))
	return r
}

func (r *report) heading(text, under string) {
	fmt.Fprintf(&r.b, "<h2>%s</h2>\n", html.EscapeString(text))
	if under != "" {
		fmt.Fprintf(&r.b, "<p class=\"dim\">%s</p>\n", html.EscapeString(under))
	}
}

// cards are figures in large print: pairs of name and value.
func (r *report) cards(of [][2]string) {
	r.b.WriteString("<dl>")
	for _, c := range of {
		fmt.Fprintf(&r.b, "<div><dt>%s</dt><dd>%s</dd></div>", html.EscapeString(c[0]), html.EscapeString(c[1]))
	}
	r.b.WriteString("</dl>\n")
}

// table writes rows, the first of which is the head.
func (r *report) table(title string, rows [][]string) {
	fmt.Fprintf(&r.b, "<div><table><caption>%s</caption>\n", html.EscapeString(title))
	for i, row := range rows {
		r.b.WriteString("<tr>")
		for j, text := range row {
			switch {
			case i == 0:
				fmt.Fprintf(&r.b, "<th scope=\"col\">%s</th>", html.EscapeString(text))
			case j == 0:
				fmt.Fprintf(&r.b, "<th scope=\"row\">%s</th>", html.EscapeString(text))
			default:
				fmt.Fprintf(&r.b, "<td>%s</td>", html.EscapeString(text))
			}
		}
		r.b.WriteString("</tr>\n")
	}
	r.b.WriteString("</table></div>\n")
}

// figure draws one.
func (r *report) figure(draw func(io.Writer) error) {
	r.b.WriteString("<figure>")
	if err := draw(&r.b); err != nil {
		r.err = cmp.Or(r.err, err)
	}
	r.b.WriteString("</figure>\n")
}

func (r *report) end(w io.Writer) error {
	if r.err != nil {
		return r.err
	}
	r.b.WriteString("</main></body></html>\n")
	_, err := io.WriteString(w, r.b.String())
	return err
}

// priced says by which prices a report reckons.
func priced(p cost.Price, hitRate float64, date, source string) string {
	return fmt.Sprintf("%s: $%g input, $%g cache write (%s to the cache that lives an hour, for sessions that write to it), $%g cache read for a million tokens, as of %s (%s). Hit rate of the paper's model: %g.",
		cmp.Or(p.Name, p.Model), p.Input, p.CacheWrite, cli.PerMillion(p.HourWrite()), p.CacheRead, date, source, hitRate)
}

// reckoning is a study by one of the two models.
type reckoning struct {
	name   string
	tables costlogs.Tables
	trim   func(*costlogs.Session) cost.Trim
	costs  func(*costlogs.Session) costs
}

// reckonings are the two: as the paper reckons, and by what is known of the sessions.
func reckonings(f costlogs.Findings) [2]reckoning {
	m := cost.Model{Price: f.Model, HitRate: f.HitRate}
	return [2]reckoning{
		{"as the paper reckons", f.Paper, func(s *costlogs.Session) cost.Trim { return s.Paper }, func(s *costlogs.Session) costs { return paperCosts(s, m) }},
		{"by what is known of the sessions, with a warm cache", f.Live, func(s *costlogs.Session) cost.Trim { return s.Live.Working().Trim }, liveCosts},
	}
}

// pageStudy writes the report of a folder.
func pageStudy(w io.Writer, f costlogs.Findings) error {
	r := newReport("What trimming costs and saves", priced(f.Model, f.HitRate, f.Date, f.Source))
	s := f.Skipped
	r.cards([][2]string{{"sessions that qualify", fmt.Sprint(len(f.Sessions))}, {"of subagents, left out", fmt.Sprint(s.Subagents)},
		{fmt.Sprintf("under %d messages", costlogs.MinMessages), fmt.Sprint(s.Messages)}, {fmt.Sprintf("under %d tokens", costlogs.MinTokens), fmt.Sprint(s.Tokens)}, {"not to be measured", fmt.Sprint(s.Failed)}})
	if len(f.Sessions) == 0 {
		r.heading("No session qualifies", fmt.Sprintf("It takes logs of %d messages and %d tokens that are no subagent's.", costlogs.MinMessages, costlogs.MinTokens))
		return r.end(w)
	}
	r.heading("As the paper reckons", "Tokens by what the last call reported and a quarter of the characters since; the reduction by bytes of the live part of the log; a trim loses the whole cache. Break-evens behind turn 60 count as 60.")
	both := reckonings(f)
	r.study(f, both[0])
	r.figure(func(w io.Writer) error { return drawComposition(w, f.Sessions) })
	r.heading("By what is known of the sessions", "Tokens that really go, images by their pixels; what stands before the first change stays in the cache; "+rateOf(f)+"; a write has the price of the cache that each writes to.")
	r.study(f, both[1])
	if all := compactionsOf(f.Sessions); len(all) > 0 {
		r.heading("Native compactions", "What the tool's own compaction left of the messages.")
		r.figure(func(w io.Writer) error { return drawCompactions(w, all) })
	}
	r.heading("Sessions", "")
	r.table("By path; PAPER and LIVE as above", sessionRows(f.Sessions))
	return r.end(w)
}

// rateOf says at which hit rate the live model reckons.
func rateOf(f costlogs.Findings) string {
	if f.Given {
		return fmt.Sprintf("the hit rate is %g, as it was given", f.HitRate)
	}
	return "the hit rate is each session's own"
}

// study writes tables and figures by one of the models.
func (r *report) study(f costlogs.Findings, by reckoning) {
	for _, one := range studyTables(by) {
		r.table(one.title, one.rows)
	}
	r.figure(func(w io.Writer) error { return drawReductions(w, f.Sessions, by) })
	r.figure(func(w io.Writer) error { return drawBreakEvens(w, f.Sessions, by) })
	all := make([]costs, 0, len(f.Sessions))
	for i := range f.Sessions {
		all = append(all, by.costs(&f.Sessions[i]))
	}
	r.figure(func(w io.Writer) error {
		return drawCosts(w, all, shown(all), "Figure 4: input cost so far, with and without a trim"+firstOf(len(all), maxCurves))
	})
}

// compactionsOf are those of all sessions.
func compactionsOf(sessions []costlogs.Session) (all []costlogs.Compaction) {
	for i := range sessions {
		all = append(all, sessions[i].Compactions...)
	}
	return all
}

// sessionRows lists sessions with what both models say.
func sessionRows(sessions []costlogs.Session) [][]string {
	const most = 2000
	rows := [][]string{{"LOG", "PROFILE", "LINES", "PAPER BEFORE", "LESS", "BREAK-EVEN", "LIVE BEFORE", "LESS", "BREAK-EVEN", "BUILT FOR"}}
	for i := range sessions[:min(len(sessions), most)] {
		s := &sessions[i]
		p, l := s.Paper, s.Live.Working()
		rows = append(rows, []string{cli.Safe(s.Path), string(s.Profile), fmt.Sprint(s.AllMessages.Messages()), cli.Count(p.Pre), cli.InPercent(p.Reduction / 100), p.BreakEven.String(),
			cli.Count(l.Pre), cli.InPercent(l.Reduction / 100), l.BreakEven.String(), cli.Dollars(s.Built.Dollars)})
	}
	if more := len(sessions) - most; more > 0 {
		rows = append(rows, []string{fmt.Sprintf("and %d more; --json has all", more)})
	}
	return rows
}

// pageLog writes the report of one log.
func pageLog(w io.Writer, s costlogs.Session, o costlogs.Options) error {
	l, warm := s.Live, s.Live.Working()
	r := newReport("What trimming costs and saves: "+cli.OneLine(s.String(), 80), priced(o.Model.Price, o.Model.HitRate, o.Prices.Date, o.Prices.Source))
	r.cards([][2]string{{"context before", cli.Count(l.Pre)}, {"after", cli.Count(l.Post)}, {"less", cli.InPercent(l.Reduction / 100)}, {"penalty, once", cli.Dollars(l.Penalty)},
		{"savings a turn", cli.Dollars(l.Savings)}, {"break-even", cli.TurnsOf(l.BreakEven)}, {"verdict", string(s.Verdict.Live)}})
	hit, write := cli.HitRateOf(l), cli.Writing(l.Write, time.Duration(l.TTL)*time.Second)
	r.table("Both models", [][]string{
		{"", "Paper", "Live, cache warm", "Live, now"},
		{"tokens before", cli.Count(s.Paper.Pre), cli.Count(warm.Pre), cli.Count(l.Pre)},
		{"tokens after", cli.Count(s.Paper.Post), cli.Count(warm.Post), cli.Count(l.Post)},
		{"read from the cache", cli.InPercent(s.HitRate), hit, hit},
		{"cache write, a million", cli.Writing(o.Model.Price.CacheWrite, cost.ShortTTL), write, write},
		{"penalty, once", cli.Dollars(s.Paper.Penalty), cli.Dollars(warm.Penalty), cli.Dollars(l.Penalty)},
		{"savings a turn", cli.Dollars(s.Paper.Savings), cli.Dollars(warm.Savings), cli.Dollars(l.Savings)},
		{"break-even", cli.TurnsOf(s.Paper.BreakEven), cli.TurnsOf(warm.BreakEven), cli.TurnsOf(l.BreakEven)},
		{"a branch: to begin", "", cli.Dollars(s.Branch.First), cli.Dollars(s.Branch.Trimmed.First) + " trimmed"},
		{"a branch: a turn", "", cli.Dollars(s.Branch.Later), cli.Dollars(s.Branch.Trimmed.Later) + " trimmed"},
		{"built for", "", cli.Dollars(s.Branch.Rebuild), fmt.Sprintf("%d calls", s.Built.Calls)},
	})
	r.figure(func(w io.Writer) error { return drawBeforeAfter(w, s) })
	for _, k := range []struct {
		name string
		of   costs
	}{{"by the paper's model", paperCosts(&s, o.Model)}, {"by what is known of the session, with a warm cache", liveCosts(&s)}} {
		r.figure(func(w io.Writer) error {
			return drawCosts(w, []costs{k.of}, 0, "Input cost so far, with and without a trim, "+k.name)
		})
	}
	if len(s.Compactions) > 0 {
		r.figure(func(w io.Writer) error { return drawCompactions(w, s.Compactions) })
	}
	return r.end(w)
}
