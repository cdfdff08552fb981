package body

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// law checks what holds of each request that was changed.
func law(t *testing.T, r *Request, c Change, touched map[int]bool) {
	t.Helper()
	got, err := r.Apply(c)
	if err != nil {
		if !strings.Contains(err.Error(), "no block is left") {
			t.Fatalf("%s\n%+v: %v", r.raw, c, err)
		}
		return
	}
	if !json.Valid(got) {
		t.Fatalf("%s\n%+v\nno JSON: %s", r.raw, c, got)
	}
	after, err := Scan(r.Dialect, got)
	if err != nil {
		t.Fatalf("%s\n%+v\n%s: %v", r.raw, c, got, err)
	}
	if markers(got) > markers(r.raw) {
		t.Fatalf("more markers than %d: %s\n%+v\n%s", markers(r.raw), r.raw, c, got)
	}
	itemsStay(t, r, c, touched, got)
	blocksStay(t, r, c, got)
	if r.Dialect == Messages && len(c.Append) == 0 && astray(r.Items) == 0 && astray(after.Items) > 0 {
		t.Fatalf("a system message stands where the API takes none\n%s\n%+v\n%s", r.raw, c, got)
	}
	// All around the messages and tools stays.
	for _, piece := range r.around() {
		if !bytes.Contains(got, piece) {
			t.Fatalf("%q is gone\n%s\n%s", piece, r.raw, got)
		}
	}
	for n, tool := range r.Tools {
		if !bytes.Equal(after.Tools[n].Raw, tool.Raw) {
			t.Fatalf("tool %d is %s", n, after.Tools[n].Raw)
		}
	}
	if len(after.Tools) != len(r.Tools)+len(c.Tools) {
		t.Fatalf("%d tools of %d", len(after.Tools), len(r.Tools))
	}
}

// itemsStay checks that items that nothing touched stand in order, byte for byte, and so do system messages among themselves:
// where their neighbours leave they move, and then their blocks may stand in another one. A note touches one more.
func itemsStay(t *testing.T, r *Request, c Change, touched map[int]bool, got []byte) {
	t.Helper()
	sort := func(it Item) int {
		switch {
		case it.Role != tidemark.System || it.fixed:
			return 0
		case it.Blocks() == 0 || it.silent(): // its place does not count
			return 1
		}
		return 2
	}
	noted := notedItem(t, r, c)
	for kind := range 3 {
		rest := got
		for i, it := range r.Items {
			if touched[i] || sort(it) != kind || i == noted {
				continue
			}
			raw := r.source(i)
			at := bytes.Index(rest, raw)
			if at >= 0 {
				rest = rest[at+len(raw):]
				continue
			}
			if kind != 2 || len(c.Spans) == 0 || !joined(it, got) {
				t.Fatalf("item %d %s is gone\n%s\n%+v\n%s", i, raw, r.raw, c, got)
			}
		}
	}
}

// joined reports whether all blocks of a system message stand in what goes out.
func joined(it Item, got []byte) bool {
	for n := range it.Blocks() {
		raw := it.Block(n)
		if it.bare {
			raw = it.content.Of(it.Raw)
		}
		if !bytes.Contains(got, raw) {
			return false
		}
	}
	return true
}

// notedItem is the item that the note of a change goes into, -1 for none of the client's: that is the last that may have
// one of what goes out without the note.
func notedItem(t *testing.T, r *Request, c Change) int {
	t.Helper()
	if c.Note == "" {
		return -1
	}
	c.Note, c.Append = "", nil
	plan, err := r.plan(c)
	if err != nil {
		t.Fatal(err)
	}
	for n := len(plan) - 1; n >= 0; n-- {
		o := &plan[n]
		if o.item >= 0 && r.Items[o.item].fixed || o.role == tidemark.Assistant {
			continue
		}
		if o.role == tidemark.User || o.role == tidemark.System && (o.item < 0 || r.Items[o.item].Blocks() > 0 && !r.Items[o.item].silent()) {
			return o.item
		}
	}
	return -1
}

// astray counts system messages that stand where the API takes none, and those that are two in a row.
func astray(items []Item) (n int) {
	system := func(i int) bool { return items[i].Role == tidemark.System && !items[i].fixed }
	words := func(i int) bool { return system(i) && items[i].Blocks() > 0 && !items[i].silent() }
	for i := range items {
		if !words(i) {
			continue
		}
		before, behind := i-1, i+1
		for before >= 0 && system(before) && !words(before) {
			before--
		}
		for behind < len(items) && system(behind) {
			behind++
		}
		if before < 0 || !takes(items[before]) || behind < len(items) && items[behind].Role != tidemark.Assistant {
			n++
		}
	}
	return n
}

// takes is [tidemark.Message.TakesSystem] of an item.
func takes(it Item) bool {
	m := tidemark.Message{Role: it.Role}
	for n := range it.Blocks() {
		var b struct{ Type any }
		_ = json.Unmarshal(it.Block(n), &b) // what is no object has no type
		kind, _ := b.Type.(string)
		m.Content = append(m.Content, tidemark.Block{Type: kind})
	}
	return m.TakesSystem()
}

// blocksStay checks the blocks that nothing touched of items that something did. One that was given a marker has it
// at its end.
func blocksStay(t *testing.T, r *Request, c Change, got []byte) {
	t.Helper()
	if r.Dialect == Chat {
		return
	}
	hidden := c.hidden()
	for i, it := range r.Items {
		for n := range it.Blocks() {
			raw := bytes.TrimSuffix(it.Block(n), []byte("}"))
			if it.bare {
				raw = it.content.Of(it.Raw)
			}
			if !hidden(i, n) && !it.silent() && !bytes.Contains(got, raw) {
				t.Fatalf("block %d of item %d %s is gone\n%s\n%+v\n%s", n, i, raw, r.raw, c, got)
			}
		}
	}
}

// source is an item as it stands in the body.
func (r *Request) source(i int) []byte {
	if r.Dialect == Messages {
		return r.at[i].Of(r.raw)
	}
	ci := r.chatItems[i]
	return r.raw[r.chat[ci.first].at.From:r.chat[ci.last].at.To]
}

// around is what stands before, between and behind the lists of messages and of tools.
func (r *Request) around() [][]byte {
	a, b := r.list, r.tools
	switch {
	case b.To == 0:
		return [][]byte{r.raw[:r.before], r.raw[r.before:a.From], r.raw[a.To:]}
	case b.From < a.From:
		a, b = b, a
	}
	return [][]byte{r.raw[:a.From], r.raw[a.To:b.From], r.raw[b.To:]}
}
