package channel_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/channel"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestUnset: what was acknowledged waits for its channel, and is given up visibly after a week; posted again,
// it begins anew.
func TestUnset(t *testing.T) {
	for _, row := range []struct {
		name  string
		wait  time.Duration // without the channel
		dead  int           // bodies that are given up by then
		again bool          // the platform posts it again
	}{
		{"for a moment", time.Second, 0, false},
		{"for a day, and posted again", 24 * time.Hour, 0, true},
		{"for two weeks, and posted again", 14 * 24 * time.Hour, 1, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, open)
			raw := body(t, said("15550001", "a", "hi"))
			if err := r.db.Tx(t.Context(), []tidemark.Stmt{{SQL: `INSERT INTO channel_bodies(platform, hash, piece, at, bytes) VALUES('fake', ?, 0, ?, ?)`,
				Args: []any{string(tidemark.HashOf(raw)), r.rt.Now().UnixMilli(), raw}}}); err != nil {
				t.Fatal(err)
			}
			none, err := channel.OpenIngress(t.Context(), channel.Config{DB: r.db, Blobs: r.blobs, Runtime: r.rt, Sessions: r.inbox, Channels: map[string]channel.Channel{},
				Desk: func(string) channel.Desk { return r.book }, Schedule: func(time.Time) {}})
			if err != nil {
				t.Fatal(err)
			}
			for end := r.rt.Now().Add(row.wait); ; {
				next, err := none.Wake(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if next.IsZero() || next.After(end) {
					break
				}
				r.passTo(next)
			}
			if dead, err := channel.GivenUp(t.Context(), r.db); err != nil || len(dead) != row.dead {
				t.Errorf("given up: %+v, %v", dead, err)
			}
			r.in = r.open(t.Context(), r.db)
			if row.again {
				if err := r.in.Receive(t.Context(), "fake", signed, raw); err != nil {
					t.Fatal(err)
				}
			} else {
				r.pass(time.Hour)
			}
			r.rest()
			r.want("agent:main:fake:dm:15550001", "hi")
			if dead, err := channel.GivenUp(t.Context(), r.db); err != nil || len(dead) != 0 {
				t.Errorf("given up: %+v, %v", dead, err)
			}
		})
	}
}

// TestGivenUpStays: what was given up is listed for 30 days from then, whatever the platform's clock said,
// the newest first; posted again, it begins anew.
func TestGivenUpStays(t *testing.T) {
	r := newRig(t, open)
	down := true
	r.inbox.fail = func(tidemark.Key, channel.Input) error {
		if down {
			return fmt.Errorf("no: %w", tidemark.ErrInvalid)
		}
		return nil
	}
	times := []time.Time{{}, r.rt.Now().Add(-60 * 24 * time.Hour), r.rt.Now()}
	arrivals := make([]channel.Arrival, len(times))
	for i, at := range times {
		arrivals[i] = said(fmt.Sprint("1555000", i), fmt.Sprint("m", i), "x")
		arrivals[i].Message.At = at
		r.post(arrivals[i])
		for next := r.rest(); !next.IsZero(); next = r.rest() {
			r.passTo(next)
		}
	}
	dead, err := channel.GivenUp(t.Context(), r.db)
	if err != nil || len(dead) != len(times) {
		t.Fatalf("given up: %+v, %v", dead, err)
	}
	for i := range dead[1:] {
		if dead[i].N < dead[i+1].N || dead[i].At.Before(dead[i+1].At) {
			t.Errorf("not the newest first: %+v", dead)
		}
	}
	down = false
	r.post(arrivals[0], said("15550009", "other", "x")) // another body
	r.rest()
	r.want("agent:main:fake:dm:15550000", "x")
	down = true
	r.pass(31 * 24 * time.Hour)
	r.post(said("15550008", "last", "x"))
	for next := r.rest(); !next.IsZero(); next = r.rest() {
		r.passTo(next)
	}
	if dead, err = channel.GivenUp(t.Context(), r.db); err != nil || len(dead) != 1 {
		t.Errorf("given up, 30 days later: %+v, %v", dead, err)
	}
}

// TestLaneOfPerson: by whatever names a person comes, their messages keep their order; one of the same name
// on another platform waits for nobody.
func TestLaneOfPerson(t *testing.T) {
	for _, row := range []struct {
		name          string
		first, second []string // names
		knows         []string // what the desk knew before
	}{
		{"phone, then id and phone", []string{"15550001"}, []string{"US.a1", "15550001"}, nil},
		{"id and phone, then phone", []string{"US.a1", "15550001"}, []string{"15550001"}, nil},
		{"phone, then id, both known", []string{"15550001"}, []string{"US.a1"}, []string{"US.a1", "15550001"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, open)
			if row.knows != nil {
				r.who(row.knows...)
			}
			r.fake.open = func(channel.Media) error { return errors.Join(errors.New("down"), tidemark.ErrUnavailable) }
			a, b := said("15550001", "1", "look at this"), said("15550001", "2", "what is it?")
			a.Message.From, b.Message.From = row.first, row.second
			a.Message.Media = []channel.Media{{ID: "x", Type: "image/png", Note: "image"}}
			b.Message.At = b.Message.At.Add(time.Second)
			r.post(a)
			r.rest()
			r.post(b)
			next := r.rest()
			if n := r.inbox.total(); n != 0 {
				t.Errorf("%d overtook", n)
			}
			r.fake.open = nil
			for ; !next.IsZero(); next = r.rest() {
				r.passTo(next)
			}
			if len(r.inbox.posts) != 1 {
				t.Errorf("%d conversations: %v", len(r.inbox.posts), r.inbox.posts)
			}
			for _, posts := range r.inbox.posts {
				if len(posts) != 2 || posts[0].ID != "1" || posts[1].ID != "2" {
					t.Errorf("posted %+v", posts)
				}
			}
		})
	}
}

// TestLanesOfPlatforms: the same number on two platforms is two people.
func TestLanesOfPlatforms(t *testing.T) {
	r := newRig(t, open)
	other := &fakePlatform{}
	c := r.in.Config
	c.Channels = map[string]channel.Channel{"fake": c.Channels["fake"], "other": {Platform: channel.Platform{Webhook: other, Library: other}, Rules: r.rules}}
	in, err := channel.OpenIngress(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	r.in, r.fake.open = in, func(channel.Media) error { return errors.Join(errors.New("down"), tidemark.ErrUnavailable) }
	a := said("15550001", "1", "look at this")
	a.Message.Media = []channel.Media{{ID: "x", Type: "image/png", Note: "image"}}
	r.post(a)
	r.rest()
	if err := in.Receive(t.Context(), "other", signed, body(t, said("15550001", "2", "hello"))); err != nil {
		t.Fatal(err)
	}
	r.rest()
	if n := r.inbox.total(); n != 1 {
		t.Errorf("%d posts: one waits for who has the same number elsewhere", n)
	}
}

// downDesk is one that cannot be asked.
type downDesk struct {
	channel.Desk
	down bool
}

func (d *downDesk) Who(ctx context.Context, platform string, names []string, meet bool) (channel.Person, error) {
	if d.down {
		return channel.Person{}, fmt.Errorf("who: %w", tidemark.ErrUnavailable)
	}
	return d.Desk.Who(ctx, platform, names, meet)
}

// TestDeskDown: a desk that cannot be asked holds up messages, loses none and mixes none up.
func TestDeskDown(t *testing.T) {
	r := newRig(t, open)
	desk := &downDesk{r.book, true}
	c := r.in.Config
	c.Desk = func(string) channel.Desk { return desk }
	in, err := channel.OpenIngress(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	r.in = in
	r.post(said("15550001", "1", "one"), channel.Arrival{Status: &tidemark.Delivery{Ref: "agent:main:main/7", ID: "w", Status: "sent"}})
	r.post(said("15550001", "2", "two"))
	next := r.rest()
	if len(r.inbox.status) != 1 {
		t.Errorf("statuses: %+v", r.inbox.status)
	}
	for range 5 {
		r.passTo(next)
		next = r.rest()
	}
	desk.down = false
	for ; !next.IsZero(); next = r.rest() {
		r.passTo(next)
	}
	r.want("agent:main:fake:dm:15550001", "one", "two")
}

// looked is a database that has nothing and counts how often it is looked for bodies.
type looked struct {
	tidemark.DB
	looks atomic.Int64
}

func (d *looked) Query(_ context.Context, sql string, _ ...any) ([]tidemark.Row, error) {
	if strings.Contains(sql, "FROM channel_bodies WHERE") {
		d.looks.Add(1)
	}
	return nil, nil
}

// TestKick: a kick that comes as the work ends is not lost.
func TestKick(t *testing.T) {
	r := newRig(t, open)
	c := r.in.Config
	asked := time.Time{}
	c.Schedule = func(at time.Time) { asked = at }
	in, err := channel.OpenIngress(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if in.Kick(); asked.IsZero() || asked.After(r.rt.Now().Add(10*time.Second)) {
		t.Errorf("behind a kick a wake is asked for at %s", asked)
	}
	r.rt.Wait(t.Context())
	db := &looked{DB: r.db}
	in.DB = db
	for i := range 200_000 {
		before := db.looks.Load()
		in.Kick()
		for begun, spins := time.Now(), 0; db.looks.Load() == before; spins++ {
			if runtime.Gosched(); spins%4096 == 4095 && time.Since(begun) > tidemarktest.Patience {
				t.Fatalf("kick %d is lost", i)
			}
		}
		for range i % 64 * 8 { // so that the next one meets the work at any point of its end
			db.looks.Load()
		}
	}
}

// TestForeignRefs: a status of what other software sent wakes no session.
func TestForeignRefs(t *testing.T) {
	r := newRig(t, open)
	for i, ref := range []string{"order/1234", "main/3", "agent:main:main", "agent:main:main/x", "agent:main:main/-1", "agent:main:main/+1", "agent:main:main/01", "agent:main:main/0", "/1", ""} {
		r.post(channel.Arrival{Status: &tidemark.Delivery{Ref: ref, ID: fmt.Sprint("w", i), Status: "sent"}})
	}
	r.rest()
	if len(r.inbox.status) != 0 {
		t.Errorf("told %+v", r.inbox.status)
	}
	r.post(channel.Arrival{Status: &tidemark.Delivery{Ref: "agent:main:main/12", ID: "w", Status: "sent"}})
	r.rest()
	if len(r.inbox.status) != 1 {
		t.Errorf("told %+v, want one", r.inbox.status)
	}
}
