package session_test

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

// told gathers what those are told who count.
type told struct {
	mu      sync.Mutex // guards the following
	notices []session.Notice
}

func (o *told) observe(n session.Notice) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.notices = append(o.notices, n)
}

func (o *told) of(kind string) (out []session.Notice) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, n := range o.notices {
		if n.Type == kind {
			out = append(out, n)
		}
	}
	return out
}

// TestStallBacksOff: while nothing can be written, a session tries less and less often, says why, and says in
// its log how long it was when it gets on. Nothing is lost.
func TestStallBacksOff(t *testing.T) {
	h, c := newTimed(t, session.Settings{}, noon)
	h.stop()
	h.idle()
	o, db := &told{}, &flaky{DB: h.db}
	h.db, h.observe = db, o.observe
	h.open()
	h.idle()
	h.model.set(func(n int, _ tidemark.Request) (tidemark.Message, error) {
		if n == 1 {
			db.fail(60)
		}
		return tidemark.Message{}, nil
	})
	if _, err := h.Post(t.Context(), say("go")); err != nil {
		t.Fatal(err)
	}
	h.idle()
	want := []time.Duration{5, 10, 20, 40, 80, 160, 320, 600, 600}
	got := slices.DeleteFunc(c.sleeps(), func(d time.Duration) bool { return d < 5*time.Second })
	for i := range want {
		if i >= len(got) || got[i] != want[i]*time.Second {
			t.Fatalf("pauses %v, want them to begin with %v s", got, want)
		}
	}
	notices := h.events("notice")
	if len(notices) != 1 || !strings.Contains(notices[0], "disk is full") || !strings.Contains(notices[0], "waited") {
		t.Errorf("notices in the log: %q", notices)
	}
	stalls := o.of(session.NoticeStalled)
	if len(stalls) < 3 || stalls[0].Count != 10 || !strings.Contains(stalls[0].Text, "disk is full") || stalls[len(stalls)-1].Text != "" {
		t.Errorf("told: %+v", stalls)
	}
	if got := h.originals(); len(got) != 2 || got[0] != "user: go" || !strings.HasPrefix(got[1], "assistant: ok") {
		t.Errorf("log %q", got)
	}
}

// TestStallEndsAtOnce: who writes when the disk has room again waits for no pause, neither do alarms cut it short.
func TestStallEndsAtOnce(t *testing.T) {
	h, c := newTimed(t, session.Settings{}, noon)
	h.stop()
	h.idle()
	db := &flaky{DB: h.db}
	h.db = db
	h.open()
	h.idle()
	c.mu.Lock()
	c.sleepy = true
	c.armed = make(chan struct{})
	armed := c.armed
	c.mu.Unlock()
	once := sync.Once{}
	h.model.set(func(int, tidemark.Request) (tidemark.Message, error) {
		once.Do(func() { db.fail(1 << 30) })
		return tidemark.Message{}, nil
	})
	sub, err := h.Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	if _, err := h.Post(t.Context(), say("go")); err != nil {
		t.Fatal(err)
	}
	for h.model.count() == 0 || len(c.sleeps()) == 0 {
		<-armed
		c.mu.Lock()
		c.armed = make(chan struct{})
		armed = c.armed
		c.mu.Unlock()
	}
	calls := h.model.count()
	if err := h.Wake(t.Context()); err != nil {
		t.Logf("wake: %v", err) // it may find that nothing can be written
	}
	if got := h.model.count(); got != calls {
		t.Errorf("an alarm made %d calls", got-calls)
	}
	db.fail(0)
	r, err := h.Post(t.Context(), say("and now"))
	if err != nil {
		t.Fatal(err)
	}
	if got := h.wait(sub, r.ID); !strings.HasPrefix(got, "ok") {
		t.Errorf("answered %q", got)
	}
	if n := strings.Count(strings.Join(h.originals(), "|"), "user: "); n != 2 {
		t.Errorf("log %q", h.originals())
	}
}

// put stores an object of the bucket anew.
func (h *harness) put(key string, content []byte) {
	h.t.Helper()
	if _, err := h.blobs.Put(h.t.Context(), key, bytes.NewReader(content), int64(len(content)), tidemark.PutOptions{}); err != nil {
		h.t.Fatal(err)
	}
}

// TestDamagedInput: an input whose large block is damaged in the bucket is tried a few times, then its place holds a
// note for the model, the log says what is lost, and what was said behind it is answered. So it is for a block that
// is damaged later, and the block that comes back is shown again.
func TestDamagedInput(t *testing.T) {
	for _, how := range []string{"before", "later", "gone"} {
		t.Run(how, func(t *testing.T) {
			h, c := newTimed(t, session.Settings{}, noon)
			hold := make(chan struct{})
			h.model.hold, h.model.entered = hold, make(chan struct{}, 100)
			if _, err := h.Post(t.Context(), say("first")); err != nil {
				t.Fatal(err)
			}
			<-h.model.entered
			picture := tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.Text("what is this"), tidemark.Text(strings.Repeat("long ", 80_000))}}
			if _, err := h.Post(t.Context(), session.Input{ID: "large", Message: picture}); err != nil {
				t.Fatal(err)
			}
			key, whole := h.keys("agents/main/artifacts/")[0], []byte(nil)
			spoil := func() {
				_, body, err := h.blobs.Get(t.Context(), key)
				if err == nil {
					whole, err = io.ReadAll(body)
				}
				if err != nil {
					t.Fatal(err)
				}
				if err := h.blobs.Delete(t.Context(), key); err != nil {
					t.Fatal(err)
				}
				if how != "gone" {
					h.put(key, []byte("rubbish"))
				}
			}
			if how != "later" {
				spoil()
			}
			close(hold)
			h.idle()
			if how == "later" {
				spoil()
			}
			if _, err := h.Post(t.Context(), say("second")); err != nil {
				t.Fatal(err)
			}
			h.idle()
			last := h.model.last()
			text := strings.Join(texts(last.Messages), "\n")
			if !strings.Contains(text, "what is this") || !strings.Contains(text, "put "+key+" back") || !strings.Contains(text, "second") || strings.Contains(text, "long long") {
				t.Errorf("the model read %.600s", text)
			}
			if n := len(h.events("notice")); how != "later" && (n == 0 || !strings.Contains(strings.Join(h.events("notice"), ""), key)) {
				t.Errorf("%d notices: %q", n, h.events("notice"))
			}
			if n := len(c.sleeps()); n > 4 {
				t.Errorf("%d pauses: %v", n, c.sleeps())
			}
			if got := h.originals(); !strings.HasPrefix(got[len(got)-1], "assistant: ok") {
				t.Errorf("log %q", got)
			}
			h.put(key, whole)
			h.say("third")
			if got := strings.Join(texts(h.model.last().Messages), "\n"); !strings.Contains(got, "long long") {
				t.Errorf("what was put back is not shown")
			}
		})
	}
}
