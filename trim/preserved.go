package trim

import "github.com/tidemark-ai/tidemark/internal/json"

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

// preserved finds the lines before a boundary that the compaction kept.
func (r *reading) preserved(boundary int64, said []byte) (facts []fact, err error) {
	var k preserved
	if json.Unmarshal(said, &k) != nil {
		k = preserved{} // a shape that we do not know
	}
	named := map[uint64]bool{}
	for _, id := range k.uuids() {
		named[nameHash(id)] = true
	}
	first, tail := nameHash(k.Segment.Head), nameHash(k.Segment.Tail)
	if len(named) == 0 && first == 0 {
		return nil, nil
	}
	// One pass finds the ends of the segment: a segment without one of its ends names nothing.
	segment := span{-1, -1}
	err = r.each(0, boundary, func(h *head) bool {
		if h.uuid != 0 && h.uuid == first && segment.from < 0 {
			segment.from = h.start
		}
		if h.uuid != 0 && h.uuid == tail {
			segment.to = h.start
		}
		return false
	}, &facts)
	if err != nil {
		return nil, err
	}
	err = r.each(0, boundary, func(h *head) bool {
		within := segment.from >= 0 && h.start >= segment.from && h.start <= segment.to
		if h.uuid != 0 && (named[h.uuid] || within && (h.uuid == first || h.uuid == tail)) {
			h.flags |= isPinned
		}
		h.flags |= isKept
		return h.flags&(isHistory|isQueue) == 0 && (within || h.flags&isPinned != 0)
	}, &facts)
	return facts, err
}
