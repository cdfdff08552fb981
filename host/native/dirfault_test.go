//go:build unix

package native

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
)

func put(t testing.TB, d *Dir, key, content string, opt tidemark.PutOptions) tidemark.Object {
	t.Helper()
	o, err := d.Put(t.Context(), key, strings.NewReader(content), int64(len(content)), opt)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func get(t testing.TB, d *Dir, key string) (tidemark.Object, string) {
	t.Helper()
	o, body, err := d.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	content, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return o, string(content)
}

// TestDirIsPlain: objects are files that a person reads and edits, and an edit is noticed.
func TestDirIsPlain(t *testing.T) {
	root := t.TempDir()
	d := openTestDir(t, root)
	const key = "agents/main/memory/2026-11-21.md"
	file := filepath.Join(root, filepath.FromSlash(key))
	meta := tidemark.PutOptions{ContentType: "text/x-memory", Metadata: map[string]string{"agentId": "main"}}
	written := put(t, d, key, "# Memory\n", meta)
	if b, err := os.ReadFile(file); err != nil || string(b) != "# Memory\n" {
		t.Fatalf("the file reads %q, %v", b, err)
	}

	t.Run("same size edit", func(t *testing.T) {
		if err := os.WriteFile(file, []byte("# Memo!!\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := d.Put(t.Context(), key, strings.NewReader("x"), 1, tidemark.PutOptions{IfMatch: written.ETag})
		wantError(t, err, tidemark.ErrConflict, key)
		o, content := get(t, d, key)
		if content != "# Memo!!\n" || o.ETag == written.ETag || o.ContentType != "text/markdown; charset=utf-8" || len(o.Metadata) != 0 {
			t.Errorf("got %q, %+v; want the edit, without the metadata of what was there", content, o)
		}
		put(t, d, key, content+"- a line\n", tidemark.PutOptions{IfMatch: o.ETag})
	})
	t.Run("put there by hand", func(t *testing.T) {
		if err := os.WriteFile(filepath.Join(root, "SOUL.md"), []byte("kind"), 0o644); err != nil {
			t.Fatal(err)
		}
		o, content := get(t, d, "SOUL.md")
		if content != "kind" || o.Size != 4 || o.ETag == "" {
			t.Errorf("got %q, %+v", content, o)
		}
		page, _, err := d.List(t.Context(), "SOUL", "", 10)
		if err != nil || len(page) != 1 || page[0].ETag != o.ETag {
			t.Errorf("listed %+v, %v", page, err)
		}
	})
	t.Run("copied without times", func(t *testing.T) {
		put(t, d, key, "# Memory\n", meta)
		copied := filepath.Join(t.TempDir(), "copy")
		if err := os.CopyFS(copied, os.DirFS(root)); err != nil {
			t.Fatal(err)
		}
		later := time.Now().Add(time.Minute)
		if err := os.Chtimes(filepath.Join(copied, filepath.FromSlash(key)), later, later); err != nil {
			t.Fatal(err)
		}
		o, content := get(t, openTestDir(t, copied), key)
		if content != "# Memory\n" || o.ContentType != meta.ContentType || o.Metadata["agentId"] != "main" {
			t.Errorf("got %q, %+v", content, o)
		}
	})
	t.Run("damaged sidecar", func(t *testing.T) {
		o := put(t, d, "s.md", "x", meta)
		if err := os.WriteFile(filepath.Join(root, sidecarDir("s.md"), o.ETag), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		if o, content := get(t, d, "s.md"); content != "x" || len(o.Metadata) != 0 {
			t.Errorf("got %q, %+v", content, o)
		}
	})
}

// TestDirLeavesNothing: no sidecar, temporary file or empty folder stays behind.
func TestDirLeavesNothing(t *testing.T) {
	root := t.TempDir()
	d := openTestDir(t, root)
	for i := range 3 {
		put(t, d, "a/b/c", fmt.Sprint(i), tidemark.PutOptions{})
	}
	if _, err := d.Put(t.Context(), "a/b/d", strings.NewReader("x"), 2, tidemark.PutOptions{}); err == nil {
		t.Error("a short body is no error")
	}
	if n := len(files(t, root)); n != 3 { // object, its sidecar, a lock
		t.Errorf("files: %v", files(t, root))
	}
	if err := d.Delete(t.Context(), "a/b/c"); err != nil {
		t.Fatal(err)
	}
	for _, f := range files(t, root) {
		if !strings.HasPrefix(f, lockDir) {
			t.Errorf("left %s", f)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "a")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the empty folder stayed: %v", err)
	}
}

// TestDirSweep: what a killed writer left goes when the folder is opened, what is fresh stays.
func TestDirSweep(t *testing.T) {
	root := t.TempDir()
	openTestDir(t, root)
	for name, age := range map[string]time.Duration{"old": 2 * staleTemp, "fresh": time.Minute} {
		f := filepath.Join(root, tmpDir, name)
		if err := os.WriteFile(f, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		when := time.Now().Add(-age)
		if err := os.Chtimes(f, when, when); err != nil {
			t.Fatal(err)
		}
	}
	openTestDir(t, root)
	if got := fmt.Sprint(files(t, root)); got != "["+tmpDir+"/fresh]" {
		t.Errorf("left %s", got)
	}
}

func files(t *testing.T, root string) (names []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), ".", func(p string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			names = append(names, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestDirRefuses: keys that a folder cannot hold, each with a reason.
func TestDirRefuses(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	d := openTestDir(t, root)
	put(t, d, "file", "x", tidemark.PutOptions{})
	put(t, d, "folder/file", "x", tidemark.PutOptions{})
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("s"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{
		"outfile": filepath.Join(outside, "secret"), "outdir": outside, "up": "../" + filepath.Base(outside), "inside": "folder/file", "dangling": "nowhere",
	} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		name, key string
		put, get  error
		words     string
	}{
		{"below an object", "file/x", tidemark.ErrInvalid, tidemark.ErrNotFound, "object itself"},
		{"a folder", "folder", tidemark.ErrInvalid, tidemark.ErrNotFound, "begin with folder/"},
		{"reserved", ".meta/x", tidemark.ErrInvalid, tidemark.ErrInvalid, "reserved"},
		{"reserved where case is ignored", ".META/tmp/x", tidemark.ErrInvalid, tidemark.ErrInvalid, "reserved"},
		{"long name", strings.Repeat("n", 256), tidemark.ErrInvalid, tidemark.ErrInvalid, "255"},
		{"link to a folder outside", "outdir/new", tidemark.ErrForbidden, tidemark.ErrForbidden, "out of the folder"},
		{"relative link outside", "up/new", tidemark.ErrForbidden, tidemark.ErrForbidden, "out of the folder"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := d.Put(t.Context(), tc.key, strings.NewReader("x"), 1, tidemark.PutOptions{})
			wantError(t, err, tc.put, "put blob "+tc.key, tc.words)
			_, _, err = d.Get(t.Context(), tc.key)
			wantError(t, err, tc.get, "get blob "+tc.key)
		})
	}
	_, _, err := d.Get(t.Context(), "outfile")
	wantError(t, err, tidemark.ErrForbidden, "outfile")
	if _, content := get(t, d, "inside"); content != "x" {
		t.Errorf("a link inside reads %q", content)
	}
	page, _, err := d.List(t.Context(), "", "", 100)
	var keys []string
	for _, o := range page {
		keys = append(keys, o.Key)
	}
	if got := strings.Join(keys, " "); err != nil || got != "file folder/file inside" {
		t.Errorf("listed %q, %v", got, err)
	}
	put(t, d, "outfile", "mine", tidemark.PutOptions{}) // takes the place of the link
	if b, err := os.ReadFile(filepath.Join(outside, "secret")); err != nil || string(b) != "s" {
		t.Errorf("the file outside reads %q, %v", b, err)
	}
	if names := files(t, outside); len(names) != 1 {
		t.Errorf("files outside: %v", names)
	}
}

// TestDirPipe: something that is no file is not there, and nobody waits for it.
func TestDirPipe(t *testing.T) {
	root := t.TempDir()
	d := openTestDir(t, root)
	if err := syscall.Mkfifo(filepath.Join(root, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := d.Get(t.Context(), "pipe")
	wantError(t, err, tidemark.ErrNotFound, "pipe")
	if page, _, err := d.List(t.Context(), "", "", 10); err != nil || len(page) != 0 {
		t.Errorf("listed %v, %v", page, err)
	}
}

// TestDirErrors: what a person is told when the disk refuses.
func TestDirErrors(t *testing.T) {
	d := &Dir{path: "/data/blobs"}
	for _, tc := range []struct {
		name string
		err  error
		want error
		says string
	}{
		{"full", &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, tidemark.ErrUnavailable, "free some space"},
		{"quota", &fs.PathError{Op: "write", Path: "x", Err: syscall.EDQUOT}, tidemark.ErrUnavailable, "free some space"},
		{"read-only", &os.LinkError{Op: "rename", Old: "x", New: "y", Err: syscall.EROFS}, tidemark.ErrUnavailable, "writable"},
		{"not permitted", &fs.PathError{Op: "open", Path: "x", Err: syscall.EACCES}, tidemark.ErrUnavailable, "writable"},
		{"broken disk", &fs.PathError{Op: "read", Path: "x", Err: syscall.EIO}, tidemark.ErrUnavailable, "/data/blobs"},
		{"cancelled", context.Canceled, context.Canceled, "canceled"},
	} {
		t.Run(tc.name, func(t *testing.T) { wantError(t, d.fail("put", "k", tc.err), tc.want, "put blob k", tc.says) })
	}
}

// TestNewDirUnwritable: a folder that cannot be.
func TestNewDirUnwritable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := NewDir(filepath.Join(file, "blobs"))
	wantError(t, err, tidemark.ErrUnavailable, file)
}

// appendLine appends as memory files are appended to.
func appendLine(ctx context.Context, d *Dir, key, line string) error {
	for {
		opt := tidemark.PutOptions{IfAbsent: true}
		var content []byte
		o, body, err := d.Get(ctx, key)
		switch {
		case err == nil:
			content, err = io.ReadAll(body)
			body.Close()
			if err != nil {
				return err
			}
			opt = tidemark.PutOptions{IfMatch: o.ETag}
		case !errors.Is(err, tidemark.ErrNotFound):
			return err
		}
		content = append(content, line...)
		opt.Metadata = map[string]string{"bytes": fmt.Sprint(len(content))}
		_, err = d.Put(ctx, key, bytes.NewReader(content), int64(len(content)), opt)
		if !errors.Is(err, tidemark.ErrConflict) {
			return err
		}
	}
}

// TestDirProcesses: conditional writes of several processes lose no line, and a process that is
// killed in between has every line that it acknowledged in the file, with the metadata of its put.
func TestDirProcesses(t *testing.T) {
	if root := os.Getenv("TIDEMARK_TEST_DIR"); root != "" {
		d := openTestDir(t, root)
		for i := 0; ; i++ {
			line := fmt.Sprintf("%s-%d", os.Getenv("TIDEMARK_TEST_NAME"), i)
			if err := appendLine(context.Background(), d, "log.md", line+"\n"); err != nil {
				t.Fatal(err)
			}
			fmt.Println("wrote", line)
		}
	}
	const children, each = 3, 20
	root := t.TempDir()
	acknowledged := make(chan []string, children)
	for i := range children {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDirProcesses$")
		child.Env = append(os.Environ(), "TIDEMARK_TEST_DIR="+root, fmt.Sprint("TIDEMARK_TEST_NAME=", i))
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		go func() {
			var lines []string
			for len(lines) < each {
				var line string
				if _, err := fmt.Fscanf(out, "wrote %s\n", &line); err != nil {
					t.Errorf("child %d: %v", i, err)
					break
				}
				lines = append(lines, line)
			}
			_ = child.Process.Kill() // wherever it is
			_ = child.Wait()
			acknowledged <- lines
		}()
	}
	var all []string
	for range children {
		all = append(all, <-acknowledged...)
	}
	o, content := get(t, openTestDir(t, root), "log.md")
	for _, line := range all {
		if n := strings.Count("\n"+content, "\n"+line+"\n"); n != 1 {
			t.Errorf("%s is there %d times", line, n)
		}
	}
	if o.Metadata["bytes"] != fmt.Sprint(len(content)) {
		t.Errorf("metadata %v beside %d bytes", o.Metadata, len(content))
	}
}
