package recall

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Task is what a conversation works on now, an index card of it. Papers/total-recall §3.1; Annex A.1 of its
// implementation calls it task state.
type Task struct {
	ID          string   `json:"id,omitempty"` // events of another task count less
	Goals       []string `json:"goals,omitempty"`
	Loops       []string `json:"openLoops,omitempty"` // begun and not ended
	Constraints []string `json:"constraints,omitempty"`
	Events      []string `json:"keyEvents,omitempty"`
	Phase       Phase    `json:"phase,omitempty"`
}

// Phase is what is done at a task.
type Phase string

// The phases; the zero value is idle.
const (
	Idle      Phase = "idle"
	Planning  Phase = "planning"
	Executing Phase = "executing"
	Debugging Phase = "debugging"
	Reviewing Phase = "reviewing"
)

// Premise names what a task rests on, its goals and constraints: what was found under another premise may
// not hold. It is empty when there are none.
func (t Task) Premise() string {
	if len(t.Goals)+len(t.Constraints) == 0 {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.Join(t.Goals, "\n") + "\x00" + strings.Join(t.Constraints, "\n")))
	return hex.EncodeToString(sum[:])[:16]
}

// Kind is what an event of a log is. Papers/total-recall, Table A, without what is never a candidate: a marker and
// the task are no messages, and an artifact is the result that it stands for.
type Kind string

// The kinds of events.
const (
	UserMessage  Kind = "user_message"
	AgentMessage Kind = "agent_message"
	ToolCall     Kind = "tool_call"
	ToolResult   Kind = "tool_result"
	System       Kind = "system"
)

// Importance is how much a kind counts before anything is known of an event, 1 to 10.
func (k Kind) Importance() int {
	switch k {
	case UserMessage:
		return 7
	case ToolResult:
		return 3
	}
	return 5 // a reply, a call, what the system wrote
}
