package trim

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/trim/logtest"
)

// FuzzTrim: whatever a log holds, no text is lost, what comes out follows the rules, can be undone, and is trimmed.
func FuzzTrim(f *testing.F) {
	for _, c := range cases {
		f.Add([]byte(strings.Join(c.in, "\n")), uint8(0))
	}
	for seed := range uint64(4) {
		var b bytes.Buffer
		if err := logtest.Write(&b, logtest.Options{Seed: seed, Bytes: 4000, Hostile: true, Compactions: int(seed % 2)}); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes()[:min(b.Len(), 60_000)], uint8(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte, how uint8) {
		laws(t, in, Options{Threshold: int(how) * 10, How: strings.Repeat("how ", int(how%3))})
	})
}
