package session_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

// TestLongResult: a result that the window has room for is sent whole; of two that it has none for the middles are left out,
// as far as they must be, and the person is told. The log has them whole, also after a kill between the tool and the next
// call of the model.
func TestLongResult(t *testing.T) {
	for _, row := range []struct {
		lines int
		die   bool
		whole bool
	}{{20_000, false, true}, {20_000, true, true}, {60_000, false, false}, {60_000, true, false}} {
		t.Run(fmt.Sprintf("%+v", row), func(t *testing.T) {
			h, _, b := newAsking(t, "agent:main:main", nil)
			h.model.set(calls(tidemark.ToolUse("c1", "files__read", []byte(`{}`)), tidemark.ToolUse("c2", "files__write", []byte(`{}`))))
			var line strings.Builder
			for i := range row.lines {
				fmt.Fprintf(&line, "line %d of it\n", i)
			}
			long := line.String()
			b.call = func(_ context.Context, c tidemark.Block) tidemark.Block {
				return tidemark.ToolResult(c.ID, long, false)
			}
			code, r := h.parked(byOwner("go")) // the first has run, and its result is kept
			if row.die {
				h.stop()
				h.idle()
				h.open()
				h.idle()
			}
			if err := h.Decide(t.Context(), tidemark.Decision{Code: code, Allow: true, By: tidemark.Origin{Owner: true}}); err != nil {
				t.Fatal(err)
			}
			h.idle()
			if _, failure, ok, err := h.Reply(t.Context(), r.ID); !ok || failure != "" || err != nil {
				t.Fatalf("ended %v, %q, %v", ok, failure, err)
			}
			var entry tidemark.EntryID
			for e, err := range h.Reader.All(t.Context(), true) {
				m, bad := e.Message()
				if err != nil || bad != nil {
					t.Fatal(err, bad)
				}
				for _, res := range m.Results() {
					entry = e.ID
					_ = res
				}
				for _, c := range m.Content {
					if c.Type == tidemark.TypeToolResult && c.Content[0].Text != long {
						t.Errorf("the log has %d bytes of %d", len(c.Content[0].Text), len(long))
					}
				}
			}
			for _, m := range h.sent() {
				for _, c := range m.Content {
					if c.Type != tidemark.TypeToolResult {
						continue
					}
					text := c.Content[0].Text
					cut := strings.HasPrefix(text, "line 0 of it\n") && strings.HasSuffix(text, "line 59999 of it\n") && strings.Contains(text, string(entry)) && len(text) > 150<<10
					if row.whole && text != long || !row.whole && !cut {
						t.Errorf("the model reads %d bytes: %.80q", len(text), text)
					}
				}
			}
			if told := strings.Join(h.events("compaction"), "\n"); strings.Contains(told, "are left out of the middle") == row.whole {
				t.Errorf("the person is told %q", told)
			}
		})
	}
}

// TestPictureOfATool: the images in a result are shown as they are.
func TestPictureOfATool(t *testing.T) {
	image := func(n int) tidemark.Block {
		var b tidemark.Block
		if err := b.UnmarshalJSON([]byte(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + strings.Repeat("iVBORw0K", n/8) + `"}}`)); err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, row := range []struct {
		name   string
		images []int
		shown  int
	}{{"a small one", []int{8000}, 1}, {"a large one", []int{3 << 20}, 1}, {"two large ones", []int{3 << 20, 3 << 20}, 2}} {
		t.Run(row.name, func(t *testing.T) {
			h, _, b := newAsking(t, "agent:main:main", nil)
			b.call = func(_ context.Context, c tidemark.Block) tidemark.Block {
				out := tidemark.Block{Type: tidemark.TypeToolResult, ToolUseID: c.ID, Content: []tidemark.Block{tidemark.Text("a picture")}}
				for _, n := range row.images {
					out.Content = append(out.Content, image(n))
				}
				return out
			}
			h.model.set(calls(tidemark.ToolUse("c1", "files__read", []byte(`{}`))))
			if got := h.post(byOwner("go")); !strings.HasPrefix(got, "c1false a picture") {
				t.Errorf("the model reads %.100q", got)
			}
			images := 0
			for _, m := range h.sent() {
				for _, c := range m.Content {
					for _, in := range c.Content {
						if in.Type == tidemark.TypeImage {
							images++
						}
					}
				}
			}
			if images != row.shown {
				t.Errorf("%d images are shown, want %d", images, row.shown)
			}
		})
	}
}

// TestHugeResult: what is beyond every bound is cut before it is kept, and says so.
func TestHugeResult(t *testing.T) {
	h, _, b := newAsking(t, "agent:main:main", nil)
	b.call = func(_ context.Context, c tidemark.Block) tidemark.Block {
		return tidemark.ToolResult(c.ID, strings.Repeat("0123456789", 2<<20), false)
	}
	h.model.set(calls(tidemark.ToolUse("c1", "files__read", []byte(`{}`))))
	if got := h.post(byOwner("go")); !strings.Contains(got, "of its middle are left out and kept nowhere. Ask the tool for less.") {
		t.Errorf("the model reads %d bytes: %.100q", len(got), got)
	}
	b.call = func(_ context.Context, c tidemark.Block) tidemark.Block { return tidemark.Text("no result") }
	h.post(session.Input{Kind: session.InputReset, Text: "manual"})
	if got := h.post(byOwner("go")); got != "c1true the tool gave no result" {
		t.Errorf("the model reads %.100q", got)
	}
}

// TestManyLongResults: as many long results as a reply may have end the turn as one does, and do not fill memory.
func TestManyLongResults(t *testing.T) {
	const many = 60
	h, _, b := newAsking(t, "agent:main:main", nil)
	long := strings.Repeat("0123456789abcde\n", 25_000)
	b.call = func(_ context.Context, c tidemark.Block) tidemark.Block {
		return tidemark.ToolResult(c.ID, c.ID+long, false)
	}
	var of []tidemark.Block
	for i := range many {
		of = append(of, tidemark.ToolUse(fmt.Sprint("c", i), "files__read", []byte(`{}`)))
	}
	h.model.set(calls(of...))
	if got := h.post(byOwner("go")); strings.HasPrefix(got, "error") || !strings.Contains(got, "c59false c59") {
		t.Errorf("the turn ended with %.100q", got)
	}
	size := 0
	for _, m := range h.sent() {
		size += len(m.AppendJSON(nil))
	}
	if size > 3<<20/2 || size < 300<<10 {
		t.Errorf("%d bytes are sent", size)
	}
}
