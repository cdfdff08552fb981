package provider

import (
	"slices"

	tidemark "github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// What each API has of the options, by their names in chat completions. Those that would give an answer of
// another form are not among them.
var (
	openaiOptions = [...]string{"temperature", "top_p", "stop", "seed", "frequency_penalty", "presence_penalty", "logit_bias",
		"response_format", "tool_choice", "parallel_tool_calls", "reasoning_effort", "verbosity"}
	workersaiOptions = [...]string{"temperature", "top_p", "seed", "frequency_penalty", "presence_penalty"}
	anthropicOptions = [...]string{"temperature", "top_p", "stop"}
)

// Takes implements [tidemark.Taker].
func (o *OpenAI) Takes(option string) bool { return slices.Contains(openaiOptions[:], option) }

// Takes implements [tidemark.Taker].
func (w *WorkersAI) Takes(option string) bool { return slices.Contains(workersaiOptions[:], option) }

// Takes implements [tidemark.Taker]: a model that thinks has a temperature of its own
// (https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking).
func (a *Anthropic) Takes(option string) bool {
	return slices.Contains(anthropicOptions[:], option) && (a.Thinking == 0 || option == "stop")
}

// Takes implements [tidemark.Taker].
func (r *Retry) Takes(option string) bool {
	t, ok := r.Provider.(tidemark.Taker)
	return ok && t.Takes(option)
}

// appendOptions appends those that an API takes, by the names that it has for them.
func appendOptions(b []byte, options []tidemark.Option, to tidemark.Taker) []byte {
	_, renamed := to.(*Anthropic)
	for _, o := range options {
		switch {
		case !to.Takes(o.Name) || len(o.Value) == 0:
			continue
		case renamed && o.Name == "stop":
			b = appendStops(b, o.Value)
			continue
		}
		b = append(json.AppendString(append(b, ','), o.Name), ':')
		b = append(b, o.Value...)
	}
	return b
}

// appendStops appends the list that the Messages API wants; chat completions also has one text alone.
func appendStops(b []byte, value json.RawMessage) []byte {
	switch string(value) {
	case `""`, "[]":
		return b
	}
	b = append(b, `,"stop_sequences":`...)
	if value[0] == '[' {
		return append(b, value...)
	}
	return append(append(append(b, '['), value...), ']')
}
