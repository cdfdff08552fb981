package tidemark

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// Role says who speaks. Any other name than these passes through: a client may know roles that we do not.
type Role string

// The roles of a [Message] that we read. The system text of a request is no message. A message of the role system
// stands between the others and changes the instructions from there on
// (https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages).
const (
	User      Role = "user"
	Assistant Role = "assistant"
	System    Role = "system"
)

// Message is one message of the Messages API, and the only message type of this code base; other
// dialects are converted at their door. Content that came as a string goes out as a string.
type Message struct {
	Role    Role
	Content []Block

	bare bool // Content was a string on the wire
}

// NewText returns a message of one text, with string content.
func NewText(role Role, text string) Message {
	return Message{Role: role, Content: []Block{Text(text)}, bare: true}
}

// UnmarshalJSON decodes role and content; other fields are not part of a message.
func (m *Message) UnmarshalJSON(data []byte) error {
	if quick, ok := quickMessage(data); ok {
		*m = quick
		return nil
	}
	return m.decode(data)
}

func (m *Message) decode(data []byte) error {
	var w struct {
		Role    *string         `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(data, &w); err != nil {
		return fmt.Errorf("decode message: %w: %w", err, ErrInvalid)
	}
	if w.Role == nil || *w.Role == "" {
		return fmt.Errorf("decode message: no \"role\": %w", ErrInvalid)
	}
	if len(w.Content) == 0 || string(w.Content) == "null" {
		return fmt.Errorf("decode message: no \"content\": %w", ErrInvalid)
	}
	blocks, bare, err := decodeContent(w.Content, 0)
	if err != nil {
		return fmt.Errorf("decode message: %w", err)
	}
	*m = Message{Role: Role(*w.Role), Content: blocks, bare: bare}
	return nil
}

// MarshalJSON gives {"role":…,"content":…}.
func (m Message) MarshalJSON() ([]byte, error) { return m.AppendJSON(nil), nil }

// AppendJSON appends the message's JSON to dst, without line breaks.
func (m Message) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"role":`...)
	dst = json.AppendString(dst, string(m.Role))
	dst = append(dst, `,"content":`...)
	dst = appendContent(dst, m.Content, m.bare)
	return append(dst, '}')
}

// Bare reports whether the content goes out as a string.
func (m Message) Bare() bool { return m.bare && len(m.Content) == 1 }

// Reminder is what a message says as a text block of the user's: in the tags that agents put around what is not the
// user's words, for models and doors that take no system message between the others. [Chain] leaves it out.
func Reminder(m Message) Block {
	return Text("<system-reminder>\n" + m.PlainText() + "\n</system-reminder>")
}

// Countdown reports a system message that only says how much room is left, as Claude Code sends one behind each message of
// the user: the next one says it anew.
func (m Message) Countdown() bool {
	if m.Role != System || len(m.Content) != 1 || m.Content[0].Type != TypeText {
		return false
	}
	const open, end = "<total_tokens>", "</total_tokens>"
	said, ok := strings.CutPrefix(strings.TrimSpace(m.Content[0].Text), open)
	return ok && strings.Index(said, "<") == len(said)-len(end) && strings.HasSuffix(said, end)
}

// Calls returns the ids of the tool calls in the message.
func (m Message) Calls() []string {
	var ids []string
	for _, b := range m.Content {
		if b.Type == TypeToolUse {
			ids = append(ids, b.ID)
		}
	}
	return ids
}

// Results returns the ids of the calls that the message answers.
func (m Message) Results() []string {
	var ids []string
	for _, b := range m.Content {
		if b.Type == TypeToolResult {
			ids = append(ids, b.ToolUseID)
		}
	}
	return ids
}

// PlainText returns the text blocks of the message, joined by line breaks; no thinking, no calls,
// no results.
func (m Message) PlainText() string {
	var parts []string
	for _, b := range m.Content {
		if b.Type == TypeText && b.Text != "" {
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// Images counts the images in the message, those in tool results included.
func (m Message) Images() int { return countImages(m.Content) }

func countImages(blocks []Block) int {
	n := 0
	for _, b := range blocks {
		if b.Type == TypeImage {
			n++
		}
		n += countImages(b.Content)
	}
	return n
}

// oneLine returns data, compacted only if it holds a line break between tokens: payloads are lines
// of archives and of server-sent events. The result is UTF-8 and never aliases data.
func oneLine(data []byte) (json.RawMessage, error) {
	if bytes.IndexByte(data, '\n') < 0 && bytes.IndexByte(data, '\r') < 0 {
		return copyUTF8(data), nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, data); err != nil {
		return nil, err
	}
	return copyUTF8(b.Bytes()), nil
}

// copyUTF8 copies data and replaces each byte that is not UTF-8 as decoding its strings does: JSON
// is UTF-8 (https://www.rfc-editor.org/rfc/rfc8259#section-8.1), and a host that holds text as
// UTF-16 would store other bytes than were hashed.
func copyUTF8(data []byte) json.RawMessage {
	if utf8.Valid(data) {
		return append(json.RawMessage(nil), data...)
	}
	return json.RawMessage(string([]rune(string(data))))
}
