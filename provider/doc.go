// Package provider speaks to model APIs: Anthropic's Messages API, any chat-completions endpoint
// (OpenAI, OpenRouter, Ollama, llama.cpp, vLLM), and a deterministic model of its own that needs
// neither network nor key. It chooses no model, counts no money and stores nothing. Begin with
// anthropic.go; [Retry] repeats what may succeed later.
//
// Goals: bytes of untouched blocks go out as they came; what was sent stays a prefix of what is
// sent next, so that prompt caches hit; every failure is a *tidemark.APIError with a class, and no
// message of one holds a key; every size and every wait is bounded; the upstream connection closes
// when the reader stops.
package provider
