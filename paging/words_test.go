package paging

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestAskedFor: what a call runs or looks for, up to 199 bytes of it as JSON, and no part of an escape or a character.
func TestAskedFor(t *testing.T) {
	a := func(n int) string { return strings.Repeat("a", n) }
	const b = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	for _, row := range []struct{ name, input, want string }{
		{"a command before a query", `{"query":"q","command":"c"}`, "c"},
		{"cmd", `{"query":"q","cmd":"c"}`, "c"},
		{"a pattern", `{"url":"u","regex":"r","query":"q","pattern":"p"}`, "p"},
		{"a query", `{"url":"u","regex":"r","query":"q"}`, "q"},
		{"regex", `{"url":"u","regex":"r"}`, "r"},
		{"an address", `{"URL":"u"}`, "u"},
		{"none that is no text", `{"command":["x"],"cmd":7,"url":"u"}`, "u"},
		{"an empty one is one", `{"command":"","url":"u"}`, ""},
		{"nothing", `{"path":"x"}`, ""},
		{"an escape", `{"command":"a\n\u00e9"}`, "a\né"},
		{"all that fits", `{"command":"` + a(198) + `"}`, a(198)},
		{"a byte more", `{"command":"` + a(199) + `"}`, a(199)},
		{"the beginning of more", `{"command":"` + a(250) + `"}`, a(199)},
		{"not half a character", `{"command":"` + a(198) + `é` + b + `"}`, a(198)},
		{"an escape well before the end", `{"command":"` + a(186) + `\n` + b + `"}`, a(186) + "\n" + b[:11]},
		{"near the end it ends there", `{"command":"` + a(187) + `\n` + b + `"}`, a(187)},
		{"nearer", `{"command":"` + a(190) + `\n` + b + `"}`, a(190)},
		{"nearest", `{"command":"` + a(198) + `\n` + b + `"}`, a(198)},
		{"not half an escape", `{"command":"` + a(186) + `\\` + b + `"}`, a(186)},
		{"a long escape before the end", `{"command":"` + a(186) + `\u00e9` + b + `"}`, a(186) + "é" + b[:7]},
		{"a pair of them", `{"command":"` + a(186) + `\ud83c\udf0a` + b + `"}`, a(186) + "\ufffd"},
	} {
		if got := fields([]byte(row.input)).asked(); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

// TestPrograms: what stands before a program, and which word behind it says what it does.
func TestPrograms(t *testing.T) {
	for command, want := range map[string]string{
		"cd /a; cd /b; make": "make ", "cd /a && cd /b && make all": "make all", "time env sudo make": "make ", "; && make": "make ", "sudo": "sudo ", "A=1 B=2 go vet": "go vet",
		"go 'test'": "go test", `go "-x" "vet"`: "go vet", "ls a": "ls ", "ls ab": "ls ab", "ls - ab": "ls ab", "ls -l -a": "ls ", "/usr/bin/My-Tool Do_It": "mytool doit", "make -C a bc": "make bc",
	} {
		name, first := program(command)
		if got := name + " " + first; got != want {
			t.Errorf("%q runs %q, want %q", command, got, want)
		}
	}
}

// codesIn are the words of a text that are codes.
func codesIn(text string) (words []string) {
	known := map[uint32]string{}
	for _, w := range strings.Fields(text) {
		known[hashed([]byte(w))] = w
	}
	codes([]byte(text), func(h uint32) bool {
		words = append(words, known[h])
		return true
	})
	return words
}

// TestCodeLengths: from how many bytes on, and up to how many, a word is a code.
func TestCodeLengths(t *testing.T) {
	d, l := strings.Repeat("1", longWord), "a"+strings.Repeat("1", longWord-1)
	const all = "a12 a123 1234 12345 ABCD ABCDE ABCDe ABC-E ABC_ A-1_ -123 abcde a-b-c 1-2-3"
	if got, want := codesIn(all), strings.Fields("a123 12345 ABCDE ABC-E A-1_ 1-2-3"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := codesIn(d + " " + l + " " + d + "1 " + l + "1 a123"); !slices.Equal(got, []string{d, l, "a123"}) {
		t.Errorf("of words of %d bytes and of one more %d are codes", longWord, len(got))
	}
	n := 0
	codes([]byte("a123 b123 c123"), func(uint32) bool { n++; return n < 2 })
	if n != 2 {
		t.Errorf("%d codes, want two", n)
	}
	for word, want := range map[string]uint32{"": 0x811c9dc5, "a": 0xe40c292c, "foobar": 0xbf9cf968} { // the vectors of FNV-1a
		if got := hashed([]byte(word)); got != want {
			t.Errorf("%q: %#x", word, got)
		}
	}
}

// TestCodesKept: of a result its first 128 codes are kept, each once, as bits of a set that is stored and read again.
func TestCodesKept(t *testing.T) {
	var text strings.Builder
	for i := range 3 * maxCodes {
		fmt.Fprintf(&text, "x%04d x%04d ", i, i/2)
	}
	bits, n := map[uint32]bool{}, 0
	codes([]byte(text.String()), func(h uint32) bool {
		if a, b := h%1024, h/1024%1024; !bits[a] || !bits[b] {
			bits[a], bits[b] = true, true
			n++
		}
		return n < maxCodes
	})
	set := codesOf([]byte(text.String()))
	for _, c := range []*coded{set, codedFrom(set.bytes())} {
		for bit := range uint32(1024) {
			if got := c[bit/64]>>(bit%64)&1 == 1; got != bits[bit] {
				t.Fatalf("bit %d is %v", bit, got)
			}
		}
	}
	if n != maxCodes {
		t.Errorf("%d codes", n)
	}
	for i := range 5 {
		if !set.has(hashed(fmt.Appendf(nil, "x%04d", i))) {
			t.Errorf("code %d is not there", i)
		}
	}
	set = codesOf([]byte("only x0001 here"))
	if a, b := set.bits(hashed([]byte("x0001"))); a == b || a^1 == b || !set.has(a|b<<10) || set.has(a|(b^1)<<10) || set.has((a^1)|b<<10) {
		t.Error("a code is there when both its bits are, and only then")
	}
	if codesOf([]byte("none here")) != nil || (*coded)(nil).bytes() != nil || codedFrom(nil) != nil || codedFrom(make([]byte, 127)) != nil {
		t.Error("there is a set of nothing")
	}
}

// TestTurnWords: which words of a turn are kept, plain, and how many.
func TestTurnWords(t *testing.T) {
	say := func(text string) *said {
		s := &said{words: map[string]bool{}}
		s.speaks([]byte(text))
		return s
	}
	long := strings.Repeat("w", longWord)
	for text, want := range map[string]string{
		"": "", "a": "", "ab": "ab", "Go-On, to_x (a. b) é. x.y.": "goon tox x.y é", "--ab..cd__": "ab..cd", "E4711!": "e4711", "don't": "don",
		long: long, long + "w": long, "…é": "…é", "ab\u0080cd\x7fef": "ab\u0080cd ef", "ab\x80cd": "ab\x80cd",
	} {
		if got := strings.Join(slices.Sorted(maps.Keys(say(text).words)), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	var many strings.Builder
	for i := range 2 * maxSaid {
		fmt.Fprintf(&many, "w%03d w%03d ", i, i)
	}
	s := say(many.String())
	if last := fmt.Sprintf("w%03d", maxSaid-1); len(s.words) != maxSaid || !s.words[last] || len(s.codes) != maxCodes {
		t.Errorf("%d words and %d codes", len(s.words), len(s.codes))
	}
	for i, c := range s.codes {
		if c != hashed(fmt.Appendf(nil, "w%03d", i/2)) {
			t.Fatalf("code %d is %#x", i, c)
		}
	}
}

// TestNameBytes: which bytes end the name of a file, which are taken off its ends, and how many names are kept.
func TestNameBytes(t *testing.T) {
	const ends, trimmed = "\"'`(),<>[]@", ".:;!?*"
	for c := range 256 {
		b := string([]byte{byte(c)})
		valid := strings.ToValidUTF8(b, "")
		inside, around := []string{"a.x" + valid + "c.y"}, []string{valid + "d/e" + valid}
		if c <= ' ' || strings.IndexByte(ends, byte(c)) >= 0 {
			inside, around = []string{"a.x", "c.y"}, []string{"d/e"}
		}
		if strings.IndexByte(trimmed, byte(c)) >= 0 {
			around = []string{"d/e"}
		}
		if got := fileNames(nil, []byte("a.x"+b+"c.y")); !slices.Equal(got, inside) {
			t.Errorf("byte %#x inside: %q, want %q", c, got, inside)
		}
		if got := fileNames(nil, []byte(b+"d/e"+b)); !slices.Equal(got, around) {
			t.Errorf("byte %#x around: %q, want %q", c, got, around)
		}
	}
	var text strings.Builder
	for i := range maxNames + 5 {
		fmt.Fprintf(&text, "f%d.go ", i)
	}
	got := fileNames([]string{"was/there"}, []byte(text.String()))
	if len(got) != maxNames || got[0] != "was/there" || got[maxNames-1] != fmt.Sprintf("f%d.go", maxNames-2) {
		t.Errorf("%d names: %q", len(got), got)
	}
}

// TestHintOnce: what a turn may speak of stays once for it, and again for the next turn that does; what it names stays as long as it is
// the newest.
func TestHintOnce(t *testing.T) {
	s := scripted(t, "begin; bash x + read /src/tide.go v + write /src/moon.go v; show png; say the bash output and tide.go; say thanks; say and bash once more")
	p, err := New(Options{Policy: "lru", Tau: 99})
	if err != nil {
		t.Fatal(err)
	}
	asked := func(part Part, id string) (got string) {
		for _, g := range p.pages {
			if g.Part == part && (g.ID == id || part == Image) {
				return fmt.Sprint(p.spoken(g), " ", p.needed(g), " ", p.needed(g))
			}
		}
		return "no page"
	}
	for i, want := range [][4]string{
		2: {"false false false", "false false false", "false false false", "true true true"},
		3: {"false true false", "true true true", "false false false", "false false false"},
		4: {"false false false", "false false false", "false false false", "false false false"},
		5: {"false true false", "false false false", "false false false", "false false false"},
	} {
		for len(p.marks) <= i {
			if _, err := p.Step(s.Steps[len(p.marks)]); err != nil {
				t.Fatal(err)
			}
		}
		if want[0] == "" {
			continue
		}
		if got := [4]string{asked(Result, "t1"), asked(Result, "t2"), asked(Input, "t3"), asked(Image, "")}; got != want {
			t.Errorf("request %d: %q, want %q", i, got, want)
		}
	}
}

// TestHinted has a row for each thing that a turn may speak of, and how it must be said.
func TestHinted(t *testing.T) {
	read := func(file string) *Page { return &Page{Read: true, Call: Call{Tool: "Read", Path: file}} }
	ran := func(command string) *Page { return &Page{Call: Call{Tool: "Bash", Asks: command}} }
	for _, row := range []struct {
		name  string
		page  *Page
		words string
		other bool // a newer result of the tool, and of the program, is there
		want  bool
	}{
		{"a file's name without its extension", read("/src/moon.go"), "the moon", true, true},
		{"of three letters it is none", read("/src/sun.go"), "the sun", true, false},
		{"of a file that was written", &Page{Part: Input, Call: Call{Tool: "Write", Path: "/src/moon.go"}}, "the moon", true, true},
		{"of a call that only looks", &Page{Call: Call{Tool: "Grep", Path: "/src/moon.go"}}, "the moon", true, false},
		{"the name of its tool", read("/a"), "the read result", false, true},
		{"of which a newer result is there", read("/a"), "the read result", true, false},
		{"of an input it is none", &Page{Part: Input, Call: Call{Tool: "Write", Path: "/a"}}, "the write call", false, false},
		{"a program and what it did", ran("go vet ./..."), "go and vet", true, true},
		{"a program of two letters alone", ran("go vet ./..."), "go on", false, false},
		{"what it did alone", ran("go vet ./..."), "the vet", false, false},
		{"a program whose newest result it is", ran("git log"), "what git says", false, true},
		{"one of which a newer result is there", ran("git log"), "what git says", true, false},
		{"one that does one thing", ran("make"), "as make says", true, true},
		{"a code that stands in it", &Page{codes: codesOf([]byte("error E4711 here"))}, "what is E4711", true, true},
		{"another code", &Page{codes: codesOf([]byte("error E4711 here"))}, "what is E4712", true, false},
		{"nothing of it", ran("git log"), "and then", false, false},
	} {
		p, err := New(Options{})
		if err != nil {
			t.Fatal(err)
		}
		var m Message
		m.speaks([]byte(row.words))
		p.costs.said = m.said
		newest := row.page
		if row.other {
			newest = &Page{}
		}
		for _, name := range []string{"read", "bash", "write", "$git", "$go", "$make"} {
			p.newest[name] = newest
		}
		if got := p.hinted(row.page); got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
}

// TestNewest: the newest result of a tool and of a program is known to the policies for which hints count.
func TestNewest(t *testing.T) {
	first, second := &Page{Call: Call{Tool: "My_Bash", Asks: "go vet"}}, &Page{Call: Call{Tool: "mybash", Asks: "-"}}
	both := map[string]*Page{"mybash": second, "$go": first}
	for policy, want := range map[string]map[string]*Page{"cost": both, "lru": both, "fifo": {}, "batch": {}} {
		p, err := New(Options{Policy: policy})
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range []*Page{first, second, {}} {
			p.newer(g)
		}
		if !maps.Equal(p.newest, want) {
			t.Errorf("%s: %v, want %v", policy, p.newest, want)
		}
	}
}
