// Package agenttest gives tests a second agent in the same database, whose rows must not change. It holds no
// assertions about agents; those are in package agent. Begin with [Beside].
package agenttest

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/schedule"
	"github.com/tidemark-ai/tidemark/skill"
	"github.com/tidemark-ai/tidemark/snapshot"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// Other is the name of the agent that is always there. It sorts before main, and was busy long before any test.
const Other = "aunt"

// Beside puts the other agent into an empty database, and compares its rows when the test ends.
func Beside(t testing.TB, db tidemark.DB) {
	t.Helper()
	other.Beside(t, db)
}

var other = hosttest.Neighbour{Play: Play, Names: Names}

// Names are texts that stand in its rows alone.
var Names = []string{"agent:" + Other + ":", "'" + Other + "'"}

// longAgo is when it was busy; what it learned is of a day on which tests learn something, so that files have one name.
var (
	longAgo = time.Date(1999, 5, 1, 12, 0, 0, 0, time.UTC)
	today   = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
)

// then is a runtime at that time.
type then struct{ tidemark.Runtime }

func (then) Now() time.Time { return longAgo }

// busy has the names and numbers that tests use: extractions, words, sessions, codes, ids of nodes, files, skills.
type busy struct {
	t testing.TB
	*agent.Agent
	main, guest tidemark.Scope
}

// silent is a model that decides nothing.
type silent struct{}

func (silent) Stream(context.Context, tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	return func(yield func(tidemark.Delta, error) bool) {
		yield(tidemark.Delta{Reply: &tidemark.Reply{Message: tidemark.NewText(tidemark.Assistant, "<decisions></decisions>"), Call: tidemark.Call{Stop: "end_turn"}}}, nil)
	}
}

// Play makes the rows of the other agent.
func Play(t testing.TB, db tidemark.DB) {
	blobs := tidemarktest.NewBlobs()
	a, err := agent.New(agent.Config{Name: Other, DB: db, Blobs: blobs, Runtime: then{hosttest.Runtime(t)}, Reconcile: true, Model: silent{}, Digest: true})
	if err != nil {
		t.Fatal(err)
	}
	scope := func(key string) tidemark.Scope {
		k, err := tidemark.ParseKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return k.Scope()
	}
	b := busy{t, a, scope("agent:" + Other + ":main"), scope("agent:" + Other + ":whatsapp:dm:+491")}
	b.facts()
	b.files()
	b.tells()
	_, err = b.Wake(context.Background())
	b.must(err)
	b.schedules()
	// What waits to be written when the bucket is down.
	blobs.Fail = func(string, string) error { return tidemark.ErrUnavailable }
	b.remember(b.guest, "a2", "Likes cake")
	b.must(db.Tx(context.Background(), []tidemark.Stmt{
		{SQL: `UPDATE agent_sections SET done = ? WHERE id = 'x1'`, Args: []any{today.AddDate(50, 0, 0).UnixMilli()}},
		{SQL: `UPDATE agent_schedules SET n = n - 100, fails = 3, notice = 'it failed', next = CASE n WHEN 1 THEN ? ELSE 0 END, state = CASE n WHEN 1 THEN 'on' WHEN 2 THEN 'paused' ELSE 'done' END`,
			Args: []any{longAgo.UnixMilli()}},
		{SQL: `INSERT INTO agent_schedule_runs(agent, schedule, due, state, again, errand, said) SELECT agent, n, 1000 + n, CASE n WHEN -99 THEN 'begun' WHEN -98 THEN 'running' ELSE 'ok' END, 1, '{}', 'it said' FROM agent_schedules`},
		// Schedules are numbered in the order in which they are made, whosesoever they are: those of a test begin at 1.
		{SQL: `UPDATE sqlite_sequence SET seq = 0 WHERE name = 'agent_schedules'`},
	}))
}

func (b *busy) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *busy) remember(s tidemark.Scope, id string, facts ...string) {
	b.t.Helper()
	x := tidemark.Extraction{ID: id, Session: "01AUNT", Scope: s, At: today}
	for _, f := range facts {
		x.Facts = append(x.Facts, tidemark.Fact{Text: f, Sources: []tidemark.EntryID{"01A", "01Z"}})
	}
	b.must(b.Remember(context.Background(), x))
}

func (b *busy) facts() {
	ctx := context.Background()
	b.remember(b.main, "x1", "The staging port is 8080", "The user prefers pnpm.")
	b.remember(b.guest, "a1", "Likes tea")
	near, err := b.News(ctx, b.main, memory.Since{Near: "The staging port"})
	b.must(err)
	b.must(b.Remember(ctx, tidemark.Extraction{ID: "x2", Session: "01AUNT", Scope: b.main, At: today, Facts: []tidemark.Fact{
		{Text: "The staging port is 9090", Action: string(memory.Update), Target: near.Near[0].ID}, {Text: "first fact"}}}))
	_, err = b.Consolidate(ctx)
	b.must(err)
	b.must(b.Sittings(ctx, []memory.Sitting{{Key: b.main.Key, Log: "L", First: "E000001", Last: "Z", From: longAgo, To: longAgo, Count: 2, Topics: []string{"boathouse"}}}))
}

func (b *busy) files() {
	ctx := context.Background()
	var f agent.File
	for _, text := range []string{"# one\n", "# two\n", "# three\n"} {
		var err error
		f, err = b.PutFile(ctx, memory.LongTerm, []byte(text), f.ETag)
		b.must(err)
	}
	_, err := b.PutSkill(ctx, "weather", skill.Main, []byte("---\nname: weather\ndescription: Of rain.\n---\n\nDo so.\n"), "")
	b.must(err)
	_, _, err = b.Skills(ctx)
	b.must(err)
}

// tells has its conversations tell it what they do.
func (b *busy) tells() {
	ctx := context.Background()
	var words recall.DigestBuilder
	words.Add((&recall.Stemmer{}).Terms("shared walnut"), longAgo)
	digest := words.Build().Encode()
	for _, key := range []tidemark.Key{b.main.Key, b.guest.Key} {
		b.must(b.Report(ctx, tidemark.SessionInfo{Key: key, UpdatedAt: longAgo}, []archive.Info{
			{Key: archive.PartKey(Other, "01S"+string(key[len(key)-1:]), longAgo), SessionKey: key, Session: "01S", Agent: Other, Part: 1, Messages: 4, At: longAgo, Bytes: 100}}))
		_, err := b.Digests(ctx, recall.DigestReport{Key: key, Head: 25, At: longAgo, Parts: []recall.DigestPart{
			{First: 1, Last: 10, Closed: true, Digest: digest}, {First: 11, Last: 20, Closed: true, Digest: digest}, {First: 21, Last: 25, Digest: digest}}})
		b.must(err)
		for _, id := range []string{"snap-00", "snap-1", "snap-2"} {
			b.must(b.Snapshots(ctx, []snapshot.Node{{ID: id, Kind: snapshot.KindSnapshot, Of: snapshot.OfSession, Name: "n", Session: string(key), Created: longAgo, Messages: 1}}))
		}
		b.must(b.Question(ctx, tidemark.Question{Code: "ABCD", Session: key, Tool: "bash", Input: "{}", Asked: longAgo, Expires: longAgo.Add(time.Hour)}))
	}
}

func (b *busy) schedules() {
	for _, name := range []string{"one", "two", "three"} {
		_, err := b.AddSchedule(context.Background(), agent.Schedule{Name: name, Prompt: "Look around.", Spec: schedule.Spec{Cron: "0 15 * * *", Zone: "UTC"}})
		b.must(err)
	}
}
