//go:build !js

package fault

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// input is what a talker sends.
type input struct {
	id   string
	kind string // messages, compact, reset: the end of the route
	text string
	how  string // wait for the answer, leave at once, stream it
}

// Ways to send an input.
const (
	wait   = "wait"
	leave  = "leave"
	stream = "stream"
)

// address is where the server is now; empty while there is none.
type address struct{ url atomic.Pointer[string] }

func (a *address) set(url string) { a.url.Store(&url) }
func (a *address) get() string {
	if p := a.url.Load(); p != nil {
		return *p
	}
	return ""
}

// talker speaks in one session as a careful client does: each input has an id, and is sent again
// under it until the server has said that it is durable.
type talker struct {
	t    *testing.T
	at   *address
	key  string
	http *http.Client

	mu           sync.Mutex // guards the following
	sent         []string   // ids of messages that were sent
	acknowledged []string   // and of those that the server has acknowledged
}

func newTalker(t *testing.T, at *address, key string) *talker {
	return &talker{t: t, at: at, key: key, http: &http.Client{Transport: &http.Transport{}, Timeout: patience}}
}

// deliver sends an input until it is durable and returns the text of the answer, if it was waited
// for. It gives up when a server has had the patience of a test to take it.
func (k *talker) deliver(in input) string {
	if in.kind == "messages" {
		k.mu.Lock()
		k.sent = append(k.sent, in.id)
		k.mu.Unlock()
	}
	for end := time.Now().Add(2 * patience); time.Now().Before(end); {
		answer, durable := k.send(in)
		if durable {
			if in.kind == "messages" {
				k.mu.Lock()
				k.acknowledged = append(k.acknowledged, in.id)
				k.mu.Unlock()
			}
			return answer
		}
		time.Sleep(20 * time.Millisecond)
	}
	k.t.Errorf("session %s: input %s was not taken within %s", k.key, in.id, 2*patience)
	return ""
}

// try sends an input once, and notes what became of it.
func (k *talker) try(in input) {
	_, durable := k.send(in)
	k.mu.Lock()
	defer k.mu.Unlock()
	if in.kind != "messages" {
		return
	}
	k.sent = append(k.sent, in.id)
	if durable {
		k.acknowledged = append(k.acknowledged, in.id)
	}
}

// send sends an input once. durable is true when the server has acknowledged it.
func (k *talker) send(in input) (answer string, durable bool) {
	base := k.at.get()
	if base == "" {
		return "", false
	}
	field := map[string]string{"messages": "text", "compact": "instructions", "reset": "reason"}[in.kind]
	body, err := json.Marshal(map[string]string{field: in.text, "id": in.id})
	if err != nil {
		k.t.Error(err)
		return "", true
	}
	query := map[string]string{leave: "?wait=0", stream: "?stream=1"}[in.how]
	req, err := http.NewRequestWithContext(k.t.Context(), http.MethodPost, base+"/v1/sessions/"+url.PathEscape(k.key)+"/"+in.kind+query, bytes.NewReader(body))
	if err != nil {
		k.t.Error(err)
		return "", true
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := k.http.Do(req)
	if err != nil {
		return "", false // the server has died, or is not there yet
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusBadRequest {
		return k.refused(in, resp)
	}
	if in.how == stream {
		return "", receipt(resp.Body)
	}
	var out struct {
		Text string `json:"text"`
	}
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", resp.StatusCode == http.StatusAccepted // its head is the acknowledgement
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		k.t.Errorf("session %s: input %s was answered with %q: %v", k.key, in.id, raw, err)
	}
	return out.Text, true
}

// refused reads an error: the input may be durable all the same.
func (k *talker) refused(in input, resp *http.Response) (string, bool) {
	var out struct {
		Error struct {
			Type    string `json:"type"`
			Message string `json:"message"`
			Input   string `json:"input"`
		} `json:"error"`
	}
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", false
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		k.t.Errorf("session %s: status %d: %q", k.key, resp.StatusCode, raw)
		return "", true
	}
	e := out.Error
	switch {
	case e.Input != "":
		return "error " + e.Type + ": " + e.Message, true
	case e.Type == "not_found" && in.kind != "messages": // no session to compact yet
		return "", true
	case resp.StatusCode == http.StatusServiceUnavailable:
		return "", false
	}
	k.t.Errorf("session %s: input %s was refused: %d %s", k.key, in.id, resp.StatusCode, raw)
	return "", true
}

// receipt reads a stream to its end and reports whether it began with a receipt.
func receipt(body io.Reader) bool {
	durable := false
	lines := bufio.NewReader(body)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return durable
		}
		durable = durable || strings.TrimSpace(line) == "event: receipt"
	}
}

// get reads a JSON document of the API.
func get(ctx context.Context, base, path string, out any) error {
	return call(ctx, http.MethodGet, base, path, "", out)
}

// call sends a request and decodes what comes back. What a killed object left may have it restarted at the
// first request, which is told to come again.
func call(ctx context.Context, method, base, path, body string, out any) error {
	status, err := callOnce(ctx, method, base, path, body, out)
	if status == http.StatusServiceUnavailable {
		_, err = callOnce(ctx, method, base, path, body, out)
	}
	return err
}

func callOnce(ctx context.Context, method, base, path, body string, out any) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, method, base+path, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return resp.StatusCode, fmt.Errorf("%s %s: %d %s", method, path, resp.StatusCode, raw)
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return resp.StatusCode, fmt.Errorf("%s %s: %w: %.200s", method, path, err, raw)
	}
	return resp.StatusCode, nil
}
