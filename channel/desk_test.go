package channel_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/channel"
)

func (r *rig) who(names ...string) channel.Person {
	r.t.Helper()
	p, err := r.book.Who(r.t.Context(), "fake", names, true)
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

// TestNames: a person keeps their name while the platform's change, and nobody inherits it with a number.
func TestNames(t *testing.T) {
	r := newRig(t, open)
	rename := func(from, to string) {
		if err := r.book.Rename(t.Context(), channel.Alias{Platform: "fake", Old: from, New: to}); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		name  string
		do    func()
		names []string
		want  string
	}{
		{"by number", nil, []string{"15550001"}, "15550001"},
		{"an id beside it", nil, []string{"US.a", "15550001"}, "15550001"},
		{"by id alone", nil, []string{"US.a"}, "15550001"},
		{"another id with the number is somebody else", nil, []string{"US.b", "15550001"}, "US.b"},
		{"a new number", func() { rename("15550001", "15550002") }, []string{"15550002"}, "15550001"},
		{"what is late", nil, []string{"15550001"}, "15550001"},
		{"the number is somebody else's", func() { r.pass(31 * 24 * time.Hour) }, []string{"15550001"}, "15550001~2"},
		{"who was there before", nil, []string{"US.a", "15550002"}, "15550001"},
		{"a new id", func() { rename("US.a", "US.c") }, []string{"US.c"}, "15550001"},
		{"an alias of nobody", func() { rename("US.zz", "US.yy") }, []string{"US.yy"}, "US.yy"},
	} {
		if step.do != nil {
			step.do()
		}
		if p := r.who(step.names...); p.Name != step.want {
			t.Errorf("%s: %s is %q, want %q", step.name, step.names, p.Name, step.want)
		}
	}
}

// TestAliasKeepsSession: the conversation goes on under another number, in the same webhook.
func TestAliasKeepsSession(t *testing.T) {
	r := newRig(t, open)
	r.post(said("15550001", "1", "before"))
	r.rest()
	r.post(said("15550002", "2", "after"), channel.Arrival{Alias: &channel.Alias{Account: "4400", Old: "15550001", New: "15550002"}})
	r.rest()
	r.want("agent:main:fake:dm:15550001", "before", "after")
	r.want("agent:main:fake:dm:15550002")
}

// TestPairing: a stranger is told a code once, three are at most, it ends in an hour, wrong ones are
// bounded, and until then nothing of theirs reaches anybody.
func TestPairing(t *testing.T) {
	r := newRig(t, channel.Rules{Access: channel.AccessPairing})
	for i := range 5 {
		from := fmt.Sprintf("1555000%d", i)
		r.post(said(from, from+"a", "let me in"), said(from, from+"b", "hello?"))
	}
	r.rest()
	if len(r.inbox.said) != 3 || r.inbox.total() != 0 {
		t.Fatalf("said %q, %d posts", r.inbox.said, r.inbox.total())
	}
	list, err := r.book.List(t.Context())
	if err != nil || len(list.Pending) != 3 || list.Pending[0].Called != "Ada" {
		t.Fatalf("%+v, %v", list, err)
	}
	first := list.Pending[0]
	if shown := first.Code[:4] + "-" + first.Code[4:]; !slices.ContainsFunc(r.inbox.said, func(s string) bool {
		return strings.HasPrefix(s, first.Name+": ") && strings.Contains(s, shown)
	}) {
		t.Errorf("%s was not told to %s: %q", shown, first.Name, r.inbox.said)
	}
	if k, err := r.book.Approve(t.Context(), strings.ToLower(first.Code[:4])+"-"+first.Code[4:], channel.Approved); err != nil || k.Name != first.Name {
		t.Fatalf("%+v, %v", k, err)
	}
	if last := r.inbox.said[len(r.inbox.said)-1]; last != first.Name+": You are let in." {
		t.Errorf("at last %q was said", last)
	}
	r.post(said(first.Name, "in", "thank you"))
	r.rest()
	r.want(tidemark.Key("agent:main:fake:dm:"+first.Name), "thank you")
	if _, err := r.book.Approve(t.Context(), first.Code, channel.Approved); !errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("a code was taken twice: %v", err)
	}
	if _, err := r.book.Deny(t.Context(), list.Pending[1].Code); err != nil {
		t.Fatal(err)
	}
	r.pass(time.Hour)
	if _, err := r.book.Approve(t.Context(), list.Pending[2].Code, channel.Approved); !errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("a code was good after an hour: %v", err)
	}
	r.post(said(list.Pending[1].Name, "blocked", "x"), said(list.Pending[2].Name, "again", "x"))
	r.rest()
	if len(r.inbox.said) != 5 || r.inbox.total() != 1 {
		t.Errorf("said %q, %d posts; want one more code, for who is not blocked", r.inbox.said, r.inbox.total())
	}
	for err = nil; !errors.Is(err, tidemark.ErrBusy); _, err = r.book.Approve(t.Context(), "AAAAAAAA", channel.Approved) {
		if err != nil && !errors.Is(err, tidemark.ErrNotFound) {
			t.Fatal(err)
		}
	}
	list, err = r.book.List(t.Context())
	if err != nil || len(list.Pending) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	if _, err := r.book.Approve(t.Context(), list.Pending[0].Code, channel.Approved); !errors.Is(err, tidemark.ErrBusy) {
		t.Errorf("a right code among wrong ones: %v", err)
	}
	r.pass(10 * time.Minute)
	if k, err := r.book.Approve(t.Context(), list.Pending[0].Code, channel.Owner); err != nil || k.Standing != channel.Owner {
		t.Errorf("%+v, %v", k, err)
	}
	r.post(said(list.Pending[0].Name, "mine", "my own"))
	r.rest()
	r.want("agent:main:main", "my own")
}

// TestGroupMoves: a group that gets another id keeps its conversation, also a second time, and twice told.
func TestGroupMoves(t *testing.T) {
	r := newRig(t, channel.Rules{Access: channel.AccessOpen, Groups: true})
	in := func(group, id, text string) channel.Arrival {
		a := said("15550001", id, text)
		a.Message.Group, a.Message.Mentioned = group, true
		return a
	}
	moved := func(old, to string) channel.Arrival {
		return channel.Arrival{Alias: &channel.Alias{Account: "4400", Old: old, New: to, Group: true}}
	}
	r.post(in("-40", "1", "before"))
	r.rest()
	r.post(moved("-40", "-10040"), in("-10040", "2", "after"))
	r.rest()
	r.post(moved("-40", "-10040"), in("-10040", "3", "again"), in("-50", "4", "another"))
	r.rest()
	r.want("agent:main:fake:group:4400+-40", "[Ada 15550001] before", "[Ada 15550001] after", "[Ada 15550001] again")
	r.want("agent:main:fake:group:4400+-50", "[Ada 15550001] another")
	list, err := r.book.List(t.Context())
	if err != nil || len(list.People) != 0 {
		t.Errorf("a group among the people: %+v, %v", list, err)
	}
}

// TestCommandsAreBound: the sender of a command is who wrote it, and in a group a stranger gives none.
func TestCommandsAreBound(t *testing.T) {
	r := newRig(t, channel.Rules{Access: channel.AccessOpen, Groups: true})
	in := func(from, id, text string) channel.Arrival {
		a := said(from, id, text)
		a.Message.Group, a.Message.Mentioned = "g", true
		return a
	}
	if _, err := r.book.Stand(t.Context(), "fake", []string{"15550001"}, "", channel.Owner); err != nil {
		t.Fatal(err)
	}
	unmentioned := in("15550001", "4", "just talk")
	unmentioned.Message.Mentioned = false
	r.post(in("15550002", "1", "/reset"), in("15550001", "2", "/reset"), said("15550002", "3", "/reset"), unmentioned)
	r.rest()
	r.want("agent:main:fake:group:4400+g", "[Ada 15550002] /reset", "/reset ")
	r.want("agent:main:fake:dm:15550002", "/reset ")
	if in := r.inbox.posts["agent:main:fake:group:4400+g"][1]; in.Origin.Peer != "15550001" {
		t.Errorf("the command is of %+v", in.Origin)
	}
}
