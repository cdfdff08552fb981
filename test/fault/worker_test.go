//go:build !js

package fault

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// minute is the heartbeat of a run: what a kill cut off is taken up by then, whoever comes or does not.
const minute = 61 * time.Second

// TestKillWorker kills workerd at random moments of turns, compactions, resets and starts, while
// clients go on in several sessions, and counts what they were promised against what is there.
// After the last kill nobody calls: alarms alone must bring everything to its end.
func TestKillWorker(t *testing.T) {
	if !asked(t) {
		t.Skip("make fault")
	}
	t.Parallel()
	n := workerKills(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1<<32))
	sessions := []string{"main", "garden", "agent:main:api:dm:peer", "agent:work:main"}
	var ids atomic.Int64
	m := newModel(t, &ids, 3*time.Millisecond)
	f := newWorker(t, m.URL, nil)
	c := &crowd{t: t}
	c.start(seed, sessions...)
	next := f.launchReady()
	for i := range n {
		const perModel = 20 // it keeps what it was asked
		if i > 0 && i%perModel == 0 {
			m.Close()
			m = newModel(t, &ids, 3*time.Millisecond)
			f.configure(m.URL, nil)
			next.kill()
			next = f.launchReady()
		}
		s := next
		next = f.launchReady()
		f.killStarted(c, s, rng)
		if t.Failed() {
			break
		}
	}
	// Nobody calls until it is finished.
	c.ended.Store(true)
	next.begin()
	next.mustBeReady()
	f.quietWithin(next, 2*minute)
	c.at.set(next.url)
	c.end(sessions...)
	f.settled(next, sessions...)
	f.quietWithin(next, 2*minute)
	next.stop()
	e := inspect(t, f)
	e.account(c.talkers, n)
	if n >= 12 && (e.compactions == 0 || e.resets == 0) {
		t.Errorf("the run proves little: %s", e)
	}
}

// killStarted starts a server and kills it at a random moment: one in six while it starts.
func (f *fixture) killStarted(c *crowd, s *server, rng *rand.Rand) {
	f.t.Helper()
	s.begin()
	if rng.IntN(6) == 0 {
		time.Sleep(time.Duration(rng.IntN(900)) * time.Millisecond)
	} else {
		s.mustBeReady()
		c.at.set(s.url)
		time.Sleep(time.Duration(rng.IntN(1200)) * time.Millisecond)
	}
	c.at.set("")
	s.kill()
}

// stepRow is one place to die at, see arrowTable. tx is a pattern of a transaction, put one of the key of
// a file.
type stepRow struct {
	name    string
	tx, put string
	n       int // the how many-th time; 0 for the first
}

// stepTable is what stands on disk between the steps of a turn, a compaction and a reset, in objects
// that are a session's and its agent's.
var stepTable = []stepRow{
	{name: "input stored", tx: `^INSERT INTO inputs`, n: 5},
	{name: "run begun", tx: `^INSERT INTO runs`, n: 5},
	{name: "inputs taken", tx: `^UPDATE inputs SET state = 'taken'`, n: 5},
	{name: "reply committed", tx: `^UPDATE runs SET reply`},
	{name: "tools registered", tx: `^INSERT INTO calls`},
	{name: "call started", tx: `^UPDATE calls SET state.*started`},
	{name: "call done", tx: `^UPDATE calls SET state.*done`},
	{name: "call done, the last", tx: `^UPDATE calls SET state.*done`, n: 3},
	{name: "plan stored", tx: `^INSERT INTO plans`},
	{name: "part begun", tx: `^INSERT INTO parts`},
	{name: "part put", put: `-part\d+`},
	{name: "part recorded", tx: `^UPDATE parts SET last`},
	{name: "chunk stored", tx: `^UPDATE plans SET chunk`},
	{name: "overlay installed", tx: `^UPDATE plans SET state = 'done'`},
	{name: "overlay installed, the second", tx: `^UPDATE plans SET state = 'done'`, n: 2},
	{name: "reset begun", tx: `^INSERT INTO resets`},
	{name: "whole put", put: `/sessions/[0-9A-Z]{26}\.jsonl`},
	{name: "archived", tx: `^UPDATE resets SET step.*extract`},
	{name: "extracted", tx: `^UPDATE resets SET step.*move`},
	{name: "moved", tx: `^UPDATE resets SET step = 'done'`},
	{name: "facts handed", tx: `^INSERT INTO agent_extractions`},
	{name: "agent told", tx: `^DELETE FROM outbox`},
	{name: "memory put", put: `/memory/`},
	{name: "memory flushed", tx: `^UPDATE agent_sections SET done`},
	{name: "index put", put: `/sessions/index/`},
	{name: "index recorded", tx: `^UPDATE agent_archives SET indexed`},
}

// TestKillWorkerAtStep kills workerd at each step that is made durable; files also just before they are in
// the bucket. Then nobody calls any more: the alarms of the next life finish what was begun.
func TestKillWorkerAtStep(t *testing.T) {
	for i, row := range stepTable {
		if !asked(t) && i%(3*some) != 0 { // a Worker starts slowly
			continue
		}
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			killStep(t, row, false)
		})
		if row.put != "" {
			t.Run("before "+row.name, func(t *testing.T) {
				t.Parallel()
				killStep(t, row, true)
			})
		}
	}
}

func killStep(t *testing.T, row stepRow, before bool) {
	var ids atomic.Int64
	f := newWorker(t, newModel(t, &ids, 0).URL, tight())
	f.args = []string{"--crash", fmt.Sprintf(`{"tx":%q,"put":%q,"before":%v,"n":%d}`, row.tx, row.put, before, max(row.n, 1))}
	doomed := f.serve()
	var at address
	at.set(doomed.url)
	k := newTalker(t, &at, "main")
	for _, in := range scenario() {
		k.try(in)
	}
	if !doomed.killed() {
		t.Fatalf("the server ended otherwise, or not:\n%s", doomed.log)
	}
	f.later(minute)
	f.args = nil
	s := f.serve()
	f.quiet(s)
	s.stop()
	e := inspect(t, f)
	e.account([]*talker{k}, 1)
	if len(e.failures) > 0 {
		t.Errorf("failures %q", e.failures)
	}
}

// TestKillWorkerInStream kills workerd while the model speaks: the answer is asked for again and is
// there once, though nobody asks for it.
func TestKillWorkerInStream(t *testing.T) {
	t.Parallel()
	const pieces = 6
	var ids atomic.Int64
	m := newModel(t, &ids, 0)
	gate := make(chan struct{})
	m.gate = gate
	f := newWorker(t, m.URL, nil)
	s := f.serve()
	var at address
	at.set(s.url)
	go func() {
		for range pieces { // each lets one event pass
			gate <- struct{}{}
		}
		s.kill()
		close(gate)
	}()
	k := newTalker(t, &at, "main")
	if got, _ := k.send(input{id: "only", kind: "messages", text: "speak", how: leave}); got != "" {
		t.Errorf("answered with %q", got)
	}
	k.sent, k.acknowledged = []string{"only"}, []string{"only"}
	if !s.killed() {
		t.Fatalf("the server ended otherwise, or not:\n%s", s.log)
	}
	f.later(minute)
	next := f.serve()
	f.quiet(next)
	f.settled(next, "main")
	next.stop()
	e := inspect(t, f)
	e.account([]*talker{k}, 1)
	if n := len(m.Calls()); n != 2 || len(e.failures) > 0 {
		t.Errorf("the model was called %d times, want 2; failures %q", n, e.failures)
	}
	if got := strings.Count(e.last["agent:main:main"], "Answer 2. "); got != 1 {
		t.Errorf("the log ends with %q", e.last)
	}
}
