package main

import (
	"bytes"
	"testing"
)

// place is the address of a place on the stack, as the compiler writes it.
func place(at ...byte) []byte {
	return code([]byte{opLocalGet, 1, opI64Extend, opI64Const}, at, []byte{opI64Add, opI32Wrap})
}

func instructions(t *testing.T, b []byte) [][]byte {
	r, out := wasmReader{rest: b}, [][]byte(nil)
	for len(r.rest) > 0 {
		out = append(out, r.instruction())
	}
	if r.broken {
		t.Fatalf("% x is no code", b)
	}
	return out
}

var (
	sp     = []byte{opLocalGet, 1}
	value  = []byte{opLocalGet, 4}
	loaded = []byte{opLocalGet, 3, opI32Wrap, 0x29, 3, 16}
)

func TestFold(t *testing.T) {
	for name, r := range map[string]struct{ in, want []byte }{
		"a store":                    {code(place(24), value, []byte{0x37, 3, 0}), code(sp, value, []byte{0x37, 3, 24})},
		"of a byte":                  {code(place(24), value, []byte{0x3c, 0, 1}), code(sp, value, []byte{0x3c, 0, 25})},
		"a load":                     {code(place(24), []byte{0x29, 3, 8, opLocalSet, 4}), code(sp, []byte{0x29, 3, 32, opLocalSet, 4})},
		"far away":                   {code(place(0xb8, 1), value, []byte{0x37, 3, 8}), code(sp, value, []byte{0x37, 3, 0xc0, 1})},
		"a value that is loaded":     {code(place(24), loaded, []byte{0x37, 3, 0}), code(sp, loaded, []byte{0x37, 3, 24})},
		"a value of two":             {code(place(24), value, value, []byte{opI64Add, 0x37, 3, 0}), code(sp, value, value, []byte{opI64Add, 0x37, 3, 24})},
		"a value that is chosen":     {code(place(24), value, value, value, []byte{opI64Eqz, opSelect, 0x37, 3, 0}), code(sp, value, value, value, []byte{opI64Eqz, opSelect, 0x37, 3, 24})},
		"one stored in another":      {code(place(24), place(32), []byte{0x29, 3, 0, 0x37, 3, 0}), code(sp, sp, []byte{0x29, 3, 32, 0x37, 3, 24})},
		"an address as a value":      {code(value, []byte{opI32Wrap}, place(24), []byte{opI64Extend, 0x37, 3, 0}), code(value, []byte{opI32Wrap}, place(24), []byte{opI64Extend, 0x37, 3, 0})},
		"an address that is kept":    {code(place(24), []byte{opLocalTee, 5}, value, []byte{0x37, 3, 0}), code(place(24), []byte{opLocalTee, 5}, value, []byte{0x37, 3, 0})},
		"over a jump":                {code(place(24), []byte{opIf, noResult, opEnd}, value, []byte{0x37, 3, 0}), code(place(24), []byte{opIf, noResult, opEnd}, value, []byte{0x37, 3, 0})},
		"over a call":                {code(place(24), []byte{opCall, 7, 0x37, 3, 0}), code(place(24), []byte{opCall, 7, 0x37, 3, 0})},
		"below the stack":            {code(place(0x78), value, []byte{0x37, 3, 0}), code(place(0x78), value, []byte{0x37, 3, 0})},
		"another pointer":            {code([]byte{opLocalGet, 2, opI64Extend, opI64Const, 8, opI64Add, opI32Wrap, 0x29, 3, 0}), code([]byte{opLocalGet, 2, opI64Extend, opI64Const, 8, opI64Add, opI32Wrap, 0x29, 3, 0})},
		"a copy":                     {code(place(24), value, []byte{opI32Wrap, opConst, 9, opBulk, 10, 0, 0}), code(place(24), value, []byte{opI32Wrap, opConst, 9, opBulk, 10, 0, 0})},
		"leaving":                    {code(sp, []byte{opConst, 16}, leaveFrame, []byte{opReturn}), code(sp, []byte{opConst, 24, opI32Add, opLocalTee, 1, opGlobalSet, 0, opReturn})},
		"leaving a frame that grows": {code(sp, []byte{opConst, 0x70}, leaveFrame), code(sp, []byte{opConst, 0x70}, leaveFrame)},
		"leaving another pointer":    {code([]byte{opLocalGet, 2, opConst, 16}, leaveFrame), code([]byte{opLocalGet, 2, opConst, 16}, leaveFrame)},
		"leaving once":               {code(sp, []byte{opConst, 16, opI32Add, opLocalTee, 1, opGlobalSet, 0}), code(sp, []byte{opConst, 16, opI32Add, opLocalTee, 1, opGlobalSet, 0})},
	} {
		t.Run(name, func(t *testing.T) {
			if got := bytes.Join(joinLeaving(foldAddresses(instructions(t, r.in))), nil); !bytes.Equal(got, r.want) {
				t.Errorf("% x\nwant % x", got, r.want)
			}
		})
	}
}
