package session

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// blocksOf reads blocks of a message, each a JSON object.
func blocksOf(t *testing.T, raw ...string) (out []tidemark.Block) {
	t.Helper()
	for _, r := range raw {
		var b tidemark.Block
		if err := json.Unmarshal([]byte(r), &b); err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
	}
	return out
}

// shortEdits says of edits which block of which entry reads what: a note as <type>, all else as it is.
func shortEdits(edits []tidemark.Edit) string {
	var out []string
	for _, e := range edits {
		var reads []string
		for _, b := range e.Blocks {
			if b.Type == tidemark.TypeToolResult {
				var in []string
				for _, c := range b.Content {
					in = append(in, shortBlock(c))
				}
				reads = append(reads, fmt.Sprintf("%s(%s)%v", b.ToolUseID, strings.Join(in, "+"), b.IsError))
				continue
			}
			reads = append(reads, shortBlock(b))
		}
		out = append(out, fmt.Sprintf("%s%s#%d=%s", e.From, e.To, e.Block, strings.Join(reads, "+")))
	}
	return strings.Join(out, " ")
}

func shortBlock(b tidemark.Block) string {
	if rest, ok := strings.CutPrefix(b.Text, mendedMark+"odd. A block of the type "); ok {
		kind, _, _ := strings.Cut(rest, " stood here")
		return "<" + kind + ">"
	}
	if b.Text != "" {
		return b.Text
	}
	return b.Type
}

const (
	textHi     = `{"type":"text","text":"hi"}`
	textMark   = `{"type":"text","text":"[Refused by the model's API: before]"}`
	pictureA   = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QQ=="}}`
	pictureURL = `{"type":"image","source":{"type":"url","url":"https://x.test/a.png"}}`
	thoughtA   = `{"type":"thinking","thinking":"hm","signature":"s"}`
	callA      = `{"type":"tool_use","id":"c1","name":"look","input":{}}`
	resultA    = `{"type":"tool_result","tool_use_id":"c1","is_error":true,"content":[` + textHi + `,` + pictureA + `,` + textHi + `]}`
	resultText = `{"type":"tool_result","tool_use_id":"c1","content":[` + textHi + `,` + textHi + `]}`
	resultMark = `{"type":"tool_result","tool_use_id":"c1","content":[` + textMark + `]}`
	resultBoth = `{"type":"tool_result","tool_use_id":"c1","content":[` + textMark + `,` + pictureA + `]}`
)

// TestMendEdit: what stands in the place of a block that was refused: a note that names its type and its handle, nothing for
// thinking, and of a result the block alone that was refused. What is a note already is not mended again, unless those are
// somebody's own words.
func TestMendEdit(t *testing.T) {
	for _, c := range []struct {
		name    string
		content []string
		at      int
		inner   int
		stubbed []compaction.Stubbed
		want    string // "" for none
	}{
		{"a text", []string{textHi, textHi}, 1, -1, nil, "e#2=<text>"},
		{"a picture", []string{textHi, pictureA}, 1, -1, nil, "e#2=<image>"},
		{"thinking", []string{thoughtA, textHi}, 0, -1, nil, "e#1="},
		{"a call", []string{callA}, 0, -1, nil, "e#1=<tool_use look>"},
		{"the picture of a result", []string{resultA}, 0, 1, nil, "e#1=c1(hi+<image>+hi)true"},
		{"a text of a result", []string{resultA}, 0, 2, nil, "e#1=c1(hi+image+<text>)true"},
		{"all of a result that is no text", []string{resultA}, 0, -1, nil, "e#1=c1(hi+<image>+hi)true"},
		{"a result of text", []string{resultText}, 0, -1, nil, "e#1=c1(<tool_result>)false"},
		{"a result with somebody's words like ours", []string{resultMark}, 0, 0, nil, "e#1=c1(<text>)false"},
		{"a result whose note was refused", []string{resultMark}, 0, 0, []compaction.Stubbed{{Block: 1, At: 0, Many: 1}}, ""},
		{"a result whose note was refused, as a whole", []string{resultMark}, 0, -1, []compaction.Stubbed{{Block: 1, At: 0, Many: 1}}, ""},
		{"what is left of a result with a note", []string{resultBoth}, 0, -1, []compaction.Stubbed{{Block: 1, At: 0, Many: 1}}, "e#1=c1([Refused by the model's API: before]+<image>)false"},
		{"the note in a result of two", []string{resultBoth}, 0, 0, []compaction.Stubbed{{Block: 1, At: 0, Many: 1}}, "e#1=c1(<tool_result>)false"},
		{"words like ours", []string{textMark}, 0, -1, nil, "e#1=<text>"},
		{"a note", []string{textMark}, 0, -1, []compaction.Stubbed{{Block: 1, At: 0, Many: 1}}, ""},
		{"words like ours beside a note", []string{textHi, textMark}, 1, -1, []compaction.Stubbed{{Block: 1, At: 0, Many: 1}}, "e#2=<text>"},
		{"one of three that stand for one block", []string{textHi, `{"type":"text","text":"a"}`, pictureA, `{"type":"text","text":"b"}`, textHi}, 2, -1, []compaction.Stubbed{{Block: 2, At: 1, Many: 3}}, "e#2=a+<image>+b"},
		{"behind three that stand for one block", []string{textHi, textHi, pictureA, textHi, textHi}, 4, -1, []compaction.Stubbed{{Block: 2, At: 1, Many: 3}}, "e#3=<text>"},
		{"behind a block that nothing stands for", []string{textHi, textHi}, 1, -1, []compaction.Stubbed{{Block: 2, At: 1, Many: 0}}, "e#3=<text>"},
	} {
		it := compaction.Item{ID: "e", From: "e", To: "e", Stubs: len(c.stubbed), Stubbed: c.stubbed, Message: tidemark.Message{Role: tidemark.User, Content: blocksOf(t, c.content...)}}
		e, ok := mendEdit(&it, c.at, c.inner, "odd")
		got := ""
		if ok {
			got = shortEdits([]tidemark.Edit{e})
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	it := compaction.Item{ID: "e", Message: tidemark.Message{Content: blocksOf(t, textHi, pictureA)}}
	if e, _ := mendEdit(&it, 1, -1, "odd"); len(e.Blocks) != 1 || e.Blocks[0].Text != `[Refused by the model's API: odd. A block of the type image stood here; recall with {"entry": "e#2"} tells what the log keeps of it.]` {
		t.Errorf("the note is %+v", e.Blocks)
	}
}

// mendable is a view of four turns: a person with a picture by its address, an answer, a person with a picture, a call and its
// result. It was answered up to the call.
func mendable(t *testing.T) View {
	var v View
	put := func(id string, role tidemark.Role, raw ...string) {
		seq := int64(10 * (len(v.Items) + 1))
		v.Items = append(v.Items, compaction.Item{ID: tidemark.EntryID(id), From: tidemark.EntryID(id), To: tidemark.EntryID(id), Seq: seq, Last: seq,
			Message: tidemark.Message{Role: role, Content: blocksOf(t, raw...)}})
	}
	put("q1", tidemark.User, textHi, pictureURL)
	put("a1", tidemark.Assistant, thoughtA, textHi)
	put("q2", tidemark.User, pictureA, textHi)
	put("a2", tidemark.Assistant, `{"type":"tool_use","id":"c1","name":"look","input":{"x":1}}`)
	put("r2", tidemark.User, resultA)
	return v
}

// TestMendEditsByPlace: what an API names is taken out where it stands; of a message that it names as a whole what is no text
// first, then what a tool answered, then all. A place that is none takes nothing out.
func TestMendEditsByPlace(t *testing.T) {
	v := mendable(t)
	if got := len(v.Messages()); got != 5 {
		t.Fatalf("%d messages are sent", got)
	}
	place := func(m, b, i int) *tidemark.Place { return &tidemark.Place{Message: m, Block: b, Inner: i} }
	words := mendable(t)
	words.Items[4].Message.Content = blocksOf(t, resultText, textHi)
	for _, c := range []struct {
		name string
		v    View
		at   *tidemark.Place
		want string
	}{
		{"a block", v, place(0, 0, -1), "q1#1=<text> a1#2=<text> q2#2=<text>"}, // the same bytes are refused again
		{"another block", v, place(0, 1, -1), "q1#2=<image>"},
		{"a block of the last message", v, place(4, 0, 1), "r2#1=c1(hi+<image>+hi)true"},
		{"a message with a picture", v, place(0, -1, -1), "q1#2=<image>"},
		{"a message with a result that has one", v, place(4, -1, -1), "r2#1=c1(hi+<image>+hi)true"},
		{"a message with a result of words", words, place(4, -1, -1), "r2#1=c1(<tool_result>)false"},
		{"an answer", v, place(1, -1, -1), "a1#1="},
		{"a call", v, place(3, -1, -1), "a2#1=<tool_use look>"},
		{"the message behind the last", v, place(5, 0, -1), ""},
		{"a message before the first", v, place(-1, 0, -1), ""},
		{"the block behind the last", v, place(0, 2, -1), ""},
	} {
		if got := shortEdits(mendEdits(c.v, tidemark.APIError{Message: "odd", Place: c.at})); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestMediaEdits: an API that refuses a picture without a place: those that no model has answered, else those that it has to
// load, else all; none where it speaks of something else.
func TestMediaEdits(t *testing.T) {
	answered := mendable(t)
	answered.Items[4].Message.Content = blocksOf(t, resultText)
	none := mendable(t)
	none.Items = none.Items[2:]
	none.Items[2].Message.Content = blocksOf(t, resultText, `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"Clause 1."}}`)
	own := mendable(t)
	own.Items[3].Message.Content = append(own.Items[3].Message.Content, blocksOf(t, pictureA)...)
	span := mendable(t)
	span.Items[4].Overlay = "over"
	for _, c := range []struct {
		name   string
		v      View
		status int
		says   string
		want   string
	}{
		{"not answered yet", mendable(t), 400, "Could not process image", "r2#1=c1(hi+<image>+hi)true"},
		{"not one of the model's own", own, 400, "Could not process image", "r2#1=c1(hi+<image>+hi)true"},
		{"of an address", answered, 400, "Unable to download the files", "q1#2=<image>"},
		{"of any", none, 400, "The PDF was not valid", "q2#1=<image>"},
		{"what stands for a span is none", span, 400, "Could not process image", "q1#2=<image>"},
		{"of nothing known", mendable(t), 400, "this is odd", ""},
		{"of no model", mendable(t), 404, "no model of that image", ""},
	} {
		edits := mendEdits(c.v, tidemark.APIError{Status: c.status, Message: c.says})
		for i := range edits {
			for k := range edits[i].Blocks {
				b := &edits[i].Blocks[k]
				b.Text = strings.Replace(b.Text, c.says, "odd", 1)
				for n := range b.Content {
					b.Content[n].Text = strings.Replace(b.Content[n].Text, c.says, "odd", 1)
				}
			}
		}
		if got := shortEdits(edits); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestAnsweredIn: the last item in which a model answered; a reply that declined is none.
func TestAnsweredIn(t *testing.T) {
	roles := func(list string) (items []compaction.Item) {
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
		return items
	}
	for list, want := range map[string]int{"": -1, "u": -1, "a": 0, "ua": 1, "uau": 1, "ucu": 1, "uaud": 1, "udu": -1, "ucudud": 1} {
		if got := answeredIn(roles(list)); got != want {
			t.Errorf("%q: %d, want %d", list, got, want)
		}
	}
	items := roles("uaua")
	for i := range items {
		items[i].Seq = int64(10 * (i + 1))
	}
	items = append(items, compaction.Item{Seq: 50}, compaction.Item{Seq: 60})
	before := leftBefore(items, 60)
	for i, want := range []bool{false, false, false, false, true, false} {
		if got := before(i, tidemark.Block{}); got != want {
			t.Errorf("item %d was left before: %v", i, got)
		}
	}
}

// TestSpeaksOf: a word counts where it stands alone or with an s, and not in an address or as a part of another.
func TestSpeaksOf(t *testing.T) {
	for says, want := range map[string]bool{"Could not process image": true, "IMAGES, please": true, "an imagery": false, "see https://x.test/image?image=1 for more": false, "image_url is wrong": false,
		"the image": true, "(image)": true, "": false, "image's": true} {
		if got := speaksOf(tidemark.APIError{Message: says}, "picture", "image"); got != want {
			t.Errorf("%q: %v", says, got)
		}
	}
	for _, c := range []struct {
		raw  string
		want bool
	}{{pictureA, true}, {textHi, false}, {`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"QQ=="}}`, true}, {`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"a"}}`, false}, {resultA, false}} {
		if got := medium(blocksOf(t, c.raw)[0]); got != c.want {
			t.Errorf("%s has to be decoded: %v", c.raw, got)
		}
	}
	for raw, want := range map[string]bool{textHi: false, callA: false, pictureA: true, thoughtA: true, resultA: true, resultText: false} {
		if got := suspect(blocksOf(t, raw)[0]); got != want {
			t.Errorf("%s is suspect: %v", raw, got)
		}
	}
	long := strings.Repeat("x", maxRefusal)
	for says, want := range map[string]string{long: long, long + "y": long, long[1:] + "é": long[1:], " a\n b ": "a b"} {
		if got := quoted(says); got != want {
			t.Errorf("%q is quoted as %q", says, got)
		}
	}
}

// TestUnexplained: which refusals may be for the size of a request, for all that they say.
func TestUnexplained(t *testing.T) {
	for _, c := range []struct {
		name string
		api  tidemark.APIError
		want bool
	}{
		{"400", tidemark.APIError{Status: 400, Class: tidemark.ClassBadRequest}, true},
		{"422", tidemark.APIError{Status: 422, Class: tidemark.ClassBadRequest}, true},
		{"500", tidemark.APIError{Status: 500, Class: tidemark.ClassOverloaded}, true},
		{"503", tidemark.APIError{Status: 503, Class: tidemark.ClassOverloaded}, false},
		{"413", tidemark.APIError{Status: 413, Class: tidemark.ClassBadRequest}, false},
		{"a refusal", tidemark.APIError{Status: 400, Class: tidemark.ClassRefusal}, false},
		{"its size", tidemark.APIError{Status: 400, Class: tidemark.ClassOverflow}, false},
		{"a place", tidemark.APIError{Status: 400, Class: tidemark.ClassBadRequest, Place: &tidemark.Place{}}, false},
		{"the messages", tidemark.APIError{Status: 400, Class: tidemark.ClassBadRequest, Param: "messages"}, true},
		{"a field", tidemark.APIError{Status: 400, Class: tidemark.ClassBadRequest, Param: "tools"}, false},
		{"a parameter", tidemark.APIError{Status: 400, Class: tidemark.ClassBadRequest, Message: "Unsupported parameter: x"}, false},
	} {
		if got := unexplained(c.api); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// TestGuessOnlyWhatIsSaid: what no model has answered is taken out where what is said was refused, or nothing known was; not
// for a parameter, a place, a model that is not found, or more often than some times in a turn.
func TestGuessOnlyWhatIsSaid(t *testing.T) {
	bad := tidemark.APIError{Status: http.StatusBadRequest, Class: tidemark.ClassBadRequest, Message: "odd"}
	with := func(change func(*tidemark.APIError)) error {
		e := bad
		change(&e)
		return &e
	}
	for _, c := range []struct {
		name  string
		err   error
		mends int
		early bool // an earlier turn left it
		want  string
	}{
		{"nothing known", with(func(*tidemark.APIError) {}), 0, false, "r2#1=c1(hi+<image>+hi)true"},
		{"the messages", with(func(e *tidemark.APIError) { e.Param = "messages" }), 0, false, "r2#1=c1(hi+<image>+hi)true"},
		{"the prompt", with(func(e *tidemark.APIError) { e.Param = "prompt" }), 7, false, "r2#1=c1(hi+<image>+hi)true"},
		{"a filter", with(func(e *tidemark.APIError) { e.Class, e.Status = tidemark.ClassRefusal, 200 }), 0, false, "r2#1=c1(hi+<image>+hi)true"},
		{"left by an earlier turn", with(func(*tidemark.APIError) {}), 0, true, "r2#1=c1(hi+<image>+hi)true"},
		{"a place that is not there", with(func(e *tidemark.APIError) { e.Param = "messages[99].content" }), 0, false, "r2#1=c1(hi+<image>+hi)true"},
		{"a tool that is not there", with(func(e *tidemark.APIError) { e.Param = "tools[99].function.name" }), 0, false, "r2#1=c1(hi+<image>+hi)true"},
		{"too often", with(func(*tidemark.APIError) {}), 8, false, ""},
		{"no such model", with(func(e *tidemark.APIError) { e.Status = 404 }), 0, false, ""},
		{"a place where nothing was to mend", with(func(e *tidemark.APIError) { e.Param, e.Place = "messages[9]", &tidemark.Place{Message: 9} }), 0, false, "r2#1=c1(hi+<image>+hi)true"},
		{"a tool", with(func(e *tidemark.APIError) { e.Place = &tidemark.Place{Tool: "x"} }), 0, false, ""},
		{"a field", with(func(e *tidemark.APIError) { e.Param = "tools" }), 0, false, ""},
		{"a parameter", with(func(e *tidemark.APIError) { e.Message = "Unsupported parameter: x" }), 0, false, ""},
		{"tokens", with(func(e *tidemark.APIError) { e.Message = "too many tokens" }), 0, false, ""},
		{"a network", with(func(e *tidemark.APIError) { e.Class = tidemark.ClassNetwork }), 0, false, ""},
		{"no API", errKnown, 0, false, ""},
	} {
		s, _ := plain(t, Config{})
		r := s.begun(t, "r", stateCalling)
		r.mends, r.Attempt = c.mends, 2
		if c.early {
			s.puts(t, s.Key, "in", InputMessage, "taken", "r")
			s.does(t, `INSERT INTO entries(seq, id, log, kind, at, hash, origin, payload) VALUES(900, 'q', ?, 'message', 1, '', '{"input":"in"}', '{}')`, r.Log)
		}
		v := mendable(t)
		again, err := s.guess(t.Context(), r, v, c.err)
		if c.want == "" {
			if again || !errors.Is(err, c.err) || r.mends != c.mends || len(r.guessed) > 0 {
				t.Errorf("%s: %v, %v, mended %d times", c.name, again, err, r.mends)
			}
			continue
		}
		marks, e := s.log.MarksAfter(t.Context(), r.Log, 0)
		if e != nil || !again || err != nil || r.mends != c.mends+1 || r.Attempt != 0 || len(marks) != 1 || len(r.guessed) != 1 || r.guessed[0] != marks[0].ID {
			t.Errorf("%s: %v, %v, mended %d times, %d overlays, %v", c.name, again, err, r.mends, len(marks), e)
			continue
		}
		if got := s.reads(t, `SELECT count(*) FROM entries WHERE log = ? AND kind = 'event' AND payload LIKE '%refused a part of entry r2 (odd)%' LIMIT 1`, r.Log); got != "1" {
			t.Errorf("%s: it is told %s times", c.name, got)
		}
		if got := s.reads(t, `SELECT payload FROM entries WHERE log = ? AND kind = 'overlay' LIMIT 1`, r.Log); !strings.Contains(got, `"from":"r2","block":1`) || !strings.Contains(got, `"reason":"refused"`) {
			t.Errorf("%s: the overlay is %s", c.name, got)
		}
	}
}
