package trim

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/s2"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// A cuts file holds what a trim took out, so that it can be undone. It is
//
//	a line of JSON: what it is, for people and for programs that come later (cutsHead)
//	a framed S2 stream, each block with its CRC: the cuts in order, then the end
//	a line of JSON: sizes and sums of the log and of its trimmed form (cutsFoot)
//	a line of fixed length: where that begins, and its CRC (cutsLast)
//
// A cut in the stream is the byte 1; as uvarints the bytes that both files have before it, the bytes that were cut and
// the bytes that stand for them; the handle, its length before it; the bytes that were cut. The end is the byte 0 and
// the bytes that both files have behind the last cut. A file that was not written to its end lacks the last line.
//
// Sums are XXH64: they are to find damage, not forgery (who can change one file can change both), and cost a sixth of
// SHA-256.
const (
	cutsFormat  = "tidemark cuts"
	cutsVersion = 3

	recordEnd = 0
	recordCut = 1

	maxHandle   = 64      // bytes
	maxCutsHead = 4 << 10 // bytes, its line break included
	maxCutsFoot = 1 << 20

	// The trimmed form is summed in blocks, so that a change in it can be located: in as small ones as there may be
	// many of.
	minMarkBlock = 4 << 10
	maxMarks     = 16 << 10

	cutsPiece = 256 << 10 // of a file that is read at once
)

// cutsHead is the first line of a cuts file.
type cutsHead struct {
	Format    string    `json:"format"`
	Version   int       `json:"version"`
	At        time.Time `json:"at"`
	Threshold int       `json:"threshold"`
	Bytes     int64     `json:"bytes"` // of the log
}

// cutsFoot is what is known at the end.
type cutsFoot struct {
	Cuts    int64  `json:"cuts"`
	Bytes   int64  `json:"bytes"`   // of the log
	Sum     string `json:"xxh64"`   // of the log
	Trimmed int64  `json:"trimmed"` // bytes of the trimmed form
	Block   int64  `json:"block"`   // bytes of the trimmed form that have a mark together
	Marks   []byte `json:"marks"`   // XXH64 of its blocks, little-endian, in base64
}

// cutsLast writes the last line: the length and the CRC of the line before it.
const (
	cutsLast    = "tidemark cuts end %010d %08x\n"
	cutsLastLen = len("tidemark cuts end 0123456789 01234567\n")
)

// CutsWriter writes the cuts file of a trim while that is going on. It is the [Sink] of the trim, and what the trim
// writes goes through [CutsWriter.Out]. It reads the log once more from front to back: all of it is to be summed. Not to
// be used by two goroutines at once.
type CutsWriter struct {
	w    io.Writer
	z    *s2.Writer
	in   *bufio.Reader
	buf  []byte
	sum  *xxhash.Digest // of what was read
	foot cutsFoot
	size int64 // of the log
	at   int64 // how far it was read
	to   int64 // how far the cuts are told
	put  int64 // bytes of the trimmed form up to there
	out  marker
}

// NewCutsWriter begins a cuts file for the first size bytes of a log.
func NewCutsWriter(w io.Writer, in io.ReaderAt, size int64, threshold int, at time.Time) (*CutsWriter, error) {
	head, err := json.Marshal(cutsHead{Format: cutsFormat, Version: cutsVersion, At: at.UTC().Truncate(time.Second), Threshold: threshold, Bytes: size})
	if err == nil {
		_, err = w.Write(append(head, '\n'))
	}
	if err != nil {
		return nil, fmt.Errorf("write cuts: %w", err)
	}
	c := &CutsWriter{w: w, size: size, z: s2.NewWriter(w, s2.WriterConcurrency(1)), buf: make([]byte, cutsPiece), sum: xxhash.New(),
		in: bufio.NewReaderSize(io.NewSectionReader(in, 0, size), cutsPiece), out: marker{block: minMarkBlock, part: xxhash.New()}}
	for c.out.block*maxMarks < size {
		c.out.block *= 2
	}
	return c, nil
}

// Cut implements [Sink].
func (c *CutsWriter) Cut(cut Cut) error {
	if cut.From < c.to || cut.To < cut.From || cut.To > c.size || cut.Put < 0 || len(cut.Handle) > maxHandle {
		return fmt.Errorf("write cuts: the cut from %d to %d behind %d, of %d bytes: %w", cut.From, cut.To, c.to, c.size, tidemark.ErrInvalid)
	}
	head := []byte{recordCut}
	for _, n := range []int64{cut.From - c.to, cut.To - cut.From, cut.Put, int64(len(cut.Handle))} {
		head = binary.AppendUvarint(head, uint64(n))
	}
	c.put += cut.From - c.to + cut.Put
	c.to = cut.To
	c.foot.Cuts++
	if err := c.record(append(head, cut.Handle...)); err != nil {
		return err
	}
	if err := c.pass(cut.From, c.sum); err != nil {
		return err
	}
	return c.pass(cut.To, io.MultiWriter(c.sum, c.z))
}

func (c *CutsWriter) record(b []byte) error {
	if _, err := c.z.Write(b); err != nil {
		return fmt.Errorf("write cuts: %w", err)
	}
	return nil
}

// pass goes on to a place of the log, and writes what it passes over.
func (c *CutsWriter) pass(to int64, w io.Writer) error {
	n, err := io.CopyBuffer(w, io.LimitReader(c.in, to-c.at), c.buf)
	c.at += n
	if err == nil && c.at < to {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("read log again for its cuts: %w", err)
	}
	return nil
}

// Out returns where the trim writes: it is passed on to w, and summed.
func (c *CutsWriter) Out(w io.Writer) io.Writer {
	c.out.w = w
	return &c.out
}

// Close writes the end. failed is what the trim came to: with an error the file stays without an end, and is no cuts
// file.
func (c *CutsWriter) Close(failed error) error {
	if failed != nil {
		return nil //nolint:nilerr // the caller has it
	}
	if err := c.record(binary.AppendUvarint([]byte{recordEnd}, uint64(c.size-c.to))); err != nil {
		return err
	}
	if err := c.pass(c.size, c.sum); err != nil {
		return err
	}
	if err := c.z.Close(); err != nil {
		return fmt.Errorf("write cuts: %w", err)
	}
	if n := c.put + c.size - c.to; n != c.out.n {
		return fmt.Errorf("write cuts: %d bytes were written, %d are told: %w", c.out.n, n, tidemark.ErrInvalid)
	}
	c.out.close()
	c.foot.Bytes, c.foot.Sum = c.size, sumText(c.sum)
	c.foot.Trimmed, c.foot.Block, c.foot.Marks = c.out.n, c.out.block, c.out.marks
	raw, err := json.Marshal(c.foot)
	if err == nil {
		raw = append(raw, '\n')
		_, err = c.w.Write(fmt.Appendf(raw, cutsLast, len(raw), crc(raw)))
	}
	if err != nil {
		return fmt.Errorf("write cuts: %w", err)
	}
	return nil
}

// marker passes on what is written, and sums it by blocks.
type marker struct {
	w     io.Writer
	n     int64
	block int64
	part  *xxhash.Digest
	marks []byte
}

// Write implements io.Writer.
func (m *marker) Write(p []byte) (int, error) {
	n, err := m.w.Write(p)
	for p = p[:n]; len(p) > 0; {
		rest := min(m.block-m.n%m.block, int64(len(p)))
		_, _ = m.part.Write(p[:rest]) // it never fails
		m.n += rest
		p = p[rest:]
		if m.n%m.block == 0 {
			m.mark()
		}
	}
	return n, err
}

func (m *marker) mark() {
	m.marks = binary.LittleEndian.AppendUint64(m.marks, m.part.Sum64())
	m.part.Reset()
}

// close sums the last block.
func (m *marker) close() {
	if m.n%m.block != 0 {
		m.mark()
	}
}

func sumText(sum *xxhash.Digest) string { return fmt.Sprintf("%016x", sum.Sum64()) }

func crc(p []byte) uint32 { return crc32.Checksum(p, crc32.MakeTable(crc32.Castagnoli)) }

// noEOF makes the end of a file that is shorter than it was an error.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
