package worker

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// messagesForm is a request of the Messages API (https://docs.anthropic.com/en/api/messages), as far as a
// conversation that is kept here reads it.
type messagesForm struct {
	model    string
	stream   bool
	messages []tidemark.Message
	rest     map[string]json.RawMessage
}

// messagesLimits are what such a conversation lacks. It has tools of its own, so those of the client are not heeded, wherever
// they run; a call that must be made is refused, since no answer here could have it.
var messagesLimits = []limit{
	{"tools", []string{"[]"}, ""},
	{"mcp_servers", []string{"[]"}, ""},
	{"tool_choice", []string{`{"type":"auto"…`, `{"type":"none"…`, `{"disable_parallel_tool_use":true,"type":"auto"…`, `{"disable_parallel_tool_use":false,"type":"auto"…`},
		"the model chooses"},
	{"stop_sequences", []string{"[]"}, "leave it out, and cut the answer"},
}

func readMessages(raw []byte) (messagesForm, error) {
	var f messagesForm
	var messages []json.RawMessage
	rest, err := decodeForm(raw, field{"model", "a string", &f.model}, field{"stream", "true or false", &f.stream}, field{"messages", "a list of messages", &messages})
	if err != nil {
		return f, err
	}
	f.messages = make([]tidemark.Message, len(messages))
	for i, m := range messages {
		if err := f.messages[i].UnmarshalJSON(m); err != nil {
			return f, fmt.Errorf("messages[%d]: %w", i, err)
		}
	}
	if err := judge(rest, messagesLimits); err != nil {
		return f, err
	}
	delete(rest, "metadata") // it asks for nothing
	f.rest, f.messages = rest, merged(folded(f.messages))
	return f, keepable(f.messages)
}

// keepable refuses files by URL among what is new in a conversation that is kept.
func keepable(messages []tidemark.Message) error {
	if len(messages) == 0 {
		return nil
	}
	for _, b := range messages[len(messages)-1].Content {
		if b.Source != nil && b.Source.Type == "url" {
			_, err := attachment{url: b.Source.URL}.block()
			return err
		}
	}
	return nil
}

// kept is the key of the conversation that a request of the Messages API is of, empty for none.
func (c *request) kept() (tidemark.Key, error) {
	name := c.r.PathValue("key")
	if name == "" {
		name = c.r.Header.Get(headerSession)
	}
	if name == "" {
		return "", nil
	}
	return tidemark.ParseKey(name)
}

// postMessages is the Messages API. With a session the conversation is kept here; without, the client keeps its
// history, and the request goes on to Anthropic.
func postMessages(c *request) (any, error) {
	key, err := c.kept()
	if err != nil {
		return nil, err
	}
	if key == "" {
		return pass(c, messagesPath)
	}
	raw, err := c.body()
	if err != nil {
		return nil, err
	}
	f, err := readMessages(raw)
	if err != nil {
		return nil, err
	}
	t := talk{key: key, channel: "api", messages: f.messages, ignored: named(f.rest)}
	return converse(c, t, c.message(f))
}

// countTokens says how large a request would be: of a conversation that is kept here, what the model would
// be sent now with what is new.
func countTokens(c *request) (any, error) {
	key, err := c.kept()
	if err != nil {
		return nil, err
	}
	if key == "" {
		return pass(c, countPath)
	}
	raw, err := c.body()
	if err != nil {
		return nil, err
	}
	f, err := readMessages(raw)
	if err != nil {
		return nil, err
	}
	in, err := talk{key: key, messages: f.messages}.input()
	if err != nil {
		return nil, err
	}
	total := tidemark.Estimate(in.Message)
	s, err := c.Actors.Session(c.r.Context(), key, false)
	if err != nil && failureOf(err).status != http.StatusNotFound { // a conversation may begin with this request
		return nil, fmt.Errorf("open session %s: %w", key, err)
	}
	if s != nil {
		v, err := s.View(c.r.Context())
		if err != nil {
			return nil, err
		}
		total += v.Size
	}
	c.w.Header().Set(headerSession, string(key))
	c.ignore(named(f.rest))
	return map[string]tidemark.Tokens{"input_tokens": total}, nil
}

// ownHeader reports the headers that are between a client and this server, or between their machines: they
// go no further. Names are canonical.
func ownHeader(name string) bool {
	for _, prefix := range [...]string{"X-Tidemark-", "Cf-", "X-Forwarded-", "Proxy-", "Sec-", "Access-Control-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	switch name {
	case "Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Host", "Content-Length", "Expect",
		"Cookie", "Set-Cookie", "Origin", "Referer", "Forwarded", "Via", "X-Real-Ip", "True-Client-Ip", "Cdn-Loop":
		return true
	}
	return false
}
