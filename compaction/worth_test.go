package compaction_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
)

// TestWorth is the table of what a model wrote between the tags, and whether it is a summary of fifteen messages.
func TestWorth(t *testing.T) {
	var ms []tidemark.Message
	for i := range 15 {
		role := []tidemark.Role{tidemark.User, tidemark.Assistant}[i%2]
		ms = append(ms, tidemark.NewText(role, fmt.Sprintf("The crane at quay %d lifts containers of 40 feet; Marguerite wants the schedule in deploy_plan.md and asks whether we can help with the request to provide content about that.", i+100)))
	}
	_, v := viewOf(t, ms...)
	ask := compaction.Ask{Items: v.Items}
	prompt := compaction.Prompt(ask)
	template := prompt.Messages[0].PlainText()
	template = template[strings.LastIndex(template, "<summary>")+len("<summary>"):]
	template = template[:strings.Index(template, "</summary>")]
	padded := strings.Repeat(" ", 300)
	for name, c := range map[string]struct {
		text string
		good bool
	}{
		"whole":               {"## Decisions\n- Marguerite gets the schedule of the crane in deploy_plan.md.\n- Containers of 40 feet go to quay 104.", true},
		"another language":    {"Marguerite erhält den Zeitplan des Krans (deploy_plan.md); vierzig Fuß lange Behälter gehen an Kai 104 und Kai 107, danach wird weiter geplant.", true},
		"Chinese":             {"玛格丽特希望在 deploy_plan.md 中查看起重机的时间表，四十英尺的集装箱将运往 104 号码头，之后再继续安排。", true},
		"dots":                {"...", false},
		"dots and headings":   {"## Decisions\n...\n## Done\n…\n## Open tasks and questions\n-" + padded, false},
		"one word":            {"Containers.", false},
		"template":            {template, false},
		"our instructions":    {"You condense conversations for an assistant that will go on with them and sees only what you write. Marguerite wants the schedule of the crane at quay 104.", false},
		"refusal":             {"I'm sorry, but I am unable to summarize these messages because doing so might violate my guidelines. Please consult another source, or rephrase what you would like me to do instead of this.", false},
		"of something else":   {"The gardener planted tulips beside the greenhouse yesterday evening, watered everything thoroughly, afterwards locking both gates behind himself.", false},
		"only what it was of": {strings.Repeat("conversation ", 30), false},
	} {
		if err := compaction.Worth(c.text, ask); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, short := viewOf(t, tidemark.NewText(tidemark.User, "hi"), tidemark.NewText(tidemark.Assistant, "hello"))
	if err := compaction.Worth("They greeted.", compaction.Ask{Items: short.Items}); err != nil {
		t.Errorf("of a greeting: %v", err)
	}
}
