package outbound

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room"
)

// maxQuoted is how many characters of a quoted message the model reads; the rest is in the conversation.
const maxQuoted = 240

// Wrote implements room.Addressee. All that they do not have yet goes to where they are now.
func (s *Room) Wrote(ctx context.Context, o tidemark.Origin, text string) ([]tidemark.Stmt, error) {
	if s.courier == nil || o.To == nil {
		return nil, nil
	}
	if err := s.Made.Open(ctx, tables); err != nil {
		return nil, err
	}
	who := o.Reader()
	stmts := []tidemark.Stmt{{
		SQL: `UPDATE outbound SET peer = ?, address = ?, hold = CASE hold WHEN 'closed' THEN '' ELSE hold END, next = CASE hold WHEN 'closed' THEN 0 ELSE next END
			WHERE key = ? AND open = 1 AND state = 'pending' AND peer IN (?, ?)`,
		Args: []any{who, room.JSON(o.To), string(s.Key), who, o.To.Reader()}}}
	if o.Message != "" {
		stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO heard(key, message, said, at) VALUES(?, ?, ?, ?) ON CONFLICT(key, message) DO NOTHING`,
			Args: []any{string(s.Key), o.Message, clip.Line(text, maxQuoted), s.Runtime.Now().UnixMilli()}})
	}
	return stmts, nil
}

// Quoted implements room.Addressee: the message is one of ours, by the ledger, or one of theirs. The line is marked as ours by
// its brackets, which what it repeats cannot close.
func (s *Room) Quoted(ctx context.Context, message string) (line string, err error) {
	if s.Made.Here(tables) {
		rows, err := s.DB.Query(ctx, `SELECT text, 'your' FROM (SELECT text FROM outbound WHERE key = ? AND id = ? AND id <> '' LIMIT 1)
			UNION ALL SELECT said, 'a' FROM heard WHERE key = ? AND message = ? LIMIT 1`, string(s.Key), message, string(s.Key), message)
		if err != nil {
			return "", fmt.Errorf("find quoted message: %w", err)
		}
		if len(rows) > 0 {
			said := clip.Line(rows[0].Text(0), maxQuoted)
			return fmt.Sprintf(tidemark.RepliesTo+"%s message: %q]", rows[0].Text(1), cmp.Or(strings.Map(unbracket, said), "(no text)")), nil
		}
	}
	return tidemark.RepliesTo + "an older message, which is not at hand.]", nil
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

// Amended implements room.Addressee.
func (s *Room) Amended(message, text string) []tidemark.Stmt {
	if !s.Made.Here(tables) {
		return nil
	}
	return []tidemark.Stmt{{SQL: `UPDATE heard SET said = ? WHERE key = ? AND message = ?`, Args: []any{clip.Line(text, maxQuoted), string(s.Key), message}}}
}

// originsRead is how many of the newest inputs are looked through for one of a person.
const originsRead = 2000

// Correspondent is where the person who talks here over a channel wrote from last; in the main session, the owner.
//
// # Errors
//
// ErrNotFound when nobody did lately.
func (s *Room) Correspondent(ctx context.Context) (tidemark.Origin, error) {
	if s.Made.Here(tables) { // else nobody ever did
		rows, err := s.DB.Query(ctx, `SELECT origin FROM (SELECT n, origin FROM inputs WHERE key = ? ORDER BY n DESC LIMIT ?)
			WHERE json_extract(origin, '$.to') IS NOT NULL AND json_extract(origin, '$.occasion') IS NULL
			AND (json_extract(origin, '$.owner') OR NOT ?) ORDER BY n DESC LIMIT 1`, string(s.Key), originsRead, s.Key.Main())
		if err != nil {
			return tidemark.Origin{}, fmt.Errorf("read who wrote: %w", err)
		}
		if len(rows) > 0 {
			var o tidemark.Origin
			err := json.Unmarshal(rows[0].Bytes(0), &o)
			return o, err
		}
	}
	return tidemark.Origin{}, fmt.Errorf("nobody wrote to %s over a channel: %w", s.Key, tidemark.ErrNotFound)
}
