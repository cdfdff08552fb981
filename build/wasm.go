package main

import (
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
		if s.kind == 0 {
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

// strip drops the custom sections: names for debuggers, which no Worker has.
func strip(raw []byte, parts []section) []byte {
	out := slices.Clone(raw[:8])
	for _, s := range parts {
		if s.kind != 0 {
			out = append(out, s.all...)
		}
	}
	return out
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
		case s.kind == 2: // of Go, all imports are functions
			imported = r.number()
		case s.kind == 10:
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
