//go:build !js

package fault

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark/internal/graph"
)

// outboundTable are the steps of an answer on its way to a phone.
var outboundTable = []struct {
	place   string
	unknown int // answers that never arrive, and are known as that
	why     string
}{
	{"before webhook stored", 0, "it was not acknowledged: the platform posts it again"},
	{"webhook stored", 0, "the next life decodes it"},
	{"before webhook decoded:2", 0, "the body is there still"},
	{"webhook decoded", 0, "what it told waits for its turn"},
	{"before input stored", 0, "the arrival is posted again"},
	{"input stored:2", 0, "posted again it is the same input"},
	{"before arrival done", 0, "done twice it is done once"},
	{"arrival done:2", 0, "nothing is left of it but the answer"},
	{"before reply committed", 0, "the model is asked again, and its answer is in the ledger once"},
	{"reply committed", 0, "the answer is in the ledger, and the next life sends it"},
	{"before send begun", 0, "it is pending"},
	{"send begun:4", 1, "it may have been sent: it is not sent again, and no status comes"},
	{"before send settled:2", 0, "it was sent: not again, and a status says so"},
	{"send settled", 0, "it was sent: not again"},
	{"send settled:3", 0, "nor the ones before it"},
}

// TestKillWhileSending kills the server at each step of an answer over WhatsApp: every message is answered
// once in the ledger, and no answer arrives twice.
func TestKillWhileSending(t *testing.T) {
	for i, row := range outboundTable {
		if !asked(t) && i%some != 0 {
			continue
		}
		t.Run(row.place, func(t *testing.T) {
			t.Parallel()
			sendAndDie(t, row.place, row.unknown)
		})
	}
}

func sendAndDie(t *testing.T, place string, unknown int) {
	gaps := make([]time.Duration, 200)
	for i := range gaps {
		gaps[i] = 300 * time.Millisecond // webhooks come until there is a server again
	}
	meta, err := graph.New(graph.Config{Gaps: gaps})
	if err != nil {
		t.Fatal(err)
	}
	defer meta.Close()
	var ids atomic.Int64
	f := newFixture(t, newModel(t, &ids, 0).URL, map[string]any{"channels": map[string]any{"whatsapp": map[string]any{"baseUrl": meta.URL, "access": "open"}}})
	f.env = append(f.env, "WHATSAPP_TOKEN="+graph.DefaultToken, "WHATSAPP_APP_SECRET="+graph.DefaultAppSecret, "WHATSAPP_VERIFY_TOKEN="+graph.DefaultVerifyToken)
	doomed := f.serve("TIDEMARK_CRASH_AT=" + place)
	meta.SetWebhook(doomed.url + "/webhooks/whatsapp")
	next := make(chan *server, 1)
	go func() {
		<-doomed.done
		s := f.launch()
		s.ready()
		meta.SetWebhook(s.url + "/webhooks/whatsapp")
		next <- s
	}()
	const messages = 4
	for i := range messages {
		p := graph.Person{Number: "15557654322", Name: "Bob"}
		meta.Say(p, meta.Text(p, fmt.Sprint("message ", i)))
		f.told(i+1, unknown)
	}
	if !doomed.killed() {
		t.Fatalf("the server ended otherwise, or not:\n%s", doomed.log)
	}
	s := <-next
	f.told(messages, unknown)
	s.stop()
	refs := map[string]int{}
	for _, m := range meta.Sent() {
		if refs[m.Ref]++; refs[m.Ref] > 1 {
			t.Errorf("%q was sent %d times", m.Text, refs[m.Ref])
		}
	}
	if len(refs) != messages-unknown {
		t.Errorf("%d answers arrived, want %d", len(refs), messages-unknown)
	}
}

// told waits until the ledger holds n answers, none of them is on its way, and no more than that many are not
// known to have arrived.
func (f *fixture) told(n, unknown int) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	seen := ""
	for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		states := f.ledger()
		seen = strings.Join(states, " ")
		if len(states) != n || strings.Contains(seen, "pending") || strings.Contains(seen, "sending") || strings.Count(seen, "unknown") > unknown {
			continue
		}
		return
	}
	f.t.Fatalf("no %d answers within %s: %s", n, patience, seen)
}

// ledger reads the states of all answers, beside the server.
func (f *fixture) ledger() (states []string) {
	f.t.Helper()
	paths, err := f.kind.databases(f.home)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, path := range paths {
		db, err := sql.Open("sqlite", "file:"+path+"?mode=ro&_pragma=busy_timeout(5000)")
		if err != nil {
			f.t.Fatal(err)
		}
		rows, err := db.QueryContext(f.t.Context(), `SELECT state FROM outbound ORDER BY n`)
		for err == nil && rows.Next() {
			var state string
			if err = rows.Scan(&state); err == nil {
				states = append(states, state)
			}
		}
		if err != nil && !strings.Contains(err.Error(), "no such table") {
			f.t.Fatalf("%s: %v", filepath.Base(path), err)
		}
		if err := db.Close(); err != nil {
			f.t.Fatal(err)
		}
	}
	return states
}
