package proxy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cleanup"
	"github.com/tidemark-ai/tidemark/proxy/body"
)

// TestFind: a handle names a block of a message by its entry and the number from 0, which may be left out.
func TestFind(t *testing.T) {
	path := []*node{{id: "A"}, {id: "B"}}
	for _, row := range []struct {
		handle string
		node   int
		block  int
		why    string
	}{
		{"B#2", 1, 2, ""}, {"A", 0, 0, ""}, {"block:B#0", 1, 0, ""}, {"A#-1", 0, 0, "A#-1 is no handle"}, {"A#x", 0, 0, "A#x is no handle"},
		{"A#", 0, 0, "A# is no handle"}, {"C#0", 0, 0, "C#0 is not in this conversation"}, {"", 0, 0, " is not in this conversation"},
	} {
		n, block, err := find(slices.Values(path), row.handle)
		if row.why != "" {
			if err == nil || err.Error() != row.why {
				t.Errorf("%q: %v", row.handle, err)
			}
		} else if err != nil || n != path[row.node] || block != row.block {
			t.Errorf("%q: block %d, %v", row.handle, block, err)
		}
	}
}

// TestLastAsked: the newest turn begins with the last message of a person.
func TestLastAsked(t *testing.T) {
	for asks, want := range map[string]int{"": 0, "?": 0, "?..": 0, "?.?": 2, "?.?.": 2, "...": 0, ".?": 1} {
		var path []*node
		for i := range asks {
			path = append(path, &node{asks: asks[i] == '?'})
		}
		if got := lastAsked(path); got != want {
			t.Errorf("%q: %d, want %d", asks, got, want)
		}
		if got := turns(path); got != strings.Count(asks, "?") {
			t.Errorf("%q has %d turns", asks, got)
		}
	}
}

// TestRewrite: what stands for a block by a tag says how large it was and how to have it back, is of the same kind, and is shorter
// by a byte at least.
func TestRewrite(t *testing.T) {
	const handle, way = "A#0", `memory_fault with {\"paths\": [\"A#0\"]} reads it.]`
	drop, sum := cleanup.Op{Verb: cleanup.Drop}, cleanup.Op{Verb: cleanup.Summarize, Text: "short"}
	raw := func(n int, begin, end string) []byte { // a block of n bytes
		return []byte(begin + strings.Repeat("x", n-len(begin)-len(end)) + end)
	}
	const text, result = `{"type":"text","text":"`, `{"type":"tool_result","tool_use_id":"c","is_error":true,"content":"`
	for _, row := range []struct {
		name string
		raw  []byte
		op   cleanup.Op
		want string
	}{
		{"a text", raw(900, text, `"}`), drop, text + `[Dropped by you: 900 bytes. ` + way + `"}`},
		{"a text, summed up", raw(900, text, `"}`), sum, text + `[Your summary of 900 bytes: short ` + way + `"}`},
		{"a result", raw(900, result, `"}`), drop, `{"type":"tool_result","tool_use_id":"c","content":"[Dropped by you: 900 bytes. ` + way + `","is_error":true}`},
		{"a text of the note's size", raw(len(text+`[Dropped by you: 100 bytes. `+way+`"}`), text, `"}`), drop, ""},
		{"a text of a byte more", raw(len(text+`[Dropped by you: 100 bytes. `+way+`"}`)+1, text, `"}`), drop, "shorter"},
	} {
		out, err := rewrite(row.raw, handle, row.op)
		switch {
		case row.want == "":
			if want := fmt.Sprintf("A#0 has %d bytes, a note would be no shorter", len(row.raw)); err == nil || err.Error() != want {
				t.Errorf("%s: %s, %v", row.name, out, err)
			}
		case row.want == "shorter":
			if err != nil || len(out) != len(row.raw)-1 {
				t.Errorf("%s: %s, %v", row.name, out, err)
			}
		case err != nil || string(out) != row.want:
			t.Errorf("%s: %s, %v\nwant %s", row.name, out, err, row.want)
		}
	}
	for raw, want := range map[string]string{`{"type":"image","source":{"type":"url","url":"u"}}`: "A#0 is a block of type image, which stays", `{"type":"text","text":7}`: "A#0 cannot be read"} {
		if _, err := rewrite([]byte(raw), handle, drop); err == nil || err.Error() != want {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

// TestOperations: what each tag does to which message of a history; what it may not do it says, and then nothing is done.
func TestOperations(t *testing.T) {
	long := strings.Repeat("many words ", 60)
	history := []string{`{"role":"user","content":"` + long + `"}`, `{"role":"system","content":"` + long + `"}`, `{"role":"assistant","content":"` + long + `"}`, `{"role":"user","content":"` + long + `"}`}
	for _, row := range []struct {
		op   cleanup.Op
		want string // edits, what is let go, what is kept
		why  string
	}{
		{cleanup.Op{Verb: cleanup.Release, Paths: []string{"a.go", "b.go"}}, "0 [a.go b.go] []", ""},
		{cleanup.Op{Verb: cleanup.Anchor, Handle: "e2"}, "0 [] [e2#0]", ""},
		{cleanup.Op{Verb: cleanup.Anchor, Handle: "e3#5"}, "0 [] [e3#5]", ""},
		{cleanup.Op{Verb: cleanup.Anchor, Handle: "e7"}, "0 [] []", "e7 is not in this conversation"},
		{cleanup.Op{Verb: cleanup.Drop, Handle: "e2"}, "1 [e2#0] []", ""},
		{cleanup.Op{Verb: cleanup.Summarize, Handle: "e0#0", Text: "short"}, "1 [e0#0] []", ""},
		{cleanup.Op{Verb: cleanup.Drop, Handle: "e1"}, "0 [] []", "e1#0 is of a system message, which stays"},
		{cleanup.Op{Verb: cleanup.Drop, Handle: "e3"}, "0 [] []", "e3#0 is of the newest turn, which stays"},
		{cleanup.Op{Verb: cleanup.Drop, Handle: "e2#1"}, "0 [] []", "e2#1 is no block of this request"},
		{cleanup.Op{Verb: cleanup.Collapse, From: 1, To: 1, Text: "short"}, "1 [e0 e2] []", ""},
		{cleanup.Op{Verb: cleanup.Collapse, From: 1, To: 2, Text: "short"}, "0 [] []", "turns 1-2: there are turns 1 to 1 that may go, the newest stays"},
	} {
		x, track := exchangeOf(t, nil, history...), newTrack(0)
		for _, n := range x.path {
			n.msg.Bytes = 600
		}
		edits, refused := x.operate(track, []cleanup.Op{row.op})
		if got := fmt.Sprint(len(edits), track.release, track.anchor); got != row.want || len(track.edits) != len(edits) {
			t.Errorf("%+v: %s, want %s", row.op, got, row.want)
		}
		if row.why == "" && len(refused) > 0 || row.why != "" && !slices.Equal(refused, []string{row.op.Verb + ": " + row.why}) {
			t.Errorf("%+v: refused %q, want %q", row.op, refused, row.why)
		}
	}
}

// TestCollapse: turns are summed up from what a person asked to before what they asked next, if that is shorter and no message in
// them has to stay as it came.
func TestCollapse(t *testing.T) {
	words := func(role string) string { return `{"role":"` + role + `","content":"words"}` }
	list := []string{words("user"), words("assistant"), words("user"), words("system"), words("assistant"), words("user")}
	const note = `{"role":"user","content":"[Turns 1-2, 5 messages, as you summed them up: short Their words: memory_fault with the handles e0#0 to e4#0.]"}`
	for _, row := range []struct {
		name     string
		from, to int
		size     int // of a message,
		more     int // and what the first has more
		odd      int // the message of an unknown form, 0 for none
		want     string
	}{
		{"both", 1, 2, 50, 0, 0, "e0-e4 [e0 e1 e2 e4]"},
		{"the first", 1, 1, 200, 0, 0, "e0-e1 [e0 e1]"},
		{"the second", 2, 2, 200, 0, 0, "e2-e4 [e2 e4]"},
		{"a note is as long", 1, 2, 0, len(note), 0, fmt.Sprintf("turns 1-2 have %d bytes, a note would be no shorter", len(note))},
		{"a note is a byte shorter", 1, 2, 0, len(note) + 1, 0, "e0-e4 [e0 e1 e2 e4]"},
		{"none", 0, 1, 200, 0, 0, "turns 0-1: there are turns 1 to 2 that may go, the newest stays"},
		{"backwards", 2, 1, 200, 0, 0, "turns 2-1: there are turns 1 to 2 that may go, the newest stays"},
		{"the newest", 3, 3, 200, 0, 0, "turns 3-3: there are turns 1 to 2 that may go, the newest stays"},
		{"one that stays is the last of them", 1, 2, 200, 0, 4, "turns 1-2: there is a message in them that stays"},
		{"one that stays is the first of them", 2, 2, 200, 0, 2, "turns 2-2: there is a message in them that stays"},
		{"one that stays is behind them", 1, 1, 200, 0, 2, "e0-e1 [e0 e1]"},
		{"one that stays is before them", 2, 2, 200, 0, 1, "e2-e4 [e2 e4]"},
	} {
		x, track := exchangeOf(t, nil, list...), newTrack(0)
		for i, n := range x.path {
			n.msg.Bytes, n.foreign = row.size, row.odd > 0 && i == row.odd
		}
		x.path[0].msg.Bytes += row.more
		e, err := x.collapse(track, cleanup.Op{From: row.from, To: row.to, Text: "short"})
		var got string
		if err != nil {
			got = err.Error()
		} else {
			got = fmt.Sprintf("%s-%s %v", e.from.id, e.to.id, track.release)
		}
		if got != row.want || err == nil && e.block != -1 {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
		if row.name == "both" && (e == nil || string(e.raw) != note) {
			t.Errorf("%+v, want %s", e, note)
		}
	}
}

// TestEditsOverlap: whether an edit is of messages of a run, all of it, and whether its messages are in a history.
func TestEditsOverlap(t *testing.T) {
	at := make([]*node, 9)
	for i := range at {
		at[i] = &node{depth: i}
	}
	e := edit{from: at[3], to: at[5]}
	for _, row := range []struct {
		from, to         int
		overlaps, within bool
	}{
		{1, 2, false, false}, {1, 3, true, false}, {1, 4, true, false}, {1, 5, true, true}, {3, 5, true, true}, {3, 8, true, true}, {4, 4, true, false},
		{4, 8, true, false}, {3, 4, true, false}, {5, 8, true, false}, {6, 8, false, false},
	} {
		if a, b := overlaps(e, at[row.from], at[row.to]), within(e, at[row.from], at[row.to]); a != row.overlaps || b != row.within {
			t.Errorf("with %d to %d: overlaps %t, within %t", row.from, row.to, a, b)
		}
	}
	path, other := at[1:], &node{depth: 3}
	for name, row := range map[string]struct {
		path []*node
		want bool
	}{
		"all":                 {path, true},
		"up to its end":       {path[:5], true},
		"a message less":      {path[:4], false},
		"another begin":       {[]*node{at[1], at[2], other, at[4], at[5]}, false},
		"another end":         {[]*node{at[1], at[2], at[3], at[4], other}, false},
		"another in between":  {[]*node{at[1], at[2], at[3], other, at[5]}, true},
		"nothing is in there": {nil, false},
	} {
		if got := e.holds(row.path); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestRewrittenBlocks: an edit by a tag stands in the place of its block where the message is in the history, over a stub too, and
// of two the newer one; within turns that one text stands for it does not.
func TestRewrittenBlocks(t *testing.T) {
	x, track := exchangeOf(t, nil, mixed...), newTrack(0)
	n := func(i, block int, raw string) edit { return edit{x.path[i], x.path[i], block, []byte(raw)} }
	track.edits = []edit{n(1, 1, "one"), n(2, 0, "two"), n(1, 1, "three"), n(0, 0, "hidden"), n(5, 9, "no block"), {&node{depth: 2}, &node{depth: 2}, 0, []byte("elsewhere")},
		{x.path[7], x.path[8], -1, []byte("turns")}, n(4, 0, "of an unknown form")}
	x.plan.change.Blocks = []body.BlockChange{{Item: 2, Block: 0, Raw: []byte("stub")}, {Item: 7, Block: 1, Raw: []byte("stub")}}
	x.rewritten(track, map[int]bool{0: true})
	if got, want := changes(&x.plan.change), []string{"block 2.0 two", "block 7.1 stub", "block 1.1 three"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}

	x = exchangeOf(t, nil, mixed...)
	span := func(from, to int, raw string) edit { return edit{x.path[from], x.path[to], -1, []byte(raw)} }
	track.edits = []edit{span(2, 3, "inner"), n(2, 0, "block"), span(2, 5, "outer"), span(0, 2, "before"), span(5, 6, "newest"), span(0, 1, "beside"), {&node{depth: 1}, &node{depth: 2}, -1, nil}}
	hidden := x.collapsed(track)
	if got, want := changes(&x.plan.change), []string{"span 2-5 [3] [outer]", "span 0-1 [] [beside]"}; !slices.Equal(got, want) || len(hidden) != 6 || !hidden[0] || !hidden[5] {
		t.Errorf("%q, want %q; hidden %v", got, want, hidden)
	}
}

// TestTitle: a conversation is called what was asked first, on one line and without reminders, in 60 characters at most.
func TestTitle(t *testing.T) {
	ask := func(s string) string { return `{"role":"user","content":"` + s + `"}` }
	for _, row := range []struct {
		list []string
		want string
	}{
		{nil, ""},
		{[]string{mixed[1]}, ""},
		{[]string{ask("what?"), ask("and?")}, "what?"},
		{[]string{mixed[2], mixed[3], ask(`a\n  b`)}, "a b"},
		{[]string{ask(`<system-reminder>x</system-reminder> what?`)}, "what?"},
		{[]string{ask(strings.Repeat("é", 60))}, strings.Repeat("é", 60)},
		{[]string{ask(strings.Repeat("é", 61))}, strings.Repeat("é", 60) + "…"},
	} {
		x := exchangeOf(t, nil, row.list...)
		if got := title(x.path, x.req.Items); got != row.want {
			t.Errorf("%q: %q, want %q", row.list, got, row.want)
		}
	}
	x := exchangeOf(t, nil, `{"role":"user","content":[{"type":"text","text":7}]}`, ask("what?"))
	if got := title(x.path, x.req.Items); got != "" {
		t.Errorf("of what cannot be read: %q", got)
	}
}

// TestKinds: each error that leaves a request untouched is of one kind, and each kind says what can be done.
func TestKinds(t *testing.T) {
	for _, row := range []struct {
		err        error
		kind, what string
	}{
		{fmt.Errorf("x: %w", tidemark.ErrTooLarge), TooLarge, "begin a new conversation"},
		{&scanError{errors.New("x")}, Unreadable, "if the client works without Tidemark"},
		{errEmpty, Unreadable, "if the client works without Tidemark"},
		{errRefused, Refused, "report this line with the model"},
		{errSour, Refused, "report this line with the model"},
		{fmt.Errorf("x: %w", tidemark.ErrInvalid), Other, "see the server's log"},
		{errors.New("x"), Stored, "run `tidemark doctor`"},
		{fmt.Errorf("x: %w", tidemark.ErrNotFound), Stored, "run `tidemark doctor`"},
	} {
		if kind := kindOf(row.err); kind != row.kind || !strings.HasPrefix(Remedy(kind), row.what) {
			t.Errorf("%v is of kind %s: %s", row.err, kind, Remedy(kind))
		}
	}
	for _, row := range []struct {
		err  error
		want string
	}{
		{&scanError{&body.ReadError{Part: "messages[0]", Message: 0, Byte: 7, Why: "why"}}, "message 1 cannot be read: why (byte 7)"},
		{&scanError{&body.ReadError{Part: "tools", Message: -1, Byte: 7, Why: "why"}}, "tools cannot be read: why (byte 7)"},
		{&scanError{&body.ReadError{Message: -1, Byte: 7, Why: "why"}}, "the request cannot be read: why (byte 7)"},
		{&body.ReadError{Message: 3, Byte: 7, Why: "two\nlines"}, oneLine((&body.ReadError{Message: 3, Byte: 7, Why: "two\nlines"}).Error())},
		{&scanError{errors.New("two\nlines")}, "two lines"},
	} {
		if got := plainly(row.err); got != row.want {
			t.Errorf("%v: %s, want %s", row.err, got, row.want)
		}
	}
}

// TestOneLine: of a name all characters stay but those that control a terminal, and at most 200 bytes.
func TestOneLine(t *testing.T) {
	for r := range rune(256) {
		want := string(r)
		if r < 32 || r == 127 {
			want = " "
		}
		if got := oneLine(string(r)); got != want {
			t.Errorf("%q: %q", string(r), got)
		}
	}
	if a, b := strings.Repeat("x", 200), strings.Repeat("x", 201); clipped(a) != a || clipped(b) != a+"…" {
		t.Errorf("%q, %q", clipped(a), clipped(b))
	}
	if got := string(names(names(nil, "none", nil), "some", []string{"a", "b\""})); got != `"some":["a","b\""],` {
		t.Errorf("names %s", got)
	}
	if a, b := tell(fmt.Errorf("x: %w", tidemark.ErrNotFound)), tell(errors.New("x")); a != "it was not found" || b != "the store does not answer" {
		t.Errorf("%s, %s", a, b)
	}
}
