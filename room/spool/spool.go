// Package spool is the room that keeps a log of another tool in the session's database while an import reads it twice, on
// a host without a disk. Begin with [Room.Keep].
package spool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/room"
)

const (
	chunkBytes = 256 << 10        // of a row
	looks      = 10 * time.Minute // between which an alarm looks whether anybody reads a spool still
)

// kind of what is due while a spool is kept.
const kind = "spool"

// tables are made with the first spool.
var tables = room.Tables{Space: "session_spool", Steps: []string{
	// A log that an import reads twice, in pieces, while it does.
	`CREATE TABLE spool(key TEXT NOT NULL, id TEXT NOT NULL, n INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY(key, id, n)) WITHOUT ROWID`,
}}

// Room keeps one spool of its session at a time.
type Room struct {
	room.Self
	room.Work
	mu sync.Mutex // guards id
	id string     // of the spool that this life has
}

var (
	_ room.Tabler = (*Room)(nil)
	_ room.Waker  = (*Room)(nil)
	_ room.Worker = (*Room)(nil)
)

// Make makes the room.
func Make(p room.Ports) any { return &Room{Self: p.Self, Work: p.Work} }

// Tables implements room.Tabler.
func (s *Room) Tables() room.Tables { return tables }

// Spool holds a log in rows of the session's own database for a reader that goes over it twice, on a
// host without a disk. One goroutine uses it; Close removes the rows. What a life that was cut off
// leaves goes with the next spool, or by an alarm.
type Spool struct {
	s      *Room
	ctx    context.Context // of the request that it belongs to
	id     string
	size   int64
	pos    int64
	yields host.Yielder

	number int64  // of the row that is in chunk, from 0; -1 for none
	chunk  []byte // is read many times over by a reader of lines
}

var (
	_ io.ReaderAt = (*Spool)(nil)
	_ io.Seeker   = (*Spool)(nil)
)

// Keep copies r, which has at most limit bytes; more is ErrTooLarge. A session holds one at a time;
// a second is ErrBusy.
func (s *Room) Keep(ctx context.Context, r io.Reader, limit int64) (*Spool, error) {
	p := &Spool{s: s, ctx: ctx, id: tidemark.NewID(s.Runtime.Now()), number: -1}
	if !s.swap("", p.id) {
		return nil, fmt.Errorf("import into %s: another one is in work; try again when it has ended: %w", s.Key, tidemark.ErrBusy)
	}
	err := s.Made.Open(ctx, tables)
	if err == nil {
		err = s.DB.Tx(ctx, []tidemark.Stmt{s.dropStmt(), s.Due(kind, s.Runtime.Now().Add(looks), "")})
	}
	if err == nil {
		s.Alarm(ctx)
		err = p.fill(r, limit)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("keep log: %w", err), p.Close())
	}
	return p, nil
}

// fill copies the source row by row.
func (p *Spool) fill(r io.Reader, limit int64) error {
	buf := make([]byte, chunkBytes)
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
		if err := p.yields.Did(p.ctx, p.s.Runtime, got); err != nil {
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
		if err := p.load(at / chunkBytes); err != nil {
			return n, err
		}
		n += copy(b[n:], p.chunk[at%chunkBytes:])
	}
	return n, nil
}

// load reads a row.
func (p *Spool) load(number int64) error {
	if p.number == number {
		return nil
	}
	if err := p.yields.Did(p.ctx, p.s.Runtime, chunkBytes); err != nil {
		return err
	}
	rows, err := p.s.DB.Query(p.ctx, `SELECT bytes FROM spool WHERE key = ? AND id = ? AND n = ? LIMIT 1`, string(p.s.Key), p.id, number)
	if err != nil {
		return fmt.Errorf("read kept log: %w", err)
	}
	want := min(p.size-number*chunkBytes, chunkBytes)
	if len(rows) == 0 || int64(len(rows[0].Bytes(0))) != want { // a later life of the session has swept
		return fmt.Errorf("read kept log: row %d is gone; send the log again: %w", number, tidemark.ErrUnavailable)
	}
	p.number, p.chunk = number, rows[0].Bytes(0)
	return nil
}

// Close removes the rows, also when the request has ended.
func (p *Spool) Close() error {
	if !p.s.swap(p.id, "") {
		return nil
	}
	p.chunk, p.number = nil, -1
	if err := p.s.DB.Tx(p.s.Life, []tidemark.Stmt{p.s.dropStmt(), p.s.Undue(kind)}); err != nil {
		return fmt.Errorf("remove kept log: %w", err) // the alarm tries again
	}
	return nil
}

// swap notes which spool this life has in place of another one, "" for none; false if it had not that one.
func (s *Room) swap(from, to string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id != from {
		return false
	}
	s.id = to
	return true
}

// Working reports whether somebody in this life reads a spool.
func (s *Room) Working() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id != ""
}

func (s *Room) dropStmt() tidemark.Stmt {
	return tidemark.Stmt{SQL: `DELETE FROM spool WHERE key = ?`, Args: []any{string(s.Key)}}
}

// Wakes implements room.Waker.
func (s *Room) Wakes() string { return kind }

// Wake removes what nobody in this life reads, and otherwise looks again later.
func (s *Room) Wake(ctx context.Context) error {
	if s.Working() {
		return s.DB.Tx(ctx, []tidemark.Stmt{s.Due(kind, s.Runtime.Now().Add(looks), "")})
	}
	return s.DB.Tx(ctx, []tidemark.Stmt{s.dropStmt(), s.Undue(kind)})
}
