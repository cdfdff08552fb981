package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/transcript"
)

// replay is the command of that name.
type replay struct {
	policies        []string
	profiles        []string
	requests, bytes int
	tau, min        int
	window          int64                  // tokens, 0 for none
	zones           []int                  // percent of it
	given           func(flag string) bool // on the command line
	decisions       string
	bySession       bool
	rows            []sessionTotals // if so
	unlisted        int             // sessions beyond the bound of rows
	plot            string
	drawn           *plot
	tools           string
	maxLine         int64
	chain           transcript.Chain // of a log
	damaged         int              // lines of a log that could not be read
	runs            []*paging.Replay
	small           []float64 // what each policy cost over the sessions whose least cost is known
	scanner         paging.Scanner
	names           map[string]string // of sessions, by the file of their log
	out             *bufio.Writer
	started         time.Time
}

// replayTotals are what a replay prints of one policy.
type replayTotals struct {
	paging.Totals
	Above   *float64 `json:"above_least,omitempty"` // the least cost, of the sessions where cost-optimal knows it
	Seconds float64  `json:"seconds"`
}

const replayHelp = `Replay recorded sessions under a policy of paging and say what would have left the
context, which of it was read again (faults), and what the requests would have cost.
Nothing is sent, nothing is stored: the decisions are those of a live session.

A FILE holds one session a line:
  {"session","model","system","tools":[...],SETTINGS,"steps":[STEP,...]}
  STEP: {"keep"?:n,"stay"?:true,"release"?:[NAME],"anchor"?:[NAME],"append":[messages],"ids"?:[HANDLE],"usage"?:{...}}
Request k is all that steps 0 to k appended; keep first cuts the history to n messages.
With stay what was out of the part that stays is out again; release and anchor let go and
keep what handles or paths name; ids are the handles of the messages.
SETTINGS are those that decided a session live, as ` + "`tidemark export --format steps`" + ` writes
them of a proxied conversation; a flag that is given counts before them:
  "window"?:tokens,"policy"?,"tau"?:n,"minBytes"?:n,"zones"?:[n,n,n],"whole"?:true
A log of Claude Code (.jsonl) is taken, too: each reply was a request, and the session is
named as the file, with as many folders before it as tell two of one name apart. Of a
FOLDER all .jsonl below it count, - is standard input.

--decisions writes a line for each session:
  {"session","requests":[{"n","evict","gc","stub","fault":[{"id","of","path"}],"pin","unpin","bytes":[in,out]}]}
evict and gc name the results that leave with a request, stub all that are out in it.
The file is written when all sessions are done; after a failure it is as it was before.

--by-session tells of each session what the totals say of all, and the tokens of a call:
the mean, and the LAST, as recorded and AFTER. They are what the provider reported of
the request (of REPORTED many; of others an estimate), less the estimate of what is out.

--plot draws one session as its requests, with faults and the cost so far; several as a
group of columns each: its cost by that with nothing replaced, and its faults.

Cost counts bytes of requests: those of the prefix that is as in the request before at 0.1,
the others at 1.25, as prompt caches are priced. RATIO is the cost by that of the same
requests with nothing replaced. Several policies are compared, each over all files.
TAU is the highest age that was asked for: the policy cost raises it when much of what
leaves is read again.

The policies cost-optimal and min know the session before they decide: bounds to compare
with. cost-optimal is the least cost that age and size permit, exact for sessions of up
to 12 results that may leave, for others a cost that none is below; ABOVE is how far each
policy is from it, over the sessions where it is exact. min lets those leave whose next
use is farthest.

--window tells how many tokens the model takes. Then nothing leaves while less than 30 % of
it is used (zone normal), the policy acts as it does up to 50 % (advisory), at once from
there where that frees enough (involuntary), and from 60 % with half the age (aggressive);
--zones sets the three, --window 0 has none. The size is the reported usage of the request before and an estimate
of what came since. Totals and decisions say which zone the requests found.

--tools names a file with further tools, or other rows for known ones:
  {"NAME":{"kind":"reads"|"changes"|"looks","path":["FIELD"],"verb":"FIELD","views":["WORD"],"patch":"FIELD"}}

--profile makes sessions instead of reading them: steady, edit, workingset, scan,
rescan, partial, errors, parallel, chat, or all. They do not react to what leaves
the context, so their faults are not those of a live session.`

func (m *Main) replayCommand() *cobra.Command {
	r := &replay{policies: paging.Policies()[:1], tau: paging.DefaultTau, min: paging.DefaultMinBytes, maxLine: 256 << 20, requests: 80, bytes: 6000}
	c := &cobra.Command{Use: "replay FILE|FOLDER|-...", Short: "Replay recorded sessions under a paging policy, offline", Args: cobra.ArbitraryArgs,
		Long: replayHelp,
		Example: `  tidemark replay sessions.jsonl --policy fifo --tau 4 --min-bytes 500 --decisions out.jsonl --json
  tidemark replay ~/.claude/projects/x/1f2e.jsonl
  tidemark replay --profile all --policy cost,fifo,batch --plot policies.svg
  tidemark replay ~/.claude/projects/x --policy cost,fifo --by-session
  tidemark replay sessions.jsonl --window 200000 --zones 30,50,60
  tidemark replay --profile all --requests 13 --policy cost,cost-optimal`,
		RunE: func(cmd *cobra.Command, args []string) error {
			r.given = cmd.Flags().Changed
			return m.runReplay(cmd.Context(), r, args)
		}}
	f := c.Flags()
	f.StringSliceVar(&r.policies, "policy", r.policies, "policies to compare: "+fmt.Sprint(policies()))
	f.IntVar(&r.tau, "tau", r.tau, "age from which a result may leave, in messages of role user")
	f.IntVar(&r.min, "min-bytes", r.min, "size from which a result may leave")
	f.StringVar(&r.decisions, "decisions", "", "write the decisions to this file, a line for each session")
	f.BoolVar(&r.bySession, "by-session", false, "tell of each session, and the tokens of a call before and after")
	f.StringVar(&r.plot, "plot", "", "draw the policies beside each other (SVG) into this file")
	f.StringVar(&r.tools, "tools", "", "take further tools from this file")
	f.StringSliceVar(&r.profiles, "profile", nil, "kinds of sessions to make and replay, or all")
	f.IntVar(&r.requests, "requests", r.requests, "requests of a session that --profile makes")
	f.IntVar(&r.bytes, "bytes", r.bytes, "bytes of its results, about")
	f.Int64Var(&r.maxLine, "max-line", r.maxLine, "bytes of the longest line that is read")
	r.zoneFlags(f)
	return m.jsonFlag(c)
}

// policies are the names that --policy takes.
func policies() []string { return append(paging.Policies(), paging.Bounds()...) }

func (r *replay) check() error {
	switch {
	case r.tau < 0:
		return usagef("--tau %d: want 0 or more messages", r.tau)
	case r.min < 0:
		return usagef("--min-bytes %d: want 0 or more bytes", r.min)
	case r.maxLine < 1:
		return usagef("--max-line %d: want a number of bytes, such as 268435456", r.maxLine)
	case r.requests < 1 || r.requests > 100_000:
		return usagef("--requests %d: want 1 to 100000", r.requests)
	case r.bytes < 100 || r.bytes > 1<<20:
		return usagef("--bytes %d: want 100 to 1048576", r.bytes)
	case len(r.policies) == 0:
		return usagef("--policy: want one of %v", policies())
	case r.decisions != "" && len(r.policies) > 1:
		return usagef("--decisions holds those of one policy: give --policy one name")
	}
	if slices.Contains(r.profiles, "all") {
		r.profiles = paging.Profiles()
	}
	for _, name := range r.profiles {
		if !slices.Contains(paging.Profiles(), name) {
			return usagef("--profile %s: want some of %v, or all", name, paging.Profiles())
		}
	}
	for i, name := range r.policies {
		if !slices.Contains(policies(), name) {
			return usagef("--policy %s: want one of %v", name, policies())
		}
		if slices.Contains(r.policies[:i], name) {
			return usagef("--policy: %s is named twice", name)
		}
	}
	return r.checkZones()
}

func (m *Main) runReplay(ctx context.Context, r *replay, files []string) (err error) {
	if err := r.check(); err != nil {
		return err
	}
	if files, err = recordings(files); err != nil {
		return err
	}
	if err := cmp.Or(spare("--plot", r.plot, append(files, r.tools)), spare("--decisions", r.decisions, append(files, r.tools, r.plot))); err != nil {
		return err
	}
	if len(files) == 0 && len(r.profiles) == 0 {
		return usagef("tidemark replay: want FILE..., or --profile with a kind of session to make")
	}
	r.started = time.Now()
	if r.scanner.Tools, err = readTools(r.tools); err != nil {
		return err
	}
	none := func(n int) int { // 0 is a value here
		if n == 0 {
			return -1
		}
		return n
	}
	for _, name := range r.policies {
		o := paging.Options{Policy: name, Tau: none(r.tau), MinBytes: none(r.min), Window: tidemark.Tokens(r.window), Zones: r.percents()}
		r.runs = append(r.runs, &paging.Replay{Options: o, Check: ctx.Err, Keep: r.decisions != "", Totals: paging.Totals{Policy: name}})
	}
	r.names = sessionNames(files)
	if r.plot != "" {
		r.drawn = newPlot(r.policies)
	}
	r.small = make([]float64, len(r.runs))
	if err := r.deciding(func() error { return m.replayAll(r, files) }); err != nil {
		return err
	}
	if r.plot != "" {
		if err := toFile(r.plot, r.drawn.draw); err != nil {
			return err
		}
		m.err.line("wrote " + r.plot)
	}
	return m.printReplay(r)
}

// deciding runs what writes decisions, whose file is then whole or as it was before. What is no file, such as
// a pipe, gets them as they are made.
func (r *replay) deciding(run func() error) error {
	if r.decisions == "" {
		return run()
	}
	write := func(w io.Writer) error {
		r.out = bufio.NewWriterSize(w, 1<<20)
		return errors.Join(run(), r.out.Flush())
	}
	path := r.decisions
	if behind, err := filepath.EvalSymlinks(path); err == nil {
		path = behind // a link stays one
	}
	if info, err := os.Stat(path); err != nil || info.Mode().IsRegular() {
		return toFile(path, write)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// replayAll replays the sessions that are made and those of the files.
func (m *Main) replayAll(r *replay, files []string) error {
	for _, name := range r.profiles {
		s, err := r.scanner.Session(paging.Profile(name, r.requests, r.bytes))
		if err == nil {
			err = r.session(s)
		}
		if err != nil {
			return err
		}
	}
	for _, file := range files {
		if err := m.replayFile(r, file); err != nil {
			return err
		}
	}
	return nil
}

// maxTools bounds the bytes of a file of tools.
const maxTools = 1 << 20

// readTools is the table of tools with the rows of a file, "" for none.
func readTools(name string) (paging.Tools, error) {
	if name == "" {
		return paging.DefaultTools(), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxTools+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxTools {
		return nil, fmt.Errorf("%s has more than %d bytes: want a table of tools: %w", name, maxTools, tidemark.ErrTooLarge)
	}
	rows, err := paging.ReadTools(data)
	if err != nil {
		return nil, &fixed{fmt.Errorf("%s: %w", name, err), "correct the tool that is named; `tidemark replay --help` shows the form"}
	}
	return paging.DefaultTools().With(rows), nil
}

// session runs one session under all policies.
func (r *replay) session(s paging.Session) error {
	rows := make([]sessionTotals, len(r.runs))
	for i, run := range r.runs {
		all, k := run.Totals, meter{session: s}
		flags := run.Options
		run.Options = r.options(flags, s.Told)
		if err := r.fits(run.Options); err != nil {
			return err
		}
		run.Totals = paging.Totals{Policy: r.label(all, run.Options.Policy)}
		run.Each = func(d *paging.Decision) {
			k.add(d)
			if r.drawn != nil {
				r.drawn.add(i, d)
			}
		}
		if err := run.Run(s); err != nil {
			return err
		}
		one := run.Totals
		run.Totals, run.Options = plus(all, one), flags
		one.Cost, one.Baseline = cents(one.Cost), cents(one.Baseline)
		rows[i] = sessionTotals{s.ID, one, k.total()}
		if r.out == nil {
			continue
		}
		if _, err := r.out.Write(append(run.Line, '\n')); err != nil {
			return err
		}
	}
	if r.drawn != nil {
		r.drawn.ended(rows)
	}
	switch {
	case !r.bySession:
	case len(r.rows) < maxRows*len(r.runs):
		r.rows = append(r.rows, rows...)
	default:
		r.unlisted++
	}
	if b := r.bound(); b >= 0 && r.runs[b].Exact {
		for i, run := range r.runs {
			r.small[i] += run.Cost
		}
	}
	return nil
}

// bound is the place of cost-optimal among the policies, -1 for none.
func (r *replay) bound() int { return slices.Index(r.policies, paging.Bounds()[0]) }

// above is how far a policy is above the least cost, nil where that is not known.
func (r *replay) above(i int) *float64 {
	b := r.bound()
	if b < 0 || r.small[b] == 0 {
		return nil
	}
	by := r.small[i]/r.small[b] - 1
	return &by
}

// cents is a cost as it is printed: sums of tenths of bytes have no more than two places.
func cents(cost float64) float64 { return math.Round(cost*100) / 100 }

// printReplay prints totals, one policy as an object.
func (m *Main) printReplay(r *replay) error {
	seconds := time.Since(r.started).Seconds()
	all := make([]replayTotals, len(r.runs))
	for i, run := range r.runs {
		all[i] = replayTotals{run.Totals, r.above(i), seconds}
		all[i].Cost, all[i].Baseline = cents(run.Totals.Cost), cents(run.Totals.Baseline)
	}
	switch {
	case m.json && r.bySession:
		return m.printJSON(struct {
			Policies []replayTotals  `json:"policies"`
			Sessions []sessionTotals `json:"sessions"`
			Unlisted int             `json:"unlisted,omitempty"`
			Seconds  float64         `json:"seconds"`
		}{all, r.rows, r.unlisted, seconds})
	case m.json && len(all) == 1:
		return m.printJSON(all[0])
	case m.json:
		return m.printJSON(struct {
			Policies []replayTotals `json:"policies"`
			Seconds  float64        `json:"seconds"`
		}{all, seconds})
	}
	if r.bySession {
		m.printSessions(r)
	}
	rows := [][]string{{"POLICY", "EVICTED", "CLEARED", "FAULTS", "RATE", "PINS", "BYTES IN", "BYTES OUT", "COST", "RATIO", "TAU"}}
	bound := r.bound()
	if bound >= 0 {
		rows[0] = append(rows[0], "ABOVE")
	}
	for _, t := range all {
		row := []string{t.Policy, strconv.Itoa(t.Evictions), strconv.Itoa(t.GC), strconv.Itoa(t.Faults),
			strconv.FormatFloat(100*t.FaultRate, 'f', 1, 64) + " %", strconv.Itoa(t.Pins), strconv.FormatInt(t.BytesIn, 10),
			strconv.FormatInt(t.BytesOut, 10), strconv.FormatFloat(t.Cost, 'f', 0, 64), strconv.FormatFloat(t.Ratio, 'f', 3, 64), strconv.Itoa(t.Tau)}
		if t.Above != nil {
			row = append(row, strconv.FormatFloat(100**t.Above, 'f', 1, 64)+" %")
		} else if bound >= 0 {
			row = append(row, "-")
		}
		rows = append(rows, row)
	}
	table(m.out, rows)
	m.out.printf("%s, %s, in %.2f s\n", plural(all[0].Sessions, "session"), plural(all[0].Requests, "request"), seconds)
	m.printZones(all)
	if bound >= 0 {
		m.out.printf("%s: exact for %d sessions (ABOVE is over these), for %d a relaxation: no plan costs less, and maybe none so little\n",
			all[bound].Policy, all[bound].Exact, all[bound].Relaxed)
	}
	return nil
}
