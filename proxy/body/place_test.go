package body

import (
	"errors"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// TestPlaces holds where things go that have no place of their own.
func TestPlaces(t *testing.T) {
	nullMark := `"cache_control":null`
	for _, row := range []messageRow{
		{
			"results come before another message of the assistant",
			`{"messages":[{"role":"user","content":"q"}, {"role":"assistant","content":"a"}, {"role":"assistant","content":"b"}]}`,
			Change{Inserts: []Insert{{Item: 1, Visible: 1, Calls: list(call1), Results: list(res1)}}},
			`{"messages":[{"role":"user","content":"q"}, {"role":"assistant","content":[` + textJSON("a") + `,` + call1 + `]},{"role":"user","content":[` + res1 + `]}, {"role":"assistant","content":"b"}]}`,
		},
		{
			"a marker that is null is none: the one before it moves",
			`{"messages":[{"role":"user","content":[{"type":"text","text":"a",` + mark + `}]}, {"role":"assistant","content":[{"type":"text","text":"b",` + nullMark + `}]}, {"role":"user","content":"c"}]}`,
			Change{Spans: []SpanChange{{From: 0, To: 1, Messages: list(`{"role":"user","content":"sum"}`)}}},
			`{"messages":[{"role":"user","content":[{"type":"text","text":"sum",` + mark + `}]}, {"role":"user","content":"c"}]}`,
		},
		{
			"where all are null there is none to move",
			`{"messages":[{"role":"user","content":[{"type":"text","text":"a",` + nullMark + `}]}, {"role":"user","content":"c"}]}`,
			Change{Spans: []SpanChange{{From: 0, To: 0, Messages: list(`{"role":"user","content":"sum"}`)}}},
			`{"messages":[{"role":"user","content":"sum"}, {"role":"user","content":"c"}]}`,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := scanned(t, Messages, row.body).Apply(row.change)
			if err != nil || string(got) != row.want {
				t.Errorf("%v\n got %s\nwant %s", err, got, row.want)
			}
		})
	}
}

// TestSystemMessages holds where a system message goes whose neighbours left.
func TestSystemMessages(t *testing.T) {
	said := func(role, text string) string { return `{"role":"` + role + `","content":"` + text + `"}` }
	one, two := said("system", "one"), said("system", "two")
	more := `{"role":"system","content":"more","output_config":{}}`
	served := `{"role":"assistant","content":[{"type":"server_tool_use","id":"s"}]}`
	both := `{"role":"system","content":[` + textJSON("one") + `,` + textJSON("two") + `]}`
	for _, row := range []struct {
		name, came string
		span       SpanChange
		want       string
	}{
		{"two become one", said("user", "a") + `,` + one + `,` + said("assistant", "b") + `,` + said("user", "c") + `,` + two + `,` + said("assistant", "d"),
			SpanChange{From: 0, To: 4, Messages: list(said("user", "sum")), Keep: []int{1, 4}},
			said("user", "sum") + `,` + both + `,` + said("assistant", "d")},
		{"one that has more goes on to the next place", said("user", "a") + `,` + one + `,` + said("assistant", "b") + `,` + said("user", "c") + `,` + more + `,` + said("assistant", "d") + `,` + said("user", "e"),
			SpanChange{From: 0, To: 4, Messages: list(said("user", "sum")), Keep: []int{1, 4}},
			said("user", "sum") + `,` + one + `,` + said("assistant", "d") + `,` + said("user", "e") + `,` + more},
		{"and where there is no other, nothing leaves", said("user", "a") + `,` + one + `,` + said("assistant", "b") + `,` + said("user", "c") + `,` + more + `,` + said("assistant", "d"),
			SpanChange{From: 0, To: 4, Messages: list(said("user", "sum")), Keep: []int{1, 4}},
			said("user", "a") + `,` + one + `,` + said("assistant", "b") + `,` + said("user", "c") + `,` + more + `,` + said("assistant", "d")},
		{"before an answer that the client begins", said("user", "a") + `,` + said("assistant", "b") + `,` + said("user", "c") + `,` + one + `,` + said("assistant", "d"),
			SpanChange{From: 2, To: 2},
			said("user", "a") + `,` + one + `,` + said("assistant", "b") + `,` + said("assistant", "d")},
		{"behind a tool of the API", said("user", "a") + `,` + served + `,` + said("user", "c") + `,` + one + `,` + said("assistant", "d"),
			SpanChange{From: 2, To: 2},
			said("user", "a") + `,` + served + `,` + one + `,` + said("assistant", "d")},
		{"not behind a role that nobody knows", said("user", "a") + `,` + said("critic", "b") + `,` + said("user", "c") + `,` + one + `,` + said("assistant", "d") + `,` + said("user", "e"),
			SpanChange{From: 2, To: 2},
			said("user", "a") + `,` + said("critic", "b") + `,` + said("assistant", "d") + `,` + said("user", "e") + `,` + one},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := scanned(t, Messages, `{"messages":[`+row.came+`]}`).Apply(Change{Spans: []SpanChange{row.span}})
			if want := `{"messages":[` + row.want + `]}`; err != nil || string(got) != want {
				t.Errorf("%v\n got %s\nwant %s", err, got, want)
			}
		})
	}
}

// TestChangeBeforeTrim: a block that is changed is not trimmed as well.
func TestChangeBeforeTrim(t *testing.T) {
	r := scanned(t, Messages, `{"messages":[{"role":"user","content":[`+textJSON("a")+`,`+textJSON("b")+`]}]}`)
	c := Change{
		Blocks: []BlockChange{{0, 0, []byte(textJSON("changed"))}},
		Trim:   &Trim{of: r, texts: []BlockChange{{0, 0, []byte(textJSON("trimmed"))}, {0, 1, []byte(textJSON("too"))}}},
	}
	got, err := r.Apply(c)
	if want := `{"messages":[{"role":"user","content":[` + textJSON("changed") + `,` + textJSON("too") + `]}]}`; err != nil || string(got) != want {
		t.Errorf("%v\n got %s\nwant %s", err, got, want)
	}
}

// TestTwice: a member that stands twice may mean either to whoever reads it, so such a block is not read.
func TestTwice(t *testing.T) {
	for name, block := range map[string]string{
		"content": `{"type":"tool_result","tool_use_id":"r1","content":"a","content":"b"}`,
		"text":    `{"type":"text","text":"a","text":"b"}`,
		"marker":  `{"type":"text","text":"a",` + mark + `,` + mark + `}`,
	} {
		if _, err := Scan(Messages, []byte(`{"messages":[{"role":"user","content":[`+block+`]}]}`)); !errors.Is(err, tidemark.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
