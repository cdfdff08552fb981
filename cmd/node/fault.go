//go:build fault

package node

import (
	"log/slog"

	"github.com/tidemark-ai/tidemark/test/crash"
)

// newFault is a death that test/fault asks for.
func newFault(log *slog.Logger) (fault, error) { return crash.Asked(log) }
