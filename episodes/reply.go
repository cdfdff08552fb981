package episodes

import "github.com/tidemark-ai/tidemark"

// reply is a reply with what came of its calls so far.
type reply struct {
	*Message
	results []tidemark.Block // first ones of each call
	at      map[string]int   // results by call
	open    map[string]bool  // calls without one
	tokens  tidemark.Tokens  // of the messages of the results
	said    bool             // somebody spoke in between
}

// replyOf returns a reply to which nothing was answered.
func replyOf(m *Message) *reply {
	r := &reply{Message: m, at: map[string]int{}, open: map[string]bool{}}
	for _, id := range m.Content.Calls() {
		r.open[id] = true
	}
	return r
}

// take notes a result of a call.
func (r *reply) take(b tidemark.Block) {
	if _, twice := r.at[b.ToolUseID]; twice {
		return
	}
	r.at[b.ToolUseID] = len(r.results)
	r.results = append(r.results, b)
	delete(r.open, b.ToolUseID)
}

// result is what a call was answered, nil for nothing.
func (r *reply) result(call string) *tidemark.Block {
	if i, ok := r.at[call]; ok {
		return &r.results[i]
	}
	return nil
}

// copied returns a reply that may go on by itself.
func (r *reply) copied() *reply {
	if r == nil {
		return nil
	}
	c := replyOf(r.Message)
	for _, b := range r.results {
		c.take(b)
	}
	c.tokens, c.said = r.tokens, r.said
	return c
}
