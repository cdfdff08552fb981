package json

import (
	stdjson "encoding/json"
	"testing"
)

// TestDecodeAny: what is accepted is one value, with white space at most around it.
func TestDecodeAny(t *testing.T) {
	for _, row := range []struct {
		name, data string
		ok         bool
	}{
		{"a list", `["a"]`, true},
		{"white space around it", " \t\r\n[1] \t\r\n", true},
		{"null", `null`, true},
		{"a long number", `123456789012345678901234567890`, true},
		{"a second value", `["a"], "b"`, false},
		{"a second value without a comma", `["a"]["b"]`, false},
		{"a word behind it", `["a"] oops`, false},
		{"a bracket too many", `["a"]]`, false},
		{"a brace too many", `{}}`, false},
		{"a NUL behind it", "[]\x00", false},
		{"white space that is none in JSON", "[]\u00a0", false},
		{"a comma behind it", `[],`, false},
		{"cut off", `["a"`, false},
		{"nothing", ` `, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			v, err := DecodeAny([]byte(row.data))
			if (err == nil) != row.ok || row.ok != stdjson.Valid([]byte(row.data)) || err != nil && v != nil {
				t.Errorf("%s: %v, %v", row.data, v, err)
			}
		})
	}
}
