package sse

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	tidemark "github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// events reads all events of a stream as "name|data" and returns what ended it.
func events(r io.Reader) (out []string, err error) {
	s := NewReader(r)
	for {
		ev, err := s.Next()
		if err != nil {
			return out, err
		}
		out = append(out, ev.Name+"|"+string(ev.Data))
	}
}

func TestSSEReader(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"nothing", "", nil},
		{"one event", "event: a\ndata: 1\n\n", []string{"a|1"}},
		{"no name", "data: 1\n\n", []string{"|1"}},
		{"no space behind the colon", "data:1\n\n", []string{"|1"}},
		{"only one space goes", "data:  1\n\n", []string{"| 1"}},
		{"a colon in the data", "data: {\"a\":\"b: c\"}\n\n", []string{"|{\"a\":\"b: c\"}"}},
		{"lines are joined", "data: a\ndata: b\n\n", []string{"|a\nb"}},
		{"an empty data line counts", "data:\n\n", []string{"|"}},
		{"data without a colon", "data\n\n", []string{"|"}},
		{"comments and unknown fields", ": hi\nid: 7\nretry: 5\nfoo: bar\ndata: 1\n\n", []string{"|1"}},
		{"a name without data is dropped", "event: a\n\ndata: 1\n\n", []string{"|1"}},
		{"CRLF", "event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n", []string{"a|1", "|2"}},
		{"CR", "data: 1\r\rdata: 2\r\r", []string{"|1", "|2"}},
		{"mixed ends", "data: 1\r\n\ndata: 2\n\r\n", []string{"|1", "|2"}},
		{"byte order mark", "\xef\xbb\xbfdata: 1\n\n", []string{"|1"}},
		{"complete lines without an empty line", "data: 1\n", []string{"|1"}},
		{"a cut line is dropped", "data: 1\n\ndata: 2", []string{"|1"}},
		{"a cut line after a whole one", "data: 1\ndata: 2", []string{"|1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for how, r := range map[string]io.Reader{"whole": strings.NewReader(c.in), "byte by byte": iotest.OneByteReader(strings.NewReader(c.in)), "error with the data": iotest.DataErrReader(strings.NewReader(c.in))} {
				got, err := events(r)
				if !errors.Is(err, io.EOF) || fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) {
					t.Errorf("%s: got %q, %v, want %q", how, got, err, c.want)
				}
			}
		})
	}
}

func TestSSEReaderBounds(t *testing.T) {
	endless := io.MultiReader(strings.NewReader("data: "), &repeat{"x", 2 * maxLine})
	if _, err := events(endless); !errors.Is(err, tidemark.ErrTooLarge) {
		t.Errorf("an endless line: %v", err)
	}
	line := "data: " + strings.Repeat("y", 1<<20) + "\n"
	if _, err := events(&repeat{line, 20 * len(line)}); !errors.Is(err, tidemark.ErrTooLarge) {
		t.Errorf("endless data lines: %v", err)
	}
	if _, err := events(&nothing{}); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a reader that gives nothing: %v", err)
	}
	broken := errors.New("broken")
	got, err := events(io.MultiReader(strings.NewReader("data: 1\n\n"), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) || len(got) != 1 {
		t.Errorf("a failing reader: %q, %v", got, err)
	}
}

// repeat gives a text again and again, left bytes in all.
type repeat struct {
	text string
	left int
}

func (r *repeat) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, io.EOF
	}
	n := 0
	for n+len(r.text) <= len(p) {
		n += copy(p[n:], r.text)
	}
	if n == 0 { // a small buffer: give what fits and turn the text
		n = copy(p, r.text)
		r.text = r.text[n:] + r.text[:n]
	}
	r.left -= n
	return n, nil
}

type nothing struct{}

func (nothing) Read([]byte) (int, error) { return 0, nil }

func FuzzSSEReader(f *testing.F) {
	f.Add("event: a\r\ndata: 1\r\n\r\n: c\ndata: x\ndata:y\n\n", []byte{0, 1, 2})
	f.Add("\xef\xbb\xbfdata\r\rdata: 2", []byte{})
	f.Fuzz(func(t *testing.T, in string, sizes []byte) {
		a, errA := events(strings.NewReader(in))
		b, errB := events(&tidemarktest.Chopped{R: strings.NewReader(in), Sizes: sizes})
		if fmt.Sprintf("%q %v", a, errA) != fmt.Sprintf("%q %v", b, errB) {
			t.Fatalf("chunked by %v: %q %v, whole: %q %v", sizes, b, errB, a, errA)
		}
		// Written anew, what was read reads the same.
		var again strings.Builder
		for _, e := range a {
			name, data, _ := strings.Cut(e, "|")
			if strings.HasPrefix(name, " ") || strings.Contains(name, "\xef\xbb\xbf") {
				return
			}
			again.WriteString("event: " + name + "\n")
			for _, line := range strings.Split(data, "\n") {
				again.WriteString("data: " + line + "\n")
			}
			again.WriteString("\n")
		}
		if c, _ := events(strings.NewReader(again.String())); fmt.Sprintf("%q", c) != fmt.Sprintf("%q", a) && !strings.Contains(fmt.Sprint(a), "|"+"|") {
			for _, e := range a {
				if strings.Count(e, "|") > 1 {
					return // the name held our separator
				}
			}
			t.Fatalf("written anew %q reads as %q", a, c)
		}
	})
}
