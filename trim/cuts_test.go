package trim

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/s2"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// randomCuts is a trim that cuts at random.
func randomCuts(rnd *rand.Rand, in []byte, out io.Writer, cuts Sink) error {
	at := 0
	for at < len(in) {
		gap := rnd.IntN(len(in)-at) >> rnd.IntN(12)
		length := rnd.IntN(len(in)-at-gap+1) >> rnd.IntN(8)
		put := strings.Repeat("stub\n", rnd.IntN(3))
		c := Cut{From: int64(at + gap), To: int64(at + gap + length), Put: int64(len(put))}
		if put != "" {
			sum := sha256.Sum256(in[c.From:c.To])
			c.Handle = hex.EncodeToString(sum[:6])
		}
		if _, err := out.Write(in[at:c.From]); err != nil {
			return err
		}
		if err := cuts.Cut(c); err != nil {
			return err
		}
		if _, err := io.WriteString(out, put); err != nil {
			return err
		}
		at = int(c.To)
		if rnd.IntN(40) == 0 {
			break
		}
	}
	_, err := out.Write(in[at:])
	return err
}

// someLog has lines of random lengths.
func someLog(rnd *rand.Rand, size int) []byte {
	var b bytes.Buffer
	for b.Len() < size {
		b.WriteString(strings.Repeat(string(rune('a'+rnd.IntN(26))), rnd.IntN(200)) + "\n")
	}
	return b.Bytes()[:size]
}

var cutsAt = time.Date(2026, 2, 3, 4, 5, 6, 7, time.UTC)

// cutLog trims a log at random and returns its trimmed form and its cuts.
func cutLog(t testing.TB, rnd *rand.Rand, in []byte) (out, cuts []byte) {
	t.Helper()
	var o, c bytes.Buffer
	w, err := NewCutsWriter(&c, bytes.NewReader(in), int64(len(in)), 500, cutsAt)
	if err == nil {
		err = w.Close(randomCuts(rnd, in, w.Out(&o), w))
	}
	if err != nil {
		t.Fatal(err)
	}
	return o.Bytes(), c.Bytes()
}

func openCuts(t testing.TB, raw []byte) *CutsFile {
	t.Helper()
	f, err := OpenCuts(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func untrimBytes(out []byte, f *CutsFile) ([]byte, Untrimmed, error) {
	var back bytes.Buffer
	u, err := Untrim(context.Background(), bytes.NewReader(out), int64(len(out)), f, &back)
	return back.Bytes(), u, err
}

// Whatever was cut, untrim gives the log, and what was appended since stands behind it.
func TestUntrim(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{0, 1, 100, 5_000, 70_000, 600_000} {
		for range 8 {
			in := someLog(rnd, size)
			out, cuts := cutLog(t, rnd, in)
			f := openCuts(t, cuts)
			if facts := f.Facts(); facts.Bytes != int64(size) || facts.Trimmed != int64(len(out)) || facts.Threshold != 500 || !facts.At.Equal(cutsAt.Truncate(time.Second)) {
				t.Fatalf("facts %+v", facts)
			}
			more := []byte("more\n")
			back, u, err := untrimBytes(append(bytes.Clone(out), more...), f)
			if err != nil || !bytes.Equal(back, append(bytes.Clone(in), more...)) {
				t.Fatalf("size %d: %v, equal %t", size, err, bytes.Equal(back, in))
			}
			if u.Bytes != int64(size) || u.Appended != int64(len(more)) || u.Cuts != f.Facts().Cuts {
				t.Fatalf("untrimmed %+v", u)
			}
		}
	}
}

// Each cut is told with its place in both files, its handle and its bytes, and bodies may be left unread.
func TestCutsAll(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	in := someLog(rnd, 300_000)
	out, cuts := cutLog(t, rnd, in)
	n := 0
	for o, err := range openCuts(t, cuts).All() {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n%3 == 0 {
			continue
		}
		body, err := io.ReadAll(o.Body)
		if err != nil || !bytes.Equal(body, in[o.From:o.To]) {
			t.Fatalf("cut %d: %v", n, err)
		}
		if put := out[o.At : o.At+o.Put]; strings.Trim(string(put), "stub\n") != "" || (o.Handle == "") != (o.Put == 0) {
			t.Fatalf("cut %d: %q stands for %q", n, put, o.Handle)
		}
	}
	if n < 5 {
		t.Fatalf("%d cuts", n)
	}
}

// A trimmed log that was changed, or is another one, is refused with its first place.
func TestUntrimChanged(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	in := someLog(rnd, 90_000)
	out, cuts := cutLog(t, rnd, in)
	for len(out) < 30_000 {
		out, cuts = cutLog(t, rnd, in)
	}
	f := openCuts(t, cuts)
	for _, at := range []int{0, 1, 5_000, len(out) - 1} {
		bad := bytes.Clone(out)
		bad[at] ^= 1
		_, _, err := untrimBytes(bad, f)
		from := int64(at) / f.foot.Block * f.foot.Block
		if !errors.Is(err, tidemark.ErrConflict) || !strings.Contains(err.Error(), fmt.Sprintf("(bytes %d to ", from)) {
			t.Fatalf("changed at %d: %v", at, err)
		}
		line := 1 + bytes.Count(out[:from], []byte("\n"))
		if !strings.Contains(err.Error(), fmt.Sprintf("line %d", line)) {
			t.Fatalf("changed at %d, line %d: %v", at, line, err)
		}
	}
	for _, size := range []int{0, 10, len(out) - 1} {
		if _, _, err := untrimBytes(out[:size], f); !errors.Is(err, tidemark.ErrConflict) {
			t.Fatalf("cut off at %d: %v", size, err)
		}
	}
}

// A cuts file that lacks its end, wherever it was cut off, is refused; so is one with any byte changed.
func TestCutsDamaged(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	in := someLog(rnd, 3_000)
	out, cuts := cutLog(t, rnd, in)
	for size := range cuts {
		if _, err := OpenCuts(bytes.NewReader(cuts[:size]), int64(size)); !errors.Is(err, tidemark.ErrInvalid) {
			t.Fatalf("cut off at %d of %d: %v", size, len(cuts), err)
		}
	}
	head := bytes.IndexByte(cuts, '\n') // what it says of itself is for people
	for at := head; at < len(cuts); at++ {
		bad := bytes.Clone(cuts)
		bad[at] ^= 0x10
		f, err := OpenCuts(bytes.NewReader(bad), int64(len(bad)))
		if err == nil {
			var back []byte
			if back, _, err = untrimBytes(out, f); err == nil && !bytes.Equal(back, in) {
				t.Fatalf("changed at %d: it gives another log", at)
			}
		}
		if err != nil && !errors.Is(err, tidemark.ErrInvalid) && !errors.Is(err, tidemark.ErrConflict) {
			t.Fatalf("changed at %d: %v", at, err)
		}
	}
}

// broken fails from some byte on.
type broken struct {
	left int
	err  error
}

func (b *broken) Write(p []byte) (int, error) {
	if len(p) > b.left {
		n := b.left
		b.left = 0
		return n, b.err
	}
	b.left -= len(p)
	return len(p), nil
}

// A full disk under the cuts fails the trim, wherever it is full, and no cuts file is left that looks whole.
func TestCutsFull(t *testing.T) {
	rnd := rand.New(rand.NewPCG(9, 10))
	in := someLog(rnd, 2_000_000)
	_, whole := cutLog(t, rand.New(rand.NewPCG(9, 11)), in)
	full := errors.New("disk full")
	for _, room := range []int{0, 10, 100, 1_000, len(whole) / 2, len(whole) - 1} {
		var kept bytes.Buffer
		w, err := NewCutsWriter(io.MultiWriter(&kept, &broken{room, full}), bytes.NewReader(in), int64(len(in)), 500, cutsAt)
		if err == nil {
			failed := randomCuts(rand.New(rand.NewPCG(9, 11)), in, w.Out(io.Discard), w)
			if err = w.Close(failed); err == nil {
				err = failed
			}
		}
		if !errors.Is(err, full) {
			t.Fatalf("room for %d: %v", room, err)
		}
	}
}

// Cuts that cannot be are refused: they would make a file that nothing brings back.
func TestCutsRefused(t *testing.T) {
	in := []byte("0123456789")
	for _, c := range [][]Cut{
		{{From: -1, To: 2}}, {{From: 3, To: 2}}, {{From: 0, To: 11}}, {{From: 0, To: 1, Put: -1}},
		{{From: 0, To: 5}, {From: 4, To: 6}}, {{From: 0, To: 1, Handle: strings.Repeat("a", 65)}},
	} {
		w, err := NewCutsWriter(io.Discard, bytes.NewReader(in), 10, 500, cutsAt)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range c {
			err = errors.Join(err, w.Cut(one))
		}
		if !errors.Is(err, tidemark.ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
		if err := w.Close(err); err != nil {
			t.Error(err)
		}
	}
	w, err := NewCutsWriter(io.Discard, bytes.NewReader(in), 10, 500, cutsAt)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(nil); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("ten bytes are told, none written: %v", err)
	}
}

// A log that is shorter than it was said to be fails the trim.
func TestCutsShort(t *testing.T) {
	w, err := NewCutsWriter(io.Discard, strings.NewReader("short"), 100, 500, cutsAt)
	if err != nil {
		t.Fatal(err)
	}
	err = w.Cut(Cut{From: 0, To: 100})
	if e := w.Close(nil); !errors.Is(e, io.ErrUnexpectedEOF) {
		t.Errorf("%v, %v", err, e)
	}
}

// Whatever a cuts file holds, reading it ends, and never gives another log than the one whose sum it has.
func FuzzCuts(f *testing.F) {
	rnd := rand.New(rand.NewPCG(11, 12))
	in := someLog(rnd, 2_000)
	out, cuts := cutLog(f, rnd, in)
	f.Add(out, cuts)
	f.Add([]byte{}, cuts)
	f.Add(out, cuts[:len(cuts)/2])
	f.Add([]byte("x"), []byte(`{"format":"tidemark cuts","version":3}`+"\n"))
	f.Fuzz(func(t *testing.T, out, raw []byte) {
		c, err := OpenCuts(bytes.NewReader(raw), int64(len(raw)))
		if err != nil {
			return
		}
		var total int64
		for o, err := range c.All() {
			if err != nil {
				break
			}
			if total += o.To - o.From; o.From < 0 || o.To < o.From || o.To > c.foot.Bytes || o.At+o.Put > c.foot.Trimmed {
				t.Fatalf("cut %+v of %+v", o.Cut, c.foot)
			}
		}
		back, u, err := untrimBytes(out, c)
		if err != nil {
			return
		}
		sum := xxhash.New()
		_, _ = sum.Write(back[:u.Bytes])
		if sumText(sum) != c.foot.Sum || u.Bytes != c.foot.Bytes {
			t.Fatalf("untrimmed %+v, cuts say %+v", u, c.foot)
		}
	})
}

// The same for what passes all sums: a file whose records are at odds with what its end says.
func FuzzCutsRecords(f *testing.F) {
	f.Add([]byte("head stub tail"), []byte{1, 5, 3, 4, 1, 'h', 'a', 'b', 'c', 0, 5}, int64(13), int64(14), int64(1))
	f.Add([]byte{}, []byte{0, 0}, int64(0), int64(0), int64(0))
	f.Add([]byte("x"), []byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, int64(1)<<62, int64(1), int64(9))
	f.Fuzz(func(t *testing.T, out, records []byte, size, trimmed, count int64) {
		var raw bytes.Buffer
		fmt.Fprintf(&raw, `{"format":%q,"version":3}`+"\n", cutsFormat)
		z := s2.NewWriter(&raw)
		_, _ = z.Write(records)
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		m := marker{w: io.Discard, block: minMarkBlock, part: xxhash.New()}
		_, _ = m.Write(out)
		m.close()
		foot, err := json.Marshal(cutsFoot{Cuts: count, Bytes: size, Trimmed: trimmed, Block: m.block, Marks: m.marks})
		if err != nil {
			t.Fatal(err)
		}
		foot = append(foot, '\n')
		fmt.Fprintf(&raw, "%s"+cutsLast, foot, len(foot), crc(foot))
		c, err := OpenCuts(bytes.NewReader(raw.Bytes()), int64(raw.Len()))
		if err != nil {
			return
		}
		for o, err := range c.All() {
			if err != nil {
				break
			}
			if o.From < 0 || o.To < o.From || o.To > size || o.At < 0 || o.At+o.Put > trimmed {
				t.Fatalf("cut %+v of %+v", o.Cut, c.foot)
			}
		}
		if _, _, err := untrimBytes(out, c); err != nil && !errors.Is(err, tidemark.ErrInvalid) && !errors.Is(err, tidemark.ErrConflict) {
			t.Fatal(err)
		}
	})
}
