package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/blocks"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// An archive of a snapshot holds its history as lines of the stream "log", one an entry, oldest first: through all that
// it continues, so that where it comes from none is needed. Large blocks stand before the first entry that has them.
// The results of tools that the database keeps compressed stand in their entries.

// carryStream is the stream of the entries.
const carryStream = "log"

// carryLine bounds one line: a row and what of it stands in the table of artifacts.
const carryLine = 16 << 20

// carriedEntry is a line.
type carriedEntry struct {
	ID      tidemark.EntryID `json:"id"`
	Kind    tidemark.Kind    `json:"kind"`
	At      int64            `json:"at"` // ms
	Origin  tidemark.Origin  `json:"origin"`
	Call    *tidemark.Call   `json:"call,omitempty"`
	Chain   tidemark.Hash    `json:"chain,omitempty"` // of messages
	Payload json.RawMessage  `json:"payload"`
}

// carriedMore is what the manifest says beside the node.
type carriedMore struct {
	Title  string         `json:"title,omitempty"`
	Kept   room.State     `json:"kept"`
	Places []carriedPlace `json:"places,omitempty"` // of the ancestors, as the last entry of each
}

type carriedPlace struct {
	ID    string           `json:"id"`
	Entry tidemark.EntryID `json:"entry"`
}

// ExportSnapshot writes a snapshot as an archive (package snapshot): its messages, what is shown of them, large blocks,
// and what is known of the snapshots before it. Two exports of one are the same bytes.
func (s *Session) ExportSnapshot(ctx context.Context, id string, w io.Writer) error {
	if err := s.exportSnapshot(ctx, id, w); err != nil {
		return fmt.Errorf("export %.80q: %w", id, err)
	}
	return nil
}

func (s *Session) exportSnapshot(ctx context.Context, id string, w io.Writer) error {
	n, err := s.snapshotOf(ctx, id)
	if err != nil {
		return err
	}
	m := snapshot.Manifest{Kind: snapshot.OfSession, Created: n.Created, Node: n.Node}
	more := carriedMore{Title: n.Name, Kept: n.State}
	if m.Lineage, more.Places, err = s.ancestors(ctx, n); err != nil {
		return err
	}
	m.More = []byte(mustJSON(more))
	out, err := snapshot.NewWriter(w, m)
	if err != nil {
		return err
	}
	segments, err := s.log.Segments(ctx, n.Log, n.Seq)
	if err != nil {
		return err
	}
	for _, part := range slices.Backward(segments) {
		if err := s.exportLog(ctx, out, part.Log, part.To); err != nil {
			return err
		}
	}
	return out.Close()
}

// ancestors are the snapshots that a history went through, root first, with where they are in it.
func (s *Session) ancestors(ctx context.Context, n room.Place) (list []snapshot.Node, places []carriedPlace, err error) {
	for len(list) < snapshot.MaxLineage {
		rows, err := s.DB.Query(ctx, `SELECT p.id, p.log, p.seq, p.node FROM branches b JOIN snapshots p ON p.id = b.snapshot WHERE b.log = ? ORDER BY p.root = ? DESC, p.root LIMIT 1`,
			n.Log, string(s.Key.Root())) // in a log that conversations share it may be of another alone
		if err != nil {
			return nil, nil, fmt.Errorf("read ancestors: %w", err)
		}
		if len(rows) == 0 {
			break
		}
		next := room.Place{Log: rows[0].Text(1), Seq: rows[0].Int(2)}
		if err := json.Unmarshal(rows[0].Bytes(3), &next.Node); err != nil {
			return nil, nil, fmt.Errorf("read snapshot %s: %w", rows[0].Text(0), err)
		}
		last, err := s.lastEntry(ctx, next.Log, next.Seq)
		if err != nil {
			return nil, nil, err
		}
		list, places = append(list, next.Node), append(places, carriedPlace{next.ID, last})
		n = next
	}
	slices.Reverse(list)
	slices.Reverse(places)
	return list, places, nil
}

// lastEntry is the newest entry of a history at or before a position, whatever it is.
func (s *Session) lastEntry(ctx context.Context, log string, seq int64) (tidemark.EntryID, error) {
	for e, err := range s.log.Walk(ctx, log, seq) {
		return e.ID, err
	}
	return "", nil
}

// exportLog writes the entries of one log up to a position, some at a time.
func (s *Session) exportLog(ctx context.Context, out *snapshot.Writer, log string, to int64) error {
	var pace room.Pace
	for after := int64(0); ; {
		page, err := s.log.Forward(ctx, log, after, to)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, e := range page {
			line, err := s.exportEntry(ctx, out, e)
			if err == nil {
				err = out.Line(carryStream, line)
			}
			if err != nil {
				return fmt.Errorf("entry %s: %w", e.ID, err)
			}
			after = e.Seq
			if err := pace.Did(ctx, s.Runtime, len(line)); err != nil {
				return err
			}
		}
	}
}

// exportEntry returns the line of an entry, behind the large blocks that it has.
func (s *Session) exportEntry(ctx context.Context, out *snapshot.Writer, e tidemark.Entry) ([]byte, error) {
	c := carriedEntry{ID: e.ID, Kind: e.Kind, At: e.At.UnixMilli(), Origin: e.Origin, Call: e.Call, Chain: e.Chain, Payload: e.Payload}
	if e.Kind == tidemark.KindMessage && bytes.Contains(e.Payload, []byte(blocks.Field)) {
		m, err := e.Message()
		if err != nil {
			return nil, err
		}
		var rows []int
		for i, b := range m.Content {
			switch ref, ok := blocks.Reference(b); {
			case !ok:
			case ref.InRow():
				rows = append(rows, i)
			default:
				if err := s.exportBlob(ctx, out, ref); err != nil {
					return nil, err
				}
			}
		}
		if m, err = s.blocks.ReadSome(ctx, m, rows); err != nil {
			return nil, err
		}
		if len(blocks.RowRefs(m, rows)) > 0 {
			return nil, fmt.Errorf("a result of a tool is gone, or damaged: %w", tidemark.ErrUnavailable)
		}
		c.Payload = m.AppendJSON(nil)
	}
	return json.Marshal(c)
}

func (s *Session) exportBlob(ctx context.Context, out *snapshot.Writer, ref blocks.Ref) error {
	o, body, err := s.Blobs.Get(ctx, s.blocks.Name(ref.SHA256))
	if err != nil {
		return fmt.Errorf("read block %s: %w", ref.SHA256, err)
	}
	defer body.Close()
	if o.Size != int64(ref.Bytes) {
		return fmt.Errorf("block %s has %d bytes of %d, and %w: %w", ref.SHA256, o.Size, ref.Bytes, blocks.ErrDamaged, tidemark.ErrUnavailable)
	}
	return out.Blob(tidemark.Hash(ref.SHA256), o.Size, body)
}

// Carried is what an archive brought.
type Carried struct {
	Node     snapshot.Node `json:"snapshot"`
	Key      tidemark.Key  `json:"key"`
	Messages int           `json:"messages"`
	Again    bool          `json:"again,omitempty"` // it was here already
}

// CheckSnapshot reads an archive through, which says whether it is whole, or, with head, only what it is of: a refusal
// that needs no session. id is the snapshot that it must be of, "" for any.
//
// # Errors
//
// tidemark.ErrInvalid, tidemark.ErrTooLarge.
func CheckSnapshot(r io.Reader, id string, head bool) error {
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

// ImportSnapshot reads such an archive into this session, which must be empty: it then goes on from the snapshot, and
// branches of the snapshot can be made. The same one twice is one; an import that was cut off can be made again, and
// what this store has of the messages already is not stored twice. id is the snapshot that it must be of, "" for any.
//
// # Errors
//
// tidemark.ErrInvalid for an archive that is damaged or was changed, tidemark.ErrConflict for a session that is in use,
// tidemark.ErrBusy while a turn is in work there.
func (s *Session) ImportSnapshot(ctx context.Context, id string, r io.Reader) (Carried, error) {
	c, err := s.importSnapshot(ctx, id, r)
	if err != nil {
		return Carried{}, fmt.Errorf("import into %s: %w", s.Key, err)
	}
	s.tellNow(ctx, c.Node)
	s.tellSoon()
	return c, nil
}

func (s *Session) importSnapshot(ctx context.Context, id string, r io.Reader) (Carried, error) {
	if err := s.mayBranch(); err != nil {
		return Carried{}, err
	}
	if s.Key != s.Key.Root() {
		return Carried{}, fmt.Errorf("what is behind # is a branch of %s: name a session of its own: %w", s.Key.Root(), tidemark.ErrInvalid)
	}
	in, err := openArchive(r, id)
	if err != nil {
		return Carried{}, err
	}
	im := &carrier{s: s, in: in, m: in.Manifest(), blobs: map[string]bool{}, places: map[tidemark.EntryID][]string{}, found: map[string]host.Segment{}}
	if len(im.m.More) > 0 {
		if err := json.Unmarshal(im.m.More, &im.more); err != nil {
			return Carried{}, fmt.Errorf("manifest.json: more: %w: %w", err, tidemark.ErrInvalid)
		}
	}
	for _, p := range im.more.Places {
		im.places[p.Entry] = append(im.places[p.Entry], p.ID)
	}
	if err := s.made.Open(ctx, snapshotTables); err != nil {
		return Carried{}, err
	}
	n, err := s.snapshotOf(ctx, im.m.Node.ID)
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

// carry reads the archive under the fence of a run of its own, so that nothing else writes into the session meanwhile.
func (im *carrier) carry(ctx context.Context) (out Carried, err error) {
	s := im.s
	if err := s.isEmpty(ctx); err != nil {
		return out, err
	}
	if im.r, err = s.beginImport(ctx); err != nil {
		return out, err
	}
	defer s.kick()
	defer s.release(im.r.ID)
	if err = s.isEmpty(ctx); err == nil { // still: a turn may have begun and ended before the run did
		err = im.all(ctx)
	}
	if err == nil {
		out, err = im.move(ctx)
	}
	if err != nil {
		if errors.Is(err, tidemark.ErrInvalid) || errors.Is(err, tidemark.ErrTooLarge) || errors.Is(err, errAstray) { // it comes to nothing, now or later
			err = errors.Join(err, im.discard(s.life))
		}
		return out, errors.Join(err, s.step(s.life, im.r, stateFailed, s.endStmts(outboxRetry)...))
	}
	return out, nil
}

// isEmpty refuses a session that was used.
func (s *Session) isEmpty(ctx context.Context) error {
	h, err := s.head(ctx)
	if err != nil {
		return err
	}
	last, err := s.lastSeq(ctx, h.Log)
	if err != nil {
		return err
	}
	bases, err := s.bases(ctx, h.Log)
	if err == nil && (last > 0 || len(bases) > 0 || h.Messages > 0) {
		err = fmt.Errorf("the session has messages already: import into a new one: %w", tidemark.ErrConflict)
	}
	return err
}
