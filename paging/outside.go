package paging

import (
	"strconv"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// outside is the list of all that is out, as a line of decisions tells it: for each [Part] the names as JSON, each
// with a comma. It is kept from request to request, since most of it stays.
type outside struct {
	text [3][]byte
	ends [][3]int // of each page: the bytes of the texts with it
}

// only forgets all but the first n pages.
func (o *outside) only(n int) {
	o.ends = o.ends[:n]
	end := [3]int{}
	if n > 0 {
		end = o.ends[n-1]
	}
	for i := range o.text {
		o.text[i] = o.text[i][:end[i]]
	}
}

// add takes further pages.
func (o *outside) add(pages []*Page) {
	for _, g := range pages {
		o.text[g.Part] = append(appendName(o.text[g.Part], g), ',')
		o.ends = append(o.ends, [3]int{len(o.text[Result]), len(o.text[Input]), len(o.text[Image])})
	}
}

// names are those of all pages of a part, without the last comma.
func (o *outside) names(p Part) []byte { return o.text[p][:max(len(o.text[p])-1, 0)] }

// appendName appends what a page is told by: the id of its call, or MESSAGE:BLOCK of an image.
func appendName(b []byte, g *Page) []byte {
	if g.Part != Image {
		return json.AppendString(b, g.ID)
	}
	b = strconv.AppendInt(append(b, '"'), int64(g.Message), 10)
	return append(strconv.AppendInt(append(b, ':'), int64(g.Block), 10), '"')
}

func appendNames(b []byte, pages []*Page) []byte {
	b = append(b, '[')
	for i, g := range pages {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendName(b, g)
	}
	return append(b, ']')
}

// further appends what a line tells of inputs and images, each field only where it is not empty.
func (o *outside) further(b []byte, d *Decision) []byte {
	for _, f := range []struct {
		name  string
		pages []*Page
	}{{`,"input":`, d.Input}, {`,"image":`, d.Image}} {
		if len(f.pages) > 0 {
			b = appendNames(append(b, f.name...), f.pages)
		}
	}
	for _, f := range []struct {
		name string
		part Part
	}{{`,"stub_input":[`, Input}, {`,"stub_image":[`, Image}} {
		if names := o.names(f.part); len(names) > 0 {
			b = append(append(append(b, f.name...), names...), ']')
		}
	}
	return b
}
