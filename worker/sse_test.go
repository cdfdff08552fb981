package worker

import (
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/internal/sse"
)

// parseFrames reads server-sent events as the standard says.
func parseFrames(s string) (out [][2]string) {
	var name string
	var data []string
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	for _, line := range strings.Split(s, "\n") {
		switch field, value, _ := strings.Cut(line, ":"); {
		case line == "":
			if len(data) > 0 {
				out = append(out, [2]string{name, strings.Join(data, "\n")})
			}
			name, data = "", nil
		case field == "event":
			name = strings.TrimPrefix(value, " ")
		case field == "data":
			data = append(data, strings.TrimPrefix(value, " "))
		}
	}
	return out
}

func TestAppendFrame(t *testing.T) {
	for _, tc := range []struct{ name, event, data, want string }{
		{"plain", "text", `{"a":1}`, "event: text\ndata: {\"a\":1}\n\n"},
		{"empty", "done", "", "event: done\ndata: \n\n"},
		{"no name", "", "x", "data: x\n\n"},
		{"line feed", "text", "a\nb", "event: text\ndata: a\ndata: b\n\n"},
		{"CRLF", "text", "a\r\nb", "event: text\ndata: a\ndata: b\n\n"},
		{"CR", "text", "a\rb", "event: text\ndata: a\ndata: b\n\n"},
		{"ends with a break", "text", "a\n", "event: text\ndata: a\ndata: \n\n"},
		{"blank lines", "text", "a\n\n\nb", "event: text\ndata: a\ndata: \ndata: \ndata: b\n\n"},
		{"leading space", "text", " a", "event: text\ndata:  a\n\n"},
		{"looks like a field", "text", "a\nevent: done", "event: text\ndata: a\ndata: event: done\n\n"},
		{"break in the name", "te\nxt", "a", "event: text\ndata: a\n\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := string(sse.Append(nil, tc.event, tc.data)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// FuzzFrame: what a reader that obeys the standard gets is one event, whatever is in it.
func FuzzFrame(f *testing.F) {
	f.Add("text", "a\r\nb\n\nevent: x")
	f.Fuzz(func(t *testing.T, event, data string) {
		frames := parseFrames(string(sse.Append(nil, event, data)) + string(sse.Append(nil, "next", "{}")))
		want := strings.ReplaceAll(strings.ReplaceAll(data, "\r\n", "\n"), "\r", "\n")
		name := strings.NewReplacer("\r", "", "\n", "").Replace(event)
		if len(frames) != 2 || frames[0] != [2]string{name, want} || frames[1] != [2]string{"next", "{}"} {
			t.Fatalf("%q %q: %q", event, data, frames)
		}
	})
}
