package gz_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/gz"
)

// TestZip: what is packed comes back when its size is known, and nothing else does.
func TestZip(t *testing.T) {
	raw := []byte(strings.Repeat("tide ", 3000))
	packed, err := gz.Zip(raw)
	if err != nil || len(packed) >= len(raw) {
		t.Fatalf("%d bytes, %v", len(packed), err)
	}
	z := &gzip.Reader{}
	for range 2 {
		if got, err := gz.Unzip(z, packed, len(raw)); err != nil || !bytes.Equal(got, raw) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	}
	flipped := bytes.Clone(packed)
	flipped[len(flipped)-5] ^= 1 // of the checksum
	for name, c := range map[string]struct {
		data []byte
		size int
	}{
		"too small a size": {packed, len(raw) - 1}, "too large a size": {packed, len(raw) + 1}, "another checksum": {flipped, len(raw)},
		"cut off": {packed[:len(packed)-9], len(raw)}, "cut in its end": {packed[:len(packed)-1], len(raw)}, "nothing": {nil, 0}, "no gzip": {raw, len(raw)},
	} {
		if got, err := gz.Unzip(z, c.data, c.size); !errors.Is(err, tidemark.ErrUnavailable) || got != nil {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}
