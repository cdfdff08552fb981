package room

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestTextPages: the text of a message and of one of its blocks is read page by page, cut between characters, with what else
// is in the block on the first page.
func TestTextPages(t *testing.T) {
	cut, whole := strings.Repeat("a", ToolPage-1)+"éb", strings.Repeat("a", ToolPage)
	for _, row := range []struct {
		name, text string
		offset     int
		want       string // "" for a refusal
	}{
		{"a page", whole, 0, whole},
		{"a byte more", whole + "b", 0, whole + "\n[20000 of 20001 bytes; go on with offset 20000]"},
		{"the rest", whole + "b", ToolPage, "b"},
		{"within a character", cut, 0, cut[:ToolPage-1] + "\n[19999 of 20002 bytes; go on with offset 19999]"},
		{"behind it", cut, ToolPage - 1, "éb"},
		{"two pages on", whole + whole + "bc", ToolPage + 1, whole[1:] + "b\n[20000 of 40002 bytes; go on with offset 40001]"},
		{"before the beginning", "abc", -1, ""},
		{"behind the end", "abc", 4, ""},
	} {
		m := tidemark.NewText(tidemark.User, row.text)
		got, err := Page(m, row.offset)
		block, bad := BlockPage("c", "e", m, 0, row.offset)
		if row.want == "" {
			if !errors.Is(err, tidemark.ErrInvalid) || !errors.Is(bad, tidemark.ErrInvalid) || got != "" || !strings.Contains(err.Error(), fmt.Sprintf("offset %d: the entry has 3 bytes", row.offset)) {
				t.Errorf("%s: %q, %v, %v", row.name, got, err, bad)
			}
			continue
		}
		if err != nil || got != row.want {
			t.Errorf("%s: %d bytes, %v", row.name, len(got), err)
		}
		if want := tidemark.ToolResult("c", row.want, false); bad != nil || string(block.AppendJSON(nil)) != string(want.AppendJSON(nil)) {
			t.Errorf("%s, as a block: %d bytes, %v", row.name, len(block.Content[0].Text), bad)
		}
	}
	m := tidemark.NewText(tidemark.User, "abc")
	if got, err := Page(m, 3); err != nil || got != "" {
		t.Errorf("at the end: %q, %v", got, err)
	}
	if got, err := BlockPage("c", "e", m, 0, 3); err != nil || got.Content[0].Text != "" {
		t.Errorf("at the end of a block: %+v, %v", got, err)
	}
	if _, err := BlockPage("c", "e", m, 1, 0); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("a block that it has not: %v", err)
	}
}

// TestBlockWithPictures: pictures come back with the first page of a block, and where they are too large it says so.
func TestBlockWithPictures(t *testing.T) {
	const onePicture = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}`
	small := tidemarktest.Blocks(t, onePicture)[0]
	large := tidemarktest.Blocks(t, strings.Replace(onePicture, "QUJD", strings.Repeat("QUJD", compaction.RecallBytes/4), 1))[0]
	odd := tidemarktest.Blocks(t, `{"type":"odd","x":1}`)[0]
	result := func(content ...tidemark.Block) tidemark.Block {
		return tidemark.Block{Type: tidemark.TypeToolResult, ToolUseID: "t", Content: content}
	}
	const gone = "\n[What else is in it, 1 images or documents, is too large to be brought back: ask the person to send it again.]"
	for _, row := range []struct {
		name   string
		block  tidemark.Block
		offset int
		want   []string // texts and types
		err    error
	}{
		{"a picture", small, 0, []string{"image"}, nil},
		{"with words", result(tidemark.Text("words"), small), 0, []string{"words", "image"}, nil},
		{"on the second page", result(tidemark.Text("words"), small), 2, []string{"rds"}, nil},
		{"too large", large, 0, nil, tidemark.ErrTooLarge},
		{"too large, with words", result(tidemark.Text("words"), large), 0, []string{"words" + gone}, nil},
		{"something else, with words", result(tidemark.Text("words"), odd), 0, nil, tidemark.ErrInvalid},
	} {
		m := tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.Text("before"), row.block}}
		got, err := BlockPage("c", "e", m, 1, row.offset)
		var has []string
		for _, b := range got.Content {
			if b.Type == tidemark.TypeText {
				has = append(has, b.Text)
			} else {
				has = append(has, b.Type)
			}
		}
		if !errors.Is(err, row.err) || !slices.Equal(has, row.want) || err == nil && got.ToolUseID != "c" {
			t.Errorf("%s: %.200q, %v", row.name, has, err)
		}
	}
}
