//go:build !js

package native

import (
	"context"
	"io/fs"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
)

// maxPage is the most that one page of a listing holds; S3 and R2 give as many.
const maxPage = 1000

// List implements [tidemark.Blobs]; the cursor is the last key of the page before. It reads the
// folders on the way, not the whole tree.
func (d *Dir) List(ctx context.Context, prefix, cursor string, limit int) ([]tidemark.Object, string, error) {
	l := lister{d: d, ctx: ctx, prefix: prefix, cursor: cursor, limit: pageLimit(limit)}
	if ctx.Err() != nil {
		return nil, "", d.fail("list", prefix, context.Cause(ctx))
	}
	more, err := l.folder("")
	if err != nil {
		return nil, "", d.fail("list", prefix, err)
	}
	if !more {
		return l.page, "", nil
	}
	return l.page, l.page[len(l.page)-1].Key, nil
}

// pageLimit is the number of objects that a page may hold.
func pageLimit(limit int) int {
	if limit <= 0 {
		return maxPage
	}
	return min(limit, maxPage)
}

// lister is one call of List.
type lister struct {
	d              *Dir
	ctx            context.Context
	prefix, cursor string
	limit          int
	page           []tidemark.Object
}

// folder lists what lies below base, which is empty or ends with a slash, and reports whether there
// is more than the page holds.
func (l *lister) folder(base string) (more bool, err error) {
	if l.ctx.Err() != nil {
		return false, context.Cause(l.ctx)
	}
	name := strings.TrimSuffix(base, "/")
	if base == "" {
		name = "."
	}
	entries, err := fs.ReadDir(l.d.root.FS(), name)
	if err != nil {
		if gone(err) && base != "" {
			return false, nil // removed while we read
		}
		return false, err
	}
	for _, key := range keysOf(base, entries) {
		if !l.wanted(key) {
			continue
		}
		if strings.HasSuffix(key, "/") {
			more, err = l.folder(key)
		} else {
			more, err = l.file(key)
		}
		if more || err != nil {
			return more, err
		}
	}
	return false, nil
}

// keysOf gives files as keys and folders as prefixes of keys, in the byte order of all that is
// below them: a slash counts as part of a folder's name.
func keysOf(base string, entries []fs.DirEntry) []string {
	keys := make([]string, 0, len(entries))
	for _, e := range entries {
		if base == "" && strings.EqualFold(e.Name(), metaDir) {
			continue
		}
		key := base + e.Name()
		if e.IsDir() {
			key += "/"
		}
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// wanted reports whether a key, or some key that begins with a folder's prefix, can be on the page.
func (l *lister) wanted(key string) bool {
	if strings.HasSuffix(key, "/") {
		inPrefix := strings.HasPrefix(key, l.prefix) || strings.HasPrefix(l.prefix, key)
		return inPrefix && (key > l.cursor || strings.HasPrefix(l.cursor, key))
	}
	return strings.HasPrefix(key, l.prefix) && key > l.cursor
}

// file adds one file to the page, unless it is none that Get would give.
func (l *lister) file(key string) (more bool, err error) {
	if l.d.checkKey(key) != nil {
		return false, nil //nolint:nilerr // no key of ours: Get would refuse it too
	}
	info, err := l.d.stat(key)
	if err != nil {
		return false, nil //nolint:nilerr // gone meanwhile, a link out of the folder, or nothing that can be read
	}
	if len(l.page) == l.limit {
		return true, nil
	}
	l.page = append(l.page, tidemark.Object{Key: key, Size: info.Size(), ETag: etag(info), Modified: info.ModTime()})
	return false, nil
}
