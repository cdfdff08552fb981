package agent_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/skill"
)

// call runs a tool with an input.
func (w *world) call(s tidemark.Scope, tool string, in map[string]any) (string, bool) {
	w.t.Helper()
	raw, err := json.Marshal(in)
	if err != nil {
		w.t.Fatal(err)
	}
	b := w.Call(w.t.Context(), s, tidemark.ToolUse("call1", tool, raw))
	if b.Type != tidemark.TypeToolResult || b.ToolUseID != "call1" || len(b.Content) != 1 {
		w.t.Fatalf("%s gave %+v", tool, b)
	}
	return b.Content[0].Text, !b.IsError
}

// TestIsolation plants a word in each file and looks for it from each conversation through the
// prompt and every tool. Only the listed ones may see it.
func TestIsolation(t *testing.T) {
	w := newWorld(t)
	scopes := map[string]tidemark.Scope{
		"main": scope(t, "main"), "garden": scope(t, "garden"),
		"alice": scope(t, "agent:main:whatsapp:dm:+491"), "bob": scope(t, "agent:main:whatsapp:dm:+492"),
		"group": scope(t, "agent:main:whatsapp:group:g1"), "stranger": {Agent: "main", Key: "agent:main:x:dm:y"},
	}
	w.remember(scopes["main"], "m", "plantedowner")
	w.remember(scopes["alice"], "a", "plantedalice")
	w.remember(scopes["bob"], "b", "plantedbob")
	w.remember(scopes["group"], "g", "plantedgroup")
	for _, f := range []string{"MEMORY", "SOUL", "IDENTITY", "USER", "AGENTS", "TOOLS"} {
		write(t, w.blobs, f+".md", "planted"+strings.ToLower(f)+"\n")
	}
	write(t, w.blobs, "secrets.txt", "plantedsecret")
	w.settle()
	peer := func(name string) string { return memory.PeerDaily(scopes[name].Peer, "2026-11-21") }
	rows := []struct{ word, path, prompt, tools string }{
		{"plantedmemory", "MEMORY.md", "main", "main"},
		{"plantedsoul", "SOUL.md", "main", "main"},
		{"plantedidentity", "IDENTITY.md", "main", "main"},
		{"planteduser", "USER.md", "main", "main"},
		{"plantedagents", "AGENTS.md", "main", "main"},
		{"plantedtools", "TOOLS.md", "main", "main"},
		{"plantedowner", day, "main garden", "main garden"},
		{"plantedalice", peer("alice"), "alice", "alice main garden"},
		{"plantedbob", peer("bob"), "bob", "bob main garden"},
		{"plantedgroup", peer("group"), "group", "group main garden"},
		{"plantedsecret", "secrets.txt", "", ""},
		{"plantedsecret", "memory/../secrets.txt", "", ""},
		{"plantedmemory", "memory/../MEMORY.md", "", "main"}, // the word is found by search, never by this path
		{"plantedmemory", "agents/main/MEMORY.md", "main", "main"},
	}
	for _, r := range rows {
		for name, s := range scopes {
			t.Run(r.path+" "+name, func(t *testing.T) {
				prompt, err := w.Prompt(t.Context(), s, noon)
				if err != nil {
					t.Fatal(err)
				}
				inPrompt, inTools := contains(r.prompt, name), contains(r.tools, name)
				if r.path != "memory/../MEMORY.md" && strings.Contains(prompt, r.word) != inPrompt {
					t.Errorf("in the prompt: %v, want %v", !inPrompt, inPrompt)
				}
				read, ok := w.call(s, agent.ToolRead, map[string]any{"path": r.path})
				canRead := inTools && !strings.Contains(r.path, "..")
				if ok != canRead || strings.Contains(read, r.word) != canRead {
					t.Errorf("memory_read: %v %q, want %v", ok, read, canRead)
				}
				found, _ := w.call(s, agent.ToolSearch, map[string]any{"query": r.word})
				if strings.Contains(found, r.word) != inTools {
					t.Errorf("memory_search: %q, want %v", found, inTools)
				}
				list, ok := w.call(s, agent.ToolRead, map[string]any{})
				if !ok || memory.CheckPath(r.path) == nil && strings.Contains(list, r.path) != inTools {
					t.Errorf("memory_read without a path: %v %q, want %v", ok, list, inTools)
				}
			})
		}
	}
}

func contains(names, name string) bool {
	for n := range strings.FieldsSeq(names) {
		if n == name {
			return true
		}
	}
	return false
}

func TestForeignScope(t *testing.T) {
	w := newWorld(t)
	w.remember(scope(t, "main"), "m", "planted")
	other := scope(t, "agent:other:main")
	if text, err := w.Prompt(t.Context(), other, noon); err == nil || text != "" {
		t.Errorf("prompt %q, %v", text, err)
	}
	if tools := w.Tools(other); tools != nil {
		t.Errorf("tools %v", tools)
	}
	if text, ok := w.call(other, agent.ToolSearch, map[string]any{"query": "planted"}); ok {
		t.Errorf("search: %q", text)
	}
}

func TestTools(t *testing.T) {
	w := newWorld(t)
	names := func(s tidemark.Scope) string {
		var out []string
		for _, tool := range w.Tools(s) {
			out = append(out, tool.Name)
			if !json.Valid(tool.InputSchema) {
				t.Errorf("schema of %s: %s", tool.Name, tool.InputSchema)
			}
		}
		return strings.Join(out, " ")
	}
	if got := names(scope(t, "main")); got != "memory_read memory_append memory_search schedule memory_edit skill" {
		t.Errorf("main has %s", got)
	}
	for _, tool := range w.Tools(scope(t, "main")) {
		want := map[string]string{"memory_read": "from path to", "memory_append": "text!", "memory_search": "query!", "schedule": "do! id prompt when", "memory_edit": "new old path! undo", "skill": "file from name! to"}
		var s struct {
			Type       string                     `json:"type"`
			Properties map[string]json.RawMessage `json:"properties"`
			Required   []string                   `json:"required"`
		}
		if err := json.Unmarshal(tool.InputSchema, &s); err != nil || s.Type != "object" {
			t.Errorf("%s: %+v, %v", tool.Name, s, err)
		}
		var has []string
		for name := range s.Properties {
			if slices.Contains(s.Required, name) {
				name += "!"
			}
			has = append(has, name)
		}
		if slices.Sort(has); strings.Join(has, " ") != want[tool.Name] {
			t.Errorf("%s takes %v", tool.Name, has)
		}
	}
	if got := names(scope(t, "garden")); got != "memory_read memory_append memory_search schedule skill" {
		t.Errorf("garden has %s", got)
	}
	for _, key := range []string{"agent:main:whatsapp:dm:+491", "agent:main:schedule:dm:s1", "agent:main:proxy:dm:x"} {
		if got := names(scope(t, key)); got != "memory_read memory_append memory_search skill" {
			t.Errorf("%s has %s", key, got)
		}
	}
	always := slices.DeleteFunc(w.Tools(scope(t, "main")), func(t tidemark.Tool) bool { return t.Name == skill.Tool }) // that one only where there are skills
	raw, err := json.Marshal(always)
	if err != nil {
		t.Fatal(err)
	}
	if n := tidemark.EstimateText(string(raw)); n > 490 { // of 1,500 for all built-in tools, see session.TestToolBudget
		t.Errorf("the schemas take %d tokens", n)
	}
}

func TestBadCalls(t *testing.T) {
	w := newWorld(t)
	write(t, w.blobs, "MEMORY.md", "one\ntwo\ntwo\n")
	rows := []struct {
		name, key, tool, input, want string
	}{
		{"unknown tool", "main", "rm", `{}`, "not found"},
		{"wrong type", "main", "memory_read", `{"path":7}`, "not as its schema says"},
		{"no object", "main", "memory_read", `[]`, "not as its schema says"},
		{"missing file", "main", "memory_read", `{"path":"memory/2020-01-01.md"}`, "not found"},
		{"lines out of range", "main", "memory_read", `{"path":"MEMORY.md","from":99}`, "has 3 lines"},
		{"empty text", "main", "memory_append", `{"text":" "}`, "want 1 to"},
		{"long text", "main", "memory_append", `{"text":"` + strings.Repeat("x", 8<<10+1) + `"}`, "want 1 to"},
		{"edit by a peer", "agent:main:x:dm:y", "memory_edit", `{"path":"MEMORY.md","old":"one","new":"1"}`, "only the owner's main session"},
		{"no words", "main", "memory_search", `{"query":"…"}`, "no words"},
		{"edit from a side session", "garden", "memory_edit", `{"path":"MEMORY.md","old":"one","new":"1"}`, "only the owner's main session"},
		{"edit of a daily file", "main", "memory_edit", `{"path":"memory/2026-11-21.md","old":"","new":"1"}`, "only MEMORY.md"},
		{"edit outside", "main", "memory_edit", `{"path":"../../x","old":"","new":"1"}`, "only MEMORY.md"},
		{"ambiguous edit", "main", "memory_edit", `{"path":"MEMORY.md","old":"two","new":"1"}`, "occurs 2 times"},
		{"missing text", "main", "memory_edit", `{"path":"MEMORY.md","old":"three","new":"1"}`, "not in the file"},
		{"empty edit", "main", "memory_edit", `{"path":"MEMORY.md"}`, "give old, new or undo"},
		{"nothing to undo", "main", "memory_edit", `{"path":"SOUL.md","undo":true}`, "no such file"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			b := w.Call(t.Context(), scope(t, r.key), tidemark.ToolUse("c", r.tool, json.RawMessage(r.input)))
			if !b.IsError || !strings.Contains(b.Content[0].Text, r.want) {
				t.Errorf("%v %q, want an error with %q", b.IsError, b.Content[0].Text, r.want)
			}
		})
	}
	if got := w.stored("MEMORY.md"); got != "one\ntwo\ntwo\n" {
		t.Errorf("MEMORY.md became %q", got)
	}
}

func TestAppendTool(t *testing.T) {
	w := newWorld(t)
	main := scope(t, "main")
	for range 2 { // the second time is the call run again after a crash
		if text, ok := w.call(main, agent.ToolAppend, map[string]any{"text": "- Alice is my sister\n- Bob is not"}); !ok {
			t.Fatal(text)
		}
		w.clock.move(3e9)
	}
	got := w.stored(day)
	if !strings.HasPrefix(got, "### Noted in conversation (14:30)\n") || strings.Count(got, "Alice is my sister") != 1 || strings.Count(got, "- Bob is not") != 1 {
		t.Errorf("file\n%s", got)
	}
	if text, ok := w.call(main, agent.ToolAppend, map[string]any{"text": strings.Repeat("x ", 4<<10)}); !ok {
		t.Error(text)
	}
	alice := scope(t, "agent:main:whatsapp:dm:+491")
	if text, ok := w.call(alice, agent.ToolAppend, map[string]any{"text": "call me Al"}); !ok || !strings.Contains(text, "memory/peers/whatsapp~+491/2026-11-21.md") {
		t.Errorf("%v %q", ok, text)
	}
	if got := w.stored(memory.PeerDaily("whatsapp:+491", "2026-11-21")); !strings.Contains(got, "- call me Al\n") {
		t.Errorf("the peer's file\n%s", got)
	}
	if got := w.stored(day); strings.Contains(got, "call me Al") {
		t.Errorf("it is in the owner's file\n%s", got)
	}
}

func TestReadTool(t *testing.T) {
	w := newWorld(t)
	var b strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	write(t, w.blobs, day, b.String())
	write(t, w.blobs, "memory/2026-11-20.md", strings.Repeat("é", 40_000))
	full := strings.Repeat("x", 16<<10-1)
	write(t, w.blobs, "memory/2026-11-19.md", full+"\n"+full+"\nthird\n")
	write(t, w.blobs, "memory/2026-11-18.md", full+"\n"+full+"y\n")
	write(t, w.blobs, "memory/2026-11-17.md", strings.Repeat("z", 32<<10-1))
	write(t, w.blobs, "memory/2026-11-16.md", strings.Repeat("z", 32<<10))
	main := scope(t, "main")
	rows := []struct {
		name         string
		in           map[string]any
		first, last  string
		want, refuse string
	}{
		{"whole", map[string]any{"path": day}, "line 1\n", "[lines 1 to 400 of 3000]", "line 400\n", "line 401\n"},
		{"piece", map[string]any{"path": day, "from": 2998, "to": 2999}, "line 2998\n", "[lines 2998 to 2999 of 3000]", "line 2999\n", "line 3000\n"},
		{"end", map[string]any{"path": day, "from": 3000, "to": 9000}, "line 3000\n", "[lines 3000 to 3000 of 3000]", "", "line 2999\n"},
		{"two lines of what is read at once", map[string]any{"path": "memory/2026-11-19.md"}, full + "\n" + full + "\n", "[lines 1 to 2 of 3]", "", "third"},
		{"a byte more", map[string]any{"path": "memory/2026-11-18.md"}, full + "\n", "[lines 1 to 1 of 2]", "", "y"},
		{"a line of what is read at once", map[string]any{"path": "memory/2026-11-17.md"}, "z", "z", "", "["},
		{"a byte longer", map[string]any{"path": "memory/2026-11-16.md"}, "z", "[line 1 is longer than this]", "", "[lines"},
		{"400 of its lines", map[string]any{"path": day, "from": 2, "to": 401}, "line 2\n", "[lines 2 to 401 of 3000]", "line 401\n", "line 402\n"},
		{"one more", map[string]any{"path": day, "from": 2, "to": 402}, "line 2\n", "[lines 2 to 401 of 3000]", "line 401\n", "line 402\n"},
		{"no lines", map[string]any{"path": day, "from": -3, "to": 1}, "line 1\n", "[lines 1 to 1 of 3000]", "", "line 2\n"},
		{"one long line", map[string]any{"path": "memory/2026-11-20.md"}, "é", "[line 1 is longer than this]", "", "\ufffd"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			text, ok := w.call(main, agent.ToolRead, r.in)
			if !ok || !strings.HasPrefix(text, r.first) || !strings.HasSuffix(text, r.last) || !strings.Contains(text, r.want) || strings.Contains(text, r.refuse) || len(text) > 40_000 {
				t.Errorf("%v %d bytes: %.60q…", ok, len(text), text)
			}
		})
	}
}

func TestSearch(t *testing.T) {
	w := newWorld(t)
	main := scope(t, "main")
	w.remember(main, "x1", "The deploy pipeline runs on GitHub Actions", "Uses max_key_part in key.go")
	write(t, w.blobs, "memory/2019-01-01.md", "- The boat is called Möwe\n")
	old := extraction(main, "x2", "東京タワー was closed in 2020", "An old fact about zeppelins")
	old.At = noon.AddDate(-3, 0, 0)
	if err := w.Remember(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	w.settle()
	for i := range 40 { // so many newer days that the old ones are no longer read
		write(t, w.blobs, fmt.Sprintf("memory/2026-%02d-%02d.md", 1+i/20, 1+i%20), "- filler\n")
	}
	if text, ok := w.call(main, agent.ToolSearch, map[string]any{"query": "zeppelins"}); !ok || text != "memory/2023-11-21.md: An old fact about zeppelins" {
		t.Errorf("%q", text)
	}
	rows := []struct{ name, query, want, path string }{
		{"word", "pipeline", "The deploy pipeline runs on GitHub Actions", day},
		{"part of an identifier", "key_part", "Uses max_key_part in key.go", day},
		{"identifier", "max_key_part", "Uses max_key_part in key.go", day},
		{"old fact, by the ledger", "zeppelins", "An old fact about zeppelins", "memory/2023-11-21.md"},
		{"no spaces", "タワー", "東京タワー was closed in 2020", "memory/2023-11-21.md"},
		{"hostile", `") OR 1 NEAR(deploy`, "The deploy pipeline runs on GitHub Actions", day},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			found, err := w.Search(t.Context(), main, r.query, 5)
			if err != nil || len(found) == 0 || found[0].Text != r.want || found[0].Path != r.path || found[0].Session != "01SESSION" || len(found[0].Sources) != 2 {
				t.Errorf("%+v, %v", found, err)
			}
		})
	}
}

// TestPromptBudget has a day of 1 MB: the prompt stays within its budget and has the newest line.
func TestPromptBudget(t *testing.T) {
	w := newWorld(t)
	w.cfg.Budget = 5000
	w.restart()
	var b strings.Builder
	for i := 0; b.Len() < 1<<20; i++ {
		fmt.Fprintf(&b, "- old fact number %d\n", i)
	}
	write(t, w.blobs, day, b.String())
	write(t, w.blobs, "memory/2026-11-20.md", b.String())
	write(t, w.blobs, "MEMORY.md", b.String())
	write(t, w.blobs, "SOUL.md", "Be kind.")
	w.remember(scope(t, "main"), "new", "the newest of all")
	prompt, err := w.Prompt(t.Context(), scope(t, "main"), noon)
	if err != nil {
		t.Fatal(err)
	}
	if n := tidemark.EstimateText(prompt); n > 5000 || n < 3000 {
		t.Errorf("%d tokens, want close to 5,000", n)
	}
	for _, want := range []string{"## Your Soul\n\nBe kind.", "- the newest of all", "lines left out here", "### Today (memory/2026-11-21.md)", "Timezone: Europe/Berlin", "Session: agent:main:main (main)"} {
		if !strings.Contains(prompt, want) {
			t.Errorf("the prompt lacks %q", want)
		}
	}
	if strings.Contains(prompt, "13:3") || strings.Contains(prompt, "14:31") {
		t.Error("the prompt has a clock")
	}
}

func TestPromptWhenBucketIsDown(t *testing.T) {
	w := newWorld(t)
	write(t, w.blobs, "SOUL.md", "Be kind.")
	w.blobs.Fail = func(op, key string) error {
		if op == "get" && strings.HasSuffix(key, day) {
			return tidemark.ErrUnavailable
		}
		return nil
	}
	prompt, err := w.Prompt(t.Context(), scope(t, "main"), noon)
	if err == nil || !strings.Contains(prompt, "Be kind.") {
		t.Errorf("%q, %v: want what can be read, and the error", prompt, err)
	}
}

// TestNameless refuses notes of a scope that has neither owner nor peer: there is no file for it.
func TestNameless(t *testing.T) {
	w := newWorld(t)
	nobody := tidemark.Scope{Agent: "main", Key: "agent:main:x:dm:y"}
	if text, ok := w.call(nobody, agent.ToolAppend, map[string]any{"text": "a fact"}); ok || !strings.Contains(text, "forbidden") {
		t.Errorf("append: %v %q", ok, text)
	}
	w.remember(nobody, "x", "a fact") // does not fail, or its session would repeat it for ever
	w.settle()
	if keys := w.blobs.Keys(); len(keys) != 0 {
		t.Errorf("wrote %v", keys)
	}
}

// TestListsWhatIsThere: a listing names no file that cannot be read.
func TestListsWhatIsThere(t *testing.T) {
	w := newWorld(t)
	s := scope(t, "main")
	if list, ok := w.call(s, agent.ToolRead, map[string]any{}); !ok || list != "There are no memory files." {
		t.Errorf("of nothing: %q", list)
	}
	if _, ok := w.call(s, agent.ToolAppend, map[string]any{"text": "the boat is called Ida"}); !ok {
		t.Fatal("nothing was appended")
	}
	list, ok := w.call(s, agent.ToolRead, map[string]any{})
	if !ok || !strings.HasPrefix(list, "memory/") {
		t.Fatalf("after one note: %q", list)
	}
	for path := range strings.Lines(list) {
		if _, ok := w.call(s, agent.ToolRead, map[string]any{"path": strings.TrimSpace(path)}); !ok {
			t.Errorf("%q is listed and is not there", path)
		}
	}
}
