package proxy

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/proxy/body"
	"github.com/tidemark-ai/tidemark/proxy/stream"
)

// shape is a form by its letters: c counts, t is thinking, a dot is a reminder.
func shape(s string) form {
	out := make(form, len(s))
	for i := range s {
		out[i] = map[byte]standing{'.': aside, 't': thought, 'c': counts}[s[i]]
	}
	return out
}

// raws are JSON as it stands in what was put.
func raws(list ...string) (out []json.RawMessage) {
	for _, s := range list {
		out = append(out, json.RawMessage(s))
	}
	return out
}

// TestFormOf: what a block is for its message: what was said and done counts, reminders and blank texts do not, nor does thinking;
// what cannot be read counts.
func TestFormOf(t *testing.T) {
	it, err := body.NewItem([]byte(`{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"<system-reminder>x</system-reminder>"},{"type":"text","text":" \n"},
		{"type":"thinking","thinking":"hm"},{"type":"redacted_thinking","data":"x"},{"type":"tool_use","id":"c","name":"n","input":{}},{"type":"image"},{"type":7},"x"]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := formOf(it); !slices.Equal(got, shape("c..ttcccc")) {
		t.Errorf("%v", got)
	}
}

// TestFormIn: a block is found by what counts before it, in whatever form its message stands now.
func TestFormIn(t *testing.T) {
	for _, row := range []struct {
		of, other string
		block     int
		at        int
		ok        bool
	}{
		{"cc", "cc", 0, 0, true},
		{"cc", "cc", 1, 1, true},
		{"cc", "ccc", 2, 0, false},
		{"cc", "cc", -1, 0, false},
		{"c.tc", ".c.ttcc", 0, 1, true},
		{"c.tc", ".c.ttcc", 3, 5, true},
		{"tcc.c", "c.c.c", 4, 4, true},
		{"c.tc", "tc", 3, 0, false},
		{"c.tc", "cccc", 1, 0, false},
		{"c.tc", "cccc", 2, 0, false},
	} {
		if at, ok := shape(row.of).in(shape(row.other), row.block); at != row.at || ok != row.ok {
			t.Errorf("block %d of %s in %s: %d, %t, want %d, %t", row.block, row.of, row.other, at, ok, row.at, row.ok)
		}
	}
}

// TestAt: where a block of the log stands in a request: at its own place where the message came as it was, else behind as many
// that count; a message of an unknown form has none.
func TestAt(t *testing.T) {
	x, n, _ := alone(t, `{"role":"user","content":[{"type":"text","text":"<system-reminder>x</system-reminder>"},{"type":"text","text":"a"},{"type":"text","text":"b"}]}`)
	place := func(block int) string {
		at, ok := x.at(0, block)
		return fmt.Sprint(at, ok)
	}
	if got := []string{place(0), place(2), place(3)}; !slices.Equal(got, []string{"0 true", "2 true", "3 false"}) {
		t.Errorf("as it was: %q", got)
	}
	n.sum, n.form = sha256.Sum256(nil), shape("cc")
	if got := []string{place(0), place(1), place(2)}; !slices.Equal(got, []string{"1 true", "2 true", "0 false"}) {
		t.Errorf("in another form: %q", got)
	}
	n.foreign = true
	if got := place(0); got != "0 false" {
		t.Errorf("of an unknown form: %q", got)
	}
}

// said names units: so many that count before it, which of thinking, and the block of the client's, or where ours was put and what.
func said(list []unit) (out []string) {
	for _, u := range list {
		s := fmt.Sprintf("%d.%d:%d", u.N, u.Thought, u.own)
		if u.own < 0 {
			s = fmt.Sprintf("%d.%d p%d %s%s", u.N, u.Thought, u.put, u.raw, u.result)
		}
		out = append(out, s)
	}
	return out
}

// TestUnits: the blocks of a message in the order in which the model wrote them, with what its client never saw.
func TestUnits(t *testing.T) {
	mixed := &put{Places: []placed{
		{Visible: 1, Blocks: raws("b"), Calls: raws("c"), Results: raws("=r")},
		{Visible: 2, Calls: raws("d", "e"), Results: raws("=s", "=t")},
	}}
	for _, row := range []struct {
		form string
		put  *put
		want []string
	}{
		{"", nil, nil},
		{"tcc", nil, []string{"0.1:0", "0.0:1", "1.0:2"}},
		{"c.tc", nil, []string{"0.0:0", "1.1:2", "1.0:3"}},
		{"ttct", nil, []string{"0.1:0", "0.2:1", "0.0:2", "1.1:3"}},
		{"tcc", mixed, []string{"0.1:0", "0.0:1", "1.0 p0 b", "2.0 p0 c=r", "3.0:2", "4.0 p1 d=s", "5.0 p1 e=t"}},
		{"c", mixed, []string{"0.0:0", "1.0 p0 b", "2.0 p0 c=r", "3.0 p1 d=s", "4.0 p1 e=t"}},
		{"tc", &put{Places: []placed{{Thinking: 1, Calls: raws("c"), Results: raws("=r")}}}, []string{"0.1:0", "0.0 p0 c=r", "1.0:1"}},
		{"ttc", &put{Places: []placed{{Thinking: 1, Blocks: raws("b")}}}, []string{"0.1:0", "0.0 p0 b", "1.1:1", "1.0:2"}},
		{"", &put{Places: []placed{{Calls: raws("c"), Results: raws("=r")}}}, []string{"0.0 p0 c=r"}},
	} {
		if got := said(shape(row.form).units(row.put)); !slices.Equal(got, row.want) {
			t.Errorf("%q: %q, want %q", row.form, got, row.want)
		}
	}
}

// TestBefore: ours stands behind so many blocks that its client saw, and of thinking behind as many as are there.
func TestBefore(t *testing.T) {
	for _, row := range []struct {
		form              string
		visible, thinking int
		want              int
	}{
		{"ttcc", 0, 0, 0}, {"ttcc", 0, 1, 1}, {"ttcc", 0, 2, 2}, {"ttcc", 0, 3, 2},
		{"ttcc", 1, 0, 3}, {"ttcc", 1, 1, 3}, {"ttcc", 2, 0, 4}, {"ttcc", 3, 0, 4}, {"ttcc", 3, 1, 4},
		{"c.tc", 1, 0, 1}, {"c.tc", 2, 0, 2}, {"c.tc", 2, 1, 3}, {"c.tc", 3, 0, 4},
		{"t", 0, 2, 1}, {"", 1, 1, 0},
	} {
		if got := (&placed{Visible: row.visible, Thinking: row.thinking}).before(shape(row.form)); got != row.want {
			t.Errorf("%+v: %d", row, got)
		}
	}
}

// block is one as it came.
func block(t *testing.T, raw string) (b tidemark.Block) {
	t.Helper()
	if err := json.Unmarshal([]byte(raw), &b); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestSizeOf: a block has the size of what it says, in whatever form it comes and whether it has a cache marker.
func TestSizeOf(t *testing.T) {
	const mark = `,"cache_control":{"type":"ephemeral"}`
	for _, row := range []struct{ plain, odd string }{
		{`{"type":"text","text":"some words"}`, `{"text":"some words", "type":"text"` + mark + `}`},
		{`{"type":"tool_use","id":"c","name":"Read","input":{"a":1}}`, `{"type":"tool_use","id":"c","name":"Read","input":{"a":1},"caller":{"type":"direct"}}`},
		{`{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"some words"}]}`, `{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"some words"` + mark + `}]` + mark + `}`},
		{`{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"no"}],"is_error":true}`, `{"is_error":true,"type":"tool_result","tool_use_id":"c","content":"no"}`},
	} {
		a, b := block(t, row.plain), block(t, row.odd)
		if sizeOf(a) != sizeOf(b) || sizeOf(a) != tidemark.EstimateBlock(a) {
			t.Errorf("%s is of %d, %s of %d", row.plain, sizeOf(a), row.odd, sizeOf(b))
		}
	}
	image := block(t, `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}`)
	if sizeOf(image) != tidemark.EstimateBlock(image) || sizeOf(image) < tidemark.ImageTokens {
		t.Errorf("an image is of %d", sizeOf(image))
	}
}

// TestSlim: of a block a graph keeps what it is and no words; of the arguments of a long call only the short ones.
func TestSlim(t *testing.T) {
	// The input of a call: a long field that fills it up to so many bytes, and one of so many with its quotes.
	input := func(all, short int) string {
		s := `{"b":"` + strings.Repeat("b", short-2) + `","a":"`
		return s + strings.Repeat("a", all-len(s)-2) + `"}`
	}
	whole, long := input(2_000, 500), input(2_001, 500)
	list := `["` + strings.Repeat("a", 3_000) + `"]`
	for _, row := range []struct{ name, raw, want string }{
		{"a text", `{"type":"text","text":"words"}`, `{"type":"text","text":""}`},
		{"an image", `{"type":"image","source":{"type":"url","url":"u"}}`, `{"type":"image"}`},
		{"a call", `{"type":"tool_use","id":"c","name":"n","input":` + whole + `}`, `{"type":"tool_use","id":"c","name":"n","input":` + whole + `}`},
		{"a long call", `{"type":"tool_use","id":"c","name":"n","input":` + long + `}`, `{"type":"tool_use","id":"c","name":"n","input":{"b":"` + strings.Repeat("b", 498) + `"}}`},
		{"a long call without a short argument", `{"type":"tool_use","id":"c","name":"n","input":` + input(2_001, 501) + `}`, `{"type":"tool_use","id":"c","name":"n","input":{}}`},
		{"arguments that are no object", `{"type":"tool_use","id":"c","name":"n","input":` + list + `}`, `{"type":"tool_use","id":"c","name":"n","input":` + list + `}`},
		{"a mark", `{"type":"tool_use","id":"c","name":"delimiter","input":` + long + `}`, `{"type":"tool_use","id":"c","name":"delimiter","input":` + long + `}`},
		{"a result", `{"type":"tool_result","tool_use_id":"c","content":"words","is_error":true}`, `{"type":"tool_result","tool_use_id":"c","content":[],"is_error":true}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, want := slim(block(t, row.raw)), block(t, row.want)
			if got.Type != want.Type || got.Text != "" || got.ID != want.ID || got.Name != want.Name || string(got.Input) != string(want.Input) ||
				got.ToolUseID != want.ToolUseID || got.IsError != want.IsError || len(got.Content) != 0 || got.Source != nil {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestPutOf: what the client never saw of a turn is kept with its places, to be put back where it stood; of what is out the stub
// goes back.
func TestPutOf(t *testing.T) {
	if putOf(stream.Turn{}, nil) != nil {
		t.Error("nothing was put")
	}
	results := map[string]tidemark.Block{"p1": tidemark.ToolResult("p1", "r1", false), "p2": tidemark.ToolResult("p2", "r2", true)}
	p := putOf(stream.Turn{Places: []stream.Place{
		{Visible: 1, Thinking: 2, Offset: 3, Split: true, Blocks: []tidemark.Block{tidemark.Text("tags")}, Calls: []tidemark.Block{tidemark.ToolUse("p1", "n", nil), tidemark.ToolUse("p2", "n", nil)}},
		{Visible: 4},
	}}, results)
	raw, err := json.Marshal(p)
	const r1, r2 = `{"type":"tool_result","tool_use_id":"p1","content":"r1"}`, `{"type":"tool_result","tool_use_id":"p2","content":"r2","is_error":true}`
	const want = `{"places":[{"visible":1,"thinking":2,"offset":3,"split":true,"blocks":[{"type":"text","text":"tags"}],` +
		`"calls":[{"type":"tool_use","id":"p1","name":"n","input":{}},{"type":"tool_use","id":"p2","name":"n","input":{}}],"results":[` + r1 + `,` + r2 + `]},{"visible":4}]}`
	if string(raw) != want || err != nil {
		t.Errorf("stored\n%s, %v\nwant\n%s", raw, err, want)
	}
	in := p.Places[0].insert(7, map[string][]byte{r2: []byte("stub")})
	if got := fmt.Sprintf("%d %d %d %d %t %s %s %s", in.Item, in.Visible, in.Thinking, in.Offset, in.Split, in.Blocks, in.Calls, in.Results); got !=
		`7 1 2 3 true [{"type":"text","text":"tags"}] [{"type":"tool_use","id":"p1","name":"n","input":{}} {"type":"tool_use","id":"p2","name":"n","input":{}}] [`+r1+` stub]` {
		t.Errorf("put back as %s", got)
	}
	n := &node{put: &put{Places: []placed{{Calls: raws("a", "b")}, {Calls: raws("c")}}}, parent: &node{put: p}}
	if got := fmt.Sprintf("%s", n.extra()); got != "[a b c "+r1+" "+r2+"]" {
		t.Errorf("to pagers it has %s", got)
	}
	if got := p.answered(); len(got) != 2 || got[0].ToolUseID != "p1" || !got[1].IsError {
		t.Errorf("answered %+v", got)
	}
	if got := (&put{Places: []placed{{Results: raws("[]", r1)}}}).answered(); len(got) != 1 || got[0].ToolUseID != "p1" {
		t.Errorf("beside what is none it is answered %+v", got)
	}
}

// TestWholeMessage: pagers take a message with what was put back behind the client's blocks; one of an unknown form as the log has
// it.
func TestWholeMessage(t *testing.T) {
	put := &put{Places: []placed{{Calls: raws(`{"type":"tool_use","id":"p","name":"n","input":{}}`)}}}
	for _, row := range []struct {
		raw, want string
		put       bool
		foreign   bool
	}{
		{`{"role":"user","content":"a","x":1}`, `{"role":"user","content":"a"}`, false, false},
		{`{"role":"assistant","content":"a"}`, `{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"p","name":"n","input":{}}]}`, true, false},
		{`{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`,
			`{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":"b"},{"type":"tool_use","id":"p","name":"n","input":{}}]}`, true, false},
		{`{"role":"oracle", "content":"a","x":1}`, `{"role":"oracle","content":"a"}`, false, true},
		{`{"content":"a"}`, `{"role":"unknown","content":[{"unread":{"content":"a"}}]}`, false, true},
		{`{"role":"user","parts":[1]}`, `{"role":"user","content":[{"unread":{"role":"user","parts":[1]}}]}`, false, true},
	} {
		it, err := body.NewItem([]byte(row.raw))
		if err != nil {
			t.Fatal(err)
		}
		n := &node{role: it.Role, foreign: row.foreign}
		if row.put {
			n.put = put
		}
		if got := string(n.whole(it)); got != row.want {
			t.Errorf("%s is taken as %s", row.raw, got)
		}
	}
}
