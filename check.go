package tidemark

import (
	"fmt"
	"strings"
)

// ShapeError is a breach of what the model APIs demand of a list of messages.
type ShapeError struct {
	Index int    // of the message
	Rule  string // what it breaks
	At    string // the place as the API names it, of a rule that one API has; else empty
}

// Error names the message, or the place, and the rule.
func (e *ShapeError) Error() string {
	if e.At != "" {
		return e.At + ": " + e.Rule
	}
	return fmt.Sprintf("message %d: %s", e.Index, e.Rule)
}

// Check states once what the APIs demand of the messages of a request
// (https://docs.anthropic.com/en/api/messages): the first is from the user, call ids are unique, a system message
// stands alone behind one that [Message.TakesSystem] and before one of the assistant or at the end
// (https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages), and all of
// [CheckCalls]. It returns the first breach, or nil.
func Check(messages []Message) error {
	if len(messages) == 0 {
		return &ShapeError{Index: 0, Rule: "there are no messages"}
	}
	if messages[0].Role != User {
		return &ShapeError{Index: 0, Rule: "the first message must be from the user"}
	}
	for i, m := range messages {
		if m.Role != System {
			continue
		}
		if !messages[i-1].TakesSystem() {
			return &ShapeError{Index: i, Rule: "a system message that follows no message of the user"}
		}
		if i+1 < len(messages) && messages[i+1].Role == User {
			return &ShapeError{Index: i, Rule: "a system message before one of the user"}
		}
	}
	return check(messages, map[string]bool{})
}

// TakesSystem reports whether the API takes a system message behind this one: it is from the user, or from the assistant
// and ends in the use of a tool that the API runs itself.
func (m Message) TakesSystem() bool {
	n := len(m.Content)
	if m.Role != Assistant || n == 0 {
		return m.Role == User
	}
	last := m.Content[n-1].Type
	return (last == TypeServerToolUse || strings.HasSuffix(last, "_tool_result")) && len(m.Calls()) == 0
}

// CheckCalls is Check less what chat completions do not demand: no content is empty, each call is
// answered in the next message, whose results come first and answer nothing else. There may be no
// messages, a first one of the assistant, and call ids that an earlier message had.
func CheckCalls(messages []Message) error { return check(messages, nil) }

// check looks at all messages; seen collects their call ids, nil if a later message may use them again.
func check(messages []Message, seen map[string]bool) error {
	for i, m := range messages {
		if err := checkMessage(i, m, seen); err != nil {
			return err
		}
		var asked []string
		if i > 0 && messages[i-1].Role == Assistant {
			asked = messages[i-1].Calls()
		}
		if err := checkAnswers(i, m, asked); err != nil {
			return err
		}
	}
	if len(messages) == 0 {
		return nil
	}
	if last := messages[len(messages)-1]; last.Role == Assistant && len(last.Calls()) > 0 {
		return &ShapeError{Index: len(messages) - 1, Rule: fmt.Sprintf("call %q is not answered", last.Calls()[0])}
	}
	return nil
}

func checkMessage(i int, m Message, seen map[string]bool) error {
	if m.Role != User && m.Role != Assistant && m.Role != System {
		return &ShapeError{Index: i, Rule: fmt.Sprintf("role %q is none of user, assistant and system", m.Role)}
	}
	if len(m.Content) == 0 {
		return &ShapeError{Index: i, Rule: "empty content"}
	}
	if seen == nil {
		seen = map[string]bool{}
	}
	for _, b := range m.Content {
		switch b.Type {
		case TypeText:
			if strings.TrimSpace(b.Text) == "" {
				return &ShapeError{Index: i, Rule: "empty text block"}
			}
		case TypeToolUse:
			if m.Role != Assistant {
				return &ShapeError{Index: i, Rule: "a tool call that is not from the assistant"}
			}
			if b.ID == "" || b.Name == "" {
				return &ShapeError{Index: i, Rule: "a tool call without id or name"}
			}
			if seen[b.ID] {
				return &ShapeError{Index: i, Rule: fmt.Sprintf("call id %q was used before", b.ID)}
			}
			seen[b.ID] = true
		case TypeToolResult:
			if m.Role != User {
				return &ShapeError{Index: i, Rule: "a tool result that is not from the user"}
			}
		}
	}
	return nil
}

// checkAnswers holds the results of message i against the calls of the message before it.
func checkAnswers(i int, m Message, asked []string) error {
	open := make(map[string]bool, len(asked))
	for _, id := range asked {
		open[id] = true
	}
	other := false
	for _, b := range m.Content {
		if b.Type != TypeToolResult {
			other = true
			continue
		}
		if !open[b.ToolUseID] {
			return &ShapeError{Index: i, Rule: fmt.Sprintf("result for %q answers no call of the message before", b.ToolUseID)}
		}
		if other {
			return &ShapeError{Index: i, Rule: "tool results must come first"}
		}
		delete(open, b.ToolUseID)
	}
	for _, id := range asked {
		if open[id] {
			return &ShapeError{Index: i, Rule: fmt.Sprintf("call %q is not answered", id)}
		}
	}
	return nil
}
