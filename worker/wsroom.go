package worker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/session"
)

// Status codes with which we close a socket
// (https://www.iana.org/assignments/websocket/websocket.xhtml#close-code-number).
const (
	statusPolicy   = 1008
	statusInternal = 1011
	statusLater    = 1013
)

// Bounds of a room.
const (
	maxPeople     = 2000        // sockets of one session
	manyPeople    = 50          // beyond them people are only counted
	presenceEvery = time.Second // between two counts
)

// rooms are the sockets of a door, by session. It is the tidemark.SocketHandler of the host.
type rooms struct {
	d *door

	mu   sync.Mutex // guards the following; may be held while a room.mu is taken, never the other way
	byID map[string]*member
	open map[tidemark.Key]*room
}

var _ tidemark.SocketHandler = (*rooms)(nil)

// SocketsOf returns what hears of the sockets that a handler of New accepted. A host which keeps
// sockets while nothing of them is in memory gives them back there.
func SocketsOf(h http.Handler) tidemark.SocketHandler { return h.(*door).rooms }

// room is one session that sockets listen to. It listens once for all of them, and knows what it has
// told: who comes later is told the rest.
type room struct {
	d    *door
	key  tidemark.Key
	end  context.CancelFunc
	came chan struct{} // somebody is to be greeted
	live chan struct{} // closed when the first were greeted, or never will be
	once sync.Once     // closes live

	mu     sync.Mutex // guards the following; never held over a wait
	people []*member  // by id, which is in the order in which they came
	said   session.Said
	told   bool // that the count of people has changed is about to be told
}

// full reports whether a room takes nobody else.
func (r *rooms) full(key tidemark.Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	rm := r.open[key]
	return rm != nil && rm.size() >= maxPeople
}

func (rm *room) size() int {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	return len(rm.people)
}

// Opened implements tidemark.SocketHandler.
func (r *rooms) Opened(ctx context.Context, s tidemark.Socket, raw string, again bool) {
	var n note
	if err := json.Unmarshal([]byte(raw), &n); err != nil {
		r.d.Logger.Error("note of a socket", "err", err)
		s.Close(statusInternal, "its note cannot be read")
		return
	}
	m := newMember(s, n, again, r.d.Runtime.Now())
	r.mu.Lock()
	defer r.mu.Unlock()
	rm := r.open[n.Key]
	if rm == nil {
		life, end := context.WithCancel(ctx)
		rm = &room{d: r.d, key: n.Key, end: end, came: make(chan struct{}, 1), live: make(chan struct{})}
		r.open[n.Key] = rm
		r.d.Runtime.Go(func() { rm.listen(life) })
	}
	m.room = rm
	r.byID[s.ID()] = m
	rm.mu.Lock()
	defer rm.mu.Unlock()
	at, _ := slices.BinarySearchFunc(rm.people, m.who.ID, func(p *member, id string) int { return strings.Compare(p.who.ID, id) })
	rm.people = slices.Insert(rm.people, at, m)
	rm.signal()
}

// signal has the listener greet who came.
func (rm *room) signal() {
	select {
	case rm.came <- struct{}{}:
	default:
	}
}

// Closed implements tidemark.SocketHandler. The last one closes the room.
func (r *rooms) Closed(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.byID[id]
	if m == nil {
		return
	}
	delete(r.byID, id)
	rm := m.room
	rm.mu.Lock()
	defer rm.mu.Unlock()
	m.cut = true
	rm.people = slices.DeleteFunc(rm.people, func(p *member) bool { return p == m })
	if len(rm.people) == 0 {
		rm.end()
		if r.open[rm.key] == rm {
			delete(r.open, rm.key)
		}
		return
	}
	rm.changed()
}

// listen passes the notices of the session on until the room is empty or its object ends.
func (rm *room) listen(ctx context.Context) {
	defer func() {
		if p := recover(); p != nil {
			rm.d.Logger.Error("panic in a room", "session", rm.key, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			rm.fail(statusInternal, errors.New("internal"))
		}
	}()
	for ctx.Err() == nil {
		err := rm.attend(ctx)
		if ctx.Err() == nil && err != nil {
			rm.d.Logger.Warn("sockets of a session", "session", rm.key, "err", err)
			rm.fail(statusLater, err)
			return
		}
	}
}

// attend listens until the listener falls behind. Everybody is greeted (again): nothing is missed.
func (rm *room) attend(ctx context.Context) error {
	s, err := rm.d.Actors.Session(ctx, rm.key, false)
	if err != nil {
		return err
	}
	sub, err := s.Subscribe()
	if err != nil {
		return err
	}
	defer sub.Close()
	rm.begin(sub)
	if err := rm.greet(ctx, s); err != nil {
		return err
	}
	for {
		select {
		case <-sub.Ready:
			for n, ok := sub.Next(); ok; n, ok = sub.Next() {
				rm.pass(n)
			}
			if sub.Behind() {
				return nil
			}
		case <-rm.came:
			if err := rm.greet(ctx, s); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// begin takes over what a session says of the run in work.
func (rm *room) begin(sub *session.Subscription) {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	rm.said.Set(sub.Run, sub.Partial)
	for _, m := range rm.people {
		m.again = m.again || m.greeted
		m.greeted = false
	}
}

// greet says hello to all who were not told yet, with what was passed on so far, and tells the others
// that they came.
func (rm *room) greet(ctx context.Context, s *session.Session) error {
	info, err := s.Info(ctx)
	if err != nil {
		return err
	}
	rm.mu.Lock()
	defer rm.mu.Unlock()
	h := wireHello{Type: "hello", Version: 1, Session: info.ID, Messages: info.Messages, Run: rm.said.Run}
	h.Count, h.People = rm.names()
	text, late := rm.said.Text()
	h.Text = text
	if slices.ContainsFunc(rm.people, func(m *member) bool { return !m.greeted && !m.again }) {
		rm.changed() // those who were here
	}
	for _, m := range rm.people {
		if m.greeted || m.cut {
			continue
		}
		m.greeted, m.joined = true, late
		h.ID, h.Again = m.who.ID, m.again
		rm.say(m, h)
	}
	rm.settle()
	return nil
}

// settle lets those be heard who wait for the room.
func (rm *room) settle() { rm.once.Do(func() { close(rm.live) }) }

// names is who is here, called with the lock held.
func (rm *room) names() (count int, people []person) {
	if len(rm.people) > manyPeople {
		return len(rm.people), nil
	}
	for _, m := range rm.people {
		people = append(people, m.who)
	}
	return len(rm.people), people
}

// changed tells who is here: at once when they are few, else their number, now and then. It is called
// with the lock held.
func (rm *room) changed() {
	if len(rm.people) <= manyPeople {
		rm.tellPresence()
		return
	}
	if rm.told {
		return
	}
	rm.told = true
	rm.d.Runtime.Go(func() {
		_ = rm.d.Runtime.Sleep(context.Background(), presenceEvery)
		rm.mu.Lock()
		defer rm.mu.Unlock()
		rm.told = false
		rm.tellPresence()
	})
}

func (rm *room) tellPresence() {
	p := wirePresence{Type: "presence"}
	p.Count, p.People = rm.names()
	rm.sayAll(p, nil)
}

// pass hands a notice on to all who were greeted.
func (rm *room) pass(n session.Notice) {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	rm.said.Take(n)
	rm.sayAll(wireNotice(n, &answer{id: n.Run}), func(m *member) bool { return m.joined.Misses(n) })
}

// say sends a value to one, called with the lock held.
func (rm *room) say(m *member, v any) { rm.sendTo([]*member{m}, rm.encode(v)) }

// sayAll sends a value to everybody but those to skip, called with the lock held.
func (rm *room) sayAll(v any, skip func(*member) bool) {
	to := make([]*member, 0, len(rm.people))
	for _, m := range rm.people {
		if m.greeted && (skip == nil || !skip(m)) {
			to = append(to, m)
		}
	}
	if len(to) > 0 {
		rm.sendTo(to, rm.encode(v))
	}
}

func (rm *room) encode(v any) string {
	raw, err := json.Marshal(v)
	if err != nil { // types of ours
		panic(fmt.Sprintf("encode message of a socket: %v", err))
	}
	return string(raw)
}

// Caster is a socket of a host that sends one text to many at a smaller cost.
type Caster interface {
	// Cast is Send to all of the sockets, which are of the same host.
	Cast(to []tidemark.Socket, text string)
}

// sendTo sends a text to each, and cuts off who has not read what was sent before.
func (rm *room) sendTo(to []*member, text string) {
	var many []tidemark.Socket
	var due []*member
	caster, cast := to[0].sock.(Caster)
	now := rm.d.Runtime.Now()
	for _, m := range to {
		if m.cut {
			continue
		}
		ok, mark := m.count(len(text), now)
		switch {
		case !ok:
			rm.cut(m)
			continue
		case cast:
			many = append(many, m.sock)
		case errors.Is(m.sock.Send(text), tidemark.ErrBusy):
			rm.cut(m)
			continue
		}
		if mark {
			due = append(due, m)
		}
	}
	if len(many) > 0 {
		caster.Cast(many, text)
	}
	for _, m := range due { // behind the text: who has seen the mark has seen that
		rm.mark(m)
	}
}

// mark asks a client to say how far it has read.
func (rm *room) mark(m *member) {
	if !m.cut {
		_ = m.sock.Send(rm.encode(wireMark{"mark", m.marked})) // who has left is told of by Closed
	}
}

// cut closes the socket of a client that reads too slowly: it holds nobody else up.
func (rm *room) cut(m *member) {
	const why = "you read too slowly; read the log and connect again"
	m.cut = true
	_ = m.sock.Send(rm.encode(wireRefused{Type: "error", Error: wireFault{Type: "behind", Message: why, RequestID: m.who.ID}}))
	m.sock.Close(statusLater, "behind")
}

// fail ends a room that cannot go on: its clients connect again.
func (rm *room) fail(status int, err error) {
	f, all := failureOf(err), rm.d.rooms
	all.mu.Lock()
	if all.open[rm.key] == rm {
		delete(all.open, rm.key) // who comes now gets a new one
	}
	all.mu.Unlock()
	rm.mu.Lock()
	defer rm.mu.Unlock()
	defer rm.settle()
	for _, m := range rm.people {
		if m.cut {
			continue
		}
		m.cut = true
		_ = m.sock.Send(rm.encode(wireRefused{Type: "error", Error: wireFault{Type: f.kind, Message: f.text, RequestID: m.who.ID}}))
		m.sock.Close(status, f.kind)
	}
}
