package cloudflare

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tidemark-ai/tidemark"
)

// errMissing is a binding that wrangler.toml does not have.
var errMissing = errors.New("not bound")

// hostError turns "Name: message" of the JavaScript side into an error that callers can tell apart.
// An unknown name is a failure of the platform, which may pass.
func hostError(said string) error {
	name, message, found := strings.Cut(said, ": ")
	if !found {
		return errors.New(said)
	}
	switch name {
	case "Conflict":
		return fmt.Errorf("%s: %w", message, tidemark.ErrConflict)
	case "TooLarge":
		return fmt.Errorf("%s: %w", message, tidemark.ErrTooLarge)
	case "Invalid":
		return fmt.Errorf("%s: %w", message, tidemark.ErrInvalid)
	case "Missing":
		return fmt.Errorf("%s: %w", message, errMissing)
	case "Dead":
		return tidemark.ErrDead
	}
	return errors.New(said)
}
