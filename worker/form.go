package worker

import (
	"encoding/base64"
	"fmt"
	"mime"
	"net/url"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// decodeForm decodes an object of another API: the fields that are given here, where null is as good as
// not there; what else it has comes back by name.
func decodeForm(raw []byte, fields ...field) (rest map[string]json.RawMessage, err error) {
	raw = json.Unmarked(raw)
	if err := checkJSON(raw); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &rest); err != nil || rest == nil {
		return nil, fmt.Errorf("body: want a JSON object: %w", tidemark.ErrInvalid)
	}
	if len(rest) > maxFields {
		return nil, fmt.Errorf("body: %d fields, at most %d: %w", len(rest), maxFields, tidemark.ErrTooLarge)
	}
	for name, value := range rest {
		if string(value) == "null" {
			delete(rest, name)
		}
	}
	for _, f := range fields {
		value, ok := rest[f.name]
		if !ok {
			continue
		}
		delete(rest, f.name)
		if err := f.decode(value); err != nil {
			return nil, fmt.Errorf("%s: must be %s: %w", f.name, f.want, tidemark.ErrInvalid)
		}
	}
	return rest, nil
}

// limit says of a parameter which values ask for nothing that we lack, and what to do about others.
type limit struct {
	name string
	fine []string // in compact JSON; one that ends in … is a beginning
	fix  string   // empty: others are not heeded, and stay in the rest
}

// judge refuses the first parameter of a table whose value asks for what we lack. What asks for nothing is taken out of rest.
func judge(rest map[string]json.RawMessage, table []limit) error {
	for _, l := range table {
		value, ok := rest[l.name]
		if !ok {
			continue
		}
		got := compactJSON(value)
		switch fine := slices.ContainsFunc(l.fine, func(fine string) bool {
			begin, open := strings.CutSuffix(fine, "…")
			return got == fine || open && strings.HasPrefix(got, begin)
		}); {
		case fine:
			delete(rest, l.name)
		case l.fix != "":
			return fmt.Errorf("%s: %s is not supported here; %s: %w", l.name, clip.To(got, 80), l.fix, tidemark.ErrInvalid)
		}
	}
	return nil
}

func compactJSON(raw json.RawMessage) string {
	v, err := json.DecodeAny(raw)
	if err != nil {
		return string(raw)
	}
	out, err := json.Marshal(v)
	if err != nil {
		return string(raw)
	}
	return string(out)
}

// named lists what a request asked for and does not get, for a header: plain names only, in order.
func named(rest map[string]json.RawMessage) []string {
	const most = 20
	var out []string
	for name := range rest {
		if plainWord(name) && len(name) <= 40 {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out[:min(len(out), most)]
}

// folded has what stands between the messages of the user and the assistant said in those of the user: a conversation that is
// kept here has instructions of its own, and hears those of the client as reminders. What only counts down the client's own
// room is left out.
func folded(messages []tidemark.Message) []tidemark.Message {
	out := make([]tidemark.Message, 0, len(messages))
	var held []tidemark.Block // until the user speaks
	for _, m := range messages {
		n := len(out) - 1
		switch said := m.Role == tidemark.User || m.Role == tidemark.Assistant; {
		case m.Role == tidemark.User && len(held) > 0:
			out = append(out, tidemark.Message{Role: m.Role, Content: append(slices.Clone(m.Content), held...)})
			held = nil
		case said:
			out = append(out, m)
		case m.Countdown() || m.PlainText() == "":
		case n >= 0 && out[n].Role == tidemark.User:
			out[n] = tidemark.Message{Role: tidemark.User, Content: append(slices.Clone(out[n].Content), tidemark.Reminder(m))}
		default:
			held = append(held, tidemark.Reminder(m))
		}
	}
	return out
}

// merged joins neighbours of one role: their blocks are those of one message.
func merged(messages []tidemark.Message) []tidemark.Message {
	out := make([]tidemark.Message, 0, len(messages))
	for _, m := range messages {
		if last := len(out) - 1; last >= 0 && out[last].Role == m.Role {
			out[last] = tidemark.Message{Role: m.Role, Content: append(slices.Clone(out[last].Content), m.Content...)}
			continue
		}
		out = append(out, m)
	}
	return out
}

// dataURL is a URL that holds its bytes (https://www.rfc-editor.org/rfc/rfc2397).
type dataURL struct {
	media string // without parameters, in lower case
	data  string // base64, if it is well formed
}

// parseDataURL reads a data URL; ok is false for any other.
func parseDataURL(s string) (d dataURL, ok bool, err error) {
	if len(s) < 5 || !strings.EqualFold(s[:5], "data:") {
		return d, false, nil
	}
	head, data, found := strings.Cut(s[5:], ",")
	head, coded := strings.CutSuffix(head, ";base64")
	if !found {
		return d, true, fmt.Errorf("a data URL without a comma: %w", tidemark.ErrInvalid)
	}
	if d.media, _, err = mime.ParseMediaType(head); err != nil {
		if d.media = "text/plain"; head != "" {
			return d, true, fmt.Errorf("a data URL of type %q: %w", clip.To(head, 80), tidemark.ErrInvalid)
		}
	}
	if !coded {
		plain, err := url.PathUnescape(data)
		if err != nil {
			return d, true, fmt.Errorf("a data URL that is neither base64 nor percent-encoded: %w", tidemark.ErrInvalid)
		}
		data = base64.StdEncoding.EncodeToString([]byte(plain))
	}
	d.data = data
	return d, true, nil
}

// attachment is a file that came with a message.
type attachment struct {
	url, media, name string
	remote           bool // a URL that the model's API fetches is as good
}

// block converts an attachment. Bytes behind a URL may change or go, and a kept conversation is read
// for years: there only what was sent itself counts.
func (a attachment) block() (tidemark.Block, error) {
	d, inline, err := parseDataURL(a.url)
	switch {
	case err != nil:
		return tidemark.Block{}, err
	case !inline && !a.remote:
		return tidemark.Block{}, fmt.Errorf("a file by its URL (%s): send its bytes as a data URL, since a conversation that is kept cannot rest on what stands elsewhere: %w",
			clip.To(a.url, 60), tidemark.ErrInvalid)
	case !inline:
		if u, err := url.Parse(a.url); err != nil || u.Scheme != "https" && u.Scheme != "http" {
			return tidemark.Block{}, fmt.Errorf("a file by its URL (%s): want http, https or data: %w", clip.To(a.url, 60), tidemark.ErrInvalid)
		}
		var b tidemark.Block
		err := b.UnmarshalJSON([]byte(`{"type":"image","source":{"type":"url","url":` + string(json.AppendString(nil, a.url)) + `}}`))
		return b, err
	}
	if a.media != "" && d.media == "application/octet-stream" {
		d.media = strings.ToLower(a.media)
	}
	return tidemark.Attach(d.media, a.name, d.data)
}
