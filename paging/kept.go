package paging

import (
	"encoding/hex"
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

// Kept is what paging must know of a part of a message that is out, so that its bytes need not be read again.
// It is stored beside the stub, as JSON. Its zero value is of nothing.
type Kept struct {
	Part    string   `json:"part"` // result, input, image
	ID      string   `json:"id,omitempty"`
	Tool    string   `json:"tool,omitempty"` // the following are of a call
	Kind    Kind     `json:"kind,omitempty"`
	Path    string   `json:"path,omitempty"`
	From    int64    `json:"from,omitempty"`
	To      int64    `json:"to,omitempty"`
	Odd     string   `json:"odd,omitempty"`
	More    []string `json:"more,omitempty"`
	Hash    string   `json:"hash"`
	Size    int      `json:"size"`
	Lines   int      `json:"lines,omitempty"`
	Err     bool     `json:"err,omitempty"`
	Media   string   `json:"media,omitempty"`
	Decoded int      `json:"decoded,omitempty"`
	At      int      `json:"at"` // where it begins in the compact JSON of its message as it came, and its bytes there
	Wire    int      `json:"wire"`
	Paged   uint8    `json:"paged,omitempty"` // how many of its first bytes are those of a stub
	Clear   uint8    `json:"clear,omitempty"`
	Stub    int      `json:"stub,omitempty"`
	Common  int      `json:"common,omitempty"`
	Data    int      `json:"data,omitempty"` // of the images in it: characters of their data, and how many they are
	Images  int      `json:"images,omitempty"`
	Asks    string   `json:"asks,omitempty"`
	Codes   []byte   `json:"codes,omitempty"` // of a result: what may be quoted of it
}

var partKinds = map[string]byte{Result.String(): answered, Input.String(): called, Image.String(): pictured}

// Kept returns what is to be stored of the part of a message that stands in a block of its content, from 0. ok is
// false for a block that paging does not read.
func (m Message) Kept(block int) (k Kept, ok bool) {
	for i := range m.Blocks {
		if m.Blocks[i].index == block {
			return m.Blocks[i].kept(), true
		}
	}
	return Kept{}, false
}

func (b *Block) kept() Kept {
	part := Result
	switch b.what {
	case called:
		part = Input
	case pictured:
		part = Image
	}
	c := b.Call
	return Kept{part.String(), b.ID, c.Tool, c.Kind, c.Path, c.Range.From, c.Range.To, c.Range.Odd, c.More, hex.EncodeToString(b.Hash[:]),
		b.Size, b.Lines, b.Err, b.media, b.decoded, b.at, b.wire, b.paged, b.clear, b.stub, b.common, b.inline.data, b.inline.images, c.Asks, b.codes.bytes()}
}

// block is what the scanner had made of the part.
func (k Kept) block(index int) (Block, error) {
	what, ok := partKinds[k.Part]
	if !ok {
		return Block{}, fmt.Errorf("part %.20q: want result, input or image: %w", k.Part, tidemark.ErrInvalid)
	}
	b := Block{what: what, index: index, ID: k.ID, Call: Call{Tool: k.Tool, Kind: k.Kind, Path: k.Path, Range: Range{k.From, k.To, k.Odd}, More: k.More, Asks: k.Asks},
		Size: k.Size, Lines: k.Lines, Err: k.Err, media: k.Media, decoded: k.Decoded, at: k.At, wire: k.Wire,
		paged: k.Paged, clear: k.Clear, stub: k.Stub, common: k.Common, inline: inline{k.Data, k.Images}, codes: codedFrom(k.Codes)}
	hash, err := hex.DecodeString(k.Hash)
	if err != nil || len(hash) != len(b.Hash) {
		return Block{}, fmt.Errorf("hash %.80q of a part: want %d hex digits: %w", k.Hash, hex.EncodedLen(len(b.Hash)), tidemark.ErrInvalid)
	}
	copy(b.Hash[:], hash)
	return b, nil
}

// Original is a decoded message as paging keeps it, as if the blocks that stubs stand for were there still: kept
// names them by their place in the content, from 0. A stub stands in the place of one block. The result equals that
// of [Scanner.Of] on the message as it came.
func (s *Scanner) Original(m tidemark.Message, kept map[int]Kept) (Message, error) {
	if len(kept) == 0 {
		return s.Of(m)
	}
	content := make([]tidemark.Block, len(m.Content))
	for i, b := range m.Content {
		if k, out := kept[i]; out && k.Part == Image.String() {
			b = tidemark.Text("") // its stub is no text of the user's
		}
		content[i] = b
	}
	now, err := s.Of(tidemark.Message{Role: m.Role, Content: content})
	if err != nil {
		return Message{}, err
	}
	out, moved := Message{Role: now.Role, Typed: now.Typed, Names: now.Names, said: now.said}, 0
	at := 0 // of the blocks that were scanned
	for i := range content {
		var b Block
		there := at < len(now.Blocks) && now.Blocks[at].index == i
		if there {
			b = now.Blocks[at]
			at++
		}
		if k, is := kept[i]; is {
			stub := b.wire
			if !there {
				stub = len(content[i].AppendJSON(nil))
			}
			if b, err = k.block(i); err != nil {
				return Message{}, fmt.Errorf("block %d: %w", i+1, err)
			}
			moved += b.wire - stub
		} else if b.at += moved; !there {
			continue
		}
		out.Blocks = append(out.Blocks, b)
	}
	out.Bytes = now.Bytes + moved
	return out, nil
}

// Replace is the block with the stub of a page in the place of what leaves: the content of a result, the input of a
// call, or an image. All else stays as it is, to the byte. handle says how to get it back.
func (s *Scanner) Replace(b tidemark.Block, g *Page, handle string) (tidemark.Block, error) {
	if g.Part == Image {
		return tidemark.Text(g.Stub(handle)), nil
	}
	raw := b.AppendJSON(nil)
	var err error
	if g.Part == Input {
		raw, err = Substitute(raw, "input", s.Tools.StubInput(b.Name, handle, compact(b.Input)))
	} else {
		raw, err = Substitute(raw, "content", json.AppendString(nil, g.Stub(handle)))
	}
	if err != nil {
		return b, err
	}
	var out tidemark.Block
	if err := json.Unmarshal(raw, &out); err != nil {
		return b, fmt.Errorf("stub of %s: %w", g.ID, err)
	}
	return out, nil
}

// Shorter reports whether what [Scanner.Replace] puts in the place of a page takes less room than the page does.
func (s *Scanner) Shorter(b tidemark.Block, g *Page, handle string) bool {
	switch g.Part {
	case Image:
		return len(textBlock(g.Stub(handle))) < g.wire
	case Input:
		input := compact(b.Input)
		return len(s.Tools.StubInput(b.Name, handle, input)) < len(input)
	}
	return len(json.AppendString(nil, g.Stub(handle))) < g.wire
}

// Substitute puts a value in the place of that of a member of an object; of two with one name, of the last.
func Substitute(object []byte, name string, value []byte) ([]byte, error) {
	c := over(object)
	var at jsonscan.Span
	c.Members("a block", func(key []byte) {
		if v := c.Value(); string(key) == name {
			at = v
		}
	})
	switch {
	case c.Err() != nil:
		return nil, c.Err()
	case at.To == 0:
		return nil, fmt.Errorf("a block without %s: %w", name, tidemark.ErrInvalid)
	}
	return jsonscan.Splice(nil, object, jsonscan.Edit{Span: at, With: value}), nil
}

// Hold names pages that never leave by a decision, because their owner keeps them; nil for none. It is asked when a
// page is about to leave, so it holds from the next [Pager.Step] on.
func (p *policy) Hold(held func(*Page) bool) { p.hold = held }

// holds reports whether the owner of a page keeps it, or the model. Such a page waits among those that may go, for when its owner
// no longer does, but it neither counts there nor has the policy act.
func (p *policy) holds(g *Page) bool { return g.anchored || p.hold != nil && p.hold(g) }

// holdsNone reports whether surely no page is held.
func (p *policy) holdsNone() bool { return p.hold == nil && p.anchors == 0 }

// Leave puts pages out that are out whatever the pager decided: their owner had let them go before. It belongs to the
// request before, so what reads them next may be a fault.
func (p *Pager) Leave(gone func(*Page) bool) {
	before := p.out.upTo(len(p.messages))
	for _, g := range p.pages {
		if !g.stub && gone(g) {
			p.leave(g)
		}
	}
	if n := len(p.marks); n > 0 {
		p.marks[n-1].out += p.out.upTo(len(p.messages)) - before
		p.marks[n-1].inline = p.inline
		p.marks[n-1].stubs, p.marks[n-1].undo = len(p.stubs), len(p.undo)
	}
}

// Out reports whether the page is out.
func (p *Page) Out() bool { return p.stub }
