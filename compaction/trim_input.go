package compaction

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/internal/calls"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/paging"
)

// toldToo are fields in which other agents' tools say what a call does, beside those of Claude Code that [calls.Tells]
// knows. Those stay at the top of an input however long they are, and both stay up to so many thresholds.
var toldToo = []string{"filename", "file", "target_file", "absolute_path", "uri", "relative_path", "relative_workspace_path", "cmd", "query", "regex", "title", "name", "id"}

// readAgain are tools whose calls strategies read again in the view: what they say is small, and needed.
var readAgain = []string{DefaultStay, episodes.ToolName, paging.ReleaseTool, paging.FaultTool, paging.RecallTool}

// input is a call with stubs in the place of long strings of its input, nil when none is long.
func (p *trimming) input(b *tidemark.Block, handle string) *tidemark.Block {
	if len(b.Input) <= p.most || slices.Contains(readAgain, b.Name) {
		return nil
	}
	out := inputCut{most: p.most, handle: handle}.strings(b.Input)
	if out == nil {
		return nil
	}
	return withValue(b, "input", out)
}

// inputCut replaces strings in JSON. All else stays to the byte, so that numbers, order and forms of escape are as they were.
type inputCut struct {
	most   int
	handle string
}

// strings returns the JSON with stubs, nil when it has none, or is no object.
func (c inputCut) strings(raw []byte) []byte {
	if !json.Valid(raw) || bytes.TrimLeft(raw, " \t\r\n")[0] != '{' || tidemark.UTF16Len(raw) <= c.most {
		return nil
	}
	var out []byte
	var open []byte    // { and [ around this place
	var names []string // of the field before each of them, of which an element of a list is one, too
	var name string    // of the newest field
	from, key := 0, false
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '{', '[':
			open, names, key = append(open, raw[i]), append(names, name), raw[i] == '{'
		case '}', ']':
			name = names[len(names)-1]
			open, names, key = open[:len(open)-1], names[:len(names)-1], false
		case ',':
			key = open[len(open)-1] == '{'
		case '"':
			end := stringEnd(raw, i)
			if key {
				name, key = nameOf(raw[i:end]), false
			} else if stub := c.stub(raw[i:end], name, len(open), from == 0); stub != nil {
				out = append(append(out, raw[from:i]...), stub...)
				from = end
			}
			i = end - 1
		}
	}
	if from == 0 {
		return nil
	}
	return append(out, raw[from:]...)
}

// stringEnd returns where the string ends that begins at i of valid JSON.
func stringEnd(raw []byte, i int) int {
	for i++; raw[i] != '"'; i++ {
		if raw[i] == '\\' {
			i++
		}
	}
	return i + 1
}

func nameOf(raw []byte) string {
	name, _, _, _ := json.CutString(raw)
	return name
}

// stub is the JSON string that stands for a long one, nil where it stays. Of a call the first one tells the way back.
func (c inputCut) stub(raw []byte, name string, depth int, first bool) []byte {
	if len(raw) <= c.most { // bytes are never fewer than characters
		return nil
	}
	limit := calls.Most([]byte(name), depth, c.most, toldToo...)
	if len(raw) <= limit {
		return nil
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return nil
	}
	n := tidemark.UTF16Len(text)
	if n <= limit {
		return nil
	}
	said := "~" + strconv.Itoa(n) + " chars"
	stub := bracket(said)
	if first {
		stub = bracket(said, callRecall(c.handle)+" reads it")
	}
	if tidemark.UTF16Len(stub) >= n {
		return nil
	}
	return json.AppendString(nil, stub)
}
