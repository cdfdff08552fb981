package session_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/room/anatomy"
	"github.com/tidemark-ai/tidemark/room/snapshots"
	"github.com/tidemark-ai/tidemark/room/task"
	"github.com/tidemark-ai/tidemark/session"
)

// thinking has the model of a desk think before each reply.
func (d *desk) thinking() {
	d.model.set(func(n int, req tidemark.Request) (tidemark.Message, error) {
		m, err := d.play(n, req)
		if asksSummary(req) || err != nil {
			return m, err
		}
		if len(m.Content) == 0 {
			m = tidemark.NewText(tidemark.Assistant, fmt.Sprintf("answer %d", n))
		}
		thought := parsed(d.t, fmt.Sprintf(`{"role":"assistant","content":[{"type":"thinking","thinking":"I think %d","signature":"c2ln"}]}`, n))
		return tidemark.Message{Role: tidemark.Assistant, Content: append(thought.Content, m.Content...)}, nil
	})
}

// worked is a session in which files were read and written and a picture was sent.
func worked(t *testing.T) *desk {
	t.Helper()
	d := newDesk(t, session.Settings{Window: 100_000, Reserve: 5000, Keep: 5000}, &compaction.Paging{})
	d.thinking()
	for i := range 5 {
		name := fmt.Sprintf("f%d.go", i)
		d.file(name, 60)
		d.say("read " + name)
	}
	d.say("write w.go")
	d.post(session.Input{Message: parsed(t, `{"role":"user","content":[{"type":"text","text":"look"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`+strings.Repeat("QUJD", 200)+`"}}]}`)})
	d.say("and now?")
	return d
}

// stubsOf are the handles in what trimming put into a view, with the blocks that they stand for.
func (d *desk) stubsOf(v session.View) map[string]tidemark.Block {
	d.t.Helper()
	out := map[string]tidemark.Block{}
	for _, it := range v.Items {
		for _, s := range it.Stubbed {
			if _, ok := compaction.Trimmed(s); !ok || s.Many == 0 {
				continue
			}
			e, err := d.Reader.Entry(d.t.Context(), it.ID)
			if err != nil {
				d.t.Fatal(err)
			}
			m, err := e.Message()
			if err != nil {
				d.t.Fatal(err)
			}
			raw := strings.ReplaceAll(string(it.Message.Content[s.At].AppendJSON(nil)), `\`, "")
			out[handleIn(d.t, raw)] = m.Content[s.Block-1]
		}
	}
	return out
}

// readsBack has the model recall each handle, and holds that it reads what was there.
func (d *desk) readsBack(blocks map[string]tidemark.Block) {
	d.t.Helper()
	for handle, was := range blocks {
		if got := d.say("recall " + handle); strings.HasPrefix(got, "error") {
			d.t.Fatal(got)
		}
		last := d.request(-1)
		got := last.Messages[len(last.Messages)-1].Content[0]
		want := tidemark.ToolResult(got.ToolUseID, string(was.Input), false)
		switch was.Type {
		case tidemark.TypeToolResult:
			want = tidemark.ToolResult(got.ToolUseID, was.Content[0].Text, false)
		case tidemark.TypeImage:
			want = tidemark.Block{Type: tidemark.TypeToolResult, ToolUseID: got.ToolUseID, Content: []tidemark.Block{was}}
		}
		if string(got.AppendJSON(nil)) != string(want.AppendJSON(nil)) {
			d.t.Errorf("recall of %s gives %.200s, want %.200s", handle, got.AppendJSON(nil), want.AppendJSON(nil))
		}
	}
}

// TestTrimmedBranch: a trimmed branch shows stubs, its source what it showed; recall reads each stub as what was there, also
// when the branch was compacted since, and the records of its calls tell what they were made of.
func TestTrimmedBranch(t *testing.T) {
	d := worked(t)
	before := d.shows()
	would, err := d.TrimEstimate(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.Trim(t.Context(), snapshots.BranchOptions{Name: "lean"})
	if err != nil {
		t.Fatal(err)
	}
	if d.shows() != before {
		t.Error("the source changed")
	}
	if b.Trim == nil || *b.Trim != would.TrimMetrics || b.Trim.Results != 5 || b.Trim.Inputs != 1 || b.Trim.Media != 1 || b.Trim.Thinking != len(d.model.calls) || b.Trim.Threshold != compaction.DefaultTrimThreshold {
		t.Errorf("%+v, estimated %+v", b.Trim, would)
	}
	lean := &desk{harness: d.on(b.Key), files: d.files, calls: 500}
	lean.agent.call = lean.call
	v, err := lean.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if v.Size != b.Trim.After || would.Before != b.Trim.Before || v.Size > b.Trim.Before/2 || b.Trim.Prefix <= would.Fixed || b.Trim.Prefix > b.Trim.After {
		t.Errorf("the branch has %d tokens, and is told to: %+v", v.Size, b.Trim)
	}
	if parts := anatomy.Portions(v.Seen); parts["stub"].Items != 7 || parts["model"].Items == 0 {
		t.Errorf("parts %+v", parts)
	}
	stubs, thoughts := 0, 0
	for _, it := range v.Items {
		n, out := it.Trims()
		stubs, thoughts = stubs+n, thoughts+out
		for _, x := range it.Message.Content {
			if x.Type == tidemark.TypeThinking {
				t.Errorf("%s still thinks", it.ID)
			}
		}
	}
	blocks := lean.stubsOf(v)
	if len(blocks) != 7 || stubs != 7 || thoughts != b.Trim.Thinking {
		t.Fatalf("%d stubs, %d told, and %d thoughts of %d", len(blocks), stubs, thoughts, b.Trim.Thinking)
	}
	lean.thinking()
	lean.readsBack(blocks)
	records, err := lean.Anatomies(t.Context(), 0, 1)
	if err != nil || len(records) != 1 || len(records[0].Overlays) == 0 || records[0].Parts["stub"].Items < 7 {
		t.Errorf("%+v: %v", records, err)
	}
	entries, err := lean.Reader.Acts(t.Context(), 0, 1000)
	if err != nil || !strings.Contains(string(entries[len(entries)-1].Payload), `"by":["trim"]`) {
		t.Errorf("%+v: %v", entries, err)
	}
	for _, strategies := range [][]compaction.Strategy{{compaction.Pointer{Tail: 1}}, {compaction.Summary{}}, {&compaction.Paging{}, compaction.Summary{}}} {
		lean.stop()
		lean.strategies = strategies
		lean.open()
		lean.post(session.Input{Kind: session.InputCompact})
		lean.sent()
		lean.readsBack(blocks)
	}
	if d.shows() != before {
		t.Error("the source changed with its branch")
	}
}

// TestFaultOfATrimmedFile: memory_fault reads what was trimmed by the name of its file.
func TestFaultOfATrimmedFile(t *testing.T) {
	d := worked(t)
	b, err := d.Trim(t.Context(), snapshots.BranchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lean := d.on(b.Key)
	lean.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		if len(req.Messages[len(req.Messages)-1].Results()) > 0 {
			return tidemark.Message{}, nil
		}
		return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("call_f", "memory_fault", []byte(`{"paths":["f0.go"]}`))}}, nil
	})
	lean.say("give me f0.go")
	calls := lean.model.calls
	last := calls[len(calls)-1].Messages
	got := last[len(last)-1].Content[0]
	if text := string(got.AppendJSON(nil)); got.IsError || !strings.Contains(text, "f0.go line 59: the tide comes and goes") || strings.Contains(text, "still") {
		t.Errorf("memory_fault gives %.300s", text)
	}
}

// TestTrimOfATrimmedBranch: there is nothing left to trim, and the numbers say so.
func TestTrimOfATrimmedBranch(t *testing.T) {
	d := worked(t)
	lean, _ := d.branch(snapshots.BranchOptions{Name: "lean", Trim: true})
	again, err := lean.Trim(t.Context(), snapshots.BranchOptions{Name: "leaner"})
	if err != nil {
		t.Fatal(err)
	}
	m := again.Trim
	if m.Results+m.Inputs+m.Media+m.Thinking != 0 || m.Before != m.After || m.Prefix != m.Before {
		t.Errorf("%+v", m)
	}
	if got, want := lean.on(again.Key).shows(), lean.shows(); got != want {
		t.Errorf("it shows\n%s\nwant\n%s", got, want)
	}
}

// TestUndoOfATrim: without its overlay the branch shows what its source does, and to trim it again takes the same away,
// though somebody brought it back.
func TestUndoOfATrim(t *testing.T) {
	d := worked(t)
	lean, b := d.branch(snapshots.BranchOptions{Name: "lean", Trim: true})
	acts, err := lean.Reader.Acts(t.Context(), 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range acts {
		if a.Kind == tidemark.KindOverlay && strings.Contains(string(a.Payload), `"by":["trim"]`) {
			if changed, err := lean.Undo(t.Context(), a.ID); err != nil || !changed {
				t.Fatal(changed, err)
			}
		}
	}
	if got, want := lean.shows(), d.shows(); got != want {
		t.Errorf("it shows\n%s\nwant\n%s", got, want)
	}
	again, err := lean.Trim(t.Context(), snapshots.BranchOptions{})
	if err != nil || again.Trim.Results != b.Trim.Results || again.Trim.After != b.Trim.After {
		t.Errorf("%+v, at first %+v: %v", again.Trim, b.Trim, err)
	}
}

// TestTrimEstimate writes nothing, goes by the threshold, spares what is pinned, and refuses what is no threshold.
func TestTrimEstimate(t *testing.T) {
	d := worked(t)
	rows := d.count(`SELECT count(*) FROM entries LIMIT 1`)
	all, err := d.TrimEstimate(t.Context(), 0)
	if err != nil || all.After >= all.Before || all.First == "" {
		t.Fatalf("%+v: %v", all, err)
	}
	sum := all.ResultTokens + all.InputTokens + all.ThinkingTokens + all.MediaTokens
	blocks := tidemark.Tokens(all.Results + all.Inputs + all.Thinking + all.Media)
	if freed := all.Before - all.After; sum > freed+blocks || sum < freed*9/10 { // each is rounded
		t.Errorf("%d tokens leave, by kind %d", freed, sum)
	}
	if none, err := d.TrimEstimate(t.Context(), 1_000_000); err != nil || none.Results != 0 || none.Inputs != 0 || none.Media != 1 || none.Thinking != all.Thinking {
		t.Errorf("%+v: %v", none, err)
	}
	if low, err := d.TrimEstimate(t.Context(), 1); err != nil || low.Threshold != compaction.MinTrimThreshold {
		t.Errorf("%+v: %v", low, err)
	}
	if _, err := d.TrimEstimate(t.Context(), -1); !errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), "threshold -1") {
		t.Error(err)
	}
	if _, err := d.Trim(t.Context(), snapshots.BranchOptions{Threshold: -1}); !errors.Is(err, tidemark.ErrInvalid) {
		t.Error(err)
	}
	v, err := d.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pin := tidemark.EntryID("")
	for _, it := range v.Items {
		if len(it.Message.Results()) > 0 && pin == "" {
			pin = it.ID
		}
	}
	if _, err := d.ChangeTask(t.Context(), task.Change{Pin: []tidemark.EntryID{pin}}, tidemark.Origin{From: tidemark.FromPerson, Owner: true}); err != nil {
		t.Fatal(err)
	}
	if fewer, err := d.TrimEstimate(t.Context(), 0); err != nil || fewer.Results+fewer.Inputs != all.Results+all.Inputs-1 {
		t.Errorf("%+v, with all %+v: %v", fewer, all, err)
	}
	if got := d.count(`SELECT count(*) FROM entries WHERE kind <> 'event' LIMIT 1`); got > rows {
		t.Errorf("%d entries, %d before", got, rows)
	}
}

// TestRecallOfWhatIsPartlyTooLarge: of a result whose picture is too large to be brought back recall tells the words, and
// that something is left out.
func TestRecallOfWhatIsPartlyTooLarge(t *testing.T) {
	d := newDesk(t, session.Settings{Window: 900_000}, &compaction.Paging{})
	words := strings.Repeat("the tide comes and goes. ", 100)
	result := func(id string, pixels int) tidemark.Block {
		picture := parsed(t, `{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`+strings.Repeat("Q", pixels)+`"}}]}`).Content[0]
		return tidemark.Block{Type: tidemark.TypeToolResult, ToolUseID: id, Content: []tidemark.Block{tidemark.Text(words), picture}}
	}
	d.agent.call = func(c tidemark.Block) tidemark.Block { // as large as a result may be
		return result(c.ID, compaction.RecallBytes-len(result(c.ID, 0).AppendJSON(nil)))
	}
	d.say("look here")
	d.say("so?")
	b, err := d.Trim(t.Context(), snapshots.BranchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lean := &desk{harness: d.on(b.Key), calls: 1_000_000} // the name of a call is longer then
	lean.model.set(lean.play)
	for handle := range lean.stubsOf(func() session.View { v, _ := lean.View(t.Context()); return v }()) {
		lean.say("recall " + handle)
		last := lean.request(-1)
		got := last.Messages[len(last.Messages)-1].Content[0]
		if got.IsError || len(got.Content) != 1 || !strings.HasPrefix(got.Content[0].Text, words) || !strings.Contains(got.Content[0].Text, "1 images or documents, is too large") {
			t.Errorf("recall gives %.200s", got.AppendJSON(nil))
		}
		return
	}
	t.Error("nothing was trimmed")
}
