package session

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/room"
)

// Compacted is the data of a compaction event.
type Compacted struct {
	Reason       string             `json:"reason"`
	By           []string           `json:"strategies"`
	Tier         string             `json:"tier,omitempty"`   // of a summary: full, partial, plaintext
	PutOff       int                `json:"putOff,omitempty"` // times, before it was made
	Why          string             `json:"tierReason,omitempty"`
	Messages     int                `json:"messages"`            // that left the view
	Shortened    int                `json:"shortened,omitempty"` // blocks that stay in part
	Paged        int                `json:"pagedOut,omitempty"`  // and those that paging put out
	PagedBytes   int                `json:"pagedBytes,omitempty"`
	Cut          []compaction.Gap   `json:"cut,omitempty"` // blocks that lost their middle, or pictures and files, since the window has no room for more
	Episodes     *room.EpisodesLeft `json:"episodes,omitempty"`
	Before       tidemark.Tokens    `json:"beforeTokens"`
	After        tidemark.Tokens    `json:"afterTokens"`
	Limit        tidemark.Tokens    `json:"limitTokens"`
	Memories     int                `json:"memories"` // that were found; those known already are not written again
	Archive      string             `json:"archive,omitempty"`
	Usage        tidemark.Usage     `json:"usage"`
	Millis       int64              `json:"ms"`
	Overlay      tidemark.EntryID   `json:"overlay"`
	Instructions string             `json:"instructions,omitempty"`
	Short        tidemark.Tokens    `json:"shortTokens,omitempty"` // over the limit still
	Loose        int                `json:"loosePins,omitempty"`   // pinned entries without room
}

// counts sorts the edits of an act: those of paging, other blocks, and whether a span left without a summary. What an
// agent was done with is no span: nobody else said any of it, and it asks no model.
func (c *Compacted) counts(edits []tidemark.Edit, summary int) (spans bool) {
	c.Paged, c.PagedBytes = compaction.PagedOut(edits)
	for n, e := range edits {
		switch {
		case compaction.IsEpisodes(e):
		case e.Block > 0:
			if cut, ok := compaction.GapOf(e); ok {
				c.Cut = append(c.Cut, cut)
				continue
			}
			c.Shortened++
		case n != summary:
			spans = true
		}
	}
	c.Shortened -= c.Paged
	return spans
}

// pagedOut says how much paging put out, as people write it.
func (c Compacted) pagedOut() string {
	what := "results"
	if c.Paged == 1 {
		what = "result"
	}
	return fmt.Sprintf("%d %s (%s bytes)", c.Paged, what, grouped(c.PagedBytes))
}

// grouped is a number with commas.
func grouped(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// headStmt says in the head of the conversation what was done. Paging is no compaction: it counts nowhere as one, has
// no part in the rest of a summariser, and leaves the system prompt as it is, so that the prefix stays cached up to the
// first result that left.
func (s *Session) headStmt(size tidemark.Tokens, early bool) tidemark.Stmt {
	sql := `UPDATE heads SET compactions = compactions + 1, prompt = '', cooldown = 0, failures = 0, context = ? WHERE key = ?`
	if early {
		sql = `UPDATE heads SET context = ? WHERE key = ?`
	}
	return tidemark.Stmt{SQL: sql, Args: []any{int64(size), string(s.Key)}, Want: 1}
}

func countFacts(xs []tidemark.Extraction) int {
	n := 0
	for _, x := range xs {
		n += len(x.Facts)
	}
	return n
}

// cutLine says how much of what was said last did not fit into the window, "" where all of it did.
func (c Compacted) cutLine() string {
	var of, left, media int
	for _, cut := range c.Cut {
		of, left, media = of+cut.Of, left+cut.Left(), media+cut.Media
	}
	var out []string
	if media > 0 {
		out = append(out, fmt.Sprintf("its oldest pictures and files (%d) are left out", media))
	}
	if of > 0 {
		out = append(out, fmt.Sprintf("%s of its %s bytes are left out of the middle", grouped(left), grouped(of)))
	}
	if len(out) == 0 {
		return ""
	}
	return "What came last is larger than the model's window: " + strings.Join(out, ", and ") + ". All of it stays in the log."
}

// line is what people read of a compaction.
func (c Compacted) line() string {
	if cut := c.cutLine(); cut != "" {
		rest := c
		if rest.Cut = nil; len(c.By) == 1 { // nothing else was done
			return cut
		}
		return cut + " " + rest.line()
	}
	var b strings.Builder
	if c.Episodes != nil && len(c.By) == 1 {
		fmt.Fprintf(&b, "%s, %d tokens less; %d of a budget of %d", c.Episodes, c.Before-c.After, c.After, c.Episodes.Budget)
		if c.Episodes.Short > 0 {
			b.WriteString(", and no more can leave")
		}
		return b.String()
	}
	switch {
	case c.Messages == 0 && c.Shortened == 0 && c.Paged > 0:
		b.WriteString("Paged out " + c.pagedOut() + ", which stay whole in the log")
	case c.Messages == 0 && c.Shortened > 0:
		fmt.Fprintf(&b, "Shortened %d oversized block(s), which stay whole in the log", c.Shortened)
	case c.Shortened > 0:
		fmt.Fprintf(&b, "Compacted %d messages and shortened %d oversized block(s)", c.Messages, c.Shortened)
	default:
		fmt.Fprintf(&b, "Compacted %d messages", c.Messages)
	}
	if c.Paged > 0 && c.Messages+c.Shortened > 0 {
		b.WriteString(", paged out " + c.pagedOut())
	}
	if c.Episodes != nil {
		b.WriteString(". " + c.Episodes.String())
	}
	fmt.Fprintf(&b, ": context %d → %d tokens (limit %d)", c.Before, c.After, c.Limit)
	switch c.Tier {
	case tierPartial:
		fmt.Fprintf(&b, ", partial summary (%s)", c.Why)
	case tierPlaintext:
		fmt.Fprintf(&b, ", an extract in place of a summary (%s)", c.Why)
	}
	if c.PutOff > 0 {
		fmt.Fprintf(&b, ", made up for what was put off (failed tries: %d)", c.PutOff)
	}
	if c.Memories > 0 {
		b.WriteString(", " + memories(c.Memories))
	}
	if c.Short > 0 {
		fmt.Fprintf(&b, ", %d tokens over what was asked remain: the rest is pinned or of the newest turns", c.Short)
	}
	if c.Instructions != "" && c.Tier == "" {
		why := "there was too little for a summary"
		if !slices.Contains(c.By, compaction.Summary{}.Name()) {
			why = "the strategy " + strings.Join(c.By, ", ") + " writes no summary"
		}
		b.WriteString(", " + why + ", so what you asked to keep had no effect")
	}
	if c.Loose > 0 {
		fmt.Fprintf(&b, ", %d pinned message(s) found no room and lost their hold", c.Loose)
	}
	fmt.Fprintf(&b, ", %s", (time.Duration(c.Millis) * time.Millisecond).Round(time.Millisecond))
	return b.String()
}

// memories says how many, as people do. What of them is new, the agent decides when it writes them down.
func memories(n int) string {
	if n == 1 {
		return "1 memory offered"
	}
	return fmt.Sprintf("%d memories offered", n)
}
