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
	"github.com/tidemark-ai/tidemark/summary"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// remembers is an agent that keeps what it is told.
type remembers struct {
	silent
	facts []string
	infos []archive.Info
}

func (a *remembers) Remember(_ context.Context, x tidemark.Extraction) error {
	for _, f := range x.Facts {
		a.facts = append(a.facts, x.ID+": "+f.Text)
	}
	return nil
}

func (a *remembers) Report(_ context.Context, _ tidemark.SessionInfo, infos []archive.Info) error {
	a.infos = append(a.infos, infos...)
	return nil
}

// counted sets the counters of a conversation.
func (s *Session) counted(t *testing.T, messages int) {
	t.Helper()
	s.does(t, `UPDATE heads SET messages = ?, context = 77, compactions = 3, resets = 1, usage = '{"input_tokens":5,"output_tokens":1}', prompt = 'p', cooldown = 9, failures = 2, active = 1, people = 1 WHERE key = ?`, messages, string(s.Key))
}

const resetRow = `SELECT step, reason, archive, messages FROM resets WHERE key = ? ORDER BY old LIMIT 9`

// TestResetMoves: a reset begins a new log under the same key, with all counters at zero, and drops the plan that was open; what
// other conversations have in work stays.
func TestResetMoves(t *testing.T) {
	agent := &remembers{}
	s, rt := plain(t, Config{Agent: agent, Settings: Settings{NoMemories: true}})
	r, old := s.begun(t, "r", stateCalling), s.current(t)
	s.runs(t, "r0", old, stateDone, 1)
	s.spoken(t, 4)
	s.counted(t, 4)
	for key, id := range map[tidemark.Key]string{s.Key: "p", "agent:main:twin": "q"} {
		p := plan{Draft: summary.Draft{ID: id, Log: old}, At: rt.now}
		if err := s.DB.Tx(t.Context(), []tidemark.Stmt{p.insertStmt(key), s.dueStmt(dueReset, rt.now, "")}); err != nil {
			t.Fatal(err)
		}
	}
	s.does(t, `INSERT INTO plans(id, key, log, state, reason, instructions, act, part_ms, last, size, chunk_size, created) VALUES('done', ?, ?, 'done', '', '', '{}', 1, 1, 1, 1, 1)`, string(s.Key), old)
	s.does(t, `INSERT INTO heads(key, log, created, active) VALUES('agent:main:twin', ?, 1, 1)`, old)
	if err := s.reset(t.Context(), r, "manual"); err != nil {
		t.Fatal(err)
	}
	now := s.current(t)
	whole := archive.WholeKey("main", old)
	if r.Log != now || now == old || s.reads(t, resetRow, string(s.Key)) != "done manual "+whole+" 4" {
		t.Errorf("it moved from %s to %s, %q", old, now, s.reads(t, resetRow, string(s.Key)))
	}
	if got := s.reads(t, `SELECT active, people, messages, context, compactions, resets, usage, prompt, cooldown, failures FROM heads WHERE key = ? LIMIT 1`, string(s.Key)); got != "1700000000000 1700000000000 0 0 0 2 {}  0 0" {
		t.Errorf("its row is %q", got)
	}
	if got := s.reads(t, `SELECT id, log = ? FROM runs WHERE key = ? ORDER BY id LIMIT 9`, now, string(s.Key)); got != "r 1, r0 0" {
		t.Errorf("its runs have moved: %s", got)
	}
	if got := s.reads(t, `SELECT id, state FROM plans WHERE id IN ('p', 'q', 'done') ORDER BY id LIMIT 9`); got != "done done, p dropped, q open" {
		t.Errorf("the plans are %s", got)
	}
	if got := s.reads(t, `SELECT kind FROM due WHERE key = ? LIMIT 9`, string(s.Key)); got != "" {
		t.Errorf("due is %s", got)
	}
	if got := s.reads(t, `SELECT previous FROM logs WHERE id = ? LIMIT 1`, now) + " " + s.reads(t, `SELECT log FROM heads WHERE key = 'agent:main:twin' LIMIT 1`); got != old+" "+old {
		t.Errorf("it follows %s", got)
	}
	if got := s.notices(t); got != "New session (manual). 4 messages archived to "+whole+"." {
		t.Errorf("told %q", got)
	}
	if len(agent.infos) != 1 || agent.infos[0].Key != whole || agent.infos[0].Messages != 4 || agent.infos[0].Session != old || agent.infos[0].Usage.Input != 5 {
		t.Errorf("the agent is told of %+v", agent.infos)
	}
}

// TestResetGoesOn: a reset that was cut off goes on at its step, for its own reason; what was done is not done again, and a
// reset of another log, or one that is over, is none.
func TestResetGoesOn(t *testing.T) {
	for _, c := range []struct {
		step   string
		writes int // of the bucket
		asks   int // of the model
		want   string
	}{{stepArchive, 1, 1, "New session (idle). 4 messages archived to WHOLE, 1 memory"}, {stepExtract, 0, 1, "New session (idle). 9 messages archived to there, 1 memory"}, {stepMove, 0, 0, "New session (idle). 9 messages archived to there"}} {
		blobs, m, agent := tidemarktest.NewBlobs(), &played{play: summarizes}, &remembers{}
		puts := 0
		blobs.Fail = func(op, _ string) error {
			if op == "put" {
				puts++
			}
			return nil
		}
		s, _ := plain(t, Config{Blobs: blobs, Provider: m, Agent: agent, Settings: Settings{Window: 100_000}})
		r, old := s.begun(t, "r", stateCalling), s.current(t)
		s.spoken(t, 4)
		s.counted(t, 4)
		s.does(t, `INSERT INTO resets(old, key, new, step, reason, at, archive, messages) VALUES(?, ?, 'next', ?, 'idle', 1600000000000, 'there', 9), ('0older', ?, 'x', 'done', 'idle', 1, '', 0)`, old, string(s.Key), c.step, string(s.Key))
		if x, err := s.openReset(t.Context(), "0older"); x != nil || err != nil {
			t.Errorf("a reset that is over: %+v, %v", x, err)
		}
		if x, err := s.openReset(t.Context(), old); err != nil || x.Old != old || x.New != "next" || x.Step != c.step || x.Reason != "idle" || x.At.UnixMilli() != 1_600_000_000_000 || x.Archive != "there" || x.Messages != 9 {
			t.Errorf("it stands at %+v, %v", x, err)
		}
		if err := s.reset(t.Context(), r, "manual"); err != nil {
			t.Fatal(err)
		}
		want := strings.ReplaceAll(c.want, "WHOLE", archive.WholeKey("main", old))
		if got := s.notices(t); !strings.HasPrefix(got, want) || (puts > 0) != (c.writes > 0) || len(m.calls) != c.asks || s.current(t) != "next" || len(agent.facts) != c.asks {
			t.Errorf("from %s: %q, %d puts, %d calls, remembered %q", c.step, got, puts, len(m.calls), agent.facts)
		}
	}
	s, _ := plain(t, Config{})
	if x, err := s.openReset(t.Context(), s.current(t)); x != nil || err != nil {
		t.Errorf("a reset of others: %+v, %v", x, err)
	}
}

// TestResetOfNothing: a session without messages has no archive.
func TestResetOfNothing(t *testing.T) {
	s, _ := plain(t, Config{Settings: Settings{NoMemories: true}})
	r, old := s.begun(t, "r", stateCalling), s.current(t)
	if err := s.reset(t.Context(), r, "manual"); err != nil || s.current(t) == old || s.notices(t) != "New session (manual). 0 messages archived." || s.reads(t, resetRow, string(s.Key)) != "done manual  0" {
		t.Errorf("%v, %q, %q", err, s.notices(t), s.reads(t, resetRow, string(s.Key)))
	}
	for want, d := range map[string]Reset{
		"New session (idle). 3 messages archived to x, 1 memory offered.":                                            {Reason: "idle", Messages: 3, Archive: "x", Memories: 1},
		"New session (daily). 0 messages archived, memories follow when the model can be reached.":                   {Reason: "daily", MemoriesOwed: true},
		"New session (new). 2 messages archived, 2 memories offered, memories follow when the model can be reached.": {Reason: "new", Messages: 2, Memories: 2, MemoriesOwed: true},
	} {
		if got := d.line(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := (Reset{Reason: "idle", Messages: 3}).people(); got != "New conversation (idle). The 3 messages of the last one are archived." {
		t.Errorf("people read %q", got)
	}
}

// TestResetByPolicy: an alarm, and the input that comes first, reset what is due by the policy and has messages; while the bucket is down
// it is put off, which is said once, and who asked for it by hand is told so.
func TestResetByPolicy(t *testing.T) {
	idle := reset.Policy{Mode: reset.Idle, IdleMinutes: 60}
	for _, c := range []struct {
		name     string
		since    time.Duration // that somebody spoke
		messages int
		open     string // reason of one in work
		down     bool
		resets   bool
		told     string
	}{
		{name: "due", since: 2 * time.Hour, messages: 2, resets: true, told: "New session (idle for more than 60 minutes)"},
		{name: "not due", since: time.Minute, messages: 2},
		{name: "due, of an empty one", since: 2 * time.Hour},
		{name: "in work", since: time.Minute, messages: 2, open: "daily", resets: true, told: "New session (daily)"},
		{name: "in work, of an empty one", since: time.Minute, open: "daily"},
		{name: "due, and the bucket is down", since: 2 * time.Hour, messages: 2, down: true, told: "The reset that was due is put off: the archive cannot be written now."},
		{name: "in work, and the bucket is down", since: 2 * time.Hour, messages: 2, open: "daily", down: true},
	} {
		blobs := tidemarktest.NewBlobs()
		if c.down {
			blobs.Fail = func(string, string) error { return tidemark.ErrUnavailable }
		}
		s, rt := plain(t, Config{Blobs: blobs, Settings: Settings{NoMemories: true, Reset: idle}})
		r, old := s.begun(t, "r", stateCalling), s.current(t)
		s.spoken(t, c.messages)
		s.does(t, `UPDATE heads SET messages = ?, people = ? WHERE key = ?`, c.messages, rt.now.Add(-c.since).UnixMilli(), string(s.Key))
		if c.open != "" {
			s.does(t, `INSERT INTO resets(old, key, new, step, reason, at) VALUES(?, ?, 'n', 'archive', ?, 1)`, old, string(s.Key), c.open)
		}
		err := s.resetIfDue(t.Context(), r, queued{At: rt.now, Origin: tidemark.Origin{Peer: "ann"}})
		if got := s.notices(t); err != nil || r.origins != nil || (s.current(t) != old) != c.resets || !strings.HasPrefix(got, c.told) || (got == "") != (c.told == "") {
			t.Errorf("%s: %v, told %q, origins %v", c.name, err, got, r.origins)
		}
	}
	for _, c := range []struct {
		reason   string
		since    time.Duration
		messages int
		down     bool
		why      string // of the reset; "" for none
	}{{"", 0, 2, false, "manual"}, {"new", 0, 0, false, "new"}, {reasonAlarm, 2 * time.Hour, 2, false, "idle for more than 60 minutes"}, {reasonAlarm, time.Minute, 2, false, ""}, {reasonAlarm, 2 * time.Hour, 0, false, ""}, {"", 0, 2, true, ""}} {
		blobs := tidemarktest.NewBlobs()
		if c.down {
			blobs.Fail = func(string, string) error { return tidemark.ErrUnavailable }
		}
		s, rt := plain(t, Config{Blobs: blobs, Settings: Settings{NoMemories: true, Reset: idle}})
		r := s.begun(t, "r", stateCalling)
		s.spoken(t, c.messages)
		s.does(t, `UPDATE heads SET messages = ?, people = ? WHERE key = ?`, c.messages, rt.now.Add(-c.since).UnixMilli(), string(s.Key))
		err := s.resetNow(t.Context(), r, c.reason)
		rows := s.reads(t, `SELECT step, reason FROM resets WHERE key = ? LIMIT 9`, string(s.Key))
		if want := strings.TrimSuffix("done "+c.why, "done "); rows != want || c.down != errors.Is(err, errNotArchived) || !c.down && err != nil {
			t.Errorf("for %q, %s since somebody spoke: %q, %v", c.reason, c.since, rows, err)
		}
	}
}

// TestResetIsQueued: an alarm queues the reset that is due, and its next try before; what is not due is planned.
func TestResetIsQueued(t *testing.T) {
	for _, c := range []struct {
		name     string
		since    time.Duration
		messages int
		queued   bool
		due      string
	}{
		{"due", 2 * time.Hour, 2, true, "reset 1700000300000, run 1700000060000"},
		{"due, of an empty one", 2 * time.Hour, 0, false, ""},
		{"not due", time.Minute, 2, false, "reset 1700003540001"},
	} {
		s, rt := plain(t, Config{Settings: Settings{Reset: reset.Policy{Mode: reset.Idle, IdleMinutes: 60}}})
		s.does(t, `UPDATE heads SET messages = ?, people = ? WHERE key = ?`, c.messages, rt.now.Add(-c.since).UnixMilli(), string(s.Key))
		if err := s.resetByAlarm(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := map[bool]string{true: fmt.Sprintf(`reset:%s:1700000000000 reset "alarm"`, s.current(t))}[c.queued]
		if got := s.reads(t, `SELECT id, kind, payload FROM inputs WHERE key = ? LIMIT 9`, string(s.Key)); got != want {
			t.Errorf("%s: queued is %q, want %q", c.name, got, want)
		}
		if got := s.reads(t, `SELECT kind, at FROM due WHERE key = ? ORDER BY kind LIMIT 9`, string(s.Key)); got != c.due {
			t.Errorf("%s: due is %q, want %q", c.name, got, c.due)
		}
	}
}

// TestMemoriesOfAReset: the memories of a reset are told with it where the model can be reached, and owed where not; later they
// are made from the old log, once.
func TestMemoriesOfAReset(t *testing.T) {
	down := true
	m, agent := &played{usage: tidemark.Usage{Input: 6}}, &remembers{}
	m.play = func(req tidemark.Request) (tidemark.Message, error) {
		if down {
			return tidemark.Message{}, &tidemark.APIError{Class: tidemark.ClassAuth}
		}
		return summarizes(req)
	}
	s, rt := plain(t, Config{Provider: m, Agent: agent, Settings: Settings{Window: 100_000}})
	r, old := s.begun(t, "r", stateCalling), s.current(t)
	s.spoken(t, 4)
	s.counted(t, 4)
	if err := s.reset(t.Context(), r, "manual"); err != nil {
		t.Fatal(err)
	}
	if got := s.reads(t, `SELECT kind, at, data FROM due WHERE key = ? LIMIT 9`, string(s.Key)); got != "extract:"+old+" 1700000060000 "+old {
		t.Errorf("due is %q", got)
	}
	if !strings.HasSuffix(s.notices(t), ", memories follow when the model can be reached.") || len(agent.facts) > 0 {
		t.Errorf("told %q, remembered %q", s.notices(t), agent.facts)
	}
	rt.now = rt.now.Add(time.Hour)
	if err := s.extractLater(t.Context(), old); err == nil {
		t.Error("it is made though the model is down")
	}
	if got := s.reads(t, `SELECT kind, at FROM due WHERE key = ? LIMIT 9`, string(s.Key)); got != fmt.Sprint("extract:", old, " ", rt.now.Add(15*time.Minute).UnixMilli()) {
		t.Errorf("due is %q", got)
	}
	down = false
	if err := s.extractLater(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	h, err := s.head(t.Context())
	if want := []string{old + "/reset/0: the planks are planed"}; err != nil || !slices.Equal(agent.facts, want) || s.reads(t, `SELECT kind FROM due WHERE key = ? LIMIT 9`, string(s.Key)) != "" || h.Usage.Input != 6 {
		t.Errorf("remembered %q, used %+v, %v", agent.facts, h.Usage, err)
	}
	s.does(t, `INSERT INTO due(key, kind, at) VALUES(?, ?, 1), (?, 'extract:other', 1)`, string(s.Key), dueExtract+old, string(s.Key))
	s.settings().NoMemories = true
	if err := s.extractLater(t.Context(), old); err != nil || len(agent.facts) != 1 || s.reads(t, `SELECT kind FROM due WHERE key = ? LIMIT 9`, string(s.Key)) != "extract:other" {
		t.Errorf("without memories: %v, remembered %q", err, agent.facts)
	}
}

// TestStaleArchive: a whole file that an earlier try of this session wrote is written anew; one with other messages stays where it is.
func TestStaleArchive(t *testing.T) {
	for _, c := range []struct {
		name  string
		with  int // of the messages, that the file has
		other bool
		stays bool
	}{{"the first of them", 2, false, false}, {"all of them", 4, false, false}, {"one more", 5, false, true}, {"others", 2, true, true}} {
		s, _ := plain(t, Config{Settings: Settings{NoMemories: true}})
		log := s.current(t)
		s.spoken(t, 4)
		enc := archive.Encoder{MaxBytes: 1 << 20}
		for i := range c.with {
			name := fmt.Sprint("i", i)
			if c.other {
				name = fmt.Sprint("x", i)
			}
			if err := enc.Add(tidemark.Entry{ID: tidemark.EntryID(name), Kind: tidemark.KindMessage, At: s.Runtime.Now(), Payload: tidemark.NewText(tidemark.User, "x").AppendJSON(nil)}); err != nil {
				t.Fatal(err)
			}
		}
		pack, err := enc.Close()
		if err != nil {
			t.Fatal(err)
		}
		key := archive.WholeKey("main", log)
		if _, err := archive.PutWhole(t.Context(), s.Blobs, archive.Info{Key: key, SessionKey: s.Key, Session: log, Agent: "main", At: s.Runtime.Now()}, nil, pack); err != nil {
			t.Fatal(err)
		}
		_, err = s.parts.Whole(t.Context(), log, s.Runtime.Now(), tidemark.Usage{})
		n, want := 0, 4
		if c.stays {
			want = c.with
		}
		for _, bad := range archive.Read(t.Context(), s.Blobs, key) {
			if n++; bad != nil {
				t.Fatal(bad)
			}
		}
		if (err != nil) != c.stays || n != want || err != nil && !strings.Contains(err.Error(), "move it away") {
			t.Errorf("%s: %v, %d messages", c.name, err, n)
		}
	}
}
