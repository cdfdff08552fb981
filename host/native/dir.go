//go:build !js

package native

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/tidemark-ai/tidemark"
)

var _ tidemark.Blobs = (*Dir)(nil)

const (
	metaDir   = ".meta"          // beside the objects: metadata, locks, unfinished files
	tmpDir    = metaDir + "/tmp" // bodies on their way; on the same file system, for the rename
	lockDir   = metaDir + "/lock"
	stripes   = 64             // locks that keys share by hash
	staleTemp = 24 * time.Hour // an unfinished file older than this has lost its writer
	putTries  = 10             // against a Delete that removes the folder again meanwhile
)

// Dir is a folder as a bucket. A key is the path of a plain file below it, so that anyone can read
// and edit agents/main/memory/2026-11-21.md with the tools they have. Content type and metadata lie
// beside, below .meta; a file that a person changed or put there has none and is served all the
// same. The ETag is the file's size and time of change, so an edit is noticed by IfMatch.
//
// Conditional writes hold between goroutines and between processes on one machine. A symbolic link
// that leads out of the folder is ErrForbidden; List does not follow links to folders. Unlike a
// bucket, a folder cannot hold the key a and the key a/b at once: the second is ErrInvalid.
type Dir struct {
	path string
	root *os.Root
	mu   [stripes]sync.Mutex // each guards the keys of its stripe within the process
}

// NewDir opens the folder at root and creates it when it is not there. Close gives it back.
func NewDir(root string) (*Dir, error) {
	for _, dir := range []string{root, filepath.Join(root, tmpDir), filepath.Join(root, lockDir)} {
		if err := os.MkdirAll(dir, dirPerm); err != nil {
			return nil, fmt.Errorf("open blob folder %s: %w: %w", root, err, tidemark.ErrUnavailable)
		}
	}
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("open blob folder %s: %w: %w", root, err, tidemark.ErrUnavailable)
	}
	d := &Dir{path: root, root: r}
	d.sweep()
	return d, nil
}

// Close gives up the folder. It must not be called while other calls run.
func (d *Dir) Close() error { return d.root.Close() }

// sweep removes the unfinished files of writers that were killed.
func (d *Dir) sweep() {
	entries, err := fs.ReadDir(d.root.FS(), tmpDir)
	if err != nil {
		return // the first Put says what is wrong with the folder
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > staleTemp {
			_ = d.root.Remove(tmpDir + "/" + e.Name())
		}
	}
}

// checkKey adds to the rules of every store what a folder reserves and cannot name.
func (d *Dir) checkKey(key string) error {
	if err := tidemark.CheckKey(key); err != nil {
		return err
	}
	first, _, _ := strings.Cut(key, "/")
	if strings.EqualFold(first, metaDir) { // some file systems ignore case
		return fmt.Errorf("keys below %s are reserved: %w", metaDir, tidemark.ErrInvalid)
	}
	for part := range strings.SplitSeq(key, "/") {
		if len(part) > 255 {
			return fmt.Errorf("part %.20q… has %d bytes, a file name at most 255: %w", part, len(part), tidemark.ErrInvalid)
		}
	}
	return nil
}

// Put implements [tidemark.Blobs]: a synced temporary file that takes the place of the old one.
func (d *Dir) Put(ctx context.Context, key string, r io.Reader, size int64, opt tidemark.PutOptions) (tidemark.Object, error) {
	o, err := d.put(ctx, key, r, size, opt)
	if err != nil {
		return tidemark.Object{}, d.fail("put", key, err)
	}
	return o, nil
}

func (d *Dir) put(ctx context.Context, key string, r io.Reader, size int64, opt tidemark.PutOptions) (tidemark.Object, error) {
	if err := cmp.Or(d.checkKey(key), tidemark.CheckMetadata(opt.Metadata), context.Cause(ctx)); err != nil {
		return tidemark.Object{}, err
	}
	body, err := newExactReader(r, size)
	if err != nil {
		return tidemark.Object{}, err
	}
	tmp := tmpDir + "/" + rand.Text()
	defer func() { _ = d.root.Remove(tmp) }() // gone already when all went well; a leftover is swept at the next start
	info, sum, err := d.writeTemp(ctx, tmp, body)
	if err != nil {
		return tidemark.Object{}, err
	}
	unlock, err := d.lock(key)
	if err != nil {
		return tidemark.Object{}, err
	}
	defer unlock()
	if err := d.checkCondition(key, opt); err != nil {
		return tidemark.Object{}, err
	}
	if ctx.Err() != nil {
		return tidemark.Object{}, context.Cause(ctx)
	}
	m := sidecar{Key: key, Sum: sum, ContentType: opt.ContentType, Metadata: opt.Metadata}
	if err := d.commit(key, tmp, info, m); err != nil {
		return tidemark.Object{}, err
	}
	return m.object(key, info), nil
}

// writeTemp writes and syncs a body. The file gets a time of change in full nanoseconds, which
// makes it unlike any that the kernel's coarser clock gives to an edit.
func (d *Dir) writeTemp(ctx context.Context, tmp string, body io.Reader) (fs.FileInfo, string, error) {
	f, err := d.root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, filePerm)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(f, sum), &ctxReader{ctx, body}); err != nil {
		return nil, "", err
	}
	now := time.Now()
	if err := d.root.Chtimes(tmp, now, now); err != nil {
		return nil, "", err
	}
	if err := f.Sync(); err != nil {
		return nil, "", err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, "", err
	}
	return info, hex.EncodeToString(sum.Sum(nil)), f.Close()
}

// checkCondition compares what is there with what the caller expects; the key is locked.
func (d *Dir) checkCondition(key string, opt tidemark.PutOptions) error {
	if !opt.IfAbsent && opt.IfMatch == "" {
		return nil
	}
	info, err := d.stat(key)
	switch {
	case errors.Is(err, tidemark.ErrNotFound):
		if opt.IfMatch != "" {
			return fmt.Errorf("there is no such key: %w", tidemark.ErrConflict)
		}
		return nil
	case err != nil:
		return err
	case opt.IfAbsent:
		return fmt.Errorf("the key exists: %w", tidemark.ErrConflict)
	case etag(info) != opt.IfMatch:
		return fmt.Errorf("ETag is %s, expected %s: %w", etag(info), opt.IfMatch, tidemark.ErrConflict)
	}
	return nil
}

// commit puts the sidecar and then the file in place. A kill between the two leaves the old file
// with its old sidecar, which is removed only afterwards; a sidecar finds its file by size and
// time, see sidecarPath.
func (d *Dir) commit(key, tmp string, info fs.FileInfo, m sidecar) error {
	if err := d.writeSidecar(key, info, m); err != nil {
		return err
	}
	if err := d.place(key, tmp); err != nil {
		return err
	}
	d.dropSidecars(key, path.Base(sidecarPath(key, info)))
	return nil
}

// place renames the temporary file to its key and makes that durable.
func (d *Dir) place(key, tmp string) error {
	dir := path.Dir(key)
	for try := 1; ; try++ {
		if err := d.makeDir(dir); err != nil {
			return err
		}
		err := d.root.Rename(tmp, key)
		switch {
		case err == nil:
			return d.syncDir(dir)
		case errors.Is(err, fs.ErrNotExist) && try < putTries:
			continue // a Delete removed the folder, which was empty until now
		case d.isDir(key):
			if d.root.Remove(key) == nil && try < putTries {
				continue // the folder was empty
			}
			return fmt.Errorf("a folder cannot hold this key beside keys that begin with %s/: %w", key, tidemark.ErrInvalid)
		}
		return err
	}
}

// makeDir creates the folders of a key and syncs each one that it created.
func (d *Dir) makeDir(dir string) error {
	if dir == "." || d.isDir(dir) {
		return nil
	}
	parent := path.Dir(dir)
	if err := d.makeDir(parent); err != nil {
		return err
	}
	err := d.root.Mkdir(dir, dirPerm)
	switch {
	case errors.Is(err, fs.ErrExist):
		return d.checkFolder(dir)
	case errors.Is(err, fs.ErrNotExist):
		return nil // the parent has been removed again: the rename notices and all is done once more
	case err != nil:
		return err
	}
	return d.syncDir(parent)
}

// checkFolder reports what stands where a folder of a key should be.
func (d *Dir) checkFolder(dir string) error {
	info, err := d.root.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist): // removed again, as above
		return nil
	case err != nil: // a link that leads out of the folder
		return err
	case !info.IsDir():
		return fmt.Errorf("a folder cannot hold keys below %s, which is an object itself: %w", dir, tidemark.ErrInvalid)
	}
	return nil
}

func (d *Dir) isDir(p string) bool {
	info, err := d.root.Stat(p)
	return err == nil && info.IsDir()
}

// syncDir makes the names in a folder durable.
func (d *Dir) syncDir(p string) error {
	f, err := d.root.Open(p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a Delete has removed it, and what was in it
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// Get implements [tidemark.Blobs].
func (d *Dir) Get(ctx context.Context, key string) (tidemark.Object, io.ReadCloser, error) {
	if err := cmp.Or(d.checkKey(key), context.Cause(ctx)); err != nil {
		return tidemark.Object{}, nil, d.fail("get", key, err)
	}
	for try := 1; ; try++ {
		if _, err := d.stat(key); err != nil { // before the open, which would wait on a pipe
			return tidemark.Object{}, nil, d.fail("get", key, err)
		}
		f, err := d.root.Open(key)
		if err != nil {
			return tidemark.Object{}, nil, d.fail("get", key, err)
		}
		info, err := f.Stat()
		if err != nil {
			f.Close()
			return tidemark.Object{}, nil, d.fail("get", key, err)
		}
		m, ok := d.readSidecar(key, info, f)
		if now, err := d.stat(key); !ok && err == nil && etag(now) != etag(info) && try < putTries {
			f.Close() // replaced meanwhile, and its sidecar with it
			continue
		}
		return m.object(key, info), f, nil
	}
}

// Delete implements [tidemark.Blobs]. Folders that it leaves empty go too, so that a key of their
// name can be written.
func (d *Dir) Delete(ctx context.Context, key string) error {
	if err := cmp.Or(d.checkKey(key), context.Cause(ctx)); err != nil {
		return d.fail("delete", key, err)
	}
	unlock, err := d.lock(key)
	if err != nil {
		return d.fail("delete", key, err)
	}
	defer unlock()
	if d.isDir(key) {
		return nil // a folder is no object
	}
	if err := d.root.Remove(key); err != nil {
		if gone(err) {
			return nil
		}
		return d.fail("delete", key, err)
	}
	d.dropSidecars(key, "")
	dir := path.Dir(key)
	for dir != "." && d.root.Remove(dir) == nil {
		dir = path.Dir(dir)
	}
	if err := d.syncDir(dir); err != nil {
		return d.fail("delete", key, err)
	}
	return nil
}

// stat describes the regular file of a key; anything else there is ErrNotFound.
func (d *Dir) stat(key string) (fs.FileInfo, error) {
	info, err := d.root.Stat(key)
	switch {
	case err != nil && gone(err):
		return nil, tidemark.ErrNotFound
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, tidemark.ErrNotFound
	}
	return info, nil
}

// gone says that a path leads nowhere; below a file there is nothing either.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// lock keeps others from changing the key, in this process and in others, until unlock.
func (d *Dir) lock(key string) (unlock func(), err error) {
	h := fnv.New32a()
	h.Write([]byte(key))
	n := h.Sum32() % stripes
	d.mu[n].Lock()
	l := flock.New(filepath.Join(d.path, lockDir, fmt.Sprintf("%02d", n)), flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(filePerm))
	if err := l.Lock(); err != nil {
		d.mu[n].Unlock()
		return nil, fmt.Errorf("lock: %w", err)
	}
	return func() { l.Close(); d.mu[n].Unlock() }, nil
}

// fail names the call, the key and the folder, and gives an error of the system its kind.
func (d *Dir) fail(op, key string, err error) error {
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe) && strings.HasSuffix(pe.Err.Error(), "escapes from parent"),
		errors.As(err, &le) && strings.HasSuffix(le.Err.Error(), "escapes from parent"):
		return fmt.Errorf("%s blob %s: a link leads out of the folder %s: %w", op, key, d.path, tidemark.ErrForbidden)
	case Full(err):
		return fmt.Errorf("%s blob %s: %w; the disk of %s is full, free some space: %w", op, key, err, d.path, tidemark.ErrUnavailable)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%s blob %s: %w; make %s writable for this user: %w", op, key, err, d.path, tidemark.ErrUnavailable)
	case errors.As(err, &pe), errors.As(err, &le):
		return fmt.Errorf("%s blob %s in %s: %w: %w", op, key, d.path, err, tidemark.ErrUnavailable)
	}
	return fmt.Errorf("%s blob %s: %w", op, key, err)
}

// Full reports an error of the system that says that a disk is full, or what a user may have of it.
func Full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// ctxReader stops a copy when its context ends.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

// Read implements [io.Reader].
func (c *ctxReader) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(p)
}
