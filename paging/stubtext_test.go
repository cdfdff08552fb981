package paging

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// TestStubText has a row for each form of what stands for a page.
func TestStubText(t *testing.T) {
	read, part := Call{Tool: "Read", Path: "/a b.go"}, Call{Tool: "Read", Path: "/a.go", Range: Range{From: 3, To: 9}}
	for _, row := range []struct {
		g            Page
		handle, want string
	}{
		{Page{Read: true, Call: read, Size: 70, Lines: 2}, "", "[Paged out: Read /a b.go (70 bytes, 2 lines). Re-read if needed.]"},
		{Page{Read: true, Call: part, Size: 70, Lines: 2}, "get H", "[Paged out: Read /a.go lines 3-9 (70 bytes, 2 lines). Re-read if needed. get H]"},
		{Page{Call: read, Size: 70, Lines: 2}, "", "[Cleared: Read (70 bytes, 2 lines).]"},
		{Page{Size: 0, Lines: 0}, "get H", "[Cleared: result (0 bytes, 0 lines). get H]"},
		{Page{Read: true, Call: Call{Path: "/a"}, Size: 1, Lines: 1}, "", "[Paged out: result /a (1 bytes, 1 lines). Re-read if needed.]"},
		{Page{Part: Image, Media: "image/png", Size: 1}, "get H", "[Paged out: image/png (1 bytes). get H]"},
		{Page{Part: Image, Media: "image"}, "", "[Paged out: image.]"},
	} {
		if got := row.g.Stub(row.handle); got != row.want {
			t.Errorf("%q, want %q", got, row.want)
		}
	}
	if got := string(textBlock("a\"\n")); got != `{"type":"text","text":"a\"\n"}` {
		t.Errorf("%s", got)
	}
}

// TestKeptOf: what is stored is of the part that stands in a block, and a stub that it does not fit is named by its block.
func TestKeptOf(t *testing.T) {
	const image = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}`
	m := scan(t, `{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"a","content":"xy\n"},`+image+`]}`)
	for block, want := range map[int]Kept{1: {Part: "result", ID: "a", Size: 3, Lines: 1, Wire: 6}, 2: {Part: "image", Media: "image/png", Decoded: 3, Size: len(image), Wire: len(image), Data: 4, Images: 1}} {
		k, ok := m.Kept(block)
		if !ok || k.Part != want.Part || k.ID != want.ID || k.Size != want.Size || k.Lines != want.Lines || k.Media != want.Media || k.Decoded != want.Decoded || k.Wire != want.Wire || k.Data != want.Data || k.Images != want.Images || len(k.Hash) != 64 {
			t.Errorf("block %d: %+v, %v", block, k, ok)
		}
	}
	for _, block := range []int{-1, 0, 3} {
		if k, ok := m.Kept(block); ok {
			t.Errorf("block %d: %+v", block, k)
		}
	}
	s := &Scanner{Tools: DefaultTools()}
	content := []tidemark.Block{tidemark.Text("x"), tidemark.Text("y")}
	hash := strings.Repeat("0", 62)
	for _, row := range []struct {
		k    Kept
		want string
	}{
		{Kept{Part: "x"}, `block 2: part "x": want result, input or image`}, {Kept{Part: "result", Hash: hash}, "block 2: hash"}, {Kept{Part: "result", Hash: hash + "0"}, "block 2: hash"},
		{Kept{Part: "result", Hash: hash + "zz"}, "block 2: hash"}, {Kept{Part: "result", Hash: hash + "00"}, ""}, {Kept{Part: "result", Hash: hash + "0000"}, `block 2: hash "` + hash + `0000" of a part: want 64 hex digits`},
	} {
		_, err := s.Original(tidemark.Message{Role: tidemark.User, Content: content}, map[int]Kept{1: row.k})
		if row.want == "" && err != nil || row.want != "" && (!errors.Is(err, tidemark.ErrInvalid) || !strings.HasPrefix(err.Error(), row.want)) {
			t.Errorf("%+v: %v, want %q", row.k, err, row.want)
		}
	}
}

// TestStayNotes: a message keeps with it what it brought out again, and nothing of what was out all the same; an anchor counts once.
func TestStayNotes(t *testing.T) {
	p := bare(t, Options{Policy: "fifo", Tau: 2})
	s := scripted(t, "begin; bash x; say; say; say")
	for _, st := range s.Steps {
		if _, err := p.Step(st); err != nil {
			t.Fatal(err)
		}
	}
	say := s.Steps[4].Append
	if _, err := p.Step(Step{Cut: true, Keep: 7, Stay: true, Append: say}); err != nil || p.messages[7].asked != nil || len(p.Stubs()) != 1 {
		t.Errorf("%v: it is out, and noted %+v", err, p.messages[7].asked)
	}
	if _, err := p.Step(Step{Cut: true, Keep: 6, Stay: true, Append: say}); err != nil || p.messages[6].asked == nil || len(p.messages[6].asked.stay) != 1 || p.messages[7].asked != nil || len(p.Stubs()) != 1 {
		t.Errorf("%v: %d are out", err, len(p.Stubs()))
	}
	p = stepped(t, Options{Policy: "lru", Tau: 99}, Session{Steps: s.Steps[:3]})
	for i, st := range []Step{{Anchor: []string{"t1", "t1"}}, {Anchor: []string{"t1"}}, {Release: []string{"t1"}}} {
		if _, err := p.Step(st); err != nil || p.anchors != []int{1, 1, 0}[i] || p.pages[0].anchored != (i < 2) {
			t.Errorf("%+v: %d are anchored, %v", st, p.anchors, err)
		}
	}
}

// TestShortHandle: a handle of one letter names a message, and a block of it.
func TestShortHandle(t *testing.T) {
	p := bare(t, Options{Tau: 9})
	s := scripted(t, "begin; bash x as b + bash y as c")
	s.Steps[1].Append[1].Handle = "e"
	for _, st := range s.Steps {
		if _, err := p.Step(st); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string][]string{"e": {"b", "c"}, "e#0": {"b"}, "e#1": {"c"}, "e#2": nil, "#0": nil, "e##0": nil, "e#0#0": nil} {
		if got := idsOf(p.Find(name)); !slices.Equal(got, want) {
			t.Errorf("%q names %q, want %q", name, got, want)
		}
	}
}

// TestHandleLengths: handles of up to 200 bytes and paths of up to 4,096 name something, whatever escapes they are written with.
func TestHandleLengths(t *testing.T) {
	a := func(n int) string { return strings.Repeat("a", n) }
	for _, row := range []struct {
		tool, input string
		want        []int // bytes of what is named
	}{
		{ReleaseTool, `{"handles":["` + a(maxHandle) + `","` + a(maxHandle+1) + `","` + strings.Repeat(`\u0061`, maxHandle) + `"]}`, []int{maxHandle, maxHandle}},
		{ReleaseTool, `{"handles":"` + a(maxHandle+1) + `","paths":"` + a(900) + `"}`, []int{900}},
		{ReleaseTool, `{"paths":["b"],"handles":["cc"]}`, []int{2, 1}},
		{FaultTool, `{"paths":["` + a(maxPath+1) + `","",7,["x"],{"y":"z"},"b"]}`, []int{1}},
		{FaultTool, `{"paths":{"a":"b"}}`, nil}, {FaultTool, `{"handles":["a"]}`, nil}, {FaultTool, `{}`, nil},
		{"mcp__x__Memory-Fault", `{"paths":"b"}`, []int{1}}, {"x__memory_fault", `{"paths":"b"}`, nil},
		{RecallTool, `{"entry":"` + a(maxHandle) + `"}`, []int{maxHandle}}, {RecallTool, `{"entry":"` + a(maxHandle+1) + `"}`, nil}, {RecallTool, `{"entry":["b"]}`, []int{1}},
	} {
		c := DefaultTools().Call(row.tool, []byte(row.input))
		var got []int
		for _, name := range slices.Concat(c.Release, c.Wants) {
			got = append(got, len(name))
		}
		if c.Recall != "" {
			got = append(got, len(c.Recall))
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%s %.60s: names of %v bytes, want %v", row.tool, row.input, got, row.want)
		}
	}
	for n, want := range map[int]int{MaxHandles - 1: MaxHandles - 1, MaxHandles: MaxHandles, MaxHandles + 1: MaxHandles} {
		names := `["a"` + strings.Repeat(`,"a"`, n-1) + `]`
		for _, input := range []string{`{"handles":` + names + `}`, `{"handles":["b"],"paths":` + names + `}`} {
			got := len(DefaultTools().Call(ReleaseTool, []byte(input)).Release)
			if more := strings.Count(input, `"b"`); got != min(want+more, MaxHandles) {
				t.Errorf("%d names and %d more: %d", n, more, got)
			}
		}
		if got := len(DefaultTools().Call(FaultTool, []byte(`{"paths":`+names+`}`)).Wants); got != want {
			t.Errorf("%d of %d names are asked for", got, n)
		}
	}
}
