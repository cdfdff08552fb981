package tidemarktest

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Step is one answer of the fake server. The zero value is the default: an echo of the last text,
// or, to a request for a summary, one with valid tags.
type Step struct {
	// The reply. Blocks come in this order: thinking, text, Blocks, calls.
	Thinking string
	Text     string
	Blocks   []json.RawMessage // sent as they are; chat completions leave them out
	Calls    []ToolCall
	Stop     string          // as the Messages API names it; empty: tool_use with calls, else end_turn
	Usage    *tidemark.Usage // nil: estimates, with caching accounted
	Empty    bool            // a reply without content

	// An error instead, when Status is not 0.
	Status  int
	Type    string // empty: the API's own for this status
	Message string
	Header  http.Header // of any answer, such as Retry-After

	// What goes wrong or slowly.
	Raw          string          // sent instead of a body
	ContentType  string          // of Raw; empty: text/event-stream
	IgnoreStream bool            // answer in one document although a stream was asked for
	NoUsage      bool            // leave the figures out
	MidError     string          // type of an error event that ends the stream before the reply is complete
	Hang         bool            // never answer
	Stall        int             // stop after this many bytes and hold the connection
	Cut          int             // close the connection after this many bytes
	Piece        int             // characters of text a delta, 0: 12
	Gate         <-chan struct{} // each event waits for a value; closed: no more waiting
	Delay        time.Duration   // before each event
}

// ToolCall is a call that the model makes.
type ToolCall struct {
	ID    string // empty: made up, unique in the server
	Name  string
	Input string // JSON, or what a model may write instead
}

// content reports whether the step says what to reply.
func (s Step) content() bool {
	return s.Empty || s.Text != "" || s.Thinking != "" || len(s.Blocks) > 0 || len(s.Calls) > 0
}

// fill completes a step: the default text, ids of calls, stop reason, usage.
func (s Step) fill(c APICall) Step {
	if !s.content() {
		s.Text = defaultText(c)
	}
	calls := append([]ToolCall(nil), s.Calls...)
	for i := range calls {
		if calls[i].ID == "" {
			calls[i].ID = fmt.Sprintf("toolu_fake_%04d_%d", c.N, i)
		}
		if calls[i].Input == "" {
			calls[i].Input = "{}"
		}
	}
	s.Calls = calls
	if s.Stop == "" {
		s.Stop = "end_turn"
		if len(calls) > 0 {
			s.Stop = "tool_use"
		}
	}
	if s.Usage == nil {
		u := c.Usage
		u.Output = tidemark.EstimateText(s.Text) + tidemark.EstimateText(s.Thinking)
		for _, t := range calls {
			u.Output += tidemark.EstimateText(t.Name + t.Input)
		}
		u.Output = max(u.Output, 1)
		s.Usage = &u
	}
	return s
}

// defaultText is an echo, or a summary where one is asked for.
func defaultText(c APICall) string {
	text := c.LastText()
	_, talk, ok := strings.Cut(text, "<conversation>")
	talk, task, closed := strings.Cut(talk, "</conversation>")
	if !ok || !closed {
		if text == "" {
			return "Done."
		}
		return "You said: " + clipText(text, 200)
	}
	var items strings.Builder
	n := 0
	for line := range strings.Lines(talk) {
		if n < 8 && strings.HasPrefix(line, "[user] ") {
			n++
			items.WriteString("- " + clipText(strings.TrimSpace(strings.TrimPrefix(line, "[user] ")), 120) + "\n")
		}
	}
	out := ""
	if strings.Contains(task, "<summary>") {
		out = "<summary>\n## Facts\n- This is the summary of call " + fmt.Sprint(c.N) + ".\n" + items.String() + "</summary>\n\n"
	}
	if !strings.Contains(task, "<memories>") {
		return out
	}
	return out + "<memories>\n- The person was heard in call " + fmt.Sprint(c.N) + ".\n</memories>"
}

func clipText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// cutPieces parts a text into pieces of n characters.
func cutPieces(s string, n int) []string {
	if n <= 0 {
		n = 12
	}
	var out []string
	for len(s) > 0 {
		end := 0
		for range n {
			if end == len(s) {
				break
			}
			_, w := utf8.DecodeRuneInString(s[end:])
			end += w
		}
		out = append(out, s[:end])
		s = s[end:]
	}
	return out
}

// play answers a call as the step says.
func (a *API) play(w http.ResponseWriter, r *http.Request, d dialect, c APICall, s Step) {
	for name, values := range s.Header {
		w.Header()[name] = values
	}
	switch {
	case s.Hang:
		a.hold(r)
		return
	case s.Status != 0:
		d.fail(w, fmt.Sprintf("req_%04d", c.N), apiFailure{status: s.Status, typ: s.Type, message: s.Message})
		return
	}
	s = s.fill(c)
	var events [][]byte
	contentType := "text/event-stream"
	switch {
	case s.Raw != "":
		events = [][]byte{[]byte(s.Raw)}
		if s.ContentType != "" {
			contentType = s.ContentType
		}
	case c.Stream && !s.IgnoreStream:
		events = d.events(c, s)
	default:
		events, contentType = [][]byte{d.whole(c, s)}, "application/json"
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(http.StatusOK)
	a.send(w, r, s, events)
}

// send writes the events, each flushed, until the script or the client ends it.
func (a *API) send(w http.ResponseWriter, r *http.Request, s Step, events [][]byte) {
	flush := http.NewResponseController(w)
	_ = flush.Flush() // a client that is gone shows at the next write
	left := max(s.Cut, s.Stall)
	for _, e := range events {
		if !a.pace(r, s) {
			return
		}
		if left > 0 && len(e) >= left {
			e = e[:left]
		}
		if _, err := w.Write(e); err != nil {
			return
		}
		_ = flush.Flush()
		if left == 0 {
			continue
		}
		if left -= len(e); left > 0 {
			continue
		}
		if s.Stall > 0 {
			a.hold(r)
			return
		}
		panic(http.ErrAbortHandler) // net/http's way to close the connection in the middle
	}
}

// pace waits before an event; false when the client is gone or the server ends.
func (a *API) pace(r *http.Request, s Step) bool {
	if s.Gate != nil {
		select {
		case <-s.Gate:
		case <-r.Context().Done():
			return false
		case <-a.quit:
			return false
		}
	}
	if s.Delay > 0 {
		t := time.NewTimer(s.Delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-r.Context().Done():
			return false
		case <-a.quit:
			return false
		}
	}
	return true
}

// hold keeps a request open until the client goes or the server ends.
func (a *API) hold(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-a.quit:
	}
}

// sseData appends a server-sent event.
func sseData(name string, data []byte) []byte {
	var b bytes.Buffer
	if name != "" {
		b.WriteString("event: " + name + "\n")
	}
	b.WriteString("data: ")
	b.Write(data)
	b.WriteString("\n\n")
	return b.Bytes()
}

// mustJSON encodes values of this package's own making.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("tidemarktest: encode " + fmt.Sprintf("%T", v) + ": " + err.Error())
	}
	return b
}
