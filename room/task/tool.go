package task

import (
	"context"
	"fmt"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
)

// State says when the tool for the task is offered to the model.
type State string

// The values of State.
const (
	Auto State = ""    // with the strategy pointer
	On   State = "on"  // always
	Off  State = "off" // never
)

// Tool is how the agent keeps what it works on.
var Tool = tidemark.Tool{
	Name: room.TaskTool,
	Description: "Keep an index card of the work here: it stays in view when messages are evicted. Add goals, open loops, constraints, each a whole sentence that a person wrote, key events; " +
		"close items by name when done; set the phase. pin keeps an entry in view; superseded marks one that no longer holds. Answers with the card.",
	InputSchema: []byte(`{"type":"object","properties":{"add":{"type":"array","items":{"type":"object","properties":{"kind":{"enum":["goal","loop","constraint","event"]},"text":{"type":"string"}},"required":["kind","text"]}},"close":{"type":"array","items":{"type":"string"},"description":"names such as g1"},"phase":{"enum":["idle","planning","executing","debugging","reviewing"]},"new":{"type":"boolean","description":"another task begins"},"pin":{"type":"array","items":{"type":"string"}},"unpin":{"type":"array","items":{"type":"string"}},"superseded":{"type":"array","items":{"type":"object","properties":{"entry":{"type":"string"},"by":{"type":"string"},"reason":{"type":"string"}},"required":["entry","by","reason"]}}}}`),
	Idempotent:  true, // by the call's place in its run
}

// Tools lists the tool of the card where it is offered.
func (s *Room) Tools(pointing bool) []tidemark.Tool {
	if s.offered == On || s.offered == Auto && pointing {
		return []tidemark.Tool{Tool}
	}
	return nil
}

// Call answers a call of task_state. In a conversation of the owner's the card is the owner's: in a
// turn that another began it is shown and not changed.
func (s *Room) Call(ctx context.Context, c room.Call) tidemark.Block {
	ch, err := readTaskCall(c.Input)
	if err != nil {
		return tidemark.ToolResult(c.ID, err.Error(), true)
	}
	ch.By, ch.Call = tidemark.FromModel, c.Place()
	if !ch.empty() && slices.ContainsFunc(c.Origins, func(o tidemark.Origin) bool { return !s.MayChange(o) }) {
		return tidemark.ToolResult(c.ID, "The task here is the owner's, and this turn answers somebody else: nothing was changed.", true)
	}
	card, notes, err := s.keep(ctx, c.Log, ch, c.Fence())
	if err != nil {
		return tidemark.ToolResult(c.ID, err.Error(), true)
	}
	rest, all := s.noteRoom()
	return tidemark.ToolResult(c.ID, taskSays(card, notes, rest, all), false)
}

// readTaskCall reads what a model asks for: who it is and where things were said is not its to say.
func readTaskCall(input []byte) (Change, error) {
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
		return Change{}, fmt.Errorf("input: %w: %w", err, tidemark.ErrInvalid)
	}
	ch := Change{New: in.New, Close: in.Close, Phase: in.Phase, Pin: in.Pin, Unpin: in.Unpin, Superseded: in.Superseded}
	for _, a := range in.Add {
		ch.Add = append(ch.Add, Added{Kind: a.Kind, Text: a.Text})
	}
	return ch, nil
}
