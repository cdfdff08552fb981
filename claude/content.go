package claude

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"hash/crc32"
	"io"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/transcript"
)

// Sizes of the pieces of a file. A piece ends with a line that is chosen by its own bytes, so that a log that grew, or
// that lost lines at its beginning, has the same pieces elsewhere.
const (
	minPiece   = 512 << 10
	maxPiece   = 2 << 20
	oneOfLines = 64 // how seldom a line is one to end with
)

// contents is the table of contents of a snapshot: the log first, then what lies beside it.
type contents struct {
	Files []kept `json:"files"`
}

// kept is one file of a snapshot.
type kept struct {
	Path   string          `json:"path,omitempty"` // of a side file: with slashes, below the session's folder
	Size   int64           `json:"size"`
	SHA256 tidemark.Hash   `json:"sha256"`
	Pieces []tidemark.Hash `json:"pieces"`
}

// cutter cuts a file into pieces and keeps them.
type cutter struct {
	to  *objects
	sum hash.Hash
	buf []byte
	out kept
}

func newCutter(to *objects, path string) *cutter {
	return &cutter{to: to, sum: sha256.New(), buf: make([]byte, 0, maxPiece), out: kept{Path: path, Pieces: []tidemark.Hash{}}}
}

// Write takes bytes of the file and ends a piece only where it has to.
func (c *cutter) Write(p []byte) (int, error) {
	c.sum.Write(p)
	c.out.Size += int64(len(p))
	for rest := p; len(rest) > 0; {
		n := min(len(rest), maxPiece-len(c.buf))
		c.buf, rest = append(c.buf, rest[:n]...), rest[n:]
		if len(c.buf) == maxPiece {
			if err := c.flush(); err != nil {
				return 0, err
			}
		}
	}
	return len(p), nil
}

// line takes a line and ends a piece behind it, or before it when it has no room.
func (c *cutter) line(l transcript.Line) error {
	if int64(len(c.buf))+l.Size > maxPiece {
		if err := c.flush(); err != nil {
			return err
		}
	}
	if _, err := c.Write(l.Raw); err != nil {
		return err
	}
	const eye = 64
	if len(c.buf) >= minPiece && crc32.ChecksumIEEE(c.buf[len(c.buf)-eye:])%oneOfLines == 0 {
		return c.flush()
	}
	return nil
}

func (c *cutter) flush() error {
	if len(c.buf) == 0 {
		return nil
	}
	h, err := c.to.put(c.buf)
	c.out.Pieces = append(c.out.Pieces, h)
	c.buf = c.buf[:0]
	return err
}

func (c *cutter) finish() (kept, error) {
	err := c.flush()
	c.out.SHA256 = tidemark.Hash(hex.EncodeToString(c.sum.Sum(nil)))
	return c.out, err
}

// putContents keeps a table of contents.
func (o *objects) putContents(c contents) (tidemark.Hash, error) {
	raw, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("keep table of contents: %w", err)
	}
	if len(raw) > maxObject {
		return "", fmt.Errorf("keep table of contents: %d bytes, over %d: %w", len(raw), maxObject, tidemark.ErrTooLarge)
	}
	return o.put(raw)
}

func (o *objects) contents(h tidemark.Hash) (contents, error) {
	var c contents
	raw, err := o.get(h)
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(raw, &c); err != nil || len(c.Files) == 0 {
		return c, fmt.Errorf("read table of contents %s: it is damaged: %w", h, tidemark.ErrInvalid)
	}
	return c, nil
}

// reader reads a kept file piece by piece. Each piece is held against its hash, and the table that names the pieces
// against its own, so that the whole need not be hashed again.
func (o *objects) reader(k kept) io.Reader { return &pieceReader{from: o, k: k} }

type pieceReader struct {
	from *objects
	k    kept
	next int
	read int64
	cur  []byte
	err  error
}

func (r *pieceReader) Read(p []byte) (int, error) {
	for len(r.cur) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		if r.next == len(r.k.Pieces) {
			if r.err = io.EOF; r.read != r.k.Size {
				r.err = fmt.Errorf("read snapshot: its pieces have %d bytes, not %d: %w", r.read, r.k.Size, tidemark.ErrInvalid)
			}
			continue
		}
		r.cur, r.err = r.from.get(r.k.Pieces[r.next])
		r.read += int64(len(r.cur))
		r.next++
	}
	n := copy(p, r.cur)
	r.cur = r.cur[n:]
	return n, nil
}
