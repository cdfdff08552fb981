package archive_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// session is about 8 MB of entries that compress as real ones do, some five to one.
func session(b *testing.B) ([]tidemark.Entry, []byte) {
	b.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	var entries []tidemark.Entry
	var lines []byte
	for i := 0; len(lines) < 8<<20; i++ {
		var text strings.Builder
		for range 150 {
			fmt.Fprintf(&text, "func f%x(x int) error { return g%d(x) } // word%d\n", rng.Uint32()%9999, rng.IntN(50), rng.IntN(400))
		}
		role := tidemark.User
		if i%2 == 1 {
			role = tidemark.Assistant
		}
		e := entry(i, string(tidemark.NewText(role, text.String()).AppendJSON(nil)))
		entries = append(entries, e)
		var err error
		if lines, err = archive.AppendLine(lines, e); err != nil {
			b.Fatal(err)
		}
	}
	return entries, lines
}

// BenchmarkWrite compares encoding an archive with plain gzip of the same lines.
func BenchmarkWrite(b *testing.B) {
	entries, lines := session(b)
	b.Run("archive", func(b *testing.B) {
		b.SetBytes(int64(len(lines)))
		b.ReportAllocs()
		for b.Loop() {
			p := pack(b, entries...)
			b.ReportMetric(float64(len(lines))/float64(len(p.Data)), "ratio")
		}
	})
	b.Run("gzip", func(b *testing.B) {
		b.SetBytes(int64(len(lines)))
		z := gzip.NewWriter(io.Discard)
		for b.Loop() {
			var out bytes.Buffer
			z.Reset(&out)
			if _, err := z.Write(lines); err != nil {
				b.Fatal(err)
			}
			if err := z.Close(); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(len(lines))/float64(out.Len()), "ratio")
		}
	})
}

// BenchmarkRead compares reading and searching an archive with plain gunzip.
func BenchmarkRead(b *testing.B) {
	entries, lines := session(b)
	blobs := tidemarktest.NewBlobs()
	p := pack(b, entries...)
	info := put(b, blobs, part(1), p)
	if err := archive.Index(b.Context(), blobs, "main", info); err != nil {
		b.Fatal(err)
	}
	b.Run("archive", func(b *testing.B) {
		b.SetBytes(int64(len(lines)))
		b.ReportAllocs()
		for b.Loop() {
			if got := read(b, blobs, info.Key); len(got) != len(entries) {
				b.Fatal(len(got))
			}
		}
	})
	b.Run("search", func(b *testing.B) {
		b.SetBytes(int64(len(lines)))
		for b.Loop() {
			if _, err := archive.Search(b.Context(), blobs, "main", "zeppelin word7", archive.SearchOptions{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("gzip", func(b *testing.B) {
		b.SetBytes(int64(len(lines)))
		for b.Loop() {
			z, err := gzip.NewReader(bytes.NewReader(p.Data))
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, z); err != nil {
				b.Fatal(err)
			}
		}
	})
}
