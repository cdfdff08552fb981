package episodes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
)

// Type is what an episode is for (papers/cwl §4.2).
type Type string

// The types of episodes. Work that the agent did not mark has none.
const (
	Exploration Type = "expl" // gathers information
	Action      Type = "act"  // changes something; what it did stands in the world
	Unmarked    Type = ""     // treated as an exploration with unknown dependencies
)

// Place is a block of a log: the position of its message, and which block of that from 0.
type Place struct {
	Seq   int64 `json:"seq"`
	Block int   `json:"block"`
}

func (p Place) before(q Place) bool { return p.Seq < q.Seq || p.Seq == q.Seq && p.Block < q.Block }

// Episode is a piece of an agent's work: all blocks of the assistant from one place to another, and the results of
// their calls. What a person said in between is no part of it.
type Episode struct {
	N            int      `json:"n"` // from 1, in the order in which they began
	Name         string   `json:"name,omitempty"`
	Type         Type     `json:"type,omitempty"`
	Dependencies []string `json:"dependencies,omitempty"` // closed explorations, of an action
	Description  string   `json:"description,omitempty"`  // what was learned, of a closed exploration

	Open  bool             `json:"open,omitempty"`
	Early bool             `json:"early,omitempty"` // unmarked work before the first episode
	Vain  bool             `json:"vain,omitempty"`  // of it are only calls of the tool that were refused or failed
	From  Place            `json:"from"`
	To    Place            `json:"to"`    // last block so far
	Entry tidemark.EntryID `json:"entry"` // message of From
	Last  tidemark.EntryID `json:"last"`  // message of To

	Calls   int             `json:"calls"` // of tools, the delimiter apart
	Tokens  tidemark.Tokens `json:"tokens"`
	Read    []string        `json:"read,omitempty"`    // files that it read
	Changed []string        `json:"changed,omitempty"` // files that it changed
	More    int             `json:"more,omitempty"`    // files beyond maxFiles

	rests []*Episode // actions that depend on it
	dirty bool       // changed since it was last saved
}

// Bounds of what an episode keeps.
const (
	MaxEpisodes    = 20_000 // of one log, with unmarked work; then the tool is refused
	maxWork        = 90_000 // then unmarked work is of none, and stays
	maxName        = 100    // bytes
	maxDescription = 2_000
	maxDepends     = 64
	maxFiles       = 40 // read, and changed
	maxListed      = 40 // names that a refusal lists
)

// String names an episode for people.
func (e *Episode) String() string {
	switch e.Type {
	case Unmarked:
		return fmt.Sprintf("unmarked work %d", e.N)
	case Action:
		return fmt.Sprintf("action %q", e.Name)
	}
	return fmt.Sprintf("exploration %q", e.Name)
}

// copied is a copy that may go on by itself.
func (e *Episode) copied() Episode {
	c := *e
	c.Read, c.Changed = c.Read[:len(c.Read):len(c.Read)], c.Changed[:len(c.Changed):len(c.Changed)]
	return c
}

// depend notes a dependency once.
func (e *Episode) depend(name string) {
	if name = strings.TrimSpace(name); !slices.Contains(e.Dependencies, name) {
		e.Dependencies = append(e.Dependencies, name)
	}
}

// touch notes a file that a call read or changed.
func (e *Episode) touch(path string, changes bool) {
	list := &e.Read
	if changes {
		list = &e.Changed
	}
	switch {
	case path == "" || slices.Contains(*list, path):
	case len(*list) >= maxFiles:
		e.More++
	default:
		*list = append(*list, path)
	}
}
