package proxy_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/provider/offline"
	"github.com/tidemark-ai/tidemark/proxy"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/room/anatomy"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/setup"
)

// fault asks for names behind a history and returns what we answer the model.
func (r *rig) fault(history []string, names ...string) tidemark.Block {
	r.t.Helper()
	list, err := json.Marshal(names)
	if err != nil {
		r.t.Fatal(err)
	}
	e := r.exchange(proxy.Page, request(history...), reply("tool_use", call("p1", paging.FaultTool, `{"paths":`+string(list)+`}`)), reply("end_turn", textBlock("ok")))
	m := e.messages(r.t, 1)
	return m[len(m)-1].Content[0]
}

// textsOf are the texts of a result.
func textsOf(b tidemark.Block) (out []string) {
	for _, c := range b.Content {
		out = append(out, c.Text)
	}
	return out
}

// readOf is a read of a file with what it gave.
func readOf(id, file, s string) []string {
	return []string{said(call(id, "Read", `{"file_path":"`+file+`"}`)), result(id, s)}
}

// editOf is an edit of a file.
func editOf(id, file string) []string {
	return []string{said(call(id, "Edit", `{"file_path":"`+file+`","old_string":"a","new_string":"b"}`)), result(id, "done")}
}

// TestFaultNames: of a path the newest copy is given, of a handle the one that it names; what is not known is said so, and
// what is none of this conversation is not found.
func TestFaultNames(t *testing.T) {
	history := []string{text("user", "q")}
	history = append(history, readOf("c1", "a.go", "the old words")...)
	first := handle(t, 0, history...)
	history = append(history, readOf("c2", "b.go", "others")...)
	history = append(history, readOf("c3", "a.go", "the new words")...)
	other := newRig(t, proxy.Settings{})
	other.exchange(proxy.Page, request(text("user", "a secret")), reply("end_turn", textBlock("yes")))
	foreign := handle(t, 0, text("user", "a secret"))
	for name, row := range map[string]struct {
		names  []string
		want   []string // what is given
		none   []string // what is not
		failed bool
	}{
		"a path":              {[]string{"a.go"}, []string{"the new words"}, []string{"the old words"}, false},
		"a path, not clean":   {[]string{"./a.go"}, []string{"the new words"}, []string{"the old words"}, false},
		"a handle":            {[]string{first}, []string{"the old words"}, []string{"the new words"}, false},
		"a handle of a tag":   {[]string{"block:" + first}, []string{"the old words"}, nil, false},
		"several":             {[]string{"b.go", first}, []string{"others", "the old words"}, nil, false},
		"unknown":             {[]string{"no.go"}, []string{"no.go is not in this conversation"}, nil, true},
		"one is unknown":      {[]string{"no.go", "b.go"}, []string{"no.go is not in this conversation", "others"}, nil, false},
		"of another":          {[]string{foreign}, []string{foreign + " is not in this conversation"}, []string{"secret"}, true},
		"no such block":       {[]string{strings.TrimSuffix(first, "0") + "7"}, []string{"it was not found"}, nil, true},
		"one behind the last": {[]string{strings.TrimSuffix(first, "0") + "1"}, []string{"it was not found"}, nil, true},
		"below zero":          {[]string{strings.TrimSuffix(first, "0") + "-1"}, []string{"is not in this conversation"}, nil, true},
		"twice":               {[]string{"b.go", "b.go"}, []string{"others", "stands in an answer above"}, nil, false},
		"none":                {[]string{}, []string{"0 names"}, nil, true},
		"a name that is long": {[]string{strings.Repeat("x", 5000)}, []string{strings.Repeat("x", 200) + "… is not"}, []string{strings.Repeat("x", 201)}, true},
		"two lines":           {[]string{"a\nb"}, []string{"a b is not"}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, proxy.Settings{})
			b := r.fault(history, row.names...)
			got := strings.Join(textsOf(b), "\n")
			for _, s := range row.want {
				if strings.Count(got, s) != 1 {
					t.Errorf("want %q once in\n%s", s, got)
				}
			}
			for _, s := range row.none {
				if strings.Contains(got, s) {
					t.Errorf("%q stands in\n%s", s, got)
				}
			}
			if b.IsError != row.failed {
				t.Errorf("failed: %t\n%s", b.IsError, got)
			}
		})
	}
}

// TestFaultBounds: one call names no more than so many, and one answer gives back no more than so much.
func TestFaultBounds(t *testing.T) {
	var names []string
	for i := range paging.MaxHandles + 1 {
		names = append(names, fmt.Sprintf("f%d.go", i))
	}
	r := newRig(t, proxy.Settings{})
	history := append([]string{text("user", "q")}, readOf("c1", "f1.go", "words")...)
	if b := r.fault(history, names...); !b.IsError || len(b.Content) != 1 || !strings.HasPrefix(b.Content[0].Text, fmt.Sprint(len(names), " names")) {
		t.Errorf("%d names: %s", len(names), b.AppendJSON(nil))
	}
	if b := newRig(t, proxy.Settings{}).fault(history, names[:len(names)-1]...); b.IsError || !strings.Contains(fmt.Sprint(textsOf(b)), "words") {
		t.Errorf("%d names: %s", len(names)-1, b.AppendJSON(nil))
	}
	history = []string{text("user", "q")}
	for i := range 3 {
		history = append(history, readOf(fmt.Sprint("c", i), fmt.Sprintf("f%d.go", i), strings.Repeat(fmt.Sprint("line of ", i, "\n"), 200_000/10))...)
	}
	b := newRig(t, proxy.Settings{}).fault(history, "f0.go", "f1.go", "f2.go")
	if n := len(b.AppendJSON(nil)); n > 600<<10 || b.IsError {
		t.Errorf("%d bytes are given back", n)
	}
	last := b.Content[len(b.Content)-1].Text
	if !strings.HasPrefix(last, "f2.go has 2") || !strings.Contains(last, "more than one answer holds") || !strings.HasPrefix(b.Content[3].Text, "line of 1\n") {
		t.Errorf("%d blocks, the last %q", len(b.Content), last[:min(len(last), 200)])
	}
}

// TestChangedAfter: a copy says that its file was changed after it where that is so, and not where it was before or
// of another file.
func TestChangedAfter(t *testing.T) {
	read, edit, elsewhere := readOf("c1", "a.go", "the words"), editOf("c2", "a.go"), editOf("c3", "b.go")
	failed := []string{edit[0], strings.Replace(edit[1], `"type":"tool_result"`, `"type":"tool_result","is_error":true`, 1)}
	for name, row := range map[string]struct {
		parts [][]string
		want  bool
	}{
		"later, in vain":    {[][]string{read, failed}, false},
		"never":             {[][]string{read}, false},
		"later":             {[][]string{read, edit}, true},
		"before":            {[][]string{edit, read}, false},
		"of another":        {[][]string{read, elsewhere}, false},
		"before and after":  {[][]string{edit, read, editOf("c4", "a.go")}, true},
		"before, and other": {[][]string{edit, read, elsewhere}, false},
		"only read again":   {[][]string{read, readOf("c5", "a.go", "the words")}, false},
	} {
		history := []string{text("user", "q")}
		for _, p := range row.parts {
			history = append(history, p...)
		}
		at := handle(t, 0, append([]string{text("user", "q")}, flat(row.parts[:1+index(row.parts, read)]...)...)...)
		b := newRig(t, proxy.Settings{}).fault(history, at)
		head := b.Content[0].Text
		if strings.Contains(head, "a.go was changed after") != row.want || b.Content[1].Text != "the words" {
			t.Errorf("%s: %q", name, textsOf(b))
		}
	}
}

func flat(parts ...[]string) (out []string) {
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func index(parts [][]string, part []string) int {
	for i := range parts {
		if &parts[i][0] == &part[0] {
			return i
		}
	}
	return -1
}

// TestForeignStore: with the same store under it, a conversation does not find what another one said.
func TestForeignStore(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	r.exchange(proxy.Page, request(text("user", "a secret")), reply("end_turn", textBlock("yes")))
	var id string
	for e, err := range r.s.Reader.All(t.Context(), false) {
		if err != nil {
			t.Fatal(err)
		}
		id = string(e.ID)
		break
	}
	const second tidemark.Key = "agent:main:proxy:dm:ffffffffffffffffffffffffffffffff"
	ag, err := agent.New(agent.Config{Name: "main", DB: r.db, Blobs: r.blobs, Runtime: r.rt})
	if err != nil {
		t.Fatal(err)
	}
	home, err := session.Open(t.Context(), session.Config{Key: second, DB: r.db, Blobs: r.blobs, Runtime: r.rt, Agent: ag, Provider: offline.Model{}, Rooms: []room.Maker{anatomy.Make}})
	if err != nil {
		t.Fatal(err)
	}
	place, err := setup.Home(t.Context(), home)
	if err != nil {
		t.Fatal(err)
	}
	c, err := proxy.Open(t.Context(), proxy.Config{Key: second, DB: r.db, Home: place, Runtime: r.rt})
	if err != nil {
		t.Fatal(err)
	}
	o := &rig{t: t, c: c}
	if b := o.fault([]string{text("user", "q")}, id+"#0"); !b.IsError || bytes.Contains(b.AppendJSON(nil), []byte("secret")) {
		t.Errorf("given back %s", b.AppendJSON(nil))
	}
}

// TestReleaseNames: what is let go is said, and what is not known.
func TestReleaseNames(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	history := append([]string{text("user", "q")}, readOf("c1", "a.go", strings.Repeat("words ", 200))...)
	e := r.exchange(proxy.Page, request(history...), reply("tool_use", call("p1", paging.ReleaseTool, `{"paths":["a.go","no.go"]}`), call("p2", paging.ReleaseTool, `{"paths":["no.go"]}`),
		call("p3", paging.ReleaseTool, `{"paths":"a.go"}`)), reply("end_turn", textBlock("ok")))
	m := e.messages(t, 1)
	got := m[len(m)-1].Content
	if len(got) != 3 || got[0].IsError || !got[1].IsError || !got[2].IsError || !strings.HasPrefix(got[0].Content[0].Text, "Released: a.go.") || !strings.Contains(got[0].Content[0].Text, "Not in this conversation: no.go.") {
		t.Errorf("answered %s", m[len(m)-1].AppendJSON(nil))
	}
}

// TestLegsBounded: a model that calls nothing but our tools is called so often and no more, and the client has an answer.
func TestLegsBounded(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	var answers [][]byte
	for i := range 8 {
		answers = append(answers, reply("tool_use", textBlock(fmt.Sprint("try ", i)), call(fmt.Sprint("p", i), paging.FaultTool, `{"paths":["no.go"]}`)))
	}
	e := r.exchange(proxy.Page, request(text("user", "q")), answers...)
	if !bytes.Contains(e.got, []byte("try 7")) || !bytes.Contains(e.got, []byte(`"stop_reason":"end_turn"`)) || bytes.Contains(e.got, []byte("memory_fault")) {
		t.Errorf("the client got %s", e.got)
	}
}
