package session

import (
	"context"
	"fmt"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
)

// What a turn may read of what was said, as it is shown to a model.
const (
	// The paper has 3. Agents follow two hops for several facts, and a refusal costs a turn more than a search does.
	toolRecalls = 8
	// What a turn reads in all, entries included: about 50,000 tokens, and the last answer.
	toolBytes = 200_000
	maxID     = 100           // bytes of an entry's id, so that no other text is told back
	toolPage  = room.ToolPage // bytes of an entry; what a call that is not done yet is taken to give
)

// turnFrom is the position of the first message of a turn in work, 0 when it has none. What it asks and calls is no
// answer to itself.
func (s *Session) turnFrom(ctx context.Context, r *run) (int64, error) {
	const most = 1000 // messages of a turn
	rows, err := s.DB.Query(ctx, `SELECT coalesce(min(e.seq), 0) FROM (SELECT seq, origin FROM entries WHERE log = ? AND kind = 'message' ORDER BY seq DESC LIMIT ?) e
		WHERE json_extract(e.origin, '$.input') IN (SELECT id FROM inputs WHERE run = ?) LIMIT 1`, r.Log, most, r.ID)
	if err != nil {
		return 0, fmt.Errorf("recall: the turn in work: %w", err)
	}
	return rows[0].Int(0), nil
}

// mayRecall refuses a search when a turn had as many as it may have, and a search or an entry when it was given as much
// as it may be.
func (s *Session) mayRecall(ctx context.Context, r *run, c call, entry bool) error {
	rows, err := s.DB.Query(ctx, `SELECT coalesce(sum(json_extract(call, '$.name') = ? AND coalesce(json_extract(call, '$.input.entry'), '') || coalesce(json_extract(call, '$.input.episode'), '') = ''), 0), coalesce(sum(CASE state WHEN 'done' THEN length(result) ELSE ? END), 0)
		FROM calls WHERE run = ? AND (round < ? OR round = ? AND n < ?) AND json_extract(call, '$.name') IN (?, ?) LIMIT 1`,
		room.RecallTool, toolPage, r.ID, r.Round, r.Round, c.N, room.RecallTool, paging.FaultTool)
	if err != nil {
		return fmt.Errorf("recall: %w", err)
	}
	switch {
	case !entry && rows[0].Int(0) >= toolRecalls:
		err = fmt.Errorf("recall was called %d times in this turn", toolRecalls)
	case rows[0].Int(1) >= toolBytes:
		err = fmt.Errorf("recall gave %d bytes in this turn", rows[0].Int(1))
	default:
		return nil
	}
	return fmt.Errorf("%w, which is the most: answer from what was found, or say that it was not: %w", err, tidemark.ErrInvalid)
}

// readBack answers a call that names what it wants to read again: an entry, a block of one, what a conversation that it
// delegated to said, or an episode.
func (s *Session) readBack(ctx context.Context, b room.Back) (_ tidemark.Block, err error) {
	var text string
	far, ok := room.Find[room.Reader](s.rooms)
	switch id, block := compaction.ReadHandle(b.Entry); {
	case b.Entry == "":
		text, err = s.rooms.ReadEpisode(ctx, b.Log, b.Episode, b.Offset)
	case ok && strings.HasPrefix(b.Entry, "agent:"):
		text, err = far.Read(ctx, b.Entry, b.Offset)
	case len(b.Entry) > maxID:
		err = fmt.Errorf("entry %.40q…: an id has at most %d bytes: %w", b.Entry, maxID, tidemark.ErrInvalid)
	case block < 0:
		text, err = s.ReadEntry(ctx, id, b.Offset)
	default:
		return s.readBlock(ctx, b.Call, id, block, b.Offset)
	}
	return tidemark.ToolResult(b.Call, text, false), err
}

// stored reads messages of entries as a search does.
func (s *Session) stored(entries []tidemark.Entry) ([]room.Stored, error) {
	list, err := s.blocks.Stored(entries)
	out := make([]room.Stored, len(list))
	for i, m := range list {
		out[i] = room.Stored(m)
	}
	return out, err
}

// Who recalled something.
const (
	ByModel  = room.ByModel
	ByPerson = room.ByPerson
	ByPack   = room.ByPack
	ByWide   = room.ByWide
)

// noteRecall counts a recall and tells a room how it went.
func (s *Session) noteRecall(ctx context.Context, by string, v recall.Verdict, first tidemark.EntryID) {
	if s.Observe != nil {
		s.Observe(Notice{Type: NoticeRecalled, Text: by, Verdict: v})
	}
	if r, ok := room.Find[room.Recaller](s.rooms); ok {
		r.Recalled(ctx, by, v, first)
	}
}
