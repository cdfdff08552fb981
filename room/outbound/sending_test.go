package outbound

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room"
)

// TestSendSettles: what the ledger knows of a try, what is due then, and what the owner reads.
func TestSendSettles(t *testing.T) {
	of := func(class tidemark.SendClass, after time.Duration) *tidemark.SendError {
		return &tidemark.SendError{Class: class, Text: "why", RetryAfter: after}
	}
	const first = " by 000000000007/1"
	for _, tc := range []struct {
		name  string
		fail  func(int, tidemark.Outgoing) error
		row   string
		due   string
		slept []time.Duration
		event string
	}{
		{"sent", nil, "1 sent tries 1" + first + " id mid.1", "", nil, ""},
		{"again", fails(of(tidemark.SendAgain, 0)), "1 sent tries 2 by 000000000007/2 id mid.2", "", []time.Duration{2 * time.Second}, ""},
		{"again twice", fails(of(tidemark.SendAgain, 0), of(tidemark.SendAgain, 0)), "1 sent tries 3 by 000000000007/3 id mid.3", "", []time.Duration{2 * time.Second, 4 * time.Second}, ""},
		{"again, as long as is slept", fails(of(tidemark.SendAgain, 20*time.Second)), "1 sent tries 2 by 000000000007/2 id mid.2", "", []time.Duration{20 * time.Second}, ""},
		{"again, longer", fails(of(tidemark.SendAgain, 20*time.Second+time.Millisecond)), "1 pending open tries 1" + first + " next 20001 error why", "out 20001 ", nil, ""},
		{"failed", fails(of(tidemark.SendFailed, 0)), "1 failed tries 1" + first + " error why", "", nil, "A message to fake ann was not sent: why."},
		{"closed", fails(of(tidemark.SendClosed, 0)), "1 pending open closed tries 1" + first + " error why", "", nil, ""},
		{"unknown", fails(of(tidemark.SendUnknown, 0)), "1 unknown open tries 1" + first + " next 120000 error why", "out 120000 ", nil, ""},
		{"of no class", func(int, tidemark.Outgoing) error { return errors.New("odd") }, "1 unknown open tries 1" + first + " next 120000 error odd", "out 120000 ", nil, ""},
		{"halted", fails(of(tidemark.SendHalted, 0)), "1 pending open halted tries 0" + first + " next 600000 error why", "out 600000 ", nil, "Messages to fake ann wait, because the account may not send: why. It is tried again every 10m0s."},
	} {
		b := newBench(t)
		b.phone.Fail = tc.fail
		b.exec(`INSERT INTO due(key, kind, at, data) VALUES(?, 'run', 9, '')`, string(mine))
		b.say("hello")
		b.Dispatch()
		if !b.Working() {
			t.Errorf("%s: nobody is at work", tc.name)
		}
		b.sends()
		due, others := strings.CutSuffix(b.due()+"\n", fmt.Sprintf("run %d \n", 9-now.UnixMilli()))
		if got := b.rows(); got != tc.row || !others || b.clock.open != 0 || strings.TrimSuffix(due, "\n") != tc.due || !slices.Equal(b.clock.slept, tc.slept) || b.Working() {
			t.Errorf("%s: %s\ndue %q, slept %v, at work %v, want\n%s\ndue %q, slept %v", tc.name, got, due, b.clock.slept, b.Working(), tc.row, tc.due, tc.slept)
		}
		want := ""
		if tc.event != "" {
			want = "log delivery: " + tc.event
		}
		if got := b.lines(`SELECT text FROM events LIMIT 9`); got != want || len(b.told) != strings.Count(want, "log") || want != "" && b.told[0] != "run "+tc.event {
			t.Errorf("%s: the owner reads %q, who listens %q", tc.name, got, b.told)
		}
		for _, a := range b.phone.Arrived() {
			if a.Ref != string(mine)+"/1" || a.To != ann || a.Text != "hello" || a.Quote != "" {
				t.Errorf("%s: arrived %+v", tc.name, a)
			}
		}
	}
}

// TestUnknownIsLeft: a message that may have been sent is left when no status has come, and said so.
func TestUnknownIsLeft(t *testing.T) {
	b := newBench(t)
	b.phone.Fail = fails(&tidemark.SendError{Class: tidemark.SendUnknown, Text: "why"})
	b.say("one")
	b.say("two")
	b.Dispatch()
	b.sends()
	if got := b.rows(); got != "1 unknown open tries 1 by 000000000007/1 next 120000 error why\n2 pending open tries 0" {
		t.Errorf("before: %s", got)
	}
	b.clock.now = now.Add(2 * time.Minute)
	if err := b.Wake(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.sends()
	if got := b.rows(); got != "1 unknown tries 1 by 000000000007/1 next 120000 error why\n2 sent tries 1 by 000000000007/2 id mid.2" || b.due() != "" {
		t.Errorf("behind it: %s, due %q", got, b.due())
	}
	if got := b.lines(`SELECT text FROM events LIMIT 9`); got != "log delivery: A message to fake ann may or may not have been sent (why). It is not sent again." {
		t.Errorf("the owner reads %q", got)
	}
}

// TestCutOff: what an earlier life was handing over may have been sent, what a later one hands over is not ours.
func TestCutOff(t *testing.T) {
	for owner, want := range map[string]string{"000000000006/x": "1 unknown open tries 0 by 000000000006/x next 120000 error cut off while it was being sent", "000000000008/x": "1 sending open tries 0 by 000000000008/x"} {
		b := newBench(t)
		b.say("hello")
		b.exec(`UPDATE outbound SET state = 'sending', owner = ? WHERE key = ?`, owner, string(mine))
		if err := b.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.sends()
		if got := b.rows(); got != want || b.phone.Tries() > 0 {
			t.Errorf("by %s: %s behind %d tries, want %s", owner, got, b.phone.Tries(), want)
		}
	}
	two := newBench(t)
	two.say("one")
	two.say("two")
	two.exec(`UPDATE outbound SET state = 'sending', owner = '000000000006/x', peer = n, address = json_set(address, '$.peer', 'p' || n) WHERE key = ?`, string(mine))
	for _, want := range []string{"unknown1 unknown1", "unknown0 unknown0"} {
		if err := two.Wake(t.Context()); err != nil {
			t.Fatal(err)
		}
		two.sends()
		if got := strings.ReplaceAll(two.lines(`SELECT state || open FROM outbound WHERE key = ? LIMIT 9`, string(mine)), "\n", " "); got != want {
			t.Errorf("two at once: %s, want %s", got, want)
		}
		two.clock.now = two.clock.now.Add(2 * time.Minute)
	}
	b := newBench(t)
	if err := b.Open(t.Context()); err != nil || len(b.clock.run) > 0 {
		t.Errorf("with nothing to send: %v, %d run", err, len(b.clock.run))
	}
	b.say("hello")
	b.exec(`UPDATE outbound SET open = 0 WHERE key = ?`, string(mine))
	if err := b.Open(t.Context()); err != nil || len(b.clock.run) > 0 {
		t.Errorf("with nothing to send any more: %v, %d run", err, len(b.clock.run))
	}
	b.exec(`UPDATE outbound SET open = 1 WHERE key = ?`, string(mine))
	b.open(nil)
	if err := b.Open(t.Context()); err != nil || len(b.clock.run) > 0 {
		t.Errorf("without a channel: %v, %d run", err, len(b.clock.run))
	}
	if b.Dispatch(); len(b.clock.run) > 0 {
		t.Error("it sends without a channel")
	}
}

// TestBegins: a try begins only at the row that was looked at, and while it is due.
func TestBegins(t *testing.T) {
	far := now.Add(room.FarPause).UnixMilli()
	for _, tc := range []struct {
		set    string
		arg    any
		begins bool
	}{
		{"quote", "", true}, {"next", now.UnixMilli(), true}, {"next", far + 1, true}, {"next", now.UnixMilli() + 1, false}, {"next", far, false},
		{"state", "sent", false}, {"hold", "closed", false}, {"hold", "halted", true}, {"address", "elsewhere", false},
	} {
		b := newBench(t)
		b.say("hello")
		b.say("another")
		list, err := b.Messages(t.Context(), 9)
		if err != nil || len(list) != 2 || list[1].n != 1 {
			t.Fatal(list, err)
		}
		b.exec(`UPDATE outbound SET `+tc.set+` = ? WHERE key = ? AND n = 1`, tc.arg, string(mine))
		if err := b.sendRow(t.Context(), list[1]); (err == nil) != tc.begins || err != nil && !errors.Is(err, tidemark.ErrConflict) || b.phone.Tries() != map[bool]int{true: 1}[tc.begins] {
			t.Errorf("%s is %v: %v behind %d tries", tc.set, tc.arg, err, b.phone.Tries())
		}
		if got := b.lines(`SELECT state || tries FROM outbound WHERE n = 2 LIMIT 1`); got != "pending0" {
			t.Errorf("%s is %v: the other one is %s", tc.set, tc.arg, got)
		}
	}
	for _, state := range []string{Sending, Unknown} {
		for set, begins := range map[string]bool{"quote = ''": true, "state = 'sent'": false, "owner = '000000000008/z'": state == Unknown, "open = 0": state == Sending} {
			b := newBench(t)
			b.say("hello")
			b.exec(`UPDATE outbound SET state = ?, owner = '000000000006/z' WHERE key = ?`, state, string(mine))
			list, err := b.Messages(t.Context(), 9)
			if err != nil {
				t.Fatal(err)
			}
			b.exec(`UPDATE outbound SET `+set+` WHERE key = ?`, string(mine))
			if err := b.sendRow(t.Context(), list[0]); (err == nil) != begins {
				t.Errorf("%s, and %s: %v", state, set, err)
			}
		}
	}
}

// TestTryOfAnother: what became of a try is written only where the try is still the sender's own.
func TestTryOfAnother(t *testing.T) {
	for _, tc := range []struct{ name, set, row string }{
		{"a status was there before", `state = 'sent', open = 0`, "1 sent tries 1 by 000000000007/1"},
		{"another life has it", `owner = '000000000008/x'`, "1 sending open tries 1 by 000000000008/x"},
		{"a later life gave it up", `state = 'unknown'`, "1 failed tries 1 by 000000000007/1 error why"},
	} {
		b := newBench(t)
		b.phone.Fail = func(n int, _ tidemark.Outgoing) error {
			b.exec(`UPDATE outbound SET `+tc.set+` WHERE key = ?`, string(mine))
			return &tidemark.SendError{Class: tidemark.SendFailed, Text: "why"}
		}
		b.say("hello")
		b.Dispatch()
		b.sends()
		if got := b.rows(); got != tc.row || b.phone.Tries() != 1 {
			t.Errorf("%s: %s behind %d tries, want %s", tc.name, got, b.phone.Tries(), tc.row)
		}
	}
}

// TestSenderEnds: a later life, a store that fails and a courier that panics each end the sender, which lets go of its part.
func TestSenderEnds(t *testing.T) {
	b := newBench(t)
	b.say("hello")
	b.exec(`UPDATE lives SET n = 8`)
	b.Dispatch()
	b.sends()
	if got := b.rows(); got != "1 pending open tries 0" || b.Working() || b.due() != "out 10000 " || b.phone.Tries() > 0 {
		t.Errorf("behind a later life: %s, due %q, at work %v", got, b.due(), b.Working())
	}
	b = newBench(t)
	b.say("hello")
	b.store.part, b.store.err = "SET state = 'sending'", errDown
	b.Dispatch()
	b.sends()
	if got := b.rows(); got != "1 pending open tries 0" || b.Working() || b.due() != "out 60000 " || b.rang != 1 || len(b.clock.slept) > 0 {
		t.Errorf("a store that is down: %s, due %q, at work %v, rang %d times", got, b.due(), b.Working(), b.rang)
	}
	b = newBench(t)
	b.say("hello")
	b.store.part, b.store.err, b.store.times = "SET state = 'sending'", tidemark.ErrConflict, 1
	b.Dispatch()
	b.sends()
	if got := b.rows(); got != "1 sent tries 1 by 000000000007/2 id mid.1" {
		t.Errorf("a status was there: %s", got)
	}
	b = newBench(t)
	b.say("hello")
	b.store.part, b.store.err = "SET state = 'sent'", errDown
	b.Dispatch()
	b.sends()
	if got := b.rows(); got != "1 sending open tries 1 by 000000000007/1" || b.due() != "out 60000 " {
		t.Errorf("a store that is down behind a try: %s, due %q", got, b.due())
	}
	b = newBench(t)
	b.say("hello")
	b.exec(`UPDATE outbound SET next = ? WHERE key = ?`, now.Add(time.Hour).UnixMilli(), string(mine))
	b.exec(`UPDATE lives SET n = 8`)
	stmts, err := b.Lines(t.Context(), "log", []tidemark.Origin{{To: &bob}}, "to bob")
	if err == nil {
		err = b.DB.Tx(t.Context(), stmts)
	}
	b.Dispatch()
	b.sends()
	if err != nil || b.due() != "out 10000 " {
		t.Errorf("behind a later life, where another waits: due %q, %v", b.due(), err)
	}
	b = newBench(t)
	b.phone.Fail = func(int, tidemark.Outgoing) error { panic("odd") }
	b.say("hello")
	b.Dispatch()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("it did not panic")
			}
		}()
		b.sends()
	}()
	if b.Working() {
		t.Error("behind a panic somebody is at work")
	}
}

// TestOneSender: one sends at a time, and looks again where there is more, unless it failed.
func TestOneSender(t *testing.T) {
	b := newBench(t)
	for _, tc := range []struct{ more, failed, ended bool }{{false, false, true}, {true, false, false}, {false, true, true}, {true, true, true}} {
		b.sending, b.sendMore = true, tc.more
		if got := b.endSending(tc.failed); got != tc.ended || b.sending == tc.ended || b.sendMore {
			t.Errorf("more %v, failed %v: ended %v, at work %v, more %v", tc.more, tc.failed, got, b.sending, b.sendMore)
		}
	}
	b.sending = false
	b.Dispatch()
	b.Dispatch()
	if len(b.clock.run) != 1 || !b.sendMore {
		t.Errorf("%d send, there is more: %v", len(b.clock.run), b.sendMore)
	}
	b.sends()
	if b.Working() || b.sendMore {
		t.Errorf("at work %v, there is more: %v", b.Working(), b.sendMore)
	}
}

// TestSendLater: a short pause is slept, by one; a longer one is for the alarm, and no time is never.
func TestSendLater(t *testing.T) {
	b := newBench(t)
	gone, leave := context.WithCancel(t.Context())
	leave()
	for _, tc := range []struct {
		name string
		ctx  context.Context
		at   time.Time
		due  string
		run  int
		rang int
	}{
		{"never", t.Context(), time.Time{}, "", 0, 0},
		{"this life is over", gone, now.Add(time.Second), "", 0, 0},
		{"a long pause", t.Context(), now.Add(napMost + time.Millisecond), "out 20001 ", 0, 1},
		{"a short one", t.Context(), now.Add(napMost), "out 20000 ", 1, 2},
		{"beside it", t.Context(), now.Add(time.Second), "out 1000 ", 1, 3},
	} {
		if b.sendLater(tc.ctx, tc.at); b.due() != tc.due || len(b.clock.run) != tc.run || b.rang != tc.rang {
			t.Errorf("%s: due %q, %d sleep, rang %d times", tc.name, b.due(), len(b.clock.run), b.rang)
		}
	}
	b.sends()
	if !slices.Equal(b.clock.slept, []time.Duration{napMost}) || b.napping.Load() {
		t.Errorf("slept %v, sleeps still: %v", b.clock.slept, b.napping.Load())
	}
	b.sendLater(t.Context(), now) // is past by now
	b.sends()
	if !slices.Equal(b.clock.slept, []time.Duration{napMost, 0}) {
		t.Errorf("slept %v", b.clock.slept)
	}
	b.store.part, b.store.err = "INSERT INTO due", errDown
	if b.sendLater(t.Context(), now.Add(time.Hour)); len(b.warned) != 1 {
		t.Errorf("warned of %q", b.warned)
	}
}

// TestWakes: without a channel what waits is looked at less and less often, what waits for the person not at all.
func TestWakes(t *testing.T) {
	for _, tc := range []struct {
		name string
		set  string
		ago  time.Duration
		want string
	}{
		{"just now", "", 0, "out 600000 unset"}, {"for a while", "", 11 * time.Minute, "out 660000 unset"}, {"for long", "", 30 * 24 * time.Hour, "out 86400000 unset"},
		{"closed", "hold = 'closed'", time.Hour, ""}, {"sent", "state = 'sent', open = 0", time.Hour, ""}, {"halted", "hold = 'halted'", time.Hour, "out 3600000 unset"},
	} {
		b := newBench(t)
		b.say("hello")
		b.exec(`UPDATE outbound SET at = ? WHERE key = ?`, now.Add(-tc.ago).UnixMilli(), string(mine))
		if tc.set != "" {
			b.exec(`UPDATE outbound SET `+tc.set+` WHERE key = ?`, string(mine))
		}
		b.exec(`INSERT INTO outbound(key, state, open, hold, peer, address, text, at) VALUES(?1, 'sent', 0, '', 'p', '{}', '', 2), (?1, 'pending', 1, 'closed', 'p', '{}', '', 2)`, string(mine))
		b.open(nil)
		if err := b.Wake(t.Context()); err != nil || b.due() != tc.want || len(b.clock.run) > 0 {
			t.Errorf("%s: due %q, %v, want %q", tc.name, b.due(), err, tc.want)
		}
	}
	b := newBench(t)
	b.say("hello")
	if err := b.Wake(t.Context()); err != nil || b.due() != "out 60000 " || len(b.clock.run) != 1 || b.Wakes() != room.DueOutbound {
		t.Errorf("with a channel: due %q, %d send, %v", b.due(), len(b.clock.run), err)
	}
	b.sends()
	if b.due() != "" || len(b.phone.Texts()) != 1 {
		t.Errorf("due %q, people read %q", b.due(), b.phone.Texts())
	}
}

// TestSendsLate: what is written while the sender looks for the last time is sent.
func TestSendsLate(t *testing.T) {
	b := newBench(t)
	b.store.looks, b.store.behind = "SELECT n, state", func() {
		b.say("late")
		b.Dispatch()
	}
	b.Dispatch()
	b.sends()
	if got := b.rows(); got != "1 sent tries 1 by 000000000007/1 id mid.1" || b.Working() {
		t.Errorf("%s, at work %v", got, b.Working())
	}
}

// TestSendsInOrder: who is known reads in order, from whatever address they wrote, and so does who reads at an address.
func TestSendsInOrder(t *testing.T) {
	other := tidemark.Address{Platform: "fake", Account: "us", Peer: "ann.2"}
	for name, second := range map[string]tidemark.Origin{"by another address": {Peer: "ann", To: &other}, "by the address": {To: &ann}} {
		b := newBench(t)
		b.phone.Fail = fails(&tidemark.SendError{Class: tidemark.SendAgain, RetryAfter: time.Hour})
		for i, o := range []tidemark.Origin{{Peer: "ann", To: &ann}, second, {Peer: "bob", To: &bob}} {
			stmts, err := b.Lines(t.Context(), "log", []tidemark.Origin{o}, fmt.Sprint("text ", i))
			if err == nil {
				err = b.DB.Tx(t.Context(), stmts)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		b.Dispatch()
		b.sends()
		if got := b.phone.Texts(); !slices.Equal(got, []string{"text 2"}) {
			t.Errorf("%s: people read %q while the first waits", name, got)
		}
	}
}

// TestClosedByStatus: a status that says when a window was closed closes the message, unless they wrote since.
func TestClosedByStatus(t *testing.T) {
	closed := &tidemark.SendError{Class: tidemark.SendClosed, Text: "window"}
	for _, tc := range []struct {
		name string
		at   time.Time
		e    *tidemark.SendError
		want string
	}{
		{"when nobody says", time.Time{}, closed, "pending1closed"}, {"before they wrote", now.Add(time.Minute), closed, "pending1"}, {"behind that", now.Add(time.Hour), closed, "pending1closed"},
		{"for another reason", now.Add(time.Minute), &tidemark.SendError{Class: tidemark.SendFailed, Text: "no"}, "failed0"},
	} {
		b := newBench(t)
		b.say("hello")
		b.exec(`UPDATE outbound SET state = 'sent', open = 0, id = 'own', tries = 1 WHERE key = ?`, string(mine))
		b.exec(`INSERT INTO inputs(key, id, at, origin) VALUES(?, 'x', ?, ?)`, string(mine), now.Add(2*time.Minute).UnixMilli(), room.JSON(tidemark.Origin{To: &ann}))
		if err := b.Delivered(t.Context(), tidemark.Delivery{ID: "own", Status: tidemark.StatusFailed, At: tc.at, Error: tc.e}); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if got := b.lines(`SELECT state || open || hold FROM outbound WHERE key = ? LIMIT 9`, string(mine)); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}
