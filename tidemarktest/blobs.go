package tidemarktest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// TestBlobs checks that the stores which open gives obey the contract of [tidemark.Blobs]. Each
// call of open must give an empty store.
func TestBlobs(t *testing.T, open func(t *testing.T) tidemark.Blobs) {
	for name, test := range map[string]func(*testing.T, tidemark.Blobs){
		"RoundTrip":    blobRoundTrip,
		"Overwrite":    blobOverwrite,
		"Conditions":   blobConditions,
		"Delete":       blobDelete,
		"Large":        blobLarge,
		"WrongSize":    blobWrongSize,
		"HostileKeys":  blobHostileKeys,
		"OddKeys":      blobOddKeys,
		"BadMetadata":  blobBadMetadata,
		"Cancelled":    blobCancelled,
		"ListOrder":    blobListOrder,
		"ListPages":    blobListPages,
		"ListPrefix":   blobListPrefix,
		"OneCreator":   blobOneCreator,
		"Appenders":    blobAppenders,
		"WholeObjects": blobWhole,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// blobRoundTrip: what was put is got, as the same thing.
func blobRoundTrip(t *testing.T, b tidemark.Blobs) {
	for i, tc := range []struct {
		name    string
		content string
		opt     tidemark.PutOptions
		want    map[string]string
	}{
		{"plain", "hello\n", tidemark.PutOptions{}, nil},
		{"zero bytes", "", tidemark.PutOptions{ContentType: "text/plain"}, nil},
		{"one byte", "\x00", tidemark.PutOptions{}, nil},
		{"type", "# Memory\n", tidemark.PutOptions{ContentType: "text/markdown; charset=utf-8"}, nil},
		{
			"metadata", "{}\n",
			tidemark.PutOptions{ContentType: "application/gzip", Metadata: map[string]string{
				"sessionKey": "agent:main:main", "archivedAt": "2026-11-21T04:00:00Z", "part2Sha256": "0aF", "x": "a b=c;d,\"e\"",
			}},
			map[string]string{"sessionKey": "agent:main:main", "archivedAt": "2026-11-21T04:00:00Z", "part2Sha256": "0aF", "x": "a b=c;d,\"e\""},
		},
		{"empty value", "{}\n", tidemark.PutOptions{Metadata: map[string]string{"peer": "", "sessionId": "s"}}, map[string]string{"sessionId": "s"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			key := fmt.Sprintf("round/%d.md", i)
			put := mustPut(t, b, key, tc.content, tc.opt)
			got, content := mustGet(t, b, key)
			if content != tc.content {
				t.Errorf("content %q, want %q", content, tc.content)
			}
			if got.Key != key || got.Size != int64(len(tc.content)) || put.Key != key || put.Size != got.Size {
				t.Errorf("put said %+v, get %+v", put, got)
			}
			if put.ETag == "" || put.ETag != got.ETag || strings.Contains(got.ETag, `"`) {
				t.Errorf("put has ETag %q, get %q", put.ETag, got.ETag)
			}
			if tc.opt.ContentType != "" && got.ContentType != tc.opt.ContentType {
				t.Errorf("content type %q, want %q", got.ContentType, tc.opt.ContentType)
			}
			if age := time.Since(got.Modified); age < -time.Hour || age > time.Hour {
				t.Errorf("modified %v, which is %v ago", got.Modified, age)
			}
			maps.DeleteFunc(got.Metadata, func(_, v string) bool { return v == "" })
			if !maps.Equal(got.Metadata, tc.want) {
				t.Errorf("metadata %v, want %v", got.Metadata, tc.want)
			}
		})
	}
}

// blobOverwrite: the last put decides everything about an object.
func blobOverwrite(t *testing.T, b tidemark.Blobs) {
	first := mustPut(t, b, "o", "first", tidemark.PutOptions{ContentType: "text/plain", Metadata: map[string]string{"sessionId": "1"}})
	second := mustPut(t, b, "o", "other", tidemark.PutOptions{ContentType: "text/markdown", Metadata: map[string]string{"agentId": "2"}})
	if first.ETag == second.ETag {
		t.Errorf("the ETag %q stayed", first.ETag)
	}
	got, content := mustGet(t, b, "o")
	if content != "other" || got.ContentType != "text/markdown" || got.Metadata["agentId"] != "2" || got.Metadata["sessionId"] != "" || got.ETag != second.ETag {
		t.Errorf("got %q, %+v", content, got)
	}
}

// blobConditions: a condition that does not hold is ErrConflict and changes nothing.
func blobConditions(t *testing.T, b tidemark.Blobs) {
	old := mustPut(t, b, "there", "old", tidemark.PutOptions{})
	now := mustPut(t, b, "there", "now", tidemark.PutOptions{})
	for _, tc := range []struct {
		name, key string
		opt       tidemark.PutOptions
		conflict  bool
	}{
		{"absent and is not", "there", tidemark.PutOptions{IfAbsent: true}, true},
		{"absent and is", "fresh", tidemark.PutOptions{IfAbsent: true}, false},
		{"stale ETag", "there", tidemark.PutOptions{IfMatch: old.ETag}, true},
		{"foreign ETag", "there", tidemark.PutOptions{IfMatch: "d41d8cd98f00b204e9800998ecf8427e"}, true},
		{"ETag of nothing", "nothing", tidemark.PutOptions{IfMatch: now.ETag}, true},
		{"right ETag", "there", tidemark.PutOptions{IfMatch: now.ETag}, false},
		{"right ETag once more", "there", tidemark.PutOptions{IfMatch: now.ETag}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := read(t, b, tc.key)
			_, err := b.Put(t.Context(), tc.key, strings.NewReader("new: "+tc.name), int64(len("new: "+tc.name)), tc.opt)
			want := "new: " + tc.name
			if tc.conflict {
				want = before
			}
			if errors.Is(err, tidemark.ErrConflict) != tc.conflict || (err == nil) == tc.conflict {
				t.Errorf("got %v, want a conflict: %t", err, tc.conflict)
			}
			if after := read(t, b, tc.key); after != want {
				t.Errorf("the object reads %q, want %q", after, want)
			}
		})
	}
}

// blobDelete: gone is gone, and nothing is gone twice.
func blobDelete(t *testing.T, b tidemark.Blobs) {
	mustPut(t, b, "d/e/f", "x", tidemark.PutOptions{Metadata: map[string]string{"sessionId": "1"}})
	mustPut(t, b, "d/e2", "y", tidemark.PutOptions{})
	for range 2 {
		if err := b.Delete(t.Context(), "d/e/f"); err != nil {
			t.Fatal(err)
		}
		if got := read(t, b, "d/e/f"); got != missing {
			t.Errorf("after delete: %q", got)
		}
		if keys := list(t, b, "", 10); fmt.Sprint(keys) != "[d/e2]" {
			t.Errorf("left: %v", keys)
		}
	}
	if err := b.Delete(t.Context(), "never/was"); err != nil {
		t.Errorf("delete of what never was: %v", err)
	}
	mustPut(t, b, "d/e", "a key where a folder was", tidemark.PutOptions{IfAbsent: true})
	if err := b.Delete(t.Context(), "d/e"); err != nil {
		t.Fatal(err)
	}
	mustPut(t, b, "d/e/f", "again", tidemark.PutOptions{IfAbsent: true})
	if got, _ := mustGet(t, b, "d/e/f"); len(got.Metadata) != 0 {
		t.Errorf("metadata of the deleted object came back: %v", got.Metadata)
	}
}

// blobLarge: 20 MB go through, from a reader that cannot seek.
func blobLarge(t *testing.T, b tidemark.Blobs) {
	const size = 20_000_000
	sum := sha256.New()
	if _, err := io.Copy(sum, &pattern{left: size}); err != nil {
		t.Fatal(err)
	}
	put, err := b.Put(t.Context(), "large", &pattern{left: size}, size, tidemark.PutOptions{IfAbsent: true})
	if err != nil || put.Size != size {
		t.Fatalf("put: %+v, %v", put, err)
	}
	got, body, err := b.Get(t.Context(), "large")
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	back := sha256.New()
	if n, err := io.Copy(back, body); err != nil || n != size || got.Size != size {
		t.Fatalf("got %d bytes of %d: %v", n, got.Size, err)
	}
	if !bytes.Equal(back.Sum(nil), sum.Sum(nil)) {
		t.Error("the content changed")
	}
}

// pattern is a stream of left bytes that does not repeat within any page size.
type pattern struct{ left, at int64 }

func (p *pattern) Read(b []byte) (int, error) {
	if p.left == 0 {
		return 0, io.EOF
	}
	n := int(min(int64(len(b)), p.left, 8191))
	for i := range b[:n] {
		b[i] = byte(p.at * 2654435761 >> 13)
		p.at++
	}
	p.left -= int64(n)
	return n, nil
}

var errReader = errors.New("the source broke")

// blobWrongSize: a body of another size, or one that breaks, is an error and leaves what was there.
func blobWrongSize(t *testing.T, b tidemark.Blobs) {
	for _, size := range []int64{10, 3_000_000} {
		for _, tc := range []struct {
			name string
			r    func() io.Reader
			size int64
		}{
			{"short", func() io.Reader { return &pattern{left: size - 1} }, size},
			{"empty", func() io.Reader { return strings.NewReader("") }, size},
			{"long", func() io.Reader { return &pattern{left: size + 1} }, size},
			{"much longer", func() io.Reader { return &pattern{left: 2 * size} }, size},
			{"short and can seek", func() io.Reader { return bytes.NewReader(make([]byte, size-1)) }, size},
			{"long and can seek", func() io.Reader { return bytes.NewReader(make([]byte, size+1)) }, size},
			{"something instead of nothing", func() io.Reader { return &pattern{left: size} }, 0},
			{"breaks", func() io.Reader { return io.MultiReader(&pattern{left: size - 1}, broken{}) }, size},
			{"breaks at the end", func() io.Reader { return io.MultiReader(&pattern{left: size}, broken{}) }, size},
			{"negative size", func() io.Reader { return strings.NewReader("") }, -1},
		} {
			t.Run(fmt.Sprintf("%s of %d", tc.name, size), func(t *testing.T) {
				if _, err := b.Put(t.Context(), "new", tc.r(), tc.size, tidemark.PutOptions{}); err == nil {
					t.Error("no error for a new object")
				}
				if got := read(t, b, "new"); got != missing {
					t.Errorf("left an object of %d bytes", len(got))
				}
				mustPut(t, b, "old", "old", tidemark.PutOptions{})
				if _, err := b.Put(t.Context(), "old", tc.r(), tc.size, tidemark.PutOptions{}); err == nil {
					t.Error("no error for an object that exists")
				}
				if got := read(t, b, "old"); got != "old" {
					t.Errorf("changed the object to %d bytes", len(got))
				}
			})
		}
	}
	if keys := list(t, b, "", 10); fmt.Sprint(keys) != "[old]" {
		t.Errorf("left: %v", keys)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errReader }

// blobHostileKeys: a key that some store cannot hold, or that leaves its folder, is refused by all.
func blobHostileKeys(t *testing.T, b tidemark.Blobs) {
	for _, key := range []string{
		"", "/", "/etc/passwd", "a/", "a//b", ".", "..", "../x", "a/../b", "a/..", "./a", "a/./b",
		"a\x00b", "a\nb", "a\x7f", `a\b`, `..\x`, "a\xffb", "\ufffd", strings.Repeat("a/", 512) + "a",
	} {
		t.Run(fmt.Sprintf("%.20q", key), func(t *testing.T) {
			_, err := b.Put(t.Context(), key, strings.NewReader("x"), 1, tidemark.PutOptions{})
			if !errors.Is(err, tidemark.ErrInvalid) {
				t.Errorf("put: %v, want ErrInvalid", err)
			}
			if _, _, err = b.Get(t.Context(), key); !errors.Is(err, tidemark.ErrInvalid) {
				t.Errorf("get: %v, want ErrInvalid", err)
			}
			if err = b.Delete(t.Context(), key); !errors.Is(err, tidemark.ErrInvalid) {
				t.Errorf("delete: %v, want ErrInvalid", err)
			}
		})
	}
	if keys := list(t, b, "", 10); len(keys) != 0 {
		t.Errorf("left: %v", keys)
	}
}

// blobOddKeys: unusual keys that every store holds.
func blobOddKeys(t *testing.T, b tidemark.Blobs) {
	const longest = tidemark.MaxKey - 128 - len("odd/") // a store may put a prefix of its own before a key
	long := strings.Repeat(strings.Repeat("k", 127)+"/", 8)[:longest]
	for _, name := range []string{
		"a", "a b", "a+b", "a%2Fb", "a%b", "a?b=c", "a#b", "a&b", "a:b", "a=b", "~a", "a'b\"c", "(a)[b]{c}", "a*b", "a|b", "a<b>", "$a",
		".hidden", "...", "a..b", "-a", "größe", "日本語/テスト", "😀", "agent:main:whatsapp:dm:+4915112345678", "A/a/A", long,
	} {
		t.Run(fmt.Sprintf("%.20q", name), func(t *testing.T) {
			key := "odd/" + name
			mustPut(t, b, key, "content of "+name, tidemark.PutOptions{IfAbsent: true})
			if got := read(t, b, key); got != "content of "+name {
				t.Errorf("got %q", got)
			}
			if keys := list(t, b, key, 10); len(keys) != 1 || keys[0] != key {
				t.Errorf("listed as %q", keys)
			}
			if err := b.Delete(t.Context(), key); err != nil {
				t.Error(err)
			}
		})
	}
	if keys := list(t, b, "", 10); len(keys) != 0 {
		t.Errorf("left: %v", keys)
	}
}

// blobBadMetadata: metadata that some store would change is refused by all.
func blobBadMetadata(t *testing.T, b tidemark.Blobs) {
	for name, m := range map[string]map[string]string{
		"upper case":  {"SessionKey": "x"},
		"dash":        {"session-key": "x"},
		"not ASCII":   {"title": "größer"},
		"line end":    {"title": "a\nX-Other: b"},
		"outer space": {"title": " a"},
		"empty key":   {"": "a"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := b.Put(t.Context(), "m", strings.NewReader("x"), 1, tidemark.PutOptions{Metadata: m})
			if !errors.Is(err, tidemark.ErrInvalid) {
				t.Errorf("got %v, want ErrInvalid", err)
			}
		})
	}
	_, err := b.Put(t.Context(), "m", strings.NewReader("x"), 1, tidemark.PutOptions{Metadata: map[string]string{"a": strings.Repeat("x", tidemark.MaxMetadata)}})
	if !errors.Is(err, tidemark.ErrTooLarge) {
		t.Errorf("long metadata: %v, want ErrTooLarge", err)
	}
	if got := read(t, b, "m"); got != missing {
		t.Errorf("left %q", got)
	}
}

// blobCancelled: a context that has ended does nothing.
func blobCancelled(t *testing.T, b tidemark.Blobs) {
	mustPut(t, b, "c", "x", tidemark.PutOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Put(ctx, "c", strings.NewReader("y"), 1, tidemark.PutOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("put: %v, want context.Canceled", err)
	}
	if _, _, err := b.Get(ctx, "c"); !errors.Is(err, context.Canceled) {
		t.Errorf("get: %v, want context.Canceled", err)
	}
	if err := b.Delete(ctx, "c"); !errors.Is(err, context.Canceled) {
		t.Errorf("delete: %v, want context.Canceled", err)
	}
	if _, _, err := b.List(ctx, "", "", 10); !errors.Is(err, context.Canceled) {
		t.Errorf("list: %v, want context.Canceled", err)
	}
	if got := read(t, b, "c"); got != "x" {
		t.Errorf("the object reads %q", got)
	}
}

// missing is what read gives for an object that is not there.
const missing = "(no object)"

// read gives the content of an object, or missing.
func read(t *testing.T, b tidemark.Blobs, key string) string {
	t.Helper()
	o, body, err := b.Get(t.Context(), key)
	if errors.Is(err, tidemark.ErrNotFound) {
		return missing
	}
	if err != nil {
		t.Fatalf("get %s: %v", key, err)
	}
	defer body.Close()
	content, err := io.ReadAll(body)
	if err != nil || int64(len(content)) != o.Size {
		t.Fatalf("get %s: %d bytes of %d, %v", key, len(content), o.Size, err)
	}
	return string(content)
}

func mustGet(t *testing.T, b tidemark.Blobs, key string) (tidemark.Object, string) {
	t.Helper()
	o, body, err := b.Get(t.Context(), key)
	if err != nil {
		t.Fatalf("get %s: %v", key, err)
	}
	defer body.Close()
	content, err := io.ReadAll(body)
	if err != nil {
		t.Fatalf("get %s: %v", key, err)
	}
	return o, string(content)
}

func mustPut(t *testing.T, b tidemark.Blobs, key, content string, opt tidemark.PutOptions) tidemark.Object {
	t.Helper()
	o, err := b.Put(t.Context(), key, strings.NewReader(content), int64(len(content)), opt)
	if err != nil {
		t.Fatalf("put %s: %v", key, err)
	}
	return o
}
