package stream

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/provider"
)

// TestQueueBounded: frames whose text is not visible yet wait only up to a bound; their text is not lost.
func TestQueueBounded(t *testing.T) {
	f := New(Options{Phantom: ours, Tags: true, Stream: true})
	var got strings.Builder
	feed := func(s string) {
		t.Helper()
		out, err := f.Feed([]byte(s))
		if err != nil {
			t.Fatal(err)
		}
		got.Write(out)
	}
	feed(events(begin(0, emptyText)))
	frame := events(wordsOf(0, " "))
	const n = 3 * maxQueue / 80
	for range n {
		feed(frame)
		if g := f.leg.parts[0].gate; g.size > maxQueue+len(frame) {
			t.Fatalf("%d bytes wait", g.size)
		}
	}
	feed(events(wordsOf(0, "x"), stop(0), `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{}}`, `{"type":"message_stop"}`))
	out, turn := f.Finish()
	got.Write(out)
	if want := strings.Repeat(" ", n) + "x"; len(turn.Seen.Content) != 1 || turn.Seen.Content[0].Text != want {
		t.Errorf("seen %.100s", turn.Seen.AppendJSON(nil))
	}
	if c := strings.Count(got.String(), `"content_block_start"`); c != 1 {
		t.Errorf("%d blocks begin", c)
	}
}

// TestInputBounded: of the input of a call of ours no more is kept than is read.
func TestInputBounded(t *testing.T) {
	piece := strings.Repeat("x", 200_000)
	f := New(Options{Phantom: ours, Stream: true})
	if _, err := f.Feed([]byte(events(begin(0, `{"type":"tool_use","id":"p","name":"memory_fault","input":{}}`)))); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if _, err := f.Feed([]byte(events(delta(0, `{"type":"input_json_delta","partial_json":"`+piece+`"}`)))); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(f.leg.parts[0].input); n > maxInput+len(piece) {
		t.Errorf("%d bytes are kept", n)
	}
	f = New(Options{Dialect: Chat, Phantom: ours, Stream: true})
	for i := range 20 {
		call := `{"index":0,"function":{"arguments":"` + piece + `"}}`
		if i == 0 {
			call = `{"index":0,"id":"p","function":{"name":"memory_fault","arguments":"` + piece + `"}}`
		}
		if _, err := f.Feed([]byte(events(chunkOf(`{"tool_calls":[`+call+`]}`, "null", "")))); err != nil {
			t.Fatal(err)
		}
		if n := len(f.leg.parts[1].input); n > maxInput || (i+1)*len(piece) > maxInput && n > 0 {
			t.Errorf("chat: %d bytes are kept", n)
		}
	}
}

// TestOpenIsNotWhole: an answer whose last block never ended is not whole, whatever its end says.
func TestOpenIsNotWhole(t *testing.T) {
	end := []string{`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{}}`, `{"type":"message_stop"}`}
	for _, closed := range []bool{false, true} {
		in := []string{begin(0, emptyText), wordsOf(0, "a")}
		if closed {
			in = append(in, stop(0))
		}
		if _, turn := through(t, Messages, events(append(in, end...)...)); turn.Whole != closed {
			t.Errorf("closed %t: whole %t", closed, turn.Whole)
		}
	}
}

// TestOddWhole: an answer in one piece of which something cannot be read is passed on as it came.
func TestOddWhole(t *testing.T) {
	phantom := `{"type":"tool_use","id":"p","name":"memory_fault","input":{}}`
	for _, in := range []string{
		`{"id":"a","content":[1,` + phantom + `],"stop_reason":"tool_use"}`,
		`{"id":"a","content":[` + phantom + `,{"text":"no type"}],"stop_reason":"tool_use"}`,
		`{"id":"a","content":[` + phantom + `],"stop_reason":"end_turn","error":{"type":"api_error","message":"no"}}`,
	} {
		out, turn := run(t, Options{Phantom: ours, Tags: true}, [][]byte{[]byte(in)}, atOnce)
		if out != in || turn.Whole {
			t.Errorf("%s: %s, whole %t", in, out, turn.Whole)
		}
	}
}

// TestFigures: a figure below zero is none.
func TestFigures(t *testing.T) {
	for in, want := range map[string]tidemark.Usage{
		`{"input_tokens":-5,"output_tokens":3}`:                              {Output: 3},
		`{"input_tokens":5,"output_tokens":-3,"cache_read_input_tokens":-1}`: {Input: 5},
		`{"input_tokens":5,"cache_creation_input_tokens":0}`:                 {Input: 5},
	} {
		if u, reported := provider.MessagesUsage([]byte(in)); u != want || !reported {
			t.Errorf("%s: %+v, reported %t", in, u, reported)
		}
	}
	for _, in := range []string{`{"input_tokens":-5}`, `{}`, ``, `[]`, `{"input_tokens":"five"}`} {
		if u, reported := provider.MessagesUsage([]byte(in)); u != (tidemark.Usage{}) || reported {
			t.Errorf("%s: %+v, reported %t", in, u, reported)
		}
	}
}

// TestTagsBehindCalls: a text that was nothing but tags goes back behind the call of ours that it stood behind.
func TestTagsBehindCalls(t *testing.T) {
	call := func(i int, name string) []string {
		return []string{begin(i, fmt.Sprintf(`{"type":"tool_use","id":"c%d","name":%q,"input":{}}`, i, name)), stop(i)}
	}
	words := func(i int) []string { return []string{begin(i, emptyText), wordsOf(i, tags), stop(i)} }
	for _, row := range []struct {
		in   [][]string
		want string
	}{
		{[][]string{call(0, "memory_fault"), words(1), call(2, "look")}, "c0;text"},
		{[][]string{words(0), call(1, "memory_fault"), call(2, "look")}, "text+c1"},
		{[][]string{words(0), call(1, "memory_fault"), words(2), call(3, "memory_fault"), call(4, "look")}, "text+c1;text+c3"},
	} {
		var in []string
		for _, part := range row.in {
			in = append(in, part...)
		}
		in = append(in, `{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{}}`, `{"type":"message_stop"}`)
		_, turn := through(t, Messages, events(in...))
		var places []string
		for _, p := range turn.Places {
			var one []string
			for _, b := range p.Blocks {
				one = append(one, b.Type)
			}
			for _, c := range p.Calls {
				one = append(one, c.ID)
			}
			places = append(places, strings.Join(one, "+"))
		}
		if got := strings.Join(places, ";"); got != row.want || !turn.Whole {
			t.Errorf("places %s, want %s", got, row.want)
		}
	}
}
