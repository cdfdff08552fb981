package session

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/approval"
	"github.com/tidemark-ai/tidemark/compaction"
)

// TestOverrideBounds: what a conversation may set for itself, and what an errand may, holds its bounds at themselves and one
// beyond, and says which field it is.
func TestOverrideBounds(t *testing.T) {
	long, globs := strings.Repeat("x", maxTitle), make([]string, approval.MaxGlobs)
	for _, c := range []struct {
		name string
		o    Override
		says string // "" where it is taken
	}{
		{"nothing", Override{}, ""},
		{"the smallest window", Override{Window: 4_000}, ""},
		{"a smaller window", Override{Window: 3_999}, "window 3999: want 4000 to 10000000"},
		{"a window of 1", Override{Window: 1}, "window 1:"},
		{"a window below 0", Override{Window: -1}, "window -1:"},
		{"the largest window", Override{Window: 10_000_000}, ""},
		{"a larger window", Override{Window: 10_000_001}, "window 10000001:"},
		{"a reserve", Override{Reserve: 1}, ""},
		{"a reserve below 0", Override{Reserve: -1}, "must not be negative"},
		{"what is kept", Override{Keep: 1}, ""},
		{"what is kept below 0", Override{Keep: -1}, "must not be negative"},
		{"the longest title and model", Override{Title: long, Model: long}, ""},
		{"a longer title", Override{Title: long + "x"}, "may have 200 bytes"},
		{"a longer model", Override{Model: long + "x"}, "may have 200 bytes"},
		{"limits.window, smallest", Override{Limits: &tidemark.Limits{Window: 4_000}}, ""},
		{"limits.window, smaller", Override{Limits: &tidemark.Limits{Window: 3_999}}, "limits.window 3999"},
		{"limits.window of 1", Override{Limits: &tidemark.Limits{Window: 1}}, "limits.window 1:"},
		{"limits.window, largest", Override{Limits: &tidemark.Limits{Window: 10_000_000}}, ""},
		{"limits.window, larger", Override{Limits: &tidemark.Limits{Window: 10_000_001}}, "limits.window 10000001"},
		{"limits.maxRounds", Override{Limits: &tidemark.Limits{Rounds: 1_000}}, ""},
		{"limits.maxRounds, more", Override{Limits: &tidemark.Limits{Rounds: 1_001}}, "limits.maxRounds 1001: want 1 to 1000"},
		{"limits.maxRounds, below 0", Override{Limits: &tidemark.Limits{Rounds: -1}}, "limits.maxRounds -1"},
		{"limits.budget", Override{Limits: &tidemark.Limits{Budget: 1_000_000_000}}, ""},
		{"limits.budget, more", Override{Limits: &tidemark.Limits{Budget: 1_000_000_001}}, "limits.budget 1000000001"},
		{"limits.budget, below 0", Override{Limits: &tidemark.Limits{Budget: -1}}, "limits.budget -1"},
		{"limits.depth", Override{Limits: &tidemark.Limits{Depth: 3}}, ""},
		{"limits.depth, more", Override{Limits: &tidemark.Limits{Depth: 4}}, "limits.depth 4: want 0 to 3"},
		{"limits.depth, below 0", Override{Limits: &tidemark.Limits{Depth: -1}}, "limits.depth -1"},
		{"limits.model", Override{Limits: &tidemark.Limits{Model: long}}, ""},
		{"limits.model, longer", Override{Limits: &tidemark.Limits{Model: long + "x"}}, "limits.model may have 200"},
		{"limits.strategies", Override{Limits: &tidemark.Limits{Strategies: globs}}, ""},
		{"limits.strategies, more", Override{Limits: &tidemark.Limits{Strategies: append(globs[:len(globs):len(globs)], "")}}, "limits.strategies names"},
		{"limits.tools", Override{Limits: &tidemark.Limits{Tools: []string{"files__*"}}}, ""},
		{"limits.tools, no glob", Override{Limits: &tidemark.Limits{Tools: []string{""}}}, "limits.tools"},
	} {
		err := c.o.Validate()
		if (err == nil) != (c.says == "") || err != nil && (!errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestOverrideOfAnErrand: the newest errand sets what it names and nothing of an earlier one; what a person set beside it stays.
func TestOverrideOfAnErrand(t *testing.T) {
	o := Override{Title: "Mine"}.with(tidemark.Limits{Rounds: 2})
	if o.Title != "Mine" || o.limits().Rounds != 2 {
		t.Errorf("with limits: %+v", o)
	}
	if o = o.with(tidemark.Limits{Budget: 9}); o.limits().Rounds != 0 || o.limits().Budget != 9 {
		t.Errorf("with other limits: %+v", *o.Limits)
	}
	if o = o.with(tidemark.Limits{}); o.Limits != nil || !o.equal(Override{Title: "Mine"}) || o.equal(Override{}) {
		t.Errorf("with none: %+v", o)
	}
	if l := o.limits(); mustJSON(l) != "{}" {
		t.Errorf("limits of none: %+v", l)
	}
}

// TestSettingsInForce: what an errand limits goes before what the conversation has set, that before what is configured, and
// that before the defaults.
func TestSettingsInForce(t *testing.T) {
	s, _ := plain(t, Config{})
	set := s.settings()
	if set.Window != 200_000 || set.Reserve != 20_000 || set.Keep != 20_000 || set.MaxRounds != 50 || set.ToolTimeout != time.Minute || set.TurnTimeout != 30*time.Minute ||
		set.ViewBytes != 64<<20 || set.PackTokens != 4096 || set.ArtifactChars != 1024 || set.Zone != time.UTC || set.System != defaultSystem || set.Model != "" {
		t.Errorf("the defaults are %+v", *set)
	}
	if l := s.setLimits(); mustJSON(l) != "{}" {
		t.Errorf("it has set %+v for itself", l)
	}
	zone := time.FixedZone("there", 3600)
	s, _ = plain(t, Config{Settings: Settings{Model: "configured", Window: 90_000, Reserve: 1, Keep: 2, MaxRounds: 3, ToolTimeout: 4, TurnTimeout: 5, ViewBytes: 6, PackTokens: 7, ArtifactChars: 8, Zone: zone, System: "Be kind."},
		Strategies: []compaction.Strategy{compaction.Pointer{}, compaction.Summary{}}})
	set = s.settings()
	if set.Window != 90_000 || set.Reserve != 1 || set.Keep != 2 || set.MaxRounds != 3 || set.ToolTimeout != 4 || set.TurnTimeout != 5 || set.ViewBytes != 6 || set.PackTokens != 7 || set.ArtifactChars != 8 ||
		set.Zone != zone || set.System != "Be kind." || set.Model != "configured" {
		t.Errorf("configured: %+v", *set)
	}
	if b := s.Budget(); b.Window != 90_000 || b.Reserve != 1 || b.Keep != 2 {
		t.Errorf("its budget is %+v", b)
	}
	ctx := t.Context()
	s.mostTaken.Store(77)
	own := Override{Title: "Mine", Model: "own", Window: 50_000, Reserve: 10, Keep: 20}
	if err := s.Configure(ctx, own); err != nil {
		t.Fatal(err)
	}
	set = s.settings()
	if set.Model != "own" || set.Window != 50_000 || set.Reserve != 10 || set.Keep != 20 || s.mostTaken.Load() != 0 {
		t.Errorf("its own: %+v, %d taken", *set, s.mostTaken.Load())
	}
	if l := s.setLimits(); l.Model != "own" || l.Window != 50_000 {
		t.Errorf("it has set %+v for itself", l)
	}
	if got := s.reads(t, `SELECT title, prompt FROM heads WHERE key = ? LIMIT 1`, string(s.Key)); got != "Mine " {
		t.Errorf("its row says %q", got)
	}
	s.mostTaken.Store(77)
	if err := s.limit(ctx, tidemark.Limits{Model: "limited", Window: 40_000, Rounds: 9, Tools: []string{"files__*"}, Strategies: []string{"summary"}, Depth: 2}); err != nil {
		t.Fatal(err)
	}
	set = s.settings()
	if set.Model != "limited" || set.Window != 40_000 || set.MaxRounds != 9 || len(set.strategies) != 1 || set.strategies[0].Name() != "summary" || s.permits("look") || !s.permits("files__read") {
		t.Errorf("of an errand: %+v", *set)
	}
	if l := s.setLimits(); l.Model != "limited" || l.Window != 40_000 || l.Rounds != 9 || l.Depth != 2 {
		t.Errorf("it has set %+v for itself", l)
	}
	s.does(t, `UPDATE heads SET prompt = 'frozen' WHERE key = ?`, string(s.Key))
	same := tidemark.Limits{Model: "limited", Window: 40_000, Rounds: 9, Tools: []string{"files__*"}, Strategies: []string{"summary"}, Depth: 2}
	if err := s.limit(ctx, same); err != nil || s.reads(t, `SELECT prompt FROM heads WHERE key = ? LIMIT 1`, string(s.Key)) != "frozen" {
		t.Errorf("the same limits again make the prompt anew, %v", err)
	}
	if err := s.limit(ctx, tidemark.Limits{Strategies: []string{"paging"}}); !errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), "pointer, summary") {
		t.Errorf("a strategy that is not configured: %v", err)
	}
	if err := s.limit(ctx, tidemark.Limits{}); err != nil || s.settings().Model != "own" || !s.permits("look") || s.reads(t, `SELECT prompt FROM heads WHERE key = ? LIMIT 1`, string(s.Key)) != "" {
		t.Errorf("without limits: %+v, %v", *s.settings(), err)
	}
	s.tried.Store(30_000)
	if err := s.loadSettings(ctx); err != nil || s.settings().Window != 30_000 {
		t.Errorf("a window that is tried: %d, %v", s.settings().Window, err)
	}
	s.tried.Store(60_000)
	if err := s.loadSettings(ctx); err != nil || s.settings().Window != 50_000 {
		t.Errorf("a larger one that is tried: %d, %v", s.settings().Window, err)
	}
	s.mostTaken.Store(77)
	if err := s.loadSettings(ctx); err != nil || s.mostTaken.Load() != 77 {
		t.Errorf("what the same model took is forgotten, %v", err)
	}
	s.does(t, `DELETE FROM heads WHERE key = ?`, string(s.Key))
	if _, err := s.Override(ctx); !errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("settings of a session that is gone: %v", err)
	}
	if err := s.Configure(ctx, Override{}); !errors.Is(err, tidemark.ErrConflict) {
		t.Errorf("configured a session that is gone: %v", err)
	}
}

// TestNarrowedStrategies: what an errand names is used, in the configured order, and all of them where it names none that is.
func TestNarrowedStrategies(t *testing.T) {
	all := []compaction.Strategy{&compaction.Paging{}, compaction.Pointer{}, compaction.Summary{}}
	for _, c := range []struct{ names, want string }{
		{"", "paging pointer summary"}, {"gone", "paging pointer summary"}, {"summary paging", "paging summary"}, {"pointer gone", "pointer"},
	} {
		var got []string
		for _, x := range narrowed(all, strings.Fields(c.names)) {
			got = append(got, x.Name())
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q: %q", c.names, got)
		}
	}
}

// TestAskedStrategies: who plans for a view. Within the limit only those with a limit of their own, and so while the summariser
// rests; at the limit nobody has to, one token over it they do.
func TestAskedStrategies(t *testing.T) {
	paging := &compaction.Paging{}
	all := []compaction.Strategy{paging, compaction.Summary{}}
	for _, c := range []struct {
		name       string
		off        bool
		strategies []compaction.Strategy
		size       tidemark.Tokens
		mode       fitMode
		hard, cool bool
		want       string
		rests      bool
	}{
		{"at the limit", false, nil, 80_000, fitAuto, false, false, "", false},
		{"over the limit", false, nil, 80_001, fitAuto, false, false, "summary", false},
		{"over it, off", true, nil, 80_001, fitAuto, false, false, "", false},
		{"off, and asked for", true, nil, 10, fitManual, false, false, "summary", false},
		{"within it, forced", false, nil, 10, fitForced, false, true, "summary", false},
		{"over it, resting", false, nil, 80_001, fitAuto, false, true, "", true},
		{"over it, resting, and the next call would not fit", false, nil, 80_001, fitAuto, true, true, "summary", false},
		{"over it, resting, one with a limit of its own", false, all, 80_001, fitAuto, false, true, "paging", true},
		{"within it, one with a limit of its own", false, all, 79_000, fitAuto, false, true, "paging summary", false},
		{"below both", false, all, 10, fitAuto, false, false, "", false},
	} {
		s, rt := plain(t, Config{Settings: Settings{Window: 100_000, Reserve: 20_000, Keep: 1000, NoCompaction: c.off}, Strategies: c.strategies})
		if c.cool {
			s.does(t, `UPDATE heads SET cooldown = ? WHERE key = ?`, rt.now.Add(time.Minute).UnixMilli(), string(s.Key))
		}
		var v View
		v.Size = c.size
		list, rests, err := s.asked(t.Context(), v, c.mode, c.hard)
		var got []string
		for _, x := range list {
			got = append(got, x.Name())
		}
		if strings.Join(got, " ") != c.want || rests != c.rests || err != nil {
			t.Errorf("%s: %q, rests %v, %v", c.name, got, rests, err)
		}
	}
}

// TestCooling: the summariser rests until its pause is over, and not for one that is longer than any can be.
func TestCooling(t *testing.T) {
	s, rt := plain(t, Config{})
	longest := cooldowns[len(cooldowns)-1]
	if err := s.DB.Tx(t.Context(), []tidemark.Stmt{s.pauseStmt()}); err != nil || s.reads(t, `SELECT cooldown FROM heads WHERE key = ? LIMIT 1`, string(s.Key)) != "1700000060000" {
		t.Errorf("a pause is set: %v", err)
	}
	for _, c := range []struct {
		left time.Duration
		want bool
	}{{-time.Millisecond, false}, {0, false}, {time.Millisecond, true}, {longest, true}, {longest + time.Millisecond, false}} {
		s.does(t, `UPDATE heads SET cooldown = ? WHERE key = ?`, rt.now.Add(c.left).UnixMilli(), string(s.Key))
		if got, err := s.cooling(t.Context()); got != c.want || err != nil {
			t.Errorf("%s before its end: %v, %v", c.left, got, err)
		}
	}
}

// TestNotPermitted: a call of a tool that an errand does not leave is answered by name, and the tool is not offered.
func TestNotPermitted(t *testing.T) {
	s, _ := plain(t, Config{Agent: hasTools{}})
	if err := s.limit(t.Context(), tidemark.Limits{Tools: []string{"l*"}}); err != nil {
		t.Fatal(err)
	}
	tools, err := s.tools(t.Context())
	if names := toolNames(tools); err != nil || !slices.Equal(names, []string{"look"}) {
		t.Errorf("offered %q, %v", names, err)
	}
	r := &run{ID: "r"}
	if b := s.resultOf(t.Context(), r, call{ID: "c1", Block: tidemark.ToolUse("c1", "send", nil)}); !b.IsError || !strings.Contains(b.Content[0].Text, `may not use "send"`) {
		t.Errorf("answered %s", b.AppendJSON(nil))
	}
	if b := s.resultOf(t.Context(), r, call{ID: "c2", Block: tidemark.ToolUse("c2", "look", nil)}); b.IsError || b.Content[0].Text != "of the agent" {
		t.Errorf("answered %s", b.AppendJSON(nil))
	}
}

// hasTools is an agent with two tools.
type hasTools struct{ silent }

func (hasTools) Tools(tidemark.Scope) []tidemark.Tool {
	return []tidemark.Tool{{Name: "look", Idempotent: true, InputSchema: []byte(`{}`)}, {Name: "send", InputSchema: []byte(`{}`)}}
}

func (hasTools) Call(_ context.Context, _ tidemark.Scope, c tidemark.Block) tidemark.Block {
	return tidemark.ToolResult(c.ID, "of the agent", false)
}

func toolNames(tools []tidemark.Tool) (out []string) {
	for _, t := range tools {
		out = append(out, t.Name)
	}
	return out
}
