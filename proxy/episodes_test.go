package proxy_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/proxy"
)

func episodic() proxy.Settings {
	return proxy.Settings{Treatment: proxy.Episodes, Window: 60_000, Episodes: proxy.EpisodeSettings{Budget: episodes.Budget{Tokens: 6_000}}}
}

// worker is a client whose agent marks what it does.
type worker struct {
	r       *rig
	history []string
	n       int
	sent    [][]byte // of each request its first call
}

// round makes a request, which the model answers with marks of ours and a read.
func (a *worker) round(marks ...string) exchanged {
	a.r.t.Helper()
	a.n++
	blocks, file := []string{}, fmt.Sprintf("f%d.go", a.n)
	for i, m := range marks {
		blocks = append(blocks, call(fmt.Sprintf("m%d-%d", a.n, i), episodes.ToolName, m))
	}
	c := call(fmt.Sprint("r", a.n), "Read", `{"file_path":"`+file+`"}`)
	e := a.r.exchange("", request(a.history...), reply("tool_use", append(blocks, c)...))
	a.sent = append(a.sent, e.sent[0])
	a.history = append(a.history, said(c), result(fmt.Sprint("r", a.n), strings.Repeat(file+" holds this line\n", 120)))
	return e
}

// explore reads three files in an exploration.
func (a *worker) explore(name string) {
	a.round(`{"action":"start","name":"` + name + `","type":"expl"}`)
	a.round()
	a.round()
	a.round(`{"action":"end","description":"what ` + name + ` found"}`)
}

// TestRewindBehindAct: a client that goes back behind the request with which something left has it again, as it was sent then;
// and the history that it left goes on as it was, also after a restart.
func TestRewindBehindAct(t *testing.T) {
	a := &worker{r: newRig(t, episodic()), history: []string{text("user", "begin")}}
	for i := range 5 {
		a.explore(fmt.Sprint("part ", i))
	}
	last := a.r.exchange("", request(a.history...), reply("end_turn", textBlock("so"))).sent[0]
	if !evicted(last) || bytes.Contains(last, []byte("f1.go holds")) {
		t.Fatalf("nothing left: %s", last)
	}
	back := a.history[:9]
	for _, restarted := range []bool{false, true} {
		if restarted {
			a.r.restart()
		}
		if now := a.r.exchange("", request(back...), reply("end_turn", textBlock("so"))).sent[0]; !bytes.Equal(now, a.sent[4]) {
			t.Errorf("restarted %t: sent\n%s\nbefore\n%s", restarted, now, a.sent[4])
		}
		if now := a.r.exchange("", request(a.history...), reply("end_turn", textBlock("so"))).sent[0]; !bytes.Equal(now, last) {
			t.Errorf("restarted %t: the other history is sent\n%s\nbefore\n%s", restarted, now, last)
		}
	}
}

// TestInherited: an action may rest on what another track explored, as behind a client's own summary, and on nothing else.
func TestInherited(t *testing.T) {
	for _, restart := range []bool{false, true} {
		a := &worker{r: newRig(t, episodic()), history: []string{text("user", "begin")}}
		a.explore("where it is")
		a.round()
		if restart {
			a.r.restart()
		}
		b := &worker{r: a.r, history: []string{text("user", "a summary of it all")}}
		b.round(`{"action":"start","name":"fix","type":"act","dependencies":["no such"]}`, `{"action":"start","name":"fix","type":"act","dependencies":["where it is"]}`)
		e := b.round()
		got := map[string]bool{}
		for _, m := range e.messages(t, 0) {
			for _, x := range m.Content {
				got[x.ToolUseID] = x.IsError
			}
		}
		if !got["m1-0"] || got["m1-1"] {
			t.Errorf("restart %t: refused %v", restart, got)
		}
	}
}

// TestCountLeavesNothing: what is counted is what would be sent, and nothing leaves by it.
func TestCountLeavesNothing(t *testing.T) {
	a := &worker{r: newRig(t, episodic()), history: []string{text("user", "begin")}}
	for i := range 5 {
		ask := proxy.Ask{Body: request(a.history...), Count: true}
		x, err := a.r.c.Begin(t.Context(), ask)
		if err != nil {
			t.Fatal(err)
		}
		if a.explore(fmt.Sprint("part ", i)); !bytes.Equal(x.Body(), a.sent[4*i]) {
			t.Errorf("round %d: counted\n%s\nsent\n%s", i, x.Body(), a.sent[4*i])
		}
	}
	if !evicted(a.sent[len(a.sent)-1]) {
		t.Error("nothing left")
	}
}

// TestEpisodesTold: episodes of a track are told with what of each stands, also after a restart; a track that is not there is
// not found.
func TestEpisodesTold(t *testing.T) {
	a := &worker{r: newRig(t, episodic()), history: []string{text("user", "begin")}}
	for i := range 5 {
		a.explore(fmt.Sprint("part ", i))
	}
	a.round(`{"action":"start","name":"do it","type":"act","dependencies":["part 4"]}`)
	a.round()
	for _, restart := range []bool{false, true} {
		if restart {
			a.r.restart()
		}
		e, err := a.r.c.Episodes(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		gone := map[string]bool{}
		for _, s := range e.States {
			gone[s.Episode.Name] = s.Gone
			if something := e.Part[s.Episode.N]; s.Gone && !something || something && (s.Episode.Name == "part 4" || s.Episode.Name == "do it") {
				t.Errorf("restart %t: something left of %q: %t", restart, s.Episode.Name, something)
			}
		}
		if !e.Enabled || e.Budget != 6_000 || e.LowWater != 4_500 || e.Size == 0 || e.Open != "do it" || !gone["part 0"] || gone["part 4"] || gone["do it"] {
			t.Errorf("restart %t: %+v %v", restart, e, gone)
		}
	}
	if _, err := a.r.c.Episodes(context.Background(), "t9"); err == nil {
		t.Error("a track that is not there is told of")
	}
}

// TestZeroSettings: the zero value of the settings knows the file tools and has the paper's budget.
func TestZeroSettings(t *testing.T) {
	r := newRig(t, proxy.Settings{Treatment: proxy.Episodes, Window: 80_000})
	edit := call("e", "Edit", `{"file_path":"cache.go"}`)
	long := strings.Repeat("a line of this file\n", 5_000)
	a := &worker{r: r, history: []string{text("user", "begin")}}
	a.round(`{"action":"start","name":"bound it","type":"act","dependencies":[]}`)
	r.exchange("", request(a.history...), reply("tool_use", edit))
	a.history = append(a.history, said(edit), result("e", long))
	a.round(`{"action":"end"}`)
	for range 2 {
		a.round()
		a.history[len(a.history)-1] = result(fmt.Sprint("r", a.n), long)
	}
	if e, err := r.c.Episodes(t.Context(), ""); err != nil || e.Budget != 60_000 || e.LowWater != 45_000 { // what the window leaves
		t.Errorf("%+v, %v", e, err)
	}
	if a.round(); !bytes.Contains(a.sent[len(a.sent)-1], []byte(`action \"bound it\" (2 calls; changed cache.go)`)) {
		t.Errorf("sent %s", a.sent[len(a.sent)-1])
	}
}

// TestWarnsOnce: a budget that is missed with each exploration, and met when it ends, is one line in the server's log, and the
// model is told while it lasts.
func TestWarnsOnce(t *testing.T) {
	var log bytes.Buffer
	r := newRig(t, episodic())
	r.out = &log
	r.restart()
	a, told := &worker{r: r, history: []string{text("user", "begin")}}, 0
	for i := range 8 {
		a.round(fmt.Sprintf(`{"action":"start","name":"part %d","type":"expl"}`, i))
		for range 7 {
			a.round()
		}
		a.round(`{"action":"end","description":"what was found"}`)
	}
	begins := 0
	for i, b := range a.sent {
		if short := bytes.Contains(b, []byte("nothing more may leave")); short {
			if told++; !bytes.Contains(a.sent[i-1], []byte("nothing more may leave")) {
				begins++
			}
		}
	}
	if n := strings.Count(log.String(), "over the budget"); n != 1 || told < 8 || begins < 4 {
		t.Errorf("%d lines in the log, %d requests were short, %d times anew\n%s", n, told, begins, log.String())
	}
}

// TestAlone: where the model takes no part it gets no tool, and work leaves all the same; lines name no way back.
func TestAlone(t *testing.T) {
	s := episodic()
	s.Alone = true
	a := &worker{r: newRig(t, s), history: []string{text("user", "begin")}}
	for range 24 {
		a.round()
	}
	last := a.sent[len(a.sent)-1]
	if !evicted(last) || bytes.Contains(last, []byte("delimiter")) || bytes.Contains(last, []byte("memory_fault")) || bytes.Contains(last, []byte("episode:")) {
		t.Errorf("sent %s", last)
	}
}
