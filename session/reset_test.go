package session_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the machine may have no zone files

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/reset"
	"github.com/tidemark-ai/tidemark/session"
)

const noon = "2026-03-10T12:00:00Z"

// resetNow posts /reset and waits for its end.
func (h *harness) resetNow() string {
	h.t.Helper()
	return h.post(session.Input{Kind: session.InputReset})
}

// TestManualReset: a new session id under the same key, the whole history in the archive, the
// counters at zero, the memories of what no compaction had read, one line for people.
func TestManualReset(t *testing.T) {
	h, _ := newTimed(t, small, noon)
	h.fill(1)
	h.say("the newest thing")
	before, old := h.originals(), h.info()
	asked, facts := len(h.model.summaries()), len(h.agent.remembered())
	if got := h.resetNow(); got != "" {
		t.Fatalf("reset: %q", got)
	}
	h.idle()
	now := h.info()
	if now.ID == old.ID || now.Previous != old.ID || now.Resets != 1 || now.Messages != 0 || now.ContextTokens != 0 || now.Compactions != 0 || now.Usage != (tidemark.Usage{}) {
		t.Errorf("after the reset: %+v, before %+v", now, old)
	}
	if got := h.archived(archive.WholeKey("main", old.ID)); !slices.Equal(got, before) {
		t.Errorf("the archive holds %d messages, the history %d", len(got), len(before))
	}
	extraction := h.model.summaries()[asked:]
	if len(extraction) != 1 {
		t.Fatalf("%d calls for the memories", len(extraction))
	}
	if p := extraction[0].Messages[0].PlainText(); strings.Contains(p, "message 0:") || !strings.Contains(p, "the newest thing") {
		t.Errorf("asked for the memories of what a compaction had read, or not of the rest: %.300q", p)
	}
	if got := h.agent.remembered(); len(got) != facts+1 {
		t.Errorf("facts %q, want one more than the %d of the compaction", got, facts)
	}
	if got := h.events("reset"); len(got) != 1 || !strings.Contains(got[0], old.ID) || !strings.Contains(got[0], "manual") {
		t.Errorf("events %q", got)
	}
	h.say("hello again")
	if sent := h.sent(); len(sent) != 2 || sent[0].PlainText() != "hello again" {
		t.Errorf("the new session sends %q", texts(sent))
	}
	if got := h.originals(); !slices.Equal(got[:len(before)], before) || len(got) != len(before)+2 {
		t.Errorf("the history over all sessions has %d messages, want %d", len(got), len(before)+2)
	}
	h.resetNow()
	h.resetNow() // an empty one
	logs, err := h.Reader.Logs(t.Context())
	if err != nil || len(logs) != 4 || logs[2] != now.ID || logs[3] != old.ID {
		t.Errorf("session ids %q, %v", logs, err)
	}
}

// TestUsageIsOfTheSession: what the calls of the old session cost is not the new one's.
func TestUsageIsOfTheSession(t *testing.T) {
	h, _ := newTimed(t, session.Settings{}, noon)
	h.model.usage = tidemark.Usage{Input: 100, CacheRead: 20, Output: 5}
	h.say("one")
	h.say("two")
	if i := h.info(); i.Usage != (tidemark.Usage{Input: 200, CacheRead: 40, Output: 10}) || i.ContextTokens != 125 || i.Messages != 4 {
		t.Errorf("before: %+v", i)
	}
	h.resetNow()
	h.idle()
	if i := h.info(); i.Usage != (tidemark.Usage{}) || i.ContextTokens != 0 {
		t.Errorf("after: %+v", i)
	}
	if got := h.events("reset"); len(got) != 1 || !strings.Contains(got[0], `"tokensCleared":125`) || !strings.Contains(got[0], `"input_tokens":100`) {
		t.Errorf("the event must say what was cleared, and what the memories cost: %q", got)
	}
	h.say("three")
	if i := h.info(); i.Usage.Input != 100 || i.Messages != 2 {
		t.Errorf("in the new session: %+v", i)
	}
}

// TestResetWithoutBucket: while the archive cannot be written nothing is reset, and it is said.
func TestResetWithoutBucket(t *testing.T) {
	for _, tc := range []struct {
		name string
		lost bool // the object is written, but its answer lost
		talk bool // the conversation goes on meanwhile
	}{
		{"bucket down", false, false}, {"bucket down, talk goes on", false, true},
		{"answers are lost", true, false}, {"answers are lost, talk goes on", true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h, _ := newTimed(t, session.Settings{}, noon)
			down := true
			hook := func(op, key string) error {
				if down && op == "put" && strings.HasSuffix(key, ".jsonl.gz") {
					return fmt.Errorf("bucket is down: %w", tidemark.ErrUnavailable)
				}
				return nil
			}
			if tc.lost {
				h.blobs.FailAfter = hook
			} else {
				h.blobs.Fail = hook
			}
			h.say("one")
			h.idle()
			before := h.info()
			if got := h.resetNow(); !strings.Contains(got, "error") || !strings.Contains(got, "archive") {
				t.Fatalf("got %q, want an error that names the archive", got)
			}
			h.idle()
			if i := h.info(); i.ID != before.ID || i.Resets != 0 || i.Messages != 2 {
				t.Fatalf("the session changed: %+v", i)
			}
			if got := h.events("error"); len(got) != 1 || !strings.Contains(got[0], "archive") {
				t.Errorf("error events %q", got)
			}
			if tc.talk {
				if got := h.say("two"); !strings.HasPrefix(got, "ok") {
					t.Fatalf("the talk must go on: %q", got)
				}
				if i := h.info(); i.ID != before.ID || i.Messages != 4 {
					t.Fatalf("the session changed: %+v", i)
				}
			}
			down = false
			history := h.originals()
			if got := h.resetNow(); got != "" {
				t.Fatalf("when the bucket is back: %q", got)
			}
			h.idle()
			if i := h.info(); i.Previous != before.ID || i.Resets != 1 {
				t.Errorf("after: %+v", i)
			}
			if got := h.archived(archive.WholeKey("main", before.ID)); !slices.Equal(got, history) {
				t.Errorf("the archive holds %q, the history is %q", got, history)
			}
		})
	}
}

// TestFailedResetIsOver: who was told that the session stays as it is does not lose it with the
// next message.
func TestFailedResetIsOver(t *testing.T) {
	h, _ := newTimed(t, session.Settings{}, noon)
	h.blobs.Fail = func(op, _ string) error {
		if op == "put" {
			return tidemark.ErrUnavailable
		}
		return nil
	}
	h.say("one")
	h.resetNow()
	h.idle()
	h.blobs.Fail = nil
	h.say("two")
	h.stop()
	h.open()
	h.say("three")
	if i := h.info(); i.Resets != 0 || i.Messages != 6 {
		t.Errorf("%+v", i)
	}
}

// TestOwedMemories: a reset does not wait for its memories; they are made from the old session
// later, and come once.
func TestOwedMemories(t *testing.T) {
	for _, tc := range []struct {
		name   string
		resets int // while the model cannot be reached
		newer  bool
	}{{"one reset", 1, false}, {"three resets", 3, false}, {"in a new life", 2, true}} {
		t.Run(tc.name, func(t *testing.T) {
			h, c := newTimed(t, session.Settings{}, noon)
			h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
				if asksSummary(req) {
					return tidemark.Message{}, &tidemark.APIError{Class: tidemark.ClassOverloaded, Status: 529}
				}
				return tidemark.Message{}, nil
			})
			for i := range tc.resets {
				h.say(fmt.Sprint("fact of session ", i))
				h.resetNow()
				h.idle()
				if got := h.events("reset"); len(got) != 1 || !strings.Contains(got[0], `"memoriesOwed":true`) {
					t.Errorf("events %q", got)
				}
			}
			if i := h.info(); i.Resets != tc.resets {
				t.Fatalf("%d resets, want %d", i.Resets, tc.resets)
			}
			if got := h.agent.remembered(); len(got) != 0 {
				t.Fatalf("facts %q", got)
			}
			c.advance(time.Minute)
			h.wake() // still down
			if h.due().IsZero() {
				t.Fatal("nothing is due, though memories are owed")
			}
			var asked []string
			h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
				if asksSummary(req) {
					asked = append(asked, inner(req.Messages[0].PlainText(), "<conversation>", "</conversation>"))
				}
				return tidemark.Message{}, nil
			})
			if tc.newer {
				h.stop()
				h.open()
			}
			for range 10 {
				c.advance(15 * time.Minute)
				h.wake()
			}
			if got := h.agent.remembered(); len(got) != tc.resets || len(asked) != tc.resets {
				t.Errorf("facts %q of %d calls, want one of each reset", got, len(asked))
			}
			for i := range tc.resets {
				if want := fmt.Sprint("fact of session ", i); strings.Count(strings.Join(asked, ""), want) != 1 {
					t.Errorf("%q was not asked for once", want)
				}
			}
			if d := h.due(); !d.IsZero() {
				t.Errorf("still due at %s", d)
			}
		})
	}
}

// TestOwedChunks: of a large session the chunks that were read before the failure do not come
// twice.
func TestOwedChunks(t *testing.T) {
	h, c := newTimed(t, session.Settings{Window: 8000, NoCompaction: true}, noon)
	for i := range 10 {
		h.say(filler(i))
	}
	refuse := true
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		if asksSummary(req) && strings.Contains(req.Messages[0].PlainText(), "message 9") && refuse {
			return tidemark.Message{}, &tidemark.APIError{Class: tidemark.ClassNetwork}
		}
		return tidemark.Message{}, nil
	})
	h.set.NoCompaction = false
	h.stop()
	h.open()
	h.resetNow()
	h.idle()
	first := len(h.agent.remembered())
	if first == 0 {
		t.Fatal("what was read before the failure must be kept")
	}
	refuse = false
	for range 3 {
		c.advance(15 * time.Minute)
		h.wake()
	}
	h.agent.mu.Lock()
	defer h.agent.mu.Unlock()
	sources := map[tidemark.EntryID]bool{}
	for id, x := range h.agent.facts {
		for _, f := range x.Facts {
			if sources[f.Sources[0]] {
				t.Errorf("%s: the same messages gave a fact twice", id)
			}
			sources[f.Sources[0]] = true
		}
	}
	if len(sources) <= first {
		t.Errorf("%d facts, %d of them before the failure", len(sources), first)
	}
}

// TestResetAtTheNextInput: a policy's reset comes with the first input behind its moment, which
// begins the new session.
func TestResetAtTheNextInput(t *testing.T) {
	daily := func(hour int, zone string) reset.Policy {
		z, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		return reset.Policy{Mode: reset.Daily, AtHour: hour, Zone: z}
	}
	idle := reset.Policy{Mode: reset.Idle, IdleMinutes: 60}
	for _, tc := range []struct {
		name       string
		policy     reset.Policy
		last, next string // the moments of two messages
		resets     bool
	}{
		{"manual", reset.Policy{}, "2026-03-10T12:00:00Z", "2027-03-10T12:00:00Z", false},
		{"daily, before the hour", daily(4, "UTC"), "2026-03-10T12:00:00Z", "2026-03-11T03:59:59.999Z", false},
		{"daily, at the hour", daily(4, "UTC"), "2026-03-10T12:00:00Z", "2026-03-11T04:00:00Z", true},
		{"daily, days later", daily(4, "UTC"), "2026-03-10T12:00:00Z", "2026-03-14T03:00:00Z", true},
		{"over midnight", daily(4, "UTC"), "2026-03-10T23:59:00Z", "2026-03-11T00:01:00Z", false},
		{"over midnight at hour 0", daily(0, "UTC"), "2026-03-10T23:59:00Z", "2026-03-11T00:01:00Z", true},
		{"gap at 2 in Berlin, before", daily(2, "Europe/Berlin"), "2026-03-28T12:00:00Z", "2026-03-29T00:59:59Z", false},
		{"gap at 2 in Berlin, behind", daily(2, "Europe/Berlin"), "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z", true},
		{"overlap at 2 in Berlin, before the first", daily(2, "Europe/Berlin"), "2026-10-24T12:00:00Z", "2026-10-24T23:59:59Z", false},
		{"overlap at 2 in Berlin, the first", daily(2, "Europe/Berlin"), "2026-10-24T12:00:00Z", "2026-10-25T00:00:00Z", true},
		{"overlap at 2 in Berlin, not at the second", daily(2, "Europe/Berlin"), "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", false},
		{"UTC+14, before", daily(4, "Pacific/Kiritimati"), "2026-05-10T10:00:00Z", "2026-05-10T13:59:59Z", false},
		{"UTC+14, at the hour", daily(4, "Pacific/Kiritimati"), "2026-05-10T10:00:00Z", "2026-05-10T14:00:00Z", true},
		{"UTC-11, before", daily(4, "Pacific/Pago_Pago"), "2026-05-10T10:00:00Z", "2026-05-10T14:59:59Z", false},
		{"UTC-11, at the hour", daily(4, "Pacific/Pago_Pago"), "2026-05-10T10:00:00Z", "2026-05-10T15:00:00Z", true},
		{"clock moved back over the hour", daily(4, "UTC"), "2026-03-11T04:30:00Z", "2026-03-11T03:30:00Z", false},
		{"clock moved back by a year", daily(4, "UTC"), "2026-03-11T04:30:00Z", "2025-03-11T03:30:00Z", false},
		{"idle, at the limit", idle, "2026-03-10T12:00:00Z", "2026-03-10T13:00:00Z", false},
		{"idle, behind the limit", idle, "2026-03-10T12:00:00Z", "2026-03-10T13:00:00.001Z", true},
		{"idle, clock moved back", idle, "2026-03-10T12:00:00Z", "2026-03-09T12:00:00Z", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h, c := newTimed(t, session.Settings{Reset: tc.policy}, tc.last)
			h.say("first")
			old := h.info().ID
			c.set(moment(t, tc.next))
			if got := h.say("second"); !strings.HasPrefix(got, "ok") {
				t.Fatalf("got %q", got)
			}
			h.idle()
			var now []string
			for _, s := range h.current() {
				if strings.HasPrefix(s, "user") {
					now = append(now, s)
				}
			}
			want, events := []string{"user: first", "user: second"}, 0
			if tc.resets {
				want, events = []string{"user: second"}, 1
			}
			if !slices.Equal(now, want) || len(h.events("reset")) != events || (h.info().ID == old) == tc.resets {
				t.Errorf("the session holds %q, want %q; events %q", now, want, h.events("reset"))
			}
			if got := h.keys(archive.WholeKey("main", old)); len(got) != events {
				t.Errorf("archives %q", got)
			}
		})
	}
}

// TestDueResetWithoutBucket: a policy's reset that cannot be archived is put off; the message that
// triggered it is answered in the old session, and the reset comes when the bucket is back.
func TestDueResetWithoutBucket(t *testing.T) {
	h, c := newTimed(t, session.Settings{Reset: reset.Policy{Mode: reset.Daily, AtHour: 4}}, noon)
	h.say("one")
	h.blobs.Fail = func(op, _ string) error {
		if op == "put" {
			return fmt.Errorf("bucket is down: %w", tidemark.ErrUnavailable)
		}
		return nil
	}
	c.advance(24 * time.Hour)
	if got := h.say("two"); !strings.HasPrefix(got, "ok") {
		t.Fatalf("got %q", got)
	}
	h.idle()
	if i := h.info(); i.Resets != 0 || i.Messages != 4 {
		t.Fatalf("%+v", i)
	}
	if got := h.events("error"); len(got) != 1 || !strings.Contains(got[0], "archive") {
		t.Errorf("one line must say that the reset was put off: %q", got)
	}
	h.blobs.Fail = nil
	c.advance(24 * time.Hour)
	h.say("three")
	h.idle()
	if got, want := h.current(), "user: three"; h.info().Resets != 1 || len(got) != 2 || got[0] != want {
		t.Errorf("the new session holds %q", got)
	}
}

// TestQueueSurvivesReset: what waits behind /reset is answered in the new session, in order.
func TestQueueSurvivesReset(t *testing.T) {
	h, _ := newTimed(t, session.Settings{}, noon)
	h.model.hold, h.model.entered = make(chan struct{}), make(chan struct{}, 100)
	sub, err := h.Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	post := func(in session.Input) {
		t.Helper()
		if _, err := h.Post(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	say := func(s string) session.Input {
		return session.Input{ID: s, Message: tidemark.NewText(tidemark.User, s)}
	}
	post(say("a"))
	<-h.model.entered
	for _, in := range []session.Input{say("b"), {ID: "r", Kind: session.InputReset}, say("c"), say("d"), {ID: "r", Kind: session.InputReset}} {
		post(in)
	}
	close(h.model.hold)
	h.wait(sub, "d")
	h.idle()
	if i := h.info(); i.Resets != 1 {
		t.Errorf("%d resets, want 1", i.Resets)
	}
	order := func(all []string) string {
		var out []string
		for _, s := range all {
			if u, ok := strings.CutPrefix(s, "user: "); ok {
				out = append(out, u)
			}
		}
		return strings.Join(out, "")
	}
	if all, now := order(h.originals()), order(h.current()); all != "abcd" || now != "cd" {
		t.Errorf("history %q, the new session %q; want \"abcd\" and \"cd\"", all, now)
	}
	for _, id := range []string{"a", "b", "c", "d"} {
		if _, failure, ok, err := h.Reply(t.Context(), id); !ok || failure != "" || err != nil {
			t.Errorf("%s is not answered: %q, %v, %v", id, failure, ok, err)
		}
	}
}
