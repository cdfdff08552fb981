//go:build unix

package native

import (
	"errors"
	"os/exec"
	"syscall"
)

// OwnGroup has a command, which is not started yet, lead a group of processes of its own, so that [EndGroup] reaches
// what it starts, and a key that interrupts us does not reach it.
func OwnGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// EndGroup kills a command that was started with [OwnGroup], and all that it started and that has not left its
// group. One that has ended already is no error.
func EndGroup(cmd *exec.Cmd) error {
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}
