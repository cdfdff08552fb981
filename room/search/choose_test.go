package search

import (
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/recall"
)

// TestCallsOf: two calls are one when their tool and input are, whatever the order of the keys.
func TestCallsOf(t *testing.T) {
	payload := func(input string) []byte {
		m := tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("c1", "read", []byte(input)), tidemark.ToolUse("c2", "read", []byte(`{}`))}}
		return m.AppendJSON(nil)
	}
	a, b, c := callsOf(payload(`{"path":"x","n":1}`), []string{"c1"}), callsOf(payload(`{ "n": 1, "path": "x" }`), []string{"c1"}), callsOf(payload(`{"path":"y","n":1}`), []string{"c1"})
	if len(a) != 1 || !slices.Equal(a, b) || slices.Equal(a, c) {
		t.Errorf("%q %q %q", a, b, c)
	}
	if callsOf(nil, []string{"c1"}) != nil || callsOf([]byte(`{`), []string{"c1"}) != nil {
		t.Error("of no message")
	}
}

func TestKindOf(t *testing.T) {
	for _, row := range []struct {
		role           tidemark.Role
		calls, results int
		want           recall.Kind
	}{
		{tidemark.User, 0, 0, recall.UserMessage}, {tidemark.User, 0, 1, recall.ToolResult},
		{tidemark.Assistant, 1, 0, recall.ToolCall}, {tidemark.Assistant, 0, 0, recall.AgentMessage}, {"", 0, 0, recall.System},
	} {
		if got := kindOf(row.role, row.calls, row.results); got != row.want {
			t.Errorf("%+v: %s", row, got)
		}
	}
}

// TestExcerpt: what stands far apart in a long text is ranked together, within the bound, in order.
func TestExcerpt(t *testing.T) {
	long := strings.Repeat("filler words ", 500)
	text := long + "the KEY_17 is here " + long + "and the anchor there " + long
	got := excerpt(text, -1, []string{"anchor", "key_17", "absent"}, 1200)
	if len(got) > 1300 || !strings.Contains(got, "KEY_17 is here") || !strings.Contains(got, "anchor there") || strings.Index(got, "KEY_17") > strings.Index(got, "anchor") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
	if excerpt("short", -1, nil, 100) != "short" {
		t.Error("a short text is left as it is")
	}
	for _, text := range []string{strings.Repeat("İ", 900), strings.Repeat("東京", 900), strings.Repeat("\xff", 3000)} {
		if got := excerpt(text, -1, []string{"東京", "i"}, 1000); len(got) > 1100 {
			t.Errorf("%d bytes of %d", len(got), len(text))
		}
	}
}

// TestAskedFirst: of a long query the terms that name something are looked up.
func TestAskedFirst(t *testing.T) {
	terms := make([]string, 60)
	for i := range terms {
		terms[i] = "word"
	}
	terms[50] = "src/net/conn_17.go"
	if got := askedFirst(terms); len(got) != askTerms || got[0] != terms[50] {
		t.Errorf("%q", got)
	}
}
