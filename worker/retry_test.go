//go:build !js

package worker_test

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/worker"
)

// later is a runtime whose clock can be put forward.
type later struct {
	tidemark.Runtime
	by atomic.Int64
}

func (l *later) Now() time.Time { return l.Runtime.Now().Add(time.Duration(l.by.Load())) }

func (l *later) Wait(ctx context.Context) error {
	return l.Runtime.(interface{ Wait(context.Context) error }).Wait(ctx)
}

// failing is a model that fails while it is told to.
type failing struct {
	tidemark.Provider
	down atomic.Bool
}

func (f *failing) Stream(ctx context.Context, r tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	if !f.down.Load() {
		return f.Provider.Stream(ctx, r)
	}
	return func(yield func(tidemark.Delta, error) bool) {
		yield(tidemark.Delta{}, &tidemark.APIError{Class: tidemark.ClassAuth, Status: 401, Message: "no"})
	}
}

// TestRetry: what is a retry, for how long, and across resets; all else is said anew, whatever it looks like.
func TestRetry(t *testing.T) {
	const (
		alone    = `{"role":"user","content":"good morning"}`
		other    = `{"role":"user","content":"something else"}`
		shots    = alone + `,{"role":"assistant","content":"made up"},{"role":"user","content":"What is new today?"}`
		trailing = alone + `,{"role":"assistant","content":"made up"},{"role":"user","content":"What is new today?\n"}`
		reminded = alone + `,{"role":"assistant","content":"made up"},{"role":"user","content":"What is new today? <system-reminder>it rains</system-reminder>"}`
		block    = alone + `,{"role":"assistant","content":"made up"},{"role":"user","content":[{"type":"text","text":"What is new today?"}]}`
	)
	for _, row := range []struct {
		name  string
		key   string   // Idempotency-Key
		steps []string // what happens; "=" before what must be a retry, and all else must be said
	}{
		{"words again", "", []string{alone, "=" + alone, "=" + alone}},
		{"words, others, the words", "", []string{alone, other, alone, "=" + alone}},
		{"words behind a reset", "", []string{alone, "reset", alone, "=" + alone}},
		{"words behind ten minutes", "", []string{alone, "10m30s", "=" + alone}},
		{"words every day", "", []string{alone, "24h", alone, "24h", alone, "=" + alone}},
		{"a history again", "", []string{shots, other, "=" + shots}},
		{"a history every day", "", []string{shots, "24h", shots, "=" + shots, "24h", shots}},
		{"a history behind a reset", "", []string{shots, "reset", shots, "=" + shots}},
		{"other white space", "", []string{shots, trailing, "=" + trailing, "=" + shots}},
		{"white space alone", "", []string{alone, strings.Replace(alone, "g\"}", "g\\n\"}", 1), alone}},
		{"another reminder", "", []string{shots, reminded, "=" + reminded, "=" + shots}},
		{"another form of the same", "", []string{shots, "=" + block}},
		{"a key", "k", []string{alone, other + "409", "reset", "=" + alone, "24h", "=" + alone}},
		{"a key behind a failure", "k", []string{"down", alone + "502", "up", alone, "=" + alone}},
		{"behind failures without end", "", append(append([]string{"down"}, repeat(alone+"502", 70)...), "up", alone, "="+alone)},
	} {
		t.Run(row.name, func(t *testing.T) {
			clock, model := &later{}, &failing{}
			s := serve(t, func(c *worker.Config, a *actors) {
				clock.Runtime, model.Provider = a.rt, a.provider
				a.rt, c.Runtime, a.provider = clock, clock, model
			})
			for i, step := range row.steps {
				said, retry := strings.CutPrefix(step, "=")
				switch by, err := time.ParseDuration(step); {
				case err == nil:
					clock.by.Add(int64(by))
					continue
				case step == "reset":
					s.text(200, "POST", "/v1/sessions/agent:main:user:dm:z/reset", `{}`)
					continue
				case step == "down" || step == "up":
					model.down.Store(step == "down")
					continue
				}
				status := http.StatusOK
				if end := strings.LastIndexByte(said, '}') + 1; end < len(said) {
					fmt.Sscan(said[end:], &status)
					said = said[:end]
				}
				res := s.do("POST", "/v1/chat/completions", `{"user":"z","messages":[`+said+`]}`, "Idempotency-Key", row.key)
				if res.StatusCode != status || (res.Header.Get("X-Tidemark-Duplicate") == "1") != retry && status == http.StatusOK {
					t.Fatalf("step %d, %s: %d, duplicate %q", i, step, res.StatusCode, res.Header.Get("X-Tidemark-Duplicate"))
				}
			}
		})
	}
}

func repeat(step string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = step
	}
	return out
}
