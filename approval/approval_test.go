package approval_test

import (
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/approval"
)

// TestDecide: the first rule that matches decides, and what is not known lets nothing pass.
func TestDecide(t *testing.T) {
	rules := []approval.Rule{
		{Tool: "files__read*", Action: approval.Allow},
		{Tool: "files__*", When: []approval.Condition{{"path", "startsWith", "/tmp/"}}, Action: approval.Allow},
		{Tool: "files__*", When: []approval.Condition{{"edits.*.path", "glob", "*/secret*"}}, Action: approval.Deny},
		{Tool: "files__many", When: []approval.Condition{{"paths.*", "startsWith", "/tmp/"}}, Action: approval.Allow},
		{Tool: "mail__send", When: []approval.Condition{{"to", "equals", "me@example.com"}, {"urgent", "equals", "true"}}, Action: approval.Allow},
		{Tool: "pay", When: []approval.Condition{{"amount", "equals", "10"}}, Action: approval.Allow},
		{Tool: "pay", When: []approval.Condition{{"note", "contains", "gift"}}, Action: approval.Deny},
		{Tool: "memory_edit", Action: approval.Ask},
		{Tool: "files__*", Action: approval.Ask},
	}
	p := approval.Policy{Default: approval.Deny, Rules: rules}
	for _, row := range []struct {
		name, tool, input string
		others            bool
		want              approval.Action
		rule              int
	}{
		{"a prefix", "files__read_text", `{}`, true, approval.Allow, 1},
		{"an argument", "files__write", `{"path":"/tmp/x"}`, true, approval.Allow, 2},
		{"another argument", "files__write", `{"path":"/etc/x"}`, true, approval.Ask, 9},
		{"an argument that is not there", "files__write", `{}`, true, approval.Ask, 9},
		{"any element denies", "files__edit", `{"edits":[{"path":"/a"},{"path":"/b/secrets"}]}`, true, approval.Deny, 3},
		{"all elements allow", "files__many", `{"paths":["/tmp/a","/tmp/b"]}`, true, approval.Allow, 4},
		{"one element does not", "files__many", `{"paths":["/tmp/a","/etc/b"]}`, true, approval.Ask, 9},
		{"an element without the path", "files__many", `{"paths":["/tmp/a",["/etc/b"]]}`, true, approval.Ask, 9},
		{"a list where a text is denied", "files__edit", `{"edits":[{"path":["/b/secrets"]}]}`, true, approval.Deny, 3},
		{"another case of a name that is denied", "files__edit", `{"Edits":[{"PATH":"/b/secrets"}]}`, true, approval.Deny, 3},
		{"another case of a name that is allowed", "files__write", `{"Path":"/tmp/x"}`, true, approval.Ask, 9},
		{"two names that differ in case", "files__write", `{"path":"/tmp/x","Path":"/etc/passwd"}`, true, approval.Deny, 3},
		{"a name twice", "files__write", `{"path":"/etc/passwd","path":"/tmp/x"}`, true, approval.Deny, 3},
		{"colons and quotes in a text", "files__write", `{"path":"/tmp/a:b\\\":{c"}`, true, approval.Allow, 2},
		{"an object where a text is allowed", "files__write", `{"path":{"a":"/tmp/x"}}`, true, approval.Ask, 9},
		{"two conditions", "mail__send", `{"to":"me@example.com","urgent":true}`, true, approval.Allow, 5},
		{"one of two", "mail__send", `{"to":"me@example.com","urgent":false}`, true, approval.Deny, 0},
		{"a number as it is written", "pay", `{"amount":10}`, true, approval.Allow, 6},
		{"another way to write it", "pay", `{"amount":10.0}`, true, approval.Deny, 0},
		{"input that is no JSON allows nothing", "files__write", `{"path":"/tmp/`, true, approval.Deny, 3},
		{"and a rule that denies holds", "pay", `nothing`, true, approval.Deny, 7},
		{"no rule, of others", "web__get", `{}`, true, approval.Deny, 0},
		{"no rule, ours", "recall", `{}`, false, approval.Allow, 0},
		{"a rule for ours", "memory_edit", `{}`, false, approval.Ask, 8},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, rule := p.Decide(row.tool, []byte(row.input), row.others)
			if got != row.want || rule != row.rule {
				t.Errorf("%s %s: %s by %d, want %s by %d", row.tool, row.input, got, rule, row.want, row.rule)
			}
		})
	}
	if got, _ := (approval.Policy{}).Decide("x", nil, true); got != approval.Allow {
		t.Errorf("the zero policy says %s", got)
	}
}

func TestValidate(t *testing.T) {
	long := strings.Repeat("x", 2000)
	for _, row := range []struct {
		rule approval.Rule
		want string // part of the error, empty for none
	}{
		{approval.Rule{Tool: "a", Action: "allow"}, ""},
		{approval.Rule{Action: "allow"}, "tool: want a name"},
		{approval.Rule{Tool: "files__[rw]*", Action: "deny"}, "tool: want a name"},
		{approval.Rule{Tool: "a", Action: "maybe"}, `action "maybe": want allow, ask or deny`},
		{approval.Rule{Tool: "a", Action: "ask", When: []approval.Condition{{"p", "regex", "x"}}}, "when[0].op: regular expressions are not supported"},
		{approval.Rule{Tool: "a", Action: "ask", When: []approval.Condition{{"p", "equals", "x"}, {"", "equals", "x"}}}, "when[1].path"},
		{approval.Rule{Tool: "a", Action: "ask", When: []approval.Condition{{"p", "equals", long}}}, "when[0].value: 2000 bytes"},
		{approval.Rule{Tool: "a", Action: "ask", When: []approval.Condition{{"p", "is", "x"}}}, `op "is"`},
		{approval.Rule{Tool: "a", Action: "ask", When: make([]approval.Condition, 11)}, "11 conditions"},
	} {
		err := row.rule.Validate()
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%+v: %v, want %q", row.rule, err, row.want)
		}
	}
}

// TestAnswer: nothing but the two words is an answer.
func TestAnswer(t *testing.T) {
	for text, want := range map[string]string{
		"yes K7QM2": "K7QM2 true", "YES k7qm2": "K7QM2 true", " no  K7QM2. ": "K7QM2 false", "approve K7QM2": "K7QM2 true", "Deny\nK7QM2": "K7QM2 false",
		"yes": "", "yes please": "", "yes K7QM2 and do it fast": "", "K7QM2": "", "yes K7QM0": "", "yes K7QM": "", "yes, K7QM2": "", "yes “K7QM2”": "", "": "",
	} {
		code, allow, ok := approval.Answer(text)
		got := ""
		if ok {
			got = code + map[bool]string{true: " true", false: " false"}[allow]
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if a, b := approval.Code("run", "0", "1"), approval.Code("run", "0", "2"); a == b || len(a) != approval.CodeLength || a != approval.Code("run", "0", "1") {
		t.Errorf("codes %s and %s", a, b)
	}
	if _, _, ok := approval.Answer("yes " + approval.Code("x")); !ok {
		t.Error("a code of ours is no answer")
	}
}

func FuzzGlob(f *testing.F) {
	f.Add("a*b?c", "axxbyc")
	f.Add("*", "")
	f.Add("**?*", "x")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if strings.ToValidUTF8(name, "") != name || strings.ToValidUTF8(pattern, "") != pattern {
			t.Skip("names are UTF-8")
		}
		if !approval.Glob("*", name) || !approval.Glob("*"+name+"*", name) && !strings.ContainsAny(name, "*?") {
			t.Errorf("%q is not matched by what matches everything", name)
		}
		if approval.Glob(pattern, name) && !strings.ContainsAny(pattern, "*?") && pattern != name {
			t.Errorf("%q matches %q", pattern, name)
		}
		if approval.Glob(pattern, name) && !approval.Glob(pattern+"*", name+"x") {
			t.Errorf("%q matches %q, and not with more behind both", pattern, name)
		}
	})
}

// FuzzDecide holds the law that a call which cannot be read is never let in by a rule with conditions.
func FuzzDecide(f *testing.F) {
	f.Add("t", `{"a":[1,{"b":"c"}]}`, "a.1.b", "c")
	f.Fuzz(func(t *testing.T, tool, input, path, value string) {
		for _, op := range []string{"equals", "contains", "startsWith", "glob"} {
			p := approval.Policy{Default: approval.Ask, Rules: []approval.Rule{{Tool: "*", When: []approval.Condition{{path, op, value}}, Action: approval.Allow}}}
			got, rule := p.Decide(tool, []byte(input), true)
			if got == approval.Allow != (rule == 1) {
				t.Errorf("%s by rule %d", got, rule)
			}
		}
	})
}
