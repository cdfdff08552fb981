package episodes

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/room"
)

// Text is a page of an episode as it stands in the log.
type Text struct {
	Episode string `json:"episode"`
	Text    string `json:"text"`
	Next    int    `json:"next,omitempty"` // offset of the next page
}

// Read returns a page of an episode of the conversation, which is named as recall names it. An unknown name is
// ErrNotFound, an offset behind its end ErrInvalid.
func (s *Room) Read(ctx context.Context, name string, offset int) (Text, error) {
	log, err := s.Current(ctx)
	if err != nil {
		return Text{}, err
	}
	return s.readIn(ctx, log, name, offset)
}

// ReadOf is Read of episodes that another keeps of a log of this conversation.
func (s *Room) ReadOf(ctx context.Context, log string, all []*episodes.Episode, name string, offset int) (Text, error) {
	e, to, err := find(all, name)
	if err != nil {
		return Text{}, err
	}
	return s.textOf(ctx, log, e, to, offset)
}

func (s *Room) readIn(ctx context.Context, log, name string, offset int) (out Text, err error) {
	var e episodes.Episode
	var to int64
	err = s.withGraph(ctx, log, func(g *episodes.Graph) (err error) {
		e, to, err = find(g.Episodes(), name)
		return err
	})
	if err != nil {
		return out, err
	}
	return s.textOf(ctx, log, e, to, offset)
}

// ReadEpisode implements room.EpisodeReader, whatever of the episode is in the view.
func (s *Room) ReadEpisode(ctx context.Context, log, name string, offset int) (string, error) {
	p, err := s.readIn(ctx, log, name, offset)
	if err != nil || p.Next == 0 {
		return p.Text, err
	}
	return p.Text + fmt.Sprintf("\n[%d bytes of %s; go on with offset %d]", p.Next-offset, p.Episode, p.Next), nil
}

// textOf is a page of what the model said and called in an episode, and of what the tools answered; to is where the next begins.
func (s *Room) textOf(ctx context.Context, log string, e episodes.Episode, to int64, offset int) (Text, error) {
	if offset < 0 {
		return Text{}, fmt.Errorf("offset %d: want 0 or more: %w", offset, tidemark.ErrInvalid)
	}
	p := page{from: offset}
	mine := map[string]bool{} // calls
	for entry, err := range s.Messages(ctx, log, host.Range{From: e.From.Seq, To: to}) {
		if err != nil {
			return Text{}, err
		}
		m, err := entry.Message()
		if err != nil {
			return Text{}, fmt.Errorf("read entry %s: %w", entry.ID, err)
		}
		part := partOf(e, entry.Seq, m, mine)
		if _, size := room.TextAt(part, 0, 0); size > 0 {
			p.add(fmt.Sprintf("[%s, %s, entry %s]\n", entry.At.In(s.Zone()).Format("2006-01-02 15:04"), part.Role, entry.ID))
			p.addMessage(part)
			p.add("\n\n")
		}
		if p.more {
			break
		}
	}
	return p.text(e.String())
}

// find finds one by its name, and where the next begins; unmarked work has that of the entry in which it begins.
func find(all []*episodes.Episode, name string) (found episodes.Episode, to int64, err error) {
	name = strings.TrimSpace(name)
	n := slices.IndexFunc(all, func(e *episodes.Episode) bool { return e.Name == name && name != "" })
	if n < 0 {
		n = slices.IndexFunc(all, func(e *episodes.Episode) bool { return e.Name == "" && string(e.Entry) == name })
	}
	switch {
	case n < 0:
		return found, 0, nearNames(all, name)
	case n+1 < len(all):
		return *all[n], all[n+1].From.Seq, nil
	}
	return *all[n], host.LogEnd, nil
}

// partOf returns what of a message is of an episode. mine are the calls of it so far.
func partOf(e episodes.Episode, seq int64, m tidemark.Message, mine map[string]bool) tidemark.Message {
	out := tidemark.Message{Role: m.Role}
	for i, b := range m.Content {
		in := b.Type == tidemark.TypeToolResult && mine[b.ToolUseID]
		if m.Role == tidemark.Assistant {
			in = (seq > e.From.Seq || i >= e.From.Block) && (seq < e.To.Seq || seq == e.To.Seq && i <= e.To.Block)
		}
		if in {
			out.Content = append(out.Content, b)
			if b.Type == tidemark.TypeToolUse {
				mine[b.ID] = true
			}
		}
	}
	return out
}

// page takes a page out of a text that comes in pieces.
type page struct {
	from int // bytes to leave out
	at   int // bytes that came
	b    strings.Builder
	more bool
}

func (p *page) add(text string) {
	if lo, hi := max(p.from-p.at, 0), min(p.from+room.ToolPage-p.at, len(text)); lo < hi {
		p.b.WriteString(text[lo:hi])
	}
	p.move(len(text))
}

// addMessage is add of the text of a message, which may be as large as memory.
func (p *page) addMessage(m tidemark.Message) {
	lo := max(p.from-p.at, 0)
	text, size := room.TextAt(m, lo, max(p.from+room.ToolPage-p.at-lo, 0))
	p.b.WriteString(text)
	p.move(size)
}

func (p *page) move(n int) {
	p.at += n
	p.more = p.at > p.from+room.ToolPage
}

// text is the page, and where the next begins.
func (p *page) text(what string) (Text, error) {
	if p.from > p.at {
		return Text{}, fmt.Errorf("offset %d: %s has %d bytes: %w", p.from, what, p.at, tidemark.ErrInvalid)
	}
	out, next := p.b.String(), 0
	if p.more {
		out = clip.Runes(out)
		next = p.from + len(out)
	} else {
		out = strings.TrimRight(out, "\n")
	}
	return Text{what, strings.ToValidUTF8(out, ""), next}, nil
}

// unknownEpisode is a refusal that says itself that there is none: it is ErrNotFound.
type unknownEpisode string

func (e unknownEpisode) Error() string        { return string(e) }
func (e unknownEpisode) Is(target error) bool { return target == tidemark.ErrNotFound }

// nearNames lists the episodes that a name may have meant, for an error.
func nearNames(list []*episodes.Episode, name string) error {
	const most = 12
	var near, all []string
	for _, e := range slices.Backward(list) {
		if e.Name == "" {
			continue
		}
		if len(all) < most {
			all = append(all, fmt.Sprintf("%q", e.Name))
		}
		if len(near) < most && alike(e.Name, name) {
			near = append(near, fmt.Sprintf("%q", e.Name))
		}
	}
	text := fmt.Sprintf("episode %.100q is not known here. ", name)
	switch {
	case len(near) > 0:
		text += "Near to it: " + strings.Join(near, ", ") + "."
	case len(all) > 0:
		text += "The newest: " + strings.Join(all, ", ") + "."
	default:
		text = fmt.Sprintf("episode %.100q: nothing was marked in this conversation, ask with a query", name)
	}
	return unknownEpisode(text)
}

// alike reports names that have a word in common, or its beginning: numbers, plurals and slips come behind that.
func alike(a, b string) bool {
	const begin = 4 // letters; of short words all but one
	split := func(r rune) bool { return strings.ContainsRune(" -_/.:,", r) }
	theirs := strings.FieldsFunc(strings.ToLower(a), split)
	for _, w := range strings.FieldsFunc(strings.ToLower(b), split) {
		for _, v := range theirs {
			n := 0
			for n < len(w) && n < len(v) && w[n] == v[n] {
				n++
			}
			if n >= 2 && n >= min(begin, max(len(w), len(v))-1) || len(w) > 2 && strings.Contains(v, w) {
				return true
			}
		}
	}
	return false
}
