package recall

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/lexicon"
)

// tokens is the hash of the terms that the indexes of all databases hold.
const tokens = "0359bf17f5775e32"

// TestTokens: a stem, a root, a common word or a form that changes leaves rows behind that nobody finds any more.
// Who means it has the indexes made anew, and then writes the new hash above.
func TestTokens(t *testing.T) {
	const texts = `He went to buy two bicycles; the children's photos of 2026-05-31 were deleted, generously and finally.
İstanbul, ISTANBUL, naïve Zoë, e` + "\u0301" + `té, ＦＵＬＬ width, Straße, Änderungen, größer, Ärzte und Krankenhäuser, niños, été
order_id ORDER-4711 snake_case camelCase XMLHttpRequest v1.2.3 1.2.3 C++ C# F# .NET a/b/c.txt ann@example.org https://example.org/x?y=1#z
0x7fff 3.14 1,000,000 12:30 +49 170 1234567 sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
日本語の文章と漢字、カタカナとひらがな。 東 中文的句子 한국어 문장 ภาษาไทย русские слова и предложения
running runs ran runner relational conditional happily agreement hopping hoped cities flies organisation organization
don't isn't I'll we've x y z ok no not never the of a`
	var s Stemmer
	var b strings.Builder
	for _, words := range [][]string{slices.Sorted(maps.Keys(lexicon.Stops)), slices.Sorted(maps.Keys(roots)), strings.Split(texts, "\n")} {
		for _, w := range words {
			b.WriteString(s.Row(w) + "\n")
		}
	}
	if got := string(tidemark.HashOf([]byte(b.String())))[:16]; got != tokens {
		t.Errorf("the terms of texts are others (%s): append wordsAnew to tables in session/tables.go and piecesAnew to pieceTables, "+
			"in agent the migration that makes agent_words anew, and one to digestTables that deletes agent_digests", got)
	}
}
