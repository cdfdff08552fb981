package spool

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/iotest"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/room"
)

// bench is a room over a database of its own.
type bench struct {
	*Room
	t    *testing.T
	due  map[string]time.Time
	end  func()
	rang int // how often the host is to wake the session
}

func newBench(t *testing.T) *bench {
	t.Helper()
	h := &bench{t: t, due: map[string]time.Time{}, Room: &Room{Self: room.Self{Key: "agent:main:main", DB: hosttest.DB(t), Runtime: hosttest.Runtime(t)}}}
	h.begin()
	return h
}

// begin begins a new life on the same database.
func (h *bench) begin() {
	p, none := room.Ports{Self: h.Self}, tidemark.Stmt{SQL: `SELECT 1`}
	p.Made = &room.Made{DB: h.DB}
	p.Life, h.end = context.WithCancel(context.Background())
	h.t.Cleanup(h.end)
	p.Due = func(kind string, at time.Time, _ string) tidemark.Stmt { h.due[kind] = at; return none }
	p.Undue = func(kind string) tidemark.Stmt { delete(h.due, kind); return none }
	p.Alarm = func(context.Context) { h.rang++ }
	h.Room = Make(p).(*Room)
}

// rows counts what a spool has in the database.
func (h *bench) rows() (n int64) {
	h.t.Helper()
	rows, err := h.DB.Query(h.t.Context(), `SELECT count(*) FROM spool WHERE key = ? LIMIT 1`, string(h.Key))
	if err != nil {
		h.t.Fatal(err)
	}
	if _, due := h.due[kind]; !due && rows[0].Int(0) > 0 {
		h.t.Error("nobody looks after the rows")
	}
	return rows[0].Int(0)
}

// wake does what is due.
func (h *bench) wake() {
	h.t.Helper()
	if err := h.Wake(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
}

// TestSpool: what goes in comes out, at any place and twice, and nothing stays.
func TestSpool(t *testing.T) {
	h := newBench(t)
	for _, size := range []int{0, 1, 256<<10 - 1, 256 << 10, 256<<10 + 1, 700_001} {
		raw := make([]byte, size)
		for i := range raw {
			raw[i] = byte(i * 7 >> 3)
		}
		p, err := h.Keep(t.Context(), iotest.HalfReader(bytes.NewReader(raw)), int64(size))
		if err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		if err := iotest.TestReader(io.NewSectionReader(p, 0, p.Size()), raw); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
		if got, err := io.ReadAll(p); err != nil || !bytes.Equal(got, raw) {
			t.Errorf("%d bytes: read %d, %v", size, len(got), err)
		}
		if at, err := p.Seek(-1, io.SeekCurrent); size > 0 && (err != nil || at != int64(size)-1) {
			t.Errorf("%d bytes: at %d, %v", size, at, err)
		}
		if want := int64(size+256<<10-1) >> 18; h.rows() != want {
			t.Errorf("%d bytes: %d rows", size, h.rows())
		}
		if err := p.Close(); err != nil || h.rows() != 0 {
			t.Errorf("%d bytes: %v, %d rows stay", size, err, h.rows())
		}
	}
}

// TestSpoolEnds: a log that is too long, breaks off, or comes beside another leaves nothing.
func TestSpoolEnds(t *testing.T) {
	h := newBench(t)
	broken := errors.New("the line broke")
	gone, leave := context.WithCancel(t.Context())
	leave()
	for _, tc := range []struct {
		name string
		ctx  context.Context
		from io.Reader
		want error
	}{
		{"too long", t.Context(), bytes.NewReader(make([]byte, 1<<20+1)), tidemark.ErrTooLarge},
		{"breaks off", t.Context(), io.MultiReader(bytes.NewReader(make([]byte, 600_000)), iotest.ErrReader(broken)), broken},
		{"the client left", gone, bytes.NewReader(make([]byte, 600_000)), context.Canceled},
	} {
		if _, err := h.Keep(tc.ctx, tc.from, 1<<20); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, err, tc.want)
		}
		if h.rows() != 0 || h.Working() {
			t.Errorf("%s: %d rows stay, working %v", tc.name, h.rows(), h.Working())
		}
	}
	first, err := h.Keep(t.Context(), bytes.NewReader(make([]byte, 600_000)), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Keep(t.Context(), bytes.NewReader(nil), 1<<20); !errors.Is(err, tidemark.ErrBusy) {
		t.Errorf("a second beside the first: %v, want ErrBusy", err)
	}
	if err := first.Close(); err != nil || h.rows() != 0 {
		t.Errorf("close: %v, %d rows stay", err, h.rows())
	}
}

// TestSpoolAfterCrash: what a life that was killed kept is removed by the alarm, but not while a log of
// this life is read; an object that should be gone does not read rows of another.
func TestSpoolAfterCrash(t *testing.T) {
	h := newBench(t)
	old, err := h.Keep(t.Context(), bytes.NewReader(make([]byte, 600_000)), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	h.wake()
	if h.rows() == 0 {
		t.Fatal("a log that is read was removed")
	}
	h.end()
	h.begin()
	h.wake()
	if h.rows() != 0 {
		t.Error("what the dead life kept stays")
	}
	fresh, err := h.Keep(t.Context(), bytes.NewReader(make([]byte, 600_000)), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	if _, err := old.ReadAt(make([]byte, 10), 0); !errors.Is(err, tidemark.ErrUnavailable) {
		t.Errorf("the old life reads on: %v", err)
	}
}

// TestSpoolReads: it is read as any file is, from wherever it was set to, and no more behind its end or its close.
func TestSpoolReads(t *testing.T) {
	h := newBench(t)
	if err := h.Made.Open(t.Context(), tables); err != nil {
		t.Fatal(err)
	}
	theirs := tidemark.Stmt{SQL: `INSERT INTO spool(key, id, n, bytes) VALUES('agent:main:aunt', 'x', 0, x'01'), ('agent:main:zoe', 'x', 0, x'01')`}
	if err := h.DB.Tx(t.Context(), []tidemark.Stmt{theirs}); err != nil {
		t.Fatal(err)
	}
	p, err := h.Keep(t.Context(), bytes.NewReader([]byte("0123456789")), 10)
	if err != nil || h.rang != 1 || p.Size() != 10 {
		t.Fatal(err, h.rang)
	}
	for _, step := range []struct {
		name   string
		offset int64
		whence int
		at     int64
		err    error
		want   string // that is read then, four bytes at a time
	}{
		{"from the beginning", 0, io.SeekStart, 0, nil, "0123"}, {"on from there", 0, io.SeekCurrent, 4, nil, "4567"}, {"the rest", 0, io.SeekCurrent, 8, nil, "89"}, {"behind the end", 0, io.SeekCurrent, 10, nil, ""},
		{"one before the end", -1, io.SeekEnd, 9, nil, "9"}, {"back", -8, io.SeekCurrent, 2, nil, "2345"}, {"before the beginning", -1, io.SeekStart, 0, tidemark.ErrInvalid, "6789"},
	} {
		at, err := p.Seek(step.offset, step.whence)
		if at != step.at || !errors.Is(err, step.err) {
			t.Errorf("%s: at %d, %v, want %d", step.name, at, err, step.at)
		}
		buf := make([]byte, 4)
		n, err := p.Read(buf)
		if string(buf[:n]) != step.want || (n == 0) != errors.Is(err, io.EOF) || n > 0 && err != nil {
			t.Errorf("%s: read %q, %v, want %q", step.name, buf[:n], err, step.want)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := p.ReadAt(make([]byte, 4), 0); n > 0 || !errors.Is(err, tidemark.ErrUnavailable) {
		t.Errorf("behind its close %d bytes are read, %v", n, err)
	}
	h.wake()
	if rows, err := h.DB.Query(t.Context(), `SELECT count(*) FROM spool WHERE id = 'x' LIMIT 1`); err != nil || rows[0].Int(0) != 2 {
		t.Errorf("of others there are %v, %v", rows, err)
	}
}
