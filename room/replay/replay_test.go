package replay

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/room"
)

// holder is a session that holds its run for the room: what is appended, and what of that is written.
type holder struct {
	room.Held
	appended, written int
	sizes             []bool // whether what was asked for the size was to be compacted first
	refuses           error  // to write
}

func (h *holder) Append(_ context.Context, e *tidemark.Entry, m tidemark.Message, prev tidemark.Hash) error {
	e.Payload, e.Chain = m.AppendJSON(nil), tidemark.Chain(prev, m)
	if len(e.Payload) > 256<<10 {
		e.Payload = []byte("in the bucket")
	}
	h.appended++
	return nil
}

func (h *holder) Write(context.Context, ...tidemark.Stmt) error {
	h.written = h.appended
	return h.refuses
}

func (h *holder) Size(_ context.Context, fit bool) (tidemark.Tokens, error) {
	h.sizes = append(h.sizes, fit)
	return 50, nil
}

// opened is a room of a conversation with an empty log, within a limit.
func opened(t *testing.T, limit tidemark.Tokens) (*Room, *holder) {
	t.Helper()
	db := hosttest.DB(t)
	log, err := host.OpenLog(t.Context(), db)
	if err == nil {
		err = db.Tx(t.Context(), []tidemark.Stmt{log.CreateStmt(host.Info{ID: "log", Key: "agent:main:main", Created: time.UnixMilli(1)})})
	}
	if err != nil {
		t.Fatal(err)
	}
	h := &holder{}
	return &Room{Self: room.Self{Key: "agent:main:main", Runtime: hosttest.Runtime(t)},
		History: room.History{Log: log, Current: func(context.Context) (string, error) { return "log", nil },
			Info: func(context.Context) (tidemark.SessionInfo, error) {
				return tidemark.SessionInfo{Compactions: 3, Window: 100}, nil
			},
			Counts: func(context.Context, string) (room.Counts, error) {
				return room.Counts{Entries: 7, Messages: h.written, Parts: 2}, nil
			}},
		Turns: room.Turns{Hold: func(_ context.Context, work func(room.Held) error) error { return work(h) }},
		limit: func() tidemark.Tokens { return limit },
		seen:  func(context.Context, string) (v room.Seen, err error) { v.Size = 60; return v, nil }}, h
}

// times is a message many times.
func times(m tidemark.Message, n int) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for range n {
			if !yield(Message{Message: m}, nil) {
				return
			}
		}
	}
}

// TestImportIsWrittenAsItGoes: an import writes whenever it has gathered some hundred messages, or half a megabyte: what a process
// has read when it dies need not be read again.
func TestImportIsWrittenAsItGoes(t *testing.T) {
	exactly := func(bytes int) tidemark.Message {
		return tidemark.NewText(tidemark.User, strings.Repeat("x", bytes-len(tidemark.NewText(tidemark.User, "").AppendJSON(nil))))
	}
	for _, c := range []struct {
		name    string
		m       tidemark.Message
		n       int
		written map[int]int // behind so many messages
	}{
		{"small ones", tidemark.NewText(tidemark.User, "x"), 401, map[int]int{199: 0, 200: 200, 399: 200, 400: 400, 401: 400}},
		{"large ones", exactly(flushBytes / 2), 5, map[int]int{1: 0, 2: 0, 3: 3, 4: 3, 5: 3}},
		{"far larger ones, of which the words are here", exactly(600 << 10), 5, map[int]int{1: 0, 2: 0, 3: 3, 4: 3, 5: 3}},
	} {
		r, h := opened(t, 10_000_000)
		got, err := r.Import(t.Context(), times(c.m, c.n), func(n int) {
			if want, ok := c.written[n]; ok && h.written != want {
				t.Errorf("%s: behind %d of them %d are written, want %d", c.name, n, h.written, want)
			}
		})
		if want := (Result{Messages: c.n, Entries: 7, Compactions: 3, ArchivedParts: 2, ContextTokens: 60, Window: 100, Limit: 10_000_000}); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", c.name, got, err, want)
		}
	}
}

// TestImportFitsBeforeReplies: what is over the limit is compacted before a reply, not before what a person says, and at the end;
// what it was is written before.
func TestImportFitsBeforeReplies(t *testing.T) {
	for _, c := range []struct {
		role        tidemark.Role
		n           int
		room, short tidemark.Tokens // there is room for so many of them, but for some tokens
		sizes       []bool          // the first is that of what was there
	}{
		{tidemark.User, 3, 3, 0, []bool{false}}, {tidemark.User, 3, 3, 1, []bool{false, true}},
		{tidemark.Assistant, 2, 2, 0, []bool{false}}, {tidemark.Assistant, 2, 1, 0, []bool{false, true}}, {tidemark.Assistant, 2, 1, 1, []bool{false, true, true}},
		{tidemark.Assistant, 1, 0, 1, []bool{false, true, true}},
	} {
		m := tidemark.NewText(c.role, "x")
		r, h := opened(t, 50+c.room*tidemark.Estimate(m)-c.short)
		if _, err := r.Import(t.Context(), times(m, c.n), nil); err != nil || !slices.Equal(h.sizes, c.sizes) || h.written != c.n {
			t.Errorf("%d of %s with room for %d but for %d: %v, want %v, %d written, %v", c.n, c.role, c.room, c.short, h.sizes, c.sizes, h.written, err)
		}
	}
	r, h := opened(t, 100)
	h.refuses = tidemark.ErrConflict
	if got, err := r.Import(t.Context(), times(tidemark.NewText(tidemark.User, "x"), 1), nil); !errors.Is(err, tidemark.ErrConflict) || !strings.Contains(err.Error(), "write messages: ") || got != (Result{}) {
		t.Errorf("who lost the run: %+v, %v", got, err)
	}
}
