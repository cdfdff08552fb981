package main

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestLikeOrder: of kinds of functions in no order, those of a kind come near each other, and all are
// there once.
func TestLikeOrder(t *testing.T) {
	const kinds, each = 20, 4
	kindOf := rand.New(rand.NewPCG(1, 2)).Perm(kinds * each)
	functions := make([][][]byte, kinds*each)
	for f := range functions {
		kindOf[f] %= kinds
		for i := range byte(10) {
			functions[f] = append(functions[f], []byte{opLocalGet, byte(kindOf[f]), i})
		}
	}
	order := likeOrder(functions)
	if sorted := slices.Sorted(slices.Values(order)); len(sorted) != len(functions) || sorted[0] != 0 || len(slices.Compact(sorted)) != len(functions) {
		t.Fatalf("%v are not all functions", sorted)
	}
	spread := func(order []int) int { // from the first to the last of each kind
		first, sum := map[int]int{}, 0
		last := map[int]int{}
		for place, f := range order {
			if _, ok := first[kindOf[f]]; !ok {
				first[kindOf[f]] = place
			}
			last[kindOf[f]] = place
		}
		for kind := range kinds {
			sum += last[kind] - first[kind]
		}
		return sum
	}
	before := spread(slices.Sorted(slices.Values(order)))
	if after := spread(order); after > before/4 {
		t.Errorf("kinds are spread over %d places, and were over %d", after, before)
	}
	if !slices.Equal(likeOrder(functions), order) {
		t.Error("the order is another one each time")
	}
}

// someModule has an import, 0, and three functions of its own, 1 to 3, of two types.
func someModule() []section {
	list := func(kind byte, items ...[]byte) section {
		return section{kind: kind, body: appendItems([]byte{0}, items...)}
	}
	return []section{
		list(typeSection, []byte{typeFunction, 0, 0}, []byte{typeFunction, 1, typeI32, 1, typeI32}),
		list(importSection, []byte{1, 'm', 1, 'f', 0, 0}),
		list(functionSection, []byte{1}, []byte{1}, []byte{0}),
		list(exportSection, []byte{3, 'r', 'u', 'n', 0, 3}, []byte{3, 'm', 'e', 'm', 2, 0}, []byte{1, 'i', 0, 0}),
		list(elementSection, []byte{0, opConst, 5, opEnd, 3, 1, 2, 3}),
		list(codeSection, sized([]byte{0, opLocalGet, 0, opCall, 2, opEnd}), sized([]byte{1, 1, typeI64, opLocalGet, 0, opEnd}), sized([]byte{0, opConst, 7, opCall, 1, opCall, 0, opEnd})),
	}
}

// TestInOrder: a function has its new number wherever it is named, and an import its own.
func TestInOrder(t *testing.T) {
	parts := someModule()
	functions, err := readFunctions(parts)
	if err != nil {
		t.Fatal(err)
	}
	got, err := inOrder(parts, functions, []int{2, 0, 1})
	if err != nil {
		t.Fatal(err)
	}
	want := someModule()
	want[2].body = []byte{3, 0, 1, 1}
	want[3].body[6] = 1
	copy(want[4].body[6:], []byte{2, 3, 1})
	want[5].body = join([]byte{3}, sized([]byte{0, opConst, 7, opCall, 2, opCall, 0, opEnd}), sized([]byte{0, opLocalGet, 0, opCall, 3, opEnd}), sized([]byte{1, 1, typeI64, opLocalGet, 0, opEnd}))
	for i, s := range got {
		if !bytes.Equal(s.body, want[i].body) {
			t.Errorf("section %d: % x\nwant % x", s.kind, s.body, want[i].body)
		}
	}
}

// TestReorderRefuses: where a function may be named in another form, nothing is guessed.
func TestReorderRefuses(t *testing.T) {
	if _, err := reorder(someModule()); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func([]section){
		"a start":                 func(p []section) { p[4] = section{kind: startSection, body: []byte{1}} },
		"a table of another form": func(p []section) { p[4].body[1] = 1 },
		"a place that is counted": func(p []section) { p[4].body[2] = opGlobalGet },
		"a table that ends early": func(p []section) { p[4].body = p[4].body[:7] },
		"more behind its end":     func(p []section) { p[4].body = append(p[4].body, 0) },
		"a function too many":     func(p []section) { p[3].body[6] = 4 },
		"a type too few":          func(p []section) { p[2].body = []byte{2, 1, 1} },
		"another call":            func(p []section) { p[5].body[5] = 0x12 },
		"a function as a value":   func(p []section) { p[5].body[5] = 0xd2 },
		"a call of none":          func(p []section) { p[5].body[6] = 9 },
		"code that is cut off":    func(p []section) { p[5].body = p[5].body[:9] },
	} {
		t.Run(name, func(t *testing.T) {
			parts := someModule()
			change(parts)
			if _, err := reorder(parts); err == nil {
				t.Error("it is done")
			}
		})
	}
}
