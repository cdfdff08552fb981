package trim

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// said is one message as the API gets it.
type said struct {
	role   string
	blocks []any
	empty  int // lines with no content
}

// report is what a reader of the log finds.
type report struct {
	faults []string
	texts  map[string]int // of the live part, with who says them
}

var asides = map[string]bool{"system": true, "summary": true, "progress": true, "attachment": true, "queue-operation": true, "file-history-snapshot": true}

// inspect reads a log in the plainest way and holds its live part against the rules of the Messages API.
func inspect(log []byte) report {
	rows := []map[string]any{}
	from := 0
	for _, line := range bytes.Split(log, []byte("\n")) {
		var row map[string]any
		if json.Unmarshal(line, &row) != nil || row == nil {
			continue
		}
		rows = append(rows, row)
		_, title := row["leafUuid"]
		if row["type"] == "system" && row["subtype"] == "compact_boundary" || row["type"] == "summary" && !title {
			from = len(rows)
		}
	}
	r := report{texts: map[string]int{}}
	uuids := map[any]bool{}
	for _, row := range rows {
		if isString(row["uuid"]) {
			uuids[row["uuid"]] = true
		}
	}
	for _, row := range rows {
		if p := row["parentUuid"]; isString(p) && p != "" && !uuids[p] {
			r.add("parent %v is not there", p)
		}
	}
	// What stands before the boundary of a trimmed log was kept: its last call may have its result behind it.
	var kept []string
	before := report{texts: map[string]int{}}
	if all := before.messages(rows[:from]); len(all) > 0 {
		kept = ids(all[len(all)-1], "tool_use", "id")
	}
	r.judge(r.messages(rows[from:]), kept)
	return r
}

func isString(v any) bool { _, ok := v.(string); return ok }

func (r *report) add(format string, args ...any) {
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

func truth(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case float64:
		return v != 0
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}

// messages are the lines of the main conversation, put together.
func (r *report) messages(rows []map[string]any) (all []*said) {
	byID := map[string]*said{}
	for _, row := range rows {
		typ, _ := row["type"].(string)
		if truth(row["isSidechain"]) || asides[typ] {
			continue
		}
		m, _ := row["message"].(map[string]any)
		role := typ
		for _, v := range []any{row["role"], m["role"]} {
			if s, ok := v.(string); ok && s != "" {
				role = s
			}
		}
		role = strings.Replace(role, "human", "user", 1)
		if role != "user" && role != "assistant" {
			continue
		}
		content := m["content"]
		if content == nil {
			content = row["content"]
		}
		blocks, list := content.([]any)
		if s, ok := content.(string); ok {
			blocks = []any{map[string]any{"type": "text", "text": s}}
		}
		for _, b := range blocks {
			if b, ok := b.(map[string]any); ok && b["type"] == "text" && !emptyText(b) {
				r.texts[fmt.Sprintf("%s: %v", role, b["text"])]++
			}
		}
		id, _ := m["id"].(string)
		if role != "assistant" {
			id = ""
		}
		empty := 0
		if list && len(blocks) == 0 {
			empty = 1
		}
		switch last := len(all) - 1; {
		case id != "" && byID[id] != nil:
			byID[id].blocks = append(byID[id].blocks, blocks...)
			byID[id].empty += empty
			continue
		case last >= 0 && all[last].role == role:
			all[last].blocks = append(all[last].blocks, blocks...)
			all[last].empty += empty
		default:
			all = append(all, &said{role, slices.Clone(blocks), empty})
		}
		if id != "" {
			byID[id] = all[len(all)-1]
		}
	}
	return all
}

// emptyText reports a block of text without text, which the API refuses.
func emptyText(b any) bool {
	m, _ := b.(map[string]any)
	text, ok := m["text"].(string)
	return ok && m["type"] == "text" && text == ""
}

// ids are the values of a field of the blocks of a type.
func ids(m *said, typ, field string) (all []string) {
	for _, b := range m.blocks {
		if b, ok := b.(map[string]any); ok && b["type"] == typ {
			id, _ := b[field].(string)
			all = append(all, id)
		}
	}
	return all
}

func (r *report) judge(all []*said, kept []string) {
	seen := map[string]bool{}
	for i, m := range all {
		if len(m.blocks) == 0 || m.empty > 0 {
			r.add("message %d is empty", i)
		}
		if slices.ContainsFunc(m.blocks, emptyText) {
			r.add("message %d has an empty text", i)
		}
		calls, results := ids(m, "tool_use", "id"), ids(m, "tool_result", "tool_use_id")
		before, behind := kept, []string(nil)
		if i > 0 {
			before = ids(all[i-1], "tool_use", "id")
		}
		if i+1 < len(all) {
			behind = ids(all[i+1], "tool_result", "tool_use_id")
		}
		for k, id := range results {
			if m.role != "user" || !slices.Contains(before, id) || slices.Contains(results[:k], id) {
				r.add("message %d: result %q has no call", i, id)
			}
		}
		for _, id := range calls {
			if m.role != "assistant" || i+1 < len(all) && !slices.Contains(behind, id) {
				r.add("message %d: call %q has no result", i, id)
			}
			if seen[id] || id == "" {
				r.add("message %d: call %q is there twice", i, id)
			}
			seen[id] = true
		}
	}
}

// rebuild makes the log again from what was written, the cuts and the bytes that they took.
func rebuild(in, out []byte, cuts cutList) ([]byte, error) {
	var log []byte
	at, from := int64(0), int64(0) // of out, of in
	for _, c := range cuts {
		n := c.From - from
		if n < 0 || c.To < c.From || at+n+c.Put > int64(len(out)) {
			return nil, fmt.Errorf("cut %+v does not follow the one before", c)
		}
		log = append(log, out[at:at+n]...)
		log = append(log, in[c.From:c.To]...)
		at, from = at+n+c.Put, c.To
	}
	return append(log, out[at:]...), nil
}

// laws hold for every log.
func laws(t testing.TB, in []byte, o Options) ([]byte, Metrics) {
	t.Helper()
	out, cuts, m := trimmed(t, in, o)
	if back, err := rebuild(in, out, cuts); err != nil || !bytes.Equal(back, in) {
		t.Fatalf("the log cannot be made again from its cuts: %v", err)
	}
	before, after := inspect(in), inspect(out)
	if len(after.faults) > 0 {
		t.Errorf("the trimmed log breaks rules: %v", after.faults)
	}
	for text, n := range before.texts {
		if after.texts[text] < n {
			t.Errorf("lost a text: %.200q", text)
		}
	}
	for text, n := range after.texts {
		if n > before.texts[text] && !strings.Contains(text, "[Image removed: ") && !strings.Contains(text, "[Document removed: ") {
			t.Errorf("made up a text: %.200q", text)
		}
	}
	again, _, _ := trimmed(t, out, o)
	if !bytes.Equal(again, out) {
		t.Errorf("a second trim changes the log:\n%s", firstDifference(out, again))
	}
	if m.OriginalBytes != int64(len(in)) || m.TrimmedBytes != int64(len(out)) {
		t.Errorf("sizes: %d and %d, the metrics say %d and %d", len(in), len(out), m.OriginalBytes, m.TrimmedBytes)
	}
	return out, m
}

func firstDifference(a, b []byte) string {
	x, y := bytes.Split(a, []byte("\n")), bytes.Split(b, []byte("\n"))
	for i := range min(len(x), len(y)) {
		if !bytes.Equal(x[i], y[i]) {
			return fmt.Sprintf("%.600s\n%.600s", x[i], y[i])
		}
	}
	return fmt.Sprintf("%d and %d lines", len(x), len(y))
}

// A line that is too long to be read passes byte for byte, and is told; before a compaction it goes with the others.
func TestLongLines(t *testing.T) {
	lines := []string{user("before"), user(long(901)), boundary, user("a"), result("t0", `"`+long(900)+`"`), called("t1", "Bash", `{}`), result("t1", `"`+long(300)+`"`), user(long(900)), user("b")}
	in := []byte(strings.Join(lines, "\n"))
	var out bytes.Buffer
	var cuts cutList
	m, err := trim(reading{ctx: t.Context(), in: bytes.NewReader(in), size: int64(len(in)), most: 500}, &out, &cuts, Options{Threshold: 50})
	if err != nil {
		t.Fatal(err)
	}
	if back, err := rebuild(in, out.Bytes(), cuts); err != nil || !bytes.Equal(back, in) {
		t.Errorf("the log cannot be made again: %v", err)
	}
	if m.LinesUnread != 2 || m.PreCompactionLinesSkipped != 2 || m.ToolResultsStubbed != 1 {
		t.Errorf("%+v", m)
	}
	for i, line := range lines {
		if got := strings.Contains(out.String(), line); got != (i > 1 && i != 6) {
			t.Errorf("line %d is there: %t, in %s", i, got, out.String())
		}
	}
}
