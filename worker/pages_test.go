//go:build !js

package worker_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
)

// TestListPages: every list that comes by the page is each of its items once, whatever the size of a page, beside another agent
// and other conversations that have as many.
func TestListPages(t *testing.T) {
	s := serve(t, nil)
	const many, turns = 105, 6
	for _, key := range []string{"main", "garden"} {
		for i := range turns {
			s.say(key, fmt.Sprint(key, " ", i))
		}
	}
	s.settle()
	at := time.Date(2020, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, name := range []string{"main", "work"} {
		a, err := s.actors.Agent(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		for i := range many {
			key := tidemark.Key(fmt.Sprintf("agent:%s:local:dm:k%03d", name, i))
			info := archive.Info{Key: archive.PartKey(name, fmt.Sprintf("01S%d", i), at), SessionKey: key, Session: fmt.Sprintf("01S%d", i), Agent: name, Part: 1, Messages: 1, At: at.Add(time.Duration(i) * time.Hour)}
			day := "agents/" + name + "/memory/" + at.AddDate(0, 0, i).Format(time.DateOnly) + ".md"
			if _, err := s.actors.blobs.Put(t.Context(), day, strings.NewReader("# day\n"), 6, tidemark.PutOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := a.Report(t.Context(), tidemark.SessionInfo{Key: key, UpdatedAt: at.Add(time.Duration(i/2) * time.Second)}, nil); err != nil {
				t.Fatal(err)
			}
			if err := archive.Index(t.Context(), s.actors.blobs, name, info); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name, path, list, id, from string // what is listed, by which it is told apart, and what names the next page
		want                       int
	}{
		{"sessions", "/v1/sessions?", "sessions", "key", "cursor", many + 2},
		{"sessions of another agent", "/v1/sessions?agent=work&", "sessions", "key", "cursor", many},
		{"memory", "/v1/agents/work/memory?", "files", "path", "cursor", many},
		{"archives", "/v1/agents/work/archives?", "archives", "key", "cursor", many},
		{"log", "/v1/sessions/garden/log?", "entries", "id", "before", 2 * turns},
		{"anatomy", "/v1/sessions/garden/anatomy?", "calls", "n", "before", turns},
	} {
		for _, limit := range []string{"", "limit=1&", "limit=5&", "limit=12&", "limit=200&"} {
			if limit == "limit=1&" && c.want >= many {
				continue // too many requests for what it tells
			}
			seen := map[string]bool{}
			pages := 0
			for next := ""; ; {
				path := c.path + limit
				if next != "" {
					path += c.from + "=" + next
				}
				var page map[string]json.RawMessage
				if err := json.Unmarshal([]byte(s.text(200, "GET", path, "")), &page); err != nil {
					t.Fatal(err)
				}
				var items []map[string]json.RawMessage
				if err := json.Unmarshal(page[c.list], &items); err != nil {
					t.Fatalf("%s: %v in %s", c.name, err, page[c.list])
				}
				for _, i := range items {
					if id := string(i[c.id]); seen[id] || id == "" {
						t.Errorf("%s, %s: %q again", c.name, limit, id)
					} else {
						seen[id] = true
					}
				}
				next = strings.Trim(string(page["next"]), `"`)
				if pages++; next == "" || next == "0" || pages > 3*many {
					break
				}
			}
			if len(seen) != c.want {
				t.Errorf("%s, %s: %d on %d pages, want %d", c.name, limit, len(seen), pages, c.want)
			}
		}
	}
}
