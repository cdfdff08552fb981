package main

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

// part is one section of a module as the linker writes it.
func part(kind byte, body ...[]byte) []byte {
	b := bytes.Join(body, nil)
	return append(binary.AppendUvarint([]byte{kind}, uint64(len(b))), b...)
}

func counted(b string) []byte { return append(binary.AppendUvarint(nil, uint64(len(b))), b...) }

// module has two imported functions and three of its own: of 3, 300 and 5 bytes of code.
func module() []byte {
	code := []byte{3}
	for _, n := range []int{3, 300, 5} {
		code = append(code, counted("\x00"+strings.Repeat("\x01", n-2)+"\x0b")...) // no locals, nothing, end
	}
	names := []byte{3}
	for i, n := range []string{"fmt.Sprintf", "github.com_tidemark_ai_tidemark_session.__Session_.turn", "type_.eq.x"} {
		names = append(append(names, byte(2+i)), counted(n)...)
	}
	return joined("\x00asm\x01\x00\x00\x00", part(2, []byte{2}, []byte("imports")), part(10, code), part(0, counted("producers"), []byte("Go")),
		part(0, counted("name"), part(0, []byte("module")), part(1, names)))
}

func joined(first string, parts ...[]byte) []byte {
	return append([]byte(first), bytes.Join(parts, nil)...)
}

// TestCodeSizes: functions count for the package whose path they begin with.
func TestCodeSizes(t *testing.T) {
	parts, err := sections(module())
	if err != nil {
		t.Fatal(err)
	}
	sizes, err := codeSizes(parts, []string{"fmt", "github.com/tidemark-ai/tidemark", "github.com/tidemark-ai/tidemark/session"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"fmt": 3, "github.com/tidemark-ai/tidemark/session": 300, "generated": 5}
	for p, n := range want {
		if sizes[p] != n || len(sizes) != len(want) {
			t.Errorf("%s has %d bytes, want %d: %v", p, sizes[p], n, sizes)
		}
	}
	if got := largest(sizes, 2); !strings.Contains(got, "session") || !strings.HasSuffix(got, "5 generated") || strings.Contains(got, "fmt") {
		t.Errorf("the largest two: %q", got)
	}
	tidied, err := tidy(module(), parts, false)
	if err != nil {
		t.Fatal(err)
	}
	if bare, err := sections(tidied); err != nil || len(bare) != 2 {
		t.Errorf("tidied: %d sections, %v", len(bare), err)
	} else if _, err := codeSizes(bare, nil); err == nil {
		t.Error("a module without names has sizes")
	}
}

// TestBig: a large package needs a line, a line needs a large package; ours need none.
func TestBig(t *testing.T) {
	sizes := map[string]int{"generated": 1e6, "main": 1e6, "github.com/tidemark-ai/tidemark/session": 1e6, "text/tabwriter": most}
	for p := range big {
		sizes[p] = most + 1
	}
	if err := unexpected(sizes); err != nil {
		t.Error(err)
	}
	if err := stale(sizes); err != nil {
		t.Error(err)
	}
	sizes["text/tabwriter"]++
	if err := unexpected(sizes); err == nil || !strings.Contains(err.Error(), "text/tabwriter") || strings.Contains(err.Error(), "runtime") {
		t.Errorf("a large package without a line: %v", err)
	}
	sizes["runtime"]--
	if err := stale(sizes); err == nil || !strings.Contains(err.Error(), "runtime") {
		t.Errorf("a line without a large package: %v", err)
	}
}

// FuzzSections: a module that is read is its sections one after the other.
func FuzzSections(f *testing.F) {
	f.Add(module())
	f.Add(module()[:40])
	f.Add([]byte("\x00asm\x01\x00\x00\x00\x01"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		parts, err := sections(raw)
		if err != nil {
			return
		}
		all := bytes.Clone(raw[:8])
		for _, s := range parts {
			all = append(all, s.all...)
		}
		if !bytes.Equal(all, raw) {
			t.Errorf("%q was read as %q", raw, all)
		}
		if sizes, err := codeSizes(parts, []string{"fmt"}); err == nil && len(sizes) == 0 {
			t.Error("no error and no sizes")
		}
	})
}
