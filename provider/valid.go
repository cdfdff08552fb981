package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	tidemark "github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

// What stands for what may not be sent.
const (
	// greeted stands before an answer that was nobody's, where an API wants the user to begin.
	greeted = "[The conversation begins.]"
	// wordless stands for an answer of which nothing may be sent again: it ended while the model was thinking.
	wordless = "[The answer ended before it had any text.]"
	// vacant stands for a message of which nothing is left.
	vacant = "[An empty message.]"
)

// spot is where a block of a request stood before it was made valid: its message, its block there, and with results the
// block in that; -1 for what is none.
type spot struct{ message, block, inner int }

var nowhere = spot{-1, -1, -1}

// rules are what one API demands beside tidemark.Check. tidemarktest.CheckAnthropic and tidemarktest.CheckChat hold what comes out
// against them, with the source of each.
type rules struct {
	id      func(id string) string                          // of a call, as the API takes it
	keep    func(thought tidemark.Block, calling bool) bool // whether a block of thinking may be sent
	media   mediaRules                                      // of pictures and documents
	tools   schemaRules                                     // of definitions
	begins  bool                                            // the user speaks first, and ids are never used again
	system  bool                                            // system messages may stand between the others
	failing bool                                            // the result of a call that failed is text
}

// sending is a request that is being made valid, and where its blocks are from.
type sending struct {
	tidemark.Request
	rules
	came    []tidemark.Message // the messages before
	from    [][]spot           // of the blocks of each message; a block beyond is ours, as the note is
	aliases aliases
	leftOut []string // tools that are too many
	unfit   []string // what the model reads in the place of pictures and files behind the last answer
	fresh   bool     // this message stands behind that
	seen    pictures
}

// Valid makes a request what the Messages API takes, whatever was logged.
func Valid(req tidemark.Request) tidemark.Request { return (&Anthropic{}).valid(req).Request }

// valid makes a request what an API takes, whatever was logged. It is pure: the same request gives the same bytes, and
// what was valid is sent as it came, so that the cached prefix holds.
func valid(req tidemark.Request, r rules) *sending {
	s := &sending{Request: req, rules: r, came: req.Messages, from: make([][]spot, len(req.Messages))}
	if strings.TrimSpace(s.System) == "" {
		s.System = ""
	}
	s.Messages = slices.Clone(req.Messages)
	for i, m := range s.Messages {
		s.from[i] = make([]spot, len(m.Content))
		for k := range m.Content {
			s.from[i][k] = spot{i, k, -1}
		}
	}
	s.define()
	if !r.system {
		s.remind()
	}
	if r.begins {
		s.open()
	}
	s.seen.count(s.Messages, s.media)
	answered := len(s.Messages) - 1
	for answered >= 0 && s.Messages[answered].Role != tidemark.Assistant {
		answered--
	}
	for i := range s.Messages {
		s.fresh = i > answered
		s.content(i)
	}
	s.identify()
	return s
}

// remind gives models without system messages between the others what these say at the end of the user's message before
// them, in the tags in which agents have always said such things there.
func (s *sending) remind() {
	if !slices.ContainsFunc(s.Messages, func(m tidemark.Message) bool { return m.Role == tidemark.System }) {
		return
	}
	out, from := make([]tidemark.Message, 0, len(s.Messages)), make([][]spot, 0, len(s.Messages))
	for i, m := range s.Messages {
		if m.Role != tidemark.System {
			out, from = append(out, m), append(from, s.from[i])
			continue
		}
		note, at := tidemark.Reminder(m), nowhere
		if len(s.from[i]) > 0 {
			at = s.from[i][0]
		}
		if n := len(out) - 1; n >= 0 && out[n].Role == tidemark.User {
			out[n] = tidemark.Message{Role: tidemark.User, Content: append(slices.Clone(out[n].Content), note)}
			from[n] = append(slices.Clone(from[n]), at)
		} else {
			out, from = append(out, tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{note}}), append(from, []spot{at})
		}
	}
	s.Messages, s.from = out, from
}

// open has the user speak first: a system text alone is what the user says, a greeting of the assistant has something
// before it.
func (s *sending) open() {
	switch {
	case len(s.Messages) == 0 && s.System != "":
		s.Messages, s.System = []tidemark.Message{tidemark.NewText(tidemark.User, s.System)}, ""
		s.from = [][]spot{{nowhere}}
	case len(s.Messages) > 0 && s.Messages[0].Role == tidemark.Assistant:
		s.Messages = slices.Insert(s.Messages, 0, tidemark.NewText(tidemark.User, greeted))
		s.from = slices.Insert(s.from, 0, []spot{nowhere})
	}
}

// content makes the blocks of a message valid.
func (s *sending) content(i int) {
	m := s.Messages[i]
	out, from, changed := make([]tidemark.Block, 0, len(m.Content)), make([]spot, 0, len(m.Content)), false
	for k, b := range m.Content {
		fit, ok := s.block(m, b)
		if changed = changed || !ok || fit != nil; !ok {
			continue
		}
		if fit != nil {
			b = *fit
		}
		out, from = append(out, b), append(from, s.from[i][k])
	}
	if m.Role == tidemark.Assistant {
		// "The final block in an assistant message cannot be `thinking`"
		for n := len(out); n > 0 && thinks(out[n-1]); n-- {
			out, from, changed = out[:n-1], from[:n-1], true
		}
		if n := len(out); i == len(s.Messages)-1 && n > 0 && s.begins && out[n-1].Type == tidemark.TypeText {
			// "final assistant content cannot end with trailing whitespace"
			if short := strings.TrimRight(out[n-1].Text, " \t\r\n"); short != out[n-1].Text {
				out[n-1], changed = tidemark.Text(short), true
			}
		}
	}
	if len(out) == 0 {
		text := vacant
		if m.Role == tidemark.Assistant {
			text = wordless
		}
		at := nowhere
		if len(s.from[i]) > 0 {
			at = s.from[i][0]
		}
		out, from, changed = []tidemark.Block{tidemark.Text(text)}, []spot{at}, true
	}
	if changed {
		s.Messages[i], s.from[i] = tidemark.Message{Role: m.Role, Content: out}, from
	}
}

// block returns a block as it may be sent, nil for as it came; ok is false for one that may not be.
func (s *sending) block(m tidemark.Message, b tidemark.Block) (fit *tidemark.Block, ok bool) {
	switch b.Type {
	case tidemark.TypeText:
		return nil, strings.TrimSpace(b.Text) != ""
	case tidemark.TypeThinking, tidemark.TypeRedactedThinking:
		return nil, m.Role == tidemark.Assistant && s.keep(b, len(m.Calls()) > 0)
	case tidemark.TypeImage, tidemark.TypeDocument:
		return s.medium(b), true
	case tidemark.TypeToolUse:
		return s.call(b), true
	case tidemark.TypeToolResult:
		return s.result(b), true
	}
	return nil, true
}

// call is a call whose name and input the API takes, nil if it is one.
func (s *sending) call(b tidemark.Block) *tidemark.Block {
	var sets []field
	if name := s.tools.name(b.Name); name != b.Name {
		sets = append(sets, field{Key: "name", Value: json.AppendString(nil, name)})
	}
	input := []byte(b.Input)
	if len(input) == 0 || input[0] != '{' {
		input = ToolInput(string(b.Input))
	}
	if input = s.aliases.keysSent(b.Name, input); string(input) != string(b.Input) {
		sets = append(sets, field{Key: "input", Value: input})
	}
	return altered(b, sets)
}

// result is the result of a call of which each block may be sent, nil if it is one.
func (s *sending) result(b tidemark.Block) *tidemark.Block {
	changed, list := false, []byte{'['}
	for _, c := range b.Content {
		if !kept(c) {
			changed = true
			continue
		}
		fit := (*tidemark.Block)(nil)
		switch {
		case s.failing && b.IsError && c.Type != tidemark.TypeText: // "all content must be type `text` if `is_error` is true"
			note := tidemark.Text("[" + c.Type + " left out: the result of a call that failed is text]")
			fit = &note
			if c.Type == tidemark.TypeImage {
				s.seen.nth++
			}
		case c.Type == tidemark.TypeImage || c.Type == tidemark.TypeDocument:
			fit = s.medium(c)
		}
		if fit != nil {
			changed, c = true, *fit
		}
		if len(list) > 1 {
			list = append(list, ',')
		}
		list = c.AppendJSON(list)
	}
	if !changed {
		return nil
	}
	return altered(b, []field{{Key: "content", Value: append(list, ']')}})
}

// medium is what stands for a picture or a document, nil for itself.
func (s *sending) medium(b tidemark.Block) *tidemark.Block {
	own := (*tidemark.Block)(nil)
	if !s.media.more && jsonscan.Find(b.Raw(), pictureField) != nil {
		if own = altered(b, []field{{Key: pictureField}}); own != nil {
			b = *own
		}
	}
	fit := s.seen.medium(b, s.media)
	if fit == nil {
		return own
	}
	if s.fresh && fit.Type == tidemark.TypeText {
		s.unfit = append(s.unfit, strings.TrimSuffix(strings.TrimPrefix(fit.Text, "["), "]"))
	}
	return fit
}

// kept reports a block of a result that is not empty; mended places count these alone.
func kept(c tidemark.Block) bool {
	return c.Type != tidemark.TypeText || strings.TrimSpace(c.Text) != ""
}

// thinks reports a block of thinking.
func thinks(b tidemark.Block) bool {
	return b.Type == tidemark.TypeThinking || b.Type == tidemark.TypeRedactedThinking
}

// altered is a block with other fields, nil when there are none.
func altered(b tidemark.Block, sets []field) *tidemark.Block {
	if len(sets) == 0 {
		return nil
	}
	var out tidemark.Block
	if out.UnmarshalJSON(jsonscan.Set(nil, b.AppendJSON(nil), sets...)) != nil {
		return nil // it was one before, and is with another string in it
	}
	return &out
}

// identify gives calls and their results ids that the API takes, and where it wants that, each another one.
func (s *sending) identify() {
	used, renamed := map[string]bool{}, map[string]string{}
	for i, m := range s.Messages {
		if m.Role == tidemark.Assistant {
			clear(renamed) // a result answers the message before it
			for _, id := range m.Calls() {
				own := s.id(id)
				unique := own
				for n := 2; s.begins && used[unique]; n++ {
					unique = fmtID(own, n)
				}
				if used[unique] = true; unique != id {
					renamed[id] = unique
				}
			}
		}
		if len(renamed) > 0 {
			s.Messages[i] = rename(m, renamed)
		}
	}
}

// rename returns a message with other ids of calls.
func rename(m tidemark.Message, ids map[string]string) tidemark.Message {
	blocks := slices.Clone(m.Content)
	for i, b := range blocks {
		name, id := "id", b.ID
		if b.Type == tidemark.TypeToolResult {
			name, id = "tool_use_id", b.ToolUseID
		}
		to, ok := ids[id]
		if !ok || b.Type != tidemark.TypeToolUse && b.Type != tidemark.TypeToolResult {
			continue
		}
		if fit := altered(b, []field{{Key: name, Value: json.AppendString(nil, to)}}); fit != nil {
			blocks[i] = *fit
		}
	}
	return tidemark.Message{Role: m.Role, Content: blocks}
}

// plain is a name in letters, digits, _ and -, and other signs that may be in it, at most so many. Of one that is not,
// what can be is left, and a hash keeps it apart from others.
func plain(name string, most int, others string) string {
	const digits, head = 8, 24
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || strings.ContainsRune(others, r) {
			return r
		}
		return '_'
	}, name)
	if clean == name && name != "" && len(name) <= most {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return clean[:min(len(clean), head)] + "_" + hex.EncodeToString(sum[:digits/2])
}

// own gives what a reader is told of an answer the names that the tools have here, and what was left out.
func (s *sending) own(yield yielder) yielder {
	if len(s.aliases.names) == 0 && len(s.aliases.keys) == 0 && len(s.leftOut) == 0 && len(s.unfit) == 0 {
		return yield
	}
	return func(d tidemark.Delta, err error) bool {
		if d.Tool != "" {
			d.Tool = s.aliases.own(d.Tool)
		}
		if d.Reply != nil {
			r := *d.Reply
			r.Message, r.LeftOut, r.Unfit = s.aliases.reply(r.Message), s.leftOut, s.unfit
			d.Reply = &r
		}
		return yield(d, err)
	}
}

// explained is the error of a call, with the place of the request that it names.
func (s *sending) explained(err error, find func(refusedPlace) spot) error {
	var api *tidemark.APIError
	if errors.As(err, &api) {
		s.refused(api, find)
	}
	return err
}
