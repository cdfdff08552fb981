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
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/schedule"
	"github.com/tidemark-ai/tidemark/skill"
)

// TestNewestArchives: of very many archives of the owner's the newest are in the digest.
func TestNewestArchives(t *testing.T) {
	w := newWorld(t)
	w.configure(func(c *agent.Config) { c.Digest = true })
	var infos []archive.Info
	for i := range 501 {
		at := noon.Add(time.Duration(i) * time.Second)
		infos = append(infos, archive.Info{Key: fmt.Sprintf("agents/main/sessions/S%06d-part%d.jsonl.gz", 501-i, at.UnixMilli()), SessionKey: owners, Session: "S", Agent: "main", Messages: 1000 + i, At: at})
	}
	if err := w.Report(t.Context(), tidemark.SessionInfo{}, infos); err != nil {
		t.Fatal(err)
	}
	n, err := w.LastNight(t.Context())
	if err != nil || n.Compactions != 500 || n.Sittings != 0 {
		t.Errorf("%+v, %v", n, err)
	}
	d, err := w.Digest(t.Context())
	all := d.Text
	for _, f := range d.Details {
		all += f.Text
	}
	if err != nil || strings.Contains(all, ": 1000 messages") || !strings.Contains(all, ": 1001 messages") || !strings.Contains(all, ": 1500 messages") {
		t.Errorf("%v\n%.2000s", err, all)
	}
}

// TestDetailNotNeeded: a detail file of the digest to which nothing is demoted any more says so; what a person wrote there stays.
func TestDetailNotNeeded(t *testing.T) {
	w := newWorld(t)
	w.configure(func(c *agent.Config) { c.Digest, c.DigestLines = true, 10 })
	for i := range 3 {
		var facts []string
		for n := range 20 {
			facts = append(facts, fmt.Sprintf("The boat number %d is red", 20*i+n))
		}
		w.remember(scope(t, owners), fmt.Sprint("x", i), facts...)
	}
	c := w.consolidate()
	d, err := w.Digest(t.Context())
	if err != nil || len(d.Details) == 0 || c.Entries != 60 || c.Demoted != 60-d.Shown || c.DetailSize != len(d.Details) || len(c.Written) != len(d.Details)+1 || c.Unchanged != 0 {
		t.Fatalf("%+v, %d details, %d shown, %v", c, len(d.Details), d.Shown, err)
	}
	detail := memory.DetailFile(d.Details[0].Slug)
	if again := w.consolidate(); len(again.Written) != 0 || again.Unchanged != len(d.Details)+1 {
		t.Errorf("twice: %+v", again)
	}
	w.configure(func(c *agent.Config) { c.DigestLines = 500 })
	c = w.consolidate()
	if got := w.stored(detail); !strings.Contains(got, "fits into [the digest](../DIGEST.md) again") || c.Demoted != 0 || c.DetailSize != 0 || len(c.Written) != len(d.Details)+1 {
		t.Errorf("%+v\n%s", c, got)
	}
	if again := w.consolidate(); len(again.Written) != 0 || again.Unchanged != len(d.Details)+1 {
		t.Errorf("twice more: %+v", again)
	}
	write(t, w.blobs, detail, "# mine\n")
	w.configure(func(c *agent.Config) { c.DigestLines = 10 })
	if c = w.consolidate(); w.stored(detail) != "# mine\n" || !slices.Contains(c.Suggested, memory.Suggestion(detail)) || !strings.Contains(w.stored(memory.Suggestion(detail)), "boat") {
		t.Errorf("%+v\n%s", c, w.stored(detail))
	}
	w.configure(func(c *agent.Config) { c.DigestLines = 500 })
	if c = w.consolidate(); w.stored(detail) != "# mine\n" || len(c.Suggested) != 0 {
		t.Errorf("%+v\n%s", c, w.stored(detail))
	}
}

// TestNothingIsOn: where neither is on, a consolidation says what to turn on, and leaves no night behind.
func TestNothingIsOn(t *testing.T) {
	w := newWorld(t)
	c := w.consolidate()
	n, err := w.LastNight(t.Context())
	if !strings.HasPrefix(c.Note, "nothing is on: set memory.digest") || c.Digest || c.Reconciled || c.Written == nil || err != nil || !n.At.IsZero() {
		t.Errorf("%+v, %+v, %v", c, n, err)
	}
}

// TestBeatByHand: a heartbeat that is begun by hand has something to do, whatever the hour is.
func TestBeatByHand(t *testing.T) {
	p := newPlanner(t)
	p.add(agent.Schedule{Spec: schedule.Spec{Heartbeat: "30m", Active: "02:00-03:00", Zone: "UTC"}})
	for _, text := range []string{"", "# Only a heading\n\n<!-- and a comment -->\n- [ ]\n"} {
		if text != "" {
			write(t, p.blobs, agent.HeartbeatFile, text)
		}
		if _, err := p.RunSchedule(t.Context(), "s1"); !errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), "run schedule s1: agents/main/HEARTBEAT.md is not there, or asks for nothing") {
			t.Errorf("%q: %v", text, err)
		}
	}
	write(t, p.blobs, agent.HeartbeatFile, "# Heading\n- look after the mail\n")
	run, err := p.RunSchedule(t.Context(), "s1")
	if err != nil || run.State != agent.RunRunning || len(p.homes.given) != 1 || !strings.HasSuffix(p.homes.given[0].Text, "answer HEARTBEAT_OK and nothing else.\n\n# Heading\n- look after the mail") || p.homes.given[0].Origin.Occasion.Quiet != "HEARTBEAT_OK" {
		t.Errorf("%+v, %v; given %+v", run, err, p.homes.given)
	}
	if _, err := p.RunSchedule(t.Context(), "s1"); !errors.Is(err, tidemark.ErrBusy) {
		t.Errorf("while it is at work: %v", err)
	}
	p.configure(func(c *agent.Config) { c.NoSchedules = true })
	if _, err := p.RunSchedule(t.Context(), "s1"); !errors.Is(err, tidemark.ErrForbidden) {
		t.Errorf("while they are off: %v", err)
	}
}

// TestErrandUnread: a run whose errand cannot be read has failed, and keeps no other.
func TestErrandUnread(t *testing.T) {
	p := newPlanner(t)
	for range 2 {
		p.add(agent.Schedule{Spec: schedule.Spec{Cron: "0 15 * * *", Zone: "UTC"}})
	}
	p.homes.fail = tidemark.ErrUnavailable
	p.at(21, 15, 0)
	if err := p.db.Tx(t.Context(), []tidemark.Stmt{{SQL: `UPDATE agent_schedule_runs SET errand = '{' WHERE agent = 'main' AND schedule = 1`, Want: 1}}); err != nil {
		t.Fatal(err)
	}
	p.homes.fail = nil
	p.at(21, 15, 1)
	list, err := p.ScheduleRuns(t.Context(), "s1", 9)
	if err != nil || len(list) != 1 || list[0].State != agent.RunFailed || list[0].Reason != "its errand cannot be read" || p.runs("s2") != "running" {
		t.Errorf("%+v, %v; the other is %s", list, err, p.runs("s2"))
	}
}

// TestScheduleTimes: a time that has passed is done late within catchUp, and refused beyond; one that is over may get a new time, and no other
// state than on and paused is one.
func TestScheduleTimes(t *testing.T) {
	p := newPlanner(t)
	for _, row := range []struct {
		at, catchUp string
		ok          bool
	}{{"2026-11-21 13:00", "30m", true}, {"2026-11-21 12:59", "30m", false}, {"2026-11-20 13:30", "", true}, {"2026-11-20 13:29", "", false}, {"2026-11-21 13:31", "", true}} {
		_, err := p.AddSchedule(t.Context(), agent.Schedule{Prompt: "x", CatchUp: row.catchUp, Spec: schedule.Spec{At: row.at, Zone: "UTC"}})
		if (err == nil) != row.ok || err != nil && (!errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), "has passed, by more than catchUp")) {
			t.Errorf("at %s, catchUp %q: %v", row.at, row.catchUp, err)
		}
	}
	change := func(id string, f func(*agent.Schedule)) (agent.Schedule, error) {
		return p.ChangeSchedule(t.Context(), id, func(s *agent.Schedule) error { f(s); return nil })
	}
	done := p.add(agent.Schedule{Spec: schedule.Spec{At: "in 5m"}})
	p.clock.move(5 * time.Minute)
	p.wake()
	p.end(tidemark.Outcome{Text: "Fine."})
	if s := p.state(done.ID); s.State != agent.ScheduleDone || !s.Next.IsZero() {
		t.Fatalf("%+v", s)
	}
	if s, err := change(done.ID, func(s *agent.Schedule) { s.Spec = schedule.Spec{At: "in 20m"} }); err != nil || s.State != agent.ScheduleOn || s.Next.Sub(p.clock.Now()) != 20*time.Minute {
		t.Errorf("a new time: %+v, %v", s, err)
	}
	for state, want := range map[string]string{"off": `state "off": want on or paused`, "begun": `state "begun": want on or paused`} {
		if _, err := change(done.ID, func(s *agent.Schedule) { s.State = state }); !errors.Is(err, tidemark.ErrInvalid) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", state, err)
		}
	}
	if _, err := change(done.ID, func(s *agent.Schedule) { s.Spec = schedule.Spec{At: "2026-11-21 10:00", Zone: "UTC"} }); !errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), "has passed; give it a time to come") {
		t.Errorf("a time that has passed: %v", err)
	}
	if s, err := change(done.ID, func(s *agent.Schedule) { s.Name = "named" }); err != nil || s.Name != "named" || s.Next.Sub(p.clock.Now()) != 20*time.Minute {
		t.Errorf("a name only: %+v, %v", s, err)
	}
}

// TestWakeBesideSchedules: where schedules cannot be read the rest is done, and it is tried again in a minute.
func TestWakeBesideSchedules(t *testing.T) {
	w := newAlone(t)
	db := &mute{DB: w.db}
	w.configure(func(c *agent.Config) { c.DB = db })
	if _, err := w.Wake(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.blobs.Fail = func(string, string) error { return tidemark.ErrUnavailable }
	w.remember(scope(t, owners), "x1", "The owner keeps a boat")
	w.blobs.Fail = nil
	w.clock.move(10 * time.Second)
	db.to = "FROM agent_schedules"
	next, err := w.Wake(t.Context())
	if err != nil || next.Sub(w.clock.Now()) != time.Minute || !strings.Contains(w.stored(day), "boat") {
		t.Errorf("in %v, %v; %q", next.Sub(w.clock.Now()), err, w.stored(day))
	}
	if _, err := w.Answer(t.Context(), tidemark.Decision{Code: "ABCD", By: tidemark.Origin{Owner: true}}); !errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("a code of nobody: %v", err)
	}
	if err := w.Question(t.Context(), tidemark.Question{Code: "ABCD", Session: owners, Asked: noon, Expires: noon.Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if q, err := w.Answer(t.Context(), tidemark.Decision{Code: "abcd", By: tidemark.Origin{Owner: true}}); !errors.Is(err, tidemark.ErrUnavailable) || q.Code != "ABCD" {
		t.Errorf("where no session can be reached: %+v, %v", q, err)
	}
}

// mute is a database that does not answer some queries.
type mute struct {
	tidemark.DB
	to string
}

func (m *mute) Query(ctx context.Context, sql string, args ...any) ([]tidemark.Row, error) {
	if m.to != "" && strings.Contains(sql, m.to) {
		return nil, errors.New("no answer")
	}
	return m.DB.Query(ctx, sql, args...)
}

// TestScheduleListed: what a person writes of a schedule is kept without the blanks around it, and the tool lists each with its state, its next
// time and the beginning of what is asked.
func TestScheduleListed(t *testing.T) {
	p := newPlanner(t)
	s := p.add(agent.Schedule{Name: " mail ", Prompt: "\n Look at\n  the mail. ", To: " owner ", Spec: schedule.Spec{Cron: "0 15 * * *", Zone: "UTC"}})
	if s.Name != "mail" || s.Prompt != "Look at\n  the mail." || s.To != agent.ToOwner {
		t.Errorf("%+v", s)
	}
	long := strings.Repeat("é", 120)
	p.add(agent.Schedule{Prompt: long, Spec: schedule.Spec{Every: "2h"}})
	p.add(agent.Schedule{Prompt: long + "é", Spec: schedule.Spec{Every: "3h"}})
	if _, err := p.ChangeSchedule(t.Context(), "s2", func(s *agent.Schedule) error { s.State = agent.SchedulePaused; return nil }); err != nil {
		t.Fatal(err)
	}
	text, ok := p.call(scope(t, owners), agent.ToolSchedule, map[string]any{"do": "list"})
	var got []string
	for line := range strings.SplitSeq(text, "\n") {
		head, rest, _ := strings.Cut(line, ": ")
		_, rest, _ = strings.Cut(rest, ", o")
		if strings.HasPrefix(head, "s2") {
			_, rest, _ = strings.Cut(line, ", p")
		}
		got = append(got, head+" "+rest)
	}
	want := []string{"s1 n, next Sat 2026-11-21 15:00 UTC: Look at the mail.", "s2 aused: " + long, "s3 n, next Sat 2026-11-21 17:30 CET: " + long + "…"}
	if !ok || !slices.Equal(got, want) {
		t.Errorf("%s\n%q\nwant\n%q", text, got, want)
	}
}

// telling are conversations beside whose words something happens.
type telling struct {
	*homes
	then func()
}

func (h *telling) Say(ctx context.Context, key tidemark.Key, id string, to tidemark.Address, text string) error {
	if h.then != nil {
		h.then()
	}
	return h.homes.Say(ctx, key, id, to, text)
}

// TestToldMeanwhile: what is to be told of a schedule while the owner is told something else is told, too, and of another schedule as well.
func TestToldMeanwhile(t *testing.T) {
	p := newPlanner(t)
	h := &telling{homes: p.homes}
	p.configure(func(c *agent.Config) { c.Sessions = h })
	p.homes.person = tidemark.Origin{To: &tidemark.Address{Platform: "whatsapp", Peer: "49151"}}
	for range 2 {
		p.add(agent.Schedule{Spec: schedule.Spec{Every: "24h"}})
	}
	notice := func(n int, text string) {
		if err := p.db.Tx(t.Context(), []tidemark.Stmt{{SQL: `UPDATE agent_schedules SET notice = ? WHERE agent = 'main' AND n = ?`, Args: []any{text, n}, Want: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	notice(1, "first")
	h.then = func() {
		h.then = nil
		notice(1, "newer")
		notice(2, "other")
	}
	p.wake()
	p.wake()
	p.wake()
	if want := []string{"schedule/s1/0: first", "schedule/s1/0: newer", "schedule/s2/0: other"}; !slices.Equal(p.homes.said, want) {
		t.Errorf("told %q, want %q", p.homes.said, want)
	}
}

// TestSkillSizes: a skill may have so many bytes of instructions, and so many of a file beside them.
func TestSkillSizes(t *testing.T) {
	w := newWorld(t)
	main := scope(t, owners)
	for i, more := range []int{0, 1} {
		name := []string{"boats", "weather"}[i]
		text := skillFile(name, "about "+name, "")
		write(t, w.blobs, "skills/"+name+"/SKILL.md", text+strings.Repeat("x", skill.MaxMain+more-len(text)))
		write(t, w.blobs, "skills/"+name+"/large.md", strings.Repeat("y\n", (skill.MaxFile+more)/2)+strings.Repeat("z", (skill.MaxFile+more)%2))
	}
	list, _, err := w.Skills(t.Context())
	if err != nil || len(list) != 2 || list[0].Problem != "" || list[0].Description != "about boats" || list[1].Problem != "SKILL.md has 128001 bytes, at most 128000; put more of it into files beside it" {
		t.Errorf("%+v, %v", list, err)
	}
	if text, ok := w.call(main, skill.Tool, map[string]any{"name": "boats", "file": "large.md", "from": 7, "to": 7}); !ok || !strings.HasPrefix(text, "y\n") {
		t.Errorf("a file of the largest size: %.200s", text)
	}
	if _, err := w.SkillFile(t.Context(), "weather", "large.md"); !errors.Is(err, tidemark.ErrTooLarge) {
		t.Errorf("a byte more: %v", err)
	}
}
