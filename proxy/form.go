package proxy

import (
	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/proxy/body"
)

// standing is how a block stands in its message.
type standing uint8

const (
	aside   standing = iota // it does not count for what the message is: reminders, which come and go
	thought                 // nor does this: thinking, which clients drop some day
	counts
)

// form says how the blocks of a message stand in it. Those that do not count for what it is come and go between requests
// of one conversation, so the same block may stand at another place in each.
type form []standing

func formOf(it body.Item) form {
	out := make(form, it.Blocks())
	for i := range out {
		var b struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		switch err := json.Unmarshal(it.Block(i), &b); {
		case err != nil || tidemark.Counts(tidemark.Block{Type: b.Type, Text: b.Text}):
			out[i] = counts
		case b.Type != tidemark.TypeText:
			out[i] = thought
		}
	}
	return out
}

// in returns where a block of a message in one form stands in another form of the same message, from 0. ok is false for
// one that does not count, or is not there.
func (f form) in(other form, block int) (at int, ok bool) {
	if block < 0 || block >= len(f) || f[block] != counts {
		return 0, false
	}
	nth := 0
	for _, s := range f[:block] {
		if s == counts {
			nth++
		}
	}
	for i, s := range other {
		if s != counts {
			continue
		}
		if nth == 0 {
			return i, true
		}
		nth--
	}
	return 0, false
}

// formAt is the form in which a message stands in this request.
func (x *Exchange) formAt(item int) form {
	n := x.path[item]
	if x.sums[item] == n.sum {
		return n.form
	}
	if x.forms == nil {
		x.forms = map[int]form{}
	}
	f, ok := x.forms[item]
	if !ok {
		f = formOf(x.req.Items[item])
		x.forms[item] = f
	}
	return f
}

// at returns where a block of a message, as the log has it, stands in this request; ok is false where it cannot be changed.
func (x *Exchange) at(item, block int) (at int, ok bool) {
	n := x.path[item]
	if n.foreign {
		return 0, false
	}
	if x.sums[item] == n.sum {
		return block, block < len(n.form)
	}
	return n.form.in(x.formAt(item), block)
}
