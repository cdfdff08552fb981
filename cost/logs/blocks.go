package logs

import (
	"bytes"
	"io"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/transcript"
)

// maxDepth bounds contents in contents: a result holds blocks, and no known one holds results again.
const maxDepth = 8

// weight is what content takes of a context: characters of text, and tokens of what is none.
type weight struct {
	chars  int64
	vision tidemark.Tokens
}

func (w *weight) add(v weight) { w.chars += v.chars; w.vision += v.vision }

// tokens is the weight by the one estimator.
func (w weight) tokens() tidemark.Tokens {
	return tidemark.EstimateChars(int(w.chars)) + w.vision
}

// block is what was found in one block.
type block struct {
	typ       string
	size      int64 // bytes of its JSON
	signature int64 // bytes of a signature
	text      weight
	images    int64
	paper     int64 // characters as the known implementation counts them
}

// readBlock reads one block of a content.
func readBlock(l transcript.Line, f transcript.Field, depth int) (block, error) {
	b := block{size: f.Size()}
	if f.Kind != transcript.Object {
		return b, nil
	}
	fields := map[string]transcript.Field{}
	for m, err := range l.Members(f) {
		if err != nil {
			return b, err
		}
		switch m.Name { // of two equal ones the last counts
		case "type", "text", "thinking", "data", "signature", "input", "content", "source":
			fields[m.Name] = m
		}
	}
	b.typ = l.Text(fields["type"])
	err := b.weigh(l, f, fields, depth)
	return b, err
}

// weigh says what the block takes.
func (b *block) weigh(l transcript.Line, f transcript.Field, fields map[string]transcript.Field, depth int) (err error) {
	switch b.typ {
	case tidemark.TypeText:
		b.text.chars, err = textUnits(l, fields["text"])
		b.paper = b.text.chars
	case tidemark.TypeThinking:
		if s := fields["signature"]; s.Kind == transcript.String && s.Size() > int64(len(`""`)) {
			b.signature = s.Size()
		}
		b.text.chars, err = textUnits(l, fields["thinking"])
		b.paper = b.text.chars
	case "redacted_thinking":
		b.text.chars, err = textUnits(l, fields["data"])
	case tidemark.TypeToolUse:
		b.text.chars, err = rawUnits(l, fields["input"])
		b.paper = b.text.chars
	case tidemark.TypeToolResult:
		return b.result(l, fields["content"], depth)
	case tidemark.TypeImage, tidemark.TypeDocument:
		return b.inline(l, fields["source"])
	default: // of a kind that comes later: by its JSON
		b.text.chars, err = rawUnits(l, f)
	}
	return err
}

// result weighs what a tool gave back: a text, or a list of blocks.
func (b *block) result(l transcript.Line, content transcript.Field, depth int) (err error) {
	switch {
	case content.Kind == transcript.String:
		b.text.chars, err = textUnits(l, content)
		b.paper = b.text.chars
	case content.Kind == transcript.Array && depth < maxDepth:
		for f, err := range l.Members(content) {
			if err != nil {
				return err
			}
			in, err := readBlock(l, f, depth+1)
			if err != nil {
				return err
			}
			b.text.add(in.text)
			b.paper += in.paper
			b.images += in.images
		}
	}
	return err
}

// inline weighs an image or a document: by its pixels, else by the most that one counts. Text counts as text.
func (b *block) inline(l transcript.Line, source transcript.Field) error {
	b.text.vision = tidemark.ImageTokens
	if b.typ == tidemark.TypeImage {
		b.images = 1
	}
	if source.Kind != transcript.Object {
		return nil
	}
	fields := map[string]transcript.Field{}
	for m, err := range l.Members(source) {
		if err != nil {
			return err
		}
		if m.Name == "type" || m.Name == "data" || m.Name == "content" {
			fields[m.Name] = m
		}
	}
	data := fields["data"]
	var err error
	switch kind := l.Text(fields["type"]); {
	case kind == "text":
		b.text.vision = 0
		b.text.chars, err = textUnits(l, data)
	case kind == "content":
		b.text.vision = 0
		b.text.chars, err = rawUnits(l, fields["content"])
	case kind == "base64" && b.typ == tidemark.TypeImage && data.Kind == transcript.String:
		r, err := section(l, data.Start+1, data.End-1)
		if err != nil {
			return err
		}
		if b.text.vision, err = imageTokens(r); err != nil {
			return err
		}
	}
	return err
}

// section reads a part of a line.
func section(l transcript.Line, start, end int64) (io.Reader, error) {
	if l.Raw != nil {
		raw, err := l.Bytes(start, end, end-start)
		return bytes.NewReader(raw), err
	}
	r := l.Reader()
	if _, err := r.Seek(start, io.SeekStart); err != nil {
		return nil, err
	}
	return io.LimitReader(r, end-start), nil
}

// textUnits is the length of a string as it is meant, in UTF-16 units; 0 for what is no string.
func textUnits(l transcript.Line, f transcript.Field) (int64, error) {
	if f.Kind != transcript.String {
		return 0, nil
	}
	var u units
	return u.of(l, f.Start+1, f.End-1)
}

// rawUnits is the length of any value as it stands, in UTF-16 units.
func rawUnits(l transcript.Line, f transcript.Field) (int64, error) {
	u := units{raw: true}
	return u.of(l, f.Start, f.End)
}

// units counts UTF-16 units of JSON that comes in pieces.
type units struct {
	raw  bool // escapes count as they are written
	n    int64
	skip int  // bytes of an escape that are still to come
	back bool // the last byte began an escape
}

func (u *units) of(l transcript.Line, start, end int64) (int64, error) {
	if end <= start {
		return 0, nil
	}
	r, err := section(l, start, end)
	if err != nil {
		return 0, err
	}
	if l.Raw != nil {
		raw, err := l.Bytes(start, end, end-start)
		u.add(raw)
		return u.n, err
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Read(buf)
		u.add(buf[:n])
		if err == io.EOF {
			return u.n, nil
		}
		if err != nil {
			return u.n, err
		}
	}
}

func (u *units) add(b []byte) {
	for len(b) > 0 {
		switch {
		case u.skip > 0:
			k := min(u.skip, len(b))
			u.skip -= k
			b = b[k:]
		case u.back:
			if u.back = false; b[0] == 'u' {
				u.skip = len("XXXX")
			}
			b = b[1:]
		default:
			k := len(b)
			if !u.raw {
				if i := bytes.IndexByte(b, '\\'); i >= 0 {
					k, u.back = i, true
					u.n++
				}
			}
			u.n += int64(tidemark.UTF16Len(b[:k]))
			if b = b[k:]; u.back {
				b = b[1:]
			}
		}
	}
}

// human reports whether a role is a person's.
func human(role string) bool { return role == "user" || role == "human" }
