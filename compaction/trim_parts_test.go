package compaction

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/paging"
)

// TestTrimNames: of a command the beginning is shown, of a path the end, each in 80 characters.
func TestTrimNames(t *testing.T) {
	x := func(n int) string { return strings.Repeat("é", n) }
	for _, row := range []struct{ text, head, tail string }{
		{"", "", ""}, {x(80), x(80), x(80)}, {x(81), x(79) + "…", "…" + x(79)}, {"a" + x(80), "a" + x(78) + "…", "…" + x(79)},
		{"a\n b\tc", "a b c", "a\n b\tc"},
	} {
		if head, tail := headOf(row.text), tailOf(row.text); head != row.head || tail != row.tail {
			t.Errorf("%q: %q and %q, want %q and %q", row.text, head, tail, row.head, row.tail)
		}
	}
	if got := headOf(strings.Repeat(" ", 320) + "a"); got != "" {
		t.Errorf("behind 320 blanks %q", got)
	}
	if got := headOf(strings.Repeat(" ", 319) + "ab"); got != "a" {
		t.Errorf("behind 319 blanks %q", got)
	}
	for input, want := range map[string]string{`{}`: "", `{"x":"y"}`: "", `{"name":"tides","path":"a.go"}`: "a.go", `{"id":7}`: "7", `{"query":"a\"b"}`: `a"b`, `[`: ""} {
		if got := identified([]byte(input)); got != want {
			t.Errorf("%s is told by %q, want %q", input, got, want)
		}
	}
	p := trimming{tools: paging.DefaultTools(), calls: map[string]*tidemark.Block{}}
	for i, row := range []struct{ tool, input, want string }{
		{"Read", `{"file_path":"a.go"}`, "Read a.go"}, {"Read", `{"file_path":"a.go","offset":3,"limit":2}`, "Read a.go lines 3-4"}, {"Write", `{"file_path":"a.go","offset":3,"limit":2}`, "Write a.go"},
		{"Read", `{"file_path":"/` + strings.Repeat("d/", 50) + `a.go"}`, "Read …/" + strings.Repeat("d/", 37) + "a.go"},
		{"Bash", `{"command":"make  it\nso"}`, "Bash make it so"}, {"lookup", `{"name":"tides"}`, "lookup tides"}, {"lookup", `{}`, "lookup"},
	} {
		call := tidemark.ToolUse(fmt.Sprint(i), row.tool, []byte(row.input))
		p.calls[call.ID] = &call
		if got := p.named(call.ID); got != row.want {
			t.Errorf("%s of %s is %q, want %q", row.tool, row.input, got, row.want)
		}
	}
	if got := p.named("none"); got != "" {
		t.Errorf("without a call it is %q", got)
	}
}

// TestMediaNames: an image or a document is told by its type, its size where its first bytes say it, its address and its title.
func TestMediaNames(t *testing.T) {
	const gif = "R0lGODlhIAMsAQ==" // GIF89a, 800 by 300
	pad := func(n int) string { return `"pad":"` + strings.Repeat("x", n-len(`"pad":"",`)) + `",` }
	for name, row := range map[string]struct{ raw, want string }{
		"no source":            {`{"type":"image"}`, "image"},
		"inline":               {`{"type":"image","source":{"type":"base64","media_type":"image/gif","data":"` + gif + `"}}`, "image/gif, 12 bytes, 800x300"},
		"no picture in it":     {`{"type":"image","source":{"type":"base64","media_type":"image/gif","data":"QUJDREVG"}}`, "image/gif, 6 bytes"},
		"no text for data":     {`{"type":"image","source":{"type":"base64","media_type":"image/gif","data":123456}}`, "image/gif, 3 bytes"},
		"its data far behind":  {`{"type":"image",` + pad(1000) + `"source":{"type":"base64","media_type":"image/gif","data":"` + gif + `"}}`, "image/gif, 12 bytes"},
		"elsewhere":            {`{"type":"image","source":{"type":"url","url":"https://x.test/[a].png"}}`, "image, https://x.test/[a].png"},
		"text that is no size": {`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"` + gif + `"}}`, "text/plain"},
		"a document":           {`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"` + gif + `"}}`, "application/pdf, 12 bytes"},
		"with a title":         {`{"type":"document","title" : "Tide \"tables\"","source":{"type":"file","file_id":"f"}}`, `document, Tide "tables"`},
		"behind its data":      {`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"` + strings.Repeat("QUJD", 1000) + `"},"title":"Tides"}`, "application/pdf, 3000 bytes, Tides"},
		"amid its data":        {`{"type":"document",` + pad(1020) + `"title":"Tides",` + pad(1020) + `"source":{"type":"file"}}`, "document"},
		"a title that is none": {`{"type":"document","title":null,"source":{"type":"file"}}`, "document"},
		"a picture's title":    {`{"type":"image","title":"Tides","source":{"type":"file"}}`, "image"},
	} {
		b := blockFrom(t, row.raw)
		if got := mediaName(&b); got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
	for raw, want := range map[string]bool{
		`{"type":"image"}`: true, `{"type":"document"}`: true, `{"type":"document","source":{"type":"base64"}}`: true, `{"type":"document","source":{"type":"text"}}`: false,
		`{"type":"document","source":{"type":"content"}}`: false, `{"type":"text","text":"a"}`: false,
	} {
		if b := blockFrom(t, raw); leaves(&b) != want {
			t.Errorf("%s leaves: %v", raw, !want)
		}
	}
}

// TestTrimmedResults: of many pictures in a long result the first four are told, and how many more there were; of a short one
// each becomes a note, of which the first tells the way back.
func TestTrimmedResults(t *testing.T) {
	const image = `{"type":"image","source":{"type":"url","url":"u"}}`
	p := trimming{most: 500, tools: paging.DefaultTools(), calls: map[string]*tidemark.Block{}}
	long, short := `{"type":"text","text":"`+strings.Repeat("x", 501)+`"}`, `{"type":"text","text":"`+strings.Repeat("x", 500)+`"}`
	for _, row := range []struct {
		content string
		want    string // what its content is then, "" where it stays
		kind    *TrimKind
	}{
		{long, `"[Trimmed: ~501 chars; recall({\"entry\": \"h\"}) reads it]"`, &p.gain.Results},
		{short, "", nil},
		{long + strings.Repeat(","+image, 4), `"[Trimmed: ~501 chars; image, u; image, u; image, u; image, u; recall({\"entry\": \"h\"}) reads it]"`, &p.gain.Results},
		{long + strings.Repeat(","+image, 5), `"[Trimmed: ~501 chars; image, u; image, u; image, u; image, u; and 1 more images; recall({\"entry\": \"h\"}) reads it]"`, &p.gain.Results},
		{image + "," + short + "," + image, `[{"type":"text","text":"[Trimmed: image, u; recall({\"entry\": \"h\"}) reads it]"},` + short + `,{"type":"text","text":"[Trimmed: image, u]"}]`, &p.gain.Media},
		{long + `,{"type":"search_result"}`, "", nil},
		{`{"type":"document","source":{"type":"text","data":"` + strings.Repeat("d", 500) + `"}}`, `"[Trimmed: ~554 chars; recall({\"entry\": \"h\"}) reads it]"`, &p.gain.Results},
	} {
		b := blockFrom(t, `{"type":"tool_result","tool_use_id":"c","content":[`+row.content+`]}`)
		got, kind := p.result(&b, "h")
		want := ""
		if row.want != "" {
			want = `{"type":"tool_result","tool_use_id":"c","content":` + row.want + `}`
		}
		if kind != row.kind || got == nil != (want == "") || got != nil && string(got.AppendJSON(nil)) != want {
			t.Errorf("%.60s… becomes %+v\nwant %s", row.content, got, want)
		}
	}
	for _, row := range []struct {
		block tidemark.Block
		want  int
	}{
		{tidemark.ToolUse("c", "n", []byte(`{"a":"é"}`)), 9}, {tidemark.Text("abc"), 0}, {tidemark.ToolResult("c", "é🌊", false), 3},
		{tidemark.Block{Type: tidemark.TypeToolResult, Content: []tidemark.Block{tidemark.Text("ab"), {Type: tidemark.TypeImage}, {Type: "odd"}}}, 2 + len(`{"type":"odd","text":""}`)},
	} {
		if got := trimChars(&row.block); got != row.want {
			t.Errorf("%s has %d characters, want %d", row.block.AppendJSON(nil), got, row.want)
		}
	}
}

// TestTrimsOfItem: stubs of trimming are counted apart from those of others and from thinking that was taken out.
func TestTrimsOfItem(t *testing.T) {
	stub, gone, other := Stubbed{Many: 1, Data: []byte(`{"trim":{"kind":"tool_result","chars":9}}`)}, Stubbed{Data: []byte(`{"trim":{"kind":"thinking"}}`)}, Stubbed{Many: 1, Data: []byte(`{"paging":{}}`)}
	for _, row := range []struct {
		stubbed     []Stubbed
		stubs, out  int
		onlyThought bool
	}{{nil, 0, 0, false}, {[]Stubbed{stub, gone, gone, other}, 1, 2, false}, {[]Stubbed{gone}, 0, 1, true}, {[]Stubbed{gone, gone}, 0, 2, true}, {[]Stubbed{gone, other}, 0, 1, false}, {[]Stubbed{stub}, 1, 0, false}, {[]Stubbed{other}, 0, 0, false}} {
		it := Item{Stubbed: row.stubbed, Stubs: len(row.stubbed)}
		if stubs, out := it.Trims(); stubs != row.stubs || out != row.out || Unthought(it) != row.onlyThought {
			t.Errorf("%+v: %d stubs, %d out, nothing but thinking: %v", row.stubbed, stubs, out, Unthought(it))
		}
	}
	for data, want := range map[string]string{`{"trim":{"kind":"image"}}`: "image", `{"trim":null}`: "", `{"trim":`: "", `{"paging":{}}`: "", "": "", `{ "trim":{"kind":"image"}}`: ""} {
		if kind, ok := Trimmed(Stubbed{Data: []byte(data)}); kind != want || ok != (want != "") {
			t.Errorf("%s: %q, %v", data, kind, ok)
		}
	}
}

// TestTrimCounts: what a plan tells is what leaves by kind, what stays before the first change, and both as the provider counts.
func TestTrimCounts(t *testing.T) {
	thinking := blockFrom(t, `{"type":"thinking","thinking":"`+strings.Repeat("hm ", 99)+`","signature":"s"}`)
	v := saying(tidemark.NewText(tidemark.User, strings.Repeat("go ", 99)), of(tidemark.Assistant, tidemark.Text("I write it"), tidemark.ToolUse("a", "Write", []byte(`{"content":"`+strings.Repeat("z", 4000)+`"}`))),
		of(tidemark.User, tidemark.ToolResult("a", strings.Repeat("word ", 2000), false), blockFrom(t, `{"type":"image","source":{"type":"url","url":"`+strings.Repeat("u", 300)+`"}}`)), of(tidemark.Assistant, thinking), tidemark.NewText(tidemark.Assistant, "done"))
	v.Fixed = 1000
	v.Size += v.Fixed
	edits, g := Trim{}.Plan(v)
	if got := toldAll(edits); got != "e2#2 e3#1 e3#2 e4#1" {
		t.Fatal(got)
	}
	saved := func(item, block, edit int) tidemark.Tokens {
		return tidemark.EstimateBlock(v.Items[item].Message.Content[block]) - tidemark.EstimateBlock(edits[edit].Blocks[0])
	}
	after, err := Preview(v, edits, Budget{Window: 9000})
	if err != nil {
		t.Fatal(err)
	}
	want := TrimGain{Before: v.Tokens(), After: after.Tokens(), Size: after.Size, First: "e2", Prefix: 1000 + v.Items[0].Tokens + tidemark.Estimate(of(tidemark.Assistant, tidemark.Text("I write it"))),
		Inputs: TrimKind{1, saved(1, 1, 0)}, Results: TrimKind{1, saved(2, 0, 1)}, Media: TrimKind{1, saved(2, 1, 2)}, Thinking: TrimKind{1, tidemark.EstimateBlock(thinking)}}
	if g != want {
		t.Errorf("%+v\nwant %+v", g, want)
	}
	m := Trim{Threshold: 30}.Metrics(v, g)
	told := TrimMetrics{Threshold: 50, Results: 1, Inputs: 1, Thinking: 1, Media: 1, Before: v.Size, After: g.Size, Prefix: g.Prefix,
		ResultTokens: g.Results.Tokens, InputTokens: g.Inputs.Tokens, ThinkingTokens: g.Thinking.Tokens, MediaTokens: g.Media.Tokens}
	if m != told {
		t.Errorf("%+v\nwant %+v", m, told)
	}
	rows, told, err := Trim{}.Overlays(v)
	if err != nil || len(rows) != 1 || toldAll(rows[0].Edits) != "e2#2 e3#1 e3#2 e4#1" || rows[0].Before != v.Size || rows[0].After != g.Size || told.Threshold != DefaultTrimThreshold || told.After != g.Size {
		t.Errorf("%+v, %+v, %v", rows, told, err)
	}
	for _, row := range []struct{ part, estimated, counts, want tidemark.Tokens }{{10, 100, 200, 20}, {10, 100, 101, 10}, {10, 100, 100, 10}, {10, 100, 50, 10}, {10, 0, 50, 10}} {
		if got := counted(row.part, row.estimated, row.counts); got != row.want {
			t.Errorf("%d of %d, counted %d: %d, want %d", row.part, row.estimated, row.counts, got, row.want)
		}
	}
	if (Trim{Threshold: -1}).Check() == nil || (Trim{}).Check() != nil || (Trim{Threshold: 1}).Check() != nil {
		t.Error("a threshold is a count of characters, or 0")
	}
}

// TestTrimLeavesRoomInRows: of a call of which more than 128 KiB would be left nothing is taken.
func TestTrimLeavesRoomInRows(t *testing.T) {
	plan := func(n int) []tidemark.Edit {
		edits, _ := Trim{}.Plan(saying(tidemark.NewText(tidemark.User, "go"), of(tidemark.Assistant, tidemark.ToolUse("c", "send", []byte(`{"body":"`+strings.Repeat("b", 600)+`","n":`+strings.Repeat("1", n)+`}`))),
			of(tidemark.User, tidemark.ToolResult("c", "ok", false)), tidemark.NewText(tidemark.Assistant, "done")))
		return edits
	}
	room := 128<<10 - len(plan(1)[0].Blocks[0].AppendJSON(nil)) + 1
	if got := toldAll(plan(room)); got != "e2#1" {
		t.Errorf("what fits: %s", got)
	}
	if got := toldAll(plan(room + 1)); got != "" {
		t.Errorf("one byte more: %s", got)
	}
}
