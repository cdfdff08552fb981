package worker

import (
	"strings"

	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// mcpTool is a tool of the door. One that is a route names it, and is nothing else than that: its arguments go where
// the route reads them, and the answer of the route is what it gives.
type mcpTool struct {
	name, title, about string
	hints              string   // annotations, as JSON
	args               []mcpArg // what it takes
	gives              string   // properties of its output schema, as JSON; empty: text alone
	route              string   // method and path
	run                func(*toolCall) (map[string]any, error)
}

// mcpArg is an argument of a tool.
type mcpArg struct {
	name  string
	kind  string // of JSON Schema, or strings for a list of them
	about string
	to    string // its name in the query of the route, or in the body of one that posts; empty: the path, or run reads it
	must  bool
}

// Annotations (https://modelcontextprotocol.io/specification/2025-11-25/schema#toolannotations): nothing that a tool
// does is outside of this server, and none takes anything away.
const (
	hintsRead  = `{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}`
	hintsAgain = `{"readOnlyHint":false,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}`
	hintsAdd   = `{"readOnlyHint":false,"destructiveHint":false,"idempotentHint":false,"openWorldHint":false}`
)

// Kinds of arguments.
const (
	kindText    = "string"
	kindNumber  = "integer"
	kindFlag    = "boolean"
	kindStrings = "strings"
)

const keyAbout = "key of the session, such as main, garden or agent:main:whatsapp:dm:4911; sessions_list has them"

// Arguments that several tools take.
var (
	argSession = mcpArg{"session", kindText, keyAbout, "", true}
	argAgent   = mcpArg{"agent", kindText, "whose; main when it is left out", "", false}
	argLimit   = mcpArg{"limit", kindNumber, "most results, up to 1000", "limit", false}
	argQuery   = mcpArg{"query", kindText, "words to look for, names and numbers first", "q", true}
	argOnce    = mcpArg{"id", kindText, "of your own choice: the same id twice is one act", "", false}
)

// mcpTools is the table.
func mcpTools() []mcpTool {
	return append(memoryTools(), []mcpTool{
		{name: "sessions_list", title: "List conversations", hints: hintsRead, route: "GET /v1/sessions",
			about: "List the conversations of an agent, the last active first: key, title, counts, times. next is the cursor of the next page.",
			args:  []mcpArg{{"agent", kindText, argAgent.about, "agent", false}, argLimit, {"cursor", kindText, "next of the page before", "cursor", false}},
			gives: `"sessions":{"type":"array","items":{"type":"object"}},"next":{"type":"string"}`},
		{name: "session_read", title: "Read a conversation", hints: hintsRead, run: (*toolCall).readSession,
			about: "Read the messages of a conversation as Markdown, the newest page without before, in the order in which they were said. next is the before of the page that precedes it. A long message is cut, and cut is its size: read it whole with entry, and on with offset.",
			args: []mcpArg{argSession, {"before", kindNumber, "next of the page that was read", "", false}, {"limit", kindNumber, "most messages, default 20, up to 200", "", false},
				{"entry", kindText, "id of one message, to read it whole", "", false}, {"offset", kindNumber, "byte of that message to begin at", "", false}},
			gives: `"messages":{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"},"role":{"type":"string"},"from":{"type":"string"},"at":{"type":"string"},"text":{"type":"string"},"cut":{"type":"integer"}}}},"next":{"type":"integer"}`},
		{name: "session_search", title: "Search a conversation", hints: hintsRead, route: "GET /v1/sessions/{key}/search",
			about: "Find messages of one conversation by words, sessions before a reset included. id is what session_read takes as entry.",
			args:  []mcpArg{argSession, argQuery, argLimit},
			gives: `"found":{"type":"array","items":{"type":"object"}}`},
		{name: "recall", title: "Recall", hints: hintsRead, route: "GET /v1/recall",
			about: "Find what was said, ranked, with what stands beside it and a verdict (confident, weak, nothing). With session in that conversation, without in all of the agent's.",
			args: []mcpArg{argQuery, {"session", kindText, keyAbout + "; all when it is left out", "session", false}, {"agent", kindText, argAgent.about, "agent", false},
				{"k", kindNumber, "most results", "k", false}, {"budget", kindNumber, "most tokens of text", "budget", false},
				{"since", kindText, "a date or time", "since", false}, {"until", kindText, "a date or time", "until", false}},
			gives: `"results":{"type":"array","items":{"type":"object"}},"verdict":{"type":"string"},"hint":{"type":"string"}`},
		{name: "snapshot", title: "Take a snapshot", hints: hintsAdd, route: "POST /v1/sessions/{key}/snapshots",
			about: "Name a place in a conversation, so that one can branch from it later. It costs nothing and changes nothing.",
			args: []mcpArg{argSession, {"name", kindText, "its label", "name", false}, {"description", kindText, "what it is for", "description", false},
				{"tags", kindStrings, "", "tags", false}, {"at", kindText, "id of its last message; the newest when it is left out", "at", false}},
			gives: `"id":{"type":"string"},"name":{"type":"string"}`},
		{name: "branch", title: "Branch a conversation", hints: hintsAdd, route: "POST /v1/sessions/{key}/branch",
			about: "Make a conversation that goes on from a snapshot, or from now, beside the one that it comes from. key is where to go on.",
			args: []mcpArg{argSession, {"snapshot", kindText, "id of a snapshot; one is taken when it is left out", "snapshot", false}, {"name", kindText, "its label", "name", false},
				{"orientation", kindText, "what the branch is told before everything else", "orientation", false},
				{"trim", kindFlag, "leave out what only fills the context; true when it is left out", "trim", false}},
			gives: `"key":{"type":"string"},"branch":{"type":"object"},"snapshot":{"type":"object"}`},
		{name: "send_message", title: "Say something", hints: hintsAgain, run: (*toolCall).send,
			about: "Say something in a conversation as its owner, which begins with it if it is new, and wait for the answer. With state working the wait is over and the turn goes on: call again with the id that was returned and the same text to wait on.",
			args: []mcpArg{argSession, {"text", kindText, "what to say", "", true}, argOnce,
				{"wait_seconds", kindNumber, "longest wait for the answer, default 50, 0 does not wait", "", false}},
			gives: `"state":{"type":"string"},"id":{"type":"string"},"text":{"type":"string"},"entry":{"type":"string"},"stop":{"type":"string"},"duplicate":{"type":"boolean"}`},
	}...)
}

// memoryTools are those of the agent itself, on behalf of its owner.
func memoryTools() []mcpTool {
	return []mcpTool{
		{name: agent.ToolRead, title: "Read memory", hints: hintsRead, run: (*toolCall).memory,
			about: "Read a memory file of an agent. Without a path, list the files. Large files come in pieces of lines.",
			args: []mcpArg{argAgent, {"path", kindText, "such as MEMORY.md or memory/2026-01-31.md", "", false},
				{"from", kindNumber, "first line, from 1", "", false}, {"to", kindNumber, "last line", "", false}}},
		{name: agent.ToolAppend, title: "Write down", hints: hintsAgain, run: (*toolCall).memory,
			about: "Write down in today's memory file what is worth remembering, one fact a line. What stands there already is not written again.",
			args:  []mcpArg{argAgent, {"text", kindText, "up to 8192 bytes", "", true}, argOnce}},
		{name: agent.ToolSearch, title: "Search memory", hints: hintsRead, route: "GET /v1/agents/{agent}/memory-search",
			about: "Search the memory of all days for words: lines with path and line number, the best first.",
			args:  []mcpArg{argAgent, argQuery, argLimit},
			gives: `"found":{"type":"array","items":{"type":"object"}}`},
	}
}

// listTools is the table as clients read it.
func listTools() []any {
	var out []any
	for _, t := range mcpTools() {
		o := map[string]any{"name": t.name, "title": t.title, "description": t.about, "annotations": json.RawMessage(t.hints), "inputSchema": json.RawMessage(t.schema())}
		if t.gives != "" {
			o["outputSchema"] = json.RawMessage(`{"type":"object","properties":{` + t.gives + `}}`)
		}
		out = append(out, o)
	}
	return out
}

// schema is what a tool takes, as JSON Schema.
func (t mcpTool) schema() string {
	var properties, required []string
	for _, a := range t.args {
		about := `"` + a.name + `":{"type":"` + a.kind + `"`
		if a.kind == kindStrings {
			about = `"` + a.name + `":{"type":"array","items":{"type":"string"}`
		}
		if a.about != "" {
			about += `,"description":` + string(json.AppendString(nil, a.about))
		}
		properties = append(properties, about+"}")
		if a.must {
			required = append(required, `"`+a.name+`"`)
		}
	}
	s := `{"type":"object","properties":{` + strings.Join(properties, ",") + `},"additionalProperties":false`
	if required != nil {
		s += `,"required":[` + strings.Join(required, ",") + `]`
	}
	return s + "}"
}
