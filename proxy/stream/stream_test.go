package stream

import (
	"bytes"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cleanup"
	"github.com/tidemark-ai/tidemark/internal/json"
)

const tags = "<memory_cleanup>\ndrop: block:ABCDEFGHIJKLMNOP#0\n</memory_cleanup>\n"

// cases are the ways in which calls of ours come.
func cases() map[string][]answer {
	one := [2]int{10, 5}
	fault := call("p1", "memory_fault", `{"paths":["a.go"]}`)
	release := call("p2", "memory_release", `{"paths":["b.go"]}`)
	look := call("c1", "look", `{"place":"Paris","n":1.50}`)
	now := call("c2", "now", `{}`)
	return map[string][]answer{
		"none":           {{[]said{think("Hm."), textOf("Hello\n  there <b>"), look}, "tool_use", one}},
		"only":           {{[]said{think("Hm."), textOf("Let me see."), fault}, "tool_use", one}, {[]said{textOf("It is so.")}, "end_turn", one}},
		"only, silent":   {{[]said{fault}, "tool_use", one}, {[]said{textOf("It is so.")}, "end_turn", one}},
		"mixed":          {{[]said{think("Hm."), textOf("Both."), fault, look, release, now}, "tool_use", one}},
		"several":        {{[]said{fault, release}, "tool_use", one}, {[]said{textOf("Done."), look}, "tool_use", one}},
		"nested":         {{[]said{textOf("One."), fault}, "tool_use", one}, {[]said{think("More."), release}, "tool_use", one}, {[]said{textOf("Two."), call("p3", "memory_fault", `{}`), look}, "tool_use", one}},
		"tags":           {{[]said{textOf("Before.\n" + tags + "After."), look}, "tool_use", one}},
		"tags only":      {{[]said{think("Hm."), textOf("\n" + tags), look}, "tool_use", one}},
		"tags and calls": {{[]said{textOf(tags), fault}, "tool_use", one}, {[]said{textOf("Ok.\n" + tags)}, "end_turn", one}},
		"nothing more":   {{[]said{textOf("Let go."), release}, "tool_use", one}, {nil, "end_turn", one}},
		"nothing at all": {{[]said{fault}, "tool_use", one}, {nil, "end_turn", one}},
		"only thoughts":  {{[]said{think("Hm."), fault}, "tool_use", one}, {[]said{think("So.")}, "end_turn", one}},
		"tags, no text":  {{[]said{textOf(tags)}, "end_turn", one}},
		"cut, no text":   {{[]said{fault}, "max_tokens", one}},
		"cut short":      {{[]said{textOf("A"), fault}, "max_tokens", one}},
	}
}

// chains compares two messages by identity.
func same(a, b tidemark.Message) bool { return tidemark.Chain("", a) == tidemark.Chain("", b) }

func figure(v any) int {
	n, _ := v.(float64)
	return int(n)
}

func TestCases(t *testing.T) {
	for name, legs := range cases() {
		for _, d := range []Dialect{Messages, Chat} {
			for _, stream := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/%d/%v", name, d, stream), func(t *testing.T) {
					out, turn := run(t, Options{Dialect: d, Phantom: ours, Tags: true, Stream: stream}, bodies(d, stream, wire{eol: "\n", piece: 5}, legs), atOnce)
					c := read(t, d, stream, out)
					m, ops := want(d, legs)
					if !same(c.message, m) {
						t.Errorf("client sees %s\nwant %s", c.message.AppendJSON(nil), m.AppendJSON(nil))
					}
					if !same(turn.Seen, c.message) {
						t.Errorf("Seen %s\nclient sees %s", turn.Seen.AppendJSON(nil), c.message.AppendJSON(nil))
					}
					if strings.Contains(out, "memory_") {
						t.Errorf("the client sees something of ours: %s", out)
					}
					if !reflect.DeepEqual(turn.Ops, ops) {
						t.Errorf("operations %v, want %v", turn.Ops, ops)
					}
					last := legs[len(legs)-1].stop
					if !c.ended || !turn.Whole || turn.Stop != last {
						t.Errorf("ended %v, whole %v, stop %q", c.ended, turn.Whole, turn.Stop)
					}
					n := len(legs)
					if d == Messages && (c.stop != last || figure(c.usage["input_tokens"]) != 10*n || figure(c.usage["output_tokens"]) != 5*n || figure(c.usage["odd_tokens"]) != n ||
						figure(c.usage["cache_read_input_tokens"]) != 3*n || figure(c.usage["cache_creation"].(map[string]any)["ephemeral_5m_input_tokens"]) != 2*n || c.usage["service_tier"] != "standard") {
						t.Errorf("stop %q, usage %v", c.stop, c.usage)
					}
					if d == Chat && (figure(c.usage["prompt_tokens"]) != 10*n || figure(c.usage["total_tokens"]) != 15*n || figure(c.usage["prompt_tokens_details"].(map[string]any)["cached_tokens"]) != n || c.usage["cost"] != 0.5*float64(n)) {
						t.Errorf("usage %v", c.usage)
					}
					if turn.Usage.Output != tidemark.Tokens(5*n) || len(turn.Legs) != n {
						t.Errorf("usage %+v of %d legs", turn.Usage, len(turn.Legs))
					}
				})
			}
		}
	}
}

// TestPlaces holds what is noted of calls of ours: put back, the turn is again what the model made.
func TestPlaces(t *testing.T) {
	rows := map[string][2]string{ // Visible Thinking Offset calls blocks split, for both dialects
		"only":           {"2 0 0 p1 0 true", "0 0 11 p1 0 true"},
		"only, silent":   {"0 0 0 p1 0 true", "0 0 0 p1 0 true"},
		"mixed":          {"1 0 0 p1 0 false|2 0 0 p2 0 false", "1 0 0 p1 0 false|2 0 0 p2 0 false"},
		"several":        {"0 0 0 p1 p2 0 true", "0 0 0 p1 p2 0 true"},
		"nested":         {"1 0 0 p1 0 true|1 1 0 p2 0 true|2 0 0 p3 0 false", "0 0 4 p1 0 true|0 0 4 p2 0 true|1 0 0 p3 0 false"},
		"tags only":      {"0 1 0  1 false", "1 0 0  0 false"},
		"tags and calls": {"0 0 0 p1 1 true", "0 0 0 p1 1 true"},
		"nothing more":   {"1 0 0 p2 0 true", "1 0 0 p2 0 true"},
		"nothing at all": {"0 0 0 p1 0 true", "0 0 0 p1 0 true"},
		"only thoughts":  {"0 1 0 p1 0 true", "0 0 0 p1 0 true"},
		"cut, no text":   {"1 0 0 p1 0 false", "1 0 0 p1 0 false"},
	}
	rows["only"] = [2]string{"1 0 0 p1 0 true", rows["only"][1]}
	rows["tags only"] = [2]string{"0 1 0  1 false", ""}
	for name, row := range rows {
		for _, d := range []Dialect{Messages, Chat} {
			_, turn := run(t, Options{Dialect: d, Phantom: ours, Tags: true, Stream: true}, bodies(d, true, wire{eol: "\n", piece: 9}, cases()[name]), atOnce)
			var got []string
			for _, p := range turn.Places {
				var ids []string
				for _, c := range p.Calls {
					ids = append(ids, c.ID)
				}
				got = append(got, fmt.Sprintf("%d %d %d %s %d %v", p.Visible, p.Thinking, p.Offset, strings.Join(ids, " "), len(p.Blocks), p.Split))
			}
			if s := strings.Join(got, "|"); s != row[d] {
				t.Errorf("%s, dialect %d: %q, want %q", name, d, s, row[d])
			}
		}
	}
}

// TestLegMessage proves that a leg can be sent again: thinking, signatures, input and tags as they came.
func TestLegMessage(t *testing.T) {
	blocks := []said{think("Let me \"think\"…\n"), {typ: "redacted_thinking", text: "xyz"}, textOf("\n\n"), textOf("A\n" + tags), call("p1", "memory_fault", `{"b":1.0,"a":[1,  2]}`)}
	for _, stream := range []bool{true, false} {
		_, turn := run(t, Options{Phantom: ours, Tags: true, Stream: stream}, bodies(Messages, stream, wire{eol: "\n", piece: 4}, []answer{{blocks, "tool_use", [2]int{1, 1}}}), atOnce)
		if m := turn.Legs[0].Model; m != "m" {
			t.Errorf("stream %v: model %q", stream, m)
		}
		got := string(turn.Legs[0].Message.AppendJSON(nil))
		want := `{"role":"assistant","content":[{"type":"thinking","thinking":"Let me \"think\"…\n","signature":"sig/0"},{"type":"redacted_thinking","data":"xyz"},{"type":"text","text":` + str("A\n"+tags) + `},{"type":"tool_use","id":"p1","name":"memory_fault","input":{"b":1.0,"a":[1,  2]}}]}`
		if got != want {
			t.Errorf("stream %v: %s\nwant %s", stream, got, want)
		}
	}
}

// TestUntouched proves that an answer from which nothing is taken passes byte for byte, with the filter on.
func TestUntouched(t *testing.T) {
	a := answer{[]said{think("Hm."), textOf("\n\nHello\n   <b> <memory <memory_cle x\n  \n```\n<memory_cleanup>\n```\n"), {typ: "server_tool_use", input: `{"q":1}`}, call("c", "look", `{"a":1}`)}, "tool_use", [2]int{1, 2}}
	text := func(index int, s string) string {
		return fmt.Sprintf("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":%d,\"delta\":{\"type\":\"text_delta\",\"text\":%s}}\n\n", index, str(s))
	}
	rows := map[string]string{
		"empty":           "",
		"other order":     "data: {\"index\":0,\"content_block\":{\"text\":\"\",\"type\":\"text\"},\"type\":\"content_block_start\"}\n\ndata: {\"delta\":{\"text\":\"\\u00e9\\/\",\"type\":\"text_delta\"},\"new\":[1.0],\"index\":0,\"type\":\"content_block_delta\"}\n\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
		"several lines":   "event: content_block_start\ndata: {\"type\":\"content_block_start\",\ndata: \"index\":0,\ndata:\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\nid: 7\n\n" + text(0, "x") + "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
		"an empty block":  "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n" + text(0, "") + "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
		"blank block":     "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n" + text(0, "\n") + text(0, " \n") + "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
		"unknown":         "\ufeffevent: brand_new\ndata: not json\nretry: 3\n\n: note\n\n\n\nevent: x\n\ndata\n\n" + "data: {\"type\":\"content_block_delta\",\"index\":9,\"delta\":{}}\n\ndata: [1,2]\n\n",
		"error":           "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
		"no empty line":   "data: {\"type\":\"message_stop\"}\n",
		"not even a line": "data: {\"type\":\"message_stop\"}",
		"no stream":       "{\"error\":\n\"x\"}",
		"words at once":   "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"Hi.\",\"citations\":null}}\n\n" + text(0, " you") + "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"citations_delta\",\"citation\":{\"a\":1}}}\n\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
	}
	for _, eol := range []string{"\n", "\r\n", "\r"} {
		for name, s := range rows {
			in := strings.ReplaceAll(s, "\n", eol)
			out, _ := run(t, Options{Phantom: ours, Tags: true, Stream: true}, [][]byte{[]byte(in)}, func() int { return 1 })
			if out != in {
				t.Errorf("%s, %q: %q\nwant %q", name, eol, out, in)
			}
		}
		for _, piece := range []int{1, 2, 3, 7, 100} {
			w := wire{eol: eol, piece: piece, pings: true}
			for _, in := range []string{string(w.messages(a, "i")), string(w.chat(a, "i"))} {
				d := Messages
				if !strings.Contains(in, "message_start") {
					d = Chat
				}
				out, turn := run(t, Options{Dialect: d, Phantom: ours, Tags: true, Stream: true}, [][]byte{[]byte(in)}, func() int { return 3 })
				if out != in || !turn.Whole {
					t.Errorf("eol %q, pieces of %d, dialect %d:\n%q\nwant\n%q", eol, piece, d, out, in)
				}
			}
		}
	}
	for _, in := range []string{string(a.whole(Messages, "i")), string(a.whole(Chat, "i")), ` { "odd" : 1 }`, "no json", `{"error":{"type":"x"}}`} {
		for _, d := range []Dialect{Messages, Chat} {
			if out, _ := run(t, Options{Dialect: d, Phantom: ours, Tags: true}, [][]byte{[]byte(in)}, func() int { return 9 }); out != in {
				t.Errorf("%s\nwant %s", out, in)
			}
		}
	}
}

// TestSeveralChoices: of what is not looked into everything passes.
func TestSeveralChoices(t *testing.T) {
	in := `data: {"id":"a","choices":[{"index":1,"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"memory_fault","arguments":"{}"}}]}}]}` + "\r\n\r\ndata: [DONE]\r\n\r\n"
	out, turn := run(t, Options{Dialect: Chat, Phantom: ours, Tags: true, Stream: true}, [][]byte{[]byte(in)}, func() int { return 1 })
	if out != in || turn.Whole {
		t.Errorf("%q, whole %v", out, turn.Whole)
	}
}

// TestNoContinuation: where calls of ours end the turn and no leg follows, the client is told that it ended.
func TestNoContinuation(t *testing.T) {
	for _, name := range []string{"only", "only, silent"} {
		for i := range 4 {
			legs, d, stream := cases()[name][:1], Dialect(i&1), i > 1
			out, turn := run(t, Options{Dialect: d, Phantom: ours, Stream: stream}, bodies(d, stream, wire{eol: "\n", piece: 5}, legs), atOnce)
			c := read(t, d, stream, out)
			if m, _ := want(d, legs); !same(c.message, m) || !same(turn.Seen, m) {
				t.Errorf("client sees %s\nSeen %s\nwant %s", c.message.AppendJSON(nil), turn.Seen.AppendJSON(nil), m.AppendJSON(nil))
			}
			if stop := [...]string{"end_turn", "stop"}[d]; c.stop != stop || turn.Stop != stopEnd || !c.ended {
				t.Errorf("dialect %d, stream %v: stop %q, turn %q, ended %v\n%s", d, stream, c.stop, turn.Stop, c.ended, out)
			}
		}
	}
}

// TestBreak: an error in between has no other end, and is read as one.
func TestBreak(t *testing.T) {
	for _, d := range []Dialect{Messages, Chat} {
		body := bodies(d, true, wire{eol: "\n", piece: 5}, cases()["only"][:1])[0]
		f := New(Options{Dialect: d, Phantom: ours, Tags: true, Stream: true})
		out, err := f.Feed(body)
		if err != nil {
			t.Fatal(err)
		}
		all := string(out)
		f.Next()
		if out, err = f.Feed(body[:len(body)/2]); err != nil {
			t.Fatal(err)
		}
		all += string(out)
		all += string(f.Break("api_error", "the \"line\" broke"))
		if rest, turn := f.Finish(); len(rest) > 0 || turn.Whole {
			t.Errorf("%q behind an error, whole %v", rest, turn.Whole)
		}
		if c := read(t, d, true, all); c.errors != 1 || c.ended {
			t.Errorf("dialect %d: %+v\n%s", d, c, all)
		}
		f = New(Options{Dialect: d})
		var e struct {
			Error struct{ Type, Message string }
		}
		if err := json.Unmarshal(f.Break("api_error", "no"), &e); err != nil || e.Error.Type != "api_error" || e.Error.Message != "no" {
			t.Errorf("%+v, %v", e, err)
		}
	}
}

// TestCut: a stream that ends anywhere gives what there was, and no end of our making.
func TestCut(t *testing.T) {
	for name, legs := range cases() {
		for _, d := range []Dialect{Messages, Chat} {
			all := bodies(d, true, wire{eol: "\r\n", piece: 6, pings: true}, legs)
			last, step := all[len(all)-1], 1
			if runtime.GOOS == "js" || testing.Short() {
				step = 17
			}
			for n := 0; n < len(last); n += step {
				cut := append(append([][]byte(nil), all[:len(all)-1]...), last[:n])
				out, turn := run(t, Options{Dialect: d, Phantom: ours, Tags: true, Stream: true}, cut, func() int { return 1 << 20 })
				c := read(t, d, true, out)
				end := [...]string{`{"type":"message_stop"}`, "[DONE]"}[d]
				if c.ended && !bytes.Contains(last[:n], []byte(end)) {
					t.Fatalf("%s, dialect %d: an end of our making after %d bytes: %s", name, d, n, out)
				}
				if reason := [...]string{`"stop_reason":"`, `"finish_reason":"`}[d]; turn.Whole && !bytes.Contains(last[:n], []byte(reason)) {
					t.Fatalf("%s, dialect %d: whole after %d bytes", name, d, n)
				}
				if len(turn.Seen.Content) > 0 && c.ended && !same(turn.Seen, c.message) {
					t.Fatalf("%s, dialect %d, %d bytes: Seen %s, client %s", name, d, n, turn.Seen.AppendJSON(nil), c.message.AppendJSON(nil))
				}
			}
		}
	}
}

// want is what the client is to see, by the rules alone.
func want(d Dialect, legs []answer) (m tidemark.Message, ops []cleanup.Op) {
	m.Role = tidemark.Assistant
	words, took := "", false
	var calls []tidemark.Block
	for _, a := range legs {
		leg := ""
		for i, s := range a.blocks {
			switch {
			case s.typ == "text" && d == Chat:
				leg += s.text
			case s.typ == "text":
				v, o := stripped(s.text)
				ops, took = append(ops, o...), took || v != s.text
				if strings.TrimSpace(v) != "" || v == s.text {
					m.Content = append(m.Content, tidemark.Text(v))
				}
			case s.typ == "tool_use" && !ours(s.name):
				calls = append(calls, tidemark.ToolUse(s.id, s.name, json.RawMessage(s.input)))
				if d == Messages {
					m.Content = append(m.Content, calls[len(calls)-1])
				}
			case s.typ == "tool_use":
				took = true
			case s.typ == "thinking" && d == Messages:
				m.Content = append(m.Content, tidemark.Block{Type: "thinking", Text: s.text, Signature: fmt.Sprintf("sig/%d", i)})
			}
		}
		v, o := stripped(leg)
		ops, took = append(ops, o...), took || v != leg
		if words != "" && v != "" && !strings.HasSuffix(words, "\n") && v[0] != '\n' {
			words += between
		}
		words += v
	}
	if d == Chat && words != "" {
		m.Content = append([]tidemark.Block{tidemark.Text(words)}, calls...)
	} else if d == Chat {
		m.Content = calls
	}
	if n := len(m.Content); took && (n == 0 || m.Content[n-1].Type == "thinking") {
		m.Content = append(m.Content, tidemark.Text(unsaid))
	}
	return m, ops
}

// stripped parts a whole text.
func stripped(text string) (visible string, ops []cleanup.Op) {
	var f cleanup.Filter
	visible = f.Push(text)
	visible += f.End()
	return visible, f.Ops()
}
