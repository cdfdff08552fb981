package session

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// learnedOf is what was learned of the window of a model, as it is stored.
func learnedOf(t *testing.T, s *Session, model string) tidemark.Window {
	t.Helper()
	var known map[string]tidemark.Window
	if err := json.Unmarshal([]byte(s.reads(t, `SELECT windows FROM heads WHERE key = ? LIMIT 1`, string(s.Key))), &known); err != nil {
		t.Fatal(err)
	}
	return known[s.windows.Name(model)]
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
		at    int64
		want  string
	}{{"refused", []tidemark.Tool{a, b}, "m", 999, "b"}, {"a day later", []tidemark.Tool{a, b}, "m", 1000, "a b"}, {"of another model", []tidemark.Tool{a, b}, "n", 0, "a b"}, {"with another description", []tidemark.Tool{changed, b}, "m", 0, "a b"}, {"with another schema", []tidemark.Tool{shape}, "m", 0, "a"}} {
		if got := toolNames(unrefused(slices.Clone(c.tools), map[string]refusedTool{"a": {Model: "m", Hash: definitionHash(a), Until: 1000}}, c.model, time.UnixMilli(c.at))); strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q are offered", c.name, got)
		}
	}
	if got := toolNames(unrefused([]tidemark.Tool{a, b}, nil, "m", time.Time{})); len(got) != 2 {
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
		if r := known[c.tool.Name]; len(known) != c.know || len(box.told) != c.told || r != (refusedTool{Model: "m", Hash: definitionHash(c.tool), Mark: c.tool.Mark, Why: "odd", Until: 1_700_000_000_000 + 24*3600_000}) {
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
