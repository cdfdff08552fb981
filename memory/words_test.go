package memory

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// TestComposeMarks: a letter and its mark are the one character that the table says, alone, in capitals and beside others.
func TestComposeMarks(t *testing.T) {
	for mark := rune(0x2f0); mark < 0x3100; mark++ {
		pairs := []rune(marked(mark))
		for i := 0; i+1 < len(pairs); i += 2 {
			letter, one := pairs[i], pairs[i+1]
			for in, want := range map[string]string{
				string(letter) + string(mark): string(one), "x" + string(letter) + string(mark) + "y": "x" + string(one) + "y",
				string(unicode.ToUpper(letter)) + string(mark): string(unicode.ToUpper(one)),
			} {
				if got := Compose(in); got != want {
					t.Errorf("%U and %U: %q, want %q", letter, mark, got, want)
				}
			}
		}
	}
}

// TestComposeBounds: what is joined, what is left out and what stays, at the first and the last of each.
func TestComposeBounds(t *testing.T) {
	for in, want := range map[string]string{
		"\u1100\u1161": "가", "\u1112\u1175": "히", "\u1112\u1175\u11c2": "힣", "\u1100\u1161\u11a8": "각", "\uac00\u11a8": "각", "\ud788\u11c2": "힣", "\uac1c\u11a8": "객",
		"\u10ff\u1161": "\u10ff\u1161", "\u1113\u1161": "\u1113\u1161", "\u1100\u1160": "\u1100\u1160", "\u1100\u1176": "\u1100\u1176", "\uac00\u11a7": "\uac00\u11a7", "\uac00\u11c3": "\uac00\u11c3",
		"\uac01\u11a8": "\uac01\u11a8", "\ud7a3\u11a8": "\ud7a3\u11a8", "\ud7a4\u11a8": "\ud7a4\u11a8", "\uabe4\u11a8": "\uabe4\u11a8", "\u1161\u1161": "\u1161\u1161",
		"a\ufe00": "a", "a\ufe0f": "a", "a\ufdff": "a\ufdff", "a\ufe10": "a\ufe10", "\ufe0fa": "a", "\ufe0f": "",
		"i\u0307": "i", "I\u0307": "I", "x\u0301": "x\u0301", "\u0301": "\u0301", "\u0301e\u0301": "\u0301é", "e\u0301\u0301": "é\u0301",
		"\x00e\u0301": "\x00é", "e\u0301\x00": "é\x00", "\x00\ufe0f": "\x00", "か\u3099": "が", "は\u309a": "ぱ", "あ\u3099": "あ\u3099", "İıς": "Iiσ", "ıς": "iσ", "ς": "σ", "plain": "plain", "": "",
	} {
		if got := Compose(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestTermBounds: what is a term by its bounds, by what stands beside it and by the scripts it is written in.
func TestTermBounds(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	for in, want := range map[string]string{
		"c++ c# f# g# .net": "cpp c csharp c fsharp f g dotnet net", "c#": "csharp c", "f#x f": "f x f", "x++": "x", "c+": "c", "ac++": "ac", "cc# .nets": "cc nets",
		"c#z c#a c#9 c#0 c#A c#Z c#_ c#- c#. c#/ c#@": "c z c a c 9 c 0 c a c z c c c c c", "c#: f#\u00e9": "csharp c f é",
		"東@x.com": "東 x.com x com", "a\ufffdb \xffab": "a b ab", "a@b": "a@b a b", "@@": "",
		x(31) + "_" + x(32): x(31) + "_" + x(32) + " " + x(31) + " " + x(32), x(31) + "_" + x(33): x(31) + " " + x(33),
		"v9.1": "v9.1 9.1 v9 1", "v.1": "v.1 v 1", "v1a.2": "v1a.2 v1a 2", "v0.9": "v0.9 0.9 v0 9", "v1.2-rc": "v1.2-rc v1 2 rc", "vat.1": "vat.1 vat 1", "v12_3": "v12_3 v12 3", "w1.2": "w1.2 w1 2", "v1.2.3": "v1.2.3 1.2.3 v1 2 3",
		"iPhone": "iphone i phone", "aB": "ab a b", "Ab": "ab", "AB": "ab", "ABc": "abc a bc", "ABC": "abc", "a.bC": "a.bc a b c bc", "a.bc": "a.bc a bc",
		"a/API設計": "a api 設計", "API設計": "api 設計", "a/" + x(31) + "Y" + x(32): "a " + x(31) + " y" + x(32) + " " + x(31) + "y" + x(32), "a/" + x(31) + "Y" + x(33): "a " + x(31) + " y" + x(33),
		"東京x": "東京 x", "x東": "x 東", "東京東": "東京 京東", "กข": "กข", "\u0dff\u0de0": "",
		x(64): x(64), x(65): x(64), x(63) + "é": x(63), x(62) + "é": x(62) + "é", "A" + x(64): "a" + x(63),
	} {
		if got := strings.Join(Terms(in), " "); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := AppendTerms([]string{"a"}, "b c"); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("%q", got)
	}
	for in, want := range map[string]string{"茶": "", "東京": "京", "a東京": "京", "東 京": "", "東京 茶 東京都": "京 都", "東京a": "京", "か\u3099き": "き", "": ""} {
		if got := strings.Join(Ends(in), " "); got != want {
			t.Errorf("the ends of %q: %q, want %q", in, got, want)
		}
	}
}

// TestPairBounds: which characters are of a script without spaces, from the first one.
func TestPairBounds(t *testing.T) {
	for r := rune(0); r < 0x3100; r++ {
		if want := r == 'ー' || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer); cjk(r) != want {
			t.Errorf("%U: %t", r, !want)
		}
	}
	if Lone("\xff") || Lone("\ufffd") || Lone("茶x") {
		t.Error("what is none is a character of such a script")
	}
}

// TestFold: what two facts have in common that say the same.
func TestFold(t *testing.T) {
	for in, want := range map[string]string{
		"The cat, a dog and an owl.": "cat dog and owl", "A": "", "THEN": "then", "**bold** _it_ *x": "bold it x", "a: b; c - d-": "b c d", "x_y z__ __z": "x_y z z", "(1.5) 2. 3:": "1.5 2 3",
		"-5 +5 5%": "-5 +5 5%", "a/b c@d #e $1 €2 £3 e=f g<h>i j&k": "a/b c@d #e $1 €2 £3 e=f g<h>i j&k", "“q” ‘r’ s!t?u": "q r s t u", "हिन्दी": "हिन्दी", "दिल": "दिल", "दाल": "दाल", "": "", "ÄRGER": "ärger", "*": "", "- -": "",
	} {
		if got := Fold(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestSayings: a sentence is known again when it has four words, and only as a whole and between words.
func TestSayings(t *testing.T) {
	for in, want := range map[string]string{
		"one two three": "[]", "one two three four": "[ one two three four ]", "The cat sat down.": "[]", "The cat sat down now. Why? Because it was warm!": "[ cat sat down now   because it was warm ]", "": "[]",
	} {
		if got := fmt.Sprint(Sayings(in)); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	for _, c := range []struct {
		text, said string
		want       bool
	}{
		{"He said that my cat likes warm milk, too", "My cat likes warm milk.", true}, {"my cat likes warm milk", "Short. My cat likes warm milk.", true}, {"my cat likes warm milky ways", "My cat likes warm milk.", false},
		{"amy cat likes warm milk", "my cat likes warm milk", false}, {"my cat likes milk", "my cat likes milk", true}, {"cat likes milk", "cat likes milk", false}, {"", "my cat likes warm milk", false}, {"my cat likes warm milk", "", false},
	} {
		if Echoes(c.text, c.said) != c.want {
			t.Errorf("%q after %q: %t", c.text, c.said, !c.want)
		}
	}
}

// TestCutToRunes: a text of as many characters as may be is whole.
func TestCutToRunes(t *testing.T) {
	for n := range 30 {
		text := strings.Repeat("é", n)
		got := cut(text, 10)
		if want := n <= 10; (got == text) != want || utf8.RuneCountInString(got) != min(n, 10) {
			t.Errorf("%d: %q", n, got)
		}
	}
}
