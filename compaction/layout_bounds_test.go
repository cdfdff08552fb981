package compaction

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// TestGaps: what must be read is what lies between hidden stretches, within the bounds that are asked for.
func TestGaps(t *testing.T) {
	l := Layout{Hidden: []Span{{3, 5}, {8, 8}, {20, 30}}}
	for _, row := range []struct {
		lo, hi int64
		want   string
	}{
		{1, 40, "[{1 2} {6 7} {9 19} {31 40}]"},
		{3, 40, "[{6 7} {9 19} {31 40}]"},
		{2, 6, "[{2 2} {6 6}]"},
		{4, 5, "[]"},
		{6, 7, "[{6 7}]"},
		{6, 6, "[{6 6}]"},
		{9, 25, "[{9 19}]"},
		{1, 2, "[{1 2}]"},
		{1, 8, "[{1 2} {6 7}]"},
		{31, 31, "[{31 31}]"},
		{30, 30, "[]"},
		{7, 6, "[]"},
	} {
		if got := fmt.Sprint(l.Gaps(row.lo, row.hi)); got != row.want {
			t.Errorf("%d to %d: %s, want %s", row.lo, row.hi, got, row.want)
		}
	}
	if got := fmt.Sprint(Layout{}.Gaps(1, 3)); got != "[{1 3}]" {
		t.Errorf("of nothing hidden: %s", got)
	}
}

// TestHoles: a span hides itself less what it keeps, and stretches that touch are one.
func TestHoles(t *testing.T) {
	for _, row := range []struct {
		keep []int64
		want string
	}{
		{nil, "[{2 9}]"}, {[]int64{2}, "[{3 9}]"}, {[]int64{9}, "[{2 8}]"}, {[]int64{4, 5}, "[{2 3} {6 9}]"}, {[]int64{3, 8}, "[{2 2} {4 7} {9 9}]"}, {[]int64{2, 3, 4, 5, 6, 7, 8, 9}, "[]"},
	} {
		if got := fmt.Sprint(Placed{From: 2, To: 9, Keep: row.keep}.hole()); got != row.want {
			t.Errorf("keeping %v it hides %s, want %s", row.keep, got, row.want)
		}
	}
	if got := fmt.Sprint(union([]Span{{7, 9}, {1, 2}, {3, 3}, {5, 8}, {5, 6}, {20, 21}, {11, 11}})); got != "[{1 3} {5 9} {11 11} {20 21}]" {
		t.Errorf("together they are %s", got)
	}
}

// TestPlace: edits are put at the positions of their entries; one that names an unknown entry, or ends before it begins, is refused.
func TestPlace(t *testing.T) {
	at := func(id tidemark.EntryID) (int64, bool) {
		n := strings.Index("abcdefgh", string(id))
		return int64(n + 1), n >= 0 && id != ""
	}
	rows := []Row{
		{"o1", 10, tidemark.Overlay{Edits: []tidemark.Edit{{From: "b", To: "e", Keep: []tidemark.EntryID{"d", "c"}}, {From: "g"}}}},
		{"o2", 11, tidemark.Overlay{Edits: []tidemark.Edit{{From: "c", To: "h", Block: 2}, {From: "a", To: "a"}}}},
		{"o3", 12, tidemark.Overlay{Edits: []tidemark.Edit{{From: "a", To: "a"}}}},
		{"o4", 13, tidemark.Overlay{Lifts: []tidemark.EntryID{"o3"}}},
		{"o5", 14, tidemark.Overlay{Lifts: []tidemark.EntryID{"o1"}}},
		{"o6", 15, tidemark.Overlay{Lifts: []tidemark.EntryID{"o5"}}},
	}
	got, err := Place(rows, at)
	want := "[{o1 10 0 2 5 false 0 [3 4]} {o1 10 1 7 7 true 0 []} {o2 11 0 3 3 false 2 []} {o2 11 1 1 1 false 0 []}]"
	if err != nil || fmt.Sprint(got) != want {
		t.Errorf("placed %v, %v\nwant %s", got, err, want)
	}
	for _, row := range []struct {
		edit tidemark.Edit
		want string
		is   error
	}{
		{tidemark.Edit{From: "x", To: "b"}, "overlay o, edit 2: entry x", tidemark.ErrNotFound},
		{tidemark.Edit{From: "b", To: "x"}, "overlay o, edit 2: entry x", tidemark.ErrNotFound},
		{tidemark.Edit{From: "b", To: "c", Keep: []tidemark.EntryID{"x"}}, "overlay o, edit 2: entry x", tidemark.ErrNotFound},
		{tidemark.Edit{From: "c", To: "b"}, "overlay o, edit 2: ends before it begins", tidemark.ErrInvalid},
	} {
		_, err := Place([]Row{{"o", 10, tidemark.Overlay{Edits: []tidemark.Edit{{From: "a", To: "b"}, row.edit}}}}, at)
		if !errors.Is(err, row.is) || !strings.HasPrefix(err.Error(), row.want) {
			t.Errorf("%+v: %v", row.edit, err)
		}
	}
}

// spanOf is a span of a row, from and to included.
func spanOf(row, from, to int64, keep ...int64) Placed {
	return Placed{Overlay: tidemark.EntryID(fmt.Sprint("o", row)), Row: row, From: from, To: to, Keep: keep}
}

// TestLay: of edits that begin at one place an insertion stands first, then the outermost span; what a span covers sleeps,
// what it keeps does not.
func TestLay(t *testing.T) {
	insert := func(row, at int64) Placed {
		return Placed{Overlay: tidemark.EntryID(fmt.Sprint("o", row)), Row: row, From: at, To: at, Insert: true}
	}
	block := func(row, at int64, n int) Placed {
		return Placed{Overlay: tidemark.EntryID(fmt.Sprint("o", row)), Row: row, From: at, To: at, Block: n}
	}
	for name, row := range map[string]struct {
		edits  []Placed
		shown  string // rows, in the order in which they are shown
		hidden string
	}{
		"apart":                           {[]Placed{spanOf(2, 6, 7), spanOf(1, 2, 4)}, "1 2", "[{2 4} {6 7}]"},
		"they touch":                      {[]Placed{spanOf(1, 2, 4), spanOf(2, 5, 7)}, "1 2", "[{2 7}]"},
		"one within another":              {[]Placed{spanOf(1, 3, 4), spanOf(2, 2, 5)}, "2", "[{2 5}]"},
		"that begins with it":             {[]Placed{spanOf(1, 2, 4), spanOf(2, 2, 5)}, "2", "[{2 5}]"},
		"that ends with it":               {[]Placed{spanOf(1, 5, 5), spanOf(2, 2, 5)}, "2", "[{2 5}]"},
		"behind it":                       {[]Placed{spanOf(1, 6, 6), spanOf(2, 2, 5)}, "2 1", "[{2 6}]"},
		"the same twice":                  {[]Placed{spanOf(1, 2, 5), spanOf(2, 2, 5)}, "2", "[{2 5}]"},
		"within what is kept":             {[]Placed{spanOf(1, 3, 4), spanOf(2, 2, 5, 3, 4)}, "2 1", "[{2 5}]"},
		"under one that sleeps itself":    {[]Placed{spanOf(1, 3, 3), spanOf(2, 2, 4, 3), spanOf(3, 1, 9)}, "3", "[{1 9}]"},
		"an insertion at its beginning":   {[]Placed{spanOf(1, 2, 5), insert(2, 2)}, "2 1", "[{2 5}]"},
		"and within":                      {[]Placed{spanOf(1, 2, 5), insert(2, 3)}, "1", "[{2 5}]"},
		"a block of what is covered":      {[]Placed{block(1, 2, 1), spanOf(2, 2, 5)}, "2", "[{2 5}]"},
		"of what is kept":                 {[]Placed{block(1, 3, 1), block(3, 4, 1), spanOf(2, 2, 5, 3)}, "2 1", "[{2 2} {4 5}]"},
		"the block of an entry by itself": {[]Placed{block(1, 3, 1)}, "1", "[]"},
	} {
		l := Lay(row.edits)
		var shown []string
		for _, p := range l.Shown {
			shown = append(shown, fmt.Sprint(p.Row))
		}
		if got := strings.Join(shown, " "); got != row.shown || fmt.Sprint(l.Hidden) != row.hidden {
			t.Errorf("%s: %s are shown, %v is hidden; want %s, %s", name, got, l.Hidden, row.shown, row.hidden)
		}
	}
}

// TestCheckOverlayBounds: spans of a row and those shown may nest or lie apart; where they meet in one entry they do not.
func TestCheckOverlayBounds(t *testing.T) {
	insert, block := func(at int64) Placed { return Placed{From: at, To: at, Insert: true} }, func(at int64) Placed { return Placed{From: at, To: at, Block: 1} }
	for name, row := range map[string]struct {
		shown, row []Placed
		want       string // "" where the row is taken
	}{
		"keeps its ends":                 {nil, []Placed{spanOf(9, 2, 5, 2, 5)}, ""},
		"keeps what is before it":        {nil, []Placed{spanOf(9, 2, 5, 1)}, "edit 1 keeps an entry outside its span"},
		"keeps what is behind it":        {nil, []Placed{spanOf(9, 2, 5, 6)}, "edit 1 keeps an entry outside its span"},
		"spans side by side":             {nil, []Placed{spanOf(9, 2, 5), spanOf(9, 6, 7)}, ""},
		"in one entry":                   {nil, []Placed{spanOf(9, 2, 5), spanOf(9, 5, 7)}, "edits 1 and 2 overlap"},
		"from the other side":            {nil, []Placed{spanOf(9, 5, 7), spanOf(9, 2, 5)}, "edits 1 and 2 overlap"},
		"one in the other":               {nil, []Placed{spanOf(9, 1, 1), spanOf(9, 2, 9), spanOf(9, 4, 5)}, "edits 2 and 3 overlap"},
		"a block under the span":         {nil, []Placed{block(3), spanOf(9, 2, 5)}, "edits 1 and 2 overlap"},
		"a block at its end":             {nil, []Placed{spanOf(9, 2, 5), block(5)}, "edits 1 and 2 overlap"},
		"a block behind it":              {nil, []Placed{spanOf(9, 2, 5), block(6)}, ""},
		"a block before it":              {nil, []Placed{block(1), spanOf(9, 2, 5)}, ""},
		"a block that it keeps":          {nil, []Placed{block(3), spanOf(9, 2, 5, 3)}, ""},
		"two blocks and an insertion":    {nil, []Placed{block(3), block(3), insert(3)}, ""},
		"around a shown span":            {[]Placed{spanOf(1, 2, 5)}, []Placed{spanOf(9, 2, 6)}, ""},
		"the same span again":            {[]Placed{spanOf(1, 2, 5)}, []Placed{spanOf(9, 2, 5)}, ""},
		"beside a shown span":            {[]Placed{spanOf(1, 2, 5)}, []Placed{spanOf(9, 6, 7), spanOf(9, 1, 1)}, ""},
		"over its end":                   {[]Placed{spanOf(1, 2, 5)}, []Placed{spanOf(9, 5, 7)}, "edit 1 and overlay o1: partial overlap"},
		"over its beginning":             {[]Placed{spanOf(1, 2, 5)}, []Placed{spanOf(9, 7, 8), spanOf(9, 1, 2)}, "edit 2 and overlay o1: partial overlap"},
		"under a shown span":             {[]Placed{spanOf(1, 2, 5)}, []Placed{spanOf(9, 3, 4)}, "edit 1 lies under overlay o1"},
		"at its end":                     {[]Placed{spanOf(1, 2, 5)}, []Placed{spanOf(9, 4, 5)}, "edit 1 lies under overlay o1"},
		"at its beginning":               {[]Placed{spanOf(1, 2, 5)}, []Placed{spanOf(9, 2, 3)}, "edit 1 lies under overlay o1"},
		"around one at its end":          {[]Placed{spanOf(9, 4, 5)}, []Placed{spanOf(1, 2, 5)}, ""},
		"around one at its beginning":    {[]Placed{spanOf(9, 2, 3)}, []Placed{spanOf(1, 2, 5)}, ""},
		"a block under it":               {[]Placed{spanOf(1, 2, 5)}, []Placed{block(2)}, "edit 1 lies under overlay o1"},
		"an insertion at its beginning":  {[]Placed{spanOf(1, 2, 5)}, []Placed{insert(2)}, ""},
		"an insertion within":            {[]Placed{spanOf(1, 2, 5)}, []Placed{insert(3)}, "edit 1 lies under overlay o1"},
		"a block that it shows":          {[]Placed{spanOf(1, 2, 5, 3)}, []Placed{block(3)}, ""},
		"a span of what it shows":        {[]Placed{spanOf(1, 2, 5, 3, 4)}, []Placed{spanOf(9, 3, 4)}, ""},
		"of more than it shows":          {[]Placed{spanOf(1, 2, 5, 4)}, []Placed{spanOf(9, 3, 4)}, "edit 1 and overlay o1: partial overlap"},
		"keeping what the inner hides":   {[]Placed{spanOf(1, 2, 5)}, []Placed{spanOf(9, 1, 6, 3)}, "edit 1 and overlay o1: partial overlap"},
		"keeping all that the inner has": {[]Placed{spanOf(1, 3, 3)}, []Placed{spanOf(9, 1, 6, 3)}, ""},
		"keeping what the inner keeps":   {[]Placed{spanOf(1, 2, 5, 3)}, []Placed{spanOf(9, 1, 6, 3)}, ""},
		"beside a shown block":           {[]Placed{block(3), insert(3)}, []Placed{block(3), insert(3), spanOf(9, 3, 3)}, "edits 1 and 3 overlap"},
	} {
		err := CheckOverlay(row.shown, row.row)
		if row.want == "" && err != nil || row.want != "" && (!errors.Is(err, tidemark.ErrInvalid) || !strings.HasPrefix(err.Error(), row.want)) {
			t.Errorf("%s: %v, want %q", name, err, row.want)
		}
	}
}
