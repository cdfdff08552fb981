// Package approval decides which calls of tools may run: allow, ask or deny, by rules over the name of
// the tool and its input. It is pure: the session asks the owner and keeps what waits. Begin with
// [Policy].
//
// Goals: the first rule that matches decides, so that a list reads from top to bottom. What cannot be
// decided (input that is no object, a path that is not there) never makes a rule match, and never lets
// a call pass that the owner would have been asked about.
//
// Non-goals: regular expressions. One that matches more than its author meant would allow a call;
// globs and prefixes can be read at once.
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
		if v, err := json.DecodeAny(input); err == nil && !twice(v) && members(v) == colons(input) {
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

// holds reports whether all conditions do. What cannot be told for sure (arguments that cannot be read, a list or an object
// where a text was meant) never lets a call pass, and never keeps a rule from stopping one.
func (r Rule) holds(args any) bool {
	lets := r.Action == Allow
	if args == nil && len(r.When) > 0 {
		return !lets
	}
	for _, c := range r.When {
		found := places{exact: lets}
		found.at(args, strings.Split(c.Path, "."))
		fits := func(v string) bool { return c.holds(v) }
		switch {
		case lets && (found.odd || len(found.values) == 0 || slices.ContainsFunc(found.values, func(v string) bool { return !fits(v) })):
			return false // of several elements one that is not allowed is enough
		case !lets && !found.odd && !slices.ContainsFunc(found.values, fits):
			return false
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

// places are what stands at a path.
type places struct {
	exact  bool // names count as they are written; else in any case, as some servers read them
	values []string
	odd    bool // something there is no plain value, or an element under * has no such path
}

// at looks along a path.
func (p *places) at(v any, path []string) {
	if len(path) == 0 {
		if s, ok := text(v); ok {
			p.values = append(p.values, s)
		} else {
			p.odd = true
		}
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for name, e := range v {
			if path[0] == "*" || name == path[0] || !p.exact && strings.EqualFold(name, path[0]) {
				p.at(e, path[1:])
			}
		}
		if _, ok := v[path[0]]; p.exact && path[0] != "*" && !ok {
			p.odd = true
		}
	case []any:
		if i, err := strconv.Atoi(path[0]); err == nil && i >= 0 && i < len(v) {
			p.at(v[i], path[1:])
			return
		}
		for _, e := range v {
			if path[0] == "*" {
				p.at(e, path[1:])
			}
		}
		p.odd = p.odd || path[0] != "*"
	default:
		p.odd = true
	}
}

// members counts those of all objects in a value.
func members(v any) int {
	n := 0
	switch v := v.(type) {
	case map[string]any:
		n = len(v)
		for _, e := range v {
			n += members(e)
		}
	case []any:
		for _, e := range v {
			n += members(e)
		}
	}
	return n
}

// colons counts the members as they are written: more of them than there are members stand there twice under one name.
func colons(raw []byte) int {
	n, inside := 0, false
	for i := 0; i < len(raw); i++ {
		switch {
		case inside && raw[i] == '\\':
			i++
		case raw[i] == '"':
			inside = !inside
		case raw[i] == ':' && !inside:
			n++
		}
	}
	return n
}

// twice reports an object with two members whose names differ in case alone: which of them counts, servers do not agree on.
func twice(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		seen := map[string]bool{}
		for name, e := range v {
			low := strings.ToLower(name)
			if seen[low] || twice(e) {
				return true
			}
			seen[low] = true
		}
	case []any:
		return slices.ContainsFunc(v, twice)
	}
	return false
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
