package episodes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// ToolName is the name of the one tool of the protocol.
const ToolName = "delimiter"

// Description is what a model is told of the tool: the whole of the guidance, since a tool's description stands in the
// cached prefix and costs nothing where the tool is not offered.
const Description = `Divide work of more than a few calls into named episodes, one open at a time; finished ones leave a full context first. ` +
	`An exploration (expl) only searches and reads; end it with a description of what you learned, one or two sentences: that stays. ` +
	`An action (act) changes, runs and checks; its dependencies are the closed explorations it builds on, [] for none. ` +
	`Calls: {"action":"start","name":"N","type":"expl"}, {"action":"start","name":"N","type":"act","dependencies":["E"]}, {"action":"end","description":"D"} ends an exploration, {"action":"end"} an action. ` +
	`Name an episode by its outcome, each once. Reuse explorations; a small re-read belongs to the action, much that is new to another exploration. End every episode before you answer.`

// Schema is that of its arguments (papers/cwl §4.2).
const Schema = `{"type":"object","properties":{"action":{"type":"string","enum":["start","end"]},"name":{"type":"string"},"type":{"type":"string","enum":["expl","act"]},"dependencies":{"type":"array","items":{"type":"string"}},"description":{"type":"string"}},"required":["action"]}`

// Answer is what a call of the tool is told.
type Answer struct {
	Text    string
	Refused bool
}

// call is a call of the tool.
type call struct {
	Action       string
	Name         string
	Type         Type
	Dependencies []string
	Depends      bool // dependencies were given
	Description  string
}

// readCall reads the arguments of a call. A field of the wrong type is named; fields that are not known are left out.
func readCall(raw json.RawMessage) (c call, err error) {
	var in struct {
		Action       json.RawMessage `json:"action"`
		Name         json.RawMessage `json:"name"`
		Type         json.RawMessage `json:"type"`
		Dependencies json.RawMessage `json:"dependencies"`
		Description  json.RawMessage `json:"description"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return c, fmt.Errorf(`the arguments are no JSON object: want {"action":"start",…} or {"action":"end",…}`)
	}
	var kind string
	for _, f := range [...]struct {
		name string
		raw  json.RawMessage
		to   *string
	}{{"action", in.Action, &c.Action}, {"name", in.Name, &c.Name}, {"type", in.Type, &kind}, {"description", in.Description, &c.Description}} {
		if absent(f.raw) {
			continue
		}
		if json.Unmarshal(f.raw, f.to) != nil {
			return c, fmt.Errorf("%s is %.40s: want a string", f.name, f.raw)
		}
		*f.to = strings.TrimSpace(*f.to)
	}
	c.Type = Type(kind)
	if c.Depends = !absent(in.Dependencies); c.Depends && json.Unmarshal(in.Dependencies, &c.Dependencies) != nil {
		return c, fmt.Errorf(`dependencies is %.40s: want a list of names such as ["NAME"], or []`, in.Dependencies)
	}
	return c, nil
}

func absent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// refusal says why a call is not carried out in a graph, nil where it is.
func (g *Graph) refusal(c call) error {
	switch c.Action {
	case "start":
		return g.mayStart(c)
	case "end":
		return g.mayEnd(c)
	case "":
		return fmt.Errorf(`action is missing: want "start" or "end"`)
	}
	return fmt.Errorf(`action is %.40q: want "start" or "end"`, c.Action)
}

func (g *Graph) mayStart(c call) error {
	switch open := g.active; {
	case open != nil:
		return fmt.Errorf("%s is open, and one is open at a time: end it first with %s", open, endCall(open.Type))
	case c.Name == "":
		return fmt.Errorf(`name is missing: call the episode by its outcome, as in {"action":"start","name":"auth flow","type":"expl"}`)
	case len(c.Name) > maxName:
		return fmt.Errorf("name has %d bytes: want one line of at most %d", len(c.Name), maxName)
	case strings.ContainsFunc(c.Name, unprinted):
		return fmt.Errorf("name is %q: want one line of at most %d bytes", c.Name, maxName)
	case c.Type != Exploration && c.Type != Action:
		return fmt.Errorf(`type is %.40q: want "expl" (only looks and reads) or "act" (changes, runs, checks)`, string(c.Type))
	case g.names[c.Name] != nil:
		return fmt.Errorf("name %q was used by an earlier %s: each name is used once, take another", c.Name, kinds[g.names[c.Name].Type])
	case len(g.list) >= MaxEpisodes:
		return fmt.Errorf("this conversation has %d episodes, at most so many are kept: go on without", len(g.list))
	}
	if c.Type == Exploration {
		if slices.ContainsFunc(c.Dependencies, func(s string) bool { return strings.TrimSpace(s) != "" }) {
			return fmt.Errorf("an exploration has no dependencies: leave them out, or start an action")
		}
		return nil
	}
	if !c.Depends {
		return fmt.Errorf("dependencies is missing: name the closed explorations that this action builds on, or [] if there is none. %s", g.closed())
	}
	if len(c.Dependencies) > maxDepends {
		return fmt.Errorf("%d dependencies: at most %d", len(c.Dependencies), maxDepends)
	}
	for i, name := range c.Dependencies {
		name = strings.TrimSpace(name)
		e := g.names[name]
		switch {
		case name == "":
			return fmt.Errorf("dependencies[%d] is blank: leave it out, [] says that there is none. %s", i, g.closed())
		case name == c.Name:
			return fmt.Errorf("dependencies[%d] is the action itself. %s", i, g.closed())
		case e == nil && !g.inherited[name]:
			return fmt.Errorf("dependencies[%d], %.100q, is no episode of this conversation. %s", i, name, g.closed())
		case e != nil && e.Type != Exploration:
			return fmt.Errorf("dependencies[%d], %q, is an action: actions depend on explorations only. %s", i, name, g.closed())
		}
	}
	return nil
}

func (g *Graph) mayEnd(c call) error {
	open := g.active
	switch {
	case open == nil:
		return fmt.Errorf(`no episode is open: start one with {"action":"start","name":"N","type":"expl"} or with "act" and dependencies`)
	case c.Name != "" && c.Name != open.Name:
		return fmt.Errorf("name is %.100q, but %s is open: leave name out, end ends that one", c.Name, open)
	case open.Type == Exploration && c.Description == "":
		return fmt.Errorf("description is missing: say in one or two sentences what %s found out, that is what stays of it", open)
	case open.Type == Exploration && len(c.Description) > maxDescription:
		return fmt.Errorf("description has %d bytes, at most %d: say what was learned in one or two sentences", len(c.Description), maxDescription)
	case open.Type == Action && c.Description != "":
		return fmt.Errorf(`an action ends without a description, what it did stands in the world: end %s with {"action":"end"}`, open)
	}
	return nil
}

// unprinted reports a character that ends a line or is none that is seen.
func unprinted(r rune) bool {
	return r < ' ' || r >= '\u007f' && r < '\u00a0' || r == '\u2028' || r == '\u2029'
}

var kinds = map[Type]string{Exploration: "exploration", Action: "action"}

func endCall(t Type) string {
	if t == Exploration {
		return `{"action":"end","description":"what was learned"}`
	}
	return `{"action":"end"}`
}

// closed lists the explorations that an action may depend on, the newest first where there are many.
func (g *Graph) closed() string {
	var names []string
	n := 0
	for i := len(g.list) - 1; i >= 0; i-- {
		if e := g.list[i]; e.Type == Exploration && !e.Open {
			if n++; n <= maxListed {
				names = append(names, e.Name)
			}
		}
	}
	if n == 0 {
		return "There are no closed explorations."
	}
	slices.Reverse(names)
	more := ""
	if n > maxListed {
		more = fmt.Sprintf(" and %d older", n-maxListed)
	}
	return "Closed explorations: " + strings.Join(names, ", ") + more + "."
}

// tell is the answer to a call that is carried out.
func tell(c call, e *Episode) string {
	switch {
	case c.Action == "end":
		return fmt.Sprintf("Ended %s.", e)
	case len(e.Dependencies) > 0:
		return fmt.Sprintf("Started %s, which depends on %s.", e, strings.Join(e.Dependencies, ", "))
	}
	return fmt.Sprintf("Started %s.", e)
}

// Result is the block that answers a call of the tool.
func (a Answer) Result(call string) tidemark.Block {
	return tidemark.ToolResult(call, a.Text, a.Refused)
}
