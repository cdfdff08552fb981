package tidemarktest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-ai/tidemark"
)

var _ tidemark.Blobs = (*Blobs)(nil)

// Blobs is a [tidemark.Blobs] in memory that can be made to fail.
type Blobs struct {
	// Fail is asked before each call does anything; what it returns is the call's error. op is
	// "put", "get", "delete" or "list", key is the key or the prefix. Set it before the first call.
	Fail func(op, key string) error
	// FailAfter is asked when a put or a delete has been done: an error there is an answer that got
	// lost on its way. Set it before the first call.
	FailAfter func(op, key string) error

	mu      sync.Mutex // guards the following
	objects map[string]memObject
	puts    int
	open    int // bodies
}

type memObject struct {
	tidemark.Object
	content []byte
}

// NewBlobs gives an empty store.
func NewBlobs() *Blobs { return &Blobs{objects: make(map[string]memObject)} }

// Put implements [tidemark.Blobs].
func (b *Blobs) Put(ctx context.Context, key string, r io.Reader, size int64, opt tidemark.PutOptions) (tidemark.Object, error) {
	if err := b.begin(ctx, "put", key); err != nil {
		return tidemark.Object{}, err
	}
	if err := tidemark.CheckMetadata(opt.Metadata); err != nil {
		return tidemark.Object{}, fmt.Errorf("put blob %s: %w", key, err)
	}
	content, err := io.ReadAll(io.LimitReader(r, size+1))
	if err == nil && size >= 0 && int64(len(content)) == size {
		if _, e := io.ReadFull(r, make([]byte, 1)); e != io.EOF {
			err = e // a source may break after its last byte
		}
	}
	if err != nil {
		return tidemark.Object{}, fmt.Errorf("put blob %s: %w", key, err)
	}
	if int64(len(content)) != size {
		return tidemark.Object{}, fmt.Errorf("put blob %s: body has not the %d bytes that were announced: %w", key, size, tidemark.ErrInvalid)
	}
	o, err := b.store(key, content, opt)
	if err == nil && b.FailAfter != nil {
		err = b.FailAfter("put", key)
	}
	if err != nil {
		return tidemark.Object{}, fmt.Errorf("put blob %s: %w", key, err)
	}
	return o, nil
}

// store checks the condition and replaces the object, as one step.
func (b *Blobs) store(key string, content []byte, opt tidemark.PutOptions) (tidemark.Object, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old, exists := b.objects[key]
	if opt.IfAbsent && exists || opt.IfMatch != "" && (!exists || old.ETag != opt.IfMatch) {
		return tidemark.Object{}, tidemark.ErrConflict
	}
	b.puts++
	sum := sha256.Sum256(content)
	o := tidemark.Object{
		Key: key, Size: int64(len(content)), ETag: hex.EncodeToString(sum[:8]) + "-" + strconv.Itoa(b.puts),
		Modified: time.Now(), ContentType: opt.ContentType, Metadata: maps.Clone(opt.Metadata),
	}
	b.objects[key] = memObject{o, content}
	return o, nil
}

// Get implements [tidemark.Blobs].
func (b *Blobs) Get(ctx context.Context, key string) (tidemark.Object, io.ReadCloser, error) {
	if err := b.begin(ctx, "get", key); err != nil {
		return tidemark.Object{}, nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	o, ok := b.objects[key]
	if !ok {
		return tidemark.Object{}, nil, fmt.Errorf("get blob %s: %w", key, tidemark.ErrNotFound)
	}
	o.Metadata = maps.Clone(o.Metadata)
	b.open++
	return o.Object, &memBody{Reader: bytes.NewReader(o.content), close: sync.OnceFunc(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.open--
	})}, nil
}

// memBody is the content of an object until it is closed.
type memBody struct {
	*bytes.Reader
	close func()
}

func (m *memBody) Close() error {
	m.close()
	return nil
}

// Open is how many bodies Get gave that nobody has closed.
func (b *Blobs) Open() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open
}

// Delete implements [tidemark.Blobs].
func (b *Blobs) Delete(ctx context.Context, key string) error {
	if err := b.begin(ctx, "delete", key); err != nil {
		return err
	}
	b.mu.Lock()
	delete(b.objects, key)
	b.mu.Unlock()
	if b.FailAfter != nil {
		if err := b.FailAfter("delete", key); err != nil {
			return fmt.Errorf("delete blob %s: %w", key, err)
		}
	}
	return nil
}

// List implements [tidemark.Blobs]; its cursor is the last key of the page. Metadata is absent, so
// that nobody comes to rely on it.
func (b *Blobs) List(ctx context.Context, prefix, cursor string, limit int) ([]tidemark.Object, string, error) {
	if err := ctx.Err(); err != nil {
		return nil, "", fmt.Errorf("list blobs %s: %w", prefix, context.Cause(ctx))
	}
	if b.Fail != nil {
		if err := b.Fail("list", prefix); err != nil {
			return nil, "", fmt.Errorf("list blobs %s: %w", prefix, err)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var page []tidemark.Object
	for _, key := range slices.Sorted(maps.Keys(b.objects)) {
		if !strings.HasPrefix(key, prefix) || key <= cursor {
			continue
		}
		if len(page) == limit {
			return page, page[limit-1].Key, nil
		}
		o := b.objects[key].Object
		o.Metadata = nil
		page = append(page, o)
	}
	return page, "", nil
}

// Keys gives the keys of all objects in order.
func (b *Blobs) Keys() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.objects))
}

// begin is what every call on a key checks first.
func (b *Blobs) begin(ctx context.Context, op, key string) error {
	err := tidemark.CheckKey(key)
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err == nil && b.Fail != nil {
		err = b.Fail(op, key)
	}
	if err != nil {
		return fmt.Errorf("%s blob %s: %w", op, key, err)
	}
	return nil
}
