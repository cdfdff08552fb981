package bench

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// maxAsked bounds a request to the simulated API, as the real one does.
const maxAsked = 32 << 20

// upstream is a Messages API whose models are minds, and that bills as a prompt cache does.
type upstream struct {
	mu    sync.Mutex // guards all
	cache *promptCache
	p     *plan
	minds map[string]*mind
	order []string
	calls int
	usage tidemark.Usage // of all calls
	ids   int
	plain strings.Builder
}

var workOrder = regexp.MustCompile(`Work order (main|title|sub \d+)\.`)

// ServeHTTP is POST /v1/messages.
func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	raw, err := io.ReadAll(io.LimitReader(r.Body, maxAsked+1))
	var a apiAsk
	if err == nil && r.URL.Path != "/v1/messages" {
		err = fmt.Errorf("%s: %w", r.URL.Path, tidemark.ErrNotFound)
	}
	if err == nil && len(raw) > maxAsked {
		err = tidemark.ErrTooLarge
	}
	if err == nil {
		err = json.Unmarshal(raw, &a)
	}
	if err == nil {
		err = a.paired()
	}
	var usage tidemark.Usage
	if err == nil {
		usage, err = u.cache.count(&a)
	}
	if err != nil {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		text, _ := json.Marshal(err.Error())
		_, _ = fmt.Fprintf(w, `{"type":"error","error":{"type":"invalid_request_error","message":%s}}`, text)
		return
	}
	blocks, stop := u.reply(&a)
	for _, b := range blocks {
		usage.Output += tidemark.EstimateChars(len(b))
	}
	u.calls++
	u.usage = u.usage.Add(usage)
	if a.Stream {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(u.events(&a, blocks, stop, usage))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"id":"msg_%d","type":"message","role":"assistant","model":%q,"content":[%s],"stop_reason":%q,"stop_sequence":null,"usage":%s}`,
		u.ids, a.Model, strings.Join(blocks, ","), stop, usageJSON(usage, usage.Output))
}

// paired refuses what the real API refuses: roles that do not change, calls without their results.
func (a *apiAsk) paired() error {
	var open []string
	for i, m := range a.Messages {
		if want := []string{"user", "assistant"}[i%2]; m.Role != want {
			return fmt.Errorf("messages.%d: role %q, want %q: %w", i, m.Role, want, tidemark.ErrInvalid)
		}
		blocks, err := blocksOf(m.Content)
		if err != nil || len(blocks) == 0 {
			return errors.Join(err, fmt.Errorf("messages.%d: no content: %w", i, tidemark.ErrInvalid))
		}
		var calls, results []string
		for _, raw := range blocks {
			var b struct {
				Type string `json:"type"`
				ID   string `json:"id"`
				Of   string `json:"tool_use_id"`
			}
			if raw[0] != '"' {
				if err := json.Unmarshal(raw, &b); err != nil {
					return err
				}
			}
			switch b.Type {
			case tidemark.TypeToolUse:
				calls = append(calls, b.ID)
			case tidemark.TypeToolResult:
				results = append(results, b.Of)
			}
		}
		if got, want := strings.Join(results, " "), strings.Join(open, " "); got != want {
			return fmt.Errorf("messages.%d: results of [%s], want those of [%s]: %w", i, got, want, tidemark.ErrInvalid)
		}
		open = calls
	}
	return nil
}

// reply asks the model of the request's thread. Blocks are JSON.
func (u *upstream) reply(a *apiAsk) (blocks []string, stop string) {
	u.ids++
	out := simReply{text: "Gauges at the pier", stop: true}
	if m := u.mind(a.thread()); m != nil {
		out = m.next(a)
	}
	u.plain.WriteString(out.plain())
	if text := out.text + out.tags; text != "" {
		text, _ := json.Marshal(text)
		blocks = append(blocks, `{"type":"text","text":`+string(text)+`}`)
	}
	for i, c := range out.calls {
		blocks = append(blocks, fmt.Sprintf(`{"type":"tool_use","id":"toolu_%d_%d","name":"%s","input":%s}`, u.ids, i, c.name, c.input))
	}
	if out.stop {
		return blocks, "end_turn"
	}
	return blocks, "tool_use"
}

// thread is what the first message orders.
func (a *apiAsk) thread() string {
	if len(a.Messages) == 0 {
		return ""
	}
	if m := workOrder.FindSubmatch(a.Messages[0].Content); m != nil {
		return string(m[1])
	}
	return ""
}

// mind is the model of a thread, nil for one that only says a word.
func (u *upstream) mind(name string) *mind {
	if name == "" || name == "title" {
		return nil
	}
	m := u.minds[name]
	if m == nil {
		m = &mind{p: u.p, name: name, steps: u.p.steps}
		if name != "main" {
			m.steps = append(u.p.sub[:len(u.p.sub):len(u.p.sub)], deedOf{what: stops})
		}
		u.minds[name] = m
		u.order = append(u.order, name)
	}
	return m
}

func usageJSON(u tidemark.Usage, output tidemark.Tokens) string {
	return fmt.Sprintf(`{"input_tokens":%d,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,"output_tokens":%d}`, u.Input, u.CacheCreation, u.CacheRead, output)
}

// events is a reply as a stream.
func (u *upstream) events(a *apiAsk, blocks []string, stop string, usage tidemark.Usage) []byte {
	var b strings.Builder
	event := func(name, data string) { b.WriteString("event: " + name + "\ndata: " + data + "\n\n") }
	event("message_start", fmt.Sprintf(`{"type":"message_start","message":{"id":"msg_%d","type":"message","role":"assistant","model":%q,"content":[],"stop_reason":null,"stop_sequence":null,"usage":%s}}`,
		u.ids, a.Model, usageJSON(usage, 1)))
	for i, raw := range blocks {
		n := strconv.Itoa(i)
		head, kind, piece := `{"type":"text","text":""}`, "text_delta", "text"
		var block tidemark.Block
		_ = json.Unmarshal([]byte(raw), &block) // we made it
		text := block.Text
		if block.Type == tidemark.TypeToolUse {
			head, kind, piece = fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{}}`, block.ID, block.Name), "input_json_delta", "partial_json"
			text = string(block.Input)
		}
		event("content_block_start", `{"type":"content_block_start","index":`+n+`,"content_block":`+head+`}`)
		for len(text) > 0 {
			size := min(len(text), 40)
			for size < len(text) && text[size]&0xc0 == 0x80 {
				size++
			}
			part, _ := json.Marshal(text[:size])
			text = text[size:]
			event("content_block_delta", `{"type":"content_block_delta","index":`+n+`,"delta":{"type":"`+kind+`","`+piece+`":`+string(part)+`}}`)
		}
		event("content_block_stop", `{"type":"content_block_stop","index":`+n+`}`)
	}
	event("message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":%d}}`, stop, usage.Output))
	event("message_stop", `{"type":"message_stop"}`)
	return []byte(b.String())
}
