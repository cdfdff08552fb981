package compaction

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// TestLetters: letters and digits count, those of scripts without spaces three times.
func TestLetters(t *testing.T) {
	for s, want := range map[string]int{"": 0, " -.\n": 0, "aé1 字": 6, "ひらカタ": 12, "항": 3, "ก": 3, "м": 1, "٣": 1, "🌊": 0} {
		if got := letters(s); got != want {
			t.Errorf("%q has %d letters, want %d", s, got, want)
		}
	}
	if got := bodyOf("# a\nb\n  ## c\n\nd # e"); got != "b\n\nd # e" {
		t.Errorf("without its headings it is %q", got)
	}
}

// TestDistinct: the share of a text that it has not said before, in runs of eight, whatever its case and spaces.
func TestDistinct(t *testing.T) {
	for s, want := range map[string]float64{
		"": 1, "aaaaaaa": 1, "aaaaaaaa": 1, "aaaaaaaaa": 0.5, "AAAAAAAA\n\n aaaaaaaa ": 0.9, "abcdefghi": 1, "éééééééééé": 1.0 / 3, "abcdefghabcdefgh": 8.0 / 9,
	} {
		if got := distinct(s); got != want {
			t.Errorf("%q has not said %v of itself before, want %v", s, got, want)
		}
	}
}

// TestTerms is the table of what kind of word a word is.
func TestTerms(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"Go has it", "map[go:2 has:2 it:2]"},
		{"tide tides", "map[tide:2 tides:0]"}, // five letters
		{"Walnut walnut", "map[walnut:0]"},
		{"WALNUT walnut", "map[walnut:1]"}, // capitals behind the first letter, once
		{"walnut WALNUT walnut", "map[walnut:1]"},
		{"FooBar fooBar2", "map[foobar:1 foobar2:1]"},
		{"x1 7 a_b long_name ab-cd", "map[7:1 a_b:2 ab-cd:0 long_name:1 x1:1]"},
		{"実心胡桃 字", "map[実心:0 心胡:0 胡桃:0]"},
		{"a,b;c.d", "map[a:2 b:2 c:2 d:2]"},
		{"Маяки", "map[маяки:0]"},
	} {
		if got := fmt.Sprint(terms(row.text)); got != row.want {
			t.Errorf("%q: %s, want %s", row.text, got, row.want)
		}
	}
}

// TestCopied: a text of 400 characters is a copy where its middle half stands in the other, spaces apart.
func TestCopied(t *testing.T) {
	var b strings.Builder
	for i := range 80 {
		fmt.Fprintf(&b, "%04d ", i)
	}
	s := b.String() + "1234"                    // 404 characters, 404 with one space each
	middle := s[101:303]                        // from a quarter to three quarters
	long := strings.ReplaceAll(s, " ", "\n \t") // the same words
	for name, row := range map[string]struct {
		s, in string
		want  bool
	}{
		"all of it":                {s, "before " + s + " behind", true},
		"its middle":               {s, middle, true},
		"with other spaces":        {long, middle, true},
		"in other spaces":          {s, "x" + strings.ReplaceAll(middle, " ", "\n\n"), true},
		"without the first":        {s, middle[1:], false},
		"without the last":         {s, middle[:len(middle)-1], false},
		"400 characters":           {s[:400], s, false}, // the space at the end is none
		"400 without it":           {s[:399] + "x", "x" + s, true},
		"399":                      {s[:399], s, false},
		"of characters, not bytes": {strings.Repeat("é", 399), strings.Repeat("é", 999), false},
	} {
		if got := copied(row.s, row.in); got != row.want {
			t.Errorf("%s: copied %v", name, got)
		}
	}
}

// TestPromptWords: eight words in a row of what the model was told are ours, unless they were said in the conversation.
func TestPromptWords(t *testing.T) {
	told := strings.Fields(summarySystem)
	part := func(from, to int) string { return strings.Join(told[from:to], " ") }
	last := strings.Fields(summaryTask)
	for name, row := range map[string]struct {
		summary, talk string
		want          bool
	}{
		"the first eight words":        {part(0, 8), "", true},
		"seven":                        {part(0, 7), "", false},
		"seven and another":            {part(0, 7) + " harbour", "", false},
		"within others":                {"so it was " + part(3, 11) + "\nand so on", "", true},
		"over lines":                   {strings.ReplaceAll(part(0, 8), " ", "\n"), "", true},
		"a part of a word":             {part(0, 7) + " " + told[7][:len(told[7])-1], "", false},
		"that were said":               {part(0, 8), "he wrote:  " + strings.ReplaceAll(part(0, 8), " ", "\n "), false},
		"that were said, and one more": {part(0, 9), part(0, 8), true},
		"the last eight of the task":   {strings.Join(last[len(last)-8:], " "), "", true},
		"nothing":                      {"", "", false},
	} {
		if got := promptWords(row.summary, row.talk); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestTies is the table of what ties a summary to a conversation: words or names of it, or, in another language, the form.
func TestTies(t *testing.T) {
	talk := "crane containers harbour lighthouse schedule walnut planks varnish carpenter workshop breakwater " // eleven words
	for name, row := range map[string]struct {
		body, talk string
		form, good bool
	}{
		"a word of few":                  {"crane tulips gardens greenhouse evening watered", talk, false, true},
		"none of few":                    {"tulips gardens greenhouse", talk, false, false},
		"one in four of many":            {"crane tulips gardens greenhouse", talk + "twelfth", false, true},
		"one in five":                    {"crane tulips gardens greenhouse evening", talk + "twelfth", false, false},
		"two names":                      {"quay7 quay8 " + "tulips gardens greenhouse evening watered afterwards locking", talk + "twelfth quay7 quay8", false, true},
		"one name":                       {"quay7 " + "tulips gardens greenhouse evening watered", talk + "twelfth quay7 quay8", false, false},
		"a name that is a word there":    {"CRANE HARBOUR tulips gardens greenhouse evening watered afterwards locking", talk + "twelfth", false, true},
		"the form, and no short words":   {"tulips gardens", talk + "twelfth", true, true},
		"and short words of another":     {"der die das tulips", talk + "the of and in", true, true},
		"and one in three of them":       {"der die the tulips", talk + "the of and in", true, false},
		"one in four of them":            {"der die das the tulips", talk + "the of and in", true, true},
		"short words alone are no tie":   {"the of and", talk + "the of and in", false, false},
		"short words, in the right form": {"the of and", talk + "the of and in", true, false},
	} {
		if err := ties(row.body, row.talk, row.form); (err == nil) != row.good {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := ties("crane tulips gardens greenhouse evening", talk+"twelfth", false); err == nil || err.Error() != "the summary names next to nothing of the conversation: 1 of its 5 words are of it" {
		t.Error(err)
	}
}

// TestWorthLength: what is long enough depends on how much there was to tell: of little anything will do, and of much so many
// letters for each message and for the whole of it.
func TestWorthLength(t *testing.T) {
	talk := func(messages, size int) Ask { // of so many characters, as they are transcribed
		var a Ask
		words := ""
		for i := 0; len(words) < size; i++ {
			words += fmt.Sprintf("harbour%d quays%d ", i, i)
		}
		at := 0
		for i := range messages {
			n := (size-1)/messages - len("[user] \n")
			if i == 0 {
				n += (size - 1) % messages
			}
			text := strings.ReplaceAll(words[at:at+n], " ", "_")
			a.Items, at = append(a.Items, Item{Message: tidemark.NewText(tidemark.User, text)}), at+n
		}
		return a
	}
	for _, row := range []struct {
		messages, size, letters int
		good                    bool
	}{
		{1, 399, 1, true}, {1, 399, 0, false}, {1, 400, 10, true}, {1, 400, 9, false}, {1, 480, 12, true}, {1, 480, 11, false}, {1, 2000, 12, true}, {1, 2000, 11, false},
		{3, 1400, 35, true}, {3, 1400, 34, false}, {3, 4000, 36, true}, {3, 4000, 35, false}, {20, 9000, 200, true}, {20, 9000, 199, false},
	} {
		a := talk(row.messages, row.size)
		if got := len("\n" + Transcribe(a.Items)); got != row.size {
			t.Fatalf("a talk of %d characters has %d", row.size, got)
		}
		summary := ""
		for i := 0; len(summary) < row.letters; i++ { // no run of eight twice
			summary += fmt.Sprintf("%c%c%c", 'a'+i%26, 'a'+i/26, 'a'+(i*7)%26)
		}
		summary = summary[:row.letters]
		err := Worth(summary, a)
		tooShort := err != nil && strings.HasPrefix(err.Error(), "the summary is too short: ")
		if tooShort == row.good || row.good && (err == nil) != (row.size < 400) { // it is of nothing that was said
			t.Errorf("%d letters for %d messages of %d characters: %v", row.letters, row.messages, row.size, err)
		}
	}
}
