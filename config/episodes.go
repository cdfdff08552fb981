package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/near"
)

// Episodes says when episodes of an agent's work leave the context.
type Episodes struct {
	Budget   string // as episodes.ParseBudget reads it
	LowWater int    // percent of the budget
	Count    string // estimate, exact

	Tools map[string]string // levels over the table of known tools, by name
}

// Values of compaction.episodes.count.
const (
	CountEstimate = "estimate"
	CountExact    = "exact"
)

// Levels are the tools as the table of episodes takes them. What is wrong is named by its tool.
func (e Episodes) Levels() (map[string]episodes.Level, error) {
	levels, seen := map[string]episodes.Level{}, map[string]string{}
	for _, name := range e.tools() {
		level, err := episodes.ParseLevel(e.Tools[name])
		if err != nil {
			return nil, fmt.Errorf("tool %.60q: %w", name, err)
		}
		plain := near.Plain(name)
		if plain == "" {
			return nil, fmt.Errorf("tool %.60q: want a name with letters", name)
		}
		if other, twice := seen[plain]; twice {
			return nil, fmt.Errorf("tool %.60q is %.60q again, since capitals, _ and - do not count: give one of them", name, other)
		}
		levels[name], seen[plain] = level, name
	}
	return levels, nil
}

func (e Episodes) tools() []string { return slices.Sorted(maps.Keys(e.Tools)) }

// budget is a value of a key of the type Budget: a text, or a number as it stands there.
func budget(v any) (string, error) {
	s, ok := v.(string)
	if n, number := v.(json.Number); number {
		s, ok = n.String(), true
	}
	if !ok {
		return "", errors.New("misfit")
	}
	_, err := episodes.ParseBudget(s)
	return s, err
}

// fix is what a mistake says of how to put it right, for the end of a message; most say nothing.
func fix(err error) string {
	var b *episodes.BudgetError
	if errors.As(err, &b) {
		return ": " + b.Fix
	}
	var r *ruleError
	if errors.As(err, &r) {
		return ": " + r.text
	}
	if errors.Is(err, errTrim) {
		return ": " + errTrim.Error()
	}
	return ""
}

// errTrim is trimming named among the strategies, which is none: it has no limit to act at.
var errTrim = errors.New("trim is used when a branch is made, as in tidemark branch and tidemark trim, and is no strategy: leave it out")
