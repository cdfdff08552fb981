package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/memory"
)

// Prompt returns persona, instructions and memory as a system prompt for a scope, within the
// budget. It has no clock, so it changes only with the files and the day. With an error comes what
// could still be read: a bucket that is down must not end a conversation.
func (a *Agent) Prompt(ctx context.Context, scope tidemark.Scope, now time.Time) (string, error) {
	text, _, err := a.PromptWithin(ctx, scope, now, a.cfg.Budget)
	return text, err
}

// PromptWithin is Prompt for a session whose own window leaves less than the budget: most is what
// persona and memory may take. More than the budget is never given. The mark tells [Agent.News] later what
// memory the prompt was made from.
func (a *Agent) PromptWithin(ctx context.Context, scope tidemark.Scope, now time.Time, most tidemark.Tokens) (string, memory.Mark, error) {
	var mark memory.Mark
	if most = min(most, a.cfg.Budget); most <= 0 {
		return "", mark, nil
	}
	if err := a.own(scope); err != nil {
		return "", mark, fmt.Errorf("prompt: %w", err)
	}
	files, failed := a.sources(ctx, scope, now, mark)
	read := func(path string) string {
		if a.cfg.Sharing.MayRead(scope, path) != nil {
			return ""
		}
		file, _, err := a.current(ctx, path)
		if err != nil {
			failed = errors.Join(failed, err)
		}
		return string(file)
	}
	skills, err := a.skillSection(ctx, scope, most/4)
	if err != nil {
		failed = errors.Join(failed, err)
	}
	p := memory.Prompt{
		Soul: read(memory.Soul), Identity: read(memory.Identity), Human: read(memory.Human), Instructions: read(memory.Instructions),
		LongTerm: files[0].Text, ToolNotes: read(memory.ToolNotes),
		Yesterday: memory.Note{Path: files[1].Path, Text: files[1].Text},
		Today:     memory.Note{Path: files[2].Path, Text: files[2].Text},
		Skills:    skills,
		Runtime:   a.runtime(scope),
	}
	if failed != nil {
		failed = fmt.Errorf("prompt for %s: %w", scope.Key, failed)
	}
	return p.Assemble(most), memory.MarkOf(now, files), failed
}

// News returns what memory has for a scope that a prompt of it was made without, and what that has no longer. A file that is
// under its mark is not read again.
func (a *Agent) News(ctx context.Context, scope tidemark.Scope, since memory.Since) (memory.News, error) {
	err := a.own(scope)
	if since.Near != "" && err == nil {
		near, err := a.near(ctx, scope, since.Near)
		return memory.News{Near: near}, err
	}
	var files []memory.Source
	if err == nil {
		files, err = a.sources(ctx, scope, since.Now, since.Mark)
	}
	if err != nil { // what could not be read is not gone
		return memory.News{}, fmt.Errorf("news for %s: %w", scope.Key, err)
	}
	n := since.News(files)
	if len(since.Models) > 0 {
		if n.Windows, err = Windows(ctx, a.cfg.DB, since.Now); err != nil { // what memory has is worth telling without
			a.cfg.Logger.Warn("read windows", "agent", a.cfg.Name, "err", err)
		}
		n.Windows = slices.DeleteFunc(n.Windows, func(w tidemark.Window) bool { return !w.From.Met() || !slices.Contains(since.Models, w.Model) })
	}
	return n, nil
}

// sources reads the memory files of a scope: MEMORY.md, yesterday's file and today's. With an error comes what could be read.
func (a *Agent) sources(ctx context.Context, scope tidemark.Scope, now time.Time, mark memory.Mark) ([]memory.Source, error) {
	files := make([]memory.Source, 3)
	decided, failed := a.decided(ctx)
	for i, path := range []string{memory.LongTerm, a.cfg.Sharing.Today(scope, memory.DayBefore(now, a.cfg.Zone)), a.cfg.Sharing.Today(scope, memory.Day(now, a.cfg.Zone))} {
		if path == "" || a.cfg.Sharing.MayRead(scope, path) != nil {
			continue
		}
		var err error
		if files[i], err = a.source(ctx, path, decided, mark.Tag(path)); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	return files, failed
}

// source reads a file without what counts no more, unless it has a tag and nothing is pending for it. Its own tag is its version,
// with the newest decision of the ledger.
func (a *Agent) source(ctx context.Context, path string, decided int64, unless string) (memory.Source, error) {
	src := memory.Source{Path: path}
	sections, err := a.pending(ctx, path)
	if err != nil {
		return src, err
	}
	file, _, err := a.loadUnless(ctx, path, func(etag string) bool {
		src.Tag = fmt.Sprintf("%d %s", decided, etag)
		src.Same = len(sections) == 0 && src.Tag == unless
		return src.Same
	})
	if err != nil || src.Same {
		return src, err
	}
	over, err := a.superseded(ctx, path)
	src.Text = memory.Without(string(memory.Append(file, a.cfg.Zone, sections...)), over[path])
	return src, err
}

// runtime says where the model is. It names no time, which would break the cached prefix.
func (a *Agent) runtime(scope tidemark.Scope) string {
	kind := "non-main"
	if scope.Main() {
		kind = "main"
	}
	return fmt.Sprintf("Agent: %s\nSession: %s (%s)\nTimezone: %s", a.cfg.Name, scope.Key, kind, a.cfg.Zone)
}
