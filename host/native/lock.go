//go:build !js

package native

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// heldError says that another owner has a lock file.
type heldError struct{ pid int }

func (e *heldError) Error() string { return fmt.Sprintf("held by process %d", e.pid) }

// lockOwner takes the lock file at path for as long as the file stays open, which the end of the
// process closes, however it ends. The file itself stays: removing it would race with a new owner.
func lockOwner(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, filePerm)
	if err != nil {
		return nil, err
	}
	held, err := tryLock(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	if held {
		defer f.Close()
		b, _ := io.ReadAll(io.LimitReader(f, 32))
		pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
		return nil, &heldError{pid}
	}
	if err := writePID(f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}
