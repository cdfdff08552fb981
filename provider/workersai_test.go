package provider

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	tidemark "github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

func workersAI(api *tidemarktest.API) *WorkersAI {
	return &WorkersAI{BaseURL: api.URL + "/ai/flat", Transport: http.DefaultTransport}
}

// TestWorkersAISends: the model is in the path, a bound is always sent.
func TestWorkersAISends(t *testing.T) {
	api := tidemarktest.NewAPI(t)
	req := hi()
	for _, model := range []string{"@cf/zai-org/glm-4.7-flash", "odd name?x=1#y"} {
		req.Model = model
		reply, err := tidemark.Complete(t.Context(), workersAI(api), req)
		if err != nil || reply.Call.Model != model {
			t.Errorf("%s: %+v, %v", model, reply.Call, err)
		}
		calls := api.Calls()
		if c := calls[len(calls)-1]; c.Model != model || c.MaxTokens != workersaiTokens || !c.Stream {
			t.Errorf("%s: sent as %q, %d tokens, %v", model, c.Model, c.MaxTokens, c.Header)
		}
	}
	p := workersAI(api)
	p.MaxTokens = 7
	if _, err := tidemark.Complete(t.Context(), p, req); err != nil || api.Calls()[2].MaxTokens != 7 {
		t.Errorf("bound %d, %v", api.Calls()[2].MaxTokens, err)
	}
}

// TestWorkersAIElsewhere: a host without the binding names the way that it has.
func TestWorkersAIElsewhere(t *testing.T) {
	_, err := tidemark.Complete(t.Context(), NewWorkersAI("@cf/x/y", nil, nil), hi())
	if e := apiError(t, err); e.Class != tidemark.ClassBadRequest || !strings.Contains(e.Message, "/ai/v1") || !strings.Contains(e.Message, "OPENAI_API_KEY") {
		t.Error(err)
	}
}

// TestWorkersAIImages: a model that refuses images is asked once more, with notes in their place.
func TestWorkersAIImages(t *testing.T) {
	image := hi()
	image.Messages = append(image.Messages, mustMessage(t, `{"role":"assistant","content":"what?"}`),
		mustMessage(t, `{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}},{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}},{"type":"text","text":"this"}]}`))
	refused := tidemarktest.Step{Status: 400, Type: "5006", Message: "oneOf at '/' not met"}
	for _, c := range []struct {
		name  string
		req   tidemark.Request
		steps []tidemarktest.Step
		calls int
		fails bool
	}{
		{"taken", image, nil, 1, false},
		{"refused", image, []tidemarktest.Step{refused}, 2, false},
		{"refused again", image, []tidemarktest.Step{refused, refused}, 2, true},
		{"refused without images", hi(), []tidemarktest.Step{refused}, 1, true},
		{"no such model", image, []tidemarktest.Step{{Status: 400, Type: "5007", Message: "No such model @cf/x or task"}}, 1, true},
		{"no capacity", image, []tidemarktest.Step{{Status: 429, Type: "3040"}}, 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			api := tidemarktest.NewAPI(t)
			api.Push(c.steps...)
			_, err := tidemark.Complete(t.Context(), workersAI(api), c.req)
			if (err != nil) != c.fails || len(api.Calls()) != c.calls {
				t.Fatalf("%d calls, %v", len(api.Calls()), err)
			}
			if c.calls == 2 {
				first, second := string(api.Calls()[0].Body), string(api.Calls()[1].Body)
				if !strings.Contains(first, "iVBORw0KGgo") || !strings.Contains(first, "[image omitted: Workers AI takes none by address]") {
					t.Errorf("sent %s", first)
				}
				if strings.Contains(second, "iVBORw0KGgo") || strings.Count(second, "[image omitted: the model takes none]") != 2 {
					t.Errorf("then sent %s", second)
				}
			}
		})
	}
}

// TestWorkersAIWhole: a model that cannot stream answers with nothing, and is asked again without.
func TestWorkersAIWhole(t *testing.T) {
	nothing := tidemarktest.Step{Raw: `{"result":{},"success":true,"errors":[],"messages":[]}`, ContentType: "application/json"}
	for _, c := range []struct {
		name  string
		steps []tidemarktest.Step
		calls int
		want  string // the text, or a part of the error
	}{
		{"answers without", []tidemarktest.Step{nothing, {Text: "late"}}, 2, "late"},
		{"answers never", []tidemarktest.Step{nothing, nothing}, 2, "no content"},
		{"null", []tidemarktest.Step{{Raw: `{"result":null}`, ContentType: "application/json"}, {Text: "late"}}, 2, "late"},
		{"a number", []tidemarktest.Step{{Raw: `{"response":42}`, ContentType: "application/json"}}, 1, "42"},
		{"an error under 200", []tidemarktest.Step{{Raw: `{"result":{},"success":false,"errors":[{"code":3040,"message":"full"}]}`, ContentType: "application/json"}}, 1, "overloaded (200 3040): full"},
		{"no JSON", []tidemarktest.Step{{Raw: `{"result":{`, ContentType: "application/json"}}, 1, "not JSON"},
		{"cut by its bound", []tidemarktest.Step{{Raw: `{"response":"and","usage":{"prompt_tokens":1,"completion_tokens":8192}}`, ContentType: "application/json"}}, 1, "and"},
	} {
		t.Run(c.name, func(t *testing.T) {
			api := tidemarktest.NewAPI(t)
			api.Push(c.steps...)
			reply, err := tidemark.Complete(t.Context(), workersAI(api), hi())
			got := fmt.Sprint(err)
			if err == nil {
				got = reply.Message.PlainText()
			}
			if !strings.Contains(got, c.want) || len(api.Calls()) != c.calls {
				t.Errorf("%d calls, %s, want %s", len(api.Calls()), got, c.want)
			}
			for i, call := range api.Calls() {
				if call.Stream != (i == 0) {
					t.Errorf("call %d streams: %t", i, call.Stream)
				}
			}
			if cut := strings.HasPrefix(c.name, "cut"); cut != (reply.Call.Stop == "max_tokens") {
				t.Errorf("stopped by %q", reply.Call.Stop)
			}
		})
	}
}

// TestWorkersAIErrors: the code decides over the status, wherever it stands.
func TestWorkersAIErrors(t *testing.T) {
	for _, c := range []struct {
		name, body string
		status     int
		want       tidemark.Class
	}{
		{"capacity", `{"errors":[{"code":3040,"message":"AiError: Capacity temporarily exceeded"}],"success":false}`, 429, tidemark.ClassOverloaded},
		{"daily allocation", `{"internalCode":3036,"description":"you have used up your daily free allocation"}`, 429, tidemark.ClassAuth},
		{"too many", `{"errors":[{"code":10429,"message":"slow down"}]}`, 429, tidemark.ClassRate},
		{"no such model", `{"internalCode":5007,"description":"No such model @cf/x or task"}`, 400, tidemark.ClassBadRequest},
		{"no such model under 404", `{"internalCode":3042,"description":"The model name is invalid"}`, 404, tidemark.ClassBadRequest},
		{"bad input", `{"internalCode":5006,"description":"Error: required properties at '/' are 'prompt'"}`, 400, tidemark.ClassBadRequest},
		{"window, own words", `{"internalCode":5021,"description":"AiError: The estimated number of input and maximum output tokens (9000) exceeded this model context window limit (7968)."}`, 400, tidemark.ClassOverflow},
		{"window, words alone", `{"errors":[{"code":8007,"message":"exceeded this model context window limit (7968)"}]}`, 400, tidemark.ClassOverflow},
		{"window, vLLM", `{"errors":[{"code":8007,"message":"AiError: This model's maximum context length is 131072 tokens. However, you requested 16000 output tokens"}]}`, 400, tidemark.ClassOverflow},
		{"too large", `{"internalCode":3006,"description":"Request is too large"}`, 413, tidemark.ClassOverflow},
		{"timeout", `{"internalCode":3007,"description":"Request timeout"}`, 408, tidemark.ClassNetwork},
		{"terms", `{"internalCode":5016,"description":"User has not agreed to Llama3.2 model terms"}`, 403, tidemark.ClassAuth},
		{"code in the words", `{"error":{"message":"InferenceUpstreamError: AiError: 3040: Capacity temporarily exceeded"}}`, 400, tidemark.ClassOverloaded},
		{"token", `{"errors":[{"code":10000,"message":"Authentication error"}]}`, 401, tidemark.ClassAuth},
		{"broken", `{"errors":[]}`, 500, tidemark.ClassOverloaded},
		{"a number in the words is no code", `{"error":{"message":"at most 3040 tokens"}}`, 400, tidemark.ClassBadRequest},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := apiError(t, workersaiError(statusError(c.status, http.Header{}, []byte(c.body), "", time.Time{})))
			if err.Class != c.want || err.Message == "" {
				t.Errorf("%v, want class %s", err, c.want)
			}
		})
	}
}

// FuzzWorkersAIShapes: whatever a model says, the three shapes of it read alike.
func FuzzWorkersAIShapes(f *testing.F) {
	f.Add("Hello 1 world", `{"at":"Kiel"}`, uint8(3))
	f.Add("", `{"n":1.0}`, uint8(1))
	f.Add("null", "", uint8(0))
	f.Fuzz(func(t *testing.T, text, args string, size uint8) {
		var object map[string]json.RawMessage
		if !utf8.ValidString(text) || args != "" && (json.Unmarshal([]byte(args), &object) != nil || object == nil) {
			return
		}
		var want string
		for _, shape := range []string{"choices", "flat", "both"} {
			o := read("workersai", strings.NewReader(shaped(shape, text, args, int(size)+1)))
			if o.Message != nil {
				for i, b := range o.Message.Content {
					if b.Type == tidemark.TypeToolUse {
						o.Message.Content[i] = tidemark.ToolUse("id", b.Name, b.Input)
					}
				}
			}
			raw, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			if want == "" {
				want = string(raw)
			}
			if string(raw) != want {
				t.Fatalf("%s reads as\n%s, choices as\n%s", shape, raw, want)
			}
		}
	})
}

// shaped is a stream that says text in pieces of size bytes and makes a call.
func shaped(shape, text, args string, size int) string {
	var out strings.Builder
	emit := func(delta, beside string) {
		var fields []string
		if shape != "flat" {
			fields = append(fields, `"choices":[{"index":0,"delta":{`+delta+`}}]`)
		}
		if shape != "choices" {
			fields = append(fields, beside)
		}
		out.WriteString("data: {" + strings.Join(fields, ",") + "}\n\n")
	}
	for len(text) > 0 {
		n := min(size, len(text))
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n++
		}
		piece := string(json.AppendString(nil, text[:n]))
		emit(`"content":`+piece, `"response":`+piece)
		text = text[n:]
	}
	if args != "" {
		emit(`"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":`+string(json.AppendString(nil, args))+`}}]`,
			`"tool_calls":[{"name":"f","arguments":`+strings.NewReplacer("\r", " ", "\n", " ").Replace(args)+`}]`)
	}
	return out.String() + "data: {\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n"
}
