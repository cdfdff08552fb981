package session_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/session"
)

// TestRecallAtOnce: several who look for something in a short conversation, each in other times, find it, and so does
// who comes later: what one search read is not grown by two.
func TestRecallAtOnce(t *testing.T) {
	h := newHarness(t, session.Settings{})
	var log []tidemark.Message
	for i := range 120 {
		log = append(log, tidemark.NewText(tidemark.User, fmt.Sprintf("The keeper of gate%d is word%dx word%dy word%dz.", i, i, i, i)))
	}
	h.told(log...)
	if _, err := h.Recall(t.Context(), search.Wanted{Query: "keeper of gate119", Since: time.Date(2026, 3, 1, 8, 110, 0, 0, time.UTC)}); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for who := range 6 {
		group.Go(func() {
			for i := range 40 {
				gate := (who*17 + i*7) % 120
				since := time.Date(2026, 3, 1, 8, gate-gate%5, 0, 0, time.UTC)
				got, err := h.Recall(t.Context(), search.Wanted{Query: fmt.Sprintf("keeper of gate%d", gate), Since: since})
				if err != nil || len(got.Results) == 0 {
					t.Errorf("gate %d: %d results, %v", gate, len(got.Results), err)
					return
				}
			}
		})
	}
	group.Wait()
	if got, err := h.Recall(t.Context(), search.Wanted{Query: "keeper of gate99"}); err != nil || len(got.Results) == 0 {
		t.Errorf("alone: %d results, %v", len(got.Results), err)
	}
}
