package wasi

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"time"
)

// maxCached bounds the modules whose code is kept; the longest unused go.
const maxCached = 64

// sumName is the file of an entry that proves the others.
const sumName = "sum"

// cache keeps compiled modules on disk, each in a folder of its own by the module's hash. An entry is made aside
// and takes its name whole, so processes may share a cache; it is never changed. Code that is loaded runs with the
// rights of this program, and the compiler checks only a part of what it reads back, so a hash proves all of it.
type cache struct {
	dir string
}

func (c cache) entry(module []byte) string {
	sum := sha256.Sum256(module)
	return filepath.Join(c.dir, hex.EncodeToString(sum[:])+"-"+runtime.GOARCH)
}

// sound reports an entry that is there and as it was written. One that is damaged is taken away.
func (c cache) sound(entry string) bool {
	want, err := os.ReadFile(filepath.Join(entry, sumName))
	if err == nil {
		var got []byte
		if got, err = sumOf(entry); err == nil && subtle.ConstantTimeCompare(got, want) == 1 {
			now := time.Now()
			_ = os.Chtimes(entry, now, now) // for prune; an entry that cannot be touched goes earlier
			return true
		}
	}
	if _, err := os.Lstat(entry); err == nil {
		c.remove(entry)
	}
	return false
}

// fresh makes a folder for an entry to be.
func (c cache) fresh() (string, error) {
	const private = 0o700
	if err := os.MkdirAll(c.dir, private); err != nil {
		return "", err
	}
	return os.MkdirTemp(c.dir, ".new-*")
}

// keep gives a folder the name of its entry. When another process was faster, its entry stays.
func (c cache) keep(dir, entry string) error {
	sum, err := sumOf(dir)
	if err != nil {
		return err
	}
	const private = 0o600
	if err := os.WriteFile(filepath.Join(dir, sumName), sum, private); err != nil {
		return err
	}
	if err := os.Rename(dir, entry); err != nil && !errors.Is(err, fs.ErrExist) {
		if _, there := os.Lstat(entry); there != nil {
			return err
		}
	}
	c.prune()
	return nil
}

// remove takes an entry away at once, whoever reads it.
func (c cache) remove(entry string) {
	aside := filepath.Join(c.dir, fmt.Sprintf(".old-%d-%d", os.Getpid(), time.Now().UnixNano()))
	if os.Rename(entry, aside) == nil {
		entry = aside
	}
	_ = os.RemoveAll(entry) // what is left is no entry; prune tries again
}

// prune bounds the cache and takes away what killed processes left.
func (c cache) prune() {
	list, err := os.ReadDir(c.dir)
	if err != nil {
		return
	}
	type aged struct {
		path string
		at   time.Time
	}
	var entries []aged
	for _, e := range list {
		info, err := e.Info()
		if err != nil {
			continue
		}
		const stale = time.Hour
		path := filepath.Join(c.dir, e.Name())
		if strings.HasPrefix(e.Name(), ".") {
			if time.Since(info.ModTime()) > stale {
				_ = os.RemoveAll(path)
			}
			continue
		}
		entries = append(entries, aged{path, info.ModTime()})
	}
	sort.Slice(entries, func(i, k int) bool { return entries[i].at.After(entries[k].at) })
	for _, e := range entries[min(len(entries), maxCached):] {
		c.remove(e.path)
	}
}

// sumOf hashes the names and bytes of all files of an entry but the sum itself.
func sumOf(dir string) ([]byte, error) {
	h := sha256.New()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path == filepath.Join(dir, sumName) {
			return err
		}
		files++
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		one := sha256.New()
		n, err := io.Copy(one, f)
		_, _ = fmt.Fprintf(h, "%q %d %x\n", filepath.ToSlash(rel), n, one.Sum(nil)) // a hash takes all
		return err
	})
	if err == nil && files == 0 {
		err = fs.ErrNotExist
	}
	return []byte(hex.EncodeToString(h.Sum(nil)) + "\n"), err
}
