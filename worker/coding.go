package worker

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/tidemark-ai/tidemark"
)

// codings are those of request bodies that are taken (https://www.rfc-editor.org/rfc/rfc9110#name-content-codings).
// build/body.mjs has the same, and testdata/proxies.json holds both to the same rows.
var codings = map[string]func(io.Reader) (io.Reader, error){
	"gzip":    func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
	"x-gzip":  func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
	"deflate": func(r io.Reader) (io.Reader, error) { return zlib.NewReader(r) },
}

// errCoded is a body in a coding that is not taken, or in another one than it says.
var errCoded = errors.New("the body cannot be unpacked")

// packed is the body of a request that came compressed. It reads as what is in it.
type packed struct {
	body io.ReadCloser // as it comes
	size int64         // of it, below 0 if it is not known
	came bytes.Buffer  // what was read of it
	most int64         // bytes of it that are held

	open  func(io.Reader) (io.Reader, error)
	plain io.Reader
	err   error // what reading ended with
}

// unpack has the body of the request read without its coding.
func (c *request) unpack() error {
	coding := strings.ToLower(strings.Join(c.r.Header.Values("Content-Encoding"), ", "))
	if coding == "" || coding == "identity" || c.packed != nil {
		return nil
	}
	open := codings[coding]
	if open == nil {
		return fmt.Errorf("%w: content-encoding %q: send it plain, or in gzip or deflate: %w", errCoded, clip(coding, 40), tidemark.ErrInvalid)
	}
	c.packed = &packed{body: c.r.Body, size: c.r.ContentLength, most: c.MaxBody, open: open}
	c.r = c.r.WithContext(c.r.Context()) // others have the request, too
	c.r.Body, c.r.ContentLength = c.packed, -1
	return nil
}

// Read implements io.Reader.
func (p *packed) Read(b []byte) (n int, err error) {
	if p.err != nil {
		return 0, p.err
	}
	if p.plain == nil {
		p.plain, err = p.open(arriving{p})
	}
	if err == nil {
		n, err = p.plain.Read(b)
	}
	if errors.Is(err, io.EOF) { // what stands behind the end came, too
		if _, more := io.Copy(io.Discard, arriving{p}); more != nil {
			err = more
		}
	}
	switch {
	case p.err != nil: // it could not be read
	case err != nil && !errors.Is(err, io.EOF):
		p.err = fmt.Errorf("%w: %w: %w", errCoded, err, tidemark.ErrInvalid)
	default:
		p.err = err
	}
	return n, p.err
}

// Close implements io.Closer.
func (p *packed) Close() error { return p.body.Close() }

// all is the whole body as it came, with what was not read yet.
func (p *packed) all() io.Reader { return io.MultiReader(bytes.NewReader(p.came.Bytes()), p.body) }

// arriving reads a body as it comes, and holds it.
type arriving struct{ *packed }

// Read implements io.Reader.
func (a arriving) Read(b []byte) (int, error) {
	if int64(a.came.Len()) > a.most {
		a.err = fmt.Errorf("body of over %d bytes: %w", a.most, tidemark.ErrTooLarge)
		return 0, a.err
	}
	n, err := a.body.Read(b)
	a.came.Write(b[:n])
	if err != nil && !errors.Is(err, io.EOF) {
		a.err = err
	}
	return n, err
}

// wire gives the bytes of a request as they are sent, and the headers that they go with. What is not changed is sent as it
// came, with its coding.
func (p *passage) wire(raw []byte) ([]byte, http.Header) {
	if p.packed == nil {
		return raw, p.header
	}
	if bytes.Equal(raw, p.plain) {
		return p.packed.came.Bytes(), p.header
	}
	h := p.header.Clone()
	h.Del("Content-Encoding")
	return raw, h
}
