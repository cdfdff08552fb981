package agent_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/schedule"
	"github.com/tidemark-ai/tidemark/skill"
)

// TestSweptSections: at night what was written into files long ago is forgotten; what was written lately, and what waits, is not.
func TestSweptSections(t *testing.T) {
	w := newWorld(t)
	w.remember(scope(t, owners), "old", "The owner keeps a boat")
	next, err := w.Wake(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.clock.move(29 * 24 * time.Hour)
	x := extraction(scope(t, owners), "new", "The owner keeps a car")
	if x.At = w.clock.Now(); w.Remember(t.Context(), x) != nil {
		t.Fatal("not remembered")
	}
	w.blobs.Fail = func(op, key string) error {
		if op == "put" && strings.HasSuffix(key, ".md") {
			return tidemark.ErrUnavailable
		}
		return nil
	}
	if x = extraction(scope(t, owners), "waits", "The owner keeps a dog"); w.Remember(t.Context(), x) != nil {
		t.Fatal("not remembered")
	}
	w.clock.move(2 * 24 * time.Hour)
	if _, err = w.Wake(t.Context()); err != nil || next.IsZero() {
		t.Fatal(err)
	}
	rows, err := w.db.Query(t.Context(), `SELECT id FROM agent_sections WHERE agent = 'main' ORDER BY id LIMIT 9`)
	var got []string
	for _, r := range rows {
		got = append(got, r.Text(0))
	}
	if err != nil || !slices.Equal(got, []string{"new", "waits"}) {
		t.Errorf("left are %q, %v", got, err)
	}
}

// TestSkillMeanwhile: a skill that is written while the bucket is looked through is there at once.
func TestSkillMeanwhile(t *testing.T) {
	w := newWorld(t)
	write(t, w.blobs, "skills/boats/SKILL.md", skillFile("boats", "about boats", ""))
	w.blobs.Fail = func(op, key string) error {
		if op == "get" && strings.Contains(key, "/skills/boats/") {
			w.blobs.Fail = nil
			if _, err := w.PutSkill(t.Context(), "weather", skill.Main, []byte(skillFile("weather", "about weather", "")), ""); err != nil {
				t.Error(err)
			}
		}
		return nil
	}
	for range 2 {
		if text, ok := w.call(scope(t, owners), skill.Tool, map[string]any{}); !ok || !strings.Contains(text, "boats: about boats") {
			t.Errorf("%q", text)
		}
	}
	if text, ok := w.call(scope(t, owners), skill.Tool, map[string]any{}); !ok || text != "boats: about boats\nweather: about weather" {
		t.Errorf("then %q", text)
	}
}

// TestWrittenOnce: a section that one file has taken up waits for another one still, though both have one name.
func TestWrittenOnce(t *testing.T) {
	w := newWorld(t)
	peer := memory.PeerDaily("whatsapp:+491", "2026-11-21")
	w.blobs.Fail = func(op, key string) error {
		if op == "put" && strings.HasSuffix(key, peer) {
			return tidemark.ErrUnavailable
		}
		return nil
	}
	w.remember(scope(t, "agent:main:whatsapp:dm:+491"), "p1", "Ann keeps a boat")
	w.clock.move(10 * time.Second)
	if _, err := w.Wake(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.stored(day); strings.Count(got, peer) != 1 || w.stored(peer) != "" {
		t.Errorf("the owner's file\n%s\nthe peer's\n%s", got, w.stored(peer))
	}
	if f, err := w.File(t.Context(), peer); err != nil || !strings.Contains(string(f.Content), "Ann keeps a boat") {
		t.Errorf("%+v, %v", f, err)
	}
	w.blobs.Fail = nil
	w.settle()
	if got := w.stored(peer); strings.Count(got, "Ann keeps a boat") != 1 || strings.Count(w.stored(day), peer) != 1 {
		t.Errorf("at last\n%s", got)
	}
}

// TestRunsOfOne: what is told of the end of a run is of that run, and a run that ended hears of no other end.
func TestRunsOfOne(t *testing.T) {
	p := newPlanner(t)
	for range 2 {
		p.add(agent.Schedule{Spec: schedule.Spec{Cron: "0 * * * *", Zone: "UTC"}})
	}
	p.at(21, 14, 0)
	ran := func(id string, due string, out tidemark.Outcome) {
		t.Helper()
		var ms int64
		if _, err := fmt.Sscan(due, &ms); err != nil {
			t.Fatal(err)
		}
		if err := p.Ran(t.Context(), tidemark.Ran{Schedule: id, Due: ms, Session: tidemark.Key("agent:main:schedule:dm:" + id), At: p.clock.Now(), Outcome: out}); err != nil {
			t.Fatal(err)
		}
	}
	ran("s1", utc(21, 14, 0), tidemark.Outcome{Error: "red"})
	if got := []string{p.runs("s1"), p.runs("s2")}; !slices.Equal(got, []string{"failed", "running"}) || p.state("s1").Fails != 1 || p.state("s2").Fails != 0 {
		t.Errorf("%q", got)
	}
	ran("s1", utc(21, 14, 0), tidemark.Outcome{Text: "Fine."}) // it has ended
	ran("s2", utc(21, 13, 0), tidemark.Outcome{Text: "Fine."}) // there was none
	if got := []string{p.runs("s1"), p.runs("s2")}; !slices.Equal(got, []string{"failed", "running"}) || p.state("s1").Fails != 1 {
		t.Errorf("later %q", got)
	}
	p.at(21, 15, 0)
	ran("s1", utc(21, 15, 0), tidemark.Outcome{Text: "Fine."})
	list, err := p.ScheduleRuns(t.Context(), "s1", 9)
	if err != nil || len(list) != 2 || list[0].State != agent.RunOK || list[0].Text != "Fine." || list[1].State != agent.RunFailed || list[1].Reason != "red" || list[1].Text != "" || p.state("s1").Fails != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	if got := p.runs("s2"); got != "skipped running" {
		t.Errorf("the other has %s", got)
	}
	for id, want := range map[string]error{"s9": nil, "x": tidemark.ErrInvalid} { // one that is gone is nobody's
		if err := p.Ran(t.Context(), tidemark.Ran{Schedule: id, Due: 1, Session: "agent:main:main"}); !errors.Is(err, want) {
			t.Errorf("%s: %v", id, err)
		}
	}
	if err := p.Ran(t.Context(), tidemark.Ran{Schedule: "s2", Due: 1, Session: "agent:other:main"}); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("of another agent: %v", err)
	}
}

// TestChangedMeanwhile: a schedule that is changed while what is due is read does what it is now.
func TestChangedMeanwhile(t *testing.T) {
	w := newWorld(t)
	db := &between{DB: w.db, query: "AND next > 0 AND next <= ? AND state = 'on'"}
	w.cfg.DB = db
	p := plannerOn(w)
	p.add(agent.Schedule{Spec: schedule.Spec{Every: "1h"}})
	p.clock.move(time.Hour)
	var changed agent.Schedule
	db.then = func() {
		var err error
		if changed, err = p.ChangeSchedule(t.Context(), "s1", func(s *agent.Schedule) error { s.Spec = schedule.Spec{Every: "5h"}; return nil }); err != nil {
			t.Error(err)
		}
	}
	p.wake()
	if s := p.state("s1"); !s.Next.Equal(changed.Next) || s.Next.Sub(p.clock.Now()) != 5*time.Hour || p.runs("s1") != "" || p.homes.ids() != "" {
		t.Errorf("next %v, runs %q", s.Next, p.runs("s1"))
	}
}

// TestSkillWhole: of a skill that is removed no file is left, and of others all are.
func TestSkillWhole(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"boats", "boatsandmore"} {
		write(t, w.blobs, "skills/"+name+"/SKILL.md", skillFile(name, "d", ""))
		write(t, w.blobs, "skills/"+name+"/a.md", "a")
		write(t, w.blobs, "skills/"+name+"/z/z.md", "z")
	}
	if err := w.DeleteSkill(t.Context(), "boats", ""); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, key := range w.list() {
		if strings.Contains(key, "/skills/") {
			got = append(got, strings.TrimPrefix(key, "agents/main/skills/"))
		}
	}
	if want := []string{"boatsandmore/SKILL.md", "boatsandmore/a.md", "boatsandmore/z/z.md"}; !slices.Equal(got, want) {
		t.Errorf("left are %q", got)
	}
}

// TestComparesOnlyIfAsked: facts are compared where that is on and there is a model for it, and else both stand.
func TestComparesOnlyIfAsked(t *testing.T) {
	for _, row := range []struct {
		on    bool
		model *judge
		want  bool
	}{{false, lastWord(), false}, {true, nil, false}, {true, lastWord(), true}} {
		w := newWorld(t)
		w.configure(func(c *agent.Config) {
			if c.Digest, c.Reconcile = true, row.on; row.model != nil {
				c.Model = row.model
			}
		})
		w.remember(scope(t, owners), "x1", "The staging port is 8080")
		w.remember(scope(t, owners), "x2", "The staging port is 9090")
		if c := w.consolidate(); c.Reconciled != row.want || (len(w.ledger()) == 1) != row.want || (c.Decided == 1) != row.want {
			t.Errorf("on %t, with a model %t: %+v", row.on, row.model != nil, c)
		}
	}
}
