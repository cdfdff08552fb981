package compaction_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// blockOf is a block from its JSON.
func blockOf(t testing.TB, raw string) tidemark.Block {
	t.Helper()
	var b tidemark.Block
	if err := json.Unmarshal([]byte(raw), &b); err != nil {
		t.Fatalf("%.100s: %v", raw, err)
	}
	return b
}

// pngOf is a picture of a size in base64.
func pngOf(t testing.TB, w, h int) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// trimView trims what the world shows, and gives the first view that the edits make.
func (w *world) trimView(t testing.TB, threshold int) (edits []tidemark.Edit, gain compaction.TrimGain, after compaction.View) {
	t.Helper()
	v, shown := w.view(t)
	edits, gain = compaction.Trim{Threshold: threshold}.Plan(v)
	if len(edits) == 0 {
		return edits, gain, v
	}
	if err := w.act(t, shown, edits); err != nil {
		t.Fatalf("the plan's row is refused: %v", err)
	}
	after, _ = w.view(t)
	return edits, gain, after
}

// TestTrimStubs holds what stands for each kind of block. The texts are fixed: models and people read them.
func TestTrimStubs(t *testing.T) {
	long, longer := strings.Repeat("x", 501), strings.Repeat(`\"é`, 300)
	picture := pngOf(t, 800, 600)
	huge := strings.Repeat("QUJD", compaction.RecallBytes/4)
	media := `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + picture + `"}}`
	bytesOf := base64.RawStdEncoding.DecodedLen(len(picture))
	for _, row := range []struct{ name, call, block, want string }{
		{"a result as text", `{"type":"tool_use","id":"c","name":"Read","input":{"file_path":"/src/a.go"}}`,
			`{"type":"tool_result","tool_use_id":"c","content":"` + long + `"}`,
			`{"type":"tool_result","tool_use_id":"c","content":"[Trimmed: ~501 chars; Read /src/a.go; recall({\"entry\": \"e0003#0\"}) reads it]"}`},
		{"of the threshold", `{"type":"tool_use","id":"c","name":"Read","input":{"file_path":"/src/a.go"}}`,
			`{"type":"tool_result","tool_use_id":"c","content":"` + long[1:] + `"}`, ``},
		{"with all its fields, as a list, of a part", `{"type":"tool_use","id":"c","name":"mcp__fs__read_file","input":{"path":"/src/a.go","offset":10,"limit":20}}`,
			`{"type":"tool_result","is_error":true,"cache_control":{"type":"ephemeral"},"content":[{"type":"text","text":"` + long + `"},{"type":"text","text":"more"}],"tool_use_id":"c"}`,
			`{"type":"tool_result","is_error":true,"cache_control":{"type":"ephemeral"},"content":"[Trimmed: ~505 chars; mcp__fs__read_file /src/a.go lines 10-29; recall({\"entry\": \"e0003#0\"}) reads it]","tool_use_id":"c"}`},
		{"a command", `{"type":"tool_use","id":"c","name":"Bash","input":{"command":"cat <<EOF\n` + strings.Repeat("word ", 40) + `"}}`,
			`{"type":"tool_result","tool_use_id":"c","content":"` + longer + `"}`,
			`{"type":"tool_result","tool_use_id":"c","content":"[Trimmed: ~600 chars; Bash cat <<EOF word word word word word word word word word word word word word word…; recall({\"entry\": \"e0003#0\"}) reads it]"}`},
		{"of an unknown tool", `{"type":"tool_use","id":"c","name":"lookup","input":{"n":1,"name":"tides] of [x"}}`,
			`{"type":"tool_result","tool_use_id":"c","content":"` + long + `"}`,
			`{"type":"tool_result","tool_use_id":"c","content":"[Trimmed: ~501 chars; lookup tides) of (x; recall({\"entry\": \"e0003#0\"}) reads it]"}`},
		{"a short result with a picture", `{"type":"tool_use","id":"c","name":"shot","input":{}}`,
			`{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"here"},` + media + `]}`,
			fmt.Sprintf(`{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"here"},{"type":"text","text":"[Trimmed: image/png, %d bytes, 800x600; recall({\"entry\": \"e0003#0\"}) reads it]"}]}`, bytesOf)},
		{"a long result with a picture", `{"type":"tool_use","id":"c","name":"shot","input":{}}`,
			`{"type":"tool_result","tool_use_id":"c","content":[` + media + `,{"type":"text","text":"` + long + `"}]}`,
			fmt.Sprintf(`{"type":"tool_result","tool_use_id":"c","content":"[Trimmed: ~501 chars; shot; image/png, %d bytes, 800x600; recall({\"entry\": \"e0003#0\"}) reads it]"}`, bytesOf)},
		{"a long result with many pictures", `{"type":"tool_use","id":"c","name":"shot","input":{}}`,
			`{"type":"tool_result","tool_use_id":"c","content":[` + strings.Repeat(media+",", 6) + `{"type":"text","text":"` + long + `"}]}`,
			fmt.Sprintf(`{"type":"tool_result","tool_use_id":"c","content":"[Trimmed: ~501 chars; shot; %sand 2 more images; recall({\"entry\": \"e0003#0\"}) reads it]"}`, strings.Repeat(fmt.Sprintf("image/png, %d bytes, 800x600; ", bytesOf), 4))},
		{"a picture that recall cannot bring", `{"type":"tool_use","id":"c","name":"shot","input":{}}`,
			`{"type":"tool_result","tool_use_id":"c","content":[{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"` + huge + `"}},{"type":"text","text":"` + long + `"}]}`,
			fmt.Sprintf(`{"type":"tool_result","tool_use_id":"c","content":"[Trimmed: ~501 chars; shot; image/jpeg, %d bytes; recall({\"entry\": \"e0003#0\"}) reads its text]"}`, len(huge)/4*3)},
		{"blocks that recall cannot tell", `{"type":"tool_use","id":"c","name":"find","input":{}}`,
			`{"type":"tool_result","tool_use_id":"c","content":[{"type":"tool_reference","tool_name":"x"},{"type":"text","text":"` + long + `"}]}`, ``},
		{"no content", `{"type":"tool_use","id":"c","name":"find","input":{}}`, `{"type":"tool_result","tool_use_id":"c"}`, ``},
		{"a picture of a person", ``, media, fmt.Sprintf(`{"type":"text","text":"[Trimmed: image/png, %d bytes, 800x600; recall({\"entry\": \"e0003#0\"}) shows it]"}`, bytesOf)},
		{"one that is too large", ``, `{"type":"image","source":{"data":"` + huge + `","type":"base64","media_type":"image/jpeg"}}`,
			fmt.Sprintf(`{"type":"text","text":"[Trimmed: image/jpeg, %d bytes; too large for recall: ask for it again]"}`, len(huge)/4*3)},
		{"one elsewhere", ``, `{"type":"image","source":{"type":"url","url":"https://x.test/a.png"}}`,
			`{"type":"text","text":"[Trimmed: image, https://x.test/a.png; recall({\"entry\": \"e0003#0\"}) shows it]"}`},
		{"a document", ``, `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"` + strings.Repeat("QUJD", 999) + `"},"title":"The [tides]"}`,
			`{"type":"text","text":"[Trimmed: application/pdf, 2997 bytes, The [tides]; recall({\"entry\": \"e0003#0\"}) shows it]"}`},
		{"a document of words", ``, `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"` + long + long + `"}}`, ``},
		{"words", ``, `{"type":"text","text":"` + long + long + `"}`, ``},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := &world{}
			w.add(tidemark.NewText(tidemark.User, "go"))
			call := tidemark.Text("so")
			if row.call != "" {
				call = blockOf(t, row.call)
			}
			w.add(tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{call}})
			w.add(tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{blockOf(t, row.block)}})
			w.add(tidemark.NewText(tidemark.Assistant, "done"))
			edits, gain, after := w.trimView(t, 0)
			if row.want == "" {
				if len(edits) > 0 || gain.After != gain.Before || gain.Prefix != gain.Size {
					t.Fatalf("%+v, %+v", edits, gain)
				}
				return
			}
			if got := string(after.Items[2].Message.Content[0].AppendJSON(nil)); got != row.want {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
			if kind, ok := compaction.Trimmed(after.Items[2].Stubbed[0]); !ok || kind != blockOf(t, row.block).Type {
				t.Errorf("stub of %q, %v", kind, ok)
			}
		})
	}
}

// TestTrimInputs holds what of the input of a call leaves, and that nothing else of it changes by a byte.
func TestTrimInputs(t *testing.T) {
	long := strings.Repeat("y", 600)
	const first, next = `"[Trimmed: ~600 chars; recall({\"entry\": \"e0002#0\"}) reads it]"`, `"[Trimmed: ~600 chars]"`
	for _, row := range []struct{ name, tool, input, want string }{
		{"what is written", "Write", `{"file_path":"/a.go","content":"L"}`, `{"file_path":"/a.go","content":F}`},
		{"what is changed", "Edit", `{"old_string":"L","new_string":"L","replace_all":false}`, `{"old_string":F,"new_string":N,"replace_all":false}`},
		{"in a list", "MultiEdit", `{"file_path":"/a","edits":[{"old_string":"L","new_string":"s"},{"old_string":"s","new_string":"L"}]}`,
			`{"file_path":"/a","edits":[{"old_string":F,"new_string":"s"},{"old_string":"s","new_string":N}]}`},
		{"what stands beside it", "Write", `{"content":"L","note":"L"}`, `{"content":F,"note":N}`},
		{"behind an object in a list", "x", `{"body":[{"path":"s"},"LLLLLLLLLLL"],"path":[{"body":"s"},"L"]}`,
			`{"body":[{"path":"s"},"[Trimmed: ~6600 chars; recall({\"entry\": \"e0002#0\"}) reads it]"],"path":[{"body":"s"},"L"]}`},
		{"other fields of a writer", "Write", `{"file_path":"/a","text":"L"}`, `{"file_path":"/a","text":F}`},
		{"any long string", "mcp__x__send", `{"to":"a","n":1.0,"big":12345678901234567890,"body":"L","deep":{"list":["L",{"k":null}]}}`,
			`{"to":"a","n":1.0,"big":12345678901234567890,"body":F,"deep":{"list":[N,{"k":null}]}}`},
		{"not what says what it does", "Bash", `{"command":"L","description":"L"}`, ``},
		{"there it says less", "x", `{"o":{"command":"LLLLLLLLLLL","path":"L"},"body":"s"}`, `{"o":{"command":"[Trimmed: ~6600 chars; recall({\"entry\": \"e0002#0\"}) reads it]","path":"L"},"body":"s"}`},
		{"nor what others say it with", "x", `{"query":"L"}`, ``},
		{"but not without end", "x", `{"query":"LLLLLLLLLLL"}`, `{"query":"[Trimmed: ~6600 chars; recall({\"entry\": \"e0002#0\"}) reads it]"}`},
		{"an escaped name", "Write", `{"cont\u0065nt":"L"}`, `{"cont\u0065nt":F}`},
		{"escapes are characters", "Write", `{"content":"` + strings.Repeat(`\u00e9`, 400) + `"}`, ``},
		{"names are no strings", "x", `{"L":1,"LL":"s"}`, ``},
		{"short ones of a long input", "x", `{"a":"` + long[:400] + `","b":"` + long[:400] + `"}`, ``},
		{"no object", "x", `["L"]`, ``},
		{"nor a string", "x", `"L"`, ``},
		{"what paging reads again", "memory_release", `{"paths":["L"]}`, ``},
		{"the task's state", "task_state", `{"goal":"L"}`, ``},
	} {
		t.Run(row.name, func(t *testing.T) {
			fill := strings.NewReplacer("L", long, "F", first, "N", next)
			input := fill.Replace(row.input)
			w := &world{}
			w.add(tidemark.NewText(tidemark.User, "go"))
			w.add(tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{blockOf(t, `{"type":"tool_use","id":"c","name":"`+row.tool+`","input":`+input+`,"caller":{"type":"direct"}}`)}})
			w.add(tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult("c", "ok", false)}})
			w.add(tidemark.NewText(tidemark.Assistant, "done"))
			edits, _, after := w.trimView(t, 0)
			want := input
			if row.want != "" {
				want = fill.Replace(row.want)
			}
			want = `{"type":"tool_use","id":"c","name":"` + row.tool + `","input":` + want + `,"caller":{"type":"direct"}}`
			if got := string(after.Items[1].Message.Content[0].AppendJSON(nil)); got != want || len(edits) > 0 != (row.want != "") {
				t.Errorf("%d edits\ngot  %s\nwant %s", len(edits), got, want)
			}
		})
	}
}

// TestTrimThreshold: it counts as the paper's trimmer does, and has a least.
func TestTrimThreshold(t *testing.T) {
	for _, row := range []struct {
		threshold int
		text      string
		leaves    bool
	}{
		{0, strings.Repeat("x", 500), false},
		{0, strings.Repeat("x", 501), true},
		{0, strings.Repeat("é", 500), false},
		{0, strings.Repeat("🌊", 250), false},
		{0, strings.Repeat("🌊", 251), true},
		{2000, strings.Repeat("x", 2000), false},
		{2000, strings.Repeat("x", 2001), true},
		{1, strings.Repeat("x", 50), false},
		{50, strings.Repeat("x", 60), false}, // its stub would be longer
		{50, strings.Repeat("x", 150), true},
		{-5, strings.Repeat("x", 150), true},
	} {
		w := &world{}
		w.add(tidemark.NewText(tidemark.User, "go"))
		w.add(tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("c", "run", nil)}})
		w.add(tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult("c", row.text, false)}})
		w.add(tidemark.NewText(tidemark.Assistant, "done"))
		if edits, _, _ := w.trimView(t, row.threshold); len(edits) > 0 != row.leaves {
			t.Errorf("threshold %d, %.3s of %d bytes: %d edits", row.threshold, row.text, len(row.text), len(edits))
		}
	}
}

// TestTrimStays: what nobody has read, what a turn in work must send back, what is pinned, what the task needs and what
// something else stands for.
func TestTrimStays(t *testing.T) {
	long := strings.Repeat("word ", 300)
	think := blockOf(t, `{"type":"thinking","thinking":"hm","signature":"s"}`)
	hidden := blockOf(t, `{"type":"redacted_thinking","data":"zzzz"}`)
	call := func(id, tool string) tidemark.Block {
		return tidemark.ToolUse(id, tool, []byte(`{"content":"`+long+`"}`))
	}
	answer := func(ids ...string) tidemark.Message {
		m := tidemark.Message{Role: tidemark.User}
		for _, id := range ids {
			m.Content = append(m.Content, tidemark.ToolResult(id, long, false))
		}
		return m
	}
	says := func(b ...tidemark.Block) tidemark.Message {
		return tidemark.Message{Role: tidemark.Assistant, Content: b}
	}
	user := func(s string) tidemark.Message { return tidemark.NewText(tidemark.User, s) }
	picture := tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.Text("see"), blockOf(t, `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`+pngOf(t, 9, 9)+`"}}`)}}
	done := tidemark.NewText(tidemark.Assistant, "done")
	for _, row := range []struct {
		name     string
		messages []tidemark.Message
		pinned   int    // item, from 1
		want     string // handles that leave
	}{
		{"all of a turn that ended", []tidemark.Message{user("go"), says(think, hidden, call("a", "Write")), answer("a"), done}, 0, "2:1 2:2 2:3 3:1"},
		{"the newest calls without a reply", []tidemark.Message{user("go"), says(think, call("a", "Write")), answer("a"), says(hidden, call("b", "Write"), call("c", "Write")), answer("b"), answer("c")}, 0, "2:2 3:1"},
		{"calls over several messages", []tidemark.Message{user("go"), says(call("z", "Write")), answer("z"), says(call("a", "Write")), says(call("b", "Write")), answer("a", "b")}, 0, "2:1 3:1"},
		{"calls without any result", []tidemark.Message{user("go"), says(think, call("a", "Write"))}, 0, ""},
		{"with what a person wrote behind them", []tidemark.Message{user("go"), says(think, call("z", "Write")), answer("z"), says(think, call("a", "Write")), answer("a"), user("stop")}, 0, "2:2 3:1"},
		{"a turn before the one in work", []tidemark.Message{user("go"), says(think, call("a", "Write")), answer("a"), says(think, done.Content[0]), user("go"), says(think, call("b", "Write")), answer("b")}, 0, "2:1 2:2 3:1 4:1"},
		{"a picture that nobody answered", []tidemark.Message{picture, done, picture}, 0, "1:2"},
		{"nobody said anything yet", []tidemark.Message{picture}, 0, ""},
		{"what is pinned, with its exchange", []tidemark.Message{user("go"), says(think, call("a", "Write")), answer("a"), says(call("b", "Write")), answer("b"), done}, 3, "4:1 5:1"},
		{"the newest state of the task", []tidemark.Message{user("go"), says(call("a", "task_state")), answer("a"), says(call("b", "task_state")), answer("b"), done}, 0, "3:1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := &world{}
			for _, m := range row.messages {
				w.add(m)
			}
			v, _ := w.view(t)
			if row.pinned > 0 {
				v.Items[row.pinned-1].Pinned = true
			}
			edits, _ := compaction.Trim{}.Plan(v)
			var got []string
			for _, e := range edits {
				got = append(got, fmt.Sprintf("%d:%d", w.at[e.From], e.Block))
			}
			if s := strings.Join(got, " "); s != row.want {
				t.Errorf("%q leave, want %q", s, row.want)
			}
		})
	}
}

// TestTrimStaysWhatOthersStub: a stub of another strategy is none to trim, nor are several blocks that stand for one.
func TestTrimStaysWhatOthersStub(t *testing.T) {
	long := strings.Repeat("word ", 300)
	w := &world{}
	w.add(tidemark.NewText(tidemark.User, "go"))
	w.add(tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("a", "x", nil), tidemark.ToolUse("b", "x", nil), tidemark.ToolUse("c", "x", nil)}})
	e := w.add(tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult("a", long, false), tidemark.ToolResult("b", long, false), tidemark.ToolResult("c", long, false)}})
	w.add(tidemark.NewText(tidemark.Assistant, "done"))
	_, shown := w.view(t)
	if err := w.act(t, shown, []tidemark.Edit{{From: e, Block: 1, Blocks: []tidemark.Block{tidemark.ToolResult("a", long[1:], false)}},
		{From: e, Block: 2, Blocks: []tidemark.Block{tidemark.ToolResult("b", "s", false), tidemark.Text(long)}}}); err != nil {
		t.Fatal(err)
	}
	edits, _, _ := w.trimView(t, 0)
	if len(edits) != 1 || edits[0].Block != 3 || !strings.Contains(string(edits[0].Blocks[0].AppendJSON(nil)), string(e)+"#2") {
		t.Errorf("%+v", edits)
	}
}

// TestTrimGain: what is told of a plan is what the view then is, and where it changes first.
func TestTrimGain(t *testing.T) {
	w := &world{}
	w.add(tidemark.NewText(tidemark.User, "go"))
	call := w.add(tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.Text("I write it"), tidemark.ToolUse("a", "Write", []byte(`{"content":"`+strings.Repeat("z", 4000)+`"}`))}})
	w.add(tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult("a", strings.Repeat("word ", 2000), false)}})
	w.add(tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{blockOf(t, `{"type":"thinking","thinking":"hm","signature":"`+strings.Repeat("s", 400)+`"}`)}})
	w.add(tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.Text("done")}})
	v, _ := w.view(t)
	v.Fixed, v.Size = 1000, v.Size+1000
	edits, g := compaction.Trim{}.Plan(v)
	after, err := compaction.Preview(v, edits, wide)
	if err != nil {
		t.Fatal(err)
	}
	if g.Before != v.Tokens() || g.After != after.Tokens() || g.Size != after.Size || g.First != call || len(after.Items) != 4 {
		t.Errorf("%+v; then %d of %d tokens, %d items", g, after.Tokens(), after.Size, len(after.Items))
	}
	if most := v.Fixed + v.Items[0].Tokens + v.Items[1].Tokens; g.Prefix <= v.Fixed+v.Items[0].Tokens || g.Prefix >= most-1000 {
		t.Errorf("prefix of %d, want some above %d", g.Prefix, v.Fixed+v.Items[0].Tokens)
	}
	sum := g.Results.Tokens + g.Inputs.Tokens + g.Thinking.Tokens
	if g.Results.Blocks != 1 || g.Inputs.Blocks != 1 || g.Thinking.Blocks != 1 || g.Media.Blocks != 0 || sum > g.Before-g.After || sum < (g.Before-g.After)*9/10 {
		t.Errorf("%+v", g)
	}
	v.Size = v.Fixed + 2*v.Tokens() // the provider counts twice as much
	if _, twice := (compaction.Trim{}).Plan(v); twice.Size != v.Fixed+2*g.After || twice.Prefix != v.Fixed+2*(g.Prefix-v.Fixed) {
		t.Errorf("%+v, and counted %+v", g, twice)
	}
}

// TestTrimmedIsNoTopic: what a stub says is nothing that was talked of.
func TestTrimmedIsNoTopic(t *testing.T) {
	stub := "[Trimmed: ~9000 chars; Read /src/Harbour.go; recall({\"entry\": \"e0003#0\"}) reads it]"
	m := tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult("c", stub, false)}}
	if got := compaction.Topics(m, m, m); len(got) > 0 {
		t.Errorf("topics %q", got)
	}
	m.Content[0] = tidemark.ToolResult("c", "Harbour Trimmed Lighthouse", false)
	if got := compaction.Topics(m, m, m); len(got) == 0 {
		t.Error("no topics at all")
	}
}

// BenchmarkTrim plans and previews a trim of 10,000 messages. Its baseline is decoding them once.
func BenchmarkTrim(b *testing.B) {
	entries, _ := workOf(10_000, 60)
	v, err := compaction.Assemble(entries, nil)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if edits, _ := (compaction.Trim{}).Plan(v); len(edits) == 0 {
			b.Fatal("nothing to trim")
		}
	}
}
