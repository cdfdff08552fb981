// Package approval decides which calls of tools may run: allow, ask or deny, by rules over the name of the
// tool and what it is called with. It is pure; who is asked, and what waits meanwhile, is for the session
// to say.
//
// Goals: the first rule that matches decides, so that a list reads from top to bottom; what cannot be
// decided (input that is no object, a path that is not there) never makes a rule match, and never makes a
// call pass that a person would have been asked about.
//
// Non-goals: regular expressions. They are a package of 0.1 MB in the Worker and a way to stall it; globs and
// prefixes say what rules are written for.
package approval

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Action is what becomes of a call.
type Action string

// The actions.
const (
	Allow Action = "allow"
	Ask   Action = "ask"  // the owner is asked, and the call waits
	Deny  Action = "deny" // the model is told that it may not
)

// Operators of a [Condition].
const (
	OpEquals     = "equals"
	OpContains   = "contains"
	OpStartsWith = "startsWith"
	OpGlob       = "glob" // * stands for any text, ? for one character
)

// Bounds of a policy.
const (
	MaxRules      = 100
	MaxConditions = 10
	maxText       = 1000 // bytes of a pattern, a path or a value
	maxDepth      = 20   // parts of a path
	maxValue      = 1 << 20
)

// Rule is one line of a policy.
type Rule struct {
	Tool   string      `json:"tool"`           // glob of names
	When   []Condition `json:"when,omitempty"` // all of them hold
	Action Action      `json:"action"`
}

// Condition is about one argument of a call.
type Condition struct {
	Path  string `json:"path"` // "file", "options.mode", "edits.0.path", "edits.*.path" (any element)
	Op    string `json:"op"`
	Value string `json:"value"` // a number, true and false compare as they are written
}

// Policy is what a configuration says. Its zero value allows everything.
type Policy struct {
	Default Action // for tools of others that no rule names; empty: Allow
	Rules   []Rule
}

// Validate says what is wrong with a rule, by its field.
func (r Rule) Validate() error {
	switch {
	case !IsGlob(r.Tool):
		return fmt.Errorf(`tool: want a name, or a glob with * and ? such as "files__*", of up to %d bytes: %w`, MaxGlob, tidemark.ErrInvalid)
	case !slices.Contains([]Action{Allow, Ask, Deny}, r.Action):
		return fmt.Errorf("action %.40q: want allow, ask or deny: %w", r.Action, tidemark.ErrInvalid)
	case len(r.When) > MaxConditions:
		return fmt.Errorf("when: %d conditions, at most %d: %w", len(r.When), MaxConditions, tidemark.ErrInvalid)
	}
	for i, c := range r.When {
		if err := c.validate(); err != nil {
			return fmt.Errorf("when[%d].%w", i, err)
		}
	}
	return nil
}

func (c Condition) validate() error {
	switch {
	case c.Path == "" || len(c.Path) > maxText || strings.Count(c.Path, ".") >= maxDepth:
		return fmt.Errorf(`path %.40q: want an argument such as "path" or "edits.*.path", of up to %d parts: %w`, c.Path, maxDepth, tidemark.ErrInvalid)
	case c.Op == "regex":
		return fmt.Errorf("op: regular expressions are not supported; glob, startsWith and contains are: %w", tidemark.ErrInvalid)
	case !slices.Contains([]string{OpEquals, OpContains, OpStartsWith, OpGlob}, c.Op):
		return fmt.Errorf("op %.40q: want equals, contains, startsWith or glob: %w", c.Op, tidemark.ErrInvalid)
	case len(c.Value) > maxText:
		return fmt.Errorf("value: %d bytes, at most %d: %w", len(c.Value), maxText, tidemark.ErrInvalid)
	}
	return nil
}

// Decide says what becomes of a call, and which rule said so: its place, from 1; 0 for the default, which holds
// for tools of others alone.
func (p Policy) Decide(tool string, input []byte, others bool) (Action, int) {
	var args any
	if len(input) <= maxValue {
		if v, err := json.DecodeAny(input); err == nil {
			args = v
		}
	}
	for i, r := range p.Rules {
		if Glob(r.Tool, tool) && r.holds(args) {
			return r.Action, i + 1
		}
	}
	if !others || p.Default == "" {
		return Allow, 0
	}
	return p.Default, 0
}

// holds reports whether all conditions do. Of arguments that cannot be read it is not known: a rule that lets
// a call pass then does not hold, and one that stops it does.
func (r Rule) holds(args any) bool {
	if args == nil && len(r.When) > 0 {
		return r.Action != Allow
	}
	for _, c := range r.When {
		values := at(args, strings.Split(c.Path, "."))
		if !slices.ContainsFunc(values, c.holds) {
			return false
		}
		if r.Action == Allow && slices.ContainsFunc(values, func(v string) bool { return !c.holds(v) }) {
			return false // of several elements one that is not allowed is enough
		}
	}
	return true
}

func (c Condition) holds(value string) bool {
	switch c.Op {
	case OpEquals:
		return value == c.Value
	case OpContains:
		return strings.Contains(value, c.Value)
	case OpStartsWith:
		return strings.HasPrefix(value, c.Value)
	case OpGlob:
		return Glob(c.Value, value)
	}
	return false
}

// at returns what stands at a path, as text; objects and lists have none.
func at(v any, path []string) []string {
	if len(path) == 0 {
		if s, ok := text(v); ok {
			return []string{s}
		}
		return nil
	}
	var out []string
	switch v := v.(type) {
	case map[string]any:
		if path[0] == "*" {
			for _, e := range v {
				out = append(out, at(e, path[1:])...)
			}
			return out
		}
		if e, ok := v[path[0]]; ok {
			return at(e, path[1:])
		}
	case []any:
		if path[0] == "*" {
			for _, e := range v {
				out = append(out, at(e, path[1:])...)
			}
			return out
		}
		if i, err := strconv.Atoi(path[0]); err == nil && i >= 0 && i < len(v) {
			return at(v[i], path[1:])
		}
	}
	return out
}

func text(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case json.Number:
		return v.String(), true
	case nil:
		return "null", true
	}
	return "", false
}
