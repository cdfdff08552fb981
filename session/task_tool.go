package session

import (
	"context"
	"fmt"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/recall"
)

// TaskState says when the tool for the task is offered to the model.
type TaskState string

// The values of TaskState.
const (
	TaskAuto TaskState = ""    // with the strategy pointer
	TaskOn   TaskState = "on"  // always
	TaskOff  TaskState = "off" // never
)

// taskTool is how the agent keeps what it works on.
var taskTool = tidemark.Tool{
	Name: "task_state",
	Description: "Keep an index card of the work here: it stays in view when messages are evicted. Add goals, open loops, constraints, each a whole sentence that a person wrote, key events; " +
		"close items by name when done; set the phase. pin keeps an entry in view; superseded marks one that no longer holds. Answers with the card.",
	InputSchema: []byte(`{"type":"object","properties":{"add":{"type":"array","items":{"type":"object","properties":{"kind":{"enum":["goal","loop","constraint","event"]},"text":{"type":"string"}},"required":["kind","text"]}},"close":{"type":"array","items":{"type":"string"},"description":"names such as g1"},"phase":{"enum":["idle","planning","executing","debugging","reviewing"]},"new":{"type":"boolean","description":"another task begins"},"pin":{"type":"array","items":{"type":"string"}},"unpin":{"type":"array","items":{"type":"string"}},"superseded":{"type":"array","items":{"type":"object","properties":{"entry":{"type":"string"},"by":{"type":"string"},"reason":{"type":"string"}},"required":["entry","by","reason"]}}}}`),
	Idempotent:  true, // by the call's place in its run
}

// ownTool reports whether the session itself carries out a tool. What it answers stands in the log or on
// the card already.
func ownTool(name string) bool {
	return name == recallTool.Name || name == taskTool.Name || name == releaseTool.Name || name == faultTool.Name || name == delimiterTool.Name
}

// bringsBack reports whether a tool of the session answers with what was said before.
func bringsBack(name string) bool { return name == recallTool.Name || name == faultTool.Name }

// pointing reports whether what leaves the view leaves pointers.
func (s *Session) pointing() bool { return pointing(s.strategies()) }

func pointing(list []compaction.Strategy) bool {
	return slices.ContainsFunc(list, func(x compaction.Strategy) bool { return x.Name() == compaction.Pointer{}.Name() })
}

// ownTools lists the tools of the session itself.
func (s *Session) ownTools() []tidemark.Tool {
	out := []tidemark.Tool{recallTool}
	if t := s.settings().TaskState; t == TaskOn || t == TaskAuto && s.pointing() {
		out = append(out, taskTool)
	}
	if s.paging() != nil {
		out = append(out, releaseTool, faultTool)
	}
	if s.episodic() != nil {
		out = append(out, delimiterTool)
	}
	if s.delegates() {
		out = append(out, s.delegateTool())
	}
	return out
}

// callTask answers a call of task_state. In a conversation of the owner's the card is the owner's: in a
// turn that another began it is shown and not changed.
func (s *Session) callTask(ctx context.Context, r *run, c call) tidemark.Block {
	ch, err := readTaskCall(c.Block.Input)
	if err != nil {
		return tidemark.ToolResult(c.ID, err.Error(), true)
	}
	ch.By, ch.Call = tidemark.FromModel, fmt.Sprintf("%s/%d/%d", r.ID, r.Round, c.N)
	if !ch.empty() && slices.ContainsFunc(r.origins, func(o tidemark.Origin) bool { return !s.mayChange(o) }) {
		return tidemark.ToolResult(c.ID, "The task here is the owner's, and this turn answers somebody else: nothing was changed.", true)
	}
	fence := tidemark.Stmt{SQL: `UPDATE runs SET updated = ? WHERE id = ? AND owner = ? AND state = 'tools' AND log = ?`,
		Args: []any{s.Runtime.Now().UnixMilli(), r.ID, r.owner, r.Log}, Want: 1}
	card, notes, err := s.keep(ctx, r.Log, ch, fence)
	if err != nil {
		return tidemark.ToolResult(c.ID, err.Error(), true)
	}
	rest, all := s.taskTokens()
	return tidemark.ToolResult(c.ID, taskSays(card, notes, rest, all), false)
}

// readTaskCall reads what a model asks for: who it is and where things were said is not its to say.
func readTaskCall(input []byte) (TaskChange, error) {
	var in struct {
		Add []struct {
			Kind ItemKind `json:"kind"`
			Text string   `json:"text"`
		} `json:"add"`
		Close      []string           `json:"close"`
		Phase      recall.Phase       `json:"phase"`
		New        bool               `json:"new"`
		Pin        []tidemark.EntryID `json:"pin"`
		Unpin      []tidemark.EntryID `json:"unpin"`
		Superseded []Supersession     `json:"superseded"`
	}
	if err := json.Unmarshal(input, &in); err != nil {
		return TaskChange{}, fmt.Errorf("input: %w: %w", err, tidemark.ErrInvalid)
	}
	ch := TaskChange{New: in.New, Close: in.Close, Phase: in.Phase, Pin: in.Pin, Unpin: in.Unpin, Superseded: in.Superseded}
	for _, a := range in.Add {
		ch.Add = append(ch.Add, AddedItem{Kind: a.Kind, Text: a.Text})
	}
	return ch, nil
}
