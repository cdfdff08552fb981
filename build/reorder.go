package main

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// reorder lays like functions beside each other: a function of the module gets another number, where it is
// called, exported and in the table that Go's program counters are places of, which stay.
func reorder(parts []section) ([]section, error) {
	functions, err := readFunctions(parts)
	if err != nil {
		return nil, err
	}
	return inOrder(parts, functions, likeOrder(functions.ops))
}

// inOrder lays the functions in an order of their numbers.
func inOrder(parts []section, functions *functionList, order []int) ([]section, error) {
	first := count(parts, importSection)
	numbers := make([]uint64, len(order))
	for now, before := range order {
		numbers[before] = uint64(now)
	}
	renumber := func(f uint64) (uint64, bool) {
		switch own := f - uint64(first); {
		case f < uint64(first):
			return f, true
		case own < uint64(len(numbers)):
			return numbers[own] + uint64(first), true
		}
		return 0, false
	}
	var out []section
	for _, s := range parts {
		r := rewriter{wasmReader: wasmReader{rest: s.body}, renumber: renumber}
		switch s.kind {
		case functionSection:
			r.types(order)
		case exportSection:
			r.exports()
		case elementSection:
			r.elements()
		case codeSection:
			r.code(functions, order)
		case startSection:
			r.broken = true
		default:
			r.out, r.rest = s.body, nil
		}
		if r.broken || len(r.rest) > 0 {
			return nil, errors.New("read module: functions are named where they were not before")
		}
		s.body = r.out
		out = append(out, s)
	}
	return out, nil
}

// functionList are the functions of a module.
type functionList struct {
	locals [][]byte
	ops    [][][]byte
}

func readFunctions(parts []section) (*functionList, error) {
	var out functionList
	for _, s := range parts {
		if s.kind != codeSection {
			continue
		}
		r := wasmReader{rest: s.body}
		for range r.number() {
			f := wasmReader{rest: r.bytes()}
			all := f.rest
			for n := f.number(); n > 0 && !f.broken; n-- {
				f.number()
				f.take(1)
			}
			if r.broken || f.broken {
				return nil, errors.New("read module: its code is broken")
			}
			out.locals = append(out.locals, all[:len(all)-len(f.rest)])
			var ops [][]byte
			for len(f.rest) > 0 {
				op := f.instruction()
				if f.broken || !known(op) {
					return nil, errors.New("read module: an instruction that Go did not use before")
				}
				ops = append(ops, op)
			}
			out.ops = append(out.ops, ops)
		}
	}
	return &out, nil
}

// known tells whether an instruction is one that instruction reads to its end.
func known(op []byte) bool {
	switch op := op[0]; {
	case op <= opElse, op >= opEnd && op <= opCallIndirect, op == opDrop, op == opSelect,
		op >= opLocalGet && op <= opGlobalSet, op >= opLoad && op <= opLastOne, op == opBulk:
		return true
	}
	return false
}

// rewriter writes a section with other numbers of functions.
type rewriter struct {
	wasmReader
	out      []byte
	renumber func(uint64) (uint64, bool)
}

// copy writes a number as it is.
func (r *rewriter) copy() uint64 {
	n := r.number()
	r.out = binary.AppendUvarint(r.out, n)
	return n
}

// function writes the new number of a function.
func (r *rewriter) function() {
	n, ok := r.renumber(r.number())
	r.broken = r.broken || !ok
	r.out = binary.AppendUvarint(r.out, n)
}

// types writes the type of each function.
func (r *rewriter) types(order []int) {
	var types []uint64
	for range r.copy() {
		types = append(types, r.number())
	}
	if r.broken = r.broken || len(types) != len(order); r.broken {
		return
	}
	for _, before := range order {
		r.out = binary.AppendUvarint(r.out, types[before])
	}
}

func (r *rewriter) exports() {
	const aFunction = 0
	for range r.copy() {
		r.out = append(r.out, sized(r.bytes())...)
		kind := r.take(1)
		if r.broken {
			return
		}
		if r.out = append(r.out, kind...); kind[0] == aFunction {
			r.function()
		} else {
			r.copy()
		}
	}
}

// elements writes the contents of the table: of each part which table, where in it, and the functions.
func (r *rewriter) elements() {
	for range r.copy() {
		table, op := r.copy(), r.take(1)
		at, closed := r.signed(), r.take(1)
		if r.broken || table != 0 || op[0] != opConst || closed[0] != opEnd {
			r.broken = true
			return
		}
		r.out = appendConst(r.out, at)
		for n := r.copy(); n > 0 && !r.broken; n-- {
			r.function()
		}
	}
}

func (r *rewriter) code(f *functionList, order []int) {
	r.copy()
	r.rest = nil // it was read
	for _, before := range order {
		one := rewriter{out: bytes.Clone(f.locals[before]), renumber: r.renumber}
		for _, op := range f.ops[before] {
			if op[0] != opCall {
				one.out = append(one.out, op...)
				continue
			}
			one.rest, one.out = op[1:], append(one.out, opCall)
			one.function()
		}
		r.broken = r.broken || one.broken
		r.out = append(r.out, sized(one.out)...)
	}
}
