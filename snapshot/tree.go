package snapshot

import (
	"cmp"
	"slices"
)

// Tree is all nodes in the order of their drawing: each root with what is below it, depth first. It is a flat list,
// since chains of snapshots get longer than nested JSON and recursion may.
type Tree struct {
	Rows []Row
	// Repeated counts nodes that were given twice; the first of each is in the tree.
	Repeated int
}

// Row is a node in its place.
type Row struct {
	Node
	Depth int  `json:"depth"`            // 0 for a root
	Lost  bool `json:"lost,omitempty"`   // a root whose parent is not here
	Cut   bool `json:"circle,omitempty"` // a root that is its own ancestor: the circle is cut before it
	Below int  `json:"below,omitempty"`  // nodes below it that [Tree.To] left out
	last  bool // none of its siblings follows
}

// key tells nodes apart.
type key struct{ of, id string }

// Grow puts nodes in their places. Roots stand by their age; below a node stand first its branches, then its snapshots,
// each by age. A node whose parent is not among them is a root; so is the oldest of a circle.
func Grow(nodes []Node) Tree {
	g := garden{nodes: make([]Node, 0, len(nodes)), at: make(map[key]int, len(nodes))}
	repeated := 0
	for _, n := range nodes {
		k := key{n.Of, n.ID}
		if _, there := g.at[k]; there {
			repeated++
			continue
		}
		g.at[k] = len(g.nodes)
		g.nodes = append(g.nodes, n)
	}
	return Tree{Rows: g.grow(), Repeated: repeated}
}

// garden is nodes on their way into a tree. Nodes are named by their index.
type garden struct {
	nodes  []Node
	at     map[key]int
	parent []int // -1 for none here
	first  []int // children of node i are order[first[i]:first[i+1]]
	order  []int
	placed []bool
	rows   []Row
}

func (g *garden) grow() []Row {
	roots := g.arrange()
	g.placed, g.rows = make([]bool, len(g.nodes)), make([]Row, 0, len(g.nodes))
	for _, r := range roots {
		g.plant(r, Row{Lost: g.nodes[r].Parent != ""})
	}
	for i := range g.nodes { // what is below no root is in or below a circle
		if !g.placed[i] {
			g.plant(g.oldest(i), Row{Cut: true})
		}
	}
	g.sortRoots()
	return g.rows
}

// arrange finds parents and sorted children, and returns the roots.
func (g *garden) arrange() (roots []int) {
	n := len(g.nodes)
	g.parent, g.first, g.order = make([]int, n), make([]int, n+2), make([]int, n)
	sorted := make([]int, n)
	for i := range g.nodes {
		sorted[i], g.parent[i] = i, -1
		if p, ok := g.at[key{g.nodes[i].Of, g.nodes[i].Parent}]; ok && g.nodes[i].Parent != "" {
			g.parent[i] = p
			g.first[p+2]++
		}
	}
	slices.SortStableFunc(sorted, func(a, b int) int { return before(&g.nodes[a], &g.nodes[b]) })
	for i := 2; i < len(g.first); i++ {
		g.first[i] += g.first[i-1]
	}
	for _, i := range sorted { // into the places of their parents; first[p+1] is where the next child of p goes
		if p := g.parent[i]; p >= 0 {
			g.order[g.first[p+1]] = i
			g.first[p+1]++
		} else {
			roots = append(roots, i)
		}
	}
	return roots
}

// before orders siblings: branches, then snapshots, each by age.
func before(a, b *Node) int {
	if a.Kind != b.Kind {
		return cmp.Compare(a.Kind, b.Kind) // branch is before snapshot
	}
	return older(a, b)
}

func older(a, b *Node) int {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Of, b.Of))
}

// plant places a root and what is below it. A node that is placed already ends a circle.
func (g *garden) plant(root int, as Row) {
	as.Node = g.nodes[root]
	type step struct{ node, depth int }
	stack := []step{{root, 0}}
	for len(stack) > 0 {
		s := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if g.placed[s.node] {
			continue
		}
		g.placed[s.node] = true
		if s.node != root {
			as = Row{Node: g.nodes[s.node], Depth: s.depth}
		}
		g.rows = append(g.rows, as)
		for _, c := range slices.Backward(g.order[g.first[s.node]:g.first[s.node+1]]) {
			stack = append(stack, step{c, s.depth + 1})
		}
	}
}

// oldest is the oldest node of the circle that the parents of node i run into.
func (g *garden) oldest(i int) int {
	met := map[int]bool{}
	for !met[i] {
		met[i] = true
		i = g.parent[i]
	}
	found := i
	for n := g.parent[i]; n != i; n = g.parent[n] {
		if older(&g.nodes[n], &g.nodes[found]) < 0 {
			found = n
		}
	}
	return found
}

// sortRoots puts the roots by age, those of circles too, and marks the last of siblings.
func (g *garden) sortRoots() {
	type span struct{ from, to int }
	var spans []span
	for i := range g.rows {
		if g.rows[i].Depth == 0 {
			if len(spans) > 0 {
				spans[len(spans)-1].to = i
			}
			spans = append(spans, span{from: i, to: len(g.rows)})
		}
	}
	slices.SortStableFunc(spans, func(a, b span) int { return older(&g.rows[a.from].Node, &g.rows[b.from].Node) })
	rows := make([]Row, 0, len(g.rows))
	for _, s := range spans {
		rows = append(rows, g.rows[s.from:s.to]...)
	}
	markLast(rows)
	g.rows = rows
}

// markLast marks the rows that no sibling follows: from the end, the first of each depth since a row less deep.
func markLast(rows []Row) {
	var follows []bool // at each depth, whether a sibling follows
	for i := len(rows) - 1; i >= 0; i-- {
		d := rows[i].Depth
		for len(follows) <= d {
			follows = append(follows, false)
		}
		rows[i].last = !follows[d]
		follows[d] = true
		follows = follows[:d+1]
	}
}

// To is the tree down to a number of levels, roots being the first; 0 or less is all of it. Rows say how many nodes
// were left out below them.
func (t Tree) To(levels int) Tree {
	if levels <= 0 {
		return t
	}
	out := Tree{Repeated: t.Repeated}
	for _, r := range t.Rows {
		if r.Depth < levels {
			out.Rows = append(out.Rows, r)
		} else if n := len(out.Rows); n > 0 {
			out.Rows[n-1].Below++
		}
	}
	return out
}
