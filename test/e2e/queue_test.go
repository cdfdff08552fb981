//go:build !js

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// people are what was said by people in a history, in order.
func people(all []tidemark.Message) []string {
	var out []string
	for _, m := range all {
		if m.Role == tidemark.User && len(m.Results()) == 0 {
			for _, b := range m.Content {
				if b.Type == tidemark.TypeText {
					out = append(out, b.Text)
				}
			}
		}
	}
	return out
}

// TestQueue: what is said while a turn runs waits, keeps its order, and is answered once.
func TestQueue(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		k := begin(t, s, "web", "a")
		gate := make(chan struct{})
		k.model.Push(tidemarktest.Step{Text: "First.", Gate: gate})
		e := k.stream("message 0", "q0")
		e.until("taken")
		const n = 6
		for i := 1; i < n; i++ {
			r := ask[struct{ ID, State string }](k, 202, "POST", k.path("/messages?wait=0"), map[string]string{"text": fmt.Sprintf("message %d", i), "id": fmt.Sprintf("q%d", i)})
			if r.ID != fmt.Sprintf("q%d", i) || r.State != "new" {
				t.Errorf("%+v", r)
			}
		}
		if got := k.info(); got.Busy == "" {
			t.Errorf("%+v", got)
		}
		close(gate)
		e.done()
		for i := range n {
			got := ask[turn](k, 200, "POST", k.path("/messages"), map[string]string{"text": fmt.Sprintf("message %d", i), "id": fmt.Sprintf("q%d", i)})
			if got.Text == "" || !got.Duplicate {
				t.Errorf("input %d: %+v", i, got)
			}
		}
		log := k.messages()
		if got, want := strings.Join(people(log), ","), "message 0,message 1,message 2,message 3,message 4,message 5"; got != want {
			t.Errorf("said %s", got)
		}
		if log[len(log)-1].Role != tidemark.Assistant {
			t.Errorf("%s", same(log))
		}
	})
}

// TestAbort: a turn that is stopped lets go of the model, says so, and the session goes on, whether
// the model has begun to answer or not.
func TestAbort(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		for _, row := range []struct {
			name, until string
			step        tidemarktest.Step
		}{
			{"speaking", "text", tidemarktest.Step{Text: "This one is held back for good.", Stall: 700}},
			{"silent", "taken", tidemarktest.Step{Hang: true}},
		} {
			k := begin(t, s, "web", row.name)
			k.model.Push(row.step)
			k.abort(row.name, row.until)
		}
	})
}

// abort stops a turn when its stream has come so far.
func (k *talk) abort(name, until string) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	e := k.stream("Speak.", "a1")
	e.until(until)
	if err := k.model.Await(ctx, 1); err != nil || k.model.Open() != 1 {
		k.t.Fatalf("%s: %d calls of the model are open, %v", name, k.model.Open(), err)
	}
	type aborted struct{ Aborted bool }
	if got := ask[aborted](k, 200, "POST", k.path("/abort"), nil); !got.Aborted {
		k.t.Errorf("%s: nothing was stopped", name)
	}
	ev, _ := e.until("error")
	if !strings.Contains(ev.data, `"type":"aborted"`) || !strings.Contains(ev.data, `"input":"a1"`) {
		k.t.Errorf("%s: %s", name, ev.data)
	}
	if err := k.model.Idle(ctx); err != nil {
		k.t.Errorf("%s: the call of the model is still open: %v", name, err)
	}
	if got := ask[aborted](k, 200, "POST", k.path("/abort"), nil); got.Aborted {
		k.t.Errorf("%s: a quiet session was stopped", name)
	}
	if got := k.say("And now?"); got.Text == "" || k.info().Busy != "" {
		k.t.Errorf("%s: %+v", name, got)
	}
}

// TestOneSession: many clients at once speak in one session; each is answered with its own turn.
func TestOneSession(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		k := begin(t, s, "web", "a")
		k.set(100_000)
		const n = 12
		texts := make([]string, n)
		atOnce(n, func(i int) {
			got, all := k.stream(fmt.Sprintf("voice %d.", i), fmt.Sprintf("v%d", i)).done()
			if texts[i] = got.Text; got.ID != fmt.Sprintf("v%d", i) || said(all) != got.Text {
				t.Errorf("input %d got %+v, pieces %q", i, got, said(all))
			}
		})
		log := k.messages()
		if err := tidemark.Check(log); err != nil {
			t.Error(err)
		}
		all := "\n" + strings.Join(people(log), "\n") + "\n"
		for i := range n {
			if strings.Count(all, fmt.Sprintf("\nvoice %d.\n", i)) != 1 || texts[i] == "" {
				t.Errorf("voice %d is %d times in the log, and was answered %q", i, strings.Count(all, fmt.Sprintf("voice %d.", i)), texts[i])
			}
		}
		if busy := k.info().Busy; busy != "" {
			t.Errorf("busy with %s", busy)
		}
	})
}

// TestManySessions: twenty conversations at once, none sees a word of another.
func TestManySessions(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		const n = 20
		talks := make([]*talk, n)
		for i := range talks {
			talks[i] = begin(t, s, "web", fmt.Sprintf("p%d", i))
		}
		for round := range 2 {
			atOnce(n, func(i int) {
				text := fmt.Sprintf("round %d of peer %d.", round, i)
				got, all := talks[i].stream(text, "").done()
				if !strings.HasPrefix(got.Text, "You said: "+text) || said(all) != got.Text {
					t.Errorf("peer %d was answered %q, pieces %q", i, got.Text, said(all))
				}
			})
		}
		for i, k := range talks {
			log := same(k.messages()) + k.text(k.path("/log")) + k.text(k.path("/view"))
			for other := range n {
				if has := strings.Contains(log, fmt.Sprintf("of peer %d.", other)); has != (other == i) {
					t.Errorf("session %d and peer %d: %v", i, other, has)
				}
			}
		}
		// The directory hears of all of them, in its time.
		k := talks[0]
		eventually(t, s, func() string {
			var out struct{ Sessions []about }
			if err := json.Unmarshal([]byte(k.text("/v1/sessions?limit=1000&agent=manysessions")), &out); err != nil {
				t.Fatal(err)
			}
			if found := len(out.Sessions); found != n {
				return fmt.Sprintf("the directory has %d of %d sessions", found, n)
			}
			return ""
		})
	})
}
