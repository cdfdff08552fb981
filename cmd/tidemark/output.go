package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"syscall"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// output is where a command prints. It remembers the first failure, which Main.Run reports, so that
// a full disk behind a redirection is no success; a reader that has seen enough (head) is none. Goroutines may write at
// once: each call comes out whole.
type output struct {
	w io.Writer

	mu  sync.Mutex // guards what is written to w, and the following
	err error
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(p)
	if err != nil {
		o.err = fmt.Errorf("write output: %w", err)
	}
	return n, o.err
}

func (o *output) printf(format string, args ...any) { _, _ = fmt.Fprintf(o, format, args...) }
func (o *output) line(args ...any)                  { _, _ = fmt.Fprintln(o, args...) }
func (o *output) put(args ...any)                   { _, _ = fmt.Fprint(o, args...) }

// json writes a value on one line.
func (o *output) json(v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		raw = []byte(strconv.Quote(err.Error()))
	}
	o.line(string(raw))
}

// failure is what went wrong with the printing.
func (o *output) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if errors.Is(o.err, syscall.EPIPE) {
		return nil
	}
	return o.err
}
