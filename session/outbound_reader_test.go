package session_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// Addresses of one person, as platforms name them in turn.
var (
	number = tidemark.Address{Platform: "fake", Account: "us", Peer: "15550001"}
	byID   = tidemark.Address{Platform: "fake", Account: "us", Peer: "US.a"}
)

// known is an input of somebody whom the desk knows by a name.
func known(name string, by tidemark.Address, id, text string) session.Input {
	in := wrote(by, id, text)
	in.Origin.Peer = name
	return in
}

// TestReaders: who wrote what a run takes up reads its answer once, where they wrote last.
func TestReaders(t *testing.T) {
	second, secondGroup := number, group
	second.Account, secondGroup.Peer = "them", "choir"
	for _, row := range []struct {
		name string
		a, b session.Input
		want []string // who reads, and the message that is quoted
	}{
		{"a number, then an id", known("ann", number, "a", "1"), known("ann", byID, "b", "2"), []string{"US.a their.b"}},
		{"an id, then a number", known("ann", byID, "a", "1"), known("ann", number, "b", "2"), []string{"15550001 their.b"}},
		{"the same", known("ann", byID, "a", "1"), known("ann", byID, "b", "2"), []string{"US.a their.b"}},
		{"two people", known("ann", number, "a", "1"), known("bob", byID, "b", "2"), []string{"15550001 ", "US.a "}},
		{"two people in a group", known("ann", group, "a", "1"), known("bob", group, "b", "2"), []string{"club their.b"}},
		{"one person in two groups", known("ann", group, "a", "1"), known("ann", secondGroup, "b", "2"), []string{"club their.a", "choir their.b"}},
		{"in a group and alone", known("ann", group, "a", "1"), known("ann", number, "b", "2"), []string{"club their.a", "15550001 "}},
		{"one person on two accounts", known("ann", number, "a", "1"), known("ann", second, "b", "2"), []string{"15550001 ", "15550001 "}},
		{"nobody known", known("", number, "a", "1"), known("", byID, "b", "2"), []string{"15550001 ", "US.a "}},
		{"called like another's number", known("US.a", number, "a", "1"), known("", byID, "b", "2"), []string{"15550001 ", "US.a "}},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := &tidemarktest.Courier{}
			h, _ := newPhone(t, c)
			h.model.hold, h.model.entered = make(chan struct{}), make(chan struct{}, 10)
			for i, in := range []session.Input{{ID: "in0", Message: tidemark.NewText(tidemark.User, "first")}, row.a, row.b} {
				if _, err := h.Post(t.Context(), in); err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					<-h.model.entered
				}
			}
			close(h.model.hold)
			h.idle()
			var got []string
			for _, a := range c.Arrived() {
				got = append(got, a.To.Peer+" "+a.Quote)
			}
			slices.Sort(got) // readers need no order among them
			slices.Sort(row.want)
			if !slices.Equal(got, row.want) {
				t.Errorf("it was read by %q, want %q", got, row.want)
			}
		})
	}
}

// TestWaitsForWhoever: what waits for a person goes out when they write, by whatever name, to where they are.
func TestWaitsForWhoever(t *testing.T) {
	for _, row := range []struct {
		name string
		fail tidemark.SendClass
		back session.Input
		want []string
	}{
		{"closed, back by id", tidemark.SendClosed, known("ann", byID, "b", "2"), []string{"US.a ok 1", "US.a ok 2"}},
		{"closed, back by number", tidemark.SendClosed, known("ann", number, "b", "2"), []string{"15550001 ok 1", "15550001 ok 2"}},
		{"halted, moved", tidemark.SendHalted, known("ann", byID, "b", "2"), []string{"US.a ok 1", "US.a ok 2"}},
		{"again, moved", tidemark.SendAgain, known("ann", byID, "b", "2"), []string{"US.a ok 1", "US.a ok 2"}},
		{"closed, and another has the number", tidemark.SendClosed, known("bob", number, "b", "2"), []string{"15550001 ok 2"}},
		{"closed, and another writes", tidemark.SendClosed, known("bob", byID, "b", "2"), []string{"US.a ok 2"}},
		{"closed, and they write in a group", tidemark.SendClosed, known("ann", group, "b", "2"), []string{"club ok 2"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := &tidemarktest.Courier{Fail: func(n int, _ tidemark.Outgoing) error {
				if n > 1 {
					return nil
				}
				return &tidemark.SendError{Class: row.fail, RetryAfter: time.Hour}
			}}
			h, clock := newPhone(t, c)
			h.post(known("ann", number, "a", "1"))
			h.idle()
			h.post(row.back)
			h.idle()
			wakeOften(h, clock)
			var got []string
			for _, a := range c.Arrived() {
				got = append(got, a.To.Peer+" "+a.Text)
			}
			if !slices.Equal(got, row.want) {
				t.Errorf("people read %q, want %q", got, row.want)
			}
		})
	}
}

// TestRowsOfBefore: rows that know an address and no person are their person's with the next word, in order.
func TestRowsOfBefore(t *testing.T) {
	for _, row := range []struct {
		name string
		fail tidemark.SendClass
		back tidemark.Address
		want []string
	}{
		{"closed", tidemark.SendClosed, number, []string{"ok 1", "ok 2"}},
		{"halted", tidemark.SendHalted, number, []string{"ok 1", "ok 2"}},
		{"closed, and they write from elsewhere", tidemark.SendClosed, byID, []string{"ok 2"}}, // as before
	} {
		t.Run(row.name, func(t *testing.T) {
			c := &tidemarktest.Courier{Fail: failing(row.fail, 1)}
			h, clock := newPhone(t, c)
			h.post(known("ann", number, "a", "1"))
			h.idle()
			h.stop()
			old := tidemark.Stmt{SQL: `UPDATE outbound SET peer = ? WHERE key = ?`, Args: []any{"fake\x1fus\x1f15550001", string(h.key)}, Want: 1}
			if err := h.db.Tx(t.Context(), []tidemark.Stmt{old}); err != nil {
				t.Fatal(err)
			}
			h.open()
			h.post(known("ann", row.back, "b", "2"))
			h.idle()
			wakeOften(h, clock)
			wantTexts(t, c, row.want...)
		})
	}
}

// TestSaidInOrder: a line to an address stays behind what waits for who reads there.
func TestSaidInOrder(t *testing.T) {
	c := &tidemarktest.Courier{Fail: failing(tidemark.SendHalted, 1)}
	h, clock := newPhone(t, c)
	h.post(known("ann", number, "a", "1"))
	h.idle()
	if err := h.Say(t.Context(), "command/x", number, "No such command."); err != nil {
		t.Fatal(err)
	}
	h.idle()
	wantTexts(t, c)
	wakeOften(h, clock)
	wantTexts(t, c, "ok 1", "No such command.")
}

// TestMovedWhileSending: who moves between the look at a message and its sending gets it where they are.
func TestMovedWhileSending(t *testing.T) {
	c := &tidemarktest.Courier{}
	h, clock := newPhone(t, c)
	h.idle()
	h.stop()
	b := &before{DB: h.db, sql: "UPDATE outbound SET state = 'sending'"}
	b.then = func() {
		if _, err := h.Post(t.Context(), known("ann", byID, "b", "2")); err != nil {
			t.Error(err)
		}
	}
	h.db = b
	h.open()
	h.post(known("ann", number, "a", "1"))
	h.idle()
	wakeOften(h, clock)
	if got := c.Arrived(); len(got) != 2 || got[0].Text != "ok 1" || got[0].To != byID {
		t.Errorf("people read %+v", got)
	}
}

// before lets something happen once before a transaction with a statement.
type before struct {
	tidemark.DB
	sql  string
	mu   sync.Mutex // guards then
	then func()
}

func (b *before) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	if slices.ContainsFunc(stmts, func(s tidemark.Stmt) bool { return strings.HasPrefix(s.SQL, b.sql) }) {
		b.mu.Lock()
		f := b.then
		b.then = nil
		b.mu.Unlock()
		if f != nil {
			f()
		}
	}
	return b.DB.Tx(ctx, stmts)
}

// TestStoppedByOtherName: who stops an answer by another name than they asked by reads so once, and who else
// waited for it reads it too.
func TestStoppedByOtherName(t *testing.T) {
	for _, row := range []struct {
		name string
		stop session.Input
		want []string
	}{
		{"the same", known("ann", number, "", ""), []string{"15550001 Stopped."}},
		{"by id", known("ann", byID, "", ""), []string{"US.a Stopped."}},
		{"by another", known("bob", byID, "", ""), []string{"15550001 Stopped.", "US.a Stopped."}},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := &tidemarktest.Courier{}
			h, _ := newPhone(t, c)
			h.model.hold, h.model.entered = make(chan struct{}), make(chan struct{}, 9)
			if _, err := h.Post(t.Context(), known("ann", number, "a", "1")); err != nil {
				t.Fatal(err)
			}
			<-h.model.entered
			stop := ordered(ann, "stop", "/stop")
			stop.Origin = row.stop.Origin
			if _, err := h.Post(t.Context(), stop); err != nil {
				t.Fatal(err)
			}
			h.idle()
			var got []string
			for _, a := range c.Arrived() {
				got = append(got, a.To.Peer+" "+a.Text)
			}
			slices.Sort(got)
			if !slices.Equal(got, row.want) {
				t.Errorf("people read %q, want %q", got, row.want)
			}
		})
	}
}
