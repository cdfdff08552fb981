package approvals

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/approval"
	"github.com/tidemark-ai/tidemark/room"
)

// TestRulings: what becomes of a call, by what was decided about it and until when it could be.
func TestRulings(t *testing.T) {
	b := newBench(t, mine, Config{}, nil)
	for _, tc := range []struct {
		state   string
		expires time.Time
		waits   bool
		refused string
	}{
		{askAllowed, noon.Add(-time.Hour), false, ""},
		{askDenied, noon.Add(time.Hour), false, "the owner was asked and said no. Do not try it again in another way; ask what they want instead."},
		{askClosed, noon.Add(time.Hour), false, "the turn that asked was stopped."},
		{askWaiting, noon.Add(time.Millisecond), true, ""},
		{askWaiting, noon, false, "the owner was asked and did not answer until 13:00 CET."},
	} {
		got := b.ruling(asked{Question: tidemark.Question{Expires: tc.expires}, state: tc.state}, noon)
		if got.Waits != tc.waits || got.Refused != tc.refused {
			t.Errorf("%s until %s: %+v", tc.state, tc.expires, got)
		}
	}
	b.Policy = approval.Policy{Default: approval.Ask, Rules: []approval.Rule{{Tool: "read", Action: approval.Allow}, {Tool: "rm", Action: approval.Deny}}}
	for tool, want := range map[string]room.Ruling{"read": {}, "rm": {Refused: "rule 2 of toolApproval.rules denies this call"}, "send": {Waits: true}} {
		if got := b.Judge(tool, []byte(`{}`), true); got != want {
			t.Errorf("%s: %+v", tool, got)
		}
	}
	if got := b.Judge("send", []byte(`{}`), false); got != (room.Ruling{}) {
		t.Errorf("our own: %+v", got)
	}
	b.Policy.Default = approval.Deny
	if got := b.Judge("send", []byte(`{}`), true); got.Refused != "toolApproval.default denies tools that no rule allows" || got.Waits {
		t.Errorf("denied by default: %+v", got)
	}
}

// TestExpiries: how long a question waits, by whose turn waits for it.
func TestExpiries(t *testing.T) {
	for _, tc := range []struct {
		key  tidemark.Key
		c    Config
		want time.Duration
	}{
		{mine, Config{}, time.Hour}, {mine, Config{Expiry: 9 * time.Hour, Errand: time.Minute}, 9 * time.Hour},
		{"agent:main:schedule:dm:a", Config{Expiry: 9 * time.Hour}, 5 * time.Hour}, {"agent:main:schedule:dm:a", Config{Errand: time.Minute}, time.Hour},
		{"agent:main:delegate:dm:a", Config{Expiry: 9 * time.Hour}, 9 * time.Hour}, {"agent:main:delegate:dm:a", Config{Errand: time.Minute}, time.Minute}, {"agent:main:delegate:dm:a", Config{Errand: 2 * time.Hour}, time.Hour},
	} {
		if got := newBench(t, tc.key, tc.c, nil).expiry(); got != tc.want {
			t.Errorf("%s, %+v: %s, want %s", tc.key, tc.c, got, tc.want)
		}
	}
}

// TestAskOnce: a call is asked about once, under a code of its own, and what was asked before holds.
func TestAskOnce(t *testing.T) {
	b := newBench(t, mine, Config{}, &answerer{})
	b.others()
	turn := room.Turn{Run: "r", Log: "log", Round: 2, Origins: []tidemark.Origin{{From: tidemark.FromPerson, Peer: "ann", Owner: true}, {Peer: "eve"}, {Owner: true, Peer: "cron", Occasion: &tidemark.Occasion{}}, {Owner: true, Peer: "bot", Channel: "mcp"}}}
	calls := []room.Waiting{{N: 0, Tool: "send", Input: []byte(`{"to":"x"}`)}, {N: 3, Tool: "pay", Input: []byte(`{}`)}}
	first, second := approval.Code("r", "2 0"), approval.Code("r", "2 3")
	b.asks(first, "other", 2, 0, askAllowed, noon, noon) // another call's, by chance
	done, until, err := b.Ask(t.Context(), turn, calls)
	if err != nil || !until.Equal(noon.Add(time.Hour)) {
		t.Fatal(until, err)
	}
	if err := b.DB.Tx(t.Context(), done.Stmts); err != nil {
		t.Fatal(err)
	}
	own := approval.Code(first)
	if got, want := b.said(`SELECT code || ' ' || run || ' ' || round || ' ' || n || ' ' || tool || ' ' || input || ' ' || state || ' ' || asked || ' ' || expires FROM approvals WHERE key = ? AND run = 'r' ORDER BY n LIMIT 9`, string(mine)),
		fmt.Sprintf("%s r 2 0 send {\"to\":\"x\"} waiting %d %d\n%s r 2 3 pay {} waiting %d %d", own, noon.UnixMilli(), noon.Add(time.Hour).UnixMilli(), second, noon.UnixMilli(), noon.Add(time.Hour).UnixMilli()); got != want {
		t.Errorf("rows\n%s\nwant\n%s", got, want)
	}
	text := fmt.Sprintf("May the tool send run with {\"to\":\"x\"}?\nAnswer: yes %s, or no %s.\nMay the tool pay run with {}?\nAnswer: yes %s, or no %s.\nUntil 13:00 UTC nothing else happens here.", own, own, second, second)
	if b.lines != "log [ann] "+text {
		t.Errorf("people read %s", b.lines)
	}
	const times = `"asked":"2026-03-10T12:00:00Z","expires":"2026-03-10T13:00:00Z"}`
	one := fmt.Sprintf(`{"code":"%s","session":"agent:main:main","tool":"send","input":"{\"to\":\"x\"}",`, own) + times
	two := fmt.Sprintf(`{"code":"%s","session":"agent:main:main","tool":"pay","input":"{}",`, second) + times
	if got, want := b.notes(), fmt.Sprintf("event log %s\nlines\noutbox question:%s:r question 0s %s\noutbox question:%s:r question 0s %s",
		room.JSON(tidemark.Event{Type: "approval", Text: text, Data: []byte("[" + one + "," + two + "]")}), own, one, second, two); got != want {
		t.Errorf("written\n%s\nwant\n%s", got, want)
	}
	if done.Then(); len(b.did) != 1 || !strings.HasPrefix(b.did[0], "rests r 2 May the tool send") {
		t.Errorf("who listens hears %q", b.did)
	}
	// Again, in another life: nothing is asked, and the first that ends counts.
	b.exec(`INSERT INTO approvals(key, code, run, round, n, tool, input, state, asked, expires) SELECT 'agent:main:bert', code, run, round, n, tool, input, state, asked, expires FROM approvals WHERE key = ?`, string(mine))
	b.clock.now = noon.Add(10 * time.Minute)
	b.exec(`UPDATE approvals SET expires = ? WHERE key = ? AND code = ?`, noon.Add(20*time.Minute).UnixMilli(), string(mine), second)
	done, until, err = b.Ask(t.Context(), turn, calls)
	if err != nil || !until.Equal(noon.Add(20*time.Minute)) || len(done.Stmts) != 2 {
		t.Fatal(until, err, done.Stmts)
	}
	if err := b.DB.Tx(t.Context(), done.Stmts); err != nil || b.notes() != "" {
		t.Errorf("again: %v", err)
	}
	b.exec(`UPDATE approvals SET state = 'denied' WHERE key = ? AND code = ?`, string(mine), second)
	if err := b.DB.Tx(t.Context(), done.Stmts); !errors.Is(err, tidemark.ErrConflict) {
		t.Errorf("what was decided meanwhile: %v", err)
	}
	b.asks("ROUND", "r", 1, 7, askDenied, noon, noon)
	rulings, err := b.Asked(t.Context(), "r", 2)
	if err != nil || len(rulings) != 2 || !rulings[0].Waits || rulings[3].Refused == "" {
		t.Errorf("became of them %+v, %v", rulings, err)
	}
	b.store.down = true
	if _, _, err := b.Ask(t.Context(), turn, calls); !errors.Is(err, errDown) {
		t.Errorf("a store that is down: %v", err)
	}
}

// TestAskElsewhere: where the owner is in no part of a turn, they are asked elsewhere, where it was delegated from.
func TestAskElsewhere(t *testing.T) {
	b := newBench(t, "agent:main:delegate:dm:a", Config{}, &answerer{})
	turn := room.Turn{Run: "r", Log: "log", Round: 1, Origins: []tidemark.Origin{{From: tidemark.FromAgent, Peer: "agent:main:main#b"}, {Peer: "eve"}}}
	done, _, err := b.Ask(t.Context(), turn, []room.Waiting{{Tool: "send", Input: []byte(`{}`)}})
	if err == nil {
		err = b.DB.Tx(t.Context(), done.Stmts)
	}
	if got := b.notes(); err != nil || !strings.Contains(got, `"elsewhere":true,"where":"agent:main:main#b"}`) || !strings.HasPrefix(b.lines, "log [] ") {
		t.Errorf("%v, written %s, lines %s", err, got, b.lines)
	}
}

// TestWaits: what waits is what is not decided and not over, of this conversation, oldest first, and what is told of it.
func TestWaits(t *testing.T) {
	for key, text := range map[tidemark.Key]string{mine: "May the tool send run with", "agent:main:fake:dm:eve": "This waits until the owner of the assistant has decided about it."} {
		b := newBench(t, key, Config{}, nil)
		if list, err := b.Waiting(t.Context()); err != nil || list == nil || len(list) != 0 {
			t.Errorf("where nothing was ever asked: %v, %v", list, err)
		}
		if run, err := b.Parked(t.Context()); err != nil || run != "" {
			t.Errorf("where nothing was ever asked %q is parked, %v", run, err)
		}
		if list, text, err := b.Resting(t.Context()); err != nil || len(list) > 0 || text != "" {
			t.Errorf("where nothing was ever asked: %v, %q, %v", list, text, err)
		}
		if got := b.Ahead(t.Context(), tidemark.Origin{Owner: true}); got != "" || b.EndStmts() != nil {
			t.Errorf("where nothing was ever asked: %q", got)
		}
		b.others()
		end := noon.Add(time.Hour)
		b.asks("LATER", "r2", 1, 0, askWaiting, noon.Add(time.Second), end)
		b.asks("THIRD", "r4", 1, 2, askWaiting, noon, end)
		b.asks("FIRST", "r1", 1, 1, askWaiting, noon, noon.Add(time.Millisecond))
		b.asks("ENDED", "r0", 1, 0, askWaiting, noon.Add(-time.Hour), noon)
		b.asks("DONE2", "r0", 1, 1, askAllowed, noon.Add(-time.Hour), end)
		list, err := b.Waiting(t.Context())
		if err != nil || codes(list) != "FIRST THIRD LATER" || list[0].Session != key || list[0].Tool != "send" || list[0].Input != `{"to":"x"}` || !list[0].Asked.Equal(noon) || !list[0].Expires.Equal(noon.Add(time.Millisecond)) {
			t.Errorf("waiting %+v, %v", list, err)
		}
		if run, err := b.Parked(t.Context()); err != nil || run != "r1" {
			t.Errorf("%q is parked, %v", run, err)
		}
		if list, got, err := b.Resting(t.Context()); err != nil || len(list) != 3 || !strings.HasPrefix(got, text) {
			t.Errorf("resting: %d, %q, %v", len(list), got, err)
		}
		b.active = "r9"
		if list, got, err := b.Resting(t.Context()); err != nil || list != nil || got != "" {
			t.Errorf("while something works: %v, %q, %v", list, got, err)
		}
		if got := b.Ahead(t.Context(), tidemark.Origin{Owner: true}); !strings.HasPrefix(got, "May the tool send run with") {
			t.Errorf("before what the owner writes: %q", got)
		}
		if got := b.Ahead(t.Context(), tidemark.Origin{}); got != "" {
			t.Errorf("before what another writes: %q", got)
		}
		if a, err := b.find(t.Context(), "later"); err != nil || a.Code != "LATER" || a.run != "r2" || a.round != 1 || a.n != 0 || a.state != askWaiting {
			t.Errorf("found %+v, %v", a, err)
		}
		for _, code := range []string{"AAAAA", "NONE2", ""} {
			if _, err := b.find(t.Context(), code); !errors.Is(err, tidemark.ErrNotFound) || !strings.Contains(err.Error(), fmt.Sprintf("no call of %s waits under the code %q", key, code)) {
				t.Errorf("%q: %v", code, err)
			}
		}
		b.store.down = true
		b.tellWaiting(t.Context(), "r")
		if got := b.Ahead(t.Context(), tidemark.Origin{Owner: true}); got != "" || !slices.Equal(b.did, []string{"warn read approvals", "warn read what waits"}) {
			t.Errorf("a store that is down: %q, did %q", got, b.did)
		}
	}
}

// TestQuestionIsBounded: of arguments that are long to show no more is asked than there is room for; one question of a guest is the owner's alone,
// too.
func TestQuestionIsBounded(t *testing.T) {
	got := question([]tidemark.Question{{Tool: "send", Input: strings.Repeat("\u200b", 33), Code: "FIRST"}}, 100)
	if want := "May the tool send run with " + strings.Repeat(`\u200b`, 16) + `\u200` + "…?\n"; !strings.HasPrefix(got, want) {
		t.Errorf("it is asked %q, want %q", got, want)
	}
	b := newBench(t, "agent:main:fake:dm:eve", Config{}, nil)
	b.others()
	b.asks("FIRST", "r", 1, 0, askWaiting, noon, noon.Add(time.Hour))
	if list, text, err := b.shown(t.Context()); err != nil || len(list) != 1 || strings.Contains(text, "send") {
		t.Errorf("who follows reads %q, %v", text, err)
	}
}

// TestCloseAndPrune: what waits of a run that ends is closed, and the agent knows; what was asked long ago goes.
func TestCloseAndPrune(t *testing.T) {
	b := newBench(t, mine, Config{}, nil)
	b.others()
	if stmts, err := b.Close(t.Context(), "r"); err != nil || stmts != nil {
		t.Errorf("a run that asked nothing: %v, %v", stmts, err)
	}
	old := noon.Add(-keepApprovals)
	b.asks("FIRST", "r", 1, 0, askWaiting, noon, noon.Add(time.Hour))
	b.asks("DONE2", "r", 1, 1, askAllowed, noon, noon.Add(time.Hour))
	b.asks("OTHER", "r2", 1, 0, askWaiting, noon, noon.Add(time.Hour))
	stmts, err := b.Close(t.Context(), "r")
	if err == nil {
		err = b.DB.Tx(t.Context(), stmts)
	}
	if got := b.notes(); err != nil || got != `outbox question-closed:FIRST:r question 0s {"code":"FIRST","session":"agent:main:main","tool":"send","input":"","asked":"2026-03-10T12:00:00Z","expires":"2026-03-10T13:00:00Z","closed":true}` {
		t.Errorf("written %s, %v", got, err)
	}
	b.asks("OLDER", "r3", 1, 0, askDenied, old, old.Add(-time.Millisecond))
	b.asks("YOUNG", "r3", 1, 0, askDenied, old, old)
	if err := b.DB.Tx(t.Context(), b.EndStmts()); err != nil {
		t.Fatal(err)
	}
	if got := b.said(`SELECT code || ' ' || state FROM approvals WHERE key = ? ORDER BY code LIMIT 9`, string(mine)); got != "DONE2 allowed\nFIRST closed\nOTHER waiting\nYOUNG denied" {
		t.Errorf("there is\n%s", got)
	}
}

// TestReportQuestion: what the outbox has reaches an agent that knows of questions, and is nothing to another one.
func TestReportQuestion(t *testing.T) {
	agent := &answerer{err: errDown}
	b := newBench(t, mine, Config{}, agent)
	if err := b.Report(t.Context(), []byte(`{"code":"A"}`)); !errors.Is(err, errDown) || len(agent.got) != 1 || agent.got[0].Code != "A" || b.Reports() != "question" {
		t.Errorf("%v, told of %+v", err, agent.got)
	}
	if err := b.Report(t.Context(), []byte(`{`)); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("what cannot be read: %v", err)
	}
	if err := newBench(t, mine, Config{}, nil).Report(t.Context(), []byte(`{"code":"A"}`)); err != nil {
		t.Errorf("an agent that knows of none: %v", err)
	}
}
