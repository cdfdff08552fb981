package config_test

import (
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/approval"
	"github.com/tidemark-ai/tidemark/config"
)

// TestRules: rules are read as they stand, from the document and from the variable, and a mistake in one names the rule,
// the member and the fix: a rule that means nothing would let calls run.
func TestRules(t *testing.T) {
	const good = `[{"tool":"files__*","when":[{"path":"path","op":"startsWith","value":"/srv/"}],"action":"allow"},{"tool":"*","action":"ask"}]`
	for _, row := range []struct{ name, rules, want string }{
		{"two", good, ""},
		{"none", `[]`, ""},
		{"no list", `{"tool":"x"}`, `want a list of rules`},
		{"a member too many", `[{"tool":"x","action":"ask","if":[]}]`, `rule 1: unknown member "if"; it has tool, when, action`},
		{"a condition with one", `[{"tool":"x","action":"ask","when":[{"path":"p","op":"equals","val":"1"}]}]`, `rule 1: when[0]: unknown member "val"`},
		{"an action that is none", `[{"tool":"x","action":"allow"},{"tool":"x","action":"yes"}]`, `rule 2: action "yes": want allow, ask or deny`},
		{"a regular expression", `[{"tool":"x","action":"ask","when":[{"path":"p","op":"regex","value":".*"}]}]`, `rule 1: when[0].op: regular expressions are not supported; glob, startsWith and contains are`},
		{"a number as value", `[{"tool":"x","action":"ask","when":[{"path":"p","op":"equals","value":1}]}]`, `rule 1: want texts`},
		{"when is no list", `[{"tool":"x","action":"deny","when":{"path":"p"}}]`, `rule 1: want texts`},
	} {
		t.Run(row.name, func(t *testing.T) {
			c, err := config.Parse("t.jsonc", []byte(`{"toolApproval":{"default":"ask","rules":`+row.rules+`}}`))
			byVariable := config.Default()
			failed := byVariable.Override([]string{"TIDEMARK_TOOLAPPROVAL_RULES=" + row.rules})
			if row.want == "" {
				if err != nil || failed != nil {
					t.Fatalf("%v, %v", err, failed)
				}
				if len(byVariable.Approval.Rules) != len(c.Approval.Rules) || c.Approval.Policy().Default != approval.Ask {
					t.Errorf("%+v and %+v", c.Approval, byVariable.Approval)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), row.want) || failed == nil || !strings.Contains(failed.Error(), row.want) {
				t.Errorf("%v\n%v\nwant %s", err, failed, row.want)
			}
		})
	}
	c, err := config.Parse("t.jsonc", []byte(`{"toolApproval":{"rules":`+good+`}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, rule := c.Approval.Policy().Decide("files__write", []byte(`{"path":"/srv/x"}`), true); got != approval.Allow || rule != 1 {
		t.Errorf("%s by %d", got, rule)
	}
}
