package memory_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark/memory"
)

func TestTerms(t *testing.T) {
	rows := []struct{ name, in, want string }{
		{"words", "Hello, World!", "hello world"},
		{"snake", "max_key_part", "max_key_part max key part"},
		{"camel", "parseHTTPRequest", "parsehttprequest parse http request"},
		{"short", "v2 of the ID", "v2 of the id"},
		{"path", "src/foo/BarBaz.go:12", "src/foo/barbaz.go src foo bar baz barbaz go 12"},
		{"Windows path", `C:\Users\Ann\notes.txt`, "c users ann notes.txt notes txt"},
		{"kebab and version", "go-json v0.12.0", "go-json go json v0.12.0 0.12.0 v0 12 0"},
		{"version without its letter", "0.12.0", "0.12.0 0 12 0"},
		{"package and version", "react@18.2.0", "react@18.2.0 react 18.2.0 18 2 0"},
		{"e-mail", "<Ann.Bee@example.com>", "ann.bee@example.com ann.bee ann bee example.com example com"},
		{"as long as a term may be", strings.Repeat("a", 30) + "@" + strings.Repeat("b", 33), strings.Repeat("a", 30) + "@" + strings.Repeat("b", 33) + " " + strings.Repeat("a", 30) + " " + strings.Repeat("b", 33)},
		{"longer than that", strings.Repeat("a", 30) + "@" + strings.Repeat("b", 34), strings.Repeat("a", 30) + " " + strings.Repeat("b", 34)},
		{"a person is told", "@ann see this", "ann see this"},
		{"URL", "https://example.com/a/b?x=1&y=two#top", "https example.com/a/b example com a b x 1 y two top"},
		{"hash", "commit 9f86d081884c7d65", "commit 9f86d081884c7d65"},
		{"numbers", "port 8080, 3.14", "port 8080 3.14 3 14"},
		{"end of sentence", "I use pnpm. Yes", "i use pnpm yes"},
		{"languages", "C++, C#, F# and .NET", "cpp c csharp c fsharp f and dotnet net"},
		{"no languages", "i++ c#top asp.net c + d", "i c top asp.net asp net c d"},
		{"umlauts", "Grüße ÄRGER", "grüße ärger"},
		{"decomposed", "Gru\u0308ße A\u0308RGER cafe\u0301 Vie\u0323\u0302t", "grüße ärger café việt"},
		{"decomposed Cyrillic and Greek", "И\u0306од α\u0301λφα", "йод άλφα"},
		{"decomposed Hangul", "\u1112\u1161\u11ab\u1100\u1173\u11af", "한글"},
		{"Hangul with an end of its own", "\uac00\u11a8 \ud788\u11c2 \u1112\u1175", "각 힣 히"},
		{"decomposed kana", "か\u3099き\u3099 ハ\u309aン", "がぎ パン"},
		{"full width", "Ｆｕｌｌ ｗｉｄｔｈ ２０２６", "full width 2026"},
		{"Turkish", "İstanbul ISTANBUL istanbul ıstanbul I\u0307STANBUL", "istanbul istanbul istanbul istanbul istanbul"},
		{"final sigma", "ΟΔΟΣ οδος", "οδοσ οδοσ"},
		{"Hindi", "हिन्दी भाषा", "हिन्दी भाषा"},
		{"Japanese", "東京タワー", "東京 京タ タワ ワー"},
		{"one character", "茶", "茶"},
		{"Thai", "น้ำชา", "น้ ้ำ ำช ชา"},
		{"mixed", "API設計v2", "api 設計 v2"},
		{"emoji", "hi🚀there ❤️ 1️⃣", "hi there 1"},
		{"nothing", "… -- ./_ @", ""},
		{"data", strings.Repeat("a", 100), strings.Repeat("a", 64)},
		{"data of long characters", "x" + strings.Repeat("é", 100), "x" + strings.Repeat("é", 31)},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			if got := strings.Join(memory.Terms(r.in), " "); got != r.want {
				t.Errorf("%q, want %q", got, r.want)
			}
		})
	}
}

// FuzzTerms holds that a text is found by each of its own words, that terms are short and well formed, and that the
// form of a text that Compose gives is the last.
func FuzzTerms(f *testing.F) {
	for _, s := range []string{"parseHTTPRequest src/a_b.go", "東京 tower", "\xff\x00", "İstanbul ǅ", "a.b.c", "C++ c#x .NET", "v1.2.3 a@b.c", "e\u0301 \u0301 \u1100\u1161", "Ａ／Ｂ"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all := memory.Terms(text)
		for _, term := range all {
			if term == "" || len(term) > 64 || !utf8.ValidString(term) {
				t.Fatalf("term %q", term)
			}
		}
		for _, word := range strings.Fields(text) {
			for _, term := range memory.Terms(word) {
				if !slices.Contains(all, term) {
					t.Fatalf("%q is of the word %q, and not of the text %q", term, word, text)
				}
			}
		}
		if once := memory.Compose(text); memory.Compose(once) != once {
			t.Fatalf("%q has the form %q, and that has %q", text, once, memory.Compose(once))
		}
	})
}

// TestEnds: with the ends of stretches each character of a script without spaces is the beginning of a term.
func TestEnds(t *testing.T) {
	if got := memory.Ends("お茶 and 茶, 東京タワー。API設計v2 東京"); !slices.Equal(got, []string{"茶", "ー", "計", "京"}) {
		t.Errorf("%q", got)
	}
	for term, want := range map[string]bool{"茶": true, "물": true, "お茶": false, "a": false, "": false} {
		if memory.Lone(term) != want {
			t.Errorf("%q: %v", term, !want)
		}
	}
}
