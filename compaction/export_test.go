package compaction

import "github.com/tidemark-ai/tidemark"

// PreviewTokens bounds the preview in a pointer.
const PreviewTokens = previewTokens

// PreviewOf is preview for tests, which reads more than a pointer does.
func PreviewOf(text string, most tidemark.Tokens) (kind, shown string) {
	p := preview(text, most, 8<<10)
	return p.kind, p.text
}
