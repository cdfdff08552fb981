package probe

import (
	"strconv"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/paging"
)

// ask takes a call of a tool: what stands in the context of the same thing was of use until now.
func (s *stream) ask(b tidemark.Block) int32 {
	c := s.c.tools.Call(b.Name, b.Input)
	u := use{tool: s.c.name(b.Name), kind: c.Kind, span: c.Range}
	if u.kind == paging.Looks {
		u.key = hashOf("input", c.Tool, string(b.Input))
	} else {
		u.key = hashOf("path", c.Path)
	}
	s.tools[u.tool] = true
	if b.ID != "" {
		s.pending[hashOf(b.ID)] = u
	}
	s.use(u)
	for _, more := range c.More {
		u.key = hashOf("path", more)
		s.use(u)
	}
	return u.tool
}

func (s *stream) use(u use) {
	for _, r := range s.results[u.key] {
		if u.kind != paging.Reads || u.span.Covers(r.span) || r.span.Covers(u.span) {
			s.pieces[r.index].used = int32(len(s.calls))
		}
	}
}

// result adds what a tool gave. A newer copy of the same stands for the older one from now on.
func (s *stream) result(b tidemark.Block, p piece) {
	u, ok := s.pending[hashOf(b.ToolUseID)]
	if !ok {
		u = use{tool: s.c.name(UnknownTool)}
	}
	pictures := inline(b.Content)
	if pictures = min(pictures, p.size); pictures > 0 {
		s.add(piece{size: pictures, kind: Image, made: p.made, tool: -1})
	}
	p.size -= pictures
	p.kind, p.tool, p.fails = Result, u.tool, b.IsError
	for _, in := range b.Content {
		_, dup := s.remind(in.Text)
		p.dup += dup
	}
	if ok && !b.IsError && u.kind != paging.Changes {
		s.replace(u, p.made)
		u.index = len(s.pieces)
		s.results[u.key] = append(s.results[u.key], u)
	}
	s.add(p)
}

// replace lets a result stand for those that it covers. Of what was run again both outcomes may be of use, so only
// a read has copies.
func (s *stream) replace(u use, made int32) {
	var kept []use
	for _, r := range s.results[u.key] {
		if u.kind == paging.Reads && u.span.Covers(r.span) {
			s.pieces[r.index].newer = max(1, made)
			continue
		}
		if u.kind == paging.Reads {
			kept = append(kept, r)
		}
	}
	s.results[u.key] = kept
}

// inline returns the bytes of inline data in blocks.
func inline(blocks []tidemark.Block) (n int64) {
	for _, b := range blocks {
		if b.Source != nil && (b.Type == tidemark.TypeImage || b.Type == tidemark.TypeDocument) {
			n += int64(b.Source.Bytes)
		}
		n += inline(b.Content)
	}
	return n
}

const (
	reminderHead = "<system-reminder>"
	reminderTail = "</system-reminder>"
)

// remind finds the reminders in a text and how much of them is in the context already: all of one that is equal,
// and lines of a list of skills whose name, behind its last colon, was listed before.
func (s *stream) remind(text string) (told, dup int64) {
	for {
		_, rest, ok := strings.Cut(text, reminderHead)
		if !ok {
			return told, dup
		}
		body, rest, ok := strings.Cut(rest, reminderTail)
		if !ok {
			return told, dup
		}
		text = rest
		whole := int64(len(reminderHead) + len(body) + len(reminderTail))
		told += whole
		switch h := hashOf("reminder", body); {
		case s.reminders[h]:
			dup += whole
		default:
			s.reminders[h] = true
			dup += s.skills(body)
		}
	}
}

// skills returns the bytes of the lines of a list of skills that were listed before.
func (s *stream) skills(body string) (dup int64) {
	if !strings.Contains(body, "skill") {
		return 0
	}
	for line := range strings.Lines(body) {
		entry, ok := strings.CutPrefix(strings.TrimSpace(line), "- ")
		if !ok {
			continue
		}
		name, _, ok := strings.Cut(entry, ": ")
		if !ok {
			continue
		}
		if h := hashOf("skill", name[strings.LastIndex(name, ":")+1:]); s.reminders[h] {
			dup += int64(len(line))
		} else {
			s.reminders[h] = true
		}
	}
	return dup
}

// hex is a short name of a session.
func (h hash) hex() string {
	const short = 6
	s := ""
	for _, b := range h[:short] {
		s += strconv.FormatInt(int64(b>>4), 16) + strconv.FormatInt(int64(b&15), 16)
	}
	return s
}
