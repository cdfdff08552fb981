package main

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// Two tables of functions are as long as they are regular: what the linker writes for each function is
// packed here column by column, each number as what it is more than the one before it, and where a
// program counter's function is found is not written at all. A function of the module, which runs at
// its start, writes both where the runtime reads them.

const (
	bucketSize   = 20 // of the table by program counter: a number of 32 bits and what is 0 here
	buckets      = 16 // how many each function has
	columnName   = 1
	columnTables = 11 // the first of mostTables; those before it are the function's own numbers
	columnData   = columnTables + mostTables
	columns      = columnData + mostTables
	columnSize   = 8 // of the state of one: where its next number is, and the last
)

// packTables empties the tables that the code it gives writes again. The columns lie where the
// larger one is then written.
func packTables(memory []byte) (*unpacker, error) {
	t, err := findTable(memory)
	if err != nil {
		return nil, err
	}
	u := unpacker{count: t.count, names: t.namesAt, functions: t.functionsAt}
	byPC := make([]byte, bucketSize*u.buckets())
	for i := range u.buckets() {
		binary.LittleEndian.PutUint32(byPC[i*bucketSize:], uint32(i/buckets))
	}
	if u.byPC = bytes.Index(memory, byPC); u.byPC < 0 || t.count < 2 {
		return nil, errTable
	}
	clear(memory[u.byPC:][:len(byPC)])
	var c packedColumns
	if err := c.read(t); err != nil {
		return nil, err
	}
	u.first, u.entry = c.first, c.entry
	if packed := c.bytes(u.byPC); copy(memory[u.byPC:][:len(byPC)], packed) < len(packed) {
		return nil, errors.New("read module: its packed table of functions has no place")
	}
	return &u, nil
}

// packedColumns are the numbers of all functions.
type packedColumns struct {
	packed       [columns][]byte
	last         [columns]int32
	first, entry int // where the first function lies and what it begins with
}

// read takes the numbers out of the table, which must be all that is in it.
func (c *packedColumns) read(t *funcTable) error {
	c.first = align(8*t.count + 4)
	c.entry = number(t.functions, 0)
	at, name := c.first, 0
	for i := range t.count {
		f, err := t.function(i)
		if err != nil {
			return err
		}
		if number(t.functions, 8*i) != c.entry+i || number(t.functions, 8*i+4) != at || number(f, 0) != c.entry+i {
			return errTable
		}
		c.put(columnName, number(f, 4*columnName)-name)
		name = number(f, 4*columnName)
		if name >= len(t.names) {
			return errTable
		}
		name += bytes.IndexByte(t.names[name:], 0) + 1
		for w := columnName + 1; w < columnTables; w++ {
			c.put(w, number(f, 4*w))
		}
		tables := number(f, funcPCTables)
		for w := range tables {
			c.put(columnTables+w, number(f, funcSize+4*w))
		}
		for w := range int(f[funcDataCount]) {
			c.put(columnData+w, number(f, funcSize+4*(tables+w)))
		}
		at = align(at + len(f))
		clear(f)
		clear(t.functions[8*i:][:8])
	}
	if at > len(t.functions) {
		return errTable
	}
	if rest := t.functions[c.first:at]; !bytes.Equal(rest, make([]byte, len(rest))) {
		return errTable
	}
	return nil
}

// align is where the next function may begin.
func align(at int) int { return (at + 7) &^ 7 }

// put appends what a number of 32 bits is more than the last, so that small ones of either sign are short.
func (c *packedColumns) put(column, v int) {
	more := int32(v) - c.last[column]
	c.last[column] = int32(v)
	c.packed[column] = binary.AppendUvarint(c.packed[column], uint64(uint32(more<<1)^uint32(more>>31)))
}

// bytes gives the states of the columns and behind them the columns, to lie at an address.
func (c *packedColumns) bytes(at int) []byte {
	out := make([]byte, columns*columnSize)
	for i, p := range c.packed {
		binary.LittleEndian.PutUint32(out[i*columnSize:], uint32(at+len(out)))
		out = append(out, p...)
	}
	return out
}

// unpacker writes the two tables; these are addresses, but for count and entry.
type unpacker struct {
	count, entry, names, functions, first, byPC int
}

// buckets is how many are written; of the last function only what it needs is there.
func (u *unpacker) buckets() int { return (u.count - 1) * buckets }

// Its locals.
const (
	localIndex = iota
	localFunction
	localTable
	localName
	localAt
	localColumn
	localCount
	unpackerLocals
)

// code gives the body of the function, which calls the one that nextCode gives.
func (u *unpacker) code(next int) []byte {
	entry := join(get(localIndex), num(u.entry), add)
	return join([]byte{1, unpackerLocals, typeI32},
		num(u.functions+u.first), set(localFunction), num(u.functions), set(localTable),
		loop,
		get(localTable), entry, store(0),
		get(localTable), get(localFunction), num(-u.functions), add, store(4),
		step(localTable, 8),
		get(localFunction), entry, store(0),
		get(localFunction), get(localName), num(u.byPC+columnName*columnSize), invoke(next), add, tee(localName), store(4*columnName),
		loop, get(localName), loadByte(u.names), step(localName, 1), again, done,
		get(localFunction), num(4*columnName+4), add, set(localAt),
		num(columnTables-columnName-1), u.copy(columnName+1, next),
		get(localFunction), load(funcPCTables), u.copy(columnTables, next),
		get(localFunction), loadByte(funcDataCount), u.copy(columnData, next),
		get(localAt), num(7), add, num(-8), and, set(localFunction),
		step(localIndex, 1), get(localIndex), num(u.count), less, again, done,
		num(u.byPC), num(0), num(u.buckets()*bucketSize), fill,
		num(0), set(localIndex), num(u.byPC), set(localAt),
		loop,
		get(localAt), get(localIndex), num(4), shiftRight, store(0),
		step(localAt, bucketSize),
		step(localIndex, 1), get(localIndex), num(u.buckets()), less, again, done,
		done)
}

// copy writes as many numbers as are on the stack, of as many columns.
func (u *unpacker) copy(column, next int) []byte {
	return join(set(localCount), num(u.byPC+column*columnSize), set(localColumn),
		block, loop, get(localCount), not, leaveLoop,
		get(localAt), get(localColumn), invoke(next), store(0),
		step(localAt, 4), step(localColumn, columnSize), step(localCount, -1),
		repeat, done, done)
}

// nextCode gives the body of the function that reads the next number of a column, whose state is at an address.
func nextCode() []byte {
	const state, at, read, sum, shift = 0, 1, 2, 3, 4
	return join([]byte{1, 4, typeI32},
		get(state), load(0), set(at),
		loop,
		get(sum), get(at), loadByte(0), tee(read), num(127), and, get(shift), shiftLeft, or, set(sum),
		step(at, 1), step(shift, 7),
		get(read), num(127), more, again, done,
		get(state), get(at), store(0),
		get(state), load(4), get(sum), num(1), shiftRight, num(0), get(sum), num(1), and, sub, xor, add, set(sum),
		get(state), get(sum), store(4),
		get(sum), done)
}
