package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestLateMisses: who came late misses the text of the call in work and nothing else, until something begins or ends.
func TestLateMisses(t *testing.T) {
	for _, row := range []struct {
		typ          string
		misses, late bool // of who was late; whether they are still
	}{
		{NoticeText, true, true}, {NoticeThinking, false, true}, {NoticeTool, false, true}, {NoticeQueued, false, true}, {NoticeTaken, false, true},
		{NoticeResult, false, true}, {NoticeCompacting, false, true}, {NoticeEvent, false, true}, {NoticeStalled, false, true}, {NoticeApproval, false, true},
		{NoticeStart, false, false}, {NoticeRestart, false, false}, {NoticeReply, false, false}, {NoticeDone, false, false}, {NoticeError, false, false},
	} {
		late, early := Late(true), Late(false)
		if got := late.Misses(Notice{Type: row.typ}); got != row.misses || bool(late) != row.late {
			t.Errorf("%s: missed %v, late still %v, want %v, %v", row.typ, got, late, row.misses, row.late)
		}
		if early.Misses(Notice{Type: row.typ}) || bool(early) {
			t.Errorf("%s: who was there misses it", row.typ)
		}
	}
}

// TestSaidSoFar: what those who come later are told of the call in work: its text up to a bound, without a hole in it.
func TestSaidSoFar(t *testing.T) {
	full := strings.Repeat("a", maxPartial)
	var s Said
	for i, row := range []struct {
		n         Notice
		run, text string
		late      Late
	}{
		{Notice{Type: NoticeStart, Run: "r"}, "r", "", false},
		{Notice{Type: NoticeText, Run: "r", Text: "one "}, "r", "one ", false},
		{Notice{Type: NoticeThinking, Run: "r", Text: "hm"}, "r", "one ", false},
		{Notice{Type: NoticeText, Run: "r", Text: "two"}, "r", "one two", false},
		{Notice{Type: NoticeRestart, Run: "r"}, "r", "", false},
		{Notice{Type: NoticeText, Run: "r", Text: full}, "r", full, false},
		{Notice{Type: NoticeText, Run: "r", Text: "b"}, "r", full, true},
		{Notice{Type: NoticeReply, Run: "r"}, "r", "", false},
		{Notice{Type: NoticeText, Run: "r", Text: full[1:]}, "r", full[1:], false},
		{Notice{Type: NoticeText, Run: "r", Text: "bb"}, "r", full[1:], true},
		{Notice{Type: NoticeText, Run: "r", Text: "b"}, "r", full[1:], true}, // it would fit, behind a hole
		{Notice{Type: NoticeDone, Run: "r"}, "", "", false},
		{Notice{Type: NoticeStart, Run: "s"}, "s", "", false},
		{Notice{Type: NoticeText, Run: "s", Text: "three"}, "s", "three", false},
		{Notice{Type: NoticeError, Run: "s"}, "", "", false},
	} {
		s.Take(row.n)
		if text, late := s.Text(); s.Run != row.run || text != row.text || late != row.late {
			t.Errorf("step %d, %s: run %q, %d bytes, late %v, want %q, %d, %v", i, row.n.Type, s.Run, len(text), late, row.run, len(row.text), row.late)
		}
	}
}

// TestSaidElsewhere: what is known from elsewhere is what a follower begins with.
func TestSaidElsewhere(t *testing.T) {
	s := Said{over: true}
	s.Take(Notice{Type: NoticeText, Text: "before"})
	s.Set("r", "so far")
	s.Take(Notice{Type: NoticeText, Run: "r", Text: ", and more"})
	if text, late := s.Text(); s.Run != "r" || text != "so far, and more" || late {
		t.Errorf("%q of %q, late %v", text, s.Run, late)
	}
}

// TestSubscribersStand: who subscribes is told where the conversation stands, and as many may as there is room for.
func TestSubscribersStand(t *testing.T) {
	var seen []string
	h := hub{observe: func(n Notice) { seen = append(seen, n.Type) }}
	h.told("before")
	h.send(Notice{Type: NoticeStart, Run: "r"})
	h.send(Notice{Type: NoticeText, Run: "r", Text: "so far", Entry: "no reply"})
	u, err := h.subscribe()
	if err != nil || u.Run != "r" || u.Reply != "before" || u.Partial != "so far" {
		t.Fatalf("%+v, %v", u, err)
	}
	if _, ok := u.Next(); ok || u.Behind() {
		t.Error("it was told something before it was said")
	}
	h.send(Notice{Type: NoticeReply, Run: "r", Entry: "reply"})
	if v, err := h.subscribe(); err != nil || v.Run != "r" || v.Reply != "reply" || v.Partial != "" {
		t.Errorf("%+v, %v", v, err)
	}
	if got := strings.Join(seen, " "); got != "start text reply" {
		t.Errorf("who counts saw %q", got)
	}
	for range maxSubs - 2 {
		if _, err := h.subscribe(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.subscribe(); !errors.Is(err, tidemark.ErrBusy) {
		t.Errorf("one reader too many: %v", err)
	}
	u.Close()
	if v, err := h.subscribe(); err != nil || len(h.subs) != maxSubs {
		t.Errorf("when one has left: %+v, %v", v, err)
	}
	h.send(Notice{Type: NoticeDone})
	if got := heard(u); got != "reply" {
		t.Errorf("who has left is told %q", got)
	}
}

// TestUnreadJoins: what was not read yet is joined where it is one text, or inputs that wait, up to a bound.
func TestUnreadJoins(t *testing.T) {
	text := func(run, s string) Notice { return Notice{Type: NoticeText, Run: run, Text: s} }
	waits := func(n int) Notice { return Notice{Type: NoticeQueued, Inputs: make([]string, n)} }
	tool, long := Notice{Type: NoticeTool}, strings.Repeat("a", mergeText-1)
	for _, row := range []struct {
		name string
		sent []Notice
		want string // types, bytes of text and inputs
	}{
		{"a text behind something else", []Notice{tool, text("r", "a"), text("r", "bc"), text("r", "d")}, "tool 0 0, text 4 0"},
		{"the first piece stands by itself", []Notice{text("r", "a"), text("r", "bc"), text("r", "d")}, "text 1 0, text 3 0"},
		{"of two runs", []Notice{tool, text("r", "a"), text("s", "b")}, "tool 0 0, text 1 0, text 1 0"},
		{"thinking", []Notice{tool, {Type: NoticeThinking, Text: "a"}, {Type: NoticeThinking, Text: "b"}, text("", "c"), {Type: NoticeThinking, Text: "d"}}, "tool 0 0, thinking 2 0, text 1 0, thinking 1 0"},
		{"no other types", []Notice{tool, tool, {Type: NoticeResult, Text: "a"}, {Type: NoticeResult, Text: "b"}}, "tool 0 0, tool 0 0, result 1 0, result 1 0"},
		{"up to the bound", []Notice{tool, text("r", long), text("r", "bb"), text("r", "c")}, "tool 0 0, text 4097 0, text 1 0"},
		{"at the bound", []Notice{tool, text("r", long+"a"), text("r", "b")}, "tool 0 0, text 4096 0, text 1 0"},
		{"inputs that wait", []Notice{waits(1), waits(1), waits(2), tool, waits(1), waits(1)}, "queued 0 4, tool 0 0, queued 0 2"},
		{"as many as one call takes up", []Notice{waits(maxTaken - 1), waits(1), waits(1)}, "queued 0 64, queued 0 1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var h hub
			u, err := h.subscribe()
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range row.sent {
				h.send(n)
			}
			var got []string
			for n, ok := u.Next(); ok; n, ok = u.Next() {
				got = append(got, fmt.Sprint(n.Type, " ", len(n.Text), " ", len(n.Inputs)))
			}
			if g := strings.Join(got, ", "); g != row.want {
				t.Errorf("queue %q, want %q", g, row.want)
			}
			if u.bytes != 0 || u.behind {
				t.Errorf("%d bytes wait of an empty queue, behind %v", u.bytes, u.behind)
			}
		})
	}
}

// TestSlowReader: who is too far behind, by notices or by bytes, is cut off, reads what there is and then hears so.
func TestSlowReader(t *testing.T) {
	most := strings.Repeat("a", maxUnread)
	for _, row := range []struct {
		name string
		sent []Notice
		read int // of the first ones, before the last
		off  bool
	}{
		{"as many as may wait", slices.Repeat([]Notice{{Type: NoticeTool}}, maxBehind), 0, false},
		{"one more", slices.Repeat([]Notice{{Type: NoticeTool}}, maxBehind+1), 0, true},
		{"one more, of which one is read", slices.Repeat([]Notice{{Type: NoticeTool}}, maxBehind+1), 1, false},
		{"as many bytes", []Notice{{Type: NoticeTool}, {Type: NoticeText, Text: most}}, 0, false},
		{"a byte more", []Notice{{Type: NoticeTool, Text: "b"}, {Type: NoticeText, Text: most}}, 0, true},
		{"a byte more that is read", []Notice{{Type: NoticeTool, Text: "b"}, {Type: NoticeText, Text: most}}, 1, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			var h hub
			u, err := h.subscribe()
			if err != nil {
				t.Fatal(err)
			}
			last := len(row.sent) - 1
			for _, n := range row.sent[:last] {
				h.send(n)
			}
			for range row.read {
				u.Next()
			}
			h.send(row.sent[last])
			if u.Behind() || h.subs[u] == row.off {
				t.Errorf("it is told more: %v, and knows that it is behind before it has read what there is: %v", h.subs[u], u.Behind())
			}
			select {
			case <-u.Ready:
			default:
				t.Error("nothing told it to read")
			}
			read := row.read
			for _, ok := u.Next(); ok; _, ok = u.Next() {
				read++
			}
			h.send(Notice{Type: NoticeDone})
			if got := heard(u); u.Behind() != row.off || (got == "") != row.off || read != len(row.sent) {
				t.Errorf("cut off %v, told %q of the end, read %d of %d", u.Behind(), got, read, len(row.sent))
			}
		})
	}
}

// TestEndings: who waits for the end of a turn is let on by one, by the end of the life, by theirs, and after a while at
// the latest; when it fell behind it begins anew.
func TestEndings(t *testing.T) {
	r := newRig(t, Settings{})
	wait := func(ctx context.Context, longest time.Duration, sent ...Notice) error {
		t.Helper()
		sub, err := r.Subscribe()
		if err != nil {
			t.Fatal(err)
		}
		e := &endings{s: r.Session, sub: sub, longest: longest}
		for _, n := range sent {
			r.hub.send(n)
		}
		ctx, stop := r.clock.WithTimeout(ctx, tidemarktest.Patience)
		defer stop()
		err = e.Next(ctx)
		if again := e.sub != sub; again != sub.behind || r.hub.subs[sub] == again || !r.hub.subs[e.sub] {
			t.Errorf("renewed %v of one that is behind %v", again, sub.behind)
		}
		e.Close()
		if len(r.hub.subs) != 0 {
			t.Errorf("%d subscriptions are left", len(r.hub.subs))
		}
		return err
	}
	text := Notice{Type: NoticeText, Text: "a"}
	for _, typ := range []string{NoticeDone, NoticeError} {
		if err := wait(t.Context(), time.Hour, text, Notice{Type: typ}, text); err != nil {
			t.Errorf("%s: %v", typ, err)
		}
	}
	if err := wait(t.Context(), time.Hour, slices.Repeat([]Notice{{Type: NoticeTool}}, maxBehind+1)...); err != nil {
		t.Errorf("behind: %v", err)
	}
	if err := wait(t.Context(), time.Nanosecond); err != nil {
		t.Errorf("after a while: %v", err)
	}
	gone := errors.New("nobody waits")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if err := wait(ctx, time.Hour, text); !errors.Is(err, gone) {
		t.Errorf("who waited has left: %v", err)
	}
	life, end := context.WithCancel(t.Context())
	end()
	r.life = life
	if err := wait(t.Context(), time.Hour); !errors.Is(err, tidemark.ErrDead) {
		t.Errorf("the life has ended: %v", err)
	}
}

// TestExplained: what people read of each failure.
func TestExplained(t *testing.T) {
	api := func(c tidemark.Class) error {
		return fmt.Errorf("call: %w", &tidemark.APIError{Class: c, Message: "no"})
	}
	const window = "Context window exceeded even after compaction. Try resetting the session with /reset."
	for _, row := range []struct {
		name string
		err  error
		want string
	}{
		{"none", nil, ""},
		{"a message too large", errors.Join(tooLargeError{1234, 1000}, tidemark.ErrOverflow), "The newest message alone is too large: about 1234 tokens, and 1000 may be sent. Send it in parts, or less of it."},
		{"a budget", fmt.Errorf("turn: %w", &overBudgetError{spent: 120, budget: 100}), "The budget of this turn is used up: it spent 120 tokens and may spend 100. What its tools brought is kept."},
		{"stopped", fmt.Errorf("turn: %w", tidemark.ErrAborted), "Stopped."},
		{"overflow", fmt.Errorf("turn: %w", tidemark.ErrOverflow), window},
		{"overflow of the API", api(tidemark.ClassOverflow), window},
		{"key", api(tidemark.ClassAuth), "The model provider refused the key: no. Set the right one and try again."},
		{"rate", api(tidemark.ClassRate), "The model provider is limiting requests. Try again in a moment. (no)"},
		{"overloaded", api(tidemark.ClassOverloaded), "The model provider is overloaded. Try again in a moment. (no)"},
		{"network", api(tidemark.ClassNetwork), "The model provider could not be reached. (no)"},
		{"an empty answer", &tidemark.APIError{Class: tidemark.ClassNetwork, Type: tidemark.EmptyReply, Message: "no"}, "The model answered with nothing. Try again. (no)"},
		{"another of the API", api(tidemark.ClassRefusal), "model API: refusal: no"},
		{"time", fmt.Errorf("turn: %w", tidemark.ErrTimeout), "The turn took too long and was stopped."},
		{"any other", errors.New("the disk is full"), "the disk is full"},
	} {
		if got := Explain(row.err); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}
