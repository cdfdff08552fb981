package archive

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/tidemark-ai/tidemark"
)

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

// Rebuild makes the index from the archives themselves: after a bucket was copied by hand, came
// from the reference, or lost its index. It reads the metadata of each archive, and the whole of
// those whose metadata do not say enough. An archive that cannot be read is indexed with what its
// key says, so that it is listed and Verify tells why. It returns how many there are.
func Rebuild(ctx context.Context, blobs tidemark.Blobs, agent string, progress func(Progress)) (int, error) {
	var infos []Info
	p := Progress{}
	for o, err := range objects(ctx, blobs, Folder(agent)) {
		if err != nil {
			return 0, fmt.Errorf("rebuild index of %s: %w", agent, err)
		}
		if _, _, _, ok := ParseKey(o.Key); !ok || strings.HasPrefix(o.Key, Folder(agent)+indexFolder) {
			continue
		}
		i, read, err := inspect(ctx, blobs, o.Key)
		if err != nil {
			return 0, fmt.Errorf("rebuild index of %s: %w", agent, err)
		}
		infos = append(infos, i)
		p.Key, p.Done, p.Bytes = o.Key, p.Done+1, p.Bytes+read
		report(progress, p)
	}
	if err := Index(ctx, blobs, agent, infos...); err != nil {
		return 0, err
	}
	return len(infos), prune(ctx, blobs, agent, infos)
}

// prune takes archives out of the index that are neither among the found ones nor in the bucket, and out of months that
// they are not of.
func prune(ctx context.Context, blobs tidemark.Blobs, agent string, found []Info) error {
	month := map[string]string{} // where each is indexed now
	for _, i := range found {
		month[i.Key] = IndexKey(agent, i.At)
	}
	keys, err := months(ctx, blobs, agent)
	if err != nil {
		return fmt.Errorf("rebuild index of %s: %w", agent, err)
	}
	for _, key := range keys {
		infos, _, err := readMonth(ctx, blobs, key)
		if err != nil {
			return fmt.Errorf("rebuild index %s: %w", key, err)
		}
		gone := map[string]bool{}
		for _, i := range infos {
			if now := month[i.Key]; now != "" {
				gone[i.Key] = now != key
				continue
			}
			_, body, err := blobs.Get(ctx, i.Key) // it may have come since the listing
			switch {
			case err == nil:
				body.Close()
			case errors.Is(err, tidemark.ErrNotFound):
				gone[i.Key] = true
			default:
				return fmt.Errorf("rebuild index %s: %w", key, err)
			}
		}
		if err := mergeMonth(ctx, blobs, key, nil, gone); err != nil {
			return fmt.Errorf("rebuild index %s: %w", key, err)
		}
	}
	return nil
}

// inspect describes one archive. read is how many bytes that took.
func inspect(ctx context.Context, blobs tidemark.Blobs, key string) (i Info, read int64, err error) {
	o, body, err := blobs.Get(ctx, key)
	if err != nil {
		return Info{}, 0, err
	}
	defer body.Close()
	if i, err = describe(o); err != nil {
		return Info{}, 0, err
	}
	if i.Messages > 0 && i.SHA256 != "" && i.First != "" {
		return i, 0, nil
	}
	got := scan(body)
	if got.problem == "" {
		i.Messages, i.First, i.Last, i.SHA256 = got.lines, got.first, got.last, got.sum
	}
	return i, got.bytes, ctx.Err()
}

func report(progress func(Progress), p Progress) {
	if progress != nil {
		progress(p)
	}
}
