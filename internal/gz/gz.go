// Package gz compresses bytes with gzip. A writer takes 0.8 MB, so they are lent: to one section of code at a time that does
// not wait.
package gz

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/tidemark-ai/tidemark"
)

// writers hold no state that anybody could miss.
var writers = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// Write compresses bytes into a member of their own at the end of a buffer.
func Write(out *bytes.Buffer, raw []byte) error {
	w := writers.Get().(*gzip.Writer)
	defer writers.Put(w)
	w.Reset(out)
	if _, err := w.Write(raw); err != nil {
		return err
	}
	return w.Close()
}

// Zip compresses bytes.
func Zip(raw []byte) ([]byte, error) {
	var out bytes.Buffer
	if err := Write(&out, raw); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	return out.Bytes(), nil
}

// Unzip expands what Zip made, which must come to exactly size bytes: anything else is tidemark.ErrUnavailable. z is the
// caller's, used again from one call to the next.
func Unzip(z *gzip.Reader, data []byte, size int) ([]byte, error) {
	raw := make([]byte, size)
	err := z.Reset(bytes.NewReader(data))
	if err == nil {
		_, err = io.ReadFull(z, raw)
	}
	if err == nil { // the checksum is held against the bytes at the end only
		var more [1]byte
		if n, end := z.Read(more[:]); n != 0 || !errors.Is(end, io.EOF) {
			err = fmt.Errorf("over %d bytes, or another checksum", size)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("expand %d bytes: %w: %w", len(data), err, tidemark.ErrUnavailable)
	}
	return raw, nil
}
