package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/bench"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room/vectors"
	"github.com/tidemark-ai/tidemark/setup"
)

// runLocomo asks sessions or, by vectors, the rules.
func runLocomo(ctx context.Context, m *cli.Main, list []bench.Conversation, byVectors bool) (got bench.Locomo, ranked []bench.Ranking, err error) {
	by, err := benchVectors(ctx, m, byVectors)
	if err != nil {
		return got, nil, err
	}
	if by != nil {
		return bench.RunLocomo(ctx, list, by)
	}
	folder, remove, err := bench.Folder()
	if err != nil {
		return got, nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	return bench.RunLocomoSessions(ctx, list, folder)
}

// benchVectors returns who makes vectors, as it is configured; nil when they are not wanted.
func benchVectors(ctx context.Context, m *cli.Main, wanted bool) (vectors.Embedder, error) {
	if !wanted {
		return nil, nil
	}
	cfg, err := m.SettingsOf(ctx)
	if err != nil {
		return nil, err
	}
	by := setup.Embedder(cfg, native.NewRuntime(nil), native.Transport())
	if by == nil {
		return nil, cli.Advise(fmt.Errorf("--vectors: recall.embeddings is off: %w", tidemark.ErrInvalid),
			"set recall.embeddings to openai (TIDEMARK_RECALL_EMBEDDINGS=openai), and recall.embeddingUrl for an endpoint of your own, or leave --vectors out")
	}
	return by, nil
}

func writeRankings(path string, ranked []bench.Ranking) error {
	var b strings.Builder
	for _, r := range ranked {
		raw, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("encode ranking: %w", err)
		}
		b.Write(raw)
		b.WriteByte('\n')
	}
	const perm = 0o644
	return os.WriteFile(path, []byte(b.String()), perm)
}

func printLocomo(m *cli.Main, l bench.Locomo) {
	rows := recallRows(l)
	if l.Rules != nil {
		rows = append(rows, recallRow("all, by the rules alone", l.Rules.Recall))
	}
	cli.PrintTable(m.Out, rows)
	for _, v := range []recall.Verdict{recall.Confident, recall.Weak, recall.Nothing} {
		j := l.ByVerdict[v]
		m.Out.Printf("%s: %d questions, %d of them adversarial; to %.1f %% of the others the first result is evidence\n", v, j.Questions, j.Adversarial, 100*j.First)
	}
	m.Out.Printf("%d questions; within 1,000, 2,000 and 4,000 tokens: %.3f %.3f %.3f; index %.1f ms a conversation, %.2f ms a question\n",
		l.Questions, l.WithinTokens["1000"], l.WithinTokens["2000"], l.WithinTokens["4000"], l.IndexMs, l.QueryMs)
}

type locomoFlags struct {
	Rankings string
	Vectors  bool
}

func benchLocomo(ctx context.Context, m *cli.Main, f *locomoFlags) error {
	list, err := readLocomo(m.Args)
	if err != nil {
		return err
	}
	got, ranked, err := runLocomo(ctx, m, list, f.Vectors)
	if err != nil {
		return refused(m, err)
	}
	if f.Rankings != "" {
		if err := writeRankings(f.Rankings, ranked); err != nil {
			return err
		}
	}
	return cli.Either(m, got, func() { printLocomo(m, got) })
}

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

// recallRows are the rows of a table: by category, by conversation and over all.
func recallRows(l bench.Locomo) [][]string {
	rows := [][]string{{"CATEGORY", "@5", "@10", "@25"}}
	for _, group := range []struct {
		name string
		of   map[string]map[string]float64
	}{{"", l.ByCategory}, {"conversation ", l.ByFile}} {
		for _, name := range sortedKeys(group.of) {
			rows = append(rows, recallRow(group.name+name, group.of[name]))
		}
	}
	return append(rows, recallRow("all", l.Recall))
}

func recallRow(name string, r map[string]float64) []string {
	return []string{name, fmt.Sprintf("%.3f", r["5"]), fmt.Sprintf("%.3f", r["10"]), fmt.Sprintf("%.3f", r["25"])}
}
