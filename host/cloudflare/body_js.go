package cloudflare

import (
	"context"
	"io"
	"sync"
)

// body reads a stream that JavaScript holds under a number. One goroutine at a time reads it.
type body struct {
	o    *Obj
	ctx  context.Context // of the request that the stream belongs to
	n    int
	rest []byte
	err  error
	once sync.Once
}

// newBody gives the stream of a number; 0 is no stream.
func newBody(ctx context.Context, o *Obj, n int) io.ReadCloser {
	if n == 0 {
		return noBody{}
	}
	return &body{o: o, ctx: ctx, n: n}
}

// Read waits for the next chunk when the last one is used up.
func (b *body) Read(p []byte) (int, error) {
	for len(b.rest) == 0 {
		if b.err != nil {
			return 0, b.err
		}
		if len(p) == 0 {
			return 0, nil
		}
		v, err := b.o.await(b.ctx, "read", b.n)
		switch {
		case err != nil:
			b.err = err
			b.Close()
		case v.IsNull():
			b.err = io.EOF
		default:
			b.rest = fromBytes(v)
		}
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// Close stops the stream; the sender notices.
func (b *body) Close() error {
	b.once.Do(func() { b.o.tell("close", b.n) })
	return nil
}

// noBody is an empty stream.
type noBody struct{}

func (noBody) Read([]byte) (int, error) { return 0, io.EOF }
func (noBody) Close() error             { return nil }
