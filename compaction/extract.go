package compaction

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/clip"
)

// Index is what of a span can be named mechanically: what a model must not paraphrase. Newest
// last in each list.
type Index struct {
	Paths   []string `json:"paths,omitempty"`
	URLs    []string `json:"urls,omitempty"`
	IDs     []string `json:"ids,omitempty"`
	Numbers []string `json:"numbers,omitempty"`
	Errors  []string `json:"errors,omitempty"`
}

// maxIndexed bounds each list of an Index; the oldest give way.
const maxIndexed = 40

// Add indexes a text. Numbers count only in what people and the model said: results are full of
// them. Errors are whole lines of what was said or came back, not of what was asked for.
func (x *Index) Add(text string, said, asked bool) {
	const maxText = 200_000
	text = text[:runeFloor(text, min(len(text), maxText))]
	urls, bare := cutURLs(text, maxIndexed)
	for _, u := range urls {
		u, _, _ = strings.Cut(u, "$") // an unexpanded variable
		x.URLs = appendAll(x.URLs, []string{strings.TrimRight(u, "`.,;:!?*_\\")})
	}
	x.Paths = appendAll(x.Paths, scan(bare, maxIndexed, pathMatch()))
	for _, id := range scan(bare, maxIndexed, idMatch) {
		if id = strings.TrimSpace(id); strings.ContainsAny(id, "0123456789") && strings.ContainsFunc(id, notDigit) {
			x.IDs = appendAll(x.IDs, []string{id})
		}
	}
	if said {
		x.Numbers = appendAll(x.Numbers, scan(bare, maxIndexed, numberMatch))
	}
	if asked {
		return
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); len(line) > 8 && len(line) < 300 && tellsError(line) {
			x.Errors = appendAll(x.Errors, []string{clip.To(line, 160)})
		}
	}
}

// notDigit tells an identifier from a date or a count.
func notDigit(r rune) bool { return r < '0' || r > '9' }

// appendAll adds what is new, moves what is known to the end, and keeps the newest.
func appendAll(list, more []string) []string {
	for _, s := range more {
		if len(s) > 200 {
			continue
		}
		if i := slices.Index(list, s); i >= 0 {
			list = slices.Delete(list, i, i+1)
		}
		list = append(list, s)
	}
	return list[max(len(list)-maxIndexed, 0):]
}

// Gather makes the mechanical part of a summary from the items of a span and the digest before.
func Gather(prev Digest, items []Item) Digest {
	d := prev
	d.Index = Index{slices.Clone(prev.Index.Paths), slices.Clone(prev.Index.URLs), slices.Clone(prev.Index.IDs),
		slices.Clone(prev.Index.Numbers), slices.Clone(prev.Index.Errors)}
	d.Asks, d.Evicted = slices.Clone(prev.Asks), slices.Clone(prev.Evicted)
	for _, it := range items {
		if IsSummary(it) {
			continue
		}
		if d.From == "" {
			d.From = it.From
		}
		if m, ok := markerAt(&it); ok { // what it stands for is named again, so that one can ask for it
			d.Messages += m.Count
			d.Evicted = append(d.Evicted, m)
			continue
		}
		d.Messages++
		d.Images += it.Message.Images()
		if personTurn(&it) {
			if ask := strings.TrimSpace(tidemark.StripReminders(it.Message.PlainText())); ask != "" {
				d.Asks = append(d.Asks, Said{it.ID, ask})
			}
		}
		for _, b := range it.Message.Content {
			switch b.Type {
			case tidemark.TypeText:
				d.Index.Add(tidemark.StripReminders(b.Text), true, false)
			case tidemark.TypeToolUse:
				d.Index.Add(string(b.Input), false, true)
			case tidemark.TypeToolResult:
				d.Index.Add(resultText(b), false, false)
			case tidemark.TypeDocument:
				d.Index.Add(b.Document(), false, false)
			}
		}
	}
	d.Asks, d.Evicted = boundAsks(d.Asks), boundMarkers(d.Evicted)
	return d
}

// boundMarkers joins the two oldest markers until few are left: together they still say when what was.
func boundMarkers(list []Marker) []Marker {
	const most = 6
	for len(list) > most {
		list = append([]Marker{list[0].join(list[1])}, list[2:]...)
	}
	return list
}

// boundAsks keeps the newest requests within a budget of characters, each cut to a few lines.
func boundAsks(asks []Said) []Said {
	const budget, each = 4000, 600
	total := 0
	for i := len(asks) - 1; i >= 0; i-- {
		asks[i].Text = clip.To(asks[i].Text, each)
		if total += len(asks[i].Text); total > budget {
			return asks[i+1:]
		}
	}
	return asks
}

// Extract is the summary without a model, tier 3: the reference's sentence, with why there is none, and what can be taken
// from the span as it stands.
func Extract(items []Item, why string) string {
	var b strings.Builder
	n, images := 0, 0
	for _, it := range items {
		if m, ok := markerAt(&it); ok {
			n += m.Count
			continue
		}
		n++
		images += it.Message.Images()
	}
	fmt.Fprintf(&b, "[Context contained %d messages that were compacted. Summary unavailable: %s.", n, strings.TrimSuffix(why, "."))
	if images > 0 {
		fmt.Fprintf(&b, " Included %d image(s).", images)
	}
	b.WriteString("]\n\nThis is an extract of the conversation as it stands.\n")
	b.WriteString("\n## Tool calls\n" + list(toolCalls(items), 25))
	b.WriteString("\n## Last turns\n" + list(lastTurns(items), 8))
	return b.String()
}

func toolCalls(items []Item) []string {
	var out []string
	for _, it := range items {
		for _, c := range it.Message.Content {
			if c.Type == tidemark.TypeToolUse {
				out = append(out, fmt.Sprintf("%s %s", c.Name, clip.To(string(c.Input), 200)))
			}
		}
	}
	return out
}

func lastTurns(items []Item) []string {
	var out []string
	for _, it := range items {
		t := it.Message.PlainText()
		for _, b := range it.Message.Content {
			if d := b.Document(); d != "" {
				t = clip.To(d, 200) + " " + t
			}
		}
		if t = strings.TrimSpace(t); t != "" && !it.Span() {
			out = append(out, fmt.Sprintf("%s: %s", it.Message.Role, clip.To(strings.Join(strings.Fields(t), " "), 400)))
		}
	}
	return out
}

// list writes the newest n lines as bullets.
func list(lines []string, n int) string {
	if len(lines) == 0 {
		return "- none\n"
	}
	var b strings.Builder
	if skip := len(lines) - n; skip > 0 {
		fmt.Fprintf(&b, "- (%d earlier ones are in the archive)\n", skip)
		lines = lines[skip:]
	}
	for _, l := range lines {
		b.WriteString("- " + l + "\n")
	}
	return b.String()
}
