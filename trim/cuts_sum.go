package trim

import (
	"fmt"
	"hash/crc32"

	"github.com/cespare/xxhash/v2"
)

// sum64 is XXH64 with seed 0 (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md). Its zero value is
// usable.
type sum64 struct {
	d     xxhash.Digest
	n     int64 // bytes so far
	begun bool
}

// add takes more bytes.
func (s *sum64) add(p []byte) {
	if !s.begun {
		s.d.Reset()
		s.begun = true
	}
	s.n += int64(len(p))
	_, _ = s.d.Write(p) // it never fails
}

// sum returns the sum of all that was added.
func (s *sum64) sum() uint64 {
	if !s.begun {
		s.d.Reset()
		s.begun = true
	}
	return s.d.Sum64()
}

func sumText(sum uint64) string { return fmt.Sprintf("%016x", sum) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func crc(p []byte) uint32 { return crc32.Checksum(p, castagnoli) }
