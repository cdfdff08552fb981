package claude

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/tidemark-ai/tidemark"
)

// Names in the configuration folder of Claude Code.
const (
	projectsName = "projects"
	logSuffix    = ".jsonl"
)

// maxFolder is how long the name of a project's folder may be before a hash of the whole path takes the rest's place.
const maxFolder = 200

// ConfigDir returns the configuration folder of Claude Code: what CLAUDE_CONFIG_DIR names, else .claude in the user's
// home. env reads an environment variable.
func ConfigDir(env func(string) string) (string, error) {
	if dir := env("CLAUDE_CONFIG_DIR"); dir != "" {
		return filepath.Abs(dir)
	}
	if home := env("HOME"); home != "" {
		return filepath.Join(home, ".claude"), nil
	}
	return "", fmt.Errorf("find the folder of Claude Code: neither CLAUDE_CONFIG_DIR nor HOME is set: %w", tidemark.ErrInvalid)
}

// Encode returns the name of the folder in which Claude Code keeps the sessions of a project: every UTF-16 unit that is
// no ASCII letter or digit is a dash (https://github.com/anthropics/claude-code/issues/24067), and a long name ends in
// a hash of the path (https://github.com/heiervang-technologies/unleash/pull/237). Several paths may have one name.
func Encode(path string) string {
	units := utf16.Encode([]rune(path))
	var b strings.Builder
	for _, u := range units {
		if u >= 'a' && u <= 'z' || u >= 'A' && u <= 'Z' || u >= '0' && u <= '9' {
			b.WriteByte(byte(u))
		} else {
			b.WriteByte('-')
		}
	}
	name := b.String()
	if len(name) <= maxFolder {
		return name
	}
	var hash int32
	for _, u := range units {
		hash = hash*31 + int32(u)
	}
	abs := int64(hash)
	if abs < 0 {
		abs = -abs
	}
	return name[:maxFolder] + "-" + strconv.FormatInt(abs, 36)
}

// projectFolder is where the logs of a project lie, whether it is there or not. Of a long path, versions of Claude Code
// differ in the hash, so a folder that begins alike and is there is taken.
func projectFolder(dir, project string) string {
	projects := filepath.Join(dir, projectsName)
	name := Encode(project)
	folder := filepath.Join(projects, name)
	if len(name) <= maxFolder || isFolder(folder) {
		return folder
	}
	entries, err := os.ReadDir(projects)
	if err != nil {
		return folder
	}
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), name[:maxFolder+1]) {
			return filepath.Join(projects, e.Name())
		}
	}
	return folder
}

// canonical is a folder's path as Claude Code writes it: absolute, symbolic links followed.
func canonical(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		return real
	}
	return abs
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// checkSessionID holds an id to what can be the name of a log.
func checkSessionID(id string) error {
	const most = 128
	ok := id != "" && len(id) <= most && id[0] != '-'
	for _, c := range []byte(id) {
		ok = ok && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_')
	}
	if !ok {
		return fmt.Errorf("session id %.60q: want up to %d letters, digits, - and _: %w", id, most, tidemark.ErrInvalid)
	}
	return nil
}
