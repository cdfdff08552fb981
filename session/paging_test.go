package session_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/session"
)

// desk is a session with paging whose model works on files: what is typed says what it calls.
//
//	"read a.go"          one call of read_file
//	"read a.go,b.go"     two in one reply
//	anything else        an answer
type desk struct {
	*harness
	files map[string]string
	calls int
}

// paged is a window that a few results fill.
var paged = session.Settings{Window: 12_000, Reserve: 1500, Keep: 1500}

func newDesk(t *testing.T, set session.Settings, p *compaction.Paging) *desk {
	t.Helper()
	d := &desk{files: map[string]string{}}
	h := &harness{t: t}
	*h = *newHarness(t, set)
	d.harness = h
	h.stop()
	h.strategies = []compaction.Strategy{p}
	h.agent.call = d.call
	h.model.set(d.play)
	h.open()
	return d
}

// again begins a new life, with nothing kept of the one before.
func (d *desk) again(p *compaction.Paging) {
	d.t.Helper()
	d.stop()
	d.strategies = []compaction.Strategy{p}
	d.open()
}

func (d *desk) call(c tidemark.Block) tidemark.Block {
	var in struct {
		Path    string `json:"path"`
		Content string `json:"content"`
	}
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return tidemark.ToolResult(c.ID, err.Error(), true)
	}
	if c.Name == "write_file" {
		d.files[in.Path] = in.Content
		return tidemark.ToolResult(c.ID, "written", false)
	}
	text, ok := d.files[in.Path]
	if !ok {
		return tidemark.ToolResult(c.ID, "no such file: "+in.Path, true)
	}
	return tidemark.ToolResult(c.ID, text, false)
}

func (d *desk) play(_ int, req tidemark.Request) (tidemark.Message, error) {
	if asksSummary(req) {
		return tidemark.Message{}, nil
	}
	last := req.Messages[len(req.Messages)-1]
	verb, rest, _ := strings.Cut(last.PlainText(), " ")
	var calls []tidemark.Block
	tool := map[string]string{"read": "read_file", "write": "write_file", "recall": "recall", "release": "memory_release", "look": "look"}[verb]
	if tool == "" || len(last.Results()) > 0 {
		return tidemark.Message{}, nil
	}
	for arg := range strings.SplitSeq(rest, ",") {
		d.calls++
		input := map[string]any{"path": arg}
		switch verb {
		case "write":
			input["content"] = strings.Repeat("new "+arg+"\n", 200)
		case "recall":
			input = map[string]any{"entry": arg}
		case "release":
			input = map[string]any{"handles": []string{arg}}
		}
		raw, err := json.Marshal(input)
		if err != nil {
			return tidemark.Message{}, err
		}
		calls = append(calls, tidemark.ToolUse(fmt.Sprintf("call_%03d", d.calls), tool, raw))
	}
	return tidemark.Message{Role: tidemark.Assistant, Content: calls}, nil
}

// file makes one of some lines, each its own.
func (d *desk) file(name string, lines int) {
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "%s line %d: the tide comes and goes\n", name, i)
	}
	d.files[name] = b.String()
}

// stubs returns what stands for results in a request, by the call.
func stubs(req tidemark.Request) map[string]string {
	out := map[string]string{}
	for _, m := range req.Messages {
		for _, b := range m.Content {
			if b.Type != tidemark.TypeToolResult || len(b.Content) != 1 {
				continue
			}
			if text := b.Content[0].Text; strings.HasPrefix(text, "[Paged out: ") || strings.HasPrefix(text, "[Cleared: ") {
				out[b.ToolUseID] = text
			}
		}
	}
	return out
}

func (d *desk) request(n int) tidemark.Request {
	d.t.Helper()
	calls := d.model.calls
	if n < 0 {
		n += len(calls)
	}
	if n < 0 || n >= len(calls) {
		d.t.Fatalf("no request %d of %d", n, len(calls))
	}
	return calls[n]
}

// TestPagingInASession: results leave the requests, stubs say what they were, nothing is lost, and what is brought back
// is what was there.
func TestPagingInASession(t *testing.T) {
	d := newDesk(t, paged, &compaction.Paging{})
	for i := range 14 {
		name := fmt.Sprintf("f%d.go", i)
		d.file(name, 60)
		if got := d.say("read " + name); strings.HasPrefix(got, "error") {
			t.Fatal(got)
		}
	}
	out := stubs(d.request(-1))
	if len(out) < 3 || out["call_001"] == "" {
		t.Fatalf("stubs in the last request: %q", out)
	}
	id := handleIn(t, out["call_001"])
	want := fmt.Sprintf(`[Paged out: read_file f0.go (%d bytes, 60 lines). Re-read if needed. recall with {"entry": "%s"} reads it.]`, len(d.files["f0.go"]), id)
	if out["call_001"] != want {
		t.Errorf("stub %q, want %q", out["call_001"], want)
	}
	for n, req := range d.model.calls {
		if err := tidemark.Check(req.Messages); err != nil {
			t.Errorf("request %d: %v", n, err)
		}
	}
	if events := d.events("paging"); len(events) == 0 || !strings.Contains(events[0], "Paged out ") || !strings.Contains(events[0], "pagedBytes") {
		t.Errorf("events %q", events)
	}
	info, err := d.Info(t.Context())
	if err != nil || info.Compactions != 0 {
		t.Errorf("%d compactions, %v", info.Compactions, err)
	}
	if keys := d.keys("agents/main/sessions/"); len(keys) != 0 {
		t.Errorf("paging wrote archives: %q", keys)
	}
	for _, life := range []string{"the same life", "another life"} {
		d.say("recall " + id)
		last := d.request(-1)
		back := last.Messages[len(last.Messages)-1].Content[0]
		if got := back.Content[0].Text; got != d.files["f0.go"] {
			t.Errorf("%s: recall gives %.80q… of %d bytes", life, got, len(got))
		}
		d.again(&compaction.Paging{})
	}
	all := strings.Join(d.originals(), "\n")
	if strings.Contains(all, "[Paged out") {
		t.Error("a stub stands in the log")
	}
}

// handleIn reads the handle of a stub.
func handleIn(t *testing.T, stub string) string {
	t.Helper()
	_, rest, _ := strings.Cut(stub, `{"entry": "`)
	id, _, ok := strings.Cut(rest, `"}`)
	if !ok {
		t.Fatalf("no handle in %q", stub)
	}
	return id
}

// parsed is a message as a client sends it.
func parsed(t *testing.T, raw string) tidemark.Message {
	t.Helper()
	var m tidemark.Message
	if err := json.Unmarshal([]byte(raw), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestPagingWithSummary: when what people say fills the window, the summary goes on from what paging left, in one act;
// what follows is a new history, in which results leave again.
func TestPagingWithSummary(t *testing.T) {
	d := newDesk(t, paged, &compaction.Paging{})
	d.stop()
	d.strategies = []compaction.Strategy{&compaction.Paging{}, compaction.Summary{}}
	d.open()
	said := 0
	for i := range 60 {
		name := fmt.Sprintf("f%d.go", i)
		d.file(name, 40)
		if got := d.say("read " + name); strings.HasPrefix(got, "error") {
			t.Fatal(got)
		}
		if got := d.say(filler(i)); strings.HasPrefix(got, "error") {
			t.Fatal(got)
		}
		said++
		if info, err := d.Info(t.Context()); err != nil || info.Compactions == 2 {
			break
		}
	}
	info, err := d.Info(t.Context())
	if err != nil || info.Compactions < 2 {
		t.Fatalf("%d compactions after %d turns, %v", info.Compactions, said, err)
	}
	d.sent()
	if keys := d.keys("agents/main/sessions/"); len(keys) < 2 {
		t.Errorf("archives %q", keys)
	}
	before := len(d.events("paging"))
	for i := 100; i < 108; i++ {
		name := fmt.Sprintf("f%d.go", i)
		d.file(name, 60)
		d.say("read " + name)
	}
	if after := len(d.events("paging")); after <= before || len(stubs(d.request(-1))) == 0 {
		t.Errorf("%d acts of paging before, %d after, %d out", before, after, len(stubs(d.request(-1))))
	}
	d.again(&compaction.Paging{})
	sent := len(stubs(d.request(-1)))
	d.say("what now?")
	if again := len(stubs(d.request(-1))); again < sent {
		t.Errorf("%d were out, %d in another life", sent, again)
	}
}
