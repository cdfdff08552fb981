package session_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room/replay"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/session"
)

// told imports messages as they were said.
func (h *harness) told(messages ...tidemark.Message) {
	h.t.Helper()
	_, err := h.Import(h.t.Context(), func(yield func(replay.Message, error) bool) {
		for i, m := range messages {
			if !yield(replay.Message{At: time.Date(2026, 3, 1, 8, i, 0, 0, time.UTC), Message: m}, nil) {
				return
			}
		}
	}, nil)
	if err != nil {
		h.t.Fatal(err)
	}
}

func TestRecall(t *testing.T) {
	h := newHarness(t, session.Settings{})
	var log []tidemark.Message
	for i := range 60 {
		log = append(log, tidemark.NewText(tidemark.User, fmt.Sprintf("Turn %d: how is field %c doing?", i, 'a'+rune(i%26))),
			tidemark.NewText(tidemark.Assistant, fmt.Sprintf("Field %c is fine. Its tag is NEEDLE_FACT_%d_secret_value_%d.", 'a'+rune(i%26), i, i*7919%99991)))
	}
	log = append(log, tidemark.NewText(tidemark.User, "The blue gate uses the tag NEEDLE_FACT_17."), tidemark.NewText(tidemark.Assistant, "Noted."))
	h.told(log...)
	for _, row := range []struct {
		query, want string
		verdict     recall.Verdict
	}{
		{"NEEDLE_FACT_7_secret_value_55433", "NEEDLE_FACT_7_secret_value_55433", recall.Confident},
		{"which tag does the blue gate use", "NEEDLE_FACT_17", recall.Confident},
		{"NEEDLE_FACT_99_secret_value_1", "", recall.Nothing},
		{"zebra crossing", "", recall.Nothing},
	} {
		got, err := h.Recall(t.Context(), search.Wanted{Query: row.query, K: 5})
		if err != nil {
			t.Fatal(err)
		}
		texts := ""
		for _, r := range got.Results {
			texts += r.Text + "\n"
		}
		if !strings.Contains(texts, row.want) || got.Verdict != row.verdict && row.want != "" || row.want == "" && got.Verdict == recall.Confident {
			t.Errorf("%q: %s, want %s with %q\n%s", row.query, got.Verdict, row.verdict, row.want, texts)
		}
		t.Logf("%q: %s %d considered, reformulated %q, first %+v", row.query, got.Verdict, got.Considered, got.Reformulated, got.Results[:min(1, len(got.Results))])
	}
}

// TestPointerCompaction: what left under a marker is archived first, found again word for word, and read
// whole; undo brings it back.
func TestPointerCompaction(t *testing.T) {
	h := newHarness(t, small)
	h.stop()
	h.strategies = []compaction.Strategy{compaction.Pointer{Tail: 2}}
	h.open()
	h.say("The spare key lies under the third tile, tag KEY_4711.")
	h.fill(5)
	sent := strings.Join(texts(h.sent()), "\n")
	if strings.Contains(sent, "KEY_4711") || !strings.Contains(sent, compaction.MarkerPrefix) || strings.Contains(sent, compaction.SummaryMarker) {
		t.Fatalf("the view: %.600s", sent)
	}
	if len(h.keys("agents/main/sessions/")) == 0 {
		t.Error("nothing was archived")
	}
	got, err := h.Recall(t.Context(), search.Wanted{Query: "where is KEY_4711"})
	if err != nil || got.Verdict != recall.Confident || len(got.Results) == 0 || !strings.Contains(got.Results[0].Text, "third tile") {
		t.Fatalf("recalled %+v, %v", got, err)
	}
	events := h.events("compaction")
	if len(events) != 5 || strings.Contains(events[0], `"tier"`) || !strings.Contains(events[0], `"pointer"`) {
		t.Errorf("events %q", events)
	}
}

// TestRecallOfBefore: a conversation that was logged before there was an index of its words gets one at the
// first question, once.
func TestRecallOfBefore(t *testing.T) {
	h := newHarness(t, session.Settings{})
	h.told(tidemark.NewText(tidemark.User, "The boat is called Marigold."), tidemark.NewText(tidemark.Assistant, "A fine name."))
	if err := h.db.Tx(t.Context(), []tidemark.Stmt{{SQL: `INSERT INTO words(words) VALUES('delete-all')`}}); err != nil {
		t.Fatal(err)
	}
	h.say("And the dog?")
	h.stop()
	h.open()
	for range 2 {
		got, err := h.Recall(t.Context(), search.Wanted{Query: "Marigold"})
		if err != nil || len(got.Results) == 0 || !strings.Contains(got.Results[0].Text, "Marigold") || got.Considered > 4 {
			t.Fatalf("recalled %+v, %v", got, err)
		}
	}
}

// TestRecallIsNotFound: what was brought back is not found a second time.
func TestRecallIsNotFound(t *testing.T) {
	h := newHarness(t, session.Settings{})
	h.say("The lighthouse keeper is called Oswald.")
	h.model.set(func(n int, _ tidemark.Request) (tidemark.Message, error) {
		if n == 2 {
			return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("c1", "recall", []byte(`{"query":"Oswald"}`))}}, nil
		}
		return tidemark.NewText(tidemark.Assistant, "It is in the log."), nil
	})
	h.say("Who keeps the light?")
	sent := h.model.last().Messages
	if answer := sent[len(sent)-1].Results(); len(answer) != 1 {
		t.Fatalf("recall was not called: %q", texts(sent))
	} else if block := sent[len(sent)-1].Content[0]; block.IsError || !strings.Contains(block.Content[0].Text, "keeper is called Oswald") {
		t.Fatalf("recall said %+v", block)
	}
	got, err := h.Recall(t.Context(), search.Wanted{Query: "Oswald", K: 20})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range got.Results {
		if r.From == tidemark.FromRecall || strings.Contains(r.Text, "entry 0") {
			t.Errorf("found again: %+v", r)
		}
	}
	if !strings.Contains(got.Results[0].Text, "keeper is called Oswald") {
		t.Errorf("first is %+v", got.Results[0])
	}
}

// TestRecallGates: what a caller gates on is always there, and says what was left out.
func TestRecallGates(t *testing.T) {
	h := newHarness(t, session.Settings{})
	var log []tidemark.Message
	for i := range 12 {
		log = append(log, tidemark.NewText(tidemark.User, "Where is the turbine manual?"),
			tidemark.NewText(tidemark.Assistant, "The turbine manual is on shelf nine, beside the blue box. "+strings.Repeat("It is thick. ", 40)))
		if i == 6 {
			log = append(log, tidemark.NewText(tidemark.User, "The turbine manual has page 77 about valves."), tidemark.NewText(tidemark.Assistant, "Good."))
		}
	}
	h.told(log...)
	ask := func(w search.Wanted) search.Recalled {
		t.Helper()
		got, err := h.Recall(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		size := 0
		for _, r := range got.Results {
			size += len(r.Text)/4 + 4
			if r.Neighbours == nil || r.Normalized < 0 || r.Normalized > 1 || r.Coverage < 0 || r.Coverage > 1 {
				t.Errorf("%+v", r)
			}
		}
		if w.Budget > 0 && size > int(w.Budget) {
			t.Errorf("%d tokens of %d", size, w.Budget)
		}
		return got
	}
	reasons := func(r search.Recalled) string {
		out := ""
		for _, f := range r.Filtered {
			out += f.Reason + " "
		}
		return out
	}
	all := ask(search.Wanted{Query: "turbine manual", K: 4})
	if len(all.Results) != 3 || !strings.Contains(reasons(all), "similar") { // each text once
		t.Errorf("%+v", all)
	}
	if every := ask(search.Wanted{Query: "turbine manual", K: 4, All: true}); len(every.Results) != 4 {
		t.Errorf("%+v", every)
	}
	packed := ask(search.Wanted{Query: "turbine manual", K: 4, Budget: 250})
	texts := ""
	for _, r := range packed.Results {
		texts += r.Text
	}
	if !strings.Contains(texts, "page 77") || !strings.Contains(reasons(packed), "similar") {
		t.Errorf("within a budget different ones come first: %q, %q", reasons(packed), texts)
	}
	if small := ask(search.Wanted{Query: "turbine manual shelf", K: 8, Budget: 40}); !strings.Contains(reasons(small), "over budget") {
		t.Errorf("%+v", small)
	}
	early := ask(search.Wanted{Query: "turbine manual", Until: time.Date(2026, 3, 1, 8, 1, 0, 0, time.UTC)})
	if len(early.Results) != 2 || !strings.Contains(reasons(early), "out of range") {
		t.Errorf("%d results, %q", len(early.Results), reasons(early))
	}
	if none := ask(search.Wanted{Query: "xylophone"}); none.Results == nil || none.Filtered == nil || none.Verdict != recall.Nothing {
		t.Errorf("%+v", none)
	}
}

// TestIndexOnce: a conversation whose first message is the first entry of its database is not read again in each
// life.
func TestIndexOnce(t *testing.T) {
	h := newHarness(t, session.Settings{})
	h.told(tidemark.NewText(tidemark.User, "The boat is called Marigold."), tidemark.NewText(tidemark.Assistant, "A fine name."))
	if err := h.db.Tx(t.Context(), []tidemark.Stmt{{SQL: `INSERT INTO words(words) VALUES('delete-all')`},
		{SQL: `INSERT INTO words(rowid, home, terms) SELECT 1, 'h' || substr(?, 1, 16), 'marigold'`, Args: []any{string(tidemark.HashOf([]byte(h.Key)))}}}); err != nil {
		t.Fatal(err)
	}
	h.stop()
	h.open()
	if _, err := h.Recall(t.Context(), search.Wanted{Query: "name"}); err != nil {
		t.Fatal(err)
	}
	rows, err := h.db.Query(t.Context(), `SELECT count(*) FROM words LIMIT 1`)
	if err != nil || rows[0].Int(0) != 1 {
		t.Errorf("%v rows, %v: the log was read again", rows, err)
	}
}
