package transcript

import (
	"io"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// maxTypes bounds the types that a Description tells apart.
const maxTypes = 256

// OtherTypes is where a [Description] counts types beyond the bound.
const OtherTypes = "(other)"

// Description is what a listing shows of a log.
type Description struct {
	Bytes   int64
	Lines   int64
	Blank   int64
	Invalid int64 // lines that are no JSON
	Longest int64 // bytes of the longest line

	Types map[string]int64 // lines by type; "" counts those without one, OtherTypes the rest

	Messages   int64 // of the main chain; neighbouring assistant lines of one id count once
	SideChain  int64 // user and assistant lines of side chains
	Boundaries int64 // compactions
	// LiveFrom is where the lines behind the last compaction begin: what the model still saw.
	LiveFrom int64

	First, Last time.Time // earliest and latest timestamp
	Session     string    // the last session id
	Model       string    // the last model that answered
	CWD         string    // the last working directory
	Branch      string    // the last git branch
	Version     string    // the last version of the tool
	Title       string    // the last title given to the session
}

// Describe reads a log once and says what is in it, without decoding messages.
func Describe(r io.Reader, o Options) (Description, error) {
	d := Description{Types: map[string]int64{}}
	prev := ""
	for l, err := range Lines(r, o) {
		if err != nil {
			return d, err
		}
		d.Lines, d.Bytes = l.Number, l.Offset+l.Size
		d.Longest = max(d.Longest, l.Size)
		switch {
		case l.Blank():
			d.Blank++
		case l.Err != nil:
			d.Invalid++
		default:
			prev = d.add(l, prev)
		}
	}
	return d, nil
}

// add counts one line. It gets and returns the message id of the assistant line before.
func (d *Description) add(l Line, prev string) string {
	typ := l.Type()
	if _, known := d.Types[typ]; !known && len(d.Types) >= maxTypes {
		typ = OtherTypes
	}
	d.Types[typ]++
	if t := l.Time(); !t.IsZero() {
		if d.First.IsZero() || t.Before(d.First) {
			d.First = t
		}
		if t.After(d.Last) {
			d.Last = t
		}
	}
	last(&d.Session, l.Get("sessionId"))
	last(&d.CWD, l.Get("cwd"))
	last(&d.Branch, l.Get("gitBranch"))
	last(&d.Version, l.Get("version"))
	switch typ {
	case "summary":
		last(&d.Title, l.Get("summary"))
	case "custom-title":
		last(&d.Title, l.Get("customTitle"))
	case "ai-title":
		last(&d.Title, l.Get("aiTitle"))
	}
	if l.Boundary() {
		d.Boundaries++
		d.LiveFrom = l.Offset + l.Size
	}
	return d.addMessage(l, prev)
}

func (d *Description) addMessage(l Line, prev string) string {
	role, ok := l.Role()
	if !ok {
		return prev
	}
	if l.Flag("isSidechain") {
		d.SideChain++
		return prev
	}
	id := ""
	if f, ok := l.MessageField("id"); ok && role == tidemark.Assistant {
		id = l.Text(f)
	}
	if role == tidemark.Assistant {
		if f, ok := l.MessageField("model"); ok && l.Text(f) != "<synthetic>" {
			last(&d.Model, l.Text(f))
		}
		if id != "" && id == prev {
			return prev
		}
		prev = id
	}
	d.Messages++
	return prev
}

// last keeps the latest value that is not empty.
func last(to *string, value string) {
	if value != "" {
		*to = value
	}
}
