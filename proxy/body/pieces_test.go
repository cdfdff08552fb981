package body

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestDropMember: an object without one of its members is the object that it would be, with its other bytes.
func TestDropMember(t *testing.T) {
	for raw, want := range map[string]string{
		`{"x":1}`: `{}`, `{"x":1,"a":2}`: `{"a":2}`, `{"a":2,"x":1}`: `{"a":2}`, `{"a":2,"x":{"x":1},"b":[3]}`: `{"a":2,"b":[3]}`, `{"a":2}`: `{"a":2}`, `{}`: `{}`, `{"a":{"x":1}}`: `{"a":{"x":1}}`,
		`{ "a": 2 , "x" : 1 , "b" : 3 }`: `{ "a": 2 , "b" : 3 }`,
	} {
		if got := string(dropMember([]byte(raw), "x")); strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(want, " ", "") {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
}

// TestRemindersEnd: a reminder without an end is none, and with tail only those at the end count.
func TestRemindersEnd(t *testing.T) {
	const one = openTag + "x" + endTag
	for text, want := range map[string][2]int{one: {1, 1}, one + "a" + one: {2, 1}, "a" + openTag: {0, 0}, one + openTag + "x": {1, 0}, one + "a": {1, 0}, one + " " + one + `\n`: {2, 2}, "a": {0, 0}, endTag + openTag: {0, 0}} {
		for i, tail := range []bool{false, true} {
			if got := reminders([]byte(`"`+text+`"`), tail); len(got) != want[i] {
				t.Errorf("%q, %t: %v, want %d", text, tail, got, want[i])
			}
		}
	}
}

// TestCallsAsTheyCome: a message whose call is no whole call is never changed, and what is put behind what is not there is refused.
func TestCallsAsTheyCome(t *testing.T) {
	for call, fixed := range map[string]bool{
		`{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}`: false, `{"id":"c","type":"custom","custom":{"name":"f","input":"x"}}`: false,
		`{"id":"c","type":"function","function":{"name":"f"}}`: true, `{"id":"c","function":{"arguments":"{}"}}`: true, `{"function":{"name":"f","arguments":"{}"}}`: true, `{"id":"c","function":5}`: true, `7`: true, `null`: true,
	} {
		r := scanned(t, Chat, `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[`+call+`]}]}`)
		if got := r.Items[len(r.Items)-1].fixed; got != fixed {
			t.Errorf("%s: %t", call, got)
		}
	}
	r := scanned(t, Messages, `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":"y"},{"role":"user","content":"z"}]}`)
	for item, ok := range map[int]bool{-1: false, 0: false, 1: true, 2: false, 3: false, 4: false} {
		if _, err := r.Apply(Change{Inserts: []Insert{{Item: item, Calls: list(call1), Results: list(res1)}}}); (err == nil) != ok {
			t.Errorf("behind item %d: %v", item, err)
		}
	}
}

// TestStubOfTools: a definition is made shorter where it is one of a function, with what its schema needs.
func TestStubOfTools(t *testing.T) {
	long := strings.Repeat("long ", 200)
	fn := `"function":{"name":"f","description":"` + long + `","parameters":{"type":"object","properties":{"a":{"type":"string","description":"` + long + `"}},"required":["a"]}}`
	for raw, ok := range map[string]bool{`{"type":"function",` + fn + `}`: true, `{"type":"custom",` + fn + `}`: false, `{` + fn + `}`: false, `{"type":"function"}`: false, `{"type":"function","function":5}`: false, `{"type":"function",` + fn: false,
		`{"type":5,` + fn + `}`: false} {
		got := chatStub([]byte(raw))
		if (got != nil) != ok || ok && (len(got) >= len(raw)/2 || !strings.Contains(string(got), `"required":["a"]`) || !strings.Contains(string(got), `"a":{"type":"string"}`) || !json.Valid(got)) {
			t.Errorf("%.60s: %s", raw, got)
		}
	}
}
