package worker

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
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

// kept is a socket whose host remembers its note.
type kept struct {
	tidemark.Socket
	raw   string
	times int
}

func (k *kept) ID() string { return "k" }
func (k *kept) Keep(raw string) {
	k.raw = raw
	k.times++
}

// TestMemberKept: whatever ends between two texts, who never reads has one allowance in all, and who
// reads is not put down as slow.
func TestMemberKept(t *testing.T) {
	tests := []struct {
		name  string
		each  int // bytes of one text
		reads bool
	}{
		{"never reads", 64 << 10, false},
		{"never reads, small texts", 500, false},
		{"reads", 64 << 10, true},
		{"reads, small texts", 500, true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			now := time.Unix(1000, 0)
			k := &kept{raw: note{Sent: keptAhead}.String()}
			sent, lives := 0, 0
			for again := false; sent < 8*maxUnseen; again = true {
				var n note
				if err := json.Unmarshal([]byte(k.raw), &n); err != nil {
					t.Fatal(err)
				}
				m := newMember(k, n, again, now)
				m.room = &room{key: "key"}
				for range 20 { // a short life
					now = now.Add(unseenFor / 4)
					ok, mark := m.count(tc.each, now)
					if !ok {
						if tc.reads || sent < maxUnseen/8 {
							t.Errorf("cut off after %d bytes", sent)
						}
						return
					}
					if sent += tc.each; mark && tc.reads {
						m.seen = m.marked
						m.keep()
					}
				}
				lives++
			}
			if !tc.reads {
				t.Errorf("has %d bytes unread over %d lives, and may have more", sent, lives)
			}
			if most := sent/keptAhead + 3*lives + sent/markEvery; k.times > most {
				t.Errorf("kept %d times, want %d at most", k.times, most)
			}
		})
	}
}
