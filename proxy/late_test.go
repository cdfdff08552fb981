package proxy_test

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/proxy"
)

// TestRefusedAct: what left with a request that the API took only as it came did not leave: the log is told of nothing.
func TestRefusedAct(t *testing.T) {
	a := &worker{r: newRig(t, episodic()), history: []string{text("user", "begin")}}
	for i := range 40 {
		counted, err := a.r.c.Begin(t.Context(), proxy.Ask{Body: request(a.history...), Count: true})
		if err != nil {
			t.Fatal(err)
		}
		if !evicted(counted.Body()) {
			a.round([]string{fmt.Sprintf(`{"action":"start","name":"part %d","type":"expl"}`, i), `{"action":"end","description":"found"}`}[i%2])
			continue
		}
		x := a.r.begin(a.history...)
		if !x.Refused(400) || !bytes.Equal(x.Body(), request(a.history...)) {
			t.Fatalf("sent again is %s", x.Body())
		}
		a.r.answer(x, reply("end_turn", textBlock("so")))
		if edits, last := a.r.edits(proxy.Episodes), a.r.records[len(a.r.records)-1]; len(edits) > 0 || last.Episodes.Freed != 0 || last.Untouched == "" {
			t.Errorf("the log is told of %d edits; recorded %+v", len(edits), last.Episodes)
		}
		return
	}
	t.Fatal("nothing left")
}

// TestShortSays: a model is told of a budget that is not met, by how much, and what it can do about that, where it takes part.
func TestShortSays(t *testing.T) {
	for _, alone := range []bool{false, true} {
		s := episodic()
		s.Alone = alone
		a := &worker{r: newRig(t, s), history: []string{text("user", strings.Repeat("many words ", 3_000))}}
		a.round()
		last, e := string(a.sent[len(a.sent)-1]), a.newest()
		want := fmt.Sprintf("[Context: about %d tokens, %d over the budget of 6000, and nothing more may leave.", e.Size, e.Size-6_000)
		if !alone {
			want += " What is finished can: end the open episode, or mark what you do by delimiter."
		}
		if e.Short != e.Size-6_000 || e.Short <= 0 || strings.Count(last, textBlock(want+"]")) != 1 {
			t.Errorf("alone %t: %+v, want %q in %.200s … %s", alone, e, want, last, last[max(len(last)-300, 0):])
		}
	}
}

// TestNothingStored: of a thread of which nothing is stored yet there is nothing to tell but its budget.
func TestNothingStored(t *testing.T) {
	r := newRig(t, episodic())
	f := &full{DB: r.db}
	r.db, r.rt = f, atOnce{r.rt}
	r.restart()
	if _, err := r.c.Episodes(t.Context(), ""); err == nil {
		t.Error("a thread that is not there is told of")
	}
	f.table = "INSERT INTO entries("
	r.exchange("", request(text("user", "q")), reply("end_turn", textBlock("a")))
	e, err := r.c.Episodes(t.Context(), "")
	if err != nil || len(e.States) != 0 || e.Budget != 6_000 || e.LowWater != 4_500 || e.Size != 0 || e.Short != 0 || e.Open != "" || !e.Enabled {
		t.Errorf("%+v, %v", e, err)
	}
}

// work says of each piece of work what it is of.
func (r *rig) work() string {
	r.t.Helper()
	e, err := r.c.Episodes(r.t.Context(), "")
	if err != nil {
		r.t.Fatal(err)
	}
	var out []string
	for _, s := range e.States {
		out = append(out, fmt.Sprintf("%q %d calls of %d tokens, read %v, %v to %v, %d stand, gone %t", s.Episode.Name, s.Episode.Calls, s.Episode.Tokens, s.Episode.Read, s.Episode.From, s.Episode.To, s.Tokens, s.Gone))
	}
	return fmt.Sprint(e.Enabled, " ", e.Size, "\n", strings.Join(out, "\n"))
}

// TestEpisodesLate: where episodes are asked for behind a history that was paged, each piece of work is what the log has of it, in whatever
// form the client sends it now; and it is the same after a restart.
func TestEpisodesLate(t *testing.T) {
	s := episodic()
	s.Treatment, s.Episodes.Budget.Tokens = proxy.Page, 50_000
	r := newRig(t, s)
	history := []string{text("user", "begin")}
	for i := range 6 {
		c := call(fmt.Sprint("c", i), "Read", fmt.Sprintf(`{"file_path":"f%d.go"}`, i))
		answer := said(`{"type":"thinking","thinking":"hm","signature":"c2ln"}`, textBlock(fmt.Sprint("look ", i)), c)
		r.exchange(proxy.Page, request(history...), reply("tool_use", strings.TrimSuffix(strings.TrimPrefix(answer, `{"role":"assistant","content":[`), "]}")))
		history = append(history, answer, result(fmt.Sprint("c", i), strings.Repeat("a line\n", 100)))
	}
	for i, raw := range history {
		history[i] = strings.Replace(raw, `{"type":"thinking","thinking":"hm","signature":"c2ln"},`, "", 1)
		history[i] = strings.Replace(history[i], `"content":[{"type":"tool_result"`, `"content":[`+textBlock("<system-reminder>it is now</system-reminder>")+`,{"type":"tool_result"`, 1)
	}
	if off := r.work(); !strings.HasPrefix(off, "false ") {
		t.Errorf("where none may leave is told %s", off)
	}
	r.exchange(proxy.Episodes, request(history...), reply("end_turn", textBlock("so")))
	before := r.work()
	if n := len(regexp.MustCompile(`f\d\.go`).FindAllString(before, -1)); n != 6 || !strings.Contains(before, " 6 calls") || !strings.HasPrefix(before, "true ") {
		t.Errorf("of six reads is told %s", before)
	}
	r.restart()
	r.exchange(proxy.Episodes, request(append(history, spoke("so"), text("user", "on"))...), reply("end_turn", textBlock("so it is")))
	r.restart()
	a := r.work()
	r.restart()
	if b := r.work(); a != b || !strings.HasPrefix(strings.SplitN(a, "\n", 2)[1], strings.SplitN(before, "\n", 2)[1][:40]) {
		t.Errorf("after restarts\n%s\nand\n%s\nbefore\n%s", b, a, before)
	}
}

// TestGapOfThreads: a thread that was begun and never stored leaves a gap among those that were, which are the same after a restart.
func TestGapOfThreads(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	r.exchange("", request(text("user", "one")), reply("end_turn", textBlock("a")))
	r.refuse(r.begin(text("user", "two")), 529)
	r.exchange("", request(text("user", "three")), reply("end_turn", textBlock("b")))
	r.exchange("", request(text("user", "one"), spoke("a"), text("user", "instead")), reply("end_turn", textBlock("c")))
	r.exchange("", request(text("user", "one"), spoke("a"), text("user", "another")), reply("end_turn", textBlock("d")))
	before := r.exports()
	for range 2 {
		if got := r.told("") + " " + r.told("#t2") + " " + r.told("#t3") + " " + r.told("#t4"); got != "one|a,instead  three one|a,instead|another" {
			t.Errorf("the threads are %q", got)
		}
		r.restart()
	}
	r.exchange("", request(text("user", "two")), reply("end_turn", textBlock("e")))
	if got := r.told("#t5"); got != "two" || !strings.HasPrefix(r.exports(), before[:strings.IndexByte(before, '\n')]) {
		t.Errorf("the thread that comes back is %q", got)
	}
	rows, err := r.db.Query(t.Context(), `SELECT n, name, base, steps FROM proxy_tracks WHERE key = ? ORDER BY n LIMIT 9`, string(key))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range rows {
		got = append(got, fmt.Sprint(row.Int(0), " ", row.Text(1), " ", row.Int(2), " ", row.Int(3)))
	}
	if want := "0  -1 0|2 t3 -1 0|3 t4 0 2|4 t5 -1 0"; strings.Join(got, "|") != want {
		t.Errorf("stored as %q, want %q", strings.Join(got, "|"), want)
	}
}

// evicted reports whether a line stands in a request for what left; our own tools speak of such lines, too.
func evicted(raw []byte) bool {
	return bytes.Contains(raw[bytes.Index(raw, []byte(`"messages":`)):], []byte("[Evicted "))
}

// TestActOfTwo: what left with a request that came twice at once is stored with the one that is answered, though the other is refused.
func TestActOfTwo(t *testing.T) {
	a := &worker{r: newRig(t, episodic()), history: []string{text("user", "begin")}}
	for i := range 40 {
		counted, err := a.r.c.Begin(t.Context(), proxy.Ask{Body: request(a.history...), Count: true})
		if err != nil {
			t.Fatal(err)
		}
		if !evicted(counted.Body()) {
			a.round([]string{fmt.Sprintf(`{"action":"start","name":"part %d","type":"expl"}`, i), `{"action":"end","description":"found"}`}[i%2])
			continue
		}
		x, y := a.r.begin(a.history...), a.r.begin(a.history...)
		if !bytes.Equal(x.Body(), y.Body()) || !bytes.Equal(x.Body(), counted.Body()) {
			t.Errorf("sent\n%s\nand\n%s", x.Body(), y.Body())
		}
		a.r.refuse(x, 529)
		a.r.answer(y, reply("end_turn", textBlock("so")))
		if e := a.newest(); e.Freed == 0 || e.Whole+e.Part == 0 || len(a.r.edits(proxy.Episodes)) == 0 {
			t.Errorf("recorded %+v, the log is told of %d edits", e, len(a.r.edits(proxy.Episodes)))
		}
		told := len(a.r.edits(proxy.Episodes))
		a.history = append(a.history, spoke("so"), text("user", "on"))
		e := a.r.exchange("", request(a.history...), reply("end_turn", textBlock("well")))
		if !evicted(e.sent[0]) || a.newest().Freed != 0 || len(a.r.edits(proxy.Episodes)) != told {
			t.Errorf("the next one: %+v, %d edits", a.newest(), len(a.r.edits(proxy.Episodes)))
		}
		return
	}
	t.Fatal("nothing left")
}

// TestEmptyAnswer: an answer without a word is no message of the history; the client says more.
func TestEmptyAnswer(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	r.exchange("", request(text("user", "q")), reply("end_turn"))
	r.exchange("", request(text("user", "q"), text("user", "more")), reply("end_turn", textBlock("a")))
	if got, told := logOf(r), r.told(""); got != "q|more|a" || told != "q|more" || len(r.events("cut")) != 0 {
		t.Errorf("the log has %q, the requests %q", got, told)
	}
	same(t, r)
}

// TestStoredAtOnce: what the client sent is stored when the answer begins, also where the client leaves then.
func TestStoredAtOnce(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	r.rt = atOnce{r.rt}
	r.restart()
	x := r.begin(text("user", "q"))
	gone, leave := context.WithCancel(t.Context())
	leave()
	if !x.Answer(gone, 200, false) || logOf(r) != "q" {
		t.Errorf("the log has %q", logOf(r))
	}
	x.Broken(gone, nil)
	if got, list := logOf(r), r.events("cut"); got != "q" || len(list) != 1 || r.records[0].Error != "" {
		t.Errorf("the log has %q, events %+v", got, list)
	}
}

// TestCountOfSour: where the API takes only what came, the size that is asked for is of that.
func TestCountOfSour(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	x := r.begin(text("user", "q"))
	if !x.Refused(400) {
		t.Fatal("not sent again")
	}
	r.answer(x, reply("end_turn", textBlock("a")))
	for _, history := range [][]string{{text("user", "q"), spoke("a"), text("user", "b")}, {text("user", "q"), spoke("other"), text("user", "b")}, {text("user", "another")}} {
		x, err := r.c.Begin(t.Context(), proxy.Ask{Body: request(history...), Count: true})
		if err != nil {
			t.Fatal(err)
		}
		sour := history[0] == text("user", "q")
		if kind, _ := x.Untouched(); bytes.Equal(x.Body(), request(history...)) != sour || (kind == proxy.Refused) != sour || x.Answer(t.Context(), 200, false) {
			t.Errorf("%q: counted %s, %s", history, kind, x.Body())
		}
		if out, err := x.Finish(t.Context()); out != nil || err != nil || !r.c.Idle() {
			t.Errorf("%q: the client gets %s, %v", history, out, err)
		}
	}
}
