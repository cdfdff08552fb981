package anatomy

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room"
)

const onePicture = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}`

// pictureOf is a block as it comes.
func pictureOf(t *testing.T, raw string) tidemark.Block {
	t.Helper()
	var b tidemark.Block
	if err := json.Unmarshal([]byte(raw), &b); err != nil {
		t.Fatal(err)
	}
	return b
}

// dissected is a view with an item of each kind, of 295 tokens and what the newest message of a person has.
func dissected(t *testing.T, newest tidemark.Tokens) (c room.Sent) {
	user := func(text string) tidemark.Message { return tidemark.NewText(tidemark.User, text) }
	marker := compaction.Marker{Count: 3}.Put(tidemark.Edit{})
	thought := []compaction.Stubbed{{Block: 1, Data: []byte(`{"trim":{"kind":"thinking"}}`)}}
	c.Seen.Anchor, c.Last, c.Until, c.Pushed = true, 7, 9, true
	v := &c.Seen
	v.Log, v.Size = "log", 1234
	v.Items = []compaction.Item{
		{ID: "o1", To: "b", Overlay: "o1", Message: user(compaction.SummaryMarker + " of it"), Tokens: 100, Source: tidemark.FromSystem},
		{ID: "o2", To: "c", Overlay: "o2", Message: marker.Messages[0], Data: marker.Data, Tokens: 20, Source: tidemark.FromSystem},
		{ID: "o2", To: "d", Overlay: "o2", Edit: 1, Message: marker.Messages[0], Data: marker.Data, Tokens: 20, Source: tidemark.FromSystem},
		{ID: "e", To: "e", Overlay: "o3", Stubs: 1, Message: user("a stub"), Tokens: 30, Source: tidemark.FromTool},
		{ID: "f", To: "f", Overlay: "o4", Stubs: 1, Stubbed: thought, Message: user("less thinking"), Tokens: 10, Source: tidemark.FromModel},
		{ID: "g", To: "g", Message: user("what was said before is longer"), Tokens: 50, Source: tidemark.FromPerson},
		{ID: "h", To: "h", Message: tidemark.NewText(tidemark.Assistant, "yes"), Tokens: 60, Source: tidemark.FromModel},
		{ID: "i", To: "i", Message: tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.Text("Hello"), pictureOf(t, onePicture)}}, Tokens: newest, Source: tidemark.FromPerson},
		{ID: "j", To: "j", Message: tidemark.NewText(tidemark.Assistant, "of nobody knows whom"), Tokens: 5},
	}
	for _, id := range []tidemark.EntryID{"o4", "o2", "o2", "o1"} {
		v.Shown = append(v.Shown, compaction.Replacement{Placed: compaction.Placed{Overlay: id}})
	}
	return c
}

// TestDissect: what a request is made of, each part in the measure of the provider, which counts twice what we estimate.
func TestDissect(t *testing.T) {
	const schemas = `[{"name":"look","description":"look","input_schema":{"type":"object"}}]`                                // 22 tokens
	req := tidemark.Request{Model: "asked", System: "You are a gauge. And memory.", MaxTokens: 500, Note: "[It is a note.]", // 9 and 5 tokens
		Tools: []tidemark.Tool{{Name: "look", Description: "look", InputSchema: []byte(`{"type":"object"}`)}}}
	c := dissected(t, 286)
	c.Request = req
	got := dissect(c, 8000, 4000, "You are a gauge.")
	want := Record{Session: "log", Full: 30.9, SystemText: 16, Workspace: 12, Schemas: len(schemas), Events: 6, Markers: 2, UserBytes: len("Hello") + len(onePicture),
		Window: 8000, Limit: 4000, Size: 1234, Anchored: true, System: 18, Tools: 44,
		Parts: map[string]Portion{"summary": {1, 200}, "marker": {2, 80}, "stub": {1, 60}, "model": {2, 140}, "person": {2, 672}, "assistant": {1, 10}, "note": {1, 10}},
		Last:  7, Overlays: []tidemark.EntryID{"o1", "o2", "o4"}, Until: 9, Requested: "asked", MaxTokens: 500, Prompt: string(tidemark.HashOf([]byte(req.System)))}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
	c.Pushed, c.Seen.Size = false, 0 // nothing is known of its size: the estimates stay
	c.Request.System, c.Request.Tools = "Another system text.", nil
	got = dissect(c, 8000, 4000, "You are a gauge.")
	if _, ok := got.Parts["note"]; ok || got.SystemText != len(c.Request.System) || got.Workspace != 0 || got.Schemas != 0 || got.Tools != 0 || got.System != 6 || got.Parts["person"] != (Portion{2, 336}) || got.Full != 0 {
		t.Errorf("without a pack and tools, under another system text: %+v", got)
	}
}

// TestOverlaysOfARecord: a record names each overlay once, and the newest of very many.
func TestOverlaysOfARecord(t *testing.T) {
	for _, n := range []int{0, 1, maxOverlays, maxOverlays + 1, 2 * maxOverlays} {
		var v room.Seen
		var want []tidemark.EntryID
		for i := range n {
			id := tidemark.EntryID(fmt.Sprintf("o%02d", i))
			if i >= n-maxOverlays {
				want = append(want, id)
			}
			shown := compaction.Replacement{Placed: compaction.Placed{Overlay: id}}
			v.Shown = append([]compaction.Replacement{shown, shown}, v.Shown...)
		}
		if got := overlaysOf(v); !slices.Equal(got, want) {
			t.Errorf("of %d: %q, want %q", n, got, want)
		}
	}
}

func spoken(items ...compaction.Item) (v room.Seen) {
	v.Items = items
	return v
}

// saidBy is an item of somebody.
func saidBy(source, text string) compaction.Item {
	role := tidemark.User
	if source == tidemark.FromModel {
		role = tidemark.Assistant
	}
	return compaction.Item{Message: tidemark.NewText(role, text), Source: source}
}

// TestTopicWeights: what a person said last counts four times as much as what they said before it, and neither tools nor
// summaries count.
func TestTopicWeights(t *testing.T) {
	p, m := tidemark.FromPerson, tidemark.FromModel
	span := saidBy(tidemark.FromSystem, "walnut")
	span.Overlay = "o"
	v := spoken(saidBy(p, "copper"), saidBy(m, "copper"), saidBy(p, "anchor"), saidBy(m, "barometer"), saidBy(p, "anchor"), saidBy(m, "barometer"), saidBy(m, "barometer"),
		saidBy(p, "lantern"), saidBy(tidemark.FromTool, "walnut"), saidBy(tidemark.FromRecall, "walnut"), span, saidBy(m, "barometer"))
	if got := topicWords(v); !slices.Equal(got, []string{"lantern", "barometer", "anchor"}) {
		t.Errorf("%q", got)
	}
}

// TestTopicTransition: the calls of a turn share its topic, and another one is one of which under half was the turn's before.
func TestTopicTransition(t *testing.T) {
	three, four := "compass harbour lighthouse", "anchor compass harbour lighthouse"
	for _, row := range []struct {
		name, run, said, lastRun, lastLog, last string
		want                                    string
		transition                              bool
	}{
		{"of the same turn", "r", three, "r", "log", "copper", "copper", true},
		{"of no turn", "", three, "", "log", "compass harbour", three, false},
		{"of one word", "r", "copper", "", "", "", "copper", false},
		{"the first", "r", three, "", "", "", three, false},
		{"nothing is said", "r", "", "q", "log", "copper", "", false},
		{"of another session", "r", three, "q", "other", "copper", three, false},
		{"nothing of it", "r", three, "q", "log", "copper walnut", three, true},
		{"half of the shorter", "r", three, "q", "log", "compass walnut", three, false},
		{"a third", "r", three, "q", "log", "compass copper walnut", three, true},
		{"half of four", "r", four, "q", "log", "anchor compass copper walnut", four, false},
		{"a quarter", "r", four, "q", "log", "anchor copper walnut zinc", four, true},
		{"all of it", "r", four, "q", "log", four, four, false},
	} {
		a, last := Record{Run: row.run, Session: "log"}, Record{Run: row.lastRun, Session: row.lastLog, Transition: row.transition && row.lastRun == row.run}
		if row.last != "" {
			last.Topic = &row.last
		}
		a.topic(spoken(saidBy(tidemark.FromPerson, row.said)), last)
		got := ""
		if a.Topic != nil {
			got = *a.Topic
		}
		if got != row.want || a.Transition != row.transition {
			t.Errorf("%s: %q, another %v, want %q, %v", row.name, got, a.Transition, row.want, row.transition)
		}
	}
}

// TestKeptOnce: what a record does not hold itself is stored under its hash, unless it is there for sure, and a short note
// stands in the record.
func TestKeptOnce(t *testing.T) {
	hash := func(s string) string { return string(tidemark.HashOf([]byte(s))) }
	tools := []tidemark.Tool{{Name: "look", InputSchema: []byte(`{}`)}}
	schema := hash(room.JSON(tools))
	short, long := strings.Repeat("a", shortNote), strings.Repeat("a", shortNote+1)
	for _, row := range []struct {
		name   string
		tools  []tidemark.Tool
		note   string
		stored string
		last   Record
		want   Record
		puts   []string // hashes
	}{
		{"all is new", tools, long, "", Record{}, Record{Prompt: hash("system"), Schema: schema, NoteHash: hash(long)}, []string{hash("system"), schema, hash(long)}},
		{"all is there", tools, long, hash("system"), Record{Schema: schema, NoteHash: hash(long)}, Record{Prompt: hash("system"), Schema: schema, NoteHash: hash(long)}, nil},
		{"a short note and no tools", nil, short, hash("other"), Record{Schema: schema}, Record{Prompt: hash("system"), Note: short}, []string{hash("system")}},
	} {
		var a Record
		stmts := a.keep(tidemark.Request{System: "system", Tools: row.tools, Note: row.note}, row.stored, row.last, func(hash, text string) tidemark.Stmt { return tidemark.Stmt{Args: []any{hash, text}} })
		var puts []string
		for _, s := range stmts {
			puts = append(puts, s.Args[0].(string))
		}
		if !reflect.DeepEqual(a, row.want) || !slices.Equal(puts, row.puts) {
			t.Errorf("%s: %+v, stored %q, want %+v, %q", row.name, a, puts, row.want, row.puts)
		}
	}
}

// TestTopicOfTheNewest: what a turn is about is told by the last three things that people said.
func TestTopicOfTheNewest(t *testing.T) {
	words := []string{"harbour", "lighthouse", "compass", "lantern", "anchor"}
	var v room.Seen
	for _, w := range words {
		v.Items = append(v.Items, compaction.Item{Message: tidemark.NewText(tidemark.User, "about the "+w), Source: tidemark.FromPerson},
			compaction.Item{Message: tidemark.NewText(tidemark.Assistant, "ok"), Source: tidemark.FromModel})
	}
	got := topicWords(v)
	for i, w := range words {
		if slices.Contains(got, w) != (i >= 2) {
			t.Errorf("%s, in place %d of %d: %q", w, i, len(words), got)
		}
	}
}
