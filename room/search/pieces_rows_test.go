package search

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
)

// TestSeam: a text is cut behind the last line near its end, else behind the last word, and never within a character.
func TestSeam(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	for _, c := range []struct {
		name, text string
		want       int
	}{
		{"a line", "abc\ndef", 4},
		{"a line before a word", "a\nb c", 2},
		{"a word", "abc def", 4},
		{"a tab", "abc\tdef", 4},
		{"a comma", "abc,def", 4},
		{"a semicolon", "abc;def", 4},
		{"the last of some", "a b c", 4},
		{"a line as far as is looked", "\n" + x(pieceOverlap-1), 1},
		{"a line before that", "\n" + x(pieceOverlap), pieceOverlap},
		{"a word as far as is looked", "a " + x(pieceOverlap-1), 2},
		{"a word before that", "a " + x(pieceOverlap), pieceOverlap + 1},
		{"letters", "abcdef", 5},
		{"two bytes", "xé", 1},
		{"four bytes", "x😀", 1},
		{"no characters", "xy\x80\x80\x80\x80\x80", 2},
		{"one letter", "x", 1},
		{"one character", "é", 1},
		{"two bytes of none", "\x80\x80", 1},
	} {
		if got := seam(c.text); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// TestPieceStatements: each piece of a text begins a little before the last one ended, and the last ends the reading.
func TestPieceStatements(t *testing.T) {
	s := &Pieces{ports: east().ports}
	words := strings.Repeat("word ", 8000) // the last space is none of the text
	for _, c := range []struct {
		name string
		text string
		at   int
		next int
		size int
	}{
		{"short", "word", 0, -1, 4},
		{"as long as a piece", strings.Repeat("x", pieceBytes), 0, -1, pieceBytes},
		{"a byte longer", strings.Repeat("x", pieceBytes+1), 0, pieceBytes - 1 - pieceOverlap, pieceBytes - 1},
		{"words", words, 0, 32_765 - pieceOverlap, 32_765},
		{"their end", words, 32_253, -1, 39_999 - 32_253},
		{"behind the end", words, 50_000, -1, 0},
	} {
		stmts, next, err := s.stmts(tidemark.NewText(tidemark.User, c.text), "home", "e1", 7, c.at)
		if err != nil || len(stmts) != 3 || next != c.next {
			t.Fatalf("%s: %d statements, next %d, %v; want %d", c.name, len(stmts), next, err, c.next)
		}
		step, want := stmts[0], []any{next, string(s.Key), "e1", c.at}
		if next < 0 {
			want = want[1:]
		}
		if !slices.Equal(step.Args, want) || step.Want != 1 || strings.HasPrefix(step.SQL, "DELETE ") != (next < 0) {
			t.Errorf("%s: %+v", c.name, step)
		}
		if a := stmts[1].Args; a[0] != string(s.Key) || a[1] != int64(7) || a[2] != int64(c.at) || a[3] != c.size {
			t.Errorf("%s: a piece %v, want %d bytes", c.name, a[:4], c.size)
		}
		if a := stmts[2].Args; a[0] != "home" || a[2] != int64(7) || a[3] != int64(c.at) {
			t.Errorf("%s: words %v", c.name, a)
		}
	}
}

// long is a text of three pieces, with a word of its own in each.
func long(name string) string {
	part := func(n, words int) string { return name + fmt.Sprint(n, " ") + strings.Repeat("filler ", words) }
	return part(1, 5000) + part(2, 5000) + part(3, 1000) // of seven bytes
}

// pieced is a conversation with a long text, beside a neighbour with one of which a piece was read, and which has as much to
// read by the same names.
type pieced struct {
	*desk
	beside        *desk
	mine, theirs  tidemark.Entry
	second, third int64 // where its pieces begin, once they are read
}

func piecedOf(t *testing.T) *pieced {
	t.Helper()
	d, beside := desks(t)
	p := &pieced{desk: d, beside: beside, theirs: beside.says(minutes(0), long("acorn"))}
	if err := beside.pieces.readRest(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	beside.exec(`UPDATE due SET at = 77 WHERE key = ?`, string(beside.Key))
	p.mine = d.says(minutes(1), long("walnut"))
	d.exec(`INSERT INTO due(key, kind, at) VALUES(?, 'other', 5)`, string(d.Key))
	beside.exec(`INSERT INTO unread(key, entry, at) VALUES(?, ?, 0)`, string(beside.Key), string(p.mine.ID))
	return p
}

// reads reads so many bytes of what is to be read.
func (p *pieced) reads(most int) {
	p.t.Helper()
	if err := p.pieces.readRest(p.t.Context(), most); err != nil {
		p.t.Fatal(err)
	}
	if rows := p.query(`SELECT at FROM pieces WHERE key = ? ORDER BY at LIMIT 9`, string(p.Key)); len(rows) == 3 {
		p.second, p.third = rows[1].Int(0), rows[2].Int(0)
	}
}

// now is a time of the clock, in milliseconds.
func (p *pieced) now(add time.Duration) int64 { return p.clock.Now().Add(add).UnixMilli() }

// want compares what is unread, what is due and which pieces there are.
func (p *pieced) want(name, want string) {
	p.t.Helper()
	if got := fmt.Sprint(p.query(`SELECT at FROM unread WHERE key = ? LIMIT 9`, string(p.Key)), p.query(`SELECT kind, at FROM due WHERE key = ? ORDER BY kind LIMIT 9`, string(p.Key)),
		p.query(`SELECT at FROM pieces WHERE key = ? ORDER BY at LIMIT 9`, string(p.Key))); got != want {
		p.t.Errorf("%s: %s\nwant %s", name, got, want)
	}
}

// find looks for a word in pieces and compares what is found, "SEQ at PLACE, true" where its text has the word.
func (p *pieced) find(name string, l *host.Lineage, word string, since, until int64, want string) {
	p.t.Helper()
	homes, _ := room.Homes(l)
	got, err := p.pieces.with(p.t.Context(), l, recall.Match(homes, word), since, until)
	out := ""
	for _, seq := range slices.Sorted(maps.Keys(got)) {
		x := got[seq]
		out += fmt.Sprintf("%d at %d, %v ", seq, x.at, strings.Contains(x.text, word+" ") && !x.lost && !x.amended)
	}
	if err != nil || strings.TrimSpace(out) != want {
		p.t.Errorf("%s: %q, %v; want %q", name, out, err, want)
	}
}

// indexedPieces compares how many are in the index, with that of the neighbour.
func (p *pieced) indexedPieces(want int64) {
	p.t.Helper()
	if n := p.number(`SELECT count(*) FROM piece_words LIMIT 1`); n != want {
		p.t.Errorf("%d pieces are in the index, want %d", n, want)
	}
}

// TestPiecesInRows: a long text is read piece by piece, as much as is asked for, and not beside a turn; what the neighbour has
// to read waits.
func TestPiecesInRows(t *testing.T) {
	d := piecedOf(t)
	d.want("logged", fmt.Sprintf("[[0]] [[other 5] [words %d]] []", d.now(wordsAfter)))
	d.clock.move(time.Second)
	active := "run"
	d.pieces.Active = func() string { return active }
	if err := d.pieces.Wake(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.want("beside a turn", fmt.Sprintf("[[0]] [[other 5] [words %d]] []", d.now(wordsAfter)))
	d.reads(0)
	d.want("when there is no time", fmt.Sprintf("[[0]] [[other 5] [words %d]] []", d.now(0)))
	d.reads(1)
	second := d.number(`SELECT at FROM unread WHERE key = ? LIMIT 9`, string(d.Key))
	if second <= pieceBytes-2*pieceOverlap || second > pieceBytes-pieceOverlap {
		t.Errorf("the second piece begins at %d", second)
	}
	d.want("a piece", fmt.Sprintf("[[%d]] [[other 5] [words %d]] [[0]]", second, d.now(0)))
	active = ""
	if err := d.pieces.Wake(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.reads(1)
	d.want("all", fmt.Sprintf("[] [[other 5]] [[0] [%d] [%d]]", second, d.third))
	if got := fmt.Sprint(d.beside.query(`SELECT u.at > 0, d.at FROM unread u JOIN due d ON d.key = u.key WHERE u.key = ? AND u.entry = ? LIMIT 9`, string(d.beside.Key), string(d.theirs.ID))); got != "[[1 77]]" {
		t.Errorf("what the neighbour has to read is %s", got)
	}
	d.indexedPieces(4)
	for most, want := range map[int64]string{second: "[[0]]", second + 1: fmt.Sprintf("[[0] [%d]]", second), d.third: fmt.Sprintf("[[0] [%d]]", second), d.third + 1: fmt.Sprintf("[[0] [%d] [%d]]", second, d.third)} {
		x := piecedOf(t)
		x.reads(int(most))
		if got := fmt.Sprint(x.query(`SELECT at FROM pieces WHERE key = ? ORDER BY at LIMIT 9`, string(x.Key))); got != want {
			t.Errorf("of %d bytes the pieces at %s are read, want %s", most, got, want)
		}
	}
	if again, err := d.pieces.restStmts(t.Context(), d.mine, tidemark.NewText(tidemark.User, long("walnut"))); err != nil || d.DB.Tx(t.Context(), again) != nil {
		t.Fatal(again, err)
	}
	if n := len(d.query(`SELECT 1 FROM unread WHERE key = ? LIMIT 9`, string(d.Key))); n != 0 {
		t.Errorf("%d texts are read again that were read", n)
	}
	brought := d.mine
	brought.Origin.From = tidemark.FromRecall
	for name, stmts := range map[string][]tidemark.Stmt{
		"short":        must(d.pieces.restStmts(t.Context(), d.mine, tidemark.NewText(tidemark.User, strings.Repeat("x", room.WordsBytes)))),
		"brought back": must(d.pieces.restStmts(t.Context(), brought, tidemark.NewText(tidemark.User, long("walnut")))),
	} {
		if len(stmts) != 0 {
			t.Errorf("%s: %v", name, stmts)
		}
	}
}

// TestPiecesFound: pieces are found by their words, each message by the one that fits best, within a time and as far as a
// branch sees.
func TestPiecesFound(t *testing.T) {
	d := piecedOf(t)
	d.reads(piecesAWake)
	at, found := d.mine.At.UnixMilli(), fmt.Sprintf("%d at %d, true", d.mine.Seq, d.third)
	d.find("by a word of the end", d.line(), "walnut3", 0, 1<<53, found)
	d.find("by one of the beginning", d.line(), "walnut1", 0, 1<<53, fmt.Sprintf("%d at 0, true", d.mine.Seq))
	d.find("by one of the neighbour", d.line(), "acorn1", 0, 1<<53, "")
	d.find("in its time", d.line(), "walnut3", at, at, found)
	d.find("before its time", d.line(), "walnut3", 0, at-1, "")
	d.find("in a branch", d.upTo(d.mine.Seq), "walnut3", 0, 1<<53, found)
	d.find("in a branch that began before", d.upTo(d.mine.Seq-1), "walnut3", 0, 1<<53, "")
	d.beside.exec(`INSERT INTO pieces(n, key, seq, at, size, text) VALUES(900, ?, 99, 5, 0, x'')`, string(d.beside.Key)) // no beginning
	first, err := d.pieces.first(t.Context(), []int64{d.mine.Seq, d.theirs.Seq, 99})
	if err != nil || len(first) != 2 || first[d.mine.Seq].at != 0 || !strings.HasPrefix(first[d.mine.Seq].text, "walnut1 ") || !strings.HasPrefix(first[d.theirs.Seq].text, "acorn1 ") {
		t.Errorf("%d beginnings, %v", len(first), err)
	}
	if first, err := d.pieces.first(t.Context(), nil); len(first) != 0 || err != nil {
		t.Errorf("of none: %v, %v", first, err)
	}
}

// TestDamagedPieces: a piece that is damaged is lost, holds up no other, and is read again from there on.
func TestDamagedPieces(t *testing.T) {
	d := piecedOf(t)
	d.reads(piecesAWake)
	d.exec(`UPDATE pieces SET text = x'00' WHERE seq = ? AND at > 0`, d.mine.Seq)
	lost := Filtered{Reason: filteredDamaged, Count: 1, IDs: []tidemark.EntryID{d.mine.ID}}
	if told, err := d.Recall(t.Context(), Wanted{Query: "walnut3"}); err != nil || len(told.Filtered) != 1 || fmt.Sprint(told.Filtered[0]) != fmt.Sprint(lost) {
		t.Errorf("a recall tells of %+v, %v; want %+v", told.Filtered, err, lost)
	}
	alarms := d.alarms
	got, err := d.pieces.with(t.Context(), d.line(), recall.Match([]string{recall.Home(d.Key)}, "walnut3"), 0, 1<<53)
	if p := got[d.mine.Seq]; err != nil || !p.lost || p.text != "" || p.at != int(d.third) || d.alarms != alarms+1 {
		t.Errorf("damaged: %+v, %d alarms, %v", p, d.alarms-alarms, err)
	}
	state := func(from int64) string {
		return fmt.Sprintf("[[%d]] [[other 5] [words %d]] [[0] [%d] [%d]]", from, d.now(0), d.second, d.third)
	}
	d.want("to be read again", state(d.third))
	d.pieces.readAgain(t.Context(), d.mine.Seq, d.second)
	d.pieces.readAgain(t.Context(), d.mine.Seq, d.third)
	d.want("from the first that is damaged", state(d.second))
	d.reads(piecesAWake)
	d.find("made anew", d.line(), "walnut3", 0, 1<<53, fmt.Sprintf("%d at %d, true", d.mine.Seq, d.third))
	d.indexedPieces(4)
}

// must is a result of what does not fail.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestPieceIsNotShortened: a piece is made anew of a text that is as long, and not of one that has lost some.
func TestPieceIsNotShortened(t *testing.T) {
	d, _ := desks(t)
	if err := d.Made.Open(t.Context(), pieceTables); err != nil {
		t.Fatal(err)
	}
	d.exec(`INSERT INTO pieces(n, key, seq, at, size, text) VALUES(7, ?, 50, 0, 0, x''), (8, ?, 1, 5, 0, x'')`, string(d.Key), string(d.Key)) // of which the words are not there
	text := func() string { return must(d.pieces.first(t.Context(), []int64{1}))[1].text }
	for _, c := range [][2]string{{"abc", "abc"}, {"ab", "abc"}, {"xyz", "xyz"}, {"wxyz", "wxyz"}} {
		stmts, err := d.pieces.stmt("home", 1, 0, c[0])
		if err == nil {
			err = d.DB.Tx(t.Context(), stmts)
		}
		if got := text(); err != nil || got != c[1] {
			t.Errorf("%s: %q, %v; want %q", c[0], got, err, c[1])
		}
	}
	if n := d.number(`SELECT count(*) FROM piece_words WHERE piece_words MATCH 'home : home' LIMIT 1`); n != 1 {
		t.Errorf("%d rows of its words", n)
	}
}

// TestPieceOfAnother: the end of a text ends what is to be read of it alone, and only where nobody else has read on.
func TestPieceOfAnother(t *testing.T) {
	d, _ := desks(t)
	if err := d.Made.Open(t.Context(), pieceTables); err != nil {
		t.Fatal(err)
	}
	d.exec(`INSERT INTO unread(key, entry, at) VALUES(?, 'e1', 100), (?, 'e2', 100)`, string(d.Key), string(d.Key))
	m := tidemark.NewText(tidemark.User, strings.Repeat("walnut ", 40))
	d.exec(`INSERT INTO unread(key, entry, at) VALUES(?, 'e3', 0), (?, 'e4', 0)`, string(d.Key), string(d.Key))
	steps := func(at int) error {
		stmts, _, err := d.pieces.stmts(tidemark.NewText(tidemark.User, long("walnut")), "home", "e3", 3, at)
		if err != nil {
			t.Fatal(err)
		}
		return d.DB.Tx(t.Context(), stmts)
	}
	if err := steps(5); !errors.Is(err, tidemark.ErrConflict) {
		t.Errorf("where another reads: %v", err)
	}
	if err := steps(0); err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(d.query(`SELECT entry, at > 0 FROM unread WHERE key = ? AND entry > 'e2' ORDER BY entry LIMIT 9`, string(d.Key))); got != "[[e3 1] [e4 0]]" {
		t.Errorf("to be read on is %s", got)
	}
	ends := func(at int) error {
		stmts, next, err := d.pieces.stmts(m, "home", "e1", 1, at)
		if err != nil || next != -1 {
			t.Fatal(next, err)
		}
		return d.DB.Tx(t.Context(), stmts)
	}
	if err := ends(50); !errors.Is(err, tidemark.ErrConflict) {
		t.Errorf("where another has read on: %v", err)
	}
	if err := ends(100); err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(d.query(`SELECT entry, at FROM unread WHERE key = ? AND entry < 'e3' LIMIT 9`, string(d.Key))); got != "[[e2 100]]" {
		t.Errorf("to be read is %s", got)
	}
}

// TestFarTexts: of a message whose text stands in the bucket the beginning is read that is among its pieces, also where the
// piece that was found is damaged.
func TestFarTexts(t *testing.T) {
	d, _ := desks(t)
	if err := d.Made.Open(t.Context(), pieceTables); err != nil {
		t.Fatal(err)
	}
	var far tidemark.Message
	if err := json.Unmarshal([]byte(`{"role":"user","content":[{"type":"text","tidemark_blob":{"sha256":"`+strings.Repeat("ab", 32)+`","bytes":400000}}]}`), &far); err != nil {
		t.Fatal(err)
	}
	e := d.logs(minutes(0), "", far)
	if err := d.DB.Tx(t.Context(), must(d.pieces.stmt("home", e.Seq, 0, "its beginning"))); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		found map[int64]piece
		want  string
	}{
		"nothing found": {nil, "0 false its beginning"}, "a piece": {map[int64]piece{e.Seq: {at: 7, text: "a piece"}}, "7 false a piece"}, "a damaged one": {map[int64]piece{e.Seq: {at: 7, lost: true}}, "0 true its beginning"},
	} {
		if err := d.pieces.texts(t.Context(), []tidemark.Entry{e}, c.found, func(_ tidemark.Entry, _ tidemark.Role, p piece) {
			if got := fmt.Sprint(p.at, " ", p.lost, " ", p.text); got != c.want {
				t.Errorf("%s: %q, want %q", name, got, c.want)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAmendedInRows: what a message reads now, of several corrections the last, is its own: not that of another message, nor
// of one of another conversation.
func TestAmendedInRows(t *testing.T) {
	d, beside := desks(t)
	amend := func(x *desk, e tidemark.Entry, text string) {
		t.Helper()
		if err := x.DB.Tx(t.Context(), must(x.AmendStmts(t.Context(), e, text))); err != nil {
			t.Fatal(err)
		}
	}
	one, two, three := d.says(minutes(0), "the walnut is red"), d.says(minutes(1), "the harbour is shut"), d.says(minutes(2), "the boat is long")
	theirs := beside.says(minutes(0), "the acorn is red")
	amend(beside, theirs, "the acorn is blue")
	amend(d, one, "the walnut is green")
	amend(d, two, "the harbour is open")
	amend(d, one, "the walnut is blue")
	amend(d, two, room.TakenBack)
	amend(d, one, "the walnut is "+strings.Repeat("very ", 400)+"old")
	four := d.says(minutes(3), long("pebble"))
	if err := d.pieces.readRest(t.Context(), piecesAWake); err != nil {
		t.Fatal(err)
	}
	got, err := d.Reads(t.Context(), []tidemark.EntryID{one.ID, three.ID, two.ID, four.ID, theirs.ID, "unknown"})
	want := map[tidemark.EntryID]room.Now{one.ID: {Text: "the walnut is " + strings.Repeat("very ", 400) + "old"}, two.ID: {Text: room.TakenBack, Gone: true}}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%.200v, %v", got, err)
	}
	if got, err := d.Reads(t.Context(), []tidemark.EntryID{two.ID, three.ID}); err != nil || len(got) != 1 || !got[two.ID].Gone {
		t.Errorf("of some: %.200v, %v", got, err)
	}
	texts := map[int64]string{}
	use := func(e tidemark.Entry, role tidemark.Role, p piece) {
		texts[e.Seq] = fmt.Sprintf("%s %v %v %v %d %s", role, p.amended, p.gone, p.lost, p.at, p.text)
	}
	entries, err := d.Log.Payloads(t.Context(), []int64{one.Seq, two.Seq, three.Seq, four.Seq})
	if err != nil {
		t.Fatal(err)
	}
	if now, err := d.pieces.amended(t.Context(), entries[1:]); err != nil || len(now) != 1 || !now[two.Seq].gone {
		t.Errorf("amended of some are %v, %v", now, err)
	}
	latest := must(d.pieces.with(t.Context(), d.line(), recall.Match([]string{recall.Home(d.Key)}, "old"), 0, 1<<53))
	if p := latest[one.Seq]; !p.amended || p.gone || p.at != 0 || !strings.HasSuffix(p.text, " old") {
		t.Errorf("found by what it reads now: %.200v", latest)
	}
	if err := d.pieces.texts(t.Context(), entries, latest, use); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(texts[four.Seq], "user false false false 0 pebble1 filler") {
		t.Errorf("a long one: %.200q", texts[four.Seq])
	}
	shown := "the walnut is " + strings.Repeat("very ", 400)
	for seq, want := range map[int64]string{
		one.Seq:   "user true false false 0 the walnut is red\n[The person corrected this message. It reads now: " + shown[:maxRead] + "…]",
		two.Seq:   "user true true false 0 the harbour is shut\n" + room.TakenBack,
		three.Seq: "user false false false 0 the boat is long",
	} {
		if texts[seq] != want {
			t.Errorf("message %d: %.1200q\nwant %.1200q", seq, texts[seq], want)
		}
	}
}
