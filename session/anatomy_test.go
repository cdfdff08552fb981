package session_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room/anatomy"
	"github.com/tidemark-ai/tidemark/session"
)

// canonical returns a request as WriteRequest writes it.
func canonical(t *testing.T, req tidemark.Request) string {
	t.Helper()
	var b bytes.Buffer
	if err := anatomy.WriteRequest(&b, req); err != nil {
		t.Fatal(err)
	}
	if !json.Valid(b.Bytes()) {
		t.Fatalf("no JSON: %.300s", b.String())
	}
	return b.String()
}

// answered returns the requests that the model got, less those for summaries.
func (h *harness) answered() []string {
	h.t.Helper()
	h.model.mu.Lock()
	defer h.model.mu.Unlock()
	var out []string
	for _, req := range h.model.calls {
		if !asksSummary(req) {
			out = append(out, canonical(h.t, req))
		}
	}
	return out
}

// anatomies returns all records, oldest first.
func (h *harness) anatomies() []anatomy.Record {
	h.t.Helper()
	var out []anatomy.Record
	for before := int64(0); ; {
		page, err := h.Anatomies(h.t.Context(), before, 100)
		if err != nil {
			h.t.Fatal(err)
		}
		out = append(out, page...)
		if len(page) < 100 {
			break
		}
		before = page[99].N
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// rebuilt holds every recorded call against what the model got.
func (h *harness) rebuilt(sent []string) {
	h.t.Helper()
	records := h.anatomies()
	if len(records) != len(sent) {
		h.t.Fatalf("%d records of %d calls", len(records), len(sent))
	}
	for i, a := range records {
		err := h.Prompt(h.t.Context(), a.N, func(p anatomy.Prompt) error {
			sum := sha256.Sum256([]byte(sent[i]))
			if got := canonical(h.t, p.Request); got != sent[i] || !p.Same() || a.SHA256 != hex.EncodeToString(sum[:]) {
				h.t.Errorf("call %d of %d (overlays %d, until %d): same %v\n got %.1500s\nsent %.1500s", i+1, len(records), len(a.Overlays), a.Until, p.Same(), got, sent[i])
			}
			return nil
		})
		if err != nil {
			h.t.Fatalf("call %d: %v", i+1, err)
		}
		if raw, err := json.Marshal(a); err != nil || len(raw) >= 2000 {
			h.t.Errorf("record of call %d has %d bytes, %v", i+1, len(raw), err)
		}
	}
}

// TestPromptsRebuilt plays conversations with compactions of both kinds, undos, resets, failures, heavy
// messages, changed settings and restarts; each prompt that was ever sent can be had again.
func TestPromptsRebuilt(t *testing.T) {
	for name, strategies := range map[string][]compaction.Strategy{
		"summary": {compaction.Summary{}}, "pointer": {compaction.Pointer{Tail: 3}}, "both": {compaction.Pointer{Tail: 2}, compaction.Summary{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, session.Settings{Window: 6000, Reserve: 2000, Keep: 1000, ViewBytes: 1 << 20})
			h.strategies = strategies
			h.stop()
			h.open()
			rng := rand.New(rand.NewPCG(7, uint64(len(name))))
			words := func(n int) string {
				var b strings.Builder
				for range n {
					fmt.Fprintf(&b, "tide%d mark_%x ", rng.IntN(500), rng.Uint32()%4096)
				}
				return b.String()
			}
			h.agent.call = func(b tidemark.Block) tidemark.Block {
				return tidemark.ToolResult(b.ID, words(60+rng.IntN(200)), false)
			}
			n := 0
			h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
				if asksSummary(req) {
					return tidemark.Message{}, nil
				}
				n++
				switch {
				case n%17 == 0:
					return tidemark.Message{}, &tidemark.APIError{Class: tidemark.ClassAuth, Message: "no"}
				case n%3 == 0:
					return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.Text(words(10)), tidemark.ToolUse(fmt.Sprintf("call_%d", n), "look", []byte(`{"at":1.0}`))}}, nil
				}
				return tidemark.NewText(tidemark.Assistant, words(20)), nil
			})
			undone := 0
			for i := range 60 {
				switch {
				case i%13 == 12:
					undone += h.undoNewest()
				case i == 30:
					h.post(session.Input{Kind: session.InputReset, Text: "manual"})
				case i%19 == 18:
					h.stop()
					h.open()
				case i%11 == 10:
					h.post(session.Input{Kind: session.InputCompact})
				case i == 45:
					if err := h.Configure(t.Context(), session.Override{Model: "other", Window: 7000}); err != nil {
						t.Fatal(err)
					}
				case i%23 == 7:
					h.post(session.Input{Message: tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{picture(600 << 10), tidemark.Text(words(5))}}})
				}
				h.say(words(10 + rng.IntN(150)))
			}
			h.agent.mu.Lock()
			h.agent.call = nil
			h.agent.mu.Unlock()
			if undone == 0 || len(h.events("compaction")) == 0 {
				t.Fatalf("%d undone, %d compactions: the test plays too little", undone, len(h.events("compaction")))
			}
			h.rebuilt(h.answered())
			h.stop()
			h.open() // nothing of it is kept in memory
			h.rebuilt(h.answered())
		})
	}
}

// picture returns an image of that many bytes.
func picture(n int) tidemark.Block {
	var b tidemark.Block
	raw := `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + strings.Repeat("QUJD", n/4) + `"}}`
	if err := json.Unmarshal([]byte(raw), &b); err != nil {
		panic(err)
	}
	return b
}

// undoNewest lifts the newest overlay that holds and returns how many that were.
func (h *harness) undoNewest() int {
	v, err := h.View(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	if len(v.Shown) == 0 {
		return 0
	}
	if _, err := h.Undo(h.t.Context(), v.Shown[len(v.Shown)-1].Overlay); err != nil {
		h.t.Fatal(err)
	}
	return 1
}

func TestAnatomyFields(t *testing.T) {
	h := newHarness(t, session.Settings{Window: 8000, Reserve: 4000, System: "You are a tide gauge."})
	h.model.set(func(n int, _ tidemark.Request) (tidemark.Message, error) {
		if n >= 3 {
			return tidemark.Message{}, &tidemark.APIError{Class: tidemark.ClassRefusal, Message: "refused"}
		}
		return tidemark.Message{}, nil
	})
	h.say("The lighthouse keeper wants barometer readings from the harbour.")
	h.say("Also barometer readings for the lighthouse and harbour archive.")
	h.say("Refuse this one: chocolate cookies recipe with butter and vanilla")
	list := h.anatomies()
	if len(list) != 3 {
		t.Fatalf("%d records", len(list))
	}
	raw, err := json.Marshal(list[1])
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"turnId", "sessionId", "compactionCycle", "contextUtilPct", "systemPromptBytes", "workspaceFileBytes", "skillBytes", "toolSchemaBytes",
		"historyEventCount", "markerCount", "userMessageBytes", "topicLabel", "topicTransition"} {
		if !strings.Contains(string(raw), `"`+field+`":`) {
			t.Errorf("no %s in %s", field, raw)
		}
	}
	a, b, c := list[0], list[1], list[2]
	if a.Turn == "" || a.Turn == b.Turn || a.SystemText != len("You are a tide gauge.") || a.Workspace == 0 || a.Schemas == 0 || a.Events != 1 || b.Events != 3 {
		t.Errorf("%+v\n%+v", a, b)
	}
	if a.UserBytes != len("The lighthouse keeper wants barometer readings from the harbour.") || a.Full <= 0 {
		t.Errorf("%+v", a)
	}
	if a.Topic == nil || a.Transition || b.Transition || !c.Transition {
		t.Errorf("topics %v %v, %v %v, %v %v", *a.Topic, a.Transition, *b.Topic, b.Transition, *c.Topic, c.Transition)
	}
	if c.Stop != "error" || !strings.Contains(c.Error, "refused") || b.Stop != "end_turn" {
		t.Errorf("stops %q %q %q", b.Stop, c.Stop, c.Error)
	}
}

// TestPromptSaysWhatIsMissing removes what a prompt is built of.
func TestPromptSaysWhatIsMissing(t *testing.T) {
	h := newAlone(t, session.Settings{})
	h.say("one")
	h.say("two")
	never := func(anatomy.Prompt) error { t.Error("used"); return nil }
	if err := h.Prompt(t.Context(), 99, never); !errors.Is(err, tidemark.ErrNotFound) {
		t.Error(err)
	}
	h.exec(`UPDATE entries SET payload = replace(payload, 'one', 'won') WHERE kind = 'message'`)
	err := h.Prompt(t.Context(), 2, func(p anatomy.Prompt) error {
		if p.Same() {
			t.Error("a changed log gives the same prompt")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	h.exec(`DELETE FROM prompts WHERE text LIKE '[{%'`)
	if err := h.Prompt(t.Context(), 1, never); !errors.Is(err, tidemark.ErrNotFound) || !strings.Contains(err.Error(), "tools") {
		t.Error(err)
	}
	h.exec(`UPDATE anatomy SET record = '{"n":1,"sessionId":"x"}' WHERE n = 1`)
	if err := h.Prompt(t.Context(), 1, never); !errors.Is(err, tidemark.ErrNotFound) || !strings.Contains(err.Error(), "version") {
		t.Error(err)
	}
}

// exec changes the database behind the session's back.
func (h *harness) exec(sql string, args ...any) {
	h.t.Helper()
	if err := h.db.Tx(h.t.Context(), []tidemark.Stmt{{SQL: sql, Args: args}}); err != nil {
		h.t.Fatal(err)
	}
}

// TestWriteRequest: what is written piece by piece are the messages as they are sent.
func TestWriteRequest(t *testing.T) {
	for _, raw := range []string{
		`{"role":"user","content":"plain"}`, `{"role":"user","content":[]}`,
		`{"role":"user","content":[{"type":"text","text":"a","x":1.0},{"type":"image","source":{"type":"base64","data":"aa"}}]}`,
	} {
		var m tidemark.Message
		if err := json.Unmarshal([]byte(raw), &m); err != nil {
			t.Fatal(err)
		}
		made := tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.Text("made here"), tidemark.ToolResult("c", "r", true)}}
		got := canonical(t, tidemark.Request{Messages: []tidemark.Message{m, made}})
		if want := string(m.AppendJSON(nil)) + "," + string(made.AppendJSON(nil)); !strings.Contains(got, want) {
			t.Errorf("%s\nhas not\n%s", got, want)
		}
	}
}
