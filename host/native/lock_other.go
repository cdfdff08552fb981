//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || js)

package native

import (
	"errors"
	"fmt"
	"os"
)

// errNoLock: two processes on one store would lose data silently, so none is opened.
var errNoLock = fmt.Errorf("this platform has no file locks that we use: %w", errors.ErrUnsupported)

func tryLock(*os.File) (held bool, err error) { return false, errNoLock }

func waitLock(*os.File) error { return errNoLock }
