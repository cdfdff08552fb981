package transcript

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/scan"
)

// maxText bounds the strings that [Line.Text] reads: ids, types, names and paths.
const maxText = 4096

// Line is one line of a log, as it stands there. Its slices and readers hold until the next line is
// asked for.
type Line struct {
	Number int64 // from 1
	Offset int64 // of the first byte, from where the reading began
	Size   int64 // in bytes, with the line break

	// Raw is the whole line with its line break, nil if that is longer than Options.MaxLine: then
	// Reader and Bytes give its parts.
	Raw []byte

	// Err says why the line is no JSON value; it wraps tidemark.ErrInvalid. Blank lines have none.
	Err error

	// Value is the JSON value in the line, without spaces, byte order mark and line break. Its kind is
	// 0 for a blank line, and for one that is not JSON.
	Value Field

	// Fields are the members of the value, if it is an object, in their order, equal names included;
	// Inner those of its member "message", if that is an object. At most MaxFields each, and beyond
	// them those that are known by name.
	Fields, Inner []Field

	at      io.ReaderAt // holds the line when Raw is nil
	atStart int64
}

// Blank reports whether there is nothing but white space in the line.
func (l Line) Blank() bool { return l.Value.Kind == 0 && l.Err == nil }

// Field returns the member of that name; of two equal ones the last, as JSON decoders do.
func (l Line) Field(name string) (Field, bool) { return lookup(l.Fields, name) }

// MessageField returns the member of that name of the member "message".
func (l Line) MessageField(name string) (Field, bool) { return lookup(l.Inner, name) }

// Reader returns the bytes of the line, line break included.
func (l Line) Reader() *io.SectionReader { return l.section(0, l.Size) }

func (l Line) section(start, end int64) *io.SectionReader {
	if l.Raw != nil {
		return io.NewSectionReader(bytes.NewReader(l.Raw), start, end-start)
	}
	if l.at == nil { // the zero Line
		return io.NewSectionReader(bytes.NewReader(nil), 0, 0)
	}
	return io.NewSectionReader(l.at, l.atStart+start, end-start)
}

// WriteTo writes the line byte for byte.
func (l Line) WriteTo(w io.Writer) (int64, error) {
	if l.Raw != nil {
		n, err := w.Write(l.Raw)
		return int64(n), err
	}
	return io.Copy(w, l.Reader())
}

// Bytes returns the line's bytes from start up to end. They alias Raw when there is one, and are
// read otherwise; more than limit bytes are not read but tidemark.ErrTooLarge.
func (l Line) Bytes(start, end, limit int64) ([]byte, error) {
	if start < 0 || end < start || end > l.Size {
		return nil, fmt.Errorf("read bytes %d to %d of line %d, which has %d: %w", start, end, l.Number, l.Size, tidemark.ErrInvalid)
	}
	if l.Raw != nil {
		return l.Raw[start:end:end], nil
	}
	if end-start > limit {
		return nil, fmt.Errorf("read %d bytes of line %d, at most %d are allowed: %w", end-start, l.Number, limit, tidemark.ErrTooLarge)
	}
	b := make([]byte, end-start)
	if _, err := io.ReadFull(l.section(start, end), b); err != nil {
		return nil, fmt.Errorf("read line %d again: %w", l.Number, err)
	}
	return b, nil
}

// Text returns a string value, unescaped. Other kinds, and strings beyond 4 KiB, are "".
func (l Line) Text(f Field) string {
	if f.Kind != String || f.Size() > maxText {
		return ""
	}
	b, err := l.Bytes(f.Start, f.End, maxText)
	if err != nil || len(b) < 2 {
		return ""
	}
	if in := b[1 : len(b)-1]; bytes.IndexByte(in, '\\') < 0 {
		if s := known(in); s != "" {
			return s
		}
		if utf8.Valid(in) {
			return string(in)
		}
	}
	var s string
	if json.Unmarshal(b, &s) != nil {
		return ""
	}
	return s
}

// Get is Text of the top-level field of that name, "" if there is none.
func (l Line) Get(name string) string {
	f, ok := l.Field(name)
	if !ok {
		return ""
	}
	return l.Text(f)
}

// Flag reports whether the top-level field of that name is true.
func (l Line) Flag(name string) bool {
	f, ok := l.Field(name)
	return ok && f.Kind == True
}

// Type returns the line's type, "" when it has none.
func (l Line) Type() string { return l.Get("type") }

// Time returns the line's timestamp, or the zero time.
func (l Line) Time() time.Time {
	t, err := time.Parse(time.RFC3339Nano, l.Get("timestamp"))
	if err != nil {
		return time.Time{}
	}
	return t
}

// Boundary reports whether the line says that the conversation before it was compacted. A line of
// type summary is a title, or of a kind that only [Line.EndsContext] knows.
func (l Line) Boundary() bool { return l.Type() == "system" && l.Get("subtype") == "compact_boundary" }

// EndsContext reports whether the model read nothing of what stands before the line: a [Line.Boundary], or the summary
// that earlier versions wrote instead, which names no leaf as a title does.
func (l Line) EndsContext() bool {
	if l.Type() != "summary" {
		return l.Boundary()
	}
	_, title := l.Field("leafUuid")
	return !title
}

// Role returns who speaks in the line, and false for a line that is no message: the message's own
// role, else the line's, else its type, where "human" is the user. Lines of other types than user and
// assistant are no messages, whatever else they hold; in those, and in lines without a type, the system may speak.
func (l Line) Role() (tidemark.Role, bool) {
	typ, typed := l.Field("type")
	if typed && role(l.Text(typ)) == "" {
		return "", false
	}
	own := l.Get("role")
	if f, ok := l.MessageField("role"); ok {
		own = l.Text(f)
	}
	if own == string(tidemark.System) {
		return tidemark.System, true
	}
	if r := role(own); r != "" {
		return r, true
	}
	r := role(l.Type())
	return r, r != ""
}

func role(s string) tidemark.Role {
	switch s {
	case "user", "human":
		return tidemark.User
	case "assistant":
		return tidemark.Assistant
	}
	return ""
}

// Members yields the members of an object, or the elements of a list, of a line that is valid JSON,
// in order and one at a time, so that a value of any length can be walked. An error is the last.
func (l Line) Members(f Field) iter.Seq2[Field, error] {
	return func(yield func(Field, error) bool) {
		var s scan.Scanner
		if l.Raw != nil {
			s.Reset(l.Raw[f.Start:f.End], f.Start, nil)
		} else {
			s.Reset(nil, f.Start, pieces(l.section(f.Start, f.End), &s))
		}
		if err := each(&s, func(m Field) bool { return yield(m, nil) }); err != nil {
			yield(Field{}, fmt.Errorf("walk line %d: %w", l.Number, err))
		}
	}
}

// each calls visit for every member of the container that is next.
func each(s *scan.Scanner, visit func(Field) bool) error {
	if c := s.Space(); c != '{' && c != '[' {
		s.Fail("want an object or a list")
		return s.Err
	}
	s.Open()
	var m scan.Member
	for s.Next(&m) {
		f := fieldOf(&m)
		if !s.Value() {
			break
		}
		if f.End = s.Pos(); !visit(f) {
			return nil
		}
	}
	return s.Err
}

// pieces reads r piece by piece for s.
func pieces(r io.Reader, s *scan.Scanner) func() []byte {
	buf := make([]byte, 64<<10)
	return func() []byte {
		n, err := io.ReadFull(r, buf)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && s.Err == nil {
			s.Err = err
		}
		return buf[:n]
	}
}
