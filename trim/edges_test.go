package trim

import (
	"strings"
	"testing"
)

// note is what a trim leaves of image(4) or a document of as many bytes.
func note(what, kind string) string {
	return `{"type":"text","text":"[` + what + ` removed: ` + kind + `, 3 bytes, sha256 709e80c88487; how 709e80c88487]"}`
}

// made is the line of the result that is made for a call, whose parent is a line by its name in quotes, or null.
func made(id, parent string) string {
	return `{"parentUuid":` + parent + `,"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"` + id + `","content":"[No result was recorded for this call.]","is_error":true}]},"uuid":"` + newUUID([]byte(`"`+id+`"`), []byte(parent)) + `"}`
}

func bash(id string) string {
	return `{"type":"tool_use","id":"` + id + `","name":"Bash","input":{}}`
}

func thinking(text string) string { return `{"type":"thinking","thinking":"` + text + `"}` }

// reply is a line of a reply that has an id.
func reply(id, blocks string) string {
	return `{"type":"assistant","message":{"id":"` + id + `","role":"assistant","content":[` + blocks + `]}}`
}

// named is what a person says in a line that has a name.
func named(uuid, text string) string {
	return `{"type":"user","uuid":"` + uuid + `","message":{"role":"user","content":"` + text + `"}}`
}

// compacted is a boundary that names lines before it.
func compacted(kept string) string {
	return `{"type":"system","subtype":"compact_boundary","compactMetadata":{` + kept + `}}`
}

func attachment(what string) string { return `{"type":"attachment","attachment":` + what + `}` }

// Loops of tools, what opens and closes them, and what belongs to one message.
var loops = []trimCase{
	{name: "two replies at the beginning are one message", in: []string{called("a", "B", `{}`), called("b", "B", `{}`), result("a", `"r"`), result("b", `"r"`)}, same: true},
	{name: "two replies behind a question are one message", in: []string{user("q"), called("a", "B", `{}`), called("b", "B", `{}`), result("a", `"r"`), result("b", `"r"`)}, same: true},
	{name: "a result behind a person's words opens the loop again", in: []string{user("q"), called("t1", "B", `{}`), user("wait"), result("t1", `"r"`), assistant(thinking("hm"))}, same: true},
	{name: "thinking in a person's line", in: []string{user("q"), called("t1", "B", `{}`), `{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"r"},` + thinking("x") + `]}}`},
		out: []string{user("q"), called("t1", "B", `{}`), result("t1", `"r"`)}, check: func(m Metrics) bool { return m.SignaturesStripped == 1 }},
	{name: "a result that has its call only without the thinking in between stays", in: []string{called("t1", "B", `{}`), user("stop"), assistant(thinking("hm")), result("t1", `"r"`)},
		out: []string{called("t1", "B", `{}`), user("stop"), result("t1", `"r"`)},
		check: func(m Metrics) bool {
			return m.CallsRepaired == 0 && m.OrphansRemoved == 0 && m.LinesEmptied == 1 && m.SignaturesStripped == 1
		}},
	{name: "the same before a line that is no message", in: []string{called("t1", "B", `{}`), user("stop"), assistant(thinking("hm")), result("t1", `"r"`), `{"type":"attachment","message":{"role":"user","content":[{"type":"text","text":"a file"}]}}`},
		out: []string{called("t1", "B", `{}`), user("stop"), result("t1", `"r"`), `{"type":"attachment","message":{"role":"user","content":[{"type":"text","text":"a file"}]}}`}},
	{name: "a call that has its place only without the thinking in between stays", in: []string{reply("m", bash("a")), result("a", `"r"`), assistant(thinking("hm")), `{"type":"user","isMeta":true,"message":{"role":"user","content":"x"}}`,
		reply("m", `{"type":"text","text":"t"}`), reply("m", bash("b"))},
		out: []string{reply("m", bash("a")), result("a", `"r"`), `{"type":"user","isMeta":true,"message":{"role":"user","content":"x"}}`, reply("m", `{"type":"text","text":"t"}`), reply("m", bash("b")), made("b", "null")}},
	{name: "a call that comes again, which had its place only beside that thinking", in: []string{reply("m", bash("t1")), result("t1", `"r"`), assistant(thinking("hm")), `{"type":"user","isMeta":true,"message":{"role":"user","content":"x"}}`,
		reply("m", bash("z")), reply("n", bash("z")+`,{"type":"text","text":"a"}`), reply("n", `{"type":"text","text":"end"}`), result("t9", `"r"`)},
		out: []string{reply("m", bash("t1")), result("t1", `"r"`), `{"type":"user","isMeta":true,"message":{"role":"user","content":"x"}}`, reply("m", bash("z")), made("z", "null"), reply("n", `{"type":"text","text":"a"}`), reply("n", `{"type":"text","text":"end"}`)}},
	{name: "a reminder opens no loop", in: []string{user("q"), assistant(thinking("hm") + `,{"type":"text","text":"a"}`), `{"type":"user","isMeta":true,"message":{"role":"user","content":"x"}}`},
		out: []string{user("q"), assistant(`{"type":"text","text":"a"}`), `{"type":"user","isMeta":true,"message":{"role":"user","content":"x"}}`}},
	{name: "a side chain without an agent is apart from the conversation", in: []string{called("t1", "Task", `{}`), `{"type":"user","isSidechain":true,"message":{"role":"user","content":"do"}}`,
		`{"type":"assistant","isSidechain":true,"message":{"role":"assistant","content":[` + bash("t1") + `]}}`, result("t1", `"r"`),
		`{"type":"user","isSidechain":true,"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"s"}]}}`}, same: true},
	{name: "two calls without results, and what followed them", in: []string{
		`{"type":"assistant","uuid":"a","sessionId":"s","cwd":"` + long(4094) + `","version":{"v":1},"gitBranch":["x"],"slug":"` + long(4095) + `","timestamp":"2026","userType":"external","isSidechain":false,"agentId":"g","message":{"role":"assistant","content":[` + bash("t1") + `,` + bash("t2") + `]}}`,
		`{"type":"user","uuid":"b","parentUuid":"a","message":{"role":"user","content":"b"}}`},
		want: []string{"\n" + `{"parentUuid":"a","isSidechain":false,"agentId":"g","userType":"external","cwd":"` + long(4094) + `","sessionId":"s","timestamp":"2026","type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"[No result was recorded for this call.]","is_error":true}]},"uuid":"3ecb11d6-ab13-807d-81fa-8444d2678b20"}` +
			"\n" + `{"parentUuid":"3ecb11d6-ab13-807d-81fa-8444d2678b20","isSidechain":false,`,
			`"uuid":"b","parentUuid":"` + newUUID([]byte(`"t2"`), []byte(`"3ecb11d6-ab13-807d-81fa-8444d2678b20"`)) + `"`},
		check: func(m Metrics) bool { return m.CallsRepaired == 2 && m.LinesRelinked == 1 }},
	{name: "two calls whose line has an empty name", in: []string{`{"type":"assistant","uuid":"","message":{"role":"assistant","content":[` + bash("t1") + `,` + bash("t2") + `]}}`, `{"parentUuid":7,` + user("b")[1:]},
		out:  []string{`{"type":"assistant","uuid":"","message":{"role":"assistant","content":[` + bash("t1") + `,` + bash("t2") + `]}}`, made("t1", "null"), made("t2", "null"), `{"parentUuid":null,` + user("b")[1:]},
		want: []string{`"uuid":"4ad10a91-1ac1-8b50-aac5-94f8ae748d24"}`}},
	{name: "thinking before the loop whose question is a list", in: []string{user("q"), assistant(thinking("old") + `,{"type":"text","text":"a"}`), `{"type":"user","message":{"role":"user","content":[{"type":"text","text":"r"}]}}`, assistant(thinking("new") + `,` + bash("t1")), result("t1", `"r"`)},
		want: []string{`"new"`}, not: []string{`"old"`}},
	{name: "a call whose line has a number for a name", in: []string{`{"type":"assistant","uuid":12345,"message":{"role":"assistant","content":[` + bash("t2") + `]}}`, user("b")},
		want: []string{`{"parentUuid":null,`}},
}

// What a compaction kept.
var keptCases = []trimCase{
	{name: "a live part that begins with a call", in: []string{named("h", "a"), `{"type":"assistant","uuid":"t","message":{"role":"assistant","content":[{"type":"text","text":"b"}]}}`,
		compacted(`"preservedSegment":{"headUuid":"h","tailUuid":"t"}`), called("t1", "Bash", `{}`), result("t1", `"r"`)}, same: true},
	{name: "a segment without its head", in: []string{named("t", "gone"), compacted(`"preservedSegment":{"headUuid":"nobody","tailUuid":"t"}`), user("c")},
		out: []string{compacted(`"preservedSegment":{"headUuid":"nobody","tailUuid":"t"}`), user("c")}, check: func(m Metrics) bool { return m.LinesPreserved == 0 }},
	{name: "a segment without its tail", in: []string{named("h", "gone"), compacted(`"preservedSegment":{"headUuid":"h","tailUuid":"nobody"}`), user("c")},
		out: []string{compacted(`"preservedSegment":{"headUuid":"h","tailUuid":"nobody"}`), user("c")}},
	{name: "a segment that ends before it begins", in: []string{named("t", "gone"), named("h", "gone"), compacted(`"preservedSegment":{"headUuid":"h","tailUuid":"t"}`), user("c")},
		out: []string{compacted(`"preservedSegment":{"headUuid":"h","tailUuid":"t"}`), user("c")}},
	{name: "a segment of which only the head is named", in: []string{named("h", "gone"), compacted(`"preservedSegment":{"headUuid":"h"}`), user("c")},
		out: []string{compacted(`"preservedSegment":{"headUuid":"h"}`), user("c")}},
	{name: "a segment of which only the tail is named", in: []string{named("t", "gone"), user("gone"), compacted(`"preservedSegment":{"tailUuid":"t"}`), user("c")},
		out: []string{compacted(`"preservedSegment":{"tailUuid":"t"}`), user("c")}},
	{name: "a segment ends with the last line of a name", in: []string{user("gone"), named("h", "kept1"), named("t", "kept2"), user("kept3"), named("t", "kept4"), user("gone"), compacted(`"preservedSegment":{"headUuid":"h","tailUuid":"t"}`), user("c")},
		out:   []string{named("h", "kept1"), named("t", "kept2"), user("kept3"), named("t", "kept4"), compacted(`"preservedSegment":{"headUuid":"h","tailUuid":"t"}`), user("c")},
		check: func(m Metrics) bool { return m.LinesPreserved == 4 && m.PreCompactionLinesSkipped == 2 }},
	{name: "an empty name names no line", in: []string{user("gone"), named("h", "kept"), user("gone"), compacted(`"preservedMessages":["","h"]`), user("c")},
		out: []string{named("h", "kept"), compacted(`"preservedMessages":["","h"]`), user("c")}},
	{name: "what cannot be read, and a compaction, within a segment", in: []string{named("h", "kept"), "not json", boundary, legacy, named("t", "kept"), compacted(`"preservedSegment":{"headUuid":"h","tailUuid":"t"}`), user("c")},
		out: []string{named("h", "kept"), named("t", "kept"), compacted(`"preservedSegment":{"headUuid":"h","tailUuid":"t"}`), user("c")}, check: func(m Metrics) bool { return m.LinesPreserved == 2 && m.LinesUnread == 0 }},
	{name: "one line that is named", in: []string{user("gone"), named("h", "kept"), compacted(`"preservedMessages":["h"]`), user("c")},
		out: []string{named("h", "kept"), compacted(`"preservedMessages":["h"]`), user("c")}},
	{name: "what an earlier compaction kept", in: []string{named("h", "gone"), compacted(`"preservedMessages":["h"]`), user("gone"), boundary, user("c")},
		out: []string{boundary, user("c")}, check: func(m Metrics) bool { return m.PreCompactionLinesSkipped == 3 }},
	{name: "lines without names before the tail of a segment without a head", in: []string{user("gone"), named("x", "kept"), user("gone"), named("t", "gone"), compacted(`"preservedSegment":{"tailUuid":"t"},"preservedMessages":["x"]`), user("c")},
		out: []string{named("x", "kept"), compacted(`"preservedSegment":{"tailUuid":"t"},"preservedMessages":["x"]`), user("c")}},
	{name: "lines without names behind the head of a segment without a tail", in: []string{named("h", "gone"), user("gone"), named("x", "kept"), user("gone"), compacted(`"preservedSegment":{"headUuid":"h"},"preservedMessages":["x"]`), user("c")},
		out: []string{named("x", "kept"), compacted(`"preservedSegment":{"headUuid":"h"},"preservedMessages":["x"]`), user("c")}},
	{name: "a line that is named by itself beside a segment", in: []string{named("x", "kept0"), user("gone"), named("h", "kept1"), user("kept2"), named("t", "kept3"), compacted(`"preservedSegment":{"headUuid":"h","tailUuid":"t"},"preservedMessages":["x"]`), user("c")},
		out: []string{named("x", "kept0"), named("h", "kept1"), user("kept2"), named("t", "kept3"), compacted(`"preservedSegment":{"headUuid":"h","tailUuid":"t"},"preservedMessages":["x"]`), user("c")}},
	{name: "the parent of the boundary goes", in: []string{named("x", "gone"), `{"type":"system","subtype":"compact_boundary","uuid":"b","parentUuid":"x"}`, user("c")},
		out: []string{`{"type":"system","subtype":"compact_boundary","uuid":"b","parentUuid":null}`, user("c")}, check: func(m Metrics) bool { return m.LinesRelinked == 1 }},
	{name: "a line of one byte before the boundary is", in: []string{"7", boundary, user("c")}, out: []string{boundary, user("c")}, check: func(m Metrics) bool { return m.PreCompactionLinesSkipped == 1 }},
	{name: "blank lines before the boundary are not counted", in: []string{"", " \t\r", user("gone"), "", boundary, user("c")},
		out: []string{boundary, user("c")}, check: func(m Metrics) bool { return m.PreCompactionLinesSkipped == 1 }},
}

// What blocks and lines may hold beside what is known of them.
var shapes = []trimCase{
	{name: "lists and objects in a block that are not known", in: []string{user("q"), assistant(`{"type":"text","text":"a","citations":[{"type":"x"}],"cache_control":{"type":"ephemeral"}},{"x":[1],"y":{"z":1},"type":"tool_use","id":"t1","name":"B","input":{}}`),
		`{"type":"user","message":{"role":"user","content":[{"x":[1],"type":"tool_result","tool_use_id":"t1","content":"r","y":{"z":1}}]}}`}, same: true},
	{name: "a block in a result that has content itself", in: []string{called("t1", "B", `{}`), result("t1", `[`+image(4)+`,{"type":"search_result","source":"u","content":[{"type":"text","text":"s"}],"input":{"command":"x"}}]`)},
		out: []string{called("t1", "B", `{}`), result("t1", `[`+note("Image", "image/png")+`,{"type":"search_result","source":"u","content":[{"type":"text","text":"s"}],"input":{"command":"x"}}]`)}},
	{name: "a picture whose source is told twice", in: []string{`{"type":"user","message":{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"},"source":{"type":"url","url":"u"}}]}}`}, same: true},
	{name: "a source that is a string", in: []string{`{"type":"user","message":{"role":"user","content":[{"type":"image","source":"AAAA"}]}}`}, same: true},
	{name: "an input that is a string", in: []string{called("t1", "B", `"`+long(600)+`"`)}, same: true, check: func(m Metrics) bool { return m.ToolUseInputsStubbed == 0 }},
	{name: "an input that is a list", in: []string{called("t1", "B", `["`+long(600)+`"]`)}, same: true},
	{name: "an input of which nothing is cut", in: []string{called("t1", "Bash", `{"command":"`+long(900)+`"}`)}, same: true, check: func(m Metrics) bool { return m.ToolUseInputsStubbed == 0 && m.ToolUseRequests == 1 }},
	{name: "an input one over the threshold", in: []string{called("t1", "Write", `{"content":"`+long(501)+`"}`)}, want: []string{`{"content":"[Trimmed: ~501 chars; how `}, check: func(m Metrics) bool { return m.ToolUseInputsStubbed == 1 }},
	{name: "strings in a list of an input", in: []string{called("t1", "B", `{"path":["`+long(501)+`",true,{"n":1}]}`)}, want: []string{`{"path":["[Trimmed: ~501 chars; how `, `",true,{"n":1}]}`}},
	{name: "the longest id of a call", in: []string{called(long(4094), "B", `{}`), result(long(4094), `"r"`)}, same: true},
	{name: "an id of a call that is too long", in: []string{user("q"), called(long(4095), "B", `{}`), result(long(4095), `"r"`)}, out: []string{user("q")}, check: func(m Metrics) bool { return m.OrphansRemoved == 1 && m.LinesEmptied == 2 }},
	{name: "an id that is a number", in: []string{user("q"), assistant(`{"type":"tool_use","id":12345,"name":"B","input":{}}`), `{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":12345,"content":"r"}]}}`}, out: []string{user("q")}},
	{name: "a torn line counts nothing", in: []string{user("a"), strings.TrimSuffix(assistant(bash("t1")), "}"), strings.TrimSuffix(result("t1", `[`+image(2000)+`]`), "}"), strings.TrimSuffix(`{"type":"user","toolUseResult":"`+long(600)+`"}`, "}")}, same: true,
		check: func(m Metrics) bool {
			return m.LinesUnread == 3 && m.ToolUseRequests == 0 && m.AssistantResponses == 0 && m.UserMessages == 1 && m.ImagesStripped == 0 && m.CopiesStubbed == 0
		}},
	{name: "something behind the end of a line", in: []string{user("a") + "\x00", user("b") + " x", user("c")}, same: true, check: func(m Metrics) bool { return m.LinesUnread == 2 && m.UserMessages == 1 }},
	{name: "of two lists of content the last counts", in: []string{user("q"), `{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t9","content":"r"}],"content":[{"type":"text","text":"x"}]}}`,
		`{"type":"user","message":{"role":"user","content":[{"type":"text","text":"x"}],"content":[{"type":"tool_result","tool_use_id":"t9","content":"r"}]}}`},
		out: []string{user("q"), `{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t9","content":"r"}],"content":[{"type":"text","text":"x"}]}}`}},
	{name: "content beside the message", in: []string{`{"content":[{"type":"tool_result","tool_use_id":"t9","content":"r"}],"type":"user","message":{"role":"user","content":[{"type":"text","text":"x"}]}}`}, same: true},
	{name: "thinking of which each goes with one comma", in: []string{user("q"), assistant(` ` + thinking("1") + ` , ` + thinking("2") + ` , {"type":"text","text":"a"} , ` + thinking("3") + `,` + thinking("4") + ` , {"type":"text","text":"b"} `)},
		out: []string{user("q"), assistant(` {"type":"text","text":"a"} , {"type":"text","text":"b"} `)}, check: func(m Metrics) bool { return m.SignaturesStripped == 4 }},
	{name: "a copy that is a string", in: []string{called("t1", "B", `{}`), `{"toolUseResult":"` + long(600) + `",` + result("t1", `"r"`)[1:], user("a")},
		out: []string{called("t1", "B", `{}`), `{"toolUseResult":"[Trimmed: ~600 chars]",` + result("t1", `"r"`)[1:], user("a")}, check: func(m Metrics) bool { return m.CopiesStubbed == 1 }},
	{name: "copies are counted by line", in: []string{`{"data":"` + long(600) + `","toolUseResult":"` + long(600) + `","type":"progress"}`, `{"data":"` + long(600) + `","type":"other"}`, `{"data":"x","type":"progress"}`},
		out:   []string{`{"data":"[Trimmed: ~600 chars]","toolUseResult":"[Trimmed: ~600 chars]","type":"progress"}`, `{"data":"` + long(600) + `","type":"other"}`, `{"data":"x","type":"progress"}`},
		check: func(m Metrics) bool { return m.CopiesStubbed == 1 }},
	{name: "what progress carries", in: []string{`{"data":"` + long(600) + `","type":"progress"}`, `{"data":[` + strings.Repeat("1,", maxCopy/2) + `1],"type":"progress"}`},
		out: []string{`{"data":"[Trimmed: ~600 chars]","type":"progress"}`, `{"data":"[Trimmed: ~65539 chars]","type":"progress"}`}, check: func(m Metrics) bool { return m.CopiesStubbed == 2 }},
	{name: "as many pictures as get a note each", threshold: 1 << 20, in: []string{called("t1", "Shot", `{}`), result("t1", `[`+image(4)+strings.Repeat(`,`+image(4), maxPictures-1)+`]`)},
		want: []string{`[` + note("Image", "image/png") + `,` + note("Image", "image/png") + `,`}, not: []string{"AAAA"}, check: func(m Metrics) bool { return m.ImagesStripped == maxPictures && m.ToolResultsStubbed == 0 }},
	{name: "attachments", in: []string{attachment(`"x"`), attachment(`7`), attachment(`[[` + image(4) + `]]`), attachment(`{"a":{"prompt":[` + image(4) + `]}}`), attachment(`[{"type":"file",` + image(4)[len(`{"type":"image",`):] + `]`),
		attachment(`[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AAAA"}}]`), attachment(`[{"type":"image","type":"text","source":{"data":"AAAA"}}]`), attachment(`[{"type":"image","source":{"type":"url"}}]`),
		attachment(`[{"type":"image","source":{"data":"AAAA"},"more":[` + image(4) + `]}]`), attachment(`[{"type":"image","source":{"data":"AAAA"},"more":{"x":[]}}]`), attachment(image(4))},
		out: []string{attachment(`"x"`), attachment(`7`), attachment(`[[` + note("Image", "image/png") + `]]`), attachment(`{"a":{"prompt":[` + note("Image", "image/png") + `]}}`), attachment(`[{"type":"file",` + image(4)[len(`{"type":"image",`):] + `]`),
			attachment(`[` + note("Document", "application/pdf") + `]`), attachment(`[{"type":"image","type":"text","source":{"data":"AAAA"}}]`), attachment(`[{"type":"image","source":{"type":"url"}}]`),
			attachment(`[` + note("Image", "unknown type") + `]`), attachment(`[` + note("Image", "unknown type") + `]`), attachment(image(4))},
		check: func(m Metrics) bool { return m.ImagesStripped == 5 }},
}

func TestLoops(t *testing.T) { play(t, loops) }

func TestKept(t *testing.T) { play(t, keptCases) }

func TestShapes(t *testing.T) { play(t, shapes) }
