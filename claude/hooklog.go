package claude

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// maxHookLog bounds the log of hooks: beyond it, it is begun anew, and the one before is kept.
const maxHookLog = 256 << 10

// HookLog is the file in which hooks say what went wrong, since nobody sees their output.
type HookLog struct {
	path string
	now  func() time.Time
}

// HookLog is the log of this store.
func (s *Store) HookLog() HookLog {
	return HookLog{filepath.Join(s.folder(), "hook.log"), s.now}
}

// Say appends a line. When that fails, there is nobody left to tell.
func (l HookLog) Say(text string) {
	if info, err := os.Stat(l.path); err == nil && info.Size() > maxHookLog {
		_ = os.Rename(l.path, l.path+".1")
	}
	if os.MkdirAll(filepath.Dir(l.path), folderMode) != nil {
		return
	}
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, fileMode)
	if err != nil {
		return
	}
	const most = 500 // characters
	_, _ = f.WriteString(l.now().Format(time.RFC3339) + " " + clip(text, most) + "\n")
	_ = f.Close()
}

// Last is the last line, "" when there is none.
func (l HookLog) Last() string {
	raw, _, err := readSmall(l.path, 2*maxHookLog)
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	return lines[len(lines)-1]
}
