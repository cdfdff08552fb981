package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark/bench"
)

func (m *Main) benchRecall() *cobra.Command {
	s := bench.Scale{Events: 100_000, Asks: 200}
	c := &cobra.Command{Use: "recall", Short: "Measure recall over a long log", Args: cobra.NoArgs,
		Long: `Write a log as agents write them into a database of its own, index it, and ask for
identifiers, for words, long questions, words that are everywhere and words that
are nowhere. --beside puts another conversation into the same database.`,
		Example: `  tidemark bench recall --events 1000000 --beside 1000000 --json`,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			folder, remove, err := bench.Folder()
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, remove()) }()
			ctx, stop := untilInterrupt(cmd.Context()) // else its folder stays
			defer stop()
			s.Told = m.telling()
			got, err := s.Run(ctx, folder)
			m.progressEnd()
			if err != nil {
				return refused(cmd, err)
			}
			if m.json {
				return m.printJSON(got)
			}
			for _, kind := range []string{"exact", "words", "question", "common", "absent"} {
				q := got.Queries[kind]
				m.out.printf("%-9s p50 %6.2f ms  p99 %6.2f ms  max %6.2f ms\n", kind, q.P50, q.P99, q.Max)
			}
			m.out.printf("all       p50 %6.2f ms  p99 %6.2f ms  max %6.2f ms\n%d messages and %d beside: written in %.1f s, indexed in %.1f s; exact ones found first %.1f %%\n",
				got.All.P50, got.All.P99, got.All.Max, got.Events, got.Beside, got.Write/1000, got.Index/1000, 100*got.Exact)
			return nil
		}}
	f := c.Flags()
	f.IntVar(&s.Events, "events", s.Events, "messages of the conversation")
	f.IntVar(&s.Beside, "beside", s.Beside, "messages of another one in the same database")
	f.IntVar(&s.Asks, "asks", s.Asks, "queries of each kind")
	return m.jsonFlag(c)
}
