package snapshots

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/room"
)

// TestParting: two histories part where the newest log that both have ends in the shorter of them.
func TestParting(t *testing.T) {
	at := func(log string, to int64) host.Segment { return host.Segment{Log: log, To: to} }
	end := host.LogEnd
	for _, tc := range []struct {
		name string
		a, b []host.Segment
		want host.Segment
	}{
		{"nothing in common", []host.Segment{at("x", end)}, []host.Segment{at("y", end)}, host.Segment{}},
		{"two places of one log", []host.Segment{at("x", 5)}, []host.Segment{at("x", 9)}, at("x", 5)},
		{"the same, the other way round", []host.Segment{at("x", 9)}, []host.Segment{at("x", 5)}, at("x", 5)},
		{"two branches", []host.Segment{at("a", end), at("base", 7)}, []host.Segment{at("b", end), at("base", 4)}, at("base", 4)},
		{"a branch and its base", []host.Segment{at("a", end), at("base", 7)}, []host.Segment{at("base", end)}, at("base", 7)},
		{"branches of a branch", []host.Segment{at("a", end), at("mid", 6), at("base", 4)}, []host.Segment{at("b", end), at("mid", 8), at("base", 4)}, at("mid", 6)},
	} {
		if got := parting(tc.a, tc.b); got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
	}
}

// TestNamesOfFiles: the files that a call names are noted once each, by every field that tools name them in, up to a bound of
// their number and their length.
func TestNamesOfFiles(t *testing.T) {
	long := strings.Repeat("p", comparePath)
	huge := func(more int) string {
		in := `{"path":"huge","pad":""}`
		return strings.Replace(in, `""`, `"`+strings.Repeat("a", tidemark.MaxRow-len(in)+more)+`"`, 1)
	}
	var many []string
	for i := range compareFiles - 1 {
		many = append(many, fmt.Sprint("f", i))
	}
	for _, tc := range []struct {
		name   string
		before []string
		input  string
		want   []string // behind those before
	}{
		{"each field", nil, `{"file_path":"a","notebook_path":"b","path":"c","file":"d","filename":"e","content":"f"}`, []string{"a", "b", "c", "d", "e"}},
		{"there already", []string{"a"}, `{"path":"a","file":"b"}`, []string{"b"}},
		{"no text", nil, `{"path":5,"file":["x"],"filename":"b"}`, []string{"b"}},
		{"empty", nil, `{"path":""}`, nil},
		{"no object", nil, `["path"]`, nil},
		{"as long as may be", nil, `{"path":"` + long + `"}`, []string{long}},
		{"longer", nil, `{"path":"` + long + `p"}`, nil},
		{"as large as may be", nil, huge(0), []string{"huge"}},
		{"larger", nil, huge(1), nil},
		{"room for one", many, `{"path":"one","file":"two"}`, []string{"one"}},
	} {
		x := Side{Files: slices.Clone(tc.before)}
		x.names([]byte(tc.input))
		if got := x.Files[len(tc.before):]; !slices.Equal(got, tc.want) {
			t.Errorf("%s: %.200q, want %.200q", tc.name, got, tc.want)
		}
	}
}

// TestPreviewOf: a message in a line is its text, or what it has instead, up to two hundred characters.
func TestPreviewOf(t *testing.T) {
	result := func(texts ...string) tidemark.Block {
		b := tidemark.Block{Type: tidemark.TypeToolResult, ToolUseID: "c"}
		for _, text := range texts {
			b.Content = append(b.Content, tidemark.Text(text))
		}
		return b
	}
	x := func(n int) string { return strings.Repeat("x", n) }
	for _, tc := range []struct {
		name, text string
		content    []tidemark.Block
		want       string
	}{
		{"text", " one\n\ttwo  three ", nil, "one two three"},
		{"text before all else", "word", []tidemark.Block{tidemark.ToolUse("c", "look", nil)}, "word"},
		{"no letters", "a\xffb", nil, "ab"},
		{"as long as may be", x(200), nil, x(200)},
		{"longer", x(201), nil, x(200) + "…"},
		{"much longer", x(9000), nil, x(200) + "…"},
		{"letters of two bytes", strings.Repeat("é", 201), nil, strings.Repeat("é", 200) + "…"},
		{"calls", "", []tidemark.Block{tidemark.ToolUse("c", "look", nil), tidemark.ToolUse("d", "find", nil)}, "[calls look] [calls find]"},
		{"a picture", "", []tidemark.Block{{Type: tidemark.TypeImage}}, "[image]"},
		{"a result", "", []tidemark.Block{result(" seen ", "twice")}, "seen twice"},
		{"a result of nothing", "", []tidemark.Block{result(), result(" ")}, "[nothing] [nothing]"},
		{"more of a result where its beginning is short", "", []tidemark.Block{result(x(comparePreview-1), "y")}, x(199) + " …"},
		{"no more where it is long", "", []tidemark.Block{result(x(comparePreview), "y")}, x(200)},
		{"nothing", "", nil, ""},
	} {
		if got := previewOf(tidemark.Message{Content: tc.content}, tc.text); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
	if got := resultHead(result(x(900))); got != x(800) {
		t.Errorf("of a long result %d bytes are looked at, want 800", len(got))
	}
}

// TestClipRunes: a text is cut behind so many characters, and says so.
func TestClipRunes(t *testing.T) {
	for _, tc := range []struct {
		text string
		most int
		want string
	}{{"abc", 3, "abc"}, {"abcd", 3, "abc…"}, {"äöü", 2, "äö…"}, {"äöü", 3, "äöü"}, {"", 0, ""}, {"a", 0, "…"}} {
		if got := clipRunes(tc.text, tc.most); got != tc.want {
			t.Errorf("%q to %d: %q, want %q", tc.text, tc.most, got, tc.want)
		}
	}
}

// shownSide is a side in lines, without ids and times.
func shownSide(x Side) string {
	out := fmt.Sprintf("%s: %d messages, %d since, context %d, usage %d+%d, models %q, tools %v, files %q, outcome %q, more %v, clipped %v", x.ID, x.Messages, x.Since, x.Context,
		x.Usage.Input, x.Usage.Output, x.Models, x.Tools, x.Files, x.Outcome, x.More, x.Clipped)
	for _, p := range x.Previews {
		out += fmt.Sprintf("\n%s %s: %s", p.From, p.Role, p.Text)
	}
	return out
}

// TestCompareSides: what each of two branches has for itself, whatever stands before them and whoever else talks.
func TestCompareSides(t *testing.T) {
	r := newRig(t)
	aunt := r.on("agent:main:aunt")
	aunt.talks("of another", "conversation")
	said := r.talks("one", "two")
	both := r.take(Options{Name: "both"})
	aunt.talks("and", "on")
	a, x := r.branch(BranchOptions{Snapshot: both.ID, Name: "a"})
	b, y := r.branch(BranchOptions{Snapshot: both.ID, Name: "b"})
	r.talks("three", "four")
	calls := func(blocks ...tidemark.Block) tidemark.Message {
		return tidemark.Message{Role: tidemark.Assistant, Content: blocks}
	}
	cost := func(model, asked string, in, out tidemark.Tokens) *tidemark.Call {
		return &tidemark.Call{Model: model, Requested: asked, Usage: tidemark.Usage{Input: in, Output: out}}
	}
	first := a.says(tidemark.NewText(tidemark.User, " look at it "), tidemark.FromPerson, nil)
	a.says(calls(tidemark.ToolUse("c1", "look", []byte(`{"path":"/z"}`)), tidemark.ToolUse("c2", "find", []byte(`{"file":"/b"}`))), tidemark.FromModel, cost("m1", "alias", 5, 1))
	a.says(tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult("c1", "seen", false), tidemark.ToolResult("c2", "found", false)}}, tidemark.FromTool, nil)
	a.says(calls(tidemark.Text("came to it"), tidemark.ToolUse("c3", "look", []byte(`{"path":"/z"}`))), tidemark.FromModel, cost("", "m2", 70, 10))
	a.says(calls(tidemark.ToolUse("c4", "ask", []byte(`{}`))), tidemark.FromModel, cost("m1", "", 900, 100))
	a.exec(`UPDATE heads SET context = 4321 WHERE key = ?`, string(a.key))
	c, err := b.merges.Compare(t.Context(), string(x.Key), string(y.Key))
	if err != nil {
		t.Fatal(err)
	}
	want := `agent:main:main#a: 7 messages, 5 since, context 4321, usage 975+111, models ["m1" "m2"], tools [{look 2} {ask 1} {find 1}], files ["/b" "/z"], outcome "came to it", more false, clipped false
person user: look at it
model assistant: [calls look] [calls find]
tool user: seen found
model assistant: came to it
model assistant: [calls ask]`
	if got := shownSide(c.A); got != want {
		t.Errorf("a\n%s\nwant\n%s", got, want)
	}
	if got := room.JSON(c.B); !strings.Contains(got, `"models":[],"tools":[],"files":[],"outcome":"","previews":[]`) {
		t.Errorf("b is %s", got)
	}
	if got := shownSide(c.B); got != `agent:main:main#b: 2 messages, 0 since, context 700, usage 0+0, models [], tools [], files [], outcome "", more false, clipped false` {
		t.Errorf("b\n%s", got)
	}
	if p := c.A.Previews[0]; p.Entry != first || p.At.IsZero() || p.At.Location().String() != "UTC" {
		t.Errorf("the first is %+v", p)
	}
	if c.A.Key != x.Key || c.A.Node == nil || c.A.Node.ID != string(x.Key) || c.B.Node == nil || c.B.Node.Name != "b" {
		t.Errorf("nodes %+v, %+v", c.A.Node, c.B.Node)
	}
	if k := c.Common; k.Messages != 2 || k.Entry != said[1] || k.Session != r.current() || k.Snapshot != both.ID || k.At == nil || !k.At.Equal(noon.Add(4*time.Second)) {
		t.Errorf("in common %+v, at %v", k, k.At)
	}
	// A snapshot beside the session that goes on from it, which is the root of all.
	c, err = a.merges.Compare(t.Context(), both.ID, string(mine))
	if err != nil || c.A.Key != mine || c.A.Node == nil || c.A.Node.ID != both.ID || c.A.Messages != 2 || c.A.Since != 0 || c.A.Context != 700 || c.B.Node != nil || c.B.Messages != 4 || c.B.Since != 2 || c.B.Outcome != "four" {
		t.Errorf("%v:\n%s\n%s", err, shownSide(c.A), shownSide(c.B))
	}
}

// TestCompareLong: of many messages the first are shown, and all are counted.
func TestCompareLong(t *testing.T) {
	r := newRig(t)
	r.talks("one", "two")
	n := r.take(Options{Name: "both"})
	b, _ := r.branch(BranchOptions{Snapshot: n.ID, Name: "b"})
	var stmts []tidemark.Stmt
	for i := range 150 {
		m := tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.Text(fmt.Sprint("word ", i)), tidemark.ToolUse(fmt.Sprint("c", i), fmt.Sprint("tool", i*3), []byte(fmt.Sprintf(`{"path":"f%d"}`, i)))}}
		for j := range 2 {
			m.Content = append(m.Content, tidemark.ToolUse(fmt.Sprint("d", i, j), fmt.Sprint("tool", i*3+1+j), nil))
		}
		more, err := r.log.AppendStmts(b.current(), tidemark.Entry{ID: tidemark.EntryID(tidemark.NewID(noon)), Kind: tidemark.KindMessage, At: noon, Tokens: 9000, Payload: m.AppendJSON(nil)})
		if err != nil {
			t.Fatal(err)
		}
		stmts = append(stmts, more...)
	}
	b.tx(stmts...)
	b.says(tidemark.NewText(tidemark.Assistant, strings.Repeat("ö", MaxNote+40_000)), tidemark.FromModel, nil)
	c, err := b.merges.Compare(t.Context(), string(b.key), string(mine))
	if err != nil {
		t.Fatal(err)
	}
	x := c.A
	if x.Since != 151 || len(x.Previews) != 50 || x.Previews[49].Text != "word 49" || !x.More || x.Clipped || len(x.Files) != 150 || len(x.Tools) != 200 || x.Tools[0].Name != "tool0" || x.Outcome != strings.Repeat("ö", MaxNote)+"…" {
		t.Errorf("%d since, %d previews, more %v, clipped %v, %d files, %d tools of which the first is %v, outcome of %d bytes", x.Since, len(x.Previews), x.More, x.Clipped, len(x.Files), len(x.Tools), x.Tools[0], len(x.Outcome))
	}
	if len(r.clock.slept) == 0 {
		t.Error("nobody else had a turn meanwhile")
	}
}

// TestCompareNothing: sessions in which nothing was said have nothing in common but that.
func TestCompareNothing(t *testing.T) {
	r := newRig(t)
	r.event()
	if c, err := r.merges.Compare(t.Context(), string(mine), string(mine)); err != nil || c.Common != (Common{}) || c.A.Messages != 0 || c.A.Clipped {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestCompareClipped: of very long histories the beginning is read, and that is said.
func TestCompareClipped(t *testing.T) {
	r := newRig(t)
	r.exec(`WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < ?) INSERT INTO entries(id, log, kind, role, at, skel, origin, hash, payload) SELECT n, ?, 'message', 'user', 0, '{"n":1}', '{}', '', '{"role":"user","content":"x"}' FROM i`, compareMessages+100, r.current())
	b := r.on("agent:main:main#b")
	c, err := b.merges.Compare(t.Context(), string(mine), string(b.key))
	if err != nil || c.A.Since != compareMessages+100 || !c.A.Clipped || !c.A.More || c.B.Clipped || c.Common != (Common{}) {
		t.Errorf("%d since, clipped %v, %v", c.A.Since, c.A.Clipped, err)
	}
}

// TestCompareRefuses: what is of no history of this conversation is refused, with the reason.
func TestCompareRefuses(t *testing.T) {
	r := newRig(t)
	r.talks("one", "two")
	r.on("agent:main:local:dm:other").talks("three")
	for _, tc := range []struct {
		b    string
		err  error
		says string
	}{
		{"snap none", tidemark.ErrNotFound, "neither a snapshot of this conversation nor a key"},
		{"agent:main:local:dm:other", tidemark.ErrInvalid, "is of another conversation than agent:main:main"},
		{"agent:main:main#none", tidemark.ErrNotFound, "session agent:main:main#none"},
	} {
		if _, err := r.merges.Compare(t.Context(), string(mine), tc.b); !errors.Is(err, tc.err) || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v", tc.b, err)
		}
	}
	if _, err := r.on("agent:main:proxy:dm:x").merges.Compare(t.Context(), string(mine), string(mine)); !errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), "its client keeps the history itself") {
		t.Errorf("of a client: %v", err)
	}
	n := r.take(Options{Name: "both"})
	b, _ := r.branch(BranchOptions{Snapshot: n.ID, Name: "b"})
	b.talks("five")
	if untold := r.failsAtEach("compare", func(int) error {
		_, err := r.merges.Compare(t.Context(), n.ID, string(b.key))
		return err
	}); untold != 2 {
		t.Errorf("%d failures are not told, want two, of which node the branch is", untold)
	}
}
