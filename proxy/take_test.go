package proxy_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/proxy"
)

// priced is an answer with what the provider reported of it.
func priced(in, out int, stop string, blocks ...string) []byte {
	return bytes.Replace(reply(stop, blocks...), []byte(`"input_tokens":100,"output_tokens":10`), fmt.Appendf(nil, `"input_tokens":%d,"output_tokens":%d`, in, out), 1)
}

// spoke is an answer as a client sends it back.
func spoke(s string) string { return said(textBlock(s)) }

// said is what a request added, as one line.
func (e exported) said() string {
	var out []string
	for _, m := range e.Append {
		out = append(out, m.PlainText())
	}
	return strings.Join(out, ",")
}

// told is what the requests of a branch added.
func (r *rig) told(branch string) string {
	r.t.Helper()
	var out []string
	for _, s := range r.steps(branch) {
		out = append(out, s.said())
	}
	return strings.Join(out, "|")
}

// TestTooBusy: of two equal requests the API does not take one and answers the other: the answer is of the same thread.
func TestTooBusy(t *testing.T) {
	for _, status := range []int{400, 429, 500, 529} {
		r := newRig(t, proxy.Settings{})
		x, y := r.begin(text("user", "q")), r.begin(text("user", "q"))
		r.refuse(y, status)
		r.answer(x, reply("end_turn", textBlock("a")))
		r.exchange(proxy.Page, request(text("user", "q"), spoke("a"), text("user", "b")), reply("end_turn", textBlock("c")))
		if got, want := logOf(r), "q|a|b|c"; got != want {
			t.Errorf("%d: the log has %q, want %q", status, got, want)
		}
		if got, want := r.told(""), "q|a,b"; got != want {
			t.Errorf("%d: the requests are %q, want %q", status, got, want)
		}
		same(t, r)
	}
}

// TestTakenBack: a request that the API refuses takes nothing back that another stands on, nor that went before it.
func TestTakenBack(t *testing.T) {
	q, a, b := text("user", "q"), spoke("a"), text("user", "b")
	begun := func() *rig {
		r := newRig(t, proxy.Settings{})
		r.exchange(proxy.Page, request(q), reply("end_turn", textBlock("a")))
		return r
	}
	t.Run("a request behind one that had no answer", func(t *testing.T) {
		r := begun()
		r.refuse(r.begin(q, a, b), 529)
		r.refuse(r.begin(q, a, b, text("user", "c")), 400)
		r.exchange(proxy.Page, request(q, a, text("user", "d")), reply("end_turn", textBlock("e")))
		if got, want := r.told("#t2"), "q|a,b|d"; got != want && got != "q|a,d" {
			t.Errorf("the thread is %q, want %q", got, want)
		}
		r.exchange(proxy.Page, request(q, a, b), reply("end_turn", textBlock("f")))
		if got, want := r.told(""), "q|a,b"; got != want {
			t.Errorf("the first is %q, want %q", got, want)
		}
		same(t, r)
	})
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("another stands on it, restart %t", restart), func(t *testing.T) {
			r := begun()
			x := r.begin(q, a, b)
			y := r.begin(q, a, b, text("user", "c"))
			z := r.begin(q, a, b, text("user", "d"))
			r.refuse(y, 400)
			r.refuse(x, 400)
			r.answer(z, reply("end_turn", textBlock("e")))
			if restart {
				r.restart()
			}
			r.exchange(proxy.Page, request(q, a, b, text("user", "d"), spoke("e"), text("user", "f")), reply("end_turn", textBlock("g")))
			if got, want := r.told("#t2"), "q|a,b|d|e,f"; got != want {
				t.Errorf("the thread is %q, want %q", got, want)
			}
			same(t, r)
		})
	}
}

// TestStandsOnUnanswered: a thread that begins behind a request without an answer has that request, also after a restart.
func TestStandsOnUnanswered(t *testing.T) {
	q, a, b := text("user", "q"), spoke("a"), text("user", "b")
	for _, status := range []int{429, 529} {
		r := newRig(t, proxy.Settings{})
		r.exchange(proxy.Page, request(q), reply("end_turn", textBlock("a")))
		r.refuse(r.begin(q, a, b), status)
		r.refuse(r.begin(q, a, b, text("user", "c")), status)
		r.exchange(proxy.Page, request(q, a, b, text("user", "d")), reply("end_turn", textBlock("e")))
		for range 2 {
			if got, want := r.told("#t2"), "q|a,b|d"; got != want {
				t.Errorf("%d: the thread is %q, want %q", status, got, want)
			}
			same(t, r)
			r.restart()
		}
	}
}

// TestBrokenOff: an answer that was broken off is no message of the history but an event, and the request may come again.
func TestBrokenOff(t *testing.T) {
	start := `data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":9,"output_tokens":1}}}` + "\n\n" +
		`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n" +
		`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"half of"}}` + "\n\n"
	ends := map[string]func(x *proxy.Exchange){
		"the API broke off": func(x *proxy.Exchange) { x.Broken(t.Context(), fmt.Errorf("reset")) },
		"the client left":   func(x *proxy.Exchange) { x.Broken(t.Context(), nil) },
		"it just ended": func(x *proxy.Exchange) {
			if x.Next(t.Context()) {
				t.Error("another call")
			}
			if _, err := x.Finish(t.Context()); err != nil {
				t.Error(err)
			}
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, proxy.Settings{})
			x, err := r.c.Begin(t.Context(), proxy.Ask{Body: bytes.Replace(request(text("user", "q")), []byte(`{"model"`), []byte(`{"stream":true,"model"`), 1)})
			if err != nil {
				t.Fatal(err)
			}
			if !x.Answer(t.Context(), 200, true) {
				t.Fatal("not taken")
			}
			if out, err := x.Feed([]byte(start)); err != nil || !bytes.Contains(out, []byte("half of")) {
				t.Fatalf("the client got %q, %v", out, err)
			}
			end(x)
			if !r.c.Idle() {
				t.Error("an exchange is in work")
			}
			if got, want := logOf(r), "q"; got != want {
				t.Errorf("the log has %q, want %q", got, want)
			}
			if list := r.events("cut"); len(list) != 1 || !bytes.Contains(list[0].Data, []byte("half of")) {
				t.Errorf("events: %+v", list)
			}
			r.restart()
			r.exchange(proxy.Page, request(text("user", "q")), reply("end_turn", textBlock("a")))
			r.exchange(proxy.Page, request(text("user", "q"), spoke("a"), text("user", "b")), reply("end_turn", textBlock("c")))
			if got, want := r.told(""), "q||a,b"; got != want { // who asks again asks once more
				t.Errorf("the requests are %q, want %q", got, want)
			}
			same(t, r)
		})
	}
}

// events are those of a type in the conversation's log.
func (r *rig) events(kind string) (out []tidemark.Event) {
	r.t.Helper()
	for e, err := range r.c.Home.Log().Walk(r.t.Context(), r.log(), 0) {
		if err != nil {
			r.t.Fatal(err)
		}
		var one tidemark.Event
		if e.Kind == tidemark.KindEvent && json.Unmarshal(e.Payload, &one) == nil && one.Type == kind {
			out = append(out, one)
		}
	}
	return out
}

// TestUsageOfStep: a request has the usage of its own first call, which is what its history came to, and the output of all;
// what another answer to it came to changes nothing.
func TestUsageOfStep(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	x, y := r.begin(text("user", "q")), r.begin(text("user", "q"))
	if !x.Answer(t.Context(), 200, false) {
		t.Fatal("not taken")
	}
	for i, a := range [][]byte{priced(1000, 7, "tool_use", call("p1", paging.FaultTool, `{"paths":["x"]}`)), priced(5000, 8, "end_turn", textBlock("a"))} {
		if _, err := x.Feed(a); err != nil {
			t.Fatal(err)
		}
		if x.Next(t.Context()) != (i == 0) {
			t.Fatal("calls")
		}
	}
	if _, err := x.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.answer(y, priced(3000, 9, "end_turn", textBlock("another")))
	for range 2 {
		if u := r.steps("")[0].Usage; u == nil || u.Input != 1000 || u.Output != 15 {
			t.Errorf("usage %+v", u)
		}
		r.restart()
	}
}

// TestEqualAtOnce: two equal answers to one request, at once, are one reply of one thread.
func TestEqualAtOnce(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	x, y := r.begin(text("user", "q")), r.begin(text("user", "q"))
	r.answer(x, reply("end_turn", textBlock("a")))
	r.answer(y, reply("end_turn", textBlock("a")))
	r.exchange(proxy.Page, request(text("user", "q"), spoke("a"), text("user", "b")), reply("end_turn", textBlock("c")))
	if got, want := logOf(r), "q|a|b|c"; got != want {
		t.Errorf("the log has %q, want %q", got, want)
	}
	same(t, r)
}

// TestTwoAtOnceEdits: what the second of two answers at once does by tags is of its own thread, which takes over what holds
// of the first.
func TestTwoAtOnceEdits(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	long := strings.Repeat("many words of the first turn ", 40)
	history := []string{text("user", long), spoke("one"), text("user", "second "+long), spoke("two"), text("user", "third")}
	r.exchange(proxy.Page, request(history[:1]...), reply("end_turn", textBlock("one")))
	r.exchange(proxy.Page, request(history[:3]...), reply("end_turn", textBlock("two")))
	x, y := r.begin(history...), r.begin(history...)
	r.answer(x, reply("end_turn", tagged("x", `collapse: turns 1-1 "summed by x"`)))
	r.answer(y, reply("end_turn", tagged("y", `summarize: block:`+handle(t, 0, history[:3]...)+` "summed by y"`, "release: y.go")))
	for range 2 {
		for name, want := range map[string]int{"x": 40, "y": 0} {
			e := r.exchange(proxy.Page, request(append(history[:5:5], spoke(name+"\n"), text("user", "on"))...), reply("end_turn", textBlock("ok "+name)))
			if !bytes.Contains(e.sent[0], []byte("summed by "+name)) || bytes.Count(e.sent[0], []byte(`many words`)) != want {
				t.Errorf("%s is sent as %s", name, e.sent[0])
			}
		}
		r.restart()
	}
	if list := r.steps("#t2"); len(list) == 0 || !strings.Contains(fmt.Sprint(list[len(list)-1].Release), "y.go") {
		t.Errorf("of the other: %+v", list)
	}
	same(t, r)
}

// TestConflict: what another writer stored is read anew, and then written behind.
func TestConflict(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	r.exchange(proxy.Page, request(text("user", "q")), reply("end_turn", textBlock("a")))
	old := r.c
	r.restart()
	history := []string{text("user", "q"), spoke("a"), text("user", "b"), spoke("c"), text("user", "d"), spoke("e"), text("user", "f")}
	r.exchange(proxy.Page, request(history[:3]...), reply("end_turn", textBlock("c")))
	r.c = old
	for _, n := range []int{5, 7} {
		e := r.exchange(proxy.Page, request(history[:n]...), reply("end_turn", textBlock([]string{5: "e", 7: "g"}[n])))
		if m := e.messages(t, 0); len(m) != n {
			t.Errorf("sent %s", e.sent[0])
		}
	}
	r.restart()
	if got, want := logOf(r), "q|a|b|c|d|e|f|g"; got != want {
		t.Errorf("the log has %q, want %q", got, want)
	}
}
