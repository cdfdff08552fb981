//go:build !js

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// foreign is a log of another tool: a reply over two lines with a result between them, a line that is
// no JSON, types that are no messages.
const foreign = `{"type":"summary","summary":"x"}
{"type":"user","uuid":"1","timestamp":"2026-11-01T10:00:00Z","message":{"role":"user","content":"read two files"}}
{"type":"assistant","uuid":"2","parentUuid":"1","message":{"id":"m1","role":"assistant","model":"claude","content":[{"type":"tool_use","id":"t1","name":"Read","input":{"p":1.0}}]}}
{"type":"user","uuid":"3","parentUuid":"2","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"one"},{"type":"tool_result","tool_use_id":"t2","content":"two"}]}}
{"type":"assistant","uuid":"4","parentUuid":"3","message":{"id":"m1","role":"assistant","model":"claude","content":[{"type":"tool_use","id":"t2","name":"Read","input":{"p":2}}]}}
{"broken
{"type":"assistant","uuid":"5","message":{"id":"m2","role":"assistant","model":"claude","usage":{"input_tokens":9,"output_tokens":3},"content":[{"type":"text","text":"done"}]}}
`

// TestImport: a foreign log comes in, goes out as ours, and comes in again to the letter.
func TestImport(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		k := begin(t, s, "web", "a")
		var b strings.Builder
		send := func(k *talk, query, body string) {
			res, raw := s.fetch(t, "POST", k.path("/import"+query), body)
			fmt.Fprintf(&b, "%d %s", res.StatusCode, raw)
		}
		send(k, "?format=claude", foreign)
		exported := k.text(k.path("/log?format=jsonl"))
		b.WriteString(same(decodeLines(t, exported)))
		other := at(t, s, k.key+"-copy")
		other.set(8000)
		send(other, "", exported)
		send(other, "", exported) // all of it is there
		send(other, "?format=jsonl", `{"role":"user","content":"another"}`)
		golden(t, "import", b.String())
		if got := other.text(other.path("/log?format=jsonl")); same(decodeLines(t, got)) != same(decodeLines(t, exported)) {
			t.Errorf("copied\n%s", got)
		}
		if got := other.say("Go on."); got.Text == "" {
			t.Errorf("%+v", got)
		}
	})
}

// TestLongImport: a log over many windows is replayed with compactions on the way, and tells how far
// it is.
func TestLongImport(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		k := begin(t, s, "web", "a")
		k.set(20_000)
		var b strings.Builder
		const pairs = 400
		for i := range pairs {
			fmt.Fprintf(&b, `{"role":"user","content":"question %d about the harbour, %s"}`+"\n", i, strings.Repeat("with words ", 10))
			fmt.Fprintf(&b, `{"role":"assistant","content":"answer %d"}`+"\n", i)
		}
		e := k.listen("POST", k.path("/import?format=jsonl"), b.String())
		last, all := e.until("done")
		var got struct{ Messages, Compactions, ArchivedParts, ContextTokens, Limit int }
		if err := json.Unmarshal([]byte(last.data), &got); err != nil || got.Messages != 2*pairs || got.Compactions == 0 ||
			got.ArchivedParts != got.Compactions || got.ContextTokens > got.Limit {
			t.Errorf("%s %v", last.data, err)
		}
		if all[0].name != "progress" {
			t.Errorf("%v", kinds(all))
		}
		if n := len(k.messages()); n != 2*pairs {
			t.Errorf("%d messages came out", n)
		}
	})
}

// TestLargeMessage: a megabyte of text goes through and comes out whole.
func TestLargeMessage(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		k := begin(t, s, "web", "a")
		k.set(2_000_000)
		text := strings.Repeat("wörter und mehr 🌊 ", 1<<20/20)
		k.say(text)
		if got := people(k.messages()); len(got) != 1 || got[0] != text {
			t.Errorf("%d messages came out", len(got))
		}
	})
}
