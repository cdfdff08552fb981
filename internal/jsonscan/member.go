package jsonscan

import "bytes"

// Member is one member of an object, or one element of a list. The value ends where the scanner stands when Value, or
// what else steps over it, has returned.
type Member struct {
	Name    []byte // as it is written, without its quotes; nil for elements
	Escaped bool   // the name has escapes
	Kind    byte   // the first byte of the value
	At      int64  // where it begins: the quote of its name, or the element itself
	Start   int64  // of the value
	Prev    int64  // where the member before ends

	later bool // it is not the first
}

// Next steps up to the value of the next member of the container that was opened last. It reports false when the
// container ended, and when the grammar is broken, which Err tells. The first time m is its zero value.
func (s *Scanner) Next(m *Member) bool {
	closer := s.open.closer()
	m.Prev = s.Pos()
	c := s.Space()
	if c == closer {
		s.close()
		return false
	}
	if m.later {
		if c != ',' {
			return s.Fail(wantComma)
		}
		s.i++
		c = s.Space()
	}
	m.later, m.Name, m.Escaped, m.At = true, nil, false, s.Pos()
	if closer == '}' {
		if c != '"' {
			return s.Fail("want a key in quotes")
		}
		s.i++
		if !s.name(m) || !s.colon() {
			return false
		}
		c = s.Space()
	}
	m.Start, m.Kind = s.Pos(), c
	return true
}

// name scans a name behind its quote.
func (s *Scanner) name(m *Member) bool {
	from := s.i
	if !s.str() {
		return false
	}
	m.Name = s.data[from : s.i-1]
	m.Escaped = bytes.IndexByte(m.Name, '\\') >= 0
	return true
}
