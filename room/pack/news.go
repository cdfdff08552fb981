package pack

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/room"
)

// Bounds of what is told of memory that came since a system prompt was made.
const (
	newsTokens   tidemark.Tokens = 1000
	newsDeadline                 = 2 * time.Second // beyond it the turn goes on without
	maxNear                      = 8_000           // bytes of what persons said that facts are looked for by
)

// teller is an agent that tells what its memory has that the prompt was made without.
type teller interface {
	News(ctx context.Context, scope tidemark.Scope, since memory.Since) (memory.News, error)
}

// newsOf is what a turn was told of memory, under the mark of its system prompt.
type newsOf struct{ mark, text string }

// newsFor is what memory has now that the system prompt was made without: asked for once a turn, and again when the prompt was
// made anew in it, which has taken it up. It goes into each request, since it is not stored. Without an answer in time the turn
// goes on without.
func (t *turn) newsFor(ctx context.Context, v room.Seen) string {
	if t.news != nil && t.news.mark == v.Mark {
		return t.news.text
	}
	if v.Mark == "" {
		return ""
	}
	t.news = &newsOf{mark: v.Mark}
	mark, err := t.markOf(ctx, v)
	if err != nil || mark.At >= t.Started.UnixMilli() { // made in this turn
		t.without(ctx, err)
		return ""
	}
	left := max(t.Budget().Window-v.Size, 0) / freePart
	n, err := t.ask(ctx, memory.Since{Mark: mark, Most: min(newsTokens, left), Log: v.Log, Models: t.Windows.Names()})
	t.without(ctx, err)
	if err := t.Windows.TakeUp(ctx, n.Windows); err != nil {
		t.Warn("store windows", err)
	}
	t.news.text = room.Harmless(n.Note(v.System))
	return t.news.text
}

// without logs why a turn, or a summariser, goes on without news.
func (s *Room) without(ctx context.Context, err error) {
	switch {
	case err == nil || ctx.Err() != nil:
	case errors.Is(err, tidemark.ErrTimeout):
		s.Logger.Warn("what is new in memory is left out: the agent did not answer in time, and the turn goes on", "session", s.Key, "limit", newsDeadline)
	default:
		s.Warn("read what is new in memory", err)
	}
}

// markOf reads the mark of a view's system prompt.
func (s *Room) markOf(ctx context.Context, v room.Seen) (mark memory.Mark, err error) {
	raw, err := s.kept(ctx, v.Mark)
	if err == nil {
		err = json.Unmarshal([]byte(raw), &mark)
	}
	if err != nil {
		err = fmt.Errorf("mark of the prompt: %w", err)
	}
	return mark, err
}

// ask asks the agent, which may have nothing to tell.
func (s *Room) ask(ctx context.Context, since memory.Since) (memory.News, error) {
	a, ok := s.agent.(teller)
	if !ok {
		return memory.News{}, nil
	}
	limited, stop := s.Runtime.WithTimeout(ctx, newsDeadline)
	defer stop()
	since.Now = s.Runtime.Now()
	return a.News(limited, s.Key.Scope(), since)
}

// Memories implements room.Knower.
func (s *Room) Memories(ctx context.Context, v room.Seen) []string {
	if v.Mark == "" {
		return nil
	}
	mark, err := s.markOf(ctx, v)
	var n memory.News
	if err == nil {
		n, err = s.ask(ctx, memory.Since{Mark: mark, Most: newsTokens})
	}
	s.without(ctx, err)
	return mark.Memories(v.System, n)
}

// Near implements room.Knower.
func (s *Room) Near(ctx context.Context, items []compaction.Item) []memory.Known {
	var said []string
	for _, it := range items {
		if text := strings.TrimSpace(it.Message.PlainText()); it.Source == tidemark.FromPerson && text != "" {
			said = append(said, text[max(0, len(text)-maxNear):])
		}
	}
	if s.gate() == nil || len(said) == 0 {
		return nil
	}
	text := strings.Join(said, "\n")
	n, err := s.ask(ctx, memory.Since{Near: strings.ToValidUTF8(text[max(0, len(text)-maxNear):], "")})
	if err != nil && ctx.Err() == nil {
		s.Warn("read facts near a conversation", err)
	}
	return n.Near
}
