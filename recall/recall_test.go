package recall

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// talk is a conversation of two people over some days.
func talk() []Doc {
	lines := []struct {
		day       int
		who, text string
	}{
		{1, "Ann", "Hey Bob! Did you ever get a pet?"},
		{1, "Bob", "Yes, a parrot. Her name is Kiwi."},
		{1, "Ann", "How lovely! I would like to have one, too."},
		{2, "Bob", "We moved to Lisbon last week, near the river."},
		{2, "Ann", "Congratulations! I ran a charity race on Saturday."},
		{2, "Bob", "You are in great shape. How many kilometres?"},
		{2, "Ann", "Ten, in under an hour."},
		{40, "Ann", "I painted a sunset yesterday, for the adoption agency."},
		{40, "Bob", "I adopted two cats. Community matters to me."},
	}
	docs := make([]Doc, len(lines))
	for i, l := range lines {
		docs[i] = Doc{ID: fmt.Sprint(i), Pos: int64(i + 1), Group: int64(l.day), At: time.Date(2023, 5, l.day, 9, i, 0, 0, time.UTC), Speaker: l.who, Text: l.text}
	}
	return docs
}

// TestSearch has a row for each thing that a rule is there for.
func TestSearch(t *testing.T) {
	x := New(talk(), nil)
	for _, row := range []struct{ query, want string }{
		{"parrot", "1"},
		{"What is the name of Bob's pet?", "1"},             // the answer stands behind its question
		{"How many kilometres did Ann run?", "6"},           // and has a number
		{"Where did Bob move to?", "3"},                     // an irregular form, a place
		{"What did Ann paint?", "7"},                        // another form of the word
		{"communities", "8"},                                // the stem
		{"who adopts cats", "8"},                            //
		{"What happened in June 2023?", "7"},                // the date alone
		{"kilometers", "5"},                                 // mistyped: characters
		{"When did Ann take part in the charity race", "4"}, //
	} {
		hits := x.Search(Parse(row.query, nil), Stats{})
		if len(hits) == 0 || x.Docs()[hits[0].Doc].ID != row.want {
			var got []string
			for _, h := range hits[:min(3, len(hits))] {
				got = append(got, fmt.Sprintf("%s %.2f", x.Docs()[h.Doc].Text, h.Score))
			}
			t.Errorf("%q: want %s first, got %q", row.query, row.want, got)
		}
	}
	if hits := x.Search(Parse("zebra xylophone", nil), Stats{}); len(hits) != 0 {
		t.Errorf("found %d of nothing", len(hits))
	}
}

// TestExact: what is named exactly comes first among a thousand that look like it, in whatever order they
// are given.
func TestExact(t *testing.T) {
	var docs []Doc
	for i := range 1000 {
		docs = append(docs, Doc{ID: fmt.Sprint(i), Pos: int64(i + 1), Text: fmt.Sprintf("needle_fact_%d is kept at src/net/conn_%d.go, commit %08x, mail u%d@example.org", i, i, i*7919, i)})
	}
	x := New(docs, nil)
	for _, i := range []int{0, 7, 77, 770, 999} {
		for _, query := range []string{fmt.Sprintf("needle_fact_%d", i), fmt.Sprintf("src/net/conn_%d.go", i), fmt.Sprintf("where is commit %08x", i*7919), fmt.Sprintf("u%d@example.org", i)} {
			q := Parse(query, nil)
			hits := x.Search(q, Stats{})
			if x.Docs()[hits[0].Doc].ID != fmt.Sprint(i) || x.Judge(q, hits) != Confident {
				t.Errorf("%q: %s, %s", query, x.Docs()[hits[0].Doc].Text, x.Judge(q, hits))
			}
		}
	}
	for _, query := range []string{"needle_fact_1234", "commit deadbeef", "src/net/conn_4321.go", "quokka"} {
		q := Parse(query, nil)
		if v := x.Judge(q, x.Search(q, Stats{})); v == Confident {
			t.Errorf("%q is not there and was judged %s", query, v)
		}
	}
}

// TestStable: the same documents in another order give the same ranking.
func TestStable(t *testing.T) {
	docs := talk()
	turned := slices.Clone(docs)
	slices.Reverse(turned)
	q := Parse("What did Ann and Bob adopt or paint near the river?", nil)
	a, b := New(docs, nil).Search(q, Stats{}), New(turned, nil).Search(q, Stats{})
	if !sameHits(a, b) {
		t.Errorf("%v\n%v", a, b)
	}
}

// TestHop: a weak find leads to what it names.
func TestHop(t *testing.T) {
	docs := []Doc{
		{ID: "a", Pos: 1, Group: 1, Text: "The harbour crane is tracked as TICKET_881."},
		{ID: "b", Pos: 50, Group: 2, Text: "Lunch was good."},
		{ID: "c", Pos: 90, Group: 3, Text: "TICKET_881 was closed by Ines after the new cable came."},
	}
	x := New(docs, nil)
	q := Parse("who repaired the harbour crane", nil)
	next, ok := x.Hop(q, x.Search(q, Stats{}))
	if !ok || !slices.Contains(next.Terms, "ticket_881") {
		t.Fatalf("the second query is %q, %v", next.Text, ok)
	}
	hits := x.Search(next, Stats{})
	if got := []string{x.Docs()[hits[0].Doc].ID, x.Docs()[hits[1].Doc].ID}; !slices.Contains(got, "c") {
		t.Errorf("found %v", got)
	}
	if _, ok := x.Hop(q, nil); ok {
		t.Error("nothing leads nowhere")
	}
}

func TestTerms(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"The children went running", "child go run"},
		{"Fix parseHeader in src/http/conn.go v1.2.3", "fix parsehead pars header src/http/conn.go src http conn go v1.2.3 1.2.3 v1 2 3"},
		{"I don't like it", ""},
		{"東京タワー", "東京 京タ タワ ワー"},
	} {
		got := strings.Join((&Stemmer{}).Terms(row.text), " ")
		if row.want != got {
			t.Errorf("%q: %q, want %q", row.text, got, row.want)
		}
	}
}

func TestDates(t *testing.T) {
	for _, row := range []struct {
		text  string
		month time.Month
		day   int
		year  int
	}{
		{"what happened on 3 May 2023", time.May, 3, 2023}, {"in July", time.July, 0, 0}, {"I may go", 0, 0, 0},
		{"on August 23rd", time.August, 23, 0}, {"in 2024", 0, 0, 2024}, {"May 32", 0, 0, 0},
	} {
		if q := Parse(row.text, nil); q.month != row.month || q.day != row.day || q.year != row.year {
			t.Errorf("%q: %v %d %d", row.text, q.month, q.day, q.year)
		}
	}
}

// FuzzSearch: any texts and query give scores that are numbers, in order, each document once.
func FuzzSearch(f *testing.F) {
	f.Add("what is the port?", "the port is 8080", "where? 東京 \xff", int64(1))
	f.Fuzz(func(t *testing.T, query, a, b string, pos int64) {
		x := New([]Doc{{ID: "a", Pos: pos, Text: a, Speaker: b}, {ID: "b", Pos: pos + 1, Text: b}, {ID: "c", Pos: 7, Text: a + b}}, nil)
		q := Parse(query, nil)
		hits := x.Search(q, Stats{})
		seen := map[int]bool{}
		for i, h := range hits {
			if h.Score != h.Score || h.Normalized < 0 || h.Normalized > 1 || h.Coverage < 0 || h.Coverage > 1.000001 || seen[h.Doc] {
				t.Fatalf("hit %+v", h)
			}
			if seen[h.Doc] = true; i > 0 && hits[i-1].Score < h.Score {
				t.Fatalf("%v stands before %v", hits[i-1], h)
			}
		}
		x.Judge(q, hits)
		x.Hop(q, hits)
	})
}

func BenchmarkIndex(b *testing.B) {
	docs := talk()
	for len(docs) < 600 {
		docs = append(docs, docs[:min(len(docs), 600-len(docs))]...)
	}
	b.Run("index", func(b *testing.B) {
		stem := &Stemmer{}
		for b.Loop() {
			New(docs, stem)
		}
	})
	x := New(docs, nil)
	b.Run("query", func(b *testing.B) {
		for b.Loop() {
			x.Search(Parse("What did Ann paint near the river?", x.stem), Stats{})
		}
	})
}
