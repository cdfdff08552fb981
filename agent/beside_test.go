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
	"github.com/tidemark-ai/tidemark/agent/agenttest"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/schedule"
)

// ids are the schedules that an agent lists, with what tells them apart.
func (p *planner) ids() string {
	p.t.Helper()
	list, err := p.Schedules(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	var out []string
	for _, s := range list {
		out = append(out, fmt.Sprintf("%s %s %d", s.ID, s.State, s.Fails))
	}
	return strings.Join(out, ", ")
}

// TestSchedulesSideBySide: what becomes of one schedule is nothing to another.
func TestSchedulesSideBySide(t *testing.T) {
	p := newPlanner(t)
	p.homes.person = tidemark.Origin{To: &tidemark.Address{Platform: "whatsapp", Peer: "49151"}}
	cron := func(at string) schedule.Spec { return schedule.Spec{Cron: at, Zone: "UTC"} }
	p.add(agent.Schedule{Spec: cron("0 15 * * *")})
	p.add(agent.Schedule{Spec: cron("30 15 * * *")})
	p.at(21, 15, 0)
	p.end(tidemark.Outcome{Error: "it is down"})
	if got := p.ids(); got != "s1 on 1, s2 on 0" {
		t.Fatalf("a failure: %s", got)
	}
	p.at(21, 15, 30)
	p.end(tidemark.Outcome{Text: "Fine."})
	if got := p.ids(); got != "s1 on 1, s2 on 0" {
		t.Fatalf("a failure beside a success: %s", got)
	}
	due := func(minutes int) schedule.Spec {
		return schedule.Spec{At: p.clock.Now().Add(time.Duration(minutes) * time.Minute).Format(time.RFC3339)}
	}
	for range 2 { // two that are at work at once, each for one time
		p.add(agent.Schedule{Spec: due(10)})
	}
	p.at(21, 15, 40)
	if got := p.ids(); got != "s1 on 1, s2 on 0, s3 on 0, s4 on 0" {
		t.Fatalf("both at work: %s", got)
	}
	if p.wake(); p.runs("s3") != "running" || p.runs("s4") != "running" {
		t.Errorf("both at work: %s, %s", p.runs("s3"), p.runs("s4"))
	}
	if err := p.db.Tx(t.Context(), []tidemark.Stmt{{SQL: `INSERT INTO agent_schedule_runs(agent, schedule, due, state) VALUES('main', 1, 9000000000000, 'ok')`}}); err != nil {
		t.Fatal(err)
	}
	p.end(tidemark.Outcome{Error: "it is down"}) // of the last that began
	if done := strings.Count(p.ids(), agent.ScheduleDone); done != 1 {
		t.Errorf("the end of one ended %d: %s", done, p.ids())
	}
	// The owner is told of it by its own run.
	p.wake()
	if len(p.homes.said) != 1 || !strings.HasPrefix(p.homes.said[0], fmt.Sprintf("schedule/%s/%s: ", failed(p), utc(21, 15, 40))) {
		t.Errorf("told %q", p.homes.said)
	}
}

// failed is the schedule that is over and failed.
func failed(p *planner) string {
	p.t.Helper()
	list, err := p.Schedules(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	i := slices.IndexFunc(list, func(s agent.Schedule) bool { return s.State == agent.ScheduleDone && s.Fails == 1 })
	if i < 0 {
		p.t.Fatalf("none failed: %s", p.ids())
	}
	return list[i].ID
}

// TestBegunTogether: of two that begin at one time only one can be handed over; the other is, later.
func TestBegunTogether(t *testing.T) {
	p := newPlanner(t)
	for range 2 {
		p.add(agent.Schedule{Spec: schedule.Spec{Cron: "0 15 * * *", Zone: "UTC"}})
	}
	p.homes.fail = tidemark.ErrUnavailable
	p.at(21, 15, 0)
	p.homes.fail, p.homes.most = nil, 1
	p.at(21, 15, 5)
	if got := p.runs("s1") + " " + p.runs("s2"); got != "running begun" && got != "begun running" {
		t.Fatalf("one was handed over: %s", got)
	}
	p.restart()
	p.homes.most = 0
	p.at(21, 15, 10)
	if len(p.homes.given) != 2 || p.runs("s1") != "running" || p.runs("s2") != "running" {
		t.Errorf("%d errands; %s, %s", len(p.homes.given), p.runs("s1"), p.runs("s2"))
	}
}

// TestRunsOfEach: as many runs as are kept of one are no reason to forget those of another.
func TestRunsOfEach(t *testing.T) {
	p := newPlanner(t)
	for range 2 {
		p.add(agent.Schedule{Spec: schedule.Spec{Cron: "0 15 * * *", Zone: "UTC"}})
	}
	if err := p.db.Tx(t.Context(), []tidemark.Stmt{{SQL: `WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 200)
		INSERT INTO agent_schedule_runs(agent, schedule, due, state) SELECT 'main', 2, 1000 + i, 'ok' FROM c UNION ALL SELECT 'main', 1, 7, 'ok'`}}); err != nil {
		t.Fatal(err)
	}
	p.at(21, 15, 0)
	if one, two := p.runs("s1"), len(strings.Fields(p.runs("s2"))); one != "running ok" || two != agent.MaxScheduleRuns {
		t.Errorf("%s; %d of the other", one, two)
	}
}

// TestVersionsOfEach: as many versions as are kept of one file are no reason to forget those of another.
func TestVersionsOfEach(t *testing.T) {
	w := newWorld(t)
	for i := range 55 {
		path := "MEMORY.md"
		if i < 2 {
			path = "SOUL.md"
		}
		if _, err := w.PutFile(t.Context(), path, fmt.Append(nil, "# version ", i, "\n"), "*"); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]int{"SOUL.md": 2, "MEMORY.md": 50} {
		if v, err := w.Versions(t.Context(), path); err != nil || len(v) != want {
			t.Errorf("%s: %d versions, want %d, %v", path, len(v), want, err)
		}
	}
}

// TestLookingMakesNothing: an agent that has nothing is looked at without an error.
func TestLookingMakesNothing(t *testing.T) {
	w := newAlone(t)
	ctx := t.Context()
	tree, _, err := w.Tree(ctx, "", 10, false)
	questions, askErr := w.Questions(ctx)
	asked, codeErr := w.Asked(ctx, "ABCD")
	schedules, listErr := w.Schedules(ctx)
	rows, _, ledgerErr := w.Ledger(ctx, "", 10)
	answer, recallErr := w.Recall(ctx, scope(t, owners), recall.Ask{Query: "walnut", Scope: recall.ScopeAgent})
	if err := errors.Join(err, askErr, codeErr, listErr, ledgerErr); err != nil || asked || len(tree)+len(questions)+len(schedules)+len(rows)+len(answer.Results) > 0 {
		t.Errorf("%v; recall %v", err, recallErr)
	}
	if _, err := w.Snapshot(ctx, "snap-1"); !errors.Is(err, tidemark.ErrNotFound) {
		t.Error(err)
	}
}

// TestScheduleMovedAtWork: one for one time that got another time while it was at work is not over with that work.
func TestScheduleMovedAtWork(t *testing.T) {
	for name, out := range map[string]tidemark.Outcome{"done": {Text: "Fine."}, "failed": {Error: "it is down"}} {
		p := newPlanner(t)
		p.add(agent.Schedule{Spec: schedule.Spec{At: "in 5m"}})
		p.clock.move(5 * time.Minute)
		p.wake()
		later := p.clock.Now().Add(time.Hour)
		if _, err := p.ChangeSchedule(t.Context(), "s1", func(s *agent.Schedule) error { s.Spec = schedule.Spec{At: later.Format(time.RFC3339)}; return nil }); err != nil {
			t.Fatal(err)
		}
		p.end(out)
		if s := p.state("s1"); s.State != agent.ScheduleOn || s.Next.Sub(later).Abs() > time.Second {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// TestOldReminders: only what is over, and since long, is forgotten when another is made.
func TestOldReminders(t *testing.T) {
	p := newPlanner(t)
	p.add(agent.Schedule{Spec: schedule.Spec{Cron: "0 15 * * *", Zone: "UTC"}})
	p.add(agent.Schedule{Spec: schedule.Spec{At: "in 95m"}})
	p.at(21, 15, 0)
	p.end(tidemark.Outcome{Text: "Fine."})
	if p.at(21, 15, 5); p.ids() != "s1 on 0, s2 on 0" || len(p.homes.given) != 2 {
		t.Fatalf("%s, %d errands", p.ids(), len(p.homes.given))
	}
	p.end(tidemark.Outcome{Text: "Reminded."})
	p.add(agent.Schedule{Spec: schedule.Spec{Every: "24h"}})
	if got := p.ids(); got != "s1 on 0, s2 done 0, s3 on 0" {
		t.Errorf("one that was over just now: %s", got)
	}
	p.clock.move(40 * 24 * time.Hour)
	p.add(agent.Schedule{Spec: schedule.Spec{Every: "24h"}})
	if got := p.ids(); got != "s1 on 0, s3 on 0, s4 on 0" || p.runs("s1") != "ok" {
		t.Errorf("a month later: %s; runs %s", got, p.runs("s1"))
	}
	rows, err := p.db.Query(t.Context(), `SELECT count(*) FROM agent_schedule_runs WHERE agent = 'main' AND schedule = 2 LIMIT 1`)
	if err != nil || rows[0].Int(0) != 0 {
		t.Errorf("%v runs are left of one that is forgotten, %v", rows, err)
	}
}

// TestOthersAreNotThere: nothing of another agent is found by its number or name.
func TestOthersAreNotThere(t *testing.T) {
	p := newPlanner(t)
	ctx := t.Context()
	p.add(agent.Schedule{Spec: schedule.Spec{Every: "24h"}})
	if err := p.db.Tx(ctx, []tidemark.Stmt{{SQL: `INSERT INTO agent_schedules(n, agent, state, next, created, maker, body) SELECT 50, 'another', state, next, created, maker, body FROM agent_schedules WHERE n = 1`}}); err != nil {
		t.Fatal(err)
	}
	_, err := p.Schedule(ctx, "s50")
	_, snap := p.Snapshot(ctx, "snap-00")
	_, run := p.RunSchedule(ctx, "s50")
	_, change := p.ChangeSchedule(ctx, "s50", func(*agent.Schedule) error { return nil })
	p.configure(func(c *agent.Config) { c.Reconcile, c.Model = true, lastWord() })
	p.consolidate()
	for what, err := range map[string]error{"schedule": err, "snapshot": snap, "run": run, "change": change, "remove": p.RemoveSchedule(ctx, "s50"), "undo": p.UndoDecision(ctx, 1)} {
		if !errors.Is(err, tidemark.ErrNotFound) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if rows := p.ledger(); len(rows) != 0 || p.ids() != "s1 on 0" {
		t.Errorf("%v, %s", rows, p.ids())
	}
	if got := p.search(owners, "staging port"); got != "" {
		t.Errorf("finds %q", got)
	}
}

// TestOthersFindNothing: what one agent learns goes into nobody else's memory, though its extraction has the same id.
func TestOthersFindNothing(t *testing.T) {
	w := newWorld(t)
	w.remember(scope(t, stanger), "x1", "Ann keeps a zebra")
	w.remember(scope(t, owners), "x2", "Ann keeps a zebra")
	if got := w.search(owners, "zebra"); got != "Ann keeps a zebra\nAnn keeps a zebra" {
		t.Errorf("the owner finds %q", got)
	}
	other, err := agent.New(agent.Config{Name: agenttest.Other, DB: w.db, Blobs: w.blobs, Runtime: w.clock})
	if err != nil {
		t.Fatal(err)
	}
	found, err := other.Search(t.Context(), scope(t, "agent:"+agenttest.Other+":main"), "zebra", 5)
	if err != nil || len(found) != 0 {
		t.Errorf("the other finds %+v, %v", found, err)
	}
}

// TestUndoKeepsWhatWasTakenOut: what a person took out of a file does not come back with the undo of a later edit.
func TestUndoKeepsWhatWasTakenOut(t *testing.T) {
	w := newWorld(t)
	w.remember(scope(t, owners), "x1", "a fact that is wrong")
	for i, text := range []string{"# mine\n", "# mine, better\n"} {
		w.clock.move(time.Duration(i+1) * time.Minute)
		if _, err := w.PutFile(t.Context(), day, []byte(text), "*"); err != nil {
			t.Fatal(err)
		}
	}
	w.clock.move(time.Minute)
	w.remember(scope(t, owners), "x2", "a fact that is right")
	w.settle()
	if _, err := w.Undo(t.Context(), day); err != nil {
		t.Fatal(err)
	}
	if got := w.stored(day); !strings.HasPrefix(got, "# mine\n") || strings.Contains(got, "wrong") || strings.Count(got, "- a fact that is right") != 1 || strings.Contains(got, "8080") {
		t.Errorf("the file is\n%s", got)
	}
}

// TestSectionMeanwhile: what is remembered while a file is written is in the next write of it.
func TestSectionMeanwhile(t *testing.T) {
	w := newWorld(t)
	w.blobs.FailAfter = func(op, key string) error {
		if op == "put" && strings.HasSuffix(key, day) {
			w.blobs.FailAfter = nil
			return w.db.Tx(context.Background(), []tidemark.Stmt{{SQL: `INSERT INTO agent_sections(agent, path, id, at, body)
				VALUES('main', ?, 'x2', 1, '{"id":"x2","at":"2026-11-21T13:30:00Z","facts":[{"text":"said meanwhile"}]}')`, Args: []any{day}}})
		}
		return nil
	}
	w.remember(scope(t, owners), "x1", "said before")
	w.clock.move(time.Minute)
	w.settle()
	rows, err := w.db.Query(t.Context(), `SELECT count(*) FROM agent_sections WHERE agent = 'main' AND done = 0 LIMIT 1`)
	if got := w.stored(day); err != nil || strings.Count(got, "- said before") != 1 || strings.Count(got, "x2") != 1 || rows[0].Int(0) != 0 {
		t.Errorf("%v wait, %v, the file is\n%s", rows, err, got)
	}
}

// TestWakeManyFiles: however many files were written, those that wait are written in the end.
func TestWakeManyFiles(t *testing.T) {
	const old, fresh = 230, 210
	w := newWorld(t)
	var stmts []tidemark.Stmt
	for i := range old + fresh {
		done := 0
		if i < old {
			done = 1
		}
		stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO agent_sections(agent, path, id, at, body, done) VALUES('main', ?1, ?2, 1, '{"id":"' || ?2 || '","at":"2026-11-21T13:30:00Z","facts":[{"text":"a fact"}]}', ?3)`,
			Args: []any{fmt.Sprintf("memory/%d-01-01.md", 1000+i), fmt.Sprint("x", i), done}})
	}
	if err := w.db.Tx(t.Context(), stmts); err != nil {
		t.Fatal(err)
	}
	w.settle()
	rows, err := w.db.Query(t.Context(), `SELECT count(*) FROM agent_sections WHERE agent = 'main' AND done = 0 LIMIT 1`)
	if n := len(w.list()); err != nil || rows[0].Int(0) != 0 || n != fresh {
		t.Errorf("%v wait, %d files, %v", rows, n, err)
	}
}

// TestUndoOfTheSame: an edit that changed nothing is not what an undo takes back.
func TestUndoOfTheSame(t *testing.T) {
	w := newWorld(t)
	for _, text := range []string{"# one\n", "# two\n", "# two\n"} {
		w.clock.move(time.Minute)
		if _, err := w.PutFile(t.Context(), "MEMORY.md", []byte(text), "*"); err != nil {
			t.Fatal(err)
		}
	}
	if f, err := w.Undo(t.Context(), "MEMORY.md"); err != nil || string(f.Content) != "# one\n" || w.stored("MEMORY.md") != "# one\n" {
		t.Errorf("%+v, %v", f, err)
	}
}

// TestFactWithoutWords is compared with nothing.
func TestFactWithoutWords(t *testing.T) {
	w := newWorld(t)
	w.configure(func(c *agent.Config) { c.Reconcile, c.Model = true, lastWord() })
	w.remember(scope(t, owners), "x1", "The staging port is 8080", "+++")
	w.consolidate()
	w.remember(scope(t, owners), "x2", "---", "The staging port is 9090")
	if c := w.consolidate(); c.Decided != 1 {
		t.Errorf("%+v", c)
	}
}

// TestManySchedulesInATool: of more than fit into an answer the first are told, and that there are more.
func TestManySchedulesInATool(t *testing.T) {
	p := newPlanner(t)
	for range 60 {
		p.add(agent.Schedule{Spec: schedule.Spec{Every: "24h"}, Prompt: strings.Repeat("look around ", 30)})
	}
	text, ok := p.call(scope(t, owners), agent.ToolSchedule, map[string]any{"do": "list"})
	if !ok || !strings.HasPrefix(text, "s1: ") || !strings.HasSuffix(text, "\n…") || strings.Count(text, "\n") < 20 || strings.Count(text, "\n") > 50 {
		t.Errorf("%d lines: %s", strings.Count(text, "\n"), text)
	}
}

// TestArchivePages: a list of archives is each once, by the page too, and one whose index was lost is told again.
func TestArchivePages(t *testing.T) {
	const n = 7
	w := newWorld(t)
	var infos []archive.Info
	for i := range n {
		at := noon.Add(time.Duration(i) * time.Minute)
		infos = append(infos, archive.Info{Key: archive.PartKey("main", "01S", at), SessionKey: owners, Session: "01S", Agent: "main", Part: int64(i + 1), Messages: 4, At: at, Bytes: 100})
		write(t, w.blobs, strings.TrimPrefix(infos[i].Key, "agents/main/"), "{\"role\":\"user\",\"content\":\"x\"}\n")
	}
	if err := w.Report(t.Context(), tidemark.SessionInfo{}, infos); err != nil {
		t.Fatal(err)
	}
	w.settle()
	var parts []int64
	for cursor := ""; ; {
		page, next, err := w.Archives(t.Context(), archive.ListOptions{Cursor: cursor, Limit: 2})
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range page {
			parts = append(parts, i.Part)
		}
		if cursor = next; next == "" {
			break
		}
	}
	if fmt.Sprint(parts) != "[7 6 5 4 3 2 1]" {
		t.Errorf("pages %v", parts)
	}
	if err := w.blobs.Delete(t.Context(), archive.IndexKey("main", noon)); err != nil {
		t.Fatal(err)
	}
	if s, err := w.Mend(t.Context(), archive.Bounds{}); err != nil || len(s.Added) != n {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestDigestPages: digests of more conversations and parts than are read at once, each to its own.
func TestDigestPages(t *testing.T) {
	w, r := newRooms(t)
	const keys, parts = 60, 5 // 300 rows
	for i := range keys {
		key := tidemark.Key(fmt.Sprintf("agent:main:local:dm:k%02d", i))
		r.texts[key] = "x"
		if err := w.Report(t.Context(), tidemark.SessionInfo{Key: key, UpdatedAt: noon.Add(-time.Hour)}, nil); err != nil {
			t.Fatal(err)
		}
		report := recall.DigestReport{Key: key, Head: parts, At: noon}
		for p := range int64(parts) {
			report.Parts = append(report.Parts, digestPart(p+1, p+1, p < parts-1, fmt.Sprintf("word_%d_%d", i, p)))
		}
		w.digests(report)
	}
	for _, i := range []int{0, 19, 20, 39, 40, 59} {
		for p := range parts {
			r.asked = nil
			if _, err := w.Recall(t.Context(), scope(t, owners), recall.Ask{Query: fmt.Sprintf("word_%d_%d", i, p), Scope: recall.ScopeAgent}); err != nil {
				t.Fatal(err)
			}
			if want := tidemark.Key(fmt.Sprintf("agent:main:local:dm:k%02d", i)); !slices.Contains(r.asked, want) || len(r.asked) == keys {
				t.Errorf("word_%d_%d: asked %v, want %s", i, p, r.asked, want)
			}
		}
	}
}
