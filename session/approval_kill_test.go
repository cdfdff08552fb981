package session_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

// TestKillApproval kills the process before and after each write of a turn whose call waits for the owner, and of their
// answer. The next life asks under the same code if it was told, runs the call at most once, and never without the answer.
func TestKillApproval(t *testing.T) {
	const least = 12 // writes that there are
	step, died := killStep(3), true
	for n := 1; died || n <= least; n += step {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d after=%v", n, after), func(t *testing.T) { died = killAsked(t, n, after) })
		}
	}
}

// killAsked reports whether the process died.
func killAsked(t *testing.T, n int, after bool) (died bool) {
	h, _, b := newAsking(t, "agent:main:main", nil)
	h.idle()
	h.stop()
	whole := h.db
	doomed := &mortal{DB: whole, left: n, after: after, dead: make(chan struct{})}
	h.db = doomed
	in := byOwner("go")
	in.ID = "asked"
	told := ""
	if _, err := h.tryOpen(); err == nil {
		told = h.askUntilDead(in, doomed.dead)
	}
	h.stop()
	h.idle()
	h.db = whole
	ranBefore := writes(b)
	h.open()
	if _, err := h.Post(t.Context(), in); err != nil { // as a client that had no answer
		t.Fatal(err)
	}
	if again := h.answerOnce(told); told != "" && again != "" && again != told {
		t.Errorf("asked under %s, and then under %s", told, again)
	}
	e, failure, ok, err := h.Reply(t.Context(), "asked")
	if err != nil || !ok || failure != "" {
		t.Fatalf("the turn ended: %v, %q, %v", ok, failure, err)
	}
	m, err := e.Message()
	if err != nil {
		t.Fatal(err)
	}
	ran, text := writes(b), m.PlainText()
	if slices.ContainsFunc(b.has(), func(s string) bool { return strings.HasPrefix(s, "files__rm") }) || !strings.Contains(text, denied) {
		t.Errorf("a call that is denied ran %q, or its model was told %q", b.has(), text)
	}
	switch {
	case ran > 1:
		t.Errorf("the call ran %d times", ran)
	case strings.Contains(text, "c2false done: files__write") != (ran == 1 && !strings.Contains(text, "c2true interrupted, may have run")):
		t.Errorf("it ran %d times (%d before the kill), and the model was told %q", ran, ranBefore, text)
	}
	if list, err := h.Approvals(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%+v waits, %v", list, err)
	}
	h.sent()
	select {
	case <-doomed.dead:
		return true
	default:
		return false
	}
}

// askUntilDead posts a message and says yes to what it makes wait, until the turn or the process ends; it returns the code.
func (h *harness) askUntilDead(in session.Input, dead <-chan struct{}) (code string) {
	h.t.Helper()
	sub, err := h.Subscribe()
	if err != nil {
		h.t.Fatal(err)
	}
	defer sub.Close()
	if _, err := h.Post(h.t.Context(), in); err != nil {
		return ""
	}
	for {
		select {
		case <-dead:
			return code
		case <-sub.Ready:
		}
		for n, ok := sub.Next(); ok; n, ok = sub.Next() {
			switch {
			case n.Type == session.NoticeDone || n.Type == session.NoticeError:
				return code
			case n.Type == session.NoticeApproval && len(n.Approvals) > 0:
				code = n.Approvals[0].Code
				if _, err := h.Post(h.t.Context(), yesTo(code)); err != nil {
					return code
				}
			}
		}
	}
}

func yesTo(code string) session.Input {
	return session.Input{ID: "yes", Message: tidemark.NewText(tidemark.User, "yes "+code), Origin: tidemark.Origin{From: tidemark.FromPerson, Owner: true}}
}

// answerOnce waits until the session rests, and has the owner say yes to what waits; it returns the code.
func (h *harness) answerOnce(code string) string {
	h.t.Helper()
	h.idle()
	list, err := h.Approvals(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	if len(list) > 0 {
		code = list[0].Code
		if _, err := h.Post(h.t.Context(), yesTo(code)); err != nil {
			h.t.Fatal(err)
		}
		h.idle()
	}
	return code
}

// writes counts the calls that waited for the owner and ran.
func writes(b *box) int {
	n := 0
	for _, call := range b.has() {
		if strings.HasPrefix(call, "files__write") {
			n++
		}
	}
	return n
}
