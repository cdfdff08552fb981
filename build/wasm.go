package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"regexp"
	"slices"
)

// section is one part of a module; a custom one has a name.
type section struct {
	kind      byte
	name      string
	all, body []byte // with its header, and without
}

// sections splits a module (WebAssembly 1.0, chapter 5.5).
func sections(raw []byte) ([]section, error) {
	const header = 8
	if len(raw) < header || string(raw[:4]) != "\x00asm" {
		return nil, errors.New("read module: it is no WebAssembly")
	}
	var out []section
	for rest := raw[header:]; len(rest) > 0; {
		size, n := binary.Uvarint(rest[1:])
		if n <= 0 || size > uint64(len(rest)-1-n) {
			return nil, errors.New("read module: a section ends after the file")
		}
		end := 1 + n + int(size)
		s := section{kind: rest[0], all: rest[:end], body: rest[1+n : end]}
		if s.kind == customSection {
			s.name, s.body = wasmName(s.body)
		}
		out, rest = append(out, s), rest[end:]
	}
	return out, nil
}

// wasmName splits off a name, which is empty if it is broken.
func wasmName(b []byte) (string, []byte) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return "", nil
	}
	return string(b[n : n+int(size)]), b[n+int(size):]
}

// The kinds of sections that are read here.
const (
	customSection   = 0
	typeSection     = 1
	importSection   = 2
	functionSection = 3
	exportSection   = 7
	startSection    = 8
	elementSection  = 9
	codeSection     = 10
	dataSection     = 11
)

// tidy gives the module without its custom sections, which hold names for debuggers, with few large
// pieces of data, with code that packs better, with like functions side by side, and with tables of
// functions that are made at the start. With lines stack traces name the places in files.
func tidy(raw []byte, parts []section, lines bool) ([]byte, error) {
	var kept []section
	var tables *unpacker
	for _, s := range parts {
		var err error
		switch s.kind {
		case customSection:
			continue
		case codeSection:
			s.body, err = shorten(s.body)
		case dataSection:
			s.body, tables, err = tidyData(s.body, lines)
		}
		if err != nil {
			return nil, err
		}
		kept = append(kept, s)
	}
	kept, err := reorder(kept)
	if err != nil {
		return nil, err
	}
	if tables != nil {
		if kept, err = addStart(kept, tables); err != nil {
			return nil, err
		}
	}
	out := slices.Clone(raw[:8])
	for _, s := range kept {
		out = append(append(out, s.kind), sized(s.body)...)
	}
	return out, nil
}

func tidyData(body []byte, lines bool) ([]byte, *unpacker, error) {
	memory, err := readData(body)
	if err != nil {
		return nil, nil, err
	}
	if err := dropTables(memory, lines); err != nil {
		return nil, nil, err
	}
	if err := joinCounters(memory); err != nil {
		return nil, nil, err
	}
	tables, err := packTables(memory)
	if err != nil {
		return nil, nil, err
	}
	return writeData(memory), tables, nil
}

// gap is how many zeros end a piece of data. The linker leaves out eight already, and writes 100,000
// pieces: fewer bytes raw, but their headers do not compress.
const gap = 64

// maxData bounds the memory that a module may fill at start.
const maxData = 256 << 20

// writeData gives a data section that fills this memory.
func writeData(memory []byte) []byte {
	var out []byte
	pieces := uint64(0)
	zeros := make([]byte, gap)
	for at := 0; at < len(memory); {
		if memory[at] == 0 {
			at++
			continue
		}
		end := len(memory)
		if n := bytes.Index(memory[at:], zeros); n >= 0 {
			end = at + n
		}
		out = appendConst(append(out, 0), int64(at))
		out = append(binary.AppendUvarint(out, uint64(end-at)), memory[at:end]...)
		pieces, at = pieces+1, end
	}
	return append(binary.AppendUvarint(nil, pieces), out...)
}

// The expression that says where a piece begins is: constant of 32 bits, end.
const (
	opConst = 0x41
	opEnd   = 0x0b
)

// readData gives the memory that a data section fills.
func readData(body []byte) ([]byte, error) {
	r := wasmReader{rest: body}
	var memory []byte
	for range r.number() {
		into, op := r.number(), r.take(1)
		begin, end := r.signed(), r.take(1)
		piece := r.bytes()
		if r.broken || into != 0 || op[0] != opConst || end[0] != opEnd || begin < 0 || begin+int64(len(piece)) > maxData {
			return nil, errors.New("read module: its data is not as the Go linker writes it")
		}
		if more := int(begin) + len(piece) - len(memory); more > 0 {
			memory = append(memory, make([]byte, more)...)
		}
		copy(memory[begin:], piece)
	}
	return memory, nil
}

// appendConst appends a constant and the end of its expression.
func appendConst(out []byte, v int64) []byte {
	return append(appendSigned(append(out, opConst), v), opEnd)
}

// appendSigned appends a number that may be negative.
func appendSigned(out []byte, v int64) []byte {
	for ; ; v >>= 7 {
		if v >= -64 && v < 64 {
			return append(out, byte(v&0x7f))
		}
		out = append(out, byte(v)|0x80)
	}
}

// unmangled is what the linker does not replace in the names of functions.
var unmangled = regexp.MustCompile(`[^\w.]`)

// codeSizes gives the bytes of code of each package; what is of none is "generated".
func codeSizes(parts []section, packages []string) (map[string]int, error) {
	of := map[string]string{}
	for _, p := range packages {
		of[unmangled.ReplaceAllString(p, "_")] = p
	}
	lengths, names, err := functions(parts)
	if err != nil {
		return nil, err
	}
	sizes := map[string]int{}
	for i, n := range lengths {
		sizes[packageOf(names[i], of)] += n
	}
	return sizes, nil
}

// packageOf finds the package whose mangled path stands before a dot of the name.
func packageOf(name string, of map[string]string) string {
	for i, c := range name {
		if c == '.' && of[name[:i]] != "" {
			return of[name[:i]]
		}
	}
	return "generated"
}

// functions gives the bytes of code and the name of each function, by its number.
func functions(parts []section) (lengths map[uint64]int, names map[uint64]string, err error) {
	lengths, names = map[uint64]int{}, map[uint64]string{}
	imported := uint64(0) // they have the first numbers
	for _, s := range parts {
		r := wasmReader{rest: s.body}
		switch {
		case s.kind == importSection: // of Go, all imports are functions
			imported = r.number()
		case s.kind == codeSection:
			for i := range r.number() {
				lengths[imported+i] = len(r.bytes())
			}
		case s.name == "name":
			for len(r.rest) > 0 && !r.broken {
				kind, body := r.take(1), wasmReader{rest: r.bytes()}
				if string(kind) != "\x01" {
					continue
				}
				for range body.number() {
					i := body.number()
					names[i] = string(body.bytes())
				}
				r.broken = r.broken || body.broken
			}
		}
		if r.broken {
			return nil, nil, errors.New("read module: a section is broken")
		}
	}
	if len(lengths) == 0 || len(names) == 0 {
		return nil, nil, errors.New("read module: it has no named functions")
	}
	return lengths, names, nil
}

// wasmReader reads a section until it is broken; then all is empty.
type wasmReader struct {
	rest   []byte
	broken bool
}

func (r *wasmReader) number() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.rest, r.broken = nil, true
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// signed reads a number that may be negative.
func (r *wasmReader) signed() int64 {
	v := int64(0)
	for shift := 0; shift < 63; shift += 7 {
		b := r.take(1)
		if r.broken {
			return 0
		}
		v |= int64(b[0]&0x7f) << shift
		if b[0] < 0x80 {
			return v << (57 - shift) >> (57 - shift)
		}
	}
	r.rest, r.broken = nil, true
	return 0
}

func (r *wasmReader) take(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.rest, r.broken = nil, true
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *wasmReader) bytes() []byte { return r.take(r.number()) }
