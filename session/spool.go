package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room"
)

const (
	spoolChunk = 256 << 10 // bytes of a row
	// spoolLooks is how often an alarm looks whether anybody reads a spool still.
	spoolLooks = 10 * time.Minute
)

// Spool holds a log in rows of the session's own database for a reader that goes over it twice, on a
// host without a disk. One goroutine uses it; Close removes the rows. What a life that was cut off
// leaves goes with the next spool, or by an alarm.
type Spool struct {
	s    *Session
	ctx  context.Context // of the request that it belongs to
	id   string
	size int64
	pos  int64
	pace room.Pace

	number int64  // of the row that is in chunk, from 0; -1 for none
	chunk  []byte // is read many times over by a reader of lines
}

var (
	_ io.ReaderAt = (*Spool)(nil)
	_ io.Seeker   = (*Spool)(nil)
)

// Spool copies r, which has at most limit bytes; more is ErrTooLarge. A session holds one at a time;
// a second is ErrBusy.
func (s *Session) Spool(ctx context.Context, r io.Reader, limit int64) (*Spool, error) {
	p := &Spool{s: s, ctx: ctx, id: tidemark.NewID(s.Runtime.Now()), number: -1}
	if !s.spooling(p.id, true) {
		return nil, fmt.Errorf("import into %s: another one is in work; try again when it has ended: %w", s.Key, tidemark.ErrBusy)
	}
	err := s.DB.Tx(ctx, []tidemark.Stmt{s.unspoolStmt(), s.dueStmt(dueSpool, s.Runtime.Now().Add(spoolLooks), "")})
	if err == nil {
		s.setAlarm(ctx)
		err = p.fill(r, limit)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("keep log: %w", err), p.Close())
	}
	return p, nil
}

// fill copies the source row by row.
func (p *Spool) fill(r io.Reader, limit int64) error {
	buf := make([]byte, spoolChunk)
	for n := int64(0); ; n++ {
		got, err := io.ReadFull(r, buf)
		ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !ended {
			return err
		}
		if p.size += int64(got); p.size > limit {
			return fmt.Errorf("over %d bytes; cut it at a line and send the pieces to one session each, or send it as format=jsonl, which is read as it comes: %w", limit, tidemark.ErrTooLarge)
		}
		if got > 0 {
			insert := tidemark.Stmt{SQL: `INSERT INTO spool(key, id, n, bytes) VALUES(?, ?, ?, ?)`, Args: []any{string(p.s.Key), p.id, n, buf[:got]}, Want: 1}
			if err := p.s.DB.Tx(p.ctx, []tidemark.Stmt{insert}); err != nil {
				return err
			}
		}
		if ended {
			return nil
		}
		if err := p.pace.Did(p.ctx, p.s.Runtime, got); err != nil {
			return err
		}
	}
}

// Size is the number of bytes in it.
func (p *Spool) Size() int64 { return p.size }

// Read implements io.Reader.
func (p *Spool) Read(b []byte) (int, error) {
	n, err := p.ReadAt(b, p.pos)
	p.pos += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

// Seek implements io.Seeker.
func (p *Spool) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += p.pos
	case io.SeekEnd:
		offset += p.size
	}
	if offset < 0 {
		return 0, fmt.Errorf("seek to %d: %w", offset, tidemark.ErrInvalid)
	}
	p.pos = offset
	return offset, nil
}

// ReadAt implements io.ReaderAt.
func (p *Spool) ReadAt(b []byte, off int64) (n int, err error) {
	for n < len(b) {
		at := off + int64(n)
		if at >= p.size {
			return n, io.EOF
		}
		if err := p.load(at / spoolChunk); err != nil {
			return n, err
		}
		n += copy(b[n:], p.chunk[at%spoolChunk:])
	}
	return n, nil
}

// load reads a row.
func (p *Spool) load(number int64) error {
	if p.number == number {
		return nil
	}
	if err := p.pace.Did(p.ctx, p.s.Runtime, spoolChunk); err != nil {
		return err
	}
	rows, err := p.s.DB.Query(p.ctx, `SELECT bytes FROM spool WHERE key = ? AND id = ? AND n = ? LIMIT 1`, string(p.s.Key), p.id, number)
	if err != nil {
		return fmt.Errorf("read kept log: %w", err)
	}
	want := min(p.size-number*spoolChunk, spoolChunk)
	if len(rows) == 0 || int64(len(rows[0].Bytes(0))) != want { // a later life of the session has swept
		return fmt.Errorf("read kept log: row %d is gone; send the log again: %w", number, tidemark.ErrUnavailable)
	}
	p.number, p.chunk = number, rows[0].Bytes(0)
	return nil
}

// Close removes the rows, also when the request has ended.
func (p *Spool) Close() error {
	if !p.s.spooling(p.id, false) {
		return nil
	}
	p.chunk, p.number = nil, -1
	if err := p.s.DB.Tx(p.s.life, []tidemark.Stmt{p.s.unspoolStmt(), p.s.undueStmt(dueSpool)}); err != nil {
		return fmt.Errorf("remove kept log: %w", err) // the alarm tries again
	}
	return nil
}

// spooling notes which spool this life has, or that it has none any more; false if that is not so.
func (s *Session) spooling(id string, begins bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case begins && s.spool == "":
		s.spool = id
		return true
	case !begins && s.spool == id:
		s.spool = ""
		return true
	}
	return false
}

func (s *Session) unspoolStmt() tidemark.Stmt {
	return tidemark.Stmt{SQL: `DELETE FROM spool WHERE key = ?`, Args: []any{string(s.Key)}}
}

// sweepSpool removes what nobody in this life reads, and otherwise looks again later.
func (s *Session) sweepSpool(ctx context.Context) error {
	s.mu.Lock()
	used := s.spool != ""
	s.mu.Unlock()
	if used {
		return s.DB.Tx(ctx, []tidemark.Stmt{s.dueStmt(dueSpool, s.Runtime.Now().Add(spoolLooks), "")})
	}
	return s.DB.Tx(ctx, []tidemark.Stmt{s.unspoolStmt(), s.undueStmt(dueSpool)})
}
