package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/bench"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/setup"
)

// needles are the flags of `tidemark bench needles`.
type needles struct {
	bench.Needles
	bench.Table
	table   int
	offline bool
	session string
	said    int
	token   string
}

func (m *Main) benchNeedles() *cobra.Command {
	n := &needles{
		Needles: bench.Needles{Needles: 50, Events: 200, Cycles: 5, Budget: 4000, Headroom: 200, Tail: 3},
		Table:   bench.Table{Methods: bench.Methods, Hops: []int{1, 2}, Traces: 10, Needles: 50, Flood: 150_000, Window: 32_000, Seed: 1},
		table:   2, said: 3,
	}
	c := &cobra.Command{Use: "needles", Short: "Hide facts in a log, compact it, and recall them", Args: cobra.NoArgs,
		Long: `Play a log with hidden facts through a session that compacts to pointers, exactly
as many times as --cycles says, and ask recall for each fact and for as many that
are not there (Total Recall, table 2, with real cycles). Each compaction follows
an equal share of the log, the last its end; where a share does not fill the
context, talk that nobody asks for does. Behind the paper's needles come harder
ones: deep in large results, among others that differ in a digit or a word, asked
by half of what identifies them, named through another.

In the JSON compaction_ms is the median of planning one compaction over what is
in the context: what leaves it, the pointers and the marker. It is the figure
to hold against the paper's. compaction_whole_ms is the mean of one with all that
it writes then: the part of the archive, the overlay and its event, on a disk.

With --server the log is played through the API of a running server, which has a
tail and a headroom of its own and compacts when the context is full: --cycles is
the least then.

With --table 1 methods are compared (table 1), after 1, 3 and 5 compactions, by
questions in the words of the fact (exact), by half of them (partial) and in
others (paraphrased); one in four is for what was never said. A trace takes
some 20 s. A model that is configured writes summaries and paraphrases, about
ten calls a trace; --offline does without it. Columns, shares in percent:
  FOUND    the exact text of the fact is in the context or was pulled; SD, of the traces
  SURE     the answer is the fact, told as sure
  FALSE    false recall: the answer is told as sure and is not the fact, or the
           fact was never said; of all questions
  OPEN     the words of the question fit another fact as well
  PULLS    calls of recall a question
  CONTEXT  tokens of the context
  REREAD   tokens a question that stand for what has left, or are pulled`,
		Example: `  tidemark bench needles --needles 50 --events 200 --cycles 50 --budget 4000 --headroom 200 --tail 3 --json
  tidemark bench needles --server http://127.0.0.1:8787 --token secret --needles 10 --events 40
  tidemark bench needles --table 1 --methods pointer,summary,truncate,selfpaging --hops 1,2 --traces 10`,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			folder, remove, err := bench.Folder()
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, remove()) }()
			ctx, stop := untilInterrupt(cmd.Context()) // else its folder stays
			defer stop()
			return refused(cmd, m.runNeedles(ctx, n, folder, cmd.Flags().Changed))
		}}
	m.needlesFlags(c, n)
	return m.jsonFlag(c)
}

func (m *Main) needlesFlags(c *cobra.Command, n *needles) {
	f := c.Flags()
	f.IntVar(&n.Needles.Needles, "needles", n.Needles.Needles, "facts that are hidden, and as many of each harder kind")
	f.IntVar(&n.Events, "events", n.Events, "events among which they are, of table 2")
	f.IntVar(&n.Cycles, "cycles", n.Cycles, "compactions before the questions, of table 2")
	f.Int64Var((*int64)(&n.Budget), "budget", int64(n.Budget), "tokens of the context, of table 2")
	f.Int64Var((*int64)(&n.Headroom), "headroom", int64(n.Headroom), "tokens that a compaction frees below it, of table 2")
	f.IntVar(&n.Tail, "tail", n.Tail, "newest turns that stay, of table 2")
	f.BoolVar(&n.Plain, "plain", false, "the paper's needles alone, without the harder ones")
	f.StringVar(&n.token, "token", "", "token of the server, instead of TIDEMARK_TOKEN")
	f.StringVar(&n.session, "session", "", "session of the server that is made, default a new one")
	f.IntVar(&n.said, "said", n.said, "needles posted as messages to the server, each answered by its model")
	f.IntVar(&n.table, "table", n.table, "table of the paper: 2, or 1 to compare methods")
	f.StringSliceVar(&n.Methods, "methods", n.Methods, "methods of table 1")
	f.IntSliceVar(&n.Hops, "hops", n.Hops, "calls of recall that a question of table 1 may take")
	f.IntVar(&n.Traces, "traces", n.Traces, "traces of table 1")
	f.Int64Var((*int64)(&n.Flood), "flood", int64(n.Flood), "tokens of a trace of table 1")
	f.Int64Var((*int64)(&n.Window), "window", int64(n.Window), "context window of table 1, tokens")
	f.Uint64Var(&n.Seed, "seed", n.Seed, "of table 1: the same seed makes the same traces")
	f.BoolVar(&n.offline, "offline", false, "table 1 without the configured model")
}

// refused says of a set-up that cannot be run what to do: the configuration has no part in it.
func refused(cmd *cobra.Command, err error) error {
	var own *fixed
	if err == nil || errors.As(err, &own) || !errors.Is(err, tidemark.ErrInvalid) {
		return err
	}
	return &fixed{err, "correct what is named above; `" + cmd.CommandPath() + " --help` says what each flag means"}
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
				return usagef("--%s has an effect with %s only", flag, strings.Join(needlesWhere[flag], " and "))
			}
			return usagef("--%s has no effect with %s: leave it out", flag, where)
		}
	}
	return nil
}

// telling shows on a terminal how far a bench is.
func (m *Main) telling() bench.Told {
	if !m.Progress {
		return nil
	}
	var last time.Time
	return func(what string, done, of int) {
		const pause = 100 * time.Millisecond
		if time.Since(last) < pause {
			return
		}
		last = time.Now()
		text := strconv.Itoa(done)
		if of > 0 {
			text += " of " + strconv.Itoa(of)
		}
		m.err.printf("\r\x1b[K%s %s", text, safe(what))
	}
}

func (m *Main) runNeedles(ctx context.Context, n *needles, folder string, changed func(string) bool) error {
	base, err := m.named()
	switch {
	case err != nil:
		return err
	case m.server == "":
		base = "" // TIDEMARK_SERVER is for work, not for this
	}
	where := ""
	switch {
	case n.table == 1:
		where = "--table 1"
	case base != "":
		where = "--server"
	}
	if err := needless(where, changed); err != nil {
		return err
	}
	n.Needles.Told = m.telling()
	defer m.progressEnd()
	switch {
	case n.table != 1 && n.table != 2:
		return usagef("--table %d: want 1 or 2", n.table)
	case n.table == 1:
		return m.needlesTable(ctx, n, folder)
	case base != "":
		c := m.remote(base)
		key := n.session
		if key == "" {
			key = "needles-" + strings.ToLower(tidemark.NewID(native.NewRuntime(nil).Now()))
		}
		if n.token != "" {
			c.token = n.token
		}
		m.err.line("importing some thousand messages into " + c.where + " as session " + plainKey(key) + "; that may take minutes")
		found, err := bench.Server{Base: c.base, Token: c.token, Key: key, Via: c.rt, Said: n.said}.Run(ctx, n.Needles)
		return m.printFound(found, err, n.Cycles)
	}
	found, err := n.Needles.Run(ctx, folder)
	return m.printFound(found, err, n.Cycles)
}

// printFound prints what was measured, and what was not.
func (m *Main) printFound(found bench.Found, err error, cycles int) error {
	m.progressEnd()
	if err != nil {
		return err
	}
	if found.Cycles != cycles {
		m.err.printf("%d cycles were made where %d were asked for: a server compacts whenever the log fills the context\n", found.Cycles, cycles)
	}
	if found.Markers == nil {
		m.err.line("no marker stands in the context: compaction.strategies of the server names no pointer, so this tells of another strategy")
	}
	if m.json {
		return m.printJSON(found)
	}
	line := fmt.Sprintf("%d messages, %d cycles", found.Messages, found.Cycles)
	if found.Compaction != nil {
		line += fmt.Sprintf(", each planned in %.2f ms and done in %.1f", *found.Compaction, *found.Whole)
	}
	if found.Markers != nil {
		line += fmt.Sprintf(", %d markers of %d at most", *found.Markers, *found.Most)
	}
	m.out.printf("recall@10 %.1f %%, absent ones judged so %.1f %%, something else told as sure %.1f %%\n%s, %d messages in context; a query takes %.1f ms, p99 %.1f\n",
		100*found.Recall, 100*found.Absent, 100*found.False, line, found.InContext, found.Query, found.Slow)
	rows := [][]string{{"KIND", "FOUND", "FIRST", "SURE"}}
	for _, kind := range sortedKeys(found.ByKind) {
		rows = append(rows, []string{kind, shareOf(found.ByKind, kind), shareOf(found.First, kind), shareOf(found.Sure, kind)})
	}
	table(m.out, rows)
	return nil
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

func (m *Main) needlesTable(ctx context.Context, n *needles, folder string) error {
	t := n.Table
	t.Needles = n.Needles.Needles
	if !n.offline {
		home, err := m.homeDir()
		if err != nil {
			return err
		}
		cfg, _, err := m.load(ctx, home)
		if err != nil {
			return err
		}
		cfg.Resolve()
		if cfg.Model.Provider != config.Offline && needKey(cfg) == nil {
			t.Model, t.ModelID = setup.Provider(cfg, native.NewRuntime(nil), native.Transport()), cfg.Model.ID
			m.err.line("summaries and paraphrases are written by " + cfg.Model.Provider + " " + cfg.Model.ID + "; --offline does without it")
		}
	}
	t.Told = func(trace int) { m.err.line(fmt.Sprintf("trace %d of %d", trace, t.Traces)) }
	got, err := t.Run(ctx, folder)
	if err != nil {
		return err
	}
	if m.json {
		return m.printJSON(got)
	}
	rows := [][]string{{"METHOD", "HOPS", "CYCLES", "QUERIES", "FOUND", "SD", "SURE", "FALSE", "SD", "OPEN", "PULLS", "CONTEXT", "REREAD"}}
	for _, r := range got.Rows {
		share := func(f float64) string { return strconv.FormatFloat(100*f, 'f', 1, 64) }
		rows = append(rows, []string{r.Method, strconv.Itoa(r.Hops), strconv.Itoa(r.Cycles), r.Query, share(r.Mean), share(r.SD), share(r.Sure), share(r.False), share(r.FalseSD), share(r.Open),
			strconv.FormatFloat(r.Pulls, 'f', 2, 64), strconv.FormatFloat(r.Context, 'f', 0, 64), strconv.FormatFloat(r.Reread, 'f', 0, 64)})
	}
	table(m.out, rows)
	m.out.printf("%d traces of %d facts and %d tokens, a window of %d; shares in percent, pulls and tokens a question; --help says what each column is\n", got.Traces, got.Needles, got.Flood, got.Window)
	return nil
}
