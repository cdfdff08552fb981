package trim

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/klauspost/compress/s2"
)

// The stream of cuts is written in blocks: the length of the block as it is, and its length as it is written (two
// uint32, little-endian; both are one when it is not compressed), its XXH64, and its bytes.
const (
	blockBytes = 1 << 20 // of the stream
	blockHead  = 4 + 4 + 8

	// A block is compressed when samples of it become half of what they were. Less is not worth the time, which is more
	// than all else takes: pictures do not become smaller at all.
	sampleBytes = 4 << 10
	sampleEvery = 64 << 10
)

// packer writes blocks in a goroutine of its own, one while the next is filled.
type packer struct {
	w      io.Writer
	now    []byte // being filled, behind the room for its head
	work   chan []byte
	free   chan []byte
	ended  chan struct{}
	err    error // of the goroutine, to be read when free gave a block
	packed []byte
}

func newPacker(w io.Writer) *packer {
	p := &packer{w: w, now: newBlock(), work: make(chan []byte), free: make(chan []byte, 1), ended: make(chan struct{})}
	p.free <- newBlock()
	go p.run() // it ends with close
	return p
}

func newBlock() []byte { return make([]byte, blockHead, blockHead+blockBytes) }

func (p *packer) run() {
	defer close(p.ended)
	for b := range p.work {
		if p.err == nil {
			p.err = p.write(b)
		}
		p.free <- b[:blockHead]
	}
}

// Write implements io.Writer. An error may be that of an earlier block.
func (p *packer) Write(b []byte) (int, error) {
	all := len(b)
	for len(b) > 0 {
		n := min(len(b), cap(p.now)-len(p.now))
		p.now = append(p.now, b[:n]...)
		if b = b[n:]; len(p.now) == cap(p.now) {
			if err := p.send(); err != nil {
				return 0, err
			}
		}
	}
	return all, nil
}

// send hands over the present block.
func (p *packer) send() error {
	next := <-p.free
	if p.err != nil {
		p.free <- next
		return p.err
	}
	p.work <- p.now
	p.now = next
	return nil
}

// close writes the rest, when the stream is whole, and ends the goroutine.
func (p *packer) close(whole bool) error {
	var err error
	if whole && len(p.now) > blockHead {
		err = p.send()
	}
	close(p.work)
	<-p.ended
	if err == nil {
		err = p.err
	}
	return err
}

// write writes a block.
func (p *packer) write(b []byte) error {
	body := b[blockHead:]
	var s sum64
	s.add(body)
	out, size := b, len(body)
	if p.pays(body) {
		if n := blockHead + s2.MaxEncodedLen(blockBytes); p.packed == nil {
			p.packed = make([]byte, n)
		}
		if n := len(s2.Encode(p.packed[blockHead:], body)); n < size {
			out, size = p.packed[:blockHead+n], n
		}
	}
	binary.LittleEndian.PutUint32(out, uint32(len(body)))
	binary.LittleEndian.PutUint32(out[4:], uint32(size))
	binary.LittleEndian.PutUint64(out[8:], s.sum())
	if _, err := p.w.Write(out); err != nil {
		return fmt.Errorf("write cuts: %w", err)
	}
	return nil
}

// pays reports whether a block is worth to be compressed.
func (p *packer) pays(body []byte) bool {
	var room [sampleBytes + sampleBytes/4]byte // more than s2.MaxEncodedLen
	before, after := 0, 0
	for at := 0; at < len(body); at += sampleEvery {
		sample := body[at:min(at+sampleBytes, len(body))]
		before += len(sample)
		after += len(s2.Encode(room[:], sample))
	}
	return after <= before/2
}

// unpacker reads what a packer wrote.
type unpacker struct {
	r    *bufio.Reader
	body []byte // of the block that is not read yet
	room [2][]byte
}

func newUnpacker(r io.Reader) *unpacker { return &unpacker{r: bufio.NewReaderSize(r, cutsPiece)} }

// ReadByte implements io.ByteReader.
func (u *unpacker) ReadByte() (byte, error) {
	if err := u.fill(); err != nil {
		return 0, err
	}
	c := u.body[0]
	u.body = u.body[1:]
	return c, nil
}

// Read implements io.Reader.
func (u *unpacker) Read(p []byte) (int, error) {
	if err := u.fill(); err != nil {
		return 0, err
	}
	n := copy(p, u.body)
	u.body = u.body[n:]
	return n, nil
}

// skip leaves out bytes.
func (u *unpacker) skip(n int64) error {
	for n > 0 {
		if err := u.fill(); err != nil {
			return noEOF(err)
		}
		k := min(n, int64(len(u.body)))
		u.body = u.body[k:]
		n -= k
	}
	return nil
}

// fill reads the next block when the last one was read.
func (u *unpacker) fill() error {
	if len(u.body) > 0 {
		return nil
	}
	var head [blockHead]byte
	if _, err := io.ReadFull(u.r, head[:]); err != nil {
		return err // io.EOF when there are no more
	}
	size, packed := binary.LittleEndian.Uint32(head[:]), binary.LittleEndian.Uint32(head[4:])
	if size == 0 || size > blockBytes || packed == 0 || packed > size {
		return damaged("a block says that it has %d bytes, of %d", packed, size)
	}
	if u.room[0] == nil {
		u.room[0] = make([]byte, blockBytes)
	}
	body := u.room[0][:packed]
	if _, err := io.ReadFull(u.r, body); err != nil {
		return noEOF(err)
	}
	if packed < size {
		if n, err := s2.DecodedLen(body); err != nil || n != int(size) {
			return damaged("a block does not have the length that it says")
		}
		if u.room[1] == nil {
			u.room[1] = make([]byte, blockBytes)
		}
		var err error
		if body, err = s2.Decode(u.room[1], body); err != nil {
			return damaged("a block: %v", err)
		}
	}
	var s sum64
	s.add(body)
	if s.sum() != binary.LittleEndian.Uint64(head[8:]) {
		return damaged("a block does not fit its sum")
	}
	u.body = body
	return nil
}
