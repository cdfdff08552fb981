package cloudflare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"syscall/js"
	"time"

	"github.com/syumai/workers/cloudflare"
	"github.com/tidemark-ai/tidemark"
)

// Blobs is an R2 bucket, by its binding.
type Blobs struct {
	o      *Obj
	name   string // of the binding
	bucket js.Value
}

var _ tidemark.Blobs = (*Blobs)(nil)

// Blobs is the bucket that the Worker's configuration binds under a name.
func (o *Obj) Blobs(binding string) *Blobs {
	return &Blobs{o, binding, cloudflare.GetBinding(binding)}
}

func (b *Blobs) bound() error {
	if b.bucket.IsUndefined() {
		return fmt.Errorf("no bucket is bound as %s", b.name)
	}
	return nil
}

const (
	// wholePut is the size up to which an object crosses in one piece.
	wholePut = 1 << 20
	// putChunk is the size of the pieces of a larger one.
	putChunk = 256 << 10
	// maxList is the longest page of R2 (https://developers.cloudflare.com/r2/api/workers/workers-api-reference/).
	maxList = 1000
)

// Put stores size bytes of r. The length is known to R2 from the start.
func (b *Blobs) Put(ctx context.Context, key string, r io.Reader, size int64, opt tidemark.PutOptions) (tidemark.Object, error) {
	obj, err := b.put(ctx, key, r, size, opt)
	if err != nil {
		return tidemark.Object{}, fmt.Errorf("put blob %s: %w", key, bucketError(err))
	}
	return obj, nil
}

func (b *Blobs) put(ctx context.Context, key string, r io.Reader, size int64, opt tidemark.PutOptions) (tidemark.Object, error) {
	if err := cmp.Or(b.bound(), tidemark.CheckKey(key), tidemark.CheckMetadata(opt.Metadata)); err != nil {
		return tidemark.Object{}, err
	}
	if size < 0 {
		return tidemark.Object{}, fmt.Errorf("size %d: %w", size, tidemark.ErrInvalid)
	}
	row := []any{key, opt.IfAbsent, opt.IfMatch, opt.ContentType}
	for k, v := range opt.Metadata {
		row = append(row, k, v)
	}
	head := toBytes(packRows(row))
	var v js.Value
	var err error
	if size <= wholePut {
		v, err = b.putWhole(ctx, head, r, size)
	} else {
		v, err = b.putStream(ctx, head, r, size)
	}
	if err != nil {
		return tidemark.Object{}, err
	}
	if v.IsNull() {
		return tidemark.Object{}, fmt.Errorf("condition on the stored object: %w", tidemark.ErrConflict)
	}
	obj, _, err := oneObject(v)
	return obj, err
}

func (b *Blobs) putWhole(ctx context.Context, head js.Value, r io.Reader, size int64) (js.Value, error) {
	p := make([]byte, size)
	if err := readExactly(r, p, true); err != nil {
		return js.Undefined(), err
	}
	return b.o.await(ctx, "put", b.bucket, head, toBytes(p))
}

func (b *Blobs) putStream(ctx context.Context, head js.Value, r io.Reader, size int64) (js.Value, error) {
	if err := b.o.alive(ctx); err != nil {
		return js.Undefined(), err
	}
	v, err := b.o.host("putStart", b.bucket, head, float64(size))
	if err != nil {
		return js.Undefined(), err
	}
	n := v.Int()
	p := make([]byte, putChunk)
	for left := size; left > 0; left -= int64(len(p)) {
		p = p[:min(left, putChunk)]
		if err = readExactly(r, p, left == int64(len(p))); err != nil {
			break
		}
		v, err = b.o.await(ctx, "putWrite", n, toBytes(p))
		if err != nil || v.Int() == 0 { // refused: the answer of the put says why
			break
		}
	}
	if err != nil {
		b.o.tell("putAbort", n)
		return js.Undefined(), err
	}
	return b.o.await(ctx, "putEnd", n)
}

// readExactly fills p; at the last piece the source must end, too.
func readExactly(r io.Reader, p []byte, last bool) error {
	if n, err := io.ReadFull(r, p); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("source ended %d bytes early: %w", len(p)-n, tidemark.ErrInvalid)
		}
		return err
	}
	if !last {
		return nil
	}
	n, err := io.CopyN(io.Discard, r, 1)
	switch {
	case n != 0:
		return fmt.Errorf("source is longer than its size: %w", tidemark.ErrInvalid)
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

// Get opens an object.
func (b *Blobs) Get(ctx context.Context, key string) (tidemark.Object, io.ReadCloser, error) {
	if err := cmp.Or(b.bound(), tidemark.CheckKey(key)); err != nil {
		return tidemark.Object{}, nil, fmt.Errorf("get blob: %w", err)
	}
	v, err := b.o.await(ctx, "get", b.bucket, key)
	if err != nil {
		return tidemark.Object{}, nil, fmt.Errorf("get blob %s: %w", key, bucketError(err))
	}
	if v.IsNull() {
		return tidemark.Object{}, nil, fmt.Errorf("get blob %s: %w", key, tidemark.ErrNotFound)
	}
	obj, n, err := oneObject(v)
	if err != nil {
		return tidemark.Object{}, nil, fmt.Errorf("get blob %s: %w", key, err)
	}
	return obj, newBody(ctx, b.o, n), nil
}

// Delete removes an object.
func (b *Blobs) Delete(ctx context.Context, key string) error {
	err := cmp.Or(b.bound(), tidemark.CheckKey(key))
	if err == nil {
		_, err = b.o.await(ctx, "delete", b.bucket, key)
	}
	if err != nil {
		return fmt.Errorf("delete blob %s: %w", key, bucketError(err))
	}
	return nil
}

// List gives one page, of at most 1,000 objects whatever the limit, with metadata.
func (b *Blobs) List(ctx context.Context, prefix, cursor string, limit int) ([]tidemark.Object, string, error) {
	if limit <= 0 {
		return nil, "", fmt.Errorf("list blobs: limit %d, want at least 1: %w", limit, tidemark.ErrInvalid)
	}
	if err := b.bound(); err != nil {
		return nil, "", fmt.Errorf("list blobs: %w", err)
	}
	v, err := b.o.await(ctx, "list", b.bucket, prefix, cursor, min(limit, maxList))
	if err != nil {
		return nil, "", fmt.Errorf("list blobs %s: %w", prefix, bucketError(err))
	}
	rows, err := unpackRows(fromBytes(v))
	if err != nil || len(rows) == 0 {
		return nil, "", fmt.Errorf("list blobs %s: %w", prefix, errWire)
	}
	page := make([]tidemark.Object, len(rows)-1)
	for i, r := range rows[1:] {
		page[i] = objectOf(r)
	}
	return page, rows[0].Text(0), nil
}

// oneObject reads an object and the number of its body.
func oneObject(v js.Value) (tidemark.Object, int, error) {
	rows, err := unpackRows(fromBytes(v))
	if err != nil || len(rows) != 1 {
		return tidemark.Object{}, 0, errWire
	}
	return objectOf(rows[0]), int(rows[0].Int(0)), nil
}

// objectOf reads body, key, size, etag, modified, content type and metadata pairs.
func objectOf(r tidemark.Row) tidemark.Object {
	obj := tidemark.Object{
		Key: r.Text(1), Size: r.Int(2), ETag: r.Text(3),
		Modified: time.UnixMilli(r.Int(4)).UTC(), ContentType: r.Text(5),
	}
	for i := 6; i+1 < len(r); i += 2 {
		if obj.Metadata == nil {
			obj.Metadata = make(map[string]string, (len(r)-6)/2)
		}
		obj.Metadata[r.Text(i)] = r.Text(i + 1)
	}
	return obj
}
