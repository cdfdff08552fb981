package transcript

import (
	"bytes"
	"iter"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

// maxText bounds the strings that [Line.Text] reads: ids, types, names and paths.
const maxText = 4096

// Line is one line of a log, as it stands there. Its slices hold until the next line is asked for.
type Line struct {
	Number int64  // from 1
	Offset int64  // of the first byte, from where the reading began
	Size   int64  // in bytes, with the line break
	Raw    []byte // as it stands, with its line break

	// Long says that the line has more than Options.MaxLine bytes: this is a piece of it, which nobody looks into. The
	// pieces come in order, with one number.
	Long bool

	// Err says why the line was not read: it is no JSON value (tidemark.ErrInvalid), or too long (tidemark.ErrTooLarge).
	// Blank lines have none.
	Err error

	// Value is the JSON value in the line, without spaces, byte order mark and line break. Its kind is
	// 0 for a blank line, and for one that was not read.
	Value Field

	// Fields are the members of the value, if it is an object, in their order, equal names included;
	// Inner those of its member "message", if that is an object. At most MaxFields each, and beyond
	// them those that are known by name.
	Fields, Inner []Field
}

// Blank reports whether there is nothing but white space in the line.
func (l Line) Blank() bool { return l.Value.Kind == 0 && l.Err == nil }

// Field returns the member of that name; of two equal ones the last, as JSON decoders do.
func (l Line) Field(name string) (Field, bool) { return lookup(l.Fields, name) }

// MessageField returns the member of that name of the member "message".
func (l Line) MessageField(name string) (Field, bool) { return lookup(l.Inner, name) }

// Ended reports whether the line has its line break.
func (l Line) Ended() bool { return bytes.HasSuffix(l.Raw, []byte{'\n'}) }

// Bytes returns a value as it stands in the line.
func (l Line) Bytes(f Field) []byte { return l.Raw[f.Start:f.End:f.End] }

// Text returns a string value, unescaped. Other kinds, and strings beyond 4 KiB, are "".
func (l Line) Text(f Field) string {
	if f.Kind != String || f.Size() > maxText {
		return ""
	}
	b := l.Bytes(f)
	if in := b[1 : len(b)-1]; bytes.IndexByte(in, '\\') < 0 && utf8.Valid(in) {
		return string(in)
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

// Members yields the members of an object, or the elements of a list, of a line that is valid JSON, in order. Another
// value has none.
func (l Line) Members(f Field) iter.Seq[Field] {
	return func(yield func(Field) bool) {
		if f.Kind != Object && f.Kind != Array {
			return
		}
		var s jsonscan.Scanner
		var m jsonscan.Member
		s.Reset(l.Bytes(f), f.Start)
		for s.Open(); s.Next(&m); {
			one := fieldOf(&m)
			s.Value()
			if one.End = s.Pos(); !yield(one) {
				return
			}
		}
	}
}

// Usage takes the figures that a field of usage reports over those in u. hour is how much of the writes went to the cache
// that lives an hour; ok says that there was any figure. Where one is beyond all sense the others are not taken either.
func (l Line) Usage(f Field, u *tidemark.Usage) (hour tidemark.Tokens, ok bool) {
	if f.Kind != Object {
		return 0, false
	}
	before := *u
	for m := range l.Members(f) {
		var to *tidemark.Tokens
		switch m.Name {
		case "input_tokens":
			to = &u.Input
		case "output_tokens":
			to = &u.Output
		case "cache_read_input_tokens":
			to = &u.CacheRead
		case "cache_creation_input_tokens":
			to = &u.CacheCreation
		case "cache_creation":
			for m := range l.Members(m) {
				if n, is := l.Count(m); is && m.Name == "ephemeral_1h_input_tokens" {
					hour = n
				}
			}
		}
		switch n, is := l.Count(m); {
		case to == nil:
		case is:
			*to, ok = n, true
		case m.Kind == Number && m.Size() > maxDigits:
			*u = before
			return 0, false
		}
	}
	return hour, ok
}

// maxDigits is how many a figure may have: a sum of many stays within 63 bits.
const maxDigits = 15

// Count reads a whole number that is not negative; others are no figure.
func (l Line) Count(f Field) (tidemark.Tokens, bool) {
	if f.Kind != Number || f.Size() > maxDigits {
		return 0, false
	}
	n, err := strconv.ParseInt(string(l.Bytes(f)), 10, 64)
	return tidemark.Tokens(n), err == nil && n >= 0
}
