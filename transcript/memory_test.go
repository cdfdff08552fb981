package transcript

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
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

const maxHeap = 12 << 20

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
