// Package replay is the room that has the messages of another log said in a conversation again, as if they were said here:
// before each reply the view is compacted if it is over the limit. Begin with Room.Import.
package replay

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/blocks"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/room"
)

// Room imports into one conversation.
type Room struct {
	room.Self
	room.History
	room.Turns
	limit func() tidemark.Tokens
	seen  func(ctx context.Context, log string) (room.Seen, error)
}

// Make makes the room.
func Make(p room.Ports) any {
	return &Room{p.Self, p.History, p.Turns, func() tidemark.Tokens { return p.Budget().Limit() }, p.Seen}
}

// Message is a message of another program's log.
type Message struct {
	Message tidemark.Message
	At      time.Time
	Call    *tidemark.Call // what it cost there; never an anchor for our token count
	Peer    string         // who wrote it, where several people talk; empty otherwise
}

// Result says what an import did.
type Result struct {
	Messages      int             `json:"messages"` // of the session after it
	Entries       int             `json:"entries"`  // messages, overlays and events
	Compactions   int             `json:"compactions"`
	ArchivedParts int             `json:"archivedParts"`
	ContextTokens tidemark.Tokens `json:"contextTokens"`
	Window        tidemark.Tokens `json:"window"`
	Limit         tidemark.Tokens `json:"limit"`
	Skipped       int             `json:"skipped,omitempty"` // were there from an import that was cut off
}

// What an import writes in one transaction, at most.
const (
	flushBytes    = 512 << 10
	flushMessages = 200
)

// Import replays the messages of another log. Nothing else writes into the conversation meanwhile. An import that was cut off
// goes on behind the messages that are there, if those are the same.
//
// # Errors
//
// tidemark.ErrBusy while a turn is in work, tidemark.ErrConflict for another conversation than the one that is there.
func (s *Room) Import(ctx context.Context, in iter.Seq2[Message, error], progress func(done int)) (out Result, err error) {
	im := importer{s: s, limit: s.limit(), progress: progress}
	err = s.Hold(ctx, func(h room.Held) error {
		im.h = h
		err := im.load(ctx)
		if err == nil {
			err = im.all(ctx, in)
		}
		return err
	})
	if err != nil {
		return Result{}, err
	}
	return s.result(ctx, im.log, im.skipped)
}

// result is what stands in the log at the end.
func (s *Room) result(ctx context.Context, log string, skipped int) (Result, error) {
	i, err := s.Info(ctx)
	if err != nil {
		return Result{}, err
	}
	v, err := s.seen(ctx, log)
	if err != nil {
		return Result{}, err
	}
	n, err := s.Counts(ctx, log)
	return Result{Messages: n.Messages, Entries: n.Entries, Compactions: i.Compactions, ArchivedParts: n.Parts, ContextTokens: v.Size,
		Window: i.Window, Limit: s.limit(), Skipped: skipped}, err
}

// importer is an import in work.
type importer struct {
	s        *Room
	h        room.Held
	log      string
	limit    tidemark.Tokens
	progress func(int)

	there   []tidemark.Hash // chain of the messages that were there before
	chain   tidemark.Hash
	done    int
	skipped int

	count int // of what is not yet written
	bytes int

	size   tidemark.Tokens // of the view, with what is not yet written
	yields host.Yielder
}

// load reads the chain that is there and the size of the view.
func (m *importer) load(ctx context.Context) (err error) {
	if m.log, err = m.s.Current(ctx); err != nil {
		return err
	}
	if m.there, err = m.s.Log.Chains(ctx, m.log); err != nil {
		return err
	}
	m.size, err = m.h.Size(ctx, false)
	return err
}

func (m *importer) all(ctx context.Context, in iter.Seq2[Message, error]) (err error) {
	for msg, err := range in {
		if err != nil {
			return errors.Join(fmt.Errorf("import message %d: %w", m.done+1, err), m.flush(ctx))
		}
		if err := m.one(ctx, msg); err != nil {
			return fmt.Errorf("import message %d: %w", m.done+1, err)
		}
		if m.progress != nil {
			m.progress(m.done)
		}
		if err := m.yields.Did(ctx, m.s.Runtime, weight(msg.Message)); err != nil {
			return fmt.Errorf("import message %d: %w", m.done, err)
		}
	}
	if m.done < len(m.there) {
		return fmt.Errorf("session %s holds %d messages, the log only %d: import it into another session: %w", m.s.Key, len(m.there), m.done, tidemark.ErrConflict)
	}
	if err := m.flush(ctx); err != nil {
		return err
	}
	if m.size > m.limit { // as before the next reply, so that what is left can be sent
		m.size, err = m.h.Size(ctx, true)
	}
	return err
}

func (m *importer) one(ctx context.Context, in Message) error {
	chain := tidemark.Chain(m.chain, in.Message)
	if m.done < len(m.there) {
		if m.there[m.done] != chain {
			return fmt.Errorf("session %s holds another conversation: import into another session, or reset this one: %w", m.s.Key, tidemark.ErrConflict)
		}
		m.chain, m.done, m.skipped = chain, m.done+1, m.skipped+1
		return nil
	}
	if in.Message.Role == tidemark.Assistant && m.size > m.limit {
		err := m.flush(ctx)
		if err == nil {
			m.size, err = m.h.Size(ctx, true)
		}
		if err != nil {
			return err
		}
	}
	if in.At.IsZero() {
		in.At = m.s.Runtime.Now()
	}
	e := tidemark.Entry{ID: tidemark.EntryID(tidemark.NewID(in.At)), Kind: tidemark.KindMessage, At: in.At, Tokens: tidemark.Estimate(in.Message),
		Call: in.Call, Origin: tidemark.Origin{From: tidemark.SourceOf(in.Message), Channel: tidemark.ChannelImport, Peer: in.Peer}}
	if err := m.h.Append(ctx, &e, in.Message, m.chain); err != nil {
		return err
	}
	m.chain, m.done = e.Chain, m.done+1
	m.count++
	m.bytes += max(len(e.Payload), min(weight(in.Message), blocks.SpillBytes)) // of what is compressed or in the bucket, the words are here
	m.size += e.Tokens
	if m.bytes > flushBytes || m.count >= flushMessages {
		return m.flush(ctx)
	}
	return nil
}

// weight is the length of a message.
func weight(m tidemark.Message) int { return len(m.AppendJSON(nil)) }

// flush writes what was gathered.
func (m *importer) flush(ctx context.Context) error {
	if m.count == 0 {
		return nil
	}
	if err := m.h.Write(ctx); err != nil {
		return fmt.Errorf("write messages: %w", err)
	}
	m.count, m.bytes = 0, 0
	return nil
}
