package episodes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/room"
)

// TestSavedGraph: episodes are saved when some began or ended, or 64 messages came, each log's for itself; a life that reads
// them back reads on from there.
func TestSavedGraph(t *testing.T) {
	db := hosttest.DB(t)
	d, beside := deskOf(t, db, "log"), deskOf(t, db, "a neighbour")
	saved := func() string {
		return d.query(`SELECT m.n, json_extract(m.record, '$.name'), l.upto FROM marked_logs l LEFT JOIN marked m ON m.log = l.log WHERE l.log = ? ORDER BY m.n LIMIT 9`, d.log)
	}
	beside.does("expl theirs")
	beside.does("end it is so")
	if got := beside.names(); got != "theirs" {
		t.Errorf("the neighbour has %s", got)
	}
	theirs := d.query(`SELECT * FROM marked m JOIN marked_logs l ON l.log = m.log WHERE m.log = ? LIMIT 9`, beside.log)
	talk := tidemark.NewText(tidemark.User, "go on") // which is no work
	for range savedSoon - 1 {
		d.says(talk)
	}
	if got := d.names(); got != "" || saved() != "[]" {
		t.Errorf("of %d messages: %q, saved %s", savedSoon-1, got, saved())
	}
	d.says(talk)
	last := int64(4 + savedSoon) // positions of the neighbour's are before it
	if got := d.names(); got != "" || saved() != fmt.Sprintf("[[<nil> <nil> %d]]", last) {
		t.Errorf("of one more: %q, saved %s", got, saved())
	}
	d.does("expl one")
	if got := d.names(); got != "one!" || saved() != fmt.Sprintf("[[1 one %d]]", last+2) {
		t.Errorf("of one that began: %q, saved %s", got, saved())
	}
	d.does("look a.go")
	if got := d.names(); got != "one!" || saved() != fmt.Sprintf("[[1 one %d]]", last+2) {
		t.Errorf("of one that goes on: %q, saved %s", got, saved())
	}
	n := d.anew()
	if got := n.names(); got != "one!" || saved() != fmt.Sprintf("[[1 one %d]]", last+2) {
		t.Errorf("in another life: %q, saved %s", got, saved())
	}
	d.does("end it is so")
	d.does("act two")
	if got := d.names(); got != "one two!" || saved() != fmt.Sprintf("[[1 one %d] [2 two %d]]", last+8, last+8) {
		t.Errorf("of two: %q, saved %s", got, saved())
	}
	if upto, list, err := n.savedEpisodes(t.Context(), d.log); err != nil || upto != last+8 || len(list) != 2 || list[0].Name != "one" || list[0].Open || list[0].Calls != 1 || list[1].Name != "two" || !list[1].Open {
		t.Errorf("read back up to %d: %+v, %v", upto, list, err)
	}
	// The other life knows less, and spoils nothing.
	n.does("look b.go")
	n.does("expl late")
	if got := n.names(); got != "one two!" || len(n.warned) != 0 || saved() != fmt.Sprintf("[[1 one %d] [2 two %d]]", last+8, last+8) { // the second cannot begin before the first has ended
		t.Errorf("the other life: %q, warned of %q, saved %s", got, n.warned, saved())
	}
	if upto, list, err := n.savedEpisodes(t.Context(), "unknown"); upto != 0 || list != nil || err != nil {
		t.Errorf("of no log: %d, %v, %v", upto, list, err)
	}
	if got := d.query(`SELECT * FROM marked m JOIN marked_logs l ON l.log = m.log WHERE m.log = ? LIMIT 9`, beside.log); got != theirs {
		t.Errorf("the neighbour's were %s and are %s", theirs, got)
	}

	// What cannot be used is taken out, unless another life has stored more.
	d.dropEpisodes(t.Context(), d.log, 3)
	if len(d.warned) != 1 || d.query(`SELECT count(*) FROM marked WHERE log = ? LIMIT 1`, d.log) != "[[2]]" {
		t.Errorf("of another life: warned of %q", d.warned)
	}
	gone, stop := context.WithCancel(t.Context())
	stop()
	if d.dropEpisodes(gone, d.log, 3); len(d.warned) != 1 {
		t.Errorf("of a turn that was stopped: %q", d.warned)
	}
	d.exec(`UPDATE marked_logs SET upto = ? WHERE log = ?`, last+8, beside.log) // as far as ours
	d.exec(`UPDATE marked SET record = replace(record, '"n":2', '"n":7') WHERE log = ? AND n = 2`, d.log)
	if again, list, err := d.savedEpisodes(t.Context(), d.log); again != 0 || list != nil || err != nil || len(d.warned) != 2 || !strings.HasSuffix(d.warned[1], "read episode 2 of log: it is number 7: "+tidemark.ErrInvalid.Error()) {
		t.Errorf("what cannot be used: up to %d, %v, %v, warned of %q", again, list, err, d.warned)
	}
	if got := d.query(`SELECT upto, (SELECT count(*) FROM marked m WHERE m.log = l.log) FROM marked_logs l ORDER BY l.log LIMIT 9`); got != fmt.Sprintf("[[%d 1] [0 0]]", last+8) {
		t.Errorf("left are %s", got)
	}
	d.by = nil // nothing is saved where the strategy is not in force
	if got := d.anew().names(); got != "one two!" || d.query(`SELECT upto FROM marked_logs WHERE log = ? LIMIT 1`, d.log) != "[[0]]" {
		t.Errorf("without the strategy: %q", got)
	}
}

// TestSavedSoon: a log in which nothing begins is saved each 64 messages, and one that is read for the first
// time on its way, so that what was read is not read again when the rest cannot be.
func TestSavedSoon(t *testing.T) {
	d := deskOf(t, hosttest.DB(t), "log")
	saved := func() string { return d.query(`SELECT upto FROM marked_logs WHERE log = ? LIMIT 1`, d.log) }
	d.does("look a.go") // unmarked work
	if got := d.names(); got != "#1" || saved() != "[[2]]" {
		t.Errorf("of one: %q", got)
	}
	if m, err := d.anew().loadGraph(t.Context(), d.log); err != nil || m.saved != 2 || m.Upto() != 2 {
		t.Errorf("read back up to %d, %v", m.saved, err)
	}
	for _, c := range []struct {
		more int
		want string
	}{{savedSoon - 1, "[[2]]"}, {1, "[[66]]"}, {savedSoon - 1, "[[66]]"}, {1, "[[130]]"}} {
		for range c.more {
			d.says(tidemark.NewText(tidemark.User, "go on"))
		}
		if d.names(); saved() != c.want {
			t.Errorf("%d messages on: saved up to %s, want %s", c.more, saved(), c.want)
		}
	}

	late := deskOf(t, hosttest.DB(t), "log")
	late.exec(`INSERT INTO entries(id, log, kind, role, at, tokens, skel, origin, hash, payload) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2100)
		SELECT 'e' || i, ?, 'message', 'user', 0, 1, '{"n":1}', '{}', '', CASE i WHEN 2100 THEN '{' ELSE '{"role":"user","content":"on"}' END FROM n`, late.log)
	err := late.withGraph(t.Context(), late.log, func(*episodes.Graph) error { return nil })
	if err == nil || !strings.HasPrefix(err.Error(), "episodes: read entry e2100: ") {
		t.Errorf("of a log whose end cannot be read: %v", err)
	}
	if got := late.query(`SELECT upto FROM marked_logs WHERE log = ? LIMIT 1`, late.log); got != "[[2048]]" { // 32 pages
		t.Errorf("saved up to %s", got)
	}
}

// TestSavedPages: episodes are read in pages of 500, all of one save.
func TestSavedPages(t *testing.T) {
	db := hosttest.DB(t)
	d, beside := deskOf(t, db, "log"), deskOf(t, db, "a neighbour")
	if err := d.Made.Open(t.Context(), tables); err != nil {
		t.Fatal(err)
	}
	fill := func(log string, n int) {
		d.exec(`DELETE FROM marked WHERE log = ?`, log)
		d.exec(`INSERT INTO marked(log, n, record) WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < ?) SELECT ?, i, json_object('n', i, 'name', 'e' || i) FROM c`, n, log)
		d.exec(`INSERT INTO marked_logs(log, upto) VALUES(?, 7) ON CONFLICT(log) DO UPDATE SET upto = 7`, log)
	}
	fill(beside.log, 700)
	for _, n := range []int{1, savedPage - 1, savedPage, savedPage + 1, 2 * savedPage} {
		fill(d.log, n)
		upto, list, err := d.savedEpisodes(t.Context(), d.log)
		if err != nil || upto != 7 || len(list) != n || list[n-1].Name != fmt.Sprint("e", n) {
			t.Errorf("%d episodes: %d up to %d, %v", n, len(list), upto, err)
		}
	}
	d.DB = &between{DB: db, then: func() { d.exec(`UPDATE marked_logs SET upto = 9 WHERE log = ?`, d.log) }}
	if upto, list, err := d.savedEpisodes(t.Context(), d.log); err != nil || upto != 9 || len(list) != 2*savedPage || list[savedPage].N != savedPage+1 {
		t.Errorf("of two saves: %d up to %d, %v", len(list), upto, err)
	}
	d.DB = db
	d.exec(`UPDATE marked_logs SET upto = 0 WHERE log = ?`, d.log)
	if upto, list, err := d.savedEpisodes(t.Context(), d.log); upto != 0 || list != nil || err != nil {
		t.Errorf("of what was dropped: %d up to %d, %v", len(list), upto, err)
	}
}

// between is a database in which something happens behind the first query.
type between struct {
	tidemark.DB
	then func()
}

func (b *between) Query(ctx context.Context, sql string, args ...any) ([]tidemark.Row, error) {
	rows, err := b.DB.Query(ctx, sql, args...)
	if then := b.then; then != nil {
		b.then = nil
		then()
	}
	return rows, err
}

// TestGraphOfABranch: a branch goes on from what is saved of the nearest log that it continues, up to where it begins.
func TestGraphOfABranch(t *testing.T) {
	d := deskOf(t, hosttest.DB(t), "log")
	d.does("expl one")     // 1, 2
	d.does("end it is so") // 3, 4
	d.does("expl two")     // 5, 6
	d.does("end it is so") // 7, 8
	d.does("act three")    // 9, 10
	if got := d.names(); got != "one two three!" {
		t.Fatal(got)
	}
	branch := func(id, base string, seq int64) {
		t.Helper()
		if err := d.DB.Tx(t.Context(), []tidemark.Stmt{d.Log.CreateStmt(host.Info{ID: id, Key: "agent:main:main#side", BaseLog: base, BaseSeq: seq, Created: morning})}); err != nil {
			t.Fatal(err)
		}
	}
	branch("early", "log", 4)
	branch("late", "log", 8)
	branch("of late", "late", 10)
	branch("of both", "of late", 6)
	for log, want := range map[string]string{"early": "one", "late": "one two", "of late": "one two", "of both": "one two!"} {
		n := d.anew()
		n.log = log
		if got := n.names(); got != want {
			t.Errorf("%s has %q, want %q", log, got, want)
		}
	}
	n := d.anew()
	n.log = "late"
	n.does("act four")
	if got := n.names(); got != "one two four!" {
		t.Errorf("the branch goes on: %q", got)
	}
	if got := n.anew().names(); got != "one two four!" {
		t.Errorf("in another life: %q", got)
	}
	if got := d.query(`SELECT group_concat(json_extract(record, '$.name')) FROM (SELECT record FROM marked WHERE log = 'late' ORDER BY n) LIMIT 1`); got != "[[one,two,four]]" {
		t.Errorf("saved of the branch are %s", got)
	}
	if got := d.names(); got != "one two three!" {
		t.Errorf("the base has %q", got)
	}
}

// TestSaveFails: what cannot be written now is told and read once more; that another life has stored more is no failure.
func TestSaveFails(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		warned int
	}{"the disk is full": {tidemark.ErrUnavailable, 1}, "another life has stored more": {tidemark.ErrConflict, 0}, "the object is gone": {tidemark.ErrDead, 0}} {
		d := deskOf(t, hosttest.DB(t), "log")
		d.does("expl one")
		real := d.DB
		if err := d.Made.Open(t.Context(), tables); err != nil {
			t.Fatal(err)
		}
		d.DB = refusing{real, c.err}
		if got := d.names(); got != "one!" || len(d.warned) != c.warned || d.kept.Load() != nil {
			t.Errorf("%s: %q, warned of %q, kept %v", name, got, d.warned, d.kept.Load() != nil)
		}
		d.DB = real
		if got := d.names(); got != "one!" || d.query(`SELECT count(*) FROM marked WHERE log = ? LIMIT 1`, d.log) != "[[1]]" || d.kept.Load() == nil {
			t.Errorf("%s, and then: %q, kept %v", name, got, d.kept.Load() != nil)
		}
	}
}

// refusing is a database that writes nothing.
type refusing struct {
	tidemark.DB
	err error
}

func (r refusing) Tx(context.Context, []tidemark.Stmt) error { return r.err }

// TestReadMore: the pages of an episode begin with who said it and when; an offset below 0 is refused, and the model is told
// where to go on.
func TestReadMore(t *testing.T) {
	d := deskOf(t, hosttest.DB(t), "log")
	d.says(tidemark.NewText(tidemark.User, "go on"))
	d.does("expl look")
	d.does("look " + strings.Repeat("x", room.ToolPage))
	d.does("end it is so")
	d.does("act mend")
	text, err := d.Read(t.Context(), "look", 0)
	if err != nil || text.Episode != `exploration "look"` || text.Next != room.ToolPage || !strings.HasPrefix(text.Text, "[2026-03-01 08:01, assistant, entry ") || strings.Contains(text.Text, "go on") {
		t.Errorf("%.200q, next %d, %v", text.Text, text.Next, err)
	}
	first, err := d.ReadEpisode(t.Context(), d.log, "look", 0)
	if want := text.Text + fmt.Sprintf("\n[%d bytes of exploration \"look\"; go on with offset %d]", room.ToolPage, room.ToolPage); err != nil || first != want {
		t.Errorf("%.200q, %v", first[max(0, len(first)-200):], err)
	}
	second, err := d.ReadEpisode(t.Context(), d.log, "look", 100)
	if want := fmt.Sprintf("\n[%d bytes of exploration \"look\"; go on with offset %d]", room.ToolPage, room.ToolPage+100); err != nil || !strings.HasSuffix(second, want) {
		t.Errorf("%.200q, %v", second[max(0, len(second)-200):], err)
	}
	rest, err := d.ReadEpisode(t.Context(), d.log, "look", room.ToolPage+10_000)
	if second, again := d.Read(t.Context(), "look", room.ToolPage+10_000); err != nil || again != nil || second.Next != room.ToolPage+10_000+room.ToolPage && second.Next != 0 || second.Next == 0 && rest != second.Text {
		t.Errorf("%.200q, %v, %v", rest, err, again)
	}
	if _, err := d.Read(t.Context(), "look", -1); !errors.Is(err, tidemark.ErrInvalid) || err.Error() != "offset -1: want 0 or more: "+tidemark.ErrInvalid.Error() {
		t.Error(err)
	}
	if _, err := d.ReadEpisode(t.Context(), d.log, "nothing", 0); !errors.Is(err, tidemark.ErrNotFound) {
		t.Error(err)
	}
	mend := &episodes.Episode{N: 1, Name: "mend", Type: episodes.Action, From: episodes.Place{Seq: 8}, To: episodes.Place{Seq: 8}}
	if got, err := d.ReadOf(t.Context(), d.log, []*episodes.Episode{mend}, "mend", 0); err != nil || got.Episode != `action "mend"` || !strings.Contains(got.Text, "delimiter") || got.Next != 0 || strings.HasSuffix(got.Text, "\n") {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := d.ReadOf(t.Context(), d.log, nil, "mend", 0); !errors.Is(err, tidemark.ErrNotFound) {
		t.Error(err)
	}
	broken := fmt.Errorf("the disk is gone: %w", tidemark.ErrUnavailable)
	d.Current = func(context.Context) (string, error) { return "", broken }
	if _, err := d.Read(t.Context(), "look", 0); !errors.Is(err, broken) {
		t.Error(err)
	}
	if _, err := d.Overview(t.Context()); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// TestPartOf: of the assistant's blocks those from the first of an episode to its last, and the answers to its calls.
func TestPartOf(t *testing.T) {
	e := episodes.Episode{From: episodes.Place{Seq: 3, Block: 1}, To: episodes.Place{Seq: 7, Block: 2}}
	use := func(id string) tidemark.Block { return tidemark.ToolUse(id, "look", nil) }
	said := tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{use("a"), use("b"), use("c"), use("d")}}
	for seq, want := range map[int64]string{3: "b c d", 5: "a b c d", 7: "a b c"} {
		mine := map[string]bool{}
		part := partOf(e, seq, said, mine)
		var got []string
		for _, b := range part.Content {
			got = append(got, b.ID)
			if !mine[b.ID] {
				t.Errorf("call %s of message %d is no call of it", b.ID, seq)
			}
		}
		if strings.Join(got, " ") != want || len(mine) != len(got) || part.Role != tidemark.Assistant {
			t.Errorf("of message %d: %q, want %q", seq, got, want)
		}
	}
	one := episodes.Episode{From: episodes.Place{Seq: 3, Block: 1}, To: episodes.Place{Seq: 3, Block: 2}}
	if got := partOf(one, 3, said, map[string]bool{}); len(got.Content) != 2 || got.Content[0].ID != "b" || got.Content[1].ID != "c" {
		t.Errorf("within one message: %+v", got.Content)
	}
	answers := tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.Text("b"), tidemark.ToolResult("b", "x", false), tidemark.ToolResult("z", "x", false), {Type: tidemark.TypeDocument, ToolUseID: "b"}}}
	if got := partOf(e, 4, answers, map[string]bool{"b": true}); len(got.Content) != 1 || got.Content[0].ToolUseID != "b" {
		t.Errorf("of the answers: %+v", got.Content)
	}
}

// TestNamesListed: an unknown name is answered with the twelve newest that are near, or else with the twelve newest.
func TestNamesListed(t *testing.T) {
	var list []*episodes.Episode
	for i := 1; i <= 14; i++ {
		list = append(list, &episodes.Episode{N: i, Name: fmt.Sprint("tide", i)}, &episodes.Episode{N: i})
	}
	quoted := func(from, to int) string {
		var out []string
		for i := from; i >= to; i-- {
			out = append(out, fmt.Sprintf(`"tide%d"`, i))
		}
		return strings.Join(out, ", ")
	}
	long := strings.Repeat("z", 120)
	for name, want := range map[string]string{
		"tides": `episode "tides" is not known here. Near to it: ` + quoted(14, 3) + ".",
		"zebra": `episode "zebra" is not known here. The newest: ` + quoted(14, 3) + ".",
		long:    `episode "` + long[:100] + `" is not known here. The newest: ` + quoted(14, 3) + ".",
	} {
		if err := nearNames(list, name); err.Error() != want {
			t.Errorf("%s: %v\nwant %s", name, err, want)
		}
	}
	if err := nearNames(list[:1], "zebra"); err.Error() != `episode "zebra" is not known here. The newest: "tide1".` {
		t.Error(err)
	}
	if err := nearNames(list[1:2], "x"); err.Error() != `episode "x": nothing was marked in this conversation, ask with a query` {
		t.Error(err)
	}
}

// TestToldTimes: episodes are told with when they began and ended, the open one without an end; a log of many is asked for in
// pages.
func TestToldTimes(t *testing.T) {
	d := deskOf(t, hosttest.DB(t), "log")
	for range 3 {
		d.says(tidemark.NewText(tidemark.User, "go on"))
	}
	var ids []tidemark.EntryID
	for e, err := range d.messages(t.Context(), d.log, host.Range{To: host.LogEnd}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, e.ID)
	}
	list := []Told{{N: 1, From: ids[0], To: ids[1], State: Whole}, {N: 2, From: ids[1], To: ids[2], State: Open}, {N: 3, From: "unknown", To: ids[2]}}
	for len(list) < savedPage+1 {
		list = append(list, Told{From: ids[2], To: ids[2], State: Gone})
	}
	if err := d.TellTimes(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	one := []Told{{From: ids[2], To: ids[2]}}
	if err := d.TellTimes(t.Context(), one); err != nil || one[0].Began.IsZero() {
		t.Errorf("of one alone: %+v, %v", one, err)
	}
	at := func(n int) time.Time { return morning.Add(time.Duration(n) * time.Minute) }
	for i, want := range map[int][2]time.Time{0: {at(0), at(1)}, 1: {at(1), {}}, 2: {{}, at(2)}, 3: {at(2), at(2)}, savedPage - 1: {at(2), at(2)}, savedPage: {at(2), at(2)}} {
		if x := list[i]; !x.Began.Equal(want[0]) || !x.Ended.Equal(want[1]) || x.Began.Location() != time.UTC {
			t.Errorf("episode %d: from %s to %s, want %s", i, x.Began, x.Ended, want)
		}
	}
}
