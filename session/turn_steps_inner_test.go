package session

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room"
)

// deltas is a provider that streams what a test says.
type deltas struct {
	all   []tidemark.Delta
	fails []error // of the first calls
	calls int
}

func (d *deltas) Stream(_ context.Context, _ tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	return func(yield func(tidemark.Delta, error) bool) {
		d.calls++
		for _, x := range d.all {
			if !yield(x, nil) {
				return
			}
		}
		if d.calls <= len(d.fails) {
			yield(tidemark.Delta{}, d.fails[d.calls-1])
		}
	}
}

// heardOf are the notices that a subscription has, each as its type and what it says.
func heardOf(sub *Subscription) (out []string) {
	for n, ok := sub.Next(); ok; n, ok = sub.Next() {
		out = append(out, strings.TrimSpace(n.Type+" "+n.Text+strings.Join(n.Inputs, "+")))
	}
	return out
}

// TestStreamIsToldAsItComes: text, thinking and calls are told as they come; an answer with nothing in it is a failure of the
// network, and what came of a call that was cut off is what the person has read.
func TestStreamIsToldAsItComes(t *testing.T) {
	said := tidemark.NewText(tidemark.Assistant, "Well.")
	p := &deltas{all: []tidemark.Delta{{Thinking: "hm"}, {Text: "We"}, {Text: "ll."}, {Tool: "look"}, {Reply: &tidemark.Reply{Message: said}}}}
	s, _ := plain(t, Config{Provider: p, Settings: Settings{Model: "m"}})
	records := &recorder{}
	s.rooms = append(s.rooms, records)
	r := s.begun(t, "r", stateCalling)
	sub, err := s.Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	v := weighing(r.Log, 10, 0, 10)
	reply, text, err := s.stream(t.Context(), r, v)
	if err != nil || reply.Message.PlainText() != "Well." || reply.Call.Requested != "m" || text != "Well." {
		t.Errorf("%+v, said %q, %v", reply, text, err)
	}
	if got := heardOf(sub); !slices.Equal(got, []string{"thinking hm", "text Well.", "tool look"}) {
		t.Errorf("told %q", got)
	}
	p.all = []tidemark.Delta{{Text: "We"}}
	p.fails = []error{nil, errKnown}
	if _, text, err := s.stream(t.Context(), r, v); !errors.Is(err, errKnown) || text != "We" {
		t.Errorf("cut off: said %q, %v", text, err)
	}
	p.all = []tidemark.Delta{{Reply: &tidemark.Reply{}}}
	var api *tidemark.APIError
	if _, _, err := s.stream(t.Context(), r, v); !errors.As(err, &api) || api.Class != tidemark.ClassNetwork {
		t.Errorf("an empty answer: %v", err)
	}
	if want := []string{"r 10 ", "r 10 ", "r 10 "}; !slices.Equal(records.sent, want) || p.calls != 3 {
		t.Errorf("of %d calls %q are recorded", p.calls, records.sent)
	}
	for text, want := range map[string]string{"": wordless, " \n": wordless, "x": "x"} {
		if got := Answer(tidemark.NewText(tidemark.Assistant, text)); got != want {
			t.Errorf("%q is read as %q", text, got)
		}
	}
	if got := Answer(tidemark.Message{Content: []tidemark.Block{tidemark.ToolUse("c", "look", nil)}}); got != "" {
		t.Errorf("a call is read as %q", got)
	}
}

// TestAskAgain: a call that was cut off is made again behind a pause, three times in all; each attempt is counted before it is
// made, and a turn that was stopped keeps what was said.
func TestAskAgain(t *testing.T) {
	cut := &tidemark.APIError{Class: tidemark.ClassNetwork, Message: "cut"}
	busy := &tidemark.APIError{Class: tidemark.ClassRate, RetryAfter: 7 * time.Second}
	auth := &tidemark.APIError{Class: tidemark.ClassAuth}
	done := tidemark.Delta{Reply: &tidemark.Reply{Message: tidemark.NewText(tidemark.Assistant, "ok")}}
	for _, c := range []struct {
		name     string
		attempt  int // before
		fails    []error
		calls    int
		slept    []time.Duration
		attempts int
		err      error
	}{
		{"at once", 0, nil, 1, nil, 1, nil},
		{"at the third", 0, []error{cut, busy}, 3, []time.Duration{time.Second, 7 * time.Second}, 3, nil},
		{"never", 0, []error{cut, cut, cut}, 3, []time.Duration{time.Second, 2 * time.Second}, 3, cut},
		{"another failure", 0, []error{auth}, 1, nil, 1, auth},
		{"behind two of earlier lives", 2, []error{cut}, 1, nil, 3, cut},
		{"behind three", 3, nil, 0, nil, 4, tidemark.ErrUnavailable},
	} {
		p := &deltas{all: []tidemark.Delta{done}, fails: c.fails}
		s, rt := plain(t, Config{Provider: p})
		r := s.begun(t, "r", stateCalling)
		r.Attempt = c.attempt
		_, err := s.ask(t.Context(), r, weighing(r.Log, 10, 0, 10))
		if p.calls != c.calls || !slices.Equal(rt.slept, c.slept) || r.Attempt != c.attempts || !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
			t.Errorf("%s: %d calls, slept %v, attempt %d, %v", c.name, p.calls, rt.slept, r.Attempt, err)
		}
		if got := s.reads(t, `SELECT attempt FROM runs WHERE key = ? LIMIT 1`, string(s.Key)); c.calls > 0 && got != fmt.Sprint(c.attempts) {
			t.Errorf("%s: counted are %s", c.name, got)
		}
		if got := s.reads(t, `SELECT kind, at FROM due WHERE key = ? LIMIT 9`, string(s.Key)); c.calls > 0 && got != "run 1700000060000" {
			t.Errorf("%s: due is %q", c.name, got)
		}
	}
	ctx, stop := context.WithCancelCause(t.Context())
	p := &stopping{stop: func() { stop(tidemark.ErrAborted) }}
	s, _ := plain(t, Config{Provider: p})
	r := s.begun(t, "r", stateCalling)
	if _, err := s.ask(ctx, r, weighing(r.Log, 10, 0, 10)); !errors.Is(err, tidemark.ErrAborted) || r.partial != "so far" {
		t.Errorf("stopped: %q, %v", r.partial, err)
	}
}

// stopping is a provider that is stopped behind its first words.
type stopping struct{ stop func() }

func (p *stopping) Stream(ctx context.Context, _ tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	return func(yield func(tidemark.Delta, error) bool) {
		if yield(tidemark.Delta{Text: "so far"}, nil) {
			p.stop()
			yield(tidemark.Delta{}, context.Cause(ctx))
		}
	}
}

// TestTakeInputs: what a run takes up before a call: the messages at the head of the queue, counted and noted; with nothing to
// answer it ends, and about to fail it takes nothing.
func TestTakeInputs(t *testing.T) {
	message := string(tidemark.NewText(tidemark.User, "hello").AppendJSON(nil))
	for _, c := range []struct {
		name    string
		inputs  []string // origins
		round   int
		attempt int
		took    []string // before
		done    bool
		states  string
		row     string // messages, and whether somebody spoke
		origins int
		notices []string
		state   string
	}{
		{"two messages", []string{`{"from":"person"}`, `{}`}, 0, 0, nil, false, "w0 taken, w1 taken", "2 1700000000000", 2, []string{"taken w0+w1"}, stateCalling},
		{"of the program", []string{`{"from":"system"}`}, 0, 0, nil, false, "w0 taken", "1 1", 1, []string{"taken w0"}, stateCalling},
		{"one that asks for nothing beside one that does", []string{`{"quiet":true}`, `{}`}, 0, 0, nil, false, "w0 taken, w1 taken", "2 1700000000000", 1, []string{"taken w0+w1"}, stateCalling},
		{"one that asks for nothing", []string{`{"quiet":true}`}, 0, 0, nil, true, "w0 done", "1 1700000000000", 0, nil, stateDone},
		{"nothing", nil, 0, 0, nil, true, "", "0 1", 0, []string{"done"}, stateDone},
		{"nothing, behind others", nil, 0, 0, []string{"x"}, false, "", "0 1", 0, nil, stateCalling},
		{"nothing, later in a turn", nil, 1, 0, []string{"x"}, false, "", "0 1", 0, nil, stateCalling},
		{"one that asks for nothing, later in a turn", []string{`{"quiet":true}`}, 1, 0, []string{"x"}, false, "w0 taken", "1 1700000000000", 0, []string{"taken x+w0"}, stateCalling},
		{"about to fail", []string{`{}`}, 0, 3, nil, false, "w0 new", "0 1", 0, nil, stateCalling},
		{"with one try left", []string{`{}`}, 0, 2, nil, false, "w0 taken", "1 1700000000000", 1, []string{"taken w0"}, stateCalling},
	} {
		s, _ := plain(t, Config{})
		r := s.begun(t, "r", stateCalling)
		r.Round, r.Attempt, r.took = c.round, c.attempt, c.took
		s.does(t, `UPDATE heads SET people = 1, active = 1 WHERE key = ?`, string(s.Key))
		for i, o := range c.inputs {
			id := fmt.Sprint("w", i)
			s.puts(t, s.Key, id, InputMessage, "new", "")
			s.does(t, `UPDATE inputs SET payload = ?, origin = ? WHERE key = ? AND id = ?`, message, o, string(s.Key), id)
		}
		sub, err := s.Subscribe()
		if err != nil {
			t.Fatal(err)
		}
		done, err := s.take(t.Context(), r)
		heard := heardOf(sub)
		if c.name == "one that asks for nothing" {
			heard = nil // endUnanswered tells in its own way
		}
		if done != c.done || err != nil || len(r.origins) != c.origins || !slices.Equal(heard, c.notices) || r.State != c.state {
			t.Errorf("%s: done %v, %v, %d origins, told %q, %s", c.name, done, err, len(r.origins), heard, r.State)
		}
		if got := s.reads(t, `SELECT id, state FROM inputs WHERE key = ? ORDER BY n LIMIT 9`, string(s.Key)); got != c.states {
			t.Errorf("%s: the inputs are %q", c.name, got)
		}
		if got := s.reads(t, `SELECT messages, people FROM heads WHERE key = ? LIMIT 1`, string(s.Key)); got != c.row {
			t.Errorf("%s: its row is %q, want %q", c.name, got, c.row)
		}
	}
}

// TestFailEnds: what a run leaves that ends without an answer: a message of what was said, results for its calls, a line in the
// log where somebody waits, and nothing in work.
func TestFailEnds(t *testing.T) {
	for _, c := range []struct {
		name    string
		state   string
		took    bool
		partial string
		why     error
		then    string // what became of its row just before
		row     string // its state and error
		input   string
		log     string // of messages, as type of event and texts
		n       string // messages of the row
	}{
		{name: "stopped in a reply", state: stateCalling, took: true, partial: "so far", why: tidemark.ErrAborted, row: "failed Stopped.", input: "done", log: "assistant so far, abort Stopped.", n: "1"},
		{name: "failed before a word", state: stateCalling, took: true, why: errKnown, row: "failed known", input: "done", log: "error known", n: "0"},
		{name: "it took nothing up", state: stateCalling, partial: "", why: errKnown, row: "failed known", input: "new", log: "", n: "0"},
		{name: "with calls", state: stateTools, took: true, partial: "never", why: errKnown, row: "failed known", input: "done", log: "user c0:brought false+c1:interrupted, may have run: known true+c2:not run: known true, error known", n: "1"},
		{name: "another life has it", state: stateCalling, took: true, why: errKnown, then: `owner = '000000000009/x'`, row: "calling ", input: "taken", log: "", n: "0"},
		{name: "stopped at the same moment", state: stateCalling, took: true, why: errKnown, then: `error = 'stop:"ann"'`, row: "failed Stopped.", input: "done", log: "abort Stopped.", n: "0"},
		{name: "its host is gone", state: stateCalling, took: true, why: fmt.Errorf("x: %w", tidemark.ErrDead), row: "calling ", input: "taken", log: "", n: "0"},
	} {
		d := diary{new([]string)}
		s, rt := plain(t, Config{Rooms: []room.Maker{func(room.Ports) any { return d }}})
		r := s.begun(t, "r", c.state)
		r.partial, r.Round = c.partial, 1
		s.puts(t, s.Key, "in", InputMessage, "new", "")
		if c.took {
			r.took, r.origins = []string{"in"}, []tidemark.Origin{{}}
			s.does(t, `UPDATE inputs SET state = 'taken', run = 'r' WHERE key = ?`, string(s.Key))
		}
		for i, state := range []string{callDone, callStarted, callRegistered} {
			id := fmt.Sprint("c", i)
			s.does(t, `INSERT INTO calls(run, round, n, id, call, idempotent, state, result) VALUES('r', 1, ?, ?, ?, 0, ?, ?), ('r2', 1, ?, ?, '{}', 0, 'started', ''), ('r', 0, ?, ?, '{}', 0, 'started', '')`,
				i, id, string(tidemark.ToolUse(id, "look", nil).AppendJSON(nil)), state, map[bool]string{true: string(tidemark.ToolResult(id, "brought", false).AppendJSON(nil))}[i == 0], i, id, i, id)
		}
		if c.then != "" {
			s.does(t, `UPDATE runs SET `+c.then+` WHERE key = ?`, string(s.Key))
		}
		s.fail(r, c.why)
		if got := s.reads(t, `SELECT state, error FROM runs WHERE key = ? LIMIT 1`, string(s.Key)); got != c.row || r.unended != nil {
			t.Errorf("%s: the run is %q, %v", c.name, got, r.unended)
		}
		if got := s.reads(t, `SELECT state FROM inputs WHERE key = ? LIMIT 1`, string(s.Key)); got != c.input {
			t.Errorf("%s: the input is %q", c.name, got)
		}
		if got := s.written(t, r.Log); got != c.log {
			t.Errorf("%s: the log has %q, want %q", c.name, got, c.log)
		}
		if got := s.reads(t, `SELECT messages FROM heads WHERE key = ? LIMIT 1`, string(s.Key)); got != c.n {
			t.Errorf("%s: %s messages", c.name, got)
		}
		ended := strings.HasPrefix(c.row, stateFailed)
		if got := s.reads(t, `SELECT kind, at FROM due WHERE key = ? LIMIT 9`, string(s.Key)); (got == fmt.Sprint("outbox ", rt.now.Add(outboxRetry).UnixMilli())) != ended {
			t.Errorf("%s: due is %q", c.name, got)
		}
		title := map[bool]string{true: "oe"}[ended]
		if got := s.reads(t, `SELECT title FROM heads WHERE key = ? LIMIT 1`, string(s.Key)); got != title {
			t.Errorf("%s: its rooms write %q", c.name, got)
		}
		left := "started, started, started, started, started, started"
		calls := s.reads(t, `SELECT state FROM calls WHERE run = 'r2' OR run = 'r' AND round = 0 LIMIT 9`)
		own := s.reads(t, `SELECT state FROM calls WHERE run = 'r' AND round = 1 ORDER BY n LIMIT 9`)
		if want := map[bool]string{true: "done, interrupted, interrupted", false: "done, started, registered"}[c.state == stateTools]; calls != left || own != want {
			t.Errorf("%s: the calls are %q, others %q", c.name, own, calls)
		}
	}
}

// written is what a log has: messages as their role and words, events as their type and text.
func (s *Session) written(t *testing.T, log string) string {
	t.Helper()
	var out []string
	for e, err := range s.log.Walk(t.Context(), log, 0) {
		if err != nil {
			t.Fatal(err)
		}
		var text string
		if e.Kind == tidemark.KindEvent {
			text = s.reads(t, `SELECT json_extract(payload, '$.type'), json_extract(payload, '$.text') FROM entries WHERE seq = ? LIMIT 1`, e.Seq)
		} else {
			m, err := e.Message()
			if err != nil {
				t.Fatal(err)
			}
			words := m.PlainText()
			for i, b := range m.Content {
				if b.Type == tidemark.TypeToolResult {
					words += fmt.Sprintf("%s%s:%s %v", map[bool]string{true: "+"}[i > 0], b.ToolUseID, b.Content[0].Text, b.IsError)
				}
			}
			text = string(m.Role) + " " + words
		}
		out = append(out, text)
	}
	slices.Reverse(out)
	return strings.Join(out, ", ")
}

// TestCommandEnds: a command is carried out once: its input is done with the run, also where it failed, but not where another
// life has it.
func TestCommandEnds(t *testing.T) {
	owner := tidemark.Origin{From: tidemark.FromPerson, Owner: true}
	for _, c := range []struct {
		name   string
		q      queued
		then   string
		row    string // states of run and input
		log    string
		fails  bool
		notice []string
	}{
		{"a question", queued{Kind: InputAsk, Payload: []byte(`"model"`), Origin: owner}, "", "done done r", "answer Model: default", false, []string{"event", "done c"}},
		{"of a stranger", queued{Kind: InputReset, Payload: []byte(`"manual"`), Origin: tidemark.Origin{From: tidemark.FromPerson}}, "", "done done r", "answer Only the owner can do that.", false, []string{"event", "done c"}},
		{"nothing to do", queued{Kind: inputAgain, Payload: []byte(`"gone"`)}, "", "done done r", "", false, []string{"done c"}},
		{"nothing to compact", queued{Kind: InputCompact, Payload: []byte(`""`), Origin: owner}, "", "done done r", "notice Nothing to compact yet", false, []string{"event", "done c"}},
		{"a correction that cannot be read", queued{Kind: inputAmend, Payload: []byte(`"{"`), Origin: owner}, "", "calling done r", "", true, nil},
		{"another life has it", queued{Kind: InputAsk, Payload: []byte(`"model"`), Origin: owner}, `owner = '000000000009/x'`, "calling new ", "", true, nil},
		{"that cannot be read", queued{Kind: InputAsk, Payload: []byte(`{`), Origin: owner}, "", "calling new ", "", true, nil},
	} {
		s, _ := plain(t, Config{})
		r := s.begun(t, "r", stateCalling)
		s.puts(t, s.Key, "c", c.q.Kind, "new", "")
		s.puts(t, s.Key, "d", c.q.Kind, "new", "")
		q, err := s.waiting(t.Context())
		if err != nil || len(q) != 2 {
			t.Fatal(q, err)
		}
		c.q.N, c.q.ID = q[0].N, "c"
		if c.then != "" {
			s.does(t, `UPDATE runs SET `+c.then+` WHERE key = ?`, string(s.Key))
		}
		sub, err := s.Subscribe()
		if err != nil {
			t.Fatal(err)
		}
		err = s.command(t.Context(), r, c.q)
		got := s.reads(t, `SELECT state FROM runs WHERE key = ? LIMIT 1`, string(s.Key)) + " " + s.reads(t, `SELECT state, run FROM inputs WHERE key = ? ORDER BY n LIMIT 1`, string(s.Key))
		if heard := heardOf(sub); (err != nil) != c.fails || got != c.row || !slices.Equal(r.took, []string{"c"}) || len(r.origins) != 1 || !slices.Equal(heard, c.notice) {
			t.Errorf("%s: %v, %q, took %q, told %q", c.name, err, got, r.took, heard)
		}
		if log := s.written(t, r.Log); !strings.HasPrefix(log, c.log) || (log == "") != (c.log == "") {
			t.Errorf("%s: the log has %q", c.name, log)
		}
	}
}
