package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/room"
)

// spoken appends messages of 100 tokens named i0, i1, … and returns their positions.
func (s *Session) spoken(t *testing.T, n int) (seqs []int64) {
	t.Helper()
	for _, it := range talk("", n).Items {
		seqs = append(seqs, s.says(t, s.current(t), string(it.ID), it.Message, tidemark.Origin{From: it.Source}, 100))
	}
	return seqs
}

// TestEvictedSample: of what left the view some entries are looked at, spread evenly over it: of blocks and of spans half
// each, where both left.
func TestEvictedSample(t *testing.T) {
	s, _ := plain(t, Config{})
	at := s.spoken(t, 40)
	blocks := func(list ...int) (out []compaction.Placed) {
		for _, i := range list {
			out = append(out, compaction.Placed{From: at[i], To: at[i], Block: 1})
		}
		return out
	}
	span := func(from, to int) compaction.Placed { return compaction.Placed{From: at[from], To: at[to]} }
	twenty := make([]int, 20)
	for i := range twenty {
		twenty[i] = 19 - i
	}
	var ten []compaction.Placed
	for i := range 10 {
		ten = append(ten, span(4*i, 4*i+3))
	}
	for _, c := range []struct {
		name   string
		placed []compaction.Placed
		want   []int // how many in each ten messages
		exact  []int // which
	}{
		{"nothing", nil, nil, []int{}},
		{"an insertion", []compaction.Placed{{From: at[3], To: at[3], Insert: true}}, nil, []int{}},
		{"a block", blocks(5), nil, []int{5}},
		{"two blocks, one of them twice", blocks(7, 3, 7), nil, []int{3, 7}},
		{"twenty blocks", blocks(twenty...), nil, []int{0, 2, 5, 8, 10, 13, 16, 19}},
		{"one span", []compaction.Placed{span(10, 29)}, []int{0, 4, 4, 0}, nil},
		{"a short span", []compaction.Placed{span(10, 12)}, nil, []int{10, 11, 12}},
		{"two spans", []compaction.Placed{span(0, 9), span(20, 29)}, []int{4, 0, 4, 0}, nil},
		{"three spans", []compaction.Placed{span(0, 9), span(10, 19), span(20, 29)}, []int{4, 2, 2, 0}, nil},
		{"more spans than are looked at", ten, []int{4, 0, 0, 0}, nil},
		{"blocks and a span", append(blocks(30, 31, 32, 33, 34, 35, 36), span(0, 9)), []int{4, 0, 0, 4}, nil},
	} {
		got, err := s.evictedSample(t.Context(), s.current(t), c.placed)
		var exact []int
		counts := make([]int, 4)
		for _, seq := range got {
			i := slices.Index(at, seq)
			exact = append(exact, i)
			counts[i/10]++
		}
		if err != nil || c.exact != nil && !slices.Equal(exact, c.exact) || c.want != nil && !slices.Equal(counts, c.want) {
			t.Errorf("%s: %v, by tens %v, %v", c.name, exact, counts, err)
		}
	}
}

// marked is an edit with a marker that stands for so many messages and tokens.
func marked(from, to string, count int, tokens tidemark.Tokens, keep ...tidemark.EntryID) tidemark.Edit {
	return compaction.Marker{From: time.UnixMilli(1), To: time.UnixMilli(2), Count: count, Tokens: tokens, Cycles: 1}.Put(tidemark.Edit{From: tidemark.EntryID(from), To: tidemark.EntryID(to), Keep: keep})
}

// TestMarkersAreHeld: a marker says how many messages its span hides, without those that stay, and no more tokens than it has.
func TestMarkersAreHeld(t *testing.T) {
	for _, c := range []struct {
		name  string
		edit  tidemark.Edit
		empty bool // its messages have no tokens
		want  string
	}{
		{"right", marked("i1", "i4", 4, 400), false, "1:"},
		{"fewer tokens", marked("i1", "i4", 4, 1), false, "1:"},
		{"one stays", marked("i1", "i4", 3, 400, "i2"), false, "1:"},
		{"one message too few", marked("i1", "i4", 3, 400), false, "1: a marker says that it stands for 3 messages and hides 4"},
		{"one message too many", marked("i1", "i4", 4, 400, "i2"), false, "1: a marker says that it stands for 4 messages and hides 3"},
		{"a token too many", marked("i1", "i4", 4, 401), false, "1: a marker says that it stands for 401 tokens, its span has 400"},
		{"no tokens", marked("i1", "i4", 4, 0), false, "1: a marker says that it stands for 0 tokens, its span has 400"},
		{"no tokens of none", marked("i1", "i4", 4, 0), true, "1:"},
		{"no marker", tidemark.Edit{From: "i1", To: "i4"}, false, "0:"},
	} {
		s, _ := plain(t, Config{})
		at := s.spoken(t, 6)
		if c.empty {
			s.does(t, `UPDATE entries SET tokens = 0 WHERE log = ?`, s.current(t))
		}
		p, got := &plan{Log: s.current(t), edits: []tidemark.Edit{{}, c.edit}}, Checked{}
		placed := compaction.Placed{N: 1, From: at[1], To: at[4], Keep: make([]int64, len(c.edit.Keep))}
		err := s.checkMarker(t.Context(), p, placed, &got)
		if said := strings.TrimSpace(fmt.Sprintf("%d: %s", got.Checks, strings.Join(got.Violations, "; "))); err != nil || said != c.want {
			t.Errorf("%s: %s, %v", c.name, said, err)
		}
	}
}

// everDivided is a room that knows of episodes.
type everDivided struct {
	room.Divider
	ever bool
}

func (d everDivided) Ever(context.Context) (bool, error) { return d.ever, nil }

// TestRecount: where episodes were ever known, a marker stands for all that its span hides, what left before included; without
// them it stands for what the plan counted.
func TestRecount(t *testing.T) {
	for _, c := range []struct {
		name  string
		rooms []room.Maker
		want  []int
	}{
		{"none", nil, []int{0, 2, 6, 2}},
		{"never", []room.Maker{func(room.Ports) any { return everDivided{} }}, []int{0, 2, 6, 2}},
		{"ever", []room.Maker{func(room.Ports) any { return everDivided{ever: true} }}, []int{0, 4, 6, 3}},
	} {
		s, _ := plain(t, Config{Rooms: c.rooms})
		s.spoken(t, 14)
		edits := []tidemark.Edit{{From: "i0", To: "i0"}, marked("i1", "i4", 2, 100), marked("i5", "i8", 6, 100), marked("i9", "i12", 2, 100, "i10")}
		if err := s.recount(t.Context(), s.current(t), edits); err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, e := range edits {
			m, _ := compaction.MarkerOf(e)
			got = append(got, m.Count)
		}
		if text := edits[1].Messages[0].PlainText(); !slices.Equal(got, c.want) || !strings.Contains(text, fmt.Sprintf("%d messages", c.want[1])) || len(edits[0].Messages) > 0 {
			t.Errorf("%s: %v, %q", c.name, got, text)
		}
	}
}

// TestCheckLargeBlocks: what stands in a row of the database, or whole in the message, is not looked for in the bucket.
func TestCheckLargeBlocks(t *testing.T) {
	s, _ := plain(t, Config{Settings: Settings{Window: 1 << 20}})
	m := tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult("c1", strings.Repeat("walnut planks, ", 4000), false), tidemark.Text("small"), tidemark.Text(strings.Repeat("boathouse ", 70_000))}}
	seq := s.says(t, s.current(t), "e1", m, tidemark.Origin{From: tidemark.FromTool}, 1)
	entries, err := s.log.Payloads(t.Context(), []int64{seq})
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	stored, err := entries[0].Message()
	if err != nil || !strings.Contains(string(entries[0].Payload), `"row"`) {
		t.Fatalf("nothing of it stands in a row: %.300s, %v", entries[0].Payload, err)
	}
	var c Checked
	if err := s.checkLarge(t.Context(), entries[0], stored, &c); err != nil || len(c.Violations) > 0 {
		t.Errorf("%q, %v", c.Violations, err)
	}
	if err := s.checkEntry(t.Context(), entries[0], &c); err != nil || len(c.Violations) > 0 || c.Checks != 1 {
		t.Errorf("%d checks, %q, %v", c.Checks, c.Violations, err)
	}
	forged := tidemark.NewText(tidemark.User, "x")
	forged.Content = blocksOf(t, `{"type":"text","text":"x","tidemark_blob":{"sha256":"`+strings.Repeat("ab", 32)+`","bytes":400}}`)
	chain := tidemark.Chain(entries[0].Chain, forged)
	e := tidemark.Entry{ID: "e2", Log: s.current(t), Seq: seq + 1, Chain: chain}
	for _, later := range []string{"e3", "e4"} {
		s.says(t, s.current(t), later, tidemark.NewText(tidemark.User, later), tidemark.Origin{}, 1)
	}
	if v, err := s.View(t.Context()); err != nil || len(v.Items) != 3 || len(v.Items[0].Message.AppendJSON(nil)) < 700_000 {
		t.Errorf("the view has %d messages, %v", len(v.Items), err)
	}
	if err := s.allThere(t.Context(), e, forged); err != nil {
		t.Errorf("somebody said a block that looks like a reference: %v", err)
	}
	e.Chain = "other"
	if err := s.allThere(t.Context(), e, forged); !errors.Is(err, tidemark.ErrNotFound) || !strings.Contains(err.Error(), "block 1 of it") {
		t.Errorf("a block that is gone: %v", err)
	}
	first := tidemark.Entry{ID: "e0", Log: s.current(t), Seq: 1, Chain: tidemark.Chain("", forged)}
	if err := s.allThere(t.Context(), first, forged); err != nil {
		t.Errorf("the first entry of a database: %v", err)
	}
}

// TestUnsoundActs: an act that was taken back is not made again for a quarter of an hour, in its own conversation; what it was
// found out by is kept for a doctor, the newest hundred of a conversation.
func TestUnsoundActs(t *testing.T) {
	s, rt := plain(t, Config{})
	r := s.begun(t, "r", stateCalling)
	edits := []tidemark.Edit{{From: "i0", To: "i3"}}
	act := compaction.Act{Edits: []tidemark.Edit{{From: "i0", To: "i3", Keep: []tidemark.EntryID{"i1"}, Messages: []tidemark.Message{{}}}}}
	for _, other := range [][]tidemark.Edit{{{From: "i1", To: "i3"}}, {{From: "i0", To: "i2"}}, {{From: "i0", To: "i3", Block: 1}}, {edits[0], edits[0]}, nil} {
		if actHash(other) == actHash(edits) || len(actHash(other)) != 16 {
			t.Errorf("another act is named %s as well", actHash(other))
		}
	}
	p := &plan{Log: r.Log, Size: 77, overlay: "over", edits: edits}
	if err := s.wasUnsound(t.Context(), act); err != nil {
		t.Errorf("nothing was taken back yet: %v", err)
	}
	s.does(t, `WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i < 100) INSERT INTO unsound(key, overlay, at, act, text) SELECT ?, 'o'||i, i, 'x', 'old' FROM c`, string(s.Key))
	s.does(t, `INSERT INTO unsound(key, overlay, at, act, text) VALUES('agent:main:twin', 'twins', 9000000000000, ?, 'of a twin')`, actHash(edits))
	if err := s.wasUnsound(t.Context(), act); err != nil {
		t.Errorf("another conversation took it back: %v", err)
	}
	s.does(t, `UPDATE heads SET prompt = 'frozen' WHERE key = ?`, string(s.Key))
	found := Checked{Overlay: "over", Checks: 3, Violations: []string{"a", "b"}}
	if err := s.liftUnsound(t.Context(), r, p, found); err != nil {
		t.Fatal(err)
	}
	if got := s.reads(t, `SELECT prompt, context, cooldown FROM heads WHERE key = ? LIMIT 1`, string(s.Key)); got != " 77 1700000060000" {
		t.Errorf("its row is %q", got)
	}
	if got := s.reads(t, `SELECT payload FROM entries WHERE log = ? AND kind = 'overlay' LIMIT 9`, r.Log); got != `{"by":["session"],"lifts":["over"],"reason":"selfcheck"}` {
		t.Errorf("the overlay is %s", got)
	}
	if got := s.notices(t); got != "The compaction was taken back: what it evicted could not be had again in full. a; b. Everything is in view as before." {
		t.Errorf("told %q", got)
	}
	if got := s.reads(t, `SELECT count(*), min(overlay = 'o1'), max(overlay = 'o2'), max(overlay = 'over') FROM unsound WHERE key = ? LIMIT 1`, string(s.Key)); got != "100 0 1 1" {
		t.Errorf("kept are %s", got)
	}
	list, err := Unsounds(t.Context(), s.DB, 2)
	if err != nil || len(list) != 2 || list[0] != (Unsound{Key: s.Key, Overlay: "over", At: time.UnixMilli(1_700_000_000_000), Text: "a; b"}) || list[1].Text != "of a twin" {
		t.Errorf("a doctor reads %+v, %v", list, err)
	}
	for _, c := range []struct {
		pass time.Duration
		name string
		act  compaction.Act
		held bool
	}{{0, "the same", act, true}, {0, "another", compaction.Act{Edits: act.Edits[:0]}, false}, {15*time.Minute - time.Millisecond, "just before its time", act, true}, {time.Millisecond, "at its time", act, false}} {
		rt.now = rt.now.Add(c.pass)
		if err := s.wasUnsound(t.Context(), c.act); (err != nil) != c.held || err != nil && (!errors.Is(err, tidemark.ErrNoGain) || !strings.Contains(err.Error(), "(a; b)")) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	r.State = stateDone
	if err := s.liftUnsound(t.Context(), r, p, found); !errors.Is(err, tidemark.ErrConflict) {
		t.Errorf("behind a command, while another run is in work: %v", err)
	}
	s.does(t, `UPDATE runs SET state = 'done' WHERE key = ?`, string(s.Key))
	if err := s.liftUnsound(t.Context(), r, p, found); err != nil {
		t.Errorf("behind a command: %v", err)
	}
}

// TestNotThere: a database without a table has nothing of it, and no error, whatever else has its name.
func TestNotThere(t *testing.T) {
	db := hosttest.DB(t)
	if err := db.Tx(t.Context(), []tidemark.Stmt{{SQL: `CREATE TABLE other(a TEXT)`}, {SQL: `CREATE INDEX heads ON other(a)`}, {SQL: `CREATE INDEX unsound ON other(a)`}}); err != nil {
		t.Fatal(err)
	}
	if there, err := Exists(t.Context(), db, "agent:main:main"); there || err != nil {
		t.Errorf("a conversation is there: %v, %v", there, err)
	}
	if list, err := Unsounds(t.Context(), db, 5); len(list) > 0 || err != nil {
		t.Errorf("taken back were %+v, %v", list, err)
	}
}

// TestCheckedSound: what a check found is told to who counts; without an overlay nothing is checked.
func TestCheckedSound(t *testing.T) {
	var told []Notice
	s, _ := plain(t, Config{Observe: func(n Notice) { told = append(told, n) }})
	r := s.begun(t, "r", stateCalling)
	s.spoken(t, 6)
	v, err := s.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := &plan{Log: r.Log, edits: []tidemark.Edit{marked("i0", "i3", 4, 400)}}
	if _, err := s.checked(t.Context(), r, p, v); err != nil || len(told) > 0 {
		t.Errorf("no overlay: %v, told %+v", err, told)
	}
	p.overlay = "over"
	if _, err := s.checked(t.Context(), r, p, v); err != nil || len(told) != 1 || told[0].Type != NoticeChecked || told[0].Run != "r" || told[0].Checked.Overlay != "over" || told[0].Checked.Checks != 6 || len(told[0].Checked.Violations) > 0 {
		t.Errorf("sound: %v, told %+v", err, told)
	}
	told, p.edits = nil, []tidemark.Edit{marked("i0", "i3", 5, 400)}
	if _, err := s.checked(t.Context(), r, p, v); err != nil || p.overlay != "" || len(told) < 1 || len(told[0].Checked.Violations) != 1 || !strings.Contains(s.notices(t), "taken back") {
		t.Errorf("not sound: %v, told %+v", err, told)
	}
}
