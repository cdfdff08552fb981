package compaction

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/tidemark-ai/tidemark"
)

// scripted makes the items of a view from words, each one item: u is what a person said, a what the assistant did, y the
// system's; c are calls with these ids, t those of the tool that keeps the task, r results of these, x the same with words
// of a person behind them; S is a summary, M a marker of so many cycles, E the line of an episode, L another span, and P
// words that stand before everything. Behind "=" stand the tokens, 10 where there are none, and "!" pins. Their entries
// are e1, e2, …
func scripted(words string) []Item {
	var out []Item
	for i, w := range strings.Fields(words) {
		w, pinned := strings.CutSuffix(w, "!")
		w, number, _ := strings.Cut(w, "=")
		tokens, err := strconv.Atoi(cmp.Or(number, "10"))
		if err != nil {
			panic(err)
		}
		n := int64(i + 1)
		id := tidemark.EntryID(fmt.Sprintf("e%d", n))
		it := Item{ID: id, From: id, To: id, Seq: n, Last: n, Tokens: tidemark.Tokens(tokens), Pinned: pinned}
		it.Message = tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.Text(w)}}
		switch w[0] {
		case 'a':
			it.Message.Role = tidemark.Assistant
		case 'y':
			it.Message.Role = tidemark.System
		case 'c', 't':
			it.Message.Role, it.Message.Content = tidemark.Assistant, nil
		case 'r', 'x':
			it.Message.Content = nil
		case 'S':
			it.Message.Content[0] = tidemark.Text(SummaryMarker + " so it was")
			it.Overlay, it.Row = "o", n
		case 'M':
			cycles, _ := strconv.Atoi(w[1:])
			it.Overlay, it.Row, it.Data = "o", n, Marker{Count: 1, Cycles: cycles}.data()
		case 'E':
			it.Overlay, it.Row, it.Data = "o", n, []byte(`{"episodes":{"lines":[1]}}`)
		case 'L':
			it.Overlay, it.Row = "o", n
		case 'P':
			it.Overlay, it.To = "o", ""
		}
		for id := range strings.SplitSeq(w[1:], ",") {
			switch w[0] {
			case 'c':
				it.Message.Content = append(it.Message.Content, tidemark.ToolUse(id, "read", nil))
			case 't':
				it.Message.Content = append(it.Message.Content, tidemark.ToolUse(id, DefaultStay, nil))
			case 'r', 'x':
				it.Message.Content = append(it.Message.Content, tidemark.ToolResult(id, "done", false))
			}
		}
		if w[0] == 'x' {
			it.Message.Content = append(it.Message.Content, tidemark.Text("and hurry"))
		}
		out = append(out, it)
	}
	return out
}

// scriptedView is a view of these items whose size is what they are estimated at.
func scriptedView(words string) View {
	v := View{Items: scripted(words)}
	v.Size = v.Tokens()
	return v
}

// marked are the places that are true, as text.
func marked(marks []bool) string {
	var out []string
	for i, is := range marks {
		if is {
			out = append(out, strconv.Itoa(i))
		}
	}
	return strings.Join(out, " ")
}

// told is an edit as text: what it replaces, what it keeps, and by what.
func told(e tidemark.Edit) string {
	s := string(e.From)
	switch {
	case e.Block > 0:
		s += "#" + strconv.Itoa(e.Block)
	case e.To == "":
		s += "<"
	default:
		s += "-" + string(e.To)
	}
	for _, k := range e.Keep {
		s += "+" + string(k)
	}
	return s
}

// toldAll are edits as text.
func toldAll(edits []tidemark.Edit) string {
	out := make([]string, len(edits))
	for i, e := range edits {
		out[i] = told(e)
	}
	return strings.Join(out, " ")
}
