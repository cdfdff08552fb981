package compaction

import (
	"slices"
	"strconv"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/internal/calls"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
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
	at := jsonscan.Over(raw)
	if at.Peek() != '{' || tidemark.UTF16Len(raw) <= c.most {
		return nil
	}
	edits := c.walk(&at, nil, "", 0)
	if at.End(); at.Err() != nil || len(edits) == 0 {
		return nil
	}
	return jsonscan.Splice(nil, raw, edits...)
}

// walk appends the edits of the value that is next. An element of a list has the name of the list.
func (c inputCut) walk(at *jsonscan.Cursor, edits []jsonscan.Edit, name string, depth int) []jsonscan.Edit {
	switch at.Peek() {
	case '{':
		at.Members("the input", func(key []byte) { edits = c.walk(at, edits, string(key), depth+1) })
	case '[':
		at.Elements("the input", func(int) { edits = c.walk(at, edits, name, depth+1) })
	case '"':
		from := at.At()
		if stub := c.stub(at.String(), name, depth, len(edits) == 0); stub != nil {
			edits = append(edits, jsonscan.Edit{Span: jsonscan.Span{From: from, To: at.At()}, With: stub})
		}
	default:
		at.Skip()
	}
	return edits
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
