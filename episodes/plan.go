package episodes

import (
	"slices"

	"github.com/tidemark-ai/tidemark"
)

// Need is what a plan is asked for.
type Need struct {
	Tokens   tidemark.Tokens       // to be freed, down to the low-water mark
	Least    tidemark.Tokens       // of that, what brings the context to its budget
	Lines    tidemark.Tokens       // most that lines of episodes may take when something leaves, 0 for no bound
	Prologue tidemark.Tokens       // size of unmarked work before the first episode up to which all of it is prologue, and stays
	Back     string                // how an episode is read back by its name
	Entry    func(*Episode) string // and one without a name; nil for no word of it
}

// Scaled is a number of tokens in another measure: that in which a context counts as to, where n is in the one in which it
// counts as of. A pass stands on one measure.
func Scaled(n, to, of tidemark.Tokens) tidemark.Tokens {
	if to <= 0 || of <= 0 {
		return n
	}
	return n * to / of
}

// Plan is what leaves a context.
type Plan struct {
	Steps  []Step
	Blocks []Removed // blocks of messages of which something stays
	Runs   []Run     // messages that leave whole, in order
	Freed  tidemark.Tokens
	Short  tidemark.Tokens // what is missing of the least: nothing more may leave
}

// Step is an episode that lost a level.
type Step struct {
	Episode *Episode
	Level   Level
	Freed   tidemark.Tokens
}

// Removed is a block that leaves, or reads otherwise.
type Removed struct {
	Part
	Text string // stands for it; "" for nothing
	Line int    // the episode that the text tells of
}

// Run is some messages in a row that leave whole, and what stands for them.
type Run struct {
	From, To int // items
	Line
	Text string // "" for nothing
}

// planner is a plan in the making.
type planner struct {
	*Ledger
	need  Need
	out   Plan
	gone  []bool // parts
	took  []int  // them, in the order in which they went
	stay  []int  // how many parts of each episode stand
	whole []bool // episodes that left whole with this plan
	tried []bool // episodes of which all left that could
	told  []line // by number
	buf   []byte // of the text in the making

	newest int // item with which the newest exchange begins

	stood, charged tidemark.Tokens // what lines took before, and what those to come will take more
	head           tidemark.Tokens // what a message of lines takes beside them
	removed        tidemark.Tokens // of parts that went
	instated       tidemark.Tokens // of what stands in messages of which something stays
}

// Plan decides what leaves to free what is needed: the pass of Algorithm 1 (papers/cwl §4.4). Actions go before
// explorations, the oldest first; of each one level after the other, and it is counted anew behind each. An exploration
// may go when every action that depends on it is gone. Unmarked work goes as an exploration. The newest exchange stays, and
// what has a part in it does not leave whole: its thinking is to be sent as it came (https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking).
func (l *Ledger) Plan(n Need) Plan {
	p := planner{Ledger: l, need: n, gone: make([]bool, len(l.parts)), whole: make([]bool, len(l.graph.list)), tried: make([]bool, len(l.graph.list)), told: make([]line, len(l.graph.list)+1),
		stay: make([]int, len(l.tally)), took: make([]int, 0, len(l.parts)), out: Plan{Steps: make([]Step, 0, len(l.tally))},
		head: tidemark.Estimate(tidemark.NewText(tidemark.User, linesHead+" "+n.Back+"]"))}
	for i := range l.tally {
		p.stay[i] = l.tally[i].parts
	}
	for _, k := range l.lines {
		for _, n := range l.items[k].line.Lines {
			p.stood += p.line(n).tokens
		}
	}
	p.recall()
	protected := l.graph.Prologue(n.Prologue)
	p.newest = l.newest()
	for {
		before := len(p.took)
		p.pass(protected)
		p.lay()
		if len(p.took) == before || p.out.Freed >= n.Tokens { // what stands for it all is known now
			break
		}
	}
	for i := range p.out.Runs {
		p.out.Runs[i].Text = p.text(p.out.Runs[i].Line)
	}
	p.out.Short = max(n.Least-p.out.Freed, 0)
	return p.out
}

// pass strips what may leave until enough seems to be freed.
func (p *planner) pass(protected bool) {
	for _, actions := range []bool{true, false} {
		for i, e := range p.graph.list[:len(p.tally)] {
			if p.out.Freed >= p.need.Tokens {
				return
			}
			if t := &p.tally[i]; (e.Type == Action) == actions && !e.Open && p.stay[i] > 0 && t.first < p.newest && !(e.Early && protected) && p.released(e) {
				p.strip(i, e)
			}
		}
	}
}

// lay makes the edits of what leaves, and counts what that frees.
func (p *planner) lay() {
	p.recall()
	p.out.Runs, p.out.Blocks, p.instated = nil, nil, 0
	p.runs()
	claimed := p.out.Freed
	p.fold()
	if n := len(p.out.Steps); n > 0 {
		p.out.Steps[n-1].Freed += p.out.Freed - claimed
	}
}

// recall notes which episodes have a line, before any are given one.
func (p *planner) recall() {
	for i := range p.told {
		p.told[i].placed = false
	}
	for _, k := range p.lines {
		p.stands(p.items[k].line)
	}
	for _, t := range p.Ledger.told {
		p.stands(&Line{Lines: []int{t.episode}})
	}
}

// stands notes that episodes have a line: one of which something had to stay gets no second one when that leaves too.
func (p *planner) stands(l *Line) {
	for _, list := range [][]int{l.Folded, l.Lines} {
		for _, n := range list {
			if n > 0 && n < len(p.told) {
				p.told[n].placed = true
			}
		}
	}
}

// released reports whether all actions that depend on an episode are gone.
func (p *planner) released(e *Episode) bool {
	for _, d := range e.rests {
		if i := d.N - 1; d.Open || i < len(p.tally) && p.tally[i].parts > 0 && !p.whole[i] && !p.bound(i) {
			return false
		}
	}
	return true
}

// strip takes the levels of an episode, until enough is freed. One of which nothing stands any more is gone, with whatever
// level that happened. What would free less than the line takes that is to stand for it stays, unless it is an action:
// explorations wait for that.
func (p *planner) strip(i int, e *Episode) {
	for level := Reasoning; level <= Whole && p.stay[i] > 0 && p.out.Freed < p.need.Tokens; level++ {
		if level < Whole && p.tally[i].level[level] == 0 || level == Whole && p.tally[i].last >= p.newest {
			continue
		}
		from := len(p.took)
		freed := p.take(i, level)
		if p.tried[i] = level == Whole; len(p.took) == from {
			continue
		}
		ended := p.ended(i, p.took[from:])
		var lines, heads tidemark.Tokens
		for _, n := range ended {
			if !p.told[n+1].placed {
				lines, heads = lines+p.line(n+1).tokens, heads+p.heads(n)
			}
		}
		if p.need.Lines > 0 { // those over the bound will be folded
			lines = min(lines, max(p.need.Lines-p.stood-p.charged, 0))
		}
		if freed -= lines + heads; freed <= 0 && (p.stay[i] > 0 || e.Type != Action) {
			p.undo(from)
			p.tried[i] = false
			continue
		}
		p.charged += lines
		for _, n := range ended {
			if p.whole[n] = true; n != i {
				p.step(p.graph.list[n], Whole, 0)
			}
		}
		if p.stay[i] == 0 {
			p.step(e, Whole, freed)
		} else {
			p.step(e, level, freed)
		}
	}
}

// ended lists the episodes of some parts of which nothing stands any more: mostly none, or the one that is stripped.
func (p *planner) ended(i int, parts []int) (list []int) {
	if p.stay[i] == 0 {
		list = append(list, i)
	}
	for _, part := range parts {
		if n := p.parts[part].episode; n != i && p.stay[n] == 0 && !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	return list
}

// heads is what the message takes in which the line of an episode is to stand, beside it: nothing where there is one at a
// side of it, and less than nothing where those of both sides become one.
func (p *planner) heads(i int) tidemark.Tokens {
	t, more := &p.tally[i], p.head
	for _, k := range [...]int{t.first - 1, t.last + 1} {
		if k >= 0 && k < len(p.items) && (p.items[k].line != nil || p.left(k)) {
			more -= p.head
		}
	}
	return more
}

// leave takes a part out.
func (p *planner) leave(part int) {
	p.gone[part], p.took, p.removed = true, append(p.took, part), p.removed+p.parts[part].tokens
	p.stay[p.parts[part].episode]--
}

// undo takes back all parts that went from one on.
func (p *planner) undo(from int) {
	for _, part := range p.took[from:] {
		p.gone[part], p.removed = false, p.removed-p.parts[part].tokens
		p.stay[p.parts[part].episode]++
	}
	p.took = p.took[:from]
}

func (p *planner) step(e *Episode, level Level, freed tidemark.Tokens) {
	p.out.Steps = append(p.out.Steps, Step{e, level, freed})
	p.out.Freed += freed
}

// take marks the parts of an episode up to a level as gone. Thinking in the tool loop that goes on is known again by its
// API and stays as it is until its message leaves; thinking that would be all that is left of a message leaves with it.
func (p *planner) take(episode int, level Level) (freed tidemark.Tokens) {
	t := &p.tally[episode]
	loop := 0
	if n := len(p.turns); n > 0 {
		loop = p.turns[n-1]
	}
	for k := t.first; k <= min(t.last, p.newest-1); k++ {
		from, to := p.span(k)
		if p.items[k].together {
			to = p.exchange(k)
			if level == Whole && p.free(from, to, episode) {
				freed += p.all(from, to)
			}
			if k+1 < len(p.items) && p.items[k+1].from < to {
				k++
			}
			continue
		}
		took, stays := false, false
		for i := from; i < to; i++ {
			part := &p.parts[i]
			if part.episode == episode && !p.gone[i] && (part.level == level || level == Whole) && !(level == Reasoning && k > loop) {
				p.leave(i)
				took, freed = true, freed+part.tokens
			}
			stays = stays || !p.gone[i] && !part.signed
		}
		if took && !stays {
			for i := from; i < to; i++ {
				if !p.gone[i] && p.parts[i].episode >= 0 {
					p.leave(i)
					freed += p.parts[i].tokens
				}
			}
		}
	}
	return freed
}

// exchange returns the end of the parts of an item and of the results of its calls.
func (p *planner) exchange(k int) int {
	if k+1 < len(p.items) && !p.items[k+1].said && p.items[k+1].line == nil {
		k++
	}
	_, to := p.span(k)
	return to
}

// free reports whether parts that leave together may, for an episode: what others have among them waits for that.
func (p *planner) free(from, to, episode int) bool {
	for i := from; i < to; i++ {
		if n := p.parts[i].episode; n >= 0 && n != episode && !p.gone[i] && !p.bound(n) {
			return false
		}
	}
	return true
}

// bound reports whether all that stands of an episode waits for others, with which it leaves.
func (p *planner) bound(episode int) bool {
	if !p.tried[episode] {
		return false
	}
	t := &p.tally[episode]
	for k := t.first; k <= t.last; k++ {
		from, to := p.span(k)
		if p.items[k].together || k > 0 && p.items[k-1].together && !p.items[k].said {
			continue
		}
		for i := from; i < to; i++ {
			if p.parts[i].episode == episode && !p.gone[i] {
				return false
			}
		}
	}
	return true
}

// all marks all of some parts as gone that are of episodes.
func (p *planner) all(from, to int) (freed tidemark.Tokens) {
	for i := from; i < to; i++ {
		if p.parts[i].episode >= 0 && !p.gone[i] {
			p.leave(i)
			freed += p.parts[i].tokens
		}
	}
	return freed
}

// span returns the parts of an item.
func (l *Ledger) span(k int) (from, to int) {
	if k+1 < len(l.items) {
		return l.items[k].from, l.items[k+1].from
	}
	return l.items[k].from, len(l.parts)
}

// left reports whether an item leaves whole.
func (p *planner) left(k int) bool {
	from, to := p.span(k)
	for i := from; i < to; i++ {
		if !p.gone[i] {
			return false
		}
	}
	return to > from
}

// runs makes what leaves into runs of messages and single blocks. Lines of ours beside a run are taken into it; those behind one
// are of it already, so none reaches back into the one before.
func (p *planner) runs() {
	touched := make([]bool, len(p.items))
	for _, s := range p.out.Steps {
		t := &p.tally[s.Episode.N-1]
		for k := t.first; k <= t.last; k++ {
			touched[k] = true
		}
	}
	for k := 0; k < len(p.items); k++ {
		if !touched[k] {
			continue
		}
		if !p.left(k) {
			p.blocks(k)
			continue
		}
		r := Run{From: k, To: k}
		for r.From > 0 && p.items[r.From-1].line != nil && p.joins(r.From-1) {
			r.From--
		}
		for r.To+1 < len(p.items) && p.joins(r.To) && (p.items[r.To+1].line != nil || touched[r.To+1] && p.left(r.To+1)) {
			r.To++
		}
		p.describe(&r)
		p.out.Runs = append(p.out.Runs, r)
		k = r.To
	}
	for _, s := range p.out.Steps {
		if l := &p.told[s.Episode.N]; s.Level == Whole && !l.placed { // each of its messages has something of others
			p.instead(s.Episode, l)
		}
	}
}

// joins reports whether one run may hold an item and the next: what a span of others keeps leaves by itself.
func (p *planner) joins(k int) bool { return !p.items[k].within && !p.items[k+1].within }

// blocks lists what leaves of an item.
func (p *planner) blocks(k int) {
	from, to := p.span(k)
	for i := from; i < to; i++ {
		if p.gone[i] {
			p.out.Blocks = append(p.out.Blocks, Removed{Part: p.parts[i]})
		}
	}
	if p.gone[to-1] { // what the message takes beside its blocks counts for the last
		p.instated += tidemark.EstimateChars(len(`{"role":"assistant","content":[]}`))
	}
}

// describe gives a run the lines of what left in it.
func (p *planner) describe(r *Run) {
	for k := r.From; k <= r.To; k++ {
		if line := p.items[k].line; line != nil {
			r.Folded, r.Lines = append(r.Folded, line.Folded...), append(r.Lines, line.Lines...)
			continue
		}
		from, to := p.span(k)
		for i := from; i < to; i++ {
			e := p.parts[i].episode // it has a part, so it left
			if l := &p.told[e+1]; p.whole[e] && !l.placed {
				l.placed = true
				r.Lines = append(r.Lines, e+1)
			}
		}
	}
	slices.Sort(r.Folded)
	slices.Sort(r.Lines)
}

// instead puts the line of an episode in the place of its first block, where others have a part in each of its messages.
// That is none of thinking, which a client may drop.
func (p *planner) instead(e *Episode, l *line) {
	for i := range p.out.Blocks {
		b := &p.out.Blocks[i]
		if b.episode == e.N-1 && b.said && !b.signed && b.Text == "" {
			b.Text, b.Line, l.placed = p.alone(e), e.N, true
			p.instated += tidemark.EstimateBlock(tidemark.Text(b.Text))
			return
		}
	}
}
