package compaction_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
)

// TestSummaryOfNothingNew: where only the former summary could leave, none is planned, since the session has nothing to ask
// a model about and would drop the whole act. What nobody has read is cut to what fits.
func TestSummaryOfNothingNew(t *testing.T) {
	w := &world{}
	for i := range 40 {
		w.add(tidemark.NewText(tidemark.User, fmt.Sprintf("question %d %s", i, strings.Repeat("word ", 60))))
		w.add(tidemark.NewText(tidemark.Assistant, fmt.Sprintf("answer %d %s", i, strings.Repeat("word ", 60))))
	}
	w.add(tidemark.NewText(tidemark.User, "look at it"))
	b := compaction.Budget{Window: 8_000, Reserve: 4_000, Keep: 1}
	v, shown := w.view(t)
	act, err := compaction.Plan(summary, v, b, true)
	if err != nil || act.Summarize < 0 {
		t.Fatalf("%+v, %v", act, err)
	}
	act.Edits[act.Summarize].Summarize = false
	act.Edits[act.Summarize].Messages = []tidemark.Message{tidemark.NewText(tidemark.User, compaction.SummaryMarker+strings.Repeat(" a long summary", 400))}
	if err := w.act(t, shown, act.Edits); err != nil {
		t.Fatal(err)
	}
	w.add(call("big"))
	w.add(result("big", 20_000))
	v, _ = w.view(t)
	act, err = compaction.Plan(summary, v, b, true)
	if err != nil {
		t.Fatal(err)
	}
	after, err := compaction.Preview(v, act.Edits, b)
	if err != nil || after.Size > b.Window {
		t.Errorf("%d tokens of %d, %v", after.Size, b.Window, err)
	}
	if i := act.Summarize; i >= 0 && act.Edits[i].From == v.Items[0].From && act.Edits[i].To == v.Items[0].To {
		t.Error("a summary of the former summary alone is planned")
	}
}

// TestPointerBesideAHole: what a marker keeps stands within its span. Where that marker is not taken in, no new one begins
// there.
func TestPointerBesideAHole(t *testing.T) {
	w := &world{}
	for i := range 12 {
		w.turnOf(i, 40)
	}
	v, shown := w.view(t)
	span := func(from, to int, text string, keep ...int) tidemark.Edit {
		e := tidemark.Edit{From: v.Items[from].From, To: v.Items[to].To}
		for _, k := range keep {
			e.Keep = append(e.Keep, v.Items[k].From)
		}
		if text != "" {
			e.Messages = []tidemark.Message{tidemark.NewText(tidemark.User, text)}
			return e
		}
		return compaction.Marker{Count: to - from + 1, Cycles: 1}.Put(e)
	}
	if err := w.act(t, shown, []tidemark.Edit{span(0, 15, "", 8, 9, 10, 11, 12, 13, 14)}); err != nil { // its last item is 15
		t.Fatal(err)
	}
	v, shown = w.view(t)
	at := 0
	for i := range v.Items {
		if !v.Items[i].Span() {
			at = i
			break
		}
	}
	if err := w.act(t, shown, []tidemark.Edit{span(at, at+3, "a span of another strategy")}); err != nil {
		t.Fatal(err)
	}
	v, shown = w.view(t)
	for size := v.Size; size > 400; size -= 100 {
		edits := compaction.Pointer{Tail: 2, Headroom: 1}.Plan(v, compaction.Budget{Window: size, Keep: 100})
		o := *w
		if err := o.act(t, shown, edits); err != nil {
			t.Fatalf("at %d tokens: %v", size, err)
		}
	}
}

// TestPointerBesideTheTask: the newest call of the task stays with its exchange. A large result beside it becomes a pointer,
// as does one of an older call with the same id.
func TestPointerBesideTheTask(t *testing.T) {
	w := &world{}
	w.add(tidemark.NewText(tidemark.User, "look"))
	w.add(call("b"))
	w.add(result("b", 19_000))
	w.add(tidemark.NewText(tidemark.User, "look"))
	w.add(tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("a", "read", nil), tidemark.ToolUse("b", compaction.DefaultStay, nil)}})
	w.add(tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult("a", strings.Repeat("word ", 20_000), false),
		tidemark.ToolResult("b", "the state of the task "+strings.Repeat("word ", 500), false)}})
	w.add(tidemark.NewText(tidemark.Assistant, "seen"))
	w.add(tidemark.NewText(tidemark.User, "and now?"))
	b := compaction.Budget{Window: 8_000, Reserve: 4_000, Keep: 400}
	v, _ := w.view(t)
	act, err := compaction.Plan([]compaction.Strategy{compaction.Pointer{}}, v, b, true)
	if err != nil {
		t.Fatal(err)
	}
	after, err := compaction.Preview(v, act.Edits, b)
	if err != nil || after.Size > b.Window {
		t.Errorf("%d tokens of %d, %v", after.Size, b.Window, err)
	}
	if text := fmt.Sprint(after.Messages()); !strings.Contains(text, "the state of the task") {
		t.Error("the state of the task has left")
	}
	pointers := 0
	for _, e := range act.Edits {
		if e.Block > 0 {
			pointers++
		}
	}
	if pointers != 2 {
		t.Errorf("%d results became pointers, want both large ones", pointers)
	}
}

// TestSummaryOfALargerWindow: a model with a smaller window takes over, and the summary that the former one wrote takes half
// of it. The newest message fits by itself and is not cut; the summary loses its middle, and what it was made from stays.
func TestSummaryOfALargerWindow(t *testing.T) {
	w := &world{}
	for i := range 40 {
		w.add(tidemark.NewText(tidemark.User, fmt.Sprintf("question %d %s", i, strings.Repeat("word ", 60))))
		w.add(tidemark.NewText(tidemark.Assistant, fmt.Sprintf("answer %d %s", i, strings.Repeat("word ", 60))))
	}
	v, shown := w.view(t)
	e := tidemark.Edit{From: v.Items[0].ID, To: v.Items[len(v.Items)-1].ID, Data: []byte(`{"text":"all of it"}`),
		Messages: []tidemark.Message{tidemark.NewText(tidemark.User, compaction.SummaryMarker+" it began."+strings.Repeat(" a long summary", 1_000)+" it ended.")}}
	if err := w.act(t, shown, []tidemark.Edit{e}); err != nil {
		t.Fatal(err)
	}
	asked := tidemark.NewText(tidemark.User, "look at it: "+strings.Repeat("word ", 2_800))
	w.add(asked)
	v, _ = w.view(t)
	b := compaction.Budget{Window: 8_000, Reserve: 4_000, Keep: 1}
	v.Refused = true
	act, err := compaction.Plan(summary, v, b, true)
	if err != nil {
		t.Fatal(err)
	}
	after, err := compaction.Preview(v, act.Edits, b)
	if err != nil || after.Size > b.Window-b.Window/16 {
		t.Fatalf("%d tokens of %d, %v", after.Size, b.Window, err)
	}
	if text := after.Items[0].Message.PlainText(); !compaction.IsSummary(after.Items[0]) || !strings.Contains(text, "it began.") || !strings.Contains(text, "it ended.") || string(after.Items[0].Data) != string(e.Data) {
		t.Errorf("the summary is %q", text)
	}
	if text := after.Items[len(after.Items)-1].Message.PlainText(); text != asked.PlainText() {
		t.Errorf("the newest message has %d of %d characters", len(text), len(asked.PlainText()))
	}
}
