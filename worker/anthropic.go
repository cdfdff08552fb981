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

// messagesLimits are what such a conversation lacks.
var messagesLimits = []limit{
	{"tools", []string{"[]"}, "a conversation that is kept here has tools of its own and cannot run those of the client; leave out one or the other"},
	{"mcp_servers", []string{"[]"}, "a conversation that is kept here has tools of its own"},
	{"container", nil, "a conversation that is kept here has tools of its own"},
	{"tool_choice", []string{`{"type":"auto"…`, `{"type":"none"…`, `{"disable_parallel_tool_use":…`}, "the model chooses"},
	{"stop_sequences", []string{"[]"}, "leave it out, and cut the answer"},
}

func readMessages(raw []byte) (messagesForm, error) {
	var f messagesForm
	rest, err := decodeForm(raw, field{"model", "a string", &f.model}, field{"stream", "true or false", &f.stream},
		field{"messages", "a list of messages, each with role and content", &f.messages})
	if err != nil {
		return f, err
	}
	if err := judge(rest, messagesLimits); err != nil {
		return f, err
	}
	delete(rest, "metadata") // it asks for nothing
	f.rest, f.messages = rest, merged(folded(f.messages))
	return f, keepable(f.messages)
}

// kept is the key of the conversation that a request of the Messages API is of, empty for none.
func (c *call) kept() (tidemark.Key, error) {
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
func (c *call) postMessages() error {
	key, err := c.kept()
	if err != nil {
		return err
	}
	if key == "" {
		return c.pass(messagesPath)
	}
	raw, err := c.body()
	if err != nil {
		return err
	}
	f, err := readMessages(raw)
	if err != nil {
		return err
	}
	t := talk{key: key, channel: "api", messages: f.messages, ignored: named(f.rest)}
	return c.converse(t, c.message(f))
}

// countTokens says how large a request would be: of a conversation that is kept here, what the model would
// be sent now with what is new.
func (c *call) countTokens() error {
	key, err := c.kept()
	if err != nil {
		return err
	}
	if key == "" {
		return c.pass(countPath)
	}
	raw, err := c.body()
	if err != nil {
		return err
	}
	f, err := readMessages(raw)
	if err != nil {
		return err
	}
	in, err := talk{key: key, messages: f.messages}.input()
	if err != nil {
		return err
	}
	total := tidemark.Estimate(in.Message)
	s, err := c.Actors.Session(c.r.Context(), key, false)
	switch {
	case failureOf(err).status == http.StatusNotFound && err != nil: // a conversation that begins with it
	case err != nil:
		return fmt.Errorf("open session %s: %w", key, err)
	default:
		v, err := s.View(c.r.Context())
		if err != nil {
			return err
		}
		total += v.Size
	}
	c.w.Header().Set(headerSession, string(key))
	return c.reply(http.StatusOK, map[string]tidemark.Tokens{"input_tokens": total})
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
