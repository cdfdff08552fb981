package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
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
		m.benchNeedles(), m.benchLocomo(), m.benchQuality(), m.benchTreatments(), m.benchEpisodes())
}

func (m *Main) benchLocomo() *cobra.Command {
	var rankings string
	var vectors bool
	c := &cobra.Command{Use: "locomo FILE...", Short: "Measure recall on conversations of LoCoMo", Args: cobra.MinimumNArgs(1),
		Long: `Import conversations of LoCoMo (github.com/snap-research/locomo) into sessions, each
as a group of two, ask their questions as any recall does, and measure the share of
each question's evidence among the first results: over all, by category and by
conversation. Beside them stands what the rules alone give over all turns. With
--vectors no session is asked: words and the vectors of recall.embeddings rank all
turns. The weights of the rules were found on conversations 26, 30 and 41: others
tell more.`,
		Example: `  tidemark bench locomo locomo/*.json --json --rankings ranked.jsonl`,
		RunE: func(cmd *cobra.Command, args []string) error {
			list, err := readLocomo(args)
			if err != nil {
				return err
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

func readLocomo(paths []string) ([]bench.Conversation, error) {
	var list []bench.Conversation
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		c, err := bench.ReadLocomo(path, raw)
		if err != nil {
			return nil, &fixed{err, "give conversations of LoCoMo: an object with session_1, session_1_date_time, … and qa"}
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
