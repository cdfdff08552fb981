package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/tidemark-ai/tidemark"
)

// Verdict is what [Verify] found of one archive.
type Verdict struct {
	Key      string   `json:"key"`
	OK       bool     `json:"ok"`
	Messages int      `json:"messages"`
	Bytes    int64    `json:"bytes"`
	Problems []string `json:"problems,omitempty"`
}

// Verify reads an archive to its end: its compression, its hash and size against its description,
// its count of messages, and every line as a message. The description comes from the index; with
// only a Key in it, the object's own metadata is used. An error means that it could not be judged.
func Verify(ctx context.Context, blobs tidemark.Blobs, want Info) (Verdict, error) {
	v := Verdict{Key: want.Key}
	o, body, err := blobs.Get(ctx, want.Key)
	if errors.Is(err, tidemark.ErrNotFound) {
		v.Problems = append(v.Problems, "the object is missing")
		return v, nil
	}
	if err != nil {
		return v, fmt.Errorf("verify %s: %w", want.Key, err)
	}
	defer body.Close()
	own, err := describe(o)
	if err != nil {
		return v, fmt.Errorf("verify: %w", err)
	}
	if want.Messages == 0 && want.SHA256 == "" {
		want = own
	}
	got := scan(body)
	if ctx.Err() != nil {
		return v, fmt.Errorf("verify %s: %w", want.Key, context.Cause(ctx))
	}
	v.Messages, v.Bytes = got.messages, got.bytes
	v.note(got.problem != "", "%s", got.problem)
	v.note(want.SHA256 != "" && got.sum != want.SHA256, "hash is %s, %s was written", got.sum, want.SHA256)
	v.note(want.Bytes > 0 && got.bytes != want.Bytes, "%d bytes, %d were written", got.bytes, want.Bytes)
	v.note(want.Messages > 0 && got.lines != want.Messages, "%d messages, %d were written", got.lines, want.Messages)
	v.note(want.First != "" && got.first != want.First, "begins with entry %s, not %s", got.first, want.First)
	v.note(want.Last != "" && got.last != want.Last, "ends with entry %s, not %s", got.last, want.Last)
	v.OK = len(v.Problems) == 0
	return v, nil
}

func (v *Verdict) note(bad bool, format string, args ...any) {
	if bad {
		v.Problems = append(v.Problems, fmt.Sprintf(format, args...))
	}
}

// scanned is what reading an archive to its end shows.
type scanned struct {
	messages    int // after joining results of parallel calls
	lines       int // good ones
	bytes       int64
	sum         tidemark.Hash
	first, last tidemark.EntryID
	problem     string // the first; empty for a sound archive
}

func scan(body io.Reader) scanned {
	var s scanned
	sum := sha256.New()
	in := &counter{r: io.TeeReader(body, sum)}
	for l, err := range Decode(in, Limits{}) {
		if err != nil {
			if s.problem == "" {
				s.problem = err.Error()
			}
			continue
		}
		if s.messages == 0 {
			s.first = l.ID
		}
		s.last = l.ID
		s.messages++
		s.lines += l.Lines
	}
	_, _ = io.Copy(io.Discard, in) // what follows a damaged place, which is the problem; a sound archive was read to its end
	s.bytes, s.sum = in.n, tidemark.Hash(hex.EncodeToString(sum.Sum(nil)))
	return s
}
