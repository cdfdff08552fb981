package cli

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"syscall"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// Output is where a command prints. It remembers the first failure, which Main.Run reports, so that
// a full disk behind a redirection is no success; a reader that has seen enough (head) is none. Goroutines may write at
// once: each call comes out whole.
type Output struct {
	W io.Writer

	mu  sync.Mutex // guards what is written to w, and the following
	err error
}

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.W.Write(p)
	if err != nil {
		o.err = fmt.Errorf("write output: %w", err)
	}
	return n, o.err
}

// Printf, Line and Put print as those of package fmt do.
func (o *Output) Printf(format string, args ...any) { _, _ = fmt.Fprintf(o, format, args...) }
func (o *Output) Line(args ...any)                  { _, _ = fmt.Fprintln(o, args...) }
func (o *Output) Put(args ...any)                   { _, _ = fmt.Fprint(o, args...) }

// json writes a value on one line.
func (o *Output) json(v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		raw = []byte(strconv.Quote(err.Error()))
	}
	o.Line(string(raw))
}

// failure is what went wrong with the printing.
func (o *Output) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if errors.Is(o.err, syscall.EPIPE) {
		return nil
	}
	return o.err
}
