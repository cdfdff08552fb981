//go:build !js

package native

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// maxSidecar bounds what is read of one; the metadata has at most 2 KB.
const maxSidecar = 64 << 10

// sidecar is what a file system does not keep about an object. It lies at
// .meta/{2 of hash}/{hash of key}/{ETag}, one file for each state of the object; all but the
// present one are removed after a Put.
type sidecar struct {
	Key         string            `json:"key"` // for people who look into .meta
	Sum         string            `json:"sha256"`
	ContentType string            `json:"contentType,omitempty"`
	Metadata    map[string]string `json:"metadata,omitempty"`
}

// object describes a file with what its sidecar adds.
func (m sidecar) object(key string, info fs.FileInfo) tidemark.Object {
	o := tidemark.Object{
		Key: key, Size: info.Size(), ETag: etag(info), Modified: info.ModTime(),
		ContentType: m.ContentType, Metadata: m.Metadata,
	}
	if o.ContentType == "" {
		o.ContentType = typeByName(key)
	}
	return o
}

// etag changes with every Put and every edit.
func etag(info fs.FileInfo) string {
	return fmt.Sprintf("%x-%x", info.Size(), info.ModTime().UnixNano())
}

// typeByName is for files that came without a type; the table of the system would make it depend
// on the machine.
func typeByName(key string) string {
	switch path.Ext(key) {
	case ".md":
		return "text/markdown; charset=utf-8"
	case ".txt", ".jsonl":
		return "text/plain; charset=utf-8"
	case ".json":
		return "application/json"
	case ".gz":
		return "application/gzip"
	}
	return "application/octet-stream"
}

func sidecarDir(key string) string {
	sum := sha256.Sum256([]byte(key))
	name := hex.EncodeToString(sum[:16])
	return metaDir + "/" + name[:2] + "/" + name
}

// sidecarPath is the sidecar of one state of an object.
func sidecarPath(key string, info fs.FileInfo) string { return sidecarDir(key) + "/" + etag(info) }

// writeSidecar makes it durable before the object is.
func (d *Dir) writeSidecar(key string, info fs.FileInfo, m sidecar) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	dir := sidecarDir(key)
	if err := d.makeDir(dir); err != nil {
		return err
	}
	tmp := tmpDir + "/" + rand.Text()
	f, err := d.root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, filePerm)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = d.root.Rename(tmp, sidecarPath(key, info))
	}
	if err != nil {
		_ = d.root.Remove(tmp)
		return err
	}
	return d.syncDir(dir)
}

// readSidecar finds what belongs to the open file f. When no sidecar has its ETag, the folder may
// have been copied without times, so one for the same content counts as well; reading it costs a
// pass over the file, which happens only where there are sidecars of other states.
func (d *Dir) readSidecar(key string, info fs.FileInfo, f *os.File) (sidecar, bool) {
	if m, ok := d.loadSidecar(sidecarPath(key, info)); ok {
		return m, true
	}
	entries, err := fs.ReadDir(d.root.FS(), sidecarDir(key))
	if err != nil {
		return sidecar{}, false
	}
	sum := ""
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), fmt.Sprintf("%x-", info.Size())) {
			continue
		}
		if sum == "" {
			if sum, err = contentSum(f); err != nil {
				return sidecar{}, false
			}
		}
		if m, ok := d.loadSidecar(sidecarDir(key) + "/" + e.Name()); ok && m.Sum == sum {
			return m, true
		}
	}
	return sidecar{}, false
}

// loadSidecar reads one; a damaged one is none.
func (d *Dir) loadSidecar(p string) (sidecar, bool) {
	f, err := d.root.Open(p)
	if err != nil {
		return sidecar{}, false
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSidecar))
	var m sidecar
	if err != nil || json.Unmarshal(b, &m) != nil {
		return sidecar{}, false
	}
	return m, true
}

// contentSum reads f and leaves it at its beginning.
func contentSum(f *os.File) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	_, err := f.Seek(0, io.SeekStart)
	return hex.EncodeToString(h.Sum(nil)), err
}

// dropSidecars removes all states but one. What it cannot remove is only a waste of space, since a
// sidecar is used for its own content alone.
func (d *Dir) dropSidecars(key, keep string) {
	dir := sidecarDir(key)
	entries, err := fs.ReadDir(d.root.FS(), dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.Name() != keep {
			_ = d.root.Remove(dir + "/" + e.Name())
		}
	}
	if keep == "" {
		_ = d.root.Remove(dir)
	}
}
