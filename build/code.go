package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// The instructions that are read here (WebAssembly 1.0, chapter 5.4).
const (
	opUnreachable  = 0x00
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opBr           = 0x0c
	opBrIf         = 0x0d
	opBrTable      = 0x0e
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opLoad         = 0x28 // the first of 23 loads and stores
	opMemorySize   = 0x3f
	opMemoryGrow   = 0x40
	opI64Const     = 0x42
	opF32Const     = 0x43
	opF64Const     = 0x44
	opI64Or        = 0x84
	opBulk         = 0xfc
	noResult       = 0x40
	typeFunction   = 0x60
	typeI64        = 0x7e
	typeI32        = 0x7f
)

// instruction reads the next one of those that Go uses.
func (r *wasmReader) instruction() []byte {
	all := r.rest
	op := r.take(1)
	if r.broken {
		return nil
	}
	switch op := op[0]; {
	case op >= opBlock && op <= opIf, op == opMemorySize, op == opMemoryGrow:
		r.take(1)
	case op == opBr, op == opBrIf, op == opCall, op >= opLocalGet && op <= opGlobalSet, op == opConst, op == opI64Const:
		r.skipNumber()
	case op == opBrTable:
		for n := r.number() + 1; n > 0 && !r.broken; n-- {
			r.number()
		}
	case op == opCallIndirect, op >= opLoad && op < opMemorySize:
		r.skipNumber()
		r.skipNumber()
	case op == opF32Const:
		r.take(4)
	case op == opF64Const:
		r.take(8)
	case op == opBulk:
		switch n := r.number(); {
		case n == 10: // copy, from memory to memory
			r.take(2)
		case n == 11: // fill
			r.take(1)
		case n > 7: // those below turn floats into numbers
			r.broken = true
		}
	}
	if r.broken {
		return nil
	}
	return all[:len(all)-len(r.rest)]
}

// skipNumber reads a number, signed or not, of any size.
func (r *wasmReader) skipNumber() {
	for b := r.take(1); !r.broken && b[0] >= 0x80; b = r.take(1) {
	}
}

// firstPC is what the Go linker adds to the number of a function of Go to have the upper bits of its
// program counters; the lower 16 count the places in it (funcValueOffset in cmd/link/internal/wasm).
const firstPC = 0x1000

// shorten gives the code section with functions that do the same and repeat themselves more, which is
// what packs. Three things are different in each place as the compiler writes them (preprocess in
// cmd/internal/obj/wasm): how many blocks a jump leaves, the whole program counter of a call, and the
// way out behind a call.
func shorten(body []byte) ([]byte, error) {
	r := wasmReader{rest: body}
	count := r.number()
	out := binary.AppendUvarint(nil, count)
	for i := range count {
		code := r.bytes()
		if r.broken {
			return nil, errors.New("read module: its code is broken")
		}
		shorter, err := shortenFunction(code, firstPC+int64(i))
		if err != nil {
			return nil, fmt.Errorf("shorten function %d: %w", i, err)
		}
		out = append(binary.AppendUvarint(out, uint64(len(shorter))), shorter...)
	}
	return out, nil
}

// A label is a construct that is open at some place in a function: one of these, or the number of
// the block behind whose end the code of a place in the table begins.
const (
	theFunction = -1
	theUnwind   = -2 // leaving it returns 1: the stack is left to the scheduler
	theLoop     = -3 // going to its begin jumps by the table
	anyOther    = -4
)

type shortener struct {
	pc      int64 // without the place
	calls   int
	unwinds bool
	odd     bool     // it is not of the compiler's form
	table   []uint64 // behind which block each place is
	labels  []int
	ops     [][]byte
}

// atEntry is how a function of the compiler begins: with a copy of the stack's pointer.
var atEntry = []byte{opGlobalGet, 0, opLocalSet, 1}

// setPlace says which place the table is to find.
var setPlace = []byte{opLocalSet, 0}

// shortenFunction gives the same function. What is not of the compiler's form stays as it is.
func shortenFunction(code []byte, pc int64) ([]byte, error) {
	r := wasmReader{rest: code}
	for n := r.number(); n > 0 && !r.broken; n-- {
		r.number()
		r.take(1)
	}
	locals := code[:len(code)-len(r.rest)]
	if r.broken || len(locals) < 3 || locals[1] != 1 || locals[2] != typeI32 || !bytes.HasPrefix(r.rest, atEntry) {
		return code, nil
	}
	r.take(uint64(len(atEntry)))
	s := shortener{pc: pc, labels: []int{theFunction}}
	s.head(&r)
	if r.broken {
		return nil, errors.New("its table of places ends too early")
	}
	for len(r.rest) > 0 && !s.odd {
		op := r.instruction()
		if r.broken || len(s.labels) == 0 {
			return nil, errors.New("an instruction that Go did not use before")
		}
		s.next(op)
	}
	if len(s.labels) > 0 && !s.odd {
		return nil, errors.New("it does not end")
	}
	s.leaveUnwinding()
	if s.odd {
		return code, nil
	}
	s.ops = joinLeaving(foldAddresses(s.ops))
	return s.code(locals), nil
}

// head reads how a function with places to resume at begins: the block of unwinding if it has one, the
// loop if it has jumps, a block for each place, and the table by which the loop finds it.
func (s *shortener) head(r *wasmReader) {
	opened := *r
	op := r.instruction()
	for ; !r.broken && (op[0] == opBlock || op[0] == opLoop); op = r.instruction() {
		s.ops = append(s.ops, op)
	}
	if r.broken || !bytes.Equal(op, []byte{opLocalGet, 0}) || len(r.rest) == 0 || r.rest[0] != opBrTable {
		*r, s.ops = opened, nil
		return // it has none
	}
	table := r.instruction()
	if r.broken {
		return
	}
	s.ops = append(s.ops, op, table)
	t := wasmReader{rest: table[1:]}
	for n := t.number() + 1; n > 0 && !t.broken; n-- {
		s.table = append(s.table, t.number())
	}
	blocks, outer := 0, -1
	if n := len(s.table); n > 0 && s.table[n-1] < uint64(len(s.ops)) {
		blocks = int(s.table[n-1]) + 1
		outer = len(s.ops) - 2 - blocks
	}
	if s.odd = t.broken || outer < 0 || outer > 2 || outer == 2 && s.ops[0][0] != opBlock; s.odd {
		return
	}
	for _, op := range s.ops[:outer] {
		if op[0] == opBlock {
			s.labels, s.unwinds = append(s.labels, theUnwind), true
		} else {
			s.labels = append(s.labels, theLoop)
		}
	}
	for k := blocks - 1; k >= 0; k-- {
		s.labels = append(s.labels, k)
	}
}

func (s *shortener) next(op []byte) {
	switch op[0] {
	case opBlock, opLoop, opIf:
		s.labels = append(s.labels, anyOther)
	case opEnd:
		s.labels = s.labels[:len(s.labels)-1]
		if s.joinIf() {
			return
		}
	case opLocalGet:
		// A jump by an address on the stack lays it aside in local 0 for one instruction.
		if n := len(s.ops); op[1] == 0 && (n < 2 || !bytes.Equal(s.ops[n-2], setPlace) || s.ops[n-1][0] != opConst) {
			s.odd = true
		}
	case opBr:
		switch s.target(op) {
		case theLoop:
			if s.forward() {
				return
			}
			if n := len(s.ops); n == 0 || !bytes.Equal(s.ops[n-1], setPlace) {
				s.odd = true
			}
		case theUnwind, theFunction:
			s.odd = true
		}
	case opBrIf:
		switch s.target(op) {
		case theUnwind:
			// The same bytes everywhere, while the way to the block differs with the place.
			s.ops = append(s.ops, []byte{opIf, noResult}, []byte{opConst, 1}, []byte{opReturn}, []byte{opEnd})
			return
		case theFunction:
			s.odd = true
		}
	case opBrTable:
		s.odd = true
	case opI64Const:
		if s.isPC(op) {
			s.calls++
		}
	}
	s.ops = append(s.ops, op)
}

// target is the label of a branch.
func (s *shortener) target(op []byte) int {
	depth, _ := binary.Uvarint(op[1:])
	if depth >= uint64(len(s.labels)) {
		return anyOther
	}
	return s.labels[len(s.labels)-1-int(depth)]
}

// forward makes a jump by the table one to the block itself, when it is still open: the place ahead is
// then said by how far it is, and no table is asked. Only the table reads local 0, which held the place.
func (s *shortener) forward() bool {
	n := len(s.ops)
	if n < 2 || !bytes.Equal(s.ops[n-1], setPlace) || s.ops[n-2][0] != opConst {
		return false
	}
	place := wasmReader{rest: s.ops[n-2][1:]}
	at := place.signed()
	if at < 0 {
		return false
	}
	block := int(s.table[min(at, int64(len(s.table)-1))])
	open := slices.Index(s.labels, block)
	if open < 0 {
		return false
	}
	s.ops = append(s.ops[:n-2], branch(opBr, len(s.labels)-1-open))
	return true
}

// joinIf makes one branch of an if with nothing but a jump in it, whose end was read.
func (s *shortener) joinIf() bool {
	n := len(s.ops)
	if n < 2 || s.ops[n-1][0] != opBr || s.ops[n-2][0] != opIf {
		return false
	}
	depth, _ := binary.Uvarint(s.ops[n-1][1:])
	if depth == 0 {
		return false
	}
	s.ops = append(s.ops[:n-2], branch(opBrIf, int(depth)-1))
	return true
}

func branch(op byte, depth int) []byte {
	return binary.AppendUvarint([]byte{op}, uint64(depth))
}

// isPC tells whether a constant is a program counter of this function: what a call leaves on the stack.
func (s *shortener) isPC(op []byte) bool {
	r := wasmReader{rest: op[1:]}
	v := r.signed()
	return !r.broken && v>>16 == s.pc
}

// leaveUnwinding takes the block of unwinding away, which nothing branches to any more.
func (s *shortener) leaveUnwinding() {
	if !s.unwinds || s.odd {
		return
	}
	n := len(s.ops)
	if !bytes.Equal(bytes.Join(s.ops[n-4:], nil), []byte{opUnreachable, opEnd, opConst, 1, opEnd}) {
		s.odd = true
		return
	}
	s.ops = append(s.ops[1:n-3:n-3], s.ops[n-1])
}

// fewCalls need no local for the program counter.
const fewCalls = 2

// code writes the function. With calls, local 2 holds its program counter and those behind it move by
// one; a call adds its place, so that what follows is the same as at other calls of the same function.
func (s *shortener) code(locals []byte) []byte {
	keep := s.calls >= fewCalls
	var out []byte
	if keep {
		out = s.keepPC(locals)
	} else {
		out = append(bytes.Clone(locals), atEntry...)
	}
	for _, op := range s.ops {
		switch {
		case keep && op[0] >= opLocalGet && op[0] <= opLocalTee && op[1] >= 2:
			local, _ := binary.Uvarint(op[1:])
			out = binary.AppendUvarint(append(out, op[0]), local+1)
		case keep && op[0] == opI64Const && s.isPC(op):
			place := wasmReader{rest: op[1:]}
			out = append(appendSigned(append(out, opLocalGet, 2, opI64Const), place.signed()&0xffff), opI64Or)
		default:
			out = append(out, op...)
		}
	}
	return out
}

// keepPC writes the locals with one more behind the first, and sets it.
func (s *shortener) keepPC(locals []byte) []byte {
	r := wasmReader{rest: locals}
	groups := r.number()
	first := r.take(2)
	more := uint64(1)
	if rest := r; groups > 1 {
		if size := rest.number(); rest.take(1)[0] == typeI64 {
			groups, more, r = groups-1, size+1, rest
		}
	}
	out := append(binary.AppendUvarint(nil, groups+1), first...)
	out = append(binary.AppendUvarint(out, more), typeI64)
	out = append(append(out, r.rest...), atEntry...)
	return append(appendSigned(append(out, opI64Const), s.pc<<16), opLocalSet, 2)
}
