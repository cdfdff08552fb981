package main

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"
)

// testTable is a memory with a table of two functions. Tables by program counter are 3 bytes each, from 1
// on in the order stack, files, lines, unsafe points, stack maps; the second shares the first's stack.
func testTable() []byte {
	word := func(b []byte, v ...uint32) []byte {
		for _, v := range v {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
		return b
	}
	names, units, files := []byte("main.a\x00main.b\x00\x00\x00"), word(nil, 0, 5), []byte("a.go\x00b.go\x00\x00\x00")
	counters := []byte{0, 2, 1, 0, 4, 1, 0, 6, 1, 0, 8, 1, 0, 10, 1, 0, 0, 0, 0, 12, 1, 0, 0, 0}
	functions := word(nil, 0, 24, 1<<16, 24+44+8+28, 2<<16, 0)
	one := func(pcsp, files, lines uint32, tables ...uint32) {
		functions = word(functions, 7, 7, 7, 7, pcsp, files, lines, uint32(len(tables)), 1, 12)
		functions = append(functions, 3, 3, 0, 7)
		functions = word(functions, tables...)
		functions = word(functions, 100, 101, 102, 103, 104, 105, 106)
	}
	one(1, 4, 7, 10, 13)
	one(1, 4, 19)
	at := uint64(headerSize)
	head := append(bytes.Clone(tableMagic), make([]byte, headerSize-len(tableMagic))...)
	put := func(i int, v uint64) { binary.LittleEndian.PutUint64(head[8+8*i:], v) }
	put(0, 2)
	put(1, 2)
	put(3, at)
	for i, part := range [][]byte{names, units, files, counters} {
		at += uint64(len(part))
		put(4+i, at)
	}
	return bytes.Join([][]byte{[]byte("before"), tableMagic, head, names, units, files, counters, functions}, nil)
}

// TestDropTables: what the runtime works with stays, what it only prints goes, and so does what nothing
// names any more.
func TestDropTables(t *testing.T) {
	for name, r := range map[string]struct {
		lines    bool
		counters []byte
		function []uint32 // from the stack's table to the first line, then the tables and the data
	}{
		"without lines": {false, []byte{0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}, []uint32{1, 0, 0, 2, 0, 0, 0, 13}},
		"with lines":    {true, []byte{0, 2, 1, 0, 4, 1, 0, 6, 1, 0, 0, 0, 0, 10, 1, 0, 0, 0, 0, 12, 1, 0, 0, 0}, []uint32{1, 4, 7, 2, 1, 12, 0, 13}},
	} {
		t.Run(name, func(t *testing.T) {
			memory := testTable()
			if err := dropTables(memory, r.lines); err != nil {
				t.Fatal(err)
			}
			table, err := findTable(memory)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(table.counters, r.counters) {
				t.Errorf("tables by counter\n%v, want\n%v", table.counters, r.counters)
			}
			f, err := table.function(0)
			if err != nil {
				t.Fatal(err)
			}
			var got []uint32
			for at := funcSPTable; at < funcSize+8; at += 4 {
				if at != funcDataCount-3 {
					got = append(got, uint32(number(f, at)))
				}
			}
			var want, data []uint32
			want = r.function
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("a function %v, want %v", got, want)
				}
			}
			for at := funcSize + 8; at < len(f); at += 4 {
				data = append(data, uint32(number(f, at)))
			}
			if len(data) != 7 || data[4] != 104 || data[argInfo] != noData || data[argLive] != noData {
				t.Errorf("data of a function: %v", data)
			}
			if named := bytes.Contains(memory, []byte("a.go")); named != r.lines || !bytes.Contains(memory, []byte("main.b\x00")) {
				t.Errorf("names of files: %v; names of functions must stay", named)
			}
		})
	}
}

// TestJoinCounters: what is used stands in the order of its use, once, and the functions say where.
func TestJoinCounters(t *testing.T) {
	for name, r := range map[string]struct {
		lines    bool
		counters []byte
		second   []int // stack, file, line
		last     int   // the stack maps of the first
	}{
		"without lines": {false, []byte{0, 2, 1, 0, 10, 1, 0}, []int{1, 0, 0}, 4},
		"with lines":    {true, []byte{0, 2, 1, 0, 4, 1, 0, 6, 1, 0, 12, 1, 0, 10, 1, 0}, []int{1, 4, 10}, 13},
	} {
		t.Run(name, func(t *testing.T) {
			memory := testTable()
			if err := dropTables(memory, r.lines); err != nil {
				t.Fatal(err)
			}
			if err := joinCounters(memory); err != nil {
				t.Fatal(err)
			}
			table, err := findTable(memory)
			if err != nil {
				t.Fatal(err)
			}
			if want := append(r.counters, make([]byte, len(table.counters)-len(r.counters))...); !bytes.Equal(table.counters, want) {
				t.Errorf("tables by counter\n%v, want\n%v", table.counters, want)
			}
			first, err := table.function(0)
			if err != nil {
				t.Fatal(err)
			}
			second, err := table.function(1)
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range r.second {
				if got := number(second, funcSPTable+4*i); got != want {
					t.Errorf("table %d of the second is at %d, want %d", i, got, want)
				}
			}
			if got := number(first, funcSize+4); got != r.last || number(first, funcSize) != 0 {
				t.Errorf("the stack maps of the first are at %d, want %d", got, r.last)
			}
		})
	}
}

// FuzzDropTables: a memory of any kind is refused or done, and nothing but the table is written.
func FuzzDropTables(f *testing.F) {
	f.Add(testTable())
	f.Add(testTable()[:150])
	f.Add([]byte("no table"))
	far := testTable() // its functions are behind the end of any memory
	binary.LittleEndian.PutUint64(far[bytes.LastIndex(far, tableMagic)+8+8*7:], math.MaxUint64)
	f.Add(far)
	f.Fuzz(func(t *testing.T, memory []byte) {
		first := bytes.Index(memory, tableMagic)
		before := bytes.Clone(memory)
		err := dropTables(memory, false)
		if first < 0 {
			first = len(memory)
		}
		if err == nil {
			err = joinCounters(memory)
		}
		if !bytes.Equal(before[:first], memory[:first]) {
			t.Errorf("what stands before the table was changed: %v", err)
		}
	})
}
