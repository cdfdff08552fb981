package session

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// TestHalted: what the mark of a run says of who stopped it, in the form of now and in the older one.
func TestHalted(t *testing.T) {
	for mark, want := range map[string]string{"": "", "timed out": "", `stop:""`: "by ", `stop:"ann"`: "by ann", `stop:{"platform":"fake","peer":"ann"}`: "by " + tidemark.Address{Platform: "fake", Peer: "ann"}.Reader(), "stop:7": "by "} {
		err := (&run{mark: mark}).halted()
		got := ""
		var st *stopped
		if errors.As(err, &st) {
			got = "by " + st.by
		}
		if got != want || (err == nil) != (want == "") || err != nil && (!errors.Is(err, tidemark.ErrAborted) || err.Error() != "stopped: aborted") {
			t.Errorf("%q: %q, %v", mark, got, err)
		}
	}
	if got := told(&stopped{by: "ann"}); !slices.Equal(got, []string{"ann"}) {
		t.Errorf("who stopped it is %q", got)
	}
	if got := append(told(&stopped{}), told(tidemark.ErrAborted)...); len(got) > 0 {
		t.Errorf("who knows is %q", got)
	}
}

// TestWhy: a run learns from its row that it was stopped, once, and only from its own.
func TestWhy(t *testing.T) {
	lost := fmt.Errorf("write: %w", tidemark.ErrConflict)
	for _, c := range []struct {
		name, to string
		stopped  bool
	}{
		{"not stopped", `error = ''`, false},
		{"stopped", `error = 'stop:"ann"'`, true},
		{"failed", `error = 'no'`, false},
		{"stopped, and another life has it", `error = 'stop:"ann"', owner = '000000000009/x'`, false},
		{"stopped, and it has ended", `error = 'stop:"ann"', state = 'failed'`, false},
	} {
		s, _ := plain(t, Config{})
		r := s.begun(t, "r", stateCalling)
		s.does(t, `INSERT INTO runs(id, key, log, owner, state, started, updated, error) VALUES('a-twin', 'agent:main:twin', 'x', ?, 'tools', 1, 1, 'stop:"bob"')`, r.owner)
		s.does(t, `UPDATE runs SET `+c.to+` WHERE key = ? AND id = 'r'`, string(s.Key))
		err := s.why(r, lost)
		if errors.Is(err, tidemark.ErrAborted) != c.stopped || !c.stopped && !errors.Is(err, tidemark.ErrConflict) || c.stopped && (r.mark != `stop:"ann"` || !slices.Equal(told(err), []string{"ann"})) {
			t.Errorf("%s: %v, marked %q", c.name, err, r.mark)
		}
		if again := s.why(&run{ID: "r", owner: r.owner, mark: "known"}, lost); errors.Is(again, tidemark.ErrAborted) {
			t.Errorf("%s: it learns what it knows: %v", c.name, again)
		}
	}
}

// TestStopARun: who stops a run is answered at once. Its row is marked by whoever was first, the command that it carries out
// is done, and what it would have answered is taken up for it to end with.
func TestStopARun(t *testing.T) {
	s, rt := plain(t, Config{})
	r := s.begun(t, "r", stateCalling)
	s.runs(t, "r0", r.Log, stateDone, 1)
	s.puts(t, s.Key, "before", InputCompact, "done", "r0")
	s.puts(t, s.Key, "c", InputCompact, "new", "")
	s.puts(t, s.Key, "d", InputCompact, "new", "")
	s.does(t, `UPDATE inputs SET payload = '"names"' WHERE key = ? AND id IN ('c', 'd')`, string(s.Key))
	stmts := []tidemark.Stmt{{SQL: `UPDATE heads SET title = title || 's' WHERE key = ?`, Args: []any{string(s.Key)}, Want: 1}}
	by := Input{ID: "stop", Origin: tidemark.Origin{From: tidemark.FromPerson, Owner: true, To: &tidemark.Address{Platform: "fake", Peer: "ann"}}}
	if err := s.stopRun(t.Context(), by, "r", stmts); err != nil {
		t.Fatal(err)
	}
	if got := s.reads(t, `SELECT id, state, run FROM inputs WHERE key = ? ORDER BY n LIMIT 9`, string(s.Key)); got != "before done r0, c done r, d new " {
		t.Errorf("the inputs are %q", got)
	}
	want := stopMark + mustJSON(by.Origin.Reader())
	if got := s.reads(t, runRow, string(s.Key)); got != "calling 1 0 0 "+want || len(rt.later) != 1 {
		t.Errorf("the run is %q, %d are to run", got, len(rt.later))
	}
	other := by
	other.Origin.To = nil
	if err := s.stopRun(t.Context(), other, "r", stmts); err != nil {
		t.Fatal(err)
	}
	if got := s.reads(t, runRow, string(s.Key)); !strings.HasSuffix(got, want) {
		t.Errorf("the run is %q", got)
	}
	stranger := other
	stranger.Origin.Owner = false
	s.does(t, `UPDATE runs SET error = '' WHERE key = ? AND id = 'r'`, string(s.Key))
	if err := s.stopRun(t.Context(), stranger, "r", stmts); err != nil || s.reads(t, runRow, string(s.Key)) != "calling 1 0 0 " {
		t.Errorf("a stranger stops the owner's: %v, %q", err, s.reads(t, runRow, string(s.Key)))
	}
	if err := s.stopRun(t.Context(), other, "", stmts); err != nil {
		t.Fatal(err)
	}
	var answers []string
	entries, err := s.Reader.Entries(t.Context(), 0, 9)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range slices.Backward(entries) {
		answers = append(answers, string(e.Payload))
	}
	for i, w := range []string{"Stopped.", "Stopped.", "Only the owner can do that.", "There is nothing to stop."} {
		if i >= len(answers) || !strings.Contains(answers[i], w) {
			t.Errorf("answer %d of %q: want %s", i, answers, w)
		}
	}
	if got := s.reads(t, `SELECT title FROM heads WHERE key = ? LIMIT 1`, string(s.Key)); got != "ssss" {
		t.Errorf("what came with it was written %q", got)
	}
	s.does(t, `UPDATE runs SET state = 'done' WHERE key = ? AND id = 'r'`, string(s.Key))
	if err := s.stopRun(t.Context(), other, "r", stmts); !errors.Is(err, tidemark.ErrConflict) {
		t.Errorf("a run that ended: %v", err)
	}
}

// TestStopTakesUp: for a run that took nothing up yet, what it would have answered is taken up: the messages at the head of
// the queue, behind a command of an alarm. A reset that has archived already archives once more.
func TestStopTakesUp(t *testing.T) {
	const reset, hello = `"alarm"`, `{"role":"user","content":"hello"}`
	for _, c := range []struct {
		name  string
		waits string // kinds: m a message, a a command of an alarm, p a person's, e a message without a payload
		taken string // whether it took one up already
		step  string // of a reset of its log
		moved string // a log that the run has moved to
		want  string // states of the inputs, and of the reset
		err   error
	}{
		{name: "nothing waits"},
		{name: "a message", waits: "m", want: "taken"},
		{name: "two messages and a command", waits: "mmp", want: "taken taken new"},
		{name: "behind a command of an alarm", waits: "am", want: "new taken"},
		{name: "a command of an alarm alone", waits: "a", want: "new"},
		{name: "behind a person's command", waits: "pm", want: "new new"},
		{name: "it took one up", waits: "m", taken: "done", want: "done new"},
		{name: "a payload is gone", waits: "me", want: "new new", err: tidemark.ErrConflict},
		{name: "at a reset that is to archive", waits: "m", step: stepArchive, want: "taken archive 3 there"},
		{name: "at a reset that has archived", waits: "m", step: stepExtract, want: "taken archive 0 "},
		{name: "at a reset that is about to move", waits: "m", step: stepMove, want: "taken archive 0 "},
		{name: "at a reset that is over", waits: "m", step: "done", want: "taken done 3 there"},
		{name: "it has moved on", waits: "m", moved: "moved", want: "new", err: tidemark.ErrConflict},
	} {
		s, _ := plain(t, Config{})
		r := s.begun(t, "r", stateCalling)
		s.runs(t, "r0", r.Log, stateDone, 1)
		if c.taken != "" {
			s.puts(t, s.Key, "first", InputMessage, c.taken, "r")
		}
		for i, k := range c.waits {
			id := fmt.Sprint("w", i)
			kind := map[rune]string{'m': InputMessage, 'e': InputMessage, 'a': InputReset, 'p': InputReset}[k]
			s.puts(t, s.Key, id, kind, "new", "")
			s.does(t, `UPDATE inputs SET payload = ?, origin = ? WHERE key = ? AND id = ?`, map[rune]string{'m': hello, 'a': reset, 'p': reset}[k], map[rune]string{'m': `{}`, 'e': `{}`, 'a': `{}`, 'p': `{"from":"person"}`}[k], string(s.Key), id)
		}
		if c.step != "" {
			s.does(t, `INSERT INTO resets(old, key, new, step, reason, at, archive, messages) VALUES(?, ?, 'n', ?, 'idle', 1, 'there', 3)`, r.Log, string(s.Key), c.step)
			s.does(t, `INSERT INTO outbox(id, key, kind, payload, at) VALUES('archive:there', ?, 'archive', '{}', 1), ('facts:x', ?, 'facts', '{}', 1)`, string(s.Key), string(s.Key))
		}
		if c.moved != "" {
			s.does(t, `UPDATE runs SET log = ? WHERE key = ? AND id = 'r'`, c.moved, string(s.Key))
		}
		stmts, err := s.earlyStmts(t.Context(), r.Log, "r")
		if err == nil {
			err = s.DB.Tx(t.Context(), stmts)
		}
		got := strings.ReplaceAll(s.reads(t, `SELECT state FROM inputs WHERE key = ? ORDER BY n LIMIT 9`, string(s.Key)), ",", "")
		if c.step != "" {
			got += " " + s.reads(t, `SELECT step, messages, archive FROM resets WHERE old = ? LIMIT 9`, r.Log)
		}
		if got != c.want || (err == nil) != (c.err == nil) || c.err != nil && !errors.Is(err, c.err) {
			t.Errorf("%s: %q, %v; want %q", c.name, got, err, c.want)
		}
		took := strings.Count(c.want, "taken")
		if n := s.reads(t, `SELECT messages FROM heads WHERE key = ? LIMIT 1`, string(s.Key)); n != fmt.Sprint(took) {
			t.Errorf("%s: %s messages, want %d", c.name, n, took)
		}
		mail := map[string]string{stepArchive: "archive:there, facts:x", "done": "archive:there, facts:x", stepExtract: "facts:x", stepMove: "facts:x"}[c.step]
		if left := s.reads(t, `SELECT id FROM outbox WHERE key = ? ORDER BY id LIMIT 9`, string(s.Key)); left != mail {
			t.Errorf("%s: the agent is to be told %q, want %q", c.name, left, mail)
		}
	}
	s, _ := plain(t, Config{})
	r := s.begun(t, "r", stateCalling)
	s.puts(t, s.Key, "w", InputMessage, "new", "")
	s.does(t, `UPDATE inputs SET payload = ? WHERE key = ?`, hello, string(s.Key))
	stmts, err := s.earlyStmts(t.Context(), r.Log, "r")
	if err != nil {
		t.Fatal(err)
	}
	s.does(t, `UPDATE inputs SET state = 'done' WHERE key = ?`, string(s.Key))
	if err := s.DB.Tx(t.Context(), stmts); !errors.Is(err, tidemark.ErrConflict) {
		t.Errorf("it was withdrawn at the same moment: %v", err)
	}
}

// TestStoppedBeforeItIsMatched: a message that was taken back before it came stands in the log with the turn that is stopped, and what
// takes it back is carried out next; what only waits to be carried out is not stopped.
func TestStoppedBeforeItIsMatched(t *testing.T) {
	s, rt := plain(t, Config{})
	r := s.begun(t, "r", stateCalling)
	for _, key := range []tidemark.Key{"agent:main:twin", s.Key} {
		s.puts(t, key, "amend", inputAmend, "unmet", "")
		s.puts(t, key, "m", InputMessage, "new", "")
		s.does(t, `UPDATE inputs SET payload = ?, origin = '{"channel":"app","peer":"ann"}', at = ? WHERE key = ? AND id = 'amend'`, mustJSON(mustJSON(Amendment{Revokes: "p1"})), rt.now.UnixMilli(), string(key))
		s.does(t, `UPDATE inputs SET payload = '{"role":"user","content":"my pin"}', origin = '{"channel":"app","peer":"ann","message":"p1"}' WHERE key = ? AND id = 'm'`, string(key))
	}
	stmts, err := s.earlyStmts(t.Context(), r.Log, "r")
	if err == nil {
		err = s.DB.Tx(t.Context(), stmts)
	}
	states := func(key tidemark.Key) string {
		return s.reads(t, `SELECT id || ' ' || state FROM inputs WHERE key = ? ORDER BY n LIMIT 9`, string(key))
	}
	if got := states(s.Key); err != nil || got != "amend new, m taken" {
		t.Errorf("%s, %v", got, err)
	}
	if got := states("agent:main:twin"); got != "amend unmet, m new" {
		t.Errorf("the neighbour's: %s", got)
	}
	in := Input{ID: "stop", Kind: InputAsk, Text: tidemark.CommandStop, Origin: tidemark.Origin{From: tidemark.FromPerson, Owner: true}}
	if stmts, _, err = s.inputStmts(t.Context(), in, "done", rt.now); err != nil {
		t.Fatal(err)
	}
	s.does(t, `UPDATE inputs SET run = '' WHERE key = ? AND id = 'm'`, string(s.Key))
	s.active = "r"
	if err := s.stop(t.Context(), in, stmts); err != nil || !strings.HasPrefix(states(s.Key), "amend new") {
		t.Errorf("%s, %v", states(s.Key), err)
	}
}

// TestStopIsReceivedOnce: a stop that lost a race to another run is tried with that one, and one that was received before is a
// conflict.
func TestStopIsReceivedOnce(t *testing.T) {
	s, _ := plain(t, Config{})
	owner := tidemark.Origin{From: tidemark.FromPerson, Owner: true}
	in := Input{ID: "stop", Kind: InputAsk, Text: tidemark.CommandStop, Origin: owner}
	stmts, _, err := s.inputStmts(t.Context(), in, "done", s.Runtime.Now())
	if err != nil {
		t.Fatal(err)
	}
	s.runs(t, "gone", s.current(t), stateDone, 1)
	s.active = "gone"
	if err := s.stop(t.Context(), in, stmts); err != nil {
		t.Fatalf("nothing is left to be stopped: %v", err)
	}
	if got := s.reads(t, `SELECT count(*) FROM entries WHERE log = ? AND payload LIKE '%There is nothing to stop.%' LIMIT 1`, s.current(t)); got != "1" {
		t.Errorf("%s answers", got)
	}
	if err := s.stop(t.Context(), in, stmts); !errors.Is(err, tidemark.ErrConflict) {
		t.Errorf("received twice: %v", err)
	}
	s.puts(t, "agent:main:twin", "again", InputAsk, "done", "")
	in.ID = "again"
	if stmts, _, err = s.inputStmts(t.Context(), in, "done", s.Runtime.Now()); err != nil {
		t.Fatal(err)
	}
	h := &hooked{DB: s.DB, before: func() { s.active = "" }}
	s.DB = h
	if err := s.stop(t.Context(), in, stmts); err != nil || h.writes != 2 {
		t.Errorf("the run ended at the same moment: %v after %d writes", err, h.writes)
	}
	if s.Abort() {
		t.Error("it aborts though nothing is in work")
	}
	ended := error(nil)
	s.cancel, s.active = func(why error) { ended = why }, "r"
	if s.abort("other", tidemark.ErrTimeout) || ended != nil {
		t.Errorf("another run was ended: %v", ended)
	}
	if !s.abort("r", tidemark.ErrTimeout) || !errors.Is(ended, tidemark.ErrTimeout) || !s.Abort() || !errors.Is(ended, tidemark.ErrAborted) {
		t.Errorf("it was ended with %v", ended)
	}
}
