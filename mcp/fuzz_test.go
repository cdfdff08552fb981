package mcp

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/sse"
)

// FuzzAnswer: whatever a server answers, it is a message or an error that can be told apart; a message that answers a
// request of ours is no request of its own.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"a"}]}}`, `{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"no"}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress"}`, `{"jsonrpc":"2.0","id":"7","method":"ping"}`, `[]`, `null`, `{}`, `{"jsonrpc":"2.0","id":7}`, `{"jsonrpc":"2.0","id":null,"error":{}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decode(data)
		if err != nil {
			if tidemark.Sentinel(err) == nil {
				t.Errorf("%v wraps none of our errors", err)
			}
			return
		}
		if m.answers(7) && (m.Method != "" || m.answers(8) && string(m.ID) == "7") {
			t.Errorf("%s answers what it should not", data)
		}
		if m.Error != nil && tidemark.Sentinel(m.Error.fault("secret")) == nil {
			t.Errorf("the error of %s can not be told apart", data)
		}
	})
}

// FuzzResult: whatever a result holds, it becomes a block that model APIs take, or an error.
func FuzzResult(f *testing.F) {
	for _, s := range []string{
		`{"content":[{"type":"text","text":"a"},{"type":"image","mimeType":"image/png","data":"aGk="},{"type":"audio"},{"type":"resource","resource":{"uri":"a","text":"b"}},{"type":"x"}],"isError":true}`,
		`{"structuredContent":{"a":1}}`, `{"resultType":"input_required"}`, `{"content":[{"type":"image","mimeType":"image/png\"","data":"aGk="}]}`, `{"content":null}`, `[]`, `{"content":[{"type":"resource","resource":{"mimeType":"image/gif","blob":"R0lG"}}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := Result("call_1", data)
		if err != nil {
			if tidemark.Sentinel(err) == nil {
				t.Errorf("%v wraps none of our errors", err)
			}
			return
		}
		raw := b.AppendJSON(nil)
		var again tidemark.Block
		if !json.Valid(raw) || json.Unmarshal(raw, &again) != nil || again.ToolUseID != "call_1" || len(again.Content) != len(b.Content) {
			t.Fatalf("%s becomes %s", data, raw)
		}
		for _, c := range again.Content {
			if c.Type != tidemark.TypeText && c.Type != tidemark.TypeImage {
				t.Errorf("a block of the type %q", c.Type)
			}
		}
	})
}

// FuzzEvents: a stream is read in bounded pieces, and however its bytes come the events are the same.
func FuzzEvents(f *testing.F) {
	for _, s := range []string{"data: a\n\n", "data: a\r\ndata: b\r\n\r\n", ": c\n\nevent: x\ndata:{}\n\n", "data: cut", "\n\n\n", "data:\n\n", "data: " + strings.Repeat("a", 5000) + "\n\n"} {
		f.Add([]byte(s))
	}
	const most = 1024
	all := func(r io.Reader) (out []string, err error) {
		e := sse.NewReader(r)
		e.Most, e.Whole = most, true
		for {
			ev, err := e.Next()
			if err != nil {
				return out, err
			}
			if len(ev.Data) > 0 {
				out = append(out, string(ev.Data))
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := all(bytes.NewReader(data))
		slow, slowErr := all(oneByOne{bytes.NewReader(data)})
		if strings.Join(got, "\x00") != strings.Join(slow, "\x00") || len(got) != len(slow) || errors.Is(err, tidemark.ErrTooLarge) != errors.Is(slowErr, tidemark.ErrTooLarge) {
			t.Errorf("%q: %q, byte by byte %q", data, got, slow)
		}
		for _, e := range got {
			if len(e) > most || e == "" {
				t.Errorf("an event of %d bytes", len(e))
			}
		}
	})
}

// oneByOne reads a byte at a time.
type oneByOne struct{ r io.Reader }

func (o oneByOne) Read(p []byte) (int, error) { return o.r.Read(p[:min(1, len(p))]) }

func TestHeaderValue(t *testing.T) {
	for in, want := range map[string]string{"": "", "eu-west": "eu-west", "größe": "=?base64?Z3LDtsOfZQ==?=", " a": "=?base64?IGE=?=", "=?base64?x?=": "=?base64?PT9iYXNlNjQ/eD89?=", "a\r\nX: b": "=?base64?YQ0KWDogYg==?="} {
		if got := headerValue(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestBoundHeaders(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"integer","x-mcp-header":"B"}}},"c":{"type":"object","x-mcp-header":"C"},"d":{"type":"string","x-mcp-header":"no name"}}}`)
	all := boundHeaders(schema, nil)
	if len(all) != 1 || all[0].header != "Mcp-Param-B" {
		t.Fatalf("%+v", all)
	}
	for in, want := range map[string]string{`{"a":{"b":7}}`: "7", `{"a":{"b":"x y"}}`: "x y", `{"a":{"b":null}}`: "", `{"a":[]}`: "", `{}`: "", `{"a":{"b":{}}}`: ""} {
		if got := all[0].value(json.RawMessage(in)); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}
