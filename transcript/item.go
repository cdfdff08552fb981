package transcript

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Item is one message of a log and what the log says about it.
type Item struct {
	Message tidemark.Message
	ID      string   // the API's message id; "" for most user lines
	Lines   []int64  // its lines, ascending, with those that gave a LineError
	UUIDs   []string // of those lines, "" where one has none
	Parent  string   // parentUuid of the first line

	At      time.Time // of the first line; zero when it has none
	Request string    // the API's request id
	Model   string    // "<synthetic>" for what Claude Code wrote in the model's name
	Stop    string    // why the model stopped, when the log says so
	// Usage is what the API reported for the call, nil when it reported nothing. Of a message of
	// several lines each figure is the last one: the earlier lines were written before the reply ended.
	Usage *tidemark.Usage

	Boundary  bool   // the conversation was compacted between the message before it and this one
	Summary   bool   // it is the summary that a compaction wrote
	Meta      bool   // written by the tool, not typed by a person
	APIError  bool   // it reports a failed call
	SideChain bool   // said by or to a subagent
	Agent     string // of a side chain: which subagent, in logs that say so
}

// group puts the lines of one message together.
type group struct {
	limit  int64
	size   int64 // of the content of all lines
	lines  int   // that could be read
	over   bool  // the message is too large
	parts  Item
	bare   tidemark.Message // the message, while it is one line
	blocks []tidemark.Block
	usage  tidemark.Usage
	called bool // usage holds something
	bad    []*LineError
}

func (g *group) fail(l Line, err error) {
	g.bad = append(g.bad, &LineError{l.Number, l.Offset, err})
}

// add reads one more line of the message.
func (g *group) add(l Line) {
	if g.over {
		return
	}
	if len(g.parts.Lines) == 0 {
		g.first(l)
	}
	g.parts.Lines = append(g.parts.Lines, l.Number)
	g.parts.UUIDs = append(g.parts.UUIDs, l.Get("uuid"))
	r, ok := l.Role()
	content, found := l.content()
	if l.Err != nil || !ok || !found {
		g.fail(l, errors.Join(l.Err, fmt.Errorf("no \"content\" in a message: %w", tidemark.ErrInvalid)))
		return
	}
	if g.size += content.Size(); g.size > g.limit {
		g.over = true
		g.fail(l, fmt.Errorf("the message has more than %d bytes of content: %w", g.limit, tidemark.ErrTooLarge))
		return
	}
	msg, ok := g.decode(l, r, content)
	if !ok {
		return
	}
	if g.lines++; g.lines == 1 {
		g.bare = msg
	}
	g.blocks = append(g.blocks, msg.Content...)
	if f, ok := l.MessageField("stop_reason"); ok && f.Kind == String {
		g.parts.Stop = l.Text(f)
	}
	if f, ok := l.MessageField("usage"); ok {
		g.addUsage(l, f)
	}
}

// content returns the content of a line that is a message.
func (l Line) content() (Field, bool) {
	if f, ok := l.MessageField("content"); ok {
		return f, true
	}
	return l.Field("content")
}

// first takes what the first line says of the whole message.
func (g *group) first(l Line) {
	it := &g.parts
	if f, ok := l.MessageField("id"); ok {
		it.ID = l.Text(f)
	}
	if f, ok := l.MessageField("model"); ok {
		it.Model = l.Text(f)
	}
	it.Parent, it.Request, it.At = l.Get("parentUuid"), l.Get("requestId"), l.Time()
	it.Summary, it.Meta = l.Flag("isCompactSummary"), l.Flag("isMeta")
	it.APIError, it.SideChain = l.Flag("isApiErrorMessage"), l.Flag("isSidechain")
	it.Agent = l.Get("agentId")
}

// decode reads the content of one line. When one block cannot be read the others still are: a
// broken block must not cost the text beside it.
func (g *group) decode(l Line, r tidemark.Role, content Field) (tidemark.Message, bool) {
	raw := l.Bytes(content)
	msg, err := decodeMessage(r, raw)
	if err == nil {
		return msg, true
	}
	if content.Kind != Array {
		g.fail(l, err)
		return tidemark.Message{}, false
	}
	msg = tidemark.Message{Role: r}
	at := 0
	for f := range l.Members(content) {
		var b tidemark.Block
		if err := b.UnmarshalJSON(l.Bytes(f)); err != nil {
			g.fail(l, fmt.Errorf("block %d is left out: %w", at, err))
		} else {
			msg.Content = append(msg.Content, b)
		}
		at++
	}
	return msg, len(msg.Content) > 0
}

// decodeMessage makes a message of role and content alone: the fields beside them are none of it.
func decodeMessage(r tidemark.Role, content []byte) (tidemark.Message, error) {
	data := make([]byte, 0, len(content)+40)
	data = append(data, `{"role":`...)
	data = json.AppendString(data, string(r))
	data = append(data, `,"content":`...)
	data = append(data, content...)
	data = append(data, '}')
	var m tidemark.Message
	err := m.UnmarshalJSON(data)
	return m, err
}

// addUsage takes the figures that a line reports over those of the lines before it.
func (g *group) addUsage(l Line, usage Field) {
	for f := range l.Members(usage) {
		n, ok := l.count(f)
		if !ok {
			continue
		}
		switch f.Name {
		case "input_tokens":
			g.usage.Input = n
		case "output_tokens":
			g.usage.Output = n
		case "cache_read_input_tokens":
			g.usage.CacheRead = n
		case "cache_creation_input_tokens":
			g.usage.CacheCreation = n
		default:
			continue
		}
		g.called = true
	}
}

// count reads a whole number that is not negative; others are no figure.
func (l Line) count(f Field) (tidemark.Tokens, bool) {
	if f.Kind != Number || f.Size() > 20 {
		return 0, false
	}
	n, err := strconv.ParseInt(string(l.Bytes(f)), 10, 64)
	return tidemark.Tokens(n), err == nil && n >= 0
}

// item returns the message, nil when none of its lines could be read or it is too large.
func (g *group) item() *Item {
	if g.lines == 0 || g.over {
		return nil
	}
	it := g.parts
	it.Message = g.bare
	if g.lines > 1 {
		it.Message = tidemark.Message{Role: g.bare.Role, Content: g.blocks}
	}
	if g.called {
		u := g.usage
		it.Usage = &u
	}
	return &it
}
