package provider

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	tidemark "github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// schemas are those of tools as servers list them, and what is sent of each.
var schemas = []struct {
	name, schema string
	want         string // of the Messages API; empty: as it came
	chat         string // of chat completions; empty: the same
	says         string // in the description
}{
	{"valid", `{"type": "object","properties":{"b":{"type":"number","default":1.0},"a":{"anyOf":[{"type":"null"},{"type":"array","items":{}}]}},"required":["b"]}`, "", "", ""},
	{"no type", `{"properties":{"a":{"type":"string"}}}`, `{"properties":{"a":{"type":"string"}},"type":"object"}`, "", ""},
	{"nothing", `{}`, `{"type":"object","properties":{}}`, "", ""},
	{"a list of types", `{"type":["object","null"],"properties":{"a":{"type":["string","null"]}}}`, `{"type":"object","properties":{"a":{"type":["string","null"]}}}`, "", ""},
	{"another type", `{"type":"string"}`, `{"type":"object","properties":{}}`, "", ""},
	{"no properties", `{"type":"object"}`, "", `{"type":"object","properties":{}}`, ""},
	{"no object", `true`, `{"type":"object","properties":{}}`, "", ""},
	{"alternatives", `{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"required":["a"]},{"properties":{"b":{"type":"number"}},"required":["b"]}]}`,
		`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"number"}}}`, "", "either a, or b"},
	{"one of several, with something in common", `{"oneOf":[{"type":"object","properties":{"a":{},"k":{"enum":[1]}},"required":["k","a"]},{"type":"object","properties":{"b":{},"k":{"enum":[2]}},"required":["b","k"]}]}`,
		`{"type":"object","properties":{"a":{},"k":{"anyOf":[{"enum":[1]},{"enum":[2]}]},"b":{}},"required":["k"]}`, "", "either k and a, or b and k"},
	{"all of several, by reference", `{"allOf":[{"$ref":"#/$defs/X"},{"properties":{"b":{}},"required":["b"]}],"$defs":{"X":{"type":"object","properties":{"a":{}},"required":["a"]}}}`,
		`{"$defs":{"X":{"type":"object","properties":{"a":{}},"required":["a"]}},"type":"object","properties":{"a":{},"b":{}},"required":["a","b"]}`, "", ""},
	{"a reference", `{"$ref":"#/definitions/X","definitions":{"X":{"type":"object","properties":{"a":{}}}}}`, `{"definitions":{"X":{"type":"object","properties":{"a":{}}}},"type":"object","properties":{"a":{}}}`, "", ""},
	{"a reference to itself", `{"$ref":"#"}`, `{"type":"object","properties":{}}`, "", ""},
	{"words of older drafts", `{"type":"object","properties":{"a":{"type":"number","minimum":0,"exclusiveMinimum":true,"required":true},"b":{"type":"array","items":[{"type":"string"}]}}}`,
		`{"type":"object","properties":{"a":{"type":"number","minimum":0},"b":{"type":"array","prefixItems":[{"type":"string"}]}}}`,
		`{"type":"object","properties":{"a":{"type":"number","minimum":0},"b":{"type":"array","prefixItems":[{"type":"string"}],"items":{}}}}`, ""},
	{"words with values of another form", `{"type":"Object","properties":{"a":{"type":"String","minLength":"3","maxLength":9.0,"description":7,"enum":"x","readOnly":1},"b":{"type":["string",null,"Integer","string"]},"c":{"type":"any","minimum":"0"}}}`,
		`{"type":"object","properties":{"a":{"type":"string","maxLength":9.0},"b":{"type":["string","integer"]},"c":{}}}`, "", ""},
	{"an array without items", `{"type":"object","properties":{"a":{"type":"array"}}}`, "", `{"type":"object","properties":{"a":{"type":"array","items":{}}}}`, ""},
	{"perhaps an array, without items", `{"type":"object","properties":{"a":{"type":["array","null"]}}}`, "", `{"type":"object","properties":{"a":{"type":["array","null"],"items":{}}}}`, ""},
	{"alternatives that are none", `{"type":"object","properties":{"a":{"anyOf":[]}},"anyOf":7}`, `{"type":"object","properties":{"a":{}}}`, "", ""},
	{"properties that are none", `{"type":"object","properties":[]}`, `{"type":"object"}`, `{"type":"object","properties":{}}`, ""},
	{"odd names", `{"type":"object","properties":{"$filter":{"type":"string"},"ok":{}},"required":["$filter"]}`,
		`{"type":"object","properties":{"_filter_` + hashOf("$filter") + `":{"type":"string","title":"$filter"},"ok":{}},"required":["_filter_` + hashOf("$filter") + `"]}`,
		`{"type":"object","properties":{"$filter":{"type":"string"},"ok":{}},"required":["$filter"]}`, ""},
}

func hashOf(name string) string {
	p := plain(name, maxToolName, "")
	return p[strings.LastIndex(p, "_")+1:]
}

// TestSchemas: a strict server takes every schema, and one that was valid goes as it came.
func TestSchemas(t *testing.T) {
	t.Parallel()
	for _, row := range schemas {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			api := tidemarktest.NewAPI(t)
			req := greeting
			req.MaxTokens = 10
			req.Tools = []tidemark.Tool{{Name: "fine", Description: "Fine.", InputSchema: json.RawMessage(emptySchema)}, {Name: "look", Description: "Looks.", InputSchema: json.RawMessage(row.schema)}}
			want := or(row.want, row.schema)
			for _, to := range []struct {
				tidemark.Provider
				want string
			}{
				{&Anthropic{BaseURL: api.URL, Transport: http.DefaultTransport}, want},
				{&OpenAI{BaseURL: api.URL + "/v1", Transport: http.DefaultTransport}, or(row.chat, want)},
			} {
				if _, err := tidemark.Complete(t.Context(), to, req); err != nil {
					t.Error(err)
				}
				sent := api.Calls()[len(api.Calls())-1].Tools
				if string(sent[1].InputSchema) != to.want {
					t.Errorf("sent %s\nwant %s", sent[1].InputSchema, to.want)
				}
				if !strings.HasPrefix(sent[1].Description, "Looks.") || !strings.Contains(sent[1].Description, row.says) || row.says == "" && sent[1].Description != "Looks." {
					t.Errorf("it says %q", sent[1].Description)
				}
				if string(sent[0].InputSchema) != emptySchema || sent[0].Description != "Fine." {
					t.Errorf("its neighbour is %+v", sent[0])
				}
			}
		})
	}
}

// TestManyTools: OpenAI is offered as many tools as it takes, the first ones; others all that there are.
func TestManyTools(t *testing.T) {
	t.Parallel()
	req := greeting
	for i := range maxChatTools + 10 {
		req.Tools = append(req.Tools, tidemark.Tool{Name: fmt.Sprint("t", i)})
	}
	fit := (&OpenAI{}).valid(req)
	if err := tidemarktest.CheckChat(fit.Request); err != nil || len(fit.Tools) != maxChatTools || fit.Tools[0].Name != "t0" {
		t.Errorf("%d tools, %v", len(fit.Tools), err)
	}
	if fit := (&OpenAI{BaseURL: "http://127.0.0.1/v1"}).valid(req); len(fit.Tools) != len(req.Tools) || tidemarktest.CheckChat(fit.Request) == nil {
		t.Errorf("elsewhere %d tools", len(fit.Tools))
	}
	if fit := (&Anthropic{}).valid(req); len(fit.Tools) != len(req.Tools) {
		t.Errorf("to Anthropic %d tools", len(fit.Tools))
	}
}

// TestToolsLeftOut: a reply names the tools that its request went without.
func TestToolsLeftOut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tools int
		want  []string
	}{{maxChatTools, nil}, {maxChatTools + 2, []string{"t128", "t129"}}} {
		req := greeting
		for i := range c.tools {
			req.Tools = append(req.Tools, tidemark.Tool{Name: fmt.Sprint("t", i)})
		}
		var got []string
		(&OpenAI{}).valid(req).own(func(d tidemark.Delta, _ error) bool {
			got = d.Reply.LeftOut
			return true
		})(tidemark.Delta{Reply: &tidemark.Reply{}}, nil)
		if !slices.Equal(got, c.want) {
			t.Errorf("of %d tools %q are left out, want %q", c.tools, got, c.want)
		}
	}
}

// TestOddNamesComeBack: a tool and its arguments have other names where an API does not take their own. A call comes back
// by these, and goes out again by the others.
func TestOddNamesComeBack(t *testing.T) {
	t.Parallel()
	api := tidemarktest.NewAPI(t)
	a := &Anthropic{BaseURL: api.URL, Transport: http.DefaultTransport}
	req := greeting
	req.MaxTokens = 10
	req.Tools = []tidemark.Tool{{Name: "web.look", InputSchema: json.RawMessage(`{"type":"object","properties":{"größe":{"type":"array","items":{"type":"object","properties":{"@id":{}}}}}}`)},
		{Name: "look", InputSchema: json.RawMessage(`{"type":"object","properties":{"größe":{}}}`)}}
	size, id, name := plain("größe", maxToolName, "."), plain("@id", maxToolName, "."), plain("web.look", maxToolName, "")
	sent := `{"` + size + `":[{"` + id + `":1.0}]}`
	api.Push(tidemarktest.Step{Blocks: []json.RawMessage{tidemark.ToolUse("c1", name, json.RawMessage(sent)).AppendJSON(nil), tidemark.ToolUse("c2", "look", json.RawMessage(`{"@id":2}`)).AppendJSON(nil)}, Stop: "tool_use"})
	began := ""
	for d, err := range a.Stream(t.Context(), req) {
		if err != nil {
			t.Fatal(err)
		}
		if began += d.Tool + " "; d.Reply == nil {
			continue
		}
		calls := d.Reply.Message.Content
		if len(calls) != 2 || calls[0].Name != "web.look" || string(calls[0].Input) != `{"größe":[{"@id":1.0}]}` || string(calls[1].Input) != `{"@id":2}` {
			t.Fatalf("the reply is %s", d.Reply.Message.AppendJSON(nil))
		}
		req.Messages = append(req.Messages[:1:1], d.Reply.Message, tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult("c1", "x", false), tidemark.ToolResult("c2", "y", false)}})
	}
	if !strings.Contains(began, "web.look") {
		t.Errorf("the calls that began are %q", began)
	}
	if body := string(a.body(req)); !strings.Contains(body, `"name":"`+name+`","input":`+sent) || strings.Contains(body, "web.look") {
		t.Errorf("it goes out again as %s", body)
	}
}

// TestSchemaOfManyWays: references that lead to each other in more ways than anybody can count are looked at for so long
// only. Without that bound this test does not end.
func TestSchemaOfManyWays(t *testing.T) {
	refs := strings.TrimSuffix(strings.Repeat(`{"$ref":"#/$defs/a"},`, 50), ",")
	schema := `{"anyOf":[` + refs + `],"$defs":{"a":{"anyOf":[` + refs + `],"properties":{"x":{"type":"string"}}}}}`
	o := &OpenAI{}
	fit := o.valid(tidemark.Request{Tools: []tidemark.Tool{{Name: "t", InputSchema: []byte(schema)}}, Messages: []tidemark.Message{tidemark.NewText(tidemark.User, "hi")}})
	if got := string(fit.Tools[0].InputSchema); !strings.Contains(got, `"x"`) || !strings.Contains(got, `"type":"object"`) {
		t.Errorf("%.300s", got)
	}
}

// TestUnfit: a reply says of the pictures and files that came last which its request went without, and why; of earlier ones that
// was said before.
func TestUnfit(t *testing.T) {
	t.Parallel()
	var odd, fine tidemark.Block
	if err := errors.Join(json.Unmarshal([]byte(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}`), &odd),
		json.Unmarshal([]byte(`{"type":"image","source":{"type":"url","url":"https://x.test/a.png"}}`), &fine)); err != nil {
		t.Fatal(err)
	}
	inside := tidemark.Block{Type: tidemark.TypeToolResult, ToolUseID: "c", Content: []tidemark.Block{odd}}
	said := func(role tidemark.Role, blocks ...tidemark.Block) tidemark.Message {
		return tidemark.Message{Role: role, Content: blocks}
	}
	for _, c := range []struct {
		name     string
		messages []tidemark.Message
		want     int
	}{
		{"two of three", []tidemark.Message{said(tidemark.User, odd, fine, odd)}, 2},
		{"before an answer", []tidemark.Message{said(tidemark.User, odd), tidemark.NewText(tidemark.Assistant, "so"), said(tidemark.User, fine)}, 0},
		{"in a result", []tidemark.Message{tidemark.NewText(tidemark.User, "look"), said(tidemark.Assistant, tidemark.ToolUse("c", "look", []byte(`{}`))), said(tidemark.User, inside)}, 1},
	} {
		for name, s := range map[string]*sending{"Anthropic": (&Anthropic{}).valid(tidemark.Request{Messages: c.messages}), "OpenAI": (&OpenAI{}).valid(tidemark.Request{Messages: c.messages})} {
			var got []string
			s.own(func(d tidemark.Delta, _ error) bool {
				got = d.Reply.Unfit
				return true
			})(tidemark.Delta{Reply: &tidemark.Reply{}}, nil)
			if len(got) != c.want || c.want > 0 && got[0] != "A picture (image/png) stood here and is left out: it is no PNG, JPEG, GIF or WebP. It is whole in the log." {
				t.Errorf("%s to %s: %q", c.name, name, got)
			}
		}
	}
}

// TestLongDescription: OpenAI takes so much of what a tool is described with; others all of it.
func TestLongDescription(t *testing.T) {
	t.Parallel()
	const most = 1024
	for n, want := range map[int]int{most: most, most + 1: most, 5000: most} {
		req := greeting
		req.Tools = []tidemark.Tool{{Name: "look", Description: strings.Repeat("x", n), InputSchema: json.RawMessage(emptySchema)}}
		if got := (&OpenAI{}).valid(req).Tools[0].Description; len(got) != want || (n > most) != strings.HasSuffix(got, "x…") {
			t.Errorf("of %d bytes %d are sent", n, len(got))
		}
		if got := (&OpenAI{BaseURL: "http://127.0.0.1/v1"}).valid(req).Tools[0].Description; len(got) != n {
			t.Errorf("elsewhere of %d bytes %d are sent", n, len(got))
		}
	}
}

// TestEmptyKey: an argument whose name is empty comes back as that.
func TestEmptyKey(t *testing.T) {
	t.Parallel()
	req := greeting
	req.Tools = []tidemark.Tool{{Name: "look", InputSchema: json.RawMessage(`{"type":"object","properties":{"":{"type":"string"},"b":{}}}`)}}
	s := (&Anthropic{}).valid(req)
	sent := s.aliases.keysSent("look", []byte(`{"":"x","b":1}`))
	back := s.aliases.reply(tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("c", "look", sent)}})
	if strings.Contains(string(sent), `{""`) || string(back.Content[0].Input) != `{"":"x","b":1}` {
		t.Errorf("sent %s, back %s", sent, back.Content[0].Input)
	}
}
