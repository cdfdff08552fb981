package snapshot

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"

	"github.com/tidemark-ai/tidemark"
)

// The tar format, as far as an archive uses it: POSIX ustar headers of regular files
// (https://pubs.opengroup.org/onlinepubs/9699919799/utilities/pax.html#tag_20_92_13_06). archive/tar reads every
// dialect with sparse files, links and devices, all of which an archive must refuse.
const (
	blockSize = 512

	tarName    = 0 // offsets of the fields
	tarMode    = 100
	tarSize    = 124
	tarTime    = 136
	tarSum     = 148
	tarType    = 156
	tarLink    = 157
	tarMagic   = 257
	tarPrefix  = 345
	tarEnd     = 500       // of the prefix
	tarLargest = 1<<33 - 1 // 11 octal digits
)

// tarHeader returns the header of a regular file. Everything but name and size is the same for all, so that the same
// members give the same archive.
func tarHeader(name string, size int64) ([]byte, error) {
	h := make([]byte, blockSize)
	prefix, rest := splitName(name)
	if rest == "" || size > tarLargest {
		return nil, badName(name, "its name or size does not fit into the header of a tar file")
	}
	copy(h[tarName:], rest)
	copy(h[tarPrefix:tarEnd], prefix)
	copy(h[tarMode:], "0000644\x000000000\x000000000\x00") // mode, owner, group
	copy(h[tarSize:], fmt.Sprintf("%011o\x00", size))
	copy(h[tarTime:], "00000000000\x00")
	h[tarType] = '0'
	copy(h[tarMagic:], "ustar\x0000")
	copy(h[tarSum:], fmt.Sprintf("%06o\x00 ", tarChecksum(h)))
	return h, nil
}

// splitName parts a long name at a slash: up to 155 bytes before it and up to 100 behind it. The rest is "" when that
// cannot be.
func splitName(name string) (prefix, rest string) {
	const most, mostPrefix = tarMode - tarName, tarEnd - tarPrefix
	if len(name) <= most {
		return "", name
	}
	if i := strings.IndexByte(name[len(name)-most-1:], '/'); i >= 0 {
		if at := len(name) - most - 1 + i; at <= mostPrefix && at > 0 {
			return name[:at], name[at+1:]
		}
	}
	return "", ""
}

// readTarHeader reads the header of a regular file. Anything else that tar knows is an error.
func readTarHeader(h []byte) (name string, size int64, err error) {
	if !bytes.Equal(h[tarMagic:tarMagic+5], []byte("ustar")) {
		return "", 0, fmt.Errorf("no tar file: %w", tidemark.ErrInvalid)
	}
	sum, err := octal(h[tarSum:tarType])
	if err != nil || sum != tarChecksum(h) {
		return "", 0, fmt.Errorf("header of a member: its checksum is wrong: %w", tidemark.ErrInvalid)
	}
	name = field(h[tarName:tarMode])
	if prefix := field(h[tarPrefix:tarEnd]); prefix != "" {
		name = prefix + "/" + name
	}
	switch t := h[tarType]; t {
	case '0', 0:
	case 'x', 'g', 'L':
		return "", 0, badName(name, "an extended header: pack it again with --format=ustar")
	default:
		return "", 0, badName(name, fmt.Sprintf("type %q: want regular files only", t))
	}
	if field(h[tarLink:tarMagic]) != "" {
		return "", 0, badName(name, "a link: want regular files only")
	}
	if size, err = octal(h[tarSize:tarTime]); err != nil {
		return "", 0, badName(name, "its size is no octal number")
	}
	return name, size, nil
}

// octal reads a number of a header.
func octal(b []byte) (int64, error) {
	n, err := strconv.ParseUint(strings.Trim(string(b), " \x00"), 8, 63)
	return int64(n), err
}

// field reads a text of a header.
func field(b []byte) string {
	s, _, _ := bytes.Cut(b, []byte{0})
	return string(s)
}

// tarChecksum is the sum of all bytes, with spaces for the checksum itself.
func tarChecksum(h []byte) int64 {
	var n int64
	for i, c := range h {
		if i >= tarSum && i < tarType {
			c = ' '
		}
		n += int64(c)
	}
	return n
}

// padding is how many bytes fill a member up to whole blocks.
func padding(size int64) int64 { return (blockSize - size%blockSize) % blockSize }

// seen knows names by their hash, so that many long ones cost little. Names that differ in case only are one: a folder
// on some systems has room for one of them.
type seen map[[16]byte]struct{}

func (s seen) key(name string) (k [16]byte) {
	sum := sha256.Sum256([]byte(strings.ToLower(name)))
	copy(k[:], sum[:])
	return k
}

func (s seen) has(name string) bool {
	_, ok := s[s.key(name)]
	return ok
}

// add reports whether the name is new.
func (s seen) add(name string) bool {
	k := s.key(name)
	if _, ok := s[k]; ok {
		return false
	}
	s[k] = struct{}{}
	return true
}
