package toolbox

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/approval"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/proxy/body"
)

var _ tidemark.Toolbox = (*Box)(nil)

// Box is the tools of all sources. Make it with [New]; its methods may be called at once.
type Box struct {
	Config
	sources []*source

	mu     sync.Mutex // guards the following
	offers map[tidemark.Key]*offer
	order  []tidemark.Key // of offers, oldest first

	refused map[string]refusal // by public name
}

// offer is what a conversation was last told of tools, by their public names.
type offer map[string][32]byte

// New makes a box. It asks no source for anything.
func New(c Config) *Box {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.SchemaTokens = cmp.Or(c.SchemaTokens, DefaultSchemaTokens)
	b := &Box{Config: c, offers: map[tidemark.Key]*offer{}}
	for _, s := range c.Servers {
		b.sources = append(b.sources, newSource(s, c.Runtime))
	}
	slices.SortStableFunc(b.sources, func(a, b *source) int { return strings.Compare(a.Name, b.Name) })
	return b
}

// entry is a tool of the table.
type entry struct {
	tool
	public string
	from   *source
}

// definition is the tool as it is offered, stubbed or whole.
func (e entry) definition(stubbed bool) tidemark.Tool {
	t := e.Tool
	if stubbed {
		t = e.short
	}
	t.Name = e.public
	return t
}

// table is what the sources have now, by public name, in one order: sources by name, of each the tools by name.
func (b *Box) table() []entry {
	taken := map[string]bool{helpName: true}
	for _, name := range b.Reserved {
		taken[name] = true
	}
	var out []entry
	for _, s := range b.sources {
		tools, _ := s.known()
		for _, t := range tools {
			if len(out) >= maxAll {
				return out
			}
			name := publicName(s.Name, t.Name, func(n string) bool { return taken[n] })
			taken[name] = true
			out = append(out, entry{t, name, s})
		}
	}
	return out
}

// allowed reports whether a scope may use a tool, by its public name.
func (b *Box) allowed(scope tidemark.Scope, name string) bool {
	globs, limited := b.Agents[scope.Agent]
	return (!limited || approval.Any(globs, name)) && (scope.Owner || approval.Any(b.Peers, name))
}

// mayUse is the part of the table that a scope may use.
func (b *Box) mayUse(scope tidemark.Scope) []entry {
	return slices.DeleteFunc(b.table(), func(e entry) bool { return !b.allowed(scope, e.public) })
}

// none reports a scope that may use nothing whatever there is.
func (b *Box) none(scope tidemark.Scope) bool {
	globs, limited := b.Agents[scope.Agent]
	return len(b.sources) == 0 || limited && len(globs) == 0 || !scope.Owner && len(b.Peers) == 0
}

// refresh has those sources listed that are due, of all or of which, side by side.
func (b *Box) refresh(ctx context.Context, which func(*source) bool) {
	done, n := make(chan struct{}, len(b.sources)), 0
	for _, s := range b.sources {
		if !which(s) {
			continue
		}
		n++
		b.Runtime.Go(func() {
			defer func() { done <- struct{}{} }()
			s.list(ctx)
		})
	}
	for range n {
		<-done // each ends with ctx
	}
}

// Tools implements [tidemark.Toolbox]. When the definitions are larger than SchemaTokens they are stubs, and
// tool_help gives the whole of one.
func (b *Box) Tools(ctx context.Context, scope tidemark.Scope) (tools []tidemark.Tool, missing []string) {
	if b.none(scope) {
		return nil, nil
	}
	b.refresh(ctx, (*source).due)
	entries := b.offered(b.mayUse(scope))
	stubbed := b.stubbed(entries)
	said := offer{}
	for _, e := range entries {
		t := e.definition(stubbed)
		t.Mark = e.mark()
		tools = append(tools, t)
		said[e.public] = e.hash
	}
	if stubbed {
		tools = append(tools, helpTool())
	}
	for _, s := range b.sources {
		if s.Source == nil { // it will not be there by itself: the state says why
			continue
		}
		if known, err := s.known(); len(known) == 0 && err != nil || !s.was() {
			missing = append(missing, cmp.Or(s.Name, "modules"))
		}
	}
	b.remember(scope.Key, said)
	return tools, missing
}

// mark names the definition of a tool, as its source has it.
func (e entry) mark() string { return hex.EncodeToString(e.hash[:8]) }

// Changed reports whether a tool that a scope may use is another now than it was when it was offered under a mark.
func (b *Box) Changed(ctx context.Context, scope tidemark.Scope, name, mark string) bool {
	b.known(ctx, name)
	for _, e := range b.mayUse(scope) {
		if e.public == name {
			return e.mark() != mark
		}
	}
	return false
}

// was reports whether the source answered once, well or not.
func (s *source) was() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// remember keeps what a conversation was told, of the last thousand of them.
func (b *Box) remember(key tidemark.Key, said offer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.offers[key] == nil {
		if len(b.order) >= maxOffers {
			delete(b.offers, b.order[0])
			b.order = b.order[1:]
		}
		b.order = append(b.order, key)
	}
	b.offers[key] = &said
}

// changed reports whether a tool is another than the conversation was told, and takes it that from now on it knows.
func (b *Box) changed(key tidemark.Key, e entry) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	said := b.offers[key]
	if said == nil {
		return false
	}
	hash, told := (*said)[e.public]
	(*said)[e.public] = e.hash
	return told && hash != e.hash
}

// wasTold reports whether a conversation was offered a tool.
func (b *Box) wasTold(key tidemark.Key, name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	said := b.offers[key]
	if said == nil {
		return false
	}
	_, told := (*said)[name]
	return told
}

// tokens is what definitions take in a request.
func tokens(entries []entry, stubbed bool) tidemark.Tokens {
	chars := 0
	for _, e := range entries {
		if chars += len(e.public) + e.chars; stubbed {
			chars += e.shortChars - e.chars
		}
	}
	return tidemark.EstimateChars(chars)
}

func (b *Box) stubbed(entries []entry) bool { return tokens(entries, false) > b.SchemaTokens }

// encode is a definition as model APIs take it.
func encode(t tidemark.Tool) []byte {
	dst := json.AppendString([]byte(`{"name":`), t.Name)
	dst = json.AppendString(append(dst, `,"description":`...), t.Description)
	dst = append(dst, `,"input_schema":`...)
	return append(append(dst, t.InputSchema...), '}')
}

// stub is a definition in short, or itself where it is short.
func stub(t tidemark.Tool) tidemark.Tool {
	short := struct {
		Description string          `json:"description"`
		Schema      json.RawMessage `json:"input_schema"`
	}{}
	if raw := body.ToolStub(encode(t)); raw == nil || json.Unmarshal(raw, &short) != nil || len(short.Schema) == 0 {
		return t
	}
	t.Description, t.InputSchema = short.Description, short.Schema
	return t
}

// helpName is the tool that gives the whole definition of a stub.
const helpName = "tool_help"

func helpTool() tidemark.Tool {
	return tidemark.Tool{Name: helpName, Idempotent: true,
		Description: "Gives the whole description and input schema of one of your tools. Definitions are shortened here; ask before you use a tool whose arguments are not plain from their names.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string","description":"name of the tool"}},"required":["name"]}`)}
}

// help answers a call of tool_help.
func (b *Box) help(scope tidemark.Scope, call tidemark.Block) tidemark.Block {
	var asked struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(call.Input, &asked); err != nil || asked.Name == "" {
		return failed(call, `tool_help takes {"name": "a tool"}`)
	}
	for _, e := range b.mayUse(scope) {
		if e.public == asked.Name {
			b.changed(scope.Key, e) // it is told now
			return tidemark.ToolResult(call.ID, string(encode(e.definition(false))), false)
		}
	}
	return failed(call, fmt.Sprintf("there is no tool %q", cut(asked.Name, maxName)))
}

func failed(call tidemark.Block, text string) tidemark.Block {
	return tidemark.ToolResult(call.ID, text, true)
}
