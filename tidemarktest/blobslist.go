package tidemarktest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// list gives all keys with a prefix, read in pages of limit.
func list(t *testing.T, b tidemark.Blobs, prefix string, limit int) []string {
	t.Helper()
	var keys []string
	cursor := ""
	for range 10_000 {
		page, next, err := b.List(t.Context(), prefix, cursor, limit)
		if err != nil {
			t.Fatalf("list %q: %v", prefix, err)
		}
		if len(page) > limit {
			t.Fatalf("list %q: a page of %d objects, the limit is %d", prefix, len(page), limit)
		}
		for _, o := range page {
			keys = append(keys, o.Key)
		}
		if next == "" {
			return keys
		}
		cursor = next
	}
	t.Fatalf("list %q: no end after 10,000 pages", prefix)
	return nil
}

// treeKeys are keys whose order differs between byte order and the order of a walk through folders.
var treeKeys = []string{
	"a", "a!b", "a-b/c", "a-b/d", "a.b", "a0", "ab/c", "ab/c.d", "ab/c0",
	"ab-c", "b/a/a", "b/a-a", "b/a.a/x", "b/b", "z", "Z", "ä", "€", "😀",
}

func putTree(t *testing.T, b tidemark.Blobs) []string {
	t.Helper()
	for _, k := range treeKeys {
		mustPut(t, b, k, "content of "+k, tidemark.PutOptions{})
	}
	sorted := slices.Clone(treeKeys)
	slices.Sort(sorted)
	return sorted
}

// blobListOrder: byte order of whole keys, with sizes and the ETags that Get gives.
func blobListOrder(t *testing.T, b tidemark.Blobs) {
	if keys := list(t, b, "", 10); len(keys) != 0 {
		t.Fatalf("an empty store lists %v", keys)
	}
	want := putTree(t, b)
	page, next, err := b.List(t.Context(), "", "", 1000)
	if err != nil || next != "" || len(page) != len(want) {
		t.Fatalf("got %d objects, next %q, %v; want %d", len(page), next, err, len(want))
	}
	for i, o := range page {
		if o.Key != want[i] {
			t.Fatalf("place %d is %q, want %q", i, o.Key, want[i])
		}
		got, content := mustGet(t, b, o.Key)
		if o.Size != int64(len(content)) || o.ETag != got.ETag {
			t.Errorf("listed %+v, got %+v", o, got)
		}
	}
}

// blobListPages: pages of any size give every key once, also when keys go while one reads.
func blobListPages(t *testing.T, b tidemark.Blobs) {
	want := putTree(t, b)
	for _, limit := range []int{1, 2, 3, len(want) - 1, len(want), len(want) + 1} {
		if keys := list(t, b, "", limit); !slices.Equal(keys, want) {
			t.Errorf("pages of %d: got %q, want %q", limit, keys, want)
		}
	}
	page, next, err := b.List(t.Context(), "", "", 5)
	if err != nil || len(page) != 5 || next == "" {
		t.Fatalf("first page: %d objects, next %q, %v", len(page), next, err)
	}
	for _, k := range want[3:7] {
		if err := b.Delete(t.Context(), k); err != nil {
			t.Fatal(err)
		}
	}
	page, _, err = b.List(t.Context(), "", next, 1)
	if err != nil || len(page) != 1 || page[0].Key != want[7] {
		t.Errorf("after deleting around the cursor: %+v, %v, want %q", page, err, want[7])
	}
}

// blobListPrefix: a prefix is a string, not a folder.
func blobListPrefix(t *testing.T, b tidemark.Blobs) {
	all := putTree(t, b)
	for _, prefix := range []string{"a", "a-", "a-b/", "ab", "ab/", "ab/c", "b/a", "b/a/", "b/a/a", "z", "nothing", "ab/nothing/deep/", "a/", "ä"} {
		want := slices.DeleteFunc(slices.Clone(all), func(k string) bool { return !strings.HasPrefix(k, prefix) })
		for _, limit := range []int{1, 100} {
			if keys := list(t, b, prefix, limit); !slices.Equal(keys, want) {
				t.Errorf("prefix %q in pages of %d: got %q, want %q", prefix, limit, keys, want)
			}
		}
	}
	for _, prefix := range []string{"../", "/", "a/../", ".."} {
		if page, _, err := b.List(t.Context(), prefix, "", 10); len(page) != 0 || err != nil && !errors.Is(err, tidemark.ErrInvalid) {
			t.Errorf("prefix %q gave %v, %v", prefix, page, err)
		}
	}
}

// blobOneCreator: of many that create a key at once, exactly one wins, and its content stands.
func blobOneCreator(t *testing.T, b tidemark.Blobs) {
	for round := range 5 {
		key := fmt.Sprintf("race/%d", round)
		var winners, winner atomic.Int64
		inParallel(t, 8, func(i int) error {
			content := fmt.Sprint("by ", i)
			_, err := b.Put(t.Context(), key, strings.NewReader(content), int64(len(content)), tidemark.PutOptions{IfAbsent: true})
			if errors.Is(err, tidemark.ErrConflict) {
				return nil
			}
			winners.Add(1)
			winner.Store(int64(i))
			return err
		})
		if want, got := fmt.Sprint("by ", winner.Load()), read(t, b, key); winners.Load() != 1 || got != want {
			t.Errorf("%s: %d winners, reads %q, the winner wrote %q", key, winners.Load(), got, want)
		}
	}
}

// blobAppenders: read, append, put if it still matches: no line is lost.
func blobAppenders(t *testing.T, b tidemark.Blobs) {
	const writers, lines = 4, 5
	mustPut(t, b, "log.md", "", tidemark.PutOptions{})
	add := func(line string) error {
		for range 1000 {
			o, body, err := b.Get(t.Context(), "log.md")
			if err != nil {
				return err
			}
			content, err := io.ReadAll(body)
			body.Close()
			if err != nil {
				return err
			}
			content = append(content, line...)
			_, err = b.Put(t.Context(), "log.md", bytes.NewReader(content), int64(len(content)), tidemark.PutOptions{IfMatch: o.ETag})
			if !errors.Is(err, tidemark.ErrConflict) {
				return err
			}
		}
		return errors.New("1,000 conflicts in a row")
	}
	inParallel(t, writers, func(w int) error {
		for i := range lines {
			if err := add(fmt.Sprintf("line %d of %d\n", i, w)); err != nil {
				return err
			}
		}
		return nil
	})
	got := read(t, b, "log.md")
	for w := range writers {
		for i := range lines {
			if n := strings.Count(got, fmt.Sprintf("line %d of %d\n", i, w)); n != 1 {
				t.Errorf("line %d of %d is there %d times", i, w, n)
			}
		}
	}
}

// blobWhole: a reader sees an object as one put left it, with the metadata of that put.
func blobWhole(t *testing.T, b tidemark.Blobs) {
	put := func(c byte) error {
		content := bytes.Repeat([]byte{c}, 50_000+int(c))
		_, err := b.Put(t.Context(), "w", bytes.NewReader(content), int64(len(content)), tidemark.PutOptions{Metadata: map[string]string{"by": string(c)}})
		return err
	}
	if err := put('a'); err != nil {
		t.Fatal(err)
	}
	inParallel(t, 4, func(i int) error {
		for round := range 20 {
			if i < 2 {
				if err := put("abcdefgh"[(round+i*3)%8]); err != nil {
					return err
				}
				continue
			}
			o, body, err := b.Get(t.Context(), "w")
			if err != nil {
				return err
			}
			content, err := io.ReadAll(body)
			body.Close()
			if err != nil {
				return err
			}
			c := content[0]
			if len(content) != 50_000+int(c) || bytes.Count(content, []byte{c}) != len(content) || o.Size != int64(len(content)) || o.Metadata["by"] != string(c) {
				return fmt.Errorf("a mixture: %d bytes from %q, metadata %v", len(content), c, o.Metadata)
			}
		}
		return nil
	})
}

// inParallel runs f n times at once and reports every error.
func inParallel(t *testing.T, n int, f func(i int) error) {
	t.Helper()
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}
