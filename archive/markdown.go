package archive

import (
	"fmt"
	"strings"

	"github.com/tidemark-ai/tidemark"
)

// AppendMarkdown appends a message as people read it. Calls and results stand in code blocks whose
// fence is longer than any in them; thinking and images are only named.
func AppendMarkdown(dst []byte, l Line) []byte {
	dst = append(dst, "## "+string(l.Message.Role)...)
	if !l.At.IsZero() {
		dst = append(dst, l.At.UTC().Format(" (2006-01-02 15:04:05 MST)")...)
	}
	dst = append(dst, "\n\n"...)
	for _, b := range l.Message.Content {
		dst = appendBlock(dst, b)
	}
	return dst
}

func appendBlock(dst []byte, b tidemark.Block) []byte {
	switch b.Type {
	case tidemark.TypeText:
		return append(append(dst, b.Text...), "\n\n"...)
	case tidemark.TypeToolUse:
		return fenced(append(dst, "Calls `"+b.Name+"`:\n\n"...), "json", string(b.Input))
	case tidemark.TypeToolResult:
		label := "Result:\n\n"
		if b.IsError {
			label = "Result (error):\n\n"
		}
		dst = append(dst, label...)
		for _, c := range b.Content {
			if c.Type == tidemark.TypeText {
				dst = fenced(dst, "", c.Text)
				continue
			}
			dst = appendBlock(dst, c)
		}
		return dst
	}
	return fmt.Appendf(dst, "*[%s]*\n\n", b.Type)
}

func fenced(dst []byte, lang, text string) []byte {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fmt.Appendf(dst, "%s%s\n%s\n%s\n\n", fence, lang, strings.TrimRight(text, "\n"), fence)
}
