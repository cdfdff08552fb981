//go:build !unix

package native

import (
	"errors"
	"os"
	"os/exec"
)

// OwnGroup does nothing: there are no groups of processes on this system.
func OwnGroup(*exec.Cmd) {}

// EndGroup kills the command itself; what it started ends when it finds its input closed. One that has ended already
// is no error.
func EndGroup(cmd *exec.Cmd) error {
	if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}
