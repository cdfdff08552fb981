package recall

import "testing"

func TestWithin(t *testing.T) {
	for _, row := range []struct {
		term, name string
		want       bool
	}{
		{"needle_fact_7_secret_value_55433", "needle_fact_7", true},
		{"needle_fact_71_secret_value_1", "needle_fact_7", false},
		{"/srv/lib/phoenix/router.ex", "phoenix/router.ex", true},
		{"/srv/lib/phoenix/router.exs", "phoenix/router.ex", false},
		{"old-router.ex/router.ex", "router.ex", true},
		{"unrouter.ex/router.ex", "router.ex", true},
		{"router.ex", "phoenix/router.ex", false},
	} {
		if got := within(row.term, row.name); got != row.want {
			t.Errorf("%s in %s: %v", row.name, row.term, got)
		}
	}
}

// TestNames: a name that a longer one begins with is found first, though it stands in a long text, and is
// sure; one that nothing begins with is not.
func TestNames(t *testing.T) {
	var docs []Doc
	for i := range 30 {
		text := "NEEDLE_FACT_" + string(rune('a'+i%26)) + string(rune('a'+i/26)) + "_secret_value"
		for range i % 2 * 80 {
			text += " data"
		}
		docs = append(docs, Doc{ID: text, Pos: int64(3 * i), Text: text})
	}
	x := New(docs, nil)
	for i, d := range docs {
		q := Parse(d.Text[:14], nil)
		hits := x.Search(q, Stats{})
		if len(hits) == 0 || hits[0].Doc != i || x.Judge(q, hits) != Confident {
			t.Errorf("%s: %v %s", q.Text, hits[:min(1, len(hits))], x.Judge(q, hits))
		}
	}
	q := Parse("NEEDLE_FACT_zz", nil)
	if v := x.Judge(q, x.Search(q, Stats{})); v == Confident {
		t.Errorf("a name that is nowhere: %s", v)
	}
}

// TestHopTakesNames: the second search asks for what the first names, not for the words around it.
func TestHopTakesNames(t *testing.T) {
	x := New([]Doc{{ID: "a", Pos: 1, Text: "The amber gate is in the care of KELMAR-17 since last spring."}, {ID: "b", Pos: 5, Text: "The blue gate is open."}}, nil)
	q := Parse("which code has the one who cares for the amber gate", nil)
	next, ok := x.Hop(q, x.Search(q, Stats{}))
	if want := q.Text + " kelmar-17"; !ok || next.Text != want {
		t.Errorf("%q, want %q", next.Text, want)
	}
}
