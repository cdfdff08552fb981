package session_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/room/outbound"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// phoneTalk is a conversation over a channel: answers in parts, tools, questions, a reset.
func phoneTalk() []session.Input {
	return []session.Input{wrote(ann, "in0", "message 0"), wrote(group, "in1", "message 2"), ordered(ann, "status", "/status"),
		wrote(ann, "in2", "message 3"), ordered(ann, "new", "/new"), wrote(ann, "in3", "message 4")}
}

// wantTold are the texts that the talk must bring to people, by who reads them; a status is told by its first line.
var wantTold = map[string][]string{
	"ann":  {"answer to message 0", "Model: test", "answer to message 3", "New conversation (new).", "answer to message 4"},
	"club": {"Let me look.", "answer to message 2"},
}

// phoneModel answers by what it is asked, so that an answer is the same in every life.
func phoneModel(_ int, req tidemark.Request) (tidemark.Message, error) {
	if asksSummary(req) {
		return tidemark.Message{}, nil
	}
	said := func(blocks ...tidemark.Block) (tidemark.Message, error) {
		return tidemark.Message{Role: tidemark.Assistant, Content: blocks}, nil
	}
	last := req.Messages[len(req.Messages)-1]
	asked := last.PlainText()
	if len(last.Results()) > 0 {
		asked = "message 2"
	} else if strings.Contains(asked, "message 2") {
		return said(tidemark.Text("Let me look."), tidemark.ToolUse("look", "look", nil))
	}
	return said(tidemark.Text("answer to " + asked))
}

// TestKillWhileSending kills the process before and after each write of the talk, and holds that each
// message is sent at most once, that one which may not have arrived is known as such, and that all others
// arrive, in order.
func TestKillWhileSending(t *testing.T) {
	counter := &mortal{left: 1 << 30, dead: make(chan struct{})}
	playTalk(t, counter, &tidemarktest.Courier{})
	total := counter.writes
	if total < 30 {
		t.Fatalf("the talk makes only %d writes", total)
	}
	step := killStep(5)
	unknown := 0
	for n := 1; n <= total; n += step {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d after=%v", n, after), func(t *testing.T) {
				unknown += playTalk(t, &mortal{left: n, after: after, dead: make(chan struct{})}, &tidemarktest.Courier{})
			})
		}
	}
	if step == 1 && unknown == 0 {
		t.Error("no kill left a message unknown: none came between a send and its record")
	}
}

// playTalk plays the talk on a database that dies, and again on one that does not; it returns how many
// messages are not known to have arrived.
func playTalk(t *testing.T, m *mortal, c *tidemarktest.Courier) (unknown int) {
	h, time := newPhone(t, c)
	h.idle()
	h.stop()
	h.model.set(phoneModel)
	real := h.db
	m.DB = real
	h.db, h.key = m, "agent:main:fake:dm:doomed"
	time.diesWith(m.dead) // or what is tried again meanwhile would take it months on, and the ledger forgets after one
	h.playTalkUntilDeath(m)
	h.stop()
	time.diesWith(nil)
	h.db = real
	h.open()
	for _, in := range phoneTalk() {
		if got := h.finish(in); strings.HasPrefix(got, "error") {
			t.Fatalf("input %s in the next life: %s", in.ID, got)
		}
		h.idle()
	}
	wakeOften(h, time)
	return h.checkTold(c)
}

func (h *harness) playTalkUntilDeath(m *mortal) {
	life, stop := context.WithCancel(context.Background())
	h.stop = stop
	h.t.Cleanup(stop)
	s, err := session.Open(life, session.Config{Key: h.key, DB: m, Blobs: h.blobs, Provider: h.model, Agent: h.agent, Runtime: h.rt, Rooms: []room.Maker{search.Make, outbound.Make(h.courier)},
		Settings: session.Settings{Model: "test", Window: small.Window, Reserve: small.Reserve, Keep: small.Keep}})
	if err != nil {
		return // killed while it opened
	}
	for _, in := range phoneTalk() {
		sub, err := s.Subscribe()
		if err != nil {
			h.t.Fatal(err)
		}
		_, err = s.Post(h.t.Context(), in)
		for ended := err != nil; !ended; {
			select {
			case <-sub.Ready:
				for n, ok := sub.Next(); ok && !ended; n, ok = sub.Next() {
					ended = (n.Type == session.NoticeDone || n.Type == session.NoticeError) && slices.Contains(n.Inputs, in.ID)
				}
			case <-m.dead:
				ended = true
			}
		}
		sub.Close()
		if err != nil {
			return
		}
	}
	sent := make(chan struct{}) // what is pending is sent, or the process is dead before
	go func() {
		defer close(sent)
		_ = h.rt.(*clock).Wait(life)
	}()
	select {
	case <-sent:
	case <-m.dead:
	}
}

// checkTold holds the law of the ledger against what people have.
func (h *harness) checkTold(c *tidemarktest.Courier) (unknown int) {
	h.t.Helper()
	refs := map[string]int{}
	for _, a := range c.Arrived() {
		if refs[a.Ref]++; refs[a.Ref] > 1 {
			h.t.Errorf("%q was sent %d times", a.Text, refs[a.Ref])
		}
	}
	rows, err := h.Outbound(h.t.Context(), 1000)
	if err != nil {
		h.t.Fatal(err)
	}
	told := map[string][]string{}
	for _, r := range slices.Backward(rows) {
		told[r.To.Peer] = append(told[r.To.Peer], r.Text)
		switch {
		case r.State == outbound.Unknown:
			unknown++
		case r.State != outbound.Sent || refs[r.Ref] != 1:
			h.t.Errorf("%s arrived %d times: %+v", r.Ref, refs[r.Ref], r)
		}
	}
	for who, want := range wantTold {
		if !slices.EqualFunc(told[who], want, strings.HasPrefix) {
			h.t.Errorf("the ledger tells %s %q, want %q", who, told[who], want)
		}
	}
	h.inOrder(c)
	if got := len(h.events("delivery")); got > unknown {
		h.t.Errorf("%d events of delivery for %d unknown messages", got, unknown)
	}
	if unknown > 1 {
		h.t.Errorf("%d messages are unknown after one death", unknown)
	}
	return unknown
}

// inOrder holds that each person reads in the order of the ledger.
func (h *harness) inOrder(c *tidemarktest.Courier) {
	h.t.Helper()
	at := map[string]int{}
	for _, a := range c.Arrived() {
		want := wantTold[a.To.Peer]
		i := slices.IndexFunc(want, func(w string) bool { return strings.HasPrefix(a.Text, w) })
		if i < at[a.To.Peer] {
			h.t.Errorf("%s reads %q behind %q", a.To.Peer, a.Text, want[at[a.To.Peer]])
		}
		at[a.To.Peer] = i
	}
}
