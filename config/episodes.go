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

func episodeKeys() []Key {
	return []Key{
		{Name: "compaction.episodes.budget", Type: Budget, Default: `"80k"`, at: func(c *Config, _ string) any { return &c.Compaction.Episodes.Budget },
			Doc: "With the strategy episodes, size above which episodes leave, never above the window."},
		{Name: "compaction.episodes.lowWater", Type: Number, Default: "75", Min: 10, Max: 100, at: func(c *Config, _ string) any { return &c.Compaction.Episodes.LowWater },
			Doc: "Percent of the budget down to which episodes leave at once, so that what stays does not change with each turn and is cached; 100 is down to the budget only."},
		{Name: "compaction.episodes.count", Type: Choice, Default: `"` + CountEstimate + `"`, Values: CountEstimate + " " + CountExact, at: func(c *Config, _ string) any { return &c.Compaction.Episodes.Count },
			Doc: "Who says how large the context is: estimate is ours, exact asks the provider's token counting before episodes leave, once a turn at most."},
		{
			Name: "compaction.episodes.tools.*", Type: Choice, Values: "bulk intermediate whole",
			Doc: "Over the table of known tools, by name without regard to capitals, _ and -: with what the calls of a tool leave. bulk goes first, as searches and listings do, intermediate next, as reads and commands do and tools that are not known, whole with the episode only, as changes do.",
			at: func(c *Config, star string) any {
				level := c.Compaction.Episodes.Tools[star]
				return &inMap{ptr: &level, store: func() {
					if c.Compaction.Episodes.Tools == nil {
						c.Compaction.Episodes.Tools = map[string]string{}
					}
					c.Compaction.Episodes.Tools[star] = level
				}}
			},
		},
	}
}
