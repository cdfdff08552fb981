package wasi

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// shownOutput is how much of the output of a failed run its result shows.
const shownOutput = 2 << 10

// Run is what came of a call.
type Run struct {
	Result tidemark.Block
	Took   time.Duration // from the call to the result, waiting for a place included
	Memory int64         // of the module at its end, in bytes; 0 when it did not run
	Output int           // bytes on standard output
	Waited bool          // an instance waited for the call
}

// result turns an end into the block that answers a call.
func (in *instance) result(call tidemark.Block, m Manifest, ended bool) tidemark.Block {
	l := m.limits()
	out, full := in.out.bytes()
	failed := func(format string, args ...any) tidemark.Block {
		text := fmt.Sprintf(format, args...)
		if s := in.errs.text(); s != "" {
			text += "\nstderr: " + s
		}
		if s := strings.TrimSpace(strings.ToValidUTF8(string(out[:min(len(out), shownOutput)]), "")); s != "" {
			text += "\nstdout: " + s
			if len(out) > shownOutput {
				text += " …"
			}
		}
		return tidemark.ToolResult(call.ID, text, true)
	}
	if full {
		return failed("%s wrote more than %d bytes and was ended (maxOutputBytes in its manifest)", m.Name, l.output)
	}
	if !ended {
		return failed("%s did not end within %s (timeoutMs in its manifest)", m.Name, l.time)
	}
	code, fault := exit(in.err)
	if fault != "" {
		return failed("%s failed: %s%s", m.Name, fault, in.short(l))
	}
	if code != 0 {
		return failed("%s failed with exit code %d%s", m.Name, code, in.short(l))
	}
	blocks, isError := output(out)
	if len(blocks) == 0 {
		if isError {
			return failed("%s reports a failure and does not say which", m.Name)
		}
		return tidemark.ToolResult(call.ID, fmt.Sprintf("(%s ended well and wrote nothing)", m.Name), false)
	}
	if len(blocks) == 1 && blocks[0].Type == tidemark.TypeText {
		return tidemark.ToolResult(call.ID, blocks[0].Text, isError)
	}
	return tidemark.Block{Type: tidemark.TypeToolResult, ToolUseID: call.ID, Content: blocks, IsError: isError}
}

// short says that a module that failed had used most of its memory.
func (in *instance) short(l limits) string {
	const page, pagesPerMB = 64 << 10, 16
	if in.memory < int64(l.pages)*page*3/4 {
		return ""
	}
	return fmt.Sprintf("; it used %d of the %d MB that it may have (memoryMB in its manifest)", in.memory>>20, l.pages/pagesPerMB) //nolint:mnd // MB
}
