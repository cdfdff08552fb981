package memory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Files of the digest, which the agent writes and people may edit.
const (
	DigestFile   = "memory/DIGEST.md"
	digestFolder = "memory/digest/"
	suggested    = ".suggested" // before the extension of what stands beside an edited file
)

// DefaultDigestLines bounds a digest. The paper's implementation has the same bound for its index.
const DefaultDigestLines = 200

// Line is one entry of a digest: a fact, or what stands for a sitting or a compaction.
type Line struct {
	ID         string // breaks ties, and nothing else
	Text       string
	Importance int
	At         time.Time
	Past       bool // of the second section: no fact
}

// Detail is a file that takes up what does not fit into a digest, and is linked from it.
type Detail struct {
	Slug  string // see DetailFile
	Text  string
	Lines int // entries in it
}

// DetailFile is the path of a detail file.
func DetailFile(slug string) string { return digestFolder + slug + extension }

// Suggestion is the path of what is written beside a file that a person edited.
func Suggestion(path string) string {
	return strings.TrimSuffix(path, extension) + suggested + extension
}

// Digested is a digest with the files that it links.
type Digested struct {
	Text    string
	Details []Detail // in order of their slugs
	Shown   int      // entries in Text; the rest is in Details
}

// Texts of a digest.
const (
	digestTitle = "# Memory digest"
	factsTitle  = "## Facts"
	pastTitle   = "## Episodes"
	moreTitle   = "## In detail"
	roomy       = 24 // lines from which sections have headings
	oldest      = "older"
)

// WriteDigest writes a digest of at most so many lines, headings and links included, whatever the entries are.
// What does not fit goes to detail files, least important and oldest first; nothing is dropped but an entry
// that says what another one says. It is pure: the same entries in any order give the same bytes.
func WriteDigest(entries []Line, maxLines int) Digested {
	if maxLines <= 0 {
		maxLines = DefaultDigestLines
	}
	all := ranked(entries)
	shown, slug := fitting(all, maxLines)
	d := Digested{Shown: shown}
	rest := map[string][]Line{}
	for _, l := range all[shown:] {
		rest[slug(l)] = append(rest[slug(l)], l)
	}
	for s, lines := range rest {
		d.Details = append(d.Details, Detail{Slug: s, Text: detailText(s, lines), Lines: len(lines)})
	}
	slices.SortStableFunc(d.Details, func(a, b Detail) int { return strings.Compare(a.Slug, b.Slug) })
	d.Text = digestText(all[:shown], d.Details, maxLines)
	return d
}

// ranked is the one order of entries: what matters most first, then the newest. Each is one line; what says
// the same is there once.
func ranked(entries []Line) []Line {
	all := make([]Line, 0, len(entries))
	for _, l := range entries {
		if l.Text = clean(l.Text); l.Text != "" {
			all = append(all, l)
		}
	}
	slices.SortStableFunc(all, func(a, b Line) int {
		return cmp.Or(cmp.Compare(b.Importance, a.Importance), b.At.Compare(a.At), strings.Compare(a.ID, b.ID), strings.Compare(a.Text, b.Text), cmp.Compare(flag(a.Past), flag(b.Past)))
	})
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(l Line) bool {
		key := Fold(l.Text)
		if key == "" {
			key = l.Text
		}
		was := seen[key]
		seen[key] = true
		return was
	})
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// slugs divide what is demoted, the finest first: by month, by year, all in one.
func slugs() []func(Line) string {
	by := func(layout string) func(Line) string {
		return func(l Line) string {
			name := "facts-"
			if l.Past {
				name = "episodes-"
			}
			return name + l.At.UTC().Format(layout)
		}
	}
	return []func(Line) string{by("2006-01"), by("2006"), func(Line) string { return oldest }}
}

// fitting returns how many entries stay, and what divides the rest: the finest that leaves most of the lines to
// entries.
func fitting(all []Line, maxLines int) (int, func(Line) string) {
	for i, slug := range slugs() {
		links := make([]int, len(all)+1) // of what is behind each place
		seen := map[string]bool{}
		for n := len(all) - 1; n >= 0; n-- {
			seen[slug(all[n])] = true
			links[n] = len(seen)
		}
		for n := min(len(all), maxLines); n >= 0; n-- {
			if heads(all[:n], links[n], maxLines)+n+links[n] <= maxLines && (links[n]*4 <= maxLines || i == 2) {
				return n, slug
			}
		}
	}
	return 0, slugs()[2] // one line: its title is the link
}

// heads counts the lines that are neither entries nor links.
func heads(kept []Line, links, maxLines int) int {
	n := 1
	if maxLines < roomy {
		return n
	}
	past := 0
	for _, l := range kept {
		past += flag(l.Past)
	}
	for _, section := range []int{len(kept) - past, past, links} {
		if section > 0 {
			n += 3 // a blank line, the heading, a blank line
		}
	}
	return n
}

func digestText(kept []Line, details []Detail, maxLines int) string {
	if len(details) == 1 && maxLines == 1 {
		return fmt.Sprintf("%s: %s\n", digestTitle, link(details[0]))
	}
	var b strings.Builder
	b.WriteString(digestTitle + "\n")
	section := func(title string, lines []string) {
		if len(lines) == 0 {
			return
		}
		if maxLines >= roomy {
			b.WriteString("\n" + title + "\n\n")
		}
		for _, l := range lines {
			b.WriteString("- " + l + "\n")
		}
	}
	var facts, past, more []string
	for _, l := range kept {
		if l.Past {
			past = append(past, l.Text)
		} else {
			facts = append(facts, l.Text)
		}
	}
	for _, d := range details {
		more = append(more, link(d))
	}
	section(factsTitle, facts)
	section(pastTitle, past)
	section(moreTitle, more)
	return b.String()
}

// link names a detail file, as seen from the digest.
func link(d Detail) string {
	n := plural(d.Lines, "entry")
	if d.Lines != 1 {
		n = fmt.Sprintf("%d entries", d.Lines)
	}
	return fmt.Sprintf("%s in [%s](%s)", n, d.Slug, strings.TrimPrefix(DetailFile(d.Slug), dailyFolder))
}

func detailText(slug string, lines []Line) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Memory digest: %s\n\nWhat does not fit into [the digest](../DIGEST.md), the most important first.\n\n", slug)
	for _, l := range lines {
		b.WriteString("- " + l.Text + "\n")
	}
	return b.String()
}

// Importance is how much a fact counts in a digest, 1 to 10, by what it says: a rule for all that follows more
// than a preference, that more than the rest. Said on several days, it counts more.
func Importance(text string, days int) int {
	n := 5
	words := " " + Fold(text) + " "
	for _, m := range []struct {
		marks string
		worth int
	}{{"must never always required forbidden allergic deadline password immer niemals muss", 9}, {"prefers prefer wants likes dislikes decided agreed uses birthday name lives", 7}} {
		if slices.ContainsFunc(strings.Fields(m.marks), func(w string) bool { return strings.Contains(words, " "+w+" ") }) {
			n = m.worth
			break
		}
	}
	return min(n+min(max(days-1, 0), 2), 10)
}
