package transcript

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// repeat is n bytes of a block that repeats.
type repeat struct {
	block []byte
	n     int64
}

func newRepeat(pattern string, n int64) repeat {
	size := int64(len(pattern))
	return repeat{bytes.Repeat([]byte(pattern), int(64<<10/size+1)), n / size * size}
}

func (r *repeat) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	for n < len(p) && off < r.n {
		b := r.block[off%int64(len(r.block)):]
		k := copy(p[n:], b[:min(int64(len(b)), r.n-off)])
		n, off = n+k, off+int64(k)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// stretched is head, a repeated block and tail, made while it is read. It calls visit at every
// megabyte.
type stretched struct {
	head, tail []byte
	middle     repeat
	visit      func()
	read       int
}

func (s *stretched) size() int64 { return int64(len(s.head)) + s.middle.n + int64(len(s.tail)) }

func (s *stretched) ReadAt(p []byte, off int64) (int, error) {
	if s.read += len(p); s.read > 1<<20 {
		s.read = 0
		s.visit()
	}
	h, m := int64(len(s.head)), s.middle.n
	var n int
	switch {
	case off < h:
		n = copy(p, s.head[off:])
	case off < h+m:
		n, _ = s.middle.ReadAt(p, off-h)
	case off < s.size():
		n = copy(p, s.tail[off-h-m:])
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	if n < len(p) {
		k, err := s.ReadAt(p[n:], off+int64(n))
		return n + k, err
	}
	return n, nil
}

// longLine is a log of three lines, of which the second has a field of n bytes.
func longLine(n int64, before, behind string) *stretched {
	return &stretched{
		head:   []byte(lineUser + "\n" + before),
		middle: newRepeat(`0123456789 abc \" \n \u00e9 `, n),
		tail:   []byte(behind + "\n" + lineUser + "\n"),
	}
}

// peakOf runs f and returns the most memory that was in use meanwhile, as far as visits tell: what is garbage by then
// is collected first, so that the figure does not depend on when the collector runs.
func peakOf(t *testing.T, f func(visit func())) uint64 {
	t.Helper()
	var m runtime.MemStats
	var base, peak uint64
	visit := func() {
		runtime.GC()
		runtime.ReadMemStats(&m)
		peak = max(peak, m.HeapAlloc)
	}
	visit()
	base = peak
	f(visit)
	visit()
	return peak - min(base, peak)
}

// longBytes is the length of the long line: 64 MB, or TIDEMARK_LONG_LINE_MB.
func longBytes(t *testing.T) int64 {
	s := os.Getenv("TIDEMARK_LONG_LINE_MB")
	switch {
	case s == "" && testing.Short():
		return 40e6
	case s == "":
		return 64e6
	}
	mb, err := strconv.ParseInt(s, 10, 64)
	if err != nil || mb < 1 {
		t.Fatalf("TIDEMARK_LONG_LINE_MB is %q, want a number of megabytes", s)
	}
	return mb * 1e6
}

const maxHeap = 12 << 20 // it takes 8.4 MB; the bar for a whole trim is 64 MiB of process

func TestLongLinesStayOutOfMemory(t *testing.T) {
	size := longBytes(t)
	shapes := map[string][2]string{
		"result beside a message": {`{"type":"user","toolUseResult":"`, `","message":{"role":"user","content":"small"}}`},
		"content of a message":    {`{"type":"user","message":{"role":"user","content":"`, `"},"uuid":"u"}`},
		"key":                     {`{"type":"user","`, `":1,"message":{"role":"user","content":"small"}}`},
		"no JSON":                 {`{"type":"user" `, `}`},
	}
	for name, shape := range shapes {
		for _, way := range []string{"file", "pipe"} {
			t.Run(name+" in a "+way, func(t *testing.T) {
				log := longLine(size, shape[0], shape[1])
				dir := t.TempDir()
				peak := peakOf(t, func(visit func()) { readLong(t, log, way, dir, visit) })
				if peak > maxHeap {
					t.Errorf("the heap grew by %d MiB, at most %d are allowed", peak>>20, maxHeap>>20)
				}
			})
		}
	}
}

// readLong reads all lines and messages of a log with a long line, and writes the lines.
func readLong(t *testing.T, log *stretched, way, dir string, visit func()) {
	log.visit = visit
	open := func() io.Reader {
		var r io.Reader = io.NewSectionReader(log, 0, log.size())
		if way == "pipe" {
			r = io.MultiReader(r)
		}
		return r
	}
	var out counter
	for l, err := range Lines(open(), Options{TempDir: dir}) {
		if err != nil {
			t.Fatal(err)
		}
		visit()
		if _, err := l.WriteTo(&out); err != nil {
			t.Fatal(err)
		}
	}
	if out.n != log.size() {
		t.Errorf("wrote %d bytes of %d", out.n, log.size())
	}
	messages, bad := 0, 0
	for it, err := range Messages(open(), Options{TempDir: dir}) {
		var le *LineError
		switch {
		case errors.As(err, &le) && le.Line == 2 && (errors.Is(err, tidemark.ErrTooLarge) || errors.Is(err, tidemark.ErrInvalid)):
			bad++
		case err != nil:
			t.Fatal(err)
		case len(it.Lines) == 1:
			messages++
		}
		visit()
	}
	if messages+bad != 3 || bad > 1 {
		t.Errorf("%d messages and %d errors of three lines", messages, bad)
	}
}

type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

func TestManyLinesStayOutOfMemory(t *testing.T) {
	tests := map[string]string{
		"blank lines": "\n",
		"no JSON":     "x\n",
		"user lines":  strings.Repeat(lineUser+"\n", 50),
	}
	for name, pattern := range tests {
		t.Run(name, func(t *testing.T) {
			log := newRepeat(pattern, 1<<20)
			peak := peakOf(t, func(visit func()) {
				r := io.NewSectionReader(&log, 0, log.n)
				seen := 0
				for _, err := range Messages(r, Options{}) {
					var le *LineError
					if err != nil && !errors.As(err, &le) {
						t.Fatal(err)
					}
					if seen++; seen%10000 == 0 {
						visit()
					}
				}
			})
			if peak > maxHeap {
				t.Errorf("the heap grew by %d MiB", peak>>20)
			}
		})
	}
}

func TestManyReplies(t *testing.T) {
	var log bytes.Buffer
	for i := range 20000 {
		fmt.Fprintf(&log, lineThink+"\n", fmt.Sprint("msg_", i%10000))
	}
	n := 0
	for it, err := range Messages(bytes.NewReader(log.Bytes()), Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; len(it.Lines) != 2 || it.Lines[1]-it.Lines[0] != 10000 {
			t.Fatalf("message %d has lines %v", n, it.Lines)
		}
	}
	if n != 10000 {
		t.Errorf("%d messages, want 10000", n)
	}
}
