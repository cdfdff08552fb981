package search

import (
	"context"
	"fmt"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/room"
)

// texts gives the text of each of some entries to use, one after the other: of a long one the piece that was
// found, or else its beginning. It reads no block from the bucket.
func (s *Pieces) texts(ctx context.Context, entries []tidemark.Entry, found map[int64]piece, use func(e tidemark.Entry, role tidemark.Role, p piece)) error {
	stored, err := s.Stored(entries)
	if err != nil {
		return err
	}
	var far []int64
	for i, e := range entries {
		if stored[i].Far {
			far = append(far, e.Seq)
		}
	}
	first, err := s.first(ctx, far)
	if err != nil {
		return err
	}
	now, err := s.amended(ctx, entries)
	if err != nil {
		return err
	}
	for i, e := range entries {
		m := stored[i].Message
		p, ok := found[e.Seq]
		lost := p.lost
		a, amended := now[e.Seq]
		if amended && p.amended { // it is shown whole, beside what it read before
			p, ok = piece{}, false
		}
		if !ok || lost {
			p, ok = first[e.Seq]
			lost = lost || p.lost
		}
		if !ok || p.lost {
			p.at = 0
			if whole := stored[i].Whole; whole != nil {
				if m, err = whole(ctx); err != nil {
					return fmt.Errorf("entry %s: %w", e.ID, err)
				}
			}
			p.text, _ = room.TextAt(m, 0, room.WordsBytes)
			p.text = strings.ToValidUTF8(p.text, "")
		}
		p.lost = lost
		if amended {
			p.text, p.amended, p.gone = over(a, p.text), true, a.gone
		}
		use(e, m.Role, p)
	}
	return nil
}

// amendedAt is where what a message reads now stands among the pieces of its text, one behind the other: behind all that it
// ever said.
const (
	amendedAt   = 1 << 50
	mostAmended = 4 * MaxK // that are read at once
)

// amended are what some messages read now, of those that were amended.
func (s *Pieces) amended(ctx context.Context, entries []tidemark.Entry) (map[int64]piece, error) {
	seqs := make([]int64, len(entries))
	for i, e := range entries {
		seqs[i] = e.Seq
	}
	rows, err := s.Made.Query(ctx, pieceTables, `SELECT p.seq, p.at, p.size, p.text FROM json_each(?) j JOIN pieces p ON p.seq = j.value AND p.at >= ? ORDER BY p.n DESC LIMIT ?`,
		room.JSON(seqs), amendedAt, mostAmended)
	if err != nil {
		return nil, fmt.Errorf("recall: what was amended: %w", err)
	}
	return s.of(ctx, rows), nil
}

// over is what recall shows of a message that was amended, where it is found by what it read before.
func over(p piece, text string) string {
	if p.gone {
		return text + "\n" + room.TakenBack
	}
	return text + "\n[The person corrected this message. It reads now: " + clip.To(p.text, maxRead) + "]"
}

// AmendStmts implements room.Amender: a message is found by what it reads now, and where it is found by what it read, that
// is said.
func (s *Room) AmendStmts(ctx context.Context, e tidemark.Entry, now string) ([]tidemark.Stmt, error) {
	if err := s.Made.Open(ctx, pieceTables); err != nil {
		return nil, err
	}
	home, err := s.skips.homeOf(ctx, e.Seq)
	if err != nil {
		return nil, err
	}
	before, err := host.Number(ctx, s.DB, "find earlier amendments", `SELECT count(*) FROM pieces WHERE seq = ? AND at >= ?`, e.Seq, amendedAt)
	if err != nil {
		return nil, err
	}
	return s.pieces.stmt(home, e.Seq, amendedAt+before, now)
}

// Amended drops what was read of a message before.
func (s *Room) Amended() { s.lately.Store(nil) }

// Reads implements room.Amender.
func (s *Room) Reads(ctx context.Context, ids []tidemark.EntryID) (map[tidemark.EntryID]room.Now, error) {
	rows, err := s.Made.Query(ctx, pieceTables, `SELECT p.seq, p.at, p.size, p.text, e.id FROM json_each(?) j JOIN entries e ON e.id = j.value
		JOIN logs l ON l.id = e.log AND l.key = ? JOIN pieces p ON p.seq = e.seq AND p.at >= ? ORDER BY p.n DESC LIMIT ?`, room.JSON(ids), string(s.Key), amendedAt, mostAmended)
	if err != nil {
		return nil, fmt.Errorf("read what messages say now: %w", err)
	}
	pieces, now := s.pieces.of(ctx, rows), map[tidemark.EntryID]room.Now{}
	for _, r := range rows {
		if p := pieces[r.Int(0)]; !p.lost {
			now[tidemark.EntryID(r.Text(4))] = room.Now{Text: p.text, Gone: p.gone}
		}
	}
	return now, nil
}
