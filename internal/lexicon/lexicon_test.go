package lexicon

import (
	"slices"
	"strings"
	"testing"
)

func TestSentences(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"", ""},
		{"Use v1.2.3. See https://a.example/b?c=d now!", "Use v1.2.3.| See https://a.example/b?c=d now!"},
		{"a\nb", "a\n|b"},
		{"He asked \"where?\" twice.", "He asked \"where?|\" twice."},
		{"What?! No...", "What?|!| No.|.|."},
		{"必须先问我。好的！哪里？没有", "必须先问我。|好的！|哪里？|没有"},
	} {
		got := slices.Collect(Sentences(row.text))
		if strings.Join(got, "|") != row.want {
			t.Errorf("%q: %q, want %q", row.text, got, row.want)
		}
		for range Sentences(row.text) {
			break
		}
	}
}

// TestLists: no word is in both lists, nor written in a way that no text is looked up by.
func TestLists(t *testing.T) {
	for w := range Vague {
		if Stops[w] || w != strings.ToLower(w) {
			t.Errorf("%q", w)
		}
	}
	if !Stops["the"] || !Vague["nothing"] {
		t.Error("the lists are not read")
	}
}

// FuzzSentences: the sentences of a text are the text.
func FuzzSentences(f *testing.F) {
	f.Add("a. b!\nc。d")
	f.Fuzz(func(t *testing.T, text string) {
		if got := strings.Join(slices.Collect(Sentences(text)), ""); got != text {
			t.Errorf("%q is %q", text, got)
		}
	})
}
