package claude

import (
	"io/fs"

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
