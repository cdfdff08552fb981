package agent

import (
	"context"
	"fmt"

	"github.com/tidemark-ai/tidemark"
)

// Bounds of filling the index of words.
const (
	wordsPage  = 200
	wordsPages = 20 // for one search: what is older follows with the next
)

// words is what a fact is found by in the index.
func (a *Agent) words(text string) string { return a.stem.Row(text) }

// fillWords puts facts into the index that an older version logged, the newest first, some at a time. A new
// fact is there as soon as it is logged and its number is above all others, so what is missing is what stands
// before the first that is there: no other mark of progress is needed, and a crash loses nothing.
func (a *Agent) fillWords(ctx context.Context) error {
	for range wordsPages {
		if a.filled.Load() {
			return nil
		}
		rows, err := a.cfg.DB.Query(ctx, `SELECT seq, text FROM agent_facts WHERE seq < coalesce((SELECT rowid FROM agent_words ORDER BY rowid LIMIT 1), ?) ORDER BY seq DESC LIMIT ?`,
			int64(1)<<53, wordsPage)
		if err != nil {
			return fmt.Errorf("read facts without words: %w", err)
		}
		if len(rows) == 0 {
			a.filled.Store(true)
			return nil
		}
		stmts := make([]tidemark.Stmt, len(rows))
		for i, r := range rows {
			// Natively several agents share the table, and another may have come first.
			stmts[i] = tidemark.Stmt{SQL: `INSERT INTO agent_words(rowid, terms) SELECT ?, ? WHERE NOT EXISTS (SELECT 1 FROM agent_words WHERE rowid = ?)`,
				Args: []any{r.Int(0), a.words(r.Text(1)), r.Int(0)}}
		}
		if err := a.cfg.DB.Tx(ctx, stmts); err != nil {
			return fmt.Errorf("index facts: %w", err)
		}
	}
	return nil
}
