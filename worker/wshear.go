package worker

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"

	"github.com/tidemark-ai/tidemark"
)

// Received implements tidemark.SocketHandler: it does what a client says, one frame after the other.
func (r *rooms) Received(ctx context.Context, id, text string) {
	r.mu.Lock()
	m := r.byID[id]
	r.mu.Unlock()
	if m == nil || !m.room.take(m, text) {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			r.d.Logger.Error("panic in a frame", "session", m.room.key, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			m.sock.Close(statusInternal, "internal")
		}
	}()
	select { // nobody is answered, or spoken of, before hello
	case <-m.room.live:
	case <-ctx.Done():
	}
	for text, ok := m.room.next(m); ok; text, ok = m.room.next(m) {
		m.room.hear(ctx, m, text)
	}
}

// take puts a frame into the member's inbox. It reports whether the caller is the one who empties it.
func (rm *room) take(m *member, text string) bool {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	if m.cut {
		return false
	}
	ok, spent := m.may(rm.d.Runtime.Now())
	if spent || len(m.inbox) >= maxInbox {
		m.cut = true
		m.sock.Close(statusPolicy, "rate")
		return false
	}
	if !ok {
		rm.say(m, wireRefused{Type: "error", Error: wireFault{Type: "rate", RequestID: m.who.ID,
			Message: fmt.Sprintf("too many frames: %d at once, %d a second; this one was dropped", framesBurst, int(1e9/framesEach))}})
		return false
	}
	m.inbox = append(m.inbox, text)
	if m.busy {
		return false
	}
	m.busy = true
	return true
}

// next returns the oldest frame of the inbox.
func (rm *room) next(m *member) (text string, ok bool) {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	if len(m.inbox) == 0 || m.cut {
		m.busy, m.inbox = false, nil
		return "", false
	}
	text = m.inbox[0]
	m.inbox = m.inbox[1:]
	return text, true
}

// hear does what one frame asks for, and answers it.
func (rm *room) hear(ctx context.Context, m *member, text string) {
	f, err := decodeFrame([]byte(text))
	if err == nil && f.kind == framePost {
		err = rm.post(ctx, m, f)
	} else if err == nil {
		err = rm.simple(ctx, m, f)
	}
	if err == nil || ctx.Err() != nil {
		return
	}
	failed := failureOf(err)
	id := tidemark.NewID(rm.d.Runtime.Now())
	rm.d.Metrics.failure(failed.kind)
	if failed.status == http.StatusInternalServerError {
		rm.d.Logger.Error("frame failed", "id", id, "session", rm.key, "err", err)
	}
	rm.answer(m, wireRefused{Type: "error", Ref: f.ref, Error: wireFault{Type: failed.kind, Message: failed.text, RequestID: id, Input: f.input.ID}})
}

func (rm *room) answer(m *member, v any) {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	rm.say(m, v)
}

// post makes an input durable. What becomes of it all are told by the notices.
func (rm *room) post(ctx context.Context, m *member, f frame) error {
	if err := writable(rm.key); err != nil {
		return err
	}
	s, err := rm.d.Actors.Session(ctx, rm.key, true)
	if err != nil {
		return err
	}
	receipt, err := s.Post(ctx, f.input)
	if err != nil {
		return err
	}
	rm.answer(m, wireTaken{"receipt", f.ref, receipt})
	return nil
}

// simple does what waits for nothing.
func (rm *room) simple(ctx context.Context, m *member, f frame) error {
	if f.kind == frameAbort {
		s, err := rm.d.Actors.Session(ctx, rm.key, false)
		if err != nil {
			return err
		}
		rm.answer(m, wireAborted{"aborted", f.ref, s.Abort()})
		return nil
	}
	rm.mu.Lock()
	defer rm.mu.Unlock()
	switch f.kind {
	case framePing:
		rm.say(m, wirePong{"pong", f.ref})
	case frameSeen:
		m.seen = max(m.seen, min(f.seen, m.sent))
		m.keep()
	case frameTyping:
		now := rm.d.Runtime.Now()
		if since := now.Sub(m.typed); f.on && m.typing && since >= 0 && since < typingEach {
			return nil // it was told a moment ago
		}
		m.typing, m.typed = f.on, now
		rm.sayAll(wireTyping{"typing", m.who, f.on}, func(o *member) bool { return o == m })
	}
	return nil
}
