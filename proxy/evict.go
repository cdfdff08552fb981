package proxy

import (
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/proxy/body"
)

// EpisodeSettings say when episodes leave. The zero value is that of the paper, with a low-water mark.
type EpisodeSettings struct {
	Budget   episodes.Budget
	LowWater int            // percent of the budget that an act goes down to, 0 for [episodes.DefaultLowWater]
	Tools    episodes.Tools // with which level calls leave
}

// limit is the size above which episodes leave: never more than the window leaves beside the answer.
func (c *Conversation) limit(r *body.Request) tidemark.Tokens {
	const most = 4 // an answer is taken to have a quarter of the window at most
	w := c.Settings.Window
	return min(c.Settings.Episodes.Budget.Of(w), w-min(r.Max, w/most))
}

// act is what left with one request. It holds in every history that has the message which that request ended with, and
// in no other: so what was sent is sent again.
type act struct {
	At     tidemark.EntryID `json:"at"`
	Spans  []leftSpan       `json:"spans,omitempty"`
	Blocks []leftBlock      `json:"blocks,omitempty"`
	Freed  tidemark.Tokens  `json:"freed"` // as estimated,
	Real   tidemark.Tokens  `json:"real"`  // and as the API counts

	stored bool
	steps  []episodes.Step
}

// leftSpan is messages that left whole, by item, and what stands for them.
type leftSpan struct {
	From int `json:"from"`
	To   int `json:"to"`
	episodes.Line
	Text string `json:"text,omitempty"`
}

// leftBlock is a block that left.
type leftBlock struct {
	Item int `json:"item"`
	place
	Text string `json:"text,omitempty"` // stands for it,
	Told int    `json:"line,omitempty"` // and is the line of an episode
}

// left is what of a history is not sent, or otherwise.
type left struct {
	spans  []leftSpan // in order
	blocks map[int]map[place]leftBlock
}

// leftOf joins the acts of a history.
func leftOf(path []*node) left {
	l := left{blocks: map[int]map[place]leftBlock{}}
	for _, n := range path {
		for _, a := range n.acts {
			l.add(a)
		}
	}
	return l
}

// add takes one more act. What it says of messages goes before what was said of them earlier.
func (l *left) add(a *act) {
	for _, s := range a.Spans {
		l.spans = slices.DeleteFunc(l.spans, func(o leftSpan) bool { return o.From >= s.From && o.To <= s.To })
		l.spans = append(l.spans, s)
	}
	slices.SortStableFunc(l.spans, func(a, b leftSpan) int { return a.From - b.From })
	for _, b := range a.Blocks {
		if l.blocks[b.Item] == nil {
			l.blocks[b.Item] = map[place]leftBlock{}
		}
		l.blocks[b.Item][b.place] = b
	}
}

// hidden are the items that are not sent themselves.
func (l *left) hidden() map[int]bool {
	out := map[int]bool{}
	for _, s := range l.spans {
		for i := s.From; i <= s.To; i++ {
			out[i] = true
		}
	}
	return out
}

// takes is how large the request is: what the API said of an earlier one of this history, and what came since.
func (x *Exchange) takes() (n tidemark.Tokens) {
	from := len(x.path) - 1
	for from >= 0 && x.path[from].reported == 0 {
		from--
	}
	if from >= 0 {
		n = x.path[from].reported + x.path[from].put.tokens(false)
	} else {
		n = tidemark.EstimateChars(x.req.Fixed + x.plan.ours())
	}
	for _, m := range x.path[from+1:] {
		n += m.work.tokens + m.put.tokens(true)
		for _, a := range m.acts {
			n -= a.Real
		}
	}
	return max(n, 0)
}

// vain is a plan that freed nothing worth it: what it depends on.
type vain struct {
	closed, asked int
	size          tidemark.Tokens
}

// evict lets episodes leave where the request is over the budget, and takes out of it what left before.
func (x *Exchange) evict(t *track) {
	g := x.c.graphOf(t, x.path)
	l := leftOf(x.path)
	r, leaf := &x.plan.episodes, x.path[len(x.path)-1]
	r.Budget, r.Size = x.c.limit(x.req), x.takes()
	for _, a := range leaf.acts { // of a request that nobody answered
		if !a.stored {
			x.act = a
			tellAct(r, a)
		}
	}
	if r.Size > r.Budget {
		now := vain{closed: len(g.Episodes()), asked: lastAsked(x.path), size: r.Size}
		if n := len(g.Episodes()); n > 0 && g.Episodes()[n-1].Open {
			now.closed--
		}
		if t.vain.closed != now.closed || t.vain.asked != now.asked || episodes.Grown(t.vain.size, now.size, r.Budget) {
			if a := x.evictEpisode(g, &l); a != nil {
				a.At, x.act = leaf.id, a
				l.add(a)
				tellAct(r, a)
				r.Size -= a.Real
				if !x.ask.Count {
					leaf.acts = append(leaf.acts, a)
				}
				t.vain = vain{}
			} else {
				t.vain = now
			}
		}
	}
	r.Short = max(r.Size-r.Budget, 0)
	x.leave(&l)
}

// evictEpisode decides what leaves. It returns nil where that would not be worth the cache that it costs.
func (x *Exchange) evictEpisode(g *episodes.Graph, l *left) *act {
	rows, items := x.rows(l)
	limit, size := x.plan.episodes.Budget, x.plan.episodes.Size
	var sum tidemark.Tokens
	for i := range items {
		sum += items[i].Tokens
	}
	all := tidemark.EstimateChars(x.req.Fixed+x.plan.ours()) + sum
	need := episodes.NeedOf(size, all, limit, x.c.Settings.Episodes.LowWater)
	if x.plan.offered(paging.FaultTool) {
		need.Back, need.Entry = sayEpisode, func(e *episodes.Episode) string { return episodePath + string(e.Entry) }
	}
	ledger := episodes.NewLedger(g, items)
	p := ledger.Plan(need)
	if !p.Worth(limit) {
		return nil
	}
	a := &act{Freed: p.Freed, Real: episodes.Scaled(p.Freed, size, all), steps: p.Steps}
	for _, run := range p.Runs {
		a.run(rows, run)
	}
	lines := a.Blocks
	for _, b := range p.Blocks {
		if u := rows[b.Item].units[b.Block]; !u.back {
			a.block(lines, leftBlock{rows[b.Item].item, u.place, b.Text, b.Line})
		}
	}
	return a
}

// run takes messages out that leave whole. Results of ours that stand by themselves are no message of the client's: they
// leave with their calls, and a line for them stands in the place of the first.
func (a *act) run(rows []row, r episodes.Run) {
	s := leftSpan{From: -1, Line: r.Line, Text: r.Text}
	for _, row := range rows[r.From : r.To+1] {
		if row.back {
			continue
		}
		if s.From < 0 {
			s.From = row.item
		}
		s.To = max(row.item, row.to)
	}
	if s.From >= 0 {
		a.Spans = append(a.Spans, s)
		return
	}
	if r.Text != "" {
		at := rows[r.From]
		told := 0
		if len(r.Lines) == 1 {
			told = r.Lines[0]
		}
		a.Blocks = append(a.Blocks, leftBlock{at.item, at.units[0].place, r.Text, told})
	}
}

// block takes a block out. Where its results stood by themselves and left with lines, these stand in its place.
func (a *act) block(lines []leftBlock, b leftBlock) {
	for i := range lines {
		if o := &a.Blocks[i]; o.Item == b.Item && o.place == b.place {
			if o.Text != "" && b.Text != "" {
				b.Text = "\n" + b.Text
			}
			o.Text, o.Told = o.Text+b.Text, max(o.Told, b.Told)
			return
		}
	}
	a.Blocks = append(a.Blocks, b)
}

// row is a message of the context as a ledger takes it.
type row struct {
	item  int    // of the request
	to    int    // the last one that it stands for
	back  bool   // results of ours behind the item, where no results of the client's follow
	units []part // of its blocks
}

// part is a block of such a message.
type part struct {
	unit
	back bool // a result of ours
}

// rows are the messages as they would be sent.
func (x *Exchange) rows(l *left) (rows []row, items []episodes.Item) {
	add := func(r row, it episodes.Item) {
		if len(it.Message.Content) > 0 {
			if it.Tokens == 0 {
				it.Tokens = tidemark.Estimate(*it.Message)
			}
			rows, items = append(rows, r), append(items, it)
		}
	}
	spans, asked := l.spans, lastAsked(x.path)
	for i := 0; i < len(x.path); i++ {
		n := x.path[i]
		seq := int64(seqs * n.depth)
		if len(spans) > 0 && spans[0].From == i {
			s := &spans[0]
			spans = spans[1:]
			if s.Text != "" {
				m := tidemark.NewText(tidemark.User, s.Text)
				add(row{item: i, to: s.To, units: []part{{}}}, episodes.Item{Seq: seq, Message: &m, Line: &s.Line})
			}
			i = s.To
			continue
		}
		switch {
		case n.instructs(): // it stays, and what is around it may leave
			continue
		case n.bars():
			m := tidemark.Message{Role: n.role, Content: []tidemark.Block{{}}}
			add(row{item: i, units: []part{{}}}, episodes.Item{Seq: seq, Message: &m, Tokens: n.work.tokens, Stays: true})
			continue
		}
		r, it := row{item: i}, episodes.Item{Seq: seq, Message: &tidemark.Message{Role: n.role}, Person: n.asks}
		if i > 0 && n.answers() {
			x.backs(&r, &it, i-1, l)
		}
		x.blocks(&r, &it, i, l)
		if n.role == tidemark.Assistant {
			it.Together = r.loops(i >= asked)
		}
		add(r, it)
		if n.put != nil && !(i+1 < len(x.path) && x.path[i+1].answers()) {
			r, it := row{item: i, back: true}, episodes.Item{Seq: seq + 1, Message: &tidemark.Message{Role: tidemark.User}}
			x.backs(&r, &it, i, l)
			add(r, it)
		}
	}
	return rows, items
}

// blocks adds the blocks of an item that stand.
func (x *Exchange) blocks(r *row, it *episodes.Item, i int, l *left) {
	n := x.path[i]
	for _, u := range x.formAt(i).units(n.put) {
		off, gone := l.blocks[i][u.place]
		if gone && off.Text == "" {
			continue
		}
		var b tidemark.Block
		number := u.N // thinking is of what follows it
		if gone {
			b, number = tidemark.Text(off.Text), -1
			if off.Told > 0 {
				it.Told = append(it.Told, off.Told)
			}
		} else if json.Unmarshal(u.of(x.req.Items[i]), &b) != nil {
			number = -1 // what cannot be read stays
		}
		r.units = append(r.units, part{unit: u})
		it.Message.Content, it.Numbers = append(it.Message.Content, b), append(it.Numbers, number)
	}
}

// backs adds the results of ours that stand, of an item.
func (x *Exchange) backs(r *row, it *episodes.Item, i int, l *left) {
	for _, u := range x.formAt(i).units(x.path[i].put) {
		if _, gone := l.blocks[i][u.place]; u.result == nil || gone {
			continue
		}
		var b tidemark.Block
		if json.Unmarshal(u.result, &b) != nil {
			continue
		}
		r.units = append(r.units, part{u, true})
		it.Message.Content, it.Numbers = append(it.Message.Content, b), append(it.Numbers, len(it.Numbers))
	}
}

// loops reports a message with thinking in the tool loop that goes on: its API knows it again, so it leaves as one.
func (r *row) loops(open bool) bool {
	return open && slices.ContainsFunc(r.units, func(p part) bool { return p.Thought > 0 })
}
