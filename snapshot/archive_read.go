package snapshot

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Reader reads an archive member by member. What it gave is to be trusted when [Reader.Next] said io.EOF and not
// before: only then is the archive known to be whole. It is used by one caller at a time.
type Reader struct {
	limits   Limits
	in       *unpacker
	manifest Manifest
	sum      hash.Hash
	seen     end // so far
	names    seen
	parts    map[string]int // number of the last part of each stream
	cur      Member
	left     int64 // bytes of the current member that were not read yet
	padding  int64
	blob     hash.Hash // of the current member, when it is a blob
	err      error     // stays
}

// NewReader reads the manifest of an archive.
//
// # Errors
//
// tidemark.ErrInvalid for what is no archive, or a damaged one; tidemark.ErrTooLarge for one over the limits. Errors of
// in are given on.
func NewReader(in io.Reader, l Limits) (*Reader, error) {
	u := newUnpacker(in)
	a := &Reader{limits: l.filled(), in: u, sum: sha256.New(), names: seen{}, parts: map[string]int{}}
	u.ratio = a.limits.Ratio
	name, size, err := a.header()
	if err != nil {
		return nil, err
	}
	if name != manifestName {
		return nil, a.fail(badName(name, "want manifest.json first; is it the archive of a snapshot?"))
	}
	if size > MaxManifest {
		return nil, a.fail(fmt.Errorf("manifest.json: %d bytes, over %d: %w", size, MaxManifest, tidemark.ErrTooLarge))
	}
	raw, err := a.whole(name, size)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &a.manifest); err != nil {
		return nil, a.fail(fmt.Errorf("manifest.json: %w: %w", err, tidemark.ErrInvalid))
	}
	if err := a.manifest.check(); err != nil {
		return nil, a.fail(err)
	}
	return a, nil
}

// Manifest is the first member.
func (a *Reader) Manifest() Manifest { return a.manifest }

// Next goes to the next member. What was not read of the one before is read and checked first. io.EOF says that the
// archive is whole, and that nothing lies behind it.
func (a *Reader) Next() (Member, error) {
	if err := a.skip(); err != nil {
		return Member{}, err
	}
	name, size, err := a.header()
	if err != nil {
		return Member{}, err
	}
	if name == endName {
		return Member{}, a.finish(size)
	}
	m, err := nameMember(name)
	if err != nil {
		return Member{}, a.fail(err)
	}
	m.Size = size
	if err := a.allowed(m); err != nil {
		return Member{}, a.fail(err)
	}
	a.blob = nil
	if m.Kind == MemberBlob {
		a.blob = sha256.New()
	}
	a.begin(name, size)
	a.cur = m
	return m, a.checked() // an empty blob is read already
}

// allowed holds a member against the limits and against what the kind of archive has.
func (a *Reader) allowed(m Member) error {
	switch claude := a.manifest.Kind == OfClaude; {
	case !a.names.add(m.Name):
		return badName(m.Name, "is there twice")
	case a.seen.Members >= a.limits.Members:
		return fmt.Errorf("over %d members: %w", a.limits.Members, tidemark.ErrTooLarge)
	case m.Size > a.limits.Member:
		return fmt.Errorf("member %s: %d bytes, over %d: %w", m.Name, m.Size, a.limits.Member, tidemark.ErrTooLarge)
	case a.seen.Bytes+m.Size > a.limits.Total:
		return fmt.Errorf("over %d bytes in all members: %w", a.limits.Total, tidemark.ErrTooLarge)
	case claude && m.Kind == MemberPart, !claude && (m.Kind == MemberLog || m.Kind == MemberSide):
		return badName(m.Name, "an archive of kind "+a.manifest.Kind+" has no such member")
	case m.Kind == MemberPart && m.part != a.parts[m.Stream]+1:
		return badName(m.Name, fmt.Sprintf("want part %d of %s", a.parts[m.Stream]+1, m.Stream))
	}
	if m.Kind == MemberPart {
		a.parts[m.Stream]++
	}
	return nil
}

// Read reads of the current member, io.EOF at its end.
func (a *Reader) Read(p []byte) (int, error) {
	if a.err != nil {
		return 0, a.err
	}
	if a.left == 0 {
		return 0, io.EOF
	}
	n, err := a.in.Read(p[:min(int64(len(p)), a.left)])
	a.left -= int64(n)
	a.sum.Write(p[:n])
	if a.blob != nil {
		a.blob.Write(p[:n])
	}
	if err := a.checked(); err != nil {
		return 0, err
	}
	if err != nil && n == 0 {
		return 0, a.fail(a.in.told(err))
	}
	return n, nil
}

// checked holds a blob that was read to its end against its hash.
func (a *Reader) checked() error {
	if a.blob == nil || a.left > 0 {
		return nil
	}
	got := hex.EncodeToString(a.blob.Sum(nil))
	if a.blob = nil; got != string(a.cur.Hash) {
		return a.fail(fmt.Errorf("blob %s: its bytes have the hash %s: %w", a.cur.Hash, got, tidemark.ErrInvalid))
	}
	return nil
}

// Lines gives the lines of the current member without their line feeds; a line is good until the next one. most bounds
// a line in bytes.
func (a *Reader) Lines(most int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		const buffer = 64 << 10
		in, long := bufio.NewReaderSize(a, buffer), []byte(nil)
		for n := 1; ; n++ {
			line, err := in.ReadSlice('\n')
			if errors.Is(err, bufio.ErrBufferFull) {
				long = long[:0]
				for errors.Is(err, bufio.ErrBufferFull) && len(long) <= most {
					long = append(long, line...)
					line, err = in.ReadSlice('\n')
				}
				line = append(long, line...)
				long = line
			}
			if len(line) > most+1 {
				yield(nil, a.fail(fmt.Errorf("member %s: line %d is over %d bytes: %w", a.cur.Name, n, most, tidemark.ErrTooLarge)))
				return
			}
			if err != nil && !errors.Is(err, io.EOF) {
				yield(nil, err)
				return
			}
			if len(line) > 0 && !yield(bytes.TrimSuffix(line, []byte{'\n'}), nil) || err != nil {
				return
			}
		}
	}
}

// skip reads the rest of the current member and what fills it up.
func (a *Reader) skip() error {
	if a.err != nil {
		return a.err
	}
	if a.left > 0 {
		if _, err := io.Copy(io.Discard, readOnly{a}); err != nil {
			return err
		}
	}
	if a.padding > 0 {
		fill := make([]byte, a.padding)
		if _, err := io.ReadFull(a.in, fill); err != nil {
			return a.fail(a.in.told(err))
		}
		if !zeros(fill) {
			return a.fail(fmt.Errorf("member %s: something lies behind its end: %w", a.cur.Name, tidemark.ErrInvalid))
		}
		a.padding = 0
	}
	return nil
}

// header reads the header of a member.
func (a *Reader) header() (string, int64, error) {
	if a.err != nil {
		return "", 0, a.err
	}
	h := make([]byte, blockSize)
	if _, err := io.ReadFull(a.in, h); err != nil {
		return "", 0, a.fail(a.in.told(err))
	}
	if zeros(h) {
		return "", 0, a.fail(fmt.Errorf("it ends without end.json: it was cut off: %w", tidemark.ErrInvalid))
	}
	name, size, err := readTarHeader(h)
	if err != nil {
		return "", 0, a.fail(err)
	}
	return name, size, nil
}

// begin counts a member that is read now.
func (a *Reader) begin(name string, size int64) {
	a.cur = Member{Name: name, Size: size}
	a.left, a.padding = size, padding(size)
	a.seen.Members, a.seen.Bytes = a.seen.Members+1, a.seen.Bytes+size
	_, _ = fmt.Fprintf(a.sum, "%s\n%d\n", name, size) // a hash takes everything
}

// whole reads a small member.
func (a *Reader) whole(name string, size int64) ([]byte, error) {
	a.begin(name, size)
	raw, err := io.ReadAll(a)
	if err != nil {
		return nil, err
	}
	return raw, a.skip()
}

// finish reads the last member and holds it against what was read. It returns io.EOF.
func (a *Reader) finish(size int64) error {
	if size > maxEnd {
		return a.fail(fmt.Errorf("end.json: %d bytes, over %d: %w", size, maxEnd, tidemark.ErrTooLarge))
	}
	got := a.seen
	got.SHA256 = hex.EncodeToString(a.sum.Sum(nil))
	raw, err := a.whole(endName, size)
	if err != nil {
		return err
	}
	var want end
	if err := json.Unmarshal(raw, &want); err != nil {
		return a.fail(fmt.Errorf("end.json: %w: %w", err, tidemark.ErrInvalid))
	}
	if got != want {
		return a.fail(fmt.Errorf("it was changed or damaged: %d members of %d bytes with hash %.16s…, end.json says %d of %d with %.16s…: %w",
			got.Members, got.Bytes, got.SHA256, want.Members, want.Bytes, want.SHA256, tidemark.ErrInvalid))
	}
	if err := a.nothing(); err != nil {
		return a.fail(err)
	}
	a.err = io.EOF
	return io.EOF
}

// nothing reads what lies behind the last member: zeros, as tar fills up its files, and the end.
func (a *Reader) nothing() error {
	const most = 64 << 10
	rest, err := io.ReadAll(io.LimitReader(a.in, most+1))
	if err != nil && a.in.src.err == nil && !errors.Is(err, tidemark.ErrTooLarge) {
		return fmt.Errorf("its last bytes were cut off, or something lies behind its end: %w", tidemark.ErrInvalid)
	}
	if err != nil {
		return a.in.told(err)
	}
	if len(rest) > most || !zeros(rest) {
		return fmt.Errorf("something lies behind its end: %w", tidemark.ErrInvalid)
	}
	return nil
}

func (a *Reader) fail(err error) error {
	a.err = fmt.Errorf("read archive: %w", err)
	return a.err
}

func zeros(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

// readOnly hides everything but Read.
type readOnly struct{ r io.Reader }

func (r readOnly) Read(p []byte) (int, error) { return r.r.Read(p) }

// unpacker expands, and holds what comes out against what went in.
type unpacker struct {
	src   source
	z     *gzip.Reader
	begun bool
	ratio int64
	out   int64
}

// source is where the archive comes from; it counts, and keeps an error of its own, which is none of the archive.
type source struct {
	r   io.Reader
	n   int64
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.n += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

func newUnpacker(in io.Reader) *unpacker { return &unpacker{src: source{r: in}} }

// Read expands. Its errors are for told.
func (u *unpacker) Read(p []byte) (int, error) {
	if !u.begun {
		u.begun = true
		const buffer = 32 << 10
		z, err := gzip.NewReader(bufio.NewReaderSize(&u.src, buffer))
		if err != nil {
			return 0, err
		}
		u.z = z
	}
	if u.z == nil {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := u.z.Read(p)
	if u.out += int64(n); u.out > ratioFree && u.out/u.ratio > u.src.n {
		return 0, fmt.Errorf("%d bytes expand to over %d times as much: it is made to fill a disk: %w", u.src.n, u.ratio, tidemark.ErrTooLarge)
	}
	return n, err
}

// told turns an error of Read into one that says what is wrong with the archive.
func (u *unpacker) told(err error) error {
	var damaged flate.CorruptInputError
	switch {
	case u.src.err != nil:
		return u.src.err
	case errors.Is(err, tidemark.ErrTooLarge):
		return err
	case errors.Is(err, gzip.ErrHeader):
		return fmt.Errorf("no gzip file, or something lies behind its end: %w", tidemark.ErrInvalid)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("it ends early: it was cut off: %w", tidemark.ErrInvalid)
	case errors.Is(err, gzip.ErrChecksum), errors.As(err, &damaged):
		return fmt.Errorf("it is damaged: %w: %w", err, tidemark.ErrInvalid)
	default:
		return fmt.Errorf("%w: %w", err, tidemark.ErrInvalid)
	}
}
