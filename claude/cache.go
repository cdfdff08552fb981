package claude

import (
	"os"
	"path/filepath"
	"time"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// Bounds of the cache file: one over them is thrown away.
const (
	maxCache   = 64 << 20 // bytes
	maxCached  = 100_000  // sessions
	cacheShape = 1        // a cache of another shape is not read
)

// cache keeps what was read of logs, by path, size and time. It is a help only: whatever is wrong with its file, the
// logs are read again, and when two processes write it, the later wins.
type cache struct {
	path    string
	changed bool
	file    cacheFile
}

type cacheFile struct {
	Shape    int                `json:"shape"`
	Sessions map[string]Session `json:"sessions"`
}

// openCache reads a cache. "" is one that is kept nowhere.
func openCache(path string) *cache {
	c := &cache{path: path}
	if path != "" {
		if info, err := os.Stat(path); err == nil && info.Size() <= maxCache {
			if raw, err := os.ReadFile(path); err == nil && json.Unmarshal(raw, &c.file) != nil {
				c.file = cacheFile{}
			}
		}
	}
	if c.file.Shape != cacheShape || c.file.Sessions == nil {
		c.file = cacheFile{Shape: cacheShape, Sessions: map[string]Session{}}
	}
	return c
}

func (c *cache) get(path string, info os.FileInfo) (Session, bool) {
	s, ok := c.file.Sessions[path]
	ok = ok && s.Path == path && s.Bytes == info.Size() && s.Modified.Equal(info.ModTime())
	if ok {
		s.Modified = s.Modified.In(time.Local)
	}
	return s, ok
}

func (c *cache) put(s Session) {
	if len(c.file.Sessions) < maxCached {
		c.file.Sessions[s.Path], c.changed = s, true
	}
}

// keepOnly forgets the logs of a folder that are gone.
func (c *cache) keepOnly(folder string, found []Session) {
	there := make(map[string]bool, len(found))
	for _, s := range found {
		there[s.Path] = true
	}
	for path := range c.file.Sessions {
		if filepath.Dir(path) == folder && !there[path] {
			delete(c.file.Sessions, path)
			c.changed = true
		}
	}
}

// save writes the cache if it changed and if it can.
func (c *cache) save() {
	if c.path == "" || !c.changed {
		return
	}
	raw, err := json.Marshal(c.file)
	if err != nil || os.MkdirAll(filepath.Dir(c.path), folderMode) != nil {
		return
	}
	_ = replaceFile(c.path, raw, fileMode)
}
