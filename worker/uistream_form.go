package worker

import (
	"fmt"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/session"
)

// uiForm is what useChat of the AI SDK posts
// (https://ai-sdk.dev/docs/ai-sdk-ui/transport): all messages that the page has, of which the last is new. The
// history is that of the server.
type uiForm struct {
	id      string // of the chat
	trigger string
	message uiMessage
}

type uiMessage struct {
	ID    string   `json:"id"`
	Role  string   `json:"role"`
	Parts []uiPart `json:"parts"`
}

type uiPart struct {
	Type  string `json:"type"`
	Text  string `json:"text"`
	Media string `json:"mediaType"`
	Name  string `json:"filename"`
	URL   string `json:"url"`
}

// maxChatID bounds the id of a chat in bytes.
const maxChatID = 1000

// readUI decodes a request. Fields that a page adds are its own matter.
func readUI(raw []byte) (uiForm, error) {
	var f uiForm
	var messages []json.RawMessage
	_, err := decodeForm(raw, field{"id", "a string", &f.id}, field{"trigger", "a string", &f.trigger}, field{"messages", "a list of messages", &messages})
	if err != nil {
		return f, err
	}
	switch {
	case f.id == "" || len(f.id) > maxChatID:
		return f, fmt.Errorf("id: want the id of the chat, up to %d bytes: %w", maxChatID, tidemark.ErrInvalid)
	case f.trigger == "regenerate-message":
		return f, fmt.Errorf("trigger: an answer cannot be made anew yet, since nothing that was said is taken back; ask again in words: %w", tidemark.ErrInvalid)
	case f.trigger != "" && f.trigger != "submit-message":
		return f, fmt.Errorf("trigger %q: want submit-message: %w", clip.To(f.trigger, 40), tidemark.ErrInvalid)
	case len(messages) == 0:
		return f, fmt.Errorf("messages: there is none: %w", tidemark.ErrInvalid)
	}
	if err := json.Unmarshal(messages[len(messages)-1], &f.message); err != nil {
		return f, fmt.Errorf("messages[%d]: want an object with id, role and parts: %w", len(messages)-1, tidemark.ErrInvalid)
	}
	if f.message.Role != string(tidemark.User) {
		return f, fmt.Errorf("messages: the last one must be the user's, got role %q: %w", clip.To(f.message.Role, 40), tidemark.ErrInvalid)
	}
	return f, nil
}

// input converts the message: its id is that of the input, so a page that sends it again reads the same
// answer.
func (f uiForm) input() (session.Input, error) {
	in := session.Input{ID: f.message.ID, Origin: tidemark.Origin{From: tidemark.FromPerson, Channel: "web", Owner: true}}
	var blocks []tidemark.Block
	for i, p := range f.message.Parts {
		switch {
		case p.Type == "text":
			if strings.TrimSpace(p.Text) != "" {
				blocks = append(blocks, tidemark.Text(p.Text))
			}
		case p.Type == "file":
			b, err := attachment{url: p.URL, media: p.Media, name: p.Name}.block()
			if err != nil {
				return in, fmt.Errorf("parts[%d]: %w", i, err)
			}
			blocks = append(blocks, b)
		case strings.HasPrefix(p.Type, "data-") || p.Type == "step-start": // the page's own
		default:
			return in, fmt.Errorf("parts[%d]: type %q: want text or file: %w", i, clip.To(p.Type, 40), tidemark.ErrInvalid)
		}
	}
	in.Message = tidemark.Message{Role: tidemark.User, Content: blocks}
	if len(blocks) == 1 && blocks[0].Type == tidemark.TypeText {
		in.Message = tidemark.NewText(tidemark.User, blocks[0].Text)
	}
	if err := in.Validate(); err != nil {
		return in, fmt.Errorf("parts: %w", err)
	}
	return in, nil
}
