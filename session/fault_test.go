package session_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

func say(text string) session.Input {
	return session.Input{Message: tidemark.NewText(tidemark.User, text)}
}

func failure(c tidemark.Class) error { return &tidemark.APIError{Class: c, Message: "no"} }

// collect gathers the notices of a turn until it has ended.
func (h *harness) collect(in session.Input) []session.Notice {
	h.t.Helper()
	sub, err := h.Subscribe()
	if err != nil {
		h.t.Fatal(err)
	}
	defer sub.Close()
	if _, err := h.Post(h.t.Context(), in); err != nil {
		h.t.Fatal(err)
	}
	h.idle()
	var out []session.Notice
	for n, ok := sub.Next(); ok; n, ok = sub.Next() {
		out = append(out, n)
	}
	return out
}

// line prints the notices that a reader of the stream acts on.
func line(notices []session.Notice) string {
	var out []string
	for _, n := range notices {
		switch n.Type {
		case session.NoticeText:
			out = append(out, n.Text)
		case session.NoticeRestart, session.NoticeReply, session.NoticeDone, session.NoticeError:
			out = append(out, "<"+n.Type+">")
		}
	}
	return strings.Join(out, " ")
}

// TestCutStream: a stream that is cut begins again and says so; after three tries the turn fails
// visibly, nothing of the pieces is stored, and the next turn has its own three.
func TestCutStream(t *testing.T) {
	half := tidemark.NewText(tidemark.Assistant, "half")
	for _, tc := range []struct {
		name  string
		cuts  int
		err   error
		want  string
		sleep []time.Duration
		reply string
	}{
		{"once", 1, failure(tidemark.ClassNetwork), "half <restart> ok 2 <reply> <done>", []time.Duration{time.Second}, "ok 2"},
		{"twice", 2, failure(tidemark.ClassOverloaded), "half <restart> half <restart> ok 3 <reply> <done>", []time.Duration{time.Second, 2 * time.Second}, "ok 3"},
		{"always", 100, failure(tidemark.ClassNetwork), "half <restart> half <restart> half <error>", []time.Duration{time.Second, 2 * time.Second}, ""},
		{"as asked", 1, &tidemark.APIError{Class: tidemark.ClassRate, RetryAfter: 7 * time.Second}, "half <restart> ok 2 <reply> <done>", []time.Duration{7 * time.Second}, "ok 2"},
		{"not for an hour", 1, &tidemark.APIError{Class: tidemark.ClassRate, RetryAfter: time.Hour}, "half <restart> ok 2 <reply> <done>", []time.Duration{30 * time.Second}, "ok 2"},
		{"not worth another try", 1, failure(tidemark.ClassBadRequest), "half <error>", nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h, c := newTimed(t, session.Settings{}, noon)
			h.model.set(func(n int, _ tidemark.Request) (tidemark.Message, error) {
				if n <= tc.cuts {
					return half, tc.err
				}
				return tidemark.Message{}, nil
			})
			if got := line(h.collect(say("go"))); got != tc.want {
				t.Errorf("notices %q, want %q", got, tc.want)
			}
			if got := c.sleeps(); !slices.Equal(got, tc.sleep) {
				t.Errorf("slept %v, want %v", got, tc.sleep)
			}
			want := []string{"user: go"}
			if tc.reply != "" {
				want = append(want, "assistant: "+tc.reply)
			}
			if got := h.originals(); !slices.Equal(got, want) {
				t.Errorf("log %q, want %q", got, want)
			}
			if got := len(h.events("error")); (got == 1) != (tc.reply == "") {
				t.Errorf("%d error events", got)
			}
			before := h.model.count()
			h.model.set(nil)
			if got := h.say("again"); got != fmt.Sprint("ok ", before+1) {
				t.Errorf("the next turn: %q", got)
			}
		})
	}
}

// TestAttemptsOverLives: attempts count over crashes, so a call that kills its process is not made
// for ever.
func TestAttemptsOverLives(t *testing.T) {
	h, _ := newTimed(t, session.Settings{}, noon)
	h.model.hold, h.model.entered = make(chan struct{}), make(chan struct{}, 10)
	r, err := h.Post(t.Context(), say("deadly"))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		<-h.model.entered
		h.stop()
		h.idle()
		h.open()
	}
	h.idle()
	if _, why, ok, err := h.Reply(t.Context(), r.ID); !ok || !strings.Contains(why, "3 times") || err != nil {
		t.Errorf("the input ended with %q, %v, %v", why, ok, err)
	}
	if n := h.model.count(); n != 3 {
		t.Errorf("%d calls, want 3", n)
	}
	close(h.model.hold)
	if got := h.say("harmless"); got != "ok 4" {
		t.Errorf("the next turn: %q", got)
	}
}

// TestAttemptsOfOneAreNotAnothers: what came in while a deadly call was made for the last time is not
// failed with it, for it was never asked.
func TestAttemptsOfOneAreNotAnothers(t *testing.T) {
	h, _ := newTimed(t, session.Settings{}, noon)
	h.model.hold, h.model.entered = make(chan struct{}), make(chan struct{}, 10)
	var ids []string
	post := func(text string) {
		r, err := h.Post(t.Context(), say(text))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.ID)
	}
	post("deadly")
	for i := range 3 {
		<-h.model.entered
		h.stop()
		h.idle()
		if i == 2 {
			post("harmless")
			close(h.model.hold)
		}
		h.open()
	}
	h.idle()
	for i, want := range []string{"3 times", ""} {
		e, why, ok, err := h.Reply(t.Context(), ids[i])
		if !ok || err != nil || (want == "") != (why == "") || !strings.Contains(why, want) {
			t.Errorf("input %d ended with entry %q, %q, %v, %v, want %q", i, e.ID, why, ok, err, want)
		}
	}
	if n := h.model.count(); n != 4 {
		t.Errorf("%d calls, want 4", n)
	}
}

// TestProviderHangs: a call without an end is stopped by the deadline of the turn.
func TestProviderHangs(t *testing.T) {
	h, c := newTimed(t, session.Settings{TurnTimeout: 10 * time.Minute}, noon)
	hold := make(chan struct{})
	h.model.hold, h.model.entered = hold, make(chan struct{}, 10)
	sub, err := h.Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	r, err := h.Post(t.Context(), say("go"))
	if err != nil {
		t.Fatal(err)
	}
	<-h.model.entered
	c.advance(10*time.Minute - time.Second)
	if busy, err := h.Busy(t.Context()); busy == "" || err != nil {
		t.Fatalf("stopped before its time, %v", err)
	}
	c.advance(time.Second)
	if got := h.wait(sub, r.ID); !strings.Contains(got, "took too long") {
		t.Errorf("got %q", got)
	}
	h.idle()
	if busy, err := h.Busy(t.Context()); busy != "" || err != nil {
		t.Errorf("run %s is active, %v", busy, err)
	}
	close(hold)
	if got := h.say("again"); got != "ok 2" {
		t.Errorf("the next turn: %q", got)
	}
}

// TestSummariserHangs: a summary without an end is given up, and the turn goes on without it.
func TestSummariserHangs(t *testing.T) {
	h, c := newTimed(t, small, noon)
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		if asksSummary(req) {
			c.advance(6 * time.Minute) // beyond the deadline of a summary
			return tidemark.Message{}, context.DeadlineExceeded
		}
		return tidemark.Message{}, nil
	})
	for i := range 30 {
		if got := h.say(filler(i)); !strings.HasPrefix(got, "ok") {
			t.Fatalf("turn %d: %q", i, got)
		}
		if len(h.model.summaries()) > 0 {
			break
		}
	}
	if n := len(h.model.summaries()); n == 0 || n > 3 || len(h.events("compaction")) != 0 {
		t.Errorf("%d calls for a summary, events %q", n, h.events("compaction"))
	}
}

// TestCooldown: a summariser that failed is left alone for a while, over lives too, with the view
// unchanged; then the compaction is made.
func TestCooldown(t *testing.T) {
	h, c := newTimed(t, session.Settings{Window: 20_000, Reserve: 8000, Keep: 1000}, noon)
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		if asksSummary(req) {
			return tidemark.Message{}, failure(tidemark.ClassOverloaded)
		}
		return tidemark.Message{}, nil
	})
	talk := func() {
		t.Helper()
		if got := h.say("go on"); !strings.HasPrefix(got, "ok") {
			t.Fatal(got)
		}
	}
	for i := range 100 {
		h.say(filler(i))
		if len(h.model.summaries()) > 0 {
			break
		}
	}
	asked := 3
	if n := len(h.model.summaries()); n != asked {
		v, err := h.View(t.Context())
		t.Fatalf("%d calls for the first summary, want 3; view of %d tokens, %v", n, v.Size, err)
	}
	for i, pause := range []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, 15 * time.Minute} {
		talk()
		h.stop()
		h.idle()
		h.open()
		talk()
		c.advance(pause - 10*time.Second)
		talk()
		if n := len(h.model.summaries()); n != asked {
			t.Fatalf("pause %d: %d calls for a summary within it", i, n-asked)
		}
		c.advance(20 * time.Second)
		talk()
		if asked += 3; len(h.model.summaries()) != asked {
			t.Fatalf("pause %d: %d calls behind it, want 3 more than %d", i, len(h.model.summaries()), asked-3)
		}
	}
	c.advance(-365 * 24 * time.Hour) // a pause of a year is none
	h.model.set(nil)
	talk()
	if n := len(h.events("compaction")); n != 1 {
		t.Errorf("%d compactions when the summariser was back", n)
	}
	h.sent()
}

// TestFinishedChunksAreNotPaidTwice: a compaction that is put off, or whose process dies, goes on
// with the chunk that it had reached.
func TestFinishedChunksAreNotPaidTwice(t *testing.T) {
	for _, tc := range []struct {
		name string
		err  error // of chunk 2; nil: the process dies in it
		tier string
	}{{"put off", failure(tidemark.ClassNetwork), "full"}, {"killed, then garbage", nil, "plaintext"}} {
		t.Run(tc.name, func(t *testing.T) {
			h, c := newTimed(t, session.Settings{Window: 9000, Reserve: 2500, Keep: 800}, noon)
			counts, broken := map[string]int{}, true
			var mu sync.Mutex
			h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
				if !asksSummary(req) {
					return tidemark.Message{}, nil
				}
				mu.Lock()
				defer mu.Unlock()
				talk := inner(req.Messages[0].PlainText(), "<conversation>", "</conversation>")
				first, _, _ := strings.Cut(strings.TrimSpace(talk[strings.Index(talk, "message "):]), ":")
				counts[first]++
				if len(counts) != 2 {
					return tidemark.Message{}, nil
				}
				if broken && tc.err == nil {
					h.stop()
				}
				if broken {
					return tidemark.Message{}, tc.err
				}
				if tc.err == nil {
					return tidemark.NewText(tidemark.Assistant, "no tags at all"), nil
				}
				return tidemark.Message{}, nil
			})
			for i := 0; len(counts) < 2 && i < 30; i++ {
				if _, err := h.Post(t.Context(), say(filler(i))); err != nil {
					t.Fatal(err)
				}
				h.idle()
			}
			mu.Lock()
			broken = false
			mu.Unlock()
			h.stop()
			h.idle()
			h.open()
			c.advance(2 * time.Minute)
			h.say("and on")
			h.idle()
			events := h.events("compaction")
			if len(events) == 0 || !strings.Contains(events[0], `"tier":"`+tc.tier+`"`) {
				t.Fatalf("events %q, want tier %s", events, tc.tier)
			}
			once := 0
			for _, n := range counts {
				if n == 1 {
					once++
				}
			}
			if counts["message 0"] != 1 || len(counts) < 3 || once < len(counts)-1 {
				t.Errorf("calls by chunk %v: only the second may have been asked for again", counts)
			}
			h.sent()
		})
	}
}

// flaky is a database whose next writes fail.
type flaky struct {
	tidemark.DB
	mu   sync.Mutex // guards the following
	left int
}

func (f *flaky) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	f.mu.Lock()
	f.left--
	fail := f.left >= 0
	f.mu.Unlock()
	if fail {
		return fmt.Errorf("disk is full: %w", tidemark.ErrUnavailable)
	}
	return f.DB.Tx(ctx, stmts)
}

func (f *flaky) fail(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left = n
}

// TestStorageFails: writes that fail for a while, at any point of a turn, leave no session busy and
// no input without an end, in the same life.
func TestStorageFails(t *testing.T) {
	for _, during := range []string{"call", "tool", "reset"} {
		for n := 1; n <= 9; n++ {
			t.Run(fmt.Sprint(during, " ", n), func(t *testing.T) {
				h, _ := newTimed(t, session.Settings{}, noon)
				h.say("before")
				h.stop()
				h.idle()
				db := &flaky{DB: h.db}
				h.db = db
				h.open()
				h.idle()
				in := say("go")
				calls := h.model.count()
				h.model.set(func(k int, req tidemark.Request) (tidemark.Message, error) {
					if during != "tool" && k == calls+1 {
						db.fail(n)
					}
					if during == "tool" && k == calls+1 {
						return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("c1", "look", nil)}}, nil
					}
					return tidemark.Message{}, nil
				})
				var once sync.Once // the call is idempotent, so it is made again
				h.agent.call = func(c tidemark.Block) tidemark.Block {
					once.Do(func() { db.fail(n) })
					return tidemark.ToolResult(c.ID, "seen", false)
				}
				if during == "reset" {
					in = session.Input{Kind: session.InputReset} // its first call is for the memories
				}
				r, err := h.Post(t.Context(), in)
				if err != nil {
					t.Fatal(err)
				}
				h.idle()
				if busy, err := h.Busy(t.Context()); busy != "" || err != nil {
					t.Fatalf("run %s is active, %v", busy, err)
				}
				if again, err := h.Post(t.Context(), session.Input{ID: r.ID, Kind: in.Kind, Message: in.Message}); err != nil || again.State != "done" {
					t.Errorf("the input is %q, %v", again.State, err)
				}
				if got := h.say("after"); !strings.HasPrefix(got, "ok") {
					t.Errorf("the next turn: %q", got)
				}
				h.sent()
				if u := strings.Count(strings.Join(h.originals(), "|"), "user: go"); during != "reset" && u != 1 {
					t.Errorf("the input is there %d times", u)
				}
			})
		}
	}
}

// TestLateArchiveIsReported: what is archived while the agent is being told of something else is told, too. Where two
// reports meet it is told twice, and the agent keeps archives by their key.
func TestLateArchiveIsReported(t *testing.T) {
	h, _ := newTimed(t, small, noon)
	inReport := false
	h.agent.told = func() {
		if inReport {
			return
		}
		inReport = true
		err := h.db.Tx(t.Context(), []tidemark.Stmt{{SQL: `INSERT INTO outbox(id, key, kind, payload, at) VALUES('archive:a-late-one', ?, 'archive', '{"key":"late"}', 0)`,
			Args: []any{string(h.key)}}})
		if err != nil {
			t.Error(err)
		}
	}
	h.fill(2)
	h.idle()
	h.say("and on")
	h.idle()
	var got []string
	h.agent.mu.Lock()
	for _, i := range h.agent.archives {
		got = append(got, i.Key)
	}
	h.agent.mu.Unlock()
	slices.Sort(got)
	if got = slices.Compact(got); !slices.Contains(got, "late") || len(got) != 3 {
		t.Errorf("the agent knows of %q, want two parts and the late one", got)
	}
}
