package tidemarktest

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/tidemark-ai/tidemark"
)

// Marked makes random histories of an agent that divides its work into episodes with the tool delimiter: mostly as it
// should, sometimes with what goes wrong in earnest.
type Marked struct {
	Rand *rand.Rand
	// Words is about how long a text is, at most; 0 for short ones.
	Words int
	// Wild histories have what logs of other programs have and no API takes: calls without a result, results without a
	// call, ids used twice, results over several messages, a person's words among them.
	Wild bool
	// Add takes the next message.
	Add func(tidemark.Message)
	// Answer gives the results of the calls of delimiter in the message that was added last, by call.
	Answer func() map[string]tidemark.Block

	calls  int
	names  int
	open   string // type of the open episode, "" for none
	closed []string
	ids    []string // of calls so far
}

// Marker is the tool that marks episodes.
const Marker = "delimiter"

// works are tools of each level, with what stands in front of a path in their input.
var works = []struct{ name, field string }{
	{"grep", "pattern"}, {"glob", "pattern"}, {"ls", "path"}, {"mcp__files__search", "query"}, {"read", "path"}, {"read", "file_path"},
	{"bash", "command"}, {"fetch", "url"}, {"mcp__jira__get", "id"}, {"edit", "file_path"}, {"write", "path"}, {"unheard_of", "x"},
}

// Step adds what a person says, now and then, and a few replies with the results of their calls.
func (h *Marked) Step() {
	if h.calls == 0 || h.Rand.IntN(6) == 0 {
		content := []tidemark.Block{tidemark.Text(h.text())}
		if h.Rand.IntN(8) == 0 {
			content = append(content, pixel())
		}
		h.Add(tidemark.Message{Role: tidemark.User, Content: content})
	}
	for range 1 + h.Rand.IntN(4) {
		h.reply()
	}
}

// reply adds a reply and the results of its calls.
func (h *Marked) reply() {
	r := h.Rand
	var content []tidemark.Block
	var calls []tidemark.Block
	if r.IntN(3) == 0 {
		content = append(content, tidemark.Block{Type: tidemark.TypeThinking, Text: h.text(), Signature: "c2ln"})
	}
	if r.IntN(2) == 0 || len(content) == 0 {
		content = append(content, tidemark.Text(h.text()))
	}
	if r.IntN(40) == 0 {
		content = append(content, tidemark.Text(""))
	}
	open, closed := h.open, h.closed // as they will be if nothing is refused
	for range r.IntN(5) {
		b := h.work()
		if r.IntN(3) == 0 {
			b = h.mark(&open, &closed)
		}
		content, calls = append(content, b), append(calls, b)
		if r.IntN(8) == 0 {
			content = append(content, tidemark.Text(h.text()))
		}
	}
	h.Add(tidemark.Message{Role: tidemark.Assistant, Content: content})
	if len(calls) == 0 {
		return
	}
	answers := h.Answer()
	if h.Wild && r.IntN(20) == 0 {
		return // the turn was stopped
	}
	h.results(calls, answers, func(b tidemark.Block) { h.note(b) })
}

// results adds the results of calls.
func (h *Marked) results(calls []tidemark.Block, answers map[string]tidemark.Block, carried func(tidemark.Block)) {
	r := h.Rand
	var out []tidemark.Block
	flush := func() {
		if len(out) > 0 {
			h.Add(tidemark.Message{Role: tidemark.User, Content: out})
		}
		out = nil
	}
	for _, c := range calls {
		res, is := answers[c.ID]
		if !is {
			res = tidemark.ToolResult(c.ID, h.text(), r.IntN(12) == 0)
			if r.IntN(20) == 0 {
				res.Content = append(res.Content, pixel())
			}
		}
		if h.Wild {
			switch r.IntN(40) {
			case 0:
				continue // it has none
			case 1:
				out = append(out, res) // and has two
			case 2:
				out = append(out, tidemark.ToolResult("nobody", h.text(), false))
			case 3:
				res.IsError = true // it was interrupted
			case 4:
				flush()
			case 5:
				out = append(out, tidemark.Text("in between: "+h.text()))
			}
		}
		out = append(out, res)
		if c.Name == Marker && !res.IsError {
			carried(c)
		}
	}
	if r.IntN(15) == 0 {
		out = append(out, tidemark.Text("and by the way: "+h.text()))
	}
	flush()
}

// note keeps up with a call of the tool that was carried out.
func (h *Marked) note(c tidemark.Block) {
	in := string(c.Input)
	if strings.Contains(in, `"end"`) {
		if name, ok := strings.CutPrefix(h.open, "expl "); ok {
			h.closed = append(h.closed, name)
		}
		h.open = ""
		return
	}
	kind := "act "
	if strings.Contains(in, `"expl"`) {
		kind = "expl "
	}
	_, name, _ := strings.Cut(in, `"name":"`)
	name, _, _ = strings.Cut(name, `"`)
	h.open = kind + name
}

// id is the id of a new call.
func (h *Marked) id() string {
	h.calls++
	if h.Wild && h.Rand.IntN(60) == 0 && len(h.ids) > 0 {
		return h.ids[h.Rand.IntN(len(h.ids))]
	}
	id := fmt.Sprintf("call_%d", h.calls)
	if h.Wild {
		h.ids = append(h.ids, id)
	}
	return id
}

func (h *Marked) work() tidemark.Block {
	w := works[h.Rand.IntN(len(works))]
	return tidemark.ToolUse(h.id(), w.name, fmt.Appendf(nil, `{%q:"dir/file%d.go","why":%q}`, w.field, h.Rand.IntN(30), h.text()))
}

// mark is a call of the tool, and what is open behind it.
func (h *Marked) mark(open *string, closed *[]string) tidemark.Block {
	r := h.Rand
	var in string
	switch {
	case r.IntN(12) == 0:
		in = odd[r.IntN(len(odd))]
	case *open == "" || r.IntN(15) == 0:
		h.names++
		name := fmt.Sprintf("n%d", h.names)
		if r.IntN(2) == 0 {
			in = fmt.Sprintf(`{"action":"start","name":%q,"type":"expl"}`, name)
			*open = "expl " + name
			break
		}
		var on []string
		for range r.IntN(3) {
			if n := len(*closed); n > 0 {
				on = append(on, `"`+(*closed)[n-1-r.IntN(min(n, 6))]+`"`)
			}
		}
		in = fmt.Sprintf(`{"action":"start","name":%q,"type":"act","dependencies":[%s]}`, name, strings.Join(on, ","))
		*open = "act " + name
	default:
		in = `{"action":"end"}`
		if name, ok := strings.CutPrefix(*open, "expl "); ok {
			in = fmt.Sprintf(`{"action":"end","description":"learned of %s: %s"}`, name, h.text())
			*closed = append((*closed)[:len(*closed):len(*closed)], name)
		}
		*open = ""
	}
	return tidemark.ToolUse(h.id(), Marker, []byte(in))
}

// odd are calls that are refused, wherever they come.
var odd = []string{
	`{}`, `[]`, `null`, `"start"`, `{"action":"stop"}`, `{"action":1}`, `{"action":"start"}`, `{"action":"start","name":"x"}`,
	`{"action":"start","name":"y","type":"act"}`, `{"action":"start","name":"z","type":"act","dependencies":["nothing of the kind"]}`,
	`{"action":"start","name":"z","type":"act","dependencies":[" "]}`, `{"action":"start","name":"z","type":"act","dependencies":"z"}`,
	`{"action":"end","name":"somebody else"}`, `{"action":"end","description":7}`, `{"action":`,
}

// text is some words, sometimes none that say anything.
func (h *Marked) text() string {
	most := max(h.Words, 4)
	n := h.Rand.IntN(most)
	if h.Rand.IntN(30) == 0 {
		n *= 20
	}
	return strings.Repeat("wörd ", n) + fmt.Sprint(h.Rand.IntN(1000))
}

func pixel() tidemark.Block {
	var m tidemark.Message
	if err := m.UnmarshalJSON([]byte(`{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}`)); err != nil {
		panic(err)
	}
	return m.Content[0]
}
