package transcript

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

// maxLinked bounds the assistant lines of one log that [Messages] can link by their ids: about
// 100 MB of memory, a thousand times what the largest known logs hold.
const maxLinked = 1 << 20

// Chain says which lines are read as messages.
type Chain int

// The chains of a log.
const (
	MainChain Chain = iota // all but side chains
	SideChain              // what subagents said
	AllChains
)

func (c Chain) has(side bool) bool { return c == AllChains || side == (c == SideChain) }

// LineError is what is wrong with one line; the lines behind it are read all the same.
type LineError struct {
	Line   int64 // from 1
	Offset int64
	Err    error
}

// Error names the line.
func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap gives tidemark.ErrInvalid or tidemark.ErrTooLarge.
func (e *LineError) Unwrap() error { return e.Err }

// Messages yields the messages of a log in order: each user line is one, and all assistant lines
// that share a message id are one, at the place of the first, however far apart they stand. What
// stood between them comes behind. Nothing is left out or repaired: the messages are what the log
// says, which need not be what a model's API accepts.
//
// It reads the log twice, first for the ids only. A pipe is therefore copied to a temporary file. Two
// messages are never in memory at once. A log with more than a million assistant lines is
// tidemark.ErrTooLarge.
//
// # Errors
//
// A *[LineError] concerns one line, which is no JSON (tidemark.ErrInvalid), whose message or one of
// its blocks cannot be read (the same), or whose message is beyond Options.MaxMessage
// (tidemark.ErrTooLarge); the sequence goes on. Every other error ends it.
func Messages(r io.Reader, o Options) iter.Seq2[Item, error] {
	o = o.withDefaults()
	return func(yield func(Item, error) bool) {
		at, pos, ok := seekable(r)
		if !ok {
			temp, err := spool(r, o.TempDir)
			if err != nil {
				yield(Item{}, err)
				return
			}
			defer temp.close()
			at, pos = temp.file, 0
		}
		mr := &messageReader{o: o, at: at, base: pos}
		if err := mr.index(); err != nil {
			yield(Item{}, err)
			return
		}
		if err := mr.walk(yield); err != nil {
			yield(Item{}, err)
		}
	}
}

const maxSpool = 64 << 30 // what a pipe may write to the temporary file

// seekable returns r as something that can be read at any place, with its current position.
func seekable(r io.Reader) (at io.ReaderAt, pos int64, ok bool) {
	ra, ok := r.(interface {
		io.ReaderAt
		io.Seeker
	})
	if !ok {
		return nil, 0, false
	}
	pos, err := ra.Seek(0, io.SeekCurrent) // a pipe is an os.File too, but has no position
	return ra, pos, err == nil
}

type spooled struct{ file *os.File }

func (s spooled) close() {
	_ = s.file.Close()
	_ = os.Remove(s.file.Name())
}

// spool copies a pipe to a temporary file.
func spool(r io.Reader, dir string) (spooled, error) {
	f, err := os.CreateTemp(dir, "tidemark-log-*")
	if err != nil {
		return spooled{}, fmt.Errorf("keep log of a pipe: %w", err)
	}
	s := spooled{f}
	n, err := io.Copy(f, io.LimitReader(r, maxSpool+1))
	if err == nil && n > maxSpool {
		err = fmt.Errorf("more than %d bytes: %w", int64(maxSpool), tidemark.ErrTooLarge)
	}
	if err != nil {
		s.close()
		return spooled{}, fmt.Errorf("keep log of a pipe in %s: %w", f.Name(), err)
	}
	return s, nil
}

// linkKey stands for a message id of any length.
type linkKey [16]byte

func keyOf(id string) linkKey {
	sum := sha256.Sum256([]byte(id))
	return linkKey(sum[:16])
}

// place is where a line stands.
type place struct{ number, offset, size int64 }

type messageReader struct {
	o     Options
	at    io.ReaderAt
	base  int64
	size  int64               // of the log when it was indexed: what is appended meanwhile is not read
	first map[linkKey]int64   // number of the first line of a message
	rest  map[linkKey][]place // its further lines
	again parser              // for reading those
}

// index finds the lines that belong to one message.
func (m *messageReader) index() error {
	m.first, m.rest = map[linkKey]int64{}, map[linkKey][]place{}
	linked := 0
	for l, err := range Lines(io.NewSectionReader(m.at, m.base, 1<<62-m.base), m.o) {
		if err != nil {
			return err
		}
		m.size = l.Offset + l.Size
		id, ok := m.linkID(l)
		if !ok {
			continue
		}
		if linked++; linked > maxLinked {
			return fmt.Errorf("index log: more than %d assistant lines: %w", maxLinked, tidemark.ErrTooLarge)
		}
		key := keyOf(id)
		if _, known := m.first[key]; !known {
			m.first[key] = l.Number
			continue
		}
		m.rest[key] = append(m.rest[key], place{l.Number, l.Offset, l.Size})
	}
	return nil
}

// linkID returns the message id of an assistant line of the chain that is read.
func (m *messageReader) linkID(l Line) (string, bool) {
	role, ok := l.Role()
	if !ok || role != tidemark.Assistant || !m.o.Chain.has(l.Flag("isSidechain")) {
		return "", false
	}
	f, ok := l.MessageField("id")
	if !ok {
		return "", false
	}
	id := l.Text(f)
	return id, id != ""
}

// walk reads the log again and gives out its messages.
func (m *messageReader) walk(yield func(Item, error) bool) error {
	boundary, long := false, int64(0)
	for l, err := range Lines(io.NewSectionReader(m.at, m.base, m.size), m.o) {
		if err != nil {
			return err
		}
		if l.Err != nil {
			if l.Long && l.Number == long {
				continue // it was told
			}
			if l.Long {
				long = l.Number
			}
			if !yield(Item{}, &LineError{l.Number, l.Offset, l.Err}) {
				return nil
			}
			continue
		}
		if l.Boundary() {
			boundary = true
		}
		if _, ok := l.Role(); !ok || !m.o.Chain.has(l.Flag("isSidechain")) {
			continue
		}
		it, bad, err := m.message(l)
		if err != nil {
			return err
		}
		for _, e := range bad {
			if !yield(Item{}, e) {
				return nil
			}
		}
		if it == nil {
			continue
		}
		it.Boundary, boundary = boundary, false
		if !yield(*it, nil) {
			return nil
		}
	}
	return nil
}

// message reads the message that begins in a line: nil when the line continues an earlier one, or
// cannot be read.
func (m *messageReader) message(l Line) (it *Item, bad []*LineError, err error) {
	g := group{limit: m.o.MaxMessage}
	id, linked := m.linkID(l)
	if !linked {
		g.add(l)
		return g.item(), g.bad, nil
	}
	key := keyOf(id)
	if m.first[key] != l.Number {
		return nil, nil, nil
	}
	g.add(l)
	for _, p := range m.rest[key] {
		raw := make([]byte, p.size)
		if _, err := m.at.ReadAt(raw, m.base+p.offset); err != nil && !errors.Is(err, io.EOF) {
			return nil, nil, fmt.Errorf("read line %d again: %w", p.number, err)
		}
		g.add(m.again.line(jsonscan.Line{Number: p.number, From: p.offset, Raw: raw}))
	}
	return g.item(), g.bad, nil
}
