package history

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/blocks"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestWithoutReplaced: blocks that are replaced have no text any more, and the message that they are of keeps them.
func TestWithoutReplaced(t *testing.T) {
	m := tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.Text("a"), tidemark.Text("b"), tidemark.Text("c")}}
	got := withoutReplaced(m, []compaction.Placed{{Block: 1}, {Block: 3}, {Block: 4}})
	if got.Role != tidemark.User || got.PlainText() != "b" || len(got.Content) != 3 || m.PlainText() != "a\nb\nc" {
		t.Errorf("%+v of %+v", got, m)
	}
}

// TestRoomInMemory: who asks for much waits until there is room for it, or nobody waits for it any more, and gives it back once.
func TestRoomInMemory(t *testing.T) {
	r := newRig(t)
	if release, err := r.Reserve(t.Context(), freeView+1); release != nil || err != nil {
		t.Errorf("where memory is not scarce: %v, %v", release != nil, err)
	}
	asked, refuse, held := 0, 2, int64(0)
	r.Admit = func(bytes int64) (func(), bool) {
		if asked++; asked <= refuse {
			return nil, false
		}
		held += bytes
		return func() { held -= bytes }, true
	}
	if release, err := r.Reserve(t.Context(), freeView); release != nil || err != nil || asked != 0 {
		t.Errorf("of little: %v, %v, asked %d times", release != nil, err, asked)
	}
	release, err := r.Reserve(t.Context(), freeView+1)
	if err != nil || release == nil || asked != 3 || held != freeView+1 {
		t.Fatalf("%v, asked %d times, %d held", err, asked, held)
	}
	if release(); held != 0 {
		t.Errorf("%d held", held)
	}
	gone := errors.New("nobody waits")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	refuse = 100
	if release, err := r.Reserve(ctx, freeView+1); release != nil || !errors.Is(err, gone) {
		t.Errorf("%v, %v", release != nil, err)
	}
}

// TestWords: words of an entry come with its large blocks but for images, while there is room for them, which is given
// back; without large blocks nothing is asked for.
func TestWords(t *testing.T) {
	asked, held := []int64{}, int64(0)
	r := newRig(t)
	r.Admit = func(n int64) (func(), bool) {
		asked, held = append(asked, n), held+n
		return func() { held -= n }, true
	}
	long, image := strings.Repeat("boathouse ", 50_000), `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`+strings.Repeat("QUFB", 100_000)+`"}}`
	m := tidemark.Message{Role: tidemark.User, Content: append([]tidemark.Block{tidemark.Text("small"), tidemark.Text(long)}, tidemarktest.Blocks(t, image)...)}
	entries := []tidemark.Entry{r.says(m), r.person("small")}
	got, done, err := r.Words(t.Context(), entries[0])
	if err != nil || len(got.Content) != 3 || got.Content[1].Text != long {
		t.Fatalf("%d blocks, %v", len(got.Content), err)
	}
	stored, _ := entries[0].Message()
	ref, _ := blocks.Reference(stored.Content[1])
	if _, ok := blocks.Reference(got.Content[2]); !ok || len(asked) != 1 || asked[0] != int64(len(entries[0].Payload))+decodedCopies*int64(ref.Bytes) || held != asked[0] {
		t.Errorf("the image is read, or asked for are %d", asked)
	}
	if done(); held != 0 {
		t.Errorf("%d are held at the end", held)
	}
	if got, done, err := r.Words(t.Context(), entries[1]); err != nil || got.PlainText() != "small" || len(asked) != 1 {
		t.Errorf("a small one: %q, asked for %d, %v", got.PlainText(), asked, err)
	} else {
		done()
	}
	r.most = 1_200_000
	if _, done, err := r.Words(t.Context(), entries[0]); err != nil || asked[1] != 1_200_000 {
		t.Errorf("more than a view may have: asked for %d, %v", asked, err)
	} else {
		done()
	}
	r.Blocks.Blobs = failingGet{r.Blocks.Blobs}
	if _, done, err := r.Words(t.Context(), entries[0]); !errors.Is(err, errFaulty) || held != 0 {
		t.Errorf("the bucket fails: %v, %d are held", err, held)
	} else {
		done()
	}
	if _, _, err := r.Words(t.Context(), tidemark.Entry{ID: "e", Payload: []byte(`{`)}); err == nil || !strings.Contains(err.Error(), "read entry e") {
		t.Errorf("an entry that cannot be read: %v", err)
	}
}

// TestAmendedFiles: files beside which words stand that came later are brought back, as far as there is room for them; in the
// place of the others stands how they can be had. What is no file stays.
func TestAmendedFiles(t *testing.T) {
	r := newRig(t)
	long := func(letter string) tidemark.Block { return tidemark.Text(strings.Repeat(letter, 300<<10)) }
	stored, err := r.Blocks.Spill(t.Context(), tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{long("a"), long("b"), long("c")}})
	if err != nil {
		t.Fatal(err)
	}
	ref, ok := blocks.Reference(stored.Content[0])
	if !ok {
		t.Fatal("nothing is stored apart")
	}
	for _, c := range []struct {
		left int
		want string // first letters; - for what has no room
		rest int
	}{{3 * ref.Bytes, "xa b c", 0}, {3*ref.Bytes - 1, "xa b -", ref.Bytes - 1}, {2 * ref.Bytes, "xa b -", 0}, {2*ref.Bytes - 1, "xa - -", ref.Bytes - 1}, {0, "x- - -", 0}} {
		left := c.left
		edits := []tidemark.Edit{{From: "e1", Block: 3, Blocks: []tidemark.Block{tidemark.Text("x"), stored.Content[0]}}, {From: "e2", Block: 1}, {From: "e3", Block: 1, Blocks: []tidemark.Block{stored.Content[1]}}, {From: "e4", Block: 1, Blocks: []tidemark.Block{stored.Content[2]}}}
		if err := r.amendedWith(t.Context(), edits, &left); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range edits {
			letters := ""
			for _, b := range e.Blocks {
				letter := b.Text[:1]
				if strings.HasPrefix(b.Text, "[") {
					letter = "-"
					if b.Text != fmt.Sprintf("[text: %d bytes, too many beside the others; recall with {\"entry\": \"%s#%d\"} shows it]", ref.Bytes, e.From, e.Block-1) {
						t.Errorf("it says %q", b.Text)
					}
				}
				letters += letter
			}
			if letters != "" {
				got = append(got, letters)
			}
		}
		if strings.Join(got, " ") != c.want || left != c.rest {
			t.Errorf("with room for %d bytes: %q, %d are left", c.left, got, left)
		}
	}
	gone := []tidemark.Edit{{From: "e1", Block: 1, Blocks: []tidemark.Block{stored.Content[0]}}}
	r.Blocks.Blobs = failingGet{r.Blocks.Blobs}
	left := 1 << 30
	if err := r.amendedWith(t.Context(), gone, &left); !errors.Is(err, errFaulty) {
		t.Errorf("the bucket fails: %v", err)
	}
}
