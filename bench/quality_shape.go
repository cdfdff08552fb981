package bench

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// noResult stands where a log holds no result of a call.
const noResult = "[no result was recorded]"

// sendable brings the messages of a recorded request into the shape that the APIs demand: a log keeps
// each result of parallel calls as a message of its own, thinking that only its model may be shown, and
// calls that were broken off. Both conditions pass through here alike.
func sendable(messages []tidemark.Message) ([]tidemark.Message, error) {
	var out []tidemark.Message
	for _, m := range messages {
		blocks := slices.DeleteFunc(slices.Clone(m.Content), func(b tidemark.Block) bool {
			return b.Type == tidemark.TypeThinking || b.Type == tidemark.TypeRedactedThinking ||
				b.Type == tidemark.TypeText && strings.TrimSpace(b.Text) == ""
		})
		n := len(out)
		switch {
		case len(blocks) == 0, n == 0 && m.Role != tidemark.User:
		case n > 0 && out[n-1].Role == m.Role:
			out[n-1].Content = append(out[n-1].Content, blocks...)
		default:
			out = append(out, tidemark.Message{Role: m.Role, Content: blocks})
		}
	}
	var calls []string
	for i := range out {
		if out[i].Role == tidemark.User {
			out[i].Content = answering(out[i].Content, calls)
		}
		calls = out[i].Calls()
	}
	out = slices.DeleteFunc(out, func(m tidemark.Message) bool { return len(m.Content) == 0 })
	if err := tidemark.Check(out); err != nil {
		return nil, fmt.Errorf("not a request that an API takes: %w: %w", err, tidemark.ErrInvalid)
	}
	if out[len(out)-1].Role != tidemark.User {
		return nil, fmt.Errorf("the last message is not the user's: %w", tidemark.ErrInvalid)
	}
	return out, nil
}

// answering puts the results of calls first, one each, and leaves out others.
func answering(blocks []tidemark.Block, calls []string) []tidemark.Block {
	results := map[string]tidemark.Block{}
	var other []tidemark.Block
	for _, b := range blocks {
		if b.Type != tidemark.TypeToolResult {
			other = append(other, b)
		} else if _, twice := results[b.ToolUseID]; !twice {
			results[b.ToolUseID] = b
		}
	}
	out := make([]tidemark.Block, 0, len(calls)+len(other))
	for _, id := range calls {
		b, ok := results[id]
		if !ok {
			b = tidemark.ToolResult(id, noResult, true)
		}
		out = append(out, b)
	}
	return append(out, other...)
}

// toolsOf returns the tools of a session with such as only its calls name: an API wants each tool that
// a message calls.
func toolsOf(tools []tidemark.Tool, messages []tidemark.Message) []tidemark.Tool {
	known := map[string]bool{}
	out := slices.Clip(tools)
	for _, t := range tools {
		known[t.Name] = true
	}
	for _, m := range messages {
		for _, b := range m.Content {
			if b.Type == tidemark.TypeToolUse && !known[b.Name] {
				known[b.Name] = true
				out = append(out, tidemark.Tool{Name: b.Name, Description: "A tool of this session.", InputSchema: json.RawMessage(`{"type":"object"}`)})
			}
		}
	}
	return out
}

// Bounds of what a judge is shown of the conversation. The newest messages are the same in both
// conditions, so they tell nothing of which is which.
const (
	excerptChars = 12_000
	blockChars   = 2_000
	answerChars  = 24_000 // of one answer; AnswerTokens bounds most before
)

// excerpt is the end of a conversation as a judge reads it, its last message whole as far as it fits.
func excerpt(messages []tidemark.Message) string {
	left := excerptChars
	var parts []string
	for i := len(messages) - 1; i >= 0 && left > 0; i-- {
		bound := blockChars
		if i == len(messages)-1 {
			bound = excerptChars
		}
		text := described(messages[i], bound)
		if len(text) > left && len(parts) > 0 {
			break
		}
		text = clipped(text, left)
		left -= len(text)
		parts = append(parts, text)
	}
	slices.Reverse(parts)
	return strings.Join(parts, "\n")
}

// described is a message in words, each of its blocks up to a bound of bytes.
func described(m tidemark.Message, bound int) string {
	var b strings.Builder
	for _, block := range m.Content {
		switch block.Type {
		case tidemark.TypeText:
			fmt.Fprintf(&b, "[%s] %s\n", m.Role, clipped(block.Text, bound))
		case tidemark.TypeToolUse:
			fmt.Fprintf(&b, "[calls %s] %s\n", block.Name, clipped(string(block.Input), bound))
		case tidemark.TypeToolResult:
			fmt.Fprintf(&b, "[result] %s\n", clipped(resultText(block.Content), bound))
		case tidemark.TypeThinking, tidemark.TypeRedactedThinking:
		default:
			fmt.Fprintf(&b, "[%s: %s]\n", m.Role, block.Type)
		}
	}
	return b.String()
}

func resultText(blocks []tidemark.Block) string {
	var parts []string
	for _, b := range blocks {
		if b.Type == tidemark.TypeText {
			parts = append(parts, b.Text)
		} else {
			parts = append(parts, "["+b.Type+"]")
		}
	}
	return strings.Join(parts, "\n")
}

// clipped is a text of at most n bytes and a mark, cut between characters.
func clipped(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:max(n, 0)], "") + " […]"
}
