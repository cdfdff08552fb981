package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/bench"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/setup"
)

// needles are the flags of `tidemark-bench needles`.
type needles struct {
	bench.Needles
	bench.Table
	Which   int `flag:"table"`
	Offline bool
	Session string
	Said    int
	Token   string
}

// refused says of a set-up that cannot be run what to do: the configuration has no part in it.
func refused(m *cli.Main, err error) error {
	var own *cli.Fixed
	if err == nil || errors.As(err, &own) || !errors.Is(err, tidemark.ErrInvalid) {
		return err
	}
	return cli.Advise(err, "correct what is named above; `"+m.Path()+" --help` says what each flag means")
}

// needlesWhere says where a flag of needles has an effect; those that are not here have it everywhere.
var needlesWhere = map[string][]string{
	"events": {"", "--server"}, "cycles": {"", "--server"}, "budget": {"", "--server"}, "plain": {"", "--server"},
	"headroom": {""}, "tail": {""}, "token": {"--server"}, "session": {"--server"}, "said": {"--server"},
	"window": {"--table 1"}, "methods": {"--table 1"}, "hops": {"--table 1"}, "traces": {"--table 1"}, "flood": {"--table 1"},
	"seed": {"--table 1"}, "offline": {"--table 1"}, "server": {"--server"},
}

// needless refuses a flag that would be without effect.
func needless(where string, changed func(string) bool) error {
	for _, flag := range sortedKeys(needlesWhere) {
		if changed(flag) && !slices.Contains(needlesWhere[flag], where) {
			if where == "" {
				return cli.Usagef("--%s has an effect with %s only", flag, strings.Join(needlesWhere[flag], " and "))
			}
			return cli.Usagef("--%s has no effect with %s: leave it out", flag, where)
		}
	}
	return nil
}

func runNeedles(ctx context.Context, m *cli.Main, n *needles, folder string, changed func(string) bool) error {
	base, err := m.Named()
	switch {
	case err != nil:
		return err
	case m.Server == "":
		base = "" // TIDEMARK_SERVER is for work, not for this
	}
	where := ""
	switch {
	case n.Which == 1:
		where = "--table 1"
	case base != "":
		where = "--server"
	}
	if err := needless(where, changed); err != nil {
		return err
	}
	n.Needles.Told = m.Telling()
	defer m.ProgressEnd()
	switch {
	case n.Which != 1 && n.Which != 2:
		return cli.Usagef("--table %d: want 1 or 2", n.Which)
	case n.Which == 1:
		return needlesTable(ctx, m, n, folder)
	case base != "":
		c := m.Remote(base)
		key := n.Session
		if key == "" {
			key = "needles-" + strings.ToLower(tidemark.NewID(native.NewRuntime(nil).Now()))
		}
		if n.Token != "" {
			c.Token = n.Token
		}
		m.Err.Line("importing some thousand messages into " + c.Where + " as session " + cli.PlainKey(key) + "; that may take minutes")
		found, err := bench.Server{Base: c.Base, Token: c.Token, Key: key, Via: c.RT, Said: n.Said}.Run(ctx, n.Needles)
		return printFound(m, found, err, n.Cycles)
	}
	found, err := n.Needles.Run(ctx, folder)
	return printFound(m, found, err, n.Cycles)
}

// printFound prints what was measured, and what was not.
func printFound(m *cli.Main, found bench.Found, err error, cycles int) error {
	m.ProgressEnd()
	if err != nil {
		return err
	}
	if found.Cycles != cycles {
		m.Err.Printf("%d cycles were made where %d were asked for: a server compacts whenever the log fills the context\n", found.Cycles, cycles)
	}
	if found.Markers == nil {
		m.Err.Line("no marker stands in the context: compaction.strategies of the server names no pointer, so this tells of another strategy")
	}
	return cli.Either(m, found, func() {
		line := fmt.Sprintf("%d messages, %d cycles", found.Messages, found.Cycles)
		if found.Compaction != nil {
			line += fmt.Sprintf(", each planned in %.2f ms and done in %.1f", *found.Compaction, *found.Whole)
		}
		if found.Markers != nil {
			line += fmt.Sprintf(", %d markers of %d at most", *found.Markers, *found.Most)
		}
		m.Out.Printf("recall@10 %.1f %%, absent ones judged so %.1f %%, something else told as sure %.1f %%\n%s, %d messages in context; a query takes %.1f ms, p99 %.1f\n",
			100*found.Recall, 100*found.Absent, 100*found.False, line, found.InContext, found.Query, found.Slow)
		cli.Columns(m.Out, sortedKeys(found.ByKind), []string{"KIND", "FOUND", "FIRST", "SURE"}, func(kind string) []string {
			return []string{kind, shareOf(found.ByKind, kind), shareOf(found.First, kind), shareOf(found.Sure, kind)}
		})
	})
}

func sortedKeys[V any](of map[string]V) []string {
	keys := make([]string, 0, len(of))
	for k := range of {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// shareOf is a share as people read it, empty for none.
func shareOf(of map[string]float64, key string) string {
	v, ok := of[key]
	if !ok {
		return ""
	}
	return strconv.FormatFloat(100*v, 'f', 1, 64) + " %"
}

func needlesTable(ctx context.Context, m *cli.Main, n *needles, folder string) error {
	t := n.Table
	t.Needles = n.Needles.Needles
	if !n.Offline {
		cfg, err := m.SettingsOf(ctx)
		if err != nil {
			return err
		}
		cfg.Resolve()
		if cfg.Model.Provider != config.Offline && cli.NeedKey(cfg) == nil {
			t.Model, t.ModelID = setup.Provider(cfg, native.NewRuntime(nil), native.Transport()), cfg.Model.ID
			m.Err.Line("summaries and paraphrases are written by " + cfg.Model.Provider + " " + cfg.Model.ID + "; --offline does without it")
		}
	}
	t.Told = func(trace int) { m.Err.Line(fmt.Sprintf("trace %d of %d", trace, t.Traces)) }
	got, err := t.Run(ctx, folder)
	if err != nil {
		return err
	}
	if m.JSON {
		return m.PrintJSON(got)
	}
	cli.Columns(m.Out, got.Rows, []string{"METHOD", "HOPS", "CYCLES", "QUERIES", "FOUND", "SD", "SURE", "FALSE", "SD", "OPEN", "PULLS", "CONTEXT", "REREAD"}, func(r bench.Row) []string {
		share := func(f float64) string { return strconv.FormatFloat(100*f, 'f', 1, 64) }
		return []string{r.Method, strconv.Itoa(r.Hops), strconv.Itoa(r.Cycles), r.Query, share(r.Mean), share(r.SD), share(r.Sure), share(r.False), share(r.FalseSD), share(r.Open),
			strconv.FormatFloat(r.Pulls, 'f', 2, 64), strconv.FormatFloat(r.Context, 'f', 0, 64), strconv.FormatFloat(r.Reread, 'f', 0, 64)}
	})
	m.Out.Printf("%d traces of %d facts and %d tokens, a window of %d; shares in percent, pulls and tokens a question; --help says what each column is\n", got.Traces, got.Needles, got.Flood, got.Window)
	return nil
}

func benchNeedles(ctx context.Context, m *cli.Main, n *needles) (err error) {
	folder, remove, err := bench.Folder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	ctx, stop := cli.UntilInterrupt(ctx) // else its folder stays
	defer stop()
	return refused(m, runNeedles(ctx, m, n, folder, m.Changed))
}
