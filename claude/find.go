package claude

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
)

// Latest is the reference that means the session that was worked in last.
const Latest = "latest"

// minPrefix is how much of an id names a session.
const minPrefix = 4

// maxNamed is how many sessions an error lists.
const maxNamed = 8

// Finder finds session logs. It reads the beginning and the end of a log and never writes beside one. It is used by one
// caller at a time.
type Finder struct {
	Dir string // the configuration folder of Claude Code, see [ConfigDir]

	read      int64                // bytes of logs that were read
	untouched func(s Session) bool // says of a branch that nobody worked in yet; nil is none
}

// Sessions lists the sessions of a project by its folder, newest first; of all projects when cwd is "".
func (f *Finder) Sessions(ctx context.Context, cwd string) ([]Session, error) {
	folders, err := f.folders(cwd)
	if err != nil {
		return nil, err
	}
	var all []Session
	for _, folder := range folders {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		found, err := f.folder(folder)
		if err != nil {
			return nil, fmt.Errorf("list sessions: %w", err)
		}
		all = append(all, found...)
	}
	if cwd != "" {
		own := canonical(cwd)
		// The name of a folder may be that of several projects: what the lines say counts.
		all = slices.DeleteFunc(all, func(s Session) bool {
			return s.Project != "" && s.Project != cwd && s.Project != own && Encode(s.Project) == Encode(own)
		})
	}
	slices.SortStableFunc(all, func(a, b Session) int { return b.Modified.Compare(a.Modified) })
	return all, nil
}

// folders lists the folders of logs to look into.
func (f *Finder) folders(cwd string) ([]string, error) {
	if cwd != "" {
		folders := []string{projectFolder(f.Dir, canonical(cwd))}
		if plain := projectFolder(f.Dir, filepath.Clean(cwd)); plain != folders[0] && filepath.IsAbs(cwd) {
			folders = append(folders, plain)
		}
		return folders, nil
	}
	projects := filepath.Join(f.Dir, projectsName)
	entries, err := os.ReadDir(projects)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	var folders []string
	for _, e := range entries {
		if path := filepath.Join(projects, e.Name()); isFolder(path) {
			folders = append(folders, path)
		}
	}
	return folders, nil
}

// folder lists the sessions of one folder. One that is not there has none.
func (f *Finder) folder(folder string) ([]Session, error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []Session
	for _, e := range entries {
		id, isLog := strings.CutSuffix(e.Name(), logSuffix)
		if !isLog || checkSessionID(id) != nil {
			continue
		}
		s, err := f.look(filepath.Join(folder, e.Name()))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, tidemark.ErrInvalid) {
			continue // gone meanwhile, or no file
		}
		if err != nil {
			return nil, err
		}
		found = append(found, s)
	}
	return found, nil
}

// look reads what a listing shows of one log.
func (f *Finder) look(path string) (Session, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Session{}, err
	}
	if !info.Mode().IsRegular() {
		return Session{}, fmt.Errorf("log %s: is no file: %w", path, tidemark.ErrInvalid)
	}
	file, err := os.Open(path)
	if err != nil {
		return Session{}, err
	}
	defer file.Close()
	s := Session{ID: strings.TrimSuffix(filepath.Base(path), logSuffix), Path: path, Bytes: info.Size(), Modified: info.ModTime()}
	n, err := describe(&s, file, info.Size())
	f.read += n
	if err != nil {
		return Session{}, fmt.Errorf("read log %s: %w", path, err)
	}
	return s, nil
}

// Pick finds one session: by its id, by the beginning of its id (at least four characters), by the path of its log,
// or as [Latest]: the one that was worked in last of the project whose folder is cwd, or of all projects when cwd is "".
// Ids are looked up in all projects.
//
// # Errors
//
// tidemark.ErrNotFound, tidemark.ErrInvalid for what can be no reference, tidemark.ErrConflict when several sessions
// begin so, which names them.
func (f *Finder) Pick(ctx context.Context, ref, cwd string) (Session, error) {
	switch {
	case ref == Latest:
		return f.latest(ctx, cwd)
	case strings.HasSuffix(ref, logSuffix) || strings.ContainsRune(ref, filepath.Separator):
		return f.byPath(ref)
	}
	if err := checkSessionID(ref); err != nil {
		return Session{}, fmt.Errorf("find session: %w", err)
	}
	if len(ref) < minPrefix {
		return Session{}, fmt.Errorf("find session %q: give at least %d characters of its id, or %q: %w", ref, minPrefix, Latest, tidemark.ErrInvalid)
	}
	paths, err := f.named(ref)
	if err != nil {
		return Session{}, err
	}
	switch len(paths) {
	case 0:
		return Session{}, fmt.Errorf("find session %q: no log in %s has an id that begins so: %w", ref, filepath.Join(f.Dir, projectsName), tidemark.ErrNotFound)
	case 1:
		s, err := f.look(paths[0])
		if err != nil {
			return Session{}, fmt.Errorf("find session %q: %w", ref, err)
		}
		return s, nil
	}
	return Session{}, fmt.Errorf("find session %q: %d sessions begin so: %s; give more of the id: %w", ref, len(paths), listed(paths), tidemark.ErrConflict)
}

// named lists the logs whose id is ref, else those whose id begins so.
func (f *Finder) named(ref string) ([]string, error) {
	folders, err := f.folders("")
	if err != nil {
		return nil, err
	}
	var exact, begins []string
	for _, folder := range folders {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return nil, fmt.Errorf("find session %q: %w", ref, err)
		}
		for _, e := range entries {
			id, isLog := strings.CutSuffix(e.Name(), logSuffix)
			if !isLog || !strings.HasPrefix(id, ref) || checkSessionID(id) != nil {
				continue
			}
			path := filepath.Join(folder, e.Name())
			if begins = append(begins, path); id == ref {
				exact = append(exact, path)
			}
		}
	}
	if len(exact) > 0 {
		return exact, nil
	}
	return begins, nil
}

// latest is the newest session that is no talk of a subagent alone, and no branch as it was made: whoever trimmed a
// session, or let a hook do so, and went on in it still means that one. Where there are only such branches it is the
// newest of them.
func (f *Finder) latest(ctx context.Context, cwd string) (Session, error) {
	all, err := f.Sessions(ctx, cwd)
	if err != nil {
		return Session{}, err
	}
	var branch *Session
	for i, s := range all {
		switch {
		case s.Side:
		case f.untouched == nil || !f.untouched(s):
			return s, nil
		case branch == nil:
			branch = &all[i]
		}
	}
	if branch != nil {
		return *branch, nil
	}
	if cwd == "" {
		return Session{}, fmt.Errorf("find the latest session: %s has none: %w", filepath.Join(f.Dir, projectsName), tidemark.ErrNotFound)
	}
	return Session{}, fmt.Errorf("find the latest session: the project %s has none; go to the folder in which it ran, name it by its id, or ask for all projects: %w", canonical(cwd), tidemark.ErrNotFound)
}

func (f *Finder) byPath(path string) (Session, error) {
	id, isLog := strings.CutSuffix(filepath.Base(path), logSuffix)
	if !isLog {
		return Session{}, fmt.Errorf("find session: %.200q is neither an id nor the path of a %s file: %w", path, logSuffix, tidemark.ErrInvalid)
	}
	if err := checkSessionID(id); err != nil {
		return Session{}, fmt.Errorf("find session: %w", err)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return Session{}, fmt.Errorf("find session: %w", err)
	}
	s, err := f.look(abs)
	if errors.Is(err, fs.ErrNotExist) {
		return Session{}, fmt.Errorf("find session: there is no log %s: %w", abs, tidemark.ErrNotFound)
	}
	return s, err
}

// listed names some paths in an error.
func listed(paths []string) string {
	more := ""
	if len(paths) > maxNamed {
		more = fmt.Sprintf(" and %d more", len(paths)-maxNamed)
		paths = paths[:maxNamed]
	}
	return strings.Join(paths, ", ") + more
}
