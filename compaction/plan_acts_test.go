package compaction

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// TestBudgetShares: what of a window is for what.
func TestBudgetShares(t *testing.T) {
	for _, row := range []struct {
		window, reserve, allowance, room, least, gain, over tidemark.Tokens
		previews                                            int
	}{
		{12_000, 2_000, 1500, 10_500, 375, 500, 1, 5},
		{11_992, 0, 1499, 11_992, 374, 500, 1, 5},
		{12_008, 4_008, 1500, 10_507, 375, 500, 1, 4},
		{8_000, 2_000, 1000, 7_000, 250, 500, 1, 3},
		{7_984, 4_000, 998, 6_986, 249, 499, 1, 1},
		{200_000, 20_000, 1500, 180_000, 6_250, 500, 1, 8},
		{4_000, 2_001, 500, 3_500, 125, 250, 1, 0},
	} {
		b := Budget{Window: row.window, Reserve: row.reserve}
		if b.allowance() != row.allowance || b.Room() != row.room || b.LeastReply() != row.least || previewed(b) != row.previews {
			t.Errorf("%d, %d reserved: %d for a summary, %d to send, %d for a reply, %d previews", row.window, row.reserve, b.allowance(), b.Room(), b.LeastReply(), previewed(b))
		}
		if at, over := b.minGain(View{Size: row.room}), b.minGain(View{Size: row.room + 1}); at != row.gain || over != row.over {
			t.Errorf("%d, %d reserved: at least %d have to be freed, and of too much %d", row.window, row.reserve, at, over)
		}
	}
	b := Budget{Window: 1000, Reserve: 200, Keep: 300}
	for size, want := range map[tidemark.Tokens]bool{800: false, 801: true} {
		if b.Over(View{Size: size}) != want {
			t.Errorf("%d of 800 are too many: %v", size, !want)
		}
	}
	for _, row := range []struct {
		size    tidemark.Tokens
		refused bool
		want    bool
	}{{1499, false, false}, {1500, false, false}, {1501, false, true}, {1000, true, false}, {1001, true, true}} {
		if v := (View{Size: row.size, Refused: row.refused}); b.hopeless(v) != row.want {
			t.Errorf("%d of 1000, refused: %v, no model takes: %v", row.size, row.refused, !row.want)
		}
	}
	for _, row := range []struct{ size, fixed, keep, want tidemark.Tokens }{
		{600, 0, 300, 300}, {1200, 0, 300, 150}, {300, 0, 300, 300}, {600, 0, 401, 400}, {1000, 400, 300, 200}, {1500, 900, 300, 0},
	} {
		v := View{Items: scripted("u=600"), Size: row.size, Fixed: row.fixed}
		if got := (Budget{Window: 1000, Reserve: 200, Keep: row.keep}).verbatim(v); got != row.want {
			t.Errorf("keep %d of %d, %d fixed: %d stay, want %d", row.keep, row.size, row.fixed, got, row.want)
		}
	}
}

// TestTooLarge: what a person said last, all of it, beside the fixed part, against what may be sent.
func TestTooLarge(t *testing.T) {
	b := Budget{Window: 8000, Reserve: 2000} // 7,000 may be sent
	for _, row := range []struct {
		items string
		fixed tidemark.Tokens
		size  tidemark.Tokens
		too   bool
	}{{"u=7000", 0, 7000, false}, {"u=7001", 0, 7001, true}, {"u=6900", 101, 6900, true}, {"u=6900", 100, 6900, false}, {"u=9000 a u=1 u=2", 0, 3, false}, {"a", 8000, 0, false}, {"u=4000 u=3001 a", 0, 7001, true}} {
		if size, too := (View{Items: scripted(row.items), Fixed: row.fixed}).TooLarge(b); size != row.size || too != row.too {
			t.Errorf("%q, %d fixed: %d, %v", row.items, row.fixed, size, too)
		}
	}
}

// planner is a strategy that plans what a test says, and notes which entries it was shown and in what window.
type planner struct {
	name  string
	edits []tidemark.Edit
	saw   *[]string
}

func (p planner) Name() string { return p.name }

func (p planner) Plan(v View, b Budget) []tidemark.Edit {
	s := fmt.Sprintf("%s/%d:", p.name, b.Window)
	for i := range v.Items {
		s += " " + string(v.Items[i].From)
	}
	*p.saw = append(*p.saw, s)
	return p.edits
}

// soon is a planner with a limit of its own.
type soon struct {
	planner
	limit tidemark.Tokens
}

func (s soon) Limit(Budget) tidemark.Tokens { return s.limit }

// pressed is a planner that has another budget when it is forced.
type pressed struct{ planner }

func (pressed) urge(_ View, b Budget) Budget {
	b.Window = 77
	return b
}

// TestPlanOrder: each strategy plans on what the former left, those with a limit of their own at that, and the others when
// the view is over the common one; whoever is forced is, until one that the limit is for has acted.
func TestPlanOrder(t *testing.T) {
	out := func(from, to tidemark.EntryID) []tidemark.Edit { return []tidemark.Edit{{From: from, To: to}} }
	sum := []tidemark.Edit{{From: "e1", Block: 1, Blocks: []tidemark.Block{tidemark.Text("s")}}, {From: "e3", To: "e4", Summarize: true}}
	for _, row := range []struct {
		name  string
		size  tidemark.Tokens // what the view counts
		force bool
		list  func(saw *[]string) []Strategy
		saw   string
		want  string // edits
		act   string // by whom, which edit is the summary, early, short
	}{
		{"nothing is due", 1000, false, func(saw *[]string) []Strategy {
			return []Strategy{soon{planner{"early", out("e1", "e1"), saw}, 1000}, planner{"late", out("e2", "e2"), saw}}
		}, "", "", "[] -1 true 0"},
		{"one with a limit of its own", 1000, false, func(saw *[]string) []Strategy {
			return []Strategy{soon{planner{"early", out("e1", "e2"), saw}, 999}, planner{"late", out("e3", "e3"), saw}}
		}, "early/4000: e1 e2 e3 e4", "e1-e2", "[early] -1 true 0"},
		{"both", 8000, false, func(saw *[]string) []Strategy {
			return []Strategy{soon{planner{"early", []tidemark.Edit{{From: "e1", Block: 1, Blocks: []tidemark.Block{tidemark.Text("s")}}}, saw}, 999}, planner{"late", out("e1", "e3"), saw}}
		}, "early/4000: e1 e2 e3 e4|late/4000: e1 e2 e3 e4", "e1-e3", "[early late] -1 false 0"},
		{"it left enough", 4001, false, func(saw *[]string) []Strategy {
			return []Strategy{planner{"late", out("e1", "e3"), saw}, planner{"last", out("e4", "e4"), saw}}
		}, "late/4000: e1 e2 e3 e4", "e1-e3", "[late] -1 false 0"},
		{"forced", 1000, true, func(saw *[]string) []Strategy {
			return []Strategy{soon{planner{"early", out("e1", "e1"), saw}, 9000}, pressed{planner{"late", out("e2", "e2"), saw}}, planner{"last", out("e4", "e4"), saw}}
		}, "early/4000: e1 e2 e3 e4|late/77: e2 e3 e4", "e1-e1 e2-e2", "[early late] -1 false 0"},
		{"forced, and the first has nothing", 1000, true, func(saw *[]string) []Strategy {
			return []Strategy{planner{"idle", nil, saw}, planner{"late", sum, saw}, planner{"last", out("e4", "e4"), saw}}
		}, "idle/4000: e1 e2 e3 e4|late/4000: e1 e2 e3 e4", "e1#1 e3-e4", "[late] 1 false 0"},
		{"not forced, it keeps its budget", 4400, false, func(saw *[]string) []Strategy {
			return []Strategy{pressed{planner{"late", out("e2", "e3"), saw}}}
		}, "late/4000: e1 e2 e3 e4", "e2-e3", "[late] -1 false 0"},
	} {
		var saw []string
		v := View{Items: scripted("u=1000 a=1000 u=1000 a=1000"), Size: row.size, Loose: 3}
		act, err := Plan(row.list(&saw), v, Budget{Window: 4000}, row.force)
		if (len(act.Edits) == 0) != errors.Is(err, tidemark.ErrNoGain) || err != nil && len(act.Edits) > 0 || act.Loose != 3 {
			t.Errorf("%s: %v, %d loose", row.name, err, act.Loose)
		}
		if got := strings.Join(saw, "|"); got != row.saw {
			t.Errorf("%s: saw %s\nwant %s", row.name, got, row.saw)
		}
		if got, said := toldAll(act.Edits), fmt.Sprint(act.By, act.Summarize, act.Early, act.Short); got != row.want || said != row.act {
			t.Errorf("%s: %s, %s; want %s, %s", row.name, got, said, row.want, row.act)
		}
	}
}

// TestPlanSummaryBesideCut: where what is sent whole is cut, the edit that a model must write is told by its place in the act,
// whatever of what was planned before is replaced.
func TestPlanSummaryBesideCut(t *testing.T) {
	long := func(n int) tidemark.Block { return tidemark.Text(strings.Repeat("a word ", n/7)) }
	v := saying(of(tidemark.User, long(3000)), of(tidemark.Assistant, long(3000)), of(tidemark.User, long(60_000)))
	var saw []string
	act, err := Plan([]Strategy{planner{"late", []tidemark.Edit{{From: "e3", Block: 1, Blocks: []tidemark.Block{long(50_000)}}, {From: "e1", To: "e2", Summarize: true}}, &saw}}, v, Budget{Window: 8000, Reserve: 2000}, false)
	if err != nil || toldAll(act.Edits) != "e1-e2 e3#1" || act.Summarize != 0 || fmt.Sprint(act.By) != "[late cut]" || act.Early || act.Short > 1000 {
		t.Errorf("%s, the summary is %d, by %v, %v", toldAll(act.Edits), act.Summarize, act.By, err)
	}
}

// TestPlanLeavesLead: words before everything are shown to no strategy and count as fixed.
func TestPlanLeavesLead(t *testing.T) {
	var saw []string
	v := scriptedView("P=500 u=1000 a=1000 u=1000")
	act, err := Plan([]Strategy{planner{"late", []tidemark.Edit{{From: "e2", To: "e3"}}, &saw}}, v, Budget{Window: 3000}, false)
	if err != nil || fmt.Sprint(saw) != "[late/3000: e2 e3 e4]" || act.Short != 0 {
		t.Errorf("%v, %+v, %v", saw, act, err)
	}
}

// TestDue: who has a limit of its own is asked above it, the others above the common one.
func TestDue(t *testing.T) {
	early, late := soon{planner{name: "early"}, 500}, planner{name: "late"}
	for _, row := range []struct {
		size        tidemark.Tokens
		early, late bool
	}{{500, false, false}, {501, true, false}, {1000, true, false}, {1001, true, true}} {
		v, b := View{Size: row.size}, Budget{Window: 1000}
		if Due([]Strategy{early}, v, b) != row.early || Due([]Strategy{late}, v, b) != row.late || Due([]Strategy{late, early}, v, b) != (row.early || row.late) || Due(nil, v, b) {
			t.Errorf("%d: early %v, late %v", row.size, Due([]Strategy{early}, v, b), Due([]Strategy{late}, v, b))
		}
	}
	if got := Early([]Strategy{late, early, late}); len(got) != 1 || got[0].Name() != "early" {
		t.Errorf("early are %v", got)
	}
}

// TestUrge: who is forced plans as if the view had just come over its limit, and keeps the budget where it is over it.
func TestUrge(t *testing.T) {
	b := Budget{Window: 10_000, Reserve: 1000}
	for _, row := range []struct{ size, want tidemark.Tokens }{{9000, 10_000}, {5000, 6000}, {9001, 10_000}, {0, 1000}} {
		if got := (Pointer{}).urge(View{Size: row.size}, b); got.Window != row.want || got.Reserve != 1000 {
			t.Errorf("pointer, of %d: %+v", row.size, got)
		}
	}
	e := &Episodes{}
	e.Budget.Tokens = 4000
	for _, row := range []struct{ size, want tidemark.Tokens }{{4001, 10_000}, {4000, 4999}, {1, 1000}, {0, 1000}} {
		if got := e.urge(View{Size: row.size}, b); got.Window != row.want || got.Reserve != 1000 {
			t.Errorf("episodes, of %d: %+v", row.size, got)
		}
	}
}
