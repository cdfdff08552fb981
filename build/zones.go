package main

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// zonesFrom is the second from which the Worker's zones are exact: the beginning of 2000. What lies before is
// more than half of the tables, and no message is as old.
const zonesFrom = 946_684_800

// zone is one file of the time zone database.
type zone struct{ name, data string }

// smallZones gives a Go file that takes the place of the data in time/tzdata: all zones of the
// toolchain, without what changed before 2000, and laid out so that they compress well.
func smallZones(archive string) ([]byte, error) {
	zones, err := readZones(archive)
	if err != nil {
		return nil, fmt.Errorf("read zones of %s: %w", archive, err)
	}
	for i, z := range zones {
		if zones[i].data, err = trimZone(z.data, zonesFrom); err != nil {
			return nil, fmt.Errorf("trim zone %s: %w", z.name, err)
		}
	}
	return []byte("package tzdata\n\nconst zipdata = " + strconv.Quote(packZones(zones)) + "\n"), nil
}

func readZones(archive string) ([]zone, error) {
	r, err := zip.OpenReader(archive)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var zones []zone
	for _, f := range r.File {
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		body, err := f.Open()
		if err != nil {
			return nil, err
		}
		raw, err := io.ReadAll(body)
		if err != nil {
			return nil, err
		}
		zones = append(zones, zone{f.Name, string(raw)})
	}
	return zones, nil
}

// tzHeader is what stands before each of the two blocks of a TZif file (RFC 9636): the magic
// number, the version, and six counts.
type tzHeader struct {
	Magic                                [4]byte
	Version                              byte
	_                                    [15]byte
	UTs, Stds, Leaps, Times, Types, Text uint32
}

var tzMagic = [4]byte{'T', 'Z', 'i', 'f'}

// tzType is one offset of a zone, with the place of its abbreviation in the text.
type tzType struct {
	Offset int32
	DST    bool
	Text   uint8
}

// tzBlock is the second block of a TZif file, whose times have 64 bits.
type tzBlock struct {
	times  []int64
	which  []uint8 // the type from each time on
	types  []tzType
	text   []byte
	footer []byte // the rule for all later times
}

func parseZone(data string) (b tzBlock, err error) {
	r := bytes.NewReader([]byte(data))
	var h tzHeader
	read := func(into any) { err = errors.Join(err, binary.Read(r, binary.BigEndian, into)) }
	read(&h)
	_, seek := r.Seek(int64(h.Times*5+h.Types*6+h.Text+h.Leaps*8+h.Stds+h.UTs), io.SeekCurrent)
	read(&h)
	if err = errors.Join(err, seek); err != nil || h.Magic != tzMagic || int(h.Times)*9 > len(data) {
		return b, fmt.Errorf("no second block: %w", errors.Join(err, errors.ErrUnsupported))
	}
	b = tzBlock{times: make([]int64, h.Times), which: make([]uint8, h.Times), types: make([]tzType, h.Types), text: make([]byte, h.Text)}
	read(b.times)
	read(b.which)
	read(b.types)
	read(b.text)
	read(make([]byte, h.Leaps*12+h.Stds+h.UTs))
	b.footer = []byte(data[len(data)-r.Len():])
	return b, err
}

// trimZone drops the times before the one that holds at from, with the types that only they used.
func trimZone(data string, from int64) (string, error) {
	b, err := parseZone(data)
	if err != nil {
		return "", err
	}
	first, _ := slices.BinarySearch(b.times, from+1)
	var old []uint8 // the types that stay
	if first > 0 {
		first--
	} else {
		old = append(old, 0) // it holds before the first time
	}
	kept := tzBlock{times: b.times[first:], footer: b.footer}
	for _, w := range b.which[first:] {
		if !slices.Contains(old, w) {
			old = append(old, w)
		}
		kept.which = append(kept.which, uint8(slices.Index(old, w)))
	}
	if int(slices.Max(old)) >= len(b.types) {
		return "", errors.New("it lacks a type")
	}
	for _, w := range old {
		t := b.types[w]
		if int(t.Text) >= len(b.text) {
			return "", errors.New("it lacks an abbreviation")
		}
		name, _, _ := bytes.Cut(b.text[t.Text:], []byte{0})
		name = append(slices.Clone(name), 0)
		if !bytes.Contains(kept.text, name) {
			kept.text = append(kept.text, name...)
		}
		t.Text = uint8(bytes.Index(kept.text, name))
		kept.types = append(kept.types, t)
	}
	return kept.file()
}

// file writes a TZif file whose first block, for readers of 32 bits, is empty.
func (b tzBlock) file() (string, error) {
	empty := tzHeader{Magic: tzMagic, Version: '2'}
	full := empty
	full.Times, full.Types, full.Text = uint32(len(b.times)), uint32(len(b.types)), uint32(len(b.text))
	var w bytes.Buffer
	for _, part := range []any{empty, full, b.times, b.which, b.types, b.text, b.footer} {
		if err := binary.Write(&w, binary.BigEndian, part); err != nil {
			return "", err
		}
	}
	return w.String(), nil
}

// packZones writes the archive that time/tzdata reads: stored, without checksums, those that end
// alike side by side.
func packZones(zones []zone) string {
	reversed := func(s string) string {
		b := []byte(s)
		slices.Reverse(b)
		return string(b)
	}
	zones = slices.Clone(zones)
	slices.SortStableFunc(zones, func(a, b zone) int { return strings.Compare(reversed(a.data), reversed(b.data)) })
	le := binary.LittleEndian
	var files, directory []byte
	for _, z := range zones {
		size := le.AppendUint32(le.AppendUint32(nil, uint32(len(z.data))), uint32(len(z.data)))
		name := le.AppendUint16(nil, uint16(len(z.name)))
		directory = append(directory, "PK\x01\x02"+strings.Repeat("\x00", 16)+string(size)+string(name)+strings.Repeat("\x00", 12)...)
		directory = append(le.AppendUint32(directory, uint32(len(files))), z.name...)
		files = append(files, "PK\x03\x04"+strings.Repeat("\x00", 14)+string(size)+string(name)+"\x00\x00"+z.name+z.data...)
	}
	end := append([]byte("PK\x05\x06"), 0, 0, 0, 0)
	end = le.AppendUint16(le.AppendUint16(end, uint16(len(zones))), uint16(len(zones)))
	end = le.AppendUint32(le.AppendUint32(end, uint32(len(directory))), uint32(len(files)))
	return string(files) + string(directory) + string(end) + "\x00\x00"
}
