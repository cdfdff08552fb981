package cloudflare

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/tidemark-ai/tidemark"
)

// Tags of the wire; build/codec.mjs describes it and is its other end.
const (
	tagNull   = 0
	tagNumber = 1 // f64
	tagText   = 2 // u32 length, UTF-8
	tagBlob   = 3 // u32 length, bytes
)

// errWire is a buffer that the codec did not make.
var errWire = errors.New("broken row buffer")

// packRows encodes rows of nil, bool, int, int64, float64, string and []byte. Booleans become 0 and 1.
func packRows(rows ...[]any) []byte {
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, 256), uint32(len(rows)))
	for _, r := range rows {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(r)))
		for _, v := range r {
			b = appendValue(b, v)
		}
	}
	return b
}

func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, tagNull)
	case bool:
		if v {
			return appendNumber(b, 1)
		}
		return appendNumber(b, 0)
	case int:
		return appendNumber(b, float64(v))
	case int64:
		return appendNumber(b, float64(v))
	case float64:
		return appendNumber(b, v)
	case string:
		b = binary.LittleEndian.AppendUint32(append(b, tagText), uint32(len(v)))
		return append(b, v...)
	case []byte:
		if v == nil {
			return append(b, tagNull)
		}
		b = binary.LittleEndian.AppendUint32(append(b, tagBlob), uint32(len(v)))
		return append(b, v...)
	}
	panic(fmt.Sprintf("pack %T: CheckStmt lets no such type through", v))
}

func appendNumber(b []byte, f float64) []byte {
	return binary.LittleEndian.AppendUint64(append(b, tagNumber), math.Float64bits(f))
}

// unpackRows decodes a buffer. Whole numbers within ±2^53 become int64. Nothing of b is kept.
func unpackRows(b []byte) ([]tidemark.Row, error) {
	d := decoder{b: b}
	count := d.uint32()
	if d.bad || uint64(count)*2 > uint64(len(b)) { // a row is at least its column count
		return nil, errWire
	}
	rows := make([]tidemark.Row, count)
	for i := range rows {
		n := int(d.uint16())
		if d.bad || n > len(d.b) { // a value is at least its tag
			return nil, errWire
		}
		row := make(tidemark.Row, n)
		for k := range row {
			row[k] = d.value()
		}
		rows[i] = row
	}
	if d.bad || len(d.b) != 0 {
		return nil, errWire
	}
	return rows, nil
}

// decoder takes values off the front of b; bad stays set after the first that is not there.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.b)) {
		d.bad = true
		d.b = nil
		return make([]byte, min(n, 8))
	}
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) uint16() uint16 { return binary.LittleEndian.Uint16(d.take(2)) }
func (d *decoder) uint32() uint32 { return binary.LittleEndian.Uint32(d.take(4)) }

func (d *decoder) value() any {
	switch d.take(1)[0] {
	case tagNull:
		return nil
	case tagNumber:
		return number(math.Float64frombits(binary.LittleEndian.Uint64(d.take(8))))
	case tagText:
		return string(d.take(uint64(d.uint32())))
	case tagBlob:
		return append([]byte{}, d.take(uint64(d.uint32()))...)
	}
	d.bad = true
	return nil
}

// number gives a whole number as int64: JavaScript does not tell the two apart.
func number(f float64) any {
	const limit = 1 << 53
	if f == math.Trunc(f) && math.Abs(f) <= limit {
		return int64(f)
	}
	return f
}
