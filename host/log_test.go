package host_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/host/hosttest"
)

var made = time.UnixMilli(1_800_000_000_123)

func openLog(t *testing.T) *host.Log {
	t.Helper()
	l, err := host.OpenLog(t.Context(), hosttest.DB(t))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// create makes a log, or a branch of one.
func create(t *testing.T, l *host.Log, i host.Info) {
	t.Helper()
	i.Created = made
	if err := l.DB.Tx(t.Context(), []tidemark.Stmt{l.CreateStmt(i)}); err != nil {
		t.Fatal(err)
	}
}

func TestLogInfo(t *testing.T) {
	l := openLog(t)
	want := host.Info{ID: "b", Key: "agent:main:main#b", BaseLog: "a", BaseSeq: 7, Previous: "p", Created: made}
	create(t, l, want)
	if got, err := l.Info(t.Context(), "b"); got != want || err != nil {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if _, err := l.Info(t.Context(), "a"); !errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("unknown log: %v", err)
	}
	if err := l.DB.Tx(t.Context(), []tidemark.Stmt{l.CreateStmt(want)}); err == nil {
		t.Error("a log was made twice")
	}
	again, err := host.OpenLog(t.Context(), l.DB) // a second life finds its tables
	if err != nil {
		t.Fatal(err)
	}
	if got, err := again.Info(t.Context(), "b"); got != want || err != nil {
		t.Errorf("after it was opened again: %+v, %v", got, err)
	}
}

// history is a base of 130 entries, a branch from its 100th with 130, a twig from the 50th of those
// with 30; each third entry is an event, each tenth an overlay.
type history struct {
	*host.Log
	seq map[string]int64 // by id
}

func newHistory(t *testing.T) history {
	h := history{openLog(t), map[string]int64{}}
	create(t, h.Log, host.Info{ID: "base", Key: "k"})
	h.fill(t, "base", 130)
	create(t, h.Log, host.Info{ID: "branch", Key: "k", BaseLog: "base", BaseSeq: h.seq["base100"]})
	h.fill(t, "branch", 130)
	create(t, h.Log, host.Info{ID: "twig", Key: "k", BaseLog: "branch", BaseSeq: h.seq["branch50"]})
	h.fill(t, "twig", 30)
	return h
}

func (h history) fill(t *testing.T, log string, n int) {
	t.Helper()
	entries := make([]tidemark.Entry, 0, n)
	for i := 1; i <= n; i++ {
		id := fmt.Sprint(log, i)
		e := tidemark.Entry{ID: tidemark.EntryID(id), Kind: tidemark.KindMessage, At: made, Tokens: tidemark.Tokens(i),
			Payload: tidemark.NewText(tidemark.User, id).AppendJSON(nil)}
		switch {
		case i%10 == 0:
			e.Kind, e.Tokens = tidemark.KindOverlay, 0
			e.Payload = fmt.Appendf(nil, `{"by":["trim"],"edits":[{"from":"%s1","block":1,"blocks":[{"type":"text","text":"stub"}],"data":[1]}],"reason":"%s"}`, log, id)
		case i%3 == 0:
			e.Kind, e.Tokens, e.Payload = tidemark.KindEvent, 0, []byte(`{"type":"x","text":"y"}`)
		}
		entries = append(entries, e)
	}
	if err := h.Append(t.Context(), log, entries...); err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		h.seq[string(e.ID)] = e.Seq
	}
}

// said lists the ids of messages of a stretch of a log.
func said(log string, from, to int) []string {
	var out []string
	for i := from; i <= to; i++ {
		if i%10 != 0 && i%3 != 0 {
			out = append(out, fmt.Sprint(log, i))
		}
	}
	return out
}

// TestRanges: skeletons of a range are those of the history, through all its bases,
// oldest first and each once.
func TestRanges(t *testing.T) {
	h := newHistory(t)
	whole := host.Range{From: 1, To: 1 << 53}
	for _, tc := range []struct {
		name, log string
		r         host.Range
		want      []string
	}{
		{"a log", "base", whole, said("base", 1, 130)},
		{"a branch", "branch", whole, slices.Concat(said("base", 1, 100), said("branch", 1, 130))},
		{"a branch of a branch", "twig", whole, slices.Concat(said("base", 1, 100), said("branch", 1, 50), said("twig", 1, 30))},
		{"within a log", "base", host.Range{From: h.seq["base20"], To: h.seq["base40"]}, said("base", 20, 40)},
		{"within a base", "twig", host.Range{From: h.seq["base20"], To: h.seq["base40"]}, said("base", 20, 40)},
		{"over a base and its branch", "twig", host.Range{From: h.seq["base90"], To: h.seq["branch10"]}, slices.Concat(said("base", 90, 100), said("branch", 1, 10))},
		{"over all three", "twig", host.Range{From: h.seq["base98"], To: h.seq["twig2"]}, slices.Concat(said("base", 98, 100), said("branch", 1, 50), said("twig", 1, 2))},
		{"where the base went on by itself", "branch", host.Range{From: h.seq["base101"], To: h.seq["base130"]}, nil},
		{"from there on", "branch", host.Range{From: h.seq["base101"], To: h.seq["branch4"]}, said("branch", 1, 4)},
		{"one message", "twig", host.Range{From: h.seq["base1"], To: h.seq["base1"]}, said("base", 1, 1)},
		{"one event", "twig", host.Range{From: h.seq["base3"], To: h.seq["base3"]}, nil},
		{"backwards", "base", host.Range{From: h.seq["base40"], To: h.seq["base20"]}, nil},
		{"beyond the end", "base", host.Range{From: 1 << 40, To: 1 << 53}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			skeletons, err := h.Skeletons(t.Context(), tc.log, tc.r)
			if err != nil {
				t.Fatal(err)
			}
			var bare []string
			for _, s := range skeletons {
				if s.Seq != h.seq[string(s.ID)] || s.Role != tidemark.User || s.Kind != tidemark.KindMessage || s.Blocks != 1 || s.Tokens == 0 {
					t.Fatalf("skeleton %+v", s)
				}
				bare = append(bare, string(s.ID))
			}
			if !slices.Equal(bare, tc.want) {
				t.Errorf("skeletons %q\nwant %q", bare, tc.want)
			}
		})
	}
	if _, err := h.Skeletons(t.Context(), "nowhere", whole); !errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("unknown log: %v, want ErrNotFound", err)
	}
}

// TestSaid: what is short and what is long comes with who said it, and what is not there does not.
func TestSaid(t *testing.T) {
	l := openLog(t)
	create(t, l, host.Info{ID: "log", Key: "agent:main:main"})
	texts := map[tidemark.EntryID]string{"a": "tide", "b": strings.Repeat("long ", 10_000), "c": "quay"}
	for _, id := range []tidemark.EntryID{"a", "b", "c"} {
		stmts, err := l.AppendStmts("log", tidemark.Entry{ID: id, Kind: tidemark.KindMessage, At: made, Origin: tidemark.Origin{From: tidemark.FromPerson, Peer: "p"},
			Payload: tidemark.NewText(tidemark.User, texts[id]).AppendJSON(nil)})
		if err == nil {
			err = l.DB.Tx(t.Context(), stmts)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	got, err := l.Said(t.Context(), []int64{3, 2, 1, 1 << 40})
	if err != nil || len(got) != 3 {
		t.Fatalf("%d entries, %v", len(got), err)
	}
	for i, want := range []tidemark.EntryID{"a", "c", "b"} {
		m, err := got[i].Message()
		if e := got[i]; err != nil || e.ID != want || e.Log != "log" || e.Kind != tidemark.KindMessage || !e.At.Equal(made) || e.Origin.From != tidemark.FromPerson || m.PlainText() != texts[want] {
			t.Errorf("%d: %+v, %v", i, e, err)
		}
	}
	if none, err := l.Said(t.Context(), nil); len(none) != 0 || err != nil {
		t.Errorf("of none: %v, %v", none, err)
	}
}

func TestPayloads(t *testing.T) {
	h := newHistory(t)
	var seqs []int64
	want := slices.Concat(said("base", 1, 130), said("branch", 1, 130)) // more than one statement takes
	for _, id := range want {
		seqs = append(seqs, h.seq[id])
	}
	entries, err := h.Payloads(t.Context(), append(seqs, 1<<40)) // the last one is not there
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, string(e.ID))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if none, err := h.Payloads(t.Context(), nil); len(none) != 0 || err != nil {
		t.Errorf("of nothing: %v, %v", none, err)
	}
}

// TestMarks: overlays come in order, of this log alone, and without what they put in place.
func TestMarks(t *testing.T) {
	h := newHistory(t)
	marks, err := h.Marks(t.Context(), "branch")
	if err != nil {
		t.Fatal(err)
	}
	if len(marks) != 13 {
		t.Fatalf("%d overlays, want 13: those of a base are not inherited", len(marks))
	}
	for i, m := range marks {
		id := fmt.Sprint("branch", 10*(i+1))
		o := m.Overlay
		if string(m.ID) != id || m.Seq != h.seq[id] || o.Reason != id || len(o.Edits) != 1 || o.Edits[0].From != "branch1" || o.Edits[0].Block != 1 {
			t.Errorf("overlay %d is %+v", i, m)
		}
		if o.Edits[0].Blocks != nil || o.Edits[0].Data != nil || o.Edits[0].Messages != nil {
			t.Errorf("overlay %s carries its replacements", id)
		}
	}
	entries, err := h.Payloads(t.Context(), []int64{marks[0].Seq})
	if err != nil || !strings.Contains(string(entries[0].Payload), `"stub"`) {
		t.Errorf("the row itself: %s, %v", entries[0].Payload, err)
	}
}

// TestManyMarks: more overlays than a page holds.
func TestManyMarks(t *testing.T) {
	const n = 1201
	l := openLog(t)
	create(t, l, host.Info{ID: "log", Key: "k"})
	var entries []tidemark.Entry
	for i := range n {
		entries = append(entries, tidemark.Entry{ID: tidemark.EntryID(fmt.Sprint(i)), Kind: tidemark.KindOverlay, At: made, Payload: []byte(`{"by":["x"]}`)})
	}
	if err := l.Append(t.Context(), "log", entries...); err != nil {
		t.Fatal(err)
	}
	marks, err := l.Marks(t.Context(), "log")
	if err != nil || len(marks) != n {
		t.Fatalf("%d overlays, %v", len(marks), err)
	}
	for i, m := range marks {
		if string(m.ID) != fmt.Sprint(i) {
			t.Fatalf("overlay %d is %s", i, m.ID)
		}
	}
}

// TestSkeleton: calls and results of a message are known without its payload.
func TestSkeleton(t *testing.T) {
	l := openLog(t)
	create(t, l, host.Info{ID: "log", Key: "k"})
	call := tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.Text("x"), tidemark.ToolUse("c1", "n", nil), tidemark.ToolUse("c2", "n", nil)}}
	result := tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult("c2", "y", false), tidemark.ToolResult("c1", "y", true)}}
	err := l.Append(t.Context(), "log",
		tidemark.Entry{ID: "call", Kind: tidemark.KindMessage, At: made, Payload: call.AppendJSON(nil)},
		tidemark.Entry{ID: "result", Kind: tidemark.KindMessage, At: made, Payload: result.AppendJSON(nil)})
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Skeletons(t.Context(), "log", host.Range{From: 1, To: 1 << 53})
	if err != nil || len(s) != 2 {
		t.Fatalf("%d skeletons, %v", len(s), err)
	}
	if s[0].Role != tidemark.Assistant || s[0].Blocks != 3 || !slices.Equal(s[0].Calls, []string{"c1", "c2"}) || s[0].Results != nil {
		t.Errorf("call: %+v", s[0])
	}
	if s[1].Role != tidemark.User || s[1].Blocks != 2 || !slices.Equal(s[1].Results, []string{"c2", "c1"}) || s[1].Calls != nil {
		t.Errorf("result: %+v", s[1])
	}
}

func TestEntryAndSeqs(t *testing.T) {
	h := newHistory(t)
	e, err := h.Entry(t.Context(), "branch1")
	if err != nil || e.Log != "branch" || e.Seq != h.seq["branch1"] || e.Tokens != 1 {
		t.Errorf("entry %+v, %v", e, err)
	}
	if _, err := h.Entry(t.Context(), "nowhere"); !errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("unknown entry: %v", err)
	}
	var ids []tidemark.EntryID
	for id := range h.seq {
		ids = append(ids, tidemark.EntryID(id))
	}
	seqs, err := h.Seqs(t.Context(), append(ids, "nowhere", "branch1"))
	if err != nil || len(seqs) != len(h.seq) {
		t.Fatalf("%d positions, %v; want %d", len(seqs), err, len(h.seq))
	}
	for id, seq := range seqs {
		if h.seq[string(id)] != seq {
			t.Errorf("%s at %d, want %d", id, seq, h.seq[string(id)])
		}
	}
}

// TestAppendStmts: entries commit together with rows of a session, or not at all.
func TestAppendStmts(t *testing.T) {
	l := openLog(t)
	create(t, l, host.Info{ID: "log", Key: "k"})
	stmts, err := l.AppendStmts("log", tidemark.Entry{ID: "a", Kind: tidemark.KindMessage, At: made, Payload: tidemark.NewText(tidemark.User, "x").AppendJSON(nil)})
	if err != nil {
		t.Fatal(err)
	}
	lost := append(slices.Clone(stmts), l.RefStmt("head", "old", "new"))
	if err := l.DB.Tx(t.Context(), lost); !errors.Is(err, tidemark.ErrConflict) {
		t.Fatalf("with a ref that is not there: %v, want ErrConflict", err)
	}
	if _, err := l.Entry(t.Context(), "a"); !errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("the entry of a lost transaction: %v", err)
	}
	if err := l.DB.Tx(t.Context(), append(stmts, l.RefStmt("head", "", "new"))); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Entry(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}

func TestMigrate(t *testing.T) {
	db := hosttest.DB(t)
	v1 := []string{`CREATE TABLE m(a INTEGER)`, `INSERT INTO m VALUES (1)`}
	v2 := append(slices.Clone(v1), `ALTER TABLE m ADD COLUMN b TEXT NOT NULL DEFAULT 'x'`)
	broken := append(slices.Clone(v2), `INSERT INTO m VALUES (2, 'y')`, `INSERT INTO nowhere VALUES (1)`)
	for _, tc := range []struct {
		name  string
		list  []string
		want  error // nil: none
		fails bool
	}{
		{"first", v1, nil, false}, {"again", v1, nil, false}, {"next", v2, nil, false}, {"again", v2, nil, false},
		{"broken", broken, nil, true}, {"older program", v1, tidemark.ErrInvalid, true}, {"after all", v2, nil, false},
	} {
		err := host.Migrate(t.Context(), db, "test", tc.list)
		if (err != nil) != tc.fails || tc.want != nil && !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	rows, err := db.Query(t.Context(), `SELECT count(*), max(b) FROM m LIMIT 1`)
	if err != nil || rows[0].Int(0) != 1 || rows[0].Text(1) != "x" {
		t.Errorf("the table holds %v, %v", rows, err)
	}
	if err := host.Migrate(t.Context(), db, "other space", v1[:0]); err != nil {
		t.Errorf("another space: %v", err)
	}
}
