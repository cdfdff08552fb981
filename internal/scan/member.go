package scan

// MaxName bounds the names of members that a reader need tell apart: of longer ones only the beginning is kept.
const MaxName = 256

// Member is one member of an object, or one element of a list. The value ends where the scanner stands when Value, or
// what else steps over it, has returned.
type Member struct {
	Name    []byte // as it is written, without its quotes, until the scan goes on; nil for elements
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
		if m.Name == nil {
			m.Name = []byte{} // an empty name is one
		}
		c = s.Space()
	}
	m.Start, m.Kind = s.Pos(), c
	return true
}

// name scans a name behind its quote. The usual one stands in one piece.
func (s *Scanner) name(m *Member) bool {
	from, escaped := s.i, s.Escaped
	end := s.plain(from)
	if end == len(s.data) || s.data[end] != '"' {
		s.Escaped = escaped // it is scanned from its beginning
		return s.oddName(m, from)
	}
	m.Name, m.Escaped, s.i = s.data[from:end], s.Escaped > escaped, end+1
	if s.more != nil && (end+2 >= len(s.data) || s.data[end+1] != ':' || s.data[end+2] <= ' ') {
		// The next piece may take the place of this one before the value is reached.
		s.key = append(s.key[:0], m.Name[:min(len(m.Name), maxRaw)]...)
		m.Name = s.key
	}
	return true
}

// maxRaw is as much as a name of MaxName bytes, and one more, takes when each is an escape.
const maxRaw = 6 * (MaxName + 1)

// oddName scans a name that goes on in the next piece or has escapes.
func (s *Scanner) oddName(m *Member, from int) bool {
	s.key = s.key[:0]
	keep := func(b []byte) { s.key = append(s.key, b[:min(len(b), maxRaw-len(s.key))]...) }
	if more := s.more; more != nil {
		s.more = func() []byte {
			keep(s.data[from:])
			from = 0
			return more()
		}
		defer func() {
			if s.more != nil {
				s.more = more
			}
		}()
	}
	before := s.Escaped
	if !s.str() {
		return false
	}
	keep(s.data[from : s.i-1])
	m.Name, m.Escaped = s.key, s.Escaped > before
	return true
}
