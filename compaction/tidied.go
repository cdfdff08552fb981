package compaction

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cleanup"
	"github.com/tidemark-ai/tidemark/internal/clip"
)

// Wishes is what a model asked for in a reply, beside what readers see of it.
type Wishes struct {
	Ops    []cleanup.Op
	Blocks []int    // from 0, of the reply as it came
	Texts  []string // of these blocks, as they came
}

// TidyOnly is what people read of an answer that was nothing but tags.
const TidyOnly = "(The context was tidied.)"

// Untagged takes the tags out of a reply. What stands in the log is what readers saw; what the model wrote beside it
// stands in the event that tells of it.
func Untagged(m tidemark.Message) (tidemark.Message, Wishes) {
	var f cleanup.Filter
	var last = -1
	seen := make([]string, len(m.Content))
	for i, b := range m.Content {
		if b.Type == tidemark.TypeText {
			seen[i], last = f.Push(b.Text), i
		}
	}
	if last < 0 {
		return m, Wishes{}
	}
	seen[last] += f.End()
	a := Wishes{Ops: f.Ops()}
	out := tidemark.Message{Role: m.Role}
	for i, b := range m.Content {
		switch {
		case b.Type != tidemark.TypeText || seen[i] == b.Text:
			out.Content = append(out.Content, b)
			continue
		case strings.TrimSpace(seen[i]) != "":
			out.Content = append(out.Content, tidemark.Text(seen[i]))
		}
		a.Blocks, a.Texts = append(a.Blocks, i), append(a.Texts, b.Text)
	}
	if len(a.Blocks) == 0 {
		return m, Wishes{}
	}
	if !slices.ContainsFunc(out.Content, func(b tidemark.Block) bool { return b.Type == tidemark.TypeText || b.Type == tidemark.TypeToolUse }) {
		out.Content = append(out.Content, tidemark.Text(TidyOnly))
	}
	return out, a
}

// Line is what people read of it; freed is what the view is smaller by.
func (t Tidied) Line(freed tidemark.Tokens) string {
	count := map[string]int{}
	refused := 0
	for _, d := range t.Done {
		if d.Why != "" {
			refused++
			continue
		}
		count[d.Op.Verb]++
	}
	var said []string
	for _, w := range [...]struct{ verb, did string }{{cleanup.Drop, "dropped"}, {cleanup.Summarize, "summarized"}, {cleanup.Anchor, "anchored"},
		{cleanup.Release, "released"}, {cleanup.Collapse, "collapsed"}} {
		if n := count[w.verb]; n > 0 {
			said = append(said, fmt.Sprintf("%d %s", n, w.did))
		}
	}
	if refused > 0 {
		said = append(said, fmt.Sprintf("%d not done", refused))
	}
	if len(said) == 0 {
		said = []string{"nothing asked for"}
	}
	return fmt.Sprintf("The model tidied its context: %s; %d tokens less, all of it stays in the log", strings.Join(said, ", "), freed)
}

// maxTidied bounds a name that is told back, in characters.
const maxTidied = 60

// Refusals tells the model what of its last operations was not done, "" where all was.
func (t Tidied) Refusals() string {
	var lines []string
	for _, d := range t.Done {
		if d.Why != "" && len(lines) < 8 {
			what := d.Op.Handle
			if what == "" {
				what = strings.Join(d.Op.Paths, ", ")
			}
			if d.Op.Verb == cleanup.Collapse {
				what = fmt.Sprintf("turns %d-%d", d.Op.From, d.Op.To)
			}
			lines = append(lines, fmt.Sprintf("%s %s: %s", d.Op.Verb, clip.Line(what, maxTidied), d.Why))
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return "Of what you asked for to tidy the context this was not done: " + strings.Join(lines, "; ") + "."
}
