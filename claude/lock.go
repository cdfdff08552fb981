package claude

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/tidemark-ai/tidemark"
)

// How long one process waits for another, and how often it looks.
const (
	lockWait  = 30 * time.Second
	lockRetry = 5 * time.Millisecond
)

// hold takes a lock of the store, shared or alone, and returns what gives it back. Locks are taken in the order
// useName, lockName. The system gives a lock back when its process dies.
//
// # Errors
//
// tidemark.ErrBusy when another process holds it for too long.
func (s *Store) hold(ctx context.Context, name string, shared bool) (release func(), err error) {
	if err := os.MkdirAll(s.folder(), folderMode); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	path := filepath.Join(s.folder(), name)
	lock := flock.New(path, flock.SetPermissions(fileMode))
	wait, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	try := lock.TryLockContext
	if shared {
		try = lock.TryRLockContext
	}
	ok, err := try(wait, lockRetry)
	switch {
	case ok:
		return func() { _ = lock.Close() }, nil
	case ctx.Err() != nil:
		err = ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("another process holds it for over %s: %w", lockWait, tidemark.ErrBusy)
	}
	_ = lock.Close()
	return nil, fmt.Errorf("lock %s: %w", path, err)
}
