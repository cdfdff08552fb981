package snapshots

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/tidemark-ai/tidemark"
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

// Carry writes a snapshot of a conversation as an archive, and reads one into an empty session.
type Carry struct {
	room.Self
	room.Work
	snaps  *Room
	blocks room.Blocks
	hold   func(ctx context.Context, work func(h room.Held) error) error
}

// MakeCarry makes the room.
func MakeCarry(p room.Ports) any { return &Carry{p.Self, p.Work, newRoom(p), p.Blocks, p.Hold} }

var _ room.Waker = (*Carry)(nil)

// Export writes a snapshot as an archive (package snapshot): its messages, what is shown of them, large blocks,
// and what is known of the snapshots before it. Two exports of one are the same bytes.
func (s *Carry) Export(ctx context.Context, id string, w io.Writer) error {
	if err := s.export(ctx, id, w); err != nil {
		return fmt.Errorf("export %.80q: %w", id, err)
	}
	return nil
}

func (s *Carry) export(ctx context.Context, id string, w io.Writer) error {
	n, err := s.snaps.find(ctx, id)
	if err != nil {
		return err
	}
	m := snapshot.Manifest{Kind: snapshot.OfSession, Created: n.Created, Node: n.Node}
	more := carriedMore{Title: n.Name, Kept: n.State}
	if m.Lineage, more.Places, err = s.ancestors(ctx, n); err != nil {
		return err
	}
	m.More = []byte(room.JSON(more))
	out, err := snapshot.NewWriter(w, m)
	if err != nil {
		return err
	}
	segments, err := s.snaps.Log.Segments(ctx, n.Log, n.Seq)
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
func (s *Carry) ancestors(ctx context.Context, n room.Place) (list []snapshot.Node, places []carriedPlace, err error) {
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
func (s *Carry) lastEntry(ctx context.Context, log string, seq int64) (tidemark.EntryID, error) {
	for e, err := range s.snaps.Log.Walk(ctx, log, seq) {
		return e.ID, err
	}
	return "", nil
}

// exportLog writes the entries of one log up to a position, some at a time.
func (s *Carry) exportLog(ctx context.Context, out *snapshot.Writer, log string, to int64) error {
	var yields host.Yielder
	for after := int64(0); ; {
		page, err := s.snaps.Log.Forward(ctx, log, after, to)
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
			if err := yields.Did(ctx, s.Runtime, len(line)); err != nil {
				return err
			}
		}
	}
}

// exportEntry returns the line of an entry, behind the large blocks that it has.
func (s *Carry) exportEntry(ctx context.Context, out *snapshot.Writer, e tidemark.Entry) ([]byte, error) {
	payload, err := s.blocks.Export(ctx, e, out.Blob)
	if err != nil {
		return nil, err
	}
	return json.Marshal(carriedEntry{ID: e.ID, Kind: e.Kind, At: e.At.UnixMilli(), Origin: e.Origin, Call: e.Call, Chain: e.Chain, Payload: payload})
}
