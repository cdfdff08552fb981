package session

import (
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// TestOfParameter: a refusal is for a parameter only if it names one. What may be for the size of a request, or for what is
// said in it, is none, whatever else it speaks of: a conversation would be dead.
func TestOfParameter(t *testing.T) {
	for _, c := range []struct {
		says string
		is   bool
	}{
		{"Unsupported parameter: 'max_completion_tokens' is not supported with this model.", true},
		{"Unsupported value: 'temperature' does not support 0.2 with this model.", true},
		{"thinking.budget_tokens: Input should be greater than or equal to 1024", true},
		{"max_tokens: 50000 > 8192, which is the maximum allowed number of output tokens for this model", true},
		{"tools: too many tools", true},
		{"This model does not support tools.", true},
		{"Invalid schema for function 'x': array schema missing items.", true},
		{"stream: streaming is not supported", true},
		{"metadata.user_id: string too long", true},
		{"service_tier: Input should be 'auto' or 'standard_only'", true},
		{"Unrecognized request argument supplied: stop", true},
		{"this model is tired", false},
		{"E_TOO_MUCH: cannot fit 8039 into 8192", false},
		{"kv_cache: no room for so many", false},
		{"n_ctx: the prompt does not fit", false},
		{"invalid_prompt: cannot take so many", false},
		{"Content Exists Risk", false},
		{"invalid_request_error: the prompt was blocked", false},
		{"litellm.BadRequestError: the prompt was blocked", false},
		{"content.0.text: this text is odd", false},
		{"messages: this is odd. Unknown parameter.", false},
		{"The parameter `messages` specified in the request is not valid", false},
		{"max_tokens must be at least 1, got -512.", false},
		{"It is too much. Read https://docs.test/tools/temperature", false},
	} {
		if got := ofParameter(tidemark.APIError{Message: c.says}); got != c.is {
			t.Errorf("%q: %v", c.says, got)
		}
	}
}
