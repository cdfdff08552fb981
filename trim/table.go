package trim

import (
	"fmt"

	"github.com/tidemark-ai/tidemark"
)

// table maps hashes that are not 0. It grows in small parts, so that it never holds twice what it needs for long.
type table[V any] struct {
	shards [64]shard[V]
}

type shard[V any] struct {
	keys []uint64
	vals []V
	n    int
}

func slot(key uint64, n int) int { return int(key * 0x9E3779B97F4A7C15 >> 20 % uint64(n)) }

// get returns the value of a key, nil when there is none. It holds until the next put.
func (t *table[V]) get(key uint64) *V {
	s := &t.shards[key>>58]
	if s.n == 0 {
		return nil
	}
	for i := slot(key, len(s.keys)); s.keys[i] != 0; i = (i + 1) % len(s.keys) {
		if s.keys[i] == key {
			return &s.vals[i]
		}
	}
	return nil
}

// put sets the value of a key and returns by how many entries the table grew.
func (t *table[V]) put(key uint64, v V) (grown int) {
	s := &t.shards[key>>58]
	if 4*(s.n+1) > 3*len(s.keys) {
		grown = s.grow()
	}
	s.set(key, v)
	return grown
}

func (s *shard[V]) set(key uint64, v V) {
	i := slot(key, len(s.keys))
	for s.keys[i] != 0 && s.keys[i] != key {
		i = (i + 1) % len(s.keys)
	}
	if s.keys[i] == 0 {
		s.n++
	}
	s.keys[i], s.vals[i] = key, v
}

func (s *shard[V]) grow() int {
	old := *s
	n := max(8, len(old.keys)*3/2)
	*s = shard[V]{keys: make([]uint64, n), vals: make([]V, n)}
	for i, k := range old.keys {
		if k != 0 {
			s.set(k, old.vals[i])
		}
	}
	return n - len(old.keys)
}

// maxTables bounds what is known of all lines at once, in bytes.
const maxTables = 14 << 20

// room is what is left of that.
type room struct{ used int64 }

func (r *room) take(entries, size int) error {
	if r.used += int64(entries) * int64(size); r.used > maxTables {
		return fmt.Errorf("know all messages of the log: more than %d bytes of tables: %w", int64(maxTables), tidemark.ErrTooLarge)
	}
	return nil
}
