//go:build !js

package native

import (
	"fmt"
	"io"

	"github.com/tidemark-ai/tidemark"
)

// exactReader gives exactly size bytes of r or an error. It looks one byte ahead before it hands
// out the last one, so that whoever streams it to a server never completes a body of another size.
type exactReader struct {
	r    io.Reader
	left int64
	size int64
	done bool // the end of r was seen
}

func newExactReader(r io.Reader, size int64) (*exactReader, error) {
	if size < 0 {
		return nil, fmt.Errorf("size of %d bytes: %w", size, tidemark.ErrInvalid)
	}
	return &exactReader{r: r, left: size, size: size}, nil
}

// Read implements [io.Reader].
func (e *exactReader) Read(p []byte) (int, error) {
	if e.left == 0 {
		if err := e.atEnd(); err != nil {
			return 0, err
		}
		return 0, io.EOF
	}
	if int64(len(p)) > e.left {
		p = p[:e.left]
	}
	n, err := e.r.Read(p)
	e.left -= int64(n)
	switch {
	case err == io.EOF && e.left > 0:
		return n, fmt.Errorf("body ends %d bytes before its announced size of %d: %w: %w", e.left, e.size, io.ErrUnexpectedEOF, tidemark.ErrInvalid)
	case err == io.EOF:
		e.done = true
	case err != nil:
		return n, err
	}
	if e.left > 0 || n == 0 {
		return n, nil
	}
	if err := e.atEnd(); err != nil {
		return n - 1, err // without the last byte the body stays incomplete
	}
	return n, nil
}

// atEnd reports a source that goes on or breaks after the last byte.
func (e *exactReader) atEnd() error {
	if e.done {
		return nil
	}
	var b [1]byte
	switch n, err := io.ReadFull(e.r, b[:]); {
	case n > 0:
		return fmt.Errorf("body is longer than its announced size of %d: %w", e.size, tidemark.ErrInvalid)
	case err != io.EOF:
		return err
	}
	e.done = true
	return nil
}
