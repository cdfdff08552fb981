package room

import (
	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/recall"
)

// Homes are the words in the index that messages of a lineage stand under: those that are found, and those of turns that are
// skipped.
func Homes(l *host.Lineage) (found, skipped []string) {
	keys := l.Keys
	if l.Single {
		keys = []string{string(l.Key)}
	}
	for _, key := range keys {
		found, skipped = append(found, recall.Home(tidemark.Key(key))), append(skipped, recall.SkippedHome(tidemark.Key(key)))
	}
	return found, skipped
}
