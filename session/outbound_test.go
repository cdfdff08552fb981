package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room/replay"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

var (
	ann   = tidemark.Address{Platform: "fake", Account: "us", Peer: "ann"}
	bob   = tidemark.Address{Platform: "fake", Account: "us", Peer: "bob"}
	group = tidemark.Address{Platform: "fake", Account: "us", Peer: "club", Group: true}
)

// wrote is an input that came over a channel.
func wrote(by tidemark.Address, id, text string) session.Input {
	return session.Input{ID: id, Message: tidemark.NewText(tidemark.User, text),
		Origin: tidemark.Origin{From: tidemark.FromPerson, Channel: by.Platform, Peer: by.Peer, Message: "their." + id, To: &by}}
}

// ordered is a command that came over a channel.
func ordered(by tidemark.Address, id, line string) session.Input {
	in, err := session.Command(line)
	if err != nil {
		panic(err)
	}
	in.ID, in.Origin = id, wrote(by, id, "").Origin
	return in
}

// newPhone is a harness whose session sends over a courier.
func newPhone(t *testing.T, c *tidemarktest.Courier) (*harness, *clock) {
	t.Helper()
	h, clock := newTimed(t, small, noon)
	return onPhone(h, clock, c), clock
}

// onPhone has the session of a harness send over a courier.
func onPhone(h *harness, clock *clock, c *tidemarktest.Courier) *harness {
	clock.waits = 20 * time.Second // people are shown that an answer is being written as long as it is
	h.idle()
	h.stop()
	h.courier, h.key = c, "agent:main:fake:dm:ann"
	h.open()
	return h
}

// ledger returns the rows of the ledger, oldest first, as "state hold status: text".
func (h *harness) ledger() []string {
	h.t.Helper()
	rows, err := h.Outbound(h.t.Context(), 1000)
	if err != nil {
		h.t.Fatal(err)
	}
	var out []string
	for _, r := range slices.Backward(rows) {
		out = append(out, strings.Join(strings.Fields(r.State+" "+r.Hold+" "+r.Status), " ")+": "+r.Text)
	}
	return out
}

func (h *harness) wantLedger(want ...string) {
	h.t.Helper()
	if got := h.ledger(); !slices.Equal(got, want) {
		h.t.Errorf("ledger %q, want %q", got, want)
	}
}

func wantTexts(t *testing.T, c *tidemarktest.Courier, want ...string) {
	t.Helper()
	if got := c.Texts(); !slices.Equal(got, want) {
		t.Errorf("people read %q, want %q", got, want)
	}
}

func failing(class tidemark.SendClass, tries ...int) func(int, tidemark.Outgoing) error {
	return func(n int, _ tidemark.Outgoing) error {
		if len(tries) > 0 && !slices.Contains(tries, n) {
			return nil
		}
		return &tidemark.SendError{Class: class, Code: 131, Text: "because"}
	}
}

// TestAnswersAreSent: a reply goes to whoever wrote, once, part by part, also when the input comes again.
func TestAnswersAreSent(t *testing.T) {
	c := &tidemarktest.Courier{Most: 3}
	h, _ := newPhone(t, c)
	for range 3 {
		h.finish(wrote(ann, "in1", "hello"))
		h.idle()
	}
	wantTexts(t, c, "ok", "1") // "ok 1" in threes
	h.wantLedger("sent: ok", "sent: 1")
	if got := c.Arrived()[1]; got.Ref != "agent:main:fake:dm:ann/2" || got.To != ann || got.Quote != "" {
		t.Errorf("sent %+v", got)
	}
	if key, ok := tidemark.RefKey(c.Arrived()[1].Ref); !ok || key != h.key {
		t.Errorf("the ref is of %q, %v", key, ok)
	}
	if !h.due().IsZero() && h.due().Before(h.rt.Now().Add(time.Minute)) {
		t.Errorf("due at %s with nothing to send", h.due())
	}
	h.say("from the page") // has nobody to be sent to
	h.idle()
	h.wantLedger("sent: ok", "sent: 1")
}

// TestToolsAndGroups: what is said before tools is sent too, in order; in a group the answer quotes.
func TestToolsAndGroups(t *testing.T) {
	c := &tidemarktest.Courier{}
	h, _ := newPhone(t, c)
	h.model.set(func(n int, req tidemark.Request) (tidemark.Message, error) {
		if n > 1 {
			return tidemark.Message{}, nil
		}
		return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.Text("Let me look."), tidemark.ToolUse("a", "look", nil)}}, nil
	})
	h.post(wrote(group, "in1", "hello"))
	h.idle()
	wantTexts(t, c, "Let me look.", "ok 2")
	for _, a := range c.Arrived() {
		if a.Quote != "their.in1" {
			t.Errorf("%q quotes %q", a.Text, a.Quote)
		}
	}
	if got := c.Shown(); len(got) == 0 || got[0] != "their.in1" {
		t.Errorf("shown %q", got)
	}
}

// TestSendFailures holds what each class of failure comes to.
func TestSendFailures(t *testing.T) {
	for _, row := range []struct {
		name   string
		fail   func(int, tidemark.Outgoing) error
		then   func(*harness, *clock)
		ledger []string
		texts  []string
		tries  int
		events int
	}{
		{name: "again, twice", fail: failing(tidemark.SendAgain, 1, 2), ledger: []string{"sent: ok 1"}, texts: []string{"ok 1"}, tries: 3},
		{name: "again, for good", fail: failing(tidemark.SendAgain), then: wakeOften, ledger: []string{"failed: ok 1"}, tries: 20, events: 1},
		{name: "unknown, not arrived", fail: failing(tidemark.SendUnknown, 1), then: wakeOften, ledger: []string{"unknown: ok 1"}, tries: 1, events: 1},
		{name: "unknown of no class", fail: func(int, tidemark.Outgoing) error { return errors.New("odd") }, then: wakeOften,
			ledger: []string{"unknown: ok 1"}, texts: []string{"ok 1"}, tries: 1, events: 1},
		{name: "unknown holds up the next for a while", fail: failing(tidemark.SendUnknown, 1), then: func(h *harness, _ *clock) {
			h.post(wrote(ann, "in2", "more"))
			h.idle()
		}, ledger: []string{"unknown: ok 1", "pending: ok 2"}, tries: 1},
		{name: "unknown does not hold it up for long", fail: failing(tidemark.SendUnknown, 1), then: func(h *harness, c *clock) {
			h.post(wrote(ann, "in2", "more"))
			h.idle()
			wakeOften(h, c)
		}, ledger: []string{"unknown: ok 1", "sent: ok 2"}, texts: []string{"ok 2"}, tries: 2, events: 1},
		{name: "failed", fail: failing(tidemark.SendFailed, 1), then: func(h *harness, _ *clock) {
			h.post(wrote(ann, "in2", "more"))
			h.idle()
		}, ledger: []string{"failed: ok 1", "sent: ok 2"}, texts: []string{"ok 2"}, tries: 2, events: 1},
		{name: "closed until they write", fail: failing(tidemark.SendClosed, 1), then: func(h *harness, c *clock) {
			wakeOften(h, c)
			h.wantLedger("pending closed: ok 1")
			h.post(wrote(ann, "in2", "more"))
			h.idle()
		}, ledger: []string{"sent: ok 1", "sent: ok 2"}, texts: []string{"ok 1", "ok 2"}, tries: 3},
		{name: "closed, and someone else writes", fail: failing(tidemark.SendClosed, 1), then: func(h *harness, _ *clock) {
			h.post(wrote(bob, "in2", "more"))
			h.idle()
		}, ledger: []string{"pending closed: ok 1", "sent: ok 2"}, texts: []string{"ok 2"}, tries: 2},
		{name: "halted", fail: failing(tidemark.SendHalted, 1, 2, 3), then: wakeOften, ledger: []string{"sent: ok 1"}, texts: []string{"ok 1"}, tries: 4, events: 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := &tidemarktest.Courier{Fail: row.fail}
			h, clock := newPhone(t, c)
			h.post(wrote(ann, "in1", "hello"))
			h.idle()
			if row.then != nil {
				row.then(h, clock)
			}
			h.wantLedger(row.ledger...)
			wantTexts(t, c, row.texts...)
			if c.Tries() != row.tries {
				t.Errorf("%d tries, want %d", c.Tries(), row.tries)
			}
			if got := h.events("delivery"); len(got) != row.events {
				t.Errorf("events %q, want %d", got, row.events)
			}
		})
	}
}

// wakeOften lets a day pass, alarm by alarm.
func wakeOften(h *harness, c *clock) {
	h.t.Helper()
	end := c.Now().Add(24 * time.Hour)
	for at := h.due(); !at.IsZero() && at.Before(end); at = h.due() {
		if at.After(c.Now()) {
			c.set(at)
		}
		h.wake()
	}
}

// TestRetryAfter: a platform's own pause is kept to.
func TestRetryAfter(t *testing.T) {
	c := &tidemarktest.Courier{}
	c.Fail = func(n int, _ tidemark.Outgoing) error {
		if n > 1 {
			return nil
		}
		return &tidemark.SendError{Class: tidemark.SendAgain, RetryAfter: time.Hour}
	}
	h, clock := newPhone(t, c)
	h.post(wrote(ann, "in1", "hello"))
	h.idle()
	clock.advance(59 * time.Minute)
	h.wake()
	wantTexts(t, c)
	clock.advance(time.Minute)
	h.wake()
	wantTexts(t, c, "ok 1")
}

// TestDelivered: statuses in any order, twice, late, and of tries that came to nothing.
func TestDelivered(t *testing.T) {
	status := func(id, word string) tidemark.Delivery { return tidemark.Delivery{ID: id, Status: word} }
	byRef := func(id, word string) tidemark.Delivery {
		return tidemark.Delivery{Ref: "agent:main:fake:dm:ann/1", ID: id, Status: word}
	}
	refused := func(id string, class tidemark.SendClass) tidemark.Delivery {
		return tidemark.Delivery{Ref: "agent:main:fake:dm:ann/1", ID: id, Status: tidemark.StatusFailed, Error: &tidemark.SendError{Class: class, Code: 131047, Text: "window"}}
	}
	for _, row := range []struct {
		name   string
		fail   func(int, tidemark.Outgoing) error
		told   []tidemark.Delivery
		ledger string
		texts  int
		events int
	}{
		{name: "in order", told: []tidemark.Delivery{byRef("mid.1", "sent"), byRef("mid.1", "delivered"), byRef("mid.1", "read")}, ledger: "sent read: ok 1", texts: 1},
		{name: "backwards, twice", told: []tidemark.Delivery{byRef("mid.1", "read"), byRef("mid.1", "read"), byRef("mid.1", "sent"), byRef("mid.1", "delivered")}, ledger: "sent read: ok 1", texts: 1},
		{name: "by id", told: []tidemark.Delivery{status("mid.1", "delivered")}, ledger: "sent delivered: ok 1", texts: 1},
		{name: "of nothing known", told: []tidemark.Delivery{status("mid.9", "delivered"), {Ref: "agent:main:main/7", ID: "x", Status: "read"}, {Ref: "agent:main:fake:dm:ann/x", Status: "read"}, {}}, ledger: "sent: ok 1", texts: 1},
		{name: "unknown resolved", fail: failing(tidemark.SendUnknown, 1), told: []tidemark.Delivery{byRef("mid.7", "sent")}, ledger: "sent sent: ok 1"},
		{name: "unknown resolved as failed", fail: failing(tidemark.SendUnknown, 1), told: []tidemark.Delivery{refused("mid.7", tidemark.SendFailed)}, ledger: "failed: ok 1", events: 1},
		{name: "failed twice", told: []tidemark.Delivery{refused("mid.1", tidemark.SendFailed), refused("mid.1", tidemark.SendFailed)}, ledger: "failed: ok 1", texts: 1, events: 1},
		{name: "failed, then sent, which came late", told: []tidemark.Delivery{refused("mid.1", tidemark.SendFailed), byRef("mid.1", "sent")}, ledger: "failed: ok 1", texts: 1, events: 1},
		{name: "failed behind delivered", told: []tidemark.Delivery{byRef("mid.1", "delivered"), refused("mid.1", tidemark.SendClosed)}, ledger: "sent delivered: ok 1", texts: 1},
		{name: "closed", told: []tidemark.Delivery{refused("mid.1", tidemark.SendClosed)}, ledger: "pending closed: ok 1", texts: 1},
		{name: "closed, then sent, which came late", told: []tidemark.Delivery{refused("mid.1", tidemark.SendClosed), byRef("mid.1", "sent"), byRef("mid.1", "sent")}, ledger: "pending closed: ok 1", texts: 1},
		{name: "no reason", told: []tidemark.Delivery{{ID: "mid.1", Status: "failed"}}, ledger: "failed: ok 1", texts: 1, events: 1},
		{name: "another word", told: []tidemark.Delivery{byRef("mid.1", "warning")}, ledger: "sent: ok 1", texts: 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := &tidemarktest.Courier{Fail: row.fail}
			h, _ := newPhone(t, c)
			h.post(wrote(ann, "in1", "hello"))
			h.idle()
			for _, d := range row.told {
				if err := h.Delivered(t.Context(), d); err != nil {
					t.Error(err)
				}
				h.idle()
			}
			h.wantLedger(row.ledger)
			if n := len(c.Texts()); n != row.texts {
				t.Errorf("%d messages arrived, want %d", n, row.texts)
			}
			if got := h.events("delivery"); len(got) != row.events {
				t.Errorf("events %q, want %d", got, row.events)
			}
		})
	}
}

// TestClosedByStatus: a message that a status says was refused goes out again when the person writes, and
// the statuses of the first try, which come late and again, are not of the second.
func TestClosedByStatus(t *testing.T) {
	c := &tidemarktest.Courier{}
	h, _ := newPhone(t, c)
	h.post(wrote(ann, "in1", "hello"))
	h.idle()
	closed := tidemark.Delivery{Ref: c.Arrived()[0].Ref, ID: "mid.1", Status: tidemark.StatusFailed, Error: &tidemark.SendError{Class: tidemark.SendClosed, Code: 131047}}
	for range 2 {
		if err := h.Delivered(t.Context(), closed); err != nil {
			t.Fatal(err)
		}
	}
	h.post(wrote(ann, "in2", "I am back"))
	h.idle()
	wantTexts(t, c, "ok 1", "ok 1", "ok 2")
	if err := h.Delivered(t.Context(), closed); err != nil {
		t.Fatal(err)
	}
	h.idle()
	h.wantLedger("sent: ok 1", "sent: ok 2")
}

// TestSay: a line beside the conversation is sent once an id, and no model reads it.
func TestSay(t *testing.T) {
	c := &tidemarktest.Courier{}
	h, _ := newPhone(t, c)
	for range 3 {
		if err := h.Say(t.Context(), "pairing/1", bob, "Your code is AB12CD34."); err != nil {
			t.Fatal(err)
		}
	}
	h.idle()
	wantTexts(t, c, "Your code is AB12CD34.")
	if got := h.originals(); len(got) != 0 {
		t.Errorf("the conversation holds %q", got)
	}
}

// TestFailureIsTold: who waits for an answer reads why there is none.
func TestFailureIsTold(t *testing.T) {
	c := &tidemarktest.Courier{}
	h, _ := newPhone(t, c)
	h.model.set(func(int, tidemark.Request) (tidemark.Message, error) {
		return tidemark.Message{}, &tidemark.APIError{Class: tidemark.ClassAuth, Message: "no key"}
	})
	h.post(wrote(ann, "in1", "hello"))
	h.idle()
	if got := c.Texts(); len(got) != 1 || !strings.Contains(got[0], "refused the key") {
		t.Errorf("people read %q", got)
	}
}

// TestLossIsTold: who wrote over a channel is told there of pictures for which the window has no room, and of a block that
// the model's API refused.
func TestLossIsTold(t *testing.T) {
	picture := block(t, `{"type":"image","source":{"type":"url","url":"https://x.test/a.png"}}`)
	for _, row := range []struct {
		name    string
		content []tidemark.Block
		want    string
	}{
		{"an album", slices.Repeat([]tidemark.Block{picture}, 8), "What came last is larger than the model's window: its oldest pictures and files (6) are left out. All of it stays in the log."},
		{"an album and a book", append(slices.Repeat([]tidemark.Block{picture}, 8), tidemark.Text(strings.Repeat("words of all kinds ", 4000))), "(6) are left out, and 71,600 of its 76,000 bytes are left out of the middle. All"},
		{"a refused block", []tidemark.Block{tidemark.Text("so?"), block(t, `{"type":"odd","a":"§"}`)}, "The model's API refused a part of entry "},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := &tidemarktest.Courier{}
			h, _ := newPhone(t, c)
			h.model.set(refuser{sign: "§"}.play)
			in := wrote(ann, "in1", "")
			in.Message.Content = row.content
			h.finish(in)
			h.idle()
			if got := c.Texts(); len(got) != 2 || !strings.Contains(strings.Join(got, "\n"), row.want) {
				t.Errorf("people read %q; events %q", got, h.events("compaction"))
			}
		})
	}
}

// TestWithoutCourier: the answer stays in the log, and the log says so once.
func TestWithoutCourier(t *testing.T) {
	h := newHarness(t, small)
	h.post(wrote(ann, "in1", "hello"))
	h.post(wrote(ann, "in2", "hello again"))
	if got := h.events("error"); len(got) != 1 || !strings.Contains(got[0], "no channel that sends over fake") {
		t.Errorf("events %q", got)
	}
	h.wantLedger()
	if err := h.Delivered(t.Context(), tidemark.Delivery{ID: "x", Status: "read"}); err != nil {
		t.Error(err)
	}
}

// TestPendingOutlivesReset: a reset loses nothing that is still to be sent, and tells who asked.
func TestPendingOutlivesReset(t *testing.T) {
	c := &tidemarktest.Courier{Fail: failing(tidemark.SendClosed, 1)}
	h, _ := newPhone(t, c)
	h.post(wrote(ann, "in1", "hello"))
	h.idle()
	h.post(session.Input{ID: "reset", Kind: session.InputReset})
	h.idle()
	h.wantLedger("pending closed: ok 1")
	h.stop()
	h.open()
	h.post(ordered(ann, "new", "/new"))
	h.idle()
	wantTexts(t, c, "ok 1", "New conversation (new). The 0 messages of the last one are archived.")
}

// TestImportSendsNothing: what was said elsewhere goes to nobody.
func TestImportSendsNothing(t *testing.T) {
	c := &tidemarktest.Courier{}
	h, _ := newPhone(t, c)
	_, err := h.Import(t.Context(), func(yield func(replay.Message, error) bool) {
		for i := range 6 {
			role := []tidemark.Role{tidemark.User, tidemark.Assistant}[i%2]
			if !yield(replay.Message{Message: tidemark.NewText(role, fmt.Sprint("old ", i))}, nil) {
				return
			}
		}
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	h.post(wrote(ann, "in1", "hello"))
	h.idle()
	wantTexts(t, c, "ok 1")
}

// TestTwoLives: the sender of a life that should be gone begins nothing, but may end what it began.
func TestTwoLives(t *testing.T) {
	c := &tidemarktest.Courier{Hold: make(chan struct{})}
	h, _ := newPhone(t, c)
	old := h.Session
	for _, id := range []string{"in1", "in2"} {
		h.post(wrote(ann, id, "hello")) // the first is held at the courier
	}
	for c.Tries() == 0 {
		<-c.Changed()
	}
	h.open()
	close(c.Hold)
	h.idle()
	wakeOften(h, h.rt.(*clock))
	wantTexts(t, c, "ok 1", "ok 2")
	h.wantLedger("sent: ok 1", "sent: ok 2")
	if err := old.Wake(context.Background()); err != nil {
		t.Error(err)
	}
	h.idle()
	wantTexts(t, c, "ok 1", "ok 2")
}

// TestLedgerIsMadeLate: a conversation that nobody holds over a channel has no tables for it.
func TestLedgerIsMadeLate(t *testing.T) {
	const tables = `SELECT name FROM sqlite_master WHERE name IN ('outbound', 'heard') ORDER BY name LIMIT 9`
	h, clock := newTimedAlone(t, small, noon)
	h = onPhone(h, clock, &tidemarktest.Courier{})
	h.say("from the page")
	h.stop()
	h.open()
	h.idle()
	if got := column(t, h.db, tables); len(got) != 0 {
		t.Errorf("there are %q", got)
	}
	h.post(wrote(ann, "in1", "hello"))
	h.idle()
	if got := column(t, h.db, tables); len(got) != 2 {
		t.Errorf("there are %q", got)
	}
}

// TestLedgerIsIndexed: what is asked with every message costs the same however many there were.
func TestLedgerIsIndexed(t *testing.T) {
	h, _ := newPhone(t, &tidemarktest.Courier{})
	h.post(wrote(ann, "in1", "hello"))
	h.idle()
	for _, row := range []struct{ sql, index string }{
		{`SELECT n FROM outbound WHERE key = 'k' AND open = 1 ORDER BY n LIMIT 500`, "outbound_open"},
		{`SELECT 1 FROM outbound WHERE key = 'k' AND open = 1 AND hold <> 'closed'`, "outbound_open"},
		{`SELECT text FROM outbound WHERE key = 'k' AND id = 'i' AND id <> '' LIMIT 1`, "outbound_id"},
	} {
		rows, err := h.db.Query(t.Context(), `EXPLAIN QUERY PLAN `+row.sql)
		if err != nil {
			t.Fatal(err)
		}
		if got := rows[0].Text(3); !strings.Contains(got, row.index) {
			t.Errorf("%s: %s, want %s", row.sql, got, row.index)
		}
	}
}
