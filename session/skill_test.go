package session_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/skill"
)

// TestSkillsOffered: the tool that reads skills is offered as long as the frozen prompt lists some, and what it
// answers is neither found nor a thing that somebody said.
func TestSkillsOffered(t *testing.T) {
	h, c := newTimed(t, session.Settings{}, "2026-11-25T12:00:00Z")
	h.agent.more = []tidemark.Tool{{Name: skill.Tool, InputSchema: []byte(`{"type":"object"}`), Idempotent: true}}
	h.agent.call = func(c tidemark.Block) tidemark.Block {
		return tidemark.ToolResult(c.ID, "Take the amethyst path.", false)
	}
	list := func(skills ...skill.Line) {
		h.agent.mu.Lock()
		defer h.agent.mu.Unlock()
		h.agent.system = skill.Section(skills, 1000)
	}
	offered := func() bool {
		t.Helper()
		v, err := h.View(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(v.Tools, func(t tidemark.Tool) bool { return t.Name == skill.Tool })
	}
	h.say("one")
	if offered() {
		t.Error("it is offered without skills")
	}
	list(skill.Line{Name: "paths", Description: "Of paths."})
	h.stop()
	h.open()
	if offered() {
		t.Error("it appeared while the prompt was frozen")
	}
	c.advance(24 * time.Hour)
	h.model.set(func(n int, req tidemark.Request) (tidemark.Message, error) {
		if last := req.Messages[len(req.Messages)-1]; len(last.Results()) == 0 {
			return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse(fmt.Sprintf("c%d", n), skill.Tool, []byte(`{"name":"paths"}`))}}, nil
		}
		return tidemark.NewText(tidemark.Assistant, "Done."), nil
	})
	h.say("two")
	if !offered() {
		t.Error("it is not offered on the next day")
	}
	list()
	h.stop()
	h.open()
	if !offered() {
		t.Error("it vanished while the prompt was frozen")
	}
	results := 0
	for e, err := range h.Reader.All(t.Context(), true) {
		if err != nil {
			t.Fatal(err)
		}
		if m, err := e.Message(); err == nil && len(m.Results()) > 0 {
			if results++; !e.Origin.Own || e.Origin.From != tidemark.FromTool || !strings.Contains(m.Content[0].Content[0].Text, "amethyst") {
				t.Errorf("%+v of %+v", m, e.Origin)
			}
		}
	}
	found, err := h.Search(t.Context(), "amethyst", 10)
	if results != 1 || err != nil || len(found) > 0 {
		t.Errorf("%d results; found %+v, %v", results, found, err)
	}
}
