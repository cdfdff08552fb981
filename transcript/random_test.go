package transcript

import (
	"bytes"
	stdjson "encoding/json" // an independent reading of the same log
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// generator writes logs in the shape of real ones, with everything that went wrong in some.
type generator struct {
	r     *rand.Rand
	size  int // characters of a large text
	n     int // ids
	nasty bool
}

func newGenerator(seed uint64, size int) *generator {
	return &generator{r: rand.New(rand.NewPCG(seed, 9)), size: size}
}

func (g *generator) id(prefix string) string {
	g.n++
	return fmt.Sprintf("%s_%d", prefix, g.n)
}

func (g *generator) text() string {
	words := []string{"plain words ", `a \"quote\" `, `line\nline `, `tab\t\\ `, "日本語 ", "👩‍👩‍👧 ", "\u2028", `\u00e9`, `{\"json\":[1,2]} `, "0123456789abcdef"}
	if g.nasty {
		words = append(words, `\ud800`, "\xff")
	}
	var b strings.Builder
	for limit := g.r.IntN(g.size + 1); b.Len() < limit; {
		b.WriteString(words[g.r.IntN(len(words))])
	}
	return b.String()
}

// line wraps a message, with the fields around it in one of two orders.
func (g *generator) line(typ, message string) string {
	head := fmt.Sprintf(`"parentUuid":"%s","isSidechain":%v,"cwd":"/home/x","sessionId":"s","version":"2.1"`, g.id("p"), g.r.IntN(12) == 0)
	tail := fmt.Sprintf(`"uuid":"%s","timestamp":"2026-02-11T21:18:%02d.543Z"`, g.id("u"), g.r.IntN(60))
	if typ == "user" && g.r.IntN(2) == 0 {
		tail += `,"toolUseResult":{"stdout":"` + g.text() + `","interrupted":false}`
	}
	if g.r.IntN(2) == 0 {
		return fmt.Sprintf(`{%s,"type":"%s","message":%s,%s}`, head, typ, message, tail)
	}
	return fmt.Sprintf(`{%s,"message":%s,"type":"%s",%s}`, head, message, typ, tail)
}

func (g *generator) user() string {
	content := `"` + g.text() + `"`
	if g.r.IntN(3) == 0 {
		content = `[{"type":"text","text":"` + g.text() + `"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + strings.Repeat("QUJD", g.r.IntN(g.size+1)) + `"}}]`
	}
	return g.line("user", `{"role":"user","content":`+content+`}`)
}

func (g *generator) assistant(id, block string) string {
	return g.line("assistant", fmt.Sprintf(`{"model":"opus","id":"%s","type":"message","role":"assistant","content":[%s],"stop_reason":null,"usage":{"input_tokens":%d,"output_tokens":%d}}`,
		id, block, g.r.IntN(9), g.r.IntN(999)))
}

// reply writes one message of the model in several lines, with results of its calls between them.
func (g *generator) reply() []string {
	id := g.id("msg")
	var lines, waiting []string
	if g.r.IntN(2) == 0 {
		lines = append(lines, g.assistant(id, `{"type":"thinking","thinking":"`+g.text()+`","signature":"c2ln"}`))
	}
	lines = append(lines, g.assistant(id, `{"type":"text","text":"`+g.text()+`"}`))
	for range g.r.IntN(5) {
		call := g.id("toolu")
		lines = append(lines, g.assistant(id, `{"type":"tool_use","id":"`+call+`","name":"Bash","input":{"command":"`+g.text()+`","timeout":1.0}}`))
		if g.r.IntN(10) > 0 { // some calls are interrupted
			waiting = append(waiting, g.line("user", `{"role":"user","content":[{"tool_use_id":"`+call+`","type":"tool_result","content":"`+g.text()+`"}]}`))
		}
		for len(waiting) > 0 && g.r.IntN(2) == 0 {
			lines, waiting = append(lines, waiting[0]), waiting[1:]
		}
	}
	lines = append(lines, waiting...)
	if g.nasty && g.r.IntN(4) == 0 { // a late line of the same message
		lines = append(lines, g.user(), g.assistant(id, `{"type":"text","text":"late"}`))
	}
	return lines
}

// log writes a log of about n lines.
func (g *generator) log(n int) []string {
	var lines, late []string
	for len(lines) < n {
		switch k := g.r.IntN(12); {
		case k < 5:
			lines = append(lines, g.reply()...)
		case k < 7:
			lines = append(lines, g.user())
		case k < 10:
			lines = append(lines, `{"type":"progress","data":{"message":{"type":"assistant","message":{"role":"assistant","content":"`+g.text()+`"}}},"uuid":"`+g.id("u")+`"}`)
		case k == 10:
			lines = append(lines, `{"type":"system","subtype":"compact_boundary","uuid":"`+g.id("u")+`"}`)
		case g.nasty:
			lines = append(lines, []string{"", "broken", `{"type":"user"`, "null", `{"type":"later"}`, "\r", `{"type":"user","message":{"content":null}}`}[g.r.IntN(7)])
			far := g.id("far")
			lines = append(lines, g.assistant(far, `{"type":"text","text":"`+g.text()+`"}`))
			late = append(late, g.assistant(far, `{"type":"text","text":"far away"}`))
		}
	}
	return append(lines, late...)
}

// simpleMessage is a message as a plain decoder of the log sees it.
type simpleMessage struct {
	Role   string
	Blocks []any
	Text   any // string content
	Lines  []int64
	Border bool
	Output any // of the last usage
}

// simpleMessages reads a log with encoding/json and maps alone. Lines that are blank, broken or no
// messages are skipped.
func simpleMessages(log []byte) []*simpleMessage {
	var out []*simpleMessage
	byID := map[string]*simpleMessage{}
	border := false
	for i, raw := range bytes.Split(log, []byte("\n")) {
		var row map[string]any
		d := stdjson.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if !stdjson.Valid(raw) || d.Decode(&row) != nil {
			continue
		}
		border = border || row["subtype"] == "compact_boundary"
		typ, _ := row["type"].(string)
		m, _ := row["message"].(map[string]any)
		if typ != "user" && typ != "assistant" || row["isSidechain"] == true || m["content"] == nil {
			continue
		}
		s := &simpleMessage{Role: typ, Border: border}
		id, _ := m["id"].(string)
		if old := byID[id]; typ == "assistant" && id != "" && old != nil {
			s = old
		} else {
			out, border = append(out, s), false
			byID[id] = s
		}
		s.Lines = append(s.Lines, int64(i+1))
		if u, ok := m["usage"].(map[string]any); ok {
			s.Output = u["output_tokens"]
		}
		switch c := m["content"].(type) {
		case string:
			s.Text = c
		case []any:
			s.Blocks = append(s.Blocks, c...)
		}
	}
	return out
}

// checkSame holds our reading of a log against the simple one.
func checkSame(t *testing.T, items []Item, want []*simpleMessage) {
	t.Helper()
	if len(items) != len(want) {
		t.Fatalf("%d messages, want %d", len(items), len(want))
	}
	for i, it := range items {
		var got struct {
			Role    string
			Content any
		}
		d := stdjson.NewDecoder(bytes.NewReader(it.Message.AppendJSON(nil)))
		d.UseNumber()
		if err := d.Decode(&got); err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
		w := want[i]
		content := w.Text
		if w.Blocks != nil {
			content = w.Blocks
		}
		if got.Role != w.Role || !reflect.DeepEqual(got.Content, content) || !reflect.DeepEqual(it.Lines, w.Lines) || it.Boundary != w.Border {
			t.Fatalf("message %d of lines %v (boundary %v):\n%.500v\nwant lines %v (boundary %v):\n%.500v", i, it.Lines, it.Boundary, got, w.Lines, w.Border, content)
		}
		if w.Output != nil && (it.Usage == nil || fmt.Sprint(it.Usage.Output) != fmt.Sprint(w.Output)) {
			t.Fatalf("message %d: usage %+v, want %v out", i, it.Usage, w.Output)
		}
	}
}

func TestRandomLogs(t *testing.T) {
	for seed := range uint64(60) {
		g := newGenerator(seed, 60)
		g.nasty = seed%2 == 1
		log := []byte(strings.Join(g.log(80), []string{"\n", "\r\n"}[seed/2%2]))
		want := simpleMessages(log)
		for _, input := range []string{"file", "pipe"} {
			items, _ := readAll(t, log, input, Options{})
			checkSame(t, items, want)
			checkOrder(t, items)
		}
	}
}

// checkOrder holds the rules of order: messages stand by their first lines, a result stands behind
// its call, and every line is in one message.
func checkOrder(t *testing.T, items []Item) {
	t.Helper()
	called, answered := map[string]int{}, map[string]int{}
	seen := map[int64]bool{}
	for i, it := range items {
		if i > 0 && it.Lines[0] <= items[i-1].Lines[0] {
			t.Fatalf("message %d begins at line %d, the one before at %d", i, it.Lines[0], items[i-1].Lines[0])
		}
		for _, n := range it.Lines {
			if seen[n] {
				t.Fatalf("line %d is in two messages", n)
			}
			seen[n] = true
		}
		if it.Message.Role == tidemark.User && len(it.Lines) != 1 {
			t.Fatalf("user message of lines %v", it.Lines)
		}
		for _, id := range it.Message.Calls() {
			called[id] = i
		}
		for _, id := range it.Message.Results() {
			answered[id] = i
		}
	}
	for id, at := range answered {
		if by, ok := called[id]; ok && by >= at {
			t.Fatalf("result of %s stands before its call", id)
		}
	}
}

func TestRealLogs(t *testing.T) {
	logs := realLogs(t)
	if len(logs) == 0 {
		t.Skip("set TIDEMARK_TRANSCRIPTS to a folder of Claude Code logs (*.jsonl) to read them")
	}
	for _, log := range logs {
		want := simpleMessages(log)
		for _, input := range []string{"file", "pipe"} {
			items, bad := readAll(t, log, input, Options{})
			if len(bad) > 0 {
				t.Errorf("errors: %q", bad)
			}
			checkSame(t, items, want)
			checkOrder(t, items)
		}
	}
}

func FuzzMessages(f *testing.F) {
	for seed := range uint64(4) {
		g := newGenerator(seed, 20)
		g.nasty = true
		f.Add([]byte(strings.Join(g.log(10), "\n")))
	}
	for _, log := range nastyLogs {
		f.Add([]byte(log))
	}
	f.Fuzz(func(t *testing.T, log []byte) {
		items, bad := readAll(t, log, "file", Options{})
		inPieces, badToo := readAll(t, log, "pipe", Options{})
		if show(items) != show(inPieces) || fmt.Sprint(bad) != fmt.Sprint(badToo) {
			t.Fatalf("of a file\n%s%s\nof a pipe\n%s%s", show(items), bad, show(inPieces), badToo)
		}
		checkOrderOfAny(t, items)
	})
}

// checkOrderOfAny is checkOrder for logs in which ids repeat.
func checkOrderOfAny(t *testing.T, items []Item) {
	t.Helper()
	for i := range items {
		for j := range items[i].Message.Content {
			items[i].Message.Content[j].ID, items[i].Message.Content[j].ToolUseID = "", fmt.Sprint("none", i)
		}
	}
	checkOrder(t, items)
}
