package proxy_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/proxy"
	"github.com/tidemark-ai/tidemark/proxy/body"
)

// agentRun is a client that reads one file after another.
type agentRun struct {
	r       *rig
	name    string
	history []string
	sent    []byte
	stubs   int
}

func (a *agentRun) ask(s string) { a.history = append(a.history, text("user", s)) }

// read makes one request, which the API answers with a read, and appends its result.
func (a *agentRun) read(n, size int) {
	id, file := fmt.Sprintf("%s-%d", a.name, n), fmt.Sprintf("%s/f%d.go", a.name, n)
	c := call(id, "Read", `{"file_path":"`+file+`"}`)
	e := a.r.exchange(proxy.Page, request(a.history...), reply("tool_use", c))
	a.sent, a.stubs = e.sent[0], e.stubs(a.r.t)
	if err := tidemark.Check(e.messages(a.r.t, 0)); err != nil {
		a.r.t.Fatal(err)
	}
	a.history = append(a.history, said(c), result(id, strings.Repeat(file+" holds this line\n", size/30)))
}

// TestSubAgents: ten threads that begin with equal words, in turn, are ten tracks; each has its own files, and each is
// replayed as it was decided, also after a restart.
func TestSubAgents(t *testing.T) {
	r := newRig(t, proxy.Settings{Window: 20_000})
	runs := make([]*agentRun, 10)
	for i := range runs {
		runs[i] = &agentRun{r: r, name: fmt.Sprintf("a%d", i)}
		runs[i].ask("look around")
	}
	for n := range 12 {
		for _, a := range runs {
			a.read(n, 3000)
		}
		if n == 6 {
			r.restart()
		}
	}
	for i, a := range runs {
		if a.stubs == 0 {
			t.Errorf("thread %d: nothing left", i)
		}
		for j := range runs {
			if i != j && bytes.Contains(a.sent, fmt.Appendf(nil, "a%d/f", j)) {
				t.Errorf("thread %d was sent a file of thread %d", i, j)
			}
		}
	}
	same(t, r)
}

// prefix is how many first bytes two requests share.
func prefix(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// TestRewind: an edited message is what is sent, what was let go before it stays so, and what stood behind it is gone.
func TestRewind(t *testing.T) {
	r := newRig(t, proxy.Settings{Window: 20_000})
	a := &agentRun{r: r, name: "main"}
	a.ask("look around")
	for n := range 14 {
		a.read(n, 3000)
	}
	before := a.sent
	if a.stubs == 0 {
		t.Fatal("nothing left")
	}
	a.history = append(a.history[:len(a.history)-6], text("user", "NO, keep file A"))
	for _, restart := range []bool{false, true} {
		if restart {
			r.restart()
		}
		e := r.exchange(proxy.Page, request(a.history...), reply("end_turn", textBlock("kept")))
		if !bytes.Contains(e.sent[0], []byte("NO, keep file A")) || bytes.Contains(e.sent[0], []byte("main-13")) {
			t.Fatalf("sent %s", e.sent[0])
		}
		if err := tidemark.Check(e.messages(t, 0)); err != nil {
			t.Fatal(err)
		}
		from := bytes.Index(e.sent[0], []byte(`"messages":`))
		was := bytes.Index(before, []byte(`"messages":`))
		if n := prefix(e.sent[0][from:], before[was:]); n < bytes.Index(e.sent[0][from:], []byte("NO, keep"))-200 {
			t.Errorf("restart %t: of %d bytes before the edit only %d are as they were sent", restart, bytes.Index(e.sent[0][from:], []byte("NO, keep")), n)
		}
	}
	same(t, r)
}

// TestIdentity: what changes between requests of one conversation, and is not what was said, starts no new one.
func TestIdentity(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	r.exchange(proxy.Page, request(`{"role":"user","content":[{"type":"text","text":"q","cache_control":{"type":"ephemeral"}}]}`),
		reply("end_turn", `{"type":"thinking","thinking":"hm","signature":"s"}`, textBlock("a")))
	r.exchange(proxy.Page, request(text("user", "q"), said(textBlock("a")), `{"role":"user","content":[{"type":"text","text":"<system-reminder>x</system-reminder>"},{"type":"text","text":"b"}]}`),
		reply("end_turn", textBlock("c")))
	r.exchange(proxy.Page, request(text("user", "q"), text("assistant", "a"), text("user", "b"), text("assistant", "c"), text("user", "d")), reply("end_turn", textBlock("e")))
	if got, want := logOf(r), "q|a|<system-reminder>x</system-reminder>\nb|c|d|e"; got != want {
		t.Errorf("the log has %q, want %q", got, want)
	}
}

// TestTags: what a model lets go by tags stands behind a note, to the byte the same in each further request, and comes
// back by its handle.
func TestTags(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	long := strings.Repeat("many words of the first turn ", 40)
	history := []string{text("user", long), said(textBlock("one")), text("user", "second "+long), said(textBlock("two"))}
	r.exchange(proxy.Page, request(history[0]), reply("end_turn", textBlock("one")))
	r.exchange(proxy.Page, request(history[:3]...), reply("end_turn", textBlock("two")))
	history = append(history, text("user", "third"))
	e := r.exchange(proxy.Page, request(history...), reply("end_turn", textBlock("three\n<memory_cleanup>\ncollapse: turns 1-1 \"they greeted\"\n</memory_cleanup>")))
	if bytes.Contains(e.got, []byte("cleanup")) {
		t.Errorf("the client got %s", e.got)
	}
	history = append(history, said(textBlock("three")), text("user", "fourth"))
	var handle string
	for i := range 2 {
		e = r.exchange(proxy.Page, request(history...), reply("end_turn", textBlock(fmt.Sprintf("four%d", i))))
		m := e.messages(t, 0)
		if !strings.Contains(m[0].PlainText(), "they greeted") || bytes.Contains(e.sent[0], []byte(`"many words`)) || !bytes.Contains(e.sent[0], []byte("second many words")) {
			t.Fatalf("sent %s", e.sent[0])
		}
		handle = m[0].PlainText()[strings.Index(m[0].PlainText(), "handles ")+8:][:18]
		r.restart()
	}
	e = r.exchange(proxy.Page, request(history...), reply("tool_use", call("p", paging.FaultTool, `{"paths":["`+handle+`"]}`)), reply("end_turn", textBlock("x")))
	m := e.messages(t, 1)
	if back := m[len(m)-1].Content[0]; len(back.Content) != 2 || back.Content[1].Text != long {
		t.Errorf("given back by %s: %s", handle, back.AppendJSON(nil))
	}
}

// TestCount: the size that is asked for is that of what would be sent, and asking changes nothing.
func TestCount(t *testing.T) {
	r := newRig(t, proxy.Settings{Window: 20_000})
	a := &agentRun{r: r, name: "main"}
	a.ask("look around")
	for n := range 14 {
		a.read(n, 3000)
	}
	body := request(a.history...)
	counted := func() []byte {
		x, err := r.c.Begin(t.Context(), proxy.Ask{Body: body, Count: true})
		if err != nil {
			t.Fatal(err)
		}
		return x.Body()
	}
	first := counted()
	e := r.exchange(proxy.Page, body, reply("end_turn", textBlock("ok")))
	if !bytes.Equal(first, counted()) || !bytes.Equal(first, e.sent[0]) {
		t.Errorf("counted\n%s\nsent\n%s", first, e.sent[0])
	}
	same(t, r)
}

// TestUntouched: what cannot be read goes on as it came.
func TestUntouched(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	for _, body := range []string{`{"messages":"x"}`, `[]`, `{"messages":[{"role":"user","role":"user","content":"x"}]}`, `{"model":`, ``} {
		x, err := r.c.Begin(t.Context(), proxy.Ask{Body: []byte(body)})
		if err != nil {
			t.Fatal(err)
		}
		if _, why := x.Untouched(); string(x.Body()) != body || why == "" || x.Answer(t.Context(), 200, false) {
			t.Errorf("%s: sent %s since %q", body, x.Body(), why)
		}
		if _, err := x.Finish(t.Context()); err != nil {
			t.Error(err)
		}
		if n := len(r.records); n == 0 || r.records[n-1].Untouched == "" || r.records[n-1].Sent != len(body) {
			t.Errorf("%s: it is not noted", body)
		}
	}
}

// TestUntouchedSays: why a request was not treated, in words for people.
func TestUntouchedSays(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	for body, want := range map[string][2]string{
		`{"messages":[{"role":"user","content":"a"},{"role":"user","role":"x"}]}`: {proxy.Unreadable, "message 2 cannot be read: the key role stands twice (byte 65)"},
		`{"tools":[{"name":"a","name":"b"}],"messages":[]}`:                       {proxy.Unreadable, "tools cannot be read: the key name stands twice"},
		`{"model":`:                 {proxy.Unreadable, "model cannot be read"},
		`what?`:                     {proxy.Unreadable, "the request cannot be read: the body is no object"},
		`{"messages":[]}`:           {proxy.Unreadable, "the request has no messages"},
		strings.Repeat(" ", 33<<20): {proxy.TooLarge, "scan the request: 34603008 bytes"},
	} {
		x, err := r.c.Begin(t.Context(), proxy.Ask{Body: []byte(body)})
		if err != nil {
			t.Fatal(err)
		}
		kind, why := x.Untouched()
		if kind != want[0] || !strings.HasPrefix(why, want[1]) || proxy.Remedy(kind) == "" {
			t.Errorf("%.40s: %s, %s; want %s, %s", body, kind, why, want[0], want[1])
		}
	}
	x, err := r.c.Begin(t.Context(), proxy.Ask{Body: request(text("user", "q"))})
	if err != nil {
		t.Fatal(err)
	}
	if kind, why := x.Untouched(); kind != "" || why != "" {
		t.Errorf("one that is treated: %s, %s", kind, why)
	}
}

// TestRefused: a request that the API refuses leaves no trace, and one that it was too busy for is the same again.
func TestRefused(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	r.exchange(proxy.Page, request(text("user", "q")), reply("end_turn", textBlock("a")))
	for _, status := range []int{400, 429, 529, 429} {
		x, err := r.c.Begin(t.Context(), proxy.Ask{Body: request(text("user", "q"), text("assistant", "a"), text("user", fmt.Sprint("b", status == 400)))})
		if err != nil {
			t.Fatal(err)
		}
		if x.Answer(t.Context(), status, false) {
			t.Fatalf("%d is taken", status)
		}
		if _, err := x.Finish(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if !r.c.Idle() {
		t.Error("an exchange is in work")
	}
	r.exchange(proxy.Page, request(text("user", "q"), text("assistant", "a"), text("user", "bfalse")), reply("end_turn", textBlock("c")))
	if got, want := logOf(r), "q|a|bfalse|c"; got != want {
		t.Errorf("the log has %q, want %q", got, want)
	}
}

// TestTwoAtOnce: two answers to one request are two tracks; who goes on with either finds it.
func TestTwoAtOnce(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	begin := func() *proxy.Exchange {
		x, err := r.c.Begin(t.Context(), proxy.Ask{Body: request(text("user", "q"))})
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	x, y := begin(), begin()
	for i, e := range []*proxy.Exchange{x, y} {
		e.Answer(t.Context(), 200, false)
		if _, err := e.Feed(reply("tool_use", textBlock(fmt.Sprint("answer ", i)), call(fmt.Sprint("p", i), paging.FaultTool, `{"paths":["x"]}`), call(fmt.Sprint("c", i), "Read", `{}`))); err != nil {
			t.Fatal(err)
		}
		if e.Next(t.Context()) {
			t.Fatal("again")
		}
		if _, err := e.Finish(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	r.restart()
	for i := range 2 {
		e := r.exchange(proxy.Page, request(text("user", "q"), said(textBlock(fmt.Sprint("answer ", i)), call(fmt.Sprint("c", i), "Read", `{}`)), result(fmt.Sprint("c", i), "r")), reply("end_turn", textBlock("ok")))
		m := e.messages(t, 0)
		if got := fmt.Sprint(m[1].Calls(), m[2].Results()); got != fmt.Sprintf("[p%d c%d] [p%d c%d]", i, i, i, i) {
			t.Errorf("answer %d is sent as %s", i, e.sent[0])
		}
	}
	same(t, r)
}

// TestRefusedEdits: what the API refuses with our edits in it goes once more as it came.
func TestRefusedEdits(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	body := request(text("user", "q"))
	x, err := r.c.Begin(t.Context(), proxy.Ask{Body: body})
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(x.Body(), body) || x.Refused(429) || !x.Refused(400) || !bytes.Equal(x.Body(), body) || x.Refused(400) {
		t.Errorf("sent again: %s", x.Body())
	}
	answer := reply("end_turn", textBlock("<memory_cleanup>\nrelease: a\n</memory_cleanup>"))
	if !x.Answer(t.Context(), 200, false) {
		t.Error("its answer is not logged")
	}
	if _, err := x.Feed(answer); err != nil || x.Next(t.Context()) {
		t.Error(err)
	}
	if got, err := x.Finish(t.Context()); err != nil || !r.c.Idle() || !bytes.Equal(got, answer) {
		t.Errorf("in work, or changed: %s %v", got, err)
	}
	if x, err = r.c.Begin(t.Context(), proxy.Ask{Body: body}); err != nil || !bytes.Equal(x.Body(), body) {
		t.Errorf("the next one is edited again: %s, %v", x.Body(), err)
	}
	if a := r.lastRecord(); a.Proxy.Untouched == "" {
		t.Errorf("told as %+v", a)
	}
}

// TestEqualAnswers: a request that is made again and answered alike is the same reply, and the log is read again.
func TestEqualAnswers(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	c := call("c1", "Read", `{"file_path":"a.go"}`)
	for range 2 {
		r.exchange(proxy.Page, request(text("user", "q")), reply("tool_use", call("p1", paging.FaultTool, `{"paths":["x"]}`), c))
	}
	for range 2 {
		e := r.exchange(proxy.Page, request(text("user", "q"), said(c), result("c1", "r")), reply("end_turn", textBlock("done")))
		if m := e.messages(t, 0); fmt.Sprint(m[1].Calls()) != "[p1 c1]" {
			t.Errorf("sent %s", e.sent[0])
		}
		r.restart()
	}
	same(t, r)
}

// TestNoMessages: a request without messages is not ours to judge.
func TestNoMessages(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	for d, body := range map[body.Dialect]string{body.Messages: `{"messages":[]}`, body.Chat: `{"messages":[{"role":"system","content":"x"}]}`} {
		x, err := r.c.Begin(t.Context(), proxy.Ask{Dialect: d, Body: []byte(body)})
		if err != nil || string(x.Body()) != body || x.Answer(t.Context(), 200, false) {
			t.Errorf("%s: %v", body, err)
		}
		if _, err := x.Finish(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestManyTracks: a client that never sends back what it was answered begins a track with each request; what it has in
// memory and writes for each does not grow with all of them.
func TestManyTracks(t *testing.T) {
	r := newRig(t, proxy.Settings{Window: 12_000})
	history := []string{text("user", "q")}
	for n := range 60 {
		e := r.exchange(proxy.Page, request(history...), reply("end_turn", textBlock(fmt.Sprint("never seen ", n))))
		if err := tidemark.Check(e.messages(t, 0)); err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprint("c", n)
		history = append(history, said(call(id, "Read", fmt.Sprintf(`{"file_path":"f%d"}`, n))), result(id, strings.Repeat("line\n", 300)))
	}
	e := r.exchange(proxy.Page, request(history...), reply("end_turn", textBlock("end")))
	if e.stubs(t) < 40 {
		t.Errorf("%d stubs", e.stubs(t))
	}
	rows, err := r.db.Query(t.Context(), `SELECT coalesce(sum(length(payload)), 0) FROM entries WHERE kind = 'overlay' LIMIT 1`)
	if err != nil || rows[0].Int(0) > 100_000 {
		t.Errorf("%d bytes of overlays, %v", rows[0].Int(0), err)
	}
}

// TestSlowReader: who reads an export slowly keeps no client waiting.
func TestSlowReader(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	r.exchange(proxy.Page, request(text("user", "q")), reply("end_turn", textBlock("a")))
	for name, export := range map[string]func(context.Context, io.Writer) error{"steps": r.c.Steps, "decisions": r.c.Decisions} {
		n := 0
		w := writer(func(p []byte) (int, error) { // amid a write the client goes on
			n++
			r.exchange(proxy.Page, request(text("user", fmt.Sprint(name, n))), reply("end_turn", textBlock("b")))
			return len(p), nil
		})
		if err := export(t.Context(), w); err != nil || n == 0 {
			t.Errorf("%s: %d writes, %v", name, n, err)
		}
	}
}

// writer is a function that takes what is written.
type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }
