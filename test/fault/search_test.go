//go:build !js

package fault

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestKillInSearch kills the server while it asks a model's API what it refuses, and where it takes that out: the next one begins
// the search anew, one block reads as a note afterwards and its neighbours as they were said, and each message has one answer.
func TestKillInSearch(t *testing.T) {
	for i, place := range []string{"probe made:5", "before part taken out", "part taken out", "probe made", "before probe made", "probe made:2", "before probe made:8", "probe made:11"} {
		if !asked(t) && i > 2 {
			continue
		}
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			killInSearch(t, place)
		})
	}
}

func killInSearch(t *testing.T, place string) {
	var ids atomic.Int64
	m := newModel(t, &ids, 0)
	var mu sync.Mutex
	filters := false
	var taken []string // what was sent in the last request that was taken
	m.Respond(func(c tidemarktest.APICall) tidemarktest.Step {
		mu.Lock()
		defer mu.Unlock()
		var sent []string
		for _, m := range c.Messages {
			sent = append(sent, m.PlainText())
		}
		if filters && strings.Contains(strings.Join(sent, "\n"), "word number 3 of") {
			return tidemarktest.Step{Status: 400, Message: "those words make me dizzy"}
		}
		taken = sent
		return m.answer(c)
	})
	f := newFixture(t, m.URL, nil)
	var at address
	doomed := f.serve("TIDEMARK_CRASH_AT=" + place)
	at.set(doomed.url)
	next := make(chan *server, 1)
	go func() {
		<-doomed.done
		s := f.launch()
		s.ready()
		at.set(s.url)
		next <- s
	}()
	k := newTalker(t, &at, "main")
	say := func(id, text string) {
		if got := k.deliver(input{id: id, kind: "messages", text: text, how: wait}); strings.HasPrefix(got, "error") {
			t.Fatalf("%s: %s", id, got)
		}
	}
	const before = 8
	for i := range before {
		say(fmt.Sprint("in", i), fmt.Sprintf("word number %d of eight", i))
	}
	mu.Lock()
	filters = true
	mu.Unlock()
	say("then", "and then?")
	select {
	case <-doomed.done:
	case <-time.After(tidemarktest.Patience):
		t.Fatalf("the search does not pass %q", place)
	}
	if !doomed.killed() {
		t.Fatalf("the server ended otherwise:\n%s", doomed.log)
	}
	s := <-next
	say("last", "and now?")
	f.settled(s, "main")
	s.stop()
	mu.Lock()
	now := strings.Join(taken, "\n")
	mu.Unlock()
	for i := range before {
		if said := strings.Contains(now, fmt.Sprintf("word number %d of", i)); said != (i != 3) {
			t.Errorf("what was said in message %d is sent: %v", i, said)
		}
	}
	if notes := strings.Count(now, "[Refused by the model's API"); notes != 1 || !strings.Contains(now, "and then?") || !strings.Contains(now, "and now?") {
		t.Errorf("sent with %d notes:\n%s", notes, now)
	}
	e := inspect(t, f)
	e.account([]*talker{k}, 1)
	if len(e.failures) > 0 {
		t.Errorf("failures %q", e.failures)
	}
}
