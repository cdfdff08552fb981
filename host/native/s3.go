//go:build !js

package native

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/tidemark-ai/tidemark"
)

var _ tidemark.Blobs = (*S3)(nil)

const (
	maxBuffer  = 4 << 20 // bytes of a body kept in memory, signed, and sent again after an error
	maxObject  = 5 << 30 // bytes that one put may carry, https://docs.aws.amazon.com/AmazonS3/latest/userguide/upload-objects.html
	s3Attempts = 3
	s3Backoff  = 2 * time.Second
)

// The values of [S3Config.Conditional].
const (
	ConditionalNative = "native"
	ConditionalNone   = "none"
)

// S3Config names a bucket of S3, R2, MinIO or anything that speaks their language.
type S3Config struct {
	Endpoint  string // base URL, for R2 https://{account}.r2.cloudflarestorage.com; empty: AWS itself
	Region    string // empty: AWS_REGION, else "auto", which is what R2 and MinIO take
	Bucket    string // required, and it must exist
	Prefix    string // put before every key as it is; end it with a slash to get a folder
	PathStyle bool   // bucket in the path instead of the host name; MinIO wants it

	// AccessKey and SecretKey are static credentials. When both are empty, the usual chain is
	// asked: AWS_ACCESS_KEY_ID and its kin, ~/.aws, the role of the machine.
	AccessKey, SecretKey, SessionToken string

	// Conditional says who holds the conditions of a put. "native" (the default): the store, with
	// If-None-Match and If-Match. "none" is for a store that ignores these headers: the condition
	// is looked up before the put. That holds between the goroutines of one process; two processes
	// on one bucket can both find a key absent and both write it, and the later one wins, which
	// loses an append to a memory file. Run one process then.
	Conditional string

	Transport http.RoundTripper // nil: [Transport]

	backoff time.Duration // longest pause between two attempts; tests shorten it
}

// S3 is a bucket behind the S3 API.
//
// A body up to 4 MiB is held in memory, signed and sent again when the network fails; a longer one
// is streamed once. A conditional put is sent once too: after an answer that got lost, a second one
// would find its own object and report a conflict. Metadata keys travel as session-key, because
// header names do not keep their case.
type S3 struct {
	client *s3.Client
	bucket string
	prefix string
	native bool
	mu     [stripes]sync.Mutex // each guards the conditions of the keys of its stripe when not native
}

// NewS3 checks cfg and prepares the client; it does not call the store. See [S3.Check].
func NewS3(cfg S3Config) (*S3, error) {
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("open bucket: %w", err)
	}
	load := []func(*config.LoadOptions) error{config.WithDefaultRegion(cmp.Or(cfg.Region, "auto"))}
	if cfg.Region != "" {
		load = append(load, config.WithRegion(cfg.Region))
	}
	if cfg.AccessKey != "" {
		load = append(load, config.WithCredentialsProvider(
			credentials.NewStaticCredentialsProvider(cfg.AccessKey, cfg.SecretKey, cfg.SessionToken)))
	}
	base, err := config.LoadDefaultConfig(context.Background(), load...) // reads the environment and files
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: AWS settings: %w: %w", cfg.Bucket, err, tidemark.ErrInvalid)
	}
	client := s3.NewFromConfig(base, func(o *s3.Options) {
		o.UsePathStyle = cfg.PathStyle
		if cfg.Endpoint != "" {
			o.BaseEndpoint = aws.String(cfg.Endpoint)
		}
		o.HTTPClient = doer{cfg.transport()}
		o.Retryer = retry.NewStandard(func(r *retry.StandardOptions) {
			r.MaxAttempts, r.MaxBackoff = s3Attempts, cmp.Or(cfg.backoff, s3Backoff)
		})
		// Checksums of S3's newer kinds are unknown to many stores; the signature covers the body.
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	})
	return &S3{client: client, bucket: cfg.Bucket, prefix: cfg.Prefix, native: cfg.Conditional != ConditionalNone}, nil
}

func (c S3Config) check() error {
	if c.Bucket == "" || strings.ContainsAny(c.Bucket, "/ ") {
		return fmt.Errorf("bucket %q, want the name of a bucket that exists: %w", c.Bucket, tidemark.ErrInvalid)
	}
	if c.Endpoint != "" {
		if u, err := url.Parse(c.Endpoint); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return fmt.Errorf("endpoint %q, want a URL such as https://{account}.r2.cloudflarestorage.com: %w", c.Endpoint, tidemark.ErrInvalid)
		}
	}
	if (c.AccessKey == "") != (c.SecretKey == "") {
		return fmt.Errorf("access key and secret key go together, one is empty: %w", tidemark.ErrInvalid)
	}
	if c.Prefix != "" {
		if err := tidemark.CheckKey(strings.TrimSuffix(c.Prefix, "/")); err != nil {
			return fmt.Errorf("prefix: %w", err)
		}
	}
	switch c.Conditional {
	case "", ConditionalNative, ConditionalNone:
		return nil
	}
	return fmt.Errorf("conditional %q, want %q or %q: %w", c.Conditional, ConditionalNative, ConditionalNone, tidemark.ErrInvalid)
}

func (c S3Config) transport() http.RoundTripper {
	if c.Transport != nil {
		return c.Transport
	}
	return Transport()
}

// doer lets the client use a bare transport: no redirects, no cookies.
type doer struct{ rt http.RoundTripper }

// Do implements [s3.HTTPClient].
func (d doer) Do(r *http.Request) (*http.Response, error) { return d.rt.RoundTrip(r) }

// Check asks the store whether the bucket is there and may be read.
func (s *S3) Check(ctx context.Context) error {
	_, err := s.client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &s.bucket})
	if err != nil {
		return s.fail(ctx, "check", "", err)
	}
	return nil
}

// checkKey counts the prefix in.
func (s *S3) checkKey(key string) error {
	if err := tidemark.CheckKey(key); err != nil {
		return err
	}
	if len(s.prefix)+len(key) > tidemark.MaxKey {
		return fmt.Errorf("blob key of %d bytes behind a prefix of %d, at most %d: %w", len(key), len(s.prefix), tidemark.MaxKey, tidemark.ErrInvalid)
	}
	return nil
}

// Put implements [tidemark.Blobs].
func (s *S3) Put(ctx context.Context, key string, r io.Reader, size int64, opt tidemark.PutOptions) (tidemark.Object, error) {
	if err := cmp.Or(s.checkKey(key), tidemark.CheckMetadata(opt.Metadata), context.Cause(ctx)); err != nil {
		return tidemark.Object{}, fmt.Errorf("put blob %s: %w", key, err)
	}
	body, err := s.body(r, size)
	if err != nil {
		return tidemark.Object{}, fmt.Errorf("put blob %s: %w", key, err)
	}
	in := &s3.PutObjectInput{Bucket: &s.bucket, Key: aws.String(s.prefix + key), Body: body, ContentLength: &size, Metadata: toHeaders(opt.Metadata)}
	if opt.ContentType != "" {
		in.ContentType = &opt.ContentType
	}
	var with []func(*s3.Options)
	if _, seeks := body.(io.Seeker); !seeks {
		with = append(with, once, s3.WithAPIOptions(v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware))
	}
	if opt.IfAbsent || opt.IfMatch != "" {
		with = append(with, once)
		unlock, err := s.condition(ctx, in, opt)
		if err != nil {
			return tidemark.Object{}, s.fail(ctx, "put", key, err)
		}
		defer unlock()
	}
	out, err := s.client.PutObject(ctx, in, with...)
	if err != nil {
		return tidemark.Object{}, s.failPut(ctx, key, opt, err)
	}
	return tidemark.Object{
		Key: key, Size: size, ETag: trimETag(out.ETag), Modified: time.Now(),
		ContentType: opt.ContentType, Metadata: opt.Metadata,
	}, nil
}

// once sends a request a single time.
func once(o *s3.Options) { o.Retryer = aws.NopRetryer{} }

// body gives a reader of exactly size bytes, one that can seek when it is short.
func (s *S3) body(r io.Reader, size int64) (io.Reader, error) {
	if size > maxObject {
		return nil, fmt.Errorf("%d bytes, at most %d: %w", size, int64(maxObject), tidemark.ErrTooLarge)
	}
	exact, err := newExactReader(r, size)
	if err != nil {
		return nil, err
	}
	if size > maxBuffer {
		return exact, nil
	}
	b := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
	if _, err := b.ReadFrom(exact); err != nil {
		return nil, err
	}
	return bytes.NewReader(b.Bytes()), nil
}

// condition puts the condition into the request, or looks it up and keeps others of this process
// from writing the key until unlock.
func (s *S3) condition(ctx context.Context, in *s3.PutObjectInput, opt tidemark.PutOptions) (unlock func(), err error) {
	if s.native {
		if opt.IfAbsent {
			in.IfNoneMatch = aws.String("*")
		}
		if opt.IfMatch != "" {
			in.IfMatch = aws.String(`"` + opt.IfMatch + `"`)
		}
		return func() {}, nil
	}
	h := fnv.New32a()
	h.Write([]byte(*in.Key))
	mu := &s.mu[h.Sum32()%stripes]
	mu.Lock()
	head, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: in.Bucket, Key: in.Key})
	kind := classify(err)
	switch {
	case errors.Is(kind, tidemark.ErrNotFound) && opt.IfMatch == "":
		return mu.Unlock, nil
	case errors.Is(kind, tidemark.ErrNotFound):
		err = fmt.Errorf("there is no such key: %w", tidemark.ErrConflict)
	case err != nil:
	case opt.IfAbsent:
		err = fmt.Errorf("the key exists: %w", tidemark.ErrConflict)
	case trimETag(head.ETag) != opt.IfMatch:
		err = fmt.Errorf("ETag is %s, expected %s: %w", trimETag(head.ETag), opt.IfMatch, tidemark.ErrConflict)
	default:
		return mu.Unlock, nil
	}
	mu.Unlock()
	return nil, err
}

// Get implements [tidemark.Blobs].
func (s *S3) Get(ctx context.Context, key string) (tidemark.Object, io.ReadCloser, error) {
	if err := cmp.Or(s.checkKey(key), context.Cause(ctx)); err != nil {
		return tidemark.Object{}, nil, fmt.Errorf("get blob %s: %w", key, err)
	}
	out, err := s.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &s.bucket, Key: aws.String(s.prefix + key)})
	if err != nil {
		return tidemark.Object{}, nil, s.fail(ctx, "get", key, err)
	}
	o := tidemark.Object{
		Key: key, Size: aws.ToInt64(out.ContentLength), ETag: trimETag(out.ETag), Modified: aws.ToTime(out.LastModified),
		ContentType: aws.ToString(out.ContentType), Metadata: fromHeaders(out.Metadata),
	}
	return o, &s3Body{s: s, ctx: ctx, key: key, ReadCloser: out.Body}, nil
}

// s3Body gives errors of the network their kind.
type s3Body struct {
	io.ReadCloser
	s   *S3
	ctx context.Context
	key string
}

// Read implements [io.Reader].
func (b *s3Body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == nil || err == io.EOF {
		return n, err
	}
	return n, b.s.fail(b.ctx, "read", b.key, err)
}

// Delete implements [tidemark.Blobs].
func (s *S3) Delete(ctx context.Context, key string) error {
	if err := cmp.Or(s.checkKey(key), context.Cause(ctx)); err != nil {
		return fmt.Errorf("delete blob %s: %w", key, err)
	}
	_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: aws.String(s.prefix + key)})
	if err != nil && !errors.Is(classify(err), tidemark.ErrNotFound) {
		return s.fail(ctx, "delete", key, err)
	}
	return nil
}

// List implements [tidemark.Blobs]; the cursor is the last key of the page before. Keys that no
// store of ours could hold, such as the markers that consoles make for folders, are left out.
func (s *S3) List(ctx context.Context, prefix, cursor string, limit int) ([]tidemark.Object, string, error) {
	if ctx.Err() != nil {
		return nil, "", fmt.Errorf("list blobs %s: %w", prefix, context.Cause(ctx))
	}
	in := &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: aws.String(s.prefix + prefix), MaxKeys: aws.Int32(int32(pageLimit(limit)))}
	for {
		if cursor != "" {
			in.StartAfter = aws.String(s.prefix + cursor)
		}
		out, err := s.client.ListObjectsV2(ctx, in)
		if err != nil {
			return nil, "", s.fail(ctx, "list", prefix, err)
		}
		var page []tidemark.Object
		for _, o := range out.Contents {
			cursor = strings.TrimPrefix(aws.ToString(o.Key), s.prefix)
			if tidemark.CheckKey(cursor) == nil {
				page = append(page, tidemark.Object{Key: cursor, Size: aws.ToInt64(o.Size), ETag: trimETag(o.ETag), Modified: aws.ToTime(o.LastModified)})
			}
		}
		if !aws.ToBool(out.IsTruncated) || len(out.Contents) == 0 {
			return page, "", nil
		}
		if len(page) > 0 {
			return page, cursor, nil
		}
	}
}

func trimETag(e *string) string { return strings.Trim(aws.ToString(e), `"`) }
