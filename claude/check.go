package claude

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// Checked is what a check of the store came to.
type Checked struct {
	Snapshots int       `json:"snapshots"` // that were looked at; names without content are not
	Bytes     int64     `json:"bytes"`     // that were read, each piece once
	Damaged   []Damaged `json:"damaged"`
}

// Damaged is a snapshot that cannot be read.
type Damaged struct {
	Node    snapshot.Node `json:"snapshot"`
	Problem string        `json:"problem"` // the first
}

// Check reads what a snapshot keeps, or all of them when ref is "", and holds it against its hashes. What it finds damaged
// is mended by an import of the snapshot's archive, and by another snapshot of the same log: both hold what is there
// against what they have.
func (s *Store) Check(ctx context.Context, ref string) (Checked, error) {
	out := Checked{Damaged: []Damaged{}}
	release, err := s.hold(ctx, useName, true)
	if err != nil {
		return out, fmt.Errorf("check snapshots: %w", err)
	}
	defer release()
	j, err := s.journal()
	if err != nil {
		return out, fmt.Errorf("check snapshots: %w", err)
	}
	records := j.records
	if ref != "" {
		r, _, err := s.kept(ctx, ref)
		if r == nil {
			return out, fmt.Errorf("check snapshot: %w", err)
		}
		records = []*record{r} // a table of contents that is damaged is what is looked for
	}
	c := checking{objects: s.objects(), seen: map[tidemark.Hash]error{}}
	for _, r := range records {
		if r.Content == "" {
			continue
		}
		out.Snapshots++
		err := c.snapshot(ctx, r)
		if err != nil && ctx.Err() != nil {
			return out, fmt.Errorf("check snapshots: %w", ctx.Err())
		}
		if err != nil {
			out.Damaged = append(out.Damaged, Damaged{*r.Node, plain(err)})
		}
	}
	out.Bytes = c.bytes
	return out, nil
}

// plain is an error without the words of its kind.
func plain(err error) string {
	text := err.Error()
	for _, kind := range []error{tidemark.ErrInvalid, tidemark.ErrNotFound} {
		text = strings.TrimSuffix(text, ": "+kind.Error())
	}
	return text
}

// checking reads each object once.
type checking struct {
	objects *objects
	seen    map[tidemark.Hash]error
	bytes   int64
}

// snapshot reads all of one snapshot.
func (c *checking) snapshot(ctx context.Context, r *record) error {
	table, err := c.objects.contents(r.Content)
	if err != nil {
		return err
	}
	for _, f := range table.Files {
		for _, h := range f.Pieces {
			err, seen := c.seen[h]
			if !seen {
				var content []byte
				content, err = c.objects.get(h)
				c.bytes += int64(len(content))
				c.seen[h] = err
			}
			if err := errors.Join(err, ctx.Err()); err != nil {
				return err
			}
		}
	}
	return nil
}
