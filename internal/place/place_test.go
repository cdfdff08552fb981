//go:build !js

package place

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/tidemark-ai/tidemark"
)

func put(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

func writeFile(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	if err := errors.Join(os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// names lists a folder, so that leftovers show.
func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return strings.Join(out, " ")
}

// A new file has the mode that was asked for, 0600 without; one that is replaced keeps its own.
func TestModes(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "old"), "old", 0o640)
	for name, c := range map[string]struct {
		o    Options
		want fs.FileMode
	}{
		"new":   {Options{}, 0o600},
		"asked": {Options{Mode: 0o664}, 0o664},
		"old":   {Options{Mode: 0o600, Replace: true}, 0o640},
	} {
		path := filepath.Join(dir, name)
		if err := Write(path, c.o, put("text of "+name)); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != c.want || readText(t, path) != "text of "+name {
			t.Errorf("%s: %v, mode %v, want %v", name, err, info.Mode(), c.want)
		}
	}
	if got := names(t, dir); got != "asked new old" {
		t.Errorf("left: %s", got)
	}
}

// Whatever is refused changes nothing and leaves nothing.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	writeFile(t, at("log"), "log", 0o600)
	if err := errors.Join(os.Mkdir(at("folder"), 0o700), os.Symlink("log", at("symlink")), os.Link(at("log"), at("hardlink")),
		os.Symlink("nothing", at("dangling")), syscall.Mkfifo(at("pipe"), 0o600)); err != nil {
		t.Fatal(err)
	}
	before := names(t, dir)
	replace := Options{Replace: true, Not: []string{at("log")}}
	for name, c := range map[string]struct {
		path string
		o    Options
		want error
		text string
	}{
		"exists":    {at("log"), Options{}, tidemark.ErrConflict, "there is a file"},
		"same":      {at("log"), replace, tidemark.ErrInvalid, "the same file"},
		"same else": {at("folder/../log"), replace, tidemark.ErrInvalid, "the same file"},
		"symlink":   {at("symlink"), replace, tidemark.ErrInvalid, "the same file"},
		"hardlink":  {at("hardlink"), replace, tidemark.ErrInvalid, "the same file"},
		"dangling":  {at("dangling"), replace, tidemark.ErrInvalid, "link to a file that is not there"},
		"folder":    {at("folder"), replace, tidemark.ErrInvalid, "is a folder"},
		"pipe":      {at("pipe"), replace, tidemark.ErrInvalid, "a device or a pipe"},
		"empty":     {"", replace, tidemark.ErrInvalid, "empty"},
		"no folder": {at("no/where"), Options{}, fs.ErrNotExist, at("no/where") + ": no such"},
	} {
		wrote := false
		err := Write(c.path, c.o, func(io.Writer) error { wrote = true; return nil })
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) || wrote {
			t.Errorf("%s: %v, wrote %t", name, err, wrote)
		}
	}
	if got := names(t, dir); got != before || readText(t, at("log")) != "log" {
		t.Errorf("left: %s, were %s", got, before)
	}
}

// A link is followed: the file that it names is replaced, and the link stays.
func TestLink(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	writeFile(t, file, "old", 0o600)
	if err := errors.Join(os.Symlink("file", link), Write(link, Options{Replace: true}, put("new"))); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(link)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 || readText(t, file) != "new" {
		t.Errorf("%v, %v, file has %q", err, info.Mode(), readText(t, file))
	}
}

// A failure, such as of a full disk, leaves what was there, and nothing else.
func TestFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	writeFile(t, path, "old", 0o600)
	full := errors.New("no space left on device")
	err := Write(path, Options{Replace: true}, func(w io.Writer) error { return errors.Join(put(strings.Repeat("x", 1<<20))(w), full) })
	if !errors.Is(err, full) || readText(t, path) != "old" || names(t, dir) != "file" {
		t.Errorf("%v, file %q, left %s", err, readText(t, path), names(t, dir))
	}
}

// A file that another process puts there while ours is written is not replaced.
func TestRaced(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	err := Write(path, Options{}, func(w io.Writer) error {
		writeFile(t, path, "theirs", 0o600)
		return put("ours")(w)
	})
	if !errors.Is(err, tidemark.ErrConflict) || readText(t, path) != "theirs" || names(t, dir) != "file" {
		t.Errorf("%v, file %q, left %s", err, readText(t, path), names(t, dir))
	}
}

// Leftovers of a process that was killed go with the next file for the same place; those of one that lives, of other
// places and of others stay.
func TestStale(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-2 * staleAge)
	for _, name := range []string{".file.DEAD.tidemark-tmp", ".file.LIVES.tidemark-tmp", ".file2.DEAD.tidemark-tmp", ".file.DEAD.tmp"} {
		writeFile(t, filepath.Join(dir, name), "x", 0o600)
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, filepath.Join(dir, ".file.YOUNG.tidemark-tmp"), "x", 0o600)
	lives := flock.New(filepath.Join(dir, ".file.LIVES.tidemark-tmp"))
	if held, err := lives.TryLock(); err != nil || !held {
		t.Fatal(held, err)
	}
	defer lives.Close()
	if err := Write(filepath.Join(dir, "file"), Options{}, put("x")); err != nil {
		t.Fatal(err)
	}
	if got, want := names(t, dir), ".file.DEAD.tmp .file.LIVES.tidemark-tmp .file.YOUNG.tidemark-tmp .file2.DEAD.tidemark-tmp file"; got != want {
		t.Errorf("left: %s\nwant: %s", got, want)
	}
}

// A name of as many bytes as a file system takes is no problem of the temporary one's.
func TestLongName(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("n", 255)
	for range 2 {
		if err := Bytes(filepath.Join(dir, long), Options{Replace: true}, []byte("x")); err != nil || names(t, dir) != long {
			t.Fatalf("%v, left %s", err, names(t, dir))
		}
	}
}

// A folder is swept of leftovers for all places, and of nothing else.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	held, err := Open(filepath.Join(dir, "held"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer held.Drop()
	for _, name := range []string{".a.DEAD.tidemark-tmp", ".b.DEAD.tidemark-tmp", "a.tidemark-tmp", ".a"} {
		writeFile(t, filepath.Join(dir, name), "x", 0o600)
	}
	old := time.Now().Add(-2 * staleAge)
	for _, name := range strings.Fields(names(t, dir)) {
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, filepath.Join(dir, ".a.YOUNG.tidemark-tmp"), "x", 0o600)
	Sweep(dir)
	if err := held.Commit(); err != nil {
		t.Fatal(err)
	}
	if got, want := names(t, dir), ".a .a.YOUNG.tidemark-tmp a.tidemark-tmp held"; got != want {
		t.Errorf("left: %s\nwant: %s", got, want)
	}
}

// What was put can be read back and taken away again, but not what stood there before.
func TestUndo(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "old"), "old", 0o600)
	for name, replace := range map[string]bool{"old": true, "new": false} {
		f, err := Open(filepath.Join(dir, name), Options{Replace: replace})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Drop()
		back := make([]byte, 3)
		_, err = f.Write([]byte("text"))
		_, e := f.ReadAt(back, 1)
		if n, sized := f.Size(); errors.Join(err, e, sized) != nil || n != 4 || string(back) != "ext" {
			t.Fatal(err, e, sized, n, string(back))
		}
		if err := f.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := f.Undo(); err != nil {
			t.Fatal(err)
		}
	}
	if names(t, dir) != "old" || readText(t, filepath.Join(dir, "old")) != "text" {
		t.Errorf("left %s", names(t, dir))
	}
}

// What is replaced is kept until it is clear which of the two stays; where nothing was, nothing is put back.
func TestKeep(t *testing.T) {
	for name, c := range map[string]struct{ was, undone string }{"replaced": {"old", "file"}, "new": {"", ""}} {
		for _, undo := range []bool{true, false} {
			dir := t.TempDir()
			path := filepath.Join(dir, "file")
			if c.was != "" {
				writeFile(t, path, c.was, 0o600)
			}
			f, err := Open(path, Options{Replace: true, Keep: true})
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.Write([]byte("new"))
			if err = errors.Join(err, f.Undo(), f.Commit()); err != nil || readText(t, path) != "new" {
				t.Fatal(name, err)
			}
			if c.was != "" && readText(t, path+KeptSuffix) != c.was {
				t.Errorf("%s: kept %q", name, readText(t, path+KeptSuffix))
			}
			want, text := "file", "new"
			if undo {
				err, want, text = errors.Join(f.Undo(), f.Undo()), c.undone, c.was
			} else {
				f.Done()
			}
			f.Drop()
			if err != nil || names(t, dir) != want || want != "" && readText(t, path) != text {
				t.Errorf("%s, undone %t: %v, left %s", name, undo, err, names(t, dir))
			}
		}
	}
}

// What cannot be replaced stays, and nothing is left of the try.
func TestKeepFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	writeFile(t, path, "old", 0o600)
	f, err := Open(path, Options{Replace: true, Keep: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(f.f.Name()); err != nil { // so that it cannot be renamed
		t.Fatal(err)
	}
	if err := f.Commit(); err == nil || readText(t, path) != "old" || names(t, dir) != "file" {
		t.Errorf("%v, left %s", err, names(t, dir))
	}
	f.Drop()
}

// What a process kept that was killed is not lost to the next one, unless it is the file that is there.
func TestKeptByAKilledOne(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, strings.Repeat("n", 255)) // whose kept name is cut short
	writeFile(t, path, "new", 0o600)
	kept := keptPath(path)
	writeFile(t, kept, "old", 0o600)
	o := Options{Replace: true, Keep: true}
	if err := Bytes(path, o, []byte("newer")); !errors.Is(err, tidemark.ErrConflict) || !strings.Contains(err.Error(), kept) {
		t.Errorf("%v", err)
	}
	if readText(t, path) != "new" || readText(t, kept) != "old" {
		t.Errorf("left %q and %q", readText(t, path), readText(t, kept))
	}
	if err := errors.Join(os.Remove(kept), os.Link(path, kept), Bytes(path, o, []byte("newer"))); err != nil || readText(t, path) != "newer" || readText(t, kept) != "new" {
		t.Errorf("%v, %q", err, readText(t, path))
	}
}

// An open file is none to be replaced, whatever it is called by now.
func TestNever(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "log"), "log", 0o600)
	info, err := os.Stat(filepath.Join(dir, "log"))
	if err = errors.Join(err, os.Rename(filepath.Join(dir, "log"), filepath.Join(dir, "moved"))); err != nil {
		t.Fatal(err)
	}
	err = Bytes(filepath.Join(dir, "moved"), Options{Replace: true, Never: []Named{{"standard input", info}}}, nil)
	if !errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), "the same file as standard input") || readText(t, filepath.Join(dir, "moved")) != "log" {
		t.Error(err)
	}
}

// A temporary file has no name while it is used, and takes what any file takes.
func TestTemp(t *testing.T) {
	dir := t.TempDir()
	f, drop, err := Temp(dir, "x-*")
	if err != nil {
		t.Fatal(err)
	}
	back := make([]byte, 2)
	_, err = f.WriteString("text")
	_, e := f.ReadAt(back, 1)
	if err := errors.Join(err, e); err != nil || string(back) != "ex" || locksFiles && names(t, dir) != "" {
		t.Errorf("%v, %q, left %s", err, back, names(t, dir))
	}
	if drop(); names(t, dir) != "" {
		t.Errorf("left %s", names(t, dir))
	}
}

// TestMadeMeanwhile: who looks at a path while another makes the file takes it for no link.
func TestMadeMeanwhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	made := make(chan struct{})
	go func() {
		defer close(made)
		for range 20_000 {
			if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Remove(path)); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for {
		select {
		case <-made:
			return
		default:
		}
		if _, _, err := check(path, Options{}); err != nil && !errors.Is(err, tidemark.ErrConflict) {
			t.Fatal(err)
		}
	}
}
