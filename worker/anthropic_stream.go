package worker

import (
	"net/http"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

// messages answers in the Messages API: as events
// (https://docs.anthropic.com/en/docs/build-with-claude/streaming), or whole. An answer is one text: the
// tools of a conversation are run here, and its thinking is signed for the provider.
type messages struct {
	texts
	id    string
	model string
}

var _ dialect = (*messages)(nil)

func (c *request) message(f messagesForm) *messages {
	m := &messages{model: f.model}
	m.texts = texts{request: c, live: f.stream, errorForm: anthropic, speech: speech{atEnd: !f.stream}, head: m.head, send: func(text string) error {
		return m.event(blockEvent{Type: "content_block_delta", Delta: &textWire{"text_delta", text}})
	}}
	return m
}

type (
	messageWire struct {
		ID      string        `json:"id"`
		Type    string        `json:"type"`
		Role    string        `json:"role"`
		Model   string        `json:"model"`
		Content []textWire    `json:"content"`
		Stop    *string       `json:"stop_reason"`
		StopSeq *string       `json:"stop_sequence"`
		Usage   messagesUsage `json:"usage"`
	}
	textWire struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	// messagesUsage has all figures, as those of the API: 0 is said, too.
	messagesUsage struct {
		Input         tidemark.Tokens `json:"input_tokens"`
		CacheCreation tidemark.Tokens `json:"cache_creation_input_tokens"`
		CacheRead     tidemark.Tokens `json:"cache_read_input_tokens"`
		Output        tidemark.Tokens `json:"output_tokens"`
	}
	messageStart struct {
		Type    string      `json:"type"`
		Message messageWire `json:"message"`
	}
	blockEvent struct {
		Type  string    `json:"type"`
		Index int       `json:"index"`
		Block *textWire `json:"content_block,omitempty"`
		Delta *textWire `json:"delta,omitempty"`
	}
	messageDelta struct {
		Type  string        `json:"type"`
		Delta stopWire      `json:"delta"`
		Usage messagesUsage `json:"usage"`
	}
	stopWire struct {
		Stop    string  `json:"stop_reason"`
		StopSeq *string `json:"stop_sequence"`
	}
	typeOnly struct {
		Type string `json:"type"`
	}
)

// open implements dialect.
func (m *messages) open(r session.Receipt) error {
	m.id = "msg_" + r.ID
	h := m.w.Header()
	h.Set("Request-Id", m.w.id)
	if r.Duplicate {
		h.Set(headerDuplicate, "1")
	}
	return nil
}

// head sends the head of the stream, of the message and of its one block.
func (m *messages) head() error {
	if err := m.stream.event("message_start", messageStart{"message_start", m.wire(nil)}); err != nil {
		return err
	}
	return m.event(blockEvent{Type: "content_block_start", Block: &textWire{Type: "text"}})
}

func (m *messages) wire(content []textWire) messageWire {
	if content == nil {
		content = []textWire{}
	}
	return messageWire{ID: m.id, Type: "message", Role: string(tidemark.Assistant), Model: m.model, Content: content}
}

func (m *messages) event(e blockEvent) error { return m.stream.event(e.Type, e) }

// end implements dialect.
func (m *messages) end(out outcome) error {
	if err := m.say(m.rest(out)); err != nil {
		return err
	}
	stop := "end_turn"
	if out.Stop == "max_tokens" || out.Stop == "refusal" {
		stop = out.Stop
	}
	usage := messagesUsage{out.Usage.Input, out.Usage.CacheCreation, out.Usage.CacheRead, out.Usage.Output}
	if !m.live {
		w := m.wire([]textWire{{"text", m.text.String()}})
		w.Stop, w.Usage = &stop, usage
		return m.reply(http.StatusOK, w)
	}
	if err := m.start(); err != nil {
		return err
	}
	defer m.stream.end()
	if err := m.event(blockEvent{Type: "content_block_stop"}); err != nil {
		return err
	}
	if err := m.stream.event("message_delta", messageDelta{"message_delta", stopWire{Stop: stop}, usage}); err != nil {
		return err
	}
	return m.stream.event("message_stop", typeOnly{"message_stop"})
}
