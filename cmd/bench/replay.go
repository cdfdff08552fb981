package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/transcript"
)

// replay is the command of that name.
type replay struct {
	zoned
	recorded
	Policy          []string
	Profile         []string
	Requests, Bytes int
	Tau, MinBytes   int
	given           func(flag string) bool // on the command line
	Decisions       string
	BySession       bool
	rows            []sessionTotals // if so
	unlisted        int             // sessions beyond the bound of rows
	Tools           string
	runs            []*paging.Replay
	small           []float64 // what each policy cost over the sessions whose least cost is known
	out             *bufio.Writer
	started         time.Time
}

// replayTotals are what a replay prints of one policy.
type replayTotals struct {
	paging.Totals
	Above   *float64 `json:"above_least,omitempty"` // the least cost, of the sessions where cost-optimal knows it
	Seconds float64  `json:"seconds"`
}

// policies are the names that --policy takes.
func policies() []string { return append(paging.Policies(), paging.Bounds()...) }

func (r *replay) check() error {
	switch {
	case r.Tau < 0:
		return cli.Usagef("--tau %d: want 0 or more messages", r.Tau)
	case r.MinBytes < 0:
		return cli.Usagef("--min-bytes %d: want 0 or more bytes", r.MinBytes)
	case r.MaxLine < 1:
		return cli.Usagef("--max-line %d: want a number of bytes, such as 268435456", r.MaxLine)
	case r.Requests < 1 || r.Requests > 100_000:
		return cli.Usagef("--requests %d: want 1 to 100000", r.Requests)
	case r.Bytes < 100 || r.Bytes > 1<<20:
		return cli.Usagef("--bytes %d: want 100 to 1048576", r.Bytes)
	case len(r.Policy) == 0:
		return cli.Usagef("--policy: want one of %v", policies())
	case r.Decisions != "" && len(r.Policy) > 1:
		return cli.Usagef("--decisions holds those of one policy: give --policy one name")
	}
	if slices.Contains(r.Profile, "all") {
		r.Profile = paging.Profiles()
	}
	for _, name := range r.Profile {
		if !slices.Contains(paging.Profiles(), name) {
			return cli.Usagef("--profile %s: want some of %v, or all", name, paging.Profiles())
		}
	}
	for i, name := range r.Policy {
		if !slices.Contains(policies(), name) {
			return cli.Usagef("--policy %s: want one of %v", name, policies())
		}
		if slices.Contains(r.Policy[:i], name) {
			return cli.Usagef("--policy: %s is named twice", name)
		}
	}
	return r.checkZones(r.Policy)
}

func replayCommand(ctx context.Context, m *cli.Main, r *replay) error {
	r.given = m.Changed
	if err := r.check(); err != nil {
		return err
	}
	files, err := recordings(m.Args)
	if err != nil {
		return err
	}
	if err := cli.Spare("--decisions", r.Decisions, append(files, r.Tools)); err != nil {
		return err
	}
	if len(files) == 0 && len(r.Profile) == 0 {
		return cli.Usagef("tidemark-bench replay: want FILE..., or --profile with a kind of session to make")
	}
	r.started = time.Now()
	if r.Scanner.Tools, err = readTools(r.Tools); err != nil {
		return err
	}
	for _, name := range r.Policy {
		r.runs = append(r.runs, &paging.Replay{Options: r.zoned.Options(name, r.Tau, r.MinBytes), Check: ctx.Err, Keep: r.Decisions != "", Totals: paging.Totals{Policy: name}})
	}
	r.Names = sessionNames(files)
	r.small = make([]float64, len(r.runs))
	if err := r.deciding(func() error { return replayAll(m, r, files) }); err != nil {
		return err
	}
	return printReplay(m, r)
}

// deciding runs what writes decisions, whose file is then whole or as it was before. What is no file, such as
// a pipe, gets them as they are made.
func (r *replay) deciding(run func() error) error {
	if r.Decisions == "" {
		return run()
	}
	write := func(w io.Writer) error {
		r.out = bufio.NewWriterSize(w, 1<<20)
		return errors.Join(run(), r.out.Flush())
	}
	path := r.Decisions
	if behind, err := filepath.EvalSymlinks(path); err == nil {
		path = behind // a link stays one
	}
	if info, err := os.Stat(path); err != nil || info.Mode().IsRegular() {
		return cli.ToFile(path, write)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// replayAll replays the sessions that are made and those of the files.
func replayAll(m *cli.Main, r *replay, files []string) error {
	for _, name := range r.Profile {
		s, err := r.Scanner.Session(paging.Profile(name, r.Requests, r.Bytes))
		if err == nil {
			err = r.session(s)
		}
		if err != nil {
			return err
		}
	}
	for _, file := range files {
		if err := replayFile(m, r, file); err != nil {
			return err
		}
	}
	return nil
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
		run.Each = k.add
		if err := run.Run(s); err != nil {
			return err
		}
		one := run.Totals
		all.Add(one)
		run.Totals, run.Options = all, flags
		one.Cost, one.Baseline = cents(one.Cost), cents(one.Baseline)
		rows[i] = sessionTotals{s.ID, one, k.total()}
		if r.out == nil {
			continue
		}
		if _, err := r.out.Write(append(run.Line, '\n')); err != nil {
			return err
		}
	}
	switch {
	case !r.BySession:
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
func (r *replay) bound() int { return slices.Index(r.Policy, paging.Bounds()[0]) }

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
func printReplay(m *cli.Main, r *replay) error {
	seconds := time.Since(r.started).Seconds()
	all := make([]replayTotals, len(r.runs))
	for i, run := range r.runs {
		all[i] = replayTotals{run.Totals, r.above(i), seconds}
		all[i].Cost, all[i].Baseline = cents(run.Totals.Cost), cents(run.Totals.Baseline)
	}
	switch {
	case m.JSON && r.BySession:
		return m.PrintJSON(struct {
			Policies []replayTotals  `json:"policies"`
			Sessions []sessionTotals `json:"sessions"`
			Unlisted int             `json:"unlisted,omitempty"`
			Seconds  float64         `json:"seconds"`
		}{all, r.rows, r.unlisted, seconds})
	case m.JSON && len(all) == 1:
		return m.PrintJSON(all[0])
	case m.JSON:
		return m.PrintJSON(struct {
			Policies []replayTotals `json:"policies"`
			Seconds  float64        `json:"seconds"`
		}{all, seconds})
	}
	if r.BySession {
		printSessions(m, r)
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
	cli.PrintTable(m.Out, rows)
	m.Out.Printf("%s, %s, in %.2f s\n", cli.Plural(all[0].Sessions, "session"), cli.Plural(all[0].Requests, "request"), seconds)
	printZones(m, all)
	if bound >= 0 {
		m.Out.Printf("%s: exact for %d sessions (ABOVE is over these), for %d a relaxation: no plan costs less, and maybe none so little\n",
			all[bound].Policy, all[bound].Exact, all[bound].Relaxed)
	}
	return nil
}

// replayFile replays the sessions of one file, or of standard input.
func replayFile(m *cli.Main, r *replay, name string) error {
	f, _, err := m.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	in := bufio.NewReaderSize(f, 1<<20)
	before := r.runs[0].Totals.Sessions
	r.Damaged = 0
	err = r.each(name, in, func(first []byte) error { return r.log(name, f, first, in) },
		func(s paging.Session, _ int, _ int64) error { return r.session(s) })
	if err != nil {
		return err
	}
	if r.Damaged > 0 {
		m.Err.Printf("%s: %s passed over: not to be read\n", cli.Safe(name), cli.Plural(r.Damaged, "line"))
	}
	if r.runs[0].Totals.Sessions == before {
		m.Err.Printf("%s: no session in it\n", cli.Safe(name))
	}
	return nil
}

// log replays a log of Claude Code, of which a line has been read. What cannot be read again, as a pipe, is given by
// that line and the rest. A subagent's own log is all side chain, which is its session.
func (r *replay) log(name string, f io.Reader, line []byte, rest io.Reader) error {
	again, seekable := io.MultiReader(bytes.NewReader(line), strings.NewReader("\n"), rest), false
	if s, ok := f.(io.Seeker); ok {
		if _, err := s.Seek(0, io.SeekStart); err == nil {
			again, seekable = f, true
		}
	}
	s, err := r.logSession(name, again, nil)
	if err == nil && len(s.Steps) == 0 && seekable {
		r.Chain, r.Damaged = transcript.SideChain, 0
		s, err = r.logSession(name, again, nil)
		r.Chain = transcript.MainChain
	}
	if err != nil || len(s.Steps) == 0 {
		return err
	}
	return r.session(s)
}

// options are the settings of a session: what flags say counts first, then what the session says of itself, then what
// flags are without being given.
func (r *replay) options(flags paging.Options, told paging.Told) paging.Options {
	given := func(flag string) bool { return r.given != nil && r.given(flag) }
	if given("window") {
		told.Window = nil
	}
	if given("policy") {
		told.Policy = nil
	}
	if given("tau") {
		told.Tau = nil
	}
	if given("min-bytes") {
		told.MinBytes = nil
	}
	if given("zones") {
		told.Zones = nil
	}
	told.Fill(&flags)
	return flags
}

// label names the policy of a session in the totals, where several sessions may say that theirs was another one.
func (r *replay) label(all paging.Totals, policy string) string {
	if all.Sessions > 0 && all.Policy != policy {
		return "as recorded"
	}
	return policy
}

// fits refuses zones for a session that has no window, and bounds for one that tells its own.
func (r *replay) fits(o paging.Options) error {
	switch {
	case o.Window == 0 && r.given != nil && r.given("zones"):
		return errNoWindow
	case o.Window > 0 && slices.Contains(paging.Bounds(), o.Policy):
		return cli.Usagef("--policy %s: a bound knows no zones, and the session tells a window: give --window 0", o.Policy)
	}
	return nil
}

// printZones says how full the window was, policy by policy.
func printZones(m *cli.Main, all []replayTotals) {
	for _, t := range all {
		if z := t.Zones; z != nil {
			m.Out.Printf("%s: %d requests in zone normal, %d advisory, %d involuntary, %d aggressive\n", t.Policy, z.Normal, z.Advisory, z.Involuntary, z.Aggressive)
		}
	}
}
