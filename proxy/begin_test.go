package proxy_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/proxy"
)

// offering is a request with these tools.
func offering(tools, more string, messages ...string) []byte {
	return []byte(`{"model":"m","max_tokens":100,"tools":[` + tools + `],"messages":[` + strings.Join(messages, ",") + `]` + more + `}`)
}

// longTool is a definition that is worth a stub.
func longTool(name string) string {
	return `{"name":"` + name + `","description":"Does it. ` + strings.Repeat("And more of that. ", 40) + `","input_schema":{"type":"object","properties":{"file_path":{"type":"string","description":"` +
		strings.Repeat("which ", 40) + `"}},"required":["file_path"]}}`
}

// TestOffers: our tools go with a request that has tools and lets the model choose, and where none of them has our name.
func TestOffers(t *testing.T) {
	look := `{"name":"look","input_schema":{"type":"object"}}`
	for name, row := range map[string]struct {
		body     []byte
		settings proxy.Settings
		want     bool
	}{
		"tools":                   {offering(look, "", text("user", "q")), proxy.Settings{}, true},
		"tools of its choice":     {offering(look, `,"tool_choice":{"type":"auto"}`, text("user", "q")), proxy.Settings{}, true},
		"no tools":                {offering("", "", text("user", "q")), proxy.Settings{}, false},
		"none is to be called":    {offering(look, `,"tool_choice":{"type":"none"}`, text("user", "q")), proxy.Settings{}, false},
		"one of the name":         {offering(look+`,{"name":"`+paging.FaultTool+`","input_schema":{"type":"object"}}`, "", text("user", "q")), proxy.Settings{}, false},
		"another of the name":     {offering(`{"name":"`+paging.ReleaseTool+`","input_schema":{"type":"object"}}`, "", text("user", "q")), proxy.Settings{}, false},
		"the model takes no part": {offering(look, "", text("user", "q")), proxy.Settings{Alone: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, row.settings)
			e := r.exchange(proxy.Page, row.body, reply("tool_use", call("c1", paging.FaultTool, `{}`), call("c2", "look", `{}`)))
			if got := bytes.Count(e.sent[0], []byte(`"description":"Read back what left`)) == 1; got != row.want {
				t.Errorf("offered %t: %s", got, e.sent[0])
			}
			if got := !bytes.Contains(e.got, []byte(`"c1"`)); got != row.want {
				t.Errorf("the client got %s", e.got)
			}
		})
	}
}

// trimRun reads one file after another with long definitions, and tells of each request whether that of its tool was whole,
// and how many pages left with it.
func trimRun(t *testing.T, r *rig, treatment string, n int) (whole []bool, left []int, history []string) {
	t.Helper()
	tools := longTool("Read") + "," + longTool("Write")
	history = []string{text("user", "look around")}
	for i := range n {
		id, file := fmt.Sprint("c", i), fmt.Sprintf("f%d.go", i)
		body := offering(tools, "", history...)
		x, err := r.c.Begin(t.Context(), proxy.Ask{Body: body, Treatment: treatment, Count: true})
		if err != nil {
			t.Fatal(err)
		}
		read := call(id, "Read", `{"file_path":"`+file+`"}`)
		before := r.evicted(i)
		e := r.exchange(treatment, body, reply("tool_use", read))
		if !bytes.Equal(x.Body(), e.sent[0]) {
			t.Fatalf("request %d: counted\n%s\nsent\n%s", i, x.Body(), e.sent[0])
		}
		if bytes.Contains(e.sent[0], []byte(longTool("Write"))) {
			t.Fatalf("request %d: a tool that was never called is whole", i)
		}
		whole, left = append(whole, bytes.Contains(e.sent[0], []byte(longTool("Read")))), append(left, r.evicted(i+1)-before)
		history = append(history, said(read), result(id, strings.Repeat(file+" holds this line\n", 100)))
		if i%3 == 2 {
			r.restart()
		}
	}
	return whole, left, history
}

// evicted is how many pages left of the first track, after so many calls.
func (r *rig) evicted(calls int) int {
	if calls == 0 {
		return 0
	}
	return r.totals().Evicted + r.totals().Collected
}

// TestDefinitionsComeBack: the definition of a tool that was called is whole from the next request on whose prefix changes
// anyway, and not before; a count says what would be sent.
func TestDefinitionsComeBack(t *testing.T) {
	whole, left, history := trimRun(t, newRig(t, proxy.Settings{Window: 20_000}), proxy.PageTrim, 20)
	broke := false
	for i := range whole {
		broke = broke || left[i] > 0
		if whole[i] != broke {
			t.Errorf("request %d: whole %t; %v left", i, whole[i], left[:i+1])
		}
	}
	if !broke || !whole[len(whole)-1] || whole[1] {
		t.Errorf("whole %v", whole)
	}
	r := newRig(t, proxy.Settings{Window: 200_000})
	e := r.exchange(proxy.PageTrim, offering(longTool("Read"), "", history...), reply("end_turn", textBlock("ok")))
	if !bytes.Contains(e.sent[0], []byte(longTool("Read"))) {
		t.Error("the first request of a history with calls has only a stub of what it calls")
	}
}

// TestCountOfFork: the size that is asked for is that of what would be sent, also where a request leaves a thread in its
// middle that went on meanwhile.
func TestCountOfFork(t *testing.T) {
	for _, refused := range []bool{false, true} {
		r := newRig(t, proxy.Settings{Window: 20_000})
		a := &agentRun{r: r, name: "main"}
		a.ask("look around")
		for n := range 8 {
			a.read(n, 3000)
		}
		other := append(a.history[:len(a.history)-2:len(a.history)-2], text("user", "instead"))
		if refused {
			r.refuse(r.begin(other...), 400)
		}
		for n := 8; n < 18; n++ {
			a.read(n, 3000)
		}
		if a.stubs == 0 {
			t.Fatal("nothing left")
		}
		for range 2 {
			x, err := r.c.Begin(t.Context(), proxy.Ask{Body: request(other...), Count: true})
			if err != nil {
				t.Fatal(err)
			}
			e := r.exchange(proxy.Page, request(other...), reply("end_turn", textBlock("ok")))
			if !bytes.Equal(x.Body(), e.sent[0]) {
				t.Errorf("refused %t: counted\n%s\nsent\n%s", refused, x.Body(), e.sent[0])
			}
			other = append(other, spoke("ok"), text("user", "on"))
		}
	}
}

// TestCountOfReleased: what the model let go counts as gone where it would be.
func TestCountOfReleased(t *testing.T) {
	r := newRig(t, proxy.Settings{Window: 20_000})
	history := []string{text("user", "look around")}
	stubs := 0
	for i := range 24 {
		x, err := r.c.Begin(t.Context(), proxy.Ask{Body: request(history...), Count: true})
		if err != nil {
			t.Fatal(err)
		}
		id, file := fmt.Sprint("c", i), fmt.Sprintf("f%d.go", i)
		read := call(id, "Read", `{"file_path":"`+file+`"}`)
		e := r.exchange(proxy.Page, request(history...), reply("tool_use", tagged("so", fmt.Sprintf("release: f%d.go", i-1)), read))
		if !bytes.Equal(x.Body(), e.sent[0]) {
			t.Fatalf("request %d: counted\n%s\nsent\n%s", i, x.Body(), e.sent[0])
		}
		stubs = max(stubs, e.stubs(t))
		history = append(history, said(textBlock("so\n"), read), result(id, strings.Repeat(file+" holds this line\n", 100)))
	}
	if stubs == 0 {
		t.Error("nothing left")
	}
}

// TestAdvice: the model is told of its memory when that is filling, where it takes part, and behind all else.
func TestAdvice(t *testing.T) {
	for name, row := range map[string]struct {
		words int
		alone bool
		told  bool
	}{
		"empty":             {100, false, false},
		"filling":           {14_000, false, true},
		"it takes no part":  {14_000, true, false},
		"empty, it neither": {100, true, false},
	} {
		r := newRig(t, proxy.Settings{Window: 20_000, Alone: row.alone})
		history := []string{text("user", strings.Repeat("one ", row.words)), spoke("a"), text("user", "b")}
		r.exchange(proxy.Page, request(history[:1]...), reply("end_turn", textBlock("a")))
		e := r.exchange(proxy.Page, request(history...), reply("end_turn", textBlock("c")))
		m := e.messages(t, 0)
		last := m[2].Content
		if told := len(last) == 2 && strings.Contains(last[1].Text, "<memory_cleanup>"); told != row.told || !told && len(last) != 1 || last[0].Text != "b" {
			t.Errorf("%s: the last message is %s", name, m[2].AppendJSON(nil))
		}
	}
}

// rightStubs looks whether each stub names the file that its call read.
func rightStubs(t *testing.T, e exchanged) (n int) {
	t.Helper()
	files := map[string]string{}
	for _, m := range e.messages(t, 0) {
		for _, b := range m.Content {
			switch {
			case b.Type == tidemark.TypeToolUse:
				_, file, _ := strings.Cut(string(b.Input), `"file_path":"`)
				files[b.ID], _, _ = strings.Cut(file, `"`)
			case b.Type == tidemark.TypeToolResult && strings.HasPrefix(b.Content[0].Text, "[Paged out:"):
				n++
				if !strings.Contains(b.Content[0].Text, files[b.ToolUseID]) {
					t.Errorf("the result of %s is sent as %s", files[b.ToolUseID], b.Content[0].Text)
				}
			}
		}
	}
	return n
}

// TestRewindGoesOn: what leaves of a thread that began in the middle of another is its own, and each stub stands for what
// it says.
func TestRewindGoesOn(t *testing.T) {
	for name, instead := range map[string][]string{"another question": {text("user", "instead")}, "another answer": nil} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, proxy.Settings{Window: 20_000})
			a := &agentRun{r: r, name: "main"}
			a.ask("look around")
			for n := range 14 {
				a.read(n, 3000)
			}
			b := &agentRun{r: r, name: "other", history: append(a.history[:len(a.history)-10:len(a.history)-10], instead...)}
			for n := range 16 {
				b.read(n, 3000)
				if n == 8 {
					r.restart()
				}
			}
			e := r.exchange(proxy.Page, request(b.history...), reply("end_turn", textBlock("ok")))
			if n := rightStubs(t, e); n < 10 {
				t.Errorf("%d stubs", n)
			}
			if got, want := len(r.steps("#t2")), 14+17; got != want {
				t.Errorf("%d requests, want %d", got, want)
			}
			same(t, r)
		})
	}
}

// TestFormOfStub: a stub has what the block has that it stands for in this request, and is what it was where that is.
func TestFormOfStub(t *testing.T) {
	r := newRig(t, proxy.Settings{Window: 20_000})
	a := &agentRun{r: r, name: "main"}
	a.ask("look around")
	for n := range 14 {
		a.read(n, 3000)
	}
	send := func(history []string) []byte {
		e := r.exchange(proxy.Page, request(history...), reply("end_turn", textBlock("ok")))
		if n := e.stubs(t); n == 0 {
			t.Fatal("nothing left")
		}
		return e.sent[0]
	}
	told := append([]string(nil), a.history...)
	for i := range told {
		told[i] = strings.Replace(told[i], `{"type":"tool_result",`, `{"type":"tool_result","is_error":false,`, 1)
	}
	first := send(a.history)
	if n := bytes.Count(send(told), []byte(`"is_error":false`)); n != 14 {
		t.Errorf("%d of 14 results say that they are no errors", n)
	}
	if again := send(a.history); !bytes.Equal(again, first) {
		t.Errorf("sent\n%s\nbefore\n%s", again, first)
	}
}

// TestOwnResultLeaves: what we gave back to the model leaves again like any other result, behind a stub.
func TestOwnResultLeaves(t *testing.T) {
	r := newRig(t, proxy.Settings{Window: 20_000})
	a := &agentRun{r: r, name: "main"}
	a.ask("look around")
	for n := range 14 {
		a.read(n, 3000)
	}
	if a.stubs == 0 {
		t.Fatal("nothing left")
	}
	c := call("again", "Read", `{"file_path":"x.go"}`)
	r.exchange(proxy.Page, request(a.history...), reply("tool_use", call("p1", paging.FaultTool, `{"paths":["main/f0.go"]}`), c))
	a.history = append(a.history, said(c), result("again", "short"))
	named := handle(t, 1, a.history...)
	own := func(e exchanged) string {
		for _, m := range e.messages(t, 0) {
			for _, b := range m.Content {
				if b.Type == tidemark.TypeToolResult && b.ToolUseID == "p1" {
					return string(b.AppendJSON(nil))
				}
			}
		}
		t.Fatal("our result is gone")
		return ""
	}
	e := r.exchange(proxy.Page, request(a.history...), reply("end_turn", tagged("I have it", "release: main/f0.go, block:"+named)))
	if !strings.Contains(own(e), "main/f0.go holds this line") {
		t.Fatalf("sent %s", own(e))
	}
	a.history = append(a.history, spoke("I have it\n"), text("user", "on"))
	for n := 20; n < 40; n++ {
		a.read(n, 3000)
		if n == 30 {
			r.restart()
		}
	}
	e = r.exchange(proxy.Page, request(a.history...), reply("end_turn", textBlock("ok")))
	if got := own(e); strings.Contains(got, "main/f0.go holds this line") || !strings.Contains(got, named) {
		t.Errorf("%s is sent as %s", named, got)
	}
	same(t, r)
	if back := r.fault(a.history, named); back.IsError || !strings.Contains(fmt.Sprint(textsOf(back)), "main/f0.go holds this line") {
		t.Errorf("%s gives back %s", named, back.AppendJSON(nil))
	}
}
