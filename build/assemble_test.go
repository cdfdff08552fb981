package main

import "testing"

// TestAddStart: a module of another form is refused.
func TestAddStart(t *testing.T) {
	list := func(kind byte, items ...[]byte) section {
		return section{kind: kind, body: appendItems([]byte{0}, items...)}
	}
	var (
		unary    = []byte{typeFunction, 1, typeI32, 1, typeI32}
		types    = list(typeSection, []byte{typeFunction, 2, typeI64, typeI32, 0}, unary)
		imports  = list(importSection, []byte{1, 'm', 1, 'f', 0, 0})
		own      = list(functionSection, []byte{1})
		elements = list(elementSection)
		bodies   = list(codeSection, sized([]byte{0, opLocalGet, 0, opEnd}))
	)
	for name, r := range map[string]struct {
		parts []section
		ok    bool
	}{
		"as Go writes it":       {[]section{types, imports, own, elements, bodies}, true},
		"with a start":          {[]section{types, imports, own, {kind: startSection, body: []byte{0}}, elements, bodies}, false},
		"no place for a start":  {[]section{types, imports, own, bodies}, false},
		"without Go's type":     {[]section{list(typeSection, []byte{typeFunction, 0, 0}), imports, own, elements, bodies}, false},
		"a function without it": {[]section{types, imports, own, elements, list(codeSection)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := addStart(r.parts, &unpacker{count: 2})
			if (err == nil) != r.ok {
				t.Fatalf("%v", err)
			}
			if !r.ok {
				return
			}
			for kind, want := range map[byte]int{typeSection: 3, importSection: 1, functionSection: 3, startSection: 3, codeSection: 3} {
				if n := count(got, kind); n != want {
					t.Errorf("section %d begins with %d, want %d", kind, n, want)
				}
			}
		})
	}
}
