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

func TestRandom(t *testing.T) {
	m := maker{rng: rand.New(rand.NewPCG(1, 2))}
	changed := 0
	for n := range 20_000 {
		d := Dialect(n % 2)
		r := scanned(t, d, m.body(d))
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
			markers(raw)
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
			trim := Trimmed(r, Change{}, nil)
			got, err := r.Apply(Change{Trim: trim})
			if err != nil || !json.Valid(got) {
				t.Fatalf("trimmed: %q, %v", got, err)
			}
			after := scanned(t, d, string(got))
			if len(after.Tools) != len(r.Tools) || len(after.Items) != len(r.Items) {
				t.Fatalf("trimmed: %q", got)
			}
		}
	})
}
