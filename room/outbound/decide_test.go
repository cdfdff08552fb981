package outbound

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room"
)

var now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// TestFirst: the oldest message of a reader who waits for nothing is next, and nobody reads out of order.
func TestFirst(t *testing.T) {
	const bound = "000000000007"
	soon, far := now.Add(time.Minute), now.Add(room.FarPause+time.Minute)
	row := func(peer, state string, next time.Time) open {
		return open{state: state, peer: peer, address: "at " + peer, owner: "000000000006/a", next: next}
	}
	closed, foreign, shared := row("ann", Pending, time.Time{}), row("ann", Sending, time.Time{}), row("bob", Pending, time.Time{})
	closed.hold, foreign.owner, shared.address = HoldClosed, bound+"/b", "at ann"
	for _, tc := range []struct {
		name  string
		rows  []open
		want  int64 // counted from 1
		again time.Time
	}{
		{"nothing", nil, 0, time.Time{}},
		{"the oldest", []open{row("ann", Pending, now), row("ann", Pending, now)}, 1, time.Time{}},
		{"another reader's, behind a pause", []open{row("ann", Pending, soon), row("ann", Pending, now), row("bob", Pending, now)}, 3, soon},
		{"a pause", []open{row("ann", Pending, soon.Add(time.Second)), row("bob", Unknown, soon)}, 0, soon},
		{"a pause of a clock that was ahead", []open{row("ann", Pending, far)}, 1, time.Time{}},
		{"a status that does not come", []open{row("ann", Unknown, now), row("ann", Pending, now)}, 1, time.Time{}},
		{"cut off in an earlier life", []open{row("ann", Sending, soon), row("ann", Pending, now)}, 1, time.Time{}},
		{"sent by a later life", []open{foreign, row("ann", Pending, now)}, 0, time.Time{}},
		{"closed", []open{closed, row("ann", Pending, now)}, 0, time.Time{}},
		{"another's, who has the number of one who is closed", []open{closed, shared}, 2, time.Time{}},
		{"one's, where another waits", []open{row("ann", Pending, soon), shared}, 0, soon},
	} {
		for i := range tc.rows {
			tc.rows[i].n = int64(i + 1)
		}
		if n, again := first(tc.rows, now, bound); n != tc.want || !again.Equal(tc.again) {
			t.Errorf("%s: row %d, again at %s; want %d, %s", tc.name, n, again, tc.want, tc.again)
		}
	}
}

// TestSendPause: pauses grow to a bound, and last as long as the platform asked, but for a day at most.
func TestSendPause(t *testing.T) {
	for tries, want := range map[int]time.Duration{0: firstPause, 1: firstPause, 2: 2 * firstPause, 8: 256 * time.Second, 9: longPause, maxTries: longPause} {
		if got := sendPause(tries, 0); got != want {
			t.Errorf("%d tries: %s, want %s", tries, got, want)
		}
	}
	for asked, want := range map[time.Duration]time.Duration{time.Second: firstPause, time.Hour: time.Hour, 90 * 24 * time.Hour: mostPause} {
		if got := sendPause(1, asked); got != want {
			t.Errorf("asked for %s: %s, want %s", asked, got, want)
		}
	}
	if mostPause >= room.FarPause {
		t.Errorf("a message may wait %s, and what waits %s is taken for a mistake of the clock", mostPause, room.FarPause)
	}
}

// TestListeners: each reader once, where they wrote from last, with the message that an answer quotes.
func TestListeners(t *testing.T) {
	at := func(peer, message string, group bool) tidemark.Origin {
		return tidemark.Origin{Peer: "p" + peer, Message: message, To: &tidemark.Address{Platform: "fake", Peer: peer, Group: group}}
	}
	other := at("2", "m2", false)
	other.Peer = "p1"
	scheduled := at("1", "", false)
	scheduled.Occasion = &tidemark.Occasion{}
	for _, tc := range []struct {
		name string
		from []tidemark.Origin
		want string
	}{
		{"nobody over a channel", []tidemark.Origin{{}}, ""},
		{"one", []tidemark.Origin{at("1", "m1", false)}, "1 "},
		{"twice", []tidemark.Origin{at("1", "m1", false), at("1", "m2", false)}, "1 m2"},
		{"one person by two names", []tidemark.Origin{at("1", "m1", false), other}, "2 m2"},
		{"a group", []tidemark.Origin{at("g", "m1", true)}, "g m1"},
		{"a schedule", []tidemark.Origin{scheduled, at("2", "m2", false)}, "2 "},
	} {
		var got []string
		for _, l := range listeners(tc.from) {
			got = append(got, fmt.Sprint(l.To.Peer, " ", l.quote()))
		}
		if s := strings.Join(got, ","); s != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, s, tc.want)
		}
	}
}

// TestAfterStatus: statuses come in any order, twice, and for earlier tries.
func TestAfterStatus(t *testing.T) {
	refused := &tidemark.SendError{Class: tidemark.SendUnknown, Text: "no"}
	for _, tc := range []struct {
		name string
		m    Message
		d    tidemark.Delivery
		want string // what is set begins so
	}{
		{"read", Message{State: Sent, ID: "a"}, tidemark.Delivery{ID: "a", Status: tidemark.StatusRead}, "state = 'sent'"},
		{"delivered behind read", Message{State: Sent, ID: "a", Status: tidemark.StatusRead}, tidemark.Delivery{ID: "a", Status: tidemark.StatusDelivered}, ""},
		{"sent behind failed", Message{State: Failed, ID: "a"}, tidemark.Delivery{ID: "a", Status: tidemark.StatusSent}, ""},
		{"delivered behind failed", Message{State: Failed, ID: "a"}, tidemark.Delivery{ID: "a", Status: tidemark.StatusDelivered}, "state = 'sent'"},
		{"failed behind delivered", Message{State: Sent, ID: "a", Status: tidemark.StatusDelivered}, tidemark.Delivery{ID: "a", Status: tidemark.StatusFailed, Error: refused}, ""},
		{"failed, which is known", Message{State: Unknown}, tidemark.Delivery{ID: "a", Status: tidemark.StatusFailed, Error: refused}, "state = 'failed'"},
		{"failed without a reason", Message{State: Sent, ID: "a"}, tidemark.Delivery{ID: "a", Status: tidemark.StatusFailed}, "state = 'failed'"},
		{"another id", Message{State: Sent, ID: "a"}, tidemark.Delivery{ID: "b", Status: tidemark.StatusRead}, ""},
		{"an earlier try", Message{State: Unknown, past: "b c"}, tidemark.Delivery{ID: "c", Status: tidemark.StatusRead}, ""},
		{"not sent yet", Message{State: Pending}, tidemark.Delivery{Status: tidemark.StatusRead}, ""},
		{"of another message", Message{State: Unknown, At: now}, tidemark.Delivery{Status: tidemark.StatusRead, At: now.Add(-time.Hour)}, ""},
		{"no status", Message{State: Sent}, tidemark.Delivery{Status: "odd"}, ""},
	} {
		c := afterStatus(tc.m, tc.d, now)
		if !strings.HasPrefix(c.set, tc.want) || tc.want == "" && c.set != "" {
			t.Errorf("%s: %q, want %q", tc.name, c.set, tc.want)
		}
		if n := strings.Count(c.set, "?"); n != len(c.args) {
			t.Errorf("%s: %d values for %d places", tc.name, len(c.args), n)
		}
	}
}

// TestAfterFailure: each class has its row, and the owner reads of what they can do something about.
func TestAfterFailure(t *testing.T) {
	var got []string
	for _, m := range []Message{{Tries: 1}, {Tries: maxTries, Hold: HoldHalted}} {
		for _, class := range []tidemark.SendClass{tidemark.SendAgain, tidemark.SendUnknown, tidemark.SendFailed, tidemark.SendClosed, tidemark.SendHalted} {
			c := afterFailure(m, &tidemark.SendError{Class: class, Code: 7, Text: "why"}, now)
			state, _, _ := strings.Cut(strings.TrimPrefix(c.set, "state = '"), "'")
			got = append(got, fmt.Sprintf("%s %s %t", class, state, c.event != ""))
			if n := strings.Count(c.set, "?"); n != len(c.args) || c.args[n-1] != "why (7)" {
				t.Errorf("%s: values %v for %q", class, c.args, c.set)
			}
		}
	}
	want := []string{"again pending false", "unknown unknown false", "failed failed true", "closed pending false", "halted pending true",
		"again failed true", "unknown unknown false", "failed failed true", "closed pending false", "halted pending false"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
