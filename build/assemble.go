package main

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// Instructions as they are written into a function of ours, all of numbers of 32 bits.
var (
	add        = []byte{opI32Add}
	sub        = []byte{0x6b}
	and        = []byte{0x71}
	or         = []byte{0x72}
	xor        = []byte{0x73}
	shiftLeft  = []byte{0x74}
	shiftRight = []byte{0x76}
	less       = []byte{0x49} // and more: without sign
	more       = []byte{0x4b}
	not        = []byte{opI32Eqz}
	fill       = []byte{opBulk, 11, 0}
	block      = []byte{opBlock, noResult}
	loop       = []byte{opLoop, noResult}
	done       = []byte{opEnd}
	again      = []byte{opBrIf, 0} // the loop, if
	repeat     = []byte{opBr, 0}
	leaveLoop  = []byte{opBrIf, 1} // which stands in a block, if
)

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func num(v int) []byte    { return appendSigned([]byte{opConst}, int64(v)) }
func get(l byte) []byte   { return []byte{opLocalGet, l} }
func set(l byte) []byte   { return []byte{opLocalSet, l} }
func tee(l byte) []byte   { return []byte{opLocalTee, l} }
func invoke(f int) []byte { return binary.AppendUvarint([]byte{opCall}, uint64(f)) }
func load(at int) []byte  { return binary.AppendUvarint([]byte{opLoad, 2}, uint64(at)) }
func store(at int) []byte { return binary.AppendUvarint([]byte{opStore, 2}, uint64(at)) }

func loadByte(at int) []byte { return binary.AppendUvarint([]byte{0x2d, 0}, uint64(at)) }

// step adds to a local.
func step(l byte, n int) []byte { return join(get(l), num(n), add, set(l)) }

// addStart adds a function that runs when the module is instantiated, and one that it calls, with a
// number in and out.
func addStart(parts []section, u *unpacker) ([]section, error) {
	unary, err := findType(parts)
	if err != nil {
		return nil, err
	}
	imported, types, own := count(parts, importSection), count(parts, typeSection), count(parts, functionSection)
	next := imported + own
	if count(parts, codeSection) != own {
		return nil, errors.New("read module: its functions are not as many as their code")
	}
	var out []section
	started := false
	for _, s := range parts {
		switch s.kind {
		case typeSection:
			s.body = appendItems(s.body, []byte{typeFunction, 0, 0})
		case functionSection:
			s.body = appendItems(s.body, binary.AppendUvarint(nil, uint64(unary)), binary.AppendUvarint(nil, uint64(types)))
		case startSection:
			return nil, errors.New("read module: it has a start of its own")
		case elementSection:
			out = append(out, section{kind: startSection, body: binary.AppendUvarint(nil, uint64(next+1))})
			started = true
		case codeSection:
			s.body = appendItems(s.body, sized(nextCode()), sized(u.code(next)))
		}
		out = append(out, s)
	}
	if !started {
		return nil, errors.New("read module: it has no functions to call by number")
	}
	return out, nil
}

// count is how many items a section has.
func count(parts []section, kind byte) int {
	for _, s := range parts {
		if s.kind == kind {
			r := wasmReader{rest: s.body}
			return int(r.number())
		}
	}
	return 0
}

// findType gives the number of the type of functions with a number of 32 bits in and one out.
func findType(parts []section) (int, error) {
	for _, s := range parts {
		if s.kind != typeSection {
			continue
		}
		r := wasmReader{rest: s.body}
		for i := range int(r.number()) {
			all := r.rest
			r.take(1)
			r.bytes()
			r.bytes()
			if bytes.Equal(all[:len(all)-len(r.rest)], []byte{typeFunction, 1, typeI32, 1, typeI32}) {
				return i, nil
			}
		}
	}
	return 0, errors.New("read module: it has no function of the type of Go's")
}

// appendItems adds items to a section that is a list of them.
func appendItems(body []byte, items ...[]byte) []byte {
	r := wasmReader{rest: body}
	n := r.number()
	return append(append(binary.AppendUvarint(nil, n+uint64(len(items))), r.rest...), join(items...)...)
}

func sized(b []byte) []byte { return append(binary.AppendUvarint(nil, uint64(len(b))), b...) }
