// Package parts stores what leaves the view of a conversation in the archive, part by part, and the whole when it is reset. An
// entry is in one part only. What leaves is decided elsewhere; what an archive is like is package archive. Begin with
// [Keeper.Put].
package parts

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/lineage"
)

// maxArchive bounds one archive in memory, compressed and before.
const maxArchive = 256 << 20

// Table says which stretch of a log stands in which archive part. One that is only begun has no info.
const Table = `CREATE TABLE parts(
		log TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, key TEXT NOT NULL, info TEXT NOT NULL,
		PRIMARY KEY(log, first)) WITHOUT ROWID`

// Part is a stretch of a log that stands in the archive.
type Part struct {
	Last int64 // position of its newest message
	Info archive.Info
}

// Ports are what a keeper is given.
type Ports struct {
	Key     tidemark.Key
	DB      tidemark.DB // with [Table]
	Blobs   tidemark.Blobs
	Runtime tidemark.Runtime
	Log     *host.Log
	Lineage *lineage.Lineage
	// Messages yields the messages of a part of a log whole, in order.
	Messages func(ctx context.Context, log string, r host.Range) iter.Seq2[tidemark.Entry, error]
	// BaseArchived is how far the archives of what a log continues as a branch held its history when it began.
	BaseArchived func(ctx context.Context, log string) (int64, error)
	// Tell returns what tells the agent of an archive, in the transaction that records it.
	Tell func(i archive.Info) tidemark.Stmt
}

// Keeper keeps the archives of one conversation. Its methods may be called at once.
type Keeper struct{ Ports }

// List returns the archive parts of a history, in order. A branch has those of what it continues, but not one that
// reaches over the place where it began, nor one that was written later: that of its history it archives itself.
func (k *Keeper) List(ctx context.Context, log string) ([]Part, error) {
	bases, err := k.Lineage.Bases(ctx, log)
	if err != nil {
		return nil, err
	}
	all := append([]host.Segment{{Log: log, To: host.LogEnd}}, bases...)
	var out []Part
	for i, b := range slices.Backward(all) {
		if i < len(all)-1 { // it continues another
			upto, err := k.BaseArchived(ctx, b.Log)
			if err != nil {
				return nil, fmt.Errorf("read parts of %s: %w", b.Log, err)
			}
			out = slices.DeleteFunc(out, func(p Part) bool { return p.Last > upto })
		}
		own, err := k.Of(ctx, b.Log)
		if err != nil {
			return nil, err
		}
		out = append(out, own...)
	}
	return out, nil
}

// Of returns the parts of one log, without those of what it continues. One that was only begun is none.
func (k *Keeper) Of(ctx context.Context, log string) ([]Part, error) {
	rows, err := k.DB.Query(ctx, `SELECT last, info FROM parts WHERE log = ? AND info <> '' ORDER BY first LIMIT 10000`, log)
	if err != nil {
		return nil, fmt.Errorf("read parts of %s: %w", log, err)
	}
	out := make([]Part, len(rows))
	for i, r := range rows {
		out[i] = Part{Last: r.Int(0)}
		if err := json.Unmarshal(r.Bytes(1), &out[i].Info); err != nil {
			return nil, fmt.Errorf("read parts of %s: %w", log, err)
		}
	}
	return out, nil
}

// UpTo is how far the archives of a history reach, none of which holds more than it up to a position.
func (k *Keeper) UpTo(ctx context.Context, log string, position int64) (int64, error) {
	list, err := k.List(ctx, log)
	last := int64(0)
	for _, p := range list {
		if p.Last > position {
			break
		}
		last = p.Last
	}
	return last, err
}

// Put stores what leaves the view up to a position, unless it stands in a part already, and returns the
// part: one begins where the last one ended. Its key and its range are durable before its
// object, so a part that a kill left behind is finished by the next one or by the reset, whatever became of the
// compaction that wanted it.
func (k *Keeper) Put(ctx context.Context, log string, last int64) (archive.Info, error) {
	if _, err := k.finish(ctx, log); err != nil {
		return archive.Info{}, err
	}
	list, err := k.List(ctx, log)
	if err != nil {
		return archive.Info{}, err
	}
	first, at := int64(1), k.Runtime.Now()
	if n := len(list); n > 0 {
		newest := list[n-1]
		if first = newest.Last + 1; first > last {
			return newest.Info, nil
		}
		if !at.After(newest.Info.At) { // the time names the part, in order
			at = newest.Info.At.Add(time.Millisecond)
		}
	}
	begin := tidemark.Stmt{SQL: `INSERT INTO parts(log, first, last, key, info) VALUES(?, ?, ?, ?, '')`,
		Args: []any{log, first, last, archive.PartKey(k.Key.Agent(), log, at)}, Want: 1}
	if err := k.DB.Tx(ctx, []tidemark.Stmt{begin}); err != nil {
		return archive.Info{}, fmt.Errorf("begin a part: %w", err)
	}
	return k.finish(ctx, log)
}

// finish stores the part of a log that was begun, if one was. A range without messages needs none.
func (k *Keeper) finish(ctx context.Context, log string) (archive.Info, error) {
	rows, err := k.DB.Query(ctx, `SELECT first, last, key FROM parts WHERE log = ? AND info = '' LIMIT 1`, log)
	if err != nil {
		return archive.Info{}, fmt.Errorf("read the part that was begun: %w", err)
	}
	if len(rows) == 0 {
		return archive.Info{}, nil
	}
	first, key := rows[0].Int(0), rows[0].Text(2)
	pack, last, err := k.pack(ctx, log, host.Range{From: first, To: rows[0].Int(1)})
	if err != nil {
		return archive.Info{}, err
	}
	if pack.Messages == 0 {
		return archive.Info{}, k.DB.Tx(ctx, []tidemark.Stmt{{SQL: `DELETE FROM parts WHERE log = ? AND first = ? AND info = ''`, Args: []any{log, first}}})
	}
	list, err := k.List(ctx, log)
	if err != nil {
		return archive.Info{}, err
	}
	_, _, at, _ := archive.ParseKey(key)
	info, err := archive.Put(ctx, k.Blobs, archive.Info{Key: key, SessionKey: k.Key, Session: log, Agent: k.Key.Agent(), Part: int64(len(list)) + 1, At: at}, pack)
	if err != nil {
		return archive.Info{}, err
	}
	raw, err := json.Marshal(info)
	if err != nil {
		return archive.Info{}, fmt.Errorf("record part %s: %w", key, err)
	}
	err = k.DB.Tx(ctx, []tidemark.Stmt{
		{SQL: `UPDATE parts SET last = ?, info = ? WHERE log = ? AND first = ? AND info = ''`, Args: []any{last, string(raw), log, first}, Want: 1},
		k.Tell(info),
	})
	if err != nil {
		return archive.Info{}, fmt.Errorf("record part %s: %w", info.Key, err)
	}
	return info, nil
}

// pack encodes the messages of a range for the archive, with their large blocks, page by page. last
// is the position of the newest.
func (k *Keeper) pack(ctx context.Context, log string, r host.Range) (p archive.Pack, last int64, err error) {
	enc := archive.Encoder{MaxBytes: maxArchive}
	for e, err := range k.Messages(ctx, log, r) {
		if err != nil {
			return archive.Pack{}, 0, err
		}
		if err := enc.Add(e); err != nil {
			return archive.Pack{}, 0, err
		}
		last = e.Seq
	}
	p, err = enc.Close()
	return p, last, err
}

// Whole stores a log that ends: its parts and what came since, as it was at a time. An empty one has no archive, and no key.
func (k *Keeper) Whole(ctx context.Context, log string, at time.Time, usage tidemark.Usage) (archive.Info, error) {
	if _, err := k.finish(ctx, log); err != nil {
		return archive.Info{}, err
	}
	list, err := k.List(ctx, log)
	if err != nil {
		return archive.Info{}, err
	}
	first := int64(1)
	infos := make([]archive.Info, len(list))
	for i, p := range list {
		infos[i], first = p.Info, p.Last+1
	}
	pack, _, err := k.pack(ctx, log, host.Range{From: first, To: host.LogEnd})
	if err != nil || pack.Messages == 0 && len(list) == 0 {
		return archive.Info{}, err
	}
	want := archive.Info{Key: archive.WholeKey(k.Key.Agent(), log), SessionKey: k.Key, Session: log, Agent: k.Key.Agent(), At: at, Usage: usage}
	info, err := archive.PutWhole(ctx, k.Blobs, want, infos, pack)
	if errors.Is(err, tidemark.ErrConflict) {
		if err = k.dropStale(ctx, log, want.Key); err == nil {
			info, err = archive.PutWhole(ctx, k.Blobs, want, infos, pack)
		}
	}
	return info, err
}

// dropStale removes the whole file that an earlier try wrote, if its answer was lost and the session
// went on: a file whose messages are the first of this history.
func (k *Keeper) dropStale(ctx context.Context, log, key string) error {
	history, err := k.Log.Skeletons(ctx, log, host.Range{From: 1, To: host.LogEnd})
	if err != nil {
		return err
	}
	n := 0
	for l, err := range archive.Read(ctx, k.Blobs, key) {
		if err != nil {
			return err
		}
		if n >= len(history) || l.ID != history[n].ID {
			return fmt.Errorf("archive %s exists with messages that are not of this session; move it away", key)
		}
		n++
	}
	return k.Blobs.Delete(ctx, key)
}
