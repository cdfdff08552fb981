package provider

import (
	"bytes"
	"fmt"
	"testing"

	tidemark "github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/sse"
)

// longStream is a reply of 20,000 deltas, some 2 to 4 MB.
func longStream(dialect string) []byte {
	var b bytes.Buffer
	if dialect == "anthropic" {
		b.WriteString(`event: message_start` + "\n" + `data: {"type":"message_start","message":{"id":"m","model":"m","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}` + "\n\n")
		b.WriteString(`event: content_block_start` + "\n" + `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n")
		for i := range 20_000 {
			fmt.Fprintf(&b, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" word%d\"}}\n\n", i)
		}
		b.WriteString(`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}` + "\n\n" + `data: {"type":"message_stop"}` + "\n\n")
		return b.Bytes()
	}
	for i := range 20_000 {
		fmt.Fprintf(&b, "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1741570283,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word%d\"},\"logprobs\":null,\"finish_reason\":null}],\"usage\":null}\n\n", i)
	}
	b.WriteString(`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n")
	return b.Bytes()
}

func BenchmarkDecodeStream(b *testing.B) {
	for _, dialect := range []string{"anthropic", "openai"} {
		b.Run(dialect, func(b *testing.B) {
			data := longStream(dialect)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				reply, _, err := decode(bytes.NewReader(data), decoderFor(dialect), func(tidemark.Delta, error) bool { return true })
				if err != nil || len(reply.Message.Content) != 1 {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSSEReader(b *testing.B) {
	data := longStream("anthropic")
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if got, _ := countEvents(data); got != 20_004 {
			b.Fatal(got)
		}
	}
}

func countEvents(data []byte) (int, error) {
	s := sse.NewReader(bytes.NewReader(data))
	for n := 0; ; n++ {
		if _, err := s.Next(); err != nil {
			return n, err
		}
	}
}

// BenchmarkBody writes the request of a long conversation, which is done before each call.
func BenchmarkBody(b *testing.B) {
	req := sample(b)
	req.Messages = growth(b, 900)
	for name, f := range map[string]func() []byte{"anthropic": func() []byte { return (&Anthropic{}).body(req) }, "openai": func() []byte { return (&OpenAI{}).body(req, true) }} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(f())))
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
		})
	}
}
