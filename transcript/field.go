package transcript

import (
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// Kind is the first byte of a JSON value, '0' for every number.
type Kind byte

// The kinds of values. The zero Kind is no value.
const (
	Object Kind = '{'
	Array  Kind = '['
	String Kind = '"'
	Number Kind = '0'
	True   Kind = 't'
	False  Kind = 'f'
	Null   Kind = 'n'
)

func kindOf(c byte) Kind {
	if c == '-' || isDigit(c) {
		return Number
	}
	return Kind(c)
}

// Field is one member of an object, or one element of a list, by its place in the line. The value is
// the bytes from Start up to End; the name begins, with its quote, at Key. All three count from the
// first byte of the line.
type Field struct {
	Name            string // unescaped; empty for elements and for names that are too long to keep
	Key, Start, End int64  // Key is -1 for elements
	Kind            Kind
}

// Size returns the length of the value in bytes.
func (f Field) Size() int64 { return f.End - f.Start }

// begin scans up to the next value of the container that is open on top of the stack, and says in f
// where it is. It reports false when the container closed, and when the scan failed.
func (s *scanner) begin(f *Field, first bool) bool {
	closer := s.stack[len(s.stack)-1]
	c := s.space()
	if c == closer {
		s.pop()
		return false
	}
	if !first {
		if c != ',' {
			return s.fail("want a comma or the end of the list or object")
		}
		s.i++
		c = s.space()
	}
	f.Name, f.Key = "", -1
	if closer == '}' {
		f.Key = s.pos()
		if !s.name(f) {
			return false
		}
		c = s.space()
	}
	f.Start, f.Kind = s.pos(), kindOf(c)
	return true
}

// name scans the key of f and its colon.
func (s *scanner) name(f *Field) bool {
	if s.space() != '"' {
		return s.fail("want a key in quotes")
	}
	start := s.i
	s.i++
	// The usual key has no escapes, stands in one piece and has its colon behind it.
	for end := s.i; end+1 < len(s.data) && s.data[end] >= ' ' && s.data[end] != '\\'; end++ {
		if s.data[end] != '"' {
			continue
		}
		f.Name = intern(s.data[s.i:end])
		s.i = end + 1
		if s.data[s.i] == ':' {
			s.i++
			return true
		}
		return s.colon()
	}
	return s.oddName(f, start)
}

// oddName scans a key with escapes, or one that goes on in the next piece, whose quote stands at
// start. Of the pieces it keeps as much as a name may have.
func (s *scanner) oddName(f *Field, start int) bool {
	s.key = s.key[:0]
	keep := func(b []byte) {
		s.key = append(s.key, b[:min(len(b), 6*maxKey+2-min(len(s.key), 6*maxKey+2))]...)
	}
	if next := s.next; next != nil {
		s.next = func() []byte {
			keep(s.data[start:])
			start = 0
			return next()
		}
		defer func() {
			if s.next != nil {
				s.next = next
			}
		}()
	}
	if !s.str() {
		return false
	}
	keep(s.data[start:s.i])
	if json.Unmarshal(s.key, &f.Name) != nil || len(f.Name) > maxKey {
		f.Name = ""
	}
	return s.colon()
}

// object scans an object, whose bracket is next, and appends its fields to fields. The fields of
// its member "message" go to inner, when that is not nil.
func (s *scanner) object(fields, inner *[]Field) bool {
	if !s.push('}') {
		return false
	}
	var f Field
	for first := true; s.begin(&f, first); first = false {
		if !s.member(f, inner) {
			return false
		}
		if f.End = s.pos(); len(*fields) < MaxFields {
			*fields = append(*fields, f)
		} else {
			record(fields, f)
		}
	}
	return s.err == nil
}

// member scans the value of a field. The fields of the member "message" go to inner.
func (s *scanner) member(f Field, inner *[]Field) bool {
	if inner == nil || f.Name != "message" {
		return s.value()
	}
	*inner = (*inner)[:0] // of two equal keys the last one counts
	if f.Kind != Object {
		return s.value()
	}
	return s.object(inner, nil)
}

// record lists a field beyond the bound: only one with a known name, and of equal ones the last.
func record(fields *[]Field, f Field) {
	if known([]byte(f.Name)) == "" {
		return
	}
	for i := len(*fields) - 1; i >= MaxFields; i-- {
		if (*fields)[i].Name == f.Name {
			copy((*fields)[i:], (*fields)[i+1:])
			(*fields)[len(*fields)-1] = f
			return
		}
	}
	*fields = append(*fields, f)
}

// lookup finds a field by name; of two equal ones the last, as every JSON decoder does.
func lookup(fields []Field, name string) (Field, bool) {
	for i := len(fields) - 1; i >= 0; i-- {
		if fields[i].Name == name {
			return fields[i], true
		}
	}
	return Field{}, false
}

// knownNames are names of fields and types that real logs repeat on every line. It is only read.
var knownNames = names("type", "subtype", "uuid", "parentUuid", "logicalParentUuid", "isSidechain", "isMeta",
	"isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage", "sessionId", "timestamp", "cwd", "version",
	"gitBranch", "userType", "slug", "requestId", "message", "id", "role", "model", "content", "usage", "stop_reason",
	"stop_sequence", "toolUseResult", "sourceToolAssistantUUID", "toolUseID", "parentToolUseID", "data", "operation",
	"leafUuid", "summary", "snapshot", "messageId", "isSnapshotUpdate", "compactMetadata", "level", "thinkingMetadata",
	"todos", "permissionMode", "agentId", "customTitle", "aiTitle", "user", "assistant", "system", "progress",
	"attachment", "file-history-snapshot", "queue-operation", "compact_boundary", "microcompact_boundary",
	"text", "name", "input", "tool_use_id", "is_error", "thinking", "signature", "source", "tool_use", "tool_result",
	"image", "document", "redacted_thinking", "input_tokens", "output_tokens", "cache_read_input_tokens",
	"cache_creation_input_tokens")

// nameTable finds names by a hash so cheap that no map keeps up; a slot holds those that share it.
type nameTable [256][]string

func slotOf[T string | []byte](name T) byte {
	n := len(name)
	if n == 0 {
		return 0
	}
	return byte(n)*7 + name[0]*3 + name[n/2]*5 + name[n-1]
}

// known returns b as a string, without an allocation, when it is a known name; else "".
func known(b []byte) string {
	for _, n := range knownNames[slotOf(b)] {
		if n == string(b) {
			return n
		}
	}
	return ""
}

func names(list ...string) nameTable {
	var t nameTable
	for _, n := range list {
		t[slotOf(n)] = append(t[slotOf(n)], n)
	}
	return t
}

// intern returns b as a string, without an allocation for what real logs repeat.
func intern(b []byte) string {
	if s := known(b); s != "" || len(b) > maxKey {
		return s
	}
	name := string(b)
	if !utf8.ValidString(name) {
		name = string([]rune(name)) // as encoding/json reads it
	}
	if len(name) > maxKey {
		return ""
	}
	return name
}
