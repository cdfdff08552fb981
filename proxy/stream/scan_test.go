package stream

import (
	"strings"
	"testing"
)

// TestScanCut: an object or a list that is cut off anywhere is not whole; what is whole is told member by member.
func TestScanCut(t *testing.T) {
	object, list := ` {"a":1 , "b\u0041":{"c":[1,"}"]},"d":null}`, ` [1 , {"a":[2]},"],",[] ]`
	for n := range object {
		if _, ok := members([]byte(object[:n]), 0, func([]byte, span) {}); ok {
			t.Errorf("%s is taken for whole", object[:n])
		}
	}
	for n := range list {
		if _, ok := elements([]byte(list[:n]), 0, func(span) {}); ok {
			t.Errorf("%s is taken for whole", list[:n])
		}
	}
	var got []string
	end, ok := members([]byte(object+" x"), 0, func(key []byte, s span) { got = append(got, string(key)+"="+string(s.Of([]byte(object)))) })
	if want := `a=1 bA={"c":[1,"}"]} d=null`; !ok || end != len(object) || strings.Join(got, " ") != want {
		t.Errorf("%v at %d: %q", ok, end, got)
	}
	got = nil
	end, ok = elements([]byte(list+" x"), 0, func(s span) { got = append(got, string(s.Of([]byte(list)))) })
	if want := `1 {"a":[2]} "]," []`; !ok || end != len(list) || strings.Join(got, " ") != want {
		t.Errorf("%v at %d: %q", ok, end, got)
	}
	for raw, want := range map[string]bool{`{}`: true, `{ }`: true, `{,}`: false, `{"a":1,}`: false, `{"a" 1}`: false, `{a:1}`: false, `[]`: false, `{"a":1 "b":2}`: false} {
		if _, ok := members([]byte(raw), 0, func([]byte, span) {}); ok != want {
			t.Errorf("%s: %v", raw, ok)
		}
	}
}

func TestJoin(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{{`[1, {"a":2}]`, `[3]`, `[1,{"a":2},3]`}, {`[]`, `[3,4]`, `[3,4]`}, {`[1]`, `[]`, `[1]`}, {`[]`, `[]`, `[]`}} {
		if got := string(join([]byte(c.a), []byte(c.b))); got != c.want {
			t.Errorf("%s and %s: %s, want %s", c.a, c.b, got, c.want)
		}
	}
}
