package mend

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

const (
	textHi     = `{"type":"text","text":"hi"}`
	textMark   = `{"type":"text","text":"[Refused by the model's API: before]"}`
	pictureA   = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QQ=="}}`
	pictureURL = `{"type":"image","source":{"type":"url","url":"https://x.test/a.png"}}`
	thoughtA   = `{"type":"thinking","thinking":"so","signature":"s"}`
	callB      = `{"type":"tool_use","id":"c2","name":"look","input":{}}`
	resultB    = `{"type":"tool_result","tool_use_id":"c2","content":[{"type":"text","text":"hi"}]}`
	callA      = `{"type":"tool_use","id":"c1","name":"look","input":{"x":1}}`
	resultA    = `{"type":"tool_result","tool_use_id":"c1","is_error":true,"content":[{"type":"text","text":"hi"},` + pictureA + `,{"type":"text","text":"ho"}]}`
	resultText = `{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"hi"}]}`
	resultMark = `{"type":"tool_result","tool_use_id":"c1","content":[` + textMark + `]}`
	resultBoth = `{"type":"tool_result","tool_use_id":"c1","content":[` + textMark + `,` + pictureA + `]}`
)

// viewOf are messages one behind the other, each with the role that its first letter says.
func viewOf(t *testing.T, messages ...[]string) compaction.View {
	t.Helper()
	var v compaction.View
	for i, m := range messages {
		role := map[byte]tidemark.Role{'u': tidemark.User, 'a': tidemark.Assistant, 's': tidemark.System}[m[0][0]]
		id := tidemark.EntryID(m[0])
		v.Items = append(v.Items, compaction.Item{ID: id, From: id, To: id, Seq: int64(10 * (i + 1)), Last: int64(10 * (i + 1)),
			Message: tidemark.Message{Role: role, Content: tidemarktest.Blocks(t, m[1:]...)}})
	}
	return v
}

// talk are four turns, of which the last is in work: it begins at 50.
func talk(t *testing.T) compaction.View {
	return viewOf(t, []string{"u1", textHi, pictureURL, pictureA}, []string{"a1", thoughtA, textHi}, []string{"u2", pictureA, textHi}, []string{"a2", textHi},
		[]string{"u3", textHi, pictureA}, []string{"a3", callA, callB}, []string{"u4", resultA, resultB, `{"type":"odd"}`})
}

// short tells parts by what they are.
func short(v compaction.View, parts []Part) string {
	var out []string
	for _, p := range parts {
		var s string
		switch {
		case p.Reply:
			s = "reply"
		case p.Pack:
			s = "pack"
		case p.Memory:
			s = "memory"
		case p.Tool != "":
			s = "tool " + p.Tool
		default:
			s = fmt.Sprintf("%s#%d", v.Items[p.item].ID, p.at+1)
			if p.inner >= 0 {
				s += fmt.Sprintf(".%d", p.inner+1)
			}
		}
		for flag, is := range map[string]bool{"!": p.Said, "<": p.Left, "s": p.span} {
			if is {
				s += flag
			}
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

// TestParts: what no model has taken before is suspected first, the newest of it first; then what it has to load or decode, the
// oldest first, then tools, then all that was read; what a person just said is the last.
func TestParts(t *testing.T) {
	tools := []tidemark.Tool{{Name: "own"}, {Name: "theirs"}}
	stubbed := viewOf(t, []string{"u1", textMark, textHi, textMark}, []string{"a1", textHi})
	stubbed.Items[0].Stubs, stubbed.Items[0].Stubbed = 1, []compaction.Stubbed{{Block: 1, At: 0, Many: 1}}
	results := viewOf(t, []string{"u1", resultMark, resultBoth, resultMark}, []string{"a1", textHi})
	results.Items[0].Stubs, results.Items[0].Stubbed = 2, []compaction.Stubbed{{Block: 1, At: 0, Many: 1}, {Block: 2, At: 1, Many: 1}}
	span := talk(t)
	for _, i := range []int{2, 3} { // one edit that stands for several entries, by two messages
		span.Items[i].Overlay, span.Items[i].Edit = "o", 1
	}
	declined := viewOf(t, []string{"u1", textHi}, []string{"a1", textHi}, []string{"u2", textHi, pictureA})
	declined.Items[1].Call = &tidemark.Call{Stop: tidemark.StopRefusal}
	for _, c := range []struct {
		name string
		v    compaction.View
		from int64
		want string
	}{
		{"in the middle of a turn", talk(t), 50, "u4#3 u4#1.2 u4#2 u4#1.3 u4#1.1 u1#2 u1#3 u2#1 u3#2 a3#2 a3#1 u3#1 a2#1 u2#2 a1#2 a1#1 u1#1"},
		{"a turn of words and a picture", viewOf(t, []string{"u1", textHi}, []string{"a1", textHi}, []string{"u2", textHi, pictureA}), 30, "u2#2 a1#1 u1#1 u2#1!"},
		{"what an earlier turn left", viewOf(t, []string{"a1", textHi}, []string{"u1", textHi, pictureA, resultText}, []string{"u2", textHi}), 30, "u1#2< u1#3< u1#1< a1#1 u2#1!"},
		{"nobody knows where the turn begins", viewOf(t, []string{"u1", textHi}, []string{"u2", textHi}), 0, "u2#1! u1#1!"},
		{"what is not a person's", viewOf(t, []string{"a1", textHi}, []string{"s1", textHi}, []string{"u1", textHi}), 20, "s1#1 a1#1 u1#1!"},
		{"after a reply that declined", declined, 30, "u2#2 a1#1< u1#1< u2#1!"},
		{"where notes stand, and words like them", stubbed, 50, "a1#1 u1#3 u1#2"},
		{"where notes stand in results", results, 50, "u1#2.2 a1#1 u1#3"},
		{"what stands for a span is one", span, 50, "u4#3 u4#1.2 u4#2 u4#1.3 u4#1.1 u1#2 u1#3 u3#2 a3#2 a3#1 u3#1 u2#1s a1#2 a1#1 u1#1"},
	} {
		if got := short(c.v, (Request{View: c.v}).Parts(c.from)); got != "reply "+c.want {
			t.Errorf("%s:\n got %s\nwant reply %s", c.name, got, c.want)
		}
	}
	v := viewOf(t, []string{"u1", pictureA, textHi}, []string{"a1", textHi}, []string{"u2", pictureA, textHi})
	if got, want := short(v, (Request{View: v, Tools: tools, Pack: "news", Memory: "facts"}).Parts(30)), "reply pack u2#1 u1#1 memory tool theirs tool own a1#1 u1#2 u2#2!"; got != want {
		t.Errorf("with tools:\n got %s\nwant %s", got, want)
	}
	for raw, want := range map[string]bool{pictureA: true, pictureURL: true, textHi: false, `{"type":"odd"}`: false,
		`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"QQ=="}}`: true,
		`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"a"}}`:           false} {
		v := viewOf(t, []string{"u1", raw}, []string{"a1", textHi})
		for _, p := range (Request{View: v}).Parts(30) {
			if p.ofItem() && p.item == 0 && p.Medium != want {
				t.Errorf("%s has to be decoded: %v", raw, p.Medium)
			}
		}
	}
}

// TestAnsweredIn: the last item in which a model answered; a reply that declined is none.
func TestAnsweredIn(t *testing.T) {
	for list, want := range map[string]int{"": -1, "u": -1, "a": 0, "ua": 1, "uau": 1, "ucu": 1, "uaud": 1, "udu": -1, "ucudud": 1} {
		var items []compaction.Item
		for _, r := range list {
			it := compaction.Item{Message: tidemark.Message{Role: tidemark.User}}
			if r != 'u' {
				it.Message.Role = tidemark.Assistant
			}
			switch r {
			case 'c':
				it.Call = &tidemark.Call{Stop: "end_turn"}
			case 'd':
				it.Call = &tidemark.Call{Stop: tidemark.StopRefusal}
			}
			items = append(items, it)
		}
		if got := AnsweredIn(items); got != want {
			t.Errorf("%q: %d, want %d", list, got, want)
		}
	}
}

// TestNamed: the parts at a place, and all with the same bytes; of a whole message, or a result of several blocks, it is one. A
// place that is none names nothing.
func TestNamed(t *testing.T) {
	v := talk(t)
	tools := []tidemark.Tool{{Name: "look"}}
	q := Request{View: v, Tools: tools, Pack: "news", Memory: "facts"}
	parts := q.Parts(50)
	place := func(m, b, i int) *tidemark.Place { return &tidemark.Place{Message: m, Block: b, Inner: i} }
	for _, c := range []struct {
		name  string
		at    *tidemark.Place
		want  string
		vague bool
	}{
		{"none", nil, "", false},
		{"a block, and all like it", place(0, 0, -1), "u3#1 a2#1 u2#2 a1#2 u1#1", false},
		{"another block", place(0, 1, -1), "u1#2", false},
		{"a block of a result", place(6, 0, 1), "u4#1.2", false},
		{"the first block of a result", place(6, 0, 0), "u4#1.1", false},
		{"a result of several blocks", place(6, 0, -1), "u4#1.2 u4#1.3 u4#1.1", true},
		{"a result of one", place(6, 1, -1), "u4#2", false},
		{"the block of a result of one", place(6, 1, 0), "u4#2", false},
		{"a message", place(2, -1, -1), "u1#3 u2#1 u3#2 u3#1 a2#1 u2#2 a1#2 u1#1", true},
		{"the message behind the last", place(7, 0, -1), "", false},
		{"a message before the first", place(-1, 0, -1), "", false},
		{"the block behind the last", place(0, 3, -1), "", false},
		{"a tool", &tidemark.Place{Message: -1, Block: -1, Inner: -1, Tool: "look"}, "tool look", false},
		{"a tool that is not there", &tidemark.Place{Message: -1, Block: -1, Inner: -1, Tool: "loook"}, "", false},
	} {
		named, vague := q.Named(parts, v.Messages(), c.at)
		var got []Part
		for _, i := range named {
			got = append(got, parts[i])
		}
		if short(v, got) != c.want || vague != c.vague {
			t.Errorf("%s: %s, vague %v", c.name, short(v, got), vague)
		}
	}
}

// told shortens the notes in blocks.
func told(blocks []tidemark.Block) string {
	var out []string
	for _, b := range blocks {
		switch {
		case b.Type == tidemark.TypeToolResult:
			out = append(out, fmt.Sprintf("%s(%s)%v", b.ToolUseID, told(b.Content), b.IsError))
		case strings.HasPrefix(b.Text, Mark+"a block of the type "):
			kind, _, _ := strings.Cut(strings.TrimPrefix(b.Text, Mark+"a block of the type "), " stood here")
			out = append(out, "<"+kind+">")
		case b.Type == tidemark.TypeText:
			out = append(out, b.Text)
		default:
			out = append(out, b.Type)
		}
	}
	return strings.Join(out, "+")
}

// TestWithout: notes stand in the place of parts, for a request as for good, and all else stays as it is.
func TestWithout(t *testing.T) {
	three := compaction.Stubbed{Block: 2, At: 1, Many: 3}
	gone := compaction.Stubbed{Block: 2, At: 1, Many: 0}
	part := func(at, inner int) Part { return Part{at: at, inner: inner} }
	for _, c := range []struct {
		name    string
		content []string
		parts   []Part
		stubbed []compaction.Stubbed
		view    string
		edits   string
	}{
		{"a text", []string{textHi, textHi}, []Part{part(1, -1)}, nil, "hi+<text>", "#2=<text>"},
		{"two blocks", []string{textHi, pictureA}, []Part{part(1, -1), part(0, -1)}, nil, "<text>+<image>", "#2=<image> #1=<text>"},
		{"thinking", []string{thoughtA, textHi}, []Part{part(0, -1)}, nil, "hi", "#1="},
		{"a call", []string{callA}, []Part{part(0, -1)}, nil, "<tool_use look>", "#1=<tool_use look>"},
		{"blocks of a result", []string{resultA}, []Part{part(0, 1), part(0, 2)}, nil, "c1(hi+<image>+<text>)true", "#1=c1(hi+<image>+<text>)true"},
		{"the first block of a result", []string{resultA}, []Part{part(0, 0)}, nil, "c1(<text>+image+ho)true", "#1=c1(<text>+image+ho)true"},
		{"a result", []string{resultText}, []Part{part(0, -1)}, nil, "c1(<tool_result>)false", "#1=c1(<tool_result>)false"},
		{"two of three that stand for one block", []string{textHi, textHi, pictureA, textHi, textHi}, []Part{part(2, -1), part(3, -1)}, []compaction.Stubbed{three}, "hi+hi+<image>+<text>+hi", "#2=hi+<image>+<text>"},
		{"behind three that stand for one block", []string{textHi, textHi, pictureA, textHi, pictureA}, []Part{part(4, -1)}, []compaction.Stubbed{three}, "hi+hi+image+hi+<image>", "#3=<image>"},
		{"behind a block that nothing stands for", []string{textHi, pictureA}, []Part{part(1, -1)}, []compaction.Stubbed{gone}, "hi+<image>", "#3=<image>"},
		{"what is not said", []string{textHi}, []Part{{Reply: true}, {Pack: true}, {Tool: "look"}}, nil, "hi", ""},
	} {
		v := viewOf(t, append([]string{"u1"}, c.content...), []string{"a1", textHi})
		v.Items[0].Stubs, v.Items[0].Stubbed = len(c.stubbed), c.stubbed
		got := (Request{View: v}).Without(c.parts).View
		if told(got.Items[0].Message.Content) != c.view || told(got.Items[1].Message.Content) != "hi" || strings.Contains(told(v.Items[0].Message.Content), "<") {
			t.Errorf("%s: it reads %s, was %s", c.name, told(got.Items[0].Message.Content), told(v.Items[0].Message.Content))
		}
		var edits []string
		for _, e := range Edits(v, nil, c.parts) {
			if e.From != "u1" {
				t.Errorf("%s: an edit of %s", c.name, e.From)
			}
			edits = append(edits, fmt.Sprintf("#%d=%s", e.Block, told(e.Blocks)))
		}
		if strings.Join(edits, " ") != c.edits {
			t.Errorf("%s: edits %s, want %s", c.name, edits, c.edits)
		}
	}
	v := viewOf(t, []string{"u1", textHi, pictureA})
	if e := Edits(v, nil, []Part{part(1, -1)}); e[0].Blocks[0].Text != `[Refused by the model's API: a block of the type image stood here; recall with {"entry": "u1#2"} tells what the log keeps of it.]` {
		t.Errorf("the note is %+v", e)
	}
	tools := []tidemark.Tool{{Name: "a"}, {Name: "b"}}
	q := Request{Tools: tools, Pack: "news", Memory: "facts"}
	if got := q.Without([]Part{{Tool: "a"}, {Pack: true}}); len(got.Tools) != 1 || got.Tools[0].Name != "b" || tools[0].Name != "a" || got.Pack != "" || got.Memory != "facts" {
		t.Errorf("without a: %+v of %+v", got, tools)
	}
	if got := q.Without([]Part{{Memory: true}}); len(got.Tools) != 2 || got.Pack != "news" || got.Memory != "" {
		t.Errorf("without memory: %+v", got)
	}
}

// TestFiller: other words are as many as what they stand for has tokens, in whatever script, in short messages of which none is like
// another; pictures have none.
func TestFiller(t *testing.T) {
	long := strings.Repeat("Ein langer Satz. ", 300)
	v := viewOf(t, []string{"u1", `{"type":"text","text":"` + long + `"}`, pictureA, `{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"` + long + `"},` + pictureA + `]}`}, []string{"a1", textHi})
	tools := []tidemark.Tool{{Name: "own"}, {Name: "look", Description: long}}
	for _, c := range []struct {
		name  string
		parts []Part
		want  int // of the long text
	}{
		{"a text", []Part{{inner: -1}}, 1}, {"a picture", []Part{{at: 1, inner: -1, Medium: true}}, 0}, {"a block of a result", []Part{{at: 2, inner: 0}}, 1},
		{"a tool", []Part{{Tool: "look", item: 1}}, 1}, {"what is pushed", []Part{{Pack: true}}, 1}, {"memory", []Part{{Memory: true}}, 2}, {"the room for a reply", []Part{{Reply: true}}, 0},
		{"several", []Part{{inner: -1}, {Tool: "look", item: 1}, {at: 1, inner: -1, Medium: true}}, 2},
	} {
		items := (Request{View: v, Tools: tools, Pack: long, Memory: long + long}).Filler(c.parts)
		words, seen := 0, map[string]bool{}
		for i, it := range items {
			text := it.Message.PlainText()
			if n := len(strings.Fields(text)); i%2 == 0 {
				words += n
				if seen[text] || n > 150 || it.Message.Role != tidemark.User {
					t.Errorf("%s: %s says %q", c.name, it.Message.Role, text)
				}
				seen[text] = true
			} else if it.Message.Role != tidemark.Assistant || n != 1 {
				t.Errorf("%s: %s says %q", c.name, it.Message.Role, text)
			}
		}
		if want := c.want * len(long) / 4; words < want || words > want+want/20 {
			t.Errorf("%s: %d words for %d tokens", c.name, words, want)
		}
	}
	for text, want := range map[string]int{"": 0, "a": 1, "four": 1, "fives": 2, "übel": 1, "时间": 2, "ветер": 5} {
		if got := wordsIn(text); got != want {
			t.Errorf("%q is as large as %d words, want %d", text, got, want)
		}
	}
}

// TestSpan: in the place of a summary, or of another span with its messages, stands one note; what stayed visible within it does.
func TestSpan(t *testing.T) {
	v := viewOf(t, []string{"u1", textHi}, []string{"u2", textHi}, []string{"a2", textHi}, []string{"u3", textHi})
	for _, i := range []int{1, 2} {
		v.Items[i].Overlay, v.Items[i].Edit, v.Items[i].From, v.Items[i].To, v.Items[i].Tokens = "o", 1, "e1", "e9", 50
	}
	parts := []Part{{span: true, item: 1}}
	const note = Mark + "what stood here stood for e1 to e9, which recall reads and finds.]"
	got := (Request{View: v}).Without(parts).View
	if len(got.Items) != 4 || got.Items[1].Message.PlainText() != note || len(got.Items[2].Message.Content) != 0 || got.Items[3].Message.PlainText() != "hi" || v.Items[2].Message.PlainText() != "hi" {
		t.Errorf("it reads %+v", got.Items)
	}
	shown := []compaction.Replacement{{Placed: compaction.Placed{Overlay: "o", N: 0}, Edit: tidemark.Edit{Keep: []tidemark.EntryID{"e2"}}}, {Placed: compaction.Placed{Overlay: "o", N: 1}, Edit: tidemark.Edit{Keep: []tidemark.EntryID{"e5"}}}}
	e := Edits(v, shown, parts)
	if len(e) != 1 || e[0].From != "e1" || e[0].To != "e9" || e[0].Block != 0 || len(e[0].Keep) != 1 || e[0].Keep[0] != "e5" || len(e[0].Messages) != 1 || e[0].Messages[0].PlainText() != note {
		t.Errorf("edits %+v", e)
	}
	got.Items[1].Message = insteadOf(&v.Items[1])
	if again := short(got, (Request{View: got}).Parts(40)); strings.Contains(again, "s") {
		t.Errorf("the note is a part again: %s", again)
	}
	if got := (Request{View: v}).Filler(parts); len(got) != 2 || len(strings.Fields(got[0].Message.PlainText())) != 2 {
		t.Errorf("%+v for it", got)
	}
}
