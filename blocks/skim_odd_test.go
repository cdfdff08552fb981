package blocks

import (
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// TestSkimmedForms: only messages of the forms that a log mostly has are skimmed; any other is decoded whole.
func TestSkimmedForms(t *testing.T) {
	for name, c := range map[string]struct {
		raw  string
		want bool
	}{
		"a text":                    {`{"role":"user","content":"x"}`, true},
		"of the assistant":          {`{"role":"assistant","content":[{"type":"text","text":"x"}]}`, true},
		"content first":             {`{"content":"x","role":"user"}`, true},
		"a result of texts":         {`{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"x"}],"is_error":true}]}`, true},
		"of nobody":                 {`{"content":"x"}`, false},
		"of the system":             {`{"role":"system","content":"x"}`, false},
		"no content":                {`{"role":"user"}`, false},
		"a number":                  {`{"role":"user","content":5}`, false},
		"a list":                    {`[]`, false},
		"a role twice":              {`{"role":"user","role":"user","content":"x"}`, false},
		"a field of a block":        {`{"role":"user","content":"x","type":"text"}`, false},
		"a field of a message":      {`{"role":"user","content":[{"type":"text","text":"x","role":"user"}]}`, false},
		"a field of its own":        {`{"role":"user","content":[{"type":"text","text":"x","extra":1}]}`, false},
		"no type":                   {`{"role":"user","content":[{"text":"x"}]}`, false},
		"another type":              {`{"role":"user","content":[{"type":"image","text":"x"}]}`, false},
		"no UTF-8":                  {"{\"role\":\"user\",\"content\":\"\xff\"}", false},
		"is_error is a number":      {`{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"x","is_error":1}]}`, false},
		"is_error is a text":        {`{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"x","is_error":"true"}]}`, false},
		"cache_control is a number": {`{"role":"user","content":[{"type":"text","text":"x","cache_control":1}]}`, false},
		"a call in a result":        {`{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"tool_use","id":"1","name":"n","input":{}}]}]}`, false},
		"a result in a result":      {`{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"tool_result","tool_use_id":"2","content":"x"}]}]}`, false},
		"a space":                   {`{"role":"user", "content":"x"}`, false},
		"more behind it":            {`{"role":"user","content":"x"}{}`, false},
	} {
		m, ok := skim([]byte(c.raw))
		if ok != c.want || ok && (len(m.Content) != 1 || m.Role != tidemark.User && m.Role != tidemark.Assistant) {
			t.Errorf("%s: %v, %+v", name, ok, m)
		}
	}
	m, ok := skim([]byte(`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"1","name":"read","input":{"a":[1]},"caller":{"b":2}},{"type":"tool_result","tool_use_id":"1","content":"y"}]}`))
	if !ok || len(m.Content) != 3 || m.Content[0].Type != tidemark.TypeThinking || m.Content[0].Text != "" || m.Content[1].Name != "read" || string(m.Content[1].Input) != `{"a":[1]}` || m.Content[2].Content[0].Text != "y" {
		t.Errorf("%v %+v", ok, m)
	}
}
