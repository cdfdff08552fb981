package body

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

func TestScan(t *testing.T) {
	const fixed = `[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}]`
	const tools = `[{"name":"Read","input_schema":{"type":"object"}},{"type":"web_search_20250305","name":"web_search"}]`
	r := scanned(t, Messages, ` {"model":"m\u002d1","stream":true,"max_tokens":7,"system":`+fixed+`,"tools":`+tools+
		`,"tool_choice":{"type":"tool","name":"Read"},"thinking":{"type":"enabled","budget_tokens":9},"metadata":{"user_id":"u"},"new":[1,{"model":2}],`+
		`"messages":[{"role":"user","content":"a"},{"content":[{"type":"thinking"},{"type":"text","text":"b"}],"role":"assistant"}]} `)
	if r.Model != "m-1" || !r.Stream || r.Max != 7 || r.User != "u" || r.Choice != "tool" {
		t.Errorf("read %+v", r)
	}
	if r.Fixed != len(fixed)+len(tools) {
		t.Errorf("%d bytes are fixed, want %d", r.Fixed, len(fixed)+len(tools))
	}
	if len(r.Tools) != 2 || r.Tools[0].Name != "Read" || r.Tools[1].Name != "web_search" || !strings.HasPrefix(string(r.Tools[1].Raw), `{"type":"web_`) {
		t.Errorf("tools %+v", r.Tools)
	}
	if len(r.Items) != 2 || r.Items[0].Role != tidemark.User || r.Items[1].Role != tidemark.Assistant {
		t.Fatalf("items %+v", r.Items)
	}
	if it := r.Items[0]; it.Blocks() != 1 || string(it.Block(0)) != textJSON("a") || it.Block(1) != nil || it.Block(-1) != nil {
		t.Errorf("the string is %s", it.Block(0))
	}
	if it := r.Items[1]; it.Blocks() != 2 || string(it.Block(1)) != textJSON("b") || string(it.Raw) != `{"content":[{"type":"thinking"},{"type":"text","text":"b"}],"role":"assistant"}` {
		t.Errorf("the list is %s", it.Raw)
	}
}

func TestScanChat(t *testing.T) {
	r := scanned(t, Chat, `{"prompt_cache_key":"k","max_completion_tokens":8,"tool_choice":"required","messages":[]}`)
	if r.User != "k" || r.Max != 8 || r.Choice != "any" {
		t.Errorf("read %+v", r)
	}
	r = scanned(t, Chat, `{"user":"u","prompt_cache_key":"k","tool_choice":{"type":"function","function":{"name":"a"}},"tools":null,"messages":[{"role":"system","content":"s"}]}`)
	if r.User != "u" || r.Choice != "tool" || r.Fixed != 31 || len(r.Items) != 0 {
		t.Errorf("read %+v", r)
	}
}

func TestScanRefuses(t *testing.T) {
	message := func(s string) string { return `{"messages":[` + s + `]}` }
	for name, raw := range map[string]string{
		"nothing":              ``,
		"cut off":              `{"messages":[]`,
		"a list":               `[]`,
		"two":                  `{"messages":[]}{}`,
		"no messages":          `{"model":"m"}`,
		"messages no list":     `{"messages":{}}`,
		"a key twice":          `{"messages":[],"messages":[]}`,
		"escaped twice":        `{"messages":[],"m\u0065ssages":[]}`,
		"two names":            `{"tools":[{"name":"a","name":"b"}],"messages":[]}`,
		"a number of letters":  `{"a":tru,"messages":[]}`,
		"a bad number":         `{"a":01,"messages":[]}`,
		"a bad escape":         `{"a":"\x","messages":[]}`,
		"a short code point":   `{"a":"\u00g0","messages":[]}`,
		"a control character":  "{\"a\":\"\n\",\"messages\":[]}",
		"a comma too many":     `{"messages":[],}`,
		"one in a list":        `{"a":[1,],"messages":[]}`,
		"no colon":             `{"messages"[]}`,
		"a key without quotes": `{messages:[]}`,
		"nested":               `{"a":` + strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth) + `,"messages":[]}`,
		"two roles":            message(`{"role":"user","role":"user","content":"a"}`),
		"a block of two types": message(`{"role":"user","content":[{"type":"a","type":"b"}]}`),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Scan(Messages, []byte(raw)); !errors.Is(err, tidemark.ErrInvalid) {
				t.Errorf("%s: %v", raw, err)
			}
		})
	}
	for name, raw := range map[string]string{
		"deep arguments": message(`{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"b","arguments":"{\"a\":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}"}}]}`),
	} {
		t.Run("chat/"+name, func(t *testing.T) {
			if _, err := Scan(Chat, []byte(raw)); !errors.Is(err, tidemark.ErrInvalid) {
				t.Errorf("%s: %v", raw, err)
			}
		})
	}
}

// TestTextOf: the text of a block is that of a text block alone, and says whether anything else stands in it.
func TestTextOf(t *testing.T) {
	for raw, want := range map[string]string{
		`{"type":"text","text":"a"}`: `"a" true`, `{"text":"a","type":"text"}`: `"a" true`, `{"type":"te\u0078t","text":"a\n"}`: `"a\n" true`, `{"type":"text","text":"a",` + mark + `}`: `"a" false`,
		`{"type":"x","text":"a"}`: ` false`, `{"text":"a"}`: ` false`, `{"type":"text"}`: ` false`, `{"type":"text","text":5}`: ` false`, `{"type":"text","text":"a"`: ` false`, `[]`: ` false`,
	} {
		quoted, alone := textOf([]byte(raw))
		if got := fmt.Sprintf("%s %v", quoted, alone); got != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
}

// TestPrefixes: a request that is cut off anywhere is refused, also within an escape.
func TestPrefixes(t *testing.T) {
	whole := `{"model":"m\\n\"\u00e9\ud83d\ude80","messages":[{"role":"user","content":[{"type":"text","text":"a\\",` + mark + `}]}, {"role":"assistant","content":"b\\\\"}],"n":[1.5e-3,true,null,{}]}`
	scanned(t, Messages, whole)
	for n := range whole {
		if _, err := Scan(Messages, []byte(whole[:n])); !errors.Is(err, tidemark.ErrInvalid) {
			t.Errorf("%s: %v", whole[:n], err)
		}
	}
}

func TestScanNamesThePlace(t *testing.T) {
	_, err := Scan(Messages, []byte(`{"messages":[{"role":"user","content":"a"},{"role":"x","role":"x"}]}`))
	if err == nil || !strings.Contains(err.Error(), "messages[1], byte") {
		t.Errorf("got %v", err)
	}
}

func TestScanBounds(t *testing.T) {
	many := func(n int, s string) string { return strings.TrimSuffix(strings.Repeat(s+",", n), ",") }
	for name, row := range map[string]struct {
		raw string
		ok  bool
	}{
		"messages":       {`{"messages":[` + many(MaxMessages, `{"role":"user","content":""}`) + `]}`, true},
		"messages, more": {`{"messages":[` + many(MaxMessages+1, `{"role":"user","content":""}`) + `]}`, false},
		"tools":          {`{"messages":[],"tools":[` + many(MaxTools, `{}`) + `]}`, true},
		"tools, more":    {`{"messages":[],"tools":[` + many(MaxTools+1, `{}`) + `]}`, false},
		"blocks":         {`{"messages":[{"role":"user","content":[` + many(MaxBlocks, `{"type":""}`) + `]}]}`, true},
		"blocks, more":   {`{"messages":[{"role":"user","content":[` + many(MaxBlocks+1, `{"type":""}`) + `]}]}`, false},
		"depth":          {`{"messages":[],"a":` + strings.Repeat("[", MaxDepth-1) + strings.Repeat("]", MaxDepth-1) + `}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Scan(Messages, []byte(row.raw)); (err == nil) != row.ok {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := Scan(Messages, bytes.Repeat([]byte(" "), MaxBytes+1)); !errors.Is(err, tidemark.ErrTooLarge) {
		t.Errorf("too long: %v", err)
	}
}

// markers counts the cache markers in a request, a message, a block or a definition.
func markers(raw []byte) int {
	if !bytes.Contains(raw, []byte(`"`+marker+`"`)) {
		return 0
	}
	n := 0
	c := over(raw)
	c.markers(func(s span, null bool) {
		if !null {
			n++
		}
	})
	return n
}

func TestMarkers(t *testing.T) {
	for _, row := range []struct {
		raw  string
		want int
		bare string
	}{
		{`{"a":1}`, 0, `{"a":1}`},
		{`{` + mark + `}`, 1, `{}`},
		{`{` + mark + `, "a":1}`, 1, `{ "a":1}`},
		{`{` + mark + `,` + mark + `,"a":1}`, 2, `{"a":1}`},
		{`{"a":1,` + mark + `,` + mark + `}`, 2, `{"a":1}`},
		{`{"a":1 , ` + mark + `}`, 1, `{"a":1}`},
		{`{"a":1,` + mark + `,"b":2}`, 1, `{"a":1,"b":2}`},
		{`{"cache_control":null,"a":1}`, 0, `{"a":1}`},
		{`{"input":{` + mark + `},"content":[{` + mark + `},{"x":"cache_control"}]}`, 1, `{"input":{` + mark + `},"content":[{},{"x":"cache_control"}]}`},
	} {
		t.Run(row.raw, func(t *testing.T) {
			if got := markers([]byte(row.raw)); got != row.want {
				t.Errorf("%d markers, want %d", got, row.want)
			}
			if got := string(unmarked([]byte(row.raw))); got != row.bare {
				t.Errorf("without them %s, want %s", got, row.bare)
			}
		})
	}
}
