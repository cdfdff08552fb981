package claude

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/klauspost/compress/s2"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/place"
)

// maxObject bounds the content of an object, so that a broken one cannot fill the memory.
const maxObject = 16 << 20

// objects keeps content by its SHA-256, compressed. Who adds some holds the lock useName shared, who removes some alone.
type objects struct {
	dir   string
	dirty map[string]bool // folders to sync
	dry   bool            // nothing is kept: what it would be called is told
	buf   []byte

	raw, plain []byte // of what is read back
	mended     int    // objects that were there and damaged
	tell       func(int)
}

func (s *Store) objects() *objects {
	return &objects{dir: filepath.Join(s.folder(), objectsName), dirty: map[string]bool{}, tell: s.Mended}
}

func (o *objects) path(h tidemark.Hash) string { return filepath.Join(o.dir, string(h[:2]), string(h)) }

// put keeps content. An object is written beside its place and moved there when it lies on the disk, so what has a name
// was whole. One that is there is read back, a twentieth of the work of a snapshot, and written again where it differs:
// else what a disk or another program damaged would be damaged in each snapshot to come.
func (o *objects) put(content []byte) (tidemark.Hash, error) {
	h := tidemark.HashOf(content)
	if o.dry {
		return h, nil
	}
	path := o.path(h)
	info, err := os.Stat(path)
	there := err == nil
	if there && o.holds(path, info, content) {
		return h, nil
	}
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, folderMode); err != nil {
		return "", fmt.Errorf("keep object: %w", err)
	}
	if need := s2.MaxEncodedLen(len(content)); need > cap(o.buf) {
		o.buf = make([]byte, need)
	}
	f, err := place.Open(path, place.Options{Replace: true}) // another process may put the same meanwhile
	if err != nil {
		return "", fmt.Errorf("keep object: %w", err)
	}
	defer f.Drop()
	if _, err = f.Write(s2.Encode(o.buf[:cap(o.buf)], content)); err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = f.Rename()
	}
	if err != nil {
		return "", fmt.Errorf("keep object: %w", err)
	}
	if o.dirty[folder] = true; there {
		o.mended++
	}
	return h, nil
}

// holds reports whether an object that is there has this content.
func (o *objects) holds(path string, info fs.FileInfo, content []byte) bool {
	if !info.Mode().IsRegular() || info.Size() > int64(s2.MaxEncodedLen(len(content))) {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	o.raw = slices.Grow(o.raw[:0], int(info.Size()))[:info.Size()]
	if _, err := io.ReadFull(f, o.raw); err != nil {
		return false
	}
	if n, err := s2.DecodedLen(o.raw); err != nil || n != len(content) {
		return false
	}
	got, err := s2.Decode(o.plain[:cap(o.plain)], o.raw)
	if err != nil {
		return false
	}
	o.plain = got
	return bytes.Equal(got, content)
}

// sync makes the names of what was put last, and tells of what was mended.
func (o *objects) sync() {
	if o.mended > 0 && o.tell != nil {
		o.tell(o.mended)
	}
	o.mended = 0
	for folder := range o.dirty {
		place.SyncFolder(folder)
	}
	if len(o.dirty) > 0 {
		place.SyncFolder(o.dir)
	}
	clear(o.dirty)
}

// get reads an object and holds it against its hash.
func (o *objects) get(h tidemark.Hash) ([]byte, error) {
	if !isHash(h) {
		return nil, fmt.Errorf("read object %.80q: want a SHA-256 in hex: %w", h, tidemark.ErrInvalid)
	}
	f, err := os.Open(o.path(h))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read object %s: it is missing in %s: %w", h, o.dir, tidemark.ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("read object: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, int64(s2.MaxEncodedLen(maxObject))+1))
	if err != nil {
		return nil, fmt.Errorf("read object: %w", err)
	}
	n, err := s2.DecodedLen(raw)
	if err != nil || n > maxObject {
		return nil, fmt.Errorf("read object %s: it is damaged: %w", h, tidemark.ErrInvalid)
	}
	content, err := s2.Decode(nil, raw)
	if err != nil || tidemark.HashOf(content) != h {
		return nil, fmt.Errorf("read object %s: it is damaged: %w", h, tidemark.ErrInvalid)
	}
	return content, nil
}

// sweep removes every object that used does not name, and what a killed process left. It returns the bytes freed.
func (o *objects) sweep(ctx context.Context, used map[tidemark.Hash]bool) (int64, error) {
	var freed int64
	folders, err := os.ReadDir(o.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("sweep objects: %w", err)
	}
	for _, folder := range folders {
		entries, err := os.ReadDir(filepath.Join(o.dir, folder.Name()))
		if err != nil || ctx.Err() != nil {
			return freed, errors.Join(err, ctx.Err())
		}
		for _, e := range entries {
			if used[tidemark.Hash(e.Name())] {
				continue
			}
			if info, err := e.Info(); err == nil {
				freed += info.Size()
			}
			if err := os.Remove(filepath.Join(o.dir, folder.Name(), e.Name())); err != nil {
				return freed, fmt.Errorf("sweep objects: %w", err)
			}
		}
	}
	return freed, nil
}

func isHash(h tidemark.Hash) bool {
	if len(h) != hex.EncodedLen(sha256.Size) {
		return false
	}
	for _, c := range []byte(h) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
