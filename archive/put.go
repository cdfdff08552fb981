package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/tidemark-ai/tidemark"
)

// Put stores a pack under i.Key and returns its full description. It never replaces an archive:
// when the key is taken by the same lines, the earlier attempt had succeeded and so has this one.
//
// # Errors
//
// ErrConflict when the key holds other lines, ErrInvalid for a bad key or an empty pack, otherwise
// what the bucket says; after any error the call may be made again.
func Put(ctx context.Context, blobs tidemark.Blobs, i Info, p Pack) (Info, error) {
	if err := checkPut(&i, p.Messages); err != nil {
		return Info{}, err
	}
	i.Messages, i.First, i.Last = p.Messages, p.First, p.Last
	i.Bytes, i.RawBytes, i.SHA256 = int64(len(p.Data)), p.RawBytes, p.SHA256
	_, err := blobs.Put(ctx, i.Key, bytes.NewReader(p.Data), i.Bytes,
		tidemark.PutOptions{IfAbsent: true, ContentType: contentType, Metadata: i.metadata()})
	if errors.Is(err, tidemark.ErrConflict) {
		return settle(ctx, blobs, i, func() (tidemark.Hash, error) { return p.LinesSHA256, nil })
	}
	if err != nil {
		return Info{}, fmt.Errorf("archive %s: %w", i.Key, err)
	}
	return i, nil
}

// PutWhole stores a whole session: the members of its parts in order, then the tail, which may be
// empty. The parts are streamed from the bucket and their hashes checked on the way; the length is
// known beforehand. It is as safe to repeat as Put.
func PutWhole(ctx context.Context, blobs tidemark.Blobs, i Info, parts []Info, tail Pack) (Info, error) {
	i.Messages, i.Bytes, i.RawBytes, i.Part = tail.Messages, int64(len(tail.Data)), tail.RawBytes, 0
	for _, p := range parts {
		i.Messages += p.Messages
		i.Bytes += p.Bytes
		i.RawBytes += p.RawBytes
	}
	if err := checkPut(&i, i.Messages); err != nil {
		return Info{}, err
	}
	i.First, i.Last = tail.First, tail.Last
	if len(parts) > 0 {
		i.First = parts[0].First
		if tail.Messages == 0 {
			i.Last = parts[len(parts)-1].Last
		}
	}
	sum := sha256.New()
	body := newJoined(ctx, blobs, parts, tail)
	defer body.Close()
	_, err := blobs.Put(ctx, i.Key, io.TeeReader(body, sum), i.Bytes,
		tidemark.PutOptions{IfAbsent: true, ContentType: contentType, Metadata: i.metadata()})
	if errors.Is(err, tidemark.ErrConflict) && body.err == nil {
		return settle(ctx, blobs, i, func() (tidemark.Hash, error) {
			again := newJoined(ctx, blobs, parts, tail)
			defer again.Close()
			return linesSum(again)
		})
	}
	if body.err != nil { // says more than a store whose reader failed
		err = body.err
	}
	if err != nil {
		return Info{}, fmt.Errorf("archive %s: %w", i.Key, err)
	}
	i.SHA256 = tidemark.Hash(hex.EncodeToString(sum.Sum(nil)))
	return i, nil
}

func checkPut(i *Info, messages int) error {
	agent, session, _, ok := ParseKey(i.Key)
	if !ok {
		return fmt.Errorf("archive %q: want a key of PartKey or WholeKey: %w", i.Key, tidemark.ErrInvalid)
	}
	if err := tidemark.CheckKey(i.Key); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	if messages == 0 {
		return fmt.Errorf("archive %s: no messages: %w", i.Key, tidemark.ErrInvalid)
	}
	i.Agent, i.Session = agent, session
	return nil
}

// settle decides what a taken key means. Compressed bytes may differ between versions of the
// program, so it compares the lines.
func settle(ctx context.Context, blobs tidemark.Blobs, i Info, want func() (tidemark.Hash, error)) (Info, error) {
	o, body, err := blobs.Get(ctx, i.Key)
	if err != nil {
		return Info{}, fmt.Errorf("archive %s: read what is there: %w", i.Key, err)
	}
	defer body.Close()
	sum := sha256.New()
	have, err := linesSum(io.TeeReader(body, sum))
	if err != nil {
		return Info{}, fmt.Errorf("archive %s exists and cannot be read, move it away: %w: %w", i.Key, err, tidemark.ErrConflict)
	}
	ours, err := want()
	if err != nil {
		return Info{}, fmt.Errorf("archive %s: %w", i.Key, err)
	}
	if have != ours {
		return Info{}, fmt.Errorf("archive %s exists with other content: %w", i.Key, tidemark.ErrConflict)
	}
	i.Bytes, i.SHA256 = o.Size, tidemark.Hash(hex.EncodeToString(sum.Sum(nil)))
	if d, err := describe(o); err == nil && !d.At.IsZero() {
		i.At = d.At
	}
	return i, nil
}

// linesSum hashes the decompressed lines of an archive, to its last byte.
func linesSum(r io.Reader) (tidemark.Hash, error) {
	sum := sha256.New()
	for line, err := range rawLines(r, Limits{}) {
		if err != nil {
			return "", err
		}
		sum.Write(line)
		sum.Write([]byte{'\n'})
	}
	return tidemark.Hash(hex.EncodeToString(sum.Sum(nil))), nil
}

// joined reads the parts one after the other and then the tail. Each part is opened when it is its
// turn, and must have the length and the hash that its description has.
type joined struct {
	ctx   context.Context
	blobs tidemark.Blobs
	parts []Info
	tail  *bytes.Reader

	body io.ReadCloser // of parts[0], nil between parts
	sum  hash.Hash     // of what was read of it
	left int64         // bytes not yet read of it
	err  error         // what ended the reading early
}

func newJoined(ctx context.Context, blobs tidemark.Blobs, parts []Info, tail Pack) *joined {
	return &joined{ctx: ctx, blobs: blobs, parts: parts, tail: bytes.NewReader(tail.Data)}
}

// Read implements io.Reader.
func (j *joined) Read(p []byte) (int, error) {
	for j.err == nil && len(j.parts) > 0 {
		n, err := j.readPart(p)
		if err != nil {
			j.err = fmt.Errorf("part %s: %w", j.parts[0].Key, err)
		}
		if n > 0 {
			return n, nil
		}
	}
	if j.err != nil {
		return 0, j.err
	}
	return j.tail.Read(p)
}

// readPart checks the hash with the last byte, since a store that knows the length does not ask for
// the end of the file.
func (j *joined) readPart(p []byte) (int, error) {
	part := j.parts[0]
	if j.body == nil {
		o, body, err := j.blobs.Get(j.ctx, part.Key)
		if err != nil {
			return 0, err
		}
		j.body, j.sum, j.left = body, sha256.New(), part.Bytes
		if o.Size != part.Bytes {
			return 0, fmt.Errorf("%d bytes, %d were written: %w", o.Size, part.Bytes, tidemark.ErrInvalid)
		}
	}
	n, err := j.body.Read(p[:min(int64(len(p)), j.left)])
	j.sum.Write(p[:n])
	if j.left -= int64(n); j.left > 0 {
		if err == io.EOF {
			return n, io.ErrUnexpectedEOF
		}
		return n, err
	}
	if got := hex.EncodeToString(j.sum.Sum(nil)); part.SHA256 != "" && got != string(part.SHA256) {
		return 0, fmt.Errorf("hash %s, want %s: %w", got, part.SHA256, tidemark.ErrInvalid)
	}
	closed := j.body.Close()
	j.body, j.parts = nil, j.parts[1:]
	return n, closed
}

// Close closes a part that was not read to its end.
func (j *joined) Close() {
	if j.body != nil {
		j.body.Close()
		j.body = nil
	}
}
