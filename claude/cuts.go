package claude

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const cutsSuffix = ".cuts"

// Cuts is where the cuts of a trimmed branch are kept, by the id of its session.
func (s *Store) Cuts(session string) string {
	return filepath.Join(s.folder(), cutsName, session+cutsSuffix)
}

// sweepCuts removes cuts of branches that never came to be: their process was killed before the log had its name. A
// branch that the journal named once keeps its cuts, since its log may lie anywhere, and so does one whose log is there.
func (s *Store) sweepCuts(j *journal) {
	const age = 7 * 24 * time.Hour // no branch is made for so long
	dir := filepath.Dir(s.Cuts(""))
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		id, isCuts := strings.CutSuffix(e.Name(), cutsSuffix)
		if !isCuts || !e.Type().IsRegular() || j.byID[id] != nil || j.gone[id] || checkSessionID(id) != nil {
			continue
		}
		if info, err := e.Info(); err == nil && s.now().Sub(info.ModTime()) > age && !s.mayHaveLog(id) {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// dropCuts removes the cuts of a branch that is forgotten, unless its log may be there: the cuts are what brings back what
// was cut from it. It returns the bytes freed.
func (s *Store) dropCuts(session string) int64 {
	path := s.Cuts(session)
	info, err := os.Stat(path)
	if err != nil || s.mayHaveLog(session) || os.Remove(path) != nil {
		return 0
	}
	return info.Size()
}

// mayHaveLog reports whether there is a log of this session, or no way to know.
func (s *Store) mayHaveLog(id string) bool {
	if s.Dir == "" || !isFolder(filepath.Join(s.Dir, projectsName)) {
		return true
	}
	paths, err := (&Finder{Dir: s.Dir}).named(id)
	return err != nil || slices.ContainsFunc(paths, func(path string) bool { return filepath.Base(path) == id+logSuffix })
}
