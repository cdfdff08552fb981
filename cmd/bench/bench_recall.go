package main

import (
	"context"
	"errors"

	"github.com/tidemark-ai/tidemark/bench"
	"github.com/tidemark-ai/tidemark/cmd/cli"
)

func benchRecall(ctx context.Context, m *cli.Main, s *bench.Scale) (err error) {
	folder, remove, err := bench.Folder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	ctx, stop := cli.UntilInterrupt(ctx) // else its folder stays
	defer stop()
	s.Told = m.Telling()
	got, err := s.Run(ctx, folder)
	m.ProgressEnd()
	if err != nil {
		return refused(m, err)
	}
	return cli.Either(m, got, func() error {
		for _, kind := range []string{"exact", "words", "question", "common", "absent"} {
			q := got.Queries[kind]
			m.Out.Printf("%-9s p50 %6.2f ms  p99 %6.2f ms  max %6.2f ms\n", kind, q.P50, q.P99, q.Max)
		}
		m.Out.Printf("all       p50 %6.2f ms  p99 %6.2f ms  max %6.2f ms\n%d messages and %d beside: written in %.1f s, indexed in %.1f s; exact ones found first %.1f %%\n",
			got.All.P50, got.All.P99, got.All.Max, got.Events, got.Beside, got.Write/1000, got.Index/1000, 100*got.Exact)
		return nil
	})
}
