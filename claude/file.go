package claude

import (
	"fmt"
	"io/fs"
	"os"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/place"
)

// Modes of what is written: logs hold whatever a user's tools saw.
const (
	fileMode   fs.FileMode = 0o600
	folderMode fs.FileMode = 0o700
)

// replaceFile writes a small file whole. One that is there keeps its mode.
func replaceFile(path string, content []byte, mode fs.FileMode) error {
	return place.Bytes(path, place.Options{Mode: mode, Replace: true}, content)
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
