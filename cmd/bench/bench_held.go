package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark/bench"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/recall"
)

func readLocomo(paths []string) ([]bench.Conversation, error) {
	var list []bench.Conversation
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		c, err := bench.ReadLocomo(path, raw)
		if err != nil {
			return nil, cli.Advise(err, "give conversations of LoCoMo: an object with session_1, session_1_date_time, … and qa")
		}
		list = append(list, c)
	}
	return list, nil
}

// runHeld judges each conversation by weights that were chosen on the others.
func runHeld(ctx context.Context, m *cli.Main, list []bench.Conversation, rankings string) error {
	if len(list) < 2 {
		return cli.Usagef("%s --leave-one-out: %d file; want two or more, to choose on others than the one that is judged", m.Path(), len(list))
	}
	ctx, stop := cli.UntilInterrupt(ctx)
	defer stop()
	tell, done := m.Telling(), 0
	got, ranked, err := bench.LeaveOneOut(ctx, list, func(f bench.Fold) {
		if tell != nil {
			done++
			tell("conversation "+f.Conversation, done, len(list))
		}
	})
	m.ProgressEnd()
	if err != nil {
		return refused(m, err)
	}
	if rankings != "" {
		if err := writeRankings(rankings, ranked); err != nil {
			return err
		}
	}
	if m.JSON {
		return m.PrintJSON(got)
	}
	printHeld(m, got)
	return nil
}

func printHeld(m *cli.Main, h bench.Held) {
	cli.PrintTable(m.Out, recallRows(h.Locomo))
	m.Out.Printf("%d questions, each conversation by weights that were chosen on the others; within 1,000, 2,000 and 4,000 tokens: %.3f %.3f %.3f\n",
		h.Questions, h.WithinTokens["1000"], h.WithinTokens["2000"], h.WithinTokens["4000"])
	for _, f := range h.Folds {
		var weights []string
		for _, w := range recall.Weights() { // in their order
			weights = append(weights, fmt.Sprintf("%s %g", w.Rule, f.Weights[w.Rule]))
		}
		m.Out.Printf("held %s, on the others %.3f in %d tries: %s\n", f.Conversation, f.Found, f.Tries, strings.Join(weights, ", "))
	}
}

// recallRows are the rows of a table: by category, by conversation and over all.
func recallRows(l bench.Locomo) [][]string {
	rows := [][]string{{"CATEGORY", "@5", "@10", "@25"}}
	for _, group := range []struct {
		name string
		of   map[string]map[string]float64
	}{{"", l.ByCategory}, {"conversation ", l.ByFile}} {
		begin := len(rows)
		for name, r := range group.of {
			rows = append(rows, recallRow(group.name+name, r))
		}
		slices.SortFunc(rows[begin:], func(a, b []string) int { return cmp.Compare(a[0], b[0]) })
	}
	return append(rows, recallRow("all", l.Recall))
}

func recallRow(name string, r map[string]float64) []string {
	return []string{name, fmt.Sprintf("%.3f", r["5"]), fmt.Sprintf("%.3f", r["10"]), fmt.Sprintf("%.3f", r["25"])}
}
