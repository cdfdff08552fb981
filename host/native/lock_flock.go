//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package native

import (
	"errors"
	"os"
	"syscall"
)

// tryLock takes an exclusive lock on f without waiting and reports whether someone else has it.
// The lock belongs to the open file, so two opens in one process exclude each other too.
func tryLock(f *os.File) (held bool, err error) {
	err = flock(f, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

// waitLock takes an exclusive lock on f and waits for it.
func waitLock(f *os.File) error { return flock(f, syscall.LOCK_EX) }

func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
