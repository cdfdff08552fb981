package body

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/internal/json"
)

func TestStub(t *testing.T) {
	long := strings.Repeat("Long words about nothing at all. ", 20)
	for _, row := range []struct{ name, tool, want string }{
		{
			"names, types, required",
			`{"name":"a","description":"\n- Does it. And more.\nMore","input_schema":{"$schema":"x","type":"object","properties":{"description":{"type":"string","description":"` + long + `","default":"x"},"n":{"type":["integer","null"],"minimum":1}},"required":["n"],"additionalProperties":false}}`,
			`{"name":"a","description":"Does it.","input_schema":{"type":"object","properties":{"description":{"type":"string"},"n":{"type":["integer","null"]}},"required":["n"],"additionalProperties":false}}`,
		},
		{
			"values, choices, definitions",
			`{"input_schema":{"type":"object","$defs":{"d":{"type":"string","title":"t"}},"properties":{"few":{"enum":["a","b"]},"many":{"type":"string","enum":[1,2,3,4,5,6,7,8,9]},"c":{"const":1},"r":{"$ref":"#/$defs/d"},"any":{"anyOf":[{"type":"string","format":"uri"},true]},"x":true}},"description":"` + long + `","name":"a"}`,
			`{"input_schema":{"type":"object","$defs":{"d":{"type":"string"}},"properties":{"few":{"enum":["a","b"]},"many":{"type":"string"},"c":{"const":1},"r":{"$ref":"#/$defs/d"},"any":{"anyOf":[{"type":"string"},true]},"x":true}},"description":"Long words about nothing at all.","name":"a"}`,
		},
		{
			"below two levels",
			`{"name":"a","input_schema":{"type":"object","properties":{"l":{"type":"array","description":"` + long + `","items":{"type":"object","properties":{"o":{"type":"object","properties":{"deep":{}},"required":["deep"],"additionalProperties":false}},"required":["o"]}}}}}`,
			`{"name":"a","input_schema":{"type":"object","properties":{"l":{"type":"array","items":{"type":"object","properties":{"o":{"type":"object"}},"required":["o"]}}}}}`,
		},
		{
			"strict keeps the structure",
			`{"strict":true,"name":"a","input_schema":{"type":"object","properties":{"l":{"type":"object","description":"` + long + `","properties":{"o":{"type":"object","properties":{"deep":{"type":"string"}},"required":["deep"],"additionalProperties":false}}}}}}`,
			`{"strict":true,"name":"a","input_schema":{"type":"object","properties":{"l":{"type":"object","properties":{"o":{"type":"object","properties":{"deep":{"type":"string"}},"required":["deep"],"additionalProperties":false}}}}}}`,
		},
		{
			"unknown fields and the marker stay, examples go",
			`{"type":"custom","name":"a","x":{"b": 1.0},"input_examples":[{"a":1}],"description":"` + long + `","input_schema":{"type":"object"},` + mark + `}`,
			`{"type":"custom","name":"a","x":{"b": 1.0},"description":"Long words about nothing at all.","input_schema":{"type":"object"},` + mark + `}`,
		},
		{"a tool of the server", `{"type":"web_search_20250305","name":"a","description":"` + long + `"}`, ``},
		{"a short one", `{"name":"a","description":"Does it. And more.","input_schema":{"type":"object"}}`, ``},
		{"nothing to take away", `{"name":"a","input_schema":{"type":"object","properties":{"` + strings.Repeat("a", 300) + `":{}}}}`, ``},
		{"a long sentence", `{"name":"a","description":"` + strings.Repeat("é word ", 60) + `"}`, `{"name":"a","description":"` + strings.Repeat("é word ", 16) + `é word…"}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := string(stub(Messages, []byte(row.tool))); got != row.want {
				t.Errorf("\n got %s\nwant %s", got, row.want)
			}
		})
	}
	got := string(stub(Chat, []byte(`{"type":"function","function":{"name":"a","description":"`+long+`","parameters":{"type":"object","description":"d"}},"x":1}`)))
	if want := `{"type":"function","function":{"name":"a","description":"Long words about nothing at all.","parameters":{"type":"object"}},"x":1}`; got != want {
		t.Errorf("chat:\n got %s\nwant %s", got, want)
	}
	if got := stub(Chat, []byte(`{"type":"custom","custom":{"name":"a","description":"`+long+`"}}`)); got != nil {
		t.Errorf("a custom tool of chat became %s", got)
	}
}

// agentTools is what an agent sends with every request: 18 definitions.
func agentTools(tb testing.TB) []byte {
	tb.Helper()
	raw, err := os.ReadFile("testdata/tools.json")
	if err != nil {
		tb.Fatal(err)
	}
	return bytes.TrimSpace(raw)
}

type schema struct {
	Type       any               `json:"type"`
	Properties map[string]schema `json:"properties"`
	Required   []string          `json:"required"`
	Items      *schema           `json:"items"`
	AnyOf      []schema          `json:"anyOf"`
	Desc       *string           `json:"description"`
}

// same reports where two schemas differ in the names, types and needs of arguments, down to a level.
func (s schema) same(o schema, path string, levels int) string {
	if o.Desc != nil || fmt.Sprint(s.Type) != fmt.Sprint(o.Type) || len(s.AnyOf) != len(o.AnyOf) || (s.Items == nil) != (o.Items == nil) {
		return path
	}
	if s.Items != nil {
		if at := s.Items.same(*o.Items, path+"[]", levels); at != "" {
			return at
		}
	}
	for n := range s.AnyOf {
		if at := s.AnyOf[n].same(o.AnyOf[n], path+"|", levels); at != "" {
			return at
		}
	}
	if levels == 0 {
		return ""
	}
	if len(s.Properties) != len(o.Properties) || !slices.Equal(s.Required, o.Required) {
		return path
	}
	for name, p := range s.Properties {
		q, ok := o.Properties[name]
		if !ok {
			return path + "." + name
		}
		if at := p.same(q, path+"."+name, levels-1); at != "" {
			return at
		}
	}
	return ""
}

// TestAgentTools says what stubs save on the definitions of an agent, and that each still tells its arguments.
func TestAgentTools(t *testing.T) {
	body := append([]byte(`{"tools":`), agentTools(t)...)
	r := scanned(t, Messages, string(append(body, `,"messages":[]}`...)))
	trim := Trimmed(r, Change{}, map[string]bool{"ReadFile": true})
	if len(trim.tools) != 17 {
		t.Errorf("%d tools are short", len(trim.tools))
	}
	got, err := r.Apply(Change{Trim: trim})
	if err != nil {
		t.Fatal(err)
	}
	after := scanned(t, Messages, string(got))
	if len(got) != len(r.raw)-trim.Bytes || r.Fixed-after.Fixed != trim.Bytes {
		t.Errorf("%d bytes are left of %d, and %d are said to be saved", len(got), len(r.raw), trim.Bytes)
	}
	for n, tool := range after.Tools {
		whole := tool.Name == "ReadFile"
		if bytes.Equal(tool.Raw, r.Tools[n].Raw) != whole {
			t.Errorf("%s is whole: %v, want %v", tool.Name, !whole, whole)
		}
		var was, is struct {
			Schema schema `json:"input_schema"`
		}
		if json.Unmarshal(r.Tools[n].Raw, &was) != nil || json.Unmarshal(tool.Raw, &is) != nil {
			t.Fatalf("%s is no JSON: %s", tool.Name, tool.Raw)
		}
		if at := was.Schema.same(is.Schema, tool.Name, maxLevels); at != "" && !whole {
			t.Errorf("%s differs: %s", at, tool.Raw)
		}
	}
	if markers(got) != markers(r.raw) {
		t.Error("the marker is lost")
	}
	t.Logf("%d of %d tools became stubs: %d bytes of %d are left (%.0f %% saved)", len(trim.tools), len(r.Tools),
		after.Fixed, r.Fixed, 100*float64(trim.Bytes)/float64(r.Fixed))
	if saved := float64(trim.Bytes) / float64(r.Fixed); saved < 0.7 {
		t.Errorf("only %.2f are saved", saved)
	}
}

func reminder(s string) string { return `<system-reminder>\n` + s + `\n</system-reminder>` }

func TestTrimParts(t *testing.T) {
	long := reminder(strings.Repeat("x", MinPart))
	hex := strings.NewReplacer("<", `\u003c`, ">", `\u003e`).Replace(long)
	user := func(content string) string { return `{"role":"user","content":` + content + `}` }
	str := func(s string) string { return user(`"` + s + `"`) }
	const same = `<system-reminder>[Same as in message 1.]</system-reminder>`
	for _, row := range []struct {
		name, messages, want string
		change               Change
		parts, skills        int
	}{
		{"the second is a note", str(long) + `, ` + str(`a`+long+`b`+long), str(long) + `, ` + str(`a`+same+`b`+same), Change{}, 2, 0},
		{"as HTML is escaped", str(hex) + `,` + str(hex), str(hex) + `,` + str(`\u003csystem-reminder\u003e[Same as in message 1.]\u003c/system-reminder\u003e`), Change{}, 1, 0},
		{"a short one stays", str(reminder("x")) + `,` + str(reminder("x")), str(reminder("x")) + `,` + str(reminder("x")), Change{}, 0, 0},
		{
			"blocks keep their marker where it is", user(`[`+textJSON(long)+`]`) + `,` + user(`[{"type":"text",`+mark+`,"text":"`+long+`"}]`),
			user(`[`+textJSON(long)+`]`) + `,` + user(`[{"type":"text",`+mark+`,"text":"`+same+`"}]`), Change{}, 1, 0,
		},
		{
			"in results only at the end",
			str(long) + `,` + user(`[{"type":"tool_result","tool_use_id":"a","content":"`+long+` text"},{"type":"tool_result","tool_use_id":"b","content":"text `+long+`\n"},{"type":"tool_result","tool_use_id":"c","content":[`+textJSON("q")+`,{"type":"text","text":"`+long+` `+reminder("z")+`",`+mark+`}]}]`),
			str(long) + `,` + user(`[{"type":"tool_result","tool_use_id":"a","content":"`+long+` text"},{"type":"tool_result","tool_use_id":"b","content":"text `+same+`\n"},{"type":"tool_result","tool_use_id":"c","content":[`+textJSON("q")+`,{"type":"text","text":"`+same+` `+reminder("z")+`",`+mark+`}]}]`),
			Change{}, 2, 0,
		},
		{
			"what is hidden cannot be pointed at", str(long) + `,` + str(long) + `,` + str(long), str("gone") + `,` + str(long) + `,` + str(`<system-reminder>[Same as in message 2.]</system-reminder>`),
			Change{Blocks: []BlockChange{{0, 0, []byte(textJSON("gone"))}}}, 1, 0,
		},
		{
			"nor what is in a span", str(long) + `,` + str(long), str(long),
			Change{Spans: []SpanChange{{From: 0, To: 0}}}, 0, 0,
		},
		{
			"skills",
			str(reminder(`These skills are available:\n\n- fix: Mends it\n  in two lines\n- p:plan: Plans\n- fix: Mends it otherwise\n\n- fix: Mends it\n  in two lines`)) + `,` +
				str(reminder(`Available skills, available again:\n- plan: Plans\n- new: New\n- p:fix: Mends it\n  in two lines\n\nend`)),
			str(reminder(`These skills are available:\n\n- fix: Mends it\n  in two lines\n- p:plan: Plans\n- fix: Mends it otherwise\n`)) + `,` +
				str(reminder(`Available skills, available again:\n- new: New\n\nend`)),
			Change{}, 0, 3,
		},
		{
			"no list of skills", str(reminder(`- a: b\n- a: b`)) + `,` + str(`skills available\n- a: b\n- a: b`), str(reminder(`- a: b\n- a: b`)) + `,` + str(`skills available\n- a: b\n- a: b`), Change{}, 0, 0,
		},
		{
			"a reminder without an end, a backslash before an n", str(`<system-reminder>skills available`+strings.Repeat("x", 600)) + `,` + str(reminder(`skills available \\n- a: b\n- a: b\\n- a: b`)),
			str(`<system-reminder>skills available`+strings.Repeat("x", 600)) + `,` + str(reminder(`skills available \\n- a: b\n- a: b\\n- a: b`)), Change{}, 0, 0,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := scanned(t, Messages, `{"messages":[`+row.messages+`]}`)
			c := row.change
			c.Trim = Trimmed(r, c, nil)
			got, err := r.Apply(c)
			if want := `{"messages":[` + row.want + `]}`; err != nil || string(got) != want {
				t.Errorf("%v\n got %s\nwant %s", err, got, want)
			}
			if some := len(c.Trim.texts) > 0; some != (row.parts+row.skills > 0) {
				t.Errorf("something is shorter: %t, want %d parts and %d skills", some, row.parts, row.skills)
			}
		})
	}
}

// TestTrimChat sees to parts, strings and results of chat completions.
func TestTrimChat(t *testing.T) {
	long := reminder(`\u00e9` + strings.Repeat("x", MinPart))
	const same = `<system-reminder>[Same as in message 1.]</system-reminder>`
	tool := func(s string) string { return `{"role":"tool","tool_call_id":"a","content":` + s + `}` }
	r := scanned(t, Chat, `{"messages":[{"role":"system","content":"`+long+`"},{"role":"user","content":"\u00e9`+long+`"},{"role":"user","content":"\u00e9`+long+`"},`+
		`{"role":"user","content":[`+textJSON(long)+`,{"type":"image_url","image_url":{"url":"u"}}]},`+tool(`"b`+long+`"`)+`,`+tool(`[`+textJSON(long)+`]`)+`]}`)
	got, err := r.Apply(Change{Trim: Trimmed(r, Change{}, nil)})
	want := `{"messages":[{"role":"system","content":"` + long + `"},{"role":"user","content":"\u00e9` + long + `"},{"role":"user","content":"\u00e9` + same + `"},` +
		`{"role":"user","content":[` + textJSON(same) + `,{"type":"image_url","image_url":{"url":"u"}}]},` + tool(`"b`+same+`"`) + `,` + tool(`[`+textJSON(long)+`]`) + `]}`
	if err != nil || string(got) != want {
		t.Errorf("%v\n got %s\nwant %s", err, got, want)
	}
}

// TestTrimGrows lets histories grow: what was sent is sent again, byte for byte, in both dialects.
func TestTrimGrows(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	pieces := []string{
		"a", `\n`, `\\n`, reminder(strings.Repeat("y", 600)), reminder(strings.Repeat("z", 600)),
		reminder(`skills available:\n- a: A\n- p:b: B\n  more`), reminder(`skills available:\n- b: B\n  more\n- a: other`), `<system-reminder>`, `é`,
	}
	saved := 0
	for range 300 {
		var messages []string
		sent := ""
		for range 12 {
			s := ""
			for range 1 + rng.IntN(4) {
				s += pieces[rng.IntN(len(pieces))]
			}
			content := `"` + s + `"`
			if rng.IntN(2) == 0 {
				content = `[` + textJSON(s) + `]`
			}
			messages = append(messages, `{"role":"user","content":`+content+`}`)
			r := scanned(t, Dialect(rng.IntN(2)), `{"messages":[`+strings.Join(messages, ",")+`]}`)
			trim := Trimmed(r, Change{}, nil)
			got, err := r.Apply(Change{Trim: trim})
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.HasPrefix(got, []byte(strings.TrimSuffix(sent, "]}"))) {
				t.Fatalf("sent %s\nthen %s", sent, got)
			}
			if len(got) != len(r.raw)-trim.Bytes {
				t.Fatalf("%d bytes of %d are left, which is not %+v", len(got), len(r.raw), trim)
			}
			saved += len(trim.texts)
			sent = string(got)
		}
	}
	if saved < 1000 {
		t.Errorf("only %d were saved", saved)
	}
}
