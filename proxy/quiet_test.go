package proxy_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/proxy"
	"github.com/tidemark-ai/tidemark/proxy/body"
)

const legs = 8 // of one request at most

// TestOnlyMarks: a model that does nothing but mark episodes, and then ends its turn without a word or goes on marking, leaves
// neither its client nor the API an empty message.
func TestOnlyMarks(t *testing.T) {
	for _, d := range []body.Dialect{body.Messages, body.Chat} {
		for _, streams := range []bool{false, true} {
			for _, marks := range []int{1, legs - 1, legs} {
				t.Run(fmt.Sprint(d, streams, marks), func(t *testing.T) {
					q := &quiet{t: t, r: newRig(t, episodic()), d: d, streams: streams}
					if got := q.ask(marks, text("user", "begin")); got != "(no content)" {
						t.Fatalf("the client got %q", got)
					}
					q.r.restart()
					q.ask(1, text("user", "begin"), text("assistant", "(no content)"), text("user", "go on"))
				})
			}
		}
	}
}

// quiet is a model that only marks.
type quiet struct {
	t       *testing.T
	r       *rig
	d       body.Dialect
	streams bool
	n       int
}

// ask sends a history, which is answered with so many marks, and returns the text that the client got.
func (q *quiet) ask(marks int, history ...string) string {
	q.t.Helper()
	ctx := q.t.Context()
	raw := request(history...)
	if q.d == body.Chat {
		raw = []byte(`{"model":"m","user":"u","tools":[{"type":"function","function":{"name":"Read","parameters":{"type":"object"}}}],"messages":[` + strings.Join(history, ",") + `]}`)
	}
	if q.streams {
		raw = append(raw[:len(raw)-1], `,"stream":true}`...)
	}
	x, err := q.r.c.Begin(ctx, proxy.Ask{Dialect: q.d, Body: raw})
	if err != nil {
		q.t.Fatal(err)
	}
	var got []byte
	for leg, again := 0, true; again; leg++ {
		q.full(x.Body())
		if leg == 0 && !x.Answer(ctx, 200, q.streams) {
			q.t.Fatal("the answer is not taken")
		}
		out, err := x.Feed(q.answer(leg < marks))
		if err != nil {
			q.t.Fatal(err)
		}
		got = append(got, out...)
		if again = x.Next(ctx); again != (leg < min(marks, legs-1)) {
			q.t.Fatalf("leg %d: another one is %t", leg, again)
		}
	}
	out, err := x.Finish(ctx)
	if err != nil {
		q.t.Fatal(err)
	}
	return q.words(append(got, out...))
}

// full holds that no message of a request is empty.
func (q *quiet) full(sent []byte) {
	q.t.Helper()
	r, err := body.Scan(q.d, sent)
	if err != nil {
		q.t.Fatal(err)
	}
	var list []tidemark.Message
	for _, it := range r.Items {
		var m tidemark.Message
		if err := json.Unmarshal(it.Raw, &m); err != nil {
			q.t.Fatal(err)
		}
		list = append(list, m)
	}
	if err := tidemark.Check(list); err != nil || bytes.Contains(sent, []byte(`"content":[]`)) || bytes.Contains(sent, []byte(`"content":null}`)) {
		q.t.Fatalf("%v: %s", err, sent)
	}
}

// answer is a call of the tool of episodes, or the end of the turn.
func (q *quiet) answer(marks bool) []byte {
	q.n++
	id, args := fmt.Sprint("p", q.n), fmt.Sprintf(`{"action":"start","name":"part %d","type":"expl"}`, q.n)
	stop, blocks := "end_turn", []string(nil)
	if marks {
		stop, blocks = "tool_use", []string{call(id, "delimiter", args)}
	}
	switch {
	case q.d == body.Messages && !q.streams:
		return reply(stop, blocks...)
	case q.d == body.Messages:
		out := "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"model\":\"m\",\"usage\":{\"input_tokens\":1}}}\n\n"
		if marks {
			out += "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":" + blocks[0] + "}\n\nevent: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
		}
		return []byte(out + "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"" + stop + "\"},\"usage\":{\"output_tokens\":1}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
	}
	message, reason := `{"role":"assistant","content":null}`, "stop"
	if marks {
		message, reason = fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":%q,"type":"function","function":{"name":"delimiter","arguments":%q}}]}`, id, args), "tool_calls"
	}
	if !q.streams {
		return fmt.Appendf(nil, `{"id":"m","choices":[{"index":0,"message":%s,"finish_reason":%q}]}`, message, reason)
	}
	return fmt.Appendf(nil, "data: {\"id\":\"m\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":null}]}\n\ndata: {\"id\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}]}\n\ndata: [DONE]\n\n", message, reason)
}

// words is the text of an answer.
func (q *quiet) words(got []byte) (out string) {
	type said struct{ Content json.RawMessage }
	for line := range strings.Lines(string(got)) {
		var a struct {
			said
			Delta   struct{ Text string }
			Choices []struct{ Message, Delta said }
		}
		if json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &a) != nil {
			continue
		}
		out += a.Delta.Text
		texts := []json.RawMessage{a.Content}
		for _, c := range a.Choices {
			texts = append(texts, c.Message.Content, c.Delta.Content)
		}
		for _, raw := range texts {
			var s string
			var blocks []tidemark.Block
			if json.Unmarshal(raw, &s) == nil {
				out += s
			} else if json.Unmarshal(raw, &blocks) == nil {
				for _, b := range blocks {
					out += b.Text
				}
			}
		}
	}
	return out
}
