package blocks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/gz"
)

// textOf is a block of text whose JSON has so many bytes.
func textOf(n int) tidemark.Block {
	return tidemark.Text(strings.Repeat("x", n-len(tidemark.Text("").AppendJSON(nil))))
}

// parsed is a block as it is read from the log.
func parsed(t *testing.T, raw string) tidemark.Block {
	t.Helper()
	var b tidemark.Block
	if err := b.UnmarshalJSON([]byte(raw)); err != nil {
		t.Fatal(err)
	}
	return b
}

// user is a message of some blocks.
func user(content ...tidemark.Block) tidemark.Message {
	return tidemark.Message{Role: tidemark.User, Content: content}
}

const sum64 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// TestSpilled: a block over 256 KiB goes into the bucket, and of a message over 1 MiB the largest until it fits, but none that
// is no larger than a reference.
func TestSpilled(t *testing.T) {
	const kib = 1 << 10
	sizes := func(n, size int) []int { return slices.Repeat([]int{size}, n) }
	for _, c := range []struct {
		name  string
		sizes []int
		want  []int
	}{
		{"as large as a block may be", sizes(1, SpillBytes), nil},
		{"a byte larger", []int{10 * kib, SpillBytes + 1, SpillBytes}, []int{1}},
		{"as large as a row may be", sizes(5, rowBytes/8), nil},
		{"as large as that in all", sizes(8, rowBytes/8), nil},
		{"a byte more in all", append(sizes(8, rowBytes/8), 100), []int{0}},
		{"the largest first", []int{100 * kib, 250 * kib, 200 * kib, 240 * kib, 230 * kib, 220 * kib}, []int{1}},
		{"the largest two", []int{150 * kib, 250 * kib, 200 * kib, 240 * kib, 230 * kib, 220 * kib}, []int{1, 3}},
		{"a large one makes room", []int{300 * kib, 250 * kib, 250 * kib, 250 * kib, 250 * kib}, []int{0}},
		{"as small as references", sizes(600, maxReference), nil},
		{"larger than those", sizes(513, maxReference+1), []int{0, 1}},
	} {
		s, _, _ := stores(t)
		var content []tidemark.Block
		for _, size := range c.sizes {
			content = append(content, textOf(size))
		}
		m := user(content...)
		out, err := s.Spill(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		got, bytes := Large(out)
		size := int64(0)
		for _, i := range c.want {
			size += int64(c.sizes[i])
		}
		if !slices.Equal(got, c.want) || bytes != size || len(out.Content) != len(m.Content) || out.Role != m.Role {
			t.Errorf("%s: blocks %d of %d bytes stand in the bucket, want %d of %d", c.name, got, bytes, c.want, size)
		}
		if refs, _ := Large(m); len(refs) != 0 {
			t.Errorf("%s: the message that was given is changed", c.name)
		}
	}
}

// TestSpillRefused: a block that is too large is refused, and so is one that the bucket does not take, unless it is there.
func TestSpillRefused(t *testing.T) {
	s, _, blobs := stores(t)
	raw := make([]byte, MaxBytes+1)
	if _, err := s.store(t.Context(), tidemark.Text("x"), raw, false); !errors.Is(err, tidemark.ErrTooLarge) || !strings.Contains(err.Error(), "25165825 bytes, at most 25165824") {
		t.Errorf("a block that is too large: %v", err)
	}
	for range 2 { // the second time it is there
		b, err := s.store(t.Context(), tidemark.Text("x"), raw[:MaxBytes], true)
		if ref, ok := Reference(b); err != nil || !ok || ref.Bytes != MaxBytes || !ref.Bare {
			t.Errorf("the largest block: %+v, %v", ref, err)
		}
	}
	blobs.Fail = func(op, key string) error { return fmt.Errorf("%s of %s: the bucket is down", op, key) }
	m := user(textOf(SpillBytes + 1))
	if got, err := s.Spill(t.Context(), m); err == nil || !strings.HasPrefix(err.Error(), "store block of 262145 bytes: ") || len(got.Content) != 1 {
		t.Errorf("a bucket that is down: %v", err)
	}
	if err := s.Import(t.Context(), sum64, 1, strings.NewReader("x")); err == nil {
		t.Error("a bucket that is down takes what is imported")
	}
}

// TestReferTo: what stands in the place of a block keeps what the log needs of it.
func TestReferTo(t *testing.T) {
	to := Ref{SHA256: sum64, Bytes: 7, In: inRow, Call: 3}
	for name, c := range map[string]struct{ of, want tidemark.Block }{
		"a text":   {tidemark.Text("long"), tidemark.Block{Type: tidemark.TypeText}},
		"a call":   {tidemark.ToolUse("c1", "look", []byte(`{"a":1}`)), tidemark.ToolUse("c1", "look", nil)},
		"a result": {tidemark.ToolResult("c1", "long", true), tidemark.Block{Type: tidemark.TypeToolResult, ToolUseID: "c1", IsError: true}},
	} {
		got, err := referTo(c.of, to)
		ref, ok := Reference(got)
		if want := (Ref{SHA256: sum64, Bytes: 7, In: inRow, Call: 3, id: c.want.ToolUseID}); err != nil || !ok || ref != want || !ref.InRow() {
			t.Errorf("%s: %+v, %v", name, ref, err)
		}
		if got.Type != c.want.Type || got.ID != c.want.ID || got.Name != c.want.Name || string(got.Input) != string(c.want.Input) || got.ToolUseID != c.want.ToolUseID || got.IsError != c.want.IsError || got.Text != "" || len(got.Content) != 0 {
			t.Errorf("%s: %s", name, got.AppendJSON(nil))
		}
	}
}

// TestReference: a reference names bytes of a possible size by a hash in lower case, in a block that is no larger than ours are.
func TestReference(t *testing.T) {
	for _, c := range []struct {
		name, sum, bytes string
		size             int // of the block, 0: as it is
		want             bool
	}{
		{"one of ours", sum64, "7", 0, true},
		{"of nothing", sum64, "0", 0, true},
		{"of less", sum64, "-1", 0, false},
		{"of the most", sum64, "25165824", 0, true},
		{"of more", sum64, "25165825", 0, false},
		{"a short hash", sum64[1:], "7", 0, false},
		{"a long one", sum64 + "0", "7", 0, false},
		{"capitals", strings.ToUpper(sum64), "7", 0, false},
		{"another letter", sum64[1:] + "g", "7", 0, false},
		{"as large as ours are", sum64, "7", maxReference, true},
		{"larger", sum64, "7", maxReference + 1, false},
		{"no number", sum64, `"7"`, 0, false},
	} {
		raw := `{"type":"tool_result","tool_use_id":"c1","tidemark_blob":{"sha256":"` + c.sum + `","bytes":` + c.bytes + `},"content":""}`
		if c.size > 0 {
			raw = raw[:len(raw)-2] + strings.Repeat("x", c.size-len(raw)) + `"}`
		}
		ref, ok := Reference(parsed(t, raw))
		if ok != c.want || ok && (ref.SHA256 != c.sum || ref.id != "c1" || ref.InRow()) || !ok && ref != (Ref{}) {
			t.Errorf("%s: %+v, %v", c.name, ref, ok)
		}
	}
	if _, ok := Reference(parsed(t, `{"type":"text","text":"x","other":{"sha256":"`+sum64+`","bytes":7}}`)); ok {
		t.Error("a block without the field refers to something")
	}
	if _, ok := Reference(tidemark.Text("tidemark_blob")); ok {
		t.Error("a block that was made here refers to something")
	}
}

// TestCompressed: results of tools over a size go into the table, where that saves something and they are not for the bucket.
func TestCompressed(t *testing.T) {
	s, _, _ := stores(t)
	result := func(text string) tidemark.Block { return tidemark.ToolResult("c1", text, false) }
	empty := len(result("").AppendJSON(nil))
	of := func(n int) tidemark.Block { return result(strings.Repeat("x", n-empty)) } // bytes of JSON
	wide := result(strings.Repeat("é", 1000))                                        // two bytes each, one character
	random := func(n int) string {                                                   // nothing repeats
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			b.WriteString(string(tidemark.HashOf([]byte(fmt.Sprint(i)))))
		}
		return b.String()[:n]
	}
	saves := func(by int) tidemark.Block { // so many bytes, with what the row takes
		for n := range 4000 {
			b := result(random(1000) + strings.Repeat("x", n))
			kept, _ := withoutCall(b.AppendJSON(nil), "c1")
			if packed, err := gz.Zip(kept); err == nil && len(b.AppendJSON(nil))-len(packed)-minSaved == by {
				return b
			}
		}
		t.Fatalf("no result saves %d bytes", by)
		return tidemark.Block{}
	}
	for _, c := range []struct {
		name string
		b    tidemark.Block
		most int
		want bool
	}{
		{"at the size", of(2000), 2000, false},
		{"over it", of(2000), 1999, true},
		{"any, with none", of(2000), 0, true},
		{"any, off", of(2000), -1, false},
		{"more bytes than characters, at the size", wide, tidemark.UTF16Len(wide.AppendJSON(nil)), false},
		{"more bytes than characters, over it", wide, tidemark.UTF16Len(wide.AppendJSON(nil)) - 1, true},
		{"as large as a block may be", of(SpillBytes), 2000, true},
		{"for the bucket", of(SpillBytes + 1), 2000, false},
		{"what saves nothing", saves(-1), 100, false},
		{"what saves as much as it takes", saves(0), 100, true},
		{"a text", textOf(3000), 100, false},
	} {
		out, stmts, err := s.Compress(t.Context(), user(tidemark.Text("before"), c.b, tidemark.Text("behind")), c.most)
		if err != nil || len(stmts) != map[bool]int{true: 1}[c.want] || len(out.Content) != 3 || out.Content[0].Text != "before" || out.Content[2].Text != "behind" {
			t.Fatalf("%s: %d statements, %v, want %v", c.name, len(stmts), err, c.want)
		}
		ref, ok := Reference(out.Content[1])
		if ok != c.want {
			t.Errorf("%s: %v", c.name, ok)
		}
		if ok {
			kept, at := withoutCall(c.b.AppendJSON(nil), "c1")
			a := stmts[0].Args
			if a[0] != string(s.Key) || a[1] != ref.SHA256 || a[2] != len(kept) || ref.Bytes != len(c.b.AppendJSON(nil)) || ref.Call != at || ref.SHA256 != string(tidemark.HashOf(kept)) || out.Role != tidemark.User {
				t.Errorf("%s: %+v with %v", c.name, ref, a[:3])
			}
		}
	}
	branch := *s
	branch.Key = "agent:main:main#side"
	if _, stmts, err := branch.Compress(t.Context(), user(of(2000)), 100); err != nil || len(stmts) != 1 || stmts[0].Args[0] != "agent:main:main" {
		t.Errorf("of a branch: %v, %v", stmts, err)
	}
	branch.Open = func(context.Context) error { return io.ErrUnexpectedEOF }
	if _, _, err := branch.Compress(t.Context(), user(of(2000)), 100); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("where no table can be made: %v", err)
	}
}

// TestWithoutCall: the id of a call is taken out of its result and put back where it stood.
func TestWithoutCall(t *testing.T) {
	for _, c := range []struct {
		raw, id, kept string
		at            int
	}{
		{`{"tool_use_id":"c1","content":"c1"}`, "c1", `{"tool_use_id":,"content":"c1"}`, 15},
		{`{"content":"x","tool_use_id":"a\"b"}`, `a"b`, `{"content":"x","tool_use_id":}`, 29},
		{`{"tool_use_id":"c12"}`, "c1", `{"tool_use_id":"c12"}`, 0},
		{`{"content":"x"}`, "c1", `{"content":"x"}`, 0},
	} {
		raw := []byte(c.raw)
		kept, at := withoutCall(raw, c.id)
		if string(kept) != c.kept || at != c.at || string(raw) != c.raw {
			t.Errorf("%s: %s, %d", c.raw, kept, at)
		}
		if back := withCall(kept, c.id, at); string(back) != c.raw || string(kept) != c.kept {
			t.Errorf("%s: back %s", c.raw, back)
		}
	}
	for at, want := range map[int]string{-1: "abc", 0: "abc", 1: `a"c"bc`, 3: `abc"c"`, 4: "abc"} {
		if got := withCall([]byte("abc"), "c", at); string(got) != want {
			t.Errorf("at %d: %s, want %s", at, got, want)
		}
	}
}
