package tidemark_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// TestEstimateChars: ceil(chars / 4 * 1.2), exactly; in floating point some multiples of ten come
// out one too high (0.30000000000000004), which is the reference's rounding, not its formula.
func TestEstimateChars(t *testing.T) {
	for _, tc := range []struct {
		chars int
		want  tidemark.Tokens
	}{{-5, 0}, {0, 0}, {1, 1}, {3, 1}, {4, 2}, {6, 2}, {7, 3}, {10, 3}, {11, 4}, {100, 30}, {101, 31}, {4000, 1200}, {1 << 40, 329853488333}} {
		if got := tidemark.EstimateChars(tc.chars); got != tc.want {
			t.Errorf("%d characters are %d tokens, want %d", tc.chars, got, tc.want)
		}
	}
	last := tidemark.Tokens(0)
	for n := range 20_000 {
		got := tidemark.EstimateChars(n)
		if float := tidemark.Tokens(math.Ceil(float64(n) / 4 * 1.2)); got != float && (n%10 != 0 || got != float-1) {
			t.Fatalf("%d characters are %d tokens, in floating point %d", n, got, float)
		}
		if got < last {
			t.Fatalf("%d characters are fewer tokens than %d", n, n-1)
		}
		last = got
	}
}

func TestUTF16Len(t *testing.T) {
	for _, s := range []string{"", "abc", "äöü", "日本語", "😀", "a😀ä日", "\u2028", "\ufffd", strings.Repeat("😀x", 1000)} {
		want := len(utf16.Encode([]rune(s)))
		if got := tidemark.UTF16Len(s); got != want {
			t.Errorf("%q has %d units, want %d", s, got, want)
		}
		if got := tidemark.UTF16Len([]byte(s)); got != want {
			t.Errorf("bytes of %q have %d units, want %d", s, got, want)
		}
	}
}

func TestEstimate(t *testing.T) {
	const image = 1600
	base64 := strings.Repeat("A", 100_000)
	words := strings.Repeat("wörter ", 1000)
	for _, tc := range []struct {
		name, json string
		chars      int // of the JSON, inline data apart
		flat       tidemark.Tokens
	}{
		{"string", `{"role":"user","content":"hello"}`, 33, 0},
		{"block", `{"role":"user","content":[{"type":"text","text":"hello"}]}`, 58, 0},
		{"wide characters", `{"role":"user","content":"😀日ä"}`, 32, 0},
		{"unread fields count", `{"role":"user","content":[{"type":"text","text":"a","x":"bcd"}]}`, 64, 0},
		{"image", `{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + base64 + `"}}]}`, 106, image},
		{"image by URL", `{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://a.b/c"}}]}`, 90, image},
		{"image in a result", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + base64 + `"}}]}]}`, 159, image},
		{"two images", `{"role":"user","content":[{"type":"image","source":{"type":"base64","data":"` + base64 + `"}},{"type":"image","source":{"type":"base64","data":"AA"}}]}`, 135, 2 * image},
		{"PDF", `{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"` + base64 + `"}}]}`, 115, image},
		{"document of text", `{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"` + words + `"}}]}`, 108 + 7000, 0},
		{"data that is no base64", `{"role":"user","content":[{"type":"image","source":{"type":"base64","data":"` + strings.Repeat("日", 1000) + `"}}]}`, 0, image},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := decode(t, tc.json)
			want := tidemark.EstimateChars(tc.chars) + tc.flat
			if got := tidemark.Estimate(m); got != want {
				t.Errorf("estimate %d, want %d", got, want)
			}
		})
	}
}

// TestEstimateGrows: more text is never fewer tokens.
func TestEstimateGrows(t *testing.T) {
	text, last := "", tidemark.Tokens(0)
	for _, piece := range []string{"a", "\n", "\"", "😀", "\x00", "日", "\u2028", "words and words", "\\", "</x>"} {
		text += piece
		m := tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.Text(text)}}
		if got := tidemark.Estimate(m); got < last {
			t.Errorf("%q is %d tokens, without its end %d", text, got, last)
		} else {
			last = got
		}
	}
	m := decode(t, user(`[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","data":"`+strings.Repeat("A", 5000)+`"}}]`))
	if a, b := tidemark.EstimateBlock(m.Content[0]), tidemark.EstimateBlock(m.Content[1]); a != 8 || b != 1600+16 {
		t.Errorf("the blocks are %d and %d tokens, want 8 and 1616", a, b)
	}
	if tidemark.EstimateText("") != 0 || tidemark.EstimateText("日本語日本") != 2 {
		t.Error("texts count UTF-16 units, an empty one nothing")
	}
}

func TestUsage(t *testing.T) {
	u := tidemark.Usage{Input: 3, CacheRead: 100, CacheCreation: 20, Output: 7}
	if u.Context() != 130 {
		t.Errorf("context %d: what was cached is part of it", u.Context())
	}
	if sum := u.Add(u); sum != (tidemark.Usage{Input: 6, CacheRead: 200, CacheCreation: 40, Output: 14}) {
		t.Errorf("sum %+v", sum)
	}
}

// TestUTF16LenJSON: the units of a string are those of the text that it means.
func TestUTF16LenJSON(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 5000 {
		var b strings.Builder
		for range r.IntN(30) {
			b.WriteString([]string{"a", "plain text ", `\"`, `\\`, `\n`, `\u0041`, `\ud83d\ude00`, "é"}[r.IntN(8)])
		}
		var text string
		if err := json.Unmarshal([]byte(`"`+b.String()+`"`), &text); err != nil {
			t.Fatal(err)
		}
		if got, want := tidemark.UTF16LenJSON([]byte(b.String())), len(utf16.Encode([]rune(text))); got != want {
			t.Fatalf("%d units, want %d, of %s", got, want, b.String())
		}
	}
}
