package trim

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/tidemark-ai/tidemark/trim/logtest"
)

// BenchmarkTrim is the trimmer over a log of 32 MB, beside what any program must do that finds a word in its lines.
func BenchmarkTrim(b *testing.B) {
	var log bytes.Buffer
	if err := logtest.Write(&log, logtest.Options{Seed: 1, Bytes: 32 << 20}); err != nil {
		b.Fatal(err)
	}
	in := log.Bytes()
	run := func(name string, f func() error) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			for b.Loop() {
				if err := f(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("trim", func() error {
		_, err := Trim(context.Background(), bytes.NewReader(in), int64(len(in)), io.Discard, nil, Options{})
		return err
	})
	run("word", func() error {
		n := 0
		for rest := in; len(rest) > 0; {
			k := bytes.IndexByte(rest, '\n')
			if k < 0 {
				break
			}
			if bytes.Contains(rest[:k], []byte("tool_use")) {
				n++
			}
			rest = rest[k+1:]
		}
		return nil
	})
}
