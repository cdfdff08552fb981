package compaction

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/picture"
	"github.com/tidemark-ai/tidemark/paging"
)

// trimMark begins the text of every stub of trimming. The paper's is "[Trimmed: ~N chars]" (papers/cmv §3.2); what the
// call was and the way back stand behind.
const trimMark = "[Trimmed: "

// shownHead is how many characters of a path, a command or a title a stub shows.
const shownHead = 80

// trimmed is the data of an edit.
type trimmed struct {
	Trim *trimmedBlock `json:"trim"`
}

type trimmedBlock struct {
	Kind  string `json:"kind"` // the type of the block
	Chars int    `json:"chars,omitempty"`
}

func trimData(b *tidemark.Block) json.RawMessage {
	data, err := json.Marshal(trimmed{&trimmedBlock{Kind: b.Type, Chars: trimChars(b)}})
	if err != nil { // a name and a number
		return nil
	}
	return data
}

// Trimmed reports whether trimming put a stub there, and which type of block it stands for.
func Trimmed(s Stubbed) (kind string, ok bool) {
	if !bytes.HasPrefix(s.Data, []byte(`{"trim":`)) {
		return "", false
	}
	var d trimmed
	if json.Unmarshal(s.Data, &d) != nil || d.Trim == nil {
		return "", false
	}
	return d.Trim.Kind, true
}

// Trims counts the blocks of an item that trimming put a stub for, and those that it took out: thinking.
func (i *Item) Trims() (stubs, out int) {
	for _, s := range i.Stubbed {
		switch _, ok := Trimmed(s); {
		case ok && s.Many > 0:
			stubs++
		case ok:
			out++
		}
	}
	return stubs, out
}

// Unthought reports an item of which trimming took nothing but thinking: it says all that it said, and has no stub.
func Unthought(it Item) bool {
	_, out := it.Trims()
	return out > 0 && out == it.Stubs
}

// trimChars is how long what leaves with a block is: the texts of a result, and what else is in it as JSON but images and
// documents, which leave anyway; the input of a call; nothing of the others.
func trimChars(b *tidemark.Block) int {
	switch b.Type {
	case tidemark.TypeToolUse:
		return tidemark.UTF16Len([]byte(b.Input))
	case tidemark.TypeToolResult:
		n := 0
		for i := range b.Content {
			switch c := &b.Content[i]; {
			case c.Type == tidemark.TypeText:
				n += tidemark.UTF16Len(c.Text)
			case !leaves(c):
				n += tidemark.UTF16Len(c.AppendJSON(nil))
			}
		}
		return n
	}
	return 0
}

// leaves reports an image or a document that leaves whatever it weighs. A document of text or of blocks is words that
// somebody wrote, and stays.
func leaves(b *tidemark.Block) bool {
	switch b.Type {
	case tidemark.TypeImage:
		return true
	case tidemark.TypeDocument:
		return b.Source == nil || b.Source.Type != "text" && b.Source.Type != "content"
	}
	return false
}

// result is what stands for the result of a tool. Of a long one the stub is all; of a short one the words stay, and a
// note stands for each image. What recall could not tell, which are blocks of other types, stays.
func (p *trimming) result(b *tidemark.Block, handle string) (*tidemark.Block, *TrimKind) {
	media := 0
	for i := range b.Content {
		switch c := &b.Content[i]; {
		case leaves(c):
			media++
		case c.Type != tidemark.TypeText && c.Type != tidemark.TypeDocument:
			return nil, nil
		}
	}
	back := wayBack(b, handle, "reads")
	if n := trimChars(b); n > p.most {
		said := []string{"~" + strconv.Itoa(n) + " chars", p.named(b.ToolUseID)}
		const most = 4 // of many images the first tell enough
		named := 0
		for i := range b.Content {
			if c := &b.Content[i]; leaves(c) && named < most {
				said = append(said, mediaName(c))
				named++
			}
		}
		if media > named {
			said = append(said, "and "+strconv.Itoa(media-named)+" more images")
		}
		return withValue(b, "content", json.AppendString(nil, bracket(append(said, back)...))), &p.gain.Results
	}
	if media == 0 {
		return nil, nil
	}
	return bareResult(b, back), &p.gain.Media
}

// bareResult is the result of a tool with notes in the place of its images and documents, nil for one without any. The
// first says how to have it back.
func bareResult(b *tidemark.Block, back string) *tidemark.Block {
	raw, found := []byte{'['}, false
	for i := range b.Content {
		if i > 0 {
			raw = append(raw, ',')
		}
		c := &b.Content[i]
		if !leaves(c) {
			raw = c.AppendJSON(raw)
			continue
		}
		raw = tidemark.Text(bracket(mediaName(c), back)).AppendJSON(raw)
		back, found = "", true // it is of the whole result
	}
	if !found {
		return nil
	}
	return withValue(b, "content", append(raw, ']'))
}

// trimMedia is the note for an image or a document that a person sent.
func trimMedia(b *tidemark.Block, handle string) *tidemark.Block {
	if !leaves(b) {
		return nil
	}
	note := tidemark.Text(bracket(mediaName(b), wayBack(b, handle, "shows")))
	return &note
}

// bracket puts the parts of a stub together.
func bracket(parts ...string) string {
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return trimMark + strings.Join(parts, "; ") + "]"
}

// wayBack says how to have a block back: by recall, where it is not too large for that.
func wayBack(b *tidemark.Block, handle, verb string) string {
	switch {
	case Recallable(*b):
		return callRecall(handle) + " " + verb + " it"
	case trimChars(b) > 0:
		return callRecall(handle) + " reads its text"
	}
	return "too large for recall: ask for it again"
}

// callRecall is the call that reads a block.
func callRecall(handle string) string {
	return string(json.AppendString([]byte(`recall({"entry": `), handle)) + "})"
}

// named is the tool that a result is of, and what it was called on.
func (p *trimming) named(id string) string {
	call := p.calls[id]
	if call == nil {
		return ""
	}
	c := p.tools.Call(call.Name, call.Input)
	name := paging.StubName(c.Tool)
	switch {
	case c.Path != "":
		name += " " + tailOf(paging.StubName(c.Path))
		if c.Kind == paging.Reads {
			if r := headOf(c.Range.String()); r != "" {
				name += " " + r
			}
		}
	case c.Asks != "":
		name += " " + headOf(c.Asks)
	default:
		name += " " + headOf(identified(call.Input))
	}
	return strings.TrimSpace(name)
}

// identified is the first argument that tells a call of an unknown tool from another, "" for none.
func identified(input json.RawMessage) string {
	_, value, _ := bytes.Cut(appendIdentity(nil, input), []byte(`":`)) // of ,"path":"…"
	text, _, _, _ := json.CutString(value)
	return text
}

// headOf is the beginning of a text on one line.
func headOf(s string) string {
	s = paging.StubName(strings.Join(strings.Fields(s[:runeFloor(s, min(len(s), 4*shownHead))]), " "))
	if utf8.RuneCountInString(s) <= shownHead {
		return s
	}
	return string([]rune(s)[:shownHead-1]) + "…"
}

// tailOf is the end of a path.
func tailOf(s string) string {
	n := utf8.RuneCountInString(s)
	if n <= shownHead {
		return s
	}
	return "…" + string([]rune(s)[n-shownHead+1:])
}

// mediaName tells an image or a document: its type, how large it is, and its title.
func mediaName(b *tidemark.Block) string {
	said := b.Type
	src := b.Source
	if src != nil && src.MediaType != "" {
		said = paging.StubName(src.MediaType)
	}
	if src == nil {
		return said
	}
	if src.Bytes > 0 && src.Type == "base64" {
		said += ", " + strconv.Itoa(base64.RawStdEncoding.DecodedLen(src.Bytes)) + " bytes"
		if w, h := pictureSize(b); w > 0 {
			said += ", " + strconv.Itoa(w) + "x" + strconv.Itoa(h)
		}
	}
	if src.URL != "" {
		said += ", " + tailOf(paging.StubName(src.URL))
	}
	if b.Type == tidemark.TypeDocument {
		if title := documentTitle(b); title != "" {
			said += ", " + headOf(title)
		}
	}
	return said
}

// fieldsWithin is how far from an end of a block of an image its short fields are looked for. The data between is not read.
const fieldsWithin = 1 << 10

// pictureSize reads width and height of an image of inline data, zeros where its first bytes do not tell.
func pictureSize(b *tidemark.Block) (width, height int) {
	if b.Type != tidemark.TypeImage {
		return width, height
	}
	raw := b.Raw()
	const data = `"data"`
	before, _, ok := bytes.Cut(raw[:min(len(raw), fieldsWithin)], []byte(data))
	if !ok {
		return width, height
	}
	raw = bytes.TrimLeft(raw[len(before)+len(data):], " \t:")
	if len(raw) == 0 || raw[0] != '"' {
		return width, height
	}
	raw = raw[1:min(len(raw), 2*picture.HeadBytes)]
	if end := bytes.IndexByte(raw, '"'); end >= 0 {
		raw = raw[:end]
	}
	return picture.OfBase64(raw)
}

// documentTitle is what a document is called, "" when nothing says.
func documentTitle(b *tidemark.Block) string {
	raw := b.Raw()
	for _, part := range [][]byte{raw[:min(len(raw), fieldsWithin)], raw[max(len(raw)-fieldsWithin, 0):]} {
		_, value, _ := bytes.Cut(part, []byte(`"title"`))
		if title, _, _, ok := json.CutString(bytes.TrimLeft(value, " \t:")); ok {
			return title
		}
	}
	return ""
}

// withValue is a block with another value of one field, and all else as it came; nil where it has no such field.
func withValue(b *tidemark.Block, name string, value []byte) *tidemark.Block {
	raw, err := paging.Substitute(b.AppendJSON(nil), name, value)
	var out tidemark.Block
	if err != nil || json.Unmarshal(raw, &out) != nil {
		return nil
	}
	return &out
}
