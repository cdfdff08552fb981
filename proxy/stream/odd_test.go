package stream

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// events is a stream of the data given.
func events(list ...string) string {
	return "data: " + strings.Join(list, "\n\ndata: ") + "\n\n"
}

// through puts one leg through a filter, byte by byte.
func through(t *testing.T, d Dialect, in string) (string, Turn) {
	t.Helper()
	return run(t, Options{Dialect: d, Phantom: ours, Tags: true, Stream: true}, [][]byte{[]byte(in)}, func() int { return 1 })
}

func begin(i int, block string) string {
	return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, block)
}

func delta(i int, d string) string {
	return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, i, d)
}

func wordsOf(i int, s string) string {
	return delta(i, `{"type":"text_delta","text":`+str(s)+`}`)
}

func stop(i int) string { return fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i) }

const emptyText = `{"type":"text","text":""}`

// TestMessagesOdd holds what a stream of the Messages API may hold beside the usual.
func TestMessagesOdd(t *testing.T) {
	cite := delta(0, `{"type":"citations_delta","citation":{"cited_text":"x"}}`)
	phantom := begin(0, `{"type":"tool_use","id":"p","name":"memory_fault","input":{}}`)
	rows := []struct {
		name     string
		in, want []string
	}{
		{"a block of tags never starts, others move up, a ping stays", []string{begin(0, emptyText), `{"type":"ping"}`, wordsOf(0, tags), stop(0), begin(1, emptyText), wordsOf(1, "x"), stop(1)},
			[]string{`{"type":"ping"}`, begin(0, emptyText), wordsOf(0, "x"), stop(0)}},
		{"nor does one with blanks around", []string{begin(0, emptyText), wordsOf(0, "\n"), wordsOf(0, tags), wordsOf(0, "\n"), stop(0)}, nil},
		{"citations of a block of tags go with it", []string{begin(0, `{"type":"text","text":"","citations":[]}`), cite, wordsOf(0, tags), stop(0)}, nil},
		{"citations stay", []string{begin(0, emptyText), cite, wordsOf(0, "a"), cite, stop(0)}, []string{begin(0, emptyText), cite, wordsOf(0, "a"), cite, stop(0)}},
		{"a delta before a tag keeps its bytes", []string{begin(0, emptyText), `{"type":"content_block_delta","index":0,"delta":{"text":"\u0041\n","type":"text_delta"},"x":1}`, wordsOf(0, tags), wordsOf(0, "b"), stop(0)},
			[]string{begin(0, emptyText), `{"type":"content_block_delta","index":0,"delta":{"text":"\u0041\n","type":"text_delta"},"x":1}`, wordsOf(0, "b"), stop(0)}},
		{"a delta with a tag keeps its other fields", []string{begin(0, emptyText), `{"type":"content_block_delta","index":0,"delta":{"text":` + str("A\n"+tags+"b") + `,"type":"text_delta"},"x":1}`, stop(0)},
			[]string{begin(0, emptyText), `{"type":"content_block_delta","index":0,"delta":{"text":"A\nb","type":"text_delta"},"x":1}`, stop(0)}},
		{"words in the start", []string{begin(0, `{"type":"text","text":`+str(tags+"Hi")+`,"n":1}`), wordsOf(0, " you"), stop(0)},
			[]string{begin(0, `{"type":"text","text":"","n":1}`), wordsOf(0, "Hi you"), stop(0)}},
		{"what is held comes before the stop", []string{begin(0, emptyText), wordsOf(0, "a\n<memory_cleanup>\ndrop: block:ABCDEFG"), stop(0)},
			[]string{begin(0, emptyText), wordsOf(0, "a\n"), wordsOf(0, "<memory_cleanup>\ndrop: block:ABCDEFG"), stop(0)}},
		{"blocks at once", []string{begin(0, emptyText), begin(1, `{"type":"thinking","thinking":"","signature":""}`), wordsOf(0, "a"), stop(1), stop(0)},
			[]string{begin(0, emptyText), begin(1, `{"type":"thinking","thinking":"","signature":""}`), wordsOf(0, "a"), stop(1), stop(0)}},
		{"the index behind the delta", []string{phantom, stop(0), begin(1, emptyText), `{"delta":{"type":"text_delta","text":"a"},"index":1,"type":"content_block_delta"}`, stop(1)},
			[]string{begin(0, emptyText), `{"delta":{"type":"text_delta","text":"a"},"index":0,"type":"content_block_delta"}`, stop(0)}},
		{"an escaped name", []string{begin(0, `{"type":"tool\u005fuse","id":"p","name":"memory\u005ffault","input":{}}`), delta(0, `{"type":"input_json_delta","partial_json":"{}"}`), stop(0)}, nil},
		{"the second ping does not wait", []string{begin(0, emptyText), `{"type":"ping"}`, `{"type":"ping","n":2}`, wordsOf(0, "a"), stop(0)},
			[]string{`{"type":"ping"}`, `{"type":"ping","n":2}`, begin(0, emptyText), wordsOf(0, "a"), stop(0)}},
	}
	for _, row := range rows {
		out, _ := through(t, Messages, events(row.in...))
		if got := datas(out); !slices.Equal(got, row.want) {
			t.Errorf("%s:\n%s\nwant\n%s", row.name, strings.Join(got, "\n"), strings.Join(row.want, "\n"))
		}
	}
}

// TestMovedLines: a frame with data of several lines is renumbered, its other lines stay.
func TestMovedLines(t *testing.T) {
	in := events(begin(0, `{"type":"tool_use","id":"p","name":"memory_fault","input":{}}`), stop(0)) +
		"event: content_block_start\n: note\ndata: {\"type\":\"content_block_start\",\ndata:  \"index\":1,\nid: 4\ndata: \"content_block\":{\"type\":\"server_tool_use\"}}\n\n"
	want := "event: content_block_start\n: note\ndata: {\"type\":\"content_block_start\",  \"index\":0, \"content_block\":{\"type\":\"server_tool_use\"}}\nid: 4\n\n"
	for _, eol := range []string{"\n", "\r\n", "\r"} {
		if out, _ := through(t, Messages, strings.ReplaceAll(in, "\n", eol)); out != strings.ReplaceAll(want, "\n", eol) {
			t.Errorf("%q", out)
		}
	}
}

func chunkOf(delta, finish, more string) string {
	return `{"id":"a","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]` + more + `}`
}

// TestChatOdd holds what servers of chat completions do beside the usual.
func TestChatOdd(t *testing.T) {
	first := chunkOf(`{"role":"assistant","content":null}`, "null", "")
	theirs := `{"index":%d,"id":"c","type":"function","function":{"name":"look","arguments":"{}"}}`
	phantom := `{"index":0,"id":"p","type":"function","function":{"name":"memory_fault","arguments":"{}"}}`
	rows := []struct {
		name     string
		in, want []string
	}{
		{"both calls in one chunk", []string{first, chunkOf(`{"tool_calls":[`+phantom+`,`+fmt.Sprintf(theirs, 1)+`]}`, `"tool_calls"`, ""), "[DONE]"},
			[]string{first, chunkOf(`{"tool_calls":[`+fmt.Sprintf(theirs, 0)+`]}`, `"tool_calls"`, ""), "[DONE]"}},
		{"who speaks comes with a call of ours", []string{chunkOf(`{"role":"assistant","content":null,"tool_calls":[`+phantom+`]}`, "null", ""), chunkOf("{}", `"tool_calls"`, ""), "[DONE]"},
			[]string{first, chunkOf(`{"content":"(no content)"}`, "null", ""), chunkOf("{}", `"stop"`, ""), "[DONE]"}},
		{"the name comes late", []string{chunkOf(`{"tool_calls":[{"index":0,"id":"c","function":{"arguments":""}}]}`, "null", ""), chunkOf(`{"tool_calls":[{"index":0,"function":{"name":"look","arguments":"{}"}}]}`, "null", "")},
			[]string{chunkOf(`{"tool_calls":[`+fmt.Sprintf(theirs, 0)+`]}`, "null", "")}},
		{"no index, arguments as an object, reason stop", []string{chunkOf(`{"tool_calls":[{"id":"p","function":{"name":"memory_fault","arguments":{"paths":[]}}},{"id":"c","function":{"name":"look","arguments":{}}}]}`, `"stop"`, "")},
			[]string{chunkOf(`{"tool_calls":[{"id":"c","function":{"name":"look","arguments":{}}}]}`, `"stop"`, "")}},
		{"all in one chunk", []string{chunkOf(`{"role":"assistant","content":`+str("a\n"+tags+"b")+`}`, `"stop"`, `,"usage":{"prompt_tokens":1}`)},
			[]string{chunkOf(`{"role":"assistant","content":"a\nb"}`, `"stop"`, `,"usage":{"prompt_tokens":1}`)}},
		{"what is held comes before the reason", []string{chunkOf(`{"content":"a"}`, "null", ""), chunkOf(`{"content":"\n<mem"}`, "null", ""), chunkOf("{}", `"stop"`, "")},
			[]string{chunkOf(`{"content":"a"}`, "null", ""), chunkOf(`{"content":"\n<mem"}`, "null", ""), chunkOf("{}", `"stop"`, "")}},
		{"reasoning beside the text", []string{chunkOf(`{"content":"","reasoning_content":"hm"}`, "null", ""), chunkOf(`{"content":`+str(tags)+`,"reasoning_content":"m"}`, "null", "")},
			[]string{chunkOf(`{"content":"","reasoning_content":"hm"}`, "null", ""), chunkOf(`{"content":"","reasoning_content":"m"}`, "null", "")}},
		{"parts, filters", []string{`{"id":"","choices":[],"prompt_filter_results":[]}`, chunkOf(`{"content":[{"type":"text","text":"a"}]}`, "null", ""), `{"id":"a","choices":[{"index":0,"content_filter_offsets":{}}]}`},
			[]string{`{"id":"","choices":[],"prompt_filter_results":[]}`, chunkOf(`{"content":[{"type":"text","text":"a"}]}`, "null", ""), `{"id":"a","choices":[{"index":0,"content_filter_offsets":{}}]}`}},
		{"an error", []string{first, `{"error":{"code":"overloaded","message":"no"}}`}, []string{first, `{"error":{"code":"overloaded","message":"no"}}`}},
	}
	for _, row := range rows {
		out, turn := through(t, Chat, events(row.in...))
		if got := datas(out); !slices.Equal(got, row.want) {
			t.Errorf("%s:\n%s\nwant\n%s", row.name, strings.Join(got, "\n"), strings.Join(row.want, "\n"))
		}
		if strings.Contains(row.name, "error") && turn.Whole {
			t.Errorf("%s: %+v", row.name, turn.Legs[0])
		}
	}
}

// TestArguments holds the input of calls that is no JSON object.
func TestArguments(t *testing.T) {
	mk := func(args string) string {
		return chunkOf(`{"tool_calls":[{"index":0,"id":"c","function":{"name":"look","arguments":`+str(args)+`}},{"index":1,"function":{"name":"memory_fault","arguments":`+str(args)+`}}]}`, `"tool_calls"`, "")
	}
	for args, want := range map[string]string{"": "{}", ` {"a": 1.0} `: `{"a": 1.0}`, `{"a`: `{"arguments":"{\"a"}`, `[1]`: `{"arguments":"[1]"}`} {
		own := want
		if strings.HasPrefix(want, `{"arguments"`) {
			own = "{}"
		}
		_, turn := through(t, Chat, events(mk(args)))
		if got := string(turn.Seen.Content[0].Input); got != want {
			t.Errorf("%q: %s, want %s", args, got, want)
		}
		if p := turn.Legs[0].Phantom[0]; p.ID != "call_a_2" || string(p.Input) != own {
			t.Errorf("%q: ours is %s with %s", args, p.ID, p.Input)
		}
	}
	big := strings.Repeat("x", maxInput/4)
	list := []string{begin(0, `{"type":"tool_use","id":"p","name":"memory_fault","input":{}}`)}
	for _, piece := range []string{`{"paths":["`, big, big, big, big, `"]}`} {
		list = append(list, delta(0, `{"type":"input_json_delta","partial_json":`+str(piece)+`}`))
	}
	out, turn := run(t, Options{Phantom: ours, Stream: true}, [][]byte{[]byte(events(append(list, stop(0))...))}, atOnce)
	if out != "" || string(turn.Legs[0].Phantom[0].Input) != "{}" {
		t.Errorf("%.200q, input of %d bytes", out, len(turn.Legs[0].Phantom[0].Input))
	}
}

// TestBounds: what is too long passes as long as nothing was taken, and is an error behind that.
func TestBounds(t *testing.T) {
	long := events(wordsOf(0, strings.Repeat("x", maxFrame)), `{"type":"message_stop"}`)
	for _, size := range []int{1 << 30, 1 << 20} {
		out, turn := run(t, Options{Phantom: ours, Tags: true, Stream: true}, [][]byte{[]byte(long)}, func() int { return size })
		if out != long || turn.Whole {
			t.Errorf("%d of %d bytes, whole %v", len(out), len(long), turn.Whole)
		}
		f := New(Options{Phantom: ours, Stream: true})
		if _, err := f.Feed([]byte(events(begin(0, `{"type":"tool_use","id":"p","name":"memory_fault","input":{}}`), stop(0)))); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Feed([]byte(long)); !errors.Is(err, tidemark.ErrTooLarge) {
			t.Errorf("error %v", err)
		}
		if _, turn := f.Finish(); turn.Whole {
			t.Error("whole behind an error")
		}
	}
	for _, stream := range []bool{true, false} {
		f, err := New(Options{Stream: stream}), error(nil)
		for range maxAnswer>>20 + 1 {
			if _, e := f.Feed([]byte(strings.Repeat(": comment      \n", 1<<16))); e != nil {
				err = e
			}
		}
		if !errors.Is(err, tidemark.ErrTooLarge) {
			t.Errorf("error %v", err)
		}
	}
	f := New(Options{})
	f.Streams(true)
	f.Next()
	f.Streams(false)
	if _, err := f.Feed([]byte("{}")); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("a continuation in another form: %v", err)
	}
}

// TestHeld: a comment, and what waits, is sent as soon as it can be.
func TestHeld(t *testing.T) {
	f := New(Options{Phantom: ours, Tags: true, Stream: true})
	steps := []struct{ in, out string }{
		{": ping\n", ": ping\n"},
		{events(begin(0, emptyText)), ""},
		{events(wordsOf(0, "Hello")), events(begin(0, emptyText), wordsOf(0, "Hello"))},
		{events(wordsOf(0, " you\n  ")), ""},
		{events(wordsOf(0, "x")), events(wordsOf(0, " you\n  "), wordsOf(0, "x"))},
		{events(wordsOf(0, "\n<memory_cleanup>\ndrop: block:ABCDEFGHIJKLMN")), events(wordsOf(0, "\n"))},
		{events(`{"type":"ping"}`), events(`{"type":"ping"}`)},
		{events(wordsOf(0, "OP#0\n</memory_cleanup>\nEnd")), events(wordsOf(0, "End"))},
		{events(wordsOf(0, "B\n"+strings.TrimSpace(tags)+" ")), events(wordsOf(0, "B\n"))},
		{events(wordsOf(0, "C")), events(wordsOf(0, " C"))},
		{"event: ping\nda", ""},
		{"ta: {\"type\":\"ping\"}\n\n", "event: ping\ndata: {\"type\":\"ping\"}\n\n"},
	}
	for _, s := range steps {
		if out, err := f.Feed([]byte(s.in)); err != nil || string(out) != s.out {
			t.Errorf("%q: %q, want %q, %v", s.in, out, s.out, err)
		}
	}
	if _, turn := f.Finish(); len(turn.Ops) != 2 || turn.Ops[0].Handle != "ABCDEFGHIJKLMNOP#0" {
		t.Errorf("operations %+v", turn.Ops)
	}
}
