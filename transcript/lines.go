package transcript

import (
	"cmp"
	"fmt"
	"io"
	"iter"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

// Defaults of [Options].
const (
	DefaultMaxLine = jsonscan.MaxLine
	// DefaultMaxMessage is what the Messages API takes in a whole request
	// (https://docs.anthropic.com/en/api/errors#request-size-limits): a larger message was never sent.
	DefaultMaxMessage = 32 << 20
)

const minMaxLine = 64

// Options bound and direct a reading. The zero value is good.
type Options struct {
	MaxLine    int64  // bytes of a line; 0 is DefaultMaxLine
	MaxMessage int64  // bytes of a message's content that are decoded; 0 is DefaultMaxMessage
	Chain      Chain  // which messages Messages gives; the zero value is the main chain
	TempDir    string // for the temporary file that Messages needs for a pipe; "" is the system's
}

func (o Options) withDefaults() Options {
	o.MaxLine = max(cmp.Or(o.MaxLine, DefaultMaxLine), minMaxLine)
	o.MaxMessage = cmp.Or(o.MaxMessage, DefaultMaxMessage)
	return o
}

// Lines yields every line of r in order: blank ones, such as are no JSON, and one without a line
// break at the end too. Only "\n" ends a line; "\r", U+2028 and U+2029 do not. A byte order mark at
// the very beginning belongs to the first line and not to its value. A line longer than Options.MaxLine
// comes in pieces: see [Line.Long].
//
// An error of the input is the last value, behind what was read before it.
func Lines(r io.Reader, o Options) iter.Seq2[Line, error] {
	o = o.withDefaults()
	return func(yield func(Line, error) bool) {
		var p parser
		for l, err := range jsonscan.Lines(r, int(o.MaxLine)) {
			if err != nil {
				yield(Line{}, err)
				return
			}
			if !yield(p.line(l), nil) {
				return
			}
		}
	}
}

// parser scans lines, each into the room of the one before.
type parser struct {
	sc     jsonscan.Scanner
	fields []Field
	inner  []Field
}

// line finds the value of a line and its fields.
func (p *parser) line(of jsonscan.Line) Line {
	l := Line{Number: of.Number, Offset: of.From, Size: int64(len(of.Raw)), Raw: of.Raw, Long: of.Long}
	if l.Long {
		l.Err = fmt.Errorf("the line is too long to be read: %w", tidemark.ErrTooLarge)
		return l
	}
	s := &p.sc
	s.Reset(l.Raw, 0)
	p.fields, p.inner = p.fields[:0], p.inner[:0]
	if l.Number == 1 {
		s.SkipMark()
	}
	c := s.Space()
	if s.AtEnd() {
		return l
	}
	value := Field{Key: -1, Start: s.Pos(), Kind: kindOf(c)}
	if c == '{' {
		object(s, &p.fields, &p.inner)
	} else {
		s.Value()
	}
	value.End = s.Pos()
	if s.Err == nil {
		if s.Space(); !s.AtEnd() {
			s.Fail("more behind the value")
		}
	}
	if l.Err = s.Err; l.Err == nil {
		l.Value, l.Fields, l.Inner = value, p.fields, p.inner
	}
	return l
}
