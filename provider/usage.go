package provider

import (
	tidemark "github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// anthropicUsage is the figures of the Messages API.
type anthropicUsage struct {
	Input         looseInt `json:"input_tokens"`
	Output        looseInt `json:"output_tokens"`
	CacheRead     looseInt `json:"cache_read_input_tokens"`
	CacheCreation looseInt `json:"cache_creation_input_tokens"`
}

// over puts those that are there in the place of others, and reports whether there are any.
func (u *anthropicUsage) over(to *tidemark.Usage) (reported bool) {
	if u == nil {
		return false
	}
	for _, f := range [...]struct {
		to   *tidemark.Tokens
		from looseInt
	}{{&to.Input, u.Input}, {&to.Output, u.Output}, {&to.CacheRead, u.CacheRead}, {&to.CacheCreation, u.CacheCreation}} {
		if f.from.set && f.from.n >= 0 {
			*f.to, reported = f.from.tokens(), true
		}
	}
	return reported
}

// openaiUsage is the figures of chat completions, whose prompt tokens include the cached ones.
type openaiUsage struct {
	Prompt     looseInt `json:"prompt_tokens"`
	Completion looseInt `json:"completion_tokens"`
	Details    loose[struct {
		Cached looseInt `json:"cached_tokens"`
	}] `json:"prompt_tokens_details"`
	CacheHit looseInt `json:"prompt_cache_hit_tokens"` // DeepSeek
}

func (u *openaiUsage) usage() (tidemark.Usage, bool) {
	if u == nil || u.Prompt.n < 0 || u.Completion.n < 0 || u.Prompt.n+u.Completion.n <= 0 {
		return tidemark.Usage{}, false
	}
	prompt := u.Prompt.tokens()
	cached := min(max(u.CacheHit.tokens(), u.Details.is.Cached.tokens(), 0), prompt)
	return tidemark.Usage{Input: prompt - cached, CacheRead: cached, Output: u.Completion.tokens()}, true
}

// MessagesUsage reads the figures of an answer of the Messages API, and reports whether it has any.
func MessagesUsage(raw []byte) (u tidemark.Usage, reported bool) {
	var w anthropicUsage
	if json.Unmarshal(raw, &w) == nil {
		reported = w.over(&u)
	}
	return u, reported
}

// ChatUsage reads the figures of an answer of chat completions, and reports whether it has any.
func ChatUsage(raw []byte) (tidemark.Usage, bool) {
	var w openaiUsage
	if json.Unmarshal(raw, &w) != nil {
		return tidemark.Usage{}, false
	}
	return w.usage()
}
