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
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/reset"
	"github.com/tidemark-ai/tidemark/room"
)

// dueRows are all rows of what is due.
const dueRows = `SELECT substr(key, 12), kind, at, data FROM due ORDER BY key, kind LIMIT 100`

// isDue adds a row of what is due.
func (r *rig) isDue(key, kind string, at int64, data string) {
	r.t.Helper()
	r.exec(`INSERT INTO due(key, kind, at, data) VALUES(?, ?, ?, ?)`, "agent:main:"+key, kind, at, data)
}

// TestDueOfAll: what a host must wake, and when: at once what waits for a channel that may be there, what a clock that was set
// back put far off, an input that waits and a run that nobody works on.
func TestDueOfAll(t *testing.T) {
	r := newRig(t, Settings{})
	now := r.clock.Now()
	if at, err := NextDue(t.Context(), r.DB); !at.IsZero() || err != nil {
		t.Errorf("nothing is due at %s, %v", at, err)
	}
	far := now.Add(room.FarPause).UnixMilli()
	r.isDue("two", dueOutbox, 9000, "")
	r.isDue("two", dueReset, 8000, "")
	r.isDue("unset", room.DueOutbound, 9000, room.DueUnset)
	r.isDue("set", room.DueOutbound, 9000, "")
	r.isDue("far", room.DueOutbound, far+1, "")
	r.isDue("near", room.DueOutbound, far, "")
	r.isDue("other", dueOutbox, far+1, room.DueUnset)
	r.exec(`INSERT INTO inputs(key, id, kind, state, at, origin, payload, hash) VALUES('new', '1', 'message', 'new', 0, '', '', ''), ('taken', '1', 'message', 'taken', 0, '', '', ''),
		('near', '1', 'message', 'done', 0, '', '', '')`)
	r.exec(`INSERT INTO runs(id, key, log, owner, state, started, updated) VALUES('1', 'calling', '', '', 'calling', 0, 0), ('2', 'tools', '', '', 'tools', 0, 0), ('3', 'done', '', '', 'done', 0, 0), ('4', 'failed', '', '', 'failed', 0, 0)`)
	all, err := Due(t.Context(), r.DB, now)
	var got []string
	for key, at := range all {
		ms := at.UnixMilli()
		if at.IsZero() {
			ms = 0
		}
		got = append(got, fmt.Sprint(strings.TrimPrefix(string(key), "agent:main:"), " ", ms))
	}
	slices.Sort(got)
	want := []string{"calling 0", "far 0", fmt.Sprint("near ", far), "new 0", fmt.Sprint("other ", far+1), "set 9000", "tools 0", "two 8000", "unset 0"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	if at, err := NextDue(t.Context(), r.DB); at.UnixMilli() != 8000 || err != nil {
		t.Errorf("the next is due at %s, %v", at, err)
	}
}

// TestDueStatements: what each statement about due work does to the rows of the conversation, and to no others.
func TestDueStatements(t *testing.T) {
	const others = "aunt outbox 5 theirs; aunt run 5 theirs; "
	late := rigNoon + heartbeat.Milliseconds()
	for _, row := range []struct {
		name  string
		waits string // whose input waits
		stmt  func(r *rig) tidemark.Stmt
		want  string
	}{
		{"due anew", "", func(r *rig) tidemark.Stmt { return r.dueStmt(dueReset, r.clock.Now(), "x") }, fmt.Sprint("main outbox 5 ; main reset ", rigNoon, " x; main run 5 ")},
		{"due at another time", "", func(r *rig) tidemark.Stmt { return r.dueStmt(dueRun, r.clock.Now(), "x") }, fmt.Sprint("main outbox 5 ; main run ", rigNoon, " x")},
		{"not due any more", "", func(r *rig) tidemark.Stmt { return r.undueStmt(dueRun) }, "main outbox 5 "},
		{"an input waits", "", func(r *rig) tidemark.Stmt { return r.waitStmt(r.clock.Now()) }, "main outbox 5 ; main run 5 "},
		{"a run rests", "", func(r *rig) tidemark.Stmt { return r.restStmt() }, "main outbox 5 "},
		{"a run rests before an input", "main", func(r *rig) tidemark.Stmt { return r.restStmt() }, "main outbox 5 ; main run 5 "},
		{"a run rests before an input of others", "aunt", func(r *rig) tidemark.Stmt { return r.restStmt() }, "main outbox 5 "},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, Settings{})
			r.isDue("aunt", dueOutbox, 5, "theirs")
			r.isDue("aunt", dueRun, 5, "theirs")
			r.isDue("main", dueOutbox, 5, "")
			r.isDue("main", dueRun, 5, "")
			r.exec(`INSERT INTO inputs(key, id, kind, state, at, origin, payload, hash) VALUES(?, 'old', 'message', 'done', 0, '', '', '')`, string(r.Key))
			if row.waits != "" {
				r.exec(`INSERT INTO inputs(key, id, kind, state, at, origin, payload, hash) VALUES(?, '1', 'message', 'new', 0, '', '', '')`, "agent:main:"+row.waits)
			}
			r.runs(row.stmt(r))
			r.reads(others+row.want, dueRows)
		})
	}
	r := newRig(t, Settings{})
	r.runs(r.waitStmt(r.clock.Now()))
	r.reads(fmt.Sprint("main run ", late, " "), dueRows)
	r.runs(r.outboxStmt("a", "facts", 1), r.outboxStmt("a", "archive", 2))
	r.reads(fmt.Sprint("a agent:main:main facts 1 ", rigNoon), `SELECT id, key, kind, payload, at FROM outbox LIMIT 9`)
}

// TestDueReset: a reset is planned anew but for one that is overdue, which keeps the time of its next try.
func TestDueReset(t *testing.T) {
	r := newRig(t, Settings{})
	now := r.clock.Now()
	retry := resetRetry.Milliseconds()
	for _, row := range []struct{ has, at, want int64 }{ // from now, in milliseconds
		{10, 5, 5}, {10, 1, 1}, {10, 0, 10}, {10, -5, 10}, {0, -5, 0}, {-1, -5, -5}, {retry, -5, retry}, {retry + 1, -5, -5}, {retry + 1, 1, 1},
	} {
		r.exec(`DELETE FROM due`)
		r.isDue("main", dueReset, rigNoon+row.has, "")
		r.runs(r.dueResetStmt(time.UnixMilli(rigNoon+row.at), now))
		r.reads(fmt.Sprint("main reset ", rigNoon+row.want, " "), dueRows)
	}
	r.exec(`DELETE FROM due`)
	r.runs(r.dueResetStmt(time.UnixMilli(rigNoon-5), now))
	r.reads(fmt.Sprint("main reset ", rigNoon-5, " "), dueRows)
}

// TestResetIsPlanned: the policy's reset is planned for a conversation in which something was said, and for no other.
func TestResetIsPlanned(t *testing.T) {
	p := reset.Policy{Mode: reset.Idle, IdleMinutes: 60}
	r := newRig(t, Settings{Reset: p})
	r.opened("agent:main:aunt", Settings{})
	at := reset.Alarm(p, string(r.Key), r.clock.Now(), r.clock.Now()).UnixMilli()
	for messages, want := range []string{"", fmt.Sprint("main reset ", at, " ")} {
		r.exec(`UPDATE heads SET messages = ? WHERE key = ?`, messages, string(r.Key))
		r.nextReset(t.Context())
		r.reads(want, dueRows)
	}
	r.exec(`UPDATE heads SET messages = 0`)
	r.nextReset(t.Context())
	r.reads("", dueRows)
}

// waking is a room that notes when it is woken, with kinds of its own.
type waking struct {
	kind  string
	woken int
	then  func() error
}

func (w *waking) Wakes() string { return w.kind }

func (w *waking) Wake(context.Context) error {
	w.woken++
	if w.then != nil {
		return w.then()
	}
	return nil
}

// TestWakeDoesWhatIsDue: a wake does what is due of the conversation, and what a clock that was set back put far off; what
// fails is left alone for a while unless its room says when, and what is of no room is not due any more.
func TestWakeDoesWhatIsDue(t *testing.T) {
	r := newRig(t, Settings{})
	far := r.clock.Now().Add(room.FarPause).UnixMilli()
	rooms := map[string]*waking{}
	for _, kind := range []string{"now", "later", "theirs", "fails", "says", room.DueOutbound, "farther"} {
		rooms[kind] = &waking{kind: kind}
		r.Session.rooms = append(r.Session.rooms, rooms[kind])
	}
	rooms["fails"].then = func() error { return errFaulty }
	rooms["says"].then = func() error {
		r.exec(`UPDATE due SET at = ? WHERE key = ? AND kind = 'says'`, rigNoon+7, string(r.Key))
		return errFaulty
	}
	r.isDue("main", "now", rigNoon, "")
	r.isDue("main", "later", rigNoon+1, "")
	r.isDue("aunt", "theirs", 0, "")
	r.isDue("aunt", "fails", 0, "")
	r.isDue("main", "fails", 0, "")
	r.isDue("main", "says", 0, "")
	r.isDue("main", "nobodys", 0, "")
	r.isDue("aunt", "nobodys", 0, "")
	r.isDue("main", room.DueOutbound, far+1, "")
	r.isDue("main", "farther", far+1, "")
	if err := r.Wake(t.Context()); err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]int{"now": 1, "later": 0, "theirs": 0, "fails": 1, "says": 1, room.DueOutbound: 1, "farther": 0} {
		if got := rooms[kind].woken; got != want {
			t.Errorf("%s was woken %d times, want %d", kind, got, want)
		}
	}
	minute := rigNoon + wakeRetry.Milliseconds()
	r.reads(fmt.Sprint("aunt fails 0 ; aunt nobodys 0 ; aunt theirs 0 ; main fails ", minute, " ; main farther ", far+1, " ; main later ", rigNoon+1, " ; main now ", rigNoon, " ; main out ", far+1,
		" ; main says ", rigNoon+7, " "), dueRows)
	if got := r.warned.taken(); strings.Count(got, "msg=wake") != 2 || !strings.Contains(got, "kind=fails") {
		t.Errorf("logged %q", got)
	}
	rooms[room.DueOutbound].then = func() error { return errFaulty }
	if err := r.Wake(t.Context()); err != nil { // what is far off and fails is put off, too
		t.Fatal(err)
	}
	r.reads(fmt.Sprint(minute), `SELECT at FROM due WHERE key = ? AND kind = 'out' LIMIT 1`, string(r.Key))
	if err := r.Wake(t.Context()); err != nil || rooms[room.DueOutbound].woken != 2 {
		t.Errorf("what is put off was woken %d times, %v", rooms[room.DueOutbound].woken, err)
	}
	r.faulty.refuses("UPDATE due")
	rooms["now"].then = func() error { return errFaulty }
	if err := r.Wake(t.Context()); !errors.Is(err, errFaulty) || !strings.Contains(err.Error(), "put off now: ") {
		t.Errorf("when it cannot be put off: %v", err)
	}
	r.faulty.refuses("FROM due")
	if err := r.Wake(t.Context()); !errors.Is(err, errFaulty) || !strings.Contains(err.Error(), "wake agent:main:main") {
		t.Errorf("when it cannot be read: %v", err)
	}
}

// TestAlarmOfTheSession: the host is asked to wake the session at what is due of it first, and not at the end of its life.
func TestAlarmOfTheSession(t *testing.T) {
	r := newRig(t, Settings{})
	r.setAlarm(t.Context()) // nobody to ask
	var asked []int64
	var fails error
	r.Alarm = func(_ context.Context, at time.Time) error {
		asked = append(asked, at.UnixMilli())
		return fails
	}
	r.isDue("aunt", dueRun, 3, "")
	r.setAlarm(t.Context())
	r.isDue("main", dueRun, 9, "")
	r.isDue("main", dueReset, 7, "")
	r.setAlarm(t.Context())
	over, end := context.WithCancel(t.Context())
	end()
	r.setAlarm(over)
	if !slices.Equal(asked, []int64{7}) || r.warned.taken() != "" {
		t.Errorf("asked for %d", asked)
	}
	fails = errFaulty
	r.setAlarm(t.Context())
	if got := r.warned.taken(); !strings.Contains(got, `msg="set alarm"`) {
		t.Errorf("logged %q", got)
	}
	r.faulty.refuses("min(at)")
	r.setAlarm(t.Context())
	if got := r.warned.taken(); !strings.Contains(got, `msg="set alarm"`) || len(asked) != 2 {
		t.Errorf("logged %q, asked for %d", got, asked)
	}
}

// TestLookAfterAStall: while a conversation cannot get on, nothing is taken up, and it is looked after when it tries again, not
// before; without a run and an input nobody looks.
func TestLookAfterAStall(t *testing.T) {
	beat := heartbeat.Milliseconds()
	for _, row := range []struct {
		until int64 // from now
		waits bool
		want  string
	}{{beat + 1, true, fmt.Sprint("main run ", rigNoon+beat+1, " ")}, {beat - 1, true, fmt.Sprint("main run ", rigNoon+beat, " ")}, {beat + 1, false, ""}} {
		r := newRig(t, Settings{})
		r.outage = outage{tries: 1, until: time.UnixMilli(rigNoon + row.until), wake: func() {}}
		r.isDue("main", dueRun, 5, "")
		if row.waits {
			r.exec(`INSERT INTO inputs(key, id, kind, state, at, origin, payload, hash) VALUES(?, '1', 'message', 'new', 0, '', '', '')`, string(r.Key))
		}
		if err := r.Wake(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.rests()
		r.reads(row.want, dueRows)
		r.reads("0", `SELECT count(*) FROM runs LIMIT 1`)
	}
}

// TestWakeTakesUp: a wake begins a run for an input that waits though nothing is due, and goes on with one that nobody works on.
func TestWakeTakesUp(t *testing.T) {
	for _, row := range []struct {
		name, want, sql string
	}{
		{"an input", stateFailed, `INSERT INTO inputs(key, id, kind, state, at, origin, payload, hash) VALUES('agent:main:main', '1', 'message', 'new', 0, '{}', '{"role":"user","content":"a"}', '')`},
		{"a run", stateDone, `INSERT INTO runs(id, key, log, owner, state, started, updated) SELECT 'r', key, log, '000000000000/x', 'calling', 0, 0 FROM heads`},
	} {
		r := newRig(t, Settings{})
		r.asks(unwilling{&tidemark.APIError{Class: tidemark.ClassAuth, Message: "no"}})
		r.exec(row.sql)
		if row.name == "a run" {
			r.isDue("main", dueRun, 0, "") // it took nothing up
		}
		if err := r.Wake(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.rests()
		r.reads(row.want, `SELECT state FROM runs LIMIT 9`)
	}
}

// listening is an agent that notes what it is told, and fails as it is told.
type listening struct {
	silent
	heard []string
	fails map[string]error // by the id of an extraction; "" for a report
}

func (a *listening) Remember(_ context.Context, x tidemark.Extraction) error {
	a.heard = append(a.heard, "fact "+x.ID)
	return a.fails[x.ID]
}

func (a *listening) Report(_ context.Context, i tidemark.SessionInfo, infos []archive.Info) error {
	a.heard = append(a.heard, "report of "+string(i.Key))
	for _, x := range infos {
		a.heard = append(a.heard, "archive "+x.Key)
	}
	return a.fails[""]
}

// reporting is a room with something to tell the agent, which also hears when it was told.
type reporting struct {
	heard []string
	told  int
}

func (*reporting) Reports() string { return "things" }

func (p *reporting) Report(_ context.Context, payload []byte) error {
	p.heard = append(p.heard, string(payload))
	return nil
}

func (*reporting) ToldStmts() []tidemark.Stmt {
	return []tidemark.Stmt{{SQL: `INSERT INTO prompts(hash, text) VALUES('told', '') ON CONFLICT(hash) DO UPDATE SET text = text || 'x'`}}
}

func (p *reporting) Told(context.Context) { p.told++ }

// owes puts rows into the outbox of the session, in their order.
func (r *rig) owes(rows ...[3]string) {
	r.t.Helper()
	for i, x := range rows {
		r.exec(`INSERT INTO outbox(id, key, kind, payload, at) VALUES(?, ?, ?, ?, ?)`, x[0], string(r.Key), x[1], x[2], i)
	}
}

// TestTold: what the agent is told of the outbox, and what stays there: what it refuses, what it has no time for behind
// something that could not be told, and archives whose report failed.
func TestTold(t *testing.T) {
	rows := [][3]string{{"1", "facts", `{"id":"x1"}`}, {"2", "archive", `{"key":"k2"}`}, {"3", "facts", `{"id":"x3"}`}, {"4", "facts", `[]`}, {"5", "archive", `[]`}, {"6", "things", `{"n":1}`}, {"7", "nobodys", `{}`}, {"8", "facts", `{"id":"x8"}`}}
	const all = "fact x1, fact x3, fact x8, report of agent:main:main, archive k2"
	soon := rigNoon + outboxRetry.Milliseconds()
	for _, row := range []struct {
		name  string
		rows  [][3]string
		fails map[string]error
		heard string
		left  string
		due   int64 // 0: nothing
		rooms int   // how often they hear that it was told
	}{
		{"all that can be read", rows, nil, all, "4; 5; theirs", soon, 1},
		{"one is refused", rows, map[string]error{"x3": tidemark.ErrForbidden}, all, "3; 4; 5; theirs", soon, 1},
		{"one is too large", rows, map[string]error{"x3": tidemark.ErrTooLarge}, all, "3; 4; 5; theirs", soon, 1},
		{"it is gone", rows, map[string]error{"x3": tidemark.ErrUnavailable}, "fact x1, fact x3", "2; 3; 4; 5; 6; 7; 8; theirs", soon, 1},
		{"the report fails", rows, map[string]error{"": tidemark.ErrUnavailable}, all, "2; 4; 5; theirs", soon, 1},
		{"nothing fails", rows[:3], nil, "fact x1, fact x3, report of agent:main:main, archive k2", "theirs", 0, 1},
		{"nothing is owed", nil, nil, "report of agent:main:main", "theirs", 0, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			r, a, p := newRig(t, Settings{}), &listening{fails: row.fails}, &reporting{}
			r.Session.Agent, r.Session.rooms = a, append(r.Session.rooms, p)
			r.exec(`INSERT INTO outbox(id, key, kind, payload, at) VALUES('theirs', 'agent:main:aunt', 'facts', '{"id":"theirs"}', 0)`)
			r.owes(row.rows...)
			r.isDue("main", dueOutbox, 5, "")
			r.report(t.Context())
			if got := strings.Join(a.heard, ", "); got != row.heard {
				t.Errorf("the agent hears %q, want %q", got, row.heard)
			}
			r.reads(row.left, `SELECT id FROM outbox ORDER BY id LIMIT 99`)
			want := ""
			if row.due > 0 {
				want = fmt.Sprint("main outbox ", row.due, " ")
			}
			r.reads(want, dueRows)
			if p.told != row.rooms || len(row.rows) == 8 && row.name != "it is gone" && !slices.Equal(p.heard, []string{`{"n":1}`}) {
				t.Errorf("rooms: told %d times, %q", p.told, p.heard)
			}
			r.reads("told", `SELECT hash FROM prompts WHERE hash = 'told' LIMIT 1`)
			if got := r.warned.taken(); row.fails["x3"] != nil && !strings.Contains(got, `msg="tell agent" session=agent:main:main item=3 `) {
				t.Errorf("logged %q", got)
			}
		})
	}
}

// TestToldByPages: very much is told page by page, and what the rest is due at.
func TestToldByPages(t *testing.T) {
	for owed, want := range map[int]struct{ left, due string }{outboxPage - 1: {"0", ""}, outboxPage: {"0", fmt.Sprint("main outbox ", rigNoon, " ")}, outboxPage + 1: {"1", fmt.Sprint("main outbox ", rigNoon, " ")}} {
		r, a := newRig(t, Settings{}), &listening{}
		r.Session.Agent = a
		var rows [][3]string
		for i := range owed {
			rows = append(rows, [3]string{fmt.Sprint(i), "facts", `{"id":"x"}`})
		}
		r.owes(rows...)
		r.report(t.Context())
		r.reads(want.left, `SELECT count(*) FROM outbox LIMIT 1`)
		r.reads(want.due, dueRows)
		if n := len(a.heard); n != min(owed, outboxPage)+1 {
			t.Errorf("of %d the agent hears %d", owed, n)
		}
	}
}

// TestReportIsPutOff: the directory is told again after a while, unless there is more to tell; a clock that was set back holds
// nothing up.
func TestReportIsPutOff(t *testing.T) {
	r, a := newRig(t, Settings{ReportEvery: time.Minute}), &listening{}
	r.Session.Agent = a
	var asked []int64
	r.Alarm = func(_ context.Context, at time.Time) error {
		asked = append(asked, at.UnixMilli()-rigNoon)
		return nil
	}
	for i, row := range []struct {
		passes time.Duration
		owes   bool
		told   bool
		due    int64 // from noon; 0: nothing
	}{
		{0, false, true, 0}, {time.Second, false, false, 60_000}, {58 * time.Second, false, false, 60_000}, {0, true, true, 0}, {59_999 * time.Millisecond, false, false, 119_000},
		{time.Millisecond, false, true, 0}, {-time.Hour, false, true, 0}, {time.Second, false, false, 119_000 - 3_600_000 + 60_000},
	} {
		r.clock.passes(row.passes)
		if a.heard = nil; row.owes {
			r.owes([3]string{"a", "facts", `{"id":"x"}`})
		}
		r.report(t.Context())
		if got := len(a.heard) > 0; got != row.told {
			t.Errorf("step %d: told %v, want %v", i, got, row.told)
		}
		want := ""
		if row.due != 0 {
			want = fmt.Sprint("main outbox ", rigNoon+row.due, " ")
		}
		r.reads(want, dueRows)
	}
	if want := []int64{60_000, 60_000, 119_000, 119_000 - 3_600_000 + 60_000}; !slices.Equal(asked, want) { // whenever it was put off
		t.Errorf("the host is asked to wake it at %d, want %d", asked, want)
	}
}

// TestReportsThatFail: what cannot be read or written of a report is warned of.
func TestReportsThatFail(t *testing.T) {
	for refused, want := range map[string]string{"FROM outbox WHERE key": "read outbox", "DELETE FROM due WHERE key = ? AND kind = ? AND NOT": "clear outbox", "DELETE FROM due WHERE key = ? AND kind = ?": "plan reset"} {
		r, a, p := newRig(t, Settings{}), &listening{}, &reporting{}
		r.Session.Agent, r.Session.rooms = a, append(r.Session.rooms, p)
		r.faulty.refuses(refused)
		r.report(t.Context())
		if got := r.warned.taken(); !strings.Contains(got, fmt.Sprintf("msg=%q", want)) || p.told != 0 {
			t.Errorf("without %q: logged %q, rooms told %d times", refused, got, p.told)
		}
	}
	r, a := newRig(t, Settings{ReportEvery: time.Minute}), &listening{fails: map[string]error{"": errFaulty}}
	r.Session.Agent = a
	r.report(t.Context())
	if got := r.warned.taken(); !strings.Contains(got, `msg="report to agent"`) {
		t.Errorf("logged %q", got)
	}
	a.fails = nil
	r.report(t.Context())
	r.faulty.refuses("INSERT INTO due")
	r.report(t.Context())
	if got := r.warned.taken(); !strings.Contains(got, `msg="put off report"`) || len(a.heard) != 2 {
		t.Errorf("logged %q, heard %q", got, a.heard)
	}
}
