package paging

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
)

var update = flag.Bool("update", false, "write the golden files anew")

// full is a context with blocks of falling size.
func full(size tidemark.Tokens) Fill {
	f := Fill{Size: size, Window: 200_000, Next: 4, NextBytes: 41_000}
	tools := []string{"Read", "Bash", "mcp__files__read_text_file", ""}
	paths := []string{"/srv/shop/project/internal/paging/pager.go lines 1-400", "", "README.md", ""}
	for i := range 12 {
		f.Blocks = append(f.Blocks, Held{Handle: "01KDYAJY80PCG4KQA5TTVHBQ" + string(rune('A'+i)) + "0#1", Tool: tools[i%4], Path: paths[i%4],
			Size: 64_000 - 5000*i, Age: i, Next: i >= 6})
	}
	return f
}

// outOfIt is such a context of which much is out, at the door: the tags are understood there.
func outOfIt(size tidemark.Tokens) Fill {
	f := full(size)
	for i := range 10 {
		f.Out = append(f.Out, Held{Handle: "01KDYAJY80PCG4KQA5TTVHBP" + string(rune('A'+i)) + "0#0", Tool: []string{"Read", "Bash"}[i%2], Path: []string{"internal/paging/pager.go lines 1-400", ""}[i%2], Size: 9000 - 700*i})
	}
	f.More, f.Tags, f.Turn, f.Grammar = 31, true, 57, "The grammar stands here:\n<memory_cleanup>\n"+strings.Repeat("drop: block:ID\n", 24)+"</memory_cleanup>"
	return f
}

// TestAdvice compares what is said in each zone with testdata/advice-*.txt.
func TestAdvice(t *testing.T) {
	said := map[string]string{}
	for name, f := range map[string]Fill{"normal": full(59_999), "advisory": full(64_000), "involuntary": full(101_500), "aggressive": full(171_234),
		"overfull":     {Size: 240_000, Window: 200_000},
		"out-advisory": outOfIt(64_000), "out-involuntary": outOfIt(101_500), "out-aggressive": outOfIt(171_234),
		"recall": {Size: 171_000, Window: 200_000, Recall: true, Out: full(0).Blocks[:2]}} {
		got := Advice(f)
		said[name] = got
		file := filepath.Join("testdata", "advice-"+name+".txt")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
	}
	if said["normal"] != "" {
		t.Error("something is said though nothing is wrong")
	}
	for _, out := range []string{"", "out-"} {
		if a, i, g := len(said[out+"advisory"]), len(said[out+"involuntary"]), len(said[out+"aggressive"]); g <= a || g <= i || a > i && out != "" || g > adviceBytes {
			t.Errorf("%d, %d and %d bytes: want the most at the end of the window, and at most %d", a, i, g, adviceBytes)
		}
	}
	for _, zone := range []string{"advisory", "involuntary", "aggressive"} {
		s := said["out-"+zone]
		if _, list, _ := strings.Cut(s, "Out, the newest first:\n"); strings.Count(list, "\n- ")+1 < adviceOut || !strings.Contains(s, "</memory_cleanup>\nThis is turn 57.\n") {
			t.Errorf("%s: want what is out, the grammar and the turn:\n%s", zone, s)
		}
	}
	if strings.Count(said["advisory"], "\n- ") != 5 || strings.Count(said["aggressive"], "\n- ") != 10 {
		t.Error("want five blocks, and ten at the end of the window")
	}
}

// TestAdviceNames: whatever tools and files are called, each block has one line, and what is said is bounded.
func TestAdviceNames(t *testing.T) {
	for _, name := range []string{"a\n- FAKE Read b: 1 bytes", "a\r\u2028\u2029b", "\x00\x1b[31m", "\"`", strings.Repeat("d/", 1000) + "end.go", strings.Repeat("é", 900), "\xff\xfe", "a\u202eb", "   "} {
		f := full(171_000)
		for i := range f.Blocks {
			f.Blocks[i].Tool, f.Blocks[i].Path, f.Blocks[i].Size = name, name, 1<<60
		}
		f.Out, f.More = append(f.Out, f.Blocks...), 1<<40
		got := Advice(f)
		if n := strings.Count(got, "\n- "); n < adviceBlocks+adviceOut || len(got) > adviceBytes || !utf8.ValidString(got) {
			t.Errorf("%.40q: %d blocks, %d bytes:\n%s", name, n, len(got), got)
		}
		for line := range strings.Lines(got) {
			for _, r := range strings.TrimSuffix(line, "\n") {
				if !unicode.IsPrint(r) || strings.HasPrefix(line, "- ") && (r == '"' || r == '`') {
					t.Fatalf("%.40q: %q in %q", name, r, line)
				}
			}
			if strings.HasPrefix(line, "- ") && !strings.HasPrefix(line, "- 01K") {
				t.Errorf("%.40q made a line: %q", name, line)
			}
		}
	}
	if got := oneLine(strings.Repeat("d/", 1000)+"end.go", advicePath); !strings.HasSuffix(got, "/end.go") || len(got) > advicePath {
		t.Errorf("got %q: want the end of the path", got)
	}
}

// TestFill: the largest that are still there and are large, and never a handle that could not be said.
func TestFill(t *testing.T) {
	var s script
	large := strings.Repeat("v", 20)
	for _, l := range []string{"begin", "read /a " + large, "read /small v", "read /b 1-50 " + large + "v + bash " + large + " as odd", "say", "edit /b"} {
		s.request(l)
	}
	sc := Scanner{Tools: DefaultTools()}
	session, err := sc.Session([]byte(`{"session":"s","steps":[` + s.b.String() + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(Options{Policy: "fifo", Tau: 4, Window: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range session.Steps {
		if _, err := p.Step(st); err != nil {
			t.Fatal(err)
		}
	}
	f := p.Fill(nil)
	if len(f.Out) != 1 || f.Out[0] != (Held{"t1", "Read", "/a", 6300, 4, false}) || f.More != 0 {
		t.Errorf("out are %+v", f.Out)
	}
	if f.Size != p.Size() || f.Window != 10_000 || len(f.Blocks) != 2 {
		t.Fatalf("got %+v", f)
	}
	if got, want := f.Blocks[0], (Held{"t3", "Read", "/b lines 1-50", 6600, 2, false}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := f.Blocks[1], (Held{"odd", "Bash", "", 6300, 2, false}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, name := range []string{"", "a b", "a\nb", "a\"b", "ä", strings.Repeat("a", adviceHandle+1)} {
		if f := p.Fill(func(*Page) string { return name }); len(f.Blocks) > 0 {
			t.Errorf("the handle %q is listed", name)
		}
	}
}

// TestFillOut: of what is out, ten are named, what left last first, and of the rest how many there are.
func TestFillOut(t *testing.T) {
	for _, n := range []int{2*adviceBlocks - 1, 2 * adviceBlocks, 2*adviceBlocks + 1, 3 * adviceBlocks} {
		p := stepped(t, Options{Policy: "fifo", Tau: 1}, scripted(t, "begin"+strings.Repeat("; bash x", n)+"; say; say; say"))
		if len(p.Stubs()) != n {
			t.Fatalf("%d of %d are out", len(p.Stubs()), n)
		}
		f := p.Fill(nil)
		if len(f.Out) != min(n, 2*adviceBlocks) || f.More != max(n-2*adviceBlocks, 0) {
			t.Errorf("of %d that are out %d are named, and %d more", n, len(f.Out), f.More)
		}
		for i, held := range f.Out {
			if want := p.Stubs()[n-1-i].ID; held.Handle != want {
				t.Errorf("%d of %d: %s, want %s", i, n, held.Handle, want)
			}
		}
	}
}
