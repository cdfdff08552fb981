package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// waitsForInput starts the program on standard input that never comes, and returns when it reads it.
func waitsForInput(t *testing.T, dir string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "tidemark", args...)
	c.Dir, c.Env = dir, append(os.Environ(), "TMPDIR="+dir, "HOME="+dir, "TIDEMARK_HOME="+dir)
	var said bytes.Buffer
	c.Stderr = &said
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	// More than a pipe holds: when all of it is written, the program reads.
	if _, err := in.Write(bytes.Repeat([]byte("{}\n"), 1<<18)); err != nil {
		t.Fatal(err)
	}
	return c, &said
}

// awaitEnd waits for a process that was told to end.
func awaitEnd(t *testing.T, c *exec.Cmd) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		_ = c.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(tidemarktest.Patience):
		_ = c.Process.Kill()
		<-done
		t.Fatal("it did not end")
	}
}

// Ctrl-C ends a trim that waits for standard input, which says so and leaves nothing; a killed one leaves nothing either.
func TestTrimInputInterrupted(t *testing.T) {
	for name, sig := range map[string]os.Signal{"interrupt": os.Interrupt, "kill": os.Kill} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c, said := waitsForInput(t, dir, "trim", "-", "-o", "out")
			if err := c.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			awaitEnd(t, c)
			if sig == os.Interrupt && (c.ProcessState.ExitCode() != cli.ExitFailed || !strings.Contains(said.String(), "read log: ")) {
				t.Errorf("exit code %d, %s", c.ProcessState.ExitCode(), said)
			}
			if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) > 0 {
				t.Errorf("%v, left %v", err, left)
			}
		})
	}
}

// What reads a stream ends with its context, though the stream gives nothing and does not end.
func TestSpooledEnds(t *testing.T) {
	from, to := io.Pipe()
	defer to.Close()
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, _, err := spooled(ctx, from); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// The first Ctrl-C ends the context, the second one the process.
func TestUntilInterrupt(t *testing.T) {
	if os.Getenv("TIDEMARK_TEST_WAITS") != "" {
		ctx, stop := cli.UntilInterrupt(context.Background())
		defer stop()
		_, _ = os.Stdout.WriteString("waits\n")
		<-ctx.Done()
		_, _ = os.Stdout.WriteString("ended\n")
		select {} // it does not hear of it
	}
	// Whoever started the tests may have told them to ignore Ctrl-C, as a shell does behind &. A process that listens to
	// it hands the default on.
	listens := make(chan os.Signal, 1)
	signal.Notify(listens, os.Interrupt)
	defer signal.Stop(listens)
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestUntilInterrupt$")
	c.Env = append(os.Environ(), "TIDEMARK_TEST_WAITS=1")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"waits\n", "ended\n"} {
		got := make([]byte, len(want))
		if _, err := io.ReadFull(out, got); err != nil || string(got) != want {
			t.Fatalf("%q, %v", got, err)
		}
		if err := c.Process.Signal(os.Interrupt); i == 0 && err != nil {
			t.Fatal(err)
		}
	}
	again := time.NewTicker(20 * time.Millisecond) // one that comes within microseconds of the first is still of it
	defer again.Stop()
	go func() {
		for range again.C {
			if c.Process.Signal(os.Interrupt) != nil {
				return
			}
		}
	}()
	awaitEnd(t, c)
	if code := c.ProcessState.ExitCode(); code != -1 {
		t.Errorf("exit code %d, want the end by the signal", code)
	}
}
