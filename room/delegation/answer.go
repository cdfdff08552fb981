package delegation

import (
	"context"
	"fmt"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/room"
)

// answerOf is what the parent reads. What is ours stands first, so that nothing in an answer can pass for it.
func answerOf(id string, key tidemark.Key, out tidemark.Outcome) tidemark.Block {
	if out.Error != "" {
		return tidemark.ToolResult(id, fmt.Sprintf("[%s failed, having spent %d tokens: %s Recall with scope agent finds what was said there.]", key, out.Spent, sentence(out.Error)), true)
	}
	text := strings.TrimSpace(out.Text)
	if text == "" {
		text = room.Wordless
	}
	entry, shown := string(key)+"/"+string(out.Entry), ""
	if len(text) > shownBytes {
		page := strings.TrimSuffix(clip.To(text, shownBytes), "…")
		shown = fmt.Sprintf(" These are the first %d of %d bytes: recall with {\"entry\": %q, \"offset\": %d} reads on.", len(page), len(text), entry, len(page))
		text = page
	}
	return tidemark.ToolResult(id, fmt.Sprintf("[Answer of %s, which spent %d tokens.%s Recall with entry %s reads it again, with scope agent it finds what led there.]\n\n%s", key, out.Spent, shown, entry, text), false)
}

// sentence ends a text with a full stop.
func sentence(text string) string {
	if text = strings.TrimSpace(text); strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

// Bounds of the name of a message of a child, in bytes.
const (
	maxFarEntry = 400
	maxID       = 100
)

// Read reads a message of a conversation that was delegated to, KEY/ENTRY as answers name it. It is for the owner's
// conversations of the same agent, which may search there, too.
func (s *Room) Read(ctx context.Context, name string, offset int) (string, error) {
	at := max(strings.LastIndexByte(name, '/'), 0)
	key, err := tidemark.ParseKey(name[:at])
	id := strings.TrimPrefix(name[at:], "/")
	if err != nil || len(name) > maxFarEntry || len(id) > maxID || key.Channel() != tidemark.ChannelDelegate || key.Agent() != s.Key.Agent() {
		return "", fmt.Errorf("entry %.80q: want the id of one here, or one of a conversation that was delegated to, as its answer names it: %w", name, tidemark.ErrInvalid)
	}
	if s.Children == nil || !s.Key.Scope().Owner {
		return "", fmt.Errorf("entry %.80q: this conversation does not read others: %w", name, tidemark.ErrForbidden)
	}
	text, err := s.Children.Read(ctx, key, tidemark.EntryID(id), offset)
	if err != nil {
		return "", fmt.Errorf("read entry %.80q: %s: %w", name, inWords(err), tidemark.ErrInvalid)
	}
	return text, nil
}

// inWords is an error as a model reads it.
func inWords(err error) string {
	text := err.Error()
	if kind := tidemark.Sentinel(err); kind != nil {
		text = strings.TrimSuffix(text, ": "+kind.Error())
	}
	return text
}
