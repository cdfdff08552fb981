package host

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Range is a stretch of a log by position, both ends included.
type Range struct{ From, To int64 }

// Mark is an overlay without its replacements: what computing the layout of a view needs.
type Mark struct {
	ID      tidemark.EntryID
	Seq     int64
	Overlay tidemark.Overlay // edits without messages, blocks and data
}

// Marks returns the overlays of a log in order. Overlays of a base are not inherited: a fork
// appends those that still hold.
func (l *Log) Marks(ctx context.Context, log string) ([]Mark, error) {
	return l.MarksAfter(ctx, log, 0)
}

// MarksAfter returns the overlays of a log behind a position, in order, for one who knows those before it.
func (l *Log) MarksAfter(ctx context.Context, log string, after int64) ([]Mark, error) {
	return l.marks(ctx, log, after, 1<<53)
}

func (l *Log) marks(ctx context.Context, log string, after, to int64) (out []Mark, err error) {
	for r, err := range Pages(ctx, l.DB, "read overlays of "+log, 500, func() []any { return []any{log, after, to} },
		`SELECT seq, id, skel FROM entries WHERE log = ? AND kind = 'overlay' AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?`) {
		if err != nil {
			return nil, err
		}
		m := Mark{ID: tidemark.EntryID(r.Text(1)), Seq: r.Int(0)}
		if err := json.Unmarshal(r.Bytes(2), &m.Overlay); err != nil {
			return nil, fmt.Errorf("read overlay %s: %w", m.ID, err)
		}
		out, after = append(out, m), m.Seq
	}
	return out, nil
}

// MarksOf returns the overlays of segments of a history behind a position, in order: what a branch shows of what it
// continues is shown as it was where the branch began.
func (l *Log) MarksOf(ctx context.Context, segments []Segment, after int64) ([]Mark, error) {
	var out []Mark
	for _, s := range slices.Backward(segments) {
		if s.To <= after {
			continue
		}
		marks, err := l.marks(ctx, s.Log, after, s.To)
		if err != nil {
			return nil, err
		}
		out = append(out, marks...)
	}
	return out, nil
}

// Acts returns the positions of the overlays and events of a log, newest first, before a position: what
// was done to a conversation, whose messages may be a thousand times as large. As with [Log.Marks] those
// of a base are not among them.
func (l *Log) Acts(ctx context.Context, log string, before int64, limit int) ([]int64, error) {
	return Read(ctx, l.DB, "read acts of "+log, Integer, `SELECT seq FROM entries WHERE log = ? AND kind IN ('overlay', 'event') AND seq < ? ORDER BY seq DESC LIMIT ?`, log, before, limit)
}

// Chain returns the link of the newest message of a history, empty when it has none. It reads no
// payload: a turn asks for it before each message that it appends.
func (l *Log) Chain(ctx context.Context, log string) (tidemark.Hash, error) {
	return l.ChainAt(ctx, log, 0)
}

// ChainAt is [Log.Chain] of the history up to a position (0: its end).
func (l *Log) ChainAt(ctx context.Context, log string, seq int64) (tidemark.Hash, error) {
	segments, err := l.Segments(ctx, log, seq)
	if err != nil {
		return "", err
	}
	for _, s := range segments {
		r, err := First(ctx, l.DB, "read chain of "+log, `SELECT chain FROM entries WHERE log = ? AND kind = 'message' AND seq <= ? ORDER BY seq DESC LIMIT 1`, s.Log, s.To)
		if err != nil {
			return "", err
		}
		if r != nil {
			return tidemark.Hash(r.Text(0)), nil
		}
	}
	return "", nil
}

// Chains returns the links of all messages of a history, oldest first.
func (l *Log) Chains(ctx context.Context, log string) (out []tidemark.Hash, err error) {
	for r, err := range l.messages(ctx, "read chain of "+log, log, Range{}, 1000, `seq, chain`) {
		if err != nil {
			return nil, err
		}
		out = append(out, tidemark.Hash(r.Text(1)))
	}
	return out, nil
}

// messages yields columns of the message entries of a history within a range (To 0: up to its end), oldest first, in pages
// of a size. The first column is seq.
func (l *Log) messages(ctx context.Context, doing, log string, r Range, size int, columns string) iter.Seq2[tidemark.Row, error] {
	return func(yield func(tidemark.Row, error) bool) {
		segments, err := l.Segments(ctx, log, r.To)
		if err != nil {
			yield(nil, err)
			return
		}
		after := r.From - 1
		for _, s := range slices.Backward(segments) {
			for row, err := range Pages(ctx, l.DB, doing, size, func() []any { return []any{s.Log, after, s.To} },
				`SELECT `+columns+` FROM entries WHERE log = ? AND kind = 'message' AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?`) {
				if !yield(row, err) || err != nil {
					return
				}
				after = row.Int(0)
			}
			after = max(after, s.To)
		}
	}
}

// Skeletons returns the message entries of a history within a range without their payloads,
// oldest first.
func (l *Log) Skeletons(ctx context.Context, log string, r Range) ([]tidemark.Skeleton, error) {
	return l.skeletons(ctx, "read skeletons of "+log, log, r, math.MaxInt)
}

func (l *Log) skeletons(ctx context.Context, doing, log string, r Range, most int) (out []tidemark.Skeleton, err error) {
	for row, err := range l.messages(ctx, doing, log, r, min(most, 1000), skeletonColumns) {
		if err != nil {
			return nil, err
		}
		k, err := scanSkeleton(row)
		if err != nil {
			return nil, err
		}
		if out = append(out, k); len(out) == most {
			break
		}
	}
	return out, nil
}

// Tail returns the newest message entries of a history at or before a position (0: its end), without their payloads,
// oldest first.
func (l *Log) Tail(ctx context.Context, log string, seq int64, most int) ([]tidemark.Skeleton, error) {
	segments, err := l.Segments(ctx, log, seq)
	if err != nil {
		return nil, err
	}
	var out []tidemark.Skeleton
	for _, s := range segments {
		if len(out) >= most {
			break
		}
		some, err := Read(ctx, l.DB, "read the end of "+log, scanSkeleton, `SELECT `+skeletonColumns+` FROM entries WHERE log = ? AND kind = 'message' AND seq <= ? ORDER BY seq DESC LIMIT ?`, s.Log, s.To, most-len(out))
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	slices.Reverse(out)
	return out, nil
}

// Next returns the oldest message entries of a history behind a position and up to another (0: its end), without their
// payloads, oldest first.
func (l *Log) Next(ctx context.Context, log string, seq, to int64, most int) ([]tidemark.Skeleton, error) {
	return l.skeletons(ctx, "read on in "+log, log, Range{seq + 1, to}, most)
}

// Forward returns the next entries of one log, of every kind, with payloads, behind a position and up to another.
func (l *Log) Forward(ctx context.Context, log string, after, to int64) ([]tidemark.Entry, error) {
	return Read(ctx, l.DB, "read on in "+log, scanEntry, `SELECT `+entryColumns+` FROM entries WHERE log = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?`, log, after, to, payloadPage)
}

// skeletonColumns are read by scanSkeleton, in this order.
const skeletonColumns = `seq, id, role, tokens, skel, at`

func scanSkeleton(row tidemark.Row) (tidemark.Skeleton, error) {
	var k skel
	if err := json.Unmarshal(row.Bytes(4), &k); err != nil {
		return tidemark.Skeleton{}, fmt.Errorf("read skeleton of %s: %w", row.Text(1), err)
	}
	return tidemark.Skeleton{Seq: row.Int(0), ID: tidemark.EntryID(row.Text(1)), At: time.UnixMilli(row.Int(5)), Kind: tidemark.KindMessage,
		Role: tidemark.Role(row.Text(2)), Tokens: tidemark.Tokens(row.Int(3)), Blocks: k.Blocks, Calls: k.Calls, Results: k.Results}, nil
}

// payloadPage is how many rows with payloads are read at a time: each may have tidemark.MaxRow bytes, and
// a page on Workers 16 MB.
const payloadPage = 8

// Said returns entries by position with what a search reads of them, who said what, where and when: in one query those
// that are short, in order, and the others behind them.
func (l *Log) Said(ctx context.Context, seqs []int64) ([]tidemark.Entry, error) {
	const page, short = 500, 16 << 10 // rows, and bytes of a payload: 8 MB
	out := make([]tidemark.Entry, 0, len(seqs))
	var long []int64
	for len(seqs) > 0 {
		n := min(len(seqs), page)
		raw, err := json.Marshal(seqs[:n])
		if err != nil {
			return nil, fmt.Errorf("read what was said: %w", err)
		}
		rows, err := l.DB.Query(ctx, `SELECT e.seq, e.id, e.log, e.kind, e.at, coalesce(json_extract(e.origin, '$.from'), ''), coalesce(json_extract(e.origin, '$.peer'), ''), coalesce(json_extract(e.origin, '$.own'), 0), CASE WHEN octet_length(e.payload) <= ? THEN e.payload END
			FROM json_each(?) j CROSS JOIN entries e ON e.seq = j.value ORDER BY e.seq LIMIT ?`, short, string(raw), page)
		if err != nil {
			return nil, fmt.Errorf("read what was said: %w", err)
		}
		for _, r := range rows {
			if r[8] == nil {
				long = append(long, r.Int(0))
				continue
			}
			out = append(out, tidemark.Entry{Seq: r.Int(0), ID: tidemark.EntryID(r.Text(1)), Log: r.Text(2), Kind: tidemark.Kind(r.Text(3)), At: time.UnixMilli(r.Int(4)),
				Origin: tidemark.Origin{From: r.Text(5), Peer: r.Text(6), Own: r.Int(7) > 0}, Payload: r.Bytes(8)})
		}
		seqs = seqs[n:]
	}
	more, err := l.Payloads(ctx, long)
	return append(out, more...), err
}

// Payloads returns entries by position, with payloads, in order.
func (l *Log) Payloads(ctx context.Context, seqs []int64) ([]tidemark.Entry, error) {
	out := make([]tidemark.Entry, 0, len(seqs))
	for len(seqs) > 0 {
		n := min(len(seqs), payloadPage)
		args := make([]any, n)
		for i, s := range seqs[:n] {
			args[i] = s
		}
		some, err := Read(ctx, l.DB, "read payloads", scanEntry, `SELECT `+entryColumns+` FROM entries WHERE seq IN (`+Marks(n)+`) ORDER BY seq LIMIT 100`, args...)
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
		seqs = seqs[n:]
	}
	return out, nil
}
