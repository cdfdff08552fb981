package logs

import (
	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/picture"
	"github.com/tidemark-ai/tidemark/internal/scan"
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
func readBlock(l transcript.Line, f transcript.Field, depth int) block {
	b := block{size: f.Size()}
	if f.Kind == transcript.Object {
		fields := members(l, f)
		b.typ = l.Text(fields["type"])
		b.weigh(l, f, fields, depth)
	}
	return b
}

// members are the members of an object by their names: of two equal ones the last counts.
func members(l transcript.Line, f transcript.Field) map[string]transcript.Field {
	fields := map[string]transcript.Field{}
	for m := range l.Members(f) {
		fields[m.Name] = m
	}
	return fields
}

// weigh says what the block takes.
func (b *block) weigh(l transcript.Line, f transcript.Field, fields map[string]transcript.Field, depth int) {
	switch b.typ {
	case tidemark.TypeText:
		b.text.chars = textUnits(l, fields["text"])
		b.paper = b.text.chars
	case tidemark.TypeThinking:
		if s := fields["signature"]; s.Kind == transcript.String && s.Size() > int64(len(`""`)) {
			b.signature = s.Size()
		}
		b.text.chars = textUnits(l, fields["thinking"])
		b.paper = b.text.chars
	case "redacted_thinking":
		b.text.chars = textUnits(l, fields["data"])
	case tidemark.TypeToolUse:
		b.text.chars = rawUnits(l, fields["input"])
		b.paper = b.text.chars
	case tidemark.TypeToolResult:
		b.result(l, fields["content"], depth)
	case tidemark.TypeImage, tidemark.TypeDocument:
		b.inline(l, fields["source"])
	default: // of a kind that comes later: by its JSON
		b.text.chars = rawUnits(l, f)
	}
}

// result weighs what a tool gave back: a text, or a list of blocks.
func (b *block) result(l transcript.Line, content transcript.Field, depth int) {
	if content.Kind == transcript.String {
		b.text.chars = textUnits(l, content)
		b.paper = b.text.chars
	}
	if content.Kind != transcript.Array || depth >= maxDepth {
		return
	}
	for f := range l.Members(content) {
		in := readBlock(l, f, depth+1)
		b.text.add(in.text)
		b.paper += in.paper
		b.images += in.images
	}
}

// inline weighs an image or a document: by its pixels, else by the most that one counts. Text counts as text.
func (b *block) inline(l transcript.Line, source transcript.Field) {
	b.text.vision = tidemark.ImageTokens
	if b.typ == tidemark.TypeImage {
		b.images = 1
	}
	if source.Kind != transcript.Object {
		return
	}
	fields := members(l, source)
	data := fields["data"]
	switch kind := l.Text(fields["type"]); {
	case kind == "text":
		b.text = weight{chars: textUnits(l, data)}
	case kind == "content":
		b.text = weight{chars: rawUnits(l, fields["content"])}
	case kind == "base64" && b.typ == tidemark.TypeImage && data.Kind == transcript.String:
		raw := l.Bytes(data)
		b.text.vision = visionTokens(picture.OfBase64(raw[1 : len(raw)-1]))
	}
}

// visionTokens is what the API counts for an image of that many pixels
// (https://platform.claude.com/docs/en/build-with-claude/vision): width x height / 750; larger ones are scaled down to
// about 1,600. One whose size is not known counts the most.
func visionTokens(width, height int) tidemark.Tokens {
	const pixels = 750
	if width <= 0 || height <= 0 {
		return tidemark.ImageTokens
	}
	return min(tidemark.ImageTokens, tidemark.Tokens((int64(width)*int64(height)+pixels-1)/pixels))
}

// textUnits is the length of a string as it is meant, in UTF-16 units; 0 for what is no string.
func textUnits(l transcript.Line, f transcript.Field) int64 {
	if f.Kind != transcript.String {
		return 0
	}
	raw := l.Bytes(f)
	return scan.Units(raw[1 : len(raw)-1])
}

// rawUnits is the length of any value as it stands, in UTF-16 units.
func rawUnits(l transcript.Line, f transcript.Field) int64 {
	return int64(tidemark.UTF16Len(l.Bytes(f)))
}

// human reports whether a role is a person's.
func human(role string) bool { return role == "user" || role == "human" }
