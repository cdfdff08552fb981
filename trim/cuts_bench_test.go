package trim

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"
)

// BenchmarkCuts writes the cuts of a log of 32 MiB of which two thirds go, a piece of 4 KiB at a time.
func BenchmarkCuts(b *testing.B) {
	in := someLog(rand.New(rand.NewPCG(1, 1)), 32<<20)
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		w, err := NewCutsWriter(io.Discard, bytes.NewReader(in), int64(len(in)), 500, cutsAt)
		if err != nil {
			b.Fatal(err)
		}
		out := w.Out(io.Discard)
		at := 0
		for ; at+6<<10 < len(in); at += 6 << 10 {
			_, _ = out.Write(in[at : at+2<<10])
			if err := w.Cut(Cut{From: int64(at + 2<<10), To: int64(at + 6<<10)}); err != nil {
				b.Fatal(err)
			}
		}
		_, _ = out.Write(in[at:])
		if err := w.Close(nil); err != nil {
			b.Fatal(err)
		}
	}
}
