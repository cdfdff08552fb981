package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/schedule"
)

// TestEmptyFile: an empty file is there, and no version of it is kept when somebody writes into it; of a file that was not there one is.
func TestEmptyFile(t *testing.T) {
	w := newWorld(t)
	write(t, w.blobs, memory.Soul, "")
	f, err := w.File(t.Context(), memory.Soul)
	if err != nil || f.Size != 0 || f.ETag == "" {
		t.Fatalf("%+v, %v", f, err)
	}
	if _, err := w.PutFile(t.Context(), memory.Soul, []byte("kind\n"), f.ETag); err != nil {
		t.Fatal(err)
	}
	if _, err := w.PutFile(t.Context(), memory.Human, []byte("Ann\n"), ""); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{memory.Soul: 0, memory.Human: 1} {
		if list, err := w.Versions(t.Context(), path); err != nil || len(list) != want || want > 0 && (len(list[0].Content) != 0 || list[0].By != "edit" || !list[0].At.Equal(noon)) {
			t.Errorf("%s: versions %+v, %v", path, list, err)
		}
	}
	if _, err := w.File(t.Context(), memory.Identity); !errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("one that is not there: %v", err)
	}
}

// TestAlarmBeforeWrite: the alarm stands before a file is written, so that who is killed in between goes on soon.
func TestAlarmBeforeWrite(t *testing.T) {
	w := newWorld(t)
	var did []string
	down := false
	w.configure(func(c *agent.Config) {
		c.Schedule = func(at time.Time) { did = append(did, fmt.Sprint("alarm in ", at.Sub(w.clock.Now()))) }
	})
	w.blobs.Fail = func(op, _ string) error {
		if op == "put" {
			did = append(did, "put")
			if down {
				return tidemark.ErrUnavailable
			}
		}
		return nil
	}
	w.remember(scope(t, owners), "x1", "The owner keeps a boat")
	if want := []string{"alarm in 2s", "put"}; len(did) < 2 || !slices.Equal(did[:2], want) {
		t.Errorf("%q, want first %q", did, want)
	}
	for _, want := range [][]string{{"alarm in 2s", "put", "alarm in 2s"}, {"alarm in 2s", "put", "alarm in 4s"}} { // and then where the next try is
		w.clock.move(10 * time.Second)
		did, down = nil, true
		w.remember(scope(t, owners), fmt.Sprint("y", len(want[2]), want[2]), "The owner keeps a car, "+want[2])
		if !slices.Equal(did, want) {
			t.Errorf("where it fails %q, want %q", did, want)
		}
	}
}

// TestScheduleBySessionName: a schedule runs in the session that it names, by the name or by the key.
func TestScheduleBySessionName(t *testing.T) {
	p := newPlanner(t)
	for name, want := range map[string]string{"Garden": "agent:main:local:dm:garden", " agent:main:web:dm:X ": "agent:main:web:dm:x", "": "own", "MAIN": "main"} {
		if s := p.add(agent.Schedule{Session: name, Spec: schedule.Spec{Every: "24h"}}); s.Session != want {
			t.Errorf("%q: %q, want %q", name, s.Session, want)
		}
	}
	for _, name := range []string{"agent:other:main", "agent:main:proxy:dm:x", "a b"} {
		if _, err := p.AddSchedule(t.Context(), agent.Schedule{Prompt: "x", Session: name, Spec: schedule.Spec{Every: "24h"}}); !errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), "the key of a session of agent main") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestMissedOfEach: what a schedule missed is counted for it alone, and one that was for one time is done alone.
func TestMissedOfEach(t *testing.T) {
	p := newPlanner(t)
	for _, spec := range []schedule.Spec{{Cron: "0 * * * *", Zone: "UTC"}, {Cron: "30 * * * *", Zone: "UTC"}, {At: "2026-11-21 14:20", Zone: "UTC"}} {
		p.add(agent.Schedule{Spec: spec, CatchUp: "1m"})
	}
	for i, want := range []string{"missed+1, missed, missed, done", "missedx2+1, missedx2, missed, done", "missedx3+1, missedx3, missed, done"} {
		p.at(21, 15+i, 10)
		got := strings.Join([]string{p.runs("s1"), p.runs("s2"), p.runs("s3"), p.state("s3").State}, ", ")
		if one, two := p.state("s1"), p.state("s2"); got != want || one.State != agent.ScheduleOn || two.State != agent.ScheduleOn || one.Next.Sub(p.clock.Now()) != 50*time.Minute || two.Next.Sub(p.clock.Now()) != 20*time.Minute {
			t.Errorf("%s, want %s; next %v and %v", got, want, one.Next, two.Next)
		}
	}
	list, err := p.ScheduleRuns(t.Context(), "s1", 9)
	if err != nil || len(list) != 1 || !list[0].Finished.Equal(p.clock.Now()) || !list[0].Due.Equal(time.Date(2026, 11, 21, 15, 0, 0, 0, time.UTC)) {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestSearchSays: the tool says each line behind its place, and of a long one its beginning; a search gives as many as are asked for, ten
// where nobody says, and never more than fifty.
func TestSearchSays(t *testing.T) {
	w := newWorld(t)
	long := "walnut " + strings.Repeat("é", memory.MaxFact-len("walnut "))
	write(t, w.blobs, day, "- walnut\n\n- "+long+"\n- "+long+"é\n")
	text, ok := w.call(scope(t, owners), agent.ToolSearch, map[string]any{"query": "walnut"})
	got := strings.Split(text, "\n")
	slices.Sort(got)
	want := []string{day + ":1: walnut", day + ":3: " + long, day + ":4: " + long + "…"}
	if slices.Sort(want); !ok || !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	var b strings.Builder
	for i := range 60 {
		fmt.Fprintf(&b, "- boat number %d\n", i)
	}
	write(t, w.blobs, "memory/2026-11-20.md", b.String())
	for limit, want := range map[int]int{-1: 10, 0: 10, 1: 1, 11: 11, 50: 50, 51: 50} {
		if found, err := w.Search(t.Context(), scope(t, owners), "boat", limit); err != nil || len(found) != want {
			t.Errorf("limit %d: %d, %v", limit, len(found), err)
		}
	}
	text, ok = w.call(scope(t, owners), agent.ToolSearch, map[string]any{"query": "boat"})
	if n := strings.Count(text, "\n") + 1; !ok || n != 10 {
		t.Errorf("the tool gives %d lines", n)
	}
	if text, ok := w.call(scope(t, owners), agent.ToolSearch, map[string]any{"query": "zebra"}); !ok || text != "Nothing in memory has these words." {
		t.Errorf("of nothing: %q", text)
	}
}

// TestWindowsTold: so many windows are told at once, and none larger than any there is.
func TestWindowsTold(t *testing.T) {
	w := newWorld(t)
	told := func(n int, tokens tidemark.Tokens) (out []tidemark.Window) {
		for i := range n {
			out = append(out, tidemark.Window{Model: fmt.Sprint("m", i), Tokens: tokens, From: tidemark.WindowRefused}.Holds(noon))
		}
		return out
	}
	for _, row := range []struct {
		list []tidemark.Window
		ok   bool
	}{{told(8, 5_000), true}, {told(9, 5_000), false}, {told(1, 100_000_000), true}, {told(1, 100_000_001), false}, {told(1, 0), true}, {told(1, -1), false}} {
		if _, err := w.Windows(t.Context(), row.list); (err == nil) != row.ok || err != nil && !errors.Is(err, tidemark.ErrInvalid) {
			t.Errorf("%d windows of %d: %v", len(row.list), row.list[0].Tokens, err)
		}
	}
}

// noting are conversations that note what they are asked.
type noting struct {
	*rooms
	asks []recall.Ask
}

func (n *noting) Recall(ctx context.Context, key tidemark.Key, ask recall.Ask) (recall.Answer, error) {
	n.mu.Lock()
	n.asks = append(n.asks, ask)
	n.mu.Unlock()
	return n.rooms.Recall(ctx, key, ask)
}

// TestAskedOfEach: each conversation is asked for as many results as the whole may have, and for what is said in it.
func TestAskedOfEach(t *testing.T) {
	w, r := newRooms(t)
	n := &noting{rooms: r}
	w.configure(func(c *agent.Config) { c.Sessions = n })
	w.fill(r, noon.Add(-time.Hour), map[string]string{"garden": "walnut", "agent:main:whatsapp:dm:+491": "walnut"})
	for k, want := range map[int]int{-1: 8, 0: 8, 1: 1, 100: 100, 101: 100} {
		for _, ask := range []recall.Ask{{Query: "walnut", K: k, Own: "agent:main:main", Scope: recall.ScopeAgent}, {Query: "walnut", K: k, Scope: recall.ScopePeer, Peer: "whatsapp:+491"}} {
			n.asks = nil
			if _, err := w.Recall(t.Context(), scope(t, owners), ask); err != nil || len(n.asks) == 0 {
				t.Fatalf("%d are asked, %v", len(n.asks), err)
			}
			for _, a := range n.asks {
				if a.K != want || a.Scope != recall.ScopeSession || a.Peer != "" || a.Own != "" || a.Query != "walnut" {
					t.Errorf("for %d: asked %+v", k, a)
				}
			}
		}
	}
}

// TestLastNight: what is known of the last consolidation: when it was, what counts no more, what of the past the digest has, and which files
// a person keeps. Of an agent that never had one nothing is.
func TestLastNight(t *testing.T) {
	w := newWorld(t)
	w.configure(func(c *agent.Config) { c.Digest, c.Reconcile, c.Model = true, true, lastWord() })
	if n, err := w.LastNight(t.Context()); err != nil || !n.At.IsZero() || n.Last != nil || n.Superseded+n.Sittings+n.Compactions+len(n.Edited) != 0 {
		t.Errorf("before the first night %+v, %v", n, err)
	}
	w.remember(scope(t, owners), "x1", "The staging port is 8080")
	w.remember(scope(t, owners), "x2", "The staging port is 9090")
	own := scope(t, owners).Key
	if err := w.Sittings(t.Context(), []memory.Sitting{{Key: own, First: "A", Last: "B", From: noon, To: noon, Count: 2}, {Key: own, First: "C", Last: "D", From: noon, To: noon, Count: 2}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Report(t.Context(), tidemark.SessionInfo{}, []archive.Info{{Key: archive.PartKey("main", "01S", noon), SessionKey: own, Session: "01S", Agent: "main", Messages: 4, At: noon}}); err != nil {
		t.Fatal(err)
	}
	w.clock.move(time.Hour)
	c := w.consolidate()
	write(t, w.blobs, memory.DigestFile, "# mine\n")
	w.remember(scope(t, owners), "x3", "The owner keeps a boat")
	w.clock.move(time.Hour)
	w.consolidate()
	n, err := w.LastNight(t.Context())
	var last agent.Consolidated
	if err != nil || !n.At.Equal(w.clock.Now()) || n.Superseded != 1 || n.Sittings != 2 || n.Compactions != 1 || !slices.Equal(n.Edited, []string{memory.DigestFile}) || json.Unmarshal(n.Last, &last) != nil {
		t.Fatalf("%+v, %v", n, err)
	}
	if c.Decided != 1 || last.Decided != 0 || last.Entries != 5 || !slices.Equal(last.Suggested, []string{memory.Suggestion(memory.DigestFile)}) || !last.Digest || !last.Reconciled {
		t.Errorf("decided %d, then %+v", c.Decided, last)
	}
}

// TestArchivesWaiting: archives that are not in the index yet are on the first page, the newest first, and only those that are asked for.
func TestArchivesWaiting(t *testing.T) {
	w := newWorld(t)
	report := func(session string, minute int) {
		at := noon.Add(time.Duration(minute) * time.Minute)
		if err := w.Report(t.Context(), tidemark.SessionInfo{}, []archive.Info{{Key: archive.PartKey("main", session, at), SessionKey: owners, Session: session, Agent: "main", Part: int64(minute), Messages: 4, At: at}}); err != nil {
			t.Fatal(err)
		}
	}
	report("01S", 1)
	w.settle()
	w.blobs.Fail = func(op, _ string) error {
		if op == "put" {
			return tidemark.ErrUnavailable
		}
		return nil
	}
	report("01S", 2)
	report("01T", 3)
	for session, want := range map[string]string{"": "3 2 1", "01S": "2 1", "01T": "3", "01U": ""} {
		page, next, err := w.Archives(t.Context(), archive.ListOptions{Session: session})
		var got []string
		for _, i := range page {
			got = append(got, fmt.Sprint(i.Part))
		}
		if err != nil || next != "" || strings.Join(got, " ") != want {
			t.Errorf("of session %q: %q, want %q, %v", session, got, want, err)
		}
	}
}

// TestIDBounds: names of extractions and codes of questions are of so many bytes, and not empty.
func TestIDBounds(t *testing.T) {
	w := newWorld(t)
	for n, ok := range map[int]bool{0: false, 1: true, 256: true, 257: false} {
		err := w.Remember(t.Context(), extraction(scope(t, owners), strings.Repeat("x", n), fmt.Sprint("The boat number ", n)))
		if (err == nil) != ok || err != nil && !errors.Is(err, tidemark.ErrInvalid) {
			t.Errorf("an id of %d bytes: %v", n, err)
		}
	}
	for n, ok := range map[int]bool{0: false, 1: true, 20: true, 21: false} {
		err := w.Question(t.Context(), tidemark.Question{Code: strings.Repeat("X", n), Session: owners, Asked: noon, Expires: noon.Add(time.Hour)})
		if (err == nil) != ok || err != nil && !errors.Is(err, tidemark.ErrInvalid) {
			t.Errorf("a code of %d bytes: %v", n, err)
		}
	}
	var parts []recall.DigestPart
	for i := range int64(17) {
		parts = append(parts, digestPart(i+1, i+1, true, "walnut"))
	}
	for n, ok := range map[int]bool{16: true, 17: false} {
		if next, err := w.Digests(t.Context(), recall.DigestReport{Key: tidemark.Key(fmt.Sprintf("agent:main:local:dm:n%d", n)), Head: 20, At: noon, Parts: parts[:n]}); (err == nil) != ok || ok && next != 17 {
			t.Errorf("%d parts: %d, %v", n, next, err)
		}
	}
}

// TestAlarmOfSchedule: a schedule that is made sets the alarm to its first time.
func TestAlarmOfSchedule(t *testing.T) {
	p := newPlanner(t)
	var alarms []time.Duration
	p.configure(func(c *agent.Config) {
		c.Schedule = func(at time.Time) { alarms = append(alarms, at.Sub(p.clock.Now())) }
	})
	p.add(agent.Schedule{Spec: schedule.Spec{Every: "10m"}})
	if !slices.Equal(alarms, []time.Duration{10 * time.Minute}) || p.Soonest(noon.AddDate(1, 0, 0)).Sub(p.clock.Now()) != 10*time.Minute {
		t.Errorf("alarms in %v", alarms)
	}
}

// TestNothingBegins: what is due waits while schedules are off, and while the host begins none, and is done when it does.
func TestNothingBegins(t *testing.T) {
	p, resting := newPlanner(t), true
	night := p.wake()
	p.add(agent.Schedule{Spec: schedule.Spec{Every: "10m"}})
	p.clock.move(10 * time.Minute)
	for name, change := range map[string]func(*agent.Config){
		"they are off":  func(c *agent.Config) { c.NoSchedules = true },
		"the host ends": func(c *agent.Config) { c.Resting = func() bool { return resting } },
	} {
		cfg := p.cfg
		if p.configure(change); !p.wake().Equal(night) || p.homes.ids() != "" {
			t.Errorf("%s: begun %q", name, p.homes.ids())
		}
		if p.cfg.Resting == nil {
			p.cfg = cfg
		}
	}
	p.configure(func(c *agent.Config) { c.NoSchedules, c.Resting = false, func() bool { return resting } })
	resting = false
	if next := p.wake(); p.homes.ids() == "" || next.Equal(night) {
		t.Errorf("begun %q, and wakes at %v", p.homes.ids(), next)
	}
}

// TestGoesOnWithAll: of runs that no session took all are given anew with one wake.
func TestGoesOnWithAll(t *testing.T) {
	p := newPlanner(t)
	for range 3 {
		p.add(agent.Schedule{Spec: schedule.Spec{Cron: "0 15 * * *", Zone: "UTC"}})
	}
	p.homes.fail = tidemark.ErrUnavailable
	p.at(21, 15, 0)
	if got := []string{p.runs("s1"), p.runs("s2"), p.runs("s3")}; !slices.Equal(got, []string{"begun", "begun", "begun"}) {
		t.Fatalf("%v", got)
	}
	p.homes.fail = nil
	p.at(21, 15, 1)
	if got, want := p.homes.ids(), "schedule:s1:"+utc(21, 15, 0)+" schedule:s2:"+utc(21, 15, 0)+" schedule:s3:"+utc(21, 15, 0); got != want {
		t.Errorf("given %q, want %q", got, want)
	}
}

// TestSkillsGoAtOnce: a skill that is removed is not listed any more, and a file of one is not named.
func TestSkillsGoAtOnce(t *testing.T) {
	w := newWorld(t)
	main := scope(t, owners)
	for _, name := range []string{"boats", "weather"} {
		write(t, w.blobs, "skills/"+name+"/SKILL.md", skillFile(name, "about "+name, ""))
		write(t, w.blobs, "skills/"+name+"/one.md", "one")
	}
	list := func() (out []string) {
		t.Helper()
		text, ok := w.call(main, "skill", map[string]any{})
		if !ok {
			t.Fatal(text)
		}
		return strings.Split(text, "\n")
	}
	if got, want := list(), []string{"boats: about boats", "weather: about weather"}; !slices.Equal(got, want) {
		t.Fatalf("%q, want %q", got, want)
	}
	if text, ok := w.call(main, "skill", map[string]any{"name": "boats"}); !ok || !strings.HasSuffix(text, "Do boats so.\n[files of this skill, to be read by file: one.md]") {
		t.Errorf("with one file: %q", text)
	}
	if err := w.DeleteSkill(t.Context(), "boats", "one.md"); err != nil {
		t.Fatal(err)
	}
	if text, ok := w.call(main, "skill", map[string]any{"name": "boats"}); !ok || strings.Contains(text, "one.md") || w.stored("skills/boats/one.md") != "" {
		t.Errorf("without it: %q", text)
	}
	if err := w.DeleteSkill(t.Context(), "boats", ""); err != nil {
		t.Fatal(err)
	}
	if got := list(); !slices.Equal(got, []string{"weather: about weather"}) || w.stored("skills/weather/one.md") != "one" {
		t.Errorf("%q", got)
	}
	for _, c := range [][2]string{{"boats", ""}, {"weather", "two.md"}} {
		if err := w.DeleteSkill(t.Context(), c[0], c[1]); !errors.Is(err, tidemark.ErrNotFound) {
			t.Errorf("%v: %v", c, err)
		}
	}
	if err := w.DeleteSkill(t.Context(), "weather", "SKILL.md"); err != nil {
		t.Fatal(err)
	}
	if got := list(); !slices.Equal(got, []string{"There are no skills."}) {
		t.Errorf("without its main file: %q", got)
	}
}

// TestDamagedDigest: a digest that cannot be read is named, with the conversation that it is of.
func TestDamagedDigest(t *testing.T) {
	w, r := newRooms(t)
	w.fill(r, noon.Add(-time.Hour), map[string]string{"garden": "walnut"})
	if err := w.db.Tx(t.Context(), []tidemark.Stmt{{SQL: `UPDATE agent_digests SET digest = x'00' WHERE agent = 'main'`, Want: 1}}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Recall(t.Context(), scope(t, owners), recall.Ask{Query: "walnut"}); err == nil || !strings.Contains(err.Error(), "digest of agent:main:local:dm:garden at 1: ") {
		t.Errorf("%v", err)
	}
}

// TestNewerDecision: a decision over which a newer one of the same fact stands is not taken back, and which that is, is said.
func TestNewerDecision(t *testing.T) {
	w := newWorld(t)
	w.configure(func(c *agent.Config) { c.Reconcile, c.Model = true, lastWord() })
	w.remember(scope(t, owners), "x1", "The staging port is 8080")
	w.remember(scope(t, owners), "x2", "The staging port is 9090")
	w.consolidate()
	first := w.ledger()[0].ID
	if err := w.db.Tx(t.Context(), []tidemark.Stmt{{SQL: `INSERT INTO agent_ledger(agent, target, action, cause, reason, sources, who, at) SELECT agent, target, 'DELETE', cause, 'again', '[]', 'model', at FROM agent_ledger WHERE agent = 'main'`, Want: 1}}); err != nil {
		t.Fatal(err)
	}
	rows := w.ledger()
	want := fmt.Sprintf("row %d of the ledger: row %d says something newer of the same fact, undo that: ", first, rows[0].ID)
	if err := w.UndoDecision(t.Context(), first); !errors.Is(err, tidemark.ErrConflict) || !strings.HasPrefix(err.Error(), want) || len(rows) != 2 || !rows[0].InForce || rows[1].InForce {
		t.Errorf("%v, want %s; %+v", err, want, rows)
	}
	if err := w.UndoDecision(t.Context(), rows[0].ID); err != nil || len(w.ledger()) != 3 {
		t.Errorf("%v", err)
	}
	if err := w.UndoDecision(t.Context(), w.ledger()[0].ID); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("an undo is taken back: %v", err)
	}
}
