//go:build !js

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/tidemarktest"
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

// asked is the newest request of a conversation, which has said something.
func (k *talk) asked() tidemarktest.APICall {
	k.t.Helper()
	k.say("Go on.")
	calls := k.model.Calls()
	return calls[len(calls)-1]
}

// told is one with these words in its last message: a turn that the agent does not answer in time goes on without news.
func (k *talk) told(words string) (c tidemarktest.APICall) {
	k.t.Helper()
	eventually(k.t, k.s, func() string {
		if c = k.asked(); !strings.Contains(c.LastText(), words) {
			return fmt.Sprintf("%s is not told %q:\n%s", k.key, words, c.LastText())
		}
		return ""
	})
	return c
}

// TestMemoryNews: what one conversation learned is in the next request of another one that runs, once, behind a prompt that is as it
// was, so that the provider's cache holds; what the owner writes in the bucket is in that of the main conversation and in no peer's;
// and what is taken out of the file is said to be gone.
func TestMemoryNews(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		const file = "agents/memorynews/MEMORY.md"
		if err := s.bucket().put(file, []byte("- The wedding is on 4 June.\n")); err != nil {
			t.Fatal(err)
		}
		owner, peer, other := at(t, s, "agent:memorynews:main"), at(t, s, "agent:memorynews:whatsapp:dm:491"), at(t, s, "agent:memorynews:web:dm:b")
		for _, k := range []*talk{owner, peer, other} {
			k.set(8000)
			k.model.Respond(func(tidemarktest.APICall) tidemarktest.Step { return tidemarktest.Step{Text: "Well."} }) // no echo of the note
		}
		other.model.Respond(func(c tidemarktest.APICall) tidemarktest.Step {
			if !strings.Contains(c.LastText(), "</conversation>") {
				return tidemarktest.Step{}
			}
			return tidemarktest.Step{Text: "<summary>\n## Facts\n" + tidemarktest.Gist(c.LastText()) + "</summary>\n\n<memories>\n- The table is of walnut.\n</memories>"}
		})
		before := owner.asked()
		prompts := map[*talk]string{owner: before.System, peer: peer.asked().System}
		if !strings.Contains(before.System, "4 June") {
			t.Fatalf("the prompt has no MEMORY.md:\n%s", before.System)
		}
		noted := func(k *talk, word string, want int) {
			t.Helper()
			c := k.asked()
			if want > 0 && !strings.Contains(c.LastText(), word) {
				c = k.told(word)
			}
			if c.System != prompts[k] {
				t.Errorf("%s: the prompt changed from\n%s\nto\n%s", k.key, prompts[k], c.System)
			}
			if last, all := strings.Count(c.LastText(), word), strings.Count(string(c.Body), word); last != want || all != want {
				t.Errorf("%s: %q stands %d times in the last message and %d times in all, want %d:\n%s", k.key, word, last, all, want, c.LastText())
			}
			if c.Usage.CacheRead == 0 {
				t.Errorf("%s: nothing was read from the provider's cache: %+v", k.key, c.Usage)
			}
		}
		for i := range 11 {
			other.say(long(i))
		}
		ask[turn](other, 200, "POST", other.path("/compact"), nil)
		eventually(t, s, func() string {
			if found := owner.text(owner.agent("/memory-search?q=walnut")); !strings.Contains(found, "walnut") {
				return "nothing was learned: " + found
			}
			return ""
		})
		for range 2 {
			noted(owner, "The table is of walnut.", 1)
			noted(peer, "walnut", 0)
		}
		if err := s.bucket().put(file, []byte("- The wedding is on 15 July.\n")); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			noted(owner, "| - The wedding is on 15 July.", 1)
			noted(peer, "15 July", 0)
		}
		owner.told(`[No longer in memory, so do not rely on it: "- The wedding is on 4 June.".]`)
		ask[turn](owner, 200, "POST", owner.path("/reset"), nil)
		if c := owner.asked(); strings.Count(string(c.Body), "walnut") != 1 || strings.Count(c.System, "walnut") != 1 || !strings.Contains(c.System, "15 July") {
			t.Errorf("behind a reset\n%s", c.Body)
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
