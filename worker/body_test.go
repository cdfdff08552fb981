package worker

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
)

func TestCheckJSON(t *testing.T) {
	for _, tc := range []struct{ name, body, want string }{
		{"object", `{"a":[1,"x",null]}`, ""},
		{"escaped quote before a bracket", `{"a":"\"[[[["}`, ""},
		{"escaped NUL within a string", `"\u0000"`, ""},
		{"as deep as allowed", strings.Repeat("[", 100) + strings.Repeat("]", 100), ""},
		{"brackets in a string are no depth", `"` + strings.Repeat("[", 1000) + `"`, ""},
		{"invalid UTF-8", "{\"a\":\"x\xffy\"}", "invalid UTF-8 at byte 7"},
		{"cut off UTF-8", "\"\xe4\xb8", "invalid UTF-8 at byte 1"},
		{"NUL", "{\"a\":\x001}", "NUL at byte 5"},
		{"NUL in a string", "\"a\x00\"", "NUL at byte 2"},
		{"one too deep", strings.Repeat("[", 101) + strings.Repeat("]", 101), "nested more than 100 deep at byte 100"},
		{"bomb", strings.Repeat("[", 10_000_000), "nested more than 100 deep at byte 100"},
		{"objects in lists", strings.Repeat(`[{"a":`, 60), "nested more than 100 deep"},
		{"cut off", `{"a":`, "no JSON"},
		{"two values", `{} {}`, "more behind the JSON value"},
		{"no JSON", `hello`, "no JSON"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := checkJSON([]byte(tc.body))
			if got := errText(err); (tc.want == "") != (err == nil) || !strings.Contains(got, tc.want) {
				t.Fatalf("got %q, want %q", got, tc.want)
			}
			if err != nil && !errors.Is(err, tidemark.ErrInvalid) {
				t.Errorf("%v is not ErrInvalid", err)
			}
		})
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestDecodeMessage(t *testing.T) {
	for _, tc := range []struct{ name, body, text, want string }{
		{"text", `{"text":"hi"}`, "hi", ""},
		{"content as a string", `{"content":"hi"}`, "hi", ""},
		{"content as blocks", `{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`, "a\nb", ""},
		{"message", `{"message":{"role":"user","content":"hi"},"id":"x","channel":"cli"}`, "hi", ""},
		{"null is not given", `{"text":"hi","id":null}`, "hi", ""},
		{"no role", `{"message":{"content":"hi"}}`, "", `no "role"`},
		{"empty body", ``, "", "exactly one of"},
		{"empty object", `{}`, "", "exactly one of"},
		{"two of them", `{"text":"a","content":"b"}`, "", "got 2"},
		{"list", `[]`, "", "want a JSON object"},
		{"null", `null`, "", "want a JSON object"},
		{"text is a number", `{"text":1}`, "", `"text" must be a string`},
		{"text is a list", `{"text":["a"]}`, "", `"text" must be a string`},
		{"id is a number", `{"text":"a","id":7}`, "", `"id" must be a string`},
		{"channel is an object", `{"text":"a","channel":{}}`, "", `"channel" must be a string`},
		{"channel with a space", `{"text":"a","channel":"a b"}`, "", `"channel" must be up to 40`},
		{"content is a number", `{"content":1}`, "", "want a string or a list of blocks"},
		{"block that is none", `{"content":["x"]}`, "", "want an object"},
		{"message is a string", `{"message":"hi"}`, "", "decode message"},
		{"message without content", `{"message":{"role":"user"}}`, "", `no "content"`},
		{"misspelt", `{"txet":"a"}`, "", `"txet"; did you mean "text"?`},
		{"other case", `{"Text":"a"}`, "", `did you mean "text"?`},
		{"unknown", `{"text":"a","temperature":1}`, "", `"temperature"; known are text, content`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in, err := decodeMessage([]byte(tc.body))
			if got := errText(err); (tc.want == "") != (err == nil) || !strings.Contains(got, tc.want) {
				t.Fatalf("got %q, want %q", got, tc.want)
			}
			if err != nil && !errors.Is(err, tidemark.ErrInvalid) {
				t.Errorf("%v is not ErrInvalid", err)
			}
			if got := in.Message.PlainText(); err == nil && got != tc.text {
				t.Errorf("text %q, want %q", got, tc.text)
			}
		})
	}
}

// FuzzBody holds what passes to what the steps behind rely on.
func FuzzBody(f *testing.F) {
	for _, s := range []string{`{"text":"hi"}`, "{\"a\":\"\xff\"}", `[[[]]]`, "\x00", `{"message":{"role":"user","content":[{"type":"text","text":"a"}]}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if err := checkJSON(raw); err == nil {
			if !json.Valid(raw) || !utf8.Valid(raw) {
				t.Fatalf("%q passed", raw)
			}
		} else if !errors.Is(err, tidemark.ErrInvalid) {
			t.Fatalf("%q: %v is not ErrInvalid", raw, err)
		}
		in, err := decodeMessage(raw)
		if err != nil {
			return
		}
		again, err := decodeMessage([]byte(`{"message":` + string(in.Message.AppendJSON(nil)) + `}`))
		if err != nil || string(again.Message.AppendJSON(nil)) != string(in.Message.AppendJSON(nil)) {
			t.Fatalf("%q: decoded, encoded, decoded is %v, %v", raw, again.Message, err)
		}
	})
}
