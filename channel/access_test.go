package channel_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/channel"
)

const (
	day   = 24 * time.Hour
	phone = "15550001111"
	other = "15550002222"
)

// by is a message by all names of who wrote it.
func by(id, text string, names ...string) channel.Arrival {
	a := said(names[len(names)-1], id, text)
	a.Message.From = names
	return a
}

// stand gives a standing by what an owner types.
func (r *rig) stand(as channel.Standing, name string) channel.Known {
	r.t.Helper()
	k, err := r.book.Stand(r.t.Context(), "fake", []string{name}, "", as)
	if err != nil {
		r.t.Fatal(err)
	}
	return k
}

// renamed is a notice that knows one name of before.
func (r *rig) renamed(from, to string) {
	r.t.Helper()
	if err := r.book.Rename(r.t.Context(), channel.Alias{Platform: "fake", Old: from, New: to}); err != nil {
		r.t.Fatal(err)
	}
}

// approve takes the only code that waits.
func (r *rig) approve(as channel.Standing) channel.Known {
	r.t.Helper()
	list, err := r.book.List(r.t.Context())
	if err != nil || len(list.Pending) != 1 {
		r.t.Fatalf("%+v, %v", list.Pending, err)
	}
	k, err := r.book.Approve(r.t.Context(), list.Pending[0].Code, as)
	if err != nil {
		r.t.Fatal(err)
	}
	return k
}

// TestNumberOfAnother: whoever was known by an id, alone or not, and in whatever order their names came, is
// not whoever has their number with another id. They are themselves by any of their names.
func TestNumberOfAnother(t *testing.T) {
	const id, parent = "US.own", "US.ENT.p"
	linked := func(name string) func(*rig) { return func(r *rig) { r.stand(channel.Owner, name) } }
	paired := func(names ...string) func(*rig) {
		return func(r *rig) {
			r.post(by("hi", "hi", names...))
			r.rest()
			r.approve(channel.Owner)
		}
	}
	for _, row := range []struct {
		name  string
		begin func(*rig)
		seen  [][]string // messages of theirs, before
	}{
		{"linked by id", linked(id), [][]string{{id, phone}}},
		{"let in by a code, with an id alone", paired(id), [][]string{{id, phone}}},
		{"let in by a code", paired(id, phone, parent), nil},
		{"linked by number", linked(phone), [][]string{{id, phone}}},
		{"linked by number, first without an id", linked(phone), [][]string{{phone}, {phone, parent}, {id, phone, parent}}},
		{"linked by the parent's id", linked(parent), [][]string{{id, phone, parent}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, channel.Rules{Access: channel.AccessPairing})
			row.begin(r)
			for _, names := range append(row.seen, []string{id, phone}) {
				if p := r.who(names...); p.Standing != channel.Owner {
					t.Fatalf("the owner by %q is %+v", names, p)
				}
			}
			r.pass(400 * day)
			for range 2 {
				if p := r.who("US.other", phone); p.Standing != channel.Stranger {
					t.Errorf("another id with the number is %+v", p)
				}
				r.pass(400 * day)
			}
			if p := r.who(phone); p.Standing != channel.Stranger {
				t.Errorf("the number alone, that another id has, is %+v", p)
			}
			for _, names := range [][]string{{id}, {id, phone}, {id, other}, {id, phone, parent}} {
				if p := r.who(names...); p.Standing != channel.Owner {
					t.Errorf("the owner by %q is %+v", names, p)
				}
			}
		})
	}
}

// TestNumberGivenUp: whoever has the number of an owner who left it is not the owner because of that. The owner
// is on: by the new number, with an id that nobody knew, and by what was late.
func TestNumberGivenUp(t *testing.T) {
	for _, row := range []struct {
		name   string
		access channel.Access
	}{{"pairing", channel.AccessPairing}, {"open", channel.AccessOpen}} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, channel.Rules{Access: row.access})
			r.stand(channel.Owner, phone)
			r.renamed(phone, other)
			r.post(by("1", "mine, and late", phone), by("2", "mine, and late with an id", "US.own", phone))
			r.rest()
			r.pass(10 * day)
			a := by("3", "who are you?", "US.stranger", phone)
			a.Message.At = a.Message.At.Add(time.Minute)
			r.post(a)
			r.rest()
			r.want("agent:main:main", "mine, and late")
			if p := r.who("US.own", other); p.Standing != channel.Owner {
				t.Errorf("the owner with an id, on the new number, is %+v", p)
			}
			for range 2 {
				r.pass(300 * day)
				for _, names := range [][]string{{"US.stranger"}, {"US.stranger", phone}, {phone}} {
					if p := r.who(names...); p.Standing != channel.Stranger {
						t.Errorf("%q is %+v", names, p)
					}
				}
				for _, names := range [][]string{{"US.own"}, {other}, {"US.own", other}} {
					if p := r.who(names...); p.Standing != channel.Owner {
						t.Errorf("%q is %+v", names, p)
					}
				}
			}
		})
	}
}

// TestNumberInDoubt: who comes with a number that was given up lately has one conversation, before it is theirs
// and after.
func TestNumberInDoubt(t *testing.T) {
	r := newRig(t, open)
	r.who(phone)
	r.renamed(phone, other)
	first := r.who("US.stranger", phone)
	r.pass(31 * day)
	if then := r.who("US.stranger", phone); then.Name != first.Name || first.Name == phone {
		t.Errorf("%+v, then %+v", first, then)
	}
}

// TestLinkOfGivenUp: who is linked or let in by a number is who has it today, also when somebody left it lately.
func TestLinkOfGivenUp(t *testing.T) {
	for _, row := range []struct {
		name  string
		admit func(*rig)
		again []string // how they write from then on
	}{
		{"linked by number", func(r *rig) { r.stand(channel.Owner, "+1 (555) 000-1111") }, []string{"US.own", phone}},
		{"let in by a code", func(r *rig) {
			if _, err := r.book.Knock(t.Context(), channel.Knock{Platform: "fake", Names: []string{"US.own", phone}, Message: "1"}); err != nil {
				t.Fatal(err)
			}
			r.approve(channel.Owner)
		}, []string{"US.own", phone}},
		{"linked by number, without an id", func(r *rig) { r.stand(channel.Owner, phone) }, []string{phone}},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, open)
			r.who(phone) // Mallory
			r.renamed(phone, other)
			r.pass(5 * day)
			row.admit(r)
			for range 3 {
				if p := r.who(other); p.Standing != channel.Stranger {
					t.Errorf("who left the number is %+v", p)
				}
				if p := r.who(row.again...); p.Standing != channel.Owner {
					t.Errorf("who was linked is %+v", p)
				}
				r.pass(31 * day)
			}
		})
	}
}

// TestStandingTaken: a standing is taken away by any name that somebody has or had, and of nobody it is not said
// to be. Nobody is blocked by a name that may mean somebody else.
func TestStandingTaken(t *testing.T) {
	for _, row := range []struct {
		name string
		pass time.Duration // since the number was changed
		as   channel.Standing
		by   string
		want error
		left channel.Standing // of who changed their number
	}{
		{"by the new number", 31 * day, channel.Stranger, other, nil, channel.Stranger},
		{"by the old number, long after", 31 * day, channel.Stranger, phone, nil, channel.Stranger},
		{"by the old number, soon after", day, channel.Stranger, phone, nil, channel.Stranger},
		{"by a name of nobody's", day, channel.Stranger, "15550003333", tidemark.ErrNotFound, channel.Owner},
		{"blocked by the new number", 31 * day, channel.Blocked, other, nil, channel.Blocked},
		{"blocked by the old number, long after", 31 * day, channel.Blocked, phone, tidemark.ErrConflict, channel.Owner},
		{"blocked by the old number, soon after", day, channel.Blocked, phone, tidemark.ErrConflict, channel.Owner},
		{"nobody's name, blocked", day, channel.Blocked, "15550003333", nil, channel.Owner},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, channel.Rules{Access: channel.AccessPairing})
			r.stand(channel.Owner, phone)
			r.renamed(phone, other)
			r.pass(row.pass)
			k, err := r.book.Stand(t.Context(), "fake", []string{row.by}, "", row.as)
			if !errors.Is(err, row.want) || err == nil && k.Standing != row.as {
				t.Errorf("%+v, %v, want %v", k, err, row.want)
			}
			if p := r.who(other); p.Standing != row.left {
				t.Errorf("they are %+v, want %q", p, row.left)
			}
			if err == nil {
				if p := r.who(k.Names...); p.Standing != row.as {
					t.Errorf("%q is %+v", k.Names, p)
				}
			}
		})
	}
}

// TestTakenFromWhoHasIt: what is said of a number is of who has it by now, also when it is said twice.
func TestTakenFromWhoHasIt(t *testing.T) {
	r := newRig(t, open)
	r.stand(channel.Owner, phone)
	r.renamed(phone, other)
	r.pass(31 * day)
	next := r.who("US.next", phone)
	r.stand(channel.Blocked, phone) // theirs by now
	if p, o := r.who("US.next"), r.who(other); p.Standing != channel.Blocked || p.Name != next.Name || o.Standing != channel.Owner {
		t.Errorf("the next is %+v, the owner %+v", p, o)
	}
	for range 2 {
		r.stand(channel.Stranger, phone)
		if p, o := r.who("US.next"), r.who(other); p.Standing != channel.Stranger || o.Standing != channel.Owner {
			t.Errorf("the next is %+v, the owner %+v", p, o)
		}
	}
}

// TestListedNames: every name that is listed leads to whom it is listed for.
func TestListedNames(t *testing.T) {
	r := newRig(t, open)
	r.stand(channel.Owner, phone)
	r.who("US.own", phone)
	r.renamed(phone, other)
	r.pass(31 * day)
	r.stand(channel.Blocked, "15550003333")
	list, err := r.book.List(t.Context())
	if err != nil || len(list.People) != 2 {
		t.Fatalf("%+v, %v", list.People, err)
	}
	if got := list.People[0].Names; !slices.Equal(got, []string{other, "US.own"}) {
		t.Errorf("the owner is listed as %q", got)
	}
	for _, k := range list.People {
		for _, n := range k.Names {
			if p := r.who(n); p.Name != k.Name || p.Standing != k.Standing {
				t.Errorf("%q of %+v leads to %+v", n, k, p)
			}
		}
	}
}

// TestNumberSeenElsewhere: a number that comes with an unknown id is not linked for who had it before, though no notice
// told of that; and it is theirs again when they come with it, as after a message that was late.
func TestNumberSeenElsewhere(t *testing.T) {
	for _, row := range []struct {
		name string
		then func(*rig)
		by   []string
		want channel.Standing
	}{
		{"linked, the other", func(r *rig) { r.stand(channel.Owner, phone) }, []string{"US.b", phone}, channel.Owner},
		{"linked, who had it", func(r *rig) { r.stand(channel.Owner, phone) }, []string{"US.a"}, channel.Approved},
		{"late, who has it", func(r *rig) { r.who("US.a", phone); r.pass(40 * day) }, []string{phone}, channel.Approved},
		{"late, the other", func(r *rig) { r.who("US.a", phone); r.pass(40 * day) }, []string{"US.b", phone}, channel.Stranger},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, channel.Rules{Access: channel.AccessPairing})
			r.post(by("1", "hi", "US.a", phone))
			r.rest()
			r.approve(channel.Approved)
			r.post(by("2", "hi", "US.b", phone)) // told by no notice
			r.rest()
			row.then(r)
			if p := r.who(row.by...); p.Standing != row.want {
				t.Errorf("%q is %+v, want %q", row.by, p, row.want)
			}
		})
	}
}
