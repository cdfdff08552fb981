package archive

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
)

// maxStray bounds how many stray objects a [Survey] names.
const maxStray = 100

// Bounds are how far [Mend] looks. The zero value has none.
type Bounds struct {
	Objects int // in the folder; with more, nothing is compared
	Added   int // archives that are put into the index; the others wait for the next time
}

// Survey is what a look at the bucket showed beside the index.
type Survey struct {
	Added   []string `json:"added,omitempty"`   // archives that the index did not name; now it does
	Stray   []string `json:"stray,omitempty"`   // objects among the archives that are none, at most 100
	Partial bool     `json:"partial,omitempty"` // a bound was met, so there may be more
}

// Mend compares the objects of an agent with its index and adds what the index does not name: after
// its file was lost, or archives were copied in by hand. Entries whose objects are gone stay, for
// [Verify] to say so.
func Mend(ctx context.Context, blobs tidemark.Blobs, agent string, b Bounds) (Survey, error) {
	// The bucket first: what is written and indexed meanwhile is missed and not taken for lost.
	found, s, err := survey(ctx, blobs, agent, b.Objects)
	if len(found) == 0 {
		return s, err
	}
	for cursor := ""; ; {
		page, next, err := List(ctx, blobs, agent, ListOptions{Cursor: cursor, Limit: pageSize})
		if err != nil {
			return s, err
		}
		for _, i := range page {
			delete(found, i.Key)
		}
		if cursor = next; next == "" {
			break
		}
	}
	var infos []Info
	for _, key := range slices.Sorted(maps.Keys(found)) {
		if s.Partial = b.Added > 0 && len(infos) == b.Added; s.Partial {
			break
		}
		i, err := inspect(ctx, blobs, key)
		if errors.Is(err, tidemark.ErrNotFound) { // deleted meanwhile
			continue
		}
		if err != nil {
			return s, fmt.Errorf("mend index of %s: %w", agent, err)
		}
		infos, s.Added = append(infos, i), append(s.Added, key)
	}
	return s, Index(ctx, blobs, agent, infos...)
}

// survey tells archives from other objects in their folder. With more than limit objects it gives up.
func survey(ctx context.Context, blobs tidemark.Blobs, agent string, limit int) (map[string]bool, Survey, error) {
	found, s, n := map[string]bool{}, Survey{}, 0
	for o, err := range objects(ctx, blobs, Folder(agent)) {
		if err != nil {
			return nil, s, fmt.Errorf("list archives of %s: %w", agent, err)
		}
		if n++; limit > 0 && n > limit {
			return nil, Survey{Partial: true}, nil
		}
		rest := strings.TrimPrefix(o.Key, Folder(agent))
		if strings.HasPrefix(rest, indexFolder) && strings.HasSuffix(rest, indexSuffix) {
			continue
		}
		if _, _, _, ok := ParseKey(o.Key); ok {
			found[o.Key] = true
			continue
		}
		if len(s.Stray) < maxStray {
			s.Stray = append(s.Stray, o.Key)
		}
	}
	return found, s, nil
}

// objects yields the objects under a prefix.
func objects(ctx context.Context, blobs tidemark.Blobs, prefix string) iter.Seq2[tidemark.Object, error] {
	return func(yield func(tidemark.Object, error) bool) {
		for cursor := ""; ; {
			page, next, err := blobs.List(ctx, prefix, cursor, pageSize)
			if err != nil {
				yield(tidemark.Object{}, err)
				return
			}
			for _, o := range page {
				if !yield(o, nil) {
					return
				}
			}
			if cursor = next; next == "" {
				return
			}
		}
	}
}

// inspect describes one archive.
func inspect(ctx context.Context, blobs tidemark.Blobs, key string) (i Info, err error) {
	o, body, err := blobs.Get(ctx, key)
	if err != nil {
		return Info{}, err
	}
	defer body.Close()
	if i, err = describe(o); err != nil {
		return Info{}, err
	}
	if i.Messages > 0 && i.SHA256 != "" && i.First != "" {
		return i, nil
	}
	got := scan(body)
	if got.problem == "" {
		i.Messages, i.First, i.Last, i.SHA256 = got.lines, got.first, got.last, got.sum
	}
	return i, ctx.Err()
}
