package compaction

import (
	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/calls"
	"github.com/tidemark-ai/tidemark/paging"
)

// Trim is structurally lossless trimming (papers/cmv §3.2) of a view, as it is done once, when a branch is made: what
// tools answered and what was written into files leaves where it is long, and images, documents and thinking leave
// whatever they weigh. What the user and the model said stays to the byte, and so does which tool was called on what.
// A stub stands for all that left but thinking, and recall brings back what it names, word for word.
//
// It is no [Strategy]: it does not ask whether the window is full. Its zero value has the paper's threshold.
//
// Three things stay that the paper's rules would take: what no reply followed yet, since nobody has read it; thinking
// of a turn that is between two calls, which providers want back; and what somebody pinned, or the task's state.
type Trim struct {
	// Threshold is how many characters (UTF-16 units, as the paper's trimmer counts them) a result or an input may have
	// and stay; 0 is DefaultTrimThreshold, and less than MinTrimThreshold acts as that.
	Threshold int
}

// Thresholds of the paper (papers/cmv §3.2).
const (
	DefaultTrimThreshold = calls.DefaultThreshold
	MinTrimThreshold     = calls.MinThreshold
)

// trimmedBytes bounds what is left of a block, which has to fit into a row of any database with others. One of which
// more would be left stays.
const trimmedBytes = 128 << 10

// TrimName is what overlays and events call it.
const TrimName = "trim"

// TrimKind is how much of one kind left.
type TrimKind struct {
	Blocks int             `json:"blocks"`
	Tokens tidemark.Tokens `json:"tokens"` // that the view has fewer for it, stubs counted
}

// TrimGain is what a plan changes. Its tokens are estimates of messages; Size and Prefix are of the context, as the
// provider counts where that is known.
type TrimGain struct {
	Before tidemark.Tokens
	After  tidemark.Tokens

	Size   tidemark.Tokens  // of the context with the edits
	Prefix tidemark.Tokens  // of what stands before the first change, system prompt and tools with it: a cache keeps that
	First  tidemark.EntryID // the first entry that changes, "" for none

	Results  TrimKind
	Inputs   TrimKind
	Thinking TrimKind
	Media    TrimKind // images and documents
}

// Characters is the threshold that holds.
func (t Trim) Characters() int {
	return calls.Threshold(t.Threshold)
}

// Plan returns an edit for each block of the view that leaves, and what all of them give. It reads the view once. A
// second plan over what the first left is empty.
func (t Trim) Plan(v View) ([]tidemark.Edit, TrimGain) {
	p := trimming{most: t.Characters(), items: v.Items, calls: map[string]*tidemark.Block{}, tools: paging.DefaultTools()}
	p.gain.Before = v.Tokens()
	p.gain.After, p.gain.Prefix = p.gain.Before, p.gain.Before
	p.unread, p.turn = unread(v.Items)
	stay := held(v.Items, Cuts(v.Items), []string{DefaultStay})
	for i := range v.Items {
		if it := &v.Items[i]; !it.Span() {
			p.item(i, stay[i])
		}
	}
	before := v.Tokens()
	p.gain.Size = resized(v.Size, v.Fixed, before, p.gain.After)
	p.gain.Prefix = v.Fixed + counted(p.gain.Prefix, before, v.Size-v.Fixed)
	if len(p.edits) == 0 {
		p.gain.Size, p.gain.Prefix = v.Size, v.Size
	}
	return p.edits, p.gain
}

// counted is an estimate of a part as the provider counts it, who counts more for all of it than is estimated.
func counted(part, estimated, counts tidemark.Tokens) tidemark.Tokens {
	if estimated > 0 && counts > estimated {
		return part * counts / estimated
	}
	return part
}

// trimming is a plan in the making.
type trimming struct {
	most   int // characters
	items  []Item
	unread int // from this item on nothing leaves but thinking
	turn   int // from this item on thinking stays, too
	calls  map[string]*tidemark.Block
	tools  paging.Tools
	before tidemark.Tokens // of the items so far
	edits  []tidemark.Edit
	gain   TrimGain
}

// item plans for the blocks of one item.
func (p *trimming) item(i int, stays bool) {
	it := &p.items[i]
	content, changed := it.Message.Content, false
	now := make([]tidemark.Block, 0, len(content))
	for n := range content {
		b := &content[n]
		if b.Type == tidemark.TypeToolUse {
			p.calls[b.ID] = b
		}
		block := it.Block(n)
		stub, kind := (*tidemark.Block)(nil), (*TrimKind)(nil)
		if !stays && (len(it.Stubbed) == 0 || it.stubbed(block) == nil) {
			stub, kind = p.block(it, b, block, i)
		}
		if kind == nil {
			now = append(now, *b)
			continue
		}
		if len(p.edits) == 0 {
			p.gain.First, p.gain.Prefix = it.From, p.before+estimated(it.Message.Role, now)
		}
		e := tidemark.Edit{From: it.From, Block: block, Data: trimData(b)}
		if stub != nil {
			e.Blocks, now = []tidemark.Block{*stub}, append(now, *stub)
		}
		p.edits, changed = append(p.edits, e), true
	}
	if p.before += it.Tokens; !changed {
		return
	}
	p.gain.After += estimated(it.Message.Role, now) - it.Tokens
}

// estimated is what a message takes; one without content is none.
func estimated(role tidemark.Role, content []tidemark.Block) tidemark.Tokens {
	if len(content) == 0 {
		return 0
	}
	return tidemark.Estimate(tidemark.Message{Role: role, Content: content})
}

// block returns what stands for a block from now on, nil for nothing, and of which kind it is, where it is counted: nil
// for one that stays.
func (p *trimming) block(it *Item, b *tidemark.Block, block, i int) (stub *tidemark.Block, kind *TrimKind) {
	switch b.Type {
	case tidemark.TypeThinking, tidemark.TypeRedactedThinking:
		if i >= p.turn {
			return nil, nil
		}
		kind = &p.gain.Thinking
		kind.Blocks++
		kind.Tokens += tidemark.EstimateBlock(*b)
		return nil, kind
	case tidemark.TypeToolUse:
		kind = &p.gain.Inputs
	case tidemark.TypeToolResult:
		kind = &p.gain.Results
	case tidemark.TypeImage, tidemark.TypeDocument:
		kind = &p.gain.Media
	}
	if i >= p.unread || kind == nil {
		return nil, nil
	}
	switch handle := Handle(it.ID, block-1); b.Type {
	case tidemark.TypeToolUse:
		stub = p.input(b, handle)
	case tidemark.TypeToolResult:
		stub, kind = p.result(b, handle)
	default:
		stub = trimMedia(b, handle)
	}
	if stub == nil || len(stub.AppendJSON(nil)) > trimmedBytes {
		return nil, nil
	}
	saved := tidemark.EstimateBlock(*b) - tidemark.EstimateBlock(*stub)
	if saved <= 0 {
		return nil, nil
	}
	kind.Blocks++
	kind.Tokens += saved
	return stub, kind
}
