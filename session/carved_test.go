package session_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

// TestViewOfBlocksTakenOut: a message whose blocks all were taken out leaves the view, and its payload is not read; one
// that lost some is read, and shows the others. A plan on that view names the blocks as the log has them.
func TestViewOfBlocksTakenOut(t *testing.T) {
	h := newHarness(t, session.Settings{})
	v, err := h.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	var ids []tidemark.EntryID
	add := func(m tidemark.Message) {
		at = at.Add(time.Second)
		e := tidemark.Entry{ID: tidemark.EntryID(tidemark.NewID(at)), Kind: tidemark.KindMessage, At: at, Tokens: tidemark.Estimate(m), Payload: m.AppendJSON(nil)}
		appendAll(t, h.db, v.Log, e)
		ids = append(ids, e.ID)
	}
	add(tidemark.NewText(tidemark.User, "go"))
	for _, n := range []string{"1", "2"} {
		add(tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.Text("now " + n), tidemark.ToolUse("c"+n, "read", []byte(`{}`))}})
		add(tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult("c"+n, "read "+n, false)}})
	}
	add(tidemark.NewText(tidemark.Assistant, "done"))
	appendAll(t, h.db, v.Log, overlay(at.Add(time.Second), tidemark.Edit{From: ids[1], Block: 1}, tidemark.Edit{From: ids[1], Block: 2}, tidemark.Edit{From: ids[2], Block: 1},
		tidemark.Edit{From: ids[3], Block: 1}))

	unread := func(id tidemark.EntryID) error { // what the view says when a payload cannot be read
		var before string
		rows, err := h.db.Query(t.Context(), `SELECT payload FROM entries WHERE id = ?`, string(id))
		if err != nil || len(rows) != 1 {
			t.Fatal(len(rows), err)
		}
		before = rows[0].Text(0)
		h.exec(`UPDATE entries SET payload = '{' WHERE id = ?`, string(id))
		_, err = h.View(t.Context())
		h.exec(`UPDATE entries SET payload = ? WHERE id = ?`, before, string(id))
		return err
	}
	if err := errors.Join(unread(ids[1]), unread(ids[2])); err != nil {
		t.Errorf("a payload is read of which no block is shown: %v", err)
	}
	if unread(ids[3]) == nil {
		t.Error("a payload is not read of which a block is shown")
	}
	if v, err = h.View(t.Context()); err != nil {
		t.Fatal(err)
	}
	var shown []tidemark.EntryID
	for i := range v.Items {
		shown = append(shown, v.Items[i].ID)
	}
	if want := []tidemark.EntryID{ids[0], ids[3], ids[4], ids[5]}; !slices.Equal(shown, want) {
		t.Fatalf("shown %v, want %v", shown, want)
	}
	if it := &v.Items[1]; len(it.Message.Content) != 1 || it.Message.Content[0].ID != "c2" || it.Block(0) != 2 {
		t.Errorf("%+v", it)
	}
	if err := tidemark.Check(v.Messages()); err != nil {
		t.Error(err)
	}
}
