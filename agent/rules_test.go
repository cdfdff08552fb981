package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/schedule"
)

// lines are found ones, on a line each.
func lines(list []Found) (out []string) {
	for _, f := range list {
		out = append(out, fmt.Sprint(f.Path, ":", f.Line, " ", f.Text, " ", f.Session, " ", f.Sources))
	}
	return out
}

// TestLinesJoin: a line of a file and the fact that it is of are one, with what the ledger knows of it; the same text in another file is
// another line.
func TestLinesJoin(t *testing.T) {
	src := []tidemark.EntryID{"E"}
	got := lines(merge([]Found{{Path: "a", Line: 1, Text: "The boat is red"}, {Path: "a", Line: 2, Text: "the boat is RED"}, {Path: "b", Line: 3, Text: "The boat is red", Session: "own"}},
		[]Found{{Path: "a", Text: "The boat is red", Session: "s", Sources: src}, {Path: "b", Text: "The boat is red", Session: "s", Sources: src}, {Path: "a", Text: "another", Session: "s"}, {Path: "a", Text: "The boat is red", Session: "t", Sources: []tidemark.EntryID{"F"}}}))
	if want := []string{"a:1 The boat is red s [E]", "b:3 The boat is red own [E]", "a:0 another s []"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	held := lines(holding([]string{"how", "be"}, []Found{{Path: "a", Text: "how to be"}, {Path: "b", Text: "how to do"}, {Path: "c", Text: "be, and how"}}))
	if want := []string{"a:0 how to be  []", "c:0 be, and how  []"}; !slices.Equal(held, want) {
		t.Errorf("%q, want %q", held, want)
	}
}

// TestRankedLines: so many lines of files are ranked, and behind them what only the ledger has.
func TestRankedLines(t *testing.T) {
	stem := &recall.Stemmer{}
	for _, row := range []struct {
		before, line int
		want         bool
	}{{searchLines - 1, searchLines, true}, {searchLines, searchLines + 1, false}, {searchLines, 0, true}} {
		var all []Found
		for i := range row.before {
			all = append(all, Found{Path: "a", Line: i + 1, Text: "a walnut of the day"})
		}
		all = append(all, Found{Path: "a", Line: row.line, Text: "a heron and a walnut"})
		got := rank(recall.Parse("heron walnut", stem), all, stem)
		if there := len(got) > 0 && strings.Contains(got[0].Text, "heron") && got[0].Line == row.line && got[0].Score > 0; there != row.want {
			t.Errorf("behind %d lines, line %d: it is first %t, of %d", row.before, row.line, there, len(got))
		}
	}
}

// TestOvertaken: a fact that is said again is new where a newer one that is near it stands between.
func TestOvertaken(t *testing.T) {
	const old, near, far = "the staging port is 8080", "the staging port is 9090", "ann lives in bonn"
	for _, row := range []struct {
		newest []string
		want   bool
	}{{nil, false}, {[]string{old}, false}, {[]string{near, old}, true}, {[]string{old, near}, false}, {[]string{far, old, near}, false}, {[]string{far, near, old}, true}, {[]string{far}, false}} {
		if got := overtaken(old, row.newest); got != row.want {
			t.Errorf("of %q: %t", row.newest, got)
		}
	}
	var got []string
	for _, g := range groups([]Fact{{Text: "a", Peer: "p"}, {Text: "b"}, {Text: "c", decided: true}, {Text: "d", Peer: "p"}, {Text: "e"}}) {
		s := g[0].Peer + ":"
		for _, f := range g {
			s += f.Text
		}
		got = append(got, s)
	}
	if want := []string{"p:ad", ":be"}; !slices.Equal(got, want) {
		t.Errorf("groups %q, want %q", got, want)
	}
	a, b := &uncompared{what: errPassed, err: errors.New("x"), facts: 3}, remaining("y")
	if err := both(a, b); !errors.Is(err, errPassed) || !errors.Is(err, errRemaining) || err.Error() != a.Error()+"; "+b.Error() {
		t.Errorf("both are %v", err)
	}
	if err := both(nil, b); !errors.Is(err, errRemaining) || err.Error() != b.Error() {
		t.Errorf("one is %v", err)
	}
}

// ticking is a clock that a test sets.
type ticking struct {
	tidemark.Runtime
	at *time.Time
}

func (c ticking) Now() time.Time { return *c.at }

// TestHold: after each failure in a row no file is written for twice as long, at most five minutes, and not at all longer where the clock
// is set back.
func TestHold(t *testing.T) {
	now := time.UnixMilli(1 << 41)
	fs := &files{core: &core{cfg: Config{FlushEvery: 2 * time.Second, Runtime: ticking{at: &now}, Logger: slog.New(slog.DiscardHandler)}}}
	for i, want := range []time.Duration{2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
		until := fs.hold(errors.New("full"))
		if until.Sub(now) != want*time.Second || !fs.held().Equal(until) {
			t.Errorf("failure %d: for %v, held until %v", i+1, until.Sub(now), fs.held())
		}
	}
	until := fs.until
	for _, row := range []struct {
		at   time.Duration // before the end
		held bool
	}{{0, false}, {-1, false}, {1, true}, {maxBackoff, true}, {maxBackoff + 1, false}} {
		now = until.Add(-row.at)
		if got := fs.held(); got.IsZero() == row.held {
			t.Errorf("%v before its end: held until %v", row.at, got)
		}
	}
	now = until.Add(-time.Second)
	if at := fs.hold(nil); !at.IsZero() || !fs.held().IsZero() || fs.hold(errors.New("full")).Sub(now) != 2*time.Second {
		t.Error("what was written does not end it")
	}
}

// TestPieces: a text is read by lines, so many and so many bytes at once, and says which they are when they are not all.
func TestPieces(t *testing.T) {
	many := func(n int) string { return strings.Repeat("x\n", n) }
	long := func(n int) string { return strings.Repeat("y", n) }
	for _, row := range []struct {
		name     string
		text     string
		from, to int
		want     string
	}{
		{"all", "a\nb\nc\n\n", 0, 0, "a\nb\nc"},
		{"all, by number", "a\nb\nc", 1, 3, "a\nb\nc"},
		{"the first", "a\nb\nc", 0, 1, "a\n[lines 1 to 1 of 3]"},
		{"the middle", "a\nb\nc", 2, 2, "b\n[lines 2 to 2 of 3]"},
		{"to the end", "a\nb\nc", 2, -1, "b\nc\n[lines 2 to 3 of 3]"},
		{"beyond the end", "a\nb\nc", 3, 9, "c\n[lines 3 to 3 of 3]"},
		{"behind the end", "a\nb\nc", 4, 0, "the text has 3 lines, 4 to 3 are none of them"},
		{"backwards", "a\nb\nc", 3, 2, "the text has 3 lines, 3 to 2 are none of them"},
		{"as many lines as go", many(readLines), 0, 0, strings.TrimRight(many(readLines), "\n")},
		{"a line more", many(readLines + 1), 0, 0, many(readLines) + "[lines 1 to 400 of 401]"},
		{"as many, from the second", many(readLines + 1), 2, 0, many(readLines) + "[lines 2 to 401 of 401]"},
		{"a line as long as goes", long(readBytes - 1), 0, 0, long(readBytes - 1)},
		{"one that is longer", long(readBytes), 0, 0, long(readBytes) + "\n[line 1 is longer than this]"},
		{"the second is longer", "a\n" + long(readBytes), 2, 0, long(readBytes) + "\n[line 2 is longer than this]"},
		{"two as long as go", long(readBytes-3) + "\nz", 0, 0, long(readBytes-3) + "\nz"},
		{"a byte more", long(readBytes-2) + "\nz", 0, 0, long(readBytes-2) + "\n[lines 1 to 1 of 2]"},
	} {
		got, err := piece("the text", row.text, row.from, row.to)
		if err != nil {
			got = strings.TrimSuffix(err.Error(), ": "+tidemark.ErrInvalid.Error())
		}
		if got != row.want {
			t.Errorf("%s: %.80q … %q, want %.80q", row.name, got, got[max(0, len(got)-60):], row.want)
		}
	}
}

// TestEndOfRun: what the end of a run means for its schedule: nothing when it went well, a rest that doubles with each failure up to six
// hours, and after ten of them a pause; what was for one time is done.
func TestEndOfRun(t *testing.T) {
	now := time.UnixMilli(1 << 41)
	p := &planner{core: &core{cfg: Config{Name: "main"}}}
	made := func(spec schedule.Spec, name, state string, fails int) Schedule {
		plan, err := spec.Parse(now, time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		return Schedule{ID: "s7", Name: name, State: state, Fails: fails, n: 7, plan: plan}
	}
	hourly, once := schedule.Spec{Every: "1h"}, schedule.Spec{At: "in 20m"}
	for _, row := range []struct {
		s    Schedule
		fail bool
		sql  string // what is set
		args string
	}{
		{made(hourly, "", ScheduleOn, 3), false, "fails = 0 WHERE agent = ? AND n = ? AND fails > 0", "[main 7]"},
		{made(hourly, "", ScheduleOn, 0), true, "fails = fails + 1", fmt.Sprint("[", now.Add(2*time.Minute).UnixMilli(), " main 7]")},
		{made(hourly, "", ScheduleOn, 7), true, "fails = fails + 1", fmt.Sprint("[", now.Add(256*time.Minute).UnixMilli(), " main 7]")},
		{made(hourly, "", ScheduleOn, 8), true, "fails = fails + 1", fmt.Sprint("[", now.Add(6*time.Hour).UnixMilli(), " main 7]")},
		{made(hourly, "", SchedulePaused, 70), true, "fails = fails + 1", fmt.Sprint("[", now.Add(6*time.Hour).UnixMilli(), " main 7]")},
		{made(hourly, "mail", ScheduleOn, 9), true, "state = 'paused', next = 0", "[10 10 failures in a row, the last: why Schedule s7 (mail) is paused: 10 failures in a row, the last: why (`tidemark schedule resume s7`) main 7]"},
		{made(once, "", ScheduleOn, 0), false, "state = 'done', fails = 0", "[main 7]"},
		{made(once, "", ScheduleOn, 0), true, "state = 'done', fails = 1", "[Schedule s7 failed: why main 7]"},
	} {
		state := RunOK
		if row.fail {
			state = RunFailed
		}
		stmt := p.endStmt(row.s, state, "why", now)
		if !strings.HasPrefix(stmt.SQL, "UPDATE agent_schedules SET "+row.sql) || fmt.Sprint(stmt.Args) != row.args {
			t.Errorf("%d failures, %t: %s %v, want %s %s", row.s.Fails, row.fail, stmt.SQL, stmt.Args, row.sql, row.args)
		}
	}
}

// TestLastDue: of times that were missed the last one is done, and the others are counted.
func TestLastDue(t *testing.T) {
	first := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	plan, err := schedule.Spec{Cron: "0 * * * *", Zone: "UTC"}.Parse(first, time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	for late, want := range map[time.Duration]int{0: 0, 59 * time.Minute: 0, time.Hour: 1, 119 * time.Minute: 1, 150 * time.Minute: 2, 24 * time.Hour: 24} {
		last, missed := Schedule{Next: first, plan: plan}.lastDue(first.Add(late))
		if missed != want || !last.Equal(first.Add(time.Duration(want)*time.Hour)) {
			t.Errorf("%v late: %v, %d missed", late, last, missed)
		}
	}
}

// TestSmallRules: ids of schedules, how late they may be, where they run and who may make them.
func TestSmallRules(t *testing.T) {
	for id, want := range map[string]int64{"s1": 1, "s207": 207, "s0": 0, "s-1": 0, "s01": 0, "1": 0, "": 0, "s": 0, "ss1": 0} {
		if n, err := scheduleNumber(id); n != want || errors.Is(err, tidemark.ErrNotFound) != (want == 0) {
			t.Errorf("%q: %d, %v", id, n, err)
		}
	}
	if a, b := (Schedule{}).catchUp(), (Schedule{CatchUp: "2h"}).catchUp(); a != 24*time.Hour || b != 2*time.Hour {
		t.Errorf("%v, %v late", a, b)
	}
	p := &planner{core: &core{cfg: Config{Name: "main", Zone: time.UTC}}}
	for session, want := range map[string]tidemark.Key{SessionMain: "agent:main:main", SessionOwn: "agent:main:schedule:dm:s7", SessionFresh: "agent:main:schedule:dm:s7.99", "agent:main:local:dm:x": "agent:main:local:dm:x"} {
		if got := p.sessionOf(Schedule{ID: "s7", Session: session}, 99); got != want {
			t.Errorf("%s runs in %s", session, got)
		}
	}
	for key, want := range map[tidemark.Key]bool{"agent:main:main": true, "agent:main:local:dm:garden": true, "agent:main:schedule:dm:s7": false, "agent:main:proxy:dm:x": false, "agent:main:whatsapp:dm:+491": false} {
		if got := schedules(key.Scope()); got != want {
			t.Errorf("%s may %t", key, got)
		}
		claim := key.Scope()
		if claim.Owner = true; schedules(claim) != want {
			t.Errorf("%s may, as it says: %t", key, !want)
		}
	}
	for name, want := range map[string]bool{"main": true, "a-b_9": true, "": false, "A": false, "a:b": false, "a b": false} {
		if validName(name) != want {
			t.Errorf("%q is valid %t", name, !want)
		}
	}
	none, early, late := time.Time{}, time.UnixMilli(1), time.UnixMilli(2)
	for _, row := range [][3]time.Time{{none, none, none}, {early, none, early}, {none, late, late}, {early, late, early}, {late, early, early}, {late, late, late}} {
		if got := earliest(row[0], row[1]); !got.Equal(row[2]) {
			t.Errorf("of %v and %v: %v", row[0], row[1], got)
		}
	}
	if !p.at(0).IsZero() || !p.at(1).Equal(early) || original("memory/digest/a.suggested.md") != "memory/digest/a.md" || original("memory/DIGEST.md") != "memory/DIGEST.md" {
		t.Error("times and files are read otherwise")
	}
	run, err := p.scanRun(tidemark.Row{int64(1), "ok", "why", int64(1), int64(3), int64(2), int64(0), `{"entry":"E"}`})
	if err != nil || run.Times != 0 || run.Missed != 3 || !run.Due.Equal(early) || !run.Started.Equal(late) || !run.Finished.IsZero() || run.Entry != "E" {
		t.Errorf("%+v, %v", run, err)
	}
	if run, err = p.scanRun(tidemark.Row{int64(1), "skipped", "", int64(2), int64(0), int64(0), int64(0), "{}"}); err != nil || run.Times != 2 || !run.Started.IsZero() {
		t.Errorf("%+v, %v", run, err)
	}
}

// TestContentBounds: what a person writes is text, and no larger than its old version can be kept.
func TestContentBounds(t *testing.T) {
	for text, want := range map[string]error{strings.Repeat("x", maxEdit): nil, strings.Repeat("x", maxEdit+1): tidemark.ErrTooLarge, "a\x00b": tidemark.ErrInvalid, "\x00": tidemark.ErrInvalid, "\xff": tidemark.ErrInvalid, "": nil} {
		if err := checkContent(memory.Soul, []byte(text)); !errors.Is(err, want) {
			t.Errorf("%d bytes: %v, want %v", len(text), err, want)
		}
	}
	if err := checkContent("../x", nil); err == nil {
		t.Error("a path outside of memory is taken")
	}
}

// TestRankedByFile: of two lines that say the same the one is first whose file is about what is asked.
func TestRankedByFile(t *testing.T) {
	stem := &recall.Stemmer{}
	got := lines(rank(recall.Parse("boat red", stem), []Found{{Path: "b", Line: 1, Text: "the boat"}, {Path: "b", Line: 2, Text: "a red sail"}, {Path: "b", Line: 3, Text: "red paint"}, {Path: "a", Line: 1, Text: "the boat"}, {Path: "a", Line: 2, Text: "a walnut"}}, stem))
	at := func(s string) int {
		return slices.IndexFunc(got, func(l string) bool { return strings.HasPrefix(l, s) })
	}
	if one, two := at("a:1"), at("b:1"); one < 0 || two < 0 || one < two || at("a:2") >= 0 {
		t.Errorf("%q", got)
	}
}
