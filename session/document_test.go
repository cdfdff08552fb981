package session_test

import (
	"cmp"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/session"
)

// TestDocument: what an attached text says is found, and is in what summaries are made of; of a file that is no text its
// name is.
func TestDocument(t *testing.T) {
	t.Parallel()
	h := newHarness(t, small)
	h.post(session.Input{Message: tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{
		block(t, `{"type":"document","title":"lease.txt","source":{"type":"text","media_type":"text/plain","data":"Clause 700: the deposit is 4711 euro"}}`),
		block(t, `{"type":"document","title":"floorplan.pdf","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0xLjQK"}}`),
		tidemark.Text("keep it")}}})
	for _, query := range []string{"clause 700 deposit", "floorplan"} {
		found, err := h.Recall(t.Context(), search.Wanted{Query: query})
		if err != nil || found.Verdict == recall.Nothing || !strings.Contains(found.Results[0].Text, "4711") {
			t.Errorf("%s: %+v, %v", query, found, err)
		}
	}
	for i := range 30 {
		h.say(filler(i))
	}
	told := ""
	for _, r := range h.model.calls {
		if asksSummary(r) {
			told += r.Messages[0].PlainText()
		}
	}
	for _, want := range []string{"[document lease.txt]\n  Clause 700: the deposit is 4711 euro", "[document floorplan.pdf]"} {
		if !strings.Contains(told, want) {
			t.Errorf("no summary was asked with %q", want)
		}
	}
}

// TestWritesMeanwhile: what a tool answered is sent whole, though somebody wrote while it ran.
func TestWritesMeanwhile(t *testing.T) {
	t.Parallel()
	set := small
	set.Window, set.Reserve, set.Keep = 32_000, 8000, 4000
	h := newHarness(t, set)
	h.stop()
	h.strategies = []compaction.Strategy{compaction.Pointer{}, compaction.Summary{}}
	h.open()
	for range 13 {
		h.say("old " + strings.Repeat("word ", 800))
	}
	big := "UNREAD " + strings.Repeat("clause ", 5000)
	h.agent.call = func(c tidemark.Block) tidemark.Block {
		if _, err := h.Post(t.Context(), session.Input{Message: tidemark.NewText(tidemark.User, "and hurry")}); err != nil {
			t.Error(err)
		}
		return tidemark.ToolResult(c.ID, big, false)
	}
	called, whole := false, false
	h.model.set(func(_ int, r tidemark.Request) (tidemark.Message, error) {
		for _, m := range r.Messages {
			for _, b := range m.Content {
				whole = whole || b.Type == tidemark.TypeToolResult && b.Content[0].Text == big
			}
		}
		if asksSummary(r) || called {
			return tidemark.Message{}, nil
		}
		called = true
		return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("c1", "look", []byte(`{"path":"a"}`))}}, nil
	})
	h.say("read the file")
	if !whole {
		t.Error("no call had the result whole")
	}
}

// TestSizeIsNamed: a refusal that says how large the request was is taken at its word: what fits is sent whole, with less
// room for the reply, though we took it for smaller before.
func TestSizeIsNamed(t *testing.T) {
	t.Parallel()
	h := newHarness(t, session.Settings{Window: 32_000})
	pasted := strings.Repeat("漢字", 5000) + " and that"
	whole, refused := false, 0
	h.model.set(func(_ int, r tidemark.Request) (tidemark.Message, error) {
		size := tidemark.Tokens(0)
		for _, m := range r.Messages {
			size += tidemark.Tokens(len([]rune(m.PlainText())) * 26 / 10)
			whole = m.PlainText() == pasted
		}
		if size+cmp.Or(r.MaxTokens, 8192) > 32_000 {
			refused++
			return tidemark.Message{}, &tidemark.APIError{Class: tidemark.ClassOverflow, Status: 400, Message: "too long", Limit: 32_000, Asked: size}
		}
		return tidemark.Message{}, nil
	})
	if got := h.say(pasted); !strings.HasPrefix(got, "ok") || !whole || refused != 1 {
		t.Errorf("answered %q, whole: %v, refused %d times; %q", got, whole, refused, h.events("compaction"))
	}
}

// TestWindowIsFull: where nothing can leave, a request that the window holds is sent with what room is left for a reply.
func TestWindowIsFull(t *testing.T) {
	t.Parallel()
	const window, size = 8192, 7900
	h := newHarness(t, session.Settings{Window: window})
	h.model.set(func(_ int, r tidemark.Request) (tidemark.Message, error) {
		if size+cmp.Or(r.MaxTokens, 8192) > window {
			return tidemark.Message{}, &tidemark.APIError{Class: tidemark.ClassOverflow, Status: 400, Message: "too long", Limit: window, Asked: size}
		}
		return tidemark.Message{}, nil
	})
	if got := h.say("hello"); !strings.HasPrefix(got, "ok") {
		t.Errorf("answered %q", got)
	}
}

// TestOnlyTheReplyIsTooLarge: a model whose window nobody names refuses a request for the room of its reply, and nothing can
// leave the view. It is asked for a shorter one.
func TestOnlyTheReplyIsTooLarge(t *testing.T) {
	t.Parallel()
	const size = 4853
	h := newHarness(t, session.Settings{Window: 200_000})
	h.model.usage = tidemark.Usage{Input: size, Output: 10}
	for range 3 {
		h.say("hello")
	}
	h.model.set(func(_ int, r tidemark.Request) (tidemark.Message, error) {
		if size+cmp.Or(r.MaxTokens, 8192) > 8192 {
			return tidemark.Message{}, &tidemark.APIError{Class: tidemark.ClassOverflow, Status: 400, Message: "context length exceeded"}
		}
		return tidemark.Message{}, nil
	})
	for range 2 {
		if got := h.say("and now?"); !strings.HasPrefix(got, "ok") {
			t.Errorf("answered %q", got)
		}
	}
	h.sentInOrder([]string{"hello", "hello", "hello", "and now?", "and now?"})
}
