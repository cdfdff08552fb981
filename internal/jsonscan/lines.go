package jsonscan

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
)

// MaxLine bounds a line that stands in memory, in bytes: more than any known program reads or writes.
const MaxLine = 256 << 20

// Line is a line of a log. Its bytes hold until the next one is asked for.
type Line struct {
	Number int64 // from 1
	From   int64 // its place, counted from where the reading began
	Raw    []byte
	Long   bool // it is longer than the bound: Raw is a piece of it, and the pieces come in order, with one number
}

// To is the place behind the line, or behind the piece of it.
func (l *Line) To() int64 { return l.From + int64(len(l.Raw)) }

// Lines yields the lines of r in order, each with its line break "\n", the last one as it ends: all of them together are
// the bytes of r. One of more than most bytes comes in pieces. An error of r is the last value.
func Lines(r io.Reader, most int) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		const first = 64 << 10
		from, l := bufio.NewReaderSize(r, min(first, most)), Line{Number: 1}
		var room []byte // for a line that is longer than that
		for {
			part, err := from.ReadSlice('\n')
			full := errors.Is(err, bufio.ErrBufferFull)
			if l.Raw = part; full || len(room) > 0 {
				room = append(room, part...)
				l.Raw = room
			}
			if full && len(room) <= most {
				continue
			}
			if l.Long = l.Long || len(l.Raw) > most; len(l.Raw) > 0 && !yield(l, nil) {
				return
			}
			l.From, room = l.To(), room[:0]
			switch {
			case err == nil:
				l.Number, l.Long = l.Number+1, false
			case errors.Is(err, io.EOF):
				return
			case !full:
				yield(Line{}, fmt.Errorf("read log behind byte %d: %w", l.From, err))
				return
			}
		}
	}
}
