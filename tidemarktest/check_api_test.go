package tidemarktest_test

import (
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestCheckAPIs: what each API demands beside the shape, one row a rule, and what it takes.
func TestCheckAPIs(t *testing.T) {
	t.Parallel()
	const words = `{"type":"text","text":"w"}`
	user := func(content string) string { return `{"role":"user","content":` + content + `}` }
	reply := func(content string) string { return `{"role":"assistant","content":` + content + `}` }
	hi := user(`"hi"`)
	called := func(id, name, input, result string) string {
		return hi + "," + reply(`[{"type":"tool_use","id":"`+id+`","name":"`+name+`","input":`+input+`}]`) + "," + user(`[{"type":"tool_result","tool_use_id":"`+id+`",`+result+`}]`)
	}
	picture := func(media, data string) string {
		return `{"type":"image","source":{"type":"base64","media_type":"` + media + `","data":"` + data + `"}}`
	}
	const gif = "R0lGODlhAQABAAAAACw="
	long := strings.Repeat("i", 41)
	for _, row := range []struct {
		name, list, schema string
		anthropic, chat    string // the rule that is broken; empty: none is
	}{
		{"ordinary", called("c-1_A", "look", `{}`, `"content":"x"`) + "," + reply(`[{"type":"thinking","thinking":"hm","signature":"s"},`+words+`]`), `{"type":"object","properties":{"a.b-c":{}}}`, "", ""},
		{"thinking last", hi + "," + reply(`[`+words+`,{"type":"thinking","thinking":"hm","signature":"s"}]`), "", "messages.1.content.1: The final block", ""},
		{"redacted thinking last", hi + "," + reply(`[{"type":"redacted_thinking","data":"z"}]`), "", "messages.1.content.0: The final block", ""},
		{"thinking without a signature", hi + "," + reply(`[{"type":"thinking","thinking":"hm"},`+words+`]`), "", "thinking.signature", ""},
		{"an id with a colon", called("f:0", "look", `{}`, `"content":"x"`), "", "tool_use.id", ""},
		{"a long id", called(long, "look", `{}`, `"content":"x"`), "", "", "string too long"},
		{"a name with a point", called("c", "web.look", `{}`, `"content":"x"`), "", "tool_use.name", ""},
		{"an input that is a list", called("c", "look", `[1]`, `"content":"x"`), "", "tool_use.input", ""},
		{"an empty text in a result", called("c", "look", `{}`, `"content":[{"type":"text","text":""}]`), "", "messages.2.content.0.tool_result.content.0", ""},
		{"a picture in an error", called("c", "look", `{}`, `"is_error":true,"content":[`+picture("image/gif", gif)+`]`), "", "is_error", ""},
		{"a picture", user("[" + picture("image/gif", gif) + "]"), "", "", ""},
		{"a picture of another kind", user("[" + picture("image/png", gif) + "]"), "", "media type", ""},
		{"base64 that is none", user("[" + picture("image/gif", "!") + "]"), "", "invalid base64", ""},
		{"a document that is none", user(`[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"` + gif + `"}}]`), "", "PDF", ""},
		{"an address of another kind", user(`[{"type":"image","source":{"type":"url","url":"ftp://x"}}]`), "", "HTTP(S)", ""},
		{"white space at the end", hi + "," + reply(`"so "`), "", "trailing whitespace", ""},
		{"a schema without a type", hi, `{"properties":{}}`, "input_schema.type: Field required", "Field required"},
		{"a list of types", hi, `{"type":["object"],"properties":{}}`, "Input should be 'object'", "Input should be 'object'"},
		{"alternatives at the top", hi, `{"type":"object","properties":{},"anyOf":[{}]}`, "at the top level", "at the top level"},
		{"an enumeration at the top", hi, `{"type":"object","properties":{},"enum":[{}]}`, "", "at the top level"},
		{"no properties", hi, `{"type":"object"}`, "", "missing properties"},
		{"an odd name", hi, `{"type":"object","properties":{"$a":{}}}`, "Property keys", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var req tidemark.Request
			if err := json.Unmarshal([]byte("["+row.list+"]"), &req.Messages); err != nil {
				t.Fatal(err)
			}
			if row.schema != "" {
				req.Tools = []tidemark.Tool{{Name: "look", InputSchema: json.RawMessage(row.schema)}}
			}
			for _, k := range []struct {
				name, want string
				err        error
			}{{"messages", row.anthropic, tidemarktest.CheckAnthropic(req)}, {"chat", row.chat, tidemarktest.CheckChat(req)}} {
				if (k.err == nil) != (k.want == "") || k.err != nil && !strings.Contains(k.err.Error(), k.want) {
					t.Errorf("%s: got %v, want %q", k.name, k.err, k.want)
				}
			}
		})
	}
}
