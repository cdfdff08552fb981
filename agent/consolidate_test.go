package agent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/memory"
)

// TestOwnersSittings: what others say, however much and however new, leaves the owner's sittings and archives
// where they are.
func TestOwnersSittings(t *testing.T) {
	const others = 5100
	w := newWorld(t)
	w.configure(func(c *agent.Config) { c.Digest = true })
	sitting := func(key tidemark.Key, i int, at time.Time) memory.Sitting {
		return memory.Sitting{Key: key, Log: "L", First: tidemark.EntryID(fmt.Sprintf("E%06d", i)), Last: "Z", From: at, To: at, Count: 2, Topics: []string{"boathouse"}}
	}
	part := func(key tidemark.Key, i int, at time.Time) archive.Info {
		return archive.Info{Key: fmt.Sprintf("agents/main/sessions/S%06d-part%d.jsonl.gz", i, at.UnixMilli()), SessionKey: key, Messages: 7, At: at,
			First: tidemark.EntryID(tidemark.NewID(time.Date(2025, 2, 11, 20, 36, 0, 0, time.UTC)))}
	}
	own, theirs := scope(t, owners).Key, scope(t, stanger).Key
	sittings, parts := []memory.Sitting{sitting(own, 0, noon.Add(-time.Hour))}, []archive.Info{part(own, 9999, noon.Add(-time.Hour))}
	for i := 1; i <= others; i++ {
		sittings = append(sittings, sitting(theirs, i, noon.Add(time.Duration(i)*time.Second)))
		if i <= 600 {
			parts = append(parts, part(theirs, i, noon.Add(time.Duration(i)*time.Second)))
		}
	}
	if err := w.Sittings(t.Context(), sittings); err != nil {
		t.Fatal(err)
	}
	if err := w.Report(t.Context(), tidemark.SessionInfo{Key: own, UpdatedAt: noon}, parts); err != nil {
		t.Fatal(err)
	}
	d, err := w.Digest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(d.Text, "boathouse (2 messages") || !strings.Contains(d.Text, "2025-02-11 21:36 "+string(own)+": 7 messages left the context") || d.Shown != 2 {
		t.Errorf("%d entries shown of the owner's\n%s", d.Shown, d.Text)
	}
	rows, err := w.db.Query(t.Context(), `SELECT count(*) FROM agent_episodes WHERE agent = 'main' LIMIT 1`)
	if err != nil || rows[0].Int(0) > 5002 {
		t.Errorf("%v sittings are kept, %v", rows, err)
	}
}

// TestNightsAtOnce: what another night writes while this one does is no person's edit.
func TestNightsAtOnce(t *testing.T) {
	w := newWorld(t)
	w.configure(func(c *agent.Config) { c.Digest = true })
	w.remember(scope(t, owners), "x1", "The owner keeps boat number 1")
	w.consolidate()
	for _, fact := range []string{"", "The owner keeps boat number 3"} { // the other night writes the same, or more
		inner := 0
		w.remember(scope(t, owners), "x2"+fact, "The owner keeps boat number 2"+fact)
		w.blobs.Fail = func(op, key string) error {
			if op == "put" && strings.HasSuffix(key, memory.DigestFile) && inner == 0 {
				inner++
				if fact != "" {
					w.remember(scope(t, owners), "x3", fact)
				}
				if c := w.consolidate(); len(c.Suggested) > 0 || len(c.Written) != 1 {
					t.Errorf("within: %+v", c)
				}
			}
			return nil
		}
		c := w.consolidate()
		w.blobs.Fail = nil
		night, err := w.LastNight(t.Context())
		if inner != 1 || len(c.Suggested) > 0 || err != nil || len(night.Edited) > 0 {
			t.Errorf("%d nights within, %+v, edited %q, %v", inner, c, night.Edited, err)
		}
		if c := w.consolidate(); len(c.Suggested) > 0 {
			t.Errorf("the night after: %+v", c)
		}
	}
	mine := "# mine\n"
	w.blobs.Fail = func(op, key string) error { // a person saves theirs at that moment
		if op == "put" && strings.HasSuffix(key, memory.DigestFile) {
			w.blobs.Fail = nil
			write(t, w.blobs, memory.DigestFile, mine)
		}
		return nil
	}
	w.remember(scope(t, owners), "x4", "The owner keeps boat number 4")
	if c := w.consolidate(); len(c.Suggested) != 1 || w.stored(memory.DigestFile) != mine {
		t.Errorf("%+v, digest %q", c, w.stored(memory.DigestFile))
	}
}

// TestManySuperseded: however many facts of a day count no more, none of them counts.
func TestManySuperseded(t *testing.T) {
	w := newWorld(t)
	w.configure(func(c *agent.Config) { c.Reconcile, c.Model = true, lastWord() })
	w.remember(scope(t, owners), "x", "The buoy has number 5")
	w.consolidate() // makes the tables
	if err := w.db.Tx(t.Context(), []tidemark.Stmt{
		{SQL: `WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 5100)
			INSERT INTO agent_facts(agent, extraction, n, text, fold, sources, path) SELECT agent, extraction, i + 1, 'An older fact ' || i, 'an older fact ' || i, '[]', path FROM agent_facts, c WHERE agent = 'main'`},
		{SQL: `INSERT INTO agent_ledger(agent, target, action, cause, reason, sources, who, at) SELECT agent, seq, 'UPDATE', seq, 'moved', '[]', 'rules', 1 FROM agent_facts WHERE agent = 'main'`},
	}); err != nil {
		t.Fatal(err)
	}
	prompt, err := w.Prompt(t.Context(), scope(t, owners), noon)
	if err != nil || strings.Contains(prompt, "buoy") || strings.Contains(w.search(owners, "buoy number"), "buoy has") {
		t.Errorf("what counts no more is told, %v:\n%s", err, prompt)
	}
}
