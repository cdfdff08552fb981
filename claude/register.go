package claude

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/tailscale/hujson"

	"github.com/tidemark-ai/tidemark"
)

// maxIndex bounds the list of sessions that is read.
const maxIndex = 64 << 20

// indexEntry is what versions of Claude Code up to 2.1.29 list of a session in sessions-index.json; later ones read the
// logs (https://github.com/anthropics/claude-code/issues/25032).
type indexEntry struct {
	Session  string `json:"sessionId"`
	Path     string `json:"fullPath"`
	MTime    int64  `json:"fileMtime"` // milliseconds
	Prompt   string `json:"firstPrompt"`
	Messages int    `json:"messageCount"`
	Created  string `json:"created"`
	Modified string `json:"modified"`
	Branch   string `json:"gitBranch"`
	Project  string `json:"projectPath"`
	Side     bool   `json:"isSidechain"`
}

// register adds a branch to the project's list of sessions, if there is one, and returns what the user should know of
// it. The session can be resumed without: a list that cannot be read is left alone.
func (s *Store) register(ctx context.Context, b *branching) string {
	path := filepath.Join(filepath.Dir(b.out.Log), indexName)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	release, err := s.hold(ctx, lockName, false)
	if err == nil {
		defer release()
		err = addToIndex(path, b)
	}
	if err != nil {
		return fmt.Sprintf("the list of sessions was left as it is (%s: %v); the branch is resumed by its id", path, err)
	}
	return ""
}

// addToIndex adds an entry and leaves every other byte. Claude Code does not know our lock: when it wrote the file
// meanwhile, the entry is added to what it wrote.
func addToIndex(path string, b *branching) error {
	info, err := os.Stat(b.out.Log)
	if err != nil {
		return err
	}
	const form = "2006-01-02T15:04:05.000Z"
	at := b.out.Node.Created.UTC().Format(form)
	entry := indexEntry{Session: b.out.Session, Path: b.out.Log, MTime: info.ModTime().UnixMilli(), Prompt: b.out.Node.Name,
		Messages: b.out.Node.Messages, Created: at, Modified: info.ModTime().UTC().Format(form), Branch: b.re.outline.branch, Project: b.out.Project}
	const tries = 3
	for range tries {
		raw, mode, err := readSmall(path, maxIndex)
		if err != nil {
			return err
		}
		edited, err := insertEntry(raw, entry)
		if err != nil {
			return err
		}
		now, _, err := readSmall(path, maxIndex)
		if err != nil {
			return err
		}
		if bytes.Equal(raw, now) {
			return replaceFile(path, edited, mode)
		}
		time.Sleep(lockRetry)
	}
	return fmt.Errorf("another program keeps writing it: %w", tidemark.ErrBusy)
}

func insertEntry(raw []byte, entry indexEntry) ([]byte, error) {
	v, err := hujson.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, tidemark.ErrInvalid)
	}
	entries := v.Find("/entries")
	if entries == nil {
		return nil, fmt.Errorf("it has no entries: %w", tidemark.ErrInvalid)
	}
	if _, ok := entries.Value.(*hujson.Array); !ok {
		return nil, fmt.Errorf("its entries are no list: %w", tidemark.ErrInvalid)
	}
	return splice(raw, appendTo(raw, entries, layout(entry))), nil
}

// readSmall reads a whole file of a bounded size, and its mode.
func readSmall(path string, most int64) ([]byte, fs.FileMode, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() { // a pipe would be waited for
		return nil, 0, fmt.Errorf("%s is no file: %w", path, tidemark.ErrInvalid)
	}
	if info.Size() > most {
		return nil, 0, fmt.Errorf("%d bytes, over %d: %w", info.Size(), most, tidemark.ErrTooLarge)
	}
	raw, err := os.ReadFile(path)
	return raw, info.Mode().Perm(), err
}
