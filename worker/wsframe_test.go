package worker

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// FuzzSocketFrame: no text breaks the decoder, and what it takes is of a known type and within bounds.
func FuzzSocketFrame(f *testing.F) {
	for _, s := range []string{
		`{"type":"post","text":"hi","id":"1","ref":"r","channel":"web"}`, `{"type":"post","content":[{"type":"text","text":"x"}]}`,
		`{"type":"typing","on":false}`, `{"type":"seen","n":5}`, `{"type":"ping"}`, `{"type":"abort","ref":"x"}`, `{"type":"post","text":"a","type":"ping"}`,
		`{}`, `null`, `[`, `{"type":7}`, `{"type":"seen","n":1e400}`, "\xff", `{"type":"ping","ref":"` + strings.Repeat("x", 70) + `"}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := decodeFrame([]byte(s))
		if len(got.ref) > maxRef || !utf8.ValidString(got.ref) {
			t.Errorf("ref %q", got.ref)
		}
		if err != nil {
			return
		}
		switch got.kind {
		case framePost:
			if len(got.input.Message.Content) == 0 {
				t.Errorf("a post without content: %q", s)
			}
		case frameAbort, frameTyping, framePing, frameSeen:
		default:
			t.Errorf("kind %q of %q", got.kind, s)
		}
	})
}

// TestMemberRate: a burst is let through, then so many a second; who goes on is thrown out.
func TestMemberRate(t *testing.T) {
	now := time.Unix(1000, 0)
	m := &member{frames: framesBurst, at: now}
	for i := range framesBurst {
		if ok, _ := m.may(now); !ok {
			t.Fatalf("frame %d was refused", i)
		}
	}
	if ok, spent := m.may(now); ok || spent {
		t.Error("the burst has no end")
	}
	now = now.Add(2 * framesEach)
	if ok, _ := m.may(now); !ok {
		t.Error("time gives nothing back")
	}
	m.may(now.Add(-time.Hour)) // a clock that jumps back gives nothing
	for range 2 * framesBurst {
		m.may(now)
	}
	if _, spent := m.may(now); !spent {
		t.Error("nothing throws out who goes on")
	}
}

// TestMemberUnseen: a mark in time, patience with one large text, and the end of who does not read.
func TestMemberUnseen(t *testing.T) {
	now := time.Unix(1000, 0)
	m := &member{}
	if ok, mark := m.count(10, now); !ok || mark {
		t.Error("the first")
	}
	if ok, mark := m.count(markEvery, now); !ok || !mark {
		t.Error("no mark")
	}
	if ok, _ := m.count(2*maxUnseen, now); !ok {
		t.Error("one that is larger than the bound must come through")
	}
	if ok, _ := m.count(1, now.Add(unseenFor)); !ok {
		t.Error("what follows it at once, too")
	}
	m.seen = m.sent
	now = now.Add(time.Hour)
	if ok, _ := m.count(2*maxUnseen, now); !ok {
		t.Error("who has seen all may have more")
	}
	if ok, _ := m.count(1, now.Add(unseenFor+1)); ok {
		t.Error("nothing ends who does not read")
	}
	m = &member{sent: mostUnseen + 1, late: now}
	if ok, _ := m.count(1, now); ok {
		t.Error("there is no end to what is unread")
	}
}
