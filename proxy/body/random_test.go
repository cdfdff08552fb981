package body

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// maker makes random requests with odd white space, and random changes of them.
type maker struct {
	rng *rand.Rand
	n   int
}

func (m *maker) space() string {
	return []string{"", "", " ", "\n", "\t  "}[m.rng.IntN(5)]
}

func (m *maker) word() string {
	m.n++
	return fmt.Sprintf(`%s%d`, []string{"a", `é`, `\u00e9`, `\n`, `\\`, `<b>`, `😀`}[m.rng.IntN(7)], m.n)
}

// object joins members in random order with random white space.
func (m *maker) object(members ...string) string {
	m.rng.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return "{" + m.space() + strings.Join(members, m.space()+","+m.space()) + m.space() + "}"
}

func (m *maker) list(elements []string) string {
	return "[" + m.space() + strings.Join(elements, m.space()+","+m.space()) + m.space() + "]"
}

func (m *maker) some(members ...string) []string {
	if m.rng.IntN(4) == 0 {
		members = append(members, mark)
	}
	if m.rng.IntN(4) == 0 {
		members = append(members, fmt.Sprintf(`"x%d":%d.0`, m.n, m.n))
	}
	return members
}

func (m *maker) content(role tidemark.Role) string {
	if m.rng.IntN(4) == 0 {
		return `"` + m.word() + `"`
	}
	blocks := make([]string, 1+m.rng.IntN(4))
	for n := range blocks {
		switch k := m.rng.IntN(4); {
		case k == 0 && role == tidemark.Assistant:
			blocks[n] = m.object(`"type":"thinking"`, `"thinking":"`+m.word()+`"`, `"signature":"s"`)
		case k == 1 && role == tidemark.Assistant:
			blocks[n] = m.object(m.some(`"type":"tool_use"`, `"id":"`+m.word()+`"`, `"name":"n"`, `"input":{"cache_control":{ }}`)...)
		case k == 2 && m.rng.IntN(2) == 0:
			blocks[n] = m.unknownBlock()
		case k == 1:
			blocks[n] = m.object(m.some(`"type":"tool_result"`, `"tool_use_id":"`+m.word()+`"`, `"content":`+m.list([]string{textJSON(m.word())}))...)
		default:
			blocks[n] = m.object(m.some(`"type":"text"`, `"text":"`+m.word()+`"`)...)
		}
	}
	if role == tidemark.Assistant && m.rng.IntN(4) == 0 {
		blocks = append(blocks, `{"type":"server_tool_use","id":"`+m.word()+`"}`)
	}
	return m.list(blocks)
}

// unknownBlock is a block that nobody here knows.
func (m *maker) unknownBlock() string {
	return []string{
		m.object(m.some(`"type":"container_upload"`, `"file_id":"`+m.word()+`"`)...),
		m.object(`"text":"`+m.word()+`"`, `"input":7`),
		m.object(`"type":`+m.list([]string{`"text"`}), `"x":"`+m.word()+`"`),
		m.object(m.some(`"type":"text"`, `"text":{"x":"`+m.word()+`"}`)...),
		`"` + m.word() + `"`, `null`, `1.0`,
	}[m.rng.IntN(7)]
}

// unknownMessage is a message that nobody here knows.
func (m *maker) unknownMessage() string {
	role := []string{`"role":"function"`, `"role":"` + m.word() + `"`, `"role":7`, `"x":1.0`, `"role":"user"`, `"role":"assistant"`}[m.rng.IntN(6)]
	switch m.rng.IntN(6) {
	case 0:
		return m.object(role, `"content":null`)
	case 1:
		return m.object(role, `"content":{"parts":["`+m.word()+`"]}`)
	case 2:
		return m.object(role, `"name":"`+m.word()+`"`)
	case 3:
		return `"` + m.word() + `"`
	}
	return m.object(role, `"content":`+m.content(tidemark.User))
}

func (m *maker) messages() string {
	out := make([]string, m.rng.IntN(8))
	turn := 0
	for n := range out {
		role := []tidemark.Role{tidemark.User, tidemark.Assistant}[(turn+m.rng.IntN(5)/4)%2]
		switch k := m.rng.IntN(16); {
		case k == 0:
			out[n] = m.unknownMessage()
			continue
		case n > 0 && (turn%2 == 1 || strings.Contains(out[n-1], "server_tool_use")) && k < 6: // where the API takes one
			content := []string{m.content(tidemark.User), `"` + m.word() + `"`, m.list(nil)}[m.rng.IntN(3)]
			members := []string{`"role":"system"`, `"content":` + content, fmt.Sprintf(`"output_config":{"y%d":1.0}`, m.n)}
			out[n] = m.object(members[:2+m.rng.IntN(4)/3]...)
			continue
		}
		turn++
		members := []string{`"role":"` + string(role) + `"`, `"content":` + m.content(role)}
		if m.rng.IntN(3) == 0 {
			members = append(members, fmt.Sprintf(`"y%d":null`, m.n))
		}
		out[n] = m.object(members...)
	}
	return m.list(out)
}

func (m *maker) chat() string {
	out := make([]string, m.rng.IntN(7))
	for n := range out {
		if m.rng.IntN(10) == 0 {
			out[n] = m.unknownMessage()
			continue
		}
		members := []string{`"y` + m.word() + `":1.0`}
		switch m.rng.IntN(4) {
		case 0:
			members = append(members, `"role":"system"`, `"content":"`+m.word()+`"`)
		case 1:
			members = append(members, `"role":"tool"`, `"content":"`+m.word()+`"`, `"tool_call_id":"`+m.word()+`"`)
		case 2:
			members = append(members, `"role":"assistant"`, []string{`"content":null`, `"content":"` + m.word() + `"`}[m.rng.IntN(2)])
			calls := make([]string, m.rng.IntN(3))
			for k := range calls {
				calls[k] = m.object(`"id":"`+m.word()+`"`, `"type":"function"`, `"function":`+m.object(`"name":"n"`, `"arguments":"{\"a\": 1.0}"`))
				if m.rng.IntN(8) == 0 {
					calls[k] = []string{m.object(`"id":"`+m.word()+`"`, `"type":"mcp_call"`), `null`, m.object(`"function":"` + m.word() + `"`)}[m.rng.IntN(3)]
				}
			}
			if len(calls) > 0 {
				members = append(members, `"tool_calls":`+m.list(calls))
			}
		default:
			content := `"` + m.word() + `"`
			if m.rng.IntN(2) == 0 {
				content = m.list([]string{textJSON(m.word()), m.object(`"type":"image_url"`, `"image_url":{"url":"u`+m.word()+`"}`)})
			}
			members = append(members, `"role":"user"`, `"content":`+content)
		}
		out[n] = m.object(members...)
	}
	return m.list(out)
}

func (m *maker) body(d Dialect) string {
	m.n = 0
	members := []string{`"model":"m"`, `"z":[1e3, 1.0]`}
	if d == Chat {
		members = append(members, `"messages":`+m.chat())
	} else {
		members = append(members, `"messages":`+m.messages(), `"system":[{"type":"text","text":"s",`+mark+`}]`)
	}
	if m.rng.IntN(2) == 0 {
		members = append(members, `"tools":`+m.list([]string{m.object(m.some(`"name":"t"`)...), `{"name":"u"}`, `{"type":"mcp_toolset","mcp_server_name":"s"}`, `7`}[:m.rng.IntN(5)]))
	} else if m.rng.IntN(8) == 0 {
		members = append(members, `"tools":{"name":"t"}`)
	}
	for _, unknown := range []string{`"container":{"id":"c"}`, `"mcp_servers":[{"url":"u"}]`, `"context_management":{"edits":[]}`, `"output_config":{"effort":"high"}`, `"model":{"id":1}`} {
		if m.rng.IntN(6) == 0 && (unknown[:8] != `"model":` || len(members) == 0) {
			members = append(members, unknown)
		}
	}
	return m.space() + m.object(members...) + m.space()
}

// change makes a change that fits, with blocks that say NEW. It tells which items it touches.
func (m *maker) change(r *Request) (c Change, touched map[int]bool) {
	touched = map[int]bool{}
	for i, it := range r.Items {
		switch k := m.rng.IntN(8); {
		case k == 0 && it.Blocks() > 0:
			n := m.rng.IntN(it.Blocks())
			if typeOf(it.Block(n)) == tidemark.TypeServerToolUse {
				break // no strategy changes one
			}
			raw := []byte(`{"type":"text","text":"NEW",` + mark + `}`)
			switch it.kind(n) {
			case result:
				raw = []byte(`{"type":"tool_result","tool_use_id":"NEW","content":[{"type":"text","text":"NEW",` + mark + `}]}`)
			case call:
				raw = []byte(`{"type":"tool_use","id":"NEW","name":"n","input":{"NEW":1}}`)
			}
			if it.Blocks() > 1 && m.rng.IntN(2) == 0 {
				raw = nil
			}
			c.Blocks = append(c.Blocks, BlockChange{i, n, raw})
			touched[i] = touched[i] || !it.fixed
		case k == 1 && it.Role == tidemark.Assistant:
			visible := 0
			for n := range it.Blocks() {
				if it.kind(n) != thinking {
					visible++
				}
			}
			in := Insert{Item: i, Visible: m.rng.IntN(visible + 1), Thinking: m.rng.IntN(2), Calls: list(call1), Results: list(res1), Split: m.rng.IntN(2) == 0}
			c.Inserts = append(c.Inserts, in)
			touched[i] = touched[i] || !it.fixed
		case k == 2:
			to := min(len(r.Items)-1, i+m.rng.IntN(3))
			if len(c.Spans) > 0 && c.Spans[len(c.Spans)-1].To >= i {
				break
			}
			s := SpanChange{From: i, To: to}
			if m.rng.IntN(3) > 0 {
				s.Messages = list(`{"role":"user","content":"NEW"}`)
			}
			for n := i; n <= to; n++ {
				if r.Items[n].Role == tidemark.System {
					s.Keep = append(s.Keep, n)
				} else {
					touched[n] = true
				}
			}
			c.Spans = append(c.Spans, s)
		}
	}
	for _, in := range c.Inserts { // its results go to the message behind it, where that is one of the user
		next := in.Item + 1
		for _, s := range c.Spans {
			if s.From == next && len(s.Messages)+len(s.Keep) == 0 {
				next = s.To + 1
			}
		}
		if !in.Split && next < len(r.Items) && r.Items[next].Role == tidemark.User {
			touched[next] = true
		}
	}
	if m.rng.IntN(3) == 0 && !r.closed {
		c.Tools = list(`{"name":"NEW","input_schema":{}}`)
	}
	if m.rng.IntN(3) == 0 {
		c.Append = list(`{"role":"assistant","content":[`+call2+`]}`, `{"role":"user","content":[`+res2+`]}`)
	}
	if m.rng.IntN(3) == 0 {
		c.Note, touched[-1] = "NEW", true
	}
	return c, touched
}

// law checks what holds of each request that was changed.
func law(t *testing.T, r *Request, c Change, touched map[int]bool) {
	t.Helper()
	got, err := r.Apply(c)
	if err != nil {
		if !strings.Contains(err.Error(), "no block is left") {
			t.Fatalf("%s\n%+v: %v", r.raw, c, err)
		}
		return
	}
	if !json.Valid(got) {
		t.Fatalf("%s\n%+v\nno JSON: %s", r.raw, c, got)
	}
	after, err := Scan(r.Dialect, got)
	if err != nil {
		t.Fatalf("%s\n%+v\n%s: %v", r.raw, c, got, err)
	}
	if Markers(got) > Markers(r.raw) {
		t.Fatalf("more markers than %d: %s\n%+v\n%s", Markers(r.raw), r.raw, c, got)
	}
	itemsStay(t, r, c, touched, got)
	blocksStay(t, r, c, got)
	if r.Dialect == Messages && len(c.Append) == 0 && astray(r.Items) == 0 && astray(after.Items) > 0 {
		t.Fatalf("a system message stands where the API takes none\n%s\n%+v\n%s", r.raw, c, got)
	}
	// All around the messages and tools stays.
	for _, piece := range r.around() {
		if !bytes.Contains(got, piece) {
			t.Fatalf("%q is gone\n%s\n%s", piece, r.raw, got)
		}
	}
	for n, tool := range r.Tools {
		if !bytes.Equal(after.Tools[n].Raw, tool.Raw) {
			t.Fatalf("tool %d is %s", n, after.Tools[n].Raw)
		}
	}
	if len(after.Tools) != len(r.Tools)+len(c.Tools) {
		t.Fatalf("%d tools of %d", len(after.Tools), len(r.Tools))
	}
}

// itemsStay checks that items that nothing touched stand in order, byte for byte, and so do system messages among themselves:
// where their neighbours leave they move, and then their blocks may stand in another one. A note touches one more.
func itemsStay(t *testing.T, r *Request, c Change, touched map[int]bool, got []byte) {
	t.Helper()
	sort := func(it Item) int {
		switch {
		case it.Role != tidemark.System || it.fixed:
			return 0
		case it.Blocks() == 0 || it.silent(): // its place does not count
			return 1
		}
		return 2
	}
	noted := notedItem(t, r, c)
	for kind := range 3 {
		rest := got
		for i, it := range r.Items {
			if touched[i] || sort(it) != kind || i == noted {
				continue
			}
			raw := r.source(i)
			at := bytes.Index(rest, raw)
			if at >= 0 {
				rest = rest[at+len(raw):]
				continue
			}
			if kind != 2 || len(c.Spans) == 0 || !joined(it, got) {
				t.Fatalf("item %d %s is gone\n%s\n%+v\n%s", i, raw, r.raw, c, got)
			}
		}
	}
}

// joined reports whether all blocks of a system message stand in what goes out.
func joined(it Item, got []byte) bool {
	for n := range it.Blocks() {
		raw := it.Block(n)
		if it.bare {
			raw = it.content.of(it.Raw)
		}
		if !bytes.Contains(got, raw) {
			return false
		}
	}
	return true
}

// notedItem is the item that the note of a change goes into, -1 for none of the client's: that is the last that may have
// one of what goes out without the note.
func notedItem(t *testing.T, r *Request, c Change) int {
	t.Helper()
	if c.Note == "" {
		return -1
	}
	c.Note, c.Append = "", nil
	plan, err := r.plan(c)
	if err != nil {
		t.Fatal(err)
	}
	for n := len(plan) - 1; n >= 0; n-- {
		o := &plan[n]
		if o.item >= 0 && r.Items[o.item].fixed || o.role == tidemark.Assistant {
			continue
		}
		if o.role == tidemark.User || o.role == tidemark.System && (o.item < 0 || r.Items[o.item].Blocks() > 0 && !r.Items[o.item].silent()) {
			return o.item
		}
	}
	return -1
}

// astray counts system messages that stand where the API takes none, and those that are two in a row.
func astray(items []Item) (n int) {
	system := func(i int) bool { return items[i].Role == tidemark.System && !items[i].fixed }
	words := func(i int) bool { return system(i) && items[i].Blocks() > 0 && !items[i].silent() }
	for i := range items {
		if !words(i) {
			continue
		}
		before, behind := i-1, i+1
		for before >= 0 && system(before) && !words(before) {
			before--
		}
		for behind < len(items) && system(behind) {
			behind++
		}
		if before < 0 || !takes(items[before]) || behind < len(items) && items[behind].Role != tidemark.Assistant {
			n++
		}
	}
	return n
}

// takes is [tidemark.Message.TakesSystem] of an item.
func takes(it Item) bool {
	m := tidemark.Message{Role: it.Role}
	for n := range it.Blocks() {
		var b struct{ Type any }
		_ = json.Unmarshal(it.Block(n), &b) // what is no object has no type
		kind, _ := b.Type.(string)
		m.Content = append(m.Content, tidemark.Block{Type: kind})
	}
	return m.TakesSystem()
}

// blocksStay checks the blocks that nothing touched of items that something did. One that was given a marker has it
// at its end.
func blocksStay(t *testing.T, r *Request, c Change, got []byte) {
	t.Helper()
	if r.Dialect == Chat {
		return
	}
	hidden := c.hidden()
	for i, it := range r.Items {
		for n := range it.Blocks() {
			raw := bytes.TrimSuffix(it.Block(n), []byte("}"))
			if it.bare {
				raw = it.content.of(it.Raw)
			}
			if !hidden(i, n) && !it.silent() && !bytes.Contains(got, raw) {
				t.Fatalf("block %d of item %d %s is gone\n%s\n%+v\n%s", n, i, raw, r.raw, c, got)
			}
		}
	}
}

// source is an item as it stands in the body.
func (r *Request) source(i int) []byte {
	if r.Dialect == Messages {
		return r.at[i].of(r.raw)
	}
	ci := r.chatItems[i]
	return r.raw[r.chat[ci.first].at.from:r.chat[ci.last].at.to]
}

// around is what stands before, between and behind the lists of messages and of tools.
func (r *Request) around() [][]byte {
	a, b := r.list, r.tools
	switch {
	case b.to == 0:
		return [][]byte{r.raw[:r.before], r.raw[r.before:a.from], r.raw[a.to:]}
	case b.from < a.from:
		a, b = b, a
	}
	return [][]byte{r.raw[:a.from], r.raw[a.to:b.from], r.raw[b.to:]}
}

func TestRandom(t *testing.T) {
	m := maker{rng: rand.New(rand.NewPCG(1, 2))}
	changed := 0
	for n := range 20_000 {
		d := Dialect(n % 2)
		r := scan(t, d, m.body(d))
		if same, err := r.Apply(Change{}); err != nil || !bytes.Equal(same, r.raw) {
			t.Fatalf("without a change %s is %s, %v", r.raw, same, err)
		}
		c, touched := m.change(r)
		if !c.none() {
			changed++
		}
		law(t, r, c, touched)
	}
	if changed < 10_000 {
		t.Errorf("only %d were changed", changed)
	}
}

// seeds are bodies to begin with.
func seeds(f *testing.F) {
	m := maker{rng: rand.New(rand.NewPCG(5, 6))}
	for n := range 40 {
		f.Add([]byte(m.body(Dialect(n%2))), uint64(n))
	}
	f.Add([]byte(`{"messages":[{"role":"user","content":"<system-reminder>skills available\n- a: b\n- a: b</system-reminder>"}]}`), uint64(1))
	f.Add([]byte(`{"tools":[{"name":"a","description":"`+strings.Repeat("b", 300)+`","input_schema":{"type":"object","properties":{"c":{"description":"d"}}}}],"messages":[]}`), uint64(2))
}

// FuzzScan: what is read is JSON, its items are, and no change gives the same bytes.
func FuzzScan(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, raw []byte, _ uint64) {
		for _, d := range []Dialect{Messages, Chat} {
			r, err := Scan(d, raw)
			if err != nil {
				continue
			}
			if !json.Valid(raw) {
				t.Fatalf("read though it is no JSON: %q", raw)
			}
			if same, err := r.Apply(Change{}); err != nil || !bytes.Equal(same, raw) {
				t.Fatalf("without a change: %q, %v", same, err)
			}
			for _, it := range r.Items {
				if !json.Valid(it.Raw) {
					t.Fatalf("an item is no JSON: %q", it.Raw)
				}
				for n := range it.Blocks() {
					if !json.Valid(it.Block(n)) {
						t.Fatalf("a block is no JSON: %q", it.Block(n))
					}
				}
			}
			if got := scan(t, d, string(raw)).First(); got != r.First() {
				t.Fatalf("the first is %q and %q", got, r.First())
			}
			Markers(raw)
		}
	})
}

// FuzzApply: the laws of a change hold, and those of a trim.
func FuzzApply(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, raw []byte, seed uint64) {
		for _, d := range []Dialect{Messages, Chat} {
			r, err := Scan(d, raw)
			if err != nil {
				continue
			}
			m := maker{rng: rand.New(rand.NewPCG(seed, 7))}
			c, touched := m.change(r)
			law(t, r, c, touched)
			trim := Trimmed(r, Change{}, nil, nil)
			got, err := r.Apply(Change{Trim: trim})
			if err != nil || !json.Valid(got) {
				t.Fatalf("trimmed: %q, %v", got, err)
			}
			after := scan(t, d, string(got))
			if len(after.Tools) != len(r.Tools) || len(after.Items) != len(r.Items) {
				t.Fatalf("trimmed: %q", got)
			}
		}
	})
}
