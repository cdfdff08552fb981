package tidemarktest

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

var _ tidemark.Log = (*Log)(nil)

// Log is a [tidemark.Log] in memory. Its logs are made with Create.
type Log struct {
	mu    sync.Mutex // guards the following
	seq   int64
	logs  map[string]*memLog
	known map[tidemark.EntryID]bool
	refs  map[string]string
}

type memLog struct {
	base    LogBase
	entries []tidemark.Entry
}

// NewLog gives an empty store.
func NewLog() *Log {
	return &Log{logs: map[string]*memLog{}, known: map[tidemark.EntryID]bool{}, refs: map[string]string{}}
}

// Create makes a log; one that is there already is ErrConflict, a base that is not ErrNotFound.
func (l *Log) Create(id string, base LogBase) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.logs[id] != nil {
		return fmt.Errorf("create log %s: %w", id, tidemark.ErrConflict)
	}
	if base.Log != "" && l.logs[base.Log] == nil {
		return fmt.Errorf("create log %s: base %s: %w", id, base.Log, tidemark.ErrNotFound)
	}
	l.logs[id] = &memLog{base: base}
	return nil
}

// Append implements [tidemark.Log].
func (l *Log) Append(ctx context.Context, log string, entries ...tidemark.Entry) error {
	if ctx.Err() != nil {
		return fmt.Errorf("append to %s: %w", log, context.Cause(ctx))
	}
	for _, e := range entries {
		if err := readable(e); err != nil {
			return fmt.Errorf("append entry %s: %w", e.ID, err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	to := l.logs[log]
	if to == nil {
		return fmt.Errorf("append to %s: %w", log, tidemark.ErrNotFound)
	}
	fresh := map[tidemark.EntryID]bool{}
	for _, e := range entries {
		if l.known[e.ID] || fresh[e.ID] {
			return fmt.Errorf("append entry %s: %w", e.ID, tidemark.ErrConflict)
		}
		fresh[e.ID] = true
	}
	for i := range entries {
		e := &entries[i]
		l.seq++
		l.known[e.ID] = true
		e.Log, e.Seq, e.Hash = log, l.seq, tidemark.HashOf(e.Payload)
		to.entries = append(to.entries, cloneEntry(*e))
	}
	return nil
}

// readable reports a payload that no reader could decode.
func readable(e tidemark.Entry) error {
	switch e.Kind {
	case tidemark.KindMessage:
		_, err := e.Message()
		return err
	case tidemark.KindOverlay:
		return json.Unmarshal(e.Payload, new(tidemark.Overlay))
	}
	return nil
}

// cloneEntry parts an entry from the bytes of its caller.
func cloneEntry(e tidemark.Entry) tidemark.Entry {
	e.Payload = slices.Clone(e.Payload)
	if e.Call != nil {
		call := *e.Call
		e.Call = &call
	}
	return e
}

// Walk implements [tidemark.Log].
func (l *Log) Walk(ctx context.Context, log string, seq int64) iter.Seq2[tidemark.Entry, error] {
	if seq <= 0 {
		seq = 1 << 53
	}
	return func(yield func(tidemark.Entry, error) bool) {
		for name := log; name != ""; {
			if ctx.Err() != nil {
				yield(tidemark.Entry{}, fmt.Errorf("walk log %s: %w", log, context.Cause(ctx)))
				return
			}
			entries, base, ok := l.snapshot(name)
			if !ok {
				yield(tidemark.Entry{}, fmt.Errorf("walk log %s: %w", name, tidemark.ErrNotFound))
				return
			}
			for _, e := range slices.Backward(entries) {
				if e.Seq <= seq && !yield(cloneEntry(e), nil) {
					return
				}
			}
			name, seq = base.Log, min(seq, base.Seq)
		}
	}
}

// snapshot returns what a log holds now, so that no lock is held while a reader works.
func (l *Log) snapshot(log string) (entries []tidemark.Entry, base LogBase, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.logs[log]
	if m == nil {
		return nil, LogBase{}, false
	}
	return m.entries[:len(m.entries):len(m.entries)], m.base, true
}

// Ref implements [tidemark.Log].
func (l *Log) Ref(ctx context.Context, name string) (string, error) {
	if ctx.Err() != nil {
		return "", fmt.Errorf("read ref %s: %w", name, context.Cause(ctx))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	v, ok := l.refs[name]
	if !ok {
		return "", fmt.Errorf("ref %s: %w", name, tidemark.ErrNotFound)
	}
	return v, nil
}

// MoveRef implements [tidemark.Log].
func (l *Log) MoveRef(ctx context.Context, name, old, value string) error {
	if ctx.Err() != nil {
		return fmt.Errorf("move ref %s: %w", name, context.Cause(ctx))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if v, ok := l.refs[name]; ok != (old != "") || v != old {
		return fmt.Errorf("move ref %s: %w", name, tidemark.ErrConflict)
	}
	l.refs[name] = value
	return nil
}
