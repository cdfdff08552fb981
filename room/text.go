package room

import (
	"iter"
	"strings"
	"unicode"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/skill"
)

// WordsBytes is how much of the text of a message is in the index of words with it.
const WordsBytes = 64 << 10

// Words returns the search terms of a message, as they are in the index with it.
func Words(stem *recall.Stemmer, m tidemark.Message) string {
	text, _ := TextAt(m, 0, WordsBytes)
	return stem.Row(strings.ToValidUTF8(text, ""))
}

// Searchable returns the words of a message that a search should find.
func Searchable(m tidemark.Message) string {
	text, _ := TextAt(m, 0, 1<<53)
	return text
}

// asks reports whether a tool looks for what stands elsewhere: that is found there, by other words than the call's.
func asks(tool string) bool {
	switch tool {
	case RecallTool, TaskTool, skill.Tool, paging.ReleaseTool, paging.FaultTool:
		return true
	}
	return false
}

// textParts yields what Searchable joins, without joining it: a text may be as large as memory.
func textParts(m tidemark.Message) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, b := range m.Content {
			ok := true
			switch b.Type {
			case tidemark.TypeText:
				ok = yield(tidemark.StripReminders(b.Text))
			case tidemark.TypeToolUse:
				if !asks(b.Name) { // what was looked for is not what was said
					ok = yield(b.Name) && yield(" ") && yield(string(b.Input))
				}
			case tidemark.TypeDocument:
				ok = yield(b.Document())
			case tidemark.TypeToolResult:
				for _, c := range b.Content {
					if ok = ok && yield(c.Text) && yield("\n"); !ok {
						break
					}
				}
			}
			if !ok || !yield("\n") {
				return
			}
		}
	}
}

// TextAt returns the text of a message from a place on, at most so many bytes, and how long all of it is; the
// same text that Searchable gives.
func TextAt(m tidemark.Message, from, most int) (text string, size int) {
	var b strings.Builder
	at, blank := 0, 0
	for part := range textParts(m) {
		if at == 0 {
			part = strings.TrimLeftFunc(part, unicode.IsSpace)
		}
		if part == "" {
			continue
		}
		if lo, hi := max(from-at, 0), min(from+most-at, len(part)); lo < hi {
			b.WriteString(part[lo:hi])
		}
		at += len(part)
		if trimmed := len(strings.TrimRightFunc(part, unicode.IsSpace)); trimmed > 0 {
			blank = len(part) - trimmed
		} else {
			blank += len(part)
		}
	}
	size = at - blank
	text = b.String()
	return text[:max(0, min(len(text), size-from))], size
}

// Longer reports whether the text of a message is longer than that many bytes.
func Longer(m tidemark.Message, most int) bool {
	n := 0
	for part := range textParts(m) {
		if n += len(part); n > most { // blanks around it do not count
			_, size := TextAt(m, 0, 0)
			return size > most
		}
	}
	return false
}
