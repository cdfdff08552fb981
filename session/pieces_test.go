package session_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room/replay"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/session"
)

// TestDeepBesideLonger: a word deep in a long text is found though a much longer one is full of it, also within
// the days that are asked for.
func TestDeepBesideLonger(t *testing.T) {
	h := newAlone(t, session.Settings{})
	days := []string{
		strings.Repeat("the falcon and the falcon flew over log lines of work at the harbour and back. ", 25_000),
		strings.Repeat("other words of an ordinary day at the office stand here. ", 1500) + " here sits one falcon alone " + strings.Repeat("and more of the same. ", 500),
	}
	at := func(i int) time.Time { return time.Date(2026, 3, 1+i, 8, 0, 0, 0, time.UTC) }
	_, err := h.Import(t.Context(), func(yield func(replay.Message, error) bool) {
		for i, text := range days {
			if !yield(replay.Message{At: at(i), Message: tidemark.NewText(tidemark.User, text)}, nil) ||
				!yield(replay.Message{At: at(i).Add(time.Minute), Message: tidemark.NewText(tidemark.Assistant, "ok")}, nil) {
				return
			}
		}
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, w := range map[string]search.Wanted{
		"all days": {Query: "falcon"},
		"since":    {Query: "falcon", Since: at(1)},
		"until":    {Query: "falcon", Until: at(0)},
	} {
		got, err := h.Recall(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		alone, other := false, false
		for _, r := range got.Results {
			alone = alone || strings.Contains(r.Text, "falcon alone")
			other = other || strings.Contains(r.Text, "the harbour and back")
		}
		if alone != (name != "until") || other != (name != "since") {
			t.Errorf("%s: %+v", name, got.Results)
		}
	}
	found, err := h.Search(t.Context(), "falcon", 10)
	if err != nil || len(found) != 2 {
		t.Errorf("a search finds %d messages, %v", len(found), err)
	}
}

// TestRecallPages: the pages of a long entry, joined, are its text, whatever its characters take.
func TestRecallPages(t *testing.T) {
	for name, text := range map[string]string{
		"three bytes": "a" + strings.Repeat("漢字", 7_000),
		"four bytes":  "abc" + strings.Repeat("🜁🜂", 6_000),
		"two bytes":   "a" + strings.Repeat("é", 21_000),
	} {
		h := newAlone(t, session.Settings{})
		h.say(text)
		entry := tidemark.EntryID("")
		for e, err := range h.Reader.All(t.Context(), false) {
			if m, bad := e.Message(); err != nil || bad != nil {
				t.Fatal(err, bad)
			} else if m.Role == tidemark.User {
				entry = e.ID
			}
		}
		got, offset, pages := "", 0, 0
		h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
			if last := req.Messages[len(req.Messages)-1]; len(last.Results()) > 0 {
				part, more, ok := strings.Cut(last.Content[0].Content[0].Text, "\n[")
				got, pages = got+part, pages+1
				if !ok {
					return tidemark.NewText(tidemark.Assistant, "done"), nil
				}
				if _, err := fmt.Sscanf(more[strings.Index(more, ";"):], "; go on with offset %d]", &offset); err != nil {
					return tidemark.Message{}, err
				}
			}
			input := fmt.Sprintf(`{"entry":%q,"offset":%d}`, entry, offset)
			return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse(fmt.Sprint("c", offset), "recall", []byte(input))}}, nil
		})
		if reply := h.say("Read it."); reply != "done" || got != text || pages < 3 {
			t.Errorf("%s: %d of %d bytes in %d pages, %q", name, len(got), len(text), pages, reply)
		}
	}
}

// TestDamagedPiece: a piece of a long text that cannot be read keeps nothing else from being found, and is told. It is
// made anew from the message.
func TestDamagedPiece(t *testing.T) {
	h := newAlone(t, session.Settings{})
	h.told(append([]tidemark.Message{tidemark.NewText(tidemark.User, "look")},
		exchangeOf("c1", lines(600_000, func(i int) string { return fmt.Sprintf("%d: walnut stands at place %d", i, i*7) }))...)...)
	h.owner("The walnut key is PQ-7781.")
	h.finds("walnut key PQ-7781", "PQ-7781")
	for _, of := range []string{` WHERE at > 0`, ``} { // the beginning is read in place of the others
		for _, query := range []string{"walnut key PQ-7781", "walnut place 69993"} {
			h.exec(`UPDATE pieces SET text = x'00112233'` + of)
			got, err := h.Recall(t.Context(), search.Wanted{Query: query})
			if err != nil || len(got.Results) == 0 || query != "walnut place 69993" && !strings.Contains(got.Results[0].Text, "PQ-7781") {
				t.Fatalf("%q: %+v, %v", query, got, err)
			}
			beginning := slices.ContainsFunc(got.Results, func(r search.Recollection) bool { return strings.Contains(r.Text, "walnut stands at place 7\n") })
			if query == "walnut place 69993" && beginning != (of != "") {
				t.Errorf("damaged%s: %+v", of, got.Results)
			}
			told := 0
			for _, f := range got.Filtered {
				if f.Reason == "damaged" && f.Count == len(f.IDs) {
					told += f.Count
				}
			}
			if told != 1 {
				t.Errorf("%q: %d texts are told as damaged: %+v", query, told, got.Filtered)
			}
			h.finds("walnut place 69993", "walnut stands at place 69993")
		}
		if found, err := h.Search(t.Context(), "walnut", 10); err != nil || len(found) != 2 {
			t.Errorf("a search finds %+v, %v", found, err)
		}
	}
}
