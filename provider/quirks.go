package provider

import (
	"errors"
	"strings"

	tidemark "github.com/tidemark-ai/tidemark"
)

// quirk is something that a model, or its template, may not know.
type quirk string

const (
	quirkSystem    quirk = " system"    // a system message: its words begin the first message of a user
	quirkTools     quirk = " no tools"  // tools: none are offered
	quirkAlternate quirk = " alternate" // a user's message behind results of tools: its words end the last of these
)

// taken is whether a model takes a quirk, as far as answers have shown.
type taken int

const (
	quirkUnknown taken = iota
	quirkTaken
	quirkRefused
)

// quirkTexts are what servers say where a model has no tools, or its template does not know a role or wants them to take turns.
var quirkTexts = [...]struct {
	says string
	of   quirk
}{
	{"does not support tools", quirkTools}, // Ollama
	{"does not support function calling", quirkTools},
	{"tool choice requires --enable-auto", quirkTools},    // vLLM, where its server was started without tools
	{"roles must alternate", quirkAlternate},              // Mistral's, which does not count the messages of tools, and older ones
	{"system role not supported", quirkSystem},            // Gemma 2 in vLLM and llama.cpp
	{"only user and assistant roles", quirkSystem},        // the first models of Mistral
	{"developer instruction is not enabled", quirkSystem}, // Gemma at Google's endpoint
	{"roles must alternate", quirkSystem},                 // where it was not the one above
}

// says returns what is known of a model.
func (b *bounds) says(model string, q quirk) taken {
	t, _ := b.said.Load(model + string(q))
	known, _ := t.(taken)
	return known
}

func (b *bounds) set(model string, q quirk, t taken) { b.said.Store(model+string(q), t) }

// learnQuirk reports whether an error says for the first time what a model does not know, and keeps that.
func (b *bounds) learnQuirk(model string, err error) bool {
	var api *tidemark.APIError
	if !errors.As(err, &api) {
		return false
	}
	for _, text := range quirkTexts {
		if b.says(model, text.of) != quirkRefused && strings.Contains(strings.ToLower(api.Message), text.says) {
			b.set(model, text.of, quirkRefused)
			return true
		}
	}
	return false
}
