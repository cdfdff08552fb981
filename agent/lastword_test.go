package agent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/memory"
)

// TestLastWord: who says a value again behind another has the last word, on the same day, too. Without a
// reconciler a repetition is dropped as ever.
func TestLastWord(t *testing.T) {
	for name, how := range map[string]bool{"on": true, "off": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.configure(func(c *agent.Config) { c.Reconcile, c.Model, c.Digest = how, lastWord(), how })
			for i, port := range []string{"8080", "9090", "8080", "8080"} { // the last is no news to anybody
				w.remember(scope(t, owners), fmt.Sprint("x", i), "The staging port is "+port, "The owner likes tea")
				w.clock.move(time.Hour)
			}
			facts, _, err := w.Facts(t.Context(), "", 100)
			if want := map[bool]int{true: 4, false: 3}[how]; err != nil || len(facts) != want {
				t.Fatalf("%d facts, want %d: %+v, %v", len(facts), want, facts, err)
			}
			if !how {
				return
			}
			w.consolidate()
			w.settle()
			prompt, err := w.Prompt(t.Context(), scope(t, owners), w.clock.Now())
			if err != nil {
				t.Fatal(err)
			}
			for what, text := range map[string]string{"search": w.search(owners, "staging port"), "prompt": prompt, "digest": w.stored(memory.DigestFile)} {
				if !strings.Contains(text, "8080") || strings.Contains(text, "9090") {
					t.Errorf("%s has\n%s", what, text)
				}
			}
		})
	}
}

// TestLastWordOfEach: where files are shared, what one person says is not said by another.
func TestLastWordOfEach(t *testing.T) {
	w := newWorld(t)
	w.configure(func(c *agent.Config) { c.Reconcile, c.Model, c.Sharing = true, lastWord(), memory.ShareAgent })
	w.remember(scope(t, owners), "x1", "The staging port is 9090")
	w.clock.move(time.Hour)
	w.remember(scope(t, stanger), "p1", "The staging port is 8080")
	w.clock.move(time.Hour)
	w.remember(scope(t, owners), "x2", "The staging port is 8080")
	w.consolidate()
	if rows := w.ledger(); len(rows) != 1 || !strings.Contains(rows[0].Fact, "9090") || rows[0].Peer != "" {
		t.Errorf("ledger %+v", rows)
	}
}
