package trim

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
)

// Text becomes small, what would not stays as it is, and both come back, read or skipped.
func TestPacker(t *testing.T) {
	rnd := rand.New(rand.NewPCG(30, 31))
	noise := make([]byte, 2*blockBytes+1000)
	for i := range noise {
		noise[i] = byte(rnd.Uint32())
	}
	text := bytes.Repeat([]byte("what a tool said, again and again\n"), 2*blockBytes/34)
	for name, c := range map[string]struct {
		in          []byte
		least, most int
	}{
		"nothing":   {nil, 0, 0},
		"one byte":  {text[:1], 1 + blockHead, 1 + blockHead},
		"a block":   {noise[:blockBytes], blockBytes + blockHead, blockBytes + blockHead},
		"text":      {text, 1, len(text) / 4},
		"noise":     {noise, len(noise) + 3*blockHead, len(noise) + 3*blockHead},
		"both kind": {append(bytes.Clone(text[:blockBytes]), noise...), len(noise), len(noise) + blockBytes/4},
	} {
		var file bytes.Buffer
		p := newPacker(&file)
		for rest := c.in; len(rest) > 0; {
			n := min(len(rest), 1+rnd.IntN(300_000))
			if _, err := p.Write(rest[:n]); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			rest = rest[n:]
		}
		if err := p.close(true); err != nil || file.Len() < c.least || file.Len() > c.most {
			t.Errorf("%s: %v, %d bytes became %d", name, err, len(c.in), file.Len())
		}
		skip := len(c.in) / 3
		u := newUnpacker(bytes.NewReader(file.Bytes()))
		err := u.skip(int64(skip))
		back, e := io.ReadAll(u)
		if err != nil || e != nil || !bytes.Equal(back, c.in[skip:]) {
			t.Errorf("%s: %v, %v, equal %t", name, err, e, bytes.Equal(back, c.in[skip:]))
		}
		if err := u.skip(1); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: skipped behind the end: %v", name, err)
		}
	}
}

// What is not whole is not written on, and an error of the file comes back at the latest with the end.
func TestPackerFails(t *testing.T) {
	var file bytes.Buffer
	p := newPacker(&file)
	_, _ = p.Write([]byte("half"))
	if err := p.close(false); err != nil || file.Len() > 0 {
		t.Errorf("%v, %d bytes", err, file.Len())
	}
	full := errors.New("disk full")
	p = newPacker(&broken{10, full})
	_, err := p.Write(make([]byte, 3*blockBytes))
	if e := p.close(true); !errors.Is(errors.Join(err, e), full) {
		t.Errorf("%v, %v", err, e)
	}
}
