package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/bench"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/provider"
	"github.com/tidemark-ai/tidemark/setup"
)

// quality is the command `bench quality`.
type quality struct {
	bench.Quality
	strategy string
	tau, min int
	zoned    replay // its flags of zones
	tools    string
	judge    []string
	judges   int
	out      string
	plan     bool
	maxLine  int64
}

func (m *Main) benchQuality() *cobra.Command {
	q := &quality{strategy: bench.Strategies()[0], tau: paging.DefaultTau, min: paging.DefaultMinBytes, judges: 3, maxLine: 256 << 20,
		Quality: bench.Quality{Seed: 1, Recent: 20, Pairs: 18, Each: 1, AnswerTokens: 2000, JudgeTokens: 1000, Margin: 0.5}}
	c := &cobra.Command{Use: "quality FILE...", Short: "Compare answers with the whole context and with a managed one", Args: cobra.ArbitraryArgs,
		Long: `Take turns of recorded sessions and have the configured model answer each of them
twice: with the whole context, and with the context as a strategy leaves it. Judges
that do not know which is which score both answers, say which is better, and guess
which had less context. Then say whether the answers are as good, by how much they
may differ, and whether the judges could tell (Pichay, section 6.5).

A FILE is what ` + "`tidemark replay`" + ` takes: one session a line, or a log of Claude Code; of
a folder the logs below it are taken. It is read several times, so it is no pipe.
One turn of each session is taken (--each), from 65 to 75 % of its messages where
something has left by then. The newest messages (--recent) stay as they were.

This makes paid calls: two answers and --judges verdicts a pair. How many calls and
about how many tokens is told before the first; --plan tells it and makes none. With
--out each call is kept in a file as it is made, and a run with the same file does
not make it again, also under another strategy: answers with the whole context are
shared. The file holds what was said in the sessions.

EQUIVALENT means that both one-sided tests of the overall score are below 5 %: it
differs by less than --margin. docs/quality.md tells how to read the rest.`,
		Example: `  tidemark bench quality sessions.jsonl --strategy cost --plan
  tidemark bench quality sessions.jsonl --strategy fifo --tau 4 --min-bytes 500 --out quality.jsonl
  tidemark bench quality ~/.claude/projects/*/*.jsonl --judge claude-sonnet-4-5,claude-haiku-4-5 --pairs 30 --json`,
		RunE: func(cmd *cobra.Command, args []string) error { return m.runQuality(cmd, q, args) }}
	f := c.Flags()
	f.StringVar(&q.strategy, "strategy", q.strategy, fmt.Sprintf("what makes the context smaller: a policy of paging, or none to have the whole context answered twice, as a control: %v", bench.Strategies()))
	f.IntVar(&q.tau, "tau", q.tau, "age from which a result may leave, in messages of role user")
	f.IntVar(&q.min, "min-bytes", q.min, "size from which a result may leave")
	q.zoned.zoneFlags(f)
	f.StringVar(&q.tools, "tools", "", "take further tools from this file, as replay does")
	f.IntVar(&q.Recent, "recent", q.Recent, "newest messages that stay as they were")
	f.StringSliceVar(&q.judge, "judge", nil, "models that judge, in turn (default the model)")
	f.IntVar(&q.judges, "judges", q.judges, "verdicts on each pair")
	f.IntVar(&q.Pairs, "pairs", q.Pairs, "pairs at most; the seed draws them")
	f.IntVar(&q.Each, "each", q.Each, "turns of one session at most")
	f.Int64Var((*int64)(&q.AnswerTokens), "answer-tokens", int64(q.AnswerTokens), "bound on an answer")
	f.Int64Var((*int64)(&q.JudgeTokens), "judge-tokens", int64(q.JudgeTokens), "bound on a judge's reply; one that thinks before it speaks needs more")
	f.Float64Var(&q.Margin, "margin", q.Margin, "points of score that make no difference")
	f.Uint64Var(&q.Seed, "seed", q.Seed, "draws turns, and which answer is A")
	f.StringVar(&q.out, "out", "", "keep each call in this file, and take those that are in it from there")
	f.BoolVar(&q.plan, "plan", false, "say what would be done, and make no call")
	f.Int64Var(&q.maxLine, "max-line", q.maxLine, "bytes of the longest line that is read")
	return m.jsonFlag(c)
}

func (q *quality) check() error {
	switch {
	case !slices.Contains(bench.Strategies(), q.strategy):
		return usagef("--strategy %s: want one of %v", q.strategy, bench.Strategies())
	case q.tau < 0:
		return usagef("--tau %d: want 0 or more messages", q.tau)
	case q.min < 0:
		return usagef("--min-bytes %d: want 0 or more bytes", q.min)
	case q.Recent < 1 || q.Recent > 10_000:
		return usagef("--recent %d: want 1 to 10000 messages: the one that is answered stays", q.Recent)
	case q.judges < 1 || q.judges > bench.MaxJudges:
		return usagef("--judges %d: want 1 to %d", q.judges, bench.MaxJudges)
	case len(q.judge) > q.judges:
		return usagef("--judge names %d models for %d judges: raise --judges, or name fewer", len(q.judge), q.judges)
	case slices.Contains(q.judge, ""):
		return usagef("--judge: an empty name; want models parted by commas")
	case q.Pairs < 1 || q.Pairs > bench.MaxPairs:
		return usagef("--pairs %d: want 1 to %d", q.Pairs, bench.MaxPairs)
	case q.Each < 1 || q.Each > bench.MaxPairs:
		return usagef("--each %d: want 1 to %d", q.Each, bench.MaxPairs)
	case q.AnswerTokens < 50 || q.AnswerTokens > 32_000:
		return usagef("--answer-tokens %d: want 50 to 32000", q.AnswerTokens)
	case q.JudgeTokens < 200 || q.JudgeTokens > 32_000:
		return usagef("--judge-tokens %d: want 200 to 32000", q.JudgeTokens)
	case !(q.Margin > 0 && q.Margin <= 4):
		return usagef("--margin %g: want more than 0 and at most 4 points", q.Margin)
	case q.maxLine < 1:
		return usagef("--max-line %d: want a number of bytes, such as 268435456", q.maxLine)
	}
	if q.zoned.window == 0 && q.zoned.percents() != paging.DefaultZones && len(q.zoned.zones) == 3 {
		return errNoWindow
	}
	return q.zoned.checkZones()
}

func (m *Main) runQuality(cmd *cobra.Command, q *quality, files []string) (err error) {
	if err := q.check(); err != nil {
		return err
	}
	if len(files) == 0 {
		return usagef("%s: want FILE..., sessions as `tidemark replay` takes them", cmd.CommandPath())
	}
	if slices.Contains(files, "-") {
		return usagef("%s -: files are read several times, standard input only once: give a FILE", cmd.CommandPath())
	}
	ctx, stop := untilInterrupt(cmd.Context())
	defer stop()
	if err := m.qualityModel(ctx, q); err != nil {
		return err
	}
	none := func(n int) int { // 0 is a value here
		if n == 0 {
			return -1
		}
		return n
	}
	tools, err := readTools(q.tools)
	if err == nil {
		q.Strategy, err = bench.NewStrategy(paging.Options{Policy: q.strategy, Tau: none(q.tau), MinBytes: none(q.min),
			Window: tidemark.Tokens(q.zoned.window), Zones: q.zoned.percents()}, tools)
	}
	if err == nil {
		files, err = recordings(files)
	}
	if err == nil {
		slices.Sort(files)
		files = slices.Compact(files) // a session that is named twice is one
		err = spare("--out", q.out, files)
	}
	if err != nil {
		return err
	}
	close, err := q.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, close()) }()
	plan, err := m.planQuality(ctx, q, tools, files)
	if err != nil {
		return err
	}
	if q.plan && m.json {
		return m.printJSON(plan)
	}
	m.tellPlan(q, plan)
	if len(plan.Pairs) == 0 {
		return &fixed{errors.New("no turn can be compared: the lines above say why"), "give longer sessions, lower --tau, --min-bytes or --recent, or raise model.contextWindow if the model has more"}
	}
	if q.plan {
		return nil
	}
	q.Told = m.telling()
	res, err := q.Run(ctx, plan)
	m.progressEnd()
	if err != nil && res.Pairs == 0 {
		return q.again(err)
	}
	if m.json {
		err = errors.Join(m.printJSON(res), q.again(err))
	} else {
		m.printQuality(res)
		err = q.again(err)
	}
	return err
}

// again says how to go on after a run that was ended.
func (q *quality) again(err error) error {
	var api *tidemark.APIError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &api) && api.Class == tidemark.ClassAuth:
		return &fixed{err, "set a key that this provider takes, and run it again"}
	case q.out != "":
		return &fixed{err, "run it again with the same --out " + q.out + ": calls that are in it are not made again"}
	}
	return &fixed{err, "run it again with --out FILE: calls that were made are kept there"}
}

// qualityModel finds who answers and judges. Offline nobody does: the built-in model makes no answers that
// could be compared.
func (m *Main) qualityModel(ctx context.Context, q *quality) error {
	home, err := m.homeDir()
	if err != nil {
		return err
	}
	cfg, _, err := m.load(ctx, home)
	if err != nil {
		return err
	}
	reason := cfg.Resolve()
	if !q.plan {
		if cfg.Model.Provider == config.Offline {
			return &fixed{fmt.Errorf("model.provider is offline (%s): the built-in model's answers tell nothing of quality: %w", reason, tidemark.ErrInvalid),
				"set ANTHROPIC_API_KEY, or OPENAI_API_KEY (and model.baseUrl for an endpoint of your own), or give --plan to see what a run would take"}
		}
		if err := needKey(cfg); err != nil {
			return err
		}
	}
	rt := native.NewRuntime(nil)
	q.Provider = &provider.Retry{Provider: setup.Provider(cfg, rt, native.Transport()), Runtime: rt}
	q.By, q.Model, q.Window = cfg.Model.Provider+" "+cfg.Model.BaseURL, cfg.Model.ID, cfg.Model.ContextWindow
	if len(q.judge) == 0 {
		q.judge = []string{q.Model}
	}
	for i := range q.judges {
		q.Judges = append(q.Judges, q.judge[i%len(q.judge)])
	}
	return nil
}

// open reads the calls that were made before, and lets new ones be kept behind them.
func (q *quality) open() (func() error, error) {
	if q.out == "" {
		return func() error { return nil }, nil
	}
	mode := os.O_RDWR | os.O_CREATE
	if q.plan {
		mode = os.O_RDONLY
	}
	f, err := os.OpenFile(q.out, mode, 0o600) // it holds what was said
	if errors.Is(err, os.ErrNotExist) && q.plan {
		return func() error { return nil }, nil
	}
	if err != nil {
		return nil, err
	}
	have, whole, err := bench.ReadCalls(f)
	if err != nil {
		return nil, errors.Join(&fixed{fmt.Errorf("--out %s: %w", q.out, err), "name another file: this one is not overwritten"}, f.Close())
	}
	q.Have = have
	if q.plan {
		return f.Close, nil
	}
	if err = f.Truncate(whole); err == nil { // what a run that was killed left
		_, err = f.Seek(whole, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	q.Save = func(r bench.QualityRecord) error {
		raw, err := json.Marshal(r)
		if err != nil {
			return err
		}
		_, err = f.Write(append(raw, '\n'))
		return err
	}
	return f.Close, nil
}

// planQuality reads the sessions and chooses turns.
func (m *Main) planQuality(ctx context.Context, q *quality, tools paging.Tools, files []string) (plan bench.QualityPlan, err error) {
	r := &turnReader{replay: replay{maxLine: q.maxLine, names: sessionNames(files), scanner: paging.Scanner{Tools: tools}}}
	q.Load = r.load
	tell := m.telling()
	for i, file := range files {
		if tell != nil {
			tell("files, "+file, i, len(files))
		}
		err := r.each(ctx, file, func(s paging.Session, typed []int, at func(int) bench.Turn) error {
			return q.Consider(ctx, &plan, s, typed, at)
		})
		if err != nil {
			m.progressEnd()
			return plan, err
		}
	}
	m.progressEnd()
	return plan, q.Settle(ctx, &plan)
}

// tellPlan says what will be done before it is.
func (m *Main) tellPlan(q *quality, p bench.QualityPlan) {
	model, judges, by := q.Model, strings.Join(slices.Compact(slices.Clone(q.Judges)), ", "), strings.TrimSpace(q.By)
	if by == config.Offline {
		model, by = "the configured model", "the provider (none is configured)"
		if len(q.judge) == 1 && judges == config.Offline {
			judges = "it, too"
		}
	}
	m.err.printf("%s of %s: %s by %s, %s by %s; strategy %s, the newest %d messages as they were\n", plural(len(p.Pairs), "pair"), plural(p.Sessions, "session"),
		plural(2*len(p.Pairs), "answer"), model, plural(len(q.Judges)*len(p.Pairs), "verdict"), judges, q.strategy, q.Recent)
	if p.Made > 0 {
		m.err.printf("%s of %d are in %s\n", plural(p.Made, "answer"), 2*len(p.Pairs), q.out)
	}
	m.err.printf("%s, about %s tokens in and at most %s out, at the prices of %s; needs a key of that provider and the network\n", plural(p.Calls-p.Made, "call"),
		count(p.Input), count(p.Output), by)
	s := p.Skipped
	for _, skip := range []struct {
		n    int
		what string
	}{
		{s.Untouched, "session left out: nothing has left the context before a message of a person"}, {s.Window, "turn left out: the whole context exceeds the window"},
		{s.Malformed, "turn left out: no API would take its messages"}, {s.Beyond, "pair left out: more than --pairs"},
	} {
		if skip.n > 0 {
			first, rest, _ := strings.Cut(skip.what, " ")
			m.err.printf("%s %s\n", plural(skip.n, first), rest)
		}
	}
}
