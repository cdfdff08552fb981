package compaction

import (
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// TestMarkerZone: a marker says times in the zone of what it covers, also once it was stored.
func TestMarkerZone(t *testing.T) {
	from := time.Date(2026, 2, 11, 22, 36, 0, 0, time.UTC)
	m := Marker{From: from.In(time.FixedZone("", 7200)), To: from.Add(time.Hour), Count: 1}
	stored, ok := MarkerOf(tidemark.Edit{Data: m.data()})
	for _, m := range []Marker{m, stored} {
		if text := m.Message().PlainText(); !ok || !strings.HasPrefix(text, "[Events 2026-02-12 00:36 to 01:36 evicted") {
			t.Error(text)
		}
	}
}
