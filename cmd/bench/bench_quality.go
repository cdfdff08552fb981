package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/bench"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/provider"
	"github.com/tidemark-ai/tidemark/setup"
)

// quality is the command `bench quality`.
type quality struct {
	Policy        string `flag:"strategy"`
	Tau, MinBytes int
	Zoned         zoned `flag:"*"` // its flags of zones
	bench.Quality
	Tools    string
	Judge    []string
	Verdicts int `flag:"judges"`
	Out      string
	Plan     bool
	MaxLine  int64
}

func (q *quality) check() error {
	switch {
	case !slices.Contains(bench.Strategies(), q.Policy):
		return cli.Usagef("--strategy %s: want one of %v", q.Policy, bench.Strategies())
	case q.Tau < 0:
		return cli.Usagef("--tau %d: want 0 or more messages", q.Tau)
	case q.MinBytes < 0:
		return cli.Usagef("--min-bytes %d: want 0 or more bytes", q.MinBytes)
	case q.Recent < 1 || q.Recent > 10_000:
		return cli.Usagef("--recent %d: want 1 to 10000 messages: the one that is answered stays", q.Recent)
	case q.Verdicts < 1 || q.Verdicts > bench.MaxJudges:
		return cli.Usagef("--judges %d: want 1 to %d", q.Verdicts, bench.MaxJudges)
	case len(q.Judge) > q.Verdicts:
		return cli.Usagef("--judge names %d models for %d judges: raise --judges, or name fewer", len(q.Judge), q.Verdicts)
	case slices.Contains(q.Judge, ""):
		return cli.Usagef("--judge: an empty name; want models parted by commas")
	case q.Pairs < 1 || q.Pairs > bench.MaxPairs:
		return cli.Usagef("--pairs %d: want 1 to %d", q.Pairs, bench.MaxPairs)
	case q.Each < 1 || q.Each > bench.MaxPairs:
		return cli.Usagef("--each %d: want 1 to %d", q.Each, bench.MaxPairs)
	case q.AnswerTokens < 50 || q.AnswerTokens > 32_000:
		return cli.Usagef("--answer-tokens %d: want 50 to 32000", q.AnswerTokens)
	case q.JudgeTokens < 200 || q.JudgeTokens > 32_000:
		return cli.Usagef("--judge-tokens %d: want 200 to 32000", q.JudgeTokens)
	case !(q.Margin > 0 && q.Margin <= 4):
		return cli.Usagef("--margin %g: want more than 0 and at most 4 points", q.Margin)
	case q.MaxLine < 1:
		return cli.Usagef("--max-line %d: want a number of bytes, such as 268435456", q.MaxLine)
	}
	if q.Zoned.Window == 0 && q.Zoned.percents() != paging.DefaultZones && len(q.Zoned.Zones) == 3 {
		return errNoWindow
	}
	return q.Zoned.checkZones(nil)
}

func benchQuality(ctx context.Context, m *cli.Main, q *quality) (err error) {
	files := m.Args
	if err := q.check(); err != nil {
		return err
	}
	if len(files) == 0 {
		return cli.Usagef("%s: want FILE..., sessions as `tidemark-bench replay` takes them", m.Path())
	}
	if slices.Contains(files, "-") {
		return cli.Usagef("%s -: files are read several times, standard input only once: give a FILE", m.Path())
	}
	ctx, stop := cli.UntilInterrupt(ctx)
	defer stop()
	if err := qualityModel(ctx, m, q); err != nil {
		return err
	}
	tools, err := readTools(q.Tools)
	if err == nil {
		q.Strategy, err = bench.NewStrategy(q.Zoned.Options(q.Policy, q.Tau, q.MinBytes), tools)
	}
	if err == nil {
		files, err = recordings(files)
	}
	if err == nil {
		slices.Sort(files)
		files = slices.Compact(files) // a session that is named twice is one
		err = cli.Spare("--out", q.Out, files)
	}
	if err != nil {
		return err
	}
	close, err := q.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, close()) }()
	plan, err := planQuality(ctx, m, q, tools, files)
	if err != nil {
		return err
	}
	if q.Plan && m.JSON {
		return m.PrintJSON(plan)
	}
	tellPlan(m, q, plan)
	if len(plan.Pairs) == 0 {
		return cli.Advise(errors.New("no turn can be compared: the lines above say why"), "give longer sessions, lower --tau, --min-bytes or --recent, or raise model.contextWindow if the model has more")
	}
	if q.Plan {
		return nil
	}
	q.Told = m.Telling()
	res, err := q.Run(ctx, plan)
	m.ProgressEnd()
	if err != nil && res.Pairs == 0 {
		return q.again(err)
	}
	if m.JSON {
		err = errors.Join(m.PrintJSON(res), q.again(err))
	} else {
		printQuality(m, res)
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
		return cli.Advise(err, "set a key that this provider takes, and run it again")
	case q.Out != "":
		return cli.Advise(err, "run it again with the same --out "+q.Out+": calls that are in it are not made again")
	}
	return cli.Advise(err, "run it again with --out FILE: calls that were made are kept there")
}

// qualityModel finds who answers and judges. Offline nobody does: the built-in model makes no answers that
// could be compared.
func qualityModel(ctx context.Context, m *cli.Main, q *quality) error {
	cfg, err := m.SettingsOf(ctx)
	if err != nil {
		return err
	}
	reason := cfg.Resolve()
	if !q.Plan {
		if cfg.Model.Provider == config.Offline {
			return cli.Advise(fmt.Errorf("model.provider is offline (%s): the built-in model's answers tell nothing of quality: %w", reason, tidemark.ErrInvalid),
				"set ANTHROPIC_API_KEY, or OPENAI_API_KEY (and model.baseUrl for an endpoint of your own), or give --plan to see what a run would take")
		}
		if err := cli.NeedKey(cfg); err != nil {
			return err
		}
	}
	rt := native.NewRuntime(nil)
	q.Provider = &provider.Retry{Provider: setup.Provider(cfg, rt, native.Transport()), Runtime: rt}
	q.By, q.Model, q.Window = cfg.Model.Provider+" "+cfg.Model.BaseURL, cfg.Model.ID, cfg.Model.ContextWindow
	if len(q.Judge) == 0 {
		q.Judge = []string{q.Model}
	}
	for i := range q.Verdicts {
		q.Judges = append(q.Judges, q.Judge[i%len(q.Judge)])
	}
	return nil
}

// open reads the calls that were made before, and lets new ones be kept behind them.
func (q *quality) open() (func() error, error) {
	if q.Out == "" {
		return func() error { return nil }, nil
	}
	mode := os.O_RDWR | os.O_CREATE
	if q.Plan {
		mode = os.O_RDONLY
	}
	f, err := os.OpenFile(q.Out, mode, 0o600) // it holds what was said
	if errors.Is(err, os.ErrNotExist) && q.Plan {
		return func() error { return nil }, nil
	}
	if err != nil {
		return nil, err
	}
	have, whole, err := bench.ReadCalls(f)
	if err != nil {
		return nil, errors.Join(cli.Advise(fmt.Errorf("--out %s: %w", q.Out, err), "name another file: this one is not overwritten"), f.Close())
	}
	q.Have = have
	if q.Plan {
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
func planQuality(ctx context.Context, m *cli.Main, q *quality, tools paging.Tools, files []string) (plan bench.QualityPlan, err error) {
	r := &turnReader{recorded: recorded{MaxLine: q.MaxLine, Names: sessionNames(files), Scanner: paging.Scanner{Tools: tools}}}
	q.Load = r.load
	tell := m.Telling()
	for i, file := range files {
		if tell != nil {
			tell("files, "+file, i, len(files))
		}
		err := r.turns(ctx, file, func(s paging.Session, typed []int, at func(int) bench.Turn) error {
			return q.Consider(ctx, &plan, s, typed, at)
		})
		if err != nil {
			m.ProgressEnd()
			return plan, err
		}
	}
	m.ProgressEnd()
	return plan, q.Settle(ctx, &plan)
}

// tellPlan says what will be done before it is.
func tellPlan(m *cli.Main, q *quality, p bench.QualityPlan) {
	model, judges, by := q.Model, strings.Join(slices.Compact(slices.Clone(q.Judges)), ", "), strings.TrimSpace(q.By)
	if by == config.Offline {
		model, by = "the configured model", "the provider (none is configured)"
		if len(q.Judge) == 1 && judges == config.Offline {
			judges = "it, too"
		}
	}
	m.Err.Printf("%s of %s: %s by %s, %s by %s; strategy %s, the newest %d messages as they were\n", cli.Plural(len(p.Pairs), "pair"), cli.Plural(p.Sessions, "session"),
		cli.Plural(2*len(p.Pairs), "answer"), model, cli.Plural(len(q.Judges)*len(p.Pairs), "verdict"), judges, q.Policy, q.Recent)
	if p.Made > 0 {
		m.Err.Printf("%s of %d are in %s\n", cli.Plural(p.Made, "answer"), 2*len(p.Pairs), q.Out)
	}
	m.Err.Printf("%s, about %s tokens in and at most %s out, at the prices of %s; needs a key of that provider and the network\n", cli.Plural(p.Calls-p.Made, "call"),
		cli.Count(p.Input), cli.Count(p.Output), by)
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
			m.Err.Printf("%s %s\n", cli.Plural(skip.n, first), rest)
		}
	}
}
