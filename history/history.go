// Package history reads what was said in a conversation: its messages whole, entries in pages, and what overlays leave visible
// of it, now and at a position of the past. What is large is read while there is memory for it, and of a history one entry at a
// time. It writes nothing. Begin with [Reader].
package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/blocks"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/lineage"
)

// Reader reads the log of one conversation, and what it continues. Its methods may be called at once.
type Reader struct {
	Key     tidemark.Key
	Log     *host.Log
	Blocks  *blocks.Store
	Lineage *lineage.Lineage
	Runtime tidemark.Runtime
	// Current returns the id of the log that the conversation stands in.
	Current func(ctx context.Context) (string, error)
	// Admit is asked before more than 1 MB of a view comes into memory, where that is scarce; release gives the bytes back.
	// Who is not let in waits. nil lets all in.
	Admit func(bytes int64) (release func(), ok bool)
	// ViewBytes is how much of a conversation may stand in memory at once, and Zone where its agent is.
	ViewBytes func() int64
	Zone      func() *time.Location

	laid atomic.Pointer[Edits] // what is shown of overlays, as far as they were read
}

// maxLogs bounds the sessions of a conversation, one before the other.
const maxLogs = 10_000

// Logs returns the session ids of the conversation, newest first.
func (r *Reader) Logs(ctx context.Context) ([]string, error) {
	id, err := r.Current(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for id != "" && len(out) < maxLogs {
		out = append(out, id)
		i, err := r.Log.Info(ctx, id)
		if err != nil {
			return nil, err
		}
		id = i.Previous
	}
	return out, nil
}

// All yields every message of the current session in order, or, with before, of the sessions before it under the same
// key too, oldest first.
func (r *Reader) All(ctx context.Context, before bool) iter.Seq2[tidemark.Entry, error] {
	return func(yield func(tidemark.Entry, error) bool) {
		logs, err := r.Logs(ctx)
		if err != nil {
			yield(tidemark.Entry{}, err)
			return
		}
		if !before {
			logs = logs[:1]
		}
		for _, log := range slices.Backward(logs) {
			for e, err := range r.Messages(ctx, log, host.Range{From: 1, To: host.LogEnd}) {
				if !yield(e, err) || err != nil {
					return
				}
			}
		}
	}
}

// Messages yields the message entries of a range, oldest first, with their large blocks, in bounded pages, and lets others
// have a turn now and then.
func (r *Reader) Messages(ctx context.Context, log string, in host.Range) iter.Seq2[tidemark.Entry, error] {
	return func(yield func(tidemark.Entry, error) bool) {
		var yields host.Yielder
		skeletons, err := r.Log.Skeletons(ctx, log, in)
		if err != nil {
			yield(tidemark.Entry{}, err)
			return
		}
		for at := 0; at < len(skeletons); {
			seqs := host.PageOf(skeletons[at:])
			at += len(seqs)
			entries, err := r.Log.Payloads(ctx, seqs)
			if err != nil {
				yield(tidemark.Entry{}, err)
				return
			}
			for _, e := range entries {
				e, err := r.Whole(ctx, e)
				if !yield(e, err) || err != nil {
					return
				}
				if err := yields.Did(ctx, r.Runtime, len(e.Payload)); err != nil {
					yield(tidemark.Entry{}, err)
					return
				}
			}
		}
	}
}

// Whole brings the large blocks of a message's entry back.
func (r *Reader) Whole(ctx context.Context, e tidemark.Entry) (tidemark.Entry, error) {
	if !bytes.Contains(e.Payload, []byte(blocks.Field)) {
		return e, nil
	}
	m, err := r.Blocks.Message(ctx, e)
	if err != nil {
		return tidemark.Entry{}, err
	}
	e.Payload = m.AppendJSON(nil)
	return e, nil
}

// Entry returns one entry of the conversation with its large blocks, those of sessions before a reset and of other
// branches included. An entry of another conversation is tidemark.ErrNotFound.
func (r *Reader) Entry(ctx context.Context, id tidemark.EntryID) (tidemark.Entry, error) {
	e, err := r.Log.Entry(ctx, id)
	if err != nil {
		return e, err
	}
	i, err := r.Log.Info(ctx, e.Log)
	if err != nil {
		return tidemark.Entry{}, err
	}
	ours := i.Key.Root() == r.Key.Root()
	if !ours { // what an archive brought may stand where this store had it
		if ours, err = r.Lineage.Reaches(ctx, e); err != nil {
			return tidemark.Entry{}, err
		}
	}
	if !ours {
		return tidemark.Entry{}, fmt.Errorf("entry %s: %w", id, tidemark.ErrNotFound)
	}
	if e.Kind != tidemark.KindMessage {
		return e, nil
	}
	return r.Whole(ctx, e)
}

// Message returns a message that the conversation may look into whole; one of another is tidemark.ErrNotFound.
func (r *Reader) Message(ctx context.Context, id tidemark.EntryID) (tidemark.Message, error) {
	e, err := r.Log.Entry(ctx, id)
	if err != nil {
		return tidemark.Message{}, err
	}
	ours, err := r.Lineage.Reaches(ctx, e)
	if err != nil || !ours || e.Kind != tidemark.KindMessage {
		return tidemark.Message{}, errors.Join(err, fmt.Errorf("entry %s: %w", id, tidemark.ErrNotFound))
	}
	return r.Blocks.Message(ctx, e)
}

// Entries returns entries of every kind of the current session, newest first, before a position (0: the newest).
func (r *Reader) Entries(ctx context.Context, before int64, limit int) ([]tidemark.Entry, error) {
	log, err := r.Current(ctx)
	if err != nil {
		return nil, err
	}
	if before == 1 { // nothing stands before the first
		return nil, nil
	}
	var out []tidemark.Entry
	for e, err := range r.Log.Walk(ctx, log, max(before-1, 0)) {
		if err != nil {
			return nil, err
		}
		if out = append(out, e); len(out) >= limit {
			break
		}
	}
	return out, nil
}

// Acts returns what [Reader.Entries] does, without the messages: overlays and events, newest first.
func (r *Reader) Acts(ctx context.Context, before int64, limit int) ([]tidemark.Entry, error) {
	log, err := r.Current(ctx)
	if err != nil {
		return nil, err
	}
	if before <= 0 {
		before = host.LogEnd
	}
	seqs, err := r.Log.Acts(ctx, log, before, limit)
	if err != nil {
		return nil, err
	}
	bases, err := r.Lineage.Bases(ctx, log)
	if err != nil {
		return nil, err
	}
	for _, b := range bases {
		if len(seqs) >= limit {
			break
		}
		more, err := r.Log.Acts(ctx, b.Log, min(before, b.To+1), limit-len(seqs))
		if err != nil {
			return nil, err
		}
		seqs = append(seqs, more...)
	}
	slices.Reverse(seqs)
	out, err := r.Log.Payloads(ctx, seqs)
	slices.Reverse(out)
	return out, err
}
