//go:build !js

package worker_test

import (
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

// TestMetricsShort: what could not be compacted far enough is counted, as a compaction or a notice.
func TestMetricsShort(t *testing.T) {
	s := serve(t, nil)
	probe := s.actors.metrics.Probe()
	for _, e := range []tidemark.Event{
		{Type: "compaction", Data: []byte(`{"shortTokens":12}`)},
		{Type: "notice", Data: []byte(`{"shortTokens":12}`)},
		{Type: "compaction", Data: []byte(`{"messages":12}`)},
		{Type: "notice"},
	} {
		probe.Observe(session.Notice{Type: session.NoticeEvent, Event: &e})
	}
	got := scrape(t, s)
	if n := got["tidemark_compactions_short_total"]; n != 2 {
		t.Errorf("%v fell short, want 2", n)
	}
	if n := got["tidemark_compactions_total"]; n != 2 {
		t.Errorf("%v compactions, want 2", n)
	}
}
