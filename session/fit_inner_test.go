package session

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/summary"
)

// TestFitLeavesIt: what becomes of a plan that was begun where nothing is to be planned: it is dropped when it is not needed any
// more, and stays while the summariser rests, and while it is owed.
func TestFitLeavesIt(t *testing.T) {
	for _, row := range []struct {
		name    string
		set     Settings
		size    tidemark.Tokens // of the view, whose limit is 4500
		rests   bool
		replace tidemark.EntryID
		want    string
	}{
		{"within the limit", Settings{}, 4500, false, "", "dropped"},
		{"within the limit, and owed", Settings{}, 4500, false, "o", "open"},
		{"over the limit, at rest", Settings{}, 4501, true, "", "open"},
		{"over the limit, where nothing is compacted", Settings{NoCompaction: true}, 4501, true, "", "dropped"},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.set.Window, row.set.Reserve, row.set.Keep = 6000, 1500, 1200
			r := newRig(t, row.set)
			x := r.working(stateCalling)
			if row.rests {
				r.exec(`UPDATE heads SET cooldown = ? WHERE key = ?`, rigNoon+60_000, string(r.Key))
			}
			p := &plan{Draft: summary.Draft{ID: "p", Log: x.Log}, Reason: string(fitAuto), Act: compaction.Act{Summarize: -1, Replaces: row.replace}}
			r.runs(p.insertStmt(r.Key))
			v := spoken(saidBy(tidemark.FromPerson, "hello"))
			v.Log, v.Size = x.Log, row.size
			if got, err := r.fit(t.Context(), x, v, fitAuto); err != nil || !reflect.DeepEqual(got, v) {
				t.Errorf("%+v, %v", got, err)
			}
			r.reads(row.want, `SELECT state FROM plans LIMIT 9`)
		})
	}
}

// TestFellShort: that nothing can leave a view over its limit is told once in a while, where markers stand for what leaves, and
// only of what was not asked for.
func TestFellShort(t *testing.T) {
	short := compaction.Act{Short: 40}
	for _, row := range []struct {
		name     string
		pointing bool
		mode     fitMode
		act      compaction.Act
		tokens   tidemark.Tokens // of the newest message
		want     string
	}{
		{"nothing can leave", true, fitAuto, short, 10, "event  notice: Nothing can leave the view: 40 tokens over what was asked remain, pinned or of the newest turns."},
		{"the newest message alone is too large", true, fitAuto, short, 5251, "event  notice: The newest message alone is too large: about 5251 tokens, and 4500 may be sent. Send it in parts, or less of it."},
		{"a summary will tell", false, fitAuto, short, 10, ""},
		{"a person asked", true, fitManual, short, 10, ""},
		{"it is within the limit", true, fitAuto, compaction.Act{}, 10, ""},
		{"something leaves", true, fitAuto, compaction.Act{Short: 40, Edits: []tidemark.Edit{{}}}, 10, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, Settings{Window: 6000, Reserve: 1500, Keep: 1200})
			if row.pointing {
				r.Strategies = []compaction.Strategy{compaction.Pointer{}}
			}
			if err := r.loadSettings(t.Context()); err != nil {
				t.Fatal(err)
			}
			x, sub := r.working(stateCalling), r.listens()
			v := spoken(saidBy(tidemark.FromPerson, "hello"))
			v.Items[0].Tokens = row.tokens
			for range 2 { // the second time it rests
				if err := r.fellShort(t.Context(), x, row.mode, row.act, v); err != nil {
					t.Fatal(err)
				}
			}
			if got := heard(sub); got != row.want {
				t.Errorf("heard %q, want %q", got, row.want)
			}
			if row.want == "" {
				r.reads("0", `SELECT cooldown FROM heads WHERE key = ? LIMIT 1`, string(r.Key))
				return
			}
			r.reads(fmt.Sprint(rigNoon+cooldowns[0].Milliseconds()), `SELECT cooldown FROM heads WHERE key = ? LIMIT 1`, string(r.Key))
			var data Compacted
			if err := json.Unmarshal([]byte(r.table(`SELECT json_extract(payload, '$.data') FROM entries WHERE kind = 'event' LIMIT 9`)), &data); err != nil {
				t.Fatal(err)
			}
			if want := (Compacted{Reason: "threshold", By: []string{}, Limit: 4500, Short: 40}); !reflect.DeepEqual(data, want) {
				t.Errorf("%+v, want %+v", data, want)
			}
		})
	}
	r := newRig(t, Settings{Window: 6000, Reserve: 1500, Keep: 1200})
	r.Strategies = []compaction.Strategy{compaction.Pointer{}}
	if err := r.loadSettings(t.Context()); err != nil {
		t.Fatal(err)
	}
	x := r.working(stateCalling)
	for refused, want := range map[string]string{"UPDATE heads SET cooldown": "record what did not leave", "FROM heads WHERE key": ""} {
		r.faulty.refuses(refused)
		if err := r.fellShort(t.Context(), x, fitAuto, short, View{}); !errors.Is(err, errFaulty) || !strings.Contains(err.Error(), want) {
			t.Errorf("without %q: %v", refused, err)
		}
	}
}

// TestInstallRefuses: an act that the view could not show whole beside what stands is not installed: its plan is dropped, and the
// same is not planned again at once.
func TestInstallRefuses(t *testing.T) {
	r := newRig(t, Settings{})
	var e []tidemark.Entry
	for i := range 6 {
		e = append(e, r.person(fmt.Sprint("message ", i, strings.Repeat(" of many words", 50))))
	}
	r.overlaid(tidemark.Overlay{By: []string{"x"}, Edits: []tidemark.Edit{{From: e[1].ID, To: e[3].ID}}})
	v, err := r.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	x := r.working(stateCalling)
	stub := tidemark.Edit{From: e[4].ID, Block: 1, Blocks: []tidemark.Block{tidemark.Text("a stub")}} // of what the span takes away
	p := &plan{Draft: summary.Draft{ID: "p", Log: x.Log}, Act: compaction.Act{By: []string{"pointer"}, Summarize: -1, Edits: []tidemark.Edit{{From: e[4].ID, To: e[5].ID}, stub}}}
	r.runs(p.insertStmt(r.Key))
	if err := r.install(t.Context(), x, v, p, archive.Info{}, compaction.Digest{}); !errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), "overlap") {
		t.Errorf("it is installed, %v", err)
	}
	q := &plan{Draft: summary.Draft{ID: "q", Log: x.Log}, Act: compaction.Act{By: []string{"summary"}, Edits: []tidemark.Edit{{From: e[4].ID, To: e[4].ID}}}}
	r.runs(q.insertStmt(r.Key))
	err = r.install(t.Context(), x, v, q, archive.Info{}, compaction.Digest{Text: strings.Repeat("a summary of as many words ", 50)})
	if !errors.Is(err, tidemark.ErrNoGain) || !strings.Contains(err.Error(), "as large as what it replaces") {
		t.Errorf("a summary that frees nothing: %v", err)
	}
	r.reads("dropped; dropped", `SELECT state FROM plans LIMIT 9`)
	r.reads("1", `SELECT count(*) FROM entries WHERE kind = 'overlay' LIMIT 1`)
	r.reads(fmt.Sprint(rigNoon+cooldowns[0].Milliseconds()), `SELECT cooldown FROM heads WHERE key = ? LIMIT 1`, string(r.Key))
}

// TestShortAndSummarised: an act that leaves the view over its limit has the strategies rest where it asked no model; the first
// message of a log is archived like the others.
func TestShortAndSummarised(t *testing.T) {
	for _, row := range []struct {
		name      string
		summarise int
		cooldown  int64
	}{{"by a marker", -1, rigNoon + cooldowns[0].Milliseconds()}, {"by a summary", 0, 0}} {
		r := newRig(t, Settings{Window: 6000, Reserve: 1500, Keep: 1200})
		r.Strategies = []compaction.Strategy{compaction.Pointer{}, compaction.Summary{}}
		if err := r.loadSettings(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.asks(summing{})
		r.Session.Agent = &listening{}
		first := r.person("We decided on oak for the door." + strings.Repeat(" and on more of it", 100))
		r.person(strings.Repeat("all the rest of it ", 1000))
		v, err := r.View(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		x := r.working(stateCalling)
		edit := compaction.Marker{Count: 1}.Put(tidemark.Edit{From: first.ID, To: first.ID})
		p := &plan{Draft: summary.Draft{ID: "p", Log: x.Log}, Last: first.Seq, ChunkSize: 1500, Tier: tierFull, At: r.clock.Now(), Act: compaction.Act{By: []string{"x"}, Summarize: row.summarise, Edits: []tidemark.Edit{edit}}}
		r.runs(p.insertStmt(r.Key))
		if err := r.carryOut(t.Context(), x, v, p, false); err != nil {
			t.Errorf("%s: %v", row.name, err)
		}
		r.reads(fmt.Sprint("1 ", row.cooldown), `SELECT compactions, cooldown FROM heads WHERE key = ? LIMIT 1`, string(r.Key))
		r.reads("1 1", `SELECT first, last FROM parts LIMIT 9`)
	}
}

// TestSummaryOwed: what becomes of the plans that stand when a summary that is owed is to be made, while the model is away: that
// of the conversation gives way, its own goes on, and it is due again. What is not shown any more is not owed.
func TestSummaryOwed(t *testing.T) {
	for _, row := range []struct {
		name    string
		shown   bool
		has     string // "": no plan; "own": one that replaces it; "other": one of the conversation
		plans   string
		dueness bool
	}{
		{"shown", true, "", "again open", true},
		{"its own plan goes on", true, "own", "kept open", true},
		{"that of the conversation gives way", true, "other", "again open; threshold dropped", true},
		{"not shown any more", false, "", "", false},
		{"not shown, with its own plan", false, "own", "kept dropped", false},
		{"not shown, with one of the conversation", false, "other", "threshold open", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, Settings{})
			r.asks(unwilling{&tidemark.APIError{Class: tidemark.ClassAuth, Message: "no"}})
			gone := r.person("Another span stands before it.")
			r.overlaid(tidemark.Overlay{By: []string{"x"}, Edits: []tidemark.Edit{{From: gone.ID, To: gone.ID}}})
			a, b := r.person("We decided on oak for the door."), r.model("Fine.")
			edit := tidemark.Edit{From: a.ID, To: b.ID, Messages: []tidemark.Message{tidemark.NewText(tidemark.User, compaction.SummaryMarker+" an extract")}, Data: []byte(mustJSON(compaction.Digest{Text: "an extract"}))}
			o := r.overlaid(tidemark.Overlay{By: []string{"summary"}, Edits: []tidemark.Edit{edit}})
			if !row.shown {
				r.overlaid(tidemark.Overlay{Lifts: []tidemark.EntryID{o.ID}})
			}
			x := r.working(stateCalling)
			own := edit
			own.Messages, own.Data = nil, nil
			p := &plan{Draft: summary.Draft{ID: "p", Log: x.Log}, Reason: "kept", ChunkSize: 1000, Tier: tierFull, Act: compaction.Act{By: []string{"summary"}, Edits: []tidemark.Edit{own}, Replaces: o.ID}}
			if row.has == "other" {
				p.Reason, p.Act.Replaces = string(fitAuto), ""
			}
			if row.has != "" {
				r.runs(p.insertStmt(r.Key))
			}
			if err := r.summarizeAgain(t.Context(), x, o.ID); err != nil {
				t.Fatal(err)
			}
			r.reads(row.plans, `SELECT reason, state FROM plans ORDER BY reason LIMIT 9`)
			want := ""
			if row.dueness {
				want = fmt.Sprint("main again ", rigNoon+cooldowns[0].Milliseconds(), " ", o.ID)
			}
			r.reads(want, dueRows)
			if without, err := r.viewWithout(t.Context(), x.Log, o.ID); err != nil || len(without.Items) != 2 || without.Items[0].ID != a.ID {
				t.Errorf("without it the view has %+v, %v", without.Items, err)
			}
		})
	}
}

// summing is a model that writes a summary.
type summing struct{}

func (summing) Stream(context.Context, tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	reply := tidemark.Reply{Message: tidemark.NewText(tidemark.Assistant, "<summary>We decided on oak for the door.</summary><memories>\n- The door is of oak\n</memories>")}
	return func(yield func(tidemark.Delta, error) bool) { yield(tidemark.Delta{Reply: &reply}, nil) }
}

// TestOwedIsWritten: a summary that was owed stands in the place of the extract, is checked as others are, and is owed no more.
func TestOwedIsWritten(t *testing.T) {
	r, a := newRig(t, Settings{}), &listening{}
	r.asks(summing{})
	r.Session.Agent, r.Session.rooms = a, append(r.Session.rooms, &checker{})
	checks := 0
	r.Observe = func(n Notice) {
		if n.Type == NoticeChecked {
			checks++
		}
	}
	first, last := r.person("We decided on oak for the door."), r.model("Fine.")
	o := r.overlaid(tidemark.Overlay{By: []string{"summary"}, Edits: []tidemark.Edit{{From: first.ID, To: last.ID,
		Messages: []tidemark.Message{tidemark.NewText(tidemark.User, compaction.SummaryMarker+" an extract")}, Data: []byte(mustJSON(compaction.Digest{Text: "an extract"}))}}})
	if err := r.summarizeAgain(t.Context(), r.working(stateCalling), o.ID); err != nil {
		t.Fatal(err)
	}
	v, err := r.View(t.Context())
	if err != nil || len(v.Items) != 1 || v.Shown[0].Overlay == o.ID || !strings.Contains(v.Items[0].Message.PlainText(), "We decided on oak") || checks != 1 {
		t.Errorf("%+v, %v, checked %d times", v.Items, err, checks)
	}
	r.reads("again done", `SELECT reason, state FROM plans LIMIT 9`)
	r.reads("", `SELECT kind FROM due WHERE kind IN ('again', 'outbox') LIMIT 9`)
	if len(a.heard) != 2 || !strings.HasPrefix(a.heard[0], "fact "+r.current()+"/") {
		t.Errorf("the agent hears %q", a.heard)
	}
}

// TestAgainIsQueued: a summary that is owed becomes an input of its own with each try, and is not due any more, while what is
// due otherwise or later stays.
func TestAgainIsQueued(t *testing.T) {
	r := newRig(t, Settings{})
	r.opened("agent:main:aunt", Settings{})
	r.exec(`UPDATE heads SET failures = 2 WHERE key = ?`, string(r.Key))
	r.isDue("main", dueAgain, rigNoon, "o")
	r.isDue("main", "extract:x", 0, "")
	r.isDue("aunt", dueAgain, 0, "o")
	if err := r.queueAgain(t.Context(), "o"); err != nil {
		t.Fatal(err)
	}
	r.rests()
	r.reads("agent:main:main again:o:2 summarize-again done", `SELECT key, id, kind, state FROM inputs LIMIT 9`)
	const due = `SELECT substr(key, 12), kind, at FROM due WHERE kind IN ('again', 'extract:x') ORDER BY key, kind LIMIT 9`
	r.reads("aunt again 0; main extract:x 0", due)
	r.isDue("main", dueAgain, rigNoon+1, "o") // its run made the next try due
	if err := r.queueAgain(t.Context(), "o"); err != nil {
		t.Fatal(err)
	}
	r.rests()
	r.reads(fmt.Sprint("aunt again 0; main again ", rigNoon+1, "; main extract:x 0"), due)
	r.faulty.refuses("FROM heads WHERE key")
	if err := r.queueAgain(t.Context(), "o"); !errors.Is(err, errFaulty) {
		t.Errorf("%v", err)
	}
}

// TestNothingToCompact: who asks for a compaction that frees nothing reads so, and that the newest message is the reason where it
// is; the command is done.
func TestNothingToCompact(t *testing.T) {
	for _, row := range []struct {
		name  string
		words int
		want  string
	}{
		{"little", 1, "event  notice: Nothing to compact yet: what would leave the view is smaller than a summary of it."},
		{"one message is too large", 3600, "event  notice: The newest message alone is too large: about 5409 tokens, and 4500 may be sent. Send it in parts, or less of it."},
	} {
		r := newRig(t, Settings{Window: 6000, Reserve: 1500, Keep: 1200})
		r.person(strings.Repeat("word ", row.words))
		r.model("ok")
		x, sub := r.working(stateCalling), r.listens()
		x.command = &queued{ID: "in"}
		if err := r.compactNow(t.Context(), x, ""); !errors.Is(err, tidemark.ErrNoGain) {
			t.Errorf("%s: %v", row.name, err)
		}
		if got := heard(sub); got != row.want || x.State != stateDone {
			t.Errorf("%s: heard %q, the run is %s", row.name, got, x.State)
		}
	}
}

// compactor is a room that hears of compactions.
type compactor struct{ heard []string }

func (c *compactor) Tune(_ context.Context, list []compaction.Strategy) ([]compaction.Strategy, error) {
	return list, nil
}

func (c *compactor) Compacted(_ context.Context, log string, edits []tidemark.Edit) {
	c.heard = append(c.heard, fmt.Sprint(log, " ", len(edits)))
}

// TestFitWithoutAModel: while the summariser is away a view stays as it is, unless the call could not be made with it; then an
// extract stands in, of which rooms hear, and which is remembered where it may have been for nothing.
func TestFitWithoutAModel(t *testing.T) {
	for _, row := range []struct {
		name  string
		mode  fitMode
		size  tidemark.Tokens // the limit is 4500, the window 6000
		made  bool
		fails bool
	}{
		{"over the limit", fitAuto, 6000, false, false},
		{"over the window", fitAuto, 6001, true, false},
		{"it was refused", fitForced, 4501, true, false},
		{"a person asked", fitManual, 4501, false, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			r, c := newRig(t, Settings{Window: 6000, Reserve: 1500, Keep: 1200}), &compactor{}
			r.asks(unwilling{&tidemark.APIError{Class: tidemark.ClassAuth, Message: "no"}})
			r.Session.rooms = append(r.Session.rooms, c, &checker{})
			for i := range 8 {
				r.person(fmt.Sprint("We decided on oak for door ", i, strings.Repeat(" and on more of it", 100)))
				r.model("ok")
			}
			x := r.working(stateCalling)
			v, err := r.View(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			v.Size = row.size
			checks := 0
			r.Observe = func(n Notice) {
				if n.Type == NoticeChecked {
					checks++
				}
			}
			got, err := r.fit(t.Context(), x, v, row.mode)
			if (err != nil) != row.fails || (len(got.Shown) == 1) != row.made {
				t.Fatalf("%d overlays, %v", len(got.Shown), err)
			}
			tier, again, heard := "", "", []string(nil)
			if row.made { // and the summary is owed
				tier, again, heard = tierPlaintext, fmt.Sprint(rigNoon+cooldowns[0].Milliseconds(), " ", got.Shown[0].Overlay), []string{x.Log + " 1"}
			}
			r.reads(again, `SELECT at, data FROM due WHERE kind = 'again' LIMIT 9`)
			r.reads(tier, `SELECT json_extract(payload, '$.data.tier') FROM entries WHERE kind = 'event' AND json_extract(payload, '$.type') = 'compaction' LIMIT 9`)
			if checks != len(heard) {
				t.Errorf("it was checked %d times", checks)
			}
			if !slices.Equal(c.heard, heard) {
				t.Errorf("rooms heard %q", c.heard)
			}
		})
	}
}
