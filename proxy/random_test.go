package proxy_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/proxy"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestRandomClients: whatever clients do (edit, rewind, ask again, branch, leave) and whatever the model does (our tools
// alone and among others, tags that fit and that do not), each request that is sent keeps the API's rules, has in it each
// message of the client's as it is or as a stub, and a replay of the log decides as was decided.
func TestRandomClients(t *testing.T) {
	for seed := range uint64(tidemarktest.Rounds(8)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			if c := play(t, seed, 80); c.stubs == 0 || c.phantoms == 0 {
				t.Errorf("%d stubs, %d calls of ours: the client did too little", c.stubs, c.phantoms)
			}
		})
	}
}

// FuzzClients plays further ones.
func FuzzClients(f *testing.F) {
	f.Add(uint64(100))
	f.Fuzz(func(t *testing.T, seed uint64) { play(t, seed, 60) })
}

func play(t *testing.T, seed uint64, acts int) *client {
	c := &client{t: t, r: newRig(t, proxy.Settings{Window: 12_000}), rand: rand.New(rand.NewPCG(seed, 7)), among: seed%2 == 1}
	c.turn("begin")
	for range acts {
		c.act()
	}
	same(t, c.r)
	return c
}

// client is one that does anything.
type client struct {
	t       *testing.T
	r       *rig
	rand    *rand.Rand
	history []string
	others  [][]string // histories that it may go back to
	n       int
	handles []string // that it saw upstream
	among   bool     // others speak between the messages, and
	rules   []string // what they say is to be heard

	stubs, phantoms int
}

func (c *client) turn(s string) {
	c.history = append(c.history, text("user", s+strings.Repeat(" word", c.rand.IntN(80))))
}

func (c *client) act() {
	switch c.rand.IntN(14) {
	case 0:
		c.r.restart()
	case 1: // rewind to any message of a person
		var at []int
		for i, m := range c.history {
			if strings.HasPrefix(m, `{"role":"user","content":"`) {
				at = append(at, i)
			}
		}
		c.others = append(c.others, c.history)
		c.history = append([]string(nil), c.history[:at[c.rand.IntN(len(at))]]...)
		c.turn(fmt.Sprint("instead ", c.n))
	case 2: // another thread goes on
		if len(c.others) > 0 {
			i := c.rand.IntN(len(c.others))
			c.history, c.others[i] = c.others[i], c.history
		}
	case 3: // the answer was lost: the same again
		c.send(c.answers(true), false)
	case 4: // it leaves in the middle
		x := c.begin()
		x.Answer(c.t.Context(), 200, false)
		_, _ = x.Feed(reply("end_turn", textBlock("half"))[:40])
		x.Broken(c.t.Context(), fmt.Errorf("cut"))
	case 5: // it is refused
		x := c.begin()
		if x.Answer(c.t.Context(), 400+c.rand.IntN(2)*29, false) {
			c.t.Fatal("taken")
		}
		x.Broken(c.t.Context(), nil)
	default:
		c.send(c.answers(c.rand.IntN(5) == 0), true)
	}
}

// answers are what the model says: any number of calls of ours, and at last a text or calls of the client's tools.
func (c *client) answers(end bool) (out [][]byte) {
	for c.rand.IntN(4) == 0 && len(out) < 4 {
		blocks := []string{}
		if c.rand.IntN(2) == 0 {
			blocks = append(blocks, textBlock(fmt.Sprint("thinking aloud ", c.n)))
		}
		out = append(out, reply("tool_use", append(blocks, c.ours())...))
	}
	c.n++
	var blocks []string
	if c.rand.IntN(2) == 0 {
		blocks = append(blocks, thought)
	}
	if end || c.rand.IntN(2) == 0 {
		s := fmt.Sprint("so ", c.n, strings.Repeat(" much", c.rand.IntN(60)))
		if c.rand.IntN(2) == 0 {
			s += "\n" + c.tag()
		}
		blocks = append(blocks, textBlock(s))
	}
	stop := "end_turn"
	if !end {
		stop = "tool_use"
		for range 1 + c.rand.IntN(3) {
			c.n++
			if c.rand.IntN(4) == 0 {
				blocks = append(blocks, c.ours())
			}
			blocks = append(blocks, call(fmt.Sprint("c", c.n), []string{"Read", "Bash", "Edit"}[c.rand.IntN(3)], fmt.Sprintf(`{"file_path":"f%d.go","command":"x"}`, c.rand.IntN(12))))
		}
	}
	return append(out, reply(stop, blocks...))
}

// ours is a call of a tool of ours.
func (c *client) ours() string {
	c.n++
	c.phantoms++
	return call(fmt.Sprint("p", c.n), []string{paging.FaultTool, paging.ReleaseTool}[c.rand.IntN(2)], fmt.Sprintf(`{"paths":[%q]}`, c.name()))
}

func (c *client) name() string {
	if len(c.handles) > 0 && c.rand.IntN(2) == 0 {
		return c.handles[c.rand.IntN(len(c.handles))]
	}
	return fmt.Sprintf("f%d.go", c.rand.IntN(12))
}

func (c *client) tag() string {
	from := 1 + c.rand.IntN(3)
	ops := []string{"release: " + c.name(), "anchor: block:" + c.name(), "drop: block:" + c.name(), `summarize: block:` + c.name() + ` "short"`,
		fmt.Sprintf(`collapse: turns %d-%d "what came of it"`, from, from+c.rand.IntN(3))}
	return "<memory_cleanup>\n" + ops[c.rand.IntN(len(ops))] + "\n</memory_cleanup>"
}

// body is the history in one of its forms: without thinking of earlier replies, with reminders here and there.
func (c *client) body() []byte {
	out := slices.Clone(c.history)
	for i, raw := range out {
		switch {
		case i < len(out)-2 && c.rand.IntN(3) == 0:
			out[i] = strings.Replace(raw, thought+",", "", 1)
		case strings.HasPrefix(raw, `{"role":"user","content":[`) && c.rand.IntN(4) == 0:
			out[i] = raw[:len(raw)-2] + "," + textBlock("<system-reminder>it is now</system-reminder>") + "]}"
		}
	}
	if c.among {
		out = among(out)
	}
	c.rules = rules(out)
	return request(out...)
}

const thought = `{"type":"thinking","thinking":"hm","signature":"c2ln"}`

func (c *client) begin() *proxy.Exchange {
	x, err := c.r.c.Begin(c.t.Context(), proxy.Ask{Body: c.body()})
	if err != nil {
		c.t.Fatal(err)
	}
	return x
}

// send makes a request and takes the answer into the history, if the client got it.
func (c *client) send(answers [][]byte, got bool) {
	e := c.r.exchange(proxy.Page, c.body(), answers...)
	for leg := range e.sent {
		m := e.messages(c.t, leg)
		if err := tidemark.Check(m); err != nil {
			c.t.Fatalf("call %d: %v\n%s", leg, err, e.sent[leg])
		}
	}
	for _, rule := range c.rules {
		if !bytes.Contains(e.sent[0], []byte(rule)) {
			c.t.Fatalf("%s: it is not sent: %s", rule, e.sent[0])
		}
	}
	noteIsLast(c.t, e, "[Context")
	c.compare(e.messages(c.t, 0))
	if bytes.Contains(e.got, []byte("memory_fault")) || bytes.Contains(e.got, []byte("memory_release")) || bytes.Contains(e.got, []byte("memory_cleanup")) {
		c.t.Fatalf("the client got %s", e.got)
	}
	if !got {
		return
	}
	var a struct {
		Content []tidemark.Block `json:"content"`
	}
	if err := json.Unmarshal(e.got, &a); err != nil {
		c.t.Fatal(err)
	}
	if len(a.Content) == 0 {
		c.turn("and?")
		return
	}
	m := tidemark.Message{Role: tidemark.Assistant, Content: a.Content}
	c.history = append(c.history, string(m.AppendJSON(nil)))
	var results []string
	for _, id := range m.Calls() {
		results = append(results, string(json.AppendString(fmt.Appendf(nil, `{"type":"tool_result","tool_use_id":%q,"content":`, id), strings.Repeat("line of "+id+"\n", 20+c.rand.IntN(200))))+"}")
	}
	if len(results) > 0 {
		c.history = append(c.history, `{"role":"user","content":[`+strings.Join(results, ",")+`]}`)
		return
	}
	c.turn(fmt.Sprint("go on ", c.n))
}

// compare looks at each result that was sent: it is the client's own, or a note that names a handle.
func (c *client) compare(sent []tidemark.Message) {
	own, files := map[string]string{}, map[string]string{}
	for _, raw := range c.history {
		var m tidemark.Message
		if err := json.Unmarshal([]byte(raw), &m); err != nil {
			c.t.Fatal(err)
		}
		for _, b := range m.Content {
			switch b.Type {
			case tidemark.TypeToolResult:
				own[b.ToolUseID] = string(b.AppendJSON(nil))
			case tidemark.TypeToolUse:
				var in struct {
					Path string `json:"file_path"`
				}
				_ = json.Unmarshal(b.Input, &in)
				files[b.ID] = b.Name + " " + in.Path + " "
			}
		}
	}
	for _, m := range sent {
		for _, b := range m.Content {
			if b.Type != tidemark.TypeToolResult || own[b.ToolUseID] == "" || own[b.ToolUseID] == string(b.AppendJSON(nil)) {
				continue
			}
			said := b.Content[0].Text
			at := strings.Index(said, `["`)
			if at < 0 || !strings.Contains(said, paging.FaultTool) {
				c.t.Fatalf("the result of %s is sent as %s", b.ToolUseID, said)
			}
			if strings.HasPrefix(said, "[Paged out: ") && !strings.HasPrefix(said, "[Paged out: "+files[b.ToolUseID]) {
				c.t.Fatalf("the result of %s, %s, is sent as %s", b.ToolUseID, files[b.ToolUseID], said)
			}
			c.stubs++
			if h, _, ok := strings.Cut(said[at+2:], `"`); ok {
				c.handles = append(c.handles, h)
			}
		}
	}
}
