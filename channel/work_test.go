package channel_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/channel"
)

// shyDesk is one that fails to note aliases for some times.
type shyDesk struct {
	channel.Desk
	fails int
}

func (d *shyDesk) Rename(ctx context.Context, a channel.Alias) error {
	if d.fails--; d.fails >= 0 {
		return fmt.Errorf("rename: %w", tidemark.ErrUnavailable)
	}
	return d.Desk.Rename(ctx, a)
}

// settleAll lets time pass until nothing is due, and returns how long that was.
func (r *rig) settleAll() time.Duration {
	r.t.Helper()
	begun := r.rt.Now()
	for next, wakes := r.rest(), 0; !next.IsZero(); next, wakes = r.rest(), wakes+1 {
		if wakes == 500 {
			r.t.Fatalf("after %s something is due still", r.rt.Now().Sub(begun))
		}
		r.passTo(next)
	}
	return r.rt.Now().Sub(begun)
}

// TestAliasFirst: who has a new number is known by it from their first message, though the alias fails for a
// while; others wait with it for minutes at most, and those on another platform not at all.
func TestAliasFirst(t *testing.T) {
	alias := channel.Arrival{Alias: &channel.Alias{Account: "4400", Old: "15550001111", New: "15550002222"}}
	for _, row := range []struct {
		name   string
		fails  int
		before int // aliases of others
		known  bool
	}{
		{"at once", 0, 0, true},
		{"tried twice", 1, 0, true},
		{"for two minutes", 7, 0, true},
		{"behind many", 1, 300, true},
		{"for hours", 20, 0, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, channel.Rules{Access: channel.AccessOpen})
			desk := &shyDesk{r.book, row.fails}
			r.in.Desk = func(string) channel.Desk { return desk }
			if _, err := r.book.Stand(t.Context(), "fake", []string{"15550001111"}, "", channel.Owner); err != nil {
				t.Fatal(err)
			}
			var all []channel.Arrival
			for i := range row.before {
				all = append(all, channel.Arrival{Alias: &channel.Alias{Account: "4400", Old: fmt.Sprintf("1666%04d", i), New: fmt.Sprintf("1777%04d", i)}})
			}
			r.post(append(all, alias, said("15550002222", "1", "important"), said("15550003333", "2", "hello"))...)
			for end := r.rt.Now().Add(5 * time.Minute); ; {
				next := r.rest()
				if next.IsZero() || next.After(end) {
					break
				}
				r.passTo(next)
			}
			main, other := r.inbox.texts("agent:main:main"), r.inbox.texts("agent:main:fake:dm:15550002222")
			if row.known && (len(main) != 1 || len(other) != 0) || !row.known && len(other) != 1 {
				t.Errorf("the owner's session has %q, a stranger's %q", main, other)
			}
			r.want("agent:main:fake:dm:15550003333", "hello")
		})
	}
}

// TestAliasElsewhere: an alias that fails holds up nobody on another platform.
func TestAliasElsewhere(t *testing.T) {
	r := newRig(t, open)
	other := &fakePlatform{}
	c := r.in.Config
	c.Channels = map[string]channel.Channel{"fake": c.Channels["fake"], "other": {Platform: channel.Platform{Webhook: other, Library: other}, Rules: r.rules}}
	desk := &shyDesk{r.book, 5}
	c.Desk = func(string) channel.Desk { return desk }
	in, err := channel.OpenIngress(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	r.in = in
	r.post(channel.Arrival{Alias: &channel.Alias{Account: "4400", Old: "15550001111", New: "15550002222"}}, said("15550002222", "1", "waits"))
	if err := in.Receive(t.Context(), "other", signed, body(t, said("15550009", "2", "hello"))); err != nil {
		t.Fatal(err)
	}
	r.rest()
	if n := r.inbox.total(); n != 1 {
		t.Errorf("%d posts, want that of the other platform", n)
	}
	r.settleAll()
	if n := r.inbox.total(); n != 2 || desk.fails >= 0 {
		t.Errorf("%d posts, want both", n)
	}
}

// TestClockSetRight: what was put off while the clock was ahead is done soon after it is set right, with all
// that waits behind it, and in a life that begins then, too.
func TestClockSetRight(t *testing.T) {
	const ahead = 365 * 24 * time.Hour
	first, second := said("15550001", "1", "one"), said("15550001", "2", "two")
	for _, row := range []struct {
		name string
		fail func(r *rig) (mend func()) // makes what is posted be put off
	}{
		{"a session that was away", func(r *rig) func() {
			down := true
			r.inbox.fail = func(tidemark.Key, channel.Input) error {
				if down {
					return fmt.Errorf("post: %w", tidemark.ErrUnavailable)
				}
				return nil
			}
			return func() { down = false }
		}},
		{"an alias", func(r *rig) func() {
			desk := &shyDesk{r.book, 1000}
			r.in.Desk = func(string) channel.Desk { return desk }
			r.post(channel.Arrival{Alias: &channel.Alias{Account: "4400", Old: "15559999", New: "15558888"}})
			return func() { desk.fails = 0 }
		}},
		{"a channel that was not set up", func(r *rig) func() {
			r.in.Channels = map[string]channel.Channel{}
			return func() {
				r.in.Channels = map[string]channel.Channel{"fake": {Platform: channel.Platform{Webhook: r.fake, Library: r.fake}, Rules: r.rules}}
			}
		}},
	} {
		for _, again := range []bool{false, true} {
			t.Run(fmt.Sprint(row.name, ", another life ", again), func(t *testing.T) {
				r := newRig(t, open)
				r.pass(ahead)
				raw := body(t, first)
				if err := r.db.Tx(t.Context(), []tidemark.Stmt{{SQL: `INSERT INTO channel_bodies(platform, hash, piece, at, bytes) VALUES('fake', ?, 0, ?, ?)`,
					Args: []any{string(tidemark.HashOf(raw)), r.rt.Now().UnixMilli(), raw}}}); err != nil {
					t.Fatal(err)
				}
				mend := row.fail(r)
				r.rest()
				r.want("agent:main:fake:dm:15550001")
				r.pass(-ahead)
				mend()
				left, err := channel.Left(t.Context(), r.db, r.rt.Now())
				if err != nil || left.IsZero() || left.After(r.rt.Now().Add(time.Hour)) {
					t.Errorf("there is something to do at %s, %v", left, err)
				}
				if again {
					was := r.in.Config
					r.in = r.open(t.Context(), r.db)
					r.in.Config = was
				}
				r.post(second)
				if took := r.settleAll(); took > time.Hour {
					t.Errorf("it took %s", took)
				}
				r.want("agent:main:fake:dm:15550001", "one", "two")
			})
		}
	}
}

// TestUnsetLater: what was unpacked waits for its channel as long as a webhook does, whatever else it waits
// for; then it is given up visibly.
func TestUnsetLater(t *testing.T) {
	for _, row := range []struct {
		name   string
		before time.Duration // in which the session is away
		wait   time.Duration // without the channel
		dead   int
	}{
		{"a day", 0, 24 * time.Hour, 0},
		{"a day, after hours of tries", 8 * time.Hour, 24 * time.Hour, 0},
		{"six days", 0, 6 * 24 * time.Hour, 0},
		{"two weeks", 0, 14 * 24 * time.Hour, 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, open)
			down := true
			r.inbox.fail = func(tidemark.Key, channel.Input) error {
				if down {
					return fmt.Errorf("post: %w", tidemark.ErrUnavailable)
				}
				return nil
			}
			pass := func(d time.Duration) {
				for end := r.rt.Now().Add(d); ; {
					next := r.rest()
					if next.IsZero() || next.After(end) {
						r.passTo(end)
						return
					}
					r.passTo(next)
				}
			}
			r.post(said("15550001", "1", "one"), said("15550001", "2", "two"), said("15550002", "3", "three"))
			pass(row.before)
			was := r.in.Channels
			r.in.Channels = map[string]channel.Channel{}
			down = false
			pass(row.wait)
			dead, err := channel.GivenUp(t.Context(), r.db)
			if err != nil || len(dead) != row.dead {
				t.Errorf("given up: %+v, %v", dead, err)
			}
			for _, d := range dead {
				if d.At.After(r.rt.Now().Add(-6*24*time.Hour)) || !strings.Contains(d.Error, "not set up") {
					t.Errorf("given up: %+v, want after a week", d)
				}
			}
			r.in.Channels = was
			r.settleAll()
			if n := r.inbox.total(); n != 3-row.dead {
				t.Errorf("%d posts", n)
			}
			if row.dead == 0 {
				r.want("agent:main:fake:dm:15550001", "one", "two")
			}
		})
	}
}
