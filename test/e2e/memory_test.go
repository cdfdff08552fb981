//go:build !js

package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestMemoryEdit: a curated file is written under conditions, kept in versions, and is a plain object.
func TestMemoryEdit(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		k := begin(t, s, "web", "a")
		const path, key = "/v1/agents/work/memory/TOOLS.md", "agents/work/TOOLS.md" // of no agent whose prompts are held
		res, raw := s.fetch(t, "PUT", path, "- first\n", "If-None-Match", "*")
		first := res.Header.Get("ETag")
		if res.StatusCode != 200 || first == "" {
			t.Fatalf("%d %s", res.StatusCode, raw)
		}
		var b strings.Builder
		step := func(method, path, body string, headers ...string) string {
			res, raw := s.fetch(t, method, path, body, headers...)
			tag := res.Header.Get("ETag")
			fmt.Fprintf(&b, "%s %s %v\n%d %s\n", method, path, headerNames(headers), res.StatusCode, without(raw, first, tag))
			return tag
		}
		step("PUT", path, "- again\n", "If-None-Match", "*")
		second := step("PUT", path, "- second\n", "If-Match", first)
		step("PUT", path, "- late\n", "If-Match", first)
		step("PUT", path, "- x\n", "If-Match", "no quotes")
		if got := step("GET", path, ""); got != second || second == first {
			t.Errorf("ETags %s, %s, %s", first, second, got)
		}
		step("GET", path, "", "If-None-Match", second)
		step("GET", path+"?versions=1", "")
		step("POST", "/v1/agents/work/memory-undo", `{"path":"TOOLS.md"}`)
		step("GET", path, "")
		golden(t, "memory-edit", b.String())
		if raw, _, err := s.bucket().get(key); err != nil || string(raw) != "- first\n" {
			t.Errorf("in the bucket: %q, %v", raw, err)
		}
		// What a person edits there is seen, and is not overwritten by who has not seen it.
		stale := step("GET", path, "")
		if err := s.bucket().put(key, []byte("- by hand\n")); err != nil {
			t.Fatal(err)
		}
		if got := k.text(path); got != "- by hand\n" {
			t.Errorf("%q", got)
		}
		if res, raw := s.fetch(t, "PUT", path, "- lost\n", "If-Match", stale); res.StatusCode != 412 {
			t.Errorf("%d %s", res.StatusCode, raw)
		}
	})
}

func headerNames(pairs []string) []string {
	out := []string{}
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, pairs[i])
	}
	return out
}

// without takes ETags out of a text: each store makes its own.
func without(text string, tags ...string) string {
	for _, tag := range tags {
		if tag = strings.Trim(tag, `"`); tag != "" {
			text = strings.ReplaceAll(text, tag, "ETAG")
		}
	}
	return text
}
