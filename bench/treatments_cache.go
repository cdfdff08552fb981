package bench

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// What the Messages API keeps of a prompt
// (https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching).
const (
	cacheMarkers  = 4               // of a request
	cacheLookback = 20              // blocks before a marker at which an older prefix may end
	cacheTTL      = 5 * time.Minute // since it was last used
	cacheLeast    = 1024            // tokens of a prefix that is kept
)

// cacheMark is a cache marker as our client writes it: always the last field of a block.
const cacheMark = `,"cache_control":{"type":"ephemeral"}`

// billingHead begins a system block that clients change with every request and that no prefix holds.
const billingHead = `{"type":"text","text":"x-anthropic-billing-header:`

// virtualClock is the time of a simulated session. It is moved by whoever runs that.
type virtualClock struct{ now time.Time }

// promptCache counts what the prompt cache of a provider would give of each request.
type promptCache struct {
	clock *virtualClock
	used  map[[sha256.Size]byte]time.Time // prefixes, and when they were last
}

func newPromptCache(c *virtualClock) *promptCache {
	return &promptCache{clock: c, used: map[[sha256.Size]byte]time.Time{}}
}

// apiAsk is a request of the Messages API as far as it is looked at.
type apiAsk struct {
	Model    string            `json:"model"`
	Stream   bool              `json:"stream"`
	System   json.RawMessage   `json:"system"`
	Tools    []json.RawMessage `json:"tools"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
}

// prefix is a request up to the end of one of its blocks.
type prefix struct {
	hash   [sha256.Size]byte
	tokens tidemark.Tokens
	marked bool
}

// prefixes are those of all blocks: tools, then system, then messages.
func (a *apiAsk) prefixes() ([]prefix, error) {
	var all []prefix
	var chars int
	hash := sha256.Sum256([]byte(a.Model))
	add := func(kind string, raw []byte) {
		bare := bytes.Replace(raw, []byte(cacheMark), nil, 1)
		if bytes.HasPrefix(bare, []byte(billingHead)) {
			return
		}
		h := sha256.New()
		h.Write(hash[:])
		h.Write([]byte(kind))
		h.Write(bare)
		h.Sum(hash[:0])
		chars += len(bare)
		all = append(all, prefix{hash, tidemark.EstimateChars(chars), len(bare) < len(raw)})
	}
	for _, t := range a.Tools {
		add("tool", t)
	}
	for _, part := range append([]json.RawMessage{a.System}, a.contents()...) {
		blocks, err := blocksOf(part)
		if err != nil {
			return nil, err
		}
		for _, b := range blocks {
			add("block", b)
		}
	}
	return all, nil
}

func (a *apiAsk) contents() []json.RawMessage {
	out := make([]json.RawMessage, len(a.Messages))
	for i, m := range a.Messages {
		out[i] = m.Content
	}
	return out
}

// blocksOf lists the blocks of a content; one that is a string is one block.
func blocksOf(content []byte) (blocks []json.RawMessage, err error) {
	if len(content) == 0 {
		return nil, nil
	}
	if content[0] == '"' {
		return []json.RawMessage{content}, nil
	}
	if err := json.Unmarshal(content, &blocks); err != nil {
		return nil, fmt.Errorf("content: %w", err)
	}
	return blocks, nil
}

// count is what a request comes to: what is read from the cache, what is written to it, and the rest.
func (c *promptCache) count(a *apiAsk) (u tidemark.Usage, err error) {
	all, err := a.prefixes()
	if err != nil || len(all) == 0 {
		return u, err
	}
	now := c.clock.now
	var marks []int
	hit := -1
	for i := len(all) - 1; i >= 0; i-- {
		if !all[i].marked {
			continue
		}
		marks = append(marks, i)
		for j := i; j > i-cacheLookback && j >= 0 && j > hit; j-- {
			if at, ok := c.used[all[j].hash]; ok && now.Sub(at) < cacheTTL {
				hit = j
				c.used[all[j].hash] = now
				break
			}
		}
	}
	if len(marks) > cacheMarkers {
		return u, fmt.Errorf("%d cache markers, at most %d: %w", len(marks), cacheMarkers, tidemark.ErrInvalid)
	}
	total, read, written := all[len(all)-1].tokens, tidemark.Tokens(0), tidemark.Tokens(0)
	if hit >= 0 {
		read = all[hit].tokens
	}
	for n, i := range marks {
		if all[i].tokens < cacheLeast {
			continue
		}
		c.used[all[i].hash] = now
		if n == 0 {
			written = max(all[i].tokens-read, 0)
		}
	}
	return tidemark.Usage{Input: total - read - written, CacheRead: read, CacheCreation: written}, nil
}
