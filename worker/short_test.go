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

// TestMetricsEpisodes: a budget that is not met is counted when the operator is told of it.
func TestMetricsEpisodes(t *testing.T) {
	s := serve(t, nil)
	probe := s.actors.metrics.Probe()
	for _, e := range []tidemark.Event{
		{Type: "episodes", Data: []byte(`{"episodes":{"whole":3,"part":2,"budgetTokens":80000}}`)},
		{Type: "compaction", Data: []byte(`{"episodes":{"whole":1,"part":0,"budgetTokens":80000,"shortTokens":5}}`)},
		{Type: "notice", Data: []byte(`{"episodes":{"whole":0,"part":0,"budgetTokens":80000,"shortTokens":5}}`)},
		{Type: "notice", Data: []byte(`{"episodes":{"whole":0,"part":0,"budgetTokens":80000}}`)},
	} {
		probe.Observe(session.Notice{Type: session.NoticeEvent, Event: &e})
	}
	got := scrape(t, s)
	for name, want := range map[string]float64{"tidemark_episodes_short_total": 1, "tidemark_compactions_short_total": 0} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
}

// TestMetricsRoom: what a room counts under a name that nothing here knows is counted under it.
func TestMetricsRoom(t *testing.T) {
	s := serve(t, nil)
	probe := s.actors.metrics.Probe()
	for _, n := range []session.Notice{
		{Type: session.NoticeRoom, Room: "kite", Text: "flown", Count: 2},
		{Type: session.NoticeRoom, Room: "kite", Text: "lost", Count: 1},
		{Type: session.NoticeRoom, Room: session.RoomVectors, Text: "made", Count: 4},
	} {
		probe.Observe(n)
	}
	got := scrape(t, s)
	for name, want := range map[string]float64{
		`tidemark_room_total{kind="kite",how="flown"}`: 2, `tidemark_room_total{kind="kite",how="lost"}`: 1, `tidemark_vectors_total{result="made"}`: 4,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
}
