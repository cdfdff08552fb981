//go:build !js

package native

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-ai/tidemark"
)

func TestRuntime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		r := NewRuntime(slog.New(slog.NewTextHandler(&log, nil)))
		start := r.Now()
		if err := r.Sleep(t.Context(), time.Hour); err != nil || r.Now().Sub(start) != time.Hour {
			t.Errorf("slept %v, %v", r.Now().Sub(start), err)
		}
		ctx, cancel := r.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r.Go(func() { panic("boom") })
		r.Go(func() { _ = r.Sleep(context.Background(), time.Hour) })
		if err := r.Wait(ctx); !errors.Is(err, tidemark.ErrTimeout) || !strings.Contains(err.Error(), "1 goroutines") {
			t.Errorf("wait: %v, want a timeout that counts", err)
		}
		if err := r.Sleep(ctx, 0); !errors.Is(err, tidemark.ErrTimeout) {
			t.Errorf("sleep after the deadline: %v", err)
		}
		if r.Running() != 1 || strings.Count(log.String(), "panic=boom") != 1 {
			t.Errorf("%d running, log %q", r.Running(), log.String())
		}
		if err := r.Wait(t.Context()); err != nil || r.Running() != 0 {
			t.Errorf("wait: %v, %d running", err, r.Running())
		}
	})
}

// jumpClock is a runtime whose wall clock can be moved.
type jumpClock struct {
	*Runtime
	by atomic.Int64 // nanoseconds
}

func (j *jumpClock) Now() time.Time { return time.Now().Add(time.Duration(j.by.Load())) }

// TestAlarms plays a list of steps and compares the times at which alarms went off, in seconds.
func TestAlarms(t *testing.T) {
	type step struct {
		at   int    // when, seconds after the start
		do   string // set, cancel, jump (the clock, by seconds)
		key  string
		secs int
	}
	for _, tc := range []struct {
		name  string
		steps []step
		want  string
	}{
		{"one", []step{{0, "set", "a", 10}}, "a@10"},
		{"past is now", []step{{5, "set", "a", -100}}, "a@5"},
		{"in order of time", []step{{0, "set", "c", 30}, {0, "set", "a", 10}, {0, "set", "b", 20}}, "a@10 b@20 c@30"},
		{"moved forward", []step{{0, "set", "a", 100}, {1, "set", "a", 2}}, "a@3"},
		{"moved back", []step{{0, "set", "a", 10}, {5, "set", "a", 100}}, "a@105"},
		{"cancelled", []step{{0, "set", "a", 10}, {0, "set", "b", 20}, {5, "cancel", "a", 0}}, "b@20"},
		{"cancel of nothing", []step{{0, "cancel", "a", 0}}, ""},
		{"again after it went off", []step{{0, "set", "a", 10}, {20, "set", "a", 10}}, "a@10 a@30"},
		{"days ahead", []step{{0, "set", "a", 400_000}}, "a@400000"},
		{"clock jumps forward", []step{{0, "set", "a", 3600}, {10, "jump", "", 7200}}, "a@30"},
		{"clock jumps back", []step{{0, "set", "a", 100}, {10, "jump", "", -3600}}, "a@3700"},
		{"clock jumps forward to just before", []step{{0, "set", "a", 3600}, {10, "jump", "", 3570}}, "a@30"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rt := &jumpClock{Runtime: NewRuntime(nil)}
				start := time.Now()
				var got []string
				a := NewAlarms(rt, func(_ context.Context, key string) {
					got = append(got, key+"@"+time.Since(start).Round(time.Second).String())
				})
				for _, s := range tc.steps {
					time.Sleep(time.Duration(s.at)*time.Second - time.Since(start))
					synctest.Wait()
					switch s.do {
					case "set":
						a.Set(s.key, rt.Now().Add(time.Duration(s.secs)*time.Second))
					case "cancel":
						a.Set(s.key, time.Time{})
					case "jump":
						rt.by.Add(int64(time.Duration(s.secs) * time.Second))
					}
				}
				time.Sleep(500_000 * time.Second)
				synctest.Wait()
				var want []string
				for w := range strings.FieldsSeq(tc.want) {
					key, secs, _ := strings.Cut(w, "@")
					d, err := time.ParseDuration(secs + "s")
					if err != nil {
						t.Fatal(err)
					}
					want = append(want, key+"@"+d.String())
				}
				if g, w := strings.Join(got, " "), strings.Join(want, " "); g != w {
					t.Errorf("went off: %q, want %q", g, w)
				}
				if a.Pending() != 0 || len(a.byKey) != 0 {
					t.Errorf("%d pending, %d kept", a.Pending(), len(a.byKey))
				}
				a.Close()
				if err := rt.Wait(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestAlarmsOneCallAKey: an alarm that comes due while its key is being called waits; others do not.
func TestAlarmsOneCallAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := NewRuntime(nil)
		start := time.Now()
		events := make(chan string, 100)
		a := NewAlarms(rt, func(ctx context.Context, key string) {
			events <- key + " begins " + time.Since(start).String()
			if err := rt.Sleep(ctx, time.Minute); err != nil {
				events <- key + " cut off"
				return
			}
			events <- key + " ends " + time.Since(start).String()
		})
		a.Set("a", start)
		time.Sleep(time.Second)
		a.Set("a", start.Add(10*time.Second))
		a.Set("b", start.Add(20*time.Second))
		time.Sleep(70 * time.Second)
		a.Close()
		if err := rt.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.Set("c", start)
		close(events)
		var got []string
		for e := range events {
			got = append(got, e)
		}
		want := "a begins 0s; b begins 20s; a ends 1m0s; a begins 1m0s; a cut off; b cut off"
		alt := "a begins 0s; b begins 20s; a ends 1m0s; a begins 1m0s; b cut off; a cut off"
		if g := strings.Join(got, "; "); g != want && g != alt {
			t.Errorf("got %q, want %q", g, want)
		}
	})
}

// TestAlarmsMany: more at one time than may run at once, some of which panic; each goes off once.
func TestAlarmsMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys = 3*maxFiring + 7
		var log bytes.Buffer
		rt := NewRuntime(slog.New(slog.NewTextHandler(&log, nil)))
		start := time.Now()
		done := make(chan string, keys)
		var running atomic.Int64
		a := NewAlarms(rt, func(_ context.Context, key string) {
			if n := running.Add(1); n > maxFiring {
				t.Errorf("%d calls at once", n)
			}
			time.Sleep(time.Second)
			running.Add(-1)
			done <- key
			if strings.HasPrefix(key, "1") {
				panic("in a call")
			}
		})
		for i := range keys {
			a.Set(string(rune('0'+i%10))+time.Duration(i).String(), start.Add(time.Minute))
		}
		time.Sleep(time.Minute + 4*time.Second)
		synctest.Wait()
		if len(done) != keys || a.Pending() != 0 || !strings.Contains(log.String(), "in a call") {
			t.Errorf("%d of %d went off, %d pending, log %q", len(done), keys, a.Pending(), log.String())
		}
		a.Close()
	})
}
