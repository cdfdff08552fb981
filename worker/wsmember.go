package worker

import (
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

// Bounds of one client on a socket.
const (
	maxInbox    = 64              // messages that wait while one is in work
	maxUnseen   = 4 << 20         // bytes sent beyond what the client says it has seen,
	unseenFor   = 5 * time.Second // for so long; never more than
	mostUnseen  = 32 << 20
	markEvery   = 256 << 10
	keptAhead   = 32 << 10 // bytes put down in its note before they are sent
	framesBurst = 60       // messages of a client at once
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
	joined  session.Late

	sent, marked, seen int64     // bytes
	late               time.Time // since then it is too far behind
	kept               int64     // what its note says was sent

	inbox []string
	busy  bool // one is in work

	frames float64 // that it may send at once
	at     time.Time
	typing bool
	typed  time.Time // when it was told last
}

// Keeper is a socket of a host that remembers it while nothing of its room is in memory.
type Keeper interface {
	// Keep gives the socket another note.
	Keep(note string)
}

// newMember is who a note tells of. One of an earlier life goes on with the allowance that it had: who
// never reads is cut off over all lives.
func newMember(s tidemark.Socket, n note, again bool, now time.Time) *member {
	m := &member{sock: s, who: person{ID: s.ID(), Name: n.Name}, again: again, frames: framesBurst, at: now, kept: n.Sent}
	if again {
		m.sent, m.marked, m.seen, m.late = n.Sent, n.Marked, n.Seen, time.UnixMilli(n.Late)
	}
	return m
}

// keep has the host remember what the client has taken.
func (m *member) keep() {
	k, ok := m.sock.(Keeper)
	if !ok {
		return
	}
	m.kept = m.sent + keptAhead
	k.Keep(note{m.room.key, m.who.Name, m.kept, m.marked, m.seen, m.late.UnixMilli()}.String())
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
	if mark = m.sent-m.marked >= markEvery; mark {
		m.marked = m.sent
	}
	if m.sent > m.kept {
		m.keep()
	}
	return true, mark
}
