//go:build !js

package channels

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/internal/graph"
)

// perRef counts how often each row of a ledger was taken for delivery.
func perRef(sent []graph.Sent) map[string]int {
	out := map[string]int{}
	for _, s := range sent {
		out[s.Ref]++
	}
	return out
}

// TestFaults: an answer is sent once, whatever the platform does with it, and none is lost silently.
func TestFaults(t *testing.T) {
	everywhere(t, func(t *testing.T, target string) {
		h := newHost(t, target, graph.Config{Disorder: true}, "TIDEMARK_CHANNELS_WHATSAPP_ACCESS=open")
		count := 0
		say := func(p graph.Person, text string, faults ...graph.Fault) {
			h.meta.Fail(p.Number, faults...)
			h.meta.Say(p, h.meta.Text(p, text))
		}
		t.Run("the window is closed, then the person writes", func(t *testing.T) {
			say(bob, "first", graph.Fault{Code: 131047})
			h.eventually("the answer waits", func() bool { return strings.Contains(h.history(bobKey), `"first"`) && busy(h, bobKey) == "" })
			say(bob, "second")
			count += 2
			h.answers(count)
		})
		t.Run("the window is closed by a status", func(t *testing.T) {
			say(bob, "third", graph.Fault{Code: 131047, Mode: graph.Late})
			count++
			h.answers(count)
			h.acknowledged()
			say(bob, "fourth")
			count += 2 // the third once more: it was not delivered
			h.answers(count)
		})
		t.Run("too many to this pair", func(t *testing.T) {
			say(bob, "fifth", graph.Fault{Code: 131056})
			count++
			h.answers(count)
		})
		t.Run("taken, and the answer got lost", func(t *testing.T) {
			say(bob, "sixth", graph.Fault{Mode: graph.Cut})
			count++
			h.answers(count)
			h.acknowledged() // its status, by which it is known
			say(bob, "seventh")
			count++
			h.answers(count)
		})
		t.Run("a proxy is down", func(t *testing.T) {
			say(bob, "eighth", graph.Fault{Code: 131016})
			count++
			h.answers(count)
		})
		h.acknowledged()
		h.eventually("nothing is in work", func() bool { return busy(h, bobKey) == "" })
		most := 0
		for ref, n := range perRef(h.meta.Sent()) {
			if n > 1 {
				most++
				t.Logf("%s was taken %d times", ref, n)
			}
		}
		if len(h.meta.Sent()) != count || most > 1 { // the one that 131047 gave back
			t.Errorf("%d messages were taken, want %d; %d of them more than once, want the one that came back", len(h.meta.Sent()), count, most)
		}
	})
}

func busy(h *host, key string) string {
	var s struct{ Busy string }
	if status := h.call("GET", "/v1/sessions/"+url.PathEscape(key), nil, &s); status == http.StatusNotFound {
		return "not yet"
	}
	return s.Busy
}
