package proxy

import (
	"context"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/proxy/body"
)

// graphed is the graph of a track and the newest message in it.
type graphed struct {
	graph *episodes.Graph
	at    *node
	known int // explorations of the conversation that it was told of
	noted int // episodes of it that are closed and that the conversation was told of
}

// seqs is how many places in a graph's log a message takes: its own, and one for results that the client never saw where
// the history goes on without any.
const seqs = 2

// works makes sure that all messages of a request can be added to a graph: after a restart, or where episodes are asked for
// late, the log has them.
func (c *Conversation) works(ctx context.Context, x *Exchange) error {
	if !episodic(x.treatment) {
		return nil
	}
	var stored []*node
	for _, n := range x.path {
		if n.work == nil && n.raw == nil && n.seq != 0 {
			stored = append(stored, n)
		}
	}
	if err := c.read(ctx, stored, func(n *node, it body.Item) { n.work = workOf(n, it) }); err != nil {
		return err
	}
	for i, n := range x.path {
		if n.work != nil {
			continue
		}
		it := x.req.Items[i]
		if n.raw != nil {
			if own, err := body.NewItem(n.raw); err == nil {
				it = own
			}
		}
		n.work = workOf(n, it)
	}
	return nil
}

// graphOf returns the graph of a history, which is that of its track. It is called with the lock held.
func (c *Conversation) graphOf(t *track, path []*node) *episodes.Graph {
	have := t.works
	if have.graph == nil && t.base != nil { // what is shared with the base is known
		have = t.base.works
	}
	if have.graph == nil {
		have = graphed{graph: episodes.New(c.Settings.Episodes.Tools), at: c.tree.root}
	}
	if at := have.at; at != c.tree.root && (at.depth > len(path) || path[at.depth-1] != at) || have.at != t.works.at {
		shared := 0
		for i, n := range at.path() {
			if i < len(path) && path[i] == n {
				shared = n.depth
			}
		}
		have.graph, have.noted = have.graph.Until(int64(seqs*shared)), 0
		have.at = c.tree.root
	}
	if names := c.explored.names; have.known < len(names) {
		have.graph.Inherit(names[have.known:])
		have.known = len(names)
	}
	for i := have.at.depth; i < len(path); i++ {
		c.add(have.graph, path, i)
	}
	have.at = path[len(path)-1]
	t.works = have
	c.explored.take(&t.works)
	return have.graph
}

// add takes a message into a graph.
func (c *Conversation) add(g *episodes.Graph, path []*node, i int) {
	n := path[i]
	seq := int64(seqs * n.depth)
	if seq <= g.Upto() {
		return
	}
	m := episodes.Message{ID: n.id, Seq: seq, Tokens: n.work.tokens, Content: tidemark.Message{Role: n.role, Content: n.work.blocks}}
	if i > 0 {
		switch back := path[i-1].answered(); {
		case len(back.Content.Content) == 0:
		case n.answers():
			m.Content.Content, m.Tokens = append(back.Content.Content, m.Content.Content...), m.Tokens+back.Tokens
		default:
			g.Add(back)
		}
	}
	g.Add(m)
}

// answered is what our tools said to a reply, as a message behind it.
func (n *node) answered() episodes.Message {
	m := episodes.Message{ID: n.id, Seq: int64(seqs*n.depth) + 1, Content: tidemark.Message{Role: tidemark.User, Content: n.put.answered()}}
	for i, b := range m.Content.Content {
		m.Tokens += sizeOf(b)
		m.Content.Content[i] = slim(b)
	}
	return m
}

// answers reports whether a message has results of the client's.
func (n *node) answers() bool { return n.role == tidemark.User && !n.asks }

// explored are the explorations that ended in any track of a conversation: others may rest on them. A client that sums its
// history up begins a new track with the summary.
type explored struct {
	names []string
	kept  int             // are stored
	known map[string]bool // the names again
}

// take notes those of a track that ended.
func (e *explored) take(g *graphed) {
	list := g.graph.Episodes()
	for ; g.noted < len(list) && !list[g.noted].Open; g.noted++ {
		if o := list[g.noted]; o.Type == episodes.Exploration && len(e.names) < episodes.MaxEpisodes && !e.known[o.Name] {
			e.add(o.Name)
		}
	}
}

func (e *explored) add(name string) {
	if e.known == nil {
		e.known = map[string]bool{}
	}
	e.names, e.known[name] = append(e.names, name), true
}

// stmts store those that are new.
func (e *explored) stmts(key tidemark.Key) (stmts []tidemark.Stmt) {
	for i, name := range e.names[e.kept:] {
		stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO proxy_explored(key, n, name) VALUES(?, ?, ?) ON CONFLICT DO NOTHING`, Args: []any{string(key), e.kept + i, name}})
	}
	return stmts
}

// episodic reports whether a treatment lets episodes leave.
func episodic(treatment string) bool { return strings.HasPrefix(treatment, Episodes) }

// delimit answers the calls of the tool of episodes in a leg, each as if those before it were carried out.
func (x *Exchange) delimit(leg tidemark.Message) map[string]episodes.Answer {
	if !x.plan.offered(episodes.ToolName) {
		return nil
	}
	if x.marks == nil {
		x.c.mu.Lock()
		x.marks = x.c.graphOf(x.of, x.path).Clone()
		x.c.mu.Unlock()
	}
	x.marks.Add(episodes.Message{ID: "leg", Seq: x.marks.Upto() + 1, Content: leg})
	return x.marks.Answer()
}

// delimited takes what a leg was answered.
func (x *Exchange) delimited(results []tidemark.Block) {
	if x.marks != nil && len(results) > 0 {
		x.marks.Add(episodes.Message{ID: "leg", Seq: x.marks.Upto() + 1, Content: tidemark.Message{Role: tidemark.User, Content: results}})
	}
}
