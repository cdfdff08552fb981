package recall

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestBeside: a number is held by the texts where it stands as in the query, nearer and in the same order better, and by
// those of a list; not by those where it stands beside other words.
func TestBeside(t *testing.T) {
	texts := []string{
		"hash of build 12", "build 12", "build number 12", "builds 11, 12 and 13", "12", "12 builds", "build 11 took 12 seconds", "12 seconds", "step 12 of the build",
	}
	docs := make([]Doc, len(texts))
	for i, text := range texts {
		docs[i] = Doc{ID: text, Pos: int64(3 * i), Text: text}
	}
	m := New(docs, nil).match(Parse("hash of build 12", nil), Stats{})
	number := slices.Index(m.terms, "12")
	for i, want := range []bool{true, true, true, false, true, false, false, false, false} {
		if got := !m.loose[i].has(number); got != want {
			t.Errorf("%q: %v, fits %.2f", texts[i], got, m.fits[i])
		}
	}
	if m.fits[0] <= m.fits[1] || m.fits[1] <= m.fits[2] || m.fits[2] <= m.fits[3] || m.fits[3] <= m.fits[6] {
		t.Errorf("fits %.2f", m.fits)
	}
	m = New(docs[3:5], nil).match(Parse("did build 12 fail", nil), Stats{})
	if m.loose[0].has(slices.Index(m.terms, "12")) {
		t.Error("where no other has it, a list has")
	}
}

// TestBesideAnother: a number is not held by a text in which another stands in its place, and then nothing is sure.
func TestBesideAnother(t *testing.T) {
	var docs []Doc
	for i := range 40 {
		docs = append(docs, Doc{ID: fmt.Sprint(i), Pos: int64(3 * i), Text: fmt.Sprintf("The hash of build %d is aa%dbb.", i+100, i)})
	}
	for _, row := range []struct {
		text, query string
		want        Verdict
	}{
		{"We have 12 servers; the hash of build 31 is cafe01.", "hash of build 12", Weak},
		{"Build 12 failed, so we took the hash of build 13, which is deadbeef.", "What is the hash of build 12?", Weak},
		{"Build 12 failed, so we took the hash of build 13, which is deadbeef.", "What is the hash of build 13?", Confident},
		{"Server alpha-75 listens on port 8001; its neighbour is alpha-76.", "port of server alpha-76", Weak},
		{"Server alpha-75 listens on port 8001; its neighbour is alpha-76.", "port of server alpha-75", Confident},
		{"Builds 11, 12 and 13 have the hash cafe01.", "hash of builds 12", Confident},
		{"Build 12 has the hash 99ab and took 40 seconds.", "hash of build 12", Confident},
	} {
		x := New(append(docs[:40:40], Doc{ID: "x", Pos: 999, Text: row.text}), nil)
		q := Parse(row.query, nil)
		hits := x.Search(q, Stats{})
		if got := x.Judge(q, hits); got != row.want && !(row.want == Weak && got == Nothing) {
			t.Errorf("%s: %v of document %d, want %v", row.query, got, hits[0].Doc, row.want)
		}
	}
}

// TestBesideAsked: a question that was asked before takes its number from no answer.
func TestBesideAsked(t *testing.T) {
	const question = "Where does the key with the tag KEY_4711 lie?"
	m := New([]Doc{{ID: "q", Pos: 1, Text: question}, {ID: "a", Pos: 4, Text: "The key lies under a tile, tag KEY_4711."}, {ID: "b", Pos: 7, Text: "Of the boxes, KEY_4711 is red."}}, nil).match(Parse(question, nil), Stats{})
	number := slices.Index(m.terms, "key_4711")
	if m.loose[1].has(number) || !m.loose[2].has(number) {
		t.Errorf("fits %.2f", m.fits)
	}
}

// TestHopNumber: a hit with another number than the query lends the second search nothing.
func TestHopNumber(t *testing.T) {
	var docs []Doc
	for i := range 9 {
		docs = append(docs, Doc{ID: fmt.Sprint(i), Pos: int64(3 * i), Text: fmt.Sprintf("Build %d: KELMAR-%d, 99 seconds.", i, 40+i)})
	}
	x := New(docs, nil)
	for query, want := range map[string]bool{"who cares for build 99": false, "who cares for build 7": true, "who cares for build ZX-99": false} {
		q := Parse(query, nil)
		next, ok := x.Hop(q, x.Search(q, Stats{}))
		if ok != want || want && next.Text != query+" kelmar-47" {
			t.Errorf("%s: %q, %v", query, next.Text, ok)
		}
	}
}

// TestHopBesideNumber: a hit that has the number of the query beside another word leads nowhere.
func TestHopBesideNumber(t *testing.T) {
	var docs []Doc
	for i := range 30 {
		docs = append(docs, Doc{ID: fmt.Sprint(i), Pos: int64(3 * i), Text: fmt.Sprintf("Bus LX %d carried parcel c0f%d, %d passengers.", 420+i, 300+i, 450-i)})
	}
	x := New(docs, nil)
	for query, want := range map[string]bool{"parcel of bus MX 433": false, "what did QQ 431 carry": false, "seal of bus LX 433": true} {
		q := Parse(query, nil)
		if next, ok := x.Hop(q, x.Search(q, Stats{})); ok != want {
			t.Errorf("%s: %q, %v", query, next.Text, ok)
		}
	}
}

// TestPlace: of a long text the place is given where the number stands as it does in the query.
func TestPlace(t *testing.T) {
	const text = "Step 12 is done in 12 seconds, says the log of all builds.\n112 lines. Then build 12 came, and 12 more."
	stem := &Stemmer{}
	if at := Parse("hash of build 12", nil).Place(text, stem); at < 0 || !strings.HasPrefix(text[at:], "12 came") {
		t.Errorf("place %d", at)
	}
	for _, query := range []string{"hash of build", "room 13", "12"} {
		if at := Parse(query, nil).Place(text, stem); at >= 0 {
			t.Errorf("%s: place %d", query, at)
		}
	}
}
