package session_test

import (
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/session"
)

// TestCompactNamesMarkers: a summary that a person asks for says of the markers that it takes in what they
// said, so that what was evicted before can still be asked for.
func TestCompactNamesMarkers(t *testing.T) {
	h := newHarness(t, small)
	h.stop()
	h.strategies = []compaction.Strategy{compaction.Pointer{Tail: 2}, compaction.Summary{}}
	h.open()
	h.fill(7)
	for range 3 {
		h.say(filler(1))
	}
	var stood []string
	for line := range strings.Lines(strings.Join(texts(h.sent()), "\n")) {
		if strings.HasPrefix(line, compaction.MarkerPrefix) {
			stood = append(stood, strings.TrimSpace(line))
		}
	}
	if len(stood) == 0 {
		t.Fatal("no marker stands")
	}
	n := len(h.events("compaction"))
	h.post(session.Input{Kind: session.InputCompact, Text: "keep the prices", Origin: tidemark.Origin{From: tidemark.FromPerson, Owner: true}})
	events := h.events("compaction")
	if len(events) != n+1 || !strings.Contains(events[n], `"summary"`) {
		t.Fatalf("compactions: %q", events)
	}
	head := h.sent()[0].Content[0].Text
	if !strings.HasPrefix(head, compaction.SummaryMarker+"\n\n## Evicted before") {
		t.Errorf("the summary does not begin with what was evicted: %s", head)
	}
	for _, m := range stood {
		if !strings.Contains(head, m) {
			t.Errorf("the summary does not name %q:\n%s", m, head)
		}
	}
}

// TestSystemText: the default text says what becomes of older parts; that of the summary is as it ever was.
func TestSystemText(t *testing.T) {
	const summarised = "You are a helpful assistant in a conversation that never ends. Older parts of it are summarised; tools bring back the originals."
	for _, row := range []struct {
		name       string
		strategies []compaction.Strategy
		own, want  string
	}{
		{"by default", nil, "", summarised},
		{"summary", []compaction.Strategy{compaction.Summary{}}, "", summarised},
		{"pointer", []compaction.Strategy{compaction.Pointer{}}, "", "marker"},
		{"both", []compaction.Strategy{compaction.Pointer{}, compaction.Summary{}}, "", "recall"},
		{"its own", []compaction.Strategy{compaction.Pointer{}}, "Be kind.", "Be kind."},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := newHarness(t, session.Settings{System: row.own})
			h.stop()
			h.strategies = row.strategies
			h.open()
			h.say("Hello.")
			got, _, _ := strings.Cut(h.model.last().System, "\n")
			if (row.want == summarised || row.own != "") && got != row.want || !strings.Contains(got, row.want) || row.want != summarised && strings.Contains(got, "summarised") {
				t.Errorf("the system text is %q", got)
			}
		})
	}
}
