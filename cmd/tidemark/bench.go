package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/bench"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room/vectors"
	"github.com/tidemark-ai/tidemark/setup"
)

func (m *Main) benchCommand() *cobra.Command {
	return group("bench", "Repeat the benchmarks of the papers", `  tidemark bench needles
  tidemark bench needles --table 1
  tidemark bench locomo 26.json 30.json 41.json
  tidemark bench quality sessions.jsonl --plan
  tidemark bench treatments
  tidemark bench episodes --simulate paper`,
		m.benchNeedles(), m.benchLocomo(), m.benchRecall(), m.benchQuality(), m.benchTreatments(), m.benchEpisodes())
}

func (m *Main) benchLocomo() *cobra.Command {
	var rankings string
	var vectors, held bool
	c := &cobra.Command{Use: "locomo FILE...", Short: "Measure recall on conversations of LoCoMo", Args: cobra.MinimumNArgs(1),
		Long: `Import conversations of LoCoMo (github.com/snap-research/locomo) into sessions, each
as a group of two, ask their questions as any recall does, and measure the share of
each question's evidence among the first results: over all, by category and by
conversation. Beside them stands what the rules alone give over all turns. With
--vectors no session is asked: words and the vectors of recall.embeddings rank all
turns. The weights of the rules were found on conversations 26, 30 and 41: others
tell more.

--leave-one-out judges each conversation by weights that were chosen on the others:
from one half for every rule, one weight after the other takes the step of 0, 0.5,
1, 1.5 or 2 that finds most at 5, 10 and 25, up to 12 times over. It ranks by the
rules, without sessions, and takes some seconds for three conversations. The rules
themselves stay as they are.`,
		Example: `  tidemark bench locomo locomo/*.json --json --rankings ranked.jsonl
  tidemark bench locomo locomo/*.json --leave-one-out`,
		RunE: func(cmd *cobra.Command, args []string) error {
			list, err := readLocomo(args)
			if err != nil {
				return err
			}
			switch {
			case held && vectors:
				return usagef("%s: --leave-one-out ranks by words: leave --vectors out", cmd.CommandPath())
			case held:
				return m.runHeld(cmd, list, rankings)
			}
			got, ranked, err := m.runLocomo(cmd.Context(), list, vectors)
			if err != nil {
				return refused(cmd, err)
			}
			if rankings != "" {
				if err := writeRankings(rankings, ranked); err != nil {
					return err
				}
			}
			if m.json {
				return m.printJSON(got)
			}
			return m.printLocomo(got)
		}}
	c.Flags().StringVar(&rankings, "rankings", "", "write the order of each question to this file, a line each")
	c.Flags().BoolVar(&vectors, "vectors", false, "by the vectors of recall.embeddings, too")
	c.Flags().BoolVar(&held, "leave-one-out", false, "judge each by weights of the rules that were chosen on the others")
	return m.jsonFlag(c)
}

// runLocomo asks sessions or, by vectors, the rules.
func (m *Main) runLocomo(ctx context.Context, list []bench.Conversation, vectors bool) (got bench.Locomo, ranked []bench.Ranking, err error) {
	by, err := m.benchVectors(ctx, vectors)
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
func (m *Main) benchVectors(ctx context.Context, wanted bool) (vectors.Embedder, error) {
	if !wanted {
		return nil, nil
	}
	home, err := m.homeDir()
	if err != nil {
		return nil, err
	}
	cfg, _, err := m.load(ctx, home)
	if err != nil {
		return nil, err
	}
	by := setup.Embedder(cfg, native.NewRuntime(nil), native.Transport())
	if by == nil {
		return nil, &fixed{fmt.Errorf("--vectors: recall.embeddings is off: %w", tidemark.ErrInvalid),
			"set recall.embeddings to openai (TIDEMARK_RECALL_EMBEDDINGS=openai), and recall.embeddingUrl for an endpoint of your own, or leave --vectors out"}
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

func (m *Main) printLocomo(l bench.Locomo) error {
	rows := recallRows(l)
	if l.Rules != nil {
		rows = append(rows, recallRow("all, by the rules alone", l.Rules.Recall))
	}
	table(m.out, rows)
	for _, v := range []recall.Verdict{recall.Confident, recall.Weak, recall.Nothing} {
		j := l.ByVerdict[v]
		m.out.printf("%s: %d questions, %d of them adversarial; to %.1f %% of the others the first result is evidence\n", v, j.Questions, j.Adversarial, 100*j.First)
	}
	m.out.printf("%d questions; within 1,000, 2,000 and 4,000 tokens: %.3f %.3f %.3f; index %.1f ms a conversation, %.2f ms a question\n",
		l.Questions, l.WithinTokens["1000"], l.WithinTokens["2000"], l.WithinTokens["4000"], l.IndexMs, l.QueryMs)
	return nil
}
