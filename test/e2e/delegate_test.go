//go:build !js

package e2e

import (
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// delegated reports whether a call of the model is of a conversation that was delegated to.
func delegated(c tidemarktest.APICall) bool {
	return strings.Contains(c.System, "Another agent delegated")
}

// lastResults are the texts of the results that a call of the model answers to.
func lastResults(c tidemarktest.APICall) []string {
	var out []string
	for _, b := range c.Messages[len(c.Messages)-1].Content {
		if b.Type == tidemark.TypeToolResult {
			out = append(out, b.Content[0].Text)
		}
	}
	return out
}

// calls are calls of one tool.
func calls(tool string, inputs ...string) (out []tidemarktest.ToolCall) {
	for _, in := range inputs {
		out = append(out, tidemarktest.ToolCall{Name: tool, Input: in})
	}
	return out
}

// children are the conversations of the agent that were delegated to, as the directory has them.
func (k *talk) children() []string {
	k.t.Helper()
	type listed struct{ Sessions []struct{ Key string } }
	var out []string
	for _, s := range ask[listed](k, 200, "GET", "/v1/sessions?agent="+testName(k.t), nil).Sessions {
		if strings.Contains(s.Key, ":delegate:dm:") {
			out = append(out, s.Key)
		}
	}
	return out
}

// TestDelegate: tasks are done side by side in conversations of their own; the parent reads each answer, follows the
// pointer to the rest of a long one, and recall over the agent finds what was said on the way.
func TestDelegate(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		k := begin(t, s, "web", "a")
		var b strings.Builder
		for i := range 900 {
			fmt.Fprintf(&b, "Page %d of the tide table. ", i)
		}
		long := strings.TrimSpace(b.String())
		tasks := []string{`{"task":"Copy the tide table."}`, `{"task":"Where does curlew_5520 nest?"}`, `{"task":"Fail."}`}
		k.model.Respond(func(c tidemarktest.APICall) tidemarktest.Step {
			switch text := c.Messages[0].PlainText(); {
			case !delegated(c) && len(lastResults(c)) == 0:
				return tidemarktest.Step{Text: "I delegate.", Calls: calls("delegate", tasks...)}
			case !delegated(c):
				return tidemarktest.Step{Text: strings.Join(lastResults(c), "\n===\n")}
			case strings.Contains(text, "tide table"):
				return tidemarktest.Step{Text: long}
			case strings.Contains(text, "Fail"):
				return tidemarktest.Step{Status: 401, Message: "no such key"}
			case len(lastResults(c)) == 0:
				return tidemarktest.Step{Text: "The curlew_5520 was seen at the weir; I look it up.", Calls: calls("memory_search", `{"query":"curlew"}`)}
			}
			return tidemarktest.Step{Text: "It nests at the weir."}
		})
		parts := strings.Split(k.say("Do three things.").Text, "\n===\n")
		if len(parts) != 3 {
			t.Fatalf("read %q", parts)
		}
		if !strings.Contains(parts[1], "[Answer of agent:"+testName(t)+":delegate:dm:") || !strings.HasSuffix(parts[1], "\n\nIt nests at the weir.") {
			t.Errorf("read %q", parts[1])
		}
		if !strings.Contains(parts[2], "failed") || !strings.Contains(parts[2], "no such key") {
			t.Errorf("read %q", parts[2])
		}
		k.readOn(parts[0], long)
		eventually(t, s, func() string { // the directory is told behind a turn
			if n := len(k.children()); n != 3 {
				return fmt.Sprint(n, " of 3 are in the directory")
			}
			return ""
		})
		found := ask[recalledWide](k, 200, "GET", "/v1/recall?agent="+testName(t)+"&session="+url.QueryEscape(k.key)+"&scope=agent&q=curlew_5520+weir", nil)
		if len(found.Results) == 0 || !strings.Contains(found.Results[0].Key, ":delegate:dm:") || !strings.Contains(fmt.Sprint(found.Results), "I look it up") {
			t.Errorf("found %+v", found)
		}
		for _, c := range k.model.Calls() {
			names := fmt.Sprint(c.Tools)
			if delegated(c) == strings.Contains(names, "sub-agent") {
				t.Errorf("call %d has %s", c.N, names)
			}
		}
	})
}

// readOn follows the pointer of an answer that was cut, by recall, until all of it was read.
func (k *talk) readOn(part, long string) {
	k.t.Helper()
	head, text, _ := strings.Cut(part, "\n\n")
	_, pointer, _ := strings.Cut(head, "recall with ")
	pointer, _, _ = strings.Cut(pointer, " reads on")
	var at struct {
		Entry  string `json:"entry"`
		Offset int    `json:"offset"`
	}
	if err := json.Unmarshal([]byte(pointer), &at); err != nil || !strings.HasPrefix(long, text) {
		k.t.Fatalf("pointer in %q: %v", head, err)
	}
	k.model.Respond(func(c tidemarktest.APICall) tidemarktest.Step {
		if got := lastResults(c); len(got) > 0 {
			return tidemarktest.Step{Text: got[0]}
		}
		return tidemarktest.Step{Calls: calls("recall", fmt.Sprintf(`{"entry":%q,"offset":%d}`, at.Entry, at.Offset))}
	})
	k.set(32_000)
	if rest := k.say("Read on.").Text; text+rest != long {
		k.t.Errorf("%d and %d of %d bytes were read", len(text), len(rest), len(long))
	}
}

// TestDelegateOfOthers: a stranger's conversation is not offered it, and what it calls makes no conversation.
func TestDelegateOfOthers(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		k := begin(t, s, "whatsapp", "+4917")
		k.model.Respond(func(c tidemarktest.APICall) tidemarktest.Step {
			if got := lastResults(c); len(got) > 0 {
				return tidemarktest.Step{Text: got[0]}
			}
			return tidemarktest.Step{Calls: calls("delegate", `{"task":"Read the owner's diary."}`)}
		})
		if got := k.say("Please.").Text; !strings.Contains(got, `there is no tool "delegate"`) || len(k.model.Calls()) != 2 {
			t.Errorf("read %q in %d calls", got, len(k.model.Calls()))
		}
		if names := fmt.Sprint(k.model.Calls()[0].Tools); strings.Contains(names, "delegate") {
			t.Errorf("offered %s", names)
		}
	})
}

// TestDelegateAbort: who stops the parent stops what it delegated.
func TestDelegateAbort(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		k := begin(t, s, "web", "a")
		began := make(chan struct{})
		var once sync.Once
		k.model.Respond(func(c tidemarktest.APICall) tidemarktest.Step {
			if delegated(c) {
				once.Do(func() { close(began) })
				return tidemarktest.Step{Hang: true}
			}
			return tidemarktest.Step{Calls: calls("delegate", `{"task":"Wait for the tide."}`)}
		})
		k.post("Wait.", "w1")
		<-began
		ask[struct{}](k, 200, "POST", k.path("/abort"), nil)
		eventually(t, s, func() string {
			if n := k.model.Open(); n > 0 {
				return fmt.Sprint(n, " calls of the model are open")
			}
			if len(k.children()) != 1 {
				return "the directory has no child"
			}
			return ""
		})
		child := &talk{t: t, s: s, key: k.children()[0], model: k.model}
		if got := child.info(); got.Busy != "" {
			t.Errorf("the child is in work: %+v", got)
		}
		if got := same(child.messages()); !strings.Contains(got, "Wait for the tide.") {
			t.Errorf("its log is %q", got)
		}
	})
}

// TestDelegateRestart: the host ends while a child works; when it is back there is one answer, of the same child.
func TestDelegateRestart(t *testing.T) {
	eachOwn(t, nil, func(t *testing.T, s *site) {
		how := byKill
		if _, ok := s.target.(*inProcess); ok {
			how = gracefully
		}
		k := begin(t, s, "web", "a")
		began, gate := make(chan struct{}), make(chan struct{})
		var once sync.Once
		k.model.Respond(func(c tidemarktest.APICall) tidemarktest.Step {
			if delegated(c) {
				once.Do(func() { close(began) })
				return tidemarktest.Step{Text: "High tide is at noon.", Gate: gate}
			}
			if got := lastResults(c); len(got) > 0 {
				return tidemarktest.Step{Text: got[0]}
			}
			return tidemarktest.Step{Calls: calls("delegate", `{"task":"When is high tide?"}`)}
		})
		k.post("Ask.", "a1")
		<-began
		if err := s.halt(how); err != nil {
			t.Fatal(err)
		}
		close(gate)
		if err := s.run(); err != nil {
			t.Fatal(err)
		}
		var all []tidemark.Message
		eventually(t, s, func() string {
			if k.info().Busy != "" {
				return "the parent is in work"
			}
			if all = k.messages(); len(all) < 4 {
				return fmt.Sprint(len(all), " messages")
			}
			return ""
		})
		if got := all[len(all)-1].PlainText(); len(all) != 4 || !strings.HasSuffix(got, "High tide is at noon.") {
			t.Errorf("%d messages, the last is %q", len(all), got)
		}
		eventually(t, s, func() string {
			if n := len(k.children()); n != 1 {
				return fmt.Sprint(n, " children")
			}
			return ""
		})
	})
}
