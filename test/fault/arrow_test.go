//go:build !js

package fault

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// arrowRow is one place to die at. test/crash knows the arrows by these names.
type arrowRow struct {
	name string
	file bool // it writes a file, so that one can die in the middle of it
	why  string
}

// arrowTable is DESIGN §1 step by step, in the order of a turn, a compaction, a reset and what
// follows them. What is said to be true after each is held by inspect for all of them alike.
var arrowTable = []arrowRow{
	{name: "input stored", why: "a run is started for it"},
	{name: "run begun", why: "it is resumed"},
	{name: "inputs taken", why: "the run that took them goes on"},
	{name: "attempt counted", why: "the model is called again"},
	{name: "reply committed", why: "nothing is asked again"},
	{name: "tools registered", why: "the tools run"},
	{name: "call started", why: "a call that may be repeated is"},
	{name: "call started:3", why: "one that may not is interrupted"},
	{name: "call done", why: "its result is kept"},
	{name: "call done:3", why: "before it, the call may have run"},
	{name: "results committed", why: "the next model call"},
	{name: "plan stored", why: "the same plan is carried out"},
	{name: "part begun", why: "its key and range are known, so it is finished whatever becomes of the plan"},
	{name: "part put", file: true, why: "the same key is written again"},
	{name: "part recorded", why: "it is not written again"},
	{name: "chunk stored", why: "it is not paid twice"},
	{name: "overlay installed", why: "the command that asked for it is over"},
	{name: "overlay installed:2", why: "one overlay, one event, and the turn goes on"},
	{name: "reset begun", why: "it goes on under the same new id"},
	{name: "whole put", file: true, why: "the same key is written again"},
	{name: "archived", why: "memories are extracted next"},
	{name: "extracted", why: "the head is moved next"},
	{name: "moved", why: "the command is over, or the input begins the new session"},
	{name: "facts handed", why: "the agent knows their id and takes them once"},
	{name: "agent told", why: "nothing is told again"},
	{name: "memory put", file: true, why: "a section that is there is not written again"},
	{name: "memory flushed", why: "nothing is pending"},
	{name: "index put", file: true, why: "an archive that is listed is not listed again"},
	{name: "index recorded", why: "nothing is pending"},
}

// interrupted are the places after which a call cannot be known not to have run.
var interrupted = []string{"call started:3", "before call done:3"}

// TestKillAtArrow kills the server at each step that a turn, a compaction or a reset makes durable,
// just after it, just before it and, for files, in the middle.
func TestKillAtArrow(t *testing.T) {
	for i, row := range arrowTable {
		if !asked(t) && i%some != 0 {
			continue
		}
		whens := []string{"", "before "}
		if row.file {
			whens = append(whens, "during ")
		}
		for _, when := range whens {
			t.Run(when+row.name, func(t *testing.T) {
				t.Parallel()
				killAt(t, when+row.name)
			})
		}
		t.Run(row.name+", then silence", func(t *testing.T) {
			t.Parallel()
			killAndWait(t, row.name)
		})
	}
}

// killAndWait plays the scenario on a server that dies at a place; the next one must bring what was
// begun to its end by itself, since nobody says anything any more.
func killAndWait(t *testing.T, place string) {
	var ids atomic.Int64
	f := newFixture(t, newModel(t, &ids, 0).URL, tight())
	doomed := f.serve("TIDEMARK_CRASH_AT=" + place)
	var at address
	at.set(doomed.url)
	k := newTalker(t, &at, "main")
	for _, in := range scenario() {
		k.try(in)
	}
	if !doomed.killed() {
		t.Fatalf("the server ended otherwise, or not:\n%s", doomed.log)
	}
	s := f.serve()
	f.quiet(s)
	s.stop()
	e := inspect(t, f)
	e.account([]*talker{k}, 1)
	if len(e.failures) > 0 {
		t.Errorf("failures %q", e.failures)
	}
}

// scenario is a talk with tools, a compaction that was asked for, one that was not, and a reset.
func scenario() []input {
	var out []input
	say := func(marks ...string) {
		for _, mark := range marks {
			id := fmt.Sprint("in", len(out))
			out = append(out, input{id: id, kind: "messages", text: mark + long(id), how: wait})
		}
	}
	say("", wantLook, "", wantEdit, "", "")
	out = append(out, input{id: "compact", kind: "compact", text: "keep the numbers", how: wait})
	say("", "", "", "", "", "", "", "", "", "")
	return append(out,
		input{id: "reset", kind: "reset", text: "manual", how: wait},
		input{id: "last", kind: "messages", text: "after the reset", how: wait})
}

// tight are settings under which the scenario has its two compactions.
func tight() map[string]any {
	return map[string]any{"compaction": map[string]any{"reserveTokens": 3000, "keepRecentTokens": 700}}
}

// killAt plays the scenario on a server that dies at a place, and then on one that does not.
func killAt(t *testing.T, place string) {
	var ids atomic.Int64
	f := newFixture(t, newModel(t, &ids, 0).URL, tight())
	var at address
	doomed := f.serve("TIDEMARK_CRASH_AT=" + place)
	at.set(doomed.url)
	next := make(chan *server, 1)
	go func() {
		<-doomed.done
		s := f.launch()
		s.ready()
		at.set(s.url)
		next <- s
	}()
	k := newTalker(t, &at, "main")
	for _, in := range scenario() {
		if got := k.deliver(in); strings.HasPrefix(got, "error") {
			t.Fatalf("input %s: %s", in.id, got)
		}
	}
	select {
	case <-doomed.done:
	case <-time.After(tidemarktest.Patience):
		t.Fatalf("the scenario does not pass %q", place)
	}
	if !doomed.killed() {
		t.Fatalf("the server ended otherwise:\n%s", doomed.log)
	}
	s := <-next
	f.settled(s, "main")
	s.stop()
	e := inspect(t, f)
	e.account([]*talker{k}, 1)
	e.scenarioWas(place, f)
}

// scenarioWas holds what only this scenario leaves.
func (e *estate) scenarioWas(place string, f *fixture) {
	e.t.Helper()
	if e.resets != 1 || e.compactions != 2 || e.idle > 0 || len(e.failures) > 0 {
		e.t.Errorf("want one reset, two compactions and no failure: %s idle=%d %q", e, e.idle, e.failures)
	}
	want := slices.Contains(interrupted, place)
	if got := slices.ContainsFunc(e.results, func(s string) bool { return strings.Contains(s, "may have run") }); got != want {
		e.t.Errorf("results %q: interrupted is %v, want %v", e.results, got, want)
	}
	raw, err := os.ReadFile(f.bucket() + "/agents/main/MEMORY.md")
	edits := strings.Count(string(raw), "- Edit ")
	if never := place == "call started:3"; never && edits != 0 || !never && edits != 1 {
		e.t.Errorf("MEMORY.md has %d edits (%v):\n%s", edits, err, raw)
	}
}

// TestKillInStream kills the server while the model speaks: the answer is asked for again and is
// there once.
func TestKillInStream(t *testing.T) {
	const pieces = 6
	var ids atomic.Int64
	m := newModel(t, &ids, 0)
	gate := make(chan struct{})
	m.gate = gate
	f := newFixture(t, m.URL, nil)
	var at address
	s := f.serve()
	at.set(s.url)
	go func() {
		for range pieces { // each lets one event pass
			gate <- struct{}{}
		}
		s.kill()
		close(gate)
		s = f.serve()
		at.set(s.url)
	}()
	k := newTalker(t, &at, "main")
	if got := k.deliver(input{id: "only", kind: "messages", text: "speak", how: wait}); !strings.HasPrefix(got, "Answer 2. ") {
		t.Errorf("answered with %q", got)
	}
	f.settled(s, "main")
	s.stop()
	e := inspect(t, f)
	e.account([]*talker{k}, 1)
	if len(e.failures) > 0 {
		t.Errorf("failures %q", e.failures)
	}
}
