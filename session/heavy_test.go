package session_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/session"
)

// image is a message with a picture of that many bytes; n tells it from others.
func image(t *testing.T, n, size int) tidemark.Message {
	t.Helper()
	data := base64.StdEncoding.EncodeToString([]byte(strings.Repeat(fmt.Sprintf("%04d", n), size/4)))
	var m tidemark.Message
	raw := fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":"picture %d"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":%q}}]}`, n, data)
	if err := json.Unmarshal([]byte(raw), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestHeavyView: pictures that together do not fit into memory leave the view, the oldest first, and
// nothing else does; each stays whole in the log and comes into the archive.
func TestHeavyView(t *testing.T) {
	if testing.Short() {
		t.Skip("make soak")
	}
	for name, tc := range map[string]struct{ bound, picture int }{
		"in the bucket":   {4 << 20, 600 << 10},
		"in the database": {1 << 20, 120 << 10},
		"one at a time":   {2 << 20, 1100 << 10},
		"one is too much": {2 << 20, 1700 << 10},
	} {
		t.Run(name, func(t *testing.T) { heavyView(t, tc.bound, tc.picture) })
	}
}

func heavyView(t *testing.T, bound, picture int) {
	turns := 7 + fewer(1) // six or seven fit where the most do
	h := newHarness(t, session.Settings{ViewBytes: int64(bound)})
	for n := range turns {
		if got := h.post(session.Input{Message: image(t, n, picture)}); strings.HasPrefix(got, "error") {
			t.Fatalf("turn %d: %s", n, got)
		}
		size, last := 0, ""
		for _, m := range h.sent() {
			size += len(m.AppendJSON(nil))
			if m.Role == tidemark.User {
				last = string(m.AppendJSON(nil))
			}
		}
		if shown := strings.Contains(last, `"base64"`); size > bound || shown != (picture*4/3 < bound) {
			t.Fatalf("turn %d sends %d bytes, the newest picture with it: %v", n, size, shown)
		}
	}
	view := fmt.Sprint(h.sent())
	for n := range turns {
		if !strings.Contains(view, fmt.Sprintf("picture %d", n)) {
			t.Errorf("the words of turn %d are gone", n)
		}
	}
	if !strings.Contains(view, `A block of type "image" and `) {
		t.Error("nothing was put aside: the test proves nothing")
	}
	h.resetNow()
	n := 0
	for _, o := range h.keys("agents/main/sessions/") {
		if !strings.HasSuffix(o, ".jsonl.gz") {
			continue
		}
		for l, err := range archive.Read(t.Context(), h.blobs, o) {
			if err != nil {
				t.Fatal(err)
			}
			if l.Message.Role != tidemark.User {
				continue
			}
			if want := image(t, n, picture); string(l.Message.AppendJSON(nil)) != string(want.AppendJSON(nil)) {
				t.Errorf("picture %d is not in the archive as it was sent", n)
			}
			n++
		}
	}
	if n != turns {
		t.Errorf("%d pictures in the archive, want %d", n, turns)
	}
}

// TestViewWaits: a turn whose view is large waits until it is let in, gives its room back, and asks for
// none while its view is small.
func TestViewWaits(t *testing.T) {
	var asked, held, most atomic.Int64
	h := newHarness(t, session.Settings{})
	h.admit = func(bytes int64) (func(), bool) {
		if asked.Add(1)%3 != 0 { // others have it
			return nil, false
		}
		most.Store(max(most.Load(), held.Add(bytes)))
		return func() { held.Add(-bytes) }, true
	}
	h.stop()
	h.open()
	h.say("small")
	if asked.Load() != 0 {
		t.Error("a small view was asked for")
	}
	for n := range 3 {
		if got := h.post(session.Input{Message: image(t, n, 1<<20)}); strings.HasPrefix(got, "error") {
			t.Fatal(got)
		}
		if held.Load() != 0 {
			t.Errorf("turn %d keeps %d bytes", n, held.Load())
		}
	}
	h.resetNow()
	if asked.Load() != 12 || most.Load() < 3<<20 || most.Load() > 5<<20 || held.Load() != 0 {
		t.Errorf("asked %d times, %d bytes at most, %d held", asked.Load(), most.Load(), held.Load())
	}
}
