package wasi

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/experimental/sysfs"

	"github.com/tidemark-ai/tidemark"
)

// guestMount is where a module finds its mount.
const guestMount = "/data"

// maxOpen bounds the files that one instance holds open.
const maxOpen = 32

// checkMount refuses a folder that is none, or that would show a module what this program keeps.
func checkMount(dir, home string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return wrongf("\"mount\": %v; make the folder, or name another", err)
	}
	if !info.IsDir() {
		return wrongf("\"mount\" %s is no folder", dir)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return wrongf("\"mount\": %v", err)
	}
	own, err := filepath.EvalSymlinks(home)
	if err != nil {
		return nil //nolint:nilerr // there is no home yet, so nothing of it is shown
	}
	if within(own, real) || within(real, own) {
		return wrongf("\"mount\" %s holds, or lies in, the home folder of Tidemark with all conversations; name another folder", dir)
	}
	return nil
}

// within reports whether a path is a folder or lies in it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// openMount opens the folder of a manifest, nil for none. Names are resolved below it by the system, so neither a
// link nor ".." leads out.
func openMount(m Manifest, home string) (*os.Root, error) {
	if m.Mount == "" {
		return nil, nil
	}
	if err := checkMount(m.Mount, home); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(m.Mount)
	if err != nil {
		return nil, fmt.Errorf("mount: %w: %w", err, tidemark.ErrInvalid)
	}
	return root, nil
}

// mount is the folder as one instance sees it: regular files and folders, to read, some at a time.
type mount struct {
	root *os.Root
	ctx  context.Context //nolint:containedctx // the life of the instance, which ends its reading
	used func()          // told of each open
	open atomic.Int32
}

// forGuest is the mount behind wazero's port. It refuses to open for writing; everything else that changes
// something, the adapter does not have.
func (m *mount) forGuest() experimentalsys.FS {
	return readOnly{&sysfs.ReadFS{FS: &sysfs.AdaptFS{FS: m}}}
}

type readOnly struct{ experimentalsys.FS }

func (r readOnly) OpenFile(path string, flag experimentalsys.Oflag, perm fs.FileMode) (experimentalsys.File, experimentalsys.Errno) {
	const changes = experimentalsys.O_WRONLY | experimentalsys.O_RDWR | experimentalsys.O_CREAT | experimentalsys.O_TRUNC | experimentalsys.O_APPEND
	if flag&changes != 0 {
		return nil, experimentalsys.EROFS
	}
	return r.FS.OpenFile(path, flag, perm)
}

// Open implements fs.FS. A pipe or a device is refused before it is opened: the open itself could wait for ever.
func (m *mount) Open(name string) (fs.File, error) {
	m.used()
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EPERM}
	}
	if m.open.Add(1) > maxOpen {
		m.open.Add(-1)
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EMFILE}
	}
	f, err := m.openRegular(name)
	if err != nil {
		m.open.Add(-1)
		return nil, err
	}
	return &mounted{File: f, m: m}, nil
}

func (m *mount) openRegular(name string) (*os.File, error) {
	info, err := m.root.Stat(name)
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: name, Err: syscall.EPERM}
	}
	if err != nil {
		return nil, err
	}
	return m.root.Open(name)
}

// mounted is an open file of a mount. It hides what an os.File does beside reading.
type mounted struct {
	fs.File
	m      *mount
	closed bool
}

func (f *mounted) Read(p []byte) (int, error) {
	if f.m.ctx.Err() != nil {
		return 0, syscall.EIO
	}
	return f.File.Read(p)
}

// ReadAt implements io.ReaderAt.
func (f *mounted) ReadAt(p []byte, at int64) (int, error) {
	if f.m.ctx.Err() != nil {
		return 0, syscall.EIO
	}
	return f.File.(*os.File).ReadAt(p, at)
}

// Seek implements io.Seeker.
func (f *mounted) Seek(at int64, whence int) (int64, error) {
	return f.File.(*os.File).Seek(at, whence)
}

// ReadDir implements fs.ReadDirFile.
func (f *mounted) ReadDir(n int) ([]fs.DirEntry, error) { return f.File.(*os.File).ReadDir(n) }

func (f *mounted) Close() error {
	if !f.closed {
		f.closed = true
		f.m.open.Add(-1)
	}
	return f.File.Close()
}
