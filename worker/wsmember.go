package worker

import (
	"time"

	"github.com/tidemark-ai/tidemark"
)

// Bounds of one client on a socket.
const (
	maxInbox    = 64              // messages that wait while one is in work
	maxUnseen   = 4 << 20         // bytes sent beyond what the client says it has seen,
	unseenFor   = 5 * time.Second // for so long; never more than
	mostUnseen  = 32 << 20
	markEvery   = 256 << 10
	framesBurst = 60 // messages of a client at once
	framesEach  = time.Second / 10
	typingEach  = time.Second
)

// member is one socket in a room. Its fields are guarded by room.mu, those that never change apart.
type member struct {
	sock tidemark.Socket
	who  person
	room *room

	greeted bool // it was sent hello, and gets all that follows
	again   bool // it was in the room in an earlier life
	cut     bool // it is being closed: nothing more is sent

	sent, marked, seen int64     // bytes
	late               time.Time // since then it is too far behind

	inbox []string
	busy  bool // one is in work

	frames float64 // that it may send at once
	at     time.Time
	typing bool
	typed  time.Time // when it was told last
}

// may counts a message of the client and reports whether it comes within the rate; spent says that
// it goes on after it was told.
func (m *member) may(now time.Time) (ok, spent bool) {
	if since := now.Sub(m.at); since > 0 {
		m.frames = min(framesBurst, m.frames+float64(since)/float64(framesEach))
	}
	m.at = now
	m.frames--
	return m.frames >= 0, m.frames < -framesBurst
}

// count makes sure that the client reads, on each host alike: what it has not seen is bounded, with some
// patience for one large answer on its way. It reports whether a text may be sent, and whether a mark is
// due behind it.
func (m *member) count(bytes int, now time.Time) (ok, mark bool) {
	unseen := m.sent - m.seen // before this one, which may be as large by itself
	if unseen <= maxUnseen {
		m.late = now
	}
	if unseen > mostUnseen || now.Sub(m.late) > unseenFor {
		return false, false
	}
	m.sent += int64(bytes)
	if m.sent-m.marked >= markEvery {
		m.marked = m.sent
		return true, true
	}
	return true, false
}
