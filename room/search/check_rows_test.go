package search

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
)

// TestRarest: of the three terms that look rarest, those with a digit and then the longest, the one that fewest messages have
// is looked for; one that no other has is as good as any.
func TestRarest(t *testing.T) {
	d, beside := desks(t)
	d.indexed(map[int64]string{1: "ccc3 bb2 a1 dddd same5 same6 one77 pairs22 uno7", 2: "ccc3 bb2 a1 same5 same6 pairs22", 3: "ccc3 a1"})
	beside.indexed(map[int64]string{11: "bb2", 12: "bb2", 13: "one77"})
	for _, c := range []struct {
		name  string
		terms []string
		want  string
	}{
		{"the fewest", []string{"dddd", "a1", "bb2", "ccc3"}, "bb2"},
		{"one that nobody has", []string{"abcdefgh", "a1"}, "abcdefgh"},
		{"of equals the longer", []string{"bb2", "same5"}, "same5"},
		{"of equals as long the first", []string{"same6", "same5"}, "same5"},
		{"one that two have does not end it", []string{"pairs22", "uno7"}, "uno7"},
		{"one that stands alone ends it", []string{"one77", "zz9"}, "one77"},
		{"one that nobody has ends it", []string{"none99", "one77"}, "none99"},
		{"each once", []string{"ccc3", "ccc3", "ccc3", "bb2"}, "bb2"},
		{"the fourth is not looked at", []string{"z0", "a1", "ccc3", "bb2"}, "bb2"},
	} {
		if got, err := d.index.rarest(t.Context(), slices.Clone(c.terms)); err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", c.name, got, err, c.want)
		}
	}
	for _, c := range []struct {
		seq  int64
		term string
		want bool
	}{{1, "one77", true}, {2, "one77", false}, {13, "one77", false}, {4, "skipped", true}, {5, "skipped", false}} {
		if c.term == "skipped" && c.want {
			d.exec(`INSERT INTO words(rowid, home, terms) VALUES(?, ?, 'skipped')`, c.seq, recall.SkippedHome(d.Key))
		}
		if got, err := d.index.holds(t.Context(), c.seq, c.term); err != nil || got != c.want {
			t.Errorf("%d is found by %s: %v, %v", c.seq, c.term, got, err)
		}
	}
}

// TestCheckOfTheIndex: an entry that is found is sound, one that is not is written again under the home that it has, and one
// that nobody can find is told. What need not be there is not looked for.
func TestCheckOfTheIndex(t *testing.T) {
	d, beside := skipper(t)
	m := tidemark.NewText(tidemark.User, "the walnut boat n42")
	first := d.says(minutes(0), "the walnut boat n42")
	lost := d.logs(minutes(1), "", m)
	left := d.logs(minutes(2), "", m)
	d.skip("skipped", skipSkipped, left.Seq-1, left.ID)
	d.exec(`UPDATE skips SET indexed = 1 WHERE key = ?`, string(d.Key))
	beside.skip("open", skipOpen, 0)
	recalled := d.logs(minutes(3), tidemark.FromRecall, m)
	mute := d.logs(minutes(4), "", tidemark.NewText(tidemark.User, "the of"))
	check := func(name string, e tidemark.Entry, m tidemark.Message, checks, repaired int, fault string) {
		t.Helper()
		n, r, f, err := d.index.Check(t.Context(), e, m)
		if err != nil || n != checks || r != repaired || f != fault {
			t.Errorf("%s: %d checks, %d repaired, %q, %v; want %d, %d, %q", name, n, r, f, err, checks, repaired, fault)
		}
	}
	check("sound", first, m, 1, 0, "")
	check("lost", lost, m, 1, 1, "")
	check("found again", lost, m, 1, 0, "")
	check("left out and lost", left, m, 1, 1, "")
	check("brought back", recalled, m, 0, 0, "")
	check("without words", mute, tidemark.NewText(tidemark.User, "the of"), 0, 0, "")
	for seq, home := range map[int64]string{lost.Seq: recall.Home(d.Key), left.Seq: recall.SkippedHome(d.Key)} {
		if n := d.number(`SELECT count(*) FROM words WHERE words MATCH ? AND rowid = CAST(? AS INTEGER) LIMIT 1`, recall.Match([]string{home}, "n42"), seq); n != 1 {
			t.Errorf("%d rows of message %d under its home", n, seq)
		}
	}
	nowhere := tidemark.Entry{ID: "nowhere", Seq: 50, Log: d.log, Kind: tidemark.KindMessage, Origin: tidemark.Origin{From: tidemark.FromPerson}}
	check("nowhere", nowhere, m, 1, 0, `entry nowhere is not found by its word "n42"`)
	long := tidemark.NewText(tidemark.User, strings.Repeat("x7", 30))
	check("nowhere, by a long word", nowhere, long, 1, 0, `entry nowhere is not found by its word "`+strings.Repeat("x7", 20)+`…"`)
	waits := d.logs(minutes(5), "", m)
	d.skip("open", skipOpen, waits.Seq-1)
	check("waits for its turn", waits, m, 1, 0, "")

	// What was logged before there was an index comes into it with the next recall.
	d.exec(`INSERT INTO words(words) VALUES('delete-all')`)
	d.exec(`INSERT INTO words(rowid, home, terms) VALUES(?, ?, 'x'), (?, ?, 'x')`, lost.Seq, recall.Home(d.Key), first.Seq, recall.Home(beside.Key))
	for seq, want := range map[int64]bool{first.Seq: true, lost.Seq: false, left.Seq: false} {
		if got, err := d.index.unindexed(t.Context(), seq); err != nil || got != want {
			t.Errorf("message %d is not indexed yet: %v, %v", seq, got, err)
		}
	}
	check("not indexed yet", first, m, 0, 0, "")
	d.index.indexed.Store(true)
	if got, err := d.index.unindexed(t.Context(), first.Seq); err != nil || got {
		t.Errorf("all are indexed, and %d is not: %v", first.Seq, err)
	}
	d.index.Came()
	if d.index.indexed.Load() {
		t.Error("what came with an archive is taken for indexed")
	}
	branch := &host.Lineage{Key: d.Key, Own: map[string]bool{}}
	d.index.Lineage = func(context.Context, bool) (*host.Lineage, error) { return branch, nil }
	check("of what a branch continues", lost, m, 0, 0, "")
	branch.Own[d.log] = true
	check("of a branch itself", lost, m, 1, 1, "")
}

// TestIndexOfBefore: what was logged before there was an index comes into it from the newest to the oldest, of all logs of
// the conversation and none of another; how far it came is written down.
func TestIndexOfBefore(t *testing.T) {
	d, beside := desks(t)
	var want []int64
	for i := range 4 { // 1, 3, 5 and 7 are ours
		want = append(want, d.logs(minutes(i), "", tidemark.NewText(tidemark.User, "walnut")).Seq)
		beside.logs(minutes(i), "", tidemark.NewText(tidemark.User, "walnut"))
	}
	d.event()
	for seq, want := range map[int64]int{1: 1, 3: 1, 4: 2, 7: 3, 8: 4, 100: 4} {
		if got, err := d.index.before(t.Context(), seq); got != want || err != nil {
			t.Errorf("%d before %d, %v; want %d", got, seq, err, want)
		}
	}
	beside.exec(`INSERT INTO due(key, kind, at, data) VALUES(?, ?, 0, '2')`, string(beside.Key), room.DueIndex)
	d.exec(`INSERT INTO due(key, kind, at, data) VALUES(?, 'other', 0, '1')`, string(d.Key))
	beside.indexed(map[int64]string{2: "walnut"})
	if got, err := d.index.firstIndexed(t.Context()); got != 1<<53 || err != nil {
		t.Errorf("of no index the first is %d, %v", got, err)
	}
	left, err := d.index.indexLater(t.Context(), 7)
	if err != nil || left != 3 || d.alarms == 0 {
		t.Errorf("%d are left, %v", left, err)
	}
	if got, err := d.index.firstIndexed(t.Context()); got != 7 || err != nil {
		t.Errorf("the first that was read is %d, %v", got, err)
	}
	d.indexed(map[int64]string{7: "walnut"})
	if got, err := d.index.firstIndexed(t.Context()); got != 7 || err != nil {
		t.Errorf("the first is %d, %v", got, err)
	}
	active := "run"
	d.index.Active = func() string { return active }
	if err := d.index.Wake(t.Context()); err != nil || d.number(`SELECT at FROM due WHERE key = ? AND kind = ? LIMIT 1`, string(d.Key), room.DueIndex) != d.clock.Now().Add(wordsAfter).UnixMilli() {
		t.Errorf("beside a turn: %v", err)
	}
	if got := fmt.Sprint(d.query(`SELECT key, kind, at FROM due WHERE kind <> ? OR key <> ? ORDER BY key LIMIT 9`, room.DueIndex, string(d.Key))); got != fmt.Sprintf("[[%s other 0] [%s %s 0]]", d.Key, beside.Key, room.DueIndex) {
		t.Errorf("what else is due: %s", got)
	}
	active = ""
	if err := d.index.Wake(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := d.number(`SELECT count(*) FROM due WHERE kind = ? LIMIT 1`, room.DueIndex); n != 1 || !d.index.indexed.Load() {
		t.Errorf("%d are due, all indexed %v", n, d.index.indexed.Load())
	}
	var got []int64
	for _, r := range d.query(`SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid LIMIT 20`, recall.MatchHome([]string{recall.Home(d.Key)})) {
		got = append(got, r.Int(0))
	}
	if !slices.Equal(got, want) {
		t.Errorf("in the index are %d, want %d", got, want)
	}
}

// TestIndexable: a branch has its own logs in the index, the newest first, and those that an archive brought.
func TestIndexable(t *testing.T) {
	d, _ := desks(t)
	l := &host.Lineage{Key: d.Key, Own: map[string]bool{"01A": true, "01B": true, d.log: true}}
	var fail error
	d.index.Lineage = func(context.Context, bool) (*host.Lineage, error) { return l, fail }
	if got, err := d.index.indexable(t.Context()); err != nil || !slices.Equal(got, []string{d.log, "01B", "01A"}) {
		t.Errorf("of a branch: %q, %v", got, err)
	}
	l.Single = true
	if got, err := d.index.indexable(t.Context()); err != nil || !slices.Equal(got, []string{d.log}) {
		t.Errorf("of a conversation: %q, %v", got, err)
	}
	l, fail = nil, tidemark.ErrUnavailable
	if _, err := d.index.indexable(t.Context()); !errors.Is(err, tidemark.ErrUnavailable) {
		t.Error(err)
	}
}

// TestNotIndexedYet: a long text that cannot be read now is told as missing, and read later.
func TestNotIndexedYet(t *testing.T) {
	d, beside := desks(t)
	c := callerOf(d)
	c.says(minutes(0), "The walnut boat is green.")
	c.says(minutes(1), long("acorn"))
	beside.says(minutes(1), long("pebble"))
	words := c.pieces.Words
	c.pieces.Words = func(context.Context, tidemark.Entry) (tidemark.Message, func(), error) {
		return tidemark.Message{}, func() {}, tidemark.ErrUnavailable
	}
	alarms := c.alarms
	if missing, err := c.index.ready(t.Context(), false); missing != 1 || err != nil || c.alarms == alarms {
		t.Errorf("%d are missing, %d alarms, %v", missing, c.alarms-alarms, err)
	}
	if got := c.call(`{"query":"walnut boat"}`); !strings.HasPrefix(got, "1 messages are not indexed yet and were not looked at; a minute later they are. Confident: what the query asks for was said.\n\n[") {
		t.Errorf("the model is told %q", got)
	}
	c.pieces.Words = func(context.Context, tidemark.Entry) (tidemark.Message, func(), error) {
		return tidemark.Message{}, func() {}, tidemark.ErrDead
	}
	if _, err := c.index.ready(t.Context(), false); !errors.Is(err, tidemark.ErrDead) {
		t.Errorf("of an object that is gone: %v", err)
	}
	c.pieces.Words = words
	if missing, err := c.index.ready(t.Context(), false); missing != 0 || err != nil || !c.index.indexed.Load() {
		t.Errorf("%d are missing then, all indexed %v, %v", missing, c.index.indexed.Load(), err)
	}
	if _, err := c.index.ready(t.Context(), true); err != nil {
		t.Error(err)
	}
}

// TestIndexUntilLate: the index of a log is made from a position down until it is late, at least of one message, and not of
// what the log continues.
func TestIndexUntilLate(t *testing.T) {
	d, _ := desks(t)
	for i := range 6 { // an event stands behind each
		d.logs(minutes(i), "", tidemark.NewText(tidemark.User, "walnut"))
		d.event()
	}
	never, always := func() bool { return false }, func() bool { return true }
	for _, c := range []struct {
		last int64
		late func() bool
		at   int64
		rows int64
	}{{11, always, 11, 1}, {9, always, 9, 2}, {4, never, 0, 4}, {12, never, 0, 6}} {
		at, err := d.index.indexLog(t.Context(), d.log, c.last, c.late)
		if n := d.number(`SELECT count(*) FROM words LIMIT 1`); err != nil || at != c.at || n != c.rows {
			t.Errorf("from %d on: up to %d, %d rows, %v; want %d, %d", c.last, at, n, err, c.at, c.rows)
		}
	}
	d.exec(`INSERT INTO logs(id, key, base_log, base_seq, created) VALUES('branch', ?, ?, 6, 0)`, string(d.Key), d.log)
	if at, err := d.index.indexLog(t.Context(), "branch", 1<<53, never); at != 0 || err != nil {
		t.Errorf("of a branch: %d, %v", at, err)
	}
	d.exec(`DELETE FROM logs WHERE id = 'branch'`)
	// A clock that was set back does not hold up who waits.
	d.exec(`INSERT INTO words(words) VALUES('delete-all')`)
	back := d.clock
	d.index.Runtime = &setBack{watch: back}
	left, err := d.index.catchUp(t.Context())
	if err != nil || left != 5 || d.number(`SELECT count(*) FROM words LIMIT 1`) != 1 {
		t.Errorf("with a clock that goes back %d are left, %v", left, err)
	}
	for left := int64(5); left >= 0; left-- { // each wake reads one more
		if n := d.number(`SELECT CAST(data AS INTEGER) FROM due WHERE key = ? AND kind = ? LIMIT 1`, string(d.Key), room.DueIndex); n != 2*left+1 {
			t.Errorf("%d are left, and it is read up to %d", left, n)
		}
		if err := d.index.Wake(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left == 1 {
			break
		}
	}
	if n := len(d.query(`SELECT 1 FROM due WHERE key = ? AND kind = ? LIMIT 1`, string(d.Key), room.DueIndex)); n != 0 || d.number(`SELECT count(*) FROM words LIMIT 1`) != 6 {
		t.Errorf("all are read, and %d is due", n)
	}
}

// TestReadyLater: who waited for the index of messages does not wait for the rest of long texts, which are read at once
// otherwise; both are missing, and are there in the end.
func TestReadyLater(t *testing.T) {
	d, _ := desks(t)
	d.says(minutes(0), long("acorn"))
	d.says(minutes(1), "walnut")
	d.says(minutes(2), "harbour")
	d.exec(`INSERT INTO words(words) VALUES('delete-all')`)
	d.index.Runtime = &setBack{watch: d.clock}
	begin := d.number(`SELECT at FROM unread LIMIT 1`)
	for _, want := range []int{3, 2, 0} { // two messages and a text, a message and the text, nothing
		if missing, err := d.index.ready(t.Context(), false); missing != want || err != nil {
			t.Errorf("%d are missing, %v; want %d", missing, err, want)
		}
		if want > 0 && d.number(`SELECT at FROM unread LIMIT 1`) != begin {
			t.Errorf("with %d missing the text is read", want)
		}
	}
	if n := d.number(`SELECT count(*) FROM unread LIMIT 1`); n != 0 || d.number(`SELECT count(*) FROM words LIMIT 1`) != 3 {
		t.Errorf("%d texts are unread in the end", n)
	}
}

// setBack is a clock that goes back a second each time.
type setBack struct{ *watch }

func (s *setBack) Now() time.Time {
	s.move(-time.Second)
	return s.watch.Now()
}
