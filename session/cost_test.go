package session_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// meter counts what a database is asked and what it gives.
type meter struct {
	tidemark.DB
	mu    sync.Mutex // guards the following
	count reads
}

// reads is what went through the database port.
type reads struct{ queries, rows, bytes, writes int }

func (m *meter) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	m.mu.Lock()
	m.count.writes++
	m.mu.Unlock()
	return m.DB.Tx(ctx, stmts)
}

func (m *meter) Query(ctx context.Context, sql string, args ...any) ([]tidemark.Row, error) {
	rows, err := m.DB.Query(ctx, sql, args...)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count.queries++
	m.count.rows += len(rows)
	for _, r := range rows {
		for i, v := range r {
			switch v := v.(type) {
			case string:
				m.count.bytes += len(v)
			case []byte:
				m.count.bytes += len(v)
			case int64, float64:
				m.count.bytes += 8
			case nil:
			default:
				panic(fmt.Sprintf("column %d has type %T", i, v))
			}
		}
	}
	return rows, err
}

// taken returns the counts and begins again.
func (m *meter) taken() reads {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.count
	m.count = reads{}
	return c
}

const (
	tail  = 60  // messages that stand behind the last compaction
	apart = 100 // messages between two compactions
)

// compacted is the history of a session that was compacted at its end and every so many messages
// before it, so that each summary covers the one before and the last leaves the tail.
func compacted(n, every int) []tidemark.Entry {
	messages := history(n)
	var out []tidemark.Entry
	for i, m := range messages {
		out = append(out, m)
		left := n - i - 1
		if left%every != 0 || i+1 < tail+2 {
			continue
		}
		out = append(out, overlay(m.At, tidemark.Edit{From: messages[0].ID, To: messages[i-tail].ID,
			Messages: []tidemark.Message{tidemark.NewText(tidemark.User, "[Conversation summary from automatic context compaction]\n\n"+strings.Repeat("It was about tides. ", 100))}}))
	}
	return out
}

// stubbed is a history of an agent's work: the first entries are under a summary, every block of the
// others but the last hundred is a stub.
func stubbed(n, summarised int) []tidemark.Entry {
	rng := rand.New(rand.NewPCG(3, 3))
	at := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	var out []tidemark.Entry
	var edits []tidemark.Edit
	for i := range n {
		call := fmt.Sprintf("toolu_%06d", i/2)
		m := tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse(call, "read", nil)}}
		if i%2 == 1 {
			m = tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult(call, code(rng, 20), false)}}
		}
		at = at.Add(time.Second)
		e := tidemark.Entry{ID: tidemark.EntryID(tidemark.NewID(at)), Kind: tidemark.KindMessage, At: at, Tokens: tidemark.Estimate(m), Payload: m.AppendJSON(nil)}
		out = append(out, e)
		if i >= summarised && i < n-100 {
			stub := m.Content[0]
			if i%2 == 1 {
				stub = tidemark.ToolResult(call, "[read, 30 lines]", false)
			}
			edits = append(edits, tidemark.Edit{From: e.ID, Block: 1, Blocks: []tidemark.Block{stub}})
		}
	}
	if summarised > 0 {
		out = append(out, overlay(at, tidemark.Edit{From: out[0].ID, To: out[summarised-1].ID, Messages: []tidemark.Message{tidemark.NewText(tidemark.User, "summary")}}))
	}
	for len(edits) > 0 { // one row a batch, as a strategy writes them
		k := min(len(edits), 500)
		out = append(out, overlay(at, edits[:k]...))
		edits = edits[k:]
	}
	return out
}

func overlay(at time.Time, edits ...tidemark.Edit) tidemark.Entry {
	raw, err := json.Marshal(tidemark.Overlay{By: []string{"test"}, Edits: edits})
	if err != nil {
		panic(err)
	}
	return tidemark.Entry{ID: tidemark.EntryID(tidemark.NewID(at)), Kind: tidemark.KindOverlay, At: at, Payload: raw}
}

// stored makes a session of entries and returns what opens it.
func stored(tb testing.TB, db tidemark.DB, rt tidemark.Runtime, entries []tidemark.Entry) session.Config {
	tb.Helper()
	c := session.Config{Rooms: finding, Key: "agent:main:main", DB: db, Blobs: tidemarktest.NewBlobs(), Provider: &model{}, Agent: &fakeAgent{}, Runtime: rt,
		Settings: session.Settings{Model: "test"}}
	s, err := session.Open(tb.Context(), c)
	if err != nil {
		tb.Fatal(err)
	}
	v, err := s.View(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	appendAll(tb, db, v.Log, entries...)
	return c
}

// woken opens a session and computes its view: what the next message waits for.
func woken(tb testing.TB, c session.Config) session.View {
	tb.Helper()
	s, err := session.Open(tb.Context(), c)
	if err != nil {
		tb.Fatal(err)
	}
	v, err := s.View(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

// TestWakeCostsTheTail: what is read to wake a session grows with its compactions, by their marks,
// and not with its messages.
func TestWakeCostsTheTail(t *testing.T) {
	cost := map[int]reads{}
	for _, n := range []int{100, 1000, 10_000} {
		m := &meter{DB: hosttest.DB(t)}
		c := stored(t, m, hosttest.Runtime(t), compacted(n, apart))
		m.taken()
		v := woken(t, c)
		cost[n] = m.taken()
		if len(v.Items) != tail+1 || v.Items[0].Overlay == "" {
			t.Fatalf("%d messages: the view has %d items, want a summary and %d messages", n, len(v.Items), tail)
		}
		t.Logf("%d messages: %+v", n, cost[n])
	}
	const perMark = 450 // bytes: the row of an overlay and the entries that it names
	for _, n := range []int{1000, 10_000} {
		marks := n/apart - 1
		if more := cost[n].bytes - cost[100].bytes; more > marks*perMark {
			t.Errorf("%d messages: %d bytes more than for 100, want at most %d for %d compactions", n, more, marks*perMark, marks)
		}
		if more := cost[n].rows - cost[100].rows; more > 3*marks {
			t.Errorf("%d messages: %d rows more than for 100, want at most %d for %d compactions", n, more, 3*marks, marks)
		}
	}
}

// TestCoveredViewReadsLittle: of 10,000 entries that are under summaries or stubs but for the last
// hundred, the skeletons and stubs are read, not the payloads. A stub costs some 300 bytes wherever
// it is named: in the mark, the position, the skeleton and its own words. A window of 200,000 tokens
// holds at most 5,000 of them.
func TestCoveredViewReadsLittle(t *testing.T) {
	if testing.Short() {
		t.Skip("make soak")
	}
	const window = 200_000
	for _, tc := range []struct {
		name    string
		entries []tidemark.Entry
		items   int
		fits    bool // into the window
		most    int  // bytes
	}{
		{"under summaries", compacted(10_000, apart), tail + 1, true, 100 << 10},
		{"under a summary and 4,900 stubs", stubbed(10_000, 5000), 5001, true, 2 << 20},
		{"under 9,900 stubs", stubbed(10_000, 0), 10_000, false, 3 << 20},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := &meter{DB: hosttest.DB(t)}
			c := stored(t, m, hosttest.Runtime(t), tc.entries)
			m.taken()
			v := woken(t, c)
			got := m.taken()
			t.Logf("%+v, %d tokens", got, v.View.Tokens())
			if len(v.Items) != tc.items || (v.View.Tokens() < window) != tc.fits {
				t.Errorf("the view has %d items and %d tokens, want %d items", len(v.Items), v.View.Tokens(), tc.items)
			}
			if got.bytes > tc.most {
				t.Errorf("read %d bytes, want at most %d", got.bytes, tc.most)
			}
		})
	}
}
