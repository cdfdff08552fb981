package proxy

import (
	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/proxy/body"
)

// form says which blocks of a message count for what it is. Those that do not (thinking, reminders) come and go between
// requests of one conversation, so the same block may stand at another place in each.
type form []bool

func formOf(it body.Item) form {
	out := make(form, it.Blocks())
	for i := range out {
		var b struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		out[i] = json.Unmarshal(it.Block(i), &b) != nil || tidemark.Counts(tidemark.Block{Type: b.Type, Text: b.Text})
	}
	return out
}

// in returns where a block of a message in one form stands in another form of the same message, from 0. ok is false for
// one that does not count, or is not there.
func (f form) in(other form, block int) (at int, ok bool) {
	if block < 0 || block >= len(f) || !f[block] {
		return 0, false
	}
	nth := 0
	for _, counts := range f[:block] {
		if counts {
			nth++
		}
	}
	for i, counts := range other {
		if !counts {
			continue
		}
		if nth == 0 {
			return i, true
		}
		nth--
	}
	return 0, false
}

// at returns where a block of a message, as the log has it, stands in this request.
func (x *Exchange) at(item, block int) (int, bool) {
	n := x.path[item]
	if x.sums[item] == n.sum {
		return block, block < len(n.form)
	}
	if x.forms == nil {
		x.forms = map[int]form{}
	}
	f, ok := x.forms[item]
	if !ok {
		f = formOf(x.req.Items[item])
		x.forms[item] = f
	}
	return n.form.in(f, block)
}
