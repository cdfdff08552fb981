package proxy_test

import (
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/proxy"
)

// answeredOf are the results of the last message of a call of the API, by call.
func (e exchanged) answeredOf(t *testing.T, leg int) map[string]tidemark.Block {
	t.Helper()
	m, out := e.messages(t, leg), map[string]tidemark.Block{}
	for _, b := range m[len(m)-1].Content {
		out[b.ToolUseID] = b
	}
	return out
}

// TestMarksOfLegs: what a model marked in one call of a turn holds in the next: an episode that began may end, and one that ended may
// not again.
func TestMarksOfLegs(t *testing.T) {
	r := newRig(t, episodic())
	start, end := `{"action":"start","name":"one","type":"expl"}`, `{"action":"end","description":"found"}`
	e := r.exchange("", request(text("user", "q")), reply("tool_use", call("p1", "delimiter", start)), reply("tool_use", call("p2", "delimiter", end)),
		reply("tool_use", call("p3", "delimiter", end), call("p4", "delimiter", strings.Replace(start, "one", "two", 1))), reply("end_turn", textBlock("so")))
	for leg, want := range map[int]map[string]bool{1: {"p1": false}, 2: {"p2": false}, 3: {"p3": true, "p4": false}} {
		got := e.answeredOf(t, leg)
		for id, refused := range want {
			if b, ok := got[id]; !ok || b.IsError != refused || len(got) != len(want) {
				t.Errorf("before call %d %s is answered %s", leg+1, id, b.AppendJSON(nil))
			}
		}
	}
	told, err := r.c.Episodes(t.Context(), "")
	if err != nil || len(told.States) != 2 || told.Open != "two" || told.States[0].Episode.Name != "one" || told.States[0].Episode.Open {
		t.Errorf("%+v, %v", told, err)
	}
}

// TestInheritedIsTold: an action that rests on what another thread explored is told of as such, and as no refused call.
func TestInheritedIsTold(t *testing.T) {
	a := &worker{r: newRig(t, episodic()), history: []string{text("user", "begin")}}
	a.explore("where it is")
	a.round()
	b := &worker{r: a.r, history: []string{text("user", "a summary of it all")}}
	b.round(`{"action":"start","name":"fix","type":"act","dependencies":["where it is"]}`)
	b.round()
	b.round()
	for range 2 {
		e, err := a.r.c.Episodes(t.Context(), "t2")
		if err != nil || e.Open != "fix" || len(e.States) != 1 || e.States[0].Episode.Calls == 0 || e.Log == a.r.log() {
			t.Errorf("%+v, %v", e, err)
		}
		a.r.restart()
	}
}

// TestRecalledIsWork: an episode comes back as what the model said and did in it, and what came of that: not what somebody said meanwhile,
// and not what the model did before and behind it in the same replies.
func TestRecalledIsWork(t *testing.T) {
	s := episodic()
	s.Episodes.Budget.Tokens = 50_000
	r := newRig(t, s)
	read := func(id string) string { return call(id, "Read", `{"file_path":"`+id+`.go"}`) }
	mark := func(id, in string) string { return call(id, "delimiter", in) }
	history := []string{text("user", "begin")}
	add := func(answer []string, seen string, next string) {
		r.exchange("", request(history...), reply("tool_use", answer...))
		history = append(history, seen, next)
	}
	add([]string{textBlock("said before"), read("c0"), mark("m0", `{"action":"start","name":"it","type":"expl"}`), read("c1")}, said(textBlock("said before"), read("c0"), read("c1")),
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c0","content":"came before"},{"type":"tool_result","tool_use_id":"c1","content":"came first"}]}`)
	r.exchange("", request(history...), reply("end_turn", textBlock("said within")))
	history = append(history, spoke("said within"), text("user", "a person said"))
	add([]string{read("c2"), mark("m1", `{"action":"end","description":"found"}`), textBlock("said behind"), read("c3")}, said(read("c2"), textBlock("said behind"), read("c3")),
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c2","content":"came second"},{"type":"tool_result","tool_use_id":"c3","content":"came behind"}]}`)
	e := r.exchange("", request(history...), reply("tool_use", call("p", paging.FaultTool, `{"paths":["episode:it"]}`)), reply("end_turn", textBlock("so")))
	got := strings.Join(textsOf(e.answeredOf(t, 1)["p"]), "\n")
	for s, want := range map[string]bool{"came first": true, "came second": true, "said within": true, `Read {"file_path":"c1.go"}`: true, `Read {"file_path":"c2.go"}`: true,
		"came before": false, "came behind": false, "a person said": false, "said behind": false, `{"file_path":"c0.go"}`: false, `{"file_path":"c3.go"}`: false} {
		if strings.Contains(got, s) != want {
			t.Errorf("%q stands in it %t:\n%s", s, !want, got)
		}
	}
}

// TestStoredTags: what a reply did by tags is stored with the number of its request, and as it came.
func TestStoredTags(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	history := turns(2)
	r.exchange("", request(history[:1]...), reply("end_turn", tagged("answer 1", "release: a.go")))
	r.exchange("", request(history[0], spoke("answer 1\n"), history[2]), reply("end_turn", tagged("so", `collapse: turns 1-1 "short"`)))
	rows, err := r.db.Query(t.Context(), `SELECT n, record FROM proxy_edits WHERE key = ? AND track = 0 ORDER BY n LIMIT 9`, string(key))
	if err != nil || len(rows) != 2 || rows[0].Int(0) != 1 || rows[1].Int(0) != 2 {
		t.Fatalf("%v, %v", rows, err)
	}
	first, answer := strings.TrimSuffix(handle(t, 0, history[0]), "#0"), strings.TrimSuffix(handle(t, 0, history[0], spoke("answer 1\n")), "#0")
	note := `{"role":"user","content":"[Turns 1-1, 2 messages, as you summed them up: short Their words: memory_fault with the handles ` + first + `#0 to ` + answer + `#0.]"}`
	if got, want := rows[0].Text(1), `{"step":0,"release":["a.go"]}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := rows[1].Text(1), `{"step":1,"release":["`+first+`","`+answer+`"],"edits":[{"from":"`+first+`","to":"`+answer+`","block":-1,"raw":`+note+`}]}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestRecordedZones: a request is recorded with how full the window was, its size and the age that was asked for.
func TestRecordedZones(t *testing.T) {
	r := newRig(t, proxy.Settings{Window: 20_000})
	a := &agentRun{r: r, name: "main"}
	a.ask("look around")
	zones := map[string]bool{}
	for n := range 14 {
		a.read(n, 3000)
		rec := r.records[n]
		if zones[rec.Zone] = true; rec.Size <= 0 || rec.Tau < paging.DefaultTau {
			t.Errorf("request %d: %+v", n, rec.Account)
		}
	}
	if !zones["normal"] || len(zones) < 2 {
		t.Errorf("zones %v", zones)
	}
}

// TestRefusedIsNotMarked: what the API refused is in no graph: what is marked behind it, in other messages, holds.
func TestRefusedIsNotMarked(t *testing.T) {
	a := &worker{r: newRig(t, episodic()), history: []string{text("user", "begin")}}
	a.round(`{"action":"start","name":"it","type":"expl"}`)
	bad := a.history
	for _, id := range []string{"b1", "b2"} {
		bad = append(bad[:len(bad):len(bad)], said(call(id, "Read", `{"file_path":"bad.go"}`)), result(id, "bad"))
	}
	a.r.refuse(a.r.begin(bad...), 400)
	a.round(`{"action":"end","description":"found"}`)
	a.round(`{"action":"start","name":"two","type":"expl"}`)
	e := a.round()
	refused := map[string]bool{}
	for _, m := range e.messages(t, 0) {
		for _, b := range m.Content {
			if strings.HasPrefix(b.ToolUseID, "m") {
				refused[b.ToolUseID] = b.IsError
			}
		}
	}
	if len(refused) != 3 || refused["m1-0"] || refused["m2-0"] || refused["m3-0"] {
		t.Errorf("refused %v", refused)
	}
	if told, err := a.r.c.Episodes(t.Context(), ""); err != nil || told.Open != "two" {
		t.Errorf("%+v, %v", told, err)
	}
}

// TestRecalledAtEnd: an episode whose last words the client sends as the beginning of the answer comes back whole.
func TestRecalledAtEnd(t *testing.T) {
	s := episodic()
	s.Episodes.Budget.Tokens = 50_000
	a := &worker{r: newRig(t, s), history: []string{text("user", "begin")}}
	a.round(`{"action":"start","name":"it","type":"expl"}`)
	a.round()
	e := a.r.exchange("", request(append(a.history, spoke("the beginning"))...), reply("tool_use", call("p", paging.FaultTool, `{"paths":["episode:it"]}`)), reply("end_turn", textBlock("so")))
	got := strings.Join(textsOf(e.answeredOf(t, 1)["p"]), "\n")
	if !strings.Contains(got, "f1.go holds this line") || !strings.Contains(got, "f2.go holds this line") || !strings.Contains(got, "the beginning") {
		t.Errorf("given back %.500s", got)
	}
}

// TestInWorkIsNotTold: what is told of a thread while a request is in work is what is stored of it.
func TestInWorkIsNotTold(t *testing.T) {
	a := &worker{r: newRig(t, episodic()), history: []string{text("user", "begin")}}
	a.explore("it")
	a.r.exchange("", request(a.history...), reply("end_turn", textBlock(strings.Repeat("so it is, ", 50))))
	a.history = append(a.history, spoke(strings.Repeat("so it is, ", 50)))
	before := a.r.work()
	x := a.r.begin(append(a.history, text("user", "on"))...)
	if now := a.r.work(); now != before {
		t.Errorf("told is\n%s\nbefore\n%s", now, before)
	}
	x.Broken(t.Context(), nil)
}
