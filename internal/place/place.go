// Package place puts files in their place: whole or not at all, synced, with the mode that was there, and never over
// what nobody asked to replace. It is for the commands of a native host; blobs of a bucket folder are package
// host/native's. Begin with [Write].
package place

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/tidemark-ai/tidemark"
)

// privateMode is the mode of a file that nobody asked another one for: logs hold what people said.
const privateMode fs.FileMode = 0o600

// Temporary files are called .NAME.RANDOM.tidemark-tmp, beside the file they are to become.
const tempSuffix = ".tidemark-tmp"

// Options say how a file takes its place. The zero value makes a new file that only its owner reads.
type Options struct {
	Mode    fs.FileMode // of a file that was not there; 0 is 0600. What is replaced keeps its own
	Replace bool        // what stands there may be replaced
	Not     []string    // files that the place must not be, under whatever name
	Never   []Named     // the same of files that are open, and may have no name by now
	Keep    bool        // what is replaced stays beside it until [File.Done], so that [File.Undo] puts it back
}

// Named is an open file, and what a person knows it as.
type Named struct {
	Name string
	File fs.FileInfo
}

// KeptSuffix makes the name of a file that was replaced and is kept. A process that is killed leaves it: no other one
// takes it for a leftover.
const KeptSuffix = tempSuffix

// Write writes a file whole or not at all: into a temporary file beside it that nobody else has, which is synced and
// then takes the name. What is there is never open for writing, so whoever reads it meanwhile reads all of it. A file
// that another process puts there meanwhile is not replaced, unless o says so. Leftovers of processes that were killed
// are removed. A symbolic link is followed.
//
// # Errors
//
// tidemark.ErrConflict when there is a file and o does not allow to replace it, or what it replaced was kept by a
// process that was killed, tidemark.ErrInvalid for a place that is one of o.Not or o.Never or no file, and those of
// write and of the file system. Then nothing was changed.
func Write(path string, o Options, write func(io.Writer) error) error {
	t, err := Open(path, o)
	if err != nil {
		return err
	}
	defer t.Drop()
	b := bufio.NewWriterSize(t, buffer)
	if err := write(b); err != nil {
		return err
	}
	if err := b.Flush(); err != nil {
		return err
	}
	return t.Commit()
}

// Bytes writes a small file as [Write] does.
func Bytes(path string, o Options, content []byte) error {
	t, err := Open(path, o)
	if err != nil {
		return err
	}
	defer t.Drop()
	if _, err := t.Write(content); err != nil {
		return err
	}
	return t.Commit()
}

const buffer = 64 << 10

// File is a file on its way to its place. Whoever opens one drops it in the end, which does nothing to one that has
// its name. It is used by one caller at a time.
type File struct {
	f       *os.File
	path    string // where it is to be, links followed
	asked   string // where it is to be, as it was called
	lock    *flock.Flock
	replace bool
	keep    bool
	kept    string // where that is which it replaced, "" when nothing is kept
	closed  bool
	named   bool // it has its name
}

// Open checks the place and opens a temporary file for it. Its errors are those of [Write].
func Open(path string, o Options) (*File, error) {
	mode, target, err := check(path, o)
	if err != nil {
		return nil, err
	}
	if o.Keep && o.Replace {
		if err := oldKept(path, target); err != nil {
			return nil, err
		}
	}
	dir, base := filepath.Split(target)
	begin := tempBegin(base)
	sweep(dir, begin)
	name := filepath.Join(dir, begin+rand.Text()+tempSuffix)
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", path, plainPath(err))
	}
	t := &File{f: f, path: target, asked: path, replace: o.Replace, keep: o.Keep && o.Replace}
	if locksFiles {
		t.lock = flock.New(name)
		_, _ = t.lock.TryLock() // without it nobody takes the file for a leftover sooner than it is one
	}
	if err := f.Chmod(mode); err != nil { // past the umask: the mode is that of the file it is made of
		t.Drop()
		return nil, fmt.Errorf("write %s: %w", path, plainPath(err))
	}
	return t, nil
}

// locksFiles says that a lock tells a temporary file in use from a leftover. Windows refuses to remove what is open,
// and to write what is locked; under js there are no locks, and leftovers stay.
const locksFiles = runtime.GOOS != "windows" && runtime.GOOS != "js"

// staleAge is how old a leftover is at least: between the making of a file and its lock nothing holds it.
const staleAge = time.Minute

// check says which file a path means, and with which mode it is written.
func check(path string, o Options) (fs.FileMode, string, error) {
	if path == "" {
		return 0, "", fmt.Errorf("write a file: the path is empty: %w", tidemark.ErrInvalid)
	}
	mode := o.Mode.Perm()
	if mode == 0 {
		mode = privateMode
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		own, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return mode, filepath.Clean(path), nil
		case err != nil:
			return 0, "", fmt.Errorf("write %s: %w", path, plainPath(err))
		case own.Mode()&fs.ModeSymlink == 0: // somebody has made it meanwhile
			return check(path, o)
		}
		return 0, "", fmt.Errorf("write %s: it is a link to a file that is not there: %w", path, tidemark.ErrInvalid)
	}
	if err != nil {
		return 0, "", fmt.Errorf("write %s: %w", path, plainPath(err))
	}
	for _, other := range o.Not {
		its, err := os.Stat(other)
		if err == nil && os.SameFile(info, its) {
			return 0, "", sameFile(path, other)
		}
	}
	for _, open := range o.Never {
		if os.SameFile(info, open.File) {
			return 0, "", sameFile(path, open.Name)
		}
	}
	switch {
	case info.IsDir():
		return 0, "", fmt.Errorf("write %s: it is a folder, want a file: %w", path, tidemark.ErrInvalid)
	case !info.Mode().IsRegular():
		return 0, "", fmt.Errorf("write %s: it is a device or a pipe, want a file: %w", path, tidemark.ErrInvalid)
	case !o.Replace:
		return 0, "", fmt.Errorf("write %s: there is a file of that name: %w", path, tidemark.ErrConflict)
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return 0, "", fmt.Errorf("write %s: %w", path, plainPath(err))
	}
	return info.Mode().Perm(), target, nil
}

// keptPath is where that is kept which a file replaces. A name may have 255 bytes.
func keptPath(target string) string {
	const most = 255 - len(KeptSuffix)
	dir, base := filepath.Split(target)
	return filepath.Join(dir, base[:min(len(base), most)]+KeptSuffix)
}

func sameFile(path, other string) error {
	return fmt.Errorf("write %s: it is the same file as %s, which is never changed in place: %w", path, other, tidemark.ErrInvalid)
}

// oldKept refuses to go on over what a process kept that was killed: only a person knows which of the two is wanted.
// One that was killed before it replaced anything left a second name of the file itself, which says nothing.
func oldKept(path, target string) error {
	kept := keptPath(target)
	old, err := os.Lstat(kept)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, plainPath(err))
	}
	if now, err := os.Lstat(target); err == nil && os.SameFile(old, now) {
		return plainPath(os.Remove(kept))
	}
	return fmt.Errorf("write %s: a process that was stopped in its midst kept what it replaced as %s: %w", path, kept, tidemark.ErrConflict)
}

// tempBegin is how the temporary files for a place are called. A name may have 255 bytes.
func tempBegin(base string) string {
	const most = 200
	return "." + base[:min(len(base), most)] + "."
}

// Sweep removes temporary files from a folder that nobody holds any more, for whatever place they were.
func Sweep(dir string) { sweep(dir, ".") }

// sweep removes those whose names begin so.
func sweep(dir, begin string) {
	if !locksFiles {
		return
	}
	entries, err := os.ReadDir(filepath.Join(dir, "."))
	if err != nil {
		return // the writing will say what is wrong with the folder
	}
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, begin) || !strings.HasSuffix(name, tempSuffix) || !e.Type().IsRegular() {
			continue
		}
		if info, err := e.Info(); err != nil || time.Since(info.ModTime()) < staleAge {
			continue
		}
		name = filepath.Join(dir, name)
		lock := flock.New(name)
		if held, err := lock.TryLock(); err == nil && held {
			_ = os.Remove(name)
		}
		_ = lock.Close()
	}
}

// Write implements io.Writer. Its errors name the file that was asked for.
func (t *File) Write(p []byte) (int, error) {
	n, err := t.f.Write(p)
	if err != nil {
		return n, fmt.Errorf("write %s: %w", t.asked, plainPath(err))
	}
	return n, nil
}

// Sync makes the bytes durable; what comes later is only the name.
func (t *File) Sync() error {
	if err := t.f.Sync(); err != nil {
		return fmt.Errorf("write %s: %w", t.asked, plainPath(err))
	}
	return nil
}

// ReadAt implements io.ReaderAt over what was written.
func (t *File) ReadAt(p []byte, at int64) (int, error) { return t.f.ReadAt(p, at) }

// Size is how many bytes were written.
func (t *File) Size() (int64, error) {
	info, err := t.f.Stat()
	if err != nil {
		return 0, fmt.Errorf("write %s: %w", t.asked, plainPath(err))
	}
	return info.Size(), nil
}

// Commit syncs the file and gives it its name.
func (t *File) Commit() error {
	if err := t.Sync(); err != nil {
		return err
	}
	return t.Settle()
}

// Settle gives the file its name, and makes that durable. It was synced.
func (t *File) Settle() error {
	if err := t.Rename(); err != nil {
		return err
	}
	SyncFolder(filepath.Dir(t.path))
	return nil
}

// Rename gives the file its name. It was synced; who writes many files calls [SyncFolder] behind the last one.
func (t *File) Rename() error {
	t.closed = true
	if err := t.f.Close(); err != nil {
		return fmt.Errorf("write %s: %w", t.asked, plainPath(err))
	}
	if err := t.move(); err != nil {
		return fmt.Errorf("write %s: %w", t.asked, err)
	}
	t.named = true
	return nil
}

// Undo takes a file away again that was given its name. What it replaced is put back when it was kept; when it was
// not, the file stays.
func (t *File) Undo() error {
	if !t.named {
		return nil
	}
	t.named = false
	switch {
	case t.kept != "":
		if err := os.Rename(t.kept, t.path); err != nil {
			return fmt.Errorf("put %s back, which is kept as %s: %w", t.asked, t.kept, plainPath(err))
		}
		t.kept = ""
	case !t.replace || t.keep:
		_ = os.Remove(t.path)
	}
	SyncFolder(filepath.Dir(t.path))
	return nil
}

// Done removes what was replaced and kept: the file stays.
func (t *File) Done() {
	if t.kept != "" {
		_ = os.Remove(t.kept)
		t.kept = ""
	}
}

// over renames over what stands there, which is kept when that was asked for: by a second name, so that there is
// always a file of its name; on a file system without links by another name.
func (t *File) over() error {
	if !t.keep {
		return plainPath(os.Rename(t.f.Name(), t.path))
	}
	kept := keptPath(t.path)
	err := os.Link(t.path, kept)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
		err = os.Rename(t.path, kept)
	}
	switch {
	case err == nil:
		t.kept = kept
	case !errors.Is(err, fs.ErrNotExist):
		return plainPath(err)
	}
	err = os.Rename(t.f.Name(), t.path)
	if err == nil || t.kept == "" {
		return plainPath(err)
	}
	if _, gone := os.Lstat(t.path); gone != nil {
		return errors.Join(plainPath(err), os.Rename(t.kept, t.path))
	}
	t.Done() // it still has its name
	return plainPath(err)
}

// move renames. A new file is linked to its name, which fails where one has come to be; file systems without links
// have the check before and no more.
func (t *File) move() error {
	if t.replace {
		return t.over()
	}
	err := os.Link(t.f.Name(), t.path)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("there is a file of that name by now: %w", tidemark.ErrConflict)
	}
	if err == nil {
		_ = os.Remove(t.f.Name())
		return nil
	}
	if _, err := os.Lstat(t.path); err == nil {
		return fmt.Errorf("there is a file of that name by now: %w", tidemark.ErrConflict)
	}
	return plainPath(os.Rename(t.f.Name(), t.path))
}

// Drop removes what is left of the temporary file: nothing, when it has been renamed.
func (t *File) Drop() {
	if t == nil {
		return
	}
	if !t.closed {
		_ = t.f.Close()
		t.closed = true
	}
	_ = os.Remove(t.f.Name())
	if t.lock != nil {
		_ = t.lock.Close()
	}
}

// plainPath takes the path out of an error of the file system: it is that of a temporary file, and the caller names
// the one that was asked for.
func plainPath(err error) error {
	var one *fs.PathError
	var two *os.LinkError
	switch {
	case errors.As(err, &one):
		return one.Err
	case errors.As(err, &two):
		return two.Err
	}
	return err
}

// SyncFolder makes new names in a folder durable. What cannot be opened or synced there (some network file systems) is
// no reason to fail: the files are whole.
func SyncFolder(dir string) {
	if f, err := os.Open(dir); err == nil {
		_ = f.Sync()
		_ = f.Close()
	}
}

// Temp makes a temporary file for what does not fit into memory. It has no name where the system lets an open file
// have none: then nothing is left of it, however the process ends. drop closes it, and removes it elsewhere.
func Temp(dir, pattern string) (f *os.File, drop func(), err error) {
	f, err = os.CreateTemp(dir, pattern)
	if err != nil {
		return nil, nil, err
	}
	named := !locksFiles || os.Remove(f.Name()) != nil
	return f, func() {
		_ = f.Close()
		if named {
			_ = os.Remove(f.Name())
		}
	}, nil
}
