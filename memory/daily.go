package memory

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// Section is what one extraction adds to one file. Its provenance stands in HTML comments: whoever
// reads the rendered file sees none of it, whoever opens it as text or searches it sees from which
// session and entries a line came, and a program finds out that the section is there already.
type Section struct {
	ID      string          `json:"id"`                // of the extraction
	Session string          `json:"session,omitempty"` // id of the log
	At      time.Time       `json:"at"`
	Noted   bool            `json:"noted,omitempty"` // written down on purpose, with memory_append
	Facts   []tidemark.Fact `json:"facts,omitempty"`
	// From and File make it one line that says that someone who is not the owner gave Count facts,
	// and where they are.
	From  string `json:"from,omitempty"`
	File  string `json:"file,omitempty"`
	Count int    `json:"count,omitempty"`
}

// mark opens the comments that are ours.
const mark = "<!-- tidemark:"

// Headers of sections. The first is fixed by the paper ("Memory Extraction"), also for what a reset
// extracts.
const (
	headerExtracted = "### Extracted from context compaction (%s)"
	headerNoted     = "### Noted in conversation (%s)"
)

// comment is the mark by which a section is known.
func (s Section) comment() string {
	c := mark + " " + safe(s.ID)
	if s.Session != "" {
		c += " session " + safe(s.Session)
	}
	return c + " -->"
}

// safe keeps an id within its comment.
func safe(id string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r == '>' || r == '<' || r == 0x7f {
			return '_'
		}
		return r
	}, id)
}

// Render writes the section in the agent's time zone, or nothing when it has no facts.
func (s Section) Render(zone *time.Location) string {
	clock := s.At.In(zoneOf(zone)).Format("15:04")
	if s.From != "" {
		return fmt.Sprintf("- %s: %s from %s, see [%s](%s) %s\n", clock, plural(s.Count, "fact"), s.From, s.File, strings.TrimPrefix(s.File, dailyFolder), s.comment())
	}
	if len(s.Facts) == 0 {
		return ""
	}
	header := headerExtracted
	if s.Noted {
		header = headerNoted
	}
	var b strings.Builder
	fmt.Fprintf(&b, header+"\n%s\n\n", clock, s.comment())
	for _, f := range s.Facts {
		b.WriteString("- " + f.Text)
		if n := len(f.Sources); n > 0 {
			b.WriteString(" " + mark + " " + safe(string(f.Sources[0])))
			if last := f.Sources[n-1]; last != f.Sources[0] {
				b.WriteString(".." + safe(string(last)))
			}
			b.WriteString(" -->")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Append adds sections at the end of a file. Every byte that is there stays; a section whose
// comment is there is not added again, so doing it twice is doing it once.
func Append(file []byte, zone *time.Location, sections ...Section) []byte {
	out := file[:len(file):len(file)]
	for _, s := range sections {
		text := s.Render(zone)
		// The space ends the id, so that one is not found within a longer one.
		if text == "" || bytes.Contains(out, []byte(mark+" "+safe(s.ID)+" ")) {
			continue
		}
		out = append(append(out, gap(out, s.From != "")...), text...)
	}
	return out
}

// gap is what must stand between a file and the next section: a blank line, but lines that tell of
// peers form one list.
func gap(file []byte, listItem bool) string {
	switch {
	case len(file) == 0 || bytes.HasSuffix(file, []byte("\n\n")) || bytes.HasSuffix(file, []byte("\r\n\r\n")):
		return ""
	case !bytes.HasSuffix(file, []byte("\n")):
		return "\n\n"
	case listItem && bytes.Contains(file[bytes.LastIndexByte(file[:len(file)-1], '\n')+1:], []byte(" from ")):
		return ""
	}
	return "\n"
}

// Strip takes our comments out of a file, for prompts and people.
func Strip(file string) string {
	if !strings.Contains(file, mark) {
		return file
	}
	var b strings.Builder
	for {
		i := strings.Index(file, mark)
		if i < 0 {
			break
		}
		j := strings.Index(file[i:], "-->")
		if j < 0 {
			break
		}
		before := strings.TrimRight(file[:i], " ")
		b.WriteString(before)
		file = file[i+j+len("-->"):]
		if strings.HasSuffix(before, "\n") && strings.HasPrefix(file, "\n") { // it stood alone on its line
			file = file[1:]
		}
	}
	b.WriteString(file)
	return b.String()
}

// Without leaves out the bullets of a file that say what counts no more, see [Fold]; the file itself keeps them.
func Without(file string, over map[string]bool) string {
	if len(over) == 0 {
		return file
	}
	var b strings.Builder
	for l := range strings.Lines(file) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(Strip(l)), "- "); !ok || !over[Fold(text)] {
			b.WriteString(l)
		}
	}
	return b.String()
}
