package outbound

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/room"
)

// What is decided here is carried out in send.go and status.go.

// Pauses between tries.
const (
	maxTries    = 20               // with the pauses below about an hour
	firstPause  = 2 * time.Second  // after the first try that sent nothing, doubled with each
	longPause   = 5 * time.Minute  // the longest of these
	haltPause   = 10 * time.Minute // while the account may not send
	mostPause   = 24 * time.Hour   // that a platform may ask for; room.FarPause is longer than any
	unknownWait = 2 * time.Minute  // for the status of a message that may have been sent
)

// open is a row that the sender has something to do with.
type open struct {
	n                                 int64
	state, hold, peer, address, owner string
	next                              time.Time
}

// first returns the row of some, oldest first, that something is to be done with now, 0 for none: the oldest of a reader that
// waits for nothing. A message that may have been sent holds up those behind it only as long as a status may well come: order
// is worth a pause, but not that the rest is never read. Without such a row, again is when to look again. A pause of a clock
// that was set back since is over. bound sorts before what later lives are sending.
func first(rows []open, now time.Time, bound string) (n int64, again time.Time) {
	waits := map[string]bool{}
	for _, r := range rows {
		behind := waits[r.peer] || waits[r.address] // what is said to an address is no known person's
		waits[r.peer] = true
		if behind || r.hold == HoldClosed { // who is closed holds up nobody else, who may have their number now
			continue
		}
		waits[r.address] = true
		switch {
		case r.state == Sending && r.owner >= bound: // of a later life
		case r.state != Sending && r.next.After(now) && !r.next.After(now.Add(room.FarPause)):
			if again.IsZero() || r.next.Before(again) {
				again = r.next
			}
		default:
			return r.n, again
		}
	}
	return 0, again
}

// change is what becomes of a message. The zero value is nothing.
type change struct {
	set   string // of its row
	args  []any
	event string // that the owner reads
}

// afterFailure is what becomes of a message after a try that failed.
func afterFailure(m Message, e *tidemark.SendError, now time.Time) (c change) {
	text := failureText(e)
	switch {
	case e.Class == tidemark.SendUnknown:
		return change{set: `state = 'unknown', open = 1, hold = '', next = ?, error = ?`, args: []any{now.Add(unknownWait).UnixMilli(), text}}
	case e.Class == tidemark.SendClosed:
		return change{set: `state = 'pending', open = 1, hold = 'closed', next = 0, error = ?`, args: []any{text}}
	case e.Class == tidemark.SendHalted:
		if m.Hold != HoldHalted {
			c.event = fmt.Sprintf("Messages to %s wait, because the account may not send: %s. It is tried again every %s.", place(m.To), text, haltPause)
		}
		c.set, c.args = `state = 'pending', open = 1, hold = 'halted', next = ?, tries = tries - 1, error = ?`, []any{now.Add(max(haltPause, min(e.RetryAfter, mostPause))).UnixMilli(), text}
		return c
	case e.Class == tidemark.SendAgain && m.Tries < maxTries:
		return change{set: `state = 'pending', open = 1, hold = '', next = ?, error = ?`, args: []any{now.Add(sendPause(m.Tries, e.RetryAfter)).UnixMilli(), text}}
	}
	return change{set: `state = 'failed', open = 0, hold = '', next = 0, error = ?`, args: []any{text}, event: fmt.Sprintf("A message to %s was not sent: %s.", place(m.To), text)}
}

// sendPause is how long to wait after a try that sent nothing.
func sendPause(tries int, asked time.Duration) time.Duration {
	pause := longPause
	if tries < 9 {
		pause = min(firstPause<<max(tries-1, 0), longPause)
	}
	return max(pause, min(asked, mostPause))
}

// rank orders the statuses of a message that comes through.
var rank = []string{"", tidemark.StatusSent, tidemark.StatusDelivered, tidemark.StatusRead}

// afterStatus is what becomes of a message by a status, nothing where that tells nothing new.
func afterStatus(m Message, d tidemark.Delivery, now time.Time) change {
	if m.State == Pending || ofEarlierTry(m, d) || older(m, d) {
		return change{}
	}
	was, is := slices.Index(rank, m.Status), slices.Index(rank, d.Status)
	if d.Status != tidemark.StatusFailed {
		// That it was sent may come behind that it failed; that it was delivered cannot.
		if is < 1 || m.State == Failed && is < 2 || m.State == Sent && is <= was {
			return change{}
		}
		set := `state = 'sent', open = 0, hold = '', next = 0, error = '', status = ?, id = CASE WHEN ? = '' THEN id ELSE ? END`
		if is >= 2 { // who quotes it needs no more of it
			set += `, text = substr(text, 1, ` + strconv.Itoa(maxQuoted*2) + `)`
		}
		return change{set: set, args: []any{d.Status, d.ID, d.ID}}
	}
	if m.State == Failed || was >= 2 {
		return change{}
	}
	e := d.Error
	if e == nil {
		e = &tidemark.SendError{Class: tidemark.SendFailed, Text: "the platform gave no reason"}
	}
	if e.Class == tidemark.SendUnknown { // it is known to have failed
		e = &tidemark.SendError{Class: tidemark.SendFailed, Code: e.Code, Text: e.Text}
	}
	c := afterFailure(m, e, now)
	c.set, c.args = c.set+`, owner = '', status = '', id = '', past = trim(past || ' ' || ?)`, append(c.args, d.ID)
	return c
}

// ofEarlierTry reports whether a status is of an earlier try, which is known to have come to nothing.
func ofEarlierTry(m Message, d tidemark.Delivery) bool {
	return d.ID != "" && (m.ID != "" && m.ID != d.ID || slices.Contains(strings.Fields(m.past), d.ID))
}

// clockApart is how far our clock and a platform's may be apart.
const clockApart = 10 * time.Minute

// older reports whether a status is of a message from before the row, which has only the ref in common with
// it: rows count from 1 again where a backup was restored, or in a second installation on the account. A
// message whose id is known has no other.
func older(m Message, d tidemark.Delivery) bool {
	return !d.At.IsZero() && d.At.Before(m.At.Add(-clockApart)) && (m.ID == "" || m.ID != d.ID)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// failureText is what a person reads of a failure.
func failureText(e *tidemark.SendError) string {
	const most = 300
	text := clip.Line(e.Text, most)
	if e.Code != 0 {
		text = fmt.Sprintf("%s (%d)", text, e.Code)
	}
	return text
}

// place names an address for people.
func place(a tidemark.Address) string { return a.Platform + " " + a.Peer }
