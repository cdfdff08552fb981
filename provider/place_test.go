package provider

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	tidemark "github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// refusing is a server that refuses every request in these words.
func refusing(t *testing.T, status int, body string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// placed is a request in which places move on their way: a greeting first, an empty text, a system message in between, a
// result with pictures, a note at the end.
func placed(t *testing.T) tidemark.Request {
	picture := pictureJSON("image/png", pngOf(2, 2))
	return tidemark.Request{
		Model: "m", System: "Be kind.", Note: "It is noon.", MaxTokens: 10,
		Tools: []tidemark.Tool{{Name: "look"}, {Name: "web.look"}},
		Messages: []tidemark.Message{
			mustMessage(t, replyJSON(textJSON("Hello."))),
			mustMessage(t, userJSON(textJSON(" "), textJSON("this"), picture)),
			mustMessage(t, `{"role":"system","content":"Be short."}`),
			mustMessage(t, replyJSON(`{"type":"thinking","thinking":"hm","signature":"s"}`, textJSON("Well."), `{"type":"tool_use","id":"c1","name":"look","input":{}}`, `{"type":"tool_use","id":"c2","name":"look","input":{}}`)),
			mustMessage(t, userJSON(`{"type":"tool_result","tool_use_id":"c1","content":"x"}`, `{"type":"tool_result","tool_use_id":"c2","content":[{"type":"text","text":""},{"type":"text","text":"seen"},`+picture+`]}`)),
		},
	}
}

// TestPlaces: what an API names as it was sent is found in the request as it came.
func TestPlaces(t *testing.T) {
	t.Parallel()
	none := tidemark.Place{Message: -1, Block: -1, Inner: -2}
	of := func(message, block, inner int) tidemark.Place {
		return tidemark.Place{Message: message, Block: block, Inner: inner}
	}
	tool := func(name string) tidemark.Place {
		return tidemark.Place{Message: -1, Block: -1, Inner: -1, Tool: name}
	}
	for _, row := range []struct {
		name, says, param string
		chat              bool
		want              tidemark.Place
	}{
		// The Messages API is sent: greeting; "Hello."; this, picture, reminder; thinking, text, calls; results, note.
		{"a greeting of ours", "messages.0.content.0: odd", "", false, none},
		{"the first", "messages.1.content.0.text: odd", "", false, of(0, 0, -1)},
		{"behind an empty text", "messages.2.content.0: odd", "", false, of(1, 1, -1)},
		{"a picture", "messages.2.content.1.image.source.base64.data: odd", "", false, of(1, 2, -1)},
		{"a system message in a reminder", "messages.2.content.2: odd", "", false, of(2, 0, -1)},
		{"thinking", "messages.3.content.0: Invalid `signature` in `thinking` block", "", false, of(3, 0, -1)},
		{"a result", "messages.4.content.1.tool_result.content: odd", "", false, of(4, 1, -1)},
		{"a picture in a result, behind an empty text", "messages.4.content.1.tool_result.content.1.image.source: odd", "", false, of(4, 1, 2)},
		{"the note", "messages.4.content.2: odd", "", false, none},
		{"a message", "messages.3: odd", "", false, of(3, -1, -1)},
		{"a message beyond", "messages.9.content.0: odd", "", false, none},
		{"a block beyond", "messages.3.content.9: odd", "", false, none},
		{"a tool", "tools.1.custom.input_schema: odd", "", false, tool("web.look")},
		{"a tool beyond", "tools.7.custom.input_schema: odd", "", false, none},
		{"no place", "messages: 3 images are too many, 2.5 times", "", false, none},
		{"a limit", "max_tokens: 3 > 2", "", false, none},

		{"a tool by its name, quoted", "Tool 'look' has an invalid schema", "", false, tool("look")},
		{"a count", "messages, 3 of them, are too many; messages - 3", "", false, none},

		// Chat completions are sent: system; "Hello."; this, picture; system; text and calls; tool; tool; pictures and note.
		{"chat: the system text", "odd", "messages[0].content", true, none},
		{"chat: the first", "odd", "messages[1].content", true, of(0, 0, -1)},
		{"chat: a part", "odd", "messages.[2].content.[1].image_url", true, of(1, 2, -1)},
		{"chat: a part in a reminder", "odd", "messages[2].content[2]", true, of(2, 0, -1)},
		{"chat: the second call", "Invalid 'messages[3].tool_calls[1].id': string too long", "", true, of(3, 3, -1)},
		{"chat: a result", `[{"loc":["body","messages",4,"content"],"msg":"odd"}]`, "", true, of(4, 0, -1)},
		{"chat: the picture of a result", "odd", "messages.6.content.1", true, of(4, 1, 2)},
		{"chat: the note", "odd", "messages.6.content.2", true, none},
		{"chat: a tool", "odd", "tools[0].function.parameters", true, tool("look")},
		{"chat: a tool by its name", "Invalid schema for function 'look': odd", "", true, tool("look")},
		{"chat: Gemini's one tool", "* GenerateContentRequest.tools[0].function_declarations[1].parameters.properties[a].format: odd", "", true, tool("web.look")},
		{"chat: Python's form", "[{'type': 'value_error', 'loc': ('body', 'messages', 2, 'content', 1, 'text'), 'msg': 'odd'}]", "", true, of(1, 2, -1)},
		{"chat: JSON with spaces", `[{"loc": ["body", "messages", 3, "tool_calls", 1, "id"], "msg": "odd"}]`, "", true, of(3, 3, -1)},
		{"chat: JSON in JSON", `{\"loc\": [\"body\", \"messages\", 2, \"content\", 1]}`, "", true, of(1, 2, -1)},
		{"chat: arrows", "body -> tools -> 1 -> function -> parameters: odd", "", true, tool("web.look")},
		{"chat: a name that is none of ours", "Invalid schema for function 'other': odd", "", true, none},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			body, err := json.Marshal(map[string]any{"error": map[string]any{"type": "invalid_request_error", "message": row.says, "param": row.param}})
			if err != nil {
				t.Fatal(err)
			}
			url := refusing(t, http.StatusBadRequest, string(body))
			var p tidemark.Provider = &Anthropic{BaseURL: url, Transport: http.DefaultTransport}
			if row.chat {
				p = &OpenAI{BaseURL: url, Transport: http.DefaultTransport}
			}
			_, err = tidemark.Complete(t.Context(), p, placed(t))
			e := apiError(t, err)
			switch {
			case row.want == none && e.Place != nil:
				t.Errorf("found %+v", *e.Place)
			case row.want != none && (e.Place == nil || *e.Place != row.want):
				t.Errorf("found %+v, want %+v", e.Place, row.want)
			}
		})
	}
}

// TestPlaceBehindPieces: where a text goes out in pieces, a place behind them is found, and one in them is of that text.
func TestPlaceBehindPieces(t *testing.T) {
	long := textJSON(strings.Repeat("a", 2*maxString+1))
	picture := `{"type":"image","source":{"type":"url","url":"https://example.org/a.png"}}`
	req := tidemark.Request{Model: "m", Messages: []tidemark.Message{mustMessage(t, userJSON(long, picture, picture)), mustMessage(t, replyJSON(`{"type":"tool_use","id":"c1","name":"look","input":{}}`)),
		mustMessage(t, userJSON(`{"type":"tool_result","tool_use_id":"c1","content":[`+long+`]}`, long, textJSON("b")))}}
	o := &OpenAI{}
	fit := o.valid(req)
	_, places := o.encode(fit.Request, true)
	for at, want := range map[string]tidemark.Place{
		"messages[0].content[2]": {Message: 0, Block: 0, Inner: -1}, "messages[0].content[3]": {Message: 0, Block: 1, Inner: -1}, "messages[0].content[4]": {Message: 0, Block: 2, Inner: -1},
		"messages[2].content[1]": {Message: 2, Block: 0, Inner: -1}, "messages[3].content[2]": {Message: 2, Block: 1, Inner: -1}, "messages[3].content[3]": {Message: 2, Block: 2, Inner: -1},
	} {
		api := &tidemark.APIError{Class: tidemark.ClassBadRequest, Param: at}
		fit.refused(api, places.find(fit))
		if api.Place == nil || *api.Place != want {
			t.Errorf("%s is %+v, want %+v", at, api.Place, want)
		}
	}
}

// TestNoPlace: a server that is down refuses no place.
func TestNoPlace(t *testing.T) {
	t.Parallel()
	e := apiError(t, func() error {
		_, err := tidemark.Complete(t.Context(), &Anthropic{BaseURL: refusing(t, http.StatusServiceUnavailable, `{"error":{"message":"messages.1.content.0"}}`), Transport: http.DefaultTransport}, placed(t))
		return err
	}())
	if e.Place != nil {
		t.Errorf("a server that is down names %+v", *e.Place)
	}
}

// TestWorkersAIPlaces: Workers AI names places as a JSON pointer; the request is the second, without the pictures.
func TestWorkersAIPlaces(t *testing.T) {
	t.Parallel()
	for says, want := range map[string]tidemark.Place{
		"5006: oneOf at '/' not met, 0 matches: Type mismatch of '/messages/1/content', 'string' not in 'array'": {Message: 0, Block: 0, Inner: -1},
		"5006: Type mismatch of '/messages/4/content', 'string' not in 'array'":                                  {Message: 4, Block: 0, Inner: -1},
		"5006: required properties at '/tools/1/function/parameters' are 'type'":                                 {Message: -1, Block: -1, Inner: -1, Tool: "web.look"},
	} {
		body, err := json.Marshal(map[string]any{"errors": []any{map[string]any{"code": 5006, "message": says}}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = tidemark.Complete(t.Context(), &WorkersAI{Model: "m", BaseURL: refusing(t, http.StatusBadRequest, string(body)), Transport: http.DefaultTransport}, placed(t))
		if e := apiError(t, err); e.Place == nil || *e.Place != want {
			t.Errorf("%s: found %+v, want %+v", says, e.Place, want)
		}
	}
}
