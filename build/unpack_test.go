package main

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// regularTable is a memory with three functions as the linker writes them, and behind them the table
// by program counter.
func regularTable() []byte {
	words := func(v ...uint32) []byte {
		var b []byte
		for _, v := range v {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
		return b
	}
	names := []byte("main.a\x00main.b\x00c\x00")
	functions := words(4096, 32, 4097, 32+56, 4098, 32+56+56, 4099, 0)
	for i, name := range []uint32{0, 7, 14} {
		tables := uint32(2 - i)
		functions = append(functions, words(uint32(4096+i), name, 8, 2, 1, 0, 0, tables, 0, 0)...)
		functions = append(functions, 0, 0, 0, 1)
		functions = append(functions, words([]uint32{9, 3, 5}[:tables+1]...)...)
		functions = append(functions, make([]byte, align(len(functions))-len(functions))...)
	}
	var byPC []byte
	for i := range uint32(2 * buckets) {
		byPC = append(append(byPC, words(i/buckets)...), make([]byte, bucketSize-4)...)
	}
	head := append(bytes.Clone(tableMagic), make([]byte, headerSize-len(tableMagic))...)
	for i, v := range []int{3, 1, 0, headerSize, headerSize + len(names), headerSize + len(names), headerSize + len(names), headerSize + len(names)} {
		binary.LittleEndian.PutUint64(head[8+8*i:], uint64(v))
	}
	return bytes.Join([][]byte{head, names, functions, byPC, words(2)}, nil)
}

// TestPackTables: of the tables nothing stays but the columns, and what is not regular is refused.
func TestPackTables(t *testing.T) {
	functions := headerSize + len("main.a\x00main.b\x00c\x00")
	for name, r := range map[string]struct {
		at int // what stands there is changed
		ok bool
	}{
		"as the linker writes it":       {headerSize, true}, // a letter of a name
		"another first function":        {functions + 4, false},
		"a function further on":         {functions + 12, false},
		"another program counter":       {functions + 8, false},
		"another entry":                 {functions + 32 + 56, false},
		"more tables":                   {functions + 32 + funcPCTables, false},
		"a name elsewhere":              {functions + 32 + 4, true},
		"something between":             {functions + 32 + 56 + 44 + 2*4, false},
		"another function by a counter": {len(regularTable()) - 4 - bucketSize, false},
	} {
		t.Run(name, func(t *testing.T) {
			memory := regularTable()
			memory[r.at]++
			u, err := packTables(memory)
			if (err == nil) != r.ok {
				t.Fatalf("%v", err)
			}
			if err == nil && (u.functions != functions || u.byPC != len(memory)-4-2*buckets*bucketSize || u.first != 32 || u.entry != 4096 || u.count != 3) {
				t.Errorf("%+v", u)
			}
		})
	}
}

// FuzzPackTables: a memory of any kind is refused or packed.
func FuzzPackTables(f *testing.F) {
	f.Add(regularTable())
	f.Add(regularTable()[:len(regularTable())-2*buckets*bucketSize])
	f.Fuzz(func(t *testing.T, memory []byte) {
		u, err := packTables(memory)
		if err == nil && (u.count < 2 || u.byPC+u.buckets()*bucketSize > len(memory)) {
			t.Errorf("packed as %+v", u)
		}
	})
}
