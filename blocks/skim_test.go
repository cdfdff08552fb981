package blocks_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/blocks"
	"github.com/tidemark-ai/tidemark/room"
)

// TestSkim: a message that is skimmed has the text that it has decoded whole, and the forms that a log mostly has are.
func TestSkim(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"tide", "\n", "\"", "\\", "é", "\u2028", "<system-reminder>x</system-reminder>", " ", "}", "{", "]", "\t", "\x01", ","}
	text := func() string {
		var b strings.Builder
		for range rng.IntN(8) {
			b.WriteString(pieces[rng.IntN(len(pieces))])
		}
		return b.String()
	}
	skimmed := 0
	for range 20_000 {
		var content []tidemark.Block
		for range 1 + rng.IntN(3) {
			input := tidemark.NewText(tidemark.User, text()).AppendJSON(nil)
			content = append(content, []tidemark.Block{tidemark.Text(text()), tidemark.ToolUse("i"+text(), "read", input), tidemark.ToolUse("i", room.RecallTool, input),
				tidemark.ToolResult("i", text(), rng.IntN(2) == 0), {Type: tidemark.TypeThinking, Text: text()},
				{Type: tidemark.TypeToolResult, ToolUseID: "i", Content: []tidemark.Block{tidemark.Text(text()), tidemark.Text(text())}}}[rng.IntN(6)])
		}
		m := tidemark.Message{Role: tidemark.Assistant, Content: content}
		if rng.IntN(4) == 0 {
			m = tidemark.NewText(tidemark.User, text())
		}
		raw := m.AppendJSON(nil)
		got, ok := blocks.Skim(raw)
		if !ok {
			continue
		}
		skimmed++
		whole, err := tidemark.Entry{Payload: raw}.Message()
		if err != nil {
			t.Fatal(err)
		}
		have, _ := room.TextAt(got, 0, room.WordsBytes)
		if want, _ := room.TextAt(whole, 0, room.WordsBytes); have != want || got.Role != whole.Role {
			t.Fatalf("%s: %s says %q, want %s %q", raw, got.Role, have, whole.Role, want)
		}
	}
	if skimmed < 19_000 {
		t.Errorf("%d of 20,000 were skimmed, want nearly all", skimmed)
	}
	for raw, want := range map[string]string{
		`[{"tool_use_id":"1","type":"tool_result","content":"tide","is_error":false}]`:                                               "tide",
		`[{"type":"tool_result","content":[{"type":"text","text":"tide"}],"tool_use_id":"1"},{"type":"text","text":"ebb"}]`:          "tide\n\nebb",
		`[{"type":"tool_use","id":"1","name":"read","input":{"a":"}"},"caller":{"type":"direct"}}]`:                                  `read {"a":"}"}`,
		`[{"type":"text","text":"ebb","cache_control":{"type":"ephemeral"}},{"type":"thinking","thinking":"hm","signature":"c2ln"}]`: "ebb",
	} {
		m, ok := blocks.Skim([]byte(`{"role":"user","content":` + raw + `}`))
		whole, err := tidemark.Entry{Payload: []byte(`{"role":"user","content":` + raw + `}`)}.Message()
		have, _ := room.TextAt(m, 0, room.WordsBytes)
		if had, _ := room.TextAt(whole, 0, room.WordsBytes); !ok || err != nil || strings.TrimSpace(have) != want || have != had {
			t.Errorf("%s: %v %q, %q decoded", raw, ok, have, had)
		}
	}
	deep := `{"type":"text","text":"x"}`
	for range 9 {
		deep = `{"type":"tool_result","tool_use_id":"1","content":[` + deep + `]}`
	}
	for _, odd := range []string{``, `{"role":"user","content":[` + deep + `]}`, `{"role":"user","content":[{"type":"text","Text":"x"}]}`, `{}`, `{"role":"user","content":`, `{"role":"system","content":"x"}`, `{"role":"user","content":"x"} `, `{"role":"user","content":[]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"image","source":{}}]}]}`, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[]}]}`,
		`{"role":"user","content":[{"type":"text","text":"x","text":"y"}]}`, `{"role":"user","content":[{"type":"tool_use","id":"1","name":"n","input":1}]}`,
		"{\"role\":\"user\",\"content\":[{\"type\":\"tool_use\",\"id\":\"1\",\"name\":\"n\",\"input\":{\n}}]}"} {
		if m, ok := blocks.Skim([]byte(odd)); ok {
			t.Errorf("%s: skimmed as %v", odd, m)
		}
	}
}
