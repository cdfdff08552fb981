package session

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room"
)

// gateOf is a room that lets calls through as it is told.
type gateOf struct {
	room.NoGate
	rules   map[string]room.Ruling // by tool
	said    map[int]room.Ruling    // of calls that were asked about
	judged  []string
	waiting []room.Waiting
	asking  room.Done
	until   time.Time
	run     string // that is parked
	fails   error
}

func (g *gateOf) Judge(tool string, _ []byte, others bool) room.Ruling {
	g.judged = append(g.judged, fmt.Sprint(tool, " ", others))
	return g.rules[tool]
}

func (g *gateOf) Asked(context.Context, string, int) (map[int]room.Ruling, error) {
	return g.said, g.fails
}
func (g *gateOf) Parked(context.Context) (string, error) { return g.run, g.fails }

func (g *gateOf) Ask(_ context.Context, _ room.Turn, calls []room.Waiting) (room.Done, time.Time, error) {
	g.waiting = calls
	return g.asking, g.until, g.fails
}

// tellerOf notes when something is to be sent.
type tellerOf struct {
	room.NoTeller
	sends int
	lines []string
}

func (o *tellerOf) Dispatch() { o.sends++ }

func (o *tellerOf) Lines(_ context.Context, _ string, from []tidemark.Origin, text string, _ ...string) ([]tidemark.Stmt, error) {
	o.lines = append(o.lines, fmt.Sprint(len(from), " ", text))
	return []tidemark.Stmt{{SQL: `INSERT INTO prompts(hash, text) VALUES(?, '')`, Args: []any{fmt.Sprint("line ", len(o.lines))}}}, nil
}

// tooled is a session with a tool of the agent's and one of others, and a gate.
func tooled(t *testing.T) (*rig, *gateOf, *offers) {
	t.Helper()
	r, g, o := newRig(t, Settings{}), &gateOf{}, &offers{tools: []tidemark.Tool{{Name: "files__write", InputSchema: []byte(`{}`)}}, changed: "files__drifted"}
	r.Session.Agent, r.Session.rooms = offering{}, append(r.Session.rooms, g, o)
	return r, g, o
}

// TestJudged: what becomes of each call: who was asked decides, then what nobody can run, then the rules; one that has its
// result already is left alone.
func TestJudged(t *testing.T) {
	const cut, drifted = `{"_invalid":"{","_reason":"cut off"}`, "files__drifted"
	waits, refused := room.Ruling{Waits: true}, room.Ruling{Refused: "the owner said no"}
	r, g, _ := tooled(t)
	g.rules = map[string]room.Ruling{"files__write": waits, "nosuch": waits, "files__rm": {Refused: "a rule says so"}}
	g.said = map[int]room.Ruling{2: {}, 3: refused, 4: waits, 5: {}, 6: refused, 7: {}, 0: refused, 1: refused}
	rows := []struct {
		name, tool, input string
		state             string
		told              bool // it was decided before
		want              string
		waits             bool
	}{
		{"it has its result", "files__write", `{}`, callDone, false, "", false},
		{"it was told before", "files__write", `{}`, callRegistered, true, "told", false},
		{"the owner allowed it", "files__write", `{}`, callRegistered, false, "", false},
		{"the owner refused it", "files__write", `{}`, callRegistered, false, "not run: the owner said no", false},
		{"the owner has not answered", "files__write", `{}`, callRegistered, false, "", true},
		{"it is another tool than the owner allowed", drifted, `{}`, callRegistered, false, "not run: " + changedTool, false},
		{"it is another tool than the owner refused", drifted, `{}`, callRegistered, false, "not run: the owner said no", false},
		{"the owner allowed what cannot be read", "files__write", cut, callRegistered, false, "", false},
		{"it cannot be read", "files__write", cut, callRegistered, false, "not run: cut off. Call it again with all of them.", false},
		{"it is another tool", drifted, `{}`, callRegistered, false, "not run: " + changedTool, false},
		{"the owner is to be asked", "files__write", `{}`, callRegistered, false, "", true},
		{"there is no such tool", "nosuch", `{}`, callRegistered, false, `not run: you have no tool "nosuch" in this turn.`, false},
		{"a rule refuses it", "files__rm", `{}`, callRegistered, false, "not run: a rule says so", false},
		{"no rule is about it", "look", `{}`, callRegistered, false, "", false},
	}
	calls := make([]call, len(rows))
	for i, row := range rows {
		calls[i] = call{N: i, ID: fmt.Sprint("c", i), Block: tidemark.ToolUse(fmt.Sprint("c", i), row.tool, []byte(row.input)), State: row.state, waits: true}
		if row.told {
			calls[i].told = tidemark.ToolResult(calls[i].ID, "told", true)
		}
	}
	if err := r.judge(t.Context(), &run{ID: "r"}, calls); err != nil {
		t.Fatal(err)
	}
	for i, row := range rows {
		var want tidemark.Block
		if row.want != "" {
			want = tidemark.ToolResult(calls[i].ID, row.want, true)
		}
		if !reflect.DeepEqual(calls[i].told, want) || calls[i].waits != row.waits {
			t.Errorf("%s: %+v, waits %v", row.name, calls[i].told, calls[i].waits)
		}
	}
	if want := []string{"files__write true", "nosuch true", "files__rm true", "look false"}; !slices.Equal(g.judged, want) {
		t.Errorf("the rules were asked about %q, want %q", g.judged, want)
	}
	g.fails = errFaulty
	if err := r.judge(t.Context(), &run{ID: "r"}, calls); !errors.Is(err, errFaulty) {
		t.Errorf("when it cannot be said: %v", err)
	}
}

// TestUnreadable: arguments that a provider could not read are told from those that only look like it.
func TestUnreadable(t *testing.T) {
	for input, want := range map[string]string{
		`{}`: "", `{"_invalid":"{","_reason":"cut off"}`: "cut off", `{"_invalid":""}`: "the arguments are no JSON", `{"_reason":"cut off"}`: "", `[]`: "", `{"_invalid":7}`: "", `x`: "",
	} {
		if got := unreadable([]byte(input)); got != want {
			t.Errorf("%s: %q, want %q", input, got, want)
		}
	}
}

// TestWhoMayAsk: nobody is asked about a tool that could not run, and a stranger has nobody asked about the owner's.
func TestWhoMayAsk(t *testing.T) {
	owner, eve := tidemark.Origin{From: tidemark.FromPerson, Owner: true}, tidemark.Origin{From: tidemark.FromPerson}
	r, _, o := tooled(t)
	theirs := r.opened("agent:main:fake:dm:eve", Settings{})
	theirs.Agent, theirs.rooms = offering{}, r.Session.rooms
	limited := r.opened("agent:main:local:dm:limited", Settings{})
	limited.Agent, limited.rooms = offering{}, r.Session.rooms
	if err := limited.Configure(t.Context(), Override{Limits: &tidemark.Limits{Tools: []string{"look"}}}); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name string
		s    *Session
		who  tidemark.Origin
		tool string
		want bool
	}{
		{"the owner", r.Session, owner, "files__write", true},
		{"a stranger in the owner's", r.Session, eve, "files__write", false},
		{"a stranger in the owner's, of one of ours", r.Session, eve, "look", true},
		{"a stranger in theirs", theirs, eve, "files__write", true},
		{"of none", r.Session, owner, "nosuch", false},
		{"beyond the limits", limited, owner, "files__write", false},
		{"within the limits", limited, owner, "look", true},
	} {
		if got := row.s.mayAsk(t.Context(), &run{origins: []tidemark.Origin{row.who}}, row.tool); got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
	o.fails = errFaulty
	if !r.mayAsk(t.Context(), &run{origins: []tidemark.Origin{owner}}, "nosuch") {
		t.Error("while it is not known which tools there are")
	}
	for name, want := range map[string]bool{room.RecallTool: true, room.TaskTool: true, room.DelegateTool: true, helpTool: true, "look": true, "files__write": false} {
		if got := r.builtin(name); got != want {
			t.Errorf("%s is ours: %v", name, got)
		}
	}
}

// TestParkedRun: a run whose calls wait asks about them, rests until their time and is looked after then; what was stopped,
// decided or taken over meanwhile is told apart.
func TestParkedRun(t *testing.T) {
	for _, row := range []struct {
		name      string
		meanwhile string // what happens to the row of the run
		decided   bool
		want      error
		rests     bool
	}{
		{"it rests", "", false, errParked, true},
		{"it was stopped", `UPDATE runs SET error = 'stop:""' WHERE id = ?`, false, tidemark.ErrAborted, false},
		{"it was decided", `UPDATE runs SET state = 'calling' WHERE id = ?`, true, nil, false},
		{"another life has it", `UPDATE runs SET owner = 'another' WHERE id = ?`, false, tidemark.ErrConflict, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			r, g, _ := tooled(t)
			tells := &tellerOf{}
			r.Session.rooms = append(r.Session.rooms, tells)
			then := 0
			g.until = r.clock.Now().Add(time.Hour)
			g.asking = room.Done{Then: func() { then++ }, Stmts: []tidemark.Stmt{{SQL: `INSERT INTO prompts(hash, text) VALUES('asked', '')`}}}
			x := r.working(stateTools)
			if row.decided {
				g.said = map[int]room.Ruling{1: {}}
				r.exec(`INSERT INTO calls(run, round, n, id, call, idempotent, state) VALUES(?, 0, 1, 'c1', '{"type":"tool_use","id":"c1","name":"look","input":{}}', 0, 'registered')`, x.ID)
			}
			if row.meanwhile != "" {
				r.exec(row.meanwhile, x.ID)
			}
			input := []byte(`{"a":1}`)
			err := r.park(t.Context(), x, []call{{N: 0, Block: tidemark.ToolUse("c0", "look", nil)}, {N: 1, Block: tidemark.ToolUse("c1", "files__write", input), waits: true}})
			if !errors.Is(err, row.want) || row.want == nil && err != nil {
				t.Errorf("%v, want %v", err, row.want)
			}
			if want := []room.Waiting{{N: 1, Tool: "files__write", Input: input}}; !reflect.DeepEqual(g.waiting, want) {
				t.Errorf("it asks about %+v", g.waiting)
			}
			due, asked, once := "", "0", 0
			if row.rests {
				due, asked, once = fmt.Sprint("main run ", g.until.UnixMilli(), " "), "1", 1
			}
			r.reads(due, dueRows)
			r.reads(asked, `SELECT count(*) FROM prompts WHERE hash = 'asked' LIMIT 1`)
			if then != once || tells.sends != once {
				t.Errorf("written %d times, sent %d times", then, tells.sends)
			}
		})
	}
	r, g, _ := tooled(t)
	g.fails = errFaulty
	if err := r.park(t.Context(), r.working(stateTools), nil); !errors.Is(err, errFaulty) {
		t.Errorf("when nobody can be asked: %v", err)
	}
	g.fails = nil
	r.faulty.refuses("UPDATE runs")
	if err := r.park(t.Context(), &run{}, nil); !errors.Is(err, errFaulty) || !strings.Contains(err.Error(), "ask the owner") {
		t.Errorf("when it cannot be written: %v", err)
	}
}

// TestDecidedSince: a parked run goes on when a call of it that has not run was decided, and not by others.
func TestDecidedSince(t *testing.T) {
	for _, row := range []struct {
		name  string
		state string
		said  map[int]room.Ruling
		want  bool
	}{
		{"allowed", callRegistered, map[int]room.Ruling{1: {}}, true},
		{"refused", callRegistered, map[int]room.Ruling{1: {Refused: "no"}}, true},
		{"it waits", callRegistered, map[int]room.Ruling{1: {Waits: true}}, false},
		{"nobody was asked", callRegistered, nil, false},
		{"another one", callRegistered, map[int]room.Ruling{2: {}}, false},
		{"it has run", callStarted, map[int]room.Ruling{1: {}}, false},
	} {
		r, g, _ := tooled(t)
		x := r.working(stateTools)
		g.said = row.said
		r.exec(`INSERT INTO calls(run, round, n, id, call, idempotent, state) VALUES(?, 0, 1, 'c1', '{"type":"tool_use","id":"c1","name":"look","input":{}}', 0, ?)`, x.ID, row.state)
		if got, err := r.decidedSince(t.Context(), x); got != row.want || err != nil {
			t.Errorf("%s: %v, %v", row.name, got, err)
		}
		if g.fails = errFaulty; row.want {
			if got, err := r.decidedSince(t.Context(), x); got || !errors.Is(err, errFaulty) {
				t.Errorf("%s, when it cannot be said: %v, %v", row.name, got, err)
			}
		}
	}
}

// TestAbortOfAParkedRun: what waits is stopped once, and only what waits; a failure is warned of.
func TestAbortOfAParkedRun(t *testing.T) {
	r, g, _ := tooled(t)
	if r.abortParked(t.Context()) {
		t.Error("nothing waits, and it was stopped")
	}
	x := r.working(stateTools)
	r.exec(`INSERT INTO runs(id, key, log, owner, state, started, updated) VALUES('theirs', 'agent:main:aunt', '', '', 'tools', 0, 0)`)
	g.run, g.fails = x.ID, errFaulty
	if r.abortParked(t.Context()) {
		t.Error("nobody knows what waits, and it was stopped")
	}
	g.fails = nil
	r.exec(`UPDATE runs SET state = 'calling' WHERE id = ?`, x.ID)
	for i, state := range []string{"", stateTools, ""} {
		if state != "" {
			r.exec(`UPDATE runs SET state = ? WHERE id = ?`, state, x.ID)
		}
		stopped := r.abortParked(t.Context())
		if warned := strings.Contains(r.warned.taken(), `msg="stop what waits"`); stopped != (i == 1) || warned == stopped {
			t.Errorf("try %d: stopped %v, warned %v", i, stopped, warned)
		}
	}
	r.reads(`stop:""; `, `SELECT error FROM runs ORDER BY key DESC LIMIT 9`)
}

// TestGoesOn: a run that rests is made due, unless it was stopped, or rests no more.
func TestGoesOn(t *testing.T) {
	r := newRig(t, Settings{})
	x := r.working(stateTools)
	r.exec(`INSERT INTO runs(id, key, log, owner, state, started, updated) VALUES('theirs', 'agent:main:aunt', '', '', 'tools', 0, 0)`)
	log, stmts, err := r.goOnStmts(t.Context(), x.ID)
	if err != nil || log != x.Log {
		t.Fatal(log, err)
	}
	for _, change := range []string{`state = 'calling'`, `state = 'tools', error = 'stop:""'`} {
		r.exec(`UPDATE runs SET ` + change)
		if err := r.DB.Tx(t.Context(), stmts); !errors.Is(err, tidemark.ErrConflict) {
			t.Errorf("%s: %v", change, err)
		}
		r.reads("", dueRows)
	}
	r.exec(`UPDATE runs SET error = ''`)
	r.runs(stmts...)
	r.reads(fmt.Sprint("main run ", rigNoon, " "), dueRows)
}

// TestParkedIsTold: when a run is parked the agent is told what it is owed, and the host is asked to wake the session.
func TestParkedIsTold(t *testing.T) {
	r, _, _ := tooled(t)
	a := &listening{}
	r.Session.Agent = a
	var asked []int64
	r.Alarm = func(_ context.Context, at time.Time) error {
		asked = append(asked, at.UnixMilli())
		return nil
	}
	x := r.working(stateTools)
	r.isDue("main", dueRun, 9, "")
	r.release(x.ID)
	r.parked(x)
	r.rests()
	if !slices.Equal(a.heard, []string{"report of agent:main:main"}) || !slices.Equal(asked, []int64{9}) {
		t.Errorf("heard %q, asked for %d", a.heard, asked)
	}
	r.reads("9 "+x.owner, `SELECT at, owner FROM due JOIN runs WHERE kind = 'run' LIMIT 9`) // nobody goes on with it
}

// TestParkedGoesOn: a call that was decided while its run was still in work runs, and the run with it.
func TestParkedGoesOn(t *testing.T) {
	r, g, _ := tooled(t)
	r.Session.Agent = &keeping{files: "what it gave"}
	r.asks(unwilling{&tidemark.APIError{Class: tidemark.ClassAuth, Message: "no"}})
	g.said = map[int]room.Ruling{0: {}}
	x := r.working(stateTools)
	r.exec(`INSERT INTO calls(run, round, n, id, call, idempotent, state) VALUES(?, 0, 0, 'c0', '{"type":"tool_use","id":"c0","name":"look","input":{}}', 0, 'registered')`, x.ID)
	r.release(x.ID)
	r.parked(x)
	r.rests()
	r.reads("done", `SELECT state FROM calls LIMIT 9`)
}
