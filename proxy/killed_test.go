package proxy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/proxy"
)

// TestRefusedIsNoWork: calls of the tool that were refused make no episode and leave no line of their own.
func TestRefusedIsNoWork(t *testing.T) {
	a := &worker{r: newRig(t, episodic()), history: []string{text("user", "begin")}}
	for i := range 6 {
		a.r.exchange("", request(a.history...), reply("tool_use", call(fmt.Sprint("x", i), "delimiter", `{"action":"end"}`)), reply("end_turn", textBlock("well")))
		a.explore(fmt.Sprint("part ", i))
		a.round(`{"action":"end"}`, fmt.Sprintf(`{"action":"start","name":"do %d","type":"act","dependencies":[]}`, i))
		a.round(`{"action":"start","name":"other","type":"expl"}`)
		a.round(`{"action":"end"}`)
	}
	last := a.sent[len(a.sent)-1]
	if !evicted(last) || bytes.Contains(last, []byte("0 calls")) {
		t.Errorf("sent %s", last)
	}
	e, err := a.r.c.Episodes(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range e.States {
		if s.Episode.Calls == 0 {
			t.Errorf("%s is of no call: %+v", s.Episode, *s.Episode)
		}
	}
}

// full is a database that stores nothing of a table.
type full struct {
	tidemark.DB
	table string
}

func (f *full) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	for _, s := range stmts {
		if f.table != "" && strings.Contains(s.SQL, f.table) {
			return errors.New("the disk is full")
		}
	}
	return f.DB.Tx(ctx, stmts)
}

// atOnce is a runtime that does at once what others do beside.
type atOnce struct{ tidemark.Runtime }

func (atOnce) Go(f func()) { f() }

// TestKilledBeforeAct: who is killed between a request with which something left and the storing of that, sends the same when the
// client asks again; and so does one whose store failed there, whatever follows.
func TestKilledBeforeAct(t *testing.T) {
	for _, row := range []struct {
		name string
		end  func(*worker, *full, *proxy.Exchange)
	}{
		{"sent", func(*worker, *full, *proxy.Exchange) {}},
		{"answered, its messages stored", func(a *worker, f *full, x *proxy.Exchange) {
			f.table = "proxy_edits"
			if !x.Answer(a.r.t.Context(), 200, false) {
				a.r.t.Fatal("the answer is not taken")
			}
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			a := &worker{r: newRig(t, episodic()), history: []string{text("user", "begin")}}
			f := &full{DB: a.r.db}
			a.r.db, a.r.rt = f, atOnce{a.r.rt}
			a.r.restart()
			killed := 0
			for i := range 24 {
				switch i % 4 {
				case 0:
					a.round(fmt.Sprintf(`{"action":"start","name":"part %d","type":"expl"}`, i))
				case 3:
					a.round(`{"action":"end","description":"found"}`)
				default:
					a.round()
				}
				x, err := a.r.c.Begin(t.Context(), proxy.Ask{Body: request(a.history...)})
				if err != nil {
					t.Fatal(err)
				}
				before := bytes.Clone(x.Body())
				row.end(a, f, x)
				f.table = ""
				a.r.restart()
				now := a.r.exchange("", request(a.history...), reply("end_turn", textBlock("so"))).sent[0]
				if !bytes.Equal(before, now) {
					t.Fatalf("round %d: sent\n%s\nafter a kill\n%s", i, before, now)
				}
				if e := a.r.records[len(a.r.records)-1].Episodes; e.Freed > 0 {
					killed++
				}
				a.history = append(a.history, said(textBlock("so")), text("user", fmt.Sprint("go on ", i)))
			}
			if killed < 2 {
				t.Errorf("something left with %d requests", killed)
			}
		})
	}
}

// TestLineOfMarksThatStandAlone: an episode that began in a reply of nothing but calls of ours has its line when all of it left.
func TestLineOfMarksThatStandAlone(t *testing.T) {
	a := &worker{r: newRig(t, episodic()), history: []string{text("user", "begin")}}
	a.explore("zed")
	mark := func(id, in string) string { return call(id, "delimiter", in) }
	a.r.exchange("", request(a.history...), reply("tool_use", mark("x1", `{"action":"start","name":"alpha","type":"expl"}`),
		mark("x2", `{"action":"end","description":"alpha found"}`), mark("x3", `{"action":"start","name":"beta","type":"expl"}`)), reply("end_turn", textBlock("what now?")))
	a.history = append(a.history, said(textBlock("what now?")), text("user", "go on with beta"))
	for range 4 {
		a.round()
	}
	a.round(`{"action":"end","description":"beta found"}`)
	a.explore("gamma")
	a.explore("delta")
	a.round()
	e, err := a.r.c.Episodes(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	gone, last := 0, a.sent[len(a.sent)-1]
	for _, s := range e.States {
		if !s.Gone || s.Episode.Name == "" {
			continue
		}
		if gone++; !bytes.Contains(last, []byte(`exploration \"`+s.Episode.Name+`\"`)) {
			t.Errorf("%s left without a line: %s", s.Episode, last)
		}
	}
	if gone < 3 {
		t.Errorf("%d episodes left whole", gone)
	}
}
