package compaction

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// TestWithMediaBound: images and documents are brought back up to so many bytes, with what stands around them.
func TestWithMediaBound(t *testing.T) {
	image := func(n int) tidemark.Block {
		return blockFrom(t, `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`+strings.Repeat("A", n)+`"}}`)
	}
	frame := len(tidemark.Block{Type: tidemark.TypeToolResult, ToolUseID: "c", Content: []tidemark.Block{image(0)}}.AppendJSON(nil))
	b, err := WithMedia("c", "", []tidemark.Block{image(RecallBytes - frame)})
	if err != nil || len(b.AppendJSON(nil)) != RecallBytes || b.ToolUseID != "c" || len(b.Content) != 1 {
		t.Errorf("%d bytes: %v", len(b.AppendJSON(nil)), err)
	}
	if _, err := WithMedia("c", "", []tidemark.Block{image(RecallBytes - frame + 1)}); !errors.Is(err, tidemark.ErrTooLarge) {
		t.Errorf("one more: %v", err)
	}
	doc := blockFrom(t, `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"d"}}`)
	if b, err := WithMedia("c", "words", []tidemark.Block{image(4), doc}); err != nil || len(b.Content) != 3 || b.Content[0].Text != "words" || b.Content[2].Type != tidemark.TypeDocument {
		t.Errorf("%+v, %v", b, err)
	}
}

// TestRecallableBound: a picture alone, beside words and in a result is told from one that is a byte too large.
func TestRecallableBound(t *testing.T) {
	for name, made := range map[string]func(n int) tidemark.Block{
		"alone": func(n int) tidemark.Block {
			return blockFrom(t, `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`+strings.Repeat("A", n)+`"}}`)
		},
		"beside words": func(n int) tidemark.Block {
			return blockFrom(t, `{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"`+strings.Repeat("w", 500)+`"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`+strings.Repeat("A", n)+`"}}]}`)
		},
	} {
		room := RecallBytes - 1024 - len(made(0).AppendJSON(nil))
		if !Recallable(made(room)) || Recallable(made(room+1)) {
			t.Errorf("%s: %d bytes %v, one more %v", name, room, Recallable(made(room)), Recallable(made(room+1)))
		}
	}
	elsewhere := tidemark.Block{Type: tidemark.TypeImage}
	if !Recallable(elsewhere) || Recallable(tidemark.Block{Type: tidemark.TypeThinking}) || !Recallable(tidemark.Block{Type: tidemark.TypeToolResult}) {
		t.Error("a picture without data, and an empty result, can be recalled, and thinking cannot")
	}
}
