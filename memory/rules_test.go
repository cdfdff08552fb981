package memory

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// TestPeerNames: each byte of a peer's name in a path, and a name that is too long ends in its hash.
func TestPeerNames(t *testing.T) {
	for c := range 256 {
		b := byte(c)
		want := fmt.Sprintf("x%%%02X", b)
		switch {
		case b >= 'a' && b <= 'z', b >= '0' && b <= '9', strings.IndexByte("-_@+.", b) >= 0:
			want = "x" + string(rune(b))
		case b == ':':
			want = "x~"
		}
		if got := PeerName("x" + string([]byte{b})); got != want {
			t.Errorf("%q: %s, want %s", b, got, want)
		}
	}
	for in, want := range map[string]string{".": "%2E", ".a.": "%2Ea.", "": "", strings.Repeat("a", maxPeer): strings.Repeat("a", maxPeer)} {
		if got := PeerName(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
	long := strings.Repeat("a", maxPeer+1)
	if got, want := PeerName(long), strings.Repeat("a", 143)+"%"+string(tidemark.HashOf([]byte(long)))[:16]; got != want || len(got) != maxPeer {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestPaths: which file each path names.
func TestPaths(t *testing.T) {
	for path, want := range map[string]kind{
		"MEMORY.md": kindLongTerm, "SOUL.md": kindPersona, "IDENTITY.md": kindPersona, "USER.md": kindPersona, "AGENTS.md": kindPersona, "TOOLS.md": kindPersona,
		"memory/2026-11-21.md": kindDaily, "memory/peers/x/2026-11-21.md": kindPeer, "memory/DIGEST.md": kindDigest, "memory/DIGEST.suggested.md": kindDigest,
		"memory/digest/facts-2026-01.md": kindDigest, "memory/digest/older.suggested.md": kindDigest, DetailFile(strings.Repeat("a", 40)): kindDigest, Suggestion(DetailFile("a")): kindDigest,
		"memory/digest/.md": kindNone, "memory/digest/.suggested.md": kindNone, DetailFile(strings.Repeat("a", 41)): kindNone, "memory/digest/A.md": kindNone, "memory/digest/a/b.md": kindNone, "memory/digest/a.b.md": kindNone,
		"memory/DIGEST.suggested.suggested.md": kindNone, "memory/DIGEST": kindNone, "memory/2026-11-21.suggested.md": kindNone, "memory/2026-11-21": kindNone, "memory/2026-02-29.md": kindNone, "memory/x.md": kindNone,
		"memory/peers/2026-11-21.md": kindNone, "memory/peers/x/y.md": kindNone, "memory/peers/X/2026-11-21.md": kindNone, "2026-11-21.md": kindNone, "MEMORY": kindNone, "": kindNone, ".md": kindNone,
	} {
		got, _ := classify(path)
		if got != want || (CheckPath(path) == nil) != (want != kindNone) || Curated(path) != (want == kindLongTerm || want == kindPersona) || IsDigest(path) != (want == kindDigest) {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
		if err := CheckPath(path); err != nil && !errors.Is(err, tidemark.ErrInvalid) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for in, want := range map[string]Sharing{"": SharePeer, "peer": SharePeer, "agent": ShareAgent, "Agent": "", "all": ""} {
		if got, err := ParseSharing(in); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
	for n, fits := range map[int]bool{MaxFile - 2: true, MaxFile - 1: false} {
		if got, err := Edit(strings.Repeat("x", n), "", "b"); (err == nil) != fits || fits && len(got) != MaxFile || !fits && !errors.Is(err, tidemark.ErrTooLarge) {
			t.Errorf("%d bytes and three: %d, %v", n, len(got), err)
		}
	}
}

// TestSections: what one extraction writes, with and without facts, sources and a session, and what stands before it.
func TestSections(t *testing.T) {
	at := time.Date(2026, 11, 21, 7, 5, 0, 0, time.UTC)
	for _, c := range []struct {
		s    Section
		want string
	}{
		{Section{ID: "x"}, ""},
		{Section{ID: "x", Facts: []tidemark.Fact{{Text: "a"}}}, "### Extracted from context compaction (07:05)\n<!-- tidemark: x -->\n\n- a\n"},
		{Section{ID: "x", Session: "s", Noted: true, Facts: []tidemark.Fact{{Text: "a", Sources: []tidemark.EntryID{"1"}}, {Text: "b", Sources: []tidemark.EntryID{"1", "2", "3"}}, {Text: "c", Sources: []tidemark.EntryID{"1", "2", "1"}}}},
			"### Noted in conversation (07:05)\n<!-- tidemark: x session s -->\n\n- a <!-- tidemark: 1 -->\n- b <!-- tidemark: 1..3 -->\n- c <!-- tidemark: 1 -->\n"},
		{Section{ID: "x", From: "ann", File: "memory/peers/a/d.md", Count: 1}, "- 07:05: 1 fact from ann, see [memory/peers/a/d.md](peers/a/d.md) <!-- tidemark: x -->\n"},
		{Section{ID: "x> <\x7f\ty\u00e9~", From: "ann", File: "f"}, "- 07:05: 0 facts from ann, see [f](f) <!-- tidemark: x_____yé~ -->\n"},
	} {
		c.s.At = at
		if got := c.s.Render(nil); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	for r := rune(0); r < 0x100; r++ {
		want := string(r)
		if r <= ' ' || r == '<' || r == '>' || r == 0x7f {
			want = "_"
		}
		if got := safe(string(r)); got != want {
			t.Errorf("%q: %q", r, got)
		}
	}
	for _, c := range []struct {
		file string
		item bool
		want string
	}{
		{"", false, ""}, {"", true, ""}, {"a\n\n", false, ""}, {"a\r\n\r\n", false, ""}, {"a\r\n\r\n", true, ""}, {"a", false, "\n\n"}, {"a", true, "\n\n"}, {"a\n", false, "\n"}, {"a\n", true, "\n"}, {"a\r\n", false, "\n"},
		{"- 1 from x\n", true, ""}, {"- 1 from x\n", false, "\n"}, {"- 1 from x", true, "\n\n"}, {"- 1 from x\n- 2\n", true, "\n"}, {"- 1\n- 2 from x\n", true, ""}, {"\n", true, "\n"}, {"\n", false, "\n"}, {"a\n from x\n", true, ""},
	} {
		if got := gap([]byte(c.file), c.item); got != c.want {
			t.Errorf("%q, %t: %q, want %q", c.file, c.item, got, c.want)
		}
	}
}

// TestDecideAmong: what a line says of the first fact that was shown, and what counts for another line.
func TestDecideAmong(t *testing.T) {
	shown := []Known{{ID: 10, Text: "User works at Acme"}, {ID: 11, Text: "Ann likes tea"}}
	for lines, want := range map[string]string{
		"NONE 10: User works at Globex": "[]", "UPDATE 10: User works at Globex": "[{UPDATE 10 User works at Globex}]", "UPDATE 11: Ann likes milk": "[{UPDATE 11 Ann likes milk}]",
		"NONE 10: x|UPDATE 10: User works at Globex": "[{UPDATE 10 User works at Globex}]", "UPDATE 10: User works at Globex|DELETE 11: Ann is gone": "[{UPDATE 10 User works at Globex} {DELETE 11 Ann is gone}]",
		"DELETE 10:": "[]", "NONE 12: Bo has a boat": "[{ADD 0 Bo has a boat}]", "NONE: Bo has a boat": "[]", "UPDATE 0: x": "[{ 0 UPDATE 0: x}]", "UPDATE 1: Bo": "[{ADD 0 Bo}]", "UPDATE 10: works at": "[{ADD 0 works at}]",
		"UPDATE 10: a|UPDATE 10: b|UPDATE 11: c": "[{ADD 0 a} {ADD 0 b} {UPDATE 11 c}]",
	} {
		var got []string
		for _, f := range Decide(strings.Split(lines, "|"), shown) {
			got = append(got, fmt.Sprintf("{%s %d %s}", f.Action, f.Target, f.Text))
		}
		if s := "[" + strings.Join(got, " ") + "]"; s != want {
			t.Errorf("%s: %s, want %s", lines, s, want)
		}
	}
	if got := List([]Known{{ID: 3, Text: "a\nb"}, {ID: 12, Text: "c"}}); got != "3: a b\n12: c\n" {
		t.Errorf("%q", got)
	}
	w := Window{Fresh: []Known{{ID: 12, Text: "User works at Globex"}}, Standing: shown}
	for _, stop := range []string{"", "end_turn", "stop_sequence", "max_tokens", "tool_use"} {
		reply := tidemark.Reply{Message: tidemark.NewText(tidemark.Assistant, "<decisions>\n- - UPDATE 10: 12\n\nnone\n</decisions>"), Call: tidemark.Call{Stop: stop}}
		got, refused, err := w.Read(reply)
		if read := stop != "max_tokens" && stop != "tool_use"; (err == nil) != read || read && !slices.Equal(got, []Decision{{Action: Update, Target: 10, By: 12}}) || refused != 0 {
			t.Errorf("%s: %v, %d refused, %v", stop, got, refused, err)
		}
	}
	text := w.Ask("m").Messages[0].PlainText()
	if !strings.HasPrefix(text, "<older-facts>\n10: User works at Acme\n11: Ann likes tea\n</older-facts>\n\n<new-facts>\n12: User works at Globex\n</new-facts>\n\nFor each older fact") {
		t.Errorf("%s", text)
	}
}

// TestHotWeights: the importance of a turn is that of its events by their bytes, rounded, and an empty event counts as one byte.
func TestHotWeights(t *testing.T) {
	over := Held{Events: DefaultWorkingEvents + 1}
	for i, c := range []struct {
		turn Turn
		want Hot
	}{
		{Turn{{Importance: 3}}, None}, {Turn{{Importance: 4}}, Add}, {Turn{{Importance: 3, Bytes: 1}, {Importance: 4, Bytes: 1}}, Add}, {Turn{{Importance: 3}, {Importance: 3}, {Importance: 4}}, None},
		{Turn{{Importance: 6}, {Importance: 3, Bytes: 6}}, None}, {Turn{{Importance: 6, Bytes: 2}, {Importance: 3, Bytes: 6}}, Add}, {Turn{{Importance: 1, Bytes: 9}, {Importance: 10, Bytes: 3}}, None}, {Turn{{Importance: 1, Bytes: 9}, {Importance: 10, Bytes: 4}}, Add},
	} {
		if got := (BySize{}).DecideHot(c.turn, over); got != c.want {
			t.Errorf("%d: %s", i, got)
		}
	}
	if Add.String() != "ADD" || None.String() != "NONE" {
		t.Error("the names of the decisions")
	}
}

// TestWants: in which message a person wants something.
func TestWants(t *testing.T) {
	text := func(s string) tidemark.Message { return tidemark.NewText(tidemark.User, s) }
	picture := tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{{Type: tidemark.TypeText, Text: "ok"}, {Type: "image"}}}
	for _, c := range []struct {
		from string
		m    tidemark.Message
		want bool
	}{
		{"", text("ok"), false}, {"", text("delete it"), true}, {"", picture, true}, {tidemark.FromPerson, text("thanks!"), false}, {tidemark.FromPerson, text("why?"), true}, {tidemark.FromPerson, picture, true},
		{tidemark.FromAgent, text("ok"), true}, {tidemark.FromAgent, picture, true}, {"somebody", text("delete it"), false}, {"somebody", picture, false},
	} {
		if got := Wants(tidemark.Origin{From: c.from}, c.m); got != c.want {
			t.Errorf("%q, %s: %t", c.from, c.m.PlainText(), got)
		}
	}
	for said, want := range map[string]bool{"ok ok ok ok": true, "ok ok ok ok ok": false, "ok\tOK\r\nOk…👍": true, "o k": false, "on ahead": true, "ahead;of": false} {
		if Acknowledges(said) != want {
			t.Errorf("%q: %t", said, !want)
		}
	}
}
