package tidemark_test

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// What a client sent comes out as it went in, whatever we know of it.
func ExampleMessage() {
	var m tidemark.Message
	err := json.Unmarshal([]byte(`{"role":"user","content":[{"type":"text","text":"Look:"},{"type":"hologram","depth":1.0}]}`), &m)
	fmt.Println(err, m.Role, len(m.Content), m.PlainText())
	fmt.Println(string(m.AppendJSON(nil)))
	// Output:
	// <nil> user 2 Look:
	// {"role":"user","content":[{"type":"text","text":"Look:"},{"type":"hologram","depth":1.0}]}
}

func ExampleNewText() {
	fmt.Println(string(tidemark.NewText(tidemark.User, "Hello <you>").AppendJSON(nil)))
	// Output: {"role":"user","content":"Hello <you>"}
}

func ExampleToolUse() {
	call := tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("toolu_1", "memory_search", []byte(`{"query":"tea"}`))}}
	answer := tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult("toolu_1", "She likes it green.", false)}}
	fmt.Println(call.Calls(), answer.Results())
	fmt.Println(string(answer.AppendJSON(nil)))
	// Output:
	// [toolu_1] [toolu_1]
	// {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"She likes it green."}]}
}

// The chain finds a conversation again although the client moved its cache marker.
func ExampleChain() {
	var first, again tidemark.Message
	_ = json.Unmarshal([]byte(`{"role":"user","content":[{"type":"text","text":"Hi","cache_control":{"type":"ephemeral"}}]}`), &first)
	_ = json.Unmarshal([]byte(`{"role":"user","content":"Hi"}`), &again)
	fmt.Println(tidemark.Chain("", first) == tidemark.Chain("", again))
	fmt.Println(tidemark.Chain("", first) == tidemark.Chain("", tidemark.NewText(tidemark.User, "Ho")))
	// Output:
	// true
	// false
}

func ExampleCheck() {
	call := tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("c1", "look", nil)}}
	fmt.Println(tidemark.Check([]tidemark.Message{tidemark.NewText(tidemark.User, "Look"), call, tidemark.NewText(tidemark.User, "And?")}))
	// Output: message 2: call "c1" is not answered
}

func ExampleParseKey() {
	for _, s := range []string{"main", "Garden", "agent:work:whatsapp:dm:+49170#draft", "agent:work"} {
		k, err := tidemark.ParseKey(s)
		if errors.Is(err, tidemark.ErrInvalid) {
			fmt.Println("no key:", s)
			continue
		}
		fmt.Println(k, "of", k.Agent(), "local:", k.Local())
	}
	// Output:
	// agent:main:main of main local: true
	// agent:main:local:dm:garden of main local: true
	// agent:work:whatsapp:dm:+49170#draft of work local: false
	// no key: agent:work
}

func ExampleEstimateText() {
	fmt.Println(tidemark.EstimateText("A sentence of forty-three characters, that."))
	// Output: 13
}

func ExampleUsage_Context() {
	u := tidemark.Usage{Input: 12, CacheRead: 30_000, CacheCreation: 400, Output: 250}
	fmt.Println(u.Context())
	// Output: 30662
}

func ExampleAPIError() {
	err := fmt.Errorf("call model: %w", &tidemark.APIError{Class: tidemark.ClassRate, Status: 429, Type: "rate_limit_error", Message: "slow down"})
	var api *tidemark.APIError
	if errors.As(err, &api) && api.Transient() {
		fmt.Println(err)
	}
	// Output: call model: model API: rate (429 rate_limit_error): slow down
}

// echo is a model that repeats what it is told.
type echo struct{}

func (echo) Stream(_ context.Context, req tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	return func(yield func(tidemark.Delta, error) bool) {
		text := req.Messages[len(req.Messages)-1].PlainText()
		if yield(tidemark.Delta{Text: text}, nil) {
			yield(tidemark.Delta{Reply: &tidemark.Reply{Message: tidemark.NewText(tidemark.Assistant, text)}}, nil)
		}
	}
}

func ExampleComplete() {
	reply, err := tidemark.Complete(context.Background(), echo{}, tidemark.Request{Messages: []tidemark.Message{tidemark.NewText(tidemark.User, "Hello?")}})
	fmt.Println(reply.Message.PlainText(), err)
	// Output: Hello? <nil>
}

// The note stands behind the last message of a call and is not stored.
func ExampleRequest_Sent() {
	req := tidemark.Request{Messages: []tidemark.Message{tidemark.NewText(tidemark.User, "What day is it?")}, Note: "[It is Monday.]"}
	fmt.Println(string(req.Sent()[0].AppendJSON(nil)))
	fmt.Println(string(req.Messages[0].AppendJSON(nil)))
	// Output:
	// {"role":"user","content":[{"type":"text","text":"What day is it?"},{"type":"text","text":"[It is Monday.]"}]}
	// {"role":"user","content":"What day is it?"}
}
