package session

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/blocks"
	"github.com/tidemark-ai/tidemark/room"
)

// puts stores an input of a conversation as it stands at some point of its life.
func (s *Session) puts(t *testing.T, key tidemark.Key, id, kind, state, run string) {
	t.Helper()
	s.does(t, `INSERT INTO inputs(key, id, kind, state, at, origin, payload, hash, run) VALUES(?, ?, ?, ?, 4000, '{}', '', '', ?)`, string(key), id, kind, state, run)
}

// runs stores a run of the conversation, in some log.
func (s *Session) runs(t *testing.T, id, log, state string, updated int64) {
	t.Helper()
	s.does(t, `INSERT INTO runs(id, key, log, owner, state, started, updated) VALUES(?, ?, ?, '', ?, 1, ?)`, id, string(s.Key), log, state, updated)
}

// TestLastTry: what became of the newest try of an id. Neither what others said, nor ids that only look like a try of it, count.
func TestLastTry(t *testing.T) {
	s, _ := plain(t, Config{})
	log := s.current(t)
	at := func(ms int64) time.Time { return time.UnixMilli(ms) }
	check := func(when, id string, want Try) {
		t.Helper()
		if got, ok, err := s.LastTry(t.Context(), id); got != want || ok != (want.ID != "") || err != nil {
			t.Errorf("%s: %+v, %v, %v; want %+v", when, got, ok, err, want)
		}
	}
	check("of another conversation", "in1", Try{})
	check("before it is said", "q", Try{})
	s.puts(t, s.Key, "q", InputMessage, "new", "")
	check("it waits", "q", Try{ID: "q", Anew: "q~2", Open: true, Ended: at(4000), Reset: true, Last: true})
	s.runs(t, "r1", log, stateCalling, 5000)
	s.does(t, `UPDATE inputs SET state = 'taken', run = 'r1' WHERE key = ? AND id = 'q'`, string(s.Key))
	check("in work", "q", Try{ID: "q", Anew: "q~2", Open: true, Ended: at(5000), Last: true})
	s.puts(t, "agent:main:other", "x", InputMessage, "new", "")
	s.puts(t, "agent:main:other", "y", InputReset, "new", "")
	check("others speak and reset", "q", Try{ID: "q", Anew: "q~2", Open: true, Ended: at(5000), Last: true})
	s.puts(t, s.Key, "behind", InputMessage, "new", "")
	check("another waits behind it", "q", Try{ID: "q", Anew: "q~2", Open: true, Ended: at(5000)})
	s.does(t, `DELETE FROM inputs WHERE key = ? AND id = 'behind'`, string(s.Key))
	s.does(t, `UPDATE runs SET state = 'done' WHERE key = ? AND id = 'r1'`, string(s.Key))
	s.puts(t, s.Key, "before", InputReset, "done", "")
	check("answered, behind a reset that is over", "q", Try{ID: "q", Anew: "q~2", Ended: at(5000), Last: true})
	s.puts(t, s.Key, "soon", InputReset, "new", "")
	check("a reset waits", "q", Try{ID: "q", Anew: "q~2", Ended: at(5000), Reset: true, Last: true})
	s.runs(t, "r2", log, stateFailed, 6000)
	s.puts(t, s.Key, "q~2", InputMessage, "done", "r2")
	check("said anew behind that, and failed", "q", Try{ID: "q~2", Anew: "q~3", Failed: true, Ended: at(6000), Last: true})
	for _, id := range []string{"q~x", "q~", "q~1234567890", "a00", "z00", "q3"} {
		s.puts(t, s.Key, id, InputMessage, "done", "r2")
	}
	check("others came", "q", Try{ID: "q~2", Anew: "q~3", Failed: true, Ended: at(6000)})
	s.runs(t, "r3", "an-older-log", stateDone, 7000)
	s.puts(t, s.Key, "q~123456789", InputMessage, "done", "r3")
	check("before a reset, with the most digits", "q", Try{ID: "q~123456789", Anew: "q~123456790", Ended: at(7000), Reset: true, Last: true})
	s.puts(t, s.Key, "é", InputMessage, "done", "r1")
	s.puts(t, s.Key, "é~7", InputMessage, "done", "r1")
	check("an id of more bytes than characters", "é", Try{ID: "é~7", Anew: "é~8", Ended: at(5000), Last: true})
}

// TestInWork: a client follows the oldest message of its conversation without an answer, and neither a command nor a message
// of another one.
func TestInWork(t *testing.T) {
	s, _ := plain(t, Config{})
	check := func(want Receipt) {
		t.Helper()
		if want.ID != "" {
			want.Session, want.Duplicate = s.current(t), true
		}
		if got, ok, err := s.InWork(t.Context()); got != want || ok != (want.ID != "") || err != nil {
			t.Errorf("%+v, %v, %v; want %+v", got, ok, err, want)
		}
	}
	check(Receipt{})
	s.puts(t, s.Key, "c", InputReset, "new", "")
	s.puts(t, s.Key, "d", InputMessage, "done", "r0")
	check(Receipt{})
	s.puts(t, s.Key, "a", InputMessage, "new", "")
	s.puts(t, s.Key, "b", InputMessage, "new", "")
	check(Receipt{ID: "a", State: "new"})
	s.does(t, `UPDATE inputs SET state = 'taken', run = 'r1' WHERE key = ? AND id = 'a'`, string(s.Key))
	check(Receipt{ID: "a", State: "taken", Run: "r1"})
}

// TestRepliesOfAnInput: the replies of the turn behind an input, up to one of them. What stood before it is none, neither is
// what answered the next turn, nor what another conversation said under the same ids meanwhile.
func TestRepliesOfAnInput(t *testing.T) {
	s, _ := plain(t, Config{})
	log, person, model := s.current(t), tidemark.Origin{From: tidemark.FromPerson}, tidemark.Origin{From: tidemark.FromModel}
	s.runs(t, "r1", log, stateDone, 1)
	s.runs(t, "r2", log, stateDone, 1)
	s.does(t, `INSERT INTO logs(id, key, created) VALUES('other-log', 'agent:main:other', 1)`)
	s.does(t, `INSERT INTO runs(id, key, log, owner, state, started, updated) VALUES('r9', 'agent:main:other', 'other-log', '', 'done', 1, 1)`)
	for id, run := range map[string]string{"a": "r1", "b": "r1", "c": "r2"} {
		s.puts(t, s.Key, id, InputMessage, "done", run)
		s.puts(t, "agent:main:other", id, InputMessage, "done", "r9")
	}
	say := func(id string, role tidemark.Role, o tidemark.Origin) {
		s.says(t, log, id, tidemark.NewText(role, "of "+id), o, 1)
		s.says(t, "other-log", "other-"+id, tidemark.NewText(tidemark.Assistant, "of another"), model, 1)
	}
	asks := func(id, input string) {
		o := person
		o.Input = input
		say(id, tidemark.User, o)
	}
	asks("Qa", "a")
	say("A1", tidemark.Assistant, model)
	s.does(t, `WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i < ?) INSERT INTO entries(id, log, kind, at, hash, origin, payload) SELECT 'ev'||i, ?, 'event', 1, '', '{}', '{}' FROM c`, maxTurn, log) // what happened is none
	say("T1", tidemark.User, tidemark.Origin{From: tidemark.FromTool})
	say("A2", tidemark.Assistant, model)
	asks("Qb", "b")
	say("A3", tidemark.Assistant, model)
	asks("Qc", "c")
	say("A4", tidemark.Assistant, model)
	for _, c := range []struct{ input, last, want string }{
		{"a", "A1", "A1"}, {"a", "A2", "A1 A2"}, {"a", "A3", "A1 A2 A3"}, {"a", "A4", ""},
		{"b", "A3", "A3"}, {"b", "A2", ""}, {"b", "A4", ""}, {"c", "A4", "A4"}, {"c", "A3", ""}, {"d", "A4", ""}, {"a", "gone", ""},
	} {
		list, err := s.Replies(t.Context(), c.input, tidemark.EntryID(c.last))
		var got []string
		for _, e := range list {
			got = append(got, string(e.ID))
			if m, bad := e.Message(); bad != nil || m.PlainText() != "of "+string(e.ID) {
				t.Errorf("entry %s: %s, %v", e.ID, e.Payload, bad)
			}
		}
		if strings.Join(got, " ") != c.want || err != nil {
			t.Errorf("to %s up to %s: %q, %v; want %s", c.input, c.last, got, err, c.want)
		}
	}
	s.says(t, log, "Z", tidemark.NewText(tidemark.User, "later"), person, 1)
	if id, err := s.lastReply(t.Context(), log); id != "A4" || err != nil {
		t.Errorf("the last reply is %s, %v", id, err)
	}
	if id, err := s.lastReply(t.Context(), "none"); id != "" || err != nil {
		t.Errorf("the last reply of no log is %s, %v", id, err)
	}
}

// TestPosted: what became of an input, with what its turn and the calls of that spent.
func TestPosted(t *testing.T) {
	s, _ := plain(t, Config{})
	log := s.current(t)
	for id, state := range map[string]string{"r1": stateCalling, "r2": stateDone, "r3": stateFailed} {
		s.runs(t, id, log, state, 1)
		s.does(t, `UPDATE runs SET spent = 20, reply = 'A'||id, error = 'E'||id WHERE key = ? AND id = ?`, string(s.Key), id)
		s.does(t, `INSERT INTO calls(run, round, n, id, call, idempotent, state, spent) VALUES(?, 0, 0, 'c', '{}', 0, 'done', 3), (?, 1, 0, 'c', '{}', 0, 'done', 4)`, id, id)
	}
	for id, run := range map[string]string{"w": "", "in1": "r1", "in2": "r2", "in3": "r3"} {
		s.puts(t, s.Key, id, InputMessage, map[bool]string{true: "new", false: "taken"}[run == ""], run)
	}
	s.puts(t, s.Key, "cmd", InputCompact, "done", "")
	s.says(t, log, "Ar2", tidemark.NewText(tidemark.Assistant, "the reply"), tidemark.Origin{}, 1)
	for _, c := range []struct {
		id      string
		want    room.Posted
		failure string
		ok      bool
	}{
		{"none", room.Posted{}, "", false},
		{"w", room.Posted{There: true}, "", false},
		{"in1", room.Posted{There: true, Spent: 27}, "", false},
		{"in2", room.Posted{There: true, Over: true, Reply: "Ar2", Spent: 27}, "", true},
		{"in3", room.Posted{There: true, Over: true, Failure: "Er3", Spent: 27}, "Er3", true},
		{"cmd", room.Posted{There: true, Over: true}, "", true},
	} {
		if got, err := s.posted(t.Context(), c.id); got != c.want || err != nil {
			t.Errorf("%s: %+v, %v; want %+v", c.id, got, err, c.want)
		}
		e, failure, ok, err := s.Reply(t.Context(), c.id)
		if e.ID != c.want.Reply || failure != c.failure || ok != c.ok || err != nil {
			t.Errorf("reply to %s: %q, %q, %v, %v", c.id, e.ID, failure, ok, err)
		}
	}
	s.does(t, `UPDATE runs SET reply = 'gone' WHERE key = ? AND id = 'r2'`, string(s.Key))
	if _, _, ok, err := s.Reply(t.Context(), "in2"); ok || !errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("a reply that is gone: %v, %v", ok, err)
	}
}

// TestOccupied: an input that waits or is taken occupies its conversation, and so does a run without one, such as an import.
func TestOccupied(t *testing.T) {
	for _, c := range []struct {
		input, run string
		want       bool
	}{{"", "", false}, {"new", "", true}, {"taken", "", true}, {"done", "", false}, {"done", stateTools, true}, {"", stateCalling, true}, {"", stateDone, false}, {"", stateFailed, false}} {
		s, _ := plain(t, Config{})
		if c.input != "" {
			s.puts(t, s.Key, "a", InputMessage, c.input, "")
		}
		if c.run != "" {
			s.runs(t, "r1", s.current(t), c.run, 1)
		}
		if got, err := s.Occupied(t.Context()); got != c.want || err != nil {
			t.Errorf("input %q, run %q: %v, %v", c.input, c.run, got, err)
		}
	}
}

// TestQueueShowsWords: the beginning of what an input says, at most 500 bytes of whole characters.
func TestQueueShowsWords(t *testing.T) {
	long := strings.Repeat("x", waitingText)
	message := func(text string) string { return string(tidemark.NewText(tidemark.User, text).AppendJSON(nil)) }
	for _, c := range []struct{ name, kind, payload, want string }{
		{"taken up a moment ago", InputMessage, "", ""},
		{"a message", InputMessage, message(" hello "), "hello"},
		{"as long as is shown", InputMessage, message(long), long},
		{"longer", InputMessage, message(long + "y"), long + "…"},
		{"a character over the end", InputMessage, message(long[1:] + "é!"), long[1:] + "…"},
		{"a command", InputCompact, `"keep names"`, "keep names"},
		{"a long command", InputCompact, `"` + long + `z"`, long + "…"},
		{"a correction", inputAmend, mustJSON(mustJSON(Amendment{Edits: "m1", Text: "now so"})), "now so"},
		{"taken back", inputAmend, mustJSON(mustJSON(Amendment{Revokes: "m1"})), ""},
	} {
		if got, err := wordsOf(queued{Kind: c.kind, Payload: []byte(c.payload)}); got != c.want || err != nil {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
	}
	for _, c := range []struct{ kind, payload string }{{InputMessage, `{`}, {InputCompact, `{}`}, {inputAmend, `7`}, {inputAmend, `"{"`}} {
		if _, err := wordsOf(queued{Kind: c.kind, Payload: []byte(c.payload)}); err == nil {
			t.Errorf("%s of %s is read", c.kind, c.payload)
		}
	}
}

// TestBatch: one call takes up a quarter of the window, at least one message, and none behind a command.
func TestBatch(t *testing.T) {
	for _, c := range []struct {
		queue string // tokens of messages; c is a command
		want  int
	}{{"", 0}, {"60 40", 2}, {"60 41", 1}, {"50 50 1", 2}, {"500", 1}, {"500 1", 1}, {"c", 0}, {"60 c 1", 1}, {"0 0 0", 3}} {
		var q []queued
		for _, f := range strings.Fields(c.queue) {
			in := queued{Kind: InputMessage}
			if _, err := fmt.Sscan(f, &in.Tokens); err != nil {
				in.Kind = InputCompact
			}
			q = append(q, in)
		}
		if got := batch(q, 400); len(got) != c.want {
			t.Errorf("of %q %d are taken up, want %d", c.queue, len(got), c.want)
		}
	}
}

// TestInputBounds: what is refused of an input, at each bound and one beyond.
func TestInputBounds(t *testing.T) {
	message := func(n int) tidemark.Message {
		empty := len(tidemark.NewText(tidemark.User, "").AppendJSON(nil))
		return tidemark.NewText(tidemark.User, strings.Repeat("x", n-empty))
	}
	hello, amend := tidemark.NewText(tidemark.User, "hello"), strings.Repeat("x", 64<<10)
	for _, c := range []struct {
		name string
		in   Input
		want error
	}{
		{"a message", Input{Message: hello}, nil},
		{"the longest id", Input{ID: strings.Repeat("é", 100), Message: hello}, nil},
		{"a longer id", Input{ID: strings.Repeat("é", 100) + "x", Message: hello}, tidemark.ErrInvalid},
		{"an id that is no text", Input{ID: "\xff", Message: hello}, tidemark.ErrInvalid},
		{"a question", Input{Kind: InputAsk, Text: "status"}, nil},
		{"no question", Input{Kind: InputAsk, Text: "dance"}, tidemark.ErrInvalid},
		{"a question in other words", Input{Kind: InputAsk, Text: "Status"}, tidemark.ErrInvalid},
		{"another command as a question", Input{Kind: InputAsk, Text: "reset"}, tidemark.ErrInvalid},
		{"a reset as a question", Input{Kind: InputAsk, Text: "new"}, tidemark.ErrInvalid},
		{"the longest command", Input{Kind: InputCompact, Text: strings.Repeat("x", 4_000)}, nil},
		{"a longer command", Input{Kind: InputReset, Text: strings.Repeat("x", 4_001)}, tidemark.ErrTooLarge},
		{"a longer one of an alarm", Input{Kind: inputAgain, Text: strings.Repeat("x", 4_001)}, tidemark.ErrTooLarge},
		{"the longest amendment", Input{Kind: inputAmend, Text: amend}, nil},
		{"a longer amendment", Input{Kind: inputAmend, Text: amend + "x"}, tidemark.ErrTooLarge},
		{"another kind", Input{Kind: "dance", Message: hello}, tidemark.ErrInvalid},
		{"of the model", Input{Message: tidemark.NewText(tidemark.Assistant, "hello")}, tidemark.ErrInvalid},
		{"a result", Input{Message: tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult("c", "x", false)}}}, tidemark.ErrInvalid},
		{"nothing", Input{Message: tidemark.Message{Role: tidemark.User}}, tidemark.ErrInvalid},
		{"the longest message", Input{Message: message(MaxMessage)}, nil},
		{"a longer message", Input{Message: message(MaxMessage + 1)}, tidemark.ErrTooLarge},
	} {
		if err := c.in.Validate(); (err == nil) != (c.want == nil) || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	s, _ := plain(t, Config{})
	for _, over := range []int{0, 1} { // of what stands in the row beside large blocks
		m := tidemark.Message{Role: tidemark.User}
		for range 890 { // none of which is large
			m.Content = append(m.Content, tidemark.Text(strings.Repeat("x", 1_990)))
		}
		for frame, left := len(`,{"type":"text","text":""}`), 1; left > 0; {
			if left = maxInputLen + over - len(m.AppendJSON(nil)); left > 1_500 {
				left = 1_000
			}
			if left > 0 {
				m.Content = append(m.Content, tidemark.Text(strings.Repeat("x", left-frame)))
			}
		}
		payload, _, err := s.encodeInput(t.Context(), Input{Kind: InputMessage, Message: m})
		if over == 0 && (err != nil || len(payload) != maxInputLen) || over > 0 && !errors.Is(err, tidemark.ErrTooLarge) {
			t.Errorf("%d over the bound: %d bytes, %v", over, len(payload), err)
		}
	}
	payload, tokens, err := s.encodeInput(t.Context(), Input{Kind: InputMessage, Message: tidemark.NewText(tidemark.User, strings.Repeat("x", 300<<10))})
	if err != nil || tokens < 300<<10*3/10 || !strings.Contains(payload, blocks.Field) || len(payload) > 1000 {
		t.Errorf("of a large block %d bytes stand in the row, %d tokens, %v", len(payload), tokens, err)
	}
	if payload, tokens, err := s.encodeInput(t.Context(), Input{Kind: InputCompact, Text: "names"}); payload != `"names"` || tokens != 0 || err != nil {
		t.Errorf("a command: %s, %d, %v", payload, tokens, err)
	}
}

// TestPostIsKept: the receipt of an input, of the same again, and of another one under its id; how many may wait, whatever
// waits elsewhere.
func TestPostIsKept(t *testing.T) {
	s, rt := plain(t, Config{})
	ctx, hello := t.Context(), tidemark.NewText(tidemark.User, "hello")
	r, err := s.Post(ctx, Input{ID: "a", Message: hello})
	if want := (Receipt{ID: "a", Session: s.current(t), State: "new"}); r != want || err != nil || len(rt.later) == 0 {
		t.Errorf("%+v, %v, %d are to run", r, err, len(rt.later))
	}
	if got := s.reads(t, `SELECT kind, at, payload, tokens FROM inputs WHERE key = ? LIMIT 9`, string(s.Key)); got != fmt.Sprintf("message 1700000000000 %s %d", hello.AppendJSON(nil), tidemark.Estimate(hello)) {
		t.Errorf("stored as %s", got)
	}
	if got := s.reads(t, `SELECT kind, at FROM due WHERE key = ? LIMIT 9`, string(s.Key)); got != "run 1700000060000" {
		t.Errorf("due is %s", got)
	}
	if r, err = s.Post(ctx, Input{ID: "a", Message: hello}); !r.Duplicate || r.State != "new" || err != nil {
		t.Errorf("again: %+v, %v", r, err)
	}
	if _, err = s.Post(ctx, Input{ID: "a", Message: tidemark.NewText(tidemark.User, "other")}); !errors.Is(err, tidemark.ErrConflict) {
		t.Errorf("another under its id: %v", err)
	}
	if _, err = s.Post(ctx, Input{ID: "a", Kind: InputCompact}); !errors.Is(err, tidemark.ErrConflict) {
		t.Errorf("a command under its id: %v", err)
	}
	for _, again := range []bool{false, true} {
		if r, err = s.Post(ctx, Input{ID: "in1", Message: hello}); r.Duplicate != again || err != nil {
			t.Errorf("under an id of others: %+v, %v", r, err)
		}
	}
	s.does(t, `DELETE FROM inputs WHERE key = ? AND id = 'in1'`, string(s.Key))
	s.puts(t, s.Key, "d", InputMessage, "done", "")
	s.does(t, `WITH RECURSIVE c(n) AS (SELECT 2 UNION ALL SELECT n+1 FROM c WHERE n < ?) INSERT INTO inputs(key, id, kind, state, at, origin, payload, hash)
		SELECT ?, 'w'||n, 'message', 'new', 1, '{}', '', '' FROM c`, maxQueued-1, string(s.Key))
	if r, err = s.Post(ctx, Input{Message: hello}); err != nil || r.ID == "" || r.Duplicate {
		t.Errorf("the last that may wait: %+v, %v", r, err)
	}
	if _, err = s.Post(ctx, Input{ID: "b", Message: hello}); !errors.Is(err, tidemark.ErrBusy) {
		t.Errorf("one more: %v", err)
	}
	q, err := s.waiting(ctx)
	if err != nil || len(q) != maxTaken || q[0].ID != "a" || q[1].ID != "w2" || q[0].Kind != InputMessage || q[0].At.UnixMilli() != 1_700_000_000_000 || q[0].Tokens != tidemark.Estimate(hello) {
		t.Errorf("%d wait, %+v, %v", len(q), q[:2], err)
	}
	if err := s.load(ctx, []queued{{N: 1 << 40}}); !errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("an input that is gone: %v", err)
	}
	find := s.queue()
	if err := find.Withdraw(ctx, "a"); err != nil || s.reads(t, `SELECT state, payload FROM inputs WHERE key = ? AND id = 'a' LIMIT 1`, string(s.Key)) != "done " {
		t.Errorf("withdrawn: %v", err)
	}
	if err := find.Withdraw(ctx, "a"); !errors.Is(err, tidemark.ErrConflict) {
		t.Errorf("withdrawn twice: %v", err)
	}
	s.puts(t, "agent:main:twin", "theirs", InputMessage, "new", "")
	if err := find.Withdraw(ctx, "theirs"); !errors.Is(err, tidemark.ErrConflict) {
		t.Errorf("withdrawn of another: %v", err)
	}
	if err := find.Withdraw(ctx, "in3"); !errors.Is(err, tidemark.ErrConflict) {
		t.Errorf("withdrawn of others: %v", err)
	}
}
