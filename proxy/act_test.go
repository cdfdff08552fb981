package proxy_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
)

// newest is what was recorded of the newest request.
func (a *worker) newest() episodes.Account { return *a.r.records[len(a.r.records)-1].Episodes }

// small makes the newest result a short one.
func (a *worker) small() { a.history[len(a.history)-1] = result(fmt.Sprint("r", a.n), "none") }

// TestActAtBudget: what is as large as the budget stays, and what is a token larger is acted on; what was freed is told in
// the API's measure, and once.
func TestActAtBudget(t *testing.T) {
	play := func(budget tidemark.Tokens) *worker {
		s := episodic()
		s.Episodes.Budget.Tokens = budget
		a := &worker{r: newRig(t, s), history: []string{text("user", "begin")}}
		for i := range 3 {
			a.explore(fmt.Sprint("part ", i))
		}
		a.round()
		return a
	}
	size := play(50_000).newest().Size
	if e := play(size).newest(); e.Freed != 0 || e.Size != size {
		t.Errorf("a request of the budget's size: %+v", e)
	}
	a := play(size - 1)
	e := a.newest()
	sent := tidemark.Tokens(len(a.sent[len(a.sent)-1]) / 4)
	if e.Freed == 0 || e.Size > sent+sent/20 || e.Size < sent-sent/20 {
		t.Errorf("%+v; as the API counts %d were sent", e, sent)
	}
	again := a.history[:len(a.history)-2]
	a.r.exchange("", request(again...), reply("end_turn", textBlock("so")))
	if e := a.newest(); e.Whole+e.Part != 0 || e.Freed != 0 {
		t.Errorf("the same request again tells again what left: %+v", e)
	}
}

// TestActBesideUnknown: a message of a role that nobody here knows stays as it came and counts once, so that the size of what is
// sent is told as the API counts it.
func TestActBesideUnknown(t *testing.T) {
	s := episodic()
	s.Episodes.Budget.Tokens = 6_200
	odd := `{"role":"oracle","content":"` + strings.Repeat("thus it is, ", 1_000) + `"}`
	a := &worker{r: newRig(t, s), history: []string{text("user", "begin"), odd}}
	for i := range 9 {
		a.explore(fmt.Sprint("part ", i))
		if a.newest().Freed > 0 {
			break
		}
	}
	e, last := a.newest(), a.sent[len(a.sent)-1]
	sent := tidemark.Tokens(len(last) / 4)
	if e.Freed == 0 || e.Size > sent+sent/25 || e.Size < sent-sent/25 || !bytes.Contains(last, []byte(odd)) {
		t.Errorf("%+v; as the API counts %d were sent", e, sent)
	}
}

// TestSizeHasOurResults: what was given back beside a call of the client's counts before the API has reported of it, and also
// where it never reports.
func TestSizeHasOurResults(t *testing.T) {
	for _, reports := range []bool{true, false} {
		s := episodic()
		s.Episodes.Budget.Tokens = 50_000
		a := &worker{r: newRig(t, s), history: []string{text("user", "begin")}}
		a.explore("it")
		a.round()
		before := a.newest().Size
		c := call("c", "Read", `{"file_path":"x.go"}`)
		answer := reply("tool_use", call("p", "memory_fault", `{"paths":["episode:it"]}`), c)
		if !reports {
			answer = bytes.Replace(answer, []byte(`"input_tokens":100,"output_tokens":10`), nil, 1)
		}
		a.r.exchange("", request(a.history...), answer)
		a.history = append(a.history, said(c), result("c", "none"))
		e := a.r.exchange("", request(a.history...), reply("end_turn", textBlock("so")))
		sent := tidemark.Tokens(len(e.sent[0]) / 4)
		if now := a.newest().Size; now < sent-sent/20 || now < before+1_500 {
			t.Errorf("reports %t: %d, before %d, sent %d", reports, now, before, sent)
		}
	}
}

// TestTriedAgain: what could not leave is looked at again when an episode ended, however small that was, and when much was
// added, though none ended.
func TestTriedAgain(t *testing.T) {
	open := func() *worker {
		a := &worker{r: newRig(t, episodic()), history: []string{text("user", "begin")}}
		a.round(`{"action":"start","name":"long","type":"expl"}`)
		for range 9 {
			a.round()
		}
		a.round()
		a.small()
		if a.round(); a.newest().Short == 0 {
			t.Fatalf("it is within the budget: %+v", a.newest())
		}
		a.small()
		return a
	}
	a := open()
	c := call("c", "Read", `{"file_path":"x.go"}`)
	a.r.exchange("", request(a.history...), reply("tool_use", c, call("e", "delimiter", `{"action":"end","description":"found"}`)))
	a.history = append(a.history, said(c), result("c", "none"))
	a.r.exchange("", request(a.history...), reply("end_turn", textBlock("so")))
	if a.newest().Freed == 0 {
		t.Errorf("an episode ended: %+v", a.newest())
	}

	a = &worker{r: newRig(t, episodic()), history: []string{text("user", "begin")}}
	calls, results := []string{}, []string{}
	for i := range 10 {
		id := fmt.Sprint("x", i)
		calls = append(calls, call(id, "Read", `{"file_path":"f.go"}`))
		results = append(results, strings.TrimSuffix(strings.TrimPrefix(result(id, strings.Repeat("a line\n", 450)), `{"role":"user","content":[`), "]}"))
	}
	marked := append([]string{call("s", "delimiter", `{"action":"start","name":"one","type":"expl"}`)}, calls...)
	a.r.exchange("", request(a.history...), reply("tool_use", append(marked, call("e", "delimiter", `{"action":"end","description":"found"}`))...))
	a.history = append(a.history, said(calls...), `{"role":"user","content":[`+strings.Join(results, ",")+`]}`)
	if a.round(`{"action":"start","name":"two","type":"expl"}`); a.newest().Short == 0 || a.newest().Freed != 0 {
		t.Fatalf("the newest exchange left: %+v", a.newest())
	}
	freed := tidemark.Tokens(0)
	for range 8 {
		a.round()
		freed += a.newest().Freed
	}
	if freed == 0 {
		t.Errorf("much was added: %+v", a.newest())
	}
}

// TestRecalledInOneAnswer: an episode is given back once in an answer, without thinking, and no more of it than one holds: the
// rest is named.
func TestRecalledInOneAnswer(t *testing.T) {
	s := episodic()
	s.Episodes.Budget.Tokens = 50_000
	a := &worker{r: newRig(t, s), history: []string{text("user", "begin")}}
	a.round(`{"action":"start","name":"it","type":"expl"}`)
	for range 2 {
		a.history[len(a.history)-2] = strings.Replace(a.history[len(a.history)-2], `"content":[`, `"content":[{"type":"thinking","thinking":"a thought","signature":"c2ln"},`, 1)
		a.history[len(a.history)-1] = result(fmt.Sprint("r", a.n), strings.Repeat("a line of this file\n", 15_000))
		a.round()
	}
	a.round(`{"action":"end","description":"found"}`)
	e := a.r.exchange("", request(a.history...), reply("tool_use", call("p", "memory_fault", `{"paths":["episode:it","episode:it"]}`)), reply("end_turn", textBlock("so")))
	list := e.messages(t, 1)
	var said strings.Builder
	for _, b := range list[len(list)-1].Content[0].Content {
		said.WriteString(b.Text + "\n")
	}
	got := said.String()
	if strings.Count(got, "stands in an answer above") != 1 || strings.Count(got, "More than one answer holds. The rest: ") != 1 || strings.Contains(got, "a thought") || len(got) > 520<<10 || strings.Count(got, "a line of this file") != 15_000 {
		t.Errorf("%d bytes: %.300s … %s", len(got), got, got[max(len(got)-300, 0):])
	}
}
