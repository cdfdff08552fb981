//go:build !js

package e2e

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

func TestChat(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		k := begin(t, s, "web", "a")
		k.model.Push(tidemarktest.Step{Text: "Noted: green."}, tidemarktest.Step{Text: "It is green."})
		first := k.say("My bicycle is green.")
		second := k.say("What colour is it?")
		if first.Type != "done" || first.Text != "Noted: green." || second.Text != "It is green." || second.Stop != "end_turn" || second.Usage.Output == 0 {
			t.Errorf("%+v\n%+v", first, second)
		}
		want := `{"role":"user","content":"My bicycle is green."}
{"role":"assistant","content":[{"text":"Noted: green.","type":"text"}]}
{"role":"user","content":"What colour is it?"}
{"role":"assistant","content":[{"text":"It is green.","type":"text"}]}
`
		if got := same(k.messages()); got != want {
			t.Errorf("log\n%s", got)
		}
		if i := k.info(); i.Messages != 4 || i.ID != first.SessionID || i.Busy != "" {
			t.Errorf("%+v", i)
		}
		calls := k.model.Calls()
		if len(calls) != 2 || len(calls[1].Messages) != 3 || !strings.HasPrefix(calls[1].LastText(), "What colour is it?") {
			t.Errorf("the model was called %d times, last with %s", len(calls), same(calls[len(calls)-1].Messages))
		}
		_, raw := s.fetch(t, "GET", k.path(""), nil)
		golden(t, "session", raw)
		golden(t, "log", k.text(k.path("/log")))
		golden(t, "view", k.text(k.path("/view?messages=0")))
		golden(t, "anatomy", k.text(k.path("/anatomy")))
		golden(t, "export", k.text(k.path("/log?format=md")))
		golden(t, "search", k.text(k.path("/search?q=bicycle")))
		type recalled struct {
			Verdict string
			Results []struct{ Text string }
		}
		if got := ask[recalled](k, 200, "GET", k.path("/recall?q=which+bicycles+are+green&k=2"), nil); got.Verdict != "confident" || len(got.Results) != 2 || got.Results[0].Text != "My bicycle is green." {
			t.Errorf("recalled %+v", got)
		}
		if got := ask[recalled](k, 200, "GET", k.path("/recall?q=submarine"), nil); got.Verdict != "nothing" {
			t.Errorf("recalled %+v", got)
		}
	})
}

// TestKeys: a session is the same under all of its names, and its branches live with it.
func TestKeys(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		bare := "keys-names"
		k := at(t, s, "agent:main:local:dm:"+bare)
		k.set(8000)
		for i, path := range []string{"/v1/sessions/" + bare, k.path(""), "/v1/sessions/agent:main:local:dm:" + bare} {
			got := ask[turn](k, 200, "POST", path+"/messages", map[string]string{"text": fmt.Sprintf("word %d", i)})
			if want := 2 * (i + 1); k.info().Messages != want || got.SessionID != k.info().ID {
				t.Errorf("%s: %+v", path, k.info())
			}
		}
		inPath := "/t/" + url.PathEscape(token) + "/v1/sessions/" + bare
		res, raw := s.fetch(t, "GET", inPath, nil, "Authorization", "")
		if res.StatusCode != 200 || !strings.Contains(raw, `"messages":6`) {
			t.Errorf("%d %s", res.StatusCode, raw)
		}
	})
}

// TestDuplicate: the same input id is one turn, whoever sends it and when.
func TestDuplicate(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		k := begin(t, s, "web", "a")
		k.model.Respond(func(c tidemarktest.APICall) tidemarktest.Step {
			return tidemarktest.Step{Text: fmt.Sprintf("Answer %d.", c.N)}
		})
		body := map[string]string{"text": "once"}
		var got [3]turn
		atOnce(len(got), func(i int) {
			got[i] = ask[turn](k, 200, "POST", k.path("/messages"), body, "Idempotency-Key", "same")
		})
		later, all := k.stream("once", "same").done()
		for _, g := range append(got[:], later) {
			if g.Entry != got[0].Entry || g.Text != "Answer 1." {
				t.Errorf("%+v", g)
			}
		}
		if !later.Duplicate || !slices.Equal(kinds(all), []string{"receipt", "reply", "done"}) {
			t.Errorf("sent again: %+v %v", later, kinds(all))
		}
		if n := len(k.messages()); n != 2 || len(k.model.Calls()) != 1 {
			t.Errorf("%d messages, %d calls", n, len(k.model.Calls()))
		}
	})
}

// TestTools: calls run, their results go back, everything is in the log.
func TestTools(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		k := begin(t, s, "web", "a")
		k.model.Push(tidemarktest.Step{Text: "The lighthouse is white."},
			tidemarktest.Step{Text: "Let me look.", Calls: []tidemarktest.ToolCall{
				{ID: "call_a", Name: "recall", Input: `{"query":"lighthouse","k":2}`},
				{ID: "call_b", Name: "memory_append", Input: `{"text":"The lighthouse is white."}`},
				{ID: "call_c", Name: "no_such_tool", Input: `{}`}}},
			tidemarktest.Step{Text: "It is white."})
		k.say("What colour is the lighthouse?")
		got, all := k.stream("Look it up.", "").done()
		want := []string{"receipt", "start", "taken", "text", "reply", "tool", "result", "tool", "result", "tool", "result", "text", "reply", "done"}
		if got.Text != "It is white." || !sameTools(kinds(all), want) {
			t.Errorf("%s %v", got.Text, kinds(all))
		}
		log := k.messages()
		if len(log) != 6 || len(log[4].Results()) != 3 {
			t.Fatalf("%s", same(log))
		}
		if err := tidemark.Check(log); err != nil {
			t.Error(err)
		}
		golden(t, "tools", same(log))
	})
}

// sameTools compares kinds of events; tools that run at once may end in any order.
func sameTools(got, want []string) bool {
	sorted := func(all []string) string {
		n := map[string]int{}
		rest := []string{}
		for _, k := range all {
			if k == "tool" || k == "result" {
				n[k]++
			} else {
				rest = append(rest, k)
			}
		}
		return strings.Join(rest, " ")
	}
	return sorted(got) == sorted(want)
}

// TestOpenAI: the same conversation over chat completions.
func TestOpenAI(t *testing.T) {
	eachOwn(t, []string{"ANTHROPIC_API_KEY=", "OPENAI_API_KEY=fake-key", "TIDEMARK_MODEL_BASEURL={model}/v1"}, func(t *testing.T, s *site) {
		k := begin(t, s, "web", "a")
		k.model.Push(tidemarktest.Step{Text: "Let me look.", Calls: []tidemarktest.ToolCall{{ID: "call_a", Name: "recall", Input: `{"query":"boats"}`}}},
			tidemarktest.Step{Text: "There are two boats."})
		got, all := k.stream("How many boats?", "").done()
		if got.Text != "There are two boats." || said(all) != "Let me look.There are two boats." {
			t.Errorf("%+v %q", got, said(all))
		}
		calls := k.model.Calls()
		if len(calls) != 2 || calls[1].Path != "/v1/chat/completions" || len(calls[1].Messages[2].Results()) != 1 {
			t.Errorf("%d calls, last %s", len(calls), same(calls[len(calls)-1].Messages))
		}
	})
}
