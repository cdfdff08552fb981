package compaction

import (
	"errors"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// TestReadHandle: what names a block is read as it was written, and nothing else is.
func TestReadHandle(t *testing.T) {
	for _, c := range []struct {
		handle string
		id     tidemark.EntryID
		block  int
	}{{Handle("0a1b", 0), "0a1b", 0}, {Handle("0a1b", 12), "0a1b", 12}, {"0a1b", "0a1b", -1}, {"0a1b#", "0a1b#", -1}, {"0a1b#x", "0a1b#x", -1}, {"0a1b#-1", "0a1b#-1", -1},
		{"#2", "", 2}, {"a#1#2", "a#1#2", -1}, {"", "", -1}} {
		if id, block := ReadHandle(c.handle); id != c.id || block != c.block {
			t.Errorf("%q: %q, %d, want %q, %d", c.handle, id, block, c.id, c.block)
		}
	}
}

// TestBlockOf: what is in a block is its text, or its media; one that is not there is said to be.
func TestBlockOf(t *testing.T) {
	image := tidemark.Block{Type: tidemark.TypeImage}
	m := tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.Text("one"), tidemark.ToolUse("c", "look", []byte(`{"a":1.0}`)),
		{Type: tidemark.TypeToolResult, ToolUseID: "c", Content: []tidemark.Block{tidemark.Text("a"), image, tidemark.Text("b")}}, image}}
	for n, want := range []struct {
		text  string
		media int
	}{{"one", 0}, {`{"a":1.0}`, 0}, {"ab", 1}, {"", 1}} {
		if text, media, err := BlockOf("e", m, n); err != nil || text != want.text || len(media) != want.media {
			t.Errorf("block %d: %q, %d, %v", n, text, len(media), err)
		}
	}
	if _, _, err := BlockOf("e", m, 4); !errors.Is(err, tidemark.ErrInvalid) {
		t.Error(err)
	}
	if _, err := WithMedia("c", "", []tidemark.Block{tidemark.Text("no media")}); !errors.Is(err, tidemark.ErrInvalid) {
		t.Error(err)
	}
	if b, err := WithMedia("c", "a\xff", []tidemark.Block{image}); err != nil || len(b.Content) != 2 || b.Content[0].Text != "a\ufffd" {
		t.Errorf("%+v, %v", b, err)
	}
}
