package search

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/gz"
	"github.com/tidemark-ai/tidemark/room"
)

// pieceTables are made with the first message whose text is longer than room.WordsBytes.
var pieceTables = room.Tables{Space: "session_pieces", Steps: []string{
	`CREATE TABLE unread(key TEXT NOT NULL, entry TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY(key, entry)) WITHOUT ROWID`,
	// Which text of which message a row of the index is; at counts bytes of what room.Searchable gives.
	`CREATE TABLE pieces(n INTEGER PRIMARY KEY, key TEXT NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL, size INTEGER NOT NULL, text BLOB NOT NULL)`,
	`CREATE UNIQUE INDEX pieces_of ON pieces(seq, at)`,
	`CREATE VIRTUAL TABLE piece_words USING fts5(home, terms, content='', tokenize="unicode61 remove_diacritics 0 tokenchars '_-./@'")`,
}}

// Pieces is the part of the room that has the pieces of long texts.
type Pieces struct {
	ports
	skips *Skips
}

// piece is a stretch of a long text.
type piece struct {
	at   int
	text string
	lost bool // it is damaged: what was found in it cannot be shown
	// amended says that the person corrected the message, or took it back (gone): the text is, or says, what it reads now.
	amended, gone bool
}

var (
	_ room.Tabler = (*Pieces)(nil)
	_ room.Waker  = (*Pieces)(nil)
)

// Tables implements room.Tabler.
func (s *Pieces) Tables() room.Tables { return pieceTables }

// Wakes implements room.Waker.
func (s *Pieces) Wakes() string { return dueWords }

// The words of a message are in the index with it, up to room.WordsBytes of its text. A longer text is read to its
// end afterwards, piece by piece, each in a transaction of its own: to index 256 KiB at once took the memory of
// an instance. A row says from where on, so that a kill loses nothing; it is done by an alarm, and before the next
// search at the latest. A piece keeps its text, compressed, so that what is found deep in a large result is
// shown without reading it all.
const (
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

// restStmts make the rest of a long text due to be read, in the transaction that stores its entry. One that was
// read meanwhile, by a recall side by side, is not read again.
func (s *Pieces) restStmts(ctx context.Context, e tidemark.Entry, full tidemark.Message) ([]tidemark.Stmt, error) {
	if !e.Origin.Findable() || !room.Longer(full, room.WordsBytes) {
		return nil, nil
	}
	if err := s.Made.Open(ctx, pieceTables); err != nil {
		return nil, err
	}
	return []tidemark.Stmt{
		{SQL: `INSERT INTO unread(key, entry, at) SELECT ?, ?, 0 WHERE NOT EXISTS (SELECT 1 FROM entries e JOIN pieces p ON p.seq = e.seq WHERE e.id = ?) ON CONFLICT(key, entry) DO NOTHING`,
			Args: []any{string(s.Key), string(e.ID), string(e.ID)}},
		s.Due(dueWords, s.Runtime.Now().Add(wordsAfter), ""),
	}, nil
}

// Wake implements room.Waker.
func (s *Pieces) Wake(ctx context.Context) error {
	if s.Active() != "" {
		return s.DB.Tx(ctx, []tidemark.Stmt{s.Due(dueWords, s.Runtime.Now().Add(wordsAfter), "")})
	}
	return s.readRest(ctx, piecesAWake)
}

// readRest puts the rest of long texts into the index, as much as is asked for.
func (s *Pieces) readRest(ctx context.Context, most int) error {
	if ok, err := s.Made.Has(ctx, pieceTables); err != nil || !ok {
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
			return s.DB.Tx(ctx, []tidemark.Stmt{s.Due(dueWords, s.Runtime.Now(), "")})
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
func (s *Pieces) restRead(ctx context.Context) error {
	rows, err := s.DB.Query(ctx, `SELECT 1 FROM due WHERE key = ? AND kind = ? LIMIT 1`, string(s.Key), dueWords)
	if err != nil || len(rows) == 0 {
		return err
	}
	return s.DB.Tx(ctx, []tidemark.Stmt{{SQL: `DELETE FROM due WHERE key = ? AND kind = ? AND NOT EXISTS (SELECT 1 FROM unread WHERE key = ?)`,
		Args: []any{string(s.Key), dueWords, string(s.Key)}}})
}

// readPieces puts the text of a message into the index from a place on, and returns how many bytes it did.
func (s *Pieces) readPieces(ctx context.Context, id tidemark.EntryID, seq int64, at, most int) (done int, err error) {
	e, err := s.Log.Entry(ctx, id)
	if err != nil {
		return 0, err
	}
	m, release, err := s.Words(ctx, e)
	if err != nil {
		return 0, err
	}
	defer release()
	home, err := s.skips.homeOf(ctx, seq)
	if err != nil {
		return 0, err
	}
	var yields host.Yielder
	for done < most {
		stmts, next, err := s.stmts(m, home, id, seq, at)
		if err == nil {
			err = s.DB.Tx(ctx, stmts)
		}
		if err != nil || next < 0 {
			return done, err
		}
		done, at = done+next-at, next
		if err := yields.Did(ctx, s.Runtime, host.YieldBytes); err != nil { // a piece is as much work as anything
			return done, err
		}
	}
	return done, nil
}

// stmts put one piece of a text into the index and say from where to go on; next is -1 at the end. One that is
// there is made anew, but not from a message that has lost some of its text.
func (s *Pieces) stmts(m tidemark.Message, home string, id tidemark.EntryID, seq int64, at int) (stmts []tidemark.Stmt, next int, err error) {
	text, size := room.TextAt(m, at, pieceBytes)
	if at+len(text) < size {
		text = text[:seam(text)]
	}
	next = at + len(text) - pieceOverlap
	step := tidemark.Stmt{SQL: `UPDATE unread SET at = ? WHERE key = ? AND entry = ? AND at = ?`, Args: []any{next, string(s.Key), string(id), at}, Want: 1}
	if at+len(text) >= size {
		next = -1
		step = tidemark.Stmt{SQL: `DELETE FROM unread WHERE key = ? AND entry = ? AND at = ?`, Args: []any{string(s.Key), string(id), at}, Want: 1}
	}
	piece, err := s.stmt(home, seq, int64(at), strings.ToValidUTF8(text, " "))
	return append([]tidemark.Stmt{step}, piece...), next, err
}

// stmt puts a text into the index as a piece of a message.
func (s *Pieces) stmt(home string, seq, at int64, text string) ([]tidemark.Stmt, error) {
	packed, err := gz.Zip([]byte(text))
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

// with finds the messages of some time that match a query of the index deep in a long text: for each the
// piece that matches best.
func (s *Pieces) with(ctx context.Context, l *host.Lineage, match string, since, until int64) (map[int64]piece, error) {
	own, args := "", []any{match, since, until}
	if !l.Single { // the others all have one home
		own, args = ` AND `+l.Before("e"), append(args, l.Logs)
	}
	// One piece of each message, of those of the time: a text of hundreds of pieces would take all places. What
	// bm25 counts is made first, since it can be asked while the index is read only.
	rows, err := s.Made.Query(ctx, pieceTables, `WITH f AS MATERIALIZED (SELECT rowid AS n, bm25(piece_words, 0.0, 1.0) AS score FROM piece_words WHERE piece_words MATCH ?),
		best AS (SELECT p.n, min(f.score) AS score FROM f JOIN pieces p ON p.n = f.n JOIN entries e ON e.seq = p.seq
			WHERE e.at BETWEEN ? AND ?`+own+` GROUP BY p.seq ORDER BY score LIMIT ?)
		SELECT p.seq, p.at, p.size, p.text FROM best JOIN pieces p ON p.n = best.n ORDER BY best.score LIMIT ?`,
		append(args, pieceFinds, pieceFinds)...)
	if err != nil {
		return nil, fmt.Errorf("recall: long texts: %w", err)
	}
	return s.of(ctx, rows), nil
}

// first returns the beginnings of long texts, by message: for those whose text stands in the bucket.
func (s *Pieces) first(ctx context.Context, seqs []int64) (map[int64]piece, error) {
	if len(seqs) == 0 {
		return nil, nil
	}
	seqs = seqs[:min(len(seqs), tidemark.MaxParams-1)]
	args := make([]any, len(seqs), len(seqs)+1)
	for i, seq := range seqs {
		args[i] = seq
	}
	rows, err := s.Made.Query(ctx, pieceTables, `SELECT seq, at, size, text FROM pieces WHERE seq IN (?`+strings.Repeat(", ?", len(seqs)-1)+`) AND at = 0 LIMIT ?`, append(args, len(seqs))...)
	if err != nil {
		return nil, fmt.Errorf("recall: long texts: %w", err)
	}
	return s.of(ctx, rows), nil
}

// of reads rows of pieces, the first of each message. One that is damaged is lost, and holds up no other.
func (s *Pieces) of(ctx context.Context, rows []tidemark.Row) map[int64]piece {
	out := map[int64]piece{}
	var zip gzip.Reader
	for _, r := range rows {
		if _, ok := out[r.Int(0)]; ok {
			continue
		}
		text, err := gz.Unzip(&zip, r.Bytes(3), int(r.Int(2)))
		if err != nil {
			s.Logger.Warn("a piece of a long text is damaged", "session", s.Key, "position", r.Int(0), "at", r.Int(1), "err", err)
			text = nil
			s.readAgain(ctx, r.Int(0), r.Int(1))
		}
		p := piece{at: int(r.Int(1)), text: string(text), lost: err != nil}
		if p.at >= amendedAt {
			p.at, p.amended, p.gone = 0, true, p.text == room.TakenBack
		}
		out[r.Int(0)] = p
	}
	return out
}

// readAgain has a message read from a damaged piece on: the log has what the piece was made of.
func (s *Pieces) readAgain(ctx context.Context, seq, at int64) {
	err := s.DB.Tx(ctx, []tidemark.Stmt{{
		SQL:  `INSERT INTO unread(key, entry, at) SELECT ?, id, ? FROM entries WHERE seq = ? ON CONFLICT(key, entry) DO UPDATE SET at = min(at, excluded.at)`,
		Args: []any{string(s.Key), at, seq},
	}, s.Due(dueWords, s.Runtime.Now(), "")})
	if err != nil {
		s.Logger.Warn("make a piece of a long text anew", "session", s.Key, "err", err)
		return
	}
	s.Alarm(ctx)
}
