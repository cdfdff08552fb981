package episodes

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/room"
)

// TestPages: all pages of a text that comes in pieces, read one after the other, are the text; an offset behind its end is
// refused, and one at its end gives an empty page.
func TestPages(t *testing.T) {
	pieces := []string{"head\n", strings.Repeat("ä€😀x", room.ToolPage/4), "", strings.Repeat("tide ", room.ToolPage) + "t", "é"}
	whole := strings.Join(pieces, "")
	at := func(from int) (Text, error) {
		p := page{from: from}
		for i, piece := range pieces {
			if i%2 == 0 {
				p.add(piece)
				continue
			}
			p.addMessage(tidemark.NewText(tidemark.User, piece))
		}
		return p.text("it")
	}
	read, pages := "", 0
	for next := 0; pages == 0 || next > 0; pages++ {
		p, err := at(next)
		if err != nil || len(p.Text) > room.ToolPage || p.Next > 0 && p.Next <= next {
			t.Fatalf("at %d: next %d, %d bytes, %v", next, p.Next, len(p.Text), err)
		}
		read, next = read+p.Text, p.Next
	}
	if read != whole || pages < 7 {
		t.Errorf("%d pages have %d bytes of %d", pages, len(read), len(whole))
	}
	if p, err := at(len(whole)); err != nil || p.Text != "" || p.Next != 0 {
		t.Errorf("at its end: %+v, %v", p, err)
	}
	if _, err := at(len(whole) + 1); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("behind its end: %v", err)
	}
}

// TestPageEnds: a text that ends with its page has no other, and no page ends within a character.
func TestPageEnds(t *testing.T) {
	x := strings.Repeat("x", room.ToolPage-1)
	for text, want := range map[string]Text{x + "y": {Text: x + "y"}, x + "yz": {Text: x + "y", Next: room.ToolPage}, x + "é": {Text: x, Next: room.ToolPage - 1}} {
		p := page{}
		p.add(text)
		want.Episode = "it"
		if got, err := p.text("it"); err != nil || got != want {
			t.Errorf("of %d bytes: %d, next %d, %v", len(text), len(got.Text), got.Next, err)
		}
	}
}

// TestAlike: names are near that have a word in common, or its beginning.
func TestAlike(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{{"find 2", "find2", true}, {"refresh tokens", "refreshed token", true}, {"refresh tokens", "refersh", false}, {"mend it", "me", false}, {"mend it", "men", true}, {"mend", "melt", false},
		{"a", "a", false}, {"ab", "ab", true}, {"xide", "tide", false}, {"harbour", "arb", true}, {"harbour", "ar", false}, {"token-cache", "cache", true}, {"the harbour", "arbo", true}, {"one", "two", false}, {"", "x", false}} {
		if got := alike(c.a, c.b); got != c.want {
			t.Errorf("%q and %q: %v", c.a, c.b, got)
		}
	}
}

// TestFind: an episode is found by its name, or unmarked work by the entry in which it begins, up to where the next begins.
func TestFind(t *testing.T) {
	all := []*episodes.Episode{{N: 1, Entry: "e1", From: episodes.Place{Seq: 2}}, {N: 2, Name: "look", Entry: "e2", From: episodes.Place{Seq: 5}}, {N: 3, Name: "mend", Entry: "e3", From: episodes.Place{Seq: 9}}}
	for _, c := range []struct {
		name string
		n    int
		to   int64
	}{{"e1", 1, 5}, {" look ", 2, 9}, {"mend", 3, host.LogEnd}} {
		if e, to, err := find(all, c.name); err != nil || e.N != c.n || to != c.to {
			t.Errorf("%q: %d up to %d, %v", c.name, e.N, to, err)
		}
	}
	for name, want := range map[string]string{"e2": `The newest: "mend", "look".`, "": `The newest: "mend", "look".`, "looked": `Near to it: "look".`} {
		if _, _, err := find(all, name); !errors.Is(err, tidemark.ErrNotFound) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, _, err := find(all[:1], "x"); !errors.Is(err, tidemark.ErrNotFound) || !strings.Contains(err.Error(), "nothing was marked") {
		t.Error(err)
	}
}
