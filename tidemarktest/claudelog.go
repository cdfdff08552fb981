package tidemarktest

import (
	"fmt"
	"strings"
	"time"
)

// ClaudeLog is a log as Claude Code writes it, with n rounds: a question, an answer that thinks and calls a tool in two
// lines of one message, the result, an answer, and a line that is no message.
func ClaudeLog(n int) string {
	const reply = `{"type":"assistant","uuid":"%[1]s%[2]d","sessionId":"s","timestamp":"%[3]s","message":{"id":"%[4]s%[2]d","role":"assistant","model":"claude-x","content":[%[5]s],%[6]s"usage":{"input_tokens":9,"output_tokens":9}}}` + "\n"
	const order = `{"type":"user","uuid":"%s%d","sessionId":"s","timestamp":"%s","message":{"role":"user","content":%s}}` + "\n"
	var b strings.Builder
	for i := range n {
		at := time.Date(2026, 1, 2, 3, 4+i, 0, 0, time.UTC).Format(time.RFC3339)
		pad := strings.Repeat(fmt.Sprintf("the file number %d has a line about planting; ", i), 20)
		fmt.Fprintf(&b, order, "u", i, at, fmt.Sprintf(`"question %d: %s"`, i, pad))
		fmt.Fprintf(&b, reply, "a", i, at, "m", fmt.Sprintf(`{"type":"thinking","thinking":"hm","signature":"sig%d"}`, i), "")
		fmt.Fprintf(&b, reply, "b", i, at, "m", fmt.Sprintf(`{"type":"tool_use","id":"t%d","name":"Read","input":{"path":"/a/%[1]d","z":1.0}}`, i), `"stop_reason":"tool_use",`)
		fmt.Fprintf(&b, order, "r", i, at, fmt.Sprintf(`[{"type":"tool_result","tool_use_id":"t%d","content":"%s"}]`, i, pad))
		fmt.Fprintf(&b, reply, "c", i, at, "n", fmt.Sprintf(`{"type":"text","text":"answer %d"}`, i), `"stop_reason":"end_turn",`)
		fmt.Fprintf(&b, `{"type":"progress","sessionId":"s","timestamp":"%s","data":{}}`+"\n", at)
	}
	return b.String()
}
