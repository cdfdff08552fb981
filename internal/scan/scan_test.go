package scan

import (
	"bytes"
	stdjson "encoding/json" // the scanner's judge must not be our own wrapper
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf16"
)

// over scans data in pieces of n bytes; each piece takes the place of the one before.
func over(data []byte, n int) *Scanner {
	s, buf := &Scanner{}, make([]byte, n)
	s.Reset(nil, 0, func() []byte {
		k := copy(buf, data)
		data = data[k:]
		return buf[:k]
	})
	return s
}

// walk writes the value that is next as Next and Value find it, with names and scalars as they stand in data.
func walk(s *Scanner, data []byte, out *strings.Builder) bool {
	c := s.Space()
	from := s.Pos()
	if c != '{' && c != '[' {
		if !s.Value() {
			return false
		}
		out.Write(data[from:s.Pos()])
		return true
	}
	out.WriteByte(c)
	if !s.Open() {
		return false
	}
	var m Member
	for n := 0; s.Next(&m); n++ {
		if n > 0 {
			out.WriteByte(',')
		}
		if c == '{' {
			out.WriteString(`"` + string(m.Name) + `":`)
		}
		if !walk(s, data, out) {
			return false
		}
	}
	out.WriteByte(c + 2)
	return s.Err == nil
}

// check holds the law on one input, whatever the pieces: the verdict of encoding/json by both ways to scan, and
// the members that it finds.
func check(t *testing.T, data []byte) {
	t.Helper()
	var want bytes.Buffer
	valid := stdjson.Compact(&want, data) == nil && len(bytes.TrimSpace(data)) > 0
	for _, n := range []int{1, 3, 7, 64, 1 << 16} {
		s := over(data, n)
		whole := s.Value() && s.Space() == 0 && s.AtEnd()
		var got strings.Builder
		s = over(data, n)
		walked := walk(s, data, &got) && s.Space() == 0 && s.AtEnd()
		if whole != valid || walked != valid {
			t.Fatalf("pieces of %d: whole %v, walked %v (%v), encoding/json says %v of %.200q", n, whole, walked, s.Err, valid, data)
		}
		if valid && len(data) < MaxName && got.String() != want.String() {
			t.Fatalf("pieces of %d: walked %.300q, want %.300q", n, got.String(), want.String())
		}
	}
}

var cases = []string{
	``, ` `, `{}`, ` { } `, `[]`, `[ ]`, `null`, `nul`, `"a`, `"\u12g4"`, `"\u00`, "\"a\nb\"", `-`, `01`, `1.5e+3`, `1e`, `{"a":1,"b":[{"c":null}]}`, `{"":1}`,
	`{"a" : [ 1 , 2 ] , "b\"c" : "d" }`, `{"a":1,}`, `[1,]`, `[1 2]`, `{"a" 1}`, `{a:1}`, `{"a":1]`, `[1}`, `{"s\u0075m":"x"}`, `1 2`, "{\"\xff\":1}", "\x00", `["\\"]`,
}

func TestAgreesWithEncodingJSON(t *testing.T) {
	for _, c := range cases {
		check(t, []byte(c))
	}
	for _, n := range []int{MaxDepth, MaxDepth + 1} {
		deep := []byte(strings.Repeat("[", n) + strings.Repeat("]", n))
		s := over(deep, 64)
		if ok := s.Value(); ok != (n == MaxDepth) {
			t.Errorf("%d deep: %v, %v", n, ok, s.Err)
		}
	}
}

func FuzzScan(f *testing.F) {
	for _, c := range cases {
		f.Add([]byte(c))
	}
	f.Fuzz(func(t *testing.T, data []byte) { check(t, data[:min(len(data), 4096)]) })
}

func TestLongNamesKeepTheirBeginning(t *testing.T) {
	for _, unit := range []string{"k", `\u0041`} {
		for _, n := range []int{MaxName, MaxName + 1, 10 * MaxName} {
			name := strings.Repeat(unit, n)
			s := over([]byte(`{"`+name+`":1}`), 100)
			var m Member
			if s.Space() != '{' || !s.Open() || !s.Next(&m) {
				t.Fatal(s.Err)
			}
			if !strings.HasPrefix(name, string(m.Name)) || len(m.Name) < min(len(name), (MaxName+1)*len(unit)) || m.Escaped != (unit != "k") {
				t.Errorf("of %d times %s: %d bytes kept, escaped %v", n, unit, len(m.Name), m.Escaped)
			}
		}
	}
}

// TestTellsCharacters: of a string that is ASCII, the bytes without Escaped are its UTF-16 units.
func TestTellsCharacters(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 5000 {
		var b strings.Builder
		b.WriteByte('"')
		for range r.IntN(30) {
			b.WriteString([]string{"a", "plain text ", `\"`, `\\`, `\n`, `\u0041`, `\ud83d\ude00`, "é"}[r.IntN(8)])
		}
		b.WriteByte('"')
		data := []byte(b.String())
		s := over(data, 1+r.IntN(20))
		if !s.Value() {
			t.Fatal(s.Err)
		}
		ascii := s.Bits&0x8080808080808080 == 0
		if ascii != !strings.Contains(b.String(), "é") {
			t.Fatalf("ascii is %v of %s", ascii, data)
		}
		var text string
		if err := stdjson.Unmarshal(data, &text); err != nil {
			t.Fatal(err)
		}
		if got, want := int64(len(data)-2)-s.Escaped, int64(len(utf16.Encode([]rune(text)))); ascii && got != want {
			t.Fatalf("%d characters, want %d, of %s", got, want, data)
		}
	}
}

func TestPlainFindsTheFirst(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 50000 {
		b := make([]byte, r.IntN(40))
		for i := range b {
			b[i] = "abc \xff\x80\x7f!#[]\xa2\xdcnu\"\\\\\x1f\x02"[r.IntN(20)]
		}
		from := r.IntN(len(b) + 1)
		want := from
		for ; want < len(b) && b[want] >= ' ' && b[want] != '"'; want++ {
			if b[want] == '\\' {
				if want+1 == len(b) || !strings.ContainsRune(`"\/bfnrt`, rune(b[want+1])) {
					break
				}
				want++
			}
		}
		s := Scanner{data: b}
		if got := s.plain(from); got != want {
			t.Fatalf("plain(%q, %d) = %d, want %d", b, from, got, want)
		}
	}
}
