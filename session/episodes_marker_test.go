package session_test

import (
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/session"
)

// TestMarkerOverEpisodes: a marker also stands for what left as an episode and has no line of its own in the span.
func TestMarkerOverEpisodes(t *testing.T) {
	d := newScribe(t, session.Settings{Window: 20_000, Reserve: 2_000, Keep: 500}, 5_000, compaction.Pointer{Tail: 1})
	markers := 0
	d.work("expl a | look 800")
	d.work("look 800", "look 800")
	d.work("look 800", "look 800 | end seen", "act b: a | look 300")
	for range 8 {
		d.say(strings.Repeat("tide and time ", 800))
	}
	for _, m := range d.sent() {
		for _, b := range m.Content {
			if strings.HasPrefix(b.Text, compaction.MarkerPrefix) {
				markers++
			}
		}
	}
	if list := d.events("selfcheck"); len(list) > 0 || markers == 0 {
		t.Errorf("%d markers: %s", markers, list)
	}
}
