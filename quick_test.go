package tidemark

import (
	"reflect"
	"strings"
	"testing"
)

// TestQuickMessage holds which forms go the short way, and that it comes to the same as the long one.
func TestQuickMessage(t *testing.T) {
	for _, row := range []struct {
		name, data string
		quick      bool
	}{
		{"a string", `{"role":"user","content":"the tide"}`, true},
		{"an empty string", `{"role":"user","content":""}`, true},
		{"one block", `{"role":"assistant","content":[{"type":"text","text":"rises"}]}`, true},
		{"escapes", `{"role":"user","content":"a \"b\" \\ \n \u00e9 \ud83d\ude00 \/"}`, true},
		{"a lone surrogate", `{"role":"user","content":"\ud800"}`, true},
		{"other scripts", `{"role":"assistant","content":[{"type":"text","text":"潮 ✓ \u2028"}]}`, true},
		{"a bad escape", `{"role":"user","content":"\x"}`, false},
		{"an escape cut off", `{"role":"user","content":"\`, false},
		{"a bare line break", "{\"role\":\"user\",\"content\":\"a\nb\"}", false},
		{"bytes that are not UTF-8", "{\"role\":\"user\",\"content\":\"\xff\"}", false},
		{"cut off", `{"role":"user","content":"the`, false},
		{"more behind it", `{"role":"user","content":"a"} `, false},
		{"a third field", `{"role":"user","content":"a","x":1}`, false},
		{"spaces", `{"role": "user", "content": "a"}`, false},
		{"instructions", `{"role":"system","content":"a"}`, true},
		{"another role", `{"role":"function","content":"a"}`, false},
		{"a longer role", `{"role":"users","content":"a"}`, false},
		{"two blocks", `{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`, false},
		{"a block with more", `{"role":"user","content":[{"type":"text","text":"a","cache_control":null}]}`, false},
		{"no content", `{"role":"user","content":null}`, false},
		{"nothing", ``, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, ok := quickMessage([]byte(row.data))
			if ok != row.quick {
				t.Errorf("quick: %v, want %v", ok, row.quick)
			}
			sameAsLong(t, []byte(row.data))
		})
	}
}

// sameAsLong holds a quick decoding against the long one, field by field, and that no byte is shared.
func sameAsLong(t *testing.T, data []byte) {
	t.Helper()
	quick, ok := quickMessage(data)
	if !ok {
		return
	}
	var long Message
	if err := long.decode(data); err != nil {
		t.Fatalf("decoded quickly, but it is bad: %v", err)
	}
	if !reflect.DeepEqual(quick, long) {
		t.Fatalf("quick %#v\nlong  %#v", quick, long)
	}
	before := string(quick.AppendJSON(nil))
	clear(data)
	if after := string(quick.AppendJSON(nil)); after != before {
		t.Fatalf("it changed with the bytes it was decoded from: %q, %q", before, after)
	}
}

// FuzzQuickMessage: what is decoded quickly is the same as decoded the long way.
func FuzzQuickMessage(f *testing.F) {
	for _, s := range []string{`{"role":"user","content":"a\n"}`, `{"role":"assistant","content":[{"type":"text","text":"b"}]}`, `{"role":"user","content":"` + strings.Repeat("é", 40) + `"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) { sameAsLong(t, data) })
}
