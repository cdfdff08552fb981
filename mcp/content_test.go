package mcp

import (
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// TestResultReadsWhatItCan: a result is worth its text, whatever else is in it or said about it.
func TestResultReadsWhatItCan(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, raw, want string
		failed          bool
	}{
		{"a part of another type", `{"content":[{"type":"table","data":{"a":1}},{"type":"text","text":"found"}]}`, `[a part of the type table, which is not known here] {"type":"table","data":{"a":1}}|found`, false},
		{"a part that is a text", `{"content":["found"]}`, "found", false},
		{"a content that is a text", `{"content":"found"}`, "found", false},
		{"a content that is a part", `{"content":{"type":"text","text":"found"}}`, "found", false},
		{"a text that is a number", `{"content":[{"type":"text","text":12.50}]}`, "12.50", false},
		{"fields in another form", `{"content":[{"type":"text","text":"found"}],"isError":"yes","resultType":7}`, "found", false},
		{"an error", `{"content":[{"type":"text","text":"lost"}],"isError":true}`, "lost", true},
		{"nothing", `{"content":[null]}`, "", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b, err := Result("c1", []byte(row.raw))
			if err != nil {
				t.Fatal(err)
			}
			var texts []string
			for _, c := range b.Content {
				texts = append(texts, c.Text)
			}
			if got := strings.Join(texts, "|"); got != row.want || b.IsError != row.failed || b.Type != tidemark.TypeToolResult {
				t.Errorf("%q, is an error: %v", got, b.IsError)
			}
		})
	}
}

// TestUndecodable: a part whose bytes cannot be decoded does not take the others with it.
func TestUndecodable(t *testing.T) {
	for part, want := range map[string]string{
		`{"type":"image","mimeType":"image/png","data":"@@@"}`:            "[image, image/png",
		`{"type":"audio","mimeType":"audio/wav","data":"@@@"}`:            "[audio, audio/wav",
		`{"type":"resource","resource":{"uri":"file:///a","blob":"@@@"}}`: "[file file:///a",
	} {
		b, err := Result("c1", []byte(`{"content":[{"type":"text","text":"found"},`+part+`]}`))
		if err != nil || len(b.Content) != 2 || b.Content[0].Text != "found" || !strings.Contains(b.Content[1].Text, want) || strings.Contains(b.Content[1].Text, "@@@") {
			t.Errorf("%s: %v, %s", part, err, b.AppendJSON(nil))
		}
	}
}
