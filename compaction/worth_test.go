package compaction_test

import (
	"errors"
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
		"one word of it":      {strings.Repeat("containers ", 360), false},
		"one phrase of it":    {strings.Repeat("quay 104 and Marguerite, ", 80), false},
		"one sentence of it":  {strings.Repeat("Marguerite wants the schedule of the crane at quay 104 in deploy_plan.md, and whether we can help with that or anything else that is about the containers of 40 feet, which the crane lifts at quay 107 as well as at quay 110 and also at quay 114 and some others near it. ", 100), false},
		"its prompt":          {prompt.Messages[0].PlainText()[:900], false},
		"a copy":              {"## Done\n" + compaction.Transcribe(v.Items)[700:1600], false},
		"a list of one form":  {list(30), true},
	} {
		if err := compaction.Worth(c.text, ask); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
	ask.Instructions = "Keep what was said of quay 103 to the letter."
	if err := compaction.Worth(v.Items[3].Message.PlainText()+strings.Repeat(" Containers of 40 feet go to the quay.", 8), ask); err != nil {
		t.Errorf("to the letter, as asked: %v", err)
	}
	_, short := viewOf(t, tidemark.NewText(tidemark.User, "hi"), tidemark.NewText(tidemark.Assistant, "hello"))
	if err := compaction.Worth("They greeted.", compaction.Ask{Items: short.Items}); err != nil {
		t.Errorf("of a greeting: %v", err)
	}
}

// list is a summary whose lines are alike.
func list(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "- quay %d: the crane lifts %d containers of 40 feet\n", i+100, i*7)
	}
	return b.String()
}

// TestWorthForeign: a summary in another language than the conversation, which has no names, is one if it has the form
// that was asked for; nothing else that names nothing is.
func TestWorthForeign(t *testing.T) {
	spanish := strings.Repeat("La mesa del salón será de nogal macizo, de dos metros de largo. El carpintero vive cerca del río y trabaja despacio. Queremos un acabado con aceite, sin barniz. Mi hermana opina que el roble sería más barato. ", 4)
	english := strings.Repeat("The table of the living room will be of walnut, two metres long, and the carpenter lives near the river. We want it with oil and not with varnish. My sister says that oak would be less dear, but this is not what I want to have in it. ", 4)
	of := map[string]compaction.Ask{}
	for name, text := range map[string]string{"Spanish": spanish, "English": english} {
		_, v := viewOf(t, tidemark.NewText(tidemark.User, text), tidemark.NewText(tidemark.Assistant, "OK, noted."), tidemark.NewText(tidemark.User, text))
		of[name] = compaction.Ask{Items: v.Items}
	}
	table := "## Decisions\n- The living-room table will be of solid walnut, two metres long, finished with oil rather than varnish.\n## Open tasks and questions\n- The sister of the person thinks that oak would be cheaper; this was not settled.\n- The craftsman lives near a river and is slow, so a delivery date is still to be agreed.\n"
	refusal := "I'm sorry, but I am unable to summarize these messages, because doing so might violate my guidelines. Please consult another source, or rephrase what you would like me to do instead of this. There is nothing else that I could do for you here, however often you might ask it of me."
	generic := "## Done\n- The user and the assistant had a long and pleasant discussion regarding various topics of interest. Several questions were asked and all of them were answered in detail to everybody's satisfaction. Nothing else remains to be said here, and that is the end of it so far.\n"
	for _, c := range []struct {
		name, talk, text string
		good             bool
	}{
		{"a summary", "Spanish", table, true},
		{"a summary", "English", table, true},
		{"a Chinese one", "Spanish", "## Decisions\n- 客厅的桌子用实心胡桃木制作，长两米，用油处理而不上清漆。\n## Open tasks\n- 姐妹认为橡木会更便宜，这一点尚未决定。\n- 木匠住在河边，工作很慢，所以交货日期还需要商定。用户多次重复了同样的说明。\n", true},
		{"one that shares a short word", "Spanish", "In de la Paz:\n" + table, true},
		{"a short one", "Spanish", "## Decisions\n- A table of walnut.\n", false},
		{"a refusal", "Spanish", refusal, false},
		{"a refusal", "English", refusal, false},
		{"words about nothing", "English", generic, false},
	} {
		if err := compaction.Worth(c.text, of[c.talk]); (err == nil) != c.good {
			t.Errorf("%s of a talk in %s: %v", c.name, c.talk, err)
		}
	}
}

// TestAskAgain: what a model is told of its bad answer is for it to read, without escapes and names of our errors.
func TestAskAgain(t *testing.T) {
	_, v := viewOf(t, tidemark.NewText(tidemark.User, "hi"), tidemark.NewText(tidemark.Assistant, "hello"))
	ask := compaction.Ask{Items: v.Items}
	for _, row := range []struct{ stop, want string }{
		{"end_turn", ": it has no <summary>…</summary> with something in it. Answer anew, in full."},
		{"max_tokens", ": it was longer than there is room for, and cut off. Answer anew, in at most 2048 words."},
		{"pause_turn", `: it stopped with "pause_turn". Answer anew, in full.`},
	} {
		_, err := compaction.Read(tidemark.Reply{Message: tidemark.NewText(tidemark.Assistant, "Hello!"), Call: tidemark.Call{Stop: row.stop}}, ask)
		again := compaction.AskAgain(compaction.Prompt(ask), err)[0].PlainText()
		if !errors.Is(err, tidemark.ErrInvalid) || !strings.HasSuffix(again, "\n\nAn answer to this could not be used"+row.want) {
			t.Errorf("%v: %q", err, again[max(0, len(again)-200):])
		}
	}
}
