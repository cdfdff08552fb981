//go:build !js

package worker_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/worker"
)

type entry struct {
	Seq     int64             `json:"seq"`
	ID      string            `json:"id"`
	Kind    string            `json:"kind"`
	Message *tidemark.Message `json:"message"`
	Overlay *tidemark.Overlay `json:"overlay"`
	Event   *tidemark.Event   `json:"event"`
}

type view struct {
	Size     int64              `json:"size"`
	Limit    int64              `json:"limit"`
	Window   int64              `json:"window"`
	Messages []tidemark.Message `json:"messages"`
	Overlays []string           `json:"overlays"`
	Items    []struct {
		ID, From, To, Overlay, Source string
		Role                          string
		Summary                       bool
		Tokens                        int64
		Blocks                        []struct {
			Type, Text string
			Tokens     int64
		}
	} `json:"items"`
}

// fill says enough for a compaction of a small window.
func fill(t *testing.T, s *server, key string) turn {
	t.Helper()
	s.text(200, "PATCH", "/v1/sessions/"+key, `{"window":4000,"title":"small"}`)
	for i := range 40 {
		got := s.say(key, fmt.Sprintf("Fact %d: the %dth lamp stands in room %d. %s", i, i, i*7, strings.Repeat("It is lit in the evening. ", 10)))
		if slices.ContainsFunc(got.Events, func(e tidemark.Event) bool { return e.Type == "compaction" }) {
			return got
		}
	}
	t.Fatal("no compaction")
	return turn{}
}

// TestCompaction: a window fills, the compaction is announced with its numbers, the view shows it,
// and undo brings the originals back.
func TestCompaction(t *testing.T) {
	s := serve(t, nil)
	got := fill(t, s, "main")
	if !strings.Contains(got.Events[0].Text, "Compacted") || len(got.Events[0].Data) == 0 {
		t.Errorf("event %+v", got.Events[0])
	}
	v := get[view](s, 200, "GET", "/v1/sessions/main/view", "")
	if v.Window != 4000 || v.Size > v.Limit || v.Limit >= v.Window || len(v.Overlays) == 0 || len(v.Items) == 0 {
		t.Fatalf("%+v", v)
	}
	sum := v.Items[0]
	if !sum.Summary || sum.Overlay != v.Overlays[0] || sum.From == "" || sum.To == "" || sum.Tokens == 0 || sum.Source != "system" ||
		!strings.HasPrefix(sum.Blocks[0].Text, "[Conversation summary") {
		t.Errorf("summary %+v", sum)
	}
	if err := tidemark.Check(v.Messages); err != nil {
		t.Error(err)
	}
	array := get[[]tidemark.Message](s, 200, "GET", "/v1/sessions/main/view?messages=1", "")
	if !reflect.DeepEqual(texts(array[:len(array)-1]), texts(v.Messages[:len(v.Messages)-1])) {
		t.Error("?messages=1 is not the messages of the view")
	}
	if strings.Contains(s.text(200, "GET", "/v1/sessions/main/view?messages=0", ""), `"messages"`) {
		t.Error("?messages=0 has messages")
	}
	type lifted struct {
		Size    int64
		Changed bool
	}
	undone := get[lifted](s, 200, "POST", "/v1/sessions/main/undo", `{"overlay":"`+v.Overlays[0]+`"}`)
	after := get[view](s, 200, "GET", "/v1/sessions/main/view", "")
	if len(after.Overlays) != 0 || after.Size != undone.Size || after.Items[0].Summary || len(after.Items) <= len(v.Items) {
		t.Errorf("after undo: %+v", after)
	}
	again := get[lifted](s, 200, "POST", "/v1/sessions/main/undo", `{"overlay":"`+v.Overlays[0]+`"}`)
	if !undone.Changed || again.Changed || again.Size != undone.Size {
		t.Errorf("lifted %+v, again %+v", undone, again)
	}
}

func texts(ms []tidemark.Message) []string {
	var out []string
	for _, m := range ms {
		out = append(out, string(m.AppendJSON(nil)))
	}
	return out
}

// TestActs: overlays and events without the messages, page by page, are those of the whole log.
func TestActs(t *testing.T) {
	s := serve(t, nil)
	for range 3 {
		fill(t, s, "main")
	}
	type page struct {
		Entries []entry
		Next    int64
	}
	read := func(query string) (all []entry) {
		for path := "/v1/sessions/main/log?" + query; ; {
			p := get[page](s, 200, "GET", path, "")
			if all = append(all, p.Entries...); p.Next == 0 {
				return all
			}
			path = fmt.Sprintf("/v1/sessions/main/log?%s&before=%d", query, p.Next)
		}
	}
	want := slices.DeleteFunc(read("limit=50"), func(e entry) bool { return e.Kind == "message" })
	if len(want) < 6 {
		t.Fatalf("%d overlays and events", len(want))
	}
	for _, query := range []string{"messages=0", "messages=0&limit=2", "messages=0&limit=1"} {
		if got := read(query); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %d entries, want %d: %+v", query, len(got), len(want), got)
		}
	}
	s.text(400, "GET", "/v1/sessions/main/log?messages=no", "")
}

// TestCommands: /compact and /reset wait in the queue, say what happened, and stream.
func TestCommands(t *testing.T) {
	s := serve(t, nil)
	fill(t, s, "main")
	nothing := get[turn](s, 200, "POST", "/v1/sessions/main/compact", `{"instructions":"keep lamps"}`)
	if len(nothing.Events) != 1 || nothing.Events[0].Type != "notice" || nothing.Text != nothing.Events[0].Text {
		t.Errorf("%+v", nothing)
	}
	before := get[tidemark.SessionInfo](s, 200, "GET", "/v1/sessions/main", "")
	data, names := s.listen("POST", "/v1/sessions/main/reset", `{"reason":"new subject"}`).until("done")
	var done turn
	if err := json.Unmarshal([]byte(data), &done); err != nil || done.Session == before.ID || len(done.Events) != 1 || done.Events[0].Type != "reset" ||
		!strings.Contains(done.Text, "new subject") || !slices.Contains(names, "event") {
		t.Errorf("%v %s %v", names, data, err)
	}
	after := get[tidemark.SessionInfo](s, 200, "GET", "/v1/sessions/main", "")
	if after.ID != done.Session || after.Previous != before.ID || after.Messages != 0 || after.Resets != 1 {
		t.Errorf("%+v", after)
	}
	if n := strings.Count(s.text(200, "GET", "/v1/sessions/main/log?format=jsonl", ""), "\n"); n != 0 {
		t.Errorf("%d messages behind the reset", n)
	}
	if n := strings.Count(s.text(200, "GET", "/v1/sessions/main/log?format=jsonl&all=1", ""), "\n"); n != before.Messages {
		t.Errorf("%d messages in all, want %d", n, before.Messages)
	}
}

func TestLog(t *testing.T) {
	s := serve(t, nil)
	for i := range 5 {
		s.say("main", fmt.Sprintf("Number %d is here.", i))
	}
	type page struct {
		Entries []entry
		Next    int64
	}
	var all []entry
	for path := "/v1/sessions/main/log?limit=3"; ; {
		p := get[page](s, 200, "GET", path, "")
		all = append(all, p.Entries...)
		if p.Next == 0 {
			break
		}
		path = fmt.Sprintf("/v1/sessions/main/log?limit=3&before=%d", p.Next)
	}
	if len(all) != 10 || !slices.IsSortedFunc(all, func(a, b entry) int { return int(b.Seq - a.Seq) }) {
		t.Fatalf("%d entries", len(all))
	}
	if got := all[9].Message.PlainText(); got != "Number 0 is here." {
		t.Errorf("the oldest is %q", got)
	}
	one := get[entry](s, 200, "GET", "/v1/sessions/main/entries/"+all[9].ID, "")
	if one.Seq != all[9].Seq || one.Message.PlainText() != "Number 0 is here." {
		t.Errorf("%+v", one)
	}
	s.say("other", "hello")
	s.text(404, "GET", "/v1/sessions/other/entries/"+all[9].ID, "")
	md := s.text(200, "GET", "/v1/sessions/main/log?format=md", "")
	if !strings.HasPrefix(md, "## user") || !strings.Contains(md, "Number 4 is here.") {
		t.Error(md)
	}
	type found struct{ Found []struct{ ID, Text string } }
	if got := get[found](s, 200, "GET", "/v1/sessions/main/search?q=number+3", ""); len(got.Found) == 0 || !strings.Contains(got.Found[0].Text, "3") {
		t.Errorf("%+v", got)
	}
	type calls struct {
		Calls []struct {
			N       int64
			Model   string
			Context int64
		}
		Next int64
	}
	first := get[calls](s, 200, "GET", "/v1/sessions/main/anatomy?limit=2", "")
	rest := get[calls](s, 200, "GET", fmt.Sprintf("/v1/sessions/main/anatomy?limit=100&before=%d", first.Next), "")
	if len(first.Calls) != 2 || len(rest.Calls) != 3 || rest.Next != 0 || first.Calls[0].Model != "offline" {
		t.Errorf("%+v %+v", first, rest)
	}
	type prompt struct {
		SHA256  string
		Same    bool
		Request json.RawMessage
	}
	p := get[prompt](s, 200, "GET", fmt.Sprintf("/v1/sessions/main/anatomy/%d/prompt", first.Calls[1].N), "")
	if !p.Same || p.SHA256 != string(tidemark.HashOf(p.Request)) || !strings.Contains(string(p.Request), "Number 3 is here.") || strings.Contains(string(p.Request), "Number 4 is here.") {
		t.Errorf("%+v", p)
	}
}

// claude is a log of another tool: a reply over two lines with a result between them, a line that is
// no JSON, and types that are no messages.
const claude = `{"type":"summary","summary":"x"}
{"type":"user","uuid":"1","timestamp":"2026-11-01T10:00:00Z","message":{"role":"user","content":"read two files"}}
{"type":"assistant","uuid":"2","parentUuid":"1","message":{"id":"m1","role":"assistant","model":"claude","content":[{"type":"tool_use","id":"t1","name":"Read","input":{"p":1.0}}]}}
{"type":"user","uuid":"3","parentUuid":"2","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"one"},{"type":"tool_result","tool_use_id":"t2","content":"two"}]}}
{"type":"assistant","uuid":"4","parentUuid":"3","message":{"id":"m1","role":"assistant","model":"claude","content":[{"type":"tool_use","id":"t2","name":"Read","input":{"p":2}}]}}
{"broken
{"type":"assistant","uuid":"5","message":{"id":"m2","role":"assistant","model":"claude","usage":{"input_tokens":9,"output_tokens":3},"content":[{"type":"text","text":"done"}]}}
`

type importing struct {
	Type                                                                        string
	Messages, Entries, Compactions, ArchivedParts, ContextTokens, Window, Limit int
	Skipped, BadLines                                                           int
	Warnings                                                                    []string
}

func TestImport(t *testing.T) {
	s := serve(t, nil)
	for _, format := range []string{"claude", "auto"} {
		got := get[importing](s, 200, "POST", "/v1/sessions/"+format+"/import?format="+format+"&window=9000", claude)
		if got.Type != "done" || got.Messages != 4 || got.BadLines != 1 || len(got.Warnings) != 1 || got.Window != 9000 {
			t.Errorf("%s: %+v", format, got)
		}
	}
	want := []string{
		`{"role":"user","content":"read two files"}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Read","input":{"p":1.0}},{"type":"tool_use","id":"t2","name":"Read","input":{"p":2}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"one"},{"type":"tool_result","tool_use_id":"t2","content":"two"}]}`,
		`{"role":"assistant","content":[{"type":"text","text":"done"}]}`,
	}
	exported := s.text(200, "GET", "/v1/sessions/claude/log?format=jsonl", "")
	if got := messagesOf(t, exported); !slices.Equal(got, want) {
		t.Errorf("exported\n%s", strings.Join(got, "\n"))
	}
	// What was exported can be imported, and imported again without effect.
	for i, skipped := range []int{0, 4} {
		got := get[importing](s, 200, "POST", "/v1/sessions/copy/import", exported)
		if got.Messages != 4 || got.Skipped != skipped || got.BadLines != 0 {
			t.Errorf("copy %d: %+v", i, got)
		}
	}
	if got := messagesOf(t, s.text(200, "GET", "/v1/sessions/copy/log?format=jsonl", "")); !slices.Equal(got, want) {
		t.Errorf("copied\n%s", strings.Join(got, "\n"))
	}
	get[fault](s, 409, "POST", "/v1/sessions/copy/import?format=jsonl", `{"role":"user","content":"another"}`)
	get[fault](s, 400, "POST", "/v1/sessions/bad/import?format=jsonl", `{"role":"user","content":"a"}`+"\n{broken\n")
}

func messagesOf(t *testing.T, jsonl string) []string {
	t.Helper()
	var out []string
	for line := range strings.Lines(jsonl) {
		var m tidemark.Message
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		out = append(out, string(m.AppendJSON(nil)))
	}
	return out
}

// TestImportStream: a long import tells how far it is, compacts on the way, and is bounded in memory
// only where the host has no disk.
func TestImportStream(t *testing.T) {
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, `{"role":"user","content":"question %d about the harbour, %s"}`+"\n", i, strings.Repeat("with words ", 10))
		fmt.Fprintf(&b, `{"role":"assistant","content":"answer %d"}`+"\n", i)
	}
	s := serve(t, func(c *worker.Config, _ *actors) { c.MaxSpool = 10 << 10 })
	data, names := s.listen("POST", "/v1/sessions/long/import?format=jsonl&window=20000", b.String()).until("done")
	var got importing
	if err := json.Unmarshal([]byte(data), &got); err != nil || got.Messages != 2000 || got.Compactions == 0 || got.ArchivedParts != got.Compactions || got.ContextTokens > got.Limit {
		t.Errorf("%s %v", data, err)
	}
	if n := len(names); n < 10 || names[0] != "progress" {
		t.Errorf("events %v", names)
	}
	if n := strings.Count(s.text(200, "GET", "/v1/sessions/long/log?format=jsonl", ""), "\n"); n != 2000 {
		t.Errorf("%d messages exported", n)
	}
	get[fault](s, 413, "POST", "/v1/sessions/spool/import?format=claude", strings.Repeat(claude, 20))
	if got := get[importing](s, 200, "POST", "/v1/sessions/spool/import?format=claude", claude); got.Messages != 4 {
		t.Errorf("from memory: %+v", got)
	}
}

func TestArchives(t *testing.T) {
	s := serve(t, nil)
	fill(t, s, "main")
	before := messagesOf(t, s.text(200, "GET", "/v1/sessions/main/log?format=jsonl", ""))
	s.text(200, "POST", "/v1/sessions/main/reset", "")
	type list struct {
		Archives []struct {
			Key          string
			MessageCount int
			PartNumber   int
		}
	}
	l := get[list](s, 200, "GET", "/v1/agents/main/archives", "")
	at := slices.IndexFunc(l.Archives, func(a struct {
		Key          string
		MessageCount int
		PartNumber   int
	}) bool {
		return a.PartNumber == 0
	})
	if len(l.Archives) < 2 || at < 0 || l.Archives[at].MessageCount != len(before) {
		t.Fatalf("%+v", l)
	}
	name := strings.TrimPrefix(l.Archives[at].Key, "agents/main/sessions/")
	res := s.do("GET", "/v1/agents/main/archives/"+name, "")
	raw, err := io.ReadAll(res.Body)
	if err != nil || res.ContentLength != int64(len(raw)) || res.Header.Get("Content-Type") != "application/gzip" {
		t.Errorf("%d bytes, %v, %v", len(raw), res.Header, err)
	}
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil || !slices.Equal(messagesOf(t, string(plain)), before) {
		t.Errorf("the archive is not the history: %v", err)
	}
	if got := messagesOf(t, s.text(200, "GET", "/v1/agents/main/archives/"+name+"?format=jsonl", "")); !slices.Equal(got, before) {
		t.Error("decoded, the archive is not the history")
	}
	type hits struct {
		Hits []struct{ Key, Snippet string }
	}
	if got := get[hits](s, 200, "GET", "/v1/agents/main/archives-search?q=lamp+room+7", ""); len(got.Hits) == 0 || !strings.Contains(got.Hits[0].Snippet, "lamp") {
		t.Errorf("%+v", got)
	}
	type verdicts struct{ OK, Bad int }
	if got := get[verdicts](s, 200, "POST", "/v1/agents/main/archives-verify", ""); got.Bad != 0 || got.OK != len(l.Archives) {
		t.Errorf("%+v", got)
	}
	if got := get[verdicts](s, 200, "POST", "/v1/agents/main/archives-verify", `{"archive":"`+name+`"}`); got.OK != 1 {
		t.Errorf("%+v", got)
	}
	if data, _ := s.listen("POST", "/v1/agents/main/archives-verify", "").until("done"); !strings.Contains(data, `"bad":0`) {
		t.Error(data)
	}
	for i, skipped := range []int{0, len(before)} { // twice is once
		got := get[importing](s, 200, "POST", "/v1/sessions/again/restore", `{"archive":"`+name+`"}`)
		if got.Messages != len(before) || got.Skipped != skipped {
			t.Errorf("restore %d: %+v", i, got)
		}
	}
	if got := messagesOf(t, s.text(200, "GET", "/v1/sessions/again/log?format=jsonl", "")); !slices.Equal(got, before) {
		t.Error("the restored session is not the history")
	}
	s.say("taken", "hello")
	get[fault](s, 409, "POST", "/v1/sessions/taken/restore", `{"archive":"`+name+`"}`)
}

func TestMemory(t *testing.T) {
	s := serve(t, nil)
	const path = "/v1/agents/main/memory/MEMORY.md"
	s.text(200, "PUT", path, "- first\n", "If-None-Match", "*")
	res := s.do("GET", path, "")
	etag := res.Header.Get("ETag")
	raw, _ := io.ReadAll(res.Body)
	if string(raw) != "- first\n" || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/markdown") || len(etag) < 3 {
		t.Errorf("%q %v", raw, res.Header)
	}
	s.text(304, "GET", path, "", "If-None-Match", etag)
	for _, tc := range []struct {
		name, header, value string
		status              int
	}{
		{"there already", "If-None-Match", "*", 412},
		{"changed", "If-Match", `"other"`, 412},
		{"no ETag", "If-Match", `other`, 400},
		{"list of ETags", "If-None-Match", `"a"`, 400},
		{"the right one", "If-Match", etag, 200},
		{"whatever is there", "If-Match", "*", 200},
	} {
		if got := s.do("PUT", path, "- "+tc.name+"\n", tc.header, tc.value).StatusCode; got != tc.status {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.status)
		}
	}
	type list struct {
		Files []struct {
			Path string
			Size int
		}
		Versions []struct {
			ID int64
			By string
		}
		Found []struct{ Path, Text string }
	}
	if l := get[list](s, 200, "GET", "/v1/agents/main/memory", ""); len(l.Files) != 1 || l.Files[0].Path != "MEMORY.md" {
		t.Errorf("%+v", l)
	}
	l := get[list](s, 200, "GET", path+"?versions=1", "")
	if len(l.Versions) != 3 || l.Versions[0].By == "" {
		t.Fatalf("%+v", l)
	}
	if got := s.text(200, "GET", fmt.Sprintf("%s?version=%d", path, l.Versions[1].ID), ""); got != "- first\n" {
		t.Errorf("version %q", got)
	}
	s.text(404, "GET", path+"?version=999", "")
	s.text(200, "POST", "/v1/agents/main/memory-undo", `{"path":"MEMORY.md"}`)
	if got := s.text(200, "GET", path, ""); got != "- the right one\n" {
		t.Errorf("after undo %q", got)
	}
	if l := get[list](s, 200, "GET", "/v1/agents/main/memory-search?q=right+one", ""); len(l.Found) == 0 || l.Found[0].Path != "MEMORY.md" {
		t.Errorf("%+v", l)
	}
}

func TestSessions(t *testing.T) {
	s := serve(t, nil)
	for _, key := range []string{"main", "garden", "agent:main:whatsapp:dm:+49123"} {
		s.say(key, "hello")
	}
	s.text(404, "POST", "/v1/sessions/agent:main:main%23try/messages", `{"text":"hello"}`) // no branch of nothing
	s.text(201, "POST", "/v1/sessions/main/branch", `{"name":"try"}`)
	s.say("agent:main:main%23try", "hello")
	s.settle()
	type list struct {
		Sessions []tidemark.SessionInfo
		Next     string
	}
	var keys []string
	for cursor := ""; ; {
		p := get[list](s, 200, "GET", "/v1/sessions?limit=3&cursor="+url.QueryEscape(cursor), "")
		for _, i := range p.Sessions {
			keys = append(keys, string(i.Key))
		}
		if cursor = p.Next; cursor == "" {
			break
		}
	}
	slices.Sort(keys)
	if want := []string{"agent:main:local:dm:garden", "agent:main:main", "agent:main:main#try", "agent:main:whatsapp:dm:+49123"}; !slices.Equal(keys, want) {
		t.Errorf("%v", keys)
	}
	if l := get[list](s, 200, "GET", "/v1/sessions?agent=empty", ""); l.Sessions == nil || len(l.Sessions) != 0 {
		t.Errorf("%+v", l)
	}
	type one struct {
		Title    string
		Window   int
		Settings map[string]any
	}
	set := get[one](s, 200, "PATCH", "/v1/sessions/garden", `{"title":"Garden","window":5000}`)
	if set.Title != "Garden" || set.Window != 5000 {
		t.Errorf("%+v", set)
	}
	back := get[one](s, 200, "PATCH", "/v1/sessions/garden", `{"window":null}`)
	if back.Title != "Garden" || back.Window != 200_000 || !reflect.DeepEqual(back.Settings, map[string]any{"title": "Garden"}) {
		t.Errorf("%+v", back)
	}
}
