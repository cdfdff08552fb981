package wasi

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/near"
	"github.com/tidemark-ai/tidemark/internal/place"
)

// Names in the home folder and in that of a tool.
const (
	toolsName    = "tools"
	moduleName   = "tool.wasm"
	manifestName = "tool.json"
)

// MaxTools bounds how many tools a home may have; a model chooses badly from many.
const MaxTools = 128

// Folders on their way in and out are called .NAME.new-RANDOM and .NAME.old-RANDOM. NAME has no dot.
const (
	newMark = ".new-"
	oldMark = ".old-"
)

// Store is the folder of tools in a home: a tool is a folder by its name with tool.wasm and tool.json. Its
// methods may be called at once, in several processes.
type Store struct {
	Home     string
	Reserved []string // names of tools that are built in
}

// Installed is a tool that is there.
type Installed struct {
	Manifest
	Bytes  int64     `json:"bytes"`  // of the module
	At     time.Time `json:"at"`     // when it was added
	Folder string    `json:"folder"` // where it lies
	Broken string    `json:"broken,omitempty"`

	files [2]os.FileInfo // of the module and the manifest, by which a change is seen
}

// Dir is where the tools lie.
func (s Store) Dir() string { return filepath.Join(s.Home, toolsName) }

// names lists the folders of tools. A home without any has none.
func (s Store) names() ([]string, error) {
	list, err := os.ReadDir(s.Dir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list tools: %w", err)
	}
	var names []string
	for _, e := range list {
		if !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	if len(names) > MaxTools {
		return nil, fmt.Errorf("list tools: %d in %s, at most %d; remove some with `tidemark tool rm NAME`: %w", len(names), s.Dir(), MaxTools, tidemark.ErrTooLarge)
	}
	return names, nil
}

// List reads all tools, by name. Those that are broken say so; the modules themselves are not compiled.
func (s Store) List() ([]Installed, error) {
	names, err := s.names()
	if err != nil {
		return nil, err
	}
	out := make([]Installed, 0, len(names))
	for _, name := range names {
		one, err := s.read(name)
		if errors.Is(err, tidemark.ErrNotFound) {
			continue // removed meanwhile
		}
		out = append(out, one)
	}
	return out, nil
}

// stat looks at the files of a tool.
func (s Store) stat(name string) (files [2]os.FileInfo, err error) {
	for i, file := range []string{moduleName, manifestName} {
		if files[i], err = os.Stat(filepath.Join(s.Dir(), name, file)); err != nil {
			return files, err
		}
	}
	return files, nil
}

// read reads a tool. One that is broken comes with an error and says so itself too.
//
// # Errors
//
// tidemark.ErrNotFound when there is none, tidemark.ErrInvalid and tidemark.ErrTooLarge for one that is broken.
func (s Store) read(name string) (Installed, error) {
	one := Installed{Manifest: Manifest{Name: name}, Folder: filepath.Join(s.Dir(), name)}
	broken := func(err error) (Installed, error) {
		one.Broken = strings.TrimSuffix(err.Error(), ": "+tidemark.ErrInvalid.Error())
		return one, fmt.Errorf("tool %s: %w", name, err)
	}
	info, err := os.Stat(one.Folder)
	if errors.Is(err, fs.ErrNotExist) {
		return one, s.missing(name)
	}
	if err == nil && !info.IsDir() {
		return broken(fmt.Errorf("%s is no folder; remove it: %w", one.Folder, tidemark.ErrInvalid))
	}
	if one.files, err = s.stat(name); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%s or %s is missing in %s; add the tool again: %w", moduleName, manifestName, one.Folder, tidemark.ErrInvalid)
		}
		return broken(err)
	}
	one.Bytes, one.At = one.files[0].Size(), one.files[0].ModTime()
	if one.Bytes > MaxModule {
		return broken(fmt.Errorf("%s has %d bytes, at most %d: %w", moduleName, one.Bytes, MaxModule, tidemark.ErrTooLarge))
	}
	raw, err := readBounded(filepath.Join(one.Folder, manifestName), MaxManifest)
	if err != nil {
		return broken(err)
	}
	m, err := ParseManifest(raw)
	if err == nil {
		err = s.check(m)
	}
	if err == nil && m.Name != name {
		err = wrongf("\"name\" is %q in the folder %q; both must be the same", m.Name, name)
	}
	if err != nil {
		return broken(err)
	}
	one.Manifest = m
	return one, nil
}

// missing is the error for a tool that is not there.
func (s Store) missing(name string) error {
	const long = 80
	names, _ := s.names()
	hint := ""
	if n := near.Name(name, names); n != "" {
		hint = fmt.Sprintf("; did you mean %q?", n)
	}
	return fmt.Errorf("there is no tool %q%s: %w", name[:min(len(name), long)], hint, tidemark.ErrNotFound)
}

// check holds a manifest against this home.
func (s Store) check(m Manifest) error {
	if slices.Contains(s.Reserved, m.Name) {
		return wrongf("\"name\" is %q, which is a tool that is built in; choose another", m.Name)
	}
	if m.Mount == "" {
		return nil
	}
	return checkMount(m.Mount, s.Home)
}

// readBounded reads a file up to one byte more than it may have.
func readBounded(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most+1))
}

// put installs a tool: its folder is made aside and takes the name whole.
//
// # Errors
//
// tidemark.ErrConflict when there is one and replace is false. Then, and after every error, what was there is there.
func (s Store) put(module []byte, m Manifest, replace bool) error {
	const private = 0o700
	names, err := s.names()
	if err != nil {
		return err
	}
	there := slices.Contains(names, m.Name)
	switch {
	case there && !replace:
		return fmt.Errorf("add tool %s: there is one of that name: %w", m.Name, tidemark.ErrConflict)
	case !there && len(names) == MaxTools:
		return fmt.Errorf("add tool %s: there are %d tools, which is the bound: %w", m.Name, MaxTools, tidemark.ErrTooLarge)
	}
	if err := os.MkdirAll(s.Dir(), private); err != nil {
		return fmt.Errorf("add tool %s: %w", m.Name, err)
	}
	s.mend()
	fresh := s.aside(m.Name, newMark)
	if err := os.Mkdir(fresh, private); err != nil {
		return fmt.Errorf("add tool %s: %w", m.Name, err)
	}
	defer func() { _ = os.RemoveAll(fresh) }() // when it has no name yet
	raw, err := json.MarshalIndent(m)
	if err != nil {
		return err
	}
	err = cmp.Or(place.Bytes(filepath.Join(fresh, moduleName), place.Options{}, module),
		place.Bytes(filepath.Join(fresh, manifestName), place.Options{}, append(raw, '\n')))
	if err != nil {
		return fmt.Errorf("add tool %s: %w", m.Name, err)
	}
	return s.swap(m.Name, fresh)
}

func (s Store) aside(name, mark string) string {
	return filepath.Join(s.Dir(), "."+name+mark+rand.Text())
}

// swap gives a folder the name of a tool. A process that is killed between the two renames leaves the old one
// aside, and mend puts it back.
func (s Store) swap(name, fresh string) error {
	to, old := filepath.Join(s.Dir(), name), s.aside(name, oldMark)
	err := os.Rename(to, old)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("replace tool %s: %w", name, err)
	}
	replaced := err == nil
	if err := os.Rename(fresh, to); err != nil {
		if replaced {
			err = errors.Join(err, os.Rename(old, to))
		}
		return fmt.Errorf("add tool %s: %w", name, err)
	}
	if replaced {
		_ = os.RemoveAll(old) // mend tries again
	}
	return syncDir(s.Dir())
}

// syncDir makes renames in a folder durable, where the system can.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return nil //nolint:nilerr // some systems open no folder
	}
	_ = f.Sync() // some sync none
	return f.Close()
}

// Remove takes a tool away, whole. Calls in work end as they began.
//
// # Errors
//
// tidemark.ErrNotFound when there is none.
func (s Store) Remove(name string) error {
	if strings.ContainsAny(name, `/\`) || strings.HasPrefix(name, ".") || name == "" {
		return s.missing(name)
	}
	old := s.aside(name, newMark) // it is not to be put back
	if err := os.Rename(filepath.Join(s.Dir(), name), old); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return s.missing(name)
		}
		return fmt.Errorf("remove tool %s: %w", name, err)
	}
	if err := os.RemoveAll(old); err != nil {
		return fmt.Errorf("remove tool %s: %w", name, err)
	}
	return syncDir(s.Dir())
}

// mend tidies up after processes that were killed: a tool that was to be replaced and has no successor comes back,
// other folders aside go once they are old.
func (s Store) mend() {
	list, err := os.ReadDir(s.Dir())
	if err != nil {
		return
	}
	const stale = 10 * time.Minute
	for _, e := range list {
		info, err := e.Info()
		if err != nil || !strings.HasPrefix(e.Name(), ".") {
			continue
		}
		path := filepath.Join(s.Dir(), e.Name())
		name, _, old := strings.Cut(e.Name()[1:], oldMark)
		if _, err := os.Lstat(filepath.Join(s.Dir(), name)); old && checkName(name) == nil && errors.Is(err, fs.ErrNotExist) {
			_ = os.Rename(path, filepath.Join(s.Dir(), name)) // or another process did
			continue
		}
		_, _, fresh := strings.Cut(e.Name()[1:], newMark)
		if (old || fresh) && time.Since(info.ModTime()) > stale {
			_ = os.RemoveAll(path)
		}
	}
}
