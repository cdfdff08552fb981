package provider

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	tidemark "github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// pngOf is the head of a PNG of a size, in base64.
func pngOf(w, h int) string {
	head := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR"), make([]byte, 8)...)
	binary.BigEndian.PutUint32(head[16:], uint32(w))
	binary.BigEndian.PutUint32(head[20:], uint32(h))
	return base64.StdEncoding.EncodeToString(head)
}

func pictureJSON(media, data string) string {
	return `{"type":"image","source":{"type":"base64","media_type":"` + media + `","data":"` + data + `"}}`
}

func userJSON(blocks ...string) string {
	return `{"role":"user","content":[` + strings.Join(blocks, ",") + `]}`
}
func replyJSON(blocks ...string) string {
	return `{"role":"assistant","content":[` + strings.Join(blocks, ",") + `]}`
}
func textJSON(s string) string { return string(tidemark.Text(s).AppendJSON(nil)) }

// hostile are conversations as they were logged, each of which an API refused whole. The first message is a question and the
// last one, too; says are words that stand in what is sent, in order, not what must not.
var hostile = []struct {
	name     string
	messages []string
	says     []string
	not      string
}{
	{"thinking alone", []string{replyJSON(`{"type":"thinking","thinking":"hm","signature":"s"}`)}, []string{wordless}, `"hm"`},
	{"redacted thinking alone", []string{replyJSON(`{"type":"redacted_thinking","data":"zz"}`)}, []string{wordless}, `"zz"`},
	{"thinking that was cut off", []string{replyJSON(`{"type":"thinking","thinking":"hm","signature":""}`, textJSON("Well."))}, []string{"Well."}, `"hm"`},
	{"text, then thinking", []string{replyJSON(textJSON("Well."), `{"type":"thinking","thinking":"hm","signature":"s"}`)}, []string{"Well."}, `"hm"`},
	{"thinking behind a call", []string{replyJSON(`{"type":"tool_use","id":"c","name":"look","input":{}}`, `{"type":"thinking","thinking":"hm","signature":"s"}`),
		userJSON(`{"type":"tool_result","tool_use_id":"c","content":"seen"}`)}, []string{`"c"`, "seen"}, `"hm"`},
	{"ids of another provider", []string{replyJSON(`{"type":"tool_use","id":"functions.x:0","name":"look","input":{}}`, `{"type":"tool_use","id":"a|b","name":"look","input":{}}`),
		userJSON(`{"type":"tool_result","tool_use_id":"functions.x:0","content":"one"}`, `{"type":"tool_result","tool_use_id":"a|b","content":[{"type":"text","text":"two","x_new":1}]}`)},
		[]string{"one", "two"}, ""},
	{"an id of sixty characters", []string{replyJSON(`{"type":"tool_use","id":"` + strings.Repeat("call|fc_", 9) + `","name":"look","input":{}}`),
		userJSON(`{"type":"tool_result","tool_use_id":"` + strings.Repeat("call|fc_", 9) + `","content":"one"}`)}, []string{"one"}, strings.Repeat("call|fc_", 9)},
	{"an input that is a list", []string{replyJSON(`{"type":"tool_use","id":"c","name":"look","input":[1]}`), userJSON(`{"type":"tool_result","tool_use_id":"c","content":"one"}`)}, []string{"_invalid", "one"}, ""},
	{"the name of a tool with a point", []string{replyJSON(`{"type":"tool_use","id":"c","name":"web.look","input":{}}`), userJSON(`{"type":"tool_result","tool_use_id":"c","content":"one"}`)}, []string{"one"}, ""},
	{"base64 that is none", []string{userJSON(pictureJSON("image/png", "!!"), textJSON("this"))}, []string{"picture (image/png) stood here", "base64 cannot be read", "this"}, "!!"},
	{"base64 in lines", []string{userJSON(pictureJSON("image/png", pngOf(2, 2)[:8]+`\n`+pngOf(2, 2)[8:]), textJSON("this"))}, []string{pngOf(2, 2), "this"}, "left out"},
	{"another kind of picture", []string{userJSON(pictureJSON("image/jpeg", pngOf(2, 2)))}, []string{"image/png"}, "image/jpeg"},
	{"no picture at all", []string{userJSON(pictureJSON("image/png", base64.StdEncoding.EncodeToString([]byte("this is no picture, but a text of some length"))))}, []string{"no PNG, JPEG"}, ""},
	{"a picture in a result that cannot be read", []string{replyJSON(`{"type":"tool_use","id":"c","name":"look","input":{}}`),
		userJSON(`{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"seen"},` + pictureJSON("image/png", "%%%") + `]}`)}, []string{"seen", "base64 cannot be read"}, "%%%"},
	{"an address that is none", []string{userJSON(`{"type":"image","source":{"type":"url","url":"file:///etc/passwd"}}`)}, []string{"its address is none of the web"}, "passwd"},
	{"a source of another kind", []string{userJSON(`{"type":"image","source":{"type":"odd"}}`)}, []string{"of no kind that is known"}, ""},
	{"empty texts", []string{userJSON(textJSON(""), textJSON("this"), textJSON(" \n"))}, []string{"this"}, `""`},
	{"nothing but empty texts", []string{replyJSON(textJSON(" "))}, []string{wordless}, ""},
	{"an empty text in a result", []string{replyJSON(`{"type":"tool_use","id":"c","name":"look","input":{}}`),
		userJSON(`{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":""},{"type":"text","text":"seen"}]}`)}, []string{"seen"}, `"text":""`},
}

func hostileRequest(t testing.TB, messages []string) tidemark.Request {
	t.Helper()
	req := tidemark.Request{Model: "m", MaxTokens: 100, Messages: []tidemark.Message{tidemark.NewText(tidemark.User, "begin")}}
	for _, m := range messages {
		req.Messages = append(req.Messages, mustMessage(t, m))
	}
	req.Messages = append(req.Messages, tidemark.NewText(tidemark.User, "and now?"))
	return req
}

// TestValidWhateverWasLogged: a strict server takes what was logged, from both dialects, and a second request has the same
// bytes up to what is new.
func TestValidWhateverWasLogged(t *testing.T) {
	t.Parallel()
	for _, row := range hostile {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			api := tidemarktest.NewAPI(t)
			req := hostileRequest(t, row.messages)
			before, err := json.Marshal(req.Messages)
			if err != nil {
				t.Fatal(err)
			}
			a, o := &Anthropic{BaseURL: api.URL, Transport: http.DefaultTransport}, &OpenAI{BaseURL: api.URL + "/v1", Transport: http.DefaultTransport}
			for name, p := range map[string]tidemark.Provider{"messages": a, "chat": o} {
				if _, err := tidemark.Complete(t.Context(), p, req); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			for name, fit := range map[string]*sending{"messages": a.valid(req), "chat": o.valid(req)} {
				check := tidemarktest.CheckAnthropic
				if name == "chat" {
					check = tidemarktest.CheckChat
				}
				if err := check(fit.Request); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				raw, err := json.Marshal(fit.Messages)
				if err != nil {
					t.Fatal(err)
				}
				rest := string(raw)
				for _, w := range row.says {
					_, after, ok := strings.Cut(rest, w)
					if !ok {
						t.Fatalf("%s: no %q in %s", name, w, raw)
					}
					rest = after
				}
				if row.not != "" && strings.Contains(string(raw), row.not) {
					t.Errorf("%s: %q is sent: %s", name, row.not, raw)
				}
			}
			if !bytes.Equal(a.body(req), a.body(req)) || !bytes.Equal(o.body(req, true), o.body(req, true)) {
				t.Error("the same request has other bytes")
			}
			if after, err := json.Marshal(req.Messages); err != nil || !bytes.Equal(after, before) {
				t.Errorf("the caller's messages are %s now, %v", after, err)
			}
		})
	}
}

// TestValidIDs: one id of another provider is the same in the call, in its result and in the next request, and two that
// are alike but for a sign stay two.
func TestValidIDs(t *testing.T) {
	t.Parallel()
	call := func(id string) []string {
		return []string{replyJSON(`{"type":"tool_use","id":"` + id + `","name":"look","input":{"n":1.0}}`), userJSON(`{"type":"tool_result","tool_use_id":"` + id + `","content":"x"}`)}
	}
	req := hostileRequest(t, slices.Concat(call("f:0"), call("f.0"), call("f_0"), call("f:0")))
	fit := (&Anthropic{}).valid(req)
	seen := map[string]bool{}
	for i := 1; i+1 < len(fit.Messages)-1; i += 2 {
		asked, answered := fit.Messages[i].Calls()[0], fit.Messages[i+1].Results()[0]
		if asked != answered || seen[asked] || !strings.Contains(string(fit.Messages[i].AppendJSON(nil)), `{"n":1.0}`) {
			t.Errorf("call %s, result %s", asked, answered)
		}
		seen[asked] = true
	}
	if !seen["f_0"] {
		t.Errorf("an id that was fine is another now: %v", seen)
	}
	if id := mistralID("functions.x:0"); len(id) != 9 || id != mistralID("functions.x:0") || mistralID("abcDEF123") != "abcDEF123" {
		t.Errorf("for Mistral it is %q", id)
	}
}

// TestManyPictures: a picture that was taken is not taken any more among many (2000 pixels each among more than twenty),
// and of more than a hundred the oldest leave, twenty at once.
func TestManyPictures(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name        string
		small, wide int // pictures
		left        int // of them that are sent
	}{
		{"twenty", 19, 1, 20},
		{"twenty-one", 20, 1, 20},
		{"twenty-one that are small", 21, 0, 21},
		{"a hundred", 100, 0, 100},
		{"a hundred and one", 101, 0, 81},
		{"a hundred and twenty", 120, 0, 100},
		{"a hundred and twenty-one", 121, 0, 81},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			blocks := []string{}
			for range row.wide {
				blocks = append(blocks, pictureJSON("image/png", pngOf(2001, 100)))
			}
			for range row.small {
				blocks = append(blocks, pictureJSON("image/png", pngOf(2000, 100)))
			}
			api := tidemarktest.NewAPI(t)
			if _, err := tidemark.Complete(t.Context(), &Anthropic{BaseURL: api.URL, Transport: http.DefaultTransport}, hostileRequest(t, []string{userJSON(blocks...)})); err != nil {
				t.Fatal(err)
			}
			sent := 0
			for _, m := range api.Calls()[0].Messages {
				sent += m.Images()
			}
			if sent != row.left {
				t.Errorf("%d are sent, want %d", sent, row.left)
			}
		})
	}
	if fit := (&Anthropic{}).valid(hostileRequest(t, []string{userJSON(pictureJSON("image/png", pngOf(8001, 10)))})); !strings.Contains(fit.Messages[1].PlainText(), "8001 × 10 pixels") {
		t.Errorf("too wide a picture: %s", fit.Messages[1].AppendJSON(nil))
	}
}

// TestManyWidePictures: the newest pictures stay whatever their size, and among them as few as the API takes beside a wide
// one; which leave changes in steps.
func TestManyWidePictures(t *testing.T) {
	t.Parallel()
	wide, small := pngOf(4032, 3024), pngOf(600, 400)
	sent := func(pictures ...string) []string {
		var messages []string
		for i, data := range pictures {
			if i%2 == 0 {
				messages = append(messages, userJSON(pictureJSON("image/png", data)), replyJSON(textJSON("Seen.")))
				continue
			}
			id := "c" + strings.Repeat("x", i)
			messages = append(messages, replyJSON(`{"type":"tool_use","id":"`+id+`","name":"look","input":{}}`),
				userJSON(`{"type":"tool_result","tool_use_id":"`+id+`","content":[`+pictureJSON("image/png", data)+`]}`), replyJSON(textJSON("Seen.")))
		}
		fit := (&Anthropic{}).valid(hostileRequest(t, messages))
		if err := tidemarktest.CheckAnthropic(fit.Request); err != nil {
			t.Errorf("%d pictures: %v", len(pictures), err)
		}
		var left []string
		for _, m := range fit.Messages {
			for _, b := range append(slices.Clone(m.Content), inResults(m)...) {
				if b.Type == tidemark.TypeImage {
					left = append(left, string(b.Raw()))
				}
			}
		}
		return left
	}
	for _, row := range []struct{ all, left int }{{20, 20}, {21, 11}, {22, 12}, {30, 20}, {31, 11}, {120, 20}} {
		if left := sent(slices.Repeat([]string{wide}, row.all)...); len(left) != row.left {
			t.Errorf("of %d wide pictures %d are sent, want %d", row.all, len(left), row.left)
		}
	}
	many := slices.Repeat([]string{small}, 24)
	if left := sent(append(many, wide)...); len(left) != 15 || !strings.Contains(left[14], wide) {
		t.Errorf("of 24 small ones and a wide one %d are sent", len(left))
	}
	if left := sent(append([]string{wide}, many...)...); len(left) != 24 || strings.Contains(strings.Join(left, ""), wide) {
		t.Errorf("of a wide one and 24 small ones %d are sent", len(left))
	}
}

// inResults are the blocks of the results of a message.
func inResults(m tidemark.Message) (out []tidemark.Block) {
	for _, b := range m.Content {
		out = append(out, b.Content...)
	}
	return out
}

// TestThinkingInARound: what a model thought before it called goes back as it came; of what another provider thought
// nothing does, and the round goes on without.
func TestThinkingInARound(t *testing.T) {
	t.Parallel()
	round := func(thought string) tidemark.Request {
		req := hostileRequest(t, []string{replyJSON(strings.TrimPrefix(thought+`,{"type":"tool_use","id":"c","name":"look","input":{}}`, ",")), userJSON(`{"type":"tool_result","tool_use_id":"c","content":"x"}`)})
		req.Messages = req.Messages[:3]
		return req
	}
	for _, row := range []struct {
		name, thought, base string
		sent, asks          bool
	}{
		{"signed", `{"type":"thinking","thinking":"hm","signature":"s"}`, "", true, true},
		{"redacted", `{"type":"redacted_thinking","data":"hm"}`, "", true, true},
		{"unsigned", `{"type":"thinking","thinking":"hm","signature":""}`, "", false, false},
		{"unsigned, of an endpoint that signs none", `{"type":"thinking","thinking":"hm","signature":""}`, "https://example.org", true, true},
		{"signed with a number", `{"type":"thinking","thinking":"hm","signature":12}`, "https://example.org", false, false},
		{"redacted to a number", `{"type":"redacted_thinking","data":12,"x":"hm"}`, "", false, false},
		{"none", "", "", false, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			body := string((&Anthropic{Model: "m", Thinking: 2000, BaseURL: row.base}).body(round(row.thought)))
			if strings.Contains(body, `"hm"`) != row.sent || strings.Contains(body, `"budget_tokens"`) != row.asks {
				t.Errorf("sent %s", body)
			}
		})
	}
}

// TestPictureDetail: what a client of chat completions says of a picture goes on to chat completions, and to no API that
// does not know it.
func TestPictureDetail(t *testing.T) {
	t.Parallel()
	req := hostileRequest(t, []string{userJSON(`{"type":"image","source":{"type":"url","url":"https://example.org/a.png"},"image_url":{"detail":"high","x_new":1.0}}`)})
	if body := string((&OpenAI{}).body(req, true)); !strings.Contains(body, `{"type":"image_url","image_url":{"url":"https://example.org/a.png","detail":"high","x_new":1.0}}`) {
		t.Errorf("chat completions are sent %s", body)
	}
	if body := string((&Anthropic{}).body(req)); strings.Contains(body, "detail") || !strings.Contains(body, `{"type":"image","source":{"type":"url","url":"https://example.org/a.png"}}`) {
		t.Errorf("the Messages API is sent %s", body)
	}
}

// TestLongStrings: what is longer than OpenAI takes in one string goes out in pieces of it, in all kinds of messages, and whole; what
// is as long goes out as one.
func TestLongStrings(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", maxString/2)
	picture := `{"type":"image","source":{"type":"url","url":"https://example.org/a.png"}}`
	for _, c := range []struct {
		name     string
		messages []string
		pieces   int
	}{
		{"as long", []string{userJSON(textJSON(long))}, 0},
		{"longer", []string{userJSON(textJSON("x" + long))}, 2},
		{"twice as long", []string{userJSON(textJSON("x" + long + long))}, 3},
		{"a reply", []string{userJSON(textJSON("hi")), replyJSON(textJSON("x" + long)), userJSON(textJSON("ho"))}, 2},
		{"a result", []string{userJSON(textJSON("hi")), replyJSON(`{"type":"tool_use","id":"c1","name":"look","input":{}}`), userJSON(`{"type":"tool_result","tool_use_id":"c1","content":[` + textJSON("x"+long) + `]}`)}, 2},
		{"beside a picture", []string{userJSON(textJSON("x"+long), picture)}, 2},
	} {
		var wire struct {
			Messages []struct {
				Content json.RawMessage `json:"content"`
			} `json:"messages"`
		}
		if err := json.Unmarshal((&OpenAI{}).body(hostileRequest(t, c.messages), true), &wire); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		pieces, text := 0, ""
		for _, m := range wire.Messages {
			var one string
			var parts []struct{ Type, Text string }
			if json.Unmarshal(m.Content, &one) == nil {
				text += one
			} else if err := json.Unmarshal(m.Content, &parts); err != nil {
				continue // only calls
			}
			for _, p := range parts {
				text += p.Text
				if p.Type != "text" {
					continue
				}
				if pieces++; len(p.Text) > maxString || !utf8.ValidString(p.Text) || p.Text == "" {
					t.Errorf("%s: a piece of %d bytes", c.name, len(p.Text))
				}
			}
		}
		if want := c.messages[len(c.messages)-1]; pieces != c.pieces || strings.Count(text, "é") != strings.Count(strings.Join(c.messages, ""), "é") {
			t.Errorf("%s: %d pieces, %d letters, of %.80s", c.name, pieces, strings.Count(text, "é"), want)
		}
	}
}
