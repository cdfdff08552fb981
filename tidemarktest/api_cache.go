package tidemarktest

import (
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// cacheLookback is how many blocks before a marker the Messages API looks for a cached prefix
// (https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching).
const cacheLookback = 20

// cacheUnit is a block of a request in the order in which it is cached: tools, system, messages.
type cacheUnit struct {
	text   string // canonical, without the marker
	marked bool
	bad    string // why the API refuses the marker
	tokens tidemark.Tokens
}

func cacheUnits(body []byte) ([]cacheUnit, error) {
	var r struct {
		Tools    []any `json:"tools"`
		System   any   `json:"system"`
		Messages []struct {
			Role    string `json:"role"`
			Content any    `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("the request is not valid: %w", err)
	}
	var out []cacheUnit
	for _, t := range r.Tools {
		out = append(out, unitOf("tool", t))
	}
	out = append(out, unitsOf("system", r.System)...)
	for _, m := range r.Messages {
		out = append(out, unitsOf(m.Role, m.Content)...)
	}
	return out, nil
}

// unitsOf returns the units of content: a string counts as one text block.
func unitsOf(role string, content any) []cacheUnit {
	switch v := content.(type) {
	case string:
		return []cacheUnit{unitOf(role, map[string]any{"type": "text", "text": v})}
	case []any:
		var out []cacheUnit
		for _, b := range v {
			out = append(out, unitOf(role, b))
		}
		return out
	}
	return nil
}

func unitOf(role string, v any) cacheUnit {
	u := cacheUnit{}
	if m, ok := v.(map[string]any); ok {
		_, u.marked = m["cache_control"]
		if t := m["type"]; u.marked && (t == "thinking" || t == "redacted_thinking") {
			u.bad = "thinking blocks cannot have cache_control"
		}
		if u.marked && m["type"] == "text" && m["text"] == "" {
			u.bad = "cache_control cannot be set for empty text blocks"
		}
		delete(m, "cache_control")
	}
	text := mustJSON(v)
	u.text = role + string(text)
	u.tokens = tidemark.EstimateChars(tidemark.UTF16Len(text))
	return u
}

// account parts the input of a Messages request into what its prefix has in the cache, what it adds
// to it, and the rest. The caller holds the lock.
func (a *API) account(c *APICall) {
	units, err := cacheUnits(c.Body)
	if err != nil || c.Path != "/v1/messages" {
		return
	}
	hashes := make([]tidemark.Hash, len(units))
	sums := make([]tidemark.Tokens, len(units))
	prev, sum := tidemark.Hash(""), tidemark.Tokens(0)
	last, read := -1, -1
	for i, u := range units {
		prev = tidemark.HashOf([]byte(string(prev) + u.text))
		sum += u.tokens
		hashes[i], sums[i] = prev, sum
		if u.marked {
			last = i
			for k := i; k >= 0 && k > i-cacheLookback && read < k; k-- {
				if a.cache[hashes[k]] {
					read = k
				}
			}
		}
	}
	for i, u := range units {
		if u.marked {
			a.cache[hashes[i]] = true
		}
	}
	if last < 0 || sum == 0 {
		return
	}
	share := func(n tidemark.Tokens) tidemark.Tokens { return n * c.Tokens / sum } // units are estimated apart
	c.Usage = tidemark.Usage{CacheCreation: share(sums[last])}
	if read >= 0 {
		c.Usage.CacheRead = share(sums[read])
		c.Usage.CacheCreation = max(0, c.Usage.CacheCreation-c.Usage.CacheRead)
	}
	c.Usage.Input = c.Tokens - c.Usage.CacheRead - c.Usage.CacheCreation
}
