package session

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/host"
)

// TestBeforeALift: what an overlay still hides is judged by the overlays up to its last lift, and by all lifts.
func TestBeforeALift(t *testing.T) {
	lift := func(ids ...tidemark.EntryID) tidemark.Overlay { return tidemark.Overlay{Lifts: ids} }
	for _, row := range []struct {
		overlay tidemark.EntryID
		list    []tidemark.Overlay
		want    string
	}{
		{"1", []tidemark.Overlay{{}, {}, lift("1"), {}, lift("2")}, "1 2 3 5"},
		{"1", []tidemark.Overlay{{}, lift("1"), {}, lift("2"), lift("1"), {}}, "1 2 3 4 5"},
		{"9", []tidemark.Overlay{{}, lift("1"), {}}, "2"},
	} {
		var marks []host.Mark
		for i, o := range row.list {
			marks = append(marks, host.Mark{ID: tidemark.EntryID(fmt.Sprint(i + 1)), Seq: int64(i + 1), Overlay: o})
		}
		var got []string
		for _, m := range beforeLift(marks, row.overlay) {
			got = append(got, string(m.ID))
		}
		if g := strings.Join(got, " "); g != row.want {
			t.Errorf("%s of %+v: %q, want %q", row.overlay, row.list, g, row.want)
		}
	}
}

// unwilling is a model that answers nobody.
type unwilling struct{ with error }

func (p unwilling) Stream(context.Context, tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	return func(yield func(tidemark.Delta, error) bool) { yield(tidemark.Delta{}, p.with) }
}

// TestEvictedIsPutOff: what left the view is not read while a turn is in work; where the model is away all of it waits, and
// where something else fails that alone. What somebody else has read is left to them. Nothing of others moves.
func TestEvictedIsPutOff(t *testing.T) {
	beat, long := fmt.Sprint(rigNoon+heartbeat.Milliseconds()), fmt.Sprint(rigNoon+cooldowns[len(cooldowns)-1].Milliseconds())
	for _, row := range []struct {
		name    string
		busy    bool
		overlay string // empty: the one that is due
		log     string // empty: that of the session
		read    string // how far it is taken to be
		fails   tidemark.Class
		want    string // times of the two that are due, and how far they were read
		warns   bool
	}{
		{"a turn is in work", true, "", "", "0", tidemark.ClassAuth, beat + " 0; 5 0", false},
		{"the model is away", false, "", "", "0", tidemark.ClassAuth, long + " 0; " + long + " 0", true},
		{"no model can read it", false, "", "", "0", tidemark.ClassBadRequest, "5 0", false},
		{"its log is gone", false, "", "nowhere", "0", tidemark.ClassAuth, long + " 0; 5 0", true},
		{"somebody else has read more of it", false, "", "", "1", tidemark.ClassAuth, "5 0; 5 0", false},
		{"it is not due any more", false, "unknown", "", "0", tidemark.ClassAuth, "5 0; 5 0", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, Settings{})
			r.asks(unwilling{&tidemark.APIError{Class: row.fails, Message: "no"}})
			log := r.current()
			e := r.person("We decided on oak for the door.")
			o := r.overlaid(tidemark.Overlay{By: []string{"pointer"}, Edits: []tidemark.Edit{compaction.Marker{Count: 1}.Put(tidemark.Edit{From: e.ID, To: e.ID})}})
			for _, key := range []string{"main", "aunt"} {
				r.isDue(key, dueEvicted+string(o.ID), 5, log+" 0")
				r.isDue(key, dueEvicted+"zzz", 5, log+" 0")
				r.isDue(key, dueReset, 5, "")
			}
			if row.busy {
				r.working(stateCalling)
			}
			kind, data := dueEvicted+string(o.ID), log+" "+row.read
			if row.overlay != "" {
				kind = dueEvicted + row.overlay
			}
			if row.log != "" {
				data = row.log + " " + row.read
			}
			if err := r.evictedDue(t.Context(), kind, data); err != nil {
				t.Fatal(err)
			}
			const others = `SELECT kind LIKE 'evicted:%', at FROM due WHERE key = ? ORDER BY kind LIMIT 9`
			r.reads("1 5; 1 5; 0 5", others, "agent:main:aunt")
			want := strings.ReplaceAll(row.want, " 0", " "+log+" 0")
			r.reads(want, `SELECT at, data FROM due WHERE key = ? AND kind LIKE 'evicted:%' ORDER BY kind LIMIT 9`, string(r.Key))
			r.reads("5", `SELECT at FROM due WHERE key = ? AND kind = 'reset' LIMIT 9`, string(r.Key))
			if got := r.warned.taken(); strings.Contains(got, "memories of what left the view") != row.warns {
				t.Errorf("logged %q", got)
			}
		})
	}
}

// TestEvictedOfNobody: where no memories are to be kept, or no person said anything, a row is done without a model; that of
// another conversation stays.
func TestEvictedOfNobody(t *testing.T) {
	for _, row := range []struct {
		name string
		set  Settings
		from string
	}{{"without memories", Settings{NoMemories: true}, tidemark.FromPerson}, {"what a tool said", Settings{}, tidemark.FromTool}} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, row.set)
			e := r.logs(r.Session, tidemark.Origin{From: row.from}, tidemark.NewText(tidemark.User, "We decided on oak for the door."))
			o := r.overlaid(tidemark.Overlay{By: []string{"pointer"}, Edits: []tidemark.Edit{compaction.Marker{Count: 1}.Put(tidemark.Edit{From: e.ID, To: e.ID})}})
			r.runs(r.evictedStmt(e.Log, o.ID))
			r.isDue("aunt", dueEvicted+string(o.ID), 5, e.Log+" 0")
			r.isDue("main", dueEvicted+"another", 5, e.Log+" 0")
			all, err := r.readEvicted(t.Context(), dueEvicted+string(o.ID), e.Log+" 0")
			if err != nil || all.Facts != nil || all.Usage != (tidemark.Usage{}) {
				t.Errorf("%+v, %v", all, err)
			}
			r.reads("aunt evicted:"+string(o.ID)+" 5 "+e.Log+" 0; main evicted:another 5 "+e.Log+" 0", dueRows)
		})
	}
}

// remembering is a model that writes down memories.
type remembering struct{ asked []string }

func (p *remembering) Stream(_ context.Context, req tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	p.asked = append(p.asked, req.Messages[0].PlainText())
	reply := tidemark.Reply{Message: tidemark.NewText(tidemark.Assistant, "<memories>\n- The door is of oak\n- And the gate\n</memories>"),
		Call: tidemark.Call{Usage: tidemark.Usage{Input: 30, Output: 4}, Reported: true}}
	return func(yield func(tidemark.Delta, error) bool) { yield(tidemark.Delta{Reply: &reply}, nil) }
}

// TestEvictedIsKept: what the memories of a chunk cost, and where they stand until the agent has them: with the statement that
// ends the row, under an id that makes them one.
func TestEvictedIsKept(t *testing.T) {
	r, p := newRig(t, Settings{}), &remembering{}
	r.asks(p)
	e, other := r.person("We decided on oak for the door."), r.person("A summary has read that the gate is of ash.")
	o := r.overlaid(tidemark.Overlay{By: []string{"pointer"}, Edits: []tidemark.Edit{compaction.Marker{Count: 1}.Put(tidemark.Edit{From: e.ID, To: e.ID}), {From: other.ID, To: other.ID}}})
	r.runs(r.evictedStmt(e.Log, o.ID))
	all, err := r.readAllEvicted(t.Context())
	if err != nil || len(all.Facts) != 1 || len(all.Facts[0].Facts) != 2 || all.Usage.Context() != 34 || len(p.asked) != 1 || !strings.Contains(p.asked[0], "oak for the door") || strings.Contains(p.asked[0], "of ash") {
		t.Fatalf("%+v, %v, asked %q", all, err, p.asked)
	}
	x := all.Facts[0]
	if x.ID != fmt.Sprintf("%s/%s/0", e.Log, o.ID) || x.Session != e.Log || !slices.Equal(x.Facts[0].Sources, []tidemark.EntryID{e.ID, e.ID}) || x.Facts[0].Text != "The door is of oak" {
		t.Errorf("%+v", x)
	}
	r.reads(fmt.Sprint("main outbox ", rigNoon, " "), dueRows)
	r.reads("facts:"+x.ID+" facts "+mustJSON(x), `SELECT id, kind, payload FROM outbox WHERE key = ? LIMIT 9`, string(r.Key))
	r.reads("30 4", `SELECT json_extract(usage, '$.input_tokens'), json_extract(usage, '$.output_tokens') FROM heads WHERE key = ? LIMIT 1`, string(r.Key))
}

// TestEvictedPieceByPiece: what is more than a chunk is read in as many wakes, one overlay a wake; how far it was read is known
// of this conversation alone.
func TestEvictedPieceByPiece(t *testing.T) {
	r, p := newRig(t, Settings{Window: MinWindow}), &remembering{}
	r.asks(p)
	r.Session.Agent = &listening{}
	var e []tidemark.Entry
	for i := range 4 {
		e = append(e, r.person(fmt.Sprint("piece ", i, strings.Repeat(" of what was said", 150))))
	}
	first := r.overlaid(tidemark.Overlay{By: []string{"pointer"}, Edits: []tidemark.Edit{compaction.Marker{Count: 3}.Put(tidemark.Edit{From: e[0].ID, To: e[2].ID})}})
	r.clock.passes(time.Millisecond) // its name sorts behind the other's
	second := r.overlaid(tidemark.Overlay{By: []string{"pointer"}, Edits: []tidemark.Edit{compaction.Marker{Count: 1}.Put(tidemark.Edit{From: e[3].ID, To: e[3].ID})}})
	log := e[0].Log
	for _, key := range []string{"main", "aunt"} {
		r.isDue(key, dueEvicted+string(first.ID), 0, log+" 0")
	}
	r.isDue("main", dueEvicted+string(second.ID), rigNoon, log+" 0")
	theirs := "aunt evicted:" + string(first.ID) + " 0 " + log + " 0"
	rows := func(want ...string) {
		t.Helper()
		r.reads(strings.Join(append([]string{theirs}, want...), "; "), `SELECT substr(key, 12), kind, at, data FROM due WHERE kind LIKE 'evicted:%' ORDER BY key, data, kind LIMIT 9`)
	}
	a, b := "main evicted:"+string(first.ID)+" 0 "+log, "main evicted:"+string(second.ID)+fmt.Sprint(" ", rigNoon, " ")+log
	step := func(want ...string) {
		t.Helper()
		asked := len(p.asked)
		if err := r.Wake(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.rests()
		if len(p.asked) != asked+1 {
			t.Errorf("a wake asked %d times", len(p.asked)-asked)
		}
		rows(want...)
	}
	rows(a+" 0", b+" 0")
	step(b+" 0", a+fmt.Sprint(" ", e[0].Seq))
	if _, err := r.readEvicted(t.Context(), dueEvicted+string(first.ID), log+" 0"); !errors.Is(err, tidemark.ErrConflict) { // somebody else was faster
		t.Errorf("read twice: %v", err)
	}
	p.asked = p.asked[:1]
	rows(b+" 0", a+fmt.Sprint(" ", e[0].Seq))
	step(b+" 0", a+fmt.Sprint(" ", e[1].Seq))
	step(b + " 0")
	step()
	var asked []string
	for _, text := range p.asked {
		_, text, _ = strings.Cut(text, "piece ")
		asked = append(asked, text[:1])
	}
	if got := strings.Join(asked, ""); got != "0123" {
		t.Errorf("asked for pieces %s", got)
	}
}
