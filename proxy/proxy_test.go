package proxy_test

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/proxy"
)

// TestObserve: no byte is changed, all is in the log, and a message that comes again is stored once.
func TestObserve(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	one := request(text("user", "hello"))
	if e := r.exchange(proxy.Observe, one, reply("end_turn", textBlock("hi"))); !bytes.Equal(e.sent[0], one) || !bytes.Contains(e.got, []byte(textBlock("hi"))) {
		t.Errorf("sent\n%s\ngot\n%s", e.sent[0], e.got)
	}
	two := request(text("user", "hello"), said(textBlock("hi")), text("user", "and?"))
	r.exchange(proxy.Observe, two, reply("end_turn", textBlock("that")))
	if got, want := logOf(r), "hello|hi|and?|that"; got != want {
		t.Errorf("the log has %q, want %q", got, want)
	}
	r.restart()
	three := request(text("user", "hello"), said(textBlock("hi")), text("user", "and?"), said(textBlock("that")), text("user", "so"))
	r.exchange(proxy.Observe, three, reply("end_turn", textBlock("end")))
	if got, want := logOf(r), "hello|hi|and?|that|so|end"; got != want {
		t.Errorf("after a restart the log has %q, want %q", got, want)
	}
}

// logOf is what the first track's log says.
func logOf(r *rig) string {
	r.t.Helper()
	var out []string
	for e, err := range r.s.Reader.All(r.t.Context(), false) {
		if err != nil {
			r.t.Fatal(err)
		}
		m, err := e.Message()
		if err != nil {
			r.t.Fatal(err)
		}
		out = append(out, m.PlainText())
	}
	return strings.Join(out, "|")
}

// TestPhantomPutBack: a call of ours that stood among others is back at its place in the next request, with its result
// before that of the client, also after a restart.
func TestPhantomPutBack(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	ask := text("user", "read it")
	mixed := reply("tool_use", textBlock("I look."), call("p1", paging.FaultTool, `{"paths":["a.go"]}`), call("c1", "Read", `{"file_path":"b.go"}`))
	e := r.exchange(proxy.Page, request(ask), mixed)
	if !bytes.Contains(e.sent[0], []byte(`"name":"memory_fault"`)) {
		t.Errorf("our tools are not offered: %s", e.sent[0])
	}
	if bytes.Contains(e.got, []byte("memory_fault")) || !bytes.Contains(e.got, []byte(`"id":"c1"`)) {
		t.Errorf("the client got %s", e.got)
	}
	r.restart()
	e = r.exchange(proxy.Page, request(ask, said(textBlock("I look."), call("c1", "Read", `{"file_path":"b.go"}`)), result("c1", "package b")), reply("end_turn", textBlock("done")))
	m := e.messages(t, 0)
	if err := tidemark.Check(m); err != nil {
		t.Fatal(err)
	}
	if len(m) != 3 || fmt.Sprint(m[1].Calls()) != "[p1 c1]" || fmt.Sprint(m[2].Results()) != "[p1 c1]" {
		t.Errorf("sent %s", e.sent[0])
	}
}

// TestPhantomOnly: a reply that only calls our tools is answered here; the client sees one reply, and the next request
// has the exchange at its place.
func TestPhantomOnly(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	e := r.exchange(proxy.Page, request(text("user", "q")),
		reply("tool_use", textBlock("First."), call("p1", paging.FaultTool, `{"paths":["nothing"]}`)), reply("end_turn", textBlock("Then.")))
	if len(e.sent) != 2 {
		t.Fatalf("%d calls", len(e.sent))
	}
	m := e.messages(t, 1)
	if err := tidemark.Check(m); err != nil || len(m) != 3 {
		t.Fatalf("continued with %d messages: %v", len(m), err)
	}
	var got struct {
		Content []tidemark.Block `json:"content"`
		Usage   tidemark.Usage   `json:"usage"`
	}
	if err := json.Unmarshal(e.got, &got); err != nil || len(got.Content) != 2 || got.Usage.Input != tidemark.Tokens(len(e.sent[0])/4+len(e.sent[1])/4) {
		t.Errorf("the client got %s", e.got)
	}
	e = r.exchange(proxy.Page, request(text("user", "q"), said(textBlock("First."), textBlock("Then.")), text("user", "more")), reply("end_turn", textBlock("ok")))
	m = e.messages(t, 0)
	if err := tidemark.Check(m); err != nil {
		t.Fatal(err)
	}
	if len(m) != 5 || m[1].PlainText() != "First." || fmt.Sprint(m[2].Results()) != "[p1]" || m[3].PlainText() != "Then." {
		t.Errorf("sent %s", e.sent[0])
	}
}

// TestPaged: a long conversation pages out, the stub names a handle, the model has the copy back to the byte, and a
// replay of the log decides as was decided.
func TestPaged(t *testing.T) {
	r := newRig(t, proxy.Settings{Window: 20_000})
	var history []string
	files := map[string]string{}
	stubs := 0
	step := func(id, file string) {
		files[file] = strings.Repeat(file+" holds this line\n", 120)
		if len(history) == 0 || strings.Contains(history[len(history)-1], "assistant") {
			history = append(history, text("user", "go on with "+file))
		}
		e := r.exchange(proxy.Page, request(history...), reply("tool_use", call(id, "Read", `{"file_path":"`+file+`"}`)))
		if err := tidemark.Check(e.messages(t, 0)); err != nil {
			t.Fatal(err)
		}
		stubs = e.stubs(t)
		history = append(history, said(call(id, "Read", `{"file_path":"`+file+`"}`)), result(id, files[file]))
	}
	for i := range 30 {
		step(fmt.Sprintf("c%d", i), fmt.Sprintf("f%d.go", i))
		if i == 20 {
			r.restart()
		}
	}
	if stubs == 0 {
		t.Fatal("nothing left")
	}
	e := r.exchange(proxy.Page, request(history...), reply("tool_use", call("p1", paging.FaultTool, `{"paths":["f1.go"]}`)), reply("end_turn", textBlock("ok")))
	m := e.messages(t, 1)
	if err := tidemark.Check(m); err != nil {
		t.Fatal(err)
	}
	back := m[len(m)-1].Content[0]
	if len(back.Content) != 2 || back.Content[1].Text != files["f1.go"] || !strings.Contains(back.Content[0].Text, "stored 2") {
		t.Errorf("given back %s", back.AppendJSON(nil))
	}
	same(t, r)
}

// same replays what was exported and compares the decisions.
func same(t *testing.T, r *rig) {
	t.Helper()
	var steps, live, again bytes.Buffer
	if err := r.c.Steps(t.Context(), &steps); err != nil {
		t.Fatal(err)
	}
	if err := r.c.Decisions(t.Context(), &live); err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(steps.Bytes()) {
		scan := paging.Scanner{Tools: paging.DefaultTools()}
		s, err := scan.Session(bytes.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		replay := paging.Replay{Options: paging.Options{Window: cmp.Or(r.settings.Window, 200_000)}, Keep: true}
		if err := replay.Run(s); err != nil {
			t.Fatal(err)
		}
		again.Write(append(replay.Line, '\n'))
	}
	a, b := requestsOf(t, live.Bytes()), requestsOf(t, again.Bytes())
	if len(a) != len(b) {
		t.Fatalf("%d live decisions, %d of the replay", len(a), len(b))
	}
	for i := range a {
		if a[i] != b[i] {
			t.Fatalf("request %d was decided\n%s\nand is replayed\n%s", i, a[i], b[i])
		}
	}
}

// requestsOf are the decisions in lines of them.
func requestsOf(t *testing.T, lines []byte) (out []string) {
	t.Helper()
	for line := range bytes.Lines(lines) {
		var d struct {
			Session  string            `json:"session"`
			Requests []json.RawMessage `json:"requests"`
		}
		if err := json.Unmarshal(line, &d); err != nil {
			t.Fatal(err)
		}
		for i, one := range d.Requests {
			out = append(out, fmt.Sprint(d.Session, " ", i, " ", string(one)))
		}
	}
	return out
}

// TestGivenOnce: what the model asks for again in one answer is not brought twice, and the context is that of the last
// call, not the sum of all.
func TestGivenOnce(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	long := strings.Repeat("a line of a.go\n", 100)
	read := call("c1", "Read", `{"file_path":"a.go"}`)
	history := []string{text("user", "q"), said(read), result("c1", long)}
	ask := func(id string) []byte {
		return reply("tool_use", call(id, paging.FaultTool, `{"paths":["a.go"]}`))
	}
	e := r.exchange(proxy.Page, request(history...), ask("p1"), ask("p2"), reply("end_turn", textBlock("ok")))
	if n := bytes.Count(e.sent[2], []byte("a line of a.go")); n != 200 {
		t.Errorf("sent %d lines of it", n)
	}
	if a := r.lastRecord(); int(a.Context) != len(e.sent[2])/4+10 || a.Proxy.Legs != 3 || int(a.Proxy.First) != len(e.sent[0])/4 || int(a.Usage.Output) != 30 {
		t.Errorf("of %d, %d bytes: context %d, usage %+v, %+v", len(e.sent[0]), len(e.sent[2]), a.Context, a.Usage, a.Proxy)
	}
}
