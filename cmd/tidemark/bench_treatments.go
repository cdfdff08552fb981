package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/bench"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/paging"
)

// treatmentBench is the flags of `tidemark bench treatments`.
type treatmentBench struct {
	bench.Treatments
	window int64
	policy string
	alone  bool
}

// treatedSession is what one session came to under each treatment.
type treatedSession struct {
	Session    string          `json:"session"`
	Treatments []bench.Treated `json:"treatments"`
}

// treatmentNames are those that are compared, no proxy first.
func treatmentNames() []string { return append([]string{bench.Direct}, treatments()[:4]...) }

func (m *Main) benchTreatments() *cobra.Command {
	t := &treatmentBench{Treatments: bench.Treatments{Names: treatmentNames(), Requests: 200, Bytes: 4000, Seed: 1}, window: 200_000, policy: paging.Policies()[0]}
	c := &cobra.Command{Use: "treatments", Short: "Play a session of a coding agent through the proxy under each treatment", Args: cobra.NoArgs,
		Long: `Play the same session of a coding agent without a proxy and through the proxy under
each treatment (Pichay, table 5), over HTTP, against an API of this process that bills
as a prompt cache does: the longest prefix that ended at a cache marker less than five
minutes ago, at most 20 blocks before a marker, at most 4 markers. Nothing leaves this
machine, no key is used. The clock is a simulated one.

The session is made, the same for each --seed: 18 tools of 60 KB, a billing header that
changes with every request, reminders that come and go, cache markers that move, a call
for a title, sub-agents, reads, edits, commands, turns of a person. Its agent reacts: it
looks for what it needs in the very request that it was sent. Where a stub stands there,
that is a fault: it asks for the original (memory_fault) or reads the file again. The
task is done when all facts that it was to find are recorded as the files have them.

Tokens are estimated, as everywhere here. COST is that of the input in tokens of its
list price: what is read from the cache at 0.1, what is written to it at 1.25. The
treatment observe changes no byte: it must equal none in every figure but seconds.`,
		Example: `  tidemark bench treatments
  tidemark bench treatments --requests 400 --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return refused(cmd, m.runTreatments(cmd.Context(), t))
		}}
	f := c.Flags()
	f.StringSliceVar(&t.Names, "treatment", t.Names, "treatments to compare, the first is the one to compare with")
	f.IntVar(&t.Requests, "requests", t.Requests, "requests of the session that is made")
	f.IntVar(&t.Bytes, "bytes", t.Bytes, "bytes of its results, about")
	f.Uint64Var(&t.Seed, "seed", t.Seed, "the same seed makes the same session")
	f.Int64Var(&t.window, "window", t.window, "tokens that the model takes: how full it is decides what leaves")
	f.StringVar(&t.policy, "policy", t.policy, fmt.Sprint("policy of paging: ", paging.Policies()))
	f.BoolVar(&t.alone, "alone", false, "without tools and tags of ours: the model takes no part, and has to read again what left")
	return m.jsonFlag(c)
}

func (t *treatmentBench) check() error {
	for i, name := range t.Names {
		if !slices.Contains(treatmentNames(), name) {
			return usagef("--treatment %s: want some of %v", name, treatmentNames())
		}
		if slices.Contains(t.Names[:i], name) {
			return usagef("--treatment: %s is named twice", name)
		}
	}
	if t.window < 1000 || t.window > 100_000_000 {
		return usagef("--window %d: want 1000 to 100000000 tokens", t.window)
	}
	if !slices.Contains(paging.Policies(), t.policy) {
		return usagef("--policy %s: want one of %v", t.policy, paging.Policies())
	}
	return nil
}

func (m *Main) runTreatments(ctx context.Context, t *treatmentBench) (err error) {
	if err := t.check(); err != nil {
		return err
	}
	folder, remove, err := bench.Folder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	t.Via, t.Told = native.Transport(), m.telling()
	t.Door = func(_ context.Context, api string) (bench.Door, error) { return t.openDoor(folder, api) }
	got, err := t.Run(ctx)
	if err != nil {
		return err
	}
	return m.printTreatments(treatedSession{fmt.Sprintf("made, %d requests", t.Requests), got})
}

// openDoor serves a new store in a folder, in front of an API.
func (t *treatmentBench) openDoor(folder, api string) (d bench.Door, err error) {
	home, err := os.MkdirTemp(folder, "home-")
	if err != nil {
		return d, err
	}
	cfg, err := config.Parse("treatments", fmt.Appendf(nil, `{"model":{"provider":"offline"},"proxy":{"upstream":"%s","window":%d,"cooperate":%t},"compaction":{"paging":{"policy":"%s"}}}`,
		api, t.window, !t.alone, t.policy))
	if err != nil {
		return d, err
	}
	n, err := newNode(home, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return d, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return d, errors.Join(err, n.close())
	}
	srv := &http.Server{Handler: n.handler(""), ReadHeaderTimeout: headerTimeout, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)}
	served := make(chan struct{})
	go func() { // ends with Close
		defer close(served)
		_ = srv.Serve(l)
	}()
	return bench.Door{URL: "http://" + l.Addr().String(), Close: func() error {
		err := srv.Close()
		<-served
		return errors.Join(err, n.close())
	}}, nil
}

// printTreatments prints the paper's table 5 of the session, and what else was measured.
func (m *Main) printTreatments(s treatedSession) error {
	if m.json {
		return m.printJSON(struct {
			Sessions []treatedSession `json:"sessions"`
		}{[]treatedSession{s}})
	}
	m.out.line(titleOf(s.Session))
	table(m.out, treatedRows(s.Treatments))
	return nil
}

func treatedRows(list []bench.Treated) [][]string {
	tokens := func(n tidemark.Tokens) string { return strconv.FormatInt(int64(n), 10) }
	head := []string{"METRIC"}
	for _, t := range list {
		head = append(head, t.Treatment)
	}
	rows := [][]string{head}
	add := func(name string, of func(bench.Treated) string) {
		row := []string{name}
		for _, t := range list {
			row = append(row, of(t))
		}
		rows = append(rows, row)
	}
	add("API calls", func(t bench.Treated) string { return strconv.Itoa(t.Calls) })
	add("effective input tokens", func(t bench.Treated) string { return tokens(t.Effective) })
	add("cache read tokens", func(t bench.Treated) string { return tokens(t.Read) })
	add("task completed", func(t bench.Treated) string {
		if t.Completed {
			return "yes"
		}
		return fmt.Sprintf("no, %d of %d facts", t.Found, t.Facts)
	})
	add("token reduction", func(t bench.Treated) string { return inPercent(t.Reduction) })
	add("tokens a call", func(t bench.Treated) string { return fixedPoint(t.PerCall, 0) })
	add("cache read share", func(t bench.Treated) string { return inPercent(t.Share) })
	add("cost", func(t bench.Treated) string { return fixedPoint(t.Cost, 0) })
	add("cost by the first", func(t bench.Treated) string { return fixedPoint(t.CostBy, 3) })
	add("faults", func(t bench.Treated) string { return strconv.Itoa(t.Missing) })
	add("  had back by memory_fault", func(t bench.Treated) string { return strconv.Itoa(t.Restored) })
	add("  read again", func(t bench.Treated) string { return strconv.Itoa(t.Reread) })
	add("releases by the model", func(t bench.Treated) string { return strconv.Itoa(t.Released) })
	add("answers that a client must not see so", func(t bench.Treated) string { return strconv.Itoa(t.Leaks) })
	add("the client sees what the model said", func(t bench.Treated) string { return map[bool]string{true: "yes", false: "no"}[t.Same] })
	add("seconds", func(t bench.Treated) string { return (time.Duration(t.Seconds*1000) * time.Millisecond).String() })
	return rows
}
