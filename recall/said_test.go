package recall

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// lines are the messages of a talk with an assistant.
func lines(texts ...string) []Doc {
	docs := make([]Doc, len(texts))
	for i, t := range texts {
		docs[i] = Doc{ID: fmt.Sprint(i), Pos: int64(i + 1), Text: t}
	}
	return docs
}

// TestJudgeWhatWasSaid: a verdict rests on what was said, and not on what was asked or answered with nothing.
func TestJudgeWhatWasSaid(t *testing.T) {
	const filler = "The ferry leaves at nine."
	for name, row := range map[string]struct {
		query string
		docs  []Doc
		want  Verdict
	}{
		"said":        {"turquoise samovar", lines(filler, "The turquoise samovar is in the attic.", "Noted."), Confident},
		"asked alone": {"turquoise samovar", lines(filler, "Where might the turquoise samovar be??", "I find nothing about that here.", filler), Weak},
		"answered in its words": {"passport of uncle Hubert", lines(filler, "Where is the passport of my uncle Hubert?", "The passport of uncle Hubert is in the drawer.", filler),
			Confident},
		"said and asked later":  {"turquoise samovar", lines("The turquoise samovar is in the attic.", "Noted.", filler, filler, filler, "Where is the turquoise samovar?"), Confident},
		"an identifier asked":   {"which tag has KEY_4711", lines(filler, "Which tag has KEY_4711?", "I have no record of it.", "The tag is on the door."), Weak},
		"a question of its own": {"turquoise samovar", lines("The turquoise samovar is in the attic. Do you know where that is?"), Confident},
		"a link":                {"turquoise samovar", lines("See https://shop.example/?q=turquoise+samovar for the turquoise samovar"), Confident},
		"a denial of a fact":    {"spare key tile", lines(filler, "I could not find the spare key below the tile.", filler), Confident},
		"what I want":           {"turquoise samovar", lines("What I want is the turquoise samovar."), Confident},
		"elsewhere":             {"turquoise samovar", lines(filler, filler), Nothing},
	} {
		x, q := New(row.docs, nil), Parse(row.query, nil)
		if got := x.Judge(q, x.Search(q, Stats{})); got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
}

// TestJudgeWhatIsTold: common words that meet by chance make nothing sure, nor do texts of one form among which a
// question does not choose, nor a text without the rarest word of the question.
func TestJudgeWhatIsTold(t *testing.T) {
	const filler = "The ferry leaves at nine."
	red := "The settings of the red harbour service lie at /srv/walnut-17.toml now."
	blue := "The settings of the blue harbour service lie at /srv/acorn-55.toml now."
	var chance []string
	for i := range 60 {
		chance = append(chance, fmt.Sprintf("%s build %s again %s value %s line", []string{"staging", "mail", "chart"}[i%3], []string{"upload", "nightly"}[i%2], []string{"archive", "login", "bundle", "image"}[i%4], []string{"is", "was"}[i%2]))
	}
	for name, row := range map[string]struct {
		query string
		docs  []Doc
		want  Verdict
	}{
		"one of a form":             {"where lie the settings of the service", lines(red, filler, filler, "Noted.", filler, filler), Confident},
		"two of a form":             {"where lie the settings of the service", lines(red, filler, "Noted.", filler, blue, filler), Weak},
		"the red one":               {"where lie the settings of the red service", lines(red, filler, "Noted.", filler, blue, filler), Confident},
		"by a word of code":         {"ReviewContextBuilder", lines("The ReviewContextBuilder of the red service lies at /srv/walnut-17.toml now.", filler, filler, "The ReviewContextBuilder of the blue service lies at /srv/acorn-55.toml now."), Confident},
		"by its name":               {"which service has /srv/acorn-55.toml", lines(red, filler, "Noted.", filler, blue, filler), Confident},
		"said twice":                {"where lie the settings of the service", lines(red, filler, "Noted.", filler, "As I said: "+red, filler), Confident},
		"said of it in two ways":    {"settings of the service", lines(red, filler, "Noted.", filler, "Those settings of the service were lost in the storm.", filler), Confident},
		"by chance":                 {"what has the staging build for the upload archive", lines(chance...), Weak},
		"not by chance":             {"what has the staging build for the upload archive", lines(append(chance[1:11:11], "The upload archive holds the staging build.")...), Confident},
		"one word of many":          {"staging", lines(chance...), Weak},
		"one word of few":           {"staging", lines(append(slices.Repeat([]string{filler}, 30), chance[:9]...)...), Confident},
		"without its rarest word":   {"where lie the settings of the red harbour service mirador", lines(red, filler, "Noted.", filler, filler, filler), Weak},
		"as it is asked for":        {"do you remember where the turquoise samovar was found", lines(filler, "The turquoise samovar stands in the attic.", filler), Confident},
		"how much of it":            {"how much holds the turquoise samovar", lines(filler, "The turquoise samovar holds 3.037 litres.", filler), Confident},
		"a name that none has":      {"where is the turquoise samovar of KEY_4711", lines(filler, "The turquoise samovar stands in the attic.", filler), Nothing},
		"a room with its number":    {"who cleans room 3 on Fridays?", lines("Room 3 is cleaned by Anke on Fridays.", filler, filler, "I ran 23 kilometres.", filler, filler), Confident},
		"a room of another number":  {"who cleans room 23 on Fridays?", lines("Room 3 is cleaned by Anke on Fridays.", filler, filler, "I ran 23 kilometres.", filler, filler), Weak},
		"a tie, asked first":        {"in which bank does the walnut bakery owe euros", lines("The walnut bakery orders many rolls.", filler, filler, filler, "Anna owes euros to the bank in Bergen."), Weak},
		"a tie, asked last":         {"does the walnut bakery owe euros, and to which bank", lines("The walnut bakery orders many rolls.", filler, filler, filler, "Anna owes euros to the bank in Bergen."), Weak},
		"all words in few messages": {"cat cream", lines("My cat likes cream.", "A cat that likes cream, noted."), Confident},
	} {
		x, q := New(row.docs, nil), Parse(row.query, nil)
		if got := x.Judge(q, x.Search(q, Stats{})); got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
}

// TestOwnWords: coverage is of a text itself, around is with its neighbours, and what has no word of a query stands
// behind what has; a question stands behind what states the same, and a message without words is none.
func TestOwnWords(t *testing.T) {
	docs := lines("Where is the turbine manual?", "", "Just now.", "It rains.", "The turbine manual is on shelf nine, beside the blue box with the pumps.", "Good evening.", "The harbour is busy.",
		"The manual of the pump is lost.", "It rains again.", "So it does.", "Is the turbine manual thick?")
	x, q := New(docs, nil), Parse("turbine manual", nil)
	hits := x.Search(q, Stats{})
	if hits[0].Doc != 4 || hits[0].Coverage != 1 {
		t.Errorf("first is %+v", hits[0])
	}
	bare := false
	for _, h := range hits {
		switch {
		case h.Doc == 1:
			t.Error("an empty message was found")
		case h.Coverage > h.Around:
			t.Errorf("%+v", h)
		case h.Doc == 5 && (h.Coverage != 0 || h.Around != 1):
			t.Errorf("neighbour: %+v", h)
		}
		if bare && h.Coverage > 0 {
			t.Errorf("%q stands behind what has no word", docs[h.Doc].Text)
		}
		bare = bare || h.Coverage == 0 && h.Doc != 2 // an answer may stand behind its question
	}
}

// TestOnlyFinds: what has nothing of the query but some letters, or stands beside what has, is no find.
func TestOnlyFinds(t *testing.T) {
	docs := lines("The ferry leaves at nine.", "Who is the custodian of the chapel?", "Which one?", "It rains.", "My cat is called Miso.",
		"The custodian left on Monday.", "Noted.", "The chapter was closed; customers wait.")
	x := New(docs, nil)
	hits := x.Search(Parse("custodian of the chapel", nil), Stats{})
	for i, h := range hits {
		if want := []int{1, 5}; i >= len(want) || h.Doc != want[i] {
			t.Errorf("%d: %q, coverage %.2f", i, docs[h.Doc].Text, h.Coverage)
		}
	}
	if hits = x.Search(Parse("custodain", nil), Stats{}); len(hits) == 0 || hits[0].Coverage != 0 {
		t.Errorf("mistyped: %+v", hits)
	}
}

// FuzzClaims: what a text states is of the text, and nothing is lost of one that does not ask.
func FuzzClaims(f *testing.F) {
	f.Add("Where is it? Here. v1.2?")
	f.Add("\xff?…！")
	f.Fuzz(func(t *testing.T, text string) {
		if got := claims(text); len(got) > len(text) || claims(got) != got || !strings.ContainsAny(text, "?？") && got != text {
			t.Errorf("%q: %q", text, got)
		}
	})
}

// TestWith: an index of more documents is the same, whether some were read before or not.
func TestWith(t *testing.T) {
	docs := lines("Where is the turbine manual?", "It is on shelf nine.", "The harbour is busy.", "The turbine runs.")
	changed := append([]Doc(nil), docs...)
	changed[2].Text = "The turbine is busy. Is it?"
	old, fresh := New(docs[1:3], nil).With(changed), New(changed, nil)
	for _, query := range []string{"turbine manual", "shelf", "harbour", "busi"} {
		q := Parse(query, nil)
		if a, b := old.Search(q, Stats{}), fresh.Search(q, Stats{}); !sameHits(a, b) {
			t.Errorf("%s: %v and %v", query, a, b)
		}
	}
}
