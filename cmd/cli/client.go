package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/sse"
	"github.com/tidemark-ai/tidemark/setup"
)

// Caller speaks to the routes of docs/http.md, over the network or in this process.
type Caller struct {
	Base  string // URL without a slash at its end
	Token string
	RT    http.RoundTripper
	Where string // for people
}

// Named is the URL of the server that --server or TIDEMARK_SERVER names, empty for none.
func (m *Main) Named() (string, error) {
	named := cmp.Or(m.Server, m.Env("TIDEMARK_SERVER"))
	if named == "" {
		return "", nil
	}
	u, err := url.Parse(named)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", Usagef("--server %s: want a URL such as http://127.0.0.1:8787", named)
	}
	return strings.TrimSuffix(strings.TrimRight(named, "/"), "/v1"), nil
}

// Remote speaks to the server at a URL.
func (m *Main) Remote(base string) *Caller {
	return &Caller{Base: base, Token: m.Env("TIDEMARK_TOKEN"), RT: native.Transport(), Where: base}
}

// Request makes a request.
func (c *Caller) Request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.Base+path, body)
	if err == nil && c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	return req, err
}

// Do sends a request. An answer that reports a failure is an *apiError.
func (c *Caller) Do(ctx context.Context, method, path string, body io.Reader, header ...string) (*http.Response, error) {
	req, err := c.Request(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.RT.RoundTrip(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, Advise(fmt.Errorf("no answer from %s: %w", c.Where, err), "check the address given by --server or TIDEMARK_SERVER, and that `tidemark serve` or `make dev` runs there")
	}
	const ok = 300
	if resp.StatusCode < ok {
		return resp, nil
	}
	defer resp.Body.Close()
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, MaxDocument)) // what was read of it is the message
	var w struct{ Error APIError }
	if json.Unmarshal(raw, &w) != nil {
		w.Error.Message = ""
	}
	if w.Error.Message == "" { // a proxy's, perhaps
		first, _, _ := strings.Cut(strings.TrimSpace(string(raw)), "\n")
		if first != "" && !strings.HasPrefix(first, "<") && !strings.HasPrefix(first, "{") {
			const most = 200
			w.Error.said = OneLine(first, most)
		}
	}
	w.Error.Status, w.Error.where, w.Error.path = resp.StatusCode, c.Where, path
	return nil, &w.Error
}

// Call sends in, unless it is nil, and decodes the answer into out, unless that is nil.
func (c *Caller) Call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(raw)
	}
	return c.Send(ctx, method, path, body, out)
}

// Send sends a body as it is, and decodes the answer as Call does.
func (c *Caller) Send(ctx context.Context, method, path string, body io.Reader, out any, header ...string) error {
	resp, err := c.Do(ctx, method, path, body, header...)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("read answer of %s: %w", c.Where, err)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return fmt.Errorf("answer of %s to %s %s: %w", c.Where, method, path, err)
	}
	return nil
}

// Get decodes what a GET answers.
func (c *Caller) Get(ctx context.Context, path string, out any) error {
	return c.Call(ctx, http.MethodGet, path, nil, out)
}

// Post sends in and decodes the answer.
func (c *Caller) Post(ctx context.Context, path string, in, out any) error {
	return c.Call(ctx, http.MethodPost, path, in, out)
}

// Raw copies the body of an answer.
func (c *Caller) Raw(ctx context.Context, path string, w io.Writer) error {
	resp, err := c.Do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return fmt.Errorf("read answer of %s: %w", c.Where, err)
	}
	return nil
}

// Events sends a body and gives each server-sent event of the answer to f. An error event is an
// *apiError.
func (c *Caller) Events(ctx context.Context, method, path string, body io.Reader, f func(name string, data []byte) error) error {
	resp, err := c.Do(ctx, method, path, body, "Accept", "text/event-stream")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	ended := false
	err = ReadEvents(resp.Body, func(name string, data []byte) error {
		ended = ended || name == "done"
		if name != "error" {
			return f(name, data)
		}
		var w struct{ Error APIError }
		if err := json.Unmarshal(data, &w); err != nil {
			return fmt.Errorf("error event of %s: %w", c.Where, err)
		}
		w.Error.where, w.Error.path = c.Where, path
		return &w.Error
	})
	if err == nil && !ended {
		err = io.ErrUnexpectedEOF
	}
	var told *APIError
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil && !errors.As(err, &told) && !errors.Is(err, ErrTold) {
		return Advise(fmt.Errorf("the stream of %s broke off: %w", c.Where, err), "what was said is in the log; `tidemark log KEY` shows it")
	}
	return err
}

// maxEvent bounds one event; a done event holds a whole reply.
const maxEvent = 64 << 20

// ReadEvents gives the events of a stream to f until one fails; a stream that is cut off within an event is an error.
func ReadEvents(r io.Reader, f func(name string, data []byte) error) error {
	in := sse.NewReader(r)
	in.Most, in.Whole = maxEvent, true
	for {
		ev, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := f(ev.Name, ev.Data); err != nil {
			return err
		}
	}
}

// SessionPath is the path of a session, with what lies below it.
func SessionPath(key, rest string) string { return "/v1/sessions/" + url.PathEscape(key) + rest }

// AgentPath is the path of an agent, with what lies below it.
func AgentPath(agent, rest string) string { return "/v1/agents/" + url.PathEscape(agent) + rest }

// PrintTable prints rows in columns; the first row is the head.
func PrintTable(w *Output, rows [][]string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		_, _ = fmt.Fprintln(t, strings.Join(r, "\t")) // w remembers a failure
	}
	_ = t.Flush()
}

// PrintJSON prints a value for programs.
func (m *Main) PrintJSON(v any) error {
	raw, err := json.MarshalIndent(v)
	if err != nil {
		return err
	}
	m.Out.Line(string(raw))
	return nil
}

// Plural writes a number of things.
func Plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprint(n, " ", thing, "s")
}

// Count writes a number of tokens in few characters: 950, 3.1k, 200k, 1.2M.
func Count(n tidemark.Tokens) string {
	const k, m = 1_000, 1_000_000
	switch {
	case n >= m:
		return short(float64(n)/m) + "M"
	case n >= k:
		return short(float64(n)/k) + "k"
	}
	return fmt.Sprint(int64(n))
}

func short(f float64) string {
	const round = 10
	if f >= round {
		return fmt.Sprintf("%.0f", f)
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", f), ".0")
}

// Size writes a number of bytes.
func Size(n int64) string {
	const k, m = 1 << 10, 1 << 20
	switch {
	case n >= m:
		return short(float64(n)/m) + " MB"
	case n >= k:
		return short(float64(n)/k) + " KB"
	}
	return fmt.Sprint(n, " B")
}

// Towards draws how near a context is to its compaction, the figure that /status, anatomy and the page have; one that is
// never compacted (limit 0) is a part of its window.
func Towards(used, limit, window tidemark.Tokens) string {
	if limit > 0 {
		return Gauge(used, limit) + " of the way to compaction"
	}
	return Gauge(used, window) + " of the window"
}

// Gauge draws how full a window is: context 3.1k/200k ▏2%.
func Gauge(used, window tidemark.Tokens) string {
	const cells, eighths = 10, 8
	share := float64(used) / float64(max(window, 1))
	n := min(max(int(share*cells*eighths), 1), cells*eighths)
	bar := strings.Repeat("█", n/eighths)
	if n%eighths > 0 {
		bar += string([]rune(" ▏▎▍▌▋▊▉")[n%eighths])
	}
	return fmt.Sprintf("context %s/%s %s%.0f%%", Count(used), Count(window), bar, share*100)
}

// When writes a time in the local zone, today's without the day.
func When(t time.Time) string {
	switch {
	case t.IsZero():
		return "-"
	case time.Since(t) < 12*time.Hour && time.Since(t) > -time.Minute:
		return t.Local().Format("15:04:05")
	}
	return t.Local().Format("2006-01-02 15:04")
}

// OneLine makes a text fit on a line and keeps control characters off a terminal.
func OneLine(s string, most int) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsSpace(r) {
			r = ' '
		}
		if !unicode.IsPrint(r) || r == ' ' && strings.HasSuffix(b.String(), " ") {
			continue
		}
		if b.WriteRune(r); b.Len() > most {
			return Cut(b.String(), most) + "…"
		}
	}
	return strings.TrimSpace(b.String())
}

// Cut cuts a text at a character.
func Cut(s string, most int) string {
	for most > 0 && most < len(s) && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:min(most, len(s))]
}

// Safe takes control characters out of a text that goes to a terminal, line breaks and tabs apart.
func Safe(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, s)
}

// LimitOf is what the context may grow to before it is compacted.
func LimitOf(c *config.Config) tidemark.Tokens {
	return compaction.Budget{Window: setup.Window(c).Tokens, Reserve: c.Compaction.ReserveTokens, Keep: c.Compaction.KeepRecent}.Fit().Limit()
}

// Dim writes a note for people beside the conversation.
func (m *Main) Dim(s string) string {
	if !m.Terminal || m.Env("NO_COLOR") != "" || cmp.Or(m.Env("TERM"), "dumb") == "dumb" {
		return s
	}
	return "\x1b[2m" + s + "\x1b[0m"
}
