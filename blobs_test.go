package tidemark_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

func TestCheckMetadata(t *testing.T) {
	for _, tc := range []struct {
		name, key, value string
		want             error
	}{
		{"plain", "sessionKey", "agent:main:main", nil},
		{"with digits", "part2Sha256", "0a", nil},
		{"empty value", "peer", "", nil},
		{"spaces inside", "title", "a b", nil},
		{"empty key", "", "x", tidemark.ErrInvalid},
		{"upper camel case", "SessionKey", "x", tidemark.ErrInvalid},
		{"dash", "session-key", "x", tidemark.ErrInvalid},
		{"underscore", "session_key", "x", tidemark.ErrInvalid},
		{"digit first", "2nd", "x", tidemark.ErrInvalid},
		{"not ASCII", "title", "größer", tidemark.ErrInvalid},
		{"line end", "title", "a\nb", tidemark.ErrInvalid},
		{"outer space", "title", " a", tidemark.ErrInvalid},
		{"too long", "title", strings.Repeat("a", tidemark.MaxMetadata), tidemark.ErrTooLarge},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := tidemark.CheckMetadata(map[string]string{tc.key: tc.value}); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}
