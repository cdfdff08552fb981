package snapshot

import (
	"fmt"
	"strings"

	"github.com/tidemark-ai/tidemark"
)

// minPrefix is how much of an id must be given where not all of it is.
const minPrefix = 6

// Find returns the node that a reference names: by its id; else by its name, where only one has it; else by the
// beginning of its id.
//
// # Errors
//
// tidemark.ErrNotFound; tidemark.ErrConflict when several have that name, which lists their ids.
func Find(nodes []Node, ref string) (Node, error) {
	var named, begun []Node
	for _, n := range nodes {
		switch {
		case n.ID == ref:
			return n, nil
		case n.Name == ref:
			named = append(named, n)
		case len(ref) >= minPrefix && strings.HasPrefix(n.ID, ref):
			begun = append(begun, n)
		}
	}
	if snaps := only(named, KindSnapshot); len(snaps) == 1 {
		named = snaps // a branch often has the name of what it was made of
	}
	switch {
	case len(named) == 1:
		return named[0], nil
	case len(named) > 1:
		return Node{}, several(named, fmt.Sprintf("%d are named %q", len(named), ref))
	case len(begun) == 1:
		return begun[0], nil
	case len(begun) > 1:
		return Node{}, several(begun, fmt.Sprintf("%d ids begin with %s", len(begun), ref))
	}
	return Node{}, fmt.Errorf("snapshot %.100q: %w", ref, tidemark.ErrNotFound)
}

func only(nodes []Node, kind string) (out []Node) {
	for _, n := range nodes {
		if n.Kind == kind {
			out = append(out, n)
		}
	}
	return out
}

// several says which nodes a reference may mean.
func several(nodes []Node, what string) error {
	const most = 20
	var b strings.Builder
	for i, n := range nodes {
		if i == most {
			fmt.Fprintf(&b, "\n… and %d more", len(nodes)-most)
			break
		}
		fmt.Fprintf(&b, "\n%s  %s of %s, %s", plain(n.ID), n.Kind, plain(n.Session), n.Created.UTC().Format("2006-01-02 15:04:05"))
	}
	return fmt.Errorf("%s; give the id of the one you mean:%s\n%w", what, b.String(), tidemark.ErrConflict)
}
