package recall

import (
	"strings"

	"github.com/tidemark-ai/tidemark"
)

// Home is the word of the column home in the index of words that all messages of a conversation share: natively sessions
// share one index. SkippedHome is that of those which are left out unless all are wanted.
func Home(key tidemark.Key) string { return "h" + string(tidemark.HashOf([]byte(key)))[:16] }

// SkippedHome is the word of messages that are left out.
func SkippedHome(key tidemark.Key) string { return "x" + Home(key)[1:] }

// Match is the query of FTS5 for messages under any of some homes with any of some terms.
func Match(homes []string, terms ...string) string {
	quoted := make([]string, len(terms))
	for i, t := range terms {
		quoted[i] = Quote(t)
	}
	return MatchHome(homes) + ` AND terms : (` + strings.Join(quoted, " OR ") + `)`
}

// MatchHome is the part of a query that messages stand under one of some homes.
func MatchHome(homes []string) string {
	if len(homes) == 1 {
		return `home : ` + Quote(homes[0])
	}
	quoted := make([]string, len(homes))
	for i, h := range homes {
		quoted[i] = Quote(h)
	}
	return `home : (` + strings.Join(quoted, " OR ") + `)`
}
