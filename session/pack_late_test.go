package session

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/room"
)

// hasty is a runtime whose deadlines have all passed.
type hasty struct{ tidemark.Runtime }

func (h hasty) WithTimeout(ctx context.Context, _ time.Duration) (context.Context, context.CancelFunc) {
	late, stop := context.WithCancelCause(ctx)
	stop(tidemark.ErrTimeout)
	return late, func() { stop(nil) }
}

// TestPackLate: a pack without time says so, and blames no database; the turn goes on.
func TestPackLate(t *testing.T) {
	s := bare(t)
	id := s.logged(t, tidemark.FromPerson, "Where does the boathouse key hang?")
	h, err := s.head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s.Logger, s.Runtime = slog.New(slog.NewTextHandler(&log, nil)), hasty{s.Runtime}
	s.Strategies = []compaction.Strategy{compaction.Pointer{}}
	if err := s.loadSettings(t.Context()); err != nil {
		t.Fatal(err)
	}
	asked := compaction.Item{Message: tidemark.NewText(tidemark.User, "Where does the boathouse key hang?"), From: id, To: id, Source: tidemark.FromPerson}
	v := View{Seen: room.Seen{Log: h.Log, View: compaction.View{Items: []compaction.Item{asked}}, Shown: []compaction.Replacement{{}}}}
	r := &run{ID: "r", Log: h.Log}
	s.push(t.Context(), r, v)
	if got := log.String(); !strings.Contains(got, "not found in time") || strings.Contains(got, "retrieve for the pack") || strings.Contains(got, "err=") {
		t.Errorf("logged %q", got)
	}
	if r.retrieved == nil || len(*r.retrieved) > 0 {
		t.Errorf("retrieved %v", r.retrieved)
	}
}
