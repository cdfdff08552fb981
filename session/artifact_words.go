package session

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/room"
)

// The words of a message are in the index with it, up to wordsBytes of its text. A longer text is read to its
// end afterwards, piece by piece, each in a transaction of its own: to index 256 KiB at once took the memory of
// an instance. A row says from where on, so that a kill loses nothing; it is done by an alarm, and before the next
// search at the latest. A piece keeps its text, compressed, so that what is found deep in a large result is
// shown without reading it all.
const (
	wordsBytes   = 64 << 10
	pieceBytes   = 32 << 10
	pieceOverlap = 512     // what stands at the seam is found in one of both
	piecesAWake  = 4 << 20 // bytes of text that one wake reads
	pieceFinds   = 12      // pieces that a search reads, each of another message
	// wordsAfter is when an alarm reads the rest, and again when a turn is in work then: the memory that a large
	// message takes there is not to come on top of what a turn takes.
	wordsAfter = 30 * time.Second
)

// dueWords is due while a text is not read to its end.
const dueWords = "words"

// textParts yields what searchable joins, without joining it: a text may be as large as memory.
func textParts(m tidemark.Message) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, b := range m.Content {
			ok := true
			switch b.Type {
			case tidemark.TypeText:
				ok = yield(tidemark.StripReminders(b.Text))
			case tidemark.TypeToolUse:
				if !retold(b.Name) || b.Name == delimiterTool.Name { // what was looked for is not what was said, and what was learned is
					ok = yield(b.Name) && yield(" ") && yield(string(b.Input))
				}
			case tidemark.TypeDocument:
				ok = yield(b.Document())
			case tidemark.TypeToolResult:
				for _, c := range b.Content {
					if ok = ok && yield(c.Text) && yield("\n"); !ok {
						break
					}
				}
			}
			if !ok || !yield("\n") {
				return
			}
		}
	}
}

// textAt returns the text of a message from a place on, at most so many bytes, and how long all of it is; the
// same text that searchable gives.
func textAt(m tidemark.Message, from, most int) (text string, size int) {
	var b strings.Builder
	at, blank := 0, 0
	for part := range textParts(m) {
		if at == 0 {
			part = strings.TrimLeftFunc(part, unicode.IsSpace)
		}
		if part == "" {
			continue
		}
		if lo, hi := max(from-at, 0), min(from+most-at, len(part)); lo < hi {
			b.WriteString(part[lo:hi])
		}
		at += len(part)
		if trimmed := len(strings.TrimRightFunc(part, unicode.IsSpace)); trimmed > 0 {
			blank = len(part) - trimmed
		} else {
			blank += len(part)
		}
	}
	size = at - blank
	text = b.String()
	return text[:max(0, min(len(text), size-from))], size
}

// restStmts make the rest of a long text due to be read, in the transaction that stores its entry. One that was
// read meanwhile, by a recall side by side, is not read again.
func (s *Session) restStmts(ctx context.Context, e tidemark.Entry, full tidemark.Message) ([]tidemark.Stmt, error) {
	if !e.Origin.Findable() || !longer(full, wordsBytes) {
		return nil, nil
	}
	if err := s.made.Open(ctx, pieceTables); err != nil {
		return nil, err
	}
	return []tidemark.Stmt{
		{SQL: `INSERT INTO unread(key, entry, at) SELECT ?, ?, 0 WHERE NOT EXISTS (SELECT 1 FROM entries e JOIN pieces p ON p.seq = e.seq WHERE e.id = ?) ON CONFLICT(key, entry) DO NOTHING`,
			Args: []any{string(s.Key), string(e.ID), string(e.ID)}},
		s.dueStmt(dueWords, s.Runtime.Now().Add(wordsAfter), ""),
	}, nil
}

// readQuietly is readRest for an alarm.
func (s *Session) readQuietly(ctx context.Context) error {
	if s.activeRun() != "" {
		return s.DB.Tx(ctx, []tidemark.Stmt{s.dueStmt(dueWords, s.Runtime.Now().Add(wordsAfter), "")})
	}
	return s.readRest(ctx, piecesAWake)
}

// longer reports whether the text of a message is longer than that many bytes.
func longer(m tidemark.Message, most int) bool {
	n := 0
	for part := range textParts(m) {
		if n += len(part); n > most+1024 { // blanks around it do not count
			_, size := textAt(m, 0, 0)
			return size > most
		}
	}
	return false
}

// readRest puts the rest of long texts into the index, as much as is asked for.
func (s *Session) readRest(ctx context.Context, most int) error {
	if ok, err := s.made.Has(ctx, pieceTables); err != nil || !ok {
		return err
	}
	for {
		rows, err := s.DB.Query(ctx, `SELECT u.entry, u.at, e.seq FROM unread u JOIN entries e ON e.id = u.entry WHERE u.key = ? ORDER BY u.entry LIMIT 1`, string(s.Key))
		switch {
		case err != nil:
			return fmt.Errorf("read long texts: %w", err)
		case len(rows) == 0:
			return s.restRead(ctx)
		case most <= 0: // at the next wake
			return s.DB.Tx(ctx, []tidemark.Stmt{s.dueStmt(dueWords, s.Runtime.Now(), "")})
		}
		r := rows[0]
		n, err := s.readPieces(ctx, tidemark.EntryID(r.Text(0)), r.Int(2), int(r.Int(1)), most)
		if err != nil && !errors.Is(err, tidemark.ErrConflict) { // another one reads it, too
			return fmt.Errorf("read the text of %s: %w", r.Text(0), err)
		}
		most -= max(n, 1)
	}
}

// restRead ends the work on long texts, if it was due: most recalls have nothing to write.
func (s *Session) restRead(ctx context.Context) error {
	rows, err := s.DB.Query(ctx, `SELECT 1 FROM due WHERE key = ? AND kind = ? LIMIT 1`, string(s.Key), dueWords)
	if err != nil || len(rows) == 0 {
		return err
	}
	return s.DB.Tx(ctx, []tidemark.Stmt{{SQL: `DELETE FROM due WHERE key = ? AND kind = ? AND NOT EXISTS (SELECT 1 FROM unread WHERE key = ?)`,
		Args: []any{string(s.Key), dueWords, string(s.Key)}}})
}

// readPieces puts the text of a message into the index from a place on, and returns how many bytes it did.
func (s *Session) readPieces(ctx context.Context, id tidemark.EntryID, seq int64, at, most int) (done int, err error) {
	e, err := s.log.Entry(ctx, id)
	if err != nil {
		return 0, err
	}
	m, release, err := s.wordy(ctx, e)
	if err != nil {
		return 0, err
	}
	defer release()
	home, err := s.homeOf(ctx, seq)
	if err != nil {
		return 0, err
	}
	var pace room.Pace
	for done < most {
		stmts, next, err := s.pieceStmts(m, home, id, seq, at)
		if err == nil {
			err = s.DB.Tx(ctx, stmts)
		}
		if err != nil || next < 0 {
			return done, err
		}
		done, at = done+next-at, next
		if err := pace.Did(ctx, s.Runtime, room.PaceBytes); err != nil { // a piece is as much work as anything
			return done, err
		}
	}
	return done, nil
}

// pieceStmts put one piece of a text into the index and say from where to go on; next is -1 at the end. One that is
// there is made anew, but not from a message that has lost some of its text.
func (s *Session) pieceStmts(m tidemark.Message, home string, id tidemark.EntryID, seq int64, at int) (stmts []tidemark.Stmt, next int, err error) {
	text, size := textAt(m, at, pieceBytes)
	if at+len(text) < size {
		text = text[:seam(text)]
	}
	next = at + len(text) - pieceOverlap
	step := tidemark.Stmt{SQL: `UPDATE unread SET at = ? WHERE key = ? AND entry = ? AND at = ?`, Args: []any{next, string(s.Key), string(id), at}, Want: 1}
	if at+len(text) >= size || len(text) <= pieceOverlap {
		next = -1
		step = tidemark.Stmt{SQL: `DELETE FROM unread WHERE key = ? AND entry = ? AND at = ?`, Args: []any{string(s.Key), string(id), at}, Want: 1}
	}
	piece, err := s.pieceStmt(home, seq, int64(at), strings.ToValidUTF8(text, " "))
	return append([]tidemark.Stmt{step}, piece...), next, err
}

// pieceStmt puts a text into the index as a piece of a message.
func (s *Session) pieceStmt(home string, seq, at int64, text string) ([]tidemark.Stmt, error) {
	packed, err := archive.Gzip([]byte(text))
	return []tidemark.Stmt{{
		SQL: `INSERT INTO pieces(n, key, seq, at, size, text) SELECT coalesce(max(n), 0) + 1, ?, ?, ?, ?, ? FROM pieces WHERE true ON CONFLICT(seq, at) DO UPDATE SET size = excluded.size, text = excluded.text
			WHERE excluded.size >= pieces.size`,
		Args: []any{string(s.Key), seq, at, len(text), packed},
	}, {
		SQL:  `INSERT INTO piece_words(rowid, home, terms) SELECT n, ?, ? FROM pieces p WHERE seq = ? AND at = ? AND NOT EXISTS (SELECT 1 FROM piece_words WHERE rowid = p.n)`,
		Args: []any{home, s.Stemmer.Row(text), seq, at},
	}}, err
}

// seam returns where to cut a text: behind a line or a word near its end, and never within a character.
func seam(text string) int {
	last := text[len(text)-min(len(text), pieceOverlap):]
	for _, at := range []int{strings.LastIndexByte(last, '\n'), strings.LastIndexAny(last, " \t,;")} {
		if at >= 0 {
			return len(text) - len(last) + at + 1
		}
	}
	end := len(text)
	for end > 0 && end > len(text)-utf8.UTFMax && !utf8.RuneStart(text[end-1]) {
		end--
	}
	return max(end-1, 1)
}

// piecesWith finds the messages of some time that match a query of the index deep in a long text: for each the
// piece that matches best.
func (s *Session) piecesWith(ctx context.Context, l *room.Lineage, match string, since, until int64) (map[int64]room.Piece, error) {
	own, args := "", []any{match, since, until}
	if !l.Single { // the others all have one home
		own, args = ` AND `+l.Before("e"), append(args, l.Logs)
	}
	// One piece of each message, of those of the time: a text of hundreds of pieces would take all places. What
	// bm25 counts is made first, since it can be asked while the index is read only.
	rows, err := s.made.Query(ctx, pieceTables, `WITH f AS MATERIALIZED (SELECT rowid AS n, bm25(piece_words, 0.0, 1.0) AS score FROM piece_words WHERE piece_words MATCH ?),
		best AS (SELECT p.n, min(f.score) AS score FROM f JOIN pieces p ON p.n = f.n JOIN entries e ON e.seq = p.seq
			WHERE e.at BETWEEN ? AND ?`+own+` GROUP BY p.seq ORDER BY score LIMIT ?)
		SELECT p.seq, p.at, p.size, p.text FROM best JOIN pieces p ON p.n = best.n ORDER BY best.score LIMIT ?`,
		append(args, pieceFinds, pieceFinds)...)
	if err != nil {
		return nil, fmt.Errorf("recall: long texts: %w", err)
	}
	return s.piecesOf(ctx, rows), nil
}

// firstPieces returns the beginnings of long texts, by message: for those whose text stands in the bucket.
func (s *Session) firstPieces(ctx context.Context, seqs []int64) (map[int64]room.Piece, error) {
	if len(seqs) == 0 {
		return nil, nil
	}
	seqs = seqs[:min(len(seqs), tidemark.MaxParams-1)]
	args := make([]any, len(seqs), len(seqs)+1)
	for i, seq := range seqs {
		args[i] = seq
	}
	rows, err := s.made.Query(ctx, pieceTables, `SELECT seq, at, size, text FROM pieces WHERE seq IN (?`+strings.Repeat(", ?", len(seqs)-1)+`) AND at = 0 LIMIT ?`, append(args, len(seqs))...)
	if err != nil {
		return nil, fmt.Errorf("recall: long texts: %w", err)
	}
	return s.piecesOf(ctx, rows), nil
}

// piecesOf reads rows of pieces, the first of each message. One that is damaged is lost, and holds up no other.
func (s *Session) piecesOf(ctx context.Context, rows []tidemark.Row) map[int64]room.Piece {
	out := map[int64]room.Piece{}
	var zip gzip.Reader
	for _, r := range rows {
		if _, ok := out[r.Int(0)]; ok {
			continue
		}
		text, err := archive.Gunzip(&zip, r.Bytes(3), int(r.Int(2)))
		if err != nil {
			s.Logger.Warn("a piece of a long text is damaged", "session", s.Key, "position", r.Int(0), "at", r.Int(1), "err", err)
			text = nil
			s.readAgain(ctx, r.Int(0), r.Int(1))
		}
		p := room.Piece{At: int(r.Int(1)), Text: string(text), Lost: err != nil}
		if p.At >= amendedAt {
			p.At, p.Amended, p.Gone = 0, true, p.Text == takenBack
		}
		out[r.Int(0)] = p
	}
	return out
}

// readAgain has a message read from a damaged piece on: the log has what the piece was made of.
func (s *Session) readAgain(ctx context.Context, seq, at int64) {
	err := s.DB.Tx(ctx, []tidemark.Stmt{{
		SQL:  `INSERT INTO unread(key, entry, at) SELECT ?, id, ? FROM entries WHERE seq = ? ON CONFLICT(key, entry) DO UPDATE SET at = min(at, excluded.at)`,
		Args: []any{string(s.Key), at, seq},
	}, s.dueStmt(dueWords, s.Runtime.Now(), "")})
	if err != nil {
		s.Logger.Warn("make a piece of a long text anew", "session", s.Key, "err", err)
		return
	}
	s.setAlarm(ctx)
}

// texts gives the text of each of some entries to use, one after the other: of a long one the piece that was
// found, or else its beginning. It reads no block from the bucket.
func (s *Session) texts(ctx context.Context, entries []tidemark.Entry, found map[int64]room.Piece, use func(e tidemark.Entry, role tidemark.Role, p room.Piece)) error {
	var far []int64
	all := make([]int, 0, 16)
	stored := make([]tidemark.Message, len(entries))
	refs := make([][]blobRef, len(entries))
	for i, e := range entries {
		refers := bytes.Contains(e.Payload, []byte(blobField))
		if !refers {
			if m, ok := skim(e.Payload); ok {
				stored[i] = m
				continue
			}
		}
		var err error
		if stored[i], err = e.Message(); err != nil {
			return fmt.Errorf("entry %s: %w", e.ID, err)
		}
		if !refers {
			continue
		}
		all = all[:0]
		for n := range stored[i].Content {
			all = append(all, n)
		}
		if refs[i] = rowRefs(stored[i], all); len(refs[i]) == 0 {
			far = append(far, e.Seq)
		}
	}
	first, err := s.firstPieces(ctx, far)
	if err != nil {
		return err
	}
	now, err := s.amendedPieces(ctx, entries)
	if err != nil {
		return err
	}
	var sh shelf
	for i, e := range entries {
		m := stored[i]
		p, ok := found[e.Seq]
		lost := p.Lost
		a, amended := now[e.Seq]
		if amended && p.Amended { // it is shown whole, beside what it read before
			p, ok = room.Piece{}, false
		}
		if !ok || lost {
			p, ok = first[e.Seq]
			lost = lost || p.Lost
		}
		if !ok || p.Lost {
			p.At = 0
			if m, err = s.withRows(ctx, m, refs[i:], &sh); err != nil {
				return fmt.Errorf("entry %s: %w", e.ID, err)
			}
			p.Text, _ = textAt(m, 0, wordsBytes)
			p.Text = strings.ToValidUTF8(p.Text, "")
		}
		p.Lost = lost
		if amended {
			p.Text, p.Amended, p.Gone = over(a, p.Text), true, a.Gone
		}
		use(e, m.Role, p)
	}
	return nil
}

// withRows brings the artifacts of a message back, those of the first of refs, and reads those of the next
// messages with them. Blocks in the bucket stay as stored.
func (s *Session) withRows(ctx context.Context, m tidemark.Message, refs [][]blobRef, sh *shelf) (tidemark.Message, error) {
	if len(refs[0]) == 0 {
		return m, nil
	}
	err := sh.fetch(ctx, s, refs[0], func(yield func(blobRef) bool) {
		for _, r := range slices.Concat(refs[1:]...) {
			if !yield(r) {
				return
			}
		}
	})
	if err != nil {
		return m, err
	}
	var rows []int
	for i, b := range m.Content {
		if ref, ok := reference(b); ok && ref.In == inRow {
			rows = append(rows, i)
		}
	}
	return s.hydrateFrom(ctx, m, rows, sh)
}
