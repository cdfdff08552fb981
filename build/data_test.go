package main

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

type piece struct {
	at   int64
	data string
}

func dataOf(pieces ...piece) []byte {
	out := binary.AppendUvarint(nil, uint64(len(pieces)))
	for _, p := range pieces {
		out = append(appendConst(append(out, 0), p.at), counted(p.data)...)
	}
	return out
}

// joinData writes the same memory in fewer pieces.
func joinData(body []byte) ([]byte, error) {
	memory, err := readData(body)
	return writeData(memory), err
}

// TestJoinData: pieces are joined over few zeros, parted at many; a later one is written over an
// earlier.
func TestJoinData(t *testing.T) {
	far := strings.Repeat("\x00", gap)
	for name, r := range map[string]struct{ in, want []piece }{
		"none":                {nil, nil},
		"near":                {[]piece{{100, "ab"}, {110, "c"}}, []piece{{100, "ab\x00\x00\x00\x00\x00\x00\x00\x00c"}}},
		"far":                 {[]piece{{0, "ab"}, {2 + gap, "c"}}, []piece{{0, "ab"}, {2 + gap, "c"}}},
		"one zero less":       {[]piece{{0, "ab"}, {1 + gap, "c"}}, []piece{{0, "ab" + far[1:] + "c"}}},
		"zeros inside":        {[]piece{{0, "ab" + far + "c"}}, []piece{{0, "ab"}, {2 + gap, "c"}}},
		"only zeros":          {[]piece{{5, far + far}}, nil},
		"out of order":        {[]piece{{9, "b"}, {8, "a"}}, []piece{{8, "ab"}}},
		"over another":        {[]piece{{8, "abc"}, {9, "x"}, {10, "\x00"}, {11, "y"}}, []piece{{8, "ax\x00y"}}},
		"addresses of 7 bits": {[]piece{{63, "a"}, {64 + gap, "b"}, {9000, "c"}, {1 << 20, "d"}}, []piece{{63, "a"}, {64 + gap, "b"}, {9000, "c"}, {1 << 20, "d"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := joinData(dataOf(r.in...))
			if want := dataOf(r.want...); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%q, want %q: %v", got, want, err)
			}
		})
	}
}

// FuzzJoinData: the memory is the same, and nothing is left to join.
func FuzzJoinData(f *testing.F) {
	f.Add(dataOf(piece{100, "ab"}, piece{110, "c"}, piece{70000, "d"}, piece{3, "ef"}))
	f.Add(dataOf(piece{-1, "ab"}))
	f.Add(dataOf(piece{0, strings.Repeat("\x00", 70) + "x"})[:60])
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) > 1<<16 {
			return
		}
		memory, err := readData(body)
		if err != nil || len(memory) > 1<<20 {
			return
		}
		joined, err := joinData(body)
		if err != nil {
			t.Fatal(err)
		}
		again, err := readData(joined)
		if err != nil || !bytes.Equal(bytes.TrimRight(again, "\x00"), bytes.TrimRight(memory, "\x00")) {
			t.Fatalf("%q became %q: %v", memory, again, err)
		}
		if twice, err := joinData(joined); err != nil || !bytes.Equal(twice, joined) {
			t.Fatalf("joined %q, again %q: %v", joined, twice, err)
		}
	})
}
