package session_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/session"
)

// recalled has the model call recall with each of some inputs, one after the other, and returns the answers.
func (h *harness) recalled(inputs ...string) []tidemark.Block {
	h.t.Helper()
	var out []tidemark.Block
	n := 0
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		for _, b := range req.Messages[len(req.Messages)-1].Content {
			if b.Type == tidemark.TypeToolResult {
				out = append(out, b)
			}
		}
		if n++; n > len(inputs) {
			return tidemark.NewText(tidemark.Assistant, "Done."), nil
		}
		return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse(fmt.Sprint("c", len(req.Messages)), "recall", []byte(inputs[n-1]))}}, nil
	})
	h.say("Please look for it.")
	if len(out) != len(inputs) {
		h.t.Fatalf("%d answers to %d calls", len(out), len(inputs))
	}
	return out
}

// TestRecallToolBudget: what a model reads of a recall stays within the budget, headings and verdict included, and with
// more of it the texts are longer.
func TestRecallToolBudget(t *testing.T) {
	for _, c := range []struct {
		name string
		text func(i int) string
	}{
		{"short texts", func(i int) string { return fmt.Sprintf("walnut n%d", i) }},
		{"long texts", func(i int) string {
			return fmt.Sprintf("walnut n%d\n", i) + strings.Repeat(fmt.Sprintf("gravel%d pebble%d, ", i, i*3), 400)
		}},
	} {
		h := newHarness(t, session.Settings{Window: 1_000_000})
		h.told(spoken(120, c.text)...)
		var before tidemark.Tokens
		for _, budget := range []tidemark.Tokens{250, 1000, 4000, 16_000} {
			b := h.recalled(fmt.Sprintf(`{"query":"walnut","k":20,"budget":%d}`, budget))[0]
			text := b.Content[0].Text
			if size := tidemark.EstimateText(text); b.IsError || size > budget || strings.Count(text, ", entry ") == 0 {
				t.Errorf("%s, budget %d: %d tokens, %d results", c.name, budget, size, strings.Count(text, ", entry "))
			} else if c.name == "long texts" && size < 2*before {
				t.Errorf("%s, budget %d: %d tokens, with less %d", c.name, budget, size, before)
			} else {
				before = size
			}
		}
	}
}

// TestRecallToolBudgetWide: so it does of a recall in several conversations, whose headings are longer than short texts.
func TestRecallToolBudgetWide(t *testing.T) {
	h := newHarness(t, session.Settings{Window: 1_000_000})
	others := recall.Answer{Verdict: recall.Confident}
	for i := range 40 {
		key := tidemark.Key(fmt.Sprintf("agent:main:whatsapp:dm:+4915123456%d", i))
		told := fmt.Sprintf(`{"key":%q,"id":"01ARZ3NDEKTSV4RRFFQ69G5F%02d","at":"2026-01-01T00:00:00Z","role":"user","normalized":1,"coverage":1,"text":"walnut n%d"}`, key, i, i)
		others.Results = append(others.Results, recall.Result{Key: key, Told: []byte(told)})
		others.Asked = append(others.Asked, key)
	}
	h.openWide(&wideAgent{fakeAgent: h.agent, others: others})
	h.told(spoken(40, func(i int) string { return fmt.Sprintf("walnut m%d", i) })...)
	before := 0
	for _, budget := range []tidemark.Tokens{250, 500, 1000, 4000} {
		b := h.recalled(fmt.Sprintf(`{"query":"walnut","k":20,"scope":"agent","budget":%d}`, budget))[0]
		text := b.Content[0].Text
		n := strings.Count(text, ", entry ")
		if size := tidemark.EstimateText(text); b.IsError || size > budget || n == 0 || n < before {
			t.Errorf("budget %d: %d tokens, %d results, with less %d", budget, size, n, before)
		}
		before = n
	}
	if before != 20 {
		t.Errorf("%d of 20 results fit into the most", before)
	}
}

// TestRecallToolBytes: entries count in what a turn is given, which is bounded; the next turn is given as much.
func TestRecallToolBytes(t *testing.T) {
	h := newHarness(t, session.Settings{Window: 1_000_000})
	h.told(tidemark.NewText(tidemark.User, "walnut "+strings.Repeat("gravel ", 100_000)), tidemark.NewText(tidemark.Assistant, "Noted."))
	got, err := h.Recall(t.Context(), search.Wanted{Query: "walnut"})
	if err != nil || len(got.Results) == 0 {
		t.Fatal(got, err)
	}
	var inputs []string
	for i := range 14 {
		inputs = append(inputs, fmt.Sprintf(`{"entry":%q,"offset":%d}`, got.Results[0].ID, i*20_000))
	}
	for range 2 {
		given := 0
		for i, b := range h.recalled(append(inputs, `{"query":"walnut"}`)...) {
			if given += len(b.Content[0].Text); b.IsError != (i >= 10) || b.IsError && !strings.Contains(b.Content[0].Text, "which is the most") {
				t.Errorf("call %d: %.100q", i, b.Content[0].Text)
			}
		}
		if given > 220_000 {
			t.Errorf("%d bytes in a turn", given)
		}
	}
}
