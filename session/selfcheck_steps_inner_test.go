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
	"github.com/tidemark-ai/tidemark/summary"
)

// checker is a room that finds what it is told to, and notes what it is asked.
type checker struct {
	found  room.Checked
	fails  error
	lifted string
	acts   []room.Acted
}

func (c *checker) Check(_ context.Context, a room.Acted) (room.Checked, error) {
	c.acts = append(c.acts, a)
	found := c.found
	found.Overlay = a.Overlay
	return found, c.fails
}

func (c *checker) LiftedStmts(_ context.Context, a room.Acted, found room.Checked) ([]tidemark.Stmt, error) {
	return []tidemark.Stmt{{SQL: `UPDATE heads SET title = ? WHERE key = 'agent:main:main'`, Args: []any{fmt.Sprint(a.Overlay, " ", found.Violations)}, Want: 1}}, nil
}

func (c *checker) Lifted(context.Context, []tidemark.Edit) (string, error) { return c.lifted, nil }

// spoken appends messages of 100 tokens named i0, i1, … and returns their positions.
func (s *Session) spoken(t *testing.T, n int) (seqs []int64) {
	t.Helper()
	for _, it := range talk("", n).Items {
		seqs = append(seqs, s.says(t, s.current(t), string(it.ID), it.Message, tidemark.Origin{From: it.Source}, 100))
	}
	return seqs
}

// marked is an edit with a marker that stands for so many messages and tokens.
func marked(from, to string, count int, tokens tidemark.Tokens, keep ...tidemark.EntryID) tidemark.Edit {
	return compaction.Marker{From: time.UnixMilli(1), To: time.UnixMilli(2), Count: count, Tokens: tokens, Cycles: 1}.Put(tidemark.Edit{From: tidemark.EntryID(from), To: tidemark.EntryID(to), Keep: keep})
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

// TestLiftUnsound: an act that is not sound is lifted, with what the room notes of it, and told; it is not made again.
func TestLiftUnsound(t *testing.T) {
	s, _ := plain(t, Config{})
	r := s.begun(t, "r", stateCalling)
	c := &checker{}
	s.rooms = append(s.rooms, c)
	p := &plan{Draft: summary.Draft{Log: r.Log}, Size: 77, overlay: "over", edits: []tidemark.Edit{{From: "i0", To: "i3"}}}
	s.does(t, `UPDATE heads SET prompt = 'frozen' WHERE key = ?`, string(s.Key))
	found := room.Checked{Overlay: "over", Checks: 3, Violations: []string{"a", "b"}}
	noted, err := c.LiftedStmts(t.Context(), room.Acted{Overlay: "over"}, found)
	if err == nil {
		err = s.liftUnsound(t.Context(), r, p, found, noted)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := s.reads(t, `SELECT prompt, context, cooldown, title FROM heads WHERE key = ? LIMIT 1`, string(s.Key)); got != " 77 1700000060000 over [a b]" {
		t.Errorf("its row is %q", got)
	}
	if got := s.reads(t, `SELECT payload FROM entries WHERE log = ? AND kind = 'overlay' LIMIT 9`, r.Log); got != `{"by":["session"],"lifts":["over"],"reason":"selfcheck"}` {
		t.Errorf("the overlay is %s", got)
	}
	if got := s.notices(t); got != "The compaction was taken back: what it evicted could not be had again in full. a; b. Everything is in view as before." {
		t.Errorf("told %q", got)
	}
	if why, err := s.rooms.Unsound(t.Context(), nil); why != "" || err != nil {
		t.Errorf("another act: %q, %v", why, err)
	}
	c.lifted = "a; b"
	if why, err := s.rooms.Unsound(t.Context(), nil); why != "a; b" || err != nil {
		t.Errorf("the same act: %q, %v", why, err)
	}
	r.State = stateDone
	if err := s.liftUnsound(t.Context(), r, p, found, nil); !errors.Is(err, tidemark.ErrConflict) {
		t.Errorf("behind a command, while another run is in work: %v", err)
	}
	s.does(t, `UPDATE runs SET state = 'done' WHERE key = ?`, string(s.Key))
	if err := s.liftUnsound(t.Context(), r, p, found, nil); err != nil {
		t.Errorf("behind a command: %v", err)
	}
}

// TestNotThere: a database without a table has nothing of it, and no error, whatever else has its name.
func TestNotThere(t *testing.T) {
	db := hosttest.DB(t)
	if err := db.Tx(t.Context(), []tidemark.Stmt{{SQL: `CREATE TABLE other(a TEXT)`}, {SQL: `CREATE INDEX heads ON other(a)`}}); err != nil {
		t.Fatal(err)
	}
	if there, err := Exists(t.Context(), db, "agent:main:main"); there || err != nil {
		t.Errorf("a conversation is there: %v, %v", there, err)
	}
}

// TestChecked: what a check found is told to who counts; without an overlay, or a room, nothing is checked; what cannot be checked
// is no violation.
func TestChecked(t *testing.T) {
	var told []Notice
	s, _ := plain(t, Config{Observe: func(n Notice) { told = append(told, n) }})
	r := s.begun(t, "r", stateCalling)
	s.spoken(t, 6)
	v, err := s.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := &plan{Draft: summary.Draft{Log: r.Log}, overlay: "over", edits: []tidemark.Edit{marked("i0", "i3", 4, 400)}}
	if _, err := s.checked(t.Context(), r, p, v); err != nil || len(told) > 0 {
		t.Errorf("no room: %v, told %+v", err, told)
	}
	c := &checker{found: room.Checked{Checks: 6}}
	s.rooms = append(s.rooms, c)
	if _, err := s.checked(t.Context(), r, &plan{Draft: summary.Draft{Log: r.Log}}, v); err != nil || len(told) > 0 {
		t.Errorf("no overlay: %v, told %+v", err, told)
	}
	if _, err := s.checked(t.Context(), r, p, v); err != nil || len(told) != 1 || told[0].Type != NoticeChecked || told[0].Run != "r" || told[0].Checked.Overlay != "over" || told[0].Checked.Checks != 6 {
		t.Errorf("sound: %v, told %+v", err, told)
	}
	if a := c.acts[0]; a.Log != r.Log || a.Overlay != "over" || len(a.Edits) != 1 || len(a.Messages) != len(v.Messages()) {
		t.Errorf("it was given %+v", a)
	}
	c.fails = errKnown
	if _, err := s.checked(t.Context(), r, p, v); err != nil || p.overlay == "" {
		t.Errorf("not to be checked: %v", err)
	}
	c.fails = tidemark.ErrDead
	if _, err := s.checked(t.Context(), r, p, v); !errors.Is(err, tidemark.ErrDead) {
		t.Errorf("in a life that is over: %v", err)
	}
	told, c.fails, c.found.Violations = nil, nil, []string{"a marker lies"}
	if _, err := s.checked(t.Context(), r, p, v); err != nil || p.overlay != "" || len(told) < 1 || len(told[0].Checked.Violations) != 1 || !strings.Contains(s.notices(t), "taken back") {
		t.Errorf("not sound: %v, told %+v", err, told)
	}
}
