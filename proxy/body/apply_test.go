package body

import (
	"errors"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

func list(raws ...string) [][]byte {
	out := make([][]byte, len(raws))
	for n, s := range raws {
		out[n] = []byte(s)
	}
	return out
}

func scanned(tb testing.TB, d Dialect, raw string) *Request {
	tb.Helper()
	r, err := Scan(d, []byte(raw))
	if err != nil {
		tb.Fatalf("%s: %v", raw, err)
	}
	return r
}

const (
	mark  = `"cache_control":{"type":"ephemeral"}`
	call1 = `{"type":"tool_use","id":"p1","name":"memory_fault","input":{}}`
	call2 = `{"type":"tool_use","id":"p2","name":"memory_release","input":{}}`
	res1  = `{"type":"tool_result","tool_use_id":"p1","content":"one"}`
	res2  = `{"type":"tool_result","tool_use_id":"p2","content":"two"}`
	real1 = `{"type":"tool_use","id":"r1","name":"Read","input":{}}`
	think = `{"type":"thinking","thinking":"t","signature":"s"}`
)

func textJSON(s string) string { return `{"type":"text","text":"` + s + `"}` }

// messageRow is a body, a change of it, and what comes out.
type messageRow struct {
	name, body string
	change     Change
	want       string
}

func messageRows() []messageRow {
	return []messageRow{
		{"nothing", `{"messages":[ ] }`, Change{}, `{"messages":[ ] }`},
		{
			"a block is replaced and keeps its marker",
			`{"messages":[ {"x":1,"role":"user", "content":[ {"type":"text","text":"a"} , {"type":"text","text":"b",` + mark + `} ],"y":1.0} , {"role":"user","content":"z"}]}`,
			Change{Blocks: []BlockChange{{0, 1, []byte(textJSON("B"))}}},
			`{"messages":[ {"x":1,"role":"user", "content":[ {"type":"text","text":"a"} , {"type":"text","text":"B",` + mark + `} ],"y":1.0} , {"role":"user","content":"z"}]}`,
		},
		{
			"a marker of ours does not stay",
			`{"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}`,
			Change{Blocks: []BlockChange{{0, 0, []byte(`{` + mark + `,"type":"text","text":"B"}`)}}},
			`{"messages":[{"role":"user","content":[{"type":"text","text":"B"}]}]}`,
		},
		{
			"a block left out gives its marker to the one before, but not to thinking",
			`{"messages":[{"role":"assistant","content":[` + textJSON("a") + `, ` + think + `, {"type":"text","text":"b",` + mark + `}]}]}`,
			Change{Blocks: []BlockChange{{0, 2, nil}}},
			`{"messages":[{"role":"assistant","content":[{"type":"text","text":"a",` + mark + `}, ` + think + `]}]}`,
		},
		{
			"the first block is left out",
			`{"messages":[{"role":"user","content":[ {"type":"text","text":"a"} , {"type":"text","text":"b"} ]}]}`,
			Change{Blocks: []BlockChange{{0, 0, nil}}},
			`{"messages":[{"role":"user","content":[ {"type":"text","text":"b"} ]}]}`,
		},
		{
			"a string stays a string",
			`{"messages":[{"role":"user","content":"a"}]}`,
			Change{Blocks: []BlockChange{{0, 0, []byte(textJSON("B"))}}},
			`{"messages":[{"role":"user","content":"B"}]}`,
		},
		{
			"a note makes it a list",
			`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}`,
			Change{Note: "n"},
			`{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"n"}]},{"role":"assistant","content":"b"}]}`,
		},
		{
			"a note behind the marker, and a continuation behind it",
			`{"messages":[{"role":"user","content":[{"type":"text","text":"a",` + mark + `}]}]}`,
			Change{Note: "n", Append: list(`{"role":"assistant","content":[`+call1+`]}`, `{"role":"user","content":[`+res1+`]}`)},
			`{"messages":[{"role":"user","content":[{"type":"text","text":"a",` + mark + `},{"type":"text","text":"n"}]},{"role":"assistant","content":[` + call1 + `]},{"role":"user","content":[` + res1 + `]}]}`,
		},
		{
			"a note without messages",
			`{"messages":[]}`,
			Change{Note: "n"},
			`{"messages":[{"role":"user","content":[{"type":"text","text":"n"}]}]}`,
		},
		{
			"tools behind a marked last one",
			`{"tools": [ {"name":"a",` + mark + `} ] ,"messages":[]}`,
			Change{Tools: list(`{"name":"m"}`)},
			`{"tools": [ {"name":"a",` + mark + `},{"name":"m"} ] ,"messages":[]}`,
		},
		{"tools where there are none", `{"a":1, "messages":[]}`, Change{Tools: list(`{"name":"m"}`)}, `{"a":1, "tools":[{"name":"m"}],"messages":[]}`},
		{"tools are null, behind the messages", `{"messages":[],"tools":null}`, Change{Tools: list(`{"name":"m"}`, `{"name":"n"}`)}, `{"messages":[],"tools":[{"name":"m"},{"name":"n"}]}`},
		{"tools are empty", `{"tools":[ ],"messages":[]}`, Change{Tools: list(`{"name":"m"}`)}, `{"tools":[{"name":"m"}],"messages":[]}`},
		{
			"a span, and what else was to change in it",
			`{"messages":[{"role":"user","content":"a"}, {"role":"assistant","content":"b"}, {"role":"user","content":[{"type":"text","text":"c",` + mark + `}]}, {"role":"assistant","content":"d"}]}`,
			Change{
				Spans:  []SpanChange{{From: 1, To: 2, Messages: list(`{"role":"assistant","content":"sum"}`)}},
				Blocks: []BlockChange{{2, 0, nil}}, Inserts: []Insert{{Item: 1, Calls: list(call1)}},
			},
			`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"text","text":"sum",` + mark + `}]}, {"role":"assistant","content":"d"}]}`,
		},
		{
			"a span that is gone",
			`{"messages":[{"role":"user","content":"a"}, {"role":"assistant","content":"b"}, {"role":"user","content":"c"}]}`,
			Change{Spans: []SpanChange{{From: 0, To: 1}}},
			`{"messages":[{"role":"user","content":"c"}]}`,
		},
	}
}

// TestApplyMessages has bodies with odd white space, so that what is touched too widely is seen.
func TestApplyMessages(t *testing.T) {
	for _, row := range messageRows() {
		t.Run(row.name, func(t *testing.T) {
			r := scanned(t, Messages, row.body)
			got, err := r.Apply(row.change)
			if err != nil || string(got) != row.want {
				t.Errorf("%v\n got %s\nwant %s", err, got, row.want)
			}
			scanned(t, Messages, string(got))
		})
	}
}

// insertRow is a message of the assistant and the next one ("" for none), what is inserted into the former, and
// what comes out behind the first message.
type insertRow struct {
	name, assistant, next string
	inserts               []Insert
	want                  string
}

func wholeRows() []insertRow {
	return []insertRow{
		{
			"beside a real call", `[` + textJSON("a") + `, ` + real1 + `]`, `[{"type":"tool_result","tool_use_id":"r1"}]`,
			[]Insert{{Visible: 1, Calls: list(call1), Results: list(res1)}},
			`{"role":"assistant","content":[` + textJSON("a") + `,` + call1 + `, ` + real1 + `]}, {"role":"user","content":[` + res1 + `,{"type":"tool_result","tool_use_id":"r1"}]}`,
		},
		{
			"behind all of a text", `[` + textJSON("a") + `,` + textJSON("b") + `]`, `"c"`,
			[]Insert{{Offset: 1, Calls: list(call1), Results: list(res1)}},
			`{"role":"assistant","content":[` + textJSON("a") + `,` + call1 + `,` + textJSON("b") + `]}, {"role":"user","content":[` + res1 + `,` + textJSON("c") + `]}`,
		},
		{
			"markers of what is put back do not come back", `[` + textJSON("a") + `]`, `"b"`,
			[]Insert{{Visible: 1, Blocks: list(`{"type":"text","text":"x",` + mark + `}`), Calls: list(`{"type":"tool_use","id":"p1",` + mark + `,"name":"memory_fault","input":{}}`), Results: list(`{` + mark + `,"type":"tool_result","tool_use_id":"p1","content":"one"}`)}},
			`{"role":"assistant","content":[` + textJSON("a") + `,` + textJSON("x") + `,` + call1 + `]}, {"role":"user","content":[` + res1 + `,` + textJSON("b") + `]}`,
		},
		{
			"results before a string", `"a"`, `"b"`,
			[]Insert{{Visible: 1, Calls: list(call1), Results: list(res1)}},
			`{"role":"assistant","content":[` + textJSON("a") + `,` + call1 + `]}, {"role":"user","content":[` + res1 + `,` + textJSON("b") + `]}`,
		},
		{
			"results without a next message", `"a"`, ``,
			[]Insert{{Visible: 1, Calls: list(call1, call2), Results: list(res1, res2)}},
			`{"role":"assistant","content":[` + textJSON("a") + `,` + call1 + `,` + call2 + `]},{"role":"user","content":[` + res1 + `,` + res2 + `]}`,
		},
		{
			"a string without text", `""`, `"c"`,
			[]Insert{{Calls: list(call1), Results: list(res1)}},
			`{"role":"assistant","content":[` + call1 + `]}, {"role":"user","content":[` + res1 + `,` + textJSON("c") + `]}`,
		},
		{
			"nothing but a text that was tags", `[` + textJSON("a") + `]`, `"c"`,
			[]Insert{{Visible: 1, Blocks: list(textJSON("tags"))}},
			`{"role":"assistant","content":[` + textJSON("a") + `,` + textJSON("tags") + `]}, {"role":"user","content":"c"}`,
		},
	}
}

func splitRows() []insertRow {
	return []insertRow{
		{
			"a split between thinking", `[` + think + `,` + textJSON("a") + `,` + think + `,` + textJSON("b") + `]`, `"c"`,
			[]Insert{{Visible: 1, Calls: list(call1), Results: list(res1), Split: true}},
			`{"role":"assistant","content":[` + think + `,` + textJSON("a") + `,` + call1 + `]},{"role":"user","content":[` + res1 + `]},{"role":"assistant","content":[` + think + `,` + textJSON("b") + `]}, {"role":"user","content":"c"}`,
		},
		{
			"a split behind thinking only", `[` + think + `,` + think + `,` + textJSON("b") + `]`, `"c"`,
			[]Insert{{Thinking: 1, Calls: list(call1), Results: list(res1), Split: true}},
			`{"role":"assistant","content":[` + think + `,` + call1 + `]},{"role":"user","content":[` + res1 + `]},{"role":"assistant","content":[` + think + `,` + textJSON("b") + `]}, {"role":"user","content":"c"}`,
		},
		{
			"thinking that the client dropped", `[` + textJSON("b") + `]`, `"c"`,
			[]Insert{{Thinking: 2, Calls: list(call1), Results: list(res1), Split: true}},
			`{"role":"assistant","content":[` + call1 + `]},{"role":"user","content":[` + res1 + `]},{"role":"assistant","content":[` + textJSON("b") + `]}, {"role":"user","content":"c"}`,
		},
		{
			"a split with nothing left", `"a"`, `"c"`,
			[]Insert{{Visible: 1, Calls: list(call1), Results: list(res1), Split: true}},
			`{"role":"assistant","content":[` + textJSON("a") + `,` + call1 + `]},{"role":"user","content":[` + res1 + `]}, {"role":"user","content":"c"}`,
		},
		{
			"a message of nothing else", `[]`, `"c"`,
			[]Insert{{Blocks: list(textJSON("tags")), Calls: list(call1), Results: list(res1), Split: true}},
			`{"role":"assistant","content":[` + textJSON("tags") + `,` + call1 + `]},{"role":"user","content":[` + res1 + `]}, {"role":"user","content":"c"}`,
		},
		{
			"two legs in one text", `[{"type":"text","text":"abc",` + mark + `}]`, `"c"`,
			[]Insert{
				{Offset: 1, Calls: list(call1), Results: list(res1), Split: true},
				{Offset: 2, Calls: list(call2), Results: list(res2), Split: true},
			},
			`{"role":"assistant","content":[` + textJSON("a") + `,` + call1 + `]},{"role":"user","content":[` + res1 + `]},` +
				`{"role":"assistant","content":[` + textJSON("b") + `,` + call2 + `]},{"role":"user","content":[` + res2 + `]},` +
				`{"role":"assistant","content":[{"type":"text","text":"c",` + mark + `}]}, {"role":"user","content":"c"}`,
		},
		{
			"a leg of calls, then one beside a real call", `[` + textJSON("a") + `,` + real1 + `]`, `[{"type":"tool_result","tool_use_id":"r1"}]`,
			[]Insert{
				{Visible: 1, Calls: list(call2), Results: list(res2)},
				{Calls: list(call1), Results: list(res1), Split: true},
			},
			`{"role":"assistant","content":[` + call1 + `]},{"role":"user","content":[` + res1 + `]},{"role":"assistant","content":[` + textJSON("a") + `,` + call2 + `,` + real1 + `]}, ` +
				`{"role":"user","content":[` + res2 + `,{"type":"tool_result","tool_use_id":"r1"}]}`,
		},
	}
}

// TestInserts puts calls back between the blocks of a message of the assistant, which stands between two of the
// user.
func TestInserts(t *testing.T) {
	for _, row := range append(wholeRows(), splitRows()...) {
		t.Run(row.name, func(t *testing.T) {
			const head = `{"messages":[{"role":"user","content":"q"}, `
			body := head + `{"role":"assistant","content":` + row.assistant + `}`
			if row.next != "" {
				body += `, {"role":"user","content":` + row.next + `}`
			}
			for n := range row.inserts {
				row.inserts[n].Item = 1
			}
			r := scanned(t, Messages, body+`]}`)
			got, err := r.Apply(Change{Inserts: row.inserts})
			if want := head + row.want + `]}`; err != nil || string(got) != want {
				t.Errorf("%v\n got %s\nwant %s", err, got, want)
			}
			scanned(t, Messages, string(got))
		})
	}
}

func TestApplyRefuses(t *testing.T) {
	r := scanned(t, Messages, `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"text","text":"é"}]}]}`)
	other := scanned(t, Messages, `{"messages":[]}`)
	for name, c := range map[string]Change{
		"no item":              {Blocks: []BlockChange{{2, 0, nil}}},
		"no block":             {Blocks: []BlockChange{{0, 1, nil}}},
		"twice":                {Blocks: []BlockChange{{0, 0, []byte(textJSON("a"))}, {0, 0, []byte(textJSON("b"))}}},
		"nothing left":         {Blocks: []BlockChange{{0, 0, nil}}},
		"no JSON":              {Blocks: []BlockChange{{0, 0, []byte(`{"type":"text"`)}}},
		"no block of ours":     {Blocks: []BlockChange{{0, 0, []byte(`{}`)}}},
		"two blocks":           {Blocks: []BlockChange{{0, 0, []byte(`{"type":"a"},{"type":"b"}`)}}},
		"a span backwards":     {Spans: []SpanChange{{From: 1, To: 0}}},
		"a span beyond":        {Spans: []SpanChange{{From: 1, To: 2}}},
		"spans over another":   {Spans: []SpanChange{{From: 0, To: 1}, {From: 1, To: 1}}},
		"a span of no message": {Spans: []SpanChange{{From: 0, To: 1, Messages: list(`{"role":"function","content":""}`)}}},
		"into the user":        {Inserts: []Insert{{Item: 0, Calls: list(call1)}}},
		"too far":              {Inserts: []Insert{{Item: 1, Visible: 2, Calls: list(call1)}}},
		"within a letter":      {Inserts: []Insert{{Item: 1, Offset: 1, Calls: list(call1)}}},
		"behind the text":      {Inserts: []Insert{{Item: 1, Offset: 3, Calls: list(call1)}}},
		"nothing to insert":    {Inserts: []Insert{{Item: 1}}},
		"a bad message":        {Append: list(`{"role":"user"}`)},
		"a bad tool":           {Tools: list(`{"name":"a"}}`)},
		"another's trim":       {Trim: &Trim{of: other, tools: make([]toolEdit, 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := r.Apply(c); !errors.Is(err, tidemark.ErrInvalid) {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}
