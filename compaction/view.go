// Package compaction computes what the model sees and plans how to make it smaller. It is pure and
// reads no log, calls no model and writes no archive; the session does. Begin with [Assemble], then
// plan.go; each strategy has a file of its name.
//
// The same log gives the same view, and the same view the same plan. Nothing is lost (a plan only adds
// overlays), every view passes tidemark.Check, and a plan frees something or says that it cannot.
package compaction

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Item is one message of a view and where it came from.
type Item struct {
	ID      tidemark.EntryID // of the entry, or of the overlay that replaced a span
	From    tidemark.EntryID // the span it stands for; From and To are ID for an entry
	To      tidemark.EntryID
	Seq     int64 // position of the entry, or of the span's first
	Last    int64 // position of the span's last entry
	Overlay tidemark.EntryID
	Edit    int // which edit of the overlay
	Message tidemark.Message
	Tokens  tidemark.Tokens
	Source  string          // Origin.From of the entry; system for a replacement
	Stubs   int             // blocks that an overlay replaced
	Whole   tidemark.Tokens // what it had before that; 0 when none was replaced
	At      time.Time
	Data    json.RawMessage // of the edit that put it there
	Pinned  bool            // it stays in the view whatever a strategy plans

	Row     int64          // position of the overlay that replaced the span; 0 for an entry
	Call    *tidemark.Call // of a reply, as far as it was read
	Stubbed []Stubbed      // the blocks that an overlay replaced, by block
}

// Span reports whether the item stands for a replaced span.
func (i Item) Span() bool { return i.Overlay != "" && i.Stubs == 0 }

// View is the messages to send, where each came from, and its tokens.
type View struct {
	Items []Item
	// Size is the context size in tokens: what the provider last reported plus the estimate of
	// everything since, or the estimate of all of it.
	Size tidemark.Tokens
	// Refused says that a provider refused the messages for their size: what is estimated may be too little.
	Refused bool
	// Fixed is the part of Size that no plan can free: system prompt and tool schemas.
	Fixed tidemark.Tokens
	// Loose is how many pinned entries found no room among those that stay.
	Loose int
	// Graph is the episodes of the log, nil where nobody keeps it. Plans only read it.
	Graph *episodes.Graph
	// Back are the blocks, from 1, by their entry, that were replaced until somebody undid it.
	Back map[tidemark.EntryID][]int
	// Returned are the stretches of the log that left as episodes until somebody undid it.
	Returned []Span
}

// Tokens returns the estimate of the messages.
func (v View) Tokens() tidemark.Tokens {
	var n tidemark.Tokens
	for _, i := range v.Items {
		n += i.Tokens
	}
	return n
}

// TooLarge reports whether what a person said last takes more than may be sent by itself, and how much.
func (v View) TooLarge(b Budget) (size tidemark.Tokens, too bool) {
	for i, to := newestTurn(v.Items); i < to; i++ {
		size += v.Items[i].Tokens
	}
	return size, size > 0 && v.Fixed+size > b.Room()
}

// Replacement is an overlay row's edit with its texts, as shown.
type Replacement struct {
	Placed
	Edit tidemark.Edit
}

// Visible is an entry that the layout shows. Message may be empty if every block is replaced.
type Visible struct {
	tidemark.Skeleton
	Message tidemark.Message
	Source  string
	Call    *tidemark.Call
}

// NeedsPayload reports whether an entry's own message is needed: not when an edit replaces each of
// its blocks, or takes it out.
func NeedsPayload(s tidemark.Skeleton, shown []Placed) bool {
	replaced := map[int]bool{}
	for _, p := range shown {
		if p.Block > 0 && p.From == s.Seq {
			replaced[p.Block] = true
		}
	}
	return len(replaced) < s.Blocks || s.Blocks == 0
}

// Assemble puts the visible entries and the shown replacements together in the order of the log.
func Assemble(entries []Visible, shown []Replacement) (View, error) {
	var v View
	blocks := map[int64][]Replacement{}
	var spans []Replacement
	for _, r := range shown {
		if r.Block > 0 {
			blocks[r.From] = append(blocks[r.From], r)
		} else {
			spans = append(spans, r)
		}
	}
	slices.SortStableFunc(spans, func(a, b Replacement) int { return cmp.Compare(a.From, b.From) })
	for _, e := range entries {
		for len(spans) > 0 && spans[0].From <= e.Seq {
			v.Items = append(v.Items, replaced(spans[0])...)
			spans = spans[1:]
		}
		item := Item{ID: e.ID, From: e.ID, To: e.ID, Seq: e.Seq, Last: e.Seq, Message: e.Message, Tokens: e.Tokens, Source: e.Source, At: e.At,
			Call: e.Call}
		if edits := blocks[e.Seq]; len(edits) > 0 {
			if err := item.replaceBlocks(e, edits); err != nil {
				return View{}, err
			}
		}
		if len(item.Message.Content) > 0 {
			v.Items = append(v.Items, item)
		}
	}
	for _, s := range spans {
		v.Items = append(v.Items, replaced(s)...)
	}
	v.Size = v.Tokens()
	return v, nil
}

func replaced(r Replacement) []Item {
	out := make([]Item, 0, len(r.Edit.Messages))
	for _, m := range r.Edit.Messages {
		out = append(out, Item{ID: r.Overlay, From: r.Edit.From, To: r.Edit.To, Seq: r.From, Last: r.To, Overlay: r.Overlay, Edit: r.N, Row: r.Row,
			Message: m, Tokens: tidemark.Estimate(m), Source: tidemark.FromSystem, Data: r.Edit.Data})
	}
	return out
}

// replaceBlocks applies block edits to an item; of two for one block the later row is shown, and of one row the later
// edit, since a plan makes each upon those before it.
func (i *Item) replaceBlocks(e Visible, edits []Replacement) error {
	last := map[int]Replacement{}
	for _, r := range edits {
		if r.Block > e.Blocks {
			return fmt.Errorf("overlay %s: entry %s has no block %d: %w", r.Overlay, e.ID, r.Block, tidemark.ErrInvalid)
		}
		if o, ok := last[r.Block]; !ok || o.Row < r.Row || o.Row == r.Row && o.N < r.N {
			last[r.Block] = r
		}
	}
	var content []tidemark.Block
	for n := 1; n <= e.Blocks; n++ {
		if r, ok := last[n]; ok {
			i.Stubbed = append(i.Stubbed, Stubbed{n, len(content), len(r.Edit.Blocks), r.Row, r.Edit.Data})
			content = append(content, r.Edit.Blocks...)
			i.Overlay, i.Edit = r.Overlay, r.N
			i.Stubs++
		} else {
			content = append(content, e.Message.Content[n-1])
		}
	}
	i.Message, i.Whole = tidemark.Message{Role: e.Role, Content: content}, e.Tokens
	i.Tokens = tidemark.Estimate(i.Message)
	return nil
}

// Messages returns what is sent: the items with neighbours of one role merged, as the API does
// with them, and with what a history may lack repaired, so that it passes tidemark.Check:
//
//   - results stand first in their message; one that answers nothing becomes text;
//   - a call without a result (a log cut off in the middle) gets one that says so;
//   - empty texts go, and a first message from the assistant gets one before it;
//   - so does one that begins with thinking where it would follow text: what stood between left the view;
//   - system messages move on to where the API takes one, before what the assistant says next, and are one there;
//   - a message of a role that no API of ours has becomes one of the user that names it.
//
// The log keeps everything as it was.
func (v View) Messages() []tidemark.Message {
	var out []tidemark.Message
	var held []tidemark.Block // of system messages that have no place yet
	for _, i := range v.Items {
		content, same := sendable(i.Message.Content)
		switch i.Message.Role {
		case tidemark.User, tidemark.Assistant:
		case tidemark.System:
			if !i.Message.Countdown() {
				held = append(held, texts(content)...)
			}
			continue
		default:
			content = foreign(i.Message.Role, content)
			i.Message = tidemark.Message{Role: tidemark.User, Content: content}
		}
		if len(content) == 0 {
			continue
		}
		if i.Message.Role == tidemark.Assistant {
			out, held = instructed(out, held)
		}
		if n := len(out); n > 0 && i.Message.Role == tidemark.Assistant && out[n-1].Role == tidemark.Assistant && thinks(content[0]) && !thinks(out[n-1].Content[0]) {
			out = append(out, tidemark.NewText(tidemark.User, "[The assistant goes on.]"))
		}
		if n := len(out); n > 0 && out[n-1].Role == i.Message.Role {
			out[n-1] = tidemark.Message{Role: i.Message.Role, Content: slices.Concat(out[n-1].Content, content)}
		} else if same {
			out = append(out, i.Message)
		} else {
			out = append(out, tidemark.Message{Role: i.Message.Role, Content: content})
		}
	}
	if len(out) > 0 && out[0].Role == tidemark.Assistant {
		out = slices.Insert(out, 0, tidemark.NewText(tidemark.User, "[The conversation begins here.]"))
	}
	out, _ = instructed(out, held)
	return pair(out)
}

// instructed puts what system messages said behind the last message, where an API takes that; what has no place yet
// comes back.
func instructed(out []tidemark.Message, held []tidemark.Block) ([]tidemark.Message, []tidemark.Block) {
	if n := len(out); n == 0 || len(held) == 0 || !out[n-1].TakesSystem() {
		return out, held
	}
	return append(out, tidemark.Message{Role: tidemark.System, Content: held}), nil
}

// texts are the blocks of a system message that any model takes: others change tools, which are not those of this request.
func texts(blocks []tidemark.Block) []tidemark.Block {
	return slices.DeleteFunc(slices.Clone(blocks), func(b tidemark.Block) bool { return b.Type != tidemark.TypeText })
}

// foreign is a message of a role that no API has, as the user's: its words, and what else it had by name.
func foreign(role tidemark.Role, blocks []tidemark.Block) []tidemark.Block {
	out := slices.Clone(blocks)
	for i, b := range out {
		switch b.Type {
		case tidemark.TypeText, tidemark.TypeImage, tidemark.TypeDocument:
		case tidemark.TypeToolResult:
			out[i] = tidemark.Text(resultText(b))
		default:
			out[i] = tidemark.Text("[" + b.Type + "]")
		}
	}
	if len(out) > 0 {
		out = slices.Insert(out, 0, tidemark.Text("["+string(role)+"]"))
	}
	return out
}

// thinks reports a block of thinking: of the last message of the assistant it must be the first, if there is any
// (https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking).
func thinks(b tidemark.Block) bool {
	return b.Type == tidemark.TypeThinking || b.Type == tidemark.TypeRedactedThinking
}

// sendable drops empty texts, which the API refuses, and shows what is in a block without a type, which it does not know;
// same says that there were none, and the blocks are those that came.
func sendable(blocks []tidemark.Block) (out []tidemark.Block, same bool) {
	odd := func(b tidemark.Block) bool {
		return b.Type == "" || b.Type == tidemark.TypeText && strings.TrimSpace(b.Text) == ""
	}
	if !slices.ContainsFunc(blocks, odd) {
		return blocks, true
	}
	out = slices.Clone(blocks)
	for i, b := range out {
		if b.Type == "" {
			out[i] = tidemark.Text(string(b.Raw()))
		}
	}
	return slices.DeleteFunc(out, odd), false
}

// pair repairs calls and results over merged messages.
func pair(in []tidemark.Message) []tidemark.Message {
	out := make([]tidemark.Message, 0, len(in))
	seen := map[string]bool{}
	var open []string // calls of the message before
	for _, m := range in {
		if m.Role == tidemark.Assistant {
			if len(open) > 0 { // cannot be: neighbours of one role are merged
				out = append(out, tidemark.Message{Role: tidemark.User, Content: missing(open)})
			}
			m, open = uniqueCalls(m, seen)
			out = append(out, m)
			continue
		}
		if m.Role == tidemark.System { // it stands behind the results
			out = append(out, m)
			continue
		}
		out = append(out, answers(m, open))
		open = nil
	}
	if len(open) > 0 {
		out = append(out, tidemark.Message{Role: tidemark.User, Content: missing(open)})
	}
	return out
}

// uniqueCalls turns a call whose id was used before, or that has none, into text.
func uniqueCalls(m tidemark.Message, seen map[string]bool) (tidemark.Message, []string) {
	var ids []string
	content, changed := m.Content, false
	for n, b := range m.Content {
		if b.Type != tidemark.TypeToolUse && b.Type != tidemark.TypeToolResult {
			continue
		}
		if b.Type == tidemark.TypeToolUse && b.ID != "" && b.Name != "" && !seen[b.ID] {
			seen[b.ID] = true
			ids = append(ids, b.ID)
			continue
		}
		if !changed {
			content, changed = slices.Clone(content), true
		}
		content[n] = tidemark.Text(fmt.Sprintf("[%s %s %s]", b.Type, b.Name, b.Input))
	}
	if changed {
		m = tidemark.Message{Role: m.Role, Content: content}
	}
	return m, ids
}

// answers returns m with one result for each open call, results first, and all other results as
// text. A message that is right already is returned as it is.
func answers(m tidemark.Message, open []string) tidemark.Message {
	results := map[string]tidemark.Block{}
	var rest []tidemark.Block
	ordered := true
	for _, b := range m.Content {
		if b.Type == tidemark.TypeToolUse { // a call that a user made, which no API takes
			rest = append(rest, tidemark.Text(fmt.Sprintf("[%s %s %s]", b.Type, b.Name, b.Input)))
			ordered = false
			continue
		}
		if b.Type != tidemark.TypeToolResult {
			rest = append(rest, b)
			continue
		}
		if _, dup := results[b.ToolUseID]; dup || !slices.Contains(open, b.ToolUseID) {
			rest = append(rest, tidemark.Text("[result of an earlier call] "+resultText(b)))
			ordered = false
			continue
		}
		ordered = ordered && len(rest) == 0
		results[b.ToolUseID] = b
	}
	if ordered && len(results) == len(open) {
		return m
	}
	content := make([]tidemark.Block, 0, len(m.Content))
	for _, id := range open {
		if r, ok := results[id]; ok {
			content = append(content, r)
		} else {
			content = append(content, missing([]string{id})...)
		}
	}
	return tidemark.Message{Role: tidemark.User, Content: append(content, rest...)}
}

func missing(ids []string) []tidemark.Block {
	out := make([]tidemark.Block, len(ids))
	for i, id := range ids {
		out[i] = tidemark.ToolResult(id, "[No result was recorded for this call.]", true)
	}
	return out
}

// resultText returns the text of a tool result; what is not text is named by its type.
func resultText(b tidemark.Block) string {
	s := ""
	for _, c := range b.Content {
		if s != "" {
			s += "\n"
		}
		if c.Type == tidemark.TypeText {
			s += c.Text
		} else {
			s += "[" + c.Type + "]"
		}
	}
	if s == "" {
		return "[empty]"
	}
	return s
}
