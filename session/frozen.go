package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/room"
)

// beforeMemory stands between what is set and what the agent remembers.
const beforeMemory = "\n\n---\n\n"

// memoryIn is what a system prompt has behind what is set.
func (s *Session) memoryIn(system string) string {
	if rest, ok := strings.CutPrefix(system, s.settings().System); ok && strings.HasPrefix(rest, beforeMemory) {
		return rest
	}
	return ""
}

// withoutMemory has the prompt go without memory until it is made anew.
func (s *Session) withoutMemory() []tidemark.Stmt {
	text := s.settings().System
	hash := string(tidemark.HashOf([]byte(text)))
	return []tidemark.Stmt{keepText(hash, text), {SQL: `UPDATE heads SET prompt = ? WHERE key = ?`, Args: []any{hash, string(s.Key)}, Want: 1}}
}

// system returns the system prompt, frozen since the prefix last broke: a day change, a compaction
// and a reset renew it. If the agent cannot give it, the last one stays, or the base alone. mark is the hash of what
// memory it was made from, empty when it has none.
func (s *Session) system(ctx context.Context) (text, mark string, err error) {
	h, err := s.head(ctx)
	if err != nil {
		return "", "", err
	}
	now := s.Runtime.Now()
	day := now.In(s.settings().Zone).Format(time.DateOnly)
	kept := func() (string, string, error) {
		text, err := s.prompt(ctx, h.Prompt)
		if errors.Is(err, tidemark.ErrNotFound) {
			return s.settings().System, h.Mark, nil
		}
		return text, h.Mark, err
	}
	if h.Prompt != "" && h.PromptDay == day {
		return kept()
	}
	text = s.settings().System
	more, made, err := s.askPrompt(ctx, now)
	if err != nil {
		s.warn("read memory for the prompt", err)
		if h.Prompt != "" {
			return kept()
		}
		return text, "", nil
	}
	if more != "" {
		text += beforeMemory + more
	}
	hash := string(tidemark.HashOf([]byte(text)))
	stmts := []tidemark.Stmt{keepText(hash, text)}
	if made.At != 0 {
		raw := mustJSON(made)
		mark = string(tidemark.HashOf([]byte(raw)))
		stmts = append(stmts, keepText(mark, raw))
	}
	stmts = append(stmts, tidemark.Stmt{SQL: `UPDATE heads SET prompt = ?, prompt_day = ?, mark = ? WHERE key = ?`, Args: []any{hash, day, mark, string(s.Key)}, Want: 1})
	if err = s.DB.Tx(ctx, stmts); err != nil {
		return "", "", fmt.Errorf("store prompt: %w", err)
	}
	if o, ok := room.Find[room.Offerer](s.rooms); ok {
		o.Thaw()
	}
	return text, mark, nil
}

// keepText stores a text under its hash, once.
func keepText(hash, text string) tidemark.Stmt {
	return tidemark.Stmt{SQL: `INSERT INTO prompts(hash, text) VALUES(?, ?) ON CONFLICT(hash) DO NOTHING`, Args: []any{hash, text}}
}

// bounded is an agent that keeps its memory within a budget of the one who asks, and says what it was made from.
type bounded interface {
	PromptWithin(ctx context.Context, scope tidemark.Scope, now time.Time, most tidemark.Tokens) (string, memory.Mark, error)
}

// askPrompt asks the agent for its part of the system prompt, at most a quarter of what may be sent.
func (s *Session) askPrompt(ctx context.Context, now time.Time) (string, memory.Mark, error) {
	if a, ok := s.Agent.(bounded); ok {
		return a.PromptWithin(ctx, s.Scope(), now, s.Budget().Limit()/4)
	}
	text, err := s.Agent.Prompt(ctx, s.Scope(), now)
	return text, memory.Mark{}, err
}

// prompt reads a text that was kept under its hash.
func (s *Session) prompt(ctx context.Context, hash string) (string, error) {
	rows, err := s.DB.Query(ctx, `SELECT text FROM prompts WHERE hash = ? LIMIT 1`, hash)
	if err != nil {
		return "", fmt.Errorf("read prompt: %w", err)
	}
	if len(rows) == 0 {
		return "", fmt.Errorf("prompt %s: %w", hash, tidemark.ErrNotFound)
	}
	return rows[0].Text(0), nil
}
