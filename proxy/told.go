package proxy

import (
	"context"
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/proxy/body"
)

// EpisodesTold are the episodes of a track, with their places in its log, and what of each its next request would have.
type EpisodesTold struct {
	Log      string
	Enabled  bool // they may leave, or did
	Budget   tidemark.Tokens
	LowWater tidemark.Tokens
	Size     tidemark.Tokens // of the newest request with its answer
	Short    tidemark.Tokens
	Open     string // the name of the one that is open
	Prologue bool   // work before the first one that was marked stays
	States   []episodes.State
	Part     map[int]bool // those of which something left, by number
}

// Episodes tells of a track by its name, "" for the first. Calls of our own tool are in no log of the client's, so nobody else
// knows. Of a track that is not there it is tidemark.ErrNotFound.
func (c *Conversation) Episodes(ctx context.Context, track string) (EpisodesTold, error) {
	x, err := c.historyOf(ctx, track)
	if err != nil {
		return EpisodesTold{}, err
	}
	// Clients do not wait while a whole history is read: what is stored stays as it is.
	items := make(map[*node]body.Item, len(x.path))
	if err := c.read(ctx, x.path, func(n *node, it body.Item) { items[n] = it }); err != nil {
		return EpisodesTold{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.episodesOf(x, items)
	for _, s := range out.States { // they are of a graph of their own
		s.Episode.From, s.Episode.To = x.inLog(s.Episode.From, false), x.inLog(s.Episode.To, true)
	}
	return out, nil
}

// inLog is where the log has a place of the graph, which counts the messages of one history and what the client never saw. What
// is in no log is behind what comes before it, for the end of something, and before what comes behind it, for a beginning.
func (x *Exchange) inLog(p episodes.Place, end bool) episodes.Place {
	n := x.path[int(p.Seq)/seqs-1]
	out := episodes.Place{Seq: n.seq, Block: len(n.form)}
	if end {
		out.Block = -1
	}
	for _, u := range n.form.units(n.put) {
		switch {
		case u.own < 0:
		case end && u.N <= p.Block:
			out.Block = max(out.Block, u.own)
		case !end && u.N >= p.Block:
			out.Block = min(out.Block, u.own)
		}
	}
	return out
}

// historyOf is an exchange that would be sent what is stored of a track.
func (c *Conversation) historyOf(ctx context.Context, track string) (*Exchange, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.load(ctx); err != nil {
		return nil, err
	}
	for _, t := range c.tree.tracks {
		if t.name != track || t.log == "" {
			continue
		}
		// How long an answer the client will ask for is not known: the budget that is told leaves room for the longest.
		x := &Exchange{c: c, of: t, treatment: Episodes, path: t.leaf.path(), req: &body.Request{Max: c.Settings.Window}}
		for len(x.path) > 0 && x.path[len(x.path)-1].seq == 0 { // a request that is in work
			x.path = x.path[:len(x.path)-1]
		}
		return x, nil
	}
	return nil, fmt.Errorf("track %q: %w", track, tidemark.ErrNotFound)
}

// episodesOf tells of a history whose messages are given. It is called with the lock held.
func (c *Conversation) episodesOf(x *Exchange, stored map[*node]body.Item) EpisodesTold {
	out := EpisodesTold{Log: x.of.log, Enabled: episodic(c.Settings.Treatment), Budget: c.limit(x.req), Part: map[int]bool{}}
	out.LowWater = episodes.LowMark(out.Budget, c.Settings.Episodes.LowWater)
	if len(x.path) == 0 {
		return out
	}
	for _, n := range x.path {
		it, ok := stored[n]
		if !ok {
			it = logged(tidemark.Message{})
		}
		x.req.Items, x.sums = append(x.req.Items, it), append(x.sums, n.sum)
		if n.form == nil {
			n.form = formOf(it)
		}
		if n.work == nil {
			n.work = workOf(n, it)
		}
		out.Enabled = out.Enabled || n.reported > 0 || len(n.acts) > 0
	}
	g := episodes.New(c.Settings.Episodes.Tools) // beside that of the track, which may be further
	g.Inherit(c.explored.names)
	for i := range x.path {
		c.add(g, x.path, i)
	}
	if back := x.path[len(x.path)-1].answered(); len(back.Content.Content) > 0 { // the client's next message is not there yet
		g.Add(back)
	}
	l := leftOf(x.path)
	_, items := x.rows(&l)
	ledger := episodes.NewLedger(g, items)
	out.States, out.Size, out.Prologue = ledger.States(), x.takes(), g.Prologue(episodes.PrologueOf(out.Budget))
	if n := len(out.States); n > 0 && out.States[n-1].Episode.Vain { // what was refused is no work, whatever comes
		out.States = out.States[:n-1]
	}
	out.Short = max(out.Size-out.Budget, 0)
	if a := g.Active(); a != nil {
		out.Open = a.Name
	}
	out.cut(g, &l)
	return out
}

// cut notes the episodes of which something left.
func (e *EpisodesTold) cut(g *episodes.Graph, l *left) {
	for item, blocks := range l.blocks {
		for at := range blocks {
			if o := g.Owner(episodes.Place{Seq: int64(seqs * (item + 1)), Block: at.N}); o != nil {
				e.Part[o.N] = true
			}
		}
	}
	for _, s := range l.spans {
		for _, o := range g.Episodes() {
			if o.From.Seq <= int64(seqs*(s.To+1)+1) && o.To.Seq >= int64(seqs*(s.From+1)) {
				e.Part[o.N] = true
			}
		}
	}
}
