package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cleanup"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/lineage"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/summary"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// tidying is a room that carries out what a model asks for, as a test says.
type tidying struct {
	done compaction.Tidied
	not  bool
}

func (t *tidying) Cooperates() bool { return true }

func (t *tidying) Tidy(compaction.View, []cleanup.Op) (compaction.Tidied, bool) {
	return t.done, !t.not
}

func (t *tidying) Pinned(context.Context, string) (map[tidemark.EntryID]bool, error) { return nil, nil }

func (t *tidying) PinStmts(_ context.Context, _ string, ids []tidemark.EntryID) ([]tidemark.Stmt, error) {
	return []tidemark.Stmt{{SQL: `UPDATE heads SET title = ? WHERE key = 'agent:main:main'`, Args: []any{fmt.Sprint(ids)}}}, nil
}

// tidyCase is what a model asks for, and what comes of it.
type tidyCase struct {
	name     string
	edits    []tidemark.Edit
	pruned   int
	origin   tidemark.Origin
	down     bool // the bucket
	plan     bool // a compaction is under way
	noMemory bool

	overlay int    // edits of it
	freed   bool   // the context is smaller
	parts   string // of the archive
	due     string // kinds
	title   string // what is pinned
	untidy  string // what the model is told
}

// TestTidied: what a model asked for in a reply is written with it: an overlay, the context that it frees, what it pins, and an
// event; whole turns are archived before, and their memories are due. What cannot be done is refused, and said to it.
func TestTidied(t *testing.T) {
	block := tidemark.Edit{From: "i0", Block: 1, Blocks: []tidemark.Block{tidemark.Text("short")}}
	turn := tidemark.Edit{From: "i2", To: "i3"}
	for _, c := range []tidyCase{
		{name: "a block", edits: []tidemark.Edit{block}, overlay: 1, freed: true, title: "[i4]"},
		{name: "nothing but a pin", title: "[i4]"},
		{name: "a turn", edits: []tidemark.Edit{block, turn}, pruned: 2, overlay: 2, freed: true, parts: "8", due: "evicted: outbox", title: "[i4]"},
		{name: "a turn, without memories", edits: []tidemark.Edit{turn}, pruned: 2, noMemory: true, overlay: 1, freed: true, parts: "8", due: "outbox", title: "[i4]"},
		{name: "a turn, and the bucket is down", edits: []tidemark.Edit{block, turn}, pruned: 2, down: true, overlay: 1, freed: true, title: "[i4]", untidy: "what leaves could not be archived"},
		{name: "a turn, beside a compaction", edits: []tidemark.Edit{block, turn}, pruned: 2, plan: true, overlay: 1, freed: true, title: "[i4]", untidy: "a compaction is under way"},
		{name: "a block, beside a compaction", edits: []tidemark.Edit{block}, plan: true, overlay: 1, freed: true, title: "[i4]"},
		{name: "by a stranger", edits: []tidemark.Edit{block, turn}, pruned: 2, origin: tidemark.Origin{From: tidemark.FromPerson}, title: "[]", untidy: "may not change this conversation"},
		{name: "what the log cannot show", edits: []tidemark.Edit{{From: "gone", Block: 1}}, title: "[]", untidy: "the context could not be sent so"},
	} {
		blobs := tidemarktest.NewBlobs()
		if c.down {
			blobs.Fail = func(string, string) error { return tidemark.ErrUnavailable }
		}
		fake := &tidying{done: compaction.Tidied{Edits: c.edits, Pins: []tidemark.EntryID{"i4"}, Pruned: c.pruned, Done: []compaction.Tidy{{Op: cleanup.Op{Verb: cleanup.Drop, Handle: "i0#0"}}, {Op: cleanup.Op{Verb: cleanup.Collapse, From: 2, To: 2}}}}}
		s, rt := plain(t, Config{Blobs: blobs, Settings: Settings{Window: 100_000, NoMemories: c.noMemory}, Rooms: []room.Maker{func(room.Ports) any { return fake }}})
		r := s.begun(t, "r", stateCalling)
		at := s.spoken(t, 6)
		if c.pruned > 0 {
			fake.done.Last = at[3]
		}
		s.does(t, `UPDATE heads SET context = 10000 WHERE key = ?`, string(s.Key))
		if c.plan {
			p := &plan{Draft: summary.Draft{ID: "p", Log: r.Log}, At: rt.now, Act: spanOf(0, 1)}
			if err := s.DB.Tx(t.Context(), []tidemark.Stmt{p.insertStmt(s.Key)}); err != nil {
				t.Fatal(err)
			}
		}
		v, err := s.View(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r.origins = []tidemark.Origin{{From: tidemark.FromPerson, Owner: true}, c.origin}
		r.asked = compaction.Wishes{Ops: make([]cleanup.Op, 2), Blocks: []int{0}, Texts: []string{"tags"}}
		stmts, event, err := s.tidyStmts(t.Context(), r, v, "reply")
		if err == nil {
			err = s.DB.Tx(t.Context(), stmts)
		}
		if err != nil || event == nil || event.Type != cleanupEvent || !strings.Contains(string(event.Data), `"entry":"reply"`) || !strings.Contains(string(event.Data), `"texts":["tags"]`) {
			t.Fatalf("%s: %+v, %v", c.name, event, err)
		}
		marks, err := s.log.MarksAfter(t.Context(), r.Log, 0)
		edits := 0
		for _, m := range marks {
			edits += len(m.Overlay.Edits)
		}
		if err != nil || edits != c.overlay || len(marks) > 0 && !strings.Contains(string(event.Data), string(marks[0].ID)) {
			t.Errorf("%s: %d edits in %d overlays, %v", c.name, edits, len(marks), err)
		}
		freed := tidemark.Tokens(0)
		if len(marks) > 0 {
			if o := marks[0].Overlay; o.Before != v.Size || o.After >= o.Before {
				t.Errorf("%s: before it %d, after it %d of %d", c.name, o.Before, o.After, v.Size)
			} else {
				freed = o.Before - o.After
			}
		}
		if n := s.reads(t, `SELECT 10000 - context FROM heads WHERE key = ? LIMIT 1`, string(s.Key)); n != fmt.Sprint(int64(freed)) || c.name == "a block" && freed != 100-tidemark.Estimate(tidemark.Message{Role: tidemark.User, Content: block.Blocks}) {
			t.Errorf("%s: the context is smaller by %s, the view by %d", c.name, n, freed)
		}
		row := s.reads(t, `SELECT title, context < 10000 FROM heads WHERE key = ? LIMIT 1`, string(s.Key))
		if want := fmt.Sprint(c.title, " ", map[bool]int{true: 1}[c.freed]); row != want {
			t.Errorf("%s: its row is %q, want %q", c.name, row, want)
		}
		if got := s.reads(t, `SELECT last FROM parts WHERE log = ? AND info <> '' LIMIT 9`, r.Log); got != c.parts {
			t.Errorf("%s: archived up to %q, the last is at %d", c.name, got, at[3])
		}
		due := s.reads(t, `SELECT substr(kind, 1, instr(kind || ':', ':')) FROM due WHERE key = ? ORDER BY kind LIMIT 9`, string(s.Key))
		if strings.ReplaceAll(due, ",", "") != c.due {
			t.Errorf("%s: due is %q", c.name, due)
		}
		if (r.untidy == "") != (c.untidy == "") || !strings.Contains(r.untidy, c.untidy) {
			t.Errorf("%s: it is told %q", c.name, r.untidy)
		}
	}
}

// TestTidiedNothing: a reply in which nothing is asked for, or of which nothing is made, is a reply and no more.
func TestTidiedNothing(t *testing.T) {
	fake := &tidying{not: true}
	s, _ := plain(t, Config{Rooms: []room.Maker{func(room.Ports) any { return fake }}})
	roomless, _ := plain(t, Config{})
	if stmts, event, err := roomless.tidyStmts(t.Context(), &run{asked: compaction.Wishes{Blocks: []int{0}}}, View{}, "reply"); stmts != nil || event != nil || err != nil {
		t.Errorf("nobody tidies: %d statements, %+v, %v", len(stmts), event, err)
	}
	for i, r := range []*run{{}, {asked: compaction.Wishes{Blocks: []int{0}}}} {
		fake.not = i > 0
		if stmts, event, err := s.tidyStmts(t.Context(), r, weighing(s.current(t), 0, 0, 0), "reply"); stmts != nil || event != nil || err != nil {
			t.Errorf("nothing was asked for: %d statements, %+v, %v", len(stmts), event, err)
		}
	}
}

// TestTagsOfAReply: of a reply readers see what is no tag, as it comes, and what was held back at its end; where nobody
// cooperates tags are text.
func TestTagsOfAReply(t *testing.T) {
	const reply = "Well.\n<memory_cleanup>\ndrop: block:A#0\n</memory_cleanup>\nDone.\n<mem"
	for _, on := range []bool{false, true} {
		text := tags{on: on}
		seen := ""
		for i := range reply {
			seen += text.push(reply[i : i+1])
		}
		if text.said.String() != seen {
			t.Errorf("on %v: %q is said, %q is seen", on, text.said.String(), seen)
		}
		if seen += text.end(); strings.Contains(seen, "block:A#0") == on || !strings.HasPrefix(seen, "Well.") || !strings.HasSuffix(seen, "<mem") || !on && seen != reply {
			t.Errorf("on %v: %q is seen", on, seen)
		}
	}
}

// TestTracksAreRows: each track has the messages of its whole history, and its own usage; the row of the conversation has what the main one
// says and what all of them cost, and is as new as the newest. A title that a person gave stays.
func TestTracksAreRows(t *testing.T) {
	const root = tidemark.Key("agent:main:proxy:dm:0123456789abcdef0123456789abcdef")
	s, _ := plain(t, Config{Key: root})
	first := s.current(t)
	a := s.says(t, first, "a", tidemark.NewText(tidemark.User, "a"), tidemark.Origin{}, 1)
	s.says(t, first, "b", tidemark.NewText(tidemark.User, "b"), tidemark.Origin{}, 1)
	if _, list, err := lineage.Shown(t.Context(), s.DB, s.Key); err != nil || len(list) != 1 || !list[0].Main {
		t.Errorf("alone it is %+v, %v", list, err)
	}
	for i, key := range []tidemark.Key{root + "#t2", root + "#t10", root + "#empty", root[:len(root)-1] + "0"} {
		log := fmt.Sprint("log", i)
		s.does(t, `INSERT INTO logs(id, key, base_log, base_seq, created) VALUES(?, ?, ?, ?, 1)`, log, string(key), map[bool]string{true: first}[i < 2], map[bool]int64{true: a}[i < 2])
		s.does(t, `INSERT INTO heads(key, log, title, created, active, context, usage) VALUES(?, ?, ?, 1, ?, ?, '{"input_tokens":10,"output_tokens":1}')`, string(key), log, log, 2_000_000_000_000+int64(i), 100+i)
		for n := range []int{3, 1, 0, 9}[i] {
			s.says(t, log, fmt.Sprint(log, n), tidemark.NewText(tidemark.User, "x"), tidemark.Origin{}, 1)
		}
		_, event, err := s.kindStmts(log, tidemark.KindEvent, tidemark.FromSystem, tidemark.Event{Type: "notice"})
		if err == nil {
			err = s.DB.Tx(t.Context(), event)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s.does(t, `UPDATE heads SET title = 'first', usage = '{"input_tokens":5,"output_tokens":2}' WHERE key = ?`, string(root))
	shown, list, err := lineage.Shown(t.Context(), s.DB, s.Key)
	got := ""
	for _, x := range list {
		got += fmt.Sprintf("%s=%d %s %d %v, ", x.Key[len(root):], x.Messages, x.Title, x.Tokens, x.Main)
	}
	if want := "#t1=2 first 0 false, #t2=4 log0 100 true, #t10=2 log1 101 false, "; err != nil || shown != root+"#t2" || got != want {
		t.Errorf("shown is %s of %q, %v", shown, got, err)
	}
	info, err := s.Info(t.Context())
	if err != nil || info.Key != root || info.ID != "log0" || info.Title != "log0" || info.Messages != 4 || info.ContextTokens != 100 || info.Usage != (tidemark.Usage{Input: 25, Output: 4}) || info.UpdatedAt.UnixMilli() != 2_000_000_000_001 {
		t.Errorf("the row is %+v, %v", info, err)
	}
	of := list[2].Of(info)
	if of.Key != root+"#t10" || of.ID != "log1" || of.Title != "log1" || of.Messages != 2 || of.ContextTokens != 101 || of.Usage != (tidemark.Usage{Input: 10, Output: 1}) || of.UpdatedAt.UnixMilli() != 2_000_000_000_001 {
		t.Errorf("of a track it is %+v", of)
	}
	if err := s.Configure(t.Context(), Override{Title: "Mine"}); err != nil {
		t.Fatal(err)
	}
	if info, err := s.Info(t.Context()); err != nil || info.Title != "Mine" {
		t.Errorf("a title that was given: %q, %v", info.Title, err)
	}
	conf := s.Config
	conf.Key = root + "#t2"
	side, err := Open(t.Context(), conf)
	if err != nil {
		t.Fatal(err)
	}
	if shown, list, err := lineage.Shown(t.Context(), side.DB, side.Key); shown != root+"#t2" || len(list) != 3 || err != nil {
		t.Errorf("a track shows %s of %d, %v", shown, len(list), err)
	}
	if info, err := side.Info(t.Context()); err != nil || info.Title != "log0" || info.Usage.Input != 10 {
		t.Errorf("the row of a track is %+v, %v", info, err)
	}
	s.does(t, `UPDATE heads SET usage = '{' WHERE key = ?`, string(root+"#t2"))
	if _, err := lineage.Tracks(t.Context(), s.DB, root); err == nil || !strings.Contains(err.Error(), "#t2: usage") || errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("a track that cannot be read: %v", err)
	}
}

// TestUnskippedPages: whether turns were skipped is asked for page by page, from the first message of a page to its last; what
// stands for others is never left out.
func TestUnskippedPages(t *testing.T) {
	l := &leaving{}
	s, _ := plain(t, Config{Rooms: []room.Maker{func(room.Ports) any { return l }}})
	for n, pages := range map[int]string{0: "", 1: "1-1", 500: "1-500", 501: "1-500 501-501", 1001: "1-500 501-1000 1001-1001"} {
		l.asked = nil
		items := talk("", n).Items
		if n > 6 {
			items[6].Overlay = "o" // position 7
		}
		left := s.unskipped(t.Context(), items)
		if got := strings.Join(l.asked, " "); got != pages || n > 6 && len(left) != n-n/7+1 || n <= 6 && len(left) != n {
			t.Errorf("of %d: asked for %s, %d are left", n, got, len(left))
		}
	}
	l.fails = errKnown
	if left := s.unskipped(t.Context(), talk("", 20).Items); len(left) != 20 {
		t.Errorf("what cannot be read leaves %d", len(left))
	}
}

// leaving is a room that leaves out each seventh message.
type leaving struct {
	room.Leaver
	asked []string
	fails error
}

func (l *leaving) Skipped(_ context.Context, first, last int64) (map[int64]bool, error) {
	l.asked = append(l.asked, fmt.Sprintf("%d-%d", first, last))
	if l.fails != nil {
		return nil, l.fails
	}
	out := map[int64]bool{}
	for seq := first; seq <= last; seq++ {
		out[seq] = seq%7 == 0
	}
	return out, nil
}
