package session

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/history"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/summary"
)

// TestCorrectedBlocks: corrected words stand in the place of the last text, behind pictures where there is none, and neither
// the note of a file nor the line that says what is answered gives way.
func TestCorrectedBlocks(t *testing.T) {
	text, image := tidemark.Text, pictureOf(t, onePicture)
	answers, kept := text(tidemark.RepliesTo+" x]"), text("[document: "+tidemark.KeptAs+" x]")
	for _, row := range []struct {
		name    string
		content []tidemark.Block
		block   int
		reads   []tidemark.Block // "new" is what it reads now
	}{
		{"a text", []tidemark.Block{text("old")}, 1, []tidemark.Block{text("new")}},
		{"the last of two", []tidemark.Block{text("first"), text("old")}, 2, []tidemark.Block{text("new")}},
		{"a text before a picture", []tidemark.Block{text("old"), image}, 1, []tidemark.Block{text("new")}},
		{"a picture", []tidemark.Block{image}, 1, []tidemark.Block{image, text("new")}},
		{"two pictures", []tidemark.Block{image, image}, 2, []tidemark.Block{image, text("new")}},
		{"behind the line that says what is answered", []tidemark.Block{answers, text("old")}, 2, []tidemark.Block{text("new")}},
		{"a picture behind that line", []tidemark.Block{answers, image}, 2, []tidemark.Block{image, text("new")}},
		{"that line alone", []tidemark.Block{answers}, 1, []tidemark.Block{answers, text("new")}},
		{"words before the note of a file", []tidemark.Block{text("old"), kept}, 2, []tidemark.Block{kept, text("new")}},
		{"words behind it", []tidemark.Block{kept, text("old")}, 2, []tidemark.Block{text("new")}},
	} {
		m := tidemark.Message{Role: tidemark.User, Content: row.content}
		if got, want := corrected("e", m, "new"), []tidemark.Edit{{From: "e", Block: row.block, Blocks: row.reads}}; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", row.name, got, want)
		}
	}
	taken := []tidemark.Edit{{From: "e", Block: 1, Blocks: []tidemark.Block{text(room.TakenBack)}}, {From: "e", Block: 2}, {From: "e", Block: 3}}
	if got := emptied("e", tidemark.Message{Content: []tidemark.Block{image, text("a"), text("b")}}); !reflect.DeepEqual(got, taken) {
		t.Errorf("taken back: %+v, want %+v", got, taken)
	}
}

// TestAmendments: what persons amended is told from what others did for the same reason, and from what persons did for another.
func TestAmendments(t *testing.T) {
	var marks, want []host.Mark
	for i, row := range []struct {
		by     []string
		reason string
		is     bool
	}{{[]string{"person"}, "edit", true}, {[]string{"summary"}, "edit", false}, {[]string{"person"}, "revoke", true}, {[]string{"person"}, "undo", false}, {nil, "revoke", false}} {
		m := host.Mark{ID: tidemark.EntryID(fmt.Sprint(i)), Overlay: tidemark.Overlay{By: row.by, Reason: row.reason}}
		marks = append(marks, m)
		if row.is {
			want = append(want, m)
		}
	}
	if got := amendments(marks); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// amender is a room that knows what some entries read now.
type amender struct {
	now     map[tidemark.EntryID]room.Now
	fails   error
	amended []string
	done    int
}

func (a *amender) AmendStmts(_ context.Context, e tidemark.Entry, now string) ([]tidemark.Stmt, error) {
	a.amended = append(a.amended, string(e.ID)+" "+now)
	return []tidemark.Stmt{{SQL: `INSERT INTO prompts(hash, text) VALUES('amended', ?)`, Args: []any{now}}}, a.fails
}

func (a *amender) Amended() { a.done++ }

func (a *amender) Reads(_ context.Context, ids []tidemark.EntryID) (map[tidemark.EntryID]room.Now, error) {
	a.amended = append(a.amended, fmt.Sprint(ids))
	return a.now, a.fails
}

// addressed is a room that knows who answers what.
type addressed struct{ amended []string }

func (*addressed) Wrote(context.Context, tidemark.Origin, string) ([]tidemark.Stmt, error) {
	return nil, nil
}

func (*addressed) Quoted(context.Context, string) (string, error) { return "", nil }

func (a *addressed) Amended(message, text string) []tidemark.Stmt {
	a.amended = append(a.amended, message+" "+text)
	return []tidemark.Stmt{{SQL: `INSERT INTO prompts(hash, text) VALUES('quoted', ?)`, Args: []any{text}}}
}

// TestAmendedAsks: what a summary carries on word for word reads as it was amended since, and without what was taken back.
func TestAmendedAsks(t *testing.T) {
	r := newRig(t, Settings{})
	asks := []compaction.Said{{Entry: "a", Text: "one"}, {Entry: "b", Text: "two"}, {Entry: "c", Text: "three"}, {Entry: "d", Text: "four"}}
	if got, err := r.amendedAsks(t.Context(), asks); err != nil || !slices.Equal(got, asks) {
		t.Errorf("where nobody amends: %+v, %v", got, err)
	}
	a := &amender{now: map[tidemark.EntryID]room.Now{"b": {Text: "2"}, "c": {Gone: true}}}
	r.Session.rooms = append(r.Session.rooms, a)
	if got, err := r.amendedAsks(t.Context(), nil); err != nil || got != nil || a.amended != nil {
		t.Errorf("of none: %+v, %v, asked %q", got, err, a.amended)
	}
	want := []compaction.Said{{Entry: "a", Text: "one"}, {Entry: "b", Text: "2"}, {Entry: "d", Text: "four"}}
	if got, err := r.amendedAsks(t.Context(), asks); err != nil || !slices.Equal(got, want) || !slices.Equal(a.amended, []string{"[a b c d]"}) {
		t.Errorf("%+v, %v, asked %q", got, err, a.amended)
	}
	a.fails = errFaulty
	if got, err := r.amendedAsks(t.Context(), asks); !errors.Is(err, errFaulty) || got != nil {
		t.Errorf("when it cannot tell: %+v, %v", got, err)
	}
}

// amends posts nothing: it carries out an amendment in a run of its own.
func (r *rig) amends(by tidemark.Origin, a Amendment) *run {
	r.t.Helper()
	x := r.working(stateCalling)
	if err := r.amend(r.t.Context(), x, queued{ID: "input", Kind: inputAmend, Origin: by, At: r.clock.Now(), Payload: []byte(mustJSON(mustJSON(a)))}); err != nil {
		r.t.Fatal(err)
	}
	r.exec(`UPDATE runs SET state = 'done' WHERE key = ?`, string(r.Key))
	return x
}

// TestAmendIsWritten: what is written of an amendment, and that a plan which may have read the words of before is dropped.
func TestAmendIsWritten(t *testing.T) {
	ann := tidemark.Origin{From: tidemark.FromPerson, Channel: "app", Peer: "ann", Message: "m1"}
	for _, row := range []struct {
		name   string
		a      Amendment
		behind int64 // where the plan ends, behind the message
		now    string
		plan   string
		event  string
		reason string
	}{
		{"an edit", Amendment{Edits: "m1", Text: "nine"}, 0, "nine", "dropped", "edit: A message was corrected by who wrote it. The log keeps both.", history.ReasonEdit},
		{"a revoke", Amendment{Revokes: "m1"}, 1, room.TakenBack, "dropped", "revoke: A message was taken back by who wrote it: it is not in view any more. The log keeps it.", history.ReasonRevoke},
		{"behind a plan", Amendment{Edits: "m1", Text: "nine"}, -1, "nine", "open", "edit: A message was corrected by who wrote it. The log keeps both.", history.ReasonEdit},
	} {
		t.Run(row.name, func(t *testing.T) {
			r, a, q := newRig(t, Settings{}), &amender{}, &addressed{}
			r.Session.rooms = append(r.Session.rooms, a, q)
			r.person("something else")
			e := r.logs(r.Session, ann, tidemark.NewText(tidemark.User, "seven"))
			p := &plan{Draft: summary.Draft{ID: "plan", Log: e.Log}, Act: compaction.Act{Summarize: -1}, Last: e.Seq + row.behind, Tier: tierFull}
			r.runs(p.insertStmt(r.Key))
			sub := r.listens()
			r.amends(ann, row.a)
			if got := heard(sub); got != "event  "+row.event {
				t.Errorf("who listens hears %q", got)
			}
			if a.done != 1 || !slices.Equal(a.amended, []string{string(e.ID) + " " + row.now}) || !slices.Equal(q.amended, []string{"m1 " + row.now}) {
				t.Errorf("told %q and %q, done %d", a.amended, q.amended, a.done)
			}
			r.reads(row.now, `SELECT text FROM prompts WHERE hash = 'amended' LIMIT 1`)
			r.reads(row.now, `SELECT text FROM prompts WHERE hash = 'quoted' LIMIT 1`)
			r.reads(row.plan, `SELECT state FROM plans WHERE id = 'plan' LIMIT 1`)
			r.reads(`["person"] `+row.reason+` person`, `SELECT json_extract(payload, '$.by'), json_extract(payload, '$.reason'), json_extract(origin, '$.from') FROM entries WHERE kind = 'overlay' LIMIT 2`)
			if v, err := r.View(t.Context()); err != nil || v.Items[1].Message.PlainText() != row.now {
				t.Errorf("it reads %+v, %v", v.Items, err)
			}
		})
	}
}

// TestAmendsItsOwn: a run that goes on carries out what amends a message that it took itself, before it asks; what amends another
// one has a run of its own.
func TestAmendsItsOwn(t *testing.T) {
	for _, row := range []struct {
		name  string
		about string
		reads string
		state string
	}{{"its own", "m1", "six, nine", "done"}, {"another", "m0", "six, seven", "new"}, {"what is not here", "m9", "six, seven", "new"}} {
		r := newRig(t, Settings{})
		ann := func(message, input string) tidemark.Origin {
			return tidemark.Origin{From: tidemark.FromPerson, Channel: "app", Peer: "ann", Message: message, Input: input}
		}
		r.logs(r.Session, ann("m0", "in0"), tidemark.NewText(tidemark.User, "six"))
		x := r.working(stateCalling)
		x.took = []string{"in1"}
		r.logs(r.Session, ann("m1", "in1"), tidemark.NewText(tidemark.User, "seven"))
		by := ann("", "")
		r.exec(`INSERT INTO inputs(key, id, kind, state, at, origin, payload, hash, run) VALUES(?, 'late', 'amend', 'new', ?, ?, ?, '', '')`,
			string(r.Key), rigNoon, mustJSON(by), mustJSON(mustJSON(Amendment{Edits: row.about, Text: "nine"})))
		if done, err := r.take(t.Context(), x); done || err != nil {
			t.Fatalf("%s: %v, %v", row.name, done, err)
		}
		v, err := r.View(t.Context())
		if err != nil || len(v.Items) != 2 {
			t.Fatalf("%s: %+v, %v", row.name, v.Items, err)
		}
		if got := v.Items[0].Message.PlainText() + ", " + v.Items[1].Message.PlainText(); got != row.reads || x.State != stateCalling {
			t.Errorf("%s: it reads %q in %s", row.name, got, x.State)
		}
		r.reads(row.state, `SELECT state FROM inputs WHERE id = 'late' LIMIT 1`)
	}
}

// TestAmendOfNothingHere: words that correct a message which is not here are a message with the time and the origin of the
// input, which can be corrected again; to take back what is not here does nothing.
func TestAmendOfNothingHere(t *testing.T) {
	r := newRig(t, Settings{})
	r.opened("agent:main:aunt", Settings{})
	r.exec(`UPDATE heads SET active = 5`)
	bob := tidemark.Origin{From: tidemark.FromPerson, Channel: "app", Peer: "bob", Owner: true, Message: "m9", Input: "other"}
	r.amends(bob, Amendment{Edits: "never", Text: "ten"})
	v, err := r.View(t.Context())
	if err != nil || len(v.Items) != 1 {
		t.Fatalf("%+v, %v", v.Items, err)
	}
	e, err := r.Session.log.Entry(t.Context(), v.Items[0].ID)
	want := tidemark.Origin{From: tidemark.FromPerson, Channel: "app", Peer: "bob", Owner: true, Quiet: true, Message: "never", Input: "input"}
	if err != nil || e.Origin != want || e.At.UnixMilli() != rigNoon || e.Tokens != tidemark.Estimate(v.Items[0].Message) || v.Items[0].Message.PlainText() != notHere+"ten" || e.Chain == "" {
		t.Errorf("%+v, %v", e, err)
	}
	r.reads(fmt.Sprint("agent:main:aunt 0 5; agent:main:main 1 ", rigNoon), `SELECT key, messages, active FROM heads ORDER BY key LIMIT 9`)
	r.amends(bob, Amendment{Edits: "never", Text: "eleven"})
	r.amends(bob, Amendment{Revokes: "nothing"})
	if v, err = r.View(t.Context()); err != nil || len(v.Items) != 1 || v.Items[0].Message.PlainText() != "eleven" {
		t.Errorf("%+v, %v", v.Items, err)
	}
}

// TestAmendedIsTheirOwn: a message is found by its name among the last messages of its conversation, if who amends it wrote it
// over the same channel; events between them do not count.
func TestAmendedIsTheirOwn(t *testing.T) {
	r := newRig(t, Settings{})
	ann := tidemark.Origin{From: tidemark.FromPerson, Channel: "app", Peer: "ann", Message: "m1"}
	r.logs(r.opened("agent:main:aunt", Settings{}), ann, tidemark.NewText(tidemark.User, "of the aunt"))
	if _, ok, err := r.amended(t.Context(), r.current(), ann, "m1"); ok || err != nil {
		t.Errorf("that of another conversation is found, %v", err)
	}
	r.logs(r.Session, ann, tidemark.NewText(tidemark.User, "old"))
	e := r.logs(r.Session, ann, tidemark.NewText(tidemark.User, "seven")) // of two the later
	var stmts []tidemark.Stmt
	for i := range amendBack {
		stmts = append(stmts, r.eventStmt(e.Log, tidemark.Event{Type: "notice", Text: fmt.Sprint(i)}))
	}
	r.runs(stmts...)
	for _, row := range []struct {
		channel, peer, message string
		found                  bool
	}{{"app", "ann", "m1", true}, {"web", "ann", "m1", false}, {"app", "bob", "m1", false}, {"app", "ann", "m2", false}, {"app", "ann", "", false}} {
		got, ok, err := r.amended(t.Context(), e.Log, tidemark.Origin{Channel: row.channel, Peer: row.peer}, row.message)
		if err != nil || ok != row.found || ok && got.ID != e.ID {
			t.Errorf("%+v: %v, %v, %v", row, got.ID, ok, err)
		}
	}
}

// skipperOf notes which runs it lets go of.
type skipperOf struct {
	room.KeepsAll
	letGo []string
}

func (s *skipperOf) EndWait(run string) { s.letGo = append(s.letGo, run) }

func (*skipperOf) EndStmts() []tidemark.Stmt {
	return []tidemark.Stmt{{SQL: `INSERT INTO prompts(hash, text) VALUES('ended', '')`}}
}

// TestQuietRunEnds: a run whose inputs want no answer ends with them, is let go of, and who waits for one of them hears it.
func TestQuietRunEnds(t *testing.T) {
	r, k := newRig(t, Settings{}), &skipperOf{}
	r.Session.rooms = append(r.Session.rooms, k)
	x, sub := r.working(stateCalling), r.listens()
	r.exec(`INSERT INTO inputs(key, id, kind, state, at, origin, payload, hash, run) VALUES(?, 'a', 'message', 'taken', 0, '{}', '', '', ?), (?, 'b', 'message', 'taken', 0, '{}', '', '', 'other')`,
		string(r.Key), x.ID, "agent:main:aunt")
	if err := r.endUnanswered(t.Context(), x, []queued{{ID: "a"}}, []tidemark.Stmt{{SQL: `UPDATE heads SET messages = 7 WHERE key = ?`, Args: []any{string(r.Key)}}}); err != nil {
		t.Fatal(err)
	}
	if got := heard(sub); got != "done a" || !slices.Equal(k.letGo, []string{x.ID}) || x.State != stateDone {
		t.Errorf("heard %q, let go of %q, state %s", got, k.letGo, x.State)
	}
	r.reads("ended", `SELECT hash FROM prompts LIMIT 9`) // by a room
	r.reads("a done; b taken", `SELECT id, state FROM inputs ORDER BY id LIMIT 9`)
	r.reads("7", `SELECT messages FROM heads WHERE key = ? LIMIT 1`, string(r.Key))
	r.faulty.refuses("UPDATE runs")
	if err := r.endUnanswered(t.Context(), x, nil, nil); !errors.Is(err, errFaulty) || !strings.Contains(err.Error(), "take inputs") {
		t.Errorf("when it cannot be written: %v", err)
	}
}
