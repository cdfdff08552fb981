package channel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/channel"
)

// TestKnockBehindApproval: a message that was judged a stranger's, and comes to the desk after they were let in
// or kept out, asks for no other code.
func TestKnockBehindApproval(t *testing.T) {
	for _, as := range []channel.Standing{channel.Approved, channel.Owner, channel.Blocked} {
		r := newRig(t, channel.Rules{Access: channel.AccessPairing})
		late := channel.Knock{Platform: "fake", Names: []string{phone}, Message: "2"}
		code, err := r.book.Knock(t.Context(), channel.Knock{Platform: "fake", Names: []string{phone}, Message: "1"})
		if err != nil || code == "" {
			t.Fatalf("%q, %v", code, err)
		}
		if _, err := r.book.Approve(t.Context(), code, as); err != nil {
			t.Fatal(err)
		}
		if code, err := r.book.Knock(t.Context(), late); err != nil || code != "" {
			t.Errorf("%s: told %q, %v", as, code, err)
		}
		if list, err := r.book.List(t.Context()); err != nil || len(list.Pending) != 0 {
			t.Errorf("%s: %+v, %v", as, list.Pending, err)
		}
	}
}

// TestPairingClock: what was noted while a clock was ahead does not last for as long as it was.
func TestPairingClock(t *testing.T) {
	const year = 365 * day
	knock := func(r *rig, from string) string {
		code, err := r.book.Knock(t.Context(), channel.Knock{Platform: "fake", Names: []string{from}, Message: from})
		if err != nil {
			t.Fatal(err)
		}
		return code
	}
	t.Run("codes", func(t *testing.T) {
		r := newRig(t, channel.Rules{Access: channel.AccessPairing})
		r.pass(year)
		var codes []string
		for i := range 3 {
			codes = append(codes, knock(r, fmt.Sprint(phone, i)))
		}
		r.pass(-year)
		if list, err := r.book.List(t.Context()); err != nil || len(list.Pending) != 0 {
			t.Errorf("%+v, %v", list.Pending, err)
		}
		if _, err := r.book.Approve(t.Context(), codes[0], channel.Owner); !errors.Is(err, tidemark.ErrNotFound) {
			t.Errorf("a code of the future: %v", err)
		}
		if knock(r, other) == "" {
			t.Error("who knocks is told nothing")
		}
	})
	t.Run("a code stays good when a clock is set back a little", func(t *testing.T) {
		r := newRig(t, channel.Rules{Access: channel.AccessPairing})
		code := knock(r, phone)
		r.pass(-5 * time.Minute)
		if again := knock(r, phone); again != code {
			t.Errorf("told %q, then %q", code, again)
		}
		r.approve(channel.Owner)
	})
	t.Run("wrong codes", func(t *testing.T) {
		r := newRig(t, channel.Rules{Access: channel.AccessPairing})
		r.pass(year)
		var err error
		for err = nil; !errors.Is(err, tidemark.ErrBusy); _, err = r.book.Approve(t.Context(), "AAAAAAAA", channel.Approved) {
			if err != nil && !errors.Is(err, tidemark.ErrNotFound) {
				t.Fatal(err)
			}
		}
		r.pass(-year)
		knock(r, phone)
		r.approve(channel.Owner)
	})
	t.Run("a number that is given up", func(t *testing.T) {
		r := newRig(t, open)
		r.stand(channel.Owner, phone)
		r.pass(year)
		r.renamed(phone, other)
		r.pass(-year)
		for range 2 {
			if p := r.who(phone); p.Standing != channel.Stranger {
				t.Errorf("who has it is %+v", p)
			}
			if p := r.who(other); p.Standing != channel.Owner {
				t.Errorf("the owner is %+v", p)
			}
			r.pass(31 * day)
		}
	})
}

// TestCodeDecided: what was decided of a person by one name holds for a code that they were told under another.
func TestCodeDecided(t *testing.T) {
	for _, row := range []struct {
		name    string
		told    []string // names under which a code was told
		decided channel.Standing
		seen    []string // a message after the decision
		as      channel.Standing
		listed  bool
		err     error
		left    channel.Standing
	}{
		{"blocked by number", []string{"US.a", phone}, channel.Blocked, nil, channel.Approved, false, tidemark.ErrNotFound, channel.Blocked},
		{"linked by number", []string{"US.a", phone}, channel.Owner, nil, channel.Approved, false, tidemark.ErrNotFound, channel.Owner},
		{"blocked by number, told by id alone", []string{"US.a"}, channel.Blocked, []string{"US.a", phone}, channel.Owner, true, tidemark.ErrConflict, channel.Blocked},
		{"linked by number, told by id alone", []string{"US.a"}, channel.Owner, []string{"US.a", phone}, channel.Approved, true, nil, channel.Owner},
		{"linked by number, then denied", []string{"US.a"}, channel.Owner, []string{"US.a", phone}, channel.Blocked, true, tidemark.ErrConflict, channel.Owner},
		{"of somebody else with a longer number", []string{"US.a", phone + "0"}, channel.Blocked, nil, channel.Approved, true, nil, channel.Blocked},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, channel.Rules{Access: channel.AccessPairing})
			code, err := r.book.Knock(t.Context(), channel.Knock{Platform: "fake", Names: row.told, Message: "1"})
			if err != nil {
				t.Fatal(err)
			}
			r.stand(row.decided, phone)
			if row.seen != nil {
				r.who(row.seen...)
			}
			if list, err := r.book.List(t.Context()); err != nil || (len(list.Pending) == 1) != row.listed {
				t.Errorf("%+v, %v", list.Pending, err)
			}
			if k, err := r.book.Approve(t.Context(), code, row.as); !errors.Is(err, row.err) {
				t.Errorf("%+v, %v, want %v", k, err, row.err)
			}
			if p := r.who(phone); p.Standing != row.left {
				t.Errorf("they are %+v, want %q", p, row.left)
			}
		})
	}
}

// TestAllowed: who is on the list by one of their names may talk by each of them, and for some time by a new
// one; whoever has another id is not on it by a name that they never had.
func TestAllowed(t *testing.T) {
	for _, row := range []struct {
		name, allow string
		first       []string
		then        func(*rig)
		by          []string
		in          bool
	}{
		{"by number, then by id", "+1 555 000 1111", []string{"US.a", phone}, nil, []string{"US.a"}, true},
		{"by id, then by number", "US.a", []string{"US.a", phone}, nil, []string{phone}, true},
		{"by a new number", phone, []string{"US.a", phone}, func(r *rig) { r.renamed(phone, other) }, []string{"US.a", other}, true},
		{"by a new number, long after", phone, []string{"US.a", phone}, func(r *rig) { r.renamed(phone, other); r.pass(31 * day) }, []string{"US.a", other}, false},
		{"by a new number that was not told", phone, []string{"US.a", phone}, func(r *rig) { r.who("US.a", other); r.pass(31 * day) }, []string{"US.a"}, false},
		{"by id, with a new number long after", "US.a", []string{"US.a", phone}, func(r *rig) { r.renamed(phone, other); r.pass(31 * day) }, []string{other}, true},
		{"another id alone", phone, []string{"US.a", phone}, nil, []string{"US.b"}, false},
		{"blocked by number, by id", phone, []string{"US.a", phone}, func(r *rig) { r.stand(channel.Blocked, phone) }, []string{"US.a"}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, channel.Rules{Access: channel.AccessAllow, Allow: []string{row.allow}})
			r.post(by("1", "one", row.first...))
			r.rest()
			if row.then != nil {
				row.then(r)
			}
			r.post(by("2", "/status", row.by...))
			r.rest()
			if got := r.inbox.total() == 2; got != row.in {
				t.Errorf("%d posts: in is %t, want %t", r.inbox.total(), got, row.in)
			}
		})
	}
}

// TestOwnerOfLate: a message that comes again after its writer became the owner is done once, in the conversation
// that it was written in; what they write from then on is the main session's.
func TestOwnerOfLate(t *testing.T) {
	const dm = "agent:main:fake:dm:" + phone
	at := func(r *rig, id, text string, when time.Duration) channel.Arrival {
		a := said(phone, id, text)
		a.Message.At = r.rt.Now().Add(when).Truncate(time.Second)
		return a
	}
	for _, row := range []struct {
		name   string
		access channel.Access
		before channel.Standing
		ahead  time.Duration // of the clock, when they became the owner
		own    string        // in their own conversation at last
		main   []string
	}{
		{"approved", channel.AccessPairing, channel.Approved, 0, "transfer 100", []string{"and now", "later"}},
		{"a stranger who may write", channel.AccessOpen, channel.Stranger, 0, "transfer 100", []string{"and now", "later"}},
		{"the owner already", channel.AccessPairing, channel.Owner, 0, "", []string{"transfer 100", "and now", "later"}},
		{"by a clock that was ahead, not for as long as it was", channel.AccessPairing, channel.Approved, 300 * day, "transfer 100", []string{"transfer 100 ", "and now", "later"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, channel.Rules{Access: row.access})
			if row.before != channel.Stranger {
				r.stand(row.before, phone)
			}
			r.pass(time.Minute)
			first := at(r, "1", "transfer 100", 0)
			r.post(first)
			r.rest()
			r.pass(time.Minute + row.ahead)
			r.stand(channel.Owner, phone)
			r.stand(channel.Owner, phone) // again, which changes nothing
			r.pass(-row.ahead)
			again := first
			again.Message.Text += " " // no webhook of the same bytes
			r.post(again)
			r.rest()
			r.post(at(r, "2", "and now", time.Second))
			r.rest()
			r.pass(time.Hour)
			r.post(at(r, "3", "later", 0))
			r.rest()
			if got := strings.Join(r.inbox.texts(dm), ", "); got != row.own {
				t.Errorf("their own conversation has %q, want %q", got, row.own)
			}
			r.want("agent:main:main", row.main...)
		})
	}
}

// knockDesk notes who knocked.
type knockDesk struct {
	channel.Desk
	knocks []channel.Knock
}

func (d *knockDesk) Knock(ctx context.Context, k channel.Knock) (string, error) {
	d.knocks = append(d.knocks, k)
	return d.Desk.Knock(ctx, k)
}

// TestKnockOfNextHolder: a stranger with a number that somebody had is told their code in a conversation of
// their own, which is theirs when they are let in.
func TestKnockOfNextHolder(t *testing.T) {
	r := newRig(t, channel.Rules{Access: channel.AccessPairing})
	desk := &knockDesk{Desk: r.book}
	r.in.Desk = func(string) channel.Desk { return desk }
	r.stand(channel.Owner, phone)
	r.renamed(phone, other)
	r.pass(31 * day)
	r.post(said(phone, "1", "who is this?"))
	r.rest()
	const own = "agent:main:fake:dm:" + phone + "_7e2"
	if len(desk.knocks) != 1 || desk.knocks[0].Key != own {
		t.Fatalf("%+v", desk.knocks)
	}
	r.approve(channel.Approved)
	r.post(said(phone, "2", "thank you"))
	r.rest()
	r.want(own, "thank you")
}
