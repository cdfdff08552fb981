package archive

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/tidemark-ai/tidemark"
)

// Gzip compresses bytes, in one section that does not wait.
func Gzip(raw []byte) ([]byte, error) {
	var out bytes.Buffer
	w := writers.Get().(*gzip.Writer)
	defer writers.Put(w)
	w.Reset(&out)
	if _, err := w.Write(raw); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	return out.Bytes(), nil
}

// Gunzip expands what Gzip made, which must come to exactly size bytes: anything else is ErrUnavailable. z is
// the caller's, used again from one call to the next.
func Gunzip(z *gzip.Reader, data []byte, size int) ([]byte, error) {
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
