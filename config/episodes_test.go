package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/internal/json"
)

func TestEpisodes(t *testing.T) {
	c, err := config.Parse("c.jsonc", []byte(`{"compaction":{"strategies":["episodes","summary"],"episodes":{"budget":"50%","lowWater":100,"count":"exact",
		"tools":{"Peek_At":"bulk","mcp.deploy":"whole"}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	e := c.Compaction.Episodes
	levels, err := e.Levels()
	if err != nil || e.Budget != "50%" || e.LowWater != 100 || e.Count != config.CountExact || len(levels) != 2 || levels["Peek_At"] != episodes.Bulk || levels["mcp.deploy"] != episodes.Whole {
		t.Errorf("%+v, levels %v, %v", e, levels, err)
	}
	got := map[string]string{}
	for _, v := range c.Values() {
		got[v.Key] = fmt.Sprint(v.Value, " ", v.Origin)
	}
	if got["compaction.episodes.tools.Peek_At"] != "bulk c.jsonc:2:22" || got["compaction.episodes.budget"] != "50% c.jsonc:1:73" {
		t.Errorf("values %v", got)
	}
	e = config.Default().Compaction.Episodes
	if b, err := episodes.ParseBudget(e.Budget); err != nil || b.Tokens != episodes.DefaultBudget || e.LowWater != 75 || e.Count != config.CountEstimate || e.Tools != nil {
		t.Errorf("defaults %+v, %v", e, err)
	}
}

// TestEpisodesBudget: a number may stand without quotes, and a variable has one anyway.
func TestEpisodesBudget(t *testing.T) {
	for _, row := range []struct{ doc, env, want string }{
		{`{"compaction":{"episodes":{"budget":120000}}}`, "", "120000"},
		{`{"compaction":{"episodes":{"budget":"120K"}}}`, "", "120K"},
		{`{"compaction":{"episodes":{"budget":"120K"}}}`, "60%", "60%"},
		{`{}`, "90000", "90000"},
	} {
		c, err := config.Load("c.jsonc", []byte(row.doc), []string{"TIDEMARK_COMPACTION_EPISODES_BUDGET=" + row.env})
		if err != nil || c.Compaction.Episodes.Budget != row.want {
			t.Errorf("%s, %q: %v, want %s", row.doc, row.env, err, row.want)
		}
	}
}

func TestEpisodesMistakes(t *testing.T) {
	const want = `, want tokens from 1000 to 100000000 as 80000 or "80k", or "50%" of the window`
	for doc, want := range map[string]string{
		`{"budget":"80,000"}`:                   `c.jsonc:1:37: compaction.episodes.budget: found the string "80,000"` + want + ": write 80000 or 80k",
		`{"budget":" 80k "}`:                    want + ": no spaces: write 80000 or 80k",
		`{"budget":80}`:                         "found the number 80" + want + ": 80 tokens are too few: write 1000 or more; 80k is thousands",
		`{"budget":80.5}`:                       "found the number 80.5" + want,
		`{"budget":1e5}`:                        "found the number 1e5" + want,
		`{"budget":-1}`:                         "found the number -1" + want,
		`{"budget":"101%"}`:                     want + ": write 1% to 100% of the window",
		`{"budget":true}`:                       "compaction.episodes.budget: found true" + want,
		`{"budget":["80k"]}`:                    "compaction.episodes.budget: found the list",
		`{"lowWater":9}`:                        "compaction.episodes.lowWater: found the number 9, want a whole number from 10 to 100",
		`{"lowWater":0.75}`:                     "want a whole number from 10 to 100",
		`{"count":"guess"}`:                     `compaction.episodes.count: found the string "guess", want one of "estimate", "exact"`,
		`{"tools":{"peek":"all"}}`:              `compaction.episodes.tools.peek: found the string "all", want one of "bulk", "intermediate", "whole"`,
		`{"tools":{"peek":{"level":"bulk"}}}`:   `compaction.episodes.tools.peek: found an object, want one of "bulk"`,
		`{"tools":{"a_b":"bulk","AB":"whole"}}`: "compaction.episodes.tools: tool",
		`{"tools":{"_":"bulk"}}`:                `compaction.episodes.tools: tool "_": want a name with letters`,
		`{"tools":"bulk"}`:                      `compaction.episodes.tools: found the string "bulk", want an object { … } with names of your own`,
		`{"lowwater":50}`:                       `unknown key; did you mean "compaction.episodes.lowWater"?`,
		`{"budgets":"80k"}`:                     `unknown key; did you mean "compaction.episodes.budget"?`,
	} {
		_, err := config.Parse("c.jsonc", []byte(`{"compaction":{"episodes":`+doc+`}}`))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant … %s", doc, err, want)
		}
	}
	_, err := config.Load("c.jsonc", nil, []string{"TIDEMARK_COMPACTION_EPISODES_BUDGET=80,000"})
	if err == nil || !strings.Contains(err.Error(), `TIDEMARK_COMPACTION_EPISODES_BUDGET: compaction.episodes.budget: found "80,000"`+want+": write 80000 or 80k") {
		t.Errorf("the variable: %v", err)
	}
}

// TestEpisodesSchema: editors take the same levels and forms of a budget, and the schema is JSON.
func TestEpisodesSchema(t *testing.T) {
	type object struct {
		Properties map[string]object `json:"properties"`
		More       json.RawMessage   `json:"additionalProperties"`
		Pattern    string            `json:"pattern"`
	}
	var root object
	if err := json.Unmarshal(config.Schema(), &root); err != nil {
		t.Fatal(err)
	}
	e := root.Properties["compaction"].Properties["episodes"].Properties
	if !strings.Contains(string(e["tools"].More), `"enum": ["bulk","intermediate","whole"]`) || !strings.HasPrefix(e["budget"].Pattern, "^(") {
		t.Errorf("schema %+v", e)
	}
}
