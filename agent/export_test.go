package agent

import (
	"context"
	"fmt"

	"github.com/tidemark-ai/tidemark/host"
)

// Facts returns the ledger, newest first. next is empty on the last page.
func (led *ledger) Facts(ctx context.Context, cursor string, limit int) (page []Fact, next string, err error) {
	limit = pageLimit(limit)
	before, err := parseCursor(cursor)
	if err != nil {
		return nil, "", err
	}
	all, err := host.Read(ctx, led.cfg.DB, "list facts", scanFact, `SELECT `+factColumns+` FROM agent_facts f JOIN agent_extractions x ON x.agent = f.agent AND x.id = f.extraction
		WHERE f.agent = ? AND f.seq < ? ORDER BY f.seq DESC LIMIT ?`, led.cfg.Name, before, limit+1)
	page, next = paged(all, limit, func(f Fact) string { return fmt.Sprint(f.seq) })
	return page, next, err
}
