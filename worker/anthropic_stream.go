package worker

import (
	"net/http"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

// messages answers in the Messages API: as events
// (https://docs.anthropic.com/en/docs/build-with-claude/streaming), or whole. An answer is one text: the
// tools of a conversation are run here, and its thinking is signed for the provider. The head of a stream is
// sent with the first piece, so that what fails before is a status.
type messages struct {
	*request
	id    string
	model string
	live  bool // the client wants events

	speech
	text   strings.Builder // the replies, when it is to be whole
	stream *stream         // once it has begun
}

var _ dialect = (*messages)(nil)

func (c *request) message(f messagesForm) *messages {
	return &messages{request: c, model: f.model, live: f.stream, speech: speech{atEnd: !f.stream}}
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

// tell implements dialect.
func (m *messages) tell(n session.Notice) error {
	switch n.Type {
	case session.NoticeText:
		return m.say(m.piece(n.Text))
	case session.NoticeRestart:
		m.restart()
	case session.NoticeReply:
		return m.say(m.whole(flat(n.Message)))
	case session.NoticeApproval:
		return m.say(m.whole(n.Text))
	}
	return nil
}

func (m *messages) say(text string) error {
	switch {
	case text == "":
		return nil
	case !m.live:
		m.text.WriteString(text)
		return nil
	}
	if err := m.start(); err != nil {
		return err
	}
	return m.event(blockEvent{Type: "content_block_delta", Delta: &textWire{"text_delta", text}})
}

// start sends the head of the stream, of the message and of its one block.
func (m *messages) start() error {
	if m.stream != nil {
		return nil
	}
	m.stream = m.begin()
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

// ping implements dialect.
func (m *messages) ping() error {
	if !m.live {
		return nil
	}
	if err := m.start(); err != nil {
		return err
	}
	return m.stream.event("ping", typeOnly{"ping"})
}

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

// fail implements dialect.
func (m *messages) fail(err error) error {
	if m.stream == nil {
		return err
	}
	defer m.stream.end()
	return m.stream.fail(anthropic, err)
}
