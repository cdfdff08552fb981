package session_test

import (
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room/replay"
	"github.com/tidemark-ai/tidemark/room/snapshots"
	"github.com/tidemark-ai/tidemark/session"
)

// TestCarryMemory carries a conversation of many times what its pages hold, and holds the memory that it takes to a bound
// that does not know how long it is. TIDEMARK_CARRY_MB makes it longer.
func TestCarryMemory(t *testing.T) {
	if runtime.GOOS == "js" || testing.Short() {
		t.Skip("a conversation of 24 MB takes minutes there")
	}
	megabytes := 24
	if v := os.Getenv("TIDEMARK_CARRY_MB"); v == "100" {
		megabytes = 100
	}
	h := newHarness(t, session.Settings{ArtifactChars: -1, NoCompaction: true, Window: 9_000_000})
	text := strings.Repeat("the quick brown fox jumps over a lazy dog 0123456789 ", 400) // 21 kB
	in := func(yield func(replay.Message, error) bool) {
		for i := range megabytes << 20 / len(text) {
			m := tidemark.NewText([]tidemark.Role{tidemark.User, tidemark.Assistant}[i%2], text[i%len("the quick"):])
			if !yield(replay.Message{Message: m}, nil) {
				return
			}
		}
	}
	if _, err := h.Import(t.Context(), in, nil); err != nil {
		t.Fatal(err)
	}
	n := h.snap(snapshots.Options{Name: "long"})
	const most = 40 << 20
	r, w := io.Pipe()
	o := newHarness(t, h.set).on("agent:main:local:dm:far")
	go func() { w.CloseWithError(h.ExportSnapshot(t.Context(), n.ID, w)) }()
	peak, stop := watchHeap()
	got, err := o.ImportSnapshot(t.Context(), "", r)
	stop()
	if err != nil || got.Messages != n.Messages {
		t.Fatalf("%+v, %v", got, err)
	}
	t.Logf("%d MB, %d messages: %d MB of heap at most", megabytes, got.Messages, peak.Load()>>20)
	if p := peak.Load(); p > most {
		t.Errorf("%d MB of heap, at most %d", p>>20, most>>20)
	}
}

// watchHeap looks at the heap again and again until it is stopped.
func watchHeap() (peak *atomic.Int64, stop func()) {
	peak = new(atomic.Int64)
	done := make(chan struct{})
	percent := debug.SetGCPercent(50) // what is garbage is not held
	runtime.GC()
	go func() {
		var m runtime.MemStats
		for {
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
				runtime.ReadMemStats(&m)
				peak.Store(max(peak.Load(), int64(m.HeapAlloc)))
			}
		}
	}()
	return peak, func() { close(done); debug.SetGCPercent(percent) }
}
