package recall

import (
	"cmp"
	"strings"
)

// Names is 1 for a term that names one thing, such as a path, a hash or a version, and 0 for a word.
func Names(term string) int { return int(one(identifier(term))) }

// Known is what is known of an event beside its text.
type Known struct {
	Kind       Kind
	Premise    string // that held when it was logged; empty when none was known
	Task       string // that was worked on then; empty when none was known
	Superseded bool   // a newer one holds in its place
	Constraint bool   // it states what a task must keep to
}

// The factors of a score. Papers/total-recall §4.1 defines the product, its implementation the figures
// (reference: points 25 to 27).
const (
	premiseUnknown  = 0.5
	premiseMismatch = 0.4
	supersededBy    = 0.9 // taken off: 1 - sup is 0.1
	otherTask       = 0.3
	idleFactor      = 0.5
	constraintFloor = 0.3 // 3 of 10 on the scale of the paper, whose cap of 10 is our 1
)

// phases are the factors of kinds that a phase prefers or pushes back; others have 1.
var phases = map[Phase]map[Kind]float64{
	Planning:  {ToolCall: 0.5, ToolResult: 0.5},
	Executing: {ToolCall: 1.5, ToolResult: 1.5},
	Debugging: {ToolCall: 1.5, ToolResult: 2},
	Reviewing: {UserMessage: 1.5, AgentMessage: 1.5, ToolCall: 0.3, ToolResult: 0.5},
}

// Zero reports that nothing is known of what a conversation works on: events are not judged by it then.
func (t Task) Zero() bool {
	return t.ID == "" && t.Phase == "" && len(t.Goals)+len(t.Loops)+len(t.Constraints)+len(t.Events) == 0
}

// score is the score of an event for a task: base x [prem x phase x (1 - sup) x task_rel], where base is between 0 and 1,
// among events of which the one that fits best has a factor. What states a constraint has at least the floor; nothing has more than 1.
func (t Task) score(base, best float64, e Known) float64 {
	v := base * t.factor(e) / best
	if e.Constraint {
		v = max(v, constraintFloor)
	}
	return min(1, max(0, v))
}

func (t Task) factor(e Known) float64 {
	v := t.premise(e) * t.phase(e) * t.related(e)
	if e.Superseded {
		v *= 1 - supersededBy
	}
	return v
}

func (t Task) premise(e Known) float64 {
	switch mine := t.Premise(); {
	case mine == "" || e.Premise == "":
		return premiseUnknown
	case mine != e.Premise:
		return premiseMismatch
	}
	return 1
}

func (t Task) phase(e Known) float64 {
	if cmp.Or(t.Phase, Idle) == Idle {
		return idleFactor
	}
	if f, ok := phases[t.Phase][e.Kind]; ok {
		return f
	}
	return 1
}

func (t Task) related(e Known) float64 {
	if t.ID != "" && e.Task != "" && t.ID != e.Task {
		return otherTask
	}
	return 1
}

// States reports whether a text states one of the task's constraints.
func (t Task) States(text string) bool {
	const least = 12 // bytes: less is said by chance
	low := ""
	for _, c := range t.Constraints {
		if c = strings.ToLower(strings.TrimSpace(c)); len(c) < least {
			continue
		}
		if low == "" {
			low = strings.ToLower(text)
		}
		if strings.Contains(low, c) {
			return true
		}
	}
	return false
}
