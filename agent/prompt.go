package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/memory"
)

// Prompt returns persona, instructions and memory as a system prompt for a scope, within the
// budget. It has no clock, so it changes only with the files and the day. With an error comes what
// could still be read: a bucket that is down must not end a conversation.
func (a *Agent) Prompt(ctx context.Context, scope tidemark.Scope, now time.Time) (string, error) {
	return a.PromptWithin(ctx, scope, now, a.cfg.Budget)
}

// PromptWithin is Prompt for a session whose own window leaves less than the budget: most is what
// persona and memory may take. More than the budget is never given.
func (a *Agent) PromptWithin(ctx context.Context, scope tidemark.Scope, now time.Time, most tidemark.Tokens) (string, error) {
	if most = min(most, a.cfg.Budget); most <= 0 {
		return "", nil
	}
	if err := a.own(scope); err != nil {
		return "", fmt.Errorf("prompt: %w", err)
	}
	var failed error
	read := func(path string) string {
		if path == "" || a.cfg.Sharing.MayRead(scope, path) != nil {
			return ""
		}
		file, _, err := a.current(ctx, path)
		if err != nil {
			failed = errors.Join(failed, err)
		}
		return string(file)
	}
	today := a.cfg.Sharing.Today(scope, memory.Day(now, a.cfg.Zone))
	yesterday := a.cfg.Sharing.Today(scope, memory.DayBefore(now, a.cfg.Zone))
	over, err := a.superseded(ctx, today, yesterday)
	if err != nil {
		failed = err
	}
	skills, err := a.skillSection(ctx, scope, most/4)
	if err != nil {
		failed = errors.Join(failed, err)
	}
	p := memory.Prompt{
		Soul: read(memory.Soul), Identity: read(memory.Identity), Human: read(memory.Human), Instructions: read(memory.Instructions),
		LongTerm: read(memory.LongTerm), ToolNotes: read(memory.ToolNotes),
		Yesterday: memory.Note{Path: yesterday, Text: memory.Without(read(yesterday), over[yesterday])},
		Today:     memory.Note{Path: today, Text: memory.Without(read(today), over[today])},
		Skills:    skills,
		Runtime:   a.runtime(scope),
	}
	if failed != nil {
		failed = fmt.Errorf("prompt for %s: %w", scope.Key, failed)
	}
	return p.Assemble(most), failed
}

// runtime says where the model is. It names no time, which would break the cached prefix.
func (a *Agent) runtime(scope tidemark.Scope) string {
	kind := "non-main"
	if scope.Main() {
		kind = "main"
	}
	return fmt.Sprintf("Agent: %s\nSession: %s (%s)\nTimezone: %s", a.cfg.Name, scope.Key, kind, a.cfg.Zone)
}
