package session

import (
	"context"
	"fmt"
	"strings"

	"github.com/tidemark-ai/tidemark"
)

// grant gives a call a part of the turn's budget, where it has one, and writes it down: of several that begin at once
// each has its part of what is left, and some stays to read their answers with. A call that had its part in an
// earlier life keeps it.
func (s *Session) grant(ctx context.Context, r *run, c call, most tidemark.Tokens) (tidemark.Tokens, error) {
	rows, err := s.DB.Query(ctx, `SELECT (SELECT spent FROM calls WHERE run = ? AND round = ? AND n = ?),
		(SELECT count(*) FROM calls WHERE run = ? AND round = ? AND spent = 0 AND state <> 'done' AND json_extract(call, '$.name') = ?),
		(SELECT coalesce(sum(spent), 0) FROM calls WHERE run = ? AND round = ?),
		(SELECT coalesce(sum(spent), 0) FROM calls WHERE run = ?) + (SELECT spent FROM runs WHERE id = ?)`,
		r.ID, r.Round, c.N, r.ID, r.Round, delegateName, r.ID, r.Round, r.ID, r.ID)
	if err != nil {
		return 0, fmt.Errorf("read the budget: %w", err)
	}
	if had := tidemark.Tokens(rows[0].Int(0)); had > 0 {
		return had, nil
	}
	if budget := s.settings().limits.Budget; budget > 0 {
		given := tidemark.Tokens(rows[0].Int(2)) // to others of this round
		left := budget - tidemark.Tokens(rows[0].Int(3))
		before := left + given
		most = min(most, (before-before/keptShare-given)/tidemark.Tokens(max(rows[0].Int(1), 1)))
		if most < MinDelegateBudget {
			return 0, fmt.Errorf("%d tokens are left of this turn's budget, too few to delegate: do it yourself, or say what is left: %w", max(left, 0), tidemark.ErrInvalid)
		}
	}
	return most, s.spendOn(ctx, r, c, most)
}

// spendOn writes down what a call delegated: first what it may cost, then what it did.
func (s *Session) spendOn(ctx context.Context, r *run, c call, n tidemark.Tokens) error {
	err := s.DB.Tx(ctx, []tidemark.Stmt{
		{SQL: `UPDATE runs SET updated = ? WHERE id = ? AND owner = ? AND state = 'tools' AND log = ?`, Args: []any{s.Runtime.Now().UnixMilli(), r.ID, r.owner, r.Log}, Want: 1},
		{SQL: `UPDATE calls SET spent = ? WHERE run = ? AND round = ? AND n = ?`, Args: []any{int64(n), r.ID, r.Round, c.N}, Want: 1},
	})
	if err != nil {
		return fmt.Errorf("note the budget of call %s: %w", c.ID, err)
	}
	return nil
}

// answerOf is what the parent reads. What is ours stands first, so that nothing in an answer can pass for it.
func answerOf(id string, key tidemark.Key, out tidemark.Outcome) tidemark.Block {
	if out.Error != "" {
		return tidemark.ToolResult(id, fmt.Sprintf("[%s failed, having spent %d tokens: %s Recall with scope agent finds what was said there.]", key, out.Spent, sentence(out.Error)), true)
	}
	text := strings.TrimSpace(out.Text)
	if text == "" {
		text = wordless
	}
	entry, shown := string(key)+"/"+string(out.Entry), ""
	if len(text) > delegateBytes {
		page := wholeRunes(text[:delegateBytes])
		shown = fmt.Sprintf(" These are the first %d of %d bytes: recall with {\"entry\": %q, \"offset\": %d} reads on.", len(page), len(text), entry, len(page))
		text = page
	}
	return tidemark.ToolResult(id, fmt.Sprintf("[Answer of %s, which spent %d tokens.%s Recall with entry %s reads it again, with scope agent it finds what led there.]\n\n%s", key, out.Spent, shown, entry, text), false)
}

// sentence ends a text with a full stop.
func sentence(text string) string {
	if text = strings.TrimSpace(text); strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

// maxFarEntry bounds the name of a message of a child.
const maxFarEntry = 400

// readChild reads a message of a conversation that was delegated to, KEY/ENTRY as answers name it. It is for the
// owner's conversations of the same agent, which may search there, too.
func (s *Session) readChild(ctx context.Context, name string, offset int) (string, error) {
	at := max(strings.LastIndexByte(name, '/'), 0)
	key, err := tidemark.ParseKey(name[:at])
	id := strings.TrimPrefix(name[at:], "/")
	if err != nil || len(name) > maxFarEntry || len(id) > maxID || key.Channel() != tidemark.ChannelDelegate || key.Agent() != s.Key.Agent() {
		return "", fmt.Errorf("entry %.80q: want the id of one here, or one of a conversation that was delegated to, as its answer names it: %w", name, tidemark.ErrInvalid)
	}
	if s.Children == nil || !s.Scope().Owner {
		return "", fmt.Errorf("entry %.80q: this conversation does not read others: %w", name, tidemark.ErrForbidden)
	}
	text, err := s.Children.Read(ctx, key, tidemark.EntryID(id), offset)
	if err != nil {
		return "", fmt.Errorf("read entry %.80q: %s: %w", name, inWords(err), tidemark.ErrInvalid)
	}
	return text, nil
}
