package episodes

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/room"
)

// TestAnswersOfAnEpisode: the text of an episode has the answers to its calls, also where somebody spoke before them, and
// nothing of what stands beside them.
func TestAnswersOfAnEpisode(t *testing.T) {
	use := func(id string) tidemark.Block { return tidemark.ToolUse(id, "look", []byte(`{}`)) }
	log := []tidemark.Message{
		tidemark.NewText(tidemark.User, "before"),
		{Role: tidemark.Assistant, Content: []tidemark.Block{use("other"), use("one"), use("two")}},
		tidemark.NewText(tidemark.User, "meanwhile"),
		{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult("other", "of another", false), tidemark.ToolResult("one", "first", false)}},
		{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult("two", "second", false)}},
		tidemark.NewText(tidemark.User, "after"),
	}
	s := Room{Self: room.Self{Zone: func() *time.Location { return time.UTC }}, History: room.History{
		Messages: func(_ context.Context, _ string, r host.Range) iter.Seq2[tidemark.Entry, error] {
			return func(yield func(tidemark.Entry, error) bool) {
				for i := int(r.From); i < len(log); i++ {
					if !yield(tidemark.Entry{ID: tidemark.EntryID(fmt.Sprint(i)), Seq: int64(i), Kind: tidemark.KindMessage, Payload: log[i].AppendJSON(nil)}, nil) {
						return
					}
				}
			}
		},
	}}
	got, err := s.textOf(t.Context(), "log", episodes.Episode{From: episodes.Place{Seq: 1, Block: 1}, To: episodes.Place{Seq: 1, Block: 2}}, host.LogEnd, 0)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"look {}\nlook {}\n": true, "first": true, "second": true, "other": false, "before": false, "meanwhile": false, "after": false} {
		if strings.Contains(got.Text, text) != want {
			t.Errorf("%s is there: %v, in %s", text, !want, got.Text)
		}
	}
	if n := strings.Count(got.Text, ", entry "); n != 3 { // of what has nothing of it nothing is told
		t.Errorf("%d messages are told: %s", n, got.Text)
	}
	log[1] = tidemark.NewText(tidemark.Assistant, "k")
	if got, err = s.textOf(t.Context(), "log", episodes.Episode{From: episodes.Place{Seq: 1}, To: episodes.Place{Seq: 1}}, host.LogEnd, 0); err != nil || got.Text != "[0001-01-01 00:00, assistant, entry 1]\nk" {
		t.Errorf("of one letter: %q, %v", got.Text, err)
	}
}
