package cloudflare

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tidemark-ai/tidemark"
)

// platformError is a failure of the platform itself, which may pass.
type platformError string

func (e platformError) Error() string { return string(e) }

// bucketError says of a bucket that failed by itself that it is unavailable.
func bucketError(err error) error {
	var e platformError
	if errors.As(err, &e) {
		return fmt.Errorf("%w: %w", err, tidemark.ErrUnavailable)
	}
	return err
}

// hostError turns "Name: message" of the JavaScript side into an error that callers can tell apart.
// An unknown name is a failure of the platform.
func hostError(said string) error {
	name, message, found := strings.Cut(said, ": ")
	if !found {
		return platformError(said)
	}
	switch name {
	case "Conflict":
		return fmt.Errorf("%s: %w", message, tidemark.ErrConflict)
	case "TooLarge":
		return fmt.Errorf("%s: %w", message, tidemark.ErrTooLarge)
	case "Invalid":
		return fmt.Errorf("%s: %w", message, tidemark.ErrInvalid)
	case "Unavailable":
		return fmt.Errorf("%s: %w", message, tidemark.ErrUnavailable)
	case "Dead":
		return tidemark.ErrDead
	}
	return platformError(said)
}
