package proxy

import (
	"context"
	"fmt"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/paging"
)

// episodePath begins the name by which an episode is read back.
const episodePath = "episode:"

// sayEpisode is how a line names the way back.
const sayEpisode = paging.FaultTool + ` with {"paths": ["` + episodePath + `NAME"]} reads one.`

// recalled is what an episode was: what the model said in it, its calls and what came of them. ok is false for what names
// none.
func (x *Exchange) recalled(ctx context.Context, name string, left int) (out []tidemark.Block, size int, ok bool) {
	of, named := strings.CutPrefix(name, episodePath)
	if !named {
		return nil, 0, false
	}
	x.c.mu.Lock()
	e, list := x.episode(strings.TrimSpace(of))
	x.c.mu.Unlock()
	if e == nil {
		return nil, 0, false
	}
	handle := episodePath + string(e.Entry)
	if x.given[handle] {
		return []tidemark.Block{tidemark.Text(clipped(name) + " stands in an answer above.")}, 0, true
	}
	x.given[handle] = true
	out = []tidemark.Block{tidemark.Text(fmt.Sprintf("%s, as it was:", clipped(e.String())))}
	var rest []string
	for _, g := range list {
		b, err := x.original(ctx, g)
		if err != nil {
			out = append(out, tidemark.Text(handleOf(g.node, g.block)+" cannot be read now: "+tell(err)+"."))
			continue
		}
		blocks := shownOf(b)
		n := 0
		for _, s := range blocks {
			n += len(s.AppendJSON(nil))
		}
		if size+n > left {
			rest = append(rest, handleOf(g.node, g.block))
			continue
		}
		out, size = append(out, blocks...), size+n
	}
	if len(rest) > maxNamed {
		rest = append(rest[:maxNamed:maxNamed], "…")
	}
	if len(rest) > 0 {
		out = append(out, tidemark.Text("More than one answer holds. The rest: "+strings.Join(rest, ", ")+"."))
	}
	return out, size, true
}

// shownOf is a block as an answer shows it.
func shownOf(b tidemark.Block) []tidemark.Block {
	switch b.Type {
	case tidemark.TypeText:
		return []tidemark.Block{tidemark.Text(b.Text)}
	case tidemark.TypeToolUse:
		return []tidemark.Block{tidemark.Text(b.Name + " " + string(b.Input))}
	case tidemark.TypeToolResult:
		var out []tidemark.Block
		for _, c := range b.Content {
			if c.Type != tidemark.TypeText || strings.TrimSpace(c.Text) != "" {
				out = append(out, c)
			}
		}
		return out
	}
	return nil
}

// episode finds an episode of this history by its name, or one without by its entry, and lists its blocks. It is called with the
// lock held.
func (x *Exchange) episode(name string) (e *episodes.Episode, list []given) {
	if x.of == nil || !episodic(x.treatment) {
		return nil, nil
	}
	g := x.c.graphOf(x.of, x.path)
	if e = g.Find(name); e == nil {
		for _, o := range g.Episodes() {
			if o.Type == episodes.Unmarked && string(o.Entry) == name {
				e = o
			}
		}
	}
	if e == nil {
		return nil, nil
	}
	calls := map[string]bool{}
	for i := int(e.From.Seq)/seqs - 1; i <= int(e.To.Seq)/seqs && i < len(x.path); i++ {
		n := x.path[i]
		units := x.formAt(i).units(n.put)
		for _, u := range units {
			var b tidemark.Block
			if u.own < 0 || u.Thought > 0 || json.Unmarshal(u.of(x.req.Items[i]), &b) != nil {
				continue
			}
			owner := n.role == tidemark.Assistant && g.Owner(episodes.Place{Seq: int64(seqs * n.depth), Block: u.N}) == e
			if owner && b.Type == tidemark.TypeToolUse {
				calls[b.ID] = true
			}
			if owner || b.Type == tidemark.TypeToolResult && calls[b.ToolUseID] {
				list = append(list, given{node: n, block: x.logged(i, u)})
			}
		}
	}
	return e, list
}

// logged is the block of the log that a unit of the client's is.
func (x *Exchange) logged(i int, u unit) int {
	n := x.path[i]
	for _, o := range n.form.units(n.put) {
		if o.place == u.place {
			return o.own
		}
	}
	return u.own
}

// warn tells the model that nothing more may leave although the budget is not met, behind everything that is cached; and the server's log when that begins.
func (x *Exchange) warn() {
	r, begins := x.plan.episodes, false
	if !x.ask.Count {
		begins, _ = x.of.short.See(string(x.path[lastAsked(x.path)].id), r.Size, r.Budget)
	}
	if r.Short <= 0 {
		return
	}
	say := fmt.Sprintf("[Context: about %d tokens, %d over the budget of %d, and nothing more may leave.", r.Size, r.Short, r.Budget)
	if x.plan.offered(episodes.ToolName) {
		say += " What is finished can: end the open episode, or mark what you do by " + episodes.ToolName + "."
	}
	x.plan.change.Note = say + "]"
	if begins {
		x.c.Logger.Warn("a proxied request is over the budget of episodes", "key", x.c.Key, "tokens", r.Size, "budget", r.Budget)
	}
}
