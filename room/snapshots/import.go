package snapshots

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// Carried is what an archive brought.
type Carried struct {
	Node     snapshot.Node `json:"snapshot"`
	Key      tidemark.Key  `json:"key"`
	Messages int           `json:"messages"`
	Again    bool          `json:"again,omitempty"` // it was here already
}

// CheckArchive reads an archive through, which says whether it is whole, or, with head, only what it is of: a refusal
// that needs no session. id is the snapshot that it must be of, "" for any.
//
// # Errors
//
// tidemark.ErrInvalid, tidemark.ErrTooLarge.
func CheckArchive(r io.Reader, id string, head bool) error {
	in, err := openArchive(r, id)
	for err == nil && !head {
		_, err = in.Next()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// openArchive reads what an archive is of.
func openArchive(r io.Reader, id string) (*snapshot.Reader, error) {
	in, err := snapshot.NewReader(r, snapshot.Limits{})
	if err != nil {
		return nil, err
	}
	switch m := in.Manifest(); {
	case m.Kind != snapshot.OfSession || m.Node.Kind != snapshot.KindSnapshot:
		return nil, fmt.Errorf("the archive is of kind %s: want that of a snapshot of a session: %w", m.Kind, tidemark.ErrInvalid)
	case id != "" && m.Node.ID != id:
		return nil, fmt.Errorf("the archive is of snapshot %s, not of %s: %w", m.Node.ID, id, tidemark.ErrInvalid)
	}
	return in, nil
}

// Import reads such an archive into this session, which must be empty: it then goes on from the snapshot, and
// branches of the snapshot can be made. The same one twice is one; an import that was cut off can be made again, and
// what this store has of the messages already is not stored twice. id is the snapshot that it must be of, "" for any.
//
// # Errors
//
// tidemark.ErrInvalid for an archive that is damaged or was changed, tidemark.ErrConflict for a session that is in use,
// tidemark.ErrBusy while a turn is in work there.
func (s *Carry) Import(ctx context.Context, id string, r io.Reader) (Carried, error) {
	c, err := s.read(ctx, id, r)
	if err != nil {
		return Carried{}, fmt.Errorf("import into %s: %w", s.Key, err)
	}
	s.snaps.tellNow(ctx, c.Node)
	s.snaps.tellSoon()
	return c, nil
}

func (s *Carry) read(ctx context.Context, id string, r io.Reader) (Carried, error) {
	if err := s.snaps.may(); err != nil {
		return Carried{}, err
	}
	if s.Key != s.Key.Root() {
		return Carried{}, fmt.Errorf("what is behind # is a branch of %s: name a session of its own: %w", s.Key.Root(), tidemark.ErrInvalid)
	}
	in, err := openArchive(r, id)
	if err != nil {
		return Carried{}, err
	}
	im := &carrier{s: s, in: in, m: in.Manifest(), blobs: map[tidemark.Hash]bool{}, places: map[tidemark.EntryID][]string{}, found: map[string]host.Segment{}}
	if len(im.m.More) > 0 {
		if err := json.Unmarshal(im.m.More, &im.more); err != nil {
			return Carried{}, fmt.Errorf("manifest.json: more: %w: %w", err, tidemark.ErrInvalid)
		}
	}
	for _, p := range im.more.Places {
		im.places[p.Entry] = append(im.places[p.Entry], p.ID)
	}
	if err := s.Made.Open(ctx, tables); err != nil {
		return Carried{}, err
	}
	n, err := s.snaps.find(ctx, im.m.Node.ID)
	if err == nil { // one that is damaged is told all the same
		for err == nil {
			_, err = in.Next()
		}
		if !errors.Is(err, io.EOF) {
			return Carried{}, err
		}
		return Carried{Node: n.Node, Key: tidemark.Key(n.Session), Messages: n.Messages, Again: true}, nil
	}
	if !errors.Is(err, tidemark.ErrNotFound) {
		return Carried{}, err
	}
	return im.carry(ctx)
}

// carry reads the archive while nothing else writes into the session.
func (im *carrier) carry(ctx context.Context) (out Carried, err error) {
	if err := im.s.isEmpty(ctx); err != nil {
		return out, err
	}
	err = im.s.hold(ctx, func(h room.Held) error {
		im.h = h
		err := im.s.isEmpty(ctx) // still: a turn may have begun and ended before the run did
		if err == nil {
			err = im.all(ctx)
		}
		if err == nil {
			out, err = im.move(ctx)
		}
		if errors.Is(err, tidemark.ErrInvalid) || errors.Is(err, tidemark.ErrTooLarge) || errors.Is(err, errAstray) { // it comes to nothing, now or later
			err = errors.Join(err, im.discard(im.s.Life))
		}
		return err
	})
	return out, err
}

// isEmpty refuses a session that was used.
func (s *Carry) isEmpty(ctx context.Context) error {
	h, err := s.snaps.head(ctx)
	if err != nil {
		return err
	}
	rows, err := s.DB.Query(ctx, `SELECT EXISTS(SELECT 1 FROM entries WHERE log = ?) LIMIT 1`, h.log)
	if err != nil {
		return fmt.Errorf("read end of %s: %w", h.log, err)
	}
	segments, err := s.snaps.Log.Segments(ctx, h.log, 0)
	if err == nil && (rows[0].Int(0) > 0 || len(segments) > 1 || h.messages > 0) {
		err = fmt.Errorf("the session has messages already: import into a new one: %w", tidemark.ErrConflict)
	}
	return err
}
