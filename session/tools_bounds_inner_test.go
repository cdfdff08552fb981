package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/blocks"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/skill"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestOwnersTurn: a turn is the owner's alone only where each of its inputs was written by the owner.
func TestOwnersTurn(t *testing.T) {
	owner, old := tidemark.Origin{From: tidemark.FromPerson, Owner: true}, tidemark.Origin{Owner: true}
	scheduled := owner
	scheduled.Occasion = &tidemark.Occasion{}
	for name, c := range map[string]struct {
		origins []tidemark.Origin
		want    bool
	}{
		"nobody's": {nil, false}, "the owner's": {[]tidemark.Origin{owner, old}, true}, "with a stranger": {[]tidemark.Origin{owner, {From: tidemark.FromPerson}}, false},
		"a schedule's": {[]tidemark.Origin{scheduled}, false}, "of the program": {[]tidemark.Origin{{From: tidemark.FromSystem, Owner: true}}, false}, "of an agent": {[]tidemark.Origin{owner, {From: tidemark.FromAgent, Owner: true}}, false},
	} {
		if got := ownersTurn(c.origins); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	for o, want := range map[*tidemark.Origin]bool{{}: true, {From: tidemark.FromPerson}: true, {From: tidemark.FromSystem}: false, {Occasion: &tidemark.Occasion{}}: false} {
		if got := ofPeople(*o); got != want {
			t.Errorf("%+v is of people: %v", *o, got)
		}
	}
	for name, want := range map[string][2]bool{room.RecallTool: {true, true}, room.TaskTool: {true, true}, paging.ReleaseTool: {true, true}, paging.FaultTool: {true, true}, skill.Tool: {false, true}, "look": {false, false}} {
		if got := [2]bool{roomTool(name), retold(name)}; got != want {
			t.Errorf("%s is of a room, and tells what stands elsewhere: %v", name, got)
		}
	}
}

// TestAnswering: a result answers its call and may be kept: at the bound it is as it came, beyond it its images go, or the
// middle of its text, and it says so.
func TestAnswering(t *testing.T) {
	words := func(n int) tidemark.Block { return tidemark.ToolResult("c1", strings.Repeat("abcdefgh", n/8), true) }
	picture := func(text string, bytes int) tidemark.Block {
		return tidemark.Block{Type: tidemark.TypeToolResult, ToolUseID: "c1", Content: append([]tidemark.Block{tidemark.Text(text)}, tidemarktest.Blocks(t, `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`+strings.Repeat("QUFB", bytes/4)+`"}}`)...)}
	}
	size := func(b tidemark.Block) int { return len(b.AppendJSON(nil)) }
	text := strings.Repeat("abcdefgh", 100)
	for _, c := range []struct {
		name string
		b    tidemark.Block
		most int
		want string // "" as it came
	}{
		{"as large as may be kept", words(800), size(words(800)), ""},
		{"larger", words(800), size(words(800)) - 1, fmt.Sprintf("[The result had 800 bytes: %d of its middle are left out and kept nowhere. Ask the tool for less.]\n%s\n[…]\n%s", 800-(size(words(800))-1)/8-(size(words(800))-1)/16, text[:(size(words(800))-1)/8], text[800-(size(words(800))-1)/16:])},
		{"with an image, and half of what is kept is words", picture(text[:160], 4000), 320, fmt.Sprintf("%s\n[The result has %d bytes, and at most 320 are kept: its images and documents are left out.]", text[:160], size(picture(text[:160], 4000)))},
		{"with an image, and more of it is words", picture(text[:161], 4000), 320, fmt.Sprintf("[The result had 161 bytes: 101 of its middle are left out and kept nowhere. Ask the tool for less.]\n%s\n[…]\n%s", text[:40], text[141:161])},
		{"of another call", tidemark.ToolResult("c2", "x", false), 1000, "the tool gave no result"},
		{"no result", tidemark.Text("x"), 1000, "the tool gave no result"},
	} {
		got := answering("c1", c.b, &roundRoom{most: int64(c.most)})
		if c.want == "" && string(got.AppendJSON(nil)) != string(c.b.AppendJSON(nil)) || c.want != "" && (len(got.Content) != 1 || got.Content[0].Text != c.want) || got.ToolUseID != "c1" || got.IsError != (c.b.IsError || strings.HasPrefix(c.want, "the tool")) {
			t.Errorf("%s: %s", c.name, got.AppendJSON(nil))
		}
	}
	for _, c := range []struct {
		name  string
		view  int64
		kept  []int // bytes of results that are kept already
		sizes []int
		want  []int
	}{
		{"a large one among small ones", 8 << 20, nil, []int{1000, 600 << 10, 1000}, []int{1000, 600 << 10, 1000}},
		{"more than one may have", 8 << 20, nil, []int{3 << 20}, []int{2 << 20}},
		{"more than any may have", 64 << 20, nil, []int{9 << 20}, []int{8 << 20}},
		{"as large as there is room, and one more", 8 << 20, nil, []int{2 << 20, 2<<20 - 100<<10, 100 << 10, 100 << 10}, []int{2 << 20, 2<<20 - 100<<10, 100 << 10, 32 << 10}},
		{"what is cut leaves its room to the next", 8 << 20, nil, []int{3 << 20, 2 << 20, 32 << 10, 40 << 10}, []int{2 << 20, 2 << 20, 32 << 10, 32 << 10}},
		{"behind those of an earlier life", 8 << 20, []int{2 << 20, 2<<20 - 50<<10}, []int{40 << 10, 40 << 10}, []int{40 << 10, 32 << 10}},
		{"in a small view", 100 << 10, nil, []int{30 << 10}, []int{25 << 10}},
	} {
		var calls []call
		for _, n := range c.kept {
			b := tidemark.ToolResult("c", "", false)
			b = tidemark.ToolResult("c", strings.Repeat("a", n-size(b)), false)
			calls = append(calls, call{State: callDone, Result: b}, call{State: callRegistered, Result: b})
		}
		r := roomOf(c.view, calls)
		for i, n := range c.sizes {
			if got := min(r.take(n), n); got != c.want[i] {
				t.Errorf("%s: of %d bytes, number %d, %d are kept, want %d", c.name, n, i, got, c.want[i])
			}
		}
	}
}

// TestCallsAreRegistered: the calls of a reply are registered in order, those beyond the bound as not run; they are read back
// as they stand, of their round alone, and a result that is lost says so.
func TestCallsAreRegistered(t *testing.T) {
	s, _ := plain(t, Config{})
	r := s.begun(t, "r", stateTools)
	r.Round = 1
	m := tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.Text("looking")}}
	for i := range 129 {
		m.Content = append(m.Content, tidemark.ToolUse(fmt.Sprint("c", i), []string{"look", "send"}[i%2], nil))
	}
	stmts := s.callStmts(r, m, []tidemark.Tool{{Name: "look", Idempotent: true}, {Name: "send"}})
	if err := s.DB.Tx(t.Context(), stmts); err != nil || len(stmts) != 129 {
		t.Fatal(len(stmts), err)
	}
	s.does(t, `INSERT INTO calls(run, round, n, id, call, idempotent, state) VALUES('r', 0, 0, 'old', '{}', 0, 'registered'), ('r2', 1, 0, 'other', '{}', 0, 'registered')`)
	calls, err := s.calls(t.Context(), r)
	if err != nil || len(calls) != 129 {
		t.Fatalf("%d calls, %v", len(calls), err)
	}
	for i, c := range calls {
		if c.N != i || c.ID != fmt.Sprint("c", i) || c.Block.Name != []string{"look", "send"}[i%2] || c.Idempotent != (i%2 == 0) || c.left == nil || c.left != calls[0].left || (c.State == callDone) != (i == 128) {
			t.Errorf("call %d: %+v", i, c)
		}
	}
	if last := calls[128].Result; !last.IsError || last.ToolUseID != "c128" || last.Content[0].Text != "not run: a reply may make 128 calls" {
		t.Errorf("the last is answered %s", last.AppendJSON(nil))
	}
	long := tidemark.ToolResult("c0", strings.Repeat("long ", 60_000), false)
	kept, err := s.keepResult(t.Context(), long)
	if err != nil || len(kept) > 1000 || !strings.Contains(kept, blocks.Field) {
		t.Fatalf("kept as %.200s, %v", kept, err)
	}
	s.does(t, `UPDATE calls SET state = 'done', result = ? WHERE run = 'r' AND round = 1 AND n = 0`, kept)
	if calls, err = s.calls(t.Context(), r); err != nil || string(calls[0].Result.AppendJSON(nil)) != string(long.AppendJSON(nil)) {
		t.Errorf("read back as %.200s, %v", calls[0].Result.AppendJSON(nil), err)
	}
	page, _, err := s.Blobs.List(t.Context(), "agents/main/artifacts/", "", 10)
	if err != nil || len(page) != 1 {
		t.Fatal(page, err)
	}
	if err := s.Blobs.Delete(t.Context(), page[0].Key); err != nil {
		t.Fatal(err)
	}
	if calls, err = s.calls(t.Context(), r); err != nil || !strings.Contains(string(calls[0].Result.AppendJSON(nil)), "put "+page[0].Key+" back") {
		t.Errorf("lost, it reads %.300s, %v", calls[0].Result.AppendJSON(nil), err)
	}
	for column, want := range map[string]string{"call": "read call c1", "result": "read result of c0"} {
		n := map[string]int{"call": 1, "result": 0}[column]
		s.does(t, `UPDATE calls SET `+column+` = '{' WHERE run = 'r' AND round = 1 AND n = ?`, n)
		if _, err := s.calls(t.Context(), r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("its %s cannot be read: %v", column, err)
		}
		s.does(t, `UPDATE calls SET `+column+` = '{"type":"tool_result","tool_use_id":"c0"}' WHERE run = 'r' AND round = 1 AND n = ?`, n)
	}
}

// TestResultsSayWhoseTheyAre: a message of results is a tool's, the conversation's own where each tells what stands elsewhere,
// and recalled where one of those brings something back.
func TestResultsSayWhoseTheyAre(t *testing.T) {
	for tools, want := range map[string]tidemark.Origin{
		"look": {From: tidemark.FromTool}, "look recall": {From: tidemark.FromTool}, "task_state": {From: tidemark.FromTool, Own: true}, "recall": {From: tidemark.FromRecall},
		"task_state recall": {From: tidemark.FromRecall}, paging.FaultTool: {From: tidemark.FromRecall}, skill.Tool: {From: tidemark.FromTool, Own: true},
	} {
		s, _ := plain(t, Config{})
		r := s.begun(t, "r", stateTools)
		var calls []call
		var results []tidemark.Block
		for i, name := range strings.Fields(tools) {
			id := fmt.Sprint("c", i)
			calls = append(calls, call{ID: id, Block: tidemark.ToolUse(id, name, nil)})
			results = append(results, tidemark.ToolResult(id, "x", false))
		}
		stmts, err := s.resultStmts(t.Context(), r, calls, results)
		if err == nil {
			err = s.DB.Tx(t.Context(), stmts)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := s.reads(t, `SELECT origin FROM entries WHERE log = ? LIMIT 9`, r.Log); got != mustJSON(want) {
			t.Errorf("of %s: %s", tools, got)
		}
		if got := s.reads(t, `SELECT messages FROM heads WHERE key = ? LIMIT 1`, string(s.Key)); got != "1" {
			t.Errorf("of %s: %s messages", tools, got)
		}
	}
	s, _ := plain(t, Config{})
	if stmts, err := s.resultStmts(t.Context(), &run{}, nil, nil); stmts != nil || err != nil {
		t.Errorf("without results: %d statements, %v", len(stmts), err)
	}
}

// slow is a room with a tool that may take its time.
type slow struct{ name string }

func (r slow) Tools(bool) []tidemark.Tool {
	return []tidemark.Tool{{Name: r.name, Timeout: time.Hour}, {Name: "quick"}}
}

func (r slow) Call(_ context.Context, c room.Call) tidemark.Block {
	return tidemark.ToolResult(c.ID, fmt.Sprintf("of the room: %s %s %d %d", c.Tool, c.Input, c.N, c.Round), false)
}

// frozenTools is a room that offers tools of others.
type frozenTools struct{ room.Offerer }

func (frozenTools) Offered(name string) (tidemark.Tool, bool) {
	return tidemark.Tool{Timeout: map[string]time.Duration{"far": 7}[name]}, name == "far" || name == "near"
}

func (frozenTools) Changed(_ context.Context, name string) bool { return name == "changed" }

func (frozenTools) Offer(context.Context) ([]tidemark.Tool, error) {
	return []tidemark.Tool{{Name: "far"}, {Name: "look"}, {Name: "slow"}}, nil
}

// TestToolTime: a tool has the time that its definition says, of others or of a room, and else what is configured. Ours are
// offered before others of their name, and a room carries out its own.
func TestToolTime(t *testing.T) {
	s, _ := plain(t, Config{Agent: hasTools{}, Settings: Settings{ToolTimeout: time.Minute}, Rooms: []room.Maker{func(room.Ports) any { return slow{"slow"} }, func(room.Ports) any { return frozenTools{} }}})
	for name, want := range map[string]time.Duration{"slow": time.Hour, "quick": time.Minute, "far": 7, "near": time.Minute, "none": time.Minute} {
		if got := s.toolTime(name); got != want {
			t.Errorf("%s has %s, want %s", name, got, want)
		}
	}
	tools, err := s.tools(t.Context())
	if got := toolNames(tools); err != nil || !slices.Equal(got, []string{"slow", "quick", "look", "send", "far"}) {
		t.Errorf("offered %q, %v", got, err)
	}
	r := &run{ID: "r", Round: 3}
	for name, want := range map[string]string{"slow": `of the room: slow {"x":1} 2 3`, "look": "of the agent"} {
		if b := s.resultOf(t.Context(), r, call{ID: "c1", N: 2, Block: tidemark.ToolUse("c1", name, []byte(`{"x":1}`))}); b.Content[0].Text != want {
			t.Errorf("%s: %s", name, b.AppendJSON(nil))
		}
	}
	if !s.rooms.Changed(t.Context(), "changed") || s.rooms.Changed(t.Context(), "far") {
		t.Error("another tool was changed")
	}
	if tool, ok := s.rooms.Offered("far"); !ok || tool.Timeout != 7 {
		t.Errorf("%+v, %v", tool, ok)
	}
	bare, _ := plain(t, Config{})
	if _, ok := bare.rooms.Offered("far"); ok || bare.rooms.Changed(t.Context(), "changed") {
		t.Error("nobody offers tools of others")
	}
	if !pointing([]compaction.Strategy{compaction.Summary{}, compaction.Pointer{}}) || pointing([]compaction.Strategy{compaction.Summary{}}) {
		t.Error("the strategy pointer points, and no other")
	}
}
