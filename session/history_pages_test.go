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
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/summary"
)

// ofEntries are the positions of entries.
func ofEntries(list []tidemark.Entry) string {
	out := make([]string, len(list))
	for i, e := range list {
		out[i] = fmt.Sprint(e.Seq)
	}
	return strings.Join(out, " ")
}

// TestEntriesPages: the entries of a session and what was done to it are read in pages, the newest first, without those of
// others; nothing stands before the first, and a branch has what was done to what it continues before it began.
func TestEntriesPages(t *testing.T) {
	r := newRig(t, Settings{})
	main := r.current()
	first := r.person("one").Seq                                                                                       // 1
	r.logs(r.opened("agent:main:aunt", Settings{}), tidemark.Origin{}, tidemark.NewText(tidemark.User, "of the aunt")) // 2
	r.runs(r.eventStmt(main, tidemark.Event{Type: "notice"}))                                                          // 3
	r.person("two")                                                                                                    // 4
	r.overlaid(tidemark.Overlay{By: []string{"x"}})                                                                    // 5
	r.runs(r.eventStmt(main, tidemark.Event{Type: "notice"}))                                                          // 6
	if first != 1 {
		t.Fatalf("the first stands at %d", first)
	}
	for _, row := range []struct {
		before  int64
		limit   int
		entries string
		acts    string
	}{
		{0, 9, "6 5 4 3 1", "6 5 3"}, {-1, 9, "6 5 4 3 1", "6 5 3"}, {0, 2, "6 5", "6 5"}, {6, 9, "5 4 3 1", "5 3"}, {5, 9, "4 3 1", "3"}, {5, 1, "4", "3"},
		{3, 9, "1", ""}, {2, 9, "1", ""}, {1, 9, "", ""},
	} {
		entries, err := r.Entries(t.Context(), row.before, row.limit)
		acts, bad := r.Acts(t.Context(), row.before, row.limit)
		if err != nil || bad != nil || ofEntries(entries) != row.entries || ofEntries(acts) != row.acts {
			t.Errorf("%d before %d: %q, acts %q, %v, %v", row.limit, row.before, ofEntries(entries), ofEntries(acts), err, bad)
		}
	}
	if acts, err := r.Acts(t.Context(), 5, 0); err != nil || len(acts) != 0 {
		t.Errorf("none are wanted, and %q come, %v", ofEntries(acts), err)
	}
	// A branch begins at the overlay, and has an act of its own.
	side := r.opened("agent:main:main#side", Settings{})
	h, err := side.head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.exec(`UPDATE logs SET base_log = ?, base_seq = 5 WHERE id = ?`, main, h.Log)
	side.lineage.Forget()
	r.runs(r.eventStmt(h.Log, tidemark.Event{Type: "notice"})) // 7
	for _, row := range []struct {
		before int64
		limit  int
		acts   string
	}{{0, 9, "7 5 3"}, {0, 1, "7"}, {0, 2, "7 5"}, {7, 9, "5 3"}, {5, 9, "3"}, {3, 9, ""}} {
		if acts, err := side.Acts(t.Context(), row.before, row.limit); err != nil || ofEntries(acts) != row.acts {
			t.Errorf("of the branch %d before %d: %q, %v", row.limit, row.before, ofEntries(acts), err)
		}
	}
}

// TestEntryIsOurs: an entry is read by the conversation and its branches, whole, and by nobody else but who continues it.
func TestEntryIsOurs(t *testing.T) {
	r := newRig(t, Settings{})
	aunt, side := r.opened("agent:main:aunt", Settings{}), r.opened("agent:main:main#side", Settings{})
	large := strings.Repeat("a large text ", 30_000)
	e := r.person(large)
	if got, err := r.Entry(t.Context(), e.ID); err != nil || string(got.Payload) != string(tidemark.NewText(tidemark.User, large).AppendJSON(nil)) || len(e.Payload) > 1000 {
		t.Errorf("%d bytes of %d, %v", len(got.Payload), len(e.Payload), err)
	}
	odd := tidemark.Event{Type: "notice", Text: "tidemark_blob"}
	r.runs(r.eventStmt(r.current(), odd))
	acts, err := r.Acts(t.Context(), 0, 1)
	if err != nil || len(acts) != 1 {
		t.Fatal(acts, err)
	}
	if got, err := r.Entry(t.Context(), acts[0].ID); err != nil || string(got.Payload) != mustJSON(odd) {
		t.Errorf("an event: %s, %v", got.Payload, err)
	}
	branched := r.logs(side, tidemark.Origin{}, tidemark.NewText(tidemark.User, "of a branch"))
	if got, err := r.Entry(t.Context(), branched.ID); err != nil || got.ID != branched.ID {
		t.Errorf("that of a branch: %v, %v", got, err)
	}
	before := r.logs(aunt, tidemark.Origin{}, tidemark.NewText(tidemark.User, "of the aunt"))
	behind := r.logs(aunt, tidemark.Origin{}, tidemark.NewText(tidemark.User, "of the aunt, later"))
	for _, id := range []tidemark.EntryID{before.ID, behind.ID, "nothing"} {
		if got, err := r.Entry(t.Context(), id); !errors.Is(err, tidemark.ErrNotFound) || got.Payload != nil {
			t.Errorf("%s: %+v, %v", id, got, err)
		}
		if _, err := r.entry(t.Context(), id); !errors.Is(err, tidemark.ErrNotFound) {
			t.Errorf("the message %s: %v", id, err)
		}
	}
	if _, err := r.entry(t.Context(), acts[0].ID); !errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("an event as a message: %v", err)
	}
	r.exec(`UPDATE logs SET base_log = ?, base_seq = ? WHERE id = ?`, before.Log, before.Seq, r.current())
	r.lineage.Forget()
	if got, err := r.Entry(t.Context(), before.ID); err != nil || got.ID != before.ID {
		t.Errorf("what it continues: %+v, %v", got, err)
	}
	if _, err := r.Entry(t.Context(), behind.ID); !errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("what came there behind its beginning: %v", err)
	}
}

// TestTextPages: the text of a message and of one of its blocks is read page by page, cut between characters, with what else
// is in the block on the first page.
func TestTextPages(t *testing.T) {
	r := newRig(t, Settings{})
	cut, whole := strings.Repeat("a", toolPage-1)+"éb", strings.Repeat("a", toolPage)
	for _, row := range []struct {
		name, text string
		offset     int
		want       string // "" for a refusal
	}{
		{"a page", whole, 0, whole},
		{"a byte more", whole + "b", 0, whole + "\n[20000 of 20001 bytes; go on with offset 20000]"},
		{"the rest", whole + "b", toolPage, "b"},
		{"within a character", cut, 0, cut[:toolPage-1] + "\n[19999 of 20002 bytes; go on with offset 19999]"},
		{"behind it", cut, toolPage - 1, "éb"},
		{"two pages on", whole + whole + "bc", toolPage + 1, whole[1:] + "b\n[20000 of 40002 bytes; go on with offset 40001]"},
		{"before the beginning", "abc", -1, ""},
		{"behind the end", "abc", 4, ""},
	} {
		e := r.person(row.text)
		got, err := r.ReadEntry(t.Context(), e.ID, row.offset)
		block, bad := r.readBlock(t.Context(), "c", e.ID, 0, row.offset)
		if row.want == "" {
			if !errors.Is(err, tidemark.ErrInvalid) || !errors.Is(bad, tidemark.ErrInvalid) || got != "" || !strings.Contains(err.Error(), fmt.Sprintf("offset %d: the entry has 3 bytes", row.offset)) {
				t.Errorf("%s: %q, %v, %v", row.name, got, err, bad)
			}
			continue
		}
		if err != nil || got != row.want {
			t.Errorf("%s: %d bytes, %v", row.name, len(got), err)
		}
		if want := tidemark.ToolResult("c", row.want, false); bad != nil || string(block.AppendJSON(nil)) != string(want.AppendJSON(nil)) {
			t.Errorf("%s, as a block: %d bytes, %v", row.name, len(block.Content[0].Text), bad)
		}
	}
	e := r.person("abc")
	if got, err := r.ReadEntry(t.Context(), e.ID, 3); err != nil || got != "" {
		t.Errorf("at the end: %q, %v", got, err)
	}
	if got, err := r.readBlock(t.Context(), "c", e.ID, 0, 3); err != nil || got.Content[0].Text != "" {
		t.Errorf("at the end of a block: %+v, %v", got, err)
	}
	if _, err := r.readBlock(t.Context(), "c", e.ID, 1, 0); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("a block that it has not: %v", err)
	}
}

// TestBlockWithPictures: pictures come back with the first page of a block, and where they are too large it says so.
func TestBlockWithPictures(t *testing.T) {
	r := newRig(t, Settings{})
	small := pictureOf(t, onePicture)
	large := pictureOf(t, strings.Replace(onePicture, "QUJD", strings.Repeat("QUJD", compaction.RecallBytes/4), 1))
	odd := pictureOf(t, `{"type":"odd","x":1}`)
	result := func(content ...tidemark.Block) tidemark.Block {
		return tidemark.Block{Type: tidemark.TypeToolResult, ToolUseID: "t", Content: content}
	}
	const gone = "\n[What else is in it, 1 images or documents, is too large to be brought back: ask the person to send it again.]"
	for _, row := range []struct {
		name   string
		block  tidemark.Block
		offset int
		want   []string // texts and types
		err    error
	}{
		{"a picture", small, 0, []string{"image"}, nil},
		{"with words", result(tidemark.Text("words"), small), 0, []string{"words", "image"}, nil},
		{"on the second page", result(tidemark.Text("words"), small), 2, []string{"rds"}, nil},
		{"too large", large, 0, nil, tidemark.ErrTooLarge},
		{"too large, with words", result(tidemark.Text("words"), large), 0, []string{"words" + gone}, nil},
		{"something else, with words", result(tidemark.Text("words"), odd), 0, nil, tidemark.ErrInvalid},
	} {
		e := r.logs(r.Session, tidemark.Origin{}, tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.Text("before"), row.block}})
		got, err := r.readBlock(t.Context(), "c", e.ID, 1, row.offset)
		var has []string
		for _, b := range got.Content {
			if b.Type == tidemark.TypeText {
				has = append(has, b.Text)
			} else {
				has = append(has, b.Type)
			}
		}
		if !errors.Is(err, row.err) || !slices.Equal(has, row.want) || err == nil && got.ToolUseID != "c" {
			t.Errorf("%s: %.200q, %v", row.name, has, err)
		}
	}
}

// TestHistoryOfResets: the history is that of the present session, or of all before it, and whoever breaks off is given no more.
func TestHistoryOfResets(t *testing.T) {
	r := newRig(t, Settings{})
	old := r.current()
	r.person("one")
	r.person("two")
	r.runs(r.Session.log.CreateStmt(host.Info{ID: "new", Key: r.Key, Previous: old, Created: r.clock.Now()}))
	r.exec(`UPDATE heads SET log = 'new' WHERE key = ?`, string(r.Key))
	r.person("three")
	if got, err := r.Logs(t.Context()); err != nil || !slices.Equal(got, []string{"new", old}) {
		t.Errorf("logs %q, %v", got, err)
	}
	for _, row := range []struct {
		all  bool
		most int
		want string
	}{{false, 9, "three"}, {true, 9, "one two three"}, {true, 1, "one"}, {true, 3, "one two three"}} {
		var got []string
		for e, err := range r.History(t.Context(), row.all) {
			if err != nil {
				t.Fatal(err)
			}
			m, err := e.Message()
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, m.PlainText()); len(got) == row.most {
				break
			}
		}
		if g := strings.Join(got, " "); g != row.want {
			t.Errorf("all %v, %d: %q, want %q", row.all, row.most, g, row.want)
		}
	}
	for _, refused := range []string{"FROM heads", "tokens, skel", "call, hash"} {
		r.faulty.refuses(refused)
		failed := 0
		for e, err := range r.History(t.Context(), true) {
			if failed++; !errors.Is(err, errFaulty) || e.ID != "" {
				t.Errorf("without %q: %+v, %v", refused, e, err)
			}
		}
		if failed != 1 {
			t.Errorf("without %q it fails %d times", refused, failed)
		}
	}
}

// TestUndoIsOfTheSession: what is lifted is an overlay of this session that holds; then the prompt is made anew and no plan goes
// on, in this conversation. Not while a turn is in work.
func TestUndoIsOfTheSession(t *testing.T) {
	r := newRig(t, Settings{})
	aunt := r.opened("agent:main:aunt", Settings{})
	r.person("one")
	o, second := r.overlaid(tidemark.Overlay{By: []string{"x"}}), r.overlaid(tidemark.Overlay{By: []string{"x"}})
	_, stmts, err := aunt.overlayStmts(r.logs(aunt, tidemark.Origin{}, tidemark.NewText(tidemark.User, "of the aunt")).Log, tidemark.FromSystem, tidemark.Overlay{By: []string{"x"}})
	if err != nil {
		t.Fatal(err)
	}
	r.runs(stmts...)
	theirs := tidemark.EntryID(stmts[0].Args[0].(string))
	said := r.person("two")
	for _, s := range []*Session{r.Session, aunt} {
		done, p := &plan{Draft: summary.Draft{ID: "done " + string(s.Key), Log: "log"}, Act: compaction.Act{Summarize: -1}}, &plan{Draft: summary.Draft{ID: "plan of " + string(s.Key), Log: "log"}, Act: compaction.Act{Summarize: -1}}
		r.runs(done.insertStmt(s.Key), done.doneStmt(), p.insertStmt(s.Key))
	}
	r.exec(`UPDATE heads SET prompt = 'p'`)
	for _, id := range []tidemark.EntryID{theirs, said.ID, "nothing"} {
		if changed, err := r.Undo(t.Context(), id); changed || !errors.Is(err, tidemark.ErrNotFound) {
			t.Errorf("%s: %v, %v", id, changed, err)
		}
	}
	r.exec(`INSERT INTO runs(id, key, log, owner, state, started, updated) VALUES('theirs', 'agent:main:aunt', '', '', 'calling', 0, 0)`)
	x := r.working(stateTools)
	if changed, err := r.Undo(t.Context(), o.ID); changed || !errors.Is(err, tidemark.ErrConflict) {
		t.Errorf("while a turn is in work: %v, %v", changed, err)
	}
	r.exec(`UPDATE runs SET state = 'done' WHERE id = ?`, x.ID)
	for _, want := range []bool{true, false} {
		if changed, err := r.Undo(t.Context(), o.ID); changed != want || err != nil {
			t.Errorf("%v, %v, want %v", changed, err, want)
		}
	}
	r.reads("agent:main:aunt p; agent:main:main ", `SELECT key, prompt FROM heads ORDER BY key LIMIT 9`)
	r.reads("agent:main:aunt done; agent:main:aunt open; agent:main:main done; agent:main:main dropped", `SELECT key, state FROM plans ORDER BY key, state LIMIT 9`)
	r.reads(`["person"] undo ["`+string(o.ID)+`"] person`, `SELECT json_extract(payload, '$.by'), json_extract(payload, '$.reason'), json_extract(payload, '$.lifts'), json_extract(origin, '$.from')
		FROM entries WHERE log = ? AND kind = 'overlay' AND seq > ? LIMIT 9`, r.current(), said.Seq)
	r.reads("", `SELECT kind FROM due WHERE key = ? AND kind LIKE 'evicted:%' LIMIT 9`, string(r.Key))
	if changed, err := r.Undo(t.Context(), second.ID); !changed || err != nil { // nothing is read anew for it
		t.Errorf("the second: %v, %v", changed, err)
	}
	behind := r.overlaid(tidemark.Overlay{By: []string{"x"}})
	if changed, err := r.Undo(t.Context(), behind.ID); !changed || err != nil { // nor for one right behind a lift
		t.Errorf("the third: %v, %v", changed, err)
	}
	r.reads("", `SELECT kind FROM due WHERE key = ? AND kind LIKE 'evicted:%' LIMIT 9`, string(r.Key))
	var asked []int64
	r.Alarm = func(_ context.Context, at time.Time) error {
		asked = append(asked, at.UnixMilli())
		return nil
	}
	lift := tidemark.EntryID(r.table(`SELECT id FROM entries WHERE log = ? AND kind = 'overlay' AND payload LIKE ? LIMIT 1`, r.current(), "%"+string(o.ID)+"%"))
	if changed, err := r.Undo(t.Context(), lift); !changed || err != nil {
		t.Errorf("the lift: %v, %v", changed, err)
	}
	if !slices.Equal(asked, []int64{rigNoon}) {
		t.Errorf("the host is asked to wake it at %d", asked)
	}
	// What it takes out of the view again is read anew.
	r.reads(fmt.Sprint("evicted:", o.ID, " ", rigNoon, " ", r.current(), " 0"), `SELECT kind, at, data FROM due WHERE key = ? AND kind = ? LIMIT 9`, string(r.Key), "evicted:"+string(o.ID))
}

// TestManyActs: however many acts are read at once, the newest come first.
func TestManyActs(t *testing.T) {
	r := newRig(t, Settings{})
	var want []string
	for range 20 {
		r.runs(r.eventStmt(r.current(), tidemark.Event{Type: "notice"}))
		want = append([]string{fmt.Sprint(len(want) + 1)}, want...)
	}
	if acts, err := r.Acts(t.Context(), 0, 100); err != nil || ofEntries(acts) != strings.Join(want, " ") {
		t.Errorf("%q, %v", ofEntries(acts), err)
	}
}

// TestHistoryBrokenOff: who waits no more for a long history is told so.
func TestHistoryBrokenOff(t *testing.T) {
	r := newRig(t, Settings{})
	for range 2 {
		r.person(strings.Repeat("a large text ", 30_000))
	}
	gone := errors.New("nobody waits")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var got []string
	for e, err := range r.History(ctx, false) {
		got = append(got, fmt.Sprint(e.Seq, " ", err))
		cancel(gone)
	}
	if !slices.Equal(got, []string{"1 <nil>", "0 nobody waits"}) {
		t.Errorf("%q", got)
	}
}
