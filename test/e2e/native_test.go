//go:build !js

package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// binary is the native program, `tidemark serve` on a home folder.
type binary struct {
	home string
	log  logBuffer
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
}

var _ target = (*binary)(nil)

// program builds the binary once, unless TIDEMARK_BIN names one.
var program = sync.OnceValues(func() (string, error) {
	if given := os.Getenv("TIDEMARK_BIN"); given != "" {
		return given, nil
	}
	out := filepath.Join(scratch, "tidemark")
	build := exec.Command("go", "build", "-o", out, "github.com/tidemark-ai/tidemark/cmd/tidemark")
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the binary: %w\n%s", err, said)
	}
	return out, nil
})

func (b *binary) start(env []string) (string, error) {
	path, err := program()
	if err != nil {
		return "", err
	}
	if err := b.bucket().put("config.json", []byte(document)); err != nil {
		return "", err
	}
	b.cmd = exec.Command(path, "serve", "--listen", "127.0.0.1:0")
	b.cmd.Dir, b.cmd.Stderr = b.home, &b.log
	b.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.home, "TIDEMARK_HOME=" + b.home}, env...)
	return b.launch(" serves at ")
}

// launch starts the process and waits for the line that says where it serves.
func (b *binary) launch(mark string) (string, error) {
	out, err := b.cmd.StdoutPipe()
	if err == nil {
		err = b.cmd.Start()
	}
	if err != nil {
		return "", err
	}
	b.done = make(chan struct{})
	told := make(chan string, 1)
	go func() {
		in := bufio.NewScanner(out)
		for in.Scan() {
			if _, at, ok := strings.Cut(in.Text(), mark); ok && len(told) == 0 {
				told <- strings.TrimSpace(at)
			}
		}
		_ = b.cmd.Wait() // how it ended is in ProcessState
		close(b.done)
	}()
	select {
	case at := <-told:
		return at, nil
	case <-b.done:
		return "", errors.New("it ended before it served")
	case <-time.After(patience):
		return "", errors.Join(errors.New("it does not say where it serves"), b.cmd.Process.Kill())
	}
}

func (b *binary) stop(how string) error {
	signal := syscall.SIGTERM
	if how == byKill {
		signal = syscall.SIGKILL
	}
	if err := b.cmd.Process.Signal(signal); err != nil {
		return fmt.Errorf("stop: %w\n%s", err, b.said())
	}
	select {
	case <-b.done:
	case <-time.After(patience):
		return errors.Join(fmt.Errorf("it does not stop\n%s", b.said()), b.cmd.Process.Kill())
	}
	if code := b.cmd.ProcessState.ExitCode(); how == gracefully && code != 0 {
		return fmt.Errorf("it ended with %d\n%s", code, b.said())
	}
	if strings.Contains(b.said(), "panic") {
		return fmt.Errorf("it panicked\n%s", b.said())
	}
	return nil
}

func (b *binary) databases() ([]string, error) {
	return filepath.Glob(filepath.Join(b.home, "agents", "*", "tidemark.db"))
}

func (b *binary) bucket() bucket { return folder(filepath.Join(b.home, "bucket")) }
func (b *binary) said() string   { return b.log.String() }
