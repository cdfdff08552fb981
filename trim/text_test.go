package trim

import (
	"fmt"
	"testing"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// TestUnescape: what a string means is what encoding/json says, but for surrogates that are alone, which stay apart.
func TestUnescape(t *testing.T) {
	for _, raw := range []string{``, `a`, `\b\f\n\r\t\/\\\"`, `\u00e9\u00E9`, `\ud83d\ude80`, `\ud800\udc00\udbff\udfff`, `x\ud83d\ude80y\u20ac`, `\ud7ff\ue000`, `é\u0041\u005c`} {
		var want string
		if err := json.Unmarshal([]byte(`"`+raw+`"`), &want); err != nil {
			t.Fatal(err)
		}
		if got := string(unescape(nil, []byte(raw))); got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
	for raw, want := range map[string]string{`\ud83d`: "\xed\xa0\xbd", `\ude80\ud83d`: "\xed\xba\x80\xed\xa0\xbd", `\ud83d\ud83d\ude80`: "\xed\xa0\xbd🚀", `\ud83dx`: "\xed\xa0\xbdx", `\ud83d\u0041`: "\xed\xa0\xbdA", `\udbff\ue000`: "\xed\xaf\xbf\ue000", `a\`: `a\`} {
		if got := string(unescape(nil, []byte(raw))); got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
}

// TestPreservedNames: lines that a compaction kept are named in a list, or in one of an object, whatever else is there.
func TestPreservedNames(t *testing.T) {
	for raw, want := range map[string]string{
		`["a","b"]`: "[a b]", `{"uuids":["a"]}`: "[a]", `{"messageUuids":["a","b"]}`: "[a b]", `{"messages":["c"]}`: "[c]", `{"uuids":[],"messages":["c"]}`: "[c]", `{"uuids":["a"],"messages":["c"]}`: "[a]",
		`{"uuids":5}`: "[]", `{"other":["a"]}`: "[]", `7`: "[]", `null`: "[]", `[1]`: "[]", `{}`: "[]",
	} {
		if got := fmt.Sprint((&preserved{Messages: []byte(raw)}).uuids()); got != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
}
