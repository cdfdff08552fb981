package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
)

// The table of functions in the data of a module (runtime.pcHeader and runtime._func of Go 1.26): its
// header, the names, which files each unit of compilation has, the names of files, the tables by program
// counter, and, by their number, the functions. A function has numbers of 32 bits, then where its tables
// by program counter begin, then where its data for the collector and for traces lie.
var tableMagic = []byte{0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8}

const (
	headerSize  = 72
	mostEntries = 1 << 20
	mostTables  = 16 // of one function, and as many data

	funcSPTable   = 16 // where, in a function, these stand
	funcFiles     = 20
	funcLines     = 24
	funcPCTables  = 28 // how many
	funcUnit      = 32
	funcStartLine = 36
	funcDataCount = 43
	funcSize      = 44

	unsafePoints = 0 // the table that asynchronous preemption asks, which WASM does not have
	argInfo      = 5 // the data by which a trace prints arguments as numbers
	argLive      = 6
	noData       = 0xffffffff
)

// funcTable is the table of functions of a module.
type funcTable struct {
	names, units, files, counters, functions []byte
	namesAt, functionsAt                     int
	count                                    int
}

// dropTables fills with zeros what the runtime only prints stacks with, unless lines are wanted: of a
// place in a trace the function and its number in it stay, "?:0" stands for file and line.
func dropTables(memory []byte, lines bool) error {
	t, err := findTable(memory)
	if err != nil {
		return err
	}
	used := make([]bool, len(t.counters))
	for i := range t.count {
		f, err := t.function(i)
		if err != nil {
			return err
		}
		if !lines {
			for _, at := range []int{funcFiles, funcLines, funcUnit, funcStartLine} {
				clear(f[at : at+4])
			}
		}
		tables, data := f[funcSize:][:4*number(f, funcPCTables)], f[funcSize+4*number(f, funcPCTables):]
		if len(tables) > 0 {
			clear(tables[4*unsafePoints:][:4])
		}
		for _, info := range []int{argInfo, argLive} {
			if 4*info < len(data) {
				binary.LittleEndian.PutUint32(data[4*info:], noData)
			}
		}
		starts := []int{number(f, funcSPTable), number(f, funcFiles), number(f, funcLines)}
		for ; len(tables) > 0; tables = tables[4:] {
			starts = append(starts, number(tables, 0))
		}
		for _, start := range starts {
			if err := t.use(used, start); err != nil {
				return err
			}
		}
	}
	for i, u := range used {
		if !u {
			t.counters[i] = 0
		}
	}
	if !lines {
		clear(t.units)
		clear(t.files)
	}
	return nil
}

func number(b []byte, at int) int { return int(binary.LittleEndian.Uint32(b[at:])) }

var errTable = errors.New("read module: its table of functions is not as Go 1.26 writes it")

// findTable finds the one table of functions.
func findTable(memory []byte) (*funcTable, error) {
	for rest := memory; ; rest = rest[1:] {
		at := bytes.Index(rest, tableMagic)
		if at < 0 {
			return nil, errTable
		}
		rest = rest[at:]
		if len(rest) < headerSize {
			return nil, errTable
		}
		var h [8]uint64 // functions, files, nothing, begin of names, units, files, counters, functions
		for i := range h {
			h[i] = binary.LittleEndian.Uint64(rest[8+8*i:])
		}
		size := uint64(len(rest))
		if h[0] > 0 && h[0] < mostEntries && h[3] == headerSize && h[3] <= h[4] && h[4] <= h[5] && h[5] <= h[6] && h[6] <= h[7] && h[7] < size && 8*h[0] < size-h[7] {
			begin := len(memory) - len(rest)
			return &funcTable{rest[h[3]:h[4]], rest[h[4]:h[5]], rest[h[5]:h[6]], rest[h[6]:h[7]], rest[h[7]:], begin + int(h[3]), begin + int(h[7]), int(h[0])}, nil
		}
	}
}

// function gives one with its tables and data, to write into.
func (t *funcTable) function(i int) ([]byte, error) {
	at := number(t.functions, 8*i+4)
	if at+funcSize > len(t.functions) {
		return nil, errTable
	}
	f := t.functions[at:]
	size := funcSize + 4*(number(f, funcPCTables)+int(f[funcDataCount]))
	if number(f, funcPCTables) > mostTables || f[funcDataCount] > mostTables || size > len(f) {
		return nil, errTable
	}
	return f[:size], nil
}

// use marks one table by program counter.
func (t *funcTable) use(used []bool, start int) error {
	if start == 0 {
		return nil // there is none
	}
	end, err := t.counterEnd(start)
	for i := start; i < end; i++ {
		used[i] = true
	}
	return err
}

// counterEnd is where a table by program counter ends: pairs of numbers, until a first that is 0, but not at once.
func (t *funcTable) counterEnd(start int) (int, error) {
	if start >= len(t.counters) {
		return 0, errTable
	}
	r := wasmReader{rest: t.counters[start:]}
	for first := true; ; first = false {
		if r.number() == 0 && !first || r.broken {
			break
		}
		r.number()
	}
	if r.broken {
		return 0, errTable
	}
	return len(t.counters) - len(r.rest), nil
}

// joinCounters lays the tables by program counter that functions have anew: of one kind behind each other,
// in the order of the functions, and without what was dropped between them.
func joinCounters(memory []byte) error {
	t, err := findTable(memory)
	if err != nil {
		return err
	}
	if len(t.counters) == 0 {
		return errTable
	}
	joined := slices.Clone(t.counters[:1]) // 0 says that there is none
	moved := map[int]int{}
	kinds := []int{funcSPTable, funcFiles, funcLines}
	for kind := range mostTables {
		kinds = append(kinds, funcSize+4*kind)
	}
	for _, at := range kinds {
		for i := range t.count {
			f, err := t.function(i)
			if err != nil {
				return err
			}
			if at >= funcSize+4*number(f, funcPCTables) {
				continue
			}
			start := number(f, at)
			if start == 0 {
				continue
			}
			if moved[start] == 0 {
				end, err := t.counterEnd(start)
				if err != nil {
					return err
				}
				moved[start] = len(joined)
				joined = append(joined, t.counters[start:end]...)
			}
			binary.LittleEndian.PutUint32(f[at:], uint32(moved[start]))
		}
	}
	if len(joined) > len(t.counters) {
		return errTable
	}
	clear(t.counters[copy(t.counters, joined):])
	return nil
}
