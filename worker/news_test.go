//go:build !js

package worker_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/provider/offline"
	"github.com/tidemark-ai/tidemark/tidemarktest"
	"github.com/tidemark-ai/tidemark/worker"
)

// overheard is a model that keeps what it was sent last.
type overheard struct {
	offline.Model
	mu   sync.Mutex // guards last
	last tidemark.Request
}

func (o *overheard) Stream(ctx context.Context, req tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	o.mu.Lock()
	o.last = req
	o.mu.Unlock()
	return o.Model.Stream(ctx, req)
}

// TestNews: what one conversation learned and what the owner writes is in the next request of each other one that may see it, behind
// the prompt that it has, whether the agent is beside the sessions or in an object of its own.
func TestNews(t *testing.T) {
	const garden, peer = "agent:main:local:dm:garden", "agent:main:whatsapp:dm:+491"
	for name, apart := range map[string]bool{"beside": false, "apart": true} {
		t.Run(name, func(t *testing.T) {
			model := &overheard{}
			s := serve(t, func(_ *worker.Config, a *actors) { a.provider, a.apart = model, apart })
			says := func(key, text string) tidemark.Request {
				t.Helper()
				s.say(key, text)
				model.mu.Lock()
				defer model.mu.Unlock()
				return model.last
			}
			first := map[string]string{}
			for _, key := range []string{"main", garden, peer} {
				first[key] = says(key, "Hello.").System
			}
			noted := func(key, word string, want int) {
				t.Helper()
				req := says(key, "Go on.")
				sent := req.Sent()
				if got := strings.Count(sent[len(sent)-1].PlainText(), word); got != want || strings.Contains(req.System, word) || req.System != first[key] {
					t.Errorf("%s: %q stands %d times in the last message, want %d; in the prompt: %v; the prompt is as it was: %v", key, word, got, want, strings.Contains(req.System, word), req.System == first[key])
				}
			}
			noted("main", "walnut", 0)
			s.say(garden, "I prefer walnut for the table in my house.")
			for i := range 20 {
				s.say(garden, fmt.Sprintf("Fact %d: the %dth lamp stands in room %d. %s", i, i, i*7, strings.Repeat("It is lit in the evening. ", 10)))
			}
			s.text(200, "PATCH", "/v1/sessions/"+garden, `{"window":8000}`)
			s.text(200, "POST", "/v1/sessions/"+garden+"/compact", "")
			for by := time.Now().Add(tidemarktest.Patience); !strings.Contains(s.text(200, "GET", "/v1/agents/main/memory-search?q=walnut", ""), "walnut"); time.Sleep(10 * time.Millisecond) {
				if time.Now().After(by) {
					t.Fatal("nothing was learned")
				}
			}
			for range 2 {
				noted("main", "walnut", 1)
				noted(peer, "walnut", 0)
			}
			s.text(200, "PUT", "/v1/agents/main/memory/MEMORY.md", "- The wedding is on 5 June.\n")
			noted("main", "5 June", 1)
			first[garden] = says(garden, "Go on.").System
			noted(garden, "5 June", 0)
			noted(peer, "5 June", 0)
		})
	}
}
