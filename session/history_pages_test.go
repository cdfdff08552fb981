package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/summary"
)

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
