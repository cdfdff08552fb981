package worker

import (
	"fmt"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/session"
)

// View is what the model would see now.
type View struct {
	Session  string             `json:"sessionId"`
	Size     tidemark.Tokens    `json:"size"`
	Anchored bool               `json:"anchored"` // size rests on a provider's report
	Window   tidemark.Tokens    `json:"window"`
	From     string             `json:"windowFrom,omitempty"` // how it is known, for people
	Limit    tidemark.Tokens    `json:"limit"`
	Reserve  tidemark.Tokens    `json:"reserve"`
	Keep     tidemark.Tokens    `json:"keep"`
	Model    string             `json:"model"`
	System   wireText           `json:"system"`
	Tools    []wireTool         `json:"tools"`
	Note     string             `json:"note,omitempty"`
	Items    []wireItem         `json:"items"`
	Overlays []tidemark.EntryID `json:"overlays"` // in effect, oldest first
	Messages []tidemark.Message `json:"messages,omitempty"`
}

type wireText struct {
	Text   string          `json:"text"`
	Tokens tidemark.Tokens `json:"tokens"`
}

type wireTool struct {
	Name   string          `json:"name"`
	Tokens tidemark.Tokens `json:"tokens"`
}

// wireItem is one message of the view and where it came from.
type wireItem struct {
	ID      tidemark.EntryID `json:"id"` // of the entry, or of the overlay
	From    tidemark.EntryID `json:"from"`
	To      tidemark.EntryID `json:"to,omitempty"`
	Overlay tidemark.EntryID `json:"overlay,omitempty"`
	Source  string           `json:"source"` // person, model, tool, recall, system
	Role    tidemark.Role    `json:"role"`
	Summary bool             `json:"summary,omitempty"`
	Marker  bool             `json:"marker,omitempty"`  // of an evicted span
	Stubs   int              `json:"stubs,omitempty"`   // blocks that an overlay replaced; thinking that was trimmed has no stub
	Trimmed int              `json:"trimmed,omitempty"` // of them, when the branch was made
	Tokens  tidemark.Tokens  `json:"tokens"`
	Blocks  []wireBlock      `json:"blocks"`
}

type wireBlock struct {
	Type   string          `json:"type"`
	Name   string          `json:"name,omitempty"` // of a tool
	Tokens tidemark.Tokens `json:"tokens"`
	Text   string          `json:"text,omitempty"` // its beginning
}

// previewBytes is how much of a block a view shows.
const previewBytes = 200

// getView shows what the model would see now, or only the messages.
func getView(c *request) (any, error) {
	which := c.one("messages", "", "0", "1")
	s, err := c.shown()
	if err != nil {
		return nil, err
	}
	v, err := s.View(c.r.Context())
	if err != nil {
		return nil, err
	}
	info, _, _, err := c.rowOf(s)
	if err != nil {
		return nil, err
	}
	req, b, from := s.Request(v), s.Budget(), s.Window().From.String()
	if info.Key.Channel() == proxyChannel {
		v, req = ofClient(v, req, info)
		b, from = compaction.Budget{Window: info.Window}, ""
	}
	if which == "1" {
		return listed(req.Sent()), nil
	}
	out := describe(v, req)
	out.Window, out.From, out.Limit, out.Reserve, out.Keep = info.Window, from, b.Limit(), b.Reserve, b.Keep
	if which != "0" {
		out.Messages = listed(req.Sent())
	}
	return out, nil
}

// ofClient leaves the messages of a view. What else a client sends is not kept, and its size is known of its newest call.
func ofClient(v session.View, req tidemark.Request, info tidemark.SessionInfo) (session.View, tidemark.Request) {
	v.System, v.Tools = "", nil
	req.System, req.Tools, req.Note, req.Model = "", nil, "", ""
	if v.Anchor = info.ContextTokens > 0; v.Anchor {
		v.Size = info.ContextTokens
	}
	return v, req
}

// describe shows a view item by item.
func describe(v session.View, req tidemark.Request) View {
	out := View{Session: v.Log, Size: v.Size, Anchored: v.Anchor, Model: req.Model, Note: req.Note,
		System: wireText{v.System, tidemark.EstimateText(v.System)}, Tools: []wireTool{}, Items: []wireItem{}, Overlays: []tidemark.EntryID{}}
	for _, t := range v.Tools {
		n := tidemark.EstimateText(t.Name) + tidemark.EstimateText(t.Description) + tidemark.EstimateText(string(t.InputSchema))
		out.Tools = append(out.Tools, wireTool{t.Name, n})
	}
	seen := map[tidemark.EntryID]bool{}
	for _, r := range v.Shown {
		if !seen[r.Overlay] {
			seen[r.Overlay] = true
			out.Overlays = append(out.Overlays, r.Overlay)
		}
	}
	for _, it := range v.Items {
		w := wireItem{ID: it.ID, From: it.From, Overlay: it.Overlay, Source: it.Source, Role: it.Message.Role, Summary: compaction.IsSummary(it), Marker: compaction.IsMarker(it),
			Stubs: it.Stubs, Tokens: it.Tokens, Blocks: []wireBlock{}}
		trimmed, thoughts := it.Trims()
		w.Trimmed, w.Stubs = trimmed, w.Stubs-thoughts
		if it.To != it.From {
			w.To = it.To
		}
		for _, b := range it.Message.Content {
			w.Blocks = append(w.Blocks, preview(b))
		}
		out.Items = append(out.Items, w)
	}
	return out
}

// preview shows the beginning of a block.
func preview(b tidemark.Block) wireBlock {
	w := wireBlock{Type: b.Type, Name: b.Name, Tokens: tidemark.EstimateBlock(b), Text: b.Text}
	switch b.Type {
	case tidemark.TypeToolUse:
		w.Text = string(b.Input)
	case tidemark.TypeToolResult:
		for _, inner := range b.Content {
			if w.Text += inner.Text; len(w.Text) > previewBytes {
				break
			}
		}
	}
	w.Text = clip.To(w.Text, previewBytes)
	return w
}

// wireEntry is one entry of a log.
type wireEntry struct {
	Seq     int64             `json:"seq"`
	ID      tidemark.EntryID  `json:"id"`
	Session string            `json:"sessionId"`
	Kind    tidemark.Kind     `json:"kind"`
	At      time.Time         `json:"at"`
	Tokens  tidemark.Tokens   `json:"tokens,omitempty"`
	Origin  tidemark.Origin   `json:"origin"`
	Call    *tidemark.Call    `json:"call,omitempty"`
	Hash    tidemark.Hash     `json:"hash"`
	Message json.RawMessage   `json:"message,omitempty"`
	Overlay *tidemark.Overlay `json:"overlay,omitempty"`
	Event   *tidemark.Event   `json:"event,omitempty"`
}

func showEntry(e tidemark.Entry) (wireEntry, error) {
	w := wireEntry{Seq: e.Seq, ID: e.ID, Session: e.Log, Kind: e.Kind, At: e.At.UTC(), Tokens: e.Tokens, Origin: e.Origin, Call: e.Call, Hash: e.Hash}
	var err error
	switch e.Kind {
	case tidemark.KindMessage:
		w.Message = e.Payload
	case tidemark.KindOverlay:
		err = json.Unmarshal(e.Payload, &w.Overlay)
	case tidemark.KindEvent:
		err = json.Unmarshal(e.Payload, &w.Event)
	}
	if err != nil {
		return w, fmt.Errorf("read entry %s: %w", e.ID, err)
	}
	return w, nil
}

// getLog lists entries of every kind, or streams the history.
func getLog(c *request) (any, error) {
	format := c.one("format", "json", "jsonl", "md", formatSteps, formatDecisions)
	all := c.flag("all", false)
	s, before, limit, err := c.page()
	if err != nil {
		return nil, err
	}
	if format != "json" {
		return export(c, s, format, all)
	}
	messages := c.flag("messages", true)
	if c.bad != nil {
		return nil, c.bad
	}
	read := s.Reader.Entries
	if !messages {
		read = s.Reader.Acts
	}
	var entries []tidemark.Entry
	if before != 1 { // nothing stands before the first
		if entries, err = read(c.r.Context(), before, limit); err != nil {
			return nil, err
		}
	}
	out := struct {
		Entries []wireEntry `json:"entries"`
		Next    int64       `json:"next,omitempty"`
	}{Entries: []wireEntry{}}
	for _, e := range entries {
		w, err := showEntry(e)
		if err != nil {
			return nil, err
		}
		out.Entries = append(out.Entries, w)
	}
	if len(entries) == limit {
		out.Next = entries[limit-1].Seq
	}
	return out, nil
}

// page opens the session and reads which page of its records is asked for.
func (c *request) page() (s *session.Session, before int64, limit int, err error) {
	before, limit = c.number("before", 0, 0, 1<<53), c.limit()
	s, err = c.shown()
	return s, before, limit, err
}

// getEntry shows one entry whole.
func getEntry(c *request, s *session.Session) (any, error) {
	e, err := s.Reader.Entry(c.r.Context(), tidemark.EntryID(c.r.PathValue("id")))
	if err != nil {
		return nil, err
	}
	return showEntry(e)
}

// getQueue lists what waits for its turn.
func getQueue(c *request, s *session.Session) (any, error) {
	run, waiting, err := s.Queue(c.r.Context())
	return struct {
		Run     string            `json:"run,omitempty"`
		Waiting []session.Waiting `json:"waiting"`
	}{run, listed(waiting)}, err
}

// recallSession finds messages as the model's tool does, and says how far that can be trusted.
func recallSession(c *request) (any, error) {
	if c.r.URL.Query().Has("episode") {
		return readEpisode(c)
	}
	if c.r.URL.Query().Has("offset") {
		return nil, fmt.Errorf("offset: it is of an episode, want episode=NAME, too: %w", tidemark.ErrInvalid)
	}
	ask, err := c.recallAsk()
	if err != nil {
		return nil, err
	}
	s, err := c.rooted()
	if err != nil {
		return nil, err
	}
	r, err := searchOf(s)
	if err != nil {
		return nil, err
	}
	w := search.Wanted{Query: ask.Query, K: ask.K, Budget: ask.Budget, All: ask.All}
	values := c.r.URL.Query()
	if w.Since, w.Until, err = r.Between(values.Get("since"), values.Get("until")); err != nil {
		return nil, err
	}
	found, err := r.Recall(c.r.Context(), w)
	if err != nil {
		return nil, err
	}
	r.Note(c.r.Context(), session.ByPerson, found)
	return found, nil
}

// searchSession finds messages by words.
func searchSession(c *request) (any, error) {
	q := c.query()
	limit := c.limit()
	s, err := c.rooted()
	if err != nil {
		return nil, err
	}
	r, err := searchOf(s)
	if err != nil {
		return nil, err
	}
	found, err := r.Search(c.r.Context(), q, limit)
	return struct {
		Found []search.Found `json:"found"`
	}{listed(found)}, err
}
