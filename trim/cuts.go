package trim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// A cuts file holds what a trim took out, so that it can be undone. It is
//
//	a line of JSON: what it is, for people and for programs that come later (cutsHead)
//	a stream in blocks, each with its sum (packer): the cuts in order, then the end
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
	cutsVersion = 2

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
// writes goes through [CutsWriter.Out]. Not to be used by two goroutines at once.
type CutsWriter struct {
	rec     *recorder
	w       io.Writer
	foot    cutsFoot
	size    int64 // of the log
	out     marker
	put, to int64
	batch   []Cut
}

// NewCutsWriter begins a cuts file for the first size bytes of a log. It reads the log in a goroutine of its own, which
// ends with Close: each writer must be closed, whatever came of the trim.
func NewCutsWriter(w io.Writer, in io.ReaderAt, size int64, threshold int, at time.Time) (*CutsWriter, error) {
	head, err := json.Marshal(cutsHead{Format: cutsFormat, Version: cutsVersion, At: at.UTC().Truncate(time.Second), Threshold: threshold, Bytes: size})
	if err != nil {
		return nil, fmt.Errorf("write cuts: %w", err)
	}
	if _, err := w.Write(append(head, '\n')); err != nil {
		return nil, fmt.Errorf("write cuts: %w", err)
	}
	c := &CutsWriter{w: w, size: size, out: marker{block: minMarkBlock}}
	for c.out.block*maxMarks < size {
		c.out.block *= 2
	}
	c.rec = startRecorder(w, in, size)
	return c, nil
}

// Cut implements [Sink].
func (c *CutsWriter) Cut(cut Cut) error {
	if cut.From < c.to || cut.To < cut.From || cut.To > c.size || cut.Put < 0 || len(cut.Handle) > maxHandle {
		return fmt.Errorf("write cuts: the cut from %d to %d behind %d, of %d bytes: %w", cut.From, cut.To, c.to, c.size, tidemark.ErrInvalid)
	}
	c.put += cut.From - c.to + cut.Put
	c.to = cut.To
	c.foot.Cuts++
	if c.batch = append(c.batch, cut); len(c.batch) < recordBatch {
		return nil
	}
	return c.flush()
}

// Out returns where the trim writes: it is passed on to w, and summed.
func (c *CutsWriter) Out(w io.Writer) io.Writer {
	c.out.w = w
	return &c.out
}

func (c *CutsWriter) flush() error {
	batch := c.batch
	c.batch = nil
	return c.rec.take(batch)
}

// Close writes the end. failed is what the trim came to: with an error the file stays without an end, and is no cuts
// file.
func (c *CutsWriter) Close(failed error) error {
	err := failed
	if err == nil {
		err = c.flush()
	}
	c.rec.done = err == nil
	if e := c.rec.close(); err == nil {
		err = e
	}
	if err != nil {
		if failed != nil {
			return nil //nolint:nilerr // the caller has it
		}
		return err
	}
	if n := c.put + c.size - c.to; n != c.out.n {
		return fmt.Errorf("write cuts: %d bytes were written, %d are told: %w", c.out.n, n, tidemark.ErrInvalid)
	}
	return c.writeFoot()
}

func (c *CutsWriter) writeFoot() error {
	c.out.close()
	c.foot.Bytes, c.foot.Sum = c.size, sumText(c.rec.sum.sum())
	c.foot.Trimmed, c.foot.Block, c.foot.Marks = c.out.n, c.out.block, c.out.marks
	raw, err := json.Marshal(c.foot)
	if err != nil {
		return fmt.Errorf("write cuts: %w", err)
	}
	raw = append(raw, '\n')
	raw = fmt.Appendf(raw, cutsLast, len(raw), crc(raw))
	if _, err := c.w.Write(raw); err != nil {
		return fmt.Errorf("write cuts: %w", err)
	}
	return nil
}

// marker passes on what is written, and sums it by blocks.
type marker struct {
	w     io.Writer
	n     int64
	block int64
	part  sum64
	marks []byte
}

// Write implements io.Writer.
func (m *marker) Write(p []byte) (int, error) {
	n, err := m.w.Write(p)
	for p = p[:n]; len(p) > 0; {
		rest := min(m.block-m.n%m.block, int64(len(p)))
		m.part.add(p[:rest])
		m.n += rest
		p = p[rest:]
		if m.n%m.block == 0 {
			m.mark()
		}
	}
	return n, err
}

func (m *marker) mark() {
	m.marks = binary.LittleEndian.AppendUint64(m.marks, m.part.sum())
	m.part = sum64{}
}

// close sums the last block.
func (m *marker) close() {
	if m.n%m.block != 0 {
		m.mark()
	}
}

// recordBatch is how many cuts are handed to the recorder at once.
const recordBatch = 64

// recorder writes the stream of cuts in a goroutine, so that the trim goes on meanwhile. It reads the log from front to
// back once more, whether it is cut or not: in large pieces that costs less than the cuts alone would, and all of it is
// to be summed.
type recorder struct {
	in    io.ReaderAt
	size  int64 // of the log
	pack  *packer
	cuts  chan []Cut
	ended chan struct{}
	err   error // of the goroutine, to be read when it has ended
	done  bool  // all went well, so that the end is written
	at    int64 // how far the log is recorded
	sum   sum64 // of what was read
	buf   []byte
	piece []byte // of buf: what was read and is not recorded yet
}

func startRecorder(w io.Writer, in io.ReaderAt, size int64) *recorder {
	r := &recorder{
		in: in, size: size, cuts: make(chan []Cut, 8), ended: make(chan struct{}), buf: make([]byte, cutsPiece), pack: newPacker(w),
	}
	go r.run()
	return r
}

// take hands over cuts. It fails when an earlier one could not be written.
func (r *recorder) take(cuts []Cut) error {
	select {
	case r.cuts <- cuts:
		return nil
	case <-r.ended:
		return r.err
	}
}

// run writes cuts until there are no more, or one fails.
func (r *recorder) run() {
	defer close(r.ended)
	for cuts := range r.cuts {
		for _, c := range cuts {
			if r.err = r.write(c); r.err != nil {
				return
			}
		}
	}
}

func (r *recorder) write(c Cut) error {
	head := make([]byte, 0, 1+4*binary.MaxVarintLen64+maxHandle)
	head = append(head, recordCut)
	head = binary.AppendUvarint(head, uint64(c.From-r.at))
	head = binary.AppendUvarint(head, uint64(c.To-c.From))
	head = binary.AppendUvarint(head, uint64(c.Put))
	head = binary.AppendUvarint(head, uint64(len(c.Handle)))
	head = append(head, c.Handle...)
	if _, err := r.pack.Write(head); err != nil {
		return err
	}
	if err := r.to(c.From, false); err != nil {
		return err
	}
	return r.to(c.To, true)
}

// to goes on to a place of the log, and keeps what it passes over when that is cut.
func (r *recorder) to(end int64, cut bool) error {
	for r.at < end {
		if len(r.piece) == 0 {
			r.piece = r.buf[:min(r.size-r.at, int64(len(r.buf)))]
			if got, err := r.in.ReadAt(r.piece, r.at); got < len(r.piece) {
				return fmt.Errorf("read log again: %w", noEOF(err))
			}
			r.sum.add(r.piece)
		}
		n := min(end-r.at, int64(len(r.piece)))
		if cut {
			if _, err := r.pack.Write(r.piece[:n]); err != nil {
				return err
			}
		}
		r.piece = r.piece[n:]
		r.at += n
	}
	return nil
}

// close ends the goroutines and the stream.
func (r *recorder) close() error {
	close(r.cuts)
	<-r.ended
	err := r.err
	if err == nil && r.done {
		if _, err = r.pack.Write(binary.AppendUvarint([]byte{recordEnd}, uint64(r.size-r.at))); err == nil {
			err = r.to(r.size, false)
		}
	}
	if e := r.pack.close(err == nil && r.done); err == nil {
		err = e
	}
	return err
}

// noEOF makes the end of a file that is shorter than it was an error.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
