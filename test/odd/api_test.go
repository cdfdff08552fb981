package odd

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// dialect is how an API is spoken to.
type dialect int

const (
	messages dialect = iota
	chat
	workers
)

// model is one that answers.
type model struct {
	name     string
	dialect  dialect
	window   int     // tokens
	most     int     // of a reply
	perToken float64 // bytes of a request; what we estimate is 3.3
	thinks   bool
}

var models = []*model{
	{"messages-8k", messages, 8_192, 8_192, 3.4, false},
	{"chat-8k", chat, 8_192, 8_192, 2.6, false},
	{"messages-32k", messages, 32_768, 8_192, 2.8, false},
	{"thinking-200k", messages, 200_000, 32_000, 3.6, true},
	{"chat-32k", chat, 32_768, 16_384, 3.8, false},
	{"workers-24k", workers, 24_000, 8_192, 3.2, false},
	{"messages-200k", messages, 200_000, 32_000, 3.6, false},
	{"chat-200k", chat, 200_000, 16_384, 4.2, false},
}

func modelNamed(name string) *model {
	for _, m := range models {
		if m.name == name {
			return m
		}
	}
	return nil
}

// ban is a part of a request that an API refuses for ever, for no reason that anybody thought of.
type ban struct {
	vague bool // only the message is named
	text  string
}

// api is the network: all the model APIs. One conversation asks at a time.
type api struct {
	tb testing.TB

	mu     sync.Mutex // guards the following
	judge  *judge
	r      *rand.Rand // of what is answered in this turn
	calm   bool
	tag    string          // of the newest message of a person
	tags   []string        // of the messages of this turn
	whole  map[string]bool // those of which both ends were in a request
	gone   map[string]bool // words that were corrected or taken back, and are not in view
	leaked string          // what was sent all the same
	last   []byte          // the newest request that was not for a summary
	params int             // refusals of this turn for parameters
	others int             // and what else was no answer
	spoken string          // what the person must read, if nothing more is asked in this turn
	unread string          // why the newest message did not arrive
	bans   map[string]ban
	tools  int // of them bans
	broken map[string]int
	sample map[string]string // of what was refused by rule, where
	done   map[string]int    // what was answered, by kind
	talk   string            // that asks

	trace []string // what was asked and answered in this turn

	door  sync.Mutex // guards the following, and is held while something arrives
	comes []arrival  // in this turn, while something is in work

	n, refused int // calls so far, and those of them that were refused or broken off
}

func newAPI(tb testing.TB) *api {
	return &api{tb: tb, judge: newJudge(), bans: map[string]ban{}, broken: map[string]int{}, sample: map[string]string{}, done: map[string]int{}, gone: map[string]bool{}}
}

// turn begins a turn.
func (a *api) turn(talk string, r *rand.Rand, calm bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.talk, a.r, a.calm, a.spoken, a.unread, a.trace = talk, r, calm, "", "", nil
	a.tags, a.whole, a.last, a.params, a.others = nil, map[string]bool{}, nil, 0, 0
}

// hear takes down that a message is on its way.
func (a *api) hear(tag string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tag, a.tags = tag, append(a.tags, tag)
}

// AI is the binding of Workers AI.
func (a *api) AI(string) http.RoundTripper { return a }

// response is what an API sends: a status and a body that may end too early, or not at all.
type response struct {
	status int
	body   string
	json   bool
	header http.Header
	cut    error // of the network, behind the body
	hangs  bool  // nothing more comes, and nothing ends it
	lost   bool  // there is no answer at all
}

// RoundTrip implements [http.RoundTripper].
func (a *api) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	a.arrives()
	resp := a.answer(req.URL.Host, req.Method, req.URL.Path, body)
	if resp.lost {
		return nil, fmt.Errorf("dial tcp: connection refused")
	}
	h := resp.header
	if h == nil {
		h = http.Header{}
	}
	kind := "text/event-stream"
	if resp.json {
		kind = "application/json"
	}
	h.Set("Content-Type", kind)
	out := &http.Response{StatusCode: resp.status, ProtoMajor: 2, Header: h, Request: req}
	out.Body = &reader{rest: strings.NewReader(resp.body), resp: resp, done: req.Context().Done(), waits: a.arrives}
	return out, nil
}

// reader reads a response.
type reader struct {
	rest *strings.Reader
	resp response
	done <-chan struct{}

	waits func() // is called before it hangs
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.rest.Read(p)
	switch {
	case err == nil || err != io.EOF:
		return n, err
	case r.resp.hangs:
		r.waits()
		<-r.done
		return 0, io.ErrUnexpectedEOF
	case r.resp.cut != nil:
		return 0, r.resp.cut
	}
	return 0, io.EOF
}

func (r *reader) Close() error { return nil }

func (a *api) answer(host, method, path string, body []byte) response {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.spoken = ""
	if method == http.MethodGet {
		return a.list(host)
	}
	if !strings.HasSuffix(path, "/messages") && !strings.HasSuffix(path, "/completions") && !strings.HasPrefix(path, "/run/") {
		return failure(http.StatusNotFound, "not_found_error", "Not found", "") // what servers of others have there
	}
	a.sent(body)
	params := a.params
	out := a.ask(modelOf(path, body), body)
	a.trace = append(a.trace, fmt.Sprintf("%d bytes, answered %d %.300q", len(body), out.status, out.body))
	if a.n++; out.status != http.StatusOK || out.lost || out.hangs || out.cut != nil {
		if a.refused++; a.params == params {
			a.others++
		}
	}
	return out
}

// ask puts a request before the judge, and answers it where that has nothing against it.
func (a *api) ask(m *model, body []byte) response {
	var asks *asked
	var no *refusal
	switch {
	case m == nil:
		return failure(http.StatusNotFound, "not_found_error", "model: no such model", "")
	case m.dialect == messages:
		asks, no = a.judge.messages(m, body)
	default:
		asks, no = a.judge.chat(m, body)
	}
	if no == nil {
		no = a.banned(asks)
	}
	if no != nil {
		return a.refuse(asks, no)
	}
	return a.reply(asks)
}

// modelOf is the model that a request is for: in the body, or in the path of Workers AI.
func modelOf(path string, body []byte) *model {
	if name, ok := strings.CutPrefix(path, "/run/"); ok {
		return modelNamed(name)
	}
	var req struct {
		Model string `json:"model"`
	}
	_ = json.Unmarshal(body, &req) // of another form it names none
	return modelNamed(req.Model)
}

// list answers who asks for the models: some tell their windows, some do not, some fail.
func (a *api) list(host string) response {
	speaks := messages
	if strings.Contains(host, "openai") {
		speaks = chat
	}
	how := a.r.IntN(4)
	if how == 0 && !a.calm {
		return response{status: http.StatusInternalServerError, body: "<html>oops", json: false}
	}
	var rows []string
	for _, m := range models {
		if m.dialect == speaks {
			window := ""
			if how == 1 {
				window = fmt.Sprint(m.window)
			}
			rows = append(rows, "{"+object("id", jsonText(m.name), "max_input_tokens", window, "context_length", window)+"}")
		}
	}
	return response{status: http.StatusOK, body: `{"data":[` + strings.Join(rows, ",") + `]}`, json: true}
}

var mark = []byte(`,"cache_control":{"type":"ephemeral"}`)

// name of a part of a request, the same whenever the same part is sent to the same API.
func (p piece) name(m *model) string {
	h := fnv.New64a()
	_, _ = h.Write(bytes.ReplaceAll(p.raw, mark, nil)) // a hash takes all
	return fmt.Sprint(m.dialect, " ", h.Sum64())
}

// banned is the refusal of what is refused for ever.
func (a *api) banned(asks *asked) *refusal {
	if len(a.bans) == 0 {
		return nil
	}
	for _, p := range asks.pieces {
		if b, ok := a.bans[p.name(asks.model)]; ok {
			a.done["banned"]++
			return &refusal{at: p.place(b.vague), text: b.text, sure: true}
		}
	}
	return nil
}

// place is how an API names a part, or the message that it is in.
func (p piece) place(vague bool) string {
	at := p.at
	if !vague {
		return at
	}
	for _, within := range []string{".content", ".tool_calls"} {
		at, _, _ = strings.Cut(at, within)
	}
	return at
}

// failure is an error of an API with a status, in the form that all of them read.
func failure(status int, typ, text, param string) response {
	e := object("type", jsonText(typ), "message", jsonText(text))
	if param != "" {
		e += `,"param":` + jsonText(param)
	}
	return response{status: status, json: true, body: `{"type":"error","error":{` + e + `},"request_id":"req_1"}`}
}

// refuse says no, with the place in the words of the API, or without it.
func (a *api) refuse(asks *asked, no *refusal) response {
	if no.rule == "" && no.text == "" {
		a.done["over the window"]++
		return a.overflow(asks)
	}
	if no.rule != "" {
		key := fmt.Sprint(asks.model.dialect, " ", no.rule)
		if a.broken[key]++; a.sample[key] == "" {
			a.sample[key] = fmt.Sprintf("%s, %s: %s: %s", a.talk, asks.model.name, no.at, no.text)
		}
	}
	text, param := no.text, ""
	if !no.placeless && no.at != "" && (no.sure || a.r.IntN(4) > 0) {
		if asks.model.dialect == messages {
			text = no.at + ": " + text
		} else if param = no.at; a.r.IntN(3) == 0 {
			text, param = "Invalid '"+no.at+"': "+text, ""
		}
	}
	return failure(http.StatusBadRequest, "invalid_request_error", text, param)
}
