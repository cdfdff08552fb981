package stream

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestGathered: what is taken note of has all that a stream brought in pieces: citations, signatures, ids that come late.
func TestGathered(t *testing.T) {
	cite := func(n int) string {
		return delta(0, fmt.Sprintf(`{"type":"citations_delta","citation":{"n":%d}}`, n))
	}
	in := events(begin(0, `{"type":"text","text":"","citations":[{"n":0}]}`), cite(1), wordsOf(0, "x"), cite(2), stop(0),
		begin(1, `{"type":"thinking","thinking":"Hm","signature":"ab"}`), delta(1, `{"type":"thinking_delta","thinking":"m."}`), delta(1, `{"type":"signature_delta","signature":"cd"}`), stop(1),
		begin(3, `{"type":"compaction","content":""}`), delta(3, `{"type":"compaction_delta","content":"bc"}`), stop(3),
		begin(2, `{"type":"text","text":""}`), wordsOf(2, "y"), strings.ReplaceAll(cite(3), `"index":0`, `"index":2`), stop(2))
	_, turn := through(t, Messages, in)
	want := `{"role":"assistant","content":[{"type":"text","text":"x","citations":[{"n":0},{"n":1},{"n":2}]},{"type":"thinking","thinking":"Hmm.","signature":"abcd"},{"type":"compaction","content":"bc"},{"type":"text","text":"y","citations":[{"n":3}]}]}`
	if got := string(turn.Seen.AppendJSON(nil)); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	calls := func(list ...string) []string {
		var chunks []string
		for _, c := range list {
			chunks = append(chunks, chunkOf(`{"tool_calls":[`+c+`]}`, "null", ""))
		}
		_, turn := through(t, Chat, events(append(chunks, chunkOf("{}", `"tool_calls"`, ""))...))
		var got []string
		for _, b := range turn.Seen.Content {
			got = append(got, b.ID+" "+b.Name+" "+string(b.Input))
		}
		return got
	}
	for name, c := range map[string]struct{ list, want []string }{
		"an id that comes late": {[]string{`{"index":0,"function":{"name":"look"}}`, `{"index":0,"id":"c","function":{"arguments":"{}"}}`, `{"index":0,"id":"c"}`}, []string{"c look {}"}},
		"two at one place":      {[]string{`{"index":0,"id":"a","function":{"name":"look","arguments":"{}"}}`, `{"index":0,"id":"b","function":{"name":"now","arguments":"{}"}}`}, []string{"a look {}", "b now {}"}},
		"back and forth": {[]string{`{"index":0,"id":"a","function":{"name":"look","arguments":"{\"n\":"}}`, `{"index":1,"id":"b","function":{"name":"now","arguments":"{"}}`, `{"index":0,"function":{"arguments":"1}"}}`, `{"index":1,"function":{"arguments":"}"}}`},
			[]string{`a look {"n":1}`, "b now {}"}},
		"without places": {[]string{`{"id":"a","function":{"name":"look","arguments":"{"}}`, `{"function":{"arguments":"}"}}`, `{"id":"b","function":{"name":"now","arguments":"{}"}}`}, []string{"a look {}", "b now {}"}},
	} {
		if got := calls(c.list...); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestCommentsStay: what a proxy says in comments goes on, also from a frame that is taken out.
func TestCommentsStay(t *testing.T) {
	in := ": one\ndata: " + begin(0, `{"type":"tool_use","id":"p","name":"memory_fault","input":{}}`) + "\n: two\n\ndata: " + stop(0) + "\n\n" + events(begin(1, emptyText), wordsOf(1, "x"), stop(1))
	out, _ := through(t, Messages, in)
	for _, want := range []string{": one\n", ": two\n"} {
		if strings.Count(out, want) != 1 {
			t.Errorf("no %q in %q", want, out)
		}
	}
}

// TestFormOfLegs: each later answer comes in the form of the first, and one that is too long behind it is an error.
func TestFormOfLegs(t *testing.T) {
	for _, first := range []bool{false, true} {
		for legs := 1; legs <= 3; legs++ {
			for _, then := range []bool{false, true} {
				f := New(Options{Stream: first})
				for range legs {
					f.EndLeg()
					f.Next()
				}
				f.Streams(then)
				body := "{}"
				if then {
					body = events(`{"type":"ping"}`)
				}
				if _, err := f.Feed([]byte(body)); (err == nil) != (then == first) {
					t.Errorf("%t, behind %d answers %t: %v", first, legs, then, err)
				}
			}
		}
	}
	for legs := 1; legs <= 2; legs++ {
		f := New(Options{Stream: true})
		for range legs {
			f.EndLeg()
			f.Next()
		}
		if _, err := f.Feed([]byte(events(wordsOf(0, strings.Repeat("x", maxFrame))))); err == nil {
			t.Errorf("behind %d answers an event is longer than may be, and passes", legs)
		}
	}
}
