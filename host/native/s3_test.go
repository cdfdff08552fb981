//go:build !js

package native

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

const testBucket = "tidemark"

// fakeS3 serves an empty bucket over HTTP; front may answer first.
func fakeS3(t testing.TB, front func(w http.ResponseWriter, r *http.Request) (answered bool)) S3Config {
	t.Helper()
	backend := &replacing{Backend: s3mem.New()}
	if err := backend.CreateBucket(testBucket); err != nil {
		t.Fatal(err)
	}
	store := gofakes3.New(backend, gofakes3.WithTimeSkewLimit(0)).Server()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if front == nil || !front(w, r) {
			store.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	return S3Config{Endpoint: srv.URL, Bucket: testBucket, PathStyle: true, AccessKey: "test", SecretKey: "secret", backoff: time.Millisecond}
}

// replacing mends what the fake store does unlike S3: it merges the metadata of an object into that
// of the one which takes its place. The store keeps the map that it is given.
type replacing struct {
	gofakes3.Backend
	mu sync.RWMutex // a put and its mending are one step
}

func (b *replacing) PutObject(bucket, key string, meta map[string]string, r io.Reader, size int64, cond *gofakes3.PutConditions) (gofakes3.PutObjectResult, error) {
	content, err := gofakes3.ReadAll(r, size)
	if err != nil {
		return gofakes3.PutObjectResult{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	sent := maps.Clone(meta)
	res, err := b.Backend.PutObject(bucket, key, meta, bytes.NewReader(content), size, cond)
	maps.DeleteFunc(meta, func(k, _ string) bool { _, ok := sent[k]; return !ok })
	return res, err
}

func (b *replacing) GetObject(bucket, key string, rng *gofakes3.ObjectRangeRequest) (*gofakes3.Object, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.Backend.GetObject(bucket, key, rng)
}

func openTestS3(t testing.TB, cfg S3Config) *S3 {
	t.Helper()
	s, err := NewS3(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestS3(t *testing.T) {
	for name, change := range map[string]func(*S3Config){
		"native conditions": func(*S3Config) {},
		"no conditions":     func(c *S3Config) { c.Conditional = ConditionalNone },
	} {
		t.Run(name, func(t *testing.T) {
			tidemarktest.TestBlobs(t, func(t *testing.T) tidemark.Blobs {
				cfg := fakeS3(t, nil)
				change(&cfg)
				return openTestS3(t, cfg)
			})
		})
	}
}

// TestS3Prefix: two stores in one bucket do not see each other.
func TestS3Prefix(t *testing.T) {
	cfg := fakeS3(t, nil)
	other := openTestS3(t, cfg)
	if _, err := other.Put(t.Context(), "tide/zz", strings.NewReader("x"), 1, tidemark.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	n := 0
	open := func(t *testing.T) tidemark.Blobs {
		n++
		cfg.Prefix = fmt.Sprintf("tide/mark %d/", n)
		return openTestS3(t, cfg)
	}
	tidemarktest.TestBlobs(t, open)
	if _, err := open(t).Put(t.Context(), "a/b", strings.NewReader("y"), 1, tidemark.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	page, _, err := other.List(t.Context(), cfg.Prefix, "", 10)
	if err != nil || len(page) != 1 || page[0].Key != cfg.Prefix+"a/b" {
		t.Errorf("the keys below %s are %v, %v", cfg.Prefix, page, err)
	}
}

// TestS3External runs the contract on the server that TIDEMARK_TEST_S3 names, in the form
// http://ACCESSKEY:SECRET@HOST:PORT/BUCKET?region=R&conditional=native; test/s3.sh starts one. Each
// test writes below a prefix of its own and leaves its objects there.
func TestS3External(t *testing.T) {
	env := os.Getenv("TIDEMARK_TEST_S3")
	if env == "" {
		t.Skip("TIDEMARK_TEST_S3 is not set; test/s3.sh sets it")
	}
	u, err := url.Parse(env)
	if err != nil || u.User == nil {
		t.Fatalf("TIDEMARK_TEST_S3: %v, want http://ACCESSKEY:SECRET@HOST:PORT/BUCKET", err)
	}
	secret, _ := u.User.Password()
	cfg := S3Config{
		Endpoint: u.Scheme + "://" + u.Host, Bucket: strings.Trim(u.Path, "/"), PathStyle: true,
		AccessKey: u.User.Username(), SecretKey: secret,
		Region: u.Query().Get("region"), Conditional: u.Query().Get("conditional"),
	}
	n := 0
	tidemarktest.TestBlobs(t, func(t *testing.T) tidemark.Blobs {
		n++
		cfg.Prefix = fmt.Sprintf("test-%d/%d/", time.Now().UnixNano(), n)
		s := openTestS3(t, cfg)
		if err := s.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		return s
	})
	t.Run("wrong secret", func(t *testing.T) {
		cfg.SecretKey = "wrong"
		_, err := openTestS3(t, cfg).Put(t.Context(), "k", strings.NewReader("x"), 1, tidemark.PutOptions{})
		wantError(t, err, tidemark.ErrForbidden, "secret key", cfg.Bucket)
	})
}

// TestS3Errors: the kind and the words for what a store, or the network, answers.
func TestS3Errors(t *testing.T) {
	const body = `<?xml version="1.0"?><Error><Code>%s</Code><Message>no</Message></Error>`
	for _, tc := range []struct {
		name   string
		status int
		code   string
		want   error
		words  string
	}{
		{"not found", 404, "NoSuchKey", tidemark.ErrNotFound, ""},
		{"no bucket", 404, "NoSuchBucket", tidemark.ErrUnavailable, "create the bucket " + testBucket},
		{"wrong key", 403, "InvalidAccessKeyId", tidemark.ErrForbidden, "access key"},
		{"wrong secret", 403, "SignatureDoesNotMatch", tidemark.ErrForbidden, "secret key"},
		{"not allowed", 403, "AccessDenied", tidemark.ErrForbidden, "may do"},
		{"clock", 403, "RequestTimeTooSkewed", tidemark.ErrForbidden, "clock"},
		{"precondition", 412, "PreconditionFailed", tidemark.ErrConflict, ""},
		{"two at once", 409, "ConditionalRequestConflict", tidemark.ErrConflict, ""},
		{"bad request", 400, "InvalidArgument", tidemark.ErrInvalid, ""},
		{"too large", 413, "EntityTooLarge", tidemark.ErrTooLarge, ""},
		{"slow down", 503, "SlowDown", tidemark.ErrUnavailable, ""},
		{"broken", 500, "InternalError", tidemark.ErrUnavailable, ""},
		{"no conditions", 501, "NotImplemented", tidemark.ErrUnavailable, "conditional"},
		{"redirect", 301, "PermanentRedirect", tidemark.ErrUnavailable, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := openTestS3(t, fakeS3(t, func(w http.ResponseWriter, _ *http.Request) bool {
				w.WriteHeader(tc.status)
				fmt.Fprintf(w, body, tc.code)
				return true
			}))
			_, _, err := s.Get(t.Context(), "a/b")
			wantError(t, err, tc.want, "get blob a/b", testBucket, tc.words)
			_, err = s.Put(t.Context(), "a/b", strings.NewReader("x"), 1, tidemark.PutOptions{})
			wantError(t, err, tc.want, "put blob a/b", testBucket, tc.words)
			_, _, err = s.List(t.Context(), "a", "", 10)
			wantError(t, err, tc.want, "list blob a", testBucket, tc.words)
		})
	}
}

// TestS3IfMatchOfMissingKey: AWS answers 404 where the others answer 412.
func TestS3IfMatchOfMissingKey(t *testing.T) {
	s := openTestS3(t, fakeS3(t, func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `<Error><Code>NoSuchKey</Code></Error>`)
		return true
	}))
	_, err := s.Put(t.Context(), "k", strings.NewReader("x"), 1, tidemark.PutOptions{IfMatch: "e"})
	wantError(t, err, tidemark.ErrConflict, "k")
}

// TestS3Retries: a failing store is asked three times, but a conditional put once, and so is a body
// that was streamed, since it cannot be read again.
func TestS3Retries(t *testing.T) {
	for _, tc := range []struct {
		name  string
		call  func(context.Context, *S3) error
		fails int // first answers that are 500
		calls int64
		want  error
	}{
		{"get recovers", func(ctx context.Context, s *S3) error { _, _, err := s.List(ctx, "", "", 1); return err }, 2, 3, nil},
		{"get gives up", func(ctx context.Context, s *S3) error { _, _, err := s.Get(ctx, "k"); return err }, 9, 3, tidemark.ErrUnavailable},
		{"put recovers", putOf(10, tidemark.PutOptions{}), 2, 3, nil},
		{"conditional put", putOf(10, tidemark.PutOptions{IfAbsent: true}), 1, 1, tidemark.ErrUnavailable},
		{"streamed put", putOf(maxBuffer+1, tidemark.PutOptions{}), 1, 1, tidemark.ErrUnavailable},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var calls atomic.Int64
			s := openTestS3(t, fakeS3(t, func(w http.ResponseWriter, _ *http.Request) bool {
				if calls.Add(1) > int64(tc.fails) {
					return false
				}
				w.WriteHeader(http.StatusInternalServerError)
				return true
			}))
			if err := tc.call(t.Context(), s); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			if calls.Load() != tc.calls {
				t.Errorf("%d calls, want %d", calls.Load(), tc.calls)
			}
		})
	}
}

func putOf(size int64, opt tidemark.PutOptions) func(context.Context, *S3) error {
	return func(ctx context.Context, s *S3) error {
		_, err := s.Put(ctx, "k", strings.NewReader(strings.Repeat("x", int(size))), size, opt)
		return err
	}
}

// TestS3Network: no answer, half an answer, a caller who has had enough.
func TestS3Network(t *testing.T) {
	t.Run("nobody listens", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		s := openTestS3(t, S3Config{Endpoint: "http://" + l.Addr().String(), Bucket: "b", PathStyle: true, AccessKey: "a", SecretKey: "s", backoff: time.Millisecond})
		_, _, err = s.Get(t.Context(), "k")
		wantError(t, err, tidemark.ErrUnavailable, "get blob k")
		wantError(t, s.Check(t.Context()), tidemark.ErrUnavailable, "check bucket b")
	})
	t.Run("cut off", func(t *testing.T) {
		s := openTestS3(t, fakeS3(t, func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "half")
			return true
		}))
		_, body, err := s.Get(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		defer body.Close()
		var b [200]byte
		n := 0
		for err == nil {
			var m int
			m, err = body.Read(b[n:])
			n += m
		}
		wantError(t, err, tidemark.ErrUnavailable, "read blob k")
	})
	t.Run("caller stops", func(t *testing.T) {
		stop := errors.New("had enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		s := openTestS3(t, fakeS3(t, func(_ http.ResponseWriter, r *http.Request) bool {
			cancel(stop)
			<-r.Context().Done()
			return true
		}))
		_, _, err := s.Get(ctx, "k")
		wantError(t, err, stop, "get blob k")
	})
}

func TestNewS3Config(t *testing.T) {
	good := S3Config{Endpoint: "http://127.0.0.1:1", Bucket: "b", AccessKey: "a", SecretKey: "s"}
	for _, tc := range []struct {
		name   string
		change func(*S3Config)
		words  string
	}{
		{"no bucket", func(c *S3Config) { c.Bucket = "" }, "bucket"},
		{"bucket with a path", func(c *S3Config) { c.Bucket = "a/b" }, "bucket"},
		{"endpoint without a scheme", func(c *S3Config) { c.Endpoint = "127.0.0.1:9000" }, "endpoint"},
		{"endpoint of another kind", func(c *S3Config) { c.Endpoint = "ftp://x" }, "endpoint"},
		{"half a credential", func(c *S3Config) { c.SecretKey = "" }, "secret key"},
		{"hostile prefix", func(c *S3Config) { c.Prefix = "../x/" }, "prefix"},
		{"prefix from the root", func(c *S3Config) { c.Prefix = "/" }, "prefix"},
		{"unknown conditions", func(c *S3Config) { c.Conditional = "maybe" }, "maybe"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := good
			tc.change(&cfg)
			_, err := NewS3(cfg)
			wantError(t, err, tidemark.ErrInvalid, tc.words)
		})
	}
	if _, err := NewS3(good); err != nil {
		t.Errorf("a good one: %v", err)
	}
}

// FuzzMetadataNames: every name that CheckMetadata allows comes back as it was.
func FuzzMetadataNames(f *testing.F) {
	for _, s := range []string{"sessionKey", "partNumber", "a", "aBC", "part2Sha256", "x1Y2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if tidemark.CheckMetadata(map[string]string{name: "v"}) != nil || knownNames[name] != "" {
			t.Skip() // an all-lower-case spelling of a known name means that name
		}
		h := toHeader(name)
		if strings.ToLower(h) != h {
			t.Errorf("header %q depends on case", h)
		}
		if back := fromHeader(h); back != name {
			t.Errorf("%q became %q, then %q", name, h, back)
		}
	})
}

// TestForeignMetadata: what R2's own binding wrote reads the same through its S3 face.
func TestForeignMetadata(t *testing.T) {
	got := fromHeaders(map[string]string{"sessionkey": "k", "PartNumber": "2", "session-id": "i", "other": "o"})
	want := map[string]string{"sessionKey": "k", "partNumber": "2", "sessionId": "i", "other": "o"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
