package compaction

import "github.com/tidemark-ai/tidemark"

// Topics returns up to five words that tell what some messages are about, the strongest first: those that
// a marker over them would name. The same messages give the same words.
func Topics(messages ...tidemark.Message) []string {
	c := newTopicCount()
	for _, m := range messages {
		c.message(&Item{Message: m})
	}
	list := c.strongest()
	out := make([]string, len(list))
	for i, t := range list {
		out[i] = t.Word
	}
	return out
}
