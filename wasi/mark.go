package wasi

import (
	"fmt"
	"hash/fnv"
	"time"
)

// Mark names what is in the folder now: names, and sizes and times of the files. It reads none of them.
func (ts *Tools) Mark() string {
	names, err := ts.store.names()
	if err != nil {
		return err.Error()
	}
	out := ""
	for _, name := range names {
		out += name
		files, err := ts.store.stat(name)
		for i := 0; err == nil && i < len(files); i++ {
			out += fmt.Sprintf(" %d %d", files[i].Size(), files[i].ModTime().UnixNano())
		}
		out += "\n"
	}
	return out
}

// Fresh says that a list is good until the folder is another.
func (ts *Tools) Fresh() (ttl time.Duration, change int64) {
	h := fnv.New64a()
	h.Write([]byte(ts.Mark()))
	return time.Hour, int64(h.Sum64()) //nolint:gosec // any number but the one before will do
}

// Version is of the interface that modules are run by.
func (ts *Tools) Version() string { return "wasi preview 1" }
