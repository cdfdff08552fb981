// Package sdk proves the fake model server with the official SDKs as its clients: what they accept,
// our wire code is right to accept too. It is a module of its own, since the SDKs take a minute to
// build and nothing else needs them.
package sdk

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// rich is an answer with all that both dialects know.
func rich() tidemarktest.Step {
	return tidemarktest.Step{Text: "Both, “now” 👋.", Calls: []tidemarktest.ToolCall{{ID: "c1", Name: "look", Input: `{"place":"Paris","n":1.5}`}, {ID: "c2", Name: "now"}},
		Usage: &tidemark.Usage{Input: 10, CacheRead: 20, CacheCreation: 5, Output: 7}}
}

func anthropicClient(api *tidemarktest.API) anthropic.Client {
	return anthropic.NewClient(anthropicoption.WithAPIKey("k"), anthropicoption.WithBaseURL(api.URL), anthropicoption.WithMaxRetries(1))
}

func anthropicAsk() anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model: "m", MaxTokens: 100,
		System: []anthropic.TextBlockParam{{Text: "Be kind.", CacheControl: anthropic.NewCacheControlEphemeralParam()}},
		Tools: []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{Name: "look", Description: anthropic.String("Looks."),
			InputSchema: anthropic.ToolInputSchemaParam{Properties: map[string]any{"place": map[string]any{"type": "string"}}}}}},
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hi"))},
	}
}

// checkAnthropic holds a message against rich with thinking.
func checkAnthropic(t *testing.T, m *anthropic.Message) {
	t.Helper()
	if len(m.Content) != 4 || m.StopReason != anthropic.StopReasonToolUse || m.Role != "assistant" {
		t.Fatalf("message %s", m.RawJSON())
	}
	if th := m.Content[0].AsThinking(); th.Thinking != "Let me see." || th.Signature == "" {
		t.Errorf("thinking %+v", th)
	}
	if m.Content[1].AsText().Text != rich().Text {
		t.Errorf("text %q", m.Content[1].AsText().Text)
	}
	var in struct {
		Place string
		N     float64
	}
	if err := json.Unmarshal(m.Content[2].AsToolUse().Input, &in); err != nil || in.Place != "Paris" || in.N != 1.5 {
		t.Errorf("input %s, %v", m.Content[2].AsToolUse().Input, err)
	}
	if u := m.Usage; u.InputTokens != 10 || u.CacheReadInputTokens != 20 || u.CacheCreationInputTokens != 5 || u.OutputTokens != 7 {
		t.Errorf("usage %+v", u)
	}
}

func TestAnthropicSDK(t *testing.T) {
	api := tidemarktest.NewAPI(t)
	client := anthropicClient(api)
	step := rich()
	step.Thinking = "Let me see."
	var first anthropic.Message
	t.Run("whole", func(t *testing.T) {
		api.Push(step)
		m, err := client.Messages.New(t.Context(), anthropicAsk())
		if err != nil {
			t.Fatal(err)
		}
		checkAnthropic(t, m)
		first = *m
	})
	t.Run("stream", func(t *testing.T) {
		api.Push(step)
		stream := client.Messages.NewStreaming(t.Context(), anthropicAsk())
		var m anthropic.Message
		for stream.Next() {
			if err := m.Accumulate(stream.Current()); err != nil {
				t.Fatal(err)
			}
		}
		if err := stream.Err(); err != nil {
			t.Fatal(err)
		}
		checkAnthropic(t, &m)
	})
	t.Run("results of tools", func(t *testing.T) {
		ask := anthropicAsk()
		ask.Messages = append(ask.Messages, first.ToParam(), anthropic.NewUserMessage(anthropic.NewToolResultBlock("c1", "sunny", false), anthropic.NewToolResultBlock("c2", "noon", true)))
		m, err := client.Messages.New(t.Context(), ask)
		if err != nil || m.Content[0].Text != "Done." {
			t.Fatalf("%v, %v", m, err)
		}
		calls := api.Calls()
		if got := calls[len(calls)-1]; got.System != "Be kind." || len(got.Messages) != 3 || len(got.Tools) != 1 {
			t.Errorf("recorded %+v", got)
		}
	})
	t.Run("counting and models", func(t *testing.T) {
		n, err := client.Messages.CountTokens(t.Context(), anthropic.MessageCountTokensParams{Model: "m", Messages: anthropicAsk().Messages})
		if err != nil || n.InputTokens < 1 {
			t.Errorf("%+v, %v", n, err)
		}
		models, err := client.Models.List(t.Context(), anthropic.ModelListParams{})
		if err != nil || len(models.Data) != 1 || models.Data[0].ID != tidemarktest.APIModel {
			t.Errorf("%+v, %v", models, err)
		}
	})
	t.Run("errors", func(t *testing.T) {
		again := http.Header{"Retry-After-Ms": {"1"}}
		api.Push(tidemarktest.Step{Status: 529, Header: again}, tidemarktest.Step{Text: "second try"})
		if m, err := client.Messages.New(t.Context(), anthropicAsk()); err != nil || m.Content[0].Text != "second try" {
			t.Errorf("overloaded once: %v, %v", m, err)
		}
		api.SetWindow(5)
		_, err := client.Messages.New(t.Context(), anthropicAsk())
		api.SetWindow(0)
		var e *anthropic.Error
		if !errors.As(err, &e) || e.StatusCode != 400 || e.RequestID == "" {
			t.Errorf("overflow: %v", err)
		}
		api.Push(tidemarktest.Step{Text: "half of it", MidError: "overloaded_error"})
		stream := client.Messages.NewStreaming(t.Context(), anthropicAsk())
		for stream.Next() {
		}
		if stream.Err() == nil {
			t.Error("an error after 200 is not seen")
		}
	})
}

func openaiClient(api *tidemarktest.API) openai.Client {
	return openai.NewClient(openaioption.WithAPIKey("k"), openaioption.WithBaseURL(api.URL+"/v1"), openaioption.WithMaxRetries(1))
}

func openaiAsk() openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:         "m",
		Messages:      []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("Be kind."), openai.UserMessage("hi")},
		Tools:         []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: "look", Parameters: openai.FunctionParameters{"type": "object"}})},
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	}
}

// checkOpenAI holds a completion against rich.
func checkOpenAI(t *testing.T, c *openai.ChatCompletion) {
	t.Helper()
	if len(c.Choices) != 1 || c.Choices[0].FinishReason != "tool_calls" {
		t.Fatalf("completion %+v", c)
	}
	m := c.Choices[0].Message
	if m.Content != rich().Text || len(m.ToolCalls) != 2 || m.ToolCalls[0].ID != "c1" || m.ToolCalls[0].Function.Arguments != rich().Calls[0].Input || m.ToolCalls[1].Function.Name != "now" {
		t.Errorf("message %+v", m)
	}
	if u := c.Usage; u.PromptTokens != 35 || u.PromptTokensDetails.CachedTokens != 20 || u.CompletionTokens != 7 {
		t.Errorf("usage %+v", u)
	}
}

func TestOpenAISDK(t *testing.T) {
	api := tidemarktest.NewAPI(t)
	client := openaiClient(api)
	var first openai.ChatCompletion
	t.Run("whole", func(t *testing.T) {
		api.Push(rich())
		ask := openaiAsk()
		ask.StreamOptions = openai.ChatCompletionStreamOptionsParam{}
		c, err := client.Chat.Completions.New(t.Context(), ask)
		if err != nil {
			t.Fatal(err)
		}
		checkOpenAI(t, c)
		first = *c
	})
	t.Run("stream", func(t *testing.T) {
		api.Push(rich())
		stream := client.Chat.Completions.NewStreaming(t.Context(), openaiAsk())
		var acc openai.ChatCompletionAccumulator
		for stream.Next() {
			if !acc.AddChunk(stream.Current()) {
				t.Fatalf("a chunk does not fit: %s", stream.Current().RawJSON())
			}
		}
		if err := stream.Err(); err != nil {
			t.Fatal(err)
		}
		checkOpenAI(t, &acc.ChatCompletion)
	})
	t.Run("results of tools", func(t *testing.T) {
		ask := openaiAsk()
		ask.StreamOptions = openai.ChatCompletionStreamOptionsParam{}
		ask.Messages = append(ask.Messages, first.Choices[0].Message.ToParam(), openai.ToolMessage("sunny", "c1"), openai.ToolMessage("noon", "c2"))
		if _, err := client.Chat.Completions.New(t.Context(), ask); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("models and errors", func(t *testing.T) {
		models, err := client.Models.List(t.Context())
		if err != nil || len(models.Data) != 1 {
			t.Errorf("%+v, %v", models, err)
		}
		api.Push(tidemarktest.Step{Status: 429, Header: http.Header{"Retry-After-Ms": {"1"}}}, tidemarktest.Step{Text: "second try"})
		if c, err := client.Chat.Completions.New(t.Context(), openaiAsk()); err != nil || c.Choices[0].Message.Content != "second try" {
			t.Errorf("a rate limit once: %v, %v", c, err)
		}
		api.SetWindow(5)
		_, err = client.Chat.Completions.New(t.Context(), openaiAsk())
		var e *openai.Error
		if !errors.As(err, &e) || e.StatusCode != 400 || e.Code != "context_length_exceeded" {
			t.Errorf("overflow: %v", err)
		}
	})
}
