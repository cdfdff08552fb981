package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// toldWindows is an endpoint that says what models take.
type toldWindows struct {
	known, tells map[string]tidemark.Tokens
	fail         error
	asked        []string
}

func (*toldWindows) Place() string                        { return "here" }
func (w *toldWindows) Known(model string) tidemark.Tokens { return w.known[model] }
func (w *toldWindows) Window(_ context.Context, model string) (tidemark.Window, error) {
	w.asked = append(w.asked, model)
	return tidemark.Window{Tokens: w.tells[model], From: tidemark.WindowEndpoint}, w.fail
}

// windowsOf is an agent that keeps windows.
type windowsOf struct {
	silent
	has  []tidemark.Window
	told [][]tidemark.Window
	fail error
}

func (k *windowsOf) Windows(_ context.Context, learned []tidemark.Window) ([]tidemark.Window, error) {
	k.told = append(k.told, learned)
	return k.has, k.fail
}

// windowNames gives windows as name=tokens from, sorted.
func windowNames(list []tidemark.Window) string {
	var out []string
	for _, w := range list {
		out = append(out, fmt.Sprintf("%s=%d %.4s", w.Model, w.Tokens, string(w.From)))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// TestWindowsFoundOut: the agent is told what requests met and asked what it has, then the endpoint is asked for what is not
// known of the models in use; what it says is told to the agent, and nobody is asked again for a while.
func TestWindowsFoundOut(t *testing.T) {
	is, agent := &toldWindows{tells: map[string]tidemark.Tokens{"big": 50_000}}, &windowsOf{}
	s, rt := plain(t, Config{Agent: agent, Windows: is, Settings: Settings{Model: "big", SummaryModel: "small", Window: 100_000}})
	agent.has = []tidemark.Window{{Model: "here small", Tokens: 8_000, From: tidemark.WindowEndpoint, Until: rt.now.Add(time.Hour)}, {Model: "here other", Tokens: 1, From: tidemark.WindowEndpoint, Until: rt.now.Add(time.Hour)}}
	s.does(t, `UPDATE heads SET prompt = 'frozen' WHERE key = ?`, string(s.Key))
	s.freshWindows(t.Context())
	if got := strings.Join(is.asked, " "); got != "big" { // the agent knew the other
		t.Errorf("asked for %q", got)
	}
	if s.Window().Tokens != 50_000 || s.summaryWindow() != 8_000 || s.settings().Window != 50_000 || s.chunkSize() != 2_000 {
		t.Errorf("it uses %+v, for summaries %d, chunks of %d", s.Window(), s.summaryWindow(), s.chunkSize())
	}
	if len(agent.told) != 2 || len(agent.told[0]) != 0 || windowNames(agent.told[1]) != "here big=50000 endp" {
		t.Errorf("the agent was told %+v", agent.told)
	}
	if got := s.reads(t, `SELECT prompt FROM heads WHERE key = ? LIMIT 1`, string(s.Key)); got != "" {
		t.Errorf("the prompt is %q", got)
	}
	if _, other := (*s.learned.Load())["here other"]; other || len(*s.learned.Load()) != 2 {
		t.Errorf("known are %+v", *s.learned.Load())
	}
	stored := s.reads(t, `SELECT windows FROM heads WHERE key = ? LIMIT 1`, string(s.Key))
	later, err := Open(t.Context(), s.Config)
	if err != nil || windowNames(slices.Collect(maps.Values(*later.learned.Load()))) != "here big=50000 endp, here small=8000 endp" {
		t.Errorf("a later life knows %+v of %s, %v", *later.learned.Load(), stored, err)
	}
	is.tells = nil
	for _, c := range []struct {
		pass  time.Duration
		asked string
	}{{0, "big"}, {time.Hour, "big"}, {time.Millisecond, "big big small"}, {10*time.Minute - time.Millisecond, "big big small"}, {2 * time.Millisecond, "big big small big small"}} {
		rt.now = rt.now.Add(c.pass)
		s.freshWindows(t.Context())
		if got := strings.Join(is.asked, " "); got != c.asked {
			t.Errorf("%s later asked for %q, want %q", c.pass, got, c.asked)
		}
	}
	if s.Window().Tokens != 50_000 || s.summaryWindow() != 8_000 {
		t.Errorf("its last word holds no more: %+v, %d", s.Window(), s.summaryWindow())
	}
	n := len(agent.told)
	s.Windows = nil
	rt.now = rt.now.Add(time.Hour)
	s.freshWindows(t.Context())
	if len(agent.told) != n || s.windowName("big") != "big" {
		t.Errorf("without an endpoint the agent is asked %d times, %s", len(agent.told)-n, s.windowName("big"))
	}
}

// TestWindowsMet: what requests met is told to an agent that was away, the newest eight; where the endpoint says nothing, it is
// not taken for its word, and it is forgotten when it is old.
func TestWindowsMet(t *testing.T) {
	agent := &windowsOf{fail: errors.New("away")}
	s, rt := plain(t, Config{Agent: agent, Windows: &toldWindows{}, Settings: Settings{Model: "m"}})
	known := learned{"here told": {Model: "here told", Tokens: 5, From: tidemark.WindowEndpoint, Until: rt.now.Add(time.Hour)}}
	for i := range 10 {
		name := fmt.Sprintf("here m%d", i)
		known[name] = tidemark.Window{Model: name, Tokens: 9_000, From: tidemark.WindowRefused, Until: rt.now.Add(time.Duration(i) * time.Hour)}
	}
	s.learned.Store(&known)
	own := s.ownWindows()
	if len(own) != 8 || own[0].Model != "here m9" || own[7].Model != "here m2" {
		t.Errorf("its own are %s", windowNames(own))
	}
	if got := s.pooled(t.Context(), own); got != nil || len(agent.told) != 1 || len(agent.told[0]) != 8 {
		t.Errorf("an agent that is away has %+v, was told %d times", got, len(agent.told))
	}
	rt.now = rt.now.Add(3*time.Hour + time.Millisecond)
	if err := s.takeUp(t.Context(), []tidemark.Window{{Model: "here m", Tokens: 7_000, From: tidemark.WindowEndpoint, Until: rt.now.Add(time.Hour)}}); err != nil {
		t.Fatal(err)
	}
	left := slices.Collect(maps.Values(*s.learned.Load()))
	if got := windowNames(left); got != "here m4=9000 refu, here m5=9000 refu, here m6=9000 refu, here m7=9000 refu, here m8=9000 refu, here m9=9000 refu, here m=7000 endp, here told=5 endp" {
		t.Errorf("known are %s", got)
	}
	h := &hooked{DB: s.DB}
	s.DB = h
	if err := s.takeUp(t.Context(), []tidemark.Window{{Model: "here other", Tokens: 3_000, From: tidemark.WindowRefused, Until: rt.now.Add(time.Hour)}}); err != nil || h.writes != 0 {
		t.Errorf("what is of no model in use is stored %d times, %v", h.writes, err)
	}
	if got := s.staleWindows(rt.now); len(got) != 0 {
		t.Errorf("not known are %q", got)
	}
	if got := s.staleWindows(rt.now.Add(time.Hour)); len(got) != 0 {
		t.Errorf("not known at the end of their time are %q", got)
	}
	if got := s.staleWindows(rt.now.Add(time.Hour + time.Nanosecond)); !slices.Equal(got, []string{"m"}) {
		t.Errorf("not known any more are %q", got)
	}
	s.does(t, `UPDATE heads SET prompt = 'frozen' WHERE key = ?`, string(s.Key))
	if err := s.takeUp(t.Context(), []tidemark.Window{{Model: "here m", Tokens: 7_000, From: tidemark.WindowRefused, Until: rt.now.Add(2 * time.Hour)}}); err != nil || s.reads(t, `SELECT prompt FROM heads WHERE key = ? LIMIT 1`, string(s.Key)) != "frozen" || s.Window().From != tidemark.WindowRefused {
		t.Errorf("a window of the same size makes the prompt anew: %v, %+v", err, s.Window())
	}
	agent.fail = nil
	agent.has = []tidemark.Window{{Model: "here m", Tokens: 6_000, From: tidemark.WindowRefused, Until: rt.now.Add(30 * time.Hour)}}
	if err := s.learn(t.Context(), "m", 6_500, tidemark.WindowHalved); err != nil || s.Window().Tokens != 6_000 || windowNames(agent.told[len(agent.told)-1]) != "here m=6500 halv" {
		t.Errorf("learned %+v, told %+v, %v", s.Window(), agent.told[len(agent.told)-1], err)
	}
}

// refusingTools is a toolbox that is told which definitions are refused.
type refusingTools struct {
	tidemark.Toolbox
	told []string
}

func (r *refusingTools) Refused(name, mark, why string) {
	r.told = append(r.told, name+" "+mark+" "+why)
}

// TestRefusedTools: a tool is left out for the model that refused its definition, until it has another one; those that are kept
// of too many are the newest. Only a toolbox that marks its tools is told.
func TestRefusedTools(t *testing.T) {
	a, b := tidemark.Tool{Name: "a", Description: "d", InputSchema: []byte(`{}`), Mark: "m1"}, tidemark.Tool{Name: "b", Description: "d", InputSchema: []byte(`{}`)}
	changed := a
	changed.Description = "e"
	shape := a
	shape.InputSchema = []byte(`{"type":"object"}`)
	for _, c := range []struct {
		name  string
		tools []tidemark.Tool
		model string
		want  string
	}{{"refused", []tidemark.Tool{a, b}, "m", "b"}, {"of another model", []tidemark.Tool{a, b}, "n", "a b"}, {"with another description", []tidemark.Tool{changed, b}, "m", "a b"}, {"with another schema", []tidemark.Tool{shape}, "m", "a"}} {
		if got := toolNames(unrefused(slices.Clone(c.tools), map[string]refusedTool{"a": {Model: "m", Hash: definitionHash(a)}}, c.model)); strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q are offered", c.name, got)
		}
	}
	if got := toolNames(unrefused([]tidemark.Tool{a, b}, nil, "m")); len(got) != 2 {
		t.Errorf("none are refused: %q are offered", got)
	}
	box := &refusingTools{}
	s, _ := plain(t, Config{Settings: Settings{Model: "m"}})
	s.Tools = box
	many := map[string]refusedTool{}
	for i := range maxRefusedTools - 1 {
		many[fmt.Sprint("gone", i)] = refusedTool{}
	}
	s.refusedTools.Store(&many)
	for _, c := range []struct {
		tool tidemark.Tool
		know int
		told int
	}{{a, 128, 1}, {b, 1, 1}, {a, 2, 2}} {
		stmts, kept := s.refuse([]tidemark.Tool{c.tool}, "odd")
		if err := s.DB.Tx(t.Context(), stmts); err != nil {
			t.Fatal(err)
		}
		kept()
		known := *s.refusedTools.Load()
		if r := known[c.tool.Name]; len(known) != c.know || len(box.told) != c.told || r != (refusedTool{Model: "m", Hash: definitionHash(c.tool), Mark: c.tool.Mark, Why: "odd"}) {
			t.Errorf("%s: %d are known, %+v, told %q", c.tool.Name, len(known), r, box.told)
		}
	}
	if box.told[0] != "a m1 odd" {
		t.Errorf("told %q", box.told)
	}
	box.told = nil
	if _, err := Open(t.Context(), s.Config); err != nil || len(box.told) != 1 {
		t.Errorf("a later life tells %q, %v", box.told, err)
	}
	if stmts, kept := s.refuse(nil, "odd"); stmts != nil || kept == nil {
		t.Errorf("none: %d statements", len(stmts))
	}
}

// TestLeftOutTools: of tools for which an API has no room people are told once, ten by name.
func TestLeftOutTools(t *testing.T) {
	s, _ := plain(t, Config{})
	r := s.begun(t, "r", stateCalling)
	names := func(n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprint("t", i))
		}
		return out
	}
	for _, n := range []int{0, 2, 2, 10, 11, 11} {
		if err := s.tellLeftOut(t.Context(), r, tidemark.Reply{LeftOut: names(n)}); err != nil {
			t.Fatal(err)
		}
	}
	const ten = "t0, t1, t2, t3, t4, t5, t6, t7, t8, t9"
	want := strings.Join([]string{"It goes without 2 of them: t0, t1.", "It goes without 10 of them: " + ten + ".", "It goes without 11 of them: " + ten + ", …."}, ", ")
	if got := strings.ReplaceAll(s.notices(t), "The model's API takes no more tools. ", ""); got != want {
		t.Errorf("told %q, want %q", got, want)
	}
	if err := s.tellLeftOut(t.Context(), r, tidemark.Reply{LeftOut: names(11), Unfit: []string{"A picture is left out: it is empty.", "And another."}}); err != nil {
		t.Fatal(err)
	}
	if got := s.notices(t); !strings.HasSuffix(got, ", …., A picture is left out: it is empty.\nAnd another.") {
		t.Errorf("told %q", got)
	}
}
