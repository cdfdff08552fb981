package trim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
)

// TestUnits: UTF-16 units are those of the text, however long it is and wherever its long characters stand.
func TestUnits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 3000 {
		var b strings.Builder
		for range r.IntN(50) {
			b.WriteString([]string{"a", "b", "é", "東", "🗼"}[r.IntN(5)])
		}
		if got := units([]byte(b.String())); got != int64(tidemark.UTF16Len(b.String())) {
			t.Fatalf("%q: %d", b.String(), got)
		}
	}
}

// TestAppendCode: each character is its UTF-8; half a pair is the three bytes that it would have.
func TestAppendCode(t *testing.T) {
	for r := rune(0); r <= utf8.MaxRune; r++ {
		want := []byte(string(r))
		if r >= 0xd800 && r <= 0xdfff {
			want = []byte{0xe0 | byte(r>>12), 0x80 | byte(r>>6)&0x3f, 0x80 | byte(r)&0x3f}
		}
		if got := appendCode(nil, r); !bytes.Equal(got, want) {
			t.Fatalf("%U: %x, want %x", r, got, want)
		}
	}
}

// TestAppendText: what is put into a string stays in it, on one line.
func TestAppendText(t *testing.T) {
	for text, want := range map[string]string{"a\"b": `a\"b`, `a\b`: `a\\b`, "a\nb\tc\x1fd\x7fe": "a b c d e", "a\u0085\u2028\u2029b~\u0086": "a   b~\u0086", "\xff東\xe6": "?東?", "\ufffd": "\ufffd", " ": " "} {
		if got := string(appendText([]byte("x"), []byte(text))); got != "x"+want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestMediaType: a type is named with what may stand in a name, forty characters of it.
func TestMediaType(t *testing.T) {
	for c := range rune(256) {
		want := "a"
		if c < 0x80 && regexp.MustCompile(`[a-zA-Z0-9/+.-]`).MatchString(string(c)) {
			want += string(c)
		}
		if got := mediaType([]byte{'a', byte(c)}); got != want {
			t.Errorf("%q: %q", c, got)
		}
	}
	for raw, want := range map[string]string{"": "unknown type", "<>": "unknown type", strings.Repeat("a", 41): strings.Repeat("a", 40)} {
		if got := mediaType([]byte(raw)); got != want {
			t.Errorf("%q: %q", raw, got)
		}
	}
}

// TestNewUUID: the id of a line that is added is a UUID of version 8, and the same for the same.
func TestNewUUID(t *testing.T) {
	form, seen := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`), map[string]bool{}
	for i := range 100 {
		id := newUUID([]byte(fmt.Sprint(i)), []byte("p"))
		if seen[id] || !form.MatchString(id) || id != newUUID([]byte(fmt.Sprint(i)), []byte("p")) || id == newUUID([]byte(fmt.Sprint(i)), []byte("q")) {
			t.Errorf("%d: %s", i, id)
		}
		seen[id] = true
	}
}

// TestFootOfAnyLength: an end that says that it is shorter than nothing, or longer than its file, is damaged.
func TestFootOfAnyLength(t *testing.T) {
	for _, n := range []int64{-5, -1, 1, 1000, maxCutsFoot, maxCutsFoot + 1} {
		raw := []byte(fmt.Sprintf(cutsLast, n, 7))
		if _, err := OpenCuts(bytes.NewReader(raw), int64(len(raw))); err == nil {
			t.Errorf("an end of %d bytes is taken", n)
		}
	}
}

// TestSourceFails: a log that broke is told as what it is, one that became shorter as cut off; the first failure stays.
func TestSourceFails(t *testing.T) {
	broken := errors.New("disk is gone")
	for _, c := range []struct {
		in   io.ReaderAt
		want error
	}{{bytes.NewReader([]byte("abc")), io.ErrUnexpectedEOF}, {failing{broken}, broken}, {failing{nil}, io.ErrUnexpectedEOF}, {bytes.NewReader([]byte("abcdefgh")), nil}} {
		r := source{in: c.in}
		to := []byte("xxxxxxxx")
		r.read(to, 0)
		if !errors.Is(r.err, c.want) || (r.err == nil) != (c.want == nil) {
			t.Errorf("%v, want %v", r.err, c.want)
		}
		if want := "abcdefgh"; c.want == nil && string(to) != want || c.want != nil && bytes.Contains(to, []byte("x")) {
			t.Errorf("%q", to)
		}
		first := r.err
		if r.in = (failing{errors.New("another")}); first != nil {
			if r.read(to, 0); !errors.Is(r.err, first) {
				t.Errorf("%v stands over %v", r.err, first)
			}
		}
	}
}

// failing is a log that cannot be read.
type failing struct{ err error }

func (f failing) ReadAt([]byte, int64) (int, error) { return 0, f.err }

// TestLongNames: names beyond what is held as text are told apart, too.
func TestLongNames(t *testing.T) {
	ids := map[uint64]string{}
	for _, n := range []int{1, maxText - 2, maxText - 1, maxText, 3 * maxText} {
		for _, c := range []string{"a", "b"} {
			text := `"` + strings.Repeat("x", n) + c + `"`
			r := source{sizes: sizes{chunk: 1 << 20, piece: 700}, in: strings.NewReader(text)}
			h := r.id(span{0, int64(len(text))})
			if was := ids[h]; was != "" || h == 0 || r.err != nil {
				t.Errorf("%d letters with %s are %s, %v", n, c, was, r.err)
			}
			ids[h] = fmt.Sprint(n, c)
			if again := r.id(span{0, int64(len(text))}); again != h {
				t.Errorf("%d letters are %d, then %d", n, h, again)
			}
		}
	}
}

// TestChangedPlaces: where a log was changed is told by its lines.
func TestChangedPlaces(t *testing.T) {
	for _, c := range []struct {
		first, last int64
		want, not   string
	}{{2, 2, "in line 2", "between"}, {2, 3, "between line 2 and line 3", "in line"}, {1, 1, "in line 1, or it is the log of another trim", "between"}, {3, 2, "in line 3", "between"}} {
		if got := fmt.Sprint(changed(c.first, c.last, 0, 9)); !strings.Contains(got, c.want) || strings.Contains(got, c.not) {
			t.Errorf("%d to %d: %s", c.first, c.last, got)
		}
	}
}
