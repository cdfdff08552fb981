package proxy_test

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/proxy"
)

// among puts what others say between the messages of a history, as newer agents do: behind each message of the user a system
// message, which mostly only counts down, with the cache marker where it is the last. What stands at a place stays the same
// while the history grows.
func among(history []string) []string {
	var out []string
	for i, raw := range history {
		out = append(out, raw)
		if !strings.HasPrefix(raw, `{"role":"user"`) {
			continue
		}
		h := fnv.New32a()
		h.Write([]byte(raw[:min(len(raw), 80)]))
		said := fmt.Sprintf("<total_tokens>%d tokens left</total_tokens>", 1_000_000-i)
		switch h.Sum32() % 6 {
		case 0:
			continue
		case 1, 2:
			said = fmt.Sprintf("From here on rule %d holds.", h.Sum32()%1000)
		}
		if i == len(history)-1 {
			out = append(out, `{"role":"system","content":[{"type":"text","text":"`+said+`","cache_control":{"type":"ephemeral"}}]}`)
		} else {
			out = append(out, text("system", said))
		}
	}
	return out
}

// rules are what system messages of a history say that is to be heard whatever leaves.
func rules(history []string) (list []string) {
	for _, raw := range history {
		if strings.HasPrefix(raw, `{"role":"system"`) && strings.Contains(raw, "From here on") {
			at := strings.Index(raw, "From here on")
			list = append(list, raw[at:at+strings.IndexByte(raw[at:], '"')])
		}
	}
	return list
}

// noteIsLast holds that a note, which is another one in each request, stands behind all that is cached.
func noteIsLast(t *testing.T, e exchanged, note string) {
	t.Helper()
	raw := string(e.sent[0])
	if at := strings.LastIndex(raw, note); at >= 0 && strings.Contains(raw[at:], `"cache_control"`) {
		t.Fatalf("the note stands before a cache marker: %s", raw)
	}
}

// TestForeignResultStays: results in messages of a form that is not known go out as they came, however old and large they are,
// and those between them leave.
func TestForeignResultStays(t *testing.T) {
	big := strings.Repeat("a line of a file\n", 200)
	for known, odd := range map[string]string{`"role":"user"`: `"role":"oracle"`, `"tool_use_id"`: `"is_error":"no","tool_use_id"`} {
		r := newRig(t, proxy.Settings{Window: 3_000})
		history := []string{text("user", "q")}
		var foreign []string
		sent := ""
		for i := range 12 {
			id := fmt.Sprint("c", i)
			answer := result(id, big)
			if i%2 == 0 {
				answer = strings.Replace(answer, known, odd, 1)
				foreign = append(foreign, strings.TrimSuffix(answer, "]}")) // behind the last one stands a note
			}
			history = append(history, said(call(id, "Read", fmt.Sprintf(`{"file_path":"f%d.go"}`, i))), answer)
			sent = string(r.exchange(proxy.Page, request(history...), reply("end_turn", textBlock("so"))).sent[0])
			for n, raw := range foreign {
				if !strings.Contains(sent, raw) {
					t.Fatalf("%s: request %d has not message %d as it came: %s", odd, i, n, sent)
				}
			}
		}
		if !strings.Contains(sent, "[Paged out:") {
			t.Errorf("%s: nothing between them left: %s", odd, sent)
		}
	}
}

// TestUnknownIsTreated: a table of what a client may send that nobody here knows. It goes out as it came, and what is known
// beside it is treated.
func TestUnknownIsTreated(t *testing.T) {
	big := strings.Repeat("a line of a file\n", 200)
	for _, row := range []struct {
		name   string
		head   string // members of the request
		first  string // a message behind the question
		beside string // a block beside each result
		last   string // a message at the end
		tools  string // definitions
	}{
		{name: "system messages", first: `{"role":"system","content":"Skills: none."}`, last: `{"role":"system","content":[{"type":"text","text":"<total_tokens>9 tokens left</total_tokens>","cache_control":{"type":"ephemeral"}}]}`},
		{name: "a directive without words", first: `{"role":"system","content":[],"output_config":{"effort":"low"}}`},
		{name: "changes of tools", last: `{"clear_at":"never","role":"system","content":[{"type":"tool_addition","tool":{"name":"x"}},{"type":"text","text":"y"}]}`},
		{name: "an unknown role", first: `{"role":"oracle","content":"thus"}`},
		{name: "a role of another type", first: `{"role":{"name":"x"},"content":"thus"}`},
		{name: "no role", first: `{"content":"thus","kind":1.0}`},
		{name: "no content", first: `{"role":"user","parts":[1]}`},
		{name: "content of another type", first: `{"role":"assistant","content":{"parts":["x"]}}`},
		{name: "a message of another type", first: `["x",1.0]`},
		{name: "an unknown block", beside: `{"type":"hologram","x":1.0}`},
		{name: "a block without a type", beside: `{"x":1.0}`},
		{name: "a block of another type", beside: `"x"`},
		{name: "a text that is none", beside: `{"type":"text","text":{"x":1}}`},
		{name: "a null", beside: `null`},
		{name: "container, servers, edits", head: `"container":{"skills":[]},"mcp_servers":[{"type":"url","url":"u"}],"context_management":{"edits":[{"type":"clear_thinking_20251015"}]},"output_config":{"effort":"high"},"speed":"fast",`},
		{name: "other members of other types", head: `"thinking":{"type":{"x":1}},"stream":null,"max_tokens":"many","tool_choice":7,`},
		{name: "bytes that are no UTF-8", head: "\"x\":\"\xff\xc3\",", first: "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\xff\xfeb\"}]}", beside: "{\"type\":\"text\",\"text\":\"a\xff\xc3b\"}"},
		{name: "odd tools", tools: `,{"type":"mcp_toolset","mcp_server_name":"s"},{"type":"web_search_20250305","name":"web_search","max_uses":1.0},7,{"name":5}`},
	} {
		for _, treatment := range []string{proxy.Page, proxy.PageTrim, proxy.Observe} {
			t.Run(row.name+" "+treatment, func(t *testing.T) {
				r := newRig(t, proxy.Settings{Window: 3_000})
				history := []string{text("user", "q")}
				if row.first != "" {
					history = append(history, row.first)
				}
				if !strings.HasPrefix(row.first, `{"role":"system"`) {
					history = append(history, said(textBlock("well")), text("user", "go"))
				}
				var e exchanged
				var body []byte
				for i := range 12 {
					id := fmt.Sprint("c", i)
					answer := result(id, big)
					if row.beside != "" {
						answer = answer[:len(answer)-2] + "," + row.beside + "]}"
					}
					history = append(history, said(call(id, "Read", fmt.Sprintf(`{"file_path":"f%d.go"}`, i))), answer)
					all := history
					if row.last != "" {
						all = append(all[:len(all):len(all)], row.last)
					}
					body = bytes.Replace(request(all...), []byte(`{"model":"m","max_tokens":100,`), []byte(`{`+row.head+`"model":"m",`), 1)
					body = bytes.Replace(body, []byte(`}}}],"messages"`), []byte(`}}}`+row.tools+`],"messages"`), 1)
					e = r.exchange(treatment, body, reply("end_turn", textBlock("so")))
					for _, odd := range []string{row.head, row.first, row.last, row.beside, strings.TrimPrefix(row.tools, ",")} {
						if odd = strings.TrimSuffix(odd, "]}"); !strings.Contains(string(e.sent[0]), odd) {
							t.Fatalf("%s does not go out as it came: %s", odd, e.sent[0])
						}
					}
				}
				out := strings.Count(string(e.sent[0]), "[Paged out:")
				if paged := strings.Contains(treatment, "page"); paged != (out > 0) {
					t.Errorf("%d results are out: %s", out, e.sent[0])
				}
				noteIsLast(t, e, "[Context")
				r.restart()
				again := r.exchange(treatment, body, reply("end_turn", textBlock("so")))
				if now := strings.Count(string(again.sent[0]), "[Paged out:"); now != out {
					t.Errorf("%d results are out after a restart, %d before", now, out)
				}
				same(t, r)
			})
		}
	}
}
