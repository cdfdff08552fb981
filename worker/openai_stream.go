package worker

import (
	"net/http"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/sse"
	"github.com/tidemark-ai/tidemark/session"
)

// completion answers in chat completions: as chunks
// (https://platform.openai.com/docs/api-reference/chat-streaming), or whole.
type completion struct {
	texts
	id      string
	model   string
	created int64
	usage   bool // the client wants figures behind the chunks
}

var _ dialect = (*completion)(nil)

func (c *request) completion(f chatForm) *completion {
	o := &completion{id: "chatcmpl-" + c.w.id, model: f.model, created: c.Runtime.Now().Unix(), usage: f.usage}
	o.texts = texts{request: c, live: f.stream, errorForm: openAI, speech: speech{atEnd: !f.stream},
		head: func() error {
			empty := ""
			return o.chunk(chatDelta{Role: "assistant", Content: &empty}, "") // names the role
		}, send: func(text string) error { return o.chunk(chatDelta{Content: &text}, "") }}
	return o
}

type (
	chatChunk struct {
		ID      string          `json:"id"`
		Object  string          `json:"object"`
		Created int64           `json:"created"`
		Model   string          `json:"model"`
		Choices []chatChoice    `json:"choices"`
		Usage   json.RawMessage `json:"usage,omitempty"`
	}
	chatChoice struct {
		Index   int         `json:"index"`
		Delta   *chatDelta  `json:"delta,omitempty"`
		Message *chatAnswer `json:"message,omitempty"`
		Finish  *string     `json:"finish_reason"`
	}
	chatDelta struct {
		Role    string         `json:"role,omitempty"`
		Content *string        `json:"content,omitempty"`
		Calls   []chatCallWire `json:"tool_calls,omitempty"`
	}
	chatAnswer struct {
		Role    string         `json:"role"`
		Content *string        `json:"content"`
		Refusal *string        `json:"refusal"`
		Calls   []chatCallWire `json:"tool_calls,omitempty"`
	}
	chatCallWire struct {
		Index    *int         `json:"index,omitempty"` // of a chunk
		ID       string       `json:"id"`
		Type     string       `json:"type"`
		Function chatFunction `json:"function"`
	}
	chatFunction struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	chatUsage struct {
		Prompt     tidemark.Tokens `json:"prompt_tokens"`
		Completion tidemark.Tokens `json:"completion_tokens"`
		Total      tidemark.Tokens `json:"total_tokens"`
		Details    struct {
			Cached tidemark.Tokens `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	}
)

// open implements dialect.
func (o *completion) open(r session.Receipt) error {
	o.id = "chatcmpl-" + r.ID
	if r.Duplicate {
		o.w.Header().Set(headerDuplicate, "1")
	}
	return nil
}

func (o *completion) chunk(d chatDelta, finish string) error {
	choice := chatChoice{Delta: &d}
	if finish != "" {
		choice.Finish = &finish
	}
	return o.choices([]chatChoice{choice}, json.RawMessage("null"))
}

func (o *completion) choices(choices []chatChoice, usage json.RawMessage) error {
	if !o.usage {
		usage = nil
	}
	return o.stream.event("", chatChunk{o.id, "chat.completion.chunk", o.created, o.model, choices, usage})
}

// end implements dialect.
func (o *completion) end(out outcome) error {
	if err := o.say(o.rest(out)); err != nil {
		return err
	}
	return o.finish(finishOf(out.Stop, false), nil, out.Usage)
}

// answer is the text of an outcome.
func (out outcome) answer() string {
	if text := flat(out.Reply); text != "" {
		return text
	}
	return out.Text
}

// finish ends the answer, with the calls that the client is to make.
func (o *completion) finish(reason string, calls []chatCallWire, u tidemark.Usage) error {
	figures, err := json.Marshal(usageOf(u))
	if err != nil {
		return err
	}
	if !o.live {
		text := o.text.String()
		answer := chatAnswer{Role: "assistant", Content: &text, Calls: calls}
		if text == "" && len(calls) > 0 {
			answer.Content = nil
		}
		for i := range answer.Calls {
			answer.Calls[i].Index = nil
		}
		return o.reply(http.StatusOK, chatChunk{o.id, "chat.completion", o.created, o.model, []chatChoice{{Message: &answer, Finish: &reason}}, figures})
	}
	if err := o.start(); err != nil {
		return err
	}
	defer o.stream.end()
	if len(calls) > 0 {
		if err := o.chunk(chatDelta{Calls: calls}, ""); err != nil {
			return err
		}
	}
	if err := o.chunk(chatDelta{}, reason); err != nil {
		return err
	}
	if o.usage {
		if err := o.choices([]chatChoice{}, figures); err != nil {
			return err
		}
	}
	return o.stream.write(sse.Append(nil, "", "[DONE]"))
}

// finishOf names why an answer ended, as this API does.
func finishOf(stop string, calls bool) string {
	switch stop {
	case "max_tokens":
		return "length"
	case "refusal":
		return "content_filter"
	}
	if calls {
		return "tool_calls"
	}
	return "stop"
}

// usageOf converts figures: here the tokens of the prompt include those that were cached.
func usageOf(u tidemark.Usage) chatUsage {
	out := chatUsage{Prompt: u.Input + u.CacheRead + u.CacheCreation, Completion: u.Output}
	out.Total = out.Prompt + out.Completion
	out.Details.Cached = u.CacheRead
	return out
}

// callsOf are the tool calls of a reply.
func callsOf(m tidemark.Message) []chatCallWire {
	var out []chatCallWire
	for _, b := range m.Content {
		if b.Type == tidemark.TypeToolUse {
			at := len(out)
			out = append(out, chatCallWire{&at, b.ID, "function", chatFunction{b.Name, string(b.Input)}})
		}
	}
	return out
}
