package session_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

// deepZebra is a long result of a chore with one word far behind its beginning.
func deepZebra(c tidemark.Block) tidemark.Block {
	text := lines(90<<10, func(i int) string { return fmt.Sprintf("row %d of the dump %d", i, i*i) })
	return tidemark.ToolResult(c.ID, text+"here sits one okapi alone\n"+lines(20<<10, func(i int) string { return fmt.Sprintf("more %d", i) }), false)
}

// okapi counts what a recall finds of the deep word.
func (h *harness) okapi(all bool) (n int) {
	h.t.Helper()
	got, err := h.Recall(h.t.Context(), session.Wanted{Query: "okapi", All: all})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, r := range got.Results {
		if strings.Contains(r.Text, "one okapi alone") {
			n++
		}
	}
	return n
}

// chored is a conversation with a turn that is skipped, whose result is long.
func chored(t *testing.T) *harness {
	t.Helper()
	h := newAlone(t, overBudget)
	h.model.set(chores)
	h.agent.call = deepZebra
	h.say("what is a tide?")
	h.say("what is an ebb?")
	h.say("ok, go on")
	return h
}

// TestSkippedDeep: what stands deep in a turn that is skipped is found by who asks for all, and by nobody else.
func TestSkippedDeep(t *testing.T) {
	h := chored(t)
	if n, all := h.okapi(false), h.okapi(true); n != 0 || all != 1 {
		t.Errorf("found %d times, %d times in all", n, all)
	}
	found, err := h.Search(t.Context(), "okapi", 10)
	if err != nil || len(found) != 0 {
		t.Errorf("a search finds %+v, %v", found, err)
	}
}

// older makes the database one that an older version wrote: its index has other words.
func (h *harness) older() {
	h.t.Helper()
	h.exec(`UPDATE schema_versions SET version = version - 1 WHERE space = 'session_pieces'`)
	h.exec(`UPDATE schema_versions SET version = version - 7 WHERE space = 'session'`) // what came behind the index is made again, too
	h.exec(`ALTER TABLE runs DROP COLUMN spent`)
	h.exec(`ALTER TABLE calls DROP COLUMN spent`)
	h.exec(`DROP TABLE words_seen`)
	h.exec(`ALTER TABLE heads DROP COLUMN people`)
	h.exec(`ALTER TABLE heads DROP COLUMN windows`)
	h.exec(`ALTER TABLE heads DROP COLUMN mark`)
	h.exec(`ALTER TABLE plans DROP COLUMN why`)
	for _, table := range []string{"words", "piece_words"} {
		rows, err := h.db.Query(h.t.Context(), `SELECT id FROM `+table+`_docsize LIMIT 1000`)
		if err != nil || len(rows) == 0 {
			h.t.Fatal(rows, err)
		}
		h.exec(`DROP TABLE ` + table)
		h.exec(`CREATE VIRTUAL TABLE ` + table + ` USING fts5(home, terms, content='', tokenize="unicode61 remove_diacritics 0 tokenchars '_-./@'")`)
		for _, r := range rows {
			h.exec(`INSERT INTO `+table+`(rowid, home, terms) VALUES(?, ?, 'gnu')`, r.Int(0), "h"+string(tidemark.HashOf([]byte(h.key)))[:16])
		}
	}
	h.reopen()
}

// TestIndexAnew: an index whose words an older version made is made anew, with what was skipped where it was.
func TestIndexAnew(t *testing.T) {
	h := chored(t)
	h.okapi(true)
	ordinary, skipped, _ := h.homes()
	h.older()
	got, err := h.Recall(t.Context(), session.Wanted{Query: "an ebb"})
	if err != nil || !slices.ContainsFunc(got.Results, func(r session.Recollection) bool { return r.Coverage == 1 && r.Text == "what is an ebb?" }) {
		t.Errorf("%+v, %v", got.Results, err)
	}
	again, skippedAgain, none := h.homes()
	if !slices.Equal(again, ordinary) || !slices.Equal(skippedAgain, skipped) || len(skipped) != 4 || len(none) > 0 {
		t.Errorf("%v skipped %v, before %v and %v; nowhere %v", again, skippedAgain, ordinary, skipped, none)
	}
	if n, all := h.okapi(false), h.okapi(true); n != 0 || all != 1 {
		t.Errorf("deep words are found %d times, %d times in all", n, all)
	}
	if got, err := h.Recall(t.Context(), session.Wanted{Query: "gnu", All: true}); err != nil || len(got.Results) != 0 {
		t.Errorf("by the old words: %+v, %v", got.Results, err)
	}
}

// TestIndexAnewInATurn: an index that is made anew by a recall of a turn leaves that turn to its end.
func TestIndexAnewInATurn(t *testing.T) {
	h := chored(t)
	h.okapi(true)
	h.older()
	h.agent.call = func(c tidemark.Block) tidemark.Block {
		if _, err := h.Recall(t.Context(), session.Wanted{Query: "an ebb"}); err != nil {
			t.Error(err)
		}
		return tidemark.ToolResult(c.ID, strings.Repeat("zebra output of a chore\n", 300), false)
	}
	h.say("ok, go on")
	if _, skipped, none := h.homes(); len(skipped) != 8 || len(none) > 0 {
		t.Errorf("skipped %v, nowhere %v", skipped, none)
	}
}
