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
	"github.com/tidemark-ai/tidemark/host"
)

// clientKey is a conversation of a client that keeps its history itself.
const clientKey = tidemark.Key("agent:main:proxy:dm:client")

// TestGuestBranches: a branch of a client's conversation is made once, behind a position of its base; the root is the
// conversation itself, and one that another made at the same moment is theirs.
func TestGuestBranches(t *testing.T) {
	r := newRig(t, Settings{})
	s := r.opened(clientKey, Settings{})
	g := s.Guest()
	h, err := s.head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	branch := func(name, base string, seq int64) string {
		t.Helper()
		log, err := g.Branch(t.Context(), name, base, seq)
		if err != nil {
			t.Fatal(err)
		}
		return log
	}
	if got := branch("", "", 0); got != h.Log {
		t.Errorf("the root stands in %s, want %s", got, h.Log)
	}
	side := branch("t2", h.Log, 7)
	if again := branch("t2", "another", 9); again != side {
		t.Errorf("made twice: %s and %s", side, again)
	}
	want := host.Info{ID: side, Key: clientKey + "#t2", BaseLog: h.Log, BaseSeq: 7, Created: r.clock.Now()}
	if i, err := g.Log().Info(t.Context(), side); err != nil || i.Key != want.Key || i.BaseLog != want.BaseLog || i.BaseSeq != 7 || !i.Created.Equal(want.Created) {
		t.Errorf("%+v, %v, want %+v", i, err, want)
	}
	r.reads(fmt.Sprint(side, " ", rigNoon, " ", rigNoon), `SELECT log, created, active FROM heads WHERE key = ? LIMIT 1`, string(clientKey)+"#t2")
	r.reads(side, `SELECT value FROM refs WHERE name = ? LIMIT 1`, "head:"+string(clientKey)+"#t2")

	r.faulty.before(func() { // another makes it a moment before
		r.exec(`INSERT INTO refs(name, value) VALUES(?, 'theirs')`, "head:"+string(clientKey)+"#t3")
		r.exec(`INSERT INTO heads(key, log, created, active) VALUES(?, 'theirs', 0, 0)`, string(clientKey)+"#t3")
	})
	if got := branch("t3", "", 0); got != "theirs" {
		t.Errorf("that of another is %s", got)
	}
	r.exec(`INSERT INTO refs(name, value) VALUES(?, 'torn')`, "head:"+string(clientKey)+"#t4")
	if _, err := g.Branch(t.Context(), "t4", "", 0); !errors.Is(err, tidemark.ErrConflict) || !strings.Contains(err.Error(), "make branch "+string(clientKey)+"#t4") {
		t.Errorf("one that is torn: %v", err)
	}
	for refused, want := range map[string]string{"INSERT INTO heads": "make branch", "SELECT log FROM heads": "read session"} {
		r.faulty.refuses(refused)
		if _, err := g.Branch(t.Context(), "t5", "", 0); !errors.Is(err, errFaulty) || !strings.Contains(err.Error(), want) {
			t.Errorf("without %q: %v", refused, err)
		}
	}
}

// TestGuestMessages: messages of any branch come as they were stored, each once, however many are asked for; what is no
// message, or of another conversation, is left out.
func TestGuestMessages(t *testing.T) {
	r := newRig(t, Settings{})
	s := r.opened(clientKey, Settings{})
	g := s.Guest()
	log, err := g.Branch(t.Context(), "t2", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	large := strings.Repeat("a large text ", 30_000)
	var ids []tidemark.EntryID
	want := map[tidemark.EntryID]string{}
	for i := range 2*guestPage - 1 { // and the one of another conversation, and an event
		m := tidemark.NewText(tidemark.User, fmt.Sprint("message ", i))
		if i == guestPage {
			m = tidemark.NewText(tidemark.User, large)
		}
		e := tidemark.Entry{ID: tidemark.EntryID(fmt.Sprintf("e%03d", i)), Kind: tidemark.KindMessage, At: r.clock.Now()}
		stmts, err := g.Append(t.Context(), log, &e, m, "link")
		if err != nil || e.Tokens != tidemark.Estimate(m) || e.Chain != tidemark.Chain("link", m) || len(e.Payload) == 0 {
			t.Fatalf("%+v, %v", e, err)
		}
		r.runs(stmts...)
		ids, want[e.ID] = append(ids, e.ID), m.PlainText()
	}
	theirs := r.person("of another conversation").ID
	r.runs(r.eventStmt(log, tidemark.Event{Type: "notice"}))
	event := tidemark.EntryID(r.table(`SELECT id FROM entries WHERE kind = 'event' LIMIT 1`))
	ids = append(append([]tidemark.EntryID{theirs, event, "nothing"}, ids...), ids[3])
	got := map[tidemark.EntryID]string{}
	if err := g.Messages(t.Context(), ids, func(id tidemark.EntryID, m tidemark.Message) { got[id] += m.PlainText() }); err != nil {
		t.Fatal(err)
	}
	for id, text := range want {
		if got[id] != text {
			t.Errorf("%s: %.80q, want %.80q", id, got[id], text)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d messages, want %d", len(got), len(want))
	}
	for _, refused := range []string{"FROM entries WHERE id IN", "json_each", "FROM logs WHERE id"} {
		r.faulty.refuses(refused)
		if err := g.Messages(t.Context(), ids, func(id tidemark.EntryID, _ tidemark.Message) { t.Errorf("%s was read", id) }); !errors.Is(err, errFaulty) {
			t.Errorf("without %q: %v", refused, err)
		}
	}
}

// TestGuestCalls: what a call changes of its branch: when somebody spoke last, its size, its messages, its cost, a title where
// there is none; and that the agent is owed a report, and who follows the conversation hears of it.
func TestGuestCalls(t *testing.T) {
	r := newRig(t, Settings{})
	s := r.opened(clientKey, Settings{})
	agent := &listening{}
	s.Agent = agent
	g := s.Guest()
	if _, err := g.Branch(t.Context(), "t2", "", 0); err != nil {
		t.Fatal(err)
	}
	r.exec(`UPDATE heads SET active = 1, people = 1, title = CASE key WHEN ? THEN '' ELSE 'another' END`, string(clientKey)+"#t2")
	for i, title := range []string{"first", "second"} {
		r.clock.ms.Add(1)
		r.runs(g.Called("t2", title, 2+i, tidemark.Usage{Input: 10, Output: 1}, tidemark.Tokens(100+i))...)
	}
	r.reads(fmt.Sprint("agent:main:main another 1 1 0 0 ; ", clientKey, " another 1 1 0 0 ; ", clientKey, "#t2 first ", rigNoon+2, " ", rigNoon+2, " 5 101 20"),
		`SELECT key, title, active, people, messages, context, json_extract(usage, '$.input_tokens') FROM heads ORDER BY key LIMIT 9`)
	r.reads(fmt.Sprint(clientKey, " outbox ", rigNoon+2), `SELECT key, kind, at FROM due LIMIT 9`)
	sub, err := s.Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	var asked []int64
	s.Alarm = func(_ context.Context, at time.Time) error {
		asked = append(asked, at.UnixMilli())
		return nil
	}
	r.isDue("proxy:dm:client", dueRun, 9, "")
	g.Told(tidemark.Event{Type: "call", Text: "one"})
	if got := heard(sub); got != "event  call: one" {
		t.Errorf("who follows it hears %q", got)
	}
	r.rests() // the agent is told behind it
	r.reads("proxy:dm:client run 9 ", dueRows)
	if !slices.Equal(asked, []int64{9}) {
		t.Errorf("the host is asked to wake it at %d", asked)
	}
	if !slices.Equal(agent.heard, []string{"report of " + string(clientKey)}) {
		t.Errorf("the agent hears %q", agent.heard)
	}
}
