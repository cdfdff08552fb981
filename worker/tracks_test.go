//go:build !js

package worker_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// rambler is a client with several histories.
type rambler struct {
	*proxied
	key   string
	asked int
}

func ramble(t *testing.T) *rambler {
	return &rambler{proxied: serveProxy(t, func(n int, _ *http.Request, _ string) *http.Response {
		return answerOf(200, "application/json", fmt.Sprintf(`{"id":"msg_%d","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Answer %d."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":%d,"output_tokens":5}}`, n, n, 10*(n+1)))
	}, nil)}
}

// say sends a history with one message more, and returns what the client has behind it.
func (r *rambler) say(history []string, text string) []string {
	r.t.Helper()
	history = append(history[:len(history):len(history)], fmt.Sprintf(`{"role":"user","content":%q}`, text))
	res := r.ask("/p/garden/v1/messages", `{"model":"m","max_tokens":9,"messages":[`+strings.Join(history, ",")+`]}`)
	if body := read(r.t, res); res.StatusCode != 200 {
		r.t.Fatalf("%d %s", res.StatusCode, body)
	}
	r.key = res.Header.Get("X-Tidemark-Session")
	r.asked++
	return append(history, fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":"Answer %d."}]}`, r.asked-1))
}

// get reads a route of the conversation, or of a track.
func (r *rambler) get(track, path string, out any) string {
	r.t.Helper()
	raw := r.text(200, "GET", "/v1/sessions/"+url.PathEscape(r.key+track)+path, "", "X-Tidemark-Token", token)
	if out != nil {
		if err := json.Unmarshal([]byte(raw), out); err != nil {
			r.t.Fatalf("%s: %v", raw, err)
		}
	}
	return raw
}

// trackRow is a session as the API tells it.
type trackRow struct {
	Key           string `json:"key"`
	Title         string `json:"title"`
	Messages      int    `json:"messages"`
	ContextTokens int    `json:"contextTokens"`
	Usage         struct {
		Input int `json:"input_tokens"`
	} `json:"usage"`
	Track  string     `json:"track"`
	Tracks []trackRow `json:"tracks"`
}

// standsFor checks that a track is what every face shows for the conversation.
func (r *rambler) standsFor(track string, tracks, messages, context int, view, gone string) {
	r.t.Helper()
	var s trackRow
	raw := r.get("", "", &s)
	if s.Track != r.key+track || len(s.Tracks) != tracks || s.Title != "trim the hedge" || s.Messages != messages || s.ContextTokens != context || s.Usage.Input != 10*r.asked*(r.asked+1)/2 {
		r.t.Errorf("the session is %s", raw)
	}
	for _, path := range []string{"/view?messages=1", "/log", "/log?format=jsonl", "/log?format=md"} {
		if raw := r.get("", path, nil); !strings.Contains(raw, view) || !strings.Contains(raw, "trim the hedge") || strings.Contains(raw, gone) || strings.Contains(raw, "quota") {
			r.t.Errorf("%s: %s", path, raw)
		}
		if raw := r.get(track, path, nil); raw != r.get("", path, nil) {
			r.t.Errorf("%s of the track by its name: %s", path, raw)
		}
		if raw := r.get("#t2", path, nil); !strings.Contains(raw, "a title for") {
			r.t.Errorf("%s of another track: %s", path, raw)
		}
	}
	var calls struct {
		Calls []struct {
			N int `json:"n"`
		} `json:"calls"`
	}
	if raw := r.get("", "/anatomy", &calls); len(calls.Calls) == 0 || calls.Calls[0].N != r.asked {
		r.t.Errorf("the newest call is not the last that was made: %s", raw)
	}
	if lines := strings.Count(r.get("", "/log?format=steps", nil), "\n"); lines != tracks {
		r.t.Errorf("%d lines of steps, want %d", lines, tracks)
	}
}

// TestTracks: what a client asks first is small and soon over; its conversation is what has most messages, also behind a
// rewind, and whoever wants another track names it.
func TestTracks(t *testing.T) {
	r := ramble(t)
	r.say(nil, "quota")
	r.say(nil, "a title for the hedge")
	first := r.say(nil, "trim the hedge")
	r.say(r.say(first, "now the walnut"), "and the roses")
	r.standsFor("#t3", 3, 6, 55, "and the roses", "hedgehog")
	r.say(r.say(first, "now the hedgehog"), "does it sleep") // a rewind: it stands for all as soon as it is as long
	r.standsFor("#t4", 4, 6, 75, "does it sleep", "walnut")

	for _, one := range []struct {
		track, title     string
		messages, tokens int
	}{{"#t1", "quota", 2, 15}, {"#t2", "a title for the hedge", 2, 25}, {"#t3", "trim the hedge", 6, 55}} { // each by itself
		var s trackRow
		if raw := r.get(one.track, "", &s); s.Key != r.key+one.track || s.Track != s.Key || s.Title != one.title || s.Messages != one.messages || s.ContextTokens != one.tokens || len(s.Tracks) != 4 {
			t.Errorf("%s is %s", one.track, raw)
		}
		var v struct{ Size int }
		if raw := r.get(one.track, "/view", &v); v.Size != one.tokens || !strings.Contains(raw, one.title) {
			t.Errorf("the view of %s: %s", one.track, raw)
		}
		for _, path := range []string{"/log", "/anatomy", "/queue", "/task", "/search?q=quota"} {
			r.get(one.track, path, nil)
		}
	}
	p404 := func(method, path, body string) {
		t.Helper()
		r.text(404, method, "/v1/sessions/"+url.PathEscape(r.key+"#t9")+path, body, "X-Tidemark-Token", token)
	}
	p404("GET", "", "")
	p404("GET", "/view", "")
	p404("PATCH", "", `{"title":"x"}`)
}

// TestTracksFound: what was said is found, wherever it was, and the directory tells of the main track.
func TestTracksFound(t *testing.T) {
	r := ramble(t)
	r.say(nil, "quota")
	first := r.say(nil, "trim the hedge")
	r.say(r.say(first, "now the walnut"), "and the roses")
	r.say(r.say(first, "now the hedgehog"), "does it sleep")
	for _, track := range []string{"", "#t1", "#t2", "#t3"} {
		for _, path := range []string{"/search?q=walnut", "/recall?q=walnut"} {
			if raw := r.get(track, path, nil); !strings.Contains(raw, "now the walnut") {
				t.Errorf("%s%s: %s", track, path, raw)
			}
		}
	}
	var log struct {
		Entries []struct {
			ID string `json:"id"`
		} `json:"entries"`
	}
	r.get("#t2", "/log?limit=1", &log)
	r.get("", "/entries/"+log.Entries[0].ID, nil)
	for end := time.Now().Add(tidemarktest.Patience); ; { // it is told behind the answer
		listed := r.text(200, "GET", "/v1/sessions", "", "X-Tidemark-Token", token)
		var page struct{ Sessions []trackRow }
		if err := json.Unmarshal([]byte(listed), &page); err != nil {
			t.Fatal(err)
		}
		if s := page.Sessions; len(s) == 1 && s[0].Key == r.key && s[0].Title == "trim the hedge" && s[0].Messages == 6 && s[0].ContextTokens == 65 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the directory: %s", listed)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
