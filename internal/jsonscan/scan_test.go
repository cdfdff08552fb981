package jsonscan

import (
	"bytes"
	stdjson "encoding/json" // the scanner's judge must not be our own wrapper
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
)

func over(data []byte) *Scanner {
	s := &Scanner{}
	s.Reset(data, 0)
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

// check holds the law on one input: the verdict of encoding/json by both ways to scan, and the members that it finds.
func check(t *testing.T, data []byte) {
	t.Helper()
	var want bytes.Buffer
	valid := stdjson.Compact(&want, data) == nil && len(bytes.TrimSpace(data)) > 0
	s := over(data)
	whole := s.Value() && s.Space() == 0 && s.AtEnd()
	var got strings.Builder
	s = over(data)
	walked := walk(s, data, &got) && s.Space() == 0 && s.AtEnd()
	if whole != valid || walked != valid {
		t.Fatalf("whole %v, walked %v (%v), encoding/json says %v of %.200q", whole, walked, s.Err, valid, data)
	}
	if valid && got.String() != want.String() {
		t.Fatalf("walked %.300q, want %.300q", got.String(), want.String())
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
		s := over(deep)
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

// TestLines: the lines are the input, and one over the bound comes in pieces.
func TestLines(t *testing.T) {
	boom := errors.New("boom")
	for _, in := range []string{"", "\n", "a", "a\n\nb", "12345678\n", "123456789\nx\n", "1234567\n" + strings.Repeat("x", 30) + "\n" + strings.Repeat("y", 17)} {
		for way, r := range map[string]io.Reader{"whole": strings.NewReader(in), "bytes": iotest.OneByteReader(strings.NewReader(in)), "breaks": io.MultiReader(strings.NewReader(in), iotest.ErrReader(boom))} {
			var out strings.Builder
			var last error
			for l, err := range Lines(r, 8) {
				if last = err; err != nil {
					break
				}
				number := int64(1 + strings.Count(out.String(), "\n"))
				if l.From != int64(out.Len()) || l.Number != number || l.To() != l.From+int64(len(l.Raw)) || len(l.Raw) == 0 {
					t.Errorf("%q, %s: line %d at %d is %q", in, way, l.Number, l.From, l.Raw)
				}
				if line := strings.SplitAfter(in, "\n")[number-1]; l.Long != (len(line) > 8) {
					t.Errorf("%q, %s: line %d is long: %t", in, way, l.Number, l.Long)
				}
				out.Write(l.Raw)
			}
			if out.String() != in || (way == "breaks") != errors.Is(last, boom) {
				t.Errorf("%q, %s: %q, %v", in, way, out.String(), last)
			}
		}
	}
	for _, err := range Lines(stalled{}, 8) {
		if !errors.Is(err, io.ErrNoProgress) {
			t.Errorf("stalled input: %v", err)
		}
	}
}

type stalled struct{}

func (stalled) Read([]byte) (int, error) { return 0, nil }

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
