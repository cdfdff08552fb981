package body

import "testing"

// TestChangesTogether has changes of several kinds that meet in one place.
func TestChangesTogether(t *testing.T) {
	user := func(content string) string { return `{"role":"user","content":` + content + `}` }
	model := func(content string) string { return `{"role":"assistant","content":` + content + `}` }
	beside := Insert{Item: 1, Visible: 1, Calls: list(call1), Results: list(res1)}
	split := Insert{Item: 1, Visible: 1, Calls: list(call2), Results: list(res2), Split: true}
	for _, row := range []struct {
		name, messages string
		change         Change
		want           string
	}{
		{
			"an insert beside a block that changes", user(`"q"`) + `,` + model(`[`+textJSON("a")+`, `+real1+`]`),
			Change{Inserts: []Insert{beside}, Blocks: []BlockChange{{1, 1, []byte(`{"type":"tool_use","id":"r1","name":"Read","input":{"x":1}}`)}}},
			user(`"q"`) + `,` + model(`[`+textJSON("a")+`,`+call1+`, {"type":"tool_use","id":"r1","name":"Read","input":{"x":1}}]`) + `,` + user(`[`+res1+`]`),
		},
		{
			"a block is left out before a split", user(`"q"`) + `,` + model(`[`+textJSON("a")+`,`+textJSON("b")+`]`),
			Change{Inserts: []Insert{split}, Blocks: []BlockChange{{1, 0, nil}}},
			user(`"q"`) + `,` + model(`[`+call2+`]`) + `,` + user(`[`+res2+`]`) + `,` + model(`[`+textJSON("b")+`]`),
		},
		{
			"what stands behind a split is left out", user(`"q"`) + `,` + model(`[`+textJSON("a")+`,`+textJSON("b")+`]`),
			Change{Inserts: []Insert{split}, Blocks: []BlockChange{{1, 1, nil}}},
			user(`"q"`) + `,` + model(`[`+textJSON("a")+`,`+call2+`]`) + `,` + user(`[`+res2+`]`),
		},
		{
			"a text that changes is not parted", user(`"q"`) + `,` + model(`"abc"`),
			Change{Inserts: []Insert{{Item: 1, Offset: 1, Calls: list(call2), Results: list(res2), Split: true}}, Blocks: []BlockChange{{1, 0, []byte(textJSON("B"))}}},
			user(`"q"`) + `,` + model(`[`+call2+`]`) + `,` + user(`[`+res2+`]`) + `,` + model(`[`+textJSON("B")+`]`),
		},
		{
			"results before a span that begins with the user", user(`"q"`) + `,` + model(`"a"`) + `,` + user(`"b"`),
			Change{Inserts: []Insert{beside}, Spans: []SpanChange{{From: 2, To: 2, Messages: list(user(`"sum"`), model(`"ok"`))}}},
			user(`"q"`) + `,` + model(`[`+textJSON("a")+`,`+call1+`]`) + `,` + user(`[`+res1+`,`+textJSON("sum")+`]`) + `,` + model(`"ok"`),
		},
		{
			"results before a span of the assistant, and a note behind all", user(`"q"`) + `,` + model(`"a"`) + `,` + user(`"b"`),
			Change{Inserts: []Insert{beside}, Spans: []SpanChange{{From: 2, To: 2, Messages: list(model(`"ok"`))}}, Note: "n"},
			user(`"q"`) + `,` + model(`[`+textJSON("a")+`,`+call1+`]`) + `,` + user(`[`+res1+`,`+textJSON("n")+`]`) + `,` + model(`"ok"`),
		},
		{
			"results, a block that changes, and a note", user(`"q"`) + `,` + model(`"a"`) + `,` + user(`[{"type":"text","text":"b",`+mark+`}]`),
			Change{Inserts: []Insert{beside}, Blocks: []BlockChange{{2, 0, []byte(textJSON("B"))}}, Note: "n"},
			user(`"q"`) + `,` + model(`[`+textJSON("a")+`,`+call1+`]`) + `,` + user(`[`+res1+`,{"type":"text","text":"B",`+mark+`},`+textJSON("n")+`]`),
		},
		{
			"a note in a span", user(`"q"`),
			Change{Spans: []SpanChange{{From: 0, To: 0, Messages: list(user(`"sum"`))}}, Note: "n"},
			user(`[` + textJSON("sum") + `,` + textJSON("n") + `]`),
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := scanned(t, Messages, `{"messages":[`+row.messages+`]}`)
			got, err := r.Apply(row.change)
			if want := `{"messages":[` + row.want + `]}`; err != nil || string(got) != want {
				t.Errorf("%v\n got %s\nwant %s", err, got, want)
			}
		})
	}
}
