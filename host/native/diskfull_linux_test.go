package native

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
)

// smallDisk mounts a file system of 2 MB, which only some machines allow. Where they do not, the
// tables of TestDirErrors and TestDBFull stand alone.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m")
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.ENODEV) {
		t.Skipf("mount: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestDiskFull: on a disk that is really full, a write fails, says why, and changes nothing; when
// there is room again, the same handles go on.
func TestDiskFull(t *testing.T) {
	root := smallDisk(t)
	path := filepath.Join(root, "t.db")
	db, err := OpenDB(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	d, err := NewDir(filepath.Join(root, "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := host.Migrate(t.Context(), db, "test", nil); err != nil {
		t.Fatal(err)
	}
	write(t, db, `CREATE TABLE k (x BLOB)`, `INSERT INTO k VALUES ('kept')`)
	kept := put(t, d, "kept", "kept", tidemark.PutOptions{Metadata: map[string]string{"agentId": "main"}})

	filler := filepath.Join(root, "filler")
	err = os.WriteFile(filler, make([]byte, 2<<20), 0o600)
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling the disk: %v", err)
	}
	err = db.Tx(t.Context(), []tidemark.Stmt{{SQL: `DELETE FROM k`}, {SQL: `INSERT INTO k VALUES (zeroblob(1000000))`}})
	wantError(t, err, tidemark.ErrUnavailable, path, "disk")
	wantError(t, host.TryWrite(t.Context(), db), tidemark.ErrUnavailable, "disk")
	_, err = d.Put(t.Context(), "kept", strings.NewReader(strings.Repeat("x", 100_000)), 100_000, tidemark.PutOptions{})
	wantError(t, err, tidemark.ErrUnavailable, "put blob kept", "disk", "free some space")
	if o, content := get(t, d, "kept"); content != "kept" || o.ETag != kept.ETag || o.Metadata["agentId"] != "main" {
		t.Errorf("the object reads %q, %+v", content, o)
	}
	rows, err := db.Query(t.Context(), `SELECT x FROM k LIMIT 5`)
	if err != nil || len(rows) != 1 || rows[0].Text(0) != "kept" {
		t.Errorf("the table reads %v, %v", rows, err)
	}

	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := host.TryWrite(t.Context(), db); err != nil {
		t.Errorf("with room again a small write is refused: %v", err)
	}
	write(t, db, `INSERT INTO k VALUES ('after')`)
	put(t, d, "kept", "after", tidemark.PutOptions{IfMatch: kept.ETag})
}

// TestOpenOnFullDisk: where not even the lock file can be written, the disk is what is told.
func TestOpenOnFullDisk(t *testing.T) {
	root := smallDisk(t)
	if err := os.WriteFile(filepath.Join(root, "filler"), make([]byte, 3<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling the disk: %v", err)
	}
	_, err := OpenDB(filepath.Join(root, "t.db"))
	wantError(t, err, tidemark.ErrUnavailable, "t.db", "the disk is full, free some space")
	if strings.Contains(err.Error(), "writable") {
		t.Error(err)
	}
}

// TestReadOnlyDisk: a file system that was remounted read-only, as after an error of the disk.
func TestReadOnlyDisk(t *testing.T) {
	root := smallDisk(t)
	d, err := NewDir(filepath.Join(root, "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, d, "kept", "kept", tidemark.PutOptions{})
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("", root, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	_, err = OpenDB(filepath.Join(root, "t.db"))
	wantError(t, err, tidemark.ErrUnavailable, "t.db", "read-only")
	if d, err = NewDir(filepath.Join(root, "blobs")); err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	_, err = d.Put(t.Context(), "new", strings.NewReader("x"), 1, tidemark.PutOptions{})
	wantError(t, err, tidemark.ErrUnavailable, "put blob new", "writable")
	wantError(t, d.Delete(t.Context(), "kept"), tidemark.ErrUnavailable, "delete blob kept", "writable")
	if _, content := get(t, d, "kept"); content != "kept" {
		t.Errorf("the object reads %q", content)
	}
}
