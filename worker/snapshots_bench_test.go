//go:build !js

package worker_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/provider/offline"
	"github.com/tidemark-ai/tidemark/room/snapshots"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/snapshot"
	"github.com/tidemark-ai/tidemark/worker"
)

// BenchmarkTree reads the tree of an agent with 20,000 snapshots over HTTP, which shall take less than 200 ms, and the
// list of a conversation with as many as it may have, both in pages of 1,000.
func BenchmarkTree(b *testing.B) {
	rt := hosttest.Runtime(b)
	a := &actors{db: hosttest.DB(b), blobs: hosttest.Blobs(b), rt: rt, provider: offline.Model{}, metrics: worker.NewMetrics(rt.Now),
		settings: session.Settings{Model: "offline"}, life: b.Context(), sessions: map[tidemark.Key]*session.Session{}, agents: map[string]*agent.Agent{}}
	s := httptest.NewServer(worker.New(worker.Config{Actors: a, Blobs: a.blobs, Runtime: rt, Metrics: a.metrics, Loopback: true, Version: "test"}))
	defer s.Close()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	ag, err := a.Agent(b.Context(), "main")
	must(err)
	const all, some = 20_000, 1000
	at := time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC)
	for n := 0; n < all; n += some {
		nodes := make([]snapshot.Node, some)
		for i := range nodes {
			nodes[i] = snapshot.Node{ID: fmt.Sprintf("snap-%05d", n+i), Kind: snapshot.KindSnapshot, Of: snapshot.OfSession, Name: "before the refactoring", Session: "agent:main:main",
				Created: at.Add(time.Duration(n+i) * time.Second), Messages: n + i, Tokens: 84_000, Hash: tidemark.HashOf([]byte{1})}
		}
		must(ag.Snapshots(b.Context(), nodes))
	}
	res, err := http.Post(s.URL+"/v1/sessions/main/messages", "application/json", strings.NewReader(`{"text":"hello"}`))
	must(err)
	must(res.Body.Close())
	one, err := a.Session(b.Context(), "agent:main:main", false)
	must(err)
	places, _ := session.Room[*snapshots.Room](one)
	_, err = places.Take(b.Context(), snapshots.Options{Name: "before the refactoring"})
	must(err)
	must(a.db.Tx(b.Context(), []tidemark.Stmt{{SQL: `WITH RECURSIVE i(n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM i WHERE n < ?)
		INSERT INTO snapshots(id, root, log, seq, created, node) SELECT 'snap-' || n, root, log, seq, created + n, node FROM i, snapshots`, Args: []any{snapshots.MaxNodes}}}))
	for path, want := range map[string]int{"/v1/tree": all + 1, "/v1/sessions/main/snapshots": snapshots.MaxNodes} {
		b.Run(path[len("/v1/"):], func(b *testing.B) {
			for b.Loop() {
				got := 0
				for cursor := ""; ; {
					res, err := http.Get(s.URL + path + "?order=newest&limit=1000&cursor=" + cursor)
					must(err)
					var p nodesPage
					raw, err := io.ReadAll(res.Body)
					must(err)
					must(json.Unmarshal(raw, &p))
					must(res.Body.Close())
					got += len(p.Nodes)
					if cursor = p.Next; cursor == "" {
						break
					}
				}
				if got != want {
					b.Fatalf("%d nodes, want %d", got, want)
				}
			}
		})
	}
}
