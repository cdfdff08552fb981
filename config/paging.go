package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/near"
	"github.com/tidemark-ai/tidemark/paging"
)

// Paging says when results of tools leave the context.
type Paging struct {
	Policy   string
	Tau      int
	MinBytes int
	Zones    []int // three, ascending, in percent of the window

	Cooperate bool // the model may tidy its context by tags in its answers

	Tools map[string]PagingTool // rows over the table of known tools, by name
}

// PagingTool says what a tool does, as paging.Tool does.
type PagingTool struct {
	Kind  string // reads, changes, looks
	Path  []string
	Verb  string
	Views []string
	Patch string
}

// Rows are the tools as a table of paging takes them. What is wrong is named by its tool.
func (p Paging) Rows() (map[string]paging.Tool, error) {
	rows, seen := map[string]paging.Tool{}, map[string]string{}
	for _, name := range p.tools() {
		t := p.Tools[name]
		row := paging.Tool{Path: t.Path, Verb: t.Verb, Views: t.Views, Patch: t.Patch}
		switch t.Kind {
		case "reads":
			row.Kind = paging.Reads
		case "changes":
			row.Kind = paging.Changes
		case "":
			return nil, fmt.Errorf("tool %.60q: kind is missing: want reads, changes or looks", name)
		}
		plain := near.Plain(name)
		if other, twice := seen[plain]; twice || plain == "" {
			return nil, fmt.Errorf("tool %.60q is %.60q again, since capitals, _ and - do not count: give one of them", name, other)
		}
		rows[name], seen[plain] = row, name
	}
	return rows, nil
}

// Percents are the zones as paging has them.
func (p Paging) Percents() paging.Zones {
	if len(p.Zones) != zoneCount {
		return paging.Zones{}
	}
	return paging.Zones{Advisory: p.Zones[0], Involuntary: p.Zones[1], Aggressive: p.Zones[2]}
}

// zoneCount is how many zones lie above the normal one.
const zoneCount = 3

// percents reads ascending whole numbers of percent, as many as there are zones.
func percents(v any) ([]int, bool) {
	elements, ok := v.([]any)
	if !ok || len(elements) != zoneCount {
		return nil, false
	}
	out := make([]int, 0, zoneCount)
	for _, e := range elements {
		n, ok := e.(json.Number)
		i, err := strconv.Atoi(n.String())
		if !ok || err != nil {
			return nil, false
		}
		out = append(out, i)
	}
	return out, paging.Zones{Advisory: out[0], Involuntary: out[1], Aggressive: out[2]}.Valid() == nil && out[2] > 0
}

func (p Paging) tools() []string { return slices.Sorted(maps.Keys(p.Tools)) }

func pagingKeys() []Key {
	const tools = "Over the table of known tools, by name without regard to capitals, _ and -: "
	row := func(f func(*PagingTool) any) func(*Config, string) any {
		return func(c *Config, star string) any {
			t := c.Compaction.Paging.Tools[star]
			return &inMap{ptr: f(&t), store: func() {
				if c.Compaction.Paging.Tools == nil {
					c.Compaction.Paging.Tools = map[string]PagingTool{}
				}
				c.Compaction.Paging.Tools[star] = t
			}}
		}
	}
	return []Key{
		{Name: "compaction.paging.policy", Type: Choice, Default: `"cost"`, Values: strings.Join(paging.Policies(), " "), at: func(c *Config, _ string) any { return &c.Compaction.Paging.Policy },
			Doc: "With the strategy paging, who leaves when: cost lets old results go in batches when one pays, lru what was not used for long, fifo is the paper unadorned, batch a simple rule to compare with."},
		{Name: "compaction.paging.tau", Type: Number, Default: "4", Min: 1, Max: 1000, at: func(c *Config, _ string) any { return &c.Compaction.Paging.Tau },
			Doc: "Age from which a result may leave, in rounds of tools; what a person writes ages by two, with fifo by one."},
		{Name: "compaction.paging.minBytes", Type: Number, Default: "500", Max: 1 << 30, at: func(c *Config, _ string) any { return &c.Compaction.Paging.MinBytes },
			Doc: "Bytes from which a result, an input or an image may leave."},
		{Name: "compaction.paging.cooperate", Type: Switch, Default: "true", at: func(c *Config, _ string) any { return &c.Compaction.Paging.Cooperate },
			Doc: "With the strategy paging, what the model writes between cleanup tags is carried out and taken out of its answer: it may drop or summarize blocks, keep some, and sum up turns."},
		{Name: "compaction.paging.zones", Type: Percents, Default: "[30,50,60]", at: func(c *Config, _ string) any { return &c.Compaction.Paging.Zones },
			Doc: "Percent of the window at which the zones advisory, involuntary and aggressive begin. Below the first nothing leaves; the fuller, the more does, and the more the model is told."},
		{Name: "compaction.paging.tools.*.kind", Type: Choice, Values: "reads changes looks", at: row(func(t *PagingTool) any { return &t.Kind }),
			Doc: tools + "reads is a tool that reads a file or a part of it, changes one that changes it, looks any other."},
		{Name: "compaction.paging.tools.*.path", Type: Names, Values: "file_path", at: row(func(t *PagingTool) any { return &t.Path }),
			Doc: "Fields of its input that may hold the path. When it is not set: the usual ones."},
		{Name: "compaction.paging.tools.*.verb", Type: Text, at: row(func(t *PagingTool) any { return &t.Verb }),
			Doc: "Field that says what a tool of several uses does."},
		{Name: "compaction.paging.tools.*.views", Type: Names, Values: "view", at: row(func(t *PagingTool) any { return &t.Views }),
			Doc: "Words of verb that only read."},
		{Name: "compaction.paging.tools.*.patch", Type: Text, at: row(func(t *PagingTool) any { return &t.Patch }),
			Doc: "Field with a patch that names its files itself."},
	}
}
