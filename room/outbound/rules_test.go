package outbound

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room"
)

// TestFirstAtBounds: what waits for a moment is due in it, what is as far ahead as may be waits, and who sends under the very
// bound is of a later life.
func TestFirstAtBounds(t *testing.T) {
	const bound = "000000000007"
	row := func(state, owner string, next time.Time) []open {
		return []open{{n: 1, state: state, owner: owner, peer: "ann", address: "at ann", next: next}}
	}
	far := now.Add(room.FarPause)
	for _, tc := range []struct {
		name  string
		rows  []open
		want  int64
		again time.Time
	}{
		{"due now", row(Pending, "", now), 1, time.Time{}},
		{"due in a moment", row(Unknown, "", now.Add(1)), 0, now.Add(1)},
		{"as far as may be", row(Pending, "", far), 0, far},
		{"a moment further", row(Pending, "", far.Add(1)), 1, time.Time{}},
		{"sent under the bound", row(Sending, bound, now.Add(-1)), 0, time.Time{}},
		{"sent before it", row(Sending, "000000000006/z", now.Add(time.Hour)), 1, time.Time{}},
	} {
		if n, again := first(tc.rows, now, bound); n != tc.want || !again.Equal(tc.again) {
			t.Errorf("%s: row %d, again at %s; want %d, %s", tc.name, n, again, tc.want, tc.again)
		}
	}
	later := []open{{n: 1, peer: "ann", address: "a", next: now.Add(2)}, {n: 2, peer: "bob", address: "b", next: now.Add(1)}, {n: 3, peer: "cat", address: "c", next: now.Add(3)}}
	if n, again := first(later, now, bound); n != 0 || !again.Equal(now.Add(1)) {
		t.Errorf("of several pauses: row %d, again at %s", n, again)
	}
}

// TestAfterFailureWrites: what is written of each failure, how long it waits, and what the owner reads.
func TestAfterFailureWrites(t *testing.T) {
	const day = 24 * time.Hour
	to := tidemark.Address{Platform: "fake", Peer: "ann"}
	at := func(d time.Duration) int64 { return now.Add(d).UnixMilli() }
	for _, tc := range []struct {
		name  string
		m     Message
		e     tidemark.SendError
		set   string
		args  []any
		event string
	}{
		{"unknown", Message{Tries: 1}, tidemark.SendError{Class: tidemark.SendUnknown, RetryAfter: time.Hour}, `state = 'unknown', open = 1, hold = '', next = ?, error = ?`, []any{at(2 * time.Minute), "why"}, ""},
		{"closed", Message{Tries: 1}, tidemark.SendError{Class: tidemark.SendClosed, Code: 5}, `state = 'pending', open = 1, hold = 'closed', next = 0, error = ?`, []any{"why (5)"}, ""},
		{"halted", Message{Tries: 1}, tidemark.SendError{Class: tidemark.SendHalted}, `state = 'pending', open = 1, hold = 'halted', next = ?, tries = tries - 1, error = ?`, []any{at(10 * time.Minute), "why"},
			"Messages to fake ann wait, because the account may not send: why. It is tried again every 10m0s."},
		{"halted still, and told to wait", Message{Hold: HoldHalted}, tidemark.SendError{Class: tidemark.SendHalted, RetryAfter: time.Hour}, `state = 'pending', open = 1, hold = 'halted', next = ?, tries = tries - 1, error = ?`, []any{at(time.Hour), "why"}, ""},
		{"halted for a month", Message{Hold: HoldHalted}, tidemark.SendError{Class: tidemark.SendHalted, RetryAfter: 30 * day}, `state = 'pending', open = 1, hold = 'halted', next = ?, tries = tries - 1, error = ?`, []any{at(day), "why"}, ""},
		{"again", Message{Tries: 1}, tidemark.SendError{Class: tidemark.SendAgain}, `state = 'pending', open = 1, hold = '', next = ?, error = ?`, []any{at(2 * time.Second), "why"}, ""},
		{"again, the last try but one", Message{Tries: 19}, tidemark.SendError{Class: tidemark.SendAgain, RetryAfter: time.Hour}, `state = 'pending', open = 1, hold = '', next = ?, error = ?`, []any{at(time.Hour), "why"}, ""},
		{"again, the last", Message{Tries: 20}, tidemark.SendError{Class: tidemark.SendAgain}, `state = 'failed', open = 0, hold = '', next = 0, error = ?`, []any{"why"}, "A message to fake ann was not sent: why."},
		{"failed", Message{Tries: 1}, tidemark.SendError{Class: tidemark.SendFailed}, `state = 'failed', open = 0, hold = '', next = 0, error = ?`, []any{"why"}, "A message to fake ann was not sent: why."},
	} {
		tc.m.To, tc.e.Text = to, "why"
		if c := afterFailure(tc.m, &tc.e, now); c.set != tc.set || fmt.Sprint(c.args...) != fmt.Sprint(tc.args...) || c.event != tc.event {
			t.Errorf("%s: %+v, want %s %v %q", tc.name, c, tc.set, tc.args, tc.event)
		}
	}
	if got := failureText(&tidemark.SendError{Text: strings.Repeat("x", 301)}); got != strings.Repeat("x", 300)+"…" {
		t.Errorf("a long reason is told in %d bytes", len(got))
	}
}

// TestStatusMatrix: which status tells something new of a message in which state: s it was sent, t and is read, so that its text
// is short from then on, f it failed, . nothing.
func TestStatusMatrix(t *testing.T) {
	for of, want := range map[string]string{
		"pending ": ".....", "pending read": ".....",
		"sending ": "stt.f", "sending sent": "stt.f",
		"unknown ": "stt.f", "unknown delivered": "stt..",
		"sent ": "stt.f", "sent sent": ".tt.f", "sent delivered": "..t..", "sent read": ".....",
		"failed ": ".tt..", "failed read": ".tt..",
	} {
		state, status, _ := strings.Cut(of, " ")
		var got strings.Builder
		for _, word := range []string{"sent", "delivered", "read", "odd", "failed"} {
			c := afterStatus(Message{State: state, Status: status}, tidemark.Delivery{ID: "a", Status: word}, now)
			switch {
			case c.set == "":
				got.WriteString(".")
			case strings.HasPrefix(c.set, `state = 'failed', open = 0, hold = '', next = 0, error = ?, owner = ''`):
				got.WriteString("f")
			case strings.HasSuffix(c.set, `, text = substr(text, 1, 480)`):
				got.WriteString("t")
			case c.set == `state = 'sent', open = 0, hold = '', next = 0, error = '', status = ?, id = CASE WHEN ? = '' THEN id ELSE ? END`:
				got.WriteString("s")
			default:
				t.Errorf("%s by %s: %s", of, word, c.set)
			}
			if c.set != "" && word != "failed" && fmt.Sprint(c.args...) != fmt.Sprint(word, "a", "a") {
				t.Errorf("%s by %s: %v", of, word, c.args)
			}
		}
		if got.String() != want {
			t.Errorf("%s: %s, want %s", of, got.String(), want)
		}
	}
}

// TestStatusOfFailure: what a status of a failure writes, what is known of it, and what the owner reads.
func TestStatusOfFailure(t *testing.T) {
	const behind = `, owner = '', status = '', id = '', past = trim(past || ' ' || ?)`
	for _, tc := range []struct {
		name  string
		e     *tidemark.SendError
		set   string
		args  []any
		event bool
	}{
		{"no reason", nil, `state = 'failed', open = 0, hold = '', next = 0, error = ?`, []any{"the platform gave no reason", "a"}, true},
		{"nobody knows", &tidemark.SendError{Class: tidemark.SendUnknown, Code: 9, Text: "odd"}, `state = 'failed', open = 0, hold = '', next = 0, error = ?`, []any{"odd (9)", "a"}, true},
		{"closed", &tidemark.SendError{Class: tidemark.SendClosed, Text: "window"}, `state = 'pending', open = 1, hold = 'closed', next = 0, error = ?`, []any{"window", "a"}, false},
	} {
		c := afterStatus(Message{State: Sent}, tidemark.Delivery{ID: "a", Status: tidemark.StatusFailed, Error: tc.e}, now)
		if c.set != tc.set+behind || fmt.Sprint(c.args...) != fmt.Sprint(tc.args...) || (c.event != "") != tc.event {
			t.Errorf("%s: %+v", tc.name, c)
		}
	}
}

// TestStatusOfOthers: which status is of an earlier try, and which of a message from before.
func TestStatusOfOthers(t *testing.T) {
	for _, tc := range []struct {
		m    Message
		id   string
		want bool
	}{{Message{}, "", false}, {Message{ID: "a"}, "", false}, {Message{}, "a", false}, {Message{ID: "a"}, "a", false}, {Message{ID: "a"}, "b", true}, {Message{past: "b a"}, "a", true}, {Message{ID: "a", past: "a"}, "a", true}, {Message{past: "ab"}, "a", false}} {
		if got := ofEarlierTry(tc.m, tidemark.Delivery{ID: tc.id}); got != tc.want {
			t.Errorf("%q of %+v: %v", tc.id, tc.m, got)
		}
	}
	for _, tc := range []struct {
		m    string
		d    tidemark.Delivery
		want bool
	}{
		{"", tidemark.Delivery{}, false}, {"", tidemark.Delivery{At: now}, false}, {"", tidemark.Delivery{At: now.Add(-10 * time.Minute)}, false},
		{"", tidemark.Delivery{At: now.Add(-10*time.Minute - 1)}, true}, {"", tidemark.Delivery{At: now.Add(-time.Hour), ID: "a"}, true},
		{"a", tidemark.Delivery{At: now.Add(-time.Hour), ID: "a"}, false}, {"a", tidemark.Delivery{At: now.Add(-time.Hour), ID: "b"}, true},
	} {
		if got := older(Message{ID: tc.m, At: now}, tc.d); got != tc.want {
			t.Errorf("%+v of a message %q: %v", tc.d, tc.m, got)
		}
	}
	for _, tc := range [][3]time.Time{{now, now, now}, {now.Add(1), now, now.Add(1)}, {now, now.Add(1), now.Add(1)}} {
		if got := later(tc[0], tc[1]); !got.Equal(tc[2]) {
			t.Errorf("later of %v: %s", tc[:2], got)
		}
	}
}
