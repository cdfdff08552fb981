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
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/setup"
)

// runLocomo asks sessions or, by vectors, the rules.
func runLocomo(ctx context.Context, m *cli.Main, list []bench.Conversation, vectors bool) (got bench.Locomo, ranked []bench.Ranking, err error) {
	by, err := benchVectors(ctx, m, vectors)
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
func benchVectors(ctx context.Context, m *cli.Main, wanted bool) (session.Embedder, error) {
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

func printLocomo(m *cli.Main, l bench.Locomo) error {
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
	return nil
}

type locomoFlags struct {
	Rankings             string
	Vectors, LeaveOneOut bool
}

func benchLocomo(ctx context.Context, m *cli.Main, f *locomoFlags) error {
	list, err := readLocomo(m.Args)
	if err != nil {
		return err
	}
	switch {
	case f.LeaveOneOut && f.Vectors:
		return cli.Usagef("%s: --leave-one-out ranks by words: leave --vectors out", m.Path())
	case f.LeaveOneOut:
		return runHeld(ctx, m, list, f.Rankings)
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
	return cli.Either(m, got, func() error { return printLocomo(m, got) })
}
