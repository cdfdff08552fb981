package paging

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// TestLeavesNext has a row for what a page must be to be told as one that leaves next. It is turn 10, tau is 4.
func TestLeavesNext(t *testing.T) {
	pinned, free := &key{file: &file{}}, &key{file: &file{}}
	pinned.pinned = []*Page{{}}
	for _, row := range []struct {
		name       string
		page       Page
		held, want bool
	}{
		{"of age, and large", Page{Size: 500, born: 6}, false, true},
		{"a turn too young", Page{Size: 500, born: 7}, false, false},
		{"a byte too small", Page{Size: 499, born: 6}, false, false},
		{"an error", Page{Size: 500, born: 6, Err: true}, false, false},
		{"a pinned range", Page{Size: 500, born: 6, key: pinned}, false, false},
		{"a range that is not pinned", Page{Size: 500, born: 6, key: free}, false, true},
		{"may go already, whatever it is", Page{Size: 1, born: 10, Err: true, key: pinned, ripe: true}, false, true},
		{"its owner keeps it", Page{Size: 500, born: 6, ripe: true}, true, false},
		{"the model keeps it", Page{Size: 500, born: 6, ripe: true, anchored: true}, false, false},
	} {
		p, err := New(Options{})
		if err != nil {
			t.Fatal(err)
		}
		p.users = 10
		p.Hold(func(*Page) bool { return row.held })
		if got := p.leavesNext(&row.page); got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
}

// blocks is a pager whose pages have the sizes, one a message of its own, and one more that is out. Turn 20.
func blocks(t *testing.T, o Options, sizes ...int) *Pager {
	t.Helper()
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	p.users = 20
	for i, size := range sizes {
		p.pages = append(p.pages, &Page{ID: fmt.Sprint("t", i), Message: i, Size: size, born: i, Call: Call{Tool: "Bash"}})
	}
	out := &Page{Part: Image, ID: "out", Message: len(sizes), Size: 9000, born: 3, Media: "image/png", Call: Call{Tool: "x"}, stub: true}
	p.pages, p.stubs = append(p.pages, out), []*Page{out}
	return p
}

// TestFillLargest: the ten largest that are in and have 2,000 bytes and a handle that can be said, of equal ones the older first,
// and all that leave next.
func TestFillLargest(t *testing.T) {
	p := blocks(t, Options{Tau: 12}, 1999, 2000, 2600, 3000, 2500, 3000, 2700, 2800, 2900, 3100, 3200, 3300)
	p.pages[11].Call = Call{Tool: "Read", Path: "/a", Range: Range{From: 3, To: 9}}
	nameless := func(g *Page) string {
		if g.ID == "t9" || g.ID == "out" {
			return ""
		}
		return "m" + g.ID
	}
	for _, row := range []struct {
		handle    func(*Page) string
		want, out string
	}{
		{nil, "t11 t10 t9 t3 t5 t8 t7 t6 t2 t4", "out"},
		{nameless, "mt11 mt10 mt3 mt5 mt8 mt7 mt6 mt2 mt4 mt1", ""},
		{func(g *Page) string { return "m" + g.ID }, "mt11 mt10 mt9 mt3 mt5 mt8 mt7 mt6 mt2 mt4", "mout"},
	} {
		f := p.Fill(row.handle)
		var in, out []string
		for _, b := range f.Blocks {
			in = append(in, b.Handle)
		}
		for _, b := range f.Out {
			out = append(out, b.Handle)
		}
		if got := strings.Join(in, " "); got != row.want || strings.Join(out, " ") != row.out || f.More != 0 {
			t.Errorf("got  %s, out %v and %d more\nwant %s, out %s", got, out, f.More, row.want, row.out)
		}
		if f.Next != 9 || f.NextBytes != 23_499 { // those of at least twelve turns, which are t0 to t8
			t.Errorf("%d leave next, of %d bytes", f.Next, f.NextBytes)
		}
	}
	f := p.Fill(nil)
	for got, want := range map[Held]Held{
		f.Blocks[0]: {"t11", "Read", "/a lines 3-9", 3300, 9, false},
		f.Blocks[5]: {"t8", "Bash", "", 2900, 12, true},
		f.Out[0]:    {"out", "image/png", "", 9000, 17, false},
	} {
		if got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

// TestAdviceRoom: as many blocks and what is out as fit into the room, to the byte; the first three that are out come before a
// further block has its place.
func TestAdviceRoom(t *testing.T) {
	var f Fill
	for i := range 3 {
		f.Blocks = append(f.Blocks, Held{Handle: fmt.Sprint("b", i+1), Tool: "Read", Size: 1000, Age: 2}) // a line of 36 bytes
	}
	for i := range 5 {
		f.Out = append(f.Out, Held{Handle: fmt.Sprint("o", i+1), Tool: "Read", Size: 1000}) // a line of 23 bytes
	}
	f.More = 7
	for _, row := range []struct {
		in, out, room int
		want          string
	}{
		{5, 5, 1000, "b1 b2 b3 o1 o2 o3 o4 o5 and 7 more"},
		{2, 3, 1000, "b1 b2 o1 o2 o3 and 9 more"},
		{5, 5, 263, "b1 b2 b3 o1 o2 o3 o4 and 8 more"},
		{5, 5, 262, "b1 b2 b3 o1 o2 o3 and 9 more"},
		{5, 5, 240, "b1 b2 b3 o1 o2 o3 and 9 more"},
		{5, 5, 239, "b1 b2 o1 o2 o3 o4 and 8 more"},
		{5, 5, 168, "b1 o1 o2 o3 and 9 more"},
		{5, 5, 167, "o1 o2 o3 o4 o5 and 7 more"},
		{5, 5, 66, "o1 and 11 more"},
		{5, 5, 65, ""},
		{5, 0, 56, "b1"},
		{5, 0, 55, ""},
	} {
		text := f.lists(row.in, row.out, false, row.room)
		var got []string
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			if name, ok := strings.CutPrefix(line, "- "); ok {
				line, _, _ = strings.Cut(name, " ")
			} else if strings.HasSuffix(line, ":") {
				continue
			}
			got = append(got, line)
		}
		if strings.Join(got, " ") != row.want || len(text) > row.room {
			t.Errorf("%d bytes: got %v with %d bytes, want %s", row.room, got, len(text), row.want)
		}
	}
	f.More = 0
	if got := f.lists(5, 5, false, 1000); strings.Contains(got, "more") {
		t.Errorf("all is told, and more: %s", got)
	}
	if got := f.lists(5, 4, false, 1000); !strings.HasSuffix(got, "and 1 more\n") {
		t.Errorf("one is not told: %s", got)
	}
}

// TestNearEnd: what is left of the window, and what leaves next.
func TestNearEnd(t *testing.T) {
	const none = "Nothing else is old enough to leave by itself, so what you release now helps most.\n"
	for _, row := range []struct {
		f    Fill
		want string
	}{
		{Fill{Size: 98_766, Window: 100_000}, "1,234 tokens are left. " + none},
		{Fill{Size: 99, Window: 100}, "1 tokens are left. " + none},
		{Fill{Size: 100, Window: 100}, "The window is full. " + none},
		{Fill{Size: 101, Window: 100}, "The window is full. " + none},
		{Fill{Size: 99, Window: 100, Next: 1, NextBytes: 1234}, "1 tokens are left. Next to leave by themselves: 1 results, 1,234 bytes (marked *). Note down what you need of them.\n"},
	} {
		if got := nearEnd(row.f); got != row.want {
			t.Errorf("%+v: %q, want %q", row.f, got, row.want)
		}
	}
}

// TestHeldLine: a block that is in has its age, one that leaves next a mark where marks are wanted.
func TestHeldLine(t *testing.T) {
	for _, row := range []struct {
		h            Held
		marked, aged bool
		want         string
	}{
		{Held{Handle: "h", Size: 5}, false, false, "- h result: 5 bytes\n"},
		{Held{Handle: "h", Tool: "Read", Path: "/a", Size: 5, Age: 3, Next: true}, false, false, "- h Read /a: 5 bytes\n"},
		{Held{Handle: "h", Size: 5}, true, true, "- h result: 5 bytes, 0 turns old\n"},
		{Held{Handle: "h", Size: 5, Age: 1}, true, true, "- h result: 5 bytes, 1 turn old\n"},
		{Held{Handle: "h", Size: 5, Age: 2, Next: true}, true, true, "- h * result: 5 bytes, 2 turns old\n"},
		{Held{Handle: "h", Tool: strings.Repeat("t", 21), Path: strings.Repeat("p", 27), Size: 5}, false, false, "- h …" + strings.Repeat("t", 17) + " …" + strings.Repeat("p", 23) + ": 5 bytes\n"},
		{Held{Handle: "h", Tool: strings.Repeat("t", 20), Path: strings.Repeat("p", 26), Size: 5}, false, false, "- h " + strings.Repeat("t", 20) + " " + strings.Repeat("p", 26) + ": 5 bytes\n"},
	} {
		if got := row.h.line(row.marked, row.aged); got != row.want {
			t.Errorf("%+v: %q, want %q", row.h, got, row.want)
		}
	}
}

// TestWays: the grammar is told up to its bound, the turn with it, and recall where that is there.
func TestWays(t *testing.T) {
	const begin = "Done with some of it? Call memory_release with {\"paths\":[\"HANDLE or path\"]}. To have back what is out: memory_fault with {\"paths\":[\"HANDLE or path\"]}"
	const end = ". Say in your answer what you still need of it.\n"
	long := strings.Repeat("g", adviceTags)
	for _, row := range []struct {
		f    Fill
		want string
	}{
		{Fill{}, begin + end},
		{Fill{Turn: 9}, begin + end},
		{Fill{Recall: true}, begin + ", or recall with {\"entry\":\"HANDLE\"}" + end},
		{Fill{Grammar: long}, begin + end + long + "\n"},
		{Fill{Grammar: long + "g", Turn: 9}, begin + end},
		{Fill{Grammar: "g\n", Turn: 1}, begin + end + "g\nThis is turn 1.\n"},
	} {
		if got := row.f.ways(); got != row.want {
			t.Errorf("%+v: %q, want %q", row.f, got, row.want)
		}
	}
}

// TestPlainHandle: a handle can have each byte that needs no escape in JSON and ends no word.
func TestPlainHandle(t *testing.T) {
	const plain = "!#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^_`abcdefghijklmnopqrstuvwxyz{|}~"
	for c := range 256 {
		if got := plainHandle("a" + string([]byte{byte(c)}) + "b"); got != (strings.IndexByte(plain, byte(c)) >= 0) {
			t.Errorf("byte %#x: %v", c, got)
		}
	}
	for n, want := range map[int]bool{0: false, 1: true, adviceHandle: true, adviceHandle + 1: false} {
		if plainHandle(strings.Repeat("a", n)) != want {
			t.Errorf("%d bytes: %v", n, !want)
		}
	}
}

// TestOneLine: of a name that is too long the end stays, whole characters of it.
func TestOneLine(t *testing.T) {
	for _, row := range []struct {
		name string
		n    int
		want string
	}{
		{"abcde", 5, "abcde"}, {"abcdef", 5, "…ef"}, {"  abcde ", 5, "abcde"}, {"   ", 5, ""}, {"", 5, ""},
		{"a\nb\"c", 5, "a_b_c"}, {"a`\xff", 5, "a__"}, {"a b", 5, "a b"}, {"a\u00a0b", 5, "a_b"},
		{"éééé", 5, "…é"}, {"ééééa", 5, "…a"}, {"ééé", 4, "…"}, {"aéé", 5, "aéé"},
	} {
		if got := oneLine(row.name, row.n); got != row.want {
			t.Errorf("%q in %d bytes: %q, want %q", row.name, row.n, got, row.want)
		}
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 7: "7", 999: "999", 1000: "1,000", 12_345: "12,345", 123_456: "123,456", 1_234_567: "1,234,567"} {
		if got := grouped(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}

// TestAdviceCounts: how many blocks are told of in each zone, where there is room for all.
func TestAdviceCounts(t *testing.T) {
	var f Fill
	for range 20 {
		f.Blocks = append(f.Blocks, Held{Handle: "b", Tool: "Read", Size: 1})
		f.Out = append(f.Out, Held{Handle: "o", Tool: "Read", Size: 1})
	}
	f.Window = 100
	for size, want := range map[tidemark.Tokens][2]int{30: {5, 3}, 49: {5, 3}, 50: {5, 5}, 59: {5, 5}, 60: {10, 10}, 200: {10, 10}} {
		f.Size = size
		text := Advice(f)
		if got := [2]int{strings.Count(text, "\n- b "), strings.Count(text, "\n- o ")}; got != want {
			t.Errorf("%d tokens: %v are in and out, want %v:\n%s", size, got, want, text)
		}
	}
}

// TestAdviceAtZones: what is said is that of the zone from its first token on, and how much is listed.
func TestAdviceAtZones(t *testing.T) {
	for _, row := range []struct {
		size    tidemark.Tokens
		in, out int
		want    string
	}{
		{30, 5, 3, "Context: 30 of 100 tokens (30 %), zone advisory. There is room, but results that you no longer need cost it.\n"},
		{50, 5, 5, "Context: 50 of 100 tokens (50 %), zone involuntary. Old results now leave by themselves, a note stands for each.\n"},
		{60, 10, 9, "Context: 60 of 100 tokens (60 %), zone aggressive. 40 tokens are left. Nothing else is old enough to leave by itself, so what you release now helps most.\n"},
	} {
		f := full(row.size)
		f.Window, f.Next, f.Out = 100, 0, f.Blocks
		got := Advice(f)
		in, out, _ := strings.Cut(got, "Out, the newest first:")
		if m, n := strings.Count(in, "\n- "), strings.Count(out, "\n- "); !strings.HasPrefix(got, row.want) || m != row.in || n != row.out {
			t.Errorf("%d tokens, %d blocks that are in and %d that are out, want %d and %d:\n%s", row.size, m, n, row.in, row.out, got)
		}
		if f.Size--; strings.Contains(Advice(f), "zone "+Zones{}.Of(row.size, 100).String()) {
			t.Errorf("a token less says the same: %s", Advice(f))
		}
	}
}
