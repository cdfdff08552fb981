package room

import (
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/recall"
)

// TestTextAt: the text of a message is what a search should find of it, without the blanks around it, and can be read from any
// place on.
func TestTextAt(t *testing.T) {
	result := func(texts ...string) tidemark.Block {
		b := tidemark.Block{Type: tidemark.TypeToolResult, ToolUseID: "c"}
		for _, text := range texts {
			b.Content = append(b.Content, tidemark.Text(text))
		}
		return b
	}
	var document tidemark.Block
	if err := json.Unmarshal([]byte(`{"type":"document","title":"T","source":{"type":"text","media_type":"text/plain","data":"words"}}`), &document); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name    string
		content []tidemark.Block
		want    string
	}{
		{"nothing", nil, ""}, {"blanks", []tidemark.Block{tidemark.Text(" \n"), tidemark.Text("\t")}, ""}, {"a text", []tidemark.Block{tidemark.Text(" one two ")}, "one two"},
		{"texts", []tidemark.Block{tidemark.Text("  one "), tidemark.Text(" two\n")}, "one \n two"}, {"blanks between", []tidemark.Block{tidemark.Text("one"), tidemark.Text(" "), tidemark.Text("two")}, "one\n \ntwo"},
		{"a call", []tidemark.Block{tidemark.Text("so"), tidemark.ToolUse("c", "look", []byte(`{"a":1}`))}, "so\nlook {\"a\":1}"},
		{"calls that ask for what stands elsewhere", []tidemark.Block{tidemark.Text("so"), tidemark.ToolUse("c", RecallTool, nil), tidemark.ToolUse("d", TaskTool, nil), tidemark.ToolUse("e", "find", nil)}, "so\n\n\nfind {}"},
		{"results", []tidemark.Block{result("r1", "r2"), result(), tidemark.Text("end")}, "r1\nr2\n\n\nend"},
		{"what is ours", []tidemark.Block{tidemark.Text("<system-reminder>x</system-reminder>said")}, "said"},
		{"a document", []tidemark.Block{document, tidemark.Text("read it")}, document.Document() + "\nread it"},
		{"a letter", []tidemark.Block{tidemark.Text("x"), tidemark.Text("y"), tidemark.Text(" ")}, "x\ny"},
		{"a picture", []tidemark.Block{{Type: tidemark.TypeImage}, tidemark.Text("of it")}, "of it"},
	} {
		m := tidemark.Message{Role: tidemark.User, Content: tc.content}
		if got := Searchable(m); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
		for from := range len(tc.want) + 3 {
			for most := range len(tc.want) + 3 {
				lo, hi := min(from, len(tc.want)), min(from+most, len(tc.want))
				if got, size := TextAt(m, from, most); got != tc.want[lo:hi] || size != len(tc.want) {
					t.Fatalf("%s: %d from %d on: %q of %d, want %q of %d", tc.name, most, from, got, size, tc.want[lo:hi], len(tc.want))
				}
			}
		}
		for most := range len(tc.want) + 3 {
			if got := Longer(m, most); got != (len(tc.want) > most) {
				t.Errorf("%s: longer than %d: %v", tc.name, most, got)
			}
		}
	}
	for size, want := range map[int]bool{WordsBytes: false, WordsBytes + 1: true, WordsBytes + 500: true, WordsBytes + 5000: true} { // whose end is put into the index by itself
		if got := Longer(tidemark.NewText(tidemark.User, "\n"+strings.Repeat("x", size)+strings.Repeat(" ", 3000)), WordsBytes); got != want {
			t.Errorf("of %d bytes: longer %v", size, got)
		}
	}
}

// TestTablesMade: tables are there from the first row on, which is asked for once where nobody else makes them.
func TestTablesMade(t *testing.T) {
	if got := (Tables{Steps: []string{"CREATE TABLE a(x)", "CREATE INDEX b ON a(x)", "CREATE VIRTUAL TABLE c USING fts5(x)", "CREATE TABLE d (x)", "CREATE TABLE e", "CREATE TABLE (x)"}}).Names(); !slices.Equal(got, []string{"a", "c", "d"}) {
		t.Errorf("tables %q", got)
	}
	for _, own := range []bool{false, true} {
		db := hosttest.DB(t)
		other, tables := Tables{Space: "other", Steps: []string{"CREATE TABLE o(x)"}}, Tables{Space: "mine", Steps: []string{"CREATE TABLE m(x INTEGER)"}, Own: own}
		if err := other.Open(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		a, b := &Made{DB: db}, &Made{DB: db}
		if rows, err := a.Query(t.Context(), tables, `SELECT x FROM m LIMIT 1`); rows != nil || err != nil || a.Here(tables) {
			t.Errorf("own %v, before they are made: %v, %v, here %v", own, rows, err, a.Here(tables))
		}
		if err := b.Open(t.Context(), tables); err != nil || !b.Here(tables) || b.Here(other) {
			t.Errorf("own %v, made: %v, here %v", own, err, b.Here(tables))
		}
		if err := db.Tx(t.Context(), []tidemark.Stmt{{SQL: `INSERT INTO m(x) VALUES(7)`}}); err != nil {
			t.Fatal(err)
		}
		if rows, err := b.Query(t.Context(), tables, `SELECT x FROM m LIMIT 1`); err != nil || len(rows) != 1 || rows[0].Int(0) != 7 {
			t.Errorf("own %v: %v, %v", own, rows, err)
		}
		if rows, err := a.Query(t.Context(), tables, `SELECT x FROM m LIMIT 1`); err != nil || (len(rows) == 1) == own || a.Here(tables) == own {
			t.Errorf("own %v, where another made them: %v, %v, here %v", own, rows, err, a.Here(tables))
		}
		if there, err := (&Made{DB: db}).Has(t.Context(), tables); err != nil || !there {
			t.Errorf("own %v, in another life: %v, %v", own, there, err)
		}
	}
}

// TestPinsOf: what is pinned of a state, and no more.
func TestPinsOf(t *testing.T) {
	got := State{Marks: []StateMark{{ID: "a", Pinned: 1}, {ID: "b", Superseded: "a"}, {ID: "c", Pinned: 9}}}.Pins()
	if len(got) != 2 || !got["a"] || !got["c"] {
		t.Errorf("pins %v", got)
	}
}

// TestHomes: what is found stands under the sessions that a conversation may look into, or its own alone where that is all.
func TestHomes(t *testing.T) {
	l := &host.Lineage{Key: "a", Keys: []string{"a", "b"}}
	for single, want := range map[bool][]string{false: {"a", "b"}, true: {"a"}} {
		l.Single = single
		found, skipped := Homes(l)
		for i, key := range want {
			if len(found) != len(want) || len(skipped) != len(want) || found[i] != recall.Home(tidemark.Key(key)) || skipped[i] != recall.SkippedHome(tidemark.Key(key)) {
				t.Errorf("single %v: %q and %q", single, found, skipped)
			}
		}
	}
	if got := l.Before("e"); got != `e.seq <= coalesce(json_extract(?, '$."' || e.log || '"'), 0)` {
		t.Errorf("condition %s", got)
	}
	if got := (Call{Turn: Turn{Run: "r", Round: 2}, N: 3}).Place(); got != "r/2/3" {
		t.Errorf("a call is at %s", got)
	}
	if got := Harmless("a <system-reminder>b</system-reminder>"); got != "a &lt;system-reminder>b&lt;/system-reminder>" {
		t.Errorf("harmless %q", got)
	}
}

// TestJSON: values of ours are written as they are, and one that is none is a mistake of ours.
func TestJSON(t *testing.T) {
	if got := JSON(map[string]any{"a": "<b>"}); got != `{"a":"<b>"}` {
		t.Errorf("JSON %s", got)
	}
	defer func() {
		if what := recover(); what != "encode chan int: json: unsupported type: chan int" {
			t.Errorf("what never encodes: %v", what)
		}
	}()
	t.Errorf("a channel is %s", JSON(make(chan int)))
}
