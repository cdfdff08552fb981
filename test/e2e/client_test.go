//go:build !js

package e2e

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// talk is one session of a site as a client uses it, with a model of its own behind it.
type talk struct {
	t     *testing.T
	s     *site
	key   string
	model *tidemarktest.API
}

// client has no deadline of its own: each request has one. It keeps no connection, since a server may
// close a quiet one in the moment in which a message is sent on it.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// begin makes the session of a test: its agent is named after the test, so that nobody else's memory
// is in its prompts, its key ends with word, its window is small, and its model is a scripted one that
// nobody else talks to.
func begin(t *testing.T, s *site, channel, word string) *talk {
	t.Helper()
	k := at(t, s, "agent:"+testName(t)+":"+channel+":dm:"+word)
	k.set(8000)
	return k
}

// at is a client of a session that may not be there yet.
func at(t *testing.T, s *site, key string) *talk {
	t.Helper()
	k := &talk{t: t, s: s, key: key, model: tidemarktest.NewAPI(t)}
	s.model(k.modelName(), k.model.URL)
	return k
}

// testName is the name of a test without its target, as a word of keys.
func testName(t *testing.T) string {
	return strings.ToLower(strings.TrimPrefix(strings.Split(t.Name(), "/")[0], "Test"))
}

// agent is the path of the agent's routes.
func (k *talk) agent(what string) string {
	return "/v1/agents/" + strings.Split(k.key, ":")[1] + what
}

func (k *talk) modelName() string { return "fake-" + strings.ReplaceAll(k.key, ":", "-") }

// set gives the session its model and its window.
func (k *talk) set(window int) {
	k.t.Helper()
	ask[about](k, 200, "PATCH", k.path(""), map[string]any{"model": k.modelName(), "window": window})
}

// path is a route of the session.
func (k *talk) path(what string) string { return "/v1/sessions/" + url.PathEscape(k.key) + what }

// request makes a request; a body that is no string is sent as JSON, headers come in pairs.
func (s *site) request(ctx context.Context, method, path string, body any, headers ...string) (*http.Response, error) {
	var raw []byte
	switch b := body.(type) {
	case nil:
	case string:
		raw = []byte(b)
	case []byte:
		raw = b
	default:
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, s.base()+path, bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "" {
			req.Header.Del(headers[i])
			continue
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	return client.Do(req)
}

// fetch makes a request and reads its answer.
func (s *site) fetch(t *testing.T, method, path string, body any, headers ...string) (*http.Response, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	res, err := s.request(ctx, method, path, body, headers...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", method, path, err, s.said())
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", method, path, err, s.said())
	}
	return res, string(raw)
}

// ask decodes the JSON answer of a request that must have the status.
func ask[T any](k *talk, status int, method, path string, body any, headers ...string) T {
	k.t.Helper()
	var v T
	res, raw := k.s.fetch(k.t, method, path, body, headers...)
	if res.StatusCode != status {
		k.t.Fatalf("%s %s: %d, want %d: %s", method, path, res.StatusCode, status, raw)
	}
	if err := json.Unmarshal([]byte(raw), &v); err != nil {
		k.t.Fatalf("%s %s: %v: %s", method, path, err, raw)
	}
	return v
}

// text is a GET that must succeed.
func (k *talk) text(path string) string {
	k.t.Helper()
	res, raw := k.s.fetch(k.t, "GET", path, nil)
	if res.StatusCode != 200 {
		k.t.Fatalf("GET %s: %d: %s", path, res.StatusCode, raw)
	}
	return raw
}

// turn is the answer to a message.
type turn struct {
	Type      string
	ID        string
	SessionID string
	Duplicate bool
	Entry     string
	Reply     tidemark.Message
	Text      string
	Stop      string
	Usage     tidemark.Usage
	Events    []tidemark.Event
}

// about is what a session says of itself.
type about struct {
	Key           string
	ID            string
	Messages      int
	ContextTokens int
	Limit         int
	Compactions   int
	Busy          string
}

func (k *talk) say(text string) turn {
	k.t.Helper()
	return ask[turn](k, 200, "POST", k.path("/messages"), map[string]string{"text": text})
}

func (k *talk) info() about {
	k.t.Helper()
	return ask[about](k, 200, "GET", k.path(""), nil)
}

// messages is the history of the session in order, as its export has it.
func (k *talk) messages() []tidemark.Message {
	k.t.Helper()
	return decodeLines(k.t, k.text(k.path("/log?format=jsonl")))
}

func decodeLines(t *testing.T, lines string) []tidemark.Message {
	t.Helper()
	var out []tidemark.Message
	for line := range strings.Lines(lines) {
		var m tidemark.Message
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		out = append(out, m)
	}
	return out
}

// same are messages as they were said, one a line.
func same(all []tidemark.Message) string {
	var b []byte
	for _, m := range all {
		b = append(m.AppendJSON(b), '\n')
	}
	return string(b)
}

// event is one of a stream; its name is empty for a comment.
type event struct {
	name string
	data string
}

// events reads a stream of server-sent events.
type events struct {
	t    *testing.T
	s    *site
	res  *http.Response
	end  context.CancelFunc
	rest []byte
	all  strings.Builder // what was read, as it came
}

// stream sends a message and gives its events.
func (k *talk) stream(text, id string) *events {
	k.t.Helper()
	body := map[string]string{"text": text}
	if id != "" {
		body["id"] = id
	}
	return k.listen("POST", k.path("/messages"), body)
}

// listen opens a stream, which ends with the test or by leave.
func (k *talk) listen(method, path string, body any) *events {
	k.t.Helper()
	ctx, end := context.WithTimeout(context.Background(), 2*patience)
	k.t.Cleanup(end)
	res, err := k.s.request(ctx, method, path, body, "Accept", "text/event-stream")
	if err != nil {
		k.t.Fatalf("%s %s: %v\n%s", method, path, err, k.s.said())
	}
	if ct := res.Header.Get("Content-Type"); res.StatusCode != 200 || ct != "text/event-stream" {
		raw, _ := io.ReadAll(res.Body)
		k.t.Fatalf("%s %s: %d %s: %s", method, path, res.StatusCode, ct, raw)
	}
	return &events{t: k.t, s: k.s, res: res, end: end}
}

// leave closes the connection, as a client does that goes away.
func (e *events) leave() { e.end() }

// next returns the next event; ok is false at the end.
func (e *events) next() (ev event, ok bool) {
	for !bytes.Contains(e.rest, []byte("\n\n")) {
		buf := make([]byte, 4096)
		n, err := e.res.Body.Read(buf)
		e.rest = append(e.rest, buf[:n]...)
		e.all.Write(buf[:n])
		if err != nil && n == 0 {
			return event{"", err.Error()}, false
		}
	}
	frame, rest, _ := bytes.Cut(e.rest, []byte("\n\n"))
	e.rest = rest
	for line := range strings.Lines(string(frame)) {
		line = strings.TrimSuffix(line, "\n")
		if v, ok := strings.CutPrefix(line, "event: "); ok {
			ev.name = v
		}
		if v, ok := strings.CutPrefix(line, "data: "); ok {
			ev.data += v
		}
	}
	return ev, true
}

// until reads events up to one of a name, which it returns with all on the way. A comment, which keeps the connection open
// where an answer is slow, is one without a name, and only for who asks for it.
func (e *events) until(name string) (last event, all []event) {
	e.t.Helper()
	for {
		ev, ok := e.next()
		if !ok {
			e.t.Fatalf("the stream ended (%s) without %q: %v\n%s", ev.data, name, all, e.s.said())
		}
		if ev == (event{}) && name != "" {
			continue
		}
		all = append(all, ev)
		if ev.name == name {
			return ev, all
		}
	}
}

// done reads a stream to its end, which must be good.
func (e *events) done() (turn, []event) {
	e.t.Helper()
	last, all := e.until("done")
	var out turn
	if err := json.Unmarshal([]byte(last.data), &out); err != nil {
		e.t.Fatalf("%v: %s", err, last.data)
	}
	if ev, ok := e.next(); ok || ev.data != io.EOF.Error() {
		e.t.Fatalf("behind the end of the stream: %v", ev)
	}
	return out, all
}

// said puts the pieces of an answer together, from the last restart on.
func said(all []event) string {
	var b strings.Builder
	for _, ev := range all {
		switch ev.name {
		case "restart":
			b.Reset()
		case "text":
			var n struct{ Text string }
			if json.Unmarshal([]byte(ev.data), &n) == nil {
				b.WriteString(n.Text)
			}
		}
	}
	return b.String()
}

func kinds(all []event) []string {
	var out []string
	for _, ev := range all {
		if len(out) == 0 || out[len(out)-1] != ev.name {
			out = append(out, ev.name)
		}
	}
	return out
}

// eventually waits until f holds; f says what is still missing.
func eventually(t *testing.T, s *site, f func() string) {
	t.Helper()
	missing := ""
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(25 * time.Millisecond) {
		if missing = f(); missing == "" {
			return
		}
	}
	t.Fatalf("after %s: %s\n%s", patience, missing, s.said())
}

// atOnce runs f for each number at the same time and waits for all.
func atOnce(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}
