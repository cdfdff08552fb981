package session

import (
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/room"
)

// TestCompactedLine: what people read of a compaction, word for word.
func TestCompactedLine(t *testing.T) {
	summary, pointer, paging, episodes := []string{"summary"}, []string{"pointer"}, []string{"paging"}, []string{"episodes"}
	both := []string{"paging", "summary"}
	left := room.EpisodesLeft{Whole: 2, Part: 1, Budget: 80_000}
	over := left
	over.Short = 1
	cut := []compaction.Gap{{Of: 1000, Head: 100, Tail: 200, Media: 1}, {Of: 2000, Head: 500, Tail: 500, Media: 2}}
	const size, alone = ": context 9000 → 4000 tokens (limit 6000)", "What came last is larger than the model's window: "
	for _, row := range []struct {
		name string
		c    Compacted
		want string
	}{
		{"messages", Compacted{By: summary, Messages: 3}, "Compacted 3 messages" + size + ", 0s"},
		{"nothing that is counted", Compacted{By: summary}, "Compacted 0 messages" + size + ", 0s"},
		{"a time", Compacted{By: summary, Messages: 3, Millis: 1500}, "Compacted 3 messages" + size + ", 1.5s"},
		{"a result", Compacted{By: paging, Paged: 1, PagedBytes: 12_345}, "Paged out 1 result (12,345 bytes), which stay whole in the log" + size + ", 0s"},
		{"messages and results", Compacted{By: both, Messages: 3, Paged: 2, PagedBytes: 999}, "Compacted 3 messages, paged out 2 results (999 bytes)" + size + ", 0s"},
		{"blocks", Compacted{By: pointer, Shortened: 2}, "Shortened 2 oversized block(s), which stay whole in the log" + size + ", 0s"},
		{"a block and a result", Compacted{By: both, Shortened: 1, Paged: 1, PagedBytes: 1000}, "Shortened 1 oversized block(s), which stay whole in the log, paged out 1 result (1,000 bytes)" + size + ", 0s"},
		{"messages and blocks", Compacted{By: pointer, Messages: 3, Shortened: 2}, "Compacted 3 messages and shortened 2 oversized block(s)" + size + ", 0s"},
		{"all three", Compacted{By: both, Messages: 2, Shortened: 2, Paged: 2, PagedBytes: 10}, "Compacted 2 messages and shortened 2 oversized block(s), paged out 2 results (10 bytes)" + size + ", 0s"},
		{"episodes", Compacted{By: episodes, Episodes: &left}, "Episodes: 2 left whole, 1 in part, 5000 tokens less; 4000 of a budget of 80000"},
		{"episodes over their budget", Compacted{By: episodes, Episodes: &over}, "Episodes: 2 left whole, 1 in part, 5000 tokens less; 4000 of a budget of 80000, and no more can leave"},
		{"episodes with others", Compacted{By: []string{"episodes", "summary"}, Messages: 3, Episodes: &left}, "Compacted 3 messages. Episodes: 2 left whole, 1 in part" + size + ", 0s"},
		{"a cut alone", Compacted{By: summary, Cut: cut[:1]}, alone + "its oldest pictures and files (1) are left out, and 700 of its 1,000 bytes are left out of the middle. All of it stays in the log."},
		{"cuts with others", Compacted{By: both, Messages: 3, Cut: cut}, alone + "its oldest pictures and files (3) are left out, and 1,700 of its 3,000 bytes are left out of the middle. All of it stays in the log. Compacted 3 messages" + size + ", 0s"},
		{"pictures", Compacted{By: summary, Cut: []compaction.Gap{{Media: 2}}}, alone + "its oldest pictures and files (2) are left out. All of it stays in the log."},
		{"a text", Compacted{By: summary, Cut: []compaction.Gap{{Of: 104_000, Head: 2000, Tail: 2000}}}, alone + "100,000 of its 104,000 bytes are left out of the middle. All of it stays in the log."},
		{"a whole summary", Compacted{By: summary, Messages: 3, Tier: tierFull, Why: "why"}, "Compacted 3 messages" + size + ", 0s"},
		{"a partial summary", Compacted{By: summary, Messages: 3, Tier: tierPartial, Why: "too large"}, "Compacted 3 messages" + size + ", partial summary (too large), 0s"},
		{"an extract", Compacted{By: summary, Messages: 3, Tier: tierPlaintext, Why: "down"}, "Compacted 3 messages" + size + ", an extract in place of a summary (down), 0s"},
		{"what was put off", Compacted{By: summary, Messages: 3, PutOff: 2}, "Compacted 3 messages" + size + ", made up for what was put off (failed tries: 2), 0s"},
		{"what was put off once", Compacted{By: summary, Messages: 3, PutOff: 1}, "Compacted 3 messages" + size + ", made up for what was put off (failed tries: 1), 0s"},
		{"a message and a result", Compacted{By: both, Messages: 1, Paged: 1, PagedBytes: 7}, "Compacted 1 messages, paged out 1 result (7 bytes)" + size + ", 0s"},
		{"a message and a block", Compacted{By: pointer, Messages: 1, Shortened: 1}, "Compacted 1 messages and shortened 1 oversized block(s)" + size + ", 0s"},
		{"a block", Compacted{By: pointer, Shortened: 1}, "Shortened 1 oversized block(s), which stay whole in the log" + size + ", 0s"},
		{"a byte", Compacted{By: summary, Cut: []compaction.Gap{{Of: 1}}}, alone + "1 of its 1 bytes are left out of the middle. All of it stays in the log."},
		{"a memory", Compacted{By: summary, Messages: 3, Memories: 1}, "Compacted 3 messages" + size + ", 1 memory offered, 0s"},
		{"memories", Compacted{By: summary, Messages: 3, Memories: 2}, "Compacted 3 messages" + size + ", 2 memories offered, 0s"},
		{"too little", Compacted{By: pointer, Messages: 3, Short: 1}, "Compacted 3 messages" + size + ", 1 tokens over what was asked remain: the rest is pinned or of the newest turns, 0s"},
		{"pins", Compacted{By: pointer, Messages: 3, Loose: 1}, "Compacted 3 messages" + size + ", 1 pinned message(s) found no room and lost their hold, 0s"},
		{"what was asked for is heeded", Compacted{By: summary, Messages: 3, Tier: tierFull, Instructions: "x"}, "Compacted 3 messages" + size + ", 0s"},
		{"too little for what was asked for", Compacted{By: both, Messages: 3, Instructions: "x"}, "Compacted 3 messages" + size + ", there was too little for a summary, so what you asked to keep had no effect, 0s"},
		{"nobody heeds what was asked for", Compacted{By: []string{"paging", "pointer"}, Messages: 3, Instructions: "x"}, "Compacted 3 messages" + size + ", the strategy paging, pointer writes no summary, so what you asked to keep had no effect, 0s"},
	} {
		row.c.Before, row.c.After, row.c.Limit = 9000, 4000, 6000
		if got := row.c.line(); got != row.want {
			t.Errorf("%s:\n got %s\nwant %s", row.name, got, row.want)
		}
	}
	for n, want := range map[int]string{0: "0", 7: "7", 999: "999", 1000: "1,000", 12_345: "12,345", 999_999: "999,999", 1_000_000: "1,000,000"} {
		if got := grouped(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

// TestCountsOfPaging: what paging put out is counted apart from what was shortened, with the bytes that it stood for, and
// episodes are neither.
func TestCountsOfPaging(t *testing.T) {
	short := tidemark.Edit{From: "a", Block: 1, Blocks: []tidemark.Block{tidemark.Text("short")}}
	paged := func(bytes string) tidemark.Edit {
		return tidemark.Edit{From: "b", Block: 2, Blocks: []tidemark.Block{tidemark.Text("stub")}, Data: []byte(`{"paging":{},"wire":` + bytes + `}`)}
	}
	left := tidemark.Edit{From: "c", To: "d", Data: []byte(`{"episodes":{"lines":[1]}}`)}
	var c Compacted
	if c.counts([]tidemark.Edit{short, paged("100"), left, paged("23")}, -1) || c.Paged != 2 || c.PagedBytes != 123 || c.Shortened != 1 || len(c.Cut) != 0 {
		t.Errorf("%+v", c)
	}
	facts := []tidemark.Extraction{{Facts: make([]tidemark.Fact, 2)}, {}, {Facts: make([]tidemark.Fact, 3)}}
	if n := countFacts(facts); n != 5 {
		t.Errorf("%d facts of five", n)
	}
}

// TestHeadOfACompaction: a compaction counts, ends the rest of the summariser and has the prompt made anew; what leaves early
// does nothing of it. The row of another conversation stays.
func TestHeadOfACompaction(t *testing.T) {
	r := newRig(t, Settings{})
	r.opened("agent:main:aunt", Settings{})
	r.exec(`UPDATE heads SET compactions = 3, prompt = 'p', cooldown = 5, failures = 2, context = 9 WHERE key = ?`, "agent:main:main")
	const rows = `SELECT compactions, prompt, cooldown, failures, context FROM heads ORDER BY key LIMIT 9`
	r.runs(r.headStmt(77, true))
	r.reads("0  0 0 0; 3 p 5 2 77", rows)
	r.runs(r.headStmt(78, false))
	r.reads("0  0 0 0; 4  0 0 78", rows)
}
