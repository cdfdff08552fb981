package offline

import (
	"fmt"
	"strings"
	"testing"

	tidemark "github.com/tidemark-ai/tidemark"
)

const memoryPrompt = "## Recent Context\n\nNotes taken from earlier conversations.\n\n### Today (memory/2026-11-04.md)\n\n" +
	"### Noted in conversation (09:12)\n\n- my cat is Misu\n- I prefer short answers.\n\n---\n\n## Runtime\n\nTidemark on a host."

// TestOfflineFirstMinute plays the message of the README and what is asked next.
func TestOfflineFirstMinute(t *testing.T) {
	const said = "We decided on walnut. Remember that I prefer short answers."
	msgs := chat(said)
	call := ask(t, tidemark.Request{Tools: memoryTools, Messages: msgs}).Message
	if len(call.Content) != 1 || call.Content[0].Name != rememberTool || string(call.Content[0].Input) != `{"fact":"I prefer short answers."}` {
		t.Fatalf("got %s, want one call of memory_append and no text", call.AppendJSON(nil))
	}
	msgs = append(msgs, call, tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult(call.Calls()[0], "Remembered in memory/2026-11-04.md.", false)}})
	reply := ask(t, tidemark.Request{Tools: memoryTools, Messages: msgs}).Message
	if want := "Noted: “We decided on walnut.”\n\nI will remember that: “I prefer short answers.”"; reply.PlainText() != want {
		t.Errorf("answered %q, want %q", reply.PlainText(), want)
	}
	msgs = append(msgs, reply)
	for _, question := range []string{"what did we decide?", "What wood did we decide on?", "What was the decision?"} {
		msgs = append(msgs, tidemark.NewText(tidemark.User, question))
		reply = ask(t, tidemark.Request{Tools: memoryTools, Messages: msgs}).Message
		if want := "This is what I have on that.\n\nYou said: “We decided on walnut.”"; reply.PlainText() != want {
			t.Errorf("%s: answered %q, want %q", question, reply.PlainText(), want)
		}
		msgs = append(msgs, reply)
	}
}

func TestOfflineRecalls(t *testing.T) {
	const summary = summaryMark + " from automatic context compaction]\n\n## Decisions\n- We decided on walnut.\n## Work state and last requests\n- Asked: What did we decide?\n- Last answer: We decided on oak.\n\n## Index of what was mentioned\n- Paths: decide.go\n"
	merged := tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.Text(summary), tidemark.Text("what did we decide?")}}
	for _, c := range []struct {
		name string
		req  tidemark.Request
		want string
	}{
		{"a bullet of a daily file", tidemark.Request{System: memoryPrompt, Tools: memoryTools, Messages: chat("What is my cat called?")}, "This is what I have on that.\n\nFrom memory: “my cat is Misu”"},
		{"a statement brings up nothing", tidemark.Request{System: memoryPrompt, Messages: chat("My cat Misu sleeps.")}, "Noted: “My cat Misu sleeps.”"},
		{"a summary without its state of work", tidemark.Request{Messages: chat(summary, "ok", "what did we decide?")}, "This is what I have on that.\n\nFrom the summary: “We decided on walnut.”"},
		{"a summary in the same message", tidemark.Request{Messages: []tidemark.Message{merged}}, "This is what I have on that.\n\nFrom the summary: “We decided on walnut.”"},
		{"no tasks of a machine", tidemark.Request{Messages: chat("<note>The port is 1.</note>\nThe port is 2.", "ok", "Which port?")}, "This is what I have on that.\n\nYou said: “The port is 2.”"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := ask(t, c.req).Message.PlainText(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestToRemember(t *testing.T) {
	for _, c := range []struct{ name, text, facts, rest string }{
		{"alone", "Remember that I like tea.", "I like tea.", ""},
		{"behind another sentence", "We ship. Please remember that I like tea.", "I like tea.", "We ship."},
		{"before a question", "Remember that I like tea. What is next?", "I like tea.", "What is next?"},
		{"within a sentence", "We chose oak, and remember that I like tea.", "I like tea.", "We chose oak"},
		{"two", "Remember that I like tea. Keep in mind that I hate noise.", "I like tea.|I hate noise.", ""},
		{"a memory of one's own", "I will always remember that day.", "", "I will always remember that day."},
		{"a refusal", "Do not remember that I like tea.", "", "Do not remember that I like tea."},
		{"a question", "Remember when we met?", "", "Remember when we met?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			facts, rest := toRemember(c.text)
			if got := strings.Join(facts, "|"); got != c.facts || rest != c.rest {
				t.Errorf("got %q and %q, want %q and %q", got, rest, c.facts, c.rest)
			}
		})
	}
}

func TestOfflineMemories(t *testing.T) {
	var distinct strings.Builder
	for i := range 40 {
		fmt.Fprintf(&distinct, "[user] We decided on %s.\n", strings.Repeat("z", i+3))
	}
	for _, c := range []struct {
		name, known, talk, want string
		count                   int
	}{
		{"decided", "", "[user] We decided on walnut.\n", "- We decided on walnut.", 1},
		{"agreed", "", "[user] We agreed to meet weekly.\n", "- We agreed to meet weekly.", 1},
		{"chose", "", "[user] We chose the blue tiles.\n", "- We chose the blue tiles.", 1},
		{"the decision is", "", "[user] The decision is to wait.\n", "- The decision is to wait.", 1},
		{"not decided by the model", "", "[assistant] We decided on oak.\n", "none", 1},
		{"not what is asked", "", "[user] Have we decided on oak?\n", "none", 1},
		{"once", "", "[user] We decided on walnut.\n[user] We decided on walnut!\n", "- We decided on walnut.", 1},
		{"known", "- I prefer short answers.", "[user] Remember that I prefer short answers.\n", "none", 1},
		{"asked to remember", "", "[user] Remember that the cat is Misu.\n", "- the cat is Misu.", 1},
		{"bounded, the newest", "", distinct.String(), "- We decided on " + strings.Repeat("z", 42) + ".", mostFacts},
		{"no notices", "", "[user] &lt;task-notification&gt;\n  &lt;task-id&gt;x&lt;/task-id&gt;\n  &lt;/task-notification&gt;\n[user] [Request interrupted, remember to retry]\n", "none", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, facts := condense(t, "", c.known, c.talk, "memories")
			lines := strings.Split(facts, "\n")
			if len(lines) != c.count || lines[len(lines)-1] != c.want {
				t.Errorf("got %q, want %d of which the last is %q", facts, c.count, c.want)
			}
		})
	}
}

func TestOfflineSummaryFacts(t *testing.T) {
	for _, c := range []struct{ name, previous, talk, want string }{
		{"each fact once", "", "[user] We decided on walnut.\n[assistant] Noted: “We decided on walnut.”\n[user] what did we decide?\n[assistant] This is what I have on that.\n  You said: “We decided on walnut.”\n",
			"## Decisions\n- We decided on walnut.\n## Work state and last requests\n- Asked: what did we decide?"},
		{"variants of before", "## Decisions\n- We decided on walnut.\n## Facts\n- We decided on walnut!", "[user] Remember that we decided on walnut.\n",
			"## Decisions\n- We decided on walnut."},
		{"the model's words are no facts", "", "[user] Go on.\n[assistant] We agreed on port 8080.\n", "## Work state and last requests\n- Asked: Go on."},
		{"machine notices", "[Large message block (~9K tokens) omitted from summary]\n## Facts\n- [Large message block (~3K tokens) omitted from summary]\n- <task-id>b1</task-id>\n- <status>completed</status>\n- The host is alpha.",
			"[user] &lt;task-id&gt;b2&lt;/task-id&gt;\n  &lt;status&gt;failed with 3&lt;/status&gt;\n", "## Facts\n- The host is alpha."},
		{"an extract in place of a summary", "[Context contained 9 messages that were compacted. Summary unavailable due to size limits.]\n\nNo model could write a summary; this is an extract.\n\n## Tool calls\n- read {\"n\":1}\n\n## Last turns\n- user: We chose oak.\n- assistant: It has 3 knots.", "[user] \n",
			"## Facts\n- We chose oak."},
	} {
		t.Run(c.name, func(t *testing.T) {
			summary := c.previous
			for roll := range 5 {
				talk := c.talk
				if roll > 0 {
					talk = "[tool result] ok\n"
				}
				got, _ := condense(t, summary, "", talk, "summary")
				if roll == 0 && got != c.want {
					t.Fatalf("got:\n%s\nwant:\n%s", got, c.want)
				}
				if strings.Contains(got, "Large message") || strings.Contains(got, "task-id") || strings.Count(got, "walnut") > 1 {
					t.Fatalf("roll %d:\n%s", roll, got)
				}
				summary = got
			}
		})
	}
}
