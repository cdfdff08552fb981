package tidemark

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// Blobs holds immutable or conditionally written objects by key: R2, an S3 bucket or a folder.
// Keys are slash-separated, see [CheckKey]. All methods may be called at once.
type Blobs interface {
	// Put stores size bytes of r under key. A condition that does not hold is ErrConflict and
	// changes nothing. After Put returned nil the object survives a crash of the host.
	Put(ctx context.Context, key string, r io.Reader, size int64, opt PutOptions) (Object, error)
	// Get opens an object; the caller closes the body. A missing object is ErrNotFound.
	Get(ctx context.Context, key string) (Object, io.ReadCloser, error)
	// Delete removes an object; a missing one is no error.
	Delete(ctx context.Context, key string) error
	// List returns up to limit objects whose key begins with prefix, in byte order, after the
	// cursor of an earlier page (empty for the first). next is empty on the last page. Metadata
	// may be absent from a listing; Get has it.
	List(ctx context.Context, prefix, cursor string, limit int) (page []Object, next string, err error)
}

// Object describes a stored blob.
type Object struct {
	Key         string
	Size        int64  // bytes
	ETag        string // opaque, changes with the content; without quotes
	Modified    time.Time
	ContentType string
	Metadata    map[string]string // keys in lower camel case, values printable ASCII
}

// PutOptions says what an object is and under which condition it may be written. The zero value
// writes unconditionally.
type PutOptions struct {
	IfAbsent    bool   // only when there is no such key (If-None-Match: *)
	IfMatch     string // only when the object has this ETag
	ContentType string
	Metadata    map[string]string
}

// MaxKey is the longest key in bytes (R2 and S3 allow 1,024).
const MaxKey = 1024

// CheckKey reports a key that some store could not hold or that would leave its folder.
func CheckKey(key string) error {
	if key == "" || len(key) > MaxKey {
		return fmt.Errorf("blob key of %d bytes, want 1 to %d: %w", len(key), MaxKey, ErrInvalid)
	}
	for _, part := range strings.Split(key, "/") {
		if part == "" || part == "." || part == ".." {
			return fmt.Errorf("blob key %q has an empty or dotted part: %w", key, ErrInvalid)
		}
	}
	if i := strings.IndexFunc(key, func(r rune) bool { return r < 0x20 || r == 0x7f || r == '\\' || r == 0xfffd }); i >= 0 {
		return fmt.Errorf("blob key %q has a forbidden character at byte %d: %w", key, i, ErrInvalid)
	}
	return nil
}

// MaxMetadata bounds the keys and values of an object's metadata together, in bytes (S3 allows
// 2 KB, https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingMetadata.html).
const MaxMetadata = 2048

// CheckMetadata reports metadata that some store could not give back as it was: every adapter
// calls it in Put. An empty value is the same as none.
func CheckMetadata(m map[string]string) error {
	size := 0
	for k, v := range m {
		size += 2*len(k) + len(v) // a store may spell sessionKey as session-key
		odd := func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') }
		if k == "" || k[0] < 'a' || k[0] > 'z' || strings.ContainsFunc(k, odd) {
			return fmt.Errorf("blob metadata key %q, want lower camel case such as sessionKey: %w", k, ErrInvalid)
		}
		if strings.ContainsFunc(v, func(r rune) bool { return r < 0x20 || r > 0x7e }) || strings.Trim(v, " ") != v {
			return fmt.Errorf("blob metadata %s is %q, want printable ASCII without outer spaces: %w", k, v, ErrInvalid)
		}
	}
	if size > MaxMetadata {
		return fmt.Errorf("blob metadata of %d bytes, at most %d: %w", size, MaxMetadata, ErrTooLarge)
	}
	return nil
}
