package cleanup

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
)

const block = "<memory_cleanup>\ndrop: block:A#0\n</memory_cleanup>"

func TestStrip(t *testing.T) {
	drop := []Op{{Verb: Drop, Handle: "A#0"}}
	rows := []struct {
		name, text, want string
		ops              []Op
	}{
		{"alone", block, "", drop},
		{"its own line goes with it", "a\n" + block + "\nb", "a\nb", drop},
		{"CRLF", "a\r\n" + strings.ReplaceAll(block, "\n", "\r\n") + "\r\nb", "a\r\nb", drop},
		{"CR", "a\r" + strings.ReplaceAll(block, "\n", "\r") + "\rb", "a\rb", drop},
		{"nothing is squeezed", "a\n\n\n" + block + "\n\n\nb\n", "a\n\n\n\n\nb\n", drop},
		{"blanks around", "a\n  " + block + " \t\nb", "a\nb", drop},
		{"blanks at the end", "a\n" + block + "  ", "a\n", drop},
		{"text behind", "a\n " + block + " b", "a\n  b", drop},
		{"two on a line", block + " " + block + "\nb", "b", append(drop, drop...)},
		{"on one line", "<memory_cleanup>drop: block:A#0</memory_cleanup>", "", drop},
		{"empty", "<memory_cleanup>\n\n</memory_cleanup>\nb", "b", nil},
		{"twice", block + "\na\n" + block, "a\n", append(drop, drop...)},
		{"behind a closed fence", "```go\nx\n```\n" + block, "```go\nx\n```\n", drop},
		{"behind a nested list's fence", "- a\n  1. b\n     ```\n     x\n     ```\n\n" + block, "- a\n  1. b\n     ```\n     x\n     ```\n\n", drop},
		{"behind inline code", "`a`\n" + block, "`a`\n", drop},
		{"behind escaped code", "\\`a\n" + block, "\\`a\n", drop},
		{"behind a quotation", "> a\n\n" + block, "> a\n\n", drop},
		{"behind pre", "<pre>a</pre>\n" + block, "<pre>a</pre>\n", drop},
		{"pre in code", "`<pre>` is\n" + block, "`<pre>` is\n", drop},
		{"no fence has ticks behind", "``` a ```\n" + block, "``` a ```\n", drop},
		{"an unclosed one behind is text", block + "\n<memory_cleanup>\ndrop: block:B", "<memory_cleanup>\ndrop: block:B", drop},
	}
	for _, r := range rows {
		got, ops := Strip(r.text)
		if got != r.want || !reflect.DeepEqual(ops, r.ops) {
			t.Errorf("%s: Strip(%q) = %q, %v; want %q, %v", r.name, r.text, got, ops, r.want, r.ops)
		}
	}
}

// What is not a block, or may be quoted, comes out as it went in, and nothing is done.
func TestText(t *testing.T) {
	rows := map[string]string{
		"plain":                     "a\n\n\nb < c <mem <memory_cleanup",
		"not at the start":          "a " + block,
		"far right":                 "    " + block,
		"tab":                       "\t" + block,
		"capitals":                  strings.ToUpper(block),
		"unclosed":                  "<memory_cleanup>\ndrop: block:A#0\n",
		"half closed":               "<memory_cleanup>\ndrop: block:A#0\n</memory_cleanup",
		"one line is none":          "<memory_cleanup>\ndrop: block:A#0\nplease\n</memory_cleanup>",
		"nested":                    "<memory_cleanup>\n" + block + "\n</memory_cleanup>",
		"nested in bad":             "<memory_cleanup>\nx\n" + block,
		"bullet":                    "<memory_cleanup>\n- drop: block:A#0\n</memory_cleanup>",
		"too long":                  "<memory_cleanup>\n" + strings.Repeat("drop: block:A#0\n", MaxBlock/16) + "</memory_cleanup>",
		"fence":                     "```\n" + block + "\n```\n",
		"fence with a word":         "```xml\n" + block + "\n```\n",
		"tilde":                     "~~~\n```\n" + block + "\n~~~",
		"long fence":                "`````\n```\n" + block + "\n`````",
		"indented fence":            "   ```\n" + block + "\n   ```",
		"not closed by deep":        "```\n    ```\n" + block + "\n```",
		"not closed by words":       "```\n``` x\n" + block + "\n```",
		"fence of an item":          "- ```\n  " + block + "\n  ```",
		"fence of a numbered item":  "10) ```\n" + block + "\n    ```",
		"fence below an item":       "- a\n\n  ```\n  " + block + "\n  ```",
		"fence of the second item":  "- ```\n- foo\n  ```\n  " + block + "\n  ```",
		"a fence that was code":     "    ```\n\n```\n" + block + "\n```",
		"a fence that was code, ~":  "    ```\n\n~~~\n    ```\n" + block + "\n~~~",
		"code, then an open span":   "    ```\n a ` b\n    ```\n" + block + "\n`",
		"CRLF fence":                "```\r\n" + block + "\r\n```\r\n",
		"CR fence":                  "a\r```\r" + block + "\r```",
		"inline":                    "`" + block + "`",
		"inline over lines":         "a `b\n" + block + "\n` c",
		"inline, escaped first":     "a \\` b ` c\n" + block + "\n`",
		"inline, escaped backslash": "a \\\\` c\n" + block + "\n`",
		"inline of two":             "a `` b ` c\n" + block + "\n``",
		"quotation":                 "> " + block,
		"lazy quotation":            "> a\n" + block,
		"quotation in an item":      "- > a\n" + block,
		"pre":                       "<pre>\n" + block + "\n</pre>",
		"code element":              "<PRE><code>\n" + block + "\n</code></PRE>",
		"comment":                   "<!-- \n" + block + "\n-->",
	}
	for name, text := range rows {
		for _, s := range []string{text, strings.ReplaceAll(text, "\r\n", "\n"), text + "\n"} {
			if got, ops := Strip(s); got != s || ops != nil {
				t.Errorf("%s: Strip(%q) = %q, %v", name, s, got, ops)
			}
		}
	}
}

// What cannot be a block is seen at once, and what is held back has a bound.
func TestHeld(t *testing.T) {
	rows := []struct {
		text string
		held int
	}{
		{"a", 0}, {"a\n", 0}, {"a\n  ", 2}, {"a\n    ", 0}, {"a\n <mem", 5}, {"a\n<memo_", 0}, {"a <memory_", 0},
		{"<memory_cleanup> is", 0}, {"<memory_cleanup>\nx", 0}, {"<memory_cleanup>\nan", 19}, {"<memory_cleanup>\nant", 0},
		{"```\n<mem", 0}, {"> a\n<mem", 0},
	}
	for _, r := range rows {
		var f Filter
		if got := f.Push(r.text); f.Held() != r.held || got != r.text[:len(r.text)-r.held] {
			t.Errorf("%q: seen %q, %d held; want %d", r.text, got, f.Held(), r.held)
		}
	}
	var f Filter
	for i := range 3 * MaxBlock {
		f.Push([]string{"<memory_cleanup>\n", "drop: block:A#0\n", `summarize: block:A "`}[min(i, 2)])
		if f.Held() >= MaxBlock {
			t.Fatalf("%d bytes held", f.Held())
		}
	}
}

func pushAll(text string, size func() int) (string, []Op) {
	var f Filter
	var b strings.Builder
	for len(text) > 0 {
		n := max(0, min(size(), len(text)))
		b.WriteString(f.Push(text[:n]))
		text = text[n:]
	}
	b.WriteString(f.End())
	return b.String(), f.Ops()
}

// answer writes an answer of which it knows what is to be seen and done.
func answer(r *rand.Rand) (text, visible string, ops []Op) {
	br := []string{"\n", "\r\n"}[r.IntN(2)]
	var in, out strings.Builder
	both := func(s string) {
		s = strings.ReplaceAll(s, "\n", br)
		in.WriteString(s)
		out.WriteString(s)
	}
	for range 1 + r.IntN(6) {
		switch r.IntN(9) {
		case 0:
			both("Some text, <b>bold</b> and a < b.\n\n")
		case 1:
			both("Es war größer, 世界 `code` and ``a ` b``.\n\n")
		case 2:
			both("```go\n" + block + "\n```\n")
		case 3:
			both("~~~~\n```\n" + block + "\n~~~\n~~~~\n")
		case 4:
			both("> quoted\n> " + block + "\n\n")
		case 5:
			both("A span `of\n" + block + "\nlines`.\n\n")
		case 6:
			both("<memory_cleanup>\n" + block + "\n</memory_cleanup>\n")
		default:
			n := r.IntN(100)
			lines := []string{fmt.Sprintf("drop: block:E%d#1", n), fmt.Sprintf("  summarize: block:x:%d \"say \\\"it\\\" <so>\"", n),
				"", fmt.Sprintf("collapse: turns %d-%d \"ü\"  ", n+1, n+2), "release: a/b.go, block:Z#0"}
			want := [][]Op{{{Verb: Drop, Handle: fmt.Sprintf("E%d#1", n)}}, {{Verb: Summarize, Handle: fmt.Sprintf("x:%d", n), Text: `say "it" <so>`}},
				nil, {{Verb: Collapse, From: n + 1, To: n + 2, Text: "ü"}}, {{Verb: Release, Paths: []string{"a/b.go", "Z#0"}}}}
			in.WriteString(strings.Repeat(" ", r.IntN(4)) + openTag + br)
			for range r.IntN(4) {
				k := r.IntN(len(lines))
				in.WriteString(lines[k] + br)
				ops = append(ops, want[k]...)
			}
			in.WriteString(closeTag + strings.Repeat(" ", r.IntN(2)) + br)
		}
	}
	if r.IntN(4) == 0 {
		both("<memory_cleanup>\ndrop: block:A#0\n</memory")
	}
	return in.String(), out.String(), ops
}

func TestChunkings(t *testing.T) {
	runs := 100_000
	if testing.Short() {
		runs = 5_000
	}
	r, start := rand.New(rand.NewPCG(7, 26)), time.Now()
	var bytes int
	for range runs {
		text, visible, ops := answer(r)
		bytes += len(text)
		bound := 1 + r.IntN(64)
		got, done := pushAll(text, func() int { return r.IntN(bound + 1) })
		if got != visible || !reflect.DeepEqual(done, ops) {
			t.Fatalf("%q\nseen %q\nwant %q\ndone %v\nwant %v", text, got, visible, done, ops)
		}
	}
	t.Logf("%d chunkings of %d bytes in %v", runs, bytes, time.Since(start).Round(time.Millisecond))
}

func FuzzFilter(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		text, _, _ := answer(r)
		f.Add(text, uint64(3))
	}
	f.Add("    ```\r\n`a\\`\n\t- ```\n"+block, uint64(1))
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		want, ops := Strip(text)
		r := rand.New(rand.NewPCG(seed, 0))
		for _, bound := range []int{1, 2, 7, 40} {
			got, done := pushAll(text, func() int { return 1 + r.IntN(bound) })
			if got != want || !reflect.DeepEqual(done, ops) {
				t.Fatalf("%q, %v; whole %q, %v", got, done, want, ops)
			}
		}
		if len(ops) == 0 && want != text && !strings.Contains(text, closeTag) {
			t.Fatalf("%q became %q", text, want)
		}
		if again, more := Strip(want); again != want || len(more) > 0 {
			t.Fatalf("%q is seen and would be %q, %v", want, again, more)
		}
		for _, op := range ops {
			if op.Verb == Collapse && (op.From < 1 || op.To < op.From) || (op.Verb == Summarize || op.Verb == Collapse) && op.Text == "" {
				t.Fatalf("%+v", op)
			}
		}
	})
}

func TestParse(t *testing.T) {
	for _, line := range []string{"", "drop", "drop:", "drop: A#0", "Drop: block:A", "drop: block:", "drop: block:a b", "drop: block:" + strings.Repeat("a", 65),
		"drop : block:A", "summarize: block:A", `summarize: block:A ""`, `summarize: block:A "x`, `summarize: block:A " "`, `summarize: block:A x"`, `summarize: block:A "`,
		"release:", "release: a,,b", "release: a,", "release: " + strings.Repeat("a,", 64) + "a",
		`collapse: 1-2 "x"`, `collapse: turns 2-1 "x"`, `collapse: turns 0-1 "x"`, `collapse: turns 1 "x"`, `collapse: turns 1-2`, `collapse: turns1-2 "x"`,
		`collapse: turns -1-2 "x"`, `collapse: turns 1-99999999999 "x"`, "forget: block:A"} {
		if op, ok := parse(line); ok {
			t.Errorf("%q is %+v", line, op)
		}
	}
	op, ok := parse(`summarize: block:toolu_01-a "he said "yes", and \"no\" in C:\new"`)
	if !ok || op.Text != `he said "yes", and "no" in C:\new` || op.Handle != "toolu_01-a" {
		t.Errorf("%+v, %v", op, ok)
	}
}

func BenchmarkFilter(b *testing.B) {
	text := strings.Repeat("A line of an answer, with `code` and more of it.\n", 200)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Strip(text)
	}
}

// Strip parts a whole text.
func Strip(text string) (visible string, ops []Op) {
	var f Filter
	visible = f.Push(text)
	visible += f.End()
	return visible, f.Ops()
}
