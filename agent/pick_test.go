package agent

import (
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// stopped is a clock that stands.
type stopped struct{ tidemark.Runtime }

func (stopped) Now() time.Time { return time.UnixMilli(1 << 41) }

// TestPickByKnown: how rare a word is hangs on the conversations of which digests are known, however many others there are.
func TestPickByKnown(t *testing.T) {
	find := &finder{core: &core{cfg: Config{Runtime: stopped{}}}}
	for _, strangers := range []int{0, 100} {
		all := []candidate{{key: "two", known: true, held: 0b110, at: 1, updated: 1}, {key: "one", known: true, held: 0b001, at: 1, updated: 1}, {key: "too", known: true, held: 0b110, at: 1, updated: 1}}
		for range strangers {
			all = append(all, candidate{key: "stranger"})
		}
		if got := find.pick(all, 3); len(got) != 3 || got[0].key != "one" {
			t.Errorf("%d strangers: %d are asked, %s first", strangers, len(got), got[0].key)
		}
	}
}
