package main

import (
	"bytes"
	"encoding/binary"
)

const (
	opDrop      = 0x1a
	opSelect    = 0x1b
	opStore     = 0x36 // the first of 9 stores
	opI32Eqz    = 0x45
	opI32Eq     = 0x46 // the first operator of two numbers
	opI64Eqz    = 0x50
	opI32Clz    = 0x67 // three of one number
	opI32Add    = 0x6a
	opI64Clz    = 0x79
	opI64Add    = 0x7c
	opF32Abs    = 0x8b // seven of one number, then seven of two
	opF32Add    = 0x92
	opF64Abs    = 0x99
	opF64Add    = 0xa0
	opI32Wrap   = 0xa7 // the first that converts
	opI64Extend = 0xad // of a number without sign
	opLastOne   = 0xc4 // the last operator of one number
)

// A place on the stack is written by the compiler as a sum of 64 bits whose result is cut to 32.
const addressSize = 5

// maxFrame bounds what is added to the pointer of the stack: the sum is an address within the memory.
const maxFrame = 1 << 30

// foldAddresses moves what is added to the pointer of the stack into the load or store of that place,
// which adds it by itself. Between the two stands how a stored value is computed; an address that
// lives on past a jump or a call stays as it is.
func foldAddresses(ops [][]byte) [][]byte {
	stack := make([]int, 0, 16) // where the address begins that a value is, or notAddress
	for i, op := range ops {
		pops, pushes, known := effect(op)
		if !known {
			stack = stack[:0]
			continue
		}
		begin := notAddress // of the value that was pushed first
		for range pops {
			begin = notAddress
			if n := len(stack); n > 0 {
				begin, stack = stack[n-1], stack[:n-1]
			}
		}
		if begin != notAddress && op[0] >= opLoad && op[0] < opMemorySize {
			ops[i] = addOffset(op, constant(ops[begin+2]))
			clear(ops[begin+1 : begin+addressSize])
		}
		begin = notAddress
		if i+1 >= addressSize && isAddress(ops[i+1-addressSize:i+1]) {
			begin = i + 1 - addressSize
		}
		for range pushes {
			stack = append(stack, begin)
		}
	}
	return without(ops)
}

const notAddress = -1

func isAddress(ops [][]byte) bool {
	for i, want := range []byte{opLocalGet, opI64Extend, opI64Const, opI64Add, opI32Wrap} {
		if len(ops[i]) == 0 || ops[i][0] != want {
			return false
		}
	}
	n := constant(ops[2])
	return ops[0][1] == 1 && n >= 0 && n < maxFrame
}

// constant is the number that an instruction pushes.
func constant(op []byte) int64 {
	r := wasmReader{rest: op[1:]}
	return r.signed()
}

// addOffset gives a load or store of so many bytes behind.
func addOffset(op []byte, n int64) []byte {
	r := wasmReader{rest: op[1:]}
	r.number()
	out := bytes.Clone(op[:len(op)-len(r.rest)])
	return binary.AppendUvarint(out, r.number()+uint64(n))
}

// without drops what was emptied.
func without(ops [][]byte) [][]byte {
	out := ops[:0]
	for _, op := range ops {
		if op != nil {
			out = append(out, op)
		}
	}
	return out
}

// effect says how many values an instruction takes from the stack of values and leaves there; of what
// goes elsewhere or depends on a type it is not known.
func effect(op []byte) (pops, pushes int, known bool) {
	switch op := op[0]; {
	case op == opConst, op >= opI64Const && op <= opF64Const, op == opLocalGet, op == opGlobalGet, op == opMemorySize:
		return 0, 1, true
	case op == opLocalSet, op == opGlobalSet, op == opDrop:
		return 1, 0, true
	case op >= opStore && op < opMemorySize:
		return 2, 0, true
	case op == opSelect:
		return 3, 1, true
	case op == opLocalTee, op >= opLoad && op < opStore, op == opMemoryGrow, op == opI32Eqz, op == opI64Eqz,
		op >= opI32Clz && op < opI32Add, op >= opI64Clz && op < opI64Add,
		op >= opF32Abs && op < opF32Add, op >= opF64Abs && op < opF64Add, op >= opI32Wrap && op <= opLastOne:
		return 1, 1, true
	case op >= opI32Eq && op < opI32Wrap:
		return 2, 1, true
	}
	return 0, 0, false
}

// leaveFrame is how a function gives its frame back, behind the size of that, and then takes the place
// that its call had; both are one step of the pointer.
var leaveFrame = []byte{opI32Add, opLocalTee, 1, opGlobalSet, 0, opLocalGet, 1, opConst, 8, opI32Add, opLocalTee, 1, opGlobalSet, 0}

// joinLeaving makes one step of the two.
func joinLeaving(ops [][]byte) [][]byte {
	const steps, second = 8, 5
	for i := 2; i+steps <= len(ops); i++ {
		size := ops[i-1]
		if len(size) == 0 || size[0] != opConst || !bytes.Equal(ops[i-2], leaveFrame[5:7]) || !bytes.Equal(bytes.Join(ops[i:i+steps], nil), leaveFrame) {
			continue
		}
		if n := constant(size); n > 0 && n < maxFrame {
			ops[i-1] = appendSigned([]byte{opConst}, n+8)
			clear(ops[i+steps-second : i+steps])
		}
	}
	return without(ops)
}
