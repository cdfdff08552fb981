package provider

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	tidemark "github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// outcome is all that a reader sees of a stream.
type outcome struct {
	Text     string             `json:"text,omitempty"`
	Thinking string             `json:"thinking,omitempty"`
	Tools    []string           `json:"tools,omitempty"`
	Message  *tidemark.Message  `json:"message,omitempty"`
	Call     *tidemark.Call     `json:"call,omitempty"`
	Error    *tidemark.APIError `json:"error,omitempty"`
}

// decoderFor returns a fresh decoder of the dialect that a recorded stream's name begins with.
func decoderFor(name string) decoder {
	if strings.HasPrefix(name, "anthropic") {
		return &anthropicReply{key: "sk-test"}
	}
	n := 0
	req := tidemark.Request{Model: "m", Messages: []tidemark.Message{
		tidemark.NewText(tidemark.User, "hi"),
		{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("call_0", "a", nil)}},
		{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult("call_0", "ok", false)}},
	}}
	newID := func() string { n++; return fmt.Sprintf("NEW%d", n) }
	if strings.HasPrefix(name, "workersai") {
		return newWorkersAIReply(req, "sk-test", 64, newID)
	}
	return newOpenAIReply(req, "sk-test", newID)
}

// read decodes a stream as a provider does, without the network.
func read(name string, r io.Reader) outcome {
	var o outcome
	reply, _, err := decode(r, decoderFor(name), func(d tidemark.Delta, _ error) bool {
		o.Text += d.Text
		o.Thinking += d.Thinking
		if d.Tool != "" {
			o.Tools = append(o.Tools, d.Tool)
		}
		return true
	})
	if err != nil {
		a := &answer{parent: tBackground, ctx: tBackground}
		if !errors.As(workersaiError(a.fault(err)), &o.Error) {
			panic("not an *APIError: " + err.Error())
		}
		return o
	}
	o.Message, o.Call = &reply.Message, &reply.Call
	return o
}

func TestRecordedStreams(t *testing.T) {
	files, err := filepath.Glob("testdata/stream/*.sse")
	if err != nil || len(files) < 25 {
		t.Fatalf("%d recorded streams, %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".sse")
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			o := read(name, strings.NewReader(string(data)))
			got, err := json.MarshalIndent(o)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, strings.TrimSuffix(file, ".sse")+".json", append(got, '\n'))
			if o.Message != nil {
				mustReplay(t, *o.Message)
			}
			one, err := json.MarshalIndent(read(name, iotest.OneByteReader(strings.NewReader(string(data)))))
			if err != nil || string(one)+"\n" != string(got)+"\n" {
				t.Errorf("byte by byte the stream reads differently:\n%s", one)
			}
		})
	}
}

// mustReplay checks that a reply can stand in the next request.
func mustReplay(t *testing.T, m tidemark.Message) {
	t.Helper()
	msgs := []tidemark.Message{tidemark.NewText(tidemark.User, "hi"), m}
	next := tidemark.Message{Role: tidemark.User}
	for _, id := range m.Calls() {
		next.Content = append(next.Content, tidemark.ToolResult(id, "ok", false))
	}
	next.Content = append(next.Content, tidemark.Text("go on"))
	if err := tidemark.Check(append(msgs, next)); err != nil {
		t.Errorf("the reply cannot be sent again: %v", err)
	}
	raw := m.AppendJSON(nil)
	if !json.Valid(raw) || strings.ContainsAny(string(raw), "\r\n") {
		t.Errorf("the reply is not JSON on one line: %s", raw)
	}
	var again tidemark.Message
	if err := json.Unmarshal(raw, &again); err != nil || string(again.AppendJSON(nil)) != string(raw) {
		t.Errorf("the reply changes on its way: %v\n%s\n%s", err, raw, again.AppendJSON(nil))
	}
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (run with -update)", err)
	}
	if string(want) != string(got) {
		t.Errorf("%s:\n--- got\n%s--- want\n%s", file, got, want)
	}
}

var tBackground = context.Background()

// fuzzStream holds the law of the decoders: however the bytes are chunked, the outcome is the
// same, and a reply can be sent again.
func fuzzStream(f *testing.F, dialect string) {
	files, err := filepath.Glob("testdata/stream/" + dialect + "*.sse")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, []byte{3, 0, 7})
	}
	f.Fuzz(func(t *testing.T, data, sizes []byte) {
		whole := read(dialect, strings.NewReader(string(data)))
		parts := read(dialect, &tidemarktest.Chopped{R: strings.NewReader(string(data)), Sizes: sizes})
		a, errA := json.Marshal(whole)
		b, errB := json.Marshal(parts)
		if errA != nil || errB != nil || string(a) != string(b) {
			t.Fatalf("chunked by %v the stream reads differently (%v, %v):\n%s\n%s", sizes, errA, errB, a, b)
		}
		if whole.Message == nil {
			return
		}
		if raw := whole.Message.AppendJSON(nil); !json.Valid(raw) {
			t.Fatalf("the reply is not JSON: %s", raw)
		}
		if len(whole.Message.Content) == 0 || whole.Call.Stop == "" || whole.Call.Usage.Output < 0 {
			t.Fatalf("a reply without content or stop reason: %s", a)
		}
	})
}

func FuzzAnthropicStream(f *testing.F) { fuzzStream(f, "anthropic") }
func FuzzOpenAIStream(f *testing.F)    { fuzzStream(f, "openai") }
func FuzzWorkersAIStream(f *testing.F) { fuzzStream(f, "workersai") }
