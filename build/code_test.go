package main

import (
	"bytes"
	"slices"
	"testing"
)

// testPC is that of the first function, its places added as a call writes them.
func testPC(place byte) []byte { return appendSigned([]byte{opI64Const}, firstPC<<16|int64(place)) }

var (
	someLocals = []byte{2, 1, typeI32, 3, typeI64}
	leave      = []byte{opIf, noResult, opConst, 1, opReturn, opEnd}
	unwound    = []byte{opUnreachable, opEnd, opConst, 1, opEnd}
	after      = []byte{opEnd, opEnd} // of the second and the third block
	end        = code([]byte{opEnd}, unwound)
	keep       = code([]byte{2, 1, typeI32, 4, typeI64}, atEntry, testPC(0), []byte{opLocalSet, 2})
)

func code(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// resumes begins a function of three blocks; place 0 is behind the first, 1 and 2 behind the second, 3 behind the third.
func resumes(outer ...byte) []byte {
	out := slices.Clone(outer)
	for range 3 {
		out = append(out, opBlock, noResult)
	}
	return append(out, opLocalGet, 0, opBrTable, 3, 0, 1, 1, 2, opEnd)
}

var inLoop = []byte{opBlock, noResult, opLoop, noResult}

// jump goes to a place by the table, whose loop is so many blocks out.
func jump(place, depth byte) []byte { return []byte{opConst, place, opLocalSet, 0, opBr, depth} }

// call writes the program counter and calls function 7.
func call(pc []byte) []byte {
	return code([]byte{opLocalGet, 1}, pc, []byte{0x37, 3, 0, opConst, 0, opCall, 7})
}

func short(place byte) []byte { return []byte{opLocalGet, 2, opI64Const, place, opI64Or} }

// shortened is what the compiler writes, and the shorter form of each part.
var shortened = map[string]struct{ in, want []byte }{
	"a jump ahead": {
		code(someLocals, atEntry, resumes(inLoop...), jump(3, 2), after, end),
		code(someLocals, atEntry, resumes(inLoop[2:]...), []byte{opBr, 1}, after, []byte{opEnd, opUnreachable, opEnd}),
	},
	"to one of two places of a block": {
		code(someLocals, atEntry, resumes(inLoop...), jump(1, 2), after, end),
		code(someLocals, atEntry, resumes(inLoop[2:]...), []byte{opBr, 0}, after, []byte{opEnd, opUnreachable, opEnd}),
	},
	"past the table": {
		code(someLocals, atEntry, resumes(inLoop...), jump(50, 2), after, end),
		code(someLocals, atEntry, resumes(inLoop[2:]...), []byte{opBr, 1}, after, []byte{opEnd, opUnreachable, opEnd}),
	},
	"a jump back": {
		code(someLocals, atEntry, resumes(inLoop...), after, jump(1, 0), end),
		code(someLocals, atEntry, resumes(inLoop[2:]...), after, jump(1, 0), []byte{opEnd, opUnreachable, opEnd}),
	},
	"a jump ahead under a condition": {
		code(someLocals, atEntry, resumes(inLoop...), []byte{opIf, noResult}, jump(3, 3), []byte{opEnd}, after, end),
		code(someLocals, atEntry, resumes(inLoop[2:]...), []byte{opBrIf, 1}, after, []byte{opEnd, opUnreachable, opEnd}),
	},
	"an if with more in it": {
		code(someLocals, atEntry, resumes(inLoop...), []byte{opIf, noResult, 0x01}, jump(3, 3), []byte{opEnd}, after, end),
		code(someLocals, atEntry, resumes(inLoop[2:]...), []byte{opIf, noResult, 0x01, opBr, 2, opEnd}, after, []byte{opEnd, opUnreachable, opEnd}),
	},
	"a branch that is no jump": {
		code(someLocals, atEntry, resumes(inLoop...), jump(3, 2), []byte{opConst, 3, opLocalSet, 3, opBr, 2}, after, end),
		code(someLocals, atEntry, resumes(inLoop...), jump(3, 2), []byte{opConst, 3, opLocalSet, 3, opBr, 2}, after, end),
	},
	"a place that something else reads": {
		code(someLocals, atEntry, resumes(inLoop...), jump(3, 2), []byte{opLocalGet, 0, opLocalSet, 3}, after, end),
		code(someLocals, atEntry, resumes(inLoop...), jump(3, 2), []byte{opLocalGet, 0, opLocalSet, 3}, after, end),
	},
	"an address laid aside": {
		code(someLocals, atEntry, resumes(inLoop...), []byte{opLocalSet, 0, opConst, 0, opLocalGet, 0, opCallIndirect, 0, 0}, after, end),
		code(someLocals, atEntry, resumes(inLoop[2:]...), []byte{opLocalSet, 0, opConst, 0, opLocalGet, 0, opCallIndirect, 0, 0}, after, []byte{opEnd, opUnreachable, opEnd}),
	},
	"unwinding within the loop": {
		code(someLocals, atEntry, resumes(opLoop, noResult, opBlock, noResult), after, end),
		code(someLocals, atEntry, resumes(opLoop, noResult, opBlock, noResult), after, end),
	},
	"unwinding": {
		code(someLocals, atEntry, resumes(opBlock, noResult), []byte{opBrIf, 2, opEnd, opBrIf, 1, opEnd, opBrIf, 0}, unwound),
		code(someLocals, atEntry, resumes(), leave, []byte{opEnd}, leave, []byte{opEnd}, leave, []byte{opUnreachable, opEnd}),
	},
	"one call": {
		code(someLocals, atEntry, call(testPC(5)), []byte{opEnd}),
		code(someLocals, atEntry, call(testPC(5)), []byte{opEnd}),
	},
	"two calls": {
		code(someLocals, atEntry, call(testPC(5)), []byte{opLocalTee, 4}, call(testPC(9)), []byte{opLocalGet, 1, opEnd}),
		code(keep, call(short(5)), []byte{opLocalTee, 5}, call(short(9)), []byte{opLocalGet, 1, opEnd}),
	},
	"two calls without locals": {
		code([]byte{1, 1, typeI32}, atEntry, call(testPC(5)), call(testPC(9)), []byte{opEnd}),
		code([]byte{2, 1, typeI32, 1, typeI64}, atEntry, testPC(0), []byte{opLocalSet, 2}, call(short(5)), call(short(9)), []byte{opEnd}),
	},
	"two calls and a float": {
		code([]byte{2, 1, typeI32, 1, 0x7c}, atEntry, call(testPC(5)), call(testPC(9)), []byte{opEnd}),
		code([]byte{3, 1, typeI32, 1, typeI64, 1, 0x7c}, atEntry, testPC(0), []byte{opLocalSet, 2}, call(short(5)), call(short(9)), []byte{opEnd}),
	},
	"counters of another function": {
		code(someLocals, atEntry, call(appendSigned([]byte{opI64Const}, (firstPC+1)<<16)), call(testPC(9)), []byte{opEnd}),
		code(someLocals, atEntry, call(appendSigned([]byte{opI64Const}, (firstPC+1)<<16)), call(testPC(9)), []byte{opEnd}),
	},
	"no copy of the stack's pointer": {
		code(someLocals, call(testPC(5)), call(testPC(9)), []byte{opEnd}),
		code(someLocals, call(testPC(5)), call(testPC(9)), []byte{opEnd}),
	},
	"a branch out of the function": {
		code(someLocals, atEntry, resumes(inLoop...), jump(3, 2), []byte{opConst, 0, opBr, 4}, after, end),
		code(someLocals, atEntry, resumes(inLoop...), jump(3, 2), []byte{opConst, 0, opBr, 4}, after, end),
	},
	"another end": {
		code(someLocals, atEntry, resumes(inLoop...), after, []byte{opEnd, opUnreachable, opEnd, opConst, 2, opEnd}),
		code(someLocals, atEntry, resumes(inLoop...), after, []byte{opEnd, opUnreachable, opEnd, opConst, 2, opEnd}),
	},
}

func TestShorten(t *testing.T) {
	for name, r := range shortened {
		t.Run(name, func(t *testing.T) {
			got, err := shorten(append([]byte{1}, counted(string(r.in))...))
			if want := append([]byte{1}, counted(string(r.want))...); err != nil || !bytes.Equal(got, want) {
				t.Errorf("% x: %v\nwant % x", got, err, want)
			}
		})
	}
}

// TestShortenRefuses: an instruction of another kind is no reason to guess.
func TestShortenRefuses(t *testing.T) {
	for name, in := range map[string][]byte{
		"another instruction": code(someLocals, atEntry, []byte{opBulk, 12, 0, 0, opEnd}),
		"no end":              code(someLocals, atEntry, []byte{opBlock, noResult, opEnd}),
		"a table cut off":     code(someLocals, atEntry, []byte{opLocalGet, 0, opBrTable}),
		"cut off":             code(someLocals, atEntry, []byte{opConst, 0x80}),
		"more behind its end": code(someLocals, atEntry, []byte{opEnd, opReturn}),
	} {
		if got, err := shorten(append([]byte{1}, counted(string(in))...)); err == nil {
			t.Errorf("%s: % x", name, got)
		}
	}
	if _, err := shorten([]byte{2, 1, 0}); err == nil {
		t.Error("a section that ends too early is shortened")
	}
}

// FuzzShorten: no code makes it panic, and none becomes nothing.
func FuzzShorten(f *testing.F) {
	f.Add(code(someLocals, atEntry, resumes(inLoop...), jump(3, 2), []byte{opEnd, opEnd, opEnd}, unwound))
	f.Add(code(someLocals, atEntry, resumes(opBlock, noResult), []byte{opBrIf, 2, opEnd, opEnd}, unwound))
	f.Add(code(someLocals, atEntry, testPC(1), testPC(2), []byte{opEnd}))
	f.Fuzz(func(t *testing.T, in []byte) {
		out, err := shortenFunction(in, firstPC)
		if err == nil && len(in) > 0 && len(out) == 0 {
			t.Errorf("% x became nothing", in)
		}
	})
}
