package session

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

// Bounds of what a turn is told of memory that came since its system prompt was made.
const (
	newsTokens   tidemark.Tokens = 1000
	newsDeadline                 = 2 * time.Second // beyond it the turn goes on without
	maxNear                      = 8_000           // bytes of what persons said that facts are looked for by
)

// newsOf is what a turn was told of memory, under the mark of its system prompt.
type newsOf struct{ mark, text string }

// news is what memory has now that the system prompt was made without: asked for once a turn, and again when the prompt was
// made anew in it, which has taken it up. It goes into each request, since it is not stored. Without an answer in time the turn
// goes on without.
func (s *Session) news(ctx context.Context, r *run, v View) string {
	if r.news != nil && r.news.mark == v.mark {
		return r.news.text
	}
	if v.mark == "" {
		return ""
	}
	r.news = &newsOf{mark: v.mark}
	mark, err := s.markOf(ctx, v)
	if err != nil || mark.At >= r.Started.UnixMilli() { // made in this turn
		s.withoutNews(ctx, err)
		return ""
	}
	left := max(s.settings().Window-v.Size, 0) / packRoom
	n, err := s.askNews(ctx, memory.Since{Mark: mark, Most: min(newsTokens, left), Log: v.Log, Models: s.windows.Names()})
	s.withoutNews(ctx, err)
	if err := s.windows.TakeUp(ctx, n.Windows); err != nil {
		s.warn("store windows", err)
	}
	r.news.text = room.Harmless(n.Note(v.System))
	return r.news.text
}

// withoutNews logs why a turn goes on without news.
func (s *Session) withoutNews(ctx context.Context, err error) {
	switch {
	case err == nil || ctx.Err() != nil:
	case errors.Is(err, tidemark.ErrTimeout):
		s.Logger.Warn("what is new in memory is left out: the agent did not answer in time, and the turn goes on", "session", s.Key, "limit", newsDeadline)
	default:
		s.warn("read what is new in memory", err)
	}
}

// markOf reads the mark of a view's system prompt.
func (s *Session) markOf(ctx context.Context, v View) (mark memory.Mark, err error) {
	raw, err := s.prompt(ctx, v.mark)
	if err == nil {
		err = json.Unmarshal([]byte(raw), &mark)
	}
	if err != nil {
		err = fmt.Errorf("mark of the prompt: %w", err)
	}
	return mark, err
}

func (s *Session) askNews(ctx context.Context, since memory.Since) (memory.News, error) {
	a, ok := s.Agent.(teller)
	if !ok {
		return memory.News{}, nil
	}
	limited, stop := s.Runtime.WithTimeout(ctx, newsDeadline)
	defer stop()
	since.Now = s.Runtime.Now()
	return a.News(limited, s.Scope(), since)
}

// knownTo returns what tells the lines of memory that the system prompt of a view has and what came since, the conversation's
// own, too.
func (s *Session) knownTo(v View) func(ctx context.Context) []string {
	return func(ctx context.Context) []string {
		if v.mark == "" {
			return nil
		}
		mark, err := s.markOf(ctx, v)
		var n memory.News
		if err == nil {
			n, err = s.askNews(ctx, memory.Since{Mark: mark, Most: newsTokens})
		}
		s.withoutNews(ctx, err)
		return mark.Memories(v.System, n)
	}
}

// near returns the facts that are near what persons said in some messages, for the model that draws new ones from them.
func (s *Session) near(ctx context.Context, items []compaction.Item) []memory.Known {
	var said []string
	for _, it := range items {
		if text := strings.TrimSpace(it.Message.PlainText()); ofPerson(it) && text != "" {
			said = append(said, text[max(0, len(text)-maxNear):])
		}
	}
	if set := s.settings(); set.NoMemories || set.Gate == nil || len(said) == 0 {
		return nil
	}
	text := strings.Join(said, "\n")
	n, err := s.askNews(ctx, memory.Since{Near: strings.ToValidUTF8(text[max(0, len(text)-maxNear):], "")})
	if err != nil && ctx.Err() == nil {
		s.warn("read facts near a conversation", err)
	}
	return n.Near
}
