package snapshot

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// end is the last member of an archive.
type end struct {
	Members int    `json:"members"` // before this one
	Bytes   int64  `json:"bytes"`   // of their content
	SHA256  string `json:"sha256"`  // over name, line feed, size in decimal, line feed and content of each
}

// Writer writes an archive. It is used by one caller at a time. The first error stays: the archive is then no good,
// and a reader notices by its missing end.
type Writer struct {
	out   *packer
	sum   hash.Hash
	end   end
	lines partBuffer
	names seen
	err   error
}

// partBuffer gathers lines of one stream.
type partBuffer struct {
	stream string
	data   []byte
	last   map[string]int // number of the last part of each stream
}

// NewWriter begins an archive with its manifest. Format, version and the bound of the lineage are filled in.
func NewWriter(w io.Writer, m Manifest) (*Writer, error) {
	m.Format, m.Version = ArchiveFormat, ArchiveVersion
	if over := len(m.Lineage) - MaxLineage; over > 0 {
		m.Lineage, m.LineageOmitted = m.Lineage[over:], m.LineageOmitted+over
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("write archive: %w", err)
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("write archive: manifest: %w", err)
	}
	if len(raw) > MaxManifest {
		return nil, fmt.Errorf("write archive: manifest of %d bytes, over %d: %w", len(raw), MaxManifest, tidemark.ErrTooLarge)
	}
	a := &Writer{out: newPacker(w), sum: sha256.New(), names: seen{}, lines: partBuffer{last: map[string]int{}}}
	return a, a.member(manifestName, raw)
}

// Line appends one line, given without its line feed, to a stream such as "log". Lines of one stream keep their order.
func (a *Writer) Line(stream string, line []byte) error {
	if a.err != nil {
		return a.err
	}
	if !isStream(stream) {
		return a.fail(badName(stream, "want 1 to 20 small letters for a stream"))
	}
	if bytes.IndexByte(line, '\n') >= 0 {
		return a.fail(fmt.Errorf("line of %s has a line feed inside: %w", stream, tidemark.ErrInvalid))
	}
	p := &a.lines
	if p.stream != stream || len(p.data)+len(line)+1 > maxPart {
		if err := a.flush(); err != nil {
			return err
		}
		p.stream = stream
	}
	p.data = append(append(p.data, line...), '\n')
	return nil
}

// flush writes the lines that were gathered as a part.
func (a *Writer) flush() error {
	p := &a.lines
	if len(p.data) == 0 {
		return a.err
	}
	p.last[p.stream]++
	err := a.member(fmt.Sprintf("%s/%06d.jsonl", p.stream, p.last[p.stream]), p.data)
	if p.data = p.data[:0]; cap(p.data) > 2*maxPart { // one long line shall not stay
		p.data = nil
	}
	return err
}

// Log writes the log of Claude Code: exactly size bytes of r.
func (a *Writer) Log(size int64, r io.Reader) error { return a.named(logName, size, r) }

// Side writes a file that belongs to that log: exactly size bytes of r. path is relative, with slashes.
func (a *Writer) Side(path string, size int64, r io.Reader) error {
	return a.named(sideFolder+path, size, r)
}

// Blob writes content by its hash: exactly size bytes of r, which are held against the hash. The same blob twice is
// written once. It may come to stand before lines that were given earlier, never behind ones that are given later.
func (a *Writer) Blob(h tidemark.Hash, size int64, r io.Reader) error {
	if a.err == nil && a.names.has(blobFolder+string(h)) {
		return nil
	}
	own := sha256.New()
	if err := a.named(blobFolder+string(h), size, io.TeeReader(r, own)); err != nil {
		return err
	}
	if got := hex.EncodeToString(own.Sum(nil)); got != string(h) {
		return a.fail(fmt.Errorf("blob %s: its bytes have the hash %s: %w", h, got, tidemark.ErrInvalid))
	}
	return nil
}

// Close writes the end. Without it the archive counts as cut off. It does not close what it writes to.
func (a *Writer) Close() error {
	if err := a.flush(); err != nil {
		return err
	}
	a.end.SHA256 = hex.EncodeToString(a.sum.Sum(nil))
	raw, err := json.Marshal(a.end)
	if err != nil {
		return a.fail(err)
	}
	if err := a.member(endName, raw); err != nil {
		return err
	}
	if _, err := a.out.Write(make([]byte, 2*blockSize)); err != nil {
		return a.fail(err)
	}
	if err := a.out.close(); err != nil {
		return a.fail(err)
	}
	a.err = fmt.Errorf("write archive: it is closed: %w", tidemark.ErrInvalid)
	return nil
}

// named writes a member between the first and the last.
func (a *Writer) named(name string, size int64, r io.Reader) error {
	if a.err != nil {
		return a.err
	}
	if _, err := nameMember(name); err != nil {
		return a.fail(err)
	}
	return a.copy(name, size, r)
}

// member writes a member that is in memory.
func (a *Writer) member(name string, data []byte) error {
	if err := a.begin(name, int64(len(data))); err != nil {
		return err
	}
	a.sum.Write(data)
	if _, err := a.out.Write(data); err != nil {
		return a.fail(err)
	}
	return a.pad(int64(len(data)))
}

// copy writes a member of size bytes from r.
func (a *Writer) copy(name string, size int64, r io.Reader) error {
	if err := a.begin(name, size); err != nil {
		return err
	}
	n, err := io.Copy(io.MultiWriter(a.sum, a.out), io.LimitReader(r, size))
	if err != nil {
		return a.fail(fmt.Errorf("member %s: %w", name, err))
	}
	if n < size {
		return a.fail(fmt.Errorf("member %s: %d bytes came of %d: %w", name, n, size, io.ErrUnexpectedEOF))
	}
	return a.pad(size)
}

// begin writes the header of a member and counts it.
func (a *Writer) begin(name string, size int64) error {
	if a.err != nil {
		return a.err
	}
	l := Limits{}.filled()
	switch {
	case !a.names.add(name):
		return a.fail(badName(name, "is there twice"))
	case size < 0 || size > l.Member:
		return a.fail(fmt.Errorf("member %s: %d bytes, over %d: %w", name, size, l.Member, tidemark.ErrTooLarge))
	case a.end.Members >= l.Members:
		return a.fail(fmt.Errorf("over %d members: %w", l.Members, tidemark.ErrTooLarge))
	case a.end.Bytes+size > l.Total:
		return a.fail(fmt.Errorf("over %d bytes: %w", l.Total, tidemark.ErrTooLarge))
	}
	head, err := tarHeader(name, size)
	if err != nil {
		return a.fail(err)
	}
	a.end.Members, a.end.Bytes = a.end.Members+1, a.end.Bytes+size
	_, _ = fmt.Fprintf(a.sum, "%s\n%d\n", name, size) // a hash takes everything
	if _, err := a.out.Write(head); err != nil {
		return a.fail(err)
	}
	return nil
}

// pad fills a member up to whole blocks.
func (a *Writer) pad(size int64) error {
	if _, err := a.out.Write(make([]byte, padding(size))); err != nil {
		return a.fail(err)
	}
	return nil
}

func (a *Writer) fail(err error) error {
	a.err = fmt.Errorf("write archive: %w", err)
	return a.err
}

// packer compresses. Where the data is so much alike that a reader would have to take the archive for a bomb, it
// stores for a while: that costs one byte in a hundred.
type packer struct {
	to     *counter
	z      *gzip.Writer
	best   *gzip.Writer
	plain  *gzip.Writer // made when it is wanted first
	raw    int64        // bytes in
	window int64        // of them since the last look at the ratio
}

func newPacker(w io.Writer) *packer {
	to := &counter{w: w}
	z, _ := gzip.NewWriterLevel(to, gzip.BestSpeed) // a known level
	return &packer{to: to, z: z, best: z}
}

// Write compresses p.
func (p *packer) Write(b []byte) (int, error) {
	n := 0
	for len(b) > 0 {
		k := min(int64(len(b)), ratioWindow-p.window)
		w, err := p.z.Write(b[:k])
		n += w
		if err != nil {
			return n, err
		}
		p.raw, p.window, b = p.raw+k, p.window+k, b[k:]
		if p.window == ratioWindow {
			if err := p.look(); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// look chooses how the next window is packed.
func (p *packer) look() error {
	p.window = 0
	if err := p.z.Flush(); err != nil {
		return err
	}
	next := p.best
	if p.raw > p.to.n*ratioWrite || p.z == p.plain && p.raw > p.to.n*ratioWrite/2 {
		if p.plain == nil {
			p.plain, _ = gzip.NewWriterLevel(p.to, gzip.NoCompression) // a known level
		}
		next = p.plain
	}
	if next == p.z {
		return nil
	}
	if err := p.z.Close(); err != nil {
		return err
	}
	next.Reset(p.to)
	p.z = next
	return nil
}

func (p *packer) close() error { return p.z.Close() }

// counter counts what passes.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}
