package snapshots

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// Comparison is what two places of a conversation have in common, and what each has for itself.
type Comparison struct {
	Common Common `json:"common"`
	A      Side   `json:"a"`
	B      Side   `json:"b"`
}

// Common is where two histories part.
type Common struct {
	Session  string           `json:"sessionId,omitempty"` // log of the last message that both have
	Entry    tidemark.EntryID `json:"id,omitempty"`        // "" where they have none in common
	Messages int              `json:"messages"`
	Snapshot string           `json:"snapshot,omitempty"` // id of one that was taken there
	At       *time.Time       `json:"at,omitempty"`
}

// Side is one of two histories that are compared.
type Side struct {
	ID       string          `json:"id"` // as it was asked for: key, or id of a snapshot
	Key      tidemark.Key    `json:"key"`
	Node     *snapshot.Node  `json:"node,omitempty"`
	Messages int             `json:"messages"`          // of the whole history
	Since    int             `json:"messagesSince"`     // behind what both have
	Context  tidemark.Tokens `json:"contextTokens"`     // of what a model would read there
	Usage    tidemark.Usage  `json:"usage"`             // of the calls since
	Models   []string        `json:"models"`            // that answered since
	Tools    []ToolCount     `json:"tools"`             // called since, the most first
	Files    []string        `json:"files"`             // that calls since named
	Outcome  string          `json:"outcome"`           // last words of the model since, clipped
	Previews []Preview       `json:"previews"`          // of the first messages since
	More     bool            `json:"more,omitempty"`    // there are more than these
	Clipped  bool            `json:"clipped,omitempty"` // usage, models, tools and files are of the first messages alone
}

// ToolCount is how often a tool was called.
type ToolCount struct {
	Name  string `json:"name"`
	Calls int    `json:"calls"`
}

// Preview is a message in a line.
type Preview struct {
	Entry tidemark.EntryID `json:"id"`
	At    time.Time        `json:"at"`
	Role  tidemark.Role    `json:"role"`
	From  string           `json:"from"`
	Text  string           `json:"text"`
}

// Bounds of a comparison.
const (
	compareMessages = 20_000 // that are read of each side
	comparePreviews = 50
	comparePreview  = 200 // characters
	compareFiles    = 500
	compareTools    = 200
	comparePath     = 1024 // bytes of a path
)

// Compare puts two sessions or snapshots of this conversation side by side. Each is a key, or the id of a snapshot.
//
// # Errors
//
// tidemark.ErrInvalid when they are not of one conversation, tidemark.ErrNotFound.
func (s *Merges) Compare(ctx context.Context, a, b string) (Comparison, error) {
	c, err := s.compare(ctx, a, b)
	if err != nil {
		return Comparison{}, fmt.Errorf("compare %.80q and %.80q: %w", a, b, err)
	}
	return c, nil
}

// history is one side while it is compared.
type history struct {
	log      string
	until    int64
	segments []host.Segment // newest first
}

func (s *Merges) compare(ctx context.Context, a, b string) (c Comparison, err error) {
	if err := s.snaps.may(); err != nil {
		return c, err
	}
	var sides [2]history
	for i, x := range []*Side{&c.A, &c.B} {
		x.ID = []string{a, b}[i]
		if sides[i], err = s.sideOf(ctx, x); err != nil {
			return c, err
		}
	}
	cut := parting(sides[0].segments, sides[1].segments)
	if cut.Log != "" {
		if c.Common, err = s.commonAt(ctx, cut); err != nil {
			return c, err
		}
	}
	for i, x := range []*Side{&c.A, &c.B} {
		if err := s.fill(ctx, x, sides[i], c.Common.Messages, cut.To); err != nil {
			return c, err
		}
	}
	return c, nil
}

// sideOf finds a session or a snapshot of this conversation.
func (s *Merges) sideOf(ctx context.Context, x *Side) (h history, err error) {
	if n, err := s.snaps.find(ctx, x.ID); err == nil {
		x.Key, x.Node, x.Context = tidemark.Key(n.Session), &n.Node, n.Tokens
		h.log, h.until = n.Log, n.Seq
		h.segments, err = s.Log.Segments(ctx, n.Log, n.Seq)
		return h, err
	} else if !errors.Is(err, tidemark.ErrNotFound) {
		return h, err
	}
	key, err := tidemark.ParseKey(x.ID)
	if err != nil {
		return h, fmt.Errorf("%.80q is neither a snapshot of this conversation nor a key: %w", x.ID, tidemark.ErrNotFound)
	}
	if key.Root() != s.Key.Root() {
		return h, fmt.Errorf("%s is of another conversation than %s: only what has a beginning in common is compared: %w", key, s.Key.Root(), tidemark.ErrInvalid)
	}
	rows, err := s.DB.Query(ctx, `SELECT log, context FROM heads WHERE key = ? LIMIT 1`, string(key))
	if err != nil {
		return h, fmt.Errorf("read session %s: %w", key, err)
	}
	if len(rows) == 0 {
		return h, fmt.Errorf("session %s: %w", key, tidemark.ErrNotFound)
	}
	x.Key, x.Context = key, tidemark.Tokens(rows[0].Int(1))
	h.log, h.until = rows[0].Text(0), host.LogEnd
	if n, err := s.snaps.Node(ctx, string(key)); err == nil {
		x.Node = &n
	}
	h.segments, err = s.Log.Segments(ctx, h.log, 0)
	return h, err
}

// parting is the last stretch that two histories have in common, and up to where; the zero Segment for none.
func parting(a, b []host.Segment) host.Segment {
	at := map[string]int64{}
	for _, x := range a {
		at[x.Log] = x.To
	}
	for _, y := range b { // the newest first
		if to, ok := at[y.Log]; ok {
			return host.Segment{Log: y.Log, To: min(to, y.To)}
		}
	}
	return host.Segment{}
}

func (s *Merges) commonAt(ctx context.Context, cut host.Segment) (Common, error) {
	c := Common{}
	last, err := s.Log.Tail(ctx, cut.Log, cut.To, 1)
	if err != nil || len(last) == 0 {
		return c, err
	}
	e, err := s.Log.Entry(ctx, last[0].ID)
	if err != nil {
		return c, err
	}
	at := last[0].At.UTC()
	c.Entry, c.Session, c.At = last[0].ID, e.Log, &at
	if c.Messages, _, err = s.Log.Count(ctx, cut.Log, host.Range{From: 1, To: cut.To}, 0); err != nil {
		return c, err
	}
	c.Snapshot, err = s.snaps.taken(ctx, cut.Log, cut.To)
	return c, err
}

// fill reads what a side has behind what both have.
func (s *Merges) fill(ctx context.Context, x *Side, h history, shared int, from int64) (err error) {
	if x.Messages, _, err = s.Log.Count(ctx, h.log, host.Range{From: 1, To: h.until}, 0); err != nil {
		return err
	}
	x.Since = x.Messages - shared
	x.Models, x.Tools, x.Files, x.Previews = []string{}, []ToolCount{}, []string{}, []Preview{}
	calls := map[string]int{}
	read := 0
	var yields host.Yielder
	for from < h.until && read < compareMessages {
		list, err := s.Log.Next(ctx, h.log, from, h.until, 64)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			break
		}
		for at := 0; at < len(list); {
			seqs := host.PageOf(list[at:])
			at += len(seqs)
			entries, err := s.Log.Payloads(ctx, seqs)
			if err != nil {
				return err
			}
			for _, e := range entries {
				if err := s.weighIn(ctx, x, e, calls); err != nil {
					return err
				}
				from = e.Seq
				if err := yields.Did(ctx, s.Runtime, len(e.Payload)); err != nil {
					return err
				}
			}
		}
		read += len(list)
	}
	x.More, x.Clipped = x.Since > len(x.Previews), read < x.Since
	for name, n := range calls {
		x.Tools = append(x.Tools, ToolCount{name, n})
	}
	slices.SortStableFunc(x.Tools, func(a, b ToolCount) int { return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Name, b.Name)) })
	x.Tools = x.Tools[:min(len(x.Tools), compareTools)]
	slices.Sort(x.Files)
	x.Outcome = clipRunes(x.Outcome, MaxNote)
	return nil
}

// weighIn counts one message for a side. Large blocks stay where they are: a preview needs none.
func (s *Merges) weighIn(ctx context.Context, x *Side, e tidemark.Entry, calls map[string]int) error {
	m, err := e.Message()
	if err != nil {
		return fmt.Errorf("read entry %s: %w", e.ID, err)
	}
	if c := e.Call; c != nil {
		x.Usage = x.Usage.Add(c.Usage)
		if model := cmp.Or(c.Model, c.Requested); model != "" && !slices.Contains(x.Models, model) {
			x.Models = append(x.Models, model)
		}
	}
	for _, b := range m.Content {
		if b.Type == tidemark.TypeToolUse {
			calls[b.Name]++
			x.names(b.Input)
		}
	}
	text := strings.TrimSpace(m.PlainText())
	if m.Role == tidemark.Assistant && text != "" {
		x.Outcome = text
	}
	if len(x.Previews) < comparePreviews {
		x.Previews = append(x.Previews, Preview{Entry: e.ID, At: e.At.UTC(), Role: m.Role, From: e.Origin.From, Text: previewOf(m, text)})
	}
	return nil
}

// names notes the files that the input of a call names.
func (x *Side) names(input json.RawMessage) {
	var in map[string]json.RawMessage
	if len(input) > tidemark.MaxRow || json.Unmarshal(input, &in) != nil {
		return
	}
	for _, field := range []string{"file_path", "notebook_path", "path", "file", "filename"} {
		var path string
		if json.Unmarshal(in[field], &path) == nil && path != "" && len(path) <= comparePath && len(x.Files) < compareFiles && !slices.Contains(x.Files, path) {
			x.Files = append(x.Files, path)
		}
	}
}

// resultHead is the beginning of what a tool answered, as far as it stands in the entry.
func resultHead(b tidemark.Block) string {
	var text strings.Builder
	for _, c := range b.Content {
		if text.Len() > comparePreview {
			break
		}
		text.WriteString(c.Text + " ")
	}
	return clip.Bytes(text.String(), 4*comparePreview)
}

// previewOf is a message in a line: its text, or what it has instead.
func previewOf(m tidemark.Message, text string) string {
	if text == "" {
		var kinds []string
		for _, b := range m.Content {
			what := "[" + b.Type + "]"
			switch b.Type {
			case tidemark.TypeToolUse:
				what = "[calls " + b.Name + "]"
			case tidemark.TypeToolResult:
				what = cmp.Or(strings.TrimSpace(resultHead(b)), "[nothing]") // that it is of a tool, From says
			}
			kinds = append(kinds, what)
		}
		text = strings.Join(kinds, " ")
	}
	return clipRunes(strings.Join(strings.Fields(strings.ToValidUTF8(clip.Bytes(text, 4*comparePreview), "")), " "), comparePreview)
}
