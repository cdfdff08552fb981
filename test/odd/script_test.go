package odd

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// reply answers a request that breaks no rule.
func (a *api) reply(asks *asked) response {
	if asks.summary() {
		if a.calm || a.r.IntN(3) > 0 {
			return a.send(asks, a.plain(asks, a.goodSummary(asks)), "good summary")
		}
		return a.badSummary(asks)
	}
	if a.calm {
		return a.answerCalm(asks)
	}
	return a.storm(asks)
}

// plain is an answer of one text.
func (a *api) plain(asks *asked, text string) answer {
	return answer{blocks: []said{{kind: "text", text: text}}, stop: "end_turn", usage: a.usage(asks, len(text)), cut: -1, number: plainNumber, spoken: text}
}

func (a *api) usage(asks *asked, bytes int) []string {
	return []string{fmt.Sprint(asks.tokens), fmt.Sprint(1 + bytes/4)}
}

// send writes an answer in the form of its API, and takes down what was given.
func (a *api) send(asks *asked, ans answer, kind string) response {
	a.done[kind]++
	a.spoken = ans.spoken
	if ans.cut >= 0 || ans.calls() || asks.summary() {
		a.spoken = ""
	}
	for _, b := range ans.blocks {
		switch b.kind {
		case "thinking":
			a.judge.signed[b.seal] = b.text
		case "redacted_thinking":
			a.judge.redacted[b.seal] = true
		}
		a.judge.kinds[b.kind] = true
		for part := range strings.SplitSeq(b.more, `,"`) {
			name, _, _ := strings.Cut(part, `"`)
			a.judge.fields[b.kind+"."+name] = true
		}
	}
	var body string
	if asks.model.dialect == messages {
		body = ans.messages(a.r, asks.model.name)
	} else {
		body = ans.chat(a.r, asks.model.name)
	}
	out := response{status: http.StatusOK, body: body, json: ans.whole}
	if ans.cut >= 0 {
		out.body = body[:min(ans.cut, len(body))]
		out.cut = errors.New("read tcp: connection reset by peer")
	}
	return out
}

// answerCalm answers with the words of who asked, now and then after a call of a tool.
func (a *api) answerCalm(asks *asked) response {
	a.last = asks.body
	seen := slices.DeleteFunc(slices.Clone(a.tags), func(tag string) bool { return !whole(asks.body, tag) })
	if a.unread = ""; len(seen) == 0 { // as when it is asked what it refuses, before it is asked in earnest
		a.unread = fmt.Sprintf("no message of this turn reached the model: %d bytes, %d tokens", len(asks.body), asks.tokens)
	}
	if len(asks.tools) > 0 && a.r.IntN(5) == 0 {
		ans := a.plain(asks, "I look.")
		a.call(&ans, asks, false)
		return a.send(asks, ans, "calm call")
	}
	ans := a.plain(asks, fmt.Sprintf("Answer %d to %s 😀 it is so.", a.n, strings.Join(seen, " ")))
	ans.split = a.r.IntN(2) == 0
	return a.send(asks, ans, "calm answer")
}

// goodSummary is one that names what it stands for.
func (a *api) goodSummary(asks *asked) string {
	memories := "<memories>\n- The person said " + a.tag + "\n</memories>"
	if strings.Contains(asks.prompt, "Write one section") {
		return memories
	}
	return "<summary>\n## Decisions\nThey went on.\n" + tidemarktest.Gist(asks.prompt) + "\n</summary>\n" + memories
}

// badSummary is what is no summary, in all the ways in which models fail at it.
func (a *api) badSummary(asks *asked) response {
	switch a.r.IntN(12) {
	case 0:
		return a.send(asks, a.plain(asks, "..."), "bad summary")
	case 1:
		return a.send(asks, a.plain(asks, "<summary>\nThe state of the whole conversation, the previous summary merged in. Use these headings, leave out empty ones:\n## Decisions\n## Done\n</summary>\n<memories>\nnone\n</memories>"), "bad summary")
	case 2:
		return a.send(asks, a.plain(asks, "<think><summary>a draft</summary></think>"), "bad summary")
	case 3:
		return a.send(asks, a.plain(asks, "<summary>Talk.</summary>"), "bad summary")
	case 4:
		return a.send(asks, a.plain(asks, "I'm sorry, but I can't help with that."), "bad summary")
	case 5:
		ans := a.plain(asks, "<summary>\n## Decisions\nThey went")
		ans.stop = "max_tokens"
		return a.send(asks, ans, "bad summary")
	case 6:
		ans := a.plain(asks, "")
		ans.blocks = []said{{kind: "thinking", text: "I summarise.", seal: fmt.Sprint("seal-", a.n)}}
		return a.send(asks, ans, "bad summary")
	case 7:
		return a.send(asks, a.plain(asks, "<summary></summary><memories></memories>"), "bad summary")
	case 8:
		return a.overflow(asks)
	case 9:
		return failure(http.StatusBadRequest, "invalid_request_error", "messages.0.content.0: odd", "messages[1].content")
	case 10:
		ans := a.plain(asks, "I call.")
		ans.blocks = append(ans.blocks, said{kind: "tool_use", id: `"x"`, name: "nothing", args: "{}"})
		return a.send(asks, ans, "bad summary")
	}
	return a.fault(asks)
}

// storm answers anything.
func (a *api) storm(asks *asked) response {
	text := fmt.Sprintf("Said %d %s. %s", a.n, a.tag, a.words(a.r.IntN(60)))
	ans := a.plain(asks, text)
	ans.split = a.r.IntN(3) == 0
	switch roll := a.r.IntN(100); {
	case roll < 16:
		return a.send(asks, ans, "text")
	case roll < 34:
		a.call(&ans, asks, true)
		return a.send(asks, ans, "calls")
	case roll < 48:
		return a.thinking(asks, ans)
	case roll < 52:
		return a.declines(asks, ans)
	case roll < 54:
		ans.blocks, ans.spoken = nil, ""
		return a.send(asks, ans, "empty")
	case roll < 66:
		return a.loosely(asks, ans)
	case roll < 72:
		ans.cut = a.r.IntN(len(text) + 400)
		return a.send(asks, ans, "broken stream")
	case roll < 76:
		ans.whole = true
		return a.send(asks, ans, "whole")
	case roll < 79:
		return a.overflow(asks)
	case roll < 86:
		return a.odd400(asks)
	case roll < 90:
		return a.parameter(asks)
	}
	return a.fault(asks)
}

// thinking answers with thoughts, behind or without words.
func (a *api) thinking(asks *asked, ans answer) response {
	thought := said{kind: "thinking", text: "Hm 🤔 " + a.words(8), seal: fmt.Sprint("seal-", a.n)}
	hidden := said{kind: "redacted_thinking", seal: fmt.Sprint("hidden-", a.n)}
	switch a.r.IntN(6) {
	case 0:
		ans.blocks, ans.spoken = []said{thought}, ""
		return a.send(asks, ans, "thinking only")
	case 1:
		ans.blocks, ans.spoken = []said{hidden}, ""
		return a.send(asks, ans, "redacted only")
	case 2: // cut off before it was signed
		thought.seal, ans.stop = "", "max_tokens"
		ans.blocks = append(ans.blocks, thought)
		return a.send(asks, ans, "thinking cut off")
	case 3:
		ans.blocks = slices.Concat([]said{thought, hidden}, ans.blocks)
		a.call(&ans, asks, true)
		return a.send(asks, ans, "thinking and calls")
	case 4:
		ans.blocks = slices.Concat(ans.blocks, []said{thought, hidden})
		return a.send(asks, ans, "trailing thinking")
	}
	ans.blocks = slices.Concat([]said{thought}, ans.blocks)
	return a.send(asks, ans, "thinking and text")
}

// declines is an answer that refuses, in each way.
func (a *api) declines(asks *asked, ans answer) response {
	a.others++
	if asks.model.dialect != messages && a.r.IntN(2) == 0 {
		ans.denied, ans.blocks = ans.text(), nil
		return a.send(asks, ans, "message.refusal")
	}
	ans.stop, ans.spoken = "refusal", ""
	if a.r.IntN(2) == 0 {
		ans.blocks = nil
	}
	return a.send(asks, ans, "refusal")
}

// loosely answers in other forms than are documented: none of them costs the answer.
func (a *api) loosely(asks *asked, ans answer) response {
	number := oddNumber(a.r)
	switch a.r.IntN(5) {
	case 0:
		ans.number = number
		ans.usage = []string{number(asks.tokens), number(9)}
		return a.send(asks, ans, "odd numbers")
	case 1:
		figures := []string{"null", `"many"`, "-1", "{}", "", "1e30", "77", "0"}
		ans.usage = []string{figures[a.r.IntN(len(figures))], figures[a.r.IntN(len(figures))]}
		return a.send(asks, ans, "odd usage")
	case 2:
		ans.blocks[0].more = `,"mood":"merry","n":{"a":[1,2]}`
		if asks.model.dialect == messages && a.r.IntN(2) == 0 {
			ans.blocks = append(ans.blocks, said{kind: "hologram", more: `,"depth":12.0`}, said{kind: "text", text: "Behind it."})
		}
		return a.send(asks, ans, "unknown fields")
	case 3:
		ans.blocks = append([]said{{kind: "server_note", more: `,"depth":1e1`}}, ans.blocks...)
		return a.send(asks, ans, "unknown block")
	}
	ans.split = true
	ans.blocks[0].text += strings.Repeat("😀👍🏽é", 5)
	ans.spoken = ans.blocks[0].text
	return a.send(asks, ans, "surrogates")
}

// oddIDs are ids of calls that one API or the other does not take.
var oddIDs = []string{`"functions.look:0"`, `"a|b"`, `"` + strings.Repeat("x", 70) + `"`, `12`, `""`, `"call 1"`, `"ä"`, `"same"`, `null`, `"toolu_01"`}

// call adds calls of tools to an answer.
func (a *api) call(ans *answer, asks *asked, odd bool) {
	ans.stop = "tool_use"
	if len(asks.tools) == 0 {
		ans.blocks = append(ans.blocks, said{kind: "tool_use", id: `"x"`, name: "nothing", args: "{}"})
		return
	}
	many := 1
	if odd {
		many += a.r.IntN(3)
		if a.r.IntN(2) == 0 {
			ans.blocks = slices.DeleteFunc(ans.blocks, func(b said) bool { return b.kind == "text" })
		}
	}
	for k := range many {
		t := a.pick(asks)
		s := said{kind: "tool_use", id: fmt.Sprintf(`"toolu_%d_%d"`, a.n, k), name: t.name, args: a.arguments(t)}
		if odd && a.r.IntN(3) == 0 {
			s.id = oddIDs[a.r.IntN(len(oddIDs))]
		}
		switch {
		case !odd:
		case a.r.IntN(12) == 0:
			s.args = []string{`{"a":`, `[1]`, `7`, ``, `"x"`, "{\"a\":\n1}", `{"a":1}{"b":2}`}[a.r.IntN(7)]
		case a.r.IntN(20) == 0:
			s.name = []string{"nothing", "no such tool!", strings.Repeat("long", 40), "träumen"}[a.r.IntN(4)]
		case a.r.IntN(15) == 0 && asks.model.dialect == messages:
			s.more = `,"caller":{"type":"direct"}`
		}
		ans.blocks = append(ans.blocks, s)
	}
	if a.r.IntN(2) == 0 && odd {
		ans.stop = "end_turn"
	}
}

// pick draws a tool, those of the odd server more often than others.
func (a *api) pick(asks *asked) definition {
	if a.r.IntN(3) > 0 {
		var theirs []definition
		for _, t := range asks.tools {
			if strings.Contains(t.name, server) {
				theirs = append(theirs, t)
			}
		}
		if len(theirs) > 0 {
			return theirs[a.r.IntN(len(theirs))]
		}
	}
	return asks.tools[a.r.IntN(len(asks.tools))]
}

// arguments are some that a schema may mean.
func (a *api) arguments(t definition) string {
	var pairs []string
	var names []string
	for name := range t.schema {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		m, _ := members(t.schema[name])
		value := fmt.Sprintf(`"%s"`, a.words(2))
		switch kind, _ := textOf(m["type"]); kind {
		case "integer", "number":
			value = fmt.Sprint(a.r.IntN(1000))
		case "boolean":
			value = "true"
		case "array":
			value = `["` + a.words(1) + `"]`
		case "object":
			value = "{}"
		}
		if l, ok := items(m["enum"]); ok && len(l) > 0 {
			value = string(l[a.r.IntN(len(l))])
		}
		if a.r.IntN(4) > 0 {
			pairs = append(pairs, name, value)
		}
	}
	return "{" + object(append(pairs, "seed", fmt.Sprint(a.r.IntN(1_000_000)))...) + "}"
}

// vocabulary has words that many messages have, and far more that hardly any other has: an index is made for such talk.
var vocabulary = func() []string {
	out := strings.Fields(`invoice Amsterdam Quorum index /srv/data/report.csv 4711 ticket-88 Übung парус 港口 deploy Marlene timeout https://x.test/doc never`)
	syllables := strings.Fields("ba ko li mu ne ra shi to va we zu dro fle gri pla")
	for _, a := range syllables {
		for _, b := range syllables {
			for _, c := range syllables {
				out = append(out, a+b+c)
			}
		}
	}
	return out
}()

// words are some of the vocabulary.
func (a *api) words(n int) string { return wordsOf(a.r.IntN, n) }

func wordsOf(intn func(int) int, n int) string {
	out := make([]string, n)
	for i := range out {
		out[i] = vocabulary[intn(len(vocabulary))]
	}
	return strings.Join(out, " ")
}
