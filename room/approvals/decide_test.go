package approvals

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// TestDecideWrites: a decision is written down once, told, and lets its turn go on.
func TestDecideWrites(t *testing.T) {
	for _, allow := range []bool{true, false} {
		b := newBench(t, mine, Config{}, nil)
		b.others()
		b.asks("FIRST", "r", 1, 0, askWaiting, noon, noon.Add(time.Hour))
		b.asks("OTHER", "r2", 1, 0, askWaiting, noon.Add(time.Second), noon.Add(time.Hour))
		b.exec(`INSERT INTO approvals(key, code, run, round, n, tool, input, state, asked, expires) SELECT 'agent:main:bert', code, run, round, n, tool, input, state, asked, expires FROM approvals WHERE key = ?`, string(mine))
		if err := b.Decide(t.Context(), tidemark.Decision{Code: "first", Allow: allow, By: tidemark.Origin{Owner: true, Channel: "web"}}); err != nil {
			t.Fatal(err)
		}
		word, state := "Denied", "denied"
		if allow {
			word, state = "Allowed", "allowed"
		}
		if got, want := b.notes(), fmt.Sprintf(`goon r
event log {"type":"approval","text":"%s: the tool send (FIRST).","data":{"allow":%v,"by":"web","code":"FIRST"}}
outbox question-closed:FIRST:r question 0s {"code":"FIRST","session":"agent:main:main","tool":"send","input":"","asked":"2026-03-10T12:00:00Z","expires":"2026-03-10T13:00:00Z","closed":true}`, word, allow); got != want {
			t.Errorf("written\n%s\nwant\n%s", got, want)
		}
		if got := b.said(`SELECT code || ' ' || state FROM approvals WHERE key = ? ORDER BY code LIMIT 9`, string(mine)); got != "FIRST "+state+"\nOTHER waiting" {
			t.Errorf("there is\n%s", got)
		}
		if len(b.did) != 3 || b.did[0] != "happened r "+word+": the tool send (FIRST)." || !strings.HasPrefix(b.did[1], "rests r 1 May the tool send") || b.did[2] != "resume" {
			t.Errorf("did %q", b.did)
		}
	}
}

// TestDecideRefuses: who may not decide, and what cannot be decided, with the reason.
func TestDecideRefuses(t *testing.T) {
	b := newBench(t, mine, Config{}, nil)
	b.others()
	end := noon.Add(time.Hour)
	b.asks("WAITS", "r", 1, 0, askWaiting, noon, noon.Add(time.Millisecond))
	b.asks("GIVEN", "r", 1, 1, askAllowed, noon, end)
	b.asks("TAKEN", "r", 1, 2, askDenied, noon, end)
	b.asks("ENDED", "r", 1, 3, askClosed, noon, end)
	b.asks("LATE2", "r", 1, 4, askWaiting, noon, noon)
	owner := tidemark.Origin{Owner: true}
	for _, tc := range []struct {
		code string
		by   tidemark.Origin
		err  error
		says string
	}{
		{"WAITS", tidemark.Origin{}, tidemark.ErrForbidden, "only the owner decides about tool calls"},
		{"GIVEN", owner, tidemark.ErrConflict, "the call GIVEN was allowed already"},
		{"TAKEN", owner, tidemark.ErrConflict, "the call TAKEN was denied already"},
		{"ENDED", owner, tidemark.ErrConflict, "the turn that asked under ENDED has ended; nothing was run"},
		{"LATE2", owner, tidemark.ErrConflict, "the time to decide about LATE2 was over at 13:00 CET; nothing was run"},
		{"AAAAA", owner, tidemark.ErrNotFound, "no call of agent:main:main waits under the code \"AAAAA\""},
	} {
		err := b.Decide(t.Context(), tidemark.Decision{Code: tc.code, Allow: true, By: tc.by})
		if !errors.Is(err, tc.err) || !strings.HasPrefix(err.Error(), tc.says+": ") {
			t.Errorf("%s by %+v: %v", tc.code, tc.by, err)
		}
		done, err := b.Command(t.Context(), "approve", tc.code, tc.by)
		if tc.code == "AAAAA" {
			tc.says = `no call waits under the code "AAAAA"`
		}
		if err != nil || done.Text != tc.says || done.Stmts != nil || done.Then != nil {
			t.Errorf("%s by %+v reads %q, %v", tc.code, tc.by, done.Text, err)
		}
	}
	b.store.conflict = true
	if err := b.Decide(t.Context(), tidemark.Decision{Code: "WAITS", By: owner}); !errors.Is(err, tidemark.ErrConflict) || !strings.HasPrefix(err.Error(), "the call WAITS was decided at the same moment, or its turn has ended") {
		t.Errorf("at the same moment: %v", err)
	}
	b.store.conflict, b.store.down = false, true
	if err := b.Decide(t.Context(), tidemark.Decision{Code: "WAITS", By: owner}); !errors.Is(err, errDown) {
		t.Errorf("a store that is down: %v", err)
	}
	if _, err := b.Command(t.Context(), "deny", "WAITS", owner); !errors.Is(err, errDown) {
		t.Errorf("a command, and a store that is down: %v", err)
	}
	if len(b.did) > 0 || b.notes() != "" {
		t.Errorf("did %q", b.did)
	}
}

// TestCommandDecides: a command decides what its word says, behind what it is written with.
func TestCommandDecides(t *testing.T) {
	for word, want := range map[string]string{"approve": "allowed", "deny": "denied"} {
		b := newBench(t, mine, Config{}, nil)
		b.others()
		b.asks("FIRST", "r", 1, 0, askWaiting, noon, noon.Add(time.Hour))
		done, err := b.Command(t.Context(), word, "FIRST", tidemark.Origin{Owner: true})
		if err != nil || done.Text != "" || done.Run != "r" || len(b.did) > 0 {
			t.Fatalf("%s: %+v, %v, did %q", word, done, err, b.did)
		}
		if err := b.DB.Tx(t.Context(), done.Stmts); err != nil {
			t.Fatal(err)
		}
		if err := b.DB.Tx(t.Context(), done.Stmts); !errors.Is(err, tidemark.ErrConflict) {
			t.Errorf("%s, where it is decided by now: %v", word, err)
		}
		if got := b.said(`SELECT state FROM approvals WHERE key = ? LIMIT 9`, string(mine)); got != want || !slices.Equal(b.Commands(), []string{"approve", "deny"}) {
			t.Errorf("%s: %s", word, got)
		}
	}
}

// TestCommandElsewhere: a code of another conversation is decided there, by the owner in a conversation of theirs.
func TestCommandElsewhere(t *testing.T) {
	owner := tidemark.Origin{Owner: true}
	q := tidemark.Question{Code: "OTHER", Tool: "send", Session: "agent:main:fake:dm:eve"}
	for _, tc := range []struct {
		name  string
		key   tidemark.Key
		by    tidemark.Origin
		agent any
		want  string
	}{
		{"the owner in theirs", mine, owner, &answerer{answer: q}, "Allowed: the tool send (OTHER) in agent:main:fake:dm:eve."},
		{"another in theirs", mine, tidemark.Origin{}, &answerer{answer: q}, `no call of agent:main:main waits under the code "OTHER"`},
		{"the owner in a guest's", "agent:main:fake:dm:ann", owner, &answerer{answer: q}, `no call of agent:main:fake:dm:ann waits under the code "OTHER"`},
		{"of an agent that knows of none", mine, owner, nil, `no call waits under the code "OTHER"`},
		{"of one who cannot", mine, owner, &answerer{err: fmt.Errorf("it was decided: %w", tidemark.ErrConflict)}, "it was decided"},
	} {
		if done, err := newBench(t, tc.key, Config{}, tc.agent).Command(t.Context(), "approve", "OTHER", tc.by); err != nil || done.Text != tc.want {
			t.Errorf("%s: %q, %v, want %q", tc.name, done.Text, err, tc.want)
		}
	}
	if _, err := newBench(t, mine, Config{}, &answerer{err: errDown}).Command(t.Context(), "approve", "OTHER", owner); !errors.Is(err, errDown) {
		t.Errorf("of one who is away: %v", err)
	}
}

// TestReadsAnswers: what is said is an answer where it is a person's, to a question that is there or, for the owner, elsewhere.
func TestReadsAnswers(t *testing.T) {
	person, owner := tidemark.Origin{From: tidemark.FromPerson}, tidemark.Origin{From: tidemark.FromPerson, Owner: true}
	knows := func(err error) *answerer { return &answerer{asked: map[string]bool{"EVEAB": true}, err: err} }
	for _, tc := range []struct {
		name  string
		key   tidemark.Key
		text  string
		by    tidemark.Origin
		agent any
		want  string
		err   error
	}{
		{"yes", mine, "Yes frsta.", person, nil, "approve FRSTA", nil},
		{"no", mine, "no FRSTA", tidemark.Origin{}, nil, "deny FRSTA", nil},
		{"more than that", mine, "yes FRSTA please", person, nil, "", nil},
		{"of a tool", mine, "yes FRSTA", tidemark.Origin{From: tidemark.FromAgent}, nil, "", nil},
		{"of a model", mine, "yes FRSTA", tidemark.Origin{From: tidemark.FromPerson, Channel: "mcp", Owner: true}, nil, "", nil},
		{"of nothing asked", mine, "yes ZZZZZ", owner, nil, "", nil},
		{"of nothing asked anywhere", mine, "yes ZZZZZ", owner, knows(nil), "", nil},
		{"elsewhere", mine, "yes EVEAB", owner, knows(nil), "approve EVEAB", nil},
		{"elsewhere, by another", mine, "yes EVEAB", person, knows(nil), "", nil},
		{"elsewhere, in a guest's", "agent:main:fake:dm:ann", "yes EVEAB", owner, knows(nil), "", nil},
		{"here, whatever is elsewhere", mine, "no FRSTA", owner, knows(errDown), "deny FRSTA", nil},
		{"elsewhere, and nobody can tell", mine, "yes EVEAB", owner, knows(errDown), "", errDown},
	} {
		b := newBench(t, tc.key, Config{}, tc.agent)
		b.others()
		b.asks("FRSTA", "r", 1, 0, askWaiting, noon, noon.Add(time.Hour))
		if got, err := b.Reads(t.Context(), tc.text, tc.by); got != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("%s: %q, %v, want %q", tc.name, got, err, tc.want)
		}
	}
	b := newBench(t, mine, Config{}, knows(nil))
	b.others()
	b.store.down = true
	if got, err := b.Reads(t.Context(), "yes EVEAB", owner); got != "" || !errors.Is(err, errDown) || !strings.Contains(err.Error(), "find the question EVEAB") {
		t.Errorf("a store that is down: %q, %v", got, err)
	}
}

// TestRelays: what another conversation asks is said here, once for its code, without what only its agent has to know.
func TestRelays(t *testing.T) {
	b := newBench(t, mine, Config{}, nil)
	q := tidemark.Question{Code: "OTHER", Session: "agent:main:fake:dm:eve", Tool: "send", Input: `{}`, Asked: noon, Expires: noon.Add(time.Hour), Elsewhere: true, Where: mine, To: &tidemark.Address{Peer: "ann"}}
	if err := b.Relay(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	const text = `In agent:main:fake:dm:eve: May the tool send run with {}?\nAnswer: yes OTHER, or no OTHER.\nUntil 13:00 UTC nothing else happens here.`
	if want := "say question/OTHER/agent:main:fake:dm:eve ann " + strings.ReplaceAll(text, `\n`, "\n") + ` {"type":"approval","text":"` + text + `","data":[{"code":"OTHER","session":"agent:main:fake:dm:eve","tool":"send","input":"{}","asked":"2026-03-10T12:00:00Z","expires":"2026-03-10T13:00:00Z"}]}`; len(b.did) != 1 || b.did[0] != want {
		t.Errorf("said %q, want %q", b.did, want)
	}
	b.store.down = true
	if err := b.Relay(t.Context(), q); !errors.Is(err, errDown) || !strings.Contains(err.Error(), "relay question OTHER") {
		t.Errorf("%v", err)
	}
}
