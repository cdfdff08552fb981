package provider

import (
	"fmt"
	"slices"

	tidemark "github.com/tidemark-ai/tidemark"
)

// greeted stands before an answer that was nobody's, where an API wants the user to begin.
const greeted = "[The conversation begins.]"

// lowered gives a request that chat completions allow (tidemark.CheckCalls) the shape that the Messages API demands
// (tidemark.Check): a system text alone is what the user says, a greeting of the assistant has something before it, and
// call ids that are used again become unique. What has that shape stays as it is. Unless the model takes system messages
// between the others, they are reminders in what the user says.
func lowered(req tidemark.Request, system bool) tidemark.Request {
	if !system {
		req.Messages = reminded(req.Messages)
	}
	switch {
	case len(req.Messages) == 0 && req.System == "":
		return req
	case len(req.Messages) == 0:
		req.Messages, req.System = []tidemark.Message{tidemark.NewText(tidemark.User, req.System)}, ""
	case req.Messages[0].Role == tidemark.Assistant:
		req.Messages = append([]tidemark.Message{tidemark.NewText(tidemark.User, greeted)}, req.Messages...)
	}
	used, renamed := map[string]bool{}, map[string]string{}
	for i, m := range req.Messages {
		if m.Role == tidemark.Assistant {
			clear(renamed) // a result answers the message before it
			for _, id := range m.Calls() {
				unique := id
				for n := 2; used[unique]; n++ {
					unique = fmt.Sprintf("%s_%d", id, n)
				}
				if used[unique] = true; unique != id {
					renamed[id] = unique
				}
			}
		}
		if len(renamed) > 0 {
			req.Messages = append([]tidemark.Message(nil), req.Messages...)
			req.Messages[i] = rename(m, renamed)
		}
	}
	return req
}

// reminded gives models without system messages between the others what these say at the end of the user's message before
// them, in the tags in which agents have always said such things there.
func reminded(messages []tidemark.Message) []tidemark.Message {
	if !slices.ContainsFunc(messages, func(m tidemark.Message) bool { return m.Role == tidemark.System }) {
		return messages
	}
	out := make([]tidemark.Message, 0, len(messages))
	for _, m := range messages {
		if m.Role != tidemark.System {
			out = append(out, m)
			continue
		}
		note := tidemark.Reminder(m)
		if n := len(out) - 1; n >= 0 && out[n].Role == tidemark.User {
			out[n] = tidemark.Message{Role: tidemark.User, Content: append(slices.Clone(out[n].Content), note)}
		} else {
			out = append(out, tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{note}})
		}
	}
	return out
}

// rename returns a message with other ids of calls.
func rename(m tidemark.Message, ids map[string]string) tidemark.Message {
	blocks := append([]tidemark.Block(nil), m.Content...)
	for i, b := range blocks {
		if id, ok := ids[b.ID]; ok && b.Type == tidemark.TypeToolUse {
			blocks[i] = tidemark.ToolUse(id, b.Name, b.Input) // anew, since one that was decoded is written as it came
		}
		if id, ok := ids[b.ToolUseID]; ok && b.Type == tidemark.TypeToolResult {
			blocks[i] = tidemark.Block{Type: b.Type, ToolUseID: id, Content: b.Content, IsError: b.IsError}
		}
	}
	return tidemark.Message{Role: m.Role, Content: blocks}
}
