package cloudflare

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// TestPackIsTheWire: the bytes that build/codec.mjs reads.
func TestPackIsTheWire(t *testing.T) {
	for _, tc := range []struct {
		name string
		rows [][]any
		want string
	}{
		{"no rows", nil, "00000000"},
		{"empty row", [][]any{{}}, "01000000" + "0000"},
		{"null and nil bytes", [][]any{{nil, []byte(nil)}}, "01000000" + "0200" + "00" + "00"},
		{"numbers", [][]any{{1, int64(-2), 0.5}}, "01000000" + "0300" + "01000000000000f03f" + "0100000000000000c0" + "01000000000000e03f"},
		{"booleans are numbers", [][]any{{true, false}}, "01000000" + "0200" + "01000000000000f03f" + "010000000000000000"},
		{"text and blob", [][]any{{"é", []byte{0}}, {""}}, "02000000" + "0200" + "02" + "02000000" + "c3a9" + "03" + "01000000" + "00" + "0100" + "02" + "00000000"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := hex.EncodeToString(packRows(tc.rows...)); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestUnpackNumbers: JavaScript has one kind of number, Go gets back the kind that SQL would give.
func TestUnpackNumbers(t *testing.T) {
	for _, tc := range []struct {
		name string
		in   float64
		want any
	}{
		{"whole", 7, int64(7)},
		{"fraction", 7.5, 7.5},
		{"largest whole", 1 << 53, int64(1) << 53},
		{"beyond", 1 << 54, float64(1 << 54)},
		{"huge", 1e300, 1e300},
		{"endless", math.Inf(-1), math.Inf(-1)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rows, err := unpackRows(packRows([]any{tc.in}))
			if err != nil || rows[0][0] != tc.want {
				t.Errorf("got %#v, %v, want %#v", rows, err, tc.want)
			}
		})
	}
}

// TestUnpackRefuses: a buffer that is not ours is an error, and claims no memory for its counts.
func TestUnpackRefuses(t *testing.T) {
	for _, tc := range []struct{ name, in string }{
		{"nothing", ""},
		{"half a count", "0100"},
		{"rows that are not there", "ffffffff"},
		{"columns that are not there", "01000000" + "ffff"},
		{"a tag that is none", "01000000" + "0100" + "09"},
		{"half a number", "01000000" + "0100" + "0100000000"},
		{"text past the end", "01000000" + "0100" + "02" + "ffffffff" + "61"},
		{"something behind", "00000000" + "00"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in, err := hex.DecodeString(tc.in)
			if err != nil {
				t.Fatal(err)
			}
			if rows, err := unpackRows(in); err == nil {
				t.Errorf("gave %v", rows)
			}
		})
	}
}

// FuzzUnpack: whatever unpacks is said again by the same bytes, once packed.
func FuzzUnpack(f *testing.F) {
	f.Add(packRows([]any{"a", 1, nil, []byte{1}, 0.5}, []any{}))
	f.Add([]byte{1, 0, 0, 0, 255, 255})
	f.Fuzz(func(t *testing.T, in []byte) {
		rows, err := unpackRows(in)
		if err != nil {
			return
		}
		once := packRows(anyRows(rows)...)
		again, err := unpackRows(once)
		if err != nil {
			t.Fatal(err)
		}
		if twice := packRows(anyRows(again)...); !bytes.Equal(once, twice) {
			t.Errorf("%x became %x", once, twice)
		}
		if len(once) != len(in) {
			t.Errorf("%d bytes became %d", len(in), len(once))
		}
	})
}

func anyRows(rows []tidemark.Row) [][]any {
	out := make([][]any, len(rows))
	for i, r := range rows {
		out[i] = r
	}
	return out
}

// TestHostError: what callers can tell apart.
func TestHostError(t *testing.T) {
	for _, tc := range []struct {
		said string
		want error
	}{
		{"Conflict: statement 2 changed 0 rows, want 1", tidemark.ErrConflict},
		{"TooLarge: more than 20000 rows", tidemark.ErrTooLarge},
		{"Invalid: a query must not write: use Tx", tidemark.ErrInvalid},
		{"Dead: the object has ended", tidemark.ErrDead},
		{"Unavailable: database or disk is full: SQLITE_FULL", tidemark.ErrUnavailable},
	} {
		t.Run(tc.said, func(t *testing.T) {
			if err := hostError(tc.said); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
	for _, said := range []string{"Error: no such table: t", "TypeError: x", "no name at all"} {
		err := hostError(said)
		if !strings.Contains(err.Error(), said) || errors.Is(err, tidemark.ErrConflict) || errors.Is(err, tidemark.ErrUnavailable) {
			t.Errorf("%q became %v", said, err)
		}
	}
}
