package body

import (
	"testing"

	"github.com/tidemark-ai/tidemark"
)

const (
	chatCall1  = `{"id":"p1","type":"function","function":{"name":"memory_fault","arguments":"{}"}}`
	chatReal   = `{"id":"r1","x":1,"type":"function","function":{"name":"Read","arguments":"{\"file\": \"a\"}"}}`
	chatResult = `{"role":"tool","tool_call_id":"p1","content":"one"}`
)

// TestChatItems converts what clients send to messages of the Messages API.
func TestChatItems(t *testing.T) {
	for _, row := range []struct {
		name, messages string
		want           []string
	}{
		{"instructions are none", `{"role":"system","content":"s"},{"role":"developer","content":[]},{"role":"user","content":"a"}`, []string{`{"role":"user","content":"a"}`}},
		{
			"calls and results",
			`{"role":"assistant","content":"a","tool_calls":[` + chatReal + `,{"id":"r2","type":"function","function":{"name":"B","arguments":"not"}},{"id":"r3","type":"function","function":{"name":"C","arguments":""}}]},` +
				`{"role":"tool","tool_call_id":"r1","content":"x"},{"role":"tool","tool_call_id":"r2","content":[{"type":"text","text":"y"}]},{"role":"user","content":"u"}`,
			[]string{
				`{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"r1","name":"Read","input":{"file": "a"}},` +
					`{"type":"tool_use","id":"r2","name":"B","input":{"arguments":"not"}},{"type":"tool_use","id":"r3","name":"C","input":{}}]}`,
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"r1","content":"x"},{"type":"tool_result","tool_use_id":"r2","content":[{"type":"text","text":"y"}]}]}`,
				`{"role":"user","content":"u"}`,
			},
		},
		{
			"parts",
			`{"role":"user","content":[{"type":"text","text":"a","y":1},{"type":"image_url","image_url":{"url":"https://x/y.png"}},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA\/A","detail":"low"}},{"type":"input_audio","input_audio":{}}]}`,
			[]string{`{"role":"user","content":[{"type":"text","text":"a","y":1},{"type":"image","source":{"type":"url","url":"https://x/y.png"}},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA/A"}},{"type":"input_audio","input_audio":{}}]}`},
		},
		{
			"silent ones",
			`{"role":"assistant","content":null},{"role":"assistant"},{"role":"assistant","content":"","tool_calls":[` + chatCall1 + `]},{"role":"tool","tool_call_id":"p1","content":""}`,
			[]string{
				`{"role":"assistant","content":[]}`, `{"role":"assistant","content":[]}`,
				`{"role":"assistant","content":[{"type":"tool_use","id":"p1","name":"memory_fault","input":{}}]}`,
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"p1","content":""}]}`,
			},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := scanned(t, Chat, `{"messages":[`+row.messages+`]}`)
			if len(r.Items) != len(row.want) {
				t.Fatalf("%d items, want %d", len(r.Items), len(row.want))
			}
			for n, it := range r.Items {
				if string(it.Raw) != row.want[n] {
					t.Errorf("item %d:\n got %s\nwant %s", n, it.Raw, row.want[n])
				}
				var m tidemark.Message
				if err := m.UnmarshalJSON(it.Raw); err != nil {
					t.Errorf("item %d: %v", n, err)
				}
			}
		})
	}
}

// chatRow is a list of messages, a change of it, and what comes out.
type chatRow struct {
	name, messages string
	change         Change
	want           string
}

func chatRows() []chatRow {
	const sys = `{"role":"system","content":"s"}`
	return []chatRow{
		{
			"a result is replaced",
			` {"role":"tool","x":1,"content":"long","tool_call_id":"r1"} , {"role":"tool","tool_call_id":"r2","content":[{"type":"text","text":"b"}],"z":2.0} `,
			Change{Blocks: []BlockChange{
				{0, 0, []byte(`{"type":"tool_result","tool_use_id":"r1","content":"é\n"}`)},
				{0, 1, []byte(`{"type":"tool_result","tool_use_id":"r2","is_error":true,"content":[` + textJSON("p") + `,` + textJSON("q") + `]}`)},
			}},
			` {"role":"tool","x":1,"content":"é\n","tool_call_id":"r1"} , {"role":"tool","tool_call_id":"r2","content":"[error] p\nq","z":2.0} `,
		},
		{
			"arguments are replaced",
			`{"role":"assistant","tool_calls":[` + chatReal + `, ` + chatCall1 + `],"reasoning_content":"r"}`,
			Change{Blocks: []BlockChange{{0, 0, []byte(`{"type":"tool_use","id":"r1","name":"Read","input":{"file":"…"}}`)}}},
			`{"role":"assistant","tool_calls":[{"id":"r1","x":1,"type":"function","function":{"name":"Read","arguments":"{\"file\":\"…\"}"}},` + chatCall1 + `],"reasoning_content":"r"}`,
		},
		{
			"a part is replaced, the image stays as it came",
			`{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA\/A","detail":"low"}}]}`,
			Change{Blocks: []BlockChange{{0, 0, []byte(textJSON("B"))}}},
			`{"role":"user","content":[{"type":"text","text":"B"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA\/A","detail":"low"}}]}`,
		},
		{
			"an image is replaced",
			`{"role":"user","content":[{"type":"image_url","image_url":{"url":"u"}}],"name":"n"}`,
			Change{Blocks: []BlockChange{{0, 0, []byte(textJSON("B"))}}},
			`{"role":"user","content":[{"type":"text","text":"B"}],"name":"n"}`,
		},
		{
			"a call beside a real one",
			`{"role":"assistant","content":"a","tool_calls":[` + chatReal + `]}, {"role":"tool","tool_call_id":"r1","content":"x"}`,
			Change{Inserts: []Insert{{Visible: 2, Calls: list(call1), Results: list(res1)}}},
			`{"role":"assistant","content":"a","tool_calls":[` + chatReal + `,` + chatCall1 + `]},` + chatResult + `, {"role":"tool","tool_call_id":"r1","content":"x"}`,
		},
		{
			"a split in the text",
			sys + `,{"role":"assistant","content":"abc","id":"i","tool_calls":[` + chatReal + `]}, {"role":"tool","tool_call_id":"r1","content":"x"}`,
			Change{Inserts: []Insert{{Offset: 1, Calls: list(call1), Results: list(res1), Split: true}}},
			sys + `,{"role":"assistant","content":"a","id":"i","tool_calls":[` + chatCall1 + `]},` + chatResult + `,{"role":"assistant","content":"bc","tool_calls":[` + chatReal + `]}, {"role":"tool","tool_call_id":"r1","content":"x"}`,
		},
		{
			"a split before all, results before a question",
			`{"role":"assistant","content":"abc"}, {"role":"user","content":"q"}`,
			Change{Inserts: []Insert{
				{Calls: list(call1), Results: list(res1), Split: true},
				{Visible: 1, Calls: list(call2), Results: list(res2)},
			}},
			`{"role":"assistant","content":null,"tool_calls":[` + chatCall1 + `]},` + chatResult + `,{"role":"assistant","content":"abc","tool_calls":[{"id":"p2","type":"function","function":{"name":"memory_release","arguments":"{}"}}]},` +
				`{"role":"tool","tool_call_id":"p2","content":"two"}, {"role":"user","content":"q"}`,
		},
		{"a note to a string", `{"role":"user","content":"q"},` + sys, Change{Note: "n"}, `{"role":"user","content":"q\n\nn"},` + sys},
		{"a note to parts", `{"role":"user","content":[ {"type":"text","text":"q"} ]}`, Change{Note: "n"}, `{"role":"user","content":[{"type":"text","text":"q"},{"type":"text","text":"n"}]}`},
		{"a note behind results", chatResult, Change{Note: "n"}, chatResult + `,{"role":"user","content":"n"}`},
		{
			"a continuation",
			`{"role":"user","content":"q"}, ` + sys,
			Change{Append: list(`{"role":"assistant","content":[`+think+`,`+textJSON("a")+`,`+call1+`]}`, `{"role":"user","content":[`+res1+`,`+textJSON("b")+`]}`)},
			`{"role":"user","content":"q"}, ` + sys + `,{"role":"assistant","content":"a","tool_calls":[` + chatCall1 + `]},` + chatResult + `,{"role":"user","content":"b"}`,
		},
		{
			"a span", sys + `,{"role":"user","content":"q"}, {"role":"assistant","content":"a"}, ` + sys + `, {"role":"user","content":"r"}`,
			Change{Spans: []SpanChange{{From: 0, To: 1, Messages: list(`{"role":"user","content":"sum"}`)}}},
			sys + `,{"role":"user","content":"sum"}, ` + sys + `, {"role":"user","content":"r"}`,
		},
	}
}

func TestApplyChat(t *testing.T) {
	for _, row := range chatRows() {
		t.Run(row.name, func(t *testing.T) {
			r := scanned(t, Chat, `{"messages":[`+row.messages+`]}`)
			got, err := r.Apply(row.change)
			if want := `{"messages":[` + row.want + `]}`; err != nil || string(got) != want {
				t.Errorf("%v\n got %s\nwant %s", err, got, want)
			}
			scanned(t, Chat, string(got))
		})
	}
}

func TestChatTools(t *testing.T) {
	r := scanned(t, Chat, `{"tools":[{"type":"function","function":{"name":"a"}},{"type":"custom","custom":{"name":"b"}}],"messages":[]}`)
	if len(r.Tools) != 2 || r.Tools[0].Name != "a" || r.Tools[1].Name != "b" {
		t.Errorf("tools %+v", r.Tools)
	}
	got, err := r.Apply(Change{Tools: list(`{"name":"m","description":"d","input_schema":{"type":"object"}}`)})
	want := `{"tools":[{"type":"function","function":{"name":"a"}},{"type":"custom","custom":{"name":"b"}},{"type":"function","function":{"name":"m","description":"d","parameters":{"type":"object"}}}],"messages":[]}`
	if err != nil || string(got) != want {
		t.Errorf("%v\n got %s\nwant %s", err, got, want)
	}
}

// TestSeveralAnswers: a request for several answers is not read, and so passes as it is.
func TestSeveralAnswers(t *testing.T) {
	for n, ok := range map[string]bool{"1": true, "null": true, "2": false, `"x"`: false} {
		if _, err := Scan(Chat, []byte(`{"n":`+n+`,"messages":[{"role":"user","content":"q"}]}`)); (err == nil) != ok {
			t.Errorf("n %s: %v", n, err)
		}
	}
}
