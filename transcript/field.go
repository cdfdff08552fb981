package transcript

import (
	"strings"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

// MaxFields bounds the fields listed for one object, so that a line of nothing but keys does not
// fill the memory. Fields that this package knows by name are listed beyond it.
const MaxFields = 1024

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
	if c == '-' || c-'0' <= 9 {
		return Number
	}
	return Kind(c)
}

// Field is one member of an object, or one element of a list, by its place in the line. The value is
// the bytes from Start up to End; the name begins, with its quote, at Key. All three count from the
// first byte of the line.
type Field struct {
	Name            string // unescaped; empty for elements
	Key, Start, End int64  // Key is -1 for elements
	Kind            Kind
}

// Size returns the length of the value in bytes.
func (f Field) Size() int64 { return f.End - f.Start }

// fieldOf says where a member is; its end is not known yet.
func fieldOf(m *jsonscan.Member) Field {
	f := Field{Key: -1, Start: m.Start, Kind: kindOf(m.Kind)}
	if m.Name != nil {
		f.Key, f.Name = m.At, nameOf(m)
	}
	return f
}

// nameOf decodes the name of a member.
func nameOf(m *jsonscan.Member) (name string) {
	if !m.Escaped && utf8.Valid(m.Name) {
		return string(m.Name)
	}
	_ = json.Unmarshal([]byte(`"`+string(m.Name)+`"`), &name) // it was scanned
	return name
}

// object scans an object, whose bracket is next, and appends its fields to fields. The fields of
// its member "message" go to inner, when that is not nil.
func object(s *jsonscan.Scanner, fields, inner *[]Field) bool {
	if !s.Open() {
		return false
	}
	var m jsonscan.Member
	for s.Next(&m) {
		f := fieldOf(&m)
		if !member(s, f, inner) {
			return false
		}
		if f.End = s.Pos(); len(*fields) < MaxFields {
			*fields = append(*fields, f)
		} else {
			record(fields, f)
		}
	}
	return s.Err == nil
}

// member scans the value of a field. The fields of the member "message" go to inner.
func member(s *jsonscan.Scanner, f Field, inner *[]Field) bool {
	if inner == nil || f.Name != "message" {
		return s.Value()
	}
	*inner = (*inner)[:0] // of two equal keys the last one counts
	if f.Kind != Object {
		return s.Value()
	}
	return object(s, inner, nil)
}

// record lists a field beyond the bound: only one with a known name, and of equal ones the last.
func record(fields *[]Field, f Field) {
	if !knownNames[f.Name] {
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

// knownNames are the names of fields that this package, or who reads by it, looks for. It is only read.
var knownNames = func() map[string]bool {
	known := map[string]bool{}
	for _, n := range strings.Fields(`type subtype uuid parentUuid logicalParentUuid isSidechain isMeta
		isCompactSummary isVisibleInTranscriptOnly isApiErrorMessage sessionId timestamp cwd version
		gitBranch userType slug requestId message id role model content usage stop_reason
		stop_sequence toolUseResult sourceToolAssistantUUID toolUseID parentToolUseID data operation
		leafUuid summary snapshot messageId isSnapshotUpdate compactMetadata level thinkingMetadata
		todos permissionMode agentId customTitle aiTitle attachment`) {
		known[n] = true
	}
	return known
}()
