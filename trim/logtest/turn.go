package logtest

import (
	"fmt"
	"strings"
)

// turn writes what one input of the user brings about.
func (l *log) turn() {
	l.user()
	for range 1 + l.r.IntN(8) {
		switch {
		case l.o.Profile == Talking && l.r.IntN(4) > 0:
			l.reply(l.text(200, 6000))
			l.user()
		case l.r.IntN(12) == 0:
			l.reply(l.text(20, 3000))
		default:
			l.calls()
		}
	}
	l.reply(l.text(20, 4000))
	l.asides()
}

func (l *log) user() {
	text := l.piece(l.prose, l.size(10, 1500))
	switch n := l.r.IntN(10); {
	case n == 0 || l.o.Profile == Images && n < 5:
		l.line("user", `"message":{"role":"user","content":[`+l.image()+`,{"type":"text","text":`+quote(text)+`}]}`)
	case n < 4:
		l.line("user", `"message":{"role":"user","content":[{"type":"text","text":`+quote(text)+`}]},"isMeta":false`)
	default:
		l.line("user", `"message":{"role":"user","content":`+quote(text)+`},"todos":[],"permissionMode":"default"`)
	}
}

func (l *log) text(least, most int) string {
	return `{"type":"text","text":` + quote(l.piece(l.prose, l.size(least, most))) + `}`
}

func (l *log) image() string {
	n := l.size(20_000, 300_000) &^ 3
	return `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + l.piece(l.base64, n) + `"}}`
}

func (l *log) thinking() string {
	switch l.r.IntN(6) {
	case 0:
		return `{"type":"redacted_thinking","data":"` + l.piece(l.base64, 400) + `"}`
	case 1:
		return `{"type":"thinking","thinking":"","signature":"` + l.piece(l.base64, 300) + `"}`
	}
	return `{"type":"thinking","thinking":` + quote(l.piece(l.prose, l.size(50, 2000))) + `,"signature":"` + l.piece(l.base64, l.size(200, 2000)) + `"}`
}

// block writes one line of a reply.
func (l *log) block(id, block string) string {
	return l.line("assistant", fmt.Sprintf(`"message":{"model":"claude-opus-4-6","id":"%s","type":"message","role":"assistant","content":[%s],"stop_reason":null,`+
		`"stop_sequence":null,"usage":{"input_tokens":%d,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,"output_tokens":%d,`+
		`"service_tier":"standard"}},"requestId":"req_%s"`, id, block, l.r.IntN(9), l.r.IntN(9000), l.r.IntN(150_000), l.r.IntN(900), id))
}

func (l *log) reply(block string) {
	id := l.id("msg")
	if l.r.IntN(3) == 0 {
		l.block(id, l.thinking())
	}
	l.block(id, block)
}

// calls writes a reply with one to five calls, whose results stand among its lines, as parallel calls do.
func (l *log) calls() {
	msg := l.id("msg")
	if l.r.IntN(2) == 0 {
		l.block(msg, l.thinking())
	}
	if l.r.IntN(3) == 0 {
		l.block(msg, l.text(10, 400))
	}
	type call struct{ id, tool, line string }
	var open []call
	answer := func() {
		c := open[0]
		open = open[1:]
		l.result(c.id, c.tool, c.line)
	}
	count := 1
	if l.r.IntN(3) == 0 {
		count += l.r.IntN(5)
	}
	for range count {
		tool, input := l.tool()
		id := l.id("toolu")
		line := l.block(msg, `{"type":"tool_use","id":"`+id+`","name":"`+tool+`","input":`+input+`}`)
		if l.r.IntN(4) == 0 {
			l.progress(id, tool)
		}
		open = append(open, call{id, tool, line})
		if l.r.IntN(3) == 0 {
			answer()
		}
	}
	if l.r.IntN(200) == 0 && len(open) > 0 { // interrupted
		open = open[1:]
		l.line("user", `"message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user for tool use]"}]}`)
		return
	}
	for len(open) > 0 {
		answer()
	}
	l.lastIDs = append(l.lastIDs[max(0, len(l.lastIDs)-3):], msg)
}

var tools = []string{"Read", "Read", "Bash", "Bash", "Edit", "Write", "MultiEdit", "NotebookEdit", "Grep", "Glob", "TodoWrite", "Task", "WebFetch", "mcp__browser__screenshot"}

// tool gives the name and the input of a call.
func (l *log) tool() (name, input string) {
	name = tools[l.r.IntN(len(tools))]
	path := fmt.Sprintf("/home/me/project/pkg%d/file%d.go", l.r.IntN(40), l.r.IntN(400))
	code := func() string { return quote(l.piece(l.code, l.size(20, 6000))) }
	switch name {
	case "Read":
		return name, `{"file_path":"` + path + `"}`
	case "Bash":
		command := "go test ./pkg" + fmt.Sprint(l.r.IntN(40))
		if l.r.IntN(5) == 0 {
			command = "cat > x.go <<'EOF'\n" + l.piece(l.code, l.size(100, 4000)) + "\nEOF"
		}
		return name, `{"command":` + quote(command) + `,"description":"runs it"}`
	case "Edit":
		return name, `{"file_path":"` + path + `","old_string":` + code() + `,"new_string":` + code() + `,"replace_all":false}`
	case "Write":
		return name, `{"file_path":"` + path + `","content":` + code() + `}`
	case "MultiEdit":
		edit := func() string { return `{"old_string":` + code() + `,"new_string":` + code() + `}` }
		return name, `{"file_path":"` + path + `","edits":[` + edit() + `,` + edit() + `]}`
	case "NotebookEdit":
		return name, `{"notebook_path":"/home/me/a.ipynb","new_source":` + code() + `,"cell_type":"code","edit_mode":"replace"}`
	case "TodoWrite":
		todo := func() string {
			return `{"content":` + quote(l.piece(l.prose, l.size(10, 300))) + `,"status":"pending","activeForm":"doing"}`
		}
		return name, `{"todos":[` + todo() + `,` + todo() + `,` + todo() + `]}`
	case "Task":
		return name, `{"description":"explore","prompt":` + quote(l.piece(l.prose, l.size(100, 4000))) + `,"subagent_type":"Explore"}`
	case "WebFetch":
		return name, `{"url":"https://example.org/page","prompt":"what does it say"}`
	case "mcp__browser__screenshot":
		return name, `{"selector":"#main","width":1280}`
	}
	return name, `{"pattern":"func .*Trim","path":"/home/me/project"}`
}

// result writes the line of a result, with the copy beside it that the tool keeps for its screen.
func (l *log) result(id, tool, from string) {
	most := 10_000
	if l.o.Profile == Tools {
		most = 120_000
	}
	out := l.piece(l.code, l.size(20, most))
	if l.r.IntN(3000) == 0 {
		out = l.piece(l.code, 1<<20)
	}
	content, extra := quote(out), ""
	copied := `{"stdout":` + content + `,"stderr":"","interrupted":false,"isImage":false}`
	switch n := l.r.IntN(20); {
	case tool == "mcp__browser__screenshot" || l.o.Profile == Images && n < 8:
		picture := l.image()
		content = `[{"type":"text","text":"a screenshot"},` + picture + `]`
		copied = content
	case n < 4:
		content = `[{"type":"text","text":` + content + `}]`
		copied = `{"type":"text","file":{"filePath":"/home/me/x.go","content":` + quote(out) + `,"numLines":40,"startLine":1,"totalLines":40}}`
	case n == 4:
		content, extra = quote("Error: exit code 1\n"+l.piece(l.code, 200)), `,"is_error":true`
		copied = `"Error: exit code 1"`
	case tool == "Edit" || tool == "Write":
		copied = `{"filePath":"/home/me/x.go","originalFile":` + quote(l.piece(l.code, l.size(100, 10_000))) +
			`,"structuredPatch":[{"oldStart":1,"oldLines":2,"newStart":1,"newLines":2,"lines":["-a","+b"]}],"userModified":false}`
		content = quote("The file was updated.\n" + l.piece(l.code, l.size(20, 2000)))
	}
	l.line("user", `"message":{"role":"user","content":[{"tool_use_id":"`+id+`","type":"tool_result","content":`+content+extra+`}]},"toolUseResult":`+
		copied+`,"sourceToolAssistantUUID":"`+from+`"`)
}

func (l *log) progress(id, tool string) {
	inner := `{"type":"hook_progress","hookEvent":"PostToolUse","hookName":"PostToolUse:` + tool + `","command":"hook.sh"}`
	if l.r.IntN(3) == 0 {
		inner = `{"type":"agent_progress","message":{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":` +
			quote(l.piece(l.code, l.size(100, 9000))) + `}]}},"normalizedMessages":[]}`
	}
	l.line("progress", `"data":`+inner+`,"parentToolUseID":"`+id+`","toolUseID":"`+id+`"`)
}

// asides writes lines that are no messages.
func (l *log) asides() {
	switch l.r.IntN(7) {
	case 0:
		l.raw(`{"type":"file-history-snapshot","messageId":"` + l.uuid() + `","snapshot":{"trackedFileBackups":{"a.go":{"backupFileName":"` +
			strings.Repeat("x", l.size(10, 3000)) + `"}}},"isSnapshotUpdate":true}`)
	case 1:
		l.raw(`{"type":"queue-operation","operation":"enqueue","timestamp":"` + l.time() + `","content":` + quote(l.piece(l.prose, 300)) + `}`)
	case 2:
		l.line("system", `"subtype":"turn_duration","durationMs":`+fmt.Sprint(l.r.IntN(100_000))+`,"isMeta":false`)
	case 3:
		l.raw(`{"type":"ai-title","aiTitle":"work on it","sessionId":"258c7280-ae70-4798-800f-63464d01a85d"}`)
	case 4:
		if !l.o.Titles {
			return
		}
		l.raw(`{"type":"summary","summary":"a title","leafUuid":"` + l.parent + `"}`)
	case 5:
		l.line("attachment", `"attachment":{"type":"todo_reminder","content":[],"itemCount":0}`)
	}
}

// compaction writes a boundary, its summary, and results of calls before it.
func (l *log) compaction() {
	before := l.parent
	var late []string
	msg := l.id("msg")
	for range 1 + l.r.IntN(3) {
		id := l.id("toolu")
		l.block(msg, `{"type":"tool_use","id":"`+id+`","name":"Bash","input":{"command":"sleep 9"}}`)
		late = append(late, id)
	}
	l.parent = ""
	l.line("system", `"logicalParentUuid":"`+before+`","subtype":"compact_boundary","content":"Conversation compacted","isMeta":false,"level":"info",`+
		`"compactMetadata":{"trigger":"auto","preTokens":167094}`)
	l.line("user", `"message":{"role":"user","content":`+quote("This session is being continued. "+l.piece(l.prose, 6000))+`},"isVisibleInTranscriptOnly":true,"isCompactSummary":true`)
	for _, id := range late {
		l.result(id, "Bash", before)
	}
}

// hostile writes what no program should write, and some do.
func (l *log) hostile() {
	id := l.id("toolu")
	switch l.r.IntN(16) {
	case 0:
		l.raw("")
	case 1:
		l.raw("null")
	case 2:
		l.raw(`{"type":"user","message":{"role":"user","content":"cut of`)
	case 3:
		l.raw("not json")
	case 4:
		l.line("user", "\"message\":{\"role\":\"user\",\"content\":\"lines\u2028and\u2029paragraphs\"}")
	case 5:
		l.line("user", `"message":{"role":"user","content":"lone \ud800 and \udc00 surrogates \ud83d\ude00"}`)
	case 6:
		l.line("user", `"message":{"role":"user","content":"numbers"},"big":9007199254740993,"huge":1e400,"one":1.0,"10":1,"a":1,"a":2`)
	case 7:
		l.raw(`{"type":"user", "message":{"role":"user", "content":"spaces and a return" } }` + "\r")
	case 8:
		l.line("user", `"message":{"role":"user","content":[null,{"type":"text","text":"beside null"}]}`)
	case 9:
		l.result(id, "Bash", l.parent)
	case 10:
		l.block(l.id("msg"), `{"type":"tool_use","id":"`+id+`","name":"Bash","input":{}}`)
		l.user()
	case 11:
		l.block(l.id("msg"), `{"type":"tool_use","id":"`+id+`","name":"Bash","input":{"command":"twice"}}`)
		l.result(id, "Bash", l.parent)
		l.result(id, "Bash", l.parent)
	case 12:
		if n := len(l.lastIDs); n > 0 {
			l.block(l.lastIDs[n-1], `{"type":"tool_use","id":"`+id+`","name":"Read","input":{"file_path":"late"}}`)
			l.result(id, "Read", l.parent)
		}
	case 13:
		l.line("user", `"message":{"role":"user","content":[]}`)
	case 14:
		l.raw(`[1,2,{"type":"user"}]`)
	case 15:
		l.raw(`{"t\u0079pe":"us\u0065r","message":{"role":"user","content":[{"type":"tool\u005fresult","tool_use_id":"gone","content":"escaped"}]},"uuid":"` + l.uuid() + `"}`)
	}
}
