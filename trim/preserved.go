package trim

import (
	"context"
	"hash/maphash"
	"slices"
	"sync"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// preserved is what a boundary says of lines before it that the compaction kept. Shapes that we do not know name none.
type preserved struct {
	Segment struct {
		Head string `json:"headUuid"`
		Tail string `json:"tailUuid"`
	} `json:"preservedSegment"`
	Messages json.RawMessage `json:"preservedMessages"`
}

// uuids are the lines that are named one by one: in a list, or in a list within an object.
func (k *preserved) uuids() (list []string) {
	if json.Unmarshal(k.Messages, &list) == nil {
		return list
	}
	var named map[string]json.RawMessage
	if json.Unmarshal(k.Messages, &named) != nil {
		return nil
	}
	for _, key := range []string{"uuids", "messageUuids", "messages"} {
		if json.Unmarshal(named[key], &list) == nil && len(list) > 0 {
			return list
		}
	}
	return nil
}

// before plans the lines before the boundary that the compaction kept.
func (pl *planner) before(ctx context.Context, boundary *chunk) (kept []*chunk, err error) {
	var k preserved
	if json.Unmarshal(boundary.preserved, &k) != nil {
		k = preserved{} // a shape that we do not know, or none
	}
	named := map[uint64]bool{}
	for _, id := range k.uuids() {
		named[nameHash(id)] = true
	}
	first, tail := nameHash(k.Segment.Head), nameHash(k.Segment.Tail)
	if len(named) == 0 && (first == 0 || tail == 0) {
		return nil, nil
	}
	r := source{sizes: pl.sizes, in: pl.in}
	var parts []*chunk
	for end := boundary.from; end > 0 && r.err == nil; {
		c := r.lastLines(end)
		c.some, end = true, c.from
		parts = append(parts, c)
	}
	slices.Reverse(parts)
	// One pass finds the ends of the segment, one plans what is kept: a segment without one of its ends names nothing.
	segment := span{-1, -1}
	_, err = pl.some(ctx, parts, func(h *head) bool {
		if h.uuid != 0 && h.uuid == first && segment.from < 0 {
			segment.from = h.start
		}
		if h.uuid != 0 && h.uuid == tail {
			segment.to = h.start
		}
		return false
	})
	if err == nil {
		err = r.err
	}
	if err != nil {
		return nil, err
	}
	return pl.some(ctx, parts, func(h *head) bool {
		within := segment.from >= 0 && h.start >= segment.from && h.start <= segment.to
		if h.uuid != 0 && (named[h.uuid] || within && (h.uuid == first || h.uuid == tail)) {
			h.flags |= isPinned
		}
		return h.flags&(isHistory|isQueue) == 0 && (within || h.flags&isPinned != 0)
	})
}

// count counts the lines before a place in a goroutine. What it returns waits for that; it is to be called.
func (pl *planner) count(to int64) func() (int64, error) {
	r := source{sizes: pl.sizes, in: pl.in}
	n := int64(0)
	var wg sync.WaitGroup
	wg.Go(func() { n = r.countLines(span{0, to}) })
	return func() (int64, error) {
		wg.Wait()
		return n, r.err
	}
}

// some plans the wanted lines of parts of the log, and returns the parts that have any.
func (pl *planner) some(ctx context.Context, parts []*chunk, want func(*head) bool) (kept []*chunk, err error) {
	p := pl.parser()
	for _, c := range parts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		part := &chunk{span: c.span, long: c.long, some: true}
		p.chunk(part, pl.spill, want)
		if part.err != nil {
			return nil, part.err
		}
		if part.m.LinesPreserved > 0 {
			kept = append(kept, part)
		}
	}
	return kept, nil
}

// nameHash is the hash of a name as the plan has it, 0 for none.
func nameHash(name string) uint64 {
	if name == "" {
		return 0
	}
	return max(1, maphash.String(seed, name))
}
