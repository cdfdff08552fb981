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
)

// TestTracks: what a client asks first is small and soon over; its conversation is what has most messages, also behind a
// rewind, and whoever wants another track names it.
func TestTracks(t *testing.T) {
	p := serveProxy(t, func(n int, _ *http.Request, _ string) *http.Response {
		return answerOf(200, "application/json", fmt.Sprintf(`{"id":"msg_%d","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Answer %d."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":%d,"output_tokens":5}}`, n, n, 10*(n+1)))
	}, nil)
	var key string
	asked := 0
	say := func(history []string, text string) []string { // what the client has behind it
		t.Helper()
		history = append(history[:len(history):len(history)], fmt.Sprintf(`{"role":"user","content":%q}`, text))
		res := p.ask("/p/garden/v1/messages", `{"model":"m","max_tokens":9,"messages":[`+strings.Join(history, ",")+`]}`)
		if body := read(t, res); res.StatusCode != 200 {
			t.Fatalf("%d %s", res.StatusCode, body)
		}
		key = res.Header.Get("X-Tidemark-Session")
		asked++
		return append(history, fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":"Answer %d."}]}`, asked-1))
	}
	get := func(key, path string, out any) string {
		t.Helper()
		raw := p.text(200, "GET", "/v1/sessions/"+url.PathEscape(key)+path, "", "X-Tidemark-Token", token)
		if out != nil {
			if err := json.Unmarshal([]byte(raw), out); err != nil {
				t.Fatalf("%s: %v", raw, err)
			}
		}
		return raw
	}
	say(nil, "quota")
	say(nil, "a title for the hedge")
	first := say(nil, "trim the hedge")
	rest := say(first, "now the walnut")
	rest = say(rest, "and the roses")

	type row struct {
		Key           string `json:"key"`
		Title         string `json:"title"`
		Messages      int    `json:"messages"`
		ContextTokens int    `json:"contextTokens"`
		Usage         struct {
			Input int `json:"input_tokens"`
		} `json:"usage"`
		Track  string `json:"track"`
		Tracks []struct {
			Key      string `json:"key"`
			Messages int    `json:"messages"`
			Main     bool   `json:"main"`
		} `json:"tracks"`
	}
	check := func(track string, tracks, messages, context int, view, gone string) {
		t.Helper()
		var s row
		raw := get(key, "", &s)
		if s.Track != key+track || len(s.Tracks) != tracks || s.Title != "trim the hedge" || s.Messages != messages || s.ContextTokens != context || s.Usage.Input != 10*asked*(asked+1)/2 {
			t.Errorf("the session is %s", raw)
		}
		for _, path := range []string{"/view?messages=1", "/log", "/log?format=jsonl", "/log?format=md"} {
			if raw := get(key, path, nil); !strings.Contains(raw, view) || !strings.Contains(raw, "trim the hedge") || strings.Contains(raw, gone) || strings.Contains(raw, "quota") {
				t.Errorf("%s: %s", path, raw)
			}
			if raw := get(key+track, path, nil); raw != get(key, path, nil) {
				t.Errorf("%s of the track by its name: %s", path, raw)
			}
			if raw := get(key+"#t2", path, nil); !strings.Contains(raw, "a title for") {
				t.Errorf("%s of another track: %s", path, raw)
			}
		}
		var calls struct {
			Calls []struct {
				N int `json:"n"`
			} `json:"calls"`
		}
		if raw := get(key, "/anatomy", &calls); len(calls.Calls) == 0 || calls.Calls[0].N != asked {
			t.Errorf("the newest call is not the last that was made: %s", raw)
		}
		if lines := strings.Count(get(key, "/log?format=steps", nil), "\n"); lines != tracks {
			t.Errorf("%d lines of steps, want %d", lines, tracks)
		}
	}
	check("#t3", 3, 6, 55, "and the roses", "hedgehog")

	after := first // a rewind: the new branch stands for all as soon as it is as long
	for _, text := range []string{"now the hedgehog", "does it sleep"} {
		after = say(after, text)
	}
	check("#t4", 4, 6, 75, "does it sleep", "walnut")
	for _, one := range []struct {
		track, title     string
		messages, tokens int
	}{{"#t1", "quota", 2, 15}, {"#t2", "a title for the hedge", 2, 25}, {"#t3", "trim the hedge", 6, 55}} { // each by itself
		var s row
		if raw := get(key+one.track, "", &s); s.Key != key+one.track || s.Track != s.Key || s.Title != one.title || s.Messages != one.messages || s.ContextTokens != one.tokens || len(s.Tracks) != 4 {
			t.Errorf("%s is %s", one.track, raw)
		}
		var v struct{ Size int }
		if raw := get(key+one.track, "/view", &v); v.Size != one.tokens || !strings.Contains(raw, one.title) {
			t.Errorf("the view of %s: %s", one.track, raw)
		}
		for _, path := range []string{"/log", "/anatomy", "/queue", "/task", "/search?q=quota"} {
			get(key+one.track, path, nil)
		}
	}
	p.text(404, "PATCH", "/v1/sessions/"+url.PathEscape(key+"#t9"), `{"title":"x"}`, "X-Tidemark-Token", token)

	for _, at := range []string{key, key + "#t2", key + "#t4"} { // what was said is found, wherever it was
		for _, path := range []string{"/search?q=walnut", "/recall?q=walnut"} {
			if raw := get(at, path, nil); !strings.Contains(raw, "now the walnut") {
				t.Errorf("%s%s: %s", at, path, raw)
			}
		}
	}
	var entries struct {
		Entries []struct {
			ID string `json:"id"`
		} `json:"entries"`
	}
	get(key+"#t2", "/log?limit=1", &entries)
	get(key, "/entries/"+entries.Entries[0].ID, nil)
	if raw := p.text(404, "GET", "/v1/sessions/"+url.PathEscape(key+"#t9")+"/view", "", "X-Tidemark-Token", token); !strings.Contains(raw, "not_found") {
		t.Error(raw)
	}
	for n := 0; ; n++ { // it is told behind the answer
		listed := p.text(200, "GET", "/v1/sessions", "", "X-Tidemark-Token", token)
		var page struct{ Sessions []row }
		if err := json.Unmarshal([]byte(listed), &page); err != nil {
			t.Fatal(err)
		}
		if s := page.Sessions; len(s) == 1 && s[0].Title == "trim the hedge" && s[0].Messages == 6 && s[0].ContextTokens == 75 {
			return
		}
		if n == 200 {
			t.Fatalf("the directory: %s", listed)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
