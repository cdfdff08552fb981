package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

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
