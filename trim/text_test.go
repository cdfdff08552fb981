package trim

import (
	"fmt"
	"testing"
)

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
