package setup_test

import (
	"net/http"
	"reflect"
	"slices"
	"testing"
	"time"
	_ "time/tzdata" // the machine may have no zone files

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/provider"
	"github.com/tidemark-ai/tidemark/provider/offline"
	"github.com/tidemark-ai/tidemark/reset"
	"github.com/tidemark-ai/tidemark/setup"
)

// set reads a document and variables.
func set(t *testing.T, doc string, env ...string) *config.Config {
	t.Helper()
	c, err := config.Parse("test.jsonc", []byte(doc))
	if err == nil {
		err = c.Override(env)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.Resolve()
	return c
}

// TestSession: each setting arrives where it is obeyed.
func TestSession(t *testing.T) {
	c := set(t, `{
		"model": {"id": "m", "contextWindow": 9000, "maxTokens": 70},
		"systemPrompt": "general",
		"userTimezone": "Europe/Berlin",
		"compaction": {"enabled": false, "extractMemories": false, "reserveTokens": 11, "keepRecentTokens": 12, "model": "small"},
		"session": {"maxRounds": 3, "resetPolicies": {"web": {"mode": "daily", "atHour": 5}}},
		"storage": {"artifactChars": 0},
		"timeouts": {"toolMs": 2000, "turnMs": 3000},
		"agents": {"list": [{"id": "work", "systemPrompt": "at work", "userTimezone": "Asia/Tokyo"}]}
	}`)
	s, err := setup.Session(c, "agent:work:web:dm:anna")
	if err != nil {
		t.Fatal(err)
	}
	tokyo, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	five, sixty := 5, 60
	policy, err := reset.Parse(reset.Settings{Mode: "daily", AtHour: &five, IdleMinutes: &sixty}, tokyo)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name      string
		got, want any
	}{
		{"model", s.Model, "m"},
		{"window", s.Window, tidemark.Tokens(9000)},
		{"reply", s.MaxTokens, tidemark.Tokens(70)},
		{"system prompt of the agent", s.System, "at work"},
		{"reserve", s.Reserve, tidemark.Tokens(11)},
		{"keep", s.Keep, tidemark.Tokens(12)},
		{"no compaction", s.NoCompaction, true},
		{"no memories", s.NoMemories, true},
		{"summaries", s.SummaryModel, "small"},
		{"rounds", s.MaxRounds, 3},
		{"artifacts", s.ArtifactChars, -1},
		{"tools", s.ToolTimeout, 2 * time.Second},
		{"turn", s.TurnTimeout, 3 * time.Second},
		{"zone", s.Zone.String(), "Asia/Tokyo"},
		{"reset", reflect.DeepEqual(s.Reset, policy), true},
	} {
		if !reflect.DeepEqual(row.got, row.want) {
			t.Errorf("%s: %v, want %v", row.name, row.got, row.want)
		}
	}
	if s, err := setup.Session(c, "agent:main:main"); err != nil || s.System != "general" || s.Zone.String() != "Europe/Berlin" || reflect.DeepEqual(s.Reset, policy) {
		t.Errorf("the main session has %+v, %v", s, err)
	}
}

// TestAgent: memory has the budget that is set; a session with a small window asks for less.
func TestAgent(t *testing.T) {
	for _, row := range []struct {
		name, doc string
		budget    tidemark.Tokens
	}{
		{"small window", `{"model": {"contextWindow": 8000}, "memory": {"promptTokens": 6000}}`, 6000},
		{"as configured", `{"memory": {"promptTokens": 6000}}`, 6000},
	} {
		t.Run(row.name, func(t *testing.T) {
			a, err := setup.Agent(set(t, row.doc), "main")
			if err != nil || a.Budget != row.budget || a.Name != "main" || a.Zone != time.UTC {
				t.Errorf("%+v, %v, want a budget of %d", a, err, row.budget)
			}
		})
	}
}

// TestProvider: whoever has a key answers, within a deadline.
func TestProvider(t *testing.T) {
	for _, row := range []struct {
		name string
		env  []string
		want any
	}{
		{"none", nil, offline.Model{}},
		{"anthropic", []string{"ANTHROPIC_API_KEY=k", "OPENAI_API_KEY=k"}, &provider.Anthropic{}},
		{"openai", []string{"OPENAI_API_KEY=k"}, &provider.OpenAI{}},
		{"workers ai", []string{"TIDEMARK_MODEL_PROVIDER=workers-ai"}, &provider.WorkersAI{}},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := setup.Provider(set(t, "", row.env...), nil, nil)
			if r, ok := p.(*provider.Retry); ok {
				if r.Total <= 0 || r.Tries != 1 {
					t.Errorf("bounds %v, %d tries", r.Total, r.Tries)
				}
				p = r.Provider
			}
			if reflect.TypeOf(p) != reflect.TypeOf(row.want) {
				t.Errorf("%T, want %T", p, row.want)
			}
		})
	}
}

// bound is a network of a host that binds Workers AI.
type bound struct{ http.RoundTripper }

func (b bound) AI(binding string) http.RoundTripper {
	if binding != "AI" {
		return nil
	}
	return b
}

// TestWorkersAI: the binding is used where the host has one.
func TestWorkersAI(t *testing.T) {
	c := set(t, `{"model": {"provider": "workers-ai", "maxTokens": 70}}`)
	for _, row := range []struct {
		name    string
		network http.RoundTripper
		want    http.RoundTripper
	}{
		{"bound", bound{}, bound{}},
		{"not bound", http.DefaultTransport, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := setup.Provider(c, nil, row.network).(*provider.Retry).Provider.(*provider.WorkersAI)
			if w.Transport != row.want || w.MaxTokens != 70 || w.Model != config.DefaultWorkersAIModel {
				t.Errorf("%+v", w)
			}
		})
	}
}

// TestStrategies: they plan in one order, whatever the configuration's.
func TestStrategies(t *testing.T) {
	c, err := config.Parse("c.jsonc", []byte(`{"compaction":{"strategies":["summary","paging"],"paging":{"tau":6,"minBytes":0,"tools":{"peek":{"kind":"reads"}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	got := setup.Strategies(c)
	p, ok := got[0].(*compaction.Paging)
	if len(got) != 2 || !ok || p.Tau != 6 || p.MinBytes != -1 || p.Tools["peek"].Kind != paging.Reads || p.Tools["read"].Kind != paging.Reads {
		t.Errorf("%+v", got)
	}
}

// TestEpisodes: each setting arrives, behind paging and before what sums up.
func TestEpisodes(t *testing.T) {
	got := setup.Strategies(set(t, `{"compaction": {"strategies": ["summary", "pointer", "episodes", "paging"],
		"paging": {"tools": {"scribble": {"kind": "changes", "path": ["to"]}}},
		"episodes": {"budget": "50%", "lowWater": 60, "count": "exact", "tools": {"Deploy_It": "whole", "grep": "intermediate"}}}}`))
	var names []string
	for _, s := range got {
		names = append(names, s.Name())
	}
	if !slices.Equal(names, []string{"paging", "episodes", "pointer", "summary"}) {
		t.Fatalf("strategies %v", names)
	}
	e, ok := got[1].(*compaction.Episodes)
	if !ok || e.Budget != (episodes.Budget{Percent: 50}) || e.LowWater != 60 || !e.Exact {
		t.Fatalf("%+v", got[1])
	}
	for tool, want := range map[string]episodes.Level{"deployit": episodes.Whole, "grep": episodes.Intermediate, "glob": episodes.Bulk, "scribble": episodes.Whole, "edit": episodes.Whole, "bash": episodes.Intermediate} {
		if l := e.Tools.Level(tool, []byte(`{"to":"a","file_path":"a"}`)); l != want {
			t.Errorf("%s: %s, want %s", tool, l, want)
		}
	}
	got = setup.Strategies(set(t, `{"compaction": {"strategies": ["episodes"]}}`))
	if e, ok := got[0].(*compaction.Episodes); !ok || len(got) != 1 || e.Budget.Of(200_000) != 80_000 || e.LowWater != 75 || e.Exact || e.Tools.Level("ls", nil) != episodes.Bulk {
		t.Errorf("defaults %+v", got)
	}
}
