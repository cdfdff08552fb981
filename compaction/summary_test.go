package compaction_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
)

func viewOf(t *testing.T, ms ...tidemark.Message) (*world, compaction.View) {
	t.Helper()
	w := &world{}
	for _, m := range ms {
		w.add(m)
	}
	v, _ := w.view(t)
	return w, v
}

func call(id string) tidemark.Message {
	return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse(id, "read", nil)}}
}

func result(id string, words int) tidemark.Message {
	return tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult(id, strings.Repeat("word ", words), false)}}
}

var summary = []compaction.Strategy{compaction.Summary{}}

// TestReportedMoreThanEstimated: Chinese counts about three times what the estimate says. What is
// kept is measured as the provider counts, or nothing would be found to compact.
func TestReportedMoreThanEstimated(t *testing.T) {
	b := compaction.Budget{Window: 64_000, Reserve: 20_000, Keep: 20_000}.Fit()
	var ms []tidemark.Message
	for range 60 {
		ms = append(ms, tidemark.NewText(tidemark.User, strings.Repeat("字", 500)), tidemark.NewText(tidemark.Assistant, strings.Repeat("文", 500)))
	}
	_, v := viewOf(t, ms...)
	v.Size = 66_000
	act, err := compaction.Plan(summary, v, b, true)
	if err != nil {
		t.Fatal(err)
	}
	next, err := compaction.Preview(v, act.Edits, b)
	if err != nil || next.Size > b.Limit() {
		t.Errorf("after it %d tokens of %d, %v", next.Size, b.Limit(), err)
	}
}

// TestShortenedAndKept: a long paste of the newest turn is shortened and is the hole of the span.
func TestShortenedAndKept(t *testing.T) {
	b := compaction.Budget{Window: 32_000, Reserve: 10_000, Keep: 8_000}
	var ms []tidemark.Message
	for range 4 {
		ms = append(ms, tidemark.NewText(tidemark.User, strings.Repeat("old words ", 300)), tidemark.NewText(tidemark.Assistant, "a"))
	}
	ms = append(ms, tidemark.NewText(tidemark.User, strings.Repeat("a line of the log\n", 900)))
	for i := range 14 {
		id := fmt.Sprint("c", i)
		ms = append(ms, call(id), result(id, 900))
	}
	w, v := viewOf(t, ms...)
	act, err := compaction.Plan(summary, v, b, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.act(t, nil, act.Edits); err != nil {
		t.Fatalf("the plan's own row is refused: %v", err)
	}
	after, _ := w.view(t)
	hold(t, 0, w, after)
}

// TestUnseenResultsStay: results that the model has not read yet are never summarised, and cut only to what fits the window.
func TestUnseenResultsStay(t *testing.T) {
	b := compaction.Budget{Window: 32_000, Reserve: 20_000, Keep: 20_000}.Fit()
	well := strings.Repeat("well well ", 1300)
	calls, results := tidemark.Message{Role: tidemark.Assistant}, tidemark.Message{Role: tidemark.User}
	for i := range 12 {
		id := fmt.Sprint("c", i)
		calls.Content = append(calls.Content, tidemark.ToolUse(id, "read", nil))
		results.Content = append(results.Content, tidemark.ToolResult(id, strings.Repeat("word ", 2500), false))
	}
	_, v := viewOf(t, tidemark.NewText(tidemark.User, strings.Repeat("hello there ", 400)), tidemark.NewText(tidemark.Assistant, well),
		tidemark.NewText(tidemark.User, "go on"), tidemark.NewText(tidemark.Assistant, well), tidemark.NewText(tidemark.User, "compare the files"), calls, results)
	act, err := compaction.Plan(summary, v, b, false)
	if err != nil {
		t.Fatal(err)
	}
	next, err := compaction.Preview(v, act.Edits, b)
	if err != nil {
		t.Fatal(err)
	}
	last := next.Items[len(next.Items)-1].Message
	if len(last.Results()) != 12 || next.Size > b.Room() || next.Size < b.Room()*8/10 {
		t.Errorf("%d results are left, %d tokens of %d", len(last.Results()), next.Size, b.Room())
	}
}
