package markup

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestConvert(t *testing.T) {
	for _, tt := range []struct{ name, in, whatsApp, telegram string }{
		{"plain", "Hello, Ada.", "Hello, Ada.", "Hello, Ada."},
		{"styles", "**b** *i* _i_ ~~s~~ `c`", "*b* _i_ _i_ ~s~ `c`", "<b>b</b> <i>i</i> <i>i</i> <s>s</s> <code>c</code>"},
		{"nested", "***both*** **a *b* c**", "*_both_* *a _b_ c*", "<b><i>both</i></b> <b>a <i>b</i> c</b>"},
		{"underscores in a word", "snake_case_name and __bold__", "snake_case_name and *bold*", "snake_case_name and <b>bold</b>"},
		{"stars alone", "2 * 3 * 4 and **", "2 * 3 * 4 and **", "2 * 3 * 4 and **"},
		{"left over", "**a*", "*_a_", "*<i>a</i>"},
		{"within a word", "un**believ**able", "unbelievable", "un<b>believ</b>able"},
		{"blanks at the marks stay outside", "**a **b", "**a **b", "**a **b"},
		{"over a line end", "**one\ntwo**", "*one*\n*two*", "<b>one\ntwo</b>"},
		{"escapes", `\*not\* 1\. a\b`, "*not* 1. a\\b", "*not* 1. a\\b"},
		{"HTML is text", "a < b && c > d <b>", "a < b && c > d <b>", "a &lt; b &amp;&amp; c &gt; d &lt;b&gt;"},
		{"heading", "# Top #\ntext\n### Low **x**", "*Top*\ntext\n*Low x*", "<b>Top</b>\ntext\n<b>Low x</b>"},
		{"no heading", "#tag and #5", "#tag and #5", "#tag and #5"},
		{"code in a heading", "## Use `go`", "*Use* `go`", "<b>Use </b><code>go</code>"},
		{"link", "see [the *docs*](https://x.y/a_b_c).", "see the _docs_ (https://x.y/a_b_c).", `see <a href="https://x.y/a_b_c">the <i>docs</i></a>.`},
		{"link of its own address", "[https://x.y](https://x.y)", "https://x.y", `<a href="https://x.y">https://x.y</a>`},
		{"link within", "[a](b/c.md)", "a (b/c.md)", "a (b/c.md)"},
		{"script is no link", "[a](javascript:x)", "a (javascript:x)", "a (javascript:x)"},
		{"quote in an address", `[a](https://x/?q="&b)`, `a (https://x/?q="&b)`, `a (https://x/?q=&quot;&amp;b)`},
		{"title", `[a](https://x.y "t")`, `a (https://x.y "t")`, `a (https://x.y &quot;t&quot;)`},
		{"parentheses", "[a](https://x.y/(z))", "a (https://x.y/(z))", `<a href="https://x.y/(z)">a</a>`},
		{"image", "![a cat](https://x.y/c.png)", "a cat (https://x.y/c.png)", `<a href="https://x.y/c.png">a cat</a>`},
		{"image in a link", "[![a](https://i.x)](https://l.x)", "a (https://i.x) (https://l.x)", `<a href="https://i.x">a</a> (https://l.x)`},
		{"a call is no link", "list[i](x)", "list[i](x)", "list[i](x)"},
		{"bracket in an address", "<https://x[y> a](https://b.c)", "https://x[y a](https://b.c)", "https://x[y a](https://b.c)"},
		{"task", "- [ ] do [x]", "- [ ] do [x]", "- [ ] do [x]"},
		{"bare address", "https://x.y/a_b_c*d* _https://x.y_", "https://x.y/a_b_cd _https://x.y_", "https://x.y/a_b_c<i>d</i> <i>https://x.y</i>"},
		{"address in brackets", "<https://x.y/_a_>", "https://x.y/_a_", "https://x.y/_a_"},
		{"line break", "a<br>b<br/>c", "a\nb\nc", "a\nb\nc"},
		{"list", "* a\n  + **b**\n1. c", "- a\n  - *b*\n1. c", "- a\n  - <b>b</b>\n1. c"},
		{"rule", "a\n\n***\n\nb", "a\n\n---\n\nb", "a\n\n---\n\nb"},
		{"quote", "> a **b**\n> c\n\nd", "> a *b*\n> c\n\nd", "<blockquote>a <b>b</b>\nc</blockquote>\n\nd"},
		{"quote in a quote", "> a\n> > b", "> a\n> > b", "<blockquote>a\n&gt; b</blockquote>"},
		{"table", "| A | B |\n|---|:-:|\n| 1 | `x\\|y` |\n\nz", "*A* | *B*\n1 | `x|y`\n\nz", "<b>A</b> | <b>B</b>\n1 | <code>x|y</code>\n\nz"},
		{"no table", "a | b\nc | d", "a | b\nc | d", "a | b\nc | d"},
		{"code", "a\n```go\nx := *p\n\n  <y>\n```\nb", "a\n```\nx := *p\n\n  <y>\n```\nb",
			"a\n<pre><code class=\"language-go\">x := *p\n\n  &lt;y&gt;</code></pre>\nb"},
		{"code without an end", "```\n**x**", "```\n**x**\n```", "<pre>**x**</pre>"},
		{"code of tildes", "~~~\n```\n~~~", "```\n```\n```", "<pre>```</pre>"},
		{"code in a list", "- a\n  ```\n  x\n    y\n  ```\n- b", "- a\n```\nx\n  y\n```\n- b", "- a\n<pre>x\n  y</pre>\n- b"},
		{"code behind a marker", "- ```\n  x\n  ```\nb", "- \n```\nx\n```\nb", "- \n<pre>x</pre>\nb"},
		{"code in a quote", "> a\n> ```\n> x\n> ```", "> a\n```\nx\n```", "<blockquote>a\n<pre>x</pre></blockquote>"},
		{"indented code", "a\n\n    *x*\n\nb", "a\n\n```\n*x*\n```\n\nb", "a\n\n<pre>*x*</pre>\n\nb"},
		{"code of two backticks", "``a`b`` `` ` ``", "`a`b` ```", "<code>a`b</code> <code>`</code>"},
		{"backtick alone", "a ` b **c**", "a ` b *c*", "a ` b <b>c</b>"},
		{"code in bold", "**a `b` c**", "*a* `b` *c*", "<b>a </b><code>b</code><b> c</b>"},
		{"line ends", "a\r\nb\rc", "a\nb\nc", "a\nb\nc"},
		{"nothing", " \n\t\n", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := whatsAppText(tt.in); got != tt.whatsApp {
				t.Errorf("WhatsApp(%q)\n got %q\nwant %q", tt.in, got, tt.whatsApp)
			}
			if got := telegramText(tt.in); got != tt.telegram {
				t.Errorf("Telegram(%q)\n got %q\nwant %q", tt.in, got, tt.telegram)
			}
		})
	}
}

func TestSplit(t *testing.T) {
	family := "👨\u200d👩\u200d👧"
	for _, tt := range []struct {
		name  string
		in    string
		limit int
		want  []string
	}{
		{"short", "a b", 10, []string{"a b"}},
		{"none", " \n ", 10, nil},
		{"paragraph", "aaaaaa\n\nbb bb", 10, []string{"aaaaaa", "bb bb"}},
		{"line", "aaaa a\nbb bbbb", 10, []string{"aaaa a", "bb bbbb"}},
		{"word", "aaaa bbbb cccc", 10, []string{"aaaa bbbb", "cccc"}},
		{"just fits", "aaaa bbbbb cccc", 10, []string{"aaaa bbbbb", "cccc"}},
		{"no blank", "aaaaaaaaaaaaaaa", 10, []string{"aaaaaaaaaa", "aaaaa"}},
		{"UTF-16", "😀😀😀", 4, []string{"😀😀", "😀"}},
		{"accent", "abce\u0301f", 4, []string{"abc", "e\u0301f"}},
		{"family", "ab" + family, 9, []string{"ab", family}},
		{"flags", "🇩🇪🇫🇷", 6, []string{"🇩🇪", "🇫🇷"}},
		{"invalid", "a\xffb", 10, []string{"a\uFFFDb"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Split(tt.in, tt.limit); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// A code block that is longer than a message is closed and opened again, and its lines are whole.
func TestPartsCode(t *testing.T) {
	var lines []string
	for i := range 400 {
		lines = append(lines, fmt.Sprintf("%s line %d of <code>", strings.Repeat("  ", i%4), i))
	}
	source := strings.Join(lines, "\n")
	text := "Here:\n\n```go\n" + source + "\n```\n\nDone."

	parts := WhatsAppParts(text)
	var code []string
	for _, p := range parts {
		if units(p) > Limit {
			t.Errorf("a part of %d", units(p))
		}
		_, in, ok := strings.Cut(p, "```\n")
		in, _, ok2 := strings.Cut(in, "\n```")
		if !ok || !ok2 {
			t.Fatalf("no fence in %q", p)
		}
		code = append(code, in)
	}
	if got := strings.Join(code, "\n"); got != source || len(code) < 3 {
		t.Errorf("code differs, in %d parts", len(code))
	}

	code = nil
	for _, p := range TelegramParts(text) {
		_, in, _ := strings.Cut(p, `<pre><code class="language-go">`)
		in, _, ok := strings.Cut(in, "</code></pre>")
		if !ok {
			t.Fatalf("no fence in %q", p)
		}
		code = append(code, Plain(in))
	}
	if got := strings.Join(code, "\n"); got != source {
		t.Errorf("Telegram: code differs")
	}
}

// A table of a thousand links has tags that are longer than its text.
func TestPartsTags(t *testing.T) {
	link := "[a](https://example.com/" + strings.Repeat("x", 1000) + ")\n"
	for _, p := range TelegramParts(strings.Repeat(link, 1000)) {
		if len(p) > 8*Limit+8 {
			t.Errorf("a part of %d bytes", len(p))
		}
		balanced(t, p)
	}
}

// Reading stays linear where a text is made to be slow: a square of 200,000 would not end here.
func TestHostile(t *testing.T) {
	for name, s := range map[string]string{
		"stars": "*a ", "brackets": "[", "links": "[a](", "backticks": "`a``", "angles": "<", "quotes": "> ", "mixed": "*_~~[`",
		"images": "![", "closers": "a** ", "hashes": "# ", "addresses": "https://",
	} {
		long := strings.Repeat(s, 200_000/len(s))
		for host, parts := range map[string][]string{"Telegram": TelegramParts(long), "WhatsApp": WhatsAppParts(long)} {
			if len(strings.Join(parts, "")) < len(s) {
				t.Errorf("%s: nothing of it reaches %s", name, host)
			}
		}
	}
}

// balanced fails a test when tags are not closed in order.
func balanced(t *testing.T, html string) {
	t.Helper()
	var open []string
	for rest := html; ; {
		i := strings.IndexByte(rest, '<')
		if i < 0 {
			break
		}
		end := strings.IndexByte(rest[i:], '>')
		if end < 0 {
			t.Fatalf("a tag has no end: %q", html)
		}
		name, _, _ := strings.Cut(rest[i+1:i+end], " ")
		rest = rest[i+end+1:]
		if !strings.HasPrefix(name, "/") {
			open = append(open, name)
			continue
		}
		if len(open) == 0 || open[len(open)-1] != name[1:] {
			t.Fatalf("%s closes %q in %q", name, open, html)
		}
		open = open[:len(open)-1]
	}
	if len(open) > 0 {
		t.Fatalf("%q stay open in %q", open, html)
	}
}

// words are the letters and digits of a text, in order.
func words(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, s)
}

// The laws: no word is lost and their order stays, parts keep the limit and are not empty, and hold
// together what the whole holds.
func FuzzParts(f *testing.F) {
	for _, s := range []string{"# a\n**b *c* d**", "> q\n> ```go\n> x\n> ```", "a|b\n-|-\nc|d", "[a](https://b.c) ![d](e.f)", "``` `a` ~~b~~", "1. x\n   - y\n\n    z"} {
		f.Add(s, 40)
	}
	f.Fuzz(func(t *testing.T, s string, limit int) {
		if len(s) > 20_000 {
			return
		}
		limit = 32 + (limit&0xfff)%200
		for _, p := range []struct {
			name    string
			dialect dialect
			write   writer
			size    sizer
		}{{"WhatsApp", whatsApp, writeWhatsApp, sizeMarked}, {"Telegram", telegram, writeTelegram, sizeTagged}} {
			d := read(s, p.dialect)
			if p.name == "WhatsApp" && !strings.Contains(s, "](") && !strings.Contains(s, "<") && !strings.Contains(s, "```") && !strings.Contains(s, "~~~") {
				if got, want := words(d.text), words(clean(s)); got != want {
					t.Fatalf("words of the text: %q, want %q", got, want)
				}
			}
			all := ""
			for _, part := range parts(d, limit, p.write, p.size) {
				plain := part
				if p.name == "Telegram" {
					balanced(t, part)
					plain = Plain(part)
					if units(plain) > limit {
						t.Fatalf("%d units, at most %d: %q", units(plain), limit, part)
					}
				} else if units(part) > limit {
					t.Fatalf("%d units, at most %d: %q", units(part), limit, part)
				}
				if strings.TrimSpace(plain) == "" || !utf8.ValidString(part) {
					t.Fatalf("part %q", part)
				}
				all += plain
			}
			if words(all) != words(d.text) {
				t.Fatalf("words of the parts: %q, want %q", words(all), words(d.text))
			}
		}
	})
}

func ExampleWhatsAppParts() {
	for _, p := range WhatsAppParts("## Plan\n\n**Pack** the [list](https://example.com).") {
		fmt.Println(p)
	}
	// Output:
	// *Plan*
	//
	// *Pack* the list (https://example.com).
}

// whatsAppText and telegramText convert a text as a whole, however long it becomes.
func whatsAppText(markdown string) string { return whole(read(markdown, whatsApp), writeWhatsApp) }

func telegramText(markdown string) string { return whole(read(markdown, telegram), writeTelegram) }

func whole(d doc, write writer) string {
	from, to := d.trim(0, len(d.text))
	return write(d, from, to)
}
