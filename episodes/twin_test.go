package episodes_test

import (
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// twin is Algorithm 1 (papers/cwl §4.4) as it stands in the paper, on the messages themselves: nothing is kept, nothing is
// counted ahead, and what a block is of is found anew. It decides what leaves in which order; when it is enough, the plan
// says, and is held to it.
type twin struct {
	ctx    []episodes.Item
	blocks []*block
	list   []*work
}

// block is a block of the context.
type block struct {
	item, at int
	b        *tidemark.Block
	call     *tidemark.Block // of a result
	of       *work           // nil for what is of no episode
	stays    bool
	gone     bool
}

// work is an episode.
type work struct {
	name, kind         string
	on                 []string
	open, early, tried bool
	works              bool // not all of it was refused
	size               tidemark.Tokens
}

// step is what one step takes.
type step struct {
	episode int // from 0
	kind    episodes.Type
	level   episodes.Level
	blocks  []*block
	ends    bool // nothing of the episode stands behind it
}

func (s step) size() (n tidemark.Tokens) {
	for _, b := range s.blocks {
		n += tidemark.EstimateBlock(*b.b)
	}
	return n
}

// weigh counts a reply and the results of its calls for their works; the last one that has a part gets what is over.
func (w *twin) weigh(i int, owners []*work) {
	ctx, m, last := w.ctx, w.ctx[i].Message, owners[len(owners)-1]
	all, results := ctx[i].Tokens, map[string]tidemark.Block{}
	for k := i + 1; k < len(ctx) && ctx[k].Message.Role == tidemark.User; k++ {
		if !slices.ContainsFunc(ctx[k].Message.Content, isResult) || len(m.Calls()) == 0 || w.answered(i, k) {
			continue
		}
		all += ctx[k].Tokens
		for _, b := range ctx[k].Message.Content {
			if _, twice := results[b.ToolUseID]; isResult(b) && !twice {
				results[b.ToolUseID] = b
			}
		}
	}
	for n, b := range m.Content {
		if owners[n] == last {
			continue
		}
		size := tidemark.EstimateBlock(b)
		if r, ok := results[b.ID]; ok && b.Type == tidemark.TypeToolUse {
			size += tidemark.EstimateBlock(r)
		}
		size = min(size, all)
		owners[n].size, all = owners[n].size+size, all-size
	}
	last.size += all
}

// fill gives what stands behind the last call to that call's work, and words without a call to what goes on.
func fill(owners []*work, from int, current func(bool) *work) {
	if from == len(owners) {
		return
	}
	var last *work
	if from > 0 {
		last = owners[from-1]
	} else if last = current(false); last != nil {
		last.works = true
	}
	for ; from < len(owners); from++ {
		owners[from] = last
	}
}

// newTwin reads a context that is a whole log.
func newTwin(ctx []episodes.Item) *twin {
	w := &twin{ctx: ctx}
	var active, run *work
	begun, marks := false, false
	current := func(works bool) *work {
		if active != nil {
			return active
		}
		if begun = begun || works; run == nil && begun {
			run = &work{open: true, early: !marks}
			w.list = append(w.list, run)
		}
		return run
	}
	over := func() {
		if run != nil {
			run.open, run = false, nil
		}
	}
	for i := 0; i < len(ctx); i++ {
		m := ctx[i].Message
		if m.Role != tidemark.Assistant {
			if !slices.ContainsFunc(m.Content, isResult) && run != nil && run.size >= 500 && run.works {
				over()
			}
			w.take(i, nil)
			continue
		}
		failed := w.failed(i)
		owners, from := make([]*work, len(m.Content)), 0
		for n, b := range m.Content {
			if b.Type != tidemark.TypeToolUse {
				continue
			}
			c := readMark(b)
			switch {
			case c == nil || failed[b.ID] || !w.valid(c, active):
				refused := b.Name == episodes.ToolName
				owners[n] = current(true)
				if e := owners[n]; e.kind == "" {
					e.works = e.works || !refused
				}
			case c.Action == "end":
				owners[n], active.open, active = active, false, nil
			default:
				begun, marks = true, true
				if active = run; run == nil || run.works { // else what was refused led to it
					over()
					active = &work{}
					w.list = append(w.list, active)
				}
				run = nil
				*active = work{name: c.Name, kind: c.Type, on: c.Dependencies, open: true, size: active.size}
				owners[n] = active
			}
			for ; from < n; from++ {
				owners[from] = owners[n]
			}
			from = n + 1
		}
		fill(owners, from, current)
		w.take(i, owners)
		last := owners[len(owners)-1]
		if last == nil {
			continue
		}
		w.weigh(i, owners)
		if last == run && last.size >= 2_000 {
			over()
		}
	}
	return w
}

// mark is a call of the tool.
type mark struct {
	Action, Name, Type, Description string
	Dependencies                    []string
}

func readMark(b tidemark.Block) *mark {
	var c mark
	if b.Name != episodes.ToolName || json.Unmarshal(b.Input, &c) != nil {
		return nil
	}
	return &c
}

// valid reports a call that is in order, whatever its result says.
func (w *twin) valid(c *mark, active *work) bool {
	if c.Action == "end" {
		return active != nil && c.Name == "" && (c.Description != "") == (active.kind == "expl")
	}
	known := func(name, kind string) bool {
		return slices.ContainsFunc(w.list, func(e *work) bool { return e.name == strings.TrimSpace(name) && strings.HasPrefix(e.kind, kind) })
	}
	for _, d := range c.Dependencies {
		if strings.TrimSpace(d) == "" || !known(d, "expl") {
			return false
		}
	}
	return c.Action == "start" && active == nil && c.Name != "" && !known(c.Name, "") && (c.Type == "expl" || c.Type == "act" && c.Dependencies != nil)
}

func isResult(b tidemark.Block) bool { return b.Type == tidemark.TypeToolResult }

// answered reports whether all calls of a reply had results before a message.
func (w *twin) answered(reply, before int) bool {
	have := map[string]bool{}
	for k := reply + 1; k < before; k++ {
		for _, id := range w.ctx[k].Message.Results() {
			have[id] = true
		}
	}
	for _, id := range w.ctx[reply].Message.Calls() {
		if !have[id] {
			return false
		}
	}
	return true
}

// failed are the calls of a reply that failed or have no result.
func (w *twin) failed(reply int) map[string]bool {
	out := map[string]bool{}
	for _, id := range w.ctx[reply].Message.Calls() {
		out[id] = true
	}
	seen := map[string]bool{}
	for k := reply + 1; k < len(w.ctx) && w.ctx[k].Message.Role == tidemark.User; k++ {
		for _, b := range w.ctx[k].Message.Content {
			if isResult(b) && !seen[b.ToolUseID] && !w.answered(reply, k) {
				seen[b.ToolUseID], out[b.ToolUseID] = true, b.IsError
			}
		}
	}
	return out
}

// take takes in the blocks of an item; a result is its call's.
func (w *twin) take(i int, owners []*work) {
	it := w.ctx[i]
	var calls []*block
	if owners == nil {
		k := i - 1
		for k >= 0 && w.ctx[k].Message.Role == tidemark.User {
			k--
		}
		for _, b := range w.blocks {
			if b.item == k && b.b.Type == tidemark.TypeToolUse {
				calls = append(calls, b)
			}
		}
	}
	for n := range it.Message.Content {
		b := &block{item: i, at: n, b: &it.Message.Content[n], stays: it.Stays || it.Person}
		if owners != nil {
			b.of = owners[n]
		} else if isResult(*b.b) {
			for _, c := range calls {
				if c.b.ID == b.b.ToolUseID && b.call == nil { // of two with one id the API is sent the first
					b.of, b.call = c.of, c.b
				}
			}
		}
		w.blocks = append(w.blocks, b)
	}
}

// standing are the blocks of an episode that could leave and did not.
func (w *twin) standing(e *work) (out []*block) {
	for _, b := range w.blocks {
		if b.of == e && !b.stays && !b.gone {
			out = append(out, b)
		}
	}
	return out
}

// run is the algorithm with a budget that is never met.
func (w *twin) run(prologue tidemark.Tokens) (steps []step) {
	newest, turn := 0, 0
	for i, it := range w.ctx {
		if it.Message.Role == tidemark.Assistant {
			newest = i
		}
		if it.Person {
			turn = i
		}
	}
	var early tidemark.Tokens
	marks := false
	for _, e := range w.list {
		if marks = marks || e.name != ""; e.early {
			early += e.size
		}
	}
	protected := marks && early <= prologue
	for {
		target := -1
		for i, e := range w.list { // the oldest action, or the oldest of the others
			if w.candidate(e, newest, protected) && (target < 0 || e.kind == "act" && w.list[target].kind != "act") {
				target = i
			}
		}
		if target < 0 {
			return steps
		}
		w.list[target].tried = true
		stand := w.standing(w.list[target])
		for _, level := range []episodes.Level{episodes.Reasoning, episodes.Bulk, episodes.Intermediate, episodes.Whole} {
			if level == episodes.Whole && stand[len(stand)-1].item >= newest {
				continue // it has a part in the newest exchange
			}
			if s := w.strip(target, level, turn, newest); len(s.blocks) > 0 {
				steps = append(steps, s)
			}
		}
	}
}

func (w *twin) candidate(e *work, newest int, protected bool) bool {
	blocks := w.standing(e)
	if e.open || e.tried || e.early && protected || len(blocks) == 0 || blocks[0].item >= newest {
		return false
	}
	for _, d := range w.list {
		on := slices.ContainsFunc(d.on, func(s string) bool { return strings.TrimSpace(s) == e.name })
		if e.kind == "expl" && d.kind == "act" && on && (d.open || len(w.standing(d)) > 0) {
			return false
		}
	}
	return true
}

// strip takes one level.
func (w *twin) strip(target int, level episodes.Level, turn, newest int) step {
	e := w.list[target]
	s := step{episode: target, kind: episodes.Type(e.kind), level: level}
	for _, b := range w.standing(e) {
		if b.item < newest && (level == episodes.Whole || w.level(b) == level && !(level == episodes.Reasoning && b.item > turn)) {
			b.gone = true
			s.blocks = append(s.blocks, b)
		}
	}
	for _, b := range slices.Clone(s.blocks) { // no message of thinking alone is left
		rest := slices.DeleteFunc(slices.Clone(w.blocks), func(o *block) bool { return o.item != b.item || o.gone })
		if !slices.ContainsFunc(rest, func(o *block) bool { return !thinks(o) || o.of == nil }) {
			for _, o := range rest {
				o.gone = true
				s.blocks = append(s.blocks, o)
			}
		}
	}
	s.ends = len(w.standing(e)) == 0
	return s
}

func thinks(b *block) bool {
	return b.b.Type == tidemark.TypeThinking || b.b.Type == tidemark.TypeRedactedThinking
}

// level is the level that a block leaves with.
func (w *twin) level(b *block) episodes.Level {
	if thinks(b) && b.of.kind != "act" {
		return episodes.Reasoning
	}
	call := b.b
	if b.call != nil {
		call = b.call
	}
	if call.Type != tidemark.TypeToolUse {
		return episodes.Whole
	}
	switch call.Name {
	case "grep", "glob", "ls":
		return episodes.Bulk
	case "edit", "write", episodes.ToolName:
		return episodes.Whole
	}
	return episodes.Intermediate
}
