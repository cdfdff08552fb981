package selfcheck

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
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room"
)

// clock is a runtime whose time a test sets.
type clock struct {
	tidemark.Runtime
	now time.Time
}

func (c *clock) Now() time.Time { return c.now }

// rig is a room over a log with messages of 100 tokens, i0, i1, …, at the positions at; bucket is how large its blocks are there,
// and fails why that is not known.
type rig struct {
	*Room
	t      *testing.T
	clock  *clock
	at     []int64
	bucket map[string]int64
	fails  error
}

const logID = "log"

func newRig(t *testing.T, messages int) *rig {
	t.Helper()
	db := hosttest.DB(t)
	log, err := host.OpenLog(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, clock: &clock{hosttest.Runtime(t), time.UnixMilli(1_700_000_000_000).UTC()}, bucket: map[string]int64{}}
	p := room.Ports{Self: room.Self{Key: "agent:main:main", DB: db, Made: &room.Made{DB: db}, Runtime: r.clock}, History: room.History{Log: log}}
	p.Checks = room.Checks{
		Message: func(_ context.Context, e tidemark.Entry) (tidemark.Message, error) { return e.Message() },
		Reads:   func(context.Context, tidemark.EntryID) error { return nil },
		InBucket: func(_ context.Context, sum string) (int64, error) {
			if size, ok := r.bucket[sum]; ok || r.fails != nil {
				return size, r.fails
			}
			return 0, tidemark.ErrNotFound
		},
		Indexed: func(context.Context, tidemark.Entry, tidemark.Message) (checks, repaired int, fault string, err error) {
			return 0, 0, "", nil
		},
	}
	r.Room = Make(p).(*Room)
	for _, id := range []string{logID, "other"} {
		if err := db.Tx(t.Context(), []tidemark.Stmt{log.CreateStmt(host.Info{ID: id, Key: "agent:main:main", Created: r.clock.now})}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range messages {
		r.says(fmt.Sprint("i", i), tidemark.NewText(tidemark.User, fmt.Sprint("message ", i)))
	}
	return r
}

// says logs a message.
func (r *rig) says(id string, m tidemark.Message) tidemark.Entry {
	r.t.Helper()
	e := tidemark.Entry{ID: tidemark.EntryID(id), Kind: tidemark.KindMessage, At: r.clock.now, Tokens: 100, Payload: m.AppendJSON(nil), Chain: tidemark.Chain("", m)}
	stmts, err := r.log.AppendStmts(logID, e)
	if err == nil {
		err = r.DB.Tx(r.t.Context(), stmts)
	}
	if err == nil {
		e, err = r.log.Entry(r.t.Context(), e.ID)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.at = append(r.at, e.Seq)
	return e
}

// TestEvictedSample: of what left the view some entries are looked at, spread evenly over it: of blocks and of spans half
// each, where both left.
func TestEvictedSample(t *testing.T) {
	r := newRig(t, 40)
	at := r.at
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
		got, err := r.evictedSample(t.Context(), logID, c.placed)
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
		r := newRig(t, 6)
		if c.empty {
			hosttest.Exec(t, r.DB, `UPDATE entries SET tokens = 0 WHERE log = ?`, logID)
		}
		var got room.Checked
		placed := compaction.Placed{N: 1, From: r.at[1], To: r.at[4], Keep: make([]int64, len(c.edit.Keep))}
		err := r.checkMarker(t.Context(), room.Acted{Log: logID, Edits: []tidemark.Edit{{}, c.edit}}, placed, &got)
		if said := strings.TrimSpace(fmt.Sprintf("%d: %s", got.Checks, strings.Join(got.Violations, "; "))); err != nil || said != c.want {
			t.Errorf("%s: %s, %v", c.name, said, err)
		}
	}
}

// TestCheckLargeBlocks: what stands in a row of the database, or whole in the message, is not looked for in the bucket; of what is
// there the size tells.
func TestCheckLargeBlocks(t *testing.T) {
	ref := func(sum string, bytes int, row bool) string {
		in := map[bool]string{true: `,"in":"row"`}[row]
		return fmt.Sprintf(`{"type":"text","text":"x","tidemark_blob":{"sha256":%q,"bytes":%d%s}}`, strings.Repeat(sum, 32), bytes, in)
	}
	lost := errors.New("no answer")
	for _, c := range []struct {
		name   string
		blocks []string
		bucket map[string]int64
		fails  error
		want   string // of the violations
		err    error
	}{
		{"in a row", []string{ref("aa", 600<<10, true)}, nil, nil, "", nil},
		{"there", []string{ref("aa", 600<<10, false), `{"type":"text","text":"small"}`}, map[string]int64{"aa": 600 << 10}, nil, "", nil},
		{"gone", []string{ref("aa", 600<<10, false)}, nil, nil, "cannot be read", nil},
		{"another", []string{ref("aa", 600<<10, false)}, map[string]int64{"aa": 5}, nil, "has 5 bytes of 614400", nil},
		{"no answer", []string{ref("aa", 600<<10, false)}, nil, lost, "", lost},
	} {
		r := newRig(t, 0)
		for sum, size := range c.bucket {
			r.bucket[strings.Repeat(sum, 32)] = size
		}
		r.fails = c.fails
		var m tidemark.Message
		if err := json.Unmarshal([]byte(`{"role":"user","content":[`+strings.Join(c.blocks, ",")+`]}`), &m); err != nil {
			t.Fatal(err)
		}
		var got room.Checked
		err := r.checkEntry(t.Context(), r.says("e", m), &got)
		if said := strings.Join(got.Violations, "; "); !errors.Is(err, c.err) || !strings.Contains(said, c.want) || (said == "") != (c.want == "") {
			t.Errorf("%s: %q, %v", c.name, said, err)
		}
	}
}

// TestAllThere: a block that is a reference still is gone, unless somebody said one that looks like it, which the chain of the log
// tells.
func TestAllThere(t *testing.T) {
	r := newRig(t, 0)
	var forged tidemark.Message
	if err := json.Unmarshal([]byte(`{"role":"user","content":[{"type":"text","text":"x","tidemark_blob":{"sha256":"`+strings.Repeat("ab", 32)+`","bytes":400}}]}`), &forged); err != nil {
		t.Fatal(err)
	}
	before := r.says("e1", tidemark.NewText(tidemark.User, "hi"))
	e := tidemark.Entry{ID: "e2", Log: logID, Seq: before.Seq + 1, Chain: tidemark.Chain(before.Chain, forged)}
	if err := r.allThere(t.Context(), e, forged); err != nil {
		t.Errorf("somebody said a block that looks like a reference: %v", err)
	}
	e.Chain = "other"
	if err := r.allThere(t.Context(), e, forged); !errors.Is(err, tidemark.ErrNotFound) || !strings.Contains(err.Error(), "block 1 of it") {
		t.Errorf("a block that is gone: %v", err)
	}
	first := tidemark.Entry{ID: "e0", Log: logID, Seq: 1, Chain: tidemark.Chain("", forged)}
	if err := r.allThere(t.Context(), first, forged); err != nil {
		t.Errorf("the first entry of a database: %v", err)
	}
}

// TestLifted: an act that was lifted is not made again for a quarter of an hour, in its own conversation; what it was found out by
// is kept for a doctor, the newest hundred of a conversation.
func TestLifted(t *testing.T) {
	r := newRig(t, 0)
	edits := []tidemark.Edit{{From: "i0", To: "i3"}}
	same := []tidemark.Edit{{From: "i0", To: "i3", Keep: []tidemark.EntryID{"i1"}, Messages: []tidemark.Message{{}}}}
	for _, other := range [][]tidemark.Edit{{{From: "i1", To: "i3"}}, {{From: "i0", To: "i2"}}, {{From: "i0", To: "i3", Block: 1}}, {edits[0], edits[0]}, nil} {
		if actHash(other) == actHash(edits) || len(actHash(other)) != 16 {
			t.Errorf("another act is named %s as well", actHash(other))
		}
	}
	lifted := func(edits []tidemark.Edit) string {
		t.Helper()
		why, err := r.Lifted(t.Context(), edits)
		if err != nil {
			t.Fatal(err)
		}
		return why
	}
	if got := lifted(same); got != "" {
		t.Errorf("nothing was lifted yet: %q", got)
	}
	if list, err := Unsounds(t.Context(), r.DB, 5); len(list) > 0 || err != nil {
		t.Errorf("a doctor reads %+v, %v", list, err)
	}
	if err := tables.Open(t.Context(), r.DB); err != nil {
		t.Fatal(err)
	}
	hosttest.Exec(t, r.DB, `WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i < 100) INSERT INTO unsound(key, overlay, at, act, text) SELECT ?, 'o'||i, i, 'x', 'old' FROM c`, string(r.Key))
	hosttest.Exec(t, r.DB, `INSERT INTO unsound(key, overlay, at, act, text) VALUES('agent:main:twin', 'twins', 9000000000000, ?, 'of a twin')`, actHash(edits))
	stmts, err := r.LiftedStmts(t.Context(), room.Acted{Log: logID, Overlay: "over", Edits: edits}, room.Checked{Violations: []string{"a", "b"}})
	if err == nil {
		err = r.DB.Tx(t.Context(), stmts)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := hosttest.Lines(t, r.DB, `SELECT count(*) || ' ' || min(overlay = 'o1') || max(overlay = 'o2') || max(overlay = 'over') FROM unsound WHERE key = ? LIMIT 1`, string(r.Key)); strings.TrimSpace(got) != "100 011" {
		t.Errorf("kept are %s", got)
	}
	list, err := Unsounds(t.Context(), r.DB, 2)
	if err != nil || len(list) != 2 || list[0] != (Unsound{Key: r.Key, Overlay: "over", At: time.UnixMilli(1_700_000_000_000), Text: "a; b"}) || list[1].Text != "of a twin" {
		t.Errorf("a doctor reads %+v, %v", list, err)
	}
	for _, c := range []struct {
		pass  time.Duration
		name  string
		edits []tidemark.Edit
		want  string
	}{{0, "the same", same, "a; b"}, {0, "another", same[:0], ""}, {15*time.Minute - time.Millisecond, "just before its time", same, "a; b"}, {time.Millisecond, "at its time", same, ""}} {
		r.clock.now = r.clock.now.Add(c.pass)
		if got := lifted(c.edits); got != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}
