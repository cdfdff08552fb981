package body

import (
	"bytes"
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

// MinPart is how long a reminder must be, in bytes of the body, for a repetition of it to be worth a note.
const MinPart = 500

// Trim is what of the static parts of one request is sent short. It is made by [Trimmed].
type Trim struct {
	Bytes int // of the body that are left out

	of    *Request
	tools []toolEdit    // in order
	texts []BlockChange // whole blocks, with their markers
}

// toolEdit is a definition that goes out short.
type toolEdit struct {
	n   int
	raw []byte
}

// Trimmed finds what of r can be sent short beside the other changes of c, which are looked at because what a
// change takes away cannot be pointed at.
//
// The definitions of all tools but those in restored become stubs: tools stand first in the cached prefix, so a
// tool that is called gets its definition back at a batch point only, which is for the caller to say.
//
// Of a reminder that stands in several messages the first stays, and so does the first line of a skill. What
// becomes of a message depends on those before it and on c only, so what was sent is sent again while the
// history grows.
func Trimmed(r *Request, c Change, restored map[string]bool) *Trim {
	t := &Trim{of: r}
	for n, tool := range r.Tools {
		if restored[tool.Name] {
			continue
		}
		short := stub(r.Dialect, tool.Raw)
		if short == nil {
			continue
		}
		t.tools = append(t.tools, toolEdit{n, short})
		t.Bytes += len(tool.Raw) - len(short)
	}
	f := finder{t: t, chat: r.Dialect == Chat, parts: map[string]int{}, skills: map[string]bool{}}
	hidden := c.hidden()
	for n, it := range r.Items {
		if it.Role == tidemark.User && bytes.Contains(it.Raw, reminderName) {
			f.item(n, it, hidden)
		}
	}
	return t
}

// hidden reports which blocks of which items do not go out as they came.
func (c Change) hidden() func(item, block int) bool {
	blocks := make(map[[2]int]bool, len(c.Blocks))
	for _, b := range c.Blocks {
		blocks[[2]int{b.Item, b.Block}] = true
	}
	return func(item, block int) bool {
		for _, s := range c.Spans {
			if item >= s.From && item <= s.To {
				return true
			}
		}
		return blocks[[2]int{item, block}]
	}
}

// finder looks for what stands twice, from the first message to the last.
type finder struct {
	t      *Trim
	chat   bool
	parts  map[string]int // reminder, as it stands in the body: message, from 1
	skills map[string]bool
	at     int // message, from 1
}

func (f *finder) item(n int, it Item, hidden func(item, block int) bool) {
	f.at = n + 1
	for k := range it.Blocks() {
		if hidden(n, k) {
			continue
		}
		var short []byte
		switch raw := it.Block(k); it.kind(k) {
		case text:
			short = f.block(raw, "text", false)
		case result:
			short = f.block(raw, "content", true)
		}
		if short != nil {
			f.t.texts = append(f.t.texts, BlockChange{n, k, short})
		}
	}
}

// block is a block with a text that was made shorter, nil if none was. In the result of a tool only what stands
// at the end counts, where agents put it: further up it is the tool's own words.
func (f *finder) block(raw []byte, name string, tail bool) []byte {
	if !bytes.Contains(raw, reminderName) {
		return nil
	}
	value := find(raw, name)
	var short []byte
	switch {
	case len(value) == 0:
	case value[0] == '"':
		short = f.text(value, tail)
	case value[0] == '[' && !f.chat:
		short = f.nested(value, tail)
	}
	if short == nil {
		return nil
	}
	return setMember(raw, name, short)
}

// nested is the list of blocks of a result with a text that was made shorter, nil if none was.
func (f *finder) nested(raw []byte, tail bool) []byte {
	var edits []jsonscan.Edit
	c := over(raw)
	c.Elements("content", func(int) {
		s := c.Value()
		b, err := checkBlock(s.Of(raw))
		if err != nil || b.kind != text {
			return
		}
		if short := f.block(s.Of(raw), "text", tail); short != nil {
			edits = append(edits, jsonscan.Edit{Span: s, With: short})
		}
	})
	if edits == nil || c.Err() != nil {
		return nil
	}
	return jsonscan.Splice(nil, raw, edits...)
}

// text is a string, with its quotes, without what stands further up; nil if all of it is new.
func (f *finder) text(quoted []byte, tail bool) []byte {
	var edits []jsonscan.Edit
	for _, p := range reminders(quoted, tail) {
		if short := f.reminder(p.Of(quoted)); short != nil {
			edits = append(edits, jsonscan.Edit{Span: p, With: short})
		}
	}
	if edits == nil {
		return nil
	}
	return jsonscan.Splice(nil, quoted, edits...)
}

// reminder is what goes out in the place of one, nil for itself.
func (f *finder) reminder(body []byte) []byte {
	if len(body) >= MinPart {
		if first, ok := f.parts[string(body)]; ok {
			open, end := tagsOf(body)
			short := fmt.Appendf(nil, "%s[Same as in message %d.]%s", open, first, end)
			f.t.Bytes += len(body) - len(short)
			return short
		}
		f.parts[string(body)] = f.at
	}
	if !bytes.Contains(body, []byte("skill")) || !bytes.Contains(body, []byte("available")) {
		return nil
	}
	return f.list(body)
}

// The names and tags of reminders, plain and as encoders write them that escape HTML.
var reminderName = []byte("system-reminder")

const (
	openTag    = `<system-reminder>`
	endTag     = `</system-reminder>`
	openTagHex = `\u003csystem-reminder\u003e`
	endTagHex  = `\u003c/system-reminder\u003e`
)

func tagsOf(body []byte) (open, end string) {
	if body[0] == '<' {
		return openTag, endTag
	}
	return openTagHex, endTagHex
}

// reminders finds the reminders of a string with quotes; with tail only those with nothing but white space and
// other reminders behind them.
func reminders(quoted []byte, tail bool) []span {
	open, end := openTag, endTag
	if !bytes.Contains(quoted, []byte(open)) {
		open, end = openTagHex, endTagHex
	}
	var found []span
	for at := 0; ; {
		i := bytes.Index(quoted[at:], []byte(open))
		if i < 0 {
			break
		}
		j := bytes.Index(quoted[at+i:], []byte(end))
		if j < 0 {
			break
		}
		s := span{From: at + i, To: at + i + j + len(end)}
		found = append(found, s)
		at = s.To
	}
	if !tail {
		return found
	}
	behind := len(quoted) - 1
	for n := len(found) - 1; n >= 0; n-- {
		if !blank(quoted[found[n].To:behind]) {
			return found[n+1:]
		}
		behind = found[n].From
	}
	return found
}

// blank reports a piece of a string that is white space only, as it stands in JSON.
func blank(raw []byte) bool {
	for len(raw) > 0 {
		switch {
		case raw[0] == ' ':
			raw = raw[1:]
		case len(raw) > 1 && raw[0] == '\\' && (raw[1] == 'n' || raw[1] == 'r' || raw[1] == 't'):
			raw = raw[2:]
		default:
			return false
		}
	}
	return true
}
