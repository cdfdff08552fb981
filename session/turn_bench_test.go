//go:build !js

package session_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/provider"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// BenchmarkWake opens a session of n messages and computes its view: a summary and the same 60
// messages in each row. Compacted once, it must cost the same at every n; a compaction adds the mark
// of its overlay.
func BenchmarkWake(b *testing.B) {
	for _, of := range []struct{ messages, every int }{{100, 100}, {1000, 1000}, {10_000, 10_000}, {1000, apart}, {10_000, apart}} {
		b.Run(fmt.Sprintf("messages=%d/compactions=%d", of.messages, of.messages/of.every), func(b *testing.B) {
			benchWake(b, compacted(of.messages, of.every))
		})
	}
}

func benchWake(b *testing.B, entries []tidemark.Entry) {
	_, rt := life(b)
	m := &meter{DB: fileDB(b)}
	c := stored(b, m, rt, entries)
	woken(b, c) // opens the connections
	m.taken()
	rounds := 0
	for b.Loop() {
		woken(b, c)
		rounds++
	}
	got := m.taken()
	b.ReportMetric(float64(got.rows)/float64(rounds), "rows/op")
	b.ReportMetric(float64(got.bytes)/float64(rounds), "read-B/op")
}

// BenchmarkTurn is a message and its answer in n sessions at once, over one database in a file; one
// operation is one turn in each. Its baseline is the bare call of the provider, as often and as many
// at once, with a request of the size that the session sends. in-process answers from memory, http
// is the fake model server over real HTTP.
func BenchmarkTurn(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		for _, p := range []struct {
			name string
			make func(testing.TB, tidemark.Runtime) tidemark.Provider
		}{
			{"in-process", func(testing.TB, tidemark.Runtime) tidemark.Provider { return one{} }},
			{"http", overHTTP},
		} {
			b.Run(fmt.Sprintf("sessions=%d/%s/bare", n, p.name), func(b *testing.B) {
				_, rt := life(b)
				model := p.make(b, rt)
				req := tidemark.Request{Model: "test", MaxTokens: 1000}
				for _, e := range history(2 * turnsEach) {
					m, err := e.Message()
					if err != nil {
						b.Fatal(err)
					}
					req.Messages = append(req.Messages, m)
				}
				req.Messages = req.Messages[:turnsEach+1]
				atOnce(b, n, func(int) error {
					_, err := tidemark.Complete(b.Context(), model, req)
					return err
				}, nil)
			})
			b.Run(fmt.Sprintf("sessions=%d/%s/turn", n, p.name), func(b *testing.B) { benchTurns(b, n, p.make) })
		}
	}
}

// turnsEach is how many turns a session of the benchmark lives: the view grows with each.
const turnsEach = 20

func benchTurns(b *testing.B, n int, open func(testing.TB, tidemark.Runtime) tidemark.Provider) {
	ctx, rt := life(b)
	m := &meter{DB: fileDB(b)}
	c := session.Config{DB: m, Blobs: tidemarktest.NewBlobs(), Provider: open(b, rt), Runtime: rt}
	sessions := make([]*session.Session, n)
	subs := make([]*session.Subscription, n)
	round, posted, made := 0, 0, reads{}
	renew := func() { // not counted
		used := m.taken()
		made.queries, made.writes = made.queries+used.queries, made.writes+used.writes
		for i := range sessions {
			if round%turnsEach != 0 {
				break
			}
			if subs[i] != nil {
				subs[i].Close()
			}
			c.Key = tidemark.Key(fmt.Sprintf("agent:main:local:dm:s%d-%d", round/turnsEach, i))
			sessions[i] = openSession(b, ctx, c)
			var err error
			if subs[i], err = sessions[i].Subscribe(); err != nil {
				b.Fatal(err)
			}
		}
		round++
		posted += n
		m.taken()
	}
	input := session.Input{Message: tidemark.NewText(tidemark.User, words60)}
	atOnce(b, n, func(i int) error {
		r, err := sessions[i].Post(ctx, input)
		if err != nil {
			return err
		}
		return ended(subs[i], r.ID)
	}, renew)
	used := m.taken()
	b.ReportMetric(float64(made.queries+used.queries)/float64(posted), "queries/turn")
	b.ReportMetric(float64(made.writes+used.writes)/float64(posted), "tx/turn")
	b.ReportMetric(float64(resident())/(1<<20), "RSS-MB")
}

const words60 = "The harbour master asks when the tide turns, whether the gauge at the north pier reads the same as the one in the chart, and who wrote the last entry of the ledger before the storm came in from the west and took the signal from the outer buoy."

// ended waits for the end of the turn that took an input up.
func ended(sub *session.Subscription, id string) error {
	const most = time.Minute
	limit := time.NewTimer(most)
	defer limit.Stop()
	for {
		select {
		case <-sub.Ready:
			for n, ok := sub.Next(); ok; n, ok = sub.Next() {
				switch {
				case n.Type == session.NoticeError:
					return fmt.Errorf("input %s: %s", id, n.Text)
				case n.Type == session.NoticeDone && slices.Contains(n.Inputs, id):
					return nil
				}
			}
		case <-limit.C:
			return fmt.Errorf("input %s: no end of its turn", id)
		}
	}
}

// overHTTP is the Messages API of the fake server.
func overHTTP(tb testing.TB, rt tidemark.Runtime) tidemark.Provider {
	api := tidemarktest.NewAPI(tb)
	api.Respond(func(tidemarktest.APICall) tidemarktest.Step {
		return tidemarktest.Step{Text: "The tide is low at six and high at noon.", Piece: 100}
	})
	return &provider.Anthropic{BaseURL: api.URL, Model: "test", Key: "none", Transport: native.Transport(), Runtime: rt}
}

// atOnce runs f n times at once in each round and reports how long each took. before, if any, comes
// before each round and is not counted.
func atOnce(b *testing.B, n int, f func(i int) error, before func()) {
	took := make([]time.Duration, 0, 1024)
	errs := make(chan error, n)
	spent := time.Duration(0)
	for b.Loop() {
		if before != nil {
			b.StopTimer()
			before()
			b.StartTimer()
		}
		each := make([]time.Duration, n)
		began := time.Now()
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() {
				start := time.Now()
				if err := f(i); err != nil {
					errs <- err
				}
				each[i] = time.Since(start)
			})
		}
		all.Wait()
		spent += time.Since(began)
		select {
		case err := <-errs:
			b.Fatal(err)
		default:
		}
		took = append(took, each...)
	}
	slices.Sort(took)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(float64(len(took))/spent.Seconds(), "turns/s")
	b.ReportMetric(ms(took[len(took)/2]), "p50-ms")
	b.ReportMetric(ms(took[len(took)*99/100]), "p99-ms")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkIdle opens 1,000 sessions that each had one turn and keeps them, as a server does until it
// forgets them.
func BenchmarkIdle(b *testing.B) {
	const n = 1000
	for b.Loop() {
		b.StopTimer()
		ctx, rt := life(b)
		c := session.Config{DB: fileDB(b), Blobs: tidemarktest.NewBlobs(), Provider: one{}, Agent: &fakeAgent{}, Runtime: rt}
		open := make([]*session.Session, n)
		talk(b, ctx, openSession(b, ctx, named(c, n))) // opens connections, fills caches
		before, rss := heap(), returned()
		b.StartTimer()
		for i := range open {
			open[i] = openSession(b, ctx, named(c, i))
			talk(b, ctx, open[i])
		}
		b.StopTimer()
		after := heap()
		b.ReportMetric(float64(after-before)/n, "heap-B/session")
		b.ReportMetric(float64(returned()-rss)/n, "RSS-B/session")
		b.ReportMetric(float64(resident())/(1<<20), "RSS-MB")
		for _, s := range open { // alive until here
			if !s.Idle() {
				b.Fatal("a session is not idle")
			}
		}
		b.StartTimer()
	}
}

func named(c session.Config, i int) session.Config {
	c.Key = tidemark.Key(fmt.Sprintf("agent:main:local:dm:idle%d", i))
	return c
}

// talk has one turn and waits until the session is quiet.
func talk(tb testing.TB, ctx context.Context, s *session.Session) {
	tb.Helper()
	sub, err := s.Subscribe()
	if err != nil {
		tb.Fatal(err)
	}
	r, err := s.Post(ctx, session.Input{Message: tidemark.NewText(tidemark.User, words60)})
	if err == nil {
		err = ended(sub, r.ID)
	}
	sub.Close()
	if err != nil {
		tb.Fatal(err)
	}
	for !s.Idle() { // the run ends just behind its last notice
		if err := s.Runtime.Sleep(ctx, time.Millisecond); err != nil {
			tb.Fatal(err)
		}
	}
}
