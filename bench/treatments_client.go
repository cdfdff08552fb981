package bench

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/sse"
)

// Models of the simulated client.
const (
	largeModel = "claude-opus-4-5"
	smallModel = "claude-haiku-4-5"
)

// simClient is a client that keeps its own history, in the manner of a coding agent at a terminal: a system prompt
// that begins with a billing header, a long list of tools, reminders that come and go, cache markers that move, calls for
// a title, and sub-agents with threads of their own.
type simClient struct {
	ctx       context.Context
	via       http.RoundTripper
	base      string
	treatment string // for the door, "" for none
	clock     *virtualClock
	rng       *rand.Rand
	pauses    *rand.Rand // of its own, so that they are the same however many requests there are
	p         *plan
	disk      map[string]string
	recorded  map[string]string
	tools     []byte
	requests  int
	leaks     int // of ours that it saw
	seen      strings.Builder
	subs      map[string]string
}

func newSimClient(ctx context.Context, p *plan, clock *virtualClock, treatment string, seed uint64) *simClient {
	c := &simClient{ctx: ctx, treatment: treatment, clock: clock, p: p,
		rng: rand.New(rand.NewPCG(seed, 11)), pauses: rand.New(rand.NewPCG(seed, 13)), //nolint:gosec // made to be repeated
		disk: map[string]string{}, recorded: map[string]string{}, subs: map[string]string{}, tools: simTools(18, 60_000)}
	for i, text := range p.files {
		c.disk[fileName(i)] = text
	}
	return c
}

// simTools are definitions of so many tools of so many bytes.
func simTools(n, size int) []byte {
	names := []string{"Read", "Bash", "Grep", "Edit", "Write", "Task", "Glob", "LS", "MultiEdit", "NotebookRead", "NotebookEdit", "WebFetch", "WebSearch",
		"TodoWrite", "ExitPlanMode", "BashOutput", "KillBash", "SlashCommand"}
	fields := map[string]string{"Read": "file_path,offset,limit", "Bash": "command,description,timeout", "Grep": "pattern,path,glob", "Edit": "file_path,old_string,new_string",
		"Write": "file_path,content", "Task": "description,prompt,subagent_type"}
	list := make([]string, n)
	for i := range n {
		name := names[i%len(names)]
		var args []string
		for f := range strings.SplitSeq(cmp.Or(fields[name], "path,value"), ",") {
			args = append(args, fmt.Sprintf(`"%s":{"type":"string","description":"%s"}`, f, strings.TrimSpace(strings.Repeat("Says which "+f+" is meant. ", 6))))
		}
		text := fmt.Sprintf("%s works on the tide tables of the pier.\\nUsage:\\n", name)
		for len(text) < size/n-600 {
			text += fmt.Sprintf("- Rule %d of %s: give it what it asks for and look at what comes back.\\n", len(text), name)
		}
		list[i] = fmt.Sprintf(`{"name":"%s","description":"%s","input_schema":{"type":"object","properties":{%s},"required":["%s"],"additionalProperties":false}}`,
			name, text, strings.Join(args, ","), strings.Split(cmp.Or(fields[name], "path,value"), ",")[0])
	}
	return []byte("[" + strings.Join(list, ",") + "]")
}

// thread is one thread of the client.
type thread struct {
	messages [][]json.RawMessage // blocks, the first message being the user's
	system   string
}

// order is the first message of a thread, with the reminders that clients put before what was typed.
func (c *simClient) order(text string) []json.RawMessage {
	var skills strings.Builder
	for i := range 30 {
		fmt.Fprintf(&skills, "- pier:skill-%d: reads gauge %d and compares it with the tables of the year\n", i, i)
	}
	reminder := func(s string) json.RawMessage { return textOf("<system-reminder>\n" + s + "</system-reminder>") }
	list := "The following skills are available for use:\n" + skills.String()
	return []json.RawMessage{reminder("As you answer, you can use this context:\n# currentDate\nToday is a day of the trial.\n" + list),
		reminder(list), textOf(text)}
}

func textOf(s string) json.RawMessage {
	raw, _ := json.Marshal(s)
	return json.RawMessage(`{"type":"text","text":` + string(raw) + `}`)
}

func (c *simClient) body(t *thread, stream bool) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"model":"%s","max_tokens":8000,"stream":%t,"metadata":{"user_id":"user_trial_account__session_%s"},"system":[`, largeModel, stream, cmp.Or(c.treatment, "none"))
	fmt.Fprintf(&b, `{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1.9; cch=%08x;"},`, c.rng.Uint32())
	fmt.Fprintf(&b, `{"type":"text","text":"%s"%s},{"type":"text","text":"%s"%s}],"tools":%s,"messages":[`, "You are an agent at a terminal.", cacheMark,
		t.system+strings.Repeat(" Look before you write, and say what you saw.", 220), cacheMark, c.tools)
	for i, blocks := range t.messages {
		role := "user"
		if i%2 == 1 {
			role = "assistant"
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"role":"%s","content":[`, role)
		newest := i == len(t.messages)-1
		for n, block := range blocks {
			if n > 0 {
				b.WriteByte(',')
			}
			if n == len(blocks)-1 && role == "user" && i >= len(t.messages)-3 { // the markers move with the end
				block = append(append(block[:len(block)-1:len(block)-1], cacheMark...), '}')
			}
			b.Write(block)
		}
		if newest && c.rng.IntN(4) == 0 { // it is gone with the next request
			b.WriteByte(',')
			b.Write(textOf(fmt.Sprintf("<system-reminder>\nThe list of things to do has not been used for %d requests.\n</system-reminder>", c.requests%9)))
		}
		b.WriteString("]}")
	}
	b.WriteString("]}")
	return b.Bytes()
}

// ask sends the history and appends the answer, whose calls it returns.
func (c *simClient) ask(t *thread) (answer []tidemark.Block, err error) {
	c.clock.now = c.clock.now.Add(time.Duration(4+c.rng.IntN(20)) * time.Second)
	raw, err := c.post(c.body(t, true))
	if err != nil {
		return nil, err
	}
	answer, err = readStream(raw)
	if err != nil {
		return nil, err
	}
	var blocks []json.RawMessage
	for _, b := range answer {
		if strings.HasPrefix(b.Name, "memory_") || strings.Contains(b.Text, cleanupTag) {
			c.leaks++
		}
		c.seen.WriteString(squeezed(b.Text + b.Name + string(b.Input)))
		blocks = append(blocks, b.AppendJSON(nil))
	}
	if len(blocks) == 0 {
		return nil, fmt.Errorf("an answer without content: %w", tidemark.ErrInvalid)
	}
	t.messages = append(t.messages, blocks)
	return answer, nil
}

// post sends a request.
func (c *simClient) post(body []byte) ([]byte, error) {
	c.requests++
	req, err := http.NewRequestWithContext(c.ctx, http.MethodPost, c.base+"/v1/messages", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Api-Key", "sk-trial")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	if c.treatment != "" {
		req.Header.Set("X-Tidemark-Mode", c.treatment)
	}
	res, err := c.via.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("request %d: status %d: %.300s: %w", c.requests, res.StatusCode, raw, tidemark.ErrUnavailable)
	}
	return raw, err
}

// readStream puts the blocks of a streamed answer together, as an SDK does.
func readStream(raw []byte) (blocks []tidemark.Block, err error) {
	ended := false
	var texts []*strings.Builder
	for events := sse.NewReader(bytes.NewReader(raw)); ; {
		ev, err := events.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("stream: %w", err)
		}
		var e struct {
			Type  string          `json:"type"`
			Index int             `json:"index"`
			Block *tidemark.Block `json:"content_block"`
			Delta struct {
				Text string `json:"text"`
				JSON string `json:"partial_json"`
			} `json:"delta"`
		}
		if err := json.Unmarshal(ev.Data, &e); err != nil {
			return nil, fmt.Errorf("stream: %w", err)
		}
		switch e.Type {
		case "content_block_start":
			if e.Index != len(blocks) || e.Block == nil {
				return nil, fmt.Errorf("stream: block %d, want %d: %w", e.Index, len(blocks), tidemark.ErrInvalid)
			}
			blocks, texts = append(blocks, *e.Block), append(texts, &strings.Builder{})
		case "content_block_delta":
			if e.Index >= len(blocks) {
				return nil, fmt.Errorf("stream: a piece of block %d, which has not begun: %w", e.Index, tidemark.ErrInvalid)
			}
			texts[e.Index].WriteString(e.Delta.Text + e.Delta.JSON)
		case "message_stop":
			ended = true
		case "error":
			return nil, fmt.Errorf("stream: %.300s: %w", ev.Data, tidemark.ErrUnavailable)
		}
	}
	if !ended {
		return nil, fmt.Errorf("stream: it ends without message_stop: %w", tidemark.ErrUnavailable)
	}
	out := make([]tidemark.Block, len(blocks))
	for i, b := range blocks {
		if text := texts[i].String(); b.Type == tidemark.TypeToolUse {
			out[i] = tidemark.Block{Type: b.Type, ID: b.ID, Name: b.Name, Input: json.RawMessage(cmp.Or(text, "{}"))}
		} else {
			out[i] = tidemark.Text(text)
		}
	}
	return out, nil
}

// run works a thread off until its turn ends and there is nothing more to say.
func (c *simClient) run(t *thread, more func() string) (last string, err error) {
	for range 100 * (c.p.requests + 10) {
		answer, err := c.ask(t)
		if err != nil {
			return "", err
		}
		var results []json.RawMessage
		last = ""
		for _, b := range answer {
			last += b.Text
			if b.Type != tidemark.TypeToolUse {
				continue
			}
			text, err := c.use(b)
			if err != nil {
				return "", err
			}
			r := tidemark.ToolResult(b.ID, text, false)
			results = append(results, r.AppendJSON(nil))
		}
		if len(results) == 0 {
			text := more()
			if text == "" {
				return last, nil
			}
			if c.clock.now = c.clock.now.Add(time.Minute); c.pauses.IntN(3) == 0 {
				c.clock.now = c.clock.now.Add(6 * time.Minute) // the cache has forgotten
			}
			results = append(results, textOf(text))
		}
		t.messages = append(t.messages, results)
	}
	return "", fmt.Errorf("the session does not come to an end: %w", tidemark.ErrTooLarge)
}

// use carries out a call.
func (c *simClient) use(b tidemark.Block) (string, error) {
	var in struct {
		Path    string `json:"file_path"`
		Limit   int    `json:"limit"`
		Command string `json:"command"`
		Pattern string `json:"pattern"`
		Content string `json:"content"`
		New     string `json:"new_string"`
		Prompt  string `json:"prompt"`
	}
	if err := json.Unmarshal(b.Input, &in); err != nil {
		return "", fmt.Errorf("call %s: %w", b.Name, err)
	}
	switch b.Name {
	case "Read":
		return numbered(c.disk[in.Path], in.Limit), nil
	case "Edit":
		c.disk[in.Path] += in.New + "\n"
		return "The file " + in.Path + " has been updated.", nil
	case "Write":
		c.disk[in.Path] = in.Content
		return "The file " + in.Path + " has been written.", nil
	case "Grep":
		return strings.Repeat("/srv/pier/src/part1/gauge_001.go: "+in.Pattern+"(moon, sun)\n", 4+c.p.bytes/200), nil
	case "Task":
		return c.delegate(in.Prompt)
	case "Bash":
		var file int
		var value string
		if n, _ := fmt.Sscanf(in.Command, "record %d %s", &file, &value); n > 0 {
			c.recorded[strconv.Itoa(file)] = value
			return "recorded", nil
		}
		return strings.Repeat("ok  "+in.Command+"  the tide is as it should be\n", 4+c.p.bytes/120), nil
	}
	return "", fmt.Errorf("a call of %q, which the client has not: %w", b.Name, tidemark.ErrInvalid)
}

// delegate runs a sub-agent, whose requests begin as those of the main thread do.
func (c *simClient) delegate(prompt string) (string, error) {
	t := &thread{system: "You look into one thing for another agent.", messages: [][]json.RawMessage{c.order(prompt)}}
	text, err := c.run(t, func() string { return "" })
	c.subs[prompt] = text
	return text, err
}

// numbered is a file as a read shows it.
func numbered(text string, limit int) string {
	var b strings.Builder
	n := 0
	for line := range strings.Lines(text) {
		if n++; limit > 0 && n > limit {
			break
		}
		fmt.Fprintf(&b, "%6d\t%s", n, line)
	}
	return b.String()
}
