package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/room"
)

// maxQuoted is how many characters of a quoted message the model reads; the rest is in the conversation.
const maxQuoted = 240

// hearStmts keep what a person wrote under the platform's name of it, and let go of what waited for them
// to write. All that they do not have yet goes to where they are now.
func (s *Session) hearStmts(in Input) []tidemark.Stmt {
	if s.Courier == nil || !s.made.Here(ledgerTables) || in.Origin.To == nil {
		return nil
	}
	who := readerOf(in.Origin)
	stmts := []tidemark.Stmt{{
		SQL: `UPDATE outbound SET peer = ?, address = ?, hold = CASE hold WHEN 'closed' THEN '' ELSE hold END, next = CASE hold WHEN 'closed' THEN 0 ELSE next END
			WHERE key = ? AND open = 1 AND state = 'pending' AND peer IN (?, ?)`,
		Args: []any{who, mustJSON(in.Origin.To), string(s.Key), who, peerOf(*in.Origin.To)}}}
	if in.Origin.Message != "" && in.Kind == InputMessage {
		stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO heard(key, message, said, at) VALUES(?, ?, ?, ?) ON CONFLICT(key, message) DO NOTHING`,
			Args: []any{string(s.Key), in.Origin.Message, clip.Line(room.Searchable(in.Message), maxQuoted), s.Runtime.Now().UnixMilli()}})
	}
	return stmts
}

// quoted puts before what a person wrote a line that says which message they answered: one of ours, by the
// ledger, or one of theirs. It is marked as ours by its brackets, which what it repeats cannot close.
func (s *Session) quoted(ctx context.Context, in Input) (tidemark.Message, error) {
	if in.Quoted == "" || in.Kind != InputMessage {
		return in.Message, nil
	}
	said, who := "", ""
	if s.made.Here(ledgerTables) {
		rows, err := s.DB.Query(ctx, `SELECT text, 'your' FROM (SELECT text FROM outbound WHERE key = ? AND id = ? AND id <> '' LIMIT 1)
			UNION ALL SELECT said, 'a' FROM heard WHERE key = ? AND message = ? LIMIT 1`, string(s.Key), in.Quoted, string(s.Key), in.Quoted)
		if err != nil {
			return in.Message, fmt.Errorf("find quoted message: %w", err)
		}
		if len(rows) > 0 {
			said, who = clip.Line(rows[0].Text(0), maxQuoted), rows[0].Text(1)
		}
	}
	line := tidemark.RepliesTo + "an older message, which is not at hand.]"
	if who != "" {
		line = fmt.Sprintf(tidemark.RepliesTo+"%s message: %q]", who, cmp.Or(strings.Map(unbracket, said), "(no text)"))
	}
	m := tidemark.Message{Role: in.Message.Role, Content: slices.Clone(in.Message.Content)}
	m.Content = slices.Insert(m.Content, 0, tidemark.Text(line))
	return m, nil
}

func unbracket(r rune) rune {
	switch r {
	case '[':
		return '('
	case ']':
		return ')'
	case '"':
		return '\''
	}
	return r
}
