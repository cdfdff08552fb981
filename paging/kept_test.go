package paging

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// odd is a conversation whose messages have all that may leave, in forms of clients of several kinds.
func odd() []string {
	long := strings.Repeat(`line \"x\" \u00e9é\n`, 60)
	return []string{
		`{"role":"user","content":[{"type":"text","text":"see a.go and image/png"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + strings.Repeat("AAAA", 400) + `"},"cache_control":{"type":"ephemeral"}},{"type":"text","text":"b.go"}]}`,
		`{"role":"assistant","content":[{"type":"text","text":"ok"},{"type":"tool_use","id":"t1","name":"Write","input":{"file_path":"a.go","content":"` + long + `"}},{"type":"tool_use","input":{"file_path":"b.go","offset":3,"limit":4},"name":"Read","id":"t2"}]}`,
		`{"role":"user","content":[{"type":"tool_result","content":"[Paged out: nothing\n` + long + `","tool_use_id":"t1"},{"tool_use_id":"t2","type":"tool_result","content":[{"type":"text","text":"` + long + `"},{"type":"text","text":"more"}],"x":1.0,"is_error":true}]}`,
		`{"role":"user","content":"typed c.go"}`,
	}
}

func parse(t *testing.T, raw string) tidemark.Message {
	t.Helper()
	var m tidemark.Message
	if err := json.Unmarshal([]byte(raw), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestOriginal: whichever blocks are out, what is kept beside their stubs gives the message as it came, and a stub
// changes nothing else of its block.
func TestOriginal(t *testing.T) {
	s := &Scanner{Tools: DefaultTools()}
	rng := rand.New(rand.NewPCG(3, 1))
	p, err := New(Options{MinBytes: -1, Tau: -1})
	if err != nil {
		t.Fatal(err)
	}
	var step Step
	var messages []tidemark.Message
	for _, raw := range odd() {
		m := parse(t, raw)
		of, err := s.Of(m)
		if err != nil {
			t.Fatal(err)
		}
		messages, step.Append = append(messages, m), append(step.Append, of)
	}
	if _, err := p.Step(step); err != nil {
		t.Fatal(err)
	}
	if len(p.pages) < 4 {
		t.Fatalf("%d pages", len(p.pages))
	}
	for round := range 40 {
		kept, stubbed := map[int]map[int]Kept{}, slices.Clone(messages)
		for _, g := range p.pages {
			if rng.IntN(2) == 0 {
				continue
			}
			m := stubbed[g.Message]
			stub, err := s.Replace(m.Content[g.Block], g, fmt.Sprintf("get %d back", round))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(stub.AppendJSON(nil)), "get ") && g.Size > 500 {
				t.Fatalf("the stub of %s %s is %s", g.Part, g.ID, stub.AppendJSON(nil))
			}
			k, ok := step.Append[g.Message].Kept(g.Block)
			if !ok {
				t.Fatalf("no block %d in message %d", g.Block, g.Message)
			}
			var back Kept
			if raw, err := json.Marshal(k); err != nil || json.Unmarshal(raw, &back) != nil {
				t.Fatal(err)
			}
			content := slices.Clone(m.Content)
			content[g.Block] = stub
			stubbed[g.Message] = tidemark.Message{Role: m.Role, Content: content}
			if kept[g.Message] == nil {
				kept[g.Message] = map[int]Kept{}
			}
			kept[g.Message][g.Block] = back
		}
		for i, m := range stubbed {
			if got, err := s.Original(m, kept[i]); err != nil || !reflect.DeepEqual(got, step.Append[i]) {
				t.Fatalf("message %d with %d stubs, %v:\n got %+v\nwant %+v", i, len(kept[i]), err, got, step.Append[i])
			}
		}
	}
}

// TestReplaceKeepsTheRest: cache markers, fields that we do not know, key order and number forms stay.
func TestReplaceKeepsTheRest(t *testing.T) {
	s := &Scanner{Tools: DefaultTools()}
	m := parse(t, odd()[2])
	g := &Page{Call: Call{Tool: "Bash"}, Size: 9000, Lines: 3}
	got, err := s.Replace(m.Content[1], g, "")
	want := `{"tool_use_id":"t2","type":"tool_result","content":"[Cleared: Bash (9000 bytes, 3 lines).]","x":1.0,"is_error":true}`
	if err != nil || string(got.AppendJSON(nil)) != want {
		t.Errorf("%v\n got %s\nwant %s", err, got.AppendJSON(nil), want)
	}
	if _, err := s.Replace(tidemark.Block{Type: tidemark.TypeText, Text: "x"}, g, ""); err == nil {
		t.Error("a text has no content to replace")
	}
}

// TestKeptIsChecked: what cannot have been stored by us is no block.
func TestKeptIsChecked(t *testing.T) {
	s := &Scanner{Tools: DefaultTools()}
	m := parse(t, odd()[2])
	for name, k := range map[string]Kept{"part": {Part: "x"}, "hash": {Part: "result", Hash: "12"}, "long hash": {Part: "result", Hash: strings.Repeat("zz", 400)}} {
		if _, err := s.Original(m, map[int]Kept{0: k}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestHoldAndLeave: a page that its owner holds stays, and one that is out whatever was decided is read again as a
// fault.
func TestHoldAndLeave(t *testing.T) {
	s := &Scanner{Tools: DefaultTools()}
	p, err := New(Options{Policy: "fifo", Tau: 1})
	if err != nil {
		t.Fatal(err)
	}
	held := true
	p.Hold(func(g *Page) bool { return held && g.ID == "r1" })
	n := 0
	read := func(idle bool) Decision {
		t.Helper()
		n++
		var st Step
		for _, raw := range []string{
			fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"r%d","name":"Read","input":{"file_path":"f%d"}}]}`, n, (n-1)%3),
			fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"r%d","content":"%s"}]}`, n, strings.Repeat("x", 600)),
		} {
			m, err := s.Message([]byte(raw))
			if err != nil {
				t.Fatal(err)
			}
			st.Append = append(st.Append, m)
		}
		st.Idle = idle
		d, err := p.Step(st)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	read(false)
	if d := read(false); len(d.Evict) != 0 {
		t.Fatalf("%s left, which is held", d.Evict[0].ID)
	}
	if d := read(true); len(d.Evict) != 0 {
		t.Fatal("an idle request decides nothing")
	}
	p.Leave(func(g *Page) bool { return g.ID == "r1" })
	if len(p.Stubs()) != 1 || !p.Stubs()[0].Out() {
		t.Fatalf("%d are out", len(p.Stubs()))
	}
	if d := read(false); len(d.Fault) != 1 || d.Fault[0].Of.ID != "r1" || d.Kept != 1 {
		t.Fatalf("faults %+v", d.Fault)
	}
}
